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
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
)

// withdrawAll removes the controller from the request for the pod, if it is in it, or deletes the request.
func (f *fixture) withdrawAll(pod *v1.Pod, deletes bool) {
	f.t.Helper()
	requests := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace)
	request, err := requests.Get(f.ctx, string(pod.UID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err == nil && deletes {
		err = requests.Delete(f.ctx, request.Name, metav1.DeleteOptions{})
	} else if err == nil && isRequested(request) {
		request.Spec.Requesters = nil
		request.Annotations = map[string]string{"coordination.k8s.io/eviction-withdrawn-by": "tenant"} // As the API server does.
		_, err = requests.Update(f.ctx, request, metav1.UpdateOptions{FieldManager: "tenant"})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) patches() int {
	patches := 0
	for _, write := range f.writes() {
		if write == "patch evictionrequests" {
			patches++
		}
	}
	return patches
}

// TestContestedRequests: others who withdraw a request again and again make it neither fail nor spin, and the
// blocker says who they are.
func TestContestedRequests(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted: %t", deletes), func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			pod := f.createPods(1, "n", 0)[0]
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			for range 600 {
				f.run(100 * time.Millisecond)
				f.withdrawAll(pod, deletes)
			}
			// Two at once, and after 5, 15 and 35 seconds.
			if got := f.patches(); got < 4 || got > 6 {
				t.Errorf("requested %d times in a minute", got)
			}
			blockers := f.maintenance("m").Status.DrainStatus.Blockers
			by := `the last one was user "tenant"`
			if deletes {
				by = "the last one was deleted, and the audit log has by whom"
			}
			if len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerRequestFailed ||
				!strings.Contains(blockers[0].Message, "others have withdrawn the request each time") || !strings.Contains(blockers[0].Message, by) {
				t.Errorf("blockers %+v", blockers)
			}
			// The next controller knows since when.
			f.restart()
			for range 100 {
				f.run(100 * time.Millisecond)
				f.withdrawAll(pod, deletes)
			}
			if now := f.maintenance("m").Status.DrainStatus.Blockers; len(now) != 1 || !now[0].SinceTime.Equal(blockers[0].SinceTime) {
				t.Errorf("blockers of the next controller %+v, want one since %v", now, blockers[0].SinceTime)
			}
			// They stop, and it goes on within a minute.
			f.run(time.Minute)
			if f.requested() != 1 {
				t.Error("the eviction is not requested any more")
			}
			blockers = f.maintenance("m").Status.DrainStatus.Blockers
			if len(blockers) != 1 || blockers[0].Cause == coordinationv1alpha1.DrainBlockerRequestFailed {
				t.Errorf("blockers once they have stopped: %+v", blockers)
			}
			f.deletePods(pod)
			f.run(time.Second)
			if len(f.contests.nodes) > 0 {
				t.Errorf("requests for a pod that is gone: %v", f.contests.nodes)
			}
		})
	}
}

// TestPodsThatEndAndRunAgain has a kubelet report again and again that a pod has ended, and that it runs: each time, the
// request is over, and the evictionrequest-controller removes it, because the pod runs.
func TestPodsThatEndAndRunAgain(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	report := func(phase v1.PodPhase) {
		pod.Status.Phase = phase
		if _, err := f.client.CoreV1().Pods(pod.Namespace).UpdateStatus(f.ctx, pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	for range 300 {
		f.run(100 * time.Millisecond)
		report(v1.PodFailed)
		f.run(100 * time.Millisecond)
		f.withdrawAll(pod, true)
		report(v1.PodRunning)
	}
	// Two at once, and after 5, 15 and 35 seconds.
	if got := f.patches(); got < 4 || got > 6 {
		t.Errorf("requested %d times in a minute", got)
	}
	f.run(2 * time.Second)
	blockers := f.maintenance("m").Status.DrainStatus.Blockers
	if len(blockers) != 1 || !strings.Contains(blockers[0].Message, "the kubelet has reported each time that the pod had ended") {
		t.Errorf("blockers %+v", blockers)
	}
	f.run(time.Minute)
	if f.requested() != 1 {
		t.Error("the eviction is not requested any more")
	}
}

// TestFlappingPodLabelsArePaced has the owner of a pod change its labels, so that a policy keeps it, and does not, again
// and again.
func TestFlappingPodLabelsArePaced(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createWith("m", "a", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{{
			Action: coordinationv1alpha1.NodeMaintenancePodSkip, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"keep": "yes"}},
		}}
	})
	relabel := func(labels map[string]string) {
		pod.Labels = labels
		if _, err := f.client.CoreV1().Pods(pod.Namespace).Update(f.ctx, pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 150 {
		f.run(time.Second)
		relabel(map[string]string{"keep": "yes"})
		f.run(time.Second)
		relabel(map[string]string{})
	}
	// Ten at once, and after 5, 15, 35, 75, 135, 195 and 255 seconds, and as many withdrawals.
	if got := f.patches(); got < 28 || got > 36 {
		t.Errorf("%d writes of requests in five minutes", got)
	}
	f.run(2 * time.Second)
	blockers := f.maintenance("m").Status.DrainStatus.Blockers
	if len(blockers) != 1 || !strings.Contains(blockers[0].Message, "the labels of the node or the pod") {
		t.Errorf("blockers %+v", blockers)
	}
	// It stops, and the drain goes on within a minute.
	f.run(time.Minute)
	if f.requested() != 1 {
		t.Error("the eviction is not requested any more")
	}
}

// A maintenance that ends and begins again has not been contested.
func TestOwnWithdrawalsAreNotContested(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	for i := range 5 {
		name := fmt.Sprintf("m-%d", i)
		f.createMaintenance(name, stageDrain, "a", maintenance.StandardPlan()...)
		f.run(2 * time.Second)
		if f.requested() != 1 {
			t.Fatalf("maintenance %d has not requested the eviction", i)
		}
		f.setStage(name, stageComplete)
		f.run(2 * time.Second)
		if f.requested() != 0 {
			t.Fatalf("maintenance %d has not withdrawn", i)
		}
	}
}

// A label of the selector that flaps, while another maintenance keeps the node as it is, makes interceptors begin anew
// at a pace only, and a blocker says so.
func TestFlappingSelectionIsPaced(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": "", "b": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("keeps", stageCordon, "b", maintenance.StandardPlan()...)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	for range 150 {
		f.run(time.Second)
		f.relabel("n", map[string]string{"b": ""})
		f.run(time.Second)
		f.relabel("n", map[string]string{"a": "", "b": ""})
	}
	// Ten at once, and after 5, 15, 35, 75, 135, 195 and 255 seconds, and as many withdrawals.
	if got := f.patches(); got < 28 || got > 36 {
		t.Errorf("%d writes of requests in five minutes", got)
	}
	f.run(2 * time.Second)
	blockers := f.maintenance("m").Status.DrainStatus.Blockers
	if len(blockers) != 1 || !strings.Contains(blockers[0].Message, "the maintenance did not want it any more") {
		t.Errorf("blockers %+v", blockers)
	}
	// It stops, and the drain goes on within a minute.
	f.run(time.Minute)
	if f.requested() != 1 {
		t.Error("the eviction is not requested any more")
	}
}

// A canceled request that is being deleted can be replaced, whatever its finalizers wait for.
func TestCanceledRequestIsNoObstacle(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	canceled := f.createObstacle(f.createPods(1, "n", 0)[0])
	canceled.Status.Conditions = []metav1.Condition{{Type: "Canceled", Status: metav1.ConditionTrue, Reason: coordinationv1alpha1.EvictionRequestReasonNoRequesters}}
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests(canceled.Namespace).UpdateStatus(f.ctx, canceled, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.client.ClearActions()
	f.run(time.Second)
	if f.patches() == 0 {
		t.Errorf("does not request the eviction: %v", f.writes())
	}
}

func TestContests(t *testing.T) {
	start := time.Unix(1000, 0)
	c := newContests()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	expect := func(seconds, count int, wait time.Duration) {
		t.Helper()
		if got := c.count("n", "a", at(seconds)); got != count {
			t.Errorf("after %d s: %d requests, want %d", seconds, got, count)
		}
		if got := c.wait("n", "a", at(seconds)); got != wait {
			t.Errorf("after %d s: waits %s, want %s", seconds, got, wait)
		}
	}
	expect(0, 0, 0)
	c.wrote("n", "a", time.Time{}, at(0))
	expect(0, 1, 0)
	c.wrote("n", "a", time.Time{}, at(1))
	expect(1, 2, 5*time.Second)
	expect(5, 2, time.Second)
	expect(7, 2, 0)
	for i, want := range []time.Duration{10, 20, 40, 60, 60} {
		c.wrote("n", "a", time.Time{}, at(10+i))
		expect(10+i, 3+i, want*time.Second)
	}
	expect(601, 6, 0)
	expect(700, 0, 0)
	for i := range resumeLimit {
		c.wrote("n", "c", time.Time{}, at(20*i))
		if got := c.wait("n", "c", at(20*i+1)); i < resumeLimit-1 && got != 0 {
			t.Errorf("waits %s after %d own withdrawals", got, i)
		}
		c.withdrew("n", "c")
	}
	if got := c.wait("n", "c", at(181)); got != 4*time.Second {
		t.Errorf("waits %s after own withdrawals", got)
	}
	c.wrote("n", "c", time.Time{}, at(190))
	if got := c.wait("n", "c", at(190)); got != 10*time.Second {
		t.Errorf("waits %s after more own withdrawals", got)
	}
	pod := func(uid types.UID) []*v1.Pod { return []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: uid}}} }
	c.see("n", pod("a"), nil)
	if got := c.count("n", "b", at(0)) + c.count("o", "a", at(0)); got != 0 {
		t.Errorf("others: %d", got)
	}
	c.wrote("n", "b", time.Time{}, at(700))
	c.see("n", nil, pod("b"))
	if len(c.nodes["n"]) != 1 || c.count("n", "b", at(700)) != 1 {
		t.Errorf("kept %v", c.nodes)
	}
	c.see("n", nil, nil)
	if len(c.nodes) != 0 {
		t.Errorf("left %v", c.nodes)
	}
}

// The blocker says since when others have withdrawn, and who was the last one, in the time that counts. A clock that
// was set back delays nothing.
func TestContestMessage(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	c := newContests()
	expect := func(now int, since int, parts ...string) {
		t.Helper()
		message, found, contested := c.message("n", "a", at(now))
		if !contested || !found.Equal(at(since)) {
			t.Errorf("after %d s: contested: %t, since %v, want %v", now, contested, found, at(since))
		}
		for _, part := range parts {
			if !strings.Contains(message, part) {
				t.Errorf("after %d s: %q does not say %q", now, message, part)
			}
		}
	}
	c.wrote("n", "a", time.Time{}, at(0))
	c.wrote("n", "a", time.Time{}, at(700))
	if _, _, contested := c.message("n", "a", at(700)); contested {
		t.Error("contested, although the first request does not count any more")
	}
	c.withdrawn("n", "a", "tenant")
	c.wrote("n", "a", time.Time{}, at(701))
	expect(702, 700, "2 times in 2s", `user "tenant"`)
	c.withdrawn("n", "a", "")
	expect(702, 700, "the audit log has by whom")
	c.wrote("n", "a", time.Time{}, at(1000))
	c.wrote("n", "a", time.Time{}, at(1001))
	expect(1305, 700, "2 times in 5m5s")
	if got := c.wait("n", "a", at(900)); got != 0 {
		t.Errorf("waits %s after the clock was set back", got)
	}
	c.wrote("n", "b", at(-3600), at(0))
	c.wrote("n", "b", at(-3600), at(1))
	if _, since, _ := c.message("n", "b", at(1)); !since.Equal(at(-3600)) {
		t.Errorf("contested since %v, want what a process before has found", since)
	}
}
