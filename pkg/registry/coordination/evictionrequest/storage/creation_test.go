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

package storage

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericstorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	"k8s.io/kubernetes/pkg/registry/registrytest"
	"k8s.io/utils/ptr"

	_ "k8s.io/kubernetes/pkg/apis/core/install"
)

// storages has requests and maintenances in an etcd, and pods, nodes and namespaces in another one.
type storages map[string]generic.RESTOptions

func (s storages) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return s[resource.Resource], nil
}

// cluster has endpoints that read pods, and a client of the etcd of the requests.
type cluster struct {
	*endpoints
	pods genericstorage.Interface
	etcd *clientv3.Client
}

func newCluster(t *testing.T, ttl time.Duration) *cluster {
	t.Helper()
	return newClusterWith(t, evictionrequest.Retention{TTL: ttl})
}

func newClusterWith(t *testing.T, retention evictionrequest.Retention) *cluster {
	t.Helper()
	c := &cluster{}
	options := storages{}
	for _, resource := range []schema.GroupResource{coordination.Resource("evictionrequests"), api.Resource("pods")} {
		config, server := registrytest.NewEtcdStorageForResource(t, resource)
		t.Cleanup(func() { server.Terminate(t) })
		config.LeaseManagerConfig = etcd3.NewDefaultLeaseManagerConfig() // As in kube-apiserver.
		options[resource.Resource] = generic.RESTOptions{
			StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: resource.Resource,
		}
		if c.etcd == nil {
			c.etcd = server.V3Client.Client
		}
	}
	for _, other := range []struct {
		resource     schema.GroupResource
		beside, path string
	}{
		{api.Resource("nodes"), "pods", "minions"}, // As in kube-apiserver.
		{api.Resource("namespaces"), "pods", "namespaces"},
		{coordination.Resource("nodemaintenances"), "evictionrequests", "nodemaintenances"},
	} {
		option := options[other.beside]
		option.StorageConfig, option.ResourcePrefix = option.StorageConfig.ForResource(other.resource), other.path
		options[other.resource.Resource] = option
	}
	main, status, err := NewREST(options, retention)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(main.Destroy)
	c.endpoints = &endpoints{REST: main, status: status}
	c.pods = main.targets.objects
	return c
}

func (c *cluster) createPod(t *testing.T, change func(*api.Pod)) {
	t.Helper()
	pod := podtest.MakePod("web-0", podtest.SetNamespace("prod"), podtest.SetLabels(map[string]string{"tier": "x"}))
	pod.UID = targetUID
	if change != nil {
		change(pod)
	}
	if err := c.pods.Create(context.Background(), "/pods/prod/web-0", pod, &api.Pod{}, 0); err != nil {
		t.Fatal(err)
	}
}

// A request is complete from its first version on, whichever way it is created.
func TestCreateForPod(t *testing.T) {
	c := newCluster(t, 0)
	c.createPod(t, nil)
	dryRun, err := c.Create(requestContext("create", ""), newRequest(targetUID), rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(request *coordination.EvictionRequest) {
		t.Helper()
		const builtIn = "imperative-eviction.k8s.io"
		want := coordination.EvictionRequestStatus{
			ObservedGeneration: 1, TargetInterceptors: []coordination.Interceptor{{Name: builtIn}}, ActiveInterceptors: []string{builtIn},
			Interceptors: []coordination.InterceptorStatus{{Name: builtIn}}, ActivationTime: request.Status.ActivationTime,
			Conditions: reconciling(request, "Evicting", "The pod has not left yet."),
		}
		if diff := cmp.Diff(want, request.Status); diff != "" || request.Status.ActivationTime == nil {
			t.Errorf("activated at %v, unexpected status (-want, +got):\n%s", request.Status.ActivationTime, diff)
		}
		if request.Labels["tier"] != "x" || request.Labels["app"] != targetUID[:1] {
			t.Errorf("got the labels %v, want those of the pod and of the requester", request.Labels)
		}
	}
	expect(dryRun.(*coordination.EvictionRequest))
	c.create(t, newRequest(targetUID))
	expect(c.get(t, targetUID))

	// What the controller writes next is an update of the status like any other.
	c.finish(t, targetUID)

	// That of another pod of this name is left to the controller, which cancels it.
	c.create(t, newRequest(anotherUID))
	if other := c.get(t, anotherUID); len(other.Status.TargetInterceptors) > 0 || other.Labels["tier"] != "" {
		t.Errorf("a request for a pod that does not exist has the labels %v and the status %+v", other.Labels, other.Status)
	}
}

// The pod is read from etcd, with the interceptors that were named or registered just before.
func TestCreateForPodWithInterceptors(t *testing.T) {
	for name, change := range map[string]func(*api.Pod){
		"in the spec": func(pod *api.Pod) { pod.Spec.EvictionInterceptors = []api.EvictionInterceptor{{Name: "a.example.com"}} },
		"by annotation": func(pod *api.Pod) {
			pod.Annotations = map[string]string{"interceptor.evictionrequest.coordination.k8s.io/priority_a.example.com": "5000"}
		},
		"by its kind": func(pod *api.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1", Controller: ptr.To(true)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 0)
			c.createPod(t, change)
			c.create(t, newRequest(targetUID))
			request := c.get(t, targetUID)
			want := coordination.EvictionRequestStatus{Conditions: reconciling(request, "Pending", "The controller has not acted on the request yet.")}
			if diff := cmp.Diff(want, request.Status); diff != "" || request.Labels["tier"] != "x" {
				t.Errorf("got the labels %v, and the status (-want, +got):\n%s", request.Labels, diff)
			}
		})
	}
}

func (c *cluster) lease(t *testing.T, uid string) int64 {
	t.Helper()
	key, err := c.KeyFunc(requestContext("get", ""), uid)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := c.etcd.Get(context.Background(), "/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range stored.Kvs {
		if strings.HasSuffix(string(kv.Key), key) {
			return kv.Lease
		}
	}
	t.Fatalf("%s is not in etcd", key)
	return 0
}

func (c *cluster) finish(t *testing.T, uid string) *coordination.EvictionRequest {
	t.Helper()
	request := c.get(t, uid)
	request.Status.Conditions = []metav1.Condition{{Type: "Evicted", Status: metav1.ConditionTrue, Reason: "PodDeleted", LastTransitionTime: metav1.Now()}}
	request.Status.ActiveInterceptors = nil
	request.Status.ProcessedInterceptors = []string{"imperative-eviction.k8s.io"}
	finished, err := update(c.status, "status", request)
	if err != nil {
		t.Fatalf("finishing the request: %v", err)
	}
	return finished
}

// etcd removes a finished request, and tells the watches.
func TestFinishedRequestsExpire(t *testing.T) {
	c := newCluster(t, time.Second)
	c.createPod(t, nil)
	created := c.create(t, newRequest(targetUID))
	if lease := c.lease(t, targetUID); lease != 0 {
		t.Errorf("a request that is not finished has the lease %x", lease)
	}
	watching, err := c.Watch(requestContext("watch", ""), &metainternalversion.ListOptions{ResourceVersion: created.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	c.finish(t, targetUID)
	timeout := time.After(time.Minute)
	for {
		select {
		case event := <-watching.ResultChan():
			if event.Type == watch.Deleted {
				if got := event.Object.(*coordination.EvictionRequest); got.Name != targetUID || len(got.Status.Conditions) != 1 {
					t.Errorf("got the last version %+v, want the finished one", got)
				}
				return
			}
		case <-timeout:
			t.Fatal("the finished request is still there after a minute")
		}
	}
}

// A request is kept until so many others have finished. Writes to finished requests, dry runs and reports of requests
// that are not finished do not count, however many there are.
func TestOnlyEndsCount(t *testing.T) {
	c := newClusterWith(t, evictionrequest.Retention{TTL: time.Hour, MaxFinished: 2})
	keptFor := func(uid string) time.Duration {
		t.Helper()
		granted, err := c.etcd.TimeToLive(context.Background(), clientv3.LeaseID(c.lease(t, uid)))
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(granted.GrantedTTL) * time.Second
	}
	finish := func(uid string) *coordination.EvictionRequest {
		t.Helper()
		c.createPod(t, func(pod *api.Pod) { pod.UID = types.UID(uid) })
		c.create(t, newRequest(uid))
		dry := c.get(t, uid)
		dry.Status.Conditions = []metav1.Condition{{Type: "Evicted", Status: metav1.ConditionTrue, Reason: "PodDeleted", LastTransitionTime: metav1.Now()}}
		dry.Status.ActiveInterceptors, dry.Status.ProcessedInterceptors = nil, []string{"imperative-eviction.k8s.io"}
		for range 3 {
			if _, _, err := c.status.Update(requestContext("update", "status"), uid, rest.DefaultUpdatedObjectInfo(dry),
				rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Fatal(err)
			}
		}
		finished := c.finish(t, uid)
		c.changePod(t, nil)
		return finished
	}
	first := finish(targetUID)
	for i := range 10 {
		first.Labels = map[string]string{"round": strconv.Itoa(i)}
		var err error
		if first, err = update(c.REST, "", first); err != nil {
			t.Fatal(err)
		}
		if first, err = update(c.status, "status", first); err != nil {
			t.Fatal(err)
		}
	}
	second := finish(anotherUID)
	for _, request := range []*coordination.EvictionRequest{first, second} {
		if got := keptFor(request.Name); got < 59*time.Minute {
			t.Errorf("one of two is kept for %s, want about an hour", got)
		}
	}
	third := finish("0a1b2c3d-0000-4000-8000-000000000003")
	if got := keptFor(third.Name); got > 2*time.Minute {
		t.Errorf("after two others have finished, it is kept for %s, want a minute", got)
	}
}

// Who has set a finalizer is waited for, and counts from when it is gone.
func TestFinishedRequestsWithFinalizers(t *testing.T) {
	c := newCluster(t, time.Hour)
	c.createPod(t, nil)
	request := newRequest(targetUID)
	request.Finalizers = []string{"example.com/x"}
	c.create(t, request)
	finished := c.finish(t, targetUID)
	if lease := c.lease(t, targetUID); lease != 0 {
		t.Errorf("a request with a finalizer has the lease %x", lease)
	}
	finished.Finalizers = nil
	finished, err := update(c.REST, "", finished)
	if err != nil {
		t.Fatal(err)
	}
	granted, err := c.etcd.TimeToLive(context.Background(), clientv3.LeaseID(c.lease(t, targetUID)))
	if err != nil || granted.GrantedTTL < 3500 || granted.GrantedTTL > 3700 {
		t.Errorf("got the lease %+v and error %v, want one of an hour", granted, err)
	}
	finished.Finalizers = []string{"example.com/y"}
	if _, err := update(c.REST, "", finished); err != nil {
		t.Fatal(err)
	}
	if lease := c.lease(t, targetUID); lease != 0 {
		t.Errorf("a request that has got another finalizer has the lease %x", lease)
	}
}

// applied is what a server-side apply makes of what is stored: an object of its own if there is none.
func applied(requester string) rest.UpdatedObjectInfo {
	return rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		request := old.(*coordination.EvictionRequest).DeepCopy()
		if request.UID == "" {
			request = newRequest(targetUID)
			request.Spec.Requesters = nil
		}
		request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: requester})
		return request, nil
	})
}

func (c *cluster) cancel(t *testing.T, uid, reason string) {
	t.Helper()
	c.cancelWith(t, uid, reason, nil)
}

func (c *cluster) cancelWith(t *testing.T, uid, reason string, requesters []coordination.Requester) {
	t.Helper()
	request := c.get(t, uid)
	request.Spec.Requesters = requesters
	if _, err := update(c.REST, "", request); err != nil {
		t.Fatal(err)
	}
	request = c.get(t, uid)
	request.Status.Conditions = []metav1.Condition{{Type: "Canceled", Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now()}}
	request.Status.ActiveInterceptors = nil
	request.Status.ProcessedInterceptors = []string{"imperative-eviction.k8s.io"}
	if _, err := update(c.status, "status", request); err != nil {
		t.Fatalf("canceling the request: %v", err)
	}
}

func TestApplyAsksAgain(t *testing.T) {
	errForbidden := errors.New("must not evict")
	tests := map[string]struct {
		reason     string
		finalizers []string
		cancel     bool
		finish     bool
		gone       bool
		create     bool
		dryRun     []string
		forbidden  error
		delete     bool
		released   bool
		patched    bool
		isNew      bool
	}{
		"deleted, with a finalizer":                        {cancel: true, delete: true, reason: "NoRequesters", create: true, finalizers: []string{"example.com/x"}, isNew: true},
		"deleted, with a finalizer that the apply removes": {cancel: true, delete: true, reason: "NoRequesters", create: true, finalizers: []string{"example.com/x", "example.com/y"}, released: true},
		"canceled":                               {cancel: true, reason: "NoRequesters", create: true, isNew: true},
		"canceled for another reason":            {cancel: true, reason: "ValidationFailed", create: true},
		"canceled, with a finalizer":             {cancel: true, reason: "NoRequesters", create: true, finalizers: []string{"example.com/x"}},
		"canceled, by a client that updates":     {cancel: true, reason: "NoRequesters"},
		"canceled, in a dry run":                 {cancel: true, reason: "NoRequesters", create: true, dryRun: []string{metav1.DryRunAll}, isNew: true},
		"in progress, in a dry run":              {create: true, dryRun: []string{metav1.DryRunAll}},
		"by a client that updates, in a dry run": {cancel: true, reason: "NoRequesters", dryRun: []string{metav1.DryRunAll}},
		"canceled, by who may not evict":         {cancel: true, reason: "NoRequesters", create: true, forbidden: errForbidden},
		"canceled, and asked for by a patch":     {cancel: true, reason: "NoRequesters", create: true, patched: true, isNew: true},
		"not canceled":                           {create: true},
		"evicted, but the pod runs":              {finish: true, create: true, isNew: true},
		"evicted, but the pod runs, kept":        {finish: true, delete: true, create: true, finalizers: []string{"example.com/x"}, isNew: true},
		"evicted":                                {finish: true, gone: true, create: true},
		"evicted and deleted":                    {finish: true, gone: true, delete: true, create: true, finalizers: []string{"example.com/x"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, time.Hour)
			c.createPod(t, nil)
			request := newRequest(targetUID)
			request.Finalizers = test.finalizers
			first := c.create(t, request)
			if test.cancel {
				c.cancel(t, targetUID, test.reason)
			}
			if test.finish {
				c.finish(t, targetUID)
			}
			if test.gone {
				c.changePod(t, nil)
			}
			if test.patched {
				request := c.get(t, targetUID)
				request.Spec.Requesters = []coordination.Requester{{Name: "patch.example.com"}}
				if _, err := update(c.REST, "", request); err != nil {
					t.Fatal(err)
				}
			}
			if test.delete {
				if _, _, err := c.Store.Delete(requestContext("delete", ""), targetUID, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			apply := applied("again.example.com")
			if test.released {
				apply = rest.WrapUpdatedObjectInfo(apply, func(_ context.Context, request, _ runtime.Object) (runtime.Object, error) {
					request.(*coordination.EvictionRequest).Finalizers = test.finalizers[:1]
					return request, nil
				})
			}
			got, created, err := c.Update(requestContext("patch", ""), targetUID, apply, func(context.Context, runtime.Object) error { return test.forbidden },
				rest.ValidateAllObjectUpdateFunc, test.create, &metav1.UpdateOptions{DryRun: test.dryRun})
			if !errors.Is(err, test.forbidden) {
				t.Fatalf("got error %v, want %v", err, test.forbidden)
			}
			stored := c.get(t, targetUID)
			if len(test.dryRun) > 0 {
				if stored.UID != first.UID || created != test.isNew {
					t.Errorf("created: %t, want %t; stored UID %s, want %s", created, test.isNew, stored.UID, first.UID)
				}
				if test.isNew {
					expectNew(t, first, got)
				}
				return
			}
			if created != test.isNew || (stored.UID != first.UID) != test.isNew {
				t.Errorf("created: %t, another UID: %t, want %t", created, stored.UID != first.UID, test.isNew)
			}
			if !test.isNew {
				return
			}
			if diff := cmp.Diff(stored, got); diff != "" {
				t.Errorf("unexpected answer (-stored, +got):\n%s", diff)
			}
			expectNew(t, first, got)
		})
	}
}

// expectNew checks that the answer is a request of its own, which the controller has not seen yet.
func expectNew(t *testing.T, former *coordination.EvictionRequest, answer runtime.Object) {
	t.Helper()
	request, isRequest := answer.(*coordination.EvictionRequest)
	if !isRequest || request.UID == "" || request.UID == former.UID || request.CreationTimestamp.IsZero() || len(request.Finalizers) > 0 ||
		len(request.Spec.Requesters) != 1 || !isInProgress(request) || len(request.Status.ActiveInterceptors) != 1 {
		t.Errorf("the new request is %+v", answer)
	}
}

// Whoever cancels at the same time does not make an apply fail that could succeed, nor run for ever.
func TestApplyAsksAgainConcurrently(t *testing.T) {
	c := newCluster(t, time.Hour)
	c.createPod(t, nil)
	c.create(t, newRequest(targetUID))
	c.cancel(t, targetUID, "NoRequesters")
	calls, admitted := 0, 0
	apply := func(cancels int) error {
		calls, admitted = 0, 0
		again := applied("again.example.com")
		_, _, err := c.Update(requestContext("patch", ""), targetUID, rest.WrapUpdatedObjectInfo(again, func(_ context.Context, request, old runtime.Object) (runtime.Object, error) {
			if old.(*coordination.EvictionRequest).UID != "" {
				return request, nil
			}
			if calls++; calls <= cancels {
				// Another one removes it, asks, and cancels, before this one removes it.
				if _, _, err := c.Store.Delete(requestContext("delete", ""), targetUID, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
				c.create(t, newRequest(targetUID))
				c.cancel(t, targetUID, "NoRequesters")
			}
			return request, nil
		}), func(context.Context, runtime.Object) error { admitted++; return nil }, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
		return err
	}
	if err := apply(2); err != nil || admitted != 1 {
		t.Errorf("got error %v after two others, admitted %d times", err, admitted)
	}
	c.cancel(t, targetUID, "NoRequesters")
	if err := apply(100); !apierrors.IsConflict(err) || calls != maxReplacements+1 {
		t.Errorf("got error %v after %d attempts, want a conflict after %d", err, calls, maxReplacements+1)
	}
}

// What is no request of its own removes nothing.
func TestApplyThatCannotReplace(t *testing.T) {
	apply := func(fresh func(*coordination.EvictionRequest) (*coordination.EvictionRequest, error), change func(*coordination.EvictionRequest)) rest.UpdatedObjectInfo {
		return rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			request := old.(*coordination.EvictionRequest).DeepCopy()
			if request.UID == "" {
				return fresh(request)
			}
			change(request)
			return request, nil
		})
	}
	join := func(request *coordination.EvictionRequest) {
		request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: "again.example.com"})
	}
	annotate := func(request *coordination.EvictionRequest) {
		request.Annotations = map[string]string{"example.com/progress": "1"}
	}
	tests := map[string]struct {
		apply   rest.UpdatedObjectInfo
		deleted bool
	}{
		"with the UID of the canceled one": {apply: apply(func(*coordination.EvictionRequest) (*coordination.EvictionRequest, error) {
			return nil, apierrors.NewConflict(coordination.Resource("evictionrequests"), targetUID, errors.New("uid mismatch"))
		}, join)},
		"with a UID": {apply: apply(func(*coordination.EvictionRequest) (*coordination.EvictionRequest, error) {
			request := newRequest(targetUID)
			request.UID = "1"
			return request, nil
		}, join)},
		"for another pod": {apply: apply(func(*coordination.EvictionRequest) (*coordination.EvictionRequest, error) {
			request := newRequest(targetUID)
			request.Spec.Target.Pod.Name = "mine-0"
			return request, nil
		}, join)},
		"an annotation of the owner of the finalizer": {deleted: true, apply: apply(func(*coordination.EvictionRequest) (*coordination.EvictionRequest, error) {
			request := &coordination.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: targetUID, Finalizers: []string{"example.com/x"}}}
			annotate(request)
			return request, nil
		}, annotate)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, time.Hour)
			c.createPod(t, nil)
			request := newRequest(targetUID)
			if test.deleted {
				request.Finalizers = []string{"example.com/x"}
			}
			first := c.create(t, request)
			if test.deleted {
				if _, _, err := c.Store.Delete(requestContext("delete", ""), targetUID, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				c.cancelWith(t, targetUID, "NoRequesters", first.Spec.Requesters)
			} else {
				c.cancel(t, targetUID, "NoRequesters")
			}
			if _, _, err := c.Update(requestContext("patch", ""), targetUID, test.apply, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{}); err != nil {
				t.Errorf("got error %v, want an update", err)
			}
			if stored := c.get(t, targetUID); stored.UID != first.UID || test.deleted && len(stored.Finalizers) != 1 {
				t.Errorf("the canceled request was replaced: %+v", stored)
			}
		})
	}
}

// Two requests that finish at about the same time share no lease: etcd would remove both in one
// transaction, with one version, and the watch cache takes a version for one change.
func TestExpiriesHaveVersions(t *testing.T) {
	c := newCluster(t, time.Hour)
	leases := map[int64]bool{}
	for _, uid := range []string{targetUID, anotherUID} {
		request := c.create(t, newRequest(uid))
		request.Status.Conditions = []metav1.Condition{{Type: "Canceled", Status: metav1.ConditionTrue, Reason: "ValidationFailed", LastTransitionTime: metav1.Now()}}
		if _, err := update(c.status, "status", request); err != nil {
			t.Fatal(err)
		}
		leases[c.lease(t, uid)] = true
	}
	if len(leases) != 2 || leases[0] {
		t.Errorf("two requests have the leases %v", leases)
	}
}

// changePod replaces the stored pod by one that is changed; none if the change is nil.
func (c *cluster) changePod(t *testing.T, change func(*api.Pod)) {
	t.Helper()
	if err := c.pods.Delete(context.Background(), "/pods/prod/web-0", &api.Pod{}, nil, genericstorage.ValidateAllObjectFunc, nil, genericstorage.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		c.createPod(t, change)
	}
}

// A canceled request is as good as absent, unless somebody has yet to do something about it. So is one that says that the
// pod was evicted which runs.
func TestCreateReplacesFinished(t *testing.T) {
	gone := func(t *testing.T, c *cluster) { c.changePod(t, nil) }
	changed := func(change func(*api.Pod)) func(*testing.T, *cluster) {
		return func(t *testing.T, c *cluster) { c.changePod(t, change) }
	}
	terminating := changed(func(pod *api.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.Now()), ptr.To[int64](30)
	})
	ended := changed(func(pod *api.Pod) { pod.Status.Phase = api.PodFailed })
	replaced := changed(func(pod *api.Pod) { pod.UID = anotherUID })
	tests := map[string]struct {
		cancel, finish, delete bool
		reason                 string
		finalizers             []string
		dryRun                 []string
		forbidden              error
		pod                    string
		// leaves changes the pod when the request is finished.
		leaves func(*testing.T, *cluster)
		isNew  bool
	}{
		"for another pod":                             {cancel: true, delete: true, reason: "NoRequesters", finalizers: []string{"example.com/x"}, pod: "mine-0"},
		"canceled":                                    {cancel: true, reason: "NoRequesters", isNew: true},
		"canceled for another reason":                 {cancel: true, reason: "ValidationFailed"},
		"canceled, with a finalizer":                  {cancel: true, reason: "NoRequesters", finalizers: []string{"example.com/x"}},
		"canceled and deleted, with a finalizer":      {cancel: true, delete: true, reason: "NoRequesters", finalizers: []string{"example.com/x"}, isNew: true},
		"canceled for another reason and deleted":     {cancel: true, delete: true, reason: "ValidationFailed", finalizers: []string{"example.com/x"}, isNew: true},
		"deleted, with a finalizer, not yet canceled": {delete: true, finalizers: []string{"example.com/x"}},
		"not canceled":                                {},
		"evicted, but the pod runs":                   {finish: true, isNew: true},
		"evicted, but the pod runs, kept":             {finish: true, finalizers: []string{"example.com/x"}},
		"evicted, but the pod runs, kept and deleted": {finish: true, delete: true, finalizers: []string{"example.com/x"}, isNew: true},
		"evicted":                               {finish: true, leaves: gone},
		"evicted, kept and deleted":             {finish: true, delete: true, finalizers: []string{"example.com/x"}, leaves: gone},
		"evicted, but the pod still terminates": {finish: true, delete: true, finalizers: []string{"example.com/x"}, leaves: terminating},
		"evicted, because the pod has ended":    {finish: true, delete: true, finalizers: []string{"example.com/x"}, leaves: ended},
		"evicted, and the pod was replaced":     {finish: true, delete: true, finalizers: []string{"example.com/x"}, leaves: replaced},
		"in a dry run":                          {cancel: true, reason: "NoRequesters", dryRun: []string{metav1.DryRunAll}, isNew: true},
		"in progress, in a dry run":             {dryRun: []string{metav1.DryRunAll}},
		"evicted, in a dry run":                 {finish: true, leaves: gone, dryRun: []string{metav1.DryRunAll}},
		"by who may not evict":                  {cancel: true, delete: true, reason: "NoRequesters", finalizers: []string{"example.com/x"}, forbidden: errors.New("must not evict")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, time.Hour)
			c.createPod(t, nil)
			request := newRequest(targetUID)
			request.Finalizers = test.finalizers
			first := c.create(t, request)
			if test.cancel {
				c.cancel(t, targetUID, test.reason)
			}
			if test.finish {
				c.finish(t, targetUID)
			}
			if test.leaves != nil {
				test.leaves(t, c)
			}
			if test.delete {
				if _, _, err := c.Store.Delete(requestContext("delete", ""), targetUID, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			again, admitted := newRequest(targetUID), 0
			if test.pod != "" {
				again.Spec.Target.Pod.Name = test.pod
			}
			answer, err := c.Create(requestContext("create", ""), again, func(context.Context, runtime.Object) error { admitted++; return test.forbidden }, &metav1.CreateOptions{DryRun: test.dryRun})
			stored := c.get(t, targetUID)
			switch {
			case admitted != 1:
				t.Errorf("admitted %d times", admitted)
			case len(test.dryRun) > 0 && test.isNew:
				if err != nil || stored.UID != first.UID {
					t.Fatalf("got error %v, and stored UID %s, want %s", err, stored.UID, first.UID)
				}
				expectNew(t, first, answer)
			case (stored.UID != first.UID) != test.isNew:
				t.Errorf("another UID: %t, want %t", stored.UID != first.UID, test.isNew)
			case test.isNew && (err != nil || !isInProgress(stored) || len(stored.Finalizers) > 0 || len(stored.Status.ActiveInterceptors) != 1):
				t.Errorf("got error %v, and the new request %+v", err, stored)
			case test.forbidden != nil && !errors.Is(err, test.forbidden), test.forbidden == nil && !test.isNew && !apierrors.IsAlreadyExists(err):
				t.Errorf("got error %v", err)
			}
		})
	}
}
