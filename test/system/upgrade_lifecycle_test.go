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

package system

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
)

// The flags for lifecycle.k8s.io. The gate EvictionRequestAPI is also one of the base.
const (
	gatesOfLifecycle   = gatesOfDrains + ",LifecycleEvictions=true"
	lifecycleServed    = "lifecycle.k8s.io/v1alpha1=true"
	lifecycleRequester = "example.com/drainer"
)

// An interlude is what runs on the etcd in the middle of evictions, before the fork goes on.
type interlude struct {
	release controlplane.Release
	// isBase is whether that is the base. Its requests of lifecycle.k8s.io are in another place in etcd.
	isBase bool
}

// A lifecycleCase is a pod whose eviction has begun, with its name.
type lifecycleCase struct {
	name string
	// before brings it to where it is when the interlude begins: the first responder is active, if nil.
	before func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod)
	// meanwhile happens in the interlude, and after is what must be true in the end.
	meanwhile, after func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod)
	// options are about the pod.
	options []func(*v1.Pod)
}

// lifecycleUpgrade is the state that the cases share.
type lifecycleUpgrade struct {
	plane     *controlplane.ControlPlane
	fork      controlplane.Release
	interlude interlude
	pods      map[string]*v1.Pod
	// started has when the first responders became active.
	started map[string]metav1.Time
	// shown are the objects of lifecycle.k8s.io before the interlude.
	shown lifecycleObjects
}

// TestLifecycleUpgrade interrupts evictions by requests of lifecycle.k8s.io: by the base, which serves the group as
// well, and by the fork with the gate off. Nothing of the group is lost or invalid meanwhile, and then the evictions go
// on where they were; nothing is evicted that is no longer wanted.
func TestLifecycleUpgrade(t *testing.T) { testLifecycleUpgrade(ktesting.Init(t)) }
func testLifecycleUpgrade(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	fork := controlplane.Release{Name: "the fork", Bin: p.fork, FeatureGates: gatesOfLifecycle, RuntimeConfig: runtimeConfig + "," + lifecycleServed}
	off := fork
	off.Name, off.FeatureGates = "the fork with the gate off", gatesOfDrains
	run(tCtx, "base", func(tCtx ktesting.TContext) {
		base := controlplane.Release{Name: "the base", Bin: p.base, FeatureGates: gatesOfRequests, RuntimeConfig: lifecycleServed}
		testLifecycleInterlude(tCtx, p, fork, interlude{release: base, isBase: true})
	})
	run(tCtx, "gate off", func(tCtx ktesting.TContext) {
		testLifecycleInterlude(tCtx, p, fork, interlude{release: off})
	})
}

func testLifecycleInterlude(tCtx ktesting.TContext, p programs, fork controlplane.Release, interlude interlude) {
	tCtx, plane := newControlPlane(tCtx, p, "lifecycle")
	u := &lifecycleUpgrade{plane: plane, fork: fork, interlude: interlude, pods: map[string]*v1.Pod{}, started: map[string]metav1.Time{}}
	start(tCtx, plane, fork)
	createNamespace(tCtx)
	create(tCtx, tCtx.Client().CoreV1().Nodes(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: rack}})
	for _, c := range lifecycleCases {
		tCtx := tCtx.WithStep(c.name)
		u.pods[c.name] = createReadyPod(tCtx, newPodWithResponders(c.name, c.options...))
		if c.before == nil {
			u.ask(tCtx, u.pods[c.name])
			u.awaitFirst(tCtx, u.pods[c.name])
			continue
		}
		c.before(u, tCtx, u.pods[c.name])
	}
	u.createDoomed(tCtx)

	tCtx.Logf("%s, in the middle of %d evictions", interlude.release.Name, len(lifecycleCases))
	u.settle(tCtx)
	u.shown = listLifecycle(tCtx)
	u.replace(tCtx, fork, interlude.release)
	u.expectUsable(tCtx)
	for _, c := range lifecycleCases {
		if c.meanwhile != nil {
			c.meanwhile(u, tCtx.WithStep(c.name), u.pods[c.name])
		}
	}
	namespaces := tCtx.Client().CoreV1().Namespaces()
	tCtx.ExpectNoError(namespaces.Delete(tCtx, doomed, metav1.DeleteOptions{}), "deleting a namespace")
	awaitNotFound(tCtx, "the namespace", doomed, namespaces)
	for name, pod := range u.pods {
		if !slices.Contains([]string{"gone", "evicted", "forgotten"}, name) {
			u.expectResponders(tCtx.WithStep(name), pod)
		}
	}

	tCtx.Log("The fork goes on.")
	u.replace(tCtx, interlude.release, fork)
	for _, c := range lifecycleCases {
		c.after(u, tCtx.WithStep(c.name), u.pods[c.name])
	}
	time.Sleep(quietPeriod)
	for _, name := range []string{"withdrawn", "deleted", "unwanted", "canceled", "invalid"} {
		expectStays(tCtx.WithStep(name), u.pods[name], 0)
	}
	requests, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(doomed).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	for _, request := range requests.Items {
		if !isEvicted.reached(&request) {
			tCtx.Errorf("the request in a namespace that is gone has %+v", request.Status)
		}
	}
}

// replace runs another release on the same etcd.
func (u *lifecycleUpgrade) replace(tCtx ktesting.TContext, from, to controlplane.Release) {
	tCtx.Helper()
	tCtx.ExpectNoError(u.plane.StopControllerManager())
	tCtx.ExpectNoError(u.plane.StopAPIServer())
	switch {
	case !u.interlude.isBase:
	case to.Name == u.fork.Name:
		moveKeys(tCtx, u.plane, placeInKubernetes, lifecyclePlace)
		moveKeys(tCtx, u.plane, parkingPlace, placeInKubernetes)
	default:
		moveKeys(tCtx, u.plane, placeInKubernetes, parkingPlace)
		moveKeys(tCtx, u.plane, lifecyclePlace, placeInKubernetes)
	}
	start(tCtx, u.plane, to)
	tCtx.Logf("%s took the place of %s.", to.Name, from.Name)
}

// createDoomed requests an eviction in a namespace that is deleted in the interlude.
func (u *lifecycleUpgrade) createDoomed(tCtx ktesting.TContext) {
	tCtx = tCtx.WithNamespace(doomed)
	createNamespace(tCtx)
	pod := createReadyPod(tCtx, newPodWithResponders(doomed))
	u.ask(tCtx, pod)
	u.awaitFirst(tCtx, pod)
}

var lifecycleCases = []lifecycleCase{{
	name: "silent",
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		eviction := awaitLifecycleEviction(tCtx, "pod-1-silent", firstActive, awaitsEviction)
		if at := eviction.Status.Responders[0].StartTime; !at.Equal(ptr.To(u.started[pod.Name])) {
			tCtx.Errorf("the first responder has started at %v, and at %v before", at, u.started[pod.Name])
		}
		u.finish(tCtx, pod, "pod-1-silent")
	},
}, {
	name: "completed", // The responder completes in the interlude.
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		reportAsResponder(tCtx, "pod-1-completed", firstResponder)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-completed", secondActive, awaitsEviction)
		expectStays(tCtx, pod, 0)
		reportAsResponder(tCtx, "pod-1-completed", secondResponder)
		awaitLifecycleEviction(tCtx, "pod-1-completed", allCompleted, podDeleted)
		awaitLifecycleRequest(tCtx, pod.Name, podDeleted)
	},
}, {
	name: "withdrawn",
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		setIntent(tCtx, pod.Name, lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-withdrawn", firstCanceled, canceledEviction)
		awaitLifecycleRequest(tCtx, pod.Name, canceledEviction)
		awaitRequest(tCtx, pod, isCanceled)
	},
}, {
	name: "deleted",
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		tCtx.ExpectNoError(lifecycleRequests(tCtx).Delete(tCtx, pod.Name, metav1.DeleteOptions{}))
		// Its owner is gone.
		awaitNotFound(tCtx, "the Eviction", "pod-1-deleted", lifecycleEvictions(tCtx))
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitRequest(tCtx, pod, isCanceled)
		expectNoEviction(tCtx, pod)
	},
}, {
	name: "unwanted", // It waits for a budget, and is withdrawn before the budget allows it.
	before: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		createBudget(tCtx, pod.Name, "maxUnavailable: 0", 1)
		u.ask(tCtx, pod)
		awaitLifecycleEviction(tCtx, "pod-1-unwanted", lastActive, awaitsEviction)
		awaitRequest(tCtx, pod, isBlocked)
	},
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		setIntent(tCtx, pod.Name, lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
		if u.interlude.isBase { // With the gate off, what was requested goes on.
			deleteBudget(tCtx, pod.Name)
		}
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitRequest(tCtx, pod, isCanceled)
		awaitLifecycleRequest(tCtx, pod.Name, canceledEviction)
	},
	options: []func(*v1.Pod){withoutResponders},
}, {
	name: "blocked",
	before: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		createBudget(tCtx, pod.Name, "maxUnavailable: 0", 1)
		u.ask(tCtx, pod)
		awaitLifecycleEviction(tCtx, "pod-1-blocked", lastActive, awaitsEviction)
		awaitRequest(tCtx, pod, isBlocked)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-blocked", lastActive, awaitsEviction)
		expectStays(tCtx, pod, 0)
		deleteBudget(tCtx, pod.Name)
		awaitLifecycleEviction(tCtx, "pod-1-blocked", lastCompleted, podDeleted)
		awaitLifecycleRequest(tCtx, pod.Name, podDeleted)
	},
	options: []func(*v1.Pod){withoutResponders},
}, {
	name: "gone", // Its pod is deleted.
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		deletePod(tCtx, pod)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-gone", firstInterrupted, podDeleted)
		awaitLifecycleRequest(tCtx, pod.Name, podDeleted)
	},
}, {
	name: "replaced", // Another pod gets the name.
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		deletePod(tCtx, pod)
		u.pods[pod.Name] = createReadyPod(tCtx, newPodWithResponders(pod.Name))
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-replaced", firstInterrupted, podDeleted)
		awaitLifecycleRequest(tCtx, pod.Name, podDeleted)
		expectStays(tCtx, pod, 0)
	},
}, {
	name: "unseen", // Its Eviction is deleted.
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		tCtx.ExpectNoError(lifecycleEvictions(tCtx).Delete(tCtx, "pod-1-unseen", metav1.DeleteOptions{}))
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-unseen", firstActive, awaitsEviction)
		u.finish(tCtx, pod, "pod-1-unseen")
	},
}, {
	name: "evicted",
	before: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		u.ask(tCtx, pod)
		awaitLifecycleEviction(tCtx, "pod-1-evicted", lastCompleted, podDeleted)
		awaitLifecycleRequest(tCtx, pod.Name, podDeleted)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-evicted", lastCompleted, podDeleted)
		awaitLifecycleRequest(tCtx, pod.Name, podDeleted)
	},
	options: []func(*v1.Pod){withoutResponders},
}, {
	name: "forgotten", // It is evicted, and its Eviction is deleted.
	before: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		u.ask(tCtx, pod)
		awaitLifecycleEviction(tCtx, "pod-1-forgotten", lastCompleted, podDeleted)
		awaitLifecycleRequest(tCtx, pod.Name, podDeleted)
	},
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		tCtx.ExpectNoError(lifecycleEvictions(tCtx).Delete(tCtx, "pod-1-forgotten", metav1.DeleteOptions{}))
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleRequest(tCtx, pod.Name, podDeleted)
		expectNoEviction(tCtx, pod)
	},
	options: []func(*v1.Pod){withoutResponders},
}, {
	name: "canceled",
	before: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		u.cancel(tCtx, pod)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-canceled", firstCanceled, canceledEviction)
		awaitLifecycleRequest(tCtx, pod.Name, canceledEviction)
	},
}, {
	name: "again", // It is canceled, and requested again in the interlude.
	before: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		u.cancel(tCtx, pod)
	},
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		setIntent(tCtx, pod.Name, lifecyclev1alpha1.EvictionRequestIntentEviction)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-2-again", firstActive, awaitsEviction)
		awaitLifecycleEviction(tCtx, "pod-1-again", firstCanceled, canceledEviction)
		u.finish(tCtx, pod, "pod-2-again")
	},
}, {
	name: "invalid", // The request names another UID.
	before: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		other := pod.DeepCopy()
		other.UID = "6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a10"
		u.ask(tCtx, other)
		awaitLifecycleRequest(tCtx, pod.Name, invalidEviction)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleRequest(tCtx, pod.Name, invalidEviction)
	},
}, {
	name:   "asked", // The request is created in the interlude.
	before: func(*lifecycleUpgrade, ktesting.TContext, *v1.Pod) {},
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		u.ask(tCtx, pod)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-asked", firstActive, awaitsEviction)
		u.finish(tCtx, pod, "pod-1-asked")
	},
}, {
	name: "other", // Only a request of coordination.k8s.io asks for it.
	before: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		requestEviction(tCtx, pod)
		u.awaitFirst(tCtx, pod)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-other", firstActive, awaitsEviction)
		u.completeAll(tCtx, pod, "pod-1-other")
		awaitEvicted(tCtx, pod)
	},
}, {
	name: "both", // One of each group asks for it; that of lifecycle.k8s.io is deleted.
	before: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		requestEviction(tCtx, pod)
		u.ask(tCtx, pod)
		u.awaitFirst(tCtx, pod)
		await(tCtx, "both owners", func(tCtx ktesting.TContext) {
			eviction, err := lifecycleEvictions(tCtx).Get(tCtx, "pod-1-both", metav1.GetOptions{})
			tCtx.ExpectNoError(err)
			if len(eviction.OwnerReferences) != 2 {
				tCtx.Fatalf("it has %v", eviction.OwnerReferences)
			}
		})
	},
	meanwhile: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		tCtx.ExpectNoError(lifecycleRequests(tCtx).Delete(tCtx, pod.Name, metav1.DeleteOptions{}))
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-both", firstActive, awaitsEviction)
		await(tCtx, "the requester to be withdrawn", func(tCtx ktesting.TContext) {
			if requesters := getRequest(tCtx, pod).Spec.Requesters; len(requesters) != 1 {
				tCtx.Fatalf("it has %v", requesters)
			}
		})
		u.completeAll(tCtx, pod, "pod-1-both")
		awaitEvicted(tCtx, pod)
	},
}, {
	name: "drained", // A NodeMaintenance asks for it.
	before: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenances(), newMaintenance(rack, v1.NodeSelectorTerm{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{rack}}},
		}))
		u.awaitFirst(tCtx, pod)
	},
	after: func(u *lifecycleUpgrade, tCtx ktesting.TContext, pod *v1.Pod) {
		awaitLifecycleEviction(tCtx, "pod-1-drained", firstActive, awaitsEviction)
		u.completeAll(tCtx, pod, "pod-1-drained")
		awaitEvicted(tCtx, pod)
		await(tCtx, "the node to be drained", func(tCtx ktesting.TContext) {
			conditions := getRack(tCtx).Status.Conditions
			if !slices.ContainsFunc(conditions, func(c v1.NodeCondition) bool { return c.Type == "Drained" && c.Status == v1.ConditionTrue }) {
				tCtx.Fatalf("it has %v", conditions)
			}
		})
	},
	options: []func(*v1.Pod){func(pod *v1.Pod) { pod.Spec.NodeName = rack }},
}}

// ask requests the eviction of a pod.
func (u *lifecycleUpgrade) ask(tCtx ktesting.TContext, pod *v1.Pod) {
	tCtx.Helper()
	create(tCtx, lifecycleRequests(tCtx), &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}},
			Requester: lifecycleRequester, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	})
}

// awaitFirst waits until the first responder is active.
func (u *lifecycleUpgrade) awaitFirst(tCtx ktesting.TContext, pod *v1.Pod) {
	tCtx.Helper()
	eviction := awaitLifecycleEviction(tCtx, "pod-1-"+pod.Name, firstActive, awaitsEviction)
	u.started[pod.Name] = *eviction.Status.Responders[0].StartTime
}

// cancel cancels an eviction in the middle.
func (u *lifecycleUpgrade) cancel(tCtx ktesting.TContext, pod *v1.Pod) {
	tCtx.Helper()
	u.ask(tCtx, pod)
	u.awaitFirst(tCtx, pod)
	setIntent(tCtx, pod.Name, lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	awaitLifecycleEviction(tCtx, "pod-1-"+pod.Name, firstCanceled, canceledEviction)
	awaitLifecycleRequest(tCtx, pod.Name, canceledEviction)
}

// completeAll has all responders complete, in turn.
func (u *lifecycleUpgrade) completeAll(tCtx ktesting.TContext, pod *v1.Pod, eviction string) {
	tCtx.Helper()
	expectStays(tCtx, pod, 0)
	reportAsResponder(tCtx, eviction, firstResponder)
	awaitLifecycleEviction(tCtx, eviction, secondActive, awaitsEviction)
	expectStays(tCtx, pod, 0)
	reportAsResponder(tCtx, eviction, secondResponder)
}

// finish takes an eviction to its end.
func (u *lifecycleUpgrade) finish(tCtx ktesting.TContext, pod *v1.Pod, eviction string) {
	tCtx.Helper()
	u.completeAll(tCtx, pod, eviction)
	awaitLifecycleEviction(tCtx, eviction, allCompleted, podDeleted)
	awaitLifecycleRequest(tCtx, pod.Name, podDeleted)
}

func (u *lifecycleUpgrade) expectResponders(tCtx ktesting.TContext, pod *v1.Pod) {
	tCtx.Helper()
	want := newPodWithResponders(pod.Name, func(other *v1.Pod) {
		if len(pod.Spec.EvictionResponders) == 0 {
			withoutResponders(other)
		}
	}).Spec.EvictionResponders
	if got := getPod(tCtx, pod).Spec.EvictionResponders; fmt.Sprint(names(got)) != fmt.Sprint(names(want)) {
		tCtx.Errorf("pod %s has the responders %v", pod.Name, names(got))
	}
}

func names(responders []v1.EvictionResponder) (names []string) {
	for _, responder := range responders {
		names = append(names, fmt.Sprintf("%s:%d", responder.Name, *responder.Priority))
	}
	return names
}

func expectNoEviction(tCtx ktesting.TContext, pod *v1.Pod) {
	tCtx.Helper()
	list, err := lifecycleEvictions(tCtx).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	for _, eviction := range list.Items {
		if strings.HasSuffix(eviction.Name, "-"+pod.Name) {
			tCtx.Errorf("there is the Eviction %s: %v", eviction.Name, describeEviction(&eviction))
		}
	}
}

func deletePod(tCtx ktesting.TContext, pod *v1.Pod) {
	tCtx.Helper()
	pods := tCtx.Client().CoreV1().Pods(tCtx.Namespace())
	tCtx.ExpectNoError(pods.Delete(tCtx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}))
	awaitNotFound(tCtx, "the pod", pod.Name, pods)
}

func setIntent(tCtx ktesting.TContext, name string, intent lifecyclev1alpha1.EvictionRequestIntent) {
	tCtx.Helper()
	_, err := lifecycleRequests(tCtx).Patch(tCtx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"intent":%q}}`, intent), metav1.PatchOptions{})
	tCtx.ExpectNoError(err, "setting the intent of %s", name)
}
