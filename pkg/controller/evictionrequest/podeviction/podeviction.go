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

// Package podeviction evicts pods through the pods/eviction subresource, so that their
// PodDisruptionBudgets hold, and says in words what came of it. All interceptors of
// Kubernetes that evict do it in this way.
package podeviction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	policylisters "k8s.io/client-go/listers/policy/v1"
)

// Evictor evicts a pod, if it is as the preconditions say.
type Evictor func(ctx context.Context, pod *v1.Pod, preconditions *metav1.Preconditions) error

// Timeout is how long a call may take. It is more than the half a minute that the slowest
// admission webhook has, and the ten seconds for which the API server retries when others
// write to the budget at the same time: to give up before would cost the budget a disruption
// for nothing. And it is less than the minute after which an API server ends every call, so
// that one that does not answer at all is noticed first.
const Timeout = 45 * time.Second

// NewEvictor returns an Evictor that calls the pods/eviction subresource once. The
// typed client would not do: it sleeps and retries by itself when a budget is in the
// way, and it takes a failure that the subresource reports in the body of a
// successful response, such as for two budgets on one pod, for a success. A call ends after
// Timeout. What came of one that had no answer is not known: Classify says Retry.
func NewEvictor(client clientset.Interface) Evictor {
	return func(ctx context.Context, pod *v1.Pod, preconditions *metav1.Preconditions) error {
		ctx, cancel := context.WithTimeout(ctx, Timeout)
		defer cancel()
		_, err := client.CoreV1().RESTClient().Post().
			Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
			VersionedParams(&metav1.CreateOptions{}, scheme.ParameterCodec).
			Body(&policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
				DeleteOptions: &metav1.DeleteOptions{Preconditions: preconditions},
			}).
			MaxRetries(0).
			Do(ctx).
			Get()
		return err
	}
}

// BudgetsOf returns the budgets that select the pod, sorted by name.
func BudgetsOf(lister policylisters.PodDisruptionBudgetLister, pod *v1.Pod) []*policyv1.PodDisruptionBudget {
	budgets, err := lister.GetPodPodDisruptionBudgets(pod)
	if err != nil {
		return nil // This is how the lister says that there are none.
	}
	slices.SortFunc(budgets, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	return budgets
}

// Outcome is what came of an attempt to evict a pod.
type Outcome int

const (
	// Evicted: the pod is being deleted.
	Evicted Outcome = iota
	// Gone: this instance of the pod does not exist any more.
	Gone
	// Retry: the API server could not answer; nothing is known.
	Retry
	// Budget: the pod's PodDisruptionBudgets are in the way.
	Budget
	// Refused: something else is in the way.
	Refused
)

// String returns the word for the outcome in the metrics.
func (o Outcome) String() string {
	return [...]string{"evicted", "gone", "error", "blocked", "refused"}[o]
}

// Classify reads the answer of the pods/eviction subresource. The detail is for people.
func Classify(err error, budgets []*policyv1.PodDisruptionBudget) (Outcome, string) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return Evicted, ""
	case isPodNotFound(err):
		return Gone, ""
	case isBudgetRefusal(err):
		return Budget, budgetDetail(err, budgets)
	case isOverload(err),
		apierrors.IsNotFound(err), // Of something else, such as a budget that was just deleted.
		apierrors.IsConflict(err), // Another instance, or the pod has just changed.
		apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsServiceUnavailable(err):
		return Retry, ""
	case !errors.As(err, &status):
		return Retry, "" // No answer at all.
	case len(budgets) > 1 && apierrors.IsInternalError(err):
		// So the subresource answers where two budgets select a pod.
		return Budget, fmt.Sprintf("PodDisruptionBudgets %s select this pod, and the API server evicts no pod that more than one budget selects: "+
			"change the selectors so that one of them does.", budgetNames(budgets))
	}
	return Refused, err.Error()
}

// isPodNotFound reports whether the pod does not exist. The subresource also answers
// NotFound when the budget of the pod is deleted during the call, and a proxy may answer so
// for reasons of its own.
func isPodNotFound(err error) bool {
	details := detailsOf(err)
	return apierrors.IsNotFound(err) && details != nil && details.Group == "" && details.Kind == "pods" && !isForeign(err)
}

// isBudgetRefusal reports whether the budget does not allow the eviction: it has no room,
// which is a 429 with a cause, or it cannot be counted with, which is a Forbidden about the
// budget: its allowance is negative, or too many evictions are unconfirmed.
func isBudgetRefusal(err error) bool {
	if apierrors.IsTooManyRequests(err) {
		return apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)
	}
	details := detailsOf(err)
	// The subresource uses the singular.
	return apierrors.IsForbidden(err) && details != nil &&
		details.Group == policyv1.GroupName && strings.TrimSuffix(details.Kind, "s") == "poddisruptionbudget"
}

// isOverload reports whether the API server was too busy to answer. It says then when to
// come back. A 429 that does not is a refusal: admission webhooks answer so for pods that
// are moved by other means.
func isOverload(err error) bool {
	if !apierrors.IsTooManyRequests(err) {
		return false
	}
	_, delayed := apierrors.SuggestsClientDelay(err)
	return delayed || isForeign(err)
}

// isForeign reports whether the answer is not one of an API server, but of something on
// the way to it.
func isForeign(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// detailsOf returns what the answer is about, or nil.
func detailsOf(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	return status.Status().Details
}

// budgetDetail names the budget that is in the way, first: messages are cut on narrow
// screens.
func budgetDetail(err error, budgets []*policyv1.PodDisruptionBudget) string {
	detail := err.Error()
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok && cause.Message != "" {
		detail += " " + strings.TrimSuffix(cause.Message, ".") + "."
	}
	return fmt.Sprintf("PodDisruptionBudget %s: %s", budgetNames(budgets), detail)
}

func budgetNames(budgets []*policyv1.PodDisruptionBudget) string {
	var names []string
	for _, budget := range budgets {
		names = append(names, budget.Name)
	}
	return strings.Join(names, ", ")
}
