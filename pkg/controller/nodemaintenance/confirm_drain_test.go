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
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/confirm"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// What was read of a node serves for its other pods for a second, and for nothing else.
func TestConfirmedDrain(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.createMaintenance("cordon", stageCordon, "a") // It says nothing about the drain.
	f.run(10 * time.Second)
	node := f.node("n")
	specs, _ := f.progress.Selecting(node)
	reads, broken := 0, false
	f.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		reads++
		if !broken {
			return false, nil, nil
		}
		f.clock.Step(write.ReadTimeout)
		return true, nil, apierrors.NewTimeoutError("too slow", 1)
	})
	anotherOrder, anotherCordon := slices.Clone(specs), slices.Clone(specs)
	for i := range specs {
		if specs[i].Drains() {
			anotherOrder[i].UID = "other"
		} else {
			anotherCordon[i].UID = "other"
		}
	}
	gone := false
	f.client.PrependReactor("get", "nodemaintenances", func(clienttesting.Action) (bool, runtime.Object, error) {
		return gone, nil, apierrors.NewNotFound(write.MaintenanceResource, "m")
	})
	anotherNode := node.DeepCopy()
	anotherNode.UID = "other"
	for _, test := range []struct {
		name string
		// age is how old it is; what the step before has read keeps its time if that is not set.
		age    time.Duration
		change func()
		node   *v1.Node
		specs  []progress.Spec
		reads  int
		fails  bool
	}{
		{name: "it is old", age: confirm.LiveDrainAge, reads: 1},
		{name: "it is current", age: confirm.LiveDrainAge - time.Millisecond},
		{name: "the clock was set back", age: -time.Millisecond, reads: 1},
		{name: "the targets did not take the pod yet", change: func() { f.confirm.Assume(node, specs, maintenance.Targets{}, f.Controller.clock.Now()) }, reads: 1},
		{name: "another node of that name", node: anotherNode, reads: 1, fails: true},
		{name: "the node", reads: 1},
		{name: "another maintenance", specs: anotherOrder, fails: true}, // The node is not read.
		{name: "the maintenance", reads: 1},
		{name: "another maintenance that does not drain", specs: anotherCordon},
		{name: "the maintenance is gone", age: confirm.LiveDrainAge, change: func() { gone = true }, fails: true},
		{name: "the maintenance is back", age: confirm.LiveDrainAge, change: func() { gone = false }, reads: 1},
		{name: "it cannot be read", age: confirm.LiveDrainAge, change: func() { broken = true }, reads: 1, fails: true},
		{name: "it could not be read, for another one that has waited", fails: true},
		{name: "it can be read again", age: confirm.LiveDrainAge, change: func() { broken = false }, reads: 1},
	} {
		reads = 0
		if test.age != 0 {
			f.confirm.Age("n", f.Controller.clock.Now().Add(-test.age))
		}
		if test.change != nil {
			test.change()
		}
		if test.node == nil {
			test.node = node
		}
		if test.specs == nil {
			test.specs = specs
		}
		if err := f.confirm.Drain(f.ctx, pod, test.node, test.specs); (err != nil) != test.fails || reads != test.reads {
			t.Errorf("%s: the node is read %d times, want %d; error %v, want one: %t", test.name, reads, test.reads, err, test.fails)
		}
	}
}
