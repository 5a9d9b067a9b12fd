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
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

const (
	stageIdle     = coordinationv1alpha1.NodeMaintenanceStageIdle
	stageCordon   = coordinationv1alpha1.NodeMaintenanceStageCordon
	stageDrain    = coordinationv1alpha1.NodeMaintenanceStageDrain
	stageComplete = coordinationv1alpha1.NodeMaintenanceStageComplete
)

// drains returns the state of the drain of each named node or maintenance, in one line each.
func (f *fixture) drains(names ...string) map[string]string {
	f.t.Helper()
	drains := map[string]string{}
	for _, name := range names {
		if node, err := f.nodeLister.Get(name); err == nil {
			if status := node.Status.MaintenanceStatus; status != nil {
				drains[name] = drainLine(f.t, status.PodsPendingEvictionRequest, status.ActiveEvictionRequests, status.DrainMessage, status.DrainTargets)
			}
			continue
		}
		status := f.maintenance(name).Status.DrainStatus
		drains[name] = drainLine(f.t, status.PodsPendingEvictionRequest, status.ActiveEvictionRequests, status.DrainMessage, status.ReachedDrainTargets)
	}
	return drains
}

func drainLine(t testing.TB, pending, active int32, message string, entries []v1.DrainPlanEntry) string {
	t.Helper()
	targets, err := maintenance.NewTargets(entries)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d/%d %s %s", pending, active, message, targets)
}

func (f *fixture) expectDrains(state string, want map[string]string) {
	f.t.Helper()
	f.settle()
	var names []string
	for name := range want {
		names = append(names, name)
	}
	if diff := cmp.Diff(want, f.drains(names...)); diff != "" {
		f.t.Errorf("%s (-want, +got):\n%s", state, diff)
	}
}

// TestKEPExample follows the states in the KEP's section "Pod Selection and DrainTargets
// Example".
func TestKEPExample(t *testing.T) {
	f := newFixture(t)
	f.createNode("one", map[string]string{"a": "", "b": "", "c": ""})
	f.createNode("two", map[string]string{"a": ""})
	f.createNode("three", map[string]string{"b": ""})
	oneTo5000, _, _ := f.createPods(10, "one", 5000), f.createPods(30, "one", 10000), f.createPods(70, "one", 20000)
	twoTo5000, _, _ := f.createPods(7, "two", 4000), f.createPods(9, "two", 15000), f.createPods(21, "two", 20000)
	threeTo10000, _ := f.createPods(25, "three", 9000), f.createPods(45, "three", 11000)
	complete := func(entries ...v1.DrainPlanEntry) []v1.DrainPlanEntry { return maintenance.CompletePlan(entries) }
	const pod, daemon = v1.PodTypeDefault, v1.PodTypeDaemonSet
	f.createMaintenance("maintenance-a", stageDrain, "a", complete(entry(pod, 5000), entry(pod, 15000), entry(daemon, 3000))...)
	f.createMaintenance("maintenance-b", stageDrain, "b", complete(entry(pod, 10000), entry(pod, 15000), entry(daemon, 4000))...)

	f.expectDrains("the first state", map[string]string{
		"maintenance-a": "130/17 Draining Default<=5000",
		"maintenance-b": "145/35 Draining (limited by maintenance-a) Default<=5000",
		"one":           "100/10 Draining Default<=5000",
		"two":           "30/7 Draining Default<=5000",
		"three":         "45/25 Draining Default<=10000",
	})
	f.deletePods(threeTo10000...)
	f.deletePods(oneTo5000[5:]...)
	f.expectDrains("three waits for one", map[string]string{
		"maintenance-b": "145/5 Draining (limited by maintenance-a) Default<=5000",
		"three":         "45/0 Waiting for maintenance-a. Default<=10000",
	})
	f.deletePods(oneTo5000[:5]...)
	f.deletePods(twoTo5000[2:]...)
	f.expectDrains("one waits for two", map[string]string{
		"maintenance-a": "130/2 Draining Default<=5000",
		"maintenance-b": "145/0 Waiting for maintenance-a. Default<=5000",
		"one":           "100/0 Waiting for maintenance-a. Default<=5000",
		"two":           "30/2 Draining Default<=5000",
		"three":         "45/0 Waiting for maintenance-a. Default<=10000",
	})
	f.deletePods(twoTo5000[:2]...)
	f.expectDrains("the next entry", map[string]string{
		"maintenance-a": "91/39 Draining Default<=10000",
		"maintenance-b": "115/30 Draining Default<=10000",
		"one":           "70/30 Draining (limited by maintenance-b) Default<=10000",
		"two":           "21/9 Draining Default<=15000",
		"three":         "45/0 Waiting for maintenance-b. Default<=10000",
	})

	f.events = nil
	f.clock.Step(time.Minute)
	f.createNode("four", map[string]string{"c": ""})
	f.createPods(5, "four", 2000)
	f.createPods(20, "four", 20000)
	f.createMaintenance("maintenance-c", stageDrain, "c", complete(entry(pod, 2000), entry(pod, 15000))...)
	third := map[string]string{
		"maintenance-c": "90/35 Draining Default<=2000",
		"one":           "70/30 Draining (limited by maintenance-b, maintenance-c) Default<=10000",
		"four":          "20/5 Draining Default<=2000",
	}
	f.expectDrains("a third maintenance", third)
	f.expectEvent("NodeMaintenance maintenance-c: DrainFastForwarded: Fast-forwarded on node one: another maintenance has already drained it up to Default<=10000, and drain targets do not step back")
	f.events = nil
	f.restart()
	f.expectDrains("after a restart", third)
	f.expectNoEvent("DrainFastForwarded")
}

// TestKEPProgression follows the section "PodTypes and Label Selectors Progression".
func TestKEPProgression(t *testing.T) {
	f := newFixture(t)
	f.createNode("five", map[string]string{"a": ""})
	const all = math.MaxInt32
	steps := []struct {
		pod  []*v1.Pod
		want string
	}{
		{f.createPods(1, "five", 1000, ofApp("postgres")), "Default<=1000, Default(app=postgres)<=1000"},
		{f.createPods(1, "five", 2000, ofApp("postgres")), "Default<=1000, Default(app=postgres)<=2000"},
		{f.createPods(1, "five", 2000), "Default<=2147483647, Default(app=postgres)<=2147483647"},
		{f.createPods(1, "five", 1000, daemon), "Default<=2147483647, Default(app=postgres)<=2147483647, DaemonSet<=1000"},
		{f.createPods(1, "five", 1001, daemon), "Default<=2147483647, Default(app=postgres)<=2147483647, DaemonSet<=2147483647"},
		{f.createPods(1, "five", 7, mirror), "Default<=2147483647, Default(app=postgres)<=2147483647, DaemonSet<=2147483647, Static<=2147483647"},
	}
	f.createMaintenance("m", stageDrain, "a", entry(v1.PodTypeDefault, 1000), entryFor("postgres", v1.PodTypeDefault, 2000), entry(v1.PodTypeDefault, all),
		entry(v1.PodTypeDaemonSet, 1000), entry(v1.PodTypeDaemonSet, all), entry(v1.PodTypeStatic, all))
	for i, step := range steps {
		want := fmt.Sprintf("%d/1 Draining %s", len(steps)-1-i, step.want)
		f.expectDrains(fmt.Sprintf("step %d", i), map[string]string{"five": want, "m": want})
		f.deletePods(step.pod...)
	}
	f.expectDrains("the end", map[string]string{"five": "0/0 Drained " + steps[5].want, "m": "0/0 Drained " + steps[5].want})
}

// Maintenances whose plans contradict each other do not wait for each other forever: with the same
// progress the older one goes first, and no pod is evicted that neither wants evicted yet.
func TestContradictingPlans(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": "", "b": ""})
	web, db := f.createPods(1, "n", 0, ofApp("web")), f.createPods(1, "n", 0, ofApp("db"))
	other := f.createPods(1, "n", 0, ofApp("other"))
	f.createMaintenance("older", stageDrain, "a", maintenance.CompletePlan([]v1.DrainPlanEntry{entryFor("web", v1.PodTypeDefault, 5000)})...)
	f.clock.Step(time.Minute)
	f.createMaintenance("younger", stageDrain, "b", maintenance.CompletePlan([]v1.DrainPlanEntry{entryFor("db", v1.PodTypeDefault, 5000)})...)
	f.expectDrains("the first entry of the older one", map[string]string{
		"n":       "2/1 Draining Default(app=web)<=5000",
		"older":   "2/1 Draining Default(app=web)<=5000",
		"younger": "2/1 Draining (limited by older) Default(app=web)<=5000",
	})
	f.deletePods(web...)
	f.expectDrains("then that of the younger one", map[string]string{
		"n":       "1/1 Draining (limited by younger) Default(app=db)<=5000, Default(app=web)<=5000",
		"older":   "1/1 Draining Default(app=db)<=5000, Default(app=web)<=5000",
		"younger": "1/1 Draining Default(app=db)<=5000, Default(app=web)<=5000",
	})
	f.deletePods(db...)
	f.expectDrains("then all pods", map[string]string{
		"n": "0/1 Draining Default<=1000000000, Default(app=db)<=1000000000, Default(app=web)<=1000000000",
	})
	f.deletePods(other...)
	f.settle()
	if stored := f.maintenance("younger").Status; !status.IsDrained(&stored) {
		t.Errorf("not drained: %+v", stored)
	}
}

func (f *fixture) expectEvent(want string) {
	f.t.Helper()
	for _, event := range f.events {
		if event == want {
			return
		}
	}
	f.t.Errorf("no event %q among %q", want, f.events)
}

func (f *fixture) expectNoEvent(reason string) {
	f.t.Helper()
	for _, event := range f.events {
		if strings.Contains(event, ": "+reason+": ") {
			f.t.Errorf("unexpected event %q", event)
		}
	}
}
