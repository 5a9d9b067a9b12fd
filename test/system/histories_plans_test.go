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
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/utils/ptr"
)

// historyEnding is what those who decide leave behind.
type historyEnding int

const (
	// asItIs leaves all that was begun: it goes on.
	asItIs historyEnding = iota
	// calledOff has nobody want anything any more: all has to be undone.
	calledOff
	// podsDeleted has the pods deleted that were to be evicted, by their tenants.
	podsDeleted
	endings
)

const (
	// lastRequests is how long it may take until evictions are requested for a drain that wait for budgets.
	lastRequests = 12 * time.Second
	// lastQuota keeps all surges from going on.
	lastQuota = "last"
)

func (t *historyTest) ending() historyEnding {
	return historyEnding(rand.New(rand.NewPCG(t.seed, 3)).IntN(int(endings)))
}

// beginDrain has owners allow no disruption of any pod, and begins with a drain of all nodes in place of all others, which
// cannot be completed then. It returns when evictions wait for that, or after a while. Others go on meanwhile.
func (t *historyTest) beginDrain(tCtx ktesting.TContext, client clientset.Interface) {
	tCtx.Helper()
	namespace := tCtx.Namespace()
	for _, app := range allApps() {
		_ = keepApp(tCtx, client, namespace, app)
	}
	_ = endAll(tCtx, client)
	_ = begin(tCtx, client, allNodes())
	for end := time.Now().Add(lastRequests); !t.isEnough() && time.Now().Before(end); time.Sleep(lookInterval) {
		requests, err := client.CoordinationV1alpha1().EvictionRequests(namespace).List(tCtx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		if at := slices.IndexFunc(requests.Items, func(request coordinationv1alpha1.EvictionRequest) bool { return waitsForBudget(&request) }); at >= 0 {
			tCtx.Logf("pod %s waits for a budget, in a drain", requests.Items[at].Spec.Target.Pod.Name)
			return
		}
	}
}

// latePrefix is that of the maintenances of begin.
const latePrefix = "late-"

// begin creates a maintenance with a name of its own: those that were called off may still be there.
func begin(ctx context.Context, client clientset.Interface, nodes v1.NodeSelectorTerm) (name string) {
	m := newMaintenance("", nodes)
	m.GenerateName = latePrefix
	if created, err := client.CoordinationV1alpha1().NodeMaintenances().Create(ctx, m, metav1.CreateOptions{}); err == nil {
		return created.Name
	}
	return ""
}

// waitsForBudget reports whether a drain wants that the pod of a request is evicted now.
func waitsForBudget(request *coordinationv1alpha1.EvictionRequest) bool {
	return !hasFinished(request) && isForDrain(request) && slices.Contains(request.Status.ActiveInterceptors, coordinationv1alpha1.EvictionInterceptorImperative)
}

// allApps are the labels of all pods but those of DaemonSets.
func allApps() []string {
	apps := slices.Clone(singleApps)
	for i := range historyApps {
		apps = append(apps, fmt.Sprintf("app-%d", i))
	}
	return apps
}

// keepApp has a budget allow no disruption of an app.
func keepApp(ctx context.Context, client clientset.Interface, namespace, app string) error {
	budgets := client.PolicyV1().PodDisruptionBudgets(namespace)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: app}}
	budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	_, err := budgets.Create(ctx, budget, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = budgets.Patch(ctx, app, types.MergePatchType, []byte(`{"spec":{"maxUnavailable":0}}`), metav1.PatchOptions{})
	}
	return err
}

// end is how the interests of those end that decide. There are no faults any more.
func (t *historyTest) end(tCtx ktesting.TContext, ending historyEnding) {
	tCtx.Helper()
	switch ending {
	case calledOff:
		quota := &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: lastQuota}, Spec: v1.ResourceQuotaSpec{Hard: v1.ResourceList{v1.ResourcePods: resource.MustParse("0")}}}
		create(tCtx, tCtx.Client().CoreV1().ResourceQuotas(tCtx.Namespace()), quota)
		await(whoeverEnds(tCtx), "all to be called off", t.callOff)
	case podsDeleted:
		await(whoeverEnds(tCtx), "the pods with requests to be deleted", deletePodsWithRequests)
	}
}

// callOff ends all maintenances, and has nobody request any eviction.
func (t *historyTest) callOff(tCtx ktesting.TContext) {
	client := tCtx.Client()
	tCtx.ExpectNoError(endAll(tCtx, client))
	tCtx.ExpectNoError(withdrawAll(tCtx, client, tCtx.Namespace()))
	if !t.opensDoor {
		return
	}
	wanted, err := client.LifecycleV1alpha1().EvictionRequests(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	for i := range wanted.Items {
		patch := fmt.Appendf(nil, `{"spec":{"intent":%q}}`, lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
		_, err := client.LifecycleV1alpha1().EvictionRequests(tCtx.Namespace()).Patch(tCtx, wanted.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			tCtx.ExpectNoError(err)
		}
	}
}

// withdrawAll has nobody request evictions but who has a controller that withdraws.
func withdrawAll(ctx context.Context, client clientset.Interface, namespace string) error {
	requests := client.CoordinationV1alpha1().EvictionRequests(namespace)
	list, err := requests.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		request := &list.Items[i]
		others := slices.DeleteFunc(slices.Clone(request.Spec.Requesters), func(r coordinationv1alpha1.Requester) bool {
			return r.Name != coordinationv1alpha1.NodeMaintenanceRequester && !strings.Contains(r.Name, "/")
		})
		if hasFinished(request) || len(others) == len(request.Spec.Requesters) {
			continue
		}
		request.Spec.Requesters = others
		if _, err := requests.Update(ctx, request, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// endMaintenance completes a maintenance, or deletes it.
func endMaintenance(ctx context.Context, client clientset.Interface, name string, deletes bool) error {
	var err error
	if deletes {
		err = client.CoordinationV1alpha1().NodeMaintenances().Delete(ctx, name, metav1.DeleteOptions{})
	} else {
		_, err = client.CoordinationV1alpha1().NodeMaintenances().Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"stage":"Complete"}}`), metav1.PatchOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// deletePodsWithRequests deletes the pods whose evictions are requested.
func deletePodsWithRequests(tCtx ktesting.TContext) {
	requests, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	for i := range requests.Items {
		request := &requests.Items[i]
		if hasFinished(request) {
			continue
		}
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(request.Spec.Target.Pod.UID)}
		err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).Delete(tCtx, request.Spec.Target.Pod.Name, options)
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			tCtx.ExpectNoError(err)
		}
	}
}

// letGo removes the budgets of all apps.
func letGo(ctx context.Context, client clientset.Interface, namespace string) {
	for _, app := range allApps() {
		_ = client.PolicyV1().PodDisruptionBudgets(namespace).Delete(ctx, app, metav1.DeleteOptions{})
	}
}

// endAll calls all maintenances off.
func endAll(ctx context.Context, client clientset.Interface) error {
	list, err := client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		errs = append(errs, endMaintenance(ctx, client, list.Items[i].Name, i%2 == 0))
	}
	return errors.Join(errs...)
}

// claimAll has a maintenance cordon all nodes, and keep those that others give back.
func claimAll(ctx context.Context, client clientset.Interface, name string) {
	m := newMaintenance(name, allNodes())
	m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageCordon
	_, _ = client.CoordinationV1alpha1().NodeMaintenances().Create(ctx, m, metav1.CreateOptions{})
}

// finishWork says of each node that the work of the maintenance is done that has begun with it.
func finishWork(ctx context.Context, client clientset.Interface) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range nodes.Items {
		for _, admission := range maintenance.Admissions(&nodes.Items[i]) {
			if admission.DoneTime == nil && strings.HasPrefix(admission.MaintenanceName, "r-") {
				_ = sayDone(ctx, client, &nodes.Items[i], admission.MaintenanceUID)
			}
		}
	}
}
