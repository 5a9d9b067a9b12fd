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
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// The server sets the times of the moment of the update, independent of the clock of the
// controller. All other times stay unchanged.
func TestStamps(t *testing.T) {
	const a, b = "a.example.com", "imperative-eviction.k8s.io"
	after := func(seconds int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
	}
	// wrong is the time of the writer's clock.
	wrong := after(-3600)
	now := noon.Add(100*time.Second + 999*time.Millisecond)
	present := after(100)
	// status returns a status with both entries. own is the entry of the built-in interceptor.
	status := func(active string, activation *metav1.Time, own coordination.InterceptorStatus, others ...coordination.InterceptorStatus) *coordination.EvictionRequestStatus {
		status := &coordination.EvictionRequestStatus{ActivationTime: activation, Interceptors: append(append([]coordination.InterceptorStatus{}, others...), own)}
		if len(others) == 0 {
			status.Interceptors = append([]coordination.InterceptorStatus{{Name: a}}, own)
		}
		if active != "" {
			status.ActiveInterceptors = []string{active}
		}
		return status
	}
	report := func(start, heartbeat, completion *metav1.Time) coordination.InterceptorStatus {
		return coordination.InterceptorStatus{Name: b, StartTime: start, HeartbeatTime: heartbeat, CompletionTime: completion}
	}
	foreign := func(time *metav1.Time) coordination.InterceptorStatus {
		return coordination.InterceptorStatus{Name: a, StartTime: time, HeartbeatTime: time, CompletionTime: time}
	}
	none := report(nil, nil, nil)
	tests := map[string]struct {
		old, changed, want *coordination.EvictionRequestStatus
	}{
		"activation":                         {status("", nil, none), status(a, wrong, none), status(a, present, none)},
		"activation without a time":          {status("", nil, none), status(a, nil, none), status(a, present, none)},
		"next activation":                    {status(a, after(1), none), status(b, wrong, none), status(b, present, none)},
		"still active":                       {status(a, after(1), none), status(a, after(1), none), status(a, after(1), none)},
		"still active, another time":         {status(a, after(1), none), status(a, wrong, none), status(a, wrong, none)},
		"no longer active":                   {status(a, after(1), none), status("", after(1), none), status("", after(1), none)},
		"first report":                       {status(b, after(1), none), status(b, after(1), report(wrong, wrong, nil)), status(b, after(1), report(present, present, nil))},
		"completion with the first report":   {status(b, after(1), none), status(b, after(1), report(wrong, wrong, wrong)), status(b, after(1), report(present, present, present))},
		"next heartbeat":                     {status(b, after(1), report(after(9), after(40), nil)), status(b, after(1), report(after(9), wrong, nil)), status(b, after(1), report(after(9), present, nil))},
		"next heartbeat is too early":        {status(b, after(1), report(after(9), after(41), nil)), status(b, after(1), report(after(9), wrong, nil)), status(b, after(1), report(after(9), after(41), nil))},
		"final heartbeat is never too early": {status(b, after(1), report(after(9), after(99), nil)), status(b, after(1), report(after(9), wrong, wrong)), status(b, after(1), report(after(9), present, present))},
		"the server's clock was set back":    {status(b, after(1), report(after(9), after(101), nil)), status(b, after(1), report(after(9), wrong, wrong)), status(b, after(1), report(after(9), after(101), present))},
		"nothing new":                        {status(b, after(1), report(after(9), after(9), nil)), status(b, after(1), report(after(9), after(9), nil)), status(b, after(1), report(after(9), after(9), nil))},
		"set times stay wrong":               {status(b, after(1), report(after(9), after(9), after(9))), status(b, after(1), report(wrong, after(9), wrong)), status(b, after(1), report(wrong, after(9), wrong))},
		"times of other interceptors":        {status(a, after(1), none, foreign(nil)), status(a, after(1), none, foreign(wrong)), status(a, after(1), none, foreign(wrong))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old, changed := &coordination.EvictionRequest{Status: *test.old}, &coordination.EvictionRequest{Status: *test.changed.DeepCopy()}
			statusStrategyAt(now).PrepareForUpdate(context.Background(), changed, old)
			withoutProgress(changed)
			if diff := cmp.Diff(test.want, &changed.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}
