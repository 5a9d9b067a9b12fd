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

package maintenance

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	plaintexttesting "k8s.io/component-helpers/plaintext/testing"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	"k8s.io/utils/ptr"
)

const zoneLabel = corev1.LabelTopologyZone

// readyNode returns a node that runs pods. Its zone, if there is one, is the last letter of its name.
func readyNode(name string) *corev1.Node {
	node := newNode(name)
	node.Labels = map[string]string{"pool": "a", "name": name}
	if _, zone, found := strings.Cut(name, "@"); found {
		node.Labels[zoneLabel] = zone
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("4"), corev1.ResourceMemory: apiresource.MustParse("8Gi"), corev1.ResourcePods: apiresource.MustParse("10")}
	return node
}

func cordonedNode(name string) *corev1.Node {
	node := readyNode(name)
	node.Spec.Unschedulable = true
	return node
}

func brokenNode(name string) *corev1.Node {
	node := readyNode(name)
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	return node
}

func removedNode(name string) *corev1.Node {
	node := readyNode(name)
	node.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
	return node
}

// youngNode returns a node that was created so long after all maintenances.
func youngNode(name string, after time.Duration) *corev1.Node {
	node := readyNode(name)
	node.CreationTimestamp = metav1.NewTime(testNow.Add(after))
	return node
}

// nodeBudget selects nodes by names, or all of the pool.
func nodeBudget(name, maxUnavailable string, names ...string) *coordinationv1alpha1.NodeMaintenanceBudget {
	value := intstr.Parse(maxUnavailable)
	selector := nodeselection.ByName(names)
	if len(names) == 0 {
		selector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpExists}}}}
	}
	return &coordinationv1alpha1.NodeMaintenanceBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordinationv1alpha1.NodeMaintenanceBudgetSpec{NodeSelector: selector, MaxUnavailable: &value},
	}
}

func zonal(budget *coordinationv1alpha1.NodeMaintenanceBudget, domains int32) *coordinationv1alpha1.NodeMaintenanceBudget {
	budget.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: zoneLabel, MaxDomains: domains}
	return budget
}

// nightly gives the budget a window, and the status that the controller writes.
func nightly(budget *coordinationv1alpha1.NodeMaintenanceBudget, open metav1.ConditionStatus) *coordinationv1alpha1.NodeMaintenanceBudget {
	budget.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: "0 2 * * *", DurationSeconds: 3600}}
	budget.Status.NextWindowTime = ptr.To(ago(-9 * time.Hour))
	budget.Status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.NodeMaintenanceBudgetConditionOpen), Status: open}}
	return budget
}

// selecting returns a maintenance of all nodes of a snapshot.
func (s *podSnapshot) selecting(rollout *coordinationv1alpha1.NodeMaintenanceRollout) *coordinationv1alpha1.NodeMaintenance {
	var names []string
	for _, node := range s.nodes {
		names = append(names, node.Name)
	}
	nm := newMaintenance("kernel", drain, names...)
	nm.Spec.Rollout = rollout
	return nm.NodeMaintenance
}

func atATime(value string) *coordinationv1alpha1.NodeMaintenanceRollout {
	return &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.Parse(value))}
}

func TestBatches(t *testing.T) {
	m := newMaintenance("kernel", drain, "n")
	begun := func(name string, phase nodePhase) *corev1.Node {
		node := admittedNode(m, name, phase, time.Minute)
		node.Labels = readyNode(name).Labels
		return node
	}
	five := []any{readyNode("n1"), readyNode("n2"), readyNode("n3"), readyNode("n4"), readyNode("n5")}
	zones := []any{readyNode("n1@a"), readyNode("n2@b"), readyNode("n3@a"), readyNode("n4@b"), readyNode("n5")}
	const frozen, topology, full = coordinationv1alpha1.NodeMaintenanceWaitFrozen, coordinationv1alpha1.NodeMaintenanceWaitTopology, coordinationv1alpha1.NodeMaintenanceWaitBudget
	for _, tc := range []struct {
		name    string
		stories []any
		rollout *coordinationv1alpha1.NodeMaintenanceRollout
		want    string
		stuck   []stuckNodes
	}{
		{"without limits", five, &coordinationv1alpha1.NodeMaintenanceRollout{}, "n1 n2 n3 n4 n5", nil},
		{"a number", five, atATime("2"), "n1 n2, n3 n4, n5", nil},
		{"a percentage rounds down", five, atATime("50%"), "n1 n2, n3 n4, n5", nil},
		{"a small percentage is one", five, atATime("1%"), "n1, n2, n3, n4, n5", nil},
		{"a budget", append([]any{nodeBudget("workers", "2")}, five...), nil, "n1 n2, n3 n4, n5", nil},
		{"a budget of some nodes", append([]any{nodeBudget("some", "1", "n1", "n2", "n3")}, five...), atATime("3"), "n1 n4 n5, n2, n3", nil},
		{"a budget and a number", append([]any{nodeBudget("workers", "60%")}, five...), atATime("2"), "n1 n2, n3 n4, n5", nil},
		{"two budgets", append([]any{nodeBudget("workers", "3"), nodeBudget("some", "1", "n1", "n2")}, five...), nil, "n1 n3 n4, n2 n5", nil},
		{"a broken node costs nothing", append([]any{nodeBudget("workers", "1"), brokenNode("n0")}, five[:2]...), nil, "n0, n1, n2", nil},
		{"a broken node that is not selected uses up the budget", append([]any{nodeBudget("workers", "1"), brokenNode("x")}, five[:2]...), nil, "", []stuckNodes{{full, "workers", []string{"n1", "n2"}}}},
		{"a pool that was cordoned", []any{nodeBudget("workers", "2"), cordonedNode("n1"), cordonedNode("n2"), cordonedNode("n3")}, nil, "n1 n2, n3", nil},
		{"cordoned nodes count", []any{nodeBudget("workers", "2"), cordonedNode("n1"), readyNode("n2"), readyNode("n3")}, nil, "n1 n2, n3", nil},
		{"cordoned and broken nodes", []any{nodeBudget("workers", "2"), brokenNode("n0"), cordonedNode("n1"), cordonedNode("n2")}, nil, "n0 n1, n2", nil},
		{"cordoned nodes that are not selected use up the budget", append([]any{nodeBudget("workers", "1"), cordonedNode("x")}, five[:2]...), nil, "", []stuckNodes{{full, "workers", []string{"n1", "n2"}}}},
		{"a freeze of some nodes", append([]any{nodeBudget("freeze", "0", "n2", "n4")}, five...), atATime("2"), "n1 n3, n5", []stuckNodes{{frozen, "freeze", []string{"n2", "n4"}}}},
		{"a freeze in percent", append([]any{nodeBudget("freeze", "0%", "n2")}, five[:2]...), nil, "n1", []stuckNodes{{frozen, "freeze", []string{"n2"}}}},
		{"one zone at a time", append([]any{zonal(nodeBudget("zones", "5"), 1)}, zones...), nil, "n1@a n3@a, n2@b n4@b, n5", nil},
		{"two zones at a time", append([]any{zonal(nodeBudget("zones", "5"), 2)}, zones...), nil, "n1@a n3@a n2@b n4@b, n5", nil},
		{"one zone at a time, one node at a time", append([]any{zonal(nodeBudget("zones", "1"), 1)}, zones...), nil, "n1@a, n3@a, n2@b, n4@b, n5", nil},
		{"those that are begun, with the zone", append([]any{zonal(nodeBudget("zones", "2"), 1), begun("n9@b", phaseDrained)}, zones...), nil, "n9@b n2@b, n1@a n3@a, n4@b, n5", nil},
		{"nodes of the zone that is begun are next", append([]any{zonal(nodeBudget("zones", "4"), 2), begun("n9@b", phaseDrained)}, zones...), atATime("2"), "n9@b n2@b, n1@a n3@a, n4@b n5", nil},
		{"those that are begun count", append([]any{begun("n9", phaseDraining)}, five...), atATime("2"), "n9 n1, n2 n3, n4 n5", nil},
		{"done ones are left out", append([]any{begun("n8", phaseDone)}, five...), atATime("3"), "n1 n2 n3, n4 n5", nil},
		{"failed ones keep their budget", append([]any{nodeBudget("workers", "2"), begun("n8", phaseFailed)}, five[:2]...), atATime("3"), "n1, n2", nil},
		{"failed ones keep their zone", []any{zonal(nodeBudget("zones", "5"), 1), begun("n8@b", phaseFailed), readyNode("n1@a"), readyNode("n2@b")}, nil, "n2@b", []stuckNodes{{topology, "zones", []string{"n1@a"}}}},
		{"failed ones of too many zones stop all", []any{zonal(nodeBudget("zones", "5"), 1), begun("n8@b", phaseFailed), begun("n9@a", phaseFailed), readyNode("n1@a"), readyNode("n2@b")}, nil, "", []stuckNodes{{topology, "zones", []string{"n1@a", "n2@b"}}}},
		{"machines that have come back are last", []any{youngNode("n1", 2*time.Hour), youngNode("n2", time.Hour), readyNode("n3")}, atATime("1"), "n3, n2, n1", nil},
		{"nodes that others remove are left out, and count", []any{nodeBudget("workers", "2"), removedNode("n1"), readyNode("n2"), readyNode("n3")}, nil, "n2, n3", []stuckNodes{{coordinationv1alpha1.NodeMaintenanceWaitBeingRemoved, "", []string{"n1"}}}},
		{"others are removed, and some cordoned", []any{nodeBudget("workers", "2"), removedNode("n1"), cordonedNode("n2"), cordonedNode("n3")}, nil, "n2, n3", []stuckNodes{{coordinationv1alpha1.NodeMaintenanceWaitBeingRemoved, "", []string{"n1"}}}},
		{"no node", nil, atATime("3"), "", nil},
	} {
		s := snapshotOf(tc.stories...)
		nm := s.selecting(tc.rollout)
		nm.CreationTimestamp = metav1.NewTime(testNow)
		nodes := s.nodes
		if strings.Contains(tc.name, "not selected") {
			nodes = s.nodes[:2]
		}
		s.planRollout(nm, nodes, testNow)
		var batches []string
		for _, batch := range s.rollout.Batches {
			batches = append(batches, strings.Join(batch, " "))
		}
		if diff := cmp.Diff(tc.want, strings.Join(batches, ", ")); diff != "" {
			t.Errorf("%s: batches (-want, +got):\n%s", tc.name, diff)
		}
		if diff := cmp.Diff(tc.stuck, s.rollout.Stuck); diff != "" {
			t.Errorf("%s: stuck (-want, +got):\n%s", tc.name, diff)
		}
	}
}

// TestBatchesOfManyNodes verifies that batches are in the order of the controller, which spreads the
// nodes of a large cluster, also if the maintenance selects few of them.
func TestBatchesOfManyNodes(t *testing.T) {
	stories := []any{zonal(nodeBudget("zones", "1"), 1), readyNode("n1@b"), readyNode("n2@a"), readyNode("n3@a"), readyNode("n4@a"), readyNode("n5@b")}
	for i := range 96 {
		stories = append(stories, readyNode(fmt.Sprintf("other-%d", i)))
	}
	s := snapshotOf(stories...)
	nodes := s.nodes[:5]
	s.planRollout(s.selecting(nil), nodes, testNow)
	if diff := cmp.Diff([][]string{{"n3@a"}, {"n4@a"}, {"n2@a"}, {"n5@b"}, {"n1@b"}}, s.rollout.Batches); diff != "" {
		t.Errorf("batches (-want, +got):\n%s", diff)
	}
}

func TestPace(t *testing.T) {
	own, other := newMaintenance("kernel", drain, "n"), newMaintenance("other", drain, "n")
	took := func(m maintenanceStory, name string, d, before time.Duration) *corev1.Node {
		node := admittedNode(m, name, phaseDone, before)
		node.Status.MaintenanceStatus.Admissions[0].AdmittedTime = ago(before + d)
		return node
	}
	for _, tc := range []struct {
		name  string
		nodes []*corev1.Node
		want  *pace
	}{
		{"none", nil, nil},
		{"none is done", []*corev1.Node{newNode("a"), admittedNode(own, "b", phaseReturning, time.Minute)}, nil},
		{"own", []*corev1.Node{took(own, "a", 4*time.Minute, time.Minute), took(own, "b", 8*time.Minute, 59*time.Minute), took(other, "c", time.Hour, 0)}, &pace{2, 360}},
		{"others", []*corev1.Node{took(other, "c", time.Hour, 0)}, &pace{1, 3600}},
		{"more than an hour ago", []*corev1.Node{took(own, "a", time.Minute, 61*time.Minute)}, nil},
		{"clocks that differ", []*corev1.Node{took(own, "a", -time.Minute, 0)}, &pace{1, 0}},
	} {
		if diff := cmp.Diff(tc.want, paceOf(tc.nodes, own.UID, testNow)); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", tc.name, diff)
		}
	}
}

// requesting sets what the pod requests, as in "cpu=1 memory=1Gi".
func (p podStory) requesting(requests string) podStory {
	list := corev1.ResourceList{}
	for _, request := range strings.Fields(requests) {
		name, amount, _ := strings.Cut(request, "=")
		list[corev1.ResourceName(name)] = apiresource.MustParse(amount)
	}
	p.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: list}}}
	return p
}

// on restricts a pod to a node, by its label.
func (p podStory) on(node string) podStory {
	p.Spec.NodeSelector = map[string]string{"name": node}
	return p
}

func (p podStory) withAffinityTo(node string) podStory {
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}},
	}}}
	return p
}

func (p podStory) tolerating(key string) podStory {
	p.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
	return p
}

func tainted(node *corev1.Node, key string, effect corev1.TaintEffect) *corev1.Node {
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	return node
}

// using counts the requests of all pods, as reading them does.
func (s *podSnapshot) using() *podSnapshot {
	s.used = map[string]amounts{}
	for _, pods := range s.pods {
		for _, pod := range pods {
			s.addRequests(pod)
		}
	}
	return s
}

func TestCapacity(t *testing.T) {
	const cpu, memory, gpu = corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceName("example.com/gpu")
	full := newPod("full-0", "n2").requesting("cpu=3 memory=7Gi")
	withGPU := readyNode("n2")
	withGPU.Status.Allocatable[gpu] = apiresource.MustParse("1")
	small := readyNode("n2")
	small.Status.Allocatable[corev1.ResourcePods] = apiresource.MustParse("1")
	cordoned := readyNode("n2")
	cordoned.Spec.Unschedulable = true
	sidecar := newPod("a-0", "n1").requesting("cpu=1")
	sidecar.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{cpu: apiresource.MustParse("5")}}}}
	for _, tc := range []struct {
		name    string
		stories []any
		want    capacityHint
	}{
		{"fits", []any{readyNode("n2"), newPod("a-0", "n1").requesting("cpu=4 memory=8Gi")}, capacityHint{Pods: 1, SchedulableNodes: 1}},
		{"what is used does not count twice", []any{readyNode("n2"), full, newPod("a-0", "n1").requesting("cpu=1 memory=1Gi")}, capacityHint{Pods: 1, SchedulableNodes: 1}},
		{"no cpu left", []any{readyNode("n2"), full, newPod("a-0", "n1").requesting("cpu=1001m memory=1Gi")}, capacityHint{Pods: 1, SchedulableNodes: 1, Unplaced: []unplacedPod{{"default", "a-0", []corev1.ResourceName{cpu}, false}}}},
		{"neither cpu nor memory left", []any{readyNode("n2"), full, newPod("a-0", "n1").requesting("cpu=2 memory=2Gi")}, capacityHint{Pods: 1, SchedulableNodes: 1, Unplaced: []unplacedPod{{"default", "a-0", []corev1.ResourceName{cpu, memory}, false}}}},
		{"each is left elsewhere", []any{readyNode("n2"), readyNode("n3"), newPod("x-0", "n2").requesting("cpu=3"), newPod("x-1", "n3").requesting("memory=7Gi"), newPod("a-0", "n1").requesting("cpu=2 memory=2Gi")},
			capacityHint{Pods: 1, SchedulableNodes: 2, Unplaced: []unplacedPod{{"default", "a-0", nil, false}}}},
		{"pods take place from each other", []any{readyNode("n2"), newPod("a-0", "n1").requesting("cpu=3"), newPod("a-1", "n1").requesting("cpu=2")}, capacityHint{Pods: 2, SchedulableNodes: 1, Unplaced: []unplacedPod{{"default", "a-1", []corev1.ResourceName{cpu}, false}}}},
		{"the largest first", []any{readyNode("n2"), readyNode("n3"), newPod("a-0", "n1").requesting("cpu=2"), newPod("a-1", "n1").requesting("cpu=2"), newPod("b-0", "n1").requesting("cpu=4")}, capacityHint{Pods: 3, SchedulableNodes: 2}},
		{"an extended resource", []any{withGPU, newPod("a-0", "n1").requesting("example.com/gpu=1"), newPod("a-1", "n1").requesting("example.com/gpu=1")}, capacityHint{Pods: 2, SchedulableNodes: 1, Unplaced: []unplacedPod{{"default", "a-1", []corev1.ResourceName{gpu}, false}}}},
		{"the number of pods", []any{small, newPod("a-0", "n1"), newPod("a-1", "n1")}, capacityHint{Pods: 2, SchedulableNodes: 1, Unplaced: []unplacedPod{{"default", "a-1", []corev1.ResourceName{corev1.ResourcePods}, false}}}},
		{"init containers", []any{readyNode("n2"), sidecar}, capacityHint{Pods: 1, SchedulableNodes: 1, Unplaced: []unplacedPod{{"default", "a-0", []corev1.ResourceName{cpu}, false}}}},
		{"a node selector", []any{readyNode("n2"), newPod("a-0", "n1").on("n1"), newPod("a-1", "n1").on("n2")}, capacityHint{Pods: 2, SchedulableNodes: 1, Unplaced: []unplacedPod{{Namespace: "default", Name: "a-0", NoNode: true}}}},
		{"affinity to nodes", []any{readyNode("n2"), newPod("a-0", "n1").withAffinityTo("n1"), newPod("a-1", "n1").withAffinityTo("n2")}, capacityHint{Pods: 2, SchedulableNodes: 1, Unplaced: []unplacedPod{{Namespace: "default", Name: "a-0", NoNode: true}}}},
		{"taints", []any{tainted(readyNode("n2"), "gpu", corev1.TaintEffectNoSchedule), newPod("a-0", "n1"), newPod("a-1", "n1").tolerating("gpu")}, capacityHint{Pods: 2, SchedulableNodes: 1, Unplaced: []unplacedPod{{Namespace: "default", Name: "a-0", NoNode: true}}}},
		{"a taint that only prefers", []any{tainted(readyNode("n2"), coordinationv1alpha1.NodePlannedTaint, corev1.TaintEffectPreferNoSchedule), newPod("a-0", "n1")}, capacityHint{Pods: 1, SchedulableNodes: 1}},
		{"nodes that are cordoned or broken", []any{cordoned, brokenNode("n3"), newPod("a-0", "n1")}, capacityHint{Pods: 1, Unplaced: []unplacedPod{{Namespace: "default", Name: "a-0", NoNode: true}}}},
		{"pods that are not created again elsewhere", []any{newPod("a-0", "n1").bare(), newPod("b-0", "n1").ownedBy("DaemonSet"), newPod("c-0", "n1").static(), newPod("d-0", "n1").inPhase(corev1.PodSucceeded)}, capacityHint{}},
	} {
		s := snapshotOf(append(tc.stories, readyNode("n1"))...).using()
		s.rollout = &rolloutPlan{Batches: [][]string{{"n1"}}}
		s.rollout.addCapacity(s)
		if tc.want.Pods == 0 {
			if s.rollout.Capacity != nil {
				t.Errorf("%s: %+v", tc.name, s.rollout.Capacity)
			}
			continue
		}
		tc.want.Batch, tc.want.Nodes = 1, 1
		if tc.want.Unplaced == nil {
			tc.want.Unplaced = []unplacedPod{}
		}
		if diff := cmp.Diff(&tc.want, s.rollout.Capacity); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", tc.name, diff)
		}
	}
}

// TestCapacityOfOneController verifies that pods of a controller that differ are all tried.
func TestCapacityOfOneController(t *testing.T) {
	stories := []any{readyNode("n1"), readyNode("n2")}
	for name, requests := range map[string]string{"a-0": "cpu=5", "a-1": "cpu=5", "a-2": "cpu=4"} {
		pod := newPod(name, "n1").requesting(requests)
		pod.OwnerReferences[0].UID = "uid-of-set"
		stories = append(stories, pod)
	}
	s := snapshotOf(stories...).using()
	s.rollout = &rolloutPlan{Batches: [][]string{{"n1"}}}
	s.rollout.addCapacity(s)
	cpu := []corev1.ResourceName{corev1.ResourceCPU}
	if diff := cmp.Diff([]unplacedPod{{"default", "a-0", cpu, false}, {"default", "a-1", cpu, false}}, s.rollout.Capacity.Unplaced); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// TestCapacityOfLargestBatch verifies which batch is examined.
func TestCapacityOfLargestBatch(t *testing.T) {
	s := snapshotOf(readyNode("n1"), readyNode("n2"), readyNode("n3"), newPod("a-0", "n1"), newPod("a-1", "n2"), newPod("a-2", "n2"), newPod("a-3", "n3")).using()
	s.rollout = &rolloutPlan{Batches: [][]string{{"n1"}, {"n2"}, {"n3"}}}
	s.rollout.addCapacity(s)
	if hint := s.rollout.Capacity; hint.Batch != 2 || hint.Pods != 2 || hint.SchedulableNodes != 2 {
		t.Errorf("%+v", hint)
	}
	s.rollout = &rolloutPlan{}
	s.rollout.addCapacity(s)
	if s.rollout.Capacity != nil {
		t.Errorf("%+v", s.rollout.Capacity)
	}
}

// TestWarningsOfBatches verifies that pods count as evicted together only within a batch, but all
// failures of a Job count.
func TestWarningsOfBatches(t *testing.T) {
	plan := func(rollout *coordinationv1alpha1.NodeMaintenanceRollout) []warning {
		s := snapshotOf(readyNode("n1"), readyNode("n2"), newPod("web-0", "n1"), newPod("web-1", "n2"), newPod("job-0", "n1").ownedBy("Job"), newPod("job-1", "n2").ownedBy("Job"))
		put(&s.workloads.ready, workload{"ReplicaSet", "default", "set"}, 2)
		put(&s.workloads.jobs, workload{"Job", "default", "set"}, newJob("set", ptr.To[int32](1), 0))
		if rollout != nil {
			s.planRollout(s.selecting(rollout), s.nodes, testNow)
		}
		return mustPlan(t, s, "", maintenance.StandardPlan(), "n1", "n2").Warnings
	}
	job := warning{Kind: "Job", Namespace: "default", Name: "set", Step: 1, Pods: 2, FailuresAllowed: ptr.To(1)}
	set := warning{Kind: "ReplicaSet", Namespace: "default", Name: "set", Step: 1, Pods: 2}
	if diff := cmp.Diff([]warning{job, set}, plan(nil)); diff != "" {
		t.Errorf("together (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff([]warning{job}, plan(atATime("1"))); diff != "" {
		t.Errorf("one by one (-want, +got):\n%s", diff)
	}
}

// limitedPool returns nodes with pods, and what limits their drain.
func limitedPool() []any {
	return []any{
		readyNode("n1@a"), readyNode("n2@b"), readyNode("n3@a"), readyNode("n4@b"), readyNode("n5@a"), brokenNode("n6@b"), readyNode("n7@c"),
		newPod("web-0", "n1@a").requesting("cpu=2"), newPod("web-1", "n2@b").requesting("cpu=3"), newPod("web-2", "n3@a").requesting("cpu=4"), newPod("db-0", "n3@a").on("n3@a"), newPod("big-0", "n1@a").requesting("cpu=5"),
		nightly(zonal(nodeBudget("zones", "50%"), 1), metav1.ConditionFalse), nodeBudget("freeze", "0", "n4@b"), nodeBudget("elsewhere", "0", "x"),
	}
}

func TestRenderRolloutPlan(t *testing.T) {
	render := func(s *podSnapshot, nm *coordinationv1alpha1.NodeMaintenance) string {
		nodes := s.planRollout(nm, s.selectedNodes(nm.Spec.NodeSelector), testNow)
		s.using()
		s.rollout.addCapacity(s)
		p, err := planOf(s, nm.Name, nodes, maintenance.StandardPlan())
		if err != nil {
			t.Fatal(err)
		}
		p.Nodes, p.Budgets, p.Steps = nil, nil, nil
		return renderPlan(p, defaultWidth, testNow)
	}
	m := newMaintenance("kernel", drain, "n1", "n2", "n3", "n4").rollingOut(twoAtATime(rebooted)).counting(1, 2, 1, "n2").halted()
	m.Spec.Rollout.Paused = true
	stored := snapshotOf(m, readyNode("n1"), admittedNode(m, "n2", phaseFailed, time.Minute), admittedNode(m, "n3", phaseDone, 10*time.Minute), admittedNode(m, "n4", phaseDraining, time.Minute),
		nightly(nodeBudget("workers", "3", "n1"), metav1.ConditionTrue))
	unserved := snapshotOf(readyNode("n1"), readyNode("n2"), newPod("web-0", "n1"))
	unserved.budgetsNotServed = true
	var many []any
	for i := range 50 {
		many = append(many, readyNode(fmt.Sprintf("node-%02d", i)))
	}
	for name, tc := range map[string]struct {
		s       *podSnapshot
		nm      *coordinationv1alpha1.NodeMaintenance
		rollout *coordinationv1alpha1.NodeMaintenanceRollout
	}{
		"rollout":            {s: snapshotOf(limitedPool()...), rollout: atATime("2")},
		"rollout-budgets":    {s: snapshotOf(limitedPool()...)},
		"rollout-stored":     {s: stored, nm: m.NodeMaintenance},
		"rollout-not-served": {s: unserved, rollout: atATime("50%")},
		"rollout-many":       {s: snapshotOf(many...), rollout: atATime("7")},
	} {
		if tc.nm == nil {
			tc.nm = tc.s.selecting(tc.rollout)
			tc.nm.Name = ""
		}
		golden(t, "plan/"+name, render(tc.s, tc.nm))
	}
	s := snapshotOf(limitedPool()...)
	s.planRollout(s.selecting(atATime("2")), s.nodes, testNow)
	s.using()
	s.rollout.addCapacity(s)
	var out bytes.Buffer
	if err := printStructured(&out, "yaml", s.rollout); err != nil {
		t.Fatal(err)
	}
	golden(t, "plan/rollout-wide-yaml", out.String())
}

func TestPlanRolloutCommand(t *testing.T) {
	notFound := func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
	}
	stored := newMaintenance("kernel", drain, "n1@a", "n3@a").rollingOut(twoAtATime(manual))
	for _, tc := range []struct {
		name    string
		change  func(s *server)
		args    []string
		out     []string
		without string
		failure string
	}{
		{"a flag", nil, []string{"-l", "pool=a", "--max-concurrent=2"}, []string{"Rollout (", "(spec.rollout.maxConcurrent 2)", "left on any of the nodes that\nare drained at the same time:", "Capacity (a hint)"}, "", ""},
		{"only budgets", nil, []string{"n1@a", "n3@a"}, []string{"2 nodes in 1 batch\n", "NodeMaintenanceBudget zones selects 2 nodes"}, "elsewhere", ""},
		{"stored", nil, []string{"--maintenance=kernel"}, []string{"2 nodes in 1 batch (spec.rollout.maxConcurrent 2)"}, "", ""},
		{"json", nil, []string{"n1@a", "-o", "json"}, []string{`"batches": [`, `"capacity": {`}, "", ""},
		{"no limit", func(s *server) { s.PrependReactor("list", budgetResource, notFound) }, []string{"n1@a"}, nil, "Rollout", ""},
		{"not served according to discovery", func(s *server) {
			s.Resources[0].APIResources = []metav1.APIResource{{Name: resource}}
			s.forbid(budgetResource)
		}, []string{"n1@a", "--max-concurrent=1"}, []string{"The server does not serve NodeMaintenanceBudgets"}, "Without the permission", ""},
		{"not served", func(s *server) { s.PrependReactor("list", budgetResource, notFound) }, []string{"n1@a", "--max-concurrent=1"}, []string{"The server does not serve NodeMaintenanceBudgets"}, "", ""},
		{"forbidden", func(s *server) { s.forbid(budgetResource) }, []string{"n1@a", "--max-concurrent=1"}, []string{"1 node in 1 batch", "Without the permission to list nodemaintenancebudgets, this plan is incomplete."}, "", ""},
		{"another error", func(s *server) {
			s.PrependReactor("list", budgetResource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("out of order")
			})
		}, []string{"n1@a"}, nil, "", "listing nodemaintenancebudgets: out of order"},
		{"an invalid number", nil, []string{"n1@a", "--max-concurrent=0"}, nil, "", `--max-concurrent="0": must be a number of nodes`},
		{"a rollout of its own", nil, []string{"--maintenance=kernel", "--max-concurrent=1"}, nil, "", "--max-concurrent: the maintenance has its own rollout"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, append(limitedPool(), stored)...).servesBudgets()
			if tc.change != nil {
				tc.change(s)
			}
			out := s.run(t, append([]string{"plan"}, tc.args...)...)
			contains(t, out, tc.out...)
			contains(t, s.failure, tc.failure)
			if tc.without != "" && strings.Contains(out, tc.without) {
				t.Errorf("printed %q", out)
			}
			if failed := s.code != 0; failed != (tc.failure != "") || len(s.writes()) > 0 {
				t.Errorf("exit code %d: %s", s.code, s.failure)
			}
		})
	}
}

// TestPlanOfTheRest leaves out nodes that are done, and counts the pods of nodes that are not planned.
func TestPlanOfTheRest(t *testing.T) {
	m := newMaintenance("kernel", drain, "n1", "n2").started(time.Hour).rollingOut(twoAtATime(manual)).counting(1, 0, 1)
	done := admittedNode(m, "n1", phaseDone, time.Minute)
	s := newServer(t, m, done, readyNode("n2"), readyNode("n3"), newPod("old-0", "n1"), newPod("web-0", "n2").requesting("cpu=2"), newPod("db-0", "n3").requesting("cpu=3"))
	out := s.servesBudgets().mustRun(t, "plan", "--maintenance=kernel")
	contains(t, out, "NodeMaintenance kernel, a drain of 1 node.", "Not in this plan: 1 done, 0 failed to come back", "no node has enough cpu for 1 pod\n    (default/web-0)")
	if strings.Contains(out, "old-0") {
		t.Errorf("plans a node that is done:\n%s", out)
	}
	// The fake server ignores field selectors.
	for _, action := range s.Actions() {
		if list, ok := action.(clienttesting.ListAction); ok && action.GetResource().Resource == "pods" && !list.GetListRestrictions().Fields.Empty() {
			t.Errorf("reads only pods with %s", list.GetListRestrictions().Fields)
		}
	}
}

func TestHostileRolloutPlan(t *testing.T) {
	const hostile = plaintexttesting.Text
	budget := zonal(nodeBudget("zones"+hostile, "1"), 1)
	budget.Spec.Topology.Key += hostile
	freeze := nodeBudget("freeze"+hostile, "0", "n2")
	for _, args := range [][]string{{"plan", "n1", "n2"}, {"plan", "n1", "n2", "-o", "json"}, {"plan", "n1", "n2", "-o", "wide"}} {
		s := newServer(t, readyNode("n1"), readyNode("n2"), budget, freeze, newPod("db-0"+hostile, "n1").on("n1")).servesBudgets()
		out := s.mustRun(t, args...)
		plaintexttesting.Check(t, fmt.Sprint(args), out)
		contains(t, out, plaintexttesting.Forged)
	}
}

// BenchmarkPlanOfFleet plans the batches of 5,000 nodes with 30 pods each, on a cluster that is full.
func BenchmarkPlanOfFleet(b *testing.B) {
	stories := []any{zonal(nodeBudget("zones", "2%"), 1), nodeBudget("workers", "10%")}
	for i := range fleetSize {
		name := fmt.Sprintf("node-%04d@%d", i, i%3)
		stories = append(stories, readyNode(name))
		for j := range 30 {
			pod := newPod(fmt.Sprintf("web-%d-%d", i, j), name).requesting("cpu=130m memory=100Mi")
			pod.OwnerReferences[0].UID = "uid-of-set"
			stories = append(stories, pod)
		}
	}
	s := snapshotOf(stories...).using()
	nm := s.selecting(atATime("20"))
	for b.Loop() {
		s.planRollout(nm, s.nodes, testNow)
		s.rollout.addCapacity(s)
	}
	if batches := len(s.rollout.Batches); batches < fleetSize/20 {
		b.Errorf("%d batches", batches)
	}
}

// TestSharedWindows names budgets that have to be open at the same time, because their windows differ and they select the
// same node.
func TestSharedWindows(t *testing.T) {
	at := func(budget *coordinationv1alpha1.NodeMaintenanceBudget, schedule string) *coordinationv1alpha1.NodeMaintenanceBudget {
		nightly(budget, metav1.ConditionFalse).Spec.Windows[0].Schedule = schedule
		return budget
	}
	for name, test := range map[string]struct {
		budgets []*coordinationv1alpha1.NodeMaintenanceBudget
		want    []string
	}{
		"one has windows":  {[]*coordinationv1alpha1.NodeMaintenanceBudget{at(nodeBudget("nights", "1"), "0 1 * * *"), nodeBudget("always", "1")}, []string{}},
		"the same windows": {[]*coordinationv1alpha1.NodeMaintenanceBudget{at(nodeBudget("a", "1"), "0 1 * * *"), at(nodeBudget("b", "2"), "0 1 * * *")}, []string{}},
		"other nodes":      {[]*coordinationv1alpha1.NodeMaintenanceBudget{at(nodeBudget("a", "1", "n1"), "0 1 * * *"), at(nodeBudget("b", "2", "n2"), "0 12 * * *")}, []string{}},
		"other windows":    {[]*coordinationv1alpha1.NodeMaintenanceBudget{at(nodeBudget("noons", "1", "n1"), "0 12 * * *"), at(nodeBudget("nights", "2"), "0 1 * * *")}, []string{"nights", "noons"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(readyNode("n1"), readyNode("n2"))
			s.nodeBudgets = test.budgets
			s.planRollout(s.selecting(atATime("1")), s.nodes, testNow)
			if !slices.Equal(s.rollout.SharedWindows, test.want) {
				t.Errorf("got %q, want %q", s.rollout.SharedWindows, test.want)
			}
			p := &page{width: 80}
			p.addRolloutPlan(s.rollout, "kernel", testNow)
			if said := strings.Contains(p.String(), "    The windows of the NodeMaintenanceBudgets nights, noons must be open at the\n"); said != (len(test.want) > 0) {
				t.Errorf("the plan says it: %t\n%s", said, p)
			}
		})
	}
}
