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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
	"k8s.io/utils/ptr"
)

// surgerWithRequests is a surger that can only observe.
func surgerWithRequests(t *testing.T, requests ...*coordinationv1alpha1.EvictionRequest) *surger {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, request := range requests {
		if err := indexer.Add(request); err != nil {
			t.Fatal(err)
		}
	}
	return &surger{requests: indexer, nodeLister: corelisters.NewNodeLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}))}
}

func TestObservePod(t *testing.T) {
	longAgo := bubbleBegins.Add(-time.Hour)
	unreadySince := func(since time.Time) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: metav1.NewTime(since)}}
		}
	}
	createdAt := func(created time.Time) func(*v1.Pod) {
		return func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(created) }
	}
	tests := map[string]struct {
		changes  []func(*v1.Pod)
		minReady int32
		request  *coordinationv1alpha1.EvictionRequest
		want     []surgePod
		asked    []askedPod
	}{
		"serves":                       {want: []surgePod{{created: longAgo, available: true}}},
		"ready for as long as it must": {minReady: 3600, want: []surgePod{{created: longAgo, available: true}}},
		"ready for less":               {minReady: 3601, want: []surgePod{{created: longAgo}}},
		"briefly unready":              {changes: changed(unreadySince(bubbleBegins.Add(-29 * time.Second))), want: []surgePod{{created: longAgo}}},
		"unready for half a minute":    {changes: changed(unreadySince(bubbleBegins.Add(-30 * time.Second))), want: []surgePod{{created: longAgo, broken: true}}},
		"new and not ready": {
			changes: changed(createdAt(bubbleBegins.Add(-29*time.Second)), unreadySince(longAgo)),
			want:    []surgePod{{created: bubbleBegins.Add(-29 * time.Second)}},
		},
		"new and crashing": {
			changes: changed(createdAt(bubbleBegins.Add(-29*time.Second)), unreadySince(longAgo), func(p *v1.Pod) {
				p.Status.ContainerStatuses = []v1.ContainerStatus{{RestartCount: 1}}
			}),
			want: []surgePod{{created: bubbleBegins.Add(-29 * time.Second)}},
		},
		"pending for as long as the Deployment gives": {
			changes: changed(starting, createdAt(bubbleBegins.Add(-5*time.Minute))),
			want:    []surgePod{{created: bubbleBegins.Add(-5 * time.Minute), broken: true}},
		},
		"pending for half a minute": {
			changes: changed(starting, createdAt(bubbleBegins.Add(-30*time.Second))),
			want:    []surgePod{{created: bubbleBegins.Add(-30 * time.Second)}},
		},
		"has ended":  {changes: changed(ended)},
		"terminates": {changes: changed(terminating)},
		"asked": {
			request: asks("a"),
			want:    []surgePod{{created: longAgo, available: true, turn: ourTurn, since: bubbleBegins}},
			asked:   []askedPod{{since: bubbleBegins}},
		},
		"asked, the turn has begun": {
			request: asks("a", func(request *coordinationv1alpha1.EvictionRequest) {
				request.Status.Interceptors[0].StartTime = ptr.To(metav1.NewTime(bubbleBegins.Add(-time.Second)))
			}),
			want:  []surgePod{{created: longAgo, available: true, turn: ourTurn, since: bubbleBegins.Add(-time.Second)}},
			asked: []askedPod{{since: bubbleBegins.Add(-time.Second)}},
		},
		"asked, another interceptor has started": {
			request: asks("a", func(request *coordinationv1alpha1.EvictionRequest) {
				request.Status.Interceptors = append([]coordinationv1alpha1.InterceptorStatus{{Name: "other.example.com", StartTime: ptr.To(metav1.NewTime(longAgo))}}, request.Status.Interceptors...)
			}),
			want:  []surgePod{{created: longAgo, available: true, turn: ourTurn, since: bubbleBegins}},
			asked: []askedPod{{since: bubbleBegins}},
		},
		"asked, time unknown": {
			request: asks("a", func(request *coordinationv1alpha1.EvictionRequest) { request.Status.ActivationTime = nil }),
			want:    []surgePod{{created: longAgo, available: true, turn: ourTurn, since: bubbleBegins}},
			asked:   []askedPod{{since: bubbleBegins}},
		},
		"asked and terminates": {changes: changed(terminating), request: asks("a"), asked: []askedPod{{since: bubbleBegins, terminating: true}}},
		"asked and has ended":  {changes: changed(ended), request: asks("a"), asked: []askedPod{{since: bubbleBegins}}},
		"withdrawn":            {request: asks("a", nobodyWants), want: []surgePod{{created: longAgo, available: true, turn: withdrawn, since: bubbleBegins}}},
		"passed on, withdrawn": {request: asks("a", passed, nobodyWants), want: []surgePod{{created: longAgo, available: true, turn: withdrawn, since: bubbleBegins}}},
		"passed on":            {request: asks("a", passed), want: []surgePod{{created: longAgo, available: true, turn: evicting, since: bubbleBegins}}},
		"not our turn":         {request: asks("a", notYet), want: []surgePod{{created: longAgo, available: true}}},
		"canceled":             {request: asks("a", holding("Canceled")), want: []surgePod{{created: longAgo, available: true}}},
		"asked in another namespace": {
			request: asks("a", func(request *coordinationv1alpha1.EvictionRequest) { request.Namespace = "other" }),
			want:    []surgePod{{created: longAgo, available: true}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := surgerWithRequests(t)
			if tc.request != nil {
				s = surgerWithRequests(t, tc.request)
			}
			pod := webPod("a", tc.changes...)
			set := &replicaSet{view: web1(func(rs *apps.ReplicaSet) { rs.Spec.MinReadySeconds = tc.minReady })}
			s.unready.Saw(pod, unreadyAsReported(pod))
			s.observePod(bubbleBegins, &workload{deployment: web(), now: bubbleBegins, unready: &s.unready}, set, pod)

			var living []*v1.Pod
			for i := range tc.want {
				tc.want[i].uid = pod.UID
				living = append(living, pod)
			}
			for i := range tc.asked {
				tc.asked[i].uid = pod.UID
			}
			if diff := cmp.Diff(tc.want, set.pods, cmp.AllowUnexported(surgePod{})); diff != "" {
				t.Errorf("unexpected pods (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.asked, set.asked, cmp.AllowUnexported(askedPod{})); diff != "" {
				t.Errorf("unexpected pods that are asked (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(living, set.living); diff != "" {
				t.Errorf("unexpected living pods (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	// sizes is the size that a Deployment wants of its ReplicaSets web-1 and web-2, and how many
	// extra replicas they may have.
	type sizes struct {
		Rolling bool
		Wanted  []int
		Room    []int
	}
	surge := annotated(`{"surge":1,"of":3,"desired":2}`)
	old := func(rs *apps.ReplicaSet) { asWeb2(rs); rs.Spec.Template.Spec.Containers[0].Image = "web:0" }
	empty := web1(old, sized(0, 2, 3))
	tests := map[string]struct {
		deployment func(*apps.Deployment)
		sets       []*apps.ReplicaSet
		asked      bool
		want       sizes
	}{
		"at rest":                              {sets: []*apps.ReplicaSet{web1(sized(2, 2, 3)), empty}, want: sizes{Wanted: []int{2, 0}, Room: []int{1, 0}}},
		"in a surge":                           {sets: []*apps.ReplicaSet{web1(sized(3, 2, 3), surge), empty}, want: sizes{Wanted: []int{2, 0}, Room: []int{1, 0}}},
		"in an invalid surge":                  {sets: []*apps.ReplicaSet{web1(sized(4, 2, 3), surge), empty}, want: sizes{Wanted: []int{4, 0}, Room: []int{0, 0}}},
		"scaled by another client, and asked":  {sets: []*apps.ReplicaSet{web1(sized(4, 2, 3)), empty}, asked: true, want: sizes{Wanted: []int{2, 0}, Room: []int{1, 0}}},
		"scaled by another client, none asked": {sets: []*apps.ReplicaSet{web1(sized(4, 2, 3)), empty}, want: sizes{Wanted: []int{4, 0}, Room: []int{0, 0}}},
		"a scale-up, and asked":                {deployment: withReplicas(5, 2), sets: []*apps.ReplicaSet{web1(sized(2, 2, 3)), empty}, asked: true, want: sizes{Wanted: []int{5, 0}, Room: []int{2, 0}}},
		"a scale-up, none asked":               {deployment: withReplicas(5, 2), sets: []*apps.ReplicaSet{web1(sized(2, 2, 3)), empty}, want: sizes{Wanted: []int{2, 0}, Room: []int{2, 0}}},
		"a scale-up in a surge":                {deployment: withReplicas(5, 2), sets: []*apps.ReplicaSet{web1(sized(3, 2, 3), surge), empty}, want: sizes{Wanted: []int{5, 0}, Room: []int{2, 0}}},
		"from nothing, and asked":              {sets: []*apps.ReplicaSet{web1(sized(0, 2, 3)), empty}, asked: true, want: sizes{Wanted: []int{0, 0}, Room: []int{0, 0}}},
		"a rollout":                            {sets: []*apps.ReplicaSet{web1(sized(1, 2, 3)), web1(old, sized(2, 2, 3))}, asked: true, want: sizes{Rolling: true, Wanted: []int{1, 2}, Room: []int{0, 0}}},
		"a rollout begins in a surge":          {sets: []*apps.ReplicaSet{web1(old, sized(3, 2, 3), surge)}, asked: true, want: sizes{Rolling: true, Wanted: []int{3}, Room: []int{0}}},
		"a rollout begins, scaled as well":     {deployment: withReplicas(5, 2), sets: []*apps.ReplicaSet{web1(old, sized(3, 2, 3), surge)}, asked: true, want: sizes{Rolling: true, Wanted: []int{3}, Room: []int{0}}},
		"a surge makes no rollout":             {sets: []*apps.ReplicaSet{web1(sized(3, 2, 3), surge), web1(old, sized(1, 2, 3), annotated(`{"surge":1,"of":1,"desired":0}`))}, want: sizes{Rolling: true, Wanted: []int{3, 1}, Room: []int{0, 0}}},
		"being deleted": {
			deployment: func(d *apps.Deployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(bubbleBegins)) },
			sets:       []*apps.ReplicaSet{web1(sized(2, 2, 3)), empty}, asked: true,
			want: sizes{Wanted: []int{2, 0}, Room: []int{0, 0}},
		},
		"being deleted, before a rollout could begin": {
			deployment: func(d *apps.Deployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(bubbleBegins)) },
			sets:       []*apps.ReplicaSet{web1(old, sized(3, 2, 3), surge)}, asked: true,
			want: sizes{Wanted: []int{2}, Room: []int{0}},
		},
		"being deleted, with two surges that are forged": {
			deployment: func(d *apps.Deployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(bubbleBegins)) },
			sets: []*apps.ReplicaSet{
				web1(sized(2, 2, 3), annotated(`{"surge":2,"of":2,"desired":2}`)), web1(old, sized(1, 2, 3), annotated(`{"surge":1,"of":1,"desired":2}`)),
			},
			want: sizes{Wanted: []int{1, 1}, Room: []int{0, 0}},
		},
		"Recreate": {
			deployment: func(d *apps.Deployment) {
				d.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
			},
			sets: []*apps.ReplicaSet{web1(sized(2, 2, 3)), empty}, asked: true,
			want: sizes{Wanted: []int{2, 0}, Room: []int{0, 0}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := web(withReplicas(2, 1))
			if tc.deployment != nil {
				tc.deployment(d)
			}
			s := surgerWithRequests(t)
			if tc.asked {
				s = surgerWithRequests(t, asks("a"))
			}
			pods := map[types.UID][]*v1.Pod{tc.sets[0].UID: {webPod("a")}}
			w := s.observe(t.Context(), bubbleBegins, d, tc.sets, pods)
			got := sizes{Rolling: w.rolling}
			for _, set := range w.sets {
				got.Wanted, got.Room = append(got.Wanted, set.wanted), append(got.Room, set.room)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected workload (-want, +got):\n%s", diff)
			}
		})
	}
}

// Pods that are about to be created are counted, pods that cannot be created are not.
func TestToCreate(t *testing.T) {
	tests := map[string]struct {
		reason string
		want   int
	}{
		"about to be created": {"", 2},
		"cannot be created":   {"FailedCreate", 0},
		"cannot be deleted":   {"FailedDelete", 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rs := web1(sized(3, 3, 4))
			if tc.reason != "" {
				rs.Status.Conditions = []apps.ReplicaSetCondition{{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: tc.reason}}
			}
			w := surgerWithRequests(t).observe(t.Context(), bubbleBegins, web(withReplicas(3, 1)), []*apps.ReplicaSet{rs}, map[types.UID][]*v1.Pod{rs.UID: {webPod("a")}})
			if got := w.sets[0].toCreate; got != tc.want {
				t.Errorf("%d are to be created, want %d", got, tc.want)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	w, set, asked := surging()
	other := &replicaSet{asked: []askedPod{{uid: "c"}, {uid: "d", terminating: true}}}
	other.wanted = 2
	other.recorded = recorded(2, "e")
	other.pods = []surgePod{pod("c", "serving"), pod("e", "serving"), pod("f", "serving")}
	w.sets = append(w.sets, other)
	want := progress{asked: 2, surge: 1 + 3, replaced: 0 + 2}
	if diff := cmp.Diff(want, w.progress(), cmp.AllowUnexported(progress{})); diff != "" {
		t.Errorf("unexpected progress (-want, +got):\n%s", diff)
	}

	asked.terminating = true
	set.asked, set.recorded = []askedPod{asked}, recorded(0)
	w.sets = []*replicaSet{set}
	if p := w.progress(); p.inProgress() {
		t.Errorf("in progress although the last pod terminates: %+v", p)
	}
}

func TestTurnDeadline(t *testing.T) {
	progressing := func(at time.Time) func(*workload, *replicaSet) {
		return func(w *workload, _ *replicaSet) {
			w.deployment.Status.Conditions = append(w.deployment.Status.Conditions, apps.DeploymentCondition{Type: apps.DeploymentProgressing, LastUpdateTime: metav1.NewTime(at)})
		}
	}
	rolling := func(w *workload, _ *replicaSet) { w.rolling = true }
	since := func(at time.Time) func(*workload, *replicaSet) {
		return func(_ *workload, set *replicaSet) { set.recorded.Since = metav1.NewTime(at) }
	}
	minute := func(n time.Duration) time.Time { return began.Add(n * time.Minute) }
	tests := map[string]struct {
		changes []func(*workload, *replicaSet)
		// taken, heartbeat and eta belong to a turn that another process has started.
		taken, heartbeat, eta time.Time
		// want is the start of the timeout, which is 5 minutes.
		want time.Time
	}{
		"from the beginning of the turn":            {want: began},
		"from the last progress":                    {changes: []func(*workload, *replicaSet){since(later)}, want: later},
		"not from before the turn":                  {changes: []func(*workload, *replicaSet){since(began.Add(-time.Hour))}, want: began},
		"from the last progress of a rollout":       {changes: []func(*workload, *replicaSet){rolling, progressing(later)}, want: later},
		"progress of a rollout before the turn":     {changes: []func(*workload, *replicaSet){rolling, progressing(began.Add(-time.Hour))}, want: began},
		"progress of a rollout before the last pod": {changes: []func(*workload, *replicaSet){rolling, progressing(began.Add(time.Minute)), since(later)}, want: later},
		"progress without a rollout":                {changes: []func(*workload, *replicaSet){progressing(later)}, want: began},
		"a rollout without a condition":             {changes: []func(*workload, *replicaSet){rolling}, want: began},
		"a process that began it":                   {taken: began, want: began},
		"one that was never reported":               {taken: minute(30), want: minute(30)},
		"one that was away for long":                {heartbeat: minute(2), taken: minute(30), want: minute(27)},
		"one that was not away":                     {heartbeat: minute(30), taken: minute(30), want: began},
		"one that was away between two heartbeats":  {heartbeat: minute(29), taken: minute(30), want: began},
		"one that was away before":                  {heartbeat: minute(30), taken: minute(30), eta: minute(32), want: minute(27)},
		"one that was away twice":                   {heartbeat: minute(30), taken: minute(60), eta: minute(32), want: minute(56)},
		"progress since it was away before":         {heartbeat: minute(30), taken: minute(60), eta: minute(32), changes: []func(*workload, *replicaSet){since(minute(29))}, want: minute(58)},
		"an ETA from when the deadline was longer":  {heartbeat: minute(30), taken: minute(60), eta: minute(90), want: minute(60)},
		"progress before it was away":               {heartbeat: minute(20), taken: minute(30), changes: []func(*workload, *replicaSet){since(minute(18))}, want: minute(27)},
		"progress while it was away":                {heartbeat: minute(2), taken: minute(30), changes: []func(*workload, *replicaSet){since(minute(18))}, want: minute(30)},
		"progress since":                            {heartbeat: minute(2), taken: minute(30), changes: []func(*workload, *replicaSet){since(minute(31))}, want: minute(31)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, set, asked := surging()
			w.now = later
			asked.history = evictionturn.History{Taken: tc.taken, Heartbeat: tc.heartbeat, ETA: tc.eta}
			for _, change := range tc.changes {
				change(w, set)
			}
			if got, _ := w.turnDeadline(set, asked); !got.Equal(tc.want.Add(5 * time.Minute)) {
				t.Errorf("got %v, want 5 minutes after %v", got, tc.want)
			}
		})
	}
}

// The start of a turn is stored without fractions of a second, and the turn is taken after that
// write. The deadline is therefore slightly later than the stored time implies, which is no outage.
func TestETA(t *testing.T) {
	tests := map[string]struct {
		taken, heartbeat, eta time.Duration
		want                  time.Duration
	}{
		"the first process":           {taken: 50 * time.Millisecond},
		"a second one, at once":       {taken: 30 * time.Second, heartbeat: 20 * time.Second},
		"a second one, after a while": {taken: 10 * time.Minute, heartbeat: 2 * time.Minute, want: 12 * time.Minute},
		"a third one, at once":        {taken: 11 * time.Minute, heartbeat: 11 * time.Minute, eta: 12 * time.Minute, want: 12 * time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, set, asked := surging()
			began := asked.since
			asked.history.Taken = began.Add(tc.taken)
			if tc.heartbeat > 0 {
				asked.history.Heartbeat = began.Add(tc.heartbeat)
			}
			if tc.eta > 0 {
				asked.history.ETA = began.Add(tc.eta)
			}
			want := time.Time{}
			if tc.want > 0 {
				want = began.Add(tc.want)
			}
			if _, got := w.turnDeadline(set, asked); !got.Equal(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
