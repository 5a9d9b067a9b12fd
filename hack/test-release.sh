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

# Makes a release of the last commit here, and in a clone elsewhere with another
# environment, and compares them: programs, images and SBOMs must be the same. The clone
# compiles nothing again whose sources and flags are the same.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[[ -z $(git status --porcelain) ]] || { echo 'make test-release: commit your changes first: a clone would not have them' >&2; exit 1; }
ARCHITECTURE=$(GOWORK=off go env GOARCH)
base=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2; exit }' go.mod)
version=${base}+graceful.99.test
args=(release "VERSION=${version}" "PLATFORMS=linux/${ARCHITECTURE}" SOURCE=https://git.example.com/kubernetes)
release=_output/release/${version}
elsewhere=$(mktemp -d)
trap 'rm -rf "${elsewhere}" "${release}"' EXIT

make "${args[@]}"
git clone --quiet . "${elsewhere}/clone"
echo GOAMD64=v3 >"${elsewhere}/goenv"
(umask 077 && cd "${elsewhere}/clone" && GOENV=${elsewhere}/goenv GOFLAGS=-tags=other TZ=Asia/Tokyo LC_ALL=C VERSION=ignored make "${args[@]}")
diff "${release}/SHA256SUMS" "${elsewhere}/clone/${release}/SHA256SUMS" || {
  echo 'test-release: FAILED, these files differ' >&2
  exit 1
}
(cd "${release}" && sha256sum --check --quiet SHA256SUMS)
for program in "${release}/bin/linux-${ARCHITECTURE}"/kube{-apiserver,-controller-manager,-scheduler,-proxy,let}; do
  [[ $("${program}" --version) == "Kubernetes ${version}" ]] || { echo "test-release: FAILED: ${program} is not ${version}" >&2; exit 1; }
done
"${release}/bin/linux-${ARCHITECTURE}/kubectl" version --client | grep -Fx "Client Version: ${version}"
echo "==> ok: $(wc -l <"${release}/SHA256SUMS") files are the same in both releases"
