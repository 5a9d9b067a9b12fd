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

package drain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// waitingPod is a pod whose eviction waits for interceptors, and its request.
func waitingPod(name string) (*corev1.Pod, *coordinationv1alpha1.EvictionRequest) {
	pod := interceptedPod(name, "a.example.com")
	pod.UID = types.UID(name + "-uid")
	return &pod, &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: string(pod.UID), Namespace: pod.Namespace, UID: types.UID(name + "-request"),
			Annotations: map[string]string{"coordination.k8s.io/eviction-call-time": "2026-01-01T00:00:00Z", "coordination.k8s.io/eviction-call-cordon": "1/2", "example.com/other": "kept"},
		},
		Spec: coordinationv1alpha1.EvictionRequestSpec{Requesters: []coordinationv1alpha1.Requester{{Name: "eviction.k8s.io"}}},
	}
}

// requested is the answer of the server to an eviction that has to wait, and is requested.
func requested(request *coordinationv1alpha1.EvictionRequest) *apierrors.StatusError {
	err := apierrors.NewTooManyRequests("Eviction triggered evacuation", 0)
	err.ErrStatus.Details = &metav1.StatusDetails{
		Group: "coordination.k8s.io", Kind: "evictionrequests", Name: request.Name, UID: request.UID,
		Causes: []metav1.StatusCause{{Type: "EvictionIntercepted"}},
	}
	return err
}

// server is a fake API server with pods whose evictions wait.
type server struct {
	*fake.Clientset
	// answers are what evictions of a pod are answered with, one after the other.
	answers map[string][]func() error
	out     bytes.Buffer
}

func newServer(objects ...runtime.Object) *server {
	s := &server{Clientset: fake.NewClientset(objects...), answers: map[string][]func() error{}}
	s.PrependReactor("create", "pods/eviction", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name
		answers := s.answers[name]
		if len(answers) == 0 {
			return true, nil, fmt.Errorf("unexpected eviction of %s", name)
		}
		s.answers[name] = answers[1:]
		return true, nil, answers[0]()
	})
	// The tracker does not compare UIDs.
	s.PrependReactor("patch", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		stored, err := s.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
		if err == nil && !strings.Contains(string(patch.GetPatch()), fmt.Sprintf("%q", stored.(*coordinationv1alpha1.EvictionRequest).UID)) {
			return true, nil, apierrors.NewConflict(coordinationv1alpha1.Resource("evictionrequests"), patch.GetName(), errors.New("the UID differs"))
		}
		return false, nil, nil
	})
	return s
}

func (s *server) newHelper() *Helper {
	return &Helper{Client: s, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}, Requests: NewRequests(s, &s.out)}
}

func (s *server) answer(pod string, answers ...error) {
	for _, err := range answers {
		s.answers[pod] = append(s.answers[pod], func() error { return err })
	}
}

// request returns the requesters and the annotations of the request for the pod.
func (s *server) request(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	request, err := s.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Get(t.Context(), string(pod.UID), metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading the request for %s: %v", pod.Name, err)
	}
	return fmt.Sprint(otherRequesters(request), request.Annotations)
}

// lines returns what was printed.
func (s *server) lines() []string {
	if s.out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s.out.String(), "\n"), "\n")
}

const (
	kept      = "[] map[example.com/other:kept]"
	untouched = "[eviction.k8s.io] map[coordination.k8s.io/eviction-call-cordon:1/2 coordination.k8s.io/eviction-call-time:2026-01-01T00:00:00Z example.com/other:kept]"
)

// TestInterrupt has pods in all states in which an interrupt can find them.
func TestInterrupt(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod, *coordinationv1alpha1.EvictionRequest)
		// answers are those to the calls after the first one, which is requested.
		answers []error
		refusal error
		// prepare changes what the server has after that.
		prepare     func(*testing.T, *server, *corev1.Pod)
		want        string
		wantRequest string
	}{
		"it waits": {want: "stays, unless somebody calls pods/eviction for it again: its eviction is withdrawn", wantRequest: kept},
		"a budget refuses it now": {
			answers: []error{apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)},
			want:    "stays, unless somebody calls pods/eviction for it again: its eviction is withdrawn", wantRequest: kept,
		},
		"it is evicted":               {answers: []error{nil}, wantRequest: untouched},
		"it is gone, says the answer": {answers: []error{apierrors.NewNotFound(corev1.Resource("pods"), "pod")}, wantRequest: untouched},
		"it terminates": {
			change: func(pod *corev1.Pod, _ *coordinationv1alpha1.EvictionRequest) {
				pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			},
			want: "leaves all the same: it terminates already", wantRequest: kept,
		},
		"it is gone": {
			prepare: func(t *testing.T, s *server, pod *corev1.Pod) {
				if err := s.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			want: "has left already", wantRequest: kept,
		},
		"it was replaced": {
			change: func(pod *corev1.Pod, _ *coordinationv1alpha1.EvictionRequest) { pod.UID = "another" },
			want:   "has left already", // Its request is of another name.
		},
		"others request it": {
			change: func(_ *corev1.Pod, request *coordinationv1alpha1.EvictionRequest) {
				request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: "drain.example.com"})
			},
			want: "leaves all the same: its eviction is also requested by drain.example.com", wantRequest: "[drain.example.com] map[example.com/other:kept]",
		},
		"it cannot be canceled": {
			change: func(_ *corev1.Pod, request *coordinationv1alpha1.EvictionRequest) {
				request.Status.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
			},
			want: "leaves all the same: an interceptor has forbidden to cancel its eviction", wantRequest: kept,
		},
		"it is evicted, says the request": {
			change: func(_ *corev1.Pod, request *coordinationv1alpha1.EvictionRequest) {
				request.Status.Conditions = []metav1.Condition{{Type: "Evicted", Status: metav1.ConditionTrue}}
			},
			want: "leaves all the same: it is evicted already", wantRequest: kept,
		},
		"its request is gone": {
			prepare: func(t *testing.T, s *server, pod *corev1.Pod) {
				if err := s.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Delete(t.Context(), string(pod.UID), metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			want: "stays, unless somebody calls pods/eviction for it again: its eviction is not requested any more",
		},
		"its request was replaced": {
			prepare: func(t *testing.T, s *server, pod *corev1.Pod) {
				_, request := waitingPod(pod.Name)
				request.UID = "another"
				if err := s.Tracker().Update(coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests"), request, pod.Namespace); err != nil {
					t.Fatal(err)
				}
			},
			want:        `may leave all the same: its eviction cannot be withdrawn: Operation cannot be fulfilled on evictionrequests.coordination.k8s.io "pod-uid": the UID differs. To cancel it, uncordon the node, or, for all who request it: kubectl -n default delete evictionrequest pod-uid`,
			wantRequest: untouched,
		},
		"the user may not": {
			refusal:     apierrors.NewForbidden(coordinationv1alpha1.Resource("evictionrequests"), "pod-uid", errors.New("no\nrights")),
			want:        `may leave all the same: its eviction cannot be withdrawn: evictionrequests.coordination.k8s.io "pod-uid" is forbidden: no rights. To cancel it, uncordon the node, or, for all who request it: kubectl -n default delete evictionrequest pod-uid`,
			wantRequest: untouched,
		},
		"the user may not, and it terminates": {
			change: func(pod *corev1.Pod, _ *coordinationv1alpha1.EvictionRequest) {
				pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			},
			refusal: apierrors.NewForbidden(coordinationv1alpha1.Resource("evictionrequests"), "pod-uid", errors.New("no")),
			want:    "leaves all the same: it terminates already", wantRequest: untouched,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod, request := waitingPod("pod")
			evicted := pod.DeepCopy()
			if test.change != nil {
				test.change(pod, request)
			}
			s := newServer(pod, request)
			if test.refusal != nil {
				s.PrependReactor("patch", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.refusal })
			}
			s.answer("pod", append([]error{requested(request)}, test.answers...)...)
			helper := s.newHelper()
			for range 1 + len(test.answers) {
				_ = helper.evict(t.Context(), io.Discard, *evicted, *evicted, policyv1.SchemeGroupVersion) // The answers are those above.
			}
			if test.prepare != nil {
				test.prepare(t, s, evicted)
			}
			helper.Requests.Interrupt()
			var want []string
			if test.want != "" {
				want = []string{"withdrawing evictions that wait for interceptors: 1", `pods/"pod" -n "default" ` + test.want}
			}
			if diff := cmp.Diff(want, s.lines()); diff != "" {
				t.Errorf("unexpected lines (-want +got):\n%s", diff)
			}
			if test.wantRequest != "" {
				if diff := cmp.Diff(test.wantRequest, s.request(t, evicted)); diff != "" {
					t.Errorf("unexpected request (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Answers that request nothing leave nothing to withdraw, not even from a request of the same pod that
// another caller has made.
func TestNothingToWithdraw(t *testing.T) {
	pod, request := waitingPod("pod")
	refused, foreign := requested(request), requested(request)
	refused.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "EvictionIntercepted"}}}
	foreign.ErrStatus.Details.Causes = nil
	for _, answer := range []error{refused, foreign, errors.New("no connection")} {
		s := newServer(pod, request)
		s.answer("pod", answer)
		helper := s.newHelper()
		if err := helper.evict(t.Context(), io.Discard, *pod, *pod, policyv1.SchemeGroupVersion); err == nil {
			t.Fatal("the eviction was accepted")
		}
		helper.Requests.Interrupt()
		if lines, got := s.lines(), s.request(t, pod); len(lines) > 0 || got != untouched {
			t.Errorf("%v: printed %q, and left the request with %s", answer, lines, got)
		}
	}
	(*Requests)(nil).Interrupt()
}

// An eviction that is on its way is withdrawn when its answer has come, and reported if that does not.
func TestInterruptDuringEvictions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, request := waitingPod("slow")
		hanging, _ := waitingPod("hanging")
		s := newServer(slow, request)
		end := make(chan struct{})
		s.answers["slow"] = []func() error{func() error { time.Sleep(answerTimeout / 2); return requested(request) }}
		s.answers["hanging"] = []func() error{func() error { <-end; return nil }}
		helper := s.newHelper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// The reactors of a client are called one at a time.
		hangs := newServer()
		hangs.answers["hanging"] = s.answers["hanging"]
		other := *helper
		other.Client = hangs
		go func() { _ = helper.evict(ctx, io.Discard, *slow, *slow, policyv1.SchemeGroupVersion) }()
		go func() { _ = other.evict(ctx, io.Discard, *hanging, *hanging, policyv1.SchemeGroupVersion) }()
		synctest.Wait()
		begun := time.Now()
		helper.Requests.Interrupt()
		if took := time.Since(begun); took < answerTimeout || took > answerTimeout+time.Second {
			t.Errorf("it took %v, want %v", took, answerTimeout)
		}
		if diff := cmp.Diff([]string{
			"withdrawing evictions that wait for interceptors: 1", `pods/"slow" -n "default" stays, unless somebody calls pods/eviction for it again: its eviction is withdrawn`,
			`pods/"hanging" -n "default" may leave: the server has not answered its eviction yet. To see whether that is requested: kubectl -n default get evictionrequest hanging-uid`,
		}, s.lines()); diff != "" {
			t.Errorf("unexpected lines (-want +got):\n%s", diff)
		}
		// Nothing is requested again.
		cancel()
		if err := helper.evict(ctx, io.Discard, *slow, *slow, policyv1.SchemeGroupVersion); !errors.Is(err, context.Canceled) {
			t.Errorf("an eviction after the interrupt: %v", err)
		}
		if got := s.request(t, slow); got != kept {
			t.Errorf("the request has %s", got)
		}
		close(end)
	})
}

// A drain that fails withdraws what nobody asks for any more, and only that.
func TestFailedDrainWithdraws(t *testing.T) {
	for name, test := range map[string]struct {
		last error
		want string
	}{
		"failed": {last: errors.New("no connection"), want: kept},
		"gone":   {last: apierrors.NewNotFound(corev1.Resource("pods"), "pod"), want: untouched},
	} {
		t.Run(name, func(t *testing.T) {
			pod, request := waitingPod("pod")
			s := newServer(pod, request)
			s.answer("pod", requested(request), requested(request), test.last)
			helper := s.newHelper()
			err := helper.evictPods([]corev1.Pod{*pod}, policyv1.SchemeGroupVersion, func(namespace, name string) (*corev1.Pod, error) {
				return s.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
			})
			if (err != nil) != (test.want == kept) {
				t.Errorf("evicting: %v", err)
			}
			if got := s.request(t, pod); got != test.want {
				t.Errorf("the request has %s, want %s", got, test.want)
			}
		})
	}
}

// The timeout of a drain withdraws, too.
func TestTimeoutWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, request := waitingPod("pod")
		s := newServer(pod, request)
		s.answer("pod", requested(request), requested(request), requested(request))
		helper := s.newHelper()
		helper.Timeout, helper.EvictErrorRetryDelay = 12*time.Second, 5*time.Second
		err := helper.evictPods([]corev1.Pod{*pod}, policyv1.SchemeGroupVersion, func(namespace, name string) (*corev1.Pod, error) {
			return s.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		})
		if err == nil || !strings.Contains(err.Error(), "global timeout reached: 12s") {
			t.Errorf("evicting: %v", err)
		}
		if got := s.request(t, pod); got != kept {
			t.Errorf("the request has %s, want %s", got, kept)
		}
	})
}
