/*
Copyright The Kubernetes Authors.

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

package evictionlane

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/registry/registrytest"
	"k8s.io/utils/ptr"
)

// Budgets are written in the name of no request, and while the request at hand is another one.
func TestStoredBudget(t *testing.T) {
	config, server := registrytest.NewEtcdStorage(t, policy.GroupName)
	defer server.Terminate(t)
	store, err := newBudgetStore(generic.RESTOptions{StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: "poddisruptionbudgets"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.destroy()
	budget := &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: policy.PodDisruptionBudgetSpec{
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			MinAvailable: ptr.To(intstr.FromInt32(1)),
		},
	}
	create := genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(t.Context(), key.Namespace),
		&genericapirequest.RequestInfo{APIGroup: "policy", APIVersion: "v1", Resource: "poddisruptionbudgets"})
	if _, err := store.budgets.Create(create, budget, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	for _, allowed := range []int32{2, 1} {
		ctx := t.Context()
		if allowed == 1 {
			ctx = genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(ctx, "another"),
				&genericapirequest.RequestInfo{APIVersion: "v1", Resource: "pods", Subresource: "eviction"})
		}
		err := store.updateStatus(ctx, key, func(budget *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
			budget.Status.DisruptionsAllowed = allowed
			return budget, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		list, err := store.list(ctx, key.Namespace)
		if err != nil || len(list.Items) != 1 || list.Items[0].Status.DisruptionsAllowed != allowed {
			t.Errorf("got %v, %v, want %d", list, err, allowed)
		}
	}
}

// What the storage is told of a write is what it would be told of a request of a client.
func TestStatusRequest(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	factory := &genericapirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	want, err := factory.NewRequestInfo(request)
	if err != nil {
		t.Fatal(err)
	}
	ctx := withStatusRequest(t.Context(), key)
	got, _ := genericapirequest.RequestInfoFrom(ctx)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(genericapirequest.RequestInfo{}, "Path", "Parts")); diff != "" {
		t.Errorf("unexpected request (-want, +got):\n%s", diff)
	}
	if namespace := genericapirequest.NamespaceValue(ctx); namespace != key.Namespace {
		t.Errorf("the namespace is %q", namespace)
	}
}
