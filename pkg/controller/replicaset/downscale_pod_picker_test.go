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

package replicaset

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// withPicker gives a ReplicaSet a picker.
func withPicker(rs *apps.ReplicaSet) {
	rs.Spec.DownscalePodPicker = &v1.DownscalePodPicker{HTTP: &v1.HTTPDownscalePodPicker{Host: "picker.default.svc"}}
}

// pickersWith returns pickers that have this result for web-1.
func pickersWith(result podpicker.Result) *pickers {
	client := newFakeAsker(func(types.NamespacedName) {})
	client.asked[webKey] = &fakeQuestion{result: &result}
	return &pickers{client: client, recorder: record.NewFakeRecorder(10)}
}

var webKey = types.NamespacedName{Namespace: "default", Name: "web-1"}

func chosen(names ...string) map[string]int { return ranksOf(podpicker.RankChosen, names) }

func ranksOf(rank int, names []string) map[string]int {
	ranks := map[string]int{}
	for _, name := range names {
		ranks[name] = rank
	}
	return ranks
}

// The picker is asked about pods that are assigned, running and ready, and how many of these have to
// go. It is not asked if there is nothing to decide.
func TestQuestion(t *testing.T) {
	pods := func(changes ...func(*v1.Pod)) []*v1.Pod {
		pods := []*v1.Pod{rankedPod("a"), rankedPod("b"), rankedPod("c")}
		for _, change := range changes {
			pods = append(pods, rankedPod(fmt.Sprint("d", len(pods)), change))
		}
		return pods
	}
	for name, test := range map[string]struct {
		pods       []*v1.Pod
		diff       int
		requests   []*coordinationv1alpha1.EvictionRequest
		rs         *apps.ReplicaSet
		intercepts bool
		// unknown means that the requests have not synced.
		unknown  bool
		noPicker bool
		// want is empty if nobody is asked.
		want     []string
		wantPods int
	}{
		"no picker":                         {pods: pods(), diff: 1, noPicker: true},
		"too few pods":                      {pods: pods(), diff: -1},
		"no surplus":                        {pods: pods(), diff: 0},
		"one of three":                      {pods: pods(), diff: 1, want: []string{"a", "b", "c"}, wantPods: 1},
		"two of three":                      {pods: pods(), diff: 2, want: []string{"a", "b", "c"}, wantPods: 2},
		"all":                               {pods: pods(), diff: 3},
		"cheap ones are candidates":         {pods: pods(cheapToDelete), diff: 1, want: []string{"a", "b", "c", "d3"}, wantPods: 1},
		"one is not assigned":               {pods: pods(unassigned), diff: 2, want: []string{"a", "b", "c"}, wantPods: 1},
		"one is pending":                    {pods: pods(phase(v1.PodPending)), diff: 2, want: []string{"a", "b", "c"}, wantPods: 1},
		"one is in an unknown phase":        {pods: pods(phase(v1.PodUnknown)), diff: 2, want: []string{"a", "b", "c"}, wantPods: 1},
		"one is not ready":                  {pods: pods(notReady), diff: 2, want: []string{"a", "b", "c"}, wantPods: 1},
		"those that are not ready suffice":  {pods: pods(notReady, unassigned), diff: 2},
		"more than suffice":                 {pods: pods(notReady, unassigned), diff: 1},
		"all candidates go":                 {pods: pods(notReady), diff: 4},
		"a pod is asked to leave":           {pods: pods(), diff: 2, intercepts: true, requests: requests(requestOf("b")), want: []string{"a", "c"}, wantPods: 1},
		"a pod is asked to leave, and goes": {pods: pods(), diff: 1, intercepts: true, requests: requests(requestOf("b"))},
		"its request was canceled":          {pods: pods(), diff: 1, intercepts: true, requests: requests(requestOf("b", canceled)), want: []string{"a", "b", "c"}, wantPods: 1},
		"requests do not matter":            {pods: pods(), diff: 1, requests: requests(requestOf("b")), want: []string{"a", "b", "c"}, wantPods: 1},
		"a surge ends":                      {pods: pods(), diff: 1, intercepts: true, requests: requests(requestOf("b")), rs: withLeaving("b")},
		"a surge ends, requests unknown":    {pods: pods(), diff: 1, intercepts: true, unknown: true, rs: withLeaving("b")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			if test.intercepts {
				f.intercept(t)
				f.rsc.evictions.requestsSynced = func() bool { return !test.unknown }
			}
			for _, request := range test.requests {
				f.cached(t, request)
			}
			rs := test.rs
			if rs == nil {
				rs = newReplicaSetOf()
			}
			if !test.noPicker {
				withPicker(rs)
			}
			q, found := f.rsc.question(f.ctx, rs, test.pods, test.diff)
			if found != (test.want != nil) {
				t.Fatalf("asks: %t, question %+v", found, q)
			}
			if q.NamespacedName != (types.NamespacedName{Namespace: rs.Namespace, Name: rs.Name}) {
				t.Errorf("the question is of %s", q.NamespacedName)
			}
			if !found {
				return
			}
			if diff := cmp.Diff(test.want, q.Candidates); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
			var uids []string
			for _, uid := range q.CandidateUIDs {
				uids = append(uids, string(uid)) // The name of a pod is its UID here.
			}
			if diff := cmp.Diff(test.want, uids); diff != "" {
				t.Errorf("UIDs (-want +got):\n%s", diff)
			}
			if q.Pods != test.wantPods || q.UID != rs.UID || q.Replicas != *rs.Spec.Replicas || q.Picker != rs.Spec.DownscalePodPicker {
				t.Errorf("question %+v", q)
			}
		})
	}
}

// A scale-down with a picker deletes the first pod of each pair: the choice of the picker stands after
// node, phase, readiness, requests and deletion cost, and before time. It replaces the spread over nodes.
func TestPickedOrder(t *testing.T) {
	const a, b = "a", "b"
	others := []*v1.Pod{rankedPod("c", onSharedNode), rankedPod("d", onSharedNode)}
	ranks := func(ofA, ofB int) map[string]int { return map[string]int{a: ofA, b: ofB} }
	for name, test := range map[string]struct {
		first, second *v1.Pod
		ranks         map[string]int
		requests      []*coordinationv1alpha1.EvictionRequest
		rs            *apps.ReplicaSet
	}{
		"not assigned before chosen":         {first: rankedPod(a, unassigned), second: rankedPod(b), ranks: chosen(b)},
		"pending before chosen":              {first: rankedPod(a, phase(v1.PodPending)), second: rankedPod(b), ranks: chosen(b)},
		"in an unknown phase before chosen":  {first: rankedPod(a, phase(v1.PodUnknown)), second: rankedPod(b), ranks: chosen(b)},
		"not ready before chosen":            {first: rankedPod(a, notReady), second: rankedPod(b), ranks: chosen(b)},
		"cheap to delete before chosen":      {first: rankedPod(a, cheapToDelete), second: rankedPod(b), ranks: chosen(b)},
		"requested before chosen":            {first: rankedPod(a), second: rankedPod(b), ranks: chosen(b), requests: requests(requestOf(a))},
		"leaving before chosen":              {first: rankedPod(a), second: rankedPod(b), ranks: chosen(b), requests: requests(requestOf(a)), rs: withLeaving(a)},
		"chosen before tied":                 {first: rankedPod(a), second: rankedPod(b, younger), ranks: ranks(podpicker.RankChosen, podpicker.RankTied)},
		"chosen before others":               {first: rankedPod(a), second: rankedPod(b, younger), ranks: ranks(podpicker.RankChosen, podpicker.RankOther)},
		"tied before others":                 {first: rankedPod(a), second: rankedPod(b, younger), ranks: ranks(podpicker.RankTied, podpicker.RankOther)},
		"chosen before doubled up":           {first: rankedPod(a), second: rankedPod(b, onSharedNode), ranks: chosen(a)},
		"others: younger before doubled up":  {first: rankedPod(a, younger), second: rankedPod(b, onSharedNode), ranks: ranks(podpicker.RankOther, podpicker.RankOther)},
		"chosen before ready since later":    {first: rankedPod(a), second: rankedPod(b, readySince), ranks: chosen(a)},
		"chosen before restarted":            {first: rankedPod(a), second: rankedPod(b, restarted), ranks: chosen(a)},
		"both chosen: ready since later":     {first: rankedPod(a, readySince), second: rankedPod(b), ranks: chosen(a, b)},
		"both tied: restarted":               {first: rankedPod(a, restarted), second: rankedPod(b), ranks: ranks(podpicker.RankTied, podpicker.RankTied)},
		"both others: younger":               {first: rankedPod(a, younger), second: rankedPod(b), ranks: ranks(podpicker.RankOther, podpicker.RankOther)},
		"a pod that was not asked about":     {first: rankedPod(a), second: rankedPod(b, younger), ranks: chosen(a)},
		"tied before one not asked about":    {first: rankedPod(a), second: rankedPod(b, younger), ranks: ranksOf(podpicker.RankTied, []string{a})},
		"nothing decided: doubled up":        {first: rankedPod(a, onSharedNode), second: rankedPod(b)},
		"nothing decided: cheap to delete":   {first: rankedPod(a, cheapToDelete), second: rankedPod(b, onSharedNode)},
		"nothing decided: requested at once": {first: rankedPod(a), second: rankedPod(b, onSharedNode), requests: requests(requestOf(a))},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			f.intercept(t)
			// Soon after the younger ones began: of pods that are nearly as old, the UID decides.
			f.rsc.clock = testingclock.NewFakeClock(orderStart.Add(65 * time.Minute))
			f.rsc.evictions.requestsSynced = func() bool { return true }
			for _, request := range test.requests {
				f.cached(t, request)
			}
			rs := test.rs
			if rs == nil {
				rs = newReplicaSetOf()
			}
			withPicker(rs)
			for _, pods := range [][]*v1.Pod{{test.first, test.second}, {test.second, test.first}} {
				f.rsc.pickers = pickersWith(podpicker.Result{Ranks: test.ranks})
				got := f.rsc.getPodsToDelete(f.ctx, rs, pods, slices.Concat(pods, others), 1)
				if diff := cmp.Diff([]string{test.first.Name}, names(got)); diff != "" {
					t.Errorf("deletes (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Whatever a picker answers, as many pods are deleted as without it, and all of them are among the pods
// of the ReplicaSet. Those that go first without a picker go first.
func TestAnyAnswer(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, intercepts := range []bool{false, true} {
		f := newEvictionFixture(t)
		if intercepts {
			f.intercept(t)
			f.rsc.evictions.requestsSynced = func() bool { return true }
			f.cached(t, requestOf("pod-03"), requestOf("pod-04", canceled))
		}
		rs := newReplicaSetOf(withPicker)
		for range 500 {
			pods := randomPods(random, 12)
			before := slices.Clone(pods)
			diff := random.IntN(len(pods) + 1)
			result := podpicker.Result{}
			switch random.IntN(5) {
			case 0:
				result.Err = errors.New("no answer")
			default:
				result.Ranks = map[string]int{"stranger": podpicker.RankChosen}
				for _, pod := range pods {
					if rank := random.IntN(5); rank < 4 {
						result.Ranks[pod.Name] = rank
					}
				}
			}
			f.rsc.pickers = pickersWith(result)
			deleted := f.rsc.getPodsToDelete(f.ctx, rs, pods, before, diff)
			if len(deleted) != diff {
				t.Fatalf("%d pods are deleted, want %d", len(deleted), diff)
			}
			left := slices.Clone(before)
			for _, pod := range deleted {
				i := slices.Index(left, pod)
				if i < 0 {
					t.Fatalf("pod %s is deleted twice, or is not one of the ReplicaSet", pod.Name)
				}
				left = slices.Delete(left, i, i+1)
			}
			for _, stays := range left {
				if slices.ContainsFunc(deleted, func(goes *v1.Pod) bool { return barePods(stays, goes) }) {
					t.Fatalf("%s stays, which goes before some of %q whatever the picker says", stays.Name, names(deleted))
				}
			}
		}
	}
}

// barePods reports whether a goes before b because of node, phase or readiness.
func barePods(a, b *v1.Pod) bool {
	order := evictionOrder{bare: []*v1.Pod{barePod(a), barePod(b)}}
	return order.bare.Less(0, 1)
}

// The events say who was asked, and how it ended, in one line without control characters.
func TestPickerEvents(t *testing.T) {
	for name, test := range map[string]struct {
		result podpicker.Result
		want   string
	}{
		"picked":    {podpicker.Result{Chosen: 2, Tied: 1, Duration: 1234567 * time.Microsecond}, "Normal PodsPicked The downscale pod picker at picker.default.svc chose 2 pods and called 1 tied after 1.235s."},
		"undecided": {podpicker.Result{Duration: time.Second}, "Normal PodsPicked The downscale pod picker at picker.default.svc named no pod after 1s. Pods are deleted in the order without it."},
		"failed": {
			podpicker.Result{Err: errors.New("line\nbreak\x1b[31m"), Reason: podpicker.FallbackFailed},
			"Warning PodPickerFailed The downscale pod picker at picker.default.svc did not choose pods (failed after 0s): line break\\u001b[31m. They are deleted in the order without it.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := record.NewFakeRecorder(10)
			f := newEvictionFixture(t)
			(&pickers{recorder: recorder}).report(f.ctx, newReplicaSetOf(withPicker), test.result, nil, nil)
			if got := <-recorder.Events; got != test.want {
				t.Errorf("event\n%q, want\n%q", got, test.want)
			}
		})
	}
	recorder := record.NewFakeRecorder(10)
	// A protocol that this version does not know has no host.
	(&pickers{recorder: recorder}).report(t.Context(), newReplicaSetOf(func(rs *apps.ReplicaSet) { rs.Spec.DownscalePodPicker = &v1.DownscalePodPicker{} }),
		podpicker.Result{Err: errors.New("unknown"), Reason: podpicker.FallbackFailed}, nil, nil)
	if got := <-recorder.Events; !strings.Contains(got, "unknown") {
		t.Errorf("event %q", got)
	}
	(&pickers{recorder: recorder}).report(t.Context(), newReplicaSetOf(withPicker), podpicker.Result{Err: errors.New(strings.Repeat("x", 5000))}, nil, nil)
	if got := <-recorder.Events; len(got) > 1024 {
		t.Errorf("an event has %d bytes", len(got))
	}
}

// The event says which pods were deleted, what the picker called them, and which of those that it preferred
// stay, and why. The Deployment has it as well.
func TestPickedNames(t *testing.T) {
	pods := func(count int, changes ...func(*v1.Pod)) (pods []*v1.Pod) {
		for i := range count {
			pods = append(pods, rankedPod(fmt.Sprintf("pod-%02d", i), changes...))
		}
		return pods
	}
	ranks := map[string]int{"pod-00": podpicker.RankChosen, "pod-01": podpicker.RankTied, "pod-02": podpicker.RankOther, "pod-03": podpicker.RankOther}
	for name, test := range map[string]struct {
		pods    []*v1.Pod
		ranks   map[string]int
		diff    int
		want    string
		wantNot string
	}{
		"chosen and tied":    {pods: pods(4), ranks: ranks, diff: 2, want: "Deleted and chosen: pod-00. Deleted and tied: pod-01.", wantNot: "Stay"},
		"more are chosen":    {pods: pods(4), ranks: chosen("pod-00", "pod-01", "pod-02", "pod-03"), diff: 2, want: "Deleted and chosen: pod-", wantNot: "Stay"},
		"overruled by cost":  {pods: append(pods(3), rankedPod("pod-03", cheapToDelete)), ranks: ranks, diff: 1, want: "Deleted and neither: pod-03. Stay although chosen before these, because pods with a lower controller.kubernetes.io/pod-deletion-cost go first: pod-00, pod-01."},
		"one goes anyway":    {pods: append(pods(3), rankedPod("pod-04", notReady)), ranks: ranks, diff: 2, want: "Deleted and chosen: pod-00.", wantNot: "Stay"},
		"more than are told": {pods: pods(40), ranks: chosen(names(pods(40))...), diff: 30, want: " and 22 more."},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			f.rsc.pickers = pickersWith(podpicker.Result{Ranks: test.ranks, Chosen: 1, Tied: 1})
			events := f.rsc.pickers.recorder.(*record.FakeRecorder).Events
			rs := newReplicaSetOf(withPicker)
			rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&apps.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "d"}}, apps.SchemeGroupVersion.WithKind("Deployment"))}
			f.rsc.getPodsToDelete(f.ctx, rs, test.pods, test.pods, test.diff)
			got := <-events
			if !strings.Contains(got, test.want) || test.wantNot != "" && strings.Contains(got, test.wantNot) || len(got) > 1024 {
				t.Errorf("event %q, want %q and not %q", got, test.want, test.wantNot)
			}
			if ofDeployment := <-events; !strings.Contains(ofDeployment, "PodsPicked ReplicaSet web-1: The downscale pod picker") || !strings.Contains(ofDeployment, test.want) {
				t.Errorf("event of the Deployment %q", ofDeployment)
			}
		})
	}
}

// A ReplicaSet that waits for its picker deletes nothing, and creates what it needs.
func TestWaitsForPicker(t *testing.T) {
	f := newEvictionFixture(t)
	client := newFakeAsker(func(types.NamespacedName) {})
	f.rsc.pickers = &pickers{client: client, recorder: record.NewFakeRecorder(10)}
	rs := newReplicaSetOf(withPicker)
	rs.Spec.Replicas = ptr.To[int32](1)
	pods := []*v1.Pod{rankedPod("a"), rankedPod("b")}
	for _, want := range []int{0, 0} {
		if got, _, _ := f.rsc.surplus(f.ctx, pods, rs); got != want {
			t.Errorf("the surplus is %d before the answer, want %d", got, want)
		}
	}
	client.end(webKey, podpicker.Result{Ranks: chosen("a")})
	if got, _, _ := f.rsc.surplus(f.ctx, pods, rs); got != 1 {
		t.Errorf("the surplus is %d with the answer, want 1", got)
	}
	if got, _, _ := f.rsc.surplus(f.ctx, pods[:1], rs); got != 0 || len(client.asked) > 0 {
		t.Errorf("the surplus is %d, and %d questions are left", got, len(client.asked))
	}
	rs.Spec.Replicas = ptr.To[int32](3)
	if got, _, _ := f.rsc.surplus(f.ctx, pods, rs); got != -1 {
		t.Errorf("the surplus is %d, want -1", got)
	}
	// One sync deletes no more pods than the controller deletes at a time.
	f.rsc.burstReplicas = 2
	rs.Spec.Replicas = ptr.To[int32](1)
	_, _, _ = f.rsc.surplus(f.ctx, append(pods, rankedPod("c"), rankedPod("d")), rs)
	if got := client.asked[webKey].question.Pods; got != 2 {
		t.Errorf("asked for %d pods, want 2", got)
	}
	// In the end, all of them go.
	rs.Spec.Replicas = ptr.To[int32](0)
	if got, _, _ := f.rsc.surplus(f.ctx, append(pods, rankedPod("c"), rankedPod("d")), rs); got != 4 || len(client.asked) > 0 {
		t.Errorf("the surplus is %d, want 4 without a question", got)
	}
}

// Pods that go whatever the picker answers go while it is asked, and the question about the rest is the
// same before and after.
func TestGoAnyway(t *testing.T) {
	notAvailable := func(pod *v1.Pod) { readySince(pod) } // For minReadySeconds of an hour.
	for name, test := range map[string]struct {
		pods     []*v1.Pod
		diff     int
		requests []*coordinationv1alpha1.EvictionRequest
		burst    int
		want     []string
	}{
		"all are candidates":          {pods: []*v1.Pod{rankedPod("a"), rankedPod("b"), rankedPod("c")}, diff: 2},
		"not ready":                   {pods: []*v1.Pod{rankedPod("a"), rankedPod("b"), rankedPod("c", notReady)}, diff: 2, want: []string{"c"}},
		"not assigned":                {pods: []*v1.Pod{rankedPod("a"), rankedPod("b"), rankedPod("c", unassigned)}, diff: 2, want: []string{"c"}},
		"a node is drained":           {pods: []*v1.Pod{rankedPod("a"), rankedPod("b"), rankedPod("c")}, diff: 2, requests: requests(requestOf("c")), want: []string{"c"}},
		"cheap ones wait":             {pods: []*v1.Pod{rankedPod("a", cheapToDelete), rankedPod("b"), rankedPod("c", notReady)}, diff: 2, want: []string{"c"}},
		"no more than one sync":       {pods: []*v1.Pod{rankedPod("a"), rankedPod("b"), rankedPod("c", notReady), rankedPod("d", unassigned)}, diff: 3, burst: 1, want: []string{"d"}},
		"one that may stay":           {pods: []*v1.Pod{rankedPod("a", notAvailable), rankedPod("b", notAvailable), rankedPod("d", notAvailable), rankedPod("c")}, diff: 2, requests: requests(requestOf("c"))},
		"after one that goes as well": {pods: []*v1.Pod{rankedPod("a", notAvailable), rankedPod("b"), rankedPod("c")}, diff: 2, requests: requests(requestOf("c")), want: []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			f.intercept(t)
			f.rsc.clock = testingclock.NewFakeClock(orderStart.Add(65 * time.Minute))
			f.rsc.evictions.requestsSynced = func() bool { return true }
			if test.burst > 0 {
				f.rsc.burstReplicas = test.burst
			}
			for _, request := range test.requests {
				f.cached(t, request)
			}
			client := newFakeAsker(func(types.NamespacedName) {})
			f.rsc.pickers = &pickers{client: client, recorder: record.NewFakeRecorder(10)}
			rs := newReplicaSetOf(withPicker)
			rs.Spec.MinReadySeconds = 3600
			rs.Spec.Replicas = ptr.To(int32(len(test.pods) - test.diff))
			diff, among, err := f.rsc.surplus(f.ctx, test.pods, rs)
			if err != nil {
				t.Fatal(err)
			}
			if diff != len(test.want) {
				t.Fatalf("%d of %q are deleted, want %q", diff, names(among), test.want)
			}
			if diff == 0 {
				return
			}
			if diff := cmp.Diff(test.want, names(f.rsc.getPodsToDelete(f.ctx, rs, among, nil, diff))); diff != "" {
				t.Errorf("deletes (-want +got):\n%s", diff)
			}
			identity := client.asked[webKey].identity
			left := slices.DeleteFunc(slices.Clone(test.pods), func(pod *v1.Pod) bool { return slices.Contains(test.want, pod.Name) })
			if test.burst > 0 {
				return // More go anyway.
			}
			if diff, _, _ := f.rsc.surplus(f.ctx, left, rs); diff != 0 || client.asked[webKey].identity != identity {
				t.Errorf("%d more are deleted, the question is %+v, was %s", diff, client.asked[webKey], identity)
			}
		})
	}
}

// What goes anyway does not wait for the back-off of a deletion that has failed.
func TestGoAnywayAfterFailure(t *testing.T) {
	f := newEvictionFixture(t)
	f.rsc.pickers = &pickers{client: newFakeAsker(func(types.NamespacedName) {}), recorder: record.NewFakeRecorder(10)}
	rs := newReplicaSetOf(withPicker)
	SetCondition(&rs.Status, NewReplicaSetCondition(apps.ReplicaSetReplicaFailure, v1.ConditionTrue, "FailedDelete", ""))
	rs.Spec.Replicas = ptr.To[int32](1)
	pods := []*v1.Pod{rankedPod("a"), rankedPod("b"), rankedPod("c", notReady)}
	if diff, among, err := f.rsc.surplus(f.ctx, pods, rs); err != nil || diff != 1 || among[0].Name != "c" {
		t.Errorf("%d of %q, %v", diff, names(among), err)
	}
	if diff, _, err := f.rsc.surplus(f.ctx, pods[:2], rs); diff != 0 || !errors.Is(err, errWaitsAgain) {
		t.Errorf("%d, %v", diff, err)
	}
}

// The events about pods of a ReplicaSet use up what a source may send about it.
func TestEventAfterManyPods(t *testing.T) {
	const component = "replicaset-controller"
	client, rs := fake.NewClientset(), newReplicaSetOf(withPicker)
	broadcaster := record.NewBroadcaster(record.WithContext(t.Context()))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	pods := broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: component})
	for i := range 30 {
		pods.Eventf(rs, v1.EventTypeNormal, "SuccessfulCreate", "Created pod: %d", i)
	}
	p := &pickers{recorder: newPickerRecorder(broadcaster)}
	p.report(t.Context(), rs, podpicker.Result{Chosen: 1}, nil, nil)
	defer broadcaster.Shutdown()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		events, err := client.CoreV1().Events(rs.Namespace).List(ctx, metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(events.Items, func(e v1.Event) bool { return e.Reason == eventPodsPicked }), err
	})
	if err != nil {
		t.Errorf("no event %s: %v", eventPodsPicked, err)
	}
}

// slowAsker has a question that is slow.
type slowAsker struct{ *fakeAsker }

func (slowAsker) Slow(types.NamespacedName) (until time.Time, slow bool) {
	return time.Date(2026, 12, 1, 3, 5, 45, 0, time.UTC), true
}

func TestSlowEvent(t *testing.T) {
	f, recorder := newEvictionFixture(t), record.NewFakeRecorder(1)
	f.rsc.pickers = &pickers{client: slowAsker{newFakeAsker(func(types.NamespacedName) {})}, recorder: recorder}
	if _, waits := f.rsc.waitsForPicker(f.ctx, newReplicaSetOf(withPicker), []*v1.Pod{rankedPod("a"), rankedPod("b")}, 1); !waits {
		t.Error("it does not wait")
	}
	want := "Warning PodPickerSlow No more pods are deleted until the downscale pod picker at picker.default.svc has chosen, or until 2026-12-01T03:05:45Z at the latest."
	if got := <-recorder.Events; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}

// Pods that the picker ranks alike are deleted by age as without it: the younger one first, but of two
// that are nearly as old, either.
func TestPickedByAge(t *testing.T) {
	f := newEvictionFixture(t)
	older, younger := rankedPod("a"), rankedPod("b", readySince)
	for age, want := range map[time.Duration]string{65 * time.Minute: "b", 100 * time.Hour: "a"} {
		f.rsc.clock = testingclock.NewFakeClock(orderStart.Add(age))
		f.rsc.pickers = pickersWith(podpicker.Result{Ranks: chosen("a", "b")})
		pods := []*v1.Pod{older, younger}
		if got := f.rsc.getPodsToDelete(f.ctx, newReplicaSetOf(withPicker), pods, pods, 1); got[0].Name != want {
			t.Errorf("after %s, %s is deleted, want %s", age, got[0].Name, want)
		}
	}
}

// A scale-down whose picker was asked has an event, and one without a question none.
func TestPickerEventsOfScaleDown(t *testing.T) {
	f := newEvictionFixture(t)
	f.rsc.pickers = pickersWith(podpicker.Result{Ranks: chosen("a"), Chosen: 1})
	events := f.rsc.pickers.recorder.(*record.FakeRecorder).Events
	for _, want := range []int{2, 0} { // Of the ReplicaSet and of its Deployment.
		pods := []*v1.Pod{rankedPod("a"), rankedPod("b")}
		f.rsc.getPodsToDelete(f.ctx, newReplicaSetOf(withPicker), pods, pods, 1)
		if len(events) != want {
			t.Errorf("%d events, want %d", len(events), want)
		}
		for len(events) > 0 {
			<-events
		}
	}
}

// handled is an informer that keeps the handler of the controller.
type handled struct {
	appsinformers.ReplicaSetInformer
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
}

func (h *handled) Informer() cache.SharedIndexInformer { return h }

func (h *handled) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.handler = handler
	return nil, nil
}

// The controller syncs a ReplicaSet again when its question has ended, and forgets deleted ones.
func TestAskPickers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"chosen_pods": ["a"]}`))
	}))
	defer server.Close()
	address := server.Listener.Addr().(*net.TCPAddr)
	allowed, err := podpicker.ParseRanges([]string{fmt.Sprintf("127.0.0.1/32:%d", address.Port)})
	if err != nil {
		t.Fatal(err)
	}
	f, informer := newEvictionFixture(t), &handled{}
	if err := f.rsc.AskPickers(f.client, informer, &podpicker.Addresses{Allowed: allowed}, 1); err != nil {
		t.Fatal(err)
	}
	rs := newReplicaSetOf(withPicker)
	rs.Spec.DownscalePodPicker.HTTP.Host, rs.Spec.DownscalePodPicker.HTTP.Port = "127.0.0.1", intstr.FromInt(address.Port)
	f.cached(t, rs)
	pods := []*v1.Pod{rankedPod("a"), rankedPod("b")}
	if _, waits := f.rsc.waitsForPicker(f.ctx, rs, pods, 1); !waits {
		t.Error("there is an answer at once")
	}
	if queued, _ := f.rsc.queue.Get(); queued != webKey.String() {
		t.Errorf("queued is %q", queued)
	}
	if _, waits := f.rsc.waitsForPicker(f.ctx, rs, pods, 1); waits {
		t.Error("there is no answer")
	}
	if result, _ := f.rsc.pickers.client.Take(webKey); result.Ranks["a"] != podpicker.RankChosen || result.Ranks["b"] != podpicker.RankOther {
		t.Errorf("result %+v", result)
	}

	for _, deleted := range []any{rs, cache.DeletedFinalStateUnknown{Key: webKey.String(), Obj: rs}} {
		client := newFakeAsker(func(types.NamespacedName) {})
		f.rsc.pickers.client = client
		f.rsc.waitsForPicker(f.ctx, rs, pods, 1)
		asked := len(client.asked)
		if informer.handler.OnDelete(deleted); asked != 1 || len(client.asked) != 0 {
			t.Errorf("%T: %d questions, and %d in the end", deleted, asked, len(client.asked))
		}
	}
}
