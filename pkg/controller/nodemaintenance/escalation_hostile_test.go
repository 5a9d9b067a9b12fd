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
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/utils/ptr"
)

// The tests of this file let others work against an escalation: those who own the pods, kubelets, other
// administrators, caches that lag, and clocks that step.

// refuseDeletions has a webhook refuse all deletions of pods while the returned value is true.
func (f *fixture) refuseDeletions() *bool {
	refuse := true
	f.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !refuse {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(v1.Resource(action.GetResource().Resource), "", errors.New("a webhook says no"))
	})
	return &refuse
}

// TestEscalationIgnoresForgedDisruption has a kubelet, or a deletion that was refused, leave a condition on
// the pod that looks like an act.
func TestEscalationIgnoresForgedDisruption(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0, func(pod *v1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: maintenance.PodReasonDeletionByNodeMaintenance})
	})[0]
	f.createEscalation("m", after(60, skipInterceptors))
	f.run(time.Second)
	f.intercept(pod, "slow.example.com")
	f.run(2 * time.Minute)
	f.expectActs("although it seems to be deleted", pod, "evictionrequests/status")
}

// TestEscalationForcesOnlyNow has the node come back, which the cache does not know yet: a pod that
// runs there again would be started a second time elsewhere.
func TestEscalationForcesOnlyNow(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.changeNamed("n", addTaint(v1.TaintNodeOutOfService), setReady(false))
	back := true
	f.client.PrependReactor("get", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object, err := f.tracker.Get(v1.SchemeGroupVersion.WithResource("nodes"), "", action.(clienttesting.GetAction).GetName())
		if err != nil || !back {
			return err != nil, nil, err
		}
		node := object.(*v1.Node).DeepCopy()
		node.Spec.Taints = nil
		return true, node, nil
	})
	f.createEscalation("m", after(60, forceDelete))
	f.run(5 * time.Minute)
	f.expectActs("the node is back", pod)
	back = false
	f.run(5 * time.Minute)
	f.expectActs("the node is out of service", pod, deletion(pod, "0 s")...)
}

// TestEscalationIsConfirmed has the administrator take an escalation back, or give the node back, which the
// cache does not know yet: nothing else would keep the pod from being deleted.
func TestEscalationIsConfirmed(t *testing.T) {
	admitted := func(change func(*v1.Node, *v1.MaintenanceAdmission)) func(runtime.Object) {
		return func(object runtime.Object) {
			node := object.(*v1.Node)
			change(node, &node.Status.MaintenanceStatus.Admissions[0])
		}
	}
	for name, test := range map[string]struct {
		resource string
		change   func(runtime.Object)
	}{
		"other steps":  {"nodemaintenances", func(object runtime.Object) { object.(*coordinationv1alpha1.NodeMaintenance).Generation++ }},
		"another one":  {"nodemaintenances", func(object runtime.Object) { object.(*coordinationv1alpha1.NodeMaintenance).UID = "other" }},
		"another node": {"nodes", func(object runtime.Object) { object.(*v1.Node).UID = "other" }},
		"released":     {"nodes", func(object runtime.Object) { object.(*v1.Node).Status.MaintenanceStatus = nil }},
		"to be given back": {"nodes", admitted(func(node *v1.Node, admission *v1.MaintenanceAdmission) {
			node.Annotations = map[string]string{coordinationv1alpha1.NodeDoneAnnotation: string(admission.MaintenanceUID)}
		})},
		"coming back":   {"nodes", admitted(func(_ *v1.Node, admission *v1.MaintenanceAdmission) { admission.ReturningTime = ptr.To(metav1.Now()) })},
		"given back":    {"nodes", admitted(func(_ *v1.Node, admission *v1.MaintenanceAdmission) { admission.DoneTime = ptr.To(metav1.Now()) })},
		"other targets": {"nodes", func(object runtime.Object) { object.(*v1.Node).Status.MaintenanceStatus.DrainTargets = nil }},
		"another maintenance waits": {"nodes", func(object runtime.Object) {
			status := object.(*v1.Node).Status.MaintenanceStatus
			status.Admissions = append(status.Admissions, v1.MaintenanceAdmission{MaintenanceName: "patient", MaintenanceUID: "patient"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"a": ""})
			pod := f.createPods(1, "n", 0)[0]
			changed := false
			f.client.PrependReactor("get", test.resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
				get := action.(clienttesting.GetAction)
				object, err := f.tracker.Get(get.GetResource(), "", get.GetName())
				if err != nil || !changed {
					return err != nil, nil, err
				}
				object = object.DeepCopyObject()
				test.change(object)
				return true, object, nil
			})
			f.createEscalation("m", after(60, ignoreBudgets))
			changed = true
			f.run(5 * time.Minute)
			f.expectActs("the API server knows better", pod)
			changed = false
			f.run(5 * time.Minute)
			f.expectActs("the cache is right", pod, deletion(pod, "its grace period")...)
		})
	}
}

// TestPassingOverIsConfirmed has the node be given back, which the cache does not know yet. Others have requested the
// eviction as well, for whom the interceptors go on, and nobody could take back that they are passed over.
func TestPassingOverIsConfirmed(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	changed := false
	f.client.PrependReactor("get", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		get := action.(clienttesting.GetAction)
		object, err := f.tracker.Get(get.GetResource(), "", get.GetName())
		if err != nil || !changed {
			return err != nil, nil, err
		}
		node := object.(*v1.Node).DeepCopy()
		node.Status.MaintenanceStatus.Admissions[0].ReturningTime = ptr.To(metav1.Now())
		return true, node, nil
	})
	f.createEscalation("m", after(60, skipInterceptors))
	f.run(time.Second)
	f.intercept(pod, "slow.example.com")
	changed = true
	f.run(5 * time.Minute)
	f.expectActs("the API server knows better", pod)
	changed = false
	f.run(5 * time.Minute)
	f.expectActs("the cache is right", pod, "evictionrequests/status")
}

// TestEscalationIsConfirmedAfterItsMark has the maintenance end when the pod is marked. Its request may be canceled then,
// which says that the pod stays: nobody has seen the mark.
func TestEscalationIsConfirmedAfterItsMark(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	ended := false
	f.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		ended = true
		return false, nil, nil
	})
	f.client.PrependReactor("get", "nodemaintenances", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return ended, nil, apierrors.NewNotFound(coordinationv1alpha1.Resource("nodemaintenances"), action.(clienttesting.GetAction).GetName())
	})
	f.createEscalation("m", after(60, ignoreBudgets))
	f.run(10 * time.Minute)
	f.expectActs("the maintenance has ended", pod, "pods/status")
}

// TestEscalationRenewsItsMark has a webhook refuse the deletion again and again, or the mark be taken back, which the cache
// does not know yet. Whoever cancels the request while a later attempt is in flight has to find the mark: the disruption
// controller takes it back after two minutes.
func TestEscalationRenewsItsMark(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	refuse, attempts, oldest := f.refuseDeletions(), 0, time.Duration(0)
	f.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		object, err := f.tracker.Get(v1.SchemeGroupVersion.WithResource("pods"), pod.Namespace, pod.Name)
		if err != nil {
			return true, nil, err
		}
		_, mark := podutil.GetPodCondition(&object.(*v1.Pod).Status, v1.DisruptionTarget)
		if mark == nil {
			t.Fatalf("the pod is deleted without a mark")
		}
		attempts, oldest = attempts+1, max(oldest, f.clock.Now().Sub(mark.LastTransitionTime.Time))
		return false, nil, nil
	})
	f.createEscalation("m", after(60, ignoreBudgets))
	f.run(10 * time.Minute)
	if attempts < 10 || oldest > time.Minute {
		t.Errorf("got %d attempts, with a mark of at most %s; want at least 10, with one of a minute or less", attempts, oldest)
	}
	*refuse = false
	f.run(time.Minute)
	if _, err := f.tracker.Get(v1.SchemeGroupVersion.WithResource("pods"), pod.Namespace, pod.Name); !apierrors.IsNotFound(err) {
		t.Errorf("the pod was not deleted: %v", err)
	}
}

// TestEscalationGracePeriods has a pod ask for more time than there is.
func TestEscalationGracePeriods(t *testing.T) {
	f := newFixture(t)
	f.terminateGracefully()
	f.createReadyNode("n", map[string]string{"a": ""})
	f.createEscalation("m", after(3600, ignoreBudgets))
	for _, seconds := range []int64{math.MaxInt64, 13835058055, math.MaxInt64 / int64(time.Second)} {
		pod := f.createPods(1, "n", 0, withGrace(seconds))[0]
		f.run(2 * time.Hour)
		f.expectActs("within the time", pod, deletion(pod, "its grace period")...)
	}
}

// TestEscalationOnce has pods stay after their deletion, because of finalizers or a dead kubelet: they
// are not deleted again, and the object says that they are left.
func TestEscalationOnce(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	f.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		del := action.(clienttesting.DeleteActionImpl)
		object, err := f.tracker.Get(v1.SchemeGroupVersion.WithResource("pods"), del.Namespace, del.Name)
		if err != nil {
			return true, nil, err
		}
		pod := object.(*v1.Pod).DeepCopy()
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(f.clock.Now())), ptr.To(ptr.Deref(del.DeleteOptions.GracePeriodSeconds, 30))
		return true, pod, f.tracker.Update(v1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace)
	})
	pod := f.createPods(1, "n", 0, withGrace(30))[0]
	f.createEscalation("m", after(60, ignoreBudgets), after(120, forceDelete))
	f.run(time.Hour)
	want := deletion(pod, "its grace period")
	f.expectActs("deleted", pod, want...)
	f.changeNamed("n", addTaint(v1.TaintNodeOutOfService), setReady(false))
	f.run(time.Hour)
	want = append(want, deletion(pod, "0 s")[1]) // The pod says why already.
	f.expectActs("removed", pod, want...)
	f.restart()
	f.run(time.Hour)
	f.expectActs("after a restart", pod, want...)
	if m := f.maintenance("m"); status.IsDrained(&m.Status) || m.Status.DrainStatus.EscalatedPods != 1 {
		t.Errorf("unexpected status: %+v", m.Status)
	}
}

// TestEscalationOfNamesakes has a pod, and a maintenance, be deleted and created again with the same name.
// Both begin anew: the clock is that of the admission by the other maintenance.
func TestEscalationOfNamesakes(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	refuse := f.refuseDeletions()
	pod := f.createPods(1, "n", 0, withGrace(0))[0]
	f.createEscalation("m", after(600, ignoreBudgets))
	f.run(620 * time.Second)
	if len(f.actsOn(pod)) == 0 {
		t.Fatal("nothing was tried")
	}
	f.deleteMaintenance("m")
	f.run(time.Minute)
	*refuse = false
	f.client.ClearActions()
	f.createEscalation("m", after(600, ignoreBudgets))
	f.run(590 * time.Second)
	f.expectActs("before the time of the second maintenance", pod)
	if a := maintenance.AdmissionOf(f.node("n"), f.maintenance("m").UID); a.Escalation != "" || a.EscalationTime != nil {
		t.Errorf("the second maintenance has escalated: %+v", a)
	}
	f.run(20 * time.Second)
	f.expectActs("after it", pod, deletion(pod, "its grace period")...)
}

// TestEscalationHeldUp has a maintenance that does not escalate begin after another one has: what was not
// done yet is not done.
func TestEscalationHeldUp(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	refuse := f.refuseDeletions()
	pod := f.createPods(1, "n", 0, withGrace(0))[0]
	f.createEscalation("m", after(60, ignoreBudgets))
	f.run(2 * time.Minute)
	if a := maintenance.AdmissionOf(f.node("n"), f.maintenance("m").UID); a.Escalation != ignoreBudgets || len(f.actsOn(pod)) == 0 {
		t.Fatalf("nothing was tried, and the admission is %+v", a)
	}
	f.createRollout("patient", coordinationv1alpha1.NodeMaintenanceRollout{CompleteNodes: manual})
	f.settle()
	*refuse = false
	f.client.ClearActions()
	f.run(time.Hour)
	f.expectActs("while the other one drains the node", pod)
	f.restart()
	f.run(time.Hour)
	f.expectActs("after a restart", pod)
	f.setStage("patient", stageComplete)
	f.run(55 * time.Second)
	f.expectActs("without notice", pod)
	f.run(10 * time.Second)
	f.expectActs("after its end", pod, deletion(pod, "its grace period")...)
}

// TestEscalationWhenClocksStep has the clock of the controller step, or that of the next one differ.
func TestEscalationWhenClocksStep(t *testing.T) {
	for name, test := range map[string]struct {
		next, before, after time.Duration
	}{
		"back":                        {next: -time.Hour, before: 2*time.Hour - 10*time.Second, after: 2 * time.Minute},
		"as little as a minute ahead": {next: time.Minute, before: time.Hour - 80*time.Second, after: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"a": ""})
			pod := f.createPods(1, "n", 0, withGrace(0))[0]
			f.createEscalation("m", after(3600, ignoreBudgets))
			f.run(time.Second)
			f.clock.SetTime(f.clock.Now().Add(test.next))
			f.restart()
			f.run(test.before)
			f.expectActs("too early", pod)
			f.run(test.after)
			f.expectActs("in time", pod, deletion(pod, "its grace period")...)
		})
	}
}

// TestEscalationByTheServersClock has the clock of the leader, or of the next one, differ from that of the API server:
// an action comes when its time has come there, however wrong they are.
func TestEscalationByTheServersClock(t *testing.T) {
	for name, test := range map[string]struct{ first, second time.Duration }{
		"the next one is 2 hours ahead":   {second: 2 * time.Hour},
		"the next one is 2 hours behind":  {second: -2 * time.Hour},
		"the first one was 2 hours ahead": {first: 2 * time.Hour},
		"both differ":                     {first: -30 * time.Minute, second: 3 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.skew = test.first
			f.restart()
			f.createReadyNode("n", map[string]string{"a": ""})
			pod := f.createPods(1, "n", 0, withGrace(0))[0]
			f.createEscalation("m", after(3600, ignoreBudgets))
			f.run(time.Second)
			begun := f.clock.Now()
			f.skew = test.second
			f.restart()
			f.run(time.Hour - 10*time.Second)
			f.expectActs("too early", pod)
			f.run(10 * time.Second)
			f.expectActs("in time", pod, deletion(pod, "its grace period")...)
			a := maintenance.AdmissionOf(f.node("n"), f.maintenance("m").UID)
			if a.EscalationTime == nil || a.EscalationTime.Sub(begun) > time.Hour+10*time.Second || a.AdmittedTime.Sub(begun).Abs() > 10*time.Second {
				t.Errorf("at %v, the admission is %+v", f.clock.Now(), a)
			}
		})
	}
}

// TestEscalationConfirmsTheTime has the local clock jump ahead after the last answer of the API server: the action is
// stored too early, and nothing is done before its time.
func TestEscalationConfirmsTheTime(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0, withGrace(0))[0]
	f.createEscalation("m", after(3600, ignoreBudgets))
	f.run(time.Minute)
	local := f.Controller.clock.WithTicker.(*skewedClock)
	local.ahead = 2 * time.Hour
	f.nodeQueue.Add("n")
	f.run(58 * time.Minute)
	f.expectActs("too early", pod)
	f.run(2 * time.Minute)
	f.expectActs("in time", pod, deletion(pod, "its grace period")...)
}

// TestEscalationConfirmsTheTimeOfDeletions has the local clock jump ahead when the action has begun for another pod, so
// that nothing has to be stored: the reads before the deletion say what time it is.
func TestEscalationConfirmsTheTimeOfDeletions(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0, withGrace(0), ofApp("first"))
	pod := f.createPods(1, "n", 0, withGrace(0), ofApp("second"))[0]
	f.createEscalation("m", after(60, ignoreBudgets, "first"), after(3600, ignoreBudgets, "second"))
	f.run(2 * time.Minute)
	local := f.Controller.clock.WithTicker.(*skewedClock)
	f.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		f.Controller.clock.Observe(f.clock.Now(), local.Now(), local.Now())
		return false, nil, nil
	})
	local.ahead = 2 * time.Hour
	f.nodeQueue.Add("n")
	f.run(57 * time.Minute)
	f.expectActs("too early", pod)
	f.run(2 * time.Minute)
	f.expectActs("in time", pod, deletion(pod, "its grace period")...)
}

// TestEscalationIsHeldUp has a maintenance that does not escalate protect a pod: whoever drains the node as well sees
// that and by whom, and is given notice when it has ended, before the pod is deleted.
func TestEscalationIsHeldUp(t *testing.T) {
	for name, test := range map[string]struct {
		seconds int32
		notice  time.Duration
		// restarts is whether another process takes over while the escalation is held up.
		restarts bool
	}{
		"a long step":       {seconds: 3600, notice: decision.EscalationGrace},
		"a short step":      {seconds: 60, notice: time.Minute},
		"another process":   {seconds: 3600, notice: decision.EscalationGrace, restarts: true},
		"with begun action": {seconds: 120, notice: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"a": ""})
			pod := f.createPods(1, "n", 0, withGrace(0))[0]
			f.createEscalation("m", after(test.seconds, ignoreBudgets))
			f.createRollout("patient", coordinationv1alpha1.NodeMaintenanceRollout{CompleteNodes: manual})
			f.run(time.Second)
			f.intercept(pod, "slow.example.com")
			f.run(time.Duration(test.seconds)*time.Second - 5*time.Second)
			heldUp := func() (text string, events int) {
				for _, event := range f.events {
					if strings.HasPrefix(event, "NodeMaintenance m: EscalationHeldUp: ") {
						events++
						text = event
					}
				}
				return text, events
			}
			if text, events := heldUp(); events > 0 {
				t.Errorf("too early: %s", text)
			}
			f.run(10 * time.Second)
			text, events := heldUp()
			if want := "The drain of node n has come to IgnoreBudgets of spec.escalation, which NodeMaintenance patient holds up"; events != 1 || !strings.Contains(text, want) {
				t.Errorf("%d events, the last one %q", events, text)
			}
			want := "spec.escalation of NodeMaintenance m has come to IgnoreBudgets, held up by NodeMaintenance patient"
			for _, name := range []string{"m", "patient"} {
				if blockers := f.maintenance(name).Status.DrainStatus.Blockers; len(blockers) != 1 || !strings.Contains(blockers[0].Message, want) {
					t.Errorf("%s has the blockers %+v", name, blockers)
				}
			}
			if test.restarts {
				f.restart()
			}
			f.run(3 * time.Hour)
			if _, events := heldUp(); events != 1 && !test.restarts {
				t.Errorf("%d events", events)
			}
			f.setStage("patient", stageComplete)
			f.run(test.notice - 5*time.Second)
			f.expectActs("without notice", pod)
			if blockers := f.maintenance("m").Status.DrainStatus.Blockers; len(blockers) != 1 || strings.Contains(blockers[0].Message, "held up") {
				t.Errorf("still held up: %+v", blockers)
			}
			f.run(10 * time.Second)
			f.expectActs("then", pod, deletion(pod, "its grace period")...)
		})
	}
}

// TestEscalationAfterAPodWasKept has the policy of another maintenance keep a pod from leaving, which is the last one: who
// drains the node sees that the escalation is held up, and when the pod is to leave at last, it has as much notice as
// one that was asked before.
func TestEscalationAfterAPodWasKept(t *testing.T) {
	complete := func(f *fixture, _ *v1.Pod) { f.setStage("keeper", stageComplete) }
	steps := []coordinationv1alpha1.NodeMaintenanceEscalationStep{after(7200, ignoreBudgets)}
	for name, test := range map[string]struct {
		// steps are those of the maintenance that keeps the pod, and end what ends that.
		steps []coordinationv1alpha1.NodeMaintenanceEscalationStep
		end   func(f *fixture, kept *v1.Pod)
		// stays is whether another pod cannot be deleted until then, so that the action goes on.
		stays bool
	}{
		"by one that does not escalate": {end: complete},
		"by one that is as far":         {steps: steps, end: complete},
		"its label is removed": {steps: steps, end: func(f *fixture, kept *v1.Pod) {
			unlabeled := kept.DeepCopy()
			unlabeled.Labels = nil
			if _, err := f.client.CoreV1().Pods(kept.Namespace).Update(f.ctx, unlabeled, metav1.UpdateOptions{}); err != nil {
				f.t.Fatal(err)
			}
		}},
		"it ends while no controller runs": {steps: steps, stays: true, end: func(f *fixture, kept *v1.Pod) {
			complete(f, kept)
			f.restart()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"a": ""})
			kept, other := f.createPods(1, "n", 0, withGrace(0), ofApp("db"))[0], f.createPods(1, "n", 0, withGrace(0))[0]
			refuse := f.refuseDeletions()
			*refuse = test.stays
			f.createEscalation("m", steps...)
			f.createEscalation("keeper", test.steps...)
			f.change("keeper", func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Spec.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{policy(coordinationv1alpha1.NodeMaintenancePodSkip, "db")}
			})
			f.run(3 * time.Hour)
			if test.steps == nil {
				f.deletePods(other) // Otherwise, the escalation has deleted it.
			}
			f.run(time.Hour)
			if f.asksFor(kept) {
				t.Fatal("the pod is asked to leave before")
			}
			f.expectEvent("NodeMaintenance m: EscalationHeldUp: The drain of node n has come to IgnoreBudgets of spec.escalation, which NodeMaintenance keeper holds up: it drains the node as well, and has not come to that, or keeps pods")
			want := "held up by NodeMaintenance keeper"
			if blockers := f.maintenance("m").Status.DrainStatus.Blockers; !slices.ContainsFunc(blockers, func(b coordinationv1alpha1.DrainBlocker) bool { return strings.Contains(b.Message, want) }) {
				t.Errorf("the blockers do not say %q: %+v", want, blockers)
			}
			*refuse = false
			test.end(f, kept)
			f.run(decision.EscalationGrace - 5*time.Second)
			if !f.asksFor(kept) {
				t.Error("the pod is not asked to leave")
			}
			f.expectActs("without notice", kept)
			f.run(10 * time.Second)
			f.expectActs("then", kept, deletion(kept, "its grace period")...)
		})
	}
}

// TestEscalationAfterOutage checks that an action that has come while no controller ran begins five minutes
// after one runs again, or after as long as its step says: until then, pods may leave as they should. What
// has begun goes on at once, and what comes later is not delayed.
func TestEscalationAfterOutage(t *testing.T) {
	for name, test := range map[string]struct {
		seconds int32
		// begun is whether another pod was deleted before the outage.
		begun        bool
		outage, wait time.Duration
	}{
		"hours":                      {3600, false, 5 * time.Hour, decision.EscalationGrace},
		"a short step":               {60, false, time.Hour, time.Minute},
		"it comes in these minutes":  {3600, false, 57 * time.Minute, decision.EscalationGrace},
		"it comes after these":       {3600, false, 30 * time.Minute, 30*time.Minute - 2*time.Second},
		"it had begun":               {60, true, time.Hour, 0},
		"it had not for this pod":    {120, true, time.Hour, 2 * time.Minute},
		"the controller has stopped": {60, false, 0, 58 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"a": ""})
			steps := []coordinationv1alpha1.NodeMaintenanceEscalationStep{after(test.seconds, ignoreBudgets)}
			if test.begun && test.seconds > 60 {
				steps = append([]coordinationv1alpha1.NodeMaintenanceEscalationStep{after(60, ignoreBudgets, "first")}, steps...)
			}
			f.createEscalation("m", steps...)
			pod := f.createPods(1, "n", 0, withGrace(0), ofApp("second"))[0]
			refuse := f.refuseDeletions()
			if test.begun {
				f.createPods(1, "n", 0, withGrace(0), ofApp("first"))
				f.run(90 * time.Second)
				if a := maintenance.AdmissionOf(f.node("n"), f.maintenance("m").UID); a.Escalation != ignoreBudgets {
					t.Fatalf("unexpected admission: %+v", a)
				}
			}
			f.run(2 * time.Second)
			f.client.ClearActions()
			f.clock.Step(test.outage)
			*refuse = false
			f.restart()
			f.run(test.wait - 3*time.Second)
			if test.wait > 0 {
				f.expectActs("too early", pod)
			}
			f.run(5 * time.Second)
			f.expectActs("then", pod, deletion(pod, "its grace period")...)
		})
	}
}

// A conflict says that something has changed since the decision. Nobody has refused anything: there is no event, and
// the next attempt waits until the cache has the change.
func TestEscalationConflictIsNoFailure(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0, withGrace(0))[0]
	changed := false
	f.client.PrependReactor("get", "nodemaintenances", func(action clienttesting.Action) (bool, runtime.Object, error) {
		get := action.(clienttesting.GetAction)
		object, err := f.tracker.Get(get.GetResource(), "", get.GetName())
		if err != nil || !changed {
			return err != nil, nil, err
		}
		m := object.DeepCopyObject().(*coordinationv1alpha1.NodeMaintenance)
		m.Generation++
		return true, m, nil
	})
	f.createEscalation("m", after(60, ignoreBudgets))
	f.run(59 * time.Second)
	changed = true
	f.run(3 * time.Second)
	if m := f.maintenance("m"); len(m.Status.DrainStatus.Blockers) != 1 || m.Status.DrainStatus.Blockers[0].Cause == coordinationv1alpha1.DrainBlockerRequestFailed {
		t.Errorf("blockers %+v", m.Status.DrainStatus.Blockers)
	}
	f.run(time.Minute)
	for _, event := range f.events {
		if strings.Contains(event, "EscalationFailed") {
			t.Errorf("unexpected event: %s", event)
		}
	}
	if m := f.maintenance("m"); len(m.Status.DrainStatus.Blockers) != 1 || m.Status.DrainStatus.Blockers[0].Cause != coordinationv1alpha1.DrainBlockerRequestFailed {
		t.Errorf("it goes on, and nothing says so: %+v", m.Status.DrainStatus.Blockers)
	}
	changed = false
	f.run(time.Minute)
	f.expectActs("the cache is right", pod, deletion(pod, "its grace period")...)
}
