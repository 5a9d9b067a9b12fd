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
# changes and to test. Run again, it goes on where it stands, also if it was killed, so after
# each correction:
#
#   hack/rebase.sh v1.37.3
#
# What to do about what the report lists:
#
#   a module is missing           Wait until the release is complete, or set GOPROXY.
#   conflicts                     "git -C _output/kubernetes diff base -- PATH". Keep upstream's side, and put our
#                                 line where it belongs, or drop it where upstream has it.
#   a patch cannot be merged      Upstream moved or removed its file: find the code ("git -C _output/kubernetes log"
#                                 has both bases), edit there, "make refresh".
#   a generator fails             Often a tag has changed: compare the doc.go of a neighbour. The log is in
#                                 _output/kubernetes/_output/update.
#   types that do not fit         See how upstream's callers have changed, and add new methods to fakes of tests.
#   roles and gates               Correct the test of roles, which lists what our gates add and counts upstream's
#                                 rules.
#   a port was taken              Run it again.
#
# A minor release takes more:
#
#   1. Read upstream's changelog. Search the new base for the names of our gates, kinds, fields and controllers, for
#      gates that are on by default now, and for new values of fields that our code compares.
#   2. Version our gates, and "+k8s:prerelease-lifecycle-gen:introduced" of our API types, with the release in which
#      they first appear on this base.
#   3. Update etcd (hack/lib/etcd.sh in the tree, hack/modules/etcd), kwok, descheduler, Cluster API, Karpenter, the
#      linter, and tools.work.sum (CONTRIBUTING.md, "A cluster to try things").
#   4. Check hack/e2e/selection.yaml, which selects upstream's tests by name.
#   5. UPDATE_GOLDEN=true for outputs, and read the differences.
#   6. make test, make test-all, make pictures; correct the changelog, docs/releases.md and docs/upgrade.md.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

TO=${1:-}
readonly TO LOGS=$PWD/_output/rebase TREE=$PWD/_output/kubernetes
# The version that the fork comes from and TO, and whether the documents name TO: the next run
# needs to know both.
readonly MOVE=${LOGS}/move NAMED=${LOGS}/named
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

# left TITLE LOG...: something that a person has to do. It shows the first lines of the logs.
left() {
  local title=$1 lines shown=40 total
  shift
  lines=$(cd "${LOGS}" && cat -- "$@")
  total=$(wc -l <<<"${lines}")
  LEFT+=("${title}"$'\n'"$(head -n "${shown}" <<<"${lines}" | sed 's/^/    /')")
  ((total <= shown)) || LEFT[-1]+=$'\n'"    and $((total - shown)) more lines, see ${*/#/_output/rebase/}"
}

# left_end TITLE LOG: the same with the last lines, where programs say why they failed.
left_end() {
  local shown=40 total
  total=$(wc -l <"${LOGS}/$2")
  LEFT+=("$1")
  ((total <= shown)) || LEFT[-1]+=$'\n'"    $((total - shown)) lines before these are in _output/rebase/$2"
  LEFT[-1]+=$'\n'"$(tail -n "${shown}" "${LOGS}/$2" | sed 's/^/    /')"
}

report() {
  local minutes=$(((SECONDS - STARTED) / 60)) item
  echo
  echo "==> ${TO} after ${minutes} min $((SECONDS - STARTED - 60 * minutes)) s; logs are in _output/rebase"
  grep -h '^left out: ' "${LOGS}/pin.log" || true
  git diff --stat HEAD -- '*.patch' ':!hack/generated.patch' | tail -n 1 | sed 's/^ */patches: /'
  if [[ -n $(named_lines) ]]; then
    echo 'These lines of documents name the new version. Read them: is each of them true of it?'
    named_lines | sed 's/^/    /'
  fi
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

# Documents name the version of the base and of its modules, some in a heading, to which links
# lead without dots. What speaks of the past keeps its version: all of the changelog but the
# line of its section Unreleased that says on which base it is, and what is written without
# the v, such as "measured on Kubernetes 1.36.3".
name_version() {
  local from=$1 modules=v0${1#v1} files
  local anchor="s/(#[a-z0-9-]*kubernetes-)${from//./}\\b/\\1${TO//./}/g"
  mapfile -t files < <(git grep -lFe "${from}" -e "${modules}" -e "kubernetes-${from//./}" -- '*.md' ':!CHANGELOG.md' ':!PATCHES.md')
  [[ ${#files[@]} == 0 ]] || sed -i -E -e "${anchor}" -e "s/\\b${from//./\\.}([^0-9]|$)/${TO}\\1/g" \
    -e "s/\\b${modules//./\\.}([^0-9]|$)/v0${TO#v1}\\1/g" "${files[@]}"
  sed -i -E -e "${anchor}" \
    -e "/^## \\[Unreleased\\]/,/^## \\[[0-9]/ s/^(On Kubernetes )${from//./\\.}\\./\\1${TO}./" CHANGELOG.md
}

# The lines of documents that name the new version and did not before, as FILE:LINE: TEXT.
named_lines() {
  git -c diff.noprefix=false -c diff.mnemonicPrefix=false diff --no-ext-diff --no-color -U0 HEAD -- '*.md' ':!PATCHES.md' |
    awk -v version="${TO}" -v modules="v0${TO#v1}" -v anchor="kubernetes-${TO//./}" '
      /^\+\+\+ b\// { file = substr($0, 7); next }
      /^@@ / { split($3, at, ","); line = substr(at[1], 2); next }
      /^\+/ {
        if (index($0, version) || index($0, modules) || index($0, anchor)) print file ":" line ": " substr($0, 2)
        line++
      }
    '
}

# What the generator of API specs needs, besides a tree that compiles, is a port for etcd.
left_outputs() {
  local port
  port=$(sed -n 's/^unable to start etcd as port \([0-9]*\) is in use.*/\1/p' "${LOGS}/outputs.log" | head -n 1)
  if [[ -z ${port} ]]; then
    left_end 'a generator that runs our code failed' outputs.log
    return
  fi
  ss -Htlnp "sport = :${port}" >"${LOGS}/port.log" 2>&1 || true
  [[ -s ${LOGS}/port.log ]] || echo "nothing listens on port ${port} any more" >"${LOGS}/port.log"
  left "port ${port} of loopback, where the generator of API specs starts etcd, was taken: end what listens there, such as another \"make update\"" port.log
}

main() {
  [[ -n ${TO} ]] || { echo 'usage: make rebase TO=v1.37.3' >&2; exit 2; }
  local now from='' to=''
  now=$(pinned)
  mkdir -p "${LOGS}"
  [[ ! -e ${MOVE} ]] || read -r from to <"${MOVE}"
  if [[ ${now} != "${TO}" ]]; then
    # A run that was killed in pin may have written these two, which come before go.mod.
    [[ ${to} != "${TO}" ]] || git checkout --quiet -- go.work go.sum
    check_start
    rm -f "${LOGS}"/*
    from=${now} to=${TO}
    echo "${from} ${to}" >"${MOVE}"
    step pin tree_tool pin -to "${TO}" || { left "${TO} cannot be had" pin.log; report; }
  fi
  if [[ ${to} == "${TO}" && ! -e ${NAMED} ]]; then
    name_version "${from}"
    touch "${NAMED}"
  fi
  touch "${LOGS}/pin.log"
  step interop pin_interop || left 'hack/interop cannot have modules of this version' interop.log
  step merge tree_tool merge || true
  conflicts >"${LOGS}/conflicts.log"
  if [[ -s ${LOGS}/conflicts.log ]]; then
    left 'resolve the conflicts in these files of the tree, _output/kubernetes' conflicts.log
    report
  fi
  if ! step refresh make refresh; then
    left 'patches that cannot be merged' merge.log refresh.log
    report
  fi
  step generate make update WHAT="${CODE}" || left_end 'a generator failed' generate.log
  # Another generator than before may write new files, or none where one was.
  step collect make refresh || left 'what generators wrote cannot be written back' collect.log
  make tree >/dev/null
  step typecheck hack/typecheck.sh || left 'these do not fit the new base' typecheck.log
  [[ ${#LEFT[@]} == 0 ]] || report
  step outputs make update WHAT="${OUTPUT}" || left_outputs
  step docs make docs || left_end 'the references cannot be written' docs.log
  step verify tree_tool verify || left 'the repository is not complete' verify.log
  report
}

main
