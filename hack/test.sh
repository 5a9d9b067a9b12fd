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

# Runs tests in the tree and ends with one line of totals. Which packages those
# are follows from the repository: where one of our files or patches stands.

set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ROOT=$PWD
readonly ROOT
readonly TREE=${ROOT}/_output/kubernetes RESULTS=${ROOT}/_output/test
# Without cgo, which the components are built without too, so that packages are
# compiled once. Vet runs in upstream's CI; compiling it in costs minutes here.
export CGO_ENABLED=0
# Integration tests, and those of storage, start the etcd that they find.
export PATH=${ROOT}/_output/bin:${PATH}
readonly TEST_FLAGS=(-trimpath -buildvcs=false -gcflags=all=-dwarf=false -vet=off)

usage() {
  cat <<USAGE
usage: hack/test.sh PHASE [PACKAGE...] ...

Phases:
  tools        the tools of this repository; that upstream's types read what this fork stores
  unit         packages that hold one of our files or patches, our gates off
  unit-gates   the same, our gates on, for packages that have feature gates
  integration  our integration tests, and upstream's that a patch touches; upstream's of evictions, our gates on
  integration-upstream, integration-upstream-gates
               upstream's integration tests of what the patches change, our gates off or on
  e2e          the demos and the tutorial, on clusters of their own
  histories    three histories with fixed seeds, at the same time
  all          all of these, in this order
  race         tests of ours under the race detector, unit and integration; no part of all
  simulation   the simulations alone, with SEEDS random seeds each; no part of all

PACKAGE, such as ./pkg/controller/evictionrequest/..., replaces the list.
USAGE
}

# The directories with a file of ours or a patch that matches, as packages.
packages() {
  git ls-files --cached --others --exclude-standard -- "$@" | sed -n 's#/[^/]*\.go\(\.patch\)\{0,1\}$##p' | sort -u |
    while read -r dir; do
      # The library is a module of its own here, and a package of client-go in the tree.
      [[ ${dir} != evictions ]] || dir=staging/src/k8s.io/client-go/tools/evictions
      compgen -G "${TREE}/${dir}/*_test.go" >/dev/null || continue
      case ${dir} in
        staging/src/*) echo "${dir#staging/src/}" ;;
        *) echo "k8s.io/kubernetes/${dir}" ;;
      esac
    done
}

# The packages whose tests have the feature gates of Kubernetes. For all others, such as the staging
# modules, a run with our gates on would be the same again.
gated() {
  GOWORK='' go list -C "${TREE}" -test -f '{{.ImportPath}} {{join .Deps " "}} ' "$@" |
    sed -n 's#^\([^ ]*\)\.test .*k8s\.io/kubernetes/pkg/features .*#\1#p'
}

# The feature gates that our patches name.
gates() {
  git ls-files '*.patch' | xargs sed -n 's/^Gate: //p' | tr ',' '\n' | tr -d ' ' | grep -v '^none$' | sort -u | paste -sd,
}

# Tests that compare with what a server has whose gates are at their defaults: our
# own test beside them says what the gates add.
readonly DEFAULT_GATES_TESTS='^(TestBootstrapClusterRoles|TestBootstrapControllerRoles|TestBootstrapControllerRoleBindings)$'

# What phases of unit tests run.
readonly UNIT_DIRS='cmd evictions hack/docs hack/e2e pkg plugin staging test/declarative_validation test/performance test/utils'

# Upstream's integration tests of the controllers and of the API that the patches change.
readonly UPSTREAM_INTEGRATION=(daemonset deployment disruption evictions garbagecollector job node pods podgc replicaset replicationcontroller statefulset)

# gotestsum prints a line for each package and every failure; what it counts is
# added to the totals. Arguments: name, directory, flags and packages of go test.
run() {
  local name=$1 dir=$2
  shift 2
  echo "==> ${name}"
  (
    cd "${dir}"
    TOTALS_FILE=${RESULTS}/${name}.totals "${ROOT}/_output/bin/gotestsum" \
      --format pkgname --format-hide-empty-pkg --hide-summary skipped \
      --jsonfile "${RESULTS}/${name}.json" \
      --post-run-command "'${ROOT}/hack/test.sh' record" \
      -- "${TEST_FLAGS[@]}" "$@"
  ) || FAILED+=("${name}")
}
FAILED=()

# Called by gotestsum: writes what it counted.
record() {
  echo "${TESTS_TOTAL} ${TESTS_FAILED} ${TESTS_SKIPPED} ${TESTS_ERRORS}" >"${TOTALS_FILE}"
}

# The packages to test: those given, or all below the directories of the phase.
select_packages() {
  local where=$1
  shift
  if [[ $# -gt 0 ]]; then
    PACKAGES=("$@")
  else
    # shellcheck disable=SC2086 # a list of directories
    mapfile -t PACKAGES < <(packages ${where})
  fi
}

run_phase() {
  local phase=$1
  shift
  case ${phase} in
    tools)
      GOWORK=off run tools "${ROOT}" ./hack/tree
      # A module of its own, with the API types of upstream.
      GOWORK=off run interop "${ROOT}/hack/interop" ./...
      # The library with upstream's client, as everybody uses it.
      GOWORK=off run evictions "${ROOT}/evictions" ./...
      # Never from the cache: it builds the program of a guide in an empty module.
      GOWORK=off run sample "${ROOT}/evictions/sample" -count 1 ./...
      # Never from the cache: the key does not have the files outside the module, which it tests.
      GOWORK=off run monitoring "${ROOT}/hack/modules/prometheus" -tags remove_all_sd -count 1 ./...
      # Never from the cache: it tests scripts, which are outside the module.
      GOWORK=off run images "${ROOT}/hack/modules/images" -count 1 ./...
      ;;
    unit)
      select_packages "${UNIT_DIRS}" "$@"
      run unit "${TREE}" "${PACKAGES[@]}"
      ;;
    unit-gates)
      select_packages "${UNIT_DIRS}" "$@"
      mapfile -t PACKAGES < <(gated "${PACKAGES[@]}")
      [[ ${#PACKAGES[@]} -gt 0 ]] || return 0
      run unit-gates "${TREE}" -skip "${DEFAULT_GATES_TESTS}" \
        -ldflags "-X k8s.io/kubernetes/pkg/features.enabledByDefault=$(gates)" "${PACKAGES[@]}"
      ;;
    integration)
      select_packages test/integration "$@"
      locate_sources
      # One package at a time: each starts API servers, and they share two cores. Never
      # from the cache: what they start, such as etcd, is no part of the cached key.
      run integration "${TREE}" -count 1 -p 1 -timeout 20m "${PACKAGES[@]}"
      # Upstream's tests of what one of our gates replaces.
      [[ $# -gt 0 ]] || run integration-gates "${TREE}" -count 1 -timeout 20m \
        -ldflags "-X k8s.io/kubernetes/pkg/features.enabledByDefault=$(gates)" ./test/integration/evictions
      ;;
    integration-upstream | integration-upstream-gates)
      PACKAGES=("${UPSTREAM_INTEGRATION[@]/#/./test/integration/}")
      locate_sources
      local flags=()
      [[ ${phase} == integration-upstream ]] || flags=(-ldflags "-X k8s.io/kubernetes/pkg/features.enabledByDefault=$(gates)")
      run "${phase}" "${TREE}" -count 1 -p 1 -timeout 40m "${flags[@]}" "${PACKAGES[@]}"
      ;;
    e2e)
      # Their clusters have names of their own, so that one that is in use stays.
      SYSTEM_TEST_OUTPUT=${ROOT}/_output run e2e "${TREE}" -count 1 -timeout 20m -run '^(TestDemo.*|TestTutorial.*)$' ./test/system
      ;;
    histories)
      HISTORY_SEED=1 HISTORY_COUNT=3 SYSTEM_TEST_OUTPUT=${ROOT}/_output run histories "${TREE}" -count 1 -timeout 20m -parallel 3 -run '^TestHistories$' ./test/system
      ;;
    race) run_race "$@" ;;
  esac
}

# Upstream's test server looks for its certificates beside its source, whose path
# -trimpath has taken out; where it is, Bazel's variables tell.
locate_sources() {
  mkdir -p _output/src/k8s.io
  ln -sfn ../../kubernetes _output/src/k8s.io/kubernetes
  export TEST_SRCDIR=${ROOT}/_output/src TEST_WORKSPACE=.
}

# The race detector needs cgo, and every package a second time. Packages that only a
# patch touches are left to upstream, which runs it over them. Simulations run their
# fixed seeds only: what they exercise is one goroutine.
run_race() {
  echo '==> testing for races (about an hour on two cores the first time)'
  hack/prerequisites.sh cgo
  locate_sources
  export CGO_ENABLED=1
  if [[ $# -gt 0 ]]; then
    PACKAGES=("$@")
  else
    local dir dirs=()
    for dir in ${UNIT_DIRS} test/integration; do dirs+=("${dir}/*_test.go"); done
    mapfile -t PACKAGES < <(packages "${dirs[@]}")
  fi
  # With -p 1, as for integration tests, packages would be compiled one after the other as well.
  (cd "${TREE}" && go list -race "${TEST_FLAGS[@]:0:3}" -export -deps -test "${PACKAGES[@]}" >/dev/null)
  SIMULATION_SEEDS=0 run race "${TREE}" -race -count 1 -p 1 -timeout 60m "${PACKAGES[@]}"
}

# The simulations, a package at a time: each uses all processors, and the first that fails
# ends the run. What they print says which seeds they ran and how long it took; what the
# code under test logs is in a file.
run_simulations() {
  export SIMULATION_SEEDS=${SIMULATION_SEEDS:-${SEEDS:-10000}}
  [[ $# -gt 0 ]] || mapfile -t PACKAGES < <(simulated)
  local package name
  for package in "${@:-${PACKAGES[@]}}"; do
    name=$(basename "${package}")
    echo "==> simulations of ${package}"
    go test -C "${TREE}" "${TEST_FLAGS[@]}" -c -o "${RESULTS}/${name}.test" "${package}"
    # No deadline: the number of seeds decides how long it takes.
    "${RESULTS}/${name}.test" -test.run Simulation 2>"${RESULTS}/${name}.log" || {
      echo "FAILED: ${package} (logs are in ${RESULTS#"${ROOT}"/}/${name}.log)"
      return 1
    }
  done
}

# The packages whose tests run simulations.
simulated() {
  git ls-files --cached --others --exclude-standard -- '*_test.go' |
    xargs grep -l '"k8s.io/kubernetes/test/utils/simulation"$' | sed 's#/[^/]*$##; s#^#k8s.io/kubernetes/#' | sort -u
}

totals() {
  local total=0 failed=0 skipped=0 errors=0 t f s e
  for file in "${RESULTS}"/*.totals; do
    read -r t f s e <"${file}"
    ((total += t, failed += f, skipped += s, errors += e)) || true
  done
  # A package that does not build counts as one failure.
  ((failed += errors)) || true
  if [[ ${#FAILED[@]} -gt 0 ]]; then
    echo "FAILED: ${FAILED[*]} (each test's output, and the logs of components, are in ${RESULTS#"${ROOT}"/})"
    [[ ${failed} -gt 0 ]] || failed=1
  fi
  echo "total: $((total - failed - skipped)) passed, ${failed} failed, ${skipped} skipped"
  [[ ${failed} == 0 ]]
}

main() {
  local phase=${1:-}
  [[ -n ${phase} ]] || { usage; exit 2; }
  shift
  # What handles Ctrl-C itself, such as a demo, ends like one that failed: run no other.
  trap 'exit 130' INT
  rm -rf "${RESULTS}"
  mkdir -p "${RESULTS}"
  # What components log in integration tests, a file for each package.
  export INTEGRATION_TEST_LOGS=${RESULTS}
  case ${phase} in
    all) for phase in tools unit unit-gates integration e2e histories; do run_phase "${phase}"; done ;;
    simulation)
      run_simulations "$@"
      return
      ;;
    tools | unit | unit-gates | integration | integration-upstream | integration-upstream-gates | e2e | histories | race) run_phase "${phase}" "$@" ;;
    *) usage; exit 2 ;;
  esac
  totals
}

if [[ ${1:-} == record ]]; then
  record
else
  main "$@"
fi
