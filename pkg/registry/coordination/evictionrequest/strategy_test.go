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
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	// Registers the versions of the API group, whose declarative validation is tested here.
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
)

const targetUID = "6b2a37a5-4f5c-4d3a-9d5e-0c5f6b7a8e91"

// requestContext returns the context of a request to an endpoint.
func requestContext(verb, subresource string) context.Context {
	return genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(context.Background(), "prod"), &genericapirequest.RequestInfo{
		APIPrefix: "apis", APIGroup: "coordination.k8s.io", APIVersion: "v1alpha1", Namespace: "prod",
		Resource: "evictionrequests", Subresource: subresource, Name: targetUID, IsResourceRequest: true, Verb: verb,
	})
}

// newRequest returns a valid stored request with the given changes.
func newRequest(changes ...func(*coordination.EvictionRequest)) *coordination.EvictionRequest {
	request := &coordination.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: targetUID, ResourceVersion: "1", Generation: 3},
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

func deadlineOf(seconds int32) func(*coordination.EvictionRequest) {
	return func(request *coordination.EvictionRequest) { request.Spec.HeartbeatDeadlineSeconds = &seconds }
}

func withoutDeadline(request *coordination.EvictionRequest) {
	request.Spec.HeartbeatDeadlineSeconds = nil
}

func requestedBy(names ...string) func(*coordination.EvictionRequest) {
	return func(request *coordination.EvictionRequest) {
		request.Spec.Requesters = nil
		for _, name := range names {
			request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: name})
		}
	}
}

func targetPod(pod *coordination.LocalPodReference) func(*coordination.EvictionRequest) {
	return func(request *coordination.EvictionRequest) { request.Spec.Target.Pod = pod }
}

// having changes the status.
func having(change func(*coordination.EvictionRequestStatus)) func(*coordination.EvictionRequest) {
	return func(request *coordination.EvictionRequest) { change(&request.Status) }
}

// numbered returns count different names.
func numbered(count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("number-%d.example.com", i))
	}
	return names
}

func TestStrategyBasics(t *testing.T) {
	if !Strategy.NamespaceScoped() {
		t.Error("requests must be namespaced, like pods")
	}
	if Strategy.AllowCreateOnUpdate(t.Context()) {
		t.Error("an update must not create a request")
	}
	if Strategy.AllowUnconditionalUpdate(t.Context()) || StatusStrategy.AllowUnconditionalUpdate(t.Context()) {
		t.Error("an update without a resourceVersion must be rejected: it could remove other requesters")
	}
	request := newRequest()
	Strategy.Canonicalize(request)
	if diff := cmp.Diff(newRequest(), request); diff != "" {
		t.Errorf("the canonical form differs (-want, +got):\n%s", diff)
	}
	if warnings := append(Strategy.WarningsOnCreate(context.Background(), request), Strategy.WarningsOnUpdate(context.Background(), request, request)...); len(warnings) > 0 {
		t.Errorf("unexpected warnings: %v", warnings)
	}
}

func TestPrepareForCreate(t *testing.T) {
	request := newRequest(having(func(status *coordination.EvictionRequestStatus) {
		status.ActiveInterceptors = []string{"a.example.com"}
		status.EvictionRequestCancellationPolicy = coordination.EvictionRequestCancellationPolicyForbid
	}))
	Strategy.PrepareForCreate(context.Background(), request)
	want := newRequest(func(request *coordination.EvictionRequest) { request.Generation = 1 })
	if diff := cmp.Diff(want, request); diff != "" {
		t.Errorf("unexpected request (-want, +got):\n%s", diff)
	}
}

func TestPrepareForUpdate(t *testing.T) {
	observed := having(func(status *coordination.EvictionRequestStatus) { status.ObservedGeneration = 3 })
	generation := func(generation int64) func(*coordination.EvictionRequest) {
		return func(request *coordination.EvictionRequest) { request.Generation = generation }
	}
	labelled := func(request *coordination.EvictionRequest) { request.Labels = map[string]string{"app": "web"} }
	otherStatus := having(func(status *coordination.EvictionRequestStatus) { status.ObservedGeneration = 2 })

	tests := map[string]struct {
		changed, want *coordination.EvictionRequest
	}{
		"labels do not change the generation":                {changed: newRequest(labelled), want: newRequest(labelled, observed)},
		"a new requester changes the generation":             {changed: newRequest(requestedBy("a.example.com", "b.example.com")), want: newRequest(requestedBy("a.example.com", "b.example.com"), generation(4), observed)},
		"removing the last requester changes the generation": {changed: newRequest(requestedBy()), want: newRequest(requestedBy(), generation(4), observed)},
		"the status is ignored":                              {changed: newRequest(otherStatus), want: newRequest(observed)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old := newRequest(observed)
			Strategy.PrepareForUpdate(context.Background(), test.changed, old)
			if diff := cmp.Diff(test.want, test.changed); diff != "" {
				t.Errorf("unexpected request (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(newRequest(observed), old); diff != "" {
				t.Errorf("the stored request was changed (-before, +after):\n%s", diff)
			}
		})
	}
}

// An empty list is equal to no list.
func TestPrepareForUpdateWithoutRequesters(t *testing.T) {
	changed := newRequest(requestedBy())
	changed.Spec.Requesters = []coordination.Requester{}
	Strategy.PrepareForUpdate(context.Background(), changed, newRequest(requestedBy()))
	if changed.Generation != 3 {
		t.Errorf("the generation is %d, want 3 as before", changed.Generation)
	}
}

// The status endpoint updates the status and managedFields.
func TestPrepareForStatusUpdate(t *testing.T) {
	managed := []metav1.ManagedFieldsEntry{{Manager: "a.example.com", Subresource: "status"}}
	changed := newRequest(requestedBy("other.example.com"), deadlineOf(120), func(request *coordination.EvictionRequest) {
		request.Generation = 9
		request.Labels = map[string]string{"app": "other"}
		request.Annotations = map[string]string{"a": "other"}
		request.Finalizers = []string{"example.com/other"}
		request.OwnerReferences = []metav1.OwnerReference{{Name: "other"}}
		request.ManagedFields = managed
		request.Status.ObservedGeneration = 3
	})
	StatusStrategy.PrepareForUpdate(context.Background(), changed, newRequest())
	want := newRequest(func(request *coordination.EvictionRequest) {
		request.ManagedFields = managed
		request.Status.ObservedGeneration = 3
	})
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("unexpected request (-want, +got):\n%s", diff)
	}
}

func TestResetFields(t *testing.T) {
	tests := map[string]struct {
		got  map[fieldpath.APIVersion]*fieldpath.Set
		want *fieldpath.Set
	}{
		"main endpoint":   {got: Strategy.GetResetFields(), want: fieldpath.NewSet(fieldpath.MakePathOrDie("status"))},
		"status endpoint": {got: StatusStrategy.GetResetFields(), want: fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if set := test.got["coordination.k8s.io/v1alpha1"]; len(test.got) != 1 || set == nil || !set.Equals(test.want) {
				t.Errorf("got %v, want %v for v1alpha1 only", test.got, test.want)
			}
		})
	}
}

func TestValidateCreate(t *testing.T) {
	spec := field.NewPath("spec")
	pod := spec.Child("target", "pod")
	withUID := func(uid string) func(*coordination.EvictionRequest) {
		return func(request *coordination.EvictionRequest) {
			request.Name = uid
			request.Spec.Target.Pod.UID = uid
		}
	}
	tests := map[string]struct {
		request *coordination.EvictionRequest
		want    field.ErrorList
	}{
		"valid":                            {request: newRequest()},
		"the shortest deadline":            {request: newRequest(deadlineOf(120))},
		"the longest deadline":             {request: newRequest(deadlineOf(21600))},
		"the maximum number of requesters": {request: newRequest(requestedBy(numbered(100)...))},
		"without a deadline, which defaulting prevents": {
			request: newRequest(withoutDeadline),
			want:    field.ErrorList{field.Required(spec.Child("heartbeatDeadlineSeconds"), "")},
		},
		"a deadline that is too short": {
			request: newRequest(deadlineOf(119)),
			want:    field.ErrorList{field.Invalid(spec.Child("heartbeatDeadlineSeconds"), nil, "").WithOrigin("minimum")},
		},
		"a deadline that is too long": {
			request: newRequest(deadlineOf(21601)),
			want:    field.ErrorList{field.Invalid(spec.Child("heartbeatDeadlineSeconds"), nil, "").WithOrigin("maximum")},
		},
		"one requester too many": {
			request: newRequest(requestedBy(numbered(101)...)),
			want:    field.ErrorList{field.TooMany(spec.Child("requesters"), 101, 100).WithOrigin("maxItems")},
		},
		"a duplicate requester": {
			request: newRequest(requestedBy("a.example.com", "a.example.com")),
			want:    field.ErrorList{field.Duplicate(spec.Child("requesters").Index(1), nil)},
		},
		"a requester without a name": {
			request: newRequest(requestedBy("")),
			want:    field.ErrorList{field.Required(spec.Child("requesters").Index(0).Child("name"), "")},
		},
		"no requester": {
			request: newRequest(requestedBy()),
			want:    field.ErrorList{field.Required(spec.Child("requesters"), "").MarkFromImperative()},
		},
		"no target": {
			request: newRequest(targetPod(nil)),
			want:    field.ErrorList{field.Invalid(spec.Child("target"), nil, "").WithOrigin("union")},
		},
		"a pod without a name": {
			request: newRequest(targetPod(&coordination.LocalPodReference{UID: targetUID})),
			want:    field.ErrorList{field.Required(pod.Child("name"), "")},
		},
		"a pod without a UID": {
			request: newRequest(targetPod(&coordination.LocalPodReference{Name: "web-0"})),
			want:    field.ErrorList{field.Required(pod.Child("uid"), "")},
		},
		"an invalid UID": {
			request: newRequest(withUID("web-0")),
			want:    field.ErrorList{field.Invalid(pod.Child("uid"), nil, "").WithOrigin("format=k8s-uuid")},
		},
		"a UID in upper case": {
			request: newRequest(targetPod(&coordination.LocalPodReference{Name: "web-0", UID: strings.ToUpper(targetUID)})),
			want: field.ErrorList{field.Invalid(pod.Child("uid"), nil, "").WithOrigin("format=k8s-uuid"),
				field.Invalid(field.NewPath("metadata", "name"), nil, "").MarkFromImperative()},
		},
		"a UID that lacks a character": {
			request: newRequest(withUID(targetUID[:35])),
			want:    field.ErrorList{field.Invalid(pod.Child("uid"), nil, "").WithOrigin("format=k8s-uuid")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			apitesting.VerifyValidationEquivalence(t, requestContext("create", ""), test.request, Strategy, test.want)
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	spec := field.NewPath("spec")
	immutable := func(path *field.Path) field.ErrorList {
		return field.ErrorList{field.Invalid(path, nil, "").WithOrigin("immutable")}
	}
	tests := map[string]struct {
		changed *coordination.EvictionRequest
		want    field.ErrorList
	}{
		"unchanged":                     {changed: newRequest()},
		"a requester is added":          {changed: newRequest(requestedBy("a.example.com", "drain.example.com"))},
		"the last requester is removed": {changed: newRequest(requestedBy())},
		"another target": {
			changed: newRequest(targetPod(&coordination.LocalPodReference{Name: "web-1", UID: targetUID})),
			want:    immutable(spec.Child("target")),
		},
		"no target": {changed: newRequest(targetPod(nil)), want: immutable(spec.Child("target"))},
		"another deadline": {
			changed: newRequest(deadlineOf(1201)), want: immutable(spec.Child("heartbeatDeadlineSeconds")),
		},
		"no deadline, which defaulting prevents": {
			changed: newRequest(withoutDeadline),
			want: append(immutable(spec.Child("heartbeatDeadlineSeconds")),
				field.Required(spec.Child("heartbeatDeadlineSeconds"), "")),
		},
		"one requester too many": {
			changed: newRequest(requestedBy(numbered(101)...)),
			want:    field.ErrorList{field.TooMany(spec.Child("requesters"), 101, 100).WithOrigin("maxItems")},
		},
		"another name": {
			changed: newRequest(func(request *coordination.EvictionRequest) { request.Name = "f0e1d2c3-0000-4000-8000-000000000002" }),
			want:    field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), nil, "").MarkFromImperative()},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			apitesting.VerifyUpdateValidationEquivalence(t, requestContext("update", ""), test.changed, newRequest(), Strategy, test.want)
		})
	}
}

// The declarative validation of the status, together with the handwritten validation, which has
// more tests of its own.
func TestValidateStatusUpdate(t *testing.T) {
	status := field.NewPath("status")
	targets, active, processed, reports := status.Child("targetInterceptors"), status.Child("activeInterceptors"), status.Child("processedInterceptors"), status.Child("interceptors")
	tooMany := func(path *field.Path, actual, most int) *field.Error {
		return field.TooMany(path, actual, most).WithOrigin("maxItems")
	}
	handWritten := func(path *field.Path) *field.Error { return field.Invalid(path, nil, "").MarkFromImperative() }
	policy := func(policy coordination.EvictionRequestCancellationPolicy) func(*coordination.EvictionRequest) {
		return having(func(status *coordination.EvictionRequestStatus) { status.EvictionRequestCancellationPolicy = policy })
	}
	conditions := func(types ...string) func(*coordination.EvictionRequest) {
		return having(func(status *coordination.EvictionRequestStatus) {
			for _, conditionType := range types {
				status.Conditions = append(status.Conditions, metav1.Condition{
					Type: conditionType, Status: metav1.ConditionTrue, Reason: "Reason", LastTransitionTime: metav1.Now()})
			}
		})
	}
	withMessage := func(length int) func(*coordination.EvictionRequest) {
		return having(func(status *coordination.EvictionRequestStatus) {
			status.Interceptors[0].Message = strings.Repeat("é", length)
		})
	}
	retried := func(retries int32) func(*coordination.EvictionRequest) {
		return having(func(status *coordination.EvictionRequestStatus) { status.Interceptors[0].Retries = retries })
	}
	const a, imperative = "a.example.com", "imperative-eviction.k8s.io"
	ready, begun := newRequest(initialized(a, imperative)), newRequest(initialized(a, imperative), activeAfter(a))
	last := newRequest(initialized(imperative), activeAfter(imperative))
	all := append(numbered(15), imperative)
	lastOfAll := newRequest(initialized(all...), activeAfter(imperative, all[:15]...), completed(15))
	beyond := append(numbered(16), imperative)

	tests := map[string]struct {
		old, changed *coordination.EvictionRequest
		want         field.ErrorList
	}{
		"unchanged":                     {old: newRequest(), changed: newRequest()},
		"the maximum number of targets": {old: newRequest(), changed: newRequest(initialized(all...))},
		"one target too many":           {old: newRequest(), changed: newRequest(initialized(beyond...)), want: field.ErrorList{tooMany(targets, 17, 16), tooMany(reports, 17, 16)}},
		"a duplicate target":            {old: newRequest(), changed: newRequest(initialized(a, a, imperative)), want: field.ErrorList{field.Duplicate(targets.Index(1), nil), field.Duplicate(reports.Index(1), nil)}},
		"a target without a name":       {old: newRequest(), changed: newRequest(initialized("", imperative)), want: field.ErrorList{field.Required(targets.Index(0).Child("name"), ""), field.Required(reports.Index(0).Child("name"), "")}},
		"one active":                    {old: ready, changed: begun},
		"two active": {
			old: ready, changed: newRequest(initialized(a, imperative), activeAfter(a), having(func(status *coordination.EvictionRequestStatus) {
				status.ActiveInterceptors = append(status.ActiveInterceptors, imperative)
			})),
			want: field.ErrorList{tooMany(active, 2, 1)},
		},
		"the maximum number of processed":               {old: lastOfAll, changed: newRequest(initialized(all...), activeAfter("", all...), completed(15))},
		"one processed too many":                        {old: newRequest(), changed: newRequest(activeAfter("", beyond...)), want: field.ErrorList{tooMany(processed, 17, 16), handWritten(processed)}},
		"a duplicate processed":                         {old: newRequest(), changed: newRequest(activeAfter("", a, a)), want: field.ErrorList{field.Duplicate(processed.Index(1), nil), handWritten(processed)}},
		"the longest message":                           {old: begun, changed: newRequest(initialized(a, imperative), activeAfter(a), withMessage(32768))},
		"a message that is too long":                    {old: begun, changed: newRequest(initialized(a, imperative), activeAfter(a), withMessage(32769)), want: field.ErrorList{field.TooLong(reports.Index(0).Child("message"), nil, 32768).WithOrigin("maxLength")}},
		"a retry":                                       {old: last, changed: newRequest(initialized(imperative), activeAfter(imperative), retried(1))},
		"negative retries":                              {old: last, changed: newRequest(initialized(imperative), activeAfter(imperative), retried(-1)), want: field.ErrorList{field.Invalid(reports.Index(0).Child("retries"), nil, "").WithOrigin("minimum")}},
		"cancellation allowed":                          {old: begun, changed: newRequest(initialized(a, imperative), activeAfter(a), policy("Allow"))},
		"cancellation forbidden":                        {old: begun, changed: newRequest(initialized(a, imperative), activeAfter(a), policy("Forbid"))},
		"another cancellation policy":                   {old: begun, changed: newRequest(initialized(a, imperative), activeAfter(a), policy("Maybe")), want: field.ErrorList{field.NotSupported[string](status.Child("evictionRequestCancellationPolicy"), "Maybe", nil)}},
		"the maximum number of conditions":              {old: newRequest(), changed: newRequest(conditions(numbered(100)...))},
		"one foreign condition too many":                {old: newRequest(), changed: newRequest(conditions(numbered(101)...)), want: field.ErrorList{field.Forbidden(status.Child("conditions"), "").MarkFromImperative()}},
		"all foreign conditions, blocked":               {old: newRequest(conditions(numbered(100)...)), changed: newRequest(conditions(append(numbered(100), "Blocked", "InterceptorUnresponsive")...))},
		"all foreign conditions, evicted":               {old: newRequest(conditions(numbered(100)...)), changed: newRequest(conditions(append(numbered(100), "Blocked", "InterceptorUnresponsive", "Evicted")...))},
		"too many foreign conditions stored, evicted":   {old: newRequest(conditions(numbered(101)...)), changed: newRequest(conditions(append(numbered(101), "Evicted")...))},
		"too many foreign conditions stored, one added": {old: newRequest(conditions(numbered(101)...)), changed: newRequest(conditions(numbered(102)...)), want: field.ErrorList{field.Forbidden(status.Child("conditions"), "").MarkFromImperative()}},
		"far too many conditions":                       {old: newRequest(), changed: newRequest(conditions(numbered(106)...)), want: field.ErrorList{tooMany(status.Child("conditions"), 106, 105), field.Forbidden(status.Child("conditions"), "").MarkFromImperative()}},
		"a duplicate condition":                         {old: newRequest(), changed: newRequest(conditions("Example", "Example")), want: field.ErrorList{field.Duplicate(status.Child("conditions").Index(1), nil)}},
		"a condition without a valid type":              {old: newRequest(), changed: newRequest(conditions("not valid")), want: field.ErrorList{field.Invalid(status.Child("conditions").Index(0).Child("type"), nil, "").WithOrigin("format=k8s-label-key").MarkFromImperative()}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			apitesting.VerifyUpdateValidationEquivalence(t, requestContext("update", "status"), test.changed, test.old, statusStrategyAt(noon), test.want)
		})
	}
}

// noon is the activationTime in these tests.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func statusStrategyAt(now time.Time) *statusStrategy {
	return &statusStrategy{strategy: Strategy, Clock: testingclock.NewFakePassiveClock(now)}
}

func initialized(names ...string) func(*coordination.EvictionRequest) {
	return having(func(status *coordination.EvictionRequestStatus) {
		for _, name := range names {
			status.TargetInterceptors = append(status.TargetInterceptors, coordination.Interceptor{Name: name})
			status.Interceptors = append(status.Interceptors, coordination.InterceptorStatus{Name: name})
		}
	})
}

// activeAfter makes the named interceptor active, or none, after the processed ones.
func activeAfter(name string, processed ...string) func(*coordination.EvictionRequest) {
	return having(func(status *coordination.EvictionRequestStatus) {
		status.ProcessedInterceptors = processed
		if len(status.TargetInterceptors) > 0 {
			status.ActivationTime = &metav1.Time{Time: noon}
		}
		if name != "" {
			status.ActiveInterceptors = []string{name}
		}
	})
}

// completed completes the interceptor with that index.
func completed(index int) func(*coordination.EvictionRequest) {
	return having(func(status *coordination.EvictionRequestStatus) {
		now := &metav1.Time{Time: noon}
		entry := &status.Interceptors[index]
		entry.StartTime, entry.HeartbeatTime, entry.CompletionTime = now, now, now
	})
}

// The strategy uses the injected clock.
func TestStatusStrategyClock(t *testing.T) {
	ready, begun := newRequest(initialized("a.example.com", "imperative-eviction.k8s.io")), newRequest(initialized("a.example.com", "imperative-eviction.k8s.io"), activeAfter("a.example.com"))
	for now, wantErrors := range map[time.Time]int{noon: 0, noon.Add(10 * time.Second): 0, noon.Add(11 * time.Second): 1} {
		errs := statusStrategyAt(now).ValidateUpdate(requestContext("update", "status"), begun, ready)
		if len(errs) != wantErrors {
			t.Errorf("at %s the activation at %s has the errors %v, want %d", now, noon, errs, wantErrors)
		}
	}
	if _, real := StatusStrategy.Clock.(clock.RealClock); !real {
		t.Errorf("the clock of the server is %T, want the real one", StatusStrategy.Clock)
	}
}

// Fractions of seconds are removed, because they are not stored.
func TestPrepareForStatusUpdateDropsFractions(t *testing.T) {
	times := func(offset time.Duration) func(*coordination.EvictionRequest) {
		return having(func(status *coordination.EvictionRequestStatus) {
			at := func(seconds int) *metav1.Time {
				return &metav1.Time{Time: noon.Add(time.Duration(seconds)*time.Second + offset)}
			}
			status.ActivationTime = at(1)
			status.Conditions = []metav1.Condition{{Type: "Example", LastTransitionTime: *at(2)}, {Type: "None"}}
			status.Interceptors = []coordination.InterceptorStatus{
				{Name: "a.example.com", StartTime: at(3), HeartbeatTime: at(4), ExpectedFinishTime: at(5), CompletionTime: at(6)},
				{Name: "b.example.com"},
			}
		})
	}
	changed := newRequest(times(999999999))
	StatusStrategy.PrepareForUpdate(context.Background(), changed, newRequest())
	if diff := cmp.Diff(newRequest(times(0)), changed); diff != "" {
		t.Errorf("unexpected request (-want, +got):\n%s", diff)
	}
}
