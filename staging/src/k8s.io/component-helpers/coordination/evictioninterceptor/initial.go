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

package evictioninterceptor

import (
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/evictionrequest"
)

// Targets returns the names of the interceptors of the pod in the order in which they are activated:
// those that it names in its spec or by annotation, the default ones for its kind, and the built-in
// one. There is at least one.
func Targets(pod *v1.Pod) []string {
	return TargetNames(named(pod), pod.Annotations, evictionrequest.DefaultInterceptors(pod))
}

// AllTargets returns Targets and the responders of the pod (spec.evictionResponders), for those who serve
// lifecycle.k8s.io: responders with a priority above 10000, which is that of controllers, act first, and the others
// after all interceptors that have a deadline, but before the Deployment controller, which replaces the pod and removes it.
func AllTargets(pod *v1.Pod) []string {
	return targetNames(named(pod), pod.Annotations, evictionrequest.DefaultInterceptors(pod), respondersOf(pod))
}

// OwnTargets returns those of Targets that the pod has because somebody named them, in the same order.
func OwnTargets(pod *v1.Pod) []string {
	return TargetNames(named(pod), pod.Annotations, nil)
}

func named(pod *v1.Pod) []string {
	var names []string
	for _, interceptor := range pod.Spec.EvictionInterceptors {
		names = append(names, interceptor.Name)
	}
	return names
}

// Initialize records the interceptors of a pod in the status of its request, see Targets, and activates the first
// one at this time (KEP-4563, Eviction Request Controller). Who creates the request or processes it
// first does so.
func Initialize(status *coordinationv1alpha1.EvictionRequestStatus, targets []string, now metav1.Time) {
	status.TargetInterceptors, status.Interceptors = nil, nil
	for _, name := range targets {
		status.TargetInterceptors = append(status.TargetInterceptors, coordinationv1alpha1.Interceptor{Name: name})
		status.Interceptors = append(status.Interceptors, coordinationv1alpha1.InterceptorStatus{Name: name})
	}
	status.ActiveInterceptors = []string{status.TargetInterceptors[0].Name}
	status.ActivationTime = &now
}

// MaxLabelsSize is how many bytes of labels, by LabelsSize, a request gets from its pod. A pod may have a megabyte of them, with which
// its request would be too large for etcd.
const MaxLabelsSize = 32 * 1024

// ControllerFieldManager is the field manager of the evictionrequest-controller, whose fields do not count for the limit of
// the size of a request: it must always be able to withdraw callers of pods/eviction.
const ControllerFieldManager = "evictionrequest-controller"

// FieldSize is what a label or an annotation counts besides its key and its value: a byte more than the "f:":{}, around
// the key in managed fields. A client that resets these has the next apply name all fields.
const FieldSize = 9

// LabelsSize returns what labels count, in bytes.
func LabelsSize(labels map[string]string) int {
	size := 0
	for key, value := range labels {
		size += len(key) + len(value) + FieldSize
	}
	return size
}

// MissingLabels returns the labels of the pod that its request lacks or has with another value.
// Interceptors select requests by the labels of the pods (KEP-4563, Label Synchronization). Labels that
// only the request has are kept: former labels of the pod cannot be distinguished from labels that a
// requester has set.
func MissingLabels(request, pod map[string]string) map[string]string {
	if LabelsSize(pod) > MaxLabelsSize {
		return nil // None, rather than some at random.
	}
	var missing map[string]string
	for key, value := range pod {
		if current, found := request[key]; found && current == value {
			continue
		}
		if missing == nil {
			missing = map[string]string{}
		}
		missing[key] = value
	}
	return missing
}
