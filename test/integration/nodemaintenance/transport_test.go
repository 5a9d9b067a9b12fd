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
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// writeLog records the writes of a controller, as "PATCH nodes/one/status".
type writeLog struct {
	lock   sync.Mutex
	writes []string
}

var apiPrefix = regexp.MustCompile(`^/apis?/([^/]*\.[^/]*/)?v[^/]*/(namespaces/[^/]*/)?`)

func (l *writeLog) wrap(next http.RoundTripper) http.RoundTripper {
	return testcluster.RoundTripper(func(request *http.Request) (*http.Response, error) {
		if testcluster.IsWrite(request) && !strings.Contains(request.URL.Path, "/marker-") {
			l.lock.Lock()
			l.writes = append(l.writes, describeWrite(request))
			l.lock.Unlock()
		}
		return next.RoundTrip(request)
	})
}

func describeWrite(request *http.Request) string {
	return request.Method + " " + apiPrefix.ReplaceAllString(request.URL.Path, "")
}

// all returns the writes in order, without those for the markers of settle.
func (l *writeLog) all() []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return slices.Clone(l.writes)
}

// count returns the number of these writes.
func (l *writeLog) count(write string) int {
	n := 0
	for _, other := range l.all() {
		if other == write {
			n++
		}
	}
	return n
}

// newBarrier returns a closed barrier: one kind of write fails until it is opened.
func newBarrier(write string) *testcluster.Barrier {
	barrier := testcluster.NewBarrier(func(request *http.Request) bool { return describeWrite(request) == write })
	barrier.Close()
	return barrier
}
