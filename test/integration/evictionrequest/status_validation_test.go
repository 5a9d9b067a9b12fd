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
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// noon is the time of the valid writes before each invalid write.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// statusWrite is a raw write of the status.
type statusWrite struct {
	patchType types.PatchType
	body      string
}

func jsonPatch(body string) statusWrite  { return statusWrite{types.JSONPatchType, body} }
func mergePatch(body string) statusWrite { return statusWrite{types.MergePatchType, body} }

// applied is a Server-Side Apply of the status with force.
func applied(status string) statusWrite {
	return statusWrite{types.ApplyPatchType, `{"apiVersion":"coordination.k8s.io/v1alpha1","kind":"EvictionRequest","status":` + status + `}`}
}

func (c *cluster) writeStatus(request *coordinationv1alpha1.EvictionRequest, write statusWrite) (*coordinationv1alpha1.EvictionRequest, error) {
	options := metav1.PatchOptions{FieldManager: "hostile"}
	if write.patchType == types.ApplyPatchType {
		options.Force = ptr.To(true)
	}
	return c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).
		Patch(c.t.Context(), request.Name, write.patchType, []byte(write.body), options, "status")
}

// putStatus updates the status like the controller.
func (c *cluster) putStatus(request *coordinationv1alpha1.EvictionRequest) (*coordinationv1alpha1.EvictionRequest, error) {
	return c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).UpdateStatus(c.t.Context(), request, metav1.UpdateOptions{})
}

// stages are the valid writes that precede an invalid write. Each stage includes the previous ones.
var stages = []struct {
	name  string
	write statusWrite
}{
	{"pending", mergePatch(`{}`)},
	{"first active", mergePatch(`{"status":{
		"targetInterceptors":[{"name":"first.example.com"},{"name":"second.example.com"},{"name":"imperative-eviction.k8s.io"}],
		"interceptors":[{"name":"first.example.com"},{"name":"second.example.com"},{"name":"imperative-eviction.k8s.io"}],
		"activeInterceptors":["first.example.com"],"activationTime":"2026-03-01T12:00:00Z"}}`)},
	{"first started", applied(`{"interceptors":[{"name":"first.example.com","startTime":"2026-03-01T12:00:00Z","heartbeatTime":"2026-03-01T12:00:00Z"}]}`)},
	{"first completed", applied(`{"interceptors":[{"name":"first.example.com","startTime":"2026-03-01T12:00:00Z","heartbeatTime":"2026-03-01T12:00:00Z","completionTime":"2026-03-01T12:00:00Z"}]}`)},
	{"second active", mergePatch(`{"status":{"activeInterceptors":["second.example.com"],"processedInterceptors":["first.example.com"]}}`)},
	{"canceled", mergePatch(`{"status":{"activeInterceptors":null,"processedInterceptors":["first.example.com","second.example.com"],
		"conditions":[{"type":"Canceled","status":"True","reason":"NoRequesters","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`)},
}

// createAtStage creates a request and applies the writes up to that stage.
func (c *cluster) createAtStage(pod, stage string) *coordinationv1alpha1.EvictionRequest {
	c.t.Helper()
	request := c.createRequest(newRequest(c.createPod(newPod(pod, withInterceptors(first, second))), withDeadline(120)))
	for _, next := range stages {
		var err error
		if request, err = c.writeStatus(request, next.write); err != nil {
			c.t.Fatalf("applying stage %q: %v", next.name, err)
		}
		if next.name == stage {
			return request
		}
	}
	c.t.Fatalf("there is no stage %q", stage)
	return nil
}

var invalidWrites = []struct {
	name, stage string
	// seconds is the time of the server, in seconds after noon.
	seconds int
	write   statusWrite
	want    []string
}{
	{
		name: "targets without the imperative interceptor", stage: "pending",
		write: mergePatch(`{"status":{"targetInterceptors":[{"name":"first.example.com"}],"interceptors":[{"name":"first.example.com"}]}}`),
		want:  []string{`status.targetInterceptors[0].name: Invalid value: "first.example.com": the last interceptor must be imperative-eviction.k8s.io: append it`},
	},
	{
		name: "completed before it is active", stage: "pending",
		write: mergePatch(`{"status":{
			"targetInterceptors":[{"name":"first.example.com"},{"name":"imperative-eviction.k8s.io"}],
			"interceptors":[{"name":"first.example.com","startTime":"2026-03-01T12:00:00Z","heartbeatTime":"2026-03-01T12:00:00Z","completionTime":"2026-03-01T12:00:00Z"},{"name":"imperative-eviction.k8s.io"}]}}`),
		want: []string{"status.interceptors[0]: Forbidden: must have only a name when it is added: first.example.com reports while it is active"},
	},
	{
		name: "first one skipped", stage: "pending",
		write: mergePatch(`{"status":{
			"targetInterceptors":[{"name":"first.example.com"},{"name":"imperative-eviction.k8s.io"}],
			"interceptors":[{"name":"first.example.com"},{"name":"imperative-eviction.k8s.io"}],
			"activeInterceptors":["imperative-eviction.k8s.io"],"activationTime":"2026-03-01T12:00:00Z"}}`),
		want: []string{`status.activeInterceptors: Invalid value: ["imperative-eviction.k8s.io"]: must be "first.example.com", the next interceptor of targetInterceptors`},
	},
	{
		name: "policy while none is active", stage: "pending",
		write: mergePatch(`{"status":{"evictionRequestCancellationPolicy":"Forbid"}}`),
		want:  []string{`status.evictionRequestCancellationPolicy: Invalid value: "Forbid": must stay "" while no interceptor is active: only the active interceptor may set it`},
	},
	{
		name: "future generation", stage: "pending",
		write: mergePatch(`{"status":{"observedGeneration":2}}`),
		want:  []string{"status.observedGeneration: Invalid value: 2: must not be greater than metadata.generation, which is 1"},
	},
	{
		name: "interceptor replaced", stage: "first active",
		write: jsonPatch(`[{"op":"replace","path":"/status/targetInterceptors/1/name","value":"other.example.com"}]`),
		want: []string{`status.targetInterceptors: Invalid value: ["first.example.com","other.example.com","imperative-eviction.k8s.io"]: ` +
			`is immutable once set: keep ["first.example.com" "second.example.com" "imperative-eviction.k8s.io"]`},
	},
	{
		name: "entry removed", stage: "first active",
		write: jsonPatch(`[{"op":"remove","path":"/status/interceptors/1"}]`),
		want: []string{`status.interceptors: Invalid value: ["first.example.com","imperative-eviction.k8s.io"]: entries must not be added, removed, renamed or reordered: ` +
			`keep ["first.example.com" "second.example.com" "imperative-eviction.k8s.io"]`},
	},
	{
		name: "two active", stage: "first active",
		write: jsonPatch(`[{"op":"add","path":"/status/activeInterceptors/-","value":"second.example.com"}]`),
		want:  []string{"status.activeInterceptors: Too many: 2: must have at most 1 item"},
	},
	{
		name: "next activated a second too early", stage: "first active", seconds: 109,
		write: mergePatch(`{"status":{"activeInterceptors":["second.example.com"],"processedInterceptors":["first.example.com"],"activationTime":"2026-03-01T12:01:49Z"}}`),
		want: []string{`status.activeInterceptors: Invalid value: ["second.example.com"]: first.example.com must stay active until it completes, ` +
			`or until 2026-03-01T12:01:50Z if it sends no heartbeat; the server's time is 2026-03-01T12:01:49Z`},
	},
	{
		name: "activationTime changed", stage: "first active", seconds: 100,
		write: mergePatch(`{"status":{"activationTime":"2026-03-01T12:01:40Z"}}`),
		want: []string{`status.activationTime: Invalid value: "2026-03-01T12:01:40Z": must change only when a name is added to activeInterceptors: ` +
			`keep "2026-03-01T12:00:00Z"`},
	},
	{
		name: "report of an inactive interceptor", stage: "first active",
		write: applied(`{"interceptors":[{"name":"second.example.com","startTime":"2026-03-01T12:00:00Z","heartbeatTime":"2026-03-01T12:00:00Z","completionTime":"2026-03-01T12:00:00Z"}]}`),
		want:  []string{`status.interceptors[1]: Forbidden: second.example.com must not report while it is not active; activeInterceptors is ["first.example.com"]`},
	},
	{
		name: "start in the past", stage: "first active", seconds: 11,
		write: stages[2].write,
		want: []string{
			`status.interceptors[0].startTime: Invalid value: "2026-03-01T12:00:00Z": must be within 10s of the server's time, which is 2026-03-01T12:00:11Z: set the current time, and check the clock`,
			`status.interceptors[0].heartbeatTime: Invalid value: "2026-03-01T12:00:00Z": must be within 10s of the server's time, which is 2026-03-01T12:00:11Z: set the current time, and check the clock`,
		},
	},
	{
		name: "zero start time", stage: "first active",
		write: applied(`{"interceptors":[{"name":"first.example.com","startTime":"0001-01-01T00:00:00Z","heartbeatTime":"2026-03-01T12:00:00Z"}]}`),
		want:  []string{`status.interceptors[0].startTime: Invalid value: "0001-01-01T00:00:00Z": must be within 10s of the server's time, which is 2026-03-01T12:00:00Z: set the current time, and check the clock`},
	},
	{
		name: "heartbeat after 59 seconds", stage: "first started", seconds: 59,
		write: applied(`{"interceptors":[{"name":"first.example.com","startTime":"2026-03-01T12:00:00Z","heartbeatTime":"2026-03-01T12:00:59Z"}]}`),
		want:  []string{`status.interceptors[0].heartbeatTime: Invalid value: "2026-03-01T12:00:59Z": must be at least 60 seconds after the previous heartbeat, 2026-03-01T12:00:00Z: keep that time until then`},
	},
	{
		name: "heartbeat from the future", stage: "first started", seconds: 60,
		write: jsonPatch(`[{"op":"replace","path":"/status/interceptors/0/heartbeatTime","value":"2026-03-01T12:01:11Z"}]`),
		want:  []string{`status.interceptors[0].heartbeatTime: Invalid value: "2026-03-01T12:01:11Z": must not be more than 10s after the server's time, which is 2026-03-01T12:01:00Z: check the clock`},
	},
	{
		name: "heartbeat alone, which drops the start", stage: "first started", seconds: 60,
		write: applied(`{"interceptors":[{"name":"first.example.com","heartbeatTime":"2026-03-01T12:01:00Z"}]}`),
		want:  []string{`status.interceptors[0].startTime: Invalid value: "": is immutable once set: keep "2026-03-01T12:00:00Z"`},
	},
	{
		name: "ETA in the past", stage: "first started", seconds: 2,
		write: jsonPatch(`[{"op":"add","path":"/status/interceptors/0/expectedFinishTime","value":"2026-03-01T12:00:01Z"}]`),
		want:  []string{`status.interceptors[0].expectedFinishTime: Invalid value: "2026-03-01T12:00:01Z": must not be in the past; the server's time is 2026-03-01T12:00:02Z: set a later time, or none`},
	},
	{
		name: "retries of another interceptor", stage: "first started",
		write: jsonPatch(`[{"op":"add","path":"/status/interceptors/0/retries","value":1}]`),
		want:  []string{"status.interceptors[0].retries: Invalid value: 1: must stay 0: only imperative-eviction.k8s.io counts its retries"},
	},
	{
		name: "evicted with an active interceptor", stage: "first started",
		write: mergePatch(`{"status":{"conditions":[{"type":"Evicted","status":"True","reason":"PodDeleted","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`),
		want:  []string{`status.activeInterceptors: Invalid value: ["first.example.com"]: must be empty, because the request is finished: Canceled or Evicted is True`},
	},
	{
		name: "completion removed", stage: "first completed",
		write: stages[2].write,
		want:  []string{"status.interceptors[0]: Forbidden: first.example.com must not report after it has set its completionTime: keep its entry unchanged"},
	},
	{
		name: "none activated", stage: "first completed",
		write: mergePatch(`{"status":{"activeInterceptors":null,"processedInterceptors":["first.example.com"]}}`),
		want:  []string{`status.activeInterceptors: Invalid value: null: must be "second.example.com", the next interceptor of targetInterceptors`},
	},
	{
		name: "next activated without the processed one", stage: "first completed",
		write: mergePatch(`{"status":{"activeInterceptors":["second.example.com"]}}`),
		want:  []string{`status.processedInterceptors: Invalid value: null: must be ["first.example.com"]: append only the interceptor that is removed from activeInterceptors`},
	},
	{
		name: "processed removed", stage: "second active",
		write: mergePatch(`{"status":{"processedInterceptors":null}}`),
		want:  []string{`status.processedInterceptors: Invalid value: null: must be ["first.example.com"]: append only the interceptor that is removed from activeInterceptors`},
	},
	{
		name: "report of a processed interceptor", stage: "second active",
		write: jsonPatch(`[{"op":"add","path":"/status/interceptors/0/message","value":"not really"}]`),
		want:  []string{`status.interceptors[0]: Forbidden: first.example.com must not report while it is not active; activeInterceptors is ["second.example.com"]`},
	},
	{
		name: "cancellation removed", stage: "canceled",
		write: mergePatch(`{"status":{"conditions":null}}`),
		want:  []string{"status.conditions: Forbidden: Canceled is immutable after the request is finished: delete the request and create a new one to evict the pod"},
	},
	{
		name: "evicted once canceled", stage: "canceled",
		write: jsonPatch(`[{"op":"add","path":"/status/conditions/-","value":{"type":"Evicted","status":"True","reason":"PodDeleted","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}}]`),
		want:  []string{"status.conditions: Forbidden: Evicted is immutable after the request is finished: delete the request and create a new one to evict the pod"},
	},
	{
		name: "activated once canceled", stage: "canceled",
		write: mergePatch(`{"status":{"activeInterceptors":["imperative-eviction.k8s.io"]}}`),
		want:  []string{`status.activeInterceptors: Invalid value: ["imperative-eviction.k8s.io"]: must be empty, because the request is finished: Canceled or Evicted is True`},
	},
}

// testInvalidStatusWrites tests invalid writes: none of them may change the request.
func testInvalidStatusWrites(t *testing.T, c *cluster) {
	for i, test := range invalidWrites {
		t.Run(test.name, func(t *testing.T) {
			now := testingclock.NewFakePassiveClock(noon)
			c.SetServerTime(now)
			before := c.createAtStage(fmt.Sprintf("pod-%d", i), test.stage)
			now.SetTime(noon.Add(time.Duration(test.seconds) * time.Second))
			_, err := c.writeStatus(before, test.write)
			expectReasons(t, test.want, err)
			c.expectUnchanged(before)
		})
	}

	t.Run("whole status replaced", func(t *testing.T) {
		c.SetServerTime(testingclock.NewFakePassiveClock(noon))
		before := c.createAtStage("replaced", "first active")
		forged := before.DeepCopy()
		for i := range 2 {
			entry, now := &forged.Status.Interceptors[i], metav1.NewTime(noon)
			entry.StartTime, entry.HeartbeatTime, entry.CompletionTime = &now, &now, &now
		}
		forged.Status.ActiveInterceptors = []string{imperative}
		forged.Status.ProcessedInterceptors = []string{first, second}
		_, err := c.putStatus(forged)
		expectReasons(t, []string{
			`status.activeInterceptors: Invalid value: ["imperative-eviction.k8s.io"]: must be "second.example.com", the next interceptor of targetInterceptors`,
			`status.processedInterceptors: Invalid value: ["first.example.com","second.example.com"]: must be ["first.example.com"]: append only the interceptor that is removed from activeInterceptors`,
			`status.interceptors[1]: Forbidden: second.example.com must not report while it is not active; activeInterceptors is ["first.example.com"]`,
		}, err)
		c.expectUnchanged(before)
	})
}

// expectUnchanged fails unless the request is unchanged.
func (c *cluster) expectUnchanged(before *coordinationv1alpha1.EvictionRequest) {
	c.t.Helper()
	after, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(c.t.Context(), before.Name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading the request: %v", err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		c.t.Errorf("the request was changed (-before +after):\n%s", diff)
	}
}

// validWrites are writes just within the limits.
var validWrites = []struct {
	name, stage string
	now         time.Duration
	write       statusWrite
	want        string
}{
	{
		name: "start at the limit of the clock skew", stage: "first active", now: 10*time.Second + 999*time.Millisecond,
		write: stages[2].write,
		want:  "active=first processed= first=started",
	},
	{
		name: "times with fractions of a second", stage: "first started", now: time.Minute,
		write: applied(`{"interceptors":[{"name":"first.example.com","startTime":"2026-03-01T12:00:00.987654Z","heartbeatTime":"2026-03-01T12:01:00.987654+00:00","message":"at work"}]}`),
		want:  "active=first processed= first=started",
	},
	{
		name: "start and completion in one", stage: "first active",
		write: stages[3].write,
		want:  "active=first processed= first=completed",
	},
	{
		name: "decline without a start", stage: "first active",
		write: applied(`{"interceptors":[{"name":"first.example.com","completionTime":"2026-03-01T12:00:00Z"}]}`),
		want:  "active=first processed= first=completed",
	},
	{
		name: "next activated after a timeout", stage: "first active", now: 110 * time.Second,
		write: mergePatch(`{"status":{"activeInterceptors":["second.example.com"],"processedInterceptors":["first.example.com"],"activationTime":"2026-03-01T12:01:50Z"}}`),
		want:  "active=second processed=first",
	},
	{
		name: "condition on a finished request", stage: "canceled",
		write: jsonPatch(`[{"op":"add","path":"/status/conditions/-","value":{"type":"Example","status":"True","reason":"Seen","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}}]`),
		want:  "active= processed=first,second first=completed Canceled=NoRequesters Example=Seen",
	},
}

func testValidStatusWrites(t *testing.T, c *cluster) {
	for i, test := range validWrites {
		t.Run(test.name, func(t *testing.T) {
			now := testingclock.NewFakePassiveClock(noon)
			c.SetServerTime(now)
			request := c.createAtStage(fmt.Sprintf("pod-%d", i), test.stage)
			now.SetTime(noon.Add(test.now))
			written, err := c.writeStatus(request, test.write)
			if err != nil {
				t.Fatalf("writing the status: %v", err)
			}
			if got := describe(written); got != test.want {
				t.Errorf("the request is %q, want %q", got, test.want)
			}
		})
	}

	t.Run("canceled before it was initialized", func(t *testing.T) {
		c.SetServerTime(testingclock.NewFakePassiveClock(noon))
		request := c.createAtStage("pod", "pending")
		request.Status.ObservedGeneration = 1
		request.Status.Conditions = []metav1.Condition{{Type: "Canceled", Status: metav1.ConditionTrue, Reason: "ValidationFailed", LastTransitionTime: metav1.NewTime(noon)}}
		written, err := c.putStatus(request)
		if err != nil {
			t.Fatalf("writing the status: %v", err)
		}
		if got, want := describe(written), "active= processed= Canceled=ValidationFailed"; got != want {
			t.Errorf("the request is %q, want %q", got, want)
		}
	})
}
