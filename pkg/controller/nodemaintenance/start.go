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
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/statusfailures"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/confirm"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/keymutex"
)

// New returns a controller, whose events are handled from now on.
func New(ctx context.Context, config Config) (*Controller, error) {
	local := config.Clock.WithTicker // Queues only measure how long something takes.
	metrics.Register()
	if err := controller.AddPodNodeNameIndexer(config.Pods.Informer()); err != nil {
		return nil, fmt.Errorf("indexing pods by node: %w", err)
	}
	podBudgets, err := poddisruptionbudget.IndexOf(config.PodDisruptionBudgets.Informer().GetIndexer())
	if err != nil {
		return nil, err
	}
	statusFailures, err := statusfailures.Of(config.Requests.Informer().GetIndexer())
	if err != nil {
		return nil, err
	}
	var budgetStore cache.Store
	if config.Fleet != nil {
		if err := addUnreadyIndexer(config.Pods.Informer()); err != nil {
			return nil, fmt.Errorf("indexing pods that are not ready: %w", err)
		}
		budgetStore = config.Fleet.Budgets.Informer().GetStore()
	}
	writer, err := write.New(write.Config{
		Client: config.Client, RequestClient: config.RequestClient,
		Nodes: config.Nodes.Informer().GetStore(), Pods: config.Pods.Informer().GetStore(),
		Requests: config.Requests.Informer().GetStore(), Maintenances: config.Maintenances.Informer().GetStore(),
		Budgets: budgetStore, Clock: config.Clock,
	})
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: config.EventClient.EventsV1()})
	c := &Controller{
		caches: caches{
			maintenanceLister: config.Maintenances.Lister(),
			requestLister:     config.Requests.Lister(),
			nodeLister:        config.Nodes.Lister(),
			podLister:         config.Pods.Lister(),
			podIndexer:        config.Pods.Informer().GetIndexer(),
			podBudgets:        podBudgets,
			absences:          config.Absences,
			statusFailures:    statusFailures,
			cachesSynced: []cache.InformerSynced{
				config.Maintenances.Informer().HasSynced, config.Requests.Informer().HasSynced, config.Nodes.Informer().HasSynced,
				config.Pods.Informer().HasSynced, config.PodDisruptionBudgets.Informer().HasSynced,
			},
		},
		queues:       queues{maintenanceQueue: newQueue("nodemaintenance", local)},
		nodeMemories: newNodeMemories(config.Owners),
		progress:     progress.NewStore(progress.NewLimits()),
		writer:       writer,
		confirm:      confirm.New(writer, config.Clock, config.Maintenances.Lister(), config.Nodes.Lister(), config.Pods.Lister()),
		events:       write.NewEvents(broadcaster.NewRecorder(scheme.Scheme, write.FieldManager), config.Clock),
		pacer:        pace.New(),
		failures:     write.NewFailures(),
		deciding:     keymutex.NewHashed(0),
		requests:     requests.NewQueue(requests.Workers, local),
		admissions:   newAdmissions(local),
		departed:     departedNodes{},
		broadcaster:  broadcaster,
		clock:        config.Clock,
	}
	c.cachesSynced = append(c.cachesSynced, config.Owners.Synced()...)
	c.statusFailures.OnChange(c.enqueueNodeOfStatus)
	c.absences.onChange(func() { c.enqueueNodes(c.progress.Tracked()) })
	c.progress.Limits.ShutsDown = func(node string) bool {
		_, err := c.maintenanceLister.Get(maintenance.ShutdownName(node))
		return err == nil // The only error of the lister of a cache is NotFound.
	}
	c.progress.Limits.Now = c.clock.Now
	c.admissions.admitter = rollout.NewAdmitter(admissionStore{c}, c.clock, c.admitted)
	c.admissions.admitter.Departed = func(node *v1.Node) { c.departed.note(node, c.clock.Now()) }
	c.nodeQueue = newFlowQueue("nodemaintenance_nodes", local, c.flowOf)
	c.writeQueue = newFlowQueue("nodemaintenance_node_writes", local, c.flowOf)
	c.refreshQueue = newFlowQueue("nodemaintenance_node_refreshes", local, c.flowOf)
	if err := c.addEventHandlers(klog.FromContext(ctx), config.Maintenances.Informer(), config.Requests.Informer(), config.Nodes.Informer(), config.Pods.Informer()); err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	if config.Fleet != nil {
		c.fleet = config.Fleet
		if err := c.watchFleet(klog.FromContext(ctx)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// writers is how many nodes and how many maintenances are written at a time, which the rate limits of the client allow, and
// slowWriters how many of these may be objects of which the last write was slow: a webhook that hangs for some must not hold
// up the others.
const writers, slowWriters = 40, 20

// Run reconciles until ctx ends. workers is how many nodes are decided on at a time.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)
	logger.Info("Starting controller", "controller", "nodemaintenance")
	var running sync.WaitGroup
	defer func() {
		logger.Info("Shutting down controller", "controller", "nodemaintenance")
		for _, queue := range []workqueue.TypedRateLimitingInterface[string]{c.nodeQueue, c.writeQueue, c.refreshQueue, c.maintenanceQueue, c.admissions.queue} {
			queue.ShutDown()
		}
		c.requests.ShutDown()
		running.Wait()
		c.broadcaster.Shutdown()
	}()
	if !cache.WaitForNamedCacheSyncWithContext(ctx, c.cachesSynced...) {
		return
	}
	if err := c.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "No events will be recorded")
	}
	all, current := c.awaitLimits(ctx)
	if !current {
		return
	}
	c.begun = c.clock.Now()
	c.observeAll(logger, all)
	defer metrics.Track(c.count)()
	running.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.admissions.queue, c.syncAdmissions) }, time.Second)
	})
	for range workers {
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.nodeQueue, c.syncNode) }, time.Second)
		})
	}
	writeNode := limitSlow(slowWriters, c.clock, c.writeQueue, c.writeNode)
	syncMaintenance := limitSlow(slowWriters, c.clock, c.maintenanceQueue, c.syncMaintenance)
	for range writers {
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.writeQueue, writeNode) }, time.Second)
		})
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.maintenanceQueue, syncMaintenance) }, time.Second)
		})
	}
	running.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.refreshQueue, c.refreshNode) }, time.Second)
	})
	for range requests.Workers {
		running.Go(func() { wait.UntilWithContext(ctx, c.writeRequests, time.Second) })
	}
	<-ctx.Done()
}

// observeAll observes all maintenances before any node is reconciled. Otherwise a node would seem
// not to be claimed by those that were not read yet.
func (c *Controller) observeAll(logger klog.Logger, all []*coordinationv1alpha1.NodeMaintenance) {
	for _, m := range all {
		if nextStep(m) == stepNothing {
			continue
		}
		if err := c.observe(m); err != nil {
			logger.Error(err, "Ignoring an invalid maintenance", "nodeMaintenance", klog.KObj(m))
		}
	}
	c.adoptAll()
}

// adoptAll finds the nodes that an earlier process has not released. They need not be selected any
// more, nor exist. Their status says that they were claimed, or the eviction of their pods is still
// requested.
func (c *Controller) adoptAll() {
	for _, node := range c.listNodes() {
		if maintenance.IsClaimed(node) {
			c.adopt(node.Name, (*progress.Spec).Claims)
		}
	}
	all, err := c.requestLister.List(labels.Everything())
	if err != nil {
		return // The lister of a cache returns no error.
	}
	for _, request := range all {
		if !requests.IsRequested(request) || evictionrequest.IsFinished(request.Status.Conditions) || request.Spec.Target.Pod == nil {
			continue
		}
		pod, err := c.podLister.Pods(request.Namespace).Get(request.Spec.Target.Pod.Name)
		if err == nil && string(pod.UID) == request.Name && pod.Spec.NodeName != "" {
			c.adopt(pod.Spec.NodeName, (*progress.Spec).Drains)
		}
	}
}

// adopt has the maintenances in Complete wait for the node, unless another maintenance wants what
// was left there.
func (c *Controller) adopt(name string, wants func(*progress.Spec) bool) {
	node, err := c.nodeLister.Get(name)
	if err != nil {
		node = nil // The only error of the lister of a cache is NotFound.
	}
	specs, _ := c.progress.Selecting(node)
	if slices.ContainsFunc(specs, func(o progress.Spec) bool { return wants(&o) }) {
		return
	}
	c.progress.Adopt(name)
	c.nodeQueue.Add(name)
}

// work syncs the keys of a queue until it shuts down.
func work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], sync func(context.Context, string) error) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		err := sync(ctx, key)
		switch {
		case apierrors.IsConflict(err):
			// Another client, usually the kubelet, has written first.
			klog.FromContext(ctx).V(4).Info("Will retry after a conflict", "key", key, "err", err)
			queue.AddRateLimited(key)
		case err != nil:
			utilruntime.HandleErrorWithContext(ctx, err, "Will retry", "key", key)
			queue.AddRateLimited(key)
		default:
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

// count counts maintenances, nodes and pods for the metrics.
func (c *Controller) count() metrics.Counts {
	now := c.clock.Now()
	counts := c.progress.Count(now)
	counts.Maintenances = map[coordinationv1alpha1.NodeMaintenanceStage]int{}
	counts.OldestMaintenance = map[coordinationv1alpha1.NodeMaintenanceStage]time.Duration{}
	all, err := c.maintenanceLister.List(labels.Everything())
	if err != nil {
		return counts // The lister of a cache returns no error.
	}
	for _, m := range all {
		counts.Maintenances[m.Spec.Stage]++
		if started := progress.StartOf(&m.Status, m.Spec.Stage); started != nil && nextStep(m) != stepNothing {
			counts.OldestMaintenance[m.Spec.Stage] = max(counts.OldestMaintenance[m.Spec.Stage], now.Sub(started.Time))
		}
	}
	return counts
}
