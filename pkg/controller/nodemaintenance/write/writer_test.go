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
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/clock"
)

// The patch that removes the last condition of this controller keeps those of the kubelet.
func TestNodeStatusPatchLeavesOtherConditions(t *testing.T) {
	node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{
		{Type: v1.NodeReady, Status: v1.ConditionTrue}, {Type: v1.NodeDrained, Status: v1.ConditionTrue},
	}}}
	patch, err := nodeStatusPatch(node, nil, nil)
	if err != nil || strings.Contains(string(patch), `"conditions":null`) || !strings.Contains(string(patch), `{"$patch":"delete","type":"`+string(v1.NodeDrained)+`"}`) {
		t.Errorf("patch %s, %v", patch, err)
	}
}

func TestNodeStatusPatchHasPreconditions(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "7"}}
	patch, err := nodeStatusPatch(node, &v1.MaintenanceStatus{}, nil)
	if want := `"metadata":{"resourceVersion":"7","uid":"u"}`; err != nil || !strings.Contains(string(patch), want) {
		t.Errorf("patch %s, %v", patch, err)
	}
}

// TestStatusIsUndone: what another client has changed is what differs from the last write, unless that was to another
// node of this name.
func TestStatusIsUndone(t *testing.T) {
	written := &v1.MaintenanceStatus{DrainMessage: "written"}
	node := func(uid types.UID, status *v1.MaintenanceStatus) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: uid}, Status: v1.NodeStatus{MaintenanceStatus: status}}
	}
	w := &Writer{}
	if w.IsStatusUndone(node("a", nil)) {
		t.Error("undone before anything was written")
	}
	w.ownStatuses.Store("n", ownStatus{"a", written})
	for name, test := range map[string]struct {
		node *v1.Node
		want bool
	}{
		"as written":   {node("a", written.DeepCopy()), false},
		"changed":      {node("a", &v1.MaintenanceStatus{DrainMessage: "changed"}), true},
		"removed":      {node("a", nil), true},
		"another node": {node("b", nil), false},
	} {
		if got := w.IsStatusUndone(test.node); got != test.want {
			t.Errorf("%s: undone %t", name, got)
		}
	}
}

// A cache without a version counts as up to date: otherwise, syncs would wait forever.
func TestCacheWithoutVersion(t *testing.T) {
	w := &Writer{requests: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	if version := w.requests.LastStoreSyncResourceVersion(); version != "" {
		t.Fatalf("has version %q", version)
	}
	if !w.hasRequestsOf("5") {
		t.Error("waits")
	}
}

// A webhook that does not answer blocks a worker only until the timeout.
func TestWritesOfRequestsEnd(t *testing.T) {
	noAnswer := errors.New("no answer")
	var deadlines []time.Time
	client, err := kubernetes.NewForConfig(&restclient.Config{Host: "https://127.0.0.1:1", Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		if deadline, ok := request.Context().Deadline(); ok {
			deadlines = append(deadlines, deadline)
		}
		return nil, noAnswer
	})})
	if err != nil {
		t.Fatal(err)
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	w, err := New(Config{Client: client, RequestClient: client, Nodes: store, Pods: store, Requests: store, Maintenances: store, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"}
	escalated := &v1.Pod{ObjectMeta: meta, Status: v1.PodStatus{Conditions: []v1.PodCondition{{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: maintenance.PodReasonDeletionByNodeMaintenance,
	}}}}
	escalate := func(pod *v1.Pod, action v1.MaintenanceEscalation) func(context.Context) error {
		return func(ctx context.Context) error {
			return w.Escalate(ctx, pod, &coordinationv1alpha1.EvictionRequest{ObjectMeta: meta}, action, "", func(context.Context) error { return nil })
		}
	}
	for name, test := range map[string]struct {
		write   func(context.Context) error
		timeout time.Duration
	}{
		"request": {func(ctx context.Context) error { return w.Request(ctx, &v1.Pod{ObjectMeta: meta}) }, RequestTimeout},
		"withdrawal": {func(ctx context.Context) error {
			return w.Withdraw(ctx, &v1.Pod{ObjectMeta: meta}, &coordinationv1alpha1.EvictionRequest{ObjectMeta: meta})
		}, RequestTimeout},
		"passing over interceptors": {escalate(escalated, v1.MaintenanceEscalationSkipInterceptors), RequestTimeout},
		"mark":                      {escalate(&v1.Pod{ObjectMeta: meta}, v1.MaintenanceEscalationIgnoreBudgets), RequestTimeout},
		// Webhooks see it, which may take half a minute.
		"deletion": {escalate(escalated, v1.MaintenanceEscalationIgnoreBudgets), 35 * time.Second},
		"removal":  {escalate(escalated, v1.MaintenanceEscalationForceDelete), 35 * time.Second},
	} {
		deadlines = nil
		if err := test.write(t.Context()); !errors.Is(err, noAnswer) {
			t.Errorf("%s: error %v", name, err)
		}
		left := time.Duration(0)
		if len(deadlines) == 1 {
			left = time.Until(deadlines[0])
		}
		if left > test.timeout || left < test.timeout-5*time.Second+time.Millisecond {
			t.Errorf("%s: deadlines %v", name, deadlines)
		}
	}
}

func TestSeenWritesAreForgotten(t *testing.T) {
	u, seen := newUnseenWrites(), false
	pods := []*v1.Pod{
		{ObjectMeta: metav1.ObjectMeta{UID: "a"}, Spec: v1.PodSpec{NodeName: "n"}}, {ObjectMeta: metav1.ObjectMeta{UID: "b"}, Spec: v1.PodSpec{NodeName: "n"}},
	}
	u.wrote(pods[0], func() bool { return seen })
	u.wrote(pods[1], func() bool { return false })
	if got := u.of("n"); !got.Equal(sets.New(pods[0].UID, pods[1].UID)) {
		t.Errorf("unseen: %v", got)
	}
	seen = true
	if got := u.of("n"); !got.Equal(sets.New(pods[1].UID)) || len(u.nodes["n"]) != 1 {
		t.Errorf("unseen: %v, stored %v", got, u.nodes)
	}
}
