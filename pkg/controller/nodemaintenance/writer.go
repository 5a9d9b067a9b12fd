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
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/metrics"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const (
	// fieldManager is the field manager of all writes except those of requests.
	fieldManager = "nodemaintenance-controller"

	// heartbeatDeadlineSeconds is how long an interceptor may send no heartbeat before the next one
	// becomes active, if this controller is the first requester: half an hour, so that it can
	// recover from a disruption (KEP-4212, section Drain).
	heartbeatDeadlineSeconds = 1800

	// maxStatusConflicts is how many attempts to write the status of a node follow each other. If
	// another client writes every 10 ms, about every second attempt succeeds.
	maxStatusConflicts = 10

	// requestTimeout bounds the wait for a webhook, or for the deletion of a canceled request that
	// prevents a new one. The write is retried later.
	requestTimeout = 5 * time.Second
)

var (
	maintenanceResource = coordinationv1alpha1.Resource("nodemaintenances")
	nodeResource        = v1.Resource("nodes")
	budgetResource      = coordinationv1alpha1.Resource("nodemaintenancebudgets")
)

// writer makes all writes of this package. Each of its methods takes the object that a decision was
// based on. If that is outdated, nothing is written, and the next sync decides again.
type writer struct {
	client    kubernetes.Interface
	requester *evictionrequest.Requester
	// requestClient has the rate limits of requests, and pods is the cache of pods.
	requestClient kubernetes.Interface
	pods          cache.Store
	clock         clock.PassiveClock
	// nodes and maintenances have the last own write of each object until the caches have it: a
	// decision on older data would cause a conflict, or the same write again.
	nodes, maintenances, budgets consistency.ConsistencyStore
	nodeStore                    cache.Store
	// ownStatuses has, by node name, the status.maintenanceStatus that was last written.
	ownStatuses sync.Map
	// statuses are the maintenances of which a write of the status is in flight, and since when, under the
	// lock.
	statusLock sync.Mutex
	statuses   map[string]time.Time
	// requests is the cache of requests, and unseen the writes of requests that it lacks.
	requests cache.Store
	unseen   *unseenWrites
}

// newWriter returns a writer for objects in these caches; that of budgets is nil while their gate is
// off.
func newWriter(client, requestClient kubernetes.Interface, nodes, pods, requests, maintenances, budgets cache.Store, clock clock.PassiveClock) (*writer, error) {
	requester, err := evictionrequest.NewRequester(requestClient, coordinationv1alpha1.NodeMaintenanceRequester,
		evictionrequest.RequesterOptions{HeartbeatDeadlineSeconds: heartbeatDeadlineSeconds})
	if err != nil {
		return nil, fmt.Errorf("making a requester: %w", err)
	}
	budgetGetters := map[schema.GroupResource]consistency.LastSyncRVGetter{}
	if budgets != nil {
		budgetGetters[budgetResource] = budgets
	}
	return &writer{
		client:        client,
		requestClient: requestClient,
		pods:          pods,
		clock:         clock,
		nodeStore:     nodes,
		budgets:       consistency.NewConsistencyStore(budgetGetters),
		requester:     requester,
		nodes: consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
			nodeResource: nodes,
		}),
		maintenances: consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
			maintenanceResource: maintenances,
		}),
		statuses: map[string]time.Time{},
		requests: requests,
		unseen:   newUnseenWrites(),
	}, nil
}

// isCurrentNode reports whether the cache has all own writes of the node.
func (w *writer) isCurrentNode(name string) bool {
	return w.nodes.EnsureReady(types.NamespacedName{Name: name}) == nil
}

func (w *writer) isCurrentMaintenance(name string) bool {
	return w.maintenances.EnsureReady(types.NamespacedName{Name: name}) == nil
}

func (w *writer) isCurrentBudget(name string) bool {
	return w.budgets.EnsureReady(types.NamespacedName{Name: name}) == nil
}

func (w *writer) forgetBudget(name string) { w.budgets.Clear(types.NamespacedName{Name: name}, "") }

func (w *writer) forgetNode(name string) {
	w.nodes.Clear(types.NamespacedName{Name: name}, "")
	w.ownStatuses.Delete(name)
}

// ownStatus is the status.maintenanceStatus of a node as the API server has stored it for this controller.
type ownStatus struct {
	uid         types.UID
	maintenance *v1.MaintenanceStatus
}

// isStatusUndone reports whether another client has changed status.maintenanceStatus since it was last written. The cache
// has that write.
func (w *writer) isStatusUndone(node *v1.Node) bool {
	found, written := w.ownStatuses.Load(node.Name)
	return written && found.(ownStatus).uid == node.UID &&
		!apiequality.Semantic.DeepEqual(found.(ownStatus).maintenance, node.Status.MaintenanceStatus)
}

func (w *writer) forgetMaintenance(name string) {
	w.maintenances.Clear(types.NamespacedName{Name: name}, "")
}

// cordon makes the node unschedulable, unless it has changed in what the decision was based on, and returns it as it is
// then: a controller that continues after it has lost its lease must not cordon a node that was released since, which nobody
// would uncordon.
func (w *writer) cordon(ctx context.Context, node *v1.Node) (written *v1.Node, err error) {
	err = w.asDecided(ctx, node, func(node *v1.Node) (err error) {
		written, err = w.patchUnschedulable(ctx, node, true, true)
		return err
	})
	if errors.Is(err, errContended) {
		// Whoever writes the node all the time must not keep it from being cordoned.
		written, err = w.patchUnschedulable(ctx, node, true, false)
	}
	if err != nil {
		return nil, fmt.Errorf("setting spec.unschedulable of the node to true: %w", err)
	}
	return written, nil
}

// uncordon makes the node schedulable, unless it has changed in what the decision was based on, and returns it as it is
// then; or, if another client wants it to be unschedulable, that field manager. ofMerged says who has cordoned it if the
// managed fields do not, and "" if that is this controller. The managed fields are read from the API server, because the
// cache does not have them, and that version is the precondition: who applies a cordon to a cordoned node changes nothing
// else.
func (w *writer) uncordon(ctx context.Context, node *v1.Node, ofMerged func(*v1.Node) string) (written *v1.Node, manager string, err error) {
	latest, err := w.client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("reading who has cordoned the node: %w", err)
	case latest.UID != node.UID:
		return nil, "", apierrors.NewConflict(nodeResource, node.Name, errors.New("another node has its name now"))
	case needsDecision(node, latest):
		w.wroteNode(node, latest.ResourceVersion) // The next decision waits until the cache has it.
		return nil, "", apierrors.NewConflict(nodeResource, node.Name, errors.New("the cache does not have its latest version"))
	}
	err = w.asDecided(ctx, latest, func(node *v1.Node) (err error) {
		if manager = cordonedBy(node); manager == mergedManagers {
			manager = ofMerged(node)
		}
		if manager == "" {
			written, err = w.patchUnschedulable(ctx, node, false, true)
		}
		return err
	})
	if errors.Is(err, errContended) {
		written, err = w.patchUnschedulable(ctx, node, false, false) // As for a cordon.
	}
	if err != nil {
		return nil, "", fmt.Errorf("setting spec.unschedulable of the node to false: %w", err)
	}
	return written, manager, nil
}

func (w *writer) patchUnschedulable(ctx context.Context, node *v1.Node, unschedulable, asRead bool) (*v1.Node, error) {
	return w.patchSpec(ctx, node, map[string]any{"unschedulable": unschedulable}, asRead)
}

// cordonPath is the field that a cordon sets.
var cordonPath = fieldpath.MakePathOrDie("spec", "unschedulable")

// mergedManagers is the name that kube-apiserver gives to the oldest field managers of an object that more than ten
// have updated, instead of their own: this controller may be one of them. See capmanagers.go of apimachinery.
const mergedManagers = "ancient-changes"

// cordonedBy returns the field manager that has made the node unschedulable, "" if that is this controller, and
// mergedManagers if it may be, also because somebody has reset the managed fields. Whoever updates the field to the value that it
// has already does not become its manager, but who applies that does, beside this controller, and wants the node to be
// unschedulable as long as it says so.
func cordonedBy(node *v1.Node) (manager string) {
	own := false
	for i := range node.ManagedFields {
		entry := &node.ManagedFields[i]
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil || !fields.Has(cordonPath) {
			continue
		}
		switch name := cmp.Or(entry.Manager, "a client without a name"); {
		case name == fieldManager:
			own = true
		case entry.Operation == metav1.ManagedFieldsOperationApply:
			return name
		case name == mergedManagers:
			manager = cmp.Or(manager, mergedManagers)
		default:
			manager = name
		}
	}
	if own {
		return ""
	}
	return cmp.Or(manager, mergedManagers)
}

// cordonPlanned cordons a node, removes the taint of planned nodes, and returns it as it is then. The
// taints are written as a whole: those that another client has added meanwhile would be lost, unless
// the node is as it was read.
func (w *writer) cordonPlanned(ctx context.Context, node *v1.Node) (written *v1.Node, err error) {
	err = w.asDecided(ctx, node, func(node *v1.Node) (err error) {
		written, err = w.patchSpec(ctx, node, map[string]any{"unschedulable": true, "taints": taintsWith(node.Spec.Taints, false)}, true)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cordoning the node and removing its taint %s: %w", coordinationv1alpha1.NodePlannedTaint, err)
	}
	return written, nil
}

// patchSpec changes fields of the spec of the node and returns it as it is then. If asRead, the
// resourceVersion of the node is a precondition.
func (w *writer) patchSpec(ctx context.Context, node *v1.Node, spec map[string]any, asRead bool) (*v1.Node, error) {
	metadata := map[string]any{"uid": node.UID}
	if asRead {
		metadata["resourceVersion"] = node.ResourceVersion
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	written, err := w.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, err
	}
	w.wroteNode(node, written.ResourceVersion)
	return written, nil
}

// setTaint adds the taint of planned nodes, or removes it, and returns the node as it is then.
func (w *writer) setTaint(ctx context.Context, node *v1.Node, planned bool) (written *v1.Node, err error) {
	err = w.asDecided(ctx, node, func(node *v1.Node) (err error) {
		written, err = w.patchSpec(ctx, node, map[string]any{"taints": taintsWith(node.Spec.Taints, planned)}, true)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("setting the taint %s of the node: %w", coordinationv1alpha1.NodePlannedTaint, err)
	}
	return written, nil
}

// setNodeStatus writes the parts of the node's status that this controller owns. The precondition on
// the resourceVersion excludes targets that are based on old ones. If no maintenance concerns the node, its conditions are
// those of other clients, who may have written some since the decision.
func (w *writer) setNodeStatus(ctx context.Context, node *v1.Node, desired *v1.MaintenanceStatus, conditions []v1.NodeCondition) error {
	isOwn := slices.ContainsFunc(conditions, func(c v1.NodeCondition) bool { return status.OwnReasons.Has(c.Reason) })
	return w.asDecided(ctx, node, func(node *v1.Node) error {
		if !isOwn {
			conditions = status.ForeignConditions(node.Status.Conditions)
		}
		return w.patchNodeStatus(ctx, node, desired, conditions)
	})
}

var errContended = errors.New("other clients write the node so often")

// asDecided does a write that has the resourceVersion of the node as a precondition. Agents may
// write other parts of the status so often that the version in the cache is never the latest.
// Therefore, after a conflict, the write is repeated at once on the latest version, unless the node
// has changed in what the decision was based on.
func (w *writer) asDecided(ctx context.Context, node *v1.Node, write func(node *v1.Node) error) error {
	var conflict error
	for range maxStatusConflicts {
		conflict = write(node)
		if !apierrors.IsConflict(conflict) {
			return conflict
		}
		latest, err := w.client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading the node after a conflict: %w", err)
		}
		if needsDecision(node, latest) || node.Status.NodeInfo.BootID != latest.Status.NodeInfo.BootID {
			w.wroteNode(node, latest.ResourceVersion) // The next decision waits until the cache has it.
			return conflict
		}
		node = latest
	}
	// This is no conflict that a retry resolves, but a failure to report.
	return fmt.Errorf("%w that %d attempts in a row failed: %v", errContended, maxStatusConflicts, conflict) //nolint:errorlint // See above.
}

func (w *writer) patchNodeStatus(ctx context.Context, node *v1.Node, status *v1.MaintenanceStatus, conditions []v1.NodeCondition) error {
	patch, err := nodeStatusPatch(node, status, conditions)
	if err != nil {
		return err
	}
	written, err := w.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of the node: %w", err)
	}
	w.ownStatuses.Store(node.Name, ownStatus{node.UID, written.Status.MaintenanceStatus})
	w.wroteNode(node, written.ResourceVersion)
	if status == nil && written.Status.MaintenanceStatus != nil {
		// The API server has restored it, and returned a warning.
		return apierrors.NewForbidden(nodeResource, node.Name, fmt.Errorf(
			"the API server has kept status.maintenanceStatus, whose removal needs the verb %q on the resource %q", maintenance.ControlVerb, "nodes/status"))
	}
	if status != nil {
		return hasStored(written, status.Admissions)
	}
	return nil
}

// nodeStatusPatch changes only the parts of the status that this controller owns.
func nodeStatusPatch(node *v1.Node, desired *v1.MaintenanceStatus, conditions []v1.NodeCondition) ([]byte, error) {
	// Conditions of others are on both sides: a patch from some to none would delete all.
	foreign := slices.DeleteFunc(slices.Clone(node.Status.Conditions), func(c v1.NodeCondition) bool { return slices.Contains(status.NodeConditionTypes, c.Type) })
	before, err := json.Marshal(&v1.Node{Status: v1.NodeStatus{
		Conditions: node.Status.Conditions, MaintenanceStatus: node.Status.MaintenanceStatus,
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the node: %w", err)
	}
	after, err := json.Marshal(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{UID: node.UID, ResourceVersion: node.ResourceVersion},
		Status:     v1.NodeStatus{Conditions: slices.Concat(foreign, conditions), MaintenanceStatus: desired},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the node: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, v1.Node{})
	if err != nil {
		return nil, fmt.Errorf("making the patch: %w", err)
	}
	return patch, nil
}

func (w *writer) wroteNode(node *v1.Node, version string) {
	w.nodes.WroteAt(types.NamespacedName{Name: node.Name}, node.UID, nodeResource, version)
}

// request requests the eviction of the pod.
func (w *writer) request(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	result, err := w.requester.Request(ctx, pod)
	if err != nil {
		return err
	}
	if result.Outcome != evictionrequest.AlreadyEvicted {
		metrics.CountRequested(1)
	}
	// Also a request that says that the pod is gone: until the cache has it, the pod would be
	// requested again.
	version := result.Request.ResourceVersion
	w.unseen.wrote(pod, func() bool { return w.hasRequestsOf(version) })
	return nil
}

// withdraw withdraws from the request for the pod, which is the one that the cache has.
func (w *writer) withdraw(ctx context.Context, pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := w.requester.WithdrawRequest(ctx, request); err != nil {
		return err
	}
	metrics.CountWithdrawn(1)
	// Also if an earlier attempt has withdrawn, the request is not the one in the cache any more.
	w.unseen.wrote(pod, func() bool { return w.hasOther(request) })
	return nil
}

// hasRequestsOf reports whether the cache of requests has reached that version.
func (w *writer) hasRequestsOf(version string) bool {
	cached := w.requests.LastStoreSyncResourceVersion()
	if cached == "" {
		return true // The cache does not know its version.
	}
	order, err := resourceversion.CompareResourceVersion(version, cached)
	return err != nil || order <= 0
}

// hasOther reports whether the cache has another version of the request, or none.
func (w *writer) hasOther(request *coordinationv1alpha1.EvictionRequest) bool {
	cached, ok, err := w.requests.Get(request)
	return err != nil || !ok || cached.(*coordinationv1alpha1.EvictionRequest).ResourceVersion != request.ResourceVersion
}

// patch changes fields of the maintenance, unless it has changed since it was read, and reports whether
// they were written. It leaves fields of a later release alone, which a whole object would not have.
func (w *writer) patch(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance, metadata, spec map[string]any) (bool, error) {
	preconditions := map[string]any{"uid": m.UID, "resourceVersion": m.ResourceVersion}
	maps.Copy(preconditions, metadata)
	fields := map[string]any{"metadata": preconditions}
	if len(spec) > 0 {
		fields["spec"] = spec
	}
	patch, err := json.Marshal(fields)
	if err != nil {
		return false, fmt.Errorf("encoding the patch: %w", err)
	}
	written, err := w.client.CoordinationV1alpha1().NodeMaintenances().Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err == nil, w.wrote(ctx, m, written, err)
}

// addFinalizer keeps the maintenance from being removed before it is completed.
func (w *writer) addFinalizer(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) error {
	finalizers := append(slices.Clone(m.Finalizers), coordinationv1alpha1.NodeMaintenanceFinalizer)
	_, err := w.patch(ctx, m, map[string]any{"finalizers": finalizers}, nil)
	return err
}

// removeFinalizer ends the maintenance, and reports whether it did.
func (w *writer) removeFinalizer(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) (bool, error) {
	finalizers := slices.DeleteFunc(slices.Clone(m.Finalizers), func(name string) bool { return name == coordinationv1alpha1.NodeMaintenanceFinalizer })
	return w.patch(ctx, m, map[string]any{"finalizers": finalizers}, nil)
}

// complete moves a maintenance that is being deleted to the stage Complete.
func (w *writer) complete(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) error {
	_, err := w.patch(ctx, m, nil, map[string]any{"stage": coordinationv1alpha1.NodeMaintenanceStageComplete})
	return err
}

// beginStatus reports whether the caller may write the status of this version of a maintenance, and has
// to call endStatus then: no other write is in flight, none is missing in the cache, and the cache has no
// other version. Two workers write it: without this, one of them would often lose a conflict.
func (w *writer) beginStatus(m *coordinationv1alpha1.NodeMaintenance, lister coordinationlisters.NodeMaintenanceLister) bool {
	w.statusLock.Lock()
	defer w.statusLock.Unlock()
	// While no other write is in flight, the last one is known.
	if _, inFlight := w.statuses[m.Name]; inFlight || !w.isCurrentMaintenance(m.Name) {
		return false
	}
	if cached, err := lister.Get(m.Name); err != nil || cached.ResourceVersion != m.ResourceVersion {
		return false
	}
	w.statuses[m.Name] = w.clock.Now()
	return true
}

// isStatusSlow reports whether a write of the status has been in flight for longer than pace.StatusInterval.
func (w *writer) isStatusSlow(name string, now time.Time) bool {
	w.statusLock.Lock()
	defer w.statusLock.Unlock()
	begun, inFlight := w.statuses[name]
	return inFlight && now.Sub(begun) > pace.StatusInterval
}

func (w *writer) endStatus(name string) {
	w.statusLock.Lock()
	defer w.statusLock.Unlock()
	delete(w.statuses, name)
}

// setStatus writes the status of a maintenance.
func (w *writer) setStatus(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance, status *coordinationv1alpha1.NodeMaintenanceStatus) (bool, error) {
	changed := m.DeepCopy()
	changed.Status = *status
	written, err := w.client.CoordinationV1alpha1().NodeMaintenances().UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager})
	return err == nil, w.wrote(ctx, changed, written, err)
}

// wrote records a write of a maintenance. That the maintenance has changed or is gone is no error:
// the event of the change causes the next sync.
func (w *writer) wrote(ctx context.Context, m, written *coordinationv1alpha1.NodeMaintenance, err error) error {
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		klog.FromContext(ctx).V(4).Info("The maintenance has changed since it was read", "nodeMaintenance", klog.KObj(m))
		return nil
	case err != nil:
		return fmt.Errorf("writing the maintenance: %w", err)
	}
	w.maintenances.WroteAt(types.NamespacedName{Name: m.Name}, m.UID, maintenanceResource, written.ResourceVersion)
	return nil
}

// unseenWrites has, for each node, the pods for which the cache of requests lacks the last write.
// The workers of the request queue add them, and the sync of the node reads them.
type unseenWrites struct {
	lock sync.Mutex
	// nodes has, by node and pod, functions that report whether the cache has the write.
	nodes map[string]map[types.UID]func() bool
}

func newUnseenWrites() *unseenWrites {
	return &unseenWrites{nodes: map[string]map[types.UID]func() bool{}}
}

func (u *unseenWrites) wrote(pod *v1.Pod, seen func() bool) {
	u.lock.Lock()
	defer u.lock.Unlock()
	if u.nodes[pod.Spec.NodeName] == nil {
		u.nodes[pod.Spec.NodeName] = map[types.UID]func() bool{}
	}
	u.nodes[pod.Spec.NodeName][pod.UID] = seen
}

// of returns the pods of the node for which the cache lacks a write, and forgets the others.
func (u *unseenWrites) of(node string) sets.Set[types.UID] {
	u.lock.Lock()
	defer u.lock.Unlock()
	unseen := sets.New[types.UID]()
	for uid, seen := range u.nodes[node] {
		if seen() {
			delete(u.nodes[node], uid)
			continue
		}
		unseen.Insert(uid)
	}
	if len(unseen) == 0 {
		delete(u.nodes, node)
	}
	return unseen
}
