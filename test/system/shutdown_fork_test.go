/*
Copyright The Kubernetes Authors.

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
	"os"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster"
)

// TestForkNodeShutdown shuts a node with the kubelet of the predecessor, the fork on the base
// before, and one with ours down at the same time. Each kubelet is replaced by the other while its
// node is off, and ends the maintenance that the other has begun.
func TestForkNodeShutdown(t *testing.T) { testForkNodeShutdown(ktesting.Init(t)) }
func testForkNodeShutdown(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	// The second node stays up. Its kubelet is ours.
	const oldNode, newNode = firstNode, "node-2"
	own := realcluster.Kubelet{Gates: localcluster.DefaultSettings.Gates, Config: ordinaryShutdown + drainFirst}
	predecessor := realcluster.Kubelet{
		Bin: p.predecessor, Gates: "DeclarativeNodeMaintenance=true,EvictionRequestAPI=true,NodeMaintenanceAwareKubelet=true", Config: own.Config,
	}
	tCtx, s := startShutdownTest(tCtx, p, &realcluster.Cluster{
		Local:           &localcluster.Cluster{Name: "test-fork-shutdown", Output: p.output, Bin: p.fork, Nodes: 3, Timeout: pollTimeout},
		InhibitDelayMax: shutdownDelay,
		Kubelets:        map[string]realcluster.Kubelet{oldNode: predecessor, newNode: own},
	})
	oldVersion, newVersion := kubeletVersion(tCtx, oldNode), kubeletVersion(tCtx, newNode)
	if oldVersion == newVersion {
		tCtx.Fatalf("both kubelets are %s", oldVersion)
	}

	stories := []*shutdownStory{s.newStory(newShutdownNamespace(tCtx), oldNode), s.newStory(newShutdownNamespace(tCtx), newNode)}
	s.play(tCtx, stories...)
	for _, story := range stories {
		tCtx.Logf("%s, kubelet %s: %s", story.node, kubeletVersion(tCtx, story.node), story.requests)
		s.expectServed(tCtx, story)
		expectStage(tCtx, story.node, coordinationv1alpha1.NodeMaintenanceStageDrain)
	}

	tCtx.ExpectNoError(s.real.SetKubelet(oldNode, own))
	tCtx.ExpectNoError(s.real.SetKubelet(newNode, predecessor))
	s.bootWithoutServer(tCtx, stories)
	for _, story := range stories {
		expectStage(tCtx, story.node, coordinationv1alpha1.NodeMaintenanceStageComplete)
		awaitWorkers(tCtx, story.workers[2:]...) // Those of the DaemonSet and the static pod.
		tCtx.Logf("%s has its pods again, with kubelet %s", story.node, kubeletVersion(tCtx, story.node))
	}
	if got := kubeletVersion(tCtx, oldNode); got != newVersion {
		tCtx.Errorf("the kubelet of %s is %s, want %s", oldNode, got, newVersion)
	}
	if got := kubeletVersion(tCtx, newNode); got != oldVersion {
		tCtx.Errorf("the kubelet of %s is %s, want %s", newNode, got, oldVersion)
	}
}

// bootWithoutServer boots the nodes of stories while the API server does not answer. Their static
// pods start, because the kubelet before has stored that they were stopped for a shutdown in
// another boot.
func (s *shutdownTest) bootWithoutServer(tCtx ktesting.TContext, stories []*shutdownStory) {
	tCtx.Helper()
	boots := map[string]string{}
	for _, story := range stories {
		boots[story.node] = getNode(tCtx, story.node).Status.NodeInfo.BootID
	}
	s.freeze(tCtx)
	defer s.thaw(tCtx)
	for _, story := range stories {
		static := story.workers[len(story.workers)-1]
		tCtx.ExpectNoError(os.Remove(s.note(static, "started")))
		tCtx.ExpectNoError(s.real.PowerOn(tCtx, story.node))
		s.awaitNote(tCtx, static, "started")
	}
	s.thaw(tCtx)
	for _, story := range stories {
		s.awaitBoot(tCtx, story.node, boots[story.node])
		// Static pods would start as well if the kubelet could not read what the one before has stored.
		log, err := os.ReadFile(filepath.Join(s.real.Local.Logs(), story.node+"-kubelet.log"))
		tCtx.ExpectNoError(err)
		if text := string(log); !strings.Contains(text, "Released the static pods that were stopped for the last shutdown") || strings.Contains(text, "Could not read") {
			tCtx.Errorf("the kubelet of %s does not say that it has released static pods, or could not read something", story.node)
		}
	}
}

func kubeletVersion(tCtx ktesting.TContext, node string) string {
	tCtx.Helper()
	return getNode(tCtx, node).Status.NodeInfo.KubeletVersion
}
