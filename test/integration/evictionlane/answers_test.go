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

package evictionlane

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// evictionCase is an eviction of the pod "pod".
type evictionCase struct {
	name string
	pod  func(*v1.Pod)
	// phase is Running by default, and the pod is ready unless unready is set.
	phase   v1.PodPhase
	unready bool
	// terminating pods wait for a finalizer.
	terminating bool
	budgets     []*policyv1.PodDisruptionBudget
	options     func(pod *v1.Pod) *metav1.DeleteOptions
	query       string
	// evicts is the name of the pod in the eviction, if it is another one.
	evicts string
	// path is the name of the pod in the URL, if it is another one.
	path string
	want int32
}

func budget(options ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := newBudget("budget", "web")
	b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.ExpectedPods = 3, 2, 3
	for _, option := range options {
		option(b)
	}
	return b
}

func allowing(disruptions int32) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.DisruptionsAllowed = disruptions
		b.Status.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue, Reason: policyv1.SufficientPodsReason,
			LastTransitionTime: metav1.Now(),
		}}
	}
}

func refusing(reason, message string) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message,
			LastTransitionTime: metav1.Now(),
		}}
	}
}

func healthy(current, desired int32) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.CurrentHealthy, b.Status.DesiredHealthy = current, desired
	}
}

func disrupted(pods int) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.DisruptedPods = map[string]metav1.Time{}
		for pod := range pods {
			b.Status.DisruptedPods[fmt.Sprintf("other-%d", pod)] = metav1.Now()
		}
	}
}

func policy(policy policyv1.UnhealthyPodEvictionPolicyType) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &policy }
}

func options(options metav1.DeleteOptions) func(*v1.Pod) *metav1.DeleteOptions {
	return func(*v1.Pod) *metav1.DeleteOptions { return &options }
}

func preconditions(preconditions func(pod *v1.Pod) *metav1.Preconditions) func(*v1.Pod) *metav1.DeleteOptions {
	return func(pod *v1.Pod) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{Preconditions: preconditions(pod)}
	}
}

func ofUID(pod *v1.Pod) *metav1.Preconditions { return &metav1.Preconditions{UID: &pod.UID} }

func ofOtherUID(*v1.Pod) *metav1.Preconditions {
	return &metav1.Preconditions{UID: ptr.To(types.UID("another"))}
}

func ofVersion(pod *v1.Pod) *metav1.Preconditions {
	return &metav1.Preconditions{ResourceVersion: &pod.ResourceVersion}
}

func ofOldVersion(*v1.Pod) *metav1.Preconditions {
	return &metav1.Preconditions{ResourceVersion: ptr.To("1")}
}

var dryRun = metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}

func evictionCases() []evictionCase {
	budgets := func(options ...func(*policyv1.PodDisruptionBudget)) []*policyv1.PodDisruptionBudget {
		return []*policyv1.PodDisruptionBudget{budget(options...)}
	}
	foreign := newBudget("foreign", "db")
	second := budget(allowing(1))
	second.Name = "second"
	everything := budget(allowing(1))
	everything.Spec.Selector = &metav1.LabelSelector{}
	nothing := budget()
	nothing.Spec.Selector = nil
	// The deletion is a change of the budget, which the disruption controller has to observe.
	ending := budget(allowing(2))
	ending.Finalizers = []string{"example.com/held"}
	ending.DeletionTimestamp = ptr.To(metav1.Now())
	observed := ending.DeepCopy()
	observed.Status.ObservedGeneration = 2
	return []evictionCase{
		{name: "no budget", want: 201},
		{name: "budget of other pods", budgets: []*policyv1.PodDisruptionBudget{foreign}, want: 201},
		{name: "budget without a selector", budgets: []*policyv1.PodDisruptionBudget{nothing}, want: 201},
		{name: "budget of all pods", budgets: []*policyv1.PodDisruptionBudget{everything}, want: 201},
		{name: "two budgets", budgets: append(budgets(allowing(1)), second), want: 500},
		{name: "a budget among others", budgets: append(budgets(allowing(1)), foreign), want: 201},
		{name: "terminating budget", budgets: []*policyv1.PodDisruptionBudget{ending}, want: 429},
		{name: "terminating budget that was observed", budgets: []*policyv1.PodDisruptionBudget{observed}, want: 201},

		{name: "disruptions left", budgets: budgets(allowing(2)), want: 201},
		{name: "last disruption", budgets: budgets(allowing(1)), want: 201},
		{name: "last disruption, without conditions", budgets: budgets(func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 1 }), want: 201},
		{name: "the pod was disrupted before", budgets: budgets(allowing(2), func(b *policyv1.PodDisruptionBudget) {
			b.Status.DisruptedPods = map[string]metav1.Time{"pod": metav1.Unix(1, 0)}
		}), want: 201},
		{name: "not observed", budgets: budgets(allowing(2), func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration = 0 }), want: 429},
		{name: "negative", budgets: budgets(func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = -1 }), want: 403},
		{name: "as many disrupted pods as it may have", budgets: budgets(allowing(2), disrupted(2000)), want: 201},
		{name: "too many disrupted pods", budgets: budgets(allowing(2), disrupted(2001)), want: 403},
		{name: "failed sync", budgets: budgets(refusing(policyv1.SyncFailedReason, "no scale")), want: 429},
		{name: "failed sync, too few pods", budgets: budgets(refusing(policyv1.SyncFailedReason, "no scale"), healthy(1, 2)), want: 429},
		{name: "too few pods", budgets: budgets(healthy(2, 2)), want: 429},
		{name: "another reason", budgets: budgets(refusing("Paused", "for a while")), want: 429},
		{name: "no reason", budgets: budgets(), want: 429},

		{name: "unready, always", unready: true, budgets: budgets(policy(policyv1.AlwaysAllow), healthy(1, 2)), want: 201},
		{name: "unready, healthy budget", unready: true, budgets: budgets(policy(policyv1.IfHealthyBudget), healthy(2, 2)), want: 201},
		{name: "unready, default, healthy budget", unready: true, budgets: budgets(healthy(2, 2)), want: 201},
		{name: "unready, unhealthy budget", unready: true, budgets: budgets(policy(policyv1.IfHealthyBudget), healthy(1, 2)), want: 429},
		{name: "unready, no pods desired", unready: true, budgets: budgets(healthy(0, 0)), want: 429},
		{name: "unready, unhealthy budget that allows it", unready: true, budgets: budgets(allowing(1), healthy(1, 2)), want: 201},
		{name: "unready, always, version", unready: true, budgets: budgets(policy(policyv1.AlwaysAllow)), options: preconditions(ofVersion), want: 201},
		// The version is replaced by that of the pod that was found to be unready.
		{name: "unready, always, old version", unready: true, budgets: budgets(policy(policyv1.AlwaysAllow)), options: preconditions(ofOldVersion), want: 201},

		{name: "pending", phase: v1.PodPending, budgets: budgets(), want: 201},
		{name: "pending, old version", phase: v1.PodPending, budgets: budgets(), options: preconditions(ofOldVersion), want: 409},
		{name: "succeeded", phase: v1.PodSucceeded, budgets: budgets(), want: 201},
		{name: "failed", phase: v1.PodFailed, budgets: budgets(), want: 201},
		{name: "terminating", terminating: true, budgets: budgets(), want: 201},

		{name: "UID", budgets: budgets(allowing(1)), options: preconditions(ofUID), want: 201},
		{name: "another UID", budgets: budgets(allowing(1)), options: preconditions(ofOtherUID), want: 409},
		{name: "version", budgets: budgets(allowing(1)), options: preconditions(ofVersion), want: 201},
		{name: "old version", budgets: budgets(allowing(1)), options: preconditions(ofOldVersion), want: 409},
		{name: "another UID, refused", budgets: budgets(), options: preconditions(ofOtherUID), want: 429},

		{name: "dry run", budgets: budgets(allowing(1)), options: options(dryRun), want: 201},
		{name: "dry run, refused", budgets: budgets(), options: options(dryRun), want: 429},
		{name: "dry run without a budget", options: options(dryRun), want: 201},
		{name: "dry run of the request", budgets: budgets(allowing(1)), query: "All", want: 201},
		{name: "dry run of both", budgets: budgets(allowing(1)), options: options(dryRun), query: "All", want: 201},
		{name: "unknown dry run", budgets: budgets(allowing(1)), options: options(metav1.DeleteOptions{DryRun: []string{"Some"}}), want: 422},

		{name: "grace period", pod: func(pod *v1.Pod) { pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](30) },
			budgets: budgets(allowing(1)), options: options(metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](7)}), want: 201},
		{name: "finalizer", pod: func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/held"} }, budgets: budgets(allowing(1)), want: 201},
		{name: "store read errors", options: options(metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: ptr.To(true)}), want: 422},
		{name: "no such pod", path: "other", evicts: "other", budgets: budgets(allowing(1)), want: 404},
		{name: "another name in the eviction", evicts: "other", want: 400},
	}
}

// TestAnswers sends the same evictions to API servers without and with the lane: the answers and what
// is stored afterwards must be the same.
func TestAnswers(t *testing.T) {
	without, with := answers(t, false), answers(t, true)
	for _, test := range evictionCases() {
		if diff := cmp.Diff(without[test.name], with[test.name]); diff != "" {
			t.Errorf("%s: the lane makes a difference (-without, +with):\n%s", test.name, diff)
		}
	}
}

func answers(t *testing.T, lane bool) map[string][]string {
	result := map[string][]string{}
	t.Run(fmt.Sprintf("lane %t", lane), func(t *testing.T) {
		c := start(t, lane, 1)
		for _, test := range evictionCases() {
			t.Run(test.name, func(t *testing.T) {
				inNamespace := *c
				inNamespace.Cluster = newNamespace(t, c)
				result[test.name] = inNamespace.answer(test)
			})
		}
	})
	return result
}

// answer describes the answer to an eviction, and what is stored afterwards.
func (c *cluster) answer(test evictionCase) []string {
	t := c.T
	pod := newPod("pod", "web")
	if test.pod != nil {
		test.pod(pod)
	}
	if test.terminating {
		pod.Finalizers = []string{"example.com/held"}
	}
	ready, phase := v1.ConditionTrue, v1.PodRunning
	if test.unready {
		ready = v1.ConditionFalse
	}
	if test.phase != "" {
		phase = test.phase
	}
	if err := c.createPod(t.Context(), pod, phase, ready); err != nil {
		t.Fatal(err)
	}
	pods := c.Client.CoreV1().Pods(c.Namespace)
	if test.terminating {
		if err := pods.Delete(t.Context(), "pod", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, budget := range test.budgets {
		c.createBudget(budget)
		if budget.DeletionTimestamp != nil {
			if err := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Delete(t.Context(), budget.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	stored, err := pods.Get(t.Context(), "pod", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "pod"}}
	if test.evicts != "" {
		eviction.Name = test.evicts
	}
	if test.options != nil {
		eviction.DeleteOptions = test.options(stored)
	}
	path := "pod"
	if test.path != "" {
		path = test.path
	}
	request := c.clients[0].CoreV1().RESTClient().Post().MaxRetries(0).Namespace(c.Namespace).Resource("pods").Name(path).SubResource("eviction").Body(eviction)
	if test.query != "" {
		request.Param("dryRun", test.query)
	}
	var code int
	response := request.Do(t.Context()).StatusCode(&code)
	lines := []string{fmt.Sprintf("code %d", code), c.describeAnswer(response.Error())}
	if int32(code) != test.want {
		t.Errorf("answer %v, want code %d", lines, test.want)
	}
	lines = append(lines, c.describePod(stored.UID))
	for _, budget := range test.budgets {
		lines = append(lines, describeBudget(c.budget(budget.Name)))
	}
	return lines
}

// describeAnswer is the whole Status, without what differs between two runs.
func (c *cluster) describeAnswer(err error) string {
	if err == nil {
		return "success"
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	encoded, err := json.Marshal(status.Status())
	if err != nil {
		c.T.Fatal(err)
	}
	text := strings.ReplaceAll(string(encoded), c.Namespace, "NAMESPACE")
	text = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "UID")
	return regexp.MustCompile(`in record \([0-9]+\)`).ReplaceAllString(text, "in record (VERSION)")
}

func (c *cluster) describePod(uid types.UID) string {
	pod, err := c.Client.CoreV1().Pods(c.Namespace).Get(c.T.Context(), "pod", metav1.GetOptions{})
	if err != nil || pod.UID != uid {
		return fmt.Sprintf("pod: %v", apierrors.ReasonForError(err))
	}
	var conditions []string
	for _, condition := range pod.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s %s %s %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	return fmt.Sprintf("pod: terminating %t, grace period %v, conditions %q", pod.DeletionTimestamp != nil, ptr.Deref(pod.DeletionGracePeriodSeconds, -1), conditions)
}

func describeBudget(b *policyv1.PodDisruptionBudget) string {
	var conditions []string
	for _, condition := range b.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s %s %s %s %d", condition.Type, condition.Status, condition.Reason, condition.Message, condition.ObservedGeneration))
	}
	pods := slices.Sorted(maps.Keys(b.Status.DisruptedPods))
	now := 0
	for _, at := range b.Status.DisruptedPods {
		if at.Unix() > 1 {
			now++
		}
	}
	return fmt.Sprintf("budget %s: %d allowed, %d observed, disrupted %d (%d lately) %s, conditions %q", b.Name,
		b.Status.DisruptionsAllowed, b.Status.ObservedGeneration, len(pods), now, strings.Join(pods[:min(len(pods), 3)], ","), conditions)
}
