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
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/utils/ptr"
)

// ownedBy gives a pod a controller, and tolerating has it tolerate all taints.
func ownedBy(uid types.UID) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: uid, Controller: ptr.To(true)}}
	}
}

func tolerating(pod *v1.Pod) {
	pod.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
}

// replaceFor replaces the pods whose eviction is requested, at once, as a ReplicaSet does, for some time. It
// returns how many were created, and whether the node has ever said that it is drained.
func (f *fixture) replaceFor(duration time.Duration, options ...func(*v1.Pod)) (created int, drained bool) {
	for end := f.clock.Now().Add(duration); f.clock.Now().Before(end); {
		f.run(time.Second)
		for _, object := range f.podInformer.GetIndexer().List() {
			pod := object.(*v1.Pod)
			if !f.asksFor(pod) {
				continue
			}
			f.deletePods(pod)
			f.run(time.Second) // It takes a moment.
			drained = drained || nodeCondition(f.node("n"), v1.NodeDrained).Status == v1.ConditionTrue
			f.createPods(1, "n", 0, append(options, func(pod *v1.Pod) { pod.CreationTimestamp = metav1.NewTime(f.clock.Now()) })...)
			created++
		}
		drained = drained || nodeCondition(f.node("n"), v1.NodeDrained).Status == v1.ConditionTrue
	}
	return created, drained
}

// TestPodsThatComeAndGo has a tenant create a pod on a drained node, and delete it, again and again: the node is not
// drained, and the maintenance says because of whom, also while the node is empty.
func TestPodsThatComeAndGo(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
	f.run(returns.BindingDelay + 2*time.Second)
	for i := range 10 {
		pods := f.createPods(1, "n", 0, func(pod *v1.Pod) { pod.CreationTimestamp = metav1.NewTime(f.clock.Now()) })
		f.run(time.Second)
		f.deletePods(pods...)
		f.run(19 * time.Second)
		m := f.maintenance("m")
		if status.IsDrained(&m.Status) {
			t.Fatalf("drained, although pods come back")
		}
		blockers := m.Status.DrainStatus.Blockers
		if named := len(blockers) == 1 && blockers[0].Cause == coordinationv1alpha1.DrainBlockerComesBack && blockers[0].Pods[0].Name == pods[0].Name; i < 2 && len(blockers) > 0 || i > 3 && !named {
			t.Errorf("after %d pods: blockers %+v", i+1, blockers)
		}
	}
	f.run(returns.LateSettled)
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) || len(m.Status.DrainStatus.Blockers) > 0 {
		t.Errorf("not drained in the end: %+v", m.Status)
	}
}

// A pod that may run on a cordoned node is replaced there: its eviction is requested less and less often, the
// maintenance says why, and is not drained.
func TestPodsThatComeBack(t *testing.T) {
	for name, test := range map[string]struct {
		option func(*v1.Pod)
		why    string
	}{
		"tolerates everything": {tolerating, "tolerates node.kubernetes.io/unschedulable"},
		"names its node":       {func(*v1.Pod) {}, "has spec.nodeName, or came while the node was schedulable"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"ours": ""})
			options := []func(*v1.Pod){ownedBy("rs"), test.option}
			f.createPods(2, "n", 0, options...)
			f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
			f.run(returns.BindingDelay + 2*time.Second)
			created, drained := f.replaceFor(10*time.Minute, options...)
			// Two at first, and two at 0, 10, 30, 70, 150, 310 and 610 seconds after the first ones have come back.
			if created < 10 || created > 16 {
				t.Errorf("%d pods were created in ten minutes", created)
			}
			if drained {
				t.Errorf("the node was drained, although pods come back")
			}
			m := f.maintenance("m")
			blockers := m.Status.DrainStatus.Blockers
			if status.IsDrained(&m.Status) || len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerComesBack || blockers[0].Name != test.why {
				t.Fatalf("unexpected status: %+v", m.Status)
			}
			if want := "pods come back: " + test.why; !strings.HasSuffix(blockers[0].Message, want) {
				t.Errorf("got the message %q, want %q", blockers[0].Message, want)
			}
			// Their owner is gone.
			for _, object := range f.podInformer.GetIndexer().List() {
				f.deletePods(object.(*v1.Pod))
			}
			f.run(returns.LateSettled - 2*time.Second)
			if m := f.maintenance("m"); status.IsDrained(&m.Status) {
				t.Errorf("drained at once")
			}
			f.run(4 * time.Second)
			if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
				t.Errorf("not drained in the end: %+v", m.Status)
			}
		})
	}
}

// setClaimTime changes since when the node says that maintenances claim it, and with which reason.
func (f *fixture) setClaimTime(reason string, since time.Time) {
	f.changeNamed("n", func(node *v1.Node) {
		claim := v1.NodeCondition{Type: v1.NodeMaintenanceInProgress, Status: v1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(since)}
		node.Status.Conditions = append(slices.DeleteFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == claim.Type }), claim)
	})
}

// Since when a node is claimed, only this controller says: others may write the condition as well (KEP-5683), and have
// written it before. Pods that were there before the claim have not come back.
func TestClaimTimeOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		reason         string
		since, claimed time.Duration
	}{
		"of another client":        {"FirmwareUpgrade", -time.Hour, 0},
		"in the future":            {status.ReasonInProgress, time.Hour, 0},
		"of a leader before":       {status.ReasonInProgress, -time.Minute, -time.Minute},
		"of a clock that is ahead": {status.ReasonInProgress, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"ours": ""})
			f.setClaimTime(test.reason, start.Add(test.since))
			pods := f.createPods(1, "n", 0, ownedBy("rs"), func(pod *v1.Pod) { pod.CreationTimestamp = metav1.NewTime(start.Add(-10 * time.Minute)) })
			f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
			f.run(2 * time.Second)
			if got := nodeCondition(f.node("n"), v1.NodeMaintenanceInProgress).LastTransitionTime.Sub(start).Truncate(5 * time.Second); got != test.claimed {
				t.Errorf("claimed since %v after the start, want %v", got, test.claimed)
			}
			f.deletePods(pods...)
			f.run(2 * time.Second)
			if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
				t.Errorf("not drained: the pod counts as come back: %+v", m.Status)
			}
		})
	}
}

// Whoever writes the condition of the claim, again and again, does not have pods evicted as fast as they come back.
func TestForgedClaimTimes(t *testing.T) {
	for name, forge := range map[string]func(f *fixture){
		"in the future":     func(f *fixture) { f.setClaimTime(status.ReasonInProgress, f.clock.Now().Add(time.Hour)) },
		"always now":        func(f *fixture) { f.setClaimTime(status.ReasonInProgress, f.clock.Now()) },
		"of another client": func(f *fixture) { f.setClaimTime("FirmwareUpgrade", start) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createReadyNode("n", map[string]string{"ours": ""})
			options := []func(*v1.Pod){ownedBy("rs"), tolerating}
			f.createPods(2, "n", 0, options...)
			f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
			f.run(returns.BindingDelay + 2*time.Second)
			total := 0
			for range 60 {
				forge(f)
				created, drained := f.replaceFor(5*time.Second, options...)
				if total += created; drained {
					t.Fatal("the node was drained, although pods come back")
				}
			}
			// As in TestPodsThatComeBack.
			if total < 8 || total > 16 {
				t.Errorf("%d pods were created in five minutes", total)
			}
		})
	}
}

// Between two pods of a Job, which replaces them after ten seconds and more, the node is not drained.
func TestLateReplacements(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	ofJob := func(pod *v1.Pod) {
		ownedBy("job")(pod)
		pod.OwnerReferences[0].Kind = "Job"
	}
	f.createPods(1, "n", 0, ofJob, tolerating)
	f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
	for range 5 {
		for range 10 * 60 {
			f.run(time.Second)
			if pods := f.podInformer.GetIndexer().List(); f.asksFor(pods[0].(*v1.Pod)) {
				f.deletePods(pods[0].(*v1.Pod))
				break
			}
		}
		for range 10 {
			f.run(time.Second)
			if m := f.maintenance("m"); status.IsDrained(&m.Status) {
				t.Fatal("drained, and the next pod comes")
			}
		}
		f.createPods(1, "n", 0, ofJob, tolerating, func(pod *v1.Pod) { pod.CreationTimestamp = metav1.NewTime(f.clock.Now()) })
	}
}

// A Job waits longer and longer before it creates the next pod. Each of them has its time on the node before it is evicted,
// and the node is not drained until the Job is over.
func TestPinnedJobs(t *testing.T) {
	hostname := func(pod *v1.Pod) { pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: "n"} }
	affinity := func(names ...string) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: names}},
			}}}}}
		}
	}
	conditioned := func(condition batchv1.JobConditionType) func(*batchv1.Job) {
		return func(job *batchv1.Job) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: v1.ConditionFalse}, {Type: condition, Status: v1.ConditionTrue}}
		}
	}
	for name, test := range map[string]struct {
		nodeName string
		pod      []func(*v1.Pod)
		// end ends the Job.
		end func(*batchv1.Job)
		// elsewhere is whether the next pod may go to another node.
		elsewhere bool
	}{
		"spec.nodeName":              {nodeName: "n", end: conditioned(batchv1.JobFailed)},
		"spec.nodeName and complete": {nodeName: "n", end: conditioned(batchv1.JobComplete)},
		"spec.nodeName, suspended":   {nodeName: "n", end: func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) }},
		"spec.nodeName, deleted":     {nodeName: "n", end: func(job *batchv1.Job) { job.DeletionTimestamp = &metav1.Time{Time: start} }},
		"spec.nodeName, another Job": {nodeName: "n", end: func(job *batchv1.Job) { job.UID = "another" }},
		"a node selector":            {pod: []func(*v1.Pod){tolerating, hostname}, end: conditioned(batchv1.JobFailed)},
		"affinity":                   {pod: []func(*v1.Pod){tolerating, affinity("n")}, end: conditioned(batchv1.JobFailed)},
		"affinity to several":        {pod: []func(*v1.Pod){tolerating, affinity("n", "other")}, elsewhere: true},
		"any node":                   {pod: []func(*v1.Pod){tolerating}, elsewhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job", UID: "job"}, Spec: batchv1.JobSpec{Template: v1.PodTemplateSpec{Spec: v1.PodSpec{NodeName: test.nodeName}}}}
			jobs := f.owners.Jobs.Informer().GetStore()
			if err := jobs.Add(job); err != nil {
				t.Fatal(err)
			}
			f.createReadyNode("n", map[string]string{"ours": ""})
			create := func() *v1.Pod {
				return f.createPods(1, "n", 0, append([]func(*v1.Pod){ownedBy("job"), func(pod *v1.Pod) {
					pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name = "Job", "job"
					pod.CreationTimestamp = metav1.NewTime(f.clock.Now())
				}}, test.pod...)...)[0]
			}
			pod := create()
			f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
			drained := func() bool { m := f.maintenance("m"); return status.IsDrained(&m.Status) }
			evictedAfter := func() (after time.Duration) {
				for ; !f.asksFor(pod) && after < 20*time.Minute; after += time.Second {
					f.run(time.Second)
				}
				f.deletePods(pod)
				return after
			}
			evictedAfter()
			var stays []time.Duration
			backOff := 20 * time.Second
			for range 7 {
				for range int(backOff / time.Second) {
					f.run(time.Second)
					if len(stays) > 1 && !test.elsewhere && drained() {
						t.Fatalf("drained after %d evictions, and the next pod comes", len(stays))
					}
				}
				if test.elsewhere && backOff >= 40*time.Second && !drained() {
					t.Errorf("not drained %v after an eviction", backOff)
				}
				if m := f.maintenance("m"); !test.elsewhere && len(stays) > 2 && (len(m.Status.DrainStatus.Blockers) != 1 || m.Status.DrainStatus.Blockers[0].Cause != coordinationv1alpha1.DrainBlockerComesBack) {
					t.Errorf("unexpected blockers in the back-off: %+v", m.Status.DrainStatus.Blockers)
				}
				pod = create()
				stays = append(stays, evictedAfter().Round(10*time.Second))
				backOff = min(2*backOff, 10*time.Minute)
			}
			if want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 300 * time.Second}; !slices.Equal(stays, want) {
				t.Errorf("the pods stay for %v, want %v", stays, want)
			}
			if test.end == nil {
				return
			}
			f.run(5 * time.Minute)
			if drained() {
				t.Error("drained before the Job is over")
			}
			ended := job.DeepCopy()
			test.end(ended)
			if err := jobs.Update(ended); err != nil {
				t.Fatal(err)
			}
			f.run(40 * time.Second)
			if !drained() {
				t.Errorf("not drained in the end: %+v", f.maintenance("m").Status)
			}
		})
	}
}

// If its template names the node, an owner runs the next pod there, maybe late: the node is drained only when it has been
// empty for a while. What others create goes elsewhere.
func TestTemplatesThatNameTheNode(t *testing.T) {
	owner := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + "-uid")}
	}
	template := func(node string) v1.PodTemplateSpec { return v1.PodTemplateSpec{Spec: v1.PodSpec{NodeName: node}} }
	job := func(name, node string) func(f *fixture) error {
		return func(f *fixture) error {
			return f.owners.Jobs.Informer().GetStore().Add(&batchv1.Job{ObjectMeta: owner(name), Spec: batchv1.JobSpec{Template: template(node)}})
		}
	}
	replicaSet := func(node string) func(f *fixture) error {
		return func(f *fixture) error {
			return f.owners.ReplicaSets.Informer().GetStore().Add(&appsv1.ReplicaSet{ObjectMeta: owner("owner"), Spec: appsv1.ReplicaSetSpec{Template: template(node)}})
		}
	}
	for name, test := range map[string]struct {
		kind    string
		create  func(f *fixture) error
		settles time.Duration
	}{
		"a Job":                         {"Job", job("owner", "n"), returns.LateSettled},
		"a Job of another node":         {"Job", job("owner", "other"), 0},
		"a Job that leaves it open":     {"Job", job("owner", ""), 0},
		"a Job that is gone":            {"Job", job("other", "n"), 0},
		"a ReplicaSet":                  {"ReplicaSet", replicaSet("n"), returns.LateSettled},
		"a ReplicaSet of any node":      {"ReplicaSet", replicaSet(""), 0},
		"another kind of the same name": {"Job", replicaSet("n"), 0},
		"another Job of that name": {"Job", func(f *fixture) error {
			another := owner("owner")
			another.UID = "another"
			return f.owners.Jobs.Informer().GetStore().Add(&batchv1.Job{ObjectMeta: another, Spec: batchv1.JobSpec{Template: template("n")}})
		}, 0},
		"a ReplicationController": {"ReplicationController", func(f *fixture) error {
			named := template("n")
			return f.owners.ReplicationControllers.Informer().GetStore().Add(&v1.ReplicationController{ObjectMeta: owner("owner"), Spec: v1.ReplicationControllerSpec{Template: &named}})
		}, returns.LateSettled},
		"a ReplicationController without template": {"ReplicationController", func(f *fixture) error {
			return f.owners.ReplicationControllers.Informer().GetStore().Add(&v1.ReplicationController{ObjectMeta: owner("owner")})
		}, 0},
		"a StatefulSet": {"StatefulSet", func(f *fixture) error {
			return f.owners.StatefulSets.Informer().GetStore().Add(&appsv1.StatefulSet{ObjectMeta: owner("owner"), Spec: appsv1.StatefulSetSpec{Template: template("n")}})
		}, returns.LateSettled},
		"a StatefulSet of any node": {"StatefulSet", func(f *fixture) error {
			return f.owners.StatefulSets.Informer().GetStore().Add(&appsv1.StatefulSet{ObjectMeta: owner("owner")})
		}, returns.Settled},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if err := test.create(f); err != nil {
				t.Fatal(err)
			}
			f.createReadyNode("n", map[string]string{"ours": ""})
			pods := f.createPods(1, "n", 0, ownedBy("owner-uid"), func(pod *v1.Pod) {
				pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name = test.kind, "owner"
			})
			f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
			f.run(time.Minute)
			if !f.asksFor(pods[0]) {
				t.Fatal("its eviction is not requested")
			}
			f.deletePods(pods...)
			if test.settles > 0 {
				f.run(test.settles - 2*time.Second)
				if m := f.maintenance("m"); status.IsDrained(&m.Status) {
					t.Error("drained, and the next pod may come")
				}
			}
			f.run(4 * time.Second)
			if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
				t.Errorf("not drained in the end: %+v", m.Status)
			}
		})
	}
}

// Pods that have the name of their node in their spec come back from the first second on, in which they cannot be told
// from those that a scheduler has bound that did not know of the cordon. Only the first ones are taken for these.
func TestPodsThatComeBackAtOnce(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	f.createPods(2, "n", 0, ownedBy("rs"))
	f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
	created, drained := f.replaceFor(12*time.Second, ownedBy("rs"))
	// Those that were there, the first ones of those that came back, and the next ones ten seconds after these.
	if created < 4 || created > 7 || drained {
		t.Errorf("%d pods were created in 12 seconds, and the node was drained: %t", created, drained)
	}
	more, _ := f.replaceFor(10*time.Minute, ownedBy("rs"))
	if more < 8 || more > 14 {
		t.Errorf("%d more pods were created in ten minutes", more)
	}
	if blockers := f.maintenance("m").Status.DrainStatus.Blockers; len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerComesBack {
		t.Errorf("unexpected blockers: %+v", blockers)
	}
}

// ofStatefulSet gives a pod an owner that creates the next one when this one is gone.
func ofStatefulSet(pod *v1.Pod) {
	ownedBy("set")(pod)
	pod.OwnerReferences[0].Kind = "StatefulSet"
}

// A StatefulSet whose template names the node creates the next pod a moment after the last one is gone: the node is
// never drained, not even before the first one has come back.
func TestFirstReturnToNamedNode(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	f.createPods(1, "n", 0, ofStatefulSet)
	f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
	f.run(returns.BindingDelay + 2*time.Second)
	if created, drained := f.replaceFor(time.Minute, ofStatefulSet); created < 2 || drained {
		t.Errorf("%d pods have come back, and the node was drained: %t", created, drained)
	}
}

// A controller that starts while a node is empty does not know whether pods come back to it: it is not drained at once,
// unless it was. Since when they do, it takes from the status.
func TestReturnsAcrossRestart(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	options := []func(*v1.Pod){ownedBy("rs"), tolerating}
	f.createPods(1, "n", 0, options...)
	f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
	f.run(returns.BindingDelay + 2*time.Second)
	f.replaceFor(10*time.Minute, options...)
	blockers := f.maintenance("m").Status.DrainStatus.Blockers
	if len(blockers) != 1 || blockers[0].Cause != coordinationv1alpha1.DrainBlockerComesBack {
		t.Fatalf("unexpected blockers: %+v", blockers)
	}
	since := blockers[0].SinceTime
	for _, object := range f.podInformer.GetIndexer().List() {
		f.deletePods(object.(*v1.Pod))
	}
	f.restart()
	f.run(20 * time.Second)
	if m := f.maintenance("m"); status.IsDrained(&m.Status) {
		t.Error("drained while pods may come back")
	}
	for range 3 {
		f.replaceFor(2*time.Second, options...)
		f.createPods(1, "n", 0, append(options, func(pod *v1.Pod) { pod.CreationTimestamp = metav1.NewTime(f.clock.Now()) })...)
	}
	f.run(2 * time.Second)
	at := slices.IndexFunc(f.maintenance("m").Status.DrainStatus.Blockers, func(b coordinationv1alpha1.DrainBlocker) bool {
		return b.Cause == coordinationv1alpha1.DrainBlockerComesBack
	})
	if at < 0 || !f.maintenance("m").Status.DrainStatus.Blockers[at].SinceTime.Equal(since) {
		t.Errorf("after the restart, the blockers are %+v, which have been there since %v", f.maintenance("m").Status.DrainStatus.Blockers, since)
	}
	for _, object := range f.podInformer.GetIndexer().List() {
		f.deletePods(object.(*v1.Pod))
	}
	f.run(returns.LateSettled + time.Second)
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
		t.Errorf("not drained in the end: %+v", m.Status)
	}
	f.restart()
	f.run(time.Second)
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) || nodeCondition(f.node("n"), v1.NodeDrained).Status != v1.ConditionTrue {
		t.Error("it was drained before the restart")
	}
}

// A restart in the moment in which a node has become empty.
func TestRestartWhileNodeIsEmpty(t *testing.T) {
	f := newFixture(t)
	f.createReadyNode("n", map[string]string{"ours": ""})
	pod := f.createPods(1, "n", 0)[0]
	f.createWith("m", "ours", func(*coordinationv1alpha1.NodeMaintenanceSpec) {})
	f.run(time.Minute)
	f.deletePods(pod)
	f.restart()
	f.run(returns.Settled - time.Second)
	if m := f.maintenance("m"); status.IsDrained(&m.Status) || !strings.Contains(status.FindDrained(&m.Status).Message, "it waits some seconds whether others come back") {
		t.Errorf("drained at once, or not said why not: %+v", m.Status)
	}
	f.run(3 * time.Second)
	if m := f.maintenance("m"); !status.IsDrained(&m.Status) {
		t.Errorf("not drained in the end: %+v", m.Status)
	}
}
