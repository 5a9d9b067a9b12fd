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
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/node/maintenance"
	rbacv1helpers "k8s.io/kubernetes/pkg/apis/rbac/v1"
	"k8s.io/kubernetes/pkg/features"
)

// The aggregated roles admin, edit and view have no rules for NodeMaintenances: they are granted in
// a namespace, and nodes are for cluster administrators, too.

// addNodeMaintenanceControllerRole adds the role of the nodemaintenance-controller.
func addNodeMaintenanceControllerRole(roles *[]rbacv1.ClusterRole, bindings *[]rbacv1.ClusterRoleBinding) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeNodeMaintenance) {
		return
	}
	role := rbacv1.ClusterRole{
		// Same name as in k8s.io/kubernetes/cmd/kube-controller-manager/names.
		ObjectMeta: metav1.ObjectMeta{Name: saRolePrefix + "nodemaintenance-controller"},
		Rules: []rbacv1.PolicyRule{
			// The controller sets the finalizer and, when the object is deleted, the stage.
			rbacv1helpers.NewRule("get", "list", "watch", "update", "patch").Groups(coordinationGroup).Resources("nodemaintenances").RuleOrDie(),
			rbacv1helpers.NewRule("update", "patch").Groups(coordinationGroup).Resources("nodemaintenances/status").RuleOrDie(),
			// The controller cordons and uncordons, and reports conditions and, with the verb
			// control, the maintenance status: see plugin/pkg/admission/nodemaintenance.
			rbacv1helpers.NewRule("get", "list", "watch", "patch").Groups(legacyGroup).Resources("nodes").RuleOrDie(),
			rbacv1helpers.NewRule("patch", maintenance.ControlVerb).Groups(legacyGroup).Resources("nodes/status").RuleOrDie(),
			// Evictions are requested by Server-Side Apply, which is a patch that may create.
			rbacv1helpers.NewRule("get", "list", "watch", "create", "patch").Groups(coordinationGroup).Resources("evictionrequests").RuleOrDie(),
			// Its name is reserved, so that owners of pods cannot call a drain off.
			rbacv1helpers.NewRule(coordinationv1alpha1.EvictionRequestVerb).Groups(coordinationGroup).
				Resources(coordinationv1alpha1.EvictionRequesterResource).Names(coordinationv1alpha1.NodeMaintenanceRequester).RuleOrDie(),
			// A requester needs to delete pods, see plugin/pkg/admission/evictionrequest. The controller itself
			// deletes them only for spec.escalation.
			rbacv1helpers.NewRule("get", "list", "watch", "delete").Groups(legacyGroup).Resources("pods").RuleOrDie(),
			rbacv1helpers.NewRule("list", "watch").Groups(policyGroup).Resources("poddisruptionbudgets").RuleOrDie(),
			// Static pods stay if kubelets may not report that they stop them.
			rbacv1helpers.NewRule("create").Groups(authorizationGroup).Resources("subjectaccessreviews").RuleOrDie(),
			// Templates that name a node have pods come back to it.
			rbacv1helpers.NewRule("list", "watch").Groups(batchGroup).Resources("jobs").RuleOrDie(),
			rbacv1helpers.NewRule("list", "watch").Groups(appsGroup).Resources("replicasets", "statefulsets").RuleOrDie(),
			rbacv1helpers.NewRule("list", "watch").Groups(legacyGroup).Resources("replicationcontrollers").RuleOrDie(),
			eventsRule(),
		},
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceBudgets) {
		role.Rules = append(role.Rules,
			rbacv1helpers.NewRule("get", "list", "watch").Groups(coordinationGroup).Resources("nodemaintenancebudgets").RuleOrDie(),
			rbacv1helpers.NewRule("update").Groups(coordinationGroup).Resources("nodemaintenancebudgets/status").RuleOrDie(),
			// A node is given back when its pods of DaemonSets run.
			rbacv1helpers.NewRule("list", "watch").Groups(appsGroup).Resources("daemonsets").RuleOrDie(),
			// Pod policies select namespaces by labels. Volumes of pods that stay are not waited for.
			rbacv1helpers.NewRule("list", "watch").Groups(legacyGroup).Resources("namespaces", "persistentvolumeclaims").RuleOrDie(),
			rbacv1helpers.NewRule("list", "watch").Groups(storageGroup).Resources("volumeattachments").RuleOrDie(),
			// spec.escalation passes over interceptors, and deletes pods, which says why first.
			rbacv1helpers.NewRule("patch", coordinationv1alpha1.EvictionRequestEscalateVerb).Groups(coordinationGroup).Resources("evictionrequests/status").RuleOrDie(),
			rbacv1helpers.NewRule("patch").Groups(legacyGroup).Resources("pods/status").RuleOrDie(),
		)
	}
	addControllerRole(roles, bindings, role)
}

// nodeMaintenanceKubeletRules are the rules of nodes whose kubelets take part in maintenances. The
// node authorizer restricts them to the EvictionRequests of the node's own mirror pods, and to the
// NodeMaintenance of the shutdowns of the node.
func nodeMaintenanceKubeletRules() []rbacv1.PolicyRule {
	if !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceAwareKubelet) {
		return nil
	}
	return []rbacv1.PolicyRule{
		rbacv1helpers.NewRule("get", "list", "watch").Groups(coordinationGroup).Resources("evictionrequests").RuleOrDie(),
		rbacv1helpers.NewRule("update", "patch").Groups(coordinationGroup).Resources("evictionrequests/status").RuleOrDie(),
		rbacv1helpers.NewRule(coordinationv1alpha1.EvictionInterceptVerb).Groups(coordinationGroup).
			Resources(coordinationv1alpha1.EvictionInterceptorResource).Names(coordinationv1alpha1.EvictionInterceptorKubelet).RuleOrDie(),
		rbacv1helpers.NewRule("create", "get", "list", "watch", "update", "patch", "delete").Groups(coordinationGroup).Resources("nodemaintenances").RuleOrDie(),
	}
}
