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
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/hack/controlplane"
	"k8s.io/utils/ptr"
)

// kindLabel says how a pod is treated; the pods of a kind share a budget, if any.
const kindLabel = "kind"

const (
	plain       = "plain"
	slow        = "slow"        // Terminates for longer than a component lives.
	budgeted    = "budgeted"    // Under a budget that allows every eviction.
	intercepted = "intercepted" // Has an interceptor.
	protected   = "protected"   // Under a budget that forbids every eviction.
)

var kinds = []string{plain, slow, budgeted, intercepted, protected}

// createPods creates pods of all kinds in turn, and the budgets.
func (t *chaosTest) createPods(ctx context.Context) error {
	if err := t.Create(ctx); err != nil {
		return err
	}
	for i := range podsPerKind {
		for _, kind := range kinds {
			pod, err := t.CreateReadyPod(ctx, newPod(fmt.Sprintf("%s-%d", kind, i), kind))
			if err != nil {
				return err
			}
			t.pods = append(t.pods, pod)
		}
	}
	for kind, minAvailable := range map[string]int{budgeted: 0, protected: podsPerKind} {
		if err := t.createCountedBudget(ctx, kind, minAvailable); err != nil {
			return err
		}
	}
	t.say("%d pods are ready, %d of them protected", len(t.pods), podsPerKind)
	return nil
}

// newPod returns a pod with a grace period, in which it could be evicted again.
func newPod(name, kind string) *v1.Pod {
	pod := controlplane.NewPod(name)
	pod.Labels = map[string]string{kindLabel: kind}
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600)
	if kind == intercepted {
		pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: controlplane.Interceptor}}
	}
	return pod
}

// createCountedBudget creates a budget for the pods of a kind and waits until the
// disruption controller has counted them.
func (t *chaosTest) createCountedBudget(ctx context.Context, kind string, minAvailable int) error {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: kind},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt(minAvailable)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{kindLabel: kind}},
		},
	}
	if _, err := t.Client.PolicyV1().PodDisruptionBudgets(t.Name).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating budget %s: %w", kind, err)
	}
	return controlplane.Poll(ctx, "the status of budget "+kind, func(ctx context.Context) (bool, error) {
		current, err := t.Client.PolicyV1().PodDisruptionBudgets(t.Name).Get(ctx, kind, metav1.GetOptions{})
		return err == nil && current.Status.CurrentHealthy == podsPerKind, err
	})
}

// killWhileEvicting kills the components in random order, at random moments, and
// requests some evictions before each kill.
func (t *chaosTest) killWhileEvicting(ctx context.Context) error {
	kills := t.killOrder()
	requested := 0
	for i, victim := range kills {
		upTo := len(t.pods) * (i + 1) / len(kills)
		for _, pod := range t.pods[requested:upTo] {
			if err := t.requestEventually(ctx, pod); err != nil {
				return err
			}
		}
		requested = upTo
		lifetime := time.Duration(t.random.Int64N(int64(maxLifetime)))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lifetime):
		}
		if err := victim.kill(); err != nil {
			return err
		}
		if err := victim.start(ctx, t.release); err != nil {
			return err
		}
		t.say("kill %d of %d: %s after %d ms, %d evictions requested", i+1, len(kills), victim.name, lifetime.Milliseconds(), requested)
	}
	return nil
}

// component is what is killed and started again.
type component struct {
	name  string
	kill  func() error
	start func(context.Context, controlplane.Release) error
}

func (t *chaosTest) killOrder() []component {
	var kills []component
	for range killsPerComponent {
		kills = append(kills,
			component{"kube-apiserver", t.plane.KillAPIServer, t.plane.StartAPIServer},
			component{"kube-controller-manager", t.plane.KillControllerManager, t.plane.StartControllerManager})
	}
	t.random.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	return kills
}

// requestEventually requests an eviction. The first answers of an API server that has
// just started may be refusals.
func (t *chaosTest) requestEventually(ctx context.Context, pod *v1.Pod) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, tick, true, func(ctx context.Context) (bool, error) {
		last = t.Request(ctx, pod)
		return last == nil || apierrors.IsAlreadyExists(last), nil
	})
	if err != nil {
		return fmt.Errorf("requesting the eviction of pod %s: %w: %w", pod.Name, err, last)
	}
	return nil
}
