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
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/utils/ptr"
)

var errUnreachable = errors.New("unreachable")

// controlledPod returns a pod of a ReplicaSet.
func controlledPod(changes ...func(*v1.Pod)) *v1.Pod {
	controlled := func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "rs", Controller: ptr.To(true)}}
	}
	pod := rankedPod("a", append([]func(*v1.Pod){controlled}, changes...)...)
	pod.ResourceVersion = "7"
	return pod
}

func budget(name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
}

func budgetViolation() error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web needs 1 healthy pods and has 1 currently"}}
	return err
}

func statusError(code int, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: message}}
}

// attempt is a call of the pods/eviction subresource.
type attempt struct {
	Pod, UID string
	For      string
}

// recordingEvictor records attempts, and gives them all the same answer.
type recordingEvictor struct {
	attempts []attempt
	answer   error
}

func (e *recordingEvictor) evict(_ context.Context, request *coordinationv1alpha1.EvictionRequest, interceptor string, pod *v1.Pod) error {
	e.attempts = append(e.attempts, attempt{Pod: pod.Namespace + "/" + pod.Name, UID: string(pod.UID), For: request.Name + " " + interceptor})
	return e.answer
}

type brokenPodLister struct{ corelisters.PodLister }

func (brokenPodLister) Pods(string) corelisters.PodNamespaceLister { return brokenPodNamespaceLister{} }

type brokenPodNamespaceLister struct {
	corelisters.PodNamespaceLister
}

func (brokenPodNamespaceLister) Get(string) (*v1.Pod, error) { return nil, errUnreachable }

func TestEvictTarget(t *testing.T) {
	const violated = "PodDisruptionBudget web: Cannot evict pod as it would violate the pod's disruption budget. " +
		"The disruption budget web needs 1 healthy pods and has 1 currently."
	pods := schema.GroupResource{Resource: "pods"}
	controller := func(change func(*metav1.OwnerReference)) func(*v1.Pod) {
		return func(pod *v1.Pod) { change(&pod.OwnerReferences[0]) }
	}
	tests := map[string]struct {
		pod     *v1.Pod
		budgets []runtime.Object
		answer  error
		evicts  bool
		want    string
	}{
		"evicts":                   {pod: controlledPod(), evicts: true, want: "Evicted the pod."},
		"evicts within its budget": {pod: controlledPod(), budgets: []runtime.Object{budget("web")}, evicts: true, want: "Evicted the pod."},
		"evicts a pod that is not ready": {
			pod: controlledPod(notReady, phase(v1.PodPending)), evicts: true, want: "Evicted the pod.",
		},
		"the pod is gone":          {want: "The pod is gone."},
		"another pod of that name": {pod: controlledPod(func(pod *v1.Pod) { pod.UID = "a2" }), want: "The pod is gone."},
		"a pod of that name in another namespace": {
			pod: controlledPod(func(pod *v1.Pod) { pod.Namespace = "other" }), want: "The pod is gone.",
		},
		"the pod is terminating": {
			pod: controlledPod(func(pod *v1.Pod) { pod.DeletionTimestamp = &orderStart }), want: "The pod is terminating.",
		},
		"the pod has succeeded": {pod: controlledPod(phase(v1.PodSucceeded)), want: "The pod has finished."},
		"the pod has failed":    {pod: controlledPod(phase(v1.PodFailed)), want: "The pod has finished."},
		"the pod has no controller": {
			pod: controlledPod(func(pod *v1.Pod) { pod.OwnerReferences = nil }), want: "Not evicted: no ReplicaSet controls the pod.",
		},
		"a ReplicaSet owns and does not control": {
			pod:  controlledPod(controller(func(ref *metav1.OwnerReference) { ref.Controller = nil })),
			want: "Not evicted: no ReplicaSet controls the pod.",
		},
		"a ReplicationController controls the pod": {
			pod:  controlledPod(controller(func(ref *metav1.OwnerReference) { ref.APIVersion, ref.Kind = "v1", "ReplicationController" })),
			want: "Not evicted: no ReplicaSet controls the pod.",
		},
		"a ReplicaSet of another group controls the pod": {
			pod:  controlledPod(controller(func(ref *metav1.OwnerReference) { ref.APIVersion = "example.com/v1" })),
			want: "Not evicted: no ReplicaSet controls the pod.",
		},
		"not found by the API server": {
			pod: controlledPod(), answer: apierrors.NewNotFound(pods, "a"), evicts: true, want: "The pod is gone.",
		},
		"the budget rejects": {
			pod: controlledPod(), budgets: []runtime.Object{budget("web")}, answer: budgetViolation(), evicts: true,
			want: "Not evicted: " + violated,
		},
		"two budgets": {
			pod: controlledPod(), budgets: []runtime.Object{budget("web"), budget("all")}, evicts: true,
			answer: statusError(http.StatusInternalServerError, "This pod has more than one PodDisruptionBudget."),
			want: "Not evicted: PodDisruptionBudgets all, web select this pod, and the API server does not evict a pod with more than one PodDisruptionBudget: " +
				"change their selectors so that only one selects the pod.",
		},
		"a webhook rejects": {
			pod: controlledPod(), answer: apierrors.NewForbidden(pods, "a", errUnreachable), evicts: true,
			want: `Not evicted: pods "a" is forbidden: unreachable`,
		},
		"the API server rejects the call as invalid": {
			pod: controlledPod(), answer: apierrors.NewInvalid(schema.GroupKind{Kind: "Eviction"}, "a", nil), evicts: true,
			want: `Not evicted: Eviction "a" is invalid`,
		},
		"no response": {pod: controlledPod(), answer: errUnreachable, evicts: true, want: "Not evicted: unreachable"},
		"the API server is slow": {
			pod: controlledPod(), answer: apierrors.NewTimeoutError("slow", 1), evicts: true, want: "Not evicted: Timeout: slow",
		},
		"the API server is starting": {
			pod: controlledPod(), answer: apierrors.NewServiceUnavailable("starting"), evicts: true, want: "Not evicted: starting",
		},
		"the API server is overloaded": {
			pod: controlledPod(), budgets: []runtime.Object{budget("web")}, answer: apierrors.NewTooManyRequests("busy", 1), evicts: true, want: "Not evicted: busy",
		},
		"a webhook rejects with the code for overload": {
			pod: controlledPod(), answer: statusError(http.StatusTooManyRequests, "the virtual machine migrates"), evicts: true,
			want: "Not evicted: the virtual machine migrates",
		},
		"the API server has another pod": {
			pod: controlledPod(), answer: apierrors.NewConflict(pods, "a", errUnreachable), evicts: true,
			want: `Not evicted: Operation cannot be fulfilled on pods "a": unreachable`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := test.budgets
			if test.pod != nil {
				objects = append(objects, test.pod)
			}
			evictor := &recordingEvictor{answer: test.answer}
			handler := newTestHandler(t, objects...)
			handler.evict = evictor.evict
			message, err := handler.evictTarget(t.Context(), requestOf("a"))
			if message != test.want {
				t.Errorf("the message is %q, want %q", message, test.want)
			}
			if err != nil {
				t.Errorf("unexpected error, which causes another attempt: %v", err)
			}
			var want []attempt
			if test.evicts {
				want = []attempt{{Pod: "default/a", UID: "a", For: "a replicaset.apps.k8s.io"}}
			}
			if diff := cmp.Diff(want, evictor.attempts); diff != "" {
				t.Errorf("unexpected attempts (-want +got):\n%s", diff)
			}
		})
	}
}

// After an attempt whose outcome is unknown, the live pod decides.
func TestEvictTargetWithUnknownOutcome(t *testing.T) {
	terminating := controlledPod(func(pod *v1.Pod) { pod.DeletionTimestamp = &orderStart })
	proxy := func(code int) error {
		return apierrors.NewGenericServerResponse(code, http.MethodPost, schema.GroupResource{Resource: "pods"}, "a", "upstream connect error", 0, true)
	}
	for name, test := range map[string]struct {
		answer error
		live   *v1.Pod
		// failures are the errors of the first reads.
		failures []error
		want     string
	}{
		"terminating":             {answer: errUnreachable, live: terminating, want: "Evicted the pod."},
		"gone":                    {answer: errUnreachable, want: "Evicted the pod."},
		"replaced":                {answer: errUnreachable, live: controlledPod(func(pod *v1.Pod) { pod.UID = "a2" }), want: "Evicted the pod."},
		"still running":           {answer: errUnreachable, live: controlledPod(), want: "Not evicted: unreachable"},
		"API server timeout":      {answer: apierrors.NewTimeoutError("slow", 1), live: terminating, want: "Evicted the pod."},
		"storage timeout":         {answer: statusError(http.StatusInternalServerError, "etcdserver: request timed out"), live: terminating, want: "Evicted the pod."},
		"a proxy answers":         {answer: proxy(http.StatusBadGateway), live: terminating, want: "Evicted the pod."},
		"overloaded":              {answer: errUnreachable, live: terminating, failures: []error{apierrors.NewTooManyRequests("busy", 1)}, want: "Evicted the pod."},
		"read later":              {answer: errUnreachable, live: terminating, failures: []error{errUnreachable, proxy(http.StatusServiceUnavailable)}, want: "Evicted the pod."},
		"the API server refuses":  {answer: errUnreachable, live: terminating, failures: []error{statusError(http.StatusForbidden, "no")}, want: "The outcome of the eviction is unknown: unreachable"},
		"an answer about the pod": {answer: statusError(http.StatusForbidden, "no"), live: terminating, want: "Not evicted: no"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				evictor := &recordingEvictor{answer: test.answer}
				handler := newTestHandler(t, controlledPod())
				handler.evict = evictor.evict
				reads := 0
				handler.read = func(context.Context, string, string) (*v1.Pod, error) {
					reads++
					switch {
					case reads <= len(test.failures):
						return nil, test.failures[reads-1]
					case test.live == nil:
						return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")
					}
					return test.live, nil
				}
				began := time.Now()
				message, err := handler.evictTarget(t.Context(), requestOf("a"))
				if err != nil || message != test.want {
					t.Errorf("message %q, error %v, want %q", message, err, test.want)
				}
				// The first read is immediate.
				if lasted, want := time.Since(began), time.Duration(max(reads-1, 0))*readInterval; lasted != want {
					t.Errorf("%d reads within %s, want that within %s", reads, lasted, want)
				}
				if len(evictor.attempts) != 1 {
					t.Errorf("%d attempts, want one", len(evictor.attempts))
				}
			})
		})
	}
}

// A refusal because of several budgets says what happened.
func TestEvictTargetDoesNotReadForSeveralBudgets(t *testing.T) {
	handler := newTestHandler(t, controlledPod(), budget("web"), budget("all"))
	handler.evict = (&recordingEvictor{answer: statusError(http.StatusInternalServerError, "This pod has more than one PodDisruptionBudget.")}).evict
	handler.read = func(context.Context, string, string) (*v1.Pod, error) {
		t.Error("read the pod")
		return nil, statusError(http.StatusForbidden, "no") // It is not retried, so that the test ends.
	}
	if message, err := handler.evictTarget(t.Context(), requestOf("a")); err != nil || !strings.HasPrefix(message, "Not evicted: PodDisruptionBudgets all, web") {
		t.Errorf("message %q, error %v", message, err)
	}
}

// While the API server does not respond, a turn ends with its context without a result, or after
// some minutes with an unknown one.
func TestEvictTargetThatCannotBeRead(t *testing.T) {
	for name, limit := range map[string]time.Duration{"a long outage": time.Hour, "an end of the turn": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), limit)
			defer stop()
			handler := newTestHandler(t, controlledPod())
			handler.evict = (&recordingEvictor{answer: errUnreachable}).evict
			reads := 0
			handler.read = func(context.Context, string, string) (*v1.Pod, error) {
				reads++
				return nil, errUnreachable
			}
			began := time.Now()
			message, err := handler.evictTarget(ctx, requestOf("a"))
			if limit < maxReadTime {
				if message != "" || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: message %q, error %v, want an error", name, message, err)
				}
			} else if err != nil || message != "The outcome of the eviction is unknown: unreachable" || reads < 50 || reads > 100 || time.Since(began) > maxReadTime {
				t.Errorf("%s: message %q, error %v after %d reads and %s", name, message, err, reads, time.Since(began))
			}
		})
	}
}

// A controller that is stopping must not complete a turn with the resulting error.
func TestEvictTargetWhileStopping(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	handler := newTestHandler(t, controlledPod())
	handler.evict = func(ctx context.Context, _ *coordinationv1alpha1.EvictionRequest, _ string, _ *v1.Pod) error {
		stop()
		return ctx.Err()
	}
	message, err := handler.evictTarget(ctx, requestOf("a"))
	if !errors.Is(err, context.Canceled) || message != "" {
		t.Errorf("got %q and error %v, want an error alone", message, err)
	}
}

func TestEvictTargetWithoutCache(t *testing.T) {
	evictor := &recordingEvictor{}
	handler := evictionHandler{podLister: brokenPodLister{}, evict: evictor.evict}
	message, err := handler.evictTarget(t.Context(), requestOf("a"))
	if !errors.Is(err, errUnreachable) || err.Error() != "reading pod a: unreachable" || message != "" {
		t.Errorf("got %q and error %v, want an error that names the pod", message, err)
	}
	if len(evictor.attempts) > 0 {
		t.Errorf("tried %v", evictor.attempts)
	}
}

// turnOf returns the request for a pod with the ReplicaSet controller as the active interceptor.
func turnOf(pod string) *coordinationv1alpha1.EvictionRequest {
	request := requestOf(pod)
	request.UID = types.UID("uid-of-" + pod)
	request.Spec.Requesters = []coordinationv1alpha1.Requester{{Name: "drain.example.com"}}
	request.Status = coordinationv1alpha1.EvictionRequestStatus{
		TargetInterceptors: []coordinationv1alpha1.Interceptor{{Name: replicaSetInterceptor}},
		ActiveInterceptors: []string{replicaSetInterceptor},
		ActivationTime:     ptr.To(metav1.Now().Rfc3339Copy()),
		Interceptors:       []coordinationv1alpha1.InterceptorStatus{{Name: replicaSetInterceptor}},
	}
	return request
}

// A turn costs two writes in addition to the eviction, even if the API server is slow or fails: the
// next interceptors retry.
func TestTurn(t *testing.T) {
	for name, test := range map[string]struct {
		answers []error
		want    string
		writes  int
	}{
		"evicted":     {answers: []error{nil}, want: "Evicted the pod.", writes: 2},
		"rejected":    {answers: []error{statusError(http.StatusForbidden, "no")}, want: "Not evicted: no", writes: 2},
		"no response": {answers: []error{errUnreachable}, want: "Not evicted: unreachable", writes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(turnOf("a"))
				calls := 0
				handler := newTestHandler(t, controlledPod())
				handler.evict = func(context.Context, *coordinationv1alpha1.EvictionRequest, string, *v1.Pod) error {
					time.Sleep(3 * time.Second)
					calls++
					return test.answers[calls-1]
				}
				if entry := takeTurn(t, client, handler.handle); entry.CompletionTime == nil || entry.Message != test.want {
					t.Errorf("the entry is %+v, want it complete with %q", entry, test.want)
				}
				writes := 0
				for _, action := range client.Actions() {
					if action.GetVerb() == "patch" {
						writes++
					}
				}
				if writes != test.writes || calls != len(test.answers) {
					t.Errorf("wrote %d times and evicted %d times, want %d and %d", writes, calls, test.writes, len(test.answers))
				}
			})
		})
	}
}

// takeTurn runs the interceptor for a minute and returns its entry in the request.
func takeTurn(t *testing.T, client *fake.Clientset, handle evictionrequest.Handler) coordinationv1alpha1.InterceptorStatus {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		config := evictionrequest.InterceptorConfig{Client: client, Name: replicaSetInterceptor, Handle: handle}
		if err := evictionrequest.Run(ctx, config); err != nil {
			t.Errorf("running: %v", err)
		}
	})
	time.Sleep(time.Minute)
	stop()
	running.Wait()
	request, err := client.CoordinationV1alpha1().EvictionRequests(metav1.NamespaceDefault).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the request: %v", err)
	}
	return request.Status.Interceptors[0]
}

// A turn whose pod could not be read has no result: it is not complete, and its message is
// the error.
func TestTurnWithoutCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(turnOf("a"))
		handler := evictionHandler{podLister: brokenPodLister{}}
		if entry := takeTurn(t, client, handler.handle); entry.CompletionTime != nil || !strings.Contains(entry.Message, "reading pod a: unreachable") {
			t.Errorf("the entry is %+v, want it incomplete with the error", entry)
		}
	})
}

// A pod that is missing in the cache would appear to be gone, and a pod without its budgets would
// appear to have none. So turns wait for both caches.
func TestTurnsWaitForCaches(t *testing.T) {
	f := newEvictionFixture(t, turnOf("a"), controlledPod(phase(v1.PodSucceeded))) // It is not evicted.
	asked, synced := make(chan struct{}), make(chan struct{})
	polls := 0
	f.rsc.podListerSynced = func() bool {
		select {
		case <-synced:
			return true
		default:
			if polls++; polls == 3 {
				close(asked)
			}
			return false
		}
	}
	f.intercept(t)
	ctx, stop := context.WithCancel(f.ctx)
	defer f.factory.Shutdown()
	defer stop()
	f.factory.StartWithContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { f.run(ctx) })

	deadline := time.After(30 * time.Second)
	select {
	case <-asked:
	case <-deadline:
		t.Fatal("it does not wait for the pods")
	}
	for _, action := range f.client.Actions() {
		if action.GetVerb() == "patch" || action.GetVerb() == "create" {
			t.Errorf("it acts before the pods have synced: %v", action)
		}
	}
	close(synced)
	for {
		request, err := f.client.CoordinationV1alpha1().EvictionRequests(metav1.NamespaceDefault).Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if request.Status.Interceptors[0].CompletionTime != nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("the turn is not taken after the pods have synced: %v", request.Status.Interceptors[0])
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Evictions are not delayed by the rate limit of the reporting client.
func TestEvictionsHaveTheirOwnClient(t *testing.T) {
	evictions := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		evictions <- r.Method + " " + r.URL.Path
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	evicting, err := clientset.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatalf("creating a client: %v", err)
	}
	f := newEvictionFixture(t, turnOf("a"), controlledPod())
	run, err := f.rsc.InterceptEvictions(f.client, evicting, f.factory.Apps().V1().Deployments(),
		f.factory.Coordination().V1alpha1().EvictionRequests(), f.factory.Policy().V1().PodDisruptionBudgets())
	if err != nil {
		t.Fatalf("intercepting evictions: %v", err)
	}
	ctx, stop := context.WithCancel(f.ctx)
	var running sync.WaitGroup
	defer f.factory.Shutdown()
	defer running.Wait()
	defer stop()
	f.factory.StartWithContext(ctx)
	running.Go(func() { run(ctx) })
	select {
	case got := <-evictions:
		if want := "POST /api/v1/namespaces/default/pods/a/eviction"; got != want {
			t.Errorf("the client of the evictions is used for %s, want %s", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Error("the client of the evictions was not used within 30 seconds")
	}
}

// newTestHandler returns a handler with these objects in its caches.
func newTestHandler(t *testing.T, objects ...runtime.Object) evictionHandler {
	t.Helper()
	newIndexer := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	pods, budgets := newIndexer(), newIndexer()
	for _, object := range objects {
		indexer := pods
		if _, ok := object.(*policyv1.PodDisruptionBudget); ok {
			indexer = budgets
		}
		if err := indexer.Add(object); err != nil {
			t.Fatalf("caching %T: %v", object, err)
		}
	}
	index, err := poddisruptionbudget.IndexOf(budgets)
	if err != nil {
		t.Fatal(err)
	}
	lister := corelisters.NewPodLister(pods)
	return evictionHandler{
		podLister: lister, budgets: index,
		// The cache is current.
		read: func(_ context.Context, namespace, name string) (*v1.Pod, error) {
			return lister.Pods(namespace).Get(name)
		},
	}
}
