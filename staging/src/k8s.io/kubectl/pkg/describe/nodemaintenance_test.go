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

package describe

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// work builds a maintenance. Its times are minutes before now, when it is described.
type work struct {
	*coordinationv1alpha1.NodeMaintenance
	now time.Time
}

func (m work) ago(minutes int) metav1.Time {
	return metav1.Time{Time: m.now.Add(-time.Duration(minutes) * time.Minute)}
}

// newWork returns a maintenance of the nodes one and two that was created an hour ago.
func newWork(stage coordinationv1alpha1.NodeMaintenanceStage) work {
	m := work{&coordinationv1alpha1.NodeMaintenance{}, time.Now()}
	m.Name = "kernel"
	m.CreationTimestamp = m.ago(60)
	m.Spec.Stage = stage
	m.Spec.Reason = "A new kernel."
	m.Spec.DrainPlan = maintenance.StandardPlan()
	m.Status.SelectedNodes = 2
	return m.selecting(termNamed("one"), termNamed("two"))
}

func (m work) selecting(terms ...corev1.NodeSelectorTerm) work {
	m.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: terms}
	return m
}

func termNamed(node string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}
}

func (m work) started(stages ...coordinationv1alpha1.NodeMaintenanceStage) work {
	for i, stage := range stages {
		m.Status.StageStatuses = append(m.Status.StageStatuses, coordinationv1alpha1.StageStatus{Name: stage, StartTimestamp: ptr.To(m.ago(50 - i))})
	}
	return m
}

// blockedBy adds blockers.
func (m work) blockedBy(messages ...string) work {
	for _, message := range messages {
		m.Status.DrainStatus.Blockers = append(m.Status.DrainStatus.Blockers, coordinationv1alpha1.DrainBlocker{Message: message})
	}
	return m
}

// cordonFailed adds the blocker for nodes that cannot be cordoned.
func (m work) cordonFailed(nodes int32, first, message string) work {
	m.Status.DrainStatus.Blockers = append(m.Status.DrainStatus.Blockers, coordinationv1alpha1.DrainBlocker{
		Cause: coordinationv1alpha1.DrainBlockerCordonFailed, NodeCount: nodes, Message: message,
		Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: first},
	})
	return m
}

// executing sets the progress of the drain.
func (m work) executing(position int32, message string, reached ...corev1.DrainPlanEntry) work {
	m.Status.DrainStatus.DrainPlanPosition = &position
	m.Status.DrainStatus.DrainMessage = message
	m.Status.DrainStatus.ReachedDrainTargets = reached
	return m
}

func (m work) pods(pending, active, blocked, drainedNodes int32) work {
	drain := &m.Status.DrainStatus
	drain.PodsPendingEvictionRequest, drain.ActiveEvictionRequests, drain.BlockedPods, drain.DrainedNodes = pending, active, blocked, drainedNodes
	return m
}

func (m work) drained(status metav1.ConditionStatus, reason, message string) work {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
		Type: string(coordinationv1alpha1.NodeMaintenanceConditionDrained), Status: status, LastTransitionTime: m.ago(45), Reason: reason, Message: message,
	})
	return m
}

func defaultPods(priority int32) corev1.DrainPlanEntry {
	return corev1.DrainPlanEntry{PodType: corev1.PodTypeDefault, PodPriority: priority}
}

func ofApp(app string, entry corev1.DrainPlanEntry) corev1.DrainPlanEntry {
	entry.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	return entry
}

// delayed returns the blockers of 13 pods, grouped as the controller publishes them.
func delayed(now time.Time) []maintenance.BlockerGroup {
	var blockers []maintenance.Blocker
	for i := range 12 {
		blockers = append(blockers, maintenance.Blocker{Cause: maintenance.BlockerDisruptionBudget, Name: "shop/web", Pod: types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}, Since: &metav1.Time{Time: now.Add(-3 * time.Minute)}})
	}
	blockers = append(blockers, maintenance.Blocker{
		Cause: maintenance.BlockerInterceptor, Name: "vm.example.com", Pod: types.NamespacedName{Namespace: "shop", Name: "vm-1"},
		Heartbeat: &metav1.Time{Time: now.Add(-2 * time.Minute)}, Message: "Copied 3 of 7 volumes. One is large.", ETA: &metav1.Time{Time: now.Add(20 * time.Minute)},
	})
	return maintenance.GroupBlockers(blockers)
}

// rollout sets the spec and the status of a rollout of 60 nodes. Without a spec, only budgets limit it.
func (m work) rollout(spec *coordinationv1alpha1.NodeMaintenanceRollout, status *coordinationv1alpha1.NodeMaintenanceRolloutStatus) work {
	m.Status.SelectedNodes = 60
	m.Spec.Rollout, m.Status.RolloutStatus = spec, status
	return m
}

func (m work) in(minutes int) *metav1.Time { return ptr.To(m.ago(-minutes)) }

// rollouts returns maintenances whose nodes have to be admitted, by the name of their golden file.
func rollouts() map[string]work {
	const drain = coordinationv1alpha1.NodeMaintenanceStageDrain
	started := func() work {
		return newWork(drain).started(drain).executing(0, "Draining").pods(12, 4, 0, 17).
			drained(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonDraining, "4 pods are being evicted.")
	}
	spec := func(policy coordinationv1alpha1.NodeCompletionPolicy, limit *intstr.IntOrString, paused bool) *coordinationv1alpha1.NodeMaintenanceRollout {
		return &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: limit, Paused: paused, CompleteNodes: policy, ReturnTimeoutSeconds: ptr.To[int32](1800), MaxFailedNodes: ptr.To[int32](1)}
	}
	counts := func(waiting, admitted, done int32, waits ...coordinationv1alpha1.NodeMaintenanceWait) *coordinationv1alpha1.NodeMaintenanceRolloutStatus {
		return &coordinationv1alpha1.NodeMaintenanceRolloutStatus{WaitingNodes: waiting, AdmittedNodes: admitted, DoneNodes: done, WaitingFor: waits}
	}
	wait := func(nodes int32, reason coordinationv1alpha1.NodeMaintenanceWaitReason, budget string) coordinationv1alpha1.NodeMaintenanceWait {
		return coordinationv1alpha1.NodeMaintenanceWait{Reason: reason, Budget: budget, NodeCount: nodes}
	}
	percent, number := ptr.To(intstr.FromString("10%")), ptr.To(intstr.FromInt32(5))

	running := started()
	nights := wait(20, "Window", "nights")
	nights.UntilTime = running.in(180)
	running.rollout(spec("Rebooted", percent, false), counts(37, 20, 3, nights, wait(10, "Budget", "workers"), wait(6, "Topology", "zones"), wait(1, "MaxConcurrent", "")))
	running.Status.RolloutStatus.PendingAdmissions = []coordinationv1alpha1.NodeMaintenancePendingAdmission{{NodeName: "node-21", Time: running.ago(0)}}

	halted := started().rollout(spec("Rebooted", number, false), counts(37, 20, 3, wait(37, "Halted", "")))
	halted.Spec.Rollout.AcknowledgedNodeUIDs = []types.UID{"a", "b"}
	halted.Status.RolloutStatus.FailedNodes, halted.Status.RolloutStatus.Failed = 12, []string{"node-1", "node-2", "node-3", "node-4", "node-5", "node-6", "node-7", "node-8", "node-9", "node-10"}
	halted.Status.Conditions = append(halted.Status.Conditions, metav1.Condition{
		Type: "Halted", Status: metav1.ConditionTrue, Reason: "FailedNodes", LastTransitionTime: halted.ago(5),
		Message: "12 nodes have not come back in time, and spec.rollout.maxFailedNodes is 1: node-1, node-2, node-3 and 9 more.",
	})
	stalled := halted.Status.Conditions[len(halted.Status.Conditions)-1]
	stalled.Type = "Stalled"
	halted.Status.Conditions = append(halted.Status.Conditions, stalled)

	over := newWork(coordinationv1alpha1.NodeMaintenanceStageComplete).started(drain, coordinationv1alpha1.NodeMaintenanceStageComplete)
	over.rollout(spec("Manual", nil, true), counts(1, 1, 58, wait(1, "Paused", "")))

	hostile := started()
	const forged = "a\nEvents:\t<none>\x1b[2K"
	hostile.rollout(spec(forged, ptr.To(intstr.FromString(forged)), false), counts(1, 1, 1, wait(1, forged, forged), wait(1, "Frozen", "a\x1b[2K")))
	hostile.Status.RolloutStatus.Failed, hostile.Status.RolloutStatus.PendingAdmissions = []string{forged}, []coordinationv1alpha1.NodeMaintenancePendingAdmission{{NodeName: forged, Time: hostile.ago(0)}}

	settling := spec("Rebooted", percent, false)
	settling.Settle = &coordinationv1alpha1.NodeMaintenanceSettle{Replacements: "Available", TimeoutSeconds: ptr.To[int32](600)}

	return map[string]work{
		"rollout":          running,
		"rollout-new":      newWork(coordinationv1alpha1.NodeMaintenanceStageIdle).rollout(spec("Manual", number, false), nil),
		"rollout-manual":   started().rollout(spec("Manual", nil, true), counts(37, 20, 3, wait(37, "Paused", ""))),
		"rollout-settling": started().rollout(settling, counts(37, 20, 3, wait(37, "Settling", ""))),
		"rollout-halted":   halted,
		"rollout-budgets":  started().rollout(nil, counts(61, 0, 0, wait(59, "Frozen", "stop"), wait(1, "Disabled", ""), wait(1, "Window", "nights"))),
		"rollout-complete": over,
		"rollout-hostile":  hostile,
	}
}

// works returns maintenances of each stage, by the name of their golden file.
func works() map[string]work {
	const (
		idle     = coordinationv1alpha1.NodeMaintenanceStageIdle
		cordon   = coordinationv1alpha1.NodeMaintenanceStageCordon
		drain    = coordinationv1alpha1.NodeMaintenanceStageDrain
		complete = coordinationv1alpha1.NodeMaintenanceStageComplete
	)
	draining := func() work {
		m := newWork(drain).started(cordon, drain)
		m.Spec.DrainPlan = maintenance.CompletePlan([]corev1.DrainPlanEntry{ofApp("db", defaultPods(1000)), defaultPods(1000)})
		return m
	}
	blocked := draining().executing(1, "Draining", defaultPods(1000), ofApp("db", defaultPods(1000))).pods(40, 13, 12, 1)
	blocked.drained(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonBlocked, maintenance.BlockerMessage(delayed(blocked.now)))
	blocked.Status.DrainStatus.Blockers, blocked.Status.DrainStatus.BlockerCount = maintenance.ListedBlockers(delayed(blocked.now))

	byLabels := newWork(idle).selecting(
		corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"a", "b"}},
			{Key: "node-role.kubernetes.io/worker", Operator: corev1.NodeSelectorOpExists},
		}},
		termNamed("one"),
		corev1.NodeSelectorTerm{},
		corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"two"}}}},
	)
	byLabels.Labels = map[string]string{"team": "platform"}

	var terms []corev1.NodeSelectorTerm
	for i := range 200 {
		terms = append(terms, termNamed(fmt.Sprintf("node-%d", i)))
	}
	crowd := newWork(cordon).started(cordon).selecting(terms...).drained(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonNotDraining, "The stage is Cordon.")
	crowd.Status.SelectedNodes = 200

	deleted := draining().executing(12, "Drained", append(maintenance.StandardPlan()[3:4], maintenance.StandardPlan()[7])...).pods(0, 0, 0, 2).
		drained(metav1.ConditionTrue, coordinationv1alpha1.NodeMaintenanceReasonDrained, "")
	deleted.DeletionTimestamp = ptr.To(deleted.ago(1))

	// Our controller does not write this, but other clients can.
	bare := newWork(complete).started(drain).executing(99, "").pods(0, 0, 0, 0)
	bare.Spec.NodeSelector, bare.Spec.DrainPlan, bare.Spec.Reason = nil, nil, ""
	bare.Status.StageStatuses[0].StartTimestamp = nil

	// Its texts must not imitate lines of kubectl, or control the terminal.
	hostile := newWork(idle)
	hostile.Spec.Reason = "Done.\n\nStage:\tComplete\nEvents:  <none>\x1b[2K\f\n" + strings.Repeat("word ", 20)

	// A status lists few blockers, and counts all of them.
	stuck := newWork(complete).started(cordon, complete).blockedBy("1 node cannot be made schedulable (a webhook says no)", "3 pods in namespace shop have EvictionRequests that cannot be withdrawn")
	stuck.Status.DrainStatus.BlockerCount = 14

	policies := draining().executing(0, "Draining").pods(2, 1, 0, 1).drained(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonDraining, "3 pods left on 1 of 2 nodes.")
	policies.Status.DrainStatus.SkippedPods = 3
	policies.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{
		{Action: "Drain", PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		{Action: "WaitCompleted", ResourceNames: []corev1.ResourceName{"nvidia.com/gpu", "amd.com/gpu"}},
		{Action: "Skip", PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "storage"}}},
		{Action: "Drain"},
	}
	policies.Status.DrainStatus.EscalatedPods = 2
	policies.Spec.Escalation = []coordinationv1alpha1.NodeMaintenanceEscalationStep{
		{AfterSeconds: 600, Action: "SkipInterceptors", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "batch"}}},
		{AfterSeconds: 7200, Action: "IgnoreBudgets"},
	}
	policies.Spec.DrainedWhen = &coordinationv1alpha1.NodeMaintenanceDrainedWhen{Volumes: "Detached", TimeoutSeconds: ptr.To[int32](600)}

	all := map[string]work{
		"policies":  policies,
		"idle":      byLabels,
		"requested": newWork(cordon),
		"cordon":    crowd,
		"refused":   newWork(cordon).started(cordon).cordonFailed(2, "one", "2 nodes cannot be cordoned (a webhook\nsays no)"),
		"stuck":     stuck,
		"draining":  draining().executing(0, "Draining (limited by firmware)").pods(53, 0, 0, 0).drained(metav1.ConditionFalse, coordinationv1alpha1.NodeMaintenanceReasonWaiting, "Waiting for firmware."),
		"blocked":   blocked,
		"deleted":   deleted,
		"complete":  newWork(complete).started(cordon, drain, complete).executing(11, "Drained", maintenance.StandardPlan()...).pods(0, 0, 0, 2).drained(metav1.ConditionTrue, coordinationv1alpha1.NodeMaintenanceReasonDrained, "No pod is left."),
		"bare":      bare,
		"hostile":   hostile,
	}
	maps.Copy(all, rollouts())
	return all
}

func maintenanceEvents(now time.Time, name string) runtime.Object {
	return &corev1.EventList{Items: []corev1.Event{{
		ObjectMeta:     metav1.ObjectMeta{Name: "drained", Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{Kind: "NodeMaintenance", Name: name},
		Type:           corev1.EventTypeNormal, Reason: "Drained", Message: "Node one was drained.",
		Source: corev1.EventSource{Component: "nodemaintenance-controller"}, Count: 1,
		FirstTimestamp: metav1.Time{Time: now.Add(-6 * time.Minute)}, LastTimestamp: metav1.Time{Time: now.Add(-6 * time.Minute)},
	}}}
}

// nodesOf returns nodes of the maintenance, more than are shown: the third has failed, the last is given
// back, and one belongs to another maintenance.
func nodesOf(m work) []runtime.Object {
	var nodes []runtime.Object
	for i := range 14 {
		a := corev1.MaintenanceAdmission{MaintenanceUID: m.UID, AdmittedTime: m.ago(20 - i)}
		switch i {
		case 2:
			a.DrainedTime, a.FailedTime = ptr.To(m.ago(10)), ptr.To(m.ago(5))
		case 12:
			a.MaintenanceUID = "another"
		case 13:
			a.DoneTime = ptr.To(m.ago(1))
		}
		nodes = append(nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
			Status:     corev1.NodeStatus{MaintenanceStatus: &corev1.MaintenanceStatus{Admissions: []corev1.MaintenanceAdmission{a}}},
		})
	}
	return nodes
}

func TestDescribeNodeMaintenance(t *testing.T) {
	// In the synctest bubble, the time stays at the start of the year 2000.
	synctest.Test(t, func(t *testing.T) {
		for name, work := range works() {
			settings := DescriberSettings{ShowEvents: name != "requested"}
			objects := []runtime.Object{work.NodeMaintenance}
			if name == "blocked" {
				objects = append(objects, maintenanceEvents(work.now, work.Name))
			}
			if name == "rollout" {
				objects = append(objects, nodesOf(work)...)
			}
			output, err := (&NodeMaintenanceDescriber{fake.NewClientset(objects...)}).Describe("", work.Name, settings)
			if err != nil {
				t.Fatal(err)
			}
			compareWithGolden(t, filepath.Join("nodemaintenance", name+".txt"), output)
		}
	})
}

// TestDescribedNodeMaintenanceIsNarrow verifies that all lines fit a terminal of 80 columns, and
// that the object is not changed.
func TestDescribedNodeMaintenanceIsNarrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, work := range works() {
			before := work.DeepCopy()
			output, err := describeNodeMaintenance(work.now, work.NodeMaintenance, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, work.NodeMaintenance); diff != "" {
				t.Errorf("%s was changed (-before, +after):\n%s", name, diff)
			}
			for _, line := range strings.Split(output, "\n") {
				if len(line) > 80 {
					t.Errorf("%s: %d columns: %s", name, len(line), line)
				}
			}
		}
	})
}

// TestFormatNodeSelector verifies that only terms that just name a node share a line.
func TestFormatNodeSelector(t *testing.T) {
	labeled := func(term corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
		term.MatchExpressions = []corev1.NodeSelectorRequirement{{Key: "rack", Operator: corev1.NodeSelectorOpGt, Values: []string{"7"}}}
		return term
	}
	ofField := func(key string, term corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
		term.MatchFields[0].Key = key
		return term
	}
	for _, tc := range []struct {
		name  string
		terms []corev1.NodeSelectorTerm
		want  string
	}{
		{"names", []corev1.NodeSelectorTerm{termNamed("one"), termNamed("two")}, "metadata.name in [one, two]"},
		{"name and label", []corev1.NodeSelectorTerm{labeled(termNamed("one")), termNamed("two")}, "metadata.name in [two]\nor rack gt [7] and metadata.name in [one]"},
		{"other field", []corev1.NodeSelectorTerm{ofField("spec.unschedulable", termNamed("true")), termNamed("two")}, "metadata.name in [two]\nor spec.unschedulable in [true]"},
		{"no term", nil, "<none>"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, formatNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: tc.terms})); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

func TestFormatPosition(t *testing.T) {
	plan := maintenance.StandardPlan()
	for position, want := range map[int]string{
		0: "1 of 12: Default up to 1000000000", 11: "12 of 12: Static up to 2147483647", 12: "all 12 done", 13: "all 12 done",
	} {
		if got := formatPosition(plan, position); got != want {
			t.Errorf("%d: %q, want %q", position, got, want)
		}
	}
}

// TestDescribeUncounted distinguishes nodes that are not counted yet from none.
func TestDescribeUncounted(t *testing.T) {
	for name, tc := range map[string]struct {
		generation int64
		want       string
	}{"no controller": {0, "Nodes:          not counted yet\n"}, "none": {1, "Nodes:          0 selected\n"}} {
		nm := &coordinationv1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		nm.Spec.Stage, nm.Status.ObservedGeneration = coordinationv1alpha1.NodeMaintenanceStageCordon, tc.generation
		output, err := describeNodeMaintenance(time.Now(), nm, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(output, tc.want) {
			t.Errorf("%s: %q is missing in\n%s", name, tc.want, output)
		}
	}
}

func TestDescribeNodeMaintenanceNotFound(t *testing.T) {
	describer := &NodeMaintenanceDescriber{fake.NewClientset()}
	if output, err := describer.Describe("", "kernel", DescriberSettings{}); err == nil {
		t.Errorf("no error, but\n%s", output)
	}
}

func TestNodeMaintenanceDescriberIsRegistered(t *testing.T) {
	kind := schema.GroupKind{Group: "coordination.k8s.io", Kind: "NodeMaintenance"}
	describer, found := DescriberFor(kind, &rest.Config{})
	if _, ok := describer.(*NodeMaintenanceDescriber); !found || !ok {
		t.Errorf("got %T", describer)
	}
}

// maintainedNodes returns the statuses of nodes, by the suffix of their golden file.
func maintainedNodes(now time.Time) map[string]*corev1.MaintenanceStatus {
	ago := func(minutes time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-minutes * time.Minute)} }
	draining := corev1.MaintenanceStatus{
		DrainTargets:               []corev1.DrainPlanEntry{defaultPods(1000), ofApp("db", defaultPods(5000)), {PodType: corev1.PodTypeDaemonSet, PodPriority: 10}},
		DrainMessage:               "Draining (limited by firmware, kernel)",
		PodsPendingEvictionRequest: 4, ActiveEvictionRequests: 3, BlockedPods: 2,
	}
	admitted := *draining.DeepCopy()
	admitted.Admissions = []corev1.MaintenanceAdmission{
		{MaintenanceName: "bios", AdmittedTime: *ago(40)},
		{MaintenanceName: "late", AdmittedTime: *ago(40), Escalation: "IgnoreBudgets", EscalationTime: ago(12), WaitingTime: ago(2)},
		{MaintenanceName: "kernel", AdmittedTime: *ago(40), DrainedTime: ago(20)},
		{MaintenanceName: "firmware", AdmittedTime: *ago(40), DrainedTime: ago(20), ReturningTime: ago(3)},
		{MaintenanceName: "disk", AdmittedTime: *ago(40), DrainedTime: ago(20), ReturningTime: ago(35), FailedTime: ago(5)},
		{MaintenanceName: "rack", AdmittedTime: *ago(40), DrainedTime: ago(20), ReturningTime: ago(10), FailedTime: ago(9), DoneTime: ago(7)},
		{MaintenanceName: "a\nEvents:\t<none>\x1b[2K", AdmittedTime: *ago(0)},
	}
	return map[string]*corev1.MaintenanceStatus{
		"":          nil,
		"-cordoned": {},
		"-waiting":  {DrainMessage: "Waiting for firmware.", PodsPendingEvictionRequest: 7},
		"-draining": &draining,
		"-admitted": &admitted,
		"-emptied":  {DrainTargets: draining.DrainTargets, DrainMessage: "Draining", EmptiedTime: ago(5)},
		"-begun":    {Unclaimed: true, Admissions: admitted.Admissions[:1]},
		"-released": {Unclaimed: true, Admissions: []corev1.MaintenanceAdmission{{MaintenanceName: "kernel", AdmittedTime: *ago(40), DoneTime: ago(7)}}},
	}
}

func attachment(name, node string, volume *string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: volume}},
	}
}

// TestDescribeMaintainedNode also verifies that nothing changes for other nodes: the golden files
// differ only in this section.
func TestDescribeMaintainedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for suffix, status := range maintainedNodes(time.Now()) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{
				Conditions:        []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				MaintenanceStatus: status,
			}}
			output, err := (&NodeDescriber{fake.NewClientset(node, attachment("a", "one", ptr.To("data-1")), attachment("csi-inline", "one", nil), attachment("b", "two", ptr.To("data-2")))}).Describe("", "one", DescriberSettings{})
			if err != nil {
				t.Fatal(err)
			}
			compareWithGolden(t, filepath.Join("nodemaintenance", "node"+suffix+".txt"), output)
		}
	})
}

// TestDescribedBlockers verifies that only blockers of the current stage are shown.
func TestDescribedBlockers(t *testing.T) {
	cordon, drain := newWork(coordinationv1alpha1.NodeMaintenanceStageCordon).blockedBy("no"), newWork(coordinationv1alpha1.NodeMaintenanceStageDrain).blockedBy("no")
	older := newWork(coordinationv1alpha1.NodeMaintenanceStageComplete).blockedBy("no")
	older.Generation, older.Status.ObservedGeneration = 2, 1
	for name, tc := range map[string]struct {
		work
		want int
	}{"cordon": {cordon, 1}, "drain": {drain, 1}, "older": {older, 0}} {
		if got := describedBlockers(tc.now, tc.NodeMaintenance); len(got) != tc.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestFormatBlocker verifies that a blocker is printed on one line, whatever its message contains.
func TestFormatBlocker(t *testing.T) {
	m := newWork(coordinationv1alpha1.NodeMaintenanceStageDrain)
	blocker := &coordinationv1alpha1.DrainBlocker{
		Cause: coordinationv1alpha1.DrainBlockerDisruptionBudget, Message: "3 pods wait\nEvents:\x1b[2J", PodCount: 3, SinceTime: ptr.To(m.ago(3)),
		Pods: []coordinationv1alpha1.DrainBlockerPod{{Namespace: "shop", Name: "web-0"}, {Namespace: "shop", Name: "web-1"}},
	}
	if got, want := formatBlocker(m.now, blocker), `! 3 pods wait Events:\u001b[2J (for 3m): shop/web-0, shop/web-1 and 1 more`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := formatBlocker(m.now, &coordinationv1alpha1.DrainBlocker{Cause: coordinationv1alpha1.DrainBlockerEvicting, Message: "1 pod is being evicted", PodCount: 1}), "1 pod is being evicted"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
