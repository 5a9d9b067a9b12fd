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
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/utils/ptr"
)

const (
	saver = "saver.example.com"
	moved = "mover.example.com/pods"
	// nobody may not do anything, and controller everything with the status.
	nobody     = "nobody"
	controller = "controller"
)

// statusRights allows users to report as the interceptor of their own name, and the
// controller everything. It records what it was asked.
type statusRights struct {
	failing string // Verb for which there is no answer but an error.
	asked   []authorizer.AttributesRecord
}

func (r *statusRights) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	a := attributes.(authorizer.AttributesRecord)
	r.asked = append(r.asked, a)
	if a.Verb == r.failing {
		return authorizer.DecisionNoOpinion, "", errors.New("webhook is away")
	}
	if !a.ResourceRequest || a.Namespace != namespace || a.APIGroup != "coordination.k8s.io" {
		return authorizer.DecisionDeny, "", nil
	}
	reports := a.Verb == "intercept" && a.Resource == "evictioninterceptors" && a.Subresource == "" && a.APIVersion == "*" && a.Name == a.User.GetName()
	controls := a.Verb == "control" && a.Resource == "evictionrequests" && a.Subresource == "status" && a.APIVersion == "v1alpha1" && a.Name == podUID && a.User.GetName() == controller
	if reports || controls {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// beingIntercepted is the status of a request whose first interceptor, saver, is active.
func beingIntercepted() *coordination.EvictionRequestStatus {
	return &coordination.EvictionRequestStatus{
		ObservedGeneration: 1,
		TargetInterceptors: []coordination.Interceptor{{Name: saver}, {Name: moved}},
		ActiveInterceptors: []string{saver},
		ActivationTime:     ptr.To(metav1.Unix(1000, 0)),
		Interceptors:       []coordination.InterceptorStatus{{Name: saver}, {Name: moved}},
	}
}

func withStatus(change func(*coordination.EvictionRequestStatus)) *coordination.EvictionRequest {
	request := newRequest()
	request.Status = *beingIntercepted()
	change(&request.Status)
	return request
}

// statusUpdates are changes of beingIntercepted.
var statusUpdates = map[string]func(*coordination.EvictionRequestStatus){
	"nothing":         func(*coordination.EvictionRequestStatus) {},
	"report":          func(s *coordination.EvictionRequestStatus) { s.Interceptors[0].Message = "at work" },
	"report of other": func(s *coordination.EvictionRequestStatus) { s.Interceptors[1].Message = "at work" },
	"both reports": func(s *coordination.EvictionRequestStatus) {
		s.Interceptors[0].Message, s.Interceptors[1].Message = "at work", "at work"
	},
	"completion": func(s *coordination.EvictionRequestStatus) {
		s.Interceptors[0].CompletionTime = ptr.To(metav1.Unix(1001, 0))
	},
	"policy": func(s *coordination.EvictionRequestStatus) { s.EvictionRequestCancellationPolicy = "Forbid" },
	"report and policy": func(s *coordination.EvictionRequestStatus) {
		s.Interceptors[0].Message, s.EvictionRequestCancellationPolicy = "at work", "Forbid"
	},
	"report and next turn": func(s *coordination.EvictionRequestStatus) {
		s.Interceptors[0].CompletionTime = ptr.To(metav1.Unix(1001, 0))
		s.ActiveInterceptors = []string{moved}
	},
	"Evicted": func(s *coordination.EvictionRequestStatus) {
		s.Conditions = []metav1.Condition{{Type: "Evicted", Status: metav1.ConditionTrue}}
	},
	"foreign condition":  func(s *coordination.EvictionRequestStatus) { s.Conditions = []metav1.Condition{{Type: "Mine"}} },
	"observedGeneration": func(s *coordination.EvictionRequestStatus) { s.ObservedGeneration = 2 },
	"targets":            func(s *coordination.EvictionRequestStatus) { s.TargetInterceptors = s.TargetInterceptors[1:] },
	"active":             func(s *coordination.EvictionRequestStatus) { s.ActiveInterceptors = nil },
	"processed":          func(s *coordination.EvictionRequestStatus) { s.ProcessedInterceptors = []string{saver} },
	"activationTime":     func(s *coordination.EvictionRequestStatus) { s.ActivationTime = nil },
	"entry removed":      func(s *coordination.EvictionRequestStatus) { s.Interceptors = s.Interceptors[:1] },
	"entry added": func(s *coordination.EvictionRequestStatus) {
		s.Interceptors = append(s.Interceptors, coordination.InterceptorStatus{Name: "new.example.com"})
	},
	"entry renamed":   func(s *coordination.EvictionRequestStatus) { s.Interceptors[0].Name = "new.example.com" },
	"entries swapped": func(s *coordination.EvictionRequestStatus) { slices.Reverse(s.Interceptors) },
}

// Who may do what: each update by everybody.
func TestValidateStatusUpdate(t *testing.T) {
	allowed := map[string][]string{
		"nothing":           {saver, moved, nobody},
		"report":            {saver},
		"completion":        {saver},
		"policy":            {saver},
		"report and policy": {saver},
		"report of other":   {moved},
	}
	for name, change := range statusUpdates {
		for _, username := range []string{saver, moved, nobody, controller} {
			t.Run(name+" by "+username, func(t *testing.T) {
				plugin := newStatusPlugin(t, &statusRights{})
				old, request := withStatus(statusUpdates["nothing"]), withStatus(change)
				err := plugin.Validate(t.Context(), attributes(admission.Update, username, "status", request, old), nil)
				if want := username == controller || slices.Contains(allowed[name], username); want != (err == nil) {
					t.Errorf("error %v; must be allowed: %t", err, want)
				}
				if err != nil && !apierrors.IsForbidden(err) {
					t.Errorf("error %#v, must be forbidden", err)
				}
			})
		}
	}
}

func newStatusPlugin(t *testing.T, rights authorizer.Authorizer) *Plugin {
	t.Helper()
	plugin, _, _ := cluster{}.newPlugin(t, true)
	plugin.SetAuthorizer(rights)
	return plugin
}

// Whoever may report as every interceptor does so entry by entry, and changes nothing else.
func TestRightOnAllInterceptorsIsNoControl(t *testing.T) {
	all := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb() == "intercept" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	for name, change := range map[string]func(*coordination.EvictionRequestStatus){
		"a report with the time of activation": func(s *coordination.EvictionRequestStatus) {
			s.Interceptors[0].Message, s.ActivationTime = "at work", nil
		},
		"a renamed entry": statusUpdates["entry renamed"],
		"swapped entries": statusUpdates["entries swapped"],
	} {
		t.Run(name, func(t *testing.T) {
			old := withStatus(statusUpdates["nothing"])
			err := newStatusPlugin(t, all).Validate(t.Context(), attributes(admission.Update, saver, "status", withStatus(change), old), nil)
			if !apierrors.IsForbidden(err) {
				t.Errorf("error %v, must be forbidden", err)
			}
		})
	}
}

// Each field that a status may have belongs to somebody, also one that is added later.
func TestEveryFieldOfTheStatusIsGuarded(t *testing.T) {
	covered := map[string]bool{}
	for _, change := range statusUpdates {
		for _, change := range statusChangesOf(withStatus(change), withStatus(statusUpdates["nothing"])) {
			field, _, _ := strings.Cut(change.field, "[")
			covered[field] = true
		}
	}
	want := map[string]bool{
		"status.observedGeneration": true, "status.conditions": true, "status.targetInterceptors": true, "status.activeInterceptors": true, "status.processedInterceptors": true,
		"status.activationTime": true, "status.interceptors": true, "status.evictionRequestCancellationPolicy": true,
	}
	if diff := cmp.Diff(want, covered); diff != "" {
		t.Errorf("fields that updates change (-want +got):\n%s", diff)
	}
}

// What is wrong, who can mend it and how are all in the message.
func TestStatusMessages(t *testing.T) {
	const prefix = `evictionrequests.coordination.k8s.io "` + podUID + `" is forbidden: user "nobody" cannot change `
	const grant = `: this needs the verb "intercept" on the resource "evictioninterceptors" in API group "coordination.k8s.io" with the name "saver.example.com" in namespace "shop"; ` +
		`grant it with the rule {apiGroups: [coordination.k8s.io], resources: [evictioninterceptors], resourceNames: [saver.example.com], verbs: [intercept]}`
	const control = `, which belongs to the eviction request controller: this needs the verb "control" on the resource "evictionrequests/status" in API group "coordination.k8s.io" ` +
		`in namespace "shop", which only controllers should have; an interceptor changes nothing but its own entry in status.interceptors and, while it is active, ` +
		`status.evictionRequestCancellationPolicy`
	for name, want := range map[string]string{
		"report":               prefix + "status.interceptors[saver.example.com], which belongs to the interceptor saver.example.com" + grant,
		"policy":               prefix + "status.evictionRequestCancellationPolicy, which belongs to the interceptor saver.example.com" + grant,
		"Evicted":              prefix + "status.conditions" + control,
		"report and next turn": prefix + "status.activeInterceptors" + control,
		"entry removed":        prefix + "status.interceptors" + control,
	} {
		plugin := newStatusPlugin(t, &statusRights{})
		err := plugin.Validate(t.Context(), attributes(admission.Update, nobody, "status", withStatus(statusUpdates[name]), withStatus(statusUpdates["nothing"])), nil)
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, want)
		}
	}
}

// The policy belongs to the active interceptor; while there is none it is the controller's.
func TestPolicyWithoutActiveInterceptor(t *testing.T) {
	idle := func(s *coordination.EvictionRequestStatus) { s.ActiveInterceptors = nil }
	forbid := func(s *coordination.EvictionRequestStatus) {
		s.ActiveInterceptors, s.EvictionRequestCancellationPolicy = nil, "Forbid"
	}
	for username, want := range map[string]bool{saver: false, "": false, controller: true} {
		plugin := newStatusPlugin(t, &statusRights{})
		err := plugin.Validate(t.Context(), attributes(admission.Update, username, "status", withStatus(forbid), withStatus(idle)), nil)
		if allowed := err == nil; allowed != want {
			t.Errorf("user %q: %v; must be allowed: %t", username, err, want)
		}
	}
}

// The first turn comes too late for a policy in the same update.
func TestPolicyWithTheFirstTurn(t *testing.T) {
	idle := func(s *coordination.EvictionRequestStatus) { s.ActiveInterceptors = nil }
	forbid := func(s *coordination.EvictionRequestStatus) { s.EvictionRequestCancellationPolicy = "Forbid" }
	for _, change := range statusChangesOf(withStatus(forbid), withStatus(idle)) {
		if change.interceptor != "" {
			t.Errorf("%s belongs to %s, must belong to the controller", change.field, change.interceptor)
		}
	}
}

// A turn that an update gives does not count yet: the policy is the former interceptor's.
func TestPolicyBelongsToTheOneWhoWasActive(t *testing.T) {
	next := func(s *coordination.EvictionRequestStatus) {
		s.ActiveInterceptors, s.EvictionRequestCancellationPolicy = []string{moved}, "Forbid"
	}
	changes := statusChangesOf(withStatus(next), withStatus(statusUpdates["nothing"]))
	want := []statusChange{{field: "status.activeInterceptors"}, {field: "status.evictionRequestCancellationPolicy", interceptor: saver}}
	slices.SortFunc(changes, func(a, b statusChange) int { return strings.Compare(a.field, b.field) })
	if diff := cmp.Diff(want, changes, cmp.AllowUnexported(statusChange{})); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// The authorizer is asked no more than is needed, and the API server nothing at all.
func TestStatusQuestions(t *testing.T) {
	intercept := func(name, username string) string { return username + " intercept " + name }
	tests := map[string]struct {
		update, user string
		want         []string
	}{
		"nothing changes":       {"nothing", nobody, nil},
		"an own report":         {"report", saver, []string{intercept(saver, saver)}},
		"a report with policy":  {"report and policy", saver, []string{intercept(saver, saver)}},
		"a foreign report":      {"report of other", saver, []string{intercept(moved, saver), "saver.example.com control"}},
		"a field of the others": {"Evicted", controller, []string{"controller control"}},
		"a report in the place": {"report", controller, []string{intercept(saver, controller), "controller control"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rights := &statusRights{}
			plugin := newStatusPlugin(t, rights)
			_ = plugin.Validate(t.Context(), attributes(admission.Update, test.user, "status", withStatus(statusUpdates[test.update]), withStatus(statusUpdates["nothing"])), nil)
			var asked []string
			for _, a := range rights.asked {
				question := a.User.GetName() + " " + a.Verb
				if a.Verb == "intercept" {
					question += " " + a.Name
				}
				asked = append(asked, question)
			}
			if diff := cmp.Diff(test.want, asked); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
		})
	}
}

// Nobody is refused because of an authorizer that fails: that is an error of the server.
// The controller goes on where the other question is answered.
func TestStatusWhenTheAuthorizerFails(t *testing.T) {
	tests := map[string]struct {
		failing, update, user string
		wantErr               func(error) bool
	}{
		"own report":                        {"intercept", "report", saver, apierrors.IsInternalError},
		"own report, control is unknown":    {"control", "report", saver, func(err error) bool { return err == nil }},
		"report, by the controller":         {"intercept", "report", controller, func(err error) bool { return err == nil }},
		"end, control is unknown":           {"control", "Evicted", controller, apierrors.IsInternalError},
		"report of other, control unknown":  {"control", "report of other", saver, apierrors.IsForbidden},
		"mixed update, intercept is unkown": {"intercept", "report and next turn", controller, func(err error) bool { return err == nil }},
	}
	for name, test := range tests {
		plugin := newStatusPlugin(t, &statusRights{failing: test.failing})
		err := plugin.Validate(t.Context(), attributes(admission.Update, test.user, "status", withStatus(statusUpdates[test.update]), withStatus(statusUpdates["nothing"])), nil)
		if !test.wantErr(err) {
			t.Errorf("%s: unexpected error: %v", name, err)
		}
	}
}

// The status strategy leaves metadata and spec alone. If something passes nevertheless,
// it is not the interceptor's; only who owns fields of the status changes with its writes.
func TestStatusUpdateOfTheRest(t *testing.T) {
	owns := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: ptr.To(metav1.NewTime(time.Unix(1, 0)))}
	}
	tests := map[string]struct {
		change func(*coordination.EvictionRequest)
		want   bool
	}{
		"resourceVersion": {func(r *coordination.EvictionRequest) { r.ResourceVersion = "2" }, true},
		"owners of the status": {func(r *coordination.EvictionRequest) {
			r.ManagedFields = []metav1.ManagedFieldsEntry{owns("drain", ""), owns(saver, "status")}
		}, true},
		"owners of the spec": {func(r *coordination.EvictionRequest) { r.ManagedFields = []metav1.ManagedFieldsEntry{owns("eve", "")} }, false},
		"no owners":          {func(r *coordination.EvictionRequest) { r.ManagedFields = nil }, false},
		"labels":             {func(r *coordination.EvictionRequest) { r.Labels = map[string]string{"a": "b"} }, false},
		"spec":               {func(r *coordination.EvictionRequest) { r.Spec.Requesters = nil }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old := withStatus(statusUpdates["nothing"])
			old.ManagedFields = []metav1.ManagedFieldsEntry{owns("drain", ""), owns("controller", "status")}
			request := old.DeepCopy()
			test.change(request)
			request.Status.Interceptors[0].Message = "at work"
			before := request.DeepCopy()
			plugin := newStatusPlugin(t, &statusRights{})
			err := plugin.Validate(t.Context(), attributes(admission.Update, saver, "status", request, old), nil)
			if allowed := err == nil; allowed != test.want {
				t.Errorf("error %v; must be allowed: %t", err, test.want)
			}
			if !cmp.Equal(before, request) {
				t.Error("the plugin changed an object")
			}
		})
	}
}

// A way to write the status that is not foreseen must not go unchecked.
func TestUnknownSubresource(t *testing.T) {
	plugin := newStatusPlugin(t, &statusRights{})
	request := withStatus(statusUpdates["Evicted"])
	for what, unexpected := range map[string]admission.Attributes{
		"another subresource":    attributes(admission.Update, controller, "scale", request, request),
		"creation of the status": attributes(admission.Create, controller, "status", request, nil),
	} {
		if err := plugin.Validate(t.Context(), unexpected, nil); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v, must be a bad request", what, err)
		}
	}
}
