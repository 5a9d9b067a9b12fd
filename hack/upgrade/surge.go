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

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/hack/controlplane"
	"k8s.io/utils/ptr"
)

const (
	// surgeAnnotation is where the Deployment controller keeps a surge.
	surgeAnnotation = "deployment.kubernetes.io/eviction-surge"
	// surgeCondition is how a Deployment says that it surges.
	surgeCondition = "EvictionInProgress"
)

// unprotected is a Deployment without a budget: where nobody surges, its pod is evicted.
const unprotected = "unprotected"

// fleet are the Deployments that are caught in the middle of a surge. They have budgets that
// allow no disruption, so that only a surge lets their pods leave.
var fleet = []struct {
	name string
	// count and maxSurge are of the Deployment; requested is how many of its pods are asked
	// to leave.
	count, maxSurge, requested int
	// surging is what it has while its surge pods are not ready, downgraded what is left of
	// that when nobody knows of surges any more.
	surging, downgraded replicas
}{
	{"single", 1, 1, 1, replicas{2, 2, 1}, replicas{1, 1, 1}},
	{"trio", 3, 2, 2, replicas{5, 5, 3}, replicas{3, 3, 3}},
	{"paused", 1, 1, 1, replicas{2, 2, 1}, replicas{1, 1, 1}},
	// In a rollout, which goes on whoever the controller manager is.
	{"rolling", 2, 1, 1, replicas{3, 3, 2}, replicas{3, 3, 2}},
	// Its surge pod is ready, the pod that was asked to leave terminates and does not end.
	{"hanging", 1, 1, 1, replicas{1, 1, 1}, replicas{1, 1, 1}},
	// The base scales it to what the annotation says that it was scaled to.
	{"regrown", 1, 1, 1, replicas{2, 2, 1}, replicas{1, 1, 1}},
	// The same, while no controller manager runs: the base finds nothing to do.
	{"grown", 1, 1, 1, replicas{2, 2, 1}, replicas{2, 2, 1}},
}

// createOldWorkloads creates what is there before anybody knows of interceptors.
func (t *upgradeTest) createOldWorkloads(ctx context.Context) (string, error) {
	for _, name := range []string{"before", "older"} {
		if err := t.createDeployment(ctx, newDeployment(name, 1, 1)); err != nil {
			return "", err
		}
	}
	// Nobody surges for it: there will be a gap.
	t.availability.require("older", unbounded)
	if err := t.createDaemonSet(ctx, "agent"); err != nil {
		return "", err
	}
	err := t.remember(ctx, "before", "agent")
	return "two Deployments and a DaemonSet have their pods.", err
}

// remember has later steps fail if somebody has written these workloads since.
func (t *upgradeTest) remember(ctx context.Context, names ...string) error {
	for _, name := range names {
		revisions, err := t.revisions(ctx, name)
		if err != nil {
			return err
		}
		t.untouched[name] = revisions
	}
	return nil
}

// expectUntouched looks at workloads that nobody is to write. It comes after a step that has
// waited for the controllers.
func (t *upgradeTest) expectUntouched(ctx context.Context) (string, error) {
	for name, want := range t.untouched {
		got, err := t.revisions(ctx, name)
		if err != nil {
			return "", err
		}
		if !slices.Equal(got, want) {
			return "", fmt.Errorf("of workload %s there was\n%q\nand is\n%q", name, want, got)
		}
	}
	return "no rollout, no new revision, the same hashes and pods.", nil
}

// evictOldWorkload drains a pod that names nobody. Its successor names the controllers.
func (t *upgradeTest) evictOldWorkload(ctx context.Context) (string, error) {
	pods, err := t.podsOf(ctx, "older")
	if err != nil {
		return "", err
	}
	if names := pods[0].Spec.EvictionInterceptors; names != nil {
		return "", fmt.Errorf("pod %s has evictionInterceptors %v: who has written them?", pods[0].Name, names)
	}
	observed, err := t.evict(ctx, &pods[0])
	if err != nil {
		return "", err
	}
	if err := t.awaitReplicas(ctx, "older", replicas{1, 1, 1}, t.makeReady); err != nil {
		return "", err
	}
	if pods, err = t.podsOf(ctx, "older"); err != nil {
		return "", err
	}
	want := []v1.EvictionInterceptor{{Name: coordinationv1alpha1.EvictionInterceptorDeployment}, {Name: coordinationv1alpha1.EvictionInterceptorReplicaSet}}
	if got := pods[0].Spec.EvictionInterceptors; !slices.Equal(got, want) {
		return "", fmt.Errorf("the successor has evictionInterceptors %v, must be %v", got, want)
	}
	return observed + " Its successor names the controllers.", nil
}

// createFleet brings Deployments into the middle of a surge.
func (t *upgradeTest) createFleet(ctx context.Context) (string, error) {
	for _, member := range fleet {
		deployment := newDeployment(member.name, member.count, member.maxSurge)
		if member.name == "hanging" {
			deployment.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600)
		}
		if err := t.createRequested(ctx, deployment, member.requested); err != nil {
			return "", err
		}
		if err := t.CreateBudget(ctx, controlplane.NewPod(member.name)); err != nil {
			return "", err
		}
	}
	if err := t.createRequested(ctx, newDeployment(unprotected, 1, 1), 1); err != nil {
		return "", err
	}
	if err := t.awaitReplicas(ctx, unprotected, replicas{2, 2, 1}); err != nil {
		return "", err
	}
	// These are special only after they have begun.
	for _, name := range []string{"paused", "rolling", "hanging"} {
		if err := t.awaitSurge(ctx, name); err != nil {
			return "", err
		}
	}
	if err := t.awaitReplicas(ctx, "hanging", replicas{1, 1, 1}, t.makeReady); err != nil {
		return "", err
	}
	// Its pods are created and deleted by two ReplicaSets, neither of which waits for the other.
	t.availability.require("rolling", bounds{2, math.MaxInt})
	errPaused := t.patchDeployment(ctx, "paused", `{"spec":{"paused":true}}`)
	errRolling := t.patchDeployment(ctx, "rolling", `{"spec":{"template":{"metadata":{"annotations":{"revision":"2"}}}}}`)
	if err := errors.Join(errPaused, errRolling); err != nil {
		return "", err
	}
	return t.expectSurging(ctx)
}

// createRequested creates a Deployment and asks so many of its pods to leave.
func (t *upgradeTest) createRequested(ctx context.Context, deployment *apps.Deployment, count int) error {
	if err := t.createDeployment(ctx, deployment); err != nil {
		return err
	}
	pods, err := t.podsOf(ctx, deployment.Name)
	if err != nil {
		return err
	}
	for i := range pods[:count] {
		if err := t.Request(ctx, &pods[i]); err != nil {
			return err
		}
		t.requested[deployment.Name] = append(t.requested[deployment.Name], &pods[i])
	}
	return nil
}

// awaitSurge waits until a Deployment has one pod more than its own, which is not ready.
func (t *upgradeTest) awaitSurge(ctx context.Context, name string) error {
	for _, member := range fleet {
		if member.name == name {
			return t.awaitReplicas(ctx, name, replicas{member.count + 1, member.count + 1, member.count})
		}
	}
	return fmt.Errorf("no such Deployment: %s", name)
}

// expectSurging waits until the whole fleet is in the middle of it.
func (t *upgradeTest) expectSurging(ctx context.Context) (string, error) {
	// Before the rollout began, its Deployment had as many pods.
	if err := controlplane.Poll(ctx, "the second ReplicaSet of Deployment rolling", func(ctx context.Context) (bool, error) {
		sets, err := t.replicaSets(ctx, "rolling")
		return len(sets) == 2, err
	}); err != nil {
		return "", err
	}
	wanted := 0
	for _, member := range fleet {
		if err := t.awaitReplicas(ctx, member.name, member.surging); err != nil {
			return "", err
		}
		wanted += member.surging.wanted
	}
	if err := controlplane.Poll(ctx, "the condition of Deployment single", func(ctx context.Context) (bool, error) {
		return t.saysSurging(ctx, "single")
	}); err != nil {
		return "", err
	}
	hanging, err := t.GetPod(ctx, t.requested["hanging"][0])
	if err != nil {
		return "", err
	}
	if hanging.DeletionTimestamp == nil {
		return "", fmt.Errorf("pod %s does not terminate", hanging.Name)
	}
	return fmt.Sprintf("%d Deployments want %d pods together.", len(fleet), wanted), t.availability.err()
}

// switchGatesOff restarts the controller manager without the gates of the workloads.
func (t *upgradeTest) switchGatesOff(ctx context.Context) (string, error) {
	release := t.fork
	release.FeatureGates = gatesBefore
	t.availability.require(unprotected, unbounded)
	if err := t.restartControllerManager(ctx, release); err != nil {
		return "", err
	}
	for _, member := range fleet {
		want := member.downgraded
		if member.name == "grown" { // Nobody has scaled it yet.
			want = replicas{1, 1, 1}
		}
		if err := t.awaitReplicas(ctx, member.name, want); err != nil {
			return "", err
		}
		if err := controlplane.Poll(ctx, "the condition of Deployment "+member.name+" to go", func(ctx context.Context) (bool, error) {
			says, err := t.saysSurging(ctx, member.name)
			return !says, err
		}); err != nil {
			return "", err
		}
	}
	observed, err := t.expectDeclined(ctx)
	if err != nil {
		return "", err
	}
	return "every Deployment has as many pods as it wants, and says nothing of surges; those that served still do. " + observed, t.availability.err()
}

// expectDeclined looks at a drain that goes on without a surge, because nobody forbids it.
func (t *upgradeTest) expectDeclined(ctx context.Context) (string, error) {
	pod := t.requested[unprotected][0]
	observed, err := t.AwaitEvicted(ctx, pod)
	if err != nil {
		return "", err
	}
	request, err := t.Client.CoordinationV1alpha1().EvictionRequests(t.Name).Get(ctx, string(pod.UID), metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the request for pod %s: %w", pod.Name, err)
	}
	message := controlplane.InterceptorStatus(request, coordinationv1alpha1.EvictionInterceptorDeployment).Message
	if !strings.Contains(message, "DeploymentPodSurge") {
		return "", fmt.Errorf("the Deployment controller said of pod %s %q, must name its gate", pod.Name, message)
	}
	if err := t.awaitReplicas(ctx, unprotected, replicas{1, 1, 1}, t.makeReady); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %q", observed, message), nil
}

// switchGatesOn restarts the controller manager with all gates.
func (t *upgradeTest) switchGatesOn(ctx context.Context) (string, error) {
	if err := t.restartControllerManager(ctx, t.fork); err != nil {
		return "", err
	}
	observed, err := t.expectSurging(ctx)
	return "the surges begin anew: " + observed, err
}

func (t *upgradeTest) restartControllerManager(ctx context.Context, release controlplane.Release) error {
	if err := t.plane.StopControllerManager(); err != nil {
		return err
	}
	return t.plane.StartControllerManager(ctx, release)
}

// changeUnobserved does what no controller sees happen: drains are called off, and a
// Deployment gets as many replicas as its surge had given it.
func (t *upgradeTest) changeUnobserved(ctx context.Context) error {
	for _, name := range []string{"regrown", "grown"} {
		for _, pod := range t.requested[name] {
			if err := t.Client.CoordinationV1alpha1().EvictionRequests(t.Name).Delete(ctx, string(pod.UID), metav1.DeleteOptions{}); err != nil {
				return fmt.Errorf("deleting the request for pod %s: %w", pod.Name, err)
			}
		}
		delete(t.requested, name)
	}
	return t.patchDeployment(ctx, "grown", `{"spec":{"replicas":2}}`)
}

// expectFleetUnderBase looks at what the base makes of surges that it knows nothing of.
func (t *upgradeTest) expectFleetUnderBase(ctx context.Context) (string, error) {
	for _, member := range fleet {
		if err := t.awaitReplicas(ctx, member.name, member.downgraded); err != nil {
			return "", err
		}
	}
	if err := t.patchDeployment(ctx, "regrown", `{"spec":{"replicas":2}}`); err != nil {
		return "", err
	}
	for _, name := range []string{"rolling", "regrown", "grown"} {
		if err := t.awaitServing(ctx, name, bounds{2, 3}); err != nil {
			return "", err
		}
	}
	// What their annotations say has no effect at all.
	if err := t.remember(ctx, "regrown", "grown"); err != nil {
		return "", err
	}
	return "every Deployment has as many pods as it wants; those that served still do. " +
		"The rollout ends; two Deployments are scaled to what their annotation says that they were.", t.availability.err()
}

// finishDrains makes pods ready: the drains that the rollback has interrupted end.
func (t *upgradeTest) finishDrains(ctx context.Context) (string, error) {
	hanging := t.requested["hanging"][0]
	if err := t.Client.CoreV1().Pods(t.Name).Delete(ctx, hanging.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		return "", fmt.Errorf("ending pod %s: %w", hanging.Name, err)
	}
	count := 0
	for _, member := range fleet {
		for _, pod := range t.requested[member.name] {
			if _, err := t.AwaitRequest(ctx, pod, "the end of the request", func(request *coordinationv1alpha1.EvictionRequest) bool {
				return t.makeReady(ctx, member.name) == nil && controlplane.IsTrue(coordinationv1alpha1.EvictionRequestConditionEvicted)(request)
			}); err != nil {
				return "", err
			}
			count++
		}
	}
	return fmt.Sprintf("%d requests have Evicted=True, and at every moment as many pods have served as are wanted.", count), t.availability.err()
}

// expectNothingLeft looks for what a surge could leave behind.
func (t *upgradeTest) expectNothingLeft(ctx context.Context) (string, error) {
	for _, member := range fleet {
		deployment, err := t.Client.AppsV1().Deployments(t.Name).Get(ctx, member.name, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("reading Deployment %s: %w", member.name, err)
		}
		count := int(*deployment.Spec.Replicas)
		if err := t.awaitReplicas(ctx, member.name, replicas{count, count, count}); err != nil {
			return "", err
		}
		if err := controlplane.Poll(ctx, "annotation and condition of Deployment "+member.name+" to go", func(ctx context.Context) (bool, error) {
			return t.isClean(ctx, member.name)
		}); err != nil {
			return "", err
		}
	}
	return "every Deployment has its replicas; no annotation and no condition is left.", t.availability.err()
}

// isClean tells whether nothing says any more that there was a surge.
func (t *upgradeTest) isClean(ctx context.Context, name string) (bool, error) {
	sets, err := t.replicaSets(ctx, name)
	if err != nil {
		return false, err
	}
	for _, set := range sets {
		if _, ok := set.Annotations[surgeAnnotation]; ok {
			return false, nil
		}
	}
	says, err := t.saysSurging(ctx, name)
	return !says, err
}

// saysSurging tells whether a Deployment has the condition of a surge.
func (t *upgradeTest) saysSurging(ctx context.Context, name string) (bool, error) {
	deployment, err := t.Client.AppsV1().Deployments(t.Name).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	return slices.ContainsFunc(deployment.Status.Conditions, func(condition apps.DeploymentCondition) bool {
		return condition.Type == surgeCondition
	}), nil
}
