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
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	rbacv1helpers "k8s.io/kubernetes/pkg/apis/rbac/v1"
	"k8s.io/kubernetes/pkg/features"
)

// staticPodInterceptorRules are the rules of nodes whose kubelets stop static pods. The node
// authorizer restricts the requests to those of the node's own mirror pods.
func staticPodInterceptorRules() []rbacv1.PolicyRule {
	if !utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceAwareKubelet) {
		return nil
	}
	return []rbacv1.PolicyRule{
		rbacv1helpers.NewRule("get", "list", "watch").Groups(coordinationGroup).Resources("evictionrequests").RuleOrDie(),
		rbacv1helpers.NewRule("update", "patch").Groups(coordinationGroup).Resources("evictionrequests/status").RuleOrDie(),
		rbacv1helpers.NewRule(coordinationv1alpha1.EvictionInterceptVerb).Groups(coordinationGroup).
			Resources(coordinationv1alpha1.EvictionInterceptorResource).Names(coordinationv1alpha1.EvictionInterceptorKubelet).RuleOrDie(),
	}
}
