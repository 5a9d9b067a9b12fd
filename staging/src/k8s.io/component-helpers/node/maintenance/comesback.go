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

package maintenance

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

const (
	// ToleratesCordon is why pods come back to a cordoned node that kube-scheduler binds to it.
	ToleratesCordon = "tolerates " + v1.TaintNodeUnschedulable

	// NamesNode is why pods come back that kube-scheduler does not bind.
	NamesNode = "has spec.nodeName, or came while the node was schedulable"
)

// cordonTaint is what a cordoned node has for kube-scheduler.
var cordonTaint = v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}

// ComesBack reports whether its controller may run a pod that replaces this one on the same node, although
// that is cordoned: see ToleratesCordon. Pods of DaemonSets and static pods are not meant: those that run
// them take part in the drain.
func ComesBack(pod *v1.Pod) bool {
	return metav1.GetControllerOf(pod) != nil && toleratesCordon(pod)
}

// WhyComesBack says why a pod runs on a node that was cordoned before the pod was created. Both are possible
// for every pod: which one it is follows from its tolerations.
func WhyComesBack(pod *v1.Pod) string {
	if toleratesCordon(pod) {
		return ToleratesCordon
	}
	return NamesNode
}

func toleratesCordon(pod *v1.Pod) bool {
	return PodTypeOf(pod) == v1.PodTypeDefault &&
		corev1helpers.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, &cordonTaint, false)
}
