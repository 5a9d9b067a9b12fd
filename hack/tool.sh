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

# Builds a program that a module in hack/modules pins into _output/bin. Arguments: the module, the
# program, and flags of go build. $STRIP holds flags of the linker.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly MODULE=$1 PROGRAM=$2
readonly OUT=${PWD}/_output/bin/${PROGRAM}
shift 2

# Packages, by module or program, and how long they take to build.
declare -rA PACKAGES=(
  [etcd]='go.etcd.io/etcd/server/v3'
  [kwok]='sigs.k8s.io/kwok/cmd/kwok'
  [descheduler]='sigs.k8s.io/descheduler/cmd/descheduler'
  [karpenter]='sigs.k8s.io/karpenter/kwok'
  [cluster-api]=.
  [containerd]="github.com/containerd/containerd/v2/cmd/${PROGRAM}"
  [images]="./${PROGRAM}"
  [prometheus]="github.com/prometheus/prometheus/cmd/${PROGRAM}"
  [scale]=./scale
  [cfssl]="github.com/cloudflare/cfssl/cmd/${PROGRAM}"
  [gotestsum]='gotest.tools/gotestsum'
  [golangci-lint]=.
  [crd-ref-docs]='github.com/elastic/crd-ref-docs'
  [instrumentation]='k8s.io/kubernetes/test/instrumentation'
)
declare -rA DURATIONS=(
  [etcd]='20 seconds after the control plane' [kwok]='20 seconds after the control plane'
  [descheduler]='3 minutes' [karpenter]='4 minutes' [cluster-api]='2 minutes' [containerd]='a minute'
  [prometheus]='a minute or two' [scale]=seconds [golangci-lint]='2 minutes' [crd-ref-docs]='a minute'
)

of_module() { GOWORK=off go list -C "hack/modules/${MODULE}" -m -f "$1" "$2"; }

flags=("$@")
case ${MODULE} in
  descheduler | karpenter | cluster-api) flags+=(-ldflags "${STRIP:-}") ;;
  containerd)
    # Without storage drivers for file systems that need headers of C libraries.
    version=$(of_module '{{.Version}}' github.com/containerd/containerd/v2)
    flags+=(-tags 'no_btrfs no_zfs no_devmapper' -ldflags "${STRIP:-} -X github.com/containerd/containerd/v2/version.Version=${version}")
    ;;
  prometheus)
    # Without service discovery: its modules are most of the program, and not all can be fetched everywhere.
    flags+=(-tags remove_all_sd)
    [[ ${PROGRAM} == scale ]] || flags+=(-ldflags "${STRIP:-}")
    ;;
esac

# With the versions of the base for what it shares with it: what is compiled for the control plane
# is not compiled again. The file of sums has those that neither the base nor the modules have.
export CGO_ENABLED=0 GOWORK=off
dir=hack/modules/${MODULE}
if [[ ${MODULE} == etcd || ${MODULE} == kwok ]]; then
  GOWORK=${PWD}/_output/tools.work dir=_output
  {
    sed 's#^\t\.#\t./kubernetes#' _output/kubernetes/go.work
    printf '\nuse (\n\t../hack/modules/etcd\n\t../hack/modules/kwok\n)\n'
  } >"${GOWORK}"
  cp hack/modules/tools.work.sum "${GOWORK}.sum"
fi

echo "==> building ${PROGRAM} (${DURATIONS[${PROGRAM}]:-${DURATIONS[${MODULE}]:-seconds}}, once)"
mkdir -p _output/bin
go build -C "${dir}" "${flags[@]}" -o "${OUT}" "${PACKAGES[${PROGRAM}]:-${PACKAGES[${MODULE}]}}"
if [[ ${MODULE} == karpenter ]]; then
  sources=$(of_module '{{.Dir}}' sigs.k8s.io/karpenter)
  mkdir -p _output/karpenter
  install -m 644 "${sources}"/pkg/apis/crds/*.yaml "${sources}"/kwok/apis/crds/*.yaml _output/karpenter/
fi
# go build leaves a file alone that has the right content.
touch "${OUT}"
