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
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	"k8s.io/utils/ptr"
)

// kubeletRights is a cluster with the node authorizer. The kubelet of worker-1 tries what it likes.
type kubeletRights struct {
	*testing.T
	*admissionCluster
	kubelet clientset.Interface
	// The requests for a mirror pod and another pod of worker-1, and for a mirror pod of worker-2.
	own, ordinary, foreign string
}

// A kubelet may report about the evictions of its own mirror pods as kubelet.k8s.io, and write the
// maintenance of its shutdowns, but nothing else.
func TestKubeletRights(t *testing.T) {
	r := newKubeletRights(t, true)
	r.eventually("the authorizer to know the mirror pod", func(ctx context.Context) (bool, string) {
		_, err := r.requests().Get(ctx, r.own, metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	for _, test := range []struct {
		name string
		run  func(*kubeletRights)
	}{
		{"requests are read by name", (*kubeletRights).testReads},
		{"reports", (*kubeletRights).testReports},
		{"requests are not written", (*kubeletRights).testWrites},
		{"maintenances", (*kubeletRights).testMaintenances},
		{"a pod that is gone", (*kubeletRights).testGonePod},
	} {
		t.Run(test.name, func(t *testing.T) {
			subtest := *r
			subtest.T = t
			test.run(&subtest)
		})
	}
}

func TestKubeletRightsWithoutTheGate(t *testing.T) {
	r := newKubeletRights(t, false)
	_, err := r.requests().Get(t.Context(), r.own, metav1.GetOptions{})
	r.expectForbidden("reading the request of a mirror pod", err)
	r.expectForbidden("reporting", r.report(r.own, `{"name":"kubelet.k8s.io","message":"stopping"}`))
	_, err = r.kubelet.CoordinationV1alpha1().NodeMaintenances().Create(t.Context(), admissionMaintenance("graceful-shutdown-worker-1", admissionNamed("worker-1")), metav1.CreateOptions{})
	r.expectForbidden("creating a maintenance", err)
}

func newKubeletRights(t *testing.T, gate bool) *kubeletRights {
	t.Helper()
	c := startAdmissionServer(t, "Node,RBAC", gate)
	c.createNodes()
	r := &kubeletRights{T: t, admissionCluster: c, kubelet: c.clientOf(admissionKubelet, nil)}
	r.own = r.createRequest(r.createMirrorPod("static", "worker-1"))
	r.foreign = r.createRequest(r.createMirrorPod("foreign", "worker-2"))
	ordinary := r.newPod("ordinary", "worker-1")
	r.ordinary = r.createRequest(r.createPod(c.client, ordinary))
	return r
}

func (r *kubeletRights) newPod(name, node string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: ptr.To(false),
			Containers: []v1.Container{{Name: "main", Image: "none"}},
		},
	}
}

// createMirrorPod creates a mirror pod as the kubelet of the node.
func (r *kubeletRights) createMirrorPod(name, node string) *v1.Pod {
	r.Helper()
	config := *r.config
	config.Impersonate.UserName, config.Impersonate.Groups = "system:node:"+node, []string{"system:nodes", "system:authenticated"}
	owner, err := r.client.CoreV1().Nodes().Get(r.Context(), node, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	pod := r.newPod(name, node)
	pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: owner.UID, Controller: ptr.To(true)}}
	return r.createPod(clientset.NewForConfigOrDie(&config), pod)
}

func (r *kubeletRights) createPod(client clientset.Interface, pod *v1.Pod) *v1.Pod {
	r.Helper()
	var created *v1.Pod
	r.eventually("the creation of pod "+pod.Name, func(ctx context.Context) (bool, string) {
		var err error
		created, err = client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		return err == nil, fmt.Sprint(err) // NodeRestriction waits for its cache of nodes.
	})
	return created
}

// createRequest creates the request for a pod, with the status that controllers give it.
func (r *kubeletRights) createRequest(pod *v1.Pod) string {
	r.Helper()
	requests := r.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace)
	request, err := requests.Create(r.Context(), &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "test.example.com"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		r.Fatalf("creating the request for %s: %v", pod.Name, err)
	}
	status := `{"status":{"targetInterceptors":[{"name":"kubelet.k8s.io"},{"name":"imperative-eviction.k8s.io"}],
		"interceptors":[{"name":"kubelet.k8s.io"},{"name":"imperative-eviction.k8s.io"}],"activeInterceptors":["kubelet.k8s.io"]}}`
	if _, err := requests.Patch(r.Context(), request.Name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		r.Fatalf("writing the status of the request for %s: %v", pod.Name, err)
	}
	return request.Name
}

func (r *kubeletRights) requests() coordinationclient.EvictionRequestInterface {
	return r.kubelet.CoordinationV1alpha1().EvictionRequests(metav1.NamespaceDefault)
}

// report writes the entries of interceptors, as the kubelet.
func (r *kubeletRights) report(request, entries string) error {
	return r.patchStatus(request, `{"status":{"interceptors":[`+entries+`]}}`)
}

func (r *kubeletRights) patchStatus(request, patch string) error {
	_, err := r.requests().Patch(r.Context(), request, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

func (r *kubeletRights) expectForbidden(what string, err error, texts ...string) {
	r.Helper()
	admissionExpectDenied(r.T, what, err, texts...)
}

func (r *kubeletRights) testReads() {
	list := func(name string) metav1.ListOptions {
		return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
	}
	requests := r.requests()
	found, err := requests.List(r.Context(), list(r.own))
	if err != nil || len(found.Items) != 1 {
		r.Errorf("listing its own request by name: %v, %v", found, err)
	}
	tryWatch := func(requests coordinationclient.EvictionRequestInterface, name string) error {
		watch, err := requests.Watch(r.Context(), list(name))
		if err == nil {
			watch.Stop() // The API server would wait for it.
		}
		return err
	}
	admissionExpectAllowed(r.T, "watching its own request", tryWatch(requests, r.own))
	for what, name := range map[string]string{"an ordinary pod": r.ordinary, "a mirror pod of another node": r.foreign, "no pod": "3f0c1f4e-0000-4000-8000-000000000000"} {
		_, err := requests.Get(r.Context(), name, metav1.GetOptions{})
		r.expectForbidden("reading the request for "+what, err)
		r.expectForbidden("watching the request for "+what, tryWatch(requests, name))
	}
	_, err = requests.List(r.Context(), metav1.ListOptions{})
	r.expectForbidden("listing all of the namespace", err)
	_, err = requests.List(r.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=" + r.foreign})
	r.expectForbidden("listing all others", err)
	r.expectForbidden("watching in all namespaces", tryWatch(r.kubelet.CoordinationV1alpha1().EvictionRequests(metav1.NamespaceAll), r.own))
}

func (r *kubeletRights) testReports() {
	const own, other = `{"name":"kubelet.k8s.io","message":"%s"}`, `{"name":"imperative-eviction.k8s.io"}`
	const controllers = "belongs to the eviction request controller"
	admissionExpectAllowed(r.T, "reporting", r.report(r.own, fmt.Sprintf(own, "stopping")+","+other))
	for what, name := range map[string]string{"an ordinary pod": r.ordinary, "a mirror pod of another node": r.foreign} {
		r.expectForbidden("reporting about "+what, r.report(name, fmt.Sprintf(own, "stopping")+","+other))
	}
	r.expectForbidden("finishing the request", r.patchStatus(r.own, `{"status":{"activeInterceptors":null,"processedInterceptors":["kubelet.k8s.io"],
		"conditions":[{"type":"Evicted","status":"True","reason":"PodDeleted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`), controllers)
	admissionExpectAllowed(r.T, "reporting with a finalizer", r.patchStatus(r.own, `{"metadata":{"finalizers":["example.com/never"]},"status":{"interceptors":[`+fmt.Sprintf(own, "again")+`,`+other+`]}}`))
	request, err := r.requests().Get(r.Context(), r.own, metav1.GetOptions{})
	if err != nil || len(request.Finalizers) > 0 || request.Status.Interceptors[0].Message != "again" {
		r.Errorf("after a report with a finalizer: %v, %v", request, err)
	}

	now := time.Now().UTC().Format(time.RFC3339)
	done := fmt.Sprintf(`{"name":"kubelet.k8s.io","startTime":%q,"heartbeatTime":%q,"completionTime":%q}`, now, now, now)
	admissionExpectAllowed(r.T, "completing", r.report(r.own, done+","+other))
	next := `{"status":{"activeInterceptors":["imperative-eviction.k8s.io"],"processedInterceptors":["kubelet.k8s.io"]}}`
	r.expectForbidden("activating the next interceptor", r.patchStatus(r.own, next), controllers)
	if _, err := r.client.CoordinationV1alpha1().EvictionRequests(metav1.NamespaceDefault).
		Patch(r.Context(), r.own, types.MergePatchType, []byte(next), metav1.PatchOptions{}, "status"); err != nil {
		r.Fatalf("activating the next interceptor as a controller: %v", err)
	}
	r.expectForbidden("reporting as another interceptor", r.report(r.own, done+`,{"name":"imperative-eviction.k8s.io","message":"evicted"}`),
		"belongs to the interceptor imperative-eviction.k8s.io")
	r.expectForbidden("keeping the request", r.patchStatus(r.own, `{"status":{"evictionRequestCancellationPolicy":"Forbid"}}`))
}

func (r *kubeletRights) testWrites() {
	requests := r.requests()
	for _, name := range []string{r.own, r.ordinary, r.foreign} {
		_, err := requests.Patch(r.Context(), name, types.MergePatchType, []byte(`{"spec":{"requesters":null}}`), metav1.PatchOptions{})
		r.expectForbidden("canceling", err)
		r.expectForbidden("deleting", requests.Delete(r.Context(), name, metav1.DeleteOptions{}))
	}
	r.expectForbidden("deleting all", requests.DeleteCollection(r.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	pod := r.createMirrorPod("another", "worker-1")
	_, err := requests.Create(r.Context(), &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "test.example.com"}},
		},
	}, metav1.CreateOptions{})
	r.expectForbidden("creating a request for its own mirror pod", err)
}

func (r *kubeletRights) testMaintenances() {
	const own = "graceful-shutdown-worker-1"
	maintenances := r.kubelet.CoordinationV1alpha1().NodeMaintenances()
	_, err := maintenances.Create(r.Context(), admissionMaintenance(own, admissionNamed("worker-1")), metav1.CreateOptions{})
	admissionExpectAllowed(r.T, "creating its own", err)
	r.endWith(r.T, own)
	_, err = maintenances.Get(r.Context(), own, metav1.GetOptions{})
	admissionExpectAllowed(r.T, "reading its own", err)
	_, err = maintenances.Patch(r.Context(), own, types.MergePatchType, []byte(`{"spec":{"stage":"Complete"}}`), metav1.PatchOptions{})
	admissionExpectAllowed(r.T, "completing its own", err)
	_, err = maintenances.Patch(r.Context(), own, types.MergePatchType, []byte(`{"status":{"conditions":[]}}`), metav1.PatchOptions{}, "status")
	r.expectForbidden("writing the status of its own", err)
	admissionExpectAllowed(r.T, "deleting its own", maintenances.Delete(r.Context(), own, metav1.DeleteOptions{}))

	// A node of that name is known to the node authorizer of no kubelet but its own.
	for _, name := range []string{"kernel-update", "graceful-shutdown-worker-2"} {
		_, err = maintenances.Create(r.Context(), admissionMaintenance(name, admissionNamed("worker-1")), metav1.CreateOptions{})
		r.expectForbidden("creating "+name, err, `only the NodeMaintenance "graceful-shutdown-worker-1" of itself`)
		r.create(r.T, admissionMaintenance(name, admissionNamed("worker-1")))
		_, err = maintenances.Get(r.Context(), name, metav1.GetOptions{})
		r.expectForbidden("reading "+name, err)
		_, err = maintenances.Patch(r.Context(), name, types.MergePatchType, []byte(`{"spec":{"stage":"Complete"}}`), metav1.PatchOptions{})
		r.expectForbidden("completing "+name, err)
		r.expectForbidden("deleting "+name, maintenances.Delete(r.Context(), name, metav1.DeleteOptions{}))
	}
	_, err = maintenances.List(r.Context(), metav1.ListOptions{})
	r.expectForbidden("listing all", err)
	r.expectForbidden("deleting all", maintenances.DeleteCollection(r.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// testGonePod deletes the mirror pod: what is reported afterwards belongs to no pod of the node.
func (r *kubeletRights) testGonePod() {
	if err := r.client.CoreV1().Pods(metav1.NamespaceDefault).Delete(r.Context(), "static", *metav1.NewDeleteOptions(0)); err != nil {
		r.Fatal(err)
	}
	r.eventually("the authorizer to forget the mirror pod", func(ctx context.Context) (bool, string) {
		_, err := r.requests().Get(ctx, r.own, metav1.GetOptions{})
		return apierrors.IsForbidden(err), fmt.Sprint(err)
	})
	r.createMirrorPod("static", "worker-1")
	r.expectForbidden("reading the request for a pod that was replaced", r.report(r.own, `{"name":"kubelet.k8s.io"}`))
}
