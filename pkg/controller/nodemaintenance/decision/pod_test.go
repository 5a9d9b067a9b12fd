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

package decision

import (
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/utils/ptr"
)

// Since when a node is drained is not what other clients have written.
func TestDrainedSince(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		reason string
		since  time.Time
		known  bool
	}{
		"own":               {status.ReasonPodsLeft, now.Add(-time.Hour), true},
		"of another client": {"FirmwareUpgrade", now.Add(-time.Hour), false},
		"in the future":     {status.ReasonPodsLeft, now.Add(time.Hour), false},
	} {
		node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{
			{Type: v1.NodeDrainInProgress, Status: v1.ConditionTrue, Reason: test.reason, LastTransitionTime: metav1.NewTime(test.since)},
		}}}
		if got := drainedSince(node, now); (got != nil) != test.known || got != nil && !got.Time.Equal(test.since) {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if got := drainedSince(nil, now); got != nil {
		t.Errorf("without a node: got %v", got)
	}
}

// An interceptor that nobody runs is a blocker that says so. A heartbeat shows that another process runs it.
func TestAbsentInterceptor(t *testing.T) {
	absent := func(string) (string, bool) { return "its gate is off", true }
	silent := maintenance.Blocker{Cause: maintenance.BlockerInterceptor, Name: coordinationv1alpha1.EvictionInterceptorDaemonSet}
	reporting := silent
	reporting.Heartbeat = ptr.To(metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)))
	p := &Pod{Blocker: silent}
	if p.explain(absent); p.Blocker.Cause != maintenance.BlockerInterceptorUnresponsive || p.Blocker.Message != "its gate is off" {
		t.Errorf("an interceptor without a heartbeat: %+v", p.Blocker)
	}
	p = &Pod{Blocker: reporting}
	if p.explain(absent); p.Blocker.Cause != maintenance.BlockerInterceptor || p.Blocker.Message != "" {
		t.Errorf("an interceptor with a heartbeat: %+v", p.Blocker)
	}
}
