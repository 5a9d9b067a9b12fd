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

package storage

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	genericstorage "k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

const drainRequester = "nodemaintenance.k8s.io"

// drainedNode has targets that take pods up to a priority.
func drainedNode(upTo int32) *api.Node {
	return &api.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status: api.NodeStatus{MaintenanceStatus: &api.MaintenanceStatus{DrainTargets: []api.DrainPlanEntry{
			{PodType: api.PodTypeDefault, PodPriority: upTo},
		}}},
	}
}

// The nodemaintenance-controller requests nothing for a drain that has ended while webhooks held its call.
func TestDrainsThatHaveEnded(t *testing.T) {
	onNode := func(pod *api.Pod) { pod.Spec.NodeName = "n1" }
	for name, test := range map[string]struct {
		gate    bool
		pod     func(*api.Pod)
		uid     string
		node    *api.Node
		refused bool
	}{
		"the node is drained":            {gate: true, pod: onNode, node: drainedNode(1000)},
		"the node is gone":               {gate: true, pod: onNode, refused: true},
		"the node is not drained":        {gate: true, pod: onNode, node: &api.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, refused: true},
		"its targets do not take it yet": {gate: true, pod: onNode, node: drainedNode(-1), refused: true},
		"the pod has no node":            {gate: true, node: drainedNode(1000), refused: true},
		"the pod is another one":         {gate: true, pod: onNode, uid: anotherUID},
		"the gate is off":                {gate: false, pod: onNode},
	} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
				features.EvictionRequestAPI: test.gate, features.DeclarativeNodeMaintenance: test.gate,
			})
			c := newCluster(t, 0)
			c.createPod(t, func(pod *api.Pod) {
				pod.Spec.Priority = new(int32)
				if test.pod != nil {
					test.pod(pod)
				}
			})
			if test.node != nil && test.gate {
				if err := c.drains.nodes.objects.Create(context.Background(), "/minions/n1", test.node, &api.Node{}, 0); err != nil {
					t.Fatal(err)
				}
			}
			uid := test.uid
			if uid == "" {
				uid = targetUID
			}
			expect := func(what string, err error) {
				t.Helper()
				switch {
				case !test.refused && err != nil:
					t.Errorf("%s: %v", what, err)
				case test.refused && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), "drainTargets")):
					t.Errorf("%s: got error %v, want a conflict that names the targets", what, err)
				}
			}
			forDrain := func() *coordination.EvictionRequest {
				request := newRequest(uid)
				request.Spec.Requesters = []coordination.Requester{{Name: drainRequester}}
				return request
			}
			for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
				_, err := c.Create(requestContext("create", ""), forDrain(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
				expect("creating it", err)
			}
			if !test.refused {
				// What is requested already is no concern of the drain's.
				request := c.get(t, uid)
				request.Labels["by"] = "another"
				_, err := update(c, "", request)
				expect("changing it", err)
				return
			}
			request := c.create(t, newRequest(uid))
			request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: drainRequester})
			_, err := update(c, "", request)
			expect("joining it", err)
			c.cancel(t, uid, "NoRequesters")
			_, _, err = c.Update(requestContext("patch", ""), uid, applied(drainRequester), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
			expect("applying it again", err)
			if got := c.get(t, uid); got.Status.Conditions == nil || isForDrain(got) {
				t.Errorf("the former request was replaced by %+v", got)
			}
		})
	}
}

// The node is read when admission is done, which may have taken half a minute.
func TestDrainsThatEndDuringAdmission(t *testing.T) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true,
	})
	c := newCluster(t, 0)
	c.createPod(t, func(pod *api.Pod) { pod.Spec.NodeName, pod.Spec.Priority = "n1", new(int32) })
	nodes := c.drains.nodes.objects
	if err := nodes.Create(context.Background(), "/minions/n1", drainedNode(1000), &api.Node{}, 0); err != nil {
		t.Fatal(err)
	}
	slowly := func(context.Context, runtime.Object) error {
		return nodes.Delete(context.Background(), "/minions/n1", &api.Node{}, nil, genericstorage.ValidateAllObjectFunc, nil, genericstorage.DeleteOptions{})
	}
	request := newRequest(targetUID)
	request.Spec.Requesters = []coordination.Requester{{Name: drainRequester}}
	if _, err := c.Create(requestContext("create", ""), request, slowly, &metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("got error %v, want a conflict", err)
	}
	if _, err := c.Get(requestContext("get", ""), targetUID, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v for the request, want none to exist", err)
	}
}

const maintenanceUID = "0a1b2c3d-0000-4000-8000-00000000000a"

// draining is a NodeMaintenance that drains the node, and keeps pods by these policies.
func draining(name string, uid types.UID, policies ...coordination.NodeMaintenancePodPolicy) *coordination.NodeMaintenance {
	return &coordination.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid},
		Spec: coordination.NodeMaintenanceSpec{
			Stage: coordination.NodeMaintenanceStageDrain,
			NodeSelector: &api.NodeSelector{NodeSelectorTerms: []api.NodeSelectorTerm{{
				MatchFields: []api.NodeSelectorRequirement{{Key: "metadata.name", Operator: api.NodeSelectorOpIn, Values: []string{"n1"}}},
			}}},
			PodPolicies: policies,
		},
	}
}

// The targets of a node may be those of a maintenance that has ended while another one, which keeps the pod, goes on. And
// nobody clears them as long as no controller leads.
func TestDrainsByMaintenances(t *testing.T) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true,
	})
	const mine = maintenanceUID
	ended := func(change func(*coordination.NodeMaintenance)) *coordination.NodeMaintenance {
		m := draining("m", mine)
		change(m)
		return m
	}
	skip := func(key, value string) coordination.NodeMaintenancePodPolicy {
		return coordination.NodeMaintenancePodPolicy{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}, Action: coordination.NodeMaintenancePodSkip}
	}
	in := func(environment string) coordination.NodeMaintenancePodPolicy {
		return coordination.NodeMaintenancePodPolicy{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": environment}}, Action: coordination.NodeMaintenancePodWaitCompleted}
	}
	begun := func(name string, uid types.UID) api.MaintenanceAdmission {
		return api.MaintenanceAdmission{MaintenanceName: name, MaintenanceUID: uid, AdmittedTime: metav1.Unix(1, 0)}
	}
	done := begun("done", "done-uid")
	done.DoneTime = &metav1.Time{Time: time.Unix(2, 0)}
	c := newCluster(t, 0)
	c.createPod(t, func(pod *api.Pod) { pod.Spec.NodeName, pod.Spec.Priority = "n1", new(int32) })
	prod := &api.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{"env": "prod"}}}
	if err := c.drains.namespaces.objects.Create(t.Context(), "/namespaces/prod", prod, &api.Namespace{}, 0); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		admissions   []api.MaintenanceAdmission
		maintenances []*coordination.NodeMaintenance
		refused      string
	}{
		"it drains":                      {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine)}},
		"unknown":                        {},
		"it is gone":                     {admissions: []api.MaintenanceAdmission{begun("m", mine)}, refused: "does not drain"},
		"another one has its name":       {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", "another")}, refused: "does not drain"},
		"it is done with the node":       {admissions: []api.MaintenanceAdmission{done}},
		"it has ended, another one not":  {admissions: []api.MaintenanceAdmission{begun("gone", "gone-uid"), begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine)}},
		"it has ended, the node shuts":   {admissions: []api.MaintenanceAdmission{begun("gone", "gone-uid")}, maintenances: []*coordination.NodeMaintenance{draining("graceful-shutdown-n1", "shutdown")}},
		"it keeps other pods":            {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine, skip("tier", "y"), in("test"))}},
		"it keeps the pod":               {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine, skip("tier", "x"))}, refused: "podPolicies"},
		"it keeps pods of the namespace": {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine, in("prod"))}, refused: "podPolicies"},
		"another one keeps the pod": {
			admissions:   []api.MaintenanceAdmission{begun("m", mine), begun("n", "n-uid")},
			maintenances: []*coordination.NodeMaintenance{draining("m", mine), draining("n", "n-uid", skip("tier", "x"))}, refused: "podPolicies",
		},
		"one that has not begun keeps the pod": {
			admissions:   []api.MaintenanceAdmission{begun("m", mine)},
			maintenances: []*coordination.NodeMaintenance{draining("m", mine), draining("n", "n-uid", skip("tier", "x"))},
		},
		"that of a shutdown keeps the pod": {
			admissions:   []api.MaintenanceAdmission{begun("m", mine), begun("graceful-shutdown-n1", "shutdown")},
			maintenances: []*coordination.NodeMaintenance{draining("m", mine), draining("graceful-shutdown-n1", "shutdown", skip("tier", "x"))},
		},
		"it is completed": {
			admissions: []api.MaintenanceAdmission{begun("m", mine)}, refused: "does not drain",
			maintenances: []*coordination.NodeMaintenance{ended(func(m *coordination.NodeMaintenance) { m.Spec.Stage = coordination.NodeMaintenanceStageComplete })},
		},
		"it is being deleted": {
			admissions: []api.MaintenanceAdmission{begun("m", mine)}, refused: "does not drain",
			maintenances: []*coordination.NodeMaintenance{ended(func(m *coordination.NodeMaintenance) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(2, 0)} })},
		},
		"it selects another node": {
			admissions: []api.MaintenanceAdmission{begun("m", mine)}, refused: "does not drain",
			maintenances: []*coordination.NodeMaintenance{ended(func(m *coordination.NodeMaintenance) {
				m.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] = "n2"
			})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := drainedNode(1000)
			node.Status.MaintenanceStatus.Admissions = test.admissions
			store := func(in *reader, key string, obj, none runtime.Object) {
				t.Helper()
				if err := in.objects.Create(t.Context(), key, obj, none.DeepCopyObject(), 0); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := in.objects.Delete(context.Background(), key, none, nil, genericstorage.ValidateAllObjectFunc, nil, genericstorage.DeleteOptions{}); err != nil {
						t.Error(err)
					}
				})
			}
			store(c.drains.nodes, "/minions/n1", node, &api.Node{})
			for _, m := range test.maintenances {
				store(c.drains.maintenances, "/nodemaintenances/"+m.Name, m, &coordination.NodeMaintenance{})
			}
			request := newRequest(targetUID)
			request.Spec.Requesters = []coordination.Requester{{Name: drainRequester}}
			_, err := c.Create(requestContext("create", ""), request, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			switch {
			case test.refused == "" && err != nil:
				t.Error(err)
			case test.refused != "" && (!apierrors.IsConflict(err) || !apierrors.HasStatusCause(err, "EvictionNotDrained") || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("got error %v, want a conflict with this cause and %q", err, test.refused)
			}
		})
	}
}
