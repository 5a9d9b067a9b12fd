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
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/utils/ptr"
)

const (
	deploymentInterceptor = "deployment.apps.k8s.io"
	replicaSetInterceptor = "replicaset.apps.k8s.io"
)

// workloads are the controllers of Deployments, ReplicaSets and ReplicationControllers. None of
// them acts as deployment.apps.k8s.io: the tests report for it.
type workloads struct {
	informers informers.SharedInformerFactory
	stop      func()
}

// startWorkloads starts the controllers with only the permissions of their roles. intercepting is
// whether they behave as with the gate DeploymentPodSurge enabled.
func (c *cluster) startWorkloads(intercepting bool) workloads {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	factory := c.informers(c.client)
	clientOf := func(controller string) clientset.Interface {
		return c.ClientOf("system:serviceaccount:kube-system:" + controller)
	}
	replicaSets := replicaset.NewReplicaSetController(ctx, factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods(),
		clientOf("replicaset-controller"), replicaset.BurstReplicas)
	work := []func(){func() { replicaSets.Run(ctx, 2) }}
	if intercepting {
		run, err := replicaSets.InterceptEvictions(clientOf("replicaset-controller"), clientOf("replicaset-controller"), factory.Apps().V1().Deployments(),
			factory.Coordination().V1alpha1().EvictionRequests(), factory.Policy().V1().PodDisruptionBudgets())
		if err != nil {
			c.t.Fatalf("intercepting evictions: %v", err)
		}
		work = append(work, func() { run(ctx) })
	}
	deployments, err := deployment.NewDeploymentController(ctx, factory.Apps().V1().Deployments(), factory.Apps().V1().ReplicaSets(),
		factory.Core().V1().Pods(), clientOf("deployment-controller"))
	if err != nil {
		c.t.Fatalf("creating the deployment controller: %v", err)
	}
	replications := replication.NewReplicationManager(ctx, factory.Core().V1().Pods(), factory.Core().V1().ReplicationControllers(),
		clientOf("replication-controller"), replication.BurstReplicas)
	work = append(work, func() { deployments.Run(ctx, 2) }, func() { replications.Run(ctx, 2) })
	return workloads{informers: factory, stop: c.Run(ctx, cancel, factory, func() {
		var running sync.WaitGroup
		for _, run := range work {
			running.Go(run)
		}
		running.Wait()
	})}
}

// newTemplate returns a template of pods on a node with a long grace period: they remain after
// their deletion.
func newTemplate(app string, interceptors ...string) v1.PodTemplateSpec {
	pod := newPod(app, withInterceptors(interceptors...), withGracePeriod(3600))
	return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}
}

// surging is a rolling update strategy with that maxSurge.
func surging(maxSurge intstr.IntOrString) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &maxSurge, MaxUnavailable: ptr.To(intstr.FromInt32(1))},
	}
}

// createDeploymentThat creates a Deployment with one replica and this strategy.
func (c *cluster) createDeploymentThat(name string, strategy appsv1.DeploymentStrategy, interceptors ...string) *appsv1.Deployment {
	c.t.Helper()
	template := newTemplate(name, interceptors...)
	created, err := c.client.AppsV1().Deployments(c.namespace).Create(c.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Strategy: strategy, Template: template,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating Deployment %s: %v", name, err)
	}
	return created
}

func (c *cluster) createReplicaSet(name string, replicas int32, interceptors ...string) *appsv1.ReplicaSet {
	c.t.Helper()
	template := newTemplate(name, interceptors...)
	created, err := c.client.AppsV1().ReplicaSets(c.namespace).Create(c.t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Template: template, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating ReplicaSet %s: %v", name, err)
	}
	return created
}

func (c *cluster) createReplicationController(name string) {
	c.t.Helper()
	template := newTemplate(name)
	if _, err := c.client.CoreV1().ReplicationControllers(c.namespace).Create(c.t.Context(), &v1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.ReplicationControllerSpec{Replicas: ptr.To[int32](1), Template: &template, Selector: template.Labels},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating ReplicationController %s: %v", name, err)
	}
}

func (c *cluster) scaleDeployment(name string, replicas int32) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if _, err := c.client.AppsV1().Deployments(c.namespace).Patch(c.t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("scaling Deployment %s: %v", name, err)
	}
}

func (c *cluster) scaleReplicaSet(name string, replicas int32) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if _, err := c.client.AppsV1().ReplicaSets(c.namespace).Patch(c.t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("scaling ReplicaSet %s: %v", name, err)
	}
}

// awaitPods waits until the workload has that many pods that do not terminate, and returns them in
// the order of their creation.
func (c *cluster) awaitPods(app string, count int) []*v1.Pod {
	c.t.Helper()
	var pods []*v1.Pod
	c.Eventually(fmt.Sprintf("%d pods of %s", count, app), func(ctx context.Context) (bool, string) {
		list, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return false, err.Error()
		}
		pods = nil
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				pods = append(pods, &list.Items[i])
			}
		}
		return len(pods) == count, fmt.Sprintf("%d pods", len(pods))
	})
	slices.SortStableFunc(pods, func(a, b *v1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return pods
}

// ready sets pods to running and ready.
func (c *cluster) ready(pods []*v1.Pod) []*v1.Pod {
	c.t.Helper()
	var running []*v1.Pod
	for _, pod := range pods {
		running = append(running, c.setPodStatus(pod, v1.PodStatus{
			Phase:      v1.PodRunning,
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: pod.CreationTimestamp}},
		}))
	}
	return running
}

func interceptorNames(spec *v1.PodSpec) []string {
	names := []string{}
	for _, interceptor := range spec.EvictionInterceptors {
		names = append(names, interceptor.Name)
	}
	return names
}
