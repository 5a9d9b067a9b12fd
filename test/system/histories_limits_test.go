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
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

const (
	// shortestLimit and longestLimit are how long a quota or a policy is there. API servers take a second to
	// follow a policy.
	shortestLimit = 3 * time.Second
	longestLimit  = 9 * time.Second
	// probeInterval is how often is tried whether it refuses anything.
	probeInterval = 500 * time.Millisecond
)

// historyLimit is a quota or a policy that appears and goes.
type historyLimit struct {
	name string
	// create makes it; n is a random number.
	create func(ctx context.Context, client clientset.Interface, namespace string, n int) error
	remove func(ctx context.Context, client clientset.Interface, namespace string) error
	// probe does nothing, but is refused as what others do.
	probe func(ctx context.Context, client clientset.Interface, namespace string) error
}

var historyLimits = []historyLimit{
	quota("quota of pods", v1.ResourcePods, 20, probePod),
	quota("quota of requests", "count/evictionrequests.coordination.k8s.io", 5, probeRequest),
	policy("policy for requests", admissionregistrationv1.Create, "coordination.k8s.io", "evictionrequests", "false", probeRequest),
	policy("policy for taints", admissionregistrationv1.Update, "", "nodes",
		"object.spec.?taints.orValue([]) == oldObject.spec.?taints.orValue([])", probeNode(`{"spec":{"taints":[{"key":"probe","effect":"PreferNoSchedule"}]}}`)),
	policy("policy for cordons", admissionregistrationv1.Update, "", "nodes",
		"object.spec.?unschedulable.orValue(false) == oldObject.spec.?unschedulable.orValue(false)", probeNode(`{"spec":{"unschedulable":true}}`)),
}

// quota allows fewer than a number of objects.
func quota(name string, of v1.ResourceName, below int, probe func(context.Context, clientset.Interface, string) error) historyLimit {
	object := strings.ReplaceAll(name, " ", "-")
	return historyLimit{
		name: name, probe: probe,
		create: func(ctx context.Context, client clientset.Interface, namespace string, n int) error {
			_, err := client.CoreV1().ResourceQuotas(namespace).Create(ctx, &v1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Name: object},
				Spec:       v1.ResourceQuotaSpec{Hard: v1.ResourceList{of: *resource.NewQuantity(int64(n%below), resource.DecimalSI)}},
			}, metav1.CreateOptions{})
			return err
		},
		remove: func(ctx context.Context, client clientset.Interface, namespace string) error {
			return client.CoreV1().ResourceQuotas(namespace).Delete(ctx, object, metav1.DeleteOptions{})
		},
	}
}

// policy refuses an operation unless an expression is true.
func policy(name string, operation admissionregistrationv1.OperationType, group, resources, expression string, probe func(context.Context, clientset.Interface, string) error) historyLimit {
	object := strings.ReplaceAll(name, " ", "-")
	rule := admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resources}}
	return historyLimit{
		name: name, probe: probe,
		create: func(ctx context.Context, client clientset.Interface, _ string, _ int) error {
			_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: object},
				Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
					MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
						RuleWithOperations: admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{operation}, Rule: rule},
					}}},
					Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: "refused by the " + name}},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: object},
				Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
					PolicyName: object, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				},
			}, metav1.CreateOptions{})
			return err
		},
		remove: func(ctx context.Context, client clientset.Interface, _ string) error {
			err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, object, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			return client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, object, metav1.DeleteOptions{})
		},
	}
}

func probePod(ctx context.Context, client clientset.Interface, namespace string) error {
	_, err := client.CoreV1().Pods(namespace).Create(ctx, newScheduledPod("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// probeRequest asks for the eviction of a pod that there is: the others are refused in any case.
func probeRequest(ctx context.Context, client clientset.Interface, namespace string) error {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(pods.Items) == 0 {
		return err
	}
	uid := string(pods.Items[0].UID)
	_, err = client.CoordinationV1alpha1().EvictionRequests(namespace).Create(ctx, &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: uid},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pods.Items[0].Name, UID: uid}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "probe.example.com"}},
		},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func probeNode(patch string) func(context.Context, clientset.Interface, string) error {
	return func(ctx context.Context, client clientset.Interface, _ string) error {
		_, err := client.CoreV1().Nodes().Patch(ctx, "node-0", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// limit has a quota or a policy refuse what others do, for a few seconds.
func (a *actor) limit(ctx context.Context) {
	l := historyLimits[a.oneOf(len(historyLimits))]
	n, duration := a.random.Int(), shortestLimit+time.Duration(a.random.Int64N(int64(longestLimit-shortestLimit)))
	_ = l.create(ctx, a.client(), a.namespace, n) // Half of it may be there.
	for end := time.Now().Add(duration); ctx.Err() == nil && time.Now().Before(end); {
		if isRefusal(l.probe(ctx, a.test.clients[a.acts%len(a.test.clients)], a.namespace)) {
			a.test.countRefusal(l.name)
		}
		select {
		case <-ctx.Done():
		case <-time.After(probeInterval):
		}
	}
	_ = l.remove(ctx, a.client(), a.namespace) // What is left goes at the end.
}

// isRefusal reports whether an error is that of a quota or of a policy, which says that what it refuses is invalid.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "refused by the policy")
}

func (t *historyTest) countRefusal(limit string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.refusals[limit]++
}

// removeLimits removes what is left of quotas and policies.
func (t *historyTest) removeLimits(tCtx ktesting.TContext) {
	tCtx.Helper()
	for _, l := range historyLimits {
		await(tCtx, "the "+l.name+" to be gone", func(tCtx ktesting.TContext) {
			if err := l.remove(tCtx, tCtx.Client(), tCtx.Namespace()); !apierrors.IsNotFound(err) {
				tCtx.Fatalf("removing it: %v, must be not found", err)
			}
		})
	}
}

// describeRefusals says how often a quota or a policy refused something.
func (t *historyTest) describeRefusals() string {
	var text []string
	for _, limit := range slices.Sorted(maps.Keys(t.refusals)) {
		text = append(text, fmt.Sprintf("%s %d", limit, t.refusals[limit]))
	}
	return strings.Join(text, ", ")
}
