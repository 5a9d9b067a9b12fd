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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// labelWindow is how long a write of the labels of a request counts. In that time, labelLimit writes are made as
	// soon as they are needed, and further ones after labelPause, which doubles up to maxLabelPause: everybody who may
	// write the request, or the labels of its pod, could otherwise make this controller write as often as they do.
	labelWindow   = 10 * time.Minute
	labelLimit    = 3
	labelPause    = 5 * time.Second
	maxLabelPause = time.Minute
)

// labelWrites has the attempts to write the labels of unfinished requests. It only delays further ones: a restart
// empties it.
type labelWrites struct {
	lock     sync.Mutex
	requests map[types.NamespacedName]*labelAttempts
}

// labelAttempts are those of one request: the times of those that count, the oldest first, and the error of the last
// one. There are hardly more than twenty, because they have a pace.
type labelAttempts struct {
	times []time.Time
	err   error
}

func newLabelWrites() *labelWrites {
	return &labelWrites{requests: map[types.NamespacedName]*labelAttempts{}}
}

// wait returns the delay before the labels may be written again, and the error of the last attempt.
func (w *labelWrites) wait(request types.NamespacedName, now time.Time) (time.Duration, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	found := w.requests[request]
	if found == nil {
		return 0, nil
	}
	found.times = recentLabelWrites(found.times, now)
	if len(found.times) < labelLimit {
		return 0, nil
	}
	pause := labelPause
	for i := labelLimit; i < len(found.times) && pause < maxLabelPause; i++ {
		pause = min(2*pause, maxLabelPause)
	}
	wait := found.times[len(found.times)-1].Add(pause).Sub(now)
	if wait <= 0 || wait > pause { // The clock may have been set back.
		return 0, nil
	}
	return wait, found.err
}

// tried records an attempt and its error, and reports whether others change the labels again and again: it is so once
// when the limit is reached.
func (w *labelWrites) tried(request types.NamespacedName, now time.Time, err error) (contested bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	found := w.requests[request]
	if found == nil {
		found = &labelAttempts{}
		w.requests[request] = found
	}
	found.times, found.err = append(recentLabelWrites(found.times, now), now), err
	return len(found.times) == labelLimit && err == nil
}

// recentLabelWrites returns the times that count.
func recentLabelWrites(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) > labelWindow {
		times = times[1:]
	}
	return times
}

func (w *labelWrites) forget(request types.NamespacedName) {
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.requests, request)
}
