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
	"time"

	"golang.org/x/sync/errgroup"
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
func fleetArgs(opts options) ([]string, error) {
	dir, err := filepath.Abs(opts.resultsDir())
	if err != nil {
		return nil, fmt.Errorf("resolving the directory of the results: %w", err)
	}
	output, err := filepath.Abs(opts.output)
	if err != nil {
		return nil, fmt.Errorf("resolving the output directory: %w", err)
	}
	local, path := localcluster.Cluster{Name: clusterName, Output: output}, filepath.Join(dir, "scheduler.yaml")
	config := fmt.Sprintf(schedulerConfig, controlplane.UserKubeconfig(local.Dir(), controlplane.Scheduler), fleetQPS)
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return nil, fmt.Errorf("writing the configuration of the scheduler: %w", err)
	}
	return []string{
		"kube-scheduler:config=" + path,
		"kube-controller-manager:authorization-always-allow-paths=/debug/pprof/*",
		fmt.Sprintf("kube-controller-manager:kube-api-qps=%d", fleetQPS), fmt.Sprintf("kube-controller-manager:kube-api-burst=%d", fleetQPS),
		// Each pod causes some.
		"kube-apiserver:event-ttl=5m",
	}, nil
}

// measureFleet measures a rollout over all nodes, so many at a time, each of which is given back as soon
// as it is drained, against kubectl drain and uncordon of the same batches; and what it costs that all
// nodes wait.
func measureFleet(ctx context.Context, opts options, r *report) error {
	if opts.fleetNodes == 0 {
		return nil
	}
	opts.fleetDrains = min(opts.fleetDrains, opts.fleetNodes)
	rollout := r.table(rowPerCase, "%d nodes with %d pods each, of which %d at a time are drained and given back; kubectl drain of the base: %d of these nodes.\n"+
		"Per node and per pod of the nodes that are drained. The controller manager has --kube-api-qps=%d here.\n"+
		"Writes are those of the nodemaintenance-controller until it has removed the maintenance, refused ones included.",
		opts.fleetNodes, opts.fleetPods, opts.fleetAtOnce, opts.fleetDrains, fleetQPS)
	frozen := r.table(rowPerCase, "A NodeMaintenance over these nodes, and a NodeMaintenanceBudget with maxUnavailable 0.")
	opts.scaleNodes, opts.auditPolicy = opts.fleetNodes, controllersPolicy
	args, err := fleetArgs(opts)
	if err != nil {
		return err
	}
	opts.args = append(args, opts.args...)
	return onScaleCluster(ctx, opts, r, featureGates+",EvictionLane=true,NodeMaintenanceBudgets=true", "", func(c *cluster) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if err := c.reportReady(ctx); err != nil {
			return err
		}
		if err := c.prepareFleet(ctx); err != nil {
			return err
		}
		if err := c.freeze(ctx); err != nil {
			return err
		}
		if err := c.measureRest(ctx, frozen, quiet{fleetFrozen, maintenanceController, by(maintenanceController), c.sleepIdle}); err != nil {
			return err
		}
		frozen.want(fleetFrozen, "writes by "+maintenanceController, atMost, 0)
		if err := c.thaw(ctx); err != nil {
			return err
		}
		// The rollout is last: after a long one, a controller deletes its requests for an hour.
		for _, way := range []fleetWay{{fleetDrains, opts.fleetDrains, c.drainInBatches}, {fleetRollout, opts.fleetNodes, c.rollOut}} {
			if err := c.measureFleetWay(ctx, rollout, way); err != nil {
				return err
			}
		}
		rollout.want(fleetRollout, writesPerNode, atMost, fleetWritesMax)
		rollout.want(fleetRollout, movesPerPod, atMost, fleetMovesMax)
		return nil
	})
}

// reportReady reports pods that are bound to a node as running and ready until the context ends, as
// kubelets do. kwok takes half a processor for as many.
func (c *cluster) reportReady(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(c.setup, 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = "status.phase=Pending,spec.nodeName!="
	}))
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	context.AfterFunc(ctx, queue.ShutDown)
	// A pod that is bound is new for this watch.
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { queue.Add(obj.(*v1.Pod).Name) },
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.StartWithContext(ctx)
	status := fmt.Appendf(nil, `{"status":{"phase":%q,"conditions":[{"type":%q,"status":%q}]}}`, v1.PodRunning, v1.PodReady, v1.ConditionTrue)
	report := func(name string) {
		defer queue.Done(name)
		_, err := c.setup.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			queue.AddRateLimited(name)
			return
		}
		queue.Forget(name)
	}
	for range c.opts.parallel {
		go func() {
			for {
				name, shutdown := queue.Get()
				if shutdown {
					return
				}
				report(name)
			}
		}()
	}
	return nil
}

// prepareFleet lets the nodes take pods, and creates these.
func (c *cluster) prepareFleet(ctx context.Context) error {
	err := c.inParallel(ctx, c.opts.fleetNodes, func(ctx context.Context, i int) error {
		// New nodes have the taint of those that are not ready, which a controller removes that does not
		// run here.
		_, err := c.setup.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("removing taints of nodes: %w", err)
	}
	pods := c.opts.fleetNodes * c.opts.fleetPods
	fmt.Printf("creating %d pods on %d nodes\n", pods, c.opts.fleetNodes)
	deployments := c.setup.AppsV1().Deployments(namespace)
	count := (pods + podsPerDeployment - 1) / podsPerDeployment
	err = createAll(ctx, c, count, deployments.Create, func(i int) *appsv1.Deployment {
		d := newDeployment(i, int32(min(podsPerDeployment, pods-i*podsPerDeployment)))
		// Its pods are gone with their evictions: how long containers take to end is not measured.
		d.Spec.Template.Annotations, d.Spec.Template.Spec = nil, podSpec(0)
		return d
	})
	if err != nil {
		return err
	}
	return c.awaitReplicas(ctx)
}

// awaitReplicas waits until all pods of the Deployments are ready.
func (c *cluster) awaitReplicas(ctx context.Context) error {
	return awaitAllFor(ctx, fleetTimeout, "Deployments to be complete", c.setup.AppsV1().Deployments(namespace).List, func(d *appsv1.Deployment) bool {
		return d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas
	})
}

// fleetWay is a way to drain so many nodes and to give them back.
type fleetWay struct {
	name  string
	nodes int
	drain func(ctx context.Context, nodes int) error
}

// measureFleetWay measures one way, until the pods run elsewhere and nothing is left of it.
func (c *cluster) measureFleetWay(ctx context.Context, t *table, way fleetWay) error {
	if err := c.awaitCalm(ctx); err != nil {
		return err
	}
	if err := c.audit.skip(); err != nil {
		return err
	}
	before, err := c.managerCPUSeconds()
	if err != nil {
		return err
	}
	counts := newFleetCounts()
	var took time.Duration
	var heap float64
	err = counts.during(ctx, c.audit, func(ctx context.Context) (err error) {
		start := time.Now()
		if err := way.drain(ctx, way.nodes); err != nil {
			return err
		}
		took = time.Since(start)
		fmt.Printf("%s: %d nodes, %.1f s\n", way.name, way.nodes, took.Seconds())
		if heap, err = c.managerHeap(ctx); err != nil {
			return err
		}
		if err := c.endMaintenances(ctx); err != nil {
			return err
		}
		return c.awaitReplicas(ctx)
	})
	if err != nil {
		return err
	}
	// Not until all controllers are silent: in a long run, requests that have ended are deleted meanwhile.
	rest, err := c.audit.untilQuiet(ctx, by(maintenanceController, replicaSetController))
	if err != nil {
		return err
	}
	counts.add(rest)
	after, err := c.managerCPUSeconds()
	if err != nil {
		return err
	}
	t.add(way.name, counts.results(way.nodes, c.opts.fleetPods, took, after-before, heap)...)
	return nil
}

// fleetCounts counts what controllers write.
type fleetCounts struct {
	// pods are those that were created; objects, events and evictions are the writes of the
	// nodemaintenance-controller.
	pods, objects, events, evictions float64
	byClient                         numbersByClient
}

func newFleetCounts() *fleetCounts { return &fleetCounts{byClient: numbersByClient{}} }

// during counts while something is done.
func (f *fleetCounts) during(ctx context.Context, log *auditLog, do func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	done := make(chan struct{})
	group.Go(func() error {
		defer close(done)
		return do(ctx)
	})
	group.Go(func() error {
		for {
			more, err := log.next()
			if err != nil {
				return err
			}
			f.add(more)
			select {
			case <-done:
				return nil
			case <-time.After(time.Second):
			}
		}
	})
	return group.Wait()
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
func (c *cluster) rollOut(ctx context.Context, nodes int) error {
	wanted := newMaintenance(maintenanceName, coordinationv1alpha1.NodeMaintenanceStageDrain, allLabel, "true")
	wanted.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt(c.opts.fleetAtOnce))}
	m, err := c.requester.CoordinationV1alpha1().NodeMaintenances().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a maintenance: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, fleetTimeout, fmt.Errorf("not done after %s", fleetTimeout))
	defer cancel()
	w, err := c.watchFleet(ctx, m.UID, nodes)
	if err != nil {
		return err
	}
	given, begun := 0, time.Now()
	for given < nodes {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until all nodes are given back, %d of %d are: %w", given, nodes, context.Cause(ctx))
		case name := <-w.drained:
			if err := c.giveBack(ctx, m.UID, name); err != nil {
				return err
			}
		case <-w.given:
			if given++; given%max(nodes/10, 1) == 0 {
				fmt.Printf("%d of %d nodes are given back after %.0f s\n", given, nodes, time.Since(begun).Seconds())
			}
		}
	}
	return nil
}

// fleetWatch has the names of nodes on which the work is to be done, and of those that were given back,
// each once.
type fleetWatch struct {
	uid               types.UID
	drained, given    chan string
	isDrained, isBack sets.Set[string]
}

// watchFleet watches so many nodes until the context ends. To list them again and again would keep the
// API server busy.
func (c *cluster) watchFleet(ctx context.Context, uid types.UID, nodes int) (*fleetWatch, error) {
	w := &fleetWatch{uid: uid, drained: make(chan string, nodes), given: make(chan string, nodes), isDrained: sets.New[string](), isBack: sets.New[string]()}
	factory := informers.NewSharedInformerFactory(c.setup, 0)
	informer := factory.Core().V1().Nodes().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.see(obj.(*v1.Node)) },
		UpdateFunc: func(_, obj any) { w.see(obj.(*v1.Node)) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	factory.StartWithContext(ctx)
	return w, nil
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

// giveBack says that the work on a node is done.
func (c *cluster) giveBack(ctx context.Context, uid types.UID, name string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, coordinationv1alpha1.NodeDoneAnnotation, uid)
	if _, err := c.setup.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("giving %s back: %w", name, err)
	}
	return nil
}

// drainInBatches drains as many nodes at a time by kubectl drain of the base, a process each, and
// uncordons them.
func (c *cluster) drainInBatches(ctx context.Context, nodes int) error {
	for first := 0; first < nodes; first += c.opts.fleetAtOnce {
		batch := nodeRange{first, min(c.opts.fleetAtOnce, nodes-first)}.names()
		group, drainCtx := errgroup.WithContext(ctx)
		for _, name := range batch {
			group.Go(func() error { return c.kubectlDrain(drainCtx, name) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		err := c.inParallel(ctx, len(batch), func(ctx context.Context, i int) error {
			_, err := c.setup.CoreV1().Nodes().Patch(ctx, batch[i], types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("uncordoning nodes: %w", err)
		}
	}
	return nil
}

// thaw removes what freeze has created.
func (c *cluster) thaw(ctx context.Context) error {
	if err := c.endMaintenances(ctx); err != nil {
		return err
	}
	return removeAll(ctx, "budgets", c.setup.CoordinationV1alpha1().NodeMaintenanceBudgets())
}

// freeze creates a budget that allows none of the nodes, and a maintenance of all of them, and waits
// until these wait.
func (c *cluster) freeze(ctx context.Context) error {
	wanted := newMaintenance(maintenanceName, coordinationv1alpha1.NodeMaintenanceStageDrain, allLabel, "true")
	budget := &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: maintenanceName},
		Spec:       coordinationv1alpha1.NodeMaintenanceBudgetSpec{NodeSelector: wanted.Spec.NodeSelector, MaxUnavailable: ptr.To(intstr.FromInt(0))},
	}
	if _, err := c.setup.CoordinationV1alpha1().NodeMaintenanceBudgets().Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a budget: %w", err)
	}
	if _, err := c.requester.CoordinationV1alpha1().NodeMaintenances().Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a maintenance: %w", err)
	}
	err := awaitAll(ctx, "nodes to wait", c.setup.CoreV1().Nodes().List, func(node *v1.Node) bool {
		for _, taint := range node.Spec.Taints {
			if taint.Key == coordinationv1alpha1.NodePlannedTaint {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	return c.awaitCalm(ctx)
}
