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

package system

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/realcluster"
)

const (
	// requestInterval is the pause between two requests. A request does not wait for the one
	// before: a server that hangs must not hide how many it loses.
	requestInterval = 20 * time.Millisecond
	requestTimeout  = 2 * time.Second

	// requestCell is what one character of a picture stands for.
	requestCell = 250 * time.Millisecond
)

// sentRequest is one that was answered or has failed.
type sentRequest struct {
	at  time.Time
	err error
}

// requests are those that a client has sent, in the order in which they began.
type requests struct {
	all  []sentRequest
	from time.Time
}

// requestClient sends requests to the address of a Service until it is stopped, from a node, each
// by a connection of its own: so that kube-proxy chooses the pod for each.
type requestClient struct {
	cancel context.CancelFunc
	url    string
	http   *http.Client

	sending sync.WaitGroup
	lock    sync.Mutex
	results requests
}

func startRequests(tCtx ktesting.TContext, cluster *realcluster.Cluster, address string) *requestClient {
	tCtx.Helper()
	ctx, cancel := context.WithCancel(tCtx)
	c := &requestClient{cancel: cancel, url: "http://" + address + "/"}
	c.http = &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				return cluster.Dial(ctx, secondNode, address)
			},
		},
	}
	// kube-proxy may not know the pods of the Service yet.
	await(tCtx, "the first answer", func(tCtx ktesting.TContext) { tCtx.ExpectNoError(c.send()) })
	c.results.from = time.Now()
	c.sending.Add(1)
	go func() {
		defer c.sending.Done()
		ticker := time.NewTicker(requestInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case at := <-ticker.C:
				c.sending.Add(1)
				go func() {
					defer c.sending.Done()
					err := c.send()
					c.lock.Lock()
					defer c.lock.Unlock()
					c.results.all = append(c.results.all, sentRequest{at, err})
				}()
			}
		}
	}()
	tCtx.Cleanup(cancel)
	return c
}

// send sends one request.
func (c *requestClient) send() error {
	response, err := c.http.Get(c.url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// stop waits for the answers that are missing.
func (c *requestClient) stop() *requests {
	c.cancel()
	c.sending.Wait()
	slices.SortFunc(c.results.all, func(a, b sentRequest) int { return a.at.Compare(b.at) })
	return &c.results
}

func (r *requests) sent() int { return len(r.all) }

func (r *requests) failed() int {
	count := 0
	for _, request := range r.all {
		if request.err != nil {
			count++
		}
	}
	return count
}

func (r *requests) String() string {
	text := fmt.Sprintf("%d requests to the Service, %d failed", r.sent(), r.failed())
	if first := slices.IndexFunc(r.all, func(request sentRequest) bool { return request.err != nil }); first >= 0 {
		text += fmt.Sprintf(", the first one after %.1f s: %v", r.all[first].at.Sub(r.from).Seconds(), r.all[first].err)
	}
	return text
}

// picture has a character for each cell of time.
func (r *requests) picture() string {
	var cells []byte
	for _, request := range r.all {
		cell := int(request.at.Sub(r.from) / requestCell)
		for len(cells) <= cell {
			cells = append(cells, '#')
		}
		if request.err != nil {
			cells[cell] = '.'
		}
	}
	return strings.TrimSpace(string(cells))
}

// serviceAddress is where the shop is reached.
func serviceAddress(tCtx ktesting.TContext) string {
	tCtx.Helper()
	service, err := tCtx.Client().CoreV1().Services(tCtx.Namespace()).Get(tCtx, shop, metav1.GetOptions{})
	tCtx.ExpectNoError(err)
	return net.JoinHostPort(service.Spec.ClusterIP, "80")
}
