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

package nodemaintenance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const (
	// pollInterval is short, because the tests wait for hundreds of states.
	pollInterval = 20 * time.Millisecond

	// pollTimeout is how long a test waits for a state.
	pollTimeout = testcluster.PollTimeout

	// maintenanceUser and evictionUser are the users of the controllers in
	// kube-controller-manager. All tests run them with the permissions of their bootstrap roles.
	maintenanceUser = testcluster.MaintenanceUser
	evictionUser    = testcluster.EvictionUser

	// stubborn is an interceptor without a controller: its pods stay until a test deletes them or
	// reports as the interceptor.
	stubborn = "stubborn.example.com"
)

// cluster is an API server that one test at a time uses: it has its own nodes and namespace.
type cluster struct {
	*testcluster.Cluster
	t         *testing.T
	config    *rest.Config
	client    clientset.Interface
	namespace string
	// clock is the time of controllers that use it. It advances while a test waits.
	clock *testingclock.FakeClock
	// frozen stops the clock while a test waits.
	frozen bool
}

// startAPIServer starts an API server with the alpha API enabled by flag. The server stops when the
// test ends.
func startAPIServer(t *testing.T, etcd *storagebackend.Config, gateOn bool, flags ...string) *rest.Config {
	t.Helper()
	return testcluster.StartAPIServer(t, etcd, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI:         true,
		features.DeclarativeNodeMaintenance: gateOn,
		// Pods keep spec.schedulingGroup only with this gate.
		features.GenericWorkload: true,
	}, flags...)
}

// newCluster returns a cluster with a new namespace and the client of an administrator. The
// remaining maintenances, pods and nodes are removed when the test ends.
func newCluster(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	c := clusterIn(testcluster.New(t, config, "nodemaintenance"))
	t.Cleanup(c.removeAll)
	return c
}

// clusterIn returns a cluster for an existing namespace, without this cleanup.
func clusterIn(c *testcluster.Cluster) *cluster {
	return &cluster{Cluster: c, t: c.T, config: c.Config, client: c.Client, namespace: c.Namespace, clock: newFakeClock()}
}

func (c *cluster) removeAll() {
	ctx := context.WithoutCancel(c.t.Context())
	maintenances, err := c.client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
	if err == nil {
		for _, m := range maintenances.Items {
			_, _ = c.client.CoordinationV1alpha1().NodeMaintenances().Patch(ctx, m.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			_ = c.client.CoordinationV1alpha1().NodeMaintenances().Delete(ctx, m.Name, metav1.DeleteOptions{})
		}
	}
	if err := c.client.CoreV1().Pods(c.namespace).DeleteCollection(ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{}); err != nil {
		c.t.Errorf("removing pods: %v", err)
	}
	if err := c.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		c.t.Errorf("removing nodes: %v", err)
	}
}

// startControllers starts both controllers and returns a function that stops the nodemaintenance
// controller.
func (c *cluster) startControllers() (stop func()) {
	c.t.Helper()
	c.startEvictionController()
	return c.StartMaintenanceController(c.ClientOf(maintenanceUser), clock.RealClock{})
}

// startEvictionController starts the evictionrequest controller with the real clock.
func (c *cluster) startEvictionController() (stop func()) {
	c.t.Helper()
	return c.startEvictionControllerAt(clock.RealClock{})
}

// startEvictionControllerAt starts it with the given clock. The API server must use the same clock:
// see SetServerTime.
func (c *cluster) startEvictionControllerAt(now clock.WithTicker) (stop func()) {
	c.t.Helper()
	return c.StartEvictionController(c.ClientOf(evictionUser), "", now)
}

// eventually polls until the condition is met. On timeout, it fails the test with the last state.
// Each failed attempt advances c.clock by a second, unless it is frozen.
func (c *cluster) eventually(what string, condition func(ctx context.Context) (met bool, state string)) {
	c.t.Helper()
	state := "unknown"
	err := wait.PollUntilContextTimeout(c.t.Context(), pollInterval, pollTimeout, true, func(context.Context) (met bool, err error) {
		// Do not use the context of the poll: its cancellation would hide the last state.
		if met, state = condition(c.t.Context()); !met && !c.frozen {
			c.clock.Step(time.Second)
		}
		return met, nil
	})
	if err != nil {
		c.t.Fatalf("waiting for %s: %v; last state: %s", what, err, state)
	}
}

// createNode creates a node, with labels "key=value".
func (c *cluster) createNode(name string, labels ...string) *v1.Node {
	c.t.Helper()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	// The kubelet sets Ready. The controller must not remove it: see describeNode.
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	node.Status.DeclaredFeatures = []string{maintenance.KubeletFeature}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		node.Labels[key] = value
	}
	created, err := c.client.CoreV1().Nodes().Create(c.t.Context(), node, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating node %s: %v", name, err)
	}
	return created
}

func (c *cluster) node(name string) *v1.Node {
	c.t.Helper()
	node, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading node %s: %v", name, err)
	}
	return node
}

func (c *cluster) patchNode(name, patch string) {
	c.t.Helper()
	if _, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("patching node %s: %v", name, err)
	}
}

// newPod returns a pod on a node. No kubelet runs there: because the pod has no grace period, a
// deletion removes it immediately.
func newPod(name, node string, options ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod": name}},
		Spec: v1.PodSpec{
			NodeName:                      node,
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []v1.Container{{Name: "main", Image: "main"}},
		},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

// atPriority sets the priority of the pod, with a class that createPod creates.
func atPriority(priority int32) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.Priority = &priority
		pod.Spec.PriorityClassName = fmt.Sprintf("p%d", priority)
	}
}

func withInterceptor(name string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
	}
}

func withLabel(key, value string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Labels[key] = value }
}

// ofDaemonSet makes the pod one that a DaemonSet controls.
func ofDaemonSet(name string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
	}
}

// static makes the pod the mirror pod of a static pod.
func static(pod *v1.Pod) { pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "mirror"} }

func (c *cluster) createPod(pod *v1.Pod) *v1.Pod {
	c.t.Helper()
	if class := pod.Spec.PriorityClassName; class != "" {
		c.createPriorityClass(class, *pod.Spec.Priority)
	}
	var created *v1.Pod
	c.eventually("pod "+pod.Name+" to be created", func(ctx context.Context) (bool, string) {
		var err error
		created, err = c.client.CoreV1().Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, err.Error() // The API server does not know the new class yet.
		}
		if err != nil {
			c.t.Fatalf("creating pod %s: %v", pod.Name, err)
		}
		return true, ""
	})
	return created
}

// createPods creates several pods and returns them.
func (c *cluster) createPods(count int, name, node string, options ...func(*v1.Pod)) []*v1.Pod {
	c.t.Helper()
	pods := make([]*v1.Pod, count)
	for i := range pods {
		pods[i] = c.createPod(newPod(fmt.Sprintf("%s-%d", name, i), node, options...))
	}
	return pods
}

func (c *cluster) deletePods(pods []*v1.Pod) {
	c.t.Helper()
	for _, pod := range pods {
		if err := c.client.CoreV1().Pods(c.namespace).Delete(c.t.Context(), pod.Name, *metav1.NewDeleteOptions(0)); err != nil && !apierrors.IsNotFound(err) {
			c.t.Fatalf("deleting pod %s: %v", pod.Name, err)
		}
	}
}

// newMaintenance returns a maintenance of the nodes that match the selector.
func newMaintenance(name string, stage coordinationv1alpha1.NodeMaintenanceStage, selector *v1.NodeSelector, plan ...v1.DrainPlanEntry) *coordinationv1alpha1.NodeMaintenance {
	return &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordinationv1alpha1.NodeMaintenanceSpec{NodeSelector: selector, Stage: stage, DrainPlan: plan, Reason: "test"},
	}
}

// nodesNamed selects nodes by their names.
func nodesNamed(names ...string) *v1.NodeSelector {
	selector := &v1.NodeSelector{}
	for _, name := range names {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, v1.NodeSelectorTerm{
			MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{name}}},
		})
	}
	return selector
}

// nodesLabeled selects nodes by a label.
func nodesLabeled(key, value string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value}}},
	}}}
}

func (c *cluster) createMaintenance(m *coordinationv1alpha1.NodeMaintenance) *coordinationv1alpha1.NodeMaintenance {
	c.t.Helper()
	created, err := c.client.CoordinationV1alpha1().NodeMaintenances().Create(c.t.Context(), m, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating maintenance %s: %v", m.Name, err)
	}
	return created
}

func (c *cluster) setStage(name string, stage coordinationv1alpha1.NodeMaintenanceStage) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"stage":%q}}`, stage)
	if _, err := c.client.CoordinationV1alpha1().NodeMaintenances().Patch(c.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("moving maintenance %s to stage %s: %v", name, stage, err)
	}
}

func (c *cluster) deleteMaintenance(name string) {
	c.t.Helper()
	if err := c.client.CoordinationV1alpha1().NodeMaintenances().Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatalf("deleting maintenance %s: %v", name, err)
	}
}

func newPriorityClass(name string, priority int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: priority}
}

// createPriorityClass creates a class unless it already exists.
func (c *cluster) createPriorityClass(name string, priority int32) {
	c.t.Helper()
	_, err := c.client.SchedulingV1().PriorityClasses().Create(c.t.Context(), newPriorityClass(name, priority), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		c.t.Fatalf("creating priority class %s: %v", name, err)
	}
}
