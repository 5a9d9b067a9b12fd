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

package evictionlane

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// batcher answers calls in batches: one at a time for each key. Calls that arrive during a batch
// wait for the next one, so that no call is answered from what was read before it arrived.
type batcher[K comparable, A, R any] struct {
	// work answers the calls of a batch: it sets result or err of each. What it returns is how long
	// the next batch of this key has to wait if calls wait for it.
	work func(key K, calls []*call[A, R]) (pause time.Duration)
	// started is called with each batch before work.
	started func(calls []*call[A, R])
	sleep   func(time.Duration)

	lock sync.Mutex
	// waiting has an entry for each key that has a goroutine: the calls of its next batch.
	waiting map[K][]*call[A, R]
}

type call[A, R any] struct {
	// ctx is that of the request. It may end at any time.
	ctx     context.Context
	arg     A
	arrived time.Time

	// result and err are written before done is closed.
	result R
	err    error
	done   chan struct{}
}

func newBatcher[K comparable, A, R any](work func(K, []*call[A, R]) time.Duration, started func([]*call[A, R])) *batcher[K, A, R] {
	return &batcher[K, A, R]{work: work, started: started, sleep: time.Sleep, waiting: map[K][]*call[A, R]{}}
}

// do returns the answer to a call. If ctx ends before that, the call leaves its batch, unless the
// batch has begun.
func (b *batcher[K, A, R]) do(ctx context.Context, key K, arg A) (R, error) {
	c := &call[A, R]{ctx: ctx, arg: arg, arrived: time.Now(), done: make(chan struct{})}
	b.lock.Lock()
	calls, running := b.waiting[key]
	b.waiting[key] = append(calls, c)
	b.lock.Unlock()
	if !running {
		go b.run(key)
	}
	select {
	case <-c.done:
		return c.result, c.err
	case <-ctx.Done():
		b.leave(key, c)
		var none R
		return none, errorOfEnded(ctx)
	}
}

// errorOfEnded is the answer to a request that has ended.
func errorOfEnded(ctx context.Context) error {
	return apierrors.NewTimeoutError(fmt.Sprintf("the request ended before the eviction was decided: %v", context.Cause(ctx)), 0)
}

func (b *batcher[K, A, R]) leave(key K, c *call[A, R]) {
	b.lock.Lock()
	defer b.lock.Unlock()
	calls := b.waiting[key]
	if index := slices.Index(calls, c); index >= 0 {
		b.waiting[key] = slices.Delete(calls, index, index+1)
	}
}

// run works until no call of the key waits.
func (b *batcher[K, A, R]) run(key K) {
	for {
		calls := b.take(key)
		if calls == nil {
			return
		}
		if pause := b.answer(key, calls); pause > 0 && b.isAwaited(key) {
			b.sleep(pause)
		}
	}
}

func (b *batcher[K, A, R]) take(key K) []*call[A, R] {
	b.lock.Lock()
	defer b.lock.Unlock()
	calls := b.waiting[key]
	if len(calls) == 0 {
		delete(b.waiting, key)
		return nil
	}
	b.waiting[key] = nil
	return calls
}

func (b *batcher[K, A, R]) isAwaited(key K) bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	return len(b.waiting[key]) > 0
}

// answer answers all calls of a batch, whatever happens. The goroutine is not that of a request, so
// nothing else keeps a panic from ending the process.
func (b *batcher[K, A, R]) answer(key K, calls []*call[A, R]) (pause time.Duration) {
	defer func() {
		if reason := recover(); reason != nil {
			err := errorOfPanic(reason)
			for _, c := range calls {
				c.err = err
			}
		}
		for _, c := range calls {
			close(c.done)
		}
	}()
	b.started(calls)
	return b.work(key, calls)
}

// errorOfPanic logs a panic and returns what the callers hear.
func errorOfPanic(reason any) error {
	klog.Background().Error(nil, "Recovered from a panic in the eviction lane", "panic", reason, "stack", string(debug.Stack()))
	return apierrors.NewInternalError(fmt.Errorf("panic in the eviction lane: %v", reason))
}
