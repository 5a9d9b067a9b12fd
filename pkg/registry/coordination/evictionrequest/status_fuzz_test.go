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
	"math/rand"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/coordination"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// FuzzStatusUpdates applies a sequence of updates to a request, as encoded in the bytes. Each
// update is a step of the controller or of an interceptor, which may not be allowed in the current
// state and may contain an additional change. All updates that the API server accepts must keep the
// invariants, and it must accept each allowed step without an additional change.
//
//	go test ./pkg/registry/coordination/evictionrequest -fuzz FuzzStatusUpdates
func FuzzStatusUpdates(f *testing.F) {
	for _, history := range seeds {
		f.Add(history)
	}
	f.Fuzz(func(t *testing.T, data []byte) { newHistory(t, data).play() })
}

const imperativeName = "imperative-eviction.k8s.io"

// history is a request and the updates that were applied to it.
type history struct {
	t        *testing.T
	data     []byte
	clock    *testingclock.FakePassiveClock
	strategy *statusStrategy
	request  *coordination.EvictionRequest

	accepted, rejected int
}

func newHistory(t *testing.T, data []byte) *history {
	now := testingclock.NewFakePassiveClock(noon)
	return &history{
		t: t, data: data, clock: now,
		strategy: &statusStrategy{strategy: Strategy, Clock: now},
		request: newRequest(func(request *coordination.EvictionRequest) {
			request.CreationTimestamp = metav1.Time{Time: noon}
			request.Spec.HeartbeatDeadlineSeconds = ptr.To[int32](120)
		}),
	}
}

// play applies one update for every three bytes: the step, the additional change, and a number that
// both may use.
func (l *history) play() {
	for len(l.data) >= 3 {
		stepByte, changeByte, n := l.data[0], l.data[1], int(l.data[2])
		l.data = l.data[3:]

		status := l.request.Status.DeepCopy()
		allowed := steps[int(stepByte)%len(steps)](l, status, n)
		var changed bool
		if changeByte >= changedFrom {
			changes[int(changeByte-changedFrom)%len(changes)](l, status, n)
			changed = true
		}
		l.update(status, allowed && !changed)
	}
}

// changedFrom is the smallest second byte that adds a change to an update: about one update in
// three.
const changedFrom = 160

// update sends a status through the strategy, like the status endpoint.
func (l *history) update(status *coordination.EvictionRequestStatus, wantAccepted bool) {
	ctx := requestContext("update", "status")
	updated := l.request.DeepCopy()
	updated.Status = *status
	l.strategy.PrepareForUpdate(ctx, updated, l.request)
	if errs := rest.ValidateUpdate(ctx, updated, l.request, l.strategy); len(errs) > 0 {
		if wantAccepted {
			l.t.Fatalf("at %s a valid update was rejected: %v\nfrom %+v\nto %+v", l.clock.Now(), errs.ToAggregate(), l.request.Status, updated.Status)
		}
		l.rejected++
		return
	}
	if broken := brokenInvariants(l.request, &updated.Status, l.clock.Now()); len(broken) > 0 {
		l.t.Fatalf("at %s an accepted update breaks %q\nfrom %+v\nto %+v", l.clock.Now(), broken, l.request.Status, updated.Status)
	}
	l.accepted++
	l.request = updated
}

func (l *history) now() *metav1.Time { return &metav1.Time{Time: l.clock.Now()} }

// near returns a time at most 128 seconds away, in steps of a second.
func (l *history) near(n int) *metav1.Time {
	return &metav1.Time{Time: l.clock.Now().Add(time.Duration(n-128) * time.Second)}
}

// activeEntry returns the entry of the active interceptor and whether it may still report. If there
// is none, the entry is not part of the status.
func activeEntry(status *coordination.EvictionRequestStatus) (entry *coordination.InterceptorStatus, reporting bool) {
	for i := range status.Interceptors {
		entry := &status.Interceptors[i]
		if slices.Contains(status.ActiveInterceptors, entry.Name) {
			return entry, entry.CompletionTime == nil && !ended(status)
		}
	}
	return &coordination.InterceptorStatus{}, false
}

func ended(status *coordination.EvictionRequestStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, "Canceled") || meta.IsStatusConditionTrue(status.Conditions, "Evicted")
}

func (l *history) setCondition(status *coordination.EvictionRequestStatus, conditionType string, value metav1.ConditionStatus) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: conditionType, Status: value, Reason: "Reason", LastTransitionTime: *l.now()})
}

func (l *history) activateNext(status *coordination.EvictionRequestStatus) {
	status.ProcessedInterceptors = append(status.ProcessedInterceptors, status.ActiveInterceptors...)
	status.ActiveInterceptors = nil
	if next := len(status.ProcessedInterceptors); next < len(status.TargetInterceptors) && !ended(status) {
		status.ActiveInterceptors = []string{status.TargetInterceptors[next].Name}
		status.ActivationTime = l.now()
	}
}

// begin reports the start if it is missing, and a heartbeat if one is allowed.
func (l *history) begin(entry *coordination.InterceptorStatus) {
	now := l.now()
	if entry.StartTime == nil {
		entry.StartTime = now
	}
	if entry.HeartbeatTime == nil || now.Sub(entry.HeartbeatTime.Time) >= time.Minute {
		entry.HeartbeatTime = now
	}
}

// timedOut reports whether the active interceptor has timed out, according to the fastest tolerated
// clock.
func (l *history) timedOut(status *coordination.EvictionRequestStatus) bool {
	entry, _ := activeEntry(status)
	lastSign := status.ActivationTime
	if lastSign == nil || entry.Name == imperativeName {
		return false
	}
	if lastSign.Before(entry.HeartbeatTime) {
		lastSign = entry.HeartbeatTime
	}
	return l.clock.Now().Sub(lastSign.Time) >= (120-10)*time.Second
}

func (l *history) end(status *coordination.EvictionRequestStatus, conditionType string) (allowed bool) {
	allowed = !ended(status)
	l.setCondition(status, conditionType, metav1.ConditionTrue)
	if entry, _ := activeEntry(status); entry.Name == imperativeName && entry.CompletionTime == nil {
		l.begin(entry)
		entry.CompletionTime = l.now()
	}
	l.activateNext(status)
	return allowed
}

// steps are updates of valid writers. Each reports whether it is allowed in the current state.
var steps = []func(l *history, status *coordination.EvictionRequestStatus, n int) (allowed bool){
	wait: func(l *history, _ *coordination.EvictionRequestStatus, n int) bool {
		waits := []time.Duration{time.Second, 1500 * time.Millisecond, 9 * time.Second, 11 * time.Second, 59 * time.Second, time.Minute, 109 * time.Second, 110 * time.Second, time.Hour}
		l.clock.SetTime(l.clock.Now().Add(waits[n%len(waits)]))
		return true
	},
	changeSpec: func(l *history, _ *coordination.EvictionRequestStatus, n int) bool {
		l.request.Generation += int64(n % 2)
		return true
	},
	initialize: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		allowed := len(status.TargetInterceptors) == 0 && !ended(status)
		fresh := newRequest(initialized(append(numbered(n%4), imperativeName)...)).Status
		status.TargetInterceptors, status.Interceptors = fresh.TargetInterceptors, fresh.Interceptors
		l.activateNext(status)
		return allowed
	},
	start: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		allowed := reporting && entry.StartTime == nil
		entry.StartTime, entry.HeartbeatTime = l.now(), l.now()
		return allowed
	},
	heartbeat: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		allowed := reporting && entry.HeartbeatTime != nil && l.clock.Now().Sub(entry.HeartbeatTime.Time) >= time.Minute
		entry.HeartbeatTime = l.now()
		return allowed
	},
	complete: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		if entry.StartTime == nil {
			entry.StartTime = l.now()
		}
		if entry.HeartbeatTime.Before(l.now()) || entry.HeartbeatTime == nil {
			entry.HeartbeatTime = l.now() // With the completion, it may be early.
		}
		entry.CompletionTime = l.now()
		return reporting
	},
	advance: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		entry, _ := activeEntry(status)
		allowed := !ended(status) && len(status.ActiveInterceptors) > 0 && (entry.CompletionTime != nil || l.timedOut(status))
		l.activateNext(status)
		return allowed
	},
	cancel: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		return l.end(status, "Canceled")
	},
	evict: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		return l.end(status, "Evicted")
	},
	observe: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		status.ObservedGeneration = l.request.Generation
		return true
	},
	block: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		l.setCondition(status, "Blocked", []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[n%2])
		return true
	},
	retry: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		l.begin(entry)
		entry.Retries += int32(n % 3)
		return reporting && entry.Name == imperativeName
	},
	estimate: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		entry.ExpectedFinishTime = &metav1.Time{Time: l.clock.Now().Add(time.Duration(n) * time.Second)}
		return reporting
	},
	setMessage: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		entry.Message += string(rune('a' + n%26))
		return reporting
	},
	setPolicy: func(l *history, status *coordination.EvictionRequestStatus, n int) bool {
		isFinal := status.EvictionRequestCancellationPolicy == "Forbid" && n%3 != 2
		status.EvictionRequestCancellationPolicy = []coordination.EvictionRequestCancellationPolicy{"", "Allow", "Forbid"}[n%3]
		return !isFinal && len(status.ActiveInterceptors) > 0 && !ended(status)
	},
}

// The indices of steps, for the seeds.
const (
	wait = iota
	changeSpec
	initialize
	start
	heartbeat
	complete
	advance
	cancel
	evict
	observe
	block
	retry
	estimate
	setMessage
	setPolicy
)

// seeds are the histories from which the fuzzer starts.
var seeds = [][]byte{
	encode(initialize, 2, start, 0, wait, 5, heartbeat, 0, estimate, 90, complete, 0, advance, 0, start, 0, complete, 0, advance, 0, retry, 1, block, 0, wait, 5, retry, 1, block, 1, evict, 0, observe, 0),
	encode(initialize, 3, wait, 7, advance, 0, start, 0, setPolicy, 2, changeSpec, 1, observe, 0, wait, 7, advance, 0, complete, 0, advance, 0, complete, 0, advance, 0, evict, 0),
	encode(observe, 0, cancel, 0, block, 0, observe, 0, start, 0, initialize, 1, evict, 0),
	encode(initialize, 1, setMessage, 1, start, 0, changeSpec, 1, cancel, 0, start, 0, complete, 0, advance, 0, setPolicy, 2),
	encode(initialize, 0, start, 0, complete, 0, advance, 0, cancel, 0, wait, 8, setMessage, 1),
	// Each additional change once, while the second of three interceptors is active.
	func() []byte {
		history := encode(initialize, 2, start, 0, complete, 0, advance, 0, start, 0, wait, 5)
		for i := range changes {
			history = append(history, byte(setMessage), byte(changedFrom+i), byte(128+i%3), byte(setMessage), byte(changedFrom+i), byte(i))
		}
		return history
	}(),
}

// encode encodes pairs of a step and a number, without additional changes.
func encode(pairs ...int) []byte {
	var history []byte
	for pair := range slices.Chunk(pairs, 2) {
		history = append(history, byte(pair[0]), 0, byte(pair[1]))
	}
	return history
}

// The fuzzer is only effective if many updates are accepted and many rejected. This test checks
// that, and runs many random histories.
func TestStatusUpdatesAreAcceptedAndRefused(t *testing.T) {
	wantAccepted := newHistory(t, seeds[0])
	wantAccepted.play()
	if want := len(seeds[0]) / 3; wantAccepted.accepted != want {
		t.Errorf("%d updates of a valid history were accepted, want %d", wantAccepted.accepted, want)
	}
	random := rand.New(rand.NewSource(1))
	var accepted, rejected, processed, evicted, canceled int
	for range 300 {
		data := make([]byte, 3*60)
		random.Read(data)
		for i := 0; i < 3*50; i += 3 {
			if step := int(data[i]) % len(steps); step == cancel || step == evict {
				data[i] = advance // A history that ends early tests little.
			}
		}
		history := newHistory(t, data)
		history.play()
		accepted, rejected = accepted+history.accepted, rejected+history.rejected
		processed += len(history.request.Status.ProcessedInterceptors)
		if meta.IsStatusConditionTrue(history.request.Status.Conditions, "Evicted") {
			evicted++
		}
		if meta.IsStatusConditionTrue(history.request.Status.Conditions, "Canceled") {
			canceled++
		}
	}
	t.Logf("accepted %d, rejected %d, processed %d, evicted %d, canceled %d", accepted, rejected, processed, evicted, canceled)
	if accepted < 6000 || rejected < 3000 || processed < 200 || evicted < 50 || canceled < 50 {
		t.Errorf("random histories test too little: accepted %d, rejected %d, processed %d, evicted %d, canceled %d", accepted, rejected, processed, evicted, canceled)
	}
}
