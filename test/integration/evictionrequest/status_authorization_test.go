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

package evictionrequest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
)

// saverUser acts as the interceptor first, with the documented permissions.
const saverUser = "saver@example.com"

// reportRules are the permissions of a user that acts as the interceptor with that name.
func reportRules(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{requestsGroup}, Resources: []string{requestsResource}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{requestsGroup}, Resources: []string{requestsResource + "/status"}, Verbs: []string{"update", "patch"}},
		{APIGroups: []string{requestsGroup}, Resources: []string{"evictioninterceptors"}, ResourceNames: []string{name}, Verbs: []string{"intercept"}},
	}
}

// mayIntercept creates a SubjectAccessReview, like kubectl auth can-i.
func (c *cluster) mayIntercept(user, name string) bool {
	c.t.Helper()
	review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(c.t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: c.namespace, Verb: "intercept", Group: requestsGroup, Resource: "evictioninterceptors", Name: name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("checking whether %s may intercept as %s: %v", user, name, err)
	}
	return review.Status.Allowed
}

// testStatusOfNamespaceAdministrator has a user with all permissions in the namespace, but not in others,
// who claims that a pod is evicted, and who passes over its interceptors.
func testStatusOfNamespaceAdministrator(t *testing.T, c *cluster) {
	const owner = "owner@example.com"
	c.grant(owner, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	pod := c.createRunningPod(newPod("kept", withInterceptors(first)), v1.ConditionTrue)
	c.startController(clock.RealClock{})
	c.join(pod, drainer)
	c.awaitRequest(pod, "the interceptor to be active", active(first))
	for what, forge := range map[string]func(*coordinationv1alpha1.EvictionRequestStatus){
		"claims that the pod is evicted": func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.ProcessedInterceptors, s.ActiveInterceptors = s.ActiveInterceptors, nil
			s.Conditions = append(s.Conditions, condition("Evicted", metav1.ConditionTrue))
		},
		"passes over the interceptors": func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.Conditions = append(s.Conditions, condition("InterceptorsSkipped", metav1.ConditionTrue))
		},
	} {
		forged := c.getRequest(pod)
		forge(&forged.Status)
		_, err := c.requestsOf(owner).UpdateStatus(t.Context(), forged, metav1.UpdateOptions{})
		c.expectForbidden(what, "status.", err)
		if err == nil || !strings.Contains(err.Error(), "in all namespaces") {
			t.Errorf("%s: got error %v, want that it says where the permission counts", what, err)
		}
	}
}

// testStatusAuthorization has a user with the permissions of one interceptor, who tries to change
// the fields of others.
func testStatusAuthorization(t *testing.T, c *cluster) {
	c.grant(saverUser, reportRules(first)...)
	c.Eventually("the permission to intercept", func(context.Context) (bool, string) { return c.mayIntercept(saverUser, first), "not yet" })
	if c.mayIntercept(saverUser, second) || c.mayIntercept(guest, first) {
		t.Error("the permission is not limited to one interceptor and one user")
	}
	requests := c.requestsOf(saverUser)
	pod := c.createPod(newPod("saved", withInterceptors(first, second)))
	request := c.join(pod, drainer)
	update := func(change func(*coordinationv1alpha1.EvictionRequest)) error {
		changed := c.getRequest(pod)
		change(changed)
		_, err := requests.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
		return err
	}

	c.expectForbidden("skips the other interceptors", "status.targetInterceptors", update(func(r *coordinationv1alpha1.EvictionRequest) {
		const builtIn = coordinationv1alpha1.EvictionInterceptorImperative
		now := metav1.Now()
		r.Status.TargetInterceptors = []coordinationv1alpha1.Interceptor{{Name: builtIn}}
		r.Status.Interceptors = []coordinationv1alpha1.InterceptorStatus{{Name: builtIn}}
		r.Status.ActiveInterceptors, r.Status.ActivationTime = []string{builtIn}, &now
	}))

	stop := c.startController(clock.RealClock{})
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	for what, attempt := range map[string]struct {
		field  string
		change func(*coordinationv1alpha1.EvictionRequest)
	}{
		"claims that the pod is evicted": {"status.conditions", func(r *coordinationv1alpha1.EvictionRequest) {
			r.Status.ProcessedInterceptors, r.Status.ActiveInterceptors = r.Status.ActiveInterceptors, nil
			r.Status.Conditions = append(r.Status.Conditions, condition("Evicted", metav1.ConditionTrue))
		}},
		"adds a condition": {"status.conditions", func(r *coordinationv1alpha1.EvictionRequest) {
			r.Status.Conditions = append(r.Status.Conditions, condition("Mine", metav1.ConditionTrue))
		}},
		"fills the conditions": {"status.conditions", func(r *coordinationv1alpha1.EvictionRequest) {
			for i := range 100 {
				r.Status.Conditions = append(r.Status.Conditions, condition(fmt.Sprintf("Mine%d", i), metav1.ConditionTrue))
			}
		}},
	} {
		c.expectForbidden(what, attempt.field, update(attempt.change))
	}

	// The first interceptor declines. The second one, which is active then, is another one.
	c.expectAllowed("declines", c.reportAs(saverUser, "first", pod, coordinationapply.EvictionRequestStatus().
		WithInterceptors(coordinationapply.InterceptorStatus().WithName(first).WithCompletionTime(metav1.Now()))))
	c.awaitRequest(pod, "the second interceptor to be active", active(second))
	c.expectForbidden("completes another interceptor", "status.interceptors["+second+"]", c.reportAs(saverUser, "second", pod,
		coordinationapply.EvictionRequestStatus().WithInterceptors(completed(second, metav1.Now()))))
	c.expectForbidden("forbids the cancellation for another", "status.evictionRequestCancellationPolicy", c.reportAs(saverUser, "policy", pod,
		coordinationapply.EvictionRequestStatus().WithEvictionRequestCancellationPolicy("Forbid")))
	if got := c.getRequest(pod); got.UID != request.UID || !active(second)(got) {
		t.Errorf("the request has changed: %s", describe(got))
	}
	stop()
}

// testLibraryPermissions runs an interceptor of the library with only the permissions in its
// documentation.
func testLibraryPermissions(t *testing.T, c *cluster) {
	c.grant(saverUser, append(reportRules(first)[:1:1],
		rbacv1.PolicyRule{APIGroups: []string{requestsGroup}, Resources: []string{requestsResource + "/status"}, Verbs: []string{"patch"}},
		reportRules(first)[2])...)
	c.Eventually("the permission to intercept", func(context.Context) (bool, string) { return c.mayIntercept(saverUser, first), "not yet" })
	c.startController(clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- evictionrequest.Run(ctx, evictionrequest.InterceptorConfig{
			Client: c.ClientOf(saverUser), Name: first, Namespace: c.namespace,
			Handle: func(ctx context.Context, turn *evictionrequest.Turn) error {
				return turn.ForbidCancellation(ctx)
			},
		})
	}()
	pod := c.createRunningPod(newPod("saved", withInterceptors(first)), v1.ConditionTrue)
	c.join(pod, drainer)
	c.awaitRequest(pod, "the end of the request", evicted)
	cancel()
	if err := testcluster.Receive(t, "the interceptor to end", ended); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// reportAs applies a status as the user. Each report has its own field manager, because an apply
// removes the fields that it leaves out.
func (c *cluster) reportAs(user, manager string, pod *v1.Pod, status *coordinationapply.EvictionRequestStatusApplyConfiguration) error {
	_, err := c.requestsOf(user).ApplyStatus(c.t.Context(), coordinationapply.EvictionRequest(string(pod.UID), c.namespace).WithStatus(status),
		metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// expectForbidden fails unless the error of the admission plugin names the field: a refusal by RBAC
// or validation would prove nothing here.
func (c *cluster) expectForbidden(what, field string, err error) {
	c.t.Helper()
	if want := "cannot change " + field; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		c.t.Errorf("the interceptor %s: %v, want Forbidden because the user %s", what, err, want)
	}
}

func condition(conditionType string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: "Test", LastTransitionTime: metav1.Now()}
}
