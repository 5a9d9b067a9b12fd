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
	"time"

	"golang.org/x/sys/unix"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/realcluster/logind"
	"k8s.io/utils/ptr"
)

// shutdownInProgress is the condition of nodes that shut down.
const shutdownInProgress = v1.NodeConditionType("GracefulNodeShutdownInProgress")

// cancelAndShutDown cancels a shutdown twice: once during the drain, once after it. The node takes
// pods again, and the kubelet has its lock, so that the next shutdown waits for it.
func (s *shutdownTest) cancelAndShutDown(tCtx ktesting.TContext) {
	first := s.startWorker(tCtx, worker{name: "first", node: firstNode, need: 4 * time.Second})
	s.shutDown(tCtx, firstNode)
	s.awaitEnding(tCtx, first)
	expectShutdownInProgress(tCtx, v1.ConditionTrue)
	tCtx.ExpectNoError(s.real.CancelShutdown(tCtx, firstNode))
	s.awaitCanceled(tCtx)

	second := s.startWorker(tCtx, worker{name: "second", node: firstNode, need: time.Second})
	release := s.keepUp(tCtx, firstNode)
	s.shutDown(tCtx, firstNode)
	s.awaitLocks(tCtx, firstNode, "test")
	s.expectFinished(tCtx, true, first, second)
	tCtx.ExpectNoError(s.real.CancelShutdown(tCtx, firstNode))
	s.awaitCanceled(tCtx)
	release()

	third := s.startWorker(tCtx, worker{name: "third", node: firstNode, need: 4 * time.Second})
	s.shutDown(tCtx, firstNode)
	if outcome := s.expectDown(tCtx, firstNode, logind.LocksReleased); outcome.After < third.need {
		tCtx.Errorf("the node goes down after %v", outcome.After)
	}
	s.expectFinished(tCtx, true, third)
	s.powerOn(tCtx, firstNode)
}

// awaitCanceled waits until a shutdown of the first node has no effect any more.
func (s *shutdownTest) awaitCanceled(tCtx ktesting.TContext) {
	tCtx.Helper()
	await(tCtx, "the shutdown to be canceled", func(tCtx ktesting.TContext) {
		expectStage(tCtx, firstNode, coordinationv1alpha1.NodeMaintenanceStageComplete)
		expectTakesPods(tCtx, getNode(tCtx, firstNode))
		locks, err := s.real.InhibitLocks(tCtx, firstNode)
		tCtx.ExpectNoError(err)
		for _, lock := range locks {
			if lock.Who == kubeletLock {
				return
			}
		}
		tCtx.Fatal("the kubelet has no lock")
	})
	expectShutdownInProgress(tCtx, v1.ConditionFalse)
}

func expectShutdownInProgress(tCtx ktesting.TContext, want v1.ConditionStatus) {
	tCtx.Helper()
	await(tCtx, "the condition of the node", func(tCtx ktesting.TContext) {
		if status := nodeCondition(getNode(tCtx, firstNode), shutdownInProgress); status != want {
			tCtx.Fatalf("%s is %s, want %s", shutdownInProgress, status, want)
		}
	})
}

// cancelAndShutDownBase shows what the kubelet of the base does instead: after a shutdown that was
// canceled it has no lock, so that the next shutdown does not wait for its pods.
func (s *shutdownTest) cancelAndShutDownBase(tCtx ktesting.TContext) {
	release := s.keepUp(tCtx, baseNode)
	// It closes the number of the file that was its lock. Sometimes that is another file already.
	for range 5 {
		s.shutDown(tCtx, baseNode)
		s.awaitLocks(tCtx, baseNode, "test")
		tCtx.ExpectNoError(s.real.CancelShutdown(tCtx, baseNode))
		await(tCtx, "the node to take pods", func(tCtx ktesting.TContext) { expectTakesPods(tCtx, getNode(tCtx, baseNode)) })
		locks, err := s.real.InhibitLocks(tCtx, baseNode)
		tCtx.ExpectNoError(err)
		if len(locks) == 1 {
			break
		}
	}
	s.expectLocks(tCtx, baseNode, "test")

	late := s.startWorker(tCtx, worker{name: "late", node: baseNode, need: time.Second})
	release()
	s.awaitLocks(tCtx, baseNode)
	s.shutDown(tCtx, baseNode)
	if outcome := s.expectDown(tCtx, baseNode, logind.LocksReleased); outcome.After > late.need {
		tCtx.Errorf("the node goes down after %v", outcome.After)
	}
	s.expectFinished(tCtx, false, late)
	s.powerOn(tCtx, baseNode)
}

// loseAPIServer shuts the node down while the API server does not answer. The kubelet begins to
// terminate pods as without a maintenance, and stops that when the API server answers: the shop,
// which is critical and would be next, moves. When the API server is
// away again, the node goes down in time.
func (s *shutdownTest) loseAPIServer(tCtx ktesting.TContext) {
	const critical, delay = scheduling.SystemClusterCritical, 35 * time.Second
	createShopOn(tCtx, firstNode, critical)
	normal := s.startWorker(tCtx, worker{name: "normal", node: firstNode, need: normalPeriod - 2*time.Second})
	static := s.createStaticWorker(tCtx, worker{name: "static", node: firstNode, need: time.Minute}, func(pod *v1.Pod) {
		// The kubelet does not know the values of classes.
		pod.Spec.PriorityClassName, pod.Spec.Priority = critical, ptr.To[int32](scheduling.SystemCriticalPriority)
	})
	awaitWorkers(tCtx, static)
	tCtx.ExpectNoError(s.real.SetInhibitDelay(tCtx, firstNode, delay))
	client := s.openShop(tCtx, firstNode)
	defer s.thaw(tCtx)

	s.freeze(tCtx)
	s.shutDown(tCtx, firstNode)
	s.awaitEnding(tCtx, normal)
	s.thaw(tCtx)
	awaitFacts(tCtx, realPodsOn(shop, secondNode, 1), realPodsOn(shop, firstNode, 0))
	// Until the kubelet has stopped to terminate pods, the node is not ready. Where a controller sees
	// that, it takes the shop from the Service for a moment.
	if requests, most := client.stop(), int(realShopStart/requestInterval); requests.failed() > most {
		tCtx.Errorf("with the API server away for a while: %s", requests)
	}
	s.awaitEnding(tCtx, static)
	s.freeze(tCtx)
	if outcome := s.expectDown(tCtx, firstNode, logind.LocksReleased); outcome.After < delay-ordinaryPeriod {
		tCtx.Errorf("the node goes down after %v, before the drain could have gone on", outcome.After)
	}
	s.thaw(tCtx)
	s.expectFinished(tCtx, true, normal)
	s.expectFinished(tCtx, false, static)
	s.powerOn(tCtx, firstNode)
}

func (s *shutdownTest) freeze(tCtx ktesting.TContext) {
	tCtx.Helper()
	tCtx.ExpectNoError(s.real.SignalControlPlane(controlplane.APIServer, unix.SIGSTOP))
}

func (s *shutdownTest) thaw(tCtx ktesting.TContext) {
	tCtx.Helper()
	tCtx.ExpectNoError(s.real.SignalControlPlane(controlplane.APIServer, unix.SIGCONT))
}

// runOutOfTime shuts the node down with a delay that is too short for the drain. What is left is
// terminated as without a maintenance, before the delay is over.
func (s *shutdownTest) runOutOfTime(tCtx ktesting.TContext) {
	const drain = 5 * time.Second
	began := time.Now()
	tCtx.ExpectNoError(s.real.SetInhibitDelay(tCtx, firstNode, drain+ordinaryPeriod))
	almost := s.startWorker(tCtx, worker{name: "almost", node: firstNode, need: drain + 2*time.Second})
	endless := s.startWorker(tCtx, worker{name: "endless", node: firstNode, need: time.Minute})
	s.shutDown(tCtx, firstNode)
	if outcome := s.expectDown(tCtx, firstNode, logind.LocksReleased); outcome.After < drain {
		tCtx.Errorf("the node goes down after %v", outcome.After)
	}
	s.expectFinished(tCtx, true, almost)
	s.expectFinished(tCtx, false, endless)
	awaitEvent(tCtx, firstNode, "ShutdownDelayTooShort", began)
	s.powerOn(tCtx, firstNode)
}

// restartBus restarts D-Bus before a shutdown, and during the drain.
func (s *shutdownTest) restartBus(tCtx ktesting.TContext) {
	slow := s.startWorker(tCtx, worker{name: "slow", node: firstNode, need: normalPeriod + 2*time.Second})
	tCtx.ExpectNoError(s.real.RestartBus(tCtx, firstNode))
	await(tCtx, "the kubelet to reach the bus again", func(tCtx ktesting.TContext) {
		s.expectLocks(tCtx, firstNode, kubeletLock)
	})
	s.shutDown(tCtx, firstNode)
	s.awaitEnding(tCtx, slow)
	tCtx.ExpectNoError(s.real.RestartBus(tCtx, firstNode))
	s.expectDown(tCtx, firstNode, logind.LocksReleased)
	s.expectFinished(tCtx, true, slow)
	s.powerOn(tCtx, firstNode)
}

// restartKubelet kills the kubelet during the drain. Its lock ends with it, so another program must
// keep the node up: logind gives out no locks during a shutdown.
func (s *shutdownTest) restartKubelet(tCtx ktesting.TContext) {
	began := time.Now()
	slow := s.startWorker(tCtx, worker{name: "slow", node: firstNode, need: normalPeriod})
	daemon := s.createDaemonWorker(tCtx, worker{name: "daemon", node: firstNode, need: time.Second})
	awaitWorkers(tCtx, daemon)
	release := s.keepUp(tCtx, firstNode)
	s.shutDown(tCtx, firstNode)
	s.awaitEnding(tCtx, slow)
	tCtx.ExpectNoError(s.real.RestartKubelet(tCtx, firstNode, unix.SIGKILL))
	awaitEvent(tCtx, firstNode, "DrainedForShutdown", began)
	s.expectFinished(tCtx, true, slow, daemon)
	expectStage(tCtx, firstNode, coordinationv1alpha1.NodeMaintenanceStageDrain)
	release()
	s.expectDown(tCtx, firstNode, logind.LocksReleased)
	s.powerOn(tCtx, firstNode)
}

// joinMaintenance shuts a node down that a maintenance drains already. The kubelet waits for that,
// and does not end it: the administrator does.
func (s *shutdownTest) joinMaintenance(tCtx ktesting.TContext) {
	maintenances := tCtx.Client().CoordinationV1alpha1().NodeMaintenances()
	m := newMaintenance("administrator", v1.NodeSelectorTerm{
		MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{firstNode}}},
	})
	m.Spec.Reason = "new disks"
	before := shutdownMaintenance(tCtx, firstNode)
	slow := s.startWorker(tCtx, worker{name: "slow", node: firstNode, need: normalPeriod + 2*time.Second})
	create(tCtx, maintenances, m)
	s.awaitEnding(tCtx, slow)
	s.shutDown(tCtx, firstNode)
	s.expectDown(tCtx, firstNode, logind.LocksReleased)
	s.expectFinished(tCtx, true, slow)
	if after := shutdownMaintenance(tCtx, firstNode); after.GetUID() != before.GetUID() {
		tCtx.Errorf("the kubelet has created maintenance %s, beside %s", after.GetName(), m.Name)
	}

	boot := getNode(tCtx, firstNode).Status.NodeInfo.BootID
	tCtx.ExpectNoError(s.real.PowerOn(tCtx, firstNode))
	await(tCtx, "the node to boot", func(tCtx ktesting.TContext) {
		node := getNode(tCtx, firstNode)
		if node.Status.NodeInfo.BootID == boot || nodeCondition(node, v1.NodeReady) != v1.ConditionTrue {
			tCtx.Fatal("it has not")
		}
	})
	if node := getNode(tCtx, firstNode); node.Status.MaintenanceStatus == nil {
		tCtx.Error("the maintenance of the administrator has ended")
	}
	_, err := maintenances.Patch(tCtx, m.Name, types.MergePatchType, []byte(`{"spec":{"stage":"Complete"}}`), metav1.PatchOptions{})
	tCtx.ExpectNoError(err)
	await(tCtx, "the node to take pods", func(tCtx ktesting.TContext) { expectTakesPods(tCtx, getNode(tCtx, firstNode)) })
}
