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

package podpicker

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/component-helpers/plaintext"
)

const (
	// failuresToRest is after how many failed attempts in a row a picker rests. By default, a question
	// has so many.
	failuresToRest = 4

	// minRest and maxRest are how long it rests. Each time is twice as long as the one before.
	minRest = 30 * time.Second
	maxRest = 5 * time.Minute

	// maxFailing is how many failing pickers are remembered. One that is forgotten is asked as before.
	maxFailing = 1000

	// maxRestError is how much of the last error is kept, in bytes.
	maxRestError = 256
)

// rests is a circuit breaker for each picker: a picker that fails again and again is not asked for a
// while. Otherwise each step of a rollout waits for it as long as a scale-down may. Then one question
// tries it once, and the others do without it as long as that takes.
type rests struct {
	lock    sync.Mutex
	failing map[[sha256.Size]byte]*failing
}

// failing is a picker whose last attempts have failed.
type failing struct {
	failures  int
	lastError string
	last      time.Time
	// until is the end of the rest, which is the zero time before the first one, and rest its length.
	until time.Time
	rest  time.Duration
	// trying is whether a question tries it.
	trying bool
}

// pickerKey is that of a picker in a namespace. Whoever changes the picker has another one. It hashes
// what it knows: the values of headers are not kept.
func pickerKey(q *Question) [sha256.Size]byte {
	picker, err := json.Marshal(q.Picker)
	if err != nil {
		picker = []byte(err.Error()) // It cannot fail, and would share a rest.
	}
	return sha256.Sum256(fmt.Appendln(nil, q.Namespace, string(picker)))
}

// check returns an error while the picker rests or is tried.
func (r *rests) check(key [sha256.Size]byte, now time.Time) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.failing[key].check(now)
}

func (f *failing) check(now time.Time) error {
	switch {
	case f == nil || f.until.IsZero():
		return nil
	case now.Before(f.until):
		return fmt.Errorf("it is not asked again before %s, because its last %d attempts failed: %s", f.until.UTC().Format(time.RFC3339), f.failures, f.lastError)
	case f.trying:
		return fmt.Errorf("another scale-down tries it, because its last %d attempts failed: %s", f.failures, f.lastError)
	}
	return nil
}

// admit is check for a question that asks the picker next. It reports whether it has one attempt only,
// after a rest. Every admitted question that tries it has to call succeed, fail or withdraw.
func (r *rests) admit(key [sha256.Size]byte, now time.Time) (tries bool, err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	f := r.failing[key]
	if err := f.check(now); err != nil {
		return false, err
	}
	if f == nil || f.until.IsZero() {
		return false, nil
	}
	f.trying = true
	return true, nil
}

// succeed ends all rests of the picker.
func (r *rests) succeed(key [sha256.Size]byte) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.failing, key)
}

// withdraw ends a try without a result.
func (r *rests) withdraw(key [sha256.Size]byte) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if f := r.failing[key]; f != nil {
		f.trying = false
	}
}

// fail counts a failed attempt. Those of questions that began before the rest do not prolong it.
func (r *rests) fail(key [sha256.Size]byte, tried bool, attempt error, now time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	f := r.failing[key]
	if f == nil {
		if len(r.failing) >= maxFailing {
			r.forgetOldest()
		}
		f = &failing{}
		r.failing[key] = f
	}
	f.failures++
	f.last, f.lastError = now, plaintext.Truncate(attempt.Error(), maxRestError)
	if tried {
		f.trying = false
	}
	if tried || f.until.IsZero() && f.failures >= failuresToRest {
		f.rest = min(max(2*f.rest, minRest), maxRest)
		f.until = now.Add(f.rest)
	}
}

func (r *rests) forgetOldest() {
	var oldest [sha256.Size]byte
	var last time.Time
	for key, f := range r.failing {
		if last.IsZero() || f.last.Before(last) {
			oldest, last = key, f.last
		}
	}
	delete(r.failing, oldest)
}
