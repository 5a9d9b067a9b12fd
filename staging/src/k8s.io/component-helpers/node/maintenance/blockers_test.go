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
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const interceptorVM = "vm.example.com"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// after returns a time that many minutes after noon.
func after(minutes int) *metav1.Time {
	return &metav1.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}
}

// webPod returns shop/web-0 on node one.
func webPod(changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"},
		Spec:       v1.PodSpec{NodeName: "one"},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// deletedBy lets the grace period end at a time, after it began 10 minutes before.
func deletedBy(end *metav1.Time) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = end, ptr.To[int64](600)
	}
}

func inPhase(phase v1.PodPhase) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Status.Phase = phase }
}

func ofDaemonSet(pod *v1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: ptr.To(true)}}
}

// newRequest returns an EvictionRequest that was created at noon.
func newRequest(changes ...func(*coordinationv1alpha1.EvictionRequest)) *coordinationv1alpha1.EvictionRequest {
	request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", CreationTimestamp: *after(0)}}
	for _, change := range changes {
		change(request)
	}
	return request
}

// intercepted activates the second of two interceptors one minute after noon.
func intercepted(active string, report coordinationv1alpha1.InterceptorStatus) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		report.Name = active
		request.Status.TargetInterceptors = []coordinationv1alpha1.Interceptor{{Name: "first.example.com"}, {Name: active}}
		request.Status.Interceptors = []coordinationv1alpha1.InterceptorStatus{{Name: "first.example.com", HeartbeatTime: after(0)}, report}
		request.Status.ActiveInterceptors = []string{active}
		request.Status.ActivationTime = after(1)
	}
}

func evicting(request *coordinationv1alpha1.EvictionRequest) {
	intercepted(coordinationv1alpha1.EvictionInterceptorImperative, coordinationv1alpha1.InterceptorStatus{})(request)
}

// allDone lets the last of all interceptors complete five minutes after noon.
func allDone(request *coordinationv1alpha1.EvictionRequest) {
	intercepted(coordinationv1alpha1.EvictionInterceptorImperative, coordinationv1alpha1.InterceptorStatus{CompletionTime: after(5)})(request)
	request.Status.Interceptors[0].CompletionTime = after(1)
	request.Status.ProcessedInterceptors = []string{"first.example.com", coordinationv1alpha1.EvictionInterceptorImperative}
	request.Status.ActiveInterceptors = nil
}

func withCondition(conditionType coordinationv1alpha1.EvictionRequestConditionType, status metav1.ConditionStatus, reason string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.Conditions = append(request.Status.Conditions, metav1.Condition{
			Type: string(conditionType), Status: status, Reason: reason, LastTransitionTime: *after(2),
		})
	}
}

// budgetsNamed returns budgets of the namespace of a pod.
func budgetsNamed(names ...string) func(*v1.Pod) []*policyv1.PodDisruptionBudget {
	return func(pod *v1.Pod) []*policyv1.PodDisruptionBudget {
		var budgets []*policyv1.PodDisruptionBudget
		for _, name := range names {
			budgets = append(budgets, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}})
		}
		return budgets
	}
}

func TestBlockerOf(t *testing.T) {
	const (
		canceled     = coordinationv1alpha1.EvictionRequestConditionCanceled
		evicted      = coordinationv1alpha1.EvictionRequestConditionEvicted
		blocked      = coordinationv1alpha1.EvictionRequestConditionBlocked
		unresponsive = coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive

		budget  = coordinationv1alpha1.EvictionRequestReasonDisruptionBudget
		refused = coordinationv1alpha1.EvictionRequestReasonEvictionRefused
	)
	reporting := coordinationv1alpha1.InterceptorStatus{HeartbeatTime: after(8), ExpectedFinishTime: after(20)}
	for _, tc := range []struct {
		name    string
		pod     *v1.Pod
		request *coordinationv1alpha1.EvictionRequest
		budgets func(*v1.Pod) []*policyv1.PodDisruptionBudget
		now     *metav1.Time
		// want has no Cause if nothing blockers the pod. Pod and Node are the same everywhere.
		want Blocker
	}{
		{name: "no request", pod: webPod()},
		{name: "evicted", pod: webPod(), request: newRequest(withCondition(evicted, metav1.ConditionTrue, ""))},
		{name: "canceled", pod: webPod(), request: newRequest(withCondition(canceled, metav1.ConditionTrue, ""))},
		{name: "succeeded", pod: webPod(inPhase(v1.PodSucceeded)), request: newRequest(evicting)},
		{name: "failed and terminating", pod: webPod(inPhase(v1.PodFailed), deletedBy(after(5))), request: newRequest(evicting)},
		{
			name: "not processed yet", pod: webPod(), request: newRequest(),
			want: Blocker{Cause: BlockerEvicting, Since: after(0)},
		},
		{
			name: "evicting", pod: webPod(), request: newRequest(evicting),
			want: Blocker{Cause: BlockerEvicting, Since: after(1)},
		},
		{
			name: "not blocked any more", pod: webPod(), request: newRequest(evicting, withCondition(blocked, metav1.ConditionFalse, "NotBlocked")),
			want: Blocker{Cause: BlockerEvicting, Since: after(1)},
		},
		{
			name: "budget", pod: webPod(), request: newRequest(evicting, withCondition(blocked, metav1.ConditionTrue, budget)), budgets: budgetsNamed("web"),
			want: Blocker{Cause: BlockerDisruptionBudget, Name: "shop/web", Since: after(2)},
		},
		{
			name: "two budgets", pod: webPod(), request: newRequest(evicting, withCondition(blocked, metav1.ConditionTrue, budget)), budgets: budgetsNamed("web", "all"),
			want: Blocker{Cause: BlockerDisruptionBudget, Name: "shop/all, shop/web", Since: after(2)},
		},
		{
			name: "many budgets", pod: webPod(), request: newRequest(evicting, withCondition(blocked, metav1.ConditionTrue, budget)), budgets: budgetsNamed("e", "d", "c", "b", "a"),
			want: Blocker{Cause: BlockerDisruptionBudget, Name: "shop/a, shop/b, shop/c and 2 more", Since: after(2)},
		},
		{
			name: "budgets unknown", pod: webPod(), request: newRequest(evicting, withCondition(blocked, metav1.ConditionTrue, budget)),
			want: Blocker{Cause: BlockerDisruptionBudget, Since: after(2)},
		},
		{
			name: "budget is gone", pod: webPod(), request: newRequest(evicting, withCondition(blocked, metav1.ConditionTrue, budget)), budgets: budgetsNamed(),
			want: Blocker{Cause: BlockerDisruptionBudget, Since: after(2)},
		},
		{
			name: "refused", pod: webPod(), request: newRequest(evicting, withCondition(blocked, metav1.ConditionTrue, refused)), budgets: budgetsNamed("web"),
			want: Blocker{Cause: BlockerEvictionRefused, Since: after(2)},
		},
		{
			name: "refused with a reason", pod: webPod(), budgets: budgetsNamed("web"), request: newRequest(evicting, withCondition(blocked, metav1.ConditionTrue, refused), func(request *coordinationv1alpha1.EvictionRequest) {
				request.Status.Conditions[len(request.Status.Conditions)-1].Message = "admission webhook \"w\" denied\nthe request"
			}),
			want: Blocker{Cause: BlockerEvictionRefused, Since: after(2), Message: "admission webhook \"w\" denied the request"},
		},
		{
			name: "budget that never allows a disruption", pod: webPod(), request: newRequest(evicting, withCondition(blocked, metav1.ConditionTrue, budget)),
			budgets: func(pod *v1.Pod) []*policyv1.PodDisruptionBudget {
				never := budgetsNamed("web")(pod)
				never[0].Status = policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3, DesiredHealthy: 3}
				return never
			},
			want: Blocker{Cause: BlockerDisruptionBudget, Name: "shop/web", Since: after(2), RecheckAt: after(11).Time,
				Message: "it never allows a disruption: it needs 3 healthy pods, of 3: lower minAvailable or raise maxUnavailable, or add a pod"},
		},
		{
			name: "interceptor", pod: webPod(), request: newRequest(intercepted(interceptorVM, reporting)),
			want: Blocker{Cause: BlockerInterceptor, Name: interceptorVM, Heartbeat: after(8), ETA: after(20), Since: after(1)},
		},
		{
			name: "interceptor that gives up at its ETA", pod: webPod(), request: newRequest(intercepted(coordinationv1alpha1.EvictionInterceptorDeployment, reporting)),
			want: Blocker{Cause: BlockerInterceptor, Name: coordinationv1alpha1.EvictionInterceptorDeployment, Heartbeat: after(8), Since: after(1)},
		},
		{
			name: "another interceptor that gives up at its ETA", pod: webPod(), request: newRequest(intercepted(coordinationv1alpha1.EvictionInterceptorStatefulSet, reporting)),
			want: Blocker{Cause: BlockerInterceptor, Name: coordinationv1alpha1.EvictionInterceptorStatefulSet, Heartbeat: after(8), Since: after(1)},
		},
		{
			name: "interceptor with a message", pod: webPod(), request: newRequest(intercepted(interceptorVM, coordinationv1alpha1.InterceptorStatus{Message: "Copying\n\x1b[2J" + strings.Repeat("o", 600)})),
			want: Blocker{Cause: BlockerInterceptor, Name: interceptorVM, Since: after(1), Message: "Copying  [2J" + strings.Repeat("o", 497) + "..."},
		},
		{
			name: "unresponsive interceptor with a message", pod: webPod(), request: newRequest(intercepted(interceptorVM, coordinationv1alpha1.InterceptorStatus{Message: "Out of space."}), withCondition(unresponsive, metav1.ConditionTrue, "")),
			want: Blocker{Cause: BlockerInterceptorUnresponsive, Name: interceptorVM, Since: after(1), OverdueSince: after(2), Message: "Out of space."},
		},
		{
			name: "message of an interceptor that is not active", pod: webPod(), request: newRequest(evicting, func(request *coordinationv1alpha1.EvictionRequest) { request.Status.Interceptors[0].Message = "Done." }),
			want: Blocker{Cause: BlockerEvicting, Since: after(1)},
		},
		{
			name: "interceptor without a report", pod: webPod(), request: newRequest(intercepted(interceptorVM, coordinationv1alpha1.InterceptorStatus{})),
			want: Blocker{Cause: BlockerInterceptor, Name: interceptorVM, Since: after(1)},
		},
		{
			name: "interceptor that is responsive again", pod: webPod(), request: newRequest(intercepted(interceptorVM, reporting), withCondition(unresponsive, metav1.ConditionFalse, "")),
			want: Blocker{Cause: BlockerInterceptor, Name: interceptorVM, Heartbeat: after(8), ETA: after(20), Since: after(1)},
		},
		{
			name: "unresponsive interceptor", pod: webPod(), request: newRequest(intercepted(interceptorVM, reporting), withCondition(unresponsive, metav1.ConditionTrue, "")),
			want: Blocker{Cause: BlockerInterceptorUnresponsive, Name: interceptorVM, Heartbeat: after(8), ETA: after(20), Since: after(1), OverdueSince: after(2)},
		},
		{
			name: "DaemonSet pod after all interceptors", pod: webPod(ofDaemonSet), request: newRequest(allDone),
			want: Blocker{Cause: BlockerUnhandled, Name: "DaemonSet", Since: after(5)},
		},
		{
			name: "pod after all interceptors", pod: webPod(), request: newRequest(allDone),
			want: Blocker{Cause: BlockerUnhandled, Name: "Default", Since: after(5)},
		},
		{
			name: "terminating without a request", pod: webPod(deletedBy(after(15))), now: after(10),
			want: Blocker{Cause: BlockerTerminating, Since: after(5), ETA: after(15), RecheckAt: noon.Add(15*time.Minute + 30*time.Second)},
		},
		{
			name: "terminating in spite of a budget", pod: webPod(deletedBy(after(15))), now: after(15), budgets: budgetsNamed("web"),
			request: newRequest(evicting, withCondition(blocked, metav1.ConditionTrue, budget)),
			want:    Blocker{Cause: BlockerTerminating, Since: after(5), ETA: after(15), RecheckAt: noon.Add(15*time.Minute + 30*time.Second)},
		},
		{
			name: "terminating after the request", pod: webPod(deletedBy(after(15))), now: after(15), request: newRequest(withCondition(canceled, metav1.ConditionTrue, "")),
			want: Blocker{Cause: BlockerTerminating, Since: after(5), ETA: after(15), RecheckAt: noon.Add(15*time.Minute + 30*time.Second)},
		},
		{
			name: "stuck in that moment", pod: webPod(deletedBy(after(15))), now: &metav1.Time{Time: noon.Add(15*time.Minute + 30*time.Second)},
			want: Blocker{Cause: BlockerStuckTerminating, Since: after(5), OverdueSince: &metav1.Time{Time: noon.Add(15*time.Minute + 30*time.Second)}},
		},
		{
			name: "stuck after an intercepted request", pod: webPod(deletedBy(after(15))), now: after(20), request: newRequest(intercepted(interceptorVM, reporting)),
			want: Blocker{Cause: BlockerStuckTerminating, Since: after(5), OverdueSince: &metav1.Time{Time: noon.Add(15*time.Minute + 30*time.Second)}},
		},
		{
			name: "stuck with finalizers", now: after(20),
			pod: webPod(deletedBy(after(15)), func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/b", "example.com/a"} }),
			want: Blocker{Cause: BlockerStuckTerminating, Since: after(5), OverdueSince: &metav1.Time{Time: noon.Add(15*time.Minute + 30*time.Second)},
				Message: "finalizers: example.com/a, example.com/b"},
		},
		{
			name: "stuck without a grace period", now: after(20),
			pod:  webPod(func(pod *v1.Pod) { pod.DeletionTimestamp = after(15) }),
			want: Blocker{Cause: BlockerStuckTerminating, Since: after(15), OverdueSince: &metav1.Time{Time: noon.Add(15*time.Minute + 30*time.Second)}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.now == nil {
				tc.now = after(10)
			}
			held := tc.want.Cause != ""
			if held {
				tc.want.Pod, tc.want.Node = types.NamespacedName{Namespace: "shop", Name: "web-0"}, "one"
			}
			got, ok := BlockerOf(tc.pod, tc.request, tc.budgets, tc.now.Time)
			if ok != held {
				t.Errorf("held: %v, want %v", ok, held)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("blocker (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestExplainByNode checks for which pods it matters that their node is not Ready.
func TestExplainByNode(t *testing.T) {
	ready := func(status v1.ConditionStatus, taints ...string) *v1.Node {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}
		for _, key := range taints {
			node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: key})
		}
		return node
	}
	deleted := func(graceSeconds int64, finalizers ...string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: after(1), DeletionGracePeriodSeconds: &graceSeconds, Finalizers: finalizers}}
	}
	const wayOut = "node one is not Ready: if the machine is off, give the node the taint node.kubernetes.io/out-of-service, or delete it"
	const outOfService = "node one is not Ready and out of service: the garbage collector of pods removes it"
	long := strings.Repeat("f", maxForeignText)
	for name, test := range map[string]struct {
		blocker Blocker
		pod     *v1.Pod
		node    *v1.Node
		want    string
	}{
		"a pod that does not end":               {Blocker{Cause: BlockerStuckTerminating}, deleted(30), ready(v1.ConditionUnknown), wayOut},
		"with finalizers":                       {Blocker{Cause: BlockerStuckTerminating, Message: "finalizers: f"}, deleted(30, "f"), ready(v1.ConditionUnknown), wayOut + "; finalizers: f"},
		"that only finalizers keep":             {Blocker{Cause: BlockerStuckTerminating, Message: "finalizers: f"}, deleted(0, "f"), ready(v1.ConditionUnknown), "finalizers: f"},
		"that was deleted without grace period": {Blocker{Cause: BlockerStuckTerminating}, deleted(0), ready(v1.ConditionUnknown), wayOut},
		"with finalizers, maybe running":        {Blocker{Cause: BlockerStuckTerminating, Message: "finalizers: f"}, &v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: after(1), Finalizers: []string{"f"}}}, ready(v1.ConditionUnknown), wayOut + "; finalizers: f"},
		"with finalizers, on a Ready node":      {Blocker{Cause: BlockerStuckTerminating, Message: "finalizers: f"}, deleted(30, "f"), ready(v1.ConditionTrue), "finalizers: f"},
		"on a node that is Ready":               {Blocker{Cause: BlockerStuckTerminating}, deleted(30), ready(v1.ConditionTrue), ""},
		"out of service":                        {Blocker{Cause: BlockerStuckTerminating}, deleted(30), ready(v1.ConditionFalse, v1.TaintNodeOutOfService), outOfService},
		"out of service, with finalizers":       {Blocker{Cause: BlockerStuckTerminating, Message: "finalizers: f"}, deleted(30, "f"), ready(v1.ConditionFalse, v1.TaintNodeOutOfService), outOfService + "; finalizers: f"},
		"a pod that ends":                       {Blocker{Cause: BlockerTerminating}, deleted(30), ready(v1.ConditionFalse), ""},
		"a static pod":                          {Blocker{Cause: BlockerInterceptorUnresponsive, Name: "kubelet.k8s.io"}, &v1.Pod{}, ready(v1.ConditionFalse), "node one is not Ready"},
		"a static pod that was being stopped":   {Blocker{Cause: BlockerInterceptorUnresponsive, Name: "kubelet.k8s.io", Message: "Stopping."}, &v1.Pod{}, ready(v1.ConditionFalse), "node one is not Ready; Stopping."},
		"a static pod that has its turn":        {Blocker{Cause: BlockerInterceptor, Name: "kubelet.k8s.io"}, &v1.Pod{}, ready(v1.ConditionFalse), "node one is not Ready"},
		"the turn of another interceptor":       {Blocker{Cause: BlockerInterceptor, Name: "a.example.com"}, &v1.Pod{}, ready(v1.ConditionFalse), ""},
		"a static pod on a Ready node":          {Blocker{Cause: BlockerInterceptor, Name: "kubelet.k8s.io"}, &v1.Pod{}, ready(v1.ConditionTrue), ""},
		"a pod of another interceptor":          {Blocker{Cause: BlockerInterceptorUnresponsive, Name: "a.example.com"}, &v1.Pod{}, ready(v1.ConditionFalse), ""},
		"a long message":                        {Blocker{Cause: BlockerStuckTerminating, Message: long}, deleted(30, "f"), ready(v1.ConditionFalse), (wayOut + "; " + long)[:maxForeignText-3] + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			if test.blocker.ExplainByNode(test.pod, test.node); test.blocker.Message != test.want {
				t.Errorf("got %q, want %q", test.blocker.Message, test.want)
			}
		})
	}
}

// A group says of the escalations of its pods what is held up, whatever their order, and in bounds.
func TestEscalationOfGroup(t *testing.T) {
	long := strings.Repeat("n", 2000)
	blockers := []Blocker{
		{Cause: BlockerEvicting, Pod: podNamed("shop", "a"), Escalation: "m has come to it" + long},
		{Cause: BlockerEvicting, Pod: podNamed("shop", "b")},
		{Cause: BlockerEvicting, Pod: podNamed("shop", "c"), Escalation: "other"},
	}
	want := "3 pods are being evicted (m has come to it" + long[:maxEscalationText-len("m has come to it...")] + "...)"
	for range 2 {
		if got := GroupBlockers(blockers)[0].message(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		slices.Reverse(blockers)
	}
	blocked := Blocker{Cause: BlockerDisruptionBudget, Name: "shop/web", Message: "it allows none: lower this, or raise that", Pod: podNamed("shop", "a"), Escalation: "m has come to it"}
	if got, want := GroupBlockers([]Blocker{blocked})[0].message(), "1 pod waits for PodDisruptionBudget shop/web (it allows none: lower this, or raise that; m has come to it)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A terminating pod becomes stuck at the time that its blocker names, and not before.
func TestRecheckAt(t *testing.T) {
	pod := webPod(deletedBy(after(15)))
	first, _ := BlockerOf(pod, nil, nil, after(10).Time)
	before, _ := BlockerOf(pod, nil, nil, first.RecheckAt.Add(-time.Nanosecond))
	then, _ := BlockerOf(pod, nil, nil, first.RecheckAt)
	if diff := cmp.Diff(first, before); diff != "" {
		t.Errorf("a moment before (-first, +then):\n%s", diff)
	}
	if then.Cause != BlockerStuckTerminating || !then.RecheckAt.IsZero() {
		t.Errorf("got %s, to be checked again at %v", then.Cause, then.RecheckAt)
	}
}

func TestBlocked(t *testing.T) {
	causes := BlockerCauses()
	if i := slices.IndexFunc(causes, func(c BlockerCause) bool { return !c.Blocked() }); i < 0 || !slices.IsSorted(causes[:i]) || !slices.IsSorted(causes[i:]) {
		t.Errorf("not in the order of groups: %v", causes)
	}
	got := map[BlockerCause]bool{}
	for _, cause := range causes {
		got[cause] = cause.Blocked()
	}
	want := map[BlockerCause]bool{
		BlockerCordonFailed: true, BlockerNodeStatusFailed: true, BlockerRequestFailed: true,
		BlockerDisruptionBudget: true, BlockerEvictionRefused: true, BlockerRequestRefused: true, BlockerInterceptorUnresponsive: true, BlockerComesBack: true, BlockerKeptByMaintenance: true, BlockerStuckTerminating: true, BlockerUnhandled: true,
		BlockerInterceptor: false, BlockerTerminating: false, BlockerEvicting: false, BlockerCompletion: false, BlockerVolumesAttached: false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func podNamed(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// TestForeignTimes has times of interceptors and kubelets that no client could read in a status.
func TestForeignTimes(t *testing.T) {
	at := func(year int, month time.Month, zone int) *metav1.Time {
		return &metav1.Time{Time: time.Date(year, month, 1, 0, 0, 0, 0, time.FixedZone("", zone*60*60))}
	}
	early, late, last := at(0, time.January, 14), at(10000, time.January, 0), at(10000, time.January, 12)
	groups := GroupBlockers([]Blocker{
		{Cause: BlockerInterceptor, Name: "a.example.com", Pod: podNamed("shop", "a"), Node: "n1", Since: early, Heartbeat: late, ETA: late, OverdueSince: late},
		{Cause: BlockerInterceptor, Name: "a.example.com", Pod: podNamed("shop", "b"), Node: "n1", Since: after(1), ETA: last},
	})
	blockers, _ := ListedBlockers(groups)
	for i := range blockers {
		written, err := json.Marshal(&blockers[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(written, &coordinationv1alpha1.DrainBlocker{}); err != nil {
			t.Errorf("reading %s: %v", written, err)
		}
	}
	if got := groups[0]; len(groups) != 1 || !got.Since.Equal(after(1)) || !got.ETA.Equal(last) || got.Heartbeat != nil || got.OverdueSince != nil {
		t.Errorf("groups %+v", groups)
	}
}

func TestGroupBlockers(t *testing.T) {
	blockers := []Blocker{
		{Cause: BlockerTerminating, Pod: podNamed("shop", "a"), Node: "n1", Since: after(3), ETA: after(4)},
		{Cause: BlockerInterceptor, Name: "a.example.com", Pod: podNamed("shop", "b"), Node: "n1", Heartbeat: after(3), ETA: after(9), Since: after(1)},
		{Cause: BlockerInterceptor, Name: "a.example.com", Pod: podNamed("shop", "d"), Node: "n2", Message: "second", Heartbeat: after(2), ETA: after(11), Since: after(2)},
		{Cause: BlockerInterceptor, Name: "a.example.com", Pod: podNamed("bank", "z"), Node: "n1", Heartbeat: after(4), ETA: after(10), Since: after(3)},
		{Cause: BlockerInterceptor, Name: "a.example.com", Pod: podNamed("shop", "c"), Node: "n1", Message: "first"},
		{Cause: BlockerInterceptor, Name: "a.example.com", Pod: podNamed("shop", "e"), Node: "n1", Message: "third"},
		{Cause: BlockerInterceptor, Name: "a.example.com", Pod: podNamed("shop", "f"), Node: "n1"},
		FailedCordon("n2", "no\n\u009bway", after(5).Time),
		FailedCordon("n1", "no", after(6).Time),
		{Cause: BlockerUnhandled, Name: "Static", Pod: podNamed("kube-system", "proxy")},
		{Cause: BlockerDisruptionBudget, Name: "shop/web", Pod: podNamed("shop", "f")},
		{Cause: BlockerDisruptionBudget, Name: "shop/db", Pod: podNamed("shop", "g")},
		{Cause: BlockerStuckTerminating, Pod: podNamed("shop", "h"), Since: after(1), OverdueSince: after(8)},
		{Cause: BlockerStuckTerminating, Pod: podNamed("shop", "i"), Since: after(2), OverdueSince: after(7)},
		{Cause: BlockerStuckTerminating, Pod: podNamed("shop", "j"), Since: after(3), OverdueSince: after(9)},
	}
	want := []BlockerGroup{
		{
			Cause: BlockerCordonFailed, Nodes: 2, First: []types.NamespacedName{podNamed("", "n1"), podNamed("", "n2")},
			Message: "no", MessageOf: podNamed("", "n1"), More: []GroupMessage{{"no  way", podNamed("", "n2")}}, Mixed: true, Since: after(5),
		},
		{Cause: BlockerDisruptionBudget, Name: "shop/db", Pods: 1, Nodes: 1, First: []types.NamespacedName{podNamed("shop", "g")}},
		{Cause: BlockerDisruptionBudget, Name: "shop/web", Pods: 1, Nodes: 1, First: []types.NamespacedName{podNamed("shop", "f")}},
		{
			Cause: BlockerStuckTerminating, Pods: 3, Nodes: 1, First: []types.NamespacedName{podNamed("shop", "h"), podNamed("shop", "i"), podNamed("shop", "j")},
			Since: after(1), OverdueSince: after(7),
		},
		{Cause: BlockerUnhandled, Name: "Static", Pods: 1, Nodes: 1, First: []types.NamespacedName{podNamed("kube-system", "proxy")}},
		{
			Cause: BlockerInterceptor, Name: "a.example.com", Pods: 6, Nodes: 2,
			First:   []types.NamespacedName{podNamed("bank", "z"), podNamed("shop", "b"), podNamed("shop", "c"), podNamed("shop", "d"), podNamed("shop", "e")},
			Message: "first", MessageOf: podNamed("shop", "c"), Mixed: true,
			More:      []GroupMessage{{"second", podNamed("shop", "d")}, {"third", podNamed("shop", "e")}},
			Heartbeat: after(2), ETA: after(11), Since: after(1),
		},
		{Cause: BlockerTerminating, Pods: 1, Nodes: 1, First: []types.NamespacedName{podNamed("shop", "a")}, Since: after(3), ETA: after(4)},
	}
	if diff := cmp.Diff(want, GroupBlockers(blockers)); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff([]BlockerGroup(nil), GroupBlockers(nil)); diff != "" {
		t.Errorf("without blockers (-want, +got):\n%s", diff)
	}
}

// Whatever the order of the blockers, and however they are spread over nodes, the groups
// are the same, and those that went into them stay as they were.
func TestGroupsDoNotDependOnOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 21))
	causes := BlockerCauses()
	maybe := func() *metav1.Time {
		if random.IntN(4) == 0 {
			return nil
		}
		return after(random.IntN(100))
	}
	for range 200 {
		var blockers []Blocker
		for i := range random.IntN(60) {
			blockers = append(blockers, Blocker{
				Cause: causes[random.IntN(len(causes))], Name: fmt.Sprintf("name-%d", random.IntN(3)),
				Pod:       podNamed(fmt.Sprintf("namespace-%d", random.IntN(3)), fmt.Sprintf("pod-%d", i)),
				Node:      fmt.Sprintf("node-%d", random.IntN(4)),
				Message:   []string{"", fmt.Sprintf("message %d", i), "of several", "of others"}[random.IntN(4)],
				Heartbeat: maybe(), ETA: maybe(), Since: maybe(), OverdueSince: maybe(),
			})
		}
		want := GroupBlockers(blockers)
		random.Shuffle(len(blockers), func(i, j int) { blockers[i], blockers[j] = blockers[j], blockers[i] })
		byNode := map[string][]Blocker{}
		for _, blocker := range blockers {
			byNode[blocker.Node] = append(byNode[blocker.Node], blocker)
		}
		var nodes [][]BlockerGroup
		for _, held := range byNode {
			nodes = append(nodes, GroupBlockers(held))
		}
		for range 2 {
			if diff := cmp.Diff(want, MergeGroups(nodes...)); diff != "" {
				t.Fatalf("(-all at once, +merged):\n%s", diff)
			}
		}
		if diff := cmp.Diff(want, GroupBlockers(blockers)); diff != "" {
			t.Fatalf("(-in order, +shuffled):\n%s", diff)
		}
	}
}

func TestBlockerMessage(t *testing.T) {
	shop := func(names ...string) []types.NamespacedName {
		var pods []types.NamespacedName
		for _, name := range names {
			pods = append(pods, podNamed("shop", name))
		}
		return pods
	}
	for _, tc := range []struct {
		name   string
		groups []BlockerGroup
		want   string
	}{
		{"nothing", nil, ""},
		{
			"two groups",
			[]BlockerGroup{
				{Cause: BlockerDisruptionBudget, Name: "shop/web", Pods: 12, First: shop("web-1", "web-2", "web-3"), Since: after(1)},
				{Cause: BlockerInterceptor, Name: interceptorVM, Pods: 1, First: shop("vm-1"), Heartbeat: after(60), ETA: after(80), Since: after(1)},
			},
			"12 pods wait for PodDisruptionBudget shop/web: shop/web-1, shop/web-2, shop/web-3 and 9 more. " +
				"1 pod waits for interceptor vm.example.com (last heartbeat 2026-11-21T13:00Z, expected to finish 2026-11-21T13:20:00Z): shop/vm-1.",
		},
		{
			"one budget",
			[]BlockerGroup{{Cause: BlockerDisruptionBudget, Name: "shop/web", Pods: 1, First: shop("web-1")}},
			"1 pod waits for PodDisruptionBudget shop/web: shop/web-1.",
		},
		{
			"what the API server refuses",
			[]BlockerGroup{
				{Cause: BlockerCordonFailed, Nodes: 4, First: []types.NamespacedName{podNamed("", "n1"), podNamed("", "n2"), podNamed("", "n3"), podNamed("", "n4")}, Message: "a webhook says no", Since: after(1)},
				{Cause: BlockerNodeStatusFailed, Nodes: 2, First: []types.NamespacedName{podNamed("", "n5"), podNamed("", "n6")}, Message: "no right", Since: after(1)},
				{Cause: BlockerRequestFailed, Name: "shop", Pods: 1, Nodes: 1, First: shop("web-1"), Message: "exceeded quota", Since: after(2)},
			},
			"4 nodes cannot be cordoned (since 2026-11-21T12:01:00Z, a webhook says no): n1, n2, n3 and 1 more. " +
				"2 nodes have a status that cannot be written (since 2026-11-21T12:01:00Z, no right): n5, n6. " +
				"1 pod in namespace shop cannot get an EvictionRequest (since 2026-11-21T12:02:00Z, exceeded quota): shop/web-1.",
		},
		{
			"several budgets on one pod",
			[]BlockerGroup{{Cause: BlockerDisruptionBudget, Name: "shop/all, shop/web", Pods: 2, First: shop("web-1", "web-2")}},
			"2 pods wait because several PodDisruptionBudgets apply (shop/all, shop/web): shop/web-1, shop/web-2.",
		},
		{
			"unknown budget",
			[]BlockerGroup{{Cause: BlockerDisruptionBudget, Pods: 1, First: shop("web-1")}},
			"1 pod waits for a PodDisruptionBudget: shop/web-1.",
		},
		{
			"refused",
			[]BlockerGroup{{Cause: BlockerEvictionRefused, Pods: 2, First: shop("web-1", "web-2")}},
			"2 pods wait because the API server refuses to evict: shop/web-1, shop/web-2.",
		},
		{
			"interceptor without a report",
			[]BlockerGroup{{Cause: BlockerInterceptor, Name: interceptorVM, Pods: 2, First: shop("vm-1", "vm-2"), Since: after(1)}},
			"2 pods wait for interceptor vm.example.com (active since 2026-11-21T12:01:00Z, no heartbeat yet): shop/vm-1, shop/vm-2.",
		},
		{
			"interceptor with a message",
			[]BlockerGroup{{Cause: BlockerInterceptor, Name: interceptorVM, Pods: 2, First: shop("vm-1", "vm-2"), Heartbeat: after(60), ETA: after(80), Message: "Copied 3 of 7 volumes."}},
			"2 pods wait for interceptor vm.example.com (last heartbeat 2026-11-21T13:00Z, expected to finish 2026-11-21T13:20:00Z, Copied 3 of 7 volumes.): shop/vm-1, shop/vm-2.",
		},
		{
			"unresponsive",
			[]BlockerGroup{{Cause: BlockerInterceptorUnresponsive, Name: interceptorVM, Pods: 1, First: shop("vm-1"), Heartbeat: after(2), Since: after(1)}},
			"1 pod waits for interceptor vm.example.com, which does not report (last heartbeat 2026-11-21T12:02:00Z): shop/vm-1.",
		},
		{
			"DaemonSet controller without a report",
			[]BlockerGroup{{Cause: BlockerInterceptorUnresponsive, Name: coordinationv1alpha1.EvictionInterceptorDaemonSet, Pods: 2, First: shop("a-1", "a-2"), Since: after(1)}},
			"2 pods wait for interceptor daemonset.apps.k8s.io, which has never reported (active since 2026-11-21T12:01:00Z): shop/a-1, shop/a-2.",
		},
		{
			"kubelet without a report",
			[]BlockerGroup{{Cause: BlockerInterceptorUnresponsive, Name: coordinationv1alpha1.EvictionInterceptorKubelet, Pods: 1, First: shop("etcd-one"), Since: after(1)}},
			"1 pod waits for interceptor kubelet.k8s.io, which has never reported (active since 2026-11-21T12:01:00Z): shop/etcd-one.",
		},
		{
			"kubelet that has reported",
			[]BlockerGroup{{Cause: BlockerInterceptorUnresponsive, Name: coordinationv1alpha1.EvictionInterceptorKubelet, Pods: 1, First: shop("etcd-one"), Heartbeat: after(2), Since: after(1)}},
			"1 pod waits for interceptor kubelet.k8s.io, which does not report (last heartbeat 2026-11-21T12:02:00Z): shop/etcd-one.",
		},
		{
			"terminating",
			[]BlockerGroup{
				{Cause: BlockerStuckTerminating, Pods: 1, First: shop("web-1"), Since: after(1)},
				{Cause: BlockerTerminating, Pods: 2, First: shop("web-2", "web-3"), Since: after(3), ETA: after(5)},
			},
			"1 pod is still terminating after the grace period (since 2026-11-21T12:01:00Z): shop/web-1. " +
				"2 pods are terminating (since 2026-11-21T12:03:00Z, grace period ends 2026-11-21T12:05:00Z): shop/web-2, shop/web-3.",
		},
		{
			"unhandled",
			[]BlockerGroup{
				{Cause: BlockerUnhandled, Name: "DaemonSet", Pods: 2, First: shop("a-1", "a-2"), Since: after(1)},
				{Cause: BlockerUnhandled, Name: "Default", Pods: 1, First: shop("b-1"), Since: after(1)},
				{Cause: BlockerUnhandled, Name: "Static", Pods: 1, First: shop("c-1"), Since: after(1)},
			},
			"2 DaemonSet pods are still running after all interceptors have acted: shop/a-1, shop/a-2. " +
				"1 pod is still running after all interceptors have acted: shop/b-1. " +
				"1 static pod is still running after all interceptors have acted: shop/c-1.",
		},
		{
			"evicting",
			[]BlockerGroup{{Cause: BlockerEvicting, Pods: 4, First: shop("web-1", "web-2", "web-3"), Since: after(1)}},
			"4 pods are being evicted: shop/web-1, shop/web-2, shop/web-3 and 1 more.",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, BlockerMessage(tc.groups)); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

// The message fits a condition, however many blockers there are.
func TestBlockerMessageIsBounded(t *testing.T) {
	long := func(i int) string { return fmt.Sprintf("%s-%04d", strings.Repeat("n", 248), i) }
	var blockers []Blocker
	for i := range 200 {
		budgets := func(pod *v1.Pod) []*policyv1.PodDisruptionBudget {
			return budgetsNamed(long(i), long(i+1), long(i+2), long(i+3))(pod)
		}
		pod := webPod(func(pod *v1.Pod) { pod.Namespace = strings.Repeat("s", 63) })
		request := newRequest(evicting, withCondition(coordinationv1alpha1.EvictionRequestConditionBlocked, metav1.ConditionTrue, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget))
		for j := range 5 {
			pod.Name = long(j)
			blocker, _ := BlockerOf(pod, request, budgets, noon)
			blockers = append(blockers, blocker)
		}
	}
	message := BlockerMessage(GroupBlockers(blockers))
	if len(message) > 24000 {
		t.Errorf("the message has %d characters", len(message))
	}
	if want := " 950 more pods for 190 other reasons."; !strings.HasSuffix(message, want) {
		t.Errorf("the message ends %q, want %q", message[max(0, len(message)-60):], want)
	}
}

// A message names the pod that has it, unless all have the same: it may be about one Deployment of several.
func TestMessagesOfPods(t *testing.T) {
	held := func(cause BlockerCause, messages ...string) []Blocker {
		var blockers []Blocker
		for i, message := range messages {
			blocker := Blocker{Cause: cause, Name: "deployment.apps.k8s.io", Node: fmt.Sprintf("n%d", i), Message: message}
			if !cause.OfNode() {
				blocker.Pod = podNamed("shop", fmt.Sprintf("p%d", i))
			}
			blockers = append(blockers, blocker)
		}
		return blockers
	}
	for _, tc := range []struct {
		name     string
		blockers []Blocker
		want     string
	}{
		{"one", held(BlockerInterceptor, "Surging 0/1."), "1 pod waits for interceptor deployment.apps.k8s.io (no heartbeat yet, Surging 0/1.)"},
		{"the same", held(BlockerInterceptor, "Surging 0/2.", "Surging 0/2."), "2 pods wait for interceptor deployment.apps.k8s.io (no heartbeat yet, Surging 0/2.)"},
		{"three Deployments", held(BlockerInterceptor, "Surging 0/1.", "Failed.", "Surging 0/1.", "Surging 1/2."),
			"4 pods wait for interceptor deployment.apps.k8s.io (no heartbeat yet, shop/p0: Surging 0/1.; shop/p1: Failed.; shop/p3: Surging 1/2.)"},
		{"more of them", held(BlockerInterceptor, "a", "b", "c", "d"), "4 pods wait for interceptor deployment.apps.k8s.io (no heartbeat yet, shop/p0: a; shop/p1: b; shop/p2: c; and others)"},
		{"more of them, and again", held(BlockerInterceptor, "d", "c", "b", "a", "d", "a"), "6 pods wait for interceptor deployment.apps.k8s.io (no heartbeat yet, shop/p0: d; shop/p1: c; shop/p2: b; and others)"},
		{"one says nothing", held(BlockerInterceptor, "", "Failed."), "2 pods wait for interceptor deployment.apps.k8s.io (no heartbeat yet, shop/p1: Failed.)"},
		{"nobody says anything", held(BlockerInterceptor, "", ""), "2 pods wait for interceptor deployment.apps.k8s.io (no heartbeat yet)"},
		{"pods that do not end", held(BlockerStuckTerminating, "finalizers: f", "node n1 is not Ready"), "2 pods are still terminating after the grace period (shop/p0: finalizers: f; shop/p1: node n1 is not Ready)"},
		{"answers of the API server", held(BlockerCordonFailed, `nodes "n0" is forbidden`, `nodes "n1" is forbidden`), `2 nodes cannot be cordoned (nodes "n0" is forbidden)`},
	} {
		groups := GroupBlockers(tc.blockers)
		if got := groups[0].message(); len(groups) != 1 || got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	long := GroupBlockers(held(BlockerInterceptor, strings.Repeat("a", 512), strings.Repeat("b", 512), strings.Repeat("c", 512), strings.Repeat("d", 512)))
	if got := long[0].messages(); len(got) > maxForeignText || !strings.Contains(got, "shop/p2: ccc") || !strings.HasSuffix(got, "; and others") {
		t.Errorf("%d characters: %s", len(got), got)
	}
}

// A maintenance of the largest clusters is summed up every second.
func BenchmarkMergeGroups(b *testing.B) {
	nodes := make([][]BlockerGroup, 5000)
	for node := range nodes {
		var blockers []Blocker
		for i := range 20 {
			blockers = append(blockers, Blocker{Cause: BlockerCauses()[i%5], Name: "shop/web", Pod: podNamed("shop", fmt.Sprintf("web-%d-%d", node, i)), Since: after(node)})
		}
		nodes[node] = GroupBlockers(blockers)
	}
	b.ReportAllocs()
	for b.Loop() {
		MergeGroups(nodes...)
	}
}

func TestAttachedVolumes(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 25, 1, 0, 0, 0, time.UTC))
	blocker := AttachedVolumes("n", []string{"a", "b", "c", "d", "e"}, since, since.Add(time.Minute))
	const want = "1 node still has volumes attached (since 2026-11-25T01:00:00Z, given up 2026-11-25T01:01:00Z, n: a, b, c and 2 more): n."
	if got := BlockerMessage(GroupBlockers([]Blocker{blocker})); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
