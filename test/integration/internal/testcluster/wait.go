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

package testcluster

import (
	"sync"
	"testing"
	"time"
)

// PollTimeout is much longer than any state takes, even on a busy machine, so that only a state
// that is never reached times out.
const PollTimeout = 2 * time.Minute

// Receive returns a value from the channel. It fails the test if there is none in time.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case received := <-from:
		return received
	case <-time.After(PollTimeout):
		t.Fatalf("waited %v for %s", PollTimeout, what)
		panic("unreachable")
	}
}

// Join waits for all goroutines of the group. If one does not end in time, it marks the test as
// failed but returns, because it is also called during cleanup.
func Join(t testing.TB, what string, group *sync.WaitGroup) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		group.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(PollTimeout):
		t.Errorf("waited %v for %s to end", PollTimeout, what)
	}
}
