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

package describe

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// TestDescribeDeploymentEviction also verifies that nothing changes without an eviction: the golden
// files differ only in the message of the condition.
func TestDescribeDeploymentEviction(t *testing.T) {
	surging := appsv1.DeploymentCondition{
		Type: deploymentEvictionInProgress, Status: corev1.ConditionTrue, Reason: "Surging",
		Message: "Surging 1/1: pods are removed\twhen their replacements are available.",
	}
	over, wordless := surging, surging
	over.Status, wordless.Message = corev1.ConditionFalse, ""
	for name, conditions := range map[string][]appsv1.DeploymentCondition{
		"deployment": nil, "deployment-surging": {surging}, "deployment-over": {over}, "deployment-wordless": {wordless},
	} {
		synctest.Test(t, func(t *testing.T) {
			deployment := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
				Spec: appsv1.DeploymentSpec{
					Replicas: ptr.To[int32](1),
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
					Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
						MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1)),
					}},
					Template: corev1.PodTemplateSpec{Spec: podSpec()},
				},
				Status: appsv1.DeploymentStatus{
					Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
					Conditions: append([]appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", Message: "Deployment has minimum availability."}}, conditions...),
				},
			}
			output, err := (&DeploymentDescriber{client: fake.NewClientset(deployment)}).Describe("default", "web", DescriberSettings{})
			if err != nil {
				t.Fatal(err)
			}
			compareWithGolden(t, filepath.Join("evictionrequest", name+".txt"), output)
		})
	}
}
