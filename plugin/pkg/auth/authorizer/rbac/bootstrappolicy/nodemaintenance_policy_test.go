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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	rbacv1helpers "k8s.io/kubernetes/pkg/apis/rbac/v1"
	"k8s.io/kubernetes/pkg/features"
)

const nodeMaintenanceController = "system:controller:nodemaintenance-controller"

// rulesWithMaintenances returns the rules of all cluster roles with EvictionRequests on and this
// state of the gate.
func rulesWithMaintenances(t *testing.T, enabled bool) map[string][]rbacv1.PolicyRule {
	t.Helper()
	setGates(t, true, enabled)
	return allRules()
}

// All added rules are listed here, so that no permission is added by accident: users get none in a
// namespace, and the controller may neither create pods nor delete nodes.
func TestNodeMaintenanceRules(t *testing.T) {
	coordination, core := []string{"coordination.k8s.io"}, []string{""}
	want := map[string][]rbacv1.PolicyRule{
		nodeMaintenanceController: {
			rule([]string{"get", "list", "patch", "update", "watch"}, coordination, []string{"nodemaintenances"}),
			rule([]string{"patch", "update"}, coordination, []string{"nodemaintenances/status"}),
			rule([]string{"get", "list", "patch", "watch"}, core, []string{"nodes"}),
			rule([]string{"control", "patch"}, core, []string{"nodes/status"}),
			rule([]string{"create", "get", "list", "patch", "watch"}, coordination, []string{"evictionrequests"}),
			{Verbs: []string{"request"}, APIGroups: coordination, Resources: []string{"evictionrequesters"}, ResourceNames: []string{"nodemaintenance.k8s.io"}},
			rule([]string{"delete", "get", "list", "watch"}, core, []string{"pods"}),
			rule([]string{"list", "watch"}, []string{"policy"}, []string{"poddisruptionbudgets"}),
			rule([]string{"create"}, []string{"authorization.k8s.io"}, []string{"subjectaccessreviews"}),
			rule([]string{"list", "watch"}, []string{"batch"}, []string{"jobs"}),
			rule([]string{"list", "watch"}, []string{"apps"}, []string{"replicasets", "statefulsets"}),
			rule([]string{"list", "watch"}, core, []string{"replicationcontrollers"}),
			rule([]string{"create", "patch", "update"}, []string{"", "events.k8s.io"}, []string{"events"}),
		},
	}
	off, on := rulesWithMaintenances(t, false), rulesWithMaintenances(t, true)
	if diff := cmp.Diff(want, addedRules(t, off, on)); diff != "" {
		t.Errorf("unexpected rules that the gate adds (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{nodeMaintenanceController}, sets.List(sets.KeySet(on).Difference(sets.KeySet(off)))); diff != "" {
		t.Errorf("unexpected roles that the gate adds (-want, +got):\n%s", diff)
	}
}

// rulesWithBudgets returns the rules of all cluster roles with NodeMaintenances on and this state of the
// gate NodeMaintenanceBudgets.
func rulesWithBudgets(t *testing.T, enabled bool) map[string][]rbacv1.PolicyRule {
	t.Helper()
	setGates(t, true, true)
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.NodeMaintenanceBudgets, enabled)
	return allRules()
}

// The controller may not change the spec of a budget, and nobody gets a right by the gate who has none
// on NodeMaintenances: a budget can keep all maintenances of a cluster from going on.
func TestNodeMaintenanceBudgetRules(t *testing.T) {
	coordination := []string{"coordination.k8s.io"}
	want := map[string][]rbacv1.PolicyRule{
		nodeMaintenanceController: {
			rule([]string{"get", "list", "watch"}, coordination, []string{"nodemaintenancebudgets"}),
			rule([]string{"update"}, coordination, []string{"nodemaintenancebudgets/status"}),
			rule([]string{"list", "watch"}, []string{"apps"}, []string{"daemonsets"}),
			rule([]string{"list", "watch"}, []string{""}, []string{"namespaces", "persistentvolumeclaims"}),
			rule([]string{"list", "watch"}, []string{"storage.k8s.io"}, []string{"volumeattachments"}),
			rule([]string{"escalate", "patch"}, coordination, []string{"evictionrequests/status"}),
			rule([]string{"patch"}, []string{""}, []string{"pods/status"}),
		},
	}
	off, on := rulesWithBudgets(t, false), rulesWithBudgets(t, true)
	if diff := cmp.Diff(want, addedRules(t, off, on)); diff != "" {
		t.Errorf("unexpected rules that the gate adds (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(sets.List(sets.KeySet(off)), sets.List(sets.KeySet(on))); diff != "" {
		t.Errorf("the gate changes which roles there are (-off, +on):\n%s", diff)
	}
	writers := statusWriters(on, "nodemaintenancebudgets/status")
	if diff := cmp.Diff([]string{"cluster-admin", "system:controller:generic-garbage-collector", nodeMaintenanceController, storageVersionMigrator}, writers); diff != "" {
		t.Errorf("unexpected writers of the status (-want, +got):\n%s", diff)
	}
}

// A kubelet that takes part in maintenances gets all added rules of nodes, and nothing else does.
func TestNodeMaintenanceKubeletRules(t *testing.T) {
	off := rulesWithMaintenances(t, true)
	offNodes := NodeRules()
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.NodeMaintenanceAwareKubelet, true)
	coordination := []string{"coordination.k8s.io"}
	want := []rbacv1.PolicyRule{
		rule([]string{"get", "list", "watch"}, coordination, []string{"evictionrequests"}),
		rule([]string{"patch", "update"}, coordination, []string{"evictionrequests/status"}),
		rule([]string{"intercept"}, coordination, []string{"evictioninterceptors"}),
		rule([]string{"create", "delete", "get", "list", "patch", "update", "watch"}, coordination, []string{"nodemaintenances"}),
	}
	want[2].ResourceNames = []string{"kubelet.k8s.io"}
	if diff := cmp.Diff(want, missing(NodeRules(), offNodes)); diff != "" {
		t.Errorf("unexpected rules of nodes (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]rbacv1.PolicyRule{"system:node": want}, addedRules(t, off, allRules())); diff != "" {
		t.Errorf("unexpected rules that the gate adds (-want, +got):\n%s", diff)
	}
}

func TestNothingAboutNodeMaintenancesWithoutTheGate(t *testing.T) {
	for name, rules := range rulesWithMaintenances(t, false) {
		for _, rule := range rules {
			if slices.ContainsFunc(rule.Resources, func(resource string) bool { return strings.HasPrefix(resource, "nodemaintenances") }) {
				t.Errorf("%s has the rule %v", name, rule)
			}
		}
	}
}

// As for the status of EvictionRequests.
func TestOnlyTheControllerWritesTheStatusOfNodeMaintenances(t *testing.T) {
	writers := statusWriters(rulesWithMaintenances(t, true), "nodemaintenances/status")
	if diff := cmp.Diff([]string{"cluster-admin", "system:controller:generic-garbage-collector", nodeMaintenanceController, storageVersionMigrator}, writers); diff != "" {
		t.Errorf("unexpected writers (-want, +got):\n%s", diff)
	}
}

// Other clients write the status of nodes, but must not decide which pods leave them.
func TestOnlyTheControllerWritesTheMaintenanceStatusOfNodes(t *testing.T) {
	controllers := rolesThatMay(rulesWithMaintenances(t, true), "", func(rule *rbacv1.PolicyRule) bool {
		return rbacv1helpers.VerbMatches(rule, "control") && rbacv1helpers.ResourceMatches(rule, "nodes/status", "status")
	})
	if diff := cmp.Diff([]string{"cluster-admin", nodeMaintenanceController}, controllers); diff != "" {
		t.Errorf("unexpected roles with control (-want, +got):\n%s", diff)
	}
}

func TestNodeMaintenanceBindings(t *testing.T) {
	bindings := func(enabled bool) []rbacv1.ClusterRoleBinding {
		setGates(t, true, enabled)
		return append(ClusterRoleBindings(), ControllerRoleBindings()...)
	}
	want := []rbacv1.ClusterRoleBinding{{
		ObjectMeta: metav1.ObjectMeta{
			Name:        nodeMaintenanceController,
			Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
			Annotations: map[string]string{"rbac.authorization.kubernetes.io/autoupdate": "true"},
		},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: "nodemaintenance-controller"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: nodeMaintenanceController},
	}}
	if diff := cmp.Diff(want, addedBindings(bindings(false), bindings(true))); diff != "" {
		t.Errorf("unexpected bindings that the gate adds (-want, +got):\n%s", diff)
	}
}
