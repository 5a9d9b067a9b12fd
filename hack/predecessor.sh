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

# Builds programs of this fork's predecessor into _output/predecessor/bin: of the last
# commit in the history of HEAD whose go.mod requires another minor version of
# k8s.io/kubernetes than go.mod does now. Clusters are upgraded from it. The sources are a
# clone that shares the objects of this repository, and are built with their own Makefile
# and the caches of Go that everything shares. With the argument "commit", it only prints
# the commit. $PROGRAMS holds the programs to build, a control plane and kubectl by default.
#
# Programs that are there, of that commit, are not built.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

what=${1:-build}
case ${what} in
  build | commit) ;;
  *) echo "usage: hack/predecessor.sh [build | commit]" >&2; exit 2 ;;
esac

read -ra programs <<<"${PROGRAMS:-kube-apiserver kube-controller-manager kube-scheduler kubectl}"
# _output may be a link: git names directories without links, and is asked below.
DIR=$(realpath -m _output/predecessor)
readonly DIR
readonly SRC=${DIR}/src BIN=${DIR}/bin

fail() {
  echo "hack/predecessor.sh: $1" >&2
  exit 1
}

# The minor version of the base that a go.mod requires, such as v1.37.
minor() {
  awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v[0-9]+\.[0-9]+\./ { split($2, v, "."); print v[1] "." v[2]; exit }'
}

minor_of() { git show "$1:go.mod" 2>/dev/null | minor; }

now=$(minor <go.mod)
[[ -n ${now} ]] || fail 'go.mod requires no version of k8s.io/kubernetes'
if [[ ! -e .git ]] || ! git rev-parse --quiet --verify HEAD >/dev/null; then
  fail "the predecessor of ${now} is built from the history of git, and here is none: clone the repository"
fi

# The predecessor is HEAD, where the new base is not committed yet, or a parent of a commit
# that changes go.mod.
predecessor() {
  local commit found
  {
    echo HEAD
    git log --topo-order --format='%P' HEAD -- go.mod | tr ' ' '\n'
  } | while read -r commit; do
    [[ -n ${commit} ]] || continue
    found=$(minor_of "${commit}") || continue
    if [[ -n ${found} && ${found} != "${now}" ]]; then
      git rev-parse "${commit}^{commit}"
      # What else comes is read, so that git does not write to nobody.
      cat >/dev/null
      return
    fi
  done
}

commit=$(predecessor)
if [[ -z ${commit} ]]; then
  if [[ $(git rev-parse --is-shallow-repository) == true ]]; then
    fail "no commit with a base other than ${now} is here, because this clone is shallow: run \"git fetch --unshallow --tags\""
  fi
  fail "no commit of the history has a base other than ${now}: there is no predecessor to upgrade from"
fi
if [[ ${what} == commit ]]; then
  echo "${commit}"
  exit
fi

# Where another run builds it, this one waits. The kernel drops the lock of a killed run.
mkdir -p "${DIR}"
exec 9>"${DIR}/.lock"
flock 9

if [[ $(cat "${DIR}/commit" 2>/dev/null) != "${commit}" ]]; then
  rm -rf "${DIR}/commit" "${BIN}"
fi
missing=()
for program in "${programs[@]}"; do
  [[ -x ${BIN}/${program} ]] || missing+=("${program}")
done
if [[ ${#missing[@]} == 0 ]]; then
  exit
fi
echo "==> building ${missing[*]} of the predecessor $(minor_of "${commit}"), commit ${commit:0:12}, into _output/predecessor/bin (up to 10 minutes on two cores, once)"

# What a killed run has left is used again if it is of the same commit.
if [[ $(git -C "${SRC}" rev-parse --show-toplevel HEAD 2>/dev/null) != "${SRC}"$'\n'"${commit}" ]]; then
  rm -rf "${SRC}"
  git clone --quiet --shared --no-checkout . "${SRC}"
fi
# It keeps the number of commits since the last tag, which the programs say, and no branch.
git -C "${SRC}" checkout --quiet --force --detach "${commit}"

# Only the caches are shared: variables of this make, such as VERSION, are not the
# predecessor's. What it calls its control plane are the programs that it builds.
env -u MAKEFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u MFLAGS -u VERSION -u PROGRAMS \
  make -C "${SRC}" --no-print-directory control-plane CONTROL_PLANE="${missing[*]}" 9>&-

mkdir -p "${BIN}"
for program in "${missing[@]}"; do
  ln -f "${SRC}/_output/bin/${program}" "${BIN}/${program}"
done
echo "${commit}" >"${DIR}/commit"
