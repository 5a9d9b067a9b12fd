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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// workloadInterceptors are added to pods by the controllers that create them, not by the author of
// the pod. A drain evicts such pods as it always did: their budgets still protect them. If it skipped
// them, it would skip most pods of a cluster, and users would set --evict-intercepted-pods by habit,
// even for pods whose interceptor saves data.
var workloadInterceptors = []string{
	coordinationv1alpha1.EvictionInterceptorDaemonSet,
	coordinationv1alpha1.EvictionInterceptorDeployment,
	coordinationv1alpha1.EvictionInterceptorReplicaSet,
	coordinationv1alpha1.EvictionInterceptorStatefulSet,
}

const interceptedWarning = "leaving Pods with eviction interceptors (use --evict-intercepted-pods to evict them)"

// Interceptors returns the names of the interceptors of the pod: first those of its spec, then those
// registered by annotation, sorted by name.
//
// It includes an annotation with an invalid value, which the server ignores: skipping the pod costs a
// second attempt, evicting it too early can cost data.
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

// evictionAnnotations returns the annotations of the eviction of a pod. Interceptors that are the
// controllers of its workload are not bypassed: they give up by themselves, and nothing is lost by
// waiting for a replacement.
func (d *Helper) evictionAnnotations(pod *corev1.Pod) map[string]string {
	if !d.BypassInterceptors || !isIntercepted(pod) {
		return nil
	}
	return map[string]string{coordinationv1alpha1.EvictionBypassAnnotation: "true"}
}

// refusalFormat returns what is printed for an eviction that is refused for now: name and namespace
// of the pod, the delay until the next attempt, and the error. It is no error that the interceptors
// of the pod are at work.
func refusalFormat(err error) string {
	if apierrors.HasStatusCause(err, coordinationv1alpha1.EvictionInterceptedCause) {
		return "waiting for the interceptors of pods/%q -n %q (will retry after %v): %v\n"
	}
	return "error when evicting pods/%q -n %q (will retry after %v): %v\n"
}
