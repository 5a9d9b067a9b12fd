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

package returns

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// OwnerInformers are the informers of those that create pods, whose templates say what a pod does not: whether the next
// one goes to the same node.
type OwnerInformers struct {
	Jobs                   batchinformers.JobInformer
	ReplicaSets            appsinformers.ReplicaSetInformer
	StatefulSets           appsinformers.StatefulSetInformer
	ReplicationControllers coreinformers.ReplicationControllerInformer
}

// Synced returns what has to be synced before pods are decided on. It registers the informers.
func (o *OwnerInformers) Synced() []cache.InformerSynced {
	if o == nil {
		return nil
	}
	return []cache.InformerSynced{
		o.Jobs.Informer().HasSynced, o.ReplicaSets.Informer().HasSynced,
		o.StatefulSets.Informer().HasSynced, o.ReplicationControllers.Informer().HasSynced,
	}
}

// nameNodeOf reports whether the owner of a pod creates pods for the node of this one: spec.nodeName of its template
// names it.
func (o *OwnerInformers) nameNodeOf(pod *v1.Pod) bool {
	by := metav1.GetControllerOfNoCopy(pod)
	if o == nil || by == nil {
		return false
	}
	uid, template := o.templateOf(pod.Namespace, by)
	return uid == by.UID && template != nil && template.Spec.NodeName != "" && template.Spec.NodeName == pod.Spec.NodeName
}

// createsMore reports whether the owner of a pod is a Job that is not over. It creates the next pod when its back-off has
// ended, up to ten minutes later.
func (o *OwnerInformers) createsMore(pod *v1.Pod) bool {
	by := metav1.GetControllerOfNoCopy(pod)
	if o == nil || by == nil || by.Kind != "Job" {
		return false
	}
	job, err := o.Jobs.Lister().Jobs(pod.Namespace).Get(by.Name)
	if err != nil || job.UID != by.UID || job.DeletionTimestamp != nil || ptr.Deref(job.Spec.Suspend, false) {
		return false
	}
	return !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == v1.ConditionTrue
	})
}

// templateOf returns the template of an owner and its UID; nil if it is of another kind, or not known.
func (o *OwnerInformers) templateOf(namespace string, by *metav1.OwnerReference) (types.UID, *v1.PodTemplateSpec) {
	// The only error of the lister of a cache is NotFound.
	switch by.Kind {
	case "Job":
		if owner, err := o.Jobs.Lister().Jobs(namespace).Get(by.Name); err == nil {
			return owner.UID, &owner.Spec.Template
		}
	case "ReplicaSet":
		if owner, err := o.ReplicaSets.Lister().ReplicaSets(namespace).Get(by.Name); err == nil {
			return owner.UID, &owner.Spec.Template
		}
	case "StatefulSet":
		if owner, err := o.StatefulSets.Lister().StatefulSets(namespace).Get(by.Name); err == nil {
			return owner.UID, &owner.Spec.Template
		}
	case "ReplicationController":
		if owner, err := o.ReplicationControllers.Lister().ReplicationControllers(namespace).Get(by.Name); err == nil {
			return owner.UID, owner.Spec.Template
		}
	}
	return "", nil
}
