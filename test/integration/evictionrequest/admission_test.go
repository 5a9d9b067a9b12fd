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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	requestclient "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	namespacecontroller "k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/utils/clock"
)

const (
	// guest has all permissions on EvictionRequests, and none on pods.
	guest = "guest@example.com"

	requestsResource = "evictionrequests"
	requestsGroup    = "coordination.k8s.io"
)

// TestAdmission uses an API server of its own, because the namespace controller and the garbage
// collector process all namespaces.
func TestAdmission(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	tests := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"permissions on requests alone neither evict pods nor cancel evictions", testGuest},
		{"forged managed fields are rejected", testForgedManagedFields},
		{"creating a request costs no additional call", testCostOfCreation},
		{"permission on one pod is sufficient for its request only", testPermissionOnOnePod},
		{"finished requests can be deleted without permission on pods", testDeletionOfFinishedRequest},
		{"the controller may copy labels and no more", testControllerWrites},
		{"Forbid applies until the pod is gone", testForbid},
		{"an interceptor may change its own fields and no others", testStatusAuthorization},
		{"who has all permissions in the namespace does not control requests", testStatusOfNamespaceAdministrator},
		{"an interceptor of the library needs no other permissions", testLibraryPermissions},
		{"namespace deletion finishes", testNamespaceDeletion},
		{"garbage collection of a request follows its owner", testGarbageCollection},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCluster(t, config)) })
	}
}

// grant grants permissions in the namespace to a user and waits until they are effective.
func (c *cluster) grant(user string, rules ...rbacv1.PolicyRule) {
	c.t.Helper()
	name := strings.NewReplacer("@", "-", ":", "-").Replace(user)
	roles := c.client.RbacV1()
	if _, err := roles.Roles(c.namespace).Create(c.t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating the role of %s: %v", user, err)
	}
	if _, err := roles.RoleBindings(c.namespace).Create(c.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("binding the role of %s: %v", user, err)
	}
	c.Eventually("the permissions of "+user, func(context.Context) (bool, string) {
		verbs := c.mayDo(user, requestsGroup, requestsResource)
		return verbs != "", verbs
	})
}

func allOnRequests() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{requestsGroup}, Resources: []string{requestsResource}, Verbs: []string{"*"}}
}

// requestsOf returns a client for the requests of the namespace as the user.
func (c *cluster) requestsOf(user string) requestclient.EvictionRequestInterface {
	return c.ClientOf(user).CoordinationV1alpha1().EvictionRequests(c.namespace)
}

// expectDenied fails unless the error of the admission plugin names the missing permission: a
// refusal by RBAC would prove nothing here.
func (c *cluster) expectDenied(what string, pod *v1.Pod, err error) {
	c.t.Helper()
	if want := fmt.Sprintf("cannot delete pod %q in namespace %q", pod.Name, c.namespace); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		c.t.Errorf("%s: %v, want Forbidden because the user %s", what, err, want)
	}
}

func (c *cluster) expectAllowed(what string, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Errorf("%s: %v", what, err)
	}
}

func (c *cluster) getRequest(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	request, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(c.t.Context(), string(pod.UID), metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading the request for pod %s: %v", pod.Name, err)
	}
	return request
}

// applyAs adds a requester by Server-Side Apply as the user.
func (c *cluster) applyAs(user string, pod *v1.Pod, options metav1.ApplyOptions) error {
	target := coordinationapply.EvictionTarget().WithPod(coordinationapply.LocalPodReference().WithName(pod.Name).WithUID(string(pod.UID)))
	spec := coordinationapply.EvictionRequestSpec().WithTarget(target).WithRequesters(coordinationapply.Requester().WithName(scaler))
	_, err := c.requestsOf(user).Apply(c.t.Context(), coordinationapply.EvictionRequest(string(pod.UID), c.namespace).WithSpec(spec), options)
	return err
}

// patchAs applies a merge patch to the request as the user.
func (c *cluster) patchAs(user string, pod *v1.Pod, patch string, options metav1.PatchOptions) error {
	_, err := c.requestsOf(user).Patch(c.t.Context(), string(pod.UID), types.MergePatchType, []byte(patch), options)
	return err
}

// testGuest tries all ways to request or cancel an eviction.
func testGuest(t *testing.T, c *cluster) {
	c.grant(guest, allOnRequests())
	requests, dryRun := c.requestsOf(guest), []string{metav1.DryRunAll}
	free := c.createPod(newPod("free"))
	missing := newPod("missing")
	missing.UID = podUID

	for _, pod := range []*v1.Pod{free, missing} {
		_, err := requests.Create(t.Context(), newRequest(pod), metav1.CreateOptions{})
		c.expectDenied("creating", pod, err)
		_, err = requests.Create(t.Context(), newRequest(pod), metav1.CreateOptions{DryRun: dryRun})
		c.expectDenied("creating, dry run", pod, err)
		c.expectDenied("creating by apply", pod, c.applyAs(guest, pod, metav1.ApplyOptions{FieldManager: scaler}))
	}
	if list, err := requests.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("unexpected requests: %v, %v", list, err)
	}

	pod := c.createPod(newPod("wanted"))
	before := c.join(pod, drainer)
	c.expectDenied("joining by apply", pod, c.applyAs(guest, pod, metav1.ApplyOptions{FieldManager: scaler, Force: true}))
	joined := before.DeepCopy()
	joined.Spec.Requesters = append(joined.Spec.Requesters, coordinationv1alpha1.Requester{Name: scaler})
	_, err := requests.Update(t.Context(), joined, metav1.UpdateOptions{})
	c.expectDenied("joining by update", pod, err)
	for what, patch := range map[string]string{
		"canceling":                   `{"spec":{"requesters":null}}`,
		"replacing the requester":     `{"spec":{"requesters":[{"name":"guest.example.com"}]}}`,
		"annotating":                  `{"metadata":{"annotations":{"a":"b"}}}`,
		"labeling":                    `{"metadata":{"labels":{"app":"mine"}}}`,
		"canceling with a finalizer":  `{"spec":{"requesters":null},"metadata":{"finalizers":["example.com/a"]}}`,
		"deletion by a missing owner": `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"` + otherUID + `"}]}}`,
	} {
		c.expectDenied(what, pod, c.patchAs(guest, pod, patch, metav1.PatchOptions{}))
		c.expectDenied(what+", dry run", pod, c.patchAs(guest, pod, patch, metav1.PatchOptions{DryRun: dryRun}))
	}
	c.expectDenied("deleting", pod, requests.Delete(t.Context(), before.Name, metav1.DeleteOptions{}))
	c.expectDenied("deleting, dry run", pod, requests.Delete(t.Context(), before.Name, metav1.DeleteOptions{DryRun: dryRun}))
	c.expectDenied("deleting immediately", pod, requests.Delete(t.Context(), before.Name, *metav1.NewDeleteOptions(0)))
	c.expectDenied("deleting all", pod, requests.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	if diff := cmp.Diff(before, c.getRequest(pod)); diff != "" {
		t.Errorf("the request changed (-before +after):\n%s", diff)
	}
	c.expectUntouched(pod)

	c.expectDenied("adding a finalizer", pod, c.patchAs(guest, pod, `{"metadata":{"finalizers":["example.com/a"]}}`, metav1.PatchOptions{}))
	c.addFinalizer(pod)
	c.expectDenied("deleting with a finalizer", pod, requests.Delete(t.Context(), before.Name, metav1.DeleteOptions{}))
	if request := c.getRequest(pod); request.DeletionTimestamp != nil {
		t.Errorf("the request has the deletionTimestamp %v", request.DeletionTimestamp)
	}
	c.expectAllowed("removing the finalizer", c.patchAs(guest, pod, `{"metadata":{"finalizers":null}}`, metav1.PatchOptions{}))
}

// addFinalizer adds a finalizer to the request for the pod as an administrator.
func (c *cluster) addFinalizer(pod *v1.Pod) {
	c.t.Helper()
	if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Patch(c.t.Context(), string(pod.UID), types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["example.com/a"]}}`), metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("adding a finalizer: %v", err)
	}
}

// testPermissionOnOnePod has a user who may delete one pod by name.
func testPermissionOnOnePod(t *testing.T, c *cluster) {
	const user = "operator@example.com"
	c.grant(user, allOnRequests(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}, ResourceNames: []string{"mine"}})
	mine, foreign := c.createPod(newPod("mine")), c.createPod(newPod("foreign"))
	c.expectAllowed("creating by apply", c.applyAs(user, mine, metav1.ApplyOptions{FieldManager: scaler}))
	c.expectDenied("creating by apply", foreign, c.applyAs(user, foreign, metav1.ApplyOptions{FieldManager: scaler}))
	c.expectAllowed("canceling", c.patchAs(user, mine, `{"spec":{"requesters":null}}`, metav1.PatchOptions{}))

	// Each object of a collection is checked.
	c.join(foreign, drainer)
	requests := c.requestsOf(user)
	c.expectDenied("deleting all", foreign, requests.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	c.getRequest(foreign)
	only := metav1.ListOptions{FieldSelector: "metadata.name=" + string(mine.UID)}
	c.join(mine, drainer)
	c.expectAllowed("deleting its request", requests.DeleteCollection(t.Context(), metav1.DeleteOptions{}, only))
	list, err := requests.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != string(foreign.UID) {
		t.Errorf("remaining requests: %v, %v; want that for pod foreign", list, err)
	}
}

func testDeletionOfFinishedRequest(t *testing.T, c *cluster) {
	c.grant(guest, allOnRequests())
	requests := c.requestsOf(guest)
	stop := c.startController(clock.RealClock{})
	canceledPod, evictedPod := c.createPod(newPod("canceled", withInterceptors(first))), c.createPod(newPod("evicted"))
	c.join(canceledPod, drainer)
	c.join(evictedPod, drainer)
	c.awaitRequest(canceledPod, "the first interceptor to be active", active(first))
	c.leave(canceledPod, drainer)
	c.awaitRequest(canceledPod, "the cancellation", is(coordinationv1alpha1.EvictionRequestConditionCanceled))
	c.awaitRequest(evictedPod, "the eviction", evicted)
	stop()
	c.expectAllowed("deleting a canceled request", requests.Delete(t.Context(), string(canceledPod.UID), metav1.DeleteOptions{}))
	c.expectAllowed("deleting all evicted ones", requests.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))

	// No controller has seen that this pod is gone.
	pod := c.createPod(newPod("unseen"))
	c.join(pod, drainer)
	c.expectDenied("deleting an open request", pod, requests.Delete(t.Context(), string(pod.UID), metav1.DeleteOptions{}))
	c.deletePod(pod)
	c.createPod(newPod("unseen"))
	c.expectAllowed("deleting a request whose pod is gone", requests.Delete(t.Context(), string(pod.UID), metav1.DeleteOptions{}))
}

// testControllerWrites tests the writes of the controller to objects, with its own permissions.
func testControllerWrites(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("labeled"))
	c.join(pod, drainer)
	c.expectAllowed("copying a label of the pod", c.patchAs(controllerUser, pod, `{"metadata":{"labels":{"app":"labeled"}}}`, metav1.PatchOptions{}))
	c.expectDenied("setting another label", pod, c.patchAs(controllerUser, pod, `{"metadata":{"labels":{"app":"other"}}}`, metav1.PatchOptions{}))
	if _, err := c.client.CoreV1().Pods(c.namespace).Patch(t.Context(), pod.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":null,"tier":"1"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("labeling the pod: %v", err)
	}
	// Admission reads the pod from the API server, so this succeeds immediately.
	c.expectAllowed("following the labels of the pod", c.patchAs(controllerUser, pod, `{"metadata":{"labels":{"app":null,"tier":"1"}}}`, metav1.PatchOptions{}))
	if diff := cmp.Diff(map[string]string{"tier": "1"}, c.getRequest(pod).Labels); diff != "" {
		t.Errorf("labels of the request (-want +got):\n%s", diff)
	}
	c.expectDenied("canceling", pod, c.patchAs(controllerUser, pod, `{"spec":{"requesters":null}}`, metav1.PatchOptions{}))
	c.expectDenied("deleting an open request", pod, c.requestsOf(controllerUser).Delete(t.Context(), string(pod.UID), metav1.DeleteOptions{}))
}

// forbidCancellation forbids the cancellation as the first interceptor of the pod.
func (c *cluster) forbidCancellation(pod *v1.Pod) {
	c.t.Helper()
	stop := c.startController(clock.RealClock{})
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	stop()
	status := coordinationapply.EvictionRequestStatus().
		WithEvictionRequestCancellationPolicy(coordinationv1alpha1.EvictionRequestCancellationPolicyForbid).
		WithInterceptors(started(first, metav1.Now()))
	if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).ApplyStatus(c.t.Context(),
		coordinationapply.EvictionRequest(string(pod.UID), c.namespace).WithStatus(status), metav1.ApplyOptions{FieldManager: first, Force: true}); err != nil {
		c.t.Fatalf("forbidding the cancellation: %v", err)
	}
}

// testForbid tries to delete a request with all permissions.
func testForbid(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("leaving", withInterceptors(first)))
	c.forbidCancellation(pod)
	requests := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace)
	c.addFinalizer(pod)
	const want = `the eviction of pod "leaving" can no longer be canceled, because status.evictionRequestCancellationPolicy is Forbid: delete the request after the pod is gone`
	for what, remove := range map[string]func() error{
		"deleting":             func() error { return requests.Delete(t.Context(), string(pod.UID), metav1.DeleteOptions{}) },
		"deleting immediately": func() error { return requests.Delete(t.Context(), string(pod.UID), *metav1.NewDeleteOptions(0)) },
		"deleting, dry run": func() error {
			return requests.Delete(t.Context(), string(pod.UID), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		},
		"deleting all": func() error {
			return requests.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		},
	} {
		if err := remove(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want Forbidden because %s", what, err, want)
		}
	}
	if request := c.getRequest(pod); request.DeletionTimestamp != nil {
		t.Errorf("the request has the deletionTimestamp %v", request.DeletionTimestamp)
	}
	c.expectAllowed("removing the finalizer", c.patchAs(controllerUser, pod, `{"metadata":{"finalizers":null}}`, metav1.PatchOptions{}))
	c.deletePod(pod)
	c.createPod(newPod("leaving"))
	c.expectAllowed("deleting when the pod is gone", requests.Delete(t.Context(), string(pod.UID), metav1.DeleteOptions{}))
}

// testNamespaceDeletion has a terminating pod with a finalizer, whose request cannot be deleted
// before, and requests in all other states.
func testNamespaceDeletion(t *testing.T, c *cluster) {
	c.startNamespaceController()
	const hold = "example.com/hold"
	lingering := newPod("lingering", withInterceptors(first))
	lingering.Finalizers = []string{hold}
	lingering = c.createPod(lingering)
	forbidden := c.createPod(newPod("forbidden", withInterceptors(first)))
	c.forbidCancellation(lingering)
	c.forbidCancellation(forbidden)
	c.join(c.createPod(newPod("open")), drainer)
	missing := newPod("missing")
	missing.UID = podUID
	c.join(missing, drainer)

	namespaces := c.client.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), c.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting the namespace: %v", err)
	}
	c.Eventually("the deletion of all other pods", func(ctx context.Context) (bool, string) {
		pods, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].DeletionTimestamp != nil, fmt.Sprint(pods, err)
	})
	c.getRequest(lingering)
	if _, err := c.client.CoreV1().Pods(c.namespace).Patch(t.Context(), lingering.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("removing the finalizer of the last pod: %v", err)
	}
	c.Eventually("the deletion of the namespace", func(ctx context.Context) (bool, string) {
		namespace, err := namespaces.Get(ctx, c.namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(namespace, err)
	})
}

// testGarbageCollection deletes the owner of requests.
func testGarbageCollection(t *testing.T, c *cluster) {
	c.startGarbageCollector()
	owned, held := c.createPod(newPod("owned")), c.createPod(newPod("held", withInterceptors(first)))
	c.forbidCancellation(held)
	c.join(owned, drainer) // No controller runs that would evict the pod.
	configMaps := c.client.CoreV1().ConfigMaps(c.namespace)
	owner, err := configMaps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating the owner: %v", err)
	}
	for _, pod := range []*v1.Pod{owned, held} {
		patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]}}`, owner.UID)
		if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Patch(t.Context(), string(pod.UID), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatalf("setting the owner of the request for pod %s: %v", pod.Name, err)
		}
	}
	if err := configMaps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting the owner: %v", err)
	}
	c.awaitNoRequest(owned)
	c.expectUntouched(owned)
	c.getRequest(held)
	c.deletePod(held)
	c.awaitNoRequest(held)
}

func (c *cluster) awaitNoRequest(pod *v1.Pod) {
	c.t.Helper()
	c.Eventually("the deletion of the request for pod "+pod.Name, func(ctx context.Context) (bool, string) {
		request, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(request, err)
	})
}

// configOf returns the configuration of a client with the permissions of the user.
func (c *cluster) configOf(user string) *rest.Config {
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = user
	return config
}

// startNamespaceController starts upstream's controller with the permissions of its role.
func (c *cluster) startNamespaceController() {
	ctx, cancel := context.WithCancel(c.t.Context())
	config := c.configOf("system:serviceaccount:kube-system:namespace-controller")
	client := clientset.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 0)
	controller := namespacecontroller.NewNamespaceController(ctx, client, metadata.NewForConfigOrDie(config),
		client.Discovery().ServerPreferredNamespacedResources, factory.Core().V1().Namespaces(), time.Hour, v1.FinalizerKubernetes)
	c.Run(ctx, cancel, factory, func() { controller.Run(ctx, 1) })
}

// startGarbageCollector starts upstream's controller with the permissions of its role.
func (c *cluster) startGarbageCollector() {
	ctx, cancel := context.WithCancel(c.t.Context())
	config := c.configOf("system:serviceaccount:kube-system:generic-garbage-collector")
	client, metadataClient := clientset.NewForConfigOrDie(config), metadata.NewForConfigOrDie(config)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(client.Discovery()))
	factory := informers.NewSharedInformerFactory(client, 0)
	started := make(chan struct{})
	close(started)
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, metadataClient, mapper, garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(factory, metadatainformer.NewSharedInformerFactory(metadataClient, 0)), started)
	if err != nil {
		c.t.Fatalf("creating the garbage collector: %v", err)
	}
	c.Run(ctx, cancel, factory, func() {
		var running sync.WaitGroup
		running.Go(func() { collector.Sync(ctx, client.Discovery(), pollInterval) })
		collector.Run(ctx, 1, pollTimeout)
		running.Wait()
	})
}
