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

package evictionrequest

import (
	"encoding/json"
	"fmt"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// registering returns the annotation that registers an interceptor.
func registering(name, value string) map[string]string {
	return map[string]string{coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + name: value}
}

// annotate adds annotations to a pod.
func (c *cluster) annotate(pod *v1.Pod, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Pods(c.namespace).Patch(c.t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// testRegistration registers interceptors for a running pod, and tries invalid registrations.
func testRegistration(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("running", withInterceptors(first)))
	for name, value := range map[string]string{first: "1", second: "100000/copies-data", "deployment.apps.k8s.io": "10000/controller"} {
		if err := c.annotate(pod, registering(name, value)); err != nil {
			t.Errorf("registering %s as %q: %v", name, value, err)
		}
	}

	tests := []struct{ name, value, want string }{
		{second, "100001", `Invalid value: "100001": must be "<priority>" or "<priority>/<role>", where the priority is an integer from 0 to 100000`},
		{second, "9999/controller", `Invalid value: "9999/controller": the role controller requires the priority 10000: use that priority or another role`},
		{second, "10000/controller", `Invalid value: "10000/controller": deployment.apps.k8s.io already has the role controller, which only one interceptor may have: use another role or none`},
		{imperative, "1", `Invalid value: "imperative-eviction.k8s.io": is reserved, because every EvictionRequest has it: remove it`},
	}
	for _, test := range tests {
		key := coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + test.name
		reason := fmt.Sprintf("annotations[%s]: %s", key, test.want)
		t.Run(test.name+" as "+test.value, func(t *testing.T) {
			expectReasons(t, []string{"metadata." + reason}, c.annotate(pod, registering(test.name, test.value)))

			// In a template, the error is reported before any pod is created.
			template := newPod("pod")
			template.Annotations = registering(test.name, test.value)
			if test.name == second && test.value == "10000/controller" {
				template.Annotations[coordinationv1alpha1.EvictionInterceptorAnnotationPrefix+"deployment.apps.k8s.io"] = "10000/controller"
			}
			deployment := newDeployment("deployment", template)
			deployment.Spec.Template.Annotations = template.Annotations
			_, err := c.client.AppsV1().Deployments(c.namespace).Create(t.Context(), deployment, metav1.CreateOptions{})
			expectReasons(t, []string{"spec.template." + reason}, err)
		})
	}

	grouped := c.createPod(newPod("grouped", inSchedulingGroup("gang")))
	if err := c.annotate(grouped, registering(first, "1")); err != nil {
		t.Errorf("in a scheduling group: %v", err)
	}
}
