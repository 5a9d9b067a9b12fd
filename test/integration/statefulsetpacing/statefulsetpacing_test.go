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

package statefulsetpacing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/evictionrequest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
)

const (
	managerUser     = "system:kube-controller-manager"
	statefulSetUser = "system:serviceaccount:kube-system:statefulset-controller"
	drainer         = "drainer.example.com"
	own             = "statefulset.apps.k8s.io"
)

// cluster is a namespace in which the test simulates the kubelet.
type cluster struct {
	*testcluster.Cluster
}

// TestStatefulSetPacing uses one API server for all tests. The controllers have the permissions of
// their bootstrap roles.
func TestStatefulSetPacing(t *testing.T) {
	config := testcluster.StartAPIServer(t, framework.SharedEtcd(), featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI:        true,
		features.StatefulSetEvictionPacing: true,
		features.GenericWorkload:           true,
	}, "--runtime-config=scheduling.k8s.io/v1beta1=true")
	for name, test := range map[string]func(*cluster){
		"one pod after another":       testOneAfterAnother,
		"pods in a PodGroup":          testInPodGroup,
		"gate off, all at once":       testGateOff,
		"gate enabled, then disabled": testNoRollout,
		"restart of the controller":   testRestart,
		"another pod is not ready":    testUnready,
		"pods are broken":             testBroken,
		"the budget is the limit":     testBudget,
		"the set has opted out":       testOptOut,
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{testcluster.New(t, config, "pacing")}
			c.StartEvictionController(c.ClientOf(testcluster.EvictionUser), c.Namespace, clock.RealClock{})
			test(c)
		})
	}
}

// startController starts the StatefulSet controller, with the gate on or off.
func (c *cluster) startController(gateOn bool) (stop func()) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c.ClientOf(managerUser), 0, informers.WithNamespace(c.Namespace))
	pods, sets := factory.Core().V1().Pods(), factory.Apps().V1().StatefulSets()
	client := c.ClientOf(statefulSetUser)
	controller := statefulset.NewStatefulSetController(ctx, pods, sets, factory.Core().V1().PersistentVolumeClaims(), factory.Apps().V1().ControllerRevisions(), client)
	work := []func(){func() { controller.Run(ctx, 2) }}
	if gateOn {
		intercept, err := controller.InterceptEvictions(client, factory)
		if err != nil {
			c.T.Fatalf("creating the interceptor: %v", err)
		}
		work = append(work, func() { intercept(ctx) })
	}
	return c.Run(ctx, cancel, factory, work...)
}

// createSet creates a StatefulSet, waits until its pods are ready, and returns them.
func (c *cluster) createSet(replicas int32, options ...func(*apps.StatefulSet)) []*v1.Pod {
	c.T.Helper()
	labels := map[string]string{"app": "web"}
	set := &apps.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: apps.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "web", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "image"}}},
			},
		},
	}
	for _, option := range options {
		option(set)
	}
	if _, err := c.Client.AppsV1().StatefulSets(c.Namespace).Create(c.T.Context(), set, metav1.CreateOptions{}); err != nil {
		c.T.Fatalf("creating the StatefulSet: %v", err)
	}
	for ordinal := range int(replicas) {
		c.makeReady(fmt.Sprintf("web-%d", ordinal), "")
	}
	return c.pods()
}

func (c *cluster) pods() []*v1.Pod {
	c.T.Helper()
	list, err := c.Client.CoreV1().Pods(c.Namespace).List(c.T.Context(), metav1.ListOptions{})
	if err != nil {
		c.T.Fatalf("listing pods: %v", err)
	}
	var pods []*v1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// makeReady waits for a pod with the name that is not the old one, and makes it ready.
func (c *cluster) makeReady(name string, old types.UID) {
	c.T.Helper()
	c.setReady(name, old, v1.ConditionTrue)
}

func (c *cluster) setReady(name string, old types.UID, ready v1.ConditionStatus) {
	c.T.Helper()
	c.Eventually("pod "+name, func(ctx context.Context) (bool, string) {
		pod, err := c.Client.CoreV1().Pods(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || pod.UID == old {
			return false, fmt.Sprintf("not created: %v", err)
		}
		pod.Status.Phase = v1.PodRunning
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: ready, LastTransitionTime: metav1.Now()}}
		if _, err := c.Client.CoreV1().Pods(c.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
}

func (c *cluster) requestEviction(pods ...*v1.Pod) {
	c.T.Helper()
	requester, err := evictionrequest.NewRequester(c.Client, drainer, evictionrequest.RequesterOptions{})
	if err != nil {
		c.T.Fatalf("creating the requester: %v", err)
	}
	for _, pod := range pods {
		if _, err := requester.Request(c.T.Context(), pod); err != nil {
			c.T.Fatalf("requesting the eviction of pod %s: %v", pod.Name, err)
		}
	}
}

// awaitMessage waits until the interceptor reports the message for the pod.
func (c *cluster) awaitMessage(pod *v1.Pod, want string) {
	c.T.Helper()
	c.Eventually("the message of the interceptor for pod "+pod.Name, func(ctx context.Context) (bool, string) {
		request, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, entry := range request.Status.Interceptors {
			if entry.Name == own {
				return entry.Message == want, entry.Message
			}
		}
		return false, "no entry"
	})
}

// awaitState waits until the pods have these states, each old or new, ready or unready.
func (c *cluster) awaitState(old []*v1.Pod, want ...string) {
	c.T.Helper()
	c.Eventually("the pods", func(context.Context) (bool, string) {
		state := c.state(old)
		return slices.Equal(state, want), fmt.Sprintf("%v, want %v", state, want)
	})
}

func (c *cluster) expectState(old []*v1.Pod, want ...string) {
	c.T.Helper()
	if state := c.state(old); !slices.Equal(state, want) {
		c.T.Errorf("the pods are %v, want %v", state, want)
	}
}

func (c *cluster) state(old []*v1.Pod) []string {
	var state []string
	for _, pod := range c.pods() {
		text := "new"
		if slices.ContainsFunc(old, func(other *v1.Pod) bool { return other.UID == pod.UID }) {
			text = "old"
		}
		if !podutil.IsPodReady(pod) {
			text += " unready"
		}
		state = append(state, text)
	}
	return state
}

func waitsFor(what string) string {
	return "Waiting for " + what + ": at most 1 of the 3 pods of StatefulSet web may be unavailable at a time."
}

// testOneAfterAnother requests the eviction of all pods of a set, as a drain of several nodes does.
// One of them is requested first, so that its turn starts first.
func testOneAfterAnother(c *cluster) {
	c.startController(true)
	old := c.createSet(3)
	c.requestEviction(old[2])
	c.awaitState(old, "old", "old", "new unready")
	c.requestEviction(old[:2]...)
	c.awaitMessage(old[1], waitsFor("pod web-2 to become available"))
	c.awaitMessage(old[0], waitsFor("pod web-2 to become available"))
	c.expectState(old, "old", "old", "new unready")
	c.makeReady("web-2", old[2].UID)
	c.awaitState(old, "old", "new unready", "new")
	c.awaitMessage(old[0], waitsFor("pod web-1 to become available"))
	c.expectState(old, "old", "new unready", "new")
	c.makeReady("web-1", old[1].UID)
	c.awaitState(old, "new unready", "new", "new")
}

// testInPodGroup has pods of a group that lets them be evicted one by one, which is the default: they are like any others.
func testInPodGroup(c *cluster) {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "single"},
		Spec:       schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}},
	}
	if _, err := c.Client.SchedulingV1beta1().PodGroups(c.Namespace).Create(c.T.Context(), group, metav1.CreateOptions{}); err != nil {
		c.T.Fatalf("creating a PodGroup: %v", err)
	}
	c.startController(true)
	old := c.createSet(3, func(set *apps.StatefulSet) {
		set.Spec.Template.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group.Name}
	})
	c.requestEviction(old[2])
	c.awaitState(old, "old", "old", "new unready")
	c.requestEviction(old[1])
	c.awaitMessage(old[1], waitsFor("pod web-2 to become available"))
	c.expectState(old, "old", "old", "new unready")
	c.makeReady("web-2", old[2].UID)
	c.awaitState(old, "old", "new unready", "new")
}

// testGateOff evicts the pods without pacing.
func testGateOff(c *cluster) {
	c.startController(false)
	old := c.createSet(3)
	c.requestEviction(old...)
	c.Eventually("all pods to be evicted", func(context.Context) (bool, string) {
		state := c.state(old)
		return !slices.ContainsFunc(state, func(text string) bool { return strings.HasPrefix(text, "old") }), fmt.Sprint(state)
	})
}

// testNoRollout enables and disables the gate: this must not replace pods or start a rollout.
func testNoRollout(c *cluster) {
	stop := c.startController(false)
	old := c.createSet(2)
	revision := c.revision()
	for _, gateOn := range []bool{true, false} {
		stop()
		stop = c.startController(gateOn)
		// A new pod has the interceptor only with the gate on. Its revision is always the same.
		last := c.pods()[1]
		if err := c.Client.CoreV1().Pods(c.Namespace).Delete(c.T.Context(), last.Name, metav1.DeleteOptions{}); err != nil {
			c.T.Fatalf("deleting pod %s: %v", last.Name, err)
		}
		c.makeReady(last.Name, last.UID)
		pods := c.pods()
		if named := len(pods[1].Spec.EvictionInterceptors) == 1; named != gateOn {
			c.T.Errorf("with the gate on: %t, the interceptors of the new pod are %v", gateOn, pods[1].Spec.EvictionInterceptors)
		}
		if pods[0].UID != old[0].UID {
			c.T.Error("the other pod was replaced")
		}
		if got := c.revision(); got != revision {
			c.T.Errorf("the revisions are %s, want %s", got, revision)
		}
	}
}

// revision returns the current and the updated revision of the set, and the number of revisions.
func (c *cluster) revision() string {
	c.T.Helper()
	set, err := c.Client.AppsV1().StatefulSets(c.Namespace).Get(c.T.Context(), "web", metav1.GetOptions{})
	if err != nil {
		c.T.Fatalf("reading the StatefulSet: %v", err)
	}
	revisions, err := c.Client.AppsV1().ControllerRevisions(c.Namespace).List(c.T.Context(), metav1.ListOptions{})
	if err != nil {
		c.T.Fatalf("listing the revisions: %v", err)
	}
	return fmt.Sprintf("%s, %s, %d", set.Status.CurrentRevision, set.Status.UpdateRevision, len(revisions.Items))
}

// testRestart restarts the controller while one pod is unavailable: the others still wait.
func testRestart(c *cluster) {
	stop := c.startController(true)
	old := c.createSet(3)
	c.requestEviction(old[2])
	c.awaitState(old, "old", "old", "new unready")
	c.requestEviction(old[1])
	c.awaitMessage(old[1], waitsFor("pod web-2 to become available"))
	stop()
	c.startController(true)
	c.awaitMessage(old[1], waitsFor("pod web-2 to become available"))
	c.expectState(old, "old", "old", "new unready")
	c.makeReady("web-2", old[2].UID)
	c.awaitState(old, "old", "new unready", "new")
}

// testUnready requests the eviction of a pod while another pod of the set is not ready.
func testUnready(c *cluster) {
	c.startController(true)
	old := c.createSet(3)
	c.setReady("web-0", "", v1.ConditionFalse)
	c.requestEviction(old[2])
	c.awaitMessage(old[2], waitsFor("pod web-0 to become available"))
	c.expectState(old, "old unready", "old", "old")
	c.makeReady("web-0", "")
	c.awaitState(old, "old", "old", "new unready")
}

func parallel(set *apps.StatefulSet) { set.Spec.PodManagementPolicy = apps.ParallelPodManagement }

// count returns how many pods have a state that begins with the text.
func (c *cluster) count(old []*v1.Pod, text string) int {
	count := 0
	for _, state := range c.state(old) {
		if strings.HasPrefix(state, text) {
			count++
		}
	}
	return count
}

// awaitNoneOld waits until all pods have left.
func (c *cluster) awaitNoneOld(old []*v1.Pod) {
	c.T.Helper()
	began := time.Now()
	c.Eventually("all pods to be evicted", func(context.Context) (bool, string) {
		return c.count(old, "old") == 0, fmt.Sprint(c.state(old))
	})
	c.T.Logf("all pods have left after %v", time.Since(began).Round(time.Millisecond))
}

// testBroken requests the eviction of all pods of a set while two of them have not been ready for half
// a minute, and their replacements do not become ready either.
func testBroken(c *cluster) {
	c.startController(true)
	old := c.createSet(4, parallel)
	c.setReady("web-0", "", v1.ConditionFalse)
	c.setReady("web-1", "", v1.ConditionFalse)
	var unready evictionturn.Unready
	c.Eventually("the pods to count as broken", func(context.Context) (bool, string) {
		now := time.Now()
		pods := c.pods()
		for _, pod := range pods {
			unready.Saw(pod, now)
		}
		return unready.IsBroken(pods[0], now) && unready.IsBroken(pods[1], now), "not for long enough"
	})
	c.requestEviction(old[3])
	c.awaitState(old, "old unready", "old unready", "old", "new unready")
	c.requestEviction(old[:3]...)
	c.awaitState(old, "new unready", "new unready", "old", "new unready")
	c.makeReady("web-3", old[3].UID)
	c.awaitNoneOld(old)
}

// testBudget requests the eviction of all six pods of a set of which a budget permits five to be
// disrupted at a time.
func testBudget(c *cluster) {
	c.StartDisruptionController(c.Namespace)
	c.startController(true)
	old := c.createSet(6, parallel)
	most := intstr.FromInt32(5)
	budget := &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "budget"},
		Spec:       policy.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	if _, err := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Create(c.T.Context(), budget, metav1.CreateOptions{}); err != nil {
		c.T.Fatalf("creating the budget: %v", err)
	}
	c.Eventually("the budget", func(ctx context.Context) (bool, string) {
		budget, err := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Get(ctx, "budget", metav1.GetOptions{})
		return err == nil && budget.Status.DisruptionsAllowed == 5, fmt.Sprint(budget, err)
	})
	began := time.Now()
	c.requestEviction(old...)
	c.Eventually("five pods to be evicted", func(context.Context) (bool, string) {
		return c.count(old, "old") == 1 && c.count(old, "new unready") == 5, fmt.Sprint(c.state(old))
	})
	c.T.Logf("five pods have left after %v", time.Since(began).Round(time.Millisecond))
	ready := slices.IndexFunc(c.state(old), func(state string) bool { return state == "new unready" })
	c.makeReady(fmt.Sprintf("web-%d", ready), "")
	c.awaitNoneOld(old)
}

// testOptOut turns the pacing of a set off while its pods wait.
func testOptOut(c *cluster) {
	c.startController(true)
	old := c.createSet(3, parallel)
	c.requestEviction(old[2])
	c.awaitState(old, "old", "old", "new unready")
	c.requestEviction(old[:2]...)
	c.awaitMessage(old[0], waitsFor("pod web-2 to become available"))
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, coordinationv1alpha1.EvictionPacingAnnotation, coordinationv1alpha1.EvictionPacingDisabled)
	if _, err := c.Client.AppsV1().StatefulSets(c.Namespace).Patch(c.T.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.T.Fatalf("annotating the StatefulSet: %v", err)
	}
	c.awaitNoneOld(old)
}
