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
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// historyFault is something that disturbs the programs.
type historyFault struct {
	name string
	// cause takes at most a few seconds, or what it is given.
	cause func(t *historyTest, tCtx ktesting.TContext, d disturbance)
}

// disturbance is what a fault is about. Everything that is random is decided before, so that leaving a fault out does
// not change the others.
type disturbance struct {
	replica *controlplane.ControlPlane
	release controlplane.Release
	// member is one of etcd.
	member int
	// long is four to 16 seconds, often longer than a lease, and short up to three.
	long, short time.Duration
	// meanwhile is whether other faults come while the network is disturbed.
	meanwhile bool
	// random is a source for the fault alone.
	random *rand.Rand
}

// historyFaults are chosen with the same probability. What matters more is there twice.
var historyFaults = append([]historyFault{
	{"suspend a controller manager", suspendControllerManager},
	{"suspend a controller manager", suspendControllerManager},
	{"suspend an API server and its controller manager", suspendBoth},
	{"suspend an API server and its controller manager", suspendBoth},
	{"kill a controller manager", killControllerManager},
	{"kill a controller manager", killControllerManager},
	{"no controller manager runs", stopControllerManagers},
	{"kill an API server", restartAPIServer},
	{"kill an API server that returns without the lane", func(t *historyTest, tCtx ktesting.TContext, d disturbance) {
		d.release.FeatureGates = strings.Replace(d.release.FeatureGates, "EvictionLane=true", "EvictionLane=false", 1)
		restartAPIServer(t, tCtx, d)
	}},
	{"compact etcd", func(t *historyTest, tCtx ktesting.TContext, _ disturbance) { t.compact(tCtx) }},
	{"compact etcd", func(t *historyTest, tCtx ktesting.TContext, _ disturbance) { t.compact(tCtx) }},
	{"suspend etcd", func(t *historyTest, tCtx ktesting.TContext, d disturbance) {
		suspend(tCtx, t.replicas[0], d.short, t.replicas[0].EtcdMembers()...)
	}},
	{"suspend the leader of etcd", suspendEtcdLeader},
	{"kill a member of etcd", killEtcdMember},
	{"no node is ready", outage},
	{"no node is ready", outage},
	{"the leader does not hear of changes", deafen},
	{"the leader does not hear of changes", deafen},
	{"the leader does not hear of changes", deafen},
	{"the leader does not hear of changes", deafen},
	{"the status of a node is held", holdStatus},
	{"the status of a node is held", holdStatus},
	{"the status of a node is held", holdStatus},
}, networkFaults()...)

func faultNames() []string {
	var names []string
	for i := range historyFaults {
		if i == 0 || historyFaults[i].name != historyFaults[i-1].name {
			names = append(names, historyFaults[i].name)
		}
	}
	return names
}

// chosenFaults are all faults, or those of some names alone.
func (t *historyTest) chosenFaults() []historyFault {
	if t.only.Len() == 0 {
		return historyFaults
	}
	return slices.DeleteFunc(slices.Clone(historyFaults), func(f historyFault) bool { return !t.only.Has(f.name) })
}

// causeFaults disturbs the programs for the time of the history. One API server goes on at any time, unless etcd does not.
func (t *historyTest) causeFaults(tCtx ktesting.TContext) {
	tCtx.Helper()
	random := rand.New(rand.NewPCG(t.seed, 1))
	pause := func(longest time.Duration) time.Duration { return time.Duration(random.Int64N(int64(longest))) }
	faults := t.chosenFaults()
	for end := time.Now().Add(t.duration); time.Now().Before(end); {
		select {
		case <-t.found:
			return
		case <-time.After(pause(6 * time.Second)):
		}
		i, f := random.IntN(len(t.replicas)), faults[random.IntN(len(faults))]
		d := disturbance{
			replica: t.replicas[i], release: t.releases[i], long: 4*time.Second + pause(12*time.Second), short: pause(3 * time.Second),
			meanwhile: random.IntN(2) == 0, member: random.IntN(etcdMembers), random: rand.New(rand.NewPCG(random.Uint64(), 2)),
		}
		if t.without.Has(f.name) {
			continue
		}
		tCtx.Logf("%s (replica %d, member %d, %v, %v, %t)", f.name, i, d.member, d.long.Round(time.Millisecond), d.short.Round(time.Millisecond), d.meanwhile)
		t.restartEnded(tCtx)
		f.cause(t, tCtx, d)
		t.restartEnded(tCtx)
	}
	t.disturbed.Wait()
	time.Sleep(time.Second) // Who has been told that another one leads ends.
	t.restartEnded(tCtx)
}

func suspend(tCtx ktesting.TContext, replica *controlplane.ControlPlane, duration time.Duration, components ...string) {
	tCtx.Helper()
	tCtx.ExpectNoError(replica.Suspend(components...))
	time.Sleep(duration)
	tCtx.ExpectNoError(replica.Resume(components...))
}

func suspendControllerManager(_ *historyTest, tCtx ktesting.TContext, d disturbance) {
	tCtx.Helper()
	suspend(tCtx, d.replica, d.long, controlplane.ControllerManager)
}

func suspendBoth(_ *historyTest, tCtx ktesting.TContext, d disturbance) {
	tCtx.Helper()
	suspend(tCtx, d.replica, d.long, controlplane.ControllerManager, controlplane.APIServer)
}

func killControllerManager(t *historyTest, tCtx ktesting.TContext, d disturbance) {
	tCtx.Helper()
	_ = d.replica.KillControllerManager() // One that has lost its lease has ended by itself.
	time.Sleep(d.short)
	t.awaitNetwork()
	tCtx.ExpectNoError(d.replica.StartControllerManager(tCtx, d.release))
}

// idle is how much longer no controller manager runs than another one is suspended: longer than API servers take a request
// for wanted that nobody has withdrawn, and than rules allow for that.
const idle = 22 * time.Second

// stopControllerManagers has others change what controllers have begun, and call off drains: the next ones find that all at
// once.
func stopControllerManagers(t *historyTest, tCtx ktesting.TContext, d disturbance) {
	tCtx.Helper()
	client := t.clients[0]
	t.beginDrain(tCtx, client)
	for _, replica := range t.replicas {
		_ = replica.KillControllerManager() // One that has lost its lease has ended by itself.
	}
	// What waits for budgets may go, and is not wanted any more.
	_ = endAll(tCtx, client)
	letGo(tCtx, client, tCtx.Namespace())
	t.pause(idle + d.long)
	t.awaitNetwork()
	for i, replica := range t.replicas {
		tCtx.ExpectNoError(replica.StartControllerManager(tCtx, t.releases[i]))
	}
}

func restartAPIServer(t *historyTest, tCtx ktesting.TContext, d disturbance) {
	tCtx.Helper()
	tCtx.ExpectNoError(d.replica.KillAPIServer())
	time.Sleep(d.short)
	t.awaitNetwork()
	tCtx.ExpectNoError(d.replica.StartAPIServer(tCtx, d.release))
}

// suspendEtcdLeader has the other members elect another one.
func suspendEtcdLeader(t *historyTest, tCtx ktesting.TContext, d disturbance) {
	tCtx.Helper()
	plane := t.replicas[0]
	leader := t.etcdLeader(tCtx)
	if leader < 0 {
		return
	}
	tCtx.ExpectNoError(plane.Suspend(plane.EtcdMembers()[leader]))
	time.Sleep(d.long)
	tCtx.Logf("while member %d of etcd is suspended, %d leads", leader, t.etcdLeader(tCtx))
	tCtx.ExpectNoError(plane.Resume(plane.EtcdMembers()[leader]))
}

// etcdLeader returns which member of etcd leads, or -1 if none says so.
func (t *historyTest) etcdLeader(ctx context.Context) int {
	leader := -1
	for i, server := range t.etcd.Endpoints() {
		statusCtx, cancel := context.WithTimeout(ctx, time.Second)
		// A former leader that is suspended does not answer.
		if status, err := t.etcd.Status(statusCtx, server); err == nil && status.Leader == status.Header.MemberId {
			leader = i
		}
		cancel()
	}
	return leader
}

// killEtcdMember kills a member, which returns with its data.
func killEtcdMember(t *historyTest, tCtx ktesting.TContext, d disturbance) {
	tCtx.Helper()
	plane := t.replicas[0]
	member := plane.EtcdMembers()[d.member]
	wasLeader := t.etcdLeader(tCtx) == d.member
	tCtx.ExpectNoError(plane.Kill(member))
	time.Sleep(d.long)
	tCtx.Logf("without %s, which led before: %t, member %d of etcd leads", member, wasLeader, t.etcdLeader(tCtx))
	tCtx.ExpectNoError(plane.Start(tCtx, controlplane.Release{Bin: t.bin}, member))
}

// compact has etcd forget what was before: who reads on from there has to list everything again.
func (t *historyTest) compact(tCtx ktesting.TContext) {
	tCtx.Helper()
	t.lock.Lock()
	revision := t.checker.Revision() // What was not checked is kept.
	t.lock.Unlock()
	ctx, cancel := context.WithTimeout(tCtx, 10*time.Second)
	defer cancel()
	if _, err := t.etcd.Compact(ctx, revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		tCtx.Errorf("compacting etcd: %v", err)
	}
}

// outage is a network between nodes and API servers that fails: nobody hears of the nodes, some of which may be drained. The
// mechanic sees to their return.
func outage(t *historyTest, tCtx ktesting.TContext, d disturbance) {
	tCtx.Helper()
	if client := t.clients[0]; d.meanwhile {
		t.beginDrain(tCtx, client)
		defer func() {
			t.pause(takeover) // The drain goes on when the nodes are back.
			_ = endAll(tCtx, client)
			letGo(tCtx, client, tCtx.Namespace())
		}()
	}
	t.isOut.Store(true)
	defer t.isOut.Store(false)
	end, lost := time.Now().Add(d.long), 0
	for i := range historyNodes {
		// One of the API servers may not answer.
		if err := patchNodeCondition(tCtx, t.clients[i%len(t.clients)], fmt.Sprintf("node-%d", i), v1.NodeReady, v1.ConditionUnknown, "NodeStatusUnknown"); err == nil {
			lost++
		}
	}
	tCtx.Logf("%d nodes are lost", lost)
	time.Sleep(time.Until(end))
}
