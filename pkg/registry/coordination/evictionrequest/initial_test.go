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
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/coordination"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

func atTime(t *testing.T, now time.Time) *testingclock.FakePassiveClock {
	t.Helper()
	before := StatusStrategy.Clock
	t.Cleanup(func() { StatusStrategy.Clock = before })
	clock := testingclock.NewFakePassiveClock(now)
	StatusStrategy.Clock = clock
	return clock
}

func TestPrepareForCreateInitializes(t *testing.T) {
	atTime(t, time.Date(2026, 11, 28, 12, 0, 0, 999, time.UTC))
	const builtIn = "imperative-eviction.k8s.io"
	pod := func(changes ...func(*v1.Pod)) *v1.Pod {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web-0", UID: targetUID, Labels: map[string]string{"app": "web", "tier": "x"}}}
		for _, change := range changes {
			change(pod)
		}
		return pod
	}
	initialized := func(names ...string) coordination.EvictionRequestStatus {
		status := coordination.EvictionRequestStatus{
			ObservedGeneration: 1, ActiveInterceptors: names[:1], ActivationTime: &metav1.Time{Time: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)},
		}
		for _, name := range names {
			status.TargetInterceptors = append(status.TargetInterceptors, coordination.Interceptor{Name: name})
			status.Interceptors = append(status.Interceptors, coordination.InterceptorStatus{Name: name})
		}
		return status
	}
	own := map[string]string{"app": "old", "team": "a"}
	merged := map[string]string{"app": "web", "tier": "x", "team": "a"}
	tests := map[string]struct {
		pod    *v1.Pod
		err    error
		change func(*coordination.EvictionRequest)
		status coordination.EvictionRequestStatus
		labels map[string]string
	}{
		"a pod":                       {pod: pod(), status: initialized(builtIn), labels: merged},
		"a pod with interceptors":     {pod: pod(func(pod *v1.Pod) { pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: "a.example.com"}} }), labels: merged},
		"a terminating pod":           {pod: pod(func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }), status: initialized(builtIn), labels: merged},
		"no pod":                      {labels: own},
		"a pod that cannot be read":   {pod: pod(), err: errors.New("broken"), labels: own},
		"another pod of this name":    {pod: pod(func(pod *v1.Pod) { pod.UID = "other" }), labels: own},
		"a pod that has failed":       {pod: pod(func(pod *v1.Pod) { pod.Status.Phase = v1.PodFailed }), labels: own},
		"a pod that has succeeded":    {pod: pod(func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded }), labels: own},
		"a pod of a scheduling group": {pod: pod(func(pod *v1.Pod) { pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("group")} }), labels: merged},
		"a request without a target":  {pod: pod(), change: func(request *coordination.EvictionRequest) { request.Spec.Target.Pod = nil }, labels: own},
		"a request without a name":    {pod: pod(), change: func(request *coordination.EvictionRequest) { request.Spec.Target.Pod.Name = "" }, labels: own},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			strategy := NewStrategy(func(_ context.Context, name string) (*v1.Pod, error) {
				if name != "web-0" {
					t.Errorf("asked for pod %q", name)
				}
				return test.pod, test.err
			})
			request := newRequest(func(request *coordination.EvictionRequest) {
				request.Labels = map[string]string{"app": "old", "team": "a"}
				// What a client sends does not count.
				request.Status.ActiveInterceptors = []string{"forged.example.com"}
			})
			if test.change != nil {
				test.change(request)
			}
			strategy.PrepareForCreate(context.Background(), request)
			stampProgress(&test.status, &coordination.EvictionRequestStatus{}, StatusStrategy.Clock.Now()) // See TestProgress.
			if diff := cmp.Diff(test.status, request.Status); diff != "" {
				t.Errorf("unexpected status (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.labels, request.Labels); diff != "" {
				t.Errorf("unexpected labels (-want, +got):\n%s", diff)
			}
		})
	}
	if Strategy.targets != nil {
		t.Error("the strategy of other servers reads pods")
	}
}

func TestTTL(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	atTime(t, now)
	finished := func(conditionType string, ago time.Duration) func(*coordination.EvictionRequest) {
		return func(request *coordination.EvictionRequest) {
			request.Status.Conditions = append(request.Status.Conditions,
				metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Time{Time: now.Add(-ago)}})
		}
	}
	tests := map[string]struct {
		request *coordination.EvictionRequest
		ttl     time.Duration
		want    uint64
	}{
		"not finished":                       {request: newRequest(), ttl: time.Minute},
		"blocked":                            {request: newRequest(finished("Blocked", 0)), ttl: time.Minute},
		"evicted":                            {request: newRequest(finished("Evicted", 0)), ttl: time.Minute, want: 60},
		"canceled":                           {request: newRequest(finished("Canceled", 0)), ttl: time.Minute, want: 60},
		"evicted a while ago":                {request: newRequest(finished("Evicted", 40*time.Second)), ttl: time.Minute, want: 20},
		"evicted long ago":                   {request: newRequest(finished("Evicted", time.Hour)), ttl: time.Minute, want: 1},
		"evicted by a clock that is ahead":   {request: newRequest(finished("Evicted", -time.Hour)), ttl: time.Minute, want: 60},
		"evicted, left to the controller":    {request: newRequest(finished("Evicted", 0))},
		"evicted, with a finalizer":          {request: newRequest(finished("Evicted", 0), func(request *coordination.EvictionRequest) { request.Finalizers = []string{"example.com/x"} }), ttl: time.Minute},
		"evicted, while it is being deleted": {request: newRequest(finished("Evicted", 0), func(request *coordination.EvictionRequest) { request.DeletionTimestamp = &metav1.Time{Time: now} }), ttl: time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, update := range []bool{false, true} {
				if got, err := NewExpiry(Retention{TTL: test.ttl}).TTL(test.request, 7, update); got != test.want || err != nil {
					t.Errorf("got %d seconds and error %v, want %d seconds", got, err, test.want)
				}
			}
		})
	}
	if got, err := NewExpiry(Retention{TTL: time.Minute}).TTL(&coordination.Lease{}, 7, true); got != 0 || err != nil {
		t.Errorf("got %d seconds and error %v for another kind", got, err)
	}
}
