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

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const work = "work"

// world is an API server with one client and a running interceptor in a synctest bubble, where time
// only advances while all goroutines are blocked.
type world struct {
	t           *testing.T
	client      *fake.Clientset
	recorder    *record.FakeRecorder
	dsc         *DaemonSetsController
	interceptor *Interceptor
	stop        func()

	lock sync.Mutex
	// deletes are the UID preconditions of all deletions of pods, accepted or not.
	deletes []types.UID
	// refuse is the error returned for deletions, or nil.
	refuse error
}

// start runs an interceptor with these objects.
func start(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	setAwareness(t, true)
	w := &world{t: t, client: fake.NewClientset(objects...), recorder: record.NewFakeRecorder(100)}
	w.client.PrependReactor("delete", "pods", w.receiveDelete)
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(w.client, 0)
	core, coordination := factory.Core().V1(), factory.Coordination().V1alpha1()
	dsc, err := NewDaemonSetsController(ctx, factory.Apps().V1().DaemonSets(), factory.Apps().V1().ControllerRevisions(),
		core.Pods(), core.Nodes(), w.client, flowcontrol.NewBackOff(time.Second, time.Minute))
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	dsc.eventRecorder = w.recorder
	w.dsc = dsc
	w.interceptor, err = NewInterceptor(dsc, coordination.NodeMaintenances(), coordination.EvictionRequests(),
		core.Nodes(), core.Pods(), factory.Scheduling().V1().PriorityClasses(), w.client)
	if err != nil {
		t.Fatalf("creating the interceptor: %v", err)
	}
	var running sync.WaitGroup
	running.Go(func() { w.interceptor.Run(ctx) })
	factory.StartWithContext(ctx)
	w.settle()
	w.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		factory.Shutdown()
		// Only Run of the controller would shut these down.
		dsc.queue.ShutDown()
		dsc.nodeUpdateQueue.ShutDown()
		dsc.eventBroadcaster.Shutdown()
	})
	return w
}

// settle waits until all pending work is done, but not for the next heartbeat.
func (w *world) settle() {
	time.Sleep(30 * time.Second)
	synctest.Wait()
}

// receiveDelete starts the grace period of a pod.
func (w *world) receiveDelete(action clienttesting.Action) (bool, runtime.Object, error) {
	deletion := action.(clienttesting.DeleteActionImpl)
	w.lock.Lock()
	defer w.lock.Unlock()
	var uid types.UID
	if preconditions := deletion.DeleteOptions.Preconditions; preconditions != nil {
		uid = ptr.Deref(preconditions.UID, "")
	}
	w.deletes = append(w.deletes, uid)
	if w.refuse != nil {
		return true, nil, w.refuse
	}
	obj, err := w.client.Tracker().Get(action.GetResource(), action.GetNamespace(), deletion.Name)
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*v1.Pod).DeepCopy()
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Minute)}
	return true, nil, w.client.Tracker().Update(action.GetResource(), pod, pod.Namespace)
}

// prependReactor adds a reactor while the client is used.
func (w *world) prependReactor(verb, resource string, reaction clienttesting.ReactionFunc) {
	w.client.Lock()
	defer w.client.Unlock()
	w.client.PrependReactor(verb, resource, reaction)
}

func (w *world) answerDeletes(err error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.refuse = err
}

func (w *world) expectDeletes(want ...types.UID) {
	w.t.Helper()
	w.lock.Lock()
	defer w.lock.Unlock()
	if diff := cmp.Diff(want, w.deletes); diff != "" {
		w.t.Errorf("deletions by UID (-want +got):\n%s", diff)
	}
}

// update writes an object as another client.
func (w *world) update(resource string, obj runtime.Object, namespace string) {
	w.t.Helper()
	gvr := v1.SchemeGroupVersion.WithResource(resource)
	if err := w.client.Tracker().Update(gvr, obj, namespace); err != nil {
		w.t.Fatalf("updating %s: %v", resource, err)
	}
	w.settle()
}

// end removes a terminated pod, like the kubelet.
func (w *world) end(pod *v1.Pod) {
	w.t.Helper()
	if err := w.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), pod.Namespace, pod.Name); err != nil {
		w.t.Fatalf("ending pod %s: %v", pod.Name, err)
	}
	w.settle()
}

// entry returns the status reported by the interceptor.
func (w *world) entry() coordinationv1alpha1.InterceptorStatus {
	w.t.Helper()
	request, err := w.client.CoordinationV1alpha1().EvictionRequests(work).Get(w.t.Context(), "uid", metav1.GetOptions{})
	if err != nil {
		w.t.Fatalf("reading the request: %v", err)
	}
	return request.Status.Interceptors[0]
}

// expectSilence fails if there was any report or deletion.
func (w *world) expectSilence() {
	w.t.Helper()
	if diff := cmp.Diff(coordinationv1alpha1.InterceptorStatus{Name: coordinationv1alpha1.EvictionInterceptorDaemonSet}, w.entry()); diff != "" {
		w.t.Errorf("the report (-want +got):\n%s", diff)
	}
	w.expectDeletes()
}

func (w *world) expectEvent(want string) {
	w.t.Helper()
	select {
	case got := <-w.recorder.Events:
		if !strings.HasPrefix(got, want) {
			w.t.Errorf("the event is %q, want %q", got, want)
		}
	default:
		w.t.Errorf("no event, want %q", want)
	}
}

func agent() *apps.DaemonSet {
	ds := ofClass("low")
	ds.Namespace, ds.UID = work, "agent"
	return ds
}

// newAgentPod returns a pod of the DaemonSet agent on the node "node", within targets up to 1000.
func newAgentPod(options ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: work, Name: "agent-x", UID: "uid", Labels: map[string]string{"type": "production"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(agent(), controllerKind)},
		},
		Spec:   v1.PodSpec{NodeName: "node", Priority: ptr.To[int32](1000), TerminationGracePeriodSeconds: ptr.To[int64](60)},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func requestFor(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	const own = coordinationv1alpha1.EvictionInterceptorDaemonSet
	return &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID), Namespace: pod.Namespace, UID: "request"},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: coordinationv1alpha1.NodeMaintenanceRequester}},
		},
		Status: coordinationv1alpha1.EvictionRequestStatus{
			TargetInterceptors: []coordinationv1alpha1.Interceptor{{Name: own}},
			ActiveInterceptors: []string{own},
			ActivationTime:     &metav1.Time{Time: time.Now().Truncate(time.Second)},
			Interceptors:       []coordinationv1alpha1.InterceptorStatus{{Name: own}},
		},
	}
}

func newMaintenance(name, reason string, stage coordinationv1alpha1.NodeMaintenanceStage, nodes ...string) *coordinationv1alpha1.NodeMaintenance {
	m := &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.Reason, m.Spec.Stage, m.Spec.NodeSelector = reason, stage, &v1.NodeSelector{}
	for _, node := range nodes {
		m.Spec.NodeSelector.NodeSelectorTerms = append(m.Spec.NodeSelector.NodeSelectorTerms, v1.NodeSelectorTerm{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}},
		})
	}
	return m
}

// inBubble runs a test in a synctest bubble.
func inBubble(t *testing.T, objects func() []runtime.Object, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, objects()...)
		defer w.stop()
		test(t, w)
	})
}

// withTargets returns the default objects: a pod, its request, and its node with these targets.
func withTargets(targets []v1.DrainPlanEntry, options ...func(*v1.Pod)) func() []runtime.Object {
	return func() []runtime.Object {
		pod := newAgentPod(options...)
		return []runtime.Object{agent(), pod, requestFor(pod), drained("node", targets),
			newMaintenance("m", "new disks", coordinationv1alpha1.NodeMaintenanceStageDrain, "node")}
	}
}

func TestPodIsEnded(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(1000)), func(t *testing.T, w *world) {
		begin := time.Now().Add(-30 * time.Second).Truncate(time.Second)
		w.expectDeletes("uid")
		w.expectEvent("Normal DeletedForMaintenance Deleted pod agent-x from node node for node maintenance m (new disks)")
		entry := w.entry()
		want := coordinationv1alpha1.InterceptorStatus{
			Name: coordinationv1alpha1.EvictionInterceptorDaemonSet, StartTime: ptr.To(metav1.NewTime(begin)), HeartbeatTime: ptr.To(metav1.NewTime(begin)),
			ExpectedFinishTime: ptr.To(metav1.NewTime(begin.Add(time.Minute))), Message: "Terminating the pod of DaemonSet agent for node maintenance m (new disks).",
		}
		if diff := cmp.Diff(want, entry); diff != "" {
			t.Errorf("the report (-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if entry := w.entry(); entry.CompletionTime != nil || time.Since(entry.HeartbeatTime.Time) > 3*time.Minute {
			t.Errorf("while the pod is stuck the report is %v", entry)
		}
		w.end(newAgentPod())
		if entry := w.entry(); entry.CompletionTime == nil || entry.Message != "Terminated the pod of DaemonSet agent for node maintenance m (new disks)." {
			t.Errorf("after the end of the pod the report is %v", entry)
		}
		w.expectDeletes("uid")
	})
}

// TestPodIsEndedWithGracePeriod: callers of pods/eviction have asked for a shorter grace period than that of the pod.
func TestPodIsEndedWithGracePeriod(t *testing.T) {
	objects := func() []runtime.Object {
		pod := newAgentPod()
		request := requestFor(pod)
		request.Annotations = map[string]string{coordinationv1alpha1.EvictionCallGracePeriodAnnotation: "45"}
		request.Spec.Requesters = []coordinationv1alpha1.Requester{
			{Name: coordinationv1alpha1.NodeMaintenanceRequester}, {Name: coordinationv1alpha1.EvictionRequesterEvictions},
		}
		return []runtime.Object{agent(), pod, request, drained("node", targetsUpTo(1000)),
			newMaintenance("m", "new disks", coordinationv1alpha1.NodeMaintenanceStageDrain, "node")}
	}
	inBubble(t, objects, func(t *testing.T, w *world) {
		w.expectDeletes("uid")
		for _, action := range w.client.Actions() {
			if deletion, isDeletion := action.(clienttesting.DeleteActionImpl); isDeletion && ptr.Deref(deletion.DeleteOptions.GracePeriodSeconds, 0) != 45 {
				t.Errorf("deleted with the options %v, want a grace period of 45 seconds", deletion.DeleteOptions)
			}
		}
		entry := w.entry()
		if got := entry.ExpectedFinishTime.Sub(entry.StartTime.Time); got != 45*time.Second {
			t.Errorf("it is expected to finish after %s, want 45s", got)
		}
		w.end(newAgentPod())
	})
}

// TestDeletedPodIsNotCreatedAgain: a webhook has lowered the priority of the pod. According to its
// template, the node is open to the DaemonSet, which would create a pod there that is deleted
// again, without end.
func TestDeletedPodIsNotCreatedAgain(t *testing.T) {
	lowered := func(pod *v1.Pod) { pod.Spec.Priority = ptr.To[int32](500) }
	inBubble(t, withTargets(targetsUpTo(500), lowered), func(t *testing.T, w *world) {
		w.expectDeletes("uid")
		w.end(newAgentPod())
		ds, node := agent(), drained("node", targetsUpTo(500))
		if create, remove := w.dsc.podsShouldBeOnNode(klog.Background(), node, nil, ds, "hash", nil, nodeaffinity.RequiredNodeAffinity{}); len(create) > 0 || len(remove) > 0 {
			t.Errorf("creates pods on %v and deletes %v", create, remove)
		}
		// At the end of the maintenance the pod is created.
		if create, _ := w.dsc.podsShouldBeOnNode(klog.Background(), drained("node", nil), nil, ds, "hash", nil, nodeaffinity.RequiredNodeAffinity{}); len(create) != 1 {
			t.Errorf("creates pods on %v after the maintenance", create)
		}
	})
}

// TestCreatedPodsAreIntercepted: if admission rejects the interceptor, pods are created without it.
func TestCreatedPodsAreIntercepted(t *testing.T) {
	inBubble(t, func() []runtime.Object { return []runtime.Object{agent()} }, func(t *testing.T, w *world) {
		var created [][]v1.EvictionInterceptor
		w.prependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			pod := action.(clienttesting.CreateAction).GetObject().(*v1.Pod)
			created = append(created, pod.Spec.EvictionInterceptors)
			if len(created) == 2 {
				return true, nil, apierrors.NewForbidden(v1.Resource("pods"), "", errors.New("by a webhook"))
			}
			return true, pod, nil
		})
		ds := agent()
		ds.Spec.Template.Labels = simpleDaemonSetLabel
		for range 2 {
			if err := w.dsc.podControl.CreatePods(t.Context(), work, &ds.Spec.Template, ds, metav1.NewControllerRef(ds, controllerKind)); err != nil {
				t.Errorf("creating a pod: %v", err)
			}
		}
		own := named(coordinationv1alpha1.EvictionInterceptorDaemonSet)
		if diff := cmp.Diff([][]v1.EvictionInterceptor{own, own, nil}, created); diff != "" {
			t.Errorf("interceptors of the pods (-want +got):\n%s", diff)
		}
	})
}

func TestTerminatingPodIsAwaited(t *testing.T) {
	// The clock of the bubble is only valid inside it.
	gracePeriodEnds := func(pod *v1.Pod) {
		pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(10 * time.Minute).Truncate(time.Second)}
	}
	inBubble(t, withTargets(targetsUpTo(1000), gracePeriodEnds), func(t *testing.T, w *world) {
		entry, want := w.entry(), time.Now().Add(10*time.Minute-30*time.Second)
		if entry.ExpectedFinishTime == nil || !entry.ExpectedFinishTime.Time.Equal(want) || entry.CompletionTime != nil {
			t.Errorf("the report is %v, want the finish time %v", entry, want)
		}
		// A finished pod counts as gone, although it still exists.
		pod := newAgentPod(gracePeriodEnds)
		pod.Status.Phase = v1.PodFailed
		w.update("pods", pod, work)
		if entry := w.entry(); entry.CompletionTime == nil {
			t.Errorf("the report is %v, want it complete", entry)
		}
		w.expectDeletes()
	})
}

func TestPodWasGoneAlready(t *testing.T) {
	pods := v1.Resource("pods")
	cases := map[string]error{
		"gone":                    apierrors.NewNotFound(pods, "agent-x"),
		"another pod of the name": apierrors.NewConflict(pods, "agent-x", errors.New("another UID")),
	}
	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			objects := withTargets(targetsUpTo(999))
			inBubble(t, objects, func(t *testing.T, w *world) {
				w.answerDeletes(answer)
				w.update("nodes", drained("node", targetsUpTo(1000)), "")
				w.expectDeletes("uid")
				if entry := w.entry(); entry.CompletionTime == nil {
					t.Errorf("the report is %v, want it complete", entry)
				}
				if len(w.recorder.Events) > 0 {
					t.Errorf("an event for a deletion that did not happen: %s", <-w.recorder.Events)
				}
			})
		})
	}
}

func TestDeletionIsRejected(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(999)), func(t *testing.T, w *world) {
		w.answerDeletes(errors.New("no"))
		w.update("nodes", drained("node", targetsUpTo(1000)), "")
		w.expectEvent("Warning FailedMaintenanceDelete Failed to delete pod agent-x from node node for node maintenance m (new disks): no")
		if entry := w.entry(); entry.CompletionTime != nil || !strings.Contains(entry.Message, "deleting pod work/agent-x: no") {
			t.Errorf("the report is %v, want it to contain the error", entry)
		}
		w.answerDeletes(nil)
		time.Sleep(10 * time.Minute)
		w.end(newAgentPod())
		if entry := w.entry(); entry.CompletionTime == nil {
			t.Errorf("the report is %v, want it complete", entry)
		}
	})
}

// TestSilence checks that nothing happens to a pod until it is within the targets.
func TestSilence(t *testing.T) {
	unbound := func(pod *v1.Pod) { pod.Spec.NodeName = "" }
	labelled := func(pod *v1.Pod) { pod.Labels = map[string]string{"type": "test"} }
	cases := map[string]struct {
		objects func() []runtime.Object
		happen  func(*world)
		acts    bool
	}{
		"no maintenance":       {objects: withTargets(nil), happen: func(w *world) { w.update("nodes", drained("node", targetsUpTo(1000)), "") }, acts: true},
		"nothing drained":      {objects: withTargets([]v1.DrainPlanEntry{}), happen: func(w *world) { w.update("nodes", drained("node", targetsUpTo(1000)), "") }, acts: true},
		"above the targets":    {objects: withTargets(targetsUpTo(999)), happen: func(w *world) { w.update("nodes", drained("node", targetsUpTo(1000)), "") }, acts: true},
		"still above":          {objects: withTargets(targetsUpTo(900)), happen: func(w *world) { w.update("nodes", drained("node", targetsUpTo(999)), "") }},
		"not selected":         {objects: withTargets(targetsFor("type", "test")), happen: func(w *world) { w.update("pods", newAgentPod(labelled), work) }, acts: true},
		"not on a node":        {objects: withTargets(targetsUpTo(1000), unbound), happen: func(w *world) { w.update("pods", newAgentPod(), work) }, acts: true},
		"not in the cache yet": {objects: without("pods", targetsUpTo(1000)), happen: func(w *world) { w.create("pods", newAgentPod(), work) }, acts: true},
		"node not created yet": {objects: without("nodes", targetsUpTo(1000)), happen: func(w *world) { w.create("nodes", drained("node", targetsUpTo(1000)), "") }, acts: true},
		"another pod": {objects: withTargets(targetsUpTo(999)), happen: func(w *world) {
			w.update("pods", newAgentPod(func(pod *v1.Pod) { pod.UID = "other" }), work)
			w.update("nodes", drained("node", targetsUpTo(1000)), "")
			w.touchRequest()
		}},
		"it terminates by itself": {objects: withTargets(targetsUpTo(999)), happen: func(w *world) { w.end(newAgentPod()) }},
		"it has finished before":  {objects: withTargets(targetsUpTo(999), func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded }), happen: func(w *world) { w.update("nodes", drained("node", targetsUpTo(1000)), "") }},
		"targets of other pods":   {objects: withTargets(targetsUpTo(999)), happen: func(w *world) { w.update("nodes", drained("node", targetsUpTo(2000)[:1]), "") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, tc.objects, func(t *testing.T, w *world) {
				time.Sleep(time.Hour)
				w.expectSilence()
				tc.happen(w)
				if tc.acts {
					w.expectDeletes("uid")
				} else {
					w.expectSilence()
				}
			})
		})
	}
}

// touchRequest triggers an event of the request, whatever the state of its pod.
func (w *world) touchRequest() {
	w.t.Helper()
	requests := w.client.CoordinationV1alpha1().EvictionRequests(work)
	request, err := requests.Get(w.t.Context(), "uid", metav1.GetOptions{})
	if err != nil {
		w.t.Fatalf("reading the request: %v", err)
	}
	request.Labels = map[string]string{"touched": "true"}
	if _, err := requests.Update(w.t.Context(), request, metav1.UpdateOptions{}); err != nil {
		w.t.Fatalf("touching the request: %v", err)
	}
	w.settle()
}

// without returns the default objects without the pod or without the node.
func without(resource string, targets []v1.DrainPlanEntry) func() []runtime.Object {
	return func() []runtime.Object {
		pod := newAgentPod()
		objects := []runtime.Object{agent(), requestFor(pod), newMaintenance("m", "new disks", coordinationv1alpha1.NodeMaintenanceStageDrain, "node")}
		if resource != "pods" {
			objects = append(objects, pod)
		}
		if resource != "nodes" {
			objects = append(objects, drained("node", targets))
		}
		return objects
	}
}

func (w *world) create(resource string, obj runtime.Object, namespace string) {
	w.t.Helper()
	if err := w.client.Tracker().Create(v1.SchemeGroupVersion.WithResource(resource), obj, namespace); err != nil {
		w.t.Fatalf("creating %s: %v", resource, err)
	}
	w.settle()
}

func orphaned(pod *v1.Pod) { pod.OwnerReferences = nil }

func TestPodOfNoDaemonSetIsPassedOn(t *testing.T) {
	const want = "Skipped: no DaemonSet controls the pod."
	t.Run("at once", func(t *testing.T) {
		inBubble(t, withTargets(nil, orphaned), func(t *testing.T, w *world) {
			if entry := w.entry(); entry.CompletionTime == nil || entry.Message != want {
				t.Errorf("the report is %v", entry)
			}
			w.expectDeletes()
		})
	})
	t.Run("of another group's DaemonSet", func(t *testing.T) {
		foreign := func(pod *v1.Pod) { pod.OwnerReferences[0].APIVersion = "apps.kruise.io/v1alpha1" }
		inBubble(t, withTargets(targetsUpTo(999), foreign), func(t *testing.T, w *world) {
			if entry := w.entry(); entry.CompletionTime == nil || entry.Message != want {
				t.Errorf("the report is %v", entry)
			}
			w.expectDeletes()
		})
	})
	t.Run("when it is orphaned", func(t *testing.T) {
		inBubble(t, withTargets(nil), func(t *testing.T, w *world) {
			w.expectSilence()
			w.update("pods", newAgentPod(orphaned), work)
			if entry := w.entry(); entry.CompletionTime == nil || entry.Message != want {
				t.Errorf("the report is %v", entry)
			}
		})
	})
}

// TestTargetsAreGoneBeforeDeletion ends the maintenance between the first report and the deletion,
// while another requester keeps the request alive.
func TestTargetsAreGoneBeforeDeletion(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(999)), func(t *testing.T, w *world) {
		free := true
		w.prependReactor("patch", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
			var request coordinationv1alpha1.EvictionRequest
			if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &request); err != nil {
				t.Errorf("reading a patch: %v", err)
			}
			if free {
				free = false
				if err := w.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), drained("node", nil), ""); err != nil {
					t.Errorf("ending the maintenance: %v", err)
				}
				time.Sleep(time.Second) // Let the cache catch up.
			}
			return false, nil, nil
		})
		w.update("nodes", drained("node", targetsUpTo(1000)), "")
		w.expectDeletes()
		if entry := w.entry(); entry.CompletionTime != nil || !strings.Contains(entry.Message, "the drain targets of node node no longer include the pod") {
			t.Errorf("the report is %v, want it to wait", entry)
		}
		heartbeat := w.entry().HeartbeatTime
		time.Sleep(10 * time.Minute)
		if entry := w.entry(); !entry.HeartbeatTime.Equal(heartbeat) {
			t.Errorf("a heartbeat at %v, want none after %v", entry.HeartbeatTime, heartbeat)
		}
		w.update("nodes", drained("node", targetsUpTo(1000)), "")
		time.Sleep(10 * time.Minute)
		w.expectDeletes("uid")
	})
}

// TestMaintenanceIsOverBeforeDeletion: the maintenance has ended while no controller led, so that nobody has cleared the
// targets of the node, nor withdrawn the request.
func TestMaintenanceIsOverBeforeDeletion(t *testing.T) {
	const drain = coordinationv1alpha1.NodeMaintenanceStageDrain
	for name, change := range map[string]func(*coordinationv1alpha1.NodeMaintenance, *v1.Node){
		"completed": func(m *coordinationv1alpha1.NodeMaintenance, _ *v1.Node) {
			m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageComplete
		},
		"deleted": func(m *coordinationv1alpha1.NodeMaintenance, _ *v1.Node) {
			m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: time.Now()}, []string{"a"}
		},
		"given back": func(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node) {
			node.Annotations = map[string]string{coordinationv1alpha1.NodeDoneAnnotation: string(m.UID)}
			node.Status.MaintenanceStatus.Admissions = []v1.MaintenanceAdmission{{MaintenanceName: m.Name, MaintenanceUID: m.UID}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, node := newMaintenance("m", "", drain, "node"), drained("node", targetsUpTo(1000))
			m.UID = "m"
			change(m, node)
			objects := func() []runtime.Object {
				pod := newAgentPod()
				return []runtime.Object{agent(), pod, requestFor(pod), node, m}
			}
			inBubble(t, objects, func(t *testing.T, w *world) {
				w.expectDeletes()
				if entry := w.entry(); !strings.Contains(entry.Message, "no NodeMaintenance drains node node any more") {
					t.Errorf("the report is %v, want it to wait", entry)
				}
				// Another one drains the node.
				next := newMaintenance("next", "", drain, "node")
				if _, err := w.client.CoordinationV1alpha1().NodeMaintenances().Create(t.Context(), next, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				w.expectDeletes("uid")
			})
		})
	}
}

func TestCause(t *testing.T) {
	const drain = coordinationv1alpha1.NodeMaintenanceStageDrain
	long := strings.Repeat("ä", maxReasonLength/2)
	cases := map[string]struct {
		maintenances []*coordinationv1alpha1.NodeMaintenance
		want         string
	}{
		"none":                 {want: "the maintenance of its node"},
		"one":                  {maintenances: []*coordinationv1alpha1.NodeMaintenance{newMaintenance("m", "new disks", drain, "other", "node")}, want: "node maintenance m (new disks)"},
		"without a reason":     {maintenances: []*coordinationv1alpha1.NodeMaintenance{newMaintenance("m", "", drain, "node")}, want: "node maintenance m"},
		"a long reason":        {maintenances: []*coordinationv1alpha1.NodeMaintenance{newMaintenance("m", long+"x", drain, "node")}, want: "node maintenance m (" + strings.Repeat("ä", maxReasonLength/2-2) + "...)"},
		"as long as it may be": {maintenances: []*coordinationv1alpha1.NodeMaintenance{newMaintenance("m", long, drain, "node")}, want: "node maintenance m (" + long + ")"},
		"other nodes and stages": {maintenances: []*coordinationv1alpha1.NodeMaintenance{
			newMaintenance("a", "a", drain, "other"), newMaintenance("b", "b", coordinationv1alpha1.NodeMaintenanceStageCordon, "node"), newMaintenance("c", "c", coordinationv1alpha1.NodeMaintenanceStageComplete, "node"),
		}, want: "the maintenance of its node"},
		"three": {maintenances: numbered(3), want: "node maintenance m0, m1, m2"},
		"five":  {maintenances: numbered(5), want: "node maintenance m0, m1, m2, and 2 more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
			nodes, maintenances := factory.Core().V1().Nodes(), factory.Coordination().V1alpha1().NodeMaintenances()
			if err := nodes.Informer().GetStore().Add(newNode("node", nil)); err != nil {
				t.Fatalf("adding the node: %v", err)
			}
			for _, m := range tc.maintenances {
				if err := maintenances.Informer().GetStore().Add(m); err != nil {
					t.Fatalf("adding maintenance %s: %v", m.Name, err)
				}
			}
			i := &Interceptor{dsc: &DaemonSetsController{nodeLister: nodes.Lister()}, maintenanceLister: maintenances.Lister()}
			if got := i.cause("node"); got != tc.want {
				t.Errorf("the cause is %q, want %q", got, tc.want)
			}
		})
	}
}

func numbered(n int) []*coordinationv1alpha1.NodeMaintenance {
	var all []*coordinationv1alpha1.NodeMaintenance
	for i := range n {
		all = append(all, newMaintenance(fmt.Sprintf("m%d", i), "", coordinationv1alpha1.NodeMaintenanceStageDrain, "node"))
	}
	return all
}

// TestNothingRunsBeforeTheClasses checks that the controller waits for the priority classes.
func TestNothingRunsBeforeTheClasses(t *testing.T) {
	setAwareness(t, true)
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	core, coordination := factory.Core().V1(), factory.Coordination().V1alpha1()
	dsc, err := NewDaemonSetsController(t.Context(), factory.Apps().V1().DaemonSets(), factory.Apps().V1().ControllerRevisions(),
		core.Pods(), core.Nodes(), client, flowcontrol.NewBackOff(time.Second, time.Minute))
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	dsc.nodeStoreSynced = alwaysReady
	if _, err := NewInterceptor(dsc, coordination.NodeMaintenances(), coordination.EvictionRequests(),
		core.Nodes(), core.Pods(), factory.Scheduling().V1().PriorityClasses(), client); err != nil {
		t.Fatalf("creating the interceptor: %v", err)
	}
	if dsc.nodeStoreSynced() {
		t.Error("ready to run without the priority classes")
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSyncWithContext(t.Context())
	if !dsc.nodeStoreSynced() {
		t.Error("not ready to run with all caches")
	}
}

// A webhook rejects the deletion for longer than the heartbeat deadline. No other client can
// terminate the pod, and the eviction request controller has no deadline for it.
func TestDeletionThatIsRejectedForLong(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(999)), func(t *testing.T, w *world) {
		w.answerDeletes(errors.New("refused by a webhook"))
		w.update("nodes", drained("node", targetsUpTo(1000)), "")
		time.Sleep(30 * time.Minute)
		w.answerDeletes(nil)
		w.lock.Lock()
		before := len(w.deletes)
		w.lock.Unlock()
		time.Sleep(6 * time.Hour)
		w.touchRequest()
		w.update("nodes", drained("node", nil), "") // Another maintenance, later.
		w.update("nodes", drained("node", targetsUpTo(1000)), "")
		time.Sleep(6 * time.Hour)
		w.lock.Lock()
		after := len(w.deletes)
		w.lock.Unlock()
		if after == before {
			t.Errorf("12 hours after the webhook was repaired the pod still exists, %d attempts before, none after: %q", before, w.entry().Message)
		}
	})
}

// TestDeletionIsNotRepeatedForPodThatStays: the deletion was refused, and the next attempt comes when the request has
// ended or has no requesters any more, which the cache does not know, as in a process that was suspended.
func TestDeletionIsNotRepeatedForPodThatStays(t *testing.T) {
	for name, change := range map[string]func(*coordinationv1alpha1.EvictionRequest){
		"canceled": func(request *coordinationv1alpha1.EvictionRequest) {
			request.Status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.EvictionRequestConditionCanceled), Status: metav1.ConditionTrue}}
		},
		"without requesters":  func(request *coordinationv1alpha1.EvictionRequest) { request.Spec.Requesters = nil },
		"replaced by another": func(request *coordinationv1alpha1.EvictionRequest) { request.UID = "next" },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, withTargets(targetsUpTo(999)), func(t *testing.T, w *world) {
				w.answerDeletes(errors.New("no"))
				w.update("nodes", drained("node", targetsUpTo(1000)), "")
				w.lock.Lock()
				attempts := slices.Clone(w.deletes)
				w.lock.Unlock()
				stored := requestFor(newAgentPod())
				change(stored)
				w.prependReactor("get", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, stored.DeepCopy(), nil
				})
				w.prependReactor("patch", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
					if stored.UID != "request" {
						return true, nil, apierrors.NewConflict(coordinationv1alpha1.Resource("evictionrequests"), stored.Name, errors.New("another UID"))
					}
					return evictionrequest.IsFinished(stored.Status.Conditions), stored.DeepCopy(), nil
				})
				w.answerDeletes(nil)
				time.Sleep(time.Hour)
				w.expectDeletes(attempts...)
			})
		})
	}
}

// TestWithdrawnRequestIsNotAccepted: a pod whose request has no requesters when its turn comes stays.
func TestWithdrawnRequestIsNotAccepted(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(999)), func(t *testing.T, w *world) {
		request := requestFor(newAgentPod())
		request.Spec.Requesters = nil
		if err := w.client.Tracker().Update(coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests"), request, work); err != nil {
			t.Fatalf("withdrawing the request: %v", err)
		}
		w.settle()
		w.update("nodes", drained("node", targetsUpTo(1000)), "")
		w.expectSilence()
	})
}

// There are as many pods of a DaemonSet as nodes: an unchanged report is not written again while
// the deletion is rejected.
func TestRejectedDeletionIsReportedOnce(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(999)), func(t *testing.T, w *world) {
		w.answerDeletes(errors.New("refused by a webhook"))
		w.update("nodes", drained("node", targetsUpTo(1000)), "")
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		reports := 0
		for _, action := range w.client.Actions() {
			if action.Matches("patch", "evictionrequests/status") {
				reports++
			}
		}
		if reports > 3 {
			t.Errorf("%d reports in 6 hours, want at most 3; the last says %q", reports, w.entry().Message)
		}
	})
}

// The termination of a pod can be missed: the cache then only shows another pod of the same name.
func TestPodIsReplacedByAnother(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(1000)), func(t *testing.T, w *world) {
		w.update("pods", newAgentPod(func(pod *v1.Pod) { pod.UID = "next" }), work)
		if entry := w.entry(); entry.CompletionTime == nil {
			t.Errorf("the report is %v, want it complete", entry)
		}
		w.expectDeletes("uid")
	})
}

// A missed termination may only show as a tombstone.
func TestTerminationByTombstone(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(1000)), func(t *testing.T, w *world) {
		w.interceptor.podDeleted(cache.DeletedFinalStateUnknown{Key: "work/agent-x", Obj: newAgentPod()})
		w.settle()
		if entry := w.entry(); entry.CompletionTime == nil {
			t.Errorf("the report is %v, want it complete", entry)
		}
	})
}

// TestPodGoesBeforeItsTurn removes the pod between the acceptance and the start of its turn.
func TestPodGoesBeforeItsTurn(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(999)), func(t *testing.T, w *world) {
		w.prependReactor("patch", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			_ = w.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), work, "agent-x") // Once.
			time.Sleep(time.Second)                                                                    // Let the cache catch up.
			return false, nil, nil
		})
		w.update("nodes", drained("node", targetsUpTo(1000)), "")
		if entry := w.entry(); entry.CompletionTime == nil {
			t.Errorf("the report is %v, want it complete", entry)
		}
		w.expectDeletes()
	})
}

// TestDeletionsAreCounted has rejected deletions and a successful one.
func TestDeletionsAreCounted(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(999)), func(t *testing.T, w *world) {
		count := func(result string) float64 {
			values, err := testutil.GetCounterValuesFromGatherer(legacyregistry.DefaultGatherer, "daemonset_controller_maintenance_pod_deletes_total", nil, "result")
			if err != nil {
				t.Errorf("reading the metric: %v", err)
			}
			return values[result]
		}
		deleted, failed := count("deleted"), count("failed")
		expect := func(what string, wantDeleted, wantFailed float64) {
			t.Helper()
			if gotDeleted, gotFailed := count("deleted")-deleted, count("failed")-failed; gotDeleted != wantDeleted || gotFailed != wantFailed {
				t.Errorf("%s: %v deleted and %v failed are counted, want %v and %v", what, gotDeleted, gotFailed, wantDeleted, wantFailed)
			}
		}
		w.answerDeletes(errors.New("no"))
		w.update("nodes", drained("node", targetsUpTo(1000)), "")
		refused := float64(len(w.recorder.Events))
		expect("refused", 0, refused)
		w.answerDeletes(nil)
		time.Sleep(time.Minute)
		expect("deleted", 1, refused)
	})
}

// A process that stops during a deletion reports no failure.
func TestDeletionIsInterrupted(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(999)), func(t *testing.T, w *world) {
		w.update("nodes", drained("node", targetsUpTo(1000)), "")
		w.expectEvent("Normal DeletedForMaintenance")
		w.answerDeletes(context.Canceled)
		stopping := errors.New("stopping")
		ctx, stop := context.WithCancelCause(t.Context())
		stop(stopping)
		if gone, err := w.interceptor.delete(ctx, newAgentPod(), nil, "node maintenance m"); gone || !errors.Is(err, stopping) {
			t.Errorf("got %t, %v, want %v", gone, err, stopping)
		}
		if len(w.recorder.Events) > 0 {
			t.Errorf("an event for a failure: %s", <-w.recorder.Events)
		}
	})
}

// The waiter for a pod is removed when the request is canceled.
func TestCanceledTurnForgetsItsPod(t *testing.T) {
	inBubble(t, withTargets(targetsUpTo(1000)), func(t *testing.T, w *world) {
		if got := len(w.interceptor.waiters.awaited); got != 1 {
			t.Errorf("waits for the end of %d pods, want 1", got)
		}
		requests := w.client.CoordinationV1alpha1().EvictionRequests(work)
		request, err := requests.Get(t.Context(), "uid", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("reading the request: %v", err)
		}
		request.Status.Conditions = []metav1.Condition{{Type: "Canceled", Status: metav1.ConditionTrue}}
		if _, err := requests.UpdateStatus(t.Context(), request, metav1.UpdateOptions{}); err != nil {
			t.Fatalf("canceling the request: %v", err)
		}
		w.settle()
		if got := len(w.interceptor.waiters.awaited); got != 0 {
			t.Errorf("still waits for the end of %d pods", got)
		}
	})
}
