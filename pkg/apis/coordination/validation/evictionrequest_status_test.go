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

package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/utils/ptr"
)

const (
	first      = "first.example.com"
	second     = "second.example.com"
	imperative = "imperative-eviction.k8s.io"
)

// noon is the activationTime of the stored requests.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// at returns the time that many seconds after noon.
func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
}

// status changes a status.
type status func(*coordination.EvictionRequestStatus)

// stored returns a stored request that was created an hour before noon and has a heartbeat deadline
// of 120 seconds.
func stored(changes ...status) *coordination.EvictionRequest {
	request := newEvictionRequest()
	request.CreationTimestamp = *at(-3600)
	request.Generation = 3
	request.Spec.HeartbeatDeadlineSeconds = ptr.To[int32](120)
	for _, change := range changes {
		change(&request.Status)
	}
	return request
}

func initialized(names ...string) status {
	return func(s *coordination.EvictionRequestStatus) {
		for _, name := range names {
			s.TargetInterceptors = append(s.TargetInterceptors, coordination.Interceptor{Name: name})
			s.Interceptors = append(s.Interceptors, coordination.InterceptorStatus{Name: name})
		}
	}
}

// active sets the active interceptor, if any.
func active(names ...string) status {
	return func(s *coordination.EvictionRequestStatus) { s.ActiveInterceptors = names }
}

func processed(names ...string) status {
	return func(s *coordination.EvictionRequestStatus) { s.ProcessedInterceptors = names }
}

func activatedAt(time *metav1.Time) status {
	return func(s *coordination.EvictionRequestStatus) { s.ActivationTime = time }
}

// entry changes the entry of one interceptor.
func entry(name string, change func(*coordination.InterceptorStatus)) status {
	return func(s *coordination.EvictionRequestStatus) { change(coordination.InterceptorStatusOf(s, name)) }
}

func startedAt(name string, seconds int) status {
	return entry(name, func(e *coordination.InterceptorStatus) { e.StartTime, e.HeartbeatTime = at(seconds), at(seconds) })
}

func heartbeatAt(name string, seconds int) status {
	return entry(name, func(e *coordination.InterceptorStatus) { e.HeartbeatTime = at(seconds) })
}

func completedAt(name string, seconds int) status {
	return entry(name, func(e *coordination.InterceptorStatus) { e.CompletionTime = at(seconds) })
}

func finishExpectedAt(name string, seconds int) status {
	return entry(name, func(e *coordination.InterceptorStatus) { e.ExpectedFinishTime = at(seconds) })
}

func withMessage(name, message string) status {
	return entry(name, func(e *coordination.InterceptorStatus) { e.Message = message })
}

func retried(name string, retries int32) status {
	return entry(name, func(e *coordination.InterceptorStatus) { e.Retries = retries })
}

func observed(generation int64) status {
	return func(s *coordination.EvictionRequestStatus) { s.ObservedGeneration = generation }
}

func policy(policy coordination.EvictionRequestCancellationPolicy) status {
	return func(s *coordination.EvictionRequestStatus) { s.EvictionRequestCancellationPolicy = policy }
}

// condition sets a condition, or removes it if the value is empty.
func condition(conditionType string, value metav1.ConditionStatus) status {
	return func(s *coordination.EvictionRequestStatus) {
		s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c metav1.Condition) bool { return c.Type == conditionType })
		if value != "" {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: conditionType, Status: value, Reason: "Reason", LastTransitionTime: *at(0)})
		}
	}
}

var (
	canceled = condition("Canceled", metav1.ConditionTrue)
	evicted  = condition("Evicted", metav1.ConditionTrue)
	skipped  = condition("InterceptorsSkipped", metav1.ConditionTrue)
)

// all combines several changes.
func all(changes ...status) status {
	return func(s *coordination.EvictionRequestStatus) {
		for _, change := range changes {
			change(s)
		}
	}
}

// Stored statuses, in the order of the processing of a request.
var (
	firstActive    = all(initialized(first, second, imperative), active(first), activatedAt(at(0)))
	firstStarted   = all(firstActive, startedAt(first, 0))
	firstCompleted = all(firstStarted, completedAt(first, 1))
	secondActive   = all(firstCompleted, active(second), processed(first))
	secondStarted  = all(secondActive, startedAt(second, 0))
	lastActive     = all(secondStarted, completedAt(second, 1), active(imperative), processed(first, second))
	lastStarted    = all(lastActive, startedAt(imperative, 0), retried(imperative, 1))
	lastCompleted  = all(lastStarted, completedAt(imperative, 1))
	exhausted      = all(lastCompleted, active(), processed(first, second, imperative))
	firstCanceled  = all(firstStarted, active(), processed(first), canceled)
)

// statusTest is an update of a stored status.
type statusTest struct {
	old, change status
	// now is the time of the server, in seconds after noon.
	now  float64
	want field.ErrorList
}

func runStatusTests(t *testing.T, tests map[string]statusTest) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old := stored(test.old)
			request := old.DeepCopy()
			test.change(&request.Status)
			now := noon.Add(time.Duration(test.now * float64(time.Second)))
			matcher.Test(t, test.want, ValidateEvictionRequestStatusUpdate(request, old, now))
		})
	}
}

func invalid(path *field.Path, detail string) field.ErrorList {
	return field.ErrorList{field.Invalid(path, nil, detail)}
}

func forbidden(path *field.Path, detail string) field.ErrorList {
	return field.ErrorList{field.Forbidden(path, detail)}
}

func required(path *field.Path, detail string) field.ErrorList {
	return field.ErrorList{field.Required(path, detail)}
}

var (
	pending          = all()
	observedPath     = statusPath.Child("observedGeneration")
	conditionsPath   = statusPath.Child("conditions")
	targetsPath      = statusPath.Child("targetInterceptors")
	activePath       = statusPath.Child("activeInterceptors")
	processedPath    = statusPath.Child("processedInterceptors")
	activationPath   = statusPath.Child("activationTime")
	policyPath       = statusPath.Child("evictionRequestCancellationPolicy")
	interceptorsPath = statusPath.Child("interceptors")
)

// Valid updates of the controller and of interceptors are accepted.
func TestValidStatusUpdates(t *testing.T) {
	completeLast := all(startedAt(imperative, 5), completedAt(imperative, 5))
	runStatusTests(t, map[string]statusTest{
		"nothing":                                {old: firstStarted, change: all()},
		"initialized and activated":              {old: pending, change: all(firstActive, observed(3))},
		"initialized only":                       {old: pending, change: initialized(first, imperative)},
		"initialized with the last only":         {old: pending, change: all(initialized(imperative), active(imperative), activatedAt(at(0)))},
		"initialized with names of Kubernetes":   {old: pending, change: initialized("statefulset.apps.k8s.io", "kubelet.k8s.io", imperative)},
		"activated later":                        {old: initialized(first, imperative), change: all(active(first), activatedAt(at(0)))},
		"canceled before it was initialized":     {old: pending, change: canceled},
		"evicted before it was initialized":      {old: pending, change: evicted},
		"started":                                {old: firstActive, change: all(startedAt(first, 3), finishExpectedAt(first, 900), withMessage(first, "draining connections")), now: 3},
		"a message before the start":             {old: firstActive, change: withMessage(first, "soon")},
		"heartbeat":                              {old: firstStarted, change: all(heartbeatAt(first, 90), withMessage(first, "still draining connections")), now: 90},
		"a message without a heartbeat":          {old: firstStarted, change: withMessage(first, "still draining connections"), now: 90},
		"late heartbeat":                         {old: firstStarted, change: heartbeatAt(first, 60), now: 110},
		"completed":                              {old: firstStarted, change: all(heartbeatAt(first, 30), completedAt(first, 30)), now: 30},
		"declined: started and completed in one": {old: firstActive, change: all(startedAt(first, 3), completedAt(first, 3)), now: 3},
		"the next is activated":                  {old: firstCompleted, change: all(active(second), processed(first), activatedAt(at(2))), now: 2},
		"completed, and the next is activated":   {old: firstStarted, change: all(completedAt(first, 2), active(second), processed(first), activatedAt(at(2))), now: 2},
		"activated in the same second":           {old: firstCompleted, change: all(active(second), processed(first))},
		"the last is activated":                  {old: all(secondStarted, completedAt(second, 1)), change: all(active(imperative), processed(first, second), activatedAt(at(2))), now: 2},
		"a refused eviction":                     {old: lastActive, change: all(startedAt(imperative, 5), retried(imperative, 1), condition("Blocked", metav1.ConditionTrue)), now: 5},
		"an early retry":                         {old: lastStarted, change: all(retried(imperative, 2), withMessage(imperative, "2")), now: 5},
		"the last declines":                      {old: lastActive, change: all(completeLast, withMessage(imperative, "Not evicted")), now: 5},
		"the end of the list":                    {old: lastCompleted, change: all(active(), processed(first, second, imperative)), now: 5},
		"evicted while the first is active":      {old: firstStarted, change: all(active(), processed(first), evicted)},
		"evicted while the last is active":       {old: lastActive, change: all(completeLast, active(), processed(first, second, imperative), evicted), now: 5},
		"evicted at the end of the list":         {old: exhausted, change: evicted},
		"canceled while the first is active":     {old: firstActive, change: all(active(), processed(first), canceled)},
		"canceled when the active has completed": {old: firstCompleted, change: all(active(), processed(first), canceled)},
		"canceled while it completes":            {old: firstStarted, change: all(completedAt(first, 5), active(), processed(first), canceled), now: 5},
		"canceled while blocked":                 {old: all(lastStarted, condition("Blocked", metav1.ConditionTrue)), change: all(completedAt(imperative, 5), condition("Blocked", metav1.ConditionFalse), active(), processed(first, second, imperative), canceled), now: 5},
		"a condition when finished":              {old: firstCanceled, change: condition("Example", metav1.ConditionTrue)},
		"a generation observed when finished":    {old: firstCanceled, change: observed(3)},
	})
}

// A stored object that is invalid can be updated if the update does not change the invalid part.
func TestStatusUpdatesOfInvalidObjects(t *testing.T) {
	invalidCondition := func(s *coordination.EvictionRequestStatus) {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: "Odd", Status: "Maybe"})
	}
	bothFinal := all(firstCanceled, evicted)
	noEntries := func(s *coordination.EvictionRequestStatus) { s.Interceptors = nil }
	invalidStatus := all(invalidCondition, observed(9), initialized("not-fully-qualified", "other.k8s.io"), active("other.k8s.io"), processed("stranger"),
		finishExpectedAt("other.k8s.io", -900), retried("other.k8s.io", 7), policy("Maybe"))
	runStatusTests(t, map[string]statusTest{
		"a message":                       {old: invalidStatus, change: withMessage("other.k8s.io", "draining connections")},
		"a condition":                     {old: invalidStatus, change: condition("Example", metav1.ConditionTrue)},
		"evicted":                         {old: invalidStatus, change: all(active(), processed("stranger", "other.k8s.io"), evicted)},
		"an ETA that has passed":          {old: all(firstStarted, finishExpectedAt(first, 10)), change: heartbeatAt(first, 60), now: 60},
		"canceled and evicted":            {old: bothFinal, change: condition("Example", metav1.ConditionTrue)},
		"active when finished":            {old: all(firstStarted, canceled), change: condition("Example", metav1.ConditionTrue)},
		"active when finished, corrected": {old: all(firstStarted, canceled), change: all(active(), processed(first))},
		"no entries":                      {old: all(firstActive, noEntries), change: observed(3)},
		"no entries, corrected": {old: all(firstActive, noEntries), change: func(s *coordination.EvictionRequestStatus) {
			initialized(first, second, imperative)(s)
			s.TargetInterceptors = s.TargetInterceptors[:3]
		}},
		"no entries, timed out":       {old: all(firstActive, noEntries), change: all(active(second), processed(first), activatedAt(at(110))), now: 110},
		"started without a heartbeat": {old: all(firstActive, entry(first, func(e *coordination.InterceptorStatus) { e.StartTime = at(0) })), change: heartbeatAt(first, 60), now: 60},
		"a heartbeat without a start": {old: all(firstActive, heartbeatAt(first, 0)), change: heartbeatAt(first, 60), now: 60},
		"the last of the list has timed out": {
			old:    all(initialized(first), active(first), activatedAt(at(0))),
			change: all(active(), processed(first)), now: 110,
		},
	})
}

func TestObservedGeneration(t *testing.T) {
	runStatusTests(t, map[string]statusTest{
		"grows":                  {old: observed(1), change: observed(2)},
		"is the generation":      {old: observed(1), change: observed(3)},
		"exceeds the generation": {old: observed(1), change: observed(4), want: invalid(observedPath, "must not be greater than metadata.generation, which is 3")},
		"decreases":              {old: observed(2), change: observed(1), want: invalid(observedPath, "must not be less than the current value, 2")},
		"is negative":            {old: pending, change: observed(-1), want: invalid(observedPath, "must not be less than the current value, 0")},
	})
}

func TestConditions(t *testing.T) {
	having := func(change func(*metav1.Condition)) status {
		return func(s *coordination.EvictionRequestStatus) {
			condition("Example", metav1.ConditionTrue)(s)
			change(&s.Conditions[len(s.Conditions)-1])
		}
	}
	path := conditionsPath.Index(0)
	runStatusTests(t, map[string]statusTest{
		"the longest message":        {old: pending, change: having(func(c *metav1.Condition) { c.Message = strings.Repeat("x", 32768) })},
		"a message that is too long": {old: pending, change: having(func(c *metav1.Condition) { c.Message = strings.Repeat("x", 32769) }), want: field.ErrorList{field.TooLong(path.Child("message"), "", 32768)}},
		"no reason":                  {old: pending, change: having(func(c *metav1.Condition) { c.Reason = "" }), want: required(path.Child("reason"), "")},
		"an unknown value": {
			old: condition("Example", metav1.ConditionTrue), change: having(func(c *metav1.Condition) { c.Status = "Maybe" }),
			want: field.ErrorList{field.NotSupported(path.Child("status"), "Maybe", []string{"False", "True", "Unknown"})},
		},
	})
}

// The number of foreign conditions is limited. If too many are stored, only updates that add one
// are rejected.
func TestForeignConditions(t *testing.T) {
	having := func(count int) status {
		return func(s *coordination.EvictionRequestStatus) {
			for i := range count {
				condition(fmt.Sprintf("Example%d", i), metav1.ConditionTrue)(s)
			}
		}
	}
	another := condition("Another", metav1.ConditionTrue)
	tooMany := forbidden(conditionsPath, "must not have more than 100 conditions besides Blocked, Canceled, Evicted, InterceptorUnresponsive, InterceptorsSkipped, Reconciling, Stalled")
	runStatusTests(t, map[string]statusTest{
		"the maximum number":         {old: pending, change: having(100)},
		"in addition to a final one": {old: having(100), change: evicted},
		"in addition to all of ours": {old: having(100), change: all(evicted, condition("Canceled", metav1.ConditionFalse), condition("Blocked", metav1.ConditionFalse),
			condition("InterceptorUnresponsive", metav1.ConditionFalse), skipped)},
		"one too many":            {old: having(100), change: another, want: tooMany},
		"too many already stored": {old: having(101), change: evicted},
		"too many, one added":     {old: having(101), change: another, want: tooMany},
		"too many, one replaced":  {old: having(101), change: all(condition("Example7", ""), another)},
		"too many, one removed":   {old: having(102), change: condition("Example7", "")},
		"too many, one changed":   {old: having(101), change: condition("Example7", metav1.ConditionFalse)},
	})
}

// The conditions of one interceptor must not make the request too large for etcd.
func TestConditionsOfInterceptors(t *testing.T) {
	having := func(name string, count int, message string) status {
		return func(s *coordination.EvictionRequestStatus) {
			for i := range count {
				condition(fmt.Sprintf("%s/C%d", name, i), metav1.ConditionTrue)(s)
				s.Conditions[len(s.Conditions)-1].Message = message
			}
		}
	}
	const other = "other.example.com"
	long, tooLong := strings.Repeat("x", 1024), strings.Repeat("x", 1025)
	runStatusTests(t, map[string]statusTest{
		"the most":                     {old: firstStarted, change: having(first, 6, long)},
		"one too many":                 {old: all(firstStarted, having(first, 6, "")), change: condition(first+"/Another", metav1.ConditionTrue), want: forbidden(conditionsPath.Index(6), first+" must not have more than 6 conditions")},
		"one instead of another":       {old: all(firstStarted, having(first, 6, "")), change: all(condition(first+"/C0", ""), condition(first+"/Another", metav1.ConditionTrue))},
		"too many stored, one changed": {old: all(firstStarted, having(first, 7, "")), change: condition(first+"/C0", metav1.ConditionFalse)},
		"many of no interceptor":       {old: firstStarted, change: having(other, 7, tooLong)},
		"too long":                     {old: firstStarted, change: having(first, 1, tooLong), want: field.ErrorList{field.TooLong(conditionsPath.Index(0).Child("message"), "", 1024)}},
	})
}

func TestFinalConditions(t *testing.T) {
	stay := func(name string) field.ErrorList {
		return forbidden(conditionsPath, name+" is immutable after the request is finished")
	}
	tests := map[string]statusTest{
		"not canceled yet":                   {old: pending, change: condition("Canceled", metav1.ConditionFalse)},
		"unknown, then canceled":             {old: condition("Canceled", metav1.ConditionUnknown), change: canceled},
		"one True, the other False":          {old: pending, change: all(canceled, condition("Evicted", metav1.ConditionFalse))},
		"both True":                          {old: pending, change: all(canceled, evicted), want: forbidden(conditionsPath, "must not have both")},
		"evicted once canceled":              {old: canceled, change: evicted, want: stay("Evicted")},
		"canceled once evicted":              {old: evicted, change: canceled, want: stay("Canceled")},
		"Evicted set to False once canceled": {old: canceled, change: condition("Evicted", metav1.ConditionFalse), want: stay("Evicted")},
		"Canceled replaced by Evicted":       {old: canceled, change: all(condition("Canceled", ""), evicted), want: append(stay("Canceled"), stay("Evicted")...)},
		"an active interceptor left":         {old: firstStarted, change: canceled, want: invalid(activePath, "must be empty, because the request is finished")},
		"another message": {old: evicted, change: func(s *coordination.EvictionRequestStatus) { s.Conditions[0].Message = "other" },
			want: stay("Evicted")},
		"another time": {old: evicted, change: func(s *coordination.EvictionRequestStatus) { s.Conditions[0].LastTransitionTime = *at(1) },
			want: stay("Evicted")},
	}
	for _, name := range finalConditions {
		final := condition(name, metav1.ConditionTrue)
		tests[name+" removed"] = statusTest{old: final, change: condition(name, ""), want: stay(name)}
		tests[name+" becomes False"] = statusTest{old: final, change: condition(name, metav1.ConditionFalse), want: stay(name)}
		tests[name+" becomes Unknown"] = statusTest{old: final, change: condition(name, metav1.ConditionUnknown), want: stay(name)}
	}
	runStatusTests(t, tests)
}

// What the API server has written when it created the request does not bind a controller that initializes
// it, as long as nothing has come of it.
func TestUntouchedStatus(t *testing.T) {
	untouched := all(initialized(imperative), active(imperative), activatedAt(at(0)))
	reset := func(s *coordination.EvictionRequestStatus) { *s = coordination.EvictionRequestStatus{} }
	again := all(reset, initialized(first, imperative), active(first), activatedAt(at(0)))
	fixed := invalid(targetsPath, "is immutable once set")
	tests := map[string]statusTest{
		"other interceptors":                     {old: untouched, change: again},
		"other interceptors, none active":        {old: untouched, change: all(reset, initialized(first, imperative))},
		"the same, completed":                    {old: untouched, change: completedAt(imperative, 0)},
		"other interceptors, the last activated": {old: untouched, change: all(reset, initialized(first, imperative), active(imperative), activatedAt(at(0))), want: anyError},
		"none":                                   {old: untouched, change: reset, want: anyError},
		"started":                                {old: all(untouched, startedAt(imperative, 0)), change: again, want: anyError},
		"blocked":                                {old: all(untouched, condition("Blocked", metav1.ConditionTrue)), change: again, want: anyError},
		"not active any more":                    {old: all(initialized(imperative), activatedAt(at(0))), change: again, want: fixed},
		"of others":                              {old: all(initialized(first, imperative), active(first), activatedAt(at(0))), change: all(reset, initialized(second, imperative), active(second), activatedAt(at(0))), want: anyError},
		"that can no longer be canceled": {old: all(untouched, func(s *coordination.EvictionRequestStatus) {
			s.EvictionRequestCancellationPolicy = coordination.EvictionRequestCancellationPolicyForbid
		}), change: again, want: anyError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old := stored(test.old)
			request := old.DeepCopy()
			test.change(&request.Status)
			if errs := ValidateEvictionRequestStatusUpdate(request, old, noon); (len(errs) > 0) != (len(test.want) > 0) {
				t.Errorf("got %v", errs)
			}
		})
	}
}

// anyError says that there is one, or several.
var anyError = field.ErrorList{field.Invalid(nil, nil, "")}

func TestTargetInterceptors(t *testing.T) {
	name := func(i int) *field.Path { return targetsPath.Index(i).Child("name") }
	cleared := func(s *coordination.EvictionRequestStatus) { s.TargetInterceptors = nil }
	runStatusTests(t, map[string]statusTest{
		"without a name, left to declarative validation": {old: pending, change: initialized("", imperative)},
		"without the last":      {old: pending, change: initialized(first), want: invalid(name(0), "the last interceptor must be imperative-eviction.k8s.io: append it")},
		"the last is too early": {old: pending, change: initialized(imperative, first), want: append(invalid(name(0), "must be the last"), invalid(name(1), "the last interceptor must be")...)},
		"no domain name":        {old: pending, change: initialized("first", imperative), want: invalid(name(0), "at least two segments")},
		"a reserved name":       {old: pending, change: initialized("other.k8s.io", imperative), want: invalid(name(0), "names that end in .k8s.io are reserved")},
		"without entries":       {old: pending, change: all(initialized(imperative), func(s *coordination.EvictionRequestStatus) { s.Interceptors = nil }), want: required(interceptorsPath, "must be set together with targetInterceptors")},
		"one more": {old: firstActive, change: func(s *coordination.EvictionRequestStatus) {
			s.TargetInterceptors = append(s.TargetInterceptors, coordination.Interceptor{Name: "more.example.com"})
		}, want: invalid(targetsPath, "is immutable once set")},
		"another order":             {old: firstActive, change: func(s *coordination.EvictionRequestStatus) { slices.Reverse(s.TargetInterceptors) }, want: invalid(targetsPath, "is immutable once set")},
		"cleared":                   {old: firstActive, change: cleared, want: invalid(targetsPath, `keep ["first.example.com" "second.example.com" "imperative-eviction.k8s.io"]`)},
		"another name":              {old: firstActive, change: func(s *coordination.EvictionRequestStatus) { s.TargetInterceptors[1].Name = "other.example.com" }, want: invalid(targetsPath, "is immutable once set")},
		"set on a finished request": {old: canceled, change: initialized(imperative), want: append(invalid(targetsPath, "must stay empty, because the request is finished"), forbidden(interceptorsPath, "must stay empty, because the request is finished")...)},
	})
}

func TestActiveInterceptors(t *testing.T) {
	next := func(name string, had ...string) status {
		return all(active(name), processed(had...), activatedAt(at(2)))
	}
	must := func(name string) field.ErrorList {
		return invalid(activePath, `must be "`+name+`", the next interceptor of targetInterceptors`)
	}
	keeps := func(name string) field.ErrorList {
		return invalid(activePath, name+" must stay active until it completes")
	}
	runStatusTests(t, map[string]statusTest{
		"two, left to declarative validation": {old: initialized(first, imperative), change: all(active(first, imperative), activatedAt(at(2))), now: 2},
		"not initialized":                     {old: pending, change: next(first), want: invalid(activePath, "must be empty, because all targetInterceptors are processed"), now: 2},
		"not the first":                       {old: initialized(first, second, imperative), change: next(second), want: must(first), now: 2},
		"not in the list":                     {old: initialized(first, imperative), change: next("other.example.com"), want: must(first), now: 2},
		"no name":                             {old: initialized(first, imperative), change: next(""), want: must(first), now: 2},
		"one skipped":                         {old: firstCompleted, change: next(imperative, first), want: must(second), now: 2},
		"the first again":                     {old: exhausted, change: next(first, first, second, imperative), want: invalid(activePath, "must be empty, because all targetInterceptors are processed"), now: 2},
		"a previous one":                      {old: all(secondStarted, completedAt(second, 1)), change: next(first, first, second), want: must(imperative), now: 2},
		"none although one is left":           {old: firstCompleted, change: all(active(), processed(first)), want: must(second), now: 2},
		"the active one has not completed":    {old: firstStarted, change: next(second, first), want: keeps(first), now: 2},
		"the active one has not started":      {old: firstActive, change: next(second, first), want: keeps(first), now: 2},
		"none while one is active":            {old: firstActive, change: all(active(), processed(first)), want: keeps(first), now: 2},
		"the last has not completed":          {old: lastStarted, change: all(active(), processed(first, second, imperative)), want: keeps(imperative), now: 86400},
		"the last has not started":            {old: lastActive, change: all(active(), processed(first, second, imperative)), want: keeps(imperative), now: 86400},
		"activated on a finished request":     {old: all(initialized(first, imperative), canceled), change: next(first), want: invalid(activePath, "must be empty, because the request is finished"), now: 2},
		"activated in the final write":        {old: initialized(first, imperative), change: all(next(first), evicted), want: invalid(activePath, "must be empty, because the request is finished"), now: 2},
		"next activated in the final write":   {old: firstCompleted, change: all(next(second, first), evicted), want: invalid(activePath, "must be empty, because the request is finished"), now: 2},
	})
}

// The deadline of 120 seconds starts at the latest heartbeat or activation. 10 seconds of clock
// skew are tolerated.
func TestTimeout(t *testing.T) {
	earliest := func(seconds int) status {
		return all(active(second), processed(first), activatedAt(at(seconds)))
	}
	until := func(clock string) field.ErrorList {
		return invalid(activePath, "until 2026-03-01T"+clock+"Z if it sends no heartbeat; the server's time is 2026-03-01T12:")
	}
	tests := map[string]statusTest{
		"a second too early":                    {old: firstActive, change: earliest(109), now: 109, want: until("12:01:50")},
		"a moment too early":                    {old: firstActive, change: earliest(109), now: 109.999, want: until("12:01:50")},
		"in time":                               {old: firstActive, change: earliest(110), now: 110},
		"at the deadline":                       {old: firstActive, change: earliest(120), now: 120},
		"long after":                            {old: firstActive, change: earliest(9999), now: 9999},
		"after a heartbeat, a second too early": {old: all(firstStarted, heartbeatAt(first, 70)), change: earliest(179), now: 179, want: until("12:03:00")},
		"after a heartbeat, in time":            {old: all(firstStarted, heartbeatAt(first, 70)), change: earliest(180), now: 180},
		"an older heartbeat does not count":     {old: all(firstStarted, heartbeatAt(first, -9)), change: earliest(109), now: 109, want: until("12:01:50")},
		"a heartbeat in the same write":         {old: firstStarted, change: all(heartbeatAt(first, 110), earliest(110)), now: 110, want: until("12:03:40")},
		"activated later, a second too early":   {old: all(firstActive, activatedAt(at(100))), change: earliest(209), now: 209, want: until("12:03:30")},
		"never activated, but created long ago": {old: all(firstActive, activatedAt(nil)), change: earliest(0)},
		"none activated although one is left":   {old: firstActive, change: all(active(), processed(first)), now: 110, want: invalid(activePath, `must be "second.example.com"`)},
	}
	runStatusTests(t, tests)

	for seconds, want := range map[int]field.ErrorList{1189: until("12:19:50"), 1190: nil} {
		old := stored(firstActive)
		old.Spec.HeartbeatDeadlineSeconds = nil
		request := old.DeepCopy()
		earliest(seconds)(&request.Status)
		matcher.Test(t, want, ValidateEvictionRequestStatusUpdate(request, old, at(seconds).Time))
	}
	for seconds, want := range map[int]field.ErrorList{109: until("12:01:50"), 110: nil} {
		old := stored(firstActive, activatedAt(nil))
		old.CreationTimestamp = *at(0)
		request := old.DeepCopy()
		earliest(seconds)(&request.Status)
		matcher.Test(t, want, ValidateEvictionRequestStatusUpdate(request, old, at(seconds).Time))
	}
}

func TestProcessedInterceptors(t *testing.T) {
	must := invalid(processedPath, "append only the interceptor that is removed from activeInterceptors")
	runStatusTests(t, map[string]statusTest{
		"at the first activation":     {old: pending, change: all(initialized(first, imperative), active(first), activatedAt(at(0)), processed(first)), want: must},
		"skipping at the first write": {old: pending, change: all(initialized(first, imperative), active(imperative), activatedAt(at(0)), processed(first)), want: append(must, invalid(activePath, `must be "first.example.com"`)...)},
		"while active":                {old: firstStarted, change: processed(first), want: must},
		"not appended":                {old: firstCompleted, change: all(active(second), activatedAt(at(0))), want: must},
		"another appended":            {old: firstCompleted, change: all(active(second), activatedAt(at(0)), processed(second)), want: must},
		"one more appended":           {old: firstCompleted, change: all(active(second), activatedAt(at(0)), processed(first, second)), want: must},
		"not appended at the end":     {old: firstStarted, change: all(active(), canceled), want: must},
		"cleared":                     {old: secondActive, change: processed(), want: must},
		"shortened":                   {old: exhausted, change: processed(first, second), want: must},
		"reordered":                   {old: exhausted, change: processed(second, first, imperative), want: must},
		"appended when finished":      {old: firstCanceled, change: processed(first, second), want: must},
	})
}

// Once the stored condition InterceptorsSkipped is True, the controller passes over interceptors, and
// names them as processed. An update that sets the condition may not do that itself: whoever sets it
// is not the one who activates.
func TestSkippedInterceptors(t *testing.T) {
	pass := func(name string, had ...string) status {
		return all(active(name), processed(had...), activatedAt(at(2)))
	}
	keeps := func(name string) field.ErrorList {
		return invalid(activePath, name+" must stay active until it completes")
	}
	stays := forbidden(conditionsPath, "InterceptorsSkipped must stay True: keep it")
	one := all(initialized(first, imperative), active(first), activatedAt(at(0)), skipped)
	other := func(change func(*metav1.Condition)) status {
		return func(s *coordination.EvictionRequestStatus) {
			s.Conditions = slices.Clone(s.Conditions)
			change(&s.Conditions[len(s.Conditions)-1])
		}
	}
	runStatusTests(t, map[string]statusTest{
		"set":                                  {old: firstStarted, change: skipped},
		"set before there are interceptors":    {old: pending, change: skipped},
		"set on a finished request":            {old: firstCanceled, change: skipped},
		"set to False":                         {old: firstStarted, change: condition("InterceptorsSkipped", metav1.ConditionFalse)},
		"set after it was False":               {old: all(firstStarted, condition("InterceptorsSkipped", metav1.ConditionFalse)), change: skipped},
		"another message":                      {old: all(firstStarted, skipped), change: other(func(c *metav1.Condition) { c.Message = "other" })},
		"removed":                              {old: all(firstStarted, skipped), change: condition("InterceptorsSkipped", ""), want: stays},
		"False":                                {old: all(firstStarted, skipped), change: condition("InterceptorsSkipped", metav1.ConditionFalse), want: stays},
		"Unknown":                              {old: all(firstStarted, skipped), change: condition("InterceptorsSkipped", metav1.ConditionUnknown), want: stays},
		"removed when finished":                {old: all(firstCanceled, skipped), change: condition("InterceptorsSkipped", ""), want: stays},
		"the next is activated early":          {old: all(firstStarted, skipped), change: pass(second, first), now: 2},
		"the last is activated":                {old: all(firstStarted, skipped), change: pass(imperative, first, second), now: 2},
		"the last of two is activated":         {old: one, change: pass(imperative, first), now: 2},
		"the last after a completion":          {old: all(firstCompleted, skipped), change: pass(imperative, first, second), now: 2},
		"a later one, when none is active":     {old: all(initialized(first, second, imperative), skipped), change: pass(second, first), now: 2},
		"in the update that sets it":           {old: firstStarted, change: all(skipped, pass(second, first)), now: 2, want: keeps(first)},
		"two in the update that sets it":       {old: firstCompleted, change: all(skipped, pass(imperative, first, second)), now: 2, want: append(invalid(activePath, `must be "second.example.com"`), invalid(processedPath, "append only")...)},
		"while it is False":                    {old: all(firstStarted, condition("InterceptorsSkipped", metav1.ConditionFalse)), change: pass(second, first), now: 2, want: keeps(first)},
		"not named as processed":               {old: all(firstStarted, skipped), change: pass(imperative, first), now: 2, want: invalid(processedPath, `must be ["first.example.com" "second.example.com"]`)},
		"more named as processed":              {old: all(firstStarted, skipped), change: pass(second, first, second), now: 2, want: invalid(processedPath, `must be ["first.example.com"]`)},
		"none of them named":                   {old: all(firstStarted, skipped), change: all(active(imperative), activatedAt(at(2))), now: 2, want: invalid(processedPath, "must be")},
		"none active":                          {old: all(firstStarted, skipped), change: all(active(), processed(first, second, imperative)), now: 2, want: append(invalid(activePath, `must be "second.example.com"`), invalid(processedPath, `must be ["first.example.com"]`)...)},
		"back to the first":                    {old: all(lastActive, skipped), change: pass(first, first, second, imperative), now: 86400, want: append(invalid(activePath, imperative+" must stay active"), invalid(activationPath, "must be within 10s")...)},
		"one that is not in the list":          {old: all(firstStarted, skipped), change: pass("other.example.com", first), now: 2, want: invalid(activePath, `must be "second.example.com"`)},
		"the last does not end":                {old: all(lastActive, skipped), change: all(active(), processed(first, second, imperative)), now: 86400, want: keeps(imperative)},
		"evicted at the same time":             {old: all(firstStarted, skipped), change: all(active(), processed(first), evicted), now: 2},
		"the last has its own time":            {old: all(firstStarted, skipped), change: all(active(imperative), processed(first, second), activatedAt(at(900))), now: 2, want: invalid(activationPath, "must be within 10s")},
		"passed over, but activated no one":    {old: all(firstStarted, skipped), change: processed(first), want: invalid(processedPath, "must be")},
		"a report of one that was passed over": {old: all(firstStarted, skipped, active(imperative), processed(first, second)), change: withMessage(first, "still at work"), want: forbidden(interceptorsPath.Index(0), "must not report while it is not active")},
	})
}

func TestActivationTime(t *testing.T) {
	activate := func(seconds int) status { return all(active(first), activatedAt(at(seconds))) }
	off := func(clock string) field.ErrorList {
		return invalid(activationPath, "must be within 10s of the server's time, which is 2026-03-01T"+clock+"Z")
	}
	must := invalid(activationPath, "must change only when a name is added to activeInterceptors")
	ready := initialized(first, imperative)
	runStatusTests(t, map[string]statusTest{
		"10 seconds ago":                    {old: ready, change: activate(90), now: 100},
		"10 seconds ago, plus a fraction":   {old: ready, change: activate(90), now: 100.999},
		"11 seconds ago":                    {old: ready, change: activate(89), now: 100, want: off("12:01:40")},
		"in 10 seconds":                     {old: ready, change: activate(110), now: 100},
		"in 11 seconds":                     {old: ready, change: activate(111), now: 100, want: off("12:01:40")},
		"in 10 seconds, minus a fraction":   {old: ready, change: activate(110), now: 99.999, want: off("12:01:39")},
		"not set":                           {old: ready, change: active(first), want: required(activationPath, "the server's time is 2026-03-01T12:00:00Z")},
		"not updated":                       {old: firstCompleted, change: all(active(second), processed(first)), now: 11, want: off("12:00:11")},
		"changed alone":                     {old: firstActive, change: activatedAt(at(1)), now: 1, want: must},
		"removed":                           {old: firstActive, change: activatedAt(nil), want: must},
		"set without an active interceptor": {old: ready, change: activatedAt(at(0)), want: must},
		"changed in the final write":        {old: firstActive, change: all(active(), processed(first), activatedAt(at(1)), canceled), now: 1, want: must},
		"changed when finished":             {old: firstCanceled, change: activatedAt(at(1)), now: 1, want: must},
	})
}

func TestCancellationPolicy(t *testing.T) {
	const allow, forbid = coordination.EvictionRequestCancellationPolicyAllow, coordination.EvictionRequestCancellationPolicyForbid
	notActive := invalid(policyPath, "while no interceptor is active")
	final := invalid(policyPath, "must stay \"Forbid\", which is final")
	runStatusTests(t, map[string]statusTest{
		"forbidden by the active interceptor":              {old: firstActive, change: policy(forbid)},
		"allowed by the active interceptor":                {old: firstActive, change: policy(allow)},
		"forbidden after it was allowed":                   {old: all(firstActive, policy(allow)), change: policy(forbid)},
		"removed while allowed":                            {old: all(firstActive, policy(allow)), change: policy("")},
		"allowed again":                                    {old: all(firstActive, policy(forbid)), change: policy(allow), want: final},
		"allowed again by the next":                        {old: all(secondActive, policy(forbid)), change: policy(allow), want: final},
		"removed by the active interceptor":                {old: all(firstActive, policy(forbid)), change: policy(""), want: final},
		"removed by the next interceptor":                  {old: all(secondActive, policy(forbid)), change: policy(""), want: final},
		"allowed with the next activation":                 {old: all(firstCompleted, policy(forbid)), change: all(active(second), processed(first), activatedAt(at(0)), policy(allow)), want: final},
		"forbidden with the completion":                    {old: firstStarted, change: all(completedAt(first, 0), policy(forbid))},
		"unchanged by the next activation":                 {old: all(firstCompleted, policy(forbid)), change: all(active(second), processed(first), activatedAt(at(0)))},
		"forbidden before any is active":                   {old: pending, change: policy(forbid), want: notActive},
		"forbidden with the first activation":              {old: pending, change: all(firstActive, policy(forbid)), want: notActive},
		"allowed at the end of the list":                   {old: all(exhausted, policy(forbid)), change: policy(allow), want: final},
		"changed when finished":                            {old: all(firstCanceled, policy(forbid)), change: policy(allow), want: invalid(policyPath, "must stay \"Forbid\", because the request is finished")},
		"forbidden in the final write":                     {old: firstActive, change: all(active(), processed(first), canceled, policy(forbid)), want: invalid(policyPath, "because the request is finished")},
		"changed when finished with an active interceptor": {old: all(firstActive, canceled), change: policy(forbid), want: invalid(policyPath, "because the request is finished")},
	})
}
