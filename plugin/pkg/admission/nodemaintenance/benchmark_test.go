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
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// maxPerThousandNodes is the limit for the duration of the checks of a thousand nodes.
const maxPerThousandNodes = 50 * time.Millisecond

// BenchmarkValidate measures the creation of a maintenance of all nodes of a cluster, and that its rollout
// is paused, with the RBAC authorizer, the bootstrap roles, and other bindings. It fails if the limit is
// exceeded.
func BenchmarkValidate(b *testing.B) {
	const otherBindings = 200
	for _, size := range []int{1000, 5000} {
		var nodes []*v1.Node
		var names []string
		var byName []core.NodeSelectorTerm
		for i := range size {
			name := fmt.Sprintf("node-%04d.example.com", i)
			nodes, names, byName = append(nodes, newNode(name, "a")), append(names, name), append(byName, named(name))
		}
		for _, bench := range []struct {
			name     string
			rule     rbacv1.PolicyRule
			selector []core.NodeSelectorTerm
			denied   bool
			// paused is whether the maintenance exists, and is paused: with these steps of escalation.
			paused bool
			steps  []coordination.NodeMaintenanceEscalationStep
		}{
			{name: "AllAllowed", rule: nodesRule(), selector: []core.NodeSelectorTerm{zone("a")}},
			{name: "EachAllowed", rule: nodesRule(names...), selector: []core.NodeSelectorTerm{zone("a")}},
			{name: "EachAllowedByName", rule: nodesRule(names...), selector: byName},
			{name: "EachDenied", rule: nodesRule("another"), selector: []core.NodeSelectorTerm{zone("a")}, denied: true},
			{name: "PausedByName", rule: nodesRule(), selector: byName, paused: true},
			{name: "PausedByNameWithEscalation", rule: nodesRule(), selector: byName, paused: true, steps: []coordination.NodeMaintenanceEscalationStep{step(60, core.MaintenanceEscalationForceDelete)}},
		} {
			b.Run(fmt.Sprintf("%s/nodes=%d", bench.name, size), func(b *testing.B) {
				plugin := newPlugin(b, nodes, newRBAC(b, bench.rule, otherBindings))
				maintenance := newMaintenance(selecting(bench.selector...), escalating(bench.steps...))
				var old *coordination.NodeMaintenance
				if bench.paused {
					old = maintenance.DeepCopy()
					maintenance.Spec.Rollout = &coordination.NodeMaintenanceRollout{Paused: true}
				}
				write := attributes(operationOf(maintenance, old), userNamed(zoneAdmin), "", maintenance, old)
				for b.Loop() {
					if err := plugin.Validate(b.Context(), write, nil); bench.denied != apierrors.IsForbidden(err) || !bench.denied && err != nil {
						b.Fatalf("unexpected result: %v", err)
					}
				}
				perThousand := b.Elapsed() / time.Duration(b.N*size/1000)
				b.ReportMetric(float64(perThousand.Microseconds())/1000, "ms/1000nodes")
				if perThousand > maxPerThousandNodes {
					b.Errorf("%s per 1000 nodes, must be at most %s", perThousand, maxPerThousandNodes)
				}
			})
		}
	}
}

func nodesRule(names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"delete"}, APIGroups: []string{""}, Resources: []string{"nodes"}, ResourceNames: names}
}

// newRBAC returns the RBAC authorizer on caches, as in kube-apiserver, with the bootstrap policy,
// the rule for zoneAdmin, and bindings for other users.
func newRBAC(b *testing.B, rule rbacv1.PolicyRule, otherBindings int) authorizer.UnconditionalAuthorizer {
	b.Helper()
	roles, bindings := append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...), append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...)
	roles = append(roles, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: zoneAdmin}, Rules: []rbacv1.PolicyRule{rule}})
	bindings = append(bindings, newBinding(zoneAdmin, zoneAdmin, zoneAdmin))
	for i := range otherBindings {
		bindings = append(bindings, newBinding(fmt.Sprintf("other-%d", i), "view", fmt.Sprintf("user-%d", i)))
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	roleIndexer, bindingIndexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers), cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	for i := range roles {
		if err := roleIndexer.Add(&roles[i]); err != nil {
			b.Fatalf("adding role %s: %v", roles[i].Name, err)
		}
	}
	for i := range bindings {
		if err := bindingIndexer.Add(&bindings[i]); err != nil {
			b.Fatalf("adding binding %s: %v", bindings[i].Name, err)
		}
	}
	none := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	return rbac.New(
		&rbac.RoleGetter{Lister: rbaclisters.NewRoleLister(none)},
		&rbac.RoleBindingLister{Lister: rbaclisters.NewRoleBindingLister(none)},
		&rbac.ClusterRoleGetter{Lister: rbaclisters.NewClusterRoleLister(roleIndexer)},
		&rbac.ClusterRoleBindingLister{Lister: rbaclisters.NewClusterRoleBindingLister(bindingIndexer)},
	)
}

func newBinding(name, role, user string) rbacv1.ClusterRoleBinding {
	return rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}
