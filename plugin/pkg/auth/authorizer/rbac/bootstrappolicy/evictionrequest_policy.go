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
	rbacv1helpers "k8s.io/kubernetes/pkg/apis/rbac/v1"
	"k8s.io/kubernetes/pkg/features"
)

// evictionRequestRules returns the rule for EvictionRequests of the aggregated user roles. It
// excludes the status, which belongs to the controller and the interceptors.
func evictionRequestRules(verbs ...string) []rbacv1.PolicyRule {
	if !utilfeature.DefaultFeatureGate.Enabled(features.EvictionRequestAPI) {
		return nil
	}
	return []rbacv1.PolicyRule{
		rbacv1helpers.NewRule(verbs...).Groups(coordinationGroup).Resources("evictionrequests").RuleOrDie(),
	}
}

// addEvictionRequestControllerRole adds the role of the evictionrequest-controller.
func addEvictionRequestControllerRole(roles *[]rbacv1.ClusterRole, bindings *[]rbacv1.ClusterRoleBinding) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.EvictionRequestAPI) {
		return
	}
	role := rbacv1.ClusterRole{
		// Same name as in k8s.io/kubernetes/cmd/kube-controller-manager/names.
		ObjectMeta: metav1.ObjectMeta{Name: saRolePrefix + "evictionrequest-controller"},
		Rules: []rbacv1.PolicyRule{
			// The controller copies the labels of the pod, and deletes finished requests. For other
			// changes it would need the permission to delete pods, see
			// plugin/pkg/admission/evictionrequest.
			rbacv1helpers.NewRule("get", "list", "watch", "patch", "delete").Groups(coordinationGroup).Resources("evictionrequests").RuleOrDie(),
			// A PodGroup and its ancestors say whether its pods may be evicted one by one.
			rbacv1helpers.NewRule("get").Groups(schedulingGroup).Resources("podgroups", "compositepodgroups").RuleOrDie(),
			// The controller patches as a stand-in for workload controllers whose gates are off.
			// With the verb control it may write the whole status, including their reports.
			rbacv1helpers.NewRule("update", "patch", coordinationv1alpha1.EvictionRequestControlVerb).Groups(coordinationGroup).Resources("evictionrequests/status").RuleOrDie(),
			rbacv1helpers.NewRule("get", "list", "watch").Groups(legacyGroup).Resources("pods").RuleOrDie(),
			rbacv1helpers.NewRule("create").Groups(legacyGroup).Resources("pods/eviction").RuleOrDie(),
			// Nodes say which drain a request is for.
			rbacv1helpers.NewRule("list", "watch").Groups(legacyGroup).Resources("nodes").RuleOrDie(),
			rbacv1helpers.NewRule("list", "watch").Groups(policyGroup).Resources("poddisruptionbudgets").RuleOrDie(),
			eventsRule(),
		},
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.EvictionRequestForEvictions) {
		// It evicts pods whose interceptors are done, which the API server may not know yet.
		role.Rules = append(role.Rules, rbacv1helpers.NewRule(coordinationv1alpha1.EvictionBypassVerb).Groups(coordinationGroup).Resources("evictionrequests").RuleOrDie())
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.DeploymentPodSurge) {
		// A request is canceled only if the ReplicaSet of the pod is not about to remove it.
		role.Rules = append(role.Rules, rbacv1helpers.NewRule("get").Groups(appsGroup).Resources("replicasets").RuleOrDie())
	}
	addControllerRole(roles, bindings, role)
	if utilfeature.DefaultFeatureGate.Enabled(features.LifecycleEvictions) {
		addControllerRole(roles, bindings, lifecycleEvictionControllerRole())
	}
}

// lifecycleEvictionControllerRole returns the role of the lifecycle-eviction-controller. What it does on behalf of others,
// plugin/pkg/admission/evictionrequest has allowed them.
func lifecycleEvictionControllerRole() rbacv1.ClusterRole {
	return rbacv1.ClusterRole{
		// Same name as in k8s.io/kubernetes/cmd/kube-controller-manager/names.
		ObjectMeta: metav1.ObjectMeta{Name: saRolePrefix + "lifecycle-eviction-controller"},
		Rules: []rbacv1.PolicyRule{
			rbacv1helpers.NewRule("get", "list", "watch").Groups(lifecycleGroup).Resources("evictionrequests").RuleOrDie(),
			// The admission plugin OwnerReferencesPermissionEnforcement wants delete for owners that are added.
			rbacv1helpers.NewRule("get", "list", "watch", "create", "update", "delete").Groups(lifecycleGroup).Resources("evictions").RuleOrDie(),
			rbacv1helpers.NewRule("update", coordinationv1alpha1.EvictionRequestControlVerb).Groups(lifecycleGroup).Resources("evictionrequests/status", "evictions/status").RuleOrDie(),
			// Evictions are requested by Server-Side Apply, which is a patch that may create. The controller deletes
			// no pods, but a requester needs this permission.
			rbacv1helpers.NewRule("get", "list", "watch", "create", "patch").Groups(coordinationGroup).Resources("evictionrequests").RuleOrDie(),
			rbacv1helpers.NewRule("get", "list", "watch", "delete").Groups(legacyGroup).Resources("pods").RuleOrDie(),
			// It reports for all responders.
			rbacv1helpers.NewRule("update").Groups(coordinationGroup).Resources("evictionrequests/status").RuleOrDie(),
			rbacv1helpers.NewRule(coordinationv1alpha1.EvictionInterceptVerb).Groups(coordinationGroup).Resources(coordinationv1alpha1.EvictionInterceptorResource).RuleOrDie(),
			eventsRule(),
		},
	}
}

// interceptorRules returns the permissions that k8s.io/client-go/tools/evictionrequest needs to act
// as the interceptors of these names.
func interceptorRules(names ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rbacv1helpers.NewRule("get", "list", "watch").Groups(coordinationGroup).Resources("evictionrequests").RuleOrDie(),
		rbacv1helpers.NewRule("patch").Groups(coordinationGroup).Resources("evictionrequests/status").RuleOrDie(),
		interceptRule(names...),
	}
}

// interceptRule allows reporting as the interceptors of these names, and as no other. The admission
// plugin EvictionRequest requires it for changes of their entries.
func interceptRule(names ...string) rbacv1.PolicyRule {
	if len(names) == 0 {
		panic("a rule without resource names would apply to all interceptors")
	}
	return rbacv1helpers.NewRule(coordinationv1alpha1.EvictionInterceptVerb).Groups(coordinationGroup).
		Resources(coordinationv1alpha1.EvictionInterceptorResource).Names(names...).RuleOrDie()
}
