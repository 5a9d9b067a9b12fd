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
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/util/fairshare"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/statusfailures"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
)

// Controller drains nodes as NodeMaintenances specify. An administrator specifies once which nodes,
// in which order and how far, and finds all blockers in one status.
type Controller struct {
	caches
	queues
	nodeMemories

	progress *progress.Store
	writer   *write.Writer
	events   *write.Events
	// pacer delays writes of nodes and maintenances, and their syncs while the caches are behind.
	pacer *pace.Pacer
	// failures are the failed writes of nodes and requests, which are retried.
	failures *write.Failures
	// deciding is locked for a node while its pods are counted and decided on, and writing has the
	// nodes that are being written.
	deciding   keymutex.KeyMutex
	writing    sync.Map
	liveClaims liveClaims
	// requests are the writes of requests that are due.
	requests *requests.Queue
	// admissions is what decides on admissions.
	admissions *admissions
	// departed has the nodes that were deleted in the middle of a rollout.
	departed departedNodes

	broadcaster events.EventBroadcaster
	// clock is that of kube-apiserver: what one process stores, the next one compares with it.
	clock *serverclock.Clock
	// begun is when this process has begun to reconcile.
	begun time.Time
}

// caches are what decisions are based on.
type caches struct {
	maintenanceLister coordinationlisters.NodeMaintenanceLister
	requestLister     coordinationlisters.EvictionRequestLister
	nodeLister        corelisters.NodeLister
	podLister         corelisters.PodLister
	podIndexer        cache.Indexer
	podBudgets        *poddisruptionbudget.Index
	// fleet is nil while the gate NodeMaintenanceBudgets is off: then no node is admitted.
	fleet *FleetInformers
	// absences has the interceptors of DaemonSets that nobody runs.
	absences *Absences
	// statusFailures has the requests whose status the evictionrequest-controller cannot write, if this process runs it.
	statusFailures *statusfailures.Failures
	cachesSynced   []cache.InformerSynced
}

// queues have what has changed, by name.
type queues struct {
	// nodes and maintenances are reconciled. They wait for no API call to a node or about a pod, so that the status of a
	// maintenance is current.
	nodes, maintenances workqueue.TypedRateLimitingInterface[string]
	// writes has the nodes that are to be cordoned, or whose status is to be written, and refreshes
	// those where only the counts of pods are outdated.
	writes, refreshes workqueue.TypedRateLimitingInterface[string]
}

// FleetInformers are the informers that the gate NodeMaintenanceBudgets needs.
type FleetInformers struct {
	// Budgets limit how many nodes are drained at the same time.
	Budgets coordinationinformers.NodeMaintenanceBudgetInformer
	// DaemonSets have pods on nodes, without which they are not given back.
	DaemonSets appsinformers.DaemonSetInformer
	// Namespaces have the labels that pod policies select.
	Namespaces coreinformers.NamespaceInformer
	// VolumeAttachments and Claims are looked at where a node is drained when its volumes are detached.
	VolumeAttachments storageinformers.VolumeAttachmentInformer
	Claims            coreinformers.PersistentVolumeClaimInformer
}

// Config is what a controller reads from, and writes through. All of it is required, but where it says otherwise.
type Config struct {
	Maintenances         coordinationinformers.NodeMaintenanceInformer
	Requests             coordinationinformers.EvictionRequestInformer
	Nodes                coreinformers.NodeInformer
	Pods                 coreinformers.PodInformer
	PodDisruptionBudgets policyinformers.PodDisruptionBudgetInformer

	// Client writes nodes and maintenances, RequestClient requests, and EventClient events. They need separate rate limits:
	// calls come in waves, and the cordons and statuses of nodes must wait neither for the requests of 100,000 pods nor for
	// events.
	Client, RequestClient, EventClient clientset.Interface

	// Absences has the interceptors that nobody runs, whose pods are left; it may be nil.
	Absences *Absences
	// Owners have those whose pods may come back; nil if they are not known.
	Owners *returns.OwnerInformers
	// Fleet is nil while the gate NodeMaintenanceBudgets is off.
	Fleet *FleetInformers
	// Clock learns the time of kube-apiserver from the answers to Client and RequestClient: see serverclock.Clock.Transport.
	Clock *serverclock.Clock
}

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
	writer, err := write.New(config.Client, config.RequestClient, config.Nodes.Informer().GetStore(), config.Pods.Informer().GetStore(), config.Requests.Informer().GetStore(), config.Maintenances.Informer().GetStore(), budgetStore, config.Clock)
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
		queues:       queues{maintenances: newQueue("nodemaintenance", local)},
		nodeMemories: newNodeMemories(config.Owners),
		progress:     progress.NewStore(progress.NewLimits()),
		writer:       writer,
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
	c.nodes = newFlowQueue("nodemaintenance_nodes", local, c.flowOf)
	c.writes = newFlowQueue("nodemaintenance_node_writes", local, c.flowOf)
	c.refreshes = newFlowQueue("nodemaintenance_node_refreshes", local, c.flowOf)
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

// minBackoff is the first delay of a key whose sync failed. The usual reason is a conflict with the
// kubelet.
const minBackoff = 10 * time.Millisecond

// newQueue returns a queue of names that uses the given clock.
func newQueue(name string, clock clock.WithTicker) workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		newRateLimiter(),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name, Clock: clock},
	)
}

// newFlowQueue is newQueue for nodes. Each flow has the same share of the workers: a maintenance of
// three nodes does not wait for one of thousands.
func newFlowQueue(name string, clock clock.WithTicker, flowOf func(string) string) workqueue.TypedRateLimitingInterface[string] {
	queue := fairshare.NewWorkQueue(workqueue.TypedQueueConfig[string]{Name: name, Clock: clock}, func(node string) fairshare.Owner {
		return fairshare.Owner{Flow: flowOf(node)}
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(newRateLimiter(), workqueue.TypedRateLimitingQueueConfig[string]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: name, Clock: clock, Queue: queue}),
	})
}

// flowOf returns in whose flow a node is queued.
func (c *Controller) flowOf(node string) string { return c.progress.FlowOf(node) }

// newRateLimiter returns one without an overall limit: many keys that fail must not delay the first
// retry of another one.
func newRateLimiter() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](minBackoff, pace.MaxRetry)
}

// nodeWriters is how many nodes are written at a time, which the rate limits of the client allow: a webhook that hangs for
// some must not hold up the others.
const nodeWriters = 40

// Run reconciles until ctx ends. workers is how many nodes are decided on at a time, and how many maintenances are written.
func (c *Controller) Run(ctx context.Context, workers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)
	logger.Info("Starting controller", "controller", "nodemaintenance")
	var running sync.WaitGroup
	defer func() {
		logger.Info("Shutting down controller", "controller", "nodemaintenance")
		for _, queue := range []workqueue.TypedRateLimitingInterface[string]{c.nodes, c.writes, c.refreshes, c.maintenances, c.admissions.queue} {
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
			wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.maintenances, c.syncMaintenance) }, time.Second)
		})
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.nodes, c.syncNode) }, time.Second)
		})
	}
	for range nodeWriters {
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.writes, c.writeNode) }, time.Second)
		})
	}
	running.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) { work(ctx, c.refreshes, c.refreshNode) }, time.Second)
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
	c.nodes.Add(name)
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
