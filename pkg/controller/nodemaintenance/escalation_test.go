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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

const (
	skipInterceptors = v1.MaintenanceEscalationSkipInterceptors
	ignoreBudgets    = v1.MaintenanceEscalationIgnoreBudgets
	forceDelete      = v1.MaintenanceEscalationForceDelete
)

func after(seconds int32, action v1.MaintenanceEscalation, apps ...string) coordinationv1alpha1.NodeMaintenanceEscalationStep {
	s := coordinationv1alpha1.NodeMaintenanceEscalationStep{AfterSeconds: seconds, Action: action}
	if len(apps) > 0 {
		s.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": apps[0]}}
	}
	return s
}

// createEscalation creates a rollout that drains the nodes with the label a and stops waiting.
func (f *fixture) createEscalation(name string, steps ...coordinationv1alpha1.NodeMaintenanceEscalationStep) {
	f.t.Helper()
	f.createRollout(name, coordinationv1alpha1.NodeMaintenanceRollout{CompleteNodes: manual})
	f.change(name, func(m *coordinationv1alpha1.NodeMaintenance) { m.Spec.Escalation = steps })
}

// terminateGracefully has pods exist until their grace period is over, as kubelets do.
func (f *fixture) terminateGracefully() {
	f.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		del := action.(clienttesting.DeleteActionImpl)
		if seconds := del.DeleteOptions.GracePeriodSeconds; seconds != nil && *seconds == 0 {
			return false, nil, nil
		}
		object, err := f.tracker.Get(v1.SchemeGroupVersion.WithResource("pods"), del.Namespace, del.Name)
		if err != nil {
			return true, nil, err
		}
		pod := object.(*v1.Pod).DeepCopy()
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(f.clock.Now())), ptr.To[int64](30)
		return true, pod, f.tracker.Update(v1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace)
	})
}

// actsOn returns what the controller has written to a pod or its request besides requesting, in order.
func (f *fixture) actsOn(pod *v1.Pod) []string {
	var acts []string
	for _, action := range f.client.Actions() {
		switch action := action.(type) {
		case clienttesting.DeleteActionImpl:
			if action.Resource.Resource != "pods" || action.Name != pod.Name || action.DeleteOptions.Preconditions == nil {
				continue
			}
			grace := "its grace period"
			if seconds := action.DeleteOptions.GracePeriodSeconds; seconds != nil {
				grace = fmt.Sprintf("%d s", *seconds)
			}
			acts = append(acts, fmt.Sprintf("delete with %s, if it is %s", grace, *action.DeleteOptions.Preconditions.UID))
		case clienttesting.PatchActionImpl:
			if action.Subresource == "status" && (action.Name == pod.Name || action.Name == string(pod.UID)) {
				acts = append(acts, action.Resource.Resource+"/status")
			}
		}
	}
	return acts
}

// deletion is what a pod sees that is deleted.
func deletion(pod *v1.Pod, grace string) []string {
	return []string{"pods/status", fmt.Sprintf("delete with %s, if it is %s", grace, pod.UID)}
}

func (f *fixture) expectActs(when string, pod *v1.Pod, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.actsOn(pod)); diff != "" {
		f.t.Errorf("%s: acts on pod %s (-want, +got):\n%s", when, pod.Name, diff)
	}
}

// intercept makes an interceptor active for the pod.
func (f *fixture) intercept(pod *v1.Pod, name string) {
	f.t.Helper()
	requests := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace)
	request, err := requests.Get(f.ctx, string(pod.UID), metav1.GetOptions{})
	if err != nil {
		f.t.Fatalf("reading the request: %v", err)
	}
	request.Status.TargetInterceptors = []coordinationv1alpha1.Interceptor{{Name: coordinationv1alpha1.EvictionInterceptorImperative}}
	if name != coordinationv1alpha1.EvictionInterceptorImperative {
		request.Status.TargetInterceptors = slices.Insert(request.Status.TargetInterceptors, 0, coordinationv1alpha1.Interceptor{Name: name})
	}
	request.Status.ActiveInterceptors = []string{name}
	if _, err := requests.UpdateStatus(f.ctx, request, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) condition(pod *v1.Pod) string {
	request, err := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Get(f.ctx, string(pod.UID), metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	c := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionInterceptorsSkipped))
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func withGrace(seconds int64) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// TestEscalation takes a node through all three actions.
func TestEscalation(t *testing.T) {
	f := newFixture(t)
	legacyregistry.Reset()
	f.terminateGracefully()
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0, withGrace(100))[0]
	f.createEscalation("m", after(300, skipInterceptors), after(1000, ignoreBudgets), after(2000, forceDelete))
	f.run(time.Second)
	f.intercept(pod, "slow.example.com")
	admittedTime := maintenance.AdmissionOf(f.node("n"), f.maintenance("m").UID).AdmittedTime.Time
	at := func(seconds int) { f.run(admittedTime.Add(time.Duration(seconds) * time.Second).Sub(f.clock.Now())) }

	at(298)
	f.expectActs("before the first step", pod)
	at(302)
	f.expectActs("after the first step", pod, "evictionrequests/status")
	if got, want := f.condition(pod), "True MaintenanceEscalation: spec.escalation of NodeMaintenance m, 5m0s after it began with node n"; got != want {
		t.Errorf("the request says %q, not %q", got, want)
	}
	if got := f.maintenance("m").Status.DrainStatus.EscalatedPods; got != 1 {
		t.Errorf("%d escalated pods in the status", got)
	}
	at(898)
	f.expectActs("before the second step", pod, "evictionrequests/status")
	at(902)
	want := append([]string{"evictionrequests/status"}, deletion(pod, "its grace period")...)
	f.expectActs("so early that the grace period is over in time", pod, want...)
	at(2100)
	f.expectActs("the node may still run the pod", pod, want...)
	f.changeNamed("n", addTaint(v1.TaintNodeOutOfService), setReady(false))
	f.run(10 * time.Second)
	f.expectActs("the node is out of service", pod, append(want, deletion(pod, "0 s")[1])...)

	admission := maintenance.AdmissionOf(f.node("n"), f.maintenance("m").UID)
	if admission.Escalation != forceDelete || admission.EscalationTime.Sub(admittedTime) < 2100*time.Second {
		t.Errorf("unexpected admission: %+v", admission)
	}
	for _, reason := range []string{"Pod " + pod.Name + ": MaintenanceEscalated: ", "NodeMaintenance m: MaintenanceEscalated: "} {
		count := 0
		for _, event := range f.events {
			if strings.HasPrefix(event, reason) {
				count++
			}
		}
		if count != 3 {
			t.Errorf("%d events %q, not 3 of %q", count, reason, f.events)
		}
	}
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(`
# HELP nodemaintenance_controller_escalations_total [ALPHA] Number of acts of spec.escalation on pods, by action: SkipInterceptors, IgnoreBudgets or ForceDelete.
# TYPE nodemaintenance_controller_escalations_total counter
nodemaintenance_controller_escalations_total{action="ForceDelete"} 1
nodemaintenance_controller_escalations_total{action="IgnoreBudgets"} 1
nodemaintenance_controller_escalations_total{action="SkipInterceptors"} 1
`), "nodemaintenance_controller_escalations_total"); err != nil {
		t.Error(err)
	}
}

// TestEscalationIsStoredFirst checks that the node says what happens before the first pod is acted on.
func TestEscalationIsStoredFirst(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pods := f.createPods(3, "n", 0, withGrace(0))
	f.createEscalation("m", after(60, ignoreBudgets))
	acted, uid := 0, f.maintenance("m").UID
	f.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		acted++
		node, err := f.tracker.Get(v1.SchemeGroupVersion.WithResource("nodes"), "", "n") // The client is locked.
		if err != nil {
			return true, nil, err
		}
		a := maintenance.AdmissionOf(node.(*v1.Node), uid)
		if a.Escalation != ignoreBudgets || a.EscalationTime == nil || f.clock.Now().Before(a.AdmittedTime.Add(time.Minute)) {
			t.Errorf("acts with the admission %+v", a)
		}
		return false, nil, nil
	})
	f.run(2 * time.Minute)
	if acted != len(pods) {
		t.Errorf("%d pods were deleted", acted)
	}
}

// TestEscalationSelects checks which pods are acted on.
func TestEscalationSelects(t *testing.T) {
	f := newFixture(t)
	f.terminateGracefully()
	f.createReadyNode("n", map[string]string{"a": ""})
	f.namespaces.Add(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "batch"}}})
	inNamespace := func(name string) func(*v1.Pod) { return func(pod *v1.Pod) { pod.Namespace = name } }
	web, other := f.createPods(1, "n", 0, ofApp("web"))[0], f.createPods(1, "n", 0, ofApp("other"))[0]
	unknown := f.createPods(1, "n", 0, ofApp("web"), inNamespace("unknown"))[0]
	skipped, job := f.createPods(1, "n", 0, ofApp("skipped"))[0], f.createPods(1, "n", 0, ofApp("job"))[0]
	ofDaemonSet, static := f.createPods(1, "n", 0, daemon, ofApp("web"))[0], f.createPods(1, "n", 0, mirror, ofApp("web"))[0]
	web2 := after(60, ignoreBudgets, "web")
	web2.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "batch"}}
	f.createEscalation("m", web2, after(60, ignoreBudgets, "skipped"), after(60, ignoreBudgets, "job"))
	f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{
			policy(coordinationv1alpha1.NodeMaintenancePodSkip, "skipped"), policy(coordinationv1alpha1.NodeMaintenancePodWaitCompleted, "job"),
		}
	})
	f.run(2 * time.Minute)
	f.expectActs("selected", web, deletion(web, "its grace period")...)
	f.expectActs("waited for by a policy", job, deletion(job, "its grace period")...)
	f.expectActs("of a DaemonSet, which serves the one that is skipped", ofDaemonSet)
	f.expectActs("with another label", other)
	f.expectActs("in a namespace without known labels", unknown)
	f.expectActs("skipped by a policy", skipped)
	f.expectActs("static", static)
	if err := f.tracker.Delete(v1.SchemeGroupVersion.WithResource("pods"), skipped.Namespace, skipped.Name); err != nil {
		t.Fatal(err)
	}
	f.run(25 * time.Second) // Its grace period is 30 seconds.
	f.expectActs("of a DaemonSet, which has just been asked", ofDaemonSet)
	f.run(10 * time.Second)
	f.expectActs("of a DaemonSet, later in the plan", ofDaemonSet, deletion(ofDaemonSet, "its grace period")...)
	if !progress.StoredTargets(f.node("n")).Take(ofDaemonSet) {
		t.Errorf("the targets %s do not tell the DaemonSet that its pod is not wanted", progress.StoredTargets(f.node("n")))
	}
}

// Interceptors of a pod that a policy waits for are not asked, so that none is passed over, and nothing says
// that one is, unless the eviction was requested before.
func TestEscalationOfWaitCompleted(t *testing.T) {
	for _, requested := range []bool{false, true} {
		f := newFixture(t)
		f.createReadyNode("n", map[string]string{"a": ""})
		job := f.createPods(1, "n", 0, withGrace(0), ofApp("job"))[0]
		if requested {
			f.createMaintenance("first", stageDrain, "a", maintenance.StandardPlan()...)
			f.run(time.Second)
			f.intercept(job, "slow.example.com")
		}
		f.createEscalation("m", after(60, skipInterceptors), after(600, ignoreBudgets))
		f.change("m", func(m *coordinationv1alpha1.NodeMaintenance) {
			m.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodWaitCompleted, "job")}
		})
		f.run(time.Second)
		if requested {
			f.deleteMaintenance("first")
		}
		f.run(5 * time.Minute)
		want, escalation := []string(nil), v1.MaintenanceEscalation("")
		if requested {
			want, escalation = []string{"evictionrequests/status"}, skipInterceptors
		}
		f.expectActs("after the first step", job, want...)
		if a := maintenance.AdmissionOf(f.node("n"), f.maintenance("m").UID); a.Escalation != escalation {
			t.Errorf("requested %t: the escalation is %q", requested, a.Escalation)
		}
		f.run(10 * time.Minute)
		f.expectActs("after the second step", job, append(want, deletion(job, "its grace period")...)...)
	}
}

// A later step with the same action says so by an event of the maintenance, too.
func TestEachStepHasAnEvent(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0, withGrace(0), ofApp("first"))
	f.createPods(1, "n", 0, withGrace(0), ofApp("second"))
	f.createEscalation("m", after(60, ignoreBudgets, "first"), after(600, ignoreBudgets, "second"))
	count := func() (events int) {
		for _, event := range f.events {
			if strings.HasPrefix(event, "NodeMaintenance m: MaintenanceEscalated: ") {
				events++
			}
		}
		return events
	}
	f.run(2 * time.Minute)
	if got := count(); got != 1 {
		t.Errorf("%d events after the first step", got)
	}
	f.run(10 * time.Minute)
	if got := count(); got != 2 {
		t.Errorf("%d events after the second step", got)
	}
}

// TestEscalationPassesOver checks which requests are marked.
func TestEscalationPassesOver(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pods := f.createPods(5, "n", 0)
	f.createReadyNode("n2", map[string]string{"a": ""})
	ofDaemonSet := f.createPods(1, "n2", 0, daemon)[0]
	f.createEscalation("m", after(60, skipInterceptors))
	f.run(time.Second)
	f.intercept(pods[0], "slow.example.com")
	f.intercept(pods[1], coordinationv1alpha1.EvictionInterceptorImperative)
	f.intercept(ofDaemonSet, coordinationv1alpha1.EvictionInterceptorDaemonSet)
	f.intercept(pods[2], coordinationv1alpha1.EvictionInterceptorReplicaSet)
	pods[3].DeletionTimestamp = ptr.To(metav1.NewTime(f.clock.Now()))
	f.intercept(pods[3], "slow.example.com")
	if _, err := f.client.CoreV1().Pods(pods[3].Namespace).Update(f.ctx, pods[3], metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.run(10 * time.Minute)
	for name, test := range map[string]struct {
		pod  *v1.Pod
		want []string
	}{
		"active interceptor":        {pods[0], []string{"evictionrequests/status"}},
		"evicted through the API":   {pods[1], nil},
		"built-in interceptor":      {pods[2], []string{"evictionrequests/status"}},
		"terminating":               {pods[3], nil},
		"without interceptors yet":  {pods[4], nil},
		"only interceptor that can": {ofDaemonSet, nil},
	} {
		f.expectActs(name, test.pod, test.want...)
	}
}

// TestEscalationsOverlap checks that the most patient maintenance decides.
func TestEscalationsOverlap(t *testing.T) {
	f := newFixture(t)
	f.terminateGracefully()
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0, withGrace(0))[0]
	f.createEscalation("fast", after(60, ignoreBudgets))
	f.createEscalation("slow", after(600, ignoreBudgets))
	f.createRollout("patient", coordinationv1alpha1.NodeMaintenanceRollout{CompleteNodes: manual})
	f.run(1000 * time.Second)
	f.expectActs("while a maintenance has no escalation", pod)
	f.setStage("patient", stageComplete)
	f.run(decision.EscalationGrace + 10*time.Second)
	f.expectActs("after it has ended", pod, deletion(pod, "its grace period")...)

	f = newFixture(t)
	f.terminateGracefully()
	f.createReadyNode("n", map[string]string{"a": ""})
	pod = f.createPods(1, "n", 0, withGrace(0))[0]
	f.createEscalation("fast", after(60, ignoreBudgets))
	f.createEscalation("slow", after(300, skipInterceptors), after(600, forceDelete))
	f.run(590 * time.Second)
	f.expectActs("the slow one has not come to it", pod)
	f.changeNamed("n", addTaint(v1.TaintNodeOutOfService), setReady(false))
	f.run(20 * time.Second)
	f.expectActs("the weaker of both", pod, deletion(pod, "its grace period")...)
}

// TestEscalationClock checks that the clock stands still while the node waits for others, also over a
// restart.
func TestEscalationClock(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": "", "both": ""})
	f.createNode("elsewhere", map[string]string{"both": ""})
	first := f.createPods(1, "elsewhere", 0)[0]
	pod := f.createPods(1, "n", 5000, withGrace(0))[0]
	f.createMaintenance("other", stageDrain, "both", entry(v1.PodTypeDefault, 1000), entry(v1.PodTypeDefault, 10000))
	f.run(time.Second)
	f.createEscalation("m", after(100, ignoreBudgets))
	f.run(500 * time.Second)
	uid := f.maintenance("m").UID
	a := maintenance.AdmissionOf(f.node("n"), uid)
	if a == nil || a.WaitingTime == nil || a.WaitedSeconds != 0 || a.Escalation != "" {
		t.Fatalf("unexpected admission while the node waits for another maintenance: %+v", a)
	}
	f.restart()
	f.run(500 * time.Second)
	f.deletePods(first)
	f.run(90 * time.Second)
	a = maintenance.AdmissionOf(f.node("n"), uid)
	if a.WaitingTime != nil || a.WaitedSeconds < 990 || a.WaitedSeconds > 1010 {
		t.Fatalf("unexpected admission after that: %+v", a)
	}
	f.setStage("other", stageComplete)
	f.run(5 * time.Second)
	f.expectActs("before the time has come", pod)
	f.run(10 * time.Second)
	f.expectActs("after the time has come", pod, deletion(pod, "its grace period")...)
	f.run(time.Minute)
	if a = maintenance.AdmissionOf(f.node("n"), uid); a.WaitingTime != nil || a.DrainedTime == nil {
		t.Errorf("unexpected admission after the drain: %+v", a)
	}
}

// TestLaterEscalationDecides checks that of several maintenances the one that comes to an action last
// decides, whichever of them is older.
func TestLaterEscalationDecides(t *testing.T) {
	for name, seconds := range map[string][]int32{"the older one": {600, 60}, "the younger one": {60, 600}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"a": ""})
			pod := f.createPods(1, "n", 0, withGrace(0))[0]
			for i := range seconds {
				f.createEscalation(fmt.Sprintf("m%d", i), after(seconds[i], ignoreBudgets))
				f.clock.Step(time.Second)
			}
			f.run(590 * time.Second)
			f.expectActs("before the time of both", pod)
			f.run(20 * time.Second)
			f.expectActs("after the time of both", pod, deletion(pod, "its grace period")...)
		})
	}
}

// TestEscalationRefused checks that an act that the API server refuses is reported, retried, and keeps
// nothing else from happening.
func TestEscalationRefused(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pods := f.createPods(2, "n", 0, withGrace(0))
	refuse := true
	f.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if refuse && action.(clienttesting.DeleteAction).GetName() == pods[0].Name {
			return true, nil, apierrors.NewForbidden(v1.Resource(action.GetResource().Resource), "", errors.New("a webhook says no"))
		}
		return false, nil, nil
	})
	f.createEscalation("m", after(60, ignoreBudgets))
	f.run(5 * time.Minute)
	blockers := f.maintenance("m").Status.DrainStatus.Blockers
	if len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerRequestFailed || !strings.Contains(blockers[0].Message, "spec.escalation") {
		t.Errorf("unexpected blockers: %+v", blockers)
	}
	if left := len(f.cluster().pods); left != 1 {
		t.Errorf("%d pods are left", left)
	}
	acts := f.actsOn(pods[0])
	if len(acts) < 10 || len(acts) > 40 {
		t.Errorf("%d attempts in five minutes", len(acts))
	}
	marks := 0
	for _, act := range acts {
		if act == "pods/status" {
			marks++
		}
	}
	if limit := int(5*time.Minute/write.MarkRenewal) + 1; marks > limit {
		t.Errorf("the condition is written %d times, more than %d: %q", marks, limit, acts)
	}
	refuse = false
	f.run(time.Minute)
	if left := len(f.cluster().pods); left != 0 {
		t.Errorf("%d pods are left after the webhook is gone", left)
	}
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
		t.Errorf("not drained: %+v", m.Status)
	}
}

// TestEscalationEnds checks that nothing is acted on after the maintenance, or before its cordon.
func TestEscalationEnds(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0, withGrace(0))[0]
	f.createEscalation("m", after(60, ignoreBudgets))
	f.run(59 * time.Second)
	f.setStage("m", stageComplete)
	f.run(5 * time.Minute)
	f.expectActs("after the maintenance", pod)

	f = newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod = f.createPods(1, "n", 0, withGrace(0))[0]
	f.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() == "" && strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), "unschedulable") {
			return true, nil, apierrors.NewForbidden(v1.Resource(action.GetResource().Resource), "", errors.New("a webhook says no"))
		}
		return false, nil, nil
	})
	f.createEscalation("m", after(60, ignoreBudgets))
	f.run(5 * time.Minute)
	f.expectActs("on a node that takes new pods", pod)
}
