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
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/history"
	"k8s.io/utils/ptr"
)

const (
	// leads is the metric of a controller manager that leads.
	leads = `leader_election_master_status{name="kube-controller-manager"} 1`

	// watchSlack is longer than rules allow for what a watch has to tell.
	watchSlack = 6 * time.Second
	// webhookSeen is after what time API servers call a new webhook.
	webhookSeen = 3 * time.Second
	// pairBudget is about two nodes, of which it allows one when it is opened, and closedBudget about one of them.
	pairBudget, closedBudget = "pair", "closed"
	// takeover is in what time after the last sign of a leader another one leads, and has decided.
	takeover = 16 * time.Second
	// holdup is how long a webhook is there that holds a write, and waits for one.
	holdup = 12 * time.Second
)

// leader returns which replica has the controller manager that leads, or -1 if none says so.
func (t *historyTest) leader(ctx context.Context) int {
	return slices.IndexFunc(t.replicas, func(replica *controlplane.ControlPlane) bool {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		text, err := replica.Metrics(ctx)
		return err == nil && strings.Contains(text, leads)
	})
}

// whoeverEnds is a context in which controller managers may end: those do that have lost their leases.
func whoeverEnds(tCtx ktesting.TContext) ktesting.TContext {
	return tCtx.WithValue(endedKey{}, func() error { return nil })
}

// pause waits, unless the history ends before.
func (t *historyTest) pause(duration time.Duration) {
	select {
	case <-t.found:
	case <-time.After(duration):
	}
}

// deafen has the API server of the leader hear of no changes of pods or maintenances for a while, so that the leader decides
// by an old cache. Meanwhile everybody goes on, and what was wanted before is not any more.
func deafen(t *historyTest, tCtx ktesting.TContext, d disturbance) {
	tCtx.Helper()
	leader := t.leader(tCtx)
	if leader < 0 {
		return
	}
	client := t.clients[1-leader]
	resource, change := "pods", func() {
		t.pause(watchSlack)
		_ = withdrawAll(tCtx, client, tCtx.Namespace())
	}
	if d.random.IntN(2) == 0 {
		// It waits until others have finished with the nodes.
		claim := fmt.Sprintf("c-%d", d.random.IntN(1000))
		resource, change = "nodemaintenances", func() {
			claimAll(tCtx, client, claim)
			t.pause(watchSlack)
			finishWork(tCtx, client)
		}
		defer func() { _ = endMaintenance(tCtx, client, claim, true) }()
	}
	t.disturbed.Wait()
	watches := 0
	for _, proxy := range t.networks[leader].etcd {
		watches += proxy.FreezeTopic(resource)
	}
	tCtx.Logf("the leader, replica %d, does not hear of %s, which %d connections watch", leader, resource, watches)
	change()
	t.pause(watchSlack)
	for _, proxy := range t.networks[leader].etcd {
		proxy.Restore()
	}
}

// heldWrite is a write of the status of a node that a webhook holds.
type heldWrite struct{ before, after *v1.Node }

// begins reports whether a maintenance begins with the node by the write that begin has created.
func (h *heldWrite) begins() bool {
	return slices.ContainsFunc(maintenance.Admissions(h.after), func(admission v1.MaintenanceAdmission) bool {
		return strings.HasPrefix(admission.MaintenanceName, latePrefix) && maintenance.AdmissionOf(h.before, admission.MaintenanceUID) == nil
	})
}

// ends reports whether no maintenance has to do with the node any more.
func (h *heldWrite) ends() bool {
	says := func(node *v1.Node) bool {
		return slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeMaintenanceInProgress })
	}
	return says(h.before) && !says(h.after)
}

// holdStatus has a slow webhook hold a write of the status of a node. Meanwhile others change what it was decided on: if it
// says that all is over, somebody announces the next maintenance; if a maintenance begins by it, the leader is suspended, and
// an older one may begin elsewhere.
func holdStatus(t *historyTest, tCtx ktesting.TContext, d disturbance) {
	tCtx.Helper()
	waitsForEnd := d.random.IntN(2) == 0
	older, younger := "", ""
	if !waitsForEnd {
		free := t.freeNodes(tCtx)
		if len(free) < 2 {
			return
		}
		d.random.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
		older, younger = free[0], free[1]
		defer t.beginElsewhere(tCtx, older, younger)()
	}
	held, goOn := make(chan *heldWrite, 1), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	var holds atomic.Bool
	server := serveReviews(func(request *admissionv1.AdmissionRequest) *metav1.Status {
		w := &heldWrite{&v1.Node{}, &v1.Node{}}
		if json.Unmarshal(request.OldObject.Raw, w.before) != nil || json.Unmarshal(request.Object.Raw, w.after) != nil {
			return nil
		}
		if isWanted := waitsForEnd && w.ends() || !waitsForEnd && w.after.Name == younger && w.begins(); !isWanted || !holds.CompareAndSwap(false, true) {
			return nil
		}
		held <- w
		<-goOn
		return nil
	})
	defer server.Close()
	defer release()
	webhooks := tCtx.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	const name = "slow-for-nodes"
	if _, err := webhooks.Create(tCtx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "nodes.example.com",
			ClientConfig: clientConfigOf(server),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes/status"}},
			}},
			TimeoutSeconds:          ptr.To[int32](30),
			FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{}); err != nil {
		return // The API server may be disturbed.
	}
	defer func() {
		release()
		await(whoeverEnds(tCtx), "the webhook to be gone", func(tCtx ktesting.TContext) {
			if err := webhooks.Delete(tCtx, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				tCtx.Fatalf("removing it: %v, must be not found", err)
			}
		})
	}()
	if !waitsForEnd {
		if name := begin(tCtx, t.clients[0], nodesNamed(younger)); name != "" {
			defer func() { _ = endMaintenance(tCtx, t.clients[0], name, true) }()
		}
		t.pause(webhookSeen) // And the node says that it waits: nobody has to write it before it is its turn.
		open := []byte(`{"spec":{"maxUnavailable":1}}`)
		_, _ = t.clients[0].CoordinationV1alpha1().NodeMaintenanceBudgets().Patch(tCtx, pairBudget, types.MergePatchType, open, metav1.PatchOptions{})
	}
	select {
	case <-t.found:
	case <-time.After(holdup):
		tCtx.Logf("nothing was written that was to be held: end %t, on %s", waitsForEnd, younger)
	case w := <-held:
		if waitsForEnd {
			t.announceWhileHeld(tCtx, w)
			return
		}
		t.beginWhileHeld(tCtx, older, younger, release)
	}
}

func (t *historyTest) announceWhileHeld(tCtx ktesting.TContext, w *heldWrite) {
	tCtx.Helper()
	for _, client := range t.clients { // One of the API servers may not answer.
		if patchNodeCondition(tCtx, client, w.before.Name, v1.NodeMaintenancePlanned, v1.ConditionTrue, history.Announced) == nil {
			tCtx.Logf("the end of what was on %s is held, and the next maintenance is announced", w.before.Name)
			return
		}
	}
}

// freeNodes calls all maintenances off, and returns the nodes that are free after a while.
func (t *historyTest) freeNodes(tCtx ktesting.TContext) []string {
	tCtx.Helper()
	_ = endAll(tCtx, t.clients[0])
	t.pause(watchSlack)
	nodes, err := t.clients[0].CoreV1().Nodes().List(tCtx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var free []string
	for i := range nodes.Items {
		if node := &nodes.Items[i]; !node.Spec.Unschedulable && maintenance.IsReady(node) {
			free = append(free, node.Name)
		}
	}
	_ = endAll(tCtx, t.clients[0]) // Others may have begun again.
	return free
}

// beginElsewhere begins with one node, as far as two budgets allow, which are closed. It returns how that ends.
func (t *historyTest) beginElsewhere(tCtx ktesting.TContext, node, other string) (end func()) {
	tCtx.Helper()
	client := t.clients[0]
	budgets := client.CoordinationV1alpha1().NodeMaintenanceBudgets()
	for name, of := range map[string][]string{pairBudget: {node, other}, closedBudget: {node}} {
		terms := nodesNamed(of...)
		_, _ = budgets.Create(tCtx, &coordinationv1alpha1.NodeMaintenanceBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: coordinationv1alpha1.NodeMaintenanceBudgetSpec{
				NodeSelector:   &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{terms}},
				MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			},
		}, metav1.CreateOptions{})
	}
	name := begin(tCtx, client, nodesNamed(node))
	return func() {
		if name != "" {
			_ = endMaintenance(tCtx, client, name, true)
		}
		for _, budget := range []string{pairBudget, closedBudget} {
			await(whoeverEnds(tCtx), "budget "+budget+" to be gone", func(tCtx ktesting.TContext) {
				if err := tCtx.Client().CoordinationV1alpha1().NodeMaintenanceBudgets().Delete(tCtx, budget, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
					tCtx.Fatalf("removing it: %v, must be not found", err)
				}
			})
		}
	}
}

// beginWhileHeld suspends the leader, whose write is held by which a maintenance begins with the younger node, and opens the
// budget that has kept an older one from beginning with its node.
func (t *historyTest) beginWhileHeld(tCtx ktesting.TContext, older, younger string, release func()) {
	tCtx.Helper()
	leader := t.leader(tCtx)
	if leader < 0 {
		return
	}
	client := t.clients[1-leader]
	tCtx.ExpectNoError(t.replicas[leader].Suspend(controlplane.ControllerManager))
	_ = client.CoordinationV1alpha1().NodeMaintenanceBudgets().Delete(tCtx, closedBudget, metav1.DeleteOptions{})
	hasBegun := false
	for end := time.Now().Add(takeover); !hasBegun && !t.isEnough() && time.Now().Before(end); time.Sleep(lookInterval) {
		node, err := client.CoreV1().Nodes().Get(tCtx, older, metav1.GetOptions{})
		hasBegun = err == nil && slices.ContainsFunc(maintenance.Admissions(node), func(a v1.MaintenanceAdmission) bool {
			return a.DoneTime == nil && strings.HasPrefix(a.MaintenanceName, latePrefix)
		})
	}
	tCtx.Logf("what begins with %s is held while the leader, replica %d, is suspended; the next one has begun with %s: %t", younger, leader, older, hasBegun)
	release()
	t.pause(time.Second)
	tCtx.ExpectNoError(t.replicas[leader].Resume(controlplane.ControllerManager))
}
