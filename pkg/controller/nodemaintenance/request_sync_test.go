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
	"context"
	"slices"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
	"k8s.io/utils/ptr"
)

// hang starts a drain of the node n in which the write of a request gets no response.
func hang(t *testing.T) *fixture {
	f := newFixture(t)
	f.hung = sets.New("default")
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.run(5 * time.Second)
	if len(f.running) != 1 || f.running[0].write == nil {
		t.Fatalf("running: %+v", f.running)
	}
	return f
}

func (f *fixture) requested() int {
	f.t.Helper()
	count := 0
	list, err := f.client.CoordinationV1alpha1().EvictionRequests("").List(f.ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range list.Items {
		if requests.IsRequested(&list.Items[i]) {
			count++
		}
	}
	return count
}

// TestRequestsAreConfirmed: a controller that was suspended, and goes on with old caches, requests no eviction for a
// maintenance that has ended, or from a node whose targets are gone or that is another one.
func TestRequestsAreConfirmed(t *testing.T) {
	for name, change := range map[string]func(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node){
		"the maintenance is completed":     func(m *coordinationv1alpha1.NodeMaintenance, _ *v1.Node) { m.Spec.Stage = stageComplete },
		"the maintenance is being deleted": func(m *coordinationv1alpha1.NodeMaintenance, _ *v1.Node) { m.DeletionTimestamp = ptr.To(metav1.Now()) },
		"it is another maintenance":        func(m *coordinationv1alpha1.NodeMaintenance, _ *v1.Node) { m.UID = "other" },
		"it is another node":               func(_ *coordinationv1alpha1.NodeMaintenance, node *v1.Node) { node.UID = "other" },
		"the node was given back": func(_ *coordinationv1alpha1.NodeMaintenance, node *v1.Node) {
			for i := range maintenance.Admissions(node) {
				node.Status.MaintenanceStatus.Admissions[i].ReturningTime = ptr.To(metav1.Now())
			}
		},
		"the targets are gone": func(_ *coordinationv1alpha1.NodeMaintenance, node *v1.Node) { node.Status.MaintenanceStatus = nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			f.createPods(2, "n", 0)
			reads, stale := 0, true
			f.client.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if action.GetSubresource() != "" {
					return false, nil, nil
				}
				object, err := f.tracker.Get(action.GetResource(), "", action.(clienttesting.GetAction).GetName())
				if err != nil {
					return true, nil, err
				}
				m, node := &coordinationv1alpha1.NodeMaintenance{}, &v1.Node{}
				switch read := object.DeepCopyObject().(type) {
				case *coordinationv1alpha1.NodeMaintenance:
					m, object = read, read
				case *v1.Node:
					reads++
					node, object = read, read
				default:
					return false, nil, nil
				}
				if stale {
					change(m, node)
				}
				return true, object, nil
			})
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			f.run(10 * time.Second)
			if got := f.patches(); got > 0 {
				t.Errorf("requested %d times", got)
			}
			stale, reads = false, 0
			f.run(time.Minute)
			if f.requested() != 2 || reads != 1 {
				t.Errorf("%d of 2 requested, the node read %d times", f.requested(), reads)
			}
		})
	}
}

// A maintenance is not completed, and its targets stay on the node, while the write of a request is
// running. If the request is stored, it is withdrawn.
func TestCompletionWaitsForARunningRequest(t *testing.T) {
	for _, how := range []outcome{answered, late, timedOut} {
		f := hang(t)
		f.setStage("m", stageComplete)
		f.run(10 * time.Second)
		if node := f.node("n"); node.Spec.Unschedulable || progress.StoredTargets(node).IsEmpty() || len(f.maintenance("m").Finalizers) == 0 {
			t.Errorf("%d: while the write is running: node %+v, maintenance %+v", how, node.Status, f.maintenance("m"))
		}
		f.endRequest(0, how)
		f.hung.Clear()
		f.settle()
		if node := f.node("n"); node.Status.MaintenanceStatus != nil || len(f.maintenance("m").Finalizers) > 0 || f.requested() > 0 {
			t.Errorf("%d: afterwards: node %+v, maintenance %+v, %d requests", how, node.Status, f.maintenance("m"), f.requested())
		}
	}
}

// The same applies if the node is no longer selected, or is gone.
func TestCompletionWaitsForARequestOfALostNode(t *testing.T) {
	for name, lose := range map[string]func(*fixture){
		"other labels": func(f *fixture) { f.relabel("n", nil) },
		"gone": func(f *fixture) {
			if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		f := hang(t)
		lose(f)
		f.run(5 * time.Second)
		f.setStage("m", stageComplete)
		f.run(10 * time.Second)
		if len(f.maintenance("m").Finalizers) == 0 {
			t.Errorf("%s: completed while a request is being written", name)
		}
		f.endRequest(0, answered)
		f.hung.Clear()
		f.settle()
		if len(f.maintenance("m").Finalizers) > 0 || f.requested() > 0 {
			t.Errorf("%s: maintenance %+v, %d requests", name, f.maintenance("m"), f.requested())
		}
	}
}

// A waiting write is skipped if it is no longer needed when a worker takes it.
func TestWritesAreCheckedAgain(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"completed": func(f *fixture) { f.setStage("m", stageComplete); f.deliverAll(); f.syncOnly("m") },
		"pod gone":  func(f *fixture) { f.endAllPods(); f.deliverAll() },
		"pod finished": func(f *fixture) {
			for _, pod := range f.cluster().pods["n"] {
				finished := pod.DeepCopy()
				finished.Status.Phase = v1.PodSucceeded
				if _, err := f.client.CoreV1().Pods(pod.Namespace).UpdateStatus(f.ctx, finished, metav1.UpdateOptions{}); err != nil {
					f.t.Fatal(err)
				}
			}
			f.deliverAll()
		},
		"another pod of that name": func(f *fixture) {
			for _, pod := range f.cluster().pods["n"] {
				f.deletePods(pod)
				next := pod.DeepCopy()
				next.UID = f.newUID()
				if _, err := f.client.CoreV1().Pods(pod.Namespace).Create(f.ctx, next, metav1.CreateOptions{}); err != nil {
					f.t.Fatal(err)
				}
			}
			f.deliverAll()
		},
		"other labels": func(f *fixture) { f.relabel("n", nil); f.deliverAll() },
		"node gone": func(f *fixture) {
			if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{}); err != nil {
				f.t.Fatal(err)
			}
			f.deliverAll()
		},
		"targets gone": func(f *fixture) {
			node := f.node("n")
			node.Status.MaintenanceStatus = nil
			f.update(node)
			f.deliverAll()
		},
		"cordon refused": func(f *fixture) {
			node := f.node("n")
			node.Spec.Unschedulable = false
			f.update(node)
			f.deliverAll()
			f.failures.Failed("n", write.Cordon.Of(node.UID), webhook("n"), time.Time{}, f.clock.Now())
		},
		"already requested": func(f *fixture) {
			for _, pod := range f.cluster().pods["n"] {
				if !slices.Contains(f.requests.WaitingFor("n"), pod.UID) {
					continue
				}
				if err := f.writer.Request(f.ctx, pod); err != nil {
					f.t.Fatal(err)
				}
			}
			f.deliverAll()
		},
	} {
		f := newFixture(t)
		f.hung = sets.New("default")
		f.requests.Limit(requests.NamespaceShare, 1)
		f.createNode("n", map[string]string{"a": ""})
		f.createPods(2, "n", 0)
		f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
		f.run(5 * time.Second)
		if len(f.running) != 1 {
			t.Fatalf("running: %+v", f.running)
		}
		f.endRequest(0, timedOut)
		change(f)
		before := f.requested()
		if !f.beginRequest() || f.running[0].write != nil || f.requested() != before {
			t.Errorf("%s: %+v", name, f.running)
		}
	}
}

func (f *fixture) syncOnly(name string) {
	f.t.Helper()
	if err := f.syncMaintenance(f.ctx, name); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) endAllPods() {
	f.deletePods(f.cluster().pods["n"]...)
}

// withdrawal completes a drain of the node n until its only withdrawal waits in the queue.
func withdrawal(t *testing.T) *fixture {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(1, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	f.setStage("m", stageComplete)
	for f.requests.Len() == 0 {
		f.deliverAll()
		if !f.stepSyncs() {
			f.clock.Step(pace.SummaryDelay)
			f.nodeQueue.release()
			f.maintenanceQueue.release()
		}
	}
	return f
}

// A waiting withdrawal is skipped, too, if the request is gone or must not be withdrawn.
func TestWithdrawalThatIsOver(t *testing.T) {
	for name, change := range map[string]func(*fixture, *coordinationv1alpha1.EvictionRequest) error{
		"gone": func(f *fixture, request *coordinationv1alpha1.EvictionRequest) error {
			return f.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).Delete(f.ctx, request.Name, metav1.DeleteOptions{})
		},
		"forbidden": func(f *fixture, request *coordinationv1alpha1.EvictionRequest) error {
			request.Status.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
			_, err := f.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).UpdateStatus(f.ctx, request, metav1.UpdateOptions{})
			return err
		},
	} {
		f := withdrawal(t)
		list, err := f.client.CoordinationV1alpha1().EvictionRequests("").List(f.ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%d requests, error %v", len(list.Items), err)
		}
		if err := change(f, &list.Items[0]); err != nil {
			t.Fatal(err)
		}
		f.deliverAll()
		if !f.beginRequest() || f.running[0].write != nil {
			t.Errorf("%s: running: %+v", name, f.running)
		}
	}
}

// A waiting withdrawal is also skipped if another maintenance needs the request.
func TestWithdrawalIsCheckedAgain(t *testing.T) {
	f := withdrawal(t)
	f.createMaintenance("o", stageDrain, "a", maintenance.StandardPlan()...)
	f.change("o", func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Finalizers = []string{coordinationv1alpha1.NodeMaintenanceFinalizer}
	})
	f.deliverAll()
	f.syncOnly("o")
	if !f.beginRequest() || f.running[0].write != nil {
		t.Errorf("running: %+v", f.running)
	}
	f.settle()
	if f.requested() != 1 || len(f.maintenance("m").Finalizers) > 0 {
		t.Errorf("%d requests, maintenance %+v", f.requested(), f.maintenance("m"))
	}
}

// A write that is interrupted because the controller stops is not recorded as a failure.
func TestStoppedWriteIsNoFailure(t *testing.T) {
	f := hang(t)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	f.recordOutcome(ctx, f.running[0].Write, context.Canceled)
	if len(f.failures.Nodes()) > 0 {
		t.Errorf("recorded failures %v", f.failures.Nodes())
	}
	f.expectNoEvent("EvictionRequestFailed")
}

// When the retry of a failed write succeeds, the failure is removed at once, before the next sync
// of the node.
func TestFailureEndsWithTheWrite(t *testing.T) {
	f := hang(t)
	f.endRequest(0, timedOut)
	f.run(10 * time.Second)
	if len(f.running) != 1 || len(f.failures.Nodes()) != 1 {
		t.Fatalf("running: %+v, failures: %v", f.running, f.failures.Nodes())
	}
	f.endRequest(0, answered)
	if len(f.failures.Nodes()) > 0 {
		t.Errorf("recorded failures %v", f.failures.Nodes())
	}
}

// A failed request for a pod that is gone causes no event.
func TestFailureForAPodThatIsGone(t *testing.T) {
	f := hang(t)
	f.endAllPods()
	f.deliverAll()
	f.endRequest(0, timedOut)
	f.expectNoEvent("EvictionRequestFailed")
}

// An eviction is requested once, even if the cache lags behind for a long time.
func TestRequestIsNotRepeatedWhileTheCacheIsBehind(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createPods(2, "n", 0)
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.deliverRequests()
	syncs := f.runWithoutRequests(30 * time.Second)
	patches := 0
	for _, write := range f.writes() {
		if write == "patch evictionrequests" {
			patches++
		}
	}
	// The syncs follow after 20, 40, ... 640 milliseconds, then once a second.
	if patches != 2 || syncs < 30 || syncs > 60 {
		t.Errorf("%d requests, want 2; %d syncs of the node", patches, syncs)
	}
	f.settle()
	if len(f.writer.UnseenNodes())+len(f.pacer.Names(pace.NodeCache)) > 0 {
		t.Errorf("unseen writes %v, delays %v", f.writer.UnseenNodes(), f.pacer.Names(pace.NodeCache))
	}
}

// For a pod that is already evicted, which the caches do not show yet, one request is written.
func TestEvictedPodIsAskedOnce(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.deliverRequests()
	request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: string(pod.UID)}}
	request.Status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.EvictionRequestConditionEvicted), Status: metav1.ConditionTrue}}
	if _, err := f.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Create(f.ctx, request, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	f.runWithoutRequests(10 * time.Second)
	patches := 0
	for _, write := range f.writes() {
		if write == "patch evictionrequests" {
			patches++
		}
	}
	if patches != 1 {
		t.Errorf("%d requests, want 1", patches)
	}
}

// runWithoutRequests runs the controller for a while without updates of its cache of requests, and
// counts the syncs of nodes.
func (f *fixture) runWithoutRequests(duration time.Duration) (syncs int) {
	f.t.Helper()
	for end := f.clock.Now().Add(duration); ; {
		f.deliverNodes()
		f.deliverMaintenances()
		f.deliverPods()
		before := len(f.nodeQueue.keys)
		if f.step() {
			if len(f.nodeQueue.keys) < before {
				syncs++
			}
			continue
		}
		due, ok := f.nextDue()
		if !ok || due.After(end) {
			return syncs
		}
		f.advanceTo(due)
	}
}

// What has finished a request decides whether another one follows, unless it is being deleted.
func TestIsOver(t *testing.T) {
	const canceled, evicted = coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestConditionEvicted
	for name, test := range map[string]struct {
		condition            coordinationv1alpha1.EvictionRequestConditionType
		reason               string
		deleted, terminating bool
		want                 bool
	}{
		"refused":                               {condition: canceled, reason: coordinationv1alpha1.EvictionRequestReasonValidationFailed, want: true},
		"refused, and deleted":                  {condition: canceled, reason: coordinationv1alpha1.EvictionRequestReasonValidationFailed, deleted: true},
		"canceled":                              {condition: canceled, reason: "NoRequesters"},
		"canceled, and deleted":                 {condition: canceled, reason: "NoRequesters", deleted: true},
		"evicted":                               {condition: evicted, reason: "PodDeleted", want: true},
		"evicted, and deleted":                  {condition: evicted, reason: "PodDeleted", deleted: true},
		"evicted, and deleted, the pod leaves":  {condition: evicted, reason: "PodDeleted", deleted: true, terminating: true, want: true},
		"canceled, and deleted, the pod leaves": {condition: canceled, reason: "NoRequesters", deleted: true, terminating: true},
	} {
		request, pod, now := &coordinationv1alpha1.EvictionRequest{}, &v1.Pod{}, metav1.Now()
		request.Status.Conditions = []metav1.Condition{{Type: string(test.condition), Status: metav1.ConditionTrue, Reason: test.reason}}
		if test.deleted {
			request.DeletionTimestamp = &now
		}
		if test.terminating {
			pod.DeletionTimestamp = &now
		}
		if got := requests.IsOver(request, pod); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
