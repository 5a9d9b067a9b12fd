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
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"
)

// deletionTimeout is how long a deletion may be in flight that was sent before the request was withdrawn. The API
// server ends a call after a minute; before that, the call waits for the rate limit of its client.
const deletionTimeout = 2 * time.Minute

const (
	// stopReportTimeout is how long after the withdrawal a kubelet may report that it has begun to stop the static pod:
	// the time between two reports, and of two calls.
	stopReportTimeout = 30 * time.Second

	// stopTimeout is how much longer than the grace period of a static pod its stop may take. The kubelet starts the
	// pod again if the control plane does not confirm the end in that time.
	stopTimeout = deletionTimeout

	// maxStopTimeout is the longest such stop.
	maxStopTimeout = time.Hour
)

// replicaSetReader reads the stored ReplicaSet, not that of a cache.
type replicaSetReader func(ctx context.Context, namespace, name string) (*apps.ReplicaSet, error)

func newReplicaSetReader(client clientset.Interface) replicaSetReader {
	return func(ctx context.Context, namespace, name string) (*apps.ReplicaSet, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return client.AppsV1().ReplicaSets(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

// deletionMark returns the condition with which a pod was marked that is about to be deleted for a request or for
// the escalation of a maintenance, or nil.
func deletionMark(pod *v1.Pod) *v1.PodCondition {
	_, mark := podutil.GetPodCondition(&pod.Status, v1.DisruptionTarget)
	if mark == nil || mark.Status != v1.ConditionTrue {
		return nil
	}
	if !evictionrequesttools.IsEvictionMark(mark.Message) && mark.Reason != maintenance.PodReasonDeletionByNodeMaintenance {
		return nil
	}
	return mark
}

// noteInherited remembers the requests with which the Deployment of the pod may have come as far as to have its ReplicaSet
// remove it before this process led. The process that led before may have sent that deletion, and not be there to see the
// answer, or be suspended. What the ReplicaSet says from now on is about the deletions of this process.
func (c *Controller) noteInherited() {
	requests, err := c.requestLister.List(labels.Everything())
	if err != nil {
		return // A lister that reads from a cache returns no errors.
	}
	c.begun = c.clock.Now()
	for _, request := range requests {
		if !evictionrequesttools.IsFinished(request.Status.Conditions) && hadTurn(&request.Status, coordinationv1alpha1.EvictionInterceptorDeployment) {
			c.inherited.add(types.UID(request.Name))
		}
	}
}

// hadTurn reports whether the interceptor is active, or was.
func hadTurn(status *coordinationv1alpha1.EvictionRequestStatus, interceptor string) bool {
	return slices.Contains(status.ActiveInterceptors, interceptor) || slices.Contains(status.ProcessedInterceptors, interceptor)
}

// mayHaveInherited reports whether the deletion of the pod may be in flight that another process has sent for the request,
// which led before this one.
func (c *Controller) mayHaveInherited(request *coordinationv1alpha1.EvictionRequest, now time.Time) bool {
	return c.inherited.has(types.UID(request.Name)) && now.Sub(c.begun) <= deletionTimeout
}

// mayBeDeleted reports for how long after the withdrawal the deletion of a pod may be in flight that its owner has sent
// for the request, or the stop that its kubelet has begun; zero if there is none. Such a deletion takes as long as the
// webhooks that see it, and leaves no mark on the pod before it. What is stored before it is sent says so: that the
// DaemonSet controller or the kubelet has begun, or which pods a ReplicaSet removes.
func (c *Controller) mayBeDeleted(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) (time.Duration, error) {
	const deployment = coordinationv1alpha1.EvictionInterceptorDeployment
	switch active := activeInterceptor(&request.Status); active {
	case coordinationv1alpha1.EvictionInterceptorDaemonSet, coordinationv1alpha1.EvictionInterceptorKubelet:
		entry := evictionrequesttools.InterceptorStatusOf(&request.Status, active)
		switch {
		case entry == nil || entry.StartTime == nil || entry.CompletionTime != nil:
			return 0, nil
		case active == coordinationv1alpha1.EvictionInterceptorKubelet:
			return stopsFor(entry, pod), nil
		}
		return deletionTimeout, nil
	}
	isDeployment := func(interceptor coordinationv1alpha1.Interceptor) bool { return interceptor.Name == deployment }
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || !isReplicaSet(owner) || !slices.ContainsFunc(request.Status.TargetInterceptors, isDeployment) {
		return 0, nil
	}
	rs, err := c.replicaSets(ctx, pod.Namespace, owner.Name)
	switch {
	case apierrors.IsForbidden(err):
		// An API server whose gate for surges is off does not grant it.
		klog.FromContext(ctx).Info("Not asking whether a ReplicaSet removes a pod, because it may not be read", "replicaSet", klog.KRef(pod.Namespace, owner.Name), "pod", klog.KObj(pod), "err", err)
		return 0, nil
	case apierrors.IsNotFound(err), err == nil && rs.UID != owner.UID:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("reading ReplicaSet %s, which may remove pod %s: %w", owner.Name, pod.Name, err)
	}
	// A pod is taken out of the record together with a change of spec.replicas. The ReplicaSet controller reports
	// the generation when the deletions of the one before have been answered.
	if deploymentutil.IsLeaving(rs, pod.UID) || rs.Status.ObservedGeneration < rs.Generation {
		return deletionTimeout, nil
	}
	return 0, nil
}

// stopsFor returns for how long after the withdrawal the kubelet may go on to stop a static pod, by its report: one that
// has begun says when it expects to finish, and goes on. The others wait for their turn, and do not begin any more.
func stopsFor(report *coordinationv1alpha1.InterceptorStatus, pod *v1.Pod) time.Duration {
	if report.ExpectedFinishTime == nil {
		return stopReportTimeout
	}
	seconds := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
	grace := time.Duration(min(seconds, int64(maxStopTimeout/time.Second))) * time.Second
	return min(grace+stopTimeout, maxStopTimeout)
}

func isReplicaSet(owner *metav1.OwnerReference) bool {
	return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == schema.GroupKind{Group: apps.GroupName, Kind: "ReplicaSet"}
}
