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

package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// patience is how long a Sync waits for the writes of a batch. One that takes longer, usually because of a
	// webhook, goes on in the background, and delays no other holder or node.
	patience = time.Second

	// maxRunning limits the writes that go on in the background. The objects that were slow before do not use
	// them up: of these, no more are written than a batch has.
	maxRunning = 100
)

// attempts are writes that may hang, by what they write: none is written twice at a time. Only one goroutine may
// use them.
type attempts[K comparable] struct {
	running sets.Set[K]
	ended   chan ended[K]
}

// ended is a write that has ended. Its outcome is handled by the goroutine that uses the attempts.
type ended[K comparable] struct {
	key    K
	handle func()
}

func newAttempts[K comparable]() *attempts[K] {
	return &attempts[K]{sets.New[K](), make(chan ended[K])}
}

// collect handles the outcomes of the writes that have ended since the last batch.
func (a *attempts[K]) collect() {
	for {
		select {
		case e := <-a.ended:
			a.end(e)
		default:
			return
		}
	}
}

func (a *attempts[K]) end(e ended[K]) {
	a.running.Delete(e.key)
	e.handle()
}

// batch makes some writes at the same time, and waits for them, but only for so long.
type batch[K comparable] struct {
	*attempts[K]
	// parallel is how many there may be at a time. If it is 1, they follow each other, however long they take.
	parallel int
	awaited  sets.Set[K]
	timeout  <-chan time.Time
	over     bool
}

func (a *attempts[K]) newBatch(parallel int) *batch[K] {
	b := &batch[K]{attempts: a, parallel: parallel, awaited: sets.New[K]()}
	if parallel > 1 {
		b.timeout = time.After(patience)
	}
	return b
}

// begin begins a write, and reports whether it did: not if the time is over, or too many are running. The
// function makes the call, and returns what handles its outcome.
func (b *batch[K]) begin(ctx context.Context, key K, slowBefore bool, write func() (handle func())) bool {
	limit := maxRunning
	if slowBefore {
		limit = b.parallel
	}
	if !b.waitFor(ctx, b.parallel-1) || b.running.Len() >= limit || b.running.Has(key) {
		return false
	}
	b.running.Insert(key)
	b.awaited.Insert(key)
	go func() {
		e := ended[K]{key, write()}
		select {
		case b.ended <- e:
		case <-ctx.Done(): // Nobody may be there any more.
		}
	}()
	return true
}

// wait waits until all writes have ended, or the time is over.
func (b *batch[K]) wait(ctx context.Context) { b.waitFor(ctx, 0) }

// waitFor waits until no more than so many writes of the batch are running. It reports false if the time is over.
func (b *batch[K]) waitFor(ctx context.Context, running int) bool {
	for b.awaited.Len() > running && !b.over {
		select {
		case e := <-b.ended:
			b.awaited.Delete(e.key)
			b.end(e)
		case <-b.timeout:
			b.over = true
		case <-ctx.Done():
			b.over = true
		}
	}
	return !b.over
}

// Unanswered explains the error of a write that has reached its time-out: the API server, which would name the
// webhook, has not answered.
func Unanswered(ctx context.Context, resource string, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("the API server did not answer in time, maybe because of a webhook for %s: %w", resource, err)
}
