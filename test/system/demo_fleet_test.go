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

package system

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/utils/ptr"
)

const (
	fleetNodes  = 60
	fleetZones  = 3
	fleetPods   = 2 * fleetNodes
	fleetAtOnce = 6

	fleetLabel  = "pool"
	fleetValue  = "fleet"
	fleetName   = "kernel"
	fleetBudget = "pool"

	// fleetTimeout is longer than what a rebooted node takes until it counts as done: it has to be
	// Ready for 30 s.
	fleetTimeout = 40 * time.Second
)

// fleetDemo upgrades the kernel of a pool of nodes, as an administrator and a technician would.
type fleetDemo struct {
	*demo
	uid types.UID
	// rebooted are the first nodes, which reboot. lost is the one of them that does not come back. All
	// later ones are given back by hand, because each reboot takes 30 s until it counts.
	rebooted sets.Set[string]
	lost     string
	// pods are all that there have been.
	pods sets.Set[types.UID]
	// most is the highest number of cordoned nodes, and zones that of zones with such nodes.
	most, zones int
	byHand      bool
}

// TestDemoFleet drains 60 nodes in three zones, at most 6 at a time and in one zone at a time. Each is
// given back by itself. One does not come back: no further node is drained until somebody says so.
func TestDemoFleet(t *testing.T) { testDemoFleet(ktesting.Init(t)) }
func testDemoFleet(tCtx ktesting.TContext) {
	tCtx, story := newDemoOn(tCtx, "fleet", fleetNodes)
	d := &fleetDemo{demo: story, rebooted: sets.New[string](), pods: sets.New[types.UID]()}
	for _, chapter := range []struct {
		title string
		play  func(tCtx ktesting.TContext)
	}{
		{"60 nodes in three zones, and a budget", d.fill},
		{"A new kernel: six nodes are drained and reboot, one is lost", d.start},
		{"It did not come back: the rollout has halted", d.showHalt},
		{"Tolerate one: the rest of the zone goes on", d.resume},
		{"The lost node is repaired: the other zones", d.repair},
	} {
		d.chapter(chapter.title)
		chapter.play(tCtx)
	}
	d.say("\nAll %d checks are ok, after %.0f s.", d.checks, time.Since(d.began).Seconds())
	if d.stays {
		d.say("The cluster stays up:")
		d.say("  export KUBECONFIG=%s", d.cluster.Kubeconfig())
		d.say("  %s describe nodemaintenancebudget %s", d.cluster.Kubectl(), fleetBudget)
		d.say("  %s explain nodemaintenance.spec.rollout", d.cluster.Kubectl())
	}
}

func (d *fleetDemo) fill(tCtx ktesting.TContext) {
	d.clear(tCtx)
	for i := range fleetNodes {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q,%q:"zone-%c"}}}`, fleetLabel, fleetValue, v1.LabelTopologyZone, 'a'+i%fleetZones)
		name := fmt.Sprintf("node-%d", i)
		_, err := tCtx.Client().CoreV1().Nodes().Patch(tCtx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		tCtx.ExpectNoError(err, "labeling a node")
		boot(tCtx, name) // Simulated nodes have no boot ID.
	}
	create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), newDeployment(newScheduledPod("web"), fleetPods))
	create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets(), &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: fleetBudget},
		Spec: coordinationv1alpha1.NodeMaintenanceBudgetSpec{
			NodeSelector: fleetSelector(), MaxUnavailable: ptr.To(intstr.FromString("10%")),
			Topology: &coordinationv1alpha1.NodeMaintenanceTopology{Key: v1.LabelTopologyZone, MaxDomains: 1},
		},
	})
	d.expect(tCtx, fact{fmt.Sprintf("%d pods run on %d nodes", fleetPods, fleetNodes), func(tCtx ktesting.TContext) {
		expectCount(tCtx, "pods", d.countPods(tCtx), fleetPods)
	}}, fact{"the budget allows 6 of 60 nodes", func(tCtx ktesting.TContext) {
		b, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets().Get(tCtx, fleetBudget, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		expectCount(tCtx, "expected nodes", int(b.Status.ExpectedNodes), fleetNodes)
		expectCount(tCtx, "allowed admissions", int(b.Status.AdmissionsAllowed), fleetAtOnce)
	}})
	d.kubectl(tCtx, "get", "nodemaintenancebudget", fleetBudget, "--output=jsonpath={.spec}{'\\n'}")
}

func fleetSelector() *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: fleetLabel, Operator: v1.NodeSelectorOpIn, Values: []string{fleetValue}}},
	}}}
}

// clear removes what an earlier run has left in the cluster.
func (d *fleetDemo) clear(tCtx ktesting.TContext) {
	tCtx.Helper()
	d.run(tCtx, "delete", "nodemaintenance", fleetName, "--ignore-not-found")
	d.run(tCtx, "delete", "nodemaintenancebudget", fleetBudget, "--ignore-not-found")
	d.run(tCtx, "delete", "namespace", "--selector="+demoLabel+"=fleet", "--field-selector=metadata.name!="+tCtx.Namespace(), "--wait=false")
}

func (d *fleetDemo) start(tCtx ktesting.TContext) {
	m := create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenances(), &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: fleetName},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			NodeSelector: fleetSelector(), Stage: coordinationv1alpha1.NodeMaintenanceStageDrain, Reason: "kernel upgrade",
			DrainPlan: maintenance.StandardPlan(),
			Rollout: &coordinationv1alpha1.NodeMaintenanceRollout{
				MaxConcurrent: ptr.To(intstr.FromInt32(fleetAtOnce)), CompleteNodes: coordinationv1alpha1.NodeCompletionRebooted,
				ReturnTimeoutSeconds: ptr.To(int32(fleetTimeout.Seconds())),
			},
		},
	})
	d.uid = m.UID
	d.kubectl(tCtx, "get", "nodemaintenance", fleetName, "--output=jsonpath={.spec.rollout}{'\\n'}")
	d.say("A drained node reboots: the demo changes its status.nodeInfo.bootID. One does not.\n")
	d.live(tCtx, fact{"one node did not come back in time, which halts the rollout", func(tCtx ktesting.TContext) {
		d.work(tCtx)
		condition := meta.FindStatusCondition(d.get(tCtx).Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionHalted))
		if condition == nil || condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, d.lost) {
			tCtx.Fatalf("not halted: %+v", condition)
		}
	}})
}

// live shows the view of the maintenance until the fact is true.
func (d *fleetDemo) live(tCtx ktesting.TContext, facts ...fact) {
	tCtx.Helper()
	w := d.watch(tCtx, "maintenance", "watch", fleetName)
	awaitFacts(tCtx, facts...)
	w.interrupt()
	w.end(tCtx)
	d.tell(facts...)
}

func (d *fleetDemo) get(tCtx ktesting.TContext) *coordinationv1alpha1.NodeMaintenance {
	tCtx.Helper()
	m, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Get(tCtx, fleetName, metav1.GetOptions{})
	tCtx.ExpectNoError(err)
	return m
}

func (d *fleetDemo) showHalt(tCtx ktesting.TContext) {
	d.kubectl(tCtx, "get", "nodemaintenance", fleetName, "--output=jsonpath={.status.conditions[?(@.type=='Halted')].message}{'\\n'}")
	before := d.get(tCtx).Status.RolloutStatus.AdmittedNodes
	pause(tCtx, 2*readingTime)
	d.expect(tCtx, fact{"five nodes have rebooted and are given back, one has failed", func(tCtx ktesting.TContext) {
		status := d.get(tCtx).Status.RolloutStatus
		expectCount(tCtx, "nodes that are done", int(status.DoneNodes), len(d.rebooted)-1)
		expectCount(tCtx, "failed nodes", int(status.FailedNodes), 1)
		expectCount(tCtx, "admitted nodes", int(status.AdmittedNodes), int(before))
	}})
}

func (d *fleetDemo) resume(tCtx ktesting.TContext) {
	d.kubectl(tCtx, "maintenance", "resume", fleetName)
	d.say("Nodes that are drained are given back by hand now, which is quicker:\n$ kubectl maintenance complete %s NODE...\n", fleetName)
	d.byHand = true
	d.live(tCtx, d.doneAre(fmt.Sprintf("all others of the zone are given back; no other zone has begun, because of %s", d.lost), fleetNodes/fleetZones-1))
}

func (d *fleetDemo) repair(tCtx ktesting.TContext) {
	d.complete(tCtx, d.lost)
	d.live(tCtx, d.doneAre("all nodes are given back", fleetNodes))
	d.expect(tCtx,
		fact{fmt.Sprintf("never more than %d nodes were cordoned, in %d zone at a time", d.most, d.zones), func(tCtx ktesting.TContext) {
			if d.most > fleetAtOnce || d.zones > 1 {
				tCtx.Fatalf("%d nodes in %d zones", d.most, d.zones)
			}
		}},
		fact{"no node is cordoned or tainted", func(tCtx ktesting.TContext) {
			for _, node := range d.listNodes(tCtx) {
				if node.Spec.Unschedulable || len(node.Spec.Taints) > 0 {
					tCtx.Fatalf("node %s: %+v", node.Name, node.Spec)
				}
			}
		}})
	moves := len(d.pods) - fleetPods
	d.say("\n%d pods were moved %d times: %.2f times each.", fleetPods, moves, float64(moves)/fleetPods)
	d.kubectl(tCtx, "delete", "nodemaintenance", fleetName)
	_, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Get(tCtx, fleetName, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		tCtx.Fatalf("the maintenance is not gone: %v", err)
	}
}

// doneAre works until so many nodes are given back.
func (d *fleetDemo) doneAre(what string, count int) fact {
	return fact{what, func(tCtx ktesting.TContext) {
		d.work(tCtx)
		expectCount(tCtx, "nodes that are done", int(d.get(tCtx).Status.RolloutStatus.DoneNodes), count)
	}}
}

func (d *fleetDemo) listNodes(tCtx ktesting.TContext) []v1.Node {
	tCtx.Helper()
	list, err := tCtx.Client().CoreV1().Nodes().List(tCtx, metav1.ListOptions{LabelSelector: fleetLabel + "=" + fleetValue})
	tCtx.ExpectNoError(err)
	return list.Items
}

// work does what technicians do with drained nodes, and counts nodes and pods.
func (d *fleetDemo) work(tCtx ktesting.TContext) {
	tCtx.Helper()
	d.countPods(tCtx)
	cordoned, zones := 0, sets.New[string]()
	var finished []string
	for _, node := range d.listNodes(tCtx) {
		if node.Spec.Unschedulable {
			cordoned++
			zones.Insert(node.Labels[v1.LabelTopologyZone])
		}
		if a := maintenance.AdmissionOf(&node, d.uid); a == nil || a.DrainedTime == nil || a.ReturningTime != nil {
			continue
		}
		switch {
		case d.rebooted.Has(node.Name):
		case len(d.rebooted) < fleetAtOnce:
			d.reboot(tCtx, node.Name)
		default:
			finished = append(finished, node.Name)
		}
	}
	d.most, d.zones = max(d.most, cordoned), max(d.zones, len(zones))
	if d.byHand && len(finished) > 0 {
		d.complete(tCtx, finished...)
	}
}

// reboot gives a node another boot ID, unless it is the first one, which is lost.
func (d *fleetDemo) reboot(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	d.rebooted.Insert(name)
	if d.lost == "" {
		d.lost = name
		return
	}
	boot(tCtx, name)
}

// boot gives a node a new boot ID, as its kubelet does after a reboot.
func boot(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	patch := fmt.Appendf(nil, `{"status":{"nodeInfo":{"bootID":%q}}}`, "boot of "+time.Now().Format(time.RFC3339Nano))
	_, err := tCtx.Client().CoreV1().Nodes().Patch(tCtx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	tCtx.ExpectNoError(err, "booting a node")
}

// complete says that the work on nodes is done.
func (d *fleetDemo) complete(tCtx ktesting.TContext, names ...string) {
	tCtx.Helper()
	d.run(tCtx, slices.Concat([]string{"maintenance", "complete", fleetName}, names)...)
}

// countPods returns how many pods are ready, and remembers all of them.
func (d *fleetDemo) countPods(tCtx ktesting.TContext) int {
	tCtx.Helper()
	pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	ready := 0
	for i := range pods.Items {
		d.pods.Insert(pods.Items[i].UID)
		if serves(&pods.Items[i]) {
			ready++
		}
	}
	return ready
}
