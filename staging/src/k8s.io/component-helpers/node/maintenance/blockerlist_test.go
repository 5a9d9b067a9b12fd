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
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestBlockers(t *testing.T) {
	first := []types.NamespacedName{podNamed("shop", "web-1"), podNamed("shop", "web-2")}
	pods := []coordinationv1alpha1.DrainBlockerPod{{Namespace: "shop", Name: "web-1"}, {Namespace: "shop", Name: "web-2"}}
	got, total := ListedBlockers([]BlockerGroup{
		{Cause: BlockerCordonFailed, Nodes: 2, First: []types.NamespacedName{podNamed("", "n1"), podNamed("", "n2")}, Message: "no", Since: after(1)},
		{Cause: BlockerNodeStatusFailed, Nodes: 1, First: []types.NamespacedName{podNamed("", "n3")}, Message: "no", Since: after(2)},
		{Cause: BlockerDisruptionBudget, Name: "shop/web", Pods: 12, Nodes: 3, First: first, Since: after(2), ETA: after(3)},
		{Cause: BlockerDisruptionBudget, Name: "shop/all, shop/web", Pods: 2, Nodes: 1, First: first},
		{Cause: BlockerDisruptionBudget, Pods: 2, Nodes: 1, First: first},
		{Cause: BlockerRequestFailed, Name: "shop", Pods: 2, Nodes: 1, First: first, Message: "quota"},
		{Cause: BlockerInterceptor, Name: "vm.example.com", Pods: 2, Nodes: 1, First: first, Since: after(1), Heartbeat: after(2), ETA: after(9), Message: "Copied 3 of 7 volumes."},
		{Cause: BlockerInterceptor, Name: "zip.example.com", Pods: 2, Nodes: 1, First: first, Since: after(1)},
		{Cause: BlockerTerminating, Pods: 2, Nodes: 1, First: first, Since: after(1), ETA: after(9)},
	})
	want := []coordinationv1alpha1.DrainBlocker{
		{
			Cause: "CordonFailed", Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "n1"}, NodeCount: 2,
			SinceTime: after(1), Message: "2 nodes cannot be cordoned (no)",
		},
		{
			Cause: "NodeStatusFailed", Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Node", Name: "n3"}, NodeCount: 1,
			SinceTime: after(2), Message: "1 node has a status that cannot be written (no)",
		},
		{
			Cause: "DisruptionBudget", Name: "shop/web", Object: &coordinationv1alpha1.DrainBlockerObject{APIGroup: "policy", Kind: "PodDisruptionBudget", Namespace: "shop", Name: "web"},
			PodCount: 12, NodeCount: 3, Pods: pods, SinceTime: after(2), ExpectedFinishTime: after(3),
			Message: "12 pods wait for PodDisruptionBudget shop/web",
		},
		{
			Cause: "DisruptionBudget", Name: "shop/all, shop/web", PodCount: 2, NodeCount: 1, Pods: pods,
			Message: "2 pods wait because several PodDisruptionBudgets apply (shop/all, shop/web)",
		},
		{Cause: "DisruptionBudget", PodCount: 2, NodeCount: 1, Pods: pods, Message: "2 pods wait for a PodDisruptionBudget"},
		{
			Cause: "RequestFailed", Name: "shop", Object: &coordinationv1alpha1.DrainBlockerObject{Kind: "Namespace", Name: "shop"},
			PodCount: 2, NodeCount: 1, Pods: pods, Message: "2 pods in namespace shop cannot get an EvictionRequest (quota)",
		},
		{
			Cause: "Interceptor", Name: "vm.example.com", PodCount: 2, NodeCount: 1, Pods: pods, SinceTime: after(1), ExpectedFinishTime: after(9),
			Message: "2 pods wait for interceptor vm.example.com (Copied 3 of 7 volumes.)",
		},
		{Cause: "Interceptor", Name: "zip.example.com", PodCount: 2, NodeCount: 1, Pods: pods, SinceTime: after(1), Message: "2 pods wait for interceptor zip.example.com (no heartbeat yet)"},
		{
			Cause: "Terminating", PodCount: 2, NodeCount: 1, Pods: pods, SinceTime: after(1), ExpectedFinishTime: after(9),
			Message: "2 pods are terminating",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if total != 9 {
		t.Errorf("got %d in all", total)
	}
	if got, total := ListedBlockers(nil); got != nil || total != 0 {
		t.Errorf("of nothing: %v, %d", got, total)
	}
}

// A blocker names the maintenance that keeps pods, if it is a single one.
func TestBlockerOfOtherMaintenances(t *testing.T) {
	for name, want := range map[string]*coordinationv1alpha1.DrainBlockerObject{
		"rack":       {APIGroup: "coordination.k8s.io", Kind: "NodeMaintenance", Name: "rack"},
		"bios, rack": nil,
	} {
		got, _ := ListedBlockers([]BlockerGroup{{Cause: BlockerKeptByMaintenance, Name: name, Pods: 1, First: []types.NamespacedName{podNamed("shop", "web")}}})
		if diff := cmp.Diff(want, got[0].Object); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", name, diff)
		}
	}
}

// A cause that is rare is listed beside one that is frequent, and the order stays.
func TestBlockersAreBounded(t *testing.T) {
	var groups []BlockerGroup
	for i := range 50 {
		groups = append(groups, BlockerGroup{Cause: BlockerDisruptionBudget, Name: fmt.Sprintf("shop/web-%02d", i), Pods: 1})
	}
	groups = append(groups, BlockerGroup{Cause: BlockerRequestFailed, Name: "shop", Pods: 1}, BlockerGroup{Cause: BlockerTerminating, Pods: 1})
	got, total := ListedBlockers(groups)
	if total != 52 || len(got) != 20 {
		t.Fatalf("%d of %d", len(got), total)
	}
	var names []string
	for _, blocker := range got {
		names = append(names, string(blocker.Cause)+" "+blocker.Name)
	}
	if names[0] != "DisruptionBudget shop/web-00" || names[17] != "DisruptionBudget shop/web-17" || names[18] != "RequestFailed shop" || names[19] != "Terminating " {
		t.Errorf("got %q", names)
	}
}

// The texts of blockers fit the API, whatever the API server says.
func TestBlockerTexts(t *testing.T) {
	long := strings.Repeat("é", 3000)
	got, _ := ListedBlockers(GroupBlockers([]Blocker{FailedCordon("n", long, after(0).Time), {Cause: BlockerInterceptor, Name: long, Pod: podNamed("a", "b"), Message: long}}))
	for _, blocker := range got {
		for _, text := range []string{blocker.Name, blocker.Message} {
			if len(text) > maxBlockerText || !utf8.ValidString(text) {
				t.Errorf("%d bytes, valid %t", len(text), utf8.ValidString(text))
			}
		}
	}
	if n := len(got[0].Message); n < maxForeignText || n > maxForeignText+100 {
		t.Errorf("a refusal takes %d bytes", n)
	}
}

// The message of an interceptor changes that of its blocker, and a heartbeat alone does not: the
// controller writes the status whenever a blocker changes.
func TestBlockerChangesWithTheMessageOnly(t *testing.T) {
	blockerOf := func(heartbeat int, message string) coordinationv1alpha1.DrainBlocker {
		var blockers []Blocker
		for _, name := range []string{"vm-2", "vm-1", "vm-0"} {
			report := coordinationv1alpha1.InterceptorStatus{HeartbeatTime: after(heartbeat)}
			if name != "vm-0" {
				report.Message = message + " " + name
			}
			pod := webPod(func(pod *v1.Pod) { pod.Name = name })
			blocker, _ := BlockerOf(pod, newRequest(intercepted(interceptorVM, report)), nil, noon)
			blockers = append(blockers, blocker)
		}
		listed, _ := ListedBlockers(GroupBlockers(blockers))
		return listed[0]
	}
	before := blockerOf(8, "Copying")
	if want := "3 pods wait for interceptor vm.example.com (shop/vm-1: Copying vm-1; shop/vm-2: Copying vm-2)"; before.Message != want {
		t.Errorf("message %q, want %q", before.Message, want)
	}
	if diff := cmp.Diff(before, blockerOf(9, "Copying")); diff != "" {
		t.Errorf("after a heartbeat (-before, +after):\n%s", diff)
	}
	if after := blockerOf(9, "Copied"); after.Message == before.Message {
		t.Errorf("after a message: %q", after.Message)
	}
}

// A status with all blockers that fit is small enough for etcd and for the watches of many clients,
// however long the names and messages are.
func TestStatusIsBounded(t *testing.T) {
	const limit = 100 << 10
	name := func(i int) string { return fmt.Sprintf("%s-%03d", strings.Repeat("n", 249), i) }
	var blockers []Blocker
	for i := range 2 * maxBlockers {
		pod := func(j int) *v1.Pod {
			return webPod(func(pod *v1.Pod) { pod.Namespace, pod.Name = strings.Repeat("s", 63), name(10*i+j) })
		}
		report := coordinationv1alpha1.InterceptorStatus{HeartbeatTime: after(i), ExpectedFinishTime: after(i), Message: strings.Repeat("\"", 4096)}
		for j := range 7 {
			refused, _ := BlockerOf(pod(j), newRequest(evicting, withCondition(coordinationv1alpha1.EvictionRequestConditionBlocked, metav1.ConditionTrue, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget)),
				budgetsNamed(name(i), name(i+1), name(i+2), name(i+3)), noon)
			waiting, _ := BlockerOf(pod(j), newRequest(intercepted(name(i), report)), nil, noon)
			blockers = append(blockers, refused, waiting)
		}
	}
	groups := GroupBlockers(blockers)
	status := coordinationv1alpha1.NodeMaintenanceStatus{Conditions: []metav1.Condition{{Message: BlockerMessage(groups)}}}
	status.DrainStatus.Blockers, status.DrainStatus.BlockerCount = ListedBlockers(groups)
	data, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if len(status.DrainStatus.Blockers) != maxBlockers || len(data) > limit {
		t.Errorf("%d blockers, %d bytes", len(status.DrainStatus.Blockers), len(data))
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain":         "plain",
		"a\nb\tc\x1b[m": "a b c [m",
		"a\u009bb":      "a b",
		"bad \xff":      "bad ?",
		" around\r\n":   "around",
		"0123456789":    "0123456789",
		"01234567890":   "0123456...",
		"012345é7890":   "012345...",
	} {
		if got := Printable(text, 10); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
