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

package deploymentsurge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/evictionrequest"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"
)

const (
	// app is the name of the Deployment of a test, of its Service and its budget.
	app = "app"
	// drainer is the name of the requester.
	drainer = "drainer.example.com"
)

// newDeployment returns a Deployment with a maxSurge of one.
func newDeployment(replicas int32, options ...func(*apps.Deployment)) *apps.Deployment {
	labels := map[string]string{"app": app}
	d := &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: rollingUpdate(intstr.FromInt32(1)),
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "first"}}},
			},
		},
	}
	for _, option := range options {
		option(d)
	}
	return d
}

func rollingUpdate(maxSurge intstr.IntOrString) apps.DeploymentStrategy {
	return apps.DeploymentStrategy{
		Type:          apps.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &apps.RollingUpdateDeployment{MaxSurge: &maxSurge, MaxUnavailable: ptr.To(intstr.FromInt32(0))},
	}
}

func withMaxSurge(maxSurge intstr.IntOrString) func(*apps.Deployment) {
	return func(d *apps.Deployment) { d.Spec.Strategy = rollingUpdate(maxSurge) }
}

func withDeadline(seconds int32) func(*apps.Deployment) {
	return func(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = &seconds }
}

// createDeployment creates a Deployment with a Service, waits until it is complete, and returns its
// pods.
func (c *cluster) createDeployment(d *apps.Deployment) []*v1.Pod {
	c.T.Helper()
	c.createIncomplete(d)
	replicas := *d.Spec.Replicas
	c.await("the Deployment to be complete", states{
		"deployment": fmt.Sprintf("%d of %d: complete", replicas, replicas), "pods": fmt.Sprintf("%d ready", replicas),
		"endpoints": fmt.Sprintf("%d ready", replicas),
	})
	return c.livingPods()
}

// createIncomplete creates a Deployment with a Service.
func (c *cluster) createIncomplete(d *apps.Deployment) {
	c.T.Helper()
	service := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name},
		Spec:       v1.ServiceSpec{Selector: d.Spec.Selector.MatchLabels, Ports: []v1.ServicePort{{Port: 80}}},
	}
	if _, err := c.Client.CoreV1().Services(c.Namespace).Create(c.T.Context(), service, metav1.CreateOptions{}); err != nil {
		c.T.Fatalf("creating service %s: %v", d.Name, err)
	}
	if _, err := c.Client.AppsV1().Deployments(c.Namespace).Create(c.T.Context(), d, metav1.CreateOptions{}); err != nil {
		c.T.Fatalf("creating deployment %s: %v", d.Name, err)
	}
}

// patch merges a change into the Deployment.
func (c *cluster) patch(patch string) {
	c.T.Helper()
	if _, err := c.Client.AppsV1().Deployments(c.Namespace).Patch(c.T.Context(), app, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.T.Fatalf("patching the deployment with %s: %v", patch, err)
	}
}

func (c *cluster) scale(replicas int) {
	c.T.Helper()
	c.patch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (c *cluster) setPaused(paused bool) {
	c.T.Helper()
	c.patch(fmt.Sprintf(`{"spec":{"paused":%t}}`, paused))
}

// rollOut changes the template.
func (c *cluster) rollOut(image string) {
	c.T.Helper()
	c.patch(fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image))
}

func (c *cluster) createBudget(spec policyv1.PodDisruptionBudgetSpec) {
	c.T.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: spec}
	if _, err := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Create(c.T.Context(), budget, metav1.CreateOptions{}); err != nil {
		c.T.Fatalf("creating the budget: %v", err)
	}
}

// livingPods returns the pods that neither terminate nor have finished, oldest first.
func (c *cluster) livingPods() []*v1.Pod {
	c.T.Helper()
	list, err := c.Client.CoreV1().Pods(c.Namespace).List(c.T.Context(), metav1.ListOptions{})
	if err != nil {
		c.T.Fatalf("listing pods: %v", err)
	}
	var pods []*v1.Pod
	for i := range list.Items {
		if isLiving(&list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

func isLiving(pod *v1.Pod) bool { return pod.DeletionTimestamp == nil && !podutil.IsPodTerminal(pod) }

// others returns the living pods that are none of these.
func (c *cluster) others(pods ...*v1.Pod) []*v1.Pod {
	c.T.Helper()
	return slices.DeleteFunc(c.livingPods(), anyOf(pods...))
}

// request requests the eviction of pods.
func (c *cluster) request(pods ...*v1.Pod) {
	c.T.Helper()
	for _, pod := range pods {
		c.ApplyRequesters(pod, drainer, drainer)
	}
}

// withdraw withdraws the requests.
func (c *cluster) withdraw(pods ...*v1.Pod) {
	c.T.Helper()
	for _, pod := range pods {
		c.ApplyRequesters(pod, drainer)
	}
}

func (c *cluster) requestFor(pod *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	c.T.Helper()
	request, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Get(c.T.Context(), string(pod.UID), metav1.GetOptions{})
	if err != nil {
		c.T.Fatalf("reading the request for pod %s: %v", pod.Name, err)
	}
	return request
}

// states are one-line descriptions. The keys are those of stateOf, including the UID of a pod for
// its request.
type states map[string]string

// await polls until all states match at the same time.
func (c *cluster) await(what string, want states) {
	c.T.Helper()
	c.Eventually(what, func(ctx context.Context) (bool, string) {
		got := c.statesOf(ctx, want)
		if diff := gocmp.Diff(want, got); diff != "" {
			return false, diff + c.allStates(ctx)
		}
		return true, ""
	})
}

// expect fails unless all states match now.
func (c *cluster) expect(what string, want states) {
	c.T.Helper()
	if diff := gocmp.Diff(want, c.statesOf(c.T.Context(), want)); diff != "" {
		c.T.Errorf("%s (-want +got):\n%s\n%s", what, diff, c.allStates(c.T.Context()))
	}
}

func (c *cluster) statesOf(ctx context.Context, want states) states {
	got := states{}
	for key := range want {
		got[key] = c.stateOf(ctx, key)
	}
	return got
}

// allStates describes everything for debugging.
func (c *cluster) allStates(ctx context.Context) string {
	lines := []string{}
	for _, key := range []string{"deployment", "condition", "replicaSets", "pods", "endpoints", "budget"} {
		lines = append(lines, key+": "+c.stateOf(ctx, key))
	}
	requests, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for i := range requests.Items {
		lines = append(lines, "request "+requests.Items[i].Spec.Target.Pod.Name+": "+describeRequest(&requests.Items[i]))
	}
	return strings.Join(lines, "\n")
}

func (c *cluster) stateOf(ctx context.Context, key string) string {
	switch key {
	case "deployment":
		return c.ofDeployment(ctx, describeDeployment)
	case "condition":
		return c.ofDeployment(ctx, describeCondition)
	case "scale":
		scale, err := c.Client.AppsV1().Deployments(c.Namespace).GetScale(ctx, app, metav1.GetOptions{})
		return describeOr(err, func() string { return fmt.Sprintf("%d of %d", scale.Status.Replicas, scale.Spec.Replicas) })
	case "replicaSets":
		list, err := c.Client.AppsV1().ReplicaSets(c.Namespace).List(ctx, metav1.ListOptions{})
		return describeOr(err, func() string { return describeReplicaSets(list.Items) })
	case "pods":
		list, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{})
		return describeOr(err, func() string { return describePods(list.Items) })
	case "endpoints":
		list, err := c.Client.DiscoveryV1().EndpointSlices(c.Namespace).List(ctx, metav1.ListOptions{})
		return describeOr(err, func() string { return describeEndpoints(list.Items) })
	case "budget":
		budget, err := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Get(ctx, app, metav1.GetOptions{})
		return describeOr(err, func() string {
			status := budget.Status
			return fmt.Sprintf("%d healthy of %d expected, %d allowed", status.CurrentHealthy, status.ExpectedPods, status.DisruptionsAllowed)
		})
	}
	request, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Get(ctx, key, metav1.GetOptions{})
	return describeOr(err, func() string { return describeRequest(request) })
}

func (c *cluster) ofDeployment(ctx context.Context, describe func(*apps.Deployment) string) string {
	d, err := c.Client.AppsV1().Deployments(c.Namespace).Get(ctx, app, metav1.GetOptions{})
	return describeOr(err, func() string { return describe(d) })
}

func describeOr(err error, describe func() string) string {
	switch {
	case apierrors.IsNotFound(err):
		return "none"
	case err != nil:
		return err.Error()
	}
	return describe()
}

// describeDeployment returns the available and the wanted replicas, and whether it is complete.
func describeDeployment(d *apps.Deployment) string {
	text := fmt.Sprintf("%d of %d", d.Status.AvailableReplicas, *d.Spec.Replicas)
	if d.Status.ObservedGeneration == d.Generation && deploymentutil.DeploymentComplete(d, &d.Status) {
		return text + ": complete"
	}
	return text
}

// describeCondition returns the condition of a surge.
func describeCondition(d *apps.Deployment) string {
	for _, condition := range d.Status.Conditions {
		if condition.Type == "EvictionInProgress" {
			head, _, _ := strings.Cut(condition.Message, ":")
			return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, head)
		}
	}
	return "none"
}

// describeReplicaSets returns the replicas of the ReplicaSets in the order of their revisions, and
// how many of them are extra. A ReplicaSet without replicas is only listed if it has a recorded
// surge.
func describeReplicaSets(sets []apps.ReplicaSet) string {
	slices.SortFunc(sets, func(a, b apps.ReplicaSet) int {
		return cmp.Compare(a.Annotations[deploymentutil.RevisionAnnotation], b.Annotations[deploymentutil.RevisionAnnotation])
	})
	var words []string
	for i := range sets {
		rs := &sets[i]
		_, recorded := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]
		if *rs.Spec.Replicas == 0 && !recorded {
			continue
		}
		text := fmt.Sprint(*rs.Spec.Replicas)
		if surge, err := deploymentutil.EvictionSurgeOf(rs, math.MaxInt); err != nil || recorded && surge.Of == 0 {
			text += " (void)"
		} else if recorded && surge.Surge == 0 && len(surge.Leaving) == 0 {
			text += " (ending)"
		} else if recorded {
			text += fmt.Sprintf(" (%d extra, %d leaving)", surge.Surge, len(surge.Leaving))
		}
		words = append(words, text)
	}
	return cmp.Or(strings.Join(words, " + "), "0")
}

// describeEndpoints counts the ready endpoints.
func describeEndpoints(slices []discoveryv1.EndpointSlice) string {
	ready := 0
	for i := range slices {
		ready += readyEndpoints(&slices[i])
	}
	return fmt.Sprintf("%d ready", ready)
}

// describePods counts the pods, except the finished ones.
func describePods(pods []v1.Pod) string {
	ready, unready, terminating := 0, 0, 0
	for i := range pods {
		switch pod := &pods[i]; {
		case podutil.IsPodTerminal(pod):
		case pod.DeletionTimestamp != nil:
			terminating++
		case podutil.IsPodReady(pod):
			ready++
		default:
			unready++
		}
	}
	text := fmt.Sprintf("%d ready", ready)
	if unready > 0 {
		text += fmt.Sprintf(", %d not", unready)
	}
	if terminating > 0 {
		text += fmt.Sprintf(", %d terminating", terminating)
	}
	return text
}

// describeRequest returns the state of a request, the active interceptor, and the start of its
// message: "Intercepting by deployment: Surging 0/1".
func describeRequest(request *coordinationv1alpha1.EvictionRequest) string {
	text := string(evictionrequest.StateOf(request))
	if active := evictionrequest.ActiveInterceptor(request); active != nil {
		text += " by " + shortName(active.Name)
		if head := headOf(active.Message); head != "" {
			text += ": " + head
		}
	}
	return text
}

func shortName(interceptor string) string {
	name, _, _ := strings.Cut(interceptor, ".")
	return name
}

// headOf returns the start of a message, without the names that follow.
func headOf(message string) string {
	head, _, _ := strings.Cut(message, ": ")
	head, _, _ = strings.Cut(head, ". ")
	return strings.TrimSuffix(head, ".")
}

// reportOf returns the status that an interceptor has reported for a pod.
func reportOf(request *coordinationv1alpha1.EvictionRequest, name string) *coordinationv1alpha1.InterceptorStatus {
	for i := range request.Status.Interceptors {
		if request.Status.Interceptors[i].Name == name {
			return &request.Status.Interceptors[i]
		}
	}
	return nil
}
