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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
)

// testDeletedWhileDown deletes and completes maintenances while no controller runs.
func testDeletedWhileDown(t *testing.T, c *cluster) {
	for _, node := range []string{"unseen", "drained", "draining", "cordoned", "completed"} {
		c.createNode(node)
	}
	c.createPod(newPod("leaves", "drained"))
	c.createPod(newPod("stays", "draining", withInterceptor(stubborn)))
	c.createPod(newPod("unseen", "unseen"))
	history := c.watchAll()
	stop, _ := c.startQuick()
	c.createMaintenance(newMaintenance("drained", stageDrain, nodesNamed("drained"), planOf()...))
	c.createMaintenance(newMaintenance("draining", stageDrain, nodesNamed("draining"), planOf()...))
	c.createMaintenance(newMaintenance("cordoned", stageCordon, nodesNamed("cordoned"), planOf()...))
	c.createMaintenance(newMaintenance("completed", stageCordon, nodesNamed("completed"), planOf()...))
	c.await("the drain", states{
		"maintenance/drained": "Cordon, Drain of 1, finalizer, True: Drained", "request/stays": asked,
		"node/drained": empty, "node/draining": draining, "node/cordoned": cordoned, "node/completed": cordoned,
		"maintenance/cordoned": "Cordon of 1, finalizer", "maintenance/completed": "Cordon of 1, finalizer",
	})

	stop()
	c.createMaintenance(newMaintenance("unseen", stageDrain, nodesNamed("unseen"), planOf()...))
	for _, name := range []string{"unseen", "drained", "draining", "cordoned"} {
		c.deleteMaintenance(name)
	}
	c.setStage("completed", stageComplete)
	c.expect("maintenances with a finalizer to stay", states{
		"maintenance/unseen": "gone", "node/drained": empty, "node/draining": draining, "node/cordoned": cordoned,
		"maintenance/drained": "Cordon, Drain of 1, finalizer, True: Drained",
	})

	_, writes := c.startLogged()
	c.await("the maintenances to end", states{
		"maintenance/drained": "gone", "maintenance/draining": "gone", "maintenance/cordoned": "gone", "maintenance/completed": "Cordon, Complete of 1",
		"node/unseen": free, "node/drained": free, "node/draining": free, "node/cordoned": free, "node/completed": free,
		"request/unseen": "none", "request/stays": canceled, "pod/stays": "here", "pod/unseen": "here",
	})
	c.settle()
	if diff := cmp.Diff(0, writes.count("PATCH nodes/unseen")+writes.count("PATCH nodes/unseen/status")); diff != "" {
		t.Errorf("writes to the node of a maintenance that no controller has seen (-want +got):\n%s", diff)
	}
	c.expectInvariants(history)
}

// testEndWhileDown ends a maintenance while no controller runs. Nobody has withdrawn its request then, and the budget
// does not protect the pod any more: only kube-apiserver keeps the next leader from evicting it.
func testEndWhileDown(t *testing.T, c *cluster) {
	c.createNode("one")
	c.StartDisruptionController("")
	c.protect(c.createPod(newPod("pod", "one")))
	stopEvictions := c.startEvictionController()
	stopMaintenances, _ := c.startLogged()
	c.createMaintenance(newMaintenance("down", stageDrain, nodesNamed("one"), planOf()...))
	pod, err := c.client.CoreV1().Pods(c.namespace).Get(t.Context(), "pod", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.awaitEvent("DrainBlocked", "down")
	stopMaintenances()
	stopEvictions()
	c.setStage("down", stageComplete)
	if err := c.client.PolicyV1().PodDisruptionBudgets(c.namespace).Delete(t.Context(), "guard", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting the budget: %v", err)
	}
	request := c.request(pod)
	evict := podeviction.NewEvictor(c.client)
	c.eventually("the refusal of the eviction", func(ctx context.Context) (bool, string) {
		if time.Since(request.CreationTimestamp.Time) < 7*time.Second {
			return false, "the request is fresh"
		}
		err := evict(ctx, request, coordinationv1alpha1.EvictionInterceptorImperative, pod)
		return apierrors.HasStatusCause(err, coordinationv1alpha1.EvictionNotRequestedCause), fmt.Sprint(err)
	})

	c.startEvictionController()
	c.expect("the pod to stay while nobody withdraws", states{"pod/pod": "here"})
	c.startLogged()
	c.await("the end of the maintenance", states{
		"maintenance/down": "Cordon, Drain, Complete of 1, False: NotDraining", "node/one": free, "request/pod": canceled, "pod/pod": "here",
	})
	c.settle()
	c.expectUntouched(pod)
}
