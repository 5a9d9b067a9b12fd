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
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// LiveClaimsAge is how old what was read of the maintenances may be when a node is released. All nodes share it.
const LiveClaimsAge = time.Second

// liveClaims has the maintenances as the API server has said. A process that was suspended goes on before it knows that
// it no longer leads, and its caches come one after the other: with the node as it is now, of which the writes of the
// next leader are a part, and the maintenances as they were, it would take the node from those that have begun since.
type liveClaims struct {
	// lock is held while they are read, so that others wait for it.
	lock         sync.Mutex
	at           time.Time
	maintenances []coordinationv1alpha1.NodeMaintenance
	byUID        map[types.UID]*coordinationv1alpha1.NodeMaintenance
	err          error
}

// Release returns an error if a maintenance claims the node that is not among the specs on which it was decided to
// release it, or not as it is now: the cache may have it already, and its progress not yet, which other workers record. It
// precedes the writes that take something from a maintenance: the node is uncordoned, its drain targets, its claim or an
// admission are withdrawn, or a request is.
func (c *Confirmer) Release(ctx context.Context, node *v1.Node, specs []progress.Spec) error {
	maintenances, _, err := c.readClaims(ctx)
	if err != nil {
		return fmt.Errorf("reading the NodeMaintenances before the node is released: %w", err)
	}
	for i := range maintenances {
		m := &maintenances[i]
		// What was read may be a moment old, and older than the cache.
		if known, err := c.maintenances.Get(m.Name); err == nil && known.UID == m.UID && known.Generation > m.Generation {
			m = known
		}
		if !claimsNode(m, node) {
			continue
		}
		if slices.ContainsFunc(specs, func(o progress.Spec) bool { return o.UID == m.UID && o.Generation >= m.Generation }) {
			continue
		}
		// An invalid one is ignored, and never among the specs.
		if _, err := progress.NewSpec(m); err == nil {
			return write.NewUnseen(write.MaintenanceResource, m.Name, errors.New("it claims the node, and was not known as it is now when it was decided to release it"))
		}
	}
	return nil
}

// Claims returns an error if the API server says that a maintenance does not claim the node that does by the specs. It
// precedes the writes that give something to a maintenance: the node is cordoned, or its claim or an admission recorded. A
// process that was suspended would take the node for one that has ended since, and nobody would give it back. What cannot be
// read keeps no node from being claimed.
func (c *Confirmer) Claims(ctx context.Context, node *v1.Node, specs []progress.Spec) error {
	_, byUID, err := c.readClaims(ctx)
	if err != nil {
		return nil
	}
	for i := range specs {
		o := &specs[i]
		if !o.Claims() || claimsNode(byUID[o.UID], node) {
			continue
		}
		// What was read may be a moment older than the maintenance.
		if m, err := c.readClaim(ctx, o.Name); apierrors.IsNotFound(err) || err == nil && (m.UID != o.UID || !claimsNode(m, node)) {
			return write.NewUnseen(write.MaintenanceResource, o.Name, errors.New("it does not claim the node any more, which was not known when it was decided to claim it"))
		}
	}
	return nil
}

func (c *Confirmer) readClaim(ctx context.Context, name string) (*coordinationv1alpha1.NodeMaintenance, error) {
	ctx, cancel := context.WithTimeout(ctx, write.ReadTimeout)
	defer cancel()
	return c.writer.RequestClient.CoordinationV1alpha1().NodeMaintenances().Get(ctx, name, metav1.GetOptions{})
}

// claimsNode reports whether a maintenance, which may be nil, claims the node.
func claimsNode(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node) bool {
	if m == nil || m.DeletionTimestamp != nil {
		return false
	}
	claims := m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageCordon || m.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain
	return claims && maintenance.SelectsNode(m.Spec.NodeSelector, node)
}

// readClaims returns the maintenances as the API server has them, and by UID.
func (c *Confirmer) readClaims(ctx context.Context) (all []coordinationv1alpha1.NodeMaintenance, byUID map[types.UID]*coordinationv1alpha1.NodeMaintenance, err error) {
	l := &c.claims
	l.lock.Lock()
	defer l.lock.Unlock()
	if isCurrent(c.clock.Now(), l.at, LiveClaimsAge) {
		return l.maintenances, l.byUID, l.err
	}
	ctx, cancel := context.WithTimeout(ctx, write.ReadTimeout)
	defer cancel()
	began := c.clock.Now()
	list, err := c.writer.RequestClient.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
	l.at, l.err, l.maintenances, l.byUID = began, err, nil, nil
	if err != nil {
		l.at = c.clock.Now() // Others have waited for it, and do not wait for one after the other.
		return nil, nil, err
	}
	l.maintenances, l.byUID = list.Items, make(map[types.UID]*coordinationv1alpha1.NodeMaintenance, len(list.Items))
	for i := range list.Items {
		l.byUID[list.Items[i].UID] = &list.Items[i]
	}
	return l.maintenances, l.byUID, nil
}

// AreUnserved reports whether kube-apiserver does not serve NodeMaintenances any more, because its gate was turned off: the
// cache keeps them, and nobody can complete them. Who makes a node schedulable then must have the last word. Requests,
// releases and escalations read the maintenances anyway.
func (c *Confirmer) AreUnserved(ctx context.Context) bool {
	_, _, err := c.readClaims(ctx)
	return apierrors.IsNotFound(err)
}
