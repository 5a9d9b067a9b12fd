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

package nodemaintenance

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
)

// mayEscalate adds the right to escalate the maintenances of these tests, or an error, to others.
type mayEscalate struct {
	*rights
	allowed bool
	err     error
	asked   []authorizer.Attributes
}

func (r *mayEscalate) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() != "escalate" {
		return r.rights.Authorize(ctx, a)
	}
	r.asked = append(r.asked, a)
	if r.allowed {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", r.err
}

func step(after int32, action core.MaintenanceEscalation, apps ...string) coordination.NodeMaintenanceEscalationStep {
	s := coordination.NodeMaintenanceEscalationStep{AfterSeconds: after, Action: action}
	if len(apps) > 0 {
		s.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": apps[0]}}
	}
	return s
}

func ofNamespaces(s coordination.NodeMaintenanceEscalationStep, team string) coordination.NodeMaintenanceEscalationStep {
	s.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	return s
}

func escalating(steps ...coordination.NodeMaintenanceEscalationStep) option {
	return func(maintenance *coordination.NodeMaintenance) { maintenance.Spec.Escalation = steps }
}

// Whoever lets pods be acted on that were not before, or earlier, needs the verb. Everything that gives
// pods more time is free for those who may change the maintenance.
func TestValidateEscalation(t *testing.T) {
	const skip, ignore, force = core.MaintenanceEscalationSkipInterceptors, core.MaintenanceEscalationIgnoreBudgets, core.MaintenanceEscalationForceDelete
	after := func(seconds int32) option { return escalating(step(seconds, skip)) }
	for name, test := range map[string]struct {
		maintenance, old *coordination.NodeMaintenance
		// wantStep is the step that the error names, "" if the change needs no right.
		wantStep string
	}{
		"created without":                {maintenance: newMaintenance()},
		"created with one":               {maintenance: newMaintenance(after(60)), wantStep: "spec.escalation[0] (SkipInterceptors after 60 seconds)"},
		"created with one while Idle":    {maintenance: newMaintenance(after(60), inStage(idle)), wantStep: "spec.escalation[0]"},
		"created with one, as Complete":  {maintenance: newMaintenance(after(60), inStage(complete)), wantStep: "spec.escalation[0]"},
		"deleted":                        {old: newMaintenance(after(60))},
		"set":                            {old: newMaintenance(), maintenance: newMaintenance(after(60)), wantStep: "spec.escalation[0]"},
		"a step added":                   {old: newMaintenance(after(60)), maintenance: newMaintenance(escalating(step(60, skip), step(90, ignore))), wantStep: "spec.escalation[1] (IgnoreBudgets after 90 seconds)"},
		"a stronger step":                {old: newMaintenance(escalating(step(60, ignore))), maintenance: newMaintenance(escalating(step(60, force))), wantStep: "spec.escalation[0] (ForceDelete after 60 seconds)"},
		"a weaker step":                  {old: newMaintenance(escalating(step(60, ignore))), maintenance: newMaintenance(escalating(step(60, skip))), wantStep: "spec.escalation[0] (SkipInterceptors"},
		"earlier":                        {old: newMaintenance(after(60)), maintenance: newMaintenance(after(59)), wantStep: "spec.escalation[0] (SkipInterceptors after 59 seconds)"},
		"other pods":                     {old: newMaintenance(escalating(step(60, skip, "web"))), maintenance: newMaintenance(escalating(step(60, skip, "db"))), wantStep: "spec.escalation[0]"},
		"all pods":                       {old: newMaintenance(escalating(step(60, skip, "web"))), maintenance: newMaintenance(escalating(step(60, skip))), wantStep: "spec.escalation[0]"},
		"other namespaces":               {old: newMaintenance(escalating(ofNamespaces(step(60, skip), "a"))), maintenance: newMaintenance(escalating(ofNamespaces(step(60, skip), "b"))), wantStep: "spec.escalation[0]"},
		"all namespaces":                 {old: newMaintenance(escalating(ofNamespaces(step(60, skip), "a"))), maintenance: newMaintenance(escalating(step(60, skip))), wantStep: "spec.escalation[0]"},
		"other nodes":                    {old: newMaintenance(after(60)), maintenance: newMaintenance(after(60), selecting(zone("a", "b"))), wantStep: "spec.escalation[0]"},
		"more nodes":                     {old: newMaintenance(after(60)), maintenance: newMaintenance(after(60), selecting(zone("a"), zone("b"))), wantStep: "spec.escalation[0]"},
		"other nodes, later":             {old: newMaintenance(after(60)), maintenance: newMaintenance(after(90), selecting(zone("b"))), wantStep: "spec.escalation[0]"},
		"other nodes, without any":       {old: newMaintenance(after(60)), maintenance: newMaintenance(selecting(zone("b")))},
		"fewer nodes":                    {old: newMaintenance(after(60), selecting(zone("b"), zone("a"))), maintenance: newMaintenance(after(60))},
		"fewer nodes, earlier":           {old: newMaintenance(after(60), selecting(zone("b"), zone("a"))), maintenance: newMaintenance(after(59)), wantStep: "spec.escalation[0]"},
		"the same nodes, in other order": {old: newMaintenance(after(60), selecting(zone("b"), zone("a"))), maintenance: newMaintenance(after(60), selecting(zone("a"), zone("b")))},
		"a term that is less strict":     {old: newMaintenance(after(60), selecting(both(zone("a"), notNamed("node-a1")))), maintenance: newMaintenance(after(60)), wantStep: "spec.escalation[0]"},
		"later":                          {old: newMaintenance(after(60)), maintenance: newMaintenance(after(90))},
		"removed":                        {old: newMaintenance(after(60)), maintenance: newMaintenance()},
		"a step removed":                 {old: newMaintenance(escalating(step(60, skip), step(90, ignore))), maintenance: newMaintenance(escalating(step(90, ignore)))},
		"steps in other order":           {old: newMaintenance(escalating(step(60, skip), step(60, ignore))), maintenance: newMaintenance(escalating(step(60, ignore), step(60, skip)))},
		"later, so that the order turns": {old: newMaintenance(escalating(step(60, skip), step(90, ignore))), maintenance: newMaintenance(escalating(step(90, ignore), step(120, skip)))},
		"one step made later, one not":   {old: newMaintenance(escalating(step(60, skip), step(90, ignore))), maintenance: newMaintenance(escalating(step(70, skip), step(80, ignore))), wantStep: "spec.escalation[1]"},
		"another step of the same pods":  {old: newMaintenance(escalating(step(60, skip, "web"), step(90, skip, "db"))), maintenance: newMaintenance(escalating(step(60, skip, "db"))), wantStep: "spec.escalation[0]"},
		"begun":                          {old: newMaintenance(after(60), inStage(cordon)), maintenance: newMaintenance(after(60))},
		"completed":                      {old: newMaintenance(after(60)), maintenance: newMaintenance(after(60), inStage(complete))},
		"another reason":                 {old: newMaintenance(after(60)), maintenance: newMaintenance(after(60), withReason("x"))},
	} {
		t.Run(name, func(t *testing.T) {
			for user, allowed := range map[string]bool{"with": true, "without": false} {
				r := &mayEscalate{rights: newRights(), allowed: allowed}
				err := newPlugin(t, twoZones(), r).Validate(t.Context(), attributes(operationOf(test.maintenance, test.old), userNamed(admin), "", test.maintenance, test.old), nil)
				switch wantErr := test.wantStep != "" && !allowed; {
				case wantErr && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot set "+test.wantStep)):
					t.Errorf("%s the right: %v, want a refusal of %s", user, err, test.wantStep)
				case !wantErr && err != nil:
					t.Errorf("%s the right: %v", user, err)
				}
				if asked := len(r.asked); asked != 0 && test.wantStep == "" || asked != 1 && test.wantStep != "" {
					t.Errorf("%s the right: asked for it %d times", user, asked)
				}
			}
		})
	}
}

func TestEscalationQuestion(t *testing.T) {
	tight := newMaintenance(escalating(step(60, core.MaintenanceEscalationForceDelete)))
	validate := func(r *mayEscalate, username string) error {
		return newPlugin(t, twoZones(), r).Validate(t.Context(), attributes("CREATE", userNamed(username), "", tight, nil), nil)
	}
	r := &mayEscalate{rights: newRights()}
	err := validate(r, admin)
	want := authorizer.AttributesRecord{User: userNamed(admin), Verb: "escalate", APIGroup: "coordination.k8s.io", APIVersion: "v1alpha1", Resource: "nodemaintenances", Name: maintenanceName, ResourceRequest: true}
	if diff := cmp.Diff([]authorizer.Attributes{want}, r.asked); diff != "" {
		t.Errorf("requests to the authorizer (-want +got):\n%s", diff)
	}
	const text = `nodemaintenances.coordination.k8s.io "firmware" is forbidden: user "admin" cannot set spec.escalation[0] (ForceDelete after 60 seconds), or select further nodes while it is set: ` +
		`this requires the verb "escalate" on the resource "nodemaintenances" in API group "coordination.k8s.io"; without it, steps may be removed, and made later`
	if err == nil || err.Error() != text {
		t.Errorf("got %v\nwant %s", err, text)
	}
	if err := validate(&mayEscalate{rights: newRights(), err: errors.New("webhook is away")}, admin); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "spec.escalation[0]") {
		t.Errorf("unexpected error while the authorizer is away: %v", err)
	}
	// The right replaces none of those on nodes.
	if err := validate(&mayEscalate{rights: newRights(), allowed: true}, guest); err == nil || !strings.Contains(err.Error(), deniedZoneA) {
		t.Errorf("a user without rights on nodes: %v", err)
	}
}
