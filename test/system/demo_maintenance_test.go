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

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/utils/availability"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/utils/ptr"
)

const (
	// The name and the reason of the maintenance of the rack.
	maintenanceName   = "rack-7"
	maintenanceReason = "firmware upgrade"

	// The nodes of the rack have this label.
	rackLabel    = "rack"
	rackValue    = "7"
	rackSelector = rackLabel + "=" + rackValue

	// migrator is the interceptor of the pods of db. It works long enough to be seen, and completes
	// soon after the budget no longer blocks.
	migrator      = "migrate.example.com"
	migrationTime = 20 * time.Second
)

var rackNodes = []string{"rack-7-a", "rack-7-b", "rack-7-c"}

// maintenanceDemo drains a rack of three nodes, as an administrator would.
type maintenanceDemo struct {
	*demo

	// drain is what is compared with. recorder watches the shop in ours, shop is the result.
	drain    *kubectlDrain
	recorder *availability.Recorder
	shop     drainResult
}

// TestDemoMaintenance drains three nodes with kubectl maintenance: it shows the blockers, resolves
// one, completes the maintenance, and compares the downtime of an application with a single pod
// with that of kubectl drain.
func TestDemoMaintenance(t *testing.T) { testDemoMaintenance(ktesting.Init(t)) }
func testDemoMaintenance(tCtx ktesting.TContext) {
	tCtx, story := newDemo(tCtx, "maintenance")
	tCtx = story.startInterceptor(tCtx, migrator, migrationTime)
	d := &maintenanceDemo{demo: story}
	d.drain = startKubectlDrain(tCtx, story)
	defer d.drain.end()
	for _, chapter := range []struct {
		title string
		play  func(tCtx ktesting.TContext)
	}{
		{"A rack of three nodes, full of pods", d.fillRack},
		{"What would a drain do, and what would block it?", d.plan},
		{"Drain the rack, and watch", d.start},
		{"What blocks it?", d.showBlockers},
		{"Remove the blocker that does not end by itself", d.release},
		{"The firmware is upgraded: release the nodes", d.complete},
		{"One replica: for how long was shop not available?", d.compare},
	} {
		d.chapter(chapter.title)
		chapter.play(tCtx)
	}
	d.say("\nAll %d checks are ok, after %.0f s.", d.checks, time.Since(d.began).Seconds())
	if d.stays {
		d.say("The cluster stays up:")
		d.say("  export KUBECONFIG=%s", d.cluster.Kubeconfig())
		d.say("  %s maintenance --help", d.cluster.Kubectl())
		d.say("  %s describe nodemaintenance %s", d.cluster.Kubectl(), maintenanceName)
		d.say("  %s get evictionrequests --namespace %s", d.cluster.Kubectl(), tCtx.Namespace())
	}
}

func (d *maintenanceDemo) fillRack(tCtx ktesting.TContext) {
	d.clearRack(tCtx)
	createRackNodes(tCtx, rackNodes...)
	createShop(tCtx)
	apps := tCtx.Client().AppsV1()
	deployments := apps.Deployments(tCtx.Namespace())
	create(tCtx, deployments, newDeployment(newRackPod("web"), 6))
	api := newDeployment(newRackPod("api"), 2)
	api.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	create(tCtx, deployments, api)
	create(tCtx, apps.StatefulSets(tCtx.Namespace()), newStatefulSet(newRackPod("db", migrator), 2))
	dns := newDeployment(newRackPod("dns"), 1)
	dns.Spec.Template.Spec.PriorityClassName = "system-cluster-critical"
	create(tCtx, deployments, dns)
	createBudget(tCtx, "api", "minAvailable: 2", 2)
	d.say(`The nodes are rack-7-a, -b and -c. In namespace %s:
  web   6 pods that may leave at any time
  shop  1 pod behind a Service; a new one takes %s to become ready
  api   2 pods; its PodDisruptionBudget allows no disruption, its strategy no third pod
  db    2 pods; %s moves their data away first (%s)
  dns   1 pod that the others need, of priority system-cluster-critical
`, tCtx.Namespace(), shopStart, migrator, migrationTime)
	d.expect(tCtx, onRack(map[string]int{"web": 6, shop: 1, "api": 2, "db": 2, "dns": 1}), budgetAllowsNone(), shopIsOpen())
}

// clearRack removes what an earlier run has left in the cluster.
func (d *maintenanceDemo) clearRack(tCtx ktesting.TContext) {
	tCtx.Helper()
	old, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Get(tCtx, maintenanceName, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		tCtx.ExpectNoError(err, "reading the NodeMaintenance of an earlier run")
		if old.Spec.Reason != maintenanceReason {
			tCtx.Fatalf("NodeMaintenance %s is not of this demo: delete it, or run the demo on another cluster", maintenanceName)
		}
		d.run(tCtx, "delete", "nodemaintenance", maintenanceName)
	}
	// The nodes are deleted first, so that no pod is scheduled to them.
	d.run(tCtx, "delete", "node", "--selector="+rackSelector)
	d.run(tCtx, "delete", "namespace", "--selector="+demoLabel+"=maintenance", "--field-selector=metadata.name!="+tCtx.Namespace(), "--wait=false")
	await(tCtx, "the pods of an earlier run to be gone", func(tCtx ktesting.TContext) {
		for _, node := range rackNodes {
			pods, err := tCtx.Client().CoreV1().Pods(metav1.NamespaceAll).List(tCtx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
			tCtx.ExpectNoError(err)
			for _, pod := range pods.Items {
				tCtx.ExpectNoError(tCtx.Client().CoreV1().Pods(pod.Namespace).Delete(tCtx, pod.Name, *metav1.NewDeleteOptions(0)))
			}
			expectCount(tCtx, "pods of "+node, len(pods.Items), 0)
		}
	})
}

// plan fails unless the output names the blockers, and nothing is changed.
func (d *maintenanceDemo) plan(tCtx ktesting.TContext) {
	output := d.kubectl(tCtx, "maintenance", "plan", "-l", rackSelector)
	d.expectOutput(tCtx, "it names the budget and the interceptor", output, tCtx.Namespace()+"/api", migrator)
	d.expect(tCtx, nothingChanged())
}

func (d *maintenanceDemo) start(tCtx ktesting.TContext) {
	var err error
	d.recorder, err = availability.Start(tCtx, tCtx.Client(), tCtx.Namespace())
	tCtx.ExpectNoError(err)
	d.shop.from = time.Now()
	d.kubectl(tCtx, "maintenance", "start", "--name="+maintenanceName, "-l", rackSelector, "--reason="+maintenanceReason)
	facts := []fact{rackIsCordoned(), movedAway("web", 6), movedAway(shop, 1), migrating(), blockedByBudget(), notRequested("dns")}
	w := d.watch(tCtx, "maintenance", "watch", maintenanceName)
	awaitFacts(tCtx, facts...)
	pause(tCtx, readingTime)
	w.interrupt()
	w.end(tCtx)
	d.tell(facts...)
}

func (d *maintenanceDemo) showBlockers(tCtx ktesting.TContext) {
	output := d.kubectl(tCtx, "maintenance", "status", maintenanceName)
	d.expectOutput(tCtx, "it names the budget and the interceptor with its ETA", output,
		"PodDisruptionBudget "+tCtx.Namespace()+"/api", migrator, "ETA")
}

// release makes the budget allow disruptions, and watches the drain until it is done.
func (d *maintenanceDemo) release(tCtx ktesting.TContext) {
	// The pods of the highest priority must not be requested before the others have left.
	awaitFacts(tCtx, notRequested("dns"), onRack(map[string]int{"api": 2}))
	scale := []string{"scale", "deployment", "api", "--replicas=3"}
	d.say("With a third pod of api, the budget allows one disruption at a time. In another terminal:\n")
	d.show(append(slices.Clone(scale), "--namespace", tCtx.Namespace())...)
	d.say("")
	w := d.watch(tCtx, "maintenance", "watch", maintenanceName)
	pause(tCtx, 2*time.Second) // For a reader to see it blocked.
	d.run(tCtx, scale...)
	w.end(tCtx)
	d.shop.to = time.Now()
	var err error
	d.shop.record, err = d.recorder.Stop(tCtx)
	tCtx.ExpectNoError(err)
	d.expect(tCtx, drainedRack(), migrated(), movedAway("api", 3), movedAway("db", 2), movedAway("dns", 1))
}

func (d *maintenanceDemo) complete(tCtx ktesting.TContext) {
	d.kubectl(tCtx, "maintenance", "complete", maintenanceName, "--wait")
	d.kubectl(tCtx, "get", "nodes", "-l", rackSelector)
	d.expect(tCtx, rackIsSchedulable(), completed())
}

// createRackNodes creates simulated nodes, and waits until they are schedulable. kwok assigns pods
// addresses of the range of their node: these ranges are below those of test/utils/localcluster.
func createRackNodes(tCtx ktesting.TContext, names ...string) {
	tCtx.Helper()
	for i, name := range names {
		create(tCtx, tCtx.Client().CoreV1().Nodes(), newSimulatedNode(name, fmt.Sprintf("10.63.%d.0/24", i), map[string]string{rackLabel: rackValue}))
	}
	await(tCtx, "the nodes of the rack", func(tCtx ktesting.TContext) { expectSchedulable(tCtx, len(names)) })
}

// newRackPod returns a pod that prefers the nodes of the rack while they are schedulable.
func newRackPod(app string, interceptors ...string) *v1.Pod {
	return preferRack(newScheduledPod(app, interceptors...))
}

func preferRack(pod *v1.Pod) *v1.Pod {
	pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{
		Weight: 100,
		Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: rackLabel, Operator: v1.NodeSelectorOpIn, Values: []string{rackValue}},
		}},
	}}}}
	return pod
}

func listRack(tCtx ktesting.TContext) []v1.Node {
	tCtx.Helper()
	nodes, err := tCtx.Client().CoreV1().Nodes().List(tCtx, metav1.ListOptions{LabelSelector: rackSelector})
	tCtx.ExpectNoError(err)
	return nodes.Items
}

func getMaintenance(tCtx ktesting.TContext) *coordinationv1alpha1.NodeMaintenance {
	tCtx.Helper()
	maintenance, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Get(tCtx, maintenanceName, metav1.GetOptions{})
	tCtx.ExpectNoError(err)
	return maintenance
}

// listRequests returns the eviction requests for pods whose names have a prefix.
func listRequests(tCtx ktesting.TContext, prefix string) []coordinationv1alpha1.EvictionRequest {
	tCtx.Helper()
	requests, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	return slices.DeleteFunc(requests.Items, func(request coordinationv1alpha1.EvictionRequest) bool {
		return !strings.HasPrefix(request.Spec.Target.Pod.Name, prefix)
	})
}
