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
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// surgeAnnotation is the record of a ReplicaSet whose Deployment surges. "leaving" are the UIDs of the pods whose
// replacements are available.
const surgeAnnotation = "deployment.kubernetes.io/eviction-surge"

// WorkloadRules are those of Deployments that surge before their pods go, and of StatefulSets that let them go in turn.
func WorkloadRules() []Rule {
	losses := &podLosses{last: map[types.UID][]time.Time{}, changed: map[types.UID]time.Time{}}
	releases := &setReleases{permitted: map[Key][]permission{}}
	return []Rule{
		{"a ready pod goes after a surge only if all replicas are ready without it", losses.check},
		{"a StatefulSet lets no more ready pods go at a time than may be unavailable", releases.check},
	}
}

// needsPods reports whether a Deployment needs further pods since a change.
func needsPods(was, is *appsv1.Deployment) bool {
	return was.Spec.Replicas != nil && is.Spec.Replicas != nil && *was.Spec.Replicas < *is.Spec.Replicas ||
		!equality.Semantic.DeepEqual(was.Spec.Template, is.Spec.Template)
}

// podLosses has when each owner has lost ready pods that were not to leave: who deletes one, or evicts it for no surge, may
// do so in the moment in which the other one goes. changed is when each Deployment has needed further pods last.
type podLosses struct {
	last    map[types.UID][]time.Time
	changed map[types.UID]time.Time
}

func (p *podLosses) lose(owner types.UID, at time.Time) {
	p.last[owner] = append(p.last[owner], at)
}

// countRecent returns how many pods the owner has lost a moment ago.
func (p *podLosses) countRecent(owner types.UID, now time.Time) int32 {
	p.last[owner] = slices.DeleteFunc(p.last[owner], func(at time.Time) bool { return now.Sub(at) >= settled })
	return int32(len(p.last[owner]))
}

func (p *podLosses) check(w *World, c *Change) string {
	if was, is, ok := versions[*appsv1.Deployment](c); ok {
		if is != nil && (was == nil || was.UID != is.UID || needsPods(was, is)) {
			p.changed[is.UID] = c.Time
		}
		return ""
	}
	before, after, ok := versions[*v1.Pod](c)
	if !ok || before == nil || before.DeletionTimestamp != nil {
		return ""
	}
	owner := metav1.GetControllerOf(before)
	isLeft := after != nil && after.UID == before.UID
	if owner == nil || owner.Kind != "ReplicaSet" {
		return ""
	}
	if isLeft && after.DeletionTimestamp == nil {
		if isReady(before) && !isReady(after) {
			p.lose(owner.UID, c.Time)
		}
		return ""
	}
	set, found := get[*appsv1.ReplicaSet](w, owner.Kind, before.Namespace, owner.Name)
	if !found || set.UID != owner.UID || set.Spec.Replicas == nil {
		return ""
	}
	surge := struct {
		Leaving []types.UID `json:"leaving"`
	}{}
	if !isReady(before) {
		return "" // Nobody loses it.
	}
	if json.Unmarshal([]byte(set.Annotations[surgeAnnotation]), &surge) != nil || !slices.Contains(surge.Leaving, before.UID) || markOf(before) != "" {
		p.lose(owner.UID, c.Time)
		return ""
	}
	ready := int32(0)
	each(w, func(pod *v1.Pod) {
		if by := metav1.GetControllerOf(pod); by != nil && by.UID == owner.UID && pod.UID != before.UID && pod.DeletionTimestamp == nil && isReady(pod) {
			ready++
		}
	})
	wanted := *set.Spec.Replicas
	if by := metav1.GetControllerOf(set); by != nil {
		if at, known := p.changed[by.UID]; known && c.Time.Sub(at) < settled {
			return ""
		}
		// The set may have replacements that are not ready yet, and the Deployment be scaled down meanwhile.
		if deployment, found := get[*appsv1.Deployment](w, by.Kind, set.Namespace, by.Name); found && deployment.UID == by.UID && deployment.Spec.Replicas != nil {
			wanted = min(wanted, *deployment.Spec.Replicas)
		}
	}
	if ready+p.countRecent(owner.UID, c.Time) >= wanted {
		return ""
	}
	return fmt.Sprintf("%d of %d replicas are ready without it", ready, wanted)
}

// ofStatefulSets is the interceptor that completes when a pod of a StatefulSet may be evicted.
const ofStatefulSets = "statefulset.apps.k8s.io"

// permission is how many pods a budget allows to be unavailable, since some time.
type permission struct {
	since  time.Time
	pods   int
	budget *policyv1.PodDisruptionBudget
}

// setReleases has what each budget has allowed. Which pods a set has let go, their requests say.
type setReleases struct{ permitted map[Key][]permission }

func (r *setReleases) check(w *World, c *Change) string {
	if before, after, ok := versions[*policyv1.PodDisruptionBudget](c); ok {
		now := permission{since: c.Time, pods: 1, budget: after}
		switch {
		case after == nil:
			now.budget = before
		case after.Spec.MaxUnavailable == nil:
			now.pods = unlimited
		default:
			now.pods = max(numberOf(after.Spec.MaxUnavailable), 1)
		}
		if past := r.permitted[c.Key]; len(past) == 0 || past[len(past)-1].pods != now.pods {
			r.permitted[c.Key] = append(past, now)
		}
		return ""
	}
	before, after, ok := sameRequest(c)
	if !ok || hasCompleted(before, ofStatefulSets) || !hasCompleted(after, ofStatefulSets) {
		return ""
	}
	pod, found := targetOf(w, after)
	if !found || !isServing(pod) {
		return ""
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "StatefulSet" {
		return ""
	}
	released := []string{pod.Name}
	each(w, func(request *coordinationv1alpha1.EvictionRequest) {
		other, found := targetOf(w, request)
		if !found || other.UID == pod.UID || isFinished(request) || !isServing(other) || !hasCompleted(request, ofStatefulSets) {
			return
		}
		// It may have been broken when it was let go.
		key := Key{"Pod", types.NamespacedName{Namespace: other.Namespace, Name: other.Name}}
		if by := metav1.GetControllerOf(other); by != nil && by.UID == owner.UID && w.hasHeld(key, isServed, settled) {
			released = append(released, other.Name)
		}
	})
	if allowed := r.highest(pod, c.Time); len(released) > allowed {
		slices.Sort(released)
		return fmt.Sprintf("pods %s may all be evicted now, and at most %d may be unavailable", strings.Join(released, ", "), allowed)
	}
	return ""
}

// highest returns the most that a budget of the pod has allowed since a decision that may be written only now.
func (r *setReleases) highest(pod *v1.Pod, now time.Time) int {
	highest := 1
	for _, past := range r.permitted {
		for i, p := range past {
			isOver := i+1 < len(past) && now.Sub(past[i+1].since) > decision
			selector, err := metav1.LabelSelectorAsSelector(p.budget.Spec.Selector)
			if !isOver && err == nil && p.budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
				highest = max(highest, p.pods)
			}
		}
	}
	return highest
}

// hasCompleted reports whether an interceptor has reported that it has completed.
func hasCompleted(request *coordinationv1alpha1.EvictionRequest, interceptor string) bool {
	return slices.ContainsFunc(request.Status.Interceptors, func(entry coordinationv1alpha1.InterceptorStatus) bool {
		return entry.Name == interceptor && entry.CompletionTime != nil
	})
}

// isServing reports whether a pod is ready and does not terminate.
func isServing(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && !hasEnded(pod) && isReady(pod)
}
