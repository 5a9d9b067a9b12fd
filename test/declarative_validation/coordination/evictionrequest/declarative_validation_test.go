/*
Copyright The Kubernetes Authors.

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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	registry "k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	"k8s.io/kubernetes/test/declarative_validation/coordination/internal/declared"
	"k8s.io/kubernetes/test/declarative_validation/meta"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const (
	resource = "evictionrequests"

	targetUID = "0c1d2e3f-4a5b-4c6d-8e7f-9a0b1c2d3e4f"

	first, imperative = "first.example.com", "imperative-eviction.k8s.io"
)

// now is the time of the server.
var now = metav1.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// statusStrategy returns the strategy of the status endpoint with the time of the server.
func statusStrategy() rest.RESTUpdateStrategy {
	strategy := *registry.StatusStrategy
	strategy.Clock = testingclock.NewFakePassiveClock(now.Time)
	return &strategy
}

// change changes a request.
type change func(*coordination.EvictionRequest)

// newRequest returns a valid stored request with the given changes.
func newRequest(changes ...change) *coordination.EvictionRequest {
	request := &coordination.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: targetUID, ResourceVersion: "1"},
		Spec: coordination.EvictionRequestSpec{
			Target:                   coordination.EvictionTarget{Pod: &coordination.LocalPodReference{Name: "web-0", UID: targetUID}},
			Requesters:               []coordination.Requester{{Name: "drain.example.com"}},
			HeartbeatDeadlineSeconds: ptr.To[int32](1200),
		},
	}
	for _, change := range changes {
		change(request)
	}
	return request
}

func as(changes ...change) []change { return changes }

func evicting(name, uid string) change {
	return func(r *coordination.EvictionRequest) {
		r.Spec.Target.Pod = &coordination.LocalPodReference{Name: name, UID: uid}
	}
}

func withoutTarget(r *coordination.EvictionRequest) { r.Spec.Target.Pod = nil }

// named names the request, which has to be the UID of its target.
func named(name string) change { return func(r *coordination.EvictionRequest) { r.Name = name } }

func requestedBy(names ...string) change {
	return func(r *coordination.EvictionRequest) {
		r.Spec.Requesters = nil
		for _, name := range names {
			r.Spec.Requesters = append(r.Spec.Requesters, coordination.Requester{Name: name})
		}
	}
}

func deadline(seconds int32) change {
	return func(r *coordination.EvictionRequest) { r.Spec.HeartbeatDeadlineSeconds = &seconds }
}

// reserved returns names for which the places beyond the hundredth are.
func reserved(count int) []string {
	names := make([]string, 0, count)
	for i := range count {
		names = append(names, fmt.Sprintf("r-%d.k8s.io", i))
	}
	return names
}

func withoutDeadline(r *coordination.EvictionRequest) { r.Spec.HeartbeatDeadlineSeconds = nil }

// initialized sets the interceptors, none of which has acted.
func initialized(names ...string) change {
	return func(r *coordination.EvictionRequest) {
		for _, name := range names {
			r.Status.TargetInterceptors = append(r.Status.TargetInterceptors, coordination.Interceptor{Name: name})
			r.Status.Interceptors = append(r.Status.Interceptors, coordination.InterceptorStatus{Name: name})
		}
	}
}

func active(names ...string) change {
	return func(r *coordination.EvictionRequest) {
		r.Status.ActiveInterceptors, r.Status.ActivationTime = names, &now
	}
}

// reporting changes the entry of the last interceptor.
func reporting(change func(*coordination.InterceptorStatus)) change {
	return func(r *coordination.EvictionRequest) { change(&r.Status.Interceptors[len(r.Status.Interceptors)-1]) }
}

func processed(names ...string) change {
	return func(r *coordination.EvictionRequest) { r.Status.ProcessedInterceptors = names }
}

func policy(policy coordination.EvictionRequestCancellationPolicy) change {
	return func(r *coordination.EvictionRequest) { r.Status.EvictionRequestCancellationPolicy = policy }
}

func conditions(types ...string) change {
	return func(r *coordination.EvictionRequest) { r.Status.Conditions = declared.Conditions(types...) }
}

func TestObjectMeta(t *testing.T) {
	for _, version := range apiVersions {
		t.Run(version, func(t *testing.T) {
			create, update := declared.Context(version, "create", resource, ""), declared.Context(version, "update", resource, "")
			meta.RunObjectMetaTestCases(t, create, newRequest(), registry.Strategy, meta.WithStringentFinalizerValidation())
			meta.RunObjectMetaUpdateTestCases(t, update, newRequest(), registry.Strategy, meta.WithStringentFinalizerValidation())
		})
	}
}

func TestCreate(t *testing.T) {
	spec := field.NewPath("spec")
	target, requesters, heartbeat := spec.Child("target"), spec.Child("requesters"), spec.Child("heartbeatDeadlineSeconds")
	noUUID := field.ErrorList{field.Invalid(target.Child("pod", "uid"), nil, "").WithOrigin("format=k8s-uuid")}
	for name, test := range map[string]struct {
		changes []change
		want    field.ErrorList
	}{
		"no target":                              {changes: as(withoutTarget), want: field.ErrorList{field.Invalid(target, nil, "").WithOrigin("union")}},
		"a pod without a name":                   {changes: as(evicting("", targetUID)), want: field.ErrorList{declared.Missing(target.Child("pod", "name"))}},
		"a pod without a UID":                    {changes: as(evicting("web-0", "")), want: field.ErrorList{declared.Missing(target.Child("pod", "uid"))}},
		"a word for a UID":                       {changes: as(evicting("web-0", "web-0"), named("web-0")), want: noUUID},
		"a UID that lacks a character":           {changes: as(evicting("web-0", targetUID[:35]), named(targetUID[:35])), want: noUUID},
		"the most requesters":                    {changes: as(requestedBy(append(declared.Numbered(100), reserved(10)...)...))},
		"one requester too many":                 {changes: as(requestedBy(append(declared.Numbered(100), reserved(11)...)...)), want: field.ErrorList{declared.TooMany(requesters, 110)}},
		"a requester twice":                      {changes: as(requestedBy("a.example.com", "a.example.com")), want: field.ErrorList{field.Duplicate(requesters.Index(1), nil)}},
		"a requester without a name":             {changes: as(requestedBy("")), want: field.ErrorList{declared.Missing(requesters.Index(0).Child("name"))}},
		"the shortest deadline":                  {changes: as(deadline(120))},
		"a deadline that is too short":           {changes: as(deadline(119)), want: field.ErrorList{declared.TooSmall(heartbeat)}},
		"the longest deadline":                   {changes: as(deadline(21600))},
		"a deadline that is too long":            {changes: as(deadline(21601)), want: field.ErrorList{declared.TooLarge(heartbeat)}},
		"no deadline, which defaulting prevents": {changes: as(withoutDeadline), want: field.ErrorList{declared.Missing(heartbeat)}},
	} {
		for _, version := range apiVersions {
			t.Run(version+", "+name, func(t *testing.T) {
				ctx := declared.Context(version, "create", resource, "")
				apitesting.VerifyValidationEquivalence(t, ctx, newRequest(test.changes...), registry.Strategy, test.want)
			})
		}
	}
}

func TestUpdate(t *testing.T) {
	spec := field.NewPath("spec")
	target, requesters, heartbeat := spec.Child("target"), spec.Child("requesters"), spec.Child("heartbeatDeadlineSeconds")
	immutable := func(path *field.Path) *field.Error { return field.Invalid(path, nil, "").WithOrigin("immutable") }
	for name, test := range map[string]struct {
		change change
		want   field.ErrorList
	}{
		"another target":                         {change: evicting("web-1", targetUID), want: field.ErrorList{immutable(target)}},
		"no target":                              {change: withoutTarget, want: field.ErrorList{immutable(target)}},
		"no deadline, which defaulting prevents": {change: withoutDeadline, want: field.ErrorList{declared.Missing(heartbeat)}},
		"one requester too many":                 {change: requestedBy(append(declared.Numbered(100), reserved(11)...)...), want: field.ErrorList{declared.TooMany(requesters, 110)}},
	} {
		for _, version := range apiVersions {
			t.Run(version+", "+name, func(t *testing.T) {
				ctx := declared.Context(version, "update", resource, "")
				apitesting.VerifyUpdateValidationEquivalence(t, ctx, newRequest(test.change), newRequest(), registry.Strategy, test.want)
			})
		}
	}
}

// Handwritten validation allows few steps. Each change is one of them, but for what breaks a rule.
func TestStatus(t *testing.T) {
	status := field.NewPath("status")
	targets, entries, done := status.Child("targetInterceptors"), status.Child("interceptors"), status.Child("processedInterceptors")
	all, beyond := append(declared.Numbered(15), imperative), append(declared.Numbered(16), imperative)
	ready, begun := as(initialized(first, imperative)), as(initialized(first, imperative), active(first))
	lastBegun := as(initialized(imperative), active(imperative))
	completing := reporting(func(entry *coordination.InterceptorStatus) {
		entry.StartTime, entry.HeartbeatTime, entry.CompletionTime = &now, &now, &now
	})
	saying := func(length int) change {
		return reporting(func(entry *coordination.InterceptorStatus) { entry.Message = strings.Repeat("é", length) })
	}
	retried := func(retries int32) change {
		return reporting(func(entry *coordination.InterceptorStatus) { entry.Retries = retries })
	}
	// Handwritten validation knows which ones are processed, and reports every other list.
	notProcessed := field.Invalid(done, nil, "").MarkFromImperative()
	ours := []string{"Blocked", "Canceled", "Evicted", "InterceptorsSkipped", "InterceptorUnresponsive", "Reconciling", "Stalled"}
	for name, test := range map[string]struct {
		// stored is how the stored request differs from a new one, changes are what the update adds.
		stored, changes []change
		want            field.ErrorList
	}{
		"the most targets":        {changes: as(initialized(all...))},
		"one target too many":     {changes: as(initialized(beyond...)), want: field.ErrorList{declared.TooMany(targets, 16), declared.TooMany(entries, 16)}},
		"a target twice":          {changes: as(initialized(first, first, imperative)), want: field.ErrorList{field.Duplicate(targets.Index(1), nil), field.Duplicate(entries.Index(1), nil)}},
		"a target without a name": {changes: as(initialized("", imperative)), want: field.ErrorList{declared.Missing(targets.Index(0).Child("name")), declared.Missing(entries.Index(0).Child("name"))}},

		"one is active":       {stored: ready, changes: as(active(first))},
		"two are active":      {stored: ready, changes: as(active(first, imperative)), want: field.ErrorList{declared.TooMany(status.Child("activeInterceptors"), 1)}},
		"one is active twice": {stored: ready, changes: as(active(first, first)), want: field.ErrorList{declared.TooMany(status.Child("activeInterceptors"), 1)}},

		"the most are processed": {stored: as(initialized(all...), active(imperative), processed(all[:15]...), completing), changes: as(processed(all...), func(r *coordination.EvictionRequest) { r.Status.ActiveInterceptors = nil })},
		"one processed too many": {changes: as(processed(beyond...)), want: field.ErrorList{declared.TooMany(done, 16), notProcessed}},
		"one is processed twice": {changes: as(processed(first, first)), want: field.ErrorList{field.Duplicate(done.Index(1), nil), notProcessed}},

		"the longest message":        {stored: lastBegun, changes: as(saying(32768))},
		"a message that is too long": {stored: lastBegun, changes: as(saying(32769)), want: field.ErrorList{declared.TooLong(entries.Index(0).Child("message"), 32768)}},
		"a retry":                    {stored: lastBegun, changes: as(retried(1))},
		"negative retries":           {stored: lastBegun, changes: as(retried(-1)), want: field.ErrorList{declared.TooSmall(entries.Index(0).Child("retries"))}},

		"cancellation is allowed":   {stored: begun, changes: as(policy(coordination.EvictionRequestCancellationPolicyAllow))},
		"cancellation is forbidden": {stored: begun, changes: as(policy(coordination.EvictionRequestCancellationPolicyForbid))},
		"another policy":            {stored: begun, changes: as(policy("Maybe")), want: field.ErrorList{declared.Unknown(status.Child("evictionRequestCancellationPolicy"))}},

		// Handwritten validation limits the conditions of others, but for those that are stored.
		"all of our conditions and too many of others": {
			stored:  as(conditions(declared.Numbered(101)...)),
			changes: as(conditions(append(declared.Numbered(101), ours...)...)),
			want:    field.ErrorList{declared.TooMany(status.Child("conditions"), 107)},
		},
	} {
		for _, version := range apiVersions {
			t.Run(version+", "+name, func(t *testing.T) {
				changed := newRequest(slices.Concat(test.stored, test.changes)...)
				declared.VerifyStatus(t, version, resource, changed, newRequest(test.stored...), statusStrategy(), test.want)
			})
		}
	}
}

func TestConditions(t *testing.T) {
	conditionsOf := func(r *coordination.EvictionRequest) *[]metav1.Condition { return &r.Status.Conditions }
	for _, version := range apiVersions {
		declared.RunConditions(t, version, resource, newRequest(), statusStrategy(), conditionsOf)
	}
}
