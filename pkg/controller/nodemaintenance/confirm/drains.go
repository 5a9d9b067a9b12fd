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

package confirm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// LiveDrainAge is how old what was read of a node may be when the eviction of one of its pods is requested. The pods of
// a node share what is read.
const LiveDrainAge = time.Second

// liveDrains has what the API server has said of nodes whose pods are requested to leave. A process that was suspended
// goes on with old caches, and does not know yet that it no longer leads: it would request evictions for maintenances
// that have ended, and a pod without interceptors has left before anybody withdraws.
type liveDrains struct {
	lock  sync.Mutex
	nodes map[string]*liveDrain
}

// liveDrain is what was read of one node. The lock is held while it is read, so that others wait for it.
type liveDrain struct {
	lock    sync.Mutex
	at      time.Time
	of      string
	targets maintenance.Targets
	// err is why it could not be read, or what it contradicts.
	err error
}

func newLiveDrains() *liveDrains { return &liveDrains{nodes: map[string]*liveDrain{}} }

func (l *liveDrains) get(node string) *liveDrain {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.nodes[node] == nil {
		l.nodes[node] = &liveDrain{}
	}
	return l.nodes[node]
}

func (l *liveDrains) forget(node string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.nodes, node)
}

// Drain returns an error unless the API server agrees that the maintenances drain the node, and that its targets
// take the pod.
func (c *Confirmer) Drain(ctx context.Context, pod *v1.Pod, node *v1.Node, specs []progress.Spec) error {
	known, of := c.drains.get(node.Name), drainOf(node, specs)
	known.lock.Lock()
	defer known.lock.Unlock()
	now := c.clock.Now()
	if known.of != of || !isCurrent(now, known.at, LiveDrainAge) || known.err == nil && !known.targets.Take(pod) {
		known.at, known.of = now, of
		if known.targets, known.err = c.readDrain(ctx, node, specs); known.err != nil {
			known.at = c.clock.Now() // Others have waited for it, and do not wait for one after the other.
		}
	}
	if known.err != nil {
		return known.err
	}
	if !known.targets.Take(pod) {
		return apierrors.NewConflict(write.NodeResource, node.Name, errors.New("the drain targets of the node do not take the pod any more"))
	}
	return nil
}

// drainOf identifies what is to be confirmed.
func drainOf(node *v1.Node, specs []progress.Spec) string {
	of := []string{string(node.UID)}
	for i := range specs {
		if specs[i].Drains() {
			of = append(of, string(specs[i].UID))
		}
	}
	return strings.Join(of, " ")
}

// readDrain returns the targets of the node as the API server has them, and an error unless all these maintenances are
// there and drain.
func (c *Confirmer) readDrain(ctx context.Context, node *v1.Node, specs []progress.Spec) (maintenance.Targets, error) {
	ctx, cancel := context.WithTimeout(ctx, write.ReadTimeout)
	defer cancel()
	for i := range specs {
		o := &specs[i]
		if !o.Drains() {
			continue
		}
		m, err := c.writer.RequestClient.CoordinationV1alpha1().NodeMaintenances().Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return maintenance.Targets{}, fmt.Errorf("reading the NodeMaintenance: %w", err)
		}
		if m.UID != o.UID || m.DeletionTimestamp != nil || m.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain {
			return maintenance.Targets{}, apierrors.NewConflict(write.MaintenanceResource, o.Name, errors.New("the NodeMaintenance does not drain any more"))
		}
	}
	stored, err := c.writer.RequestClient.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return maintenance.Targets{}, fmt.Errorf("reading the node: %w", err)
	}
	if stored.UID != node.UID {
		return maintenance.Targets{}, apierrors.NewConflict(write.NodeResource, node.Name, errors.New("it is another node"))
	}
	for i := range specs {
		if o := &specs[i]; o.Drains() && maintenance.IsGivenBack(stored, o.UID) {
			return maintenance.Targets{}, apierrors.NewConflict(write.NodeResource, node.Name, fmt.Errorf("NodeMaintenance %s has given the node back", o.Name))
		}
	}
	return progress.StoredTargets(stored), nil
}
