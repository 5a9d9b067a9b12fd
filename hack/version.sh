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

# Prints the linker flags that give the components their version, or with the
# argument "version", "revision" or "date" one of these alone. "release" prints the
# version, too, but fails where the sources do not tell it.
#
# The version is that of the base in go.mod with "+graceful.N". A tag of git, such as
# v1.37.2+graceful.2, says what N is; without one it is 0. Of several tags of a commit
# the highest counts, and tags of which no file could be named do not. After the tag,
# the number of commits since and the last of them follow:
# v1.37.2+graceful.2.5.g0123456789ab. What changes in these is ".dirty". VERSION in the
# environment replaces all that.
#
# Revision and date are those of the last commit that touched what goes into a binary,
# and only such commits count, so that a commit to anything else (documents, tools,
# tests) changes no binary and relinks nothing.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# In other locales, ranges such as a-z match letters of other languages.
export LC_ALL=C

what=${1:-flags}
case ${what} in
  flags | version | release | revision | date) ;;
  *) echo "usage: hack/version.sh [flags | version | release | revision | date]" >&2; exit 2 ;;
esac

inputs=(api cmd pkg plugin staging hack/generated.patch go.mod
  ':!*_test.go' ':!*_test.go.patch' ':!*/testdata/*')

base=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2; exit }' go.mod)
if [[ ! ${base} =~ ^v([0-9]+)\.([0-9]+)\. ]]; then
  echo "hack/version.sh: go.mod requires no version of k8s.io/kubernetes" >&2
  exit 1
fi
major=${BASH_REMATCH[1]}
minor=${BASH_REMATCH[2]}

# What kubeadm and kubectl read as a version of the base, and what a file and a tag of an
# image can be named. A tag has at most 128 characters.
is_version() {
  [[ $1 == "${base}"+* && ${#1} -le 128 && ${1#"${base}+"} =~ ^[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*$ ]]
}

# Programs are built from sources of which git knows nothing or too little, releases
# are not.
refuse_release() {
  [[ ${what} != release ]] || { echo "hack/version.sh: $1" >&2; exit 1; }
}

# git, without the settings of a user that change what these commands print.
plain_git() {
  git -c log.showSignature=false -c status.showUntrackedFiles=normal -c versionsort.suffix=- "$@"
}

# The tag of the version: of the nearest commit that has one, the highest.
tag_of_version() {
  local tag odd=()
  while read -r tag; do
    is_version "${tag}" || odd+=("--exclude=${tag}")
  done < <(git tag --merged HEAD --list "${base}+graceful.*")
  tag=$(git describe --tags --abbrev=0 --match "${base}+graceful.*" "${odd[@]}" 2>/dev/null) || return
  for tag in $(plain_git tag --points-at "refs/tags/${tag}^{commit}" --list "${base}+graceful.*" --sort=-version:refname); do
    is_version "${tag}" && echo "${tag}" && return
  done
}

# An unpacked archive has no history, and may lie inside somebody else's
# repository: then upstream's values for an archive are used.
commit=unknown
state=archive
date=1970-01-01T00:00:00Z
version=${base}+graceful.0
if [[ -e .git ]] && ! problem=$(git rev-parse --git-dir 2>&1); then
  refuse_release "${problem}"
  echo "hack/version.sh: git does not read this repository, so that the programs will say they are from an archive: ${problem}" >&2
elif [[ -e .git ]] && git rev-parse --quiet --verify HEAD >/dev/null &&
  commit=$(plain_git log -1 --format=%H -- "${inputs[@]}") && [[ -n ${commit} ]]; then
  date=$(TZ=UTC plain_git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd "${commit}")
  state=clean
  # It lacks tags, and its first commit looks as if it had made all files.
  if [[ $(git rev-parse --is-shallow-repository) == true ]]; then
    refuse_release 'this clone is shallow, so that it does not tell version and commit: run "git fetch --unshallow --tags"'
  fi
  if tag=$(tag_of_version); then
    version=${tag}
    commits=$(git rev-list --count "refs/tags/${tag}..HEAD" -- "${inputs[@]}")
    if [[ ${commits} != 0 ]]; then
      version+=.${commits}.g${commit:0:12}
    fi
  fi
  if [[ -n $(plain_git status --porcelain -- "${inputs[@]}") ]]; then
    state=dirty
    version+=.dirty
  fi
else
  commit=unknown
fi

if [[ -n ${VERSION:-} ]]; then
  if ! is_version "${VERSION}"; then
    echo "VERSION=${VERSION} is not of the form ${base}+graceful.1: letters, digits, \"-\" and \".\" may follow the \"+\", 128 characters in all" >&2
    exit 1
  fi
  version=${VERSION}
elif [[ ${state} == archive ]]; then
  refuse_release "these sources come without the history that tells their version: name it, such as VERSION=${base}+graceful.1"
fi

case ${what} in
  version | release) echo "${version}"; exit ;;
  revision) echo "${commit}"; exit ;;
  date) echo "${date}"; exit ;;
esac

flags=()
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=(
    "-X ${package}.gitVersion=${version}"
    "-X ${package}.gitMajor=${major}"
    "-X ${package}.gitMinor=${minor}"
    "-X ${package}.gitCommit=${commit}"
    "-X ${package}.gitTreeState=${state}"
    "-X ${package}.buildDate=${date}"
  )
done
echo "${flags[*]}"
