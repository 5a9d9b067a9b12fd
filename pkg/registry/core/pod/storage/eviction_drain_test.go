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
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericstorage "k8s.io/apiserver/pkg/storage"
	etcd3testing "k8s.io/apiserver/pkg/storage/etcd3/testing"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	requeststore "k8s.io/kubernetes/pkg/registry/coordination/evictionrequest/storage"
	"k8s.io/kubernetes/pkg/registry/core/pod/evictionfence"
	"k8s.io/kubernetes/pkg/registry/registrytest"
)

// resources are the storage options of each resource.
type resources map[string]generic.RESTOptions

func (r resources) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return r[resource.Resource], nil
}

// drainedPod is a pod on a node, whose request is stored, and a fence that reads all three.
type drainedPod struct {
	*storedRequests
	pod   *api.Pod
	core  *etcd3testing.EtcdTestServer
	nodes genericstorage.Interface
	// nodeKey is the key of the node in etcd.
	nodeKey string
}

func newDrainedPod(t *testing.T) *drainedPod {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true,
	})
	core, coreServer := registrytest.NewEtcdStorageForResource(t, api.Resource("pods"))
	t.Cleanup(func() { coreServer.Terminate(t) })
	requests, requestServer := registrytest.NewEtcdStorageForResource(t, coordination.Resource("evictionrequests"))
	t.Cleanup(func() { requestServer.Terminate(t) })
	options := resources{}
	for path, resource := range map[string]schema.GroupResource{
		"pods": api.Resource("pods"), "minions": api.Resource("nodes"), "namespaces": api.Resource("namespaces"),
		"evictionrequests": coordination.Resource("evictionrequests"), "nodemaintenances": coordination.Resource("nodemaintenances"),
	} {
		config := core
		if resource.Group == coordination.GroupName {
			config = requests
		}
		options[resource.Resource] = generic.RESTOptions{
			StorageConfig: config.ForResource(resource), Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: path,
		}
	}
	raw := func(resource, path string, obj, list func() runtime.Object) genericstorage.Interface {
		t.Helper()
		stored, destroy, err := generic.NewRawStorage(options[resource].StorageConfig, obj, list, path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(destroy)
		return stored
	}
	d := &drainedPod{core: coreServer, nodeKey: core.Prefix + "/minions/node-1"}
	d.nodes = raw("nodes", "/minions", func() runtime.Object { return &api.Node{} }, func() runtime.Object { return &api.NodeList{} })
	d.pod = podtest.MakePod("foo", podtest.SetNamespace(metav1.NamespaceDefault))
	d.pod.Spec.NodeName, d.pod.Spec.Priority, d.pod.UID = "node-1", new(int32), "0a1b2c3d-0000-4000-8000-000000000001"
	pods := raw("pods", "/pods", func() runtime.Object { return &api.Pod{} }, func() runtime.Object { return &api.PodList{} })
	if err := pods.Create(t.Context(), "/pods/default/foo", d.pod, &api.Pod{}, 0); err != nil {
		t.Fatal(err)
	}
	store, _, err := requeststore.NewREST(options, evictionrequest.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Destroy)
	fence, err := evictionfence.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fence.Destroy)
	d.storedRequests = &storedRequests{store, fence}
	return d
}

// storeNode has the node drained, or not.
func (d *drainedPod) storeNode(t *testing.T, drained bool) {
	t.Helper()
	node := &api.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid"}}
	if drained {
		node.Status.MaintenanceStatus = &api.MaintenanceStatus{DrainTargets: []api.DrainPlanEntry{{PodPriority: 1000, PodType: api.PodTypeDefault}}}
	}
	_ = d.nodes.Delete(t.Context(), "/minions/node-1", &api.Node{}, nil, genericstorage.ValidateAllObjectFunc, nil, genericstorage.DeleteOptions{})
	if err := d.nodes.Create(t.Context(), "/minions/node-1", node, &api.Node{}, 0); err != nil {
		t.Fatal(err)
	}
}

// Nobody may have withdrawn a drain that has ended. Once a request was not created a moment ago, the pod is evicted only
// if its node is drained.
func TestFencedEvictionForDrain(t *testing.T) {
	const drain = coordinationv1alpha1.NodeMaintenanceRequester
	type request = coordination.EvictionRequest
	by := func(names ...string) func(*request) {
		return func(request *request) {
			request.Spec.Requesters = nil
			for _, name := range names {
				request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: name})
			}
		}
	}
	aged := func(age time.Duration) func(*request) {
		return func(request *request) { request.CreationTimestamp = metav1.NewTime(time.Now().Add(-age)) }
	}
	joined := func(request *request) { request.Generation = 2 }
	irrevocable := func(request *request) {
		request.Status.EvictionRequestCancellationPolicy = coordination.EvictionRequestCancellationPolicyForbid
	}
	const old = time.Minute
	d := newDrainedPod(t)
	for name, test := range map[string]struct {
		drained bool
		request []func(*request)
		pod     func(*api.Pod)
		refused bool
	}{
		"the node is drained":                {drained: true, request: []func(*request){by(drain), aged(old)}},
		"the drain has ended":                {request: []func(*request){by(drain), aged(old)}, refused: true},
		"it was created six seconds ago":     {request: []func(*request){by(drain), aged(6 * time.Second)}, refused: true},
		"it was created a moment ago":        {request: []func(*request){by(drain), aged(0)}},
		"the drain joined a moment ago":      {request: []func(*request){by(drain), aged(0), joined}, refused: true},
		"it was created by a clock ahead":    {request: []func(*request){by(drain), aged(-old)}, refused: true},
		"others request it, too":             {request: []func(*request){by("user.example.com", drain), aged(old)}},
		"another one has joined it":          {request: []func(*request){by(drain, "user.example.com"), aged(old)}},
		"another one requests it":            {request: []func(*request){by("user.example.com"), aged(old)}},
		"it cannot be canceled":              {request: []func(*request){by(drain), aged(old), irrevocable}},
		"it cannot be canceled any more":     {request: []func(*request){by(), aged(old), irrevocable}},
		"the pod is another one of its name": {request: []func(*request){by(drain), aged(old)}, pod: func(pod *api.Pod) { pod.UID = "0a1b2c3d-0000-4000-8000-000000000009" }},
	} {
		t.Run(name, func(t *testing.T) {
			d.storeNode(t, test.drained)
			pod := d.pod.DeepCopy()
			if test.pod != nil {
				test.pod(pod)
			}
			d.write(contextOfEviction(), t, pod, func(request *request) {
				request.Generation = 1
				for _, change := range test.request {
					change(request)
				}
			})
			err := d.fence.Enter(contextOfEviction(), evictionFor(pod))
			switch {
			case !test.refused && err != nil:
				t.Errorf("refused: %v", err)
			case test.refused && (!evictionfence.IsRefusal(err) || !strings.Contains(err.Error(), "only nodemaintenance.k8s.io requests it, and status.maintenanceStatus.drainTargets")):
				t.Errorf("got error %v, want a refusal that names the drain", err)
			}
		})
	}

	t.Run("callers have given up", func(t *testing.T) {
		const calls = coordinationv1alpha1.EvictionRequesterEvictions
		d.storeNode(t, false)
		schedulable := &api.Node{}
		if err := d.nodes.Get(t.Context(), "/minions/node-1", genericstorage.GetOptions{}, schedulable); err != nil {
			t.Fatal(err)
		}
		for name, test := range map[string]struct {
			cordon  string
			request []func(*request)
			refused string
		}{
			"the node is schedulable again":      {cordon: "uid/1", request: []func(*request){by(calls), aged(old)}, refused: `only eviction.k8s.io requests it, and its node "node-1" is schedulable again`},
			"the drain has ended, too":           {cordon: "uid/1", request: []func(*request){by(calls, drain), aged(old)}, refused: "only eviction.k8s.io and nodemaintenance.k8s.io request it, and its node"},
			"they have called a moment ago":      {cordon: "uid/1", request: []func(*request){by(calls), aged(0)}},
			"the node was schedulable all along": {request: []func(*request){by(calls), aged(old)}},
			"it was another node":                {cordon: "other/1", request: []func(*request){by(calls), aged(old)}},
			"it was cordoned since":              {cordon: "uid/" + schedulable.ResourceVersion + "0", request: []func(*request){by(calls), aged(old)}},
			"another one requests it, too":       {cordon: "uid/1", request: []func(*request){by(calls, "user.example.com"), aged(old)}},
		} {
			t.Run(name, func(t *testing.T) {
				d.write(contextOfEviction(), t, d.pod, func(request *request) {
					request.Generation, request.Annotations = 1, nil
					if test.cordon != "" {
						request.Annotations = map[string]string{coordinationv1alpha1.EvictionCallCordonAnnotation: test.cordon}
					}
					for _, change := range test.request {
						change(request)
					}
				})
				err := d.fence.Enter(contextOfEviction(), evictionFor(d.pod))
				switch {
				case test.refused == "" && err != nil:
					t.Errorf("refused: %v", err)
				case test.refused != "" && (!evictionfence.IsRefusal(err) || !strings.Contains(err.Error(), test.refused)):
					t.Errorf("got error %v, want a refusal with %s", err, test.refused)
				}
			})
		}
	})

	t.Run("the node cannot be read", func(t *testing.T) {
		d.write(contextOfEviction(), t, d.pod, func(request *request) { by(drain)(request); aged(old)(request) })
		if _, err := d.core.V3Client.Put(t.Context(), d.nodeKey, "no node"); err != nil {
			t.Fatal(err)
		}
		if err := d.fence.Enter(contextOfEviction(), evictionFor(d.pod)); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), `node "node-1"`) {
			t.Errorf("got error %v, want 503 with the node", err)
		}
	})
}

// Where nodes are not drained, nodes have no targets.
func TestFencedEvictionWithoutDrains(t *testing.T) {
	requests := newStoredRequests(t)
	pod := &api.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foo", Namespace: metav1.NamespaceDefault, UID: "0a1b2c3d-0000-4000-8000-000000000001"}}
	requests.write(contextOfEviction(), t, pod, func(request *coordination.EvictionRequest) {
		request.Spec.Requesters = []coordination.Requester{{Name: coordinationv1alpha1.NodeMaintenanceRequester}}
	})
	if err := requests.fence.Enter(contextOfEviction(), evictionFor(pod)); err != nil {
		t.Errorf("refused: %v", err)
	}
}

var _ generic.RESTOptionsGetter = resources{}
