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
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	ref "k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/kubernetes/pkg/controller/util/serverclock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var (
	requestResource = coordinationv1alpha1.Resource("evictionrequests")
	start           = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// fixture is a controller whose queues, clock and API server the test controls: nothing runs in
// the background. Its caches have what was delivered.
type fixture struct {
	*Controller
	t       testing.TB
	ctx     context.Context
	client  *fake.Clientset
	tracker *versionedTracker
	// clock is that of the API server. That of the controller is ahead by skew from its start on.
	clock *testingclock.FakeClock
	skew  time.Duration

	maintenanceInformer, requestInformer, nodeInformer, podInformer *handledInformer
	nodeQueue, maintenanceQueue, writeQueue, refreshQueue           *recordedQueue
	// namespaceInformer and attachmentInformer have objects that tests deliver.
	namespaceInformer, attachmentInformer *handledInformer
	// limitInformer has the NodeMaintenanceBudgets, and withoutFleet is whether their gate is off.
	limitInformer *handledInformer
	daemonSets    cache.Store
	// owners have caches that tests fill.
	owners *returns.OwnerInformers
	// namespaces, attachments, claims and podBudgetCache are caches that tests fill.
	namespaces, attachments, claims, podBudgetCache cache.Store
	admissionQueue                                  *recordedQueue
	withoutFleet                                    bool
	// heldLimits is whether the cache of NodeMaintenanceBudgets gets nothing.
	heldLimits bool
	// admitting is whether the only worker for admissions is busy.
	admitting bool
	// events are the emitted events, as "kind name: reason: note".
	events []string
	uids   int
	// running are the writes of requests that workers have started, and hung the namespaces in
	// which they get no response.
	running []heldWrite
	hung    sets.Set[string]
	// absences are the interceptors that nobody runs.
	absences *Absences
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	client, tracker := newVersionedClient()
	f := &fixture{t: t, ctx: ctx, client: client, tracker: tracker, clock: testingclock.NewFakeClock(start)}
	client.PrependReactor("*", "*", f.tellTime)
	f.restart()
	return f
}

// tellTime has each answer to the controller say what time it is.
func (f *fixture) tellTime(action clienttesting.Action) (bool, runtime.Object, error) {
	if f.Controller != nil && (isByController(action) || action.Matches("list", "nodemaintenancebudgets")) {
		local := f.Controller.clock.WithTicker.Now()
		f.Controller.clock.Observe(f.clock.Now(), local, local)
	}
	return false, nil, nil
}

// skewedClock is a clock that is ahead of another one.
type skewedClock struct {
	*testingclock.FakeClock
	ahead time.Duration
}

func (c *skewedClock) Now() time.Time { return c.FakeClock.Now().Add(c.ahead) }

func (c *skewedClock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// restart replaces the controller by a new one with up-to-date caches.
func (f *fixture) restart() {
	f.t.Helper()
	factory := informers.NewSharedInformerFactory(f.client, 0)
	maintenances, requests := factory.Coordination().V1alpha1().NodeMaintenances(), factory.Coordination().V1alpha1().EvictionRequests()
	nodes, pods, budgets := factory.Core().V1().Nodes(), factory.Core().V1().Pods(), factory.Policy().V1().PodDisruptionBudgets()
	f.maintenanceInformer = &handledInformer{SharedIndexInformer: maintenances.Informer()}
	f.requestInformer = &handledInformer{SharedIndexInformer: requests.Informer()}
	f.nodeInformer = &handledInformer{SharedIndexInformer: nodes.Informer()}
	f.podInformer = &handledInformer{SharedIndexInformer: pods.Informer()}
	f.podBudgetCache = budgets.Informer().GetStore()
	f.limitInformer = &handledInformer{SharedIndexInformer: factory.Coordination().V1alpha1().NodeMaintenanceBudgets().Informer()}
	f.namespaceInformer = &handledInformer{SharedIndexInformer: factory.Core().V1().Namespaces().Informer()}
	f.attachmentInformer = &handledInformer{SharedIndexInformer: factory.Storage().V1().VolumeAttachments().Informer()}
	fleet := &FleetInformers{
		Budgets:    handledLimits{factory.Coordination().V1alpha1().NodeMaintenanceBudgets(), f.limitInformer},
		DaemonSets: factory.Apps().V1().DaemonSets(), Namespaces: handledNamespaces{factory.Core().V1().Namespaces(), f.namespaceInformer},
		VolumeAttachments: handledAttachments{factory.Storage().V1().VolumeAttachments(), f.attachmentInformer}, Claims: factory.Core().V1().PersistentVolumeClaims(),
	}
	f.namespaces, f.attachments, f.claims = fleet.Namespaces.Informer().GetStore(), fleet.VolumeAttachments.Informer().GetIndexer(), fleet.Claims.Informer().GetStore()
	f.daemonSets = fleet.DaemonSets.Informer().GetStore()
	f.owners = &returns.OwnerInformers{
		Jobs: factory.Batch().V1().Jobs(), ReplicaSets: factory.Apps().V1().ReplicaSets(),
		StatefulSets: factory.Apps().V1().StatefulSets(), ReplicationControllers: factory.Core().V1().ReplicationControllers(),
	}
	if f.withoutFleet {
		fleet = nil
	}
	c, err := New(f.ctx, Config{
		Maintenances: handledMaintenances{maintenances, f.maintenanceInformer}, Requests: handledRequests{requests, f.requestInformer},
		Nodes: handledNodes{nodes, f.nodeInformer}, Pods: handledPods{pods, f.podInformer}, PodDisruptionBudgets: budgets,
		Client: f.client, RequestClient: f.client, EventClient: f.client, Absences: f.absences, Owners: f.owners, Fleet: fleet,
		Clock: serverclock.New(&skewedClock{FakeClock: f.clock, ahead: f.skew}),
	})
	if err != nil {
		f.t.Fatalf("creating the controller: %v", err)
	}
	c.broadcaster.Shutdown()
	c.events = write.NewEvents(f, c.clock)
	// The real queues run in the background.
	for queue, recorded := range map[*workqueue.TypedRateLimitingInterface[string]]**recordedQueue{
		&c.nodeQueue: &f.nodeQueue, &c.maintenanceQueue: &f.maintenanceQueue, &c.writeQueue: &f.writeQueue, &c.refreshQueue: &f.refreshQueue,
		&c.admissions.queue: &f.admissionQueue,
	} {
		(*queue).ShutDown()
		*recorded = newRecordedQueue(f.clock)
		*queue = *recorded
	}
	f.Controller, f.running = c, nil
	f.deliverAll()
	logger, _ := ktesting.NewTestContext(f.t)
	all, current := c.awaitLimits(f.ctx)
	if !current {
		f.t.Fatal("the budgets are not current")
	}
	c.begun = c.clock.Now()
	c.observeAll(logger, all)
}

// Eventf implements events.EventRecorder.
func (f *fixture) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	reference, err := ref.GetReference(scheme.Scheme, regarding)
	if err != nil {
		f.t.Errorf("event about an unknown object: %v", err)
		return
	}
	f.events = append(f.events, fmt.Sprintf("%s %s: %s: %s", reference.Kind, reference.Name, reason, fmt.Sprintf(note, args...)))
}

// deliverAll updates all caches except that of budgets.
func (f *fixture) deliverAll() {
	f.deliverNodes()
	f.deliverMaintenances()
	f.deliverPods()
	f.deliverRequests()
	f.deliverLimits()
}

func (f *fixture) deliverLimits() {
	if f.withoutFleet || f.heldLimits {
		return
	}
	// Not through the client: tests count the reads of the controller.
	list, err := f.tracker.List(coordinationv1alpha1.SchemeGroupVersion.WithResource("nodemaintenancebudgets"), coordinationv1alpha1.SchemeGroupVersion.WithKind("NodeMaintenanceBudget"), "")
	if err != nil {
		f.t.Fatalf("listing budgets: %v", err)
	}
	deliver(f, f.limitInformer, ptrs(list.(*coordinationv1alpha1.NodeMaintenanceBudgetList).Items), nil)
}

// deliverSome updates some of these caches, in a random order.
func (f *fixture) deliverSome(random *rand.Rand) {
	kinds := []func(){f.deliverNodes, f.deliverMaintenances, f.deliverPods, f.deliverRequests}
	random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, deliver := range kinds[:random.IntN(len(kinds)+1)] {
		deliver()
	}
}

func (f *fixture) deliverNodes() {
	list, err := f.client.CoreV1().Nodes().List(f.ctx, metav1.ListOptions{})
	deliver(f, f.nodeInformer, ptrs(list.Items), err)
}

func (f *fixture) deliverMaintenances() {
	list, err := f.client.CoordinationV1alpha1().NodeMaintenances().List(f.ctx, metav1.ListOptions{})
	deliver(f, f.maintenanceInformer, ptrs(list.Items), err)
}

func (f *fixture) deliverPods() {
	list, err := f.client.CoreV1().Pods("").List(f.ctx, metav1.ListOptions{})
	deliver(f, f.podInformer, ptrs(list.Items), err)
}

func (f *fixture) deliverRequests() {
	list, err := f.client.CoordinationV1alpha1().EvictionRequests("").List(f.ctx, metav1.ListOptions{})
	deliver(f, f.requestInformer, ptrs(list.Items), err)
}

// deliverBudgets is not part of deliverAll, because few tests have budgets. The controller handles no
// events of them.
func (f *fixture) deliverBudgets() {
	list, err := f.client.PolicyV1().PodDisruptionBudgets("").List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatalf("listing: %v", err)
	}
	for i := range list.Items {
		if err := f.podBudgetCache.Update(&list.Items[i]); err != nil {
			f.t.Fatalf("updating a cache: %v", err)
		}
	}
}

func ptrs[T any](items []T) []*T {
	pointers := make([]*T, 0, len(items))
	for i := range items {
		pointers = append(pointers, &items[i])
	}
	return pointers
}

func deliver[T metav1.Object](f *fixture, informer *handledInformer, objects []T, err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("listing: %v", err)
	}
	indexer := informer.GetIndexer()
	for _, object := range objects {
		old, known, err := indexer.Get(object)
		if err != nil {
			f.t.Fatalf("reading a cache: %v", err)
		}
		if known && apiequality.Semantic.DeepEqual(old, object) {
			continue
		}
		if err := indexer.Update(object); err != nil {
			f.t.Fatalf("updating a cache: %v", err)
		}
		if known {
			informer.handler.OnUpdate(old, object)
		} else {
			informer.handler.OnAdd(object, false)
		}
	}
	for _, cached := range indexer.List() {
		known := cached.(metav1.Object)
		if slices.ContainsFunc(objects, func(o T) bool { return o.GetName() == known.GetName() && o.GetNamespace() == known.GetNamespace() }) {
			continue
		}
		if err := indexer.Delete(cached); err != nil {
			f.t.Fatalf("updating a cache: %v", err)
		}
		informer.handler.OnDelete(cached)
	}
	indexer.Bookmark(strconv.Itoa(f.tracker.version))
}

// settleHorizon is the longest delay of a key that settle waits for.
const settleHorizon = pace.RevertPause

// settle runs the controller with up-to-date caches until no key is due within settleHorizon.
func (f *fixture) settle() {
	f.t.Helper()
	for range 2000 {
		f.deliverAll()
		if f.step() {
			continue
		}
		due, ok := f.nextDue()
		if !ok || due.Sub(f.clock.Now()) > settleHorizon {
			return
		}
		f.advanceTo(due)
	}
	f.t.Fatalf("the controller does not settle; queues: %v", f.queues())
}

// run runs the controller with up-to-date caches for that time.
func (f *fixture) run(duration time.Duration) {
	f.t.Helper()
	end := f.clock.Now().Add(duration)
	for range 100000 {
		f.deliverAll()
		if f.step() {
			continue
		}
		due, ok := f.nextDue()
		if !ok || due.After(end) {
			f.advanceTo(end)
			return
		}
		f.advanceTo(due)
	}
	f.t.Fatalf("the controller never becomes idle; queues: %v", f.queues())
}

// nextDue returns when the next delayed key is due.
func (f *fixture) nextDue() (time.Time, bool) {
	var next time.Time
	for _, queue := range f.queues() {
		for _, due := range queue.later {
			if next.IsZero() || due.Before(next) {
				next = due
			}
		}
	}
	return next, !next.IsZero()
}

func (f *fixture) advanceTo(due time.Time) {
	if due.After(f.clock.Now()) {
		f.clock.SetTime(due)
	}
	for _, queue := range f.queues() {
		queue.release()
	}
}

func (f *fixture) queues() []*recordedQueue {
	return []*recordedQueue{f.nodeQueue, f.maintenanceQueue, f.writeQueue, f.refreshQueue, f.admissionQueue}
}

// step handles one write of a request or one key, and reports whether there was one.
func (f *fixture) step() bool {
	f.t.Helper()
	return f.stepRequests() || f.stepSyncs()
}

// stepSyncs handles one key, and reports whether there was one.
func (f *fixture) stepSyncs() bool {
	f.t.Helper()
	if name, ok := f.maintenanceQueue.next(); ok {
		f.try(f.syncMaintenance(f.ctx, name), f.maintenanceQueue, name)
		return true
	}
	if name, ok := f.nodeQueue.next(); ok {
		f.try(f.syncNode(f.ctx, name), f.nodeQueue, name)
		return true
	}
	for _, queue := range []*recordedQueue{f.writeQueue, f.refreshQueue} {
		if name, ok := queue.next(); ok {
			f.try(f.writeNode(f.ctx, name), queue, name)
			return true
		}
	}
	if f.admitting {
		return false
	}
	if name, ok := f.admissionQueue.next(); ok {
		f.admitting = true
		f.try(f.syncAdmissions(f.ctx, name), f.admissionQueue, name)
		f.admitting = false
		return true
	}
	return false
}

// reconcile syncs a node and makes the writes to the node that follow.
func (f *fixture) reconcile(name string) {
	f.t.Helper()
	if err := f.syncNode(f.ctx, name); err != nil {
		f.t.Fatal(err)
	}
	for _, queue := range []*recordedQueue{f.writeQueue, f.refreshQueue} {
		if due, ok := queue.next(); ok {
			if err := f.writeNode(f.ctx, due); err != nil {
				f.t.Fatal(err)
			}
		}
	}
}

// stepRequests ends a running write or starts one, and reports whether there was one.
func (f *fixture) stepRequests() bool {
	for i, w := range f.running {
		if !f.hung.Has(w.Namespace) {
			f.endRequest(i, answered)
			return true
		}
	}
	return f.beginRequest()
}

// heldWrite is a write that a worker has started.
type heldWrite struct {
	requests.Write
	// write is nil if the write is no longer wanted.
	write func(context.Context) error
	// causes are the maintenances that want the write, and nodeUID is the UID of their node.
	causes  []types.UID
	nodeUID types.UID
	// confirmed records what the API server has said of the node before the write hung; nil if it does not hang.
	confirmed func()
}

// beginRequest starts the next write, if a worker is free, and reports whether it did.
func (f *fixture) beginRequest() bool {
	w, found := f.requests.TryGet()
	if !found {
		return false
	}
	held := heldWrite{Write: w, write: f.nextWrite(w)}
	if node, err := f.nodeLister.Get(w.Node); err == nil && !w.Withdraw {
		held.nodeUID = node.UID
		specs, _ := f.progress.Selecting(node)
		for _, o := range specs {
			if o.Drains() {
				held.causes = append(held.causes, o.UID)
			}
		}
		if f.hung.Has(w.Namespace) {
			held.confirmed = func() { f.confirm.Assume(node, specs, progress.StoredTargets(node), f.clock.Now()) }
		}
	}
	f.running = append(f.running, held)
	return true
}

// outcome is how a write of a request ends.
type outcome int

const (
	answered outcome = iota
	// late is a write that succeeds after the controller has timed out.
	late
	timedOut
)

// endRequest ends a running write.
func (f *fixture) endRequest(i int, how outcome) {
	w := f.running[i]
	if w.write != nil {
		err := error(context.DeadlineExceeded)
		if how != timedOut {
			if w.confirmed != nil {
				w.confirmed()
			}
			if how == late {
				// The controller must not know of a write without a response.
				_ = f.writer.Unanswered(w.Node, func() error { return w.write(f.ctx) })
			} else {
				err = w.write(f.ctx)
			}
		}
		f.recordOutcome(f.ctx, w.Write, err)
	}
	f.running = slices.Delete(f.running, i, i+1)
	f.endWrite(w.Write)
}

func (f *fixture) try(err error, queue *recordedQueue, name string) {
	if err != nil {
		queue.AddAfter(name, 10*minBackoff)
	}
}

func (f *fixture) newUID() types.UID {
	f.uids++
	return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", f.uids))
}

func (f *fixture) createNode(name string, labels map[string]string) {
	f.t.Helper()
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: f.newUID(), Labels: labels},
		Status:     v1.NodeStatus{DeclaredFeatures: []string{maintenance.KubeletFeature}},
	}
	if _, err := f.client.CoreV1().Nodes().Create(f.ctx, node, metav1.CreateOptions{}); err != nil {
		f.t.Fatalf("creating a node: %v", err)
	}
}

func (f *fixture) node(name string) *v1.Node {
	f.t.Helper()
	node, err := f.client.CoreV1().Nodes().Get(f.ctx, name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatalf("reading a node: %v", err)
	}
	return node
}

// createPods creates pods with that priority on a node.
func (f *fixture) createPods(count int, node string, priority int32, options ...func(*v1.Pod)) []*v1.Pod {
	f.t.Helper()
	pods := make([]*v1.Pod, count)
	for i := range pods {
		uid := f.newUID()
		pods[i] = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod-" + strconv.Itoa(f.uids), UID: uid, Labels: map[string]string{}},
			Spec:       v1.PodSpec{NodeName: node, Priority: &priority},
		}
		for _, option := range options {
			option(pods[i])
		}
		if _, err := f.client.CoreV1().Pods(pods[i].Namespace).Create(f.ctx, pods[i], metav1.CreateOptions{}); err != nil {
			f.t.Fatalf("creating a pod: %v", err)
		}
	}
	return pods
}

func (f *fixture) deletePods(pods ...*v1.Pod) {
	f.t.Helper()
	for _, pod := range pods {
		if err := f.client.CoreV1().Pods(pod.Namespace).Delete(f.ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
			f.t.Fatalf("deleting a pod: %v", err)
		}
	}
}

func ofApp(app string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Labels["app"] = app }
}

func daemon(pod *v1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: ptr.To(true)}}
}

func mirror(pod *v1.Pod) { pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "m"} }

func entry(podType v1.PodType, priority int32) v1.DrainPlanEntry {
	return v1.DrainPlanEntry{PodType: podType, PodPriority: priority}
}

func entryFor(app string, podType v1.PodType, priority int32) v1.DrainPlanEntry {
	return v1.DrainPlanEntry{PodType: podType, PodPriority: priority, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
}

// createMaintenance creates a maintenance that selects the nodes with the label.
func (f *fixture) createMaintenance(name string, stage coordinationv1alpha1.NodeMaintenanceStage, label string, plan ...v1.DrainPlanEntry) {
	f.t.Helper()
	m := &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: f.newUID(), Generation: 1, CreationTimestamp: metav1.NewTime(f.clock.Now())},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: stage, DrainPlan: plan, NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: label, Operator: v1.NodeSelectorOpExists}},
		}}}},
	}
	if _, err := f.client.CoordinationV1alpha1().NodeMaintenances().Create(f.ctx, m, metav1.CreateOptions{}); err != nil {
		f.t.Fatalf("creating a maintenance: %v", err)
	}
}

func (f *fixture) maintenance(name string) *coordinationv1alpha1.NodeMaintenance {
	f.t.Helper()
	m, err := f.client.CoordinationV1alpha1().NodeMaintenances().Get(f.ctx, name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatalf("reading a maintenance: %v", err)
	}
	return m
}

func (f *fixture) change(name string, change func(*coordinationv1alpha1.NodeMaintenance)) {
	f.t.Helper()
	m := f.maintenance(name)
	change(m)
	if _, err := f.client.CoordinationV1alpha1().NodeMaintenances().Update(f.ctx, m, metav1.UpdateOptions{}); err != nil {
		f.t.Fatalf("changing a maintenance: %v", err)
	}
}

func (f *fixture) setStage(name string, stage coordinationv1alpha1.NodeMaintenanceStage) {
	f.t.Helper()
	f.change(name, func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Stage = stage })
}

// deleteMaintenance deletes like the API server: with finalizers it sets a deletionTimestamp.
func (f *fixture) deleteMaintenance(name string) {
	f.t.Helper()
	if m := f.maintenance(name); len(m.Finalizers) > 0 {
		if m.DeletionTimestamp == nil {
			f.change(name, func(m *coordinationv1alpha1.NodeMaintenance) {
				m.DeletionTimestamp = ptr.To(metav1.NewTime(f.clock.Now()))
			})
		}
		return
	}
	if err := f.client.CoordinationV1alpha1().NodeMaintenances().Delete(f.ctx, name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatalf("deleting a maintenance: %v", err)
	}
}

func (f *fixture) relabel(name string, labels map[string]string) {
	f.t.Helper()
	node := f.node(name)
	node.Labels = labels
	if _, err := f.client.CoreV1().Nodes().Update(f.ctx, node, metav1.UpdateOptions{}); err != nil {
		f.t.Fatalf("changing the labels of a node: %v", err)
	}
}

// handledInformer keeps its event handler, so that the test delivers the events.
type handledInformer struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
}

func (i *handledInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handler = handler
	return nil, nil
}

type handledMaintenances struct {
	coordinationinformers.NodeMaintenanceInformer
	informer cache.SharedIndexInformer
}

func (h handledMaintenances) Informer() cache.SharedIndexInformer { return h.informer }

type handledRequests struct {
	coordinationinformers.EvictionRequestInformer
	informer cache.SharedIndexInformer
}

func (h handledRequests) Informer() cache.SharedIndexInformer { return h.informer }

type handledNamespaces struct {
	coreinformers.NamespaceInformer
	informer cache.SharedIndexInformer
}

func (h handledNamespaces) Informer() cache.SharedIndexInformer { return h.informer }

type handledAttachments struct {
	storageinformers.VolumeAttachmentInformer
	informer cache.SharedIndexInformer
}

func (h handledAttachments) Informer() cache.SharedIndexInformer { return h.informer }

type handledLimits struct {
	coordinationinformers.NodeMaintenanceBudgetInformer
	informer cache.SharedIndexInformer
}

func (h handledLimits) Informer() cache.SharedIndexInformer { return h.informer }

type handledNodes struct {
	coreinformers.NodeInformer
	informer cache.SharedIndexInformer
}

func (h handledNodes) Informer() cache.SharedIndexInformer { return h.informer }

type handledPods struct {
	coreinformers.PodInformer
	informer cache.SharedIndexInformer
}

func (h handledPods) Informer() cache.SharedIndexInformer { return h.informer }

// recordedQueue is a queue that delays keys by the clock of the test. Methods that the controller
// does not use are missing and panic.
type recordedQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	clock *testingclock.FakeClock
	// lock makes adding keys safe for concurrent use, like in the real queue.
	lock sync.Mutex
	keys []string
	// later has the time at which each delayed key is due.
	later map[string]time.Time
}

func newRecordedQueue(clock *testingclock.FakeClock) *recordedQueue {
	return &recordedQueue{clock: clock, later: map[string]time.Time{}}
}

func (q *recordedQueue) String() string { return fmt.Sprintf("now %v, later %v", q.keys, q.later) }

func (q *recordedQueue) Add(key string) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.add(key)
}

func (q *recordedQueue) add(key string) {
	if !slices.Contains(q.keys, key) {
		q.keys = append(q.keys, key)
	}
}

// AddAfter keeps the earliest time, as the real queue does.
func (q *recordedQueue) AddAfter(key string, delay time.Duration) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if delay <= 0 {
		q.add(key)
		return
	}
	due := q.clock.Now().Add(delay)
	if known, ok := q.later[key]; !ok || due.Before(known) {
		q.later[key] = due
	}
}

// release adds the delayed keys that are due.
func (q *recordedQueue) release() {
	for _, key := range slices.Sorted(maps.Keys(q.later)) {
		if !q.later[key].After(q.clock.Now()) {
			delete(q.later, key)
			q.Add(key)
		}
	}
}

func (q *recordedQueue) next() (string, bool) {
	if len(q.keys) == 0 {
		return "", false
	}
	key := q.keys[0]
	q.keys = q.keys[1:]
	return key, true
}

// shuffle changes the order of the keys.
func (q *recordedQueue) shuffle(random *rand.Rand) {
	random.Shuffle(len(q.keys), func(i, j int) { q.keys[i], q.keys[j] = q.keys[j], q.keys[i] })
}

// termFor selects a node by its name (even i, like kubectl) or by its hostname label (like users).
func termFor(i int, name string) v1.NodeSelectorTerm {
	if i%2 == 0 {
		return v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}
	}
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}
}
