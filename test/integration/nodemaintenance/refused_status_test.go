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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// refuseStatuses creates a policy that refuses what the evictionrequest-controller writes into the status of requests
// in this namespace, waits until it is effective, and returns a function that removes it. The pod is not asked.
func (c *cluster) refuseStatuses(probe *v1.Pod) (allow func()) {
	c.t.Helper()
	name := c.namespace
	policies := c.client.AdmissionregistrationV1()
	if _, err := policies.ValidatingAdmissionPolicies().Create(c.t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": c.namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"coordination.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"evictionrequests/status"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("request.userInfo.username != %q", evictionUser), Message: "not on my watch"}},
		},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating the policy: %v", err)
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(c.t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("binding the policy: %v", err)
	}
	allow = func() {
		_ = policies.ValidatingAdmissionPolicyBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
		_ = policies.ValidatingAdmissionPolicies().Delete(context.Background(), name, metav1.DeleteOptions{})
	}
	c.t.Cleanup(allow)
	requests := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace)
	request, err := requests.Create(c.t.Context(), &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(probe.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: probe.Name, UID: string(probe.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: scaler}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating a request: %v", err)
	}
	c.eventually("the policy", func(ctx context.Context) (bool, string) {
		_, err := c.ClientOf(evictionUser).CoordinationV1alpha1().EvictionRequests(c.namespace).UpdateStatus(ctx, request, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "not on my watch"), fmt.Sprint(err)
	})
	if err := requests.Delete(c.t.Context(), request.Name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatalf("deleting the request: %v", err)
	}
	return allow
}

// testRefusedStatus has a policy refuse what the evictionrequest-controller writes: no object but the maintenance can say
// so.
func testRefusedStatus(t *testing.T, c *cluster) {
	c.createNode("one")
	allow := c.refuseStatuses(c.createPod(newPod("probe", "")))
	c.createPod(newPod("pod", "one", withInterceptor(stubborn)))
	c.StartSharing(c.ClientOf(maintenanceUser), c.ClientOf(evictionUser), clock.RealClock{})
	c.createMaintenance(newMaintenance("m", stageDrain, nodesNamed("one"), planOf()...))
	c.eventually("the blocker", func(context.Context) (bool, string) {
		blockers := c.maintenance("m").Status.DrainStatus.Blockers
		return len(blockers) == 1 && blockers[0].Cause == coordinationv1alpha1.DrainBlockerRequestFailed && blockers[0].SinceTime != nil &&
			strings.Contains(blockers[0].Message, "not on my watch"), fmt.Sprintf("%+v", blockers)
	})
	c.expect("the drain to be blocked", states{"maintenance/m": "Cordon, Drain of 1, finalizer, False: Blocked", "node/one": draining})
	c.awaitEvent("RequestWriteFailed", "pod")
	// The message is wrapped.
	status := strings.Join(strings.Fields(planRun(t, c.config, "status", "m")), " ")
	for _, text := range []string{"! 1 pod in namespace " + c.namespace, "the status of its request cannot be written", "not on my watch"} {
		if !strings.Contains(status, text) {
			t.Errorf("kubectl maintenance status lacks %q:\n%s", text, status)
		}
	}

	allow()
	c.await("the interceptor to become active", states{"request/pod": asked, "maintenance/m": "Cordon, Drain of 1, finalizer, False: Draining"})
}
