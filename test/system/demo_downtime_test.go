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
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/kubernetes/test/utils/availability"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
)

const (
	// shop is the application with a single pod whose Service is watched. A new pod is ready after
	// shopStart, an old one gone after shopEnd.
	shop      = "shop"
	shopStart = 2 * time.Second
	shopEnd   = time.Second

	// afterDrain is the time for which the shop is watched after kubectl drain has ended: the new
	// pod is not ready yet.
	afterDrain = shopStart + 2*time.Second

	// The picture of a drain shows its first seconds, in cells.
	pictureTime = 6 * time.Second
	cellTime    = 100 * time.Millisecond
)

// createShop creates the shop, and waits until its Service has an endpoint.
func createShop(tCtx ktesting.TContext) {
	tCtx.Helper()
	create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), newDeployment(preferRack(newSlowPod(shop, shopStart, shopEnd)), 1))
	create(tCtx, tCtx.Client().CoreV1().Services(tCtx.Namespace()), newService(shop))
	awaitFacts(tCtx, shopIsOpen())
}

// picture draws the first seconds: a cell is a dot if there was no ready endpoint at any time in
// it.
func (r *drainResult) picture() string {
	var cells strings.Builder
	for at := r.from; at.Before(r.from.Add(pictureTime)); at = at.Add(cellTime) {
		if len(r.record.ReadyEndpoints[shop].Below(1, at, at.Add(cellTime))) > 0 {
			cells.WriteByte('.')
		} else {
			cells.WriteByte('#')
		}
	}
	return cells.String()
}

// scale returns the line above the pictures.
func scale() string {
	var line strings.Builder
	for second := range int(pictureTime / time.Second) {
		fmt.Fprintf(&line, "%-*d", int(time.Second/cellTime), second)
	}
	return strings.TrimRight(line.String(), " ")
}

// history returns a line for each change in the first seconds.
func (r *drainResult) history() string {
	app, endpoints, conditions := r.record.Apps[shop], r.record.ReadyEndpoints[shop], r.record.Conditions[shop][surging]
	times := []time.Time{r.from}
	for _, series := range []availability.Series{app.Active, app.Ready, endpoints} {
		for _, point := range series {
			times = append(times, point.At)
		}
	}
	for _, condition := range conditions {
		times = append(times, condition.At)
	}
	slices.SortFunc(times, time.Time.Compare)
	lines, last := "  SECONDS  PODS  READY  ENDPOINTS  EVICTION IN PROGRESS\n", ""
	for _, at := range times {
		now := fmt.Sprintf("%4d  %5d  %9d  %s", app.Active.At(at), app.Ready.At(at), endpoints.At(at), summary(conditions, at))
		if after := at.Sub(r.from); after >= 0 && after < pictureTime && now != last {
			lines += strings.TrimRight(fmt.Sprintf("  %7.1f  %s", after.Seconds(), now), " ") + "\n"
			last = now
		}
	}
	return lines
}

// summary returns the beginning of the message that a condition had at a time.
func summary(conditions []availability.Condition, at time.Time) string {
	message := ""
	for _, condition := range conditions {
		if !condition.At.After(at) {
			message = condition.Message
		}
	}
	message, _, _ = strings.Cut(message, ":")
	return message
}

func seconds(intervals []availability.Interval) string {
	return fmt.Sprintf("%.1f", availability.Total(intervals).Seconds())
}

// kubectlDrain is a drain of the shop by kubectl drain, in parallel with the demo. It runs on a
// cluster whose gates are off: test-upgrade and test-drain show that the control plane and kubectl
// drain then behave like those of the base, which take minutes to build.
type kubectlDrain struct {
	stop  func(cause string)
	ended chan struct{}

	// Set when it has ended:
	err    error
	output string
	drainResult
}

var drainArgs = []string{"drain", rackNodes[0]}

func startKubectlDrain(tCtx ktesting.TContext, d *demo) *kubectlDrain {
	tCtx.Helper()
	c := &localcluster.Cluster{Name: d.cluster.Name + "-gates-off", Output: d.programs.output, Bin: d.programs.fork, Settings: &localcluster.Settings{}, Nodes: 1}
	tCtx = tCtx.WithCancel()
	k := &kubectlDrain{ended: make(chan struct{}), stop: tCtx.Cancel}
	go func() {
		defer close(k.ended)
		tCtx, finalize := tCtx.WithError(&k.err)
		defer finalize()
		k.run(tCtx, c)
	}()
	return k
}

// end stops the drain if it is still running.
func (k *kubectlDrain) end() {
	k.stop("the demo has ended")
	<-k.ended
}

func (k *kubectlDrain) run(tCtx ktesting.TContext, c *localcluster.Cluster) {
	tCtx, _ = startCluster(tCtx, c)
	tCtx = createDemoNamespace(tCtx, "gates-off")
	createRackNodes(tCtx, rackNodes[0])
	createShop(tCtx)
	if pod := awaitReadyPod(tCtx, shop); pod.Spec.NodeName != rackNodes[0] {
		tCtx.Fatalf("pod %s is on %s, must be on %s", pod.Name, pod.Spec.NodeName, rackNodes[0])
	}
	recorder, err := availability.Start(tCtx, tCtx.Client(), tCtx.Namespace())
	tCtx.ExpectNoError(err)
	k.from = time.Now()
	output, err := c.Command(tCtx, drainArgs...).CombinedOutput()
	k.output = string(bytes.TrimSpace(output))
	tCtx.ExpectNoError(err, "kubectl %s: %s", strings.Join(drainArgs, " "), k.output)
	pause(tCtx, afterDrain)
	k.to = time.Now()
	k.record, err = recorder.Stop(tCtx)
	tCtx.ExpectNoError(err)
}

// compare shows for how long the shop had no ready endpoint in the drain of the rack, and in
// kubectl drain.
func (d *maintenanceDemo) compare(tCtx ktesting.TContext) {
	d.say("shop has one pod, and a new one takes %s to become ready. In the drain of the rack:\n", shopStart)
	d.say("%s", d.shop.history())
	<-d.drain.ended
	tCtx.ExpectNoError(d.drain.err, "kubectl drain")
	d.say("The same shop on another cluster, whose gates are off:\n")
	d.show(drainArgs...)
	d.say("%s\n", d.drain.output)
	d.say("  seconds          %s\n  NodeMaintenance  %s\n  kubectl drain    %s\n  # a ready endpoint of shop  . none\n",
		scale(), d.shop.picture(), d.drain.picture())
	const row = "  %-31s  %15s  %13s"
	d.say(row, "", "NodeMaintenance", "kubectl drain")
	d.say(row, "seconds without a ready endpoint", seconds(d.shop.without(shop)), seconds(d.drain.without(shop)))
	d.say(row+"\n", "pods at most", fmt.Sprint(d.shop.maxPods(shop)), fmt.Sprint(d.drain.maxPods(shop)))
	d.expect(tCtx, d.shopStayed(), d.shopSurged(), d.drainHadGap())
}

func (d *maintenanceDemo) shopStayed() fact {
	return fact{"shop had a ready endpoint at every moment of the drain by the NodeMaintenance", func(tCtx ktesting.TContext) {
		if gaps := d.shop.without(shop); len(gaps) > 0 {
			tCtx.Fatalf("it had none for %s s, in %d intervals", seconds(gaps), len(gaps))
		}
	}}
}

func (d *maintenanceDemo) shopSurged() fact {
	return fact{"its Deployment surged to two pods, reported it, and is back to one", func(tCtx ktesting.TContext) {
		if history := d.shop.record.Conditions[shop][surging]; len(history) == 0 || history[len(history)-1].Status != "" {
			tCtx.Fatalf("its condition %s was %v", surging, history)
		}
		expectCount(tCtx, "pods at most", d.shop.maxPods(shop), 2)
		expectCount(tCtx, "pods at the end", d.shop.record.Apps[shop].Active.At(d.shop.to), 1)
	}}
}

// drainHadGap verifies that the recorder can see a gap.
func (d *maintenanceDemo) drainHadGap() fact {
	return fact{"kubectl drain left shop without a ready endpoint", func(tCtx ktesting.TContext) {
		if availability.Total(d.drain.without(shop)) == 0 {
			tCtx.Fatal("it had one all the time")
		}
	}}
}
