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

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/steps"
)

// TestFailures verifies that a step that fails ends what it is part of, in goroutines and waits as well.
func TestFailures(t *testing.T) {
	broken := errors.New("broken")
	fail := func() { steps.Check(broken, "step ", 1) }
	for name, tc := range map[string]struct {
		do   func()
		want string
	}{
		"objects": {func() {
			list := func(context.Context, metav1.ListOptions) (*v1.PodList, error) {
				return &v1.PodList{Items: make([]v1.Pod, 2)}, nil
			}
			awaitAll(t.Context(), time.Millisecond, "pods to be ready", list, func(*v1.Pod) bool { return false })
		}, "waiting for 2 of 2 pods to be ready: context deadline exceeded"},
		"in a wait": {func() {
			await(t.Context(), "it", time.Millisecond, time.Minute, func(context.Context) bool { fail(); return true })
		}, "waiting for it: step 1: broken"},
		"in a goroutine": {func() { inParallel(t.Context(), 2, 5, func(context.Context, int) { fail() }) }, "step 1: broken"},
		"beside another": {func() {
			atOnce(t.Context(), func(context.Context) { fail() }, func(ctx context.Context) { <-ctx.Done() })
		}, "step 1: broken"},
		"what lasts": {func() {
			await(t.Context(), "it", time.Millisecond, time.Millisecond, func(context.Context) bool { return false })
		}, "waiting for it: context deadline exceeded"},
		"what may last": {func() {
			awaitOr(t.Context(), time.Millisecond, time.Millisecond, func(context.Context) bool { return false })
		}, ""},
		"what may, broken": {func() {
			awaitOr(t.Context(), time.Millisecond, time.Minute, func(context.Context) bool { fail(); return true })
		}, "step 1: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			err := steps.Attempt(tc.do)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestAwaitOrEndsWithContext verifies that only the timeout is no failure.
func TestAwaitOrEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := steps.Attempt(func() { awaitOr(ctx, time.Hour, time.Hour, func(context.Context) bool { return false }) }); !errors.Is(err, context.Canceled) {
		t.Errorf("awaitOr = %v, want %v", err, context.Canceled)
	}
}
