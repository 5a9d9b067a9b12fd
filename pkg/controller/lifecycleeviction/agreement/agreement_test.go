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

package agreement

import (
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// All controllers that use a cache share what was compared.
func TestRequestsAreShared(t *testing.T) {
	requests := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	request := &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "uid"},
		Spec:       coordinationv1alpha1.EvictionRequestSpec{Requesters: []coordinationv1alpha1.Requester{{Name: "example.com/drainer"}}},
	}
	if err := requests.Add(request); err != nil {
		t.Fatal(err)
	}
	one, err := Of(requests)
	if err != nil {
		t.Fatal(err)
	}
	another, err := Of(requests)
	if err != nil {
		t.Fatal(err)
	}
	key := types.NamespacedName{Namespace: "shop", Name: "uid"}
	wants := func(names ...string) func() { return func() { one.Set(key, sets.New(names...)) } }
	for _, step := range []struct {
		do    func()
		lacks bool
	}{
		{func() {}, true},
		{wants("example.com/drainer"), false},
		{wants(), true}, // It has withdrawn, and is about to be removed.
		{wants("example.com/drainer", "example.com/other"), false},
		{wants("example.com/other"), true}, // It is about to be added.
		{wants("example.com/drainer"), false},
		{func() { another.Forget(key) }, true},
	} {
		step.do()
		if one.Lacks(request) != step.lacks || another.Lacks(request) != step.lacks {
			t.Errorf("lacks %t and %t, want %t", one.Lacks(request), another.Lacks(request), step.lacks)
		}
	}
	request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: "drainer.example.com"})
	if one.Lacks(request) {
		t.Error("a request that one of the other group wants has to wait")
	}
	request.Spec.Requesters = nil
	if one.Lacks(request) {
		t.Error("a request that nobody wants has to wait")
	}
}
