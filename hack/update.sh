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

# Regenerates the generated code of a Kubernetes tree that was made from Go
# modules. It runs upstream's own generator scripts and supplies what a module
# zip lacks: vendor/, hack/tools, exec bits, protoc, etcd and a root Makefile.
#
# A new API version also needs its entry in hack/lib/init.sh, the doc.go,
# register.go and types.go of both versions, installation in
# pkg/apis/<group>/install, its storage version in
# pkg/kubeapiserver/default_storage_factory_builder.go, and entries in
# staging/src/k8s.io/api/roundtrip_test.go, test/integration/etcd/data.go and
# pkg/controlplane/apiserver/aggregator.go. Each new rule of a marker +k8s: needs
# a case in declarative_validation_test.go in
# test/declarative_validation/coordination/<kind>.

set -o errexit -o nounset -o pipefail

# The order matters: each part reads what the parts before it wrote.
# applyconfigs, for example, runs the schema that openapi generates, and spec
# starts a kube-apiserver, so all of the tree has to compile by then.
# Not run: register, subprojects and protobindings; they write nothing that a
# new type under k8s.io/api could change.
readonly CODEGEN_PARTS=(protobuf deepcopy swagger prerelease defaults validation
  conversions openapi applyconfigs clients listers informers)
readonly ALL_PARTS=("${CODEGEN_PARTS[@]}" fixtures rbac featuregates spec)

readonly GENERATORS=(
  k8s.io/code-generator/cmd/{go-to-protobuf,go-to-protobuf/protoc-gen-gogo}
  k8s.io/code-generator/cmd/{deepcopy,prerelease-lifecycle,defaulter}-gen
  k8s.io/code-generator/cmd/{validation,conversion,applyconfiguration}-gen
  k8s.io/code-generator/cmd/{client,lister,informer}-gen
  k8s.io/kube-openapi/cmd/openapi-gen
  k8s.io/kubernetes/cmd/genswaggertypedocs
  golang.org/x/tools/cmd/goimports
)

# Upstream runs this one by its path; the others are given to bash.
readonly PROTOBUF_SCRIPT=hack/_update-generated-protobuf-dockerized.sh

# Lines of a failed part's log that are shown; the whole log stays on disk.
readonly LOG_TAIL=40

# What cleanup has to put back: set while a part runs, and once the exec bit of
# PROTOBUF_SCRIPT was added.
UNDO_PART='' UNDO_MODE=''

usage() {
  cat <<USAGE
usage: hack/update.sh TREE [PART...]

Regenerates generated code in TREE, a git repository that holds a complete
Kubernetes tree with our files as real files (not symbolic links). A part that
fails is undone. Parts, in order, default all:
  ${ALL_PARTS[*]}

Environment:
  ETCD_BIN  directory that holds an etcd binary (part spec); without it, etcd
            is built from its Go module
  UPDATE_API_KNOWN_VIOLATIONS=true
            accept new violations of the API rules (part openapi)
USAGE
}

die() {
  echo "hack/update.sh: $*" >&2
  exit 1
}

# Prints the parts to run in the order of ALL_PARTS, whatever the order asked.
select_parts() {
  local part
  for part in "$@"; do
    [[ " ${ALL_PARTS[*]} " == *" ${part} "* ]] ||
      die "no part is called '${part}'; parts are: ${ALL_PARTS[*]}"
  done
  for part in "${ALL_PARTS[@]}"; do
    [[ $# == 0 || " $* " == *" ${part} "* ]] && echo "${part}"
  done
  return 0
}

check_tree() {
  [[ -f hack/update-codegen.sh && -d staging/src/k8s.io/api ]] ||
    die "${TREE} is no Kubernetes tree; run 'make tree' first"
  git rev-parse --quiet --verify HEAD >/dev/null ||
    die "${TREE} is no git repository with a commit; run 'make tree' first"
  [[ "$(git rev-parse --show-toplevel)" == "${TREE}" ]] ||
    die "${TREE} lies inside another git repository; it needs its own"
  # Generators remove their old output before they write: a link would turn
  # into a file and the edit would never reach the repository.
  local link
  link=$(find . -regex '\./\(\.git\|_output\|third_party\)' -prune -o -type l -print -quit)
  [[ -z "${link}" ]] ||
    die "${link} in ${TREE} is a symbolic link; make the tree with copies"
}

# True if one of the parts is run by upstream's hack/update-codegen.sh.
needs_codegen() {
  local part
  for part in "$@"; do
    [[ " ${CODEGEN_PARTS[*]} " != *" ${part} "* ]] || return 0
  done
  return 1
}

# Names every tool that the chosen parts need and that is not there.
check_tools() {
  local tools=(git go gofmt) missing=() tool
  # update-codegen.sh looks for protoc whatever it generates.
  if needs_codegen "$@"; then tools+=(protoc); fi
  if [[ " $* " == *" spec "* ]]; then tools+=(jq curl openssl ss); fi
  for tool in "${tools[@]}"; do
    command -v "${tool}" >/dev/null || missing+=("${tool}")
  done
  [[ ${#missing[@]} == 0 ]] || die "not found: ${missing[*]}. On Debian:" \
    "apt-get install git protobuf-compiler jq curl openssl iproute2"
}

set_environment() {
  # Upstream's scripts move GOPATH into the tree; the caches stay shared.
  GOCACHE=$(go env GOCACHE)
  GOMODCACHE=$(go env GOMODCACHE)
  # -trimpath lets every tree share the build cache. -buildvcs=false because
  # a stamp of the tree's git state would relink the generators at every edit.
  GOFLAGS="$(go env GOFLAGS) -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
  export GOCACHE GOMODCACHE GOFLAGS
  export FORCE_HOST_GO=y # .go-version may name a patch release we do not have
  export GOPATH="${TREE}/_output/local/go"
  unset GOWORK GOBIN
}

# Upstream insists on one release of protoc. Debian's older one writes the same
# descriptors for the proto2 files in question, so only the answer differs.
# The links have the names that upstream's installers look for.
install_protoc() {
  local real version dir
  real=$(command -v protoc)
  version=$(sed -n 's/^PROTOC_VERSION=//p' hack/lib/protoc.sh)
  dir="protoc-v${version}-$(go env GOOS)-$(go env GOARCH)"
  mkdir -p "third_party/${dir}"
  cat >"third_party/${dir}/protoc" <<WRAPPER
#!/bin/sh
if [ "\$1" = --version ]; then echo "libprotoc ${version}"; exit; fi
exec '${real}' "\$@"
WRAPPER
  chmod +x "third_party/${dir}/protoc"
  ln -fns "${dir}" third_party/protoc
}

# go-to-protobuf looks for gogo.proto under vendor/ and nowhere else.
install_gogo_proto() {
  local module=github.com/gogo/protobuf dir
  go mod download "${module}"
  dir=$(go list -m -f '{{.Dir}}' "${module}")
  install -D -m 0644 "${dir}/gogoproto/gogo.proto" \
    "vendor/${module}/gogoproto/gogo.proto"
}

prepare_codegen() {
  local start=${SECONDS}
  mkdir -p hack/tools # upstream runs "go -C hack/tools install goimports"
  install_protoc
  install_gogo_proto
  # Module zips have no exec bits.
  [[ -x "${PROTOBUF_SCRIPT}" ]] || { UNDO_MODE=y; chmod +x "${PROTOBUF_SCRIPT}"; }
  # Upstream installs with GOPROXY=off: fetch what the generators import.
  go install "${GENERATORS[@]}"
  printf '%-12s %4ds\n' prepare $((SECONDS - start))
}

# Leaves only _output behind, which the tree ignores.
cleanup() {
  [[ -z "${UNDO_PART}" ]] || restore
  [[ -z "${UNDO_MODE}" ]] || chmod -x "${TREE}/${PROTOBUF_SCRIPT}"
  rm -rf "${TREE}/vendor" "${TREE}"/third_party/{protoc,etcd}{,-v*}
  rmdir "${TREE}/hack/tools" 2>/dev/null || true
}

# A snapshot is an index of its own, so that neither the tree's history nor its
# index, which other tools read, changes. hack/tree has git ignore vendor/.
snapshot() {
  GIT_INDEX_FILE="${WORK}/index" git -c core.safecrlf=false add --all -- .
}

restore() {
  export GIT_INDEX_FILE="${WORK}/index"
  git ls-files -z --others --exclude-standard | xargs -0 -r rm -f
  git checkout-index --all --force --quiet
  unset GIT_INDEX_FILE
}

# Upstream's temporary files are named after the second of the day: two trees
# that update at once must not share a directory.
run_codegen() {
  TMPDIR="${WORK}" bash hack/update-codegen.sh "$1"
}

# Upstream only prints new violations of the API rules and carries on.
run_openapi() {
  run_codegen openapi
  # With this set, upstream has just rewritten the list of exceptions.
  [[ "${UPDATE_API_KNOWN_VIOLATIONS:-}" != true ]] || return 0
  cmp --quiet api/api-rules/violation_exceptions.list _output/api_violations.report || {
    echo "the types break API rules that are no known exception; give the" \
      "fields the tags (+listType, json names) that the diff above asks for"
    return 1
  }
}

run_fixtures() {
  bash hack/update-generated-api-compatibility-data.sh
}

# The test writes its golden files and then fails, by design; what counts is
# that it passes against them.
run_rbac() {
  local package=./plugin/pkg/auth/authorizer/rbac/bootstrappolicy
  UPDATE_BOOTSTRAP_POLICY_FIXTURE_DATA=true go test -count=1 "${package}" || true
  go test -count=1 "${package}"
}

run_featuregates() {
  bash hack/update-featuregates.sh
}

# Puts etcd where kube::etcd::install expects the release that it would download.
install_etcd() {
  local version dir
  version=$(sed -n 's/^ETCD_VERSION=.*:-\(.*\)}$/\1/p' hack/lib/etcd.sh)
  dir="third_party/etcd-v${version}-$(go env GOOS)-$(go env GOARCH)"
  mkdir -p "${dir}"
  if [[ -n "${ETCD_BIN:-}" ]]; then
    ln -fs "${ETCD_BIN}/etcd" "${dir}/etcd"
  else
    build_etcd "v${version}" "${TREE}/${dir}/etcd"
  fi
  ln -fns "$(basename "${dir}")" third_party/etcd
}

# etcd's own go.mod has replace lines, which "go install" refuses.
build_etcd() {
  local version=$1 output=$2 module="${WORK}/etcd"
  if [[ ! -x "${module}/etcd-${version}" ]]; then
    rm -rf "${module}" && mkdir -p "${module}"
    (
      cd "${module}"
      export GOWORK=off
      go mod init etcd
      go get "go.etcd.io/etcd/server/v3@${version}"
      go build -o "etcd-${version}" go.etcd.io/etcd/server/v3
    )
  fi
  ln -fs "${module}/etcd-${version}" "${output}"
}

# Prints a free port in the given range.
free_port() {
  local port
  for ((port = $1; port < $1 + 1000; port++)); do
    ss -Htln "sport = :${port}" | grep -q . || { echo "${port}"; return; }
  done
  die "no free port from $1 on"
}

# The specs are what a running kube-apiserver serves with everything enabled.
run_spec() {
  install_etcd
  # Stands in for upstream's "make -C TREE WHAT=cmd/kube-apiserver": module
  # zips lack the root Makefile, and this build shares the Go cache.
  # shellcheck disable=SC2317 # upstream's script calls it
  make() { go -C "$2" install "k8s.io/kubernetes/${3#WHAT=}"; }
  export -f make
  mkdir -p "${WORK}/spec"
  # Upstream's script builds it before it starts anything. Built now, its ports are chosen
  # shortly before they are used, and not minutes.
  make -C "${TREE}" WHAT=cmd/kube-apiserver
  local port
  port=$(free_port 28050)
  ETCD_PORT=$(free_port 23790) API_PORT=${port} TMP_DIR="${WORK}/spec" \
    bash hack/update-openapi-spec.sh
  # Discovery names the server's address; upstream's files have this port.
  sed -i "s/10\.10\.10\.10:${port}/10.10.10.10:8050/" api/discovery/api.json
}

run_part() {
  local part=$1 log="${WORK}/$1.log" start=${SECONDS} run=run_codegen status=0
  declare -F "run_${part}" >/dev/null && run="run_${part}"
  snapshot
  UNDO_PART=${part}
  # A subshell under "if" or "||" would ignore errexit.
  set +o errexit
  (set -o errexit; "${run}" "${part}") >"${log}" 2>&1
  status=$?
  set -o errexit
  if [[ ${status} != 0 ]]; then
    tail -n "${LOG_TAIL}" "${log}" >&2
    die "part ${part} failed, its changes are undone; the log is ${log}"
  fi
  UNDO_PART=
  printf '%-12s %4ds\n' "${part}" $((SECONDS - start))
}

# shellcheck disable=SC2086 # the names of parts hold no spaces
main() {
  [[ $# -gt 0 && $1 != -* ]] || { usage; exit 2; }
  TREE=$(cd "$1" && pwd -P) || die "no directory $1"
  if [[ -n "${ETCD_BIN:-}" ]]; then
    [[ -x "${ETCD_BIN}/etcd" ]] || die "ETCD_BIN: ${ETCD_BIN}/etcd is no program"
    ETCD_BIN=$(cd "${ETCD_BIN}" && pwd -P)
  fi
  shift
  local part parts
  parts=$(select_parts "$@")
  readonly TREE WORK="${TREE}/_output/update"
  cd "${TREE}"
  check_tree
  check_tools ${parts}
  set_environment
  mkdir -p "${WORK}"
  cp "$(git rev-parse --git-path index)" "${WORK}/index"
  trap cleanup EXIT
  trap 'exit 130' INT TERM
  if needs_codegen ${parts}; then prepare_codegen; fi
  for part in ${parts}; do
    run_part "${part}"
  done
}

main "$@"
