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

package nodeshutdown

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance"
	"k8s.io/kubernetes/pkg/kubelet/nodeshutdown/systemd"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
)

// fakeLogind is logind, which delays a shutdown while the kubelet has a lock. Locks are numbers of
// files, of which the system uses the lowest that is free.
type fakeLogind struct {
	t     *testing.T
	delay time.Duration

	lock         sync.Mutex
	shuttingDown bool
	files        map[systemd.InhibitLock]bool
	events       chan bool
	// isSimple means that it does not say whether it shuts down.
	isSimple bool
	// isBusy means that it grants no lock.
	isBusy bool
	// stored are the files that systemd keeps while the kubelet restarts, if it does: nil otherwise.
	stored map[systemd.InhibitLock]bool
}

// fakeStore is the store of systemd for one process of the kubelet.
type fakeStore struct{ *fakeLogind }

func (s fakeStore) take() []systemd.InhibitLock {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Sorted(maps.Keys(s.stored))
}

func (s fakeStore) put(file systemd.InhibitLock) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.stored != nil {
		s.stored[file] = true
	}
}

func (s fakeStore) remove(file systemd.InhibitLock) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.stored, file)
}

// expectStored expects that systemd keeps so many locks.
func (l *fakeLogind) expectStored(want int) {
	l.t.Helper()
	l.lock.Lock()
	defer l.lock.Unlock()
	if len(l.stored) != want {
		l.t.Errorf("systemd keeps %d locks, want %d", len(l.stored), want)
	}
}

// fakeConnection is a connection to fakeLogind.
type fakeConnection struct{ *fakeLogind }

// simpleConnection is one to a logind that does not say whether it shuts down.
type simpleConnection struct{ dbusInhibiter }

func (l *fakeLogind) CurrentInhibitDelay() (time.Duration, error) { return l.delay, nil }
func (l *fakeLogind) OverrideInhibitDelay(time.Duration) error    { return nil }
func (l *fakeLogind) ReloadLogindConf() error                     { return nil }
func (l *fakeLogind) Close() error                                { return nil }

func (l *fakeLogind) MonitorShutdown(klog.Logger) (<-chan bool, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.events, nil
}

func (l *fakeConnection) PreparingForShutdown() (isPreparing bool, err error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.shuttingDown, nil
}

func (l *fakeLogind) InhibitShutdown() (systemd.InhibitLock, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.shuttingDown || l.isBusy {
		return 0, errors.New("operation in progress")
	}
	for file := systemd.InhibitLock(7); ; file++ {
		if !l.files[file] {
			l.files[file] = true
			return file, nil
		}
	}
}

// setBusy sets whether logind grants no lock.
func (l *fakeLogind) setBusy(isBusy bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.isBusy = isBusy
}

func (l *fakeLogind) ReleaseInhibitLock(file systemd.InhibitLock) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	if !l.files[file] {
		l.t.Errorf("file %d is closed, which is not open", file)
	}
	delete(l.files, file)
	return nil
}

// connect returns a new connection. The one before gets no more events.
func (l *fakeLogind) connect() dbusInhibiter {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.events = make(chan bool, 1)
	if l.isSimple {
		return simpleConnection{l}
	}
	return &fakeConnection{l}
}

// say says whether the machine shuts down.
func (l *fakeLogind) say(isShuttingDown bool) {
	l.lock.Lock()
	l.shuttingDown = isShuttingDown
	events := l.events
	l.lock.Unlock()
	events <- isShuttingDown
	synctest.Wait()
}

// disconnect ends the connection, which does not know what happens until the next.
func (l *fakeLogind) disconnect(isShuttingDown bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	close(l.events)
	l.shuttingDown = isShuttingDown
}

// forget makes logind forget locks that nobody keeps, and shutdowns, as far as it has to.
func (l *fakeLogind) forget(isShuttingDown bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	maps.DeleteFunc(l.files, func(file systemd.InhibitLock, _ bool) bool { return !l.stored[file] })
	l.shuttingDown = isShuttingDown
}

func (l *fakeLogind) expectLocks(want int) {
	l.t.Helper()
	l.lock.Lock()
	defer l.lock.Unlock()
	if len(l.files) != want {
		l.t.Errorf("the kubelet has %d locks, want %d", len(l.files), want)
	}
}

// testNode is a node with a manager of shutdowns. Its pods leave when the test says so.
type testNode struct {
	*testing.T
	logind    *fakeLogind
	client    *fake.Clientset
	recorder  *record.FakeRecorder
	directory string
	manager   Manager
	shutdown  *nodemaintenance.Shutdown
	stop      func()

	lock sync.Mutex
	pods []*v1.Pod
	// killed are the pods that were terminated without a maintenance, with their grace periods.
	killed []string
	// killing is how long that takes.
	killing time.Duration
	// isRunning is whether the kubelet runs.
	isRunning bool
	// syncs is how often the status of the node was written.
	syncs int
	// isAway means that the API server does not answer.
	isAway bool
	// isPlain means that the node is not drained before it shuts down.
	isPlain bool
}

// uidRecorder adds to events the UID of the object, which kubectl describe needs.
type uidRecorder struct {
	*record.FakeRecorder
}

func (r uidRecorder) Eventf(object apiruntime.Object, eventType, reason, format string, args ...any) {
	r.FakeRecorder.Eventf(object, eventType, reason, format+" (UID %q)", append(args, object.(*v1.ObjectReference).UID)...)
}

// onNode runs a test in a bubble. Pods need the given time to terminate.
func onNode(t *testing.T, delay time.Duration, test func(*testNode)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		original := systemDbus
		n := &testNode{
			T: t, logind: &fakeLogind{t: t, delay: delay, files: map[systemd.InhibitLock]bool{}}, client: fake.NewClientset(),
			recorder: record.NewFakeRecorder(10000), directory: t.TempDir(), killing: 8 * time.Second,
			pods: []*v1.Pod{makePod("critical", 2000000000, nil), makePod("a", 0, nil), makePod("b", 0, nil)},
		}
		systemDbus = n.connect
		n.client.PrependReactor("*", "*", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			n.lock.Lock()
			defer n.lock.Unlock()
			if n.isAway {
				return true, nil, errors.New("connection refused")
			}
			return false, nil, nil
		})
		n.start()
		test(n)
		n.stop()
		n.run(60) // What terminates has terminated.
		systemDbus = original
	})
}

// start starts the kubelet.
func (n *testNode) start() {
	ctx, cancel := context.WithCancel(klog.NewContext(n.Context(), klog.Logger{})) // The zero value discards.
	n.setRunning(true)
	n.stop = func() {
		n.setRunning(false)
		cancel()
		n.run(2)
	}
	holds, err := nodemaintenance.LoadHolds(n.directory)
	if err != nil {
		n.Fatal(err)
	}
	ref := &v1.ObjectReference{Kind: "Node", Name: "n1"}
	shutdown := nodemaintenance.NewShutdown(ctx, nodemaintenance.ShutdownConfig{
		Client: n.client, NodeName: "n1", Holds: holds, Directory: n.directory, Recorder: n.recorder, NodeRef: ref,
		BootID:         func() string { return "boot-1" },
		Node:           n.node,
		ActivePods:     n.activePods,
		RunningPods:    func(context.Context) ([]types.NamespacedName, error) { return nil, nil },
		SyncNodeStatus: func(context.Context) {},
		IsTerminating:  func() bool { return n.manager.ShutdownStatus() != nil },
	})
	n.shutdown = shutdown
	n.manager = NewManager(&Config{
		Recorder: uidRecorder{n.recorder}, NodeRef: ref, VolumeManager: volumemanager.NewFakeVolumeManager(nil, 0, nil, false),
		GetPodsFunc: n.activePods, KillPodFunc: n.kill, SyncNodeStatusFunc: n.sync, StateDirectory: n.directory,
		ShutdownGracePeriodRequested: 30 * time.Second, ShutdownGracePeriodCriticalPods: 10 * time.Second,
	})
	if !Watch(n.manager, shutdown, !n.isPlain) {
		n.Fatal("the manager does not wait for shutdowns")
	}
	n.manager.(*managerImpl).draining.locks = newInhibitLocks(fakeStore{n.logind})
	go shutdown.Run(ctx)
	if err := n.manager.Start(ctx); err != nil {
		n.Error(err)
	}
	synctest.Wait()
}

func (n *testNode) sync(context.Context) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.syncs++
}

func (n *testNode) setRunning(isRunning bool) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.isRunning = isRunning
}

// connect connects to logind. A manager whose context is canceled never stops to try that again, so
// its goroutine is ended here.
func (n *testNode) connect() (dbusInhibiter, error) {
	n.lock.Lock()
	isRunning := n.isRunning
	n.lock.Unlock()
	if !isRunning {
		runtime.Goexit()
	}
	return n.logind.connect(), nil
}

// node returns a node that a maintenance drains if there is one.
func (n *testNode) node() (*v1.Node, error) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}}
	if n.hasMaintenance("Drain") {
		node.Status.MaintenanceStatus = &v1.MaintenanceStatus{DrainMessage: "Draining"}
	}
	return node, nil
}

func (n *testNode) hasMaintenance(stage string) bool {
	obj, err := n.client.Tracker().Get(maintenances, "", "graceful-shutdown-n1")
	return err == nil && stageOf(obj) == stage
}

func (n *testNode) activePods() []*v1.Pod {
	n.lock.Lock()
	defer n.lock.Unlock()
	return append([]*v1.Pod{}, n.pods...)
}

// kill terminates a pod, as the kubelet does without a maintenance.
func (n *testNode) kill(pod *v1.Pod, _ bool, gracePeriod *int64, _ func(*v1.PodStatus)) error {
	n.lock.Lock()
	n.killed = append(n.killed, fmt.Sprintf("%s/%d", pod.Name, *gracePeriod))
	n.lock.Unlock()
	time.Sleep(n.killing)
	n.remove(pod.Name)
	return nil
}

// remove lets pods leave.
func (n *testNode) remove(names ...string) {
	n.lock.Lock()
	defer n.lock.Unlock()
	var left []*v1.Pod
	for _, pod := range n.pods {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+pod.Name+" ") {
			left = append(left, pod)
		}
	}
	n.pods = left
}

func (n *testNode) setPods(pods []*v1.Pod) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.pods = pods
}

func (n *testNode) setAway(isAway bool) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.isAway = isAway
}

func (n *testNode) run(seconds int) {
	time.Sleep(time.Duration(seconds) * time.Second)
	synctest.Wait()
}

// expectServing expects that the node is ready and admits pods, or not.
func (n *testNode) expectServing(want bool) {
	n.Helper()
	if got := n.manager.ShutdownStatus() == nil; got != want || n.manager.Admit(n.Context(), nil).Admit != want {
		n.Errorf("the node serves: %t, want %t", got, want)
	}
}

// expectSyncs expects that the status of the node was written this many times, since it is not ready
// or is ready again.
func (n *testNode) expectSyncs(want int) {
	n.Helper()
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.syncs != want {
		n.Errorf("%d writes of the status of the node, want %d", n.syncs, want)
	}
}

func (n *testNode) expectEvent(want string) {
	n.Helper()
	for len(n.recorder.Events) > 0 {
		if event := <-n.recorder.Events; strings.Contains(event, want) {
			return
		}
	}
	n.Errorf("no event %q", want)
}

// expectKilled expects that these pods were terminated without a maintenance, with these grace
// periods. Pods of one group are in any order, so they are sorted.
func (n *testNode) expectKilled(want ...string) {
	n.Helper()
	n.lock.Lock()
	defer n.lock.Unlock()
	if got := slices.Sorted(slices.Values(n.killed)); !slices.Equal(got, want) {
		n.Errorf("terminated %q, want %q", got, want)
	}
}
