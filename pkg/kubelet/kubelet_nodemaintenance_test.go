/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package kubelet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	cadvisorapi "github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// bootedMachine is a machine in the boot with this ID.
type bootedMachine struct {
	cadvisor.Interface
	bootID string
	err    error
}

func (m bootedMachine) MachineInfo(klog.Logger) (*cadvisorapi.MachineInfo, error) {
	return &cadvisorapi.MachineInfo{BootID: m.bootID}, m.err
}

// sandboxLister is a runtime with sandboxes that are ready.
type sandboxLister struct {
	internalapi.RuntimeService
	names []string
	err   error
	asked int
}

func (l *sandboxLister) ListPodSandbox(_ context.Context, filter *runtimeapi.PodSandboxFilter) (sandboxes []*runtimeapi.PodSandbox, err error) {
	l.asked++
	if filter.GetState().GetState() != runtimeapi.PodSandboxState_SANDBOX_READY {
		return nil, errors.New("sandboxes of terminated pods are not asked for")
	}
	for _, name := range l.names {
		sandboxes = append(sandboxes, &runtimeapi.PodSandbox{Metadata: &runtimeapi.PodSandboxMetadata{Namespace: "kube-system", Name: name}})
	}
	return sandboxes, l.err
}

func enableStaticPodMaintenance(t *testing.T, enabled bool) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: enabled, features.DeclarativeNodeMaintenance: enabled, features.NodeMaintenanceAwareKubelet: enabled,
	})
}

// What a kubelet does at its start about static pods that the last one has stopped.
func TestLoadStaticPodMaintenance(t *testing.T) {
	const (
		stateFile    = "node_maintenance_state"
		shutdownFile = "node_shutdown_maintenance_state"
		state        = `{"version":1,"pods":[{"namespace":"kube-system","name":"away","state":"held"},{"namespace":"kube-system","name":"back","state":"held"}]}`
	)
	for name, test := range map[string]struct {
		state, shutdown     string
		disabled, noClient  bool
		noMachine, noLister bool
		machineError        error
		lister              sandboxLister
		// withheld are the names of the pods that are withheld.
		withheld string
		// asks is whether the runtime is asked, removed whether there is no checkpoint afterwards.
		asks, removed, loadError bool
	}{
		"two pods":                   {state: state, withheld: "away back", asks: true},
		"a pod runs":                 {state: state, lister: sandboxLister{names: []string{"back", "other"}}, withheld: "away", asks: true},
		"the runtime does not work":  {state: state, lister: sandboxLister{names: []string{"back"}, err: errors.New("refused")}, withheld: "away back", asks: true},
		"no runtime":                 {state: state, noLister: true, withheld: "away back"},
		"no state":                   {removed: true},
		"the gate is off":            {state: state, disabled: true, removed: true},
		"no API server":              {state: state, noClient: true, removed: true},
		"the state is corrupt":       {state: state[1:], loadError: true},
		"the last shutdown is over":  {state: state, shutdown: `{"version":1,"bootID":"before","isOwn":true}`, asks: true},
		"the shutdown of this boot":  {state: state, shutdown: `{"version":1,"bootID":"now","isOwn":true}`, withheld: "away back", asks: true},
		"no shutdown":                {state: state, shutdown: `{"version":1}`, withheld: "away back", asks: true},
		"the shutdown has ended":     {state: state, shutdown: `{"version":1,"isOwn":true}`, withheld: "away back", asks: true},
		"the shutdown is corrupt":    {state: state, shutdown: `{`, asks: true},
		"an administrator drains":    {state: state, shutdown: `{"version":1,"bootID":"before"}`, withheld: "away back", asks: true},
		"the boot is unknown":        {state: state, shutdown: `{"version":1,"bootID":"before","isOwn":true}`, machineError: errors.New("no ID"), withheld: "away back", asks: true},
		"the machine is not watched": {state: state, shutdown: `{"version":1,"bootID":"before","isOwn":true}`, noMachine: true, withheld: "away back", asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			enableStaticPodMaintenance(t, !test.disabled)
			directory := t.TempDir()
			for file, content := range map[string]string{stateFile: test.state, shutdownFile: test.shutdown} {
				if content != "" {
					writeState(t, directory, file, content)
				}
			}
			d := &Dependencies{}
			if !test.noClient {
				d.KubeClient = fake.NewClientset()
			}
			if !test.noMachine {
				d.CAdvisorInterface = bootedMachine{bootID: "now", err: test.machineError}
			}
			if !test.noLister {
				d.RemoteRuntimeService = &test.lister
			}
			d.loadStaticPodMaintenance(t.Context(), directory)
			if isNil := d.staticPodMaintenance == nil; isNil != (test.disabled || test.noClient) {
				t.Fatalf("the kubelet does not take part in maintenances: %v", isNil)
			}
			var withheld []string
			for _, name := range []string{"away", "back"} {
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
				if m := d.staticPodMaintenance; m != nil && m.holds.Withheld(pod) {
					withheld = append(withheld, name)
				}
			}
			if got := strings.Join(withheld, " "); got != test.withheld {
				t.Errorf("withheld are %q, want %q", got, test.withheld)
			}
			if _, err := os.Stat(filepath.Join(directory, stateFile)); (err != nil) != test.removed {
				t.Errorf("the checkpoint: %v", err)
			}
			if m := d.staticPodMaintenance; m != nil && (m.loadError != nil) != test.loadError {
				t.Errorf("error %v", m.loadError)
			}
			if got := test.lister.asked > 0; got != test.asks {
				t.Errorf("the runtime is asked: %v", got)
			}
		})
	}
}

// silentClient is a client of an API server that does not answer.
type silentClient struct {
	clientset.Interface
	corev1client.CoreV1Interface
	corev1client.NodeInterface
}

func (c silentClient) CoreV1() corev1client.CoreV1Interface { return c }
func (c silentClient) Nodes() corev1client.NodeInterface    { return c }
func (c silentClient) RESTClient() rest.Interface           { return nil }
func (silentClient) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*v1.Node, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestNodeOfStaticPodMaintenance(t *testing.T) {
	kl := &Kubelet{nodeName: "node", heartbeatClient: fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})}
	if node, err := kl.getNodeFromAPIServer(t.Context()); err != nil || node.Name != "node" {
		t.Errorf("node %v, error %v", node, err)
	}
	synctest.Test(t, func(t *testing.T) {
		kl := &Kubelet{nodeName: "node", heartbeatClient: silentClient{}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		if _, err := kl.getNodeFromAPIServer(ctx); err == nil || time.Since(start) > 10*time.Second {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
	})
}

// uidRecorder adds to events the UID of the object, which kubectl describe needs.
type uidRecorder struct {
	*record.FakeRecorder
}

func (r uidRecorder) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	r.FakeRecorder.Eventf(object, eventType, reason, format+" (UID %q)", append(args, object.(*v1.ObjectReference).UID)...)
}

// A checkpoint that cannot be read is an event of the node.
func TestStartStaticPodMaintenance(t *testing.T) {
	enableStaticPodMaintenance(t, true)
	testKubelet := newTestKubelet(t, false)
	defer testKubelet.Cleanup()
	kl := testKubelet.kubelet
	kl.nodeRef = &v1.ObjectReference{Kind: "Node", Name: string(kl.nodeName)}
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	kl.nodeLister = corelisters.NewNodeLister(nodes)
	directory := t.TempDir()
	writeState(t, directory, "node_maintenance_state", "")
	recorder := uidRecorder{record.NewFakeRecorder(10)}
	d := &Dependencies{KubeClient: fake.NewClientset(), Recorder: recorder}
	kl.startStaticPodMaintenance(t.Context(), d)
	if _, isHeld := kl.mirrorPodClient.(*heldMirrorClient); isHeld {
		t.Error("mirror pods are held without the feature")
	}
	d.loadStaticPodMaintenance(t.Context(), directory)
	kl.startStaticPodMaintenance(t.Context(), d)
	// The node is seen later.
	if err := nodes.Add(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: string(kl.nodeName), UID: "u1"}}); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-recorder.Events:
		if !strings.HasPrefix(event, "Warning "+nodemaintenance.FailedReason) || !strings.HasSuffix(event, `(UID "u1")`) {
			t.Errorf("unexpected event %q", event)
		}
	case <-time.After(time.Minute):
		t.Error("no event")
	}
	if _, isHeld := kl.mirrorPodClient.(*heldMirrorClient); !isHeld {
		t.Error("mirror pods are deleted at once")
	}
	// No maintenance of the node includes the pod, which was stopped before.
	const state = `{"version":1,"pods":[{"namespace":"kube-system","name":"away","state":"held"}]}`
	writeState(t, directory, "node_maintenance_state", state)
	d.loadStaticPodMaintenance(t.Context(), directory)
	d.PodConfig = config.NewPodConfig(recorder, nil)
	kl.startStaticPodMaintenance(t.Context(), d)
	holds := d.staticPodMaintenance.holds
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return holds.IsEmpty(), nil }); err != nil {
		t.Errorf("the pod is not released: %v", err)
	}
}

// A static pod that returns once it is forgotten is counted when the kubelet admits other pods.
func TestReturningStaticPodIsCounted(t *testing.T) {
	tCtx := ktesting.Init(t)
	testKubelet := newTestKubelet(t, false)
	defer testKubelet.Cleanup()
	kl := testKubelet.kubelet
	kl.nodeLister = testNodeLister{nodes: []*v1.Node{{
		ObjectMeta: metav1.ObjectMeta{Name: string(kl.nodeName)},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceMemory: *resource.NewQuantity(100, resource.BinarySI), v1.ResourcePods: *resource.NewQuantity(40, resource.DecimalSI),
		}},
	}}}
	workers, _, _ := createPodWorkers(tCtx.Logger())
	kl.podWorkers = workers
	spec := v1.PodSpec{NodeName: string(kl.nodeName), Containers: []v1.Container{{
		Name: "app", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("90")}},
	}}}
	static, other := podWithUIDNameNsSpec("1", "static", "default", spec), podWithUIDNameNsSpec("2", "other", "default", spec)
	static.Annotations = map[string]string{kubetypes.ConfigSourceAnnotationKey: kubetypes.FileSource}
	expect := func(when string, want bool) {
		t.Helper()
		drainAllWorkers(workers)
		if got := kl.isForgotten(static.UID); got != want {
			t.Errorf("%s, the pod is forgotten: %v, want %v", when, got, want)
		}
	}
	kl.HandlePodAdditions(tCtx, []*v1.Pod{static})
	workers.SyncKnownPods(tCtx.Logger(), []*v1.Pod{static})
	expect("while it runs", false) // Its removal may still be on its way.
	kl.HandlePodRemoves(tCtx, []*v1.Pod{static})
	if kl.isForgotten(static.UID) {
		t.Error("the pod is forgotten while it ends")
	}
	expect("when it has ended", false)
	workers.SyncKnownPods(tCtx.Logger(), nil)
	expect("after the next cleanup", true)
	kl.HandlePodAdditions(tCtx, []*v1.Pod{static})
	kl.HandlePodAdditions(tCtx, []*v1.Pod{other})
	checkPodStatus(t, kl, other, v1.PodFailed)
}
