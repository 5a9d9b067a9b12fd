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

package nodemaintenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

const (
	shutdownNode        = "n1"
	shutdownMaintenance = "graceful-shutdown-n1"
)

// machine simulates what is around the Shutdown of a node, in the time of a synctest bubble: logind,
// the API server, the controllers and the pods.
type machine struct {
	t         *testing.T
	client    *fake.Clientset
	directory string
	holds     *Holds
	recorder  *record.FakeRecorder
	shutdown  *Shutdown
	stop      context.CancelFunc
	events    chan bool
	uids      int

	lock sync.Mutex
	// bootID is that of the current boot.
	bootID string
	// node is the node as the kubelet sees it.
	node v1.Node
	// pods are the pods that are left, with the time that they need to leave.
	pods map[string]time.Duration
	// hidden are pods of the runtime that the kubelet does not see.
	hidden []types.NamespacedName
	// nodeError is why the kubelet does not see the node.
	nodeError error
	// frozen is why the API server does not answer, idle whether no controller runs.
	frozen error
	idle   bool
	// answerTime is how long the API server takes to create a maintenance, endTime how long to end it.
	answerTime, endTime time.Duration
	// runtimeError is why the runtime does not answer.
	runtimeError error
	// runtimeHangs is whether it answers at all.
	runtimeHangs bool
	// shuttingDown is whether the node counts as shutting down, terminations how often that began.
	shuttingDown bool
	terminations int
	// termination is how long the termination of all pods takes.
	termination time.Duration
	outcome     *ShutdownOutcome
	syncs       int
}

// onMachine runs a test in a bubble.
func onMachine(t *testing.T, pods map[string]time.Duration, test func(*machine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &machine{
			t: t, client: fake.NewClientset(), directory: t.TempDir(), recorder: record.NewFakeRecorder(10000), pods: pods,
			bootID: "boot-1", node: v1.Node{ObjectMeta: metav1.ObjectMeta{Name: shutdownNode}}, termination: 10 * time.Second,
		}
		m.client.PrependReactor("*", "nodemaintenances", m.react)
		var err error
		if m.holds, err = LoadHolds(m.directory); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{})) // The zero value discards.
		defer cancel()
		go m.runControllers(ctx)
		m.startKubelet()
		synctest.Wait() // What the test changes is not there when the kubelet starts.
		test(m)
		m.stopKubelet()
	})
}

// react makes the API server not answer, and gives new objects their UIDs.
func (m *machine) react(action clienttesting.Action) (bool, runtime.Object, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.frozen != nil {
		return true, nil, m.frozen
	}
	if create, ok := action.(clienttesting.CreateAction); ok {
		m.uids++
		create.GetObject().(*coordinationv1alpha1.NodeMaintenance).UID = types.UID(fmt.Sprintf("uid-%d", m.uids))
	}
	return false, nil, nil
}

// slowClient creates and ends maintenances slowly. The reactors of a fake client cannot wait: it is locked.
type slowClient struct {
	clientset.Interface
	m *machine
}

type slowGroup struct {
	coordinationclient.CoordinationV1alpha1Interface
	m *machine
}

type slowMaintenances struct {
	coordinationclient.NodeMaintenanceInterface
	m *machine
}

func (c slowClient) CoordinationV1alpha1() coordinationclient.CoordinationV1alpha1Interface {
	return slowGroup{c.Interface.CoordinationV1alpha1(), c.m}
}

func (g slowGroup) NodeMaintenances() coordinationclient.NodeMaintenanceInterface {
	return slowMaintenances{g.CoordinationV1alpha1Interface.NodeMaintenances(), g.m}
}

func (s slowMaintenances) Create(ctx context.Context, obj *coordinationv1alpha1.NodeMaintenance, options metav1.CreateOptions) (*coordinationv1alpha1.NodeMaintenance, error) {
	if err := s.wait(ctx, &s.m.answerTime); err != nil {
		return nil, err
	}
	return s.NodeMaintenanceInterface.Create(ctx, obj, options)
}

func (s slowMaintenances) Patch(ctx context.Context, name string, patchType types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*coordinationv1alpha1.NodeMaintenance, error) {
	if err := s.wait(ctx, &s.m.endTime); err != nil {
		return nil, err
	}
	return s.NodeMaintenanceInterface.Patch(ctx, name, patchType, data, options, subresources...)
}

func (s slowMaintenances) wait(ctx context.Context, answerTime *time.Duration) error {
	s.m.lock.Lock()
	after := time.After(*answerTime)
	s.m.lock.Unlock()
	select {
	case <-after:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startKubelet starts the kubelet. logind has not told it about a shutdown yet.
func (m *machine) startKubelet() {
	ctx, cancel := context.WithCancel(klog.NewContext(m.t.Context(), klog.Logger{}))
	m.shutdown = NewShutdown(ctx, ShutdownConfig{
		Client: slowClient{m.client, m}, NodeName: shutdownNode, Holds: m.holds, Directory: m.directory, Recorder: m.recorder,
		BootID: m.getBootID, Node: m.getNode, ActivePods: m.activePods, RunningPods: m.runningPods,
		SyncNodeStatus: func(context.Context) { m.lock.Lock(); defer m.lock.Unlock(); m.syncs++ },
		NodeRef:        &v1.ObjectReference{Kind: "Node", Name: shutdownNode},
	})
	m.events, m.outcome = make(chan bool, 1), nil
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.shutdown.Run(ctx)
	}()
	m.stop = func() {
		cancel()
		<-done
	}
}

func (m *machine) stopKubelet() {
	m.stop()
	synctest.Wait()
}

// reboot starts the machine and the kubelet, and waits until the kubelet has started.
func (m *machine) reboot(bootID string) {
	m.stopKubelet()
	m.lock.Lock()
	m.bootID, m.shuttingDown = bootID, false
	m.lock.Unlock()
	m.startKubelet()
	m.run(1)
}

// shutDown begins a shutdown, as logind and the manager of shutdowns do.
func (m *machine) shutDown(limit time.Duration) {
	ctx, cancel := context.WithCancel(klog.NewContext(m.t.Context(), klog.Logger{}))
	m.outcome = nil
	done := make(chan struct{})
	go func() {
		defer close(done)
		outcome := m.shutdown.Drain(ctx, ShutdownRequest{Events: m.events, Limit: limit, Priorities: []int32{0, 2000000000}, Terminate: m.terminate})
		m.lock.Lock()
		defer m.lock.Unlock()
		m.outcome = &outcome
		if outcome == ShutdownCanceled && m.shuttingDown {
			m.t.Error("the node counts as shutting down after the cancellation")
		}
	}()
	stop := m.stop
	m.stop = func() {
		cancel()
		<-done
		stop()
	}
	synctest.Wait()
}

// terminate terminates the pods together.
func (m *machine) terminate(ctx context.Context) {
	m.lock.Lock()
	m.shuttingDown = true
	m.terminations++
	m.lock.Unlock()
	select {
	case <-time.After(m.termination):
		m.lock.Lock()
		clear(m.pods)
		m.lock.Unlock()
	case <-ctx.Done():
		time.Sleep(time.Millisecond)
		m.lock.Lock()
		m.shuttingDown = false
		m.lock.Unlock()
	}
}

// runControllers processes the maintenance every second: all pods leave together.
func (m *machine) runControllers(ctx context.Context) {
	for ctx.Err() == nil {
		m.lock.Lock()
		if m.frozen == nil && !m.idle {
			m.drainNode()
		}
		m.lock.Unlock()
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

func (m *machine) drainNode() {
	message := ""
	for _, name := range []string{shutdownMaintenance, "other"} {
		if found := m.maintenance(name); found != nil && !isEnded(found) && found.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
			message = "Draining"
		}
	}
	if message == "" {
		m.node.Status.MaintenanceStatus = nil
		return
	}
	if m.node.Status.MaintenanceStatus == nil {
		m.node.Status.MaintenanceStatus = &v1.MaintenanceStatus{DrainMessage: message}
		return
	}
	for name := range m.pods {
		if m.pods[name] -= time.Second; m.pods[name] <= 0 {
			delete(m.pods, name)
		}
	}
}

// maintenance returns a maintenance of the API server, or nil. It does not use the client, which
// counts the calls of the kubelet.
func (m *machine) maintenance(name string) *coordinationv1alpha1.NodeMaintenance {
	obj, err := m.client.Tracker().Get(coordinationv1alpha1.SchemeGroupVersion.WithResource("nodemaintenances"), "", name)
	if err != nil {
		return nil
	}
	return obj.(*coordinationv1alpha1.NodeMaintenance)
}

// put makes the API server have this maintenance.
func (m *machine) put(maintenance *coordinationv1alpha1.NodeMaintenance) {
	resource := coordinationv1alpha1.SchemeGroupVersion.WithResource("nodemaintenances")
	err := m.client.Tracker().Create(resource, maintenance, "")
	if err != nil {
		err = m.client.Tracker().Update(resource, maintenance, "")
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) remove(name string) {
	if err := m.client.Tracker().Delete(coordinationv1alpha1.SchemeGroupVersion.WithResource("nodemaintenances"), "", name); err != nil {
		m.t.Fatal(err)
	}
}

// set changes the world.
func (m *machine) set(change func()) {
	m.lock.Lock()
	defer m.lock.Unlock()
	change()
}

func (m *machine) getBootID() string {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.bootID
}

func (m *machine) getNode() (*v1.Node, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.nodeError != nil {
		return nil, m.nodeError
	}
	return m.node.DeepCopy(), nil
}

func (m *machine) activePods() (pods []*v1.Pod) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for name := range m.pods {
		pods = append(pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name}})
	}
	return pods
}

func (m *machine) runningPods(ctx context.Context) ([]types.NamespacedName, error) {
	m.lock.Lock()
	hangs := m.runtimeHangs
	m.lock.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.hidden, m.runtimeError
}

// run lets time pass, and waits for what happens at its end.
func (m *machine) run(seconds int) {
	time.Sleep(time.Duration(seconds) * time.Second)
	synctest.Wait()
}

// calls returns the verbs of the calls of the API server, and forgets them.
func (m *machine) calls() string {
	var verbs []string
	for _, action := range m.client.Actions() {
		verbs = append(verbs, action.GetVerb())
	}
	m.client.ClearActions()
	return strings.Join(slices.Compact(verbs), " ")
}

func (m *machine) expectOutcome(want ShutdownOutcome) {
	m.t.Helper()
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.outcome == nil {
		m.t.Errorf("the drain has not ended")
	} else if *m.outcome != want {
		m.t.Errorf("outcome %v, want %v", *m.outcome, want)
	}
}

func (m *machine) expectDraining() {
	m.t.Helper()
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.outcome != nil {
		m.t.Fatalf("the drain has ended with %v", *m.outcome)
	}
}

// expectStage expects the stage of the maintenance of the shutdown, or that it does not exist.
func (m *machine) expectStage(want coordinationv1alpha1.NodeMaintenanceStage) {
	m.t.Helper()
	var got coordinationv1alpha1.NodeMaintenanceStage
	if found := m.maintenance(shutdownMaintenance); found != nil {
		got = found.Spec.Stage
	}
	if got != want {
		m.t.Errorf("the maintenance is in the stage %q, want %q", got, want)
	}
}

// expectEvents removes the events, and expects these reasons.
func (m *machine) expectEvents(want ...string) {
	m.t.Helper()
	var got []string
	for len(m.recorder.Events) > 0 {
		got = append(got, strings.Fields(<-m.recorder.Events)[1])
	}
	if !slices.Equal(got, want) {
		m.t.Errorf("events %q, want %q", got, want)
	}
}

var errRefusedConnection = errors.New("connection refused")

const (
	stageDrain    = coordinationv1alpha1.NodeMaintenanceStageDrain
	stageComplete = coordinationv1alpha1.NodeMaintenanceStageComplete
)
