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

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/hack/controlplane"
	"k8s.io/utils/ptr"
)

const (
	namespace = "drain"
	nodeName  = "node" // The one of controlplane.NewPod.

	// admins may do everything.
	admins = "system:masters"
	// drainers may do what drain did before there were maintenances, and nothing else.
	drainers = "drainers"
)

// drainTest is what the scenarios share.
type drainTest struct {
	*controlplane.Namespace
	plane  *controlplane.ControlPlane
	runner *runner
}

func newDrainTest(plane *controlplane.ControlPlane, dir string) (*drainTest, error) {
	client, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return &drainTest{
		Namespace: &controlplane.Namespace{Client: client, Name: namespace},
		plane:     plane,
		runner:    &runner{config: plane.Config(), dir: dir},
	}, nil
}

// setUp creates what all scenarios need. There is no controller manager: pods and nodes
// are what they are written to be.
func (t *drainTest) setUp(ctx context.Context) error {
	_, err := t.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // By an earlier server, on the same etcd.
	}
	_, accountErr := t.Client.CoreV1().ServiceAccounts(namespace).Create(ctx, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	labels := map[string]string{"app": "daemon"}
	_, daemonErr := t.Client.AppsV1().DaemonSets(namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "daemon"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "main"}}}},
		},
	}, metav1.CreateOptions{})
	_, roleErr := t.Client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: drainers}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	_, bindingErr := t.Client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: drainers},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: drainers},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: drainers}},
	}, metav1.CreateOptions{})
	if err := errors.Join(err, accountErr, daemonErr, roleErr, bindingErr); err != nil {
		return fmt.Errorf("creating what all scenarios need: %w", err)
	}
	return nil
}

// reset makes the cluster hold this node with these pods, and nothing else.
func (t *drainTest) reset(ctx context.Context, s *scenario) error {
	everything := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	err := errors.Join(
		t.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, everything, metav1.ListOptions{}),
		t.Client.CoreV1().Nodes().DeleteCollection(ctx, everything, metav1.ListOptions{}),
	)
	if s.maintenance != nil {
		err = errors.Join(err, t.Client.CoordinationV1alpha1().NodeMaintenances().DeleteCollection(ctx, everything, metav1.ListOptions{}))
	}
	if err != nil {
		return fmt.Errorf("deleting what is left of the last scenario: %w", err)
	}
	node, err := t.Client.CoreV1().Nodes().Create(ctx, s.node, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating the node: %w", err)
	}
	node.Status = s.node.Status
	if _, err := t.Client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the status of the node: %w", err)
	}
	for _, pod := range s.pods {
		if _, err := t.CreateReadyPod(ctx, pod.DeepCopy()); err != nil {
			return err
		}
	}
	if s.maintenance == nil {
		return nil
	}
	if _, err := t.Client.CoordinationV1alpha1().NodeMaintenances().Create(ctx, s.maintenance, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the maintenance: %w", err)
	}
	return nil
}

func newNode() *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{"pool": "a"}}}
}

func cordoned(node *v1.Node) *v1.Node {
	node.Spec.Unschedulable = true
	return node
}

// inProgress sets a condition that anybody may have invented.
func inProgress(node *v1.Node) *v1.Node {
	node.Status.Conditions = []v1.NodeCondition{{Type: coordinationv1alpha1.NodeMaintenanceInProgress, Status: v1.ConditionTrue}}
	return node
}

// maintained sets what only the fork knows.
func maintained(node *v1.Node) *v1.Node {
	node.Status.MaintenanceStatus = &v1.MaintenanceStatus{}
	return node
}

func newMaintenance(name string) *coordinationv1alpha1.NodeMaintenance {
	return &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			Stage: coordinationv1alpha1.NodeMaintenanceStageDrain,
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: "pool", Operator: v1.NodeSelectorOpIn, Values: []string{"a"}}},
			}}},
		},
	}
}

func ownedBy(kind string, pod *v1.Pod) *v1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "daemon", UID: "1", Controller: ptr.To(true)}}
	return pod
}

// managed is a pod that drain takes without a flag.
func managed(name string, interceptors ...string) *v1.Pod {
	return ownedBy("ReplicaSet", controlplane.NewPod(name, interceptors...))
}

func registered(pod *v1.Pod) *v1.Pod {
	pod.Annotations = map[string]string{coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + controlplane.Interceptor: "100"}
	return pod
}

func withEmptyDir(pod *v1.Pod) *v1.Pod {
	pod.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	return pod
}
