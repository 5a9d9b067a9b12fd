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
	"fmt"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/realcluster/logind"
)

// shutdownStory is what happens to the pods of a node that shuts down.
type shutdownStory struct {
	tCtx     ktesting.TContext
	node     string
	workers  []worker
	client   *requestClient
	requests *requests
	outcome  logind.Outcome
	// killed are the workers that were killed before they were finished.
	killed []string
}

// drainBesideBase shuts two nodes with the same pods down at the same time. One kubelet drains its
// node: no request fails, and each pod has the time that it needs. The kubelet of the base has
// always terminated pods, whatever their budgets and grace periods.
func (s *shutdownTest) drainBesideBase(tCtx ktesting.TContext) {
	base, ours := s.newStory(newShutdownNamespace(tCtx), baseNode), s.newStory(tCtx, firstNode)
	s.play(tCtx, base, ours)
	tCtx.Log("\n" + shutdownTable(base, ours))
	s.expectServed(tCtx, ours)
	if base.requests.failed() == 0 {
		tCtx.Errorf("without a drain: %s", base.requests)
	}
	s.expectFinished(tCtx, true, base.workers[0])
	s.expectFinished(tCtx, false, base.workers[1:]...)

	// After the boot, the node has its pods again.
	expectStage(tCtx, firstNode, coordinationv1alpha1.NodeMaintenanceStageDrain)
	s.powerOn(tCtx, firstNode)
	expectStage(tCtx, firstNode, coordinationv1alpha1.NodeMaintenanceStageComplete)
	awaitWorkers(tCtx, ours.workers[2:]...)
	s.powerOn(tCtx, baseNode)
}

// newStory creates the pods of a node.
func (s *shutdownTest) newStory(tCtx ktesting.TContext, node string) *shutdownStory {
	tCtx.Helper()
	createShopOn(tCtx, node, "")
	return &shutdownStory{tCtx: tCtx, node: node, workers: []worker{
		s.createWorker(tCtx, worker{name: "quick", node: node, need: time.Second}),
		s.createWorker(tCtx, worker{name: "slow", node: node, need: normalPeriod + 2*time.Second}),
		s.createDaemonWorker(tCtx, worker{name: "daemon", node: node, need: normalPeriod + time.Second}),
		s.createStaticWorker(tCtx, worker{name: "static", node: node, need: normalPeriod + time.Second}),
	}}
}

// play shuts the nodes of stories down, at the same time.
func (s *shutdownTest) play(tCtx ktesting.TContext, stories ...*shutdownStory) {
	tCtx.Helper()
	for _, story := range stories {
		awaitWorkers(story.tCtx, story.workers...)
		story.client = s.openShop(story.tCtx, story.node)
	}
	for _, story := range stories {
		s.shutDown(tCtx, story.node)
	}
	for _, story := range stories {
		story.outcome = s.expectDown(tCtx, story.node, logind.LocksReleased)
	}
	for _, story := range stories {
		awaitFacts(story.tCtx, realPodsOn(shop, secondNode, 1))
	}
	pause(tCtx, realShopEnd) // Until requests are answered again.
	for _, story := range stories {
		s.endStory(story)
	}
}

func (s *shutdownTest) endStory(story *shutdownStory) {
	story.requests = story.client.stop()
	for _, w := range story.workers {
		if !s.noted(w, "finished") {
			story.killed = append(story.killed, w.name)
		}
	}
}

// expectServed expects that no request of a story has failed, and that each pod had the time that
// it needs.
func (s *shutdownTest) expectServed(tCtx ktesting.TContext, story *shutdownStory) {
	tCtx.Helper()
	if story.requests.failed() > 0 || story.requests.sent() < 100 {
		tCtx.Errorf("with a drain of %s: %s", story.node, story.requests)
	}
	s.expectFinished(tCtx, true, story.workers...)
}

// shutdownTable compares the stories.
func shutdownTable(base, ours *shutdownStory) string {
	const row = "  %-32s  %-20s  %s\n"
	var table strings.Builder
	line := func(title string, value func(*shutdownStory) string) {
		fmt.Fprintf(&table, row, title, value(base), value(ours))
	}
	fmt.Fprintf(&table, row, "", "kubelet of the base", "drain by the kubelet")
	line("requests", func(s *shutdownStory) string { return fmt.Sprint(s.requests.sent()) })
	line("of them failed", func(s *shutdownStory) string { return fmt.Sprint(s.requests.failed()) })
	line(fmt.Sprintf("pods killed, of %d", len(base.workers)), func(s *shutdownStory) string {
		return strings.TrimSpace(fmt.Sprintf("%d %s", len(s.killed), strings.Join(s.killed, ", ")))
	})
	line("seconds until the node is down", func(s *shutdownStory) string { return fmt.Sprintf("%.1f", s.outcome.After.Seconds()) })
	return table.String()
}
