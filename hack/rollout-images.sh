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
base=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2; exit }' go.mod)

# Arguments: release, version, directory of its programs.
make_images() {
  local dir=_output/rollout/$1 program
  mkdir -p "${dir}/bin/linux-${ARCHITECTURE}"
  # The base's is the same program.
  for program in "${PROGRAMS[@]}" kube-log-runner; do
    [[ ${program} == kube-log-runner ]] && set -- "$1" "$2" _output/bin
    ln -sf "${PWD}/$3/${program}" "${dir}/bin/linux-${ARCHITECTURE}/"
  done
  echo "${2//+/_}" >"${dir}/tag"
  _output/bin/images build -programs "${dir}/bin" -o "${dir}/images" -repository "localhost/$1" -version "$2" \
    -created "$(hack/version.sh date)" -platforms "linux/${ARCHITECTURE}" -only "$(IFS=,; echo "${PROGRAMS[*]}")"
}

make_images base "${base}" _output/base/bin
make_images fork "$(hack/version.sh version)" _output/bin
