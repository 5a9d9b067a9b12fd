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
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	testingclock "k8s.io/utils/clock/testing"
)

var errNoAnswer = errors.New("timeout")

// askedWish is a wish, and whether its stop has begun.
type askedWish struct {
	*wish
	hasBegun bool
}

// staticPod is a static pod on the simulated node.
type staticPod struct {
	name     string
	priority int32
	// grace is how long its containers take to terminate.
	grace time.Duration

	// manifest and visible are whether the manifest exists, and whether the kubelet sees it.
	manifest, visible bool
	// containers is whether containers run, terminates when they will have ended.
	containers bool
	terminates time.Time
	// terminating is whether the kubelet ends the pod, or still knows that it has: a second after the
	// end of its containers, and as long as it lingers.
	terminating bool
	lingers     time.Duration
	// mirror is the mirror pod in the API server.
	mirror *v1.Pod
	// finalizer is whether a finalizer keeps the mirror pod in the API server.
	finalizer bool
}

// world simulates the rest of the kubelet, the API server and the controllers, second by second.
// Each part may depend on a static pod of the node.
type world struct {
	t         *testing.T
	clock     *testingclock.FakeClock
	directory string
	pods      map[string]*staticPod
	requests  cache.SharedIndexInformer
	recorder  *record.FakeRecorder
	manager   *Manager
	uids      int

	// targets are those of the maintenances, and node is the node as the kubelet sees it.
	targets []v1.DrainPlanEntry
	node    *v1.Node
	// apiNode is the node in the API server.
	apiNode *v1.Node
	// frozen is whether the API server does not answer, idle whether no controller runs, deleted
	// whether the node does not exist.
	frozen, idle, deleted bool
	// unreadable is whether the kubelet does not see changes of requests.
	unreadable bool
	// api and controllers are the static pods which those need.
	api, controllers string

	// asked are the wishes of the interceptors, by the UIDs of the mirror pods.
	asked map[types.UID]*askedWish
	ctx   context.Context
	// stopped are the names of the pods whose stop has begun, in order.
	stopped []string
	// gets and merges count calls of the manager.
	gets, merges int
}

func newWorld(t *testing.T, pods ...*staticPod) *world {
	t.Helper()
	w := &world{
		t: t, clock: testingclock.NewFakeClock(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)), directory: t.TempDir(),
		ctx:     klog.NewContext(t.Context(), klog.Logger{}), // The zero value discards.
		apiNode: &v1.Node{}, pods: map[string]*staticPod{}, recorder: record.NewFakeRecorder(1000000),
		requests: informers.NewSharedInformerFactory(fake.NewClientset(), 0).Coordination().V1alpha1().EvictionRequests().Informer(),
	}
	w.recorder.IncludeObject = true
	for _, pod := range pods {
		pod.manifest = true
		w.pods[pod.name] = pod
	}
	w.startKubelet()
	w.run(3)
	return w
}

// startKubelet starts the kubelet, also after a crash.
func (w *world) startKubelet() {
	w.t.Helper()
	holds, err := LoadHolds(w.directory)
	if err != nil {
		w.t.Fatal(err)
	}
	w.node, w.asked = nil, map[types.UID]*askedWish{}
	w.manager = NewManager(Config{
		Holds: holds, Pods: w, Clock: w.clock, Recorder: w.recorder, NodeRef: &v1.ObjectReference{Kind: "Node", Name: "node"},
		Node: func() (*v1.Node, error) {
			if w.node == nil {
				return nil, errors.New("not synced")
			}
			return w.node, nil
		},
		HasContainers: func(uid types.UID) bool { return w.pods[string(uid)].containers },
		GetNode: func(context.Context) (*v1.Node, error) {
			w.gets++
			if !w.answers() {
				return nil, errNoAnswer
			}
			if w.deleted {
				return nil, apierrors.NewNotFound(v1.Resource("nodes"), "node")
			}
			return w.apiNode, nil
		},
		GetRequest: func(_ context.Context, namespace, name string) (*coordinationv1alpha1.EvictionRequest, error) {
			if !w.answers() {
				return nil, errNoAnswer
			}
			obj, exists, err := w.requests.GetIndexer().GetByKey(namespace + "/" + name)
			if err != nil || !exists {
				return nil, apierrors.NewNotFound(coordinationv1alpha1.Resource("evictionrequests"), name)
			}
			return obj.(*coordinationv1alpha1.EvictionRequest), nil
		},
		IsForgotten: func(uid types.UID) bool { pod := w.pods[string(uid)]; return !pod.containers && !pod.terminating },
		Merge:       func(context.Context) { w.mergeAgain() },
	})
	for _, pod := range w.pods {
		pod.terminating = false
	}
	w.merge()
}

// mergeAgain is a merge for the manager.
func (w *world) mergeAgain() {
	w.t.Helper()
	terminating := map[*staticPod]bool{}
	for _, pod := range w.pods {
		terminating[pod] = pod.terminating && !pod.visible
	}
	w.merge()
	for pod := range terminating {
		if terminating[pod] && pod.visible {
			w.t.Errorf("%s is back before the kubelet has forgotten it: it is not admitted again", pod.name)
		}
	}
}

func (w *world) merge() {
	w.merges++
	for _, pod := range w.pods {
		pod.visible = pod.manifest && !w.manager.Holds.Withheld(pod.object())
	}
}

func (w *world) answers() bool { return !w.frozen && (w.api == "" || w.pods[w.api].containers) }

func (w *world) control() bool {
	return w.answers() && !w.idle && (w.controllers == "" || w.pods[w.controllers].containers)
}

func (p *staticPod) object() *v1.Pod {
	pod := newMirrorPod(p.name)
	pod.UID, pod.Annotations, pod.Spec.Priority = types.UID(p.name), nil, nil
	return pod
}

// GetPodsAndMirrorPods implements Pods.
func (w *world) GetPodsAndMirrorPods() (pods, mirrors []*v1.Pod, orphans []string) {
	for _, pod := range w.pods {
		if pod.mirror != nil {
			mirrors = append(mirrors, pod.mirror)
		}
	}
	return nil, mirrors, nil
}

// GetPodByMirrorPod implements Pods.
func (w *world) GetPodByMirrorPod(mirror *v1.Pod) (*v1.Pod, bool) {
	pod := w.pods[mirror.Name]
	return pod.object(), pod.visible
}

// run simulates this number of seconds.
func (w *world) run(seconds int) {
	w.t.Helper()
	for range seconds {
		w.clock.Step(time.Second)
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			w.runPod(w.pods[name])
		}
		if w.control() {
			w.apiNode = &v1.Node{}
			if w.targets != nil {
				_, mirrors, _ := w.GetPodsAndMirrorPods()
				w.apiNode.Status.MaintenanceStatus = &v1.MaintenanceStatus{DrainTargets: w.targets, ActiveEvictionRequests: int32(len(mirrors))}
			}
			w.node = w.apiNode
			if !w.unreadable {
				w.processRequests()
			}
		}
		w.intercept()
		targets, known := w.manager.targets(w.ctx)
		before := w.manager.current
		w.manager.step(w.ctx, targets, known)
		if current := w.manager.current; current != nil && current != before {
			w.stopped = append(w.stopped, current.key.Name)
			if !w.answers() {
				w.t.Errorf("the stop of %s began while the API server does not answer", current.key.Name)
			}
		}
		w.check()
	}
}

// runPod is what the kubelet does about a static pod.
func (w *world) runPod(pod *staticPod) {
	switch now := w.clock.Now(); {
	case !pod.terminates.IsZero() && now.Before(pod.terminates):
		return // A termination is not interrupted.
	case !pod.terminates.IsZero():
		pod.containers, pod.terminates = false, time.Time{}
	case pod.terminating && !pod.containers && pod.lingers > 0:
		pod.lingers -= time.Second
	case pod.terminating && !pod.containers:
		pod.terminating = false
	case pod.visible:
		pod.containers = true
	case pod.containers:
		pod.terminates, pod.terminating = now.Add(pod.grace), true
	}
	switch {
	case !w.answers():
	case pod.visible && pod.mirror == nil:
		w.uids++
		pod.mirror = newMirrorPod(pod.name)
		pod.mirror.UID = types.UID(fmt.Sprintf("mirror-%d", w.uids))
		pod.mirror.Spec.Priority = &pod.priority
	case !pod.visible && !pod.containers && !pod.finalizer && !w.manager.Holds.KeepsMirrorPod(keyOf(pod.object())):
		pod.mirror = nil
	}
}

// processRequests is what the controllers do.
func (w *world) processRequests() {
	exists := map[string]bool{}
	targets := compileTargets(w.t, w.targets)
	for _, pod := range w.pods {
		if pod.mirror == nil {
			continue
		}
		exists[string(pod.mirror.UID)] = true
		if targets.Take(pod.mirror) {
			request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: string(pod.mirror.UID)}}
			request.Spec.Requesters = []coordinationv1alpha1.Requester{{Name: coordinationv1alpha1.NodeMaintenanceRequester}}
			if err := w.requests.GetIndexer().Add(request); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	for _, obj := range w.requests.GetIndexer().List() {
		if request := obj.(*coordinationv1alpha1.EvictionRequest); !exists[request.Name] {
			request = request.DeepCopy()
			request.Status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.EvictionRequestConditionEvicted), Status: metav1.ConditionTrue}}
			if err := w.requests.GetIndexer().Update(request); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// intercept is what the interceptors do: they ask until the stop has begun.
func (w *world) intercept() {
	for uid, asked := range w.asked {
		select {
		case err := <-asked.begun:
			asked.hasBegun = true
			if err != nil {
				delete(w.asked, uid)
			}
		default:
		}
		if state, _ := w.manager.Holds.observe(keyOf(asked.mirror)); asked.hasBegun && (state == running || state == refused) {
			delete(w.asked, uid) // The next attempt.
		}
	}
	for _, pod := range w.pods {
		if pod.mirror == nil || !pod.visible || w.asked[pod.mirror.UID] != nil {
			continue
		}
		if _, exists, _ := w.requests.GetIndexer().GetByKey(testNamespace + "/" + string(pod.mirror.UID)); exists {
			i := &podInterceptor{manager: w.manager, static: pod.object(), mirror: pod.mirror, requests: w.requests}
			w.asked[pod.mirror.UID] = &askedWish{wish: w.manager.ask(i, "")}
		}
	}
}

// check checks what must always be true.
func (w *world) check() {
	w.t.Helper()
	undecided := 0
	for key, s := range w.manager.Holds.pods {
		pod := w.pods[key.Name]
		switch s.State {
		case stopping, ended:
			undecided++
		case held:
			if pod.containers {
				w.t.Errorf("%s is held and runs", key.Name)
			}
		}
		if s.State != refused && pod.visible {
			w.t.Errorf("%s is %s and visible", key.Name, s.State)
		}
		if w.node != nil && (w.node.Status.MaintenanceStatus == nil || !compileTargets(w.t, w.node.Status.MaintenanceStatus.DrainTargets).Take(s.mirrorPod())) {
			w.t.Errorf("%s is %s, and no maintenance takes it", key.Name, s.State)
		}
	}
	if undecided > 1 {
		w.t.Errorf("%d pods stop at the same time", undecided)
	}
}

// states returns the states by name.
func (w *world) states() map[string]state {
	states := map[string]state{}
	for name := range w.pods {
		states[name], _ = w.manager.Holds.observe(types.NamespacedName{Namespace: testNamespace, Name: name})
	}
	return states
}

func newStaticPod(name string, priority int32, grace time.Duration) *staticPod {
	return &staticPod{name: name, priority: priority, grace: grace}
}

var allTargets = []v1.DrainPlanEntry{{PodType: v1.PodTypeStatic, PodPriority: math.MaxInt32}}
