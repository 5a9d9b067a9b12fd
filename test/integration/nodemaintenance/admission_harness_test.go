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
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientset "k8s.io/client-go/kubernetes"
	maintenanceclient "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	"k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	kubeapiservertesting "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
)

const (
	admissionZoneLabel = "topology.kubernetes.io/zone"
	// admissionGuest has all permissions on NodeMaintenances, and none on nodes.
	admissionGuest = "guest@example.com"
	// admissionZoneAdmin may also delete the nodes of zone a, listed by name.
	admissionZoneAdmin = "zone-admin@example.com"
	// admissionFleetAdmin may also delete all nodes, as a member of admissionFleetGroup.
	admissionFleetAdmin = "fleet-admin@example.com"
	admissionFleetGroup = "fleet-admins"
	// admissionKubelet is the kubelet of worker-1. It has more permissions than other kubelets, so
	// that only admission can deny its requests.
	admissionKubelet = "system:node:worker-1"
	// admissionAgent monitors nodes: it may create them, and write their status.
	admissionAgent = "agent@example.com"
)

// admissionCluster is an API server with RBAC and nodes, but no controllers.
type admissionCluster struct {
	t      *testing.T
	config *rest.Config
	client clientset.Interface
}

// newAdmissionCluster starts an API server that stops when the test ends.
func newAdmissionCluster(t *testing.T) *admissionCluster {
	t.Helper()
	c := startAdmissionServer(t, "RBAC", false)
	c.createNodes()
	c.grantAll()
	c.awaitNodes()
	return c
}

// startAdmissionServer starts an API server with these authorizers, and this state of the gate of
// kubelets.
func startAdmissionServer(t *testing.T, authorizers string, kubelets bool) *admissionCluster {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true, features.NodeMaintenanceAwareKubelet: kubelets,
	})
	server := kubeapiservertesting.StartTestServerOrDie(t, nil, append(framework.DefaultTestServerFlags(),
		"--authorization-mode="+authorizers,
		"--enable-admission-plugins=NodeRestriction",
		"--runtime-config=coordination.k8s.io/v1alpha1=true"), framework.SharedEtcd())
	t.Cleanup(server.TearDownFn)
	config := server.ClientConfig
	config.WarningHandler = rest.NoWarnings{}
	return &admissionCluster{t: t, config: config, client: clientset.NewForConfigOrDie(config)}
}

func (c *admissionCluster) createNodes() {
	c.t.Helper()
	for name, labels := range map[string]map[string]string{
		"worker-1":  {admissionZoneLabel: "a"},
		"worker-2":  {admissionZoneLabel: "a"},
		"worker-3":  {admissionZoneLabel: "b"},
		"control-1": {admissionZoneLabel: "c", "node-role.kubernetes.io/control-plane": ""},
	} {
		if _, err := c.client.CoreV1().Nodes().Create(c.t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
			c.t.Fatalf("creating node %s: %v", name, err)
		}
	}
}

// grantAll grants the users of these tests their permissions, and waits until they are effective.
func (c *admissionCluster) grantAll() {
	c.t.Helper()
	onMaintenances := rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"nodemaintenances", "nodemaintenances/status"}, Verbs: []string{"*"}}
	onNodes := func(names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"*"}, ResourceNames: names}
	}
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
	}
	c.grant("admission-guest", user(admissionGuest), onMaintenances)
	c.grant("admission-zone-admin", user(admissionZoneAdmin), onMaintenances, onNodes("worker-1", "worker-2"))
	c.grant("admission-fleet-admins", rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: admissionFleetGroup}, onMaintenances, onNodes())
	c.grant("admission-kubelet", user(admissionKubelet), onMaintenances, onNodes())
	c.grant("admission-agent", user(admissionAgent), rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"get", "create", "update", "patch"},
	})
	c.awaitPermission(admissionAgent, authorizationv1.ResourceAttributes{Verb: "update", Resource: "nodes", Subresource: "status"})
	for user, node := range map[string]string{admissionGuest: "", admissionZoneAdmin: "worker-1", admissionFleetAdmin: "worker-1", admissionKubelet: "worker-1"} {
		c.awaitPermission(user, authorizationv1.ResourceAttributes{Verb: "delete", Group: "coordination.k8s.io", Resource: "nodemaintenances"})
		if node != "" {
			c.awaitPermission(user, authorizationv1.ResourceAttributes{Verb: "delete", Resource: "nodes", Name: node})
		}
	}
}

func (c *admissionCluster) grant(name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	c.t.Helper()
	roles := c.client.RbacV1()
	if _, err := roles.ClusterRoles().Create(c.t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating the role %s: %v", name, err)
	}
	if _, err := roles.ClusterRoleBindings().Create(c.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{subject},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("binding the role %s: %v", name, err)
	}
}

func (c *admissionCluster) awaitPermission(user string, permission authorizationv1.ResourceAttributes) {
	c.t.Helper()
	reviews := c.clientOf(user, nil).AuthorizationV1().SelfSubjectAccessReviews()
	c.eventually("the permission of "+user, func(ctx context.Context) (bool, string) {
		review, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &permission}}, metav1.CreateOptions{})
		if err != nil {
			return false, err.Error()
		}
		return review.Status.Allowed, review.Status.Reason
	})
}

// awaitNodes waits until the cache of the admission plugin contains all nodes.
func (c *admissionCluster) awaitNodes() {
	c.t.Helper()
	c.eventually("the nodes", func(ctx context.Context) (bool, string) {
		_, err := c.maintenancesOf(admissionGuest).Create(ctx, admissionMaintenance("probe", admissionZone("a", "b", "c")), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return false, "no error"
		}
		return strings.Contains(err.Error(), `"control-1", "worker-1", "worker-2", "worker-3",`), err.Error()
	})
}

func (c *admissionCluster) eventually(what string, condition func(ctx context.Context) (met bool, state string)) {
	c.t.Helper()
	state := "unknown"
	err := wait.PollUntilContextTimeout(c.t.Context(), pollInterval, pollTimeout, true, func(context.Context) (met bool, err error) {
		met, state = condition(c.t.Context())
		return met, nil
	})
	if err != nil {
		c.t.Fatalf("waiting for %s: %v; last state: %s", what, err, state)
	}
}

// admissionWarnings records the warnings of the plugin to a user.
type admissionWarnings struct {
	lock  sync.Mutex
	texts []string
}

// HandleWarningHeader records warnings about the selector only: a test binary has no version, so
// the server also warns about every alpha API.
func (w *admissionWarnings) HandleWarningHeader(_ int, _ string, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if strings.HasPrefix(text, "spec.nodeSelector ") {
		w.texts = append(w.texts, text)
	}
}

// clientOf returns a client that impersonates the user.
func (c *admissionCluster) clientOf(user string, warnings *admissionWarnings) clientset.Interface {
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = user
	switch user {
	case admissionKubelet:
		config.Impersonate.Groups = []string{"system:nodes", "system:authenticated"}
	case admissionFleetAdmin:
		config.Impersonate.Groups = []string{admissionFleetGroup, "system:authenticated"}
	}
	if warnings != nil {
		config.WarningHandler = warnings
	}
	return clientset.NewForConfigOrDie(config)
}

func (c *admissionCluster) maintenancesOf(user string) maintenanceclient.NodeMaintenanceInterface {
	return c.clientOf(user, nil).CoordinationV1alpha1().NodeMaintenances()
}

// maintenances returns the client of an administrator with all permissions.
func (c *admissionCluster) maintenances() maintenanceclient.NodeMaintenanceInterface {
	return c.client.CoordinationV1alpha1().NodeMaintenances()
}

// create creates a maintenance as an administrator. It is deleted when the test ends.
func (c *admissionCluster) create(t *testing.T, maintenance *coordinationv1alpha1.NodeMaintenance) *coordinationv1alpha1.NodeMaintenance {
	t.Helper()
	created, err := c.maintenances().Create(t.Context(), maintenance, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating %s: %v", maintenance.Name, err)
	}
	c.endWith(t, created.Name)
	return created
}

// endWith deletes a maintenance when the test ends, even if it has finalizers.
func (c *admissionCluster) endWith(t *testing.T, name string) {
	t.Cleanup(func() {
		ctx := context.Background()
		if _, err := c.maintenances().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("removing finalizers of %s: %v", name, err)
		}
		if err := c.maintenances().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting %s: %v", name, err)
		}
	})
}

func (c *admissionCluster) get(t *testing.T, name string) *coordinationv1alpha1.NodeMaintenance {
	t.Helper()
	maintenance, err := c.maintenances().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return maintenance
}

// admissionMaintenance returns a maintenance in stage Drain.
func admissionMaintenance(name string, terms ...v1.NodeSelectorTerm) *coordinationv1alpha1.NodeMaintenance {
	return &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: terms},
			Stage:        coordinationv1alpha1.NodeMaintenanceStageDrain,
		},
	}
}

func admissionZone(names ...string) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: admissionZoneLabel, Operator: v1.NodeSelectorOpIn, Values: names}}}
}

func admissionNamed(name string) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}
}

// admissionExpectDenied fails the test unless the error contains the texts of the plugin: RBAC may
// deny the request too, which would prove nothing here.
func admissionExpectDenied(t *testing.T, what string, err error, texts ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(err.Error(), text) }) {
		t.Errorf("%s: %v, must be forbidden because %q", what, err, texts)
	}
}

func admissionExpectAllowed(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
