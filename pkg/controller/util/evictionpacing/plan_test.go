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

package evictionpacing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMembersThatHold verifies who does not wait for pods that only cordoned nodes can run: those that are on these nodes,
// once for each of the pods, and no more of them leave at a time than otherwise.
func TestMembersThatHold(t *testing.T) {
	member := func(name string, order int, changes ...func(*Member)) *Member {
		m := &Member{Name: name, Order: order, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		for _, change := range changes {
			change(m)
		}
		return m
	}
	on := func(node string) func(*Member) { return func(m *Member) { m.Pod.Spec.NodeName = node } }
	only := func(nodes ...string) func(*Member) { return func(m *Member) { m.Only = nodes } }
	asked := func(m *Member) { m.Stage = Asked }
	released := func(m *Member) { m.Stage = Released }
	available := func(m *Member) { m.Available = true }
	replaced := func(m *Member) { m.Replaced = true }
	forBroken := func(m *Member) { m.WasBroken = true }
	for name, test := range map[string]struct {
		limit   int
		members []*Member
		// leave are the pods that leave, with those for which they do not wait.
		leave map[string]string
		waits []string
	}{
		"its pod": {limit: 1, members: []*Member{member("c", 3, only("n"), replaced), member("b", 2, on("n"), asked, available), member("a", 1, on("n"), asked, available)},
			leave: map[string]string{"b": "c"}, waits: []string{"a"}},
		"one of its nodes": {limit: 1, members: []*Member{member("c", 3, only("m", "n"), replaced), member("b", 2, on("n"), asked, available)},
			leave: map[string]string{}, waits: []string{"b"}},
		"another node": {limit: 1, members: []*Member{member("c", 3, only("m"), replaced), member("b", 2, on("n"), asked, available)},
			leave: map[string]string{}, waits: []string{"b"}},
		"not bound": {limit: 1, members: []*Member{member("c", 3, only(""), replaced), member("b", 2, asked, available)},
			leave: map[string]string{}, waits: []string{"b"}},
		"the limit permits it anyway": {limit: 2, members: []*Member{member("c", 3, only("n"), replaced), member("b", 2, on("n"), asked, available)},
			leave: map[string]string{"b": ""}},
		"two of them": {limit: 1, members: []*Member{member("d", 4, only("n"), replaced), member("c", 3, only("n"), replaced), member("b", 2, on("n"), asked, available), member("a", 1, on("n"), asked, available)},
			leave: map[string]string{"b": "d c"}, waits: []string{"a"}},
		"one that counts for nobody": {limit: 1, members: []*Member{member("c", 3, only("n"), forBroken), member("b", 2, on("n"), asked, available), member("a", 1, on("n"), asked, available)},
			leave: map[string]string{"b": ""}, waits: []string{"a"}},
		"an unavailable pod of its node": {limit: 1, members: []*Member{member("c", 3, only("n"), replaced), member("b", 2, on("n"), asked)},
			leave: map[string]string{"b": "c"}},
		"an unavailable pod, and one that is leaving": {limit: 1, members: []*Member{member("d", 4, on("n"), released), member("c", 3, only("n")), member("b", 2, on("n"), asked)},
			leave: map[string]string{}, waits: []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := PlanEvictions(Limit{Pods: test.limit}, test.members, 0)
			leave := map[string]string{}
			for _, m := range plan.Next {
				leave[m.Name] = strings.Join(m.NotAwaited, " ")
			}
			var waits []string
			for _, m := range plan.Waiting {
				waits = append(waits, m.Name)
			}
			if diff := cmp.Diff(test.leave, leave); diff != "" {
				t.Errorf("the pods that leave, and do not wait for (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.waits, waits); diff != "" {
				t.Errorf("the pods that wait (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNobodyWaitsForWhoHolds verifies that a message names only pods for which a pod waits.
func TestNobodyWaitsForWhoHolds(t *testing.T) {
	pod := func(name, node string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{NodeName: node}}
	}
	plan := PlanEvictions(Limit{Pods: 1}, []*Member{
		{Name: "d", Order: 4, Pod: pod("d", "n"), Stage: Released, Available: true},
		{Name: "c", Order: 3, Pod: pod("c", ""), Only: []string{"n"}},
		{Name: "b", Order: 2, Pod: pod("b", "n"), Stage: Asked, Available: true},
	}, 0)
	if len(plan.Waiting) != 1 {
		t.Fatalf("%d pods wait, want one", len(plan.Waiting))
	}
	if got := plan.WaitingFor("StatefulSet web", 3, plan.Waiting[0], ""); !strings.HasPrefix(got, "Waiting for pod d to be evicted: ") {
		t.Errorf("got %q", got)
	}
}

// TestWhyPodsAreNotCreated verifies that a message has the answer of the API server if the pod waits for one to be created.
func TestWhyPodsAreNotCreated(t *testing.T) {
	const quota = `pods "web-1" is forbidden: exceeded quota: q`
	there := func(name string, stage Stage, available bool) *Member {
		return &Member{Name: name, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, Stage: stage, Available: available}
	}
	for name, test := range map[string]struct {
		others  []*Member
		missing int
		failure string
		want    string
	}{
		"nothing failed": {others: []*Member{{Name: "b"}}, want: "pod b to be created"},
		"a named pod":    {others: []*Member{{Name: "b"}, there("c", Stays, false)}, failure: quota, want: "pod b to be created, pod c to become available (failed: " + quota + ")"},
		"an unnamed one": {missing: 2, failure: quota, want: "a pod to be created, a pod to be created (failed: " + quota + ")"},
		"not among those that are named": {others: []*Member{there("b", Stays, false), there("c", Stays, false), there("d", Stays, false), {Name: "e"}}, failure: quota,
			want: "pod b to become available, pod c to become available, pod d to become available, 1 more (failed: " + quota + ")"},
		"no pod is missing":       {others: []*Member{there("b", Released, true)}, failure: quota, want: "pod b to be evicted"},
		"one that does not count": {others: []*Member{there("b", Released, true), {Name: "c", Predecessors: Predecessors{WasBroken: true}}}, failure: quota, want: "pod b to be evicted"},
		"a long one":              {missing: 1, failure: strings.Repeat("x", 301), want: "a pod to be created (failed: " + strings.Repeat("x", 297) + "...)"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := PlanEvictions(Limit{Pods: 1}, append([]*Member{there("a", Asked, true)}, test.others...), test.missing)
			if len(plan.Waiting) != 1 {
				t.Fatalf("%d pods wait, want one", len(plan.Waiting))
			}
			want := "Waiting for " + test.want + ": at most 1 of the 3 pods of StatefulSet web may be unavailable at a time."
			if got := plan.WaitingFor("StatefulSet web", 3, plan.Waiting[0], test.failure); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}
