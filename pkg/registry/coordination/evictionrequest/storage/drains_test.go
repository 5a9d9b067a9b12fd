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
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
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
		// gone is whether the pod is.
		gone bool
	}{
		"the node is drained":            {gate: true, pod: onNode, node: drainedNode(1000)},
		"the node is gone":               {gate: true, pod: onNode, refused: true},
		"the node is not drained":        {gate: true, pod: onNode, node: &api.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, refused: true},
		"its targets do not take it yet": {gate: true, pod: onNode, node: drainedNode(-1), refused: true},
		"the pod has no node":            {gate: true, node: drainedNode(1000), refused: true},
		"the pod is another one":         {gate: true, pod: onNode, uid: anotherUID},
		"the pod is gone":                {gate: true, gone: true},
		"the gate is off":                {gate: false, pod: onNode},
	} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
				features.EvictionRequestAPI: test.gate, features.DeclarativeNodeMaintenance: test.gate,
			})
			c := newCluster(t, 0)
			if !test.gone {
				c.createPod(t, func(pod *api.Pod) {
					pod.Spec.Priority = new(int32)
					if test.pod != nil {
						test.pod(pod)
					}
				})
			}
			if test.node != nil && test.gate {
				c.createNode(t, test.node)
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
				// What is requested already may change when the drain has ended, or nobody could withdraw it.
				if test.node != nil {
					c.deleteNode(t)
				}
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
			_, _, err = c.Update(requestContext("patch", ""), uid, applied(drainRequester), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
			expect("joining it by an apply", err)
			c.cancel(t, uid, "NoRequesters")
			_, _, err = c.Update(requestContext("patch", ""), uid, applied(drainRequester), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
			expect("applying it again", err)
			if got := c.get(t, uid); got.Status.Conditions == nil || isForDrain(got) {
				t.Errorf("the former request was replaced by %+v", got)
			}
		})
	}
}

func (c *cluster) createNode(t *testing.T, node *api.Node) {
	t.Helper()
	if err := c.drains.nodes.objects.Create(context.Background(), "/minions/n1", node, &api.Node{}, 0); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) deleteNode(t *testing.T) {
	t.Helper()
	if err := c.drains.nodes.objects.Delete(context.Background(), "/minions/n1", &api.Node{}, nil, genericstorage.ValidateAllObjectFunc, nil, genericstorage.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// newDrain returns a cluster with a pod on a node that is drained.
func newDrain(t *testing.T, node *api.Node) *cluster {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true,
	})
	c := newCluster(t, time.Hour)
	c.createPod(t, func(pod *api.Pod) { pod.Spec.NodeName, pod.Spec.Priority = "n1", new(int32) })
	c.createNode(t, node)
	return c
}

// join adds the drain to the requesters of the stored request.
func (c *cluster) join(t *testing.T, validation rest.ValidateObjectUpdateFunc) error {
	t.Helper()
	request := c.get(t, targetUID)
	request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: drainRequester})
	_, _, err := c.Update(requestContext("update", ""), targetUID, rest.DefaultUpdatedObjectInfo(request), rest.ValidateAllObjectFunc, validation, false, &metav1.UpdateOptions{})
	return err
}

// The node is read when admission is done, which may have taken half a minute.
func TestDrainsThatEndDuringAdmission(t *testing.T) {
	c := newDrain(t, drainedNode(1000))
	slowly := func(context.Context, runtime.Object) error { c.deleteNode(t); return nil }
	request := newRequest(targetUID)
	request.Spec.Requesters = []coordination.Requester{{Name: drainRequester}}
	if _, err := c.Create(requestContext("create", ""), request, slowly, &metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("got error %v, want a conflict", err)
	}
	if _, err := c.Get(requestContext("get", ""), targetUID, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v for the request, want none to exist", err)
	}
	c.create(t, newRequest(targetUID))
	c.createNode(t, drainedNode(1000))
	if err := c.join(t, func(context.Context, runtime.Object, runtime.Object) error { c.deleteNode(t); return nil }); !apierrors.IsConflict(err) {
		t.Errorf("joining it: got error %v, want a conflict", err)
	}
	// Where admission refuses, that is the answer.
	errForbidden := errors.New("must not evict")
	if err := c.join(t, func(context.Context, runtime.Object, runtime.Object) error { return errForbidden }); !errors.Is(err, errForbidden) {
		t.Errorf("joining it: got error %v, want that of admission", err)
	}
}

// A node that has been read confirms nothing after a former request was removed, which takes time as well.
func TestDrainsThatEndDuringReplacement(t *testing.T) {
	for name, request := range map[string]func(*cluster) error{
		"create": func(c *cluster) error {
			request := newRequest(targetUID)
			request.Spec.Requesters = []coordination.Requester{{Name: drainRequester}}
			_, err := c.Create(requestContext("create", ""), request, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			return err
		},
		"apply": func(c *cluster) error {
			_, _, err := c.Update(requestContext("patch", ""), targetUID, applied(drainRequester), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newDrain(t, drainedNode(1000))
			c.create(t, newRequest(targetUID))
			c.cancel(t, targetUID, "NoRequesters")
			c.drains.nodes.objects = afterRead{c.drains.nodes.objects, func() { c.deleteNode(t) }}
			if err := request(c); !apierrors.IsConflict(err) {
				t.Errorf("got error %v, want a conflict", err)
			}
		})
	}
}

// afterRead does something when an object was read and is there.
type afterRead struct {
	genericstorage.Interface
	do func()
}

func (r afterRead) Get(ctx context.Context, key string, options genericstorage.GetOptions, into runtime.Object) error {
	err := r.Interface.Get(ctx, key, options, into)
	if err == nil {
		r.do()
	}
	return err
}

// A drain joins nothing while it is unknown whether it goes on. The controller tries again.
func TestUnreadableDrains(t *testing.T) {
	elsewhere := coordination.NodeMaintenancePodPolicy{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}, Action: coordination.NodeMaintenancePodSkip,
	}
	invalid := coordination.NodeMaintenancePodPolicy{PodSelector: nearA, Action: coordination.NodeMaintenancePodSkip}
	for name, test := range map[string]struct {
		node        *api.Node
		maintenance *coordination.NodeMaintenance
		fail        func(*cluster)
		want        string
	}{
		"the pod":         {node: drainedNode(1000), fail: func(c *cluster) { c.drains.pods.objects = unreadable{} }, want: `reading pod "web-0"`},
		"the node":        {node: drainedNode(1000), fail: func(c *cluster) { c.drains.nodes.objects = unreadable{} }, want: `reading the maintenance of node "n1"`},
		"the maintenance": {node: admittedNode(), fail: func(c *cluster) { c.drains.maintenances.objects = unreadable{} }, want: `reading the maintenance of node "n1"`},
		"the targets":     {node: invalidNode(), fail: func(*cluster) {}, want: "status.maintenanceStatus.drainTargets"},
		"its policies":    {node: admittedNode(), maintenance: draining("m", "m", invalid), fail: func(*cluster) {}, want: `NodeMaintenance "m"`},
		"the namespace": {
			node: admittedNode(), maintenance: draining("m", "m", elsewhere), fail: func(c *cluster) { c.drains.namespaces.objects = unreadable{} }, want: `NodeMaintenance "m"`,
		},
		"that of a shutdown": {node: admittedNode(), fail: func(c *cluster) {
			c.drains.maintenances.objects = oneUnreadable{c.drains.maintenances.objects, "/graceful-shutdown-n1"}
		}, want: `reading the maintenance of node "n1"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newDrain(t, test.node)
			if test.maintenance != nil {
				if err := c.drains.maintenances.objects.Create(t.Context(), "/nodemaintenances/"+test.maintenance.Name, test.maintenance, &coordination.NodeMaintenance{}, 0); err != nil {
					t.Fatal(err)
				}
			}
			c.create(t, newRequest(targetUID))
			test.fail(c)
			if err := c.join(t, rest.ValidateAllObjectUpdateFunc); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one about %s", err, test.want)
			}
		})
	}
}

// admittedNode is drained by a maintenance that has begun with it.
func admittedNode() *api.Node {
	node := drainedNode(1000)
	node.Status.MaintenanceStatus.Admissions = []api.MaintenanceAdmission{{MaintenanceName: "m", MaintenanceUID: "m"}}
	return node
}

// invalidNode has a target that takes the pod, and one that cannot be read.
func invalidNode() *api.Node {
	node := drainedNode(1000)
	targets := &node.Status.MaintenanceStatus.DrainTargets
	*targets = append(*targets, api.DrainPlanEntry{
		PodType: api.PodTypeDefault, PodSelector: nearA,
	})
	return node
}

// nearA is a selector that a later version of the API may know.
var nearA = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}

// unreadable has objects that cannot be read.
type unreadable struct{ genericstorage.Interface }

func (unreadable) Get(context.Context, string, genericstorage.GetOptions, runtime.Object) error {
	return errBroken
}

// oneUnreadable has one object that cannot be read.
type oneUnreadable struct {
	genericstorage.Interface
	suffix string
}

func (u oneUnreadable) Get(ctx context.Context, key string, options genericstorage.GetOptions, into runtime.Object) error {
	if strings.HasSuffix(key, u.suffix) {
		return errBroken
	}
	return u.Interface.Get(ctx, key, options, into)
}

// Each connection to etcd is closed. The reader of targets, which has that of pods, is destroyed as well.
func TestDestroyReaders(t *testing.T) {
	c := newDrain(t, drainedNode(1000))
	var destroyed []string
	for name, reader := range map[string]*reader{
		"targets": c.targets.reader, "pods": c.drains.pods.reader, "nodes": c.drains.nodes, "maintenances": c.drains.maintenances, "namespaces": c.drains.namespaces,
	} {
		destroy := reader.destroy
		reader.destroy = func() { destroyed = append(destroyed, name); destroy() }
	}
	c.Destroy()
	slices.Sort(destroyed)
	if want := []string{"maintenances", "namespaces", "nodes", "pods", "targets"}; !slices.Equal(destroyed, want) {
		t.Errorf("destroyed the readers of %v, want %v", destroyed, want)
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
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true, features.NodeMaintenanceBudgets: true,
	})
	const mine = maintenanceUID
	ended := func(change func(*coordination.NodeMaintenance)) *coordination.NodeMaintenance {
		m := draining("m", mine)
		change(m)
		return m
	}
	completed := func(name string) *coordination.NodeMaintenance {
		m := draining(name, "completed")
		m.Spec.Stage = coordination.NodeMaintenanceStageComplete
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
	returning := begun("m", mine)
	returning.ReturningTime = &metav1.Time{Time: time.Unix(2, 0)}
	c := newCluster(t, 0)
	c.createPod(t, func(pod *api.Pod) { pod.Spec.NodeName, pod.Spec.Priority = "n1", new(int32) })
	prod := &api.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{"env": "prod"}}}
	for name, test := range map[string]struct {
		admissions   []api.MaintenanceAdmission
		maintenances []*coordination.NodeMaintenance
		// orphaned is whether the namespace of the pod is unknown.
		orphaned bool
		// givenBack is the value of the annotation that says for which maintenance the work on the node is done.
		givenBack string
		refused   string
	}{
		"it drains":                    {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine)}},
		"unknown":                      {},
		"it is gone":                   {admissions: []api.MaintenanceAdmission{begun("m", mine)}, refused: "does not drain"},
		"another one has its name":     {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", "another")}, refused: "does not drain"},
		"it is done with the node":     {admissions: []api.MaintenanceAdmission{done}},
		"the node comes back":          {admissions: []api.MaintenanceAdmission{returning}, maintenances: []*coordination.NodeMaintenance{draining("m", mine)}, refused: "does not drain"},
		"somebody gives the node back": {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine)}, givenBack: mine, refused: "does not drain"},
		"it was given back before":     {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine)}, givenBack: "former"},
		"given back, another one drains": {
			admissions:   []api.MaintenanceAdmission{begun("n", "n-uid"), begun("m", mine)},
			maintenances: []*coordination.NodeMaintenance{draining("m", mine), draining("n", "n-uid")}, givenBack: "n-uid",
		},
		"it has ended, another one not":   {admissions: []api.MaintenanceAdmission{begun("gone", "gone-uid"), begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine)}},
		"it has ended, the node shuts":    {admissions: []api.MaintenanceAdmission{begun("gone", "gone-uid")}, maintenances: []*coordination.NodeMaintenance{draining("graceful-shutdown-n1", "shutdown")}},
		"the shutdown goes on":            {maintenances: []*coordination.NodeMaintenance{draining("graceful-shutdown-n1", "shutdown")}},
		"the shutdown has ended":          {maintenances: []*coordination.NodeMaintenance{completed("graceful-shutdown-n1")}, refused: `"graceful-shutdown-n1" does not drain`},
		"one has begun without saying so": {maintenances: []*coordination.NodeMaintenance{completed("graceful-shutdown-n1"), draining("m", mine)}},
		"it keeps other pods":             {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine, skip("tier", "y"), in("test"))}},
		"it keeps the pod":                {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine, skip("tier", "x"))}, refused: "podPolicies"},
		"it keeps pods of the namespace":  {admissions: []api.MaintenanceAdmission{begun("m", mine)}, maintenances: []*coordination.NodeMaintenance{draining("m", mine, in("prod"))}, refused: "podPolicies"},
		"it may keep pods of an unknown namespace": {
			admissions:   []api.MaintenanceAdmission{begun("m", mine)},
			maintenances: []*coordination.NodeMaintenance{draining("m", mine, in("test"))}, orphaned: true, refused: "podPolicies",
		},
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
			if test.givenBack != "" {
				node.Annotations = map[string]string{coordinationv1alpha1.NodeDoneAnnotation: test.givenBack}
			}
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
			if !test.orphaned {
				store(c.drains.namespaces, "/namespaces/prod", prod, &api.Namespace{})
			}
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
