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

# Checks that the tools named as arguments are there: go, git, cgo, real-nodes,
# local-up, dbus.
# Says what is missing and how to get it, before a long build fails half way.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing() {
  echo "missing: $1" >&2
  echo "    $2" >&2
  failed=1
}

# Where the go command may fetch toolchains, it does so here for the version in
# go.mod; GOTOOLCHAIN=local forbids it, and then the error is the answer.
check_go() {
  local wanted
  wanted=$(awk '$1 == "go" { print $2; exit }' go.mod)
  if ! command -v go >/dev/null; then
    missing "go ${wanted} or newer" "install it from https://go.dev/dl and add its bin directory to PATH"
  elif ! GOWORK=off go env GOVERSION >/dev/null 2>&1; then
    missing "go ${wanted} or newer" "$(GOWORK=off go env GOVERSION 2>&1 | tail -n 1); install it from https://go.dev/dl"
  fi
}

# What nodes with a real kubelet take from the machine.
check_real_nodes() {
  local packages=()
  # Where nodes look for programs; su does not set it.
  PATH="${PATH}:/usr/local/sbin:/usr/sbin:/sbin"
  [[ $(id -u) == 0 ]] || missing root "namespaces, mounts and cgroups need it: run make as root, or with sudo -E env PATH=\"\$PATH\" make ..."
  command -v runc >/dev/null || packages+=(runc)
  command -v iptables >/dev/null || packages+=(iptables)
  [[ -x /usr/lib/cni/ptp || -x /usr/libexec/cni/ptp || -x /opt/cni/bin/ptp ]] || packages+=(containernetworking-plugins)
  # Images have no C library, so that of another package does not do.
  if ! command -v busybox >/dev/null || ldd "$(command -v busybox)" >/dev/null 2>&1; then
    packages+=(busybox-static)
  fi
  [[ ${#packages[@]} == 0 ]] || missing "${packages[*]}" "Debian, Ubuntu: apt-get install ${packages[*]}"
}

# What hack/local-up-cluster.sh runs beside programs that every system has.
check_local_up() {
  local packages=()
  PATH="${PATH}:/usr/local/sbin:/usr/sbin:/sbin"
  command -v curl >/dev/null || packages+=(curl)
  command -v openssl >/dev/null || packages+=(openssl)
  command -v ss >/dev/null || command -v netstat >/dev/null || packages+=(iproute2)
  { command -v ps && command -v pgrep; } >/dev/null || packages+=(procps)
  [[ ${#packages[@]} == 0 ]] || missing "${packages[*]}" "Debian, Ubuntu: apt-get install ${packages[*]}"
}

failed=0
for tool in "$@"; do
  case ${tool} in
    go) check_go ;;
    cgo)
      # What the race detector is linked with.
      echo 'int main(void) { return 0; }' | "${CC:-gcc}" -x c -include stdlib.h -o /dev/null - 2>/dev/null ||
        missing 'a C compiler, with the headers of the C library' 'Debian, Ubuntu: apt-get install gcc libc6-dev; Fedora: dnf install gcc glibc-devel'
      ;;
    git) command -v git >/dev/null || missing git "Debian, Ubuntu: apt-get install git; Fedora: dnf install git" ;;
    real-nodes) check_real_nodes ;;
    local-up) check_local_up ;;
    # For nodes that shut down, see test/utils/realcluster/shutdown.go.
    dbus) command -v dbus-daemon >/dev/null || missing dbus "Debian, Ubuntu: apt-get install dbus" ;;
    *) echo "hack/prerequisites.sh: unknown tool ${tool}" >&2; exit 2 ;;
  esac
done
exit "${failed}"
