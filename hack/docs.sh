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

# Writes the documents that are made from the code: docs/reference/api.md from the types of the API,
# and the tables of docs/reference/metrics.md from the definitions of the metrics. "verify" writes
# nothing and fails if one of them is stale.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ROOT=$PWD
readonly ROOT
readonly TREE=${ROOT}/_output/kubernetes BIN=${ROOT}/_output/bin
readonly DOCUMENTS=(docs/reference/api.md docs/reference/metrics.md)
# crd-ref-docs loads the types with the go command.
export CGO_ENABLED=0 GOWORK='' GOFLAGS='-trimpath -buildvcs=false -gcflags=all=-dwarf=false'

# Arguments: directory of the types, and a regular expression that matches those to show.
write_types() {
  "${BIN}/crd-ref-docs" --log-level=ERROR --config=hack/docs/api/config.yaml --templates-dir=hack/docs/api \
    --renderer=markdown --template-value="types=$2" --template-value="core=${CORE_TYPES}" \
    --source-path="${TREE}/staging/src/k8s.io/api/$1" --output-path="${SCRATCH}/types.md"
  cat "${SCRATCH}/types.md"
}

write_api() {
  # The types that our patch adds to those of upstream.
  CORE_TYPES=$(sed -n 's/^+type \([A-Za-z]*\) .*/\1/p' staging/src/k8s.io/api/core/v1/types.go.patch | paste -sd'|')
  cat <<'INTRODUCTION'
<!-- Written by "make docs" from the types in staging/src/k8s.io/api. Do not edit. -->

# API reference

The fields of [EvictionRequest](#evictionrequest), [NodeMaintenance](#nodemaintenance) and
[NodeMaintenanceBudget](#nodemaintenancebudget), and those added to [pods](#podspec),
[nodes](#nodestatus), Deployments and ReplicaSets ([DownscalePodPicker](#downscalepodpicker)).
`kubectl explain` prints the same texts. [EvictionRequest](eviction-request.md),
[NodeMaintenance](node-maintenance.md) and [Choose the pods that a scale-down
removes](../how-to/choose-pods-to-remove.md) explain the behaviour.
INTRODUCTION
  write_types coordination/v1alpha1 '.*'
  write_types core/v1 "${CORE_TYPES}"
}

# Upstream's parser lists what the Go files define that import upstream's package for metrics.
write_metrics() {
  local files
  mapfile -t files < <(git grep --untracked -l '"k8s.io/component-base/metrics"' -- '*.go' ':!*_test.go')
  (cd "${TREE}" && "${BIN}/instrumentation" --allstabilityclasses "${files[@]}") >"${SCRATCH}/metrics.yaml"
  "${BIN}/docs" metrics "$1" <"${SCRATCH}/metrics.yaml"
}

main() {
  SCRATCH=$(mktemp -d)
  trap 'rm -rf "${SCRATCH}"' EXIT
  # A template may leave empty lines at its end.
  write_api | cat -s >"${SCRATCH}/api.md"
  cp docs/reference/metrics.md "${SCRATCH}"
  write_metrics "${SCRATCH}/metrics.md"
  local document failed=0
  for document in "${DOCUMENTS[@]}"; do
    if [[ ${1:-} != verify ]]; then
      cp "${SCRATCH}/${document##*/}" "${document}"
    elif ! diff -u --label "${document}" --label "${document}, from the code" "${document}" "${SCRATCH}/${document##*/}" >&2; then
      failed=1
    fi
  done
  [[ ${failed} == 0 ]] || echo 'hack/docs.sh: a reference is stale: run "make docs"' >&2
  return "${failed}"
}

main "$@"
