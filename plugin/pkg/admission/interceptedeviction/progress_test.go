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

package interceptedeviction

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const (
	namespace = "shop"
	podName   = "web-0"
	podUID    = types.UID("6b2a37a5-4f5c-4d3a-9d5e-0c5f6b7a8e91")
	// successorUID is that of another pod of this name.
	successorUID = types.UID("f0e1d2c3-0000-4000-8000-000000000002")
	requestUID   = types.UID("0a1b2c3d-0000-4000-8000-000000000003")

	first      = "first.example.com"
	second     = "second.example.com"
	imperative = coordinationv1alpha1.EvictionInterceptorImperative
	daemonSet  = coordinationv1alpha1.EvictionInterceptorDaemonSet
	kubelet    = coordinationv1alpha1.EvictionInterceptorKubelet
)

var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

type podOption func(*v1.Pod)

func newPod(options ...podOption) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName, UID: podUID, ResourceVersion: "7", Labels: map[string]string{"app": "web"}},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func withUID(uid types.UID) podOption { return func(pod *v1.Pod) { pod.UID = uid } }

func onNode(name string) podOption { return func(pod *v1.Pod) { pod.Spec.NodeName = name } }

func interceptedBy(names ...string) podOption {
	return func(pod *v1.Pod) {
		for _, name := range names {
			pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
		}
	}
}

func registered(name, priority string) podOption {
	return func(pod *v1.Pod) {
		pod.Annotations = map[string]string{coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + name: priority}
	}
}

func ofDaemonSet(pod *v1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1", Controller: ptr.To(true)}}
}

func static(pod *v1.Pod) { pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "1"} }

func inSchedulingGroup(pod *v1.Pod) {
	pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("training")}
}

func terminating(pod *v1.Pod) {
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: noon}, ptr.To[int64](30)
}

func inPhase(phase v1.PodPhase) podOption { return func(pod *v1.Pod) { pod.Status.Phase = phase } }

type requestOption func(*coordinationv1alpha1.EvictionRequest)

// newRequest returns a request that was just called for, without a status.
func newRequest(options ...requestOption) *coordinationv1alpha1.EvictionRequest {
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: string(podUID), UID: requestUID, ResourceVersion: "1",
			Annotations: map[string]string{coordinationv1alpha1.EvictionCallTimeAnnotation: noon.Format(time.RFC3339)},
		},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: podName, UID: string(podUID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: coordinationv1alpha1.EvictionRequesterEvictions}},
		},
	}
	for _, option := range options {
		option(request)
	}
	return request
}

// processing sets the interceptors of the request. All before the active one are processed; an empty
// name means all.
func processing(active string, targets ...string) requestOption {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		status, before := &request.Status, true
		for _, name := range targets {
			status.TargetInterceptors = append(status.TargetInterceptors, coordinationv1alpha1.Interceptor{Name: name})
			status.Interceptors = append(status.Interceptors, coordinationv1alpha1.InterceptorStatus{Name: name})
			before = before && name != active
			if before {
				status.ProcessedInterceptors = append(status.ProcessedInterceptors, name)
			}
		}
		if active != "" {
			status.ActiveInterceptors, status.ActivationTime = []string{active}, &metav1.Time{Time: noon}
		}
	}
}

func having(condition coordinationv1alpha1.EvictionRequestConditionType) requestOption {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.Conditions = []metav1.Condition{{Type: string(condition), Status: metav1.ConditionTrue}}
	}
}

// canceledBecause sets the reason of the condition.
func canceledBecause(reason string) requestOption {
	return func(request *coordinationv1alpha1.EvictionRequest) { request.Status.Conditions[0].Reason = reason }
}

func beingDeleted(request *coordinationv1alpha1.EvictionRequest) {
	request.DeletionTimestamp, request.Finalizers = &metav1.Time{Time: noon}, []string{"a.example.com/b"}
}

func cancellationForbidden(request *coordinationv1alpha1.EvictionRequest) {
	request.Status.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
}

func requestedBy(names ...string) requestOption {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Spec.Requesters = nil
		for _, name := range names {
			request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: name})
		}
	}
}

func calledAt(when string) requestOption {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Annotations[coordinationv1alpha1.EvictionCallTimeAnnotation] = when
	}
}

// Responders of lifecycle.k8s.io are waited for with their gate only.
func TestOwnResponders(t *testing.T) {
	pod := newPod(ofDaemonSet, interceptedBy(first), func(pod *v1.Pod) {
		pod.Spec.EvictionResponders = []v1.EvictionResponder{{Name: "example.com/responder", Priority: ptr.To[int32](20000)}}
	})
	for gate, want := range map[bool][]string{false: {first}, true: {"example.com/responder", first}} {
		t.Run(fmt.Sprint(gate), func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{features.EvictionRequestAPI: true, features.LifecycleEvictions: gate})
			if diff := cmp.Diff(want, ownInterceptors(pod)); diff != "" {
				t.Errorf("unexpected interceptors (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestOwnInterceptors(t *testing.T) {
	tests := map[string]struct {
		pod  *v1.Pod
		want []string
	}{
		"none":                          {pod: newPod()},
		"in the spec":                   {pod: newPod(interceptedBy(first, second)), want: []string{first, second}},
		"by annotation, after the spec": {pod: newPod(interceptedBy(second), registered(first, "1")), want: []string{second, first}},
		"an invalid annotation":         {pod: newPod(registered(first, "high"))},
		"controllers of the workload":   {pod: newPod(interceptedBy("deployment.apps.k8s.io", "replicaset.apps.k8s.io")), want: []string{"deployment.apps.k8s.io", "replicaset.apps.k8s.io"}},
		"of a DaemonSet":                {pod: newPod(ofDaemonSet)},
		"of a DaemonSet that names it":  {pod: newPod(ofDaemonSet, interceptedBy(first, daemonSet)), want: []string{first}},
		"of no DaemonSet, but names it": {pod: newPod(interceptedBy(daemonSet)), want: []string{daemonSet}},
		"static":                        {pod: newPod(static)},
		"static, and names it":          {pod: newPod(static, interceptedBy(kubelet))},
		"of a scheduling group":         {pod: newPod(interceptedBy(first), inSchedulingGroup), want: []string{first}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ownInterceptors(test.pod)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected interceptors (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestProgressOf(t *testing.T) {
	const isEvicted, isCanceled = coordinationv1alpha1.EvictionRequestConditionEvicted, coordinationv1alpha1.EvictionRequestConditionCanceled
	tests := map[string]struct {
		pod     []podOption
		request *coordinationv1alpha1.EvictionRequest
		want    progress
	}{
		"no request":                             {want: missing},
		"not seen by the controller":             {request: newRequest(), want: waiting},
		"the first is active":                    {request: newRequest(processing(first, first, second, imperative)), want: waiting},
		"the second is active":                   {request: newRequest(processing(second, first, second, imperative)), want: waiting},
		"the last is active":                     {request: newRequest(processing(imperative, first, second, imperative)), want: done},
		"all are processed":                      {request: newRequest(processing("", first, imperative)), want: done},
		"the DaemonSet is active":                {pod: []podOption{ofDaemonSet}, request: newRequest(processing(daemonSet, first, daemonSet, imperative)), want: done},
		"the DaemonSet is active before another": {pod: []podOption{ofDaemonSet}, request: newRequest(processing(daemonSet, daemonSet, first, imperative)), want: waiting},
		"a DaemonSet of which the pod is not":    {request: newRequest(processing(daemonSet, daemonSet, imperative)), want: waiting},
		"evicted":                                {request: newRequest(processing("", first, imperative), having(isEvicted)), want: evicted},
		"evicted, while deleting":                {request: newRequest(having(isEvicted), beingDeleted), want: evicted},
		"canceled":                               {request: newRequest(processing("", first, imperative), having(isCanceled)), want: canceled},
		"canceled before the controller saw it":  {request: newRequest(having(isCanceled)), want: canceled},
		"canceled, while deleting":               {request: newRequest(having(isCanceled), beingDeleted, canceledBecause("NoRequesters")), want: replaceable},
		"given up, while deleting":               {request: newRequest(having(isCanceled), beingDeleted, canceledBecause("ValidationFailed")), want: replaceable},
		"deleting":                               {request: newRequest(processing(imperative, first, imperative), beingDeleted), want: deleting},
		"deleting, cancellation forbidden":       {request: newRequest(processing(first, first, imperative), beingDeleted, cancellationForbidden), want: waiting},
		"all processed, cancellation forbidden":  {request: newRequest(processing(imperative, first, imperative), cancellationForbidden), want: done},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := progressOf(test.request, newPod(append(test.pod, interceptedBy(first))...)); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestIsRenewed(t *testing.T) {
	const evictions = coordinationv1alpha1.EvictionRequesterEvictions
	at := func(offset time.Duration) requestOption { return calledAt(noon.Add(offset).Format(time.RFC3339)) }
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		want    bool
	}{
		"just now":                  {request: newRequest(), want: true},
		"59 seconds ago":            {request: newRequest(at(-59 * time.Second)), want: true},
		"a minute ago":              {request: newRequest(at(-time.Minute))},
		"never":                     {request: newRequest(calledAt(""))},
		"at a time that is none":    {request: newRequest(calledAt("noon"))},
		"by a server that is ahead": {request: newRequest(at(15 * time.Minute)), want: true},
		"in the future":             {request: newRequest(at(15*time.Minute + time.Second))},
		"only by others":            {request: newRequest(requestedBy("drain.example.com"))},
		"by others as well":         {request: newRequest(requestedBy("drain.example.com", evictions)), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isRenewed(test.request, noon); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// A time of a call that is ahead of the clock of this server is renewed within a minute as well, by who calls here: the
// controller, which goes by when it has seen it, would take the callers for gone.
func TestTimesAheadAreRenewed(t *testing.T) {
	request := newRequest(processing(first, first, imperative), calledAt(noon.Add(5*time.Minute).Format(time.RFC3339)))
	objects := []runtime.Object{newPod(interceptedBy(first)), request}
	plugin, client := world{stored: objects, cached: objects}.newPlugin(t)
	clock := testingclock.NewFakePassiveClock(noon)
	plugin.clock, plugin.calls.ahead = clock, cache.NewLRUExpireCacheWithClock(maxCalls, clock)
	for _, test := range []struct {
		after  time.Duration
		writes int
	}{{0, 0}, {59 * time.Second, 0}, {time.Minute, 1}, {2 * time.Minute, 2}} {
		clock.SetTime(noon.Add(test.after))
		_ = plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil) // Refused: see TestCaches.
		if got := len(client.Actions()); got != test.writes {
			t.Errorf("%v after the first call: %d writes, want %d", test.after, got, test.writes)
		}
	}
	// That of another pod counts from when it is seen, though it is the same time, and so does the next one that is ahead.
	other := request.DeepCopy()
	other.Name = string(successorUID)
	if !plugin.calls.isRenewed(other, clock.Now()) {
		t.Error("the time of another pod is to be renewed when it is seen")
	}
	request.Annotations[coordinationv1alpha1.EvictionCallTimeAnnotation] = noon.Add(7 * time.Minute).Format(time.RFC3339)
	_ = plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil)
	if got := len(client.Actions()); got != 2 {
		t.Errorf("%d writes after the time was renewed by the server that is ahead, want 2", got)
	}
}
