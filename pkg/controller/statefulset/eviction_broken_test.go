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
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
)

const releasedBroken = "Released: the pod has not been ready for 30s, so it waits for no other pod of StatefulSet web."

// Broken pods leave at once, and nothing waits for them, nor for what comes in their place: it may be
// as broken.
func TestBrokenPodsHoldUpNothing(t *testing.T) {
	setMaxUnavailable(t, false)
	first, second, third, fourth := pacedPod(0, broken), pacedPod(1, broken), pacedPod(2), pacedPod(3)
	p := newPacing(t, pacedSet(4), first, second, third, fourth, pacedRequest(first), pacedRequest(second), pacedRequest(third), pacedRequest(fourth))
	turns := map[*v1.Pod]*evictionTurn{}
	for _, pod := range []*v1.Pod{first, second, third, fourth} {
		turns[pod] = p.begin(pacedRequest(pod))
	}
	p.sync()
	expectOver(t, turns[first], releasedBroken)
	expectOver(t, turns[second], releasedBroken)
	expectOver(t, turns[fourth], passedOn)
	expectOver(t, turns[third], "")
	if want := waitsFor("pod web-3 to be evicted", 4); p.said["web-2"] != want {
		t.Errorf("the message is %q, want %q", p.said["web-2"], want)
	}
	for _, pod := range []*v1.Pod{first, second, fourth} {
		p.pacer.end(turns[pod])
		p.store(pacedRequest(pod, completedAt(p.clock.Now()), endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, p.clock.Now())))
		p.remove(pod)
	}
	// The replacement of the available one is, the others are missing or starting.
	p.store(pacedPod(3, next))
	p.store(pacedPod(1, unready, next))
	p.sync()
	expectOver(t, turns[third], passedOn)
}

// A new process does not know which of the released pods were broken: it takes none for it.
func TestBrokenPodsAfterRestart(t *testing.T) {
	setMaxUnavailable(t, false)
	low, high := pacedPod(0), pacedPod(1, broken)
	p := newPacing(t, pacedSet(2), low, high, pacedRequest(low), pacedRequest(high, completedAt(pacingEpoch)))
	turn := p.begin(pacedRequest(low))
	p.store(pacedPod(1, unready, next))
	p.sync()
	expectOver(t, turn, "")
}

// A replacement that has been available, and breaks later, is a broken pod like any other.
func TestBrokenReplacement(t *testing.T) {
	setMaxUnavailable(t, false)
	low, high := pacedPod(0), pacedPod(1, broken)
	p := newPacing(t, pacedSet(2), low, high, pacedRequest(low), pacedRequest(high))
	turn := p.begin(pacedRequest(high))
	p.sync()
	expectOver(t, turn, releasedBroken)
	p.pacer.end(turn)
	p.store(pacedRequest(high, completedAt(p.clock.Now()), endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, p.clock.Now())))
	p.sync()
	turn = p.begin(pacedRequest(low, func(r *coordinationv1alpha1.EvictionRequest) { r.Name, r.Spec.Target.Pod.UID = "none", "none" }))
	p.store(pacedPod(1, next))
	p.sync() // The replacement is available.
	p.pacer.end(turn)
	p.clock.Step(time.Hour)
	p.store(pacedPod(1, next, unreadySince(p.clock.Now())))
	turn = p.begin(pacedRequest(low))
	p.sync()
	expectOver(t, turn, "")
	p.clock.Step(30 * time.Second)
	p.sync()
	expectOver(t, turn, passedOn)
}

// A broken pod that recovers before it is evicted counts like the others, also if no other one waits at that moment.
func TestRecoveredBeforeItsEviction(t *testing.T) {
	setMaxUnavailable(t, false)
	low, high := pacedPod(0), pacedPod(1, broken)
	p := newPacing(t, pacedSet(2), low, high, pacedRequest(low), pacedRequest(high))
	turn := p.begin(pacedRequest(high))
	p.sync()
	expectOver(t, turn, releasedBroken)
	p.pacer.end(turn)
	p.store(pacedRequest(high, completedAt(p.clock.Now()), activeIs(imperativeInterceptor, ownInterceptor)))
	p.sync()
	drain(p.pacer.queue)
	recovered := pacedPod(1)
	p.store(recovered)
	p.pacer.changed(recovered)
	if p.pacer.queue.Len() != 1 {
		t.Error("the set is not synced when the pod recovers")
	}
	p.sync()
	p.store(pacedPod(1, unready, next))
	turn = p.begin(pacedRequest(low))
	p.sync()
	expectOver(t, turn, "")
	p.store(pacedPod(1, next))
	p.sync()
	expectOver(t, turn, passedOn)
}

func drain(queue workqueue.TypedRateLimitingInterface[string]) {
	for queue.Len() > 0 {
		key, _ := queue.Get()
		queue.Done(key)
	}
}

// What is noted about pods goes with their requests.
func TestBrokenPodsAreForgotten(t *testing.T) {
	setMaxUnavailable(t, false)
	for name, forget := range map[string]func(*pacing, *v1.Pod){
		"the request is deleted": func(p *pacing, pod *v1.Pod) { p.pacer.gone(pacedRequest(pod)) },
		"the request is canceled": func(p *pacing, pod *v1.Pod) {
			p.store(pacedRequest(pod, endedAs(coordinationv1alpha1.EvictionRequestConditionCanceled, pacingEpoch)))
			p.begin(pacedRequest(pacedPod(0)))
			p.sync()
		},
		"the release is withdrawn": func(p *pacing, pod *v1.Pod) { p.pacer.withdraw(p.pacer.turns[pacedKey][pod.UID]) },
	} {
		t.Run(name, func(t *testing.T) {
			pod := pacedPod(1, broken)
			p := newPacing(t, pacedSet(2), pod, pacedPod(0), pacedRequest(pod))
			p.begin(pacedRequest(pod))
			p.sync()
			if !p.pacer.broken[pacedKey].Has(pod.UID) {
				t.Fatal("the pod is not noted")
			}
			forget(p, pod)
			if len(p.pacer.broken) > 0 {
				t.Errorf("noted: %v", p.pacer.broken)
			}
		})
	}
}

// A pod that becomes broken without any event leaves without one.
func TestBrokenByTime(t *testing.T) {
	setMaxUnavailable(t, false)
	first, second := pacedPod(0, unready), pacedPod(1, unready)
	p := newPacing(t, pacedSet(3), first, second, pacedPod(2), pacedRequest(first), pacedRequest(second))
	low, high := p.begin(pacedRequest(first)), p.begin(pacedRequest(second))
	p.sync()
	expectOver(t, high, passedOn)
	p.clock.Step(29 * time.Second)
	p.sync()
	expectOver(t, low, "")
	p.clock.Step(time.Second)
	p.sync()
	if got := overWith(low); !strings.HasPrefix(got, "Released: the pod has not been ready") {
		t.Errorf("the turn ended with %q", got)
	}
}

// The clock of a node that is behind makes no pod broken before the pacer has seen that it is not ready for so long, nor
// does a restart.
func TestBrokenByTheClockOfItsNode(t *testing.T) {
	setMaxUnavailable(t, false)
	low, high := pacedPod(0), pacedPod(1)
	p := newPacing(t, pacedSet(2), low, high, pacedRequest(low))
	turn := p.begin(pacedRequest(low))
	if err := p.indexerOf(high).Update(pacedPod(1, unreadySince(pacingEpoch.Add(-100*time.Second)))); err != nil {
		t.Fatal(err)
	}
	p.sync() // The pacer does not know yet what the cache shows.
	expectOver(t, turn, "")
	p.pacer.stored(pacedPod(1, unreadySince(pacingEpoch.Add(-100*time.Second))))
	p.clock.Step(29 * time.Second)
	p.sync()
	expectOver(t, turn, "")
	p.restart()
	turn = p.begin(pacedRequest(low))
	p.clock.Step(29 * time.Second)
	p.sync()
	expectOver(t, turn, "")
	p.clock.Step(time.Second)
	p.sync()
	expectOver(t, turn, passedOn)
}
