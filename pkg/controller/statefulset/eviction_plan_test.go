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

package statefulset

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/controller/util/evictionpacing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"
)

func atMost(unavailable intstr.IntOrString) func(*apps.StatefulSet) {
	return func(set *apps.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &unavailable }
}

func TestEvictionStageOf(t *testing.T) {
	pod := pacedPod(0)
	now := pacingEpoch
	tests := map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		want    evictionpacing.Stage
	}{
		"no request":               {want: evictionpacing.Stays},
		"our turn":                 {request: pacedRequest(pod), want: evictionpacing.Asked},
		"not processed yet":        {request: pacedRequest(pod, func(r *coordinationv1alpha1.EvictionRequest) { r.Status = coordinationv1alpha1.EvictionRequestStatus{} }), want: evictionpacing.Stays},
		"another one comes first":  {request: pacedRequest(pod, activeIs("first.example.com")), want: evictionpacing.Stays},
		"our turn, after another":  {request: pacedRequest(pod, activeIs(ownInterceptor, "first.example.com")), want: evictionpacing.Asked},
		"passed on":                {request: pacedRequest(pod, completedAt(now)), want: evictionpacing.Released},
		"another one comes after":  {request: pacedRequest(pod, activeIs("last.example.com", "first.example.com", ownInterceptor)), want: evictionpacing.Released},
		"being evicted":            {request: pacedRequest(pod, activeIs(imperativeInterceptor)), want: evictionpacing.Released},
		"blocked by a budget":      {request: pacedRequest(pod, activeIs(imperativeInterceptor), endedAs(coordinationv1alpha1.EvictionRequestConditionBlocked, now)), want: evictionpacing.Released},
		"evicted":                  {request: pacedRequest(pod, endedAs(coordinationv1alpha1.EvictionRequestConditionEvicted, now)), want: evictionpacing.Released},
		"canceled":                 {request: pacedRequest(pod, endedAs(coordinationv1alpha1.EvictionRequestConditionCanceled, now)), want: evictionpacing.Stays},
		"passed on, then canceled": {request: pacedRequest(pod, completedAt(now), endedAs(coordinationv1alpha1.EvictionRequestConditionCanceled, now)), want: evictionpacing.Stays},
		"another one has completed": {request: pacedRequest(pod, func(r *coordinationv1alpha1.EvictionRequest) {
			r.Status.Interceptors[0].CompletionTime = r.Status.ActivationTime
		}), want: evictionpacing.Asked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := evictionStageOf(test.request); got != test.want {
				t.Errorf("got stage %d, want %d", got, test.want)
			}
		})
	}
}

func TestPlanEvictions(t *testing.T) {
	const wait, stay, gone = evictionpacing.Asked, evictionpacing.Stays, evictionpacing.Released
	type pods map[*v1.Pod]evictionpacing.Stage
	tests := map[string]struct {
		set  *apps.StatefulSet
		gate bool
		pods pods
		// replaced are the names of released pods that have left.
		replaced []string
		// brokenBefore are the names of pods that were released because they were broken.
		brokenBefore []string
		next         []string
		waiting      []string
	}{
		"no pod is asked":                           {set: pacedSet(2), pods: pods{pacedPod(0): stay, pacedPod(1): stay}},
		"the highest ordinal first":                 {set: pacedSet(3), pods: pods{pacedPod(0): wait, pacedPod(1): wait, pacedPod(2): wait}, next: []string{"web-2"}, waiting: []string{"web-1", "web-0"}},
		"beyond nine":                               {set: pacedSet(1, from(9), replicas(2)), pods: pods{pacedPod(9): wait, pacedPod(10): wait}, next: []string{"web-10"}, waiting: []string{"web-9"}},
		"one is asked":                              {set: pacedSet(3), pods: pods{pacedPod(0): wait, pacedPod(1): stay, pacedPod(2): stay}, next: []string{"web-0"}},
		"the unavailable one first":                 {set: pacedSet(3), pods: pods{pacedPod(0, unready): wait, pacedPod(1): wait, pacedPod(2): wait}, next: []string{"web-0"}, waiting: []string{"web-2", "web-1"}},
		"unavailable ones one at a time":            {set: pacedSet(3), pods: pods{pacedPod(0, unready): wait, pacedPod(1, unready): wait, pacedPod(2): wait}, next: []string{"web-1"}, waiting: []string{"web-0", "web-2"}},
		"an unavailable one beside another":         {set: pacedSet(3), pods: pods{pacedPod(0, unready): wait, pacedPod(1, unready): stay, pacedPod(2): stay}, next: []string{"web-0"}},
		"an unavailable one after one released":     {set: pacedSet(3), pods: pods{pacedPod(0, unready): wait, pacedPod(1): gone, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"another one is unavailable":                {set: pacedSet(3), pods: pods{pacedPod(0): wait, pacedPod(1, unready): stay, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"unavailable beside a replacement":          {set: pacedSet(3), replaced: []string{"web-1"}, pods: pods{pacedPod(0, unready): wait, pacedPod(1, unready): stay, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"unavailable, no replacement yet":           {set: pacedSet(3), replaced: []string{"web-1"}, pods: pods{pacedPod(0, unready): wait, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"unavailable, the replacement is available": {set: pacedSet(3), replaced: []string{"web-1"}, pods: pods{pacedPod(0, unready): wait, pacedPod(1): stay, pacedPod(2): stay}, next: []string{"web-0"}},
		"the replacement itself":                    {set: pacedSet(3), replaced: []string{"web-0"}, pods: pods{pacedPod(0, unready): wait, pacedPod(1): wait, pacedPod(2): stay}, next: []string{"web-0"}, waiting: []string{"web-1"}},
		"an available replacement":                  {set: pacedSet(3), replaced: []string{"web-0"}, pods: pods{pacedPod(0): wait, pacedPod(1, unready): stay, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"two replacements of two":                   {set: pacedSet(4, atMost(intstr.FromInt32(2))), gate: true, replaced: []string{"web-0", "web-1"}, pods: pods{pacedPod(0, unready): wait, pacedPod(1, unready): wait, pacedPod(2, unready): wait, pacedPod(3): stay}, next: []string{"web-1", "web-0"}, waiting: []string{"web-2"}},
		"another one terminates":                    {set: pacedSet(3), pods: pods{pacedPod(0): wait, pacedPod(1, terminating): stay, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"another one is released":                   {set: pacedSet(3), pods: pods{pacedPod(0): wait, pacedPod(1): gone, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"another one is missing":                    {set: pacedSet(3), pods: pods{pacedPod(0): wait, pacedPod(1): stay}, waiting: []string{"web-0"}},
		"the first one is missing":                  {set: pacedSet(3), pods: pods{pacedPod(2): wait, pacedPod(1): stay}, waiting: []string{"web-2"}},
		"another one has failed":                    {set: pacedSet(2), pods: pods{pacedPod(0): wait, pacedPod(1, inPhase(v1.PodFailed)): stay}, waiting: []string{"web-0"}},
		"ready for too short":                       {set: pacedSet(2, minReady(60)), pods: pods{pacedPod(0): wait, pacedPod(1, readySince(59*time.Second)): stay}, waiting: []string{"web-0"}},
		"ready for long enough":                     {set: pacedSet(2, minReady(60)), pods: pods{pacedPod(0): wait, pacedPod(1, readySince(60*time.Second)): stay}, next: []string{"web-0"}},
		"two at a time":                             {set: pacedSet(4, atMost(intstr.FromInt32(2))), gate: true, pods: pods{pacedPod(0): wait, pacedPod(1): wait, pacedPod(2): wait, pacedPod(3): wait}, next: []string{"web-3", "web-2"}, waiting: []string{"web-1", "web-0"}},
		"two at a time, one is unavailable":         {set: pacedSet(4, atMost(intstr.FromInt32(2))), gate: true, pods: pods{pacedPod(0, unready): stay, pacedPod(1): wait, pacedPod(2): wait, pacedPod(3): wait}, next: []string{"web-3"}, waiting: []string{"web-2", "web-1"}},
		"two at a time, an unavailable asked":       {set: pacedSet(4, atMost(intstr.FromInt32(2))), gate: true, pods: pods{pacedPod(0, unready): wait, pacedPod(1): wait, pacedPod(2): wait, pacedPod(3): stay}, next: []string{"web-0", "web-2"}, waiting: []string{"web-1"}},
		"two at a time by share":                    {set: pacedSet(4, atMost(intstr.FromString("50%"))), gate: true, pods: pods{pacedPod(0): wait, pacedPod(1): wait, pacedPod(2): wait, pacedPod(3): stay}, next: []string{"web-2", "web-1"}, waiting: []string{"web-0"}},
		"a share of less than one pod":              {set: pacedSet(2, atMost(intstr.FromString("10%"))), gate: true, pods: pods{pacedPod(0): wait, pacedPod(1): wait}, next: []string{"web-1"}, waiting: []string{"web-0"}},
		"an invalid share":                          {set: pacedSet(2, atMost(intstr.FromString("many"))), gate: true, pods: pods{pacedPod(0): wait, pacedPod(1): wait}, next: []string{"web-1"}, waiting: []string{"web-0"}},
		"two at a time, without the gate":           {set: pacedSet(2, atMost(intstr.FromInt32(2))), pods: pods{pacedPod(0): wait, pacedPod(1): wait}, next: []string{"web-1"}, waiting: []string{"web-0"}},
		"no rolling update parameters":              {set: pacedSet(2, func(s *apps.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate = nil }), gate: true, pods: pods{pacedPod(0): wait, pacedPod(1): wait}, next: []string{"web-1"}, waiting: []string{"web-0"}},
		"paused by a partition":                     {set: pacedSet(2, func(s *apps.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](2) }), pods: pods{pacedPod(0): wait, pacedPod(1): wait}, next: []string{"web-1"}, waiting: []string{"web-0"}},
		"all in parallel":                           {set: pacedSet(2, func(s *apps.StatefulSet) { s.Spec.PodManagementPolicy = apps.ParallelPodManagement }), pods: pods{pacedPod(0): wait, pacedPod(1): wait}, next: []string{"web-1"}, waiting: []string{"web-0"}},
		"beyond the replicas":                       {set: pacedSet(1), pods: pods{pacedPod(0): wait, pacedPod(1): wait, pacedPod(2): stay}, next: []string{"web-1"}, waiting: []string{"web-0"}},
		"one beyond the replicas terminates":        {set: pacedSet(1), pods: pods{pacedPod(0): wait, pacedPod(1, terminating): stay}, waiting: []string{"web-0"}},
		"scaled to none":                            {set: pacedSet(0), pods: pods{pacedPod(0): wait, pacedPod(1): wait}, next: []string{"web-1"}, waiting: []string{"web-0"}},
		"replicas by default":                       {set: pacedSet(1, func(s *apps.StatefulSet) { s.Spec.Replicas = nil }), pods: pods{pacedPod(0): wait}, next: []string{"web-0"}},
		"from another start":                        {set: pacedSet(2, from(5)), pods: pods{pacedPod(5): wait, pacedPod(6): stay}, next: []string{"web-5"}},
		"broken ones at once":                       {set: pacedSet(3), pods: pods{pacedPod(0, broken): wait, pacedPod(1, broken): wait, pacedPod(2): wait}, next: []string{"web-1", "web-0", "web-2"}},
		"broken ones beside one released":           {set: pacedSet(3), pods: pods{pacedPod(0, broken): wait, pacedPod(1): gone, pacedPod(2): wait}, next: []string{"web-0"}, waiting: []string{"web-2"}},
		"not ready since its creation":              {set: pacedSet(3), pods: pods{pacedPod(0, slow): wait, pacedPod(1, slow): stay, pacedPod(2): wait}, next: []string{"web-0", "web-2"}},
		"another one is broken":                     {set: pacedSet(3), pods: pods{pacedPod(0): wait, pacedPod(1, broken): stay, pacedPod(2): wait}, next: []string{"web-2"}, waiting: []string{"web-0"}},
		"another one was released, then broke":      {set: pacedSet(3), pods: pods{pacedPod(0): wait, pacedPod(1, broken): gone, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"another one is released as broken":         {set: pacedSet(3), brokenBefore: []string{"web-1"}, pods: pods{pacedPod(0): wait, pacedPod(1, broken): gone, pacedPod(2): stay}, next: []string{"web-0"}},
		"another one, broken, terminates":           {set: pacedSet(3), pods: pods{pacedPod(0): wait, pacedPod(1, broken, terminating): stay, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"a replacement that is slow to start":       {set: pacedSet(3), replaced: []string{"web-1"}, pods: pods{pacedPod(0): wait, pacedPod(1, slow): stay, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"such a replacement itself":                 {set: pacedSet(3), replaced: []string{"web-1"}, pods: pods{pacedPod(0): wait, pacedPod(1, slow): wait, pacedPod(2): stay}, next: []string{"web-1"}, waiting: []string{"web-0"}},
		"a replacement that has started, broken":    {set: pacedSet(3), replaced: []string{"web-1"}, pods: pods{pacedPod(0): wait, pacedPod(1, broken): stay, pacedPod(2): stay}, next: []string{"web-0"}},
		"after a broken one, not created":           {set: pacedSet(3), brokenBefore: []string{"web-1"}, pods: pods{pacedPod(0): wait, pacedPod(2): stay}, next: []string{"web-0"}},
		"after a broken one, starting":              {set: pacedSet(3), brokenBefore: []string{"web-1"}, pods: pods{pacedPod(0): wait, pacedPod(1, unready): stay, pacedPod(2): stay}, next: []string{"web-0"}},
		"after a broken one, terminating":           {set: pacedSet(3), brokenBefore: []string{"web-1"}, pods: pods{pacedPod(0): wait, pacedPod(1, terminating): gone, pacedPod(2): stay}, next: []string{"web-0"}},
		"after a broken one, available":             {set: pacedSet(3), brokenBefore: []string{"web-1"}, pods: pods{pacedPod(0): wait, pacedPod(1): wait, pacedPod(2): stay}, next: []string{"web-1"}, waiting: []string{"web-0"}},
		"after one that was not broken, and one":    {set: pacedSet(3), replaced: []string{"web-1"}, brokenBefore: []string{"web-1"}, pods: pods{pacedPod(0): wait, pacedPod(2): stay}, waiting: []string{"web-0"}},
		"from another start, one is missing":        {set: pacedSet(2, from(5)), pods: pods{pacedPod(5): wait}, waiting: []string{"web-5"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setMaxUnavailable(t, test.gate)
			var all []*v1.Pod
			stages := map[*v1.Pod]evictionpacing.Stage{}
			for pod, stage := range test.pods {
				all = append(all, pod)
				stages[pod] = stage
			}
			plan := evictionpacing.PlanEvictions(evictionLimitOf(test.set, nil, nil), evictionMembers(test.set, all, func(pod *v1.Pod) evictionpacing.Stage { return stages[pod] }, func(name string, _ types.UID) evictionpacing.Predecessors {
				return evictionpacing.Predecessors{Replaced: slices.Contains(test.replaced, name), WasBroken: slices.Contains(test.brokenBefore, name)}
			}, anywhere, unreadyIn(all...), pacingEpoch), 0)
			if diff := cmp.Diff([][]string{test.next, test.waiting}, [][]string{namesOf(plan.Next), namesOf(plan.Waiting)}); diff != "" {
				t.Errorf("pods that leave, and that wait (-want +got):\n%s", diff)
			}
		})
	}
}

func from(start int32) func(*apps.StatefulSet) {
	return func(set *apps.StatefulSet) { set.Spec.Ordinals = &apps.StatefulSetOrdinals{Start: start} }
}

func replicas(count int32) func(*apps.StatefulSet) {
	return func(set *apps.StatefulSet) { set.Spec.Replicas = &count }
}

func minReady(seconds int32) func(*apps.StatefulSet) {
	return func(set *apps.StatefulSet) { set.Spec.MinReadySeconds = seconds }
}

func setMaxUnavailable(t *testing.T, enabled bool) {
	t.Helper()
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.MaxUnavailableStatefulSet, enabled)
}

func never(string, types.UID) evictionpacing.Predecessors { return evictionpacing.Predecessors{} }

func namesOf(members []*evictionpacing.Member) []string {
	var names []string
	for _, member := range members {
		names = append(names, member.Name)
	}
	return names
}

func TestWaitingFor(t *testing.T) {
	const limit = ": at most 1 of the %d pods of StatefulSet web may be unavailable at a time."
	tests := map[string]struct {
		set    *apps.StatefulSet
		others map[*v1.Pod]evictionpacing.Stage
		want   string
	}{
		"unavailable": {set: pacedSet(2), others: map[*v1.Pod]evictionpacing.Stage{pacedPod(1, unready): evictionpacing.Stays}, want: "pod web-1 to become available"},
		"terminating": {set: pacedSet(2), others: map[*v1.Pod]evictionpacing.Stage{pacedPod(1, terminating): evictionpacing.Released}, want: "pod web-1 to terminate"},
		"released":    {set: pacedSet(2), others: map[*v1.Pod]evictionpacing.Stage{pacedPod(1): evictionpacing.Released}, want: "pod web-1 to be evicted"},
		"missing":     {set: pacedSet(2), want: "pod web-1 to be created"},
		"next":        {set: pacedSet(2), others: map[*v1.Pod]evictionpacing.Stage{pacedPod(1): evictionpacing.Asked}, want: "pod web-1 to be evicted"},
		"several, and an available one": {
			set:    pacedSet(4),
			others: map[*v1.Pod]evictionpacing.Stage{pacedPod(1): evictionpacing.Released, pacedPod(2): evictionpacing.Stays}, want: "pod web-1 to be evicted, pod web-3 to be created",
		},
		"as many as are named": {set: pacedSet(4), want: "pod web-1 to be created, pod web-2 to be created, pod web-3 to be created"},
		"too many":             {set: pacedSet(6), want: "pod web-1 to be created, pod web-2 to be created, pod web-3 to be created, 2 more"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setMaxUnavailable(t, false)
			stages := map[*v1.Pod]evictionpacing.Stage{pacedPod(0): evictionpacing.Asked}
			for pod, stage := range test.others {
				stages[pod] = stage
			}
			var pods []*v1.Pod
			for pod := range stages {
				pods = append(pods, pod)
			}
			plan := evictionpacing.PlanEvictions(evictionLimitOf(test.set, nil, nil), evictionMembers(test.set, pods, func(pod *v1.Pod) evictionpacing.Stage { return stages[pod] }, never, anywhere, unreadyIn(pods...), pacingEpoch), 0)
			if len(plan.Waiting) != 1 {
				t.Fatalf("%v wait, want one", namesOf(plan.Waiting))
			}
			if got, want := waitingFor(&plan, test.set, plan.Waiting[0], ""), "Waiting for "+test.want+fmt.Sprintf(limit, *test.set.Spec.Replicas); got != want {
				t.Errorf("got %q\nwant %q", got, want)
			}
		})
	}
}

// An unavailable pod does not wait for itself.
func TestWaitingForOthers(t *testing.T) {
	setMaxUnavailable(t, false)
	stages := map[string]evictionpacing.Stage{"web-0": evictionpacing.Asked, "web-1": evictionpacing.Released}
	pods := []*v1.Pod{pacedPod(0, unready), pacedPod(1)}
	plan := evictionpacing.PlanEvictions(evictionLimitOf(pacedSet(2), nil, nil), evictionMembers(pacedSet(2), pods, func(pod *v1.Pod) evictionpacing.Stage { return stages[pod.Name] }, never, anywhere, unreadyIn(pods...), pacingEpoch), 0)
	want := "Waiting for pod web-1 to be evicted: at most 1 of the 2 pods of StatefulSet web may be unavailable at a time."
	if got := waitingFor(&plan, pacedSet(2), plan.Waiting[0], ""); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
