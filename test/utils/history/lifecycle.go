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

package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lifecycleRequest is the kind of the EvictionRequests of lifecycle.k8s.io in keys.
const lifecycleRequest = "EvictionRequest.lifecycle.k8s.io"

// viewSlack is how long after a change of a request a responder may still become Active as of before: who writes that may
// have been suspended since it has read the request.
const viewSlack = 45 * time.Second

// LifecycleRules are the rules of lifecycle.k8s.io: its objects never contradict the requests that are carried out.
func LifecycleRules() []Rule {
	turns := &turns{last: map[turn]time.Time{}}
	return []Rule{
		{"the end of an Eviction, and of a request for it, is final and true", viewsEndTruly},
		{"a responder acts when it is the turn of its interceptor", turns.check},
	}
}

// isTrue reports whether one of the conditions of an object of the group is True.
func isTrue(conditions []metav1.Condition, conditionType lifecyclev1alpha1.EvictionConditionType) bool {
	return meta.IsStatusConditionTrue(conditions, string(conditionType))
}

// isInvalid reports whether the conditions say that there never was such a pod.
func isInvalid(conditions []metav1.Condition) bool {
	failed := meta.FindStatusCondition(conditions, string(lifecyclev1alpha1.EvictionConditionFailed))
	return failed != nil && failed.Status == metav1.ConditionTrue && failed.Reason == string(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid)
}

// view is what an object of the group says about a pod.
type view struct {
	pod                types.NamespacedName
	uid                types.UID
	conditions, before []metav1.Condition
	isEviction         bool
}

// viewOf returns what a change makes an object of the group say.
func viewOf(c *Change) (view, bool) {
	if c.Before != nil && c.After != nil && c.Before.GetUID() != c.After.GetUID() {
		return view{}, false
	}
	if before, after, ok := versions[*lifecyclev1alpha1.Eviction](c); ok && before != nil && after != nil {
		pod := after.Spec.Target.Pod
		return view{types.NamespacedName{Namespace: after.Namespace, Name: pod.Name}, pod.UID, after.Status.Conditions, before.Status.Conditions, true}, true
	}
	if before, after, ok := versions[*lifecyclev1alpha1.EvictionRequest](c); ok && before != nil && after != nil {
		pod := after.Spec.Target.Pod
		return view{types.NamespacedName{Namespace: after.Namespace, Name: pod.Name}, pod.UID, after.Status.Conditions, before.Status.Conditions, false}, true
	}
	return view{}, false
}

func viewsEndTruly(w *World, c *Change) string {
	v, ok := viewOf(c)
	if !ok {
		return ""
	}
	for _, conditionType := range []lifecyclev1alpha1.EvictionConditionType{lifecyclev1alpha1.EvictionConditionTargetEvicted, lifecyclev1alpha1.EvictionConditionFailed} {
		isFinal := v.isEviction || conditionType == lifecyclev1alpha1.EvictionConditionTargetEvicted || isInvalid(v.before)
		if isFinal && isTrue(v.before, conditionType) && !isTrue(v.conditions, conditionType) {
			return fmt.Sprintf("%s was True and is not any more", conditionType)
		}
	}
	pod, found := get[*v1.Pod](w, "Pod", v.pod.Namespace, v.pod.Name)
	isThere := found && pod.UID == v.uid && !hasEnded(pod)
	switch {
	case !isThere:
	case isTrue(v.conditions, lifecyclev1alpha1.EvictionConditionTargetEvicted) && !isTrue(v.before, lifecyclev1alpha1.EvictionConditionTargetEvicted):
		return fmt.Sprintf("it says that pod %s is evicted, which is %s", describe(pod), pod.Status.Phase)
	case !v.isEviction && isInvalid(v.conditions) && !isInvalid(v.before):
		return fmt.Sprintf("it says that there is no pod %s", describe(pod))
	}
	return ""
}

// turn is that of an interceptor of the request for a pod.
type turn struct {
	pod         types.UID
	interceptor string
}

// turns has when each interceptor was active last.
type turns struct{ last map[turn]time.Time }

func (t *turns) check(w *World, c *Change) string {
	if before, after, ok := versions[*coordinationv1alpha1.EvictionRequest](c); ok {
		for _, request := range []*coordinationv1alpha1.EvictionRequest{before, after} {
			if request == nil {
				continue
			}
			for _, name := range request.Status.ActiveInterceptors {
				t.last[turn{types.UID(request.Name), name}] = c.Time
			}
		}
		return ""
	}
	before, after, ok := versions[*lifecyclev1alpha1.Eviction](c)
	if !ok || after == nil {
		return ""
	}
	var active []string
	for _, responder := range after.Status.TargetResponders {
		if responder.State != lifecyclev1alpha1.ResponderStateActive {
			continue
		}
		active = append(active, responder.Name)
		wasActive := before != nil && before.UID == after.UID && slices.ContainsFunc(before.Status.TargetResponders, func(r lifecyclev1alpha1.TargetResponder) bool {
			return r.Name == responder.Name && r.State == lifecyclev1alpha1.ResponderStateActive
		})
		if wasActive || responder.Name == lifecyclev1alpha1.EvictionResponderImperativeEviction {
			continue
		}
		key := turn{after.Spec.Target.Pod.UID, responder.Name}
		request, found := get[*coordinationv1alpha1.EvictionRequest](w, "EvictionRequest", after.Namespace, string(key.pod))
		last, known := t.last[key]
		if !(found && slices.Contains(request.Status.ActiveInterceptors, responder.Name)) && !(known && c.Time.Sub(last) <= viewSlack) {
			return fmt.Sprintf("%s becomes Active, and it is not its turn in the request", responder.Name)
		}
	}
	if len(active) > 1 {
		return fmt.Sprintf("%v are Active", active)
	}
	return ""
}

// unfinishedViews returns what objects of the group do not say although nobody disturbs the programs any more.
func unfinishedViews(w *World) []string {
	var left []string
	wanted := map[types.UID][]string{}
	each(w, func(request *lifecyclev1alpha1.EvictionRequest) {
		uid := request.Spec.Target.Pod.UID
		isOver := isTrue(request.Status.Conditions, lifecyclev1alpha1.EvictionConditionTargetEvicted) || isInvalid(request.Status.Conditions)
		if observed := request.Status.ObservedGeneration; observed == nil || *observed != request.Generation {
			left = append(left, fmt.Sprintf("request %s of lifecycle.k8s.io is not observed", request.Name))
		}
		if request.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentEviction && !isOver && request.DeletionTimestamp == nil {
			wanted[uid] = append(wanted[uid], request.Spec.Requester)
			pod, found := get[*v1.Pod](w, "Pod", request.Namespace, request.Spec.Target.Pod.Name)
			if !found || pod.UID != uid {
				left = append(left, fmt.Sprintf("pod %s is gone, and request %s of lifecycle.k8s.io does not say so", request.Spec.Target.Pod.Name, request.Name))
			}
		}
	})
	each(w, func(request *coordinationv1alpha1.EvictionRequest) {
		if isFinished(request) {
			return
		}
		var names []string
		for _, requester := range request.Spec.Requesters {
			if strings.Contains(requester.Name, "/") {
				names = append(names, requester.Name)
			}
		}
		for _, name := range names {
			if !slices.Contains(wanted[types.UID(request.Name)], name) {
				left = append(left, fmt.Sprintf("%s requests the eviction of pod %s, and has no request of lifecycle.k8s.io", name, request.Spec.Target.Pod.Name))
			}
		}
		for _, name := range wanted[types.UID(request.Name)] {
			if !slices.Contains(names, name) {
				left = append(left, fmt.Sprintf("%s does not request the eviction of pod %s, and has a request of lifecycle.k8s.io", name, request.Spec.Target.Pod.Name))
			}
		}
		for _, active := range request.Status.ActiveInterceptors {
			if strings.Contains(active, "/") && !isShown(w, types.UID(request.Name), active) {
				left = append(left, fmt.Sprintf("it is the turn of %s for pod %s, and no Eviction says so", active, request.Spec.Target.Pod.Name))
			}
		}
	})
	each(w, func(eviction *lifecyclev1alpha1.Eviction) {
		pod, found := get[*v1.Pod](w, "Pod", eviction.Namespace, eviction.Spec.Target.Pod.Name)
		isOver := isTrue(eviction.Status.Conditions, lifecyclev1alpha1.EvictionConditionTargetEvicted) || isTrue(eviction.Status.Conditions, lifecyclev1alpha1.EvictionConditionFailed)
		if isGone := !found || pod.UID != eviction.Spec.Target.Pod.UID; isGone && !isOver {
			left = append(left, fmt.Sprintf("pod %s is gone, and Eviction %s does not say so", eviction.Spec.Target.Pod.Name, eviction.Name))
		}
	})
	return left
}

// isShown reports whether an Eviction of the pod has the responder Active.
func isShown(w *World, pod types.UID, responder string) bool {
	shown := false
	each(w, func(eviction *lifecyclev1alpha1.Eviction) {
		shown = shown || eviction.Spec.Target.Pod.UID == pod && slices.Contains(responderStates(eviction), responder+"="+string(lifecyclev1alpha1.ResponderStateActive))
	})
	return shown
}

// responderStates returns the states of the responders of an Eviction, as NAME=STATE.
func responderStates(eviction *lifecyclev1alpha1.Eviction) []string {
	var states []string
	for _, responder := range eviction.Status.TargetResponders {
		states = append(states, responder.Name+"="+string(responder.State))
	}
	return states
}
