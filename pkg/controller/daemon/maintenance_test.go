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

package daemon

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/daemon/util"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/utils/ktesting"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

func setAwareness(t *testing.T, aware bool) {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI:            aware,
		features.DeclarativeNodeMaintenance:    aware,
		features.NodeMaintenanceAwareDaemonSet: aware,
	})
}

// respectMaintenances sets up the controller like NewInterceptor.
func (m *daemonSetsController) respectMaintenances(t *testing.T, classes ...*schedulingv1.PriorityClass) {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, class := range classes {
		if err := indexer.Add(class); err != nil {
			t.Fatalf("adding class %s: %v", class.Name, err)
		}
	}
	m.priorityClassLister = schedulinglisters.NewPriorityClassLister(indexer)
}

func newClass(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}

func newDefaultClass(name string, value int32) *schedulingv1.PriorityClass {
	class := newClass(name, value)
	class.GlobalDefault = true
	return class
}

func targetsUpTo(priority int32) []v1.DrainPlanEntry {
	return []v1.DrainPlanEntry{
		{PodType: v1.PodTypeDefault, PodPriority: 2147483647},
		{PodType: v1.PodTypeDaemonSet, PodPriority: priority},
	}
}

func targetsFor(key, value string) []v1.DrainPlanEntry {
	return []v1.DrainPlanEntry{{
		PodType: v1.PodTypeDaemonSet, PodPriority: 5000, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
	}}
}

// drained is a node with these targets, or without a maintenance if they are nil.
func drained(name string, targets []v1.DrainPlanEntry) *v1.Node {
	node := newNode(name, nil)
	if targets != nil {
		node.Status.MaintenanceStatus = &v1.MaintenanceStatus{DrainTargets: targets}
	}
	return node
}

// shuttingDown is a node whose kubelet says for this reason that the machine shuts down.
func shuttingDown(name, reason string) *v1.Node {
	node := newNode(name, nil)
	node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: v1.NodeGracefulNodeShutdownInProgress, Status: v1.ConditionTrue, Reason: reason})
	return node
}

func ofClass(name string) *apps.DaemonSet {
	ds := newDaemonSet("agent")
	ds.Spec.Template.Spec.PriorityClassName = name
	return ds
}

func TestIsClosed(t *testing.T) {
	classes := []*schedulingv1.PriorityClass{newClass("low", 1000), newClass("high", 5000), newDefaultClass("usual", 200), newDefaultClass("other", 100)}
	cases := map[string]struct {
		targets []v1.DrainPlanEntry
		ds      *apps.DaemonSet
		classes []*schedulingv1.PriorityClass
		want    bool
	}{
		"no maintenance":                {ds: ofClass("low"), classes: classes},
		"nothing drained":               {targets: []v1.DrainPlanEntry{}, ds: ofClass("low"), classes: classes},
		"other pods":                    {targets: targetsUpTo(5000)[:1], ds: ofClass("low"), classes: classes},
		"below the targets":             {targets: targetsUpTo(4999), ds: ofClass("low"), classes: classes, want: true},
		"at the targets":                {targets: targetsUpTo(1000), ds: ofClass("low"), classes: classes, want: true},
		"above the targets":             {targets: targetsUpTo(4999), ds: ofClass("high"), classes: classes},
		"selected":                      {targets: targetsFor("type", "production"), ds: ofClass("low"), classes: classes, want: true},
		"not selected":                  {targets: targetsFor("type", "test"), ds: ofClass("low"), classes: classes},
		"the lowest default class":      {targets: targetsUpTo(100), ds: ofClass(""), classes: classes, want: true},
		"above with that":               {targets: targetsUpTo(99), ds: ofClass(""), classes: classes},
		"no default class":              {targets: targetsUpTo(0), ds: ofClass(""), classes: classes[:2], want: true},
		"no default class, below zero":  {targets: targetsUpTo(-1), ds: ofClass(""), classes: classes[:2]},
		"a missing class":               {targets: targetsUpTo(5000), ds: ofClass("lost"), classes: classes},
		"an invalid selector":           {targets: []v1.DrainPlanEntry{{PodType: v1.PodTypeDaemonSet, PodPriority: 5000, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"": ""}}}}, ds: ofClass("low"), classes: classes},
		"targets that take static pods": {targets: append(targetsUpTo(999), v1.DrainPlanEntry{PodType: v1.PodTypeStatic, PodPriority: 5000}), ds: ofClass("low"), classes: classes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, ctx := ktesting.NewTestContext(t)
			manager, _, _, err := newTestController(ctx)
			if err != nil {
				t.Fatalf("creating the controller: %v", err)
			}
			if node := drained("node", tc.targets); manager.isClosed(node, tc.ds) {
				t.Error("the node is closed to a controller without maintenances")
			}
			manager.respectMaintenances(t, tc.classes...)
			if got := manager.isClosed(drained("node", tc.targets), tc.ds); got != tc.want {
				t.Errorf("closed: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestShutdownCloses verifies that a node is closed while its kubelet terminates pods, and not while it is drained before
// it shuts down: then the targets decide.
func TestShutdownCloses(t *testing.T) {
	_, ctx := ktesting.NewTestContext(t)
	manager, _, _, err := newTestController(ctx)
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	if manager.isClosed(shuttingDown("node", maintenance.ShutdownTerminatingReason), ofClass("")) {
		t.Error("the node is closed to a controller without maintenances")
	}
	manager.respectMaintenances(t)
	for reason, want := range map[string]bool{maintenance.ShutdownTerminatingReason: true, maintenance.ShutdownReason: false, "Admin": false} {
		if got := manager.isClosed(shuttingDown("node", reason), ofClass("")); got != want {
			t.Errorf("%s: closed: %t, want %t", reason, got, want)
		}
	}
}

func TestShouldIgnoreTargetUpdate(t *testing.T) {
	counted := drained("node", targetsUpTo(1000))
	counted.Status.MaintenanceStatus.ActiveEvictionRequests = 5
	counted.Status.MaintenanceStatus.DrainMessage = "Draining"
	other := drained("node", targetsUpTo(1000))
	other.Status.MaintenanceStatus.DrainTargets[0].PodPriority = 1
	cases := map[string]struct {
		old, cur *v1.Node
		ignored  bool
	}{
		"nothing":               {drained("node", targetsUpTo(1000)), drained("node", targetsUpTo(1000)), true},
		"counters and messages": {drained("node", targetsUpTo(1000)), counted, true},
		"targets of other pods": {drained("node", targetsUpTo(1000)), other, true},
		"nothing drained":       {drained("node", nil), drained("node", []v1.DrainPlanEntry{}), true},
		"reached":               {drained("node", []v1.DrainPlanEntry{}), drained("node", targetsUpTo(1000)), false},
		"raised":                {drained("node", targetsUpTo(1000)), drained("node", targetsUpTo(5000)), false},
		"maintenance ended":     {drained("node", targetsUpTo(1000)), drained("node", nil), false},
		"drained to shut down":  {drained("node", nil), shuttingDown("node", maintenance.ShutdownReason), true},
		"terminates pods":       {shuttingDown("node", maintenance.ShutdownReason), shuttingDown("node", maintenance.ShutdownTerminatingReason), false},
		"shutdown canceled":     {shuttingDown("node", maintenance.ShutdownTerminatingReason), drained("node", nil), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			setAwareness(t, true)
			if got := shouldIgnoreNodeUpdate(*tc.old, *tc.cur); got != tc.ignored {
				t.Errorf("ignored: %t, want %t", got, tc.ignored)
			}
			setAwareness(t, false)
			if !shouldIgnoreNodeUpdate(*tc.old, *tc.cur) {
				t.Error("not ignored with the gate off")
			}
		})
	}
}

// closedCase is a DaemonSet on two nodes. One of them is closed and has these pods. The open one
// has an up-to-date, available pod by default.
type closedCase struct {
	strategy apps.DaemonSetUpdateStrategy
	pods     []*v1.Pod
	// stale gives the open node an old pod instead, and missing gives it none.
	stale, missing bool

	created int
	deleted []string
	status  string
}

const (
	oldHash = "old"
	newHash = "new"
)

func rolling(surge, unavailable int32) apps.DaemonSetUpdateStrategy {
	maxSurge, maxUnavailable := intstr.FromInt32(surge), intstr.FromInt32(unavailable)
	return apps.DaemonSetUpdateStrategy{
		Type:          apps.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &apps.RollingUpdateDaemonSet{MaxSurge: &maxSurge, MaxUnavailable: &maxUnavailable},
	}
}

func daemonPod(name, hash string, options ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{apps.DefaultDaemonSetUniqueLabelKey: hash}}}
	pod.Status.Phase = v1.PodRunning
	markPodReady(pod)
	for _, option := range options {
		option(pod)
	}
	return pod
}

func notReady(pod *v1.Pod) { pod.Status.Conditions = nil }

func ended(phase v1.PodPhase) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Status = v1.PodStatus{Phase: phase} }
}

// unbound makes a pod wait for the scheduler, which can only bind it to its node.
func unbound(pod *v1.Pod) {
	pod.Spec.Affinity = util.ReplaceDaemonSetPodNodeNameNodeAffinity(nil, "closed")
	pod.Status = v1.PodStatus{Phase: v1.PodPending}
}

func terminating(pod *v1.Pod) {
	now := metav1.NewTime(time.Now())
	pod.DeletionTimestamp = &now
}

var closedCases = map[string]closedCase{
	"no pod":                             {strategy: rolling(0, 1), status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"no pod, surging":                    {strategy: rolling(1, 0), status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"no pod, and none elsewhere":         {strategy: rolling(0, 1), missing: true, created: 1, status: "1 desired, 0 current, 0 ready, 0 updated, 0 misscheduled, 1 unavailable"},
	"a pod":                              {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", newHash)}, status: "2 desired, 2 current, 2 ready, 2 updated, 0 misscheduled, 0 unavailable"},
	"a pod that is not ready":            {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", newHash, notReady)}, status: "2 desired, 2 current, 1 ready, 2 updated, 0 misscheduled, 1 unavailable"},
	"a pod that terminates":              {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", newHash, terminating)}, status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"surging, and a pod that terminates": {strategy: rolling(1, 0), pods: []*v1.Pod{daemonPod("a", newHash, terminating)}, status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"a pod that has failed":              {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", newHash, ended(v1.PodFailed))}, deleted: []string{"a"}, status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"a pod that has succeeded":           {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", newHash, ended(v1.PodSucceeded))}, deleted: []string{"a"}, status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"surging, and a pod that has failed": {strategy: rolling(1, 0), pods: []*v1.Pod{daemonPod("a", newHash, ended(v1.PodFailed))}, deleted: []string{"a"}, status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"one surplus pod":                    {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", newHash), daemonPod("b", newHash)}, deleted: []string{"b"}, status: "2 desired, 2 current, 2 ready, 2 updated, 0 misscheduled, 0 unavailable"},

	"a pod that is not bound":         {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", newHash, unbound)}, deleted: []string{"a"}, status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"not bound, on delete":            {strategy: *newOnDeleteStrategy(), pods: []*v1.Pod{daemonPod("a", oldHash, unbound)}, deleted: []string{"a"}, status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"not bound, surging":              {strategy: rolling(1, 0), pods: []*v1.Pod{daemonPod("a", newHash, unbound)}, deleted: []string{"a"}, status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"two that are not bound":          {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", newHash, unbound), daemonPod("b", newHash, unbound)}, deleted: []string{"a", "b"}, status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"not bound, beside one that runs": {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", newHash), daemonPod("b", newHash, unbound)}, deleted: []string{"b"}, status: "2 desired, 2 current, 2 ready, 2 updated, 0 misscheduled, 0 unavailable"},
	"not bound, and deleted already":  {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", newHash, unbound, terminating)}, status: "1 desired, 1 current, 1 ready, 1 updated, 0 misscheduled, 0 unavailable"},

	"an old pod":                      {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", oldHash)}, status: "2 desired, 2 current, 2 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"an old pod, on delete":           {strategy: *newOnDeleteStrategy(), pods: []*v1.Pod{daemonPod("a", oldHash)}, status: "2 desired, 2 current, 2 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"an old pod that is not ready":    {strategy: rolling(0, 1), pods: []*v1.Pod{daemonPod("a", oldHash, notReady)}, status: "2 desired, 2 current, 1 ready, 1 updated, 0 misscheduled, 1 unavailable"},
	"an old pod, surging":             {strategy: rolling(1, 0), pods: []*v1.Pod{daemonPod("a", oldHash)}, status: "2 desired, 2 current, 2 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"an old pod not ready, surging":   {strategy: rolling(1, 0), pods: []*v1.Pod{daemonPod("a", oldHash, notReady)}, status: "2 desired, 2 current, 1 ready, 1 updated, 0 misscheduled, 1 unavailable"},
	"a surge in progress":             {strategy: rolling(1, 0), pods: []*v1.Pod{daemonPod("a", oldHash), daemonPod("b", newHash, notReady)}, status: "2 desired, 2 current, 2 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"a completed surge":               {strategy: rolling(1, 0), pods: []*v1.Pod{daemonPod("a", oldHash), daemonPod("b", newHash)}, deleted: []string{"a"}, status: "2 desired, 2 current, 2 ready, 1 updated, 0 misscheduled, 0 unavailable"},
	"the rollout continues elsewhere": {strategy: rolling(0, 1), stale: true, deleted: []string{"open"}, status: "1 desired, 1 current, 1 ready, 0 updated, 0 misscheduled, 0 unavailable"},
	"beside a pod that terminates":    {strategy: rolling(0, 1), stale: true, pods: []*v1.Pod{daemonPod("a", oldHash, terminating)}, deleted: []string{"open"}, status: "1 desired, 1 current, 1 ready, 0 updated, 0 misscheduled, 0 unavailable"},
	"beside an old pod":               {strategy: rolling(0, 1), stale: true, pods: []*v1.Pod{daemonPod("a", oldHash)}, deleted: []string{"open"}, status: "2 desired, 2 current, 2 ready, 0 updated, 0 misscheduled, 0 unavailable"},
	"beside one that is not ready":    {strategy: rolling(0, 1), stale: true, pods: []*v1.Pod{daemonPod("a", oldHash, notReady)}, deleted: []string{"open"}, status: "2 desired, 2 current, 1 ready, 0 updated, 0 misscheduled, 1 unavailable"},
	"the surge continues elsewhere":   {strategy: rolling(1, 0), stale: true, created: 1, status: "1 desired, 1 current, 1 ready, 0 updated, 0 misscheduled, 0 unavailable"},
	"beside an old pod, surging":      {strategy: rolling(1, 0), stale: true, pods: []*v1.Pod{daemonPod("a", oldHash)}, created: 1, status: "2 desired, 2 current, 2 ready, 0 updated, 0 misscheduled, 0 unavailable"},
	"beside a surge in progress":      {strategy: rolling(1, 0), stale: true, pods: []*v1.Pod{daemonPod("a", oldHash), daemonPod("b", newHash, notReady)}, created: 1, status: "2 desired, 2 current, 2 ready, 0 updated, 0 misscheduled, 0 unavailable"},
}

// TestSyncWithClosedNode syncs once, with a node that is drained and with one that shuts down.
func TestSyncWithClosedNode(t *testing.T) {
	for name, tc := range closedCases {
		t.Run(name, func(t *testing.T) { tc.sync(t, drained("closed", targetsUpTo(1000))) })
		t.Run("shutdown: "+name, func(t *testing.T) { tc.sync(t, shuttingDown("closed", maintenance.ShutdownTerminatingReason)) })
	}
}

func (tc closedCase) sync(t *testing.T, closed *v1.Node) {
	setAwareness(t, true)
	_, ctx := ktesting.NewTestContext(t)
	ds := ofClass("low")
	ds.Spec.UpdateStrategy = tc.strategy
	manager, podControl, client, err := newTestController(ctx, ds)
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	manager.respectMaintenances(t, newClass("low", 1000))
	hash := controller.ComputeHash(&ds.Spec.Template, nil)
	place := func(pod *v1.Pod, node string) {
		pod = pod.DeepCopy()
		pod.Namespace = ds.Namespace
		if pod.Spec.Affinity == nil {
			pod.Spec.NodeName = node
		}
		pod.Labels["name"], pod.Labels["type"] = simpleDaemonSetLabel["name"], simpleDaemonSetLabel["type"]
		if pod.Labels[apps.DefaultDaemonSetUniqueLabelKey] == newHash {
			pod.Labels[apps.DefaultDaemonSetUniqueLabelKey] = hash
		}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ds, controllerKind)}
		if err := manager.podStore.Add(pod); err != nil {
			t.Fatalf("adding pod %s: %v", pod.Name, err)
		}
		podControl.podIDMap[pod.Name] = pod
	}
	for _, pod := range tc.pods {
		place(pod, "closed")
	}
	switch {
	case tc.stale:
		place(daemonPod("open", oldHash), "open")
	case !tc.missing:
		place(daemonPod("open", newHash), "open")
	}
	for _, obj := range []*v1.Node{closed.DeepCopy(), drained("open", nil)} {
		if err := manager.nodeStore.Add(obj); err != nil {
			t.Fatalf("adding node %s: %v", obj.Name, err)
		}
	}
	if err := manager.dsStore.Add(ds); err != nil {
		t.Fatalf("adding the DaemonSet: %v", err)
	}
	before := ds.DeepCopy()

	// The first status is computed before the sync changes anything.
	nodes := []*v1.Node{closed.DeepCopy(), drained("open", nil)}
	if err := manager.updateDaemonSetStatus(ctx, ds, nodes, hash, true); err != nil {
		t.Fatalf("updating the status: %v", err)
	}
	if err := manager.syncHandler(ctx, ds.Namespace+"/"+ds.Name); err != nil {
		t.Fatalf("syncing: %v", err)
	}
	if got := len(podControl.Templates); got != tc.created {
		t.Errorf("%d pods were created, want %d", got, tc.created)
	}
	for _, template := range podControl.Templates {
		if target := template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values; !slices.Equal(target, []string{"open"}) {
			t.Errorf("a pod was created for %v", target)
		}
	}
	slices.Sort(podControl.DeletePodName) // Several are deleted at the same time.
	if diff := cmp.Diff(tc.deleted, podControl.DeletePodName); diff != "" {
		t.Errorf("pods that were deleted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, ds); diff != "" {
		t.Errorf("the DaemonSet in the cache was changed (-before +after):\n%s", diff)
	}
	statuses := statusesWritten(client)
	if len(statuses) == 0 || statuses[0] != tc.status {
		t.Errorf("the status was written as %q, want %q first", statuses, tc.status)
	}
}

// TestUnboundPodOnOpenNode: on an open node, the scheduler decides.
func TestUnboundPodOnOpenNode(t *testing.T) {
	for name, tc := range map[string]struct {
		targets []v1.DrainPlanEntry
		unaware bool
	}{
		"no maintenance":       {},
		"outside the targets":  {targets: targetsUpTo(999)},
		"without maintenances": {targets: targetsUpTo(1000), unaware: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, ctx := ktesting.NewTestContext(t)
			manager, _, _, err := newTestController(ctx)
			if err != nil {
				t.Fatalf("creating the controller: %v", err)
			}
			if !tc.unaware {
				manager.respectMaintenances(t, newClass("low", 1000))
			}
			logger, node, pod := klog.FromContext(ctx), drained("closed", tc.targets), daemonPod("a", newHash, unbound)
			create, remove := manager.podsShouldBeOnNode(logger, node, map[string][]*v1.Pod{"closed": {pod}}, ofClass("low"), newHash, nil, nodeaffinity.RequiredNodeAffinity{})
			if len(create) > 0 || len(remove) > 0 {
				t.Errorf("creates pods on %v and deletes %v", create, remove)
			}
		})
	}
}

// TestAdmittedPods: the pod that was deleted from the node, as admission changed it, decides for
// new pods of the same generation.
func TestAdmittedPods(t *testing.T) {
	outside := func() *v1.Node { return drained("node", targetsUpTo(999)) }
	newSet := func() *apps.DaemonSet {
		ds := ofClass("low")
		ds.UID, ds.Generation = "agent", 3
		return ds
	}
	admitted := func() *v1.Pod { return newAgentPod(func(pod *v1.Pod) { pod.Spec.Priority = ptr.To[int32](999) }) }
	cases := map[string]struct {
		change func(*daemonSetsController, *apps.DaemonSet, *v1.Node)
		pod    func(*v1.Pod)
		want   bool
	}{
		"deleted before": {want: true},
		"deleted by its label": {change: func(_ *daemonSetsController, _ *apps.DaemonSet, node *v1.Node) {
			node.Status.MaintenanceStatus.DrainTargets = targetsFor("zone", "a")
		}, pod: func(pod *v1.Pod) { pod.Labels = map[string]string{"zone": "a"} }, want: true},
		"outside after all": {pod: func(pod *v1.Pod) { pod.Spec.Priority = ptr.To[int32](1000) }},
		"another node":      {pod: func(pod *v1.Pod) { pod.Spec.NodeName = "other" }},
		"another DaemonSet": {change: func(_ *daemonSetsController, ds *apps.DaemonSet, _ *v1.Node) { ds.UID = "other" }},
		"another template":  {change: func(_ *daemonSetsController, ds *apps.DaemonSet, _ *v1.Node) { ds.Generation++ }},
		"after the maintenance": {change: func(manager *daemonSetsController, ds *apps.DaemonSet, _ *v1.Node) {
			manager.isClosed(drained("node", nil), ds)
		}},
		"after that of another node": {change: func(manager *daemonSetsController, ds *apps.DaemonSet, _ *v1.Node) {
			manager.isClosed(drained("other", nil), ds)
		}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, ctx := ktesting.NewTestContext(t)
			manager, _, _, err := newTestController(ctx)
			if err != nil {
				t.Fatalf("creating the controller: %v", err)
			}
			manager.respectMaintenances(t, newClass("low", 1000))
			ds, node, pod := newSet(), outside(), admitted()
			if manager.isClosed(node, ds) {
				t.Fatal("closed without a deleted pod")
			}
			if tc.pod != nil {
				tc.pod(pod)
			}
			manager.admitted.remember(ds, pod)
			if tc.change != nil {
				tc.change(manager, ds, node)
			}
			if got := manager.isClosed(node, ds); got != tc.want {
				t.Errorf("closed: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestRollingUpdateLeavesOutClosedNodes checks that percentages are relative to the open nodes.
func TestRollingUpdateLeavesOutClosedNodes(t *testing.T) {
	_, ctx := ktesting.NewTestContext(t)
	ds, half := ofClass("low"), intstr.FromString("50%")
	ds.Spec.UpdateStrategy = rolling(0, 1)
	ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &half
	manager, _, _, err := newTestController(ctx, ds)
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	nodes, pods := []*v1.Node{}, map[string][]*v1.Pod{}
	for i := range 3 {
		closed, open := fmt.Sprintf("closed-%d", i), fmt.Sprintf("open-%d", i)
		nodes = append(nodes, drained(closed, targetsUpTo(1000)), drained(open, nil))
		pods[closed], pods[open] = []*v1.Pod{daemonPod(closed, oldHash)}, []*v1.Pod{daemonPod(open, oldHash)}
	}
	for _, tc := range []struct{ wantUnavailable, wantDesired int }{{3, 6}, {2, 3}} {
		_, unavailable, desired, err := manager.updatedDesiredNodeCounts(ctx, ds, nodes, pods)
		if err != nil || unavailable != tc.wantUnavailable || desired != tc.wantDesired || len(pods) != tc.wantDesired {
			t.Errorf("%d may be unavailable of %d, with pods on %d nodes (%v), want %d of %d", unavailable, desired, len(pods), err, tc.wantUnavailable, tc.wantDesired)
		}
		manager.respectMaintenances(t, newClass("low", 1000))
	}
}

// statusesWritten returns the written statuses, one line each.
func statusesWritten(client *fake.Clientset) []string {
	var statuses []string
	for _, action := range client.Actions() {
		update, ok := action.(clienttesting.UpdateAction)
		if !ok || action.GetResource().Resource != "daemonsets" || action.GetSubresource() != "status" {
			continue
		}
		s := update.GetObject().(*apps.DaemonSet).Status
		statuses = append(statuses, fmt.Sprintf("%d desired, %d current, %d ready, %d updated, %d misscheduled, %d unavailable",
			s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady, s.UpdatedNumberScheduled, s.NumberMisscheduled, s.NumberUnavailable))
	}
	return statuses
}

// TestNodeUpdateWakes checks which changes of a node enqueue a DaemonSet, given its pods there.
func TestNodeUpdateWakes(t *testing.T) {
	rollout := apps.DaemonSetStatus{DesiredNumberScheduled: 3, UpdatedNumberScheduled: 2}
	cases := map[string]struct {
		targets  []v1.DrainPlanEntry
		pods     int
		status   apps.DaemonSetStatus
		onDelete bool
		unaware  bool
		enqueued bool
	}{
		"open, without a pod":                      {enqueued: true},
		"open, with a pod":                         {pods: 1},
		"open, skipped by a rollout":               {pods: 1, status: rollout, enqueued: true},
		"the same, with OnDelete":                  {pods: 1, status: rollout, onDelete: true},
		"the same without maintenances":            {pods: 1, status: rollout, unaware: true},
		"closed, with a pod":                       {targets: targetsUpTo(1000), pods: 1},
		"closed, without a pod: no longer desired": {targets: targetsUpTo(1000), enqueued: true},
		"outside the targets, without a rollout":   {targets: targetsUpTo(999), pods: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, ctx := ktesting.NewTestContext(t)
			ds := ofClass("low")
			ds.Status = tc.status
			ds.Spec.UpdateStrategy.Type = apps.RollingUpdateDaemonSetStrategyType
			if tc.onDelete {
				ds.Spec.UpdateStrategy.Type = apps.OnDeleteDaemonSetStrategyType
			}
			manager, _, _, err := newTestController(ctx, ds)
			if err != nil {
				t.Fatalf("creating the controller: %v", err)
			}
			if !tc.unaware {
				manager.respectMaintenances(t, newClass("low", 1000))
			}
			if err := manager.nodeStore.Add(drained("node", tc.targets)); err != nil {
				t.Fatalf("adding the node: %v", err)
			}
			if err := manager.dsStore.Add(ds); err != nil {
				t.Fatalf("adding the DaemonSet: %v", err)
			}
			addPods(manager.podStore, "node", simpleDaemonSetLabel, ds, tc.pods)
			enqueued := false
			manager.enqueueDaemonSet = func(*apps.DaemonSet) { enqueued = true }
			if err := manager.syncNodeUpdate(ctx, "node"); err != nil {
				t.Fatalf("syncing the node: %v", err)
			}
			if enqueued != tc.enqueued {
				t.Errorf("enqueued: %t, want %t", enqueued, tc.enqueued)
			}
		})
	}
}

func named(names ...string) []v1.EvictionInterceptor {
	var interceptors []v1.EvictionInterceptor
	for _, name := range names {
		interceptors = append(interceptors, v1.EvictionInterceptor{Name: name})
	}
	return interceptors
}

// TestInjection checks the created pods, and that nothing else is changed.
func TestInjection(t *testing.T) {
	const own = coordinationv1alpha1.EvictionInterceptorDaemonSet
	group := "group"
	cases := map[string]struct {
		unaware bool
		change  func(*v1.PodTemplateSpec)
		want    []v1.EvictionInterceptor
	}{
		"none":                       {want: named(own)},
		"none, with the gate off":    {unaware: true},
		"interceptors of the author": {change: func(p *v1.PodTemplateSpec) { p.Spec.EvictionInterceptors = named("a.example.com") }, want: named("a.example.com", own)},
		"placed by the author":       {change: func(p *v1.PodTemplateSpec) { p.Spec.EvictionInterceptors = named(own, "a.example.com") }, want: named(own, "a.example.com")},
		"registered with a higher priority": {change: func(p *v1.PodTemplateSpec) {
			p.Annotations = map[string]string{
				coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + "a.example.com": "20000/copies-data",
				coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + own:             "10000/controller",
			}
		}, want: named("a.example.com", own)},
		"in a scheduling group": {change: func(p *v1.PodTemplateSpec) { p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group} }, want: named(own)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			setAwareness(t, !tc.unaware)
			_, ctx := ktesting.NewTestContext(t)
			ds := newDaemonSet("agent")
			if tc.change != nil {
				tc.change(&ds.Spec.Template)
			}
			manager, podControl, client, err := newTestController(ctx, ds)
			if err != nil {
				t.Fatalf("creating the controller: %v", err)
			}
			if !tc.unaware {
				manager.podControl = interceptedPodControl{manager.podControl, evictioninterceptor.NewCreator(clock.RealClock{})}
			}
			addNodes(manager.nodeStore, 0, 2, nil)
			if err := manager.dsStore.Add(ds); err != nil {
				t.Fatalf("adding the DaemonSet: %v", err)
			}
			before := ds.DeepCopy()
			expectSyncDaemonSets(t, manager, ds, podControl, 2, 0, 0)
			for _, template := range podControl.Templates {
				if diff := cmp.Diff(tc.want, template.Spec.EvictionInterceptors); diff != "" {
					t.Errorf("interceptors of the pod (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(before, ds); diff != "" {
				t.Errorf("the DaemonSet was changed (-before +after):\n%s", diff)
			}
			patch, err := getPatch(before)
			if err != nil {
				t.Fatalf("creating the patch of a revision: %v", err)
			}
			revisions, err := client.AppsV1().ControllerRevisions(ds.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil || len(revisions.Items) != 1 {
				t.Fatalf("%d revisions, want one (%v)", len(revisions.Items), err)
			}
			if diff := cmp.Diff(string(patch), string(revisions.Items[0].Data.Raw)); diff != "" {
				t.Errorf("the revision (-want +got):\n%s", diff)
			}
		})
	}
}
