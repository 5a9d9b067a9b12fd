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
	"testing"
	"time"
	"unsafe"
)

// A machine that was suspended finds its monotonic clock where it was, and that on the wall moved on.
func TestReadingsBeforeASuspension(t *testing.T) {
	read := time.Now()
	after := func(monotonic, wall time.Duration) time.Time {
		now := read.Add(monotonic)
		// The first word of a time has the seconds on the wall above its nanoseconds, which have 30 bits.
		*(*uint64)(unsafe.Pointer(&now)) += uint64(int64((wall-monotonic)/time.Second)) << 30
		if got := now.Sub(read); got != monotonic {
			t.Fatalf("the monotonic clock says %v, want %v", got, monotonic)
		}
		return now
	}
	for name, test := range map[string]struct {
		now  time.Time
		want bool
	}{
		"a moment later":            {after(0, 0), true},
		"just before it is old":     {after(time.Second-time.Nanosecond, time.Second-time.Nanosecond), true},
		"when it is old":            {after(time.Second, time.Second), false},
		"after a suspension":        {after(time.Millisecond, time.Hour+time.Millisecond), false},
		"after the clock went back": {after(time.Millisecond, time.Millisecond-time.Minute), false},
	} {
		if got := isCurrent(test.now, read, time.Second); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}
