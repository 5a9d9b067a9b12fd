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
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/daemon/util"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/ptr"
)

// daemonSetUser is the user of the DaemonSet controller in kube-controller-manager.
const daemonSetUser = "system:serviceaccount:kube-system:daemon-set-controller"

// pool is the label of the nodes that DaemonSets select.
const pool = "pool=work"

// interception is whether the DaemonSet controller is an interceptor, as set by its feature gate.
type interception bool

const (
	intercepts       interception = true
	doesNotIntercept interception = false
)

// startDaemonSetController starts the controller with the permissions of its bootstrap role. As in
// kube-controller-manager, its informers use another client. When stop returns, none of its
// goroutines is running.
func (c *cluster) startDaemonSetController(interception interception) (stop func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	client := c.ClientOf(daemonSetUser)
	factory := informers.NewSharedInformerFactory(c.client, 0)
	core, coordination := factory.Core().V1(), factory.Coordination().V1alpha1()
	controller, err := daemon.NewDaemonSetsController(ctx, factory.Apps().V1().DaemonSets(), factory.Apps().V1().ControllerRevisions(),
		core.Pods(), core.Nodes(), client, flowcontrol.NewBackOff(time.Second, time.Minute))
	if err != nil {
		c.t.Fatalf("creating the DaemonSet controller: %v", err)
	}
	stopInterceptor := func() {}
	if interception == intercepts {
		interceptor, err := daemon.NewInterceptor(controller, coordination.NodeMaintenances(), coordination.EvictionRequests(),
			core.Nodes(), core.Pods(), factory.Scheduling().V1().PriorityClasses(), client)
		if err != nil {
			c.t.Fatalf("creating the interceptor of the DaemonSet controller: %v", err)
		}
		stopInterceptor = c.Run(ctx, cancel, factory, func() { interceptor.Run(ctx) })
	}
	stopController := c.Run(ctx, cancel, factory, func() { controller.Run(ctx, 2) })
	return func() {
		stopInterceptor()
		stopController()
	}
}

// startKubelets simulates the scheduler and the kubelets for pods of DaemonSets: it binds each pod
// to its node and makes it ready. Pods with a grace period terminate until endDaemons.
func (c *cluster) startKubelets() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(c.namespace))
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.advancePod(ctx, obj.(*v1.Pod)) },
		UpdateFunc: func(_, obj any) { c.advancePod(ctx, obj.(*v1.Pod)) },
	}); err != nil {
		c.t.Fatalf("watching pods: %v", err)
	}
	c.Run(ctx, cancel, factory, func() { <-ctx.Done() })
}

func (c *cluster) advancePod(ctx context.Context, pod *v1.Pod) {
	node, err := util.GetTargetNodeName(pod)
	switch {
	case err != nil, pod.DeletionTimestamp != nil, maintenance.PodTypeOf(pod) != v1.PodTypeDaemonSet:
		return
	case pod.Spec.NodeName == "":
		err = c.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: v1.ObjectReference{Kind: "Node", Name: node},
		}, metav1.CreateOptions{})
	case pod.Status.Phase == v1.PodPending:
		patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`,
			pod.UID, time.Now().UTC().Format(time.RFC3339))
		_, err = c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		c.t.Errorf("simulating the kubelet for pod %s: %v", pod.Name, err)
	}
}

// newDaemonSet returns a DaemonSet for the nodes of the pool. Its pods have a class of the given
// priority, and no grace period.
func newDaemonSet(name string, priority int32, options ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	key, value, _ := strings.Cut(pool, "=")
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"daemon": name}},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"daemon": name}},
				Spec: v1.PodSpec{
					NodeSelector:                  map[string]string{key: value},
					PriorityClassName:             fmt.Sprintf("p%d", priority),
					TerminationGracePeriodSeconds: ptr.To[int64](0),
					Containers:                    []v1.Container{{Name: "main", Image: "v1"}},
				},
			},
		},
	}
	for _, option := range options {
		option(ds)
	}
	return ds
}

// slowly gives the pods a grace period: once deleted, they terminate until endDaemons.
func slowly(ds *appsv1.DaemonSet) {
	ds.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600)
}

// interceptedBy adds an interceptor that precedes that of the controller.
func interceptedBy(name string) func(*appsv1.DaemonSet) {
	return func(ds *appsv1.DaemonSet) {
		ds.Spec.Template.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: name}}
	}
}

// surging makes rolling updates start the new pod before the old one is deleted.
func surging(ds *appsv1.DaemonSet) {
	ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))},
	}
}

// createDaemonSet creates the DaemonSet and its priority class. The test deletes it when it ends.
func (c *cluster) createDaemonSet(ds *appsv1.DaemonSet) *appsv1.DaemonSet {
	c.t.Helper()
	var priority int32
	if _, err := fmt.Sscanf(ds.Spec.Template.Spec.PriorityClassName, "p%d", &priority); err != nil {
		c.t.Fatalf("reading the priority of %s: %v", ds.Name, err)
	}
	c.createPriorityClass(ds.Spec.Template.Spec.PriorityClassName, priority)
	created, err := c.client.AppsV1().DaemonSets(c.namespace).Create(c.t.Context(), ds, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating DaemonSet %s: %v", ds.Name, err)
	}
	c.t.Cleanup(func() {
		err := c.client.AppsV1().DaemonSets(c.namespace).Delete(context.WithoutCancel(c.t.Context()), ds.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			c.t.Errorf("removing DaemonSet %s: %v", ds.Name, err)
		}
	})
	return created
}

// roll starts a rolling update of the DaemonSets to the version.
func (c *cluster) roll(version string, names ...string) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, version)
	for _, name := range names {
		if _, err := c.client.AppsV1().DaemonSets(c.namespace).Patch(c.t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			c.t.Fatalf("rolling DaemonSet %s: %v", name, err)
		}
	}
}

// daemons returns the pods of a DaemonSet for a node, including those that are not bound to it yet.
func (c *cluster) daemons(ctx context.Context, client clientset.Interface, daemonSet, node string) ([]v1.Pod, error) {
	pods, err := client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "daemon=" + daemonSet})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(pod v1.Pod) bool {
		target, err := util.GetTargetNodeName(&pod)
		return err != nil || target != node
	}), nil
}

// daemon returns the only pod of a DaemonSet on a node.
func (c *cluster) daemon(daemonSet, node string) *v1.Pod {
	c.t.Helper()
	pods, err := c.daemons(c.t.Context(), c.client, daemonSet, node)
	if err != nil || len(pods) != 1 {
		c.t.Fatalf("DaemonSet %s has %d pods on node %s, want one (%v)", daemonSet, len(pods), node, err)
	}
	return &pods[0]
}

// endDaemons removes the pod, as the kubelet does when its containers have terminated.
func (c *cluster) endDaemons(daemonSet, node string) {
	c.t.Helper()
	c.deletePod(c.daemon(daemonSet, node))
}

// describeDaemons returns, for each pod of a DaemonSet on a node, its version, whether it runs, and
// the state of its request, if it has one.
func (c *cluster) describeDaemons(ctx context.Context, daemonSet, node string) string {
	pods, err := c.daemons(ctx, c.client, daemonSet, node)
	if err != nil {
		return err.Error()
	}
	var texts []string
	for _, pod := range pods {
		text := pod.Spec.Containers[0].Image
		switch {
		case pod.DeletionTimestamp != nil:
			text += " terminating"
		case pod.Status.Phase == v1.PodRunning:
			text += " runs"
		default:
			text += " " + string(pod.Status.Phase)
		}
		request, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err == nil {
			text += ", " + string(evictionrequest.StateOf(request))
		} else if !apierrors.IsNotFound(err) {
			text += ", " + err.Error()
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return "none"
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

func describeDaemonSet(ds *appsv1.DaemonSet) string {
	s := ds.Status
	text := fmt.Sprintf("%d of %d, %d updated", s.NumberReady, s.DesiredNumberScheduled, s.UpdatedNumberScheduled)
	if s.ObservedGeneration != ds.Generation {
		text += ", behind"
	}
	if s.CurrentNumberScheduled != s.DesiredNumberScheduled || s.NumberUnavailable != 0 || s.NumberMisscheduled != 0 {
		text += fmt.Sprintf(", %d current, %d unavailable, %d misscheduled", s.CurrentNumberScheduled, s.NumberUnavailable, s.NumberMisscheduled)
	}
	return text
}

// expectNoneCreatedWithinTargets fails the test if a pod of a DaemonSet was created for a node with
// targets that included it at that time. It requires that the DaemonSets have all their pods when a
// node gets its targets: otherwise the controller may create pods before it sees the targets.
func (c *cluster) expectNoneCreatedWithinTargets(h *testcluster.History) {
	c.t.Helper()
	nodes, seen, created := map[string]*v1.Node{}, map[types.UID]bool{}, 0
	for _, change := range h.CatchUp(c.Cluster) {
		switch object := change.Object.(type) {
		case *v1.Node:
			nodes[object.Name] = object
		case *v1.Pod:
			if seen[object.UID] || maintenance.PodTypeOf(object) != v1.PodTypeDaemonSet {
				continue
			}
			seen[object.UID] = true
			created++
			name, err := util.GetTargetNodeName(object)
			node := nodes[name]
			if err != nil || node == nil || node.Status.MaintenanceStatus == nil {
				continue
			}
			targets, err := maintenance.NewTargets(node.Status.MaintenanceStatus.DrainTargets)
			if err != nil || targets.Take(object) {
				c.t.Errorf("at version %d: pod %s was created for node %s, whose targets are %s", change.Version, object.Name, name, targets)
			}
		}
	}
	if created == 0 {
		c.t.Error("no pod of a DaemonSet was created: nothing was checked")
	}
}

// interceptorEntry returns the status that the DaemonSet controller has reported for a pod.
func (c *cluster) interceptorEntry(pod *v1.Pod) *coordinationv1alpha1.InterceptorStatus {
	c.t.Helper()
	request := c.request(pod)
	for i := range request.Status.Interceptors {
		if request.Status.Interceptors[i].Name == coordinationv1alpha1.EvictionInterceptorDaemonSet {
			return &request.Status.Interceptors[i]
		}
	}
	c.t.Fatalf("the request for pod %s has the interceptors %v", pod.Name, request.Status.Interceptors)
	return nil
}

func (c *cluster) deleteDaemonSet(name string) {
	c.t.Helper()
	options := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	if err := c.client.AppsV1().DaemonSets(c.namespace).Delete(c.t.Context(), name, options); err != nil {
		c.t.Fatalf("deleting DaemonSet %s: %v", name, err)
	}
}

// orphan removes the owner references of a pod.
func (c *cluster) orphan(pod *v1.Pod) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"ownerReferences":null}}`, pod.UID)
	if _, err := c.client.CoreV1().Pods(c.namespace).Patch(c.t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("removing the owner of pod %s: %v", pod.Name, err)
	}
}
