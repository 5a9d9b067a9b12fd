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

# Type checks the components, and every package that holds one of our files or patches
# with its tests, by upstream's own test/typecheck. Nothing is compiled, so it tells in a
# minute what a change of the base breaks. kubelet and kubectl are checked for Windows as
# well, for the files that Linux does not have. Arguments replace the lists of packages.
# Errors are printed with paths in the tree.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ROOT=$PWD
readonly ROOT
readonly TREE=${ROOT}/_output/kubernetes
# As everything else is built, so that the checker is not compiled apart.
export CGO_ENABLED=0 GOWORK='' GOFLAGS='-trimpath -buildvcs=false -gcflags=all=-dwarf=false'

packages() {
  printf './cmd/%s\n' kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl
  git ls-files --cached --others --exclude-standard -- cmd evictions pkg plugin staging test \
    hack/{cluster,docs,e2e} |
    sed -n '\#^evictions/[^/]*/#d; s#^evictions/#staging/src/k8s.io/client-go/tools/&#; \#/testdata/#d; s#/[^/]*\.go\(\.patch\)\{0,1\}$##p' | sort -u | sed 's#^staging/src/##; t; s#^#./#'
}

check() {
  "${ROOT}/_output/bin/typecheck" "$@" 2>&1 >/dev/null | sed "s#${TREE}/##"
}

mkdir -p _output/bin
go build -C "${TREE}" -o "${ROOT}/_output/bin/typecheck" ./test/typecheck
if [[ $# -gt 0 ]]; then patterns=("$@"); else mapfile -t patterns < <(packages); fi
cd "${TREE}"
status=0
check -platform "linux/$(go env GOARCH)" "${patterns[@]}" || status=1
[[ $# -gt 0 ]] || check -skip-test -platform windows/amd64 ./cmd/kubelet ./cmd/kubectl || status=1
exit "${status}"
