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
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
)

// warnings records the warnings for the user.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

func TestWarnings(t *testing.T) {
	const (
		none         = "spec.nodeSelector currently selects no node; it will also select nodes that match it later"
		all          = "spec.nodeSelector selects all nodes of the cluster (11): evicted pods cannot run on another node, and the cluster may not recover without intervention"
		controlPlane = "spec.nodeSelector selects all control-plane nodes (2): draining them may stop the control plane, and with it the maintenance"
		theOne       = "spec.nodeSelector selects all nodes of the cluster (1): evicted pods cannot run on another node, and the cluster may not recover without intervention"
		missing      = `spec.nodeSelector names nodes "nod-a2", "nod-b2", but there is no Node of that name now; one that is created later is selected too`
		priority     = "spec.drainPlan: podPriority of the entry for Default pods is 0, as it is if it is omitted: the entry selects no pod of a higher priority"
		priorities   = "spec.drainPlan: podPriority of the entry for Default pods with app=db is 0, as it is if it is omitted: the entry selects no pod of a higher priority (so is that of 2 more entries)"
	)
	ofType := func(podType core.PodType, labels map[string]string, priority int32) core.DrainPlanEntry {
		entry := core.DrainPlanEntry{PodType: podType, PodPriority: priority}
		if labels != nil {
			entry.PodSelector = &metav1.LabelSelector{MatchLabels: labels}
		}
		return entry
	}
	misspelt := selecting(named("nod-b2"), named("node-a1"), both(zone("b"), named("node-a1")), named("nod-a2"))
	everything, nothing := selecting(everywhere()), selecting(zone("z"))
	tests := map[string]struct {
		nodes            []*v1.Node // of twoZones if nil
		user             string     // admin if empty
		maintenance, old *coordination.NodeMaintenance
		want             warnings
	}{
		"create, some nodes":                      {maintenance: newMaintenance()},
		"create, all nodes":                       {maintenance: newMaintenance(everything), want: warnings{all, controlPlane}},
		"create, all nodes, Idle":                 {maintenance: newMaintenance(everything, inStage(idle)), want: warnings{all, controlPlane}},
		"create, all workers":                     {maintenance: newMaintenance(selecting(zone("a", "b")))},
		"create, all control-plane nodes":         {maintenance: newMaintenance(selecting(zone("c"))), want: warnings{controlPlane}},
		"create, control plane by name":           {maintenance: newMaintenance(selecting(named("node-c1"), named("node-c2"))), want: warnings{controlPlane}},
		"create, one control-plane node":          {maintenance: newMaintenance(selecting(named("node-c1")))},
		"create, no node":                         {maintenance: newMaintenance(nothing), want: warnings{none}},
		"create, the name of no node":             {maintenance: newMaintenance(selecting(named("node-z"))), want: warnings{none}},
		"create, some names of no node":           {maintenance: newMaintenance(misspelt), want: warnings{missing}},
		"update to some names of no node":         {old: newMaintenance(), maintenance: newMaintenance(misspelt), want: warnings{missing}},
		"another reason, some names of no node":   {old: newMaintenance(misspelt), maintenance: newMaintenance(misspelt, withReason("x"))},
		"create, priority 0":                      {maintenance: newMaintenance(withPlan(ofType(core.PodTypeDefault, nil, 0), ofType(core.PodTypeDefault, nil, 5))), want: warnings{priority}},
		"create, several priorities 0":            {maintenance: newMaintenance(withPlan(ofType(core.PodTypeDefault, map[string]string{"app": "db"}, 0), ofType(core.PodTypeDefault, nil, 0), ofType(core.PodTypeStatic, nil, 0))), want: warnings{priorities}},
		"create, other priorities":                {maintenance: newMaintenance(withPlan(ofType(core.PodTypeDefault, nil, -1), ofType(core.PodTypeDefault, nil, 1)))},
		"start, priority 0":                       {old: newMaintenance(inStage(idle), withPlan(ofType(core.PodTypeDefault, nil, 0))), maintenance: newMaintenance(withPlan(ofType(core.PodTypeDefault, nil, 0)))},
		"create, all but the names match":         {maintenance: newMaintenance(selecting(both(zone("b"), named("node-a1")))), want: warnings{none}},
		"create, one node is all":                 {nodes: []*v1.Node{newNode("node-a1", "a")}, maintenance: newMaintenance(), want: warnings{theOne}},
		"create, no nodes at all":                 {nodes: []*v1.Node{}, maintenance: newMaintenance(everything), want: warnings{none}},
		"create, forbidden":                       {user: guest, maintenance: newMaintenance(everything)},
		"update to all nodes":                     {old: newMaintenance(), maintenance: newMaintenance(everything), want: warnings{all, controlPlane}},
		"update to no node":                       {old: newMaintenance(), maintenance: newMaintenance(nothing), want: warnings{none}},
		"update from all to some":                 {old: newMaintenance(everything), maintenance: newMaintenance()},
		"start with all nodes":                    {old: newMaintenance(everything, inStage(idle)), maintenance: newMaintenance(everything, inStage(cordon)), want: warnings{all, controlPlane}},
		"start with no node":                      {old: newMaintenance(nothing, inStage(idle)), maintenance: newMaintenance(nothing), want: warnings{none}},
		"continue with all nodes":                 {old: newMaintenance(everything, inStage(cordon)), maintenance: newMaintenance(everything)},
		"complete with all nodes":                 {old: newMaintenance(everything), maintenance: newMaintenance(everything, inStage(complete))},
		"another reason, all nodes, still Idle":   {old: newMaintenance(everything, inStage(idle)), maintenance: newMaintenance(everything, inStage(idle), withReason("x"))},
		"housekeeping, all nodes":                 {old: newMaintenance(everything), maintenance: newMaintenance(everything, withMetadata)},
		"delete, all nodes":                       {old: newMaintenance(everything)},
		"update, all nodes before and after":      {old: newMaintenance(everything), maintenance: newMaintenance(selecting(notNamed("no"))), want: warnings{all, controlPlane}},
		"update, forbidden, start with all nodes": {user: guest, old: newMaintenance(everything, inStage(idle)), maintenance: newMaintenance(everything)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			nodes, username := test.nodes, test.user
			if nodes == nil {
				nodes = twoZones()
			}
			if username == "" {
				username = admin
			}
			plugin := newPlugin(t, nodes, newRights())
			var got warnings
			ctx := warning.WithWarningRecorder(t.Context(), &got)
			err := plugin.Validate(ctx, attributes(operationOf(test.maintenance, test.old), userNamed(username), "", test.maintenance, test.old), nil)
			if (err != nil) != (username == guest) {
				t.Errorf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
