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

# Runs what "make test" leaves out, in parts, and ends with a table of all parts that have
# run since the last "make test-all PARTS=none", so that it may take several sittings. A
# part that fails does not keep the others from running. A row of another commit than the
# present one, or with other changes, says so. Logs and results are in _output/test-all.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly RESULTS=_output/test-all

# Each part is one or more targets of make. After one that fails, the part goes on with those
# of CLEANUP alone. The first parts need no root.
declare -rA TARGETS=(
  [drain]='test-drain'
  [docs]='test-docs'
  [demos]='demo demo-evictionrequest demo-podpicker demo-responder demo-fleet down down:responder down:fleet'
  [chaos]='test-chaos'
  [histories]='test-histories'
  [defects]='test-defects'
  [surge]='test-surge'
  [cases]='test-cases'
  [upgrade]='test-upgrade'
  [upgrade-fork]='test-upgrade-fork'
  [interop]='test-interop'
  [integration-upstream]='test-integration-upstream'
  [monitoring]='monitoring'
  [release]='test-release'
  [node]='test-node'
  [node-fork]='test-node-fork'
  [real]='demo-real down-real up-real down-real local-up local-down'
  [rollout]='test-rollout'
  [monitoring-real]='monitoring-real'
  [e2e-upstream]='test-e2e-upstream'
  [simulation]='test-simulation'
  [race]='test-race'
  [bench]='bench'
)
# down:fleet is make down NAME=fleet.
readonly CLEANUP=(down down:responder down:fleet down-real local-down)
readonly ORDER=(drain docs demos chaos histories defects surge cases upgrade upgrade-fork interop integration-upstream monitoring release
  node node-fork real rollout monitoring-real e2e-upstream simulation race bench)

usage() {
  echo "usage: make test-all PARTS=\"${ORDER[*]}\" (default: all, hours; none: forget the results)" >&2
  exit 2
}

# What the log of a part counts: tests of go test -v, of gotestsum, or of hack/e2e.
count() {
  awk '
    /^ *--- PASS: / { passed++ }
    /^ *--- FAIL: / { failed++ }
    /^ *--- SKIP: / { skipped++ }
    /^total: [0-9]+ passed/ { passed += $2; failed += $4; skipped += $6 }
    /^e2e [a-z]+: [0-9]+ passed, / { passed += $3; failed += $5; skipped += $7 }
    END { printf "%d %d %d", passed, failed, skipped }
  ' "$1"
}

# What is tested: a commit, with the mark "+" if the files differ from it.
commit() { echo "$(git rev-parse --short=12 HEAD)$([[ -z $(git status --porcelain) ]] || echo +)"; }

run_part() {
  local part=$1 start=${SECONDS} status=ok target tested
  tested=$(commit)
  # So a part that is killed has no result.
  rm -f "${RESULTS}/${part}.result"
  : >"${RESULTS}/${part}.log"
  for target in ${TARGETS[${part}]}; do
    [[ ${status} == ok || " ${CLEANUP[*]} " == *" ${target} "* ]] || continue
    echo "==> make ${target}"
    # shellcheck disable=SC2086 # a target, and perhaps a name
    make ${target/:/ NAME=} >>"${RESULTS}/${part}.log" 2>&1 || [[ ${status} != ok ]] || status="failed: make ${target}"
  done
  echo "${part} $(count "${RESULTS}/${part}.log") $((SECONDS - start)) ${tested} ${status}" >"${RESULTS}/${part}.result"
}

table() {
  local part passed failed skipped seconds tested status present failures=0
  present=$(commit)
  printf '\n%-16s %8s %8s %8s %8s  %s\n' part passed failed skipped seconds status
  for part in "${ORDER[@]}"; do
    tested=
    [[ ! -e ${RESULTS}/${part}.result ]] || read -r _ passed failed skipped seconds tested status <"${RESULTS}/${part}.result"
    # Earlier versions of this script stored no commit.
    if [[ ! ${tested} =~ ^[0-9a-f]{12,}\+?$ ]]; then
      printf '%-16s %8s %8s %8s %8s  %s\n' "${part}" - - - - 'not run'
      continue
    fi
    [[ ${status} == ok && ${failed} == 0 ]] || failures=1
    [[ ${tested} == "${present}" ]] || status+=" (of another commit, ${tested})"
    printf '%-16s %8d %8d %8d %8d  %s\n' "${part}" "${passed}" "${failed}" "${skipped}" "${seconds}" "${status}"
  done
  echo "The present commit is ${present}$([[ ${present} != *+ ]] || echo ', with changes that are not committed')."
  return "${failures}"
}

main() {
  local part
  mkdir -p "${RESULTS}"
  if [[ $* == none ]]; then
    rm -f "${RESULTS}"/*
    exit 0
  fi
  [[ $# -gt 0 ]] || set -- "${ORDER[@]}"
  for part in "$@"; do [[ -n ${TARGETS[${part}]:-} ]] || usage; done
  for part in "$@"; do run_part "${part}"; done
  table
}

main "$@"
