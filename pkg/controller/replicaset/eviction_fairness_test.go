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

package replicaset

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	policyinformers "k8s.io/client-go/informers/policy/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/evictionrequest/podeviction"
)

// evictionServer answers calls of pods/eviction by namespace, and counts them by pod. busy is the
// number of calls in flight by namespace, and most is its maximum.
type evictionServer struct {
	answers map[string]func(*http.Request) (*http.Response, error)
	lock    sync.Mutex
	calls   map[string]int
	busy    map[string]int
	most    map[string]int
}

func (s *evictionServer) RoundTrip(request *http.Request) (*http.Response, error) {
	parts := strings.Split(request.URL.Path, "/") // /api/v1/namespaces/<namespace>/pods/<name>/eviction
	namespace, name := parts[4], parts[6]
	if request.Method == http.MethodGet {
		// Reads do not pass through webhooks. The pod still runs.
		return answersAfter(time.Millisecond, http.StatusOK, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"`+name+`","uid":"`+name+`"}}`)(request)
	}
	s.lock.Lock()
	s.calls[namespace+"/"+name]++
	s.busy[namespace]++
	s.most[namespace] = max(s.most[namespace], s.busy[namespace])
	s.lock.Unlock()
	defer func() {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.busy[namespace]--
	}()
	return s.answers[namespace](request)
}

func neverAnswers(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func answersAfter(delay time.Duration, code int, body string) func(*http.Request) (*http.Response, error) {
	return func(request *http.Request) (*http.Response, error) {
		time.Sleep(delay)
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: request}, nil
	}
}

// Tenants with many pods whose webhook hangs, or whose budget rejects the evictions, do not delay
// the evictions of other tenants. Each pod is tried once: if a budget rejects all of them, that
// costs one call for each, and no turn stays open.
func TestTenantsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &evictionServer{
			calls: map[string]int{}, busy: map[string]int{}, most: map[string]int{},
			answers: map[string]func(*http.Request) (*http.Response, error){
				"hanging": neverAnswers,
				"blocked": answersAfter(100*time.Millisecond, http.StatusTooManyRequests, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,`+
					`"reason":"TooManyRequests","message":"no","details":{"causes":[{"reason":"DisruptionBudget","message":"no room"}]}}`),
				"friendly": answersAfter(100*time.Millisecond, http.StatusCreated, `{"kind":"Status","apiVersion":"v1","status":"Success"}`),
			},
		}
		count := map[string]int{"hanging": 60, "blocked": 60, "friendly": 20}
		client := runTurns(t, server, count)
		expect := func(when, namespace string, most int, message string) {
			t.Helper()
			synctest.Wait()
			requests, err := client.CoordinationV1alpha1().EvictionRequests(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("listing requests: %v", err)
			}
			for _, request := range requests.Items {
				if entry := request.Status.Interceptors[0]; entry.CompletionTime == nil || !strings.HasPrefix(entry.Message, message) {
					t.Errorf("%s: the turn of %s/%s is %+v, want it complete with %q", when, namespace, request.Name, entry, message)
				}
			}
			server.lock.Lock()
			defer server.lock.Unlock()
			if server.most[namespace] > most {
				t.Errorf("%s: %d calls for %s in flight, want at most %d", when, server.most[namespace], namespace, most)
			}
			for pod, calls := range server.calls {
				if calls != 1 {
					t.Errorf("%s: %d calls for %s, want one", when, calls, pod)
				}
			}
		}
		time.Sleep(30 * time.Second) // All hanging calls are still in flight.
		expect("soon", "friendly", 8, "Evicted the pod.")
		expect("soon", "blocked", 8, "Not evicted: PodDisruptionBudget")
		time.Sleep(15 * podeviction.Timeout)
		expect("late", "hanging", 4, "Not evicted: ")
		if got, want := len(server.calls), 140; got != want {
			t.Errorf("%d pods were tried, want %d", got, want)
		}
	})
}

// Many tenants whose webhooks hang do not delay the evictions of a tenant whose webhooks are known to
// be quick. A new tenant waits until some of the calls that hang have timed out, at most.
func TestManyTenantsThatHang(t *testing.T) {
	for name, test := range map[string]struct {
		known  bool
		within time.Duration
	}{
		"known": {known: true, within: 10 * time.Second},
		"new":   {within: podeviction.Timeout + 10*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &evictionServer{
					calls: map[string]int{}, busy: map[string]int{}, most: map[string]int{},
					answers: map[string]func(*http.Request) (*http.Response, error){
						"friendly": answersAfter(100*time.Millisecond, http.StatusCreated, `{"kind":"Status","apiVersion":"v1","status":"Success"}`),
					},
				}
				var hanging []string
				for i := range 12 {
					hanging = append(hanging, fmt.Sprintf("hanging-%d", i))
					server.answers[hanging[i]] = neverAnswers
				}
				before := map[string]int{}
				if test.known {
					before["friendly"] = 1
				}
				client := runTurns(t, server, before)
				time.Sleep(time.Minute)
				for _, name := range hanging {
					createTurns(t, client, turns(name, 0, 10))
				}
				time.Sleep(time.Second) // They have all the places that they may have.
				createTurns(t, client, turns("friendly", 1, 20))
				time.Sleep(test.within)
				synctest.Wait()
				requests, err := client.CoordinationV1alpha1().EvictionRequests("friendly").List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatalf("listing requests: %v", err)
				}
				if len(requests.Items) < 20 {
					t.Errorf("%d requests", len(requests.Items))
				}
				for _, request := range requests.Items {
					if entry := request.Status.Interceptors[0]; entry.CompletionTime == nil {
						t.Errorf("the turn of %s is %+v, want it complete", request.Name, entry)
					}
				}
			})
		})
	}
}

// turns returns pods of a namespace and their requests, numbered from first.
func turns(namespace string, first, count int) []runtime.Object {
	var objects []runtime.Object
	for i := range count {
		name := fmt.Sprintf("%s-%d", namespace, first+i)
		pod := controlledPod(func(pod *v1.Pod) { pod.Namespace, pod.Name, pod.UID = namespace, name, types.UID(name) })
		request := turnOf(name)
		request.Namespace = namespace
		request.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: name, UID: name}
		objects = append(objects, pod, request)
	}
	return objects
}

// createTurns creates pods, which are in the cache before their requests.
func createTurns(t *testing.T, client kubernetes.Interface, objects []runtime.Object) {
	t.Helper()
	for _, object := range objects {
		if pod, ok := object.(*v1.Pod); ok {
			if _, err := client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatalf("creating a pod: %v", err)
			}
		}
	}
	synctest.Wait()
	for _, object := range objects {
		if request, ok := object.(*coordinationv1alpha1.EvictionRequest); ok {
			if _, err := client.CoordinationV1alpha1().EvictionRequests(request.Namespace).Create(t.Context(), request, metav1.CreateOptions{}); err != nil {
				t.Fatalf("creating a request: %v", err)
			}
		}
	}
}

// runTurns runs the interceptor with a turn for that many pods in each namespace.
func runTurns(t *testing.T, server *evictionServer, count map[string]int) kubernetes.Interface {
	t.Helper()
	var objects []runtime.Object
	for namespace, pods := range count {
		objects = append(objects, turns(namespace, 0, pods)...)
	}
	f := newEvictionFixture(t, objects...)
	runTurnsOf(t, f, server, f.factory.Policy().V1().PodDisruptionBudgets())
	return f.client
}

func runTurnsOf(t *testing.T, f *evictionFixture, server *evictionServer, budgets policyinformers.PodDisruptionBudgetInformer) {
	t.Helper()
	evictionClient, err := kubernetes.NewForConfig(&rest.Config{Host: "http://server", Transport: server, QPS: -1})
	if err != nil {
		t.Fatalf("creating a client: %v", err)
	}
	run, err := f.rsc.InterceptEvictions(f.client, evictionClient, f.factory.Apps().V1().Deployments(),
		f.factory.Coordination().V1alpha1().EvictionRequests(), budgets)
	if err != nil {
		t.Fatalf("intercepting evictions: %v", err)
	}
	ctx, stop := context.WithCancel(f.ctx)
	f.factory.StartWithContext(ctx)
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		f.factory.Shutdown()
		f.rsc.eventBroadcaster.Shutdown()
		f.rsc.queue.ShutDown()
	})
}

// lateBudgets is an informer of budgets that syncs late.
type lateBudgets struct {
	policyinformers.PodDisruptionBudgetInformer
	known *atomic.Bool
}

func (b lateBudgets) Informer() cache.SharedIndexInformer {
	return lateInformer{b.PodDisruptionBudgetInformer.Informer(), b.known}
}

type lateInformer struct {
	cache.SharedIndexInformer
	known *atomic.Bool
}

func (i lateInformer) HasSynced() bool { return i.known.Load() }

// Without the budgets, a pod would appear to have none, and the message would be wrong.
func TestTurnsWaitForBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &evictionServer{calls: map[string]int{}, busy: map[string]int{}, most: map[string]int{}, answers: map[string]func(*http.Request) (*http.Response, error){
			metav1.NamespaceDefault: answersAfter(0, http.StatusCreated, `{"kind":"Status","apiVersion":"v1","status":"Success"}`),
		}}
		f := newEvictionFixture(t, turnOf("a"), controlledPod())
		var known atomic.Bool
		runTurnsOf(t, f, server, lateBudgets{f.factory.Policy().V1().PodDisruptionBudgets(), &known})
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(server.calls) > 0 {
			t.Errorf("evictions before the budgets are known: %v", server.calls)
		}
		known.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := server.calls[metav1.NamespaceDefault+"/a"]; got != 1 {
			t.Errorf("%d evictions when the budgets are known, want one", got)
		}
	})
}
