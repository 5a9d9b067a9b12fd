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

package system

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

// TestAwaitEndsWithComponent verifies that await fails immediately if a component has ended.
func TestAwaitEndsWithComponent(t *testing.T) { testAwaitEndsWithComponent(ktesting.Init(t)) }
func testAwaitEndsWithComponent(tCtx ktesting.TContext) {
	checks := 0
	ended := func() error {
		if checks == 0 {
			return nil
		}
		return errors.New("kube-apiserver has ended by itself")
	}
	var failure error
	start := time.Now()
	func() {
		tCtx, finalize := tCtx.WithValue(endedKey{}, ended).WithError(&failure)
		defer finalize()
		await(tCtx, "a state that is never reached", func(tCtx ktesting.TContext) {
			checks++
			tCtx.Fatal("connection refused")
		})
	}()
	if failure == nil || !strings.Contains(failure.Error(), "kube-apiserver has ended by itself") {
		tCtx.Errorf("await: %v, want the component that has ended", failure)
	}
	if took := time.Since(start); checks != 1 || took >= pollTimeout {
		tCtx.Errorf("%d checks in %s, want one", checks, took)
	}
}
