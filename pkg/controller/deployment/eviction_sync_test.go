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
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// These tests run upstream's sync and check that the patched places call our code.

// sync syncs the Deployment web as a worker does.
func (f *surgeFixture) sync() error {
	f.t.Helper()
	synctest.Wait() // Wait for the caches.
	err := f.dc.syncDeployment(f.ctx, "default/web")
	synctest.Wait()
	return err
}

// mustSync syncs until it succeeds. Upstream's sync conflicts with its own write if a ReplicaSet
// lacks annotations.
func (f *surgeFixture) mustSync() {
	f.t.Helper()
	err := f.sync()
	for range 3 {
		if apierrors.IsConflict(err) {
			err = f.sync()
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// size returns the number of replicas and the recorded surge of a ReplicaSet.
func (f *surgeFixture) size(name string) string {
	rs := f.stored(name)
	return fmt.Sprint(*rs.Spec.Replicas, " ", rs.Annotations[deploymentutil.EvictionSurgeAnnotation])
}

func (f *surgeFixture) expectSize(name, want string) {
	f.t.Helper()
	if got := f.size(name); got != want {
		f.t.Errorf("ReplicaSet %s has %s, want %s", name, got, want)
	}
}

const surge1of2 = `{"surge":1,"of":2,"desired":1,"since":"2000-01-01T00:00:00Z"}`

// inMidSurge is a Deployment whose only pod waits for its replacement.
func inMidSurge(changes ...func(*apps.Deployment)) []runtime.Object {
	return []runtime.Object{web(changes...), web1(sized(2, 1, 2), annotated(surge1of2)), webPod("a"), webPod("b", starting), asks("a")}
}

func paused(d *apps.Deployment) { d.Spec.Paused = true }

func rolledOut(d *apps.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:2" }

func TestSyncSurges(t *testing.T) {
	for name, pause := range map[string]func(*apps.Deployment){"": func(*apps.Deployment) {}, "paused": paused} {
		t.Run(name, func(t *testing.T) {
			withSurger(t, []runtime.Object{web(pause), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
				f.mustSync()
				f.expectSize("web-1", "2 "+surge1of2)
				f.mustSync()
				d, err := f.client.AppsV1().Deployments(metav1.NamespaceDefault).Get(f.ctx, "web", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if condition := deploymentutil.GetDeploymentCondition(d.Status, DeploymentEvictionInProgress); condition == nil || condition.Message != "Surging 0/1: pods are removed when their replacements are available." {
					t.Errorf("the condition is %v", condition)
				}
				if d.Status.Replicas != 1 {
					t.Errorf("%d replicas are in the status, want 1", d.Status.Replicas)
				}
				f.remove(asks("a"))
				f.mustSync()
				f.expectSize("web-1", `1 {"surge":0,"of":1,"desired":1,"since":"2000-01-01T00:00:00Z","ending":true}`)
			})
		})
	}
}

// The sync must not continue with a ReplicaSet that another client has just written.
func TestSyncBeginsAgainAfterConflict(t *testing.T) {
	withSurger(t, []runtime.Object{web(rolledOut), web1(sized(2, 1, 2), annotated(surge1of2)), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		f.refuseWrites(apierrors.NewConflict(apps.Resource("replicasets"), "web-1", fmt.Errorf("it has changed")))
		if err := f.sync(); !apierrors.IsConflict(err) {
			t.Errorf("the error is %v, want the conflict", err)
		}
		if sets, _ := f.client.AppsV1().ReplicaSets(metav1.NamespaceDefault).List(f.ctx, metav1.ListOptions{}); len(sets.Items) != 1 {
			t.Errorf("the rollout has started: %v", sets.Items)
		}
	})
}

// Upstream's writes of a ReplicaSet keep the surge.
func TestSyncWritesTemplateInMidSurge(t *testing.T) {
	withSurger(t, inMidSurge(func(d *apps.Deployment) { d.Spec.MinReadySeconds = 7 }), func(t *testing.T, f *surgeFixture) {
		f.mustSync()
		if got := f.stored("web-1").Spec.MinReadySeconds; got != 7 {
			t.Errorf("minReadySeconds is %d, want 7: the test is void", got)
		}
		f.expectSize("web-1", "2 "+surge1of2)
	})
}

// ofWeb2 is the ReplicaSet of the template set by rolledOut.
func ofWeb2(rs *apps.ReplicaSet) {
	rs.Name, rs.UID = "web-2", "web-2-uid"
	rs.Spec.Template.Spec.Containers[0].Image = "web:2"
}

// A rollout has created or scaled a ReplicaSet and was reverted before the cache has seen that. A
// surge would exceed maxSurge.
func TestSurgeWaitsForRolloutInItsCache(t *testing.T) {
	tests := map[string][]runtime.Object{
		"a ReplicaSet was created": nil,
		"a ReplicaSet was scaled":  {web1(sized(0, 1, 2), ofWeb2)},
	}
	for name, others := range tests {
		t.Run(name, func(t *testing.T) {
			revision := func(rs *apps.ReplicaSet) { rs.Annotations[deploymentutil.RevisionAnnotation] = "1" }
			objects := append([]runtime.Object{web(rolledOut), web1(revision), webPod("a"), asks("a")}, others...)
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				f.mustSync()
				sets, err := f.client.AppsV1().ReplicaSets(metav1.NamespaceDefault).List(f.ctx, metav1.ListOptions{})
				if err != nil || len(sets.Items) != 2 || *sets.Items[0].Spec.Replicas != 1 || *sets.Items[1].Spec.Replicas != 1 {
					t.Fatalf("the rollout has not started: %v, %v", sets.Items, err)
				}
				f.put(web())
				cached := f.caches.Apps().V1().ReplicaSets().Informer().GetIndexer()
				old := []any{f.stored("web-1")}
				for _, other := range others {
					old = append(old, other)
				}
				if err := cached.Replace(old, "10"); err != nil {
					t.Fatal(err)
				}
				f.mustSync()
				if got := f.stored("web-1"); got.Annotations[deploymentutil.EvictionSurgeAnnotation] != "" {
					t.Errorf("a surge on an old cache: %v", got)
				}
				if !f.looksAgainAfter(time.Second) {
					t.Error("the Deployment is not requeued")
				}
				if err := cached.Replace([]any{f.stored("web-1")}, "1000"); err != nil {
					t.Fatal(err)
				}
				f.mustSync()
				f.expectSize("web-1", "2 "+strings.Replace(surge1of2, "00:00:00Z", "00:00:01Z", 1))
			})
		})
	}
}

// As above, but the response of the write was lost, so that its version is unknown.
func TestSurgeWaitsForRolloutWithoutAnswer(t *testing.T) {
	revision := func(rs *apps.ReplicaSet) { rs.Annotations[deploymentutil.RevisionAnnotation] = "1" }
	timeout := apierrors.NewTimeoutError("slow", 1)
	tests := map[string]struct {
		others []runtime.Object
		answer error
		// seen is what the cache shows eventually, after this time.
		seen  []any
		after time.Duration
		// waits is whether the surge waits for that.
		waits bool
	}{
		"a ReplicaSet was created":   {answer: timeout, seen: []any{web1(sized(0, 1, 2), ofWeb2)}, waits: true},
		"a ReplicaSet was scaled":    {others: []runtime.Object{web1(sized(0, 1, 2), ofWeb2)}, answer: timeout, seen: []any{web1(sized(0, 1, 2), ofWeb2, newer)}, waits: true},
		"a ReplicaSet was deleted":   {others: []runtime.Object{web1(sized(0, 1, 2), ofWeb2)}, answer: timeout, waits: true},
		"a webhook has failed":       {answer: apierrors.NewInternalError(io.ErrUnexpectedEOF), seen: []any{web1(sized(0, 1, 2), ofWeb2)}, waits: true},
		"the connection was lost":    {answer: io.ErrUnexpectedEOF, seen: []any{web1(sized(0, 1, 2), ofWeb2)}, waits: true},
		"it was not written, scaled": {others: []runtime.Object{web1(sized(0, 1, 2), ofWeb2)}, answer: timeout, seen: []any{web1(sized(0, 1, 2), ofWeb2)}, after: uncertainWriteTimeout, waits: true},
		"it was not written":         {answer: timeout, after: uncertainWriteTimeout, waits: true},
		"it was rejected":            {answer: apierrors.NewForbidden(apps.Resource("replicasets"), "web-2", fmt.Errorf("quota"))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects := append([]runtime.Object{web(rolledOut), web1(revision), webPod("a"), asks("a")}, tc.others...)
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				lost := true
				f.client.PrependReactor("create", "replicasets", func(action core.Action) (bool, runtime.Object, error) {
					if len(tc.seen) > 0 {
						tc.seen[0].(*apps.ReplicaSet).Name = action.(core.CreateAction).GetObject().(*apps.ReplicaSet).Name
					}
					return lost, nil, tc.answer
				})
				f.client.PrependReactor("update", "replicasets", func(core.Action) (bool, runtime.Object, error) { return lost, nil, tc.answer })
				if err := f.sync(); !errors.Is(err, tc.answer) {
					t.Fatalf("got %v, want %v", err, tc.answer)
				}
				lost = false
				f.put(web())
				f.mustSync()
				if surges := f.stored("web-1").Annotations[deploymentutil.EvictionSurgeAnnotation] != ""; surges == tc.waits {
					t.Fatalf("there is a surge: %t, want it to wait: %t", surges, tc.waits)
				}
				if !tc.waits {
					return
				}
				time.Sleep(tc.after)
				if tc.after == 0 && !f.looksAgainAfter(failureRetryAfter+time.Second) {
					t.Error("the Deployment is not requeued")
				}
				if err := f.caches.Apps().V1().ReplicaSets().Informer().GetIndexer().Replace(append(tc.seen, f.stored("web-1")), "1000"); err != nil {
					t.Fatal(err)
				}
				f.mustSync()
				if f.stored("web-1").Annotations[deploymentutil.EvictionSurgeAnnotation] == "" {
					t.Error("there is no surge")
				}
			})
		})
	}
}

// As above, and the cache shows an earlier write: it is behind, so that the outcome of the last
// write is still unknown.
func TestWriteStaysUncertainWhileTheCacheIsBehind(t *testing.T) {
	revision := func(rs *apps.ReplicaSet) { rs.Annotations[deploymentutil.RevisionAnnotation] = "1" }
	at := func(version string) *apps.ReplicaSet {
		return web1(sized(0, 1, 2), ofWeb2, func(rs *apps.ReplicaSet) { rs.ResourceVersion = version })
	}
	withSurger(t, []runtime.Object{web(), web1(revision), at("11"), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		f.dc.surger.noteRollout(at("11"), at("12"), nil)
		f.dc.surger.noteRollout(at("12"), nil, apierrors.NewTimeoutError("slow", 1))
		for version, want := range []bool{11: false, 12: false, 13: true} {
			if version < 11 {
				continue
			}
			name := strconv.Itoa(version)
			if err := f.caches.Apps().V1().ReplicaSets().Informer().GetIndexer().Replace([]any{f.stored("web-1"), at(name)}, name); err != nil {
				t.Fatal(err)
			}
			f.mustSync()
			if surges := f.stored("web-1").Annotations[deploymentutil.EvictionSurgeAnnotation] != ""; surges != want {
				t.Errorf("the cache is at %d: there is a surge: %t, want %t", version, surges, want)
			}
		}
	})
}

// Uncertain writes are removed with their Deployment.
func TestUncertainWritesGoWithTheDeployment(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		f.dc.surger.noteRollout(web1(), nil, apierrors.NewTimeoutError("slow", 1))
		if !f.dc.surger.hasUncertainWrite(web(), time.Now()) {
			t.Fatal("there is no uncertain write")
		}
		f.remove(web())
		synctest.Wait()
		if err := f.sync(); err != nil {
			t.Fatal(err)
		}
		if uncertainWrites := len(f.dc.surger.uncertainWrites); uncertainWrites > 0 {
			t.Errorf("uncertain writes of %d Deployments are left", uncertainWrites)
		}
	})
}

// newer is a ReplicaSet that was written in the meantime.
func newer(rs *apps.ReplicaSet) { rs.ResourceVersion = "999" }

// Writing the surge fails once, and upstream scales right after that.
func TestSyncScalesAfterFailedSurge(t *testing.T) {
	rs := web1(sized(4, 3, 4), annotated(`{"surge":1,"of":4,"desired":3,"since":"2000-01-01T00:00:00Z"}`), func(rs *apps.ReplicaSet) {
		rs.Annotations[deploymentutil.RevisionAnnotation] = "1" // Avoids other writes.
	})
	objects := []runtime.Object{web(withReplicas(2, 1)), rs, webPod("a"), webPod("b"), webPod("c"), webPod("d", starting), asks("a")}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		f.failOnce(apierrors.NewTimeoutError("slow", 1))
		if err := f.sync(); err != nil {
			t.Fatal(err)
		}
		const scaled = `3 {"surge":1,"of":3,"desired":2,"since":"2000-01-01T00:00:00Z"}`
		f.expectSize("web-1", scaled)
		f.put(webPod("c", terminating))
		f.mustSync()
		f.expectSize("web-1", scaled)
	})
}

// failOnce rejects one write of a ReplicaSet.
func (f *surgeFixture) failOnce(err error) {
	failed := false
	f.client.PrependReactor("update", "replicasets", func(core.Action) (bool, runtime.Object, error) {
		fails := !failed
		failed = true
		return fails, nil, err
	})
}

// A write succeeds, but its response is lost.
func TestAnswerIsLost(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		lost := false
		f.client.PrependReactor("update", "replicasets", func(action core.Action) (bool, runtime.Object, error) {
			if lost {
				return false, nil, nil
			}
			lost = true
			_, _, _ = f.write(action)
			return true, nil, apierrors.NewTimeoutError("slow", 1)
		})
		_ = f.sync()
		for range 3 {
			f.mustSync()
			f.expectSize("web-1", "2 "+surge1of2)
		}
	})
}

// An extra pod cannot be deleted. That affects neither a rollout nor the status.
func TestRolloutBesideStuckPod(t *testing.T) {
	stuck := web1(annotated(`{"surge":0,"of":1,"desired":1,"since":"1999-12-31T23:00:00Z","ending":true}`), func(rs *apps.ReplicaSet) {
		rs.Status = apps.ReplicaSetStatus{Replicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
	})
	withSurger(t, []runtime.Object{web(rolledOut, func(d *apps.Deployment) { d.Generation = 5 }), stuck, webPod("a"), webPod("b")}, func(t *testing.T, f *surgeFixture) {
		for range 3 {
			f.mustSync()
		}
		sets, err := f.client.AppsV1().ReplicaSets(metav1.NamespaceDefault).List(f.ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(sets.Items) != 2 {
			t.Fatalf("the rollout has not started: %v", sets.Items)
		}
		d, err := f.client.AppsV1().Deployments(metav1.NamespaceDefault).Get(f.ctx, "web", metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration != 5 {
			t.Errorf("generation %d is observed (%v), want 5", d.Status.ObservedGeneration, err)
		}
	})
}

// After a restart during a surge, a rollout starts before the requests are known. Extra replicas
// count within maxSurge.
func TestRolloutAfterRestart(t *testing.T) {
	withSurger(t, inMidSurge(rolledOut), func(t *testing.T, f *surgeFixture) {
		f.dc.surger.requestsSynced = func() bool { return false }
		for range 5 {
			f.mustSync()
			sum := int32(0)
			sets, err := f.client.AppsV1().ReplicaSets(metav1.NamespaceDefault).List(f.ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, rs := range sets.Items {
				sum += *rs.Spec.Replicas
			}
			if sum > 2 {
				t.Fatalf("%d replicas, at most 2 are allowed", sum)
			}
		}
	})
}

// While requests are not known, a surge can only shrink.
func TestIncompleteCaches(t *testing.T) {
	tests := map[string]struct {
		deployment func(*apps.Deployment)
		replicaSet []func(*apps.ReplicaSet)
		want       string
	}{
		"it stays":          {func(*apps.Deployment) {}, []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(surge1of2)}, "2 " + surge1of2},
		"there is none":     {func(*apps.Deployment) {}, []func(*apps.ReplicaSet){sized(1, 1, 2)}, "1 "},
		"no room":           {withReplicas(1, 0), []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(surge1of2)}, `1 {"surge":0,"of":1,"desired":1,"since":"2000-01-01T00:00:00Z","ending":true}`},
		"scaled to nothing": {withReplicas(0, 1), []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(surge1of2)}, "0 "},
		"scaled down": {withReplicas(1, 2), []func(*apps.ReplicaSet){sized(5, 3, 5), annotated(`{"surge":2,"of":5,"desired":3,"since":"2000-01-01T00:00:00Z"}`)},
			`2 {"surge":1,"of":2,"desired":1,"since":"2000-01-01T00:00:00Z","ending":true}`},
		"leaving pods are still listed": {func(*apps.Deployment) {}, []func(*apps.ReplicaSet){annotated(`{"surge":0,"of":1,"desired":1,"since":"2000-01-01T00:00:00Z","ending":true,"leaving":["a-uid"]}`)},
			`1 {"surge":0,"of":1,"desired":1,"since":"2000-01-01T00:00:00Z","ending":true,"leaving":["a-uid"]}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			withSurger(t, []runtime.Object{web(tc.deployment), web1(tc.replicaSet...), webPod("a"), webPod("b", starting), asks("a")}, func(t *testing.T, f *surgeFixture) {
				f.dc.surger.requestsSynced = func() bool { return false }
				for range 2 {
					f.mustSync()
					f.expectSize("web-1", tc.want)
				}
			})
		})
	}
}

// Nothing is reported while the requests are not known, even after the deadlines.
func TestNoReportsWithIncompleteCaches(t *testing.T) {
	withSurger(t, inMidSurge(), func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		f.dc.surger.requestsSynced = func() bool { return false }
		f.dc.surger.started = time.Now().Add(time.Hour) // Outlasts the test.
		f.dc.surger.starting.Do(func() {})
		for range 2 {
			f.mustSync()
			time.Sleep(20 * time.Second)
			if entry := f.entry("a-uid"); entry.CompletionTime != nil || entry.Message != "" {
				t.Errorf("the entry is %v", entry)
			}
			time.Sleep(5 * time.Minute)
		}
	})
}

// A client that may annotate a ReplicaSet must not be able to delete its pods.
func TestForgedOutage(t *testing.T) {
	desired := func(value string) func(*apps.ReplicaSet) {
		return func(rs *apps.ReplicaSet) { rs.Annotations[deploymentutil.DesiredReplicasAnnotation] = value }
	}
	for name, forged := range map[string][]func(*apps.ReplicaSet){
		"nothing is desired":      {desired("0"), annotated(`{"surge":10,"of":10,"desired":0}`)},
		"one is desired":          {desired("1"), annotated(`{"surge":9,"of":10,"desired":1}`)},
		"desired is unknown":      {func(rs *apps.ReplicaSet) { delete(rs.Annotations, deploymentutil.DesiredReplicasAnnotation) }, annotated(`{"surge":10,"of":10,"desired":-1}`)},
		"all are leaving":         {annotated(`{"surge":0,"of":10,"desired":10,"leaving":["a-uid","b-uid"]}`)},
		"field of an old version": {annotated(`{"surge":0,"of":10,"desired":10,"going":2147483647}`)},
		"more than there are":     {annotated(`{"surge":2147483647,"of":10,"desired":10}`)},
	} {
		for _, paused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, paused %v", name, paused), func(t *testing.T) {
				rs := web1(append([]func(*apps.ReplicaSet){sized(10, 10, 13)}, forged...)...)
				d := web(withReplicas(10, 3), func(d *apps.Deployment) { d.Spec.Paused = paused })
				withSurger(t, []runtime.Object{d, rs, webPod("a"), webPod("b"), asks("a")}, func(t *testing.T, f *surgeFixture) {
					for range 3 {
						f.mustSync()
						if got := *f.stored("web-1").Spec.Replicas; got < 10 || got > 13 {
							t.Fatalf("%d replicas, want 10 to 13", got)
						}
					}
				})
			})
		}
	}
}

// A time in the future neither starts a surge nor postpones its deadline.
func TestTimesInTheFuture(t *testing.T) {
	future := ptr.To(metav1.NewTime(bubbleBegins.Add(1000 * time.Hour)))
	startsLater := asks("a")
	startsLater.Status.Interceptors[0].StartTime = future
	tests := map[string][]runtime.Object{
		"of the surge": {web(), web1(sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,"since":"2999-01-01T00:00:00Z"}`)), webPod("a"), webPod("b", starting), asks("a")},
		"of the turn":  {web(), web1(sized(2, 1, 2), annotated(surge1of2)), webPod("a"), webPod("b", starting), startsLater},
		"of the rollout": {web(rolledOut, func(d *apps.Deployment) {
			d.Status.Conditions = []apps.DeploymentCondition{{Type: apps.DeploymentProgressing, Status: v1.ConditionTrue, LastUpdateTime: *future}}
		}), web1(), webPod("a"), asks("a")},
	}
	for name, objects := range tests {
		t.Run(name, func(t *testing.T) {
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				for _, want := range []bool{false, true} {
					if _, err := f.surge(); err != nil {
						t.Fatal(err)
					}
					time.Sleep(20 * time.Second) // Reports are rate-limited.
					if complete := f.entry("a-uid").CompletionTime != nil; complete != want {
						t.Fatalf("after %v the turn is over: %v, want %v", time.Since(bubbleBegins), complete, want)
					}
					time.Sleep(5 * time.Minute)
				}
			})
		})
	}
}

// Moving several pods one after another takes longer than the deadline of each.
func TestLongSurge(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	objects := []runtime.Object{web(withReplicas(4, 1)), web1(sized(4, 4, 5))}
	for _, name := range names {
		objects = append(objects, webPod(name), asks(name))
	}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		look := func() {
			t.Helper()
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
		}
		for i, name := range names {
			look()
			replacement := webPod(fmt.Sprint("new-", name), starting, func(p *v1.Pod) { p.CreationTimestamp = metav1.Now() })
			f.put(replacement)
			for range 4 {
				time.Sleep(time.Minute)
				look()
			}
			f.put(webPod(replacement.Name))
			look()
			if diff := cmp.Diff([]string{name + "-uid"}, f.leaving()); diff != "" {
				t.Fatalf("after %v, leaving (-want, +got):\n%s", time.Since(bubbleBegins), diff)
			}
			f.remove(webPod(name))
			f.remove(asks(name))
			for _, waiting := range names[i+1:] {
				if entry := f.entry(waiting + "-uid"); entry.CompletionTime != nil {
					t.Fatalf("after %v, pod %s is given up: %v", time.Since(bubbleBegins), waiting, entry)
				}
			}
		}
	})
}

// A restart does not end waiting turns at once, however long no process was running, and does not
// reset the deadline: three of five minutes had passed.
func TestSurgeAfterAnOutage(t *testing.T) {
	began, heartbeat := metav1.NewTime(bubbleBegins.Add(-time.Hour)), metav1.NewTime(bubbleBegins.Add(-58*time.Minute))
	request := asks("a", func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.ActivationTime = &began
		request.Status.Interceptors[0].StartTime, request.Status.Interceptors[0].HeartbeatTime = &began, &heartbeat
	})
	rs := web1(sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,"since":"1999-12-31T23:00:00Z"}`))
	withSurger(t, []runtime.Object{web(), rs, webPod("a"), webPod("b", starting), request}, func(t *testing.T, f *surgeFixture) {
		look := func() {
			t.Helper()
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second) // Reports are rate-limited.
		}
		look() // Before the library has started the turn.
		defer f.intercept()()
		look()
		time.Sleep(80 * time.Second)
		look()
		if entry := f.entry("a-uid"); entry.CompletionTime != nil {
			t.Errorf("given up after %v: %v", time.Since(bubbleBegins), entry)
		}
		time.Sleep(30 * time.Second)
		look()
		if entry := f.entry("a-uid"); entry.CompletionTime == nil || !strings.HasPrefix(entry.Message, "Gave up after 5m0s without progress.") {
			t.Errorf("after %v the entry is %v, want it given up", time.Since(bubbleBegins), entry)
		}
	})
}

// The deadline is suspended while no process is running, even several times.
func TestSurgeAfterOutages(t *testing.T) {
	rs := web1(sized(2, 1, 2), annotated(surge1of2))
	withSurger(t, []runtime.Object{web(), rs, webPod("a"), webPod("b", starting), asks("a")}, func(t *testing.T, f *surgeFixture) {
		// runs runs a process for life, or until the surge is given up.
		runs := func(life time.Duration) (givenUp bool) {
			t.Helper()
			defer f.restart()
			defer f.intercept()()
			for began := time.Now(); time.Since(began) < life; time.Sleep(10 * time.Second) {
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				if entry := f.entry("a-uid"); entry.CompletionTime != nil {
					return strings.HasPrefix(entry.Message, "Gave up after 5m0s without progress.")
				}
			}
			return false
		}
		for range 2 {
			if runs(2 * time.Minute) {
				t.Fatalf("given up after %v", time.Since(bubbleBegins))
			}
			time.Sleep(30 * time.Minute)
		}
		if runs(50 * time.Second) {
			t.Errorf("given up after less than five minutes of work: %v", time.Since(bubbleBegins))
		}
		if !runs(3 * time.Minute) {
			t.Errorf("not given up: %v", f.entry("a-uid"))
		}
	})
}

// Processes that end early must not make a surge wait forever.
func TestSurgeOfShortProcesses(t *testing.T) {
	rs := web1(sized(2, 1, 2), annotated(surge1of2))
	withSurger(t, []runtime.Object{web(), rs, webPod("a"), webPod("b", starting), asks("a")}, func(t *testing.T, f *surgeFixture) {
		for range 7 {
			stop := f.intercept()
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
			stop()
			f.restart()
			if f.entry("a-uid").CompletionTime != nil {
				return
			}
			time.Sleep(5 * time.Minute)
		}
		t.Errorf("not given up after %v: %v", time.Since(bubbleBegins), f.entry("a-uid"))
	})
}

// leaving returns the pods that are listed on the ReplicaSet.
func (f *surgeFixture) leaving() []string {
	surge, err := deploymentutil.EvictionSurgeOf(f.stored("web-1"), 0)
	if err != nil {
		f.t.Error(err)
	}
	var names []string
	for _, uid := range surge.Leaving {
		names = append(names, string(uid))
	}
	return names
}

// No turn is taken before all caches that determine the owner of a pod have synced. A pod whose
// ReplicaSet is missing would appear to have no Deployment.
func TestTurnsWaitForCaches(t *testing.T) {
	for name, late := range map[string]struct {
		object runtime.Object
		synced func(*DeploymentController) *cache.InformerSynced
	}{
		"Deployments": {web(), func(dc *DeploymentController) *cache.InformerSynced { return &dc.dListerSynced }},
		"ReplicaSets": {web1(), func(dc *DeploymentController) *cache.InformerSynced { return &dc.rsListerSynced }},
		"pods":        {webPod("a"), func(dc *DeploymentController) *cache.InformerSynced { return &dc.podListerSynced }},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{asks("a")}
			for _, object := range []runtime.Object{web(), web1(), webPod("a")} {
				if fmt.Sprintf("%T", object) != fmt.Sprintf("%T", late.object) {
					objects = append(objects, object)
				}
			}
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				var synced atomic.Bool
				*late.synced(f.dc) = synced.Load
				defer f.intercept()()
				time.Sleep(time.Minute)
				if entry := f.entry("a-uid"); entry.StartTime != nil || entry.CompletionTime != nil {
					t.Errorf("the turn was taken: %v", entry)
				}
				f.forgetWoken()
				f.put(late.object)
				synced.Store(true)
				time.Sleep(time.Second)
				f.expectWoken(true)
				if entry := f.entry("a-uid"); entry.StartTime == nil || entry.CompletionTime != nil {
					t.Errorf("the turn is not open: %v", entry)
				}
			})
		})
	}
}
