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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-helpers/node/maintenance"
)

// zoned returns a node of a zone, which a maintenance may claim.
func zoned(name, zone string, claimed bool) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
	if claimed {
		node.Spec.Unschedulable = true
		node.Status.Conditions = []v1.NodeCondition{{
			Type: v1.NodeMaintenanceInProgress, Status: v1.ConditionTrue, Reason: maintenance.ReasonInProgress, LastTransitionTime: metav1.NewTime(bubbleBegins),
		}}
	}
	return node
}

// unschedulable is a replacement of which kube-scheduler says this.
func unschedulable(message string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		starting(p)
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: message}}
	}
}

// A turn ends if no replacement can be scheduled while the pod runs. It waits for what may end by itself.
func TestReplacementCannotBeScheduled(t *testing.T) {
	on := func(node string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = node } }
	spread := func(p *v1.Pod) {
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: webTemplate().Labels},
		}}
	}
	const once = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
	const spreading = "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod topology spread constraints."
	for name, test := range map[string]struct {
		message string
		objects []runtime.Object
		ends    bool
	}{
		"a claim for one pod":                  {message: "0/3 nodes are available: 1 node(s) were unschedulable, 2 " + once + ". preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.", ends: true},
		"a claim for one pod, on one node":     {message: "0/1 nodes are available: 1 " + once + ".", ends: true},
		"a local volume":                       {message: "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match PersistentVolume's node affinity. no new claims to deallocate", ends: true},
		"a local volume, by a plugin":          {message: "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't satisfy plugin(s) [VolumeBinding].", ends: true},
		"a local volume, of earlier releases":  {message: "0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 node(s) had volume node affinity conflict.", ends: true},
		"one node lacks resources":             {message: "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable, 1 " + once + "."},
		"anti-affinity":                        {message: "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod anti-affinity rules."},
		"all nodes are cordoned":               {message: "0/3 nodes are available: 3 node(s) were unschedulable."},
		"a claim that is not bound":            {message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"},
		"a reason that nobody knows":           {message: "0/3 nodes are available: 3 " + strings.Replace(once, "ReadWriteOncePod", "Other", 1) + "."},
		"another text":                         {message: once},
		"a spread that the old pod is against": {message: spreading, ends: true, objects: []runtime.Object{webPod("a", on("a1")), webPod("x", alone, on("a2")), webPod("y", alone, on("b1")), zoned("a1", "a", true), zoned("a2", "a", false), zoned("b1", "b", true)}},
		"a spread that is not its fault":       {message: spreading, objects: []runtime.Object{webPod("a", on("a1")), webPod("x", alone, on("b1")), webPod("y", alone, on("b1")), zoned("a1", "a", true), zoned("b1", "b", false)}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append([]runtime.Object{
				web(), web1(sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,"since":"1999-12-31T23:59:00Z"}`)), asks("a"), webPod("r", unschedulable(test.message), spread),
			}, test.objects...)
			if test.objects == nil {
				objects = append(objects, webPod("a"))
			}
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				got := f.entry("a-uid")
				if (got.CompletionTime != nil) != test.ends {
					t.Fatalf("the turn is over: %t, want %t: %s", got.CompletionTime != nil, test.ends, got.Message)
				}
				if test.ends && !strings.HasPrefix(got.Message, "Not replaced first, because no replacement can be scheduled while the pod runs. Surging 0/1: waiting for pod r to be scheduled: 0/") {
					t.Errorf("message %q", got.Message)
				}
			})
		})
	}
}

// An answer that looks at all nodes and pods is that of all replacements that are spread in the same way.
func TestSharedAnswer(t *testing.T) {
	for name, change := range map[string]func(*v1.Pod){
		"labels":        func(p *v1.Pod) { p.Labels = map[string]string{"app": "other"} },
		"node selector": func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "a"} },
		"constraints":   func(p *v1.Pod) { p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1}} },
		"affinity":      func(p *v1.Pod) { p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{}} },
		"tolerations":   func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}} },
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			answer := sharedAnswer(func(p *v1.Pod) bool {
				asked = append(asked, p.Name)
				return p.Name == "a"
			})
			got := []bool{answer(webPod("a")), answer(webPod("b", starting)), answer(webPod("c", change)), answer(webPod("d", change))}
			if !slices.Equal(got, []bool{true, true, false, false}) || !slices.Equal(asked, []string{"a", "c"}) {
				t.Errorf("got %v, computed for %v", got, asked)
			}
		})
	}
}

// Only as many pods go without a replacement as have one that cannot be scheduled.
func TestOneTurnForEachReplacement(t *testing.T) {
	const message = "0/2 nodes are available: 1 node(s) were unschedulable, 1 node(s) didn't match PersistentVolume's node affinity."
	objects := []runtime.Object{
		web(withReplicas(2, 1)), web1(sized(3, 2, 3), annotated(`{"surge":1,"of":3,"desired":2,"since":"1999-12-31T23:59:00Z"}`)),
		webPod("a"), webPod("b"), webPod("r", unschedulable(message)), asks("a"), asks("b"),
	}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		for range 2 {
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
		}
		if f.entry("a-uid").CompletionTime == nil || f.entry("b-uid").CompletionTime != nil {
			t.Fatalf("turns: %q, %q, want only the first one to be over", f.entry("a-uid").Message, f.entry("b-uid").Message)
		}
		f.changeRequest("a-uid", passed)
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		if got := f.entry("b-uid"); got.CompletionTime != nil {
			t.Errorf("the turn of b has ended before a has left: %s", got.Message)
		}
	})
}

// A replacement that may become available is waited for, before others that cannot be scheduled and after them.
func TestOneReplacementCanBeScheduled(t *testing.T) {
	hindered := unschedulable("0/2 nodes are available: 1 node(s) were unschedulable, 1 node(s) didn't match PersistentVolume's node affinity.")
	for name, test := range map[string]struct {
		first, second func(*v1.Pod)
		ends          bool
	}{
		"the first":  {first: starting, second: hindered},
		"the second": {first: hindered, second: starting},
		"none":       {first: hindered, second: hindered, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{
				web(withReplicas(2, 2)), web1(sized(4, 2, 4), annotated(`{"surge":2,"of":4,"desired":2,"since":"1999-12-31T23:59:00Z"}`)),
				webPod("a"), webPod("b"), webPod("r1", test.first), webPod("r2", test.second), asks("a"), asks("b"),
			}
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				for _, uid := range []string{"a-uid", "b-uid"} {
					if got := f.entry(uid); (got.CompletionTime != nil) != test.ends {
						t.Errorf("%s: the turn is over: %t, want %t: %s", uid, got.CompletionTime != nil, test.ends, got.Message)
					}
				}
			})
		})
	}
}

// A pod that came to a node before it was released is a replacement when it is, and the Deployment looks again then: its
// turns would wait for a minute otherwise. It may be claimed again at once, by another maintenance.
func TestNodeOfAReplacementIsReleased(t *testing.T) {
	again := zoned("new", "a", true)
	again.Status.Conditions[0].LastTransitionTime = metav1.NewTime(bubbleBegins.Add(30 * time.Second))
	for name, released := range map[string]*v1.Node{"released": zoned("new", "a", false), "claimed again": again} {
		t.Run(name, func(t *testing.T) {
			withSurger(t, withReplacementOnClaimedNode(), func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				f.forgetWoken()
				heartbeat := zoned("new", "a", true)
				heartbeat.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(bubbleBegins.Add(time.Minute))
				f.put(heartbeat)
				f.expectWoken(false)
				f.put(released)
				f.expectWoken(true)
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute) // Messages are reported with the next heartbeat.
				if got, want := f.entry("a-uid").Message, "Surging 1/1: removing the replaced pod."; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				f.forgetWoken()
				f.put(zoned("new", "a", true))
				f.expectWoken(false) // It had come before.
				if len(f.dc.surger.misplaced) > 0 {
					t.Errorf("kept: %v", f.dc.surger.misplaced)
				}
			})
		})
	}
}

// withReplacementOnClaimedNode has a pod that is to leave, and its replacement, which came to a claimed node.
func withReplacementOnClaimedNode() []runtime.Object {
	return []runtime.Object{
		web(), web1(sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,"since":"1999-12-31T23:59:00Z"}`)), asks("a"),
		webPod("a", func(p *v1.Pod) {
			p.Spec.NodeName, p.CreationTimestamp = "old", metav1.NewTime(bubbleBegins.Add(-time.Hour))
		}),
		webPod("r", func(p *v1.Pod) { p.Spec.NodeName, p.CreationTimestamp = "new", metav1.NewTime(bubbleBegins) }),
		zoned("old", "a", true), zoned("new", "a", true),
	}
}

// releasedNode is a node that is released when it was read once.
type releasedNode struct {
	corelisters.NodeLister
	name  string
	reads int
}

func (r *releasedNode) Get(name string) (*v1.Node, error) {
	node, err := r.NodeLister.Get(name)
	if err != nil || name != r.name {
		return node, err
	}
	if r.reads++; r.reads > 1 {
		node = node.DeepCopy()
		node.Status.Conditions = nil
	}
	return node, nil
}

// A node that is released before it is noted that a replacement is on it wakes nobody up: it is read again after that.
func TestNodeOfAReplacementIsReleasedUnseen(t *testing.T) {
	withSurger(t, withReplacementOnClaimedNode(), func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		f.dc.surger.nodeLister = &releasedNode{NodeLister: f.dc.surger.nodeLister, name: "new"}
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // Messages are reported with the next heartbeat.
		if got, want := f.entry("a-uid").Message, "Surging 1/1: removing the replaced pod."; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A pod on a node that a maintenance claims replaces none: it would have to leave as well.
func TestMisplacedReplacement(t *testing.T) {
	placed := func(node string, created time.Duration) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.NodeName, p.CreationTimestamp = node, metav1.NewTime(bubbleBegins.Add(created))
		}
	}
	for name, test := range map[string]struct {
		node    string
		created time.Duration
		over    bool
	}{
		"on another node":                          {node: "free", over: true},
		"on a claimed node":                        {node: "claimed"},
		"on a claimed node, later":                 {node: "claimed", created: time.Minute},
		"on a node that was claimed after it came": {node: "claimed", created: -time.Second, over: true},
		"on a node that is gone":                   {node: "unknown", over: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{
				web(), web1(sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,"since":"1999-12-31T23:59:00Z"}`)), asks("a"),
				webPod("a", placed("claimed", -time.Hour)), webPod("r", placed(test.node, test.created)), zoned("claimed", "a", true), zoned("free", "a", false),
			}
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				message := "Surging 1/1: removing the replaced pod."
				if !test.over {
					message = fmt.Sprintf("Surging 0/1: waiting for pod r to leave node %s, which is in maintenance as well.", test.node)
				}
				time.Sleep(2 * time.Minute) // Messages are reported with the next heartbeat.
				if got := f.entry("a-uid").Message; got != message {
					t.Errorf("got %q, want %q", got, message)
				}
			})
		})
	}
}

// A template that names or selects a node has all replacements there: if a maintenance claims it, the pod does not wait
// for one.
func TestPinnedReplacement(t *testing.T) {
	// A later version of the API may have more operators.
	unreadable := &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
		{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: "Near", Values: []string{"a"}}}},
	}}}}
	for name, test := range map[string]struct {
		template v1.PodSpec
		node     string
		ends     bool
	}{
		"on the claimed node that the template names":   {template: v1.PodSpec{NodeName: "claimed"}, node: "claimed", ends: true},
		"on a claimed node that it does not name":       {template: v1.PodSpec{NodeName: "free"}, node: "claimed"},
		"on a free node that the template names":        {template: v1.PodSpec{NodeName: "free"}, node: "free"},
		"on the claimed node that the template selects": {template: v1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}, node: "claimed", ends: true},
		"on a node of another zone than it selects":     {template: v1.PodSpec{NodeSelector: map[string]string{"zone": "b"}}, node: "claimed"},
		"on one of two drained nodes that it selects":   {template: v1.PodSpec{NodeSelector: map[string]string{"zone": "b"}}, node: "drained"},
		"on a claimed node, by the scheduler":           {node: "claimed"},
		"on a node that may not be the only one":        {template: v1.PodSpec{Affinity: unreadable}, node: "claimed"},
		"on a free node":                                {template: v1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}, node: "free"},
	} {
		t.Run(name, func(t *testing.T) {
			rs := web1(sized(2, 1, 2), annotated(`{"surge":1,"of":2,"desired":1,"since":"1999-12-31T23:59:00Z"}`))
			d := web()
			for _, spec := range []*v1.PodSpec{&d.Spec.Template.Spec, &rs.Spec.Template.Spec} {
				spec.NodeName, spec.NodeSelector, spec.Affinity = test.template.NodeName, test.template.NodeSelector, test.template.Affinity
			}
			replacement := webPod("r", starting, func(p *v1.Pod) { p.Spec.NodeName, p.CreationTimestamp = test.node, metav1.NewTime(bubbleBegins) })
			objects := []runtime.Object{
				d, rs, asks("a"), webPod("a", func(p *v1.Pod) { p.Spec.NodeName = "claimed" }), replacement, zoned("claimed", "a", true), zoned("drained", "b", true), zoned("too", "b", true), zoned("free", "c", false),
			}
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				got := f.entry("a-uid")
				if (got.CompletionTime != nil) != test.ends {
					t.Fatalf("the turn is over: %t, want %t: %s", got.CompletionTime != nil, test.ends, got.Message)
				}
				if want := "Not replaced first, because no replacement can be scheduled while the pod runs. Surging 0/1: waiting for pod r"; test.ends && !strings.HasPrefix(got.Message, want) {
					t.Errorf("message %q", got.Message)
				}
			})
		})
	}
}

// A pod that serves beside the one that is asked to leave is no replacement, although it has come to its node in the
// second in which that was claimed: nobody knows yet where a replacement would run.
func TestPodsBesideAreNoReplacements(t *testing.T) {
	d, rs := web(), web1(sized(2, 2, 3))
	*d.Spec.Replicas = 2
	for _, spec := range []*v1.PodSpec{&d.Spec.Template.Spec, &rs.Spec.Template.Spec} {
		spec.NodeSelector = map[string]string{"zone": "a"}
	}
	claimed := func(p *v1.Pod) { p.Spec.NodeName, p.CreationTimestamp = "claimed", metav1.NewTime(bubbleBegins) }
	objects := []runtime.Object{d, rs, asks("a"), webPod("a", claimed), webPod("b", claimed), zoned("claimed", "a", true), zoned("free", "b", false)}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		if got := f.entry("a-uid"); got.CompletionTime != nil {
			t.Errorf("the turn is over before there is a replacement: %s", got.Message)
		}
	})
}
