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
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	podUID   = "0f8fad5b-d9cb-469f-a165-70867728950e"
	otherUID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
)

// reasons returns the causes of a rejection: each invalid field with its value and the error.
func reasons(err error) []string {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
		return []string{fmt.Sprint(err)}
	}
	var lines []string
	for _, cause := range status.ErrStatus.Details.Causes {
		lines = append(lines, cause.Field+": "+cause.Message)
	}
	return lines
}

func expectReasons(t *testing.T, want []string, err error) {
	t.Helper()
	if diff := cmp.Diff(want, reasons(err)); diff != "" {
		t.Errorf("reasons of the rejection (-want +got):\n%s", diff)
	}
}

// numbered returns n names like "1.example.com".
func numbered(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%d.example.com", i+1))
	}
	return names
}

var rejectedRequests = []struct {
	name   string
	change func(*coordinationv1alpha1.EvictionRequest)
	want   []string
}{
	{
		name:   "name is not the UID",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.Name = "pod" },
		want:   []string{`metadata.name: Invalid value: "pod": must be the UID of the target pod, spec.target.pod.uid: "` + podUID + `"`},
	},
	{
		name:   "name is the UID of another pod",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.Name = otherUID },
		want:   []string{`metadata.name: Invalid value: "` + otherUID + `": must be the UID of the target pod, spec.target.pod.uid: "` + podUID + `"`},
	},
	{
		name:   "UID is not in lower case",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Target.Pod.UID = strings.ToUpper(podUID) },
		want: []string{
			`metadata.name: Invalid value: "` + podUID + `": must be the UID of the target pod, spec.target.pod.uid: "` + strings.ToUpper(podUID) + `"`,
			`spec.target.pod.uid: Invalid value: "` + strings.ToUpper(podUID) + `": must be a lowercase UUID in 8-4-4-4-12 format`,
		},
	},
	{
		name:   "no target",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Target.Pod = nil },
		want:   []string{"spec.target: Invalid value: \"\": must specify one of: `pod`"},
	},
	{
		name:   "no name of the pod",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Target.Pod.Name = "" },
		want:   []string{"spec.target.pod.name: Required value"},
	},
	{
		name:   "no requester",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Requesters = nil },
		want:   []string{"spec.requesters: Required value: must have at least one requester: add the name of the client that requests the eviction"},
	},
	{
		name:   "requester without a domain",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Requesters[0].Name = "drainer" },
		want:   []string{`spec.requesters[0].name: Invalid value: "drainer": should be a domain with at least two segments separated by dots`},
	},
	{
		name: "the same requester twice",
		change: func(r *coordinationv1alpha1.EvictionRequest) {
			r.Spec.Requesters = append(r.Spec.Requesters, r.Spec.Requesters[0])
		},
		want: []string{`spec.requesters[1]: Duplicate value: {"name":"drainer.example.com"}`},
	},
	{
		name:   "deadline too short",
		change: withDeadline(119),
		want:   []string{"spec.heartbeatDeadlineSeconds: Invalid value: 119: must be greater than or equal to 120"},
	},
	{
		name:   "deadline too long",
		change: withDeadline(21601),
		want:   []string{"spec.heartbeatDeadlineSeconds: Invalid value: 21601: must be less than or equal to 21600"},
	},
}

func testRejectedRequests(t *testing.T, c *cluster) {
	pod := newPod("pod")
	pod.UID = podUID
	for _, test := range rejectedRequests {
		t.Run(test.name, func(t *testing.T) {
			_, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Create(t.Context(), newRequest(pod, test.change), metav1.CreateOptions{})
			expectReasons(t, test.want, err)
		})
	}

	t.Run("generateName", func(t *testing.T) {
		_, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Create(t.Context(), newRequest(pod, func(r *coordinationv1alpha1.EvictionRequest) {
			r.Name, r.GenerateName = "", "request-"
		}), metav1.CreateOptions{})
		// The second reason is that the generated name is not the UID.
		if got, want := reasons(err)[0], "metadata.generateName: Forbidden: is not supported: set metadata.name to the UID of the pod"; got != want {
			t.Errorf("reason of the rejection is %q, want %q", got, want)
		}
	})
}

var rejectedUpdates = []struct {
	name   string
	change func(*coordinationv1alpha1.EvictionRequest)
	want   []string
}{
	{
		name:   "target changed",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Target.Pod.Name = "other" },
		want:   []string{"spec.target: Invalid value: null: field is immutable"},
	},
	{
		name:   "UID of the target changed",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Target.Pod.UID = otherUID },
		want:   []string{"spec.target: Invalid value: null: field is immutable"},
	},
	{
		name:   "deadline changed",
		change: withDeadline(121),
		want:   []string{"spec.heartbeatDeadlineSeconds: Invalid value: 121: field is immutable, except that more than 1200 may be lowered: omit it, or keep 120"},
	},
	{
		name:   "deadline removed",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.HeartbeatDeadlineSeconds = nil },
		want:   []string{"spec.heartbeatDeadlineSeconds: Invalid value: 1200: field is immutable, except that more than 1200 may be lowered: omit it, or keep 120"},
	},
	{
		name:   "resourceVersion left out",
		change: func(r *coordinationv1alpha1.EvictionRequest) { r.ResourceVersion = "" },
		want:   []string{"metadata.resourceVersion: Invalid value: 0: must be specified for an update"},
	},
}

func testRejectedUpdates(t *testing.T, c *cluster) {
	pod := newPod("pod")
	pod.UID = podUID
	created := c.createRequest(newRequest(pod, withDeadline(120)))
	for _, test := range rejectedUpdates {
		t.Run(test.name, func(t *testing.T) {
			changed := created.DeepCopy()
			test.change(changed)
			_, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Update(t.Context(), changed, metav1.UpdateOptions{})
			expectReasons(t, test.want, err)
		})
	}
}

var rejectedPods = []struct {
	name string
	pod  *v1.Pod
	want []string
}{
	{
		name: "16 interceptors",
		pod:  newPod("pod", withInterceptors(numbered(16)...)),
		want: []string{"spec.evictionInterceptors: Too many: 16: must have at most 15 items"},
	},
	{
		name: "imperative interceptor in the spec",
		pod:  newPod("pod", withInterceptors(first, imperative)),
		want: []string{`spec.evictionInterceptors[1].name: Invalid value: "imperative-eviction.k8s.io": is reserved, because every EvictionRequest has it: remove it`},
	},
	{
		name: "reserved name",
		pod:  newPod("pod", withInterceptors("mine.k8s.io")),
		want: []string{
			`spec.evictionInterceptors[0].name: Invalid value: "mine.k8s.io": names that end in .k8s.io are reserved: use your own domain, or one of ` +
				"daemonset.apps.k8s.io, deployment.apps.k8s.io, horizontalpodautoscaler.autoscaling.k8s.io, kubelet.k8s.io, replicaset.apps.k8s.io, statefulset.apps.k8s.io",
		},
	},
	{
		name: "name without a domain",
		pod:  newPod("pod", withInterceptors("mine")),
		want: []string{`spec.evictionInterceptors[0].name: Invalid value: "mine": should be a domain with at least two segments separated by dots`},
	},
	{
		name: "the same interceptor twice",
		pod:  newPod("pod", withInterceptors(first, first)),
		want: []string{`spec.evictionInterceptors[1].name: Duplicate value: "first.example.com"`},
	},
}

func testRejectedPods(t *testing.T, c *cluster) {
	for _, test := range rejectedPods {
		t.Run(test.name, func(t *testing.T) {
			_, err := c.client.CoreV1().Pods(c.namespace).Create(t.Context(), test.pod, metav1.CreateOptions{})
			expectReasons(t, test.want, err)
		})
	}

	t.Run("interceptors changed", func(t *testing.T) {
		pod := c.createPod(newPod("changed", withInterceptors(numbered(15)...)))
		pod.Spec.EvictionInterceptors = pod.Spec.EvictionInterceptors[:14]
		_, err := c.client.CoreV1().Pods(c.namespace).Update(t.Context(), pod, metav1.UpdateOptions{})
		if !apierrors.IsInvalid(err) || !strings.HasPrefix(reasons(err)[0], "spec: Forbidden: pod updates may not change fields other than") {
			t.Errorf("removing an interceptor from a pod: %v, want Forbidden", err)
		}
	})
}

// testSecondRequest has two requesters that both create the request for one pod.
func testSecondRequest(t *testing.T, c *cluster) {
	pod := c.createPod(newPod("pod"))
	created := c.createRequest(newRequest(pod))
	second := newRequest(pod)
	second.Spec.Requesters[0].Name = scaler
	_, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Create(t.Context(), second, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second request for one pod: %v, want AlreadyExists", err)
	}

	// The second one joins instead, and does not change the deadline.
	joined := c.join(pod, scaler)
	want := coordinationv1alpha1.EvictionRequestSpec{
		Target:                   created.Spec.Target,
		Requesters:               []coordinationv1alpha1.Requester{{Name: drainer}, {Name: scaler}},
		HeartbeatDeadlineSeconds: ptr.To[int32](1200),
	}
	if diff := cmp.Diff(want, joined.Spec); diff != "" {
		t.Errorf("spec after the second requester joined (-want +got):\n%s", diff)
	}
}
