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

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/steps"
	"k8s.io/utils/ptr"
)

const (
	// Names of the cases.
	fleetRollout = "one NodeMaintenance with a rollout"
	fleetDrains  = "kubectl drain in a loop"
	fleetFrozen  = "all nodes wait for a freeze"

	// Names of figures with a target.
	movesPerPod    = "pods created per pod"
	writesPerNode  = "writes of nodes, maintenances and budgets"
	fleetWritesMax = 12
	fleetMovesMax  = 1.2

	// podsPerDeployment is how many pods of a fleet belong to one Deployment.
	podsPerDeployment = 1000

	// fleetQPS is the limit of the controller manager here: with the default one, the
	// replicaset-controller replaces 20 pods a second, and that alone would be measured.
	fleetQPS = 5000

	// fleetTimeout is how long the pods of all nodes may take to be created, and the nodes to be given
	// back.
	fleetTimeout = 2 * time.Hour

	replicaSetController = "replicaset-controller"
)

// schedulerConfig makes the scheduler look at 2 percent of the nodes for each pod, at least at 100, and
// not spread the pods of a Deployment: with 5,000 nodes, a pod would take 20 ms of a processor, more than
// everything else that happens when it moves.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: %[2]d, burst: %[2]d}
leaderElection: {leaderElect: false}
percentageOfNodesToScore: 2
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args: {defaultingType: List}
`

// fleetArgs are flags for thousands of nodes with tens of pods each. They name a file, which it writes.
func fleetArgs(opts options) []string {
	local, path := localcluster.Cluster{Name: clusterName, Output: opts.output}, filepath.Join(opts.resultsDir(), "scheduler.yaml")
	config := fmt.Sprintf(schedulerConfig, controlplane.UserKubeconfig(local.Dir(), controlplane.Scheduler), fleetQPS)
	steps.Check(os.WriteFile(path, []byte(config), 0o644), "writing the configuration of the scheduler")
	// Each pod causes some events.
	return append(managerLimits(fleetQPS, fleetQPS), "kube-scheduler:config="+path, openProfiles, "kube-apiserver:event-ttl=5m")
}

// measureFleet measures a rollout over all nodes, so many at a time, each of which is given back as soon
// as it is drained, against kubectl drain and uncordon of the same batches; and what it costs that all
// nodes wait.
func measureFleet(ctx context.Context, opts options, r *report) {
	opts.fleetDrains = min(opts.fleetDrains, opts.fleetNodes)
	rollout := r.table(rowPerCase, "%d nodes with %d pods each, of which %d at a time are drained and given back; kubectl drain of the base: %d of these nodes.\n"+
		"Per node and per pod of the nodes that are drained. The controller manager has --kube-api-qps=%d here.\n"+
		"Writes are those of the nodemaintenance-controller until it has removed the maintenance, refused ones included.",
		opts.fleetNodes, opts.fleetPods, opts.fleetAtOnce, opts.fleetDrains, fleetQPS)
	frozen := r.table(rowPerCase, "A NodeMaintenance over these nodes, and a NodeMaintenanceBudget with maxUnavailable 0.")
	opts.scaleNodes, opts.audited = opts.fleetNodes, auditControllers
	opts.args = append(fleetArgs(opts), opts.args...)
	onScaleCluster(ctx, opts, r, featureGates+laneGate+",NodeMaintenanceBudgets=true", "", func(c *cluster) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		c.reportReady(ctx)
		c.prepareFleet(ctx)
		c.freeze(ctx)
		c.measureRest(ctx, frozen, quiet{fleetFrozen, maintenanceController, by(maintenanceController), c.sleepIdle})
		frozen.want(fleetFrozen, "writes by "+maintenanceController, atMost, 0)
		c.endMaintenances(ctx)
		removeAll(ctx, "budgets", c.setup.CoordinationV1alpha1().NodeMaintenanceBudgets())
		// The rollout is last: after a long one, a controller deletes its requests for an hour.
		c.measureFleetWay(ctx, rollout, fleetDrains, opts.fleetDrains, c.drainInBatches)
		c.measureFleetWay(ctx, rollout, fleetRollout, opts.fleetNodes, c.rollOut)
		rollout.want(fleetRollout, writesPerNode, atMost, fleetWritesMax)
		rollout.want(fleetRollout, movesPerPod, atMost, fleetMovesMax)
	})
}

// reportReady reports pods that are bound to a node as running and ready until the context ends, as
// kubelets do. kwok takes half a processor for as many.
func (c *cluster) reportReady(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	context.AfterFunc(ctx, queue.ShutDown)
	// A pod that is bound is new for this watch.
	watchAll(ctx, c, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Core().V1().Pods().Informer()
	},
		func(pod *v1.Pod) { queue.Add(pod.Name) },
		informers.WithNamespace(namespace), informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = "status.phase=Pending,spec.nodeName!="
		}))
	status := fmt.Appendf(nil, `{"status":{"phase":%q,"conditions":[{"type":%q,"status":%q}]}}`, v1.PodRunning, v1.PodReady, v1.ConditionTrue)
	for range c.opts.parallel {
		go func() {
			for name, shutdown := queue.Get(); !shutdown; name, shutdown = queue.Get() {
				_, err := c.setup.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status")
				if err != nil && !apierrors.IsNotFound(err) {
					queue.AddRateLimited(name)
				} else {
					queue.Forget(name)
				}
				queue.Done(name)
			}
		}()
	}
}

// prepareFleet lets the nodes take pods, and creates these.
func (c *cluster) prepareFleet(ctx context.Context) {
	// New nodes have the taint of those that are not ready, which a controller removes that does not
	// run here.
	c.patchNodes(ctx, 0, c.opts.fleetNodes, types.MergePatchType, func(string) []byte { return []byte(`{"spec":{"taints":null}}`) })
	pods := c.opts.fleetNodes * c.opts.fleetPods
	fmt.Printf("creating %d pods on %d nodes\n", pods, c.opts.fleetNodes)
	createAll(ctx, c, (pods+podsPerDeployment-1)/podsPerDeployment, c.setup.AppsV1().Deployments(namespace).Create, func(i int) *appsv1.Deployment {
		d := newDeployment(i, int32(min(podsPerDeployment, pods-i*podsPerDeployment)))
		// Its pods are gone with their evictions: how long containers take to end is not measured.
		d.Spec.Template.Annotations, d.Spec.Template.Spec = nil, podSpec(0)
		return d
	})
	c.awaitSettled(ctx, fleetTimeout)
}

// measureFleetWay measures a way to drain so many nodes and to give them back, until the pods run
// elsewhere and nothing is left of it.
func (c *cluster) measureFleetWay(ctx context.Context, t *table, name string, nodes int, drain func(ctx context.Context, nodes int)) {
	c.awaitCalm(ctx)
	counts := &fleetCounts{byClient: numbersByClient{}}
	var took time.Duration
	var heap float64
	// Not until all controllers are silent: in a long run, requests that have ended are deleted meanwhile.
	m := c.measure(ctx, by(maintenanceController, replicaSetController), func() {
		start, done := time.Now(), make(chan struct{})
		atOnce(ctx, func(ctx context.Context) {
			defer close(done)
			drain(ctx, nodes)
			took = time.Since(start)
			fmt.Printf("%s: %d nodes, %.1f s\n", name, nodes, took.Seconds())
			heap, _ = c.managerMemory(ctx)
			c.endMaintenances(ctx)
			c.awaitSettled(ctx, fleetTimeout)
		}, func(context.Context) {
			// Counted while it goes on: the log is large.
			for ended := false; !ended; {
				counts.add(c.audit.next())
				select {
				case <-done:
					ended = true
				case <-time.After(time.Second):
				}
			}
		})
	})
	counts.add(m.all)
	t.add(name, counts.results(nodes, c.opts.fleetPods, took, m.cpu, heap)...)
}

// fleetCounts counts what controllers write.
type fleetCounts struct {
	// pods are those that were created; objects, events and evictions are the writes of the
	// nodemaintenance-controller.
	pods, objects, events, evictions float64
	byClient                         numbersByClient
}

func (f *fleetCounts) add(more requests) {
	f.pods += more.count(by(replicaSetController), isCreatedPod)
	written := more.of(by(maintenanceController), isWrite)
	f.objects += written.count(to("nodes")) + written.count(to("nodemaintenances")) + written.count(to("nodemaintenancebudgets"))
	f.events += written.count(to("events"))
	f.evictions += written.count(to("evictionrequests"))
	f.byClient.add(more)
}

// results divides the numbers by those of the nodes and of the pods on each.
func (f *fleetCounts) results(nodeCount, podsPerNode int, took time.Duration, cpuSeconds, heap float64) []result {
	nodes, pods := float64(nodeCount), float64(nodeCount*podsPerNode)
	return append([]result{
		{Name: "time", Unit: "s", digits: 1, Value: took.Seconds()},
		{Name: movesPerPod, digits: 2, Value: f.pods / pods},
		{Name: writesPerNode, Unit: "per node", digits: 2, Value: f.objects / nodes},
		{Name: "events", Unit: "per node", digits: 2, Value: f.events / nodes},
		{Name: "requests for evictions", Unit: "per pod", digits: 2, Value: f.evictions / pods},
		{Name: restCPU, Unit: "ms per node", digits: 0, Value: 1000 * cpuSeconds / nodes},
		{Name: "heap of kube-controller-manager", Unit: "MB", digits: 0, Value: heap / 1e6},
	}, f.byClient.results(nodes, "per node")...)
}

func isCreatedPod(event *auditv1.Event) bool {
	return describe(event) == "create pods" && code(event) == 201
}

// rollOut drains all nodes by one maintenance, and gives each back when it is drained.
func (c *cluster) rollOut(ctx context.Context, nodes int) {
	m := c.createMaintenance(ctx, maintenanceName, allLabel, []string{"true"}, func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt(c.opts.fleetAtOnce))}
	})
	ctx, cancel := context.WithTimeoutCause(ctx, fleetTimeout, fmt.Errorf("not done after %s", fleetTimeout))
	defer cancel()
	w := newFleetWatch(m.UID, nodes)
	watchAll(ctx, c, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Core().V1().Nodes().Informer()
	}, w.see)
	given, begun := 0, time.Now()
	for given < nodes {
		select {
		case <-ctx.Done():
			steps.Check(context.Cause(ctx), fmt.Sprintf("waiting until all nodes are given back, %d of %d are", given, nodes))
		case name := <-w.drained: // The work on the node is done.
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, coordinationv1alpha1.NodeDoneAnnotation, m.UID)
			steps.Must(c.setup.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}))
		case <-w.given:
			if given++; given%max(nodes/10, 1) == 0 {
				fmt.Printf("%d of %d nodes are given back after %.0f s\n", given, nodes, time.Since(begun).Seconds())
			}
		}
	}
}

// fleetWatch has the names of nodes on which the work is to be done, and of those that were given back,
// each once.
type fleetWatch struct {
	uid               types.UID
	drained, given    chan string
	isDrained, isBack sets.Set[string]
}

func newFleetWatch(uid types.UID, nodes int) *fleetWatch {
	return &fleetWatch{uid, make(chan string, nodes), make(chan string, nodes), sets.New[string](), sets.New[string]()}
}

// see is called for one node after the other.
func (w *fleetWatch) see(node *v1.Node) {
	a := maintenance.AdmissionOf(node, w.uid)
	switch {
	case a == nil:
	case a.DoneTime != nil && !node.Spec.Unschedulable && !w.isBack.Has(node.Name):
		w.isBack.Insert(node.Name)
		w.given <- node.Name
	case a.DrainedTime != nil && a.DoneTime == nil && !w.isDrained.Has(node.Name):
		w.isDrained.Insert(node.Name)
		w.drained <- node.Name
	}
}

// drainInBatches drains as many nodes at a time by kubectl drain of the base, a process each, and
// uncordons them.
func (c *cluster) drainInBatches(ctx context.Context, nodes int) {
	for first := 0; first < nodes; first += c.opts.fleetAtOnce {
		count := min(c.opts.fleetAtOnce, nodes-first)
		inParallel(ctx, count, count, func(ctx context.Context, i int) { c.kubectlDrain(ctx, nodeName(first+i)) })
		c.patchNodes(ctx, first, count, types.MergePatchType, func(string) []byte { return []byte(`{"spec":{"unschedulable":null}}`) })
	}
}

// freeze creates a budget that allows none of the nodes, and a maintenance of all of them, and waits
// until these wait.
func (c *cluster) freeze(ctx context.Context) {
	budget := &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: maintenanceName},
		Spec: coordinationv1alpha1.NodeMaintenanceBudgetSpec{
			NodeSelector:   newMaintenance("", "", allLabel, "true").Spec.NodeSelector,
			MaxUnavailable: ptr.To(intstr.FromInt(0)),
		},
	}
	steps.Must(c.setup.CoordinationV1alpha1().NodeMaintenanceBudgets().Create(ctx, budget, metav1.CreateOptions{}))
	c.createMaintenance(ctx, maintenanceName, allLabel, []string{"true"})
	awaitAll(ctx, stepTimeout, "nodes to wait", c.setup.CoreV1().Nodes().List, func(node *v1.Node) bool {
		return slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return taint.Key == coordinationv1alpha1.NodePlannedTaint })
	})
	c.awaitCalm(ctx)
}
