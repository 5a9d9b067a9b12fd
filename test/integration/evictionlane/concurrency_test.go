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

package evictionlane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/ptr"
)

// parallel calls f with each index below count, up to workers at a time, until one fails.
func parallel(t *testing.T, workers, count int, f func(index int) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(workers)
	for index := range count {
		group.Go(func() error { return f(index) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func newNamespace(t *testing.T, c *cluster) *testcluster.Cluster {
	return testcluster.New(t, c.Config, "lane")
}

// numberOf reads how often something is tried from the environment.
func numberOf(t *testing.T, variable string, byDefault int) int {
	value, ok := os.LookupEnv(variable)
	if !ok {
		return byDefault
	}
	number, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return number
}

// TestBudgetCreatedBefore evicts a pod through one API server as soon as another has created a
// budget for it. No eviction may miss the budget. EVICTION_LANE_TRIES sets how often that is tried. Where a
// namespace has many budgets, these are in the memory of the API servers.
func TestBudgetCreatedBefore(t *testing.T) {
	for name, others := range map[string]int{"few budgets": 0, "many budgets": 30} {
		t.Run(name, func(t *testing.T) { testBudgetCreatedBefore(t, others) })
	}
}

func testBudgetCreatedBefore(t *testing.T, others int) {
	const workers = 8
	tries := numberOf(t, "EVICTION_LANE_TRIES", 1000)
	c := start(t, true, 2)
	ctx := t.Context()
	for i := range others {
		name := fmt.Sprintf("other-%d", i)
		if _, err := c.clients[0].PolicyV1().PodDisruptionBudgets(c.Namespace).Create(ctx, newBudget(name, name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	parallel(t, workers, workers, func(worker int) error {
		app := fmt.Sprintf("app-%d", worker)
		if err := c.createPod(ctx, newPod(app, app), v1.PodRunning, v1.ConditionTrue); err != nil {
			return err
		}
		for try := range tries / workers {
			creating, evicting := try%2, 1-try%2
			budgets := c.clients[creating].PolicyV1().PodDisruptionBudgets(c.Namespace)
			if _, err := budgets.Create(ctx, newBudget(app, app), metav1.CreateOptions{}); err != nil {
				return err
			}
			if err := c.evict(ctx, evicting, app, nil); !apierrors.IsTooManyRequests(err) {
				return fmt.Errorf("try %d of %s: the answer is %v although a budget exists that was not observed", try, app, err)
			}
			if err := budgets.Delete(ctx, app, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// outcomes counts the answers to evictions.
type outcomes struct {
	lock   sync.Mutex
	counts map[string]int
}

func (o *outcomes) add(err error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.counts == nil {
		o.counts = map[string]int{}
	}
	o.counts[string(apierrors.ReasonForError(err))]++
}

func (o *outcomes) expect(t *testing.T, want map[string]int) {
	t.Helper()
	if got := fmt.Sprint(o.counts); got != fmt.Sprint(want) {
		t.Errorf("answers %s, want %v", got, want)
	}
}

// TestTwoServers evicts 500 pods through two API servers at once, under a budget that allows 200.
func TestTwoServers(t *testing.T) {
	const pods, allowed = 500, 200
	c := start(t, true, 2)
	if versions := c.evictBeyondBudget(pods, allowed); versions > allowed/2 {
		t.Errorf("%d versions of the budget for %d evictions: they are not written together", versions, allowed)
	}
}

// TestServerWithoutLane evicts 60 pods through two API servers at once, one of which has no lane, under
// a budget that allows 20. That is what a rolling upgrade does.
func TestServerWithoutLane(t *testing.T) {
	startEach(t, true, false).evictBeyondBudget(60, 20)
}

// evictBeyondBudget evicts more pods than a budget allows, through all servers at once, and checks
// every version of the budget. It returns their number.
func (c *cluster) evictBeyondBudget(pods, allowed int) (versions int) {
	c.T.Helper()
	t := c.T
	c.createRunningPods(pods, "web")
	budget := newBudget("budget", "web")
	budget.Status.DisruptionsAllowed = int32(allowed)
	c.createBudget(budget)
	history := c.Watch(testcluster.KindOf(c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).List, c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Watch))
	var answers outcomes
	parallel(t, 64, pods, func(index int) error {
		answers.add(c.evict(t.Context(), index%2, fmt.Sprintf("pod-%d", index), nil))
		return nil
	})
	answers.expect(t, map[string]int{"": allowed, string(metav1.StatusReasonTooManyRequests): pods - allowed})
	for _, change := range history.CatchUp(c.Cluster) {
		versions++
		status := change.Object.(*policyv1.PodDisruptionBudget).Status
		if int(status.DisruptionsAllowed)+len(status.DisruptedPods) != allowed {
			t.Errorf("a version of the budget has %d disrupted pods and allows %d more", len(status.DisruptedPods), status.DisruptionsAllowed)
		}
	}
	if left, err := c.Client.CoreV1().Pods(c.Namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != pods-allowed {
		t.Errorf("%d pods are left, %v, want %d", len(left.Items), err, pods-allowed)
	}
	return versions
}

// TestWithDisruptionController evicts all pods that a budget can spare, through two API servers,
// while the disruption controller writes the budget.
func TestWithDisruptionController(t *testing.T) {
	const pods, needed = 600, 100
	c := start(t, true, 2)
	c.createRunningPods(pods, "web")
	c.StartDisruptionController(c.Namespace)
	budget := newBudget("budget", "web")
	budget.Spec.MaxUnavailable, budget.Spec.MinAvailable = nil, ptr.To(intstr.FromInt32(needed))
	if _, err := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Create(t.Context(), budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the budget is observed", func(context.Context) (bool, string) {
		status := c.budget("budget").Status
		return status.DisruptionsAllowed == pods-needed, fmt.Sprint(status.DisruptionsAllowed)
	})
	podHistory := c.Watch(testcluster.KindOf(c.Client.CoreV1().Pods(c.Namespace).List, c.Client.CoreV1().Pods(c.Namespace).Watch))
	budgetHistory := c.Watch(testcluster.KindOf(c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).List, c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Watch))
	var answers outcomes
	parallel(t, 64, pods, func(index int) error {
		for {
			err := c.evict(t.Context(), index%2, fmt.Sprintf("pod-%d", index), nil)
			// Refused for the moment: the controller has yet to see the pods that have gone, or the
			// rest must stay.
			if apierrors.IsTooManyRequests(err) && c.budget("budget").Status.CurrentHealthy > needed {
				time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
				continue
			}
			answers.add(err)
			return nil
		}
	})
	answers.expect(t, map[string]int{"": pods - needed, string(metav1.StatusReasonTooManyRequests): needed})
	alive := pods
	for _, change := range podHistory.CatchUp(c.Cluster) {
		if change.Deleted {
			alive--
		}
	}
	if alive != needed {
		t.Errorf("%d pods are left, want %d", alive, needed)
	}
	most := 0
	for _, change := range budgetHistory.CatchUp(c.Cluster) {
		status := change.Object.(*policyv1.PodDisruptionBudget).Status
		most = max(most, len(status.DisruptedPods))
		if status.CurrentHealthy < needed {
			t.Errorf("a version of the budget has %d healthy pods, and needs %d", status.CurrentHealthy, needed)
		}
	}
	t.Logf("up to %d disrupted pods", most)
	c.Eventually("the controller has accounted for all pods", func(context.Context) (bool, string) {
		status := c.budget("budget").Status
		return len(status.DisruptedPods) == 0 && status.CurrentHealthy == needed, fmt.Sprintf("%d disrupted, %d healthy", len(status.DisruptedPods), status.CurrentHealthy)
	})
}

// TestCallersGoAway evicts pods for callers that go away at any time. Nothing is taken twice, and
// the API server goes on evicting for others.
func TestCallersGoAway(t *testing.T) {
	const pods = 300
	c := start(t, true, 1)
	c.createRunningPods(pods, "web")
	budget := newBudget("budget", "web")
	budget.Status.DisruptionsAllowed = 100 * pods
	c.createBudget(budget)
	attempts := 0
	evictAll := func(names []string, evict func(name string) error) {
		attempts += len(names)
		parallel(t, 64, len(names), func(index int) error { return evict(names[index]) })
	}
	left := c.podNames()
	// How long an eviction takes depends on the machine: until some succeed, callers become more patient.
	for patience := 20 * time.Millisecond; len(left) > pods*9/10; patience *= 2 {
		evictAll(left, func(name string) error {
			ctx, cancel := context.WithTimeout(t.Context(), rand.N(patience))
			defer cancel()
			_ = c.evict(ctx, 0, name, nil) // Whatever it is, nobody hears it.
			return nil
		})
		left = c.podNames()
	}
	t.Logf("%d of %d pods are left after %d attempts", len(left), pods, attempts)
	evictAll(left, func(name string) error {
		if err := c.evict(t.Context(), 0, name, nil); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("evict pod %s: %w", name, err)
		}
		return nil
	})
	status := c.budget("budget").Status
	if spent := 100*pods - int(status.DisruptionsAllowed); spent < pods || spent > attempts || len(status.DisruptedPods) != pods {
		t.Errorf("%d disruptions are spent, and %d pods disrupted, for %d pods and %d attempts", spent, len(status.DisruptedPods), pods, attempts)
	}
}

func (c *cluster) podNames() []string {
	c.T.Helper()
	list, err := c.Client.CoreV1().Pods(c.Namespace).List(c.T.Context(), metav1.ListOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}
