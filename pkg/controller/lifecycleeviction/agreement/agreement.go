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

// Package agreement has the requesters of requests that want the eviction, as the lifecycle-eviction-controller has found
// since it runs by comparing them with the objects of lifecycle.k8s.io. Others may have withdrawn while it did not run, or
// come from one that was suspended when it led: the evictionrequest-controller must not act for them, and finds here that
// it has to wait.
package agreement

import (
	"strings"
	"sync"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/cachestate"
)

// Requests are those that were compared. It is safe for concurrent use, and only in memory.
type Requests struct {
	lock   sync.RWMutex
	wanted map[types.NamespacedName]sets.Set[string]
}

// Of returns the Requests of a cache of requests. All controllers of a process that share the cache share them.
func Of(requests cache.Indexer) (*Requests, error) {
	return cachestate.Of(requests, "agreement.Requests", func() *Requests {
		return &Requests{wanted: map[types.NamespacedName]sets.Set[string]{}}
	})
}

// Set records the requesters that want the eviction, of those that may be of the group. The set must not change any more.
func (r *Requests) Set(request types.NamespacedName, wanted sets.Set[string]) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.wanted[request] = wanted
}

// Forget forgets a request that does not concern the group any more.
func (r *Requests) Forget(request types.NamespacedName) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.wanted, request)
}

// Lacks reports whether it is not known yet whether anybody wants the eviction: all requesters may be of the group, and
// have not been found to want it.
func (r *Requests) Lacks(request *coordinationv1alpha1.EvictionRequest) bool {
	if len(request.Spec.Requesters) == 0 {
		return false
	}
	r.lock.RLock()
	defer r.lock.RUnlock()
	wanted := r.wanted[types.NamespacedName{Namespace: request.Namespace, Name: request.Name}]
	for _, requester := range request.Spec.Requesters {
		if !strings.Contains(requester.Name, "/") || wanted.Has(requester.Name) {
			return false
		}
	}
	return true
}
