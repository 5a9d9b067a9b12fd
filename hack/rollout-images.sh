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

# Makes images of the control plane, of the fork and of the pristine base, into
# _output/rollout: what make test-rollout replaces by each other. The programs are those of
# _output/bin and _output/base/bin.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PROGRAMS=(kube-apiserver kube-controller-manager kube-scheduler)
ARCHITECTURE=$(GOWORK=off go env GOARCH)
readonly ARCHITECTURE

# Arguments: release, directory of its programs.
make_images() {
  local dir=_output/rollout/$1 version program
  # What they say of themselves: the sources may have changed since they were built.
  version=$("$2/kube-apiserver" --version)
  version=${version#Kubernetes }
  mkdir -p "${dir}/bin/linux-${ARCHITECTURE}"
  # The base's is the same program.
  for program in "${PROGRAMS[@]}" kube-log-runner; do
    [[ ${program} == kube-log-runner ]] && set -- "$1" _output/bin
    ln -sf "${PWD}/$2/${program}" "${dir}/bin/linux-${ARCHITECTURE}/"
  done
  echo "${version//+/_}" >"${dir}/tag"
  _output/bin/images build -programs "${dir}/bin" -o "${dir}/images" -repository "localhost/$1" -version "${version}" \
    -created "$(hack/version.sh date)" -platforms "linux/${ARCHITECTURE}" -only "$(IFS=,; echo "${PROGRAMS[*]}")"
}

make_images base _output/base/bin
make_images fork _output/bin
