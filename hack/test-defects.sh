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

# Tests the checker of the histories: each diff in test/system/testdata/defects makes a defect again that was mended,
# or a mistake like those, in a copy of the committed files, and has histories run until one of them breaks the rule
# that it names, with all faults or with those alone that it names. Ends with a table, and fails if a defect is not found.
# DEFECTS="no-fence no-budget" selects some, HISTORIES limits how many histories each may take, LENGTH is that of one.
# "hack/test-defects.sh check" only says whether they can still be made.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PATCHES=test/system/testdata/defects COPY=_output/defects/src LOGS=_output/defects

# Before anything is built: others have changed what a defect is about.
for patch in "${PATCHES}"/*.diff; do
  git apply --check "${patch}" || { echo "${patch}: make the defect again" >&2; exit 1; }
done
[[ ${1:-} != check ]] || exit 0

missed=0
rm -rf "${COPY}"
mkdir -p "${LOGS}"
git clone --quiet --shared . "${COPY}"
mkdir -p "${COPY}/_output/bin"
cp _output/bin/etcd "${COPY}/_output/bin/"
printf '%-24s %10s %10s  %s\n' defect histories revisions found | tee "${LOGS}/table"
for patch in "${PATCHES}"/*.diff; do
  name=$(basename "${patch}" .diff)
  [[ -z ${DEFECTS:-} || " ${DEFECTS} " == *" ${name} "* ]] || continue
  rule=$(sed -n 's/^Rule: //p' "${patch}")
  faults=$(sed -n 's/^Faults: //p' "${patch}")
  git -C "${COPY}" apply "${PWD}/${patch}"
  histories=0 found='no' revisions=0
  while [[ ${histories} -lt ${HISTORIES:-8} && ${found} == no ]]; do
    histories=$((histories + 1))
    log="${LOGS}/${name}-${histories}.log"
    make -C "${COPY}" test-histories SEED=$((1000 + histories)) COUNT=1 LENGTH="${LENGTH:-2m}" FAULTS="${faults}" RULE="${rule}" >"${log}" 2>&1 || true
    # Programs that do not start prove nothing.
    grep -q '=== RUN   TestHistories/' "${log}" || { cat "${log}"; exit 1; }
    at=$(sed -n "s/.*revision \([0-9]*\) breaks \"${rule}\".*/\1/p" "${log}" | head -1)
    of=$(sed -n 's/.*: \([0-9]*\) revisions, .*/\1/p' "${log}" | head -1)
    [[ -z ${at} ]] || found="seed $((1000 + histories)), revision ${at}"
    revisions=$((revisions + ${at:-${of:-0}}))
  done
  printf '%-24s %10d %10d  %s\n' "${name}" "${histories}" "${revisions}" "${found}" | tee -a "${LOGS}/table"
  [[ ${found} != no ]] || missed=1
  git -C "${COPY}" apply --reverse "${PWD}/${patch}"
done
exit "${missed}"
