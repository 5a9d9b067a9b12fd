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
	"k8s.io/kubernetes/pkg/controller/util/revertpace"
)

// labelWrites has the attempts to write the labels of unfinished requests. It only delays further ones: a restart
// empties it.
type labelWrites struct {
	lock     sync.Mutex
	requests map[types.NamespacedName]*labelAttempts
}

// labelAttempts are those of one request, and the error of the last one. They have a pace, because everybody who may
// write the request, or the labels of its pod, could otherwise make this controller write as often as they do.
type labelAttempts struct {
	revertpace.Attempts
	err error
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
	wait := found.Wait(now)
	if wait <= 0 {
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
	found.err = err
	return found.Made(now) == revertpace.Limit && err == nil
}

func (w *labelWrites) forget(request types.NamespacedName) {
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.requests, request)
}
