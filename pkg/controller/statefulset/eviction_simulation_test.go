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

package statefulset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/evictionrequest"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/util/evictionpacing"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
	"k8s.io/kubernetes/test/utils/simulation"
)

// TestEvictionSimulation requests, cancels and executes evictions of pods of a set, and breaks and
// repairs pods, in random order, with caches that are behind and with restarts. At no time are more
// pods of the set away because they were passed on than maxUnavailable or a budget permits, apart
// from broken ones, and in the end every requested pod leaves.
func TestEvictionSimulation(t *testing.T) {
	setMaxUnavailable(t, true)
	simulation.Run(t, 300, func(t *testing.T, seed uint64) {
		w := newPacedWorld(t, seed)
		for range 150 {
			w.step()
		}
		w.finish()
	})
}

// change is a change that a watch has not delivered yet.
type change struct {
	object  runtime.Object
	deleted bool
}

// pacedWorld has the actual state, and the pacer with its caches.
type pacedWorld struct {
	*pacing
	random   *rand.Rand
	set      *apps.StatefulSet
	limit    int
	pods     map[string]*v1.Pod
	requests map[string]*coordinationv1alpha1.EvictionRequest
	// podChanges and requestChanges are delivered independently of each other.
	podChanges, requestChanges []change
	turns                      map[types.UID]*evictionTurn
	// ended are the turns whose end is not reported yet, with their final messages.
	ended map[types.UID]string
	// broken is a pod that never becomes ready, or "".
	broken string
	// away are the pods that were passed on before the deadline, by name, until a replacement is
	// available. Pods beyond the replicas do not count.
	away map[string]types.UID
	// free are the names of pods that were broken when they left, until one is available. shaky are
	// the UIDs of pods that were not ready for a time: the caches may show them as broken.
	free    map[string]bool
	shaky   map[types.UID]bool
	decided time.Time
	created int
	log     []string
}

func newPacedWorld(t *testing.T, seed uint64) *pacedWorld {
	random := rand.New(rand.NewPCG(seed, 4563))
	limit := 1 + random.IntN(2)
	// The limit is that of the set, or that of a budget.
	budgeted, ofSet := random.IntN(2) == 0, limit
	if budgeted {
		ofSet = 3 - limit
	}
	set := pacedSet(int32(2+random.IntN(5)), atMost(intstr.FromInt32(int32(ofSet))), minReady(int32(random.IntN(2)*60)))
	w := &pacedWorld{
		pacing: newPacing(t), random: random, set: set, limit: limit,
		pods: map[string]*v1.Pod{}, requests: map[string]*coordinationv1alpha1.EvictionRequest{},
		turns: map[types.UID]*evictionTurn{}, ended: map[types.UID]string{}, away: map[string]types.UID{}, free: map[string]bool{}, shaky: map[types.UID]bool{},
	}
	w.store(set)
	if budgeted {
		w.store(permitting(int32(limit)))
	}
	for ordinal := range int(*set.Spec.Replicas) {
		w.writePod(pacedPod(ordinal))
	}
	w.catchUp(true)
	return w
}

func (w *pacedWorld) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%5.0fs ", w.clock.Since(pacingEpoch).Seconds())+fmt.Sprintf(format, args...))
}

func (w *pacedWorld) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
}

func (w *pacedWorld) writePod(pod *v1.Pod) {
	w.pods[pod.Name] = pod
	w.podChanges = append(w.podChanges, change{object: pod})
}

func (w *pacedWorld) writeRequest(request *coordinationv1alpha1.EvictionRequest) {
	w.requests[request.Name] = request
	w.requestChanges = append(w.requestChanges, change{object: request})
}

// catchUp delivers changes to the caches, all or some.
func (w *pacedWorld) catchUp(all bool) {
	apply := func(changes []change) []change {
		count := len(changes)
		if !all {
			count = w.random.IntN(count + 1)
		}
		for _, change := range changes[:count] {
			if change.deleted {
				w.remove(change.object)
			} else {
				w.store(change.object)
			}
			w.pacer.changed(change.object)
		}
		return changes[count:]
	}
	w.podChanges, w.requestChanges = apply(w.podChanges), apply(w.requestChanges)
	w.decide()
}

// decide runs the pacer and checks its decisions.
func (w *pacedWorld) decide() {
	current := len(w.podChanges) == 0 && len(w.requestChanges) == 0
	unavailable := w.unavailable()
	w.sync()
	for _, uid := range w.sortedTurns() {
		message := overWith(w.turns[uid])
		if message == "" || w.ended[uid] != "" {
			continue
		}
		name := w.turns[uid].pod.Name
		w.note("%s: %s", name, message)
		w.ended[uid] = message
		if evictionStageOf(w.requests[string(uid)]) != evictionpacing.Asked {
			continue // It was canceled, so its end will not be reported.
		}
		switch {
		case message == passedOn:
			if pod := w.pods[name]; w.isWanted(name) && (pod == nil || isTerminating(pod) || isRunningAndReady(pod)) && !w.isForBroken(name) {
				w.away[name] = uid // One that is not ready may turn out to be broken.
			}
			if len(w.away) > w.limit {
				w.fail("%v are away, more than %d", w.away, w.limit)
			}
			if pod := w.pods[name]; current && pod.UID == uid && !isUnavailable(pod, w.set.Spec.MinReadySeconds, w.clock.Now()) {
				if unavailable++; unavailable > w.limit {
					w.fail("%s leaves, which makes %d unavailable, more than %d", name, unavailable, w.limit)
				}
			}
		case strings.HasPrefix(message, "Released: the pod has not been ready"):
			w.free[name] = true
			if pod := w.pods[name]; current && pod.UID == uid && !w.isBroken(pod) {
				w.fail("%s leaves, and is not broken", name)
			}
		case strings.HasPrefix(message, "Gave up"):
			if waited := w.clock.Since(laterOf(w.decided, w.turns[uid].began)); current && waited < evictionProgressDeadline {
				w.fail("%s was given up after %v", name, waited)
			}
		}
	}
}

// unavailable counts the pods that are unavailable or released, without those that are broken or
// come in the place of a broken one.
func (w *pacedWorld) unavailable() int {
	count := 0
	for ordinal := range int(*w.set.Spec.Replicas) {
		name := fmt.Sprintf("web-%d", ordinal)
		pod, away := w.pods[name], w.away[name]
		switch {
		case away == "" && (w.free[name] || pod != nil && !isTerminating(pod) && w.isBroken(pod)):
		case pod == nil || isUnavailable(pod, w.set.Spec.MinReadySeconds, w.clock.Now()) || away == pod.UID:
			count++
		}
	}
	return count
}

// isBroken reports whether a pod is broken. The pacer sees that later.
func (w *pacedWorld) isBroken(pod *v1.Pod) bool {
	return !podutil.IsPodReady(pod) && w.clock.Since(unreadyAsReported(pod)) >= evictionturn.BrokenAfter
}

// isForBroken reports whether a pod came in the place of a broken one, and was never available: the set has no pod
// less when it leaves.
func (w *pacedWorld) isForBroken(name string) bool {
	pod := w.pods[name]
	return w.free[name] && pod != nil && isUnavailable(pod, w.set.Spec.MinReadySeconds, w.clock.Now())
}

// isWanted reports whether a pod of this name is within the replicas.
func (w *pacedWorld) isWanted(name string) bool {
	return podInOrdinalRange(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, w.set)
}

func (w *pacedWorld) sortedTurns() []types.UID {
	var uids []types.UID
	for uid := range w.turns {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}

// pick returns a random pod that passes the filter, or nil. A seed always gives the same pods.
func (w *pacedWorld) pick(filter func(*v1.Pod) bool) *v1.Pod {
	var names []string
	for name, pod := range w.pods {
		if filter(pod) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return w.pods[names[w.random.IntN(len(names))]].DeepCopy()
}

func (w *pacedWorld) requestFor(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	return w.requests[string(pod.UID)].DeepCopy()
}

func (w *pacedWorld) step() {
	switch w.random.IntN(16) {
	case 0, 1:
		w.ask(w.pick(func(pod *v1.Pod) bool { return w.requestFor(pod) == nil }))
	case 2:
		w.cancel()
	case 3, 4:
		w.library()
	case 5:
		w.imperative(w.random.IntN(3) > 0)
	case 6, 7:
		w.kubelet(false)
	case 8, 9:
		w.controller()
	case 10:
		w.crash()
	case 11:
		w.scale()
	case 12:
		if w.random.IntN(4) == 0 {
			w.processRestart()
		}
	case 13:
		w.clock.Step(time.Duration(w.random.IntN(180)) * time.Second)
		w.available()
		w.decide()
	default:
		w.catchUp(w.random.IntN(2) == 0)
	}
}

func (w *pacedWorld) ask(pod *v1.Pod) {
	if pod == nil {
		return
	}
	w.note("%s is asked", pod.Name)
	w.writeRequest(pacedRequest(pod))
}

// cancel cancels the eviction of a pod that is not being evicted yet.
func (w *pacedWorld) cancel() {
	pod := w.pick(func(pod *v1.Pod) bool {
		request := w.requestFor(pod)
		return request != nil && pod.DeletionTimestamp == nil && evictionrequest.StateOf(request) == evictionrequest.StateIntercepting
	})
	if pod == nil {
		return
	}
	w.note("the request for %s is canceled", pod.Name)
	request := w.requestFor(pod)
	endedAs(coordinationv1alpha1.EvictionRequestConditionCanceled, w.clock.Now())(request)
	w.writeRequest(request)
	if w.away[pod.Name] == pod.UID {
		delete(w.away, pod.Name)
	}
}

// library begins and ends turns, and reports, like the library for interceptors.
func (w *pacedWorld) library() {
	for _, uid := range w.sortedTurns() {
		request, turn := w.requests[string(uid)], w.turns[uid]
		done := evictionrequest.StateOf(request) != evictionrequest.StateIntercepting
		if !done && w.ended[uid] != "" {
			if w.random.IntN(3) == 0 {
				continue // The report takes its time.
			}
			request = request.DeepCopy()
			completedAt(w.clock.Now())(request)
			activeIs(imperativeInterceptor, ownInterceptor)(request)
			w.writeRequest(request)
			w.decided = w.clock.Now()
			done = true
		}
		if done {
			w.pacer.end(turn)
			delete(w.turns, uid)
			delete(w.ended, uid)
			continue
		}
		w.heartbeat(request)
	}
	for _, obj := range w.indexerOf(&coordinationv1alpha1.EvictionRequest{}).List() {
		request := obj.(*coordinationv1alpha1.EvictionRequest)
		uid := types.UID(request.Name)
		if evictionStageOf(request) == evictionpacing.Asked && evictionStageOf(w.requests[request.Name]) == evictionpacing.Asked && w.turns[uid] == nil {
			w.heartbeat(w.requests[request.Name])
			w.turns[uid] = w.begin(request)
		}
	}
	w.decide()
}

// heartbeat writes the start of a turn, or a heartbeat if one is due.
func (w *pacedWorld) heartbeat(request *coordinationv1alpha1.EvictionRequest) {
	now := &metav1.Time{Time: w.clock.Now()}
	if last := evictionrequest.InterceptorStatusOf(&request.Status, coordinationv1alpha1.EvictionInterceptorStatefulSet).HeartbeatTime; last != nil && now.Sub(last.Time) < 3*time.Minute {
		return
	}
	request = request.DeepCopy()
	entry := evictionrequest.InterceptorStatusOf(&request.Status, coordinationv1alpha1.EvictionInterceptorStatefulSet)
	if entry.HeartbeatTime = now; entry.StartTime == nil {
		entry.StartTime = now
	}
	w.writeRequest(request)
}

// imperative evicts a released pod, unless a budget blocks it.
func (w *pacedWorld) imperative(allowed bool) {
	pod := w.pick(func(pod *v1.Pod) bool {
		request := w.requestFor(pod)
		return request != nil && pod.DeletionTimestamp == nil && evictionrequest.StateOf(request) == evictionrequest.StateEvicting
	})
	if pod == nil || !allowed {
		return
	}
	w.note("%s is evicted", pod.Name)
	if w.shaky[pod.UID] && w.away[pod.Name] == "" {
		w.free[pod.Name] = true
	}
	pod.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
	w.writePod(pod)
}

// kubelet removes terminating pods and makes the others ready.
func (w *pacedWorld) kubelet(all bool) {
	for _, name := range w.names() {
		pod := w.pods[name].DeepCopy()
		if !all && w.random.IntN(2) == 0 {
			continue
		}
		switch {
		case pod.DeletionTimestamp != nil:
			w.note("%s is gone", name)
			delete(w.pods, name)
			w.podChanges = append(w.podChanges, change{object: pod, deleted: true})
			if request := w.requestFor(pod); request != nil && evictionStageOf(request) != evictionpacing.Stays {
				endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, w.clock.Now())(request)
				w.writeRequest(request)
				if w.away[name] == pod.UID && ownCompletion(request) == nil {
					delete(w.away, name) // It has left before the end of its turn was reported.
				}
			}
		case !isRunningAndReady(pod) && name != w.broken:
			w.note("%s is ready", name)
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now())}}
			w.writePod(pod)
		}
	}
	w.available()
}

// available removes the pods with an available replacement from away.
func (w *pacedWorld) available() {
	for name, uid := range w.away {
		if pod := w.pods[name]; pod != nil && pod.UID != uid && !isUnavailable(pod, w.set.Spec.MinReadySeconds, w.clock.Now()) {
			delete(w.away, name)
		}
	}
	for name := range w.free {
		if pod := w.pods[name]; pod != nil && !isUnavailable(pod, w.set.Spec.MinReadySeconds, w.clock.Now()) {
			w.free[name] = false
		}
	}
}

func (w *pacedWorld) names() []string {
	var names []string
	for name := range w.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// controller creates missing pods, and deletes surplus ones.
func (w *pacedWorld) controller() {
	for ordinal := range int(*w.set.Spec.Replicas) {
		if w.pods[fmt.Sprintf("web-%d", ordinal)] == nil {
			w.created++
			w.writePod(pacedPod(ordinal, startingSince(w.clock.Now()), func(pod *v1.Pod) { pod.UID = types.UID(fmt.Sprintf("%s-%d", pod.Name, w.created)) }))
			w.shaky[w.pods[fmt.Sprintf("web-%d", ordinal)].UID] = true
			w.note("web-%d is created", ordinal)
		}
	}
	for _, name := range w.names() {
		if pod := w.pods[name]; getOrdinal(pod) >= int(*w.set.Spec.Replicas) && pod.DeletionTimestamp == nil {
			pod = pod.DeepCopy()
			pod.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
			w.writePod(pod)
			w.note("%s is surplus", name)
		}
	}
}

func (w *pacedWorld) crash() {
	pod := w.pick(func(pod *v1.Pod) bool { return isRunningAndReady(pod) && pod.DeletionTimestamp == nil })
	if pod == nil || w.random.IntN(3) > 0 {
		return
	}
	w.note("%s breaks", pod.Name)
	unreadySince(w.clock.Now())(pod)
	w.shaky[pod.UID] = true
	if _, freed := w.free[pod.Name]; freed {
		w.free[pod.Name] = true // The caches may not show that it was available.
	}
	w.writePod(pod)
	// Its failure is not ours. If it was released, it may leave as a broken pod, and if it is the
	// replacement, it was available, which the caches may not show.
	delete(w.away, pod.Name)
	if w.random.IntN(3) == 0 {
		w.broken = pod.Name
	}
}

func (w *pacedWorld) scale() {
	if w.random.IntN(4) > 0 {
		return
	}
	w.set = w.set.DeepCopy()
	replicas(int32(w.random.IntN(6)))(w.set)
	w.note("scaled to %d", *w.set.Spec.Replicas)
	for name := range w.away {
		if !w.isWanted(name) {
			delete(w.away, name)
		}
	}
	w.store(w.set)
	w.decide()
}

// processRestart loses what was not reported. The caches are synced before turns begin.
func (w *pacedWorld) processRestart() {
	w.note("restart")
	for uid, message := range w.ended {
		if message == passedOn {
			for name, away := range w.away {
				if away == uid && evictionStageOf(w.requests[string(uid)]) == evictionpacing.Asked {
					delete(w.away, name)
				}
			}
		}
	}
	w.restart()
	w.turns, w.ended = map[types.UID]*evictionTurn{}, map[types.UID]string{}
	w.catchUp(true)
}

// finish runs all components until every requested pod has left. A broken pod stays broken.
func (w *pacedWorld) finish() {
	w.note("finishing")
	replicas(max(2, *w.set.Spec.Replicas))(w.set)
	w.store(w.set)
	waiting := func() []string {
		var names []string
		for _, name := range w.names() {
			if request := w.requestFor(w.pods[name]); request != nil && evictionStageOf(request) != evictionpacing.Stays {
				names = append(names, name)
			}
		}
		return names
	}
	// Each pod may have to wait for its deadline, one after another, even if no process lives that
	// long.
	limit, life := (len(waiting())+2)*15, 4+w.random.IntN(20)
	for minute := 1; len(waiting()) > 0; minute++ {
		if minute%life == 0 {
			w.processRestart()
		}
		if minute > limit {
			w.fail("%v have not left within %d minutes", waiting(), limit)
		}
		w.catchUp(true)
		w.library()
		for range w.pods {
			w.imperative(true)
		}
		w.kubelet(true)
		w.controller()
		w.clock.Step(time.Minute)
		w.available()
	}
	w.catchUp(true)
	w.library()
	w.catchUp(true)
	w.sync()
	if len(w.pacer.turns) > 0 || len(w.pacer.results) > 0 {
		w.fail("the pacer still has the turns %v and the results %v", w.pacer.turns, w.pacer.results)
	}
}
