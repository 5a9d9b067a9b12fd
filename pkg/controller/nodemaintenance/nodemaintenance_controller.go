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
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	clientset "k8s.io/client-go/kubernetes"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/statusfailures"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/confirm"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
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
	deciding keymutex.KeyMutex
	writing  sync.Map
	// confirm asks the API server before what cannot be undone.
	confirm *confirm.Confirmer
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

// flowOf returns in whose flow a node is queued.
func (c *Controller) flowOf(node string) string { return c.progress.FlowOf(node) }

func (c *Controller) enqueueMaintenances(names []string) {
	for _, name := range names {
		c.maintenanceQueue.Add(name)
	}
}

func (c *Controller) enqueueNodes(names []string) {
	for _, name := range names {
		c.nodeQueue.Add(name)
	}
}

// listNodes returns all nodes of the cluster.
func (c *Controller) listNodes() []*v1.Node {
	nodes, err := c.nodeLister.List(labels.Everything())
	if err != nil {
		return nil // The lister of a cache returns no error.
	}
	return nodes
}

// enqueueAfterWrite reconciles the node when the cache has what was just written. If another
// client reverts a write at once while the watch is interrupted, the cache only sees the same
// state as before, and no event enqueues the node.
func (c *Controller) enqueueAfterWrite(node *v1.Node) {
	c.nodeQueue.AddAfter(node.Name, pace.StaleInterval)
}
