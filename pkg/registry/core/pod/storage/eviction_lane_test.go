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
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	restclient "k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
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

// TestManyBudgetsInLane: an eviction in a namespace with many budgets finds the same ones as in any other, and does not
// list all of them.
func TestManyBudgetsInLane(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionLane, true)
	var budgets []runtime.Object
	for i := range 200 {
		budgets = append(budgets, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("budget-%d", i), UID: types.UID(fmt.Sprint(i))},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i % 100)}}},
		})
	}
	r := newEvictionStorage(nil, budgetsClient(t, budgets))
	lists := func() uint64 {
		vec, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, "apiserver_eviction_lane_batch_size", map[string]string{"operation": "list"})
		if err != nil {
			return 0 // None yet.
		}
		return vec.GetAggregatedSampleCount()
	}
	pod := &api.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "7"}}}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		before := lists()
		found, err := r.budgetsOf(ctx, pod)
		if err != nil || len(found) != 2 || found[0].Name != "budget-107" || found[1].Name != "budget-7" {
			t.Fatalf("got budgets %v, %v", found, err)
		}
		return lists() == before, nil
	})
	if err != nil {
		t.Error("all budgets are listed for each eviction")
	}
}
