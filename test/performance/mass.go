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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/steps"
)

const (
	podsPerMassNode = 30

	// comparedPods are drained first on the same cluster: the rate must not fall much with more.
	comparedPods = 1000

	// restartedPods are drained while the controller manager is killed.
	restartedPods = 3000

	// inFlight is how many writes may be on the way when the controller manager is killed: 80 requests,
	// 30 evictions, and as many statuses. Whether they were done it cannot know.
	inFlight = 140

	// fewNodes have a pod each, and a maintenance of their own that begins in the middle. One more
	// node has the pod that a user requests to be evicted.
	fewNodes = 3

	massTimeout = 45 * time.Minute

	// The heap after the end is read until it is small enough.
	maxHeapAfterEnd = 1.1
	heapInterval    = 20 * time.Second
	heapTimeout     = 13 * time.Minute

	// massLabel is the label by which the maintenances of this part select their nodes.
	massLabel = "example.com/mass"

	// Names of the cases.
	massCompared = "before: 1,000 pods"
	massDrain    = "one NodeMaintenance"
	massRestart  = "controller manager killed in the middle"
	massBare     = "bare client, 1,000 pods, 30 calls"
	massKubectl  = "kubectl drain, extrapolated from one node"

	heapAfter    = "heap after the end with all pods, times that before"
	serverMemory = "memory of the API server at the end"
)

// measureMass measures the drain of thousands of nodes at once, with all their pods, and what it
// does to others. Like in measureScale, the nodes are only objects.
func measureMass(ctx context.Context, opts options, r *report) {
	opts.scaleNodes = massNodes(opts.massPods) + fewNodes + 1
	opts.args = append(slices.Clone(opts.args), openProfiles)
	opts.audited = auditNothing // The audit log of a million requests would slow down what is measured.
	t := r.table(rowPerFigure, "One NodeMaintenance over %d nodes with %d Ready pods, no PDB, and what others notice of it.",
		opts.scaleNodes-fewNodes-1, opts.massPods)
	onScaleCluster(ctx, opts, r, featureGates+laneGate, "", func(c *cluster) {
		stored := c.connectEtcd()
		defer stored.Close()
		m := &mass{cluster: c, table: t, stored: stored}
		m.run(ctx)
		m.compare()
	})
}

// mass is the measurement of one drain.
type mass struct {
	*cluster
	table  *table
	stored clientv3.KV
	// heapEmpty and heapFull are the heap of the controller manager without pods, after an earlier
	// drain, and with all.
	heapEmpty, heapFull float64
}

// massNodes is on how many nodes so many pods are.
func massNodes(pods int) int { return (pods + podsPerMassNode - 1) / podsPerMassNode }

func (c *cluster) connectEtcd() *clientv3.Client {
	endpoint := fmt.Sprintf("http://127.0.0.1:%d", steps.Must(c.local.Ports())[controlplane.Etcd])
	return steps.Must(clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()}))
}

func (m *mass) run(ctx context.Context) {
	m.drain(ctx, massCompared, comparedPods, 0, func(context.Context, int) []result { return nil })
	// Only now: what the first drain makes the process load stays loaded.
	m.heapEmpty, _ = m.managerMemory(ctx)
	m.measureBare(ctx)
	m.drain(ctx, massDrain, m.opts.massPods, fewNodes+1, m.disturb)
	m.table.derive(massDrain, result{Name: heapAfter, digits: 2, Value: m.heapAfterEnd(ctx)})
	m.drain(ctx, massRestart, restartedPods, 0, func(ctx context.Context, _ int) []result {
		m.restartManager(ctx)
		return nil
	})
	m.sampleKubectl(ctx)
}

// heapAfterEnd returns what the heap would be if all pods were there again, in times of that before the
// drain. The difference is what is left of the drain: events are kept for six to twelve minutes, in case
// that the same happens again, the checks of requests for six, and maps do not shrink.
func (m *mass) heapAfterEnd(ctx context.Context) (times float64) {
	awaitOr(ctx, heapInterval, heapTimeout, func(ctx context.Context) bool {
		heap, _ := m.managerMemory(ctx) // The last read may be interrupted: the one before counts.
		times = (heap + m.heapFull - m.heapEmpty) / m.heapFull
		return times <= maxHeapAfterEnd
	})
	return times
}

// drain creates the pods, at most all, drains their nodes by a maintenance, and removes what is left.
// middle is called when a third of the pods is gone, and creates requests for others pods.
func (m *mass) drain(ctx context.Context, name string, pods, others int, middle func(ctx context.Context, nodes int) []result) {
	steps.Check(steps.Attempt(func() {
		pods := min(pods, m.opts.massPods)
		nodes := massNodes(pods)
		fmt.Printf("%s: creating %d pods\n", name, pods)
		m.createMassPods(ctx, pods)
		m.labelNodes(ctx, 0, nodes, name)
		m.awaitCalm(ctx)
		m.heapFull, _ = m.managerMemory(ctx)
		before := m.apiMetrics(ctx)
		watched, more := &observer{mass: m, pods: pods, left: pods}, []result(nil)
		m.createMaintenance(ctx, maintenanceName, massLabel, []string{labelValue(name)})
		started := time.Now()
		third := make(chan struct{})
		// The status is observed meanwhile too: without a sample, it would be as far behind as middle takes.
		atOnce(ctx, func(ctx context.Context) {
			watched.untilDrained(ctx, others, third)
		}, func(ctx context.Context) {
			select {
			case <-third:
				more = middle(ctx, nodes)
			case <-ctx.Done():
			}
		})
		took := watched.drained.Sub(started)
		fmt.Printf("%s: drained after %.1f s; status behind at most %s\n", name, took.Seconds(), watched.when)
		after := m.settledMetrics(ctx)
		results := append([]result{
			{Name: "drained after", Unit: "s", digits: 1, Value: took.Seconds()},
			{Name: "drained", Unit: "pods/s", digits: 1, Value: float64(pods) / took.Seconds()},
			{Name: "status behind, at most", Unit: "s", digits: 1, Value: watched.behind.Seconds()},
			{Name: "API server, p99 of writes", Unit: "s", digits: 3, Value: after.writeLatency(99, before)},
			{Name: "writes of all clients", Unit: "per pod", digits: 2, Value: (after.writes() - before.writes()) / float64(pods)},
			{Name: "repeated writes of requests and evictions", Value: after.writesOfRequests() - before.writesOfRequests() - 3*float64(pods+watched.others)},
			{Name: serverMemory, Unit: "GB", digits: 2, Value: m.serverMemory() / 1e9},
		}, more...)
		for _, result := range results { // A later part may fail.
			fmt.Printf("%s: %s: %.2f %s\n", name, result.Name, result.Value, result.Unit)
		}
		m.table.add(name, results...)
		m.clean(ctx)
	}), name)
}

// measureBare measures what the machine can do: nothing but evictions.
func (m *mass) measureBare(ctx context.Context) {
	pods := min(comparedPods, m.opts.massPods)
	m.createMassPods(ctx, pods)
	list := steps.Must(m.setup.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{}))
	m.awaitCalm(ctx)
	started := time.Now()
	m.evictByBareClient(m.opts.parallel)(ctx, list.Items)
	rate := float64(pods) / time.Since(started).Seconds()
	fmt.Printf("%s: %.1f pods/s\n", massBare, rate)
	m.table.add(massBare, result{Name: "drained", Unit: "pods/s", digits: 1, Value: rate})
	m.clean(ctx)
}

// endTerminating removes the pods that terminate. If the caller of an eviction is killed, the API server
// may leave the pod so, which a kubelet would end, and there is none.
func (m *mass) endTerminating(ctx context.Context) {
	for _, pod := range steps.Must(m.setup.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})).Items {
		if pod.DeletionTimestamp != nil {
			exists(m.setup.CoreV1().Pods(namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0)))
		}
	}
}

// labelValue returns the name of a case as the value of a label.
func labelValue(name string) string {
	return strings.NewReplacer(" ", "", ":", "", ",", "").Replace(name)
}

// createMassPods creates ready pods, so many on each node, from the first node on.
func (m *mass) createMassPods(ctx context.Context, count int) {
	m.inParallel(ctx, count, func(ctx context.Context, i int) { m.createReadyPod(ctx, newPod(i, nodeName(i/podsPerMassNode))) })
}

// createReadyPod creates a pod whose kubelet has reported it as ready: nothing runs behind it.
func (m *mass) createReadyPod(ctx context.Context, pod *v1.Pod) *v1.Pod {
	pods := m.setup.CoreV1().Pods(namespace)
	created := steps.Must(pods.Create(ctx, pod, metav1.CreateOptions{}))
	created.Status.Phase = v1.PodRunning
	created.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	return steps.Must(pods.UpdateStatus(ctx, created, metav1.UpdateOptions{}))
}

// labelNodes gives nodes the label by which the maintenance of this case selects them.
func (m *mass) labelNodes(ctx context.Context, first, count int, name string) {
	m.patchNodes(ctx, first, count, types.MergePatchType, func(string) []byte {
		return fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, massLabel, labelValue(name))
	})
}

// observer compares the status of the maintenance with the pods and requests that exist.
type observer struct {
	*mass
	pods int
	// left is how many pods exist, and requested how many requests, except for others, which are not
	// of this maintenance and are over.
	left, requested, others int
	// gone and asked are earlier values of pods that were gone, and of requests.
	gone, asked history
	// behind is by how much the status was behind at most, and when says when that was.
	behind time.Duration
	when   string
	// drained is the end.
	drained time.Time
}

// untilDrained observes until the maintenance is drained. It closes third when a third of the pods is
// gone; then others requests are made.
func (o *observer) untilDrained(ctx context.Context, others int, third chan struct{}) {
	await(ctx, "the maintenance to be drained", time.Second, massTimeout, func(ctx context.Context) bool {
		drained := o.observe(ctx)
		if third != nil && o.left < o.pods*2/3 {
			close(third)
			third, o.others = nil, others
		}
		if o.left <= inFlight {
			o.endTerminating(ctx)
		}
		return drained && third == nil
	})
	o.drained = time.Now()
}

// observe reads everything once, and reports whether the maintenance is drained.
func (o *observer) observe(ctx context.Context) (drained bool) {
	got := steps.Must(o.setup.CoordinationV1alpha1().NodeMaintenances().Get(ctx, maintenanceName, metav1.GetOptions{}))
	// What exists is counted after the status was read: then the status is never ahead.
	o.left, o.requested = o.countStored(ctx, "pods"), o.countStored(ctx, "evictionrequests")
	now, status := time.Now(), got.Status.DrainStatus
	o.gone, o.asked = append(o.gone, sample{now, o.pods - o.left}), append(o.asked, sample{now, o.requested - o.others})
	behind := o.asked.behind(now, 0)
	if drainedCondition(got) != nil {
		pending, active := int(status.PodsPendingEvictionRequest), int(status.ActiveEvictionRequests)
		behind = max(o.gone.behind(now, o.pods-pending-active), o.asked.behind(now, o.pods-pending))
	}
	if behind > o.behind {
		o.behind, o.when = behind, fmt.Sprintf("with %d requests and %d pods left, after a status that says %q", o.requested-o.others, o.left, status.DrainMessage)
	}
	return isDrained(got)
}

// countStored counts the objects of a resource in the namespace. It asks etcd: for each list, also of
// one object, the API server copies a list of all, which takes a tenth of its time at this size.
func (m *mass) countStored(ctx context.Context, resource string) int {
	return int(steps.Must(m.stored.Get(ctx, "/registry/"+resource+"/"+namespace+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())).Count)
}

// history has the values of a number that only grows.
type history []sample

type sample struct {
	at    time.Time
	value int
}

// behind returns how long ago the number was this value.
func (h history) behind(now time.Time, value int) time.Duration {
	last := len(h) - 1
	if last < 0 || h[last].value <= value {
		return 0
	}
	for last > 0 && h[last].value > value {
		last--
	}
	return now.Sub(h[last].at)
}

// disturb measures what others notice in the middle of the drain: a maintenance of a few nodes, the
// request of a user, and kubectl maintenance status. It also reads the heap of the controller manager.
func (m *mass) disturb(ctx context.Context, nodes int) []result {
	const name = "few"
	m.labelNodes(ctx, nodes, fewNodes, name)
	var pods []*v1.Pod
	for i := range fewNodes + 1 {
		pods = append(pods, m.createReadyPod(ctx, newPod(nodes*podsPerMassNode+i, nodeName(nodes+i))))
	}
	few, user := pods[:fewNodes], pods[fewNodes:]
	started := time.Now()
	m.createMaintenance(ctx, maintenanceName+"-"+name, massLabel, []string{name})
	_, err := m.requester.CoordinationV1alpha1().EvictionRequests(namespace).Create(ctx, newRequest(user[0]), metav1.CreateOptions{})
	steps.Check(err, "requesting an eviction as a user")
	steps := []struct {
		name string
		pods []*v1.Pod
		open func(context.Context, *v1.Pod) bool
		took time.Duration
	}{
		{"second maintenance of 3 nodes, all evictions requested after", few, m.isNotRequested, 0},
		{"second maintenance of 3 nodes, all pods evicted after", few, m.isThere, 0},
		{"request of a user, evicted after", user, m.isThere, 0},
	}
	await(ctx, "the second maintenance and the user", pollInterval, massTimeout, func(ctx context.Context) bool {
		left := 0
		for i := range steps {
			step := &steps[i]
			if step.took == 0 && !slices.ContainsFunc(step.pods, func(pod *v1.Pod) bool { return step.open(ctx, pod) }) {
				step.took = time.Since(started)
			}
			if step.took == 0 {
				left++
			}
		}
		return left == 0
	})
	var results []result
	for _, step := range steps {
		results = append(results, result{Name: step.name, Unit: "s", digits: 1, Value: step.took.Seconds()})
	}
	status := m.timeStatus(ctx)
	heap, _ := m.managerMemory(ctx)
	requests, left := m.countStored(ctx, "evictionrequests"), m.countStored(ctx, "pods")
	// The pods that are gone do not count: what the rest needs is known from before.
	without := m.heapEmpty + (m.heapFull-m.heapEmpty)*float64(left)/float64(m.opts.massPods)
	return append(results,
		result{Name: "kubectl maintenance status", Unit: "s", digits: 1, Value: status.Seconds()},
		result{Name: "heap of the controller manager per request", Unit: "KiB", digits: 2, Value: (heap - without) / 1024 / float64(requests)})
}

func (m *mass) isNotRequested(ctx context.Context, pod *v1.Pod) bool {
	_, err := m.setup.CoordinationV1alpha1().EvictionRequests(namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
	return !exists(err)
}

func (m *mass) isThere(ctx context.Context, pod *v1.Pod) bool {
	_, err := m.setup.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	return exists(err)
}

// timeStatus returns how long kubectl takes to print the status of the large maintenance.
func (m *mass) timeStatus(ctx context.Context) time.Duration {
	command := exec.CommandContext(ctx, filepath.Join(m.opts.bin, "kubectl-maintenance"), "status", maintenanceName, "--kubeconfig", m.local.Kubeconfig())
	started := time.Now()
	steps.Check(runCommand(command))
	return time.Since(started)
}

// sampleKubectl drains one node with kubectl of the base. Its rate does not depend on the number of
// nodes: the client sends five requests a second.
func (m *mass) sampleKubectl(ctx context.Context) {
	pods := min(podsPerMassNode, m.opts.massPods)
	m.createMassPods(ctx, pods)
	started := time.Now()
	m.kubectlDrain(ctx, nodeName(0))
	took := time.Since(started) * time.Duration(m.opts.massPods) / time.Duration(pods)
	m.table.add(massKubectl,
		result{Name: "drained after", Unit: "s", digits: 1, Value: took.Seconds()},
		result{Name: "drained", Unit: "pods/s", digits: 1, Value: float64(m.opts.massPods) / took.Seconds()})
	m.clean(ctx)
}

// compare sets the targets. The time is that for 150,000 pods, in proportion.
func (m *mass) compare() {
	t := m.table
	t.derive(massDrain, result{Name: "pods/s, times that with 1,000 pods", digits: 2,
		Value: t.value(massDrain, "drained") / t.value(massCompared, "drained")})
	t.derive(massDrain, result{Name: ofBareClient, digits: 2, Value: t.value(massDrain, "drained") / t.value(massBare, "drained")})
	for _, target := range []struct {
		figure, relation string
		wanted           float64
	}{
		{"drained after", atMost, 720 * float64(m.opts.massPods) / 150000},
		{"pods/s, times that with 1,000 pods", atLeast, 0.8},
		{ofBareClient, atLeast, 0.38},
		{serverMemory, atMost, 3},
		{"API server, p99 of writes", atMost, 1},
		{"status behind, at most", atMost, 5},
		{"second maintenance of 3 nodes, all evictions requested after", atMost, 5},
		{"second maintenance of 3 nodes, all pods evicted after", atMost, 15},
		{"request of a user, evicted after", atMost, 15},
		{"kubectl maintenance status", atMost, 2},
		{"heap of the controller manager per request", atMost, 1.5},
		{heapAfter, atMost, maxHeapAfterEnd},
	} {
		t.want(massDrain, target.figure, target.relation, target.wanted)
	}
	t.want(massRestart, "repeated writes of requests and evictions", atMost, inFlight)
}
