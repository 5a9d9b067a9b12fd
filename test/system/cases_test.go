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
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/utils/availability"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
)

const (
	// caseLabel is on the nodes of a case, with its name. Its pods run on these nodes only.
	caseLabel = "case"

	// casesVariable is a regular expression that selects cases by their names.
	casesVariable = "CASES"

	// casesAtOnce is how many cases run at the same time in a cluster: most of the time they wait.
	casesAtOnce = 6

	// caseTimeout is the time in which what a case wants must be so after its commands.
	caseTimeout = time.Minute
)

// TestCases runs drains that went wrong for others. Each case is a public report, or several of the same: the
// state of the cluster that they describe, and what must come of a drain. It runs twice, on the pristine base with kubectl drain, and on the
// fork with a NodeMaintenance. What comes of the first is checked as well: a case that the base handles as well
// shows nothing.
//
// A case is a file in testdata/cases, see publicCase.
func TestCases(t *testing.T) { testCases(ktesting.Init(t)) }
func testCases(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	names, err := regexp.Compile(os.Getenv(casesVariable))
	tCtx.ExpectNoError(err, "the variable %s", casesVariable)
	cases, err := readCases(names)
	tCtx.ExpectNoError(err)
	// Shorter than that of go test, so that the clusters are stopped.
	tCtx = tCtx.WithTimeout(25*time.Minute, "the test took too long")
	stock, ours := &casesRun{cases: cases}, &casesRun{cases: cases}
	run(tCtx, "kubectl drain", func(tCtx ktesting.TContext) {
		stock.cluster = &localcluster.Cluster{Name: "cases-base", Base: p.base, Output: p.output, Bin: p.fork}
		stock.run(tCtx, stockDrain, func(c *publicCase) *way { return &c.Stock })
	})
	run(tCtx, "NodeMaintenance", func(tCtx ktesting.TContext) {
		ours.cluster = &localcluster.Cluster{Name: "cases", Output: p.output, Bin: p.fork}
		ours.run(tCtx, ourDrain, func(c *publicCase) *way { return &c.Ours })
	})
	tCtx.Log(tableOfCases(cases, stock, ours))
}

// casesRun is a run of the cases in one cluster.
type casesRun struct {
	cluster *localcluster.Cluster
	cases   []*publicCase
	// failed has the names of the cases that did not end as they say. mutex guards it.
	mutex  sync.Mutex
	failed map[string]bool
}

// run runs the cases, several at the same time.
func (r *casesRun) run(tCtx ktesting.TContext, byDefault string, of func(*publicCase) *way) {
	tCtx, _ = startCluster(tCtx, r.cluster)
	r.failed = map[string]bool{}
	workqueue.ParallelizeUntil(tCtx, casesAtOnce, len(r.cases), func(i int) {
		c := r.cases[i]
		var failure error
		func() {
			tCtx, finalize := tCtx.WithNamespace(c.name).WithError(&failure)
			defer finalize()
			r.runCase(tCtx, c, of(c), byDefault)
		}()
		if failure != nil {
			tCtx.Errorf("%s: %v", c.name, failure)
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.failed[c.name] = true
		}
	})
}

// runCase creates the objects of a case on nodes of its own, runs the commands, and checks what has come of them.
func (r *casesRun) runCase(tCtx ktesting.TContext, c *publicCase, w *way, byDefault string) {
	tCtx.Helper()
	r.prepare(tCtx, c)
	recorder, err := availability.Start(tCtx, tCtx.Client(), tCtx.Namespace())
	tCtx.ExpectNoError(err)
	from := time.Now()
	exit, output := 0, ""
	for _, command := range c.commands(w, byDefault) {
		if exit != 0 {
			tCtx.Fatalf("exit code %d, but that was not the last command:\n%s", exit, output)
		}
		code, text := r.kubectl(tCtx, c.fill(w.Input), command.args...)
		output += fmt.Sprintf("$ kubectl %s\n%s", strings.Join(command.args, " "), text)
		if !command.mayFail {
			exit = code
		}
	}
	tCtx.WithStep("after the commands, which printed\n" + output).AssertEventually(whileRunning(func(tCtx ktesting.TContext) { w.Want.checkState(tCtx, c) })).
		WithTimeout(caseTimeout).WithPolling(pollInterval).Should(gomega.Succeed())
	to := time.Now()
	record, err := recorder.Stop(tCtx)
	tCtx.ExpectNoError(err)
	w.Want.checkPast(tCtx, exit, output, func(app string) int { return lowest(record, app, from, to) })
}

// kubectl runs kubectl with an input, and returns its exit code and what it printed.
func (r *casesRun) kubectl(tCtx ktesting.TContext, input string, args ...string) (int, string) {
	tCtx.Helper()
	command := r.cluster.Command(tCtx, args...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if command.ProcessState == nil {
		tCtx.ExpectNoError(err, "running kubectl")
	}
	return exitCode(command), string(output)
}

// prepare creates the nodes and the objects of a case, and waits until the pods run.
func (r *casesRun) prepare(tCtx ktesting.TContext, c *publicCase) {
	tCtx.Helper()
	createNamespace(tCtx)
	for i, name := range c.nodes() {
		node := newSimulatedNode(name, fmt.Sprintf("10.%d.%d.0/24", 64+slices.Index(r.cases, c), i), map[string]string{caseLabel: c.name})
		node.Spec.Unschedulable = i > 0 && !c.Open
		create(tCtx, tCtx.Client().CoreV1().Nodes(), node)
		awaitTaint(tCtx, name, node.Spec.Unschedulable)
	}
	uid := ""
	for _, object := range c.objects {
		text, err := object.MarshalJSON()
		tCtx.ExpectNoError(err)
		code, output := r.kubectl(tCtx, strings.ReplaceAll(string(text), uidVariable, uid), "create", "--namespace="+c.name, "-f", "-", "-o", "jsonpath={.metadata.uid}")
		if code != 0 {
			tCtx.Fatalf("creating %s %s: %s", object.GetKind(), object.GetName(), output)
		}
		uid = output
	}
	await(tCtx, "the pods to run, and the budgets to count them", func(tCtx ktesting.TContext) { expectStarted(tCtx, c) })
	for _, name := range c.nodes()[1:] {
		if !c.Open {
			setSchedulable(tCtx, name)
		}
	}
}

// expectStarted fails unless the pods of a case have started, and its budgets have counted them.
func expectStarted(tCtx ktesting.TContext, c *publicCase) {
	pods := listPods(tCtx, labels.Everything())
	if want := c.pods(); len(pods) != want {
		tCtx.Fatalf("there are %d pods, want %d", len(pods), want)
	}
	for i := range pods {
		if pod := &pods[i]; !hasStarted(pod) {
			tCtx.Fatalf("pod %s is %s on node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
	}
	budgets, err := tCtx.Client().PolicyV1().PodDisruptionBudgets(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	for i := range budgets.Items {
		expectCounted(tCtx, &budgets.Items[i], budgets.Items)
	}
}

// hasStarted reports whether a pod is ready, or has ended.
func hasStarted(pod *v1.Pod) bool {
	return serves(pod) || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// expectCounted fails unless a budget has counted its pods, or has said why it cannot. Of several budgets for the
// same pods, the controller of the base counts those of one.
func expectCounted(tCtx ktesting.TContext, budget *policyv1.PodDisruptionBudget, all []policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	tCtx.ExpectNoError(err)
	ready := countReady(listPods(tCtx, selector))
	counted := func(b policyv1.PodDisruptionBudget) bool {
		failed := slices.ContainsFunc(b.Status.Conditions, func(c metav1.Condition) bool { return c.Reason == policyv1.SyncFailedReason })
		return equality.Semantic.DeepEqual(b.Spec.Selector, budget.Spec.Selector) &&
			(failed || b.Status.ObservedGeneration == b.Generation && int(b.Status.CurrentHealthy) == ready)
	}
	if !slices.ContainsFunc(all, counted) {
		tCtx.Fatalf("budget %s has counted %d ready pods, there are %d", budget.Name, budget.Status.CurrentHealthy, ready)
	}
}

func listPods(tCtx ktesting.TContext, selector labels.Selector) []v1.Pod {
	tCtx.Helper()
	pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{LabelSelector: selector.String()})
	tCtx.ExpectNoError(err)
	return pods.Items
}

func countReady(pods []v1.Pod) int {
	ready := 0
	for i := range pods {
		if serves(&pods[i]) {
			ready++
		}
	}
	return ready
}

// setSchedulable makes a node schedulable, and waits until schedulers see it.
func setSchedulable(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	_, err := tCtx.Client().CoreV1().Nodes().Patch(tCtx, name, types.MergePatchType, []byte(`{"spec":{"unschedulable":false}}`), metav1.PatchOptions{})
	tCtx.ExpectNoError(err, "making %s schedulable", name)
	awaitTaint(tCtx, name, false)
}

// awaitTaint waits until a node is Ready, and has no taint but that of unschedulable nodes, or that one.
func awaitTaint(tCtx ktesting.TContext, name string, unschedulable bool) {
	tCtx.Helper()
	await(tCtx, "node "+name, func(tCtx ktesting.TContext) {
		node, err := tCtx.Client().CoreV1().Nodes().Get(tCtx, name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		tainted := slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return taint.Key == v1.TaintNodeUnschedulable })
		notReady := slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return taint.Key == v1.TaintNodeNotReady })
		if !maintenance.IsReady(node) || notReady || tainted != unschedulable {
			tCtx.Fatalf("its taints are %v", node.Spec.Taints)
		}
	})
}

// checkState fails unless the cluster is as wanted.
func (e *expectation) checkState(tCtx ktesting.TContext, c *publicCase) {
	for app, want := range e.Ready {
		if ready := countReady(listPods(tCtx, labels.Set{appLabel: app}.AsSelector())); ready != want {
			tCtx.Errorf("%s has %d ready pods, want %d", app, ready, want)
		}
	}
	for app, want := range e.Left {
		left := slices.DeleteFunc(listPods(tCtx, labels.Set{appLabel: app}.AsSelector()), func(pod v1.Pod) bool { return pod.Spec.NodeName != c.nodes()[0] })
		if len(left) != want {
			tCtx.Errorf("%s has %d pods on the node, want %d", app, len(left), want)
		}
	}
	if want := e.Unschedulable; want != nil {
		node, err := tCtx.Client().CoreV1().Nodes().Get(tCtx, c.nodes()[0], metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if node.Spec.Unschedulable != *want {
			tCtx.Errorf("the node is unschedulable: %t, want %t", node.Spec.Unschedulable, *want)
		}
	}
}

// checkPast fails unless the commands ended and printed as wanted, and no app had too few pods meanwhile.
func (e *expectation) checkPast(tCtx ktesting.TContext, exit int, output string, lowest func(app string) int) {
	tCtx.Helper()
	if exit != e.Exit {
		tCtx.Errorf("exit code %d, want %d", exit, e.Exit)
	}
	for _, text := range e.Says {
		if !strings.Contains(output, text) {
			tCtx.Errorf("it did not print %q", text)
		}
	}
	for _, text := range e.Hides {
		if strings.Contains(output, text) {
			tCtx.Errorf("it printed %q", text)
		}
	}
	for app, want := range e.Lowest {
		if got := lowest(app); got != want {
			tCtx.Errorf("%s had %d ready pods at least, want %d", app, got, want)
		}
	}
	if tCtx.Failed() {
		tCtx.Errorf("the commands printed\n%s", output)
	}
}

// lowest returns the lowest number of ready pods of an app from one time to another.
func lowest(record *availability.Record, app string, from, to time.Time) int {
	ready := availability.Series{}
	if counts, found := record.Apps[app]; found {
		ready = counts.Ready
	}
	least := ready.At(from)
	for _, point := range ready {
		if point.At.After(from) && !point.At.After(to) {
			least = min(least, point.Value)
		}
	}
	return least
}

// tableOfCases has a row for each case.
func tableOfCases(cases []*publicCase, stock, ours *casesRun) string {
	var out bytes.Buffer
	rows := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, "REPORTS\tWHAT\tKUBECTL DRAIN\tNODEMAINTENANCE")
	column := func(r *casesRun, c *publicCase, w *way) string {
		if r.failed[c.name] {
			return "FAILED: not so: " + w.Does
		}
		return w.Does
	}
	for _, c := range cases {
		fmt.Fprintf(rows, "%s\t%s\t%s\t%s\n", strings.Join(c.Reports, ", "), c.Title, column(stock, c, &c.Stock), column(ours, c, &c.Ours))
	}
	rows.Flush() // A buffer never fails.
	return out.String()
}
