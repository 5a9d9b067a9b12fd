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

package evictionrequest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/metrics"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
)

var errUnreachable = errors.New("unreachable")

func TestSyncRequest(t *testing.T) {
	finished := having(targets(), processed(builtIn), condition(evicted, metav1.ConditionTrue, "PodDeleted", "", 0))

	tests := map[string]struct {
		after    time.Duration
		objects  []runtime.Object
		want     []*coordinationv1alpha1.EvictionRequestStatus
		nextSync time.Duration
		podReads int
	}{
		"a deleted request": {
			objects: []runtime.Object{newPod()},
		},
		"a finished request updates its observedGeneration": {
			objects: []runtime.Object{newRequest(generation(2), withoutRequesters, finished)},
			want: []*coordinationv1alpha1.EvictionRequestStatus{newStatus(targets(), processed(builtIn), condition(evicted, metav1.ConditionTrue, "PodDeleted", "", 0),
				func(status *coordinationv1alpha1.EvictionRequestStatus) { status.ObservedGeneration = 2 })},
		},
		"a finished request is kept until the TTL ends": {
			after:   10 * time.Minute,
			objects: []runtime.Object{newRequest(finished)},
		},
		"a new request is initialized in one write": {
			objects:  []runtime.Object{newRequest(deadlineOf(600)), newPod(interceptedBy(first))},
			want:     []*coordinationv1alpha1.EvictionRequestStatus{newStatus(targets(first), active(first, 0))},
			nextSync: time.Minute,
		},
		"an idle request is not written, and is synced again when its interceptor is overdue": {
			after:    time.Minute,
			objects:  []runtime.Object{newRequest(deadlineOf(600), having(targets(first), active(first, 0), reporting(alive(first, 0, 0)))), newPod()},
			nextSync: 4 * time.Minute,
		},
		"a request without a deadline waits for events": {
			objects: []runtime.Object{newRequest(having(targets(), active(builtIn, 0))), newPod()},
		},
		"the pod of the same name has another UID": {
			objects: []runtime.Object{newRequest(having(targets(first), active(first, 0))), newPod(podUIDIs(otherUID))},
			want: []*coordinationv1alpha1.EvictionRequestStatus{newStatus(targets(first), processed(first), activatedLast(0),
				condition(evicted, metav1.ConditionTrue, "PodDeleted", "Target Pod web-0 was deleted.", 0))},
			podReads: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.objects...)
			f.clock.Step(test.after)
			_, ctx := ktesting.NewTestContext(t)
			if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			f.expectWrites(t, test.want...)
			if got := f.decisions.after[requestKeyOfPod]; got != test.nextSync {
				t.Errorf("next sync after %s, want %s", got, test.nextSync)
			}
			if got := countActions(f.client.Actions(), "get", "pods"); got != test.podReads {
				t.Errorf("read the pod %d times from the API server, want %d", got, test.podReads)
			}
		})
	}
}

// The labels of the pod are written no later than the first activation, and the status update uses
// the resourceVersion of the patched request.
func TestSyncRequestCopiesLabelsFirst(t *testing.T) {
	f := newFixture(t, newRequest(requestLabels(map[string]string{"app": "db", "team": "a"})), newPod())
	_, ctx := ktesting.NewTestContext(t)
	if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	actions := f.client.Actions()
	if len(actions) != 2 || !actions[0].Matches("patch", "evictionrequests") || !actions[1].Matches("update", "evictionrequests") {
		t.Fatalf("got %v, want a patch and then an update", actions)
	}
	updated := actions[1].(clienttesting.UpdateAction).GetObject().(*coordinationv1alpha1.EvictionRequest)
	if diff := cmp.Diff(map[string]string{"app": "web", "team": "a"}, updated.Labels); diff != "" {
		t.Errorf("unexpected labels (-want, +got):\n%s", diff)
	}
	f.expectWrites(t, newStatus(targets(), active(builtIn, 0)))
}

// After a patch with a conflict, the next sync decides.
func TestSyncRequestStopsAfterLabelConflict(t *testing.T) {
	f := newFixture(t, newRequest(requestLabels(nil)), newPod())
	f.client.PrependReactor("patch", "evictionrequests", answering(apierrors.NewConflict(evictionRequestResource, string(podUID), errUnreachable)))
	_, ctx := ktesting.NewTestContext(t)
	if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	f.expectWrites(t)
	if got := f.decisions.after[requestKeyOfPod]; got != safetyInterval {
		t.Errorf("the next sync is after %s, want %s", got, safetyInterval)
	}
}

// A webhook that refuses the labels must not prevent the eviction. The labels are retried.
func TestSyncRequestContinuesWithoutLabels(t *testing.T) {
	f := newFixture(t, newRequest(requestLabels(nil)), newPod())
	f.client.PrependReactor("patch", "evictionrequests", answering(errUnreachable))
	_, ctx := ktesting.NewTestContext(t)
	if err := f.syncRequest(ctx, requestKeyOfPod); !errors.Is(err, errUnreachable) {
		t.Errorf("got error %v, want the one of the patch", err)
	}
	f.expectWrites(t, newStatus(targets(), active(builtIn, 0)))
}

func TestSyncRequestDeletesGarbage(t *testing.T) {
	finished := having(targets(), processed(builtIn), condition(canceled, metav1.ConditionTrue, "NoRequesters", "", 0))
	tests := map[string]struct {
		after     time.Duration
		request   *coordinationv1alpha1.EvictionRequest
		deletions int
	}{
		"not before the TTL ends":       {after: ttl - time.Second, request: newRequest(finished)},
		"when the TTL ends":             {after: ttl, request: newRequest(finished), deletions: 1},
		"when a requester is added":     {request: newRequest(generation(2), finished), deletions: 1},
		"not while it is being deleted": {after: ttl, request: newRequest(beingDeleted, finished)},
		"not an active request":         {after: ttl, request: newRequest(having(targets(), active(builtIn, 0)))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.request, newPod())
			f.clock.Step(test.after)
			_, ctx := ktesting.NewTestContext(t)
			if err := f.syncRequest(ctx, requestKeyOfPod); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if got := countActions(f.client.Actions(), "delete", "evictionrequests"); got != test.deletions {
				t.Errorf("deleted it %d times, want %d", got, test.deletions)
			}
			if got := f.decisions.after[requestKeyOfPod]; test.deletions > 0 && got != safetyInterval {
				t.Errorf("the next sync is after %s, want %s: the deletion may have had a conflict", got, safetyInterval)
			}
		})
	}
}

func TestCountRequests(t *testing.T) {
	over := newRequest(having(targets(first), active(first, 0), condition(evicted, metav1.ConditionTrue, "PodDeleted", "", 0)))
	over.Name = "over"
	pending := newRequest()
	pending.Name = "pending"
	// Of two requests the older report counts, and none is expected of the built-in interceptor.
	late := newRequest(having(targets(first), active(first, -time.Hour)))
	late.Name = "late"
	blocked := newRequest(having(targets(builtIn), active(builtIn, -time.Hour), condition("Blocked", metav1.ConditionTrue, "DisruptionBudget", "", -time.Hour)))
	blocked.Name = "blocked"
	longer := newRequest(having(targets(builtIn), active(builtIn, 0), condition("Blocked", metav1.ConditionTrue, "DisruptionBudget", "", -2*time.Hour)))
	longer.Name = "longer"
	not := newRequest(having(targets(builtIn), active(builtIn, 0), condition("Blocked", metav1.ConditionFalse, "NotBlocked", "", -3*time.Hour)))
	not.Name = "not"
	f := newFixture(t, newRequest(having(targets(first), active(first, 0))), over, pending, late, blocked, longer, not)
	f.clock.Step(time.Minute)
	want := metrics.Counts{
		Interceptors: map[string]int{first: 2, builtIn: 3}, Requesters: map[string]int{"drain.example.com": 6},
		OldestHeartbeats: map[string]time.Duration{first: time.Hour + time.Minute},
		Blocked:          map[string]int{"DisruptionBudget": 2},
		OldestBlocked:    map[string]time.Duration{"DisruptionBudget": 2*time.Hour + time.Minute},
	}
	for range 20 { // The cache has no order.
		if diff := cmp.Diff(want, f.countRequests()); diff != "" {
			t.Fatalf("unexpected counts (-want, +got):\n%s", diff)
		}
	}
}

// answering returns a reaction that fails with the error.
func answering(err error) clienttesting.ReactionFunc {
	return func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
}

func countActions(actions []clienttesting.Action, verb, resource string) int {
	count := 0
	for _, action := range actions {
		if action.Matches(verb, resource) {
			count++
		}
	}
	return count
}

func TestSyncRequestErrors(t *testing.T) {
	tests := map[string]struct {
		breaks func(*fixture)
		want   string
	}{
		"reading the request": {
			breaks: func(f *fixture) { f.requestLister = brokenRequestLister{} },
			want:   "reading the request: unreachable",
		},
		"reading the pod": {
			breaks: func(f *fixture) { f.podLister = brokenPodLister{} },
			want:   "reading pod web-0: unreachable",
		},
		"confirming that the pod is gone": {
			breaks: func(f *fixture) {
				f.Controller.pods = func(context.Context, string, string) (*v1.Pod, error) { return nil, errUnreachable }
			},
			want: "confirming that pod web-0 is gone: unreachable",
		},
		"writing the status": {
			breaks: func(f *fixture) {
				f.addToCache(t, newPod())
				f.client.PrependReactor("update", "evictionrequests", answering(errUnreachable))
			},
			want: "writing the status: unreachable",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest())
			test.breaks(f)
			_, ctx := ktesting.NewTestContext(t)
			err := f.syncRequest(ctx, requestKeyOfPod)
			if err == nil || err.Error() != test.want || !errors.Is(err, errUnreachable) {
				t.Errorf("got error %v, want %q that wraps its cause", err, test.want)
			}
			if len(f.decisions.after) > 0 || len(f.events) > 0 {
				t.Errorf("queued %v and recorded %v after a failure", f.decisions.after, f.events)
			}
		})
	}
}

type brokenRequestLister struct {
	coordinationlisters.EvictionRequestLister
}

func (brokenRequestLister) EvictionRequests(string) coordinationlisters.EvictionRequestNamespaceLister {
	return brokenNamespacedRequests{}
}

type brokenNamespacedRequests struct {
	coordinationlisters.EvictionRequestNamespaceLister
}

func (brokenNamespacedRequests) Get(string) (*coordinationv1alpha1.EvictionRequest, error) {
	return nil, errUnreachable
}

type brokenPodLister struct{ corelisters.PodLister }

func (brokenPodLister) Pods(string) corelisters.PodNamespaceLister { return brokenNamespacedPods{} }

type brokenNamespacedPods struct{ corelisters.PodNamespaceLister }

func (brokenNamespacedPods) Get(string) (*v1.Pod, error) { return nil, errUnreachable }

func (brokenNamespacedPods) List(labels.Selector) ([]*v1.Pod, error) { return nil, errUnreachable }

// A pod counts as gone only if that is certain: see the invariants in doc.go.
func TestTargetPod(t *testing.T) {
	successor := newPod(podUIDIs(otherUID))
	tests := map[string]struct {
		addToCache  *v1.Pod
		seenUID     types.UID
		live        *v1.Pod
		liveErr     error
		want        *v1.Pod
		liveReads   int
		expectError bool
	}{
		"is in the cache": {
			addToCache: newPod(), want: newPod(),
		},
		"is in the cache, as before": {
			addToCache: newPod(), seenUID: podUID, want: newPod(),
		},
		"was in the cache": {
			seenUID: podUID,
		},
		"was in the cache, where its successor is now": {
			addToCache: successor, seenUID: podUID,
		},
		"only another pod was in the cache": {
			seenUID: otherUID, live: newPod(), want: newPod(), liveReads: 1,
		},
		"the cache is stale": {
			live: newPod(), want: newPod(), liveReads: 1,
		},
		"the cache has its predecessor": {
			addToCache: successor, live: newPod(), want: newPod(), liveReads: 1,
		},
		"the API server does not have it": {
			liveErr: notFound(podName), liveReads: 1,
		},
		"the API server has another pod of that name": {
			addToCache: successor, live: successor, liveReads: 1,
		},
		"the API server fails": {
			liveErr: apierrors.NewInternalError(errUnreachable), liveReads: 1, expectError: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.addToCache != nil {
				f.addToCache(t, test.addToCache)
			}
			f.seen.add(test.seenUID)
			reads := 0
			f.Controller.pods = func(_ context.Context, inNamespace, name string) (*v1.Pod, error) {
				reads++
				if inNamespace != namespace || name != podName {
					t.Errorf("read pod %s/%s, want %s/%s", inNamespace, name, namespace, podName)
				}
				return test.live, test.liveErr
			}
			got, err := f.targetPod(context.Background(), newRequest())
			if (err != nil) != test.expectError {
				t.Fatalf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected pod (-want, +got):\n%s", diff)
			}
			// A pod that only the API server has may be missing from the cache later.
			if inCache := test.addToCache != nil && test.addToCache.UID == podUID; f.seen.has(podUID) != (inCache || test.seenUID == podUID) {
				t.Errorf("pod stored as seen: %t", f.seen.has(podUID))
			}
			if reads != test.liveReads {
				t.Errorf("read from the API server %d times, want %d", reads, test.liveReads)
			}
		})
	}
}

func TestPodGetter(t *testing.T) {
	f := newFixture(t, newPod())
	got, err := podeviction.NewReader(f.client)(context.Background(), namespace, podName)
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if diff := cmp.Diff(newPod(), got); diff != "" {
		t.Errorf("unexpected pod (-want, +got):\n%s", diff)
	}
	if _, err := podeviction.NewReader(f.client)(context.Background(), namespace, "web-1"); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v for a pod that does not exist, want NotFound", err)
	}
}

// A request with the name of the request for another pod must not prevent the eviction of that pod.
// It is deleted when both are in the cache, in any order.
func TestMisnamedRequestIsDeleted(t *testing.T) {
	const validationFailed = coordinationv1alpha1.EvictionRequestReasonValidationFailed
	owner := newPod(func(pod *v1.Pod) { pod.Name = "web-1" })
	elsewhere := newPod(func(pod *v1.Pod) { pod.Namespace = "test" })
	unknown := newRequest(having(condition(canceled, metav1.ConditionTrue, validationFailed, "not found", 0)))
	tests := map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		pods    []*v1.Pod
		deleted bool
	}{
		"another pod has the UID":       {request: unknown, pods: []*v1.Pod{newPod(podUIDIs(otherUID)), owner}, deleted: true},
		"no pod has the UID":            {request: unknown, pods: []*v1.Pod{newPod(podUIDIs(otherUID))}},
		"the target itself was created": {request: unknown, pods: []*v1.Pod{newPod()}},
		"a pod of another namespace":    {request: unknown, pods: []*v1.Pod{elsewhere}},
		"it ended for another reason":   {request: newRequest(having(condition(canceled, metav1.ConditionTrue, "NoRequesters", "", 0))), pods: []*v1.Pod{owner}},
		"it was initialized":            {request: newRequest(having(targets(), processed(builtIn), condition(canceled, metav1.ConditionTrue, validationFailed, "", 0))), pods: []*v1.Pod{owner}},
		"other finalizers keep it":      {request: newRequest(beingDeleted, having(condition(canceled, metav1.ConditionTrue, validationFailed, "", 0))), pods: []*v1.Pod{owner}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.request)
			_, ctx := ktesting.NewTestContext(t)
			for _, pod := range test.pods {
				f.sendUpdate(t, pod)
			}
			f.decisions.Add(requestKeyOfPod)
			f.Controller.work(ctx)
			if got := countActions(f.client.Actions(), "delete", "evictionrequests"); got > 0 != test.deleted {
				t.Errorf("deleted it %d times", got)
			}
		})
	}
}

// A new request for a pod with the wrong UID is canceled, and deleted on the event of the pod that
// it blocks.
func TestMisnamedRequestIsDeletedAtOnce(t *testing.T) {
	f := newFixture(t, newRequest(version("1")), newPod(podUIDIs(otherUID)))
	_, ctx := ktesting.NewTestContext(t)
	f.decisions.Add(requestKeyOfPod)
	f.Controller.work(ctx)
	canceledRequest := newRequest(version("2"))
	canceledRequest.Status = f.writes(t)[0]
	f.sendUpdate(t, canceledRequest)
	f.Controller.work(ctx)
	if got := countActions(f.client.Actions(), "delete", "evictionrequests"); got != 0 {
		t.Fatalf("deleted it %d times while no pod has its name", got)
	}
	f.sendUpdate(t, newPod(func(pod *v1.Pod) { pod.Name = "web-1" }))
	f.Controller.work(ctx)
	if got := countActions(f.client.Actions(), "delete", "evictionrequests"); got != 1 {
		t.Errorf("deleted it %d times, want once", got)
	}
}

func TestPodSet(t *testing.T) {
	pods := newPodSet()
	if pods.has(podUID) {
		t.Error("a new set has a pod")
	}
	pods.add(podUID)
	if !pods.has(podUID) || pods.has(otherUID) {
		t.Errorf("after adding one pod: has it %t, has another %t", pods.has(podUID), pods.has(otherUID))
	}
	pods.remove(otherUID)
	if !pods.has(podUID) {
		t.Error("removing another pod removed this one")
	}
	pods.remove(podUID)
	if pods.has(podUID) {
		t.Error("the pod was not removed")
	}
}

// Both queues and the event handlers use the set concurrently. A race is detected by the race
// detector, or by the map itself.
func TestPodSetIsSafeForConcurrentUse(t *testing.T) {
	pods := newPodSet()
	var running sync.WaitGroup
	for i := range 8 {
		uid := types.UID(strings.Repeat("x", i+1))
		running.Go(func() {
			for range 2000 {
				pods.add(uid)
				pods.has(uid)
				pods.remove(uid)
			}
			pods.add(uid)
		})
	}
	running.Wait()
	if got := pods.uids.Len(); got != 8 {
		t.Errorf("the set has %d pods, want 8", got)
	}
}

// TestMarkOfAnEviction: while an eviction is in flight, Canceled does not say that the pod stays: also one for a former
// request for the same pod, and not for longer than such a call can take, however often somebody renews the mark.
func TestMarkOfAnEviction(t *testing.T) {
	const own, former = "Eviction API: evicting for EvictionRequest with UID " + string(requestUID) + ", call 1", "Eviction API: evicting for EvictionRequest with UID 7, call 1"
	for name, test := range map[string]struct {
		message string
		status  v1.ConditionStatus
		age     time.Duration
		want    bool
	}{
		"none":                     {want: true},
		"its own":                  {message: own, status: v1.ConditionTrue},
		"of a former request":      {message: former, status: v1.ConditionTrue},
		"cleared":                  {message: own, status: v1.ConditionFalse, want: true},
		"of another kind":          {message: "Eviction API: evicting", status: v1.ConditionTrue, want: true},
		"old":                      {message: own, status: v1.ConditionTrue, age: markTTL + time.Second, want: true},
		"as old as a call can be":  {message: own, status: v1.ConditionTrue, age: markTTL},
		"from a clock that is off": {message: own, status: v1.ConditionTrue, age: -maxMarkSkew - time.Second, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newRequest(withoutRequesters), newPod())
			pod := newPod()
			if test.message != "" {
				pod.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: test.status, Message: test.message, LastTransitionTime: metav1.NewTime(f.clock.Now().Add(-test.age))}}
			}
			f.Controller.pods = func(context.Context, string, string) (*v1.Pod, error) { return pod, nil }
			if stays, err := f.confirmStays(t.Context(), newRequest(withoutRequesters)); err != nil || stays != test.want {
				t.Errorf("stays: %t, error %v, want %t", stays, err, test.want)
			}
			if test.want {
				return
			}
			renewed := 0
			for ; renewed < 100; renewed++ {
				f.clock.Step(time.Minute)
				pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(f.clock.Now())
				if stays, _ := f.confirmStays(t.Context(), newRequest(withoutRequesters)); stays {
					break
				}
			}
			if renewed != 10 {
				t.Errorf("renewed for %d minutes", renewed)
			}
		})
	}
}

// TestMarkOfAnotherEviction: a request that is wanted again and withdrawn once more waits for the eviction that is in
// flight then, however long ago it was withdrawn for the first time.
func TestMarkOfAnotherEviction(t *testing.T) {
	f := newFixture(t, newRequest(having(targets(builtIn), active(builtIn, 0))), newPod())
	pod := newPod()
	f.Controller.pods = func(context.Context, string, string) (*v1.Pod, error) { return pod, nil }
	withdraw := func() bool {
		pod.Status.Conditions = []v1.PodCondition{{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(f.clock.Now()),
			Message: "Eviction API: evicting for EvictionRequest with UID " + string(requestUID) + ", call 1",
		}}
		stays, err := f.confirmStays(t.Context(), newRequest(withoutRequesters))
		if err != nil {
			t.Fatal(err)
		}
		return stays
	}
	if withdraw() {
		t.Fatal("the pod stays while the first eviction is in flight")
	}
	if err := f.syncRequest(t.Context(), requestKeyOfPod); err != nil { // It is wanted again.
		t.Fatal(err)
	}
	f.clock.Step(markTTL + time.Second)
	if withdraw() {
		t.Error("the pod stays while the second eviction is in flight")
	}
}
