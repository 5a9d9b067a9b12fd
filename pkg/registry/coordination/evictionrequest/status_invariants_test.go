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
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// changes are additional changes of a hostile or defective writer.
var changes = []func(l *history, status *coordination.EvictionRequestStatus, n int){
	// Target interceptors.
	func(_ *history, s *coordination.EvictionRequestStatus, n int) {
		s.TargetInterceptors = append(s.TargetInterceptors, coordination.Interceptor{Name: anyName(n)})
	},
	func(_ *history, s *coordination.EvictionRequestStatus, n int) {
		s.TargetInterceptors = s.TargetInterceptors[:n%(len(s.TargetInterceptors)+1)]
	},
	func(_ *history, s *coordination.EvictionRequestStatus, _ int) { slices.Reverse(s.TargetInterceptors) },
	// Active interceptors.
	func(_ *history, s *coordination.EvictionRequestStatus, n int) {
		s.ActiveInterceptors = []string{anyName(n)}
	},
	func(_ *history, s *coordination.EvictionRequestStatus, n int) {
		s.ActiveInterceptors = append(s.ActiveInterceptors, anyName(n))
	},
	func(_ *history, s *coordination.EvictionRequestStatus, _ int) { s.ActiveInterceptors = nil },
	func(l *history, s *coordination.EvictionRequestStatus, _ int) { l.activateNext(s) },
	func(l *history, s *coordination.EvictionRequestStatus, n int) { s.ActivationTime = l.near(n) },
	func(_ *history, s *coordination.EvictionRequestStatus, _ int) { s.ActivationTime = nil },
	// Processed interceptors.
	func(_ *history, s *coordination.EvictionRequestStatus, n int) {
		s.ProcessedInterceptors = append(s.ProcessedInterceptors, anyName(n))
	},
	func(_ *history, s *coordination.EvictionRequestStatus, n int) {
		s.ProcessedInterceptors = s.ProcessedInterceptors[:n%(len(s.ProcessedInterceptors)+1)]
	},
	func(_ *history, s *coordination.EvictionRequestStatus, _ int) {
		slices.Reverse(s.ProcessedInterceptors)
	},
	// The entries of interceptors.
	func(_ *history, s *coordination.EvictionRequestStatus, n int) {
		s.Interceptors = append(s.Interceptors, coordination.InterceptorStatus{Name: anyName(n)})
	},
	func(_ *history, s *coordination.EvictionRequestStatus, n int) {
		s.Interceptors = s.Interceptors[:n%(len(s.Interceptors)+1)]
	},
	func(_ *history, s *coordination.EvictionRequestStatus, _ int) { slices.Reverse(s.Interceptors) },
	entryChange(func(_ *history, e *coordination.InterceptorStatus, n int) { e.Name = anyName(n) }),
	entryChange(func(l *history, e *coordination.InterceptorStatus, n int) { e.StartTime = l.near(n) }),
	entryChange(func(l *history, e *coordination.InterceptorStatus, n int) { e.HeartbeatTime = l.near(n) }),
	entryChange(func(l *history, e *coordination.InterceptorStatus, n int) {
		e.StartTime, e.HeartbeatTime = l.near(n), l.near(n)
	}),
	entryChange(func(l *history, e *coordination.InterceptorStatus, n int) { e.CompletionTime = l.near(n) }),
	entryChange(func(l *history, e *coordination.InterceptorStatus, n int) { e.ExpectedFinishTime = l.near(n) }),
	entryChange(func(_ *history, e *coordination.InterceptorStatus, _ int) { e.StartTime = nil }),
	entryChange(func(_ *history, e *coordination.InterceptorStatus, _ int) { e.HeartbeatTime = nil }),
	entryChange(func(_ *history, e *coordination.InterceptorStatus, _ int) { e.CompletionTime = nil }),
	entryChange(func(_ *history, e *coordination.InterceptorStatus, n int) { e.Message = strings.Repeat("x", n) }),
	entryChange(func(_ *history, e *coordination.InterceptorStatus, n int) { e.Retries += int32(n - 128) }),
	// The final conditions.
	func(_ *history, s *coordination.EvictionRequestStatus, _ int) { s.Conditions = nil },
	func(l *history, s *coordination.EvictionRequestStatus, n int) {
		l.setCondition(s, "Canceled", anyValue(n))
	},
	func(l *history, s *coordination.EvictionRequestStatus, n int) {
		l.setCondition(s, "Evicted", anyValue(n))
	},
	func(_ *history, s *coordination.EvictionRequestStatus, n int) {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: "Evicted", Status: anyValue(n), Reason: "Again", LastTransitionTime: metav1.Time{Time: noon}})
	},
	// Other fields.
	func(_ *history, s *coordination.EvictionRequestStatus, n int) { s.ObservedGeneration += int64(n - 128) },
	func(_ *history, s *coordination.EvictionRequestStatus, n int) {
		s.EvictionRequestCancellationPolicy = []coordination.EvictionRequestCancellationPolicy{"", "Allow", "Forbid", "Maybe"}[n%4]
	},
}

// entryChange returns a change of the entry of one interceptor.
func entryChange(change func(l *history, entry *coordination.InterceptorStatus, n int)) func(*history, *coordination.EvictionRequestStatus, int) {
	return func(l *history, status *coordination.EvictionRequestStatus, n int) {
		if len(status.Interceptors) > 0 {
			change(l, &status.Interceptors[n%len(status.Interceptors)], n)
		}
	}
}

func anyName(n int) string {
	names := append(numbered(4), imperativeName, "stranger.example.com", "")
	return names[n%len(names)]
}

func anyValue(n int) metav1.ConditionStatus {
	return []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}[n%3]
}

// brokenInvariants returns the invariants that an update breaks. Its implementation is independent
// of the validation.
func brokenInvariants(before *coordination.EvictionRequest, after *coordination.EvictionRequestStatus, now time.Time) []string {
	var broken []string
	for _, invariant := range []struct {
		name  string
		holds bool
	}{
		{"targets are immutable", targetsImmutable(&before.Status, after)},
		{"at most one is active", len(after.ActiveInterceptors) <= 1},
		{"the active one is the first that is not processed", activeIsNext(after)},
		{"processed is a prefix that grows by the previously active one", processedGrows(&before.Status, after)},
		{"deactivated only if completed, timed out or finished", deactivatedForAReason(before, after, now)},
		{"an activation has its activationTime", activationHasTime(&before.Status, after, now)},
		{"only the active one reports", onlyActiveReports(&before.Status, after)},
		{"only interceptors that were active complete", completedWereActive(after)},
		{"reports are monotonic", reportsMonotonic(&before.Status, after, now)},
		{"final conditions are final", finalConditionsKept(&before.Status, after)},
		{"the observed generation is valid", after.ObservedGeneration >= before.Status.ObservedGeneration && after.ObservedGeneration <= before.Generation},
		{"the policy is set by the active one", policySetByActive(&before.Status, after)},
	} {
		if !invariant.holds {
			broken = append(broken, invariant.name)
		}
	}
	return broken
}

func targetsImmutable(before, after *coordination.EvictionRequestStatus) bool {
	targets := after.TargetInterceptors
	if len(before.TargetInterceptors) > 0 && !slices.Equal(before.TargetInterceptors, targets) {
		return false
	}
	for i, target := range targets {
		if target.Name == "" || (target.Name == imperativeName) != (i == len(targets)-1) || slices.Contains(targets[:i], target) {
			return false
		}
	}
	return len(targets) == len(after.Interceptors)
}

func activeIsNext(after *coordination.EvictionRequestStatus) bool {
	had := len(after.ProcessedInterceptors)
	return len(after.ActiveInterceptors) == 0 ||
		had < len(after.TargetInterceptors) && after.TargetInterceptors[had].Name == after.ActiveInterceptors[0]
}

func processedGrows(before, after *coordination.EvictionRequestStatus) bool {
	had := after.ProcessedInterceptors
	for i, name := range had {
		if i >= len(after.TargetInterceptors) || after.TargetInterceptors[i].Name != name {
			return false
		}
	}
	if len(had) == len(before.ProcessedInterceptors) {
		return true
	}
	return len(had) == len(before.ProcessedInterceptors)+1 && len(before.ActiveInterceptors) == 1 &&
		had[len(had)-1] == before.ActiveInterceptors[0] && !slices.Contains(after.ActiveInterceptors, had[len(had)-1])
}

func deactivatedForAReason(before *coordination.EvictionRequest, after *coordination.EvictionRequestStatus, now time.Time) bool {
	if len(before.Status.ActiveInterceptors) == 0 || slices.Equal(before.Status.ActiveInterceptors, after.ActiveInterceptors) || ended(after) {
		return true
	}
	for i, entry := range after.Interceptors {
		if entry.Name != before.Status.ActiveInterceptors[0] {
			continue
		}
		last := i == len(after.Interceptors)-1
		if entry.CompletionTime != nil {
			return last || len(after.ActiveInterceptors) == 1
		}
		silentSince := before.Status.ActivationTime.Time
		if entry.HeartbeatTime != nil && entry.HeartbeatTime.After(silentSince) {
			silentSince = entry.HeartbeatTime.Time
		}
		return !last && now.Sub(silentSince) >= 110*time.Second && len(after.ActiveInterceptors) == 1
	}
	return false
}

func activationHasTime(before, after *coordination.EvictionRequestStatus, now time.Time) bool {
	if len(after.ActiveInterceptors) == 0 || slices.Equal(before.ActiveInterceptors, after.ActiveInterceptors) {
		return sameTime(before.ActivationTime, after.ActivationTime)
	}
	return isPresent(after.ActivationTime, now)
}

func onlyActiveReports(before, after *coordination.EvictionRequestStatus) bool {
	for i, entry := range after.Interceptors {
		old := coordination.InterceptorStatus{Name: after.TargetInterceptors[i].Name}
		if len(before.Interceptors) > 0 {
			old = before.Interceptors[i]
		}
		if entry.Name != old.Name {
			return false
		}
		mayReport := len(before.ActiveInterceptors) == 1 && before.ActiveInterceptors[0] == entry.Name && old.CompletionTime == nil && !ended(before)
		if !mayReport && !sameReport(old, entry) {
			return false
		}
	}
	return true
}

func completedWereActive(after *coordination.EvictionRequestStatus) bool {
	for _, entry := range after.Interceptors {
		hadTurn := slices.Contains(after.ProcessedInterceptors, entry.Name) || slices.Contains(after.ActiveInterceptors, entry.Name)
		if entry.CompletionTime != nil && !hadTurn {
			return false
		}
		if (entry.StartTime == nil) != (entry.HeartbeatTime == nil) {
			return false
		}
	}
	return true
}

func reportsMonotonic(before, after *coordination.EvictionRequestStatus, now time.Time) bool {
	for i, old := range before.Interceptors {
		entry := after.Interceptors[i]
		for _, once := range []struct{ old, new *metav1.Time }{{old.StartTime, entry.StartTime}, {old.CompletionTime, entry.CompletionTime}} {
			if !sameTime(once.old, once.new) && (once.old != nil || !isPresent(once.new, now)) {
				return false
			}
		}
		if !sameTime(old.HeartbeatTime, entry.HeartbeatTime) {
			switch {
			case entry.HeartbeatTime == nil, entry.HeartbeatTime.Unix() > now.Unix()+10:
				return false
			case old.HeartbeatTime == nil && !isPresent(entry.HeartbeatTime, now):
				return false
			case old.HeartbeatTime != nil && entry.HeartbeatTime.Unix()-old.HeartbeatTime.Unix() < 60 && entry.CompletionTime == nil:
				return false
			case old.HeartbeatTime != nil && entry.HeartbeatTime.Unix() < old.HeartbeatTime.Unix():
				return false
			}
		}
		if finish := entry.ExpectedFinishTime; finish != nil && !sameTime(old.ExpectedFinishTime, finish) && finish.Unix() < now.Unix() {
			return false
		}
		if entry.Retries < old.Retries || entry.Retries > 0 && entry.Name != imperativeName {
			return false
		}
	}
	return true
}

func finalConditionsKept(before, after *coordination.EvictionRequestStatus) bool {
	value := func(status *coordination.EvictionRequestStatus, conditionType string) (values []metav1.ConditionStatus) {
		for _, condition := range status.Conditions {
			if condition.Type == conditionType {
				values = append(values, condition.Status)
			}
		}
		return values
	}
	isTrue := []metav1.ConditionStatus{metav1.ConditionTrue}
	canceled, evicted := slices.Equal(value(after, "Canceled"), isTrue), slices.Equal(value(after, "Evicted"), isTrue)
	wasCanceled, wasEvicted := slices.Equal(value(before, "Canceled"), isTrue), slices.Equal(value(before, "Evicted"), isTrue)
	switch {
	case canceled && evicted, len(value(after, "Canceled")) > 1, len(value(after, "Evicted")) > 1:
		return false
	case wasCanceled && !canceled, wasEvicted && !evicted:
		return false
	case (canceled || evicted) && len(after.ActiveInterceptors) > 0:
		return false
	case !wasCanceled && !wasEvicted:
		return true
	}
	return slices.Equal(before.TargetInterceptors, after.TargetInterceptors) && slices.Equal(before.ProcessedInterceptors, after.ProcessedInterceptors) &&
		slices.EqualFunc(before.Interceptors, after.Interceptors, sameReport) && sameTime(before.ActivationTime, after.ActivationTime) &&
		before.EvictionRequestCancellationPolicy == after.EvictionRequestCancellationPolicy
}

func policySetByActive(before, after *coordination.EvictionRequestStatus) bool {
	switch after.EvictionRequestCancellationPolicy {
	case before.EvictionRequestCancellationPolicy:
		return true
	case "", "Allow", "Forbid":
		return before.EvictionRequestCancellationPolicy != "Forbid" && len(before.ActiveInterceptors) == 1 && !ended(after)
	}
	return false
}

func sameReport(a, b coordination.InterceptorStatus) bool {
	return a.Name == b.Name && a.Message == b.Message && a.Retries == b.Retries && sameTime(a.StartTime, b.StartTime) && sameTime(a.HeartbeatTime, b.HeartbeatTime) &&
		sameTime(a.ExpectedFinishTime, b.ExpectedFinishTime) && sameTime(a.CompletionTime, b.CompletionTime)
}

func sameTime(a, b *metav1.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Unix() == b.Unix()
}

// isPresent reports whether a time is within 10 seconds of now.
func isPresent(value *metav1.Time, now time.Time) bool {
	return value != nil && value.Unix() >= now.Unix()-10 && value.Unix() <= now.Unix()+10
}
