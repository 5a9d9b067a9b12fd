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

package lifecycleeviction

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	lifecycleapply "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"k8s.io/utils/ptr"
)

// upstreamTests are the cases of the suites that Kubernetes 1.38 has for its controllers (test/integration/evictionrequest,
// test/integration/imperativeevictionresponder, test/e2e/lifecycle), each with its expectation there. What differs is in
// docs/migrate/kubernetes-1.37.md.
var upstreamTests = map[string]func(*cluster){
	"upstream: pod not found":         (*cluster).testPodNotFound,
	"upstream: pod UID mismatch":      (*cluster).testUIDMismatch,
	"upstream: pod with a group":      (*cluster).testSchedulingGroup,
	"upstream: Eviction with a group": (*cluster).testGroupOfEviction,

	"upstream: pod termination":                          process(steps{end: terminatePod, report: true, want: terminal}),
	"upstream: pod deletion":                             process(steps{end: deletePod, report: true, want: deleted}),
	"upstream: canceled, again by the same request":      process(steps{end: deletePod, report: true, cancel: true, want: deleted}),
	"upstream: canceled, again by another request":       process(steps{end: deletePod, report: true, cancel: true, another: true, want: deleted}),
	"upstream: pod termination, the last report missing": process(steps{end: terminatePod, want: terminal}),
	"upstream: completed without an eviction":            (*cluster).testNoFurtherResponder,

	"upstream: no time of termination, pod gone":    func(c *cluster) { c.testTimeOfTermination(false) },
	"upstream: no time of termination, pod present": func(c *cluster) { c.testTimeOfTermination(true) },

	"upstream: Evictions that nobody requests":   (*cluster).testSkipped,
	"upstream: normal eviction":                  func(c *cluster) { c.testImperative(false, false) },
	"upstream: a budget stalls it":               func(c *cluster) { c.testImperative(true, false) },
	"upstream: a budget stalls it, and cancel":   func(c *cluster) { c.testImperative(true, true) },
	"upstream: terminated by somebody else":      (*cluster).testThirdParty,
	"upstream: create, update, patch and delete": (*cluster).testObjects,
}

const terminal = "TargetEvicted=True/PodTerminal Failed=False/Succeeded"

const responderA, responderB = "a.example.com/foo", "b.example.com/bar"

// running creates a pod that runs.
func (c *cluster) running(name string, options ...func(*v1.Pod)) *v1.Pod {
	c.T.Helper()
	pod := c.createPod(name, options...)
	pod.Status.Phase = v1.PodRunning
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	return c.writePodStatus(pod)
}

func (c *cluster) writePodStatus(pod *v1.Pod) *v1.Pod {
	c.T.Helper()
	updated, err := c.Client.CoreV1().Pods(c.Namespace).UpdateStatus(c.T.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		c.T.Fatalf("writing the status of pod %s: %v", pod.Name, err)
	}
	return updated
}

func withFinalizer(pod *v1.Pod) { pod.Finalizers = []string{"example.com/prevent-deletion"} }

// message returns the message of the condition that is True.
func message(conditions []metav1.Condition) string {
	for _, condition := range conditions {
		if condition.Status == metav1.ConditionTrue {
			return condition.Message
		}
	}
	return ""
}

// expectInvalid expects a request to be invalid with a message, also after it is withdrawn.
func (c *cluster) expectInvalid(pod *v1.Pod, text string) {
	c.T.Helper()
	c.ask("one", drainer, pod)
	for _, intent := range []lifecyclev1alpha1.EvictionRequestIntent{"", lifecyclev1alpha1.EvictionRequestIntentWithdrawn} {
		if intent != "" {
			c.setIntent("one", intent)
		}
		if got := message(c.expectRequest("one", invalid).Status.Conditions); !strings.Contains(got, text) {
			c.T.Errorf("message %q, want %q", got, text)
		}
	}
	time.Sleep(300 * time.Millisecond)
	c.expectRequest("one", invalid)
}

func (c *cluster) testPodNotFound() {
	c.expectInvalid(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "none", UID: "55fcee67-c0cb-409d-b610-c16d9d765b7b"}}, "not found")
}

func (c *cluster) testUIDMismatch() {
	pod := c.running("web")
	pod.UID = "55fcee67-c0cb-409d-b610-c16d9d765b7b"
	c.expectInvalid(pod, "UID mismatch")
}

func inGroup(pod *v1.Pod) {
	pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("group")}
}

// testSchedulingGroup: the group does not exist, so that its pods are not evicted individually.
func (c *cluster) testSchedulingGroup() {
	c.expectInvalid(c.running("web", inGroup), "references a SchedulingGroup")
}

// byHand creates an Eviction as its controller would.
func (c *cluster) byHand(name string, pod *v1.Pod, labels map[string]string) *lifecyclev1alpha1.Eviction {
	c.T.Helper()
	created, err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).Create(c.T.Context(), &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: pod.Name, UID: pod.UID}}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.T.Fatalf("creating Eviction %s: %v", name, err)
	}
	return created
}

// testGroupOfEviction: nobody requests the eviction, which is said before anything about the pod.
func (c *cluster) testGroupOfEviction() {
	c.byHand("by-hand", c.running("web", inGroup), nil)
	c.expectEviction("by-hand", "", canceled)
}

// end is how a pod ends, by other hands.
type end func(*cluster, *v1.Pod)

func terminatePod(c *cluster, pod *v1.Pod) {
	c.T.Helper()
	pod.Status.Phase = v1.PodSucceeded
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{FinishedAt: metav1.Now()}}}}
	c.writePodStatus(pod)
}

func deletePod(c *cluster, pod *v1.Pod) {
	c.T.Helper()
	pods := c.Client.CoreV1().Pods(c.Namespace)
	if err := pods.Delete(c.T.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		c.T.Fatalf("deleting pod %s: %v", pod.Name, err)
	}
	if len(pod.Finalizers) == 0 {
		return
	}
	if _, err := pods.Patch(c.T.Context(), pod.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		c.T.Fatalf("removing the finalizer of pod %s: %v", pod.Name, err)
	}
}

// steps are what happens to an eviction with two responders.
type steps struct {
	end                     end
	report, cancel, another bool
	want                    string
}

// statesOf has the two responders and the last one.
func statesOf(a, b, last lifecyclev1alpha1.ResponderStateType) string {
	return fmt.Sprintf("%s=%s %s=%s %s=%s", responderA, a, responderB, b, imperative, last)
}

const (
	active    = lifecyclev1alpha1.ResponderStateActive
	inactive  = lifecyclev1alpha1.ResponderStateInactive
	complete  = lifecyclev1alpha1.ResponderStateCompleted
	interrupt = lifecyclev1alpha1.ResponderStateInterrupted
	cancel    = lifecyclev1alpha1.ResponderStateCanceled
)

// apply reports as a responder with server-side apply.
func (c *cluster) apply(eviction, responder string, isCompleted bool) {
	c.T.Helper()
	status := lifecycleapply.ResponderStatus().WithName(responder).WithHeartbeatTime(metav1.Now()).
		WithExpectedCompletionTime(metav1.NewTime(time.Now().Add(time.Hour))).WithMessage(responder)
	if isCompleted {
		status.WithCompletionTime(metav1.Now())
	}
	manager, _, _ := strings.Cut(responder, "/")
	_, err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).ApplyStatus(c.T.Context(),
		lifecycleapply.Eviction(eviction, c.Namespace).WithStatus(lifecycleapply.EvictionStatus().WithResponders(status)),
		metav1.ApplyOptions{FieldManager: manager})
	if err != nil {
		c.T.Errorf("reporting as %s: %v", responder, err)
	}
}

// expectMetadata expects an Eviction to have exactly these labels and owners.
func (c *cluster) expectMetadata(name string, requesters []string, owners ...*lifecyclev1alpha1.EvictionRequest) {
	c.T.Helper()
	labels := map[string]string{responderA: "responder", responderB: "responder", imperative: "responder"}
	for _, requester := range requesters {
		labels[requester] = "requester"
	}
	c.Eventually(fmt.Sprintf("the labels and owners of %s", name), func(ctx context.Context) (bool, string) {
		eviction, err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		same := maps.Equal(eviction.Labels, labels) && len(eviction.OwnerReferences) == len(owners)
		for _, owner := range owners {
			same = same && slices.Contains(eviction.OwnerReferences, metav1.OwnerReference{APIVersion: "lifecycle.k8s.io/v1alpha1", Kind: "EvictionRequest", Name: owner.Name, UID: owner.UID})
		}
		return same, fmt.Sprintf("%v, %v", eviction.Labels, eviction.OwnerReferences)
	})
}

func process(s steps) func(*cluster) {
	return func(c *cluster) {
		c.T.Helper()
		pod := c.running("web", responders(map[string]int32{responderB: 1000, responderA: 1001}), withFinalizer)
		name, requesters := "pod-1-web", []string{drainer}
		owners := []*lifecyclev1alpha1.EvictionRequest{c.ask("one", drainer, pod)}
		request := "one"
		c.expectRequest(request, goesOn)
		eviction := c.expectEviction(name, statesOf(active, inactive, inactive), goesOn)
		if got := fmt.Sprint(eviction.Status.Requesters); got != fmt.Sprint([]lifecyclev1alpha1.Requester{{Name: drainer, Intent: lifecyclev1alpha1.RequesterIntentEviction}}) {
			c.T.Errorf("requesters %s", got)
		}
		if got := eviction.Status.Responders; len(got) != 3 || got[0].Name != responderA || got[0].StartTime == nil || got[1].StartTime != nil {
			c.T.Errorf("responders %+v", got)
		}
		c.expectMetadata(name, requesters, owners...)

		c.apply(name, responderA, false)
		c.apply(name, responderA, true)
		c.expectEviction(name, statesOf(complete, active, inactive), goesOn)
		c.apply(name, responderB, false)
		if s.cancel {
			c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
			eviction := c.expectEviction(name, statesOf(complete, cancel, inactive), canceled)
			if got := message(eviction.Status.Conditions); !strings.Contains(got, "No active requesters") {
				c.T.Errorf("message %q", got)
			}
			c.expectRequest("one", canceled)
			if s.another {
				request, requesters = "two", append(requesters, scaler)
				owners = append(owners, c.ask("two", scaler, pod))
			} else {
				c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentEviction)
			}
			name = "pod-2-web"
			c.expectEviction(name, statesOf(active, inactive, inactive), goesOn)
			c.expectMetadata(name, requesters, owners...)
			c.apply(name, responderA, true)
			c.expectEviction(name, statesOf(complete, active, inactive), goesOn)
		}
		s.end(c, pod)
		state := interrupt
		if s.report {
			state = complete
			c.apply(name, responderB, true)
		}
		c.expectEviction(name, statesOf(complete, state, inactive), s.want)
		c.expectMetadata(name, requesters, owners...)
		c.expectRequest(request, s.want)
	}
}

// testNoFurtherResponder: the last responder does not evict static pods, and those of DaemonSets, here. It completes, and no
// other Eviction begins, because that one would have the same end.
func (c *cluster) testNoFurtherResponder() {
	pod := c.running("web", responders(map[string]int32{responderB: 1000, responderA: 1001}), func(pod *v1.Pod) {
		pod.Annotations, pod.Spec.NodeName = map[string]string{v1.MirrorPodAnnotationKey: "1"}, "node"
	})
	c.ask("one", drainer, pod)
	c.expectEviction("pod-1-web", statesOf(active, inactive, inactive), goesOn)
	c.apply("pod-1-web", responderA, true)
	c.expectEviction("pod-1-web", statesOf(complete, active, inactive), goesOn)
	c.apply("pod-1-web", responderB, true)
	requests := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace)
	c.Eventually("the kubelet to complete", func(ctx context.Context) (bool, string) {
		request, err := requests.Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil || !slices.Equal(request.Status.ActiveInterceptors, []string{coordinationv1alpha1.EvictionInterceptorKubelet}) {
			return false, fmt.Sprint(err, request.Status.ActiveInterceptors)
		}
		for i := range request.Status.Interceptors {
			if request.Status.Interceptors[i].Name == coordinationv1alpha1.EvictionInterceptorKubelet {
				request.Status.Interceptors[i].CompletionTime = ptr.To(metav1.Now().Rfc3339Copy())
			}
		}
		_, err = requests.UpdateStatus(ctx, request, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	const noFurther = "TargetEvicted=False/EvictionFailed Failed=True/NoFurtherResponder"
	eviction := c.expectEviction("pod-1-web", statesOf(complete, complete, complete), noFurther)
	if got := message(eviction.Status.Conditions); !strings.Contains(got, "completed without evicting") || !strings.Contains(got, "static pod") {
		c.T.Errorf("message %q", got)
	}
	c.expectRequest("one", noFurther)
}

// testTimeOfTermination: a controller that lost its state finds an Eviction whose pod ended when nobody looked.
func (c *cluster) testTimeOfTermination(isPresent bool) {
	pod, want := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "539bb197-7e4a-4698-8863-d4bacdb9ecf0"}}, deleted
	if isPresent {
		pod, want = c.running("web"), terminal
		pod.Status.Phase = v1.PodSucceeded
		pod = c.writePodStatus(pod)
	}
	// The status is written as by a controller, whose own it is.
	eviction := c.byHand("evict", pod, nil)
	c.writeStatus(eviction, active, nil)
	c.ask("one", drainer, pod)
	c.expectEviction("evict", imperative+"=Completed", want)
	c.expectRequest("one", want)
}

func (c *cluster) writeStatus(eviction *lifecyclev1alpha1.Eviction, state lifecyclev1alpha1.ResponderStateType, conditions []metav1.Condition) {
	c.T.Helper()
	c.Eventually("the status of "+eviction.Name, func(ctx context.Context) (bool, string) {
		current, err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).Get(ctx, eviction.Name, metav1.GetOptions{})
		if err == nil && len(current.Status.TargetResponders) == 0 {
			current.Status.ObservedGeneration = ptr.To(current.Generation)
			current.Status.TargetResponders = []lifecyclev1alpha1.TargetResponder{{Name: imperative, Priority: ptr.To[int32](100), State: state}}
			current.Status.Responders = []lifecyclev1alpha1.ResponderStatus{{Name: imperative, StartTime: ptr.To(metav1.Now())}}
			current.Status.Conditions = conditions
			_, err = c.Client.LifecycleV1alpha1().Evictions(c.Namespace).UpdateStatus(ctx, current, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
}

// testSkipped: whatever labels and statuses say that others have written, a pod stays that nobody requests to be evicted.
func (c *cluster) testSkipped() {
	pods := map[string]*v1.Pod{}
	for name, role := range map[string]string{"none": "", "requester": "requester", "responder": "responder"} {
		pods[name] = c.running(name)
		labels := map[string]string{}
		if role != "" {
			labels[imperative] = role
		}
		c.writeStatus(c.byHand("by-hand-"+name, pods[name], labels), active, nil)
	}
	for name, pod := range pods {
		c.expectEviction("by-hand-"+name, imperative+"=Canceled", canceled)
		c.expectStays(pod)
	}
}

// last returns what the last responder reports.
func (c *cluster) last(ctx context.Context, name string) (lifecyclev1alpha1.ResponderStatus, error) {
	eviction, err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		for _, report := range eviction.Status.Responders {
			if report.Name == imperative {
				return report, nil
			}
		}
	}
	return lifecyclev1alpha1.ResponderStatus{}, err
}

func (c *cluster) expectLast(name, text string, isExpected, isCompleted bool) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("the last responder of %s to say %q", name, text), func(ctx context.Context) (bool, string) {
		report, err := c.last(ctx, name)
		return err == nil && report.StartTime != nil && report.HeartbeatTime != nil && strings.Contains(ptr.Deref(report.Message, ""), text) &&
			isExpected == (report.ExpectedCompletionTime != nil) && isCompleted == (report.CompletionTime != nil), fmt.Sprintf("%+v, %q, %v", report, ptr.Deref(report.Message, ""), err)
	})
}

func (c *cluster) testImperative(hasBudget, cancels bool) {
	pod := c.running("web", withFinalizer, func(pod *v1.Pod) { pod.Labels = map[string]string{"app": "web"} })
	budgets := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace)
	if hasBudget {
		budget, err := budgets.Create(c.T.Context(), &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "budget"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}},
		}, metav1.CreateOptions{})
		if err == nil {
			budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1}
			_, err = budgets.UpdateStatus(c.T.Context(), budget, metav1.UpdateOptions{})
		}
		if err != nil {
			c.T.Fatal(err)
		}
	}
	c.ask("one", drainer, pod)
	if hasBudget {
		c.expectLast("pod-1-web", "pod deletion via the /eviction subresource failed (attempts=1)", false, false)
		if cancels {
			c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
			c.expectEviction("pod-1-web", imperative+"=Canceled", canceled)
		}
		if err := budgets.Delete(c.T.Context(), "budget", metav1.DeleteOptions{}); err != nil {
			c.T.Fatal(err)
		}
		if cancels {
			time.Sleep(2 * time.Second)
			c.expectStays(pod)
			c.expectLast("pod-1-web", "(attempts=1)", false, false)
			return
		}
	}
	c.expectLast("pod-1-web", "pod has been marked for deletion", true, false)
	pod, err := c.Client.CoreV1().Pods(c.Namespace).Get(c.T.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	pod.Status.Phase = v1.PodSucceeded
	c.writePodStatus(pod)
	c.expectLast("pod-1-web", `pod has been deleted and fully terminated (pod phase="Succeeded")`, true, true)
	c.expectEviction("pod-1-web", imperative+"=Completed", terminal)
}

// testThirdParty: somebody else ends the pod while a budget keeps the last responder from doing so.
func (c *cluster) testThirdParty() {
	for name, test := range map[string]struct {
		end  end
		text string
		want string
	}{
		"deleted": {deletePod, "pod has been deleted and fully terminated", deleted},
		"failed": {func(c *cluster, pod *v1.Pod) {
			pod.Status.Phase = v1.PodFailed
			c.writePodStatus(pod)
		}, `pod has been fully terminated (pod phase="Failed")`, terminal},
	} {
		pod := c.running(name, func(pod *v1.Pod) { pod.Labels = map[string]string{"app": "web"} })
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}},
		}
		if _, err := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Create(c.T.Context(), budget, metav1.CreateOptions{}); err != nil {
			c.T.Fatal(err)
		}
		c.ask(name, drainer, pod)
		c.expectEviction("pod-1-"+name, imperative+"=Active", goesOn)
		test.end(c, pod)
		c.expectLast("pod-1-"+name, test.text, true, true)
		c.expectRequest(name, test.want)
	}
}

// testObjects: an administrator may do with the objects whatever the API allows.
func (c *cluster) testObjects() {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foo", UID: "b37d123b-8637-4b23-a8f3-41523c344fc2"}}
	c.ask("one", drainer, pod)
	c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	requests, evictions := c.Client.LifecycleV1alpha1().EvictionRequests(c.Namespace), c.Client.LifecycleV1alpha1().Evictions(c.Namespace)
	condition := metav1.Condition{Type: "FooCondition", Status: metav1.ConditionFalse, Reason: "FooReason", Message: "A message.", LastTransitionTime: metav1.Now()}
	c.Eventually("a condition of the request", func(ctx context.Context) (bool, string) {
		request, err := requests.Get(ctx, "one", metav1.GetOptions{})
		if err == nil {
			meta.SetStatusCondition(&request.Status.Conditions, condition)
			_, err = requests.UpdateStatus(ctx, request, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
	c.byHand("foo", pod, map[string]string{"app": "foo"})
	if _, err := evictions.Patch(c.T.Context(), "foo", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"foo":"bar"}}}`), metav1.PatchOptions{}); err != nil {
		c.T.Error(err)
	}
	c.Eventually("a condition of the Eviction", func(ctx context.Context) (bool, string) {
		eviction, err := evictions.Get(ctx, "foo", metav1.GetOptions{})
		if err == nil {
			meta.SetStatusCondition(&eviction.Status.Conditions, condition)
			_, err = evictions.UpdateStatus(ctx, eviction, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
	if err := evictions.DeleteCollection(c.T.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		c.T.Error(err)
	}
	if err := requests.DeleteCollection(c.T.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		c.T.Error(err)
	}
}

// testThousandRequests: they are answered in parts, so that those of others are answered in between.
func testThousandRequests(c *cluster) {
	pod, other := c.createPod("web", responders(map[string]int32{early: 20000})), c.createPod("other", responders(map[string]int32{early: 20000}))
	const many = 120
	for i := range many {
		c.ask(fmt.Sprintf("many-%d", i), fmt.Sprintf("example.com/many-%d", i), pod)
	}
	c.ask("other", drainer, other)
	c.expectRequest("other", goesOn)
	for i := range many {
		c.expectRequest(fmt.Sprintf("many-%d", i), goesOn)
	}
	c.expectEviction("pod-1-web", early+"=Active "+imperative+"=Inactive", goesOn)
	c.report("pod-1-web", early, completed)
	c.expectGone(pod)
	for i := range many {
		c.expectRequest(fmt.Sprintf("many-%d", i), deleted)
	}
}
