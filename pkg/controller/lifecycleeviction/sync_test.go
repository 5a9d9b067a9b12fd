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

package lifecycleeviction

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const (
	theKey  = "default/pod"
	drainer = "example.com/drainer"
	evictor = lifecyclev1alpha1.EvictionResponderImperativeEviction
)

// world is an API server with a controller, whose caches have what is there when refresh was called last.
type world struct {
	*testing.T
	*Controller
	client  *fake.Clientset
	clock   *testingclock.FakeClock
	factory informers.SharedInformerFactory
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	c, _, clock, factory := newTestController(t)
	w := &world{t, c, c.client.(*fake.Clientset), clock, factory}
	w.add(objects...)
	w.refresh()
	return w
}

func (w *world) add(objects ...runtime.Object) {
	w.Helper()
	for _, object := range objects {
		if err := w.client.Tracker().Add(object); err != nil {
			w.Fatal(err)
		}
	}
}

// refresh lets the caches catch up. What was created gets the UID and the time that an API server gives it.
func (w *world) refresh() {
	w.Helper()
	evictions, requests := w.evictionList(), w.requestList()
	for i := range evictions {
		if evictions[i].UID == "" {
			evictions[i].UID, evictions[i].CreationTimestamp = types.UID(evictions[i].Name), metav1.NewTime(w.clock.Now())
			if err := w.client.Tracker().Update(lifecyclev1alpha1.SchemeGroupVersion.WithResource("evictions"), &evictions[i], "default"); err != nil {
				w.Fatal(err)
			}
		}
	}
	own, err := w.client.CoordinationV1alpha1().EvictionRequests("default").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	pods, err := w.client.CoreV1().Pods("default").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	fill(w, w.factory.Lifecycle().V1alpha1().Evictions().Informer(), evictions)
	fill(w, w.factory.Lifecycle().V1alpha1().EvictionRequests().Informer(), requests)
	fill(w, w.factory.Coordination().V1alpha1().EvictionRequests().Informer(), own.Items)
	fill(w, w.factory.Core().V1().Pods().Informer(), pods.Items)
	w.written.Clear(types.NamespacedName{Namespace: "default", Name: "pod"}, "")
	w.client.ClearActions()
}

func fill[T any](w *world, informer cache.SharedIndexInformer, items []T) {
	w.Helper()
	var objects []any
	for i := range items {
		objects = append(objects, &items[i])
	}
	if err := informer.GetStore().Replace(objects, ""); err != nil {
		w.Fatal(err)
	}
}

func (w *world) evictionList() []lifecyclev1alpha1.Eviction {
	w.Helper()
	list, err := w.client.LifecycleV1alpha1().Evictions("default").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return list.Items
}

func (w *world) requestList() []lifecyclev1alpha1.EvictionRequest {
	w.Helper()
	list, err := w.client.LifecycleV1alpha1().EvictionRequests("default").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// step syncs the pod, and returns the writes of that, when it wants to be called again, and its error.
func (w *world) step() (writes []string, after time.Duration, err error) {
	w.Helper()
	w.client.ClearActions()
	after, err = w.Controller.sync(w.Context(), theKey)
	for _, action := range w.client.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			resource := action.GetResource()
			writes = append(writes, strings.TrimSuffix(fmt.Sprintf("%s %s.%s/%s", verb, resource.Resource, strings.TrimSuffix(resource.Group, ".k8s.io"), action.GetSubresource()), "/"))
		}
	}
	return writes, after, err
}

// expect syncs the pod, which has to succeed with these writes, and lets the caches catch up.
func (w *world) expect(after time.Duration, writes ...string) {
	w.Helper()
	got, wait, err := w.step()
	if err != nil {
		w.Fatalf("sync: %v", err)
	}
	if diff := cmp.Diff(writes, got); diff != "" {
		w.Errorf("writes (-want +got):\n%s", diff)
	}
	if wait != after {
		w.Errorf("wants to be called after %s, want %s", wait, after)
	}
	w.refresh()
}

// refuse has these calls fail.
func (w *world) refuses(verb, resource, group, subresource string, err error) {
	w.client.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetResource().Group == group && action.GetSubresource() == subresource, nil, err
	})
}

// eviction returns what the Eviction of this name says.
func (w *world) said(name string) string {
	w.Helper()
	for _, eviction := range w.evictionList() {
		if eviction.Name == name {
			return stateOf(&eviction.Status)
		}
	}
	return "none"
}

// answer returns what the conditions of an EvictionRequest of the group say.
func (w *world) answered(name string) string {
	w.Helper()
	for _, request := range w.requestList() {
		if request.Name == name {
			return stateOf(&lifecyclev1alpha1.EvictionStatus{Conditions: request.Status.Conditions})
		}
	}
	return "none"
}

func asks(name, requester string, options ...func(*lifecyclev1alpha1.EvictionRequest)) *lifecyclev1alpha1.EvictionRequest {
	request := &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(epoch)}}
	request.Spec = lifecyclev1alpha1.EvictionRequestSpec{
		Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: "web", UID: "pod"}},
		Requester: requester, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
	}
	for _, option := range options {
		option(request)
	}
	return request
}

func withdrawn(request *lifecyclev1alpha1.EvictionRequest) {
	request.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
}

func named(pod string) func(*lifecyclev1alpha1.EvictionRequest) {
	return func(request *lifecyclev1alpha1.EvictionRequest) { request.Spec.Target.Pod.Name = pod }
}

// shows returns an Eviction of the pod whose first responder of these is Active.
func shows(name string, responders ...string) *lifecyclev1alpha1.Eviction {
	eviction := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(epoch)}}
	eviction.Spec.Target.Pod = &lifecyclev1alpha1.EvictionPodReference{Name: "web", UID: "pod"}
	for i, responder := range responders {
		target, report := lifecyclev1alpha1.TargetResponder{Name: responder, State: lifecyclev1alpha1.ResponderStateInactive}, lifecyclev1alpha1.ResponderStatus{Name: responder}
		if i == 0 {
			target.State, report.StartTime = lifecyclev1alpha1.ResponderStateActive, ptr.To(metav1.NewTime(epoch))
		}
		eviction.Status.TargetResponders, eviction.Status.Responders = append(eviction.Status.TargetResponders, target), append(eviction.Status.Responders, report)
	}
	if len(responders) > 0 {
		setOutcome(&eviction.Status.Conditions, awaiting, 1, epoch)
	}
	return eviction
}

func endedAs(eviction *lifecyclev1alpha1.Eviction, end outcome) *lifecyclev1alpha1.Eviction {
	setOutcome(&eviction.Status.Conditions, end, 1, epoch)
	return eviction
}

// requestedBy returns a request of the other group, with UID and requesters.
func requestedBy(request *coordinationv1alpha1.EvictionRequest, names ...string) *coordinationv1alpha1.EvictionRequest {
	request.UID, request.Spec.Target.Pod = "request", &coordinationv1alpha1.LocalPodReference{Name: "web", UID: "pod"}
	for _, name := range names {
		request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: name})
	}
	return request
}

const (
	goingOn     = "False/AwaitingEviction False/AwaitingEviction"
	podIsGone   = "True/PodDeleted False/Succeeded"
	notWanted   = "False/EvictionFailed True/CanceledDueToNoRequesters"
	notValid    = "False/EvictionFailed True/EvictionInvalid"
	applyOwn    = "patch evictionrequests.coordination"
	createView  = "create evictions.lifecycle"
	relabelView = "update evictions.lifecycle"
	reportView  = "update evictions.lifecycle/status"
	reportOwn   = "update evictionrequests.coordination/status"
	answerOne   = "update evictionrequests.lifecycle/status"
)

// A quota, or a webhook, is not the end of a request, whose status says what it refuses.
func TestRequestIsRefused(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer))
	w.refuses("patch", "evictionrequests", "coordination.k8s.io", "", apierrors.NewForbidden(ownResource, "pod", errors.New("exceeded quota: few, requested: count=1, used: count=7")))
	if _, _, err := w.step(); err == nil {
		t.Error("the error is lost")
	}
	conditions := w.requestList()[0].Status.Conditions
	if len(conditions) != 2 || !strings.Contains(conditions[0].Message, "exceeded quota: few.") || conditions[0].Reason != "AwaitingEviction" {
		t.Errorf("conditions: %v", conditions)
	}
}

// The evictionrequest-controller must not wait for what this one is about to create.
func TestCreatedRequestIsAgreed(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer))
	w.client.PrependReactor("patch", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		if w.compared.Lacks(requestedBy(requestAt(0), drainer)) {
			t.Error("it is written before others know that it is wanted")
		}
		return false, nil, nil
	})
	w.expect(0, applyOwn, createView, reportView, answerOne)
	w.expect(0)
	if got := w.said("pod-1-web"); got != goingOn {
		t.Errorf("the Eviction says %s", got)
	}
}

// A pod that nobody but the last responder has to do with is usually gone before something has to be said.
func TestNothingIsSaidAtOnce(t *testing.T) {
	pod := newPod()
	pod.Spec.EvictionResponders = nil
	request := requestedBy(requestAt(0, last), drainer)
	w := newWorld(t, pod, asks("one", drainer), request, shows("pod-1-web"))
	request.Status.ActivationTime = ptr.To(metav1.NewTime(w.clock.Now()))
	w.set(request)
	w.expect(patience, relabelView, answerOne)
	w.clock.Step(patience)
	w.expect(0, reportView)
	if got := w.said("pod-1-web"); got != evictor+"=Active "+goingOn {
		t.Errorf("the Eviction says %s", got)
	}
}

// set changes a request of the other group.
func (w *world) set(request *coordinationv1alpha1.EvictionRequest) {
	w.Helper()
	if err := w.client.Tracker().Update(coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests"), request, "default"); err != nil {
		w.Fatal(err)
	}
	w.refresh()
}

// Responders act although labels cannot be written.
func TestLabelsAreRefused(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer), requestedBy(requestAt(0, early, late, last), drainer), shows("pod-1-web"))
	w.refuses("update", "evictions", "lifecycle.k8s.io", "", errors.New("a webhook refuses"))
	if _, _, err := w.step(); err == nil {
		t.Error("the error is lost")
	}
	if got, want := w.said("pod-1-web"), early+"=Active "+late+"=Inactive "+evictor+"=Inactive "+goingOn; got != want {
		t.Errorf("the Eviction says %s, want %s", got, want)
	}
}

// Labels that somebody removes again and again are not written as often.
func TestLabelsAreRemoved(t *testing.T) {
	request := requestedBy(requestAt(0, early, late, last), drainer)
	w := newWorld(t, newPod(), asks("one", drainer), request)
	w.expect(0, createView, reportView, answerOne)
	w.clock.Step(time.Second)
	eviction := &w.evictionList()[0]
	eviction.Labels = nil
	if err := w.client.Tracker().Update(lifecyclev1alpha1.SchemeGroupVersion.WithResource("evictions"), eviction, "default"); err != nil {
		t.Fatal(err)
	}
	w.refresh()
	w.expect(restoreInterval - time.Second)
	w.clock.Step(restoreInterval - time.Second)
	w.expect(0, relabelView)
	w.expect(0)
}

// One that has failed is not shown to who asks again.
func TestAskedAgainAfterTheEnd(t *testing.T) {
	request := ended(requestedBy(requestAt(0, early, late, last)), coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestReasonNoRequesters, epoch)
	w := newWorld(t, newPod(), asks("one", drainer), request, endedAs(shows("pod-1-web"), canceledAs("")))
	w.refuses("patch", "evictionrequests", "coordination.k8s.io", "", errors.New("not now"))
	if _, _, err := w.step(); err == nil {
		t.Error("the error is lost")
	}
	if got := w.answered("one"); got != goingOn {
		t.Errorf("the answer is %s", got)
	}
	if got := len(w.evictionList()); got != 1 {
		t.Errorf("%d Evictions, want none before the request goes on", got)
	}
}

// The pod is gone before the request was there again that somebody had deleted: the Eviction says that it was there.
func TestAskedAgainTooLate(t *testing.T) {
	request := ended(requestedBy(requestAt(0), drainer), coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestReasonValidationFailed, epoch)
	for name, test := range map[string]struct {
		failed *lifecyclev1alpha1.Eviction
		want   string
	}{
		"its eviction had begun": {endedAs(shows("pod-1-web", evictor), canceledAs("")), podIsGone},
		"there never was one":    {endedAs(shows("pod-1-web"), failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, "")), notValid},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, asks("one", drainer), request.DeepCopy(), test.failed)
			for range 2 {
				if _, _, err := w.step(); err != nil {
					t.Fatal(err)
				}
				w.refresh()
				if got := w.answered("one"); got != test.want {
					t.Errorf("the answer is %s, want %s", got, test.want)
				}
			}
		})
	}
}

// A failed Eviction is followed by another one only if the eviction goes on.
func TestNothingFollowsAFailure(t *testing.T) {
	failed := endedAs(shows("pod-1-web", evictor), canceledAs(""))
	failed.Status.ObservedGeneration = ptr.To[int64](1)
	w := newWorld(t, newPod(), asks("one", drainer, withdrawn), failed)
	if _, _, err := w.step(); err != nil {
		t.Fatal(err)
	}
	if got := len(w.evictionList()); got != 1 {
		t.Errorf("%d Evictions, want 1", got)
	}
}

// What is evicted is not requested again.
func TestNothingFollowsTheEnd(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer), endedAs(shows("pod-1-web", evictor), evictedAs(lifecyclev1alpha1.EvictionConditionReasonPodDeleted, "")))
	writes, _, err := w.step()
	if err != nil || slices.Contains(writes, applyOwn) {
		t.Errorf("wrote %v, %v", writes, err)
	}
	if got := w.answered("one"); got != podIsGone {
		t.Errorf("the answer is %s", got)
	}
}

// Heartbeats are not copied as often as somebody likes; a completion is.
func TestPaceOfReports(t *testing.T) {
	request := requestedBy(requestAt(0, early, late, last), drainer)
	eviction := shows("pod-1-web", early, late, evictor)
	w := newWorld(t, newPod(), asks("one", drainer), request, eviction)
	if _, _, err := w.step(); err != nil { // Labels, and the answer.
		t.Fatal(err)
	}
	w.refresh()
	report := func(change func(*lifecyclev1alpha1.ResponderStatus)) {
		t.Helper()
		eviction := &w.evictionList()[0]
		change(reportOf(&eviction.Status, early))
		if err := w.client.Tracker().Update(lifecyclev1alpha1.SchemeGroupVersion.WithResource("evictions"), eviction, "default"); err != nil {
			t.Fatal(err)
		}
		w.refresh()
	}
	report(func(r *lifecyclev1alpha1.ResponderStatus) {
		r.HeartbeatTime = ptr.To(metav1.NewTime(w.clock.Now().Truncate(time.Second)))
	})
	w.expect(0, reportOwn)
	w.clock.Step(time.Second)
	report(func(r *lifecyclev1alpha1.ResponderStatus) { r.Message = ptr.To("Saving.") })
	w.expect(restoreInterval - time.Second)
	report(func(r *lifecyclev1alpha1.ResponderStatus) { r.CompletionTime = ptr.To(metav1.NewTime(w.clock.Now())) })
	w.expect(0, reportOwn)
}

// A request that is deleted in the meantime needs no answer.
func TestAskerIsGone(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer))
	w.refuses("update", "evictionrequests", "lifecycle.k8s.io", "status", apierrors.NewNotFound(requestResource, "one"))
	if _, _, err := w.step(); err != nil {
		t.Errorf("sync: %v", err)
	}
}

// Who makes many requests does not keep others waiting.
func TestManyAskers(t *testing.T) {
	w := newWorld(t, newPod(), requestedBy(requestAt(0, early, late, last), drainer))
	for i := range maxAnswers + 7 {
		w.add(asks(fmt.Sprintf("ask-%d", i), drainer))
	}
	w.refresh()
	for _, want := range []struct {
		answers int
		after   time.Duration
	}{{maxAnswers, catchUpInterval}, {7, 0}, {0, 0}} {
		writes, after, err := w.step()
		if err != nil {
			t.Fatal(err)
		}
		answers := 0
		for _, write := range writes {
			if write == answerOne {
				answers++
			}
		}
		if answers != want.answers || after != want.after {
			t.Errorf("%d answers, and again after %s, want %d, and after %s", answers, after, want.answers, want.after)
		}
		w.refresh()
	}
}

// Nothing is decided while the caches lack what was written.
func TestCachesAreBehind(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer))
	w.written = behind{}
	w.expect(catchUpInterval)
}

// behind says that the caches lack something.
type behind struct{}

func (behind) WroteAt(types.NamespacedName, types.UID, schema.GroupResource, string) {}
func (behind) Clear(types.NamespacedName, types.UID)                                 {}
func (behind) EnsureReady(types.NamespacedName) error                                { return errors.New("behind") }

func TestEarlier(t *testing.T) {
	for _, test := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {1, 2, 1}, {2, 1, 1}} {
		if got := earlier(test.a, test.b); got != test.want {
			t.Errorf("of %d and %d: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

// The name of the pod is that of its request, or the one under which it is known, whatever others say.
func TestIdentify(t *testing.T) {
	byHand := shows("by-hand")
	byHand.Spec.Target.Pod.Name = "other"
	older := asks("older", "example.com/other", named("other"), func(r *lifecyclev1alpha1.EvictionRequest) {
		r.CreationTimestamp = metav1.NewTime(epoch.Add(-time.Hour))
	})
	for name, test := range map[string]struct {
		objects        []runtime.Object
		want           string
		others, hidden int
	}{
		"the request says so":             {[]runtime.Object{older, asks("one", drainer), requestedBy(requestAt(0, last), drainer)}, "web", 1, 0},
		"the pod is there":                {[]runtime.Object{older, asks("one", drainer), newPod(), byHand}, "web", 1, 1},
		"an Eviction that has begun":      {[]runtime.Object{older, shows("pod-1-web", evictor)}, "web", 1, 0},
		"requests before Evictions":       {[]runtime.Object{byHand, asks("one", drainer)}, "web", 0, 1},
		"the oldest one, as nobody knows": {[]runtime.Object{older, asks("one", drainer)}, "other", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := newWorld(t, test.objects...).read(theKey)
			if err != nil {
				t.Fatal(err)
			}
			if found.name != test.want || len(found.others) != test.others || len(found.otherEvictions) != test.hidden {
				t.Errorf("pod %s, %d requests and %d Evictions for others, want %s, %d and %d", found.name, len(found.others), len(found.otherEvictions), test.want, test.others, test.hidden)
			}
		})
	}
}

func TestCurrent(t *testing.T) {
	at := func(eviction *lifecyclev1alpha1.Eviction, after time.Duration) *lifecyclev1alpha1.Eviction {
		eviction.CreationTimestamp = metav1.NewTime(epoch.Add(after))
		return eviction
	}
	failed := func(name string, after time.Duration) *lifecyclev1alpha1.Eviction {
		return at(endedAs(shows(name, evictor), canceledAs("")), after)
	}
	refused := func(name string, after time.Duration) *lifecyclev1alpha1.Eviction {
		return at(endedAs(shows(name), failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, "")), after)
	}
	for name, test := range map[string]struct {
		evictions []*lifecyclev1alpha1.Eviction
		want      string
		foreign   int
	}{
		"none":                     {nil, "", 0},
		"the first one":            {[]*lifecyclev1alpha1.Eviction{at(shows("b"), 2), at(shows("a"), 1)}, "a", 1},
		"one that has begun":       {[]*lifecyclev1alpha1.Eviction{at(shows("a"), 1), at(shows("b", early), 2*time.Second)}, "b", 1},
		"one that has not failed":  {[]*lifecyclev1alpha1.Eviction{failed("a", 1), at(shows("b"), 2*time.Second)}, "b", 0},
		"the last one of the same": {[]*lifecyclev1alpha1.Eviction{failed("pod-2-web", 0), failed("pod-10-web", 0), failed("pod-1-web", 0)}, "pod-10-web", 0},
		"the last one that failed": {[]*lifecyclev1alpha1.Eviction{failed("b", 2*time.Second), failed("a", 1)}, "b", 0},
		"one that was not refused": {[]*lifecyclev1alpha1.Eviction{failed("a", 1), refused("by-hand", 2*time.Second)}, "a", 0},
		"all were refused":         {[]*lifecyclev1alpha1.Eviction{refused("by-hand-1", 1), refused("by-hand-2", 2*time.Second)}, "by-hand-2", 0},
	} {
		t.Run(name, func(t *testing.T) {
			all := &target{name: "web", evictions: test.evictions}
			current, got := all.current(), ""
			if current != nil {
				got = current.Name
			}
			if foreign := len(all.foreignEvictions(current)); got != test.want || foreign != test.foreign {
				t.Errorf("current is %q, %d are of others, want %q and %d", got, foreign, test.want, test.foreign)
			}
		})
	}
	otherName := shows("by-hand")
	otherName.Spec.Target.Pod.Name = "other"
	all := &target{name: "web", otherEvictions: []*lifecyclev1alpha1.Eviction{otherName}}
	if len(all.foreignEvictions(nil)) != 0 {
		t.Error("one with another name is foreign, and the name of the pod is not known")
	}
	all.isIdentified = true
	if len(all.foreignEvictions(nil)) != 1 {
		t.Error("one with another name is taken for the own one")
	}
}

// Responders that the request does not have, because its pod has got them since, do not act.
func TestHasResponders(t *testing.T) {
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		want    bool
	}{
		"all":  {requestAt(0, early, late, last), true},
		"none": {requestAt(0, between, last), false},
	} {
		if got := (&target{pod: newPod(), request: test.request}).hasResponders(); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// What says that a pod is missing is its cache, which may be behind.
func TestMissing(t *testing.T) {
	successor := newPod()
	successor.UID = "successor"
	t.Run("it has another UID", func(t *testing.T) {
		w := newWorld(t, successor, asks("one", drainer))
		w.expect(0, answerOne)
		if got := w.answered("one"); got != notValid {
			t.Errorf("the answer is %s", got)
		}
	})
	t.Run("it has another UID, which the cache lacks", func(t *testing.T) {
		w := newWorld(t, asks("one", drainer))
		w.expect(missingTimeout, answerOne)
		w.clock.Step(missingTimeout)
		w.add(successor)
		if _, _, err := w.step(); err != nil {
			t.Fatal(err)
		}
		if got := w.answered("one"); got != notValid {
			t.Errorf("the answer is %s", got)
		}
	})
	t.Run("it comes late", func(t *testing.T) {
		w := newWorld(t, asks("one", drainer))
		w.expect(missingTimeout, answerOne)
		w.clock.Step(missingTimeout)
		w.add(newPod())
		if _, after, err := w.step(); err != nil || after != catchUpInterval {
			t.Fatalf("again after %s, %v", after, err)
		}
		if got := w.answered("one"); got != goingOn {
			t.Errorf("the answer is %s", got)
		}
	})
}

// A request that the cache lacks may be there.
func TestRequestIsMissing(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer), shows("pod-1-web", early, late, evictor))
	w.add(requestedBy(requestAt(0, early, late, last), drainer))
	if _, _, err := w.step(); err != nil {
		t.Fatal(err)
	}
	if got := w.answered("one"); got != goingOn {
		t.Errorf("the answer is %s", got)
	}
	w = newWorld(t, newPod(), asks("one", drainer), shows("pod-1-web", early, late, evictor))
	if _, _, err := w.step(); err != nil {
		t.Fatal(err)
	}
	if got := w.answered("one"); got != notWanted {
		t.Errorf("the answer is %s after somebody has deleted the request", got)
	}
}

// The end of a pod counts, although its request is gone.
func TestTerminalWithoutRequest(t *testing.T) {
	pod := newPod()
	pod.Status.Phase = v1.PodSucceeded
	w := newWorld(t, pod, asks("one", drainer), shows("pod-1-web", early, late, evictor))
	for range 3 {
		if _, after, err := w.step(); err != nil {
			t.Fatal(err)
		} else if after > 0 {
			w.clock.Step(after)
		}
		w.refresh()
	}
	if got, want := w.said("pod-1-web"), early+"=Interrupted "+late+"=Inactive "+evictor+"=Inactive True/PodTerminal False/Succeeded"; got != want {
		t.Errorf("the Eviction says %s, want %s", got, want)
	}
}

// The last responder has completed when the pod is gone, also without a request.
func TestGoneWithoutRequest(t *testing.T) {
	w := newWorld(t, asks("one", drainer), shows("pod-1-web", evictor))
	for range 4 {
		if _, after, err := w.step(); err != nil {
			t.Fatal(err)
		} else if after > 0 {
			w.clock.Step(after)
		}
		w.refresh()
	}
	if got, want := w.said("pod-1-web"), evictor+"=Completed "+podIsGone; got != want {
		t.Errorf("the Eviction says %s, want %s", got, want)
	}
}

// A canceled request, which is kept for a while, says nothing to those that ask when the pod is gone, and is not taken up
// again: nobody could. Whether an Eviction says so as well, or was deleted.
func TestGoneSinceTheCancellation(t *testing.T) {
	canceled := func() *coordinationv1alpha1.EvictionRequest {
		request := requestedBy(requestAt(0, early, late, last))
		request.Status.ActiveInterceptors = nil
		request.Status.Conditions = []metav1.Condition{{
			Type: string(coordinationv1alpha1.EvictionRequestConditionCanceled), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonNoRequesters,
		}}
		return request
	}
	successor := newPod()
	successor.UID = "successor"
	for name, objects := range map[string][]runtime.Object{
		"no Eviction":           {canceled(), asks("one", drainer)},
		"a failed Eviction":     {canceled(), asks("one", drainer), endedAs(shows("pod-1-web", early, evictor), canceledAs(""))},
		"another pod":           {successor, canceled(), asks("one", drainer)},
		"another pod, Eviction": {successor, canceled(), asks("one", drainer), endedAs(shows("pod-1-web", early, evictor), canceledAs(""))},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, objects...)
			w.refuses("patch", "evictionrequests", coordinationv1alpha1.GroupName, "", apierrors.NewForbidden(ownResource, "pod", errors.New("it is gone")))
			evictions := len(w.evictionList())
			for range 3 {
				if _, after, err := w.step(); err != nil {
					t.Fatal(err)
				} else if after > 0 {
					w.clock.Step(after)
				}
				w.refresh()
			}
			if got := w.answered("one"); got != podIsGone {
				t.Errorf("the answer is %s", got)
			}
			if got := len(w.evictionList()); got != evictions {
				t.Errorf("%d Evictions, want %d", got, evictions)
			}
		})
	}
	t.Run("the cache lacks the pod", func(t *testing.T) {
		w := newWorld(t, canceled(), asks("one", drainer))
		w.add(newPod())
		w.clock.Step(missingTimeout)
		if writes, _, err := w.step(); err != nil || !cmp.Equal(writes, []string{answerOne}) {
			t.Errorf("writes %v, %v", writes, err)
		}
		if got := w.answered("one"); got != goingOn {
			t.Errorf("the answer is %s", got)
		}
		w.refresh()
		w.clock.Step(restoreInterval)
		if writes, _, err := w.step(); err != nil || len(writes) == 0 || writes[0] != applyOwn {
			t.Errorf("the cache has it, and the writes are %v, %v", writes, err)
		}
	})
}

// Whatever the webhooks of a namespace do to the calls about its pods, the other namespaces have workers left.
func TestNamespacesShareTheWorkers(t *testing.T) {
	w := newWorld(t)
	const workers = 20
	w.limitWorkers(workers)
	for i := range 2 * workers {
		w.queue.Add(fmt.Sprintf("slow/%d", i))
	}
	taken := make(chan string, 3*workers)
	go func() {
		for {
			key, shutdown := w.queue.Get()
			if shutdown {
				return
			}
			taken <- key // Nothing is done.
		}
	}()
	defer w.queue.ShutDown()
	for held := 0; ; held++ {
		select {
		case <-taken:
			if held+1 >= workers {
				t.Fatal("one namespace has all workers")
			}
			continue
		case <-time.After(200 * time.Millisecond):
		}
		break
	}
	w.queue.Add("good/0")
	select {
	case key := <-taken:
		if key != "good/0" {
			t.Errorf("another worker has %s", key)
		}
	case <-time.After(time.Minute):
		t.Error("no worker is left for another namespace")
	}
}

// What others do to the request of a pod again and again is reverted three times at once, then ever more slowly, and its
// requesters hear of it.
func TestRequestIsContested(t *testing.T) {
	own := func(w *world) *coordinationv1alpha1.EvictionRequest {
		request, err := w.client.CoordinationV1alpha1().EvictionRequests("default").Get(w.Context(), "pod", metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return request
	}
	for name, revert := range map[string]func(*world){
		"deleted": func(w *world) {
			if err := w.client.CoordinationV1alpha1().EvictionRequests("default").Delete(w.Context(), "pod", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				w.Fatal(err)
			}
			w.refresh()
		},
		"emptied": func(w *world) {
			request := own(w)
			request.Spec.Requesters, request.Generation = nil, request.Generation+1
			w.set(request)
		},
		// The engine has canceled it.
		"canceled": func(w *world) {
			request := own(w)
			request.Spec.Requesters, request.Generation = nil, request.Generation+1
			request.Status.Conditions = []metav1.Condition{{
				Type: string(coordinationv1alpha1.EvictionRequestConditionCanceled), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonNoRequesters,
			}}
			w.set(request)
		},
		// Finalizers keep it then, with its requesters.
		"canceled and kept": func(w *world) {
			request := own(w)
			request.Finalizers, request.DeletionTimestamp = []string{"example.com/x"}, ptr.To(metav1.NewTime(epoch))
			request.Status.Conditions = []metav1.Condition{{
				Type: string(coordinationv1alpha1.EvictionRequestConditionCanceled), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonNoRequesters,
			}}
			w.set(request)
		},
		// A requester in the name of this controller, which somebody else has written, does not make it hurry.
		"emptied and another one forged": func(w *world) {
			forged := coordinationapply.EvictionRequest("pod", "default").WithSpec(coordinationapply.EvictionRequestSpec().
				WithRequesters(coordinationapply.Requester().WithName(fmt.Sprintf("example.com/forged-%d", w.clock.Now().Unix()))))
			if _, err := w.client.CoordinationV1alpha1().EvictionRequests("default").Apply(w.Context(), forged, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
				w.Fatal(err)
			}
			w.refresh()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newPod(), asks("one", drainer))
			recorder := events.NewFakeRecorder(1000)
			w.recorder = recorder
			var written []int
			for second := range 290 {
				writes, _, err := w.step()
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(writes, applyOwn) {
					written = append(written, second)
				}
				w.refresh()
				revert(w)
				w.clock.Step(time.Second)
			}
			if diff := cmp.Diff([]int{0, 1, 2, 3, 8, 18, 38, 78, 138, 198, 258}, written); diff != "" {
				t.Errorf("the request is written after other seconds (-want, +got):\n%s", diff)
			}
			if got := w.requestList()[0].Status.Conditions; len(got) == 0 || got[0].Message != contestedText || got[0].Status != metav1.ConditionFalse {
				t.Errorf("the answer is %v", got)
			}
			if got := recorded(recorder); len(got) != 8 || !strings.Contains(got[0], eventRequestContested) {
				t.Errorf("recorded %q, want it from the third time on", got)
			}
			// Nobody wants it, and then somebody does: that is no contest.
			for _, intent := range []lifecyclev1alpha1.EvictionRequestIntent{lifecyclev1alpha1.EvictionRequestIntentWithdrawn, lifecyclev1alpha1.EvictionRequestIntentEviction} {
				request := w.requestList()[0].DeepCopy()
				request.Spec.Intent = intent
				if _, err := w.client.LifecycleV1alpha1().EvictionRequests("default").Update(t.Context(), request, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				w.refresh()
				if _, _, err := w.step(); err != nil {
					t.Fatal(err)
				}
				w.refresh()
			}
			if request := own(w); request == nil || len(request.Spec.Requesters) != 1 {
				t.Errorf("not requested again: %v", request)
			}
		})
	}
}

// When others leave the request alone, its requesters hear no more of them.
func TestContestEnds(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer))
	sync := func() (after time.Duration, message string) {
		t.Helper()
		_, after, err := w.step()
		if err != nil {
			t.Fatal(err)
		}
		w.refresh()
		return after, w.requestList()[0].Status.Conditions[0].Message
	}
	for range 4 {
		sync()
		if err := w.client.CoordinationV1alpha1().EvictionRequests("default").Delete(t.Context(), "pod", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.refresh()
	}
	w.clock.Step(5 * time.Second)
	after, message := sync()
	if message != contestedText || after != 15*time.Second {
		t.Errorf("restored: says %q, wants to be called after %s", message, after)
	}
	w.clock.Step(after)
	if after, message := sync(); message != "" || after != 0 {
		t.Errorf("left alone: says %q, wants to be called after %s", message, after)
	}
}

// Another requester, and one that withdraws, do not wait for the pace of what others revert.
func TestContestDelaysNobodyElse(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer))
	applied := func() bool {
		t.Helper()
		writes, _, err := w.step()
		if err != nil {
			t.Fatal(err)
		}
		w.refresh()
		return slices.Contains(writes, applyOwn)
	}
	empty := func() {
		t.Helper()
		request, err := w.client.CoordinationV1alpha1().EvictionRequests("default").Get(t.Context(), "pod", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		request.Spec.Requesters, request.Generation = nil, request.Generation+1
		w.set(request)
	}
	for range 4 {
		applied()
		empty()
	}
	if applied() {
		t.Fatal("it is not paused")
	}
	w.add(asks("two", "example.com/other"))
	w.refresh()
	if !applied() {
		t.Error("a new requester waits")
	}
	request := w.requestList()[0].DeepCopy()
	request.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
	if _, err := w.client.LifecycleV1alpha1().EvictionRequests("default").Update(t.Context(), request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.refresh()
	if !applied() {
		t.Error("one that withdraws waits")
	}
}

// Finalizers keep a canceled request that is deleted: an apply replaces it, also if it names the requesters already.
func TestCanceledRequestIsKeptByFinalizers(t *testing.T) {
	kept := requestedBy(requestAt(0, early, late, last), drainer)
	kept.Status.ActiveInterceptors = nil
	kept.Finalizers, kept.DeletionTimestamp = []string{"example.com/x"}, ptr.To(metav1.NewTime(epoch))
	kept.Status.Conditions = []metav1.Condition{{
		Type: string(coordinationv1alpha1.EvictionRequestConditionCanceled), Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonNoRequesters,
	}}
	w := newWorld(t, newPod(), kept, asks("one", drainer))
	if writes, _, err := w.step(); err != nil || len(writes) == 0 || writes[0] != applyOwn {
		t.Errorf("writes %v, %v", writes, err)
	}
	// Nobody wants that.
	w = newWorld(t, newPod(), kept, asks("one", drainer, withdrawn))
	if writes, _, err := w.step(); err != nil || slices.Contains(writes, applyOwn) {
		t.Errorf("writes %v, %v", writes, err)
	}
}

// Requesters that withdraw are removed from the request, unless others have them there.
func TestWithdrawn(t *testing.T) {
	request := requestedBy(requestAt(0, early, late, last))
	request.Spec.Requesters = nil
	apply := func(w *world, manager string) {
		t.Helper()
		change := coordinationapply.EvictionRequest("pod", "default").WithSpec(coordinationapply.EvictionRequestSpec().WithRequesters(coordinationapply.Requester().WithName(drainer)))
		if _, err := w.client.CoordinationV1alpha1().EvictionRequests("default").Apply(t.Context(), change, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
			t.Fatal(err)
		}
		w.refresh()
	}
	for name, test := range map[string]struct {
		managers []string
		patches  int
		left     int
	}{
		"own":     {[]string{fieldManager}, 1, 0},
		"foreign": {[]string{"somebody"}, 0, 1},
		"both":    {[]string{fieldManager, "somebody"}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newPod(), asks("one", drainer, withdrawn), request.DeepCopy())
			for _, manager := range test.managers {
				apply(w, manager)
			}
			patches := 0
			for range 3 {
				if _, _, err := w.step(); err != nil {
					t.Fatal(err)
				}
				for _, action := range w.client.Actions() {
					if patch, ok := action.(clienttesting.PatchAction); ok {
						patches++
						if !strings.Contains(string(patch.GetPatch()), `"uid":"request"`) {
							t.Errorf("the patch may create another request: %s", patch.GetPatch())
						}
					}
				}
				w.refresh()
			}
			left, err := w.client.CoordinationV1alpha1().EvictionRequests("default").Get(t.Context(), "pod", metav1.GetOptions{})
			if err != nil || patches != test.patches || len(left.Spec.Requesters) != test.left {
				t.Errorf("%d patches, left %v, %v, want %d, and %d left", patches, left.Spec.Requesters, err, test.patches, test.left)
			}
		})
	}
}

// When the pod is gone, nobody knows who its responders were: labels stay.
func TestLabelsOfGonePod(t *testing.T) {
	eviction := shows("pod-1-web", evictor)
	eviction.Labels = map[string]string{early: string(lifecyclev1alpha1.EvictionParticipantRoleRequesterResponder)}
	eviction.OwnerReferences = []metav1.OwnerReference{{UID: "one"}}
	w := newWorld(t, asks("one", early), requestedBy(requestAt(0, last), early), eviction)
	writes, _, err := w.step()
	if err != nil || slices.Contains(writes, relabelView) {
		t.Errorf("wrote %v, %v", writes, err)
	}
}

// An Eviction of the pod that the cache lacks is not followed by another one.
func TestEvictionIsThere(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer), requestedBy(requestAt(0, early, late, last), drainer))
	w.add(shows("pod-1-web"))
	if _, _, err := w.step(); !apierrors.IsAlreadyExists(err) {
		t.Errorf("sync: %v", err)
	}
	if got := len(w.evictionList()); got != 1 {
		t.Errorf("%d Evictions, want 1", got)
	}
}

// Others may have taken the name for another pod.
func TestNameIsTaken(t *testing.T) {
	taken := shows("pod-1-web")
	taken.Spec.Target.Pod.UID = "other"
	w := newWorld(t, newPod(), asks("one", drainer), requestedBy(requestAt(0, early, late, last), drainer))
	w.add(taken)
	if _, _, err := w.step(); err != nil {
		t.Fatal(err)
	}
	if got := w.said("pod-2-web"); !strings.Contains(got, goingOn) {
		t.Errorf("the Eviction says %s", got)
	}
}

func TestNumberOf(t *testing.T) {
	for name, want := range map[string]int{"pod-7-web": 7, "pod-1000000-web": maxNumber, "pod-1000001-web": 0, "pod--1-web": 0, "pod-x-web": 0, "other": 0} {
		if got := numberOf(shows(name)); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// Responders of an Eviction that is refused have not their turn any more.
func TestRefused(t *testing.T) {
	byHand := shows("by-hand", early, late, evictor)
	byHand.CreationTimestamp = metav1.NewTime(epoch.Add(time.Hour))
	w := newWorld(t, newPod(), asks("one", drainer), requestedBy(requestAt(0, early, late, last), drainer), shows("pod-1-web", early, late, evictor), byHand)
	if _, _, err := w.step(); err != nil {
		t.Fatal(err)
	}
	if got, want := w.said("by-hand"), early+"=Canceled "+late+"=Inactive "+evictor+"=Inactive "+notValid; got != want {
		t.Errorf("the Eviction says %s, want %s", got, want)
	}
	if got, want := w.said("pod-1-web"), early+"=Active "+late+"=Inactive "+evictor+"=Inactive "+goingOn; got != want {
		t.Errorf("the Eviction says %s, want %s", got, want)
	}
}

// A pod that does not concern this controller any more leaves nothing behind.
func TestForgetAll(t *testing.T) {
	w := newWorld(t, newPod(), asks("one", drainer))
	w.expect(0, applyOwn, createView, reportView, answerOne)
	w.noteForeign(theKey, requestAt(0), nil)
	w.noteFailure(theKey)
	w.mayWrite(w.reported, theKey, w.clock.Now())
	w.endedSince(&target{key: theKey})
	if len(w.requested) != 1 {
		t.Error("what was requested is not known")
	}
	w.client = fake.NewClientset() // All is gone.
	w.refresh()
	w.Controller.client = w.client
	w.expect(0)
	if left := len(w.ended) + len(w.restored) + len(w.reported) + len(w.foreign) + len(w.failed) + len(w.requested); left != 0 {
		t.Errorf("%d entries are left", left)
	}
	if !w.compared.Lacks(requestedBy(requestAt(0), drainer)) {
		t.Error("the request counts as compared")
	}
}

// The clock of this process may be set back.
func TestMayWrite(t *testing.T) {
	w, written := newWorld(t), map[string]time.Time{}
	for _, test := range []struct{ at, want time.Duration }{{0, 0}, {time.Second, restoreInterval - time.Second}, {restoreInterval, 0}, {-time.Hour, 0}, {-time.Hour + 1, restoreInterval - 1}} {
		if got := w.mayWrite(written, theKey, epoch.Add(test.at)); got != test.want {
			t.Errorf("at %s: %s, want %s", test.at, got, test.want)
		}
	}
}

// Who has which name is read again when the request has changed.
func TestForeignIn(t *testing.T) {
	w, request := newWorld(t), requestedBy(requestAt(0))
	w.noteForeign(theKey, request, nil)
	for name, test := range map[string]struct {
		change func(*coordinationv1alpha1.EvictionRequest)
		want   bool
	}{
		"the same":   {func(*coordinationv1alpha1.EvictionRequest) {}, true},
		"changed":    {func(r *coordinationv1alpha1.EvictionRequest) { r.Generation++ }, false},
		"made again": {func(r *coordinationv1alpha1.EvictionRequest) { r.UID = "other" }, false},
	} {
		changed := request.DeepCopy()
		test.change(changed)
		if _, got := w.foreignIn(theKey, changed); got != test.want {
			t.Errorf("%s: known %t, want %t", name, got, test.want)
		}
	}
}
