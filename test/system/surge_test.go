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
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/test/utils/availability"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
)

const (
	// drainedNode has all pods at first. They move to the other nodes.
	drainedNode = "node-0"
	nodes       = 3

	// startDelay is the time until a new pod is ready, endDelay the time until an old one is gone.
	// Without them, no gap would be seen.
	startDelay = 2500 * time.Millisecond
	endDelay   = 1500 * time.Millisecond

	// The budget of the StatefulSet allows one disruption.
	statefulSet         = "db"
	statefulSetReplicas = 3
	statefulSetBudget   = 2

	daemonSet = "agent"

	// settleTimeout is the time in which the workloads must settle after a drain, and the DaemonSet
	// must be back after the maintenance.
	settleTimeout = 30 * time.Second
	// quietTime is the time for which the workloads are watched after they have settled.
	quietTime = time.Second

	// lastLines is the number of lines that are printed of the output of a failed drain.
	lastLines = 12

	// drainTimeout limits the drain by a NodeMaintenance. kubectl drain of the base ends after
	// baseTimeout, because some pods block it forever.
	drainTimeout = "--timeout=2m"
	baseTimeout  = "--timeout=20s"
)

// workload is one Deployment with a single replica.
type workload struct {
	name string
	// budget is the rule of its PodDisruptionBudget, empty if it has none.
	budget string
	// held is true if the budget never allows the eviction of its only pod.
	held bool
}

func workloads() []workload {
	var all []workload
	add := func(count int, budget string, held bool) {
		for range count {
			all = append(all, workload{name: fmt.Sprintf("app-%d", len(all)), budget: budget, held: held})
		}
	}
	add(4, "", false)
	add(2, "minAvailable: 1", true)
	add(2, "maxUnavailable: 0", true)
	add(2, "maxUnavailable: 1", false)
	return all
}

// drainResult is the record of a drain.
type drainResult struct {
	way, version string
	// complaint is the end of the output if the node was not drained.
	complaint string
	// from and to are the first and the last moment.
	from, to time.Time
	record   *availability.Record
	// At the end:
	replicaSets []appsv1.ReplicaSet
	deployments []appsv1.Deployment
}

// TestSurge verifies that workloads leave a node without downtime. One node has ten Deployments
// with a single replica each, behind Services, under different budgets, and a StatefulSet under a
// budget. It is drained, once by a NodeMaintenance of the fork, once by kubectl drain on the
// pristine base. The test watches the EndpointSlices, the pods and the conditions of the
// Deployments, and prints for both how long each Service had no ready endpoint.
func TestSurge(t *testing.T) { testSurge(ktesting.Init(t)) }
func testSurge(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	// Shorter than that of go test, so that the clusters are stopped.
	tCtx = tCtx.WithTimeout(15*time.Minute, "the test took too long")
	var results []*drainResult
	drain := func(way string, c localcluster.Cluster, drain func(ktesting.TContext, *localcluster.Cluster, *drainResult)) {
		run(tCtx, way, func(tCtx ktesting.TContext) {
			c.Output, c.Bin, c.Nodes = p.output, p.fork, nodes
			r := &drainResult{way: way}
			drain(startSurge(tCtx, &c, r), &c, r)
			results = append(results, r)
		})
	}
	drain("NodeMaintenance", localcluster.Cluster{Name: "surge"}, func(tCtx ktesting.TContext, c *localcluster.Cluster, r *drainResult) {
		recordDrain(tCtx, c, r, "maintenance", "start", "--name=surge", drainedNode, "--reason=to see how pods leave", "--wait", drainTimeout)
		for _, check := range ourChecks() {
			check.run(tCtx, r)
		}
		run(tCtx, "the DaemonSet is back after the maintenance", func(tCtx ktesting.TContext) { completeMaintenance(tCtx, c, r) })
	})
	drain("kubectl drain", localcluster.Cluster{Name: "surge-base", Base: p.base}, func(tCtx ktesting.TContext, c *localcluster.Cluster, r *drainResult) {
		recordDrain(tCtx, c, r, "drain", drainedNode, "--ignore-daemonsets", baseTimeout)
		// This shows that the recorder sees gaps.
		check{"there is a gap wherever a pod is evicted", noGaps}.run(tCtx, r)
	})
	if len(results) > 0 {
		tCtx.Log(table(results))
		writeRecord(tCtx, filepath.Join(p.output, "surge.json"), results)
	}
}

// startSurge starts a cluster with all workloads on one node. It is stopped after the test.
func startSurge(tCtx ktesting.TContext, c *localcluster.Cluster, r *drainResult) ktesting.TContext {
	tCtx.Helper()
	tCtx.Logf("starting a cluster, with %d Deployments, a StatefulSet and a DaemonSet on %s", len(workloads()), drainedNode)
	tCtx, r.version = startCluster(tCtx, c)
	tCtx = tCtx.WithNamespace("surge")
	createNamespace(tCtx)
	openOthers(tCtx, false)
	createWorkloads(tCtx, r)
	openOthers(tCtx, true)
	return tCtx
}

// openOthers makes the nodes that are not drained schedulable or unschedulable. The taint follows
// later, so by then the scheduler knows as well.
func openOthers(tCtx ktesting.TContext, open bool) {
	tCtx.Helper()
	for i := range nodes {
		if node := fmt.Sprintf("node-%d", i); node != drainedNode {
			patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, !open)
			_, err := tCtx.Client().CoreV1().Nodes().Patch(tCtx, node, types.MergePatchType, patch, metav1.PatchOptions{})
			tCtx.ExpectNoError(err, "making %s schedulable: %t", node, open)
		}
	}
	await(tCtx, "the taints of the nodes", func(tCtx ktesting.TContext) {
		list, err := tCtx.Client().CoreV1().Nodes().List(tCtx, metav1.ListOptions{})
		tCtx.ExpectNoError(err)
		for _, node := range list.Items {
			tainted := slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return taint.Key == v1.TaintNodeUnschedulable })
			if node.Name != drainedNode && tainted == open {
				tCtx.Fatalf("%s is tainted: %t", node.Name, tainted)
			}
		}
	})
}

// createWorkloads waits until all pods are ready, and their Services and budgets have counted them.
func createWorkloads(tCtx ktesting.TContext, r *drainResult) {
	tCtx.Helper()
	apps, core := tCtx.Client().AppsV1(), tCtx.Client().CoreV1()
	for _, w := range workloads() {
		create(tCtx, apps.Deployments(tCtx.Namespace()), newDeployment(newSlowPod(w.name, startDelay, endDelay), 1))
		create(tCtx, core.Services(tCtx.Namespace()), newService(w.name))
	}
	create(tCtx, apps.StatefulSets(tCtx.Namespace()), newStatefulSet(newSlowPod(statefulSet, startDelay, endDelay), statefulSetReplicas))
	create(tCtx, core.Services(tCtx.Namespace()), newService(statefulSet))
	create(tCtx, apps.DaemonSets(tCtx.Namespace()), newDaemonSet(newSlowPod(daemonSet, startDelay, endDelay)))
	await(tCtx, "the workloads to be ready", func(tCtx ktesting.TContext) { expectSettled(tCtx, r) })
	awaitDaemon(tCtx)
	for _, w := range workloads() {
		if w.budget != "" {
			createBudget(tCtx, w.name, w.budget, 1)
		}
	}
	createBudget(tCtx, statefulSet, fmt.Sprintf("minAvailable: %d", statefulSetBudget), statefulSetReplicas)
}

// recordDrain drains the node with kubectl.
func recordDrain(tCtx ktesting.TContext, c *localcluster.Cluster, r *drainResult, args ...string) {
	tCtx.Helper()
	recordCommand(tCtx, r, c.Command(tCtx, args...))
}

// recordCommand drains the node with a command. It records from before the drain until the workloads
// have settled after it.
func recordCommand(tCtx ktesting.TContext, r *drainResult, command *exec.Cmd) {
	tCtx.Helper()
	recorder, err := availability.Start(tCtx, tCtx.Client(), tCtx.Namespace())
	tCtx.ExpectNoError(err)
	r.from = time.Now()
	output, err := command.CombinedOutput()
	took := time.Since(r.from)
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		r.complaint = fmt.Sprintf("%s %s: %v after %.0f s:\n%s", filepath.Base(command.Path), strings.Join(command.Args[1:], " "), err, took.Seconds(), strings.Join(lines[max(0, len(lines)-lastLines):], "\n"))
	}
	// If they do not settle, the checks report why.
	tCtx.WithStep("waiting for the workloads to settle").
		AssertEventually(whileRunning(func(tCtx ktesting.TContext) { expectSettled(tCtx, r) })).
		WithTimeout(settleTimeout).WithPolling(pollInterval).Should(gomega.Succeed())
	time.Sleep(quietTime)
	r.to = time.Now()
	r.record, err = recorder.Stop(tCtx)
	tCtx.ExpectNoError(err)
	if r.complaint == "" {
		tCtx.Logf("drained in %.1f s", took.Seconds())
	} else {
		tCtx.Logf("ended after %.1f s, left on %s: %s", took.Seconds(), drainedNode, strings.Join(stillThere(r), ", "))
	}
}

// expectSettled fails unless the workloads are as required before and after a drain. The DaemonSet
// is checked elsewhere.
func expectSettled(tCtx ktesting.TContext, r *drainResult) {
	apps := tCtx.Client().AppsV1()
	deployments, err := apps.Deployments(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	replicaSets, err := apps.ReplicaSets(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	set, err := apps.StatefulSets(tCtx.Namespace()).Get(tCtx, statefulSet, metav1.GetOptions{})
	tCtx.ExpectNoError(err)
	r.deployments, r.replicaSets = deployments.Items, replicaSets.Items
	for _, problem := range leftScaledUp(r) {
		tCtx.Error(problem)
	}
	for i := range r.deployments {
		d := &r.deployments[i]
		if d.Status.AvailableReplicas != 1 || d.Status.Replicas != 1 {
			tCtx.Errorf("%s has %d pods, %d of them available", d.Name, d.Status.Replicas, d.Status.AvailableReplicas)
		}
		if deploymentutil.GetDeploymentCondition(d.Status, surging) != nil {
			tCtx.Errorf("%s has condition %s", d.Name, surging)
		}
		// This condition is written last.
		progressing := deploymentutil.GetDeploymentCondition(d.Status, appsv1.DeploymentProgressing)
		if progressing == nil || progressing.Reason != deploymentutil.NewRSAvailableReason {
			tCtx.Errorf("%s: condition %s is %v", d.Name, appsv1.DeploymentProgressing, progressing)
		}
	}
	if set.Status.ReadyReplicas != statefulSetReplicas {
		tCtx.Errorf("%s has %d ready pods", statefulSet, set.Status.ReadyReplicas)
	}
	expectEndpoints(tCtx)
}

// expectEndpoints fails unless every pod of a Service is a ready endpoint.
func expectEndpoints(tCtx ktesting.TContext) {
	if ready, want := countEndpoints(tCtx, ""), len(workloads())+statefulSetReplicas; ready != want {
		tCtx.Errorf("%d endpoints are ready, want %d", ready, want)
	}
}

// completeMaintenance releases the node, to which the DaemonSet must return.
func completeMaintenance(tCtx ktesting.TContext, c *localcluster.Cluster, r *drainResult) {
	if r.complaint != "" {
		tCtx.Fatal("the maintenance was not completed: the node was not drained")
	}
	output, err := c.Command(tCtx, "maintenance", "complete", "surge", "--wait").CombinedOutput()
	tCtx.ExpectNoError(err, "completing the maintenance: %s", bytes.TrimSpace(output))
	awaitDaemon(tCtx)
}

// awaitDaemon waits until the DaemonSet has a ready pod on the drained node.
func awaitDaemon(tCtx ktesting.TContext) {
	tCtx.Helper()
	awaitWithin(tCtx, settleTimeout, "the DaemonSet to be on "+drainedNode, func(tCtx ktesting.TContext) {
		pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + drainedNode, LabelSelector: appLabel + "=" + daemonSet})
		tCtx.ExpectNoError(err)
		if len(pods.Items) != 1 || !serves(&pods.Items[0]) {
			tCtx.Fatalf("it has %d pods there", len(pods.Items))
		}
	})
}

// table returns a table that compares the drains.
func table(results []*drainResult) string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "A new pod is ready after %s, an old one gone after %s. Of each drain, from its first moment to its last:\n", startDelay, endDelay)
	header := "DEPLOYMENT\tBUDGET"
	for _, r := range results {
		fmt.Fprintf(&out, "  %s of %s: how long the Service had no ready endpoint, in all\n", r.way, r.version)
		header += "\t|  " + strings.ToUpper(r.way) + "\tLONGEST\tPODS\tLEFT"
	}
	fmt.Fprintln(&out, "  longest: the longest time without a ready endpoint")
	fmt.Fprintln(&out, "  pods: the highest number of pods (and with those that terminate)")
	fmt.Fprintf(&out, "  left: when the pod on %s was gone\n\n", drainedNode)
	rows := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, header)
	for _, w := range workloads() {
		row := w.name + "\t" + cmp.Or(w.budget, "none")
		for _, r := range results {
			gaps, app := r.without(w.name), r.record.Apps[w.name]
			row += fmt.Sprintf("\t|  %.1f s\t%.1f s\t%d (%d)\t%s", availability.Total(gaps).Seconds(), availability.Longest(gaps).Seconds(),
				r.maxPods(w.name), app.Existing.Max(r.from, r.to), r.left(w.name))
		}
		fmt.Fprintln(rows, row)
	}
	rows.Flush() // A buffer never fails.
	return out.String()
}

// drainRecord is the data of a drain that hack/docs draws. Times are in seconds after its start.
type drainRecord struct {
	Way, Version string
	Seconds      float64
	Services     []serviceRecord
}

type serviceRecord struct {
	Name, Budget string
	Gaps         [][2]float64
	Drained      bool
}

// writeRecord writes the records of the Services to a file, for "make pictures".
func writeRecord(tCtx ktesting.TContext, file string, results []*drainResult) {
	tCtx.Helper()
	var drains []drainRecord
	for _, r := range results {
		seconds := func(at time.Time) float64 { return at.Sub(r.from).Seconds() }
		drain := drainRecord{Way: r.way, Version: r.version, Seconds: seconds(r.to)}
		left := r.record.OnNode(drainedNode)
		for _, w := range workloads() {
			service := serviceRecord{Name: w.name, Budget: w.budget}
			for _, gap := range r.without(w.name) {
				service.Gaps = append(service.Gaps, [2]float64{seconds(gap.From), seconds(gap.To)})
			}
			service.Drained = slices.ContainsFunc(left, func(pod *availability.Pod) bool { return pod.App == w.name && pod.Gone != nil })
			drain.Services = append(drain.Services, service)
		}
		drains = append(drains, drain)
	}
	data, err := json.Marshal(drains)
	tCtx.ExpectNoError(err)
	tCtx.ExpectNoError(os.WriteFile(file, data, 0o644))
}

// left returns when the pods of an app on the drained node were gone.
func (r *drainResult) left(app string) string {
	left := "never there"
	for _, pod := range r.record.OnNode(drainedNode) {
		switch {
		case pod.App != app:
		case pod.Gone == nil:
			return fmt.Sprintf("never, in %.0f s", r.to.Sub(r.from).Seconds())
		default:
			left = fmt.Sprintf("%.1f s", pod.Gone.At.Sub(r.from).Seconds())
		}
	}
	return left
}
