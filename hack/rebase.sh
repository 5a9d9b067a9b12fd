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

# Moves the fork to another version of Kubernetes, as far as that takes no judgement, and
# ends with a report of what is left to a person. Status 0: nothing is left but to read the
# changes and to test. Run again, it goes on where it stands, so after each correction:
#
#   hack/rebase.sh v1.37.3
#
# CONTRIBUTING.md, "Move to another base", says what to do about what the report lists.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

TO=${1:-}
readonly TO LOGS=$PWD/_output/rebase TREE=$PWD/_output/kubernetes
# What generators write that compile none of our code; then the type check can tell what is
# left, and the others, which run our code, follow if it finds nothing.
readonly CODE='protobuf deepcopy swagger prerelease defaults validation conversions openapi applyconfigs clients listers informers'
readonly OUTPUT='fixtures rbac featuregates spec'

LEFT=()   # what is left to a person, a paragraph each
STARTED=${SECONDS}

tree_tool() { CGO_ENABLED=0 GOWORK=off go run -trimpath -buildvcs=false -gcflags=all=-dwarf=false ./hack/tree "$@"; }

pinned() { awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2; exit }' go.mod; }

# step NAME COMMAND...: the output goes into a log. It prints how long it took, and keeps the status.
step() {
  local name=$1 start=${SECONDS} status=0
  shift
  "$@" >"${LOGS}/${name}.log" 2>&1 || status=$?
  printf '%-12s %4ds%s\n' "${name}" $((SECONDS - start)) "$([[ ${status} == 0 ]] || echo '  failed')"
  return "${status}"
}

# left TITLE [LINES]: something that a person has to do.
left() {
  LEFT+=("$1"$'\n'"$(head -n 40 <<<"${2:-}" | sed 's/^/    /')")
}

report() {
  local minutes=$(((SECONDS - STARTED) / 60)) item
  echo
  echo "==> ${TO} after ${minutes} min $((SECONDS - STARTED - 60 * minutes)) s; logs are in _output/rebase"
  grep -h '^left out: ' "${LOGS}/pin.log" || true
  git diff --stat HEAD -- '*.patch' ':!hack/generated.patch' | tail -n 1 | sed 's/^ */patches: /'
  if [[ ${#LEFT[@]} == 0 ]]; then
    echo 'Nothing is left but to read the changes (git diff, PATCHES.md), to test, and to commit.'
    exit 0
  fi
  echo 'Left to you; then run this once more:'
  for item in "${LEFT[@]}"; do echo; echo "- ${item}"; done
  exit 1
}

# Before the first change: what is not committed, or not refreshed, would be mixed with it.
check_start() {
  [[ -z $(git status --porcelain) ]] || {
    echo "hack/rebase.sh: commit your changes first, so that those of the move can be told from them" >&2
    exit 1
  }
  make tree >/dev/null
  tree_tool verify >/dev/null || {
    echo 'hack/rebase.sh: the tree or PATCHES.md is not as the repository says: see "make verify"' >&2
    exit 1
  }
}

conflicts() { git -C "${TREE}" grep -lE '^(<<<<<<<|>>>>>>>) ' -- . ':!*.md' ':!*/testdata/*' 2>/dev/null || true; }

# Its tests compare the fork with upstream's modules of the same version.
# shellcheck disable=SC2317 # step calls it
pin_interop() {
  local version=v0${TO#v1}
  GOWORK=off go -C hack/interop get "k8s.io/api@${version}" "k8s.io/apimachinery@${version}" "k8s.io/client-go@${version}" &&
    GOWORK=off go -C hack/interop mod tidy
}

# Documents name the version of the base, some in a heading, to which links lead without dots.
# What happened in the past keeps its own.
name_version() {
  local from=$1 files
  mapfile -t files < <(git grep -lFe "${from}" -e "kubernetes-${from//./}" -- '*.md' ':!CHANGELOG.md' ':!PATCHES.md')
  [[ ${#files[@]} == 0 ]] || sed -i -E \
    -e "s/${from//./\\.}([^0-9]|$)/${TO}\\1/g" -e "s/(kubernetes-)${from//./}\\b/\\1${TO//./}/g" "${files[@]}"
}

main() {
  [[ -n ${TO} ]] || { echo 'usage: make rebase TO=v1.37.3' >&2; exit 2; }
  local from
  from=$(pinned)
  [[ ${from} == "${TO}" ]] || check_start
  mkdir -p "${LOGS}"
  if [[ ${from} != "${TO}" ]]; then
    rm -f "${LOGS}"/*.log
    step pin tree_tool pin -to "${TO}" || { left "${TO} cannot be had" "$(cat "${LOGS}/pin.log")"; report; }
    name_version "${from}"
  fi
  touch "${LOGS}/pin.log"
  step interop pin_interop || left 'hack/interop cannot have modules of this version' "$(cat "${LOGS}/interop.log")"
  step merge tree_tool merge || true
  if [[ -n $(conflicts) ]]; then
    left 'resolve the conflicts in these files of the tree, _output/kubernetes' "$(conflicts)"
    report
  fi
  if ! step refresh make refresh; then
    left 'patches that cannot be merged' "$(cat "${LOGS}/merge.log" "${LOGS}/refresh.log")"
    report
  fi
  step generate make update WHAT="${CODE}" || left 'a generator failed' "$(tail -n 30 "${LOGS}/generate.log")"
  # Another generator than before may write new files, or none where one was.
  step collect make refresh || left 'what generators wrote cannot be written back' "$(cat "${LOGS}/collect.log")"
  make tree >/dev/null
  step typecheck hack/typecheck.sh || left 'these do not fit the new base' "$(cat "${LOGS}/typecheck.log")"
  [[ ${#LEFT[@]} == 0 ]] || report
  step outputs make update WHAT="${OUTPUT}" || left 'a generator that runs our code failed' "$(tail -n 40 "${LOGS}/outputs.log")"
  step docs make docs || left 'the references cannot be written' "$(tail -n 20 "${LOGS}/docs.log")"
  step verify tree_tool verify || left 'the repository is not complete' "$(cat "${LOGS}/verify.log")"
  report
}

main
