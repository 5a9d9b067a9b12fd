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
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/kubernetes/test/utils/controlplane"
)

// watch checks during a start that what has been started still runs.
type watch struct {
	cluster *Cluster
	// ended returns an error if the cluster has ended by itself.
	ended func() error
	// endedSince is when a node or component was first seen to have ended.
	endedSince time.Time
	// steps are those of the start that are not done.
	steps []step
	last  time.Time
}

// step is a part of the start of a script.
type step struct {
	// done is what was done when there is the log.
	done, log string
}

// scriptSteps are in the order of their logs.
var scriptSteps = []step{
	{"containerd runs and has the images", scriptName},
	{"etcd runs, certificates are made", controlplane.APIServer},
	{"kube-apiserver is ready", controlplane.ControllerManager},
	{"kube-controller-manager and kube-scheduler are started", kubelet},
}

func (c *Cluster) newWatch(ended func() error) *watch {
	w := &watch{cluster: c, ended: ended, last: time.Now()}
	if c.Script != nil {
		w.steps = scriptSteps
	}
	return w
}

// endedAfter is after what time a node without a lock has ended, or a component without a process:
// the lock may be about to be taken, and the process to start.
const endedAfter = time.Second

// startsWithin is that time for a component whose log is empty: the script has opened it, but on a busy
// machine, seconds may pass before the program runs. What has ended by itself has said why.
const startsWithin = 15 * time.Second

// check returns an error if the cluster, a node or a component of a script has ended. It says which
// steps are done.
func (w *watch) check() error {
	if err := w.ended(); err != nil {
		return err
	}
	for len(w.steps) > 0 && exists(w.cluster.log(w.steps[0].log)) {
		w.say(w.steps[0].done)
		w.steps = w.steps[1:]
	}
	node, component := w.cluster.endedNode(), w.cluster.endedComponent()
	if node == "" && component == "" {
		w.endedSince = time.Time{}
		return nil
	}
	if w.endedSince.IsZero() {
		w.endedSince = time.Now()
	}
	patience := endedAfter
	if node == "" && isEmpty(w.cluster.log(component)) {
		patience = startsWithin
	}
	if time.Since(w.endedSince) < patience {
		return nil
	}
	if node != "" {
		return fmt.Errorf("%s has ended:\n%s", node, w.cluster.nodeLogs(node))
	}
	return fmt.Errorf("%s has ended:\n%s", component, controlplane.LogEnd(w.cluster.log(component)))
}

// end says how long the last step took.
func (w *watch) end() {
	if w.cluster.Script != nil {
		w.say(fmt.Sprintf("node %s is ready", w.cluster.Script.node()))
	}
}

func (w *watch) say(done string) {
	now := time.Now()
	w.cluster.printf("  %5.1f s  %s\n", now.Sub(w.last).Seconds(), done)
	w.last = now
}

func isEmpty(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Size() == 0
}

// log is that of a node or component.
func (c *Cluster) log(name string) string { return filepath.Join(c.Local.Logs(), name+".log") }
