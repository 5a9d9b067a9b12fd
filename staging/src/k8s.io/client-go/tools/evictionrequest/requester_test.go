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
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// The behavior of a real API server that the fake one lacks, such as preconditions and the
// generation, is tested in test/integration/evictionrequest.

func newPod() *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-of-a", Namespace: namespace, UID: "a", Labels: map[string]string{"app": "db"}}}
}

func (w *cluster) requester(options RequesterOptions) *Requester {
	w.t.Helper()
	requester, err := NewRequester(w.client, own, options)
	if err != nil {
		w.t.Fatal(err)
	}
	return requester
}

func (w *cluster) requesters(name string) []string {
	w.t.Helper()
	var names []string
	for _, requester := range w.get(name).Spec.Requesters {
		names = append(names, requester.Name)
	}
	return names
}

// answer makes the first calls of a verb fail with these errors; nil lets a call succeed.
func (w *cluster) answer(verb string, errs ...error) {
	w.client.PrependReactor(verb, "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		if len(errs) == 0 {
			return false, nil, nil
		}
		err := errs[0]
		errs = errs[1:]
		return err != nil, nil, err
	})
}

// verbs returns the verbs of the calls since the last call of verbs.
func (w *cluster) verbs() []string {
	var verbs []string
	for _, action := range w.client.Actions() {
		if action.GetVerb() != "list" && action.GetVerb() != "watch" {
			verbs = append(verbs, action.GetVerb())
		}
	}
	w.client.ClearActions()
	return verbs
}

var (
	resource      = coordinationv1alpha1.Resource("evictionrequests")
	errNotDrained = func() error {
		err := apierrors.NewConflict(resource, "a", errors.New("its drain has ended"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: coordinationv1alpha1.EvictionNotDrainedCause}}
		return err
	}()
	errConflict = apierrors.NewConflict(resource, "a", errors.New("changed"))
	errInvalid  = apierrors.NewInvalid(coordinationv1alpha1.SchemeGroupVersion.WithKind("EvictionRequest").GroupKind(), "a", nil)
	errNotFound = apierrors.NewNotFound(resource, "a")
	errForbid   = apierrors.NewForbidden(resource, "a", errors.New("may not delete the pod"))
)

func TestNewRequester(t *testing.T) {
	client := fake.NewClientset()
	cases := map[string]struct {
		noClient bool
		name     string
		deadline int32
		want     string
	}{
		"shortest deadline": {name: own, deadline: 120},
		"longest deadline":  {name: own, deadline: 21600},
		"default deadline":  {name: own},
		"too short":         {name: own, deadline: 119, want: "119"},
		"too long":          {name: own, deadline: 21601, want: "21601"},
		"no domain":         {name: "own", want: `"own"`},
		"no client":         {noClient: true, name: own, want: "client is nil"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			options := RequesterOptions{HeartbeatDeadlineSeconds: tc.deadline}
			_, err := NewRequester(client, tc.name, options)
			if tc.noClient {
				_, err = NewRequester(nil, tc.name, options)
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("NewRequester: %v, want %q", err, tc.want)
			}
		})
	}
}

func TestFieldManager(t *testing.T) {
	fits := strings.Repeat("a", 124) + ".com"
	if got := FieldManager(fits); got != fits {
		t.Errorf("FieldManager of 128 characters = %s, want the name", got)
	}
	long, other := FieldManager(strings.Repeat("a", 200)+".com"), FieldManager(strings.Repeat("a", 200)+".org")
	if len(long) != 128 || len(other) != 128 || long == other {
		t.Errorf("FieldManager of long names = %s and %s, want two of 128 characters", long, other)
	}
}

func TestRequestCreates(t *testing.T) {
	w := newCluster(t)
	result, err := w.requester(RequesterOptions{HeartbeatDeadlineSeconds: 600}).Request(t.Context(), newPod())
	if err != nil || result.Outcome != Created {
		t.Fatalf("Request: %v, %v", result, err)
	}
	if diff := cmp.Diff([]string{"patch"}, w.verbs()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	deadline := int32(600)
	want := coordinationv1alpha1.EvictionRequestSpec{
		Target:                   coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: "pod-of-a", UID: "a"}},
		Requesters:               []coordinationv1alpha1.Requester{{Name: own}},
		HeartbeatDeadlineSeconds: &deadline,
	}
	request := w.get("a")
	if diff := cmp.Diff(want, request.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(newPod().Labels, request.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestRequestJoins(t *testing.T) {
	w := newCluster(t, newRequest("a"))
	result, err := w.requester(RequesterOptions{}).Request(t.Context(), newPod())
	if err != nil || result.Outcome != Joined {
		t.Fatalf("Request: %v, %v", result, err)
	}
	if diff := cmp.Diff([]string{drainer, own}, w.requesters("a")); diff != "" {
		t.Errorf("requesters (-want +got):\n%s", diff)
	}
}

// A request in its first generation has only been changed by its first requester.
func TestOutcome(t *testing.T) {
	cases := map[string]struct {
		generation int64
		requesters []coordinationv1alpha1.Requester
		want       Outcome
	}{
		"first":                {generation: 1, requesters: []coordinationv1alpha1.Requester{{Name: own}}, want: Created},
		"others have left":     {generation: 2, requesters: []coordinationv1alpha1.Requester{{Name: own}}, want: Joined},
		"created with another": {generation: 1, requesters: []coordinationv1alpha1.Requester{{Name: own}, {Name: other}}, want: Joined},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := newRequest("a")
			request.Generation, request.Spec.Requesters = tc.generation, tc.requesters
			result, err := newCluster(t).requester(RequesterOptions{}).evaluate(request)
			if err != nil || result.Outcome != tc.want {
				t.Errorf("the outcome is %v, %v, want %s", result, err, tc.want)
			}
		})
	}
}

// A mutating webhook removes the requester or adds it again. If that counted as success, the caller
// would retry forever, or treat the request as withdrawn.
func TestWebhookRevertsTheWrite(t *testing.T) {
	with := func(names ...string) *coordinationv1alpha1.EvictionRequest {
		request := newRequest("a")
		request.Spec.Requesters = nil
		for _, name := range names {
			request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: name})
		}
		return request
	}
	for name, test := range map[string]struct {
		answer *coordinationv1alpha1.EvictionRequest
		write  func(*Requester) error
		want   string
	}{
		"removed":     {with(other), func(r *Requester) error { _, err := r.Request(t.Context(), newPod()); return err }, "without the requester " + own},
		"added again": {with(other, own), func(r *Requester) error { return r.remove(t.Context(), with(own)) }, "with the requester " + own},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t)
			w.client.PrependReactor("patch", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) { return true, test.answer, nil })
			if err := test.write(w.requester(RequesterOptions{})); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

// The API server rejects another deadline and other labels.
func TestRequestJoinsAfterRejection(t *testing.T) {
	for name, rejection := range map[string]error{"another deadline": errInvalid, "other labels": errConflict} {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				w := newCluster(t, newRequest("a", withDeadline(20*time.Minute)))
				w.answer("patch", rejection, errConflict)
				result, err := w.requester(RequesterOptions{HeartbeatDeadlineSeconds: 600}).Request(t.Context(), newPod())
				if err != nil || result.Outcome != Joined {
					t.Fatalf("Request: %v, %v", result, err)
				}
				request := w.get("a")
				if got := *request.Spec.HeartbeatDeadlineSeconds; got != 1200 {
					t.Errorf("the deadline is %d, want it unchanged", got)
				}
				if len(request.Labels) > 0 {
					t.Errorf("labels are %v, want them unchanged", request.Labels)
				}
				last := w.client.Actions()[len(w.client.Actions())-2].(clienttesting.PatchAction)
				if !strings.Contains(string(last.GetPatch()), `"uid":"uid-of-a"`) {
					t.Errorf("joined by %s, want the UID of the request in it", last.GetPatch())
				}
			})
		})
	}
}

func TestRequestErrors(t *testing.T) {
	misnamed := newRequest("a")
	misnamed.Spec.Target.Pod.Name = "another"
	incomplete := newPod()
	incomplete.UID = ""
	cases := map[string]struct {
		pod     *v1.Pod
		there   *coordinationv1alpha1.EvictionRequest
		answers []error
		gets    []error
		is      func(error) bool
		want    string
	}{
		"forbidden":               {answers: []error{errForbid}, is: apierrors.IsForbidden},
		"invalid patch":           {answers: []error{errInvalid, errInvalid}, is: apierrors.IsInvalid},
		"invalid when joining":    {there: newRequest("a"), answers: []error{errInvalid, errInvalid}, is: apierrors.IsInvalid},
		"not drained":             {answers: []error{errNotDrained}, is: apierrors.IsConflict, want: "its drain has ended"},
		"read is forbidden":       {there: newRequest("a"), answers: []error{errConflict}, gets: []error{errForbid}, is: apierrors.IsForbidden},
		"pod without UID":         {pod: incomplete, want: "read from the API server"},
		"request for another pod": {there: misnamed, answers: []error{errConflict}, want: `is pod "another"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				w := newCluster(t)
				if tc.there != nil {
					w = newCluster(t, tc.there)
				}
				w.answer("patch", tc.answers...)
				w.answer("get", tc.gets...)
				pod := tc.pod
				if pod == nil {
					pod = newPod()
				}
				_, err := w.requester(RequesterOptions{}).Request(t.Context(), pod)
				if err == nil || tc.is != nil && !tc.is(err) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("Request: %v, want %q", err, tc.want)
				}
			})
		})
	}
}

// The request exists during the first patch, and is gone when it is read.
func TestRequestCreatesAfterConflict(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t)
		w.answer("patch", errConflict)
		result, err := w.requester(RequesterOptions{}).Request(t.Context(), newPod())
		if err != nil || result.Outcome != Created || result.Request.Labels["app"] != "db" {
			t.Errorf("Request: %v, %v, want a new request with labels", result, err)
		}
	})
}

func TestRequestFinished(t *testing.T) {
	t.Run("evicted", func(t *testing.T) {
		w := newCluster(t, newRequest("a", setTrue(coordinationv1alpha1.EvictionRequestConditionEvicted, "PodDeleted")))
		result, err := w.requester(RequesterOptions{}).Request(t.Context(), newPod())
		if err != nil || result.Outcome != AlreadyEvicted {
			t.Errorf("Request: %v, %v, want the outcome %s", result, err, AlreadyEvicted)
		}
	})
	t.Run("cannot be evicted", func(t *testing.T) {
		w := newCluster(t, newRequest("a", setTrue(coordinationv1alpha1.EvictionRequestConditionCanceled, "ValidationFailed")))
		_, err := w.requester(RequesterOptions{}).Request(t.Context(), newPod())
		var canceled *CanceledError
		if !errors.As(err, &canceled) || canceled.Reason != "ValidationFailed" || !strings.Contains(err.Error(), "As expected.") {
			t.Errorf("Request: %v, want it to say why it was canceled", err)
		}
	})
}

// TestRequestComesBack has an old request that blocks a new one until it is deleted.
func TestRequestAfterFinishedOne(t *testing.T) {
	cases := map[string]func(*coordinationv1alpha1.EvictionRequest){
		"canceled": setTrue(coordinationv1alpha1.EvictionRequestConditionCanceled, "NoRequesters"),
		"being deleted": func(request *coordinationv1alpha1.EvictionRequest) {
			request.DeletionTimestamp, request.Finalizers = ago(0), []string{"example.com/keep"}
		},
	}
	for name, old := range cases {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				w := newCluster(t, newRequest("a", old))
				results := make(chan *Result, 1)
				go func() {
					result, err := w.requester(RequesterOptions{}).Request(t.Context(), newPod())
					if err != nil {
						t.Errorf("Request: %v", err)
					}
					results <- result
				}()
				time.Sleep(time.Hour)
				synctest.Wait()
				if len(results) > 0 {
					t.Fatalf("Request returned %v while the old request was there", <-results)
				}
				// Two calls every 5 seconds, and a few more at the start.
				if calls := len(w.verbs()); calls > 1500 {
					t.Errorf("%d calls in an hour of waiting", calls)
				}
				w.delete("a")
				result := <-results
				if result.Outcome != Created || result.Request.UID != "" {
					t.Errorf("Request came to %v, want a new request", result)
				}
			})
		})
	}
}

func TestRequestWaitStopsWithContext(t *testing.T) {
	inSynctest(t, func(t *testing.T) {
		w := newCluster(t, newRequest("a", setTrue(coordinationv1alpha1.EvictionRequestConditionCanceled, "NoRequesters")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := w.requester(RequesterOptions{}).Request(ctx, newPod()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Request: %v, want it to end with the context", err)
		}
	})
}

// Labels whose managed fields would be too many are left to the API server, which would refuse the request.
func TestRequestWithManyLabels(t *testing.T) {
	labels := func(number int) map[string]string {
		labels := map[string]string{}
		for i := range number {
			labels[fmt.Sprintf("%04d", i)] = "" // 12 bytes of managed fields
		}
		return labels
	}
	for number, want := range map[int]int{0: 0, 1: 1, 512: 512, 513: 0, 4000: 0} {
		w, pod := newCluster(t), newPod()
		pod.Labels = labels(number)
		if _, err := w.requester(RequesterOptions{}).Request(t.Context(), pod); err != nil {
			t.Fatalf("Request: %v", err)
		}
		if got := len(w.get("a").Labels); got != want {
			t.Errorf("of a pod with %d labels, %d are applied, want %d", number, got, want)
		}
	}
}

// When a requester applies again, it keeps the fields that it owns with their current values.
func TestRequestKeepsLabels(t *testing.T) {
	w := newCluster(t)
	requester := w.requester(RequesterOptions{HeartbeatDeadlineSeconds: 600})
	pod := newPod()
	pod.Labels["tier"] = "back"
	if _, err := requester.Request(t.Context(), pod); err != nil {
		t.Fatalf("Request: %v", err)
	}
	if _, err := w.client.CoordinationV1alpha1().EvictionRequests(namespace).Patch(t.Context(), "a", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"app":"web"}}}`), metav1.PatchOptions{FieldManager: "controller"}); err != nil {
		t.Fatal(err)
	}
	if _, err := requester.Request(t.Context(), pod); err != nil {
		t.Fatalf("Request: %v", err)
	}
	if err := requester.Withdraw(t.Context(), pod); err != nil {
		t.Fatalf("Withdraw: %v", err)
	}
	request := w.get("a")
	if diff := cmp.Diff(map[string]string{"app": "web", "tier": "back"}, request.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if request.Spec.Target.Pod == nil || *request.Spec.HeartbeatDeadlineSeconds != 600 || len(request.Spec.Requesters) > 0 {
		t.Errorf("the spec is %v, want only the requesters removed", request.Spec)
	}
}

func TestWithdraw(t *testing.T) {
	joined := func(request *coordinationv1alpha1.EvictionRequest) {
		request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: own})
	}
	cases := map[string]struct {
		there   *coordinationv1alpha1.EvictionRequest
		patches []error
		want    []string
	}{
		"no request":            {},
		"not a requester":       {there: newRequest("a"), want: []string{"get"}},
		"canceled":              {there: newRequest("a", joined, setTrue(coordinationv1alpha1.EvictionRequestConditionCanceled, "ValidationFailed")), want: []string{"get"}},
		"evicted":               {there: newRequest("a", joined, setTrue(coordinationv1alpha1.EvictionRequestConditionEvicted, "PodDeleted")), want: []string{"get"}},
		"owned by others":       {there: newRequest("a", joined), want: []string{"get", "patch", "patch"}},
		"changed concurrently":  {there: newRequest("a", joined), patches: []error{errConflict}, want: []string{"get", "patch", "get", "patch", "patch"}},
		"deleted concurrently":  {there: newRequest("a", joined), patches: []error{errNotFound}, want: []string{"get", "patch", "get", "patch", "patch"}},
		"entry moved":           {there: newRequest("a", joined), patches: []error{nil, errInvalid}, want: []string{"get", "patch", "patch", "get", "patch", "patch"}},
		"entry moved, conflict": {there: newRequest("a", joined), patches: []error{nil, errConflict}, want: []string{"get", "patch", "patch", "get", "patch", "patch"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inSynctest(t, func(t *testing.T) {
				w := newCluster(t)
				if tc.there != nil {
					w = newCluster(t, tc.there)
				}
				w.answer("patch", tc.patches...)
				if err := w.requester(RequesterOptions{}).Withdraw(t.Context(), newPod()); err != nil {
					t.Fatalf("Withdraw: %v", err)
				}
				if tc.there == nil {
					if got := w.verbs(); !slices.Equal(got, []string{"get"}) {
						t.Errorf("calls are %v, want one get", got)
					}
					return
				}
				if diff := cmp.Diff(tc.want, w.verbs()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if got := w.requesters("a"); len(tc.want) > 1 && !slices.Equal(got, []string{drainer}) {
					t.Errorf("the requesters are %v, want only the other one", got)
				}
			})
		})
	}
}

// The requester stays in a newer request of the same name.
func TestWithdrawLeavesAnotherRequest(t *testing.T) {
	w := newCluster(t, newRequest("a"))
	seen := newRequest("a")
	seen.UID = "gone"
	seen.Spec.Requesters[0].Name = drainer
	requester, err := NewRequester(w.client, drainer, RequesterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := requester.remove(t.Context(), seen); err == nil {
		t.Error("removed the requester from another request")
	}
	if got := w.requesters("a"); !slices.Equal(got, []string{drainer}) {
		t.Errorf("the requesters are %v, want %s", got, drainer)
	}
}

func TestWithdrawErrors(t *testing.T) {
	w := newCluster(t, newRequest("a", func(request *coordinationv1alpha1.EvictionRequest) {
		request.Spec.Requesters[0].Name = own
	}))
	requester := w.requester(RequesterOptions{})
	w.answer("get", errForbid)
	if err := requester.Withdraw(t.Context(), newPod()); !apierrors.IsForbidden(err) {
		t.Errorf("Withdraw: %v, want the error of the API server", err)
	}
	w.answer("patch", errForbid)
	if err := requester.WithdrawRequest(t.Context(), w.get("a")); !apierrors.IsForbidden(err) {
		t.Errorf("WithdrawRequest: %v, want the error of the API server", err)
	}
	if err := requester.Withdraw(t.Context(), &v1.Pod{}); err == nil {
		t.Error("Withdraw of a pod without a name succeeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.answer("patch", errConflict)
	if err := requester.Withdraw(ctx, newPod()); !errors.Is(err, context.Canceled) {
		t.Errorf("Withdraw: %v, want it to end with the context", err)
	}
}

// TestLowerDeadline: whoever joins lowers the deadline to its own, but not below the default.
func TestLowerDeadline(t *testing.T) {
	for name, test := range map[string]struct {
		stored, own int32
		answer      error
		want        int32
		lowers      bool
		wantErr     bool
	}{
		"a smaller one":                 {stored: 21600, own: 1800, want: 1800, lowers: true},
		"the default":                   {stored: 1201, want: 1200, lowers: true},
		"one below the default":         {stored: 21600, own: 120, want: 1200, lowers: true},
		"the same":                      {stored: 1800, own: 1800, want: 1800},
		"a greater one":                 {stored: 1800, own: 3600, want: 1800},
		"a stored one below":            {stored: 300, own: 1800, want: 300},
		"an older server":               {stored: 21600, own: 1800, answer: errInvalid, want: 21600, lowers: true},
		"a request that is gone":        {stored: 21600, own: 1800, answer: errNotFound, want: 21600, lowers: true},
		"a failure, which is to repeat": {stored: 21600, own: 1800, answer: errForbid, want: 21600, lowers: true, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t, newRequest("a", withDeadline(time.Duration(test.stored)*time.Second)))
			w.verbs()
			// The API server rejects another deadline.
			w.answer("patch", errConflict, nil, test.answer)
			wantVerbs := []string{"patch", "get", "patch"}
			if test.lowers {
				wantVerbs = append(wantVerbs, "patch")
			}
			result, err := w.requester(RequesterOptions{HeartbeatDeadlineSeconds: test.own}).Request(t.Context(), newPod())
			if (err != nil) != test.wantErr {
				t.Fatalf("got error %v", err)
			}
			if diff := cmp.Diff(wantVerbs, w.verbs()); diff != "" {
				t.Errorf("unexpected calls (-want, +got):\n%s", diff)
			}
			if got := *w.get("a").Spec.HeartbeatDeadlineSeconds; got != test.want {
				t.Errorf("the deadline is %d, want %d", got, test.want)
			}
			if err == nil && (result.Outcome != Joined || *result.Request.Spec.HeartbeatDeadlineSeconds != test.want) {
				t.Errorf("got outcome %s and deadline %d", result.Outcome, *result.Request.Spec.HeartbeatDeadlineSeconds)
			}
		})
	}
}
