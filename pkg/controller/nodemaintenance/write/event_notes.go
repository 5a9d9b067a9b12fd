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

package write

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"
	"unicode"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// maxNotes is how many events there are of the same kind about an object that differ in their texts only.
	// Webhooks of tenants may answer something else each time.
	maxNotes = 4

	// noteMemory is how long a text is known after it was recorded last: longer than the recorder takes an event
	// for a repetition.
	noteMemory = 10 * time.Minute

	// maxNotedEvents is of how many events the texts are known.
	maxNotedEvents = 4096
)

// eventKey is what the recorder compares to find that an event repeats.
type eventKey struct {
	regarding, related v1.ObjectReference
	reason, action     string
}

// eventNotes tells events apart that differ in their texts: the recorder takes them for repetitions, and keeps
// the first text, so that a quota would be named long after it was raised and a webhook refuses.
type eventNotes struct {
	lock  sync.Mutex
	clock clock.PassiveClock
	known *lru.Cache
}

// eventNote is the hash of a text, and when it was recorded last.
type eventNote struct {
	text uint64
	last time.Time
}

func newEventNotes(clock clock.PassiveClock) *eventNotes {
	return &eventNotes{clock: clock, known: lru.New(maxNotedEvents)}
}

// part returns the field path of the related object by which an event with this text is another one; empty for the
// first text. Texts that differ in numbers only are the same: counts and versions change all the time.
func (n *eventNotes) part(key eventKey, text string) string {
	n.lock.Lock()
	defer n.lock.Unlock()
	hash := hashOfWords(text)
	now, notes := n.clock.Now(), &[maxNotes]eventNote{}
	if found, ok := n.known.Get(key); ok {
		notes = found.(*[maxNotes]eventNote)
	}
	n.known.Add(key, notes)
	at := maxNotes - 1
	for i := maxNotes - 1; i >= 0; i-- {
		if notes[i].last.IsZero() || now.Sub(notes[i].last) > noteMemory {
			at = i
		}
	}
	for i := range notes {
		if notes[i].text == hash && !notes[i].last.IsZero() {
			at = i
		}
	}
	notes[at] = eventNote{hash, now}
	if at == 0 {
		return ""
	}
	return fmt.Sprintf("note{%d}", at+1)
}

// hashOfWords returns a hash of a text without its digits.
func hashOfWords(text string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text))) // It never fails.
	return hash.Sum64()
}
