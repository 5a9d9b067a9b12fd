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

package apps

import (
	"context"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/e2e/framework"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	e2eskipper "k8s.io/kubernetes/test/e2e/framework/skipper"
	admissionapi "k8s.io/pod-security-admission/api"
)

// evictionTimeout is within what time a request or a maintenance has to come to its end. The first pod of a node may wait
// for its image.
const evictionTimeout = 2 * time.Minute

// The e2e tests of KEP-4563.
var _ = SIGDescribe("EvictionRequest", framework.WithFeatureGate(features.EvictionRequestAPI), func() {
	f := framework.NewDefaultFramework("eviction-request")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	ginkgo.BeforeEach(func() { skipUnlessServed(f, "evictionrequests") })

	ginkgo.It("should have interceptors act one after the other before the pod is evicted", func(ctx context.Context) {
		const first, second = "first.example.com", "second.example.com"
		pod := createInterceptedPod(ctx, f, "intercepted", first, second)
		requestEviction(ctx, f, pod)
		for _, name := range []string{first, second} {
			ginkgo.By("waiting for " + name + " to become active")
			awaitRequest(ctx, f, pod, "active interceptor "+name, func(request *coordinationv1alpha1.EvictionRequest) bool {
				return slices.Equal(request.Status.ActiveInterceptors, []string{name})
			})
			expectToRun(ctx, f, pod)
			reportOf(ctx, f, pod, name, func(entry *coordinationv1alpha1.InterceptorStatus, now metav1.Time) { entry.StartTime = &now })
			reportOf(ctx, f, pod, name, func(entry *coordinationv1alpha1.InterceptorStatus, now metav1.Time) { entry.CompletionTime = &now })
		}
		ginkgo.By("waiting for the eviction")
		framework.ExpectNoError(e2epod.WaitForPodNotFoundInNamespace(ctx, f.ClientSet, pod.Name, pod.Namespace, evictionTimeout))
		request := awaitRequest(ctx, f, pod, "condition Evicted", conditionIsTrue(coordinationv1alpha1.EvictionRequestConditionEvicted))
		gomega.Expect(request.Status.ProcessedInterceptors).To(gomega.HaveExactElements(first, second, coordinationv1alpha1.EvictionInterceptorImperative))
	})

	ginkgo.It("should evict a pod once its PodDisruptionBudget allows that", func(ctx context.Context) {
		pod := createInterceptedPod(ctx, f, "protected")
		createPDBMinAvailableOrDie(ctx, f.ClientSet, pod.Namespace, "guard", intstr.FromInt32(1), pod.Labels)
		waitForPdbToBeProcessed(ctx, f.ClientSet, pod.Namespace, "guard")
		requestEviction(ctx, f, pod)
		ginkgo.By("waiting for the budget to block the eviction")
		request := awaitRequest(ctx, f, pod, "condition Blocked", conditionIsTrue(coordinationv1alpha1.EvictionRequestConditionBlocked))
		blocked := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionBlocked))
		gomega.Expect(blocked.Reason).To(gomega.Equal(coordinationv1alpha1.EvictionRequestReasonDisruptionBudget))
		gomega.Expect(blocked.Message).To(gomega.ContainSubstring("guard"))
		expectToRun(ctx, f, pod)

		ginkgo.By("allowing the eviction")
		_, err := f.ClientSet.PolicyV1().PodDisruptionBudgets(pod.Namespace).Patch(ctx, "guard", types.MergePatchType, []byte(`{"spec":{"minAvailable":0}}`), metav1.PatchOptions{})
		framework.ExpectNoError(err)
		framework.ExpectNoError(e2epod.WaitForPodNotFoundInNamespace(ctx, f.ClientSet, pod.Name, pod.Namespace, evictionTimeout))
		awaitRequest(ctx, f, pod, "condition Evicted", conditionIsTrue(coordinationv1alpha1.EvictionRequestConditionEvicted))
	})

	ginkgo.It("should keep a pod whose requesters have withdrawn", func(ctx context.Context) {
		const name = "slow.example.com"
		pod := createInterceptedPod(ctx, f, "kept", name)
		requestEviction(ctx, f, pod)
		awaitRequest(ctx, f, pod, "active interceptor", func(request *coordinationv1alpha1.EvictionRequest) bool {
			return slices.Equal(request.Status.ActiveInterceptors, []string{name})
		})
		framework.ExpectNoError(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			request, err := f.ClientSet.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
			if err != nil {
				return err
			}
			request.Spec.Requesters = nil
			_, err = f.ClientSet.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Update(ctx, request, metav1.UpdateOptions{})
			return err
		}))
		awaitRequest(ctx, f, pod, "condition Canceled", conditionIsTrue(coordinationv1alpha1.EvictionRequestConditionCanceled))
		expectToRun(ctx, f, pod)
	})
})

// KEP-4212 names no e2e tests. A node is drained, so no other test may run.
var _ = SIGDescribe("NodeMaintenance", framework.WithSerial(), framework.WithDisruptive(), framework.WithFeatureGate(features.DeclarativeNodeMaintenance), func() {
	f := framework.NewDefaultFramework("node-maintenance")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	ginkgo.BeforeEach(func() { skipUnlessServed(f, "nodemaintenances") })

	ginkgo.It("should drain a node and give it back", func(ctx context.Context) {
		node, err := e2enode.GetRandomReadySchedulableNode(ctx, f.ClientSet)
		framework.ExpectNoError(err)
		pod := e2epod.NewAgnhostPod(f.Namespace.Name, "drained", nil, nil, nil)
		e2epod.SetNodeSelection(&pod.Spec, e2epod.NodeSelection{Name: node.Name})
		pod = e2epod.NewPodClient(f).CreateSync(ctx, pod)

		maintenances := f.ClientSet.CoordinationV1alpha1().NodeMaintenances()
		m, err := maintenances.Create(ctx, &coordinationv1alpha1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{Name: f.UniqueName},
			Spec: coordinationv1alpha1.NodeMaintenanceSpec{
				Stage: coordinationv1alpha1.NodeMaintenanceStageDrain,
				NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
					MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node.Name}}},
				}}},
			},
		}, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		ginkgo.DeferCleanup(func(ctx context.Context) {
			if err := maintenances.Delete(ctx, m.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				framework.ExpectNoError(err)
			}
			framework.ExpectNoError(e2enode.WaitForAllNodesSchedulable(ctx, f.ClientSet, evictionTimeout))
		})

		ginkgo.By("waiting for the node to be drained")
		gomega.Eventually(ctx, func(ctx context.Context) (*coordinationv1alpha1.NodeMaintenance, error) {
			return maintenances.Get(ctx, m.Name, metav1.GetOptions{})
		}).WithTimeout(evictionTimeout).Should(gomega.Satisfy(func(m *coordinationv1alpha1.NodeMaintenance) bool {
			return meta.IsStatusConditionTrue(m.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained))
		}))
		_, err = f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		gomega.Expect(err).To(gomega.Satisfy(apierrors.IsNotFound))
		drained, err := f.ClientSet.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		framework.ExpectNoError(err)
		if !drained.Spec.Unschedulable {
			framework.Failf("node %s is drained, and schedulable", node.Name)
		}

		ginkgo.By("completing the maintenance")
		_, err = maintenances.Patch(ctx, m.Name, types.MergePatchType, []byte(`{"spec":{"stage":"Complete"}}`), metav1.PatchOptions{})
		framework.ExpectNoError(err)
		framework.ExpectNoError(e2enode.WaitForAllNodesSchedulable(ctx, f.ClientSet, evictionTimeout))
	})
})

// skipUnlessServed skips a test on a cluster whose API server has the resource off: it is an alpha API.
func skipUnlessServed(f *framework.Framework, resource string) {
	served, err := f.ClientSet.Discovery().ServerResourcesForGroupVersion(coordinationv1alpha1.SchemeGroupVersion.String())
	if !apierrors.IsNotFound(err) {
		framework.ExpectNoError(err)
	}
	if served == nil || !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
		e2eskipper.Skipf("%s does not serve %s", coordinationv1alpha1.SchemeGroupVersion, resource)
	}
}

// createInterceptedPod creates a pod with these interceptors, and waits until it is ready.
func createInterceptedPod(ctx context.Context, f *framework.Framework, name string, interceptors ...string) *v1.Pod {
	pod := e2epod.NewAgnhostPod(f.Namespace.Name, name, nil, nil, nil)
	pod.Labels = defaultLabels // Those that the budgets of this package select.
	for _, interceptor := range interceptors {
		pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: interceptor})
	}
	return e2epod.NewPodClient(f).CreateSync(ctx, pod)
}

func requestEviction(ctx context.Context, f *framework.Framework, pod *v1.Pod) {
	_, err := f.ClientSet.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Create(ctx, &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "requester.example.com"}},
		},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
}

func conditionIsTrue(conditionType coordinationv1alpha1.EvictionRequestConditionType) func(*coordinationv1alpha1.EvictionRequest) bool {
	return func(request *coordinationv1alpha1.EvictionRequest) bool {
		return meta.IsStatusConditionTrue(request.Status.Conditions, string(conditionType))
	}
}

// awaitRequest waits until the request for the pod is as wanted, and returns it.
func awaitRequest(ctx context.Context, f *framework.Framework, pod *v1.Pod, what string, wanted func(*coordinationv1alpha1.EvictionRequest) bool) *coordinationv1alpha1.EvictionRequest {
	ginkgo.GinkgoHelper()
	var request *coordinationv1alpha1.EvictionRequest
	gomega.Eventually(ctx, func(ctx context.Context) (_ *coordinationv1alpha1.EvictionRequest, err error) {
		request, err = f.ClientSet.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		return request, err
	}).WithTimeout(evictionTimeout).Should(gomega.Satisfy(wanted), what)
	return request
}

// reportOf reports as an interceptor.
func reportOf(ctx context.Context, f *framework.Framework, pod *v1.Pod, name string, report func(*coordinationv1alpha1.InterceptorStatus, metav1.Time)) {
	ginkgo.GinkgoHelper()
	requests := f.ClientSet.CoordinationV1alpha1().EvictionRequests(pod.Namespace)
	framework.ExpectNoError(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		request, err := requests.Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(request.Status.Interceptors, func(entry coordinationv1alpha1.InterceptorStatus) bool { return entry.Name == name })
		if i < 0 {
			request.Status.Interceptors = append(request.Status.Interceptors, coordinationv1alpha1.InterceptorStatus{Name: name})
			i = len(request.Status.Interceptors) - 1
		}
		now := metav1.Now()
		request.Status.Interceptors[i].HeartbeatTime = &now
		report(&request.Status.Interceptors[i], now)
		_, err = requests.UpdateStatus(ctx, request, metav1.UpdateOptions{})
		return err
	}))
}

// expectToRun expects that nobody has deleted the pod.
func expectToRun(ctx context.Context, f *framework.Framework, pod *v1.Pod) {
	ginkgo.GinkgoHelper()
	current, err := f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	framework.ExpectNoError(err)
	if current.UID != pod.UID || current.DeletionTimestamp != nil {
		framework.Failf("pod %s is gone, or terminates", pod.Name)
	}
}
