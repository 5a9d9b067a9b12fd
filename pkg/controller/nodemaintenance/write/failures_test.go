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

package write

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
)

func TestIsTransient(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{webhook("n"), false},
		{apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Node").GroupKind(), "n", nil), false},
		{apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		{apierrors.NewConflict(NodeResource, "n", errors.New("changed")), true},
		{apierrors.NewAlreadyExists(NodeResource, "n"), true},
		{apierrors.NewNotFound(NodeResource, "n"), true},
		{apierrors.NewTimeoutError("slow", 1), true},
		{apierrors.NewServerTimeout(NodeResource, "patch", 1), true},
		{apierrors.NewTooManyRequests("busy", 1), true},
		{apierrors.NewServiceUnavailable("away"), true},
		{errors.New("connection refused"), true},
		{fmt.Errorf("%w: %w", webhook("n"), context.DeadlineExceeded), true},
		{fmt.Errorf("requesting: %w", webhook("n")), false},
	} {
		if got := isTransient(tc.err); got != tc.want {
			t.Errorf("%v: got %t", tc.err, got)
		}
	}
}

func TestFailures(t *testing.T) {
	f := NewFailures()
	one, two := Key{Request, "1"}, Key{Request, "2"}
	now := start.Add(500 * time.Millisecond)
	f.Failed("n", one, errors.New("away"), time.Time{}, now)
	first, _ := f.Get("n", one)
	if want := (Failure{Message: "away", Since: start, attempts: 1, retryAt: now.Add(time.Second)}); first != want || first.Blocks() {
		t.Errorf("got %+v", first)
	}
	f.Failed("n", one, webhook("n"), time.Time{}, now.Add(time.Second))
	f.Failed("n", one, errors.New("away again"), time.Time{}, now.Add(3*time.Second))
	f.Failed("n", two, errors.New("away"), time.Time{}, now)
	f.Failed("o", one, errors.New("away"), time.Time{}, now)
	third, _ := f.Get("n", one)
	if want := (Failure{Message: "away again", Since: start, attempts: 3, retryAt: now.Add(7 * time.Second), refused: true}); third != want || !third.Blocks() {
		t.Errorf("got %+v", third)
	}
	if got := f.Wait("n", one, now.Add(6*time.Second)); got != time.Second {
		t.Errorf("wait %v", got)
	}
	if got := f.Wait("n", one, now.Add(8*time.Second)); got != 0 {
		t.Errorf("wait %v", got)
	}
	f.Failed("o", two, apierrors.NewConflict(NodeResource, "o", errors.New(strings.Repeat("long\n", 1000))), time.Time{}, now)
	if conflict, _ := f.Get("o", two); conflict.Blocks() || !conflict.retryAt.Equal(now) || len(conflict.Message) > maxMessage || strings.Contains(conflict.Message, "\n") {
		t.Errorf("got %+v", conflict)
	}
	if !f.Succeeded("n", one) || f.Succeeded("n", two) {
		t.Error("succeeded does not report which failure was a blocker")
	}
	f.Failed("n", two, errors.New("away"), time.Time{}, now)
	if _, ok := f.Get("n", one); ok || f.Wait("n", one, now) != 0 {
		t.Error("the failure of a write that succeeded is kept")
	}
	f.Keep("n", sets.New(two))
	if _, ok := f.Get("n", two); !ok {
		t.Error("keep drops a failure that it should keep")
	}
	f.Keep("n", nil)
	f.Keep("o", nil)
	if len(f.nodes) > 0 {
		t.Errorf("failures are left: %v", f.nodes)
	}
}

// A write that fails for transient reasons is a blocker from the third time on.
func TestTransientFailuresBlock(t *testing.T) {
	f := NewFailures()
	for attempt := range transientFailures + 1 {
		if failed, _ := f.Get("n", Key{Request, "u"}); failed.Blocks() != (attempt >= transientFailures) {
			t.Errorf("after %d failures: %+v", attempt, failed)
		}
		f.Failed("n", Key{Request, "u"}, errors.New("no answer"), time.Time{}, start.Add(time.Duration(attempt)*time.Second))
	}
}

// TestRetries verifies that an escalation waits after a conflict, and so do a request that its drain does not want and
// what the cache does not have yet, until the cache has it, and that no write waits longer because it has failed for long.
func TestRetries(t *testing.T) {
	f, conflict := NewFailures(), apierrors.NewConflict(NodeResource, "n", errors.New("changed"))
	f.Failed("n", Key{Status, "a"}, conflict, time.Time{}, start)
	f.Failed("n", Key{Escalation, "a"}, conflict, time.Time{}, start)
	if wait := f.Wait("n", Key{Status, "a"}, start); wait != 0 {
		t.Errorf("the status waits %v", wait)
	}
	if wait := f.Wait("n", Key{Escalation, "a"}, start); wait != pace.FirstRetry {
		t.Errorf("the escalation waits %v", wait)
	}
	f.Failed("n", Key{Request, "a"}, conflict, time.Time{}, start)
	if wait := f.Wait("n", Key{Request, "a"}, start); wait != 0 {
		t.Errorf("the request waits %v", wait)
	}
	unwanted := apierrors.NewConflict(coordinationv1alpha1.Resource("evictionrequests"), "b", errors.New("kept"))
	unwanted.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: coordinationv1alpha1.EvictionNotDrainedCause}}
	f.Failed("n", Key{Request, "b"}, fmt.Errorf("requesting: %w", unwanted), time.Time{}, start)
	if wait := f.Wait("n", Key{Request, "b"}, start); wait != pace.FirstRetry {
		t.Errorf("the request that is not wanted waits %v", wait)
	}
	f.Failed("n", Key{Uncordon, "a"}, fmt.Errorf("releasing: %w", NewUnseen(MaintenanceResource, "m", errors.New("claims"))), time.Time{}, start)
	if wait := f.Wait("n", Key{Uncordon, "a"}, start); wait != pace.FirstRetry {
		t.Errorf("the release that contradicts an unknown claim waits %v", wait)
	}
	for _, earlier := range []int{10, 100} {
		if wait := pace.RetryAfter(earlier); wait != pace.MaxRetry {
			t.Errorf("after %d failures: %v", earlier, wait)
		}
	}
}
