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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Builders for the objects of the tests in this package.

const (
	namespace = "prod"
	podName   = "web-0"
	podUID    = types.UID("6b2a37a5-4f5c-4d3a-9d5e-0c5f6b7a8e91")
	otherUID  = types.UID("f0e1d2c3-0000-4000-8000-000000000002")

	requestUID = types.UID("0a1b2c3d-0000-4000-8000-000000000003")

	// ttl is the TTL of finished requests in the tests.
	ttl = time.Hour

	first   = "first.example.com"
	second  = "second.example.com"
	builtIn = coordinationv1alpha1.EvictionInterceptorImperative

	daemonSet = coordinationv1alpha1.EvictionInterceptorDaemonSet

	canceled = coordinationv1alpha1.EvictionRequestConditionCanceled
	evicted  = coordinationv1alpha1.EvictionRequestConditionEvicted
	blocked  = coordinationv1alpha1.EvictionRequestConditionBlocked

	unresponsive = coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive
)

var (
	// start is when the requests of the tests were created.
	start = time.Date(2026, time.May, 4, 10, 0, 0, 0, time.UTC)

	requestKeyOfPod = types.NamespacedName{Namespace: namespace, Name: string(podUID)}
)

// at returns the API time at the given offset from start.
func at(offset time.Duration) *metav1.Time { return &metav1.Time{Time: start.Add(offset)} }

// newPod returns a running, ready pod.
func newPod(changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName, UID: podUID, Labels: map[string]string{"app": "web"}},
		Status: v1.PodStatus{
			Phase:      v1.PodRunning,
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func podUIDIs(uid types.UID) func(*v1.Pod) { return func(pod *v1.Pod) { pod.UID = uid } }

func inPhase(phase v1.PodPhase) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Status.Phase = phase }
}

func notReady(pod *v1.Pod) { pod.Status.Conditions[0].Status = v1.ConditionFalse }

func podLabels(labels map[string]string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Labels = labels }
}

func interceptedBy(names ...string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		for _, name := range names {
			pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
		}
	}
}

// terminatingSince marks a pod as deleted at the given time. Its deletionTimestamp
// is when the grace period of 30 seconds ends.
func terminatingSince(offset time.Duration) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.DeletionTimestamp = at(offset + 30*time.Second)
		pod.DeletionGracePeriodSeconds = ptr.To[int64](30)
	}
}

func mirrored(pod *v1.Pod) {
	pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
}

func ownedBy(kind string, controller bool) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.OwnerReferences = append(pod.OwnerReferences,
			metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: "owner-uid", Controller: &controller})
	}
}

func inSchedulingGroup(pod *v1.Pod) {
	pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
}

// newRequest returns a request that the controller has not processed yet.
func newRequest(changes ...func(*coordinationv1alpha1.EvictionRequest)) *coordinationv1alpha1.EvictionRequest {
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: string(podUID), UID: requestUID, Generation: 1, CreationTimestamp: *at(0),
			Labels: map[string]string{"app": "web"},
		},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: podName, UID: string(podUID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "drain.example.com"}},
		},
	}
	for _, change := range changes {
		change(request)
	}
	return request
}

func deadlineOf(seconds int32) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Spec.HeartbeatDeadlineSeconds = &seconds
	}
}

func generation(generation int64) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) { request.Generation = generation }
}

func withoutRequesters(request *coordinationv1alpha1.EvictionRequest) {
	request.Spec.Requesters = nil
}

func requestLabels(labels map[string]string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) { request.Labels = labels }
}

func beingDeleted(request *coordinationv1alpha1.EvictionRequest) {
	request.DeletionTimestamp = at(0)
}

func cancellationForbidden(request *coordinationv1alpha1.EvictionRequest) {
	request.Status.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
}

// having returns a request option that sets a status with these changes.
func having(changes ...func(*coordinationv1alpha1.EvictionRequestStatus)) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) { request.Status = *newStatus(changes...) }
}

// newStatus returns the status of a request that the controller has processed.
func newStatus(changes ...func(*coordinationv1alpha1.EvictionRequestStatus)) *coordinationv1alpha1.EvictionRequestStatus {
	status := &coordinationv1alpha1.EvictionRequestStatus{ObservedGeneration: 1}
	for _, change := range changes {
		change(status)
	}
	return status
}

// targets sets the target interceptors. It appends the built-in one.
func targets(names ...string) func(*coordinationv1alpha1.EvictionRequestStatus) {
	return func(status *coordinationv1alpha1.EvictionRequestStatus) {
		for _, name := range append(names, builtIn) {
			status.TargetInterceptors = append(status.TargetInterceptors, coordinationv1alpha1.Interceptor{Name: name})
			status.Interceptors = append(status.Interceptors, coordinationv1alpha1.InterceptorStatus{Name: name})
		}
	}
}

func active(name string, since time.Duration) func(*coordinationv1alpha1.EvictionRequestStatus) {
	return func(status *coordinationv1alpha1.EvictionRequestStatus) {
		status.ActiveInterceptors = []string{name}
		status.ActivationTime = at(since)
	}
}

// activatedLast sets the activationTime that remains when no interceptor is active.
func activatedLast(offset time.Duration) func(*coordinationv1alpha1.EvictionRequestStatus) {
	return func(status *coordinationv1alpha1.EvictionRequestStatus) { status.ActivationTime = at(offset) }
}

func processed(names ...string) func(*coordinationv1alpha1.EvictionRequestStatus) {
	return func(status *coordinationv1alpha1.EvictionRequestStatus) { status.ProcessedInterceptors = names }
}

// reporting replaces the status entry of an interceptor.
func reporting(entry coordinationv1alpha1.InterceptorStatus) func(*coordinationv1alpha1.EvictionRequestStatus) {
	return func(status *coordinationv1alpha1.EvictionRequestStatus) {
		for i := range status.Interceptors {
			if status.Interceptors[i].Name == entry.Name {
				status.Interceptors[i] = entry
			}
		}
	}
}

// alive is the entry of an interceptor that has started and reported.
func alive(name string, started, heartbeat time.Duration) coordinationv1alpha1.InterceptorStatus {
	return coordinationv1alpha1.InterceptorStatus{Name: name, StartTime: at(started), HeartbeatTime: at(heartbeat)}
}

// done is the entry of an interceptor that started and completed at the same time.
func done(name string, offset time.Duration) coordinationv1alpha1.InterceptorStatus {
	return coordinationv1alpha1.InterceptorStatus{Name: name, StartTime: at(offset), HeartbeatTime: at(offset), CompletionTime: at(offset)}
}

// condition adds a condition of generation 1.
func condition(conditionType coordinationv1alpha1.EvictionRequestConditionType, value metav1.ConditionStatus, reason, message string, since time.Duration) func(*coordinationv1alpha1.EvictionRequestStatus) {
	return func(status *coordinationv1alpha1.EvictionRequestStatus) {
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: string(conditionType), Status: value, ObservedGeneration: status.ObservedGeneration,
			LastTransitionTime: *at(since), Reason: reason, Message: message,
		})
	}
}

func blockedByBudget(since time.Duration) func(*coordinationv1alpha1.EvictionRequestStatus) {
	return condition(blocked, metav1.ConditionTrue, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, "PodDisruptionBudget web: no disruptions allowed", since)
}

// newBudget returns a budget that selects newPod and allows no disruption.
func newBudget(name string, changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(3)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DesiredHealthy: 3, CurrentHealthy: 3, ExpectedPods: 3},
	}
	for _, change := range changes {
		change(budget)
	}
	return budget
}

func allowing(disruptions int32) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) { budget.Status.DisruptionsAllowed = disruptions }
}

func withVersion(version string) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) { budget.ResourceVersion = version }
}

func healthy(current, desired int32) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) {
		budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = current, desired
	}
}

func evictingUnhealthy(policy policyv1.UnhealthyPodEvictionPolicyType) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) { budget.Spec.UnhealthyPodEvictionPolicy = &policy }
}

func selecting(app string) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) {
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
}

// selectingInvalidly gives the budget a selector that cannot be parsed.
func selectingInvalidly(budget *policyv1.PodDisruptionBudget) {
	budget.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
}
