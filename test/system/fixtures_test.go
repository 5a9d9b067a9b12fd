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
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const (
	// appLabel is a label of pods with the name of their workload: availability reads it too.
	appLabel = "app"

	// deschedulerInBackground is the annotation of pods whose eviction the descheduler expects to
	// take long.
	deschedulerInBackground = "descheduler.alpha.kubernetes.io/request-evict-only"

	// nodeName is the node of all pods in tests without a scheduler.
	nodeName = "node"
)

// getter and creator are parts of the typed clients.
type (
	getter[T any] interface {
		Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	}
	creator[T any] interface {
		Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	}
)

// create creates an object that must not exist.
func create[T metav1.Object](tCtx ktesting.TContext, client creator[T], object T) T {
	tCtx.Helper()
	created, err := client.Create(tCtx, object, metav1.CreateOptions{})
	tCtx.ExpectNoError(err, "creating %T %s", object, object.GetName())
	return created
}

// createNamespace creates the namespace of the context, and waits until it admits pods.
func createNamespace(tCtx ktesting.TContext) {
	tCtx.Helper()
	create(tCtx, tCtx.Client().CoreV1().Namespaces(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tCtx.Namespace()}})
	awaitAdmission(tCtx)
}

// awaitAdmission waits until the namespace admits pods: they need a service account.
func awaitAdmission(tCtx ktesting.TContext) {
	tCtx.Helper()
	await(tCtx, "the default service account", func(tCtx ktesting.TContext) {
		_, err := tCtx.Client().CoreV1().ServiceAccounts(tCtx.Namespace()).Get(tCtx, "default", metav1.GetOptions{})
		tCtx.ExpectNoError(err)
	})
}

// newSimulatedNode returns a node whose pods kwok runs, and that is large enough for all pods. network is where
// they get their addresses from.
func newSimulatedNode(name, network string, labels map[string]string) *v1.Node {
	capacity := v1.ResourceList{v1.ResourceCPU: resource.MustParse("32"), v1.ResourceMemory: resource.MustParse("256Gi"), v1.ResourcePods: resource.MustParse("110")}
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{v1.LabelHostname: name, v1.LabelOSStable: "linux"},
			Annotations: map[string]string{controlplane.SimulatedNode: controlplane.SimulatedNodeValue},
		},
		Spec:   v1.NodeSpec{PodCIDR: network, PodCIDRs: []string{network}},
		Status: v1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	maps.Copy(node.Labels, labels)
	return node
}

// newPod returns a pod on the node that is gone as soon as it is deleted.
func newPod(name string, interceptors ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{appLabel: name}},
		Spec: v1.PodSpec{
			NodeName:                      nodeName,
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []v1.Container{{Name: "main", Image: "registry.k8s.io/pause"}},
		},
	}
	for _, name := range interceptors {
		pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
	}
	return pod
}

// newScheduledPod returns a pod that the scheduler assigns to a node.
func newScheduledPod(name string, interceptors ...string) *v1.Pod {
	pod := newPod(name, interceptors...)
	pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = "", nil
	return pod
}

// newSlowPod returns a pod with delays until it is ready, and until it is gone. The annotations are
// explained in test/utils/localcluster/stages.yaml.
func newSlowPod(name string, start, end time.Duration) *v1.Pod {
	pod := newScheduledPod(name)
	pod.Annotations = map[string]string{
		"pod-ready.stage.kwok.x-k8s.io/delay":  start.String(),
		"pod-delete.stage.kwok.x-k8s.io/delay": end.String(),
		deschedulerInBackground:                "",
	}
	return pod
}

// createReadyPod creates a pod that is Running and Ready: budgets count no others.
func createReadyPod(tCtx ktesting.TContext, pod *v1.Pod) *v1.Pod {
	tCtx.Helper()
	return makeReady(tCtx, create(tCtx, tCtx.Client().CoreV1().Pods(tCtx.Namespace()), pod))
}

// makeReady writes the status that a kubelet would write.
func makeReady(tCtx ktesting.TContext, pod *v1.Pod) *v1.Pod {
	tCtx.Helper()
	patch := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	ready, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).Patch(tCtx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	tCtx.ExpectNoError(err, "writing the status of pod %s", pod.Name)
	return ready
}

// awaitReadyPod waits until an app has a ready pod.
func awaitReadyPod(tCtx ktesting.TContext, app string) *v1.Pod {
	tCtx.Helper()
	var ready *v1.Pod
	await(tCtx, "a ready pod of "+app, func(tCtx ktesting.TContext) {
		pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{LabelSelector: appLabel + "=" + app})
		tCtx.ExpectNoError(err)
		index := slices.IndexFunc(pods.Items, func(pod v1.Pod) bool { return serves(&pod) })
		if index < 0 {
			tCtx.Fatalf("none of its %d pods is ready", len(pods.Items))
		}
		ready = &pods.Items[index]
	})
	return ready
}

// getPod returns the current state of this instance of a pod.
func getPod(tCtx ktesting.TContext, pod *v1.Pod) *v1.Pod {
	tCtx.Helper()
	current, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).Get(tCtx, pod.Name, metav1.GetOptions{})
	tCtx.ExpectNoError(err, "reading pod %s", pod.Name)
	if current.UID != pod.UID {
		tCtx.Fatalf("pod %s had UID %s and has %s: it was recreated", pod.Name, pod.UID, current.UID)
	}
	return current
}

// serves reports whether a pod is ready and not terminating.
func serves(pod *v1.Pod) bool { return pod.DeletionTimestamp == nil && podutil.IsPodReady(pod) }

// Workloads have the name of their template pod.

func templateOf(pod *v1.Pod) v1.PodTemplateSpec {
	return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec}
}

func selectorOf(pod *v1.Pod) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: pod.Labels}
}

func newDeployment(pod *v1.Pod, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selectorOf(pod), Template: templateOf(pod)},
	}
}

func newStatefulSet(pod *v1.Pod, replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: pod.Name, PodManagementPolicy: appsv1.ParallelPodManagement,
			Replicas: &replicas, Selector: selectorOf(pod), Template: templateOf(pod),
		},
	}
}

func newDaemonSet(pod *v1.Pod) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Spec:       appsv1.DaemonSetSpec{Selector: selectorOf(pod), Template: templateOf(pod)},
	}
}

func newService(app string) *v1.Service {
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec:       v1.ServiceSpec{Selector: map[string]string{appLabel: app}, Ports: []v1.ServicePort{{Port: 80}}},
	}
}

// countEndpoints returns the number of ready endpoints of a Service, or of all if the name is empty.
func countEndpoints(tCtx ktesting.TContext, service string) int {
	tCtx.Helper()
	options := metav1.ListOptions{}
	if service != "" {
		options.LabelSelector = discoveryv1.LabelServiceName + "=" + service
	}
	list, err := tCtx.Client().DiscoveryV1().EndpointSlices(tCtx.Namespace()).List(tCtx, options)
	tCtx.ExpectNoError(err)
	ready := 0
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	return ready
}

// createBudget creates a budget for the pods of an app, with a rule such as "minAvailable: 1", and
// waits until it has counted its healthy pods.
func createBudget(tCtx ktesting.TContext, app, rule string, healthy int) {
	tCtx.Helper()
	budgets := tCtx.Client().PolicyV1().PodDisruptionBudgets(tCtx.Namespace())
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app}}
	tCtx.ExpectNoError(yaml.UnmarshalStrict([]byte(rule), &budget.Spec), "reading the rule of budget %s", app)
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: app}}
	create(tCtx, budgets, budget)
	await(tCtx, "budget "+app+" to count its pods", func(tCtx ktesting.TContext) {
		current, err := budgets.Get(tCtx, app, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if status := current.Status; status.ObservedGeneration != current.Generation || int(status.CurrentHealthy) != healthy {
			tCtx.Fatalf("it has counted %d healthy pods, want %d", status.CurrentHealthy, healthy)
		}
	})
}

func deleteBudget(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	err := tCtx.Client().PolicyV1().PodDisruptionBudgets(tCtx.Namespace()).Delete(tCtx, name, metav1.DeleteOptions{})
	tCtx.ExpectNoError(err, "deleting budget %s", name)
}

// newMaintenance returns a maintenance that drains the nodes that match.
func newMaintenance(name string, nodes v1.NodeSelectorTerm) *coordinationv1alpha1.NodeMaintenance {
	return &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			Stage:        coordinationv1alpha1.NodeMaintenanceStageDrain,
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{nodes}},
		},
	}
}
