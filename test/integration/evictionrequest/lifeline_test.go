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
	"bytes"
	"io"
	"net/http"
	"path"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/transport"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
)

// evictionCounter counts the evictions that the API server has accepted, by pod name.
type evictionCounter struct {
	lock     sync.Mutex
	accepted map[string]int
}

func newEvictionCounter() *evictionCounter { return &evictionCounter{accepted: map[string]int{}} }

// behind returns a transport that counts the evictions that pass a lifeline.
func (e *evictionCounter) behind(life *testcluster.Lifeline) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return life.Wrap(testcluster.RoundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && isEviction(request) {
				err = e.count(request, response)
			}
			return response, err
		}))
	}
}

// isEviction reports whether the request is for the eviction subresource of a pod.
func isEviction(request *http.Request) bool {
	return request.Method == http.MethodPost && path.Base(request.URL.Path) == "eviction"
}

// count reads the response to an eviction, and restores its body. The status code is not
// sufficient: the subresource reports some failures in the body of a 201.
func (e *evictionCounter) count(request *http.Request, response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	if response.StatusCode != http.StatusCreated {
		return nil
	}
	answer, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body)
	if err != nil {
		return err
	}
	if status, ok := answer.(*metav1.Status); ok && status.Status == metav1.StatusSuccess {
		e.lock.Lock()
		defer e.lock.Unlock()
		e.accepted[path.Base(path.Dir(request.URL.Path))]++
	}
	return nil
}

// of returns how often the eviction of a pod was accepted.
func (e *evictionCounter) of(pod string) int {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.accepted[pod]
}
