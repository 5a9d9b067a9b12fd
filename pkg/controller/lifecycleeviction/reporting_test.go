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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/controller/lifecycleeviction/metrics"
	testingclock "k8s.io/utils/clock/testing"
)

// newTestController returns a controller that does not run, whose recorder has room for some events.
func newTestController(t *testing.T) (*Controller, *events.FakeRecorder, *testingclock.FakeClock, informers.SharedInformerFactory) {
	t.Helper()
	client := fake.NewClientset()
	factory, clock, recorder := informers.NewSharedInformerFactory(client, 0), testingclock.NewFakeClock(time.Now()), events.NewFakeRecorder(10)
	c, err := New(client, factory.Lifecycle().V1alpha1().EvictionRequests(), factory.Lifecycle().V1alpha1().Evictions(),
		factory.Coordination().V1alpha1().EvictionRequests(), factory.Core().V1().Pods(), clock)
	if err != nil {
		t.Fatal(err)
	}
	c.recorder = recorder
	return c, recorder, clock, factory
}

// recorded returns the events so far.
func recorded(recorder *events.FakeRecorder) []string {
	var all []string
	for {
		select {
		case event := <-recorder.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

func requestCounts(t *testing.T) map[string]float64 {
	t.Helper()
	counts := map[string]float64{}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "lifecycle_eviction_controller_requests_total" {
			for _, sample := range family.Metric {
				counts[sample.Label[0].GetValue()] = sample.Counter.GetValue()
			}
		}
	}
	return counts
}

// An end is counted and recorded once, and only what needs an intervention is an event.
func TestRecordEnd(t *testing.T) {
	conditionsOf := func(o outcome) []metav1.Condition {
		var conditions []metav1.Condition
		setOutcome(&conditions, o, 1, time.Now())
		return conditions
	}
	goesOn := conditionsOf(awaiting)
	failed := func(reason lifecyclev1alpha1.EvictionConditionReason) []metav1.Condition {
		return conditionsOf(failedAs(reason, "Because."))
	}
	gone := conditionsOf(evictedAs(lifecyclev1alpha1.EvictionConditionReasonPodDeleted, "Gone."))
	canceled, invalid := failed(lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters), failed(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid)
	stuck := failed(lifecyclev1alpha1.EvictionConditionReasonNoFurtherResponder)
	for name, test := range map[string]struct {
		before, after []metav1.Condition
		second        bool
		outcome       string
		events        []string
	}{
		"begins":                    {after: goesOn},
		"evicted":                   {before: goesOn, after: gone, outcome: "evicted"},
		"evicted, known":            {before: gone, after: gone},
		"canceled":                  {before: goesOn, after: canceled, outcome: "canceled"},
		"requested again":           {before: canceled, after: goesOn},
		"invalid":                   {after: invalid, outcome: "invalid", events: []string{"Warning EvictionInvalid Because."}},
		"invalid, known":            {before: invalid, after: invalid},
		"no responder":              {before: goesOn, after: stuck, outcome: "no_further_responder", events: []string{"Warning NoFurtherResponder Because."}},
		"no responder, another one": {before: goesOn, after: stuck, second: true, outcome: "no_further_responder"},
		"withdrawn after that":      {before: stuck, after: canceled, outcome: "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			c, recorder, _, _ := newTestController(t)
			requests := []*lifecyclev1alpha1.EvictionRequest{{ObjectMeta: metav1.ObjectMeta{Name: "first"}}, {ObjectMeta: metav1.ObjectMeta{Name: "second"}}}
			asks := requests[0]
			if test.second {
				asks = requests[1]
			}
			counts := requestCounts(t)
			c.recordEnd(&target{namespace: "default", name: "pod", requests: requests}, asks, test.before, test.after)
			if diff := cmp.Diff(test.events, recorded(recorder)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if test.outcome != "" {
				counts[test.outcome]++
			}
			if diff := cmp.Diff(counts, requestCounts(t)); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

// A pod counts as outdated until a sync succeeds. Only the third failure in succession is an event: on a request of the
// group, or on the pod.
func TestFailures(t *testing.T) {
	c, recorder, clock, factory := newTestController(t)
	asking := &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ask", UID: "1"}}
	asking.Spec.Target.Pod = &lifecyclev1alpha1.EvictionRequestPodReference{Name: "asked", UID: "asked-uid"}
	if err := factory.Lifecycle().V1alpha1().EvictionRequests().Informer().GetStore().Add(asking); err != nil {
		t.Fatal(err)
	}
	fail := func(key string, times int) {
		for range times {
			if c.noteFailure(key) {
				c.recordFailure(key, errors.New("a webhook\nrefuses"))
			}
		}
	}
	fail("default/asked-uid", 2)
	if got := recorded(recorder); len(got) > 0 {
		t.Errorf("recorded too early: %v", got)
	}
	clock.Step(time.Minute)
	fail("default/asked-uid", 5)
	fail("default/nothing", 3) // Nothing is known of it any more, so it is forgotten.
	got := recorded(recorder)
	if len(got) != 1 || !strings.HasPrefix(got[0], "Warning EvictionWriteFailed What concerns the eviction of pod asked cannot be written, and is retried: a webhook") || strings.Contains(got[0], "\n") {
		t.Errorf("recorded %q", got)
	}
	if diff := cmp.Diff(metrics.Outdated{Pods: 1, Oldest: time.Minute}, c.countOutdated()); diff != "" {
		t.Errorf("outdated (-want +got):\n%s", diff)
	}
	c.noteSuccess("default/asked-uid")
	if diff := cmp.Diff(metrics.Outdated{}, c.countOutdated()); diff != "" {
		t.Errorf("outdated after a success (-want +got):\n%s", diff)
	}
	recorder.Verbose = true // It says about what, too.
	fail("default/asked-uid", 3)
	if got := recorded(recorder); len(got) != 1 || !strings.Contains(got[0], "{kind=EvictionRequest,apiVersion=lifecycle.k8s.io/v1alpha1}") {
		t.Errorf("recorded after a success: %q", got)
	}
}

// What is not tried again yet has not succeeded.
func TestFailuresArePaced(t *testing.T) {
	c, recorder, clock, factory := newTestController(t)
	pod := newPod()
	pod.Namespace = "default"
	request := requestAt(0, coordinationv1alpha1.EvictionInterceptorImperative)
	request.Namespace, request.Name = pod.Namespace, string(pod.UID)
	request.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}
	request.Spec.Requesters = []coordinationv1alpha1.Requester{{Name: "example.com/drain"}}
	asking := &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "ask", UID: "1"}}
	asking.Spec = lifecyclev1alpha1.EvictionRequestSpec{
		Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}},
		Requester: "example.com/drain", Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
	}
	for store, object := range map[cache.Store]any{
		factory.Core().V1().Pods().Informer().GetStore():                           pod,
		factory.Coordination().V1alpha1().EvictionRequests().Informer().GetStore(): request,
		factory.Lifecycle().V1alpha1().EvictionRequests().Informer().GetStore():    asking,
	} {
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	client := c.client.(*fake.Clientset)
	if _, err := client.LifecycleV1alpha1().EvictionRequests(pod.Namespace).Create(t.Context(), asking, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refused := true
	client.PrependReactor("create", "evictions", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, errors.New("a policy refuses")
	})
	key := keyOf(pod.Namespace, pod.UID)
	process := func(want int) {
		t.Helper()
		c.queue.Add(key)
		c.processNext(t.Context())
		if got := c.countOutdated().Pods; got != want {
			t.Errorf("%d outdated pods, want %d", got, want)
		}
	}
	for range failuresUntilEvent {
		process(1)
		clock.Step(time.Second)
		process(1) // It is too early.
		clock.Step(restoreInterval)
	}
	if got := recorded(recorder); len(got) != 1 {
		t.Errorf("recorded %q", got)
	}
	refused = false
	process(0)
}

// The delay is observed once, with the end.
func TestObserveEvicted(t *testing.T) {
	now := time.Now()
	request := ended(requestAt(1, coordinationv1alpha1.EvictionInterceptorImperative), coordinationv1alpha1.EvictionRequestConditionEvicted, coordinationv1alpha1.EvictionRequestReasonPodDeleted, now.Add(-4*time.Second))
	before, after := &lifecyclev1alpha1.Eviction{}, &lifecyclev1alpha1.EvictionStatus{}
	count := func() uint64 {
		vec, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, "lifecycle_eviction_controller_target_evicted_delay_seconds", nil)
		if err != nil {
			return 0
		}
		return vec.GetAggregatedSampleCount()
	}
	metrics.Register()
	start := count()
	setOutcome(&after.Conditions, awaiting, 1, now)
	observeEvicted(before, after, request, now)
	setOutcome(&after.Conditions, evictedAs(lifecyclev1alpha1.EvictionConditionReasonPodDeleted, ""), 1, now)
	observeEvicted(before, after, nil, now)
	if got := count() - start; got != 0 {
		t.Errorf("%d observed, want none yet", got)
	}
	observeEvicted(before, after, request, now)
	before.Status = *after
	observeEvicted(before, after, request, now)
	if got := count() - start; got != 1 {
		t.Errorf("%d observed, want 1", got)
	}
}
