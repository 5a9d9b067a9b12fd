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
	"k8s.io/kubernetes/pkg/apis/coordination"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// FuzzStatusUpdates plays the life of a request, as the bytes say: each update is a
// step that the controller or an interceptor takes, which may be out of place, and may
// have something else changed in it. Whatever the API server accepts has to keep the
// invariants, and it has to accept every step that is in place and unchanged.
//
//	go test ./pkg/registry/coordination/evictionrequest -fuzz FuzzStatusUpdates
func FuzzStatusUpdates(f *testing.F) {
	for _, life := range seeds {
		f.Add(life)
	}
	f.Fuzz(func(t *testing.T, data []byte) { newLife(t, data).play() })
}

const imperativeName = "imperative-eviction.k8s.io"

// life is one request while it is played.
type life struct {
	t        *testing.T
	data     []byte
	clock    *testingclock.FakePassiveClock
	strategy *statusStrategy
	request  *coordination.EvictionRequest

	accepted, refused int
}

func newLife(t *testing.T, data []byte) *life {
	now := testingclock.NewFakePassiveClock(noon)
	return &life{
		t: t, data: data, clock: now,
		strategy: &statusStrategy{strategy: Strategy, Clock: now},
		request: newRequest(func(request *coordination.EvictionRequest) {
			request.CreationTimestamp = metav1.Time{Time: noon}
			request.Spec.HeartbeatDeadlineSeconds = ptr.To[int32](120)
		}),
	}
}

// play makes an update of every three bytes: the step, what else is changed, and a
// number that both may use.
func (l *life) play() {
	for len(l.data) >= 3 {
		stepByte, changeByte, n := l.data[0], l.data[1], int(l.data[2])
		l.data = l.data[3:]

		status := l.request.Status.DeepCopy()
		inPlace := steps[int(stepByte)%len(steps)](l, status, n)
		var changed bool
		if changeByte >= changedFrom {
			changes[int(changeByte-changedFrom)%len(changes)](l, status, n)
			changed = true
		}
		l.update(status, inPlace && !changed)
	}
}

// changedFrom is the first value of the second byte of an update that changes
// something: about one update in three.
const changedFrom = 160

// update sends a status through the strategy, as the status endpoint does.
func (l *life) update(status *coordination.EvictionRequestStatus, honest bool) {
	ctx := requestContext("update", "status")
	updated := l.request.DeepCopy()
	updated.Status = *status
	l.strategy.PrepareForUpdate(ctx, updated, l.request)
	if errs := l.strategy.ValidateUpdate(ctx, updated, l.request); len(errs) > 0 {
		if honest {
			l.t.Fatalf("at %s an honest update was refused: %v\nfrom %+v\nto %+v", l.clock.Now(), errs.ToAggregate(), l.request.Status, updated.Status)
		}
		l.refused++
		return
	}
	if broken := brokenInvariants(l.request, &updated.Status, l.clock.Now()); len(broken) > 0 {
		l.t.Fatalf("at %s an update was accepted that breaks %q\nfrom %+v\nto %+v", l.clock.Now(), broken, l.request.Status, updated.Status)
	}
	l.accepted++
	l.request = updated
}

func (l *life) now() *metav1.Time { return &metav1.Time{Time: l.clock.Now()} }

// near returns a time that is up to 128 seconds away, in steps of a second.
func (l *life) near(n int) *metav1.Time {
	return &metav1.Time{Time: l.clock.Now().Add(time.Duration(n-128) * time.Second)}
}

// activeEntry returns the entry of the active interceptor that may still report, or one
// that is part of no status.
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

func (l *life) setCondition(status *coordination.EvictionRequestStatus, conditionType string, value metav1.ConditionStatus) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: conditionType, Status: value, Reason: "Reason", LastTransitionTime: *l.now()})
}

func (l *life) passTheTurn(status *coordination.EvictionRequestStatus) {
	status.ProcessedInterceptors = append(status.ProcessedInterceptors, status.ActiveInterceptors...)
	status.ActiveInterceptors = nil
	if next := len(status.ProcessedInterceptors); next < len(status.TargetInterceptors) && !ended(status) {
		status.ActiveInterceptors = []string{status.TargetInterceptors[next].Name}
		status.ActivationTime = l.now()
	}
}

// begin reports the start, if that is missing, or a heartbeat, if it is time for one.
func (l *life) begin(entry *coordination.InterceptorStatus) {
	now := l.now()
	if entry.StartTime == nil {
		entry.StartTime = now
	}
	if entry.HeartbeatTime == nil || now.Sub(entry.HeartbeatTime.Time) >= time.Minute {
		entry.HeartbeatTime = now
	}
}

// silentTooLong tells whether the turn of the active interceptor is over without its
// doing, by the earliest clock that is right.
func (l *life) silentTooLong(status *coordination.EvictionRequestStatus) bool {
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

func (l *life) end(status *coordination.EvictionRequestStatus, conditionType string) (inPlace bool) {
	inPlace = !ended(status)
	l.setCondition(status, conditionType, metav1.ConditionTrue)
	if entry, _ := activeEntry(status); entry.Name == imperativeName && entry.CompletionTime == nil {
		l.begin(entry)
		entry.CompletionTime = l.now()
	}
	l.passTheTurn(status)
	return inPlace
}

// steps are what honest writers do. Each tells whether it is in place now.
var steps = []func(l *life, status *coordination.EvictionRequestStatus, n int) (inPlace bool){
	wait: func(l *life, _ *coordination.EvictionRequestStatus, n int) bool {
		waits := []time.Duration{time.Second, 1500 * time.Millisecond, 9 * time.Second, 11 * time.Second, 59 * time.Second, time.Minute, 109 * time.Second, 110 * time.Second, time.Hour}
		l.clock.SetTime(l.clock.Now().Add(waits[n%len(waits)]))
		return true
	},
	changeSpec: func(l *life, _ *coordination.EvictionRequestStatus, n int) bool {
		l.request.Generation += int64(n % 2)
		return true
	},
	initialize: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		inPlace := len(status.TargetInterceptors) == 0 && !ended(status)
		fresh := newRequest(initialized(append(numbered(n%4), imperativeName)...)).Status
		status.TargetInterceptors, status.Interceptors = fresh.TargetInterceptors, fresh.Interceptors
		l.passTheTurn(status)
		return inPlace
	},
	start: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		inPlace := reporting && entry.StartTime == nil
		entry.StartTime, entry.HeartbeatTime = l.now(), l.now()
		return inPlace
	},
	heartbeat: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		inPlace := reporting && entry.HeartbeatTime != nil && l.clock.Now().Sub(entry.HeartbeatTime.Time) >= time.Minute
		entry.HeartbeatTime = l.now()
		return inPlace
	},
	complete: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		if entry.StartTime == nil {
			entry.StartTime = l.now()
		}
		if entry.HeartbeatTime.Before(l.now()) || entry.HeartbeatTime == nil {
			entry.HeartbeatTime = l.now() // With the last words, it may be early.
		}
		entry.CompletionTime = l.now()
		return reporting
	},
	advance: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		entry, _ := activeEntry(status)
		inPlace := !ended(status) && len(status.ActiveInterceptors) > 0 && (entry.CompletionTime != nil || l.silentTooLong(status))
		l.passTheTurn(status)
		return inPlace
	},
	cancel: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		return l.end(status, "Canceled")
	},
	evict: func(l *life, status *coordination.EvictionRequestStatus, n int) bool { return l.end(status, "Evicted") },
	observe: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		status.ObservedGeneration = l.request.Generation
		return true
	},
	block: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		l.setCondition(status, "Blocked", []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[n%2])
		return true
	},
	retry: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		l.begin(entry)
		entry.Retries += int32(n % 3)
		return reporting && entry.Name == imperativeName
	},
	estimate: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		entry.ExpectedFinishTime = &metav1.Time{Time: l.clock.Now().Add(time.Duration(n) * time.Second)}
		return reporting
	},
	say: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		entry, reporting := activeEntry(status)
		entry.Message += string(rune('a' + n%26))
		return reporting
	},
	decide: func(l *life, status *coordination.EvictionRequestStatus, n int) bool {
		isFinal := status.EvictionRequestCancellationPolicy == "Forbid" && n%3 != 2
		status.EvictionRequestCancellationPolicy = []coordination.EvictionRequestCancellationPolicy{"", "Allow", "Forbid"}[n%3]
		return !isFinal && len(status.ActiveInterceptors) > 0 && !ended(status)
	},
}

// The indices of steps, which the seeds use.
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
	say
	decide
)

// seeds are lives from which the fuzzer starts.
var seeds = [][]byte{
	lived(initialize, 2, start, 0, wait, 5, heartbeat, 0, estimate, 90, complete, 0, advance, 0, start, 0, complete, 0, advance, 0, retry, 1, block, 0, wait, 5, retry, 1, block, 1, evict, 0, observe, 0),
	lived(initialize, 3, wait, 7, advance, 0, start, 0, decide, 2, changeSpec, 1, observe, 0, wait, 7, advance, 0, complete, 0, advance, 0, complete, 0, advance, 0, evict, 0),
	lived(observe, 0, cancel, 0, block, 0, observe, 0, start, 0, initialize, 1, evict, 0),
	lived(initialize, 1, say, 1, start, 0, changeSpec, 1, cancel, 0, start, 0, complete, 0, advance, 0, decide, 2),
	lived(initialize, 0, start, 0, complete, 0, advance, 0, cancel, 0, wait, 8, say, 1),
	// Every change of something else once, in the turn of the second of three.
	func() []byte {
		life := lived(initialize, 2, start, 0, complete, 0, advance, 0, start, 0, wait, 5)
		for i := range changes {
			life = append(life, byte(say), byte(changedFrom+i), byte(128+i%3), byte(say), byte(changedFrom+i), byte(i))
		}
		return life
	}(),
}

// lived makes bytes of pairs of a step and its number, with nothing else changed.
func lived(pairs ...int) []byte {
	var life []byte
	for pair := range slices.Chunk(pairs, 2) {
		life = append(life, byte(pair[0]), 0, byte(pair[1]))
	}
	return life
}

// Without many updates that are accepted and many that are refused, the fuzzer would
// show nothing. That they are is seen here, with many random lives besides.
func TestStatusUpdatesAreAcceptedAndRefused(t *testing.T) {
	honest := newLife(t, seeds[0])
	honest.play()
	if want := len(seeds[0]) / 3; honest.accepted != want {
		t.Errorf("of an honest life %d updates were accepted, want %d", honest.accepted, want)
	}
	random := rand.New(rand.NewSource(1))
	var accepted, refused, processed, evicted, canceled int
	for range 300 {
		data := make([]byte, 3*60)
		random.Read(data)
		for i := 0; i < 3*50; i += 3 {
			if step := int(data[i]) % len(steps); step == cancel || step == evict {
				data[i] = advance // A life that ends early shows little.
			}
		}
		life := newLife(t, data)
		life.play()
		accepted, refused = accepted+life.accepted, refused+life.refused
		processed += len(life.request.Status.ProcessedInterceptors)
		if meta.IsStatusConditionTrue(life.request.Status.Conditions, "Evicted") {
			evicted++
		}
		if meta.IsStatusConditionTrue(life.request.Status.Conditions, "Canceled") {
			canceled++
		}
	}
	t.Logf("accepted %d, refused %d, turns %d, evicted %d, canceled %d", accepted, refused, processed, evicted, canceled)
	if accepted < 6000 || refused < 3000 || processed < 200 || evicted < 50 || canceled < 50 {
		t.Errorf("random lives show little: accepted %d, refused %d, turns %d, evicted %d, canceled %d", accepted, refused, processed, evicted, canceled)
	}
}
