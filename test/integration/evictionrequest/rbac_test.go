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

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/utils/clock"
)

// mayDo returns the verbs that a user may use for a resource of the namespace.
func (c *cluster) mayDo(user, group, resource string) string {
	c.t.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	var verbs []string
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(c.t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: c.namespace, Verb: verb, Group: group, Resource: resource, Subresource: subresource,
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			c.t.Fatalf("asking whether %s may %s %s: %v", user, verb, resource, err)
		}
		if review.Status.Allowed {
			verbs = append(verbs, verb)
		}
	}
	return strings.Join(verbs, " ")
}

// testControllerRole lists the permissions of the controller and runs it through all its calls of
// the API server. As in all tests, it has only the permissions of its role.
func testControllerRole(t *testing.T, c *cluster) {
	got := map[string]string{}
	for _, resource := range []string{"coordination.k8s.io/evictionrequests", "coordination.k8s.io/evictionrequests/status", "/pods", "/pods/eviction", "/pods/status", "policy/poddisruptionbudgets"} {
		group, name, _ := strings.Cut(resource, "/")
		got[resource] = c.mayDo(controllerUser, group, name)
	}
	want := map[string]string{
		"coordination.k8s.io/evictionrequests":        "get list watch patch delete",
		"coordination.k8s.io/evictionrequests/status": "update patch",
		"/pods":                       "get list watch",
		"/pods/eviction":              "create",
		"/pods/status":                "",
		"policy/poddisruptionbudgets": "list watch",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions of the controller (-want +got):\n%s", diff)
	}

	c.StartDisruptionController(c.namespace)
	pod := c.createRunningPod(newPod("protected", withInterceptors(first)), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.startController(clock.RealClock{})
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.report(pod, completed(first, metav1.Now()))
	c.awaitRequest(pod, "the budget to block the eviction", blocked)
	c.deleteBudget("guard")
	c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
}

func testUserRoles(t *testing.T, c *cluster) {
	c.aggregateClusterRoles()
	const read, write = "get list watch", "create update patch delete deletecollection"
	tests := []struct {
		role        string
		wantVerbs   string
		wantCreated bool
	}{
		{role: "view", wantVerbs: read},
		{role: "edit", wantVerbs: read + " " + write, wantCreated: true},
		{role: "admin", wantVerbs: read + " " + write, wantCreated: true},
	}
	for _, test := range tests {
		t.Run(test.role, func(t *testing.T) {
			user := test.role + "@example.com"
			c.bind(user, test.role)
			c.Eventually(user+" to have the permissions of the role", func(ctx context.Context) (bool, string) {
				got := c.mayDo(user, "coordination.k8s.io", "evictionrequests")
				return got == test.wantVerbs, fmt.Sprintf("may %q, want %q", got, test.wantVerbs)
			})
			if got := c.mayDo(user, "coordination.k8s.io", "evictionrequests/status"); got != "" {
				t.Errorf("%s may %s the status", user, got)
			}

			// The actual calls are checked as well.
			requests := c.ClientOf(user).CoordinationV1alpha1().EvictionRequests(c.namespace)
			pod := c.createPod(newPod("pod-" + test.role))
			_, err := requests.Create(t.Context(), newRequest(pod), metav1.CreateOptions{})
			if created := err == nil; created != test.wantCreated || !created && !apierrors.IsForbidden(err) {
				t.Errorf("%s creates a request: %v", user, err)
			}
			request := c.join(pod, scaler)
			if _, err := requests.Get(t.Context(), request.Name, metav1.GetOptions{}); err != nil {
				t.Errorf("%s reads a request: %v", user, err)
			}
			if _, err := requests.UpdateStatus(t.Context(), request, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("%s writes the status of a request: %v, want Forbidden", user, err)
			}
		})
	}
}

// bind grants the permissions of a cluster role in the namespace to a user.
func (c *cluster) bind(user, role string) {
	c.t.Helper()
	if _, err := c.client.RbacV1().RoleBindings(c.namespace).Create(c.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("binding %s to role %s: %v", user, role, err)
	}
}

// aggregateClusterRoles starts the controller that aggregates view, edit and admin.
func (c *cluster) aggregateClusterRoles() {
	ctx, cancel := context.WithCancel(c.t.Context())
	factory := informers.NewSharedInformerFactory(c.client, 0)
	controller := clusterroleaggregation.NewClusterRoleAggregation(factory.Rbac().V1().ClusterRoles(), c.client.RbacV1())
	c.Run(ctx, cancel, factory, func() { controller.Run(ctx, 1) })
}
