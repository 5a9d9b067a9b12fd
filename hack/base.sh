#!/usr/bin/env bash

# Copyright 2026 The Kubernetes Authors.
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

# Builds programs of the pristine base, without a patch or a file of ours, into
# _output/base/bin: what the fork is compared with. What else a local cluster needs is
# not the base's, and linked there from _output/bin. The sources are the tag "base"
# of the tree's repository, so nothing is fetched a second time. Arguments: flags
# of go build. $STRIP holds further flags of the linker, $PROGRAMS the programs to
# build, a control plane and kubectl by default.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -ra programs <<<"${PROGRAMS:-kube-apiserver kube-controller-manager kube-scheduler kubectl}"
echo "==> building ${programs[*]} of the pristine base into _output/base/bin (up to 12 minutes on two cores the first time, then seconds)"
readonly TOOLS=(etcd kwok kwok-stages.yaml cluster containerd containerd-shim-runc-v2 ctr)
BASE=${PWD}/_output/base
readonly BASE
readonly SRC=${BASE}/src BIN=${BASE}/bin

# Where another run works on the base, this one waits for it. The kernel drops the
# lock of a killed run.
mkdir -p "${SRC}" "${BIN}"
exec 9>"${BASE}/.lock"
flock 9

# git on the tree's repository, with an index and a work tree of our own, and, as in
# hack/tree, with no configuration but that of the repository.
base_git() {
  (
    cd "${SRC}"
    env -u GIT_OBJECT_DIRECTORY -u GIT_COMMON_DIR GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 \
      GIT_DIR="${BASE}/../kubernetes/.git" GIT_WORK_TREE="${SRC}" GIT_INDEX_FILE="${BASE}/index" git "$@"
  )
}

# Writes what is missing or differs, and removes what does not belong there, so it
# also mends what a killed run has left.
rm -f "${BASE}/index.lock"
base_git read-tree --reset -u refs/tags/base
base_git clean -ffdxq

version=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2; exit }' go.mod)
if [[ ! ${version} =~ ^v([0-9]+)\.([0-9]+)\. ]]; then
  echo "hack/base.sh: go.mod requires no version of k8s.io/kubernetes" >&2
  exit 1
fi
stamp=()
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  stamp+=(
    "-X ${package}.gitVersion=${version}"
    "-X ${package}.gitMajor=${BASH_REMATCH[1]}"
    "-X ${package}.gitMinor=${BASH_REMATCH[2]}"
    "-X ${package}.gitCommit=unknown"
    "-X ${package}.gitTreeState=archive"
    "-X ${package}.buildDate=1970-01-01T00:00:00Z"
  )
done

# An empty GOWORK selects the go.work of the base.
CGO_ENABLED=0 GOWORK='' go build -C "${SRC}" "$@" -ldflags "${STRIP:-} ${stamp[*]}" -o "${BIN}/" "${programs[@]/#/./cmd/}"
ln -sf "${TOOLS[@]/#/../../bin/}" "${BIN}/"
