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
# part that fails does not keep the others from running. Logs and results are in
# _output/test-all.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly RESULTS=_output/test-all

# Each part is one or more targets of make. The first need no root.
declare -rA TARGETS=(
  [drain]='test-drain'
  [docs]='test-docs'
  [demos]='demo demo-evictionrequest demo-podpicker demo-fleet down'
  [chaos]='test-chaos'
  [surge]='test-surge'
  [upgrade]='test-upgrade'
  [upgrade-fork]='test-upgrade-fork'
  [interop]='test-interop'
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
readonly ORDER=(drain docs demos chaos surge upgrade upgrade-fork interop monitoring release
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

run_part() {
  local part=$1 start=${SECONDS} status=ok target
  : >"${RESULTS}/${part}.log"
  for target in ${TARGETS[${part}]}; do
    echo "==> make ${target}"
    make "${target}" >>"${RESULTS}/${part}.log" 2>&1 || { status="failed: make ${target}"; break; }
  done
  echo "${part} $(count "${RESULTS}/${part}.log") $((SECONDS - start)) ${status}" >"${RESULTS}/${part}.result"
}

table() {
  local part passed failed skipped seconds status failures=0
  printf '\n%-16s %8s %8s %8s %8s  %s\n' part passed failed skipped seconds status
  for part in "${ORDER[@]}"; do
    if [[ ! -e ${RESULTS}/${part}.result ]]; then
      printf '%-16s %8s %8s %8s %8s  %s\n' "${part}" - - - - 'not run'
      continue
    fi
    read -r _ passed failed skipped seconds status <"${RESULTS}/${part}.result"
    printf '%-16s %8d %8d %8d %8d  %s\n' "${part}" "${passed}" "${failed}" "${skipped}" "${seconds}" "${status}"
    [[ ${status} == ok && ${failed} == 0 ]] || failures=1
  done
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
