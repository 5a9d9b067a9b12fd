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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	// Registers the versions of the API group, whose declarative validation is tested here.
	"k8s.io/apiserver/pkg/authentication/user"
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

func requestedBy(names ...string) func(*coordination.EvictionRequest) {
	return func(request *coordination.EvictionRequest) {
		request.Spec.Requesters = nil
		for _, name := range names {
			request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: name})
		}
	}
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

// withoutProgress removes the conditions that TestProgress is about.
func withoutProgress(request *coordination.EvictionRequest) {
	request.Status.Conditions = slices.DeleteFunc(request.Status.Conditions, func(c metav1.Condition) bool { return c.Type == reconciling || c.Type == stalled })
	if len(request.Status.Conditions) == 0 {
		request.Status.Conditions = nil
	}
}

func TestPrepareForCreate(t *testing.T) {
	request := newRequest(having(func(status *coordination.EvictionRequestStatus) {
		status.ActiveInterceptors = []string{"a.example.com"}
		status.EvictionRequestCancellationPolicy = coordination.EvictionRequestCancellationPolicyForbid
	}))
	Strategy.PrepareForCreate(context.Background(), request)
	withoutProgress(request)
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
	withoutProgress(changed)
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

// Declared and handwritten rules together report each error once. The tests of the declared rules
// are in test/declarative_validation; the package validation has more of the handwritten ones.
func TestValidateCreate(t *testing.T) {
	spec := field.NewPath("spec")
	tests := map[string]struct {
		request *coordination.EvictionRequest
		want    field.ErrorList
	}{
		"valid": {request: newRequest()},
		"no requester": {
			request: newRequest(requestedBy()),
			want:    field.ErrorList{field.Required(spec.Child("requesters"), "").MarkFromImperative()},
		},
		"a UID in upper case": {
			request: newRequest(func(request *coordination.EvictionRequest) {
				request.Spec.Target.Pod.UID = strings.ToUpper(targetUID)
			}),
			want: field.ErrorList{field.Invalid(spec.Child("target", "pod", "uid"), nil, "").WithOrigin("format=k8s-uuid"),
				field.Invalid(field.NewPath("metadata", "name"), nil, "").MarkFromImperative()},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			apitesting.VerifyValidationEquivalence(t, requestContext("create", ""), test.request, Strategy, test.want)
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	tests := map[string]struct {
		changed *coordination.EvictionRequest
		want    field.ErrorList
	}{
		"unchanged":                     {changed: newRequest()},
		"a requester is added":          {changed: newRequest(requestedBy("a.example.com", "drain.example.com"))},
		"the last requester is removed": {changed: newRequest(requestedBy())},
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

func TestValidateStatusUpdate(t *testing.T) {
	path := field.NewPath("status", "conditions")
	conditions := func(types ...string) func(*coordination.EvictionRequest) {
		return having(func(status *coordination.EvictionRequestStatus) {
			for _, conditionType := range types {
				status.Conditions = append(status.Conditions, metav1.Condition{
					Type: conditionType, Status: metav1.ConditionTrue, Reason: "Reason", LastTransitionTime: metav1.Now()})
			}
		})
	}
	tooMany := field.ErrorList{field.Forbidden(path, "").MarkFromImperative()}
	tests := map[string]struct {
		old, changed *coordination.EvictionRequest
		want         field.ErrorList
	}{
		"unchanged":                                     {old: newRequest(), changed: newRequest()},
		"the maximum number of conditions":              {old: newRequest(), changed: newRequest(conditions(numbered(100)...))},
		"one foreign condition too many":                {old: newRequest(), changed: newRequest(conditions(numbered(101)...)), want: tooMany},
		"all foreign conditions, blocked":               {old: newRequest(conditions(numbered(100)...)), changed: newRequest(conditions(append(numbered(100), "Blocked", "InterceptorUnresponsive")...))},
		"all foreign conditions, evicted":               {old: newRequest(conditions(numbered(100)...)), changed: newRequest(conditions(append(numbered(100), "Blocked", "InterceptorUnresponsive", "Evicted")...))},
		"too many foreign conditions stored, evicted":   {old: newRequest(conditions(numbered(101)...)), changed: newRequest(conditions(append(numbered(101), "Evicted")...))},
		"too many foreign conditions stored, one added": {old: newRequest(conditions(numbered(101)...)), changed: newRequest(conditions(numbered(102)...)), want: tooMany},
		"a condition without a valid type":              {old: newRequest(), changed: newRequest(conditions("not valid")), want: field.ErrorList{field.Invalid(path.Index(0).Child("type"), nil, "").WithOrigin("format=k8s-label-key").MarkFromImperative()}},
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

// activated makes the interceptor active.
func activated(name string) func(*coordination.EvictionRequest) {
	return having(func(status *coordination.EvictionRequestStatus) {
		status.ActiveInterceptors, status.ActivationTime = []string{name}, &metav1.Time{Time: noon}
	})
}

// The strategy uses the injected clock.
func TestStatusStrategyClock(t *testing.T) {
	ready, begun := newRequest(initialized("a.example.com", "imperative-eviction.k8s.io")), newRequest(initialized("a.example.com", "imperative-eviction.k8s.io"), activated("a.example.com"))
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
	withoutProgress(changed)
	if diff := cmp.Diff(newRequest(times(0)), changed); diff != "" {
		t.Errorf("unexpected request (-want, +got):\n%s", diff)
	}
}

// TestWithdrawnBy: a request says who has removed a requester last, whatever clients write there.
func TestWithdrawnBy(t *testing.T) {
	const key, a, b = "coordination.k8s.io/eviction-withdrawn-by", "a.example.com", "b.example.com"
	request := func(by string, requesters ...string) *coordination.EvictionRequest {
		request := &coordination.EvictionRequest{}
		if by != "" {
			request.Annotations = map[string]string{key: by}
		}
		for _, name := range requesters {
			request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: name})
		}
		return request
	}
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct {
		user         string
		old, request *coordination.EvictionRequest
		want         string
	}{
		"created":                          {user: "tenant", request: request("forged", a)},
		"one is removed":                   {user: "tenant", old: request("", a, b), request: request("", a), want: "tenant"},
		"all are removed":                  {user: "tenant", old: request("", a, b), request: request("", nil...), want: "tenant"},
		"one is exchanged":                 {user: "tenant", old: request("", a), request: request("", b), want: "tenant"},
		"one is added":                     {user: "tenant", old: request("", a), request: request("", a, b)},
		"their order changes":              {user: "tenant", old: request("", a, b), request: request("", b, a)},
		"forged":                           {user: "tenant", old: request("", a), request: request("other", a)},
		"forged by the one who removes it": {user: "tenant", old: request("", a), request: request("other", nil...), want: "tenant"},
		"removed from what is stored":      {user: "tenant", old: request("other", a), request: request("", a), want: "other"},
		"another one removes another":      {user: "tenant", old: request("other", a, b), request: request("other", b), want: "tenant"},
		"a long name":                      {user: long, old: request("", a), request: request("", nil...), want: long[:253]},
		"nobody, as in tests":              {old: request("other", a), request: request("other", nil...), want: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if test.user != "" {
				ctx = genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: test.user})
			}
			if test.old == nil {
				Strategy.PrepareForCreate(ctx, test.request)
			} else {
				Strategy.PrepareForUpdate(ctx, test.request, test.old)
			}
			if got := test.request.Annotations[key]; got != test.want && !(len(got) <= 253 && strings.HasPrefix(got, "xxx") && test.user == long) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

// TestLoweredDeadline: a tool that applies its deadline again and again, after another requester has lowered it, gets a
// warning and no error.
func TestLoweredDeadline(t *testing.T) {
	for name, test := range map[string]struct {
		old, asked, want int32
		warns            bool
	}{
		"raised, lowered before": {old: 1800, asked: 3600, want: 1800, warns: true},
		"the same":               {old: 1800, asked: 1800, want: 1800},
		"lowered":                {old: 1800, asked: 1500, want: 1500},
		"the default, raised":    {old: 1200, asked: 3600, want: 3600}, // Validation rejects it.
		"short, raised":          {old: 300, asked: 3600, want: 3600},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := &warnings{}
			old, request := &coordination.EvictionRequest{}, &coordination.EvictionRequest{}
			old.Spec.HeartbeatDeadlineSeconds, request.Spec.HeartbeatDeadlineSeconds = &test.old, &test.asked
			Strategy.PrepareForUpdate(warning.WithWarningRecorder(t.Context(), recorder), request, old)
			if got := *request.Spec.HeartbeatDeadlineSeconds; got != test.want || (len(recorder.texts) > 0) != test.warns {
				t.Errorf("got %d with warnings %q, want %d", got, recorder.texts, test.want)
			}
			if request.Generation != old.Generation && test.want == test.old {
				t.Error("the generation changes, although the spec does not")
			}
		})
	}
}
