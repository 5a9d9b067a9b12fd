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

package evictionlane

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/policy"
	policyapiv1 "k8s.io/kubernetes/pkg/apis/policy/v1"
	"k8s.io/kubernetes/pkg/registry/internal/uncached"
	pdbstore "k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget/storage"
)

// uncachedStore reads and writes budgets in etcd. Its writes are those of the API, strategy and
// validation included, but without admission, audit and managed fields.
type uncachedStore struct {
	budgets *pdbstore.REST
	status  *pdbstore.StatusREST
}

func newBudgetStore(options generic.RESTOptionsGetter) (*uncachedStore, error) {
	budgets, status, err := pdbstore.NewREST(uncached.Getter{RESTOptionsGetter: options})
	if err != nil {
		return nil, err
	}
	return &uncachedStore{budgets, status}, nil
}

func (s *uncachedStore) list(ctx context.Context, namespace string) (*policyv1.PodDisruptionBudgetList, error) {
	stored, err := s.budgets.List(genericapirequest.WithNamespace(ctx, namespace), nil)
	if err != nil {
		return nil, err
	}
	list := &policyv1.PodDisruptionBudgetList{}
	return list, policyapiv1.Convert_policy_PodDisruptionBudgetList_To_v1_PodDisruptionBudgetList(stored.(*policy.PodDisruptionBudgetList), list, nil)
}

func (s *uncachedStore) updateStatus(ctx context.Context, key types.NamespacedName, update func(*policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error)) error {
	// The storage calls this with what is stored, again after each conflict.
	transform := func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		external, internal := &policyv1.PodDisruptionBudget{}, &policy.PodDisruptionBudget{}
		if err := policyapiv1.Convert_policy_PodDisruptionBudget_To_v1_PodDisruptionBudget(stored.(*policy.PodDisruptionBudget), external, nil); err != nil {
			return nil, err
		}
		updated, err := update(external)
		if err != nil {
			return nil, err
		}
		return internal, policyapiv1.Convert_v1_PodDisruptionBudget_To_policy_PodDisruptionBudget(updated, internal, nil)
	}
	_, _, err := s.status.Update(withStatusRequest(ctx, key), key.Name, rest.DefaultUpdatedObjectInfo(nil, transform),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// withStatusRequest returns the context of a request to the status of a budget, by which declarative
// validation tells what it validates: the request at hand is one to evict a pod, or none.
func withStatusRequest(ctx context.Context, key types.NamespacedName) context.Context {
	gv := policyv1.SchemeGroupVersion
	return genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(ctx, key.Namespace), &genericapirequest.RequestInfo{
		IsResourceRequest: true, Verb: "update", APIPrefix: "apis", APIGroup: gv.Group, APIVersion: gv.Version,
		Resource: "poddisruptionbudgets", Subresource: "status", Namespace: key.Namespace, Name: key.Name,
	})
}

// newTracker returns a tracker of the stored budgets.
func (s *uncachedStore) newTracker(ctx context.Context) *tracker {
	return newTracker(s.budgets.Storage.Storage, s.budgets.KeyRootFunc(ctx))
}

func (s *uncachedStore) destroy() { s.budgets.Destroy() }
