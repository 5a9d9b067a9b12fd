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
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/evictionrequest"
)

const (
	// requesterName asks for the evictions.
	requesterName = "drain.example.com"

	// interceptorName is served by the example interceptor, which works this long.
	interceptorName = "interceptor.example.com"
	interceptorWork = 8 * time.Second

	// patientName is an interceptor that nobody serves: its turn lasts until the
	// request is called off.
	patientName = "patient.example.com"
)

// scenario is one pod that is asked to leave, and what must come of it.
type scenario struct {
	name     string
	story    string
	expected string
	cluster  *cluster
	// requester asks for the eviction of the pod.
	requester *evictionrequest.Requester
	act       func(ctx context.Context, s *scenario, show func(string)) error

	// Known when it has been played.
	outcome string
	took    time.Duration
}

func newScenarios(c *cluster, requester *evictionrequest.Requester) []*scenario {
	scenarios := []*scenario{
		{name: "intercepted", story: "an interceptor prepares the pod, then it is evicted", expected: "Evicted", act: playIntercepted},
		{name: "protected", story: "a PodDisruptionBudget forbids it, until it is deleted", expected: "Evicted", act: playProtected},
		{name: "called-off", story: "the last requester leaves, the pod stays", expected: "Canceled", act: playCalledOff},
	}
	for _, s := range scenarios {
		s.cluster, s.requester = c, requester
	}
	return scenarios
}

func (s *scenario) play(ctx context.Context, view *view) error {
	start := time.Now()
	show := func(state string) { view.show(s, state) }
	err := s.act(ctx, s, show)
	s.took = time.Since(start)
	if err != nil {
		show("failed: " + err.Error())
	}
	return err
}

// playIntercepted must see the example interceptor at work with an ETA, then the
// imperative eviction, in that order.
func playIntercepted(ctx context.Context, s *scenario, show func(string)) error {
	pod, err := s.start(ctx, show, podManifest(s.name, interceptorName))
	if err != nil {
		return err
	}
	sawETA := false
	err = s.follow(ctx, pod, show, "the end of the request", func(request *coordinationv1alpha1.EvictionRequest) bool {
		for _, interceptor := range request.Status.Interceptors {
			sawETA = sawETA || interceptor.Name == interceptorName && interceptor.ExpectedFinishTime != nil
		}
		return finished(request)
	})
	if err != nil {
		return err
	}
	if !sawETA {
		return errors.New("the interceptor never reported an ETA")
	}
	return s.expectPod(ctx, pod, false)
}

// playProtected must see the eviction blocked by the budget, and go on without it.
func playProtected(ctx context.Context, s *scenario, show func(string)) error {
	pod, err := s.start(ctx, show, protectedManifest(s.name))
	if err != nil {
		return err
	}
	if err := s.follow(ctx, pod, show, "the budget to block the eviction", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return isTrue(request, coordinationv1alpha1.EvictionRequestConditionBlocked)
	}); err != nil {
		return err
	}
	if err := s.expectPod(ctx, pod, true); err != nil {
		return err
	}
	if err := pause(ctx, 3*time.Second); err != nil { // Time to read what blocks it.
		return err
	}
	show("$ kubectl delete pdb " + s.name)
	if err := s.cluster.run(ctx, "", "delete", "poddisruptionbudget", s.name); err != nil {
		return err
	}
	if err := s.follow(ctx, pod, show, "the end of the request", finished); err != nil {
		return err
	}
	return s.expectPod(ctx, pod, false)
}

// playCalledOff must see the pod outlive its request.
func playCalledOff(ctx context.Context, s *scenario, show func(string)) error {
	pod, err := s.start(ctx, show, podManifest(s.name, patientName))
	if err != nil {
		return err
	}
	if err := s.follow(ctx, pod, show, "the interceptor's turn", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return len(request.Status.ActiveInterceptors) > 0
	}); err != nil {
		return err
	}
	if err := pause(ctx, 3*time.Second); err != nil {
		return err
	}
	show(requesterName + " leaves")
	if err := s.requester.Withdraw(ctx, pod); err != nil {
		return err
	}
	if err := s.follow(ctx, pod, show, "the end of the request", finished); err != nil {
		return err
	}
	return s.expectPod(ctx, pod, true)
}

// start creates the pod and the request for it.
func (s *scenario) start(ctx context.Context, show func(string), manifest string) (*v1.Pod, error) {
	show("starting the pod")
	if err := s.cluster.run(ctx, manifest, "apply", "-f", "-"); err != nil {
		return nil, err
	}
	pod, err := s.cluster.readyPod(ctx, s.name)
	if err != nil {
		return nil, err
	}
	show(requesterName + " asks pod " + pod.Name + " to leave")
	_, err = s.requester.Request(ctx, pod)
	return pod, err
}

// follow shows every state of the request until it has reached what is waited for.
func (s *scenario) follow(ctx context.Context, pod *v1.Pod, show func(string), what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) error {
	return s.cluster.await(ctx, pod, what, func(request *coordinationv1alpha1.EvictionRequest) bool {
		show(describe(request))
		if finished(request) {
			s.outcome = state(request)
		}
		return reached(request)
	})
}

// expectPod compares what became of the pod, and of the request, with what must have.
func (s *scenario) expectPod(ctx context.Context, pod *v1.Pod, want bool) error {
	exists, err := s.cluster.podExists(ctx, pod)
	if err != nil {
		return fmt.Errorf("looking for pod %s: %w", pod.Name, err)
	}
	if exists != want {
		return fmt.Errorf("pod %s exists: %t, must be %t", pod.Name, exists, want)
	}
	if s.outcome != "" && s.outcome != s.expected {
		return fmt.Errorf("the request ended as %s, must be %s", s.outcome, s.expected)
	}
	return nil
}

func isTrue(request *coordinationv1alpha1.EvictionRequest, condition coordinationv1alpha1.EvictionRequestConditionType) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, string(condition))
}

func finished(request *coordinationv1alpha1.EvictionRequest) bool {
	return evictionrequest.IsFinished(request.Status.Conditions)
}

// state is the request's state in one word.
func state(request *coordinationv1alpha1.EvictionRequest) string {
	return string(evictionrequest.StateOf(request))
}

// describe is the state with what a person wants to know about it.
func describe(request *coordinationv1alpha1.EvictionRequest) string {
	for _, condition := range request.Status.Conditions {
		if condition.Status == "True" && condition.Type == state(request) {
			return fmt.Sprintf("%s: %s", condition.Type, condition.Message)
		}
	}
	active := strings.Join(request.Status.ActiveInterceptors, ",")
	for _, interceptor := range request.Status.Interceptors {
		if interceptor.Name == active && interceptor.ExpectedFinishTime != nil {
			return fmt.Sprintf("%s by %s, ETA %s", state(request), active, interceptor.ExpectedFinishTime.Format(time.TimeOnly))
		}
	}
	if active == "" {
		return state(request)
	}
	return fmt.Sprintf("%s by %s", state(request), active)
}
