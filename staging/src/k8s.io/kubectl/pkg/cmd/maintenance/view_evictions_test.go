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

package maintenance

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
)

// replaced returns a pod as created by the ReplicaSet of a Deployment that surges.
func replaced(name, node string, interceptors ...string) podStory {
	return newPod(name, node, append(interceptors, coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet)...)
}

// surgingNode returns a node with pods whose Deployments surge, cannot surge, or do not exist.
func surgingNode() *podSnapshot {
	recreated := newDeployment("blog")
	recreated.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	return snapshotOf(newNode("node-1"), newDeployment("api"), newDeployment("web"), newDeployment("vm"), recreated,
		replaced("api-0", "node-1"), replaced("web-0", "node-1"), replaced("blog-0", "node-1"), replaced("lost-0", "node-1"), replaced("vm-0", "node-1", migrate),
		newPod("plain-0", "node-1"),
		newBudget("web", "web", 0), newBudget("blog", "blog", 0), newBudget("lost", "lost", 0), newBudget("plain", "plain", 0))
}

// TestSurgeOfPods verifies which pods are blocked by their budget, and which are replaced first.
func TestSurgeOfPods(t *testing.T) {
	const deployment, replicaSet, last = coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet, coordinationv1alpha1.EvictionInterceptorImperative
	const refusal = "PodDisruptionBudget default/web allows no disruption: 3 of 3 healthy pods are needed"
	strategy := func(surge intstr.IntOrString) *appsv1.Deployment {
		d := newDeployment("web")
		d.Spec.Strategy.RollingUpdate.MaxSurge = &surge
		return d
	}
	recreated, unset, elsewhere := newDeployment("web"), newDeployment("web"), newDeployment("web")
	recreated.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	unset.Spec.Strategy.RollingUpdate.MaxSurge = nil
	undefaulted, leftOver := newDeployment("web"), newDeployment("web")
	undefaulted.Spec.Strategy.RollingUpdate, leftOver.Spec.Strategy.Type = nil, appsv1.RecreateDeploymentStrategyType
	elsewhere.Namespace = "elsewhere"
	second := newDeployment("web")
	second.Name = "second"
	broad := newDeployment("web")
	broad.Name, broad.Spec.Selector = "broad", &metav1.LabelSelector{}
	gaveUp := replaced("web-0", "node-1").asked()
	gaveUp.request.Status.ProcessedInterceptors, gaveUp.request.Status.ActiveInterceptors = []string{deployment}, []string{replicaSet}
	earlier := newPod("web-0", "node-1", migrate).asked()
	earlier.Spec.EvictionInterceptors = append(earlier.Spec.EvictionInterceptors, corev1.EvictionInterceptor{Name: deployment})
	canceled := gaveUp
	canceled.request = gaveUp.request.DeepCopy()
	canceled.requestCondition(coordinationv1alpha1.EvictionRequestConditionCanceled, coordinationv1alpha1.EvictionRequestReasonNoRequesters, 0)

	grouped := func(pod podStory, group string) podStory {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		return pod
	}

	type result struct {
		Blocked, Unreplaced string
		Remarks             []podNote
	}
	replacedFirst := result{Unreplaced: refusal, Remarks: []podNote{noteReplacedFirst}}
	notReplaced := result{Blocked: refusal, Remarks: []podNote{noteNotReplaced}}
	mayBeReplaced := result{Unreplaced: refusal, Remarks: []podNote{noteMayBeReplaced}}
	onlyBlocked := result{Blocked: refusal}
	for _, tc := range []struct {
		name        string
		pod         podStory
		deployments []*appsv1.Deployment
		want        result
	}{
		{"surge by a percentage of one replica", replaced("web-0", "node-1"), []*appsv1.Deployment{newDeployment("web")}, replacedFirst},
		{"surge by one", replaced("web-0", "node-1"), []*appsv1.Deployment{strategy(intstr.FromInt32(1))}, replacedFirst},
		{"surge by zero", replaced("web-0", "node-1"), []*appsv1.Deployment{strategy(intstr.FromInt32(0))}, notReplaced},
		{"surge by 0%", replaced("web-0", "node-1"), []*appsv1.Deployment{strategy(intstr.FromString("0%"))}, notReplaced},
		{"an invalid surge", replaced("web-0", "node-1"), []*appsv1.Deployment{strategy(intstr.FromString("some"))}, notReplaced},
		{"no maxSurge", replaced("web-0", "node-1"), []*appsv1.Deployment{unset}, notReplaced},
		{"a strategy without its parameters", replaced("web-0", "node-1"), []*appsv1.Deployment{undefaulted}, notReplaced},
		{"parameters of another strategy", replaced("web-0", "node-1"), []*appsv1.Deployment{leftOver}, notReplaced},
		{"another strategy", replaced("web-0", "node-1"), []*appsv1.Deployment{recreated}, notReplaced},
		{"no Deployment", replaced("web-0", "node-1"), nil, mayBeReplaced},
		{"a Deployment of another namespace", replaced("web-0", "node-1"), []*appsv1.Deployment{elsewhere}, mayBeReplaced},
		{"two Deployments", replaced("web-0", "node-1"), []*appsv1.Deployment{newDeployment("web"), second}, mayBeReplaced},
		{"another Deployment with an empty selector, which is invalid", replaced("web-0", "node-1"), []*appsv1.Deployment{newDeployment("web"), broad}, replacedFirst},
		{"the Deployment is not an interceptor", newPod("web-0", "node-1"), []*appsv1.Deployment{newDeployment("web")}, onlyBlocked},
		{"listed by the user, on a pod of a StatefulSet", replaced("web-0", "node-1").ownedBy("StatefulSet"), []*appsv1.Deployment{newDeployment("web")}, onlyBlocked},
		{"listed by the user, on an unmanaged pod", replaced("web-0", "node-1").bare(), []*appsv1.Deployment{newDeployment("web")}, result{Blocked: refusal, Remarks: []podNote{noteUnmanaged}}},
		{"requested, and the Deployment is active", replaced("web-0", "node-1").asked(), []*appsv1.Deployment{newDeployment("web")}, replacedFirst},
		{"requested, and the Deployment is processed", gaveUp, []*appsv1.Deployment{newDeployment("web")}, onlyBlocked},
		{"requested before the Deployment was an interceptor", earlier, []*appsv1.Deployment{newDeployment("web")}, onlyBlocked},
		{"canceled after it was active", canceled, []*appsv1.Deployment{newDeployment("web")}, replacedFirst},
		{"in a group", grouped(replaced("web-0", "node-1"), "single"), []*appsv1.Deployment{newDeployment("web")}, replacedFirst},
		{"in a group that leaves as one", grouped(replaced("web-0", "node-1", migrate), "all"), []*appsv1.Deployment{newDeployment("web")}, result{Blocked: refusal, Remarks: []podNote{noteSchedulingGroup}}},
		{"terminating", replaced("web-0", "node-1").terminatingSince(0), []*appsv1.Deployment{newDeployment("web")}, result{Remarks: []podNote{noteTerminating}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := snapshotOf(newNode("node-1"), tc.pod, newBudget("web", "web", 0))
			for _, deployment := range tc.deployments {
				s.addDeployment(deployment)
			}
			s.independent = sets.New(types.NamespacedName{Namespace: "default", Name: "single"})
			pod := mustPlan(t, s, "", maintenance.StandardPlan(), "node-1").Nodes[0].Pods[0]
			if diff := cmp.Diff(tc.want, result{pod.Blocked, pod.BlockedUnreplaced, pod.Remarks}); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
			if !slices.Contains(pod.Interceptors, last) || slices.Contains(pod.Remarks, noteSchedulingGroup) && len(pod.Interceptors) > 1 {
				t.Errorf("interceptors %v", pod.Interceptors)
			}
		})
	}
}

// TestPlanReadsDeployments verifies that a plan lists Deployments only if one is an interceptor,
// and continues without the permission to.
func TestPlanReadsDeployments(t *testing.T) {
	lists := func(s *server) bool {
		return slices.ContainsFunc(s.Actions(), func(action clienttesting.Action) bool { return action.GetResource().Resource == "deployments" })
	}
	pod, budget, deployment := replaced("web-0", "node-1"), newBudget("web", "web", 0), newDeployment("web")
	s := newServer(t, newNode("node-1"), newPod("web-0", "node-1"), budget, deployment)
	contains(t, s.mustRun(t, "plan", "node-1"), "! PodDisruptionBudget default/web allows no")
	if lists(s) {
		t.Error("lists Deployments that are not interceptors")
	}
	s = newServer(t, newNode("node-1"), zonedNode("node-2", ""), pod, budget, deployment)
	contains(t, s.mustRun(t, "plan", "node-1"), "its Deployment starts a replacement first\n", "Summary: 1 pod on 1 node in 1 step: 1 replaced by their Deployments first.\n")
	if !lists(s) {
		t.Error("does not list Deployments")
	}
	s = newServer(t, newNode("node-1"), zonedNode("node-2", ""), pod, budget, deployment)
	s.forbid("deployments")
	contains(t, s.mustRun(t, "plan", "node-1"), "first, if\n                                 its strategy allows a surge\n", "Without the permission to list deployments, this plan is incomplete.\n")
	s = newServer(t, newNode("node-1"), zonedNode("node-2", ""), pod, budget, deployment)
	s.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
	s.run(t, "plan", "node-1")
	contains(t, s.failure, "listing deployments: no answer")
}
