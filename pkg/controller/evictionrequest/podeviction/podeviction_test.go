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

package podeviction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

const (
	namespace = "prod"
	podName   = "web-0"
	podUID    = types.UID("0f8fad5b-d9cb-469f-a165-70867728950e")
)

var (
	podResource    = schema.GroupResource{Resource: "pods"}
	errUnreachable = errors.New("unreachable")
)

func newPod() *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName, UID: podUID, Labels: map[string]string{"app": "web"}}}
}

func newRequest() *coordinationv1alpha1.EvictionRequest {
	return &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: string(podUID), UID: "request-uid"}}
}

// notRequested is the response if the request does not want the eviction any more.
func notRequested() *apierrors.StatusError {
	err := apierrors.NewConflict(coordinationv1alpha1.Resource("evictionrequests"), string(podUID), errors.New("it is canceled"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: coordinationv1alpha1.EvictionNotRequestedCause}}
	return err
}

func newBudget(name string, changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	for _, change := range changes {
		change(budget)
	}
	return budget
}

// violation is the response of the pods/eviction subresource if a budget allows no disruption.
func violation(cause string) *apierrors.StatusError {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: cause}}
	return err
}

// notCounted is the response if the disruption controller has not counted the pods of a new budget.
// Like that of an overloaded API server, it has a retry delay.
func notCounted() *apierrors.StatusError {
	err := violation("The disruption budget web is still being processed by the server.")
	err.ErrStatus.Details.RetryAfterSeconds = 10
	return err
}

// twoBudgets is the response if two budgets select the pod. It is sent in the body of a successful
// response.
func twoBudgets() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
	}}
}

// refusing429 is the response of an admission webhook that evicts pods by other means.
func refusing429() *apierrors.StatusError {
	return apierrors.NewTooManyRequestsError("admission webhook denied the request: the virtual machine is migrated first")
}

// unusableBudget is the response of the subresource if the status of a budget is invalid or full.
func unusableBudget(reason, cause string) *apierrors.StatusError {
	err := apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"}, "web", errors.New(reason))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web does not allow evicting pods currently: " + cause,
	}}
	return err
}

// answeringServer sends the same response to each request, and records the requests.
type answeringServer struct {
	code       int
	retryAfter string
	answer     metav1.Status
	// text is sent instead of the status, as by a proxy.
	text string

	requests []string
	body     policyv1.Eviction
}

func (s *answeringServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.body = policyv1.Eviction{}
	if err := json.NewDecoder(r.Body).Decode(&s.body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s.retryAfter != "" {
		w.Header().Set("Retry-After", s.retryAfter)
	}
	if s.text != "" {
		http.Error(w, s.text, s.code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	s.answer.APIVersion, s.answer.Kind = "v1", "Status"
	w.WriteHeader(s.code)
	_ = json.NewEncoder(w).Encode(s.answer)
}

// client returns a client of the server, which runs until the test ends.
func (s *answeringServer) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatalf("creating a client: %v", err)
	}
	return client
}

func TestEvictor(t *testing.T) {
	blockedAnswer := violation("The disruption budget web needs 3 healthy pods and has 3 currently").ErrStatus
	tests := map[string]struct {
		server *answeringServer
		want   Outcome
	}{
		"evicts":                        {server: &answeringServer{code: http.StatusCreated, answer: metav1.Status{Status: metav1.StatusSuccess}}, want: Evicted},
		"refused by a budget":           {server: &answeringServer{code: http.StatusTooManyRequests, retryAfter: "1", answer: blockedAnswer}, want: Budget},
		"overload":                      {server: &answeringServer{code: http.StatusTooManyRequests, retryAfter: "1", answer: apierrors.NewTooManyRequests("busy", 1).ErrStatus}, want: Retry},
		"refused by a webhook with 429": {server: &answeringServer{code: http.StatusTooManyRequests, answer: refusing429().ErrStatus}, want: Refused},
		"overload, from a filter":       {server: &answeringServer{code: http.StatusTooManyRequests, retryAfter: "1", text: "Too many requests, please try again later."}, want: Retry},
		"an overloaded proxy":           {server: &answeringServer{code: http.StatusTooManyRequests, text: "slow down"}, want: Retry},
		"a proxy without a backend":     {server: &answeringServer{code: http.StatusNotFound, text: "no backend"}, want: Retry},
		"a server that is not ready":    {server: &answeringServer{code: http.StatusServiceUnavailable, retryAfter: "1", answer: apierrors.NewServiceUnavailable("starting").ErrStatus}, want: Retry},
		"another instance":              {server: &answeringServer{code: http.StatusConflict, answer: apierrors.NewConflict(podResource, podName, errUnreachable).ErrStatus}, want: Retry},
		"not requested":                 {server: &answeringServer{code: http.StatusConflict, answer: notRequested().ErrStatus}, want: NotRequested},
		"the pod is gone":               {server: &answeringServer{code: http.StatusNotFound, answer: apierrors.NewNotFound(podResource, podName).ErrStatus}, want: Gone},
		"refused by a webhook":          {server: &answeringServer{code: http.StatusForbidden, answer: apierrors.NewForbidden(podResource, podName, errUnreachable).ErrStatus}, want: Refused},
		"a failure in the body of a successful response": {
			server: &answeringServer{code: http.StatusCreated, answer: twoBudgets().ErrStatus}, want: Refused,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := NewEvictor(test.server.client(t))(context.Background(), newRequest(), "interceptor.example.com", newPod())
			if got, _ := Classify(err, nil); got != test.want {
				t.Errorf("got outcome %d of error %v, want %d", got, err, test.want)
			}
			// One request only: the client must not retry.
			if diff := cmp.Diff([]string{"POST /api/v1/namespaces/prod/pods/web-0/eviction"}, test.server.requests); diff != "" {
				t.Errorf("unexpected requests (-want, +got):\n%s", diff)
			}
			want := policyv1.Eviction{
				TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: podName,
					Annotations: map[string]string{
						"coordination.k8s.io/bypass-interceptors":  "true",
						"coordination.k8s.io/eviction-request-uid": "request-uid",
						"coordination.k8s.io/acting-interceptor":   "interceptor.example.com",
					},
				},
				DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(podUID)}},
			}
			if diff := cmp.Diff(want, test.server.body); diff != "" {
				t.Errorf("unexpected body (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestGracePeriod: the grace period of callers of pods/eviction counts while they request the eviction, and a
// longer one than that of the pod only if nobody else does.
func TestGracePeriod(t *testing.T) {
	const callers, drain = "eviction.k8s.io", "drain.example.com"
	for name, test := range map[string]struct {
		said       string
		requesters []string
		own, want  *int64
	}{
		"none":                       {requesters: []string{callers}},
		"shorter":                    {said: "5", requesters: []string{callers}, want: ptr.To[int64](5)},
		"at once":                    {said: "0", requesters: []string{callers}, want: ptr.To[int64](0)},
		"longer":                     {said: "31", requesters: []string{callers}, want: ptr.To[int64](31)},
		"shorter, others as well":    {said: "29", requesters: []string{drain, callers}, want: ptr.To[int64](29)},
		"longer, others as well":     {said: "31", requesters: []string{callers, drain}},
		"shorter than the pod's":     {said: "59", own: ptr.To[int64](60), requesters: []string{callers, drain}, want: ptr.To[int64](59)},
		"only others":                {said: "5", requesters: []string{drain}},
		"invalid":                    {said: "soon", requesters: []string{callers}},
		"negative":                   {said: "-1", requesters: []string{callers}},
		"more than a number can say": {said: "99999999999999999999", requesters: []string{callers}},
	} {
		t.Run(name, func(t *testing.T) {
			request, pod := newRequest(), newPod()
			pod.Spec.TerminationGracePeriodSeconds = test.own
			if test.said != "" {
				request.Annotations = map[string]string{"coordination.k8s.io/eviction-call-grace-period-seconds": test.said}
			}
			request.Spec.Requesters = nil
			for _, name := range test.requesters {
				request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: name})
			}
			server := &answeringServer{code: http.StatusCreated, answer: metav1.Status{Status: metav1.StatusSuccess}}
			if err := NewEvictor(server.client(t))(t.Context(), request, "interceptor.example.com", pod); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, server.body.DeleteOptions.GracePeriodSeconds); diff != "" {
				t.Errorf("unexpected grace period (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestEvictorStopsWithItsContext(t *testing.T) {
	server := &answeringServer{code: http.StatusCreated}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := NewEvictor(server.client(t))(ctx, newRequest(), "interceptor.example.com", newPod()); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that the context is canceled", err)
	}
	if len(server.requests) > 0 {
		t.Errorf("sent %v after the end of the context", server.requests)
	}
}

func TestClassify(t *testing.T) {
	one := []*policyv1.PodDisruptionBudget{newBudget("web")}
	two := []*policyv1.PodDisruptionBudget{newBudget("all"), newBudget("web")}
	var many []*policyv1.PodDisruptionBudget
	for i := range 12 {
		many = append(many, newBudget(fmt.Sprintf("b-%d", i)))
	}
	const violated = "Cannot evict pod as it would violate the pod's disruption budget."

	tests := map[string]struct {
		err     error
		budgets []*policyv1.PodDisruptionBudget
		want    Outcome
		detail  string
	}{
		"success":                {budgets: one, want: Evicted},
		"the pod does not exist": {err: apierrors.NewNotFound(podResource, podName), budgets: two, want: Gone},
		"the budget was deleted during the call": {
			err: apierrors.NewNotFound(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "web"), budgets: one, want: Retry,
		},
		"pods of another group": {
			err: apierrors.NewNotFound(schema.GroupResource{Group: "metrics.k8s.io", Resource: "pods"}, podName), budgets: one, want: Retry,
		},
		"the namespace does not exist": {
			err: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace), budgets: one, want: Retry,
		},
		"an unnamed object is not found": {
			err: &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}}, budgets: one, want: Retry,
		},
		"a budget with a negative allowance": {
			err:     unusableBudget("pdb disruptions allowed is negative", "pdb disruptions allowed is negative"),
			budgets: one, want: Budget,
			detail: `PodDisruptionBudget web: poddisruptionbudget.policy "web" is forbidden: pdb disruptions allowed is negative`,
		},
		"a budget with too many disrupted pods": {
			err: fmt.Errorf("evicting: %w", unusableBudget("DisruptedPods map too big - too many evictions not confirmed by PDB controller",
				"too many pending evictions not confirmed by PDB controller")),
			budgets: one, want: Budget,
			detail: `PodDisruptionBudget web: evicting: poddisruptionbudget.policy "web" is forbidden: DisruptedPods map too big - too many evictions not confirmed by PDB controller`,
		},
		"a budget whose status must not be written": {
			err:     apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "web", errors.New("a webhook refuses")),
			budgets: one, want: Budget,
			detail: `PodDisruptionBudget web: poddisruptionbudgets.policy "web" is forbidden: a webhook refuses`,
		},
		"a webhook that refuses with 429": {
			err: refusing429(), budgets: one, want: Refused,
			detail: "Too many requests: admission webhook denied the request: the virtual machine is migrated first",
		},
		"another instance of the pod":    {err: apierrors.NewConflict(podResource, podName, errUnreachable), budgets: two, want: Retry},
		"an overloaded API server":       {err: apierrors.NewTooManyRequests("busy", 1), budgets: two, want: Retry},
		"an API server that is slow":     {err: apierrors.NewServerTimeout(podResource, "create", 1), budgets: two, want: Retry},
		"an API server that timed out":   {err: apierrors.NewTimeoutError("slow", 1), budgets: two, want: Retry},
		"an API server that is starting": {err: apierrors.NewServiceUnavailable("starting"), budgets: two, want: Retry},
		"no API server":                  {err: fmt.Errorf("dial: %w", errUnreachable), budgets: two, want: Retry},
		"a budget that allows no disruption": {
			err:     violation("The disruption budget web needs 3 healthy pods and has 3 currently"),
			budgets: one, want: Budget,
			detail: "PodDisruptionBudget web: " + violated + " The disruption budget web needs 3 healthy pods and has 3 currently.",
		},
		"a violation whose message is no sentence": {
			err: fmt.Errorf("%w (evicting)", violation("The disruption budget web needs 3 healthy pods and has 3 currently")), budgets: one, want: Budget,
			detail: "PodDisruptionBudget web: " + violated + " (evicting). The disruption budget web needs 3 healthy pods and has 3 currently.",
		},
		"a budget that is not counted yet": {
			err: notCounted(), budgets: one, want: Budget,
			detail: "PodDisruptionBudget web: " + violated + " The disruption budget web is still being processed by the server.",
		},
		"a budget that allows no disruption, without a cause": {
			err: violation(""), budgets: one, want: Budget, detail: "PodDisruptionBudget web: " + violated,
		},
		"a wrapped violation": {
			err: fmt.Errorf("evicting: %w", violation("")), budgets: one, want: Budget,
			detail: "PodDisruptionBudget web: evicting: " + violated,
		},
		"two budgets on one pod": {
			err: twoBudgets(), budgets: two, want: Budget,
			detail: "PodDisruptionBudgets all, web select this pod, and the API server does not evict a pod with more than one PodDisruptionBudget: " +
				"change their selectors so that only one selects the pod.",
		},
		"many budgets on one pod": {
			err: twoBudgets(), budgets: many, want: Budget,
			detail: "PodDisruptionBudgets b-0, b-1, b-2, b-3, b-4, b-5, b-6, b-7, b-8, b-9 and 2 more select this pod, and the API server does not evict a pod with more than one PodDisruptionBudget: " +
				"change their selectors so that only one selects the pod.",
		},
		"a webhook that refuses a pod with two budgets": {
			err: apierrors.NewForbidden(podResource, podName, errUnreachable), budgets: two, want: Refused,
			detail: `pods "web-0" is forbidden: unreachable`,
		},
		"a failure of the API server with one budget": {
			err: apierrors.NewInternalError(errUnreachable), budgets: one, want: Refused,
			detail: "Internal error occurred: unreachable",
		},
		"a forbidden budget of another group": {
			err: apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "poddisruptionbudget"}, "web", errUnreachable), want: Refused,
			detail: `poddisruptionbudget.example.com "web" is forbidden: unreachable`,
		},
		"a webhook that refuses": {
			err: apierrors.NewForbidden(podResource, podName, errUnreachable), want: Refused,
			detail: `pods "web-0" is forbidden: unreachable`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, detail := Classify(test.err, test.budgets)
			if got != test.want {
				t.Errorf("got outcome %d, want %d", got, test.want)
			}
			if detail != test.detail {
				t.Errorf("got detail %q, want %q", detail, test.detail)
			}
		})
	}
}

func TestMayHaveEvicted(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	foreign := func(code int) error {
		return apierrors.NewGenericServerResponse(code, http.MethodPost, pods, "web-1", "upstream connect error", 0, true)
	}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"evicted":            {},
		"no response":        {err: errors.New("unreachable"), want: true},
		"timeout":            {err: apierrors.NewTimeoutError("slow", 1), want: true},
		"storage timeout":    {err: apierrors.NewServerTimeout(pods, "create", 1), want: true},
		"server error":       {err: apierrors.NewInternalError(errors.New("etcdserver: request timed out")), want: true},
		"starting":           {err: apierrors.NewServiceUnavailable("starting"), want: true},
		"502 of a proxy":     {err: foreign(http.StatusBadGateway), want: true},
		"504 of a proxy":     {err: foreign(http.StatusGatewayTimeout), want: true},
		"404 of a proxy":     {err: foreign(http.StatusNotFound)},
		"not found":          {err: apierrors.NewNotFound(pods, "web-1")},
		"precondition":       {err: apierrors.NewConflict(pods, "web-1", errors.New("uid"))},
		"rejected":           {err: apierrors.NewForbidden(pods, "web-1", errors.New("webhook"))},
		"budget":             {err: violation("no room")},
		"overload":           {err: apierrors.NewTooManyRequests("busy", 1)},
		"webhook with a 429": {err: refusing429()},
	} {
		if got := MayHaveEvicted(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestIsLeaving(t *testing.T) {
	unreachable := errors.New("unreachable")
	for name, test := range map[string]struct {
		change func(*v1.Pod)
		err    error
		want   bool
	}{
		"running":     {change: func(*v1.Pod) {}},
		"terminating": {change: func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, want: true},
		"replaced":    {change: func(pod *v1.Pod) { pod.UID = "successor" }, want: true},
		"gone":        {err: apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web-1"), want: true},
		"unreadable":  {err: unreachable},
	} {
		read := func(_ context.Context, namespace, name string) (*v1.Pod, error) {
			pod := newPod()
			if namespace != pod.Namespace || name != pod.Name {
				t.Errorf("%s: read %s/%s", name, namespace, name)
			}
			if test.err != nil {
				return nil, test.err
			}
			test.change(pod)
			return pod, nil
		}
		got, err := IsLeaving(t.Context(), read, newPod())
		if got != test.want || errors.Is(err, unreachable) != (test.err == unreachable) || err != nil && test.want {
			t.Errorf("%s: %t and error %v, want %t", name, got, err, test.want)
		}
	}
}

// A read asks for the latest state, and only an API server can say that a pod is gone.
func TestReader(t *testing.T) {
	for name, test := range map[string]struct {
		code         int
		body         string
		wantNotFound bool
		wantErr      bool
	}{
		"a pod":          {code: http.StatusOK, body: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1","uid":"u"}}`},
		"gone":           {code: http.StatusNotFound, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"web-1","kind":"pods"}}`, wantNotFound: true, wantErr: true},
		"404 of a proxy": {code: http.StatusNotFound, body: "no backend", wantErr: true},
		"a server error": {code: http.StatusInternalServerError, body: "no", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/namespaces/default/pods/web-1" || r.URL.RawQuery != "" {
					t.Errorf("read %s", r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.code)
				fmt.Fprint(w, test.body)
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			pod, err := NewReader(client)(t.Context(), "default", "web-1")
			if (err != nil) != test.wantErr || apierrors.IsNotFound(err) != test.wantNotFound || err == nil && pod.UID != "u" {
				t.Errorf("pod %v, error %v", pod, err)
			}
		})
	}
}

// A budget that cannot be computed is not one that only needs time.
func TestBudgetThatCannotBeComputed(t *testing.T) {
	failed := func(status metav1.ConditionStatus, reason string) func(*policyv1.PodDisruptionBudget) {
		return func(budget *policyv1.PodDisruptionBudget) {
			budget.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason, Message: "no scale."}}
		}
	}
	const hint = "It cannot be computed how many disruptions it allows: no scale. Set minAvailable to a number"
	for name, test := range map[string]struct {
		budgets []*policyv1.PodDisruptionBudget
		want    bool
	}{
		"it cannot":     {budgets: []*policyv1.PodDisruptionBudget{newBudget("web", failed(metav1.ConditionFalse, policyv1.SyncFailedReason))}, want: true},
		"it could":      {budgets: []*policyv1.PodDisruptionBudget{newBudget("web", failed(metav1.ConditionFalse, policyv1.InsufficientPodsReason))}},
		"it can again":  {budgets: []*policyv1.PodDisruptionBudget{newBudget("web", failed(metav1.ConditionTrue, policyv1.SyncFailedReason))}},
		"one of two":    {budgets: []*policyv1.PodDisruptionBudget{newBudget("web", failed(metav1.ConditionFalse, policyv1.SyncFailedReason)), newBudget("all")}},
		"not processed": {budgets: []*policyv1.PodDisruptionBudget{newBudget("web")}},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, detail := Classify(violation("The disruption budget web is still being processed by the server."), test.budgets)
			if outcome != Budget || strings.Contains(detail, hint) != test.want {
				t.Errorf("got outcome %s and %q, want the hint: %t", outcome, detail, test.want)
			}
		})
	}
}
