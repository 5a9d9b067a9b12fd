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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster"
	"k8s.io/kubernetes/test/utils/realcluster/logind"
)

// The nodes of the faults.
const (
	shutdownNode   = firstNode
	checkpointNode = "node-1"
	refusedNode    = "node-2"
)

// nodeMonitoringTest is monitoringTest with kubelets.
type nodeMonitoringTest struct {
	*monitoringTest
	*shutdownTest
}

// TestNodeMonitoring lets each alert of deploy/monitoring about kubelets fire once, as TestMonitoring
// does with the others. Nothing but kubelets is scraped, so that the controller is absent throughout.
func TestNodeMonitoring(t *testing.T) { testNodeMonitoring(ktesting.Init(t)) }
func testNodeMonitoring(tCtx ktesting.TContext) {
	tCtx, m := newNodeMonitoringTest(tCtx)
	m.startRecording(tCtx)
	for _, f := range m.faults() {
		m.chapter(f.what)
		f.make(tCtx)
		m.expectFiring(tCtx, f)
		f.mend(tCtx)
		m.expectEnded(tCtx, f)
	}
	m.say("\nAll %d checks are ok, after %.0f s.", m.checks, time.Since(m.began).Seconds())
}

func newNodeMonitoringTest(tCtx ktesting.TContext) (ktesting.TContext, *nodeMonitoringTest) {
	tCtx.Helper()
	p, began := findPrograms(tCtx), time.Now()
	local := &localcluster.Cluster{
		Name: "test-monitoring", Output: p.output, Bin: p.fork, Nodes: 3, Timeout: pollTimeout,
		Printf: func(format string, args ...any) { fmt.Printf(format, args...) },
	}
	tCtx, s := startShutdownTest(tCtx, p, &realcluster.Cluster{
		Local: local, InhibitDelayMax: shutdownDelay,
		Kubelets: map[string]realcluster.Kubelet{
			shutdownNode: {Gates: localcluster.DefaultSettings.Gates, Config: ordinaryShutdown + drainFirst},
		},
	})
	m := &nodeMonitoringTest{&monitoringTest{demo: &demo{programs: p, cluster: local, began: began}}, s}
	m.prometheus = startPrometheus(tCtx, p, local, kubeletTargets(tCtx, local, checkpointNode, refusedNode, shutdownNode))
	return newShutdownNamespace(tCtx), m
}

func (m *nodeMonitoringTest) faults() []fault {
	firing := func(alert, node string) []map[string]string {
		return []map[string]string{{"alertname": alert, "instance": node}}
	}
	events := func(reason string) []string {
		return []string{"get", "events", "--all-namespaces", "--field-selector=reason=" + reason}
	}
	status := []string{"maintenance", "status"}
	complete := func(node string) func(tCtx ktesting.TContext) {
		return func(tCtx ktesting.TContext) { m.run(tCtx, "maintenance", "complete", node, "--wait") }
	}
	return []fault{
		{
			what: "the kubelet cannot write its checkpoint", alerts: firing("KubeletMaintenanceCheckpointFailed", checkpointNode),
			make: m.spoilCheckpoint, look: [][]string{events("FailedStaticPodMaintenance"), status},
			mend: func(tCtx ktesting.TContext) {
				tCtx.ExpectNoError(os.Remove(m.checkpoint()))
				complete(checkpointNode)(tCtx)
			},
		}, {
			what: "the API server is away when a static pod has ended", alerts: firing("StaticPodRefused", refusedNode),
			make: m.needStaticPod, look: [][]string{events("StaticPodNeeded"), status}, mend: complete(refusedNode),
		}, {
			what: "the node shuts down with a delay that is too short", alerts: firing("NodeShutdownBeforeDrained", shutdownNode),
			make: m.shutDownTooSoon, mend: func(ktesting.TContext) {},
			look: [][]string{{"get", "events", "--field-selector=involvedObject.kind=Node,involvedObject.name=" + shutdownNode}, {"get", "nm"}},
		},
	}
}

// startDrain drains the node with a static pod, by a maintenance of its name.
func (m *nodeMonitoringTest) startDrain(tCtx ktesting.TContext, w worker) worker {
	tCtx.Helper()
	w = m.createStaticWorker(tCtx, w)
	awaitWorkers(tCtx, w)
	m.run(tCtx, "maintenance", "start", w.node, "--name="+w.node, "--reason="+w.name)
	return w
}

// checkpoint is the path of the checkpoint of the kubelet.
func (m *nodeMonitoringTest) checkpoint() string {
	return filepath.Join(m.real.KubeletDirectory(checkpointNode), "node_maintenance_state")
}

// spoilCheckpoint lets a directory be where the file would be.
func (m *nodeMonitoringTest) spoilCheckpoint(tCtx ktesting.TContext) {
	if err := os.Remove(m.checkpoint()); err != nil && !errors.Is(err, os.ErrNotExist) {
		tCtx.Fatal(err)
	}
	tCtx.ExpectNoError(os.Mkdir(m.checkpoint(), 0o700))
	m.startDrain(tCtx, worker{name: "checkpoint", node: checkpointNode, need: time.Second})
}

// needStaticPod freezes the API server when a static pod is asked to end, until the kubelet has
// started it again.
func (m *nodeMonitoringTest) needStaticPod(tCtx ktesting.TContext) {
	w := m.startDrain(tCtx, worker{name: "needed", node: refusedNode, need: 10 * time.Second})
	m.awaitEnding(tCtx, w)
	tCtx.ExpectNoError(os.Remove(m.note(w, "started")))
	defer m.thaw(tCtx)
	m.freeze(tCtx)
	m.awaitNote(tCtx, w, "started")
}

// shutDownTooSoon shuts a node down before its pod could leave, and boots it.
func (m *nodeMonitoringTest) shutDownTooSoon(tCtx ktesting.TContext) {
	tCtx.ExpectNoError(m.real.SetInhibitDelay(tCtx, shutdownNode, 2*time.Second+ordinaryPeriod))
	m.startWorker(tCtx, worker{name: "endless", node: shutdownNode, need: time.Minute})
	m.shutDown(tCtx, shutdownNode)
	m.expectDown(tCtx, shutdownNode, logind.LocksReleased)
	m.powerOn(tCtx, shutdownNode)
}
