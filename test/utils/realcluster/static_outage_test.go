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

package realcluster

import (
	"maps"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// outage is how long the API server does not answer: longer than the kubelet waits before it starts
// a pod again that the API server may need.
const outage = time.Minute

// outageCase is a node in a certain state when the API server stops to answer.
type outageCase struct {
	// prepare brings the node near to the state, begin into it.
	prepare, begin func(*staticNode)
	// withoutControllers is called when no controller runs any more.
	withoutControllers func(*staticNode)
	// during is called with the end of the outage.
	during func(*staticNode, time.Time)
	after  func(*staticNode)
}

var outageCases = map[string]outageCase{
	"before a stop":       beforeStop,
	"while stopping":      whileStopping,
	"after the end":       afterEnd,
	"held":                whileHeld,
	"held, without power": whileHeldWithoutPower,
	"completed":           completed,
	"released":            released,
}

// TestNodeStaticPodsWithoutAPIServer freezes the API server while nodes are in different states.
func TestNodeStaticPodsWithoutAPIServer(t *testing.T) {
	c := newNamedTestCluster(t, "test-outage")
	c.Local.Nodes = len(outageCases)
	ensure(t, c)
	phase := func(name string, step func(outageCase, *staticNode)) {
		ok := t.Run(name, func(t *testing.T) {
			for index, name := range slices.Sorted(maps.Keys(outageCases)) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					step(outageCases[name], newStaticNode(t, c, nodeName(index)))
				})
			}
		})
		if !ok {
			t.FailNow()
		}
	}
	signal := func(component string, signal unix.Signal) {
		if err := c.SignalControlPlane(component, signal); err != nil {
			t.Fatal(err)
		}
	}
	phase("prepare", func(c outageCase, n *staticNode) { c.prepare(n) })
	phase("begin", func(c outageCase, n *staticNode) {
		if c.begin != nil {
			c.begin(n)
		}
	})
	signal(controlplane.ControllerManager, unix.SIGSTOP)
	phase("without controllers", func(c outageCase, n *staticNode) {
		if c.withoutControllers != nil {
			c.withoutControllers(n)
		}
	})
	signal(controlplane.APIServer, unix.SIGSTOP)
	end := time.Now().Add(outage)
	phase("without API server", func(c outageCase, n *staticNode) { c.during(n, end) })
	signal(controlplane.APIServer, unix.SIGCONT)
	signal(controlplane.ControllerManager, unix.SIGCONT)
	phase("after the outage", func(c outageCase, n *staticNode) { c.after(n) })
}

// beforeStop is a node with a pod that has yet to be stopped, because another one stops. That ends
// during the outage: the API server might need it. The API server does not need both.
var beforeStop = outageCase{
	prepare: func(n *staticNode) {
		n.run(staticPod{name: "plain", ending: 30 * time.Second}, staticPod{name: "second"})
	},
	begin: beginStop,
	during: func(n *staticNode, end time.Time) {
		n.awaitRecords("plain", started, asked, ended, started)
		n.staysUntil(end, "the other pod runs", func() bool { return slices.Equal(n.recordsOf("second"), []string{started}) })
	},
	after: func(n *staticNode) {
		n.awaitEvent("StaticPodNeeded", "plain")
		n.awaitMessage("plain", "does not stop the pod again")
		n.awaitRecords("second", started, asked, ended)
		n.awaitOnly("plain")
		n.stays("the pod that was started again", func() bool { return n.areRunning("plain") })
		n.complete("drain")
		n.awaitOnly("plain", "second")
		n.awaitRecords("plain", started, asked, ended, started)
	},
}

// whileStopping is a node with a pod that ends after the outage.
var whileStopping = outageCase{
	prepare: func(n *staticNode) { n.run(staticPod{name: "plain", ending: 100 * time.Second}) },
	begin:   beginStop,
	during: func(n *staticNode, end time.Time) {
		n.staysUntil(end, "the pod ends", func() bool { return slices.Equal(n.recordsOf("plain"), []string{started, asked}) })
	},
	after: func(n *staticNode) {
		n.awaitHeld("plain")
		n.expectRecords("plain", started, asked, ended)
		completeAfterOutage(n)
	},
}

// afterEnd is a node with a pod whose end no controller has processed.
var afterEnd = outageCase{
	prepare:            func(n *staticNode) { n.run(staticPod{name: "plain", ending: 10 * time.Second}) },
	begin:              beginStop,
	withoutControllers: func(n *staticNode) { n.awaitOnly() },
	during: func(n *staticNode, end time.Time) {
		n.awaitRecords("plain", started, asked, ended, started)
		n.staysUntil(end, "the pod runs", func() bool { return len(n.recordsOf("plain")) == 4 })
	},
	after: func(n *staticNode) {
		n.awaitEvent("StaticPodNeeded", "plain")
		n.awaitOnly("plain")
		n.complete("drain")
		n.stays("the pod runs", func() bool { return n.areRunning("plain") })
	},
}

// whileHeld is a node with a pod that stays away over a restart of the kubelet during the outage.
var whileHeld = outageCase{
	prepare: hold,
	during: func(n *staticNode, end time.Time) {
		if err := n.cluster.RestartKubelet(n.Context(), n.name, unix.SIGKILL); err != nil {
			n.Fatal(err)
		}
		n.staysUntil(end, "no pod runs", func() bool { return slices.Equal(n.recordsOf("plain"), []string{started, asked, ended}) })
	},
	after: stillHeld,
}

// whileHeldWithoutPower is a node that boots during the outage. The kubelet does start a pod of which
// it does not know.
var whileHeldWithoutPower = outageCase{
	prepare: func(n *staticNode) {
		hold(n)
		if err := n.cluster.PowerOff(n.Context(), n.name); err != nil {
			n.Fatal(err)
		}
		n.write(staticPod{name: "new"})
	},
	during: func(n *staticNode, end time.Time) {
		if err := n.cluster.PowerOn(n.Context(), n.name); err != nil {
			n.Fatal(err)
		}
		n.awaitRecords("new", started)
		n.staysUntil(end, "no other pod runs", func() bool { return slices.Equal(n.recordsOf("plain"), []string{started, asked, ended}) })
	},
	after: func(n *staticNode) {
		n.awaitRecords("new", started, asked, ended)
		n.awaitOnly()
		n.removeManifest("new")
		stillHeld(n)
	},
}

// completed is a node whose maintenance is complete, which no controller has processed.
var completed = outageCase{
	prepare:            hold,
	withoutControllers: func(n *staticNode) { n.complete("drain") },
	during:             whileHeld.during,
	after: func(n *staticNode) {
		n.awaitOnly("plain")
		n.awaitRecords("plain", started, asked, ended, started)
	},
}

// released is a node whose pods start during the outage.
var released = outageCase{
	prepare: hold,
	begin: func(n *staticNode) {
		n.complete("drain")
		n.awaitEvent("StaticPodReleased", "plain")
	},
	during: func(n *staticNode, end time.Time) {
		n.awaitRecords("plain", started, asked, ended, started)
		n.staysUntil(end, "the pod runs", func() bool { return len(n.recordsOf("plain")) == 4 })
	},
	after: func(n *staticNode) { n.awaitOnly("plain") },
}

func beginStop(n *staticNode) {
	n.drain("drain")
	n.awaitRecords("plain", started, asked)
}

// hold drains a node with one static pod.
func hold(n *staticNode) {
	n.run(staticPod{name: "plain"})
	n.drain("drain")
	n.awaitHeld("plain")
	n.awaitDrained("drain")
	n.expectRecords("plain", started, asked, ended)
}

// stillHeld checks that the pods are held until the end of the maintenance.
func stillHeld(n *staticNode) {
	n.stays("without pods", func() bool { return n.areRunning() })
	completeAfterOutage(n)
}

func completeAfterOutage(n *staticNode) {
	n.expectRecords("plain", started, asked, ended)
	n.complete("drain")
	n.awaitOnly("plain")
	n.awaitRecords("plain", started, asked, ended, started)
}
