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

package statefulset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/controller/statefulset/metrics"
	"k8s.io/utils/clock"
)

const passedOn = "Released: StatefulSet web allows the eviction of the pod."

const evictionWaits = "statefulset_controller_eviction_wait_duration_seconds"

func waitsFor(what string, replicas int) string {
	return fmt.Sprintf("Waiting for %s: at most 1 of the %d pods of StatefulSet web may be unavailable at a time.", what, replicas)
}

func expectOver(t *testing.T, turn *evictionTurn, want string) {
	t.Helper()
	if got := overWith(turn); got != want {
		t.Errorf("the turn of %s ended with %q, want %q", turn.pod.Name, got, want)
	}
}

func (p *pacing) expectEvents(want ...string) {
	p.t.Helper()
	var got []string
	for len(p.recorder.Events) > 0 {
		got = append(got, <-p.recorder.Events)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Errorf("events (-want +got):\n%s", diff)
	}
}

// counted returns a function that returns the turns counted since, by outcome.
func counted(t *testing.T) func() map[metrics.EvictionOutcome]uint64 {
	t.Helper()
	read := func() (map[metrics.EvictionOutcome]uint64, error) {
		counts := map[metrics.EvictionOutcome]uint64{}
		for _, outcome := range []metrics.EvictionOutcome{"released", "given_up", "declined", "gone", "canceled", "lost"} {
			vec, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, evictionWaits, map[string]string{"outcome": string(outcome)})
			if err != nil {
				return counts, err
			}
			counts[outcome] = vec.GetAggregatedSampleCount()
		}
		return counts, nil
	}
	before, _ := read() // The first controller registers it.
	return func() map[metrics.EvictionOutcome]uint64 {
		after, err := read()
		if err != nil {
			t.Fatalf("reading the metric: %v", err)
		}
		since := map[metrics.EvictionOutcome]uint64{}
		for outcome, count := range after {
			if count > before[outcome] {
				since[outcome] = count - before[outcome]
			}
		}
		return since
	}
}

func expectCounts(t *testing.T, since func() map[metrics.EvictionOutcome]uint64, want map[metrics.EvictionOutcome]uint64) {
	t.Helper()
	if diff := cmp.Diff(want, since()); diff != "" {
		t.Errorf("turns that were counted (-want +got):\n%s", diff)
	}
}

// One pod leaves after another: the second leaves when the replacement of the first is available.
func TestPacing(t *testing.T) {
	setMaxUnavailable(t, false)
	since := counted(t)
	low, high := pacedPod(0), pacedPod(1)
	p := newPacing(t, pacedSet(2), low, high, pacedRequest(low), pacedRequest(high))
	first := p.begin(pacedRequest(low))
	p.sync()
	expectOver(t, first, "") // The other pod leaves first, once its turn has begun.
	second := p.begin(pacedRequest(high))
	p.sync()
	expectOver(t, second, passedOn)
	expectOver(t, first, "")
	p.expectEvents() // The end is not reported yet.

	waits := func(state, what string) {
		t.Helper()
		p.sync()
		expectOver(t, first, "")
		if got, want := p.said["web-0"], waitsFor(what, 2); got != want {
			t.Errorf("%s: the message is %q, want %q", state, got, want)
		}
	}
	waits("not reported", "pod web-1 to be evicted")
	p.pacer.end(second)
	waits("not in the cache", "pod web-1 to be evicted")
	p.store(pacedRequest(high, completedAt(p.clock.Now())))
	waits("passed on", "pod web-1 to be evicted")
	p.expectEvents("Normal EvictionReleased Released pod web-1 for eviction")
	expectCounts(t, since, map[metrics.EvictionOutcome]uint64{"released": 1})
	p.store(pacedRequest(high, completedAt(p.clock.Now()), activeIs(imperativeInterceptor, ownInterceptor)))
	waits("evicting", "pod web-1 to be evicted")
	p.store(pacedPod(1, terminating))
	waits("terminating", "pod web-1 to terminate")
	p.store(pacedRequest(high, completedAt(p.clock.Now()), endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, p.clock.Now())))
	p.store(high)
	waits("evicted, with an older pod in the cache", "pod web-1 to be evicted")
	p.remove(high)
	if len(p.sets.delayed) > 0 {
		t.Errorf("no pod is missing, and the set is synced: %q", p.sets.delayed)
	}
	waits("gone", "pod web-1 to be created")
	// Its creation may have been refused so often that the controller waits for long.
	if want := []string{pacedKey + " after 30s"}; !slices.Equal(p.sets.delayed, want) {
		t.Errorf("synced are %q, want %q", p.sets.delayed, want)
	}
	p.store(pacedPod(1, unready, func(pod *v1.Pod) { pod.UID = "next" }))
	waits("starting", "pod web-1 to become available")
	p.store(pacedPod(1, func(pod *v1.Pod) { pod.UID = "next" }))
	p.sync()
	expectOver(t, first, passedOn)
	p.expectEvents()
	if p.pacer.turns[pacedKey]["web-1"] != nil || len(p.pacer.results[pacedKey]) != 1 {
		t.Errorf("the turns are %v and the results %v", p.pacer.turns, p.pacer.results)
	}
}

// Results are removed once the cache shows the end of the turn, whatever the outcome.
func TestResultsAreConfirmed(t *testing.T) {
	setMaxUnavailable(t, false)
	evicted, canceled := coordinationv1alpha1.EvictionRequestConditionEvicted, coordinationv1alpha1.EvictionRequestConditionCanceled
	pod := pacedPod(1)
	tests := map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		want    metrics.EvictionOutcome
		event   bool
		goes    bool
	}{
		"not reported":        {request: pacedRequest(pod)},
		"reported":            {request: pacedRequest(pod, completedAt(pacingEpoch)), want: "released", event: true},
		"reported, and gone":  {request: pacedRequest(pod, completedAt(pacingEpoch), endedAs(evicted, pacingEpoch)), want: "released", event: true},
		"evicted before":      {request: pacedRequest(pod, endedAs(evicted, pacingEpoch)), want: "gone"},
		"canceled":            {request: pacedRequest(pod, endedAs(canceled, pacingEpoch)), want: "canceled", goes: true},
		"canceled afterwards": {request: pacedRequest(pod, completedAt(pacingEpoch), endedAs(canceled, pacingEpoch)), want: "canceled", goes: true},
		"deleted":             {want: "canceled", goes: true},
		"recreated":           {request: pacedRequest(pod, func(r *coordinationv1alpha1.EvictionRequest) { r.UID = "next" }), want: "canceled"},
		"lost":                {request: pacedRequest(pod, activeIs(imperativeInterceptor, ownInterceptor)), want: "lost"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			since := counted(t)
			other := pacedPod(0)
			p := newPacing(t, pacedSet(2), pod, other, pacedRequest(pod), pacedRequest(other))
			turn, waiting := p.begin(pacedRequest(pod)), p.begin(pacedRequest(other))
			p.sync()
			expectOver(t, turn, passedOn)
			p.pacer.end(turn)
			p.remove(pacedRequest(pod))
			if test.request != nil {
				p.store(test.request)
			}
			p.sync()
			if test.want == "" {
				expectCounts(t, since, map[metrics.EvictionOutcome]uint64{})
			} else {
				expectCounts(t, since, map[metrics.EvictionOutcome]uint64{test.want: 1})
			}
			if remains := p.pacer.results[pacedKey]["web-1"] != nil; remains != (test.want == "") {
				t.Errorf("the result remains: %t", remains)
			}
			if test.event {
				p.expectEvents("Normal EvictionReleased Released pod web-1 for eviction")
			} else {
				p.expectEvents()
			}
			if goes := overWith(waiting) == passedOn; goes != test.goes {
				t.Errorf("the other pod leaves: %t, want %t", goes, test.goes)
			}
		})
	}
}

// The library begins a turn again if it could not report the end.
func TestResultStands(t *testing.T) {
	setMaxUnavailable(t, false)
	pod := pacedPod(1)
	p := newPacing(t, pacedSet(2), pod, pacedPod(0), pacedRequest(pod))
	turn := p.begin(pacedRequest(pod))
	p.sync()
	expectOver(t, turn, passedOn)
	p.pacer.end(turn)
	p.store(pacedPod(0, unready)) // Now the pod would have to wait.
	expectOver(t, p.begin(pacedRequest(pod)), passedOn)
	again := p.begin(pacedRequest(pod, func(r *coordinationv1alpha1.EvictionRequest) { r.UID = "next" }))
	expectOver(t, again, "")
}

func TestNothingToPace(t *testing.T) {
	tests := map[string]struct {
		set  *apps.StatefulSet
		pod  *v1.Pod
		want string
	}{
		"orphan":                  {set: pacedSet(2), pod: pacedPod(0, func(p *v1.Pod) { p.OwnerReferences = nil }), want: "Skipped: no StatefulSet controls the pod."},
		"owned, not controlled":   {set: pacedSet(2), pod: pacedPod(0, func(p *v1.Pod) { p.OwnerReferences[0].Controller = nil }), want: "Skipped: no StatefulSet controls the pod."},
		"of another kind":         {set: pacedSet(2), pod: pacedPod(0, func(p *v1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" }), want: "Skipped: no StatefulSet controls the pod."},
		"of an earlier set":       {set: pacedSet(2), pod: pacedPod(0, func(p *v1.Pod) { p.OwnerReferences[0].UID = "earlier" }), want: "Skipped: no StatefulSet controls the pod."},
		"the set is gone":         {pod: pacedPod(0), want: "Skipped: no StatefulSet controls the pod."},
		"the set is deleted":      {set: pacedSet(2, func(s *apps.StatefulSet) { s.DeletionTimestamp = &metav1.Time{Time: pacingEpoch} }), pod: pacedPod(0), want: "Skipped: StatefulSet web is being deleted."},
		"opted out":               {set: pacedSet(2, withPacing("Disabled")), pod: pacedPod(0), want: "Skipped: the annotation statefulset.kubernetes.io/eviction-pacing of StatefulSet web turns off that its pods wait for each other."},
		"another value":           {set: pacedSet(2, withPacing("disabled")), pod: pacedPod(0)},
		"on delete":               {set: pacedSet(2, onDelete), pod: pacedPod(0), want: "Skipped: the update strategy of StatefulSet web is OnDelete."},
		"terminating":             {set: pacedSet(2), pod: pacedPod(0, terminating), want: "The pod is terminating."},
		"failed":                  {set: pacedSet(2), pod: pacedPod(0, inPhase(v1.PodFailed)), want: "The pod has finished."},
		"succeeded":               {set: pacedSet(2), pod: pacedPod(0, inPhase(v1.PodSucceeded)), want: "The pod has finished."},
		"one of the others waits": {set: pacedSet(2), pod: pacedPod(0)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setMaxUnavailable(t, false)
			objects := []runtime.Object{test.pod, pacedRequest(test.pod), pacedPod(1, unready)}
			if test.set != nil {
				objects = append(objects, test.set)
			}
			p := newPacing(t, objects...)
			turn := p.begin(pacedRequest(test.pod))
			p.sync()
			expectOver(t, turn, test.want)
		})
	}
}

func withPacing(value string) func(*apps.StatefulSet) {
	return func(set *apps.StatefulSet) {
		set.Annotations = map[string]string{"statefulset.kubernetes.io/eviction-pacing": value}
	}
}

// A pod name of another form belongs to no set.
func TestPodOfNoSet(t *testing.T) {
	pod := pacedPod(0, func(p *v1.Pod) { p.Name = "web" })
	p := newPacing(t, pod, pacedRequest(pod))
	turn := p.begin(pacedRequest(pod))
	if err := p.pacer.sync(t.Context(), "default/"); err != nil {
		t.Fatalf("syncing: %v", err)
	}
	expectOver(t, turn, "Skipped: no StatefulSet controls the pod.")
}

// A pod that is missing in the cache, or has another UID there, may be gone, or the cache is
// behind.
func TestUnknownPod(t *testing.T) {
	for name, cached := range map[string]*v1.Pod{"gone": nil, "another one of the name": pacedPod(0, func(p *v1.Pod) { p.UID = "next" })} {
		t.Run(name, func(t *testing.T) {
			setMaxUnavailable(t, false)
			pod := pacedPod(0)
			p := newPacing(t, pacedSet(2), pacedPod(1), pacedRequest(pod))
			if cached != nil {
				p.store(cached)
			}
			// An earlier process may have had the pod in its cache, so its reports do not count.
			turn := p.begin(pacedRequest(pod, func(r *coordinationv1alpha1.EvictionRequest) {
				r.Status.Interceptors[1].StartTime = &metav1.Time{Time: pacingEpoch.Add(-time.Hour)}
			}))
			p.sync()
			expectOver(t, turn, "")
			p.clock.Step(evictionProgressDeadline - time.Second)
			p.sync()
			expectOver(t, turn, "")
			p.clock.Step(time.Second)
			p.sync()
			expectOver(t, turn, "Skipped: the pod was not found.")
		})
	}
}

// Pods of a set of the same name in another namespace, and pods of other controllers, do not count.
func TestOnlyPodsOfTheSetCount(t *testing.T) {
	setMaxUnavailable(t, false)
	pod := pacedPod(0)
	elsewhere := pacedPod(2, unready, func(p *v1.Pod) { p.Namespace = "other" })
	foreign := pacedPod(3, unready, func(p *v1.Pod) { p.OwnerReferences[0].UID = "foreign" })
	p := newPacing(t, pacedSet(2), pod, pacedPod(1), elsewhere, foreign, pacedRequest(pod))
	turn := p.begin(pacedRequest(pod))
	p.sync()
	expectOver(t, turn, passedOn)
}

// After a restart, the released pods are read from the requests.
func TestRestart(t *testing.T) {
	setMaxUnavailable(t, false)
	low, high := pacedPod(0), pacedPod(1)
	p := newPacing(t, pacedSet(2), low, high, pacedRequest(low), pacedRequest(high))
	p.begin(pacedRequest(low))
	turn := p.begin(pacedRequest(high))
	p.sync()
	expectOver(t, turn, passedOn)
	p.store(pacedRequest(high, completedAt(p.clock.Now())))
	p.restart()
	again := p.begin(pacedRequest(low))
	p.sync()
	expectOver(t, again, "")
}

// TestRestartKeepsTheTimeout checks how much longer a pod waits that another process has let wait
// before. The reported waiting time counts, and the outage does not: a restart after a long outage
// is no reason to give up at once.
func TestRestartKeepsTheTimeout(t *testing.T) {
	const minute = time.Minute
	reported := func(started, heartbeat time.Duration, eta ...time.Duration) func(*coordinationv1alpha1.EvictionRequest) {
		return func(request *coordinationv1alpha1.EvictionRequest) {
			entry := &request.Status.Interceptors[1]
			entry.StartTime, entry.HeartbeatTime = &metav1.Time{Time: pacingEpoch.Add(-started)}, &metav1.Time{Time: pacingEpoch.Add(-heartbeat)}
			for _, eta := range eta {
				entry.ExpectedFinishTime = &metav1.Time{Time: pacingEpoch.Add(eta)}
			}
		}
	}
	evicted := func(ago time.Duration) *coordinationv1alpha1.EvictionRequest {
		return pacedRequest(pacedPod(7), endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, pacingEpoch.Add(-ago)))
	}
	tests := map[string]struct {
		before func(*coordinationv1alpha1.EvictionRequest)
		others []*coordinationv1alpha1.EvictionRequest
		want   time.Duration
	}{
		"activated long ago, nothing reported": {before: func(r *coordinationv1alpha1.EvictionRequest) {
			r.Status.ActivationTime = &metav1.Time{Time: pacingEpoch.Add(-time.Hour)}
		}, want: 10 * minute},
		"reported until now":          {before: reported(4*minute, 0), want: 6 * minute},
		"timed out before":            {before: reported(time.Hour, 0), want: 0},
		"away for long":               {before: reported(time.Hour, 56*minute), want: 5 * minute},
		"away from the start":         {before: reported(time.Hour, time.Hour), want: 9 * minute},
		"away between two heartbeats": {before: reported(4*minute, minute), want: 6 * minute},
		"away before":                 {before: reported(2*time.Hour, 0, 6*minute), want: 6 * minute},
		"away twice":                  {before: reported(2*time.Hour, time.Hour, 6*minute-time.Hour), want: 5 * minute},
		"progress since it was away before": {
			before: reported(2*time.Hour, 0, 6*minute), others: []*coordinationv1alpha1.EvictionRequest{evicted(minute)}, want: 9 * minute,
		},
		"progress before it was away":        {before: reported(time.Hour, 30*minute), others: []*coordinationv1alpha1.EvictionRequest{evicted(33 * minute)}, want: 6 * minute},
		"progress while it was away":         {before: reported(time.Hour, 55*minute), others: []*coordinationv1alpha1.EvictionRequest{evicted(20 * minute)}, want: 10 * minute},
		"progress, and a time in the future": {before: reported(8*minute, 0), others: []*coordinationv1alpha1.EvictionRequest{evicted(3 * minute), pacedRequest(pacedPod(8), endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, pacingEpoch.Add(time.Hour)))}, want: 7 * minute},
		"a start in the future":              {before: reported(-minute, 0), want: 10 * minute},
		"a heartbeat in the future":          {before: reported(4*minute, -minute), want: 6 * minute},
		"a start and nothing after it": {before: func(r *coordinationv1alpha1.EvictionRequest) {
			reported(time.Hour, 0)(r)
			r.Status.Interceptors[1].HeartbeatTime = nil
		}, want: 9 * minute},
		"a report of another": {before: func(r *coordinationv1alpha1.EvictionRequest) {
			r.Status.Interceptors[0].StartTime = &metav1.Time{Time: pacingEpoch.Add(-time.Hour)}
		}, want: 10 * minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setMaxUnavailable(t, false)
			pod := pacedPod(0)
			request := pacedRequest(pod, test.before)
			p := newPacing(t, pacedSet(2), pod, pacedPod(1, terminating), request)
			for _, other := range test.others {
				p.store(other)
			}
			turn := p.begin(request)
			if test.want > 0 {
				p.clock.Step(test.want - time.Second)
				p.sync()
				expectOver(t, turn, "")
				p.clock.Step(time.Second)
			}
			p.sync()
			if got := overWith(turn); !strings.HasPrefix(got, "Gave up after ") {
				t.Errorf("after %v the turn ended with %q, want it given up", test.want, got)
			}
		})
	}
}

// Without progress the next pod is released, and only one.
func TestGivingUp(t *testing.T) {
	setMaxUnavailable(t, false)
	since := counted(t)
	low, high, stuck := pacedPod(0), pacedPod(1), pacedPod(2, terminating)
	p := newPacing(t, pacedSet(3), low, high, stuck, pacedRequest(low), pacedRequest(high))
	first, second := p.begin(pacedRequest(low)), p.begin(pacedRequest(high))
	p.clock.Step(evictionProgressDeadline - time.Second)
	p.sync()
	expectOver(t, second, "")
	p.clock.Step(time.Second)
	p.sync()
	gaveUp := "Gave up after 10m0s without progress. " + waitsFor("pod web-2 to terminate", 3)
	expectOver(t, second, gaveUp)
	expectOver(t, first, "")
	p.sync() // The end is not reported yet.
	expectOver(t, first, "")
	if want := waitsFor("pod web-1 to be evicted, pod web-2 to terminate", 3); p.said["web-0"] != want {
		t.Errorf("the other message is %q, want %q", p.said["web-0"], want)
	}
	p.pacer.end(second)
	p.store(pacedRequest(high, completedAt(p.clock.Now())))
	p.clock.Step(evictionProgressDeadline - time.Second)
	p.sync()
	expectOver(t, first, "")
	p.expectEvents("Warning EvictionPacingGivenUp Released pod web-1 for eviction although too many pods are unavailable: " + gaveUp)
	expectCounts(t, since, map[metrics.EvictionOutcome]uint64{"given_up": 1})

	// The pod has left, which is progress.
	p.remove(high)
	p.store(pacedRequest(high, completedAt(pacingEpoch.Add(evictionProgressDeadline)), endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, p.clock.Now())))
	p.clock.Step(evictionProgressDeadline - time.Second)
	p.sync()
	expectOver(t, first, "")
	p.clock.Step(time.Second)
	p.sync()
	if got := overWith(first); !strings.HasPrefix(got, "Gave up after 10m0s without progress. ") {
		t.Errorf("the turn ended with %q, want it given up", got)
	}
}

// A pod that is ready and unready again and again is no progress. Neither are requests of other
// sets, requests that do not list the interceptor, or times in the future.
func TestNoProgress(t *testing.T) {
	const almost = evictionProgressDeadline - time.Second
	evicted := endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, pacingEpoch.Add(almost))
	gone := pacedPod(5)
	tests := map[string]runtime.Object{
		"a pod that flaps": pacedPod(1, unready, func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: metav1.NewTime(pacingEpoch.Add(almost))}}
		}),
		"a pod of another set": pacedRequest(gone, evicted, func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Target.Pod.Name = "db-1" }),
		"another namespace":    pacedRequest(gone, evicted, func(r *coordinationv1alpha1.EvictionRequest) { r.Namespace = "other" }),
		"not named": pacedRequest(gone, evicted, func(r *coordinationv1alpha1.EvictionRequest) {
			r.Status.TargetInterceptors = r.Status.TargetInterceptors[:1]
		}),
		"no target":            pacedRequest(gone, evicted, func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Target.Pod = nil }),
		"a time in the future": pacedRequest(gone, endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, pacingEpoch.Add(time.Hour))),
		"canceled":             pacedRequest(gone, endedAs(coordinationv1alpha1.EvictionRequestConditionCanceled, pacingEpoch.Add(almost))),
		"not evicted":          pacedRequest(gone, evicted, func(r *coordinationv1alpha1.EvictionRequest) { r.Status.Conditions[0].Status = metav1.ConditionFalse }),
		"an open turn":         pacedRequest(gone),
	}
	for name, object := range tests {
		t.Run(name, func(t *testing.T) {
			setMaxUnavailable(t, false)
			pod := pacedPod(0)
			p := newPacing(t, pacedSet(2), pod, pacedPod(1, terminating), pacedRequest(pod))
			turn := p.begin(pacedRequest(pod))
			p.clock.Step(almost)
			p.store(object)
			p.sync()
			expectOver(t, turn, "")
			p.clock.Step(time.Second)
			p.sync()
			if got := overWith(turn); !strings.HasPrefix(got, "Gave up after 10m0s") {
				t.Errorf("the turn ended with %q, want it given up", got)
			}
		})
	}
}

// pace returns when to sync again if nothing changes.
func TestResync(t *testing.T) {
	setMaxUnavailable(t, false)
	pod := pacedPod(0)
	tests := map[string]struct {
		set   *apps.StatefulSet
		other *v1.Pod
		after time.Duration
		want  time.Duration
	}{
		"the deadline":      {set: pacedSet(2), other: pacedPod(1, terminating), want: evictionProgressDeadline},
		"in mid-deadline":   {set: pacedSet(2), other: pacedPod(1, terminating), after: 4 * time.Minute, want: 6 * time.Minute},
		"broken by time":    {set: pacedSet(2), other: pacedPod(1, unready), after: 20 * time.Second, want: 10 * time.Second},
		"no pod waits":      {set: pacedSet(2), other: pacedPod(1), want: evictionProgressDeadline},
		"available by time": {set: pacedSet(2, minReady(60)), other: pacedPod(1, readySince(20*time.Second)), want: 40 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPacing(t, test.set, pod, test.other, pacedRequest(pod))
			p.begin(pacedRequest(pod))
			p.clock.Step(test.after)
			p.pacer.lock.Lock()
			defer p.pacer.lock.Unlock()
			if got := p.pacer.pace(pacedKey, test.set, []*v1.Pod{pod, test.other}, p.clock.Now()); got != test.want {
				t.Errorf("syncs again after %v, want %v", got, test.want)
			}
		})
	}
}

// The controller tries again soon to create a pod for which others wait, and so does the pacer.
func TestMissingPodIsTriedAgain(t *testing.T) {
	setMaxUnavailable(t, false)
	for name, test := range map[string]struct {
		pod    *v1.Pod
		want   time.Duration
		synced []string
	}{
		"another pod waits": {pod: pacedPod(0), want: 30 * time.Second, synced: []string{pacedKey + " after 30s"}},
		"no pod waits":      {pod: pacedPod(0, broken), want: evictionProgressDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPacing(t, pacedSet(2), test.pod, pacedRequest(test.pod))
			p.begin(pacedRequest(test.pod))
			p.pacer.lock.Lock()
			defer p.pacer.lock.Unlock()
			if got := p.pacer.pace(pacedKey, pacedSet(2), []*v1.Pod{test.pod}, p.clock.Now()); got != test.want {
				t.Errorf("syncs again after %v, want %v", got, test.want)
			}
			if !slices.Equal(p.sets.delayed, test.synced) {
				t.Errorf("the controller syncs %q, want %q", p.sets.delayed, test.synced)
			}
		})
	}
}

// A pod that waits for another one to be created says why it is not.
func TestPodThatCannotBeCreated(t *testing.T) {
	setMaxUnavailable(t, false)
	asked, set := pacedPod(0), pacedSet(3)
	p := newPacing(t, set, asked, pacedPod(2), pacedRequest(asked))
	p.begin(pacedRequest(asked))
	expect := func(what, want string) {
		t.Helper()
		p.sync()
		if got := p.said[asked.UID]; got != waitsFor(want, 3) {
			t.Errorf("%s: said %q, want %q", what, got, waitsFor(want, 3))
		}
	}
	const missing = "pod web-1 to be created"
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-1", errors.New("exceeded quota: q"))
	const failed = missing + ` (failed: pods "web-1" is forbidden: exceeded quota: q)`
	expect("at first", missing)
	for p.pacer.queue.Len() > 0 {
		key, _ := p.pacer.queue.Get()
		p.pacer.queue.Done(key)
	}
	p.pacer.created(set, "web-1", quota)
	if p.pacer.queue.Len() != 1 {
		t.Error("does not say it at once")
	}
	expect("refused", failed)
	p.pacer.created(set, "web-1", apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, "web-1"))
	p.pacer.created(set, "web-2", nil)
	p.pacer.created(&apps.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}, "web-1", nil)
	expect("others were created", failed)
	p.pacer.created(set, "web-1", errors.New(strings.Repeat("x", 5000)))
	if got := len(p.pacer.createFailures[pacedKey].message); got != maxCreateFailure {
		t.Errorf("keeps %d bytes, want %d", got, maxCreateFailure)
	}
	p.pacer.created(set, "web-1", nil)
	expect("created", missing)
	p.pacer.created(set, "web-1", quota)
	p.pacer.gone(cache.DeletedFinalStateUnknown{Obj: set})
	if len(p.pacer.createFailures) != 0 {
		t.Errorf("keeps %v of a set that is gone", p.pacer.createFailures)
	}
}

// Messages name one pod, and say how many more there are.
func TestPodsAreNamed(t *testing.T) {
	for want, names := range map[string][]string{"pod web-2": {"web-2"}, "pod web-2 and 1 more": {"web-2", "web-3"}, "pod web-2 and 2 more": {"web-2", "web-3", "web-4"}} {
		if got := podsNamed(names); got != want {
			t.Errorf("%q are %q, want %q", names, got, want)
		}
	}
}

// A turn that is ended from outside is counted once.
func TestCanceledTurns(t *testing.T) {
	tests := map[string]struct {
		cause error
		want  map[metrics.EvictionOutcome]uint64
	}{
		"evicted":  {evictionrequest.ErrEvicted, map[metrics.EvictionOutcome]uint64{"gone": 1}},
		"canceled": {evictionrequest.ErrCanceled, map[metrics.EvictionOutcome]uint64{"canceled": 1}},
		"deleted":  {evictionrequest.ErrRequestGone, map[metrics.EvictionOutcome]uint64{"canceled": 1}},
		"lost":     {fmt.Errorf("late: %w", evictionrequest.ErrTurnLost), map[metrics.EvictionOutcome]uint64{"lost": 1}},
		"restart":  {cause: fmt.Errorf("stopping"), want: map[metrics.EvictionOutcome]uint64{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			since := counted(t)
			pod := pacedPod(0)
			p := newPacing(t, pacedSet(2), pod, pacedPod(1), pacedRequest(pod))
			turn := p.begin(pacedRequest(pod))
			p.pacer.canceled(turn, test.cause)
			expectCounts(t, since, test.want)
			p.sync()
			expectOver(t, turn, passedOn)
			p.pacer.canceled(turn, test.cause) // confirm will count it.
			expectCounts(t, since, test.want)
		})
	}
}

// TestRetries checks that sets are rate-limited separately: many failing sets must not delay the
// first retry of another one.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newEvictionQueue(clock.RealClock{})
		const others = 5000
		for i := range others {
			queue.AddRateLimited(fmt.Sprintf("default/%d", i))
		}
		for range 100 {
			queue.AddRateLimited(pacedKey)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		// pacedKey is among them: it is added after its first delay.
		if got := queue.Len(); got != others+1 {
			t.Errorf("%d of %d sets are retried after a second", got, others+1)
		}
		queue.ShutDown()
	})
	limiter := newEvictionRateLimiter()
	for range 100 {
		limiter.When(pacedKey)
	}
	if got := limiter.When(pacedKey); got != evictionRetryInterval {
		t.Errorf("a set that always fails is retried after %v, want %v", got, evictionRetryInterval)
	}
}

// TestFailedSync checks that a failed sync is retried, and that a success resets the delay.
func TestFailedSync(t *testing.T) {
	p := newPacing(t, pacedSet(2))
	const broken = "of/no/set" // An invalid key.
	p.pacer.queue.Add(broken)
	p.pacer.processNext(t.Context())
	if got := p.pacer.queue.NumRequeues(broken); got != 1 {
		t.Errorf("%d retries after a failure, want 1", got)
	}
	p.pacer.queue.AddRateLimited(pacedKey)
	p.pacer.queue.Add(pacedKey)
	p.pacer.processNext(t.Context())
	if got := p.pacer.queue.NumRequeues(pacedKey); got != 0 {
		t.Errorf("%d retries are left after a success", got)
	}
}

// A change enqueues the set if it has turns.
func TestWakeUps(t *testing.T) {
	pod := pacedPod(0)
	tests := map[string]struct {
		object any
		want   bool
	}{
		"its pod":                      {pod, true},
		"another pod of the set":       {pacedPod(7), true},
		"a pod that was deleted":       {cache.DeletedFinalStateUnknown{Obj: pod}, true},
		"a pod of another set":         {pacedPod(0, func(p *v1.Pod) { p.Name = "db-0" }), false},
		"a pod of another namespace":   {pacedPod(0, func(p *v1.Pod) { p.Namespace = "other" }), false},
		"the set":                      {pacedSet(2), true},
		"the set was deleted":          {cache.DeletedFinalStateUnknown{Obj: pacedSet(2)}, true},
		"another set":                  {pacedSet(2, func(s *apps.StatefulSet) { s.Name = "db" }), false},
		"a request of the set":         {pacedRequest(pacedPod(7)), true},
		"a request of another set":     {pacedRequest(pacedPod(0, func(p *v1.Pod) { p.Name = "db-0" })), false},
		"a request without a target":   {&coordinationv1alpha1.EvictionRequest{}, false},
		"something else":               {&v1.Node{}, false},
		"a tombstone without anything": {cache.DeletedFinalStateUnknown{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setMaxUnavailable(t, false)
			p := newPacing(t, pacedSet(2), pod, pacedPod(1), pacedRequest(pod))
			p.pacer.changed(test.object)
			if woken := p.pacer.queue.Len(); woken != 0 {
				t.Errorf("enqueued, although no pod waits: %d", woken)
			}
			turn := p.begin(pacedRequest(pod))
			for p.pacer.queue.Len() > 0 {
				p.pacer.processNext(t.Context())
			}
			expectOver(t, turn, passedOn)
			p.pacer.lock.Lock()
			delete(p.pacer.turns, pacedKey) // Unreported results are tracked, too.
			p.pacer.lock.Unlock()
			p.pacer.changed(test.object)
			if woken := p.pacer.queue.Len() > 0; woken != test.want {
				t.Errorf("enqueued: %t, want %t", woken, test.want)
			}
		})
	}
}

// The end of a turn enqueues the set, and does not remove a newer turn.
func TestEndOfTurn(t *testing.T) {
	pod := pacedPod(0)
	p := newPacing(t, pacedRequest(pod))
	old := p.begin(pacedRequest(pod))
	next := p.begin(pacedRequest(pod))
	for p.pacer.queue.Len() > 0 {
		key, _ := p.pacer.queue.Get()
		p.pacer.queue.Done(key)
	}
	p.pacer.end(old)
	if p.pacer.turns[pacedKey]["web-0"] != next || p.pacer.queue.Len() != 1 {
		t.Errorf("the newer turn is %v, %d in the queue", p.pacer.turns, p.pacer.queue.Len())
	}
	p.pacer.end(next)
	if len(p.pacer.turns) != 0 || p.pacer.isTracked(pacedKey) {
		t.Errorf("the turns are %v", p.pacer.turns)
	}
}

// An unavailable pod waits for the others.
func TestUnavailablePodWaitsForOthers(t *testing.T) {
	setMaxUnavailable(t, false)
	low, high := pacedPod(0, unready), pacedPod(1, unready)
	p := newPacing(t, pacedSet(3), low, high, pacedPod(2), pacedRequest(low), pacedRequest(high))
	first, second := p.begin(pacedRequest(low)), p.begin(pacedRequest(high))
	p.sync()
	expectOver(t, second, passedOn)
	expectOver(t, first, "")
	if got, want := p.said["web-0"], waitsFor("pod web-1 to be evicted", 3); got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
}

// The metric includes the time that a pod has waited before a restart.
func TestWaitsAreMeasured(t *testing.T) {
	setMaxUnavailable(t, false)
	pod := pacedPod(0)
	request := pacedRequest(pod, func(r *coordinationv1alpha1.EvictionRequest) {
		r.Status.Interceptors[1].StartTime = &metav1.Time{Time: pacingEpoch.Add(-time.Minute)}
	})
	p := newPacing(t, pacedSet(2), pod, pacedPod(1, unready), request)
	sum := func() float64 {
		vec, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, evictionWaits, map[string]string{"outcome": "released"})
		if err != nil {
			t.Fatalf("reading the metric: %v", err)
		}
		return vec.GetAggregatedSampleSum()
	}
	before := sum()
	turn := p.begin(request)
	p.clock.Step(40 * time.Second)
	p.store(pacedPod(1))
	p.sync()
	expectOver(t, turn, passedOn)
	p.clock.Step(time.Hour) // Until it is reported.
	p.store(pacedRequest(pod, completedAt(p.clock.Now())))
	p.sync()
	if got := sum() - before; got != 100 {
		t.Errorf("%v seconds are counted, want 100", got)
	}
}

// Unavailable pods leave one at a time, whatever the caches show of the previous one.
func TestReplacements(t *testing.T) {
	old := pacedPod(1)
	next := pacedPod(1, unready, func(pod *v1.Pod) { pod.UID = "next" })
	canceled := endedAs(coordinationv1alpha1.EvictionRequestConditionCanceled, pacingEpoch)
	tests := map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		passed  bool
		want    string
	}{
		"passed on and reported":     {request: pacedRequest(old, completedAt(pacingEpoch))},
		"passed on, not reported":    {request: pacedRequest(old), passed: true},
		"passed on, then canceled":   {request: pacedRequest(old, completedAt(pacingEpoch), canceled), want: passedOn},
		"another one, not passed on": {request: pacedRequest(old), want: passedOn},
		"no request":                 {want: passedOn},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setMaxUnavailable(t, false)
			pod := pacedPod(0, unready)
			p := newPacing(t, pacedSet(3), pod, next, pacedPod(2), pacedRequest(pod))
			if test.request != nil {
				p.store(test.request)
			}
			if test.passed {
				p.pacer.results[pacedKey] = map[types.UID]*evictionResult{"web-1": {request: test.request.UID, at: pacingEpoch}}
			}
			turn := p.begin(pacedRequest(pod))
			p.sync()
			expectOver(t, turn, test.want)
		})
	}
}

// A pod that the set controls under the name of another set is not a member.
func TestPodOfAnotherName(t *testing.T) {
	setMaxUnavailable(t, false)
	pod := pacedPod(0)
	p := newPacing(t, pacedSet(2), pod, pacedPod(1), pacedPod(2, unready, func(p *v1.Pod) { p.Name = "db-2" }), pacedRequest(pod))
	turn := p.begin(pacedRequest(pod))
	p.sync()
	expectOver(t, turn, passedOn)
}

// TestTurnEndsOnce ends a turn whose handler does not receive the message because its context was
// also canceled. Before the handler returns, the result is removed and there is another reason to
// end the turn. A second message would block forever, with the lock held.
func TestTurnEndsOnce(t *testing.T) {
	setMaxUnavailable(t, false)
	since := counted(t)
	pod := pacedPod(1)
	p := newPacing(t, pacedSet(2), pacedPod(0), pod, pacedRequest(pod))
	turn := p.begin(pacedRequest(pod))
	p.sync()
	p.store(pacedRequest(pod, endedAs(coordinationv1alpha1.EvictionRequestConditionCanceled, pacingEpoch)))
	p.store(pacedPod(1, terminating))
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		p.sync()
	}()
	select {
	case <-synced:
	case <-time.After(30 * time.Second):
		t.Fatal("the pacer hangs while it ends the turn for the second time")
	}
	expectOver(t, turn, passedOn)
	expectOver(t, turn, "")
	p.pacer.canceled(turn, evictionrequest.ErrCanceled)
	expectCounts(t, since, map[metrics.EvictionOutcome]uint64{"canceled": 1})
}
