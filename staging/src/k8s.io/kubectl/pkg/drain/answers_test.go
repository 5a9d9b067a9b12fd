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
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

func podOn(uid types.UID, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: "shop", UID: uid}, Spec: corev1.PodSpec{NodeName: node}}
}

// evictAnswered evicts a pod, and returns the eviction that was sent.
func evictAnswered(t *testing.T, helper *Helper, drained, pod *corev1.Pod, answer error, errOut io.Writer) (sent *policyv1.Eviction, err error) {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		sent = action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		return true, nil, answer
	})
	helper.Client = client
	err = helper.evict(t.Context(), errOut, *drained, *pod, policyv1.SchemeGroupVersion)
	return sent, err
}

// TestSuccessorOfADrainedPod: the pod that has its name on another node is not evicted.
func TestSuccessorOfADrainedPod(t *testing.T) {
	for name, test := range map[string]struct {
		drained, pod *corev1.Pod
		want         types.UID
	}{
		"the pod itself":            {drained: podOn("1", "n1"), pod: podOn("1", "n1"), want: "1"},
		"a successor elsewhere":     {drained: podOn("1", "n1"), pod: podOn("2", "n2")},
		"a successor without node":  {drained: podOn("1", "n1"), pod: podOn("2", "")},
		"a successor on that node":  {drained: podOn("1", "n1"), pod: podOn("2", "n1"), want: "2"},
		"a server that has no UIDs": {drained: podOn("", "n1"), pod: podOn("", "n1"), want: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			sent, err := evictAnswered(t, &Helper{}, test.drained, test.pod, nil, io.Discard)
			switch {
			case test.want == "":
				if sent != nil || !apierrors.IsNotFound(err) {
					t.Errorf("evicted %v, error %v", sent, err)
				}
			case sent == nil || err != nil:
				t.Errorf("not evicted: %v", err)
			case test.want == "none":
				if sent.DeleteOptions.Preconditions != nil {
					t.Errorf("preconditions %v", sent.DeleteOptions.Preconditions)
				}
			case sent.DeleteOptions.Preconditions == nil || *sent.DeleteOptions.Preconditions.UID != test.want:
				t.Errorf("preconditions %v, want the UID %s", sent.DeleteOptions.Preconditions, test.want)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	pods := corev1.Resource("pods")
	denied := apierrors.NewForbidden(pods, "db-0", errors.New("x"))
	denied.ErrStatus.Message = `admission webhook "move.example.com" denied the request: the primary is being moved`
	policy := apierrors.NewForbidden(pods, "db-0", errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"))
	forbidden := apierrors.NewForbidden(pods, "db-0", errors.New(`User "a" cannot create resource "pods/eviction"`))
	conflict := apierrors.NewConflict(pods, "db-0", errors.New("the UID differs"))
	waits := apierrors.NewTooManyRequests("wait", 0)
	for name, test := range map[string]struct {
		answer  error
		dryRun  cmdutil.DryRunStrategy
		without bool // Without Requests, as in other programs.
		noUIDs  bool
		again   bool
		want    error
		printed string
	}{
		"evicted":                         {},
		"it has to wait":                  {answer: waits, again: true},
		"it would have to wait":           {answer: waits, dryRun: cmdutil.DryRunServer, printed: `pods/"db-0" -n "shop" would have to wait (server dry run): wait`},
		"a webhook denies":                {answer: denied, again: true},
		"a webhook denies, elsewhere":     {answer: denied, without: true, want: denied},
		"a policy denies":                 {answer: policy, again: true},
		"it is forbidden":                 {answer: forbidden, want: forbidden},
		"the pod was replaced just":       {answer: conflict, again: true},
		"a conflict, without UIDs":        {answer: conflict, noUIDs: true, want: conflict},
		"the pod is gone":                 {answer: apierrors.NewNotFound(pods, "db-0"), want: apierrors.NewNotFound(pods, "db-0")},
		"a failure":                       {answer: errors.New("no route"), want: errors.New("no route")},
		"a dry run that is denied":        {answer: forbidden, dryRun: cmdutil.DryRunServer, want: forbidden},
		"a dry run that would be evicted": {dryRun: cmdutil.DryRunServer},
	} {
		t.Run(name, func(t *testing.T) {
			helper := &Helper{DryRunStrategy: test.dryRun}
			if !test.without {
				helper.Requests = NewRequests(fake.NewClientset(), io.Discard)
			}
			out := &bytes.Buffer{}
			pod := podOn("1", "n1")
			if test.noUIDs {
				pod.UID = ""
			}
			_, err := evictAnswered(t, helper, pod, pod, test.answer, out)
			switch {
			case test.again:
				if !apierrors.IsTooManyRequests(err) {
					t.Errorf("got error %v, want that it is tried again", err)
				}
			case (err == nil) != (test.want == nil) || err != nil && err.Error() != test.want.Error():
				t.Errorf("got error %v, want %v", err, test.want)
			}
			if got := strings.TrimSpace(out.String()); got != test.printed {
				t.Errorf("printed %q, want %q", got, test.printed)
			}
		})
	}
}

// A webhook that denies for ever ends the drain after a while. One that denies another pod, or denied before, does not.
func TestDenialsEnd(t *testing.T) {
	now := time.Unix(1000, 0)
	requests := NewRequests(fake.NewClientset(), io.Discard)
	requests.now = func() time.Time { return now }
	denial := errors.New(`admission webhook "a" denied the request`)
	expect := func(what string, uid types.UID, err error, want bool) {
		t.Helper()
		if got := requests.isDeniedForNow(podOn(uid, "n1"), err); got != want {
			t.Errorf("%s: tried again: %t, want %t", what, got, want)
		}
	}
	expect("the first", "1", denial, true)
	now = now.Add(maxDenial - time.Second)
	expect("the last", "1", denial, true)
	expect("another pod", "2", denial, true)
	now = now.Add(time.Second)
	expect("too long", "1", denial, false)
	expect("another answer", "1", apierrors.NewTooManyRequests(denial.Error(), 0), false)
	expect("denied anew", "1", denial, true)
}
