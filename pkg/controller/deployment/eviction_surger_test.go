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
	"math"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"k8s.io/kubernetes/pkg/controller/deployment/metrics"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
)

// wantWrite is what is expected to become of a ReplicaSet; the rest of it stays as it is.
type wantWrite struct {
	replicas     int32
	desired, max string
	// surge is the annotation, if there is to be one.
	surge string
}

func (w *wantWrite) of(rs *apps.ReplicaSet, version string) []*apps.ReplicaSet {
	if w == nil {
		return nil
	}
	want := rs.DeepCopy()
	want.ResourceVersion, want.Status = version, apps.ReplicaSetStatus{}
	want.Spec.Replicas = ptr.To(w.replicas)
	want.Annotations = map[string]string{deploymentutil.DesiredReplicasAnnotation: w.desired, deploymentutil.MaxReplicasAnnotation: w.max}
	if w.surge != "" {
		want.Annotations[deploymentutil.EvictionSurgeAnnotation] = w.surge
	}
	return []*apps.ReplicaSet{want}
}

func TestSurgeForEvictions(t *testing.T) {
	const since = `"since":"1999-12-31T23:00:00Z"`
	web2 := func(rs *apps.ReplicaSet) {
		rs.Name, rs.UID, rs.Spec.Template.Spec.Containers[0].Image = "web-2", "web-2-uid", "web:2"
	}
	tests := map[string]struct {
		deployment func(*apps.Deployment)
		replicaSet []func(*apps.ReplicaSet)
		others     []runtime.Object
		want       *wantWrite
		wantView   int32
		wantEvents []string
		wantSurges int
	}{
		"nobody is asked": {
			others:   []runtime.Object{webPod("a")},
			wantView: 1,
		},
		"begin": {
			others:     []runtime.Object{webPod("a"), asks("a")},
			want:       &wantWrite{2, "1", "2", `{"surge":1,"of":2,"desired":1,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 1 to 2, for the replacement of 1 pod"},
			wantSurges: 1,
		},
		"begin with two": {
			deployment: withReplicas(3, 2), replicaSet: []func(*apps.ReplicaSet){sized(3, 3, 5)},
			others:     []runtime.Object{webPod("a"), webPod("b"), webPod("c"), asks("a"), asks("b")},
			want:       &wantWrite{5, "3", "5", `{"surge":2,"of":5,"desired":3,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   3,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 3 to 5, for the replacement of 2 pods"},
			wantSurges: 2,
		},
		"begin with two of three": {
			deployment: withReplicas(3, 2), replicaSet: []func(*apps.ReplicaSet){sized(3, 3, 5)},
			others:     []runtime.Object{webPod("a"), webPod("b"), webPod("c"), asks("a"), asks("b"), asks("c")},
			want:       &wantWrite{5, "3", "5", `{"surge":2,"of":5,"desired":3,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   3,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 3 to 5, for the replacement of 3 pods"},
			wantSurges: 2,
		},
		"one more": {
			deployment: withReplicas(3, 2), replicaSet: []func(*apps.ReplicaSet){sized(4, 3, 5), annotated(`{"surge":1,"of":4,"desired":3,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b"), webPod("c"), webPod("d", starting), asks("a"), asks("b")},
			want:       &wantWrite{5, "3", "5", `{"surge":2,"of":5,"desired":3,` + since + `}`},
			wantView:   3,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 4 to 5, for the replacement of 2 pods"},
			wantSurges: 1,
		},
		"as it should be": {
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b", starting), asks("a")},
			wantView:   1,
		},
		"the replacement is available": {
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b"), asks("a")},
			want:       &wantWrite{1, "1", "2", `{"surge":0,"of":1,"desired":1,` + since + `,"ending":true,"leaving":["a-uid"]}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled down replica set web-1 from 2 to 1: replacements are available, so that 1 pod can leave"},
		},
		"the pod leaves, the status does not know yet": {
			replicaSet: []func(*apps.ReplicaSet){sized(1, 1, 2), annotated(`{"surge":0,"of":1,"desired":1,` + since + `,"ending":true,"leaving":["a-uid"]}`), counting(2)},
			others:     []runtime.Object{webPod("a", terminating), webPod("b"), asks("a")},
			wantView:   1,
		},
		"the status knows": {
			replicaSet: []func(*apps.ReplicaSet){sized(1, 1, 2), annotated(`{"surge":0,"of":1,"desired":1,` + since + `,"ending":true,"leaving":["a-uid"]}`)},
			others:     []runtime.Object{webPod("a", terminating), webPod("b"), asks("a")},
			want:       &wantWrite{1, "1", "2", ""},
			wantView:   1,
		},
		"the status is from before": {
			replicaSet: []func(*apps.ReplicaSet){sized(1, 1, 2), annotated(`{"surge":0,"of":1,"desired":1,` + since + `,"ending":true,"leaving":["a-uid"]}`), func(rs *apps.ReplicaSet) {
				rs.Generation, rs.Status.ObservedGeneration = 3, 2
			}},
			others:   []runtime.Object{webPod("a", terminating), webPod("b"), asks("a")},
			wantView: 1,
		},
		"called off": {
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b", starting), asks("a", holding("Canceled"))},
			want:       &wantWrite{1, "1", "2", `{"surge":0,"of":1,"desired":1,` + since + `,"ending":true}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled down replica set web-1 from 2 to 1: no replacements are needed any more"},
		},
		"not the Deployment's turn": {
			others:   []runtime.Object{webPod("a"), asks("a", notYet)},
			wantView: 1,
		},
		"passed on, and the replacement starts": {
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b", starting), asks("a", passed)},
			wantView:   1,
		},
		"passed on, and the replacement is available": {
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b"), asks("a", passed)},
			want:       &wantWrite{1, "1", "2", `{"surge":0,"of":1,"desired":1,` + since + `,"ending":true,"leaving":["a-uid"]}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled down replica set web-1 from 2 to 1: replacements are available, so that 1 pod can leave"},
		},
		"passed on to an interceptor of the pod": {
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b"), asks("a", passedTo("saver.example.com"))},
			wantView:   1,
		},
		"the request is for another pod of the same name": {
			others:   []runtime.Object{webPod("a", func(p *v1.Pod) { p.UID = "new-a-uid" }), asks("a")},
			wantView: 1,
		},

		// Annotations that mean nothing are removed, and scale nothing.
		"somebody else has scaled": {
			replicaSet: []func(*apps.ReplicaSet){annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a")},
			want:       &wantWrite{1, "1", "2", ""},
			wantView:   1,
		},
		"not an annotation of ours": {
			replicaSet: []func(*apps.ReplicaSet){annotated(`17`)},
			others:     []runtime.Object{webPod("a")},
			want:       &wantWrite{1, "1", "2", ""},
			wantView:   1,
		},
		"not an annotation of ours, and a pod is asked": {
			replicaSet: []func(*apps.ReplicaSet){annotated(`17`)},
			others:     []runtime.Object{webPod("a"), asks("a")},
			want:       &wantWrite{2, "1", "2", `{"surge":1,"of":2,"desired":1,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 1 to 2, for the replacement of 1 pod"},
			wantSurges: 1,
		},

		// The Deployment wants another number.
		"scaled, nobody is asked": {
			deployment: withReplicas(3, 1),
			others:     []runtime.Object{webPod("a")},
			wantView:   1,
		},
		"scaled up and begin": {
			deployment: withReplicas(3, 1),
			others:     []runtime.Object{webPod("a"), asks("a")},
			want:       &wantWrite{4, "3", "4", `{"surge":1,"of":4,"desired":3,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   3,
			wantEvents: []string{"Normal ScalingReplicaSet Scaled replica set web-1 from 1 to 4, 1 of them for pods that should leave their nodes"},
			wantSurges: 1,
		},
		"scaled up in a surge": {
			deployment: withReplicas(3, 1),
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b", starting), asks("a")},
			want:       &wantWrite{4, "3", "4", `{"surge":1,"of":4,"desired":3,` + since + `}`},
			wantView:   3,
			wantEvents: []string{"Normal ScalingReplicaSet Scaled replica set web-1 from 2 to 4, 1 of them for pods that should leave their nodes"},
			wantSurges: 1,
		},
		"scaled to nothing": {
			deployment: withReplicas(0, 1),
			others:     []runtime.Object{webPod("a"), asks("a")},
			want:       &wantWrite{0, "0", "1", ""},
			wantView:   0,
			wantEvents: []string{"Normal ScalingReplicaSet Scaled replica set web-1 from 1 to 0"},
		},
		"the right size by accident": {
			replicaSet: []func(*apps.ReplicaSet){sized(1, 7, 8)},
			others:     []runtime.Object{webPod("a"), asks("a")},
			want:       &wantWrite{2, "1", "2", `{"surge":1,"of":2,"desired":1,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 1 to 2, for the replacement of 1 pod"},
			wantSurges: 1,
		},

		// No surge.
		"no room": {
			deployment: withReplicas(1, 0),
			others:     []runtime.Object{webPod("a"), asks("a")},
			wantView:   1,
		},
		"no room any more": {
			deployment: withReplicas(1, 0),
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b", starting), asks("a")},
			want:       &wantWrite{1, "1", "1", `{"surge":0,"of":1,"desired":1,` + since + `,"ending":true}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled down replica set web-1 from 2 to 1: no replacements are needed any more"},
		},
		"being deleted": {
			deployment: func(d *apps.Deployment) {
				d.DeletionTimestamp, d.Finalizers = ptr.To(metav1.NewTime(bubbleBegins)), []string{"orphan"}
			},
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b", starting), asks("a")},
			want:       &wantWrite{1, "1", "2", ""},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled down replica set web-1 from 2 to 1: no replacements are needed any more"},
		},
		"a rollout takes over what is extra": {
			deployment: func(d *apps.Deployment) {
				withReplicas(3, 2)(d)
				d.Spec.Template.Spec.Containers[0].Image = "web:2"
			},
			replicaSet: []func(*apps.ReplicaSet){sized(4, 3, 5), annotated(`{"surge":1,"of":4,"desired":3,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b"), webPod("c"), webPod("d", starting), asks("a"), asks("b")},
			want:       &wantWrite{4, "3", "5", ""},
			wantView:   4,
		},
		"a rollout of a Deployment that was scaled does not scale here": {
			deployment: func(d *apps.Deployment) {
				withReplicas(5, 2)(d)
				d.Spec.Template.Spec.Containers[0].Image = "web:2"
			},
			replicaSet: []func(*apps.ReplicaSet){sized(4, 3, 5), annotated(`{"surge":1,"of":4,"desired":3,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b"), webPod("c"), webPod("d", starting), asks("a"), web1(web2, sized(0, 3, 5))},
			want:       &wantWrite{4, "3", "5", ""},
			wantView:   4,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d, rs := web(), web1(tc.replicaSet...)
			if tc.deployment != nil {
				tc.deployment(d)
			}
			withSurger(t, append(tc.others, d, rs), func(t *testing.T, f *surgeFixture) {
				surges := surgesStarted(t)
				views, err := f.surge()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want.of(rs, "101"), f.writes()); diff != "" {
					t.Errorf("unexpected writes (-want, +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.wantEvents, f.recorded()); diff != "" {
					t.Errorf("unexpected events (-want, +got):\n%s", diff)
				}
				// What the sync goes on with is what is stored, through the lens.
				view, _, _ := deploymentutil.WithoutEvictionSurge(f.stored("web-1"), math.MaxInt)
				if diff := cmp.Diff(view, views[0]); diff != "" {
					t.Errorf("unexpected view (-want, +got):\n%s", diff)
				}
				if got := *views[0].Spec.Replicas; got != tc.wantView {
					t.Errorf("the sync goes on with %d replicas, want %d", got, tc.wantView)
				}
				if got := surgesStarted(t) - surges; got != tc.wantSurges {
					t.Errorf("%d surges are counted, want %d", got, tc.wantSurges)
				}
				// The same again, when the caches have seen it.
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				if again := f.writes(); len(again) > 0 {
					t.Errorf("looking again writes %v", again)
				}
			})
		})
	}
}

// TestScaledToWhatTheSurgeHadGivenIt has the extra replica become one that is wanted.
func TestScaledToWhatTheSurgeHadGivenIt(t *testing.T) {
	rs := web1(sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,"since":"1999-12-31T23:00:00Z"}`))
	withSurger(t, []runtime.Object{web(withReplicas(2, 1)), rs, webPod("a"), webPod("b")}, func(t *testing.T, f *surgeFixture) {
		for range 3 {
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
		}
		written := f.writes()
		for _, rs := range written {
			if *rs.Spec.Replicas != 2 {
				t.Errorf("%d replicas are written, want 2 all the time", *rs.Spec.Replicas)
			}
		}
		want := wantWrite{2, "2", "3", ""}
		if last := written[len(written)-1]; cmp.Diff(want.of(rs, last.ResourceVersion)[0], last) != "" {
			t.Errorf("unexpected ReplicaSet (-want, +got):\n%s", cmp.Diff(want.of(rs, last.ResourceVersion)[0], last))
		}
	})
}

// counting is a ReplicaSet whose status counts so many.
func counting(replicas int32) func(*apps.ReplicaSet) {
	return func(rs *apps.ReplicaSet) { rs.Status.Replicas = replicas }
}

func TestSurgeWithoutGate(t *testing.T) {
	dc := &DeploymentController{}
	rsList := []*apps.ReplicaSet{web1(annotated(`17`))}
	got, err := dc.surgeForEvictions(t.Context(), web(), rsList, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rsList, got); diff != "" {
		t.Errorf("unexpected ReplicaSets (-want, +got):\n%s", diff)
	}
}

// TestSurgeFails has writes refused for longer than the deadline of the turn.
func TestSurgeFails(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		before, refused := turnsOver(t), errors.New("refused")
		f.refuseWrites(refused)
		defer f.intercept()()
		views, err := f.surge()
		if err != nil {
			t.Fatalf("who refuses a surge stops the Deployment: %v", err)
		}
		if diff := cmp.Diff([]*apps.ReplicaSet{web1()}, views); diff != "" {
			t.Errorf("unexpected views (-want, +got):\n%s", diff)
		}
		if events := f.recorded(); len(events) > 0 {
			t.Errorf("events tell of a surge that is not: %v", events)
		}
		if !f.looksAgainAfter(6 * time.Second) {
			t.Error("the Deployment is not looked at again in seconds")
		}
		want := "Surging 0/0: it fails, and is tried again: scaling ReplicaSet default/web-1 to 2, 1 of them for evictions: refused"
		if got := f.entry("a-uid").Message; got != want {
			t.Errorf("the pod hears %q, want %q", got, want)
		}
		status := apps.DeploymentStatus{}
		f.dc.surger.setCondition(&status, web())
		if len(status.Conditions) != 1 || status.Conditions[0].Message != "Pods that should leave and wait until there is room for a surge: 1." {
			t.Errorf("the conditions are %v", status.Conditions)
		}

		time.Sleep(5 * time.Minute)
		if _, err := f.surge(); err != nil {
			t.Error(err)
		}
		entry := f.entry("a-uid")
		if want := "Gave up after 5m0s without progress. " + want; entry.CompletionTime == nil || entry.Message != want {
			t.Errorf("after the deadline the entry is %v, want it complete with %q", entry, want)
		}
		if got := turnsOverSince(t, before); len(got) != 1 || got["given_up"].Turns != 1 {
			t.Errorf("counted are %v, want one that was given up", got)
		}
	})
}

// TestSurgeConflicts has somebody else write at the same time.
func TestSurgeConflicts(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		f.refuseWrites(apierrors.NewConflict(apps.Resource("replicasets"), "web-1", errors.New("it has changed")))
		if views, err := f.surge(); !apierrors.IsConflict(err) || views != nil {
			t.Errorf("the sync goes on with %v and error %v, want it to begin anew", views, err)
		}
	})
}

// TestSurgeWaitsForItsCache has a cache that has not seen the surge that was written last.
func TestSurgeWaitsForItsCache(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		cached := f.caches.Apps().V1().ReplicaSets().Informer().GetIndexer()
		if err := cached.Replace([]any{web1()}, "10"); err != nil {
			t.Fatal(err)
		}
		f.unseen = true
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		written := f.writes()
		if len(written) != 1 || *written[0].Spec.Replicas != 2 {
			t.Fatalf("written are %v, want one surge", written)
		}

		var behind *consistency.ConsistencyError
		if _, err := f.surge(); !errors.As(err, &behind) {
			t.Errorf("the error is %v, want that the cache is behind", err)
		}
		if again := f.writes(); len(again) > 0 {
			t.Errorf("written on an old cache: %v", again)
		}

		if err := cached.Replace([]any{written[0]}, written[0].ResourceVersion); err != nil {
			t.Fatal(err)
		}
		if _, err := f.surge(); err != nil {
			t.Errorf("the cache is up to date, but: %v", err)
		}
		if again := f.writes(); len(again) > 0 {
			t.Errorf("nothing is to be written, but: %v", again)
		}
	})
}

// TestSurgeWaitsForRequests has a controller start in mid-surge that knows of no requests.
func TestSurgeWaitsForRequests(t *testing.T) {
	surge := []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,"since":"1999-12-31T23:00:00Z"}`)}
	objects := []runtime.Object{web(), web1(surge...), webPod("a"), webPod("b")}
	look := func(t *testing.T, f *surgeFixture, wantWrites int) {
		t.Helper()
		views, err := f.surge()
		if err != nil {
			t.Fatal(err)
		}
		if got := *views[0].Spec.Replicas; got != 1 {
			t.Errorf("the sync goes on with %d replicas, want 1", got)
		}
		if got := f.writes(); len(got) != wantWrites {
			t.Errorf("%d writes, want %d: %v", len(got), wantWrites, got)
		}
	}
	t.Run("they come late", func(t *testing.T) {
		withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
			synced := false
			f.dc.surger.requestsSynced = func() bool { return synced }
			look(t, f, 0)
			if !f.looksAgainAfter(time.Second) {
				t.Error("the Deployment is not looked at again in a second")
			}
			synced = true
			look(t, f, 1)
		})
	})
	t.Run("they do not come", func(t *testing.T) {
		withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
			f.dc.surger.requestsSynced = func() bool { return false }
			look(t, f, 0)
			time.Sleep(requestPatience - time.Second)
			look(t, f, 0)
			time.Sleep(time.Second)
			look(t, f, 1)
		})
	})
	t.Run("nothing is extra", func(t *testing.T) {
		withSurger(t, []runtime.Object{web(), web1(), webPod("a")}, func(t *testing.T, f *surgeFixture) {
			f.dc.surger.requestsSynced = func() bool { return false }
			look(t, f, 0)
			time.Sleep(requestPatience)
			if got := f.dc.queue.Len(); got != 0 {
				t.Error("the Deployment is looked at again, for nothing")
			}
		})
	})
}

// TestNewDeploymentDoesNotWait has a Deployment deleted and created anew, while the cache is
// behind for the old one.
func TestNewDeploymentDoesNotWait(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		if err := f.caches.Apps().V1().ReplicaSets().Informer().GetIndexer().Replace([]any{web1()}, "10"); err != nil {
			t.Fatal(err)
		}
		f.unseen = true
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		f.dc.surger.noteRollout(web1(), web1(func(rs *apps.ReplicaSet) { rs.ResourceVersion = "1000" }), nil)
		f.put(web(func(d *apps.Deployment) { d.UID = "new-web-uid" }))
		if _, err := f.surge(); err != nil {
			t.Errorf("the new Deployment waits for what the old one has written: %v", err)
		}
		if err := f.dc.surger.rolled.EnsureReady(types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "web"}); err != nil {
			t.Errorf("the new Deployment waits for the rollout of the old one: %v", err)
		}
	})
}

// TestWriteReplicaSet has the rest of the sync write what it got without the surge.
func TestWriteReplicaSet(t *testing.T) {
	const since = `"since":"1999-12-31T23:00:00Z"`
	tests := map[string]struct {
		stored []func(*apps.ReplicaSet)
		want   *wantWrite
	}{
		"without a surge": {want: &wantWrite{3, "3", "4", ""}},
		"in a surge": {
			stored: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			want:   &wantWrite{4, "3", "4", `{"surge":1,"of":4,"desired":3,` + since + `}`},
		},
		"while pods leave": {
			stored: []func(*apps.ReplicaSet){sized(1, 1, 2), annotated(`{"surge":0,"of":1,"desired":1,` + since + `,"ending":true,"leaving":["a-uid"]}`)},
			want:   &wantWrite{3, "3", "4", `{"surge":0,"of":3,"desired":3,` + since + `,"ending":true,"leaving":["a-uid"]}`},
		},
		"with what is no surge": {
			stored: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":5,"desired":1,` + since + `}`)},
			want:   &wantWrite{3, "3", "4", ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rs := web1(tc.stored...)
			withSurger(t, []runtime.Object{rs}, func(t *testing.T, f *surgeFixture) {
				view, _, err := deploymentutil.WithoutEvictionSurge(rs, math.MaxInt)
				if err != nil {
					t.Fatal(err)
				}
				// As the rest of the sync scales.
				view = view.DeepCopy()
				*view.Spec.Replicas = 3
				deploymentutil.SetReplicasAnnotations(view, 3, 4)
				got, err := f.dc.writeReplicaSet(f.ctx, view)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want.of(rs, "101"), f.writes()); diff != "" {
					t.Errorf("unexpected writes (-want, +got):\n%s", diff)
				}
				if want, _, _ := deploymentutil.WithoutEvictionSurge(f.stored("web-1"), math.MaxInt); cmp.Diff(want, got) != "" || *got.Spec.Replicas != 3 {
					t.Errorf("the sync goes on with %d replicas, unexpected ReplicaSet (-want, +got):\n%s", *got.Spec.Replicas, cmp.Diff(want, got))
				}

				refused := errors.New("refused")
				f.refuseWrites(refused)
				if _, err := f.dc.writeReplicaSet(f.ctx, view); !errors.Is(err, refused) {
					t.Errorf("the error is %v, want %q", err, refused)
				}
				f.refuseWrites(nil)

				view.ResourceVersion = got.ResourceVersion
				withoutGate := &DeploymentController{client: f.client}
				if got, err = withoutGate.writeReplicaSet(f.ctx, view); err != nil {
					t.Fatal(err)
				}
				want := view.DeepCopy()
				want.ResourceVersion, want.Status = "102", f.stored("web-1").Status
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("without the gate, unexpected ReplicaSet (-want, +got):\n%s", diff)
				}
			})
		})
	}
}

func TestTurnEnds(t *testing.T) {
	const message = "Surging 0/1: waiting for replacements to be created."
	change := func(change func(*coordinationv1alpha1.EvictionRequest)) func(*surgeFixture, func()) {
		return func(f *surgeFixture, _ func()) { f.changeRequest("a-uid", change) }
	}
	look := func(changed runtime.Object) func(*surgeFixture, func()) {
		return func(f *surgeFixture, _ func()) {
			f.put(changed)
			if _, err := f.surge(); err != nil {
				f.t.Error(err)
			}
		}
	}
	tests := map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		happens func(f *surgeFixture, stop func())
		want    map[metrics.Outcome]turnOver
		// wantMessage is with what the turn is complete, if it is.
		wantMessage string
	}{
		"the pod is gone, by whomever":  {happens: change(holding("Evicted")), want: map[metrics.Outcome]turnOver{metrics.Completed: {1, 90}}},
		"canceled":                      {happens: change(holding("Canceled")), want: map[metrics.Outcome]turnOver{metrics.Canceled: {1, 90}}},
		"the request is deleted":        {happens: func(f *surgeFixture, _ func()) { f.remove(asks("a")) }, want: map[metrics.Outcome]turnOver{metrics.Canceled: {1, 90}}},
		"the next one has the turn":     {happens: change(passed), want: map[metrics.Outcome]turnOver{metrics.Lost: {1, 90}}},
		"the controller stops":          {happens: func(_ *surgeFixture, stop func()) { stop() }, want: map[metrics.Outcome]turnOver{}},
		"not over":                      {happens: look(web()), want: map[metrics.Outcome]turnOver{}},
		"the pod terminates":            {happens: look(webPod("a", terminating)), want: map[metrics.Outcome]turnOver{metrics.Completed: {1, 90}}, wantMessage: "The pod terminates."},
		"no surge is allowed":           {happens: look(web(withReplicas(1, 0))), want: map[metrics.Outcome]turnOver{metrics.Declined: {1, 90}}, wantMessage: "Deployment web does not surge: its maxSurge is 0."},
		"the pod belongs to nobody now": {happens: func(f *surgeFixture, _ func()) { f.put(webPod("a", alone)) }, want: map[metrics.Outcome]turnOver{metrics.Declined: {1, 90}}, wantMessage: "No Deployment controls the pod."},
		"the Deployment is deleted":     {happens: func(f *surgeFixture, _ func()) { f.remove(web()) }, want: map[metrics.Outcome]turnOver{metrics.Declined: {1, 90}}, wantMessage: "No Deployment controls the pod."},
		"the deadline": {
			happens: func(f *surgeFixture, _ func()) {
				time.Sleep(210 * time.Second)
				if _, err := f.surge(); err != nil {
					f.t.Error(err)
				}
			},
			want: map[metrics.Outcome]turnOver{metrics.GivenUp: {1, 300}}, wantMessage: "Gave up after 5m0s without progress. " + message,
		},
		"begun before a restart": {
			request: asks("a", func(request *coordinationv1alpha1.EvictionRequest) {
				started := metav1.NewTime(bubbleBegins.Add(-time.Minute))
				request.Status.ActivationTime = ptr.To(metav1.NewTime(bubbleBegins.Add(-time.Hour)))
				request.Status.Interceptors[0].StartTime, request.Status.Interceptors[0].HeartbeatTime = &started, &started
			}),
			happens: change(holding("Canceled")), want: map[metrics.Outcome]turnOver{metrics.Canceled: {1, 150}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := tc.request
			if request == nil {
				request = asks("a")
			}
			rs := web1(sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,"since":"2000-01-01T00:00:00Z"}`))
			withSurger(t, []runtime.Object{web(), rs, webPod("a"), request}, func(t *testing.T, f *surgeFixture) {
				before := turnsOver(t)
				stop := f.intercept()
				defer stop()
				if diff := cmp.Diff([]string{"web-uid"}, f.forgetWoken()); diff != "" {
					t.Errorf("woken at the beginning of the turn (-want, +got):\n%s", diff)
				}
				time.Sleep(90 * time.Second)
				if diff := cmp.Diff([]string{"web-uid"}, f.forgetWoken()); diff != "" {
					t.Errorf("woken after a minute of the turn (-want, +got):\n%s", diff)
				}
				tc.happens(f, stop)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, turnsOverSince(t, before)); diff != "" {
					t.Errorf("unexpected count (-want, +got):\n%s", diff)
				}
				time.Sleep(time.Minute) // Reports are paced.
				if name == "the request is deleted" {
					return
				}
				entry := f.entry("a-uid")
				if complete := entry.CompletionTime != nil; complete != (tc.wantMessage != "") || complete && entry.Message != tc.wantMessage {
					t.Errorf("the entry is %v, want it complete with %q", entry, tc.wantMessage)
				}
			})
		})
	}
}

// TestTurnWakesAtItsEnd has nothing change but that nobody works on the pod any more.
func TestTurnWakesAtItsEnd(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		stop := f.intercept()
		f.forgetWoken()
		stop()
		if diff := cmp.Diff([]string{"web-uid"}, f.forgetWoken()); diff != "" {
			t.Errorf("woken at the end of the turn (-want, +got):\n%s", diff)
		}
		if moves := f.dc.surger.moves; len(moves) > 0 {
			t.Errorf("turns that are over are remembered: %v", moves)
		}
	})
}

// TestSilentDeployment has nobody look at the Deployment of a pod, as where its sync fails before
// that. The pod does not wait for ever, also where it is looked at from time to time.
func TestSilentDeployment(t *testing.T) {
	withSurger(t, []runtime.Object{web(func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](7200) }), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		time.Sleep(9 * time.Minute)
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		for _, wantOver := range []bool{false, true} {
			time.Sleep(9*time.Minute + 30*time.Second)
			entry, want := f.entry("a-uid"), "Gave up: the Deployment could not be looked at for 10m0s."
			if over := entry.CompletionTime != nil; over != wantOver || over && entry.Message != want {
				t.Errorf("after %v the entry is %v, want the turn over: %t, with %q", time.Since(bubbleBegins), entry, wantOver, want)
			}
		}
	})
}

// TestOldTurnEndsLate has a turn end after another has begun for the same pod.
func TestOldTurnEndsLate(t *testing.T) {
	withSurger(t, nil, func(t *testing.T, f *surgeFixture) {
		older, newer := &move{uid: "a-uid"}, &move{uid: "a-uid"}
		f.dc.surger.moves["a-uid"] = newer
		f.dc.surger.end(older)
		if f.dc.surger.moves["a-uid"] != newer {
			t.Error("the new turn is forgotten with the old one")
		}
		f.dc.surger.end(newer)
		if len(f.dc.surger.moves) > 0 {
			t.Error("the new turn is remembered after its end")
		}
	})
}

func TestFirstVerdictCounts(t *testing.T) {
	m := &move{over: make(chan verdict, 1)}
	first := verdict{outcome: metrics.GivenUp, message: "Gave up."}
	m.finish(first)
	m.finish(verdict{outcome: metrics.Completed, message: "The pod terminates."})
	if got := <-m.over; got != first {
		t.Errorf("the verdict is %v, want the first", got)
	}
}

// TestWakingTwice has a turn woken that is awake already.
func TestWakingTwice(t *testing.T) {
	m := &move{wake: make(chan struct{}, 1)}
	m.wakeUp()
	m.wakeUp()
	if got := len(m.wake); got != 1 {
		t.Errorf("the turn looks %d times, want once", got)
	}
}

// TestTurnHears has a pod moved, from the first look to the last.
func TestTurnHears(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		before := turnsOver(t)
		defer f.intercept()()
		hears := func(want string) {
			t.Helper()
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second) // Reports are paced.
			if got := f.entry("a-uid").Message; got != want {
				t.Errorf("the pod hears %q, want %q", got, want)
			}
		}
		hears("Surging 0/1: waiting for replacements to be created.")
		f.put(webPod("b", starting))
		hears("Surging 0/1: waiting for pod b to become ready.")
		f.put(webPod("b"))
		hears("Surging 1/1: the replacement is available, the pod makes way.")
		if f.entry("a-uid").CompletionTime != nil {
			t.Error("the turn is over, but the pod is still there")
		}
		f.put(webPod("a", terminating))
		hears("The pod terminates.")
		if f.entry("a-uid").CompletionTime == nil {
			t.Error("the turn is not over, although the pod terminates")
		}
		if diff := cmp.Diff(map[metrics.Outcome]turnOver{metrics.Completed: {1, 60}}, turnsOverSince(t, before)); diff != "" {
			t.Errorf("unexpected count (-want, +got):\n%s", diff)
		}
	})
}

// A look that is older than a turn says nothing of it: what the turn brings from an earlier process
// was not known.
func TestVerdictOfAnOldLook(t *testing.T) {
	for name, tc := range map[string]struct {
		taken time.Duration
		want  int
	}{
		"begun before": {want: 1},
		"begun since":  {taken: time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, _ := surging()
			w.now = began.Add(time.Hour)
			m := &move{taken: w.now.Add(tc.taken), over: make(chan verdict, 1)}
			s := &surger{moves: map[types.UID]*move{"a": m}, progress: map[types.UID]progress{}}
			s.report(w.now, w)
			if got := len(m.over); got != tc.want {
				t.Errorf("the turn is ended %d times, want %d", got, tc.want)
			}
		})
	}
}

func TestLastReport(t *testing.T) {
	at := func(beat time.Duration) func(*coordinationv1alpha1.EvictionRequest) {
		return func(request *coordinationv1alpha1.EvictionRequest) {
			request.Status.Interceptors[0].HeartbeatTime = ptr.To(metav1.NewTime(bubbleBegins.Add(beat)))
		}
	}
	eta := func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.Interceptors[0].ExpectedFinishTime = ptr.To(metav1.NewTime(bubbleBegins.Add(time.Hour)))
	}
	for name, tc := range map[string]struct {
		request   *coordinationv1alpha1.EvictionRequest
		beat, eta time.Time
	}{
		"none":     {request: asks("a")},
		"before":   {request: asks("a", at(-time.Minute)), beat: bubbleBegins.Add(-time.Minute)},
		"is ahead": {request: asks("a", at(time.Minute)), beat: bubbleBegins},
		"with ETA": {request: asks("a", at(-time.Minute), eta), beat: bubbleBegins.Add(-time.Minute), eta: bubbleBegins.Add(time.Hour)},
		"of another": {request: asks("a", at(-time.Minute), eta, func(request *coordinationv1alpha1.EvictionRequest) {
			request.Status.Interceptors[0].Name = "other.example.com"
		})},
	} {
		t.Run(name, func(t *testing.T) {
			if beat, eta := lastReport(tc.request, bubbleBegins); !beat.Equal(tc.beat) || !eta.Equal(tc.eta) {
				t.Errorf("got %v and %v, want %v and %v", beat, eta, tc.beat, tc.eta)
			}
		})
	}
}
