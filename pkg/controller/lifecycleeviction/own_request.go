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

package lifecycleeviction

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/utils/ptr"
)

// request has the requesters of the group in the request of the other one, as long as they have not withdrawn. It returns
// when to try again, if others remove them again and again.
func (c *Controller) request(ctx context.Context, t *target) (wait time.Duration, err error) {
	lacking, left, err := c.compare(ctx, t)
	if err != nil {
		return 0, err
	}
	c.forgetWithdrawn(t.key, t.wanted, left)
	if len(lacking)+len(left) == 0 {
		return 0, nil
	}
	if wait := c.restoreIn(t.key, lacking, left, t.now); wait > 0 {
		return wait, nil
	}
	requesters := []*coordinationapply.RequesterApplyConfiguration{}
	for _, name := range sets.List(t.wanted) {
		requesters = append(requesters, coordinationapply.Requester().WithName(name))
	}
	apply := coordinationapply.EvictionRequest(string(t.uid), t.namespace).WithSpec(coordinationapply.EvictionRequestSpec().
		WithTarget(coordinationapply.EvictionTarget().WithPod(coordinationapply.LocalPodReference().WithName(t.name).WithUID(string(t.uid)))).
		WithRequesters(requesters...))
	if len(requesters) == 0 {
		apply.WithUID(t.request.UID) // If it is gone, no other one is created.
	}
	applied, err := c.client.CoordinationV1alpha1().EvictionRequests(t.namespace).Apply(ctx, apply, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return 0, fmt.Errorf("requesting the eviction of pod %s: %w", t.name, err)
	}
	if c.noteRequested(t.key, t.wanted, lacking, left, t.now) {
		c.recordContest(t)
	}
	t.request = applied
	c.wrote(t, ownResource, applied)
	c.forgetForeign(t.key) // Who else has one of the names, the next reading says.
	return 0, nil
}

// compare returns the requesters of the group that the request lacks, and those that are left there although they have
// withdrawn, and records which ones want the eviction. Who has which name there, only the owners of fields say, which caches
// do not have: they are read once for each change of the request.
func (c *Controller) compare(ctx context.Context, t *target) (lacking, left sets.Set[string], err error) {
	if t.request != nil && evictionrequest.StateOf(t.request) == evictionrequest.StateEvicted {
		return nil, nil, nil
	}
	// First of all, so that nobody acts any more for those that have withdrawn, nor waits for what cannot be written.
	c.compared.Set(t.requestName(), t.wanted)
	switch {
	case t.request == nil && (t.pod == nil || isEvicted(t.evictions)):
		return nil, nil, nil
	case t.request == nil, t.request.DeletionTimestamp != nil && evictionrequest.StateOf(t.request) == evictionrequest.StateCanceled:
		// Finalizers keep the latter, and an apply replaces it.
		return t.wanted, nil, nil
	}
	has := sets.New[string]()
	for _, requester := range t.request.Spec.Requesters {
		if strings.Contains(requester.Name, "/") {
			has.Insert(requester.Name)
		}
	}
	lacking = t.wanted.Difference(has)
	withdrawn := has.Difference(t.wanted)
	if len(withdrawn) == 0 {
		return lacking, nil, nil
	}
	known, found := c.foreignIn(t.key, t.request)
	if !found {
		if known, err = c.readForeign(ctx, t); err != nil {
			return nil, nil, err
		}
	}
	c.compared.Set(t.requestName(), t.wanted.Union(known))
	return lacking, withdrawn.Difference(known), nil
}

// readForeign reads which requesters of the request have not come by the group.
func (c *Controller) readForeign(ctx context.Context, t *target) (sets.Set[string], error) {
	live, err := c.client.CoordinationV1alpha1().EvictionRequests(t.namespace).Get(ctx, t.request.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading who requests the eviction of pod %s: %w", t.name, err)
	}
	ours, err := coordinationapply.ExtractEvictionRequest(live, fieldManager) //nolint:forbidigo // It is read from the API server, with its managedFields.
	if err != nil {
		return nil, fmt.Errorf("reading who requests the eviction of pod %s: %w", t.name, err)
	}
	names := sets.New[string]()
	for _, requester := range live.Spec.Requesters {
		names.Insert(requester.Name)
	}
	if ours.Spec != nil {
		for _, requester := range ours.Spec.Requesters {
			names.Delete(ptr.Deref(requester.Name, ""))
		}
	}
	c.noteForeign(t.key, live, names)
	return names, nil
}
