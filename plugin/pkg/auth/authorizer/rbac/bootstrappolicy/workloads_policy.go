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

// addWorkloadInterceptorRules adds the permissions of interceptors, and for downscale pod pickers, to
// the workload controllers. The shared informers watch with other credentials.
func addWorkloadInterceptorRules(roles []rbacv1.ClusterRole) {
	added := map[string][]rbacv1.PolicyRule{}
	if utilfeature.DefaultFeatureGate.Enabled(features.DeploymentPodSurge) {
		added["deployment-controller"] = interceptorRules(coordinationv1alpha1.EvictionInterceptorDeployment)
		added["replicaset-controller"] = append(interceptorRules(coordinationv1alpha1.EvictionInterceptorReplicaSet),
			// It evicts within the budgets. The permission to delete would bypass them.
			rbacv1helpers.NewRule("create").Groups(legacyGroup).Resources("pods/eviction").RuleOrDie(),
			// After an attempt without a response, it reads whether the pod terminates.
			rbacv1helpers.NewRule("get").Groups(legacyGroup).Resources("pods").RuleOrDie(),
		)
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.NodeMaintenanceAwareDaemonSet) {
		added["daemon-set-controller"] = interceptorRules(coordinationv1alpha1.EvictionInterceptorDaemonSet)
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.StatefulSetEvictionPacing) {
		added["statefulset-controller"] = interceptorRules(coordinationv1alpha1.EvictionInterceptorStatefulSet)
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.DownscalePodPicker) {
		// It finds the pods behind the Services of pickers, and reads the headers for them.
		added["replicaset-controller"] = append(added["replicaset-controller"],
			rbacv1helpers.NewRule("get").Groups(legacyGroup).Resources("services", "secrets", "pods").RuleOrDie(),
			// It never watches; the two verbs go together in every role.
			rbacv1helpers.NewRule("list", "watch").Groups(discoveryGroup).Resources("endpointslices").RuleOrDie(),
		)
	}
	for i := range roles {
		for name, rules := range added {
			if roles[i].Name == saRolePrefix+name {
				roles[i].Rules = append(roles[i].Rules, rules...)
			}
		}
	}
}
