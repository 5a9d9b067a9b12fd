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
	// admissionGuest has all rights on NodeMaintenances, and none on nodes.
	admissionGuest = "guest@example.com"
	// admissionZoneAdmin may also delete the nodes of zone a, by their names.
	admissionZoneAdmin = "zone-admin@example.com"
	// admissionFleetAdmin may also delete all nodes, as a member of admissionFleetGroup.
	admissionFleetAdmin = "fleet-admin@example.com"
	admissionFleetGroup = "fleet-admins"
	// admissionKubelet is the kubelet of worker-1. It has more rights than kubelets have:
	// admission alone must hold it back.
	admissionKubelet = "system:node:worker-1"
	// admissionAgent reports how nodes are: it may create them, and write their status.
	admissionAgent = "agent@example.com"
)

// admissionCluster is an API server with RBAC and nodes, but no controllers.
type admissionCluster struct {
	t      *testing.T
	config *rest.Config
	client clientset.Interface
}

// newAdmissionCluster starts an API server that ends with the test.
func newAdmissionCluster(t *testing.T) *admissionCluster {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.DeclarativeNodeMaintenance: true,
	})
	server := kubeapiservertesting.StartTestServerOrDie(t, nil, append(framework.DefaultTestServerFlags(),
		"--authorization-mode=RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--runtime-config=coordination.k8s.io/v1alpha1=true"), framework.SharedEtcd())
	t.Cleanup(server.TearDownFn)
	config := server.ClientConfig
	config.WarningHandler = rest.NoWarnings{}
	c := &admissionCluster{t: t, config: config, client: clientset.NewForConfigOrDie(config)}
	c.createNodes()
	c.grantAll()
	c.awaitNodes()
	return c
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

// grantAll gives the users of these tests their rights, and waits until they count.
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
	c.awaitRight(admissionAgent, authorizationv1.ResourceAttributes{Verb: "update", Resource: "nodes", Subresource: "status"})
	for user, node := range map[string]string{admissionGuest: "", admissionZoneAdmin: "worker-1", admissionFleetAdmin: "worker-1", admissionKubelet: "worker-1"} {
		c.awaitRight(user, authorizationv1.ResourceAttributes{Verb: "delete", Group: "coordination.k8s.io", Resource: "nodemaintenances"})
		if node != "" {
			c.awaitRight(user, authorizationv1.ResourceAttributes{Verb: "delete", Resource: "nodes", Name: node})
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

func (c *admissionCluster) awaitRight(user string, right authorizationv1.ResourceAttributes) {
	c.t.Helper()
	reviews := c.clientOf(user, nil).AuthorizationV1().SelfSubjectAccessReviews()
	c.eventually("the right of "+user, func(ctx context.Context) (bool, string) {
		review, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}, metav1.CreateOptions{})
		if err != nil {
			return false, err.Error()
		}
		return review.Status.Allowed, review.Status.Reason
	})
}

// awaitNodes waits until the admission plugin knows all nodes.
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

// admissionWarnings are what a user reads of the plugin beside the answers.
type admissionWarnings struct {
	lock  sync.Mutex
	texts []string
}

// HandleWarningHeader keeps those about the selector. A test binary has no version, so
// that the server also warns of every alpha API.
func (w *admissionWarnings) HandleWarningHeader(_ int, _ string, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if strings.HasPrefix(text, "spec.nodeSelector ") {
		w.texts = append(w.texts, text)
	}
}

// clientOf returns a client with the rights of that user.
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

// maintenances are those that an administrator with all rights works with.
func (c *admissionCluster) maintenances() maintenanceclient.NodeMaintenanceInterface {
	return c.client.CoordinationV1alpha1().NodeMaintenances()
}

// create stores a maintenance that the test has to have, and ends with it.
func (c *admissionCluster) create(t *testing.T, maintenance *coordinationv1alpha1.NodeMaintenance) *coordinationv1alpha1.NodeMaintenance {
	t.Helper()
	created, err := c.maintenances().Create(t.Context(), maintenance, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating %s: %v", maintenance.Name, err)
	}
	c.endWith(t, created.Name)
	return created
}

// endWith deletes a maintenance when the test ends, whatever its finalizers are.
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

// admissionMaintenance returns one in the stage Drain.
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

// admissionExpectDenied fails unless the plugin names what is missing: a refusal by RBAC
// alone would prove nothing here.
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
