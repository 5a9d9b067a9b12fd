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
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	core "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

const releasedPod = "Released: Deployment web allows the eviction of the pod."

// paced is a Deployment of so many replicas that does not surge, and of which one may be unavailable.
func paced(replicas int32, changes ...func(*apps.Deployment)) *apps.Deployment {
	d := web(withReplicas(replicas, 0))
	d.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	for _, change := range changes {
		change(d)
	}
	return d
}

// labeled is the label of the pods, which requests have as well.
func labeled(request *coordinationv1alpha1.EvictionRequest) { request.Labels = webTemplate().Labels }

// turnCompleted ends the turn of the Deployment, and makes the next interceptor active.
func turnCompleted(request *coordinationv1alpha1.EvictionRequest) {
	request.Status.Interceptors[0].CompletionTime = ptr.To(metav1.NewTime(bubbleBegins))
	passed(request)
}

// budgetOf selects all pods of web, and permits so many of three to be disrupted.
func budgetOf(permitted int32) *policy.PodDisruptionBudget {
	return &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "budget", Generation: 1},
		Spec:       policy.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: webTemplate().Labels}},
		Status:     policy.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, DesiredHealthy: 3 - permitted},
	}
}

// brokenFor makes a pod not ready for so long, which was ready before.
func brokenFor(seconds int) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.Conditions[0].Status = v1.ConditionFalse
		p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(bubbleBegins.Add(-time.Duration(seconds) * time.Second))
	}
}

// neverReady is a pod that was created a minute before, and was never ready.
func neverReady(p *v1.Pod) {
	p.CreationTimestamp = metav1.NewTime(bubbleBegins.Add(-time.Minute))
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: p.CreationTimestamp}}
}

// Without a surge, as many pods of a Deployment leave at a time as it permits to be unavailable.
func TestPace(t *testing.T) {
	wait := func(need string, limit int, source string) string {
		return fmt.Sprintf("Waiting for %s: at most %d of the 3 pods of Deployment web may be unavailable at a time%s.", need, limit, source)
	}
	one := func(need string) string { return wait(need, 1, "") }
	three := []runtime.Object{webPod("a"), webPod("b"), webPod("c")}
	two := []runtime.Object{webPod("b"), webPod("c")}
	atMost := func(pods int32) func(*apps.Deployment) {
		return func(d *apps.Deployment) {
			d.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(pods))
		}
	}
	refusing := func(rs *apps.ReplicaSet) {
		rs.Status.Conditions = []apps.ReplicaSetCondition{{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: "FailedCreate", Message: `pods "web-1-x" is forbidden: exceeded quota: q`}}
	}
	optOut := func(value string) func(*apps.Deployment) {
		return func(d *apps.Deployment) {
			d.Annotations = map[string]string{"deployment.kubernetes.io/eviction-pacing": value}
		}
	}
	const broke = "Released: the pod has not been ready for 30s, so it waits for no other pod of Deployment web."
	const declined = "Deployment web does not surge, because its maxSurge is 0, and its annotation deployment.kubernetes.io/eviction-pacing turns off that its pods wait for each other."
	began := func(second int) func(*coordinationv1alpha1.EvictionRequest) {
		return func(r *coordinationv1alpha1.EvictionRequest) {
			r.Status.ActivationTime = ptr.To(metav1.NewTime(bubbleBegins.Add(time.Duration(second-60) * time.Second)))
			r.Status.Interceptors[0].StartTime = r.Status.ActivationTime
		}
	}
	for name, test := range map[string]struct {
		deployment *apps.Deployment
		pods       []runtime.Object
		others     []runtime.Object
		// refused is true if the ReplicaSet could not create a pod.
		refused bool
		// want are the messages of the pods that are asked.
		want map[string]string
	}{
		"all at once": {pods: three, others: []runtime.Object{asks("a", labeled, began(2)), asks("b", labeled, began(1)), asks("c", labeled, began(3))},
			want: map[string]string{"a": one("pod b to be evicted"), "b": releasedPod, "c": one("pod b to be evicted")}},
		"two at a time": {deployment: paced(3, atMost(2)), pods: three, others: []runtime.Object{asks("a", labeled), asks("b", labeled), asks("c", labeled, began(30))},
			want: map[string]string{"a": releasedPod, "b": wait("pod a to be evicted, pod c to be evicted", 2, ""), "c": releasedPod}},
		"one was released": {pods: three, others: []runtime.Object{asks("a", labeled, turnCompleted), asks("b", labeled)},
			want: map[string]string{"b": one("pod a to be evicted")}},
		"one was evicted, and the cache has its pod": {pods: three, others: []runtime.Object{asks("a", labeled, turnCompleted, holding("Evicted")), asks("b", labeled)},
			want: map[string]string{"b": one("pod a to be evicted")}},
		"one is missing": {pods: two, others: []runtime.Object{asks("b", labeled)},
			want: map[string]string{"b": one("a pod to be created")}},
		"one is refused": {pods: two, others: []runtime.Object{asks("b", labeled)}, refused: true,
			want: map[string]string{"b": one(`a pod to be created (failed: pods "web-1-x" is forbidden: exceeded quota: q)`)}},
		"one was refused before": {pods: append(two, webPod("d", starting)), others: []runtime.Object{asks("b", labeled)}, refused: true,
			want: map[string]string{"b": one("pod d to become available")}},
		"one starts": {pods: append(two, webPod("d", starting)), others: []runtime.Object{asks("b", labeled)},
			want: map[string]string{"b": one("pod d to become available")}},
		"an unavailable one first": {pods: append(two, webPod("d", brokenFor(5))), others: []runtime.Object{asks("b", labeled), asks("d", labeled)},
			want: map[string]string{"b": one("pod d to be evicted"), "d": releasedPod}},
		"broken ones neither count nor wait": {pods: []runtime.Object{webPod("a", brokenFor(31)), webPod("b", brokenFor(31)), webPod("c")},
			others: []runtime.Object{asks("a", labeled), asks("b", labeled), asks("c", labeled)}, want: map[string]string{"a": broke, "b": broke, "c": releasedPod}},
		"one that was never ready does not count": {pods: append(two, webPod("d", neverReady)), others: []runtime.Object{asks("b", labeled)},
			want: map[string]string{"b": releasedPod}},
		"one that was never ready counts as a replacement": {pods: append(two, webPod("d", neverReady)),
			others: []runtime.Object{asks("a", labeled, turnCompleted, holding("Evicted"), func(r *coordinationv1alpha1.EvictionRequest) {
				r.Status.Interceptors[0].CompletionTime = ptr.To(metav1.NewTime(bubbleBegins.Add(-61 * time.Second)))
			}), asks("b", labeled)},
			want: map[string]string{"b": one("pod d to become available")}},
		"a budget permits two": {pods: three, others: []runtime.Object{budgetOf(2), asks("a", labeled, began(2)), asks("b", labeled, began(1)), asks("c", labeled, began(3))},
			want: map[string]string{"a": releasedPod, "b": releasedPod, "c": wait("pod a to be evicted, pod b to be evicted", 2, " (PodDisruptionBudget budget)")}},
		"a budget permits less": {deployment: paced(3, atMost(2)), pods: three, others: []runtime.Object{budgetOf(1), asks("a", labeled), asks("b", labeled, began(1))},
			want: map[string]string{"a": wait("pod b to be evicted", 1, " (PodDisruptionBudget budget)"), "b": releasedPod}},
		"opted out": {deployment: paced(3, optOut("Disabled")), pods: three, others: []runtime.Object{asks("a", labeled), asks("b", labeled)},
			want: map[string]string{"a": declined, "b": declined}},
		"another value": {deployment: paced(3, optOut("disabled")), pods: three, others: []runtime.Object{asks("a", labeled), asks("b", labeled, began(1))},
			want: map[string]string{"a": one("pod b to be evicted"), "b": releasedPod}},
		"a pod that terminates": {pods: []runtime.Object{webPod("a", terminating), webPod("b"), webPod("c"), webPod("d", starting)}, others: []runtime.Object{asks("a", labeled), asks("b", labeled)},
			want: map[string]string{"a": "The pod is terminating.", "b": one("pod d to become available")}},
	} {
		t.Run(name, func(t *testing.T) {
			d := test.deployment
			if d == nil {
				d = paced(3)
			}
			changes := []func(*apps.ReplicaSet){sized(3, 3, 3)}
			if test.refused {
				changes = append(changes, refusing)
			}
			withSurger(t, append(append(test.others, d, web1(changes...)), test.pods...), func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				for range 2 { // The second sync may know no more than the first one.
					if _, err := f.surge(); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Minute) // Messages are reported with the next heartbeat.
				got := map[string]string{}
				for pod := range test.want {
					got[pod] = f.entry(pod + "-uid").Message
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("messages (-want +got):\n%s", diff)
				}
				if writes := f.writes(); len(writes) > 0 {
					t.Errorf("%d writes of ReplicaSets", len(writes))
				}
			})
		})
	}
}

// One pod leaves after another, each when the replacement of the one before is available.
func TestPaceOneAfterAnother(t *testing.T) {
	objects := []runtime.Object{paced(3), web1(sized(3, 3, 3)), webPod("a"), webPod("b"), asks("a", labeled), asks("b", labeled), webPod("c")}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		sync := func() {
			t.Helper()
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
		}
		over := func(pod string) bool { return f.entry(pod+"-uid").CompletionTime != nil }
		sync()
		if !over("a") || over("b") {
			t.Fatalf("the turn of a is over: %t, of b: %t, want only the one of a", over("a"), over("b"))
		}
		f.changeRequest("a-uid", holding("Evicted"))
		f.remove(webPod("a"))
		sync()
		f.put(webPod("d", starting))
		sync()
		time.Sleep(2 * time.Minute) // However long it is not ready: maybe no pod can start where they are sent.
		sync()
		if over("b") {
			t.Fatal("pod b was released before the replacement of a is available")
		}
		f.put(webPod("d"))
		sync()
		if !over("b") {
			t.Errorf("pod b was not released: %s", f.entry("b-uid").Message)
		}
	})
}

// No pod waits longer than the progress deadline without progress. One is given up at a time.
func TestPaceGivesUp(t *testing.T) {
	objects := []runtime.Object{paced(3), web1(sized(3, 3, 3)), webPod("a"), webPod("b"), asks("a", labeled), asks("b", labeled)}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		sync := func() {
			t.Helper()
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
		}
		sync()
		time.Sleep(300 * time.Second)
		sync()
		const message = "Gave up after 5m0s without progress. Waiting for a pod to be created: at most 1 of the 3 pods of Deployment web may be unavailable at a time."
		if got := f.entry("a-uid").Message; got != message {
			t.Errorf("got %q, want %q", got, message)
		}
		if f.entry("b-uid").CompletionTime != nil {
			t.Error("both pods were given up at the same time")
		}
	})
}

// What spec.replicas says takes no memory, whether or not a pod is asked: an owner may write two billion, of which a quota
// lets two exist.
func TestPaceOfMissingReplicas(t *testing.T) {
	const replicas, most = 1_000_000, 50_000
	for name, test := range map[string]struct {
		others []runtime.Object
		want   string
	}{
		"nobody is asked": {},
		"one is asked": {
			others: []runtime.Object{asks("a", labeled)},
			want: "Waiting for a pod to be created, a pod to be created, a pod to be created, 999995 more: " +
				"at most 1 of the 1000000 pods of Deployment web may be unavailable at a time.",
		},
		"one was released": {
			others: []runtime.Object{asks("a", labeled), asks("z", labeled, turnCompleted, holding("Evicted"))},
			want: "Waiting for a pod to be created, a pod to be created, a pod to be created, 999995 more: " +
				"at most 1 of the 1000000 pods of Deployment web may be unavailable at a time.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(test.others, paced(replicas), web1(sized(replicas, 2, 2)), webPod("a"), webPod("b"))
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				allocated := testing.AllocsPerRun(1, func() {
					if _, err := f.surge(); err != nil {
						t.Fatal(err)
					}
				})
				if allocated > most {
					t.Errorf("a sync makes %v allocations for %d replicas, want at most %d", allocated, replicas, most)
				}
				if test.want == "" {
					return
				}
				time.Sleep(2 * time.Minute) // Messages are reported with the next heartbeat.
				if got := f.entry("a-uid").Message; got != test.want {
					t.Errorf("got the message %q, want %q", got, test.want)
				}
			})
		})
	}
}

// A process that was suspended does not know that another one has released a pod. It releases none before it does.
func TestPaceIsBehind(t *testing.T) {
	objects := []runtime.Object{paced(3), web1(sized(3, 3, 3)), webPod("a"), webPod("b"), webPod("c"), asks("a", labeled), asks("b", labeled)}
	for name, test := range map[string]struct {
		other *coordinationv1alpha1.EvictionRequest
		err   error
		over  bool
	}{
		"nothing else":             {over: true},
		"another one is released":  {other: asks("c", labeled, turnCompleted)},
		"another one is asked":     {other: asks("c", labeled), over: true},
		"another one was canceled": {other: asks("c", labeled, turnCompleted, holding("Canceled")), over: true},
		"the list cannot be read":  {err: errors.New("busy")},
		"of another workload":      {other: asks("c", turnCompleted, func(r *coordinationv1alpha1.EvictionRequest) { r.Labels = map[string]string{"app": "db"} }), over: true},
	} {
		t.Run(name, func(t *testing.T) {
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				f.client.PrependReactor("list", "evictionrequests", func(core.Action) (bool, runtime.Object, error) {
					if test.err != nil {
						return true, nil, test.err
					}
					list := &coordinationv1alpha1.EvictionRequestList{}
					if test.other != nil {
						list.Items = append(list.Items, *test.other)
					}
					return true, list, nil
				})
				defer f.intercept()()
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				if got := f.entry("a-uid").CompletionTime != nil; got != test.over {
					t.Errorf("the turn is over: %t, want %t", got, test.over)
				}
			})
		})
	}
}

// A change of what a budget permits wakes the Deployments that wait.
func TestPaceFollowsBudgets(t *testing.T) {
	objects := []runtime.Object{paced(3), web1(sized(3, 3, 3)), webPod("a"), webPod("b"), webPod("c"), asks("a", labeled), asks("b", labeled), budgetOf(1)}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		f.forgetWoken()
		used := budgetOf(1)
		used.Status.DisruptionsAllowed, used.Status.CurrentHealthy = 0, 2
		f.put(used)
		if woken := f.forgetWoken(); len(woken) > 0 {
			t.Errorf("a disruption wakes %v", woken)
		}
		foreign := budgetOf(2)
		foreign.Namespace = "another"
		f.put(foreign)
		if woken := f.forgetWoken(); len(woken) > 0 {
			t.Errorf("a budget of another namespace wakes %v", woken)
		}
		f.put(budgetOf(2))
		synctest.Wait()
		if woken := f.forgetWoken(); len(woken) != 1 {
			t.Errorf("a change of the budget wakes %v", woken)
		}
	})
}

func TestPacesEvictions(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*apps.Deployment)
		want   bool
	}{
		"several replicas": {want: true},
		"one replica":      {change: func(d *apps.Deployment) { d.Spec.Replicas = ptr.To(int32(1)) }},
		"a surge":          {change: func(d *apps.Deployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1)) }},
		"recreate": {change: func(d *apps.Deployment) {
			d.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
		}},
		"being deleted": {change: func(d *apps.Deployment) { d.DeletionTimestamp = ptr.To(metav1.Now()) }},
		"opted out": {change: func(d *apps.Deployment) {
			d.Annotations = map[string]string{"deployment.kubernetes.io/eviction-pacing": "Disabled"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := paced(3)
			if test.change != nil {
				test.change(d)
			}
			if got := deploymentutil.PacesEvictions(d); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// A pod that is broken or not available in the cache, and not any more, waits like others.
func TestPaceReadsUnavailablePods(t *testing.T) {
	for name, test := range map[string]struct {
		cached, live *v1.Pod
		over         bool
	}{
		"broken":                {cached: webPod("a", brokenFor(31)), live: webPod("a", brokenFor(31)), over: true},
		"ready again":           {cached: webPod("a", brokenFor(31)), live: webPod("a")},
		"not ready":             {cached: webPod("a", starting), live: webPod("a", starting), over: true},
		"ready in the meantime": {cached: webPod("a", starting), live: webPod("a")},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{paced(3), web1(sized(3, 3, 3)), test.cached, webPod("b", starting), webPod("c"), asks("a", labeled)}
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				f.client.PrependReactor("get", "pods", func(core.Action) (bool, runtime.Object, error) { return true, test.live, nil })
				defer f.intercept()()
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				if got := f.entry("a-uid").CompletionTime != nil; got != test.over {
					t.Errorf("the turn is over: %t, want %t", got, test.over)
				}
			})
		})
	}
}

// A release that was not reported, because the cache was behind, is decided on anew when it is not.
func TestPaceTakesReleasesBack(t *testing.T) {
	objects := []runtime.Object{paced(3), web1(sized(3, 3, 3)), webPod("a"), webPod("b"), webPod("c"), asks("a", labeled)}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		other := asks("c", labeled, turnCompleted)
		f.client.PrependReactor("list", "evictionrequests", func(core.Action) (bool, runtime.Object, error) {
			return true, &coordinationv1alpha1.EvictionRequestList{Items: []coordinationv1alpha1.EvictionRequest{*other}}, nil
		})
		defer f.intercept()()
		for _, cached := range []bool{false, true} {
			if cached {
				f.put(other)
			}
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
			if f.entry("a-uid").CompletionTime != nil {
				t.Fatalf("pod a was released beside pod c, which the cache has: %t", cached)
			}
		}
	})
}

// A time of another clock, which is ahead, postpones nothing.
func TestPaceIgnoresTimesInTheFuture(t *testing.T) {
	ahead := func(r *coordinationv1alpha1.EvictionRequest) {
		r.Status.Interceptors[0].CompletionTime = ptr.To(metav1.NewTime(bubbleBegins.Add(24 * time.Hour)))
	}
	objects := []runtime.Object{paced(3), web1(sized(3, 3, 3)), webPod("a"), webPod("b"), asks("c", labeled, turnCompleted, ahead, holding("Evicted")), asks("a", labeled)}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		for range 2 {
			if _, err := f.surge(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Second)
		}
		if f.entry("a-uid").CompletionTime == nil {
			t.Errorf("pod a waits: %s", f.entry("a-uid").Message)
		}
	})
}

// What a Deployment has released before is known as long as it matters, and not longer.
func TestPaceRemembersReleases(t *testing.T) {
	next := func(r *coordinationv1alpha1.EvictionRequest) { r.UID = "next" }
	for name, test := range map[string]struct {
		a    *v1.Pod
		then func(*surgeFixture)
		// over is the pod whose turn has to be over or not then.
		pod  string
		over bool
	}{
		"nobody waits for what replaces a broken pod": {a: webPod("a", brokenFor(31)), then: func(f *surgeFixture) {
			f.changeRequest("a-uid", holding("Evicted"))
			f.remove(webPod("a"))
			f.put(webPod("d", starting))
			f.put(asks("b", labeled))
		}, pod: "b", over: true},
		"nobody waits for a pod whose eviction was canceled": {a: webPod("a", brokenFor(31)), then: func(f *surgeFixture) {
			f.changeRequest("a-uid", holding("Canceled"))
			f.put(webPod("a"))
			f.put(asks("b", labeled))
		}, pod: "b", over: true},
		"a pod that recovers before its eviction is waited for": {a: webPod("a", brokenFor(31)), then: func(f *surgeFixture) {
			f.changeRequest("a-uid", passed)
			f.put(webPod("a"))
			if _, err := f.surge(); err != nil {
				f.t.Fatal(err)
			}
			f.changeRequest("a-uid", holding("Evicted"))
			f.remove(webPod("a"))
			f.put(webPod("d", starting))
			f.put(asks("b", labeled))
		}, pod: "b"},
		"a pod that is asked again waits again": {a: webPod("a"), then: func(f *surgeFixture) {
			f.remove(webPod("c"))
			f.put(asks("a", labeled, next))
		}, pod: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			withSurger(t, []runtime.Object{paced(3), web1(sized(3, 3, 3)), test.a, webPod("b"), webPod("c"), asks("a", labeled)}, func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				if _, err := f.surge(); err != nil {
					t.Fatal(err)
				}
				if f.entry("a-uid").CompletionTime == nil {
					t.Fatal("pod a was not released")
				}
				test.then(f)
				for range 2 {
					if _, err := f.surge(); err != nil {
						t.Fatal(err)
					}
				}
				if got := f.entry(test.pod+"-uid").CompletionTime != nil; got != test.over {
					t.Errorf("the turn of pod %s is over: %t, want %t: %s", test.pod, got, test.over, f.entry(test.pod+"-uid").Message)
				}
			})
		})
	}
}

// A pod that was broken before others left does not replace one of them.
func TestPaceKnowsReplacementsByTheirAge(t *testing.T) {
	objects := []runtime.Object{paced(3), web1(sized(3, 3, 3)), webPod("b"), webPod("c", neverReady), webPod("d"), asks("a", labeled, turnCompleted, holding("Evicted")), asks("b", labeled)}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		if f.entry("b-uid").CompletionTime == nil {
			t.Errorf("pod b waits: %s", f.entry("b-uid").Message)
		}
	})
}

// When a pod that was never ready begins to count as broken, others need not wait for it any more.
func TestPaceLooksAgainAtBrokenPods(t *testing.T) {
	young := func(p *v1.Pod) {
		p.CreationTimestamp = metav1.NewTime(bubbleBegins.Add(-10 * time.Second))
		p.Status.Conditions[0].LastTransitionTime = p.CreationTimestamp
	}
	objects := []runtime.Object{paced(3), web1(sized(3, 3, 3)), webPod("a"), webPod("b"), webPod("c", neverReady, young), asks("a", labeled)}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		if f.entry("a-uid").CompletionTime != nil || !f.looksAgainAfter(21*time.Second) {
			t.Error("the Deployment is not decided on again when pod c is broken")
		}
	})
}

// A request of the same name that the cache has may be an older one.
func TestPaceIsBehindByAnObject(t *testing.T) {
	older, newer := asks("c", labeled, turnCompleted, holding("Evicted")), asks("c", labeled, turnCompleted)
	newer.UID = "next"
	objects := []runtime.Object{paced(3), web1(sized(3, 3, 3)), webPod("a"), webPod("b"), webPod("d"), older, asks("a", labeled)}
	withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
		f.client.PrependReactor("list", "evictionrequests", func(core.Action) (bool, runtime.Object, error) {
			return true, &coordinationv1alpha1.EvictionRequestList{Items: []coordinationv1alpha1.EvictionRequest{*newer}}, nil
		})
		defer f.intercept()()
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		if f.entry("a-uid").CompletionTime != nil {
			t.Error("pod a was released beside pod c")
		}
	})
}
