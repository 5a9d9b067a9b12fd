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

# Lints every package that holds one of our files or patches, with upstream's own
# configuration of golangci-lint. Upstream's files have no findings with it, so each
# finding is ours.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ROOT=$PWD
readonly ROOT
readonly TREE=${ROOT}/_output/kubernetes CONFIG=${ROOT}/_output/golangci.yaml
# As everything else is built, so that what is compiled for the type checks is not
# compiled again for the tests.
export CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false -gcflags=all=-dwarf=false'

# Upstream's configuration, except that logcheck is linked in, see
# hack/modules/golangci-lint, and that the plugins are left out which no Go proxy serves.
write_config() {
  awk '
    /^    - (kubeapilinter|sorted)$/ { next }
    /^      (kubeapilinter|sorted):$/ { skipped = 1; next }
    skipped && /^ ? ? ? ? ? ?[^ ]/ { skipped = 0 }
    skipped { next }
    { sub("path: _output/local/bin/logcheck.so", "type: module"); print }
  ' "${TREE}/hack/golangci.yaml" >"${CONFIG}"
}

# The directories with a Go file of ours or a patch of one, below those given.
directories() {
  git ls-files --cached --others --exclude-standard -- "$@" |
    sed -n 's#/[^/]*\.go\(\.patch\)\{0,1\}$##p' | sort -u | sed 's#^#./#'
}

# Arguments: directory to run in, packages. Paths in the output are relative to it. By
# default golangci-lint refuses to run while it runs in another checkout.
lint() {
  local dir=$1
  shift
  (cd "${dir}" && "${ROOT}/_output/bin/golangci-lint" run --config "${CONFIG}" --allow-parallel-runners "$@")
}

lint_shell() {
  if ! command -v shellcheck >/dev/null; then
    echo 'shellcheck is not installed: the scripts are not checked (on Debian: apt-get install shellcheck)'
    return
  fi
  # The exceptions are upstream's, see hack/verify-shellcheck.sh in the tree.
  git ls-files --cached --others --exclude-standard -- '*.sh' .ci/run |
    xargs shellcheck --exclude=1090,1091,2230
}

# Without arguments everything is linted, else what lies below these paths.
main() {
  local failed=0
  write_config
  if [[ $# -gt 0 ]]; then
    mapfile -t packages < <(directories "$@")
    GOWORK='' lint "${TREE}" "${packages[@]}"
    return
  fi
  echo '==> linting (up to 7 minutes on two cores the first time)'
  mapfile -t packages < <(directories cmd pkg plugin staging test hack/cluster hack/docs hack/e2e)
  GOWORK='' lint "${TREE}" "${packages[@]}" || failed=1
  mapfile -t packages < <(directories hack/tree)
  GOWORK=off lint "${ROOT}" "${packages[@]}" || failed=1
  GOWORK=off lint "${ROOT}/hack/modules/golangci-lint" . || failed=1
  GOWORK=off lint "${ROOT}/evictions" ./... || failed=1
  GOWORK=off lint "${ROOT}/evictions/sample" ./... || failed=1
  lint_shell || failed=1
  [[ ${failed} == 0 ]]
}

main "$@"
