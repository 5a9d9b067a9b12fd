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

package evictionturn

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podOf returns a pod of that age in seconds, started so many seconds ago if that is not 0, with a
// condition Ready that changed so many seconds ago.
func podOf(age, started, changed int, ready v1.ConditionStatus) *v1.Pod {
	ago := func(seconds int) metav1.Time { return metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second)) }
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(age)}}
	if started != 0 {
		at := ago(started)
		pod.Status.StartTime = &at
	}
	if ready != "" {
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: ready, LastTransitionTime: ago(changed)}}
	}
	return pod
}

func TestBroken(t *testing.T) {
	tests := map[string]struct {
		pod           *v1.Pod
		broken, ready bool
	}{
		"ready":                        {pod: podOf(600, 600, 500, v1.ConditionTrue), ready: true},
		"never reported, young":        {pod: podOf(29, 0, 0, "")},
		"never reported, old":          {pod: podOf(30, 0, 0, ""), broken: true},
		"not ready from its start":     {pod: podOf(600, 500, 500, v1.ConditionFalse), broken: true},
		"not ready soon after":         {pod: podOf(600, 500, 490, v1.ConditionFalse), broken: true},
		"ready before":                 {pod: podOf(600, 500, 489, v1.ConditionFalse), broken: true, ready: true},
		"ready a moment ago":           {pod: podOf(600, 500, 29, v1.ConditionFalse), ready: true},
		"readiness is unknown":         {pod: podOf(600, 500, 30, v1.ConditionUnknown), broken: true, ready: true},
		"no start":                     {pod: podOf(600, 0, 500, v1.ConditionFalse), broken: true, ready: true},
		"a change before its creation": {pod: podOf(20, 20, 600, v1.ConditionFalse)},
		"a change in the future":       {pod: podOf(600, 500, -60, v1.ConditionFalse), ready: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsBroken(test.pod, now); got != test.broken {
				t.Errorf("broken: %t, want %t", got, test.broken)
			}
			if got := HasBeenReady(test.pod); got != test.ready {
				t.Errorf("was ready: %t, want %t", got, test.ready)
			}
		})
	}
}
