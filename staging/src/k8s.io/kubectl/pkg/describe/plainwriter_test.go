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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	plaintexttesting "k8s.io/component-helpers/plaintext/testing"
	"k8s.io/utils/ptr"
)

// hostileSeeds is the number of times each object is poisoned, each time in other fields.
const hostileSeeds = 40

// TestDescribeHostile describes objects with terminal control sequences.
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
			text, err := describeNodeMaintenance(work.now, nm, nil, events)
			describe("NodeMaintenance "+name, seed, text, err)
		}
		for name, budget := range describedBudgets() {
			budget.Annotations = map[string]string{"example.com/a": "b"}
			events := maintenanceEvents(time.Now(), budget.Name).(*corev1.EventList)
			plaintexttesting.Poison(seed, budget)
			plaintexttesting.Poison(seed, events)
			unavailable := &corev1.Node{Status: corev1.NodeStatus{MaintenanceStatus: &corev1.MaintenanceStatus{Admissions: []corev1.MaintenanceAdmission{{}}}}}
			plaintexttesting.Poison(seed, unavailable)
			text, err := describeNodeMaintenanceBudget(time.Now(), budget, []*corev1.Node{unavailable}, events)
			describe("NodeMaintenanceBudget "+name, seed, text, err)
		}
		text, err := describeAdditions(seed)
		describe("additions to other kinds", seed, text, err)
	}
}

// describeAdditions prints what we add to the descriptions of pods, nodes and Deployments.
func describeAdditions(seed uint64) (string, error) {
	hostile := plaintexttesting.Text
	interceptors := []corev1.EvictionInterceptor{{Name: hostile}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{MaintenanceStatus: &corev1.MaintenanceStatus{
		DrainMessage: "Draining", DrainTargets: []corev1.DrainPlanEntry{{PodType: corev1.PodTypeDefault}},
		Admissions: []corev1.MaintenanceAdmission{{MaintenanceName: "kernel"}}, EmptiedTime: &metav1.Time{},
	}}}
	leases := &LeaseDescriber{fake.NewClientset(attachment(hostile, "one", nil))}
	conditions := []appsv1.DeploymentCondition{{Type: deploymentEvictionInProgress, Status: corev1.ConditionTrue, Message: hostile}}
	plaintexttesting.Poison(seed, node.Status.MaintenanceStatus)
	return tabbedString(func(out io.Writer) error {
		w := NewPrefixWriter(out)
		printEvictionInterceptors(w, "Eviction Interceptors", interceptors)
		printEvictionResponders(w, "Eviction Responders", []corev1.EvictionResponder{{Name: hostile}})
		printMaintenanceStatus(w, leases, node)
		printDeploymentEviction(w, conditions)
		return nil
	})
}

// TestDescribeHostileMessages describes nodes and Deployments in which one of our texts is hostile.
// The writer that upstream uses for them does not escape C1 control characters.
func TestDescribeHostileMessages(t *testing.T) {
	const hostile = plaintexttesting.Text
	deployment := func(message string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"},
			Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
				{Type: deploymentEvictionInProgress, Status: corev1.ConditionTrue, Reason: "Surging", Message: message},
			}},
		}
	}
	node := func(status corev1.MaintenanceStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{MaintenanceStatus: &status}}
	}
	targets := func(target corev1.DrainPlanEntry) corev1.MaintenanceStatus {
		return corev1.MaintenanceStatus{DrainTargets: []corev1.DrainPlanEntry{target}}
	}
	for name, object := range map[string]runtime.Object{
		"Eviction In Progress:": deployment(hostile),
		"Drain:":                node(corev1.MaintenanceStatus{DrainMessage: hostile}),
		"Admissions:":           node(corev1.MaintenanceStatus{Admissions: []corev1.MaintenanceAdmission{{MaintenanceName: hostile}}}),
		"Targets:":              node(targets(corev1.DrainPlanEntry{PodType: corev1.PodType(hostile)})),
	} {
		client := fake.NewClientset(object)
		var describer ResourceDescriber = &NodeDescriber{client}
		namespace := ""
		if _, ok := object.(*appsv1.Deployment); ok {
			describer, namespace = &DeploymentDescriber{client: client}, "default"
		}
		text, err := describer.Describe(namespace, "one", DescriberSettings{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plaintexttesting.Check(t, name, text)
		if !strings.Contains(text, `\u009b31m`) {
			t.Errorf("%s: the hostile text is not printed, escaped: %q", name, text)
		}
	}
}

// TestDescribeKeepsEvents verifies that describing a request does not change its events.
func TestDescribeKeepsEvents(t *testing.T) {
	events := requestEvents(time.Now(), &coordinationv1alpha1.EvictionRequest{}).(*corev1.EventList)
	events.Items[0].Message = "a\nb"
	if _, err := describeEvictionRequest(time.Now(), newStory(0).EvictionRequest, nil, events); err != nil {
		t.Fatal(err)
	}
	if got := events.Items[0].Message; got != "a\nb" {
		t.Errorf("the message was changed to %q", got)
	}
}
