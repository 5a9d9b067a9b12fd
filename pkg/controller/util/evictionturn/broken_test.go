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

func TestHasBeenReady(t *testing.T) {
	tests := map[string]struct {
		pod   *v1.Pod
		ready bool
	}{
		"ready":                        {pod: podOf(600, 600, 500, v1.ConditionTrue), ready: true},
		"never reported":               {pod: podOf(29, 0, 0, "")},
		"not ready from its start":     {pod: podOf(600, 500, 500, v1.ConditionFalse)},
		"not ready soon after":         {pod: podOf(600, 500, 490, v1.ConditionFalse)},
		"ready before":                 {pod: podOf(600, 500, 489, v1.ConditionFalse), ready: true},
		"readiness is unknown":         {pod: podOf(600, 500, 30, v1.ConditionUnknown), ready: true},
		"no start":                     {pod: podOf(600, 0, 500, v1.ConditionFalse), ready: true},
		"a change before its creation": {pod: podOf(20, 20, 600, v1.ConditionFalse)},
		"a change in the future":       {pod: podOf(600, 500, -60, v1.ConditionFalse), ready: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := HasBeenReady(test.pod); got != test.ready {
				t.Errorf("was ready: %t, want %t", got, test.ready)
			}
		})
	}
}

// Since when a pod is not ready, the process has to see itself, whatever the clock of the node says.
func TestUnready(t *testing.T) {
	later := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	for name, pod := range map[string]*v1.Pod{
		"the clock is right":          podOf(600, 500, 0, v1.ConditionFalse),
		"behind":                      podOf(600, 500, 100, v1.ConditionFalse),
		"behind by more than its age": podOf(600, 500, 3600, v1.ConditionFalse),
		"readiness is unknown":        podOf(600, 500, 0, v1.ConditionUnknown),
		"no condition":                podOf(600, 500, 0, ""),
	} {
		t.Run(name, func(t *testing.T) {
			var unready Unready
			if unready.IsBroken(pod, later(0)) {
				t.Error("broken before it was seen")
			}
			unready.Saw(pod, later(0))
			unready.Saw(pod, later(20)) // Another change of it.
			if unready.IsBroken(pod, later(29)) {
				t.Error("broken after 29 seconds")
			}
			if !unready.IsBroken(pod, later(30)) {
				t.Error("not broken after 30 seconds")
			}
			again := podOf(600, 500, -25, v1.ConditionFalse)
			if unready.IsBroken(again, later(30)) {
				t.Error("broken although it was ready in between")
			}
			if unready.Saw(again, later(30)); unready.IsBroken(again, later(59)) || !unready.IsBroken(again, later(60)) {
				t.Error("does not count from when it was not ready again")
			}
			if restarted := (Unready{}); restarted.IsBroken(again, later(60)) {
				t.Error("broken after a restart")
			}
			if unready.Saw(podOf(600, 500, -70, v1.ConditionTrue), later(70)); len(unready.pods) > 0 {
				t.Errorf("a ready pod is remembered: %v", unready.pods)
			}
			unready.Saw(again, later(80))
			if unready.Forget(again.UID); len(unready.pods) > 0 {
				t.Errorf("a pod that is gone is remembered: %v", unready.pods)
			}
		})
	}
}

// A time in the future may only delay.
func TestUnreadyInTheFuture(t *testing.T) {
	var unready Unready
	pod := podOf(600, 500, -60, v1.ConditionFalse)
	unready.Saw(pod, now)
	if unready.IsBroken(pod, now.Add(89*time.Second)) || !unready.IsBroken(pod, now.Add(90*time.Second)) {
		t.Error("not broken 30 seconds after the time that the pod says")
	}
	if _, since := unready.Since(pod, now.Add(-time.Hour)); since.After(now) {
		t.Errorf("the clock was set back, and it is not ready since %v", since)
	}
}
