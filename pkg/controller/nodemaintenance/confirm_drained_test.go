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
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/confirm"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// A node is not drained while the API server has a pod there that the cache has not.
func TestDrainedNodeIsConfirmed(t *testing.T) {
	pod := func(node string, phase v1.PodPhase) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late", UID: "late"}, Spec: v1.PodSpec{NodeName: node}, Status: v1.PodStatus{Phase: phase}}
	}
	for name, test := range map[string]struct {
		pod  *v1.Pod
		want bool
	}{
		"a pod has come":                 {pod("n", v1.PodRunning), false},
		"a pod has come, and has ended":  {pod("n", v1.PodSucceeded), true},
		"a pod has come to another node": {pod("o", v1.PodRunning), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.deliverAll()
			if _, err := f.client.CoreV1().Pods("default").Create(f.ctx, test.pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			lists := 0
			f.client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				// The fixture lists all.
				if action.(clienttesting.ListAction).GetListRestrictions().Fields.String() == "spec.nodeName=n" {
					lists++
				}
				return false, nil, nil
			})
			for range 30 {
				f.deliverNodes()
				f.deliverMaintenances()
				f.runOnCaches(time.Second)
			}
			if c := nodeCondition(f.node("n"), v1.NodeDrained); (c.Status == v1.ConditionTrue) != test.want {
				t.Errorf("got %s, want it to be drained: %t", c.Status, test.want)
			}
			if lists == 0 || lists > 8 {
				t.Errorf("the pods were read %d times in 30 seconds", lists)
			}
			f.run(time.Minute)
			if c := nodeCondition(f.node("n"), v1.NodeDrained); (c.Status == v1.ConditionTrue) != test.want {
				t.Errorf("when the cache has the pod: got %s, want it to be drained: %t", c.Status, test.want)
			}
		})
	}
}

// A maintenance is not drained while the API server has a schedulable node that it selects, and the cache has not.
func TestDrainedMaintenanceIsConfirmed(t *testing.T) {
	uncordon := func(f *fixture) { f.changeNamed("n1", func(node *v1.Node) { node.Spec.Unschedulable = false }) }
	remove := func(f *fixture) {
		if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n1", metav1.DeleteOptions{}); err != nil {
			f.t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		nodes  int
		change func(f *fixture)
		want   bool
	}{
		"nothing has changed":                  {2, func(*fixture) {}, true},
		"a node is uncordoned":                 {2, uncordon, false},
		"a node is uncordoned of some":         {confirm.MaxSingleReads, uncordon, false},
		"a node is uncordoned of many":         {confirm.MaxSingleReads + 1, uncordon, false},
		"nothing has changed, and it has many": {confirm.MaxSingleReads + 1, func(*fixture) {}, true},
		"a node was replaced":                  {2, func(f *fixture) { remove(f); f.createNode("n1", map[string]string{"a": ""}) }, false},
		"a node is gone":                       {2, remove, true},
		"a node is not selected any more": {2, func(f *fixture) {
			f.changeNamed("n1", func(node *v1.Node) { node.Spec.Unschedulable, node.Labels = false, nil })
		}, true},
		"another node is new, and not selected": {2, func(f *fixture) { f.createNode("other", nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for i := range test.nodes {
				f.createNode(fmt.Sprintf("n%d", i), map[string]string{"a": ""})
				f.createPods(1, fmt.Sprintf("n%d", i), 0)
			}
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.run(10 * time.Second)
			f.endRequestedPods()
			for range 20 {
				f.deliverAll()
				if nodeCondition(f.node("n1"), v1.NodeDrained).Status == v1.ConditionTrue {
					break
				}
				f.runOnCaches(time.Second)
			}
			if status.IsDrained(&f.maintenance("m").Status) {
				t.Fatal("it is drained already")
			}
			test.change(f)
			gets, lists := 0, 0
			f.client.PrependReactor("list", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				// The fixture lists all.
				if action.(clienttesting.ListAction).GetListRestrictions().Fields.String() == "spec.unschedulable=false" {
					lists++
				}
				return false, nil, nil
			})
			f.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { gets++; return false, nil, nil })
			for range 20 {
				f.deliverMaintenances()
				for range 3 {
					f.maintenanceQueue.Add("m") // Whatever happens on its nodes does that.
					f.step()
				}
				f.runOnCaches(time.Second)
			}
			if got := status.IsDrained(&f.maintenance("m").Status); got != test.want {
				t.Errorf("drained: %t, want %t", got, test.want)
			}
			if (lists > 0) != (test.nodes > confirm.MaxSingleReads) || lists > 25 || (gets > 0) != (test.nodes <= confirm.MaxSingleReads) || gets > 25*test.nodes {
				t.Errorf("%d nodes were read, and %d times all", gets, lists)
			}
			f.run(20 * time.Second)
			if !status.IsDrained(&f.maintenance("m").Status) {
				t.Errorf("not drained when the cache has it, and the node is cordoned again: %+v", f.maintenance("m").Status)
			}
		})
	}
}

// What another client has done and undone is no event for the cache: the maintenance is looked at again all the same.
func TestDrainedMaintenanceIsConfirmedAgain(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	answers := 0
	f.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		answers++
		return answers == 1, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n", Labels: map[string]string{"a": ""}}}, nil
	})
	f.run(20 * time.Second)
	if !status.IsDrained(&f.maintenance("m").Status) || answers != 2 {
		t.Errorf("after %d answers: %+v", answers, f.maintenance("m").Status)
	}
}

// A node that was given back, and replaced by one that is schedulable too, is another one.
func TestReplacedNodeIsNotDrained(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.deliverAll()
	if err := f.confirm.Drained(f.ctx, f.maintenance("m")); err != nil {
		t.Errorf("the cache has the node as it is: %v", err)
	}
	if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.createNode("n", map[string]string{"a": ""})
	if err := f.confirm.Drained(f.ctx, f.maintenance("m")); !write.IsUnseen(err) {
		t.Errorf("got error %v for another node", err)
	}
}
