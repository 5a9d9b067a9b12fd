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

package drain

import (
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// workloadInterceptors are put on pods by the controllers that create them. The author of the
// pod has not asked for them, and nothing is lost by an eviction that was not lost before these
// controllers took part in evictions: a budget protects the pod as ever. Were such pods
// left, drain would leave most pods of a cluster, and the flag that takes them would be
// given by habit, also where an interceptor saves data.
var workloadInterceptors = []string{
	coordinationv1alpha1.EvictionInterceptorDaemonSet,
	coordinationv1alpha1.EvictionInterceptorDeployment,
	coordinationv1alpha1.EvictionInterceptorReplicaSet,
	coordinationv1alpha1.EvictionInterceptorStatefulSet,
}

const interceptedWarning = "leaving Pods with eviction interceptors (use --evict-intercepted-pods to evict them nevertheless)"

// Interceptors returns the names of those who want a say in the eviction of the pod:
// first those of its spec, then those registered by annotation, by name.
//
// An annotation counts even if its value is invalid and the server goes on without it:
// to leave such a pod costs a second attempt, to evict a pod too early can cost data.
func Interceptors(pod *corev1.Pod) []string {
	var registered []string
	for key := range pod.Annotations {
		if name, ok := strings.CutPrefix(key, coordinationv1alpha1.EvictionInterceptorAnnotationPrefix); ok {
			registered = append(registered, name)
		}
	}
	slices.Sort(registered)

	var names []string
	for _, interceptor := range pod.Spec.EvictionInterceptors {
		names = append(names, interceptor.Name)
	}
	for _, name := range registered {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// isIntercepted reports whether the pod has interceptors other than the controllers of workloads.
func isIntercepted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(Interceptors(pod), func(name string) bool { return !slices.Contains(workloadInterceptors, name) })
}

// Intercepted returns the pods that are not deleted because they have interceptors.
func (l *PodDeleteList) Intercepted() []corev1.Pod {
	var pods []corev1.Pod
	for _, i := range l.items {
		if !i.Status.Delete && i.Status.Message == interceptedWarning {
			pods = append(pods, i.Pod)
		}
	}
	return pods
}

// interceptedPodFilter comes before the filters that fail: what happens to the local
// data of a pod that stays is no concern of drain.
func (d *Helper) interceptedPodFilter(pod corev1.Pod) PodDeleteStatus {
	if !d.SkipInterceptedPods || !isIntercepted(&pod) {
		return MakePodDeleteStatusOkay()
	}
	// Any finished pod can be removed.
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return MakePodDeleteStatusOkay()
	}
	// It is too late to intercept a pod that terminates, and drain has to wait for it.
	if !pod.DeletionTimestamp.IsZero() {
		return MakePodDeleteStatusOkay()
	}
	return MakePodDeleteStatusWithWarning(false, interceptedWarning)
}
