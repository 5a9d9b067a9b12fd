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
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

const (
	interceptedWarning = "leaving Pods with eviction interceptors (use --evict-intercepted-pods to evict them)"
	respondersWarning  = "leaving Pods with eviction responders, which do not act before this eviction (use --evict-intercepted-pods to evict them)"
)

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

// Responders returns the names of the responders of the pod (spec.evictionResponders).
func Responders(pod *corev1.Pod) []string {
	var names []string
	for _, responder := range pod.Spec.EvictionResponders {
		names = append(names, responder.Name)
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
		if !i.Status.Delete && (i.Status.Message == interceptedWarning || i.Status.Message == respondersWarning) {
			pods = append(pods, i.Pod)
		}
	}
	return pods
}

// interceptedPodFilter comes before the filters that fail: what happens to the local
// data of a pod that stays is no concern of drain.
func (d *Helper) interceptedPodFilter(pod corev1.Pod) PodDeleteStatus {
	intercepted := isIntercepted(&pod)
	if !d.SkipInterceptedPods || !intercepted && len(pod.Spec.EvictionResponders) == 0 {
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
	switch {
	case intercepted:
		return MakePodDeleteStatusWithWarning(false, interceptedWarning)
	case d.waitsForResponders(&pod) || !d.servesResponders():
		return MakePodDeleteStatusOkay()
	}
	return MakePodDeleteStatusWithWarning(false, respondersWarning)
}

// waitsForResponders reports whether the server lets the responders of the pod act before it is evicted. What decides that
// are feature gates, so the server is asked by a dry run.
func (d *Helper) waitsForResponders(pod *corev1.Pod) bool {
	if d.DisableEviction || d.Client == nil {
		return false
	}
	err := d.Client.PolicyV1().Evictions(pod.Namespace).Evict(d.getContext(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{
			DryRun: []string{metav1.DryRunAll}, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		},
	})
	return apierrors.HasStatusCause(err, coordinationv1alpha1.EvictionInterceptedCause)
}

// servesResponders reports whether the server serves the API by which responders hear of an eviction; true if that is
// unknown. Without it, none acts.
func (d *Helper) servesResponders() bool {
	if d.Client == nil {
		return true
	}
	_, err := d.Client.Discovery().ServerResourcesForGroupVersion(lifecyclev1alpha1.SchemeGroupVersion.String())
	return !apierrors.IsNotFound(err)
}

// evictionAnnotations returns the annotations of the eviction of a pod. Interceptors that are the
// controllers of its workload are not bypassed: they give up by themselves, and nothing is lost by
// waiting for a replacement.
func (d *Helper) evictionAnnotations(pod *corev1.Pod) map[string]string {
	if !d.BypassInterceptors || !isIntercepted(pod) && len(pod.Spec.EvictionResponders) == 0 {
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
