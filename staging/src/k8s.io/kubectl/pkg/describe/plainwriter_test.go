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

package describe

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	plaintexttesting "k8s.io/component-helpers/plaintext/testing"
)

// hostileSeeds is how many times each object is poisoned, each time in other fields.
const hostileSeeds = 40

// TestDescribeHostile describes objects that want to take the terminal over.
func TestDescribeHostile(t *testing.T) {
	describe := func(what string, seed uint64, text string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !strings.Contains(text, plaintexttesting.Forged) {
			t.Errorf("%s, seed %d: nothing was poisoned", what, seed)
		}
		plaintexttesting.Check(t, fmt.Sprintf("%s, seed %d", what, seed), text)
	}
	for seed := range uint64(hostileSeeds) {
		for name, story := range stories() {
			request := story.EvictionRequest.DeepCopy()
			request.Annotations = map[string]string{"example.com/a": "b"}
			events := requestEvents(story.now, request).(*corev1.EventList)
			plaintexttesting.Poison(seed, request)
			plaintexttesting.Poison(seed, events)
			text, err := describeEvictionRequest(story.now, request, nil, events)
			describe("EvictionRequest "+name, seed, text, err)
		}
		for name, work := range works() {
			nm := work.NodeMaintenance.DeepCopy()
			nm.Labels = map[string]string{"a": "b"}
			events := maintenanceEvents(work.now, nm.Name).(*corev1.EventList)
			plaintexttesting.Poison(seed, nm)
			plaintexttesting.Poison(seed, events)
			text, err := describeNodeMaintenance(work.now, nm, events)
			describe("NodeMaintenance "+name, seed, text, err)
		}
		text, err := describeAdditions(seed)
		describe("what is added to others", seed, text, err)
	}
}

// describeAdditions prints what pods, nodes and Deployments are described with besides
// what upstream prints.
func describeAdditions(seed uint64) (string, error) {
	hostile := plaintexttesting.Text
	interceptors := []corev1.EvictionInterceptor{{Name: hostile}}
	status := &corev1.MaintenanceStatus{DrainMessage: "Draining", DrainTargets: []corev1.DrainPlanEntry{{PodType: corev1.PodTypeDefault}}}
	conditions := []appsv1.DeploymentCondition{{Type: deploymentEvictionInProgress, Status: corev1.ConditionTrue, Message: hostile}}
	plaintexttesting.Poison(seed, status)
	return tabbedString(func(out io.Writer) error {
		w := NewPrefixWriter(out)
		printEvictionInterceptors(w, "Eviction Interceptors", interceptors)
		printMaintenanceStatus(w, status)
		printDeploymentEviction(w, conditions)
		return nil
	})
}

// TestDescribeKeepsEvents changes nothing in what it was given.
func TestDescribeKeepsEvents(t *testing.T) {
	events := requestEvents(time.Now(), &coordinationv1alpha1.EvictionRequest{}).(*corev1.EventList)
	events.Items[0].Message = "a\nb"
	if _, err := describeEvictionRequest(time.Now(), newStory(0).EvictionRequest, nil, events); err != nil {
		t.Fatal(err)
	}
	if got := events.Items[0].Message; got != "a\nb" {
		t.Errorf("the message became %q", got)
	}
}
