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

package replicaset

import (
	"context"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
)

// DeletePod deletes a pod with the grace period that callers of pods/eviction have asked for: a pod of a Deployment that
// has been replaced is not evicted, but deleted when the ReplicaSet is scaled down.
func (c interceptedPodControl) DeletePod(ctx context.Context, namespace, name string, object runtime.Object) error {
	if pods, deletes := c.PodControlInterface.(controller.RealPodControl); deletes {
		if seconds := c.gracePeriodOf(namespace, name); seconds != nil {
			pods.KubeClient = gracefulClient{pods.KubeClient, *seconds}
			return pods.DeletePod(ctx, namespace, name, object)
		}
	}
	return c.PodControlInterface.DeletePod(ctx, namespace, name, object)
}

// gracePeriodOf returns the grace period of a pod in whose eviction it is the turn of the controllers of its Deployment,
// or of those that evict it, or nil for its own. While an interceptor before them is at work, the pod is deleted for
// another reason.
func (c interceptedPodControl) gracePeriodOf(namespace, name string) *int64 {
	pod, err := c.podLister.Pods(namespace).Get(name)
	if err != nil {
		return nil
	}
	request, err := c.requestLister.EvictionRequests(namespace).Get(string(pod.UID))
	if err != nil || evictionrequesttools.IsFinished(request.Status.Conditions) || !slices.ContainsFunc(request.Status.ActiveInterceptors, mayEndPod) {
		return nil
	}
	return podeviction.GracePeriodOf(request, pod)
}

// mayEndPod reports whether the pod may go in the turn of this interceptor.
func mayEndPod(interceptor string) bool {
	switch interceptor {
	case coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet, coordinationv1alpha1.EvictionInterceptorImperative:
		return true
	}
	return false
}

// gracefulClient deletes pods with a grace period.
type gracefulClient struct {
	clientset.Interface
	seconds int64
}

// CoreV1 returns a client of the group.
func (c gracefulClient) CoreV1() corev1client.CoreV1Interface {
	return gracefulCore{c.Interface.CoreV1(), c.seconds}
}

type gracefulCore struct {
	corev1client.CoreV1Interface
	seconds int64
}

// Pods returns a client of the pods in a namespace.
func (c gracefulCore) Pods(namespace string) corev1client.PodInterface {
	return gracefulPods{c.CoreV1Interface.Pods(namespace), c.seconds}
}

type gracefulPods struct {
	corev1client.PodInterface
	seconds int64
}

// Delete deletes a pod with the grace period.
func (p gracefulPods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	options.GracePeriodSeconds = &p.seconds
	return p.PodInterface.Delete(ctx, name, options)
}
