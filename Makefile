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
# The go command uses all processors by itself; two at a time would only fight for memory.
.NOTPARALLEL:
# What has no slash is no file.
.PHONY: $(shell sed -n 's/^\([a-z0-9-]\+\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

CONTROL_PLANE := kube-apiserver kube-controller-manager kube-scheduler kubectl
COMPONENTS := $(CONTROL_PLANE) kubectl-maintenance kubelet kubemark
DEMO_PROGRAMS := $(addprefix ./staging/src/k8s.io/client-go/examples/,downscale-pod-picker eviction-interceptor eviction-requester)

# DBG=1 keeps what a debugger needs. Without it, the linker drops the symbol tables, and
# the compiler does not make their largest part at all, which takes it an eighth less time.
STRIP := $(if $(DBG),,-s -w)
# No stamp of the version control: the tree is a repository of its own, and each
# commit in it would relink everything. hack/version.sh says the version.
# The scripts in hack compile with the same flags: otherwise they share nothing with it.
BUILD_FLAGS := -trimpath -buildvcs=false $(if $(DBG),,-gcflags=all=-dwarf=false)
# The compiler spends a fifth of its time on collecting its own garbage, less where it may have 3 GiB.
# Not exported: what is built here runs as Go runs it by default.
FEWER_COLLECTIONS := GOGC=800 GOMEMLIMIT=3GiB
# The root module and the tool modules are not part of go.work; an empty GOWORK selects the tree's.
# Nothing here needs cgo; with it, most packages would be compiled a second time for kubelet alone.
ROOT_GO := CGO_ENABLED=0 GOWORK=off go
tree-go = CGO_ENABLED=0 GOWORK= go $(1) -C _output/kubernetes $(BUILD_FLAGS)
patches = $(ROOT_GO) run $(BUILD_FLAGS) ./hack/tree

# $(call build-in-tree,<packages>): one go command, so that shared packages are compiled once.
build-in-tree = mkdir -p _output/bin; flags=$$(hack/version.sh); bin=$$PWD/_output/bin/; \
	$(FEWER_COLLECTIONS) $(call tree-go,build) -ldflags "$(STRIP) $$flags" -o "$$bin" $(1)

# $(call demo,<test>,<how long>,<cluster>,<timeout>): the demos are tests, compiled as a program: go test
# would take the terminal away from them.
demo = $(call build-in-tree,$(DEMO_PROGRAMS)); $(FEWER_COLLECTIONS) $(call tree-go,test) -vet=off -c -o "$$bin/demo" ./test/system; \
	echo '==> $@ (about $(2))'; $(if $(3),DEMO_CLUSTER=$(3)) SYSTEM_TEST_OUTPUT=$$PWD/_output _output/bin/demo -test.timeout $(or $(4),5m) -test.run '^$(1)$$'

# $(call flags,<names>): flags of our programs with the values of the variables in capital letters,
# which are quoted for the shell and may hold anything but a quote. An empty value counts:
# "make up GATES=" means no gates.
flag = $(if $(filter undefined,$(origin $(2))),,--$(1) '$($(2))')
flags = $(foreach name,$(1),$(call flag,$(name),$(shell tr a-z- A-Z_ <<<'$(name)')))
cluster = echo "==> $(1)"; _output/bin/cluster $@ $(call flags,$(2))

# What only runs a script. Those read variables from the environment, where make puts those of its command line.
clean test-release test-defects predecessor docs pictures:
	@hack/$@.sh
lint typecheck:
	@hack/$@.sh $(WHAT)

##@ Run
demo: control-plane local-cluster-tools ## build what is missing, start a cluster, drain three nodes with kubectl maintenance, beside kubectl drain
	@$(call demo,TestDemoMaintenance,30 seconds,graceful)
demo-evictionrequest: control-plane local-cluster-tools ## show what a drain is made of: the evictions of three pods
	@$(call demo,TestDemoEvictionRequest,15 seconds,graceful)
demo-podpicker: control-plane local-cluster-tools ## scale three of six workers away: the idle ones go, which a picker says that knows them
	@$(call demo,TestDemoPodPicker,20 seconds,graceful)
demo-responder: control-plane local-cluster-tools ## drain a node: a responder of lifecycle.k8s.io, in shell, saves the data of a pod first
	@$(call demo,TestDemoResponder,45 seconds,responder)
demo-fleet: control-plane local-cluster-tools ## upgrade 60 nodes, 6 at a time and one zone at a time, of which one does not come back
	@$(call demo,TestDemoFleet,90 seconds,fleet)
demo-real: real-nodes ## drain a node with a real kubelet while real requests are sent, beside kubectl drain, as root
	@$(call demo,TestDemoReal,a minute,real)
monitoring: control-plane local-cluster-tools _output/bin/prometheus _output/bin/scale ## a real Prometheus with our rules beside a local cluster: faults make each alert fire, and end
	@$(call demo,TestMonitoring,4 minutes,,20m)
monitoring-real: real-nodes _output/bin/prometheus _output/bin/scale ## the same with the alerts about kubelets, on real ones, as root
	@$(call demo,TestNodeMonitoring,2 minutes,,20m)
up: control-plane local-cluster-tools ## start a local cluster: NAME=graceful NODES=3 GATES=... RUNTIME_CONFIG=...
	@$(call cluster,starting the local cluster (about 5 seconds),name nodes gates runtime-config)
down: _output/bin/cluster ## stop the local cluster and remove its state: NAME=graceful
	@$(call cluster,stopping the local cluster (about a second),name)
up-real: real-nodes ## start a cluster whose nodes are real kubelets with containerd, as root: NAME=real NODES=2 GATES=... RUNTIME_CONFIG=...
	@$(call cluster,starting the cluster with real nodes (about 10 seconds),name nodes gates runtime-config)
down-real: _output/bin/cluster ## stop the cluster with real nodes and remove its state: NAME=real
	@$(call cluster,stopping the cluster with real nodes (about a second),name)
local-up: local-up-programs ## start a cluster by upstream's hack/local-up-cluster.sh with our gates, in namespaces, as root: NAME=local-up FEATURE_GATES=... RUNTIME_CONFIG=... LOG_LEVEL=...
	@$(call cluster,running upstream's hack/local-up-cluster.sh (about 20 seconds),name)
local-down: _output/bin/cluster ## stop that cluster and remove its state: NAME=local-up
	@$(call cluster,stopping the cluster of hack/local-up-cluster.sh (about a second),name)

##@ Test
test: verify test-programs ## everything that CI runs
	@echo '==> testing (up to 45 minutes on two cores the first time)'; hack/test.sh all
test-unit: tree _output/bin/gotestsum _output/bin/etcd ## unit tests, our gates off and on: WHAT=k8s.io/kubernetes/pkg/...
	@hack/test.sh unit $(WHAT); hack/test.sh unit-gates $(WHAT)
test-integration: tree _output/bin/gotestsum _output/bin/etcd ## integration tests: WHAT=k8s.io/kubernetes/test/integration/...
test-integration-upstream: tree _output/bin/gotestsum _output/bin/etcd ## upstream's integration tests of what the patches change, our gates off and on (about an hour)
	@hack/test.sh integration-upstream; hack/test.sh integration-upstream-gates
test-e2e: test-programs ## the demos and the tutorial, on clusters of their own
	@hack/test.sh e2e
test-all: ## what make test leaves out, hours, with a table at the end, as root: PARTS="upgrade node"
	@hack/test-all.sh $(PARTS)
test-race: tree _output/bin/gotestsum _output/bin/etcd ## our tests, unit and integration, under the race detector (needs gcc): WHAT=k8s.io/kubernetes/pkg/...
test-simulation: tree ## all simulations, with random seeds: SEEDS=10000 WHAT=k8s.io/kubernetes/pkg/controller/deployment
test-histories: control-plane _output/bin/etcd ## actors and faults on two of everything; each revision of etcd is checked: SEED=... COUNT=10 LENGTH=5m WITHOUT="tenant,compact etcd" FAULTS="no node is ready" SHORTEN=1 RULE=...
test-defects: control-plane _output/bin/etcd ## the histories find each defect in test/system/testdata/defects, hours: DEFECTS="no-fence" HISTORIES=8
test-upgrade: control-plane base _output/bin/etcd ## the pristine base and the fork in turn on one etcd, step by step as in KEP-4563: PART=Lifecycle
# First: a shallow clone has no predecessor, and says so before the builds.
test-upgrade-fork: predecessor control-plane _output/bin/etcd ## the fork on the base before and the fork in turn, and both API servers at once, on one etcd, with all gates on
test-drain: control-plane base _output/bin/etcd ## kubectl drain, cordon and uncordon against those of the pristine base, on its API server and on ours
test-surge: control-plane local-cluster-tools base ## drain a node with ten single-replica Deployments: not a moment without an endpoint, against kubectl drain of the base
test-cases: control-plane local-cluster-tools base ## public reports of drains that went wrong, a row each: with kubectl drain of the base, and with a NodeMaintenance: CASES=single
test-interop: control-plane local-cluster-tools base _output/bin/descheduler _output/bin/capi-drain _output/bin/karpenter-kwok ## drain nodes with stock kubectl, Cluster API, the descheduler and Karpenter, for which interceptors act as well
test-chaos: control-plane _output/bin/etcd ## kill kube-apiserver and kube-controller-manager again and again during 200 evictions, and suspend them while requests are withdrawn: SEED=...
test-docs: control-plane local-cluster-tools ## run the commands of docs/tutorial.md, and compare what they print with what it shows
test-integration test-race test-simulation:
	@hack/test.sh $(@:test-%=%) $(WHAT)
test-histories test-upgrade test-upgrade-fork test-drain test-surge test-cases test-interop test-chaos test-docs:
	@hack/test-system.sh $@ $(BUILD_FLAGS)
test-node: with-dbus local-up-programs base-node ## clusters with real nodes: static pods in drains, shutdowns, restarts, power, outages, other releases, local-up, and that they leave nothing behind, as root: GROUP=static
	@echo '==> clusters with real nodes (about 8 minutes)'; BUILD_FLAGS='$(BUILD_FLAGS)' hack/test-node.sh $(GROUP)
test-node-fork: with-dbus predecessor-node real-nodes ## kubelets of the fork on the base before beside ours, and each replaced by the other, on real nodes with our control plane, as root
	@echo '==> nodes with the kubelet of the predecessor (about 4 minutes)'; BUILD_FLAGS='$(BUILD_FLAGS)' hack/test-node.sh predecessor predecessor-shutdown
test-release: ## make a release here and in a clone elsewhere: programs, images and SBOMs must be the same
test-rollout: real-nodes base-node _output/bin/images ## roll our images out to two control-plane nodes of static pods, back, and out again, during drains and evictions, as root
	@$(call build-in-tree,./staging/src/k8s.io/component-base/logs/kube-log-runner); hack/rollout-images.sh
	@hack/test-system.sh $@ $(BUILD_FLAGS)
# The base is built only where it is tested.
test-e2e-upstream: real-nodes upstream-tests $(if $(filter on off,$(MODE)),,base-node) ## upstream's tests of workloads, evictions and static pods on real nodes: our gates on, off, and the pristine base, as root: MODE=on FOCUS=...
	@echo "==> upstream's tests (about 10 minutes for each of: $(or $(MODE),on off base))"; _output/bin/e2e $(call flags,mode focus)
bench: control-plane local-cluster-tools base ## evictions and drains against kubectl drain of the base, 5,000 nodes, the API server with and without EvictionLane, the surge of Deployments, 150,000 pods at once, 1,000 ReplicaSets with pod pickers, 5,000 nodes so many at a time, and the targets, about 80 minutes without the last: PARTS=evictions,lane,idle,drain,scale,surge,mass,podpicker,fleet PODS=500 RUNS=5 DRAIN_PODS=100 IDLE=1000 SCALE_NODES=5000 SURGE=200 SURGE_REPLICAS=1000 MASS_PODS=150000 LANE_PODS=2000 PICKER_SETS=1000 FLEET_NODES=5000 FLEET_PODS=30 FLEET_AT_ONCE=20 FLEET_DRAINS=200
	@$(call build-in-tree,./test/performance ./cmd/kubectl-maintenance); echo '==> benchmark (about 80 minutes)'; \
	_output/bin/performance $(call flags,parts scale-nodes surge surge-replicas mass-pods lane-pods picker-sets fleet-nodes fleet-pods fleet-at-once fleet-drains pods runs drain-pods idle) $(patsubst %,--enforce=%,$(ENFORCE))
test-programs: control-plane local-cluster-tools _output/bin/gotestsum _output/bin/promtool
	@$(call build-in-tree,$(DEMO_PROGRAMS))

##@ Build
build: tree _output/bin/etcd ## the default: all components and etcd, into _output/bin
	@echo '==> building $(COMPONENTS) (8 to 12 minutes on two cores the first time, then seconds)'; $(call build-in-tree,$(COMPONENTS:%=./cmd/%))
control-plane: tree ## what a local cluster runs, the control plane and kubectl, and what starts it
	@echo '==> building $(CONTROL_PLANE) (8 to 12 minutes on two cores the first time, then seconds)'; $(call build-in-tree,$(CONTROL_PLANE:%=./cmd/%) ./hack/cluster)
base: tree ## the control plane and kubectl of the pristine base (3 to 7 minutes the first time, then seconds)
	@$(FEWER_COLLECTIONS) STRIP='$(STRIP)' hack/base.sh $(BUILD_FLAGS)
# It says itself what it builds, only where it builds.
predecessor: go-and-git ## the control plane and kubectl of the last commit on another minor version of the base (10 minutes, once)
predecessor-node: go-and-git
	@PROGRAMS=kubelet hack/predecessor.sh
base-node: tree
	@$(FEWER_COLLECTIONS) PROGRAMS='$(CONTROL_PLANE) kubelet kube-proxy' STRIP='$(STRIP)' hack/base.sh $(BUILD_FLAGS)
# Checks come before any build. Of what a script needs, all that the machine lacks is named at once.
go-and-git:
	@hack/prerequisites.sh go git
with-dbus:
	@hack/prerequisites.sh real-nodes dbus
real-nodes:
	@hack/prerequisites.sh real-nodes
	@$(MAKE) control-plane _output/bin/etcd _output/bin/containerd _output/bin/containerd-shim-runc-v2 _output/bin/ctr _output/bin/mkimage
	@echo '==> building kubelet and kube-proxy (a minute or two the first time, then seconds)'; $(call build-in-tree,./cmd/kubelet ./cmd/kube-proxy ./test/utils/realcluster/workload)
	@$(MAKE) _output/images/pause.tar _output/images/workload.tar
local-up-programs:
	@hack/prerequisites.sh real-nodes local-up
	@$(MAKE) real-nodes _output/bin/cfssl _output/bin/cfssljson
# Upstream's tests, what runs them, and the program of most of their pods.
upstream-tests: tree
	@echo "==> building upstream's tests (3 minutes the first time, then seconds)"; $(call build-in-tree,./hack/e2e ./test/images/agnhost github.com/onsi/ginkgo/v2/ginkgo); \
	$(FEWER_COLLECTIONS) $(call tree-go,test) -vet=off -c -ldflags "$(STRIP) $$flags" -o "$$bin" ./test/e2e ./test/e2e_node
local-cluster-tools: _output/bin/etcd _output/bin/kwok-stages.yaml

# Programs that the modules in hack/modules pin; hack/tool.sh has their packages and flags.
define tool
_output/bin/$(1): $(wildcard $(addprefix hack/modules/$(2)/,go.* *.go $(1)/* $(if $(filter images,$(2)),layer/*))) $(or $(3),| go-and-git)
	@$(FEWER_COLLECTIONS) STRIP='$(STRIP)' hack/tool.sh $(2) $(1) $(BUILD_FLAGS)
endef
TOOLS := descheduler karpenter-kwok:karpenter capi-drain:cluster-api containerd containerd-shim-runc-v2:containerd ctr:containerd mkimage:images \
	images prometheus promtool:prometheus scale:prometheus cfssl cfssljson:cfssl gotestsum golangci-lint crd-ref-docs instrumentation
$(foreach t,$(TOOLS),$(eval $(call tool,$(firstword $(subst :, ,$(t))),$(lastword $(subst :, ,$(t))))))
# They share the versions of the base.
$(foreach t,etcd kwok,$(eval $(call tool,$(t),$(t),hack/modules/tools.work.sum | tree)))
# What simulated nodes and pods do: kwok has its default stages in files, and we add ours.
_output/bin/kwok-stages.yaml: _output/bin/kwok test/utils/localcluster/stages.yaml
	@dir=$$($(ROOT_GO) list -C hack/modules/kwok -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage; \
	sed -s '$$a ---' "$$dir"/node/fast/node-*.yaml "$$dir"/node/heartbeat-with-lease/node-*.yaml "$$dir"/pod/fast/pod-*.yaml >$@; \
	cat test/utils/localcluster/stages.yaml >>$@
# The images of the pods of real nodes. No registry is asked.
_output/images/pause.tar: _output/bin/mkimage _output/bin/workload
	@mkdir -p _output/images; _output/bin/mkimage -o $@ -t localhost/pause:1 -command '/workload pause' _output/bin/workload=/workload
_output/images/workload.tar: _output/bin/mkimage _output/bin/workload
	@mkdir -p _output/images; _output/bin/mkimage -o $@ -t localhost/workload:1 -command '/workload sleep' _output/bin/workload=/workload \
		"$$(command -v busybox)=/bin/busybox" $$(busybox --list | grep -vx busybox | sed 's#.*#@busybox=/bin/&#')
deploy/monitoring/prometheusrule.yaml: deploy/monitoring/rules.yaml
	@hack/prometheusrule.sh >$@
# "make down" builds it only where it is missing: any build stops what any other started.
_output/bin/cluster:
	@$(MAKE) tree
	@$(call build-in-tree,./hack/cluster)

clean: ## remove the built programs, the tree and the base, not the caches of Go

##@ Release
release = $(FEWER_COLLECTIONS) STRIP='$(STRIP)' hack/release.sh
images: tree _output/bin/images ## images of the components, with SBOMs, into _output/release: PLATFORMS="linux/amd64 linux/arm64" VERSION=... SOURCE=https://... REGISTRY=...
	@$(release) images $(BUILD_FLAGS)
push: _output/bin/images ## push the images of make images: REGISTRY=registry.example.com/kubernetes VERSION=... OVERWRITE=1 WITHOUT_SBOMS=1
	@$(release) push
release: tree _output/bin/images ## programs, images, SBOMs, checksums and changelog into _output/release: PLATFORMS=... VERSION=... SOURCE=... REGISTRY=...
	@$(release) all $(BUILD_FLAGS)

##@ Patches
tree: go-and-git ## make _output/kubernetes from the base, the patches and our files
	@echo '==> making the tree (seconds; a minute where the base must be fetched)'; $(patches) tree
refresh: go-and-git ## write edits made in the tree back as patches
	@$(patches) refresh; $(patches) index
verify: tree docs-tools _output/bin/golangci-lint ## check that patches, tree, PATCHES.md and references agree, and lint
	@$(patches) verify; hack/docs.sh verify; hack/test-defects.sh check; hack/lint.sh
lint: tree _output/bin/golangci-lint ## lint with upstream's configuration: WHAT=pkg/controller/evictionrequest
index: go-and-git ## write PATCHES.md
	@$(patches) index
merge: go-and-git ## three-way merge of patches that do not apply to a new base
	@$(patches) merge
typecheck: tree ## type check the components and all packages of ours with their tests, in a minute, nothing compiled: WHAT=./pkg/kubelet
rebase: go-and-git ## move to another version of Kubernetes, and say what is left to a person: TO=v1.37.3
	@hack/rebase.sh '$(TO)'
update: tree _output/bin/etcd ## regenerate generated code: WHAT="protobuf deepcopy"
	@echo '==> regenerating (about 4 minutes, more the first time)'; $(patches) tree -copies
	@ETCD_BIN=$$PWD/_output/bin CGO_ENABLED=0 hack/update.sh _output/kubernetes $(WHAT); $(patches) refresh; $(patches) tree

##@ Documents
docs: docs-tools ## write docs/reference/api.md and the tables of docs/reference/metrics.md from the code
pictures: test-surge monitoring docs-tools ## draw docs/images from a drain of a local cluster, from test-surge and from monitoring (needs tmux, about 8 minutes)
docs-tools: tree _output/bin/crd-ref-docs _output/bin/instrumentation
	@$(call build-in-tree,./hack/docs)

##@ Help
help: ## this table
	@awk -f hack/help.awk $(firstword $(MAKEFILE_LIST))
