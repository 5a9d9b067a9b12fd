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

package lifecycleeviction

import (
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/util/revertpace"
)

// fieldManager owns the requesters of the group in the requests of the other one, and their reports.
const fieldManager = "lifecycle.k8s.io"

// wrote notes what was written about a pod.
func (c *Controller) wrote(t *target, resource schema.GroupResource, object metav1.Object) {
	c.written.WroteAt(t.requestName(), t.uid, resource, object.GetResourceVersion())
}

// foreign are requesters of a version of a request.
type foreign struct {
	uid        types.UID
	generation int64
	names      sets.Set[string]
}

// requested is what this controller has written in the request of a pod.
type requested struct {
	// requesters are those that it has written and not removed. If the request lacks one that wants the eviction, others
	// have removed it.
	requesters sets.Set[string]
	restored   revertpace.Attempts
}

// forgetWithdrawn forgets requesters that do not want the eviction any more, and are not left in the request: if they want it
// again, that is no contest.
func (c *Controller) forgetWithdrawn(key string, wanted, left sets.Set[string]) {
	c.lock.Lock()
	defer c.lock.Unlock()
	known := c.requested[key]
	if known == nil {
		return
	}
	known.requesters = known.requesters.Intersection(wanted.Union(left))
	if len(wanted)+len(left) == 0 {
		delete(c.requested, key)
	}
}

// restoreIn returns for how long the requesters of a request are not written, of which it lacks some, and others are left;
// zero if they may be written now. What others revert has a pace. New requesters, and those that withdraw, do not wait.
func (c *Controller) restoreIn(key string, lacking, left sets.Set[string], now time.Time) time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	known := c.requested[key]
	if known == nil || !known.requesters.IsSuperset(lacking) || known.requesters.HasAny(sets.List(left)...) {
		return 0
	}
	return known.restored.Wait(now)
}

// noteRequested notes which requesters were written in a request that lacked some, and had others left. It returns whether
// others revert that again and again.
func (c *Controller) noteRequested(key string, requesters, lacking, left sets.Set[string], now time.Time) (isContested bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	known := c.requested[key]
	if known == nil {
		known = &requested{}
		c.requested[key] = known
	}
	// Others can write requesters in the name of this controller, too.
	isRestored := known.requesters.HasAny(sets.List(lacking)...) || !known.requesters.IsSuperset(left)
	known.requesters = requesters
	return isRestored && revertpace.IsContest(known.restored.Made(now))
}

// contestOver returns in how long it is known that nobody removes requesters from the request any more; zero if nobody does.
func (c *Controller) contestOver(key string, now time.Time) time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	known := c.requested[key]
	if known == nil {
		return 0
	}
	if over := known.restored.ContestOver(now); !over.IsZero() {
		return over.Sub(now)
	}
	return 0
}

// mayWrite returns for how long something must not be written again; zero if it may be written now.
func (c *Controller) mayWrite(last map[string]time.Time, key string, now time.Time) time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	at, found := last[key]
	if wait := at.Add(restoreInterval).Sub(now); found && wait > 0 && wait <= restoreInterval { // Or the clock was set back.
		return wait
	}
	last[key] = now
	return 0
}

// foreignIn returns the foreign requesters of a request, and false if they are not known.
func (c *Controller) foreignIn(key string, request *coordinationv1alpha1.EvictionRequest) (sets.Set[string], bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	known, found := c.foreign[key]
	return known.names, found && known.uid == request.UID && known.generation == request.Generation
}

func (c *Controller) noteForeign(key string, request *coordinationv1alpha1.EvictionRequest, names sets.Set[string]) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.foreign[key] = foreign{request.UID, request.Generation, names}
}

// firstToAnswer returns the index of the request with which the answers for a pod begin.
func (c *Controller) firstToAnswer(key string, requests []*lifecyclev1alpha1.EvictionRequest) int {
	c.lock.Lock()
	defer c.lock.Unlock()
	uid, found := c.unanswered[key]
	if !found {
		return 0
	}
	return max(0, slices.IndexFunc(requests, func(request *lifecyclev1alpha1.EvictionRequest) bool { return request.UID == uid }))
}

// noteFirstToAnswer notes with which request the next answers begin; "" if none is left.
func (c *Controller) noteFirstToAnswer(key string, uid types.UID) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if delete(c.unanswered, key); uid != "" {
		c.unanswered[key] = uid
	}
}

func (c *Controller) forget(key string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.ended, key)
}

// forgetAll forgets a pod that does not concern this controller any more.
func (c *Controller) forgetAll(key string) {
	c.forget(key)
	c.forgetForeign(key)
	c.lock.Lock()
	delete(c.requested, key)
	delete(c.restored, key)
	delete(c.reported, key)
	delete(c.failed, key)
	delete(c.unanswered, key)
	c.lock.Unlock()
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	c.written.Clear(types.NamespacedName{Namespace: namespace, Name: name}, "")
	c.compared.Forget(types.NamespacedName{Namespace: namespace, Name: name})
}

func (c *Controller) forgetForeign(key string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.foreign, key)
}
