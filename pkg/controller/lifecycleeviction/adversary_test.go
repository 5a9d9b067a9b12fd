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
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
)

const keyOfPod = "default/pod"

// syncing is a controller with what kube-apiserver has. The caches are filled by show.
type syncing struct {
	*Controller
	t       *testing.T
	clock   *testingclock.FakeClock
	factory informers.SharedInformerFactory
}

func newSyncing(t *testing.T, objects ...runtime.Object) *syncing {
	t.Helper()
	c, _, clock, factory := newTestController(t)
	c.client, c.recorder = fake.NewClientset(objects...), events.NewFakeRecorder(10000)
	return &syncing{c, t, clock, factory}
}

// show has the caches see what kube-apiserver has, except for pods.
func (s *syncing) show() {
	s.t.Helper()
	group, ctx := s.client.LifecycleV1alpha1(), s.t.Context()
	requests, err := group.EvictionRequests("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	evictions, err := group.Evictions("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range requests.Items {
		if err := s.requests.Update(&requests.Items[i]); err != nil {
			s.t.Fatal(err)
		}
	}
	for i := range evictions.Items {
		if err := s.evictions.Update(&evictions.Items[i]); err != nil {
			s.t.Fatal(err)
		}
	}
}

// syncAgain syncs the pod, with caches that are up to date.
func (s *syncing) syncAgain() {
	s.t.Helper()
	s.show()
	s.written.Clear(types.NamespacedName{Namespace: "default", Name: "pod"}, "") // The objects have no versions here.
	if _, err := s.sync(context.Background(), keyOfPod); err != nil {
		s.t.Fatal(err)
	}
	s.clock.Step(time.Second)
}

func (s *syncing) failure(name string) string {
	s.t.Helper()
	request, err := s.client.LifecycleV1alpha1().EvictionRequests("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return trueConditions(request.Status.Conditions)
}

func (s *syncing) failureOfEviction(name string) string {
	s.t.Helper()
	eviction, err := s.client.LifecycleV1alpha1().Evictions("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return trueConditions(eviction.Status.Conditions)
}

func trueConditions(conditions []metav1.Condition) string {
	text := ""
	for _, condition := range conditions {
		if condition.Status == metav1.ConditionTrue {
			text += condition.Type + "/" + condition.Reason
		}
	}
	return text
}

func asking(name, pod string, at time.Time) *lifecyclev1alpha1.EvictionRequest {
	return &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(at)},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod, UID: "pod"}},
			Requester: "example.com/" + name, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}
}

func evictionOf(name, pod string) *lifecyclev1alpha1.Eviction {
	return &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Generation: 1},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: pod, UID: "pod"}}},
	}
}

func plainPod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "pod"}}
}

// Whoever changes many old requests of a pod all the time keeps nobody else from an answer.
func TestAnswersInTurn(t *testing.T) {
	var objects []runtime.Object
	var hostile []*lifecyclev1alpha1.EvictionRequest
	for i := range 2 * maxAnswers {
		request := asking(fmt.Sprintf("hostile-%03d", i), "web", epoch)
		request.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
		hostile = append(hostile, request)
		objects = append(objects, request)
	}
	s := newSyncing(t, append(objects, asking("mine", "web", epoch.Add(time.Hour)))...)
	for round := range 8 {
		for _, request := range hostile {
			request.Generation = int64(round + 2)
			if _, err := s.client.LifecycleV1alpha1().EvictionRequests("default").Update(t.Context(), request, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		s.syncAgain()
		if s.failure("mine") != "" {
			return
		}
	}
	t.Error("a request has no answer after 8 rounds")
}

// Which of several names is that of a pod, only kube-apiserver knows if the cache of pods is behind: nobody may be told for
// ever that his request is invalid because somebody else has another name.
func TestOtherNamesWithAnOldCache(t *testing.T) {
	s := newSyncing(t, plainPod("web"), asking("hostile", "other", epoch), asking("mine", "web", epoch.Add(time.Hour)), asking("third", "third", epoch.Add(2*time.Hour)))
	for range 10 {
		s.syncAgain()
		if got := s.failure("mine"); got != "" {
			t.Fatalf("the request for the pod: %s", got)
		}
	}
	if got := s.failure("hostile"); got != "Failed/EvictionInvalid" {
		t.Errorf("the request with another name: %q", got)
	}
	if err := s.factory.Core().V1().Pods().Informer().GetStore().Add(plainPod("web")); err != nil {
		t.Fatal(err)
	}
	s.syncAgain()
	if got := s.failure("mine") + s.failure("third"); got != "Failed/EvictionInvalid" {
		t.Errorf("when the cache has the pod: %q", got)
	}
}

// Of all names, none is that of a pod.
func TestOtherNamesWithoutAPod(t *testing.T) {
	s := newSyncing(t, asking("one", "one", epoch), asking("two", "two", epoch.Add(time.Hour)), evictionOf("by-hand", "three"))
	for range 10 {
		s.syncAgain()
	}
	for _, got := range []string{s.failure("one"), s.failure("two"), s.failureOfEviction("by-hand")} {
		if got != "Failed/EvictionInvalid" {
			t.Errorf("got %q", got)
		}
	}
}

// An Eviction that somebody has made by hand does not prove that there was a pod.
func TestForgedEviction(t *testing.T) {
	s := newSyncing(t, plainPod("web"), evictionOf("by-hand", "other"))
	if err := s.factory.Core().V1().Pods().Informer().GetStore().Add(plainPod("web")); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		s.syncAgain()
	}
	if got := s.failureOfEviction("by-hand"); got != "Failed/EvictionInvalid" {
		t.Errorf("the pod runs, and the Eviction says %q", got)
	}
}

// A canceled Eviction does.
func TestGoneAfterCancellation(t *testing.T) {
	canceled := evictionOf("pod-1-web", "web")
	canceled.Status.TargetResponders = []lifecyclev1alpha1.TargetResponder{{Name: early, State: lifecyclev1alpha1.ResponderStateCanceled}}
	setOutcome(&canceled.Status.Conditions, canceledAs(""), 1, epoch)
	s := newSyncing(t, canceled, asking("again", "web", epoch))
	for range 10 {
		s.syncAgain()
	}
	if got := s.failure("again"); got != "TargetEvicted/PodDeleted" {
		t.Errorf("got %q", got)
	}
}

// Evictions with the highest numbers do not keep the pod from a further one.
func TestHighestNumber(t *testing.T) {
	var objects []runtime.Object
	for _, number := range []int{maxNumber, maxNumber + 1, maxNumber + 2} {
		failed := evictionOf(nameOf(number, "web"), "web")
		setOutcome(&failed.Status.Conditions, canceledAs(""), 1, epoch)
		objects = append(objects, failed)
	}
	s := newSyncing(t, objects...)
	s.show()
	created, err := s.create(t.Context(), &target{key: keyOfPod, namespace: "default", name: "web", uid: "pod", now: s.clock.Now()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(objects, func(o runtime.Object) bool { return o.(metav1.Object).GetName() == created.Name }) {
		t.Errorf("created %s again", created.Name)
	}
	// The one that was just created is not in the cache.
	if _, err := s.create(t.Context(), &target{key: keyOfPod, namespace: "default", name: "web", uid: "pod", now: s.clock.Now()}, nil, nil); err == nil {
		t.Error("created a second one")
	}
}

// A pod may take longer to terminate than the API lets anybody expect.
func TestTerminatesForDecades(t *testing.T) {
	for years, expected := range map[int]bool{1: true, 11: false} {
		status := &lifecyclev1alpha1.EvictionStatus{
			TargetResponders: []lifecyclev1alpha1.TargetResponder{{Name: lifecyclev1alpha1.EvictionResponderImperativeEviction, State: lifecyclev1alpha1.ResponderStateActive}},
			Responders:       []lifecyclev1alpha1.ResponderStatus{{Name: lifecyclev1alpha1.EvictionResponderImperativeEviction}},
		}
		pod := plainPod("web")
		pod.DeletionTimestamp = &metav1.Time{Time: epoch.AddDate(years, 0, 0)}
		showImperative(status, requestAt(0, last), pod, epoch)
		if report := status.Responders[0]; report.Message == nil || (report.ExpectedCompletionTime != nil) != expected {
			t.Errorf("%d years: %+v", years, report)
		}
	}
}
