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

// Package podeviction evicts pods through the pods/eviction subresource, within their
// PodDisruptionBudgets, and classifies the response. All built-in interceptors that evict use it.
package podeviction

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/utils/ptr"
)

// Evictor evicts a pod for a request, as the interceptor of that name. kube-apiserver evicts this
// instance of the pod, and only if the request wants it, and the interceptor is active, at that moment:
// the caller may have been suspended since it read them (see EvictionRequestUIDAnnotation).
type Evictor func(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, interceptor string, pod *v1.Pod) error

// Timeout limits each call. It is longer than the 30 seconds that an admission webhook may take,
// and longer than the ten seconds for which the API server retries if others update the budget at
// the same time: giving up earlier would use up a disruption of the budget without an eviction. It
// is shorter than the 60 seconds after which the API server ends a call, so that a server that does
// not respond at all is detected first.
const Timeout = 45 * time.Second

// NewEvictor returns an Evictor that calls the pods/eviction subresource once. The typed client is
// not suitable: it sleeps and retries by itself if a budget refuses, and it ignores a failure that
// the subresource reports in the body of a successful response, such as for two budgets on one pod.
// A call ends after Timeout. The outcome of a call without a response is unknown: Classify returns
// Retry.
func NewEvictor(client clientset.Interface) Evictor {
	return func(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, interceptor string, pod *v1.Pod) error {
		ctx, cancel := context.WithTimeout(ctx, Timeout)
		defer cancel()
		_, err := client.CoreV1().RESTClient().Post().
			Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
			VersionedParams(&metav1.CreateOptions{}, scheme.ParameterCodec).
			Body(&policyv1.Eviction{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: pod.Namespace, Name: pod.Name,
					Annotations: map[string]string{
						// The interceptors are done. If all controllers are one user who has all verbs,
						// only this distinguishes them from other evictors.
						coordinationv1alpha1.EvictionBypassAnnotation:            "true",
						coordinationv1alpha1.EvictionRequestUIDAnnotation:        string(request.UID),
						coordinationv1alpha1.EvictionActingInterceptorAnnotation: interceptor,
					},
				},
				// Not the version: a pod that others write to all the time would never be evicted.
				DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}, GracePeriodSeconds: GracePeriodOf(request, pod)},
			}).
			MaxRetries(0).
			Do(ctx).
			Get()
		return err
	}
}

// GracePeriodOf returns the grace period with which the pod is evicted, in seconds, or nil for its own. Callers of
// pods/eviction may ask for another. A longer one than that of the pod counts only if nobody else has requested
// the eviction: others mean that of the pod. Controllers that delete the pod in their turn pass it on.
func GracePeriodOf(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) *int64 {
	seconds, known := evictionrequesttools.EvictionCallGracePeriod(request)
	if !known || !evictionrequesttools.IsRequestedByCalls(request) {
		return nil
	}
	own := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, int64(v1.DefaultTerminationGracePeriodSeconds))
	if seconds >= own && len(request.Spec.Requesters) > 1 {
		return nil
	}
	return &seconds
}

// readTimeout limits each call of a Reader. An overloaded API server queues it for up to 15 seconds.
const readTimeout = 35 * time.Second

// Reader reads the current state of a pod, not that of a cache.
type Reader func(ctx context.Context, namespace, name string) (*v1.Pod, error)

// NewReader returns a Reader. An error is NotFound only if an API server says so: a NotFound from an
// intermediary says nothing about the pod.
func NewReader(client clientset.Interface) Reader {
	return func(ctx context.Context, namespace, name string) (*v1.Pod, error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && isForeign(err) {
			return nil, fmt.Errorf("no response of an API server: %v", err)
		}
		return pod, err
	}
}

// IsLeaving reports whether this instance of the pod terminates or no longer exists.
func IsLeaving(ctx context.Context, read Reader, pod *v1.Pod) (bool, error) {
	current, err := read(ctx, pod.Namespace, pod.Name)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	return current.UID != pod.UID || current.DeletionTimestamp != nil, nil
}

// Outcome is the outcome of an attempt to evict a pod.
type Outcome int

const (
	// Evicted: the pod is being deleted.
	Evicted Outcome = iota
	// Gone: this instance of the pod no longer exists.
	Gone
	// Retry: the response says nothing about the pod.
	Retry
	// Budget: a PodDisruptionBudget of the pod refuses.
	Budget
	// Refused: something else refuses.
	Refused
	// NotRequested: the request does not want the eviction, or not by this interceptor. The cache of
	// the caller is older than that.
	NotRequested
)

// String returns the value of the outcome in the metrics.
func (o Outcome) String() string {
	return [...]string{"evicted", "gone", "error", "blocked", "refused", "not_requested"}[o]
}

// Classify classifies the response of the pods/eviction subresource. The detail is for users.
func Classify(err error, budgets []*policyv1.PodDisruptionBudget) (Outcome, string) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return Evicted, ""
	case isPodNotFound(err):
		return Gone, ""
	case apierrors.HasStatusCause(err, coordinationv1alpha1.EvictionNotRequestedCause):
		return NotRequested, err.Error()
	case isBudgetRefusal(err):
		return Budget, budgetDetail(err, budgets)
	case isOverload(err),
		apierrors.IsNotFound(err), // Something other than the pod, such as a budget that was just deleted.
		apierrors.IsConflict(err), // It is another instance, or has changed all the time during the call.
		apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsServiceUnavailable(err):
		return Retry, ""
	case !errors.As(err, &status):
		return Retry, "" // No response.
	case len(budgets) > 1 && apierrors.IsInternalError(err):
		// The subresource responds like this if two budgets select a pod.
		return Budget, fmt.Sprintf("PodDisruptionBudgets %s select this pod, and the API server does not evict a pod with more than one PodDisruptionBudget: "+
			"change their selectors so that only one selects the pod.", budgetNames(budgets))
	}
	return Refused, err.Error()
}

// MayHaveEvicted reports whether an attempt that failed may have evicted the pod all the same: there
// was no response, or one of a server error. The API server returns a server error if its storage
// does not respond in time, and an intermediary if the API server is killed during the call.
func MayHaveEvicted(err error) bool {
	var status apierrors.APIStatus
	return err != nil && (!errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError)
}

// isPodNotFound reports whether the pod does not exist. The subresource also returns NotFound if
// the budget of the pod is deleted during the call, and a proxy may return it for other reasons.
func isPodNotFound(err error) bool {
	details := detailsOf(err)
	return apierrors.IsNotFound(err) && details != nil && details.Group == "" && details.Kind == "pods" && !isForeign(err)
}

// isBudgetRefusal reports whether the budget does not allow the eviction. If it allows no
// disruption, the response is a 429 with a cause. If the budget is unusable, because its allowance
// is negative or too many evictions are unconfirmed, the response is a Forbidden error about the
// budget.
func isBudgetRefusal(err error) bool {
	if apierrors.IsTooManyRequests(err) {
		return apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)
	}
	details := detailsOf(err)
	// The subresource uses the singular.
	return apierrors.IsForbidden(err) && details != nil &&
		details.Group == policyv1.GroupName && strings.TrimSuffix(details.Kind, "s") == "poddisruptionbudget"
}

// isOverload reports whether the API server was overloaded. Its response then has a retry delay. A
// 429 without one is a refusal: admission webhooks return it for pods that are evicted by other
// means.
func isOverload(err error) bool {
	if !apierrors.IsTooManyRequests(err) {
		return false
	}
	_, delayed := apierrors.SuggestsClientDelay(err)
	return delayed || isForeign(err)
}

// isForeign reports whether the response comes from an intermediary and not from an API server.
func isForeign(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// detailsOf returns the object that the response is about, or nil.
func detailsOf(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	return status.Status().Details
}

// budgetDetail returns a message that starts with the name of the budget: narrow screens cut off
// the end of a message. The message of a forbidden eviction has its cause already.
func budgetDetail(err error, budgets []*policyv1.PodDisruptionBudget) string {
	detail := err.Error()
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok && cause.Message != "" && !apierrors.IsForbidden(err) {
		detail = strings.TrimSuffix(detail, ".") + ". " + strings.TrimSuffix(cause.Message, ".") + "."
	}
	if len(budgets) == 1 {
		detail += hint(budgets[0])
	}
	return refusalBy(budgetNames(budgets)) + detail
}

// hint says why waiting does not help, if the budget says so: the API server answers that such a budget is still being
// processed.
func hint(budget *policyv1.PodDisruptionBudget) string {
	allowed := meta.FindStatusCondition(budget.Status.Conditions, policyv1.DisruptionAllowedCondition)
	if allowed == nil || allowed.Status == metav1.ConditionTrue || allowed.Reason != policyv1.SyncFailedReason {
		return ""
	}
	return fmt.Sprintf(" It cannot be computed how many disruptions it allows: %s. Set minAvailable to a number, or let it select only pods whose controllers have the subresource scale.",
		strings.TrimSuffix(allowed.Message, "."))
}

// refusalBy is how a message about a refusal by one budget begins.
func refusalBy(budget string) string { return fmt.Sprintf("PodDisruptionBudget %s: ", budget) }

// IsAbout reports whether a detail that Classify has returned is about a refusal by this budget. It
// serves to tell whether another one would say anything new.
func IsAbout(detail string, budget *policyv1.PodDisruptionBudget) bool {
	return strings.HasPrefix(detail, refusalBy(budget.Name))
}

// maxNamesShown is how many budgets a message names: a tenant may have thousands, and the message is
// written for each pod.
const maxNamesShown = 10

func budgetNames(budgets []*policyv1.PodDisruptionBudget) string {
	var names []string
	for _, budget := range budgets[:min(len(budgets), maxNamesShown)] {
		names = append(names, budget.Name)
	}
	shown := strings.Join(names, ", ")
	if more := len(budgets) - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", shown, more)
	}
	return shown
}
