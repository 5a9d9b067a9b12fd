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
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
)

// rulesWithWorkloads returns the rules of all cluster roles with EvictionRequests and
// NodeMaintenances on and this state of the gates of the workloads.
func rulesWithWorkloads(t *testing.T, deployments, daemonSets, statefulSets, pickers bool) map[string][]rbacv1.PolicyRule {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true,
		features.DeploymentPodSurge: deployments, features.NodeMaintenanceAwareDaemonSet: daemonSets,
		features.StatefulSetEvictionPacing: statefulSets, features.DownscalePodPicker: pickers,
	})
	return allRules()
}

// All added rules are listed here, so that no permission is added by accident: an interceptor that
// reports in a request may not change it, and only the ReplicaSet controller evicts.
func TestWorkloadInterceptorRules(t *testing.T) {
	const (
		daemonSet   = "system:controller:daemon-set-controller"
		deployment  = "system:controller:deployment-controller"
		replicaSet  = "system:controller:replicaset-controller"
		statefulSet = "system:controller:statefulset-controller"
	)
	coordination := []string{"coordination.k8s.io"}
	reads := rule([]string{"get", "list", "watch"}, coordination, []string{"evictionrequests"})
	reports := rule([]string{"patch"}, coordination, []string{"evictionrequests/status"})
	intercepts := func(name string) rbacv1.PolicyRule {
		intercepts := rule([]string{"intercept"}, coordination, []string{"evictioninterceptors"})
		intercepts.ResourceNames = []string{name}
		return intercepts
	}
	deploymentRules := []rbacv1.PolicyRule{reads, reports, intercepts("deployment.apps.k8s.io")}
	evicts := rule([]string{"create"}, []string{""}, []string{"pods/eviction"})
	replicaSetRules := []rbacv1.PolicyRule{reads, reports, intercepts("replicaset.apps.k8s.io"), evicts, rule([]string{"get"}, []string{""}, []string{"pods"})}
	pickerRules := []rbacv1.PolicyRule{
		rule([]string{"get"}, []string{""}, []string{"pods", "secrets", "services"}),
		rule([]string{"list", "watch"}, []string{"discovery.k8s.io"}, []string{"endpointslices"}),
	}
	// Before a request is canceled, its controller reads whether the ReplicaSet removes the pod.
	requestRules := []rbacv1.PolicyRule{rule([]string{"get"}, []string{"apps"}, []string{"replicasets"})}
	daemonSetRules := []rbacv1.PolicyRule{reads, reports, intercepts("daemonset.apps.k8s.io")}
	statefulSetRules := []rbacv1.PolicyRule{reads, reports, intercepts("statefulset.apps.k8s.io")}
	tests := map[string]struct {
		deployments, daemonSets, statefulSets, pickers bool
		want                                           map[string][]rbacv1.PolicyRule
		wantWriters                                    []string
	}{
		"all off": {want: map[string][]rbacv1.PolicyRule{}},
		"DeploymentPodSurge": {
			deployments: true,
			want:        map[string][]rbacv1.PolicyRule{deployment: deploymentRules, replicaSet: replicaSetRules, evictionRequestController: requestRules},
			wantWriters: []string{deployment, replicaSet},
		},
		"NodeMaintenanceAwareDaemonSet": {
			daemonSets:  true,
			want:        map[string][]rbacv1.PolicyRule{daemonSet: daemonSetRules},
			wantWriters: []string{daemonSet},
		},
		"StatefulSetEvictionPacing": {
			statefulSets: true,
			want:         map[string][]rbacv1.PolicyRule{statefulSet: statefulSetRules},
			wantWriters:  []string{statefulSet},
		},
		"DownscalePodPicker": {
			pickers: true,
			want:    map[string][]rbacv1.PolicyRule{replicaSet: pickerRules},
		},
		"all on": {
			deployments: true, daemonSets: true, statefulSets: true, pickers: true,
			want: map[string][]rbacv1.PolicyRule{
				deployment: deploymentRules, replicaSet: slices.Concat(replicaSetRules, pickerRules), evictionRequestController: requestRules, daemonSet: daemonSetRules, statefulSet: statefulSetRules,
			},
			wantWriters: []string{daemonSet, deployment, replicaSet, statefulSet},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			off := rulesWithWorkloads(t, false, false, false, false)
			on := rulesWithWorkloads(t, test.deployments, test.daemonSets, test.statefulSets, test.pickers)
			if diff := cmp.Diff(test.want, addedRules(t, off, on)); diff != "" {
				t.Errorf("unexpected rules that the gates add (-want, +got):\n%s", diff)
			}
			if roles := sets.KeySet(on).Difference(sets.KeySet(off)); len(roles) > 0 {
				t.Errorf("the gates add the roles %v", sets.List(roles))
			}
			// As for the EvictionRequest controller.
			added := sets.New(statusWriters(on, "evictionrequests/status")...).Difference(sets.New(statusWriters(off, "evictionrequests/status")...))
			if diff := cmp.Diff(sets.New(test.wantWriters...), added); diff != "" {
				t.Errorf("unexpected writers of the status (-want, +got):\n%s", diff)
			}
		})
	}
}

// A rule without resource names would allow reporting as every interceptor.
func TestInterceptRuleNeedsNames(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a rule without an interceptor was created")
		}
	}()
	interceptorRules()
}
