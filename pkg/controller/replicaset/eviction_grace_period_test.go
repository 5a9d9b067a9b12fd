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

package replicaset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/utils/ptr"
)

// TestGracePeriodOfScaleDown: a pod that was replaced goes with the grace period that the callers of pods/eviction have
// asked for.
func TestGracePeriodOfScaleDown(t *testing.T) {
	const calls = coordinationv1alpha1.EvictionRequesterEvictions
	request := func(interceptor string, requesters ...string) *coordinationv1alpha1.EvictionRequest {
		request := activeFor(requestOf("pod-uid"), interceptor)
		request.Annotations = map[string]string{coordinationv1alpha1.EvictionCallGracePeriodAnnotation: "5"}
		for _, name := range requesters {
			request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: name})
		}
		return request
	}
	finished := request(deploymentInterceptor, calls)
	finished.Status.Conditions = requestOf("pod-uid", canceled).Status.Conditions
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		want    *int64
	}{
		"called, in the turn of the Deployment":      {request: request(deploymentInterceptor, calls), want: ptr.To[int64](5)},
		"called, in the turn of the ReplicaSet":      {request: request(replicaSetInterceptor, calls), want: ptr.To[int64](5)},
		"called, about to be evicted":                {request: request("imperative-eviction.k8s.io", "drain.example.com", calls), want: ptr.To[int64](5)},
		"called, but another interceptor is at work": {request: request("saver.example.com", calls)},
		"called, and none is at work":                {request: request("", calls)},
		"requested by others":                        {request: request(deploymentInterceptor, "drain.example.com")},
		"canceled":                                   {request: finished},
		"not requested":                              {},
	} {
		t.Run(name, func(t *testing.T) {
			rs, pod := newReplicaSetOf(), rankedPod("pod-uid")
			rs.Spec.Replicas = ptr.To[int32](0)
			f := newEvictionFixture(t, pod)
			f.intercept(t)
			f.rsc.expectations = controller.NewUIDTrackingControllerExpectations(controller.NewControllerExpectations())
			f.cached(t, pod, rs)
			if test.request != nil {
				f.cached(t, test.request)
			}
			if err := f.rsc.manageReplicas(f.ctx, []*v1.Pod{pod}, rs); err != nil {
				t.Fatal(err)
			}
			var got []*int64
			for _, action := range f.client.Actions() {
				if deletion, isDeletion := action.(clienttesting.DeleteActionImpl); isDeletion {
					got = append(got, deletion.DeleteOptions.GracePeriodSeconds)
				}
			}
			if diff := cmp.Diff([]*int64{test.want}, got); diff != "" {
				t.Errorf("unexpected grace periods of deletions (-want, +got):\n%s", diff)
			}
		})
	}
}
