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

# "make help" prints the targets. Paths are relative and commands run in the
# directory of this file, whatever its name.

ifeq ($(filter grouped-target,$(.FEATURES)),)
$(error GNU make 4.3 or newer is needed, this is $(MAKE_VERSION))
endif

SHELL := bash
.SHELLFLAGS := -o errexit -o nounset -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := build

# Only "make VERSION=..." names a version: many environments have a variable of this name.
ifneq ($(origin VERSION),command line)
unexport VERSION
endif

.DELETE_ON_ERROR:
# The go command uses all processors by itself; two of them at a time would only
# fight for memory.
.NOTPARALLEL:

CONTROL_PLANE := kube-apiserver kube-controller-manager kube-scheduler kubectl
COMPONENTS := $(CONTROL_PLANE) kubectl-maintenance kubelet kubemark
# What a node runs beside containerd. The images are of the last of these.
NODE_PROGRAMS := ./cmd/kubelet ./cmd/kube-proxy ./test/utils/realcluster/workload
DEMO_PROGRAMS := $(addprefix ./staging/src/k8s.io/client-go/examples/,downscale-pod-picker eviction-interceptor eviction-requester)

# DBG=1 keeps what a debugger needs. Without it, the linker drops the symbol tables, and
# the compiler does not make their largest part at all, which takes it an eighth less time.
STRIP := $(if $(DBG),,-s -w)

# No stamp of the version control: the tree is a repository of its own, and each
# commit in it would relink everything. hack/version.sh says the version.
# The scripts in hack compile with the same flags: otherwise they share nothing with it.
BUILD_FLAGS := -trimpath -buildvcs=false $(if $(DBG),,-gcflags=all=-dwarf=false)

# The compiler spends a fifth of its time on the collection of its own garbage. It does that
# less often where a process of it has less than 3 GiB. Not exported: what is built here runs
# as Go runs it by default.
FEWER_COLLECTIONS := GOGC=800 GOMEMLIMIT=3GiB

# The root module and the tool modules are not part of go.work.
ROOT_GO := CGO_ENABLED=0 GOWORK=off go

# $(call build-in-tree,<packages>): one go command, so that shared packages are
# compiled once. An empty GOWORK selects the tree's go.work. Nothing here needs cgo;
# with it, most packages would be compiled a second time for kubelet alone.
define build-in-tree
mkdir -p _output/bin; flags=$$(hack/version.sh); bin=$$PWD/_output/bin/; \
$(FEWER_COLLECTIONS) CGO_ENABLED=0 GOWORK= go build -C _output/kubernetes $(BUILD_FLAGS) -ldflags "$(STRIP) $$flags" -o "$$bin" $(1)
endef

# $(call test-system,<test>,<timeout>): a test of whole control planes, which finds the
# programs in _output. Never from the cache: the programs are no part of the cached key.
define test-system
SYSTEM_TEST_OUTPUT=$$PWD/_output CGO_ENABLED=0 GOWORK= go test -C _output/kubernetes $(BUILD_FLAGS) -vet=off -count 1 \
	-timeout $(2) -v -run '^$(1)$$' ./test/system
endef

# What hack/test-node.sh runs.
define build-node-tests
for dir in test/utils/realcluster test/system; do \
	CGO_ENABLED=0 GOWORK= go test -C _output/kubernetes $(BUILD_FLAGS) -vet=off -c -o "$$PWD/_output/$${dir##*/}.test" "./$$dir"; done
endef

# The demos are tests, compiled as a program: go test would take the terminal away from them.
define build-demo
$(call build-in-tree,$(DEMO_PROGRAMS)); \
$(FEWER_COLLECTIONS) CGO_ENABLED=0 GOWORK= go test -C _output/kubernetes $(BUILD_FLAGS) -vet=off -c -o "$$bin/demo" ./test/system
endef
demo = DEMO_CLUSTER=$(or $(2),graceful) SYSTEM_TEST_OUTPUT=$$PWD/_output _output/bin/demo -test.timeout 5m -test.run '^$(1)$$'

# $(call build-tool,<module>,<package>): a program that a tool module pins.
# touch, because go build leaves a file alone that has the right content.
define build-tool
bin=$$PWD/_output/bin; mkdir -p "$$bin"; \
$(FEWER_COLLECTIONS) $(ROOT_GO) build -C hack/modules/$(1) $(BUILD_FLAGS) -o "$$bin/$(notdir $@)" $(2); touch "$$bin/$(notdir $@)"
endef

# $(call build-tool-with-tree,<package>): the same, with the versions of the base for what it shares
# with it: what is compiled for the control plane is not compiled again. The file of sums has those
# that neither the base nor the modules have.
define build-tool-with-tree
bin=$$PWD/_output/bin; mkdir -p "$$bin"; export GOWORK=$$PWD/_output/tools.work; \
{ sed 's#^\t\.#\t./kubernetes#' _output/kubernetes/go.work; printf '\nuse (\n\t../hack/modules/etcd\n\t../hack/modules/kwok\n)\n'; } > "$$GOWORK"; \
cp hack/modules/tools.work.sum "$$GOWORK.sum"; \
$(FEWER_COLLECTIONS) CGO_ENABLED=0 go build -C _output $(BUILD_FLAGS) -o "$$bin/$(notdir $@)" $(1); touch "$$bin/$(notdir $@)"
endef

# The values are quoted for the shell and may hold anything but a quote. An empty
# value counts: "make up GATES=" means no gates.
flag = $(if $(filter undefined,$(origin $(2))),,--$(1) '$($(2))')

##@ Run

.PHONY: demo
demo: control-plane local-cluster-tools ## build what is missing, start a cluster, drain three nodes with kubectl maintenance, beside kubectl drain
	@$(build-demo)
	@echo '==> demo (about 30 seconds)'
	@$(call demo,TestDemoMaintenance)

.PHONY: demo-evictionrequest
demo-evictionrequest: control-plane local-cluster-tools ## show what a drain is made of: the evictions of three pods
	@$(build-demo)
	@echo '==> demo-evictionrequest (about 15 seconds)'
	@$(call demo,TestDemoEvictionRequest)

.PHONY: demo-podpicker
demo-podpicker: control-plane local-cluster-tools ## scale three of six workers away: the idle ones go, which a picker says that knows them
	@$(build-demo)
	@echo '==> demo-podpicker (about 20 seconds)'
	@$(call demo,TestDemoPodPicker)

.PHONY: demo-responder
demo-responder: control-plane local-cluster-tools ## drain a node: a responder of lifecycle.k8s.io, in shell, saves the data of a pod first
	@$(build-demo)
	@echo '==> demo-responder (about 45 seconds)'
	@$(call demo,TestDemoResponder,responder)

.PHONY: demo-fleet
demo-fleet: control-plane local-cluster-tools ## upgrade 60 nodes, 6 at a time and one zone at a time, of which one does not come back
	@$(build-demo)
	@echo '==> demo-fleet (about 90 seconds)'
	@$(call demo,TestDemoFleet,fleet)

.PHONY: demo-real
demo-real: real-nodes ## drain a node with a real kubelet while real requests are sent, beside kubectl drain, as root
	@$(build-demo)
	@echo '==> demo-real (about a minute)'
	@$(call demo,TestDemoReal,real)

.PHONY: monitoring
monitoring: control-plane local-cluster-tools _output/bin/prometheus _output/bin/scale ## a real Prometheus with our rules beside a local cluster: faults make each alert fire, and end
	@$(build-demo)
	@echo '==> monitoring (about 4 minutes)'
	@SYSTEM_TEST_OUTPUT=$$PWD/_output _output/bin/demo -test.timeout 20m -test.run '^TestMonitoring$$'

.PHONY: monitoring-real
monitoring-real: real-nodes _output/bin/prometheus _output/bin/scale ## the same with the alerts about kubelets, on real ones, as root
	@$(build-demo)
	@echo '==> monitoring-real (about 2 minutes)'
	@SYSTEM_TEST_OUTPUT=$$PWD/_output _output/bin/demo -test.timeout 20m -test.run '^TestNodeMonitoring$$'

.PHONY: up
up: control-plane local-cluster-tools ## start a local cluster: NAME=graceful NODES=3 GATES=... RUNTIME_CONFIG=...
	@echo '==> starting the local cluster (about 5 seconds)'
	@_output/bin/cluster up $(call flag,name,NAME) $(call flag,nodes,NODES) $(call flag,gates,GATES) $(call flag,runtime-config,RUNTIME_CONFIG)

.PHONY: down
down: _output/bin/cluster ## stop the local cluster and remove its state: NAME=graceful
	@echo '==> stopping the local cluster (about a second)'
	@_output/bin/cluster down $(call flag,name,NAME)

.PHONY: up-real
up-real: real-nodes ## start a cluster whose nodes are real kubelets with containerd, as root: NAME=real NODES=2 GATES=... RUNTIME_CONFIG=...
	@echo '==> starting the cluster with real nodes (about 10 seconds)'
	@_output/bin/cluster up-real $(call flag,name,NAME) $(call flag,nodes,NODES) $(call flag,gates,GATES) $(call flag,runtime-config,RUNTIME_CONFIG)

.PHONY: down-real
down-real: _output/bin/cluster ## stop the cluster with real nodes and remove its state: NAME=real
	@echo '==> stopping the cluster with real nodes (about a second)'
	@_output/bin/cluster down-real $(call flag,name,NAME)

# Variables that the script reads are passed from the environment, and make puts those of its
# command line there.
.PHONY: local-up
local-up: local-up-programs ## start a cluster by upstream's hack/local-up-cluster.sh with our gates, in namespaces, as root: NAME=local-up FEATURE_GATES=... RUNTIME_CONFIG=... LOG_LEVEL=...
	@echo "==> running upstream's hack/local-up-cluster.sh (about 20 seconds)"
	@_output/bin/cluster local-up $(call flag,name,NAME)

.PHONY: local-down
local-down: _output/bin/cluster ## stop that cluster and remove its state: NAME=local-up
	@echo '==> stopping the cluster of hack/local-up-cluster.sh (about a second)'
	@_output/bin/cluster local-down $(call flag,name,NAME)

##@ Test

.PHONY: test
test: verify test-programs ## everything that CI runs
	@echo '==> testing (up to 45 minutes on two cores the first time)'
	@hack/test.sh all

.PHONY: test-unit
test-unit: tree _output/bin/gotestsum _output/bin/etcd ## unit tests, our gates off and on: WHAT=k8s.io/kubernetes/pkg/...
	@hack/test.sh unit $(WHAT)
	@hack/test.sh unit-gates $(WHAT)

.PHONY: test-integration
test-integration: tree _output/bin/gotestsum _output/bin/etcd ## integration tests: WHAT=k8s.io/kubernetes/test/integration/...
	@hack/test.sh integration $(WHAT)

.PHONY: test-integration-upstream
test-integration-upstream: tree _output/bin/gotestsum _output/bin/etcd ## upstream's integration tests of what the patches change, our gates off and on (about an hour)
	@hack/test.sh integration-upstream
	@hack/test.sh integration-upstream-gates

.PHONY: test-e2e
test-e2e: test-programs ## the demos and the tutorial, on clusters of their own
	@hack/test.sh e2e

.PHONY: test-all
test-all: ## what make test leaves out, hours, with a table at the end, as root: PARTS="upgrade node"
	@hack/test-all.sh $(PARTS)

.PHONY: test-race
test-race: tree _output/bin/gotestsum _output/bin/etcd ## our tests, unit and integration, under the race detector (needs gcc): WHAT=k8s.io/kubernetes/pkg/...
	@echo '==> testing for races (about an hour on two cores the first time)'
	@hack/test.sh race $(WHAT)

.PHONY: test-simulation
test-simulation: tree ## all simulations, with random seeds: SEEDS=10000 WHAT=k8s.io/kubernetes/pkg/controller/deployment
	@SIMULATION_SEEDS='$(or $(SEEDS),10000)' hack/test.sh simulation $(WHAT)

.PHONY: test-histories
test-histories: control-plane _output/bin/etcd ## actors and faults on two of everything; each revision of etcd is checked: SEED=... COUNT=10 LENGTH=5m WITHOUT="tenant,compact etcd" SHORTEN=1 RULE=...
	@echo '==> histories (about two minutes each)'
	@HISTORY_SEED='$(SEED)' HISTORY_COUNT='$(or $(COUNT),5)' HISTORY_LENGTH='$(LENGTH)' HISTORY_WITHOUT='$(WITHOUT)' HISTORY_SHORTEN='$(SHORTEN)' HISTORY_RULE='$(RULE)' $(call test-system,TestHistories,$(or $(TIMEOUT),24h))

.PHONY: test-defects
test-defects: control-plane _output/bin/etcd ## the histories find each defect in test/system/testdata/defects, hours: DEFECTS="no-fence" HISTORIES=8
	@DEFECTS='$(DEFECTS)' HISTORIES='$(HISTORIES)' hack/test-defects.sh

.PHONY: test-upgrade
test-upgrade: control-plane base _output/bin/etcd ## the pristine base and the fork in turn on one etcd, step by step as in KEP-4563: PART=Lifecycle
	@echo '==> upgrade, rollback, upgrade (about 4 minutes)'
	@$(call test-system,Test$(or $(PART),(Picker|Fleet|Lifecycle)?)Upgrade,20m)

# First: a shallow clone has no predecessor, and says so before the builds.
.PHONY: test-upgrade-fork
test-upgrade-fork: predecessor control-plane _output/bin/etcd ## the fork on the base before and the fork in turn, and both API servers at once, on one etcd, with all gates on
	@echo '==> upgrade from the predecessor, rollback, upgrade (about 2 minutes)'
	@$(call test-system,TestForkUpgrade,20m)

.PHONY: test-drain
test-drain: control-plane base _output/bin/etcd ## kubectl drain, cordon and uncordon against those of the pristine base, on its API server and on ours
	@echo '==> drain, cordon, uncordon (about 30 seconds)'
	@$(call test-system,TestDrain,10m)

.PHONY: test-surge
test-surge: control-plane local-cluster-tools base ## drain a node with ten single-replica Deployments: not a moment without an endpoint, against kubectl drain of the base
	@echo '==> surge (about 80 seconds)'
	@$(call test-system,TestSurge,20m)

.PHONY: test-cases
test-cases: control-plane local-cluster-tools base ## public reports of drains that went wrong, a row each: with kubectl drain of the base, and with a NodeMaintenance: CASES=single
	@echo '==> public cases (about 5 minutes)'
	@CASES='$(CASES)' $(call test-system,TestCases,30m)

.PHONY: test-interop
test-interop: control-plane local-cluster-tools base _output/bin/descheduler _output/bin/capi-drain _output/bin/karpenter-kwok ## drain nodes with stock kubectl, Cluster API, the descheduler and Karpenter, for which interceptors act as well
	@echo '==> interop (about 4 minutes)'
	@$(call test-system,TestInterop.*,30m)

.PHONY: test-chaos
test-chaos: control-plane _output/bin/etcd ## kill kube-apiserver and kube-controller-manager again and again during 200 evictions, and suspend them while requests are withdrawn: SEED=...
	@echo '==> chaos (about 150 seconds)'
	@CHAOS_SEED='$(SEED)' $(call test-system,Test(Chaos|SuspendedLeader),12m)

.PHONY: test-docs
test-docs: control-plane local-cluster-tools ## run the commands of docs/tutorial.md, and compare what they print with what it shows
	@echo '==> tutorial (about 30 seconds)'
	@$(call test-system,TestTutorial,5m)

.PHONY: test-node
test-node: with-dbus local-up-programs base-node ## clusters with real nodes: static pods in drains, shutdowns, restarts, power, outages, other releases, local-up, and that they leave nothing behind, as root: GROUP=static
	@echo '==> clusters with real nodes (about 8 minutes)'
	@$(build-node-tests)
	@hack/test-node.sh $(GROUP)

# A shallow clone has no predecessor, and says so before the builds.
.PHONY: test-node-fork
test-node-fork: with-dbus predecessor-node real-nodes ## kubelets of the fork on the base before beside ours, and each replaced by the other, on real nodes with our control plane, as root
	@echo '==> nodes with the kubelet of the predecessor (about 4 minutes)'
	@$(build-node-tests)
	@hack/test-node.sh predecessor predecessor-shutdown

.PHONY: test-release
test-release: ## make a release here and in a clone elsewhere: programs, images and SBOMs must be the same
	@hack/test-release.sh

.PHONY: test-rollout
test-rollout: real-nodes base-node _output/bin/images ## roll our images out to two control-plane nodes of static pods, back, and out again, during drains and evictions, as root
	@$(call build-in-tree,./staging/src/k8s.io/component-base/logs/kube-log-runner)
	@hack/rollout-images.sh
	@echo '==> rolling out, back, and out again (about 10 minutes)'
	@$(call test-system,TestRollout,30m)

# The base is built only where it is tested.
.PHONY: test-e2e-upstream
test-e2e-upstream: real-nodes upstream-tests $(if $(filter on off,$(MODE)),,base-node) ## upstream's tests of workloads, evictions and static pods on real nodes: our gates on, off, and the pristine base, as root: MODE=on FOCUS=...
	@echo "==> upstream's tests (about 10 minutes for each of: $(or $(MODE),on off base))"
	@_output/bin/e2e $(call flag,mode,MODE) $(call flag,focus,FOCUS)

.PHONY: bench
bench: control-plane local-cluster-tools base ## evictions and drains against kubectl drain of the base, 5,000 nodes, the API server with and without EvictionLane, the surge of Deployments, 150,000 pods at once, 1,000 ReplicaSets with pod pickers, 5,000 nodes so many at a time, and the targets, about 80 minutes without the last: PARTS=evictions,lane,idle,drain,scale,surge,mass,podpicker,fleet PODS=500 RUNS=5 DRAIN_PODS=100 IDLE=1000 SCALE_NODES=5000 SURGE=200 SURGE_REPLICAS=1000 MASS_PODS=150000 LANE_PODS=2000 PICKER_SETS=1000 FLEET_NODES=5000 FLEET_PODS=30 FLEET_AT_ONCE=20 FLEET_DRAINS=200
	@$(call build-in-tree,./hack/bench ./cmd/kubectl-maintenance)
	@echo '==> benchmark (about 80 minutes)'
	@_output/bin/bench $(call flag,parts,PARTS) $(call flag,scale-nodes,SCALE_NODES) $(call flag,surge,SURGE) $(call flag,surge-replicas,SURGE_REPLICAS) $(call flag,mass-pods,MASS_PODS) $(call flag,lane-pods,LANE_PODS) $(call flag,picker-sets,PICKER_SETS) $(call flag,fleet-nodes,FLEET_NODES) $(call flag,fleet-pods,FLEET_PODS) $(call flag,fleet-at-once,FLEET_AT_ONCE) $(call flag,fleet-drains,FLEET_DRAINS) $(call flag,pods,PODS) $(call flag,runs,RUNS) $(call flag,drain-pods,DRAIN_PODS) $(call flag,idle,IDLE) $(patsubst %,--enforce=%,$(ENFORCE))

.PHONY: test-programs
test-programs: control-plane local-cluster-tools _output/bin/gotestsum _output/bin/promtool
	@$(call build-in-tree,$(DEMO_PROGRAMS))

##@ Build

.PHONY: build
build: tree _output/bin/etcd ## the default: all components and etcd, into _output/bin
	@echo '==> building $(COMPONENTS) (8 to 12 minutes on two cores the first time, then seconds)'
	@$(call build-in-tree,$(COMPONENTS:%=./cmd/%))

.PHONY: control-plane
control-plane: tree ## what a local cluster runs, the control plane and kubectl, and what starts it
	@echo '==> building $(CONTROL_PLANE) (8 to 12 minutes on two cores the first time, then seconds)'
	@$(call build-in-tree,$(CONTROL_PLANE:%=./cmd/%) ./hack/cluster)

.PHONY: base
base: tree ## the control plane and kubectl of the pristine base (3 to 7 minutes the first time, then seconds)
	@echo '==> building the pristine base into _output/base/bin (3 to 7 minutes on two cores the first time, then seconds)'
	@$(FEWER_COLLECTIONS) STRIP='$(STRIP)' hack/base.sh $(BUILD_FLAGS)

# It says itself what it builds, only where it builds.
.PHONY: predecessor
predecessor: go-and-git ## the control plane and kubectl of the last commit on another minor version of the base (10 minutes, once)
	@hack/predecessor.sh

.PHONY: predecessor-node
predecessor-node: go-and-git
	@PROGRAMS=kubelet hack/predecessor.sh

# All that a cluster with real nodes has of Kubernetes.
.PHONY: base-node
base-node: tree
	@echo '==> building the nodes and the control plane of the pristine base into _output/base/bin (up to 12 minutes the first time, then seconds)'
	@$(FEWER_COLLECTIONS) PROGRAMS='$(CONTROL_PLANE) kubelet kube-proxy' STRIP='$(STRIP)' hack/base.sh $(BUILD_FLAGS)

# Before any build.
.PHONY: with-dbus
with-dbus:
	@hack/prerequisites.sh real-nodes dbus

# Checks first: the builds take minutes.
.PHONY: real-nodes
real-nodes:
	@hack/prerequisites.sh real-nodes
	@$(MAKE) control-plane _output/bin/etcd _output/bin/containerd _output/bin/containerd-shim-runc-v2 _output/bin/ctr _output/bin/mkimage
	@echo '==> building kubelet and kube-proxy (a minute or two the first time, then seconds)'
	@$(call build-in-tree,$(NODE_PROGRAMS))
	@$(MAKE) _output/images/pause.tar _output/images/workload.tar

# Of what the script needs, all that the machine lacks is named at once.
.PHONY: local-up-programs
local-up-programs:
	@hack/prerequisites.sh real-nodes local-up
	@$(MAKE) real-nodes _output/bin/cfssl _output/bin/cfssljson

# Upstream's tests, what runs them, and the program of most of their pods.
.PHONY: upstream-tests
upstream-tests: tree
	@echo "==> building upstream's tests (3 minutes the first time, then seconds)"
	@$(call build-in-tree,./hack/e2e ./test/images/agnhost github.com/onsi/ginkgo/v2/ginkgo); \
	$(FEWER_COLLECTIONS) CGO_ENABLED=0 GOWORK= go test -C _output/kubernetes $(BUILD_FLAGS) -vet=off -c -ldflags "$(STRIP) $$flags" -o "$$bin" ./test/e2e ./test/e2e_node

.PHONY: local-cluster-tools
local-cluster-tools: _output/bin/etcd _output/bin/kwok-stages.yaml

_output/bin/etcd: hack/modules/etcd/go.mod hack/modules/etcd/go.sum hack/modules/tools.work.sum | tree
	@echo '==> building etcd (20 seconds after the control plane, once)'
	@$(call build-tool-with-tree,go.etcd.io/etcd/server/v3)

_output/bin/descheduler: hack/modules/descheduler/go.mod hack/modules/descheduler/go.sum | go-and-git
	@echo '==> building the descheduler (3 minutes, once)'
	@$(call build-tool,descheduler,-ldflags "$(STRIP)" sigs.k8s.io/descheduler/cmd/descheduler)

_output/bin/karpenter-kwok: hack/modules/karpenter/go.mod hack/modules/karpenter/go.sum | go-and-git
	@echo '==> building Karpenter with simulated machines (4 minutes, once)'
	@$(call build-tool,karpenter,-ldflags "$(STRIP)" sigs.k8s.io/karpenter/kwok)
	@dir=$$($(ROOT_GO) list -C hack/modules/karpenter -m -f '{{.Dir}}' sigs.k8s.io/karpenter); mkdir -p _output/karpenter; \
	install -m 644 "$$dir"/pkg/apis/crds/*.yaml "$$dir"/kwok/apis/crds/*.yaml _output/karpenter/

_output/bin/capi-drain: $(wildcard hack/modules/cluster-api/*) | go-and-git
	@echo '==> building the drain of Cluster API (2 minutes, once)'
	@$(call build-tool,cluster-api,-ldflags "$(STRIP)" .)

_output/bin/kwok: hack/modules/kwok/go.mod hack/modules/kwok/go.sum hack/modules/tools.work.sum | tree
	@echo '==> building kwok (20 seconds after the control plane, once)'
	@$(call build-tool-with-tree,sigs.k8s.io/kwok/cmd/kwok)

# What simulated nodes and pods do: kwok has its default stages in files, and we add ours.
_output/bin/kwok-stages.yaml: _output/bin/kwok test/utils/localcluster/stages.yaml
	@dir=$$($(ROOT_GO) list -C hack/modules/kwok -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage; \
	sed -s '$$a ---' "$$dir"/node/fast/node-*.yaml "$$dir"/node/heartbeat-with-lease/node-*.yaml "$$dir"/pod/fast/pod-*.yaml >$@; \
	cat test/utils/localcluster/stages.yaml >>$@

# Their storage drivers for file systems that need headers of C libraries are left out.
_output/bin/containerd _output/bin/containerd-shim-runc-v2 _output/bin/ctr: hack/modules/containerd/go.mod hack/modules/containerd/go.sum | go-and-git
	@echo '==> building $(notdir $@) (a minute, once)'
	@$(call build-tool,containerd,-tags "no_btrfs no_zfs no_devmapper" -ldflags "$(STRIP) -X github.com/containerd/containerd/v2/version.Version=$$($(ROOT_GO) list -C hack/modules/containerd -m -f '{{.Version}}' github.com/containerd/containerd/v2)" github.com/containerd/containerd/v2/cmd/$(notdir $@))

_output/bin/mkimage _output/bin/images: $(wildcard hack/modules/images/* hack/modules/images/*/*) | go-and-git
	@echo '==> building $(notdir $@) (seconds, once)'
	@$(call build-tool,images,./$(notdir $@))

# The images of the pods of real nodes. No registry is asked.
_output/images/pause.tar: _output/bin/mkimage _output/bin/workload
	@mkdir -p _output/images; _output/bin/mkimage -o $@ -t localhost/pause:1 -command '/workload pause' _output/bin/workload=/workload

_output/images/workload.tar: _output/bin/mkimage _output/bin/workload
	@mkdir -p _output/images; _output/bin/mkimage -o $@ -t localhost/workload:1 -command '/workload sleep' _output/bin/workload=/workload \
		"$$(command -v busybox)=/bin/busybox" $$(busybox --list | grep -vx busybox | sed 's#.*#@busybox=/bin/&#')

# Without service discovery: its modules are most of the program, and not all can be fetched everywhere.
_output/bin/prometheus _output/bin/promtool: hack/modules/prometheus/go.mod hack/modules/prometheus/go.sum | go-and-git
	@echo '==> building $(notdir $@) (a minute or two, once)'
	@$(call build-tool,prometheus,-tags remove_all_sd -ldflags "$(STRIP)" github.com/prometheus/prometheus/cmd/$(notdir $@))

# The same rules for the operator of Prometheus. A test compares them.
deploy/monitoring/prometheusrule.yaml: deploy/monitoring/rules.yaml
	@{ printf '# "make $@" writes this file from rules.yaml.\n'; \
		printf 'apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: graceful-evictions}\nspec:\n'; \
		sed -e '1,/^groups:/{/^groups:/!d}' -e 's/^./  &/' $<; } >$@

_output/bin/scale: $(wildcard hack/modules/prometheus/go.* hack/modules/prometheus/scale/*) | go-and-git
	@echo '==> building scale (seconds, once)'
	@$(call build-tool,prometheus,-tags remove_all_sd ./scale)

# The certificates of hack/local-up-cluster.sh, which would download them elsewhere.
_output/bin/cfssl _output/bin/cfssljson: hack/modules/cfssl/go.mod hack/modules/cfssl/go.sum | go-and-git
	@echo '==> building $(notdir $@) (seconds, once)'
	@$(call build-tool,cfssl,github.com/cloudflare/cfssl/cmd/$(notdir $@))

_output/bin/gotestsum: hack/modules/gotestsum/go.mod hack/modules/gotestsum/go.sum | go-and-git
	@echo '==> building gotestsum (seconds, once)'
	@$(call build-tool,gotestsum,gotest.tools/gotestsum)

_output/bin/golangci-lint: $(wildcard hack/modules/golangci-lint/*) | go-and-git
	@echo '==> building golangci-lint (2 minutes, once)'
	@$(call build-tool,golangci-lint,.)

_output/bin/crd-ref-docs: hack/modules/crd-ref-docs/go.mod hack/modules/crd-ref-docs/go.sum | go-and-git
	@echo '==> building crd-ref-docs (a minute, once)'
	@$(call build-tool,crd-ref-docs,github.com/elastic/crd-ref-docs)

_output/bin/instrumentation: hack/modules/instrumentation/go.mod hack/modules/instrumentation/go.sum | go-and-git
	@echo "==> building upstream's parser of metrics (seconds, once)"
	@$(call build-tool,instrumentation,k8s.io/kubernetes/test/instrumentation)

# "make down" builds it only where it is missing: any build stops what any other started.
_output/bin/cluster:
	@$(MAKE) tree
	@$(call build-in-tree,./hack/cluster)

.PHONY: clean
clean: ## remove the built programs, the tree and the base, not the caches of Go
	@if [[ -e _output/kubernetes ]]; then $(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree verify || \
		{ echo 'make clean: the tree may hold edits that are not in the repository: run "make refresh" first, or do what verify says' >&2; exit 1; }; fi
	rm -rf _output/base _output/bin _output/kubernetes _output/predecessor

##@ Release

# Variables such as PLATFORMS are passed in the environment, where make puts those of its command line.
release = $(FEWER_COLLECTIONS) STRIP='$(STRIP)' hack/release.sh

.PHONY: images
images: tree _output/bin/images ## images of the components, with SBOMs, into _output/release: PLATFORMS="linux/amd64 linux/arm64" VERSION=... SOURCE=https://... REGISTRY=...
	@$(release) images $(BUILD_FLAGS)

.PHONY: push
push: _output/bin/images ## push the images of make images: REGISTRY=registry.example.com/kubernetes VERSION=... OVERWRITE=1 WITHOUT_SBOMS=1
	@$(release) push

.PHONY: release
release: tree _output/bin/images ## programs, images, SBOMs, checksums and changelog into _output/release: PLATFORMS=... VERSION=... SOURCE=... REGISTRY=...
	@$(release) all $(BUILD_FLAGS)

##@ Patches

.PHONY: tree
tree: go-and-git ## make _output/kubernetes from the base, the patches and our files
	@echo '==> making the tree (seconds; a minute where the base must be fetched)'
	@$(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree tree

.PHONY: refresh
refresh: go-and-git ## write edits made in the tree back as patches
	@$(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree refresh
	@$(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree index

.PHONY: verify
verify: tree docs-tools _output/bin/golangci-lint ## check that patches, tree, PATCHES.md and references agree, and lint
	@$(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree verify
	@hack/docs.sh verify
	@hack/lint.sh

.PHONY: lint
lint: tree _output/bin/golangci-lint ## lint with upstream's configuration: WHAT=pkg/controller/evictionrequest
	@hack/lint.sh $(WHAT)

.PHONY: index
index: go-and-git ## write PATCHES.md
	@$(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree index

.PHONY: merge
merge: go-and-git ## three-way merge of patches that do not apply to a new base
	@$(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree merge

.PHONY: typecheck
typecheck: tree ## type check the components and all packages of ours with their tests, in a minute, nothing compiled: WHAT=./pkg/kubelet
	@hack/typecheck.sh $(WHAT)

.PHONY: rebase
rebase: go-and-git ## move to another version of Kubernetes, and say what is left to a person: TO=v1.37.3
	@hack/rebase.sh '$(TO)'

.PHONY: update
update: tree _output/bin/etcd ## regenerate generated code: WHAT="protobuf deepcopy"
	@echo '==> regenerating (about 4 minutes, more the first time)'
	@$(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree tree -copies
	@ETCD_BIN=$$PWD/_output/bin CGO_ENABLED=0 hack/update.sh _output/kubernetes $(WHAT); \
	$(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree refresh; $(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree tree

##@ Documents

.PHONY: docs
docs: docs-tools ## write docs/reference/api.md and the tables of docs/reference/metrics.md from the code
	@hack/docs.sh

.PHONY: pictures
pictures: test-surge monitoring docs-tools ## draw docs/images from a drain of a local cluster, from test-surge and from monitoring (needs tmux, about 8 minutes)
	@hack/pictures.sh

.PHONY: docs-tools
docs-tools: tree _output/bin/crd-ref-docs _output/bin/instrumentation
	@$(call build-in-tree,./hack/docs)

##@ Help

.PHONY: go-and-git
go-and-git:
	@hack/prerequisites.sh go git

.PHONY: help
help: ## this table
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' Makefile
