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

package nodemaintenance

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

func (w *world) expectStates(want map[string]state) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.states()); diff != "" {
		w.t.Errorf("states (-want +got):\n%s", diff)
	}
}

func (w *world) expectRunning(names ...string) {
	w.t.Helper()
	var running []string
	for name, pod := range w.pods {
		if pod.containers && pod.terminates.IsZero() {
			running = append(running, name)
		}
	}
	slices.Sort(running)
	if !slices.Equal(running, names) {
		w.t.Errorf("%q run, want %q", running, names)
	}
}

// countEvents removes the events, and returns the number of those with this reason.
func (w *world) countEvents(reason string) int {
	count := 0
	for len(w.recorder.Events) > 0 {
		if strings.Contains(<-w.recorder.Events, " "+reason+" ") {
			count++
		}
	}
	return count
}

// expectEvents removes the events, and compares their types and reasons.
func (w *world) expectEvents(want ...string) {
	w.t.Helper()
	var got []string
	for len(w.recorder.Events) > 0 {
		event := <-w.recorder.Events
		got = append(got, strings.Join(strings.Fields(event)[:2], " "))
		if !strings.Contains(event, "involvedObject{kind=Node,") {
			w.t.Errorf("the event is not one of the node: %s", event)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("events (-want +got):\n%s", diff)
	}
}

// runUntil simulates until the containers of the current stop have ended for this time.
func (w *world) runUntil(ended time.Duration) {
	w.t.Helper()
	for range 1000 {
		if s := w.manager.current; s != nil && !s.terminated.IsZero() && w.clock.Now().Sub(s.terminated) >= ended {
			return
		}
		w.run(1)
	}
	w.t.Fatal("no pod stops for that long")
}

// Each stop is reported and counted once, with its result.
func TestStopsAreReported(t *testing.T) {
	for name, test := range map[string]struct {
		act    func(w *world)
		events []string
		counts map[string]float64
	}{
		"held until the end of the maintenance": {
			act:    func(w *world) { w.run(30) },
			events: []string{"Normal StoppingStaticPod", "Normal StaticPodHeld", "Normal StaticPodReleased"},
			counts: map[string]float64{"held": 1},
		},
		"called off before its end": {
			act:    func(w *world) { w.run(3) },
			events: []string{"Normal StoppingStaticPod", "Normal StaticPodReleased"},
			counts: map[string]float64{"released": 1},
		},
		"called off before its end was processed": {
			act: func(w *world) {
				w.run(4)
				w.idle = true
				w.run(20)
				w.expectStates(map[string]state{"a": ended})
				w.idle = false
				w.unreadable = true
			},
			events: []string{"Normal StoppingStaticPod", "Normal StaticPodReleased"},
			counts: map[string]float64{"released": 1},
		},
		"its mirror pod was deleted": {
			act: func(w *world) {
				w.run(4)
				w.pods["a"].mirror = nil
				w.run(30)
			},
			events: []string{
				"Normal StoppingStaticPod", "Warning StaticPodReleased", "Normal StoppingStaticPod", "Normal StaticPodHeld", "Normal StaticPodReleased",
			},
			counts: map[string]float64{"released": 1, "held": 1},
		},
		"no controllers": {
			act: func(w *world) {
				w.run(4)
				w.idle = true
				w.run(200)
			},
			events: []string{"Normal StoppingStaticPod", "Warning StaticPodNeeded", "Normal StaticPodReleased"},
			counts: map[string]float64{"refused": 1},
		},
		"refused, and not stored": {
			act: func(w *world) {
				w.run(4)
				if err := os.RemoveAll(w.directory); err != nil {
					t.Fatal(err)
				}
				w.idle = true
				w.run(200)
			},
			events: []string{
				"Normal StoppingStaticPod", "Warning FailedStaticPodMaintenance", "Warning StaticPodNeeded",
				"Warning FailedStaticPodMaintenance", "Normal StaticPodReleased",
			},
			counts: map[string]float64{"refused": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			const metric = "kubelet_maintenance_static_pod_stops_total"
			before := map[string]float64{}
			for _, result := range []string{"held", "refused", "released"} {
				before[result] = metricValue(t, metric, result)
			}
			w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
			w.targets = allTargets
			test.act(w)
			w.idle, w.targets = false, nil
			w.run(2)
			w.expectEvents(test.events...)
			for result, count := range before {
				if got := metricValue(t, metric, result) - count; got != test.counts[result] {
					t.Errorf("%v stops are %s, want %v", got, result, test.counts[result])
				}
			}
			w.run(10) // Until the pod that was stopped last has returned.
			// Nothing is left to do when the requests are canceled.
			if err := w.requests.GetIndexer().Replace(nil, ""); err != nil {
				t.Fatal(err)
			}
			w.asked = map[types.UID]*askedWish{}
			w.manager.wishes = nil
			gets, merges := w.gets, w.merges
			w.run(100)
			w.expectEvents()
			if w.gets != gets || w.merges != merges {
				t.Errorf("%d requests and %d merges without a reason", w.gets-gets, w.merges-merges)
			}
		})
	}
}

// What the kubelet does not understand changes nothing.
func TestTargetsAreInvalid(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 0))
	w.targets = allTargets
	w.run(20)
	invalid := slices.Clone(allTargets)
	invalid[0].PodSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Unknown"}}}
	w.node = &v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{DrainTargets: invalid}}}
	targets, known := w.manager.targets(w.ctx)
	w.manager.step(w.ctx, targets, known)
	w.expectStates(map[string]state{"a": held})
}

// The mirror pod was deleted, and its request processed, in the second in which the API server ends.
func TestMirrorPodIsDeletedAtTheEnd(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
	w.api, w.targets = "a", allTargets
	w.run(3)
	for !w.clock.Now().Add(time.Second).Equal(w.pods["a"].terminates) {
		w.run(1)
	}
	w.pods["a"].mirror = nil
	w.processRequests()
	w.run(1)
	if w.answers() {
		t.Fatal("the API server runs")
	}
	w.run(60)
	w.expectStates(map[string]state{"a": refused})
	w.expectRunning("a")
}

// The end counts when the pod has no mirror pod, also none that replaced the one of the stop.
func TestMirrorPodIsReplacedAtTheEnd(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
	w.targets = allTargets
	w.pods["a"].finalizer = true
	w.runUntil(0)
	w.pods["a"].mirror = newMirrorPod("a")
	w.run(30)
	w.expectStates(map[string]state{"a": stopping})
	w.pods["a"].finalizer = false
	w.run(5)
	w.expectStates(map[string]state{"a": held})
}

// At the end of its time, a stop is decided by what has happened last.
func TestStopIsDecidedLate(t *testing.T) {
	t.Run("the mirror pod is deleted", func(t *testing.T) {
		w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
		w.targets = allTargets
		w.pods["a"].finalizer = true
		w.runUntil(controllerTimeout - time.Second)
		w.pods["a"].finalizer = false
		w.run(3)
		w.expectStates(map[string]state{"a": held})
	})
	t.Run("the API server answers again", func(t *testing.T) {
		w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
		w.targets = allTargets
		w.run(4)
		w.idle = true
		w.runUntil(controllerTimeout - 10*time.Second)
		w.frozen = true
		w.run(20)
		w.frozen, w.idle = false, false
		w.run(2)
		w.expectStates(map[string]state{"a": held})
	})
}

// A change of the status counts also if the status is the same again.
func TestChangesOfStatusAreKept(t *testing.T) {
	s := &stop{}
	for i, active := range []int32{2, 2, 1, 2} {
		s.answered(time.Time{}, &v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{ActiveEvictionRequests: active}}})
		if want := i >= 2; s.changed != want {
			t.Errorf("changed after answer %d: %v, want %v", i, s.changed, want)
		}
	}
}

// Pods with the same priority stop in the order of their names, and names have namespaces.
func TestWishesAreOrdered(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"b/x", "a/z", "b/a", "a/y"} {
		mirror := newMirrorPod(name[2:])
		mirror.Namespace = name[:1]
		w.manager.ask(&podInterceptor{manager: w.manager, mirror: mirror}, "")
	}
	var got []string
	for wish := w.manager.nextWish(); wish != nil; wish = w.manager.nextWish() {
		got = append(got, keyOf(wish.mirror).String())
		w.manager.drop(wish)
	}
	if want := []string{"a/y", "a/z", "b/a", "b/x"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	w.pods["a"] = &staticPod{name: "a", mirror: newMirrorPod("a")}
	if w.manager.hasMirrorPod(types.NamespacedName{Namespace: "default", Name: "a"}) {
		t.Error("a pod of another namespace is taken for the mirror pod")
	}
}

// The pod, or the request, has changed since its stop was requested.
func TestPodChangesBeforeStop(t *testing.T) {
	canceled := []metav1.Condition{{Type: string(coordinationv1alpha1.EvictionRequestConditionCanceled), Status: metav1.ConditionTrue}}
	request := func(change func(*coordinationv1alpha1.EvictionRequest)) func(*world, *podInterceptor) {
		return func(w *world, i *podInterceptor) {
			r := newActiveRequest(i.mirror)
			change(r)
			if err := w.requests.GetIndexer().Replace([]any{r}, ""); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		change func(w *world, i *podInterceptor)
		want   error
	}{
		"not at all":                   {change: func(*world, *podInterceptor) {}},
		"the mirror pod is gone":       {change: func(w *world, _ *podInterceptor) { w.pods["a"].mirror = nil }, want: errReplaced},
		"the mirror pod is another":    {change: func(w *world, _ *podInterceptor) { w.pods["a"].mirror.UID = "another" }, want: errReplaced},
		"the manifest is gone":         {change: func(w *world, _ *podInterceptor) { w.pods["a"].visible = false }, want: errReplaced},
		"the manifest is another":      {change: func(_ *world, i *podInterceptor) { i.static.UID = "before" }, want: errReplaced},
		"the labels of the mirror pod": {change: func(w *world, _ *podInterceptor) { w.pods["a"].mirror.Labels = nil }, want: errReleased},
		"the node is unknown":          {change: func(w *world, _ *podInterceptor) { w.node = nil }, want: errReleased},
		"the request is gone":          {change: request(func(r *coordinationv1alpha1.EvictionRequest) { r.Name = "another" }), want: errNotWanted},
		"the request is another":       {change: request(func(r *coordinationv1alpha1.EvictionRequest) { r.UID = "another" }), want: errNotWanted},
		"the request is withdrawn":     {change: request(func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Requesters = nil }), want: errNotWanted},
		"the request is being deleted": {change: request(func(r *coordinationv1alpha1.EvictionRequest) { r.DeletionTimestamp = &metav1.Time{} }), want: errNotWanted},
		"the request is canceled":      {change: request(func(r *coordinationv1alpha1.EvictionRequest) { r.Status.Conditions = canceled }), want: errNotWanted},
		"no answer about the request":  {change: func(w *world, _ *podInterceptor) { w.frozen = true }, want: errNoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
			selected := slices.Clone(allTargets)
			selected[0].PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
			w.node = &v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{DrainTargets: selected}}}
			i := &podInterceptor{manager: w.manager, static: w.pods["a"].object(), mirror: w.pods["a"].mirror}
			w.pods["a"].mirror = i.mirror.DeepCopy()
			if err := w.requests.GetIndexer().Add(newActiveRequest(i.mirror)); err != nil {
				t.Fatal(err)
			}
			test.change(w, i)
			if err := w.manager.begin(w.ctx, &wish{podInterceptor: i, request: "request"}); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if got, want := w.manager.Holds.Withheld(i.static), test.want == nil; got != want {
				t.Errorf("withheld %v, want %v", got, want)
			}
		})
	}
}

// Only errors that an administrator does not know yet are events.
func TestStopFails(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
	w.targets = allTargets
	if err := os.RemoveAll(w.directory); err != nil {
		t.Fatal(err)
	}
	w.run(2)
	w.expectStates(map[string]state{"a": running})
	if got := w.countEvents(FailedReason); got == 0 {
		t.Errorf("no events %s", FailedReason)
	}
	if err := os.Mkdir(w.directory, 0o700); err != nil {
		t.Fatal(err)
	}
	w.run(4)
	w.idle = true
	w.run(200)
	w.expectStates(map[string]state{"a": refused})
	w.countEvents("")
	w.idle = false
	w.run(100)
	w.expectEvents()
}

// Many pods wait: a sync asks the API server once, and does not log the same outage again and again.
func TestManyPodsWait(t *testing.T) {
	var pods []*staticPod
	for i := range 200 {
		pods = append(pods, newStaticPod(fmt.Sprint("pod-", i), 0, 0))
	}
	w := newWorld(t, pods...)
	lines := 0
	w.ctx = klog.NewContext(w.ctx, funcr.New(func(_, line string) {
		if strings.Contains(line, "does not answer") {
			lines++
		}
	}, funcr.Options{}))
	w.targets = allTargets
	if err := os.RemoveAll(w.directory); err != nil {
		t.Fatal(err)
	}
	w.run(10)
	if w.gets > 10 {
		t.Errorf("%d requests in 10 seconds", w.gets)
	}
	for range 2 {
		w.frozen = true
		w.run(100)
		w.frozen = false
		w.run(2)
	}
	if lines != 2 {
		t.Errorf("%d lines about 2 outages", lines)
	}
}

func TestPodsStopInOrderOfPriority(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 100, 5*time.Second), newStaticPod("b", 0, 10*time.Second), newStaticPod("c", 50, 0))
	w.targets = allTargets
	w.run(5)
	w.expectStates(map[string]state{"a": running, "b": stopping, "c": running})
	w.run(40)
	w.expectStates(map[string]state{"a": held, "b": held, "c": held})
	if want := []string{"b", "c", "a"}; !slices.Equal(w.stopped, want) {
		t.Errorf("stopped in the order %q, want %q", w.stopped, want)
	}
	if got := w.countEvents(HeldReason); got != 3 {
		t.Errorf("%d events %s, want 3", got, HeldReason)
	}
	// A restart without the API server.
	w.frozen = true
	w.startKubelet()
	w.run(300)
	w.expectRunning()
	w.frozen, w.targets = false, nil
	w.run(3)
	w.expectRunning("a", "b", "c")
}

func TestPodsOutsideOfTargetsRun(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 100, 0), newStaticPod("b", 0, 0))
	w.targets = targetsUpTo(50)
	w.run(20)
	w.expectStates(map[string]state{"a": running, "b": held})
	w.expectRunning("a")
}

func TestMaintenanceEndsDuringStop(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 20*time.Second))
	w.targets = allTargets
	w.run(5)
	w.expectStates(map[string]state{"a": stopping})
	w.targets = nil
	w.run(2)
	w.expectStates(map[string]state{"a": running})
	w.run(30)
	w.expectRunning("a")
	// The next maintenance stops it.
	w.targets = allTargets
	w.run(40)
	w.expectStates(map[string]state{"a": held})
}

// The kubelet does not see a pod that may run again before it has forgotten the pod that ends: then
// it would not count the pod when it admits others. Nothing but time must pass until it does.
func TestPodReturns(t *testing.T) {
	for name, test := range map[string]struct {
		act func(w *world)
		// state is that of the pod when it may run again.
		state state
	}{
		"the maintenance ends":                 {act: func(w *world) { w.targets = nil }, state: running},
		"the maintenance ends, then an outage": {act: func(w *world) { w.targets = nil; w.run(1); w.frozen = true }, state: running},
		"the maintenance ends, then the node is unknown": {
			act: func(w *world) { w.targets = nil; w.run(1); w.node, w.idle = nil, true }, state: running,
		},
		"its mirror pod is deleted": {act: func(w *world) { w.pods["a"].mirror, w.idle = nil, true }, state: running},
		"the control plane needs it": {
			act: func(w *world) { w.frozen = true; w.runUntil(outageTimeout - time.Second) }, state: refused,
		},
		"the kubelet has not processed its end for long": {
			act: func(w *world) {
				w.frozen, w.pods["a"].lingers = true, time.Minute
				w.runUntil(outageTimeout - time.Second)
			}, state: refused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newStaticPod("a", 0, 20*time.Second))
			w.targets = allTargets
			w.run(5)
			w.expectStates(map[string]state{"a": stopping})
			test.act(w)
			w.run(1)
			w.expectStates(map[string]state{"a": test.state})
			pod := w.pods["a"]
			for seconds := 0; pod.terminating; seconds++ {
				if !w.manager.Holds.Withheld(pod.object()) || pod.visible {
					t.Fatal("the pod is seen while the kubelet knows the one that ends")
				}
				if !slices.Contains(w.manager.Holds.undecided(), keyOf(pod.object())) {
					t.Error("the pod has left for good")
				}
				if seconds > 100 {
					t.Fatal("the pod does not end")
				}
				w.run(1)
			}
			if w.manager.Holds.Withheld(pod.object()) || !pod.visible {
				t.Error("the pod is not seen when the kubelet has forgotten the one that ended")
			}
			w.run(1)
			w.expectRunning("a")
			merges := w.merges
			w.run(5)
			if w.merges != merges {
				t.Error("static pods are merged without a reason")
			}
		})
	}
}

// A pod that returns may be stopped again, and keeps its mirror pod.
func TestMaintenanceEndsAndBeginsDuringStop(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 20*time.Second))
	w.targets = allTargets
	w.run(5)
	w.targets = nil
	w.run(2)
	w.expectStates(map[string]state{"a": running})
	mirror := w.pods["a"].mirror
	w.targets = allTargets
	for !w.pods["a"].visible {
		w.run(1)
	}
	if w.pods["a"].mirror != mirror {
		t.Error("the pod that returns has another mirror pod")
	}
	w.run(40)
	w.expectStates(map[string]state{"a": held})
	w.targets = nil
	w.run(3)
	w.expectRunning("a")
}

func TestKubeletCrashes(t *testing.T) {
	for _, seconds := range []int{1, 2, 3, 5, 8, 13} {
		t.Run(fmt.Sprint(seconds), func(t *testing.T) {
			w := newWorld(t, newStaticPod("a", 0, 5*time.Second), newStaticPod("b", 1, 5*time.Second))
			w.targets = allTargets
			w.run(seconds)
			w.startKubelet()
			w.run(40)
			w.expectStates(map[string]state{"a": held, "b": held})
			w.expectRunning()
		})
	}
}

func TestManifestChangesWhileHeld(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 0), newStaticPod("b", 0, 0))
	w.targets = allTargets
	w.run(20)
	w.pods["a"].manifest = false
	// A new manifest starts, gets a request, and is stopped.
	w.pods["c"] = newStaticPod("c", 0, time.Second)
	w.pods["c"].manifest = true
	w.merge()
	w.run(1)
	w.expectRunning("c")
	w.run(20)
	w.expectStates(map[string]state{"a": held, "b": held, "c": held})
	w.targets = nil
	w.run(3)
	w.expectRunning("b", "c")
}

// The only API server of the cluster comes back, and nothing else is refused.
func TestAPIServerIsStaticPod(t *testing.T) {
	w := newWorld(t, newStaticPod("apiserver", 100, 5*time.Second), newStaticPod("proxy", 0, 2*time.Second), newStaticPod("scheduler", 100, 2*time.Second))
	w.api, w.targets = "apiserver", allTargets
	w.run(120)
	w.expectStates(map[string]state{"apiserver": refused, "proxy": held, "scheduler": held})
	w.expectRunning("apiserver")
	if got := w.countEvents(RefusedReason); got != 1 {
		t.Errorf("%d events %s, want 1", got, RefusedReason)
	}
	w.startKubelet()
	w.run(120)
	w.expectRunning("apiserver")
	w.targets = nil
	w.run(3)
	w.expectRunning("apiserver", "proxy", "scheduler")
}

// Without the only controllers nothing would end the maintenance.
func TestControllersAreStaticPod(t *testing.T) {
	w := newWorld(t, newStaticPod("controllers", 100, 5*time.Second), newStaticPod("proxy", 0, 2*time.Second), newStaticPod("scheduler", 100, 2*time.Second))
	w.controllers, w.targets = "controllers", allTargets
	w.run(300)
	w.expectStates(map[string]state{"controllers": refused, "proxy": held, "scheduler": held})
	w.targets = nil
	w.run(3)
	w.expectRunning("controllers", "proxy", "scheduler")
}

// Other controllers take over.
func TestControllersAreReplaced(t *testing.T) {
	w := newWorld(t, newStaticPod("controllers", 0, 5*time.Second))
	w.targets = allTargets
	w.run(4)
	w.idle = true
	w.run(60)
	w.expectStates(map[string]state{"controllers": ended})
	w.idle = false
	w.run(2)
	w.expectStates(map[string]state{"controllers": held})
}

// A node may not read the request of a mirror pod that is gone. Whether controllers run shows in the
// status of the node, too.
func TestRequestCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		idle bool
		err  error
		want state
	}{
		"controllers run":         {err: apierrors.NewForbidden(schema.GroupResource{}, "", nil), want: held},
		"no controllers run":      {err: apierrors.NewForbidden(schema.GroupResource{}, "", nil), idle: true, want: refused},
		"for another reason only": {err: errors.New("connection refused"), want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
			w.targets = allTargets
			w.run(4)
			w.idle, w.unreadable = test.idle, true
			i := w.manager.current.interceptor
			i.watchFailed(w.ctx, &cache.Reflector{}, apierrors.NewForbidden(schema.GroupResource{}, "", nil)) // Of an API server that starts.
			for range 200 {
				if s := w.states()["a"]; s == held || s == refused {
					break
				} else if s == ended {
					i.watchFailed(w.ctx, &cache.Reflector{}, test.err)
				}
				w.run(1)
			}
			w.expectStates(map[string]state{"a": test.want})
		})
	}
}

// Without its mirror pod, the request of a pod is processed before the pod has ended. That must not
// be the proof that the control plane works without it.
func TestMirrorPodIsDeletedDuringStop(t *testing.T) {
	for name, test := range map[string]struct {
		api, controllers string
		want             state
	}{
		"pod that nothing needs": {want: held},
		"API server":             {api: "a", want: refused},
		"controllers":            {controllers: "a", want: refused},
	} {
		for _, after := range []int{3, 4, 5, 6} {
			t.Run(fmt.Sprintf("%s, after %d seconds", name, after), func(t *testing.T) {
				w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
				w.api, w.controllers, w.targets = test.api, test.controllers, allTargets
				w.run(after)
				w.expectStates(map[string]state{"a": stopping})
				w.pods["a"].mirror = nil
				w.run(300)
				w.expectStates(map[string]state{"a": test.want})
			})
		}
	}
}

// A finalizer keeps a mirror pod in the API server. Other pods must not wait for it.
func TestMirrorPodWithFinalizer(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 5*time.Second), newStaticPod("b", 10, 5*time.Second))
	w.pods["a"].finalizer = true
	w.targets = allTargets
	w.run(100)
	w.expectStates(map[string]state{"a": stopping, "b": running})
	w.countEvents("")
	w.run(100)
	w.expectStates(map[string]state{"a": refused, "b": held})
	if event := <-w.recorder.Events; !strings.Contains(event, "its mirror pod was not deleted within 2m0s") {
		t.Errorf("event %q does not name the cause", event)
	}
}

// The stop was requested for a pod that an edited manifest has replaced since.
func TestManifestChangesBeforeStop(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 20*time.Second), newStaticPod("b", 10, 20*time.Second))
	w.targets = allTargets
	w.run(5)
	w.expectStates(map[string]state{"a": stopping, "b": running})
	w.run(20)
	// The old wish, with the UID of a pod that has no containers.
	old := &podInterceptor{manager: w.manager, static: w.pods["b"].object(), mirror: newMirrorPod("b"), requests: w.requests}
	old.static.UID = "old"
	w.pods["old"] = &staticPod{name: "old"}
	wish := w.manager.ask(old, "")
	w.pods["b"].mirror = nil
	w.run(30)
	select {
	case err := <-wish.begun:
		if !errors.Is(err, errReplaced) {
			t.Errorf("error %v, want %v", err, errReplaced)
		}
	default:
		t.Error("the old wish was not decided")
	}
	w.run(60)
	w.expectStates(map[string]state{"a": held, "b": held, "old": running})
}

// The API server answers that there is no such node.
func TestNodeIsDeletedDuringStop(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
	w.targets = allTargets
	w.run(4)
	w.deleted, w.idle = true, true
	if !w.manager.apiServerAnswers(w.ctx) {
		t.Error("the answer that there is no node is taken for none")
	}
	w.run(60)
	w.expectStates(map[string]state{"a": ended})
	w.idle = false
	w.run(3)
	w.expectStates(map[string]state{"a": held})
}

func TestAPIServerFreezes(t *testing.T) {
	for name, test := range map[string]struct {
		before, frozen int
		want           state
	}{
		"before the stop":                {before: 0, frozen: 60, want: held},
		"shortly after the end":          {before: 9, frozen: 25, want: held},
		"for the whole grace period":     {before: 4, frozen: 6, want: held},
		"from the stop, for long":        {before: 4, frozen: 60, want: refused},
		"when the end was processed":     {before: 20, frozen: 600, want: held},
		"again and again, never for 30s": {before: -1, want: held},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newStaticPod("a", 0, 5*time.Second))
			w.targets = allTargets
			if test.before < 0 {
				w.run(4)
				w.idle = true
				for range 5 {
					w.frozen = true
					w.run(20)
					w.frozen = false
					w.run(2)
				}
				w.idle = false
			} else {
				w.run(test.before)
				w.frozen = true
				w.run(test.frozen)
				w.frozen = false
			}
			w.run(30)
			w.expectStates(map[string]state{"a": test.want})
		})
	}
}

func TestPodDoesNotEnd(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, time.Hour), newStaticPod("b", 0, 0))
	w.targets = allTargets
	w.run(600)
	w.expectStates(map[string]state{"a": stopping, "b": running})
	w.expectRunning("b")
	w.run(3600)
	w.expectStates(map[string]state{"a": held, "b": held})
}

func TestCheckpointIsNotWritable(t *testing.T) {
	w := newWorld(t, newStaticPod("a", 0, 5*time.Second), newStaticPod("b", 1, 5*time.Second))
	w.targets = allTargets
	w.run(4)
	if err := os.RemoveAll(w.directory); err != nil {
		t.Fatal(err)
	}
	w.run(20)
	w.expectStates(map[string]state{"a": ended, "b": running})
	if got := w.countEvents(FailedReason); got != 1 {
		t.Errorf("%d events %s, want 1", got, FailedReason)
	}
	if err := os.Mkdir(w.directory, 0o700); err != nil {
		t.Fatal(err)
	}
	w.run(20)
	w.expectStates(map[string]state{"a": held, "b": held})
}

// TestAnyOrderOfEvents lets random events happen, with the checks of world.check after each second.
// In the end, a maintenance must have stopped all pods but those that it needs, and its end must
// start them all.
func TestAnyOrderOfEvents(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			grace := func() time.Duration { return time.Duration(random.IntN(40)) * time.Second }
			w := newWorld(t, newStaticPod("a", 0, grace()), newStaticPod("b", 10, grace()), newStaticPod("c", 10, grace()))
			needed := []string{"", "a", "b", "c"}
			w.api, w.controllers = needed[random.IntN(4)], needed[random.IntN(4)]
			for range 60 {
				switch random.IntN(10) {
				case 0, 1:
					w.targets = allTargets
				case 2:
					w.targets = targetsUpTo(5)
				case 3:
					w.targets = nil
				case 4:
					w.startKubelet()
				case 5:
					w.frozen = !w.frozen
				case 6:
					w.idle = !w.idle
				case 7:
					w.pods["b"].manifest = !w.pods["b"].manifest || w.api == "b" || w.controllers == "b"
					w.merge()
				case 8:
					if w.answers() { // Someone deletes a mirror pod.
						w.pods[needed[1+random.IntN(3)]].mirror = nil
					}
				case 9:
					w.deleted = !w.deleted
				}
				w.run(random.IntN(30))
			}
			w.deleted = false
			w.frozen, w.idle, w.targets, w.pods["b"].manifest = false, false, nil, true
			w.merge()
			w.run(300)
			w.expectRunning("a", "b", "c")
			w.targets = allTargets
			w.run(900)
			want := map[string]state{"a": held, "b": held, "c": held}
			for _, name := range []string{w.api, w.controllers} {
				if name != "" {
					want[name] = refused
				}
			}
			w.expectStates(want)
			w.targets = nil
			w.run(10)
			w.expectRunning(slices.Sorted(maps.Keys(w.pods))...)
			w.expectStates(map[string]state{"a": running, "b": running, "c": running})
		})
	}
}
