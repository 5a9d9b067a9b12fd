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

package deployment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

const contestOfWeb1 = "Surging %d/%d: another client keeps reverting spec.replicas of ReplicaSet web-1, which is restored at most once a minute: see its metadata.managedFields."

// scaledBack sets spec.replicas to what the Deployment wants.
func scaledBack(rs *apps.ReplicaSet) { rs.Spec.Replicas = ptr.To(int32(1)) }

// replaced is what a tool writes that knows nothing of the surge.
func replaced(rs *apps.ReplicaSet) {
	scaledBack(rs)
	delete(rs.Annotations, deploymentutil.EvictionSurgeAnnotation)
}

// unrecorded removes the record alone.
func unrecorded(rs *apps.ReplicaSet) { delete(rs.Annotations, deploymentutil.EvictionSurgeAnnotation) }

// change writes to a ReplicaSet as another client.
func (f *surgeFixture) change(name string, change func(*apps.ReplicaSet)) {
	f.t.Helper()
	rs := f.stored(name).DeepCopy()
	change(rs)
	f.lock.Lock()
	f.version++
	rs.ResourceVersion = strconv.Itoa(f.version)
	f.lock.Unlock()
	f.put(rs)
}

// surgesIn syncs for so long once a second, and returns after how many seconds the surge was written, and the events that
// say that it is contested. After each sync, another client reverts it.
func (f *surgeFixture) surgesIn(d time.Duration, revert func(*apps.ReplicaSet)) (after []int, contested []string) {
	f.t.Helper()
	for second := range int(d / time.Second) {
		f.mustSync()
		if slices.ContainsFunc(f.writes(), func(rs *apps.ReplicaSet) bool { return *rs.Spec.Replicas == 2 }) {
			after = append(after, second)
		}
		if f.stored("web-1").Annotations[deploymentutil.EvictionSurgeAnnotation] != "" {
			f.change("web-1", revert)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		contested = append(contested, slices.DeleteFunc(f.recorded(), func(event string) bool { return !strings.Contains(event, eventSurgeContested) })...)
	}
	return after, contested
}

// A surge that another client reverts is restored three times at once, then ever more slowly. The request and an event
// say so, and the pod waits no longer than without it.
func TestContestedSurge(t *testing.T) {
	for name, revert := range map[string]func(*apps.ReplicaSet){"scaled": scaledBack, "replaced": replaced} {
		t.Run(name, func(t *testing.T) {
			withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				want := []int{0, 1, 2, 3, 8, 18, 38, 78, 138, 198, 258}
				after, contested := f.surgesIn(290*time.Second, revert)
				if diff := cmp.Diff(want, after); diff != "" {
					t.Errorf("the surge is written after other seconds (-want, +got):\n%s", diff)
				}
				if got, want := f.entry("a-uid").Message, fmt.Sprintf(contestOfWeb1, 0, 0); got != want {
					t.Errorf("the message is %q, want %q", got, want)
				}
				if len(contested) != 8 || contested[0] != "Warning EvictionSurgeContested Another client keeps reverting the eviction surge of replica set web-1. It is restored ever more slowly, at most once a minute" {
					t.Errorf("the events are %v, want one from the third time on", contested)
				}
				f.surgesIn(11*time.Second, revert)
				entry := f.entry("a-uid")
				if want := "Gave up after 5m0s without progress. "; entry.CompletionTime == nil || !strings.HasPrefix(entry.Message, want) {
					t.Errorf("after the deadline the entry is %v, want it complete with %q", entry, want)
				}
			})
		})
	}
}

// Where another client removes the record alone, the extra replica stays: to wait would cost the pod that starts. The record
// is restored at a pace, the request and an event say so, and the pod waits no longer than without that.
func TestSurgeLosesItsRecord(t *testing.T) {
	for name, lose := range map[string]func(*apps.ReplicaSet){
		"removed": unrecorded,
		"changed": func(rs *apps.ReplicaSet) { rs.Annotations[deploymentutil.EvictionSurgeAnnotation] = "{}" },
	} {
		t.Run(name, func(t *testing.T) {
			withSurger(t, []runtime.Object{web(), web1(), webPod("a"), webPod("b", starting), asks("a")}, func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				want := []int{0, 1, 2, 3, 8, 18, 38, 78, 138, 198, 258}
				lost := "none"
				after, contested := f.surgesIn(290*time.Second, func(rs *apps.ReplicaSet) {
					if *rs.Spec.Replicas != 2 {
						t.Fatalf("the ReplicaSet has %d replicas, want 2", *rs.Spec.Replicas)
					}
					if record := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]; record != lost {
						lose(rs)
						lost = rs.Annotations[deploymentutil.EvictionSurgeAnnotation]
					}
				})
				if diff := cmp.Diff(want, after); diff != "" {
					t.Errorf("the record is written after other seconds (-want, +got):\n%s", diff)
				}
				if got := *f.stored("web-1").Spec.Replicas; got != 2 {
					t.Errorf("the ReplicaSet has %d replicas, want 2", got)
				}
				const keeps = "nother client keeps removing the annotation deployment.kubernetes.io/eviction-surge of "
				if got, want := f.entry("a-uid").Message, "Surging 0/1: waiting for pod b to become ready. Besides, a"+keeps+"ReplicaSet web-1, which is restored at most once a minute: see its metadata.managedFields."; got != want {
					t.Errorf("the message is %q, want %q", got, want)
				}
				if len(contested) != 8 || contested[0] != "Warning EvictionSurgeContested A"+keeps+"replica set web-1. It is restored ever more slowly, at most once a minute" {
					t.Errorf("the events are %v, want one from the third time on", contested)
				}
				f.surgesIn(11*time.Second, lose)
				if entry := f.entry("a-uid"); entry.CompletionTime == nil || !strings.HasPrefix(entry.Message, "Gave up after 5m0s without progress. ") {
					t.Errorf("after the deadline the entry is %v", entry)
				}
			})
		})
	}
}

// The pace of the record delays no pod: when its replacement is available, it leaves.
func TestSurgeWithoutItsRecordGoesOn(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), webPod("b", starting), asks("a")}, func(t *testing.T, f *surgeFixture) {
		f.surgesIn(5*time.Second, unrecorded)
		f.writes()
		f.mustSync()
		if got := f.writes(); len(got) > 0 {
			t.Fatalf("the record is not paced: %v", got)
		}
		f.put(webPod("b"))
		f.mustSync()
		if got, want := f.stored("web-1"), `"leaving":["a-uid"]`; *got.Spec.Replicas != 1 || !strings.Contains(got.Annotations[deploymentutil.EvictionSurgeAnnotation], want) {
			t.Errorf("the ReplicaSet has %d replicas and the record %s, want 1 and %s", *got.Spec.Replicas, got.Annotations[deploymentutil.EvictionSurgeAnnotation], want)
		}
	})
}

// A rollout takes over the extra replica also if its record is gone.
func TestRolloutWithoutTheRecord(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), webPod("b", starting), asks("a")}, func(t *testing.T, f *surgeFixture) {
		f.mustSync()
		f.change("web-1", unrecorded)
		d := web()
		d.Spec.Template.Labels["version"] = "next"
		f.put(d)
		views, err := f.surge()
		if err != nil || len(views) != 1 || *views[0].Spec.Replicas != 2 {
			t.Errorf("the rollout sees %v, %v, want 2 replicas", views, err)
		}
	})
}

// When nobody reverts the surge any more, the message says what the pod waits for.
func TestContestEnds(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		f.surgesIn(5*time.Second, scaledBack)
		if len(f.writes()) > 0 {
			t.Error("the surge is not paused")
		}
		time.Sleep(4 * time.Second)
		f.mustSync()
		f.put(webPod("b", starting))
		f.mustSync()
		f.expectSize("web-1", "2 "+surge1of2)
		time.Sleep(5 * time.Second) // The library reports a change a moment later.
		if got, want := f.entry("a-uid").Message, fmt.Sprintf(contestOfWeb1, 0, 1); got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
		time.Sleep(15 * time.Second)
		f.mustSync()
		if got, want := f.entry("a-uid").Message, "Surging 0/1: waiting for pod b to become ready."; got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
	})
}

// What the controller itself does is no contest: a surge begins and ends again and again, and the Deployment is scaled.
func TestOwnChangesAreNoContest(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		for round := range 10 {
			f.mustSync()
			if got := f.stored("web-1"); *got.Spec.Replicas != 2 {
				t.Fatalf("round %d: the surge has not begun: %d replicas", round, *got.Spec.Replicas)
			}
			f.put(web(withReplicas(2, 1)))
			f.mustSync()
			f.put(web())
			f.mustSync()
			f.remove(asks("a"))
			f.mustSync()
			f.put(asks("a"))
		}
		if events := f.recorded(); slices.ContainsFunc(events, func(event string) bool { return strings.Contains(event, eventSurgeContested) }) {
			t.Errorf("a contest with itself: %v", events)
		}
		f.dc.surger.forget(web())
		if len(f.dc.surger.written) > 0 {
			t.Errorf("remembered of a Deployment that is gone: %v", f.dc.surger.written)
		}
	})
}

// A write without an answer may have taken effect: nobody has reverted anything then.
func TestUnansweredSurgeIsNoContest(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		f.mustSync()
		written := f.dc.surger.written[web().UID]
		if written == nil || !written.isReverted(web1()) {
			t.Fatalf("what was written is not known: %v", written)
		}
		f.dc.surger.noteUnanswered(web().UID)
		if written.isReverted(web1()) {
			t.Error("it may not have been written, but counts as reverted")
		}
	})
}
