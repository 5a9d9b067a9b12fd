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

package write

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
	// FieldManager is the field manager of all writes except those of requests.
	FieldManager = "nodemaintenance-controller"

	// heartbeatDeadlineSeconds is how long an interceptor may send no heartbeat before the next one
	// becomes active, if this controller is the first requester: half an hour, so that it can
	// recover from a disruption (KEP-4212, section Drain).
	heartbeatDeadlineSeconds = 1800

	// MaxStatusConflicts is how many attempts to write the status of a node follow each other. If
	// another client writes every 10 ms, about every second attempt succeeds.
	MaxStatusConflicts = 10

	// RequestTimeout bounds the wait for a webhook, or for the deletion of a canceled request that
	// prevents a new one. It is longer than the default time-out of webhooks, after which the API server says which one
	// does not answer. The write is retried later.
	RequestTimeout = 12 * time.Second

	// ReadTimeout bounds a read before a write. The write is retried later.
	ReadTimeout = 5 * time.Second
)

// The resources that are written, for conflicts and for the versions that caches lack.
var (
	MaintenanceResource = coordinationv1alpha1.Resource("nodemaintenances")
	NodeResource        = v1.Resource("nodes")
	BudgetResource      = coordinationv1alpha1.Resource("nodemaintenancebudgets")
)

// Writer makes all writes of the controller. Each of its methods takes the object that a decision was
// based on. If that is outdated, nothing is written, and the next sync decides again.
type Writer struct {
	// Client writes all but requests, and has their rate limit.
	Client    kubernetes.Interface
	requester *evictionrequest.Requester
	// RequestClient has the rate limits of requests, and pods is the cache of pods.
	RequestClient kubernetes.Interface
	pods          cache.Store
	clock         clock.PassiveClock
	// Nodes, Maintenances and budgets have the last own write of each object until the caches have it: a
	// decision on older data would cause a conflict, or the same write again.
	Nodes, Maintenances, budgets consistency.ConsistencyStore
	// NodeStore is the cache of nodes.
	NodeStore cache.Store
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

// Config is what a Writer writes through, and compares with.
type Config struct {
	// Client writes nodes and maintenances, and RequestClient requests.
	Client, RequestClient kubernetes.Interface
	// Nodes, Pods, Requests and Maintenances are the caches of these objects, and Budgets that of NodeMaintenanceBudgets; nil
	// while their gate is off.
	Nodes, Pods, Requests, Maintenances, Budgets cache.Store
	Clock                                        clock.PassiveClock
}

// New returns a writer.
func New(config Config) (*Writer, error) {
	requester, err := evictionrequest.NewRequester(config.RequestClient, coordinationv1alpha1.NodeMaintenanceRequester,
		evictionrequest.RequesterOptions{HeartbeatDeadlineSeconds: heartbeatDeadlineSeconds})
	if err != nil {
		return nil, fmt.Errorf("making a requester: %w", err)
	}
	budgetGetters := map[schema.GroupResource]consistency.LastSyncRVGetter{}
	if config.Budgets != nil {
		budgetGetters[BudgetResource] = config.Budgets
	}
	return &Writer{
		Client:        config.Client,
		RequestClient: config.RequestClient,
		pods:          config.Pods,
		clock:         config.Clock,
		NodeStore:     config.Nodes,
		budgets:       consistency.NewConsistencyStore(budgetGetters),
		requester:     requester,
		Nodes: consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
			NodeResource: config.Nodes,
		}),
		Maintenances: consistency.NewConsistencyStore(map[schema.GroupResource]consistency.LastSyncRVGetter{
			MaintenanceResource: config.Maintenances,
		}),
		statuses: map[string]time.Time{},
		requests: config.Requests,
		unseen:   newUnseenWrites(),
	}, nil
}

// IsCurrentNode reports whether the cache has all own writes of the node.
func (w *Writer) IsCurrentNode(name string) bool {
	return w.Nodes.EnsureReady(types.NamespacedName{Name: name}) == nil
}

// IsCurrentMaintenance reports whether the cache has all own writes of the maintenance.
func (w *Writer) IsCurrentMaintenance(name string) bool {
	return w.Maintenances.EnsureReady(types.NamespacedName{Name: name}) == nil
}

// IsCurrentBudget reports whether the cache has all own writes of the budget.
func (w *Writer) IsCurrentBudget(name string) bool {
	return w.budgets.EnsureReady(types.NamespacedName{Name: name}) == nil
}

// ForgetBudget forgets the writes of a budget that is gone.
func (w *Writer) ForgetBudget(name string) { w.budgets.Clear(types.NamespacedName{Name: name}, "") }

// ForgetNode forgets the writes of a node that is gone.
func (w *Writer) ForgetNode(name string) {
	w.Nodes.Clear(types.NamespacedName{Name: name}, "")
	w.ownStatuses.Delete(name)
}

// ownStatus is the status.maintenanceStatus of a node as the API server has stored it for this controller.
type ownStatus struct {
	uid         types.UID
	maintenance *v1.MaintenanceStatus
}

// IsStatusUndone reports whether another client has changed status.maintenanceStatus since it was last written. The cache
// has that write.
func (w *Writer) IsStatusUndone(node *v1.Node) bool {
	found, written := w.ownStatuses.Load(node.Name)
	return written && found.(ownStatus).uid == node.UID &&
		!apiequality.Semantic.DeepEqual(found.(ownStatus).maintenance, node.Status.MaintenanceStatus)
}

// ForgetMaintenance forgets the writes of a maintenance that is gone.
func (w *Writer) ForgetMaintenance(name string) {
	w.Maintenances.Clear(types.NamespacedName{Name: name}, "")
}

// Cordon makes the node unschedulable, unless it has changed in what the decision was based on, and returns it as it is
// then: a controller that continues after it has lost its lease must not cordon a node that was released since, which nobody
// would uncordon.
func (w *Writer) Cordon(ctx context.Context, node *v1.Node) (written *v1.Node, err error) {
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

// Uncordon makes the node schedulable, unless it has changed in what the decision was based on, and returns it as it is
// then; or, if another client wants it to be unschedulable, that field manager. ofMerged says who has cordoned it if the
// managed fields do not, and "" if that is this controller. The managed fields are read from the API server, because the
// cache does not have them, and that version is the precondition: who applies a cordon to a cordoned node changes nothing
// else.
func (w *Writer) Uncordon(ctx context.Context, node *v1.Node, ofMerged func(*v1.Node) string) (written *v1.Node, manager string, err error) {
	latest, err := w.Client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("reading who has cordoned the node: %w", err)
	case latest.UID != node.UID:
		return nil, "", apierrors.NewConflict(NodeResource, node.Name, errors.New("another node has its name now"))
	case NeedsDecision(node, latest):
		w.wroteNode(node, latest.ResourceVersion) // The next decision waits until the cache has it.
		return nil, "", apierrors.NewConflict(NodeResource, node.Name, errors.New("the cache does not have its latest version"))
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

func (w *Writer) patchUnschedulable(ctx context.Context, node *v1.Node, unschedulable, asRead bool) (*v1.Node, error) {
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
		case name == FieldManager:
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

// CordonPlanned cordons a node, removes the taint of planned nodes, and returns it as it is then. The
// taints are written as a whole: those that another client has added meanwhile would be lost, unless
// the node is as it was read.
func (w *Writer) CordonPlanned(ctx context.Context, node *v1.Node) (written *v1.Node, err error) {
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
func (w *Writer) patchSpec(ctx context.Context, node *v1.Node, spec map[string]any, asRead bool) (*v1.Node, error) {
	metadata := map[string]any{"uid": node.UID}
	if asRead {
		metadata["resourceVersion"] = node.ResourceVersion
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	written, err := w.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, err
	}
	w.wroteNode(node, written.ResourceVersion)
	return written, nil
}

// SetTaint adds the taint of planned nodes, or removes it, and returns the node as it is then.
func (w *Writer) SetTaint(ctx context.Context, node *v1.Node, planned bool) (written *v1.Node, err error) {
	err = w.asDecided(ctx, node, func(node *v1.Node) (err error) {
		written, err = w.patchSpec(ctx, node, map[string]any{"taints": taintsWith(node.Spec.Taints, planned)}, true)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("setting the taint %s of the node: %w", coordinationv1alpha1.NodePlannedTaint, err)
	}
	return written, nil
}

// SetNodeStatus writes the parts of the node's status that this controller owns. The precondition on
// the resourceVersion excludes targets that are based on old ones. If no maintenance concerns the node, its conditions are
// those of other clients, who may have written some since the decision.
func (w *Writer) SetNodeStatus(ctx context.Context, node *v1.Node, desired *v1.MaintenanceStatus, conditions []v1.NodeCondition) error {
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
func (w *Writer) asDecided(ctx context.Context, node *v1.Node, write func(node *v1.Node) error) error {
	var conflict error
	for range MaxStatusConflicts {
		conflict = write(node)
		if !apierrors.IsConflict(conflict) {
			return conflict
		}
		latest, err := w.Client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading the node after a conflict: %w", err)
		}
		if NeedsDecision(node, latest) || node.Status.NodeInfo.BootID != latest.Status.NodeInfo.BootID {
			w.wroteNode(node, latest.ResourceVersion) // The next decision waits until the cache has it.
			return conflict
		}
		node = latest
	}
	// This is no conflict that a retry resolves, but a failure to report.
	return fmt.Errorf("%w that %d attempts in a row failed: %v", errContended, MaxStatusConflicts, conflict) //nolint:errorlint // See above.
}

func (w *Writer) patchNodeStatus(ctx context.Context, node *v1.Node, status *v1.MaintenanceStatus, conditions []v1.NodeCondition) error {
	patch, err := nodeStatusPatch(node, status, conditions)
	if err != nil {
		return err
	}
	written, err := w.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of the node: %w", err)
	}
	w.ownStatuses.Store(node.Name, ownStatus{node.UID, written.Status.MaintenanceStatus})
	w.wroteNode(node, written.ResourceVersion)
	if status == nil && written.Status.MaintenanceStatus != nil {
		// The API server has restored it, and returned a warning.
		return apierrors.NewForbidden(NodeResource, node.Name, fmt.Errorf(
			"the API server has kept status.maintenanceStatus, whose removal needs the verb %q on the resource %q", maintenance.ControlVerb, "nodes/status"))
	}
	if status != nil {
		return HasStored(written, status.Admissions)
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

func (w *Writer) wroteNode(node *v1.Node, version string) {
	w.Nodes.WroteAt(types.NamespacedName{Name: node.Name}, node.UID, NodeResource, version)
}

// Request requests the eviction of the pod.
func (w *Writer) Request(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
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

// Withdraw withdraws from the request for the pod, which is the one that the cache has.
func (w *Writer) Withdraw(ctx context.Context, pod *v1.Pod, request *coordinationv1alpha1.EvictionRequest) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
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
func (w *Writer) hasRequestsOf(version string) bool {
	cached := w.requests.LastStoreSyncResourceVersion()
	if cached == "" {
		return true // The cache does not know its version.
	}
	order, err := resourceversion.CompareResourceVersion(version, cached)
	return err != nil || order <= 0
}

// hasOther reports whether the cache has another version of the request, or none.
func (w *Writer) hasOther(request *coordinationv1alpha1.EvictionRequest) bool {
	cached, ok, err := w.requests.Get(request)
	return err != nil || !ok || cached.(*coordinationv1alpha1.EvictionRequest).ResourceVersion != request.ResourceVersion
}

// patch changes fields of the maintenance, unless it has changed since it was read, and reports whether
// they were written. It leaves fields of a later release alone, which a whole object would not have.
func (w *Writer) patch(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance, metadata, spec map[string]any) (bool, error) {
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
	written, err := w.Client.CoordinationV1alpha1().NodeMaintenances().Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return err == nil, w.wrote(ctx, m, written, err)
}

// AddFinalizer keeps the maintenance from being removed before it is completed.
func (w *Writer) AddFinalizer(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) error {
	finalizers := append(slices.Clone(m.Finalizers), coordinationv1alpha1.NodeMaintenanceFinalizer)
	_, err := w.patch(ctx, m, map[string]any{"finalizers": finalizers}, nil)
	return err
}

// RemoveFinalizer ends the maintenance, and reports whether it did.
func (w *Writer) RemoveFinalizer(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) (bool, error) {
	finalizers := slices.DeleteFunc(slices.Clone(m.Finalizers), func(name string) bool { return name == coordinationv1alpha1.NodeMaintenanceFinalizer })
	return w.patch(ctx, m, map[string]any{"finalizers": finalizers}, nil)
}

// Complete moves a maintenance that is being deleted to the stage Complete.
func (w *Writer) Complete(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) error {
	_, err := w.patch(ctx, m, nil, map[string]any{"stage": coordinationv1alpha1.NodeMaintenanceStageComplete})
	return err
}

// BeginStatus reports whether the caller may write the status of this version of a maintenance, and has
// to call EndStatus then: no other write is in flight, none is missing in the cache, and the cache has no
// other version. Two workers write it: without this, one of them would often lose a conflict.
func (w *Writer) BeginStatus(m *coordinationv1alpha1.NodeMaintenance, lister coordinationlisters.NodeMaintenanceLister) bool {
	w.statusLock.Lock()
	defer w.statusLock.Unlock()
	// While no other write is in flight, the last one is known.
	if _, inFlight := w.statuses[m.Name]; inFlight || !w.IsCurrentMaintenance(m.Name) {
		return false
	}
	if cached, err := lister.Get(m.Name); err != nil || cached.ResourceVersion != m.ResourceVersion {
		return false
	}
	w.statuses[m.Name] = w.clock.Now()
	return true
}

// IsStatusSlow reports whether a write of the status has been in flight for longer than pace.StatusInterval.
func (w *Writer) IsStatusSlow(name string, now time.Time) bool {
	w.statusLock.Lock()
	defer w.statusLock.Unlock()
	begun, inFlight := w.statuses[name]
	return inFlight && now.Sub(begun) > pace.StatusInterval
}

// EndStatus ends what BeginStatus has begun.
func (w *Writer) EndStatus(name string) {
	w.statusLock.Lock()
	defer w.statusLock.Unlock()
	delete(w.statuses, name)
}

// SetStatus writes the status of a maintenance.
func (w *Writer) SetStatus(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance, status *coordinationv1alpha1.NodeMaintenanceStatus) (bool, error) {
	changed := m.DeepCopy()
	changed.Status = *status
	written, err := w.Client.CoordinationV1alpha1().NodeMaintenances().UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: FieldManager})
	return err == nil, w.wrote(ctx, changed, written, err)
}

// wrote records a write of a maintenance. That the maintenance has changed or is gone is no error:
// the event of the change causes the next sync.
func (w *Writer) wrote(ctx context.Context, m, written *coordinationv1alpha1.NodeMaintenance, err error) error {
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		klog.FromContext(ctx).V(4).Info("The maintenance has changed since it was read", "nodeMaintenance", klog.KObj(m))
		return nil
	case err != nil:
		return fmt.Errorf("writing the maintenance: %w", err)
	}
	w.Maintenances.WroteAt(types.NamespacedName{Name: m.Name}, m.UID, MaintenanceResource, written.ResourceVersion)
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

// NeedsDecision reports whether a node has changed in what decisions are based on. Its conditions
// only follow from decisions.
func NeedsDecision(old, node *v1.Node) bool {
	return old.UID != node.UID ||
		old.Spec.Unschedulable != node.Spec.Unschedulable ||
		maintenance.StopsStaticPods(old) != maintenance.StopsStaticPods(node) ||
		!maps.Equal(old.Labels, node.Labels) ||
		!apiequality.Semantic.DeepEqual(old.Status.MaintenanceStatus, node.Status.MaintenanceStatus)
}

// ChangesAdmission reports whether a node has changed in what its admissions are decided on, besides
// what other decisions are based on.
func ChangesAdmission(old, node *v1.Node) bool {
	return maintenance.IsReady(old) != maintenance.IsReady(node) || maintenance.IsBeingRemoved(old) != maintenance.IsBeingRemoved(node) ||
		old.Status.NodeInfo.BootID != node.Status.NodeInfo.BootID ||
		old.Annotations[coordinationv1alpha1.NodeDoneAnnotation] != node.Annotations[coordinationv1alpha1.NodeDoneAnnotation] ||
		!slices.EqualFunc(old.Spec.Taints, node.Spec.Taints, func(a, b v1.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect && a.Value == b.Value })
}

// HasTaint reports whether the node has the taint of planned nodes.
func HasTaint(node *v1.Node) bool { return slices.ContainsFunc(node.Spec.Taints, IsPlannedTaint) }

// IsPlannedTaint reports whether a taint is that of planned nodes, with any value and effect.
func IsPlannedTaint(taint v1.Taint) bool { return taint.Key == coordinationv1alpha1.NodePlannedTaint }

// taintsWith returns the taints with that of planned nodes, or without it. Another value or effect,
// which another client has given it, is corrected.
func taintsWith(taints []v1.Taint, planned bool) []v1.Taint {
	others := slices.DeleteFunc(slices.Clone(taints), IsPlannedTaint)
	if !planned {
		return others
	}
	return append(others, v1.Taint{Key: coordinationv1alpha1.NodePlannedTaint, Effect: v1.TaintEffectPreferNoSchedule})
}
