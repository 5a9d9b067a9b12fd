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

package nodemaintenance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testPermissionDenied runs a controller that may request evictions in one namespace, and in
// another one only later.
func testPermissionDenied(t *testing.T, c *cluster) {
	denied := newCluster(t, c.config)
	denied.clock = c.clock
	limited := "limited@" + c.namespace
	c.createLimitedRole(limited)
	c.allowRequests(limited)
	c.createNode("one")
	c.createPod(newPod("pod", "one"))
	denied.createPod(newPod("denied", "one"))
	c.startEvictionController()
	c.StartMaintenanceController(c.ClientOf(limited), c.clock)
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the other pod to be evicted", states{"pod/pod": "gone", "node/one": draining, "maintenance/m": "Cordon, Drain of 1, finalizer, False: Blocked"})
	blockers := c.maintenance("m").Status.DrainStatus.Blockers
	if !slices.ContainsFunc(blockers, func(blocker coordinationv1alpha1.DrainBlocker) bool {
		return blocker.Cause == coordinationv1alpha1.DrainBlockerRequestFailed && blocker.PodCount == 1
	}) {
		t.Errorf("blockers are %+v, want the pod whose eviction cannot be requested", blockers)
	}
	c.awaitEvent("EvictionRequestFailed", "denied")
	denied.expect("no request", states{"pod/denied": "here", "request/denied": "none"})

	denied.allowRequests(limited)
	denied.await("the pod to be evicted", states{"pod/denied": "gone"})
	c.await("the drain to finish", states{"maintenance/m": "Cordon, Drain of 1, finalizer, True: Drained", "node/one": empty})
}

// createLimitedRole grants a user the permissions of the controller, except to request evictions.
func (c *cluster) createLimitedRole(user string) {
	c.t.Helper()
	ctx := c.t.Context()
	role, err := c.client.RbacV1().ClusterRoles().Get(ctx, "system:controller:nodemaintenance-controller", metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading the role of the controller: %v", err)
	}
	limited := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}}
	taken := false
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "evictionrequests") {
			rule.Verbs = []string{"get", "list", "watch"}
			taken = true
		}
		limited.Rules = append(limited.Rules, rule)
	}
	if !taken {
		c.t.Fatalf("the role of the controller has no rule for evictionrequests: %+v", role.Rules)
	}
	if _, err := c.client.RbacV1().ClusterRoles().Create(ctx, limited, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating a role: %v", err)
	}
	if _, err := c.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("binding a role: %v", err)
	}
	client := c.ClientOf(user)
	c.eventually("the permissions of "+user, func(ctx context.Context) (bool, string) {
		_, err := client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// allowRequests allows a user to request evictions in the namespace of the cluster.
func (c *cluster) allowRequests(user string) {
	c.t.Helper()
	ctx := c.t.Context()
	if _, err := c.client.RbacV1().Roles(c.namespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "requests"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"evictionrequests"}, Verbs: []string{"create", "patch"}}},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating a role: %v", err)
	}
	if _, err := c.client.RbacV1().RoleBindings(c.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "requests"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "requests"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("binding a role: %v", err)
	}
}
