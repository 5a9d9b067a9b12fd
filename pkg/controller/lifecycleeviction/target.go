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
	"cmp"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// target is all that is known about the eviction of one pod.
type target struct {
	key, namespace, name string
	uid                  types.UID
	now                  time.Time
	// requests and evictions are those of the group, wanted are the requesters that have not withdrawn.
	requests  []*lifecyclev1alpha1.EvictionRequest
	evictions []*lifecyclev1alpha1.Eviction
	wanted    sets.Set[string]
	// request is that of the other group, or nil, and pod is nil if it is not in the cache.
	request *coordinationv1alpha1.EvictionRequest
	pod     *v1.Pod
	// past is the request of the other group if it was canceled before the pod was missing: it says nothing to those that
	// want the eviction since, and is not taken up again for a pod that is gone.
	past *coordinationv1alpha1.EvictionRequest
	// isIdentified is whether name is known to be that of the pod. Otherwise it is the next one to ask kube-apiserver for.
	isIdentified bool
	// successor is the UID of another pod that has the name, and others are requests for a pod of this UID with another name.
	successor types.UID
	others    []*lifecyclev1alpha1.EvictionRequest
	// otherEvictions are Evictions for a pod of this UID with another name.
	otherEvictions []*lifecyclev1alpha1.Eviction
	// owed is whether something is not written yet because the last attempt, which may have failed, was a moment ago.
	owed bool
}

// requestName returns the name of the request of the other group.
func (t *target) requestName() types.NamespacedName {
	return types.NamespacedName{Namespace: t.namespace, Name: string(t.uid)}
}

// read returns what the caches have about a pod, or nil if it does not concern this controller.
func (c *Controller) read(key string) (*target, error) {
	namespace, uid, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	t := &target{key: key, namespace: namespace, uid: types.UID(uid), now: c.clock.Now()}
	requests, err := c.requests.ByIndex(targetIndex, key)
	if err != nil {
		return nil, err
	}
	for _, obj := range requests {
		t.requests = append(t.requests, obj.(*lifecyclev1alpha1.EvictionRequest))
	}
	evictions, err := c.evictions.ByIndex(targetIndex, key)
	if err != nil {
		return nil, err
	}
	for _, obj := range evictions {
		t.evictions = append(t.evictions, obj.(*lifecyclev1alpha1.Eviction))
	}
	if request, err := c.own.EvictionRequests(namespace).Get(uid); err == nil {
		t.request = request
	}
	if len(t.requests) == 0 && len(t.evictions) == 0 && (t.request == nil || !concerns(t.request)) {
		c.forgetAll(key)
		return nil, nil
	}
	c.identify(t)
	t.wanted = wantedBy(t.requests)
	if pod, err := c.pods.Pods(namespace).Get(t.name); err == nil {
		if t.successor = pod.UID; pod.UID == t.uid {
			t.pod, t.successor = pod, ""
		}
	}
	if t.pod == nil && len(t.wanted) > 0 && t.request != nil && isCanceled(outcomeOf(t.request)) {
		t.past, t.request = t.request, nil
	}
	return t, nil
}

// identify finds the name of the pod. Objects of others may have its UID with another name: whoever may delete one pod must
// not have an effect on another one, nor keep others from it. So the name is that of the request, or the one under which a
// pod with the UID is known, and objects with another name are none of it. As long as neither is there, the names have their
// turn one after the other, until kube-apiserver has said of all that they are none.
func (c *Controller) identify(t *target) {
	slices.SortFunc(t.requests, func(a, b *lifecyclev1alpha1.EvictionRequest) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	var names []string
	for _, eviction := range t.evictions {
		if len(eviction.Status.TargetResponders) > 0 {
			names = append(names, eviction.Spec.Target.Pod.Name) // Only this controller writes that.
		}
	}
	for _, over := range []bool{false, true} {
		for _, request := range t.requests {
			if isOver(request) == over {
				names = append(names, request.Spec.Target.Pod.Name)
			}
		}
		for _, eviction := range t.evictions {
			if (hasFailed(eviction) || hasSucceeded(eviction)) == over {
				names = append(names, eviction.Spec.Target.Pod.Name)
			}
		}
	}
	isPod := func(name string) bool {
		pod, err := c.pods.Pods(t.namespace).Get(name)
		return err == nil && pod.UID == t.uid
	}
	switch at := slices.IndexFunc(names, isPod); {
	case t.request != nil && t.request.Spec.Target.Pod != nil:
		t.name, t.isIdentified = t.request.Spec.Target.Pod.Name, true
	case at >= 0:
		t.name, t.isIdentified = names[at], true
	case len(names) > 0:
		t.name = names[0]
	}
	t.requests = slices.DeleteFunc(t.requests, func(request *lifecyclev1alpha1.EvictionRequest) bool {
		isOther := request.Spec.Target.Pod.Name != t.name
		if isOther {
			t.others = append(t.others, request)
		}
		return isOther
	})
	t.evictions = slices.DeleteFunc(t.evictions, func(eviction *lifecyclev1alpha1.Eviction) bool {
		isOther := eviction.Spec.Target.Pod.Name != t.name
		if isOther {
			t.otherEvictions = append(t.otherEvictions, eviction)
		}
		return isOther
	})
}

// current returns the Eviction that shows the request: of those that have not failed, one whose responders act, or the first
// one; or the last one of all, or of those that were not refused; nil if there is none. Others may have made further ones by
// hand, which have no effect: what was said of them must not be said of requests.
func (t *target) current() *lifecyclev1alpha1.Eviction {
	sorted := slices.SortedFunc(slices.Values(t.evictions), func(a, b *lifecyclev1alpha1.Eviction) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(numberOf(a), numberOf(b)))
	})
	var open *lifecyclev1alpha1.Eviction
	for _, eviction := range sorted {
		switch {
		case hasFailed(eviction):
		case len(eviction.Status.TargetResponders) > 0:
			return eviction
		case open == nil:
			open = eviction
		}
	}
	if open != nil || len(sorted) == 0 {
		return open
	}
	for _, eviction := range slices.Backward(sorted) {
		if provesPod(eviction) {
			return eviction
		}
	}
	return sorted[len(sorted)-1]
}

// foreignEvictions returns the Evictions that others have made beside the one that shows the request, without those that
// have an end.
func (t *target) foreignEvictions(current *lifecyclev1alpha1.Eviction) []*lifecyclev1alpha1.Eviction {
	found := slices.Concat(t.evictions, t.otherEvictions)
	return slices.DeleteFunc(found, func(eviction *lifecyclev1alpha1.Eviction) bool {
		isOther := eviction.Spec.Target.Pod.Name != t.name
		return isOther && !t.isIdentified || hasFailed(eviction) || hasSucceeded(eviction) || !isOther && (current == nil || eviction.UID == current.UID)
	})
}

// hasResponders reports whether responders of the pod are among the interceptors of the request.
func (t *target) hasResponders() bool {
	return t.pod != nil && slices.ContainsFunc(t.pod.Spec.EvictionResponders, func(responder v1.EvictionResponder) bool {
		return slices.ContainsFunc(t.request.Status.TargetInterceptors, func(i coordinationv1alpha1.Interceptor) bool { return i.Name == responder.Name })
	})
}

func isEvicted(evictions []*lifecyclev1alpha1.Eviction) bool {
	return slices.ContainsFunc(evictions, hasSucceeded)
}

func hasSucceeded(eviction *lifecyclev1alpha1.Eviction) bool {
	return meta.IsStatusConditionTrue(eviction.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionTargetEvicted))
}

func hasFailed(eviction *lifecyclev1alpha1.Eviction) bool {
	return meta.IsStatusConditionTrue(eviction.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionFailed))
}
