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
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
)

// hanging are calls for hostile namespaces that hang until the test ends one of them.
type hanging struct {
	ended chan struct{}

	lock   sync.Mutex
	begun  []string
	others []string
}

// call simulates the webhooks of hostile namespaces: the call hangs.
func (h *hanging) call(ctx context.Context, namespace, name string) error {
	h.lock.Lock()
	if !strings.HasPrefix(namespace, "hostile") {
		defer h.lock.Unlock()
		h.others = append(h.others, name)
		return nil
	}
	h.begun = append(h.begun, name)
	h.lock.Unlock()
	select {
	case <-h.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hangingClient is a client whose status updates hang.
type hangingClient struct {
	kubernetes.Interface
	hanging *hanging
}

func (c hangingClient) CoordinationV1alpha1() coordinationclient.CoordinationV1alpha1Interface {
	return hangingCoordination{c.Interface.CoordinationV1alpha1(), c.hanging}
}

type hangingCoordination struct {
	coordinationclient.CoordinationV1alpha1Interface
	hanging *hanging
}

func (c hangingCoordination) EvictionRequests(namespace string) coordinationclient.EvictionRequestInterface {
	return hangingRequests{c.CoordinationV1alpha1Interface.EvictionRequests(namespace), c.hanging}
}

type hangingRequests struct {
	coordinationclient.EvictionRequestInterface
	hanging *hanging
}

func (r hangingRequests) UpdateStatus(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, options metav1.UpdateOptions) (*coordinationv1alpha1.EvictionRequest, error) {
	if err := r.hanging.call(ctx, request.Namespace, request.Spec.Target.Pod.Name); err != nil {
		return nil, err
	}
	return r.EvictionRequestInterface.UpdateStatus(ctx, request, options)
}

// pairIn returns a request and its pod in a namespace.
func pairIn(namespace, name string, changes ...func(*coordinationv1alpha1.EvictionRequest)) (*coordinationv1alpha1.EvictionRequest, *v1.Pod) {
	pod := newPod(podUIDIs(types.UID("uid-of-" + name)))
	pod.Namespace, pod.Name = namespace, name
	request := newRequest(append(changes, requestLabels(pod.Labels))...)
	request.Namespace, request.Name = namespace, string(pod.UID)
	request.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: name, UID: string(pod.UID)}
	return request, pod
}

// callKinds are options for requests that need each kind of call.
var callKinds = map[string][]func(*coordinationv1alpha1.EvictionRequest){
	"status writes": nil,
	"evictions":     {having(targets(), active(builtIn, 0))},
}

// Many calls of one namespace hang. They use one worker at first and three quarters of the workers
// after the first response. The other namespace is not delayed. When a call ends, the next call of
// that namespace starts, in order.
func TestHangingCallsOfOneNamespace(t *testing.T) {
	for name, changes := range callKinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hanging := &hanging{ended: make(chan struct{})}
				var objects []runtime.Object
				for i := range 20 {
					request, pod := pairIn("hostile", fmt.Sprintf("h%02d", i), changes...)
					objects = append(objects, request, pod)
				}
				for i := range 5 {
					request, pod := pairIn("friendly", fmt.Sprintf("f%d", i), changes...)
					objects = append(objects, request, pod)
				}
				stop := hanging.run(t, objects...)
				expect := func(when string, hostile, others int) {
					t.Helper()
					synctest.Wait()
					hanging.lock.Lock()
					defer hanging.lock.Unlock()
					var want []string
					for i := range hostile {
						want = append(want, fmt.Sprintf("h%02d", i))
					}
					slices.Sort(hanging.begun[1:min(7, len(hanging.begun))]) // They start at the same time.
					if diff := cmp.Diff(want, hanging.begun); diff != "" {
						t.Errorf("%s: unexpected calls that hang (-want, +got):\n%s", when, diff)
					}
					if len(hanging.others) != others {
						t.Errorf("%s: %d calls for the other namespace, want %d", when, len(hanging.others), others)
					}
				}
				expect("at first", 1, 5)
				for ended := range 14 {
					hanging.ended <- struct{}{}
					expect(fmt.Sprintf("%d have ended", ended+1), 7+ended, 5)
				}
				stop()
			})
		})
	}
}

// Several namespaces with hanging calls also leave workers to other namespaces.
func TestHangingCallsOfManyNamespaces(t *testing.T) {
	for name, changes := range callKinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hanging := &hanging{ended: make(chan struct{})}
				var objects []runtime.Object
				for i := range 40 {
					request, pod := pairIn(fmt.Sprintf("hostile-%d", i%4), fmt.Sprintf("h%02d", i), changes...)
					objects = append(objects, request, pod)
				}
				for i := range 5 {
					request, pod := pairIn("friendly", fmt.Sprintf("f%d", i), changes...)
					objects = append(objects, request, pod)
				}
				defer hanging.run(t, objects...)()
				synctest.Wait()
				hanging.lock.Lock()
				defer hanging.lock.Unlock()
				if len(hanging.others) != 5 {
					t.Errorf("%d of 5 calls for the friendly namespace, while %v hang", len(hanging.others), hanging.begun)
				}
			})
		})
	}
}

// run runs a controller that starts with these requests. The queue that processes them has eight
// workers, the other queue two.
func (h *hanging) run(t *testing.T, objects ...runtime.Object) (stop func()) {
	t.Helper()
	f := newFixture(t, objects...)
	f.writer.client = hangingClient{f.client, h}
	f.imperative.evict = func(ctx context.Context, _ *coordinationv1alpha1.EvictionRequest, _ string, pod *v1.Pod) error {
		return h.call(ctx, pod.Namespace, pod.Name)
	}
	f.queue, f.limitWorkers = newQueue(f.clock, f.owners.of)
	f.imperative.queue, f.imperative.limitWorkers = newEvictionQueue(f.clock, f.imperative.ownerOf)
	f.cachesSynced = nil
	workers, evictionWorkers := 2, 2
	for _, object := range objects {
		if request, ok := object.(*coordinationv1alpha1.EvictionRequest); !ok {
			continue
		} else if isImperativeActive(request) {
			f.imperative.queue.Add(itemOf(keyOf(request)))
			evictionWorkers = 8
		} else {
			f.queue.Add(keyOf(request))
			workers = 8
		}
	}
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx, workers, evictionWorkers) })
	return func() {
		cancel()
		running.Wait()
	}
}

func TestWorkersPerNamespace(t *testing.T) {
	for workers, want := range map[int]int{1: 1, 2: 1, 4: 3, 5: 3, 10: 7, 30: 22} {
		if got := workersPerNamespace(workers); got != want {
			t.Errorf("%d of %d workers, want %d", got, workers, want)
		}
	}
}

// A panic of a worker releases its slot of the namespace.
func TestPanicReleasesTheSlot(t *testing.T) {
	for what, workOnce := range map[string]func(context.Context, *fixture) bool{
		"a decision":  func(ctx context.Context, f *fixture) bool { return f.Controller.workOnce(ctx) },
		"an eviction": func(ctx context.Context, f *fixture) bool { return f.imperative.workOnce(ctx) },
	} {
		another, anotherPod := pairIn(namespace, "another")
		f := newFixture(t, newRequest(having(targets(), active(builtIn, 0))), newPod(), another, anotherPod)
		f.queue, f.limitWorkers = newQueue(f.clock, f.owners.of)
		f.imperative.queue, f.imperative.limitWorkers = newEvictionQueue(f.clock, f.imperative.ownerOf)
		f.limitWorkers(1)
		f.imperative.limitWorkers(1)
		f.writer.client, f.imperative.evict = nil, nil
		f.queue.Add(keyOf(another))
		f.queue.Add(requestKeyOfPod)
		f.imperative.queue.Add(itemOf(requestKeyOfPod))
		f.imperative.queue.Add(itemOf(keyOf(another)))
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", what)
				}
			}()
			workOnce(klog.NewContext(context.Background(), logr.Discard()), f)
		}()
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			f.queue.Get()
			f.imperative.queue.Get()
		}()
		receive(t, "the next item to start after "+what, begun)
		f.queue.ShutDown()
		f.imperative.queue.ShutDown()
	}
}

// silentServer is an API server that never responds.
type silentServer struct{}

func (silentServer) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func silentClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://silent", Transport: silentServer{}, QPS: -1})
	if err != nil {
		t.Fatalf("creating a client: %v", err)
	}
	return client
}

// Every call has a timeout, which is longer than that of an admission webhook.
func TestCallsTimeOut(t *testing.T) {
	for name, test := range map[string]struct {
		call  func(context.Context, *fixture, kubernetes.Interface) error
		after time.Duration
	}{
		"status": {after: callTimeout, call: func(ctx context.Context, f *fixture, _ kubernetes.Interface) error {
			return f.writer.setStatus(ctx, newRequest(), newStatus(targets(first), active(first, 0)))
		}},
		"labels": {after: callTimeout, call: func(ctx context.Context, f *fixture, _ kubernetes.Interface) error {
			_, err := f.writer.setLabels(ctx, newRequest(), map[string]string{"tier": "x"})
			return err
		}},
		"deletion": {after: callTimeout, call: func(ctx context.Context, f *fixture, _ kubernetes.Interface) error {
			return f.writer.remove(ctx, newRequest())
		}},
		"pod": {after: callTimeout, call: func(ctx context.Context, _ *fixture, client kubernetes.Interface) error {
			_, err := podeviction.NewReader(client)(ctx, namespace, podName)
			return err
		}},
		"eviction": {after: podeviction.Timeout, call: func(ctx context.Context, _ *fixture, client kubernetes.Interface) error {
			return podeviction.NewEvictor(client)(ctx, newRequest(), coordinationv1alpha1.EvictionInterceptorImperative, newPod())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, client := newFixture(t), silentClient(t)
				defer f.broadcaster.Shutdown()
				f.writer.client = client
				// A call without a timeout fails the test instead of blocking it.
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				err := test.call(ctx, f, client)
				if lasted := time.Since(began); lasted != test.after || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("ended after %s with %v, want that after %s", lasted, err, test.after)
				}
				if test.after <= 30*time.Second || test.after >= time.Minute {
					t.Errorf("ends after %s, want more than a webhook may take, and less than an API server allows", test.after)
				}
			})
		})
	}
}

// The outcome of an eviction without a response is unknown: it is retried, and no event is
// recorded.
func TestEvictionWithoutResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, newRequest(having(targets(), active(builtIn, 0))), newPod())
		defer f.broadcaster.Shutdown()
		f.imperative.evict = podeviction.NewEvictor(silentClient(t))
		f.syncEviction(t, requestKeyOfPod)
		f.expectWrites(t)
		if got := f.evictions.waits(itemOf(requestKeyOfPod)); got != firstRetryDelay {
			t.Errorf("tried again after %s, want %s", got, firstRetryDelay)
		}
		if left := f.imperative.evicted.remaining(podUID, f.clock.Now()); left > 0 {
			t.Errorf("treated as evicted for %s", left)
		}
		if len(f.events) > 0 {
			t.Errorf("unexpected event: %s", strings.Join([]string{f.events[0].Reason, f.events[0].Note}, " "))
		}
	})
}
