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
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/hack/controlplane"
)

// quietPeriod is how long a pod is watched that must stay. The fork would evict it
// within a fraction of this when its budget is deleted.
const quietPeriod = 5 * time.Second

// step is one of the KEP's, by its number there, or, with a letter, one about pods
// with the new field that belongs to it.
type step struct {
	number, what string
	// run does it, and returns what was observed.
	run func(ctx context.Context) (string, error)
}

// upgradeTest is what the steps share.
type upgradeTest struct {
	*controlplane.Namespace
	plane      *controlplane.ControlPlane
	base, fork controlplane.Release

	// pods are those that later steps come back to, by name.
	pods map[string]*v1.Pod
	// requested are the pods of Deployments that are asked to leave, by the Deployment.
	requested map[string][]*v1.Pod
	// untouched are workloads that nobody is to write, as revisions returned them.
	untouched map[string][]string
	// availability watches the Deployments.
	availability *availability
	// doomed is a namespace that is deleted under the base.
	doomed *controlplane.Namespace
	// activation is when the turn of the interceptor began that lasts through the
	// rollback.
	activation metav1.Time
}

func newUpgradeTest(plane *controlplane.ControlPlane, base, fork controlplane.Release) (*upgradeTest, error) {
	client, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return &upgradeTest{
		Namespace: &controlplane.Namespace{Client: client, Name: "upgrade"},
		doomed:    &controlplane.Namespace{Client: client, Name: "doomed"},
		plane:     plane, base: base, fork: fork,
		pods:      map[string]*v1.Pod{},
		requested: map[string][]*v1.Pod{},
		untouched: map[string][]string{},
	}, nil
}

func (t *upgradeTest) steps() []step {
	return []step{
		{"1", "Create a cluster with the base.", t.createCluster},
		{"1a", "Create Deployments and a DaemonSet.", t.createOldWorkloads},
		{"2", "Upgrade to the fork.", t.upgrade},
		{"2a", "Look at the pod from before: nobody has written it.", t.expectOldPodUntouched},
		{"3", "Create EvictionRequest A and pod A: the pod is evicted, the request ends with Evicted=True.", t.evictA},
		{"3a", "Request the eviction of the pod from before the upgrade.", t.evictOldPod},
		{"3b", "Request the eviction of a pod of a Deployment from before the upgrade.", t.evictOldWorkload},
		{"4", "Create EvictionRequest B, pod B and a budget with maxUnavailable=0: the metric rises, the message explains, the pod stays.", t.blockB},
		{"4a", "Create pods that name an interceptor, which begins with one of them.", t.createInterceptedPods},
		{"4b", "Create a namespace with a pod and its EvictionRequest.", t.createDoomed},
		{"4c", "Drain a node by a NodeMaintenance; its pod waits for an interceptor.", t.startMaintenance},
		{"4d", "Create Deployments and request the eviction of some of their pods: they surge, and are not done.", t.createFleet},
		{"4e", "Look at the Deployment and the DaemonSet from before.", t.expectUntouched},
		{"4f", "Switch the gates of the workloads off in kube-controller-manager: the surges are given back.", t.switchGatesOff},
		{"4g", "Look at the Deployment and the DaemonSet from before.", t.expectUntouched},
		{"4h", "Switch the gates on again.", t.switchGatesOn},
		{"5", "Downgrade to the base.", t.downgrade},
		{"5a", "Read, write and evict pods that name an interceptor.", t.usePodsUnderBase},
		{"5b", "Use the node that is being drained, and uncordon it.", t.useNodeUnderBase},
		{"5c", "Look at the Deployments that surge: they return to their replicas.", t.expectFleetUnderBase},
		{"5d", "Look at the Deployment and the DaemonSet from before.", t.expectUntouched},
		{"6", "Delete the budget of pod B: the pod keeps running.", t.releaseBUnderBase},
		{"6a", "Delete the namespace from step 4b: the base does not know that it holds a request.", t.deleteDoomed},
		{"7", "Upgrade to the fork again.", t.upgrade},
		{"8", "EvictionRequest B evicts pod B and ends with Evicted=True.", t.expectBEvicted},
		{"8a", "Look at the pods that name an interceptor: the field is gone where the base wrote the pod, and only there.", t.expectFields},
		{"8b", "The interceptor that was active before goes on, within its old deadline, although its pod has lost the field.", t.finishWalk},
		{"8c", "Request the eviction of the pods that kept and lost the field.", t.requestKeptAndLost},
		{"8d", "Look at the request whose namespace is gone: it takes no status any more, so the controller deletes it.", t.expectOrphanDeleted},
		{"8e", "The maintenance of the node goes on: it is cordoned again.", t.expectDraining},
		{"8f", "Delete the maintenance in the middle of the drain.", t.finishMaintenance},
		{"8g", "The drains of the Deployments go on, where they were not called off.", t.finishDrains},
		{"8h", "Look at the Deployments: nothing is left of the surges.", t.expectNothingLeft},
		{"8i", "Look at the Deployment and the DaemonSet from before, and at the Deployments with a stale annotation.", t.expectUntouched},
	}
}

func (t *upgradeTest) createCluster(ctx context.Context) (string, error) {
	if err := t.start(ctx, t.base); err != nil {
		return "", err
	}
	if err := t.Create(ctx); err != nil {
		return "", err
	}
	t.availability = watchAvailability(ctx, t.Namespace)
	if err := t.expectServed(false); err != nil {
		return "", err
	}
	// The fork's client sends the field; the base does not know it.
	pod, err := t.CreateReadyPod(ctx, controlplane.NewPod("old", controlplane.Interceptor))
	if err != nil {
		return "", err
	}
	if pod.Spec.EvictionInterceptors != nil {
		return "", fmt.Errorf("the base has stored evictionInterceptors %v of pod %s: is it a pristine build?", pod.Spec.EvictionInterceptors, pod.Name)
	}
	t.pods["old"] = pod
	return "EvictionRequests are not served; a pod is Running and Ready.", nil
}

// start starts both components, the API server first.
func (t *upgradeTest) start(ctx context.Context, release controlplane.Release) error {
	if err := t.plane.StartAPIServer(ctx, release); err != nil {
		return fmt.Errorf("starting %s: %w", release.Name, err)
	}
	if err := t.plane.StartControllerManager(ctx, release); err != nil {
		return fmt.Errorf("starting %s: %w", release.Name, err)
	}
	return nil
}

// upgrade replaces the API server first, so that the new controller manager finds the
// API that it needs.
func (t *upgradeTest) upgrade(ctx context.Context) (string, error) {
	if err := t.plane.StopAPIServer(); err != nil {
		return "", err
	}
	if err := t.plane.StartAPIServer(ctx, t.fork); err != nil {
		return "", err
	}
	if err := t.expectServed(true); err != nil {
		return "", err
	}
	if err := t.plane.StopControllerManager(); err != nil {
		return "", err
	}
	if err := t.plane.StartControllerManager(ctx, t.fork); err != nil {
		return "", err
	}
	return "kube-apiserver, then kube-controller-manager are the fork's; EvictionRequests are served.", nil
}

// downgrade replaces the API server last, and has something happen while there is no
// controller manager.
func (t *upgradeTest) downgrade(ctx context.Context) (string, error) {
	if err := t.plane.StopControllerManager(); err != nil {
		return "", err
	}
	if err := t.changeUnobserved(ctx); err != nil {
		return "", err
	}
	if err := t.plane.StopAPIServer(); err != nil {
		return "", err
	}
	if err := t.start(ctx, t.base); err != nil {
		return "", err
	}
	if err := t.expectServed(false); err != nil {
		return "", err
	}
	return "the base runs on the etcd with the fork's objects; EvictionRequests are not served.", nil
}

// expectServed fails unless EvictionRequests are served, or not.
func (t *upgradeTest) expectServed(want bool) error {
	_, err := t.Client.Discovery().ServerResourcesForGroupVersion(coordinationv1alpha1.SchemeGroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("discovering the API: %w", err)
	}
	// The base serves the version with its own alpha kinds, if asked to. It is not.
	if served := err == nil; served != want {
		return fmt.Errorf("%s is served: %t, must be %t", coordinationv1alpha1.SchemeGroupVersion, served, want)
	}
	return nil
}

func (t *upgradeTest) expectOldPodUntouched(ctx context.Context) (string, error) {
	before := t.pods["old"]
	now, err := t.GetPod(ctx, before)
	if err != nil {
		return "", err
	}
	if now.ResourceVersion != before.ResourceVersion {
		return "", fmt.Errorf("pod %s had resourceVersion %s and has %s", now.Name, before.ResourceVersion, now.ResourceVersion)
	}
	return "pod, UID and resourceVersion are the same.", nil
}

func (t *upgradeTest) evictA(ctx context.Context) (string, error) {
	pod, err := t.CreateReadyPod(ctx, controlplane.NewPod("a"))
	if err != nil {
		return "", err
	}
	return t.evict(ctx, pod)
}

func (t *upgradeTest) evictOldPod(ctx context.Context) (string, error) {
	return t.evict(ctx, t.pods["old"])
}

// evict requests the eviction of a pod that nothing holds.
func (t *upgradeTest) evict(ctx context.Context, pod *v1.Pod) (string, error) {
	if err := t.Request(ctx, pod); err != nil {
		return "", err
	}
	return t.AwaitEvicted(ctx, pod)
}

func (t *upgradeTest) blockB(ctx context.Context) (string, error) {
	before, err := t.evictionAttempts(ctx)
	if err != nil {
		return "", err
	}
	pod, err := t.CreateReadyPod(ctx, controlplane.NewPod("b"))
	if err != nil {
		return "", err
	}
	t.pods["b"] = pod
	if err := t.CreateBudget(ctx, pod); err != nil {
		return "", err
	}
	if err := t.Request(ctx, pod); err != nil {
		return "", err
	}
	request, err := t.AwaitRequest(ctx, pod, "the budget to block the eviction", controlplane.IsTrue(coordinationv1alpha1.EvictionRequestConditionBlocked))
	if err != nil {
		return "", err
	}
	message := controlplane.InterceptorStatus(request, coordinationv1alpha1.EvictionInterceptorImperative).Message
	const want = "Could not evict a pod due to failing eviction requests, number of retries: 1"
	if !strings.HasPrefix(message, want) || !strings.Contains(message, "PodDisruptionBudget "+pod.Name) {
		return "", fmt.Errorf("the message of the request is %q, must begin with %q and name the budget %s", message, want, pod.Name)
	}
	after, err := t.evictionAttempts(ctx)
	if err != nil {
		return "", err
	}
	if after <= before {
		return "", fmt.Errorf("metric %s was %v before the attempt and is %v after it", attemptsMetric, before, after)
	}
	if err := t.ExpectStays(ctx, pod, 0); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s rose from %v to %v; pod b runs; %q.", attemptsMetric, before, after, message), nil
}

// createInterceptedPods creates pods that the next steps treat in different ways, and
// leaves one of them in the middle of an eviction.
func (t *upgradeTest) createInterceptedPods(ctx context.Context) (string, error) {
	for _, name := range []string{"walker", "kept", "written", "evicted"} {
		pod, err := t.CreateReadyPod(ctx, controlplane.NewPod(name, controlplane.Interceptor))
		if err != nil {
			return "", err
		}
		t.pods[name] = pod
	}
	walker := t.pods["walker"]
	if err := t.Request(ctx, walker); err != nil {
		return "", err
	}
	request, err := t.AwaitRequest(ctx, walker, "the turn of the interceptor", controlplane.IsActive(controlplane.Interceptor))
	if err != nil {
		return "", err
	}
	t.activation = *request.Status.ActivationTime
	if err := t.Report(ctx, walker, false); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is active for pod walker since %s, and has reported.", controlplane.Interceptor, t.activation.UTC().Format(time.TimeOnly)), nil
}

func (t *upgradeTest) usePodsUnderBase(ctx context.Context) (string, error) {
	for _, name := range []string{"walker", "kept", "written"} {
		pod, err := t.GetPod(ctx, t.pods[name])
		if err != nil {
			return "", err
		}
		if pod.Spec.EvictionInterceptors != nil {
			return "", fmt.Errorf("the base shows evictionInterceptors %v of pod %s", pod.Spec.EvictionInterceptors, name)
		}
	}
	for _, name := range []string{"walker", "written"} {
		if err := t.LabelPod(ctx, t.pods[name], "written-by", "base"); err != nil {
			return "", err
		}
	}
	if err := t.Evict(ctx, t.pods["evicted"]); err != nil {
		return "", err
	}
	if err := t.AwaitGone(ctx, t.pods["evicted"]); err != nil {
		return "", err
	}
	return "the base shows the pods without the field, takes labels for two of them, and evicts one.", nil
}

func (t *upgradeTest) releaseBUnderBase(ctx context.Context) (string, error) {
	err := t.Request(ctx, t.pods["kept"])
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("creating an EvictionRequest under the base: %v, must be not found", err)
	}
	if err := t.DeleteBudget(ctx, "b"); err != nil {
		return "", err
	}
	if err := t.ExpectStays(ctx, t.pods["b"], quietPeriod); err != nil {
		return "", err
	}
	return fmt.Sprintf("pod b runs, and nothing has touched it in %s; new EvictionRequests are answered with not found.", quietPeriod), nil
}

func (t *upgradeTest) expectBEvicted(ctx context.Context) (string, error) {
	return t.AwaitEvicted(ctx, t.pods["b"])
}

// expectFields looks at what the writes of the base have left of the field: it drops
// what it does not know, as every API server does with every field of a later release.
func (t *upgradeTest) expectFields(ctx context.Context) (string, error) {
	named := []v1.EvictionInterceptor{{Name: controlplane.Interceptor}}
	for name, want := range map[string][]v1.EvictionInterceptor{"kept": named, "written": nil, "walker": nil} {
		pod, err := t.GetPod(ctx, t.pods[name])
		if err != nil {
			return "", err
		}
		if got := pod.Spec.EvictionInterceptors; !slices.Equal(got, want) {
			return "", fmt.Errorf("pod %s has evictionInterceptors %v, must be %v", name, got, want)
		}
	}
	return "kept by the pod that the base only read, lost by the two that it labeled.", nil
}

func (t *upgradeTest) finishWalk(ctx context.Context) (string, error) {
	walker := t.pods["walker"]
	request, err := t.AwaitRequest(ctx, walker, "the turn of the interceptor", controlplane.IsActive(controlplane.Interceptor))
	if err != nil {
		return "", err
	}
	if got := request.Status.ActivationTime; !got.Equal(&t.activation) {
		return "", fmt.Errorf("the turn began at %v before the rollback and at %v after it: its deadline has moved", t.activation, got)
	}
	if err := t.ExpectStays(ctx, walker, 0); err != nil {
		return "", err
	}
	if err := t.Report(ctx, walker, true); err != nil {
		return "", err
	}
	observed, err := t.AwaitEvicted(ctx, walker)
	return "its turn has the same beginning; it completes; " + observed, err
}

func (t *upgradeTest) requestKeptAndLost(ctx context.Context) (string, error) {
	kept, written := t.pods["kept"], t.pods["written"]
	if err := t.Request(ctx, kept); err != nil {
		return "", err
	}
	if _, err := t.AwaitRequest(ctx, kept, "the turn of the interceptor", controlplane.IsActive(controlplane.Interceptor)); err != nil {
		return "", err
	}
	if err := t.Report(ctx, kept, false); err != nil {
		return "", err
	}
	if err := t.Report(ctx, kept, true); err != nil {
		return "", err
	}
	first, errKept := t.AwaitEvicted(ctx, kept)
	second, errWritten := t.evict(ctx, written)
	return fmt.Sprintf("with the field: intercepted, then %s Without: %s", first, second), errors.Join(errKept, errWritten)
}

func (t *upgradeTest) createDoomed(ctx context.Context) (string, error) {
	if err := t.doomed.Create(ctx); err != nil {
		return "", err
	}
	pod, err := t.doomed.CreateReadyPod(ctx, controlplane.NewPod("doomed", controlplane.Interceptor))
	if err != nil {
		return "", err
	}
	t.pods["doomed"] = pod
	if err := t.doomed.Request(ctx, pod); err != nil {
		return "", err
	}
	_, err = t.doomed.AwaitRequest(ctx, pod, "the turn of the interceptor", controlplane.IsActive(controlplane.Interceptor))
	return fmt.Sprintf("%s is active for the pod.", controlplane.Interceptor), err
}

func (t *upgradeTest) deleteDoomed(ctx context.Context) (string, error) {
	if err := t.Client.CoreV1().Namespaces().Delete(ctx, t.doomed.Name, metav1.DeleteOptions{}); err != nil {
		return "", fmt.Errorf("deleting the namespace: %w", err)
	}
	err := controlplane.Poll(ctx, "the end of the namespace", func(ctx context.Context) (bool, error) {
		_, err := t.Client.CoreV1().Namespaces().Get(ctx, t.doomed.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	return "the namespace is gone with its pod; the request is left in etcd, unseen.", err
}

func (t *upgradeTest) expectOrphanDeleted(ctx context.Context) (string, error) {
	requests := t.Client.CoordinationV1alpha1().EvictionRequests(t.doomed.Name)
	err := controlplane.Poll(ctx, "the end of the request", func(ctx context.Context) (bool, error) {
		_, err := requests.Get(ctx, string(t.pods["doomed"].UID), metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	return "it is gone.", err
}
