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

package system

import (
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

// interceptor is the interceptor of the pods. The tests act as this interceptor.
const interceptor = "interceptor.example.com"

// createRequest requests the eviction of a pod. It does not wrap the error of the API server.
func createRequest(tCtx ktesting.TContext, pod *v1.Pod) error {
	_, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).Create(tCtx, &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "drain.example.com"}},
		},
	}, metav1.CreateOptions{})
	return err
}

func requestEviction(tCtx ktesting.TContext, pod *v1.Pod) {
	tCtx.Helper()
	tCtx.ExpectNoError(createRequest(tCtx, pod), "requesting the eviction of pod %s", pod.Name)
}

// deleteRequest cancels an eviction.
func deleteRequest(tCtx ktesting.TContext, pod *v1.Pod) {
	tCtx.Helper()
	err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).Delete(tCtx, string(pod.UID), metav1.DeleteOptions{})
	tCtx.ExpectNoError(err, "deleting the request for pod %s", pod.Name)
}

// withdrawRequest removes all requesters from the request for a pod.
func withdrawRequest(tCtx ktesting.TContext, pod *v1.Pod) {
	tCtx.Helper()
	_, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).Patch(tCtx, string(pod.UID), types.MergePatchType, []byte(`{"spec":{"requesters":null}}`), metav1.PatchOptions{})
	tCtx.ExpectNoError(err, "withdrawing the request for pod %s", pod.Name)
}

// state is a state that a request can reach.
type state struct {
	name    string
	reached func(request *coordinationv1alpha1.EvictionRequest) bool
}

var (
	isBlocked  = conditionTrue(coordinationv1alpha1.EvictionRequestConditionBlocked)
	isCanceled = conditionTrue(coordinationv1alpha1.EvictionRequestConditionCanceled)
	isEvicted  = conditionTrue(coordinationv1alpha1.EvictionRequestConditionEvicted)

	// isActive is true while the interceptor is active.
	isActive = state{"active for " + interceptor, func(request *coordinationv1alpha1.EvictionRequest) bool {
		return slices.Equal(request.Status.ActiveInterceptors, []string{interceptor})
	}}
)

func conditionTrue(condition coordinationv1alpha1.EvictionRequestConditionType) state {
	return state{string(condition), func(request *coordinationv1alpha1.EvictionRequest) bool {
		return meta.IsStatusConditionTrue(request.Status.Conditions, string(condition))
	}}
}

// awaitRequest waits until the request for a pod has reached a state.
func awaitRequest(tCtx ktesting.TContext, pod *v1.Pod, want state) *coordinationv1alpha1.EvictionRequest {
	tCtx.Helper()
	var request *coordinationv1alpha1.EvictionRequest
	await(tCtx, "the request for pod "+pod.Name+" to be "+want.name, func(tCtx ktesting.TContext) {
		request = getRequest(tCtx, pod)
		if !want.reached(request) {
			tCtx.Fatalf("its status is %+v", request.Status)
		}
	})
	return request
}

func getRequest(tCtx ktesting.TContext, pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	tCtx.Helper()
	request, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).Get(tCtx, string(pod.UID), metav1.GetOptions{})
	tCtx.ExpectNoError(err, "reading the request for pod %s", pod.Name)
	return request
}

// awaitEvicted waits until the request for a pod has Evicted=True. The pod must be gone then.
func awaitEvicted(tCtx ktesting.TContext, pod *v1.Pod) string {
	tCtx.Helper()
	awaitRequest(tCtx, pod, isEvicted)
	if _, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).Get(tCtx, pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		tCtx.Fatalf("the request has Evicted=True; reading pod %s: %v, must be not found", pod.Name, err)
	}
	return "pod " + pod.Name + " is gone, its request has Evicted=True."
}

// expectStays fails if a pod is replaced, gone or terminating within a period.
func expectStays(tCtx ktesting.TContext, pod *v1.Pod, period time.Duration) {
	tCtx.Helper()
	for deadline := time.Now().Add(period); ; time.Sleep(pollInterval) {
		if current := getPod(tCtx, pod); current.DeletionTimestamp != nil {
			tCtx.Fatalf("pod %s terminates since %v, must stay", pod.Name, current.DeletionTimestamp)
		}
		if !time.Now().Before(deadline) {
			return
		}
	}
}

// report applies the status of the interceptor: it has started and, if completed is true, has
// completed.
func report(tCtx ktesting.TContext, request *coordinationv1alpha1.EvictionRequest, completed bool) error {
	now := metav1.Now()
	entry := coordinationapply.InterceptorStatus().WithName(interceptor).WithHeartbeatTime(now).WithStartTime(now)
	if started := interceptorStatus(request, interceptor).StartTime; started != nil {
		entry.WithStartTime(*started)
	}
	if completed {
		entry.WithCompletionTime(now)
	}
	patch := coordinationapply.EvictionRequest(request.Name, request.Namespace).WithStatus(coordinationapply.EvictionRequestStatus().WithInterceptors(entry))
	// Force: the controller has created the entry.
	_, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(request.Namespace).
		ApplyStatus(tCtx, patch, metav1.ApplyOptions{FieldManager: interceptor, Force: true})
	return err
}

// interceptorStatus returns the entry of an interceptor, which is empty if there is none.
func interceptorStatus(request *coordinationv1alpha1.EvictionRequest, name string) coordinationv1alpha1.InterceptorStatus {
	for _, entry := range request.Status.Interceptors {
		if entry.Name == name {
			return entry
		}
	}
	return coordinationv1alpha1.InterceptorStatus{}
}
