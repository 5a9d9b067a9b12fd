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
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/decision"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/rollout"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

// wakeUps are the keys that are enqueued because of an event.
type wakeUps struct {
	Nodes, Maintenances []string
	// Admissions is whether they are decided again.
	Admissions bool
}

// wakenedBy returns what an event enqueues, at once or later.
func (f *fixture) wakenedBy(event func()) wakeUps {
	for _, queue := range f.queues() {
		queue.keys, queue.later = nil, map[string]time.Time{}
	}
	event()
	_, admissions := f.admissionQueue.later[admissionsKey]
	return wakeUps{f.nodeQueue.keys, f.maintenanceQueue.keys, admissions}
}

// Every event that a decision may depend on wakes up who decides, and no other one does. A deletion
// that the watch has missed is like one that it has not.
func TestEventsWakeUp(t *testing.T) {
	f := newFleet(t, "draining")
	f.createReadyNode("idle", nil)
	idle := f.createPods(1, "idle", 0)[0]
	f.createPlain("m")
	f.settle()
	requestBy := func(requester string) *coordinationv1alpha1.EvictionRequest {
		return &coordinationv1alpha1.EvictionRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: idle.Namespace, Name: string(idle.UID)},
			Spec: coordinationv1alpha1.EvictionRequestSpec{
				Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: idle.Name, UID: string(idle.UID)}},
				Requesters: []coordinationv1alpha1.Requester{{Name: requester}},
			},
		}
	}
	m, node := f.maintenance("m"), f.node("draining")
	podOn := func(node string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p"}, Spec: v1.PodSpec{NodeName: node}}
	}
	budget := &coordinationv1alpha1.NodeMaintenanceBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "b", Generation: 1}, Spec: coordinationv1alpha1.NodeMaintenanceBudgetSpec{NodeSelector: m.Spec.NodeSelector}}
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	attachedTo := func(node string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: node}}
	}
	const own, other = coordinationv1alpha1.NodeMaintenanceRequester, "other.example.com"
	ofNode, ofFleet, ofIdle := wakeUps{Nodes: []string{"draining"}}, wakeUps{Nodes: []string{"draining"}, Admissions: true}, wakeUps{Nodes: []string{"idle"}}
	for _, source := range []struct {
		name     string
		informer *handledInformer
		// object is added and deleted. changed is an update of it that matters, and same one that does not.
		object, changed, same runtime.Object
		// added, updated, notUpdated and gone are what these events wake up.
		added, updated, notUpdated, gone wakeUps
	}{
		{
			name: "a maintenance", informer: f.maintenanceInformer, object: m, changed: m, same: m,
			added: wakeUps{Maintenances: []string{"m"}}, updated: wakeUps{Maintenances: []string{"m"}},
			notUpdated: wakeUps{Maintenances: []string{"m"}}, gone: wakeUps{Maintenances: []string{"m"}},
		},
		{
			name: "a node", informer: f.nodeInformer, object: node,
			changed: changed(node, func(node *v1.Node) { node.Spec.Unschedulable = false }), same: changed(node, func(node *v1.Node) { node.Annotations = map[string]string{"a": "b"} }),
			added: ofFleet, updated: ofFleet, gone: ofFleet,
		},
		{
			name: "a pod on a node that is drained", informer: f.podInformer, object: podOn("draining"),
			changed: changed(podOn("draining"), func(pod *v1.Pod) { pod.Status.Phase = v1.PodFailed }), same: changed(podOn("draining"), func(pod *v1.Pod) { pod.Status.Phase = v1.PodRunning }),
			added: ofNode, updated: ofNode, gone: ofNode,
		},
		{name: "a pod that is bound to one", informer: f.podInformer, object: podOn(""), changed: podOn("draining"), same: podOn(""), updated: ofNode},
		{
			name: "a pod on another node", informer: f.podInformer, object: podOn("idle"),
			changed: changed(podOn("idle"), func(pod *v1.Pod) { pod.Status.Phase = v1.PodFailed }), same: podOn("idle"),
		},
		// TestRequestsOfPods has more.
		{
			name: "a request that is withdrawn", informer: f.requestInformer, object: requestBy(own), changed: requestBy(other), same: requestBy(own),
			added: ofIdle, updated: ofIdle, notUpdated: ofIdle, gone: ofIdle,
		},
		{name: "a request that is joined", informer: f.requestInformer, object: requestBy(other), changed: requestBy(own), same: requestBy(other), updated: ofIdle},
		{
			name: "a budget", informer: f.limitInformer, object: budget,
			changed: changed(budget, func(b *coordinationv1alpha1.NodeMaintenanceBudget) { b.Generation = 2 }),
			same:    changed(budget, func(b *coordinationv1alpha1.NodeMaintenanceBudget) { b.Generation = 2 }),
			added:   ofFleet, updated: ofFleet, notUpdated: wakeUps{Admissions: true}, gone: ofFleet,
		},
		{
			name: "a namespace", informer: f.namespaceInformer, object: namespace,
			changed: changed(namespace, func(n *v1.Namespace) { n.Labels = map[string]string{"a": "b"} }), same: changed(namespace, func(n *v1.Namespace) { n.Annotations = map[string]string{"a": "b"} }),
			added: ofNode, updated: ofNode,
		},
		{name: "a volume of a node that is drained", informer: f.attachmentInformer, object: attachedTo("draining"), changed: attachedTo("draining"), same: attachedTo("draining"), gone: ofNode},
		{name: "a volume of another node", informer: f.attachmentInformer, object: attachedTo("idle"), changed: attachedTo("idle"), same: attachedTo("idle")},
	} {
		handler := source.informer.handler
		for _, event := range []struct {
			name string
			send func()
			want wakeUps
		}{
			{"added", func() { handler.OnAdd(source.object, false) }, source.added},
			{"updated", func() { handler.OnUpdate(source.object, source.changed) }, source.updated},
			{"updated without effect", func() { handler.OnUpdate(source.object, source.same) }, source.notUpdated},
			{"deleted", func() { handler.OnDelete(source.object) }, source.gone},
			{"deleted while the watch was interrupted", func() { handler.OnDelete(cache.DeletedFinalStateUnknown{Obj: source.object}) }, source.gone},
		} {
			if diff := cmp.Diff(event.want, f.wakenedBy(event.send)); diff != "" {
				t.Errorf("%s, %s (-want, +got):\n%s", source.name, event.name, diff)
			}
		}
	}
}

// changed returns a changed copy.
func changed[T any, P interface {
	*T
	DeepCopy() *T
}](object P, change func(*T)) P {
	copied := object.DeepCopy()
	change(copied)
	return copied
}

// A node that waits for its last volume is drained as soon as that is detached.
func TestDetachedVolumeWakesUp(t *testing.T) {
	f := newFleet(t, "n")
	volume := "data"
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}
	deliver(f, f.attachmentInformer, []*storagev1.VolumeAttachment{attachment}, nil)
	f.createWith("m", "a", func(spec *coordinationv1alpha1.NodeMaintenanceSpec) {
		timeout := int32(3600)
		spec.DrainedWhen = &coordinationv1alpha1.NodeMaintenanceDrainedWhen{Volumes: coordinationv1alpha1.NodeMaintenanceVolumesDetached, TimeoutSeconds: &timeout}
	})
	f.drainNodes()
	if m := f.maintenance("m"); status.IsDrained(&m.Status) {
		t.Fatalf("drained with a volume: %+v", m.Status)
	}
	deliver(f, f.attachmentInformer, []*storagev1.VolumeAttachment{}, nil)
	f.run(2 * pace.StatusInterval)
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
		t.Errorf("not drained without a volume: %+v", m.Status)
	}
}

// An admission of a maintenance that the cache lacks wakes up its node when it has not appeared in time,
// whatever else happens to the node: another maintenance drains it meanwhile.
func TestUnknownAdmissionWakesUp(t *testing.T) {
	f := newFleet(t, "n")
	f.createPlain("other")
	f.settle()
	gone := v1.MaintenanceAdmission{MaintenanceName: "gone", MaintenanceUID: "gone", AdmittedTime: metav1.NewTime(f.clock.Now())}
	f.changeNamed("n", func(node *v1.Node) {
		node.Status.MaintenanceStatus.Admissions = append(node.Status.MaintenanceStatus.Admissions, gone)
	})
	f.run(progress.UnknownAdmission - time.Second)
	if maintenance.AdmissionOf(f.node("n"), gone.MaintenanceUID) == nil {
		t.Fatal("the cache may be behind")
	}
	f.run(3 * time.Second)
	if maintenance.AdmissionOf(f.node("n"), gone.MaintenanceUID) != nil {
		t.Error("the cache is not behind")
	}
}

// A node is looked at again soon after each write of this controller, also if no event follows: if another
// client reverts the write while the watch is interrupted, the cache has what it had before.
func TestNodeIsLookedAtAgainAfterAWrite(t *testing.T) {
	drained := func(t *testing.T) *fixture {
		f := newFleet(t, "n")
		f.createPlain("m")
		f.settle()
		return f
	}
	writeNode := func(f *fixture) {
		if err := f.writeNode(f.ctx, "n"); err != nil {
			f.t.Error(err)
		}
	}
	for name, test := range map[string]struct {
		fixture func(t *testing.T) *fixture
		// prepare changes what a write follows from, which the next sync of the node decides on.
		prepare, write func(f *fixture)
	}{
		"a cordon": {drained, func(f *fixture) {
			f.changeNamed("n", func(node *v1.Node) { node.Spec.Unschedulable = false })
		}, writeNode},
		"a status": {drained, func(f *fixture) { f.createPods(1, "n", 0); f.clock.Step(pace.ProgressInterval) }, writeNode},
		"a taint": {func(t *testing.T) *fixture {
			f := newFleet(t, "n")
			f.createLimit("freeze", 0)
			f.createPlain("m")
			f.settle()
			return f
		}, func(f *fixture) { f.changeNamed("n", removeTaint(coordinationv1alpha1.NodePlannedTaint)) }, writeNode},
		"a request": {drained, func(f *fixture) { f.createPods(1, "n", 0) }, func(f *fixture) {
			if !f.beginRequest() {
				f.t.Fatal("nothing is requested")
			}
			f.endRequest(0, answered)
		}},
		"an admission": {drained, func(*fixture) {}, func(f *fixture) {
			f.admitted(rollout.Admission{Node: f.node("n"), Maintenance: f.maintenance("m")})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := test.fixture(t)
			test.prepare(f)
			f.deliverAll()
			if err := f.syncNode(f.ctx, "n"); err != nil {
				t.Fatal(err)
			}
			f.nodeQueue.keys, f.nodeQueue.later = nil, map[string]time.Time{}
			f.client.ClearActions()
			test.write(f)
			if due, found := f.nodeQueue.later["n"]; !found || due.After(f.clock.Now().Add(pace.StaleInterval)) {
				t.Errorf("the node is looked at again at %v, the write was at %v: %v", due, f.clock.Now(), f.client.Actions())
			}
		})
	}
}

// The status of a rollout is written once a second while pods leave, and every two seconds while nodes
// wait: each admission writes it as well.
func TestPaceOfTheStatusOfARollout(t *testing.T) {
	for name, test := range map[string]struct {
		nodes []string
		want  time.Duration
	}{
		"none waits": {[]string{"n1"}, pace.StatusInterval},
		"one waits":  {[]string{"n1", "n2"}, 2 * pace.StatusInterval},
	} {
		f := newFleet(t, test.nodes...)
		pods := map[string][]*v1.Pod{}
		for _, node := range test.nodes {
			pods[node] = f.createPods(3, node, 0)
		}
		f.createRollout("m", atOnce(1))
		f.run(30 * time.Second)
		begun := test.nodes[slices.IndexFunc(test.nodes, func(node string) bool { return f.node(node).Spec.Unschedulable })]
		var written []time.Time
		f.client.PrependReactor("update", "nodemaintenances", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.GetSubresource() == "status" {
				written = append(written, f.clock.Now())
			}
			return false, nil, nil
		})
		for _, pod := range pods[begun] {
			f.deletePods(pod)
			f.run(100 * time.Millisecond)
		}
		f.run(10 * time.Second)
		if len(written) != 2 || written[1].Sub(written[0]) != test.want {
			t.Errorf("%s: the status is written at %v, want two times, %v apart", name, written, test.want)
		}
	}
}

// memoryOf returns which memories of the controller have the node.
func (f *fixture) memoryOf(name string) []string {
	f.t.Helper()
	_, ownCordon := f.ownCordons.Load(name)
	_, unrecorded := f.unrecorded.Load(name)
	_, conditions := f.ownConditions.Load(name)
	ownStatus, unseen := f.writer.Remembers(name)
	returning, claim := f.returns.Remembers(name)
	var found []string
	for what, has := range map[string]bool{
		"reboots": f.reboots.nodes[name] != nil, "contests": f.contests.Remembers(name), "failures": slices.Contains(f.failures.Nodes(), name),
		"claim times": claim, "hold-ups": f.holdUps.nodes[name] != nil,
		"live drains": f.confirm.Remembers(name), "own cordons": ownCordon, "progress": len(f.progress.Concerning(name)) > 0,
		"conditions":   conditions,
		"returns":      returning,
		"own statuses": ownStatus,
		"unrecorded":   unrecorded, "unseen writes": unseen,
	} {
		if has {
			found = append(found, what)
		}
	}
	for _, kind := range []pace.Kind{pace.NodeStatus, pace.NodeCache, pace.RevertedCordon, pace.RevertedTaint, pace.RevertedUntaint,
		pace.RevertedConditions, pace.RevertedStatus, pace.RevertedSelection} {
		if slices.Contains(f.pacer.Names(kind), name) {
			found = append(found, string(kind))
		}
	}
	slices.Sort(found)
	return found
}

// Nothing is remembered of a node that is gone, whatever has happened to it: machines come and go under
// new names, and one that comes back under its name is another one.
func TestNothingIsKeptOfANodeThatIsGone(t *testing.T) {
	f := newFleet(t, "n")
	rollout := atOnce(1)
	rollout.CompleteNodes = rebooted
	f.createRollout("m", rollout)
	f.run(5 * time.Second)
	f.changeNamed("n", func(node *v1.Node) { node.Spec.Unschedulable = false })
	f.run(5 * time.Second)
	f.drainNodes()
	f.changeNamed("n", reboot)
	f.run(5 * time.Second)
	f.refuse("patch", "nodes", "status", webhook)
	f.createPods(1, "n", 0, tolerating, func(pod *v1.Pod) { pod.CreationTimestamp = metav1.NewTime(f.clock.Now()) })
	f.run(5 * time.Second)
	f.unrecorded.Store("n", f.clock.Now().Add(unrecordedInterval))
	f.pacer.Rewrote(pace.RevertedTaint, "n", time.Time{}, f.clock.Now())
	f.pacer.Rewrote(pace.RevertedUntaint, "n", time.Time{}, f.clock.Now())
	f.pacer.Rewrote(pace.RevertedConditions, "n", time.Time{}, f.clock.Now())
	f.pacer.Rewrote(pace.RevertedSelection, "n", time.Time{}, f.clock.Now())
	f.pacer.Rewrote(pace.RevertedStatus, "n", time.Time{}, f.clock.Now())
	f.ownConditions.Store("n", &decision.WrittenConditions{UID: f.node("n").UID})
	f.pacer.Wrote(pace.NodeStatus, "n", f.clock.Now())
	f.ownCordons.Store("n", decision.OwnCordon{UID: f.node("n").UID, Unschedulable: true})
	f.holdUps.nodes["n"] = &nodeHoldUps{uid: f.node("n").UID}
	want := []string{"claim times", "conditions", "contests", "failures", "hold-ups", "live drains", "node status", "own cordons", "own statuses", "progress", "reboots", "returns", "reverted conditions", "reverted cordon", "reverted selection", "reverted status", "reverted taint", "reverted untaint", "unrecorded"}
	if diff := cmp.Diff(want, f.memoryOf("n")); diff != "" {
		t.Errorf("memories before its end (-want, +got):\n%s", diff)
	}
	f.deleteNode("n")
	f.run(5 * time.Second)
	if found := f.memoryOf("n"); len(found) > 0 {
		t.Errorf("what is remembered of the node: %q", found)
	}
}

// What was seen of the reboots of a node is forgotten with its admissions: a later maintenance begins with
// what it sees itself.
func TestBootsAreForgottenWithTheAdmissions(t *testing.T) {
	f := newFleet(t, "n")
	rollout := atOnce(1)
	rollout.CompleteNodes = rebooted
	f.createRollout("m", rollout)
	f.drainNodes()
	f.changeNamed("n", reboot)
	f.run(5 * time.Second)
	if len(f.reboots.nodes) != 1 {
		t.Fatalf("no reboot is known: %v", f.reboots.nodes)
	}
	f.deleteMaintenance("m")
	f.run(5 * time.Second)
	if f.expectNode("released", "n", untouched); len(f.reboots.nodes) > 0 {
		t.Errorf("reboots %v", f.reboots.nodes)
	}
}
