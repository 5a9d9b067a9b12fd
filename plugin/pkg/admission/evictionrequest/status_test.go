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
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/utils/ptr"
)

const (
	saver = "saver.example.com"
	moved = "mover.example.com/pods"
	// nobody has no permissions, controller may change the whole status.
	nobody     = "nobody"
	controller = "controller"
	// escalator has only the verb escalate.
	escalator = "escalator"
)

// statusRights is an authorizer that allows users to report as the interceptor of their name, and
// the controller to change everything. It records the checks.
type statusRights struct {
	failing string // Verb for which Authorize returns an error.
	// everywhere is whether the permissions of interceptors are granted in all namespaces.
	everywhere bool
	checks     []authorizer.AttributesRecord
}

func (r *statusRights) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	a := attributes.(authorizer.AttributesRecord)
	r.checks = append(r.checks, a)
	if a.Verb == r.failing {
		return authorizer.DecisionNoOpinion, "", errors.New("webhook is unavailable")
	}
	// control is asked for in all namespaces: one in which the user has all permissions is not enough.
	// So are escalate and request.
	where := namespace
	if a.Verb == "control" || a.Verb == "escalate" || a.Verb == "request" || a.Verb == "intercept" && r.everywhere {
		where = ""
	}
	if !a.ResourceRequest || a.Namespace != where || a.APIGroup != "coordination.k8s.io" {
		return authorizer.DecisionDeny, "", nil
	}
	reports := a.Verb == "intercept" && a.Resource == "evictioninterceptors" && a.Subresource == "" && a.APIVersion == "*" && a.Name == a.User.GetName()
	controls := a.Verb == "control" && a.Resource == "evictionrequests" && a.Subresource == "status" && a.APIVersion == "v1alpha1" && a.Name == podUID && a.User.GetName() == controller
	escalates := a.Verb == "escalate" && a.Resource == "evictionrequests" && a.Subresource == "status" && a.APIVersion == "v1alpha1" && a.Name == podUID && a.User.GetName() == escalator
	requests := a.Verb == "request" && a.Resource == "evictionrequesters" && a.Subresource == "" && a.APIVersion == "*" && a.User.GetName() == a.Name
	apiServer := a.Verb == "request" && a.User.GetName() == user.APIServerUser
	if reports || controls || escalates || requests || apiServer {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// beingIntercepted returns the status of a request whose first interceptor, saver, is active.
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

func skip(s *coordination.EvictionRequestStatus) {
	s.Conditions = append(slices.Clone(s.Conditions), metav1.Condition{Type: "InterceptorsSkipped", Status: metav1.ConditionTrue})
}

// statusUpdates are changes of beingIntercepted.
var statusUpdates = map[string]func(*coordination.EvictionRequestStatus){
	"nothing":           func(*coordination.EvictionRequestStatus) {},
	"report":            func(s *coordination.EvictionRequestStatus) { s.Interceptors[0].Message = "at work" },
	"report of another": func(s *coordination.EvictionRequestStatus) { s.Interceptors[1].Message = "at work" },
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
	"report and next activation": func(s *coordination.EvictionRequestStatus) {
		s.Interceptors[0].CompletionTime = ptr.To(metav1.Unix(1001, 0))
		s.ActiveInterceptors = []string{moved}
	},
	"Evicted": func(s *coordination.EvictionRequestStatus) {
		s.Conditions = []metav1.Condition{{Type: "Evicted", Status: metav1.ConditionTrue}}
	},
	"foreign condition": func(s *coordination.EvictionRequestStatus) { s.Conditions = []metav1.Condition{{Type: "Mine"}} },
	"skipped":           skip,
	"skipped, but not yet": func(s *coordination.EvictionRequestStatus) {
		s.Conditions = []metav1.Condition{{Type: "InterceptorsSkipped", Status: metav1.ConditionFalse}}
	},
	"skipped and Evicted": func(s *coordination.EvictionRequestStatus) {
		s.Conditions = []metav1.Condition{{Type: "InterceptorsSkipped", Status: metav1.ConditionTrue}, {Type: "Evicted", Status: metav1.ConditionTrue}}
	},
	"skipped and report": func(s *coordination.EvictionRequestStatus) {
		skip(s)
		s.Interceptors[0].Message = "at work"
	},
	"skipped and next activation": func(s *coordination.EvictionRequestStatus) {
		skip(s)
		s.ActiveInterceptors = []string{moved}
	},
	"skipped and policy": func(s *coordination.EvictionRequestStatus) {
		skip(s)
		s.EvictionRequestCancellationPolicy = "Forbid"
	},
	"skipped and observedGeneration": func(s *coordination.EvictionRequestStatus) {
		skip(s)
		s.ObservedGeneration = 2
	},
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

// Each update is tested with each user.
func TestValidateStatusUpdate(t *testing.T) {
	allowed := map[string][]string{
		"nothing":           {saver, moved, nobody, escalator},
		"skipped":           {escalator},
		"report":            {saver},
		"completion":        {saver},
		"policy":            {saver},
		"report and policy": {saver},
		"report of another": {moved},
	}
	for name, change := range statusUpdates {
		for _, username := range []string{saver, moved, nobody, escalator, controller} {
			t.Run(name+" by "+username, func(t *testing.T) {
				plugin := newStatusPlugin(t, &statusRights{})
				old, request := withStatus(statusUpdates["nothing"]), withStatus(change)
				err := plugin.Validate(t.Context(), attributes(admission.Update, username, "status", request, old), nil)
				if want := username == controller || slices.Contains(allowed[name], username); want != (err == nil) {
					t.Errorf("error %v; want allowed: %t", err, want)
				}
				if err != nil && !apierrors.IsForbidden(err) {
					t.Errorf("error %#v, want Forbidden", err)
				}
			})
		}
	}
}

func newStatusPlugin(t *testing.T, rights authorizer.UnconditionalAuthorizer) *Plugin {
	t.Helper()
	plugin, _, _ := cluster{}.newPlugin(t, true)
	plugin.SetAuthorizer(authorizer.AuthorizerFunc(rights.Authorize))
	return plugin
}

// A user who may report as every interceptor may change only entries.
func TestAllInterceptorsIsNotControl(t *testing.T) {
	all := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb() == "intercept" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	for name, change := range map[string]func(*coordination.EvictionRequestStatus){
		"a report with the activationTime": func(s *coordination.EvictionRequestStatus) {
			s.Interceptors[0].Message, s.ActivationTime = "at work", nil
		},
		"a renamed entry": statusUpdates["entry renamed"],
		"swapped entries": statusUpdates["entries swapped"],
	} {
		t.Run(name, func(t *testing.T) {
			old := withStatus(statusUpdates["nothing"])
			err := newStatusPlugin(t, all).Validate(t.Context(), attributes(admission.Update, saver, "status", withStatus(change), old), nil)
			if !apierrors.IsForbidden(err) {
				t.Errorf("error %v, want Forbidden", err)
			}
		})
	}
}

// Each field of the status is covered, including new ones.
func TestEveryFieldOfTheStatusIsCovered(t *testing.T) {
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

// The message has the problem, who can solve it and how.
func TestStatusMessages(t *testing.T) {
	const prefix = `evictionrequests.coordination.k8s.io "` + podUID + `" is forbidden: user "nobody" cannot change `
	const grant = `: this requires the verb "intercept" on the resource "evictioninterceptors" in API group "coordination.k8s.io" with the name "saver.example.com" in namespace "shop"; ` +
		`grant it with the rule {apiGroups: [coordination.k8s.io], resources: [evictioninterceptors], resourceNames: [saver.example.com], verbs: [intercept]}`
	const control = `, which belongs to the eviction request controller: this requires the verb "control" on the resource "evictionrequests/status" in API group "coordination.k8s.io" ` +
		`in all namespaces, which only controllers should have; an interceptor may change only its own entry in status.interceptors, conditions that begin with its name and, while it is active, ` +
		`status.evictionRequestCancellationPolicy`
	for name, want := range map[string]string{
		"report":                     prefix + "status.interceptors[saver.example.com], which belongs to the interceptor saver.example.com" + grant,
		"policy":                     prefix + "status.evictionRequestCancellationPolicy, which belongs to the interceptor saver.example.com" + grant,
		"Evicted":                    prefix + "status.conditions" + control,
		"report and next activation": prefix + "status.activeInterceptors" + control,
		"entry removed":              prefix + "status.interceptors" + control,
		"skipped": prefix + `status.conditions[InterceptorsSkipped], which passes over interceptors: this requires the verb "escalate" on the resource ` +
			`"evictionrequests/status" in API group "coordination.k8s.io" in all namespaces, by a ClusterRoleBinding`,
		"skipped and Evicted": prefix + "status.conditions" + control,
	} {
		plugin := newStatusPlugin(t, &statusRights{})
		err := plugin.Validate(t.Context(), attributes(admission.Update, nobody, "status", withStatus(statusUpdates[name]), withStatus(statusUpdates["nothing"])), nil)
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, want)
		}
	}
}

// The verb escalate is for the moment at which the condition becomes True: it does not change the
// condition later, and no other one.
func TestSkippedOnce(t *testing.T) {
	conditions := func(conditions ...metav1.Condition) func(*coordination.EvictionRequestStatus) {
		return func(s *coordination.EvictionRequestStatus) { s.Conditions = conditions }
	}
	of := func(name string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Message: message}
	}
	const name = "InterceptorsSkipped"
	mine := of("Mine", metav1.ConditionTrue, "")
	tests := map[string]struct {
		old, change func(*coordination.EvictionRequestStatus)
		want        bool
	}{
		"beside another one":        {conditions(mine), conditions(mine, of(name, "True", "")), true},
		"before another one":        {conditions(mine), conditions(of(name, "True", ""), mine), true},
		"from False":                {conditions(of(name, "False", "")), conditions(of(name, "True", "now")), true},
		"from Unknown":              {conditions(of(name, "Unknown", "")), conditions(of(name, "True", "now")), true},
		"another message":           {conditions(of(name, "True", "")), conditions(of(name, "True", "other")), false},
		"to False":                  {conditions(of(name, "True", "")), conditions(of(name, "False", "")), false},
		"removed":                   {conditions(of(name, "True", "")), conditions(), false},
		"instead of another one":    {conditions(mine), conditions(of(name, "True", "")), false},
		"with another one changed":  {conditions(mine), conditions(of("Mine", "False", ""), of(name, "True", "")), false},
		"with another one added":    {conditions(), conditions(mine, of(name, "True", "")), false},
		"with others in disorder":   {conditions(mine, of("Other", "True", "")), conditions(of("Other", "True", ""), mine, of(name, "True", "")), false},
		"a name that is almost it":  {conditions(), conditions(of("interceptorsSkipped", "True", "")), false},
		"nothing but the old value": {conditions(of(name, "True", "")), conditions(of(name, "True", "")), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plugin := newStatusPlugin(t, &statusRights{})
			err := plugin.Validate(t.Context(), attributes(admission.Update, escalator, "status", withStatus(test.change), withStatus(test.old)), nil)
			if allowed := err == nil; allowed != test.want {
				t.Errorf("error %v; want allowed: %t", err, test.want)
			}
		})
	}
}

// The policy belongs to the active interceptor, and to the controller if there is none.
func TestPolicyWithoutActiveInterceptor(t *testing.T) {
	idle := func(s *coordination.EvictionRequestStatus) { s.ActiveInterceptors = nil }
	forbid := func(s *coordination.EvictionRequestStatus) {
		s.ActiveInterceptors, s.EvictionRequestCancellationPolicy = nil, "Forbid"
	}
	for username, want := range map[string]bool{saver: false, "": false, controller: true} {
		plugin := newStatusPlugin(t, &statusRights{})
		err := plugin.Validate(t.Context(), attributes(admission.Update, username, "status", withStatus(forbid), withStatus(idle)), nil)
		if allowed := err == nil; allowed != want {
			t.Errorf("user %q: %v; want allowed: %t", username, err, want)
		}
	}
}

// TestInterceptorsOfKubernetes: who has all permissions in a namespace does not act as a controller of Kubernetes.
func TestInterceptorsOfKubernetes(t *testing.T) {
	for name, test := range map[string]struct {
		interceptor string
		everywhere  bool
		want        bool
	}{
		"in the namespace":                {interceptor: "deployment.apps.k8s.io"},
		"in all namespaces":               {interceptor: "deployment.apps.k8s.io", everywhere: true, want: true},
		"the built-in one":                {interceptor: "imperative-eviction.k8s.io"},
		"the built-in one, everywhere":    {interceptor: "imperative-eviction.k8s.io", everywhere: true, want: true},
		"another one in the namespace":    {interceptor: "deployment.notk8s.io", want: true},
		"another one, only in all others": {interceptor: saver, everywhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			is := func(message string) func(*coordination.EvictionRequestStatus) {
				return func(s *coordination.EvictionRequestStatus) {
					s.TargetInterceptors, s.ActiveInterceptors = []coordination.Interceptor{{Name: test.interceptor}}, []string{test.interceptor}
					s.Interceptors = []coordination.InterceptorStatus{{Name: test.interceptor, Message: message}}
				}
			}
			plugin := newStatusPlugin(t, &statusRights{everywhere: test.everywhere})
			err := plugin.Validate(t.Context(), attributes(admission.Update, test.interceptor, "status", withStatus(is("done")), withStatus(is(""))), nil)
			if allowed := err == nil; allowed != test.want {
				t.Errorf("error %v; want allowed: %t", err, test.want)
			}
			if err != nil && strings.HasSuffix(test.interceptor, ".k8s.io") && strings.Contains(err.Error(), "grant it with") {
				t.Errorf("the error says how to grant it: %v", err)
			}
		})
	}
}

// TestConditionsOfInterceptors: an interceptor of the request may set conditions with its own name, and no others.
func TestConditionsOfInterceptors(t *testing.T) {
	const key = "example.com/migrate"
	conditions := func(types ...string) func(*coordination.EvictionRequestStatus) {
		return func(s *coordination.EvictionRequestStatus) {
			s.TargetInterceptors = []coordination.Interceptor{{Name: saver}, {Name: moved}, {Name: key}}
			for _, conditionType := range types {
				s.Conditions = append(s.Conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue})
			}
		}
	}
	escalating := func(types ...string) func(*coordination.EvictionRequestStatus) {
		return func(s *coordination.EvictionRequestStatus) { conditions(types...)(s); skip(s) }
	}
	for name, test := range map[string]struct {
		user        string
		old, change func(*coordination.EvictionRequestStatus)
		want        bool
	}{
		"added":                        {saver, conditions(), conditions(saver + "/Saved"), true},
		"two added":                    {saver, conditions(), conditions(saver+"/Saved", saver+"/Copied"), true},
		"removed":                      {saver, conditions(saver + "/Saved"), conditions(), true},
		"exchanged":                    {saver, conditions(saver + "/Saved"), conditions(saver + "/Copied"), true},
		"before it is active":          {moved, conditions(), conditions(moved + ".Ready"), true},
		"another's added":              {saver, conditions(), conditions(moved + ".Ready"), false},
		"another's removed":            {saver, conditions(moved + ".Ready"), conditions(saver + "/Saved"), false},
		"another's as well":            {saver, conditions(), conditions(saver+"/Saved", moved+".Ready"), false},
		"a controller's as well":       {saver, conditions(), conditions(saver+"/Saved", "Evicted"), false},
		"of a subdomain":               {saver, conditions(), conditions("sub." + saver + "/Saved"), false},
		"of a longer name":             {saver, conditions(), conditions(saver + "x/Saved"), false},
		"its name alone":               {saver, conditions(), conditions(saver), false},
		"in another order":             {saver, conditions(saver+"/Saved", "Other"), conditions("Other", saver+"/Saved"), false},
		"twice":                        {saver, conditions(saver + "/Saved"), conditions(saver+"/Saved", saver+"/Saved"), false},
		"of an interceptor that is no": {"other.example.com", conditions(), conditions("other.example.com/Saved"), false},
		"of a key":                     {key, conditions(), conditions(key + ".Saved"), true},
		"of a longer key":              {key, conditions(), conditions(key + "x.Saved"), false},
		"of a longer name that is its": {"mover.example.com/pods", conditions(), conditions("mover.example.com/pods.Ready"), true},
		"of a key with a slash":        {key, conditions(), conditions(key + "/Saved"), false},
		"skipped as well":              {saver, conditions(), escalating(saver + "/Saved"), false},
		"by who may only escalate":     {escalator, conditions(), escalating(saver + "/Saved"), false},
		"by the controller":            {controller, conditions(), escalating(saver+"/Saved", "Evicted"), true},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := newStatusPlugin(t, &statusRights{})
			err := plugin.Validate(t.Context(), attributes(admission.Update, test.user, "status", withStatus(test.change), withStatus(test.old)), nil)
			if allowed := err == nil; allowed != test.want {
				t.Errorf("error %v; want allowed: %t", err, test.want)
			}
		})
	}
}

// A policy in the update of the first activation does not belong to the new interceptor.
func TestPolicyWithTheFirstActivation(t *testing.T) {
	idle := func(s *coordination.EvictionRequestStatus) { s.ActiveInterceptors = nil }
	forbid := func(s *coordination.EvictionRequestStatus) { s.EvictionRequestCancellationPolicy = "Forbid" }
	for _, change := range statusChangesOf(withStatus(forbid), withStatus(idle)) {
		if change.interceptor != "" {
			t.Errorf("%s belongs to %s, want the controller", change.field, change.interceptor)
		}
	}
}

// An activation in the same update does not count: the policy belongs to the previous interceptor.
func TestPolicyBelongsToThePreviousInterceptor(t *testing.T) {
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

// Only the necessary checks are made, and no API calls.
func TestStatusChecks(t *testing.T) {
	intercept := func(name, username string) string { return username + " intercept " + name }
	tests := map[string]struct {
		update, user string
		want         []string
	}{
		"no change":                  {"nothing", nobody, nil},
		"a report":                   {"report", saver, []string{intercept(saver, saver)}},
		"a report with policy":       {"report and policy", saver, []string{intercept(saver, saver)}},
		"a report of another":        {"report of another", saver, []string{intercept(moved, saver), "saver.example.com control"}},
		"a field of the controller":  {"Evicted", controller, []string{"controller control"}},
		"interceptors are skipped":   {"skipped", escalator, []string{"escalator escalate"}},
		"skipped by the controller":  {"skipped", controller, []string{"controller escalate", "controller control"}},
		"a report by the controller": {"report", controller, []string{intercept(saver, controller), "controller control"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rights := &statusRights{}
			plugin := newStatusPlugin(t, rights)
			_ = plugin.Validate(t.Context(), attributes(admission.Update, test.user, "status", withStatus(statusUpdates[test.update]), withStatus(statusUpdates["nothing"])), nil)
			var checks []string
			for _, a := range rights.checks {
				question := a.User.GetName() + " " + a.Verb
				if a.Verb == "intercept" {
					question += " " + a.Name
				}
				checks = append(checks, question)
			}
			if diff := cmp.Diff(test.want, checks); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
		})
	}
}

// An error of the authorizer is an internal error and not a refusal. The controller continues if
// the other check succeeds.
func TestStatusWhenTheAuthorizerFails(t *testing.T) {
	tests := map[string]struct {
		failing, update, user string
		wantErr               func(error) bool
	}{
		"report":                           {"intercept", "report", saver, apierrors.IsInternalError},
		"skipped":                          {"escalate", "skipped", escalator, apierrors.IsInternalError},
		"skipped, by the controller":       {"escalate", "skipped", controller, func(err error) bool { return err == nil }},
		"skipped by another":               {"control", "skipped", nobody, apierrors.IsForbidden},
		"report, control fails":            {"control", "report", saver, func(err error) bool { return err == nil }},
		"report, by the controller":        {"intercept", "report", controller, func(err error) bool { return err == nil }},
		"eviction, control fails":          {"control", "Evicted", controller, apierrors.IsInternalError},
		"report of another, control fails": {"control", "report of another", saver, apierrors.IsForbidden},
		"mixed update, intercept fails":    {"intercept", "report and next activation", controller, func(err error) bool { return err == nil }},
	}
	for name, test := range tests {
		plugin := newStatusPlugin(t, &statusRights{failing: test.failing})
		err := plugin.Validate(t.Context(), attributes(admission.Update, test.user, "status", withStatus(statusUpdates[test.update]), withStatus(statusUpdates["nothing"])), nil)
		if !test.wantErr(err) {
			t.Errorf("%s: unexpected error: %v", name, err)
		}
	}
}

// The status strategy does not change metadata and spec. If a change passes all the same, an
// interceptor may not make it. Only the ownership of fields of the status may change.
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
				t.Errorf("error %v; want allowed: %t", err, test.want)
			}
			if !cmp.Equal(before, request) {
				t.Error("the plugin changed an object")
			}
		})
	}
}

// A write of the status in an unexpected form is rejected.
func TestUnknownSubresource(t *testing.T) {
	plugin := newStatusPlugin(t, &statusRights{})
	request := withStatus(statusUpdates["Evicted"])
	for what, unexpected := range map[string]admission.Attributes{
		"another subresource":    attributes(admission.Update, controller, "scale", request, request),
		"creation of the status": attributes(admission.Create, controller, "status", request, nil),
	} {
		if err := plugin.Validate(t.Context(), unexpected, nil); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v, want BadRequest", what, err)
		}
	}
}

// TestConditionsOfTheServer verifies that conditions which kube-apiserver itself has set in an update of an interceptor
// need no permission of that, wherever they are: when the request was stored by an older server, for example.
func TestConditionsOfTheServer(t *testing.T) {
	of := func(types ...string) []metav1.Condition {
		var conditions []metav1.Condition
		for _, conditionType := range types {
			conditions = append(conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue})
		}
		return conditions
	}
	for name, test := range map[string]struct {
		old, updated []metav1.Condition
		denied       bool
	}{
		"added":                     {nil, of("Reconciling"), false},
		"moved":                     {of("Reconciling", "Blocked"), of("Blocked", "Reconciling"), false},
		"another one":               {of("Reconciling"), of("Stalled"), false},
		"with one of a controller":  {of("Reconciling"), of("Reconciling", "Evicted"), true},
		"without one of the others": {of("Reconciling", "Blocked"), of("Reconciling"), true},
	} {
		t.Run(name, func(t *testing.T) {
			old := withStatus(func(s *coordination.EvictionRequestStatus) { s.Conditions = test.old })
			updated := withStatus(func(s *coordination.EvictionRequestStatus) {
				s.Conditions = test.updated
				s.Interceptors[0].Message = "at work"
			})
			err := newStatusPlugin(t, &statusRights{}).Validate(t.Context(), attributes(admission.Update, saver, "status", updated, old), nil)
			if (err != nil) != test.denied {
				t.Errorf("error %v, denied must be %t", err, test.denied)
			}
		})
	}
}
