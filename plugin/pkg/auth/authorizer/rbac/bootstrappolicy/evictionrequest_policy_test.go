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

package bootstrappolicy

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	rbacv1helpers "k8s.io/kubernetes/pkg/apis/rbac/v1"
	"k8s.io/kubernetes/pkg/features"
)

const (
	evictionRequestController = "system:controller:evictionrequest-controller"
	// It may patch every object, to have it written in another version.
	storageVersionMigrator = "system:controller:storage-version-migrator-controller"
)

// setGates sets the gates of EvictionRequests and of NodeMaintenances. The latter requires the
// former.
func setGates(t *testing.T, evictionRequests, nodeMaintenances bool) {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: evictionRequests, features.DeclarativeNodeMaintenance: nodeMaintenances,
		features.EvictionRequestForEvictions: false, features.DeploymentPodSurge: false, features.NodeMaintenanceAwareDaemonSet: false, features.NodeMaintenanceAwareKubelet: false, features.NodeMaintenanceBudgets: false, features.StatefulSetEvictionPacing: false,
	})
}

// rulesByRole returns the rules of all cluster roles with this state of the gate, and with the gate
// of NodeMaintenances off.
func rulesByRole(t *testing.T, enabled bool) map[string][]rbacv1.PolicyRule {
	t.Helper()
	setGates(t, enabled, false)
	return allRules()
}

func allRules() map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range append(ClusterRoles(), ControllerRoles()...) {
		rules[role.Name] = role.Rules
	}
	return rules
}

func rule(verbs, groups, resources []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources}
}

// All added rules are listed here, so that no permission is added by accident.
func TestEvictionRequestRules(t *testing.T) {
	coordination, lifecycle, core := []string{"coordination.k8s.io"}, []string{"lifecycle.k8s.io"}, []string{""}
	want := map[string][]rbacv1.PolicyRule{
		"system:aggregate-to-view": {
			rule([]string{"get", "list", "watch"}, lifecycle, []string{"evictionrequests", "evictions"}), // Upstream's.
			rule([]string{"get", "list", "watch"}, coordination, []string{"evictionrequests"}),
		},
		"system:aggregate-to-edit": {
			rule([]string{"create", "delete", "deletecollection", "patch", "update"}, lifecycle, []string{"evictionrequests"}), // Upstream's.
			rule([]string{"create", "delete", "deletecollection", "patch", "update"}, coordination, []string{"evictionrequests"}),
		},
		evictionRequestController: {
			rule([]string{"delete", "get", "list", "patch", "watch"}, coordination, []string{"evictionrequests"}),
			rule([]string{"get"}, []string{"scheduling.k8s.io"}, []string{"compositepodgroups", "podgroups"}),
			rule([]string{"control", "patch", "update"}, coordination, []string{"evictionrequests/status"}),
			rule([]string{"get", "list", "watch"}, core, []string{"pods"}),
			rule([]string{"create"}, core, []string{"pods/eviction"}),
			rule([]string{"list", "watch"}, core, []string{"nodes"}),
			rule([]string{"list", "watch"}, []string{"policy"}, []string{"poddisruptionbudgets"}),
			rule([]string{"create", "patch", "update"}, []string{"", "events.k8s.io"}, []string{"events"}),
		},
	}
	off, on := rulesByRole(t, false), rulesByRole(t, true)
	added := addedRules(t, off, on)
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("unexpected rules that the gate adds (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{evictionRequestController}, sets.List(sets.KeySet(on).Difference(sets.KeySet(off)))); diff != "" {
		t.Errorf("unexpected roles that the gate adds (-want, +got):\n%s", diff)
	}
}

// Only the controller bypasses interceptors by default, with the verb by name: a wildcard is not
// enough.
func TestEvictionRequestForEvictionsRules(t *testing.T) {
	off := rulesByRole(t, true)
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestForEvictions, true)
	want := map[string][]rbacv1.PolicyRule{
		evictionRequestController: {rule([]string{"bypass"}, []string{"coordination.k8s.io"}, []string{"evictionrequests"})},
	}
	if diff := cmp.Diff(want, addedRules(t, off, allRules())); diff != "" {
		t.Errorf("unexpected rules that the gate adds (-want, +got):\n%s", diff)
	}
}

// addedRules returns the rules that a gate adds to each role. It must remove none.
func addedRules(t *testing.T, off, on map[string][]rbacv1.PolicyRule) map[string][]rbacv1.PolicyRule {
	t.Helper()
	added := map[string][]rbacv1.PolicyRule{}
	for name, rules := range on {
		if more := missing(rules, off[name]); len(more) > 0 {
			added[name] = more
		}
		if less := missing(off[name], rules); len(less) > 0 {
			t.Errorf("the gate removes rules from %s: %v", name, less)
		}
	}
	return added
}

// missing returns the rules that are not among the others.
func missing(rules, others []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var missing []rbacv1.PolicyRule
	for _, rule := range rules {
		if !slices.ContainsFunc(others, func(other rbacv1.PolicyRule) bool { return apiequality.Semantic.DeepEqual(rule, other) }) {
			missing = append(missing, rule)
		}
	}
	return missing
}

func TestNothingAboutEvictionRequestsWithoutTheGate(t *testing.T) {
	for name, rules := range rulesByRole(t, false) {
		for _, rule := range rules {
			if slices.Contains(rule.Resources, "evictionrequests") || slices.Contains(rule.Resources, "evictionrequests/status") {
				t.Errorf("%s has the rule %v", name, rule)
			}
		}
	}
}

// The status says what has been done: users who may only request evictions must not write it, not
// even through a wildcard. The cluster administrator may do everything, and upstream's garbage
// collector and storage version migrator may change every object.
func TestOnlyTheControllerWritesTheStatusOfEvictionRequests(t *testing.T) {
	writers := statusWriters(rulesByRole(t, true), "evictionrequests/status")
	if diff := cmp.Diff([]string{"cluster-admin", evictionRequestController, "system:controller:generic-garbage-collector", storageVersionMigrator}, writers); diff != "" {
		t.Errorf("unexpected writers (-want, +got):\n%s", diff)
	}
}

// A client that may write the status subresource still needs a permission for each field. Only the
// controller may change all of them, and no role allows reporting as every interceptor.
func TestOnlyTheControllerControlsEvictionRequests(t *testing.T) {
	roles := rulesWithWorkloads(t, true, true, true, true)
	for question, test := range map[string]struct {
		verb, resource, subresource string
		want                        []string
	}{
		"control all of the status":  {"control", "evictionrequests/status", "status", []string{"cluster-admin", evictionRequestController}},
		"report as any interceptor":  {"intercept", "evictioninterceptors", "", []string{"cluster-admin"}},
		"all verbs for interceptors": {"*", "evictioninterceptors", "", []string{"cluster-admin"}},
	} {
		got := rolesThatMay(roles, "coordination.k8s.io", func(rule *rbacv1.PolicyRule) bool {
			return rbacv1helpers.VerbMatches(rule, test.verb) && rbacv1helpers.ResourceMatches(rule, test.resource, test.subresource) && len(rule.ResourceNames) == 0
		})
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("roles that may %s (-want, +got):\n%s", question, diff)
		}
	}
}

// statusWriters returns the roles that may write this status.
func statusWriters(roles map[string][]rbacv1.PolicyRule, resource string) []string {
	return rolesThatMay(roles, "coordination.k8s.io", func(rule *rbacv1.PolicyRule) bool {
		writes := rbacv1helpers.VerbMatches(rule, "update") || rbacv1helpers.VerbMatches(rule, "patch")
		return writes && rbacv1helpers.ResourceMatches(rule, resource, "status")
	})
}

// rolesThatMay returns the roles with a rule for the API group that allows something.
func rolesThatMay(roles map[string][]rbacv1.PolicyRule, group string, allows func(*rbacv1.PolicyRule) bool) []string {
	var names []string
	for name, rules := range roles {
		for i := range rules {
			if rbacv1helpers.APIGroupMatches(&rules[i], group) && allows(&rules[i]) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addedBindings returns the bindings that did not exist before.
func addedBindings(before, after []rbacv1.ClusterRoleBinding) []rbacv1.ClusterRoleBinding {
	known := sets.New[string]()
	for _, binding := range before {
		known.Insert(binding.Name)
	}
	return slices.DeleteFunc(slices.Clone(after), func(binding rbacv1.ClusterRoleBinding) bool { return known.Has(binding.Name) })
}

func TestEvictionRequestBindings(t *testing.T) {
	bindings := func(enabled bool) []rbacv1.ClusterRoleBinding {
		setGates(t, enabled, false)
		return append(ClusterRoleBindings(), ControllerRoleBindings()...)
	}
	added := addedBindings(bindings(false), bindings(true))
	want := []rbacv1.ClusterRoleBinding{{
		ObjectMeta: metav1.ObjectMeta{
			Name:        evictionRequestController,
			Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
			Annotations: map[string]string{"rbac.authorization.kubernetes.io/autoupdate": "true"},
		},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: "evictionrequest-controller"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: evictionRequestController},
	}}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("unexpected bindings that the gate adds (-want, +got):\n%s", diff)
	}
}
