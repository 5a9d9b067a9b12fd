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

package deploymentsurge

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
)

// testRegisteredInTemplate has an interceptor that the template registers by annotation, and
// another one that a client registers which may write the status of the running pod. The former
// acts before the Deployment, the latter after all others.
func testRegisteredInTemplate(t *testing.T, c *cluster) {
	const saver, late = "saver.example.com", "late.example.com"
	const deployment, replicaSet = coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet
	const key = coordinationv1alpha1.EvictionInterceptorAnnotationPrefix
	c.startControllers()
	pod := c.createDeployment(newDeployment(1, func(d *apps.Deployment) {
		d.Spec.Template.Annotations = map[string]string{key + saver: "20000/copies-data", key + deployment: "10000/controller"}
	}))[0]
	history := c.watchAll()
	c.expectInterceptors(pod, saver, deployment, replicaSet)
	if got := pod.Annotations[key+saver]; got != "20000/copies-data" {
		t.Errorf("the annotation of the pod is %q, must be that of the template", got)
	}
	if got := len(c.replicaSets()); got != 1 {
		t.Errorf("%d ReplicaSets, must be 1: there must be no rollout", got)
	}

	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"100000"}}}`, key+late)
	if _, err := c.Client.CoreV1().Pods(c.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatalf("annotating pod %s: %v", pod.Name, err)
	}
	c.request(pod)
	c.await("the turn of the saver", states{string(pod.UID): "Intercepting by saver", "replicaSets": "1", "pods": "1 ready", "condition": "none"})
	var order []string
	for _, target := range c.requestFor(pod).Status.TargetInterceptors {
		order = append(order, target.Name)
	}
	if diff := gocmp.Diff([]string{saver, deployment, replicaSet, late, coordinationv1alpha1.EvictionInterceptorImperative}, order); diff != "" {
		t.Errorf("unexpected order (-want +got):\n%s", diff)
	}

	c.complete(pod, saver)
	c.awaitMoved(1, pod)
	c.expectSurged(history, bounds{most: 2, least: 1})
}

// testInPodGroup has pods of a group that lets them be evicted one by one, which is the default: they are like any others.
func testInPodGroup(t *testing.T, c *cluster) {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "single"},
		Spec:       schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}},
	}
	if _, err := c.Client.SchedulingV1beta1().PodGroups(c.Namespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating a PodGroup: %v", err)
	}
	c.startControllers()
	pod := c.createDeployment(newDeployment(1, func(d *apps.Deployment) {
		d.Spec.Template.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group.Name}
	}))[0]
	history := c.watchAll()
	c.expectInterceptors(pod, coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet)
	c.request(pod)
	c.awaitMoved(1, pod)
	c.expectSurged(history, bounds{most: 2, least: 1})
}

// complete completes the turn of an interceptor.
func (c *cluster) complete(pod *v1.Pod, interceptor string) {
	c.T.Helper()
	status := coordinationapply.EvictionRequestStatus().WithInterceptors(coordinationapply.InterceptorStatus().WithName(interceptor).WithCompletionTime(metav1.Now()))
	patch := coordinationapply.EvictionRequest(string(pod.UID), c.Namespace).WithStatus(status)
	options := metav1.ApplyOptions{FieldManager: interceptor, Force: true}
	if _, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).ApplyStatus(c.T.Context(), patch, options); err != nil {
		c.T.Fatalf("completing the turn of %s: %v", interceptor, err)
	}
}
