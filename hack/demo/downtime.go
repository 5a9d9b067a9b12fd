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
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/hack/availability"
	"k8s.io/kubernetes/hack/localcluster"
	"k8s.io/kubernetes/pkg/controller/deployment"
)

const (
	// shop is the app with a single pod whose Service is watched. A new pod is ready after
	// shopStart, an old one gone after shopEnd.
	shop      = "shop"
	shopStart = 2 * time.Second
	shopEnd   = time.Second

	// afterDrain is how long the shop is watched after kubectl drain has ended: the new pod
	// is not ready then.
	afterDrain = shopStart + 2*time.Second

	// The picture of a drain shows its first seconds, in cells.
	pictureTime = 6 * time.Second
	cellTime    = 100 * time.Millisecond
)

// downtime is what was seen of the shop in a drain.
type downtime struct {
	record   *availability.Record
	from, to time.Time
}

// without returns the times without a ready endpoint.
func (d *downtime) without() []availability.Interval {
	return d.record.ReadyEndpoints[shop].Below(1, d.from, d.to)
}

func (d *downtime) maxPods() int { return d.record.Apps[shop].Active.Max(d.from, d.to) }

// picture draws the first seconds: a cell is a dot if in some moment of it there was no
// ready endpoint.
func (d *downtime) picture() string {
	var cells strings.Builder
	for at := d.from; at.Before(d.from.Add(pictureTime)); at = at.Add(cellTime) {
		if len(d.record.ReadyEndpoints[shop].Below(1, at, at.Add(cellTime))) > 0 {
			cells.WriteByte('.')
		} else {
			cells.WriteByte('#')
		}
	}
	return cells.String()
}

// history tells what happened in the first seconds, a line for each change.
func (d *downtime) history() []string {
	app, endpoints := d.record.Apps[shop], d.record.ReadyEndpoints[shop]
	surging := d.record.Conditions[shop][deployment.DeploymentEvictionInProgress]
	times := []time.Time{d.from}
	for _, series := range []availability.Series{app.Active, app.Ready, endpoints} {
		for _, point := range series {
			times = append(times, point.At)
		}
	}
	for _, condition := range surging {
		times = append(times, condition.At)
	}
	slices.SortFunc(times, time.Time.Compare)
	lines, last := []string{"  SECONDS  PODS  READY  ENDPOINTS  EVICTION IN PROGRESS"}, ""
	for _, at := range times {
		now := fmt.Sprintf("%4d  %5d  %9d  %s", app.Active.At(at), app.Ready.At(at), endpoints.At(at), summary(surging, at))
		if after := at.Sub(d.from); after >= 0 && after < pictureTime && now != last {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("  %7.1f  %s", after.Seconds(), now), " "))
			last = now
		}
	}
	return lines
}

// summary is the beginning of what a condition said at a time.
func summary(history []availability.Condition, at time.Time) string {
	message := ""
	for _, condition := range history {
		if !condition.At.After(at) {
			message = condition.Message
		}
	}
	message, _, _ = strings.Cut(message, ":")
	return message
}

// scale is the line above the pictures.
func scale() string {
	var line strings.Builder
	for second := range int(pictureTime / time.Second) {
		fmt.Fprintf(&line, "%-*d", int(time.Second/cellTime), second)
	}
	return strings.TrimRight(line.String(), " ")
}

// baseDrain is a drain by kubectl drain on a cluster of the pristine base, which goes on
// beside the demo.
type baseDrain struct {
	stop  context.CancelFunc
	ended chan struct{}

	// When it has ended:
	err      error
	version  string
	output   string
	downtime downtime
}

// startBaseDrain starts a cluster, drains its node with the shop, and takes the cluster down
// again.
func startBaseDrain(ctx context.Context, c *cluster) *baseDrain {
	base := &localcluster.Cluster{Name: c.baseName, Output: c.output, Bin: c.bin, Base: c.base, Nodes: 1}
	b := &baseDrain{ended: make(chan struct{})}
	ctx, b.stop = context.WithCancel(ctx)
	go func() {
		defer close(b.ended)
		b.err = b.run(ctx, base)
	}()
	return b
}

// end calls it off if it still goes on, and returns when its cluster is gone.
func (b *baseDrain) end() {
	b.stop()
	<-b.ended
}

func (b *baseDrain) run(ctx context.Context, base *localcluster.Cluster) (err error) {
	if err := base.Up(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Down(ctx)) }()
	c := &cluster{kubectl: base.Kubectl(), kubeconfig: base.Kubeconfig()}
	if c.client, b.version, err = base.Client(); err != nil {
		return err
	}
	if err := b.openShop(ctx, c); err != nil {
		return err
	}
	recorder, err := availability.Start(ctx, c.client, c.namespace)
	if err != nil {
		return err
	}
	b.downtime.from = time.Now()
	output, err := c.command(ctx, drainArgs...).CombinedOutput()
	b.output = string(bytes.TrimSpace(output))
	if err != nil {
		return fmt.Errorf("kubectl %s on the base: %w: %s", strings.Join(drainArgs, " "), err, b.output)
	}
	if err := pause(ctx, afterDrain); err != nil {
		return err
	}
	b.downtime.to = time.Now()
	b.downtime.record, err = recorder.Stop(ctx)
	return err
}

// drainArgs are those of kubectl on the base.
var drainArgs = []string{"drain", rackNodes[0]}

// openShop makes a node like those of the rack, with the shop on it.
func (b *baseDrain) openShop(ctx context.Context, c *cluster) error {
	if err := c.createNamespace(ctx, "base"); err != nil {
		return err
	}
	if err := c.run(ctx, nodeManifests(rackNodes[:1]), "create", "-f", "-"); err != nil {
		return err
	}
	if err := c.poll(ctx, "node "+rackNodes[0]+" of the base", func(ctx context.Context) (bool, error) {
		node, err := c.client.CoreV1().Nodes().Get(ctx, rackNodes[0], metav1.GetOptions{})
		return err == nil && takesPods(node), err
	}); err != nil {
		return err
	}
	if err := c.run(ctx, shopManifests, "create", "-f", "-"); err != nil {
		return err
	}
	pod, err := c.readyPod(ctx, shop)
	if err == nil && pod.Spec.NodeName != rackNodes[0] {
		err = fmt.Errorf("pod %s of the base is on %s, must be on %s", pod.Name, pod.Spec.NodeName, rackNodes[0])
	}
	if err != nil {
		return err
	}
	return c.poll(ctx, "an endpoint of shop", func(ctx context.Context) (bool, error) { return c.hasEndpoint(ctx) })
}

// hasEndpoint tells whether the Service of the shop has a ready endpoint.
func (c *cluster) hasEndpoint(ctx context.Context) (bool, error) {
	list, err := c.client.DiscoveryV1().EndpointSlices(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + shop})
	if err != nil {
		return false, err
	}
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				return true, nil
			}
		}
	}
	return false, nil
}

// takesPods tells whether pods can be scheduled to the node.
func takesPods(node *v1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == v1.NodeReady && condition.Status == v1.ConditionTrue {
			return !node.Spec.Unschedulable && len(node.Spec.Taints) == 0
		}
	}
	return false
}

// compare shows how long the shop had no ready endpoint in the drain of the rack, and in
// kubectl drain of the base.
func (d *maintenanceDemo) compare(ctx context.Context) error {
	d.story.say("shop has one pod, and a new one takes %s to become ready. In the drain of the rack:\n", shopStart)
	d.story.say("%s\n", strings.Join(d.shop.history(), "\n"))
	select {
	case <-d.beside.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	base := d.beside
	if errors.Is(base.err, localcluster.ErrNoBase) {
		return d.compareWithNothing(ctx, base.err)
	}
	if base.err != nil {
		return base.err
	}
	d.story.say("The same shop on another cluster, which is the pristine base, Kubernetes %s:\n", base.version)
	d.story.show(drainArgs)
	d.story.say("%s\n", base.output)
	d.story.say("  seconds          %s\n  NodeMaintenance  %s\n  kubectl drain    %s\n  # a ready endpoint of shop  . none\n",
		scale(), d.shop.picture(), base.downtime.picture())
	const row = "  %-31s  %15s  %13s"
	d.story.say(row, "", "NodeMaintenance", "kubectl drain")
	d.story.say(row, "seconds without a ready endpoint", seconds(d.shop.without()), seconds(base.downtime.without()))
	d.story.say(row+"\n", "pods at most", fmt.Sprint(d.shop.maxPods()), fmt.Sprint(base.downtime.maxPods()))
	if err := d.story.expect(ctx, d.shopStayed(), d.shopSurged()); err != nil {
		return err
	}
	// If there were no gap here, the zero above would say nothing.
	return d.story.expect(ctx, check{"kubectl drain left shop without one", func(context.Context) error {
		if availability.Total(base.downtime.without()) == 0 {
			return errors.New("it had one all the time")
		}
		return nil
	}})
}

// compareWithNothing shows what can be shown without the base.
func (d *maintenanceDemo) compareWithNothing(ctx context.Context, why error) error {
	d.story.say("Seconds without a ready endpoint: %s. It cannot be shown beside kubectl drain:\n%v\n", seconds(d.shop.without()), why)
	return d.story.expect(ctx, d.shopStayed(), d.shopSurged())
}

func (d *maintenanceDemo) shopStayed() check {
	return check{"shop had a ready endpoint in every moment of the drain by the NodeMaintenance", func(context.Context) error {
		if gaps := d.shop.without(); len(gaps) > 0 {
			return fmt.Errorf("it had none for %s s, in %d intervals", seconds(gaps), len(gaps))
		}
		return nil
	}}
}

func (d *maintenanceDemo) shopSurged() check {
	return check{"its Deployment surged to two pods, said so, and is back to one", func(context.Context) error {
		history := d.shop.record.Conditions[shop][deployment.DeploymentEvictionInProgress]
		if len(history) == 0 || history[len(history)-1].Status != "" {
			return fmt.Errorf("its condition %s was %v", deployment.DeploymentEvictionInProgress, history)
		}
		if err := wantCount("pods at most", d.shop.maxPods(), 2); err != nil {
			return err
		}
		return wantCount("pods at the end", d.shop.record.Apps[shop].Active.At(d.shop.to), 1)
	}}
}

func seconds(intervals []availability.Interval) string {
	return fmt.Sprintf("%.1f", availability.Total(intervals).Seconds())
}
