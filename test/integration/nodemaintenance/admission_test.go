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
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// TestAdmission uses one API server for all cases. Each case has its own maintenances, and none
// changes the names or labels of nodes.
func TestAdmission(t *testing.T) {
	c := newAdmissionCluster(t)
	tests := []struct {
		name string
		run  func(*testing.T, *admissionCluster)
	}{
		{"permissions on maintenances only", testAdmissionGuest},
		{"permissions on some nodes", testAdmissionZoneAdmin},
		{"permissions on all nodes through a group", testAdmissionFleetAdmin},
		{"writes of the controller need no permission on nodes", testAdmissionHousekeeping},
		{"drain plans are completed", testAdmissionPlans},
		{"a manifest can be applied again", testAdmissionApply},
		{"a manifest can be updated again", testAdmissionPut},
		{"a manifest can be applied after the end", testAdmissionApplyAfterTheEnd},
		{"warnings", testAdmissionWarnings},
		{"kubelets may only maintain their own node", testAdmissionKubelet},
		{"kubelets cannot write the maintenanceStatus of their node", testAdmissionMaintenanceStatus},
		{"other clients that write the status of nodes cannot write the maintenanceStatus", testAdmissionMaintenanceStatusOfOthers},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// testAdmissionGuest tries all ways to start or cancel a drain without permissions on nodes.
func testAdmissionGuest(t *testing.T, c *admissionCluster) {
	const denied = `user "guest@example.com" cannot delete nodes "worker-1", "worker-2", selected by spec.nodeSelector`
	maintenances, dryRun := c.maintenancesOf(admissionGuest), []string{metav1.DryRunAll}
	zoneA := admissionMaintenance("guest-own", admissionZone("a"))

	_, err := maintenances.Create(t.Context(), zoneA, metav1.CreateOptions{})
	admissionExpectDenied(t, "creating", err, denied, `"guest-own" is forbidden`, `requires the verb "delete" on each of its nodes`)
	_, err = maintenances.Create(t.Context(), zoneA, metav1.CreateOptions{DryRun: dryRun})
	admissionExpectDenied(t, "creating, dry run", err, denied)
	_, err = maintenances.Apply(t.Context(), admissionApplied("guest-own"), metav1.ApplyOptions{FieldManager: "guest"})
	admissionExpectDenied(t, "creating by apply", err, denied)
	_, err = maintenances.Create(t.Context(), admissionMaintenance("guest-own", admissionZone("z")), metav1.CreateOptions{})
	admissionExpectDenied(t, "creating for nodes that may be added", err, "cannot delete all nodes", "currently selects no node")
	_, err = maintenances.Create(t.Context(), admissionMaintenance("guest-own", admissionNamed("worker-9")), metav1.CreateOptions{})
	admissionExpectDenied(t, "creating for a node that may be added", err, `cannot delete node "worker-9"`)

	before := c.create(t, admissionMaintenance("guest-foreign", admissionZone("a")))
	for what, patch := range map[string]string{
		"completing it":              `{"spec":{"stage":"Complete"}}`,
		"changing the reason":        `{"spec":{"reason":"mine"}}`,
		"adding a missing owner":     `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"gone","uid":"1"}]}}`,
		"adding a finalizer":         `{"metadata":{"finalizers":["example.com/a"]}}`,
		"completing it with a label": `{"metadata":{"labels":{"a":"b"}},"spec":{"stage":"Complete"}}`,
	} {
		_, err := maintenances.Patch(t.Context(), before.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		admissionExpectDenied(t, what, err, denied)
		_, err = maintenances.Patch(t.Context(), before.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dryRun})
		admissionExpectDenied(t, what+", dry run", err, denied)
	}
	elsewhere := `{"spec":{"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}`
	_, err = maintenances.Patch(t.Context(), before.Name, types.MergePatchType, []byte(elsewhere), metav1.PatchOptions{})
	admissionExpectDenied(t, "selecting nodes that may be added", err, "cannot delete all nodes")
	admissionExpectDenied(t, "deleting", maintenances.Delete(t.Context(), before.Name, metav1.DeleteOptions{}), denied)
	admissionExpectDenied(t, "deleting all", maintenances.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}), denied, `"guest-foreign" is forbidden`)
	if diff := cmp.Diff(before, c.get(t, before.Name)); diff != "" {
		t.Errorf("the maintenance changed (-before +after):\n%s", diff)
	}
	if list, err := c.maintenances().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("maintenances after all requests: %v, %v; must be one", list, err)
	}
}

func testAdmissionZoneAdmin(t *testing.T, c *admissionCluster) {
	maintenances := c.maintenancesOf(admissionZoneAdmin)
	_, err := maintenances.Create(t.Context(), admissionMaintenance("zone-admin", admissionZone("a", "b")), metav1.CreateOptions{})
	admissionExpectDenied(t, "creating for a node of another zone", err, `user "zone-admin@example.com" cannot delete node "worker-3", selected`)
	own, err := maintenances.Create(t.Context(), admissionMaintenance("zone-admin", admissionZone("a")), metav1.CreateOptions{})
	admissionExpectAllowed(t, "creating", err)
	c.endWith(t, "zone-admin")
	own.Spec.NodeSelector.NodeSelectorTerms = append(own.Spec.NodeSelector.NodeSelectorTerms, admissionNamed("worker-3"))
	_, err = maintenances.Update(t.Context(), own, metav1.UpdateOptions{})
	admissionExpectDenied(t, "adding a node", err, `cannot delete node "worker-3"`)

	foreign := c.create(t, admissionMaintenance("zone-admin-foreign", admissionZone("a", "b")))
	foreign.Spec.NodeSelector.NodeSelectorTerms = own.Spec.NodeSelector.NodeSelectorTerms[:1]
	_, err = maintenances.Update(t.Context(), foreign, metav1.UpdateOptions{})
	admissionExpectDenied(t, "removing a node", err, `cannot delete node "worker-3"`)

	// Each object of a collection is checked on its own.
	err = maintenances.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=zone-admin-foreign"})
	admissionExpectDenied(t, "deleting a collection", err, `cannot delete node "worker-3"`, `"zone-admin-foreign" is forbidden`)
	err = maintenances.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=zone-admin"})
	admissionExpectAllowed(t, "deleting its own maintenance", err)
	if _, err := c.maintenances().Get(t.Context(), "zone-admin", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading the deleted one: %v", err)
	}
	c.get(t, foreign.Name)
}

func testAdmissionFleetAdmin(t *testing.T, c *admissionCluster) {
	maintenances := c.maintenancesOf(admissionFleetAdmin)
	created, err := maintenances.Create(t.Context(), admissionMaintenance("fleet", admissionZone("a", "b", "c")), metav1.CreateOptions{})
	admissionExpectAllowed(t, "creating", err)
	c.endWith(t, "fleet")
	created.Spec.NodeSelector.NodeSelectorTerms = []v1.NodeSelectorTerm{admissionZone("z")}
	_, err = maintenances.Update(t.Context(), created, metav1.UpdateOptions{})
	admissionExpectAllowed(t, "selecting nodes that may be added", err)
	admissionExpectAllowed(t, "deleting", maintenances.Delete(t.Context(), "fleet", metav1.DeleteOptions{}))
}

// testAdmissionHousekeeping sends the writes of the controller as a user without permissions on
// nodes.
func testAdmissionHousekeeping(t *testing.T, c *admissionCluster) {
	const name, denied = "housekeeping", `cannot delete nodes "worker-1", "worker-2"`
	maintenances := c.maintenancesOf(admissionGuest)
	patch := func(patch string, subresources ...string) error {
		_, err := maintenances.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		return err
	}
	c.create(t, admissionMaintenance(name, admissionZone("a")))
	admissionExpectAllowed(t, "adding the finalizer", patch(`{"metadata":{"finalizers":["`+coordinationv1alpha1.NodeMaintenanceFinalizer+`"]}}`))
	admissionExpectAllowed(t, "labeling", patch(`{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`))
	admissionExpectAllowed(t, "writing the status", patch(`{"status":{"selectedNodes":2}}`, "status"))
	admissionExpectDenied(t, "removing the finalizer during the drain", patch(`{"metadata":{"finalizers":null}}`), denied)
	admissionExpectDenied(t, "completing", patch(`{"spec":{"stage":"Complete"}}`), denied)

	admissionExpectAllowed(t, "deletion by another user", c.maintenances().Delete(t.Context(), name, metav1.DeleteOptions{}))
	if c.get(t, name).DeletionTimestamp == nil {
		t.Errorf("the maintenance is not being deleted")
	}
	admissionExpectDenied(t, "removing the finalizer before completion", patch(`{"metadata":{"finalizers":null}}`), denied)
	admissionExpectDenied(t, "completing with another reason", patch(`{"spec":{"stage":"Complete","reason":"mine"}}`), denied)
	admissionExpectAllowed(t, "completing a maintenance that is being deleted", patch(`{"spec":{"stage":"Complete"}}`))
	admissionExpectAllowed(t, "removing the finalizer", patch(`{"metadata":{"finalizers":null}}`))
	if _, err := c.maintenances().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading the deleted one: %v", err)
	}
}

// admissionPlan returns the plan of a user: one entry comes before the standard ones, one is a
// standard one, and one comes between them.
func admissionPlan() []v1.DrainPlanEntry {
	return []v1.DrainPlanEntry{
		{PodPriority: 1000, PodType: v1.PodTypeDefault},
		{PodPriority: 2000000000, PodType: v1.PodTypeDefault},
		{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "storage"}}, PodPriority: 2000000000, PodType: v1.PodTypeDaemonSet},
	}
}

// admissionCompletedPlan returns admissionPlan with the missing standard entries.
func admissionCompletedPlan() []v1.DrainPlanEntry {
	standard, plan := maintenance.StandardPlan(), admissionPlan()
	completed := append([]v1.DrainPlanEntry{plan[0]}, standard[:5]...)
	return append(append(completed, plan[2]), standard[5:]...)
}

func testAdmissionPlans(t *testing.T, c *admissionCluster) {
	for name, test := range map[string]struct{ plan, want []v1.DrainPlanEntry }{
		"none":  {nil, maintenance.StandardPlan()},
		"given": {admissionPlan(), admissionCompletedPlan()},
	} {
		t.Run(name, func(t *testing.T) {
			given := admissionMaintenance("plan-"+name, admissionZone("a"))
			given.Spec.DrainPlan = test.plan
			if diff := cmp.Diff(test.want, c.create(t, given).Spec.DrainPlan); diff != "" {
				t.Errorf("drain plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, c.get(t, given.Name).Spec.DrainPlan); diff != "" {
				t.Errorf("stored drain plan (-want +got):\n%s", diff)
			}
		})
	}
	disordered := admissionMaintenance("plan-disordered", admissionZone("a"))
	disordered.Spec.DrainPlan = []v1.DrainPlanEntry{{PodPriority: 2, PodType: v1.PodTypeStatic}, {PodPriority: 1, PodType: v1.PodTypeStatic}}
	_, err := c.maintenances().Create(t.Context(), disordered, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.drainPlan[1]") {
		t.Errorf("creating with a plan out of order: %v, must name spec.drainPlan[1]", err)
	}
}

// admissionApplied returns a manifest for worker-1 and worker-2 with the given plan.
func admissionApplied(name string, plan ...v1.DrainPlanEntry) *coordinationapply.NodeMaintenanceApplyConfiguration {
	zone := coreapply.NodeSelectorRequirement().WithKey(admissionZoneLabel).WithOperator(v1.NodeSelectorOpIn).WithValues("a")
	spec := coordinationapply.NodeMaintenanceSpec().
		WithNodeSelector(coreapply.NodeSelector().WithNodeSelectorTerms(coreapply.NodeSelectorTerm().WithMatchExpressions(zone))).
		WithStage(coordinationv1alpha1.NodeMaintenanceStageDrain)
	for _, given := range plan {
		entry := coreapply.DrainPlanEntry().WithPodPriority(given.PodPriority).WithPodType(given.PodType)
		if given.PodSelector != nil {
			entry.WithPodSelector(metaapply.LabelSelector().WithMatchLabels(given.PodSelector.MatchLabels))
		}
		spec.WithDrainPlan(entry)
	}
	return coordinationapply.NodeMaintenance(name).WithSpec(spec)
}

func testAdmissionApply(t *testing.T, c *admissionCluster) {
	options := metav1.ApplyOptions{FieldManager: "administrator"}
	for name, plan := range map[string][]v1.DrainPlanEntry{"apply-none": nil, "apply-given": admissionPlan()} {
		t.Run(name, func(t *testing.T) {
			created, err := c.maintenances().Apply(t.Context(), admissionApplied(name, plan...), options)
			if err != nil {
				t.Fatalf("applying: %v", err)
			}
			c.endWith(t, name)
			if diff := cmp.Diff(maintenance.CompletePlan(plan), created.Spec.DrainPlan); diff != "" {
				t.Errorf("drain plan (-want +got):\n%s", diff)
			}
			again, err := c.maintenances().Apply(t.Context(), admissionApplied(name, plan...), options)
			if err != nil {
				t.Fatalf("applying again: %v", err)
			}
			if diff := cmp.Diff(created, again); diff != "" {
				t.Errorf("applied again (-first +second):\n%s", diff)
			}
			withReason := admissionApplied(name, plan...)
			withReason.Spec.WithReason("firmware")
			changed, err := c.maintenances().Apply(t.Context(), withReason, options)
			if err != nil {
				t.Fatalf("applying with a reason: %v", err)
			}
			want := created.Spec.DeepCopy()
			want.Reason = "firmware"
			if diff := cmp.Diff(want, &changed.Spec); diff != "" {
				t.Errorf("applied with a reason (-want +got):\n%s", diff)
			}
			_, err = c.maintenances().Apply(t.Context(), admissionApplied(name, v1.DrainPlanEntry{PodPriority: 7, PodType: v1.PodTypeDefault}), options)
			admissionExpectImmutable(t, "applying another plan", err)
		})
	}
	_, err := c.maintenances().Apply(t.Context(), admissionApplied("apply-dropped", admissionPlan()...), options)
	admissionExpectAllowed(t, "applying", err)
	c.endWith(t, "apply-dropped")
	_, err = c.maintenances().Apply(t.Context(), admissionApplied("apply-dropped"), options)
	admissionExpectImmutable(t, "applying without the plan", err)
}

// testAdmissionApplyAfterTheEnd applies a manifest that drains again and again, although somebody has completed the
// maintenance.
func testAdmissionApplyAfterTheEnd(t *testing.T, c *admissionCluster) {
	const name = "apply-ended"
	forced := metav1.ApplyOptions{FieldManager: "administrator", Force: true}
	if _, err := c.maintenances().Apply(t.Context(), admissionApplied(name, admissionPlan()...), forced); err != nil {
		t.Fatalf("applying: %v", err)
	}
	c.endWith(t, name)
	complete := []byte(`{"spec":{"stage":"Complete"}}`)
	if _, err := c.maintenances().Patch(t.Context(), name, types.MergePatchType, complete, metav1.PatchOptions{FieldManager: "kubectl-maintenance"}); err != nil {
		t.Fatalf("completing: %v", err)
	}
	byHand := metav1.PatchOptions{FieldManager: "administrator"}
	patch := func(patchType types.PatchType, patch string) func() error {
		return func() error {
			_, err := c.maintenances().Patch(t.Context(), name, patchType, []byte(patch), byHand)
			return err
		}
	}
	for what, write := range map[string]func() error{
		"applying": func() error {
			_, err := c.maintenances().Apply(t.Context(), admissionApplied(name, admissionPlan()...), forced)
			return err
		},
		"updating": func() error {
			manifest := c.get(t, name)
			manifest.ResourceVersion, manifest.ManagedFields = "", nil
			manifest.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageDrain
			_, err := c.maintenances().Update(t.Context(), manifest, metav1.UpdateOptions{FieldManager: "administrator"})
			return err
		},
		"a merge patch":           patch(types.MergePatchType, `{"spec":{"stage":"Drain"}}`),
		"a strategic merge patch": patch(types.StrategicMergePatchType, `{"spec":{"stage":"Drain"}}`),
		"a JSON patch":            patch(types.JSONPatchType, `[{"op":"replace","path":"/spec/stage","value":"Drain"}]`),
	} {
		t.Run(what, func(t *testing.T) {
			admissionExpectAllowed(t, "the manifest", write())
			ended := c.get(t, name) // The first time, its author may become an owner of the stage.
			if ended.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageComplete || ended.Generation != 2 {
				t.Errorf("stage %s, generation %d", ended.Spec.Stage, ended.Generation)
			}
			admissionExpectAllowed(t, "the manifest, again", write())
			if diff := cmp.Diff(ended, c.get(t, name)); diff != "" {
				t.Errorf("the maintenance changed (-before +after):\n%s", diff)
			}
		})
	}
}

func testAdmissionPut(t *testing.T, c *admissionCluster) {
	for name, plan := range map[string][]v1.DrainPlanEntry{"put-none": nil, "put-given": admissionPlan()} {
		t.Run(name, func(t *testing.T) {
			manifest := admissionMaintenance(name, admissionZone("a"))
			manifest.Spec.DrainPlan = plan
			created := c.create(t, manifest)
			again, err := c.maintenances().Update(t.Context(), manifest.DeepCopy(), metav1.UpdateOptions{})
			if err != nil {
				t.Fatalf("updating with the manifest: %v", err)
			}
			if diff := cmp.Diff(created, again); diff != "" {
				t.Errorf("updated again (-first +second):\n%s", diff)
			}
			_, err = c.maintenances().Update(t.Context(), created.DeepCopy(), metav1.UpdateOptions{})
			admissionExpectAllowed(t, "updating with the object that was read", err)
			// Client-side kubectl apply sends such a patch.
			patch, err := json.Marshal(map[string]any{"spec": manifest.Spec})
			if err != nil {
				t.Fatalf("encoding the manifest: %v", err)
			}
			_, err = c.maintenances().Patch(t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			admissionExpectAllowed(t, "patching with the manifest", err)
			other := manifest.DeepCopy()
			other.Spec.DrainPlan = []v1.DrainPlanEntry{{PodPriority: 7, PodType: v1.PodTypeDefault}}
			_, err = c.maintenances().Update(t.Context(), other, metav1.UpdateOptions{})
			admissionExpectImmutable(t, "updating with another plan", err)
			if diff := cmp.Diff(created, c.get(t, name)); diff != "" {
				t.Errorf("the maintenance changed (-before +after):\n%s", diff)
			}
		})
	}
	given := admissionMaintenance("put-dropped", admissionZone("a"))
	given.Spec.DrainPlan = admissionPlan()
	c.create(t, given)
	given.Spec.DrainPlan = nil
	_, err := c.maintenances().Update(t.Context(), given, metav1.UpdateOptions{})
	admissionExpectImmutable(t, "updating without the plan", err)
}

func admissionExpectImmutable(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.drainPlan") || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("%s: %v, must say that spec.drainPlan is immutable", what, err)
	}
}

func testAdmissionWarnings(t *testing.T, c *admissionCluster) {
	const (
		none         = "spec.nodeSelector currently selects no node; it will also select nodes that match it later"
		all          = "spec.nodeSelector selects all nodes of the cluster (4): evicted pods cannot run on another node, and the cluster may not recover without intervention"
		controlPlane = "spec.nodeSelector selects all control-plane nodes (1): draining them may stop the control plane, and with it the maintenance"
	)
	for name, test := range map[string]struct {
		term v1.NodeSelectorTerm
		want []string
	}{
		"some":          {term: admissionZone("a", "b")},
		"none":          {term: admissionZone("z"), want: []string{none}},
		"all":           {term: admissionZone("a", "b", "c"), want: []string{all, controlPlane}},
		"control-plane": {term: admissionNamed("control-1"), want: []string{controlPlane}},
	} {
		t.Run(name, func(t *testing.T) {
			warnings := &admissionWarnings{}
			client := c.clientOf(admissionFleetAdmin, warnings).CoordinationV1alpha1().NodeMaintenances()
			idle := admissionMaintenance("warnings-"+name, test.term)
			idle.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageIdle
			current, err := client.Create(t.Context(), idle, metav1.CreateOptions{})
			if err != nil {
				t.Fatalf("creating: %v", err)
			}
			c.endWith(t, idle.Name)
			if diff := cmp.Diff(test.want, warnings.texts); diff != "" {
				t.Errorf("warnings on creation (-want +got):\n%s", diff)
			}
			for _, step := range []struct {
				stage coordinationv1alpha1.NodeMaintenanceStage
				want  []string
			}{{coordinationv1alpha1.NodeMaintenanceStageCordon, test.want}, {coordinationv1alpha1.NodeMaintenanceStageDrain, nil}} {
				warnings.texts = nil
				// The update has a resourceVersion, because the server may first apply it to an
				// object in its cache, whose stage may be the previous one.
				current.Spec.Stage = step.stage
				if current, err = client.Update(t.Context(), current, metav1.UpdateOptions{}); err != nil {
					t.Fatalf("setting stage %s: %v", step.stage, err)
				}
				if diff := cmp.Diff(step.want, warnings.texts); diff != "" {
					t.Errorf("warnings on %s (-want +got):\n%s", step.stage, diff)
				}
			}
		})
	}
}

func testAdmissionKubelet(t *testing.T, c *admissionCluster) {
	const denied = `node "worker-1" may create, change and delete only the NodeMaintenance "graceful-shutdown-worker-1" of itself`
	const own = "graceful-shutdown-worker-1"
	maintenances := c.maintenancesOf(admissionKubelet)
	_, err := maintenances.Create(t.Context(), admissionMaintenance("kubelet-own", admissionNamed("worker-1")), metav1.CreateOptions{})
	admissionExpectDenied(t, "creating with another name", err, denied)
	_, err = maintenances.Create(t.Context(), admissionMaintenance("graceful-shutdown-worker-2", admissionNamed("worker-1")), metav1.CreateOptions{})
	admissionExpectDenied(t, "creating with the name for another node", err, denied)
	_, err = maintenances.Create(t.Context(), admissionMaintenance(own, admissionZone("a")), metav1.CreateOptions{})
	admissionExpectDenied(t, "creating by labels", err, denied)
	created, err := maintenances.Create(t.Context(), admissionMaintenance(own, admissionNamed("worker-1")), metav1.CreateOptions{})
	admissionExpectAllowed(t, "creating", err)
	c.endWith(t, own)
	_, err = maintenances.Create(t.Context(), admissionMaintenance("graceful-shutdown-worker-2", admissionNamed("worker-2")), metav1.CreateOptions{})
	admissionExpectDenied(t, "creating for another node", err, denied)

	elsewhere := created.DeepCopy()
	elsewhere.Spec.NodeSelector.NodeSelectorTerms = []v1.NodeSelectorTerm{admissionNamed("worker-2")}
	_, err = maintenances.Update(t.Context(), elsewhere, metav1.UpdateOptions{})
	admissionExpectDenied(t, "selecting another node", err, denied)
	_, err = maintenances.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	admissionExpectDenied(t, "writing the status", err, `node "worker-1" cannot write the subresource "status"`)
	done := created.DeepCopy()
	done.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageComplete
	_, err = maintenances.Update(t.Context(), done, metav1.UpdateOptions{})
	admissionExpectAllowed(t, "completing", err)

	foreign := c.create(t, admissionMaintenance("kubelet-foreign", admissionNamed("worker-1")))
	_, err = maintenances.Patch(t.Context(), foreign.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	admissionExpectDenied(t, "labeling the maintenance of another client", err, denied)
	admissionExpectDenied(t, "deleting the maintenance of another client", maintenances.Delete(t.Context(), foreign.Name, metav1.DeleteOptions{}), denied)
	admissionExpectDenied(t, "deleting all", maintenances.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}), denied)
	c.get(t, foreign.Name)
	if err := maintenances.Delete(t.Context(), own, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("deleting its own: %v", err) // The deletion of all may have deleted it.
	}
}

func testAdmissionMaintenanceStatus(t *testing.T, c *admissionCluster) {
	const denied = `node "worker-1" is not allowed to modify status.maintenanceStatus`
	nodes := c.clientOf(admissionKubelet, nil).CoreV1().Nodes()
	patch := func(patch string, subresources ...string) error {
		_, err := nodes.Patch(t.Context(), "worker-1", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		return err
	}
	const setting = `{"status":{"maintenanceStatus":{"drainMessage":"Drained","podsPendingEvictionRequest":0,"activeEvictionRequests":0}}}`
	admissionExpectDenied(t, "setting it", patch(setting, "status"), denied)
	if _, err := c.client.CoreV1().Nodes().Patch(t.Context(), "worker-1", types.MergePatchType,
		[]byte(`{"status":{"maintenanceStatus":{"drainMessage":"Draining","podsPendingEvictionRequest":1,"activeEvictionRequests":0}}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatalf("setting it as an administrator: %v", err)
	}
	admissionExpectDenied(t, "changing it", patch(setting, "status"), denied)
	admissionExpectDenied(t, "removing it", patch(`{"status":{"maintenanceStatus":null}}`, "status"), denied)
	admissionExpectAllowed(t, "writing another status", patch(`{"status":{"phase":"Running"}}`, "status"))
	node, err := c.client.CoreV1().Nodes().Get(t.Context(), "worker-1", metav1.GetOptions{})
	if err != nil || node.Status.MaintenanceStatus == nil || node.Status.MaintenanceStatus.DrainMessage != "Draining" {
		t.Errorf("maintenanceStatus after all requests: %v, %v", node.Status.MaintenanceStatus, err)
	}
}

// A client that may write the status of nodes could otherwise drain a node, or make a node
// schedulable that was cordoned manually.
func testAdmissionMaintenanceStatusOfOthers(t *testing.T, c *admissionCluster) {
	const denied = `user "agent@example.com" cannot change status.maintenanceStatus, which belongs to the node maintenance controller: this requires the verb "control" on the resource "nodes/status"`
	const setting = `{"status":{"maintenanceStatus":{"drainMessage":"Drained","podsPendingEvictionRequest":0,"activeEvictionRequests":0}}}`
	nodes := c.clientOf(admissionAgent, nil).CoreV1().Nodes()
	patch := func(patch string, patchType types.PatchType, subresources ...string) error {
		_, err := nodes.Patch(t.Context(), "worker-2", patchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		return err
	}
	held := &v1.MaintenanceStatus{DrainMessage: "Draining", PodsPendingEvictionRequest: 1}
	_, err := nodes.Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-9"}, Status: v1.NodeStatus{MaintenanceStatus: held}}, metav1.CreateOptions{})
	admissionExpectDenied(t, "creating a node with it", err, denied)
	admissionExpectDenied(t, "setting it", patch(setting, types.MergePatchType, "status"), denied)
	admissionExpectDenied(t, "setting it by strategic merge patch", patch(setting, types.StrategicMergePatchType, "status"), denied)
	if node, err := nodes.Patch(t.Context(), "worker-2", types.MergePatchType, []byte(setting), metav1.PatchOptions{}); err != nil || node.Status.MaintenanceStatus != nil {
		t.Errorf("setting it through the main resource: %v, %v", node.Status.MaintenanceStatus, err)
	}

	node, err := c.client.CoreV1().Nodes().Get(t.Context(), "worker-2", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.MaintenanceStatus = held
	if node, err = c.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("setting it as an administrator: %v", err)
	}
	admissionExpectDenied(t, "changing it", patch(setting, types.MergePatchType, "status"), denied)
	// A client of a release without the field sends such an update.
	node.Status.MaintenanceStatus, node.Status.Phase = nil, v1.NodeTerminated
	written, err := nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	if err != nil || written.Status.Phase != v1.NodeTerminated {
		t.Fatalf("updating the status without it: %v, %v", written, err)
	}
	if diff := cmp.Diff(held, written.Status.MaintenanceStatus); diff != "" {
		t.Errorf("after an update without it (-want, +got):\n%s", diff)
	}
}
