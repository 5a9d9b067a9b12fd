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

# Makes what a release consists of, in _output/release/<version>:
#
#   bin/linux-amd64/...                  the programs, for each of PLATFORMS
#   images/oci                           the images as a layout of the OCI, with their SBOMs
#   images/docker/linux-amd64/*.tar      the same for "docker load" and "ctr images import"
#   images/sbom                          the SBOMs (SPDX) of the images
#   sbom                                 those of the programs
#   CHANGELOG.md, LICENSE, SHA256SUMS    with the SBOMs of programs, only "all" writes these
#
# Usage: hack/release.sh programs|images|all [flag of go build...], or hack/release.sh push.
# In the environment, all optional: PLATFORMS, VERSION, SOURCE (URL of the repository),
# REGISTRY, OVERWRITE, WITHOUT_SBOMS, and STRIP, further flags of the linker.
#
# What is complete has its last name: images are in images.part before, and SHA256SUMS is
# written last, and removed first.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ROOT=$PWD
readonly ROOT
VERSION=$(hack/version.sh release)
export VERSION
readonly RELEASE=_output/release/${VERSION}
readonly PROGRAMS=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl kubectl-maintenance)

# Sets PLATFORMS to a list without commas and repetitions.
check_platforms() {
  local platform words platforms=()
  read -ra words -d '' <<<"${PLATFORMS:-linux/amd64 linux/arm64}" || true
  IFS=, read -ra words <<<"$(IFS=,; echo "${words[*]}")"
  for platform in "${words[@]}"; do
    [[ -n ${platform} && " ${platforms[*]} " != *" ${platform} "* ]] || continue
    [[ ${platform} =~ ^linux/[a-z0-9]+$ ]] || {
      echo "PLATFORMS: ${platform} is not of the form linux/arm64: the components run on Linux alone" >&2
      return 1
    }
    platforms+=("${platform}")
  done
  [[ ${#platforms[@]} != 0 ]] || { echo 'PLATFORMS names no platform, such as linux/amd64' >&2; return 1; }
  PLATFORMS=${platforms[*]}
}

# Everything that is no part of the release's name is fixed: flags and variables of the
# user, also those of "go env -w", would give other programs. Those that say where Go
# finds modules and keeps them change nothing.
build_programs() {
  local platform bin stamp name names keep=()
  stamp=$(hack/version.sh)
  names=(GOAUTH GOCACHE GOINSECURE GOMODCACHE GONOPROXY GONOSUMDB GOPATH GOPRIVATE GOPROXY GOSUMDB GOTOOLCHAIN GOVCS)
  for name in "${names[@]}"; do keep+=("${name}=$(GOWORK=off go env "${name}")"); done
  for platform in ${PLATFORMS}; do
    bin=${ROOT}/${RELEASE}/bin/${platform/\//-}
    echo "==> building the programs for ${platform} (10 minutes on two cores the first time, then a minute)"
    mkdir -p "${bin}"
    env -u GO386 -u GOAMD64 -u GOARM -u GOARM64 -u GOMIPS -u GOMIPS64 -u GOPPC64 -u GORISCV64 -u GOEXPERIMENT -u GOFIPS140 \
      GOENV=off "${keep[@]}" GOFLAGS= CGO_ENABLED=0 GOWORK= GOOS="${platform%/*}" GOARCH="${platform#*/}" \
      go build -C _output/kubernetes "$@" -ldflags "${STRIP:-} ${stamp}" -o "${bin}/" \
      "${PROGRAMS[@]/#/./cmd/}" ./staging/src/k8s.io/component-base/logs/kube-log-runner
  done
}

# Arguments: command of images, directory to write, further flags.
images() {
  local revision
  revision=$(hack/version.sh revision)
  # That of an archive is not known.
  _output/bin/images "$1" -programs "${RELEASE}/bin" -o "${RELEASE}/$2" -platforms "${PLATFORMS// /,}" \
    -version "${VERSION}" -revision "${revision/unknown/}" -created "$(hack/version.sh date)" \
    -source "${SOURCE:-}" -repository "${REGISTRY:-localhost}" "${@:3}"
}

build_images() {
  echo '==> making the images (a minute)'
  images build images
  [[ -n ${SOURCE:-} ]] || echo 'The images do not say where their sources are: SOURCE=https://... names the repository.'
}

# The section of this version, or what is not released yet.
changelog() {
  awk -v heading="## [${VERSION#v}]" '
    /^## / { wanted = index($0, heading) == 1 }
    wanted { print; found = 1 }
    END { exit !found }' CHANGELOG.md ||
    awk '/^## / { wanted = /^## \[Unreleased\]/ } wanted' CHANGELOG.md
}

finish() {
  images sbom sbom
  changelog >"${RELEASE}/CHANGELOG.md"
  cp LICENSE "${RELEASE}/"
  # Under another name first: an interrupted run leaves no list that looks complete.
  (
    cd "${RELEASE}"
    # shellcheck disable=SC2094 # find leaves out what is written.
    find . -type f ! -name SHA256SUMS.part -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum >SHA256SUMS.part
    mv SHA256SUMS.part SHA256SUMS
  )
  echo "==> ${RELEASE} has $(du -sh "${RELEASE}" | cut -f 1) in $(wc -l <"${RELEASE}/SHA256SUMS") files"
}

# Two runs at a time would mix their files.
lock() {
  mkdir -p _output/release
  exec 9>_output/release/.lock
  flock --nonblock 9 || { echo '==> waiting for another run that makes a release here'; flock 9; }
}

case ${1:-} in
  programs | images | all)
    what=$1
    shift
    check_platforms
    # Before builds of minutes.
    images check images
    lock
    rm -f "${RELEASE}/SHA256SUMS"
    if [[ ${what} == all ]]; then
      # No file of another run or platform is in a release.
      rm -rf "${RELEASE}"
    fi
    build_programs "$@"
    [[ ${what} == programs ]] || build_images
    [[ ${what} != all ]] || finish
    ;;
  push)
    [[ -n ${REGISTRY:-} ]] || { echo 'make push: REGISTRY is missing: make push REGISTRY=registry.example.com/kubernetes' >&2; exit 1; }
    [[ -e ${RELEASE}/images/oci ]] || { echo "make push: there are no images of ${VERSION}: run make images" >&2; exit 1; }
    _output/bin/images push -layout "${RELEASE}/images/oci" -registry "${REGISTRY}" ${OVERWRITE:+-overwrite} ${WITHOUT_SBOMS:+-without-sboms}
    ;;
  *)
    echo 'usage: hack/release.sh programs|images|all|push [flag of go build...]' >&2
    exit 2
    ;;
esac
