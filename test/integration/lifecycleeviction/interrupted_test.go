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

package lifecycleeviction

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
)

// testInterrupted interrupts evictions: nobody runs meanwhile, or only the engine, with the gate off. Then the engine runs
// before the door, which must not have it evict what nobody wants any more.
func testInterrupted(c *cluster, respondersAct *bool) {
	acted := responders(map[string]int32{early: 20000, late: 5000})
	deletedPod, completedPod, unseen, both := c.createPod("deleted", acted), c.createPod("completed", acted), c.createPod("unseen", acted), c.createPod("both", acted)
	labeled := func(pod *v1.Pod) { pod.Labels = map[string]string{"blocked": "true"} }
	unwanted, blocked := c.createPod("unwanted", labeled), c.createPod("blocked", labeled)
	for _, pod := range []*v1.Pod{unwanted, blocked} { // Budgets protect no others.
		running := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
		if _, err := c.Client.CoreV1().Pods(c.Namespace).Patch(c.T.Context(), pod.Name, types.StrategicMergePatchType, running, metav1.PatchOptions{}, "status"); err != nil {
			c.T.Fatal(err)
		}
	}
	budgets := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace)
	// Nobody counts its pods, so it allows nothing.
	if _, err := budgets.Create(c.T.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &intstr.IntOrString{}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"blocked": "true"}}},
	}, metav1.CreateOptions{}); err != nil {
		c.T.Fatal(err)
	}

	shared, stopEngine := c.startEngine(true)
	stopDoor := c.startDoor(shared)
	waits := early + "=Active " + late + "=Inactive " + imperative + "=Inactive"
	c.ApplyRequesters(both, "other.example.com", "other.example.com")
	for _, pod := range []*v1.Pod{deletedPod, completedPod, unseen, both} {
		c.ask(pod.Name, drainer, pod)
		c.expectEviction("pod-1-"+pod.Name, waits, goesOn)
		c.expectRequest(pod.Name, goesOn)
	}
	for _, pod := range []*v1.Pod{unwanted, blocked} {
		c.ask(pod.Name, drainer, pod)
		c.expectEviction("pod-1-"+pod.Name, imperative+"=Active", goesOn)
		c.expectRequest(pod.Name, goesOn)
		c.expectState(pod, evictionrequesttools.StateBlocked)
	}
	stopDoor()
	stopEngine()

	stopEngine = func() {}
	if respondersAct != nil {
		_, stopEngine = c.startEngine(*respondersAct)
	}
	requests, evictions := c.Client.LifecycleV1alpha1().EvictionRequests(c.Namespace), c.Client.LifecycleV1alpha1().Evictions(c.Namespace)
	for _, name := range []string{deletedPod.Name, both.Name} {
		if err := requests.Delete(c.T.Context(), name, metav1.DeleteOptions{}); err != nil {
			c.T.Fatal(err)
		}
	}
	// What the garbage collector would do.
	for _, name := range []string{"pod-1-deleted", "pod-1-unseen"} {
		if err := evictions.Delete(c.T.Context(), name, metav1.DeleteOptions{}); err != nil {
			c.T.Fatal(err)
		}
	}
	c.report("pod-1-completed", early, completed)
	c.setIntent("unwanted", lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	time.Sleep(time.Second)
	stopEngine()
	if err := budgets.Delete(c.T.Context(), "none", metav1.DeleteOptions{}); err != nil {
		c.T.Fatal(err)
	}

	// The engine does not know yet who has withdrawn.
	shared, _ = c.startEngine(true)
	time.Sleep(time.Second)
	for _, pod := range []*v1.Pod{deletedPod, completedPod, unseen, both, unwanted, blocked} {
		c.expectStays(pod)
	}
	c.startDoor(shared)
	c.expectGone(blocked)
	c.expectRequest("blocked", deleted)
	c.expectEviction("pod-1-unwanted", imperative+"=Canceled", canceled)
	c.expectRequest("unwanted", canceled)
	c.expectState(unwanted, evictionrequesttools.StateCanceled)
	c.expectState(deletedPod, evictionrequesttools.StateCanceled)
	c.expectEviction("pod-1-completed", early+"=Completed "+late+"=Active "+imperative+"=Inactive", goesOn)
	c.expectEviction("pod-1-unseen", waits, goesOn)
	eviction := c.expectEviction("pod-1-both", waits, goesOn)
	if meta.IsStatusConditionTrue(eviction.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionFailed)) {
		c.T.Errorf("conditions %v", eviction.Status.Conditions)
	}
	list, err := evictions.List(c.T.Context(), metav1.ListOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	for _, eviction := range list.Items {
		if strings.HasSuffix(eviction.Name, "-deleted") {
			c.T.Errorf("nobody wants the eviction of the pod of %s: %s, %s", eviction.Name, states(&eviction), describe(eviction.Status.Conditions))
		}
	}
	for _, pod := range []*v1.Pod{deletedPod, completedPod, unseen, both, unwanted} {
		c.expectStays(pod)
	}
}

// expectState waits until the request of the other group has a state.
func (c *cluster) expectState(pod *v1.Pod, want evictionrequesttools.State) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("the request for pod %s to be %s", pod.Name, want), func(ctx context.Context) (bool, string) {
		request, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return evictionrequesttools.StateOf(request) == want, fmt.Sprint(request.Status)
	})
}
