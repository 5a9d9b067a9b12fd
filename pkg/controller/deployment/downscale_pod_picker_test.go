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
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/kubernetes/pkg/features"
)

func pickerAt(host string) *v1.DownscalePodPicker {
	if host == "" {
		return nil
	}
	return &v1.DownscalePodPicker{HTTP: &v1.HTTPDownscalePodPicker{Host: host}}
}

func hostOf(picker *v1.DownscalePodPicker) string {
	if picker == nil {
		return ""
	}
	return picker.HTTP.Host
}

// delayedKeys is a queue that records what is added later.
type delayedKeys struct {
	workqueue.TypedRateLimitingInterface[string]
	keys []string
}

func (q *delayedKeys) AddAfter(key string, _ time.Duration) { q.keys = append(q.keys, key) }

// All ReplicaSets get the picker of their Deployment, and lose it, and only what differs is written.
func TestPassPodPicker(t *testing.T) {
	conflict := apierrors.NewConflict(apps.Resource("replicasets"), "old", errors.New("changed"))
	for name, test := range map[string]struct {
		off, deleted bool
		picker       string
		// replicaSets are the pickers of the ReplicaSets old and new.
		replicaSets []string
		terminating string
		// changed and gone are what has become of the ReplicaSets since they were cached.
		changed, gone bool
		refuse        error
		want          []string
		wantWrites    []string
		wantEvents    []string
		wantErr       bool
	}{
		"none":                 {replicaSets: []string{"", ""}, want: []string{"", ""}},
		"set":                  {picker: "a", replicaSets: []string{"", ""}, want: []string{"a", "a"}, wantWrites: []string{"old", "new"}},
		"changed":              {picker: "b", replicaSets: []string{"a", "b"}, want: []string{"b", "b"}, wantWrites: []string{"old"}},
		"removed":              {replicaSets: []string{"a", "a"}, want: []string{"", ""}, wantWrites: []string{"old", "new"}},
		"unchanged":            {picker: "a", replicaSets: []string{"a", "a"}, want: []string{"a", "a"}},
		"a ReplicaSet goes":    {picker: "a", replicaSets: []string{"", ""}, terminating: "old", want: []string{"", "a"}, wantWrites: []string{"new"}},
		"the Deployment goes":  {deleted: true, picker: "a", replicaSets: []string{"", ""}, want: []string{"", ""}},
		"the gate is off":      {off: true, picker: "a", replicaSets: []string{"", ""}, want: []string{"", ""}},
		"a ReplicaSet changed": {picker: "a", replicaSets: []string{"", ""}, changed: true, refuse: conflict, wantErr: true, wantWrites: []string{"old"}},
		"a ReplicaSet is gone": {picker: "a", replicaSets: []string{"", ""}, gone: true, refuse: apierrors.NewNotFound(apps.Resource("replicasets"), "old"), wantErr: true, wantWrites: []string{"old"}},
		"a webhook says that they have changed": {
			picker: "a", replicaSets: []string{"", ""}, refuse: conflict, want: []string{"", ""}, wantWrites: []string{"old", "new"},
			wantEvents: []string{
				`Warning PodPickerNotPassed ReplicaSet old did not get the downscale pod picker: Operation cannot be fulfilled on replicasets.apps "old": changed`,
				`Warning PodPickerNotPassed ReplicaSet new did not get the downscale pod picker: Operation cannot be fulfilled on replicasets.apps "old": changed`,
			},
		},
		"a webhook does not find something": {
			picker: "a", replicaSets: []string{"a", ""}, refuse: apierrors.NewNotFound(apps.Resource("policies"), "p"), want: []string{"a", ""}, wantWrites: []string{"new"},
			wantEvents: []string{`Warning PodPickerNotPassed ReplicaSet new did not get the downscale pod picker: policies.apps "p" not found`},
		},
		"a webhook refuses both": {
			picker: "a", replicaSets: []string{"", ""}, refuse: apierrors.NewForbidden(apps.Resource("replicasets"), "x", errors.New("not here")), want: []string{"", ""}, wantWrites: []string{"old", "new"},
			wantEvents: []string{
				`Warning PodPickerNotPassed ReplicaSet old did not get the downscale pod picker: replicasets.apps "x" is forbidden: not here`,
				`Warning PodPickerNotPassed ReplicaSet new did not get the downscale pod picker: replicasets.apps "x" is forbidden: not here`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DownscalePodPicker, !test.off)
			d := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: apps.DeploymentSpec{DownscalePodPicker: pickerAt(test.picker)}}
			if test.deleted {
				d.DeletionTimestamp = &metav1.Time{}
			}
			var cached []*apps.ReplicaSet
			client := fake.NewClientset()
			for i, name := range []string{"old", "new"} {
				rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: "1"}, Spec: apps.ReplicaSetSpec{DownscalePodPicker: pickerAt(test.replicaSets[i])}}
				live := rs.DeepCopy()
				if test.changed {
					live.ResourceVersion = "2"
				}
				if !test.gone {
					if err := client.Tracker().Add(live); err != nil {
						t.Fatal(err)
					}
				}
				if name == test.terminating {
					rs.DeletionTimestamp = &metav1.Time{}
				}
				cached = append(cached, rs)
			}
			var writes []string
			client.PrependReactor("update", "replicasets", func(action core.Action) (bool, runtime.Object, error) {
				writes = append(writes, action.(core.UpdateAction).GetObject().(*apps.ReplicaSet).Name)
				return test.refuse != nil, nil, test.refuse
			})
			events := record.NewFakeRecorder(10)
			retries := &delayedKeys{}
			dc := &DeploymentController{client: client, eventRecorder: events, queue: retries}
			got, err := dc.prepareReplicaSets(t.Context(), d, cached)
			if (err != nil) != test.wantErr {
				t.Fatalf("error %v", err)
			}
			var pickers []string
			for _, rs := range got {
				pickers = append(pickers, hostOf(rs.Spec.DownscalePodPicker))
			}
			if !slices.Equal(pickers, test.want) || !slices.Equal(writes, test.wantWrites) {
				t.Errorf("the ReplicaSets have the pickers %q, want %q; written are %q, want %q", pickers, test.want, writes, test.wantWrites)
			}
			var recorded []string
			for len(events.Events) > 0 {
				recorded = append(recorded, <-events.Events)
			}
			if !slices.Equal(recorded, test.wantEvents) {
				t.Errorf("events %q, want %q", recorded, test.wantEvents)
			}
			if retries := len(retries.keys) > 0; retries != (test.wantEvents != nil) {
				t.Errorf("tries again: %t, and the events are %q", retries, recorded)
			}
			for i, rs := range cached {
				if hostOf(rs.Spec.DownscalePodPicker) != test.replicaSets[i] {
					t.Errorf("the cached ReplicaSet %s was changed", rs.Name)
				}
			}
		})
	}
}

// A kube-apiserver that drops the field is not written to by each sync.
func TestPickerIsDropped(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DownscalePodPicker, true)
	synctest.Test(t, func(t *testing.T) {
		d := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: apps.DeploymentSpec{DownscalePodPicker: pickerAt("a")}}
		rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new", UID: "new"}}
		client, writes, drops := fake.NewClientset(), 0, true
		client.PrependReactor("update", "replicasets", func(action core.Action) (bool, runtime.Object, error) {
			writes++
			updated := action.(core.UpdateAction).GetObject().(*apps.ReplicaSet).DeepCopy()
			if drops {
				updated.Spec.DownscalePodPicker = nil
			}
			return true, updated, nil
		})
		events, retries := record.NewFakeRecorder(10), &delayedKeys{}
		dc := &DeploymentController{client: client, eventRecorder: events, queue: retries}
		for _, want := range []struct {
			host   string
			writes int
		}{{"", 1}, {"", 1}, {"", 1}, {"a", 2}} {
			got, err := dc.prepareReplicaSets(t.Context(), d, []*apps.ReplicaSet{rs})
			if err != nil || hostOf(got[0].Spec.DownscalePodPicker) != want.host || writes != want.writes {
				t.Errorf("%v, picker %q after %d writes, want %+v", err, hostOf(got[0].Spec.DownscalePodPicker), writes, want)
			}
			time.Sleep(passRetry / 3)
			drops = false
		}
		if event := <-events.Events; !strings.Contains(event, "PodPickerNotPassed") || len(events.Events)+len(retries.keys) > 0 {
			t.Errorf("event %q and %d more, want one; queued %q", event, len(events.Events), retries.keys)
		}
		dc.pickerDrops.note("other")
		time.Sleep(passRetry)
		dc.pickerDrops.note("another")
		if kept := len(dc.pickerDrops.at); kept != 1 {
			t.Errorf("%d ReplicaSets are kept", kept)
		}
	})
}

type behind struct{ consistency.ConsistencyStore }

func (behind) EnsureReady(types.NamespacedName) error { return errors.New("the cache is behind") }

// A sync that cannot surge passes no picker: its ReplicaSets may be old.
func TestPodPickerWaitsForSurge(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DownscalePodPicker, true)
	d := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: apps.DeploymentSpec{DownscalePodPicker: pickerAt("a")}}
	client := fake.NewClientset()
	dc := &DeploymentController{client: client, eventRecorder: record.NewFakeRecorder(10), surger: &surger{surgeWrites: behind{}}}
	rsList := []*apps.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old"}}}
	if _, err := dc.prepareReplicaSets(t.Context(), d, rsList); err == nil || len(client.Actions()) > 0 {
		t.Errorf("error %v, actions %v", err, client.Actions())
	}
}

// A picker that another client removes from a ReplicaSet again and again is passed ever more slowly, and an event says so.
func TestPickerIsReverted(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DownscalePodPicker, true)
	synctest.Test(t, func(t *testing.T) {
		rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
		client, events, queue := fake.NewClientset(rs), record.NewFakeRecorder(100), &delayedKeys{}
		dc := &DeploymentController{client: client, eventRecorder: events, queue: queue}
		d := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: apps.DeploymentSpec{DownscalePodPicker: pickerAt("a")}}
		passes := func() bool {
			passed, err := dc.passPodPicker(t.Context(), d, []*apps.ReplicaSet{rs}) // It has none again.
			if err != nil {
				t.Fatal(err)
			}
			return hasPickerOf(d, passed[0])
		}
		var got []int
		for second := range 60 {
			if passes() {
				got = append(got, second)
			}
			time.Sleep(time.Second)
		}
		if want := []int{0, 1, 2, 7, 17, 37}; !slices.Equal(got, want) {
			t.Errorf("passed after %v seconds, want %v", got, want)
		}
		if len(events.Events) != 4 {
			t.Errorf("%d events, want one from the third time on", len(events.Events))
		}
		if event, want := <-events.Events, "Warning PodPickerNotPassed ReplicaSet web did not get the downscale pod picker: another client keeps changing it"; !strings.HasPrefix(event, want) {
			t.Errorf("the event is %q, want %q", event, want)
		}
		if len(queue.keys) == 0 {
			t.Error("the Deployment is not synced when it may be passed again")
		}
		if d.Spec.DownscalePodPicker = pickerAt("b"); !passes() {
			t.Error("another picker waits")
		}
	})
}
