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

package evictionrequest

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
)

const (
	// sweepInterval is the time between two sweeps. It is short, so that one sweep enqueues few of many
	// requests: others must not wait for them.
	sweepInterval = 10 * time.Second

	// sweeps is after how many sweeps each request was enqueued once.
	sweeps = uint32(safetyInterval / sweepInterval)
)

// sweeper enqueues requests for which no event comes: those that wait for one, every safetyInterval, and
// finished ones when their TTL has passed. It has one timer for all. A timer for each request would stay in
// the queue until it fires, also if the request is long gone: an hour after a drain, for each of its pods.
type sweeper struct {
	round uint32
	// last is when the last sweep was.
	last time.Time
}

// sweep sweeps until ctx is done.
func (c *Controller) sweep(ctx context.Context) {
	ticker := c.clock.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.sweepOnce(c.clock.Now())
		}
	}
}

// sweepOnce enqueues the requests whose turn it is, the oldest first.
func (c *Controller) sweepOnce(now time.Time) {
	requests, err := c.requestLister.List(labels.Everything())
	if err != nil {
		return // A lister that reads from a cache returns no errors.
	}
	requests = slices.DeleteFunc(requests, func(request *coordinationv1alpha1.EvictionRequest) bool { return !c.isDue(now, request) })
	slices.SortFunc(requests, func(a, b *coordinationv1alpha1.EvictionRequest) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, request := range requests {
		c.enqueueRequest(request)
	}
	c.sweeper.round, c.sweeper.last = (c.sweeper.round+1)%sweeps, now
}

// isDue reports whether this sweep enqueues the request. A finished one whose TTL has passed since the last
// sweep is deleted now. If that fails, it has its turn like the others: the API server may refuse the deletion
// of very many.
func (c *Controller) isDue(now time.Time, request *coordinationv1alpha1.EvictionRequest) bool {
	isTurn := turnOf(request.Name) == c.sweeper.round
	if !evictionrequesttools.IsFinished(request.Status.Conditions) {
		return isTurn
	}
	wasDue := isGarbage(c.sweeper.last, request, c.ttlAfterFinished, false)
	return isGarbage(now, request, c.ttlAfterFinished, false) && (isTurn || !wasDue)
}

// turnOf returns in which of the sweeps a request is enqueued: they are spread, because those of a drain are
// created together.
func turnOf(request string) uint32 {
	hash := fnv.New32a()
	hash.Write([]byte(request)) //nolint:errcheck // It never fails.
	return hash.Sum32() % sweeps
}
