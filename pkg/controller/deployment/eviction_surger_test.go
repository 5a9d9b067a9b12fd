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
	"context"
	"errors"
	"math"
	"strings"
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
	clientset "k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/utils/ptr"

	"k8s.io/kubernetes/pkg/controller/deployment/metrics"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
)

// wantWrite is the expected write of a ReplicaSet. All other fields stay unchanged.
type wantWrite struct {
	replicas     int32
	desired, max string
	// surge is the expected annotation, or empty.
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
		"no pod is asked": {
			others:   []runtime.Object{webPod("a")},
			wantView: 1,
		},
		"begin": {
			others:     []runtime.Object{webPod("a"), asks("a")},
			want:       &wantWrite{2, "1", "2", `{"surge":1,"of":2,"desired":1,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 1 to 2 to replace 1 pod before eviction"},
			wantSurges: 1,
		},
		"begin with two": {
			deployment: withReplicas(3, 2), replicaSet: []func(*apps.ReplicaSet){sized(3, 3, 5)},
			others:     []runtime.Object{webPod("a"), webPod("b"), webPod("c"), asks("a"), asks("b")},
			want:       &wantWrite{5, "3", "5", `{"surge":2,"of":5,"desired":3,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   3,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 3 to 5 to replace 2 pods before eviction"},
			wantSurges: 2,
		},
		"begin with two of three": {
			deployment: withReplicas(3, 2), replicaSet: []func(*apps.ReplicaSet){sized(3, 3, 5)},
			others:     []runtime.Object{webPod("a"), webPod("b"), webPod("c"), asks("a"), asks("b"), asks("c")},
			want:       &wantWrite{5, "3", "5", `{"surge":2,"of":5,"desired":3,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   3,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 3 to 5 to replace 3 pods before eviction"},
			wantSurges: 2,
		},
		"one more": {
			deployment: withReplicas(3, 2), replicaSet: []func(*apps.ReplicaSet){sized(4, 3, 5), annotated(`{"surge":1,"of":4,"desired":3,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b"), webPod("c"), webPod("d", starting), asks("a"), asks("b")},
			want:       &wantWrite{5, "3", "5", `{"surge":2,"of":5,"desired":3,` + since + `}`},
			wantView:   3,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 4 to 5 to replace 2 pods before eviction"},
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
			wantEvents: []string{"Normal EvictionSurge Scaled down replica set web-1 from 2 to 1 after the replacement of 1 pod"},
		},
		"the pod leaves, the status still counts it": {
			replicaSet: []func(*apps.ReplicaSet){sized(1, 1, 2), annotated(`{"surge":0,"of":1,"desired":1,` + since + `,"ending":true,"leaving":["a-uid"]}`), counting(2)},
			others:     []runtime.Object{webPod("a", terminating), webPod("b"), asks("a")},
			wantView:   1,
		},
		"the status no longer counts it": {
			replicaSet: []func(*apps.ReplicaSet){sized(1, 1, 2), annotated(`{"surge":0,"of":1,"desired":1,` + since + `,"ending":true,"leaving":["a-uid"]}`)},
			others:     []runtime.Object{webPod("a", terminating), webPod("b"), asks("a")},
			want:       &wantWrite{1, "1", "2", ""},
			wantView:   1,
		},
		"the status is older": {
			replicaSet: []func(*apps.ReplicaSet){sized(1, 1, 2), annotated(`{"surge":0,"of":1,"desired":1,` + since + `,"ending":true,"leaving":["a-uid"]}`), func(rs *apps.ReplicaSet) {
				rs.Generation, rs.Status.ObservedGeneration = 3, 2
			}},
			others:   []runtime.Object{webPod("a", terminating), webPod("b"), asks("a")},
			wantView: 1,
		},
		"canceled": {
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b", starting), asks("a", holding("Canceled"))},
			want:       &wantWrite{1, "1", "2", `{"surge":0,"of":1,"desired":1,` + since + `,"ending":true}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled down replica set web-1 from 2 to 1: replacements are no longer needed"},
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
			wantEvents: []string{"Normal EvictionSurge Scaled down replica set web-1 from 2 to 1 after the replacement of 1 pod"},
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

		// Invalid annotations are removed and scale nothing.
		"another client has scaled": {
			replicaSet: []func(*apps.ReplicaSet){annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a")},
			want:       &wantWrite{1, "1", "2", ""},
			wantView:   1,
		},
		"not a valid annotation": {
			replicaSet: []func(*apps.ReplicaSet){annotated(`17`)},
			others:     []runtime.Object{webPod("a")},
			want:       &wantWrite{1, "1", "2", ""},
			wantView:   1,
		},
		"not a valid annotation, and a pod is asked": {
			replicaSet: []func(*apps.ReplicaSet){annotated(`17`)},
			others:     []runtime.Object{webPod("a"), asks("a")},
			want:       &wantWrite{2, "1", "2", `{"surge":1,"of":2,"desired":1,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 1 to 2 to replace 1 pod before eviction"},
			wantSurges: 1,
		},

		// The size of the Deployment changes.
		"scaled, no pod is asked": {
			deployment: withReplicas(3, 1),
			others:     []runtime.Object{webPod("a")},
			wantView:   1,
		},
		"scaled up and begin": {
			deployment: withReplicas(3, 1),
			others:     []runtime.Object{webPod("a"), asks("a")},
			want:       &wantWrite{4, "3", "4", `{"surge":1,"of":4,"desired":3,"since":"2000-01-01T00:00:00Z"}`},
			wantView:   3,
			wantEvents: []string{"Normal ScalingReplicaSet Scaled replica set web-1 from 1 to 4, including an eviction surge of 1"},
			wantSurges: 1,
		},
		"scaled up in a surge": {
			deployment: withReplicas(3, 1),
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b", starting), asks("a")},
			want:       &wantWrite{4, "3", "4", `{"surge":1,"of":4,"desired":3,` + since + `}`},
			wantView:   3,
			wantEvents: []string{"Normal ScalingReplicaSet Scaled replica set web-1 from 2 to 4, including an eviction surge of 1"},
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
			wantEvents: []string{"Normal EvictionSurge Scaled up replica set web-1 from 1 to 2 to replace 1 pod before eviction"},
			wantSurges: 1,
		},

		// No surge.
		"no room": {
			deployment: withReplicas(1, 0),
			others:     []runtime.Object{webPod("a"), asks("a")},
			wantView:   1,
		},
		"no more room": {
			deployment: withReplicas(1, 0),
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b", starting), asks("a")},
			want:       &wantWrite{1, "1", "1", `{"surge":0,"of":1,"desired":1,` + since + `,"ending":true}`},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled down replica set web-1 from 2 to 1: replacements are no longer needed"},
		},
		"being deleted": {
			deployment: func(d *apps.Deployment) {
				d.DeletionTimestamp, d.Finalizers = ptr.To(metav1.NewTime(bubbleBegins)), []string{"orphan"}
			},
			replicaSet: []func(*apps.ReplicaSet){sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,` + since + `}`)},
			others:     []runtime.Object{webPod("a"), webPod("b", starting), asks("a")},
			want:       &wantWrite{1, "1", "2", ""},
			wantView:   1,
			wantEvents: []string{"Normal EvictionSurge Scaled down replica set web-1 from 2 to 1: replacements are no longer needed"},
		},
		"a rollout takes over the extra replicas": {
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
				// The sync continues with the stored ReplicaSet without its surge.
				view, _, _ := deploymentutil.WithoutEvictionSurge(f.stored("web-1"), math.MaxInt)
				if diff := cmp.Diff(view, views[0]); diff != "" {
					t.Errorf("unexpected view (-want, +got):\n%s", diff)
				}
				if got := *views[0].Spec.Replicas; got != tc.wantView {
					t.Errorf("the sync continues with %d replicas, want %d", got, tc.wantView)
				}
				if got := surgesStarted(t) - surges; got != tc.wantSurges {
					t.Errorf("%d surges are counted, want %d", got, tc.wantSurges)
				}
				// Another sync with up-to-date caches writes nothing.
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				if again := f.writes(); len(again) > 0 {
					t.Errorf("another sync writes %v", again)
				}
			})
		})
	}
}

// The metric has the surges of the controller that runs, and not what one before it had.
func TestSurgesAreInTheMetrics(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		if got := surgeReplicas(t); got != 0 {
			t.Errorf("%d replicas before the surge, want 0", got)
		}
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		if got := surgeReplicas(t); got != 1 {
			t.Errorf("%d replicas during the surge, want 1", got)
		}
	})
}

// TestScaledToWhatTheSurgeHadGivenIt turns an extra replica into a wanted one.
func TestScaledToWhatTheSurgeHadGivenIt(t *testing.T) {
	rs := web1(sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,"since":"1999-12-31T23:00:00Z"}`))
	withSurger(t, []runtime.Object{web(withReplicas(2, 1)), rs, webPod("a"), webPod("b")}, func(t *testing.T, f *surgeFixture) {
		for range 3 {
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
		}
		surgeWrites := f.writes()
		for _, rs := range surgeWrites {
			if *rs.Spec.Replicas != 2 {
				t.Errorf("%d replicas are written, want 2 in every write", *rs.Spec.Replicas)
			}
		}
		want := wantWrite{2, "2", "3", ""}
		if last := surgeWrites[len(surgeWrites)-1]; cmp.Diff(want.of(rs, last.ResourceVersion)[0], last) != "" {
			t.Errorf("unexpected ReplicaSet (-want, +got):\n%s", cmp.Diff(want.of(rs, last.ResourceVersion)[0], last))
		}
	})
}

// counting sets the number of replicas in the status.
func counting(replicas int32) func(*apps.ReplicaSet) {
	return func(rs *apps.ReplicaSet) { rs.Status.Replicas = replicas }
}

func TestSurgeWithoutGate(t *testing.T) {
	dc := &DeploymentController{}
	rsList := []*apps.ReplicaSet{web1(annotated(`17`))}
	got, err := dc.surgeForEvictions(t.Context(), web(), rsList)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rsList, got); diff != "" {
		t.Errorf("unexpected ReplicaSets (-want, +got):\n%s", diff)
	}
}

// TestSurgeFails rejects writes for longer than the deadline of the turn.
func TestSurgeFails(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		before, refused := turnsOver(t), errors.New("refused")
		f.refuseWrites(refused)
		defer f.intercept()()
		views, err := f.surge()
		if err != nil {
			t.Fatalf("a rejected surge stops the sync: %v", err)
		}
		if diff := cmp.Diff([]*apps.ReplicaSet{web1()}, views); diff != "" {
			t.Errorf("unexpected views (-want, +got):\n%s", diff)
		}
		if events := f.recorded(); len(events) > 0 {
			t.Errorf("events for a surge that was not written: %v", events)
		}
		if !f.looksAgainAfter(6 * time.Second) {
			t.Error("the Deployment is not requeued after seconds")
		}
		want := "Surging 0/0: retrying after an error: refused (when scaling ReplicaSet default/web-1 to 2, including an eviction surge of 1)"
		if got := f.entry("a-uid").Message; got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
		status := apps.DeploymentStatus{}
		f.dc.surger.setCondition(&status, web())
		if len(status.Conditions) != 1 || status.Conditions[0].Message != "Pods waiting for a replacement before their eviction: 1. Their EvictionRequests show the reason." {
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

// The name of the webhook is in the part of the message that others show, and no write takes a worker for longer than
// its timeout.
func TestSurgeHangs(t *testing.T) {
	const hangs = `Internal error occurred: failed calling webhook "scaling.tenant.example.com": failed to call webhook: Post "https://10.0.0.1:443/": context deadline exceeded`
	for name, tc := range map[string]struct {
		after time.Duration
		want  string
	}{
		"the API server answers": {10 * time.Second, "Surging 0/0: retrying after an error: " + hangs},
		"it does not":            {time.Hour, "Surging 0/0: retrying after an error: no answer within 15s, perhaps because an admission webhook for ReplicaSets hangs: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
				f.dc.surger.client = &slowClient{Interface: f.client, answer: func(ctx context.Context) error {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(tc.after):
						return errors.New(hangs)
					}
				}}
				defer f.intercept()()
				began := time.Now()
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > surgeWriteTimeout {
					t.Errorf("the sync took %v", took)
				}
				time.Sleep(10 * time.Second)
				if got := f.entry("a-uid").Message; !strings.HasPrefix(got, tc.want) {
					t.Errorf("the message is %q, want %q first", got, tc.want)
				}
			})
		})
	}
}

// slowClient answers updates of ReplicaSets with an error.
type slowClient struct {
	clientset.Interface
	answer func(context.Context) error
}

func (c *slowClient) AppsV1() appsclient.AppsV1Interface { return &slowApps{c.Interface.AppsV1(), c} }

type slowApps struct {
	appsclient.AppsV1Interface
	client *slowClient
}

func (c *slowApps) ReplicaSets(namespace string) appsclient.ReplicaSetInterface {
	return &slowReplicaSets{c.AppsV1Interface.ReplicaSets(namespace), c.client}
}

type slowReplicaSets struct {
	appsclient.ReplicaSetInterface
	client *slowClient
}

func (c *slowReplicaSets) Update(ctx context.Context, _ *apps.ReplicaSet, _ metav1.UpdateOptions) (*apps.ReplicaSet, error) {
	return nil, c.client.answer(ctx)
}

// TestSurgeConflicts simulates a concurrent write of another client.
func TestSurgeConflicts(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		f.refuseWrites(apierrors.NewConflict(apps.Resource("replicasets"), "web-1", errors.New("it has changed")))
		if views, err := f.surge(); !apierrors.IsConflict(err) || views != nil {
			t.Errorf("the sync continues with %v and error %v, want it to be retried", views, err)
		}
	})
}

// TestSurgeWaitsForItsCache hides the last write of a surge from the cache.
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
		surgeWrites := f.writes()
		if len(surgeWrites) != 1 || *surgeWrites[0].Spec.Replicas != 2 {
			t.Fatalf("written are %v, want one surge", surgeWrites)
		}

		var behind *consistency.ConsistencyError
		if _, err := f.surge(); !errors.As(err, &behind) {
			t.Errorf("the error is %v, want that the cache is behind", err)
		}
		if again := f.writes(); len(again) > 0 {
			t.Errorf("written on an old cache: %v", again)
		}

		if err := cached.Replace([]any{surgeWrites[0]}, surgeWrites[0].ResourceVersion); err != nil {
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

// TestSurgeWaitsForRequests starts a controller during a surge, with no requests in its cache.
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
			t.Errorf("the sync continues with %d replicas, want 1", got)
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
				t.Error("the Deployment is not requeued after a second")
			}
			synced = true
			look(t, f, 1)
		})
	})
	t.Run("they do not come", func(t *testing.T) {
		withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
			f.dc.surger.requestsSynced = func() bool { return false }
			look(t, f, 0)
			time.Sleep(requestSyncTimeout - time.Second)
			look(t, f, 0)
			time.Sleep(time.Second)
			look(t, f, 1)
		})
	})
	t.Run("no replica is extra", func(t *testing.T) {
		withSurger(t, []runtime.Object{web(), web1(), webPod("a")}, func(t *testing.T, f *surgeFixture) {
			f.dc.surger.requestsSynced = func() bool { return false }
			look(t, f, 0)
			time.Sleep(requestSyncTimeout)
			if got := f.dc.queue.Len(); got != 0 {
				t.Error("the Deployment is requeued without need")
			}
		})
	})
}

// TestNewDeploymentDoesNotWait deletes a Deployment and creates it again while the cache is behind
// for the old one.
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
		if err := f.dc.surger.rolloutWrites.EnsureReady(types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "web"}); err != nil {
			t.Errorf("the new Deployment waits for the rollout of the old one: %v", err)
		}
	})
}

// TestWriteReplicaSet writes a view as the rest of the sync does.
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
		"with an invalid surge": {
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
				// Scale like the rest of the sync.
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
					t.Errorf("the sync continues with %d replicas, unexpected ReplicaSet (-want, +got):\n%s", *got.Spec.Replicas, cmp.Diff(want, got))
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
		// wantMessage is the expected message of a completed turn.
		wantMessage string
	}{
		"the pod is gone":                 {happens: change(holding("Evicted")), want: map[metrics.Outcome]turnOver{metrics.Completed: {1, 90}}},
		"canceled":                        {happens: change(holding("Canceled")), want: map[metrics.Outcome]turnOver{metrics.Canceled: {1, 90}}},
		"the request is deleted":          {happens: func(f *surgeFixture, _ func()) { f.remove(asks("a")) }, want: map[metrics.Outcome]turnOver{metrics.Canceled: {1, 90}}},
		"the next interceptor is active":  {happens: change(passed), want: map[metrics.Outcome]turnOver{metrics.Lost: {1, 90}}},
		"the controller stops":            {happens: func(_ *surgeFixture, stop func()) { stop() }, want: map[metrics.Outcome]turnOver{}},
		"not over":                        {happens: look(web()), want: map[metrics.Outcome]turnOver{}},
		"the pod terminates":              {happens: look(webPod("a", terminating)), want: map[metrics.Outcome]turnOver{metrics.Completed: {1, 90}}, wantMessage: "The pod is terminating."},
		"no surge is allowed":             {happens: look(web(withReplicas(1, 0))), want: map[metrics.Outcome]turnOver{metrics.Declined: {1, 90}}, wantMessage: "Deployment web does not surge: its maxSurge is 0."},
		"the pod has lost its controller": {happens: func(f *surgeFixture, _ func()) { f.put(webPod("a", alone)) }, want: map[metrics.Outcome]turnOver{metrics.Declined: {1, 90}}, wantMessage: "No Deployment controls the pod."},
		"the Deployment is deleted":       {happens: func(f *surgeFixture, _ func()) { f.remove(web()) }, want: map[metrics.Outcome]turnOver{metrics.Declined: {1, 90}}, wantMessage: "No Deployment controls the pod."},
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
				time.Sleep(time.Minute) // Reports are rate-limited.
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

// TestTurnWakesAtItsEnd ends a turn without any other event.
func TestTurnWakesAtItsEnd(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		stop := f.intercept()
		f.forgetWoken()
		stop()
		if diff := cmp.Diff([]string{"web-uid"}, f.forgetWoken()); diff != "" {
			t.Errorf("woken at the end of the turn (-want, +got):\n%s", diff)
		}
		if openTurns := f.dc.surger.openTurns; len(openTurns) > 0 {
			t.Errorf("ended turns are still recorded: %v", openTurns)
		}
	})
}

// TestSilentDeployment never syncs the Deployment of a pod, or only once, as if its sync failed
// early. The pod must not wait forever.
func TestSilentDeployment(t *testing.T) {
	withSurger(t, []runtime.Object{web(func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](7200) }), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		time.Sleep(9 * time.Minute)
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		for _, wantOver := range []bool{false, true} {
			time.Sleep(9*time.Minute + 30*time.Second)
			entry, want := f.entry("a-uid"), "Gave up: the Deployment was not synced for 10m0s."
			if done := entry.CompletionTime != nil; done != wantOver || done && entry.Message != want {
				t.Errorf("after %v the entry is %v, want the turn over: %t, with %q", time.Since(bubbleBegins), entry, wantOver, want)
			}
		}
	})
}

// TestOldTurnEndsLate ends a turn after a newer one has begun for the same pod.
func TestOldTurnEndsLate(t *testing.T) {
	withSurger(t, nil, func(t *testing.T, f *surgeFixture) {
		older, newer := &openTurn{uid: "a-uid"}, &openTurn{uid: "a-uid"}
		f.dc.surger.openTurns["a-uid"] = newer
		f.dc.surger.end(older)
		if f.dc.surger.openTurns["a-uid"] != newer {
			t.Error("the new turn is removed with the old one")
		}
		f.dc.surger.end(newer)
		if len(f.dc.surger.openTurns) > 0 {
			t.Error("the new turn is not removed at its end")
		}
	})
}

func TestFirstResultCounts(t *testing.T) {
	m := &openTurn{done: make(chan turnResult, 1)}
	first := turnResult{outcome: metrics.GivenUp, message: "Gave up."}
	m.finish(first)
	m.finish(turnResult{outcome: metrics.Completed, message: "The pod is terminating."})
	if got := <-m.done; got != first {
		t.Errorf("the result is %v, want the first", got)
	}
}

// TestWakingTwice wakes a turn that has a pending wake-up.
func TestWakingTwice(t *testing.T) {
	m := &openTurn{wake: make(chan struct{}, 1)}
	m.wakeUp()
	m.wakeUp()
	if got := len(m.wake); got != 1 {
		t.Errorf("the turn wakes %d times, want once", got)
	}
}

// TestTurnHears checks the reports for a pod during a whole surge.
func TestTurnHears(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		before := turnsOver(t)
		defer f.intercept()()
		hears := func(want string) {
			t.Helper()
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second) // Reports are rate-limited.
			if got := f.entry("a-uid").Message; got != want {
				t.Errorf("the message is %q, want %q", got, want)
			}
		}
		hears("Surging 0/1: waiting for replacements to be created.")
		f.put(webPod("b", starting))
		hears("Surging 0/1: waiting for pod b to become ready.")
		f.put(webPod("b"))
		hears("Surging 1/1: removing the replaced pod.")
		if f.entry("a-uid").CompletionTime != nil {
			t.Error("the turn is over, but the pod is still there")
		}
		f.put(webPod("a", terminating))
		hears("The pod is terminating.")
		if f.entry("a-uid").CompletionTime == nil {
			t.Error("the turn is not over, although the pod terminates")
		}
		if diff := cmp.Diff(map[metrics.Outcome]turnOver{metrics.Completed: {1, 60}}, turnsOverSince(t, before)); diff != "" {
			t.Errorf("unexpected count (-want, +got):\n%s", diff)
		}
	})
}

// An observation that is older than a turn must not end it: it lacks the outages that earlier
// processes have reported.
func TestResultOfAnOldObservation(t *testing.T) {
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
			m := &openTurn{history: evictionturn.History{Taken: w.now.Add(tc.taken)}, done: make(chan turnResult, 1)}
			s := &surger{openTurns: map[types.UID]*openTurn{"a": m}, progress: map[types.UID]progress{}}
			s.report(w.now, w)
			if got := len(m.done); got != tc.want {
				t.Errorf("the turn is ended %d times, want %d", got, tc.want)
			}
		})
	}
}
