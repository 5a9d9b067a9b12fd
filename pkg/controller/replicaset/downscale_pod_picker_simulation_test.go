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

package replicaset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	consistencyutil "k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/kubernetes/test/utils/simulation"
	"k8s.io/utils/ptr"
)

// TestPickerSimulation runs the controller of one ReplicaSet through random histories: it is scaled and
// its picker set and removed in the middle of questions; pods become ready and unready, are asked to
// leave, end on their own; caches are stale; deletions fail; the picker answers anything, or never; the
// controller restarts. The checks are: a sync deletes exactly the surplus of its cache or nothing, only
// pods of that cache, and none for which it has not asked when it should have; questions are about such
// pods only; and in the end there are as many pods as wanted, without an event that is missing, and no
// question is left.
func TestPickerSimulation(t *testing.T) {
	simulation.Run(t, 150, simulatePickers)
}

func simulatePickers(t *testing.T, seed uint64) {
	s := &pickerSim{t: t, rand: rand.New(rand.NewPCG(seed, 0)), pods: map[string]*v1.Pod{}, rs: newReplicaSetOf(withPicker)}
	s.rs.Spec.Replicas = ptr.To[int32](3)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("history: %v", s.history)
		}
	})
	s.start()
	for range 40 + s.rand.IntN(150) {
		s.disturb()
		for range s.rand.IntN(6) {
			s.step()
		}
	}
	s.calm = true
	s.settle()
	if got, want := len(s.live()), int(*s.rs.Spec.Replicas); got != want {
		t.Errorf("%d pods in the end, want %d", got, want)
	}
	if left := len(s.asker.asked); left > 0 {
		t.Errorf("%d questions are left", left)
	}
}

// pickerSim simulates an API server with one ReplicaSet, kubelets and a picker.
type pickerSim struct {
	controller.PodControlInterface
	*evictionFixture
	t     *testing.T
	rand  *rand.Rand
	rs    *apps.ReplicaSet
	pods  map[string]*v1.Pod
	names int
	// events are those of ReplicaSets and of pods that have not reached the caches.
	events [2][]func()
	asker  *fakeAsker
	// syncing is what the cache has during a sync, and deleted the pods that it deletes.
	syncing map[string]*v1.Pod
	deleted []string
	// failing are pods whose deletion fails.
	failing map[string]bool
	lock    sync.Mutex
	due     bool
	calm    bool
	history []string
}

func (s *pickerSim) record(format string, args ...any) {
	s.history = append(s.history, fmt.Sprintf(format, args...)+"\n")
}

// start starts a controller without any state, whose caches are current.
func (s *pickerSim) start() {
	s.evictionFixture = newEvictionFixture(s.t)
	s.client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if update, ok := action.(clienttesting.UpdateAction); ok && update.GetSubresource() == "status" {
			return true, update.GetObject(), nil
		}
		if action.Matches("get", "replicasets") {
			return true, s.rs.DeepCopy(), nil
		}
		s.t.Errorf("unexpected %v", action)
		return true, nil, errUnreachable
	})
	s.intercept(s.t)
	s.rsc.evictions.requestsSynced = func() bool { return true }
	s.rsc.consistencyStore = consistencyutil.NewNoopConsistencyStore()
	s.rsc.podControl = s
	s.rsc.queue = simulatedQueue{due: &s.due}
	s.asker = newFakeAsker(func(types.NamespacedName) { s.due = true })
	s.asker.check = s.checkQuestion
	s.rsc.pickers = &pickers{client: s.asker, recorder: discardedEvents{}}
	s.events = [2][]func(){}
	s.due = true
	s.cached(s.t, s.rs.DeepCopy())
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		s.cached(s.t, s.pods[name].DeepCopy())
	}
}

type discardedEvents struct{ record.EventRecorder }

func (discardedEvents) Eventf(runtime.Object, string, string, string, ...any) {}

func (discardedEvents) Event(runtime.Object, string, string, string) {}

// simulatedQueue is a queue for one key without a background goroutine.
type simulatedQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	due *bool
}

func (q simulatedQueue) Add(string)                     { *q.due = true }
func (q simulatedQueue) AddAfter(string, time.Duration) {}
func (q simulatedQueue) AddRateLimited(string)          { *q.due = true }
func (q simulatedQueue) Forget(string)                  {}

// live returns the names of the pods that do not terminate.
func (s *pickerSim) live() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if s.pods[name].DeletionTimestamp == nil {
			names = append(names, name)
		}
	}
	return names
}

// changePod writes a pod, and queues its event.
func (s *pickerSim) changePod(name string, change func(*v1.Pod)) {
	before := s.pods[name]
	after := before.DeepCopy()
	change(after)
	after.ResourceVersion = s.nextVersion()
	s.pods[name] = after
	s.events[1] = append(s.events[1], func() {
		s.cached(s.t, after.DeepCopy())
		s.rsc.updatePod(klog.FromContext(s.ctx), before, after)
	})
}

func (s *pickerSim) nextVersion() string {
	s.names++
	return fmt.Sprint(s.names)
}

// endPod deletes a pod for good, and queues its event.
func (s *pickerSim) endPod(name string) {
	gone := s.pods[name]
	delete(s.pods, name)
	s.events[1] = append(s.events[1], func() {
		if err := s.factory.Core().V1().Pods().Informer().GetIndexer().Delete(gone); err != nil {
			s.t.Fatal(err)
		}
		s.rsc.deletePod(klog.FromContext(s.ctx), gone)
	})
}

func (s *pickerSim) changeReplicaSet(change func(*apps.ReplicaSet)) {
	before := s.rs
	after := before.DeepCopy()
	change(after)
	after.ResourceVersion = s.nextVersion()
	s.rs = after
	s.events[0] = append(s.events[0], func() {
		s.cached(s.t, after.DeepCopy())
		s.rsc.updateRS(klog.FromContext(s.ctx), before, after)
	})
}

// disturb makes one random change.
func (s *pickerSim) disturb() {
	name := ""
	if live := s.live(); len(live) > 0 {
		name = live[s.rand.IntN(len(live))]
	}
	switch choice := s.rand.IntN(20); {
	case choice < 7:
		s.changeReplicaSet(func(rs *apps.ReplicaSet) {
			rs.Spec.Replicas = ptr.To(int32(s.rand.IntN(9)))
			if s.rand.IntN(4) == 0 && name != "" {
				deploymentutil.SetEvictionSurge(rs, deploymentutil.EvictionSurge{Of: *rs.Spec.Replicas, Leaving: []types.UID{types.UID(name)}})
			}
			s.record("%d replicas", *rs.Spec.Replicas)
		})
	case choice == 7:
		s.changeReplicaSet(func(rs *apps.ReplicaSet) {
			if rs.Spec.DownscalePodPicker == nil {
				withPicker(rs)
			} else {
				rs.Spec.DownscalePodPicker = nil
			}
			s.record("picker %t", rs.Spec.DownscalePodPicker != nil)
		})
	case choice < 12 && name != "":
		change := []func(*v1.Pod){notReady, cheapToDelete, younger, restarted, onSharedNode, phase(v1.PodUnknown)}[s.rand.IntN(6)]
		s.changePod(name, change)
		s.record("%s changes", name)
	case choice == 12 && name != "":
		s.cached(s.t, requestOf(name))
		s.record("%s is requested", name)
	case choice == 13 && name != "":
		s.endPod(name)
		s.record("%s ends", name)
	case choice == 14 && s.rand.IntN(3) == 0:
		s.record("restart")
		s.start()
	case choice > 14:
		s.kubelet()
	}
}

// kubelet starts new pods and ends those that terminate.
func (s *pickerSim) kubelet() {
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		switch pod := s.pods[name]; {
		case pod.DeletionTimestamp != nil:
			s.endPod(name)
		case pod.Status.Phase == v1.PodPending:
			s.changePod(name, func(pod *v1.Pod) { pod.Spec, pod.Status = rankedPod(name).Spec, rankedPod(name).Status })
		}
	}
}

// step runs one random step: an event reaches the caches, a picker answers, or the ReplicaSet is synced.
func (s *pickerSim) step() bool {
	steps := []func() bool{s.deliver, s.answer, s.sync}
	first := s.rand.IntN(len(steps))
	for i := range steps {
		if steps[(first+i)%len(steps)]() {
			return true
		}
	}
	return false
}

// settle runs all steps until nothing happens any more.
func (s *pickerSim) settle() {
	for range 100000 {
		before := len(s.events[1])
		s.kubelet()
		if !s.step() && len(s.events[1]) == before {
			return
		}
	}
	s.t.Fatal("the simulation does not settle")
}

func (s *pickerSim) deliver() bool {
	first := s.rand.IntN(len(s.events))
	for i := range s.events {
		queue := &s.events[(first+i)%len(s.events)]
		if len(*queue) > 0 {
			event := (*queue)[0]
			*queue = (*queue)[1:]
			event()
			return true
		}
	}
	return false
}

func (s *pickerSim) sync() bool {
	if !s.due {
		return false
	}
	s.due, s.deleted, s.syncing = false, nil, map[string]*v1.Pod{}
	cachedReplicas := s.cachedReplicaSet().Spec.Replicas
	for _, object := range s.factory.Core().V1().Pods().Informer().GetIndexer().List() {
		if pod := object.(*v1.Pod); controller.IsPodActive(pod) {
			s.syncing[pod.Name] = pod
		}
	}
	s.failing = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.syncing)) {
		s.failing[name] = !s.calm && s.rand.IntN(10) == 0
	}
	surplus := len(s.syncing) - int(*cachedReplicas)
	asked := s.asker.asked[webKey]
	answered := asked != nil && asked.result != nil
	if err := s.rsc.syncReplicaSet(s.ctx, webKey.String()); err != nil {
		s.due = true
	}
	// Those that go anyway are deleted before the answer.
	asked = s.asker.asked[webKey]
	waits := asked != nil && asked.result == nil
	if len(s.deleted) > surplus && surplus > 0 || len(s.deleted) > 0 && len(s.deleted) != surplus && !waits {
		s.t.Errorf("%d pods are deleted, and the surplus is %d", len(s.deleted), surplus)
	}
	if waits {
		s.checkGoAnyway(asked.question)
	}
	if len(s.deleted) > 0 && s.hasChoice() && !answered {
		s.t.Errorf("%q are deleted although the picker has not answered", s.deleted)
	}
	slices.Sort(s.deleted)
	for _, name := range s.deleted {
		if pod := s.pods[name]; pod != nil && !s.failing[name] && pod.DeletionTimestamp == nil {
			s.record("%s is deleted", name)
			s.changePod(name, func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: orderStart.Time} })
		}
	}
	return true
}

func (s *pickerSim) cachedReplicaSet() *apps.ReplicaSet {
	rs, err := s.rsc.rsLister.ReplicaSets(webKey.Namespace).Get(webKey.Name)
	if err != nil {
		s.t.Fatal(err)
	}
	return rs
}

// hasChoice reports whether the pods that were deleted were chosen among pods that are all running,
// ready and not asked to leave, of a ReplicaSet with a picker.
func (s *pickerSim) hasChoice() bool {
	isCandidate := func(name string) bool {
		pod := s.syncing[name]
		return pod.Spec.NodeName != "" && pod.Status.Phase == v1.PodRunning && podutil.IsPodReady(pod) && !s.rsc.evictions.isRequested(pod)
	}
	if s.cachedReplicaSet().Spec.DownscalePodPicker == nil || !slices.ContainsFunc(s.deleted, isCandidate) {
		return false
	}
	for name := range s.syncing {
		if isCandidate(name) && !slices.Contains(s.deleted, name) {
			return true
		}
	}
	return false
}

// checkGoAnyway checks that no pod is deleted while the picker is asked about it.
func (s *pickerSim) checkGoAnyway(q podpicker.Question) {
	for _, name := range s.deleted {
		if slices.Contains(q.Candidates, name) {
			s.t.Errorf("%s is deleted, which the picker is asked about", name)
		}
	}
}

// checkQuestion checks that only pods of the cache are asked about.
func (s *pickerSim) checkQuestion(q podpicker.Question) {
	if q.Pods < 1 || q.Pods >= len(q.Candidates) || len(q.Candidates) != len(q.CandidateUIDs) {
		s.t.Errorf("question %+v", q)
	}
	for _, name := range q.Candidates {
		if s.syncing[name] == nil {
			s.t.Errorf("asked about %s, which is not in the cache", name)
		}
	}
	s.record("asked for %d of %q", q.Pods, q.Candidates)
}

// answer ends the question, in any way. A picker that never answers is one whose time ends later.
func (s *pickerSim) answer() bool {
	asked := s.asker.asked[webKey]
	if asked == nil || asked.result != nil || !s.calm && s.rand.IntN(3) > 0 {
		return false
	}
	result := podpicker.Result{Err: errors.New("no answer"), Reason: podpicker.FallbackFailed}
	if s.rand.IntN(3) > 0 {
		result = podpicker.Result{Ranks: map[string]int{}}
		for _, name := range asked.question.Candidates {
			result.Ranks[name] = []int{podpicker.RankChosen, podpicker.RankTied, podpicker.RankOther}[s.rand.IntN(3)]
		}
	}
	s.record("answer %v", result)
	s.asker.end(webKey, result)
	return true
}

// DeletePod implements controller.PodControlInterface. The controller calls it concurrently, so what
// happens must not depend on the order.
func (s *pickerSim) DeletePod(_ context.Context, _, name string, _ runtime.Object) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.syncing[name] == nil || slices.Contains(s.deleted, name) {
		s.t.Errorf("pod %s is deleted, which is not in the cache or deleted already", name)
	}
	s.deleted = append(s.deleted, name)
	switch {
	case s.pods[name] == nil:
		return apierrors.NewNotFound(v1.Resource("pods"), name)
	case s.failing[name]:
		return errUnreachable
	}
	return nil
}

// CreatePods implements controller.PodControlInterface.
func (s *pickerSim) CreatePods(context.Context, string, *v1.PodTemplateSpec, runtime.Object, *metav1.OwnerReference) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	name := "pod-" + s.nextVersion()
	pod := rankedPod(name, unassigned, notReady, phase(v1.PodPending))
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.rs, apps.SchemeGroupVersion.WithKind("ReplicaSet"))}
	pod.ResourceVersion = s.nextVersion()
	s.pods[name] = pod
	s.events[1] = append(s.events[1], func() {
		s.cached(s.t, pod.DeepCopy())
		s.rsc.addPod(klog.FromContext(s.ctx), pod)
	})
	return nil
}

// fakeAsker asks a picker that the test plays. It behaves like podpicker.Client.
type fakeAsker struct {
	asked map[types.NamespacedName]*fakeQuestion
	ended func(types.NamespacedName)
	check func(podpicker.Question)
}

type fakeQuestion struct {
	question podpicker.Question
	identity string
	result   *podpicker.Result
}

func newFakeAsker(ended func(types.NamespacedName)) *fakeAsker {
	return &fakeAsker{asked: map[types.NamespacedName]*fakeQuestion{}, ended: ended, check: func(podpicker.Question) {}}
}

func (a *fakeAsker) Ask(_ context.Context, q podpicker.Question) bool {
	uids := slices.Sorted(slices.Values(q.CandidateUIDs))
	identity := fmt.Sprint(q.UID, q.Replicas, q.Pods, uids)
	if known := a.asked[q.NamespacedName]; known != nil && known.identity == identity {
		return known.result != nil
	}
	a.check(q)
	a.asked[q.NamespacedName] = &fakeQuestion{question: q, identity: identity}
	return false
}

// Slow is never true: an event changes nothing.
func (a *fakeAsker) Slow(types.NamespacedName) (until time.Time, slow bool) {
	return time.Time{}, false
}

func (a *fakeAsker) Take(rs types.NamespacedName) (podpicker.Result, bool) {
	known := a.asked[rs]
	if known == nil || known.result == nil {
		return podpicker.Result{}, false
	}
	delete(a.asked, rs)
	return *known.result, true
}

func (a *fakeAsker) Forget(rs types.NamespacedName) { delete(a.asked, rs) }

// end ends the question of the ReplicaSet.
func (a *fakeAsker) end(rs types.NamespacedName, result podpicker.Result) {
	a.asked[rs].result = &result
	a.ended(rs)
}
