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
	"golang.org/x/sync/errgroup"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/controlplane"
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
func measureMass(ctx context.Context, opts options, r *report) error {
	if opts.massPods == 0 {
		return nil
	}
	opts.scaleNodes = (opts.massPods+podsPerMassNode-1)/podsPerMassNode + fewNodes + 1
	opts.args = append(slices.Clone(opts.args), "kube-controller-manager:authorization-always-allow-paths=/debug/pprof/*")
	opts.auditPolicy = silentPolicy // The audit log of a million requests would slow down what is measured.
	t := r.table(rowPerFigure, "One NodeMaintenance over %d nodes with %d Ready pods, no PDB, and what others notice of it.",
		opts.scaleNodes-fewNodes-1, opts.massPods)
	return onScaleCluster(ctx, opts, r, featureGates+laneGate, "", func(c *cluster) error {
		stored, err := c.connectEtcd()
		if err != nil {
			return err
		}
		defer stored.Close()
		m := &mass{cluster: c, table: t, stored: stored}
		if err := m.measure(ctx); err != nil {
			return err
		}
		m.compare()
		return nil
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

func (c *cluster) connectEtcd() (*clientv3.Client, error) {
	ports, err := c.local.Ports()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", ports[controlplane.Etcd])}, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return client, nil
}

func (m *mass) measure(ctx context.Context) (err error) {
	nothing := func(context.Context, int) ([]result, error) { return []result{}, nil }
	if err := m.drain(ctx, massCompared, comparedPods, 0, nothing); err != nil {
		return fmt.Errorf("%s: %w", massCompared, err)
	}
	// Only now: what the first drain makes the process load stays loaded.
	if m.heapEmpty, err = m.managerHeap(ctx); err != nil {
		return err
	}
	if err := m.measureBare(ctx); err != nil {
		return fmt.Errorf("%s: %w", massBare, err)
	}
	if err := m.drain(ctx, massDrain, m.opts.massPods, fewNodes+1, m.disturb); err != nil {
		return fmt.Errorf("%s: %w", massDrain, err)
	}
	after, err := m.heapAfterEnd(ctx)
	if err != nil {
		return err
	}
	m.table.derive(massDrain, result{Name: heapAfter, digits: 2, Value: after})
	restart := func(ctx context.Context, _ int) ([]result, error) { return []result{}, m.restartManager(ctx) }
	if err := m.drain(ctx, massRestart, restartedPods, 0, restart); err != nil {
		return fmt.Errorf("%s: %w", massRestart, err)
	}
	return m.sampleKubectl(ctx)
}

// heapAfterEnd returns what the heap would be if all pods were there again, in times of that before the
// drain. The difference is what is left of the drain: events are kept for six to twelve minutes, in case
// that the same happens again, the checks of requests for six, and maps do not shrink.
func (m *mass) heapAfterEnd(ctx context.Context) (times float64, err error) {
	full := m.heapFull
	err = wait.PollUntilContextTimeout(ctx, heapInterval, heapTimeout, true, func(ctx context.Context) (bool, error) {
		heap, err := m.managerHeap(ctx)
		if err != nil {
			return false, err // The last read may be interrupted: the one before counts.
		}
		times = (heap + full - m.heapEmpty) / full
		return times <= maxHeapAfterEnd, nil
	})
	if wait.Interrupted(err) {
		return times, context.Cause(ctx) // Nil after heapTimeout.
	}
	return times, err
}

// drain creates the pods, at most all, drains their nodes by a maintenance, and removes what is left.
// middle is called when a third of the pods is gone, and creates requests for others pods.
func (m *mass) drain(ctx context.Context, name string, pods, others int, middle func(ctx context.Context, nodes int) ([]result, error)) (err error) {
	pods = min(pods, m.opts.massPods)
	fmt.Printf("%s: creating %d pods\n", name, pods)
	if err := m.createMassPods(ctx, pods); err != nil {
		return err
	}
	nodes := (pods + podsPerMassNode - 1) / podsPerMassNode
	if err := m.labelNodes(ctx, 0, nodes, name); err != nil {
		return err
	}
	if err := m.awaitCalm(ctx); err != nil {
		return err
	}
	if m.heapFull, err = m.managerHeap(ctx); err != nil {
		return err
	}
	before, err := m.apiMetrics(ctx)
	if err != nil {
		return err
	}
	watched := newObserver(m, pods)
	wanted := newMaintenance(maintenanceName, coordinationv1alpha1.NodeMaintenanceStageDrain, massLabel, labelValue(name))
	if _, err := m.requester.CoordinationV1alpha1().NodeMaintenances().Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a maintenance: %w", err)
	}
	started := time.Now()
	// The status is observed meanwhile too: without a sample, it would be as far behind as middle takes.
	disturbing, ctxOfAll := errgroup.WithContext(ctx)
	var more []result
	begun := false
	err = wait.PollUntilContextTimeout(ctxOfAll, time.Second, massTimeout, true, func(ctx context.Context) (bool, error) {
		drained, err := watched.observe(ctx)
		if err == nil && !begun && watched.left < pods*2/3 {
			begun = true
			watched.others = others
			disturbing.Go(func() (err error) {
				more, err = middle(ctxOfAll, nodes)
				return err
			})
		}
		if err == nil && watched.left <= inFlight {
			err = m.endTerminating(ctx)
		}
		return drained, err
	})
	took := time.Since(started)
	// An error of middle ends the waiting too, and says why.
	if failed := disturbing.Wait(); failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("waiting for the maintenance to be drained: %w", err)
	}
	fmt.Printf("%s: drained after %.1f s; status behind at most %s\n", name, took.Seconds(), watched.when)
	after, err := m.settledMetrics(ctx)
	if err != nil {
		return err
	}
	memory, err := m.serverMemory()
	if err != nil {
		return err
	}
	results := []result{
		{Name: "drained after", Unit: "s", digits: 1, Value: took.Seconds()},
		{Name: "drained", Unit: "pods/s", digits: 1, Value: float64(pods) / took.Seconds()},
		{Name: "status behind, at most", Unit: "s", digits: 1, Value: watched.behind.Seconds()},
		{Name: "API server, p99 of writes", Unit: "s", digits: 3, Value: after.writeLatency(99, before)},
		{Name: "writes of all clients", Unit: "per pod", digits: 2, Value: (after.writes() - before.writes()) / float64(pods)},
		{Name: "repeated writes of requests and evictions", Value: after.writesOfRequests() - before.writesOfRequests() - 3*float64(pods+watched.others)},
		{Name: serverMemory, Unit: "GB", digits: 2, Value: memory / 1e9},
	}
	results = append(results, more...)
	for _, result := range results { // A later part may fail.
		fmt.Printf("%s: %s: %.2f %s\n", name, result.Name, result.Value, result.Unit)
	}
	m.table.add(name, results...)
	return m.clean(ctx)
}

// measureBare measures what the machine can do: nothing but evictions.
func (m *mass) measureBare(ctx context.Context) error {
	pods := min(comparedPods, m.opts.massPods)
	if err := m.createMassPods(ctx, pods); err != nil {
		return err
	}
	list, err := m.setup.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	if err := m.awaitCalm(ctx); err != nil {
		return err
	}
	started := time.Now()
	if err := m.evictByBareClient(ctx, list.Items); err != nil {
		return err
	}
	rate := float64(pods) / time.Since(started).Seconds()
	fmt.Printf("%s: %.1f pods/s\n", massBare, rate)
	m.table.add(massBare, result{Name: "drained", Unit: "pods/s", digits: 1, Value: rate})
	return m.clean(ctx)
}

// endTerminating removes the pods that terminate. If the caller of an eviction is killed, the API server
// may leave the pod so, which a kubelet would end, and there is none.
func (m *mass) endTerminating(ctx context.Context) error {
	list, err := m.setup.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			continue
		}
		err := m.setup.CoreV1().Pods(namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing a terminating pod: %w", err)
		}
	}
	return nil
}

// labelValue returns the name of a case as the value of a label.
func labelValue(name string) string {
	return strings.NewReplacer(" ", "", ":", "", ",", "").Replace(name)
}

// createMassPods creates ready pods, so many on each node, from the first node on.
func (m *mass) createMassPods(ctx context.Context, count int) error {
	return m.inParallel(ctx, count, func(ctx context.Context, i int) error {
		_, err := m.createReadyPod(ctx, newPod(i, nodeName(i/podsPerMassNode)))
		return err
	})
}

// createReadyPod creates a pod whose kubelet has reported it as ready: nothing runs behind it.
func (m *mass) createReadyPod(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	pods := m.setup.CoreV1().Pods(namespace)
	created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a pod: %w", err)
	}
	created.Status.Phase = v1.PodRunning
	created.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	if created, err = pods.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return nil, fmt.Errorf("reporting that a pod is ready: %w", err)
	}
	return created, nil
}

// labelNodes gives nodes the label by which the maintenance of this case selects them.
func (m *mass) labelNodes(ctx context.Context, first, count int, name string) error {
	return m.inParallel(ctx, count, func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, massLabel, labelValue(name))
		if _, err := m.setup.CoreV1().Nodes().Patch(ctx, nodeName(first+i), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("labeling a node: %w", err)
		}
		return nil
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
}

func newObserver(m *mass, pods int) *observer { return &observer{mass: m, pods: pods, left: pods} }

// observe reads everything once, and reports whether the maintenance is drained.
func (o *observer) observe(ctx context.Context) (drained bool, err error) {
	got, err := o.setup.CoordinationV1alpha1().NodeMaintenances().Get(ctx, maintenanceName, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading the maintenance: %w", err)
	}
	// What exists is counted after the status was read: then the status is never ahead.
	if o.left, err = o.countStored(ctx, "pods"); err != nil {
		return false, err
	}
	if o.requested, err = o.countStored(ctx, "evictionrequests"); err != nil {
		return false, err
	}
	now, status := time.Now(), got.Status.DrainStatus
	o.gone.add(now, o.pods-o.left)
	o.asked.add(now, o.requested-o.others)
	behind := o.asked.behind(now, 0)
	if drained := meta.FindStatusCondition(got.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained)); drained != nil {
		pending, active := int(status.PodsPendingEvictionRequest), int(status.ActiveEvictionRequests)
		behind = max(o.gone.behind(now, o.pods-pending-active), o.asked.behind(now, o.pods-pending))
	}
	if behind > o.behind {
		o.behind, o.when = behind, fmt.Sprintf("with %d requests and %d pods left, after a status that says %q", o.requested-o.others, o.left, status.DrainMessage)
	}
	return isDrained(got), nil
}

// countStored counts the objects of a resource in the namespace. It asks etcd: for each list, also of
// one object, the API server copies a list of all, which takes a tenth of its time at this size.
func (m *mass) countStored(ctx context.Context, resource string) (int, error) {
	response, err := m.stored.Get(ctx, "/registry/"+resource+"/"+namespace+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("counting %s: %w", resource, err)
	}
	return int(response.Count), nil
}

// history has the values of a number that only grows.
type history []struct {
	at    time.Time
	value int
}

func (h *history) add(at time.Time, value int) {
	*h = append(*h, struct {
		at    time.Time
		value int
	}{at, value})
}

// behind returns how long ago the number was this value.
func (h history) behind(now time.Time, value int) time.Duration {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].value <= value {
			if i == len(h)-1 {
				return 0
			}
			return now.Sub(h[i].at)
		}
	}
	if len(h) == 0 {
		return 0
	}
	return now.Sub(h[0].at)
}

// disturb measures what others notice in the middle of the drain: a maintenance of a few nodes, the
// request of a user, and kubectl maintenance status. It also reads the heap of the controller manager.
func (m *mass) disturb(ctx context.Context, nodes int) ([]result, error) {
	const name = "few"
	if err := m.labelNodes(ctx, nodes, fewNodes, name); err != nil {
		return nil, err
	}
	var pods []*v1.Pod
	for i := range fewNodes + 1 {
		pod, err := m.createReadyPod(ctx, newPod(nodes*podsPerMassNode+i, nodeName(nodes+i)))
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	few, user := pods[:fewNodes], pods[fewNodes]
	started := time.Now()
	wanted := newMaintenance(maintenanceName+"-"+name, coordinationv1alpha1.NodeMaintenanceStageDrain, massLabel, name)
	if _, err := m.requester.CoordinationV1alpha1().NodeMaintenances().Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating a second maintenance: %w", err)
	}
	if _, err := m.requester.CoordinationV1alpha1().EvictionRequests(namespace).Create(ctx, newRequest(user), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("requesting an eviction as a user: %w", err)
	}
	asked, evicted, alone := time.Duration(0), time.Duration(0), time.Duration(0)
	err := wait.PollUntilContextTimeout(ctx, pollInterval, massTimeout, true, func(ctx context.Context) (bool, error) {
		for _, step := range []struct {
			took *time.Duration
			pods []*v1.Pod
			done func(context.Context, *v1.Pod) (bool, error)
		}{{&asked, few, m.isRequested}, {&evicted, few, m.isGone}, {&alone, []*v1.Pod{user}, m.isGone}} {
			if *step.took > 0 {
				continue
			}
			all := true
			for _, pod := range step.pods {
				done, err := step.done(ctx, pod)
				if err != nil {
					return false, err
				}
				all = all && done
			}
			if all {
				*step.took = time.Since(started)
			}
		}
		return asked > 0 && evicted > 0 && alone > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the second maintenance and the user: %w", err)
	}
	status, err := m.timeStatus(ctx)
	if err != nil {
		return nil, err
	}
	heap, err := m.managerHeap(ctx)
	if err != nil {
		return nil, err
	}
	requests, err := m.countStored(ctx, "evictionrequests")
	if err != nil {
		return nil, err
	}
	left, err := m.countStored(ctx, "pods")
	if err != nil {
		return nil, err
	}
	// The pods that are gone do not count: what the rest needs is known from before.
	without := m.heapEmpty + (m.heapFull-m.heapEmpty)*float64(left)/float64(m.opts.massPods)
	return []result{
		{Name: "second maintenance of 3 nodes, all evictions requested after", Unit: "s", digits: 1, Value: asked.Seconds()},
		{Name: "second maintenance of 3 nodes, all pods evicted after", Unit: "s", digits: 1, Value: evicted.Seconds()},
		{Name: "request of a user, evicted after", Unit: "s", digits: 1, Value: alone.Seconds()},
		{Name: "kubectl maintenance status", Unit: "s", digits: 1, Value: status.Seconds()},
		{Name: "heap of the controller manager per request", Unit: "KiB", digits: 2, Value: (heap - without) / 1024 / float64(requests)},
	}, nil
}

func (m *mass) isRequested(ctx context.Context, pod *v1.Pod) (bool, error) {
	_, err := m.setup.CoordinationV1alpha1().EvictionRequests(namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (m *mass) isGone(ctx context.Context, pod *v1.Pod) (bool, error) {
	_, err := m.setup.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// timeStatus returns how long kubectl takes to print the status of the large maintenance.
func (m *mass) timeStatus(ctx context.Context) (time.Duration, error) {
	command := exec.CommandContext(ctx, filepath.Join(m.opts.bin, "kubectl-maintenance"), "status", maintenanceName, "--kubeconfig", m.kubeconfig)
	started := time.Now()
	err := runCommand(command)
	return time.Since(started), err
}

// sampleKubectl drains one node with kubectl of the base. Its rate does not depend on the number of
// nodes: the client sends five requests a second.
func (m *mass) sampleKubectl(ctx context.Context) error {
	if err := m.createMassPods(ctx, min(podsPerMassNode, m.opts.massPods)); err != nil {
		return err
	}
	started := time.Now()
	if err := m.kubectlDrain(ctx, nodeName(0)); err != nil {
		return err
	}
	took := time.Since(started) * time.Duration(m.opts.massPods) / time.Duration(min(podsPerMassNode, m.opts.massPods))
	m.table.add(massKubectl,
		result{Name: "drained after", Unit: "s", digits: 1, Value: took.Seconds()},
		result{Name: "drained", Unit: "pods/s", digits: 1, Value: float64(m.opts.massPods) / took.Seconds()})
	return m.clean(ctx)
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
