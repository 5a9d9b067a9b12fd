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
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// kubelet simulates the scheduler and all kubelets of a namespace: pods are scheduled, become ready
// at once unless a test prevents it, and terminate as soon as they are deleted.
type kubelet struct {
	c      *cluster
	pods   corelisters.PodNamespaceLister
	queue  workqueue.TypedRateLimitingInterface[string]
	lastIP atomic.Int32

	lock sync.Mutex
	// unready reports which pods do not become or stay ready.
	unready func(*v1.Pod) bool
	// lingering reports which pods do not terminate yet.
	lingering func(*v1.Pod) bool
}

func startKubelet(c *cluster) *kubelet {
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c.Client, 0, informers.WithNamespace(c.Namespace))
	pods := factory.Core().V1().Pods()
	k := &kubelet{
		c:         c,
		pods:      pods.Lister().Pods(c.Namespace),
		queue:     workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		unready:   none,
		lingering: none,
	}
	enqueue := func(obj any) {
		if pod, ok := obj.(*v1.Pod); ok {
			k.queue.Add(pod.Name)
		}
	}
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
	}); err != nil {
		c.T.Fatalf("watching pods: %v", err)
	}
	stop := c.Run(ctx, cancel, factory, func() { k.work(ctx) })
	c.T.Cleanup(func() {
		k.queue.ShutDown()
		stop()
	})
	return k
}

func none(*v1.Pod) bool { return false }

// anyOf returns a function that reports whether a pod is one of these.
func anyOf(pods ...*v1.Pod) func(*v1.Pod) bool {
	return func(pod *v1.Pod) bool {
		for _, other := range pods {
			if other.UID == pod.UID {
				return true
			}
		}
		return false
	}
}

// except returns a function that reports whether a pod is none of these.
func except(pods ...*v1.Pod) func(*v1.Pod) bool {
	known := anyOf(pods...)
	return func(pod *v1.Pod) bool { return !known(pod) }
}

// setUnready sets which pods are unready from now on.
func (k *kubelet) setUnready(unready func(*v1.Pod) bool) {
	k.lock.Lock()
	k.unready = unready
	k.lock.Unlock()
	k.enqueueAll()
}

// setLingering sets which pods do not terminate from now on.
func (k *kubelet) setLingering(lingering func(*v1.Pod) bool) {
	k.lock.Lock()
	k.lingering = lingering
	k.lock.Unlock()
	k.enqueueAll()
}

func (k *kubelet) enqueueAll() {
	pods, err := k.c.Client.CoreV1().Pods(k.c.Namespace).List(k.c.T.Context(), metav1.ListOptions{})
	if err != nil {
		k.c.T.Fatalf("listing pods: %v", err)
	}
	for _, pod := range pods.Items {
		k.queue.Add(pod.Name)
	}
}

func (k *kubelet) work(ctx context.Context) {
	for {
		name, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		if err := k.sync(ctx, name); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			k.queue.AddRateLimited(name)
		} else {
			k.queue.Forget(name)
		}
		k.queue.Done(name)
	}
}

// sync takes the next step for one pod. Its event triggers the step after it.
func (k *kubelet) sync(ctx context.Context, name string) error {
	pod, err := k.pods.Get(name)
	if err != nil {
		return err
	}
	k.lock.Lock()
	ready, lingers := !k.unready(pod), k.lingering(pod)
	k.lock.Unlock()
	pods := k.c.Client.CoreV1().Pods(k.c.Namespace)
	switch {
	case pod.DeletionTimestamp != nil && !lingers:
		options := metav1.NewDeleteOptions(0)
		options.Preconditions = &metav1.Preconditions{UID: &pod.UID}
		return pods.Delete(ctx, name, *options)
	case pod.DeletionTimestamp != nil || podutil.IsPodTerminal(pod):
		return nil
	case pod.Spec.NodeName == "":
		return k.schedule(ctx, pod)
	case pod.Status.Phase != v1.PodRunning || podutil.IsPodReady(pod) != ready:
		_, err := pods.UpdateStatus(ctx, k.withStatus(pod, ready), metav1.UpdateOptions{})
		return err
	}
	return nil
}

// schedule binds a pod to the first schedulable node.
func (k *kubelet) schedule(ctx context.Context, pod *v1.Pod) error {
	for _, name := range []string{k.c.from, k.c.to} {
		node, err := k.c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node.Spec.Unschedulable {
			continue
		}
		return k.c.Client.CoreV1().Pods(pod.Namespace).Bind(ctx, &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target:     v1.ObjectReference{Kind: "Node", Name: name},
		}, metav1.CreateOptions{})
	}
	return fmt.Errorf("pod %s fits no node", pod.Name)
}

func (k *kubelet) withStatus(pod *v1.Pod, ready bool) *v1.Pod {
	pod = pod.DeepCopy()
	status := v1.ConditionFalse
	if ready {
		status = v1.ConditionTrue
	}
	now := metav1.Now()
	pod.Status.Phase = v1.PodRunning
	if pod.Status.PodIP == "" {
		n := k.lastIP.Add(1)
		pod.Status.PodIP = fmt.Sprintf("10.0.%d.%d", n/250, n%250+1)
		pod.Status.PodIPs = []v1.PodIP{{IP: pod.Status.PodIP}}
		pod.Status.StartTime = &now
	}
	if status != v1.ConditionTrue && podutil.IsPodReady(pod) {
		// A pod that was ready has failed. A new one may be slow to start.
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app", RestartCount: 1}}
	}
	podutil.UpdatePodCondition(&pod.Status, &v1.PodCondition{Type: v1.PodReady, Status: status, LastTransitionTime: now})
	return pod
}
