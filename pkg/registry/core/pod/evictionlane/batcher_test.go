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
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// world records what a batcher does, in a bubble of synctest: time passes only while all wait.
type world struct {
	*batcher[string, string, string]
	begin   time.Time
	batches []string
	pause   time.Duration
}

// newWorld returns a batcher whose work takes a second.
func newWorld() *world {
	w := &world{begin: time.Now()}
	w.batcher = newBatcher(func(key string, calls []*call[string, string]) time.Duration {
		at := time.Since(w.begin)
		args := []string{}
		for _, c := range calls {
			args = append(args, c.arg)
		}
		w.lock.Lock()
		w.batches = append(w.batches, fmt.Sprintf("%s %s%v", at, key, args))
		w.lock.Unlock()
		time.Sleep(time.Second)
		for _, c := range calls {
			switch c.arg {
			case "panic":
				panic("a bug")
			case "fail":
				c.err = errors.New("refused")
			default:
				c.result = "answer to " + c.arg
			}
		}
		return w.pause
	}, func([]*call[string, string]) {})
	return w
}

// call calls do and returns what it answers, and when.
func (w *world) call(ctx context.Context, key, arg string) <-chan string {
	answer := make(chan string, 1)
	go func() {
		result, err := w.do(ctx, key, arg)
		if err != nil {
			result = "error: " + err.Error()
		}
		answer <- fmt.Sprintf("%s %s", time.Since(w.begin), result)
	}()
	synctest.Wait() // It has begun, or is in the queue.
	return answer
}

func expectAnswer(t *testing.T, answer <-chan string, want string) {
	t.Helper()
	if got := <-answer; got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
}

func (w *world) expectBatches(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(w.batches, want) {
		t.Errorf("batches\n%q, want\n%q", w.batches, want)
	}
	if len(w.waiting) != 0 {
		t.Errorf("the batcher remembers %v", w.waiting)
	}
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		first := w.call(t.Context(), "x", "a")
		second := w.call(t.Context(), "x", "b")
		third := w.call(t.Context(), "x", "fail")
		other := w.call(t.Context(), "y", "c")
		expectAnswer(t, first, "1s answer to a")
		expectAnswer(t, other, "1s answer to c")
		expectAnswer(t, second, "2s answer to b")
		expectAnswer(t, third, "2s error: refused")
		time.Sleep(time.Minute)
		expectAnswer(t, w.call(t.Context(), "x", "d"), "1m3s answer to d")
		w.expectBatches(t, "0s x[a]", "0s y[c]", "1s x[b fail]", "1m2s x[d]")
	})
}

func TestBatchesPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pause = 10 * time.Second
		first, second := w.call(t.Context(), "x", "a"), w.call(t.Context(), "x", "b")
		expectAnswer(t, first, "1s answer to a")
		time.Sleep(5 * time.Second)
		third := w.call(t.Context(), "x", "c") // Joins those that wait.
		expectAnswer(t, w.call(t.Context(), "y", "d"), "7s answer to d")
		expectAnswer(t, second, "12s answer to b")
		expectAnswer(t, third, "12s answer to c")
		synctest.Wait()
		expectAnswer(t, w.call(t.Context(), "x", "e"), "13s answer to e") // Nobody waited.
		w.expectBatches(t, "0s x[a]", "6s y[d]", "11s x[b c]", "12s x[e]")
	})
}

func TestCallersGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithCancelCause(t.Context())
		deciding := w.call(ctx, "x", "a")
		waiting := w.call(ctx, "x", "b")
		staying := w.call(t.Context(), "x", "c")
		alone := w.call(t.Context(), "y", "d")
		behind := w.call(ctx, "y", "e")
		time.Sleep(time.Second / 2)
		cancel(errors.New("client disconnected"))
		for _, answer := range []<-chan string{deciding, waiting, behind} {
			expectAnswer(t, answer, "500ms error: Timeout: the request ended before the eviction was decided: client disconnected")
		}
		expectAnswer(t, alone, "1s answer to d")
		expectAnswer(t, staying, "2s answer to c")
		w.expectBatches(t, "0s x[a]", "0s y[d]", "1s x[c]")
	})
}

func TestErrorsOfCallersThatWentAwayAreStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := w.do(ctx, "x", "a"); !apierrors.IsTimeout(err) {
			t.Errorf("error %v, want a timeout", err)
		}
		time.Sleep(time.Minute)
	})
}

func TestPanicOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		first := w.call(t.Context(), "x", "panic")
		second := w.call(t.Context(), "x", "b")
		if _, err := w.do(t.Context(), "y", "panic"); !apierrors.IsInternalError(err) {
			t.Errorf("error %v, want an internal one", err)
		}
		expectAnswer(t, first, "1s error: Internal error occurred: panic in the eviction lane: a bug")
		expectAnswer(t, second, "2s answer to b")
		w.expectBatches(t, "0s x[panic]", "0s y[panic]", "1s x[b]")
	})
}
