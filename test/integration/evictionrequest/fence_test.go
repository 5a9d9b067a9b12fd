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
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// A pod is evicted for a request only while the request wants it, whatever its controller believes.
func TestFence(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	for name, run := range map[string]func(*testing.T, *cluster){
		"a suspended controller":             testSuspendedController,
		"a slow webhook":                     testSlowWebhook,
		"a pod that terminates":              testWithdrawalWhilePodTerminates,
		"a pod that is marked":               testWithdrawalWhilePodIsMarked,
		"pods that are written all the time": testEvictionOfBusyPods,
		"any client":                         testFencedCalls,
	} {
		t.Run(name, func(t *testing.T) { run(t, newCluster(t, config)) })
	}
}

// held holds the evictions of a client until it is released, as if its process was suspended after it
// had decided.
type held struct {
	http.RoundTripper
	arrived  chan string
	released chan struct{}
	answered chan struct{}
}

func (h held) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/eviction") {
		return h.RoundTripper.RoundTrip(request)
	}
	h.arrived <- request.URL.Path
	<-h.released
	defer func() { h.answered <- struct{}{} }()
	return h.RoundTripper.RoundTrip(request)
}

// testSuspendedController has a controller that is suspended when it is about to evict, while the
// request is canceled, and another one takes over.
func testSuspendedController(t *testing.T, c *cluster) {
	hold := held{arrived: make(chan string, 100), released: make(chan struct{}), answered: make(chan struct{}, 100)}
	release := sync.OnceFunc(func() { close(hold.released) })
	defer release()
	c.startControllerWith(c.ClientThrough(controllerUser, func(transport http.RoundTripper) http.RoundTripper {
		hold := hold
		hold.RoundTripper = transport
		return hold
	}), clock.RealClock{})
	pod := c.createRunningPod(newPod("kept", withGracePeriod(3600)), v1.ConditionTrue)
	c.join(pod, drainer)
	testcluster.Receive(t, "the eviction", hold.arrived)
	c.leave(pod, drainer)
	c.startController(clock.RealClock{})
	c.awaitRequest(pod, "the end of the request", canceled)
	release()
	testcluster.Receive(t, "the answer", hold.answered)
	c.expectUntouched(pod)
	// The name is free for the next one, which is carried out.
	c.joinAgain(pod)
	c.awaitTermination(pod)
}

// startWebhook registers a validating webhook for evictions in the namespace. It announces each call
// and answers when it may.
func (c *cluster) startWebhook() (arrived <-chan struct{}, proceed chan<- struct{}) {
	c.t.Helper()
	began, may := make(chan struct{}, 100), make(chan struct{}, 100)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		began <- struct{}{}
		select {
		case <-may:
		case <-r.Context().Done():
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	c.t.Cleanup(server.Close)
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "slow.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: c.namespace}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](30),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	if _, err := c.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(c.t.Context(), webhook, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("registering a webhook: %v", err)
	}
	c.t.Cleanup(func() {
		if err := c.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.Background(), c.namespace, metav1.DeleteOptions{}); err != nil {
			c.t.Errorf("deleting the webhook: %v", err)
		}
	})
	// The API server uses it when it has seen it.
	probe := c.createPod(newPod("probe"))
	c.Eventually("the webhook to be called", func(ctx context.Context) (bool, string) {
		may <- struct{}{}
		err := c.evictWith(c.client, probe, func(eviction *policyv1.Eviction) {
			eviction.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
		})
		select {
		case <-began:
			return true, ""
		default:
			<-may
			return false, fmt.Sprint("not called: ", err)
		}
	})
	return began, may
}

// testSlowWebhook cancels the request while a webhook decides about the eviction.
func testSlowWebhook(t *testing.T, c *cluster) {
	arrived, proceed := c.startWebhook()
	c.startController(clock.RealClock{})
	pod := c.createRunningPod(newPod("kept", withGracePeriod(3600)), v1.ConditionTrue)
	c.join(pod, drainer)
	testcluster.Receive(t, "the call of the webhook", arrived)
	c.leave(pod, drainer)
	c.awaitRequest(pod, "the end of the request", canceled)
	proceed <- struct{}{}
	// The next call comes after the answer to the first one.
	c.joinAgain(pod)
	testcluster.Receive(t, "the next call of the webhook", arrived)
	c.expectUntouched(pod)
	proceed <- struct{}{}
	c.awaitTermination(pod)
}

// joinAgain requests the eviction of a pod whose request was canceled. The canceled one is deleted first.
func (c *cluster) joinAgain(pod *v1.Pod) {
	c.t.Helper()
	c.Eventually("a new request", func(ctx context.Context) (bool, string) {
		request, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && canceled(request) {
			c.join(pod, drainer)
			return false, "joined"
		}
		return err == nil, fmt.Sprint(err)
	})
}

func (c *cluster) awaitTermination(pod *v1.Pod) {
	c.t.Helper()
	c.Eventually("pod "+pod.Name+" to terminate", func(ctx context.Context) (bool, string) {
		current, err := c.client.CoreV1().Pods(c.namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return current.DeletionTimestamp != nil, "it runs"
	})
}

// testWithdrawalWhilePodTerminates: Canceled says that the pod stays, so it is not written then.
func testWithdrawalWhilePodTerminates(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createRunningPod(newPod("leaving", withGracePeriod(3600)), v1.ConditionTrue)
	c.join(pod, drainer)
	c.awaitTermination(pod)
	generation := c.leave(pod, drainer).Generation
	request := c.awaitRequest(pod, "the withdrawal to be seen", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return request.Status.ObservedGeneration == generation
	})
	if got, want := describe(request), "active=imperative processed="; got != want {
		t.Errorf("the request is %q, want %q", got, want)
	}
	c.deletePod(pod)
	c.awaitRequest(pod, "the end of the request", evicted)
}

// testWithdrawalWhilePodIsMarked: an eviction has marked the pod, and has yet to delete it.
func testWithdrawalWhilePodIsMarked(t *testing.T, c *cluster) {
	mark := func(pod *v1.Pod, status v1.ConditionStatus, request types.UID, when time.Time) {
		t.Helper()
		current, err := c.client.CoreV1().Pods(c.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		current.Status.Conditions = slices.DeleteFunc(current.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.DisruptionTarget })
		current.Status.Conditions = append(current.Status.Conditions, v1.PodCondition{
			Type: v1.DisruptionTarget, Status: status, Reason: "EvictionByEvictionAPI",
			Message: evictionrequesttools.EvictionMark(request) + "1", LastTransitionTime: metav1.NewTime(when),
		})
		c.setPodStatus(current, current.Status)
	}
	c.startController(clock.RealClock{})
	start := func(name string) (*v1.Pod, types.UID) {
		t.Helper()
		pod := c.createRunningPod(newPod(name, withInterceptors(first)), v1.ConditionTrue)
		c.join(pod, drainer)
		request := c.awaitRequest(pod, "the interceptor to be active", active(first))
		return pod, request.UID
	}
	for _, name := range []string{"marked", "marked-for-a-former-request"} {
		pod, request := start(name)
		if name != "marked" {
			request = "7"
		}
		mark(pod, v1.ConditionTrue, request, time.Now())
		generation := c.leave(pod, drainer).Generation
		waiting := c.awaitRequest(pod, "the withdrawal to be seen", func(request *coordinationv1alpha1.EvictionRequest) bool {
			return request.Status.ObservedGeneration == generation
		})
		if canceled(waiting) {
			t.Errorf("the request is %q while the pod may be about to be deleted", describe(waiting))
		}
		mark(pod, v1.ConditionFalse, request, time.Now())
		c.awaitRequest(pod, "the end of the request", canceled)
	}
	// What cannot be the mark of an eviction that goes on does not count.
	for name, when := range map[string]time.Time{"old": time.Now().Add(-time.Hour), "future": time.Now().Add(time.Hour)} {
		pod, request := start(name)
		mark(pod, v1.ConditionTrue, request, when)
		c.leave(pod, drainer)
		c.awaitRequest(pod, "the end of the request with a mark that is "+name, canceled)
	}
}

// testEvictionOfBusyPods has operators that write to pods all the time, more often than the API server
// marks and deletes them. Two of the pods are not ready, and their budgets let them go without counting them.
func testEvictionOfBusyPods(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	c.startController(clock.RealClock{})
	grace, paired := withGracePeriod(3600), withLabels(map[string]string{"app": "pair"})
	ready := c.createRunningPod(newPod("busy", grace), v1.ConditionTrue)
	alone := c.createRunningPod(newPod("unready", grace), v1.ConditionFalse)
	c.createBudget("always-allow", alone, 1, policyv1.AlwaysAllow)
	spare := c.createRunningPod(newPod("unready-beside-a-ready-one", grace, paired), v1.ConditionFalse)
	c.createBudget("if-healthy-budget", c.createRunningPod(newPod("calm", paired), v1.ConditionTrue), 1, policyv1.IfHealthyBudget)
	for _, pod := range []*v1.Pod{ready, alone, spare} {
		stop := c.keepWriting(pod)
		c.join(pod, drainer)
		c.awaitTermination(pod)
		stop()
	}
}

// keepWriting has eight clients write to the pod without a pause, until it is stopped.
func (c *cluster) keepWriting(pod *v1.Pod) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	config := rest.CopyConfig(c.config)
	config.QPS = -1
	var writers sync.WaitGroup
	for i := range 8 {
		client := clientset.NewForConfigOrDie(config)
		writers.Go(func() {
			for ctx.Err() == nil {
				_, _ = client.CoreV1().Pods(c.namespace).Patch(ctx, pod.Name, types.MergePatchType,
					fmt.Appendf(nil, `{"metadata":{"annotations":{"writer-%d":%q}}}`, i, time.Now()), metav1.PatchOptions{})
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		writers.Wait()
	})
	c.t.Cleanup(stop)
	return stop
}

// testFencedCalls has the API of the fence: what a client sends, and what it gets.
func testFencedCalls(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("kept", withGracePeriod(3600)), v1.ConditionTrue)
	request := c.join(pod, drainer)
	evict := func(uid string, change func(*policyv1.Eviction)) error {
		return c.evictWith(c.client, pod, func(eviction *policyv1.Eviction) {
			eviction.Annotations[coordinationv1alpha1.EvictionRequestUIDAnnotation] = uid
			eviction.DeleteOptions = &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
			if change != nil {
				change(eviction)
			}
		})
	}
	for name, test := range map[string]struct {
		uid    string
		change func(*policyv1.Eviction)
		check  func(error) bool
		text   string
	}{
		"another interceptor is active": {uid: string(request.UID), check: apierrors.IsConflict, text: "its interceptor first.example.com is not active", change: func(eviction *policyv1.Eviction) {
			eviction.Annotations[coordinationv1alpha1.EvictionActingInterceptorAnnotation] = first
		}},
		"another request": {uid: "7", check: apierrors.IsConflict, text: "it was replaced by another one"},
		"any pod of the name": {uid: string(request.UID), check: apierrors.IsInvalid, text: "deleteOptions.preconditions.uid: Required value", change: func(eviction *policyv1.Eviction) {
			eviction.DeleteOptions = nil
		}},
		"another pod": {uid: string(request.UID), check: apierrors.IsConflict, text: "it does not exist", change: func(eviction *policyv1.Eviction) {
			eviction.DeleteOptions.Preconditions = metav1.NewUIDPreconditions("7")
		}},
	} {
		if err := evict(test.uid, test.change); !test.check(err) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got error %v, want %q", name, err, test.text)
		}
		c.expectUntouched(pod)
	}
	waiting := c.createRunningPod(newPod("waiting", withInterceptors(first)), v1.ConditionTrue)
	waitingRequest := c.join(waiting, drainer)
	if err := c.evictWith(c.client, waiting, func(eviction *policyv1.Eviction) {
		eviction.Annotations[coordinationv1alpha1.EvictionRequestUIDAnnotation] = string(waitingRequest.UID)
		eviction.DeleteOptions = &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(waiting.UID))}
	}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "none of its interceptors is active") {
		t.Errorf("before any interceptor is active: got error %v", err)
	}
	c.expectUntouched(waiting)
	stop := c.startController(clock.RealClock{})
	c.awaitTermination(pod)
	stop()
	if err := evict(string(request.UID), nil); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the pod terminates already") {
		t.Errorf("it was evicted before: got error %v", err)
	}
}
