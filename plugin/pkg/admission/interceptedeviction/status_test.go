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

package interceptedeviction

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
)

func TestTurnOf(t *testing.T) {
	after := func(minutes time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(minutes * time.Minute)} }
	const since, cause = "Interceptor first.example.com is active since 2026-05-04T12:00:00Z", "waiting for the interceptor first.example.com"
	for name, test := range map[string]struct {
		// report is what the active interceptor has reported; nil if none is active.
		report  *coordinationv1alpha1.InterceptorStatus
		want    string
		wantFew string
	}{
		"none is active": {
			want:    "That was requested at 2026-05-04T12:00:00Z, and the evictionrequest-controller has not activated the first of them yet: first.example.com.",
			wantFew: "waiting for the evictionrequest-controller",
		},
		"it has not reported": {
			report:  &coordinationv1alpha1.InterceptorStatus{},
			want:    since + ", and has not reported yet. Without a heartbeat until 2026-05-04T12:20:00Z it loses its turn.",
			wantFew: cause,
		},
		"a heartbeat": {
			report:  &coordinationv1alpha1.InterceptorStatus{HeartbeatTime: after(1)},
			want:    since + ", sent its last heartbeat at 2026-05-04T12:01:00Z. Without a heartbeat until 2026-05-04T12:21:00Z it loses its turn.",
			wantFew: cause,
		},
		"a message": {
			report:  &coordinationv1alpha1.InterceptorStatus{Message: "saving"},
			want:    since + `, and reports: "saving". Without a heartbeat until 2026-05-04T12:20:00Z it loses its turn.`,
			wantFew: cause,
		},
		"all of it": {
			report:  &coordinationv1alpha1.InterceptorStatus{HeartbeatTime: after(1), ExpectedFinishTime: after(5), Message: "saving"},
			want:    since + `, expects to finish at 2026-05-04T12:05:00Z, sent its last heartbeat at 2026-05-04T12:01:00Z, and reports: "saving". Without a heartbeat until 2026-05-04T12:21:00Z it loses its turn.`,
			wantFew: cause,
		},
		"it has completed": {
			report:  &coordinationv1alpha1.InterceptorStatus{HeartbeatTime: after(1), CompletionTime: after(1)},
			want:    since + ", sent its last heartbeat at 2026-05-04T12:01:00Z.",
			wantFew: cause,
		},
	} {
		t.Run(name, func(t *testing.T) {
			request := newRequest()
			request.CreationTimestamp = metav1.Time{Time: noon}
			if test.report != nil {
				processing(first, first, imperative)(request)
				test.report.Name = first
				request.Status.Interceptors[0] = *test.report
			}
			got, gotFew := turnOf(request, &eviction{pod: newPod(), interceptors: []string{first}})
			if got != test.want || gotFew != test.wantFew {
				t.Errorf("got %q, %q\nwant %q, %q", got, gotFew, test.want, test.wantFew)
			}
		})
	}
}

// A caller that gives up finds in the answer what it has requested, if anything.
func TestAnswerNamesRequest(t *testing.T) {
	type answer struct {
		Name      string
		UID       types.UID
		Requested bool
	}
	pod := newPod(interceptedBy(first))
	request := newRequest(processing(first, first, imperative))
	requested := answer{Name: request.Name, UID: request.UID, Requested: true}
	version := pod.ResourceVersion
	for name, test := range map[string]struct {
		dryRun        []string
		preconditions *metav1.Preconditions
		want          answer
	}{
		"an eviction":               {want: requested},
		"a dry run":                 {dryRun: []string{metav1.DryRunAll}},
		"for one version of a pod":  {preconditions: &metav1.Preconditions{ResourceVersion: &version}},
		"for one instance of a pod": {preconditions: &metav1.Preconditions{UID: &pod.UID}, want: requested},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, _ := world{stored: []runtime.Object{pod, request}, cached: []runtime.Object{pod, request}}.newPlugin(t)
			eviction := newEviction(test.preconditions)
			eviction.DeleteOptions.DryRun = test.dryRun
			var got answer
			got.Name, got.UID, got.Requested = evictionrequesttools.RequestedByCall(plugin.Validate(t.Context(), call("pods", "eviction", eviction), nil))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected answer (-want, +got):\n%s", diff)
			}
		})
	}
}
