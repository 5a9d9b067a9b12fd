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

# Runs the tests of clusters with real nodes, in groups of which three run at a
# time: they wait most of it. Those of the predecessor run only if they are asked for. $BUILD_FLAGS
# holds flags of go test.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ROOT=$PWD
readonly ROOT
readonly LOGS=${ROOT}/_output/test
# The longest first. Those of local-up run at the same time. At most 12 nodes run at a time: each needs 9 of the 128
# instances of inotify that a user may have, and 10 if it shuts down.
readonly GROUPS_OF_TESTS=(control-plane static shutdown lives local-up) AT_A_TIME=3
readonly OTHER_GROUPS=(predecessor predecessor-shutdown)

# Arguments: program, directory in the tree, flags of the tests.
run_tests() {
  local program=$1 dir=$2
  shift 2
  cd "${ROOT}/_output/kubernetes/${dir}"
  REAL_CLUSTER_OUTPUT=${ROOT}/_output SYSTEM_TEST_OUTPUT=${ROOT}/_output \
    "${ROOT}/_output/${program}" -test.timeout=20m -test.parallel=16 -test.v "$@"
}

run_group() {
  case $1 in
    lives) run_tests realcluster.test test/utils/realcluster -test.run='^TestNodes' -test.skip='^TestNodesLocalUp' ;;
    local-up) run_tests realcluster.test test/utils/realcluster -test.run='^TestNodesLocalUp' ;;
    static) run_tests realcluster.test test/utils/realcluster -test.run='^TestNodeStaticPods' ;;
    control-plane) run_tests realcluster.test test/utils/realcluster -test.run='^TestNode' -test.skip='^(TestNodes|TestNodeStaticPods)' ;;
    predecessor) run_tests realcluster.test test/utils/realcluster -test.run='^TestForkNode' ;;
    predecessor-shutdown) run_tests system.test test/system -test.run='^TestForkNode' ;;
    shutdown) run_tests system.test test/system -test.run='^TestNodeShutdown$' ;;
    *) echo "test-node: no group $1: there are ${GROUPS_OF_TESTS[*]} ${OTHER_GROUPS[*]}" >&2 && return 2 ;;
  esac
}

# The log of a group is shown when it has ended, so that logs do not mix.
show_group() {
  local result=0
  (run_group "$1") >"${LOGS}/node-$1.log" 2>&1 || result=$?
  flock "${LOGS}" cat "${LOGS}/node-$1.log"
  return "${result}"
}

mkdir -p "${LOGS}"
if [[ ${1:-} == group ]]; then
  show_group "$2"
  exit
fi
read -ra flags <<<"${BUILD_FLAGS:-}"
for dir in test/utils/realcluster test/system; do
  CGO_ENABLED=0 GOWORK='' go test -C _output/kubernetes "${flags[@]}" -vet=off -c -o "${ROOT}/_output/${dir##*/}.test" "./${dir}"
done
[[ $# -gt 0 ]] || set -- "${GROUPS_OF_TESTS[@]}"
printf '%s\0' "$@" | xargs -0 -n 1 -P "${AT_A_TIME}" hack/test-node.sh group || {
  echo "test-node: FAILED, the logs are ${LOGS}/node-*.log" >&2
  exit 1
}
