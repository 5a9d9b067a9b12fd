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

package decision

import (
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// Policies say which pods stay.
type Policies struct {
	// NamespaceLabels returns the labels of a namespace, and false if they are not known.
	NamespaceLabels func(namespace string) (labels.Set, bool)
	// WhyUnstopped returns why the controller of a pod takes no part in maintenances; empty for pods of which it does, and for
	// pods that are evicted.
	WhyUnstopped func(pod *v1.Pod) string
}

// Verdicts returns what happens to the pods that are left on a node. Where a maintenance skips a pod, it
// skips the pods of DaemonSets and the static pods as well: they serve the pod. The maintenance of a shutdown
// has no say: its kubelet writes it, and must not keep others from emptying the node. Nor does it wait for what others
// keep: the machine goes down with it. What nobody would stop, all of them keep. agentsStay names the maintenances that
// skip a pod of the default type.
func (p Policies) Verdicts(node string, pods []*v1.Pod, specs []progress.Spec) (verdicts []progress.Verdict, agentsStay sets.Set[string]) {
	verdicts, agentsStay = make([]progress.Verdict, len(pods)), sets.New[string]()
	draining := progress.IsDraining(specs)
	for i := range verdicts {
		verdicts[i].Action = coordinationv1alpha1.NodeMaintenancePodDrain
		if draining {
			verdicts[i].Unstopped = p.WhyUnstopped(pods[i])
		}
	}
	for i := range specs {
		o := &specs[i]
		if !o.Drains() {
			continue
		}
		if o.IsShutdownOf(node) {
			continue // It comes last.
		}
		keepsAgents := false
		actions := make([]coordinationv1alpha1.NodeMaintenancePodAction, len(pods))
		for j, pod := range pods {
			actions[j] = o.Policies.ActionFor(pod, func() (labels.Set, bool) { return p.NamespaceLabels(pod.Namespace) })
			keepsAgents = keepsAgents || actions[j] == coordinationv1alpha1.NodeMaintenancePodSkip && maintenance.PodTypeOf(pod) == v1.PodTypeDefault
		}
		if keepsAgents {
			agentsStay.Insert(o.Name)
		}
		for j, pod := range pods {
			if keepsAgents && maintenance.PodTypeOf(pod) != v1.PodTypeDefault || verdicts[j].Unstopped != "" {
				actions[j] = coordinationv1alpha1.NodeMaintenancePodSkip
			}
			verdicts[j].Action = maintenance.MoreCautious(verdicts[j].Action, actions[j])
			if actions[j] == coordinationv1alpha1.NodeMaintenancePodSkip {
				verdicts[j].KeptBy = append(verdicts[j].KeptBy, o.Name)
			} else {
				verdicts[j].Wanted = true
			}
		}
	}
	for i := range specs {
		if o := &specs[i]; o.Drains() && o.IsShutdownOf(node) {
			leaveToShutdown(o.Name, verdicts)
		}
	}
	return verdicts, agentsStay
}

// leaveToShutdown adds what the maintenance of a shutdown does with the pods: it wants those that no other keeps.
func leaveToShutdown(name string, verdicts []progress.Verdict) {
	for i := range verdicts {
		v := &verdicts[i]
		if len(v.KeptBy) == 0 && v.Unstopped == "" {
			v.Wanted = true
			continue
		}
		v.KeptBy = append(v.KeptBy, name)
		if v.Unstopped != "" {
			v.Action = coordinationv1alpha1.NodeMaintenancePodSkip
		}
	}
}

// Leaving returns the pods that are to leave the node.
func Leaving(pods []*v1.Pod, verdicts []progress.Verdict) []*v1.Pod {
	var leaving []*v1.Pod
	for i, pod := range pods {
		if len(verdicts[i].KeptBy) == 0 && verdicts[i].Action == coordinationv1alpha1.NodeMaintenancePodDrain {
			leaving = append(leaving, pod)
		}
	}
	return leaving
}
