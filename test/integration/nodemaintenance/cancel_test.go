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

package nodemaintenance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/ptr"
)

// testCancelInMidDrain completes a maintenance while interceptors are active. One allows
// cancellation, one forbids it, and the eviction of the third pod has another requester.
func testCancelInMidDrain(t *testing.T, c *cluster) {
	c.createNode("one")
	supporting := c.createPod(newPod("supporting", "one", withInterceptor(stubborn)))
	forbidding := c.createPod(newPod("forbidding", "one", withInterceptor(stubborn)))
	shared := c.createPod(newPod("shared", "one", withInterceptor(stubborn)))
	history := c.watchAll()
	stop, _ := c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the interceptors to become active", states{"request/supporting": asked, "request/forbidding": asked, "request/shared": asked})
	c.report(supporting, coordinationapply.EvictionRequestStatus().WithInterceptors(startedBy(stubborn)))
	report := startedBy(stubborn)
	c.report(forbidding, coordinationapply.EvictionRequestStatus().WithInterceptors(report).
		WithEvictionRequestCancellationPolicy(coordinationv1alpha1.EvictionRequestCancellationPolicyForbid))
	c.ApplyRequesters(shared, scaler, scaler)

	c.setStage("m", stageComplete)
	want := states{
		"maintenance/m": "Cordon, Drain, Complete of 1, False: NotDraining", "node/one": free,
		"request/supporting": canceled, "pod/supporting": "here",
		"request/forbidding": asked, "pod/forbidding": "here",
		"request/shared": "Intercepting by [" + scaler + "]", "pod/shared": "here",
	}
	c.await("the cancellation", want)
	stop()
	c.startLogged()
	c.settle()
	c.expect("the same after a restart", want)
	c.expectUntouched(supporting)

	c.report(forbidding, coordinationapply.EvictionRequestStatus().WithInterceptors(report.WithCompletionTime(metav1.Now())).
		WithEvictionRequestCancellationPolicy(coordinationv1alpha1.EvictionRequestCancellationPolicyForbid))
	c.await("the eviction that could not be canceled", states{"pod/forbidding": "gone"})
	c.expectInvariants(history)
}

// testForeignRequestJoined starts with the request of another client. The controller must keep its
// deadline and labels when it adds its requester, and the other requester when it removes its own.
func testForeignRequestJoined(t *testing.T, c *cluster) {
	c.createNode("one")
	pod := c.createPod(newPod("pod", "one", withInterceptor(stubborn)))
	foreign := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID), Labels: map[string]string{"foreign": "label", "pod": "pod"}},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:                   coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters:               []coordinationv1alpha1.Requester{{Name: scaler}},
			HeartbeatDeadlineSeconds: ptr.To[int32](600),
		},
	}
	if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Create(t.Context(), foreign, metav1.CreateOptions{FieldManager: scaler}); err != nil {
		t.Fatalf("creating a foreign request: %v", err)
	}
	c.startQuick()
	c.await("the foreign request", states{"request/pod": "Intercepting by [" + scaler + "]"})
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the controller to add its requester", states{"request/pod": "Intercepting by [nodemaintenance.k8s.io " + scaler + "]", "node/one": draining})
	joined := c.request(pod)
	if diff := cmp.Diff(foreign.Labels, joined.Labels) + cmp.Diff(foreign.Spec.HeartbeatDeadlineSeconds, joined.Spec.HeartbeatDeadlineSeconds); diff != "" {
		t.Errorf("labels and deadline of the foreign request (-before +joined):\n%s", diff)
	}

	c.deleteMaintenance("m")
	c.await("the controller to remove its requester", states{"request/pod": "Intercepting by [" + scaler + "]", "maintenance/m": "gone", "node/one": free})
	c.expectUntouched(pod)
}

// testOwnRequest checks a request that the controller creates.
func testOwnRequest(t *testing.T, c *cluster) {
	c.createNode("one")
	pod := c.createPod(newPod("pod", "one", withInterceptor(stubborn), withLabel("app", "web")))
	c.startQuick()
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.await("the request", states{"request/pod": asked})
	request := c.request(pod)
	want := coordinationv1alpha1.EvictionRequestSpec{
		Target:                   coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
		Requesters:               []coordinationv1alpha1.Requester{{Name: coordinationv1alpha1.NodeMaintenanceRequester}},
		HeartbeatDeadlineSeconds: ptr.To[int32](1800),
	}
	if diff := cmp.Diff(want, request.Spec) + cmp.Diff(pod.Labels, request.Labels); diff != "" {
		t.Errorf("spec and labels of the request (-want +got):\n%s", diff)
	}
	var managers []string
	for _, entry := range request.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			managers = append(managers, entry.Manager)
		}
	}
	if diff := cmp.Diff([]string{coordinationv1alpha1.NodeMaintenanceRequester}, managers); diff != "" {
		t.Errorf("managers that have applied the request (-want +got):\n%s", diff)
	}
	// If its requester is removed during the drain, the controller adds it again.
	patch := fmt.Appendf(nil, `{"spec":{"requesters":[{"name":%q}]}}`, scaler)
	if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Patch(t.Context(), request.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatalf("replacing the requesters: %v", err)
	}
	c.await("the controller to add its requester again", states{"request/pod": "Intercepting by [nodemaintenance.k8s.io " + scaler + "]"})
}

// held holds the requests for evictions that a client makes until it is released, as a slow webhook does, or a process
// that is suspended when it has decided.
type held struct {
	http.RoundTripper
	arrived  chan struct{}
	released chan struct{}
	answered chan int
}

func (h held) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPatch || !strings.Contains(request.URL.Path, "/evictionrequests/") {
		return h.RoundTripper.RoundTrip(request)
	}
	h.arrived <- struct{}{}
	<-h.released
	response, err := h.RoundTripper.RoundTrip(request)
	if err == nil {
		h.answered <- response.StatusCode
	}
	return response, err
}

// testRequestAfterEnd has a request for a maintenance arrive when this has ended, and the next leader has cleared its
// node. No interceptor would keep the pod until somebody withdraws.
func testRequestAfterEnd(t *testing.T, c *cluster) {
	c.createNode("one")
	pod := c.createPod(newPod("pod", "one"))
	c.startEvictionController()
	hold := held{arrived: make(chan struct{}, 100), released: make(chan struct{}), answered: make(chan int, 100)}
	release := sync.OnceFunc(func() { close(hold.released) })
	defer release()
	c.StartMaintenanceController(c.ClientThrough(maintenanceUser, func(next http.RoundTripper) http.RoundTripper {
		hold := hold
		hold.RoundTripper = next
		return hold
	}), c.clock)
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	// The clock goes on meanwhile: a conflict delays it.
	c.eventually("the request for the pod", func(context.Context) (bool, string) { return len(hold.arrived) > 0, "none" })
	c.deleteMaintenance("m")
	// That one waits for its own writes.
	c.startLogged()
	c.await("the end of the maintenance", states{"maintenance/m": "gone", "node/one": free})
	release()
	if code := testcluster.Receive(t, "the answer", hold.answered); code != http.StatusConflict {
		t.Errorf("the request was answered with %d, want 409", code)
	}
	c.settle()
	c.expect("that nothing follows", states{"request/pod": "none", "pod/pod": "here"})
	c.expectUntouched(pod)
}
