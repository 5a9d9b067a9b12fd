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

package nodemaintenance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// Objects that do not come back after a slow sync are forgotten.
func TestSlowSyncsAreForgotten(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	s := &slowSyncs{clock: now, slow: map[string]time.Time{}}
	s.end("gone", false, true)
	now.Step(slowMemory - time.Second)
	s.end("other", false, true)
	if len(s.slow) != 2 {
		t.Errorf("after less than %v: %v", slowMemory, s.slow)
	}
	now.Step(time.Second)
	s.end("other", true, true)
	if _, found := s.slow["gone"]; found || len(s.slow) != 1 {
		t.Errorf("after %v: %v", slowMemory, s.slow)
	}
}

// Objects whose syncs hang leave workers to the others, however many they are, and each of them is tried again. One
// that does not hang any more is not put off.
func TestSlowSyncs(t *testing.T) {
	const hangs, hanging = 30 * time.Second, 3 * writers
	synctest.Test(t, func(t *testing.T) {
		queue := newQueue("test", clock.RealClock{})
		var lock sync.Mutex
		synced, healed, most, running := map[string]int{}, false, 0, 0
		var lastGood time.Time
		count := func(name string, change int) (hang bool) {
			lock.Lock()
			defer lock.Unlock()
			if !strings.HasPrefix(name, "hangs") {
				lastGood = time.Now()
				return false
			}
			if running += change; running > most {
				most = running
			}
			if change > 0 {
				synced[name]++
			}
			return !healed
		}
		do := limitSlow(slowWriters, clock.RealClock{}, queue, func(_ context.Context, name string) error {
			switch hang := count(name, +1); {
			case hang:
				time.Sleep(hangs)
				queue.AddAfter(name, time.Second)
			case name != "good":
				time.Sleep(slowSync / 2)
			}
			count(name, -1)
			return nil
		})
		var workers sync.WaitGroup
		for range writers {
			workers.Go(func() { work(t.Context(), queue, do) })
		}
		for i := range hanging {
			queue.Add(fmt.Sprintf("hangs-%d", i))
		}
		time.Sleep(hanging/writers*hangs + time.Second) // Now it is known of each.
		lock.Lock()
		most = 0
		lock.Unlock()
		for range 300 {
			added := time.Now()
			queue.Add("good")
			time.Sleep(time.Second)
			lock.Lock()
			if lastGood.Before(added) {
				t.Errorf("not synced within a second after %v", added)
			}
			lock.Unlock()
		}
		lock.Lock()
		if most != slowWriters || len(synced) != hanging {
			t.Errorf("%d at a time, %d of %d objects", most, len(synced), hanging)
		}
		healed = true
		lock.Unlock()
		time.Sleep(hanging / slowWriters * hangs)
		lock.Lock()
		clear(synced)
		lock.Unlock()
		for i := range hanging {
			queue.Add(fmt.Sprintf("hangs-%d", i))
		}
		time.Sleep(hanging/writers*slowSync/2 + time.Millisecond)
		if lock.Lock(); len(synced) != hanging {
			t.Errorf("%d of %d objects are put off that do not hang any more", hanging-len(synced), hanging)
		}
		lock.Unlock()
		queue.ShutDown()
		workers.Wait()
	})
}
