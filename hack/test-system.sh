#!/usr/bin/env bash

# Copyright The Kubernetes Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

# Runs tests of whole control planes, which find the programs in _output. Never from the cache: the
# programs are no part of the cached key. Arguments: the target of make, and flags of go test.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly TARGET=$1
shift

# Tests, how long they may take, and how long they take.
declare -rA TESTS=(
  [test-histories]="TestHistories ${TIMEOUT:-24h} LENGTH and a minute or two for each two"
  [test-upgrade]="Test${PART:-(Picker|Fleet|Lifecycle)?}Upgrade 20m 6 minutes"
  [test-upgrade-fork]='TestForkUpgrade 20m 2 minutes'
  [test-drain]='TestDrain 10m 30 seconds'
  [test-surge]='TestSurge 20m 80 seconds'
  [test-cases]='TestCases 30m 5 minutes'
  [test-interop]='TestInterop.* 30m 4 minutes'
  [test-chaos]='Test(Chaos|SuspendedLeader) 12m 150 seconds'
  [test-docs]='TestTutorial 5m 30 seconds'
  [test-rollout]='TestRollout 30m 10 minutes'
)
read -r tests timeout duration <<<"${TESTS[${TARGET}]}"

# What a target takes from the command line of make.
case ${TARGET} in
  test-chaos) export CHAOS_SEED=${SEED:-} ;;
  test-histories)
    export HISTORY_SEED=${SEED:-} HISTORY_COUNT=${COUNT:-5} HISTORY_LENGTH=${LENGTH:-} HISTORY_WITHOUT=${WITHOUT:-} HISTORY_FAULTS=${FAULTS:-} \
      HISTORY_SHORTEN=${SHORTEN:-} HISTORY_RULE=${RULE:-}
    ;;
esac

echo "==> ${TARGET} (about ${duration})"
SYSTEM_TEST_OUTPUT=${PWD}/_output CGO_ENABLED=0 GOWORK='' \
  go test -C _output/kubernetes "$@" -vet=off -count 1 -timeout "${timeout}" -v -run "^${tests}\$" ./test/system
