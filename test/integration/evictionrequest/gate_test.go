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
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// testServed creates a request with a status, which is ignored.
func testServed(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("pod", withInterceptors(first, second)))
	if diff := cmp.Diff([]v1.EvictionInterceptor{{Name: first}, {Name: second}}, pod.Spec.EvictionInterceptors); diff != "" {
		t.Errorf("interceptors of the stored pod (-want +got):\n%s", diff)
	}
	request := newRequest(pod)
	request.Status.ObservedGeneration = 1
	request.Status.ProcessedInterceptors = []string{first}
	created := c.createRequest(request)
	stored, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(t.Context(), request.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the request: %v", err)
	}
	if diff := cmp.Diff(created, stored); diff != "" {
		t.Errorf("request as created and as read (-created +read):\n%s", diff)
	}
	wantSpec := request.Spec
	wantSpec.HeartbeatDeadlineSeconds = ptr.To[int32](1200)
	if diff := cmp.Diff(wantSpec, stored.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	wantStatus := coordinationv1alpha1.EvictionRequestStatus{Conditions: []metav1.Condition{{
		Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "Pending", Message: "The controller has not acted on the request yet.",
	}}}
	if diff := cmp.Diff(wantStatus, stored.Status, ignoreTimes); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(servedResources, c.discover()); diff != "" {
		t.Errorf("discovered resources (-want +got):\n%s", diff)
	}
}

// servedResources are all resources in coordination.k8s.io/v1alpha1.
var servedResources = []metav1.APIResource{
	{
		Name: "evictionrequests", SingularName: "evictionrequest", Kind: "EvictionRequest", Namespaced: true, ShortNames: []string{"er"},
		Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	},
	{Name: "evictionrequests/status", Kind: "EvictionRequest", Namespaced: true, Verbs: []string{"get", "patch", "update"}},
}

// discover returns the resources in coordination.k8s.io/v1alpha1, or nil if the version is not
// served.
func (c *cluster) discover() []metav1.APIResource {
	c.t.Helper()
	found, err := c.client.Discovery().ServerResourcesForGroupVersion("coordination.k8s.io/v1alpha1")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatalf("discovering the resources: %v", err)
	}
	for i := range found.APIResources {
		found.APIResources[i].StorageVersionHash = "" // Depends on all other fields.
	}
	return found.APIResources
}

// publishes reports whether the OpenAPI document has a path, once it has the paths of leases, which
// are in the same group.
func (c *cluster) publishes(path string) bool {
	c.t.Helper()
	var document struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	c.Eventually("the OpenAPI document", func(ctx context.Context) (bool, string) {
		data, err := c.client.Discovery().RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept", "application/json").Do(ctx).Raw()
		if err != nil {
			return false, err.Error()
		}
		if err := json.Unmarshal(data, &document); err != nil {
			return false, err.Error()
		}
		_, ok := document.Paths["/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"]
		return ok, fmt.Sprintf("%d paths", len(document.Paths))
	})
	_, ok := document.Paths[path]
	return ok
}

const requestsPath = "/apis/coordination.k8s.io/v1alpha1/namespaces/{namespace}/evictionrequests"

// TestFeatureGate enables, disables and enables the gate again with one etcd. The subtests depend
// on each other.
func TestFeatureGate(t *testing.T) {
	etcd := framework.SharedEtcd()
	var (
		namespace  string
		pod        *v1.Pod
		deployment *appsv1.Deployment
		request    *coordinationv1alpha1.EvictionRequest
	)
	t.Run("on", func(t *testing.T) {
		c := newCluster(t, startAPIServer(t, etcd, true))
		namespace = c.namespace
		pod = c.createPod(newPod("pod", withInterceptors(first)))
		deployment = c.createDeployment(newDeployment("deployment", newPod("pod", withInterceptors(first))))
		request = c.createRequest(newRequest(pod))
		if !c.publishes(requestsPath) {
			t.Errorf("the OpenAPI document lacks %s", requestsPath)
		}
	})
	t.Run("off", func(t *testing.T) {
		config := startAPIServer(t, etcd, false)
		c := newCluster(t, config)
		c.expectNotServed()
		c.expectFieldDropped()
		old := clusterIn(testcluster.In(t, config, namespace))
		old.expectFieldKept(pod, deployment)
	})
	t.Run("on again", func(t *testing.T) {
		config := startAPIServer(t, etcd, true)
		c := clusterIn(testcluster.In(t, config, namespace))
		kept, err := c.client.CoordinationV1alpha1().EvictionRequests(namespace).Get(t.Context(), request.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatalf("reading the request from before: %v", err)
		}
		if diff := cmp.Diff(request, kept); diff != "" {
			t.Errorf("request before and after the gate was off (-before +after):\n%s", diff)
		}
	})
}

// expectNotServed fails if the API server serves requests.
func (c *cluster) expectNotServed() {
	c.t.Helper()
	if found := c.discover(); found != nil {
		c.t.Errorf("with the gate off there is %v", found)
	}
	groups, err := c.client.Discovery().ServerGroups()
	if err != nil {
		c.t.Fatalf("discovering the groups: %v", err)
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if version.GroupVersion == "coordination.k8s.io/v1alpha1" {
				c.t.Errorf("with the gate off there is the version %s", version.GroupVersion)
			}
		}
	}
	if c.publishes(requestsPath) {
		c.t.Errorf("with the gate off the OpenAPI document has %s", requestsPath)
	}
	pod := newPod("pod")
	pod.UID = podUID
	_, err = c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Create(c.t.Context(), newRequest(pod), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) {
		c.t.Errorf("creating a request with the gate off: %v, want NotFound", err)
	}
}

// expectFieldDropped fails if the field is added to an object that did not have it.
func (c *cluster) expectFieldDropped() {
	c.t.Helper()
	if pod := c.createPod(newPod("pod", withInterceptors(first))); pod.Spec.EvictionInterceptors != nil {
		c.t.Errorf("with the gate off a new pod has the interceptors %v", pod.Spec.EvictionInterceptors)
	}
	deployment := c.createDeployment(newDeployment("deployment", newPod("pod", withInterceptors(first))))
	if interceptors := deployment.Spec.Template.Spec.EvictionInterceptors; interceptors != nil {
		c.t.Errorf("with the gate off the template of a new deployment has the interceptors %v", interceptors)
	}
	deployment.Spec.Template.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: first}}
	if interceptors := c.updateDeployment(deployment).Spec.Template.Spec.EvictionInterceptors; interceptors != nil {
		c.t.Errorf("with the gate off the template of an existing deployment has the interceptors %v", interceptors)
	}
}

// expectFieldKept fails if objects with the field lose it or cannot be updated.
func (c *cluster) expectFieldKept(pod *v1.Pod, deployment *appsv1.Deployment) {
	c.t.Helper()
	want := []v1.EvictionInterceptor{{Name: first}}
	patched, err := c.client.CoreV1().Pods(c.namespace).Patch(c.t.Context(), pod.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"gate":"off"}}}`), metav1.PatchOptions{})
	if err != nil {
		c.t.Fatalf("labeling a pod that has interceptors: %v", err)
	}
	updated := c.setPodStatus(patched, v1.PodStatus{Phase: v1.PodRunning})
	for _, pod := range []*v1.Pod{patched, updated} {
		if !slices.Equal(pod.Spec.EvictionInterceptors, want) {
			c.t.Errorf("with the gate off a stored pod has the interceptors %v, want %v", pod.Spec.EvictionInterceptors, want)
		}
	}
	deployment.Spec.Template.Spec.Containers[0].Image = "newer"
	if got := c.updateDeployment(deployment).Spec.Template.Spec.EvictionInterceptors; !slices.Equal(got, want) {
		c.t.Errorf("with the gate off a stored template has the interceptors %v, want %v", got, want)
	}
}

// newDeployment returns a deployment with the given pod as its template.
func newDeployment(name string, pod *v1.Pod) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}
}

func (c *cluster) createDeployment(deployment *appsv1.Deployment) *appsv1.Deployment {
	c.t.Helper()
	created, err := c.client.AppsV1().Deployments(c.namespace).Create(c.t.Context(), deployment, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating deployment %s: %v", deployment.Name, err)
	}
	return created
}

func (c *cluster) updateDeployment(deployment *appsv1.Deployment) *appsv1.Deployment {
	c.t.Helper()
	updated, err := c.client.AppsV1().Deployments(c.namespace).Update(c.t.Context(), deployment, metav1.UpdateOptions{})
	if err != nil {
		c.t.Fatalf("updating deployment %s: %v", deployment.Name, err)
	}
	return updated
}

// TestFeatureGateInMidFlight disables the gate while requests are in all states, and enables it
// again. Changes in between must be detected, and no step may be repeated.
func TestFeatureGateInMidFlight(t *testing.T) {
	etcd := framework.SharedEtcd()
	var namespace string
	pods := map[string]*v1.Pod{}
	before := map[string]*coordinationv1alpha1.EvictionRequest{}
	t.Run("on", func(t *testing.T) {
		c := newCluster(t, startAPIServer(t, etcd, true))
		namespace = c.namespace
		c.expectInterceptorsValidated()
		before = c.startInEveryState(pods)
	})
	t.Run("off", func(t *testing.T) {
		config := startAPIServer(t, etcd, false)
		c := clusterIn(testcluster.In(t, config, namespace))
		// Without the gate, the names are not validated.
		if pod := c.createPod(newPod("unvalidated", withInterceptors("Not A Name"))); pod.Spec.EvictionInterceptors != nil {
			t.Errorf("with the gate off a new pod has the interceptors %v", pod.Spec.EvictionInterceptors)
		}
		c.deleteBudget("guard")
		c.deletePod(pods["vanished"])
		pods["intercepted"] = c.setPodStatus(pods["intercepted"], v1.PodStatus{Phase: v1.PodRunning})
	})
	t.Run("on again", func(t *testing.T) {
		config := startAPIServer(t, etcd, true)
		c := clusterIn(testcluster.In(t, config, namespace))
		c.expectInterceptorsValidated()
		c.StartDisruptionController(c.namespace)
		c.startController(clock.RealClock{})
		c.finishFromEveryState(pods, before)
	})
}

// expectInterceptorsValidated fails unless the interceptors of pods are validated.
func (c *cluster) expectInterceptorsValidated() {
	c.t.Helper()
	_, err := c.client.CoreV1().Pods(c.namespace).Create(c.t.Context(), newPod("invalid", withInterceptors("Not A Name")), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		c.t.Errorf("with the gate on, creating a pod with an invalid interceptor: %v, want Invalid", err)
	}
}

// startInEveryState creates pods, which are named after the states that their requests have when it
// returns. No controller is running then.
func (c *cluster) startInEveryState(pods map[string]*v1.Pod) map[string]*coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	for _, name := range []string{"pending", "intercepted", "vanished", "canceled"} {
		pods[name] = c.createPod(newPod(name, withInterceptors(first)))
	}
	pods["evicted"] = c.createPod(newPod("evicted"))
	pods["blocked"] = c.createRunningPod(newPod("blocked"), v1.ConditionTrue)
	c.StartDisruptionController(c.namespace)
	c.createBudget("guard", pods["blocked"], 1, policyv1.IfHealthyBudget)
	stop := c.startController(clock.RealClock{})
	for name, reached := range map[string]func(*coordinationv1alpha1.EvictionRequest) bool{
		"intercepted": active(first), "vanished": active(first), "canceled": active(first), "evicted": evicted, "blocked": blocked,
	} {
		c.join(pods[name], drainer)
		c.awaitRequest(pods[name], "the state", reached)
	}
	c.report(pods["intercepted"], started(first, metav1.Now()))
	c.leave(pods["canceled"], drainer)
	c.awaitRequest(pods["canceled"], "the state", canceled)
	stop()
	c.join(pods["pending"], drainer)

	requests := map[string]*coordinationv1alpha1.EvictionRequest{}
	for name, pod := range pods {
		requests[name] = c.awaitRequest(pod, "the latest version", func(*coordinationv1alpha1.EvictionRequest) bool { return true })
	}
	return requests
}

// finishFromEveryState completes the requests, and checks that the finished ones are unchanged.
func (c *cluster) finishFromEveryState(pods map[string]*v1.Pod, before map[string]*coordinationv1alpha1.EvictionRequest) {
	c.t.Helper()
	c.awaitRequest(pods["pending"], "the first interceptor to be active", active(first))
	c.awaitRequest(pods["blocked"], "the end of the request", evicted)
	c.awaitRequest(pods["vanished"], "the end of the request", evicted)

	request := c.awaitRequest(pods["intercepted"], "the first interceptor to be active", active(first))
	if got, want := request.Status.ActivationTime, before["intercepted"].Status.ActivationTime; !got.Equal(want) {
		c.t.Errorf("activated at %v before the gate was off and at %v after it: the deadline has changed", want, got)
	}
	now := metav1.Now()
	c.report(pods["intercepted"], heartbeat(first, *request.Status.Interceptors[0].StartTime, now).WithCompletionTime(now))
	c.completeTurns(pods["pending"], first)
	for _, name := range []string{"intercepted", "pending"} {
		c.awaitRequest(pods[name], "the end of the request", evicted)
		c.expectGone(pods[name])
	}
	for _, name := range []string{"evicted", "canceled"} {
		request := c.awaitRequest(pods[name], "the latest version", func(*coordinationv1alpha1.EvictionRequest) bool { return true })
		if diff := cmp.Diff(before[name], request); diff != "" {
			c.t.Errorf("request that was finished already (-before +after):\n%s", diff)
		}
	}
	c.expectUntouched(pods["canceled"])
}
