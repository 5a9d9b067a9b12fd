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
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
)

// withdrawAll removes the controller from the request for the pod, if it is in it, or deletes the request.
func (f *fixture) withdrawAll(pod *v1.Pod, deletes bool) {
	f.t.Helper()
	client := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace)
	request, err := client.Get(f.ctx, string(pod.UID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err == nil && deletes {
		err = client.Delete(f.ctx, request.Name, metav1.DeleteOptions{})
	} else if err == nil && requests.IsRequested(request) {
		request.Spec.Requesters = nil
		request.Annotations = map[string]string{"coordination.k8s.io/eviction-withdrawn-by": "tenant"} // As the API server does.
		_, err = client.Update(f.ctx, request, metav1.UpdateOptions{FieldManager: "tenant"})
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
			if f.contests.Remembers("n") {
				t.Error("requests for a pod that is gone are remembered")
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
