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
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/hack/availability"
)

const (
	// maintenanceName and maintenanceReason are those of the maintenance of the rack.
	maintenanceName   = "rack-7"
	maintenanceReason = "firmware upgrade"

	// rackSelector selects the nodes.
	rackSelector = "rack=7"

	// migratorName is the interceptor of the pods of db. It takes so long that its turn is
	// seen, and is over soon after the budget is out of the way.
	migratorName  = "migrate.example.com"
	migrationTime = 20 * time.Second

	// readingTime is how long the view goes on when nothing moves any more.
	readingTime = 4 * time.Second
)

var rackNodes = []string{"rack-7-a", "rack-7-b", "rack-7-c"}

// maintenanceDemo drains a rack of three nodes, as an administrator would.
type maintenanceDemo struct {
	*cluster
	story *story

	// beside is the drain that is compared with, watching sees what becomes of the shop in
	// ours, which is then in shop.
	beside   *baseDrain
	watching *availability.Recorder
	shop     downtime
}

func demoMaintenance(ctx context.Context, c *cluster) error {
	interceptor, err := startInterceptor(c, migratorName, migrationTime)
	if err != nil {
		return err
	}
	defer interceptor.stop()
	d := &maintenanceDemo{cluster: c, story: &story{cluster: c, out: os.Stdout, began: time.Now()}}
	lifetime, cancel := interceptor.lifetime(ctx)
	defer cancel()
	d.beside = startBaseDrain(lifetime, c)
	defer d.beside.end()
	if err := d.play(lifetime); err != nil {
		// Ctrl-C ends the interceptor as well.
		if died := interceptor.alive(); died != nil && ctx.Err() == nil {
			return died
		}
		return err
	}
	d.story.say("\nAll %d checks are ok, after %.0f s. The cluster is up, to look around:",
		d.story.checks, time.Since(d.story.began).Seconds())
	d.story.say("  export KUBECONFIG=%s", c.kubeconfig)
	d.story.say("  %s maintenance --help", c.kubectl)
	d.story.say("  %s describe nodemaintenance %s", c.kubectl, maintenanceName)
	d.story.say("  %s get evictionrequests --namespace %s", c.kubectl, c.namespace)
	return nil
}

func (d *maintenanceDemo) play(ctx context.Context) error {
	for _, chapter := range []struct {
		title string
		play  func(ctx context.Context) error
	}{
		{"A rack of three nodes, full of pods", d.fillRack},
		{"What would a drain do, and who would be in the way?", d.plan},
		{"Drain the rack, and watch", d.start},
		{"Who holds it up?", d.nameBlockers},
		{"Help the one that stays until somebody acts", d.release},
		{"The firmware is upgraded: give the nodes back", d.complete},
		{"One replica: how long was shop away?", d.compare},
	} {
		d.story.chapter(chapter.title)
		if err := chapter.play(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *maintenanceDemo) fillRack(ctx context.Context) error {
	if err := d.clearRack(ctx); err != nil {
		return err
	}
	if err := d.createNamespace(ctx, "maintenance"); err != nil {
		return err
	}
	if err := d.run(ctx, nodeManifests(rackNodes), "create", "-f", "-"); err != nil {
		return err
	}
	if err := d.story.await(ctx, []check{d.nodesSchedulable()}); err != nil {
		return err
	}
	if err := d.run(ctx, workloadManifests, "create", "-f", "-"); err != nil {
		return err
	}
	d.story.say(`The nodes are rack-7-a, -b and -c. In namespace %s:
  web   6 pods that may go at any time
  shop  1 pod behind a Service; a new one takes %s to become ready
  api   2 pods; its PodDisruptionBudget lets none of them go, its strategy allows no third
  db    2 pods; %s moves their data away first (%s)
  dns   1 pod that the others need, of priority system-cluster-critical
`, d.namespace, shopStart, migratorName, migrationTime)
	return d.story.expect(ctx, d.onRack(map[string]int{"web": 6, shop: 1, "api": 2, "db": 2, "dns": 1}), d.budgetAllowsNone(), d.shopIsOpen())
}

// clearRack removes what an earlier run has left.
func (d *maintenanceDemo) clearRack(ctx context.Context) error {
	maintenances := d.client.CoordinationV1alpha1().NodeMaintenances()
	old, err := maintenances.Get(ctx, maintenanceName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("looking for NodeMaintenance %s: %w", maintenanceName, err)
	case old.Spec.Reason != maintenanceReason:
		return fmt.Errorf("the cluster has a NodeMaintenance %s that is not of this demo: delete it, or run the demo on another cluster", maintenanceName)
	default:
		if err := maintenances.Delete(ctx, maintenanceName, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("deleting NodeMaintenance %s of an earlier run: %w", maintenanceName, err)
		}
	}
	// The nodes go first, so that nothing comes to them while they are emptied.
	mine := demoLabel + "=maintenance"
	if err := d.run(ctx, "", "delete", "node,namespace", "--selector", mine, "--wait=false", "--ignore-not-found"); err != nil {
		return err
	}
	return d.story.await(ctx, []check{{"what an earlier run has left is gone", d.rackIsGone}})
}

// rackIsGone deletes the pods whose node does not exist any more.
func (d *maintenanceDemo) rackIsGone(ctx context.Context) error {
	if _, err := d.client.CoordinationV1alpha1().NodeMaintenances().Get(ctx, maintenanceName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for NodeMaintenance %s, which must be gone, got: %v", maintenanceName, err)
	}
	nodes, err := d.rack(ctx)
	if err != nil {
		return err
	}
	if err := wantCount("nodes of the rack", len(nodes), 0); err != nil {
		return err
	}
	for _, node := range rackNodes {
		pods, err := d.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if err := d.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
				return err
			}
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d pods of %s are still there", len(pods.Items), node)
		}
	}
	return nil
}

// plan must name who would be in the way, and change nothing.
func (d *maintenanceDemo) plan(ctx context.Context) error {
	output, err := d.story.kubectl(ctx, "maintenance", "plan", "-l", rackSelector)
	if err != nil {
		return err
	}
	if err := d.story.expectOutput("it names the budget and the interceptor", output, d.namespace+"/api", migratorName); err != nil {
		return err
	}
	return d.story.expect(ctx, d.nothingChanged())
}

func (d *maintenanceDemo) start(ctx context.Context) error {
	var err error
	if d.watching, err = availability.Start(ctx, d.client, d.namespace); err != nil {
		return err
	}
	d.shop.from = time.Now()
	if _, err := d.story.kubectl(ctx, "maintenance", "start", "--name="+maintenanceName, "-l", rackSelector, "--reason="+maintenanceReason); err != nil {
		return err
	}
	checks := []check{d.cordoned(), d.movedAway("web", 6), d.movedAway(shop, 1), d.migrating(), d.heldByBudget(), d.notAsked("dns")}
	err = d.story.watch(ctx, func(w *watching) error {
		defer w.interrupt()
		if err := d.story.await(ctx, checks); err != nil {
			return err
		}
		return pause(ctx, readingTime)
	}, "maintenance", "watch", maintenanceName)
	if err != nil {
		return err
	}
	d.story.tell(checks)
	return nil
}

func (d *maintenanceDemo) nameBlockers(ctx context.Context) error {
	output, err := d.story.kubectl(ctx, "maintenance", "status", maintenanceName)
	if err != nil {
		return err
	}
	return d.story.expectOutput("it names the budget and the interceptor with its ETA", output,
		"PodDisruptionBudget "+d.namespace+"/api", "interceptor "+migratorName, "ETA")
}

// release makes room in the budget, and sees the drain through to its end.
func (d *maintenanceDemo) release(ctx context.Context) error {
	// What has the highest priority must have waited until now.
	if err := d.story.await(ctx, []check{d.notAsked("dns"), d.onRack(map[string]int{"api": 2})}); err != nil {
		return err
	}
	scale := []string{"scale", "deployment", "api", "--replicas=3"}
	d.story.say("With a third pod of api, one at a time may go. In another terminal:\n")
	d.story.show(append(scale, "--namespace", d.namespace))
	d.story.say("")
	err := d.story.watch(ctx, func(*watching) error {
		if err := pause(ctx, 2*time.Second); err != nil { // Time to see it blocked.
			return err
		}
		return d.run(ctx, "", scale...)
	}, "maintenance", "watch", maintenanceName)
	if err != nil {
		return err
	}
	d.shop.to = time.Now()
	if d.shop.record, err = d.watching.Stop(ctx); err != nil {
		return err
	}
	return d.story.expect(ctx, d.drained(), d.migrated(), d.movedAway("api", 3), d.movedAway("db", 2), d.movedAway("dns", 1))
}

func (d *maintenanceDemo) complete(ctx context.Context) error {
	if _, err := d.story.kubectl(ctx, "maintenance", "complete", maintenanceName, "--wait"); err != nil {
		return err
	}
	if _, err := d.story.kubectl(ctx, "get", "nodes", "-l", rackSelector); err != nil {
		return err
	}
	return d.story.expect(ctx, d.nodesSchedulable(), d.completed())
}
