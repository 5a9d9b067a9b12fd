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
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	restclient "k8s.io/client-go/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"
	policyapiv1 "k8s.io/kubernetes/pkg/apis/policy/v1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/core/pod/evictionlane"
	pdbstore "k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget/storage"
	"k8s.io/kubernetes/pkg/registry/registrytest"
)

// budgetsClient returns a client with these budgets. With the feature gate EvictionLane on it is a
// lane, so that the tables of eviction_test.go describe both.
func budgetsClient(t *testing.T, budgets []runtime.Object) policyclient.PodDisruptionBudgetsGetter {
	t.Helper()
	if !utilfeature.DefaultFeatureGate.Enabled(features.EvictionLane) {
		return fake.NewSimpleClientset(budgets...).PolicyV1()
	}
	config, server := registrytest.NewEtcdStorage(t, policy.GroupName)
	t.Cleanup(func() { server.Terminate(t) })
	options := generic.RESTOptions{StorageConfig: config, Decorator: generic.UndecoratedStorage, ResourcePrefix: "poddisruptionbudgets"}
	store, _, err := pdbstore.NewREST(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Destroy)
	for _, budget := range budgets {
		internal := &policy.PodDisruptionBudget{}
		if err := policyapiv1.Convert_v1_PodDisruptionBudget_To_policy_PodDisruptionBudget(budget.(*policyv1.PodDisruptionBudget), internal, nil); err != nil {
			t.Fatal(err)
		}
		ctx := genericapirequest.WithNamespace(t.Context(), internal.Namespace)
		key, err := store.KeyFunc(ctx, internal.Name)
		if err != nil {
			t.Fatal(err)
		}
		// Not by way of the API, which would clear the status.
		if err := store.Storage.Create(ctx, key, internal, internal, 0, false); err != nil {
			t.Fatal(err)
		}
	}
	client, err := evictionlane.NewForConfig(&restclient.Config{Host: "https://127.0.0.1:1"}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { evictionlane.Destroy(client) })
	return client
}

// interruptedStore fails as a storage whose request ends.
type interruptedStore struct {
	rest.StandardStorage
	pod *api.Pod
	err error
}

func (s *interruptedStore) Get(context.Context, string, *metav1.GetOptions) (runtime.Object, error) {
	if s.pod == nil {
		return nil, s.err
	}
	return s.pod.DeepCopy(), nil
}

func (s *interruptedStore) Update(context.Context, string, rest.UpdatedObjectInfo, rest.ValidateObjectFunc, rest.ValidateObjectUpdateFunc, bool, *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return nil, false, s.err
}

// A request that ends while its pod is read or deleted evicts nothing, takes no disruption, and does
// not make the server panic: retry.OnError has no error for it.
func TestInterruptedEviction(t *testing.T) {
	running, pending := &api.Pod{Status: api.PodStatus{Phase: api.PodRunning}}, &api.Pod{Status: api.PodStatus{Phase: api.PodPending}}
	for _, test := range []struct {
		name string
		pod  *api.Pod
		err  error
		ends bool
		want string
	}{
		{"canceled while the pod is read", nil, context.Canceled, true, `Timeout: the request ended before pod "foo" was evicted: client disconnected`},
		{"out of time while the pod is read", nil, context.DeadlineExceeded, false, `Timeout: the request ended before pod "foo" was evicted`},
		{"canceled after the pod was read", running, nil, true, `Timeout: the request ended before pod "foo" was evicted: client disconnected`},
		{"out of time while a pending pod is deleted", pending, context.DeadlineExceeded, false, `Timeout: the request ended before pod "foo" was evicted`},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(genericapirequest.NewDefaultContext())
			if test.ends {
				cancel(errors.New("client disconnected"))
			}
			store := &interruptedStore{pod: test.pod, err: test.err}
			client := fake.NewClientset()
			eviction := &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "foo", Namespace: metav1.NamespaceDefault}}
			result, err := newEvictionStorage(store, client.PolicyV1()).Create(ctx, "foo", eviction, nil, &metav1.CreateOptions{})
			if result != nil || !apierrors.IsTimeout(err) || err.Error() != test.want {
				t.Errorf("%v, %v, want %s", result, err, test.want)
			}
			if actions := client.Actions(); len(actions) != 0 {
				t.Errorf("the budgets are asked for: %v", actions)
			}
		})
	}
}

// A dry run through the lane writes nothing, and leaves the list alone, which others may be reading.
func TestDryRunInLane(t *testing.T) {
	key := types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "budget"}
	listed := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Status: policyv1.PodDisruptionBudgetStatus{
			DisruptionsAllowed: 1,
			Conditions:         []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue}},
		},
	}
	before := listed.DeepCopy()
	r := newEvictionStorage(nil, &evictionlane.Lane{})
	pod := &api.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "foo"}}
	for range 2 {
		done, err := r.decrementInLane(t.Context(), pod, listed, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if !done || err != nil {
			t.Errorf("%t, %v, want done", done, err)
		}
	}
	if diff := cmp.Diff(before, listed); diff != "" {
		t.Errorf("the listed budget changes (-before, +after):\n%s", diff)
	}
}
