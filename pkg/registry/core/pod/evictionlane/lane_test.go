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
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	restclient "k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/features"
)

var key = types.NamespacedName{Namespace: "shop", Name: "web"}

// fakeStore is a store of one budget.
type fakeStore struct {
	// lock is for tests that change the budget during a list: fake time passes no memory.
	lock   sync.Mutex
	budget policyv1.PodDisruptionBudget
	// before is called with the budget before each version of it is updated, as another client.
	before func(attempt int, budget *policyv1.PodDisruptionBudget)
	err    error
	writes int
	lists  int
	closed bool
}

func (s *fakeStore) list(ctx context.Context, namespace string) (*policyv1.PodDisruptionBudgetList, error) {
	time.Sleep(time.Second)
	s.lock.Lock()
	defer s.lock.Unlock()
	s.lists++
	return &policyv1.PodDisruptionBudgetList{Items: []policyv1.PodDisruptionBudget{*s.budget.DeepCopy()}}, s.errorAfter(ctx)
}

func (s *fakeStore) errorAfter(ctx context.Context) error {
	if s.err == context.DeadlineExceeded {
		<-ctx.Done()
	}
	return cmp.Or(s.err, ctx.Err())
}

func (s *fakeStore) updateStatus(ctx context.Context, of types.NamespacedName, update func(*policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error)) error {
	if of != key {
		return apierrors.NewNotFound(policyv1.Resource("poddisruptionbudgets"), of.Name)
	}
	time.Sleep(time.Second)
	for attempt := 0; ; attempt++ {
		read, handedOut := s.budget.DeepCopy(), s.budget.DeepCopy()
		updated, err := update(handedOut)
		if fmt.Sprint(read) != fmt.Sprint(handedOut) {
			panic("what is stored was changed")
		}
		if err != nil {
			return err
		}
		if err := s.errorAfter(ctx); err != nil {
			return err
		}
		if s.before != nil {
			s.before(attempt, &s.budget)
		}
		if s.budget.ResourceVersion != read.ResourceVersion {
			continue
		}
		s.budget = *updated.DeepCopy()
		s.writes++
		return nil
	}
}

func (s *fakeStore) destroy() { s.closed = true }

func newFakeLane(allowed int32) (*Lane, *fakeStore) {
	store := &fakeStore{budget: policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: "1"},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}}
	return newLane(fake.NewClientset().PolicyV1(), store), store
}

var errNone = errors.New("none allowed")

// take takes a disruption as the eviction storage does: it changes what the budget refers to.
func take(pod string) Decide {
	return func(client policyclient.PodDisruptionBudgetsGetter, budget policyv1.PodDisruptionBudget) error {
		if budget.Status.DisruptionsAllowed == 0 {
			return errNone
		}
		budget.Status.DisruptionsAllowed--
		if budget.Status.DisruptedPods == nil {
			budget.Status.DisruptedPods = map[string]metav1.Time{}
		}
		budget.Status.DisruptedPods[pod] = metav1.Now()
		if strings.HasPrefix(pod, "panic") {
			panic("a bug")
		}
		_, err := client.PodDisruptionBudgets(budget.Namespace).UpdateStatus(context.TODO(), &budget, metav1.UpdateOptions{})
		return err
	}
}

// decrementAll has all pods decided in one batch, behind one that no longer matters.
func decrementAll(ctx context.Context, lane *Lane, pods ...string) []<-chan error {
	go func() {
		_ = lane.Decrement(ctx, key, func(policyclient.PodDisruptionBudgetsGetter, policyv1.PodDisruptionBudget) error { return errNone })
	}()
	synctest.Wait()
	var answers []<-chan error
	for _, pod := range pods {
		answer := make(chan error, 1)
		answers = append(answers, answer)
		go func() { answer <- lane.Decrement(ctx, key, take(pod)) }()
		synctest.Wait()
	}
	return answers
}

func describe(answers []<-chan error) string {
	var all []string
	for _, answer := range answers {
		all = append(all, fmt.Sprint(<-answer))
	}
	return strings.Join(all, ", ")
}

func TestDecrement(t *testing.T) {
	const panicked = "Internal error occurred: panic in the eviction lane: a bug"
	for _, test := range []struct {
		name    string
		allowed int32
		pods    string
		want    string
		left    string
		writes  int
	}{
		{"in order of arrival", 2, "a b c", "<nil>, <nil>, none allowed", "0 map[a b]", 1},
		{"nothing to write", 0, "a b", "none allowed, none allowed", "0 map[]", 0},
		{"each call takes one, also for one pod", 3, "a a", "<nil>, <nil>", "1 map[a]", 1},
		{"a panic takes nothing from the others", 2, "a panic b c", "<nil>, " + panicked + ", <nil>, none allowed", "0 map[a b]", 1},
		{"several panics", 2, "panic1 a panic2 b", panicked + ", <nil>, " + panicked + ", <nil>", "0 map[a b]", 1},
		{"panics alone", 2, "panic1 panic2", panicked + ", " + panicked, "2 map[]", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lane, store := newFakeLane(test.allowed)
				if got := describe(decrementAll(t.Context(), lane, strings.Fields(test.pods)...)); got != test.want {
					t.Errorf("answers\n%s, want\n%s", got, test.want)
				}
				if left := describeBudget(&store.budget); left != test.left || store.writes != test.writes {
					t.Errorf("%s is stored after %d writes, want %s after %d", left, store.writes, test.left, test.writes)
				}
			})
		})
	}
}

func describeBudget(budget *policyv1.PodDisruptionBudget) string {
	pods := map[string]struct{}{}
	for pod := range budget.Status.DisruptedPods {
		pods[pod] = struct{}{}
	}
	return fmt.Sprintf("%d %s", budget.Status.DisruptionsAllowed, strings.NewReplacer(":{}", "").Replace(fmt.Sprint(pods)))
}

// After a conflict, all is decided anew by what is stored then.
func TestDecrementConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registerMetrics()
		lane, store := newFakeLane(3)
		before, err := testutil.GetCounterMetricValue(conflicts)
		if err != nil {
			t.Fatal(err)
		}
		store.before = func(attempt int, budget *policyv1.PodDisruptionBudget) {
			if attempt < 2 {
				budget.ResourceVersion += "1"
				budget.Status.DisruptionsAllowed--
			}
		}
		if got, want := describe(decrementAll(t.Context(), lane, "a", "b", "c")), "<nil>, none allowed, none allowed"; got != want {
			t.Errorf("answers %s, want %s", got, want)
		}
		if left, want := describeBudget(&store.budget), "0 map[a]"; left != want || store.writes != 1 {
			t.Errorf("%s is stored after %d writes, want %s after 1", left, store.writes, want)
		}
		if after, err := testutil.GetCounterMetricValue(conflicts); err != nil || after-before != 2 {
			t.Errorf("%v conflicts are counted, %v, want 2", after-before, err)
		}
	})
}

func TestDecrementFails(t *testing.T) {
	gone := apierrors.NewNotFound(policyv1.Resource("poddisruptionbudgets"), "web")
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		// Who is refused needs no write.
		{"by the storage", gone, fmt.Sprintf("%v, none allowed", gone)},
		{"by time", context.DeadlineExceeded, "Timeout: updating the disruption budget web took longer than 30s, none allowed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lane, store := newFakeLane(1)
				store.err = test.err
				begin := time.Now()
				if got := describe(decrementAll(t.Context(), lane, "a", "b")); got != test.want {
					t.Errorf("answers %s, want %s", got, test.want)
				}
				if took := time.Since(begin); took > batchTimeout+time.Second {
					t.Errorf("it takes %s", took)
				}
			})
		})
	}
	t.Run("because there is no such budget", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			lane, _ := newFakeLane(1)
			if err := lane.Decrement(t.Context(), types.NamespacedName{Namespace: "shop", Name: "other"}, take("a")); !apierrors.IsNotFound(err) {
				t.Errorf("error %v, want not found", err)
			}
		})
	})
}

// A caller that has gone when its batch is decided takes nothing.
func TestDecrementOfACallerThatWentAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane, store := newFakeLane(1)
		ctx, cancel := context.WithCancel(t.Context())
		answers, second := make(chan error, 1), make(chan error, 1)
		store.before = func(attempt int, budget *policyv1.PodDisruptionBudget) {
			if attempt == 0 { // The batch has begun, and is decided a second time.
				budget.ResourceVersion += "1"
				cancel()
			}
		}
		go func() { answers <- lane.Decrement(ctx, key, take("a")) }()
		synctest.Wait()
		go func() { second <- lane.Decrement(t.Context(), key, take("b")) }()
		if err := <-answers; !apierrors.IsTimeout(err) {
			t.Errorf("error %v, want a timeout", err)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
		if left, want := describeBudget(&store.budget), "0 map[b]"; left != want {
			t.Errorf("%s is stored, want %s", left, want)
		}
	})
}

func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane, store := newFakeLane(1)
		list := func() string {
			budgets, err := lane.PodDisruptionBudgets("shop").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err.Error()
			}
			return describeBudget(&budgets.Items[0])
		}
		answers := make(chan string, 3)
		go func() { answers <- list() }()
		synctest.Wait()
		time.Sleep(time.Second / 2)
		store.lock.Lock()
		store.budget.Status.DisruptionsAllowed = 7 // During the first list, before the others are asked for.
		store.lock.Unlock()
		for range 2 {
			go func() { answers <- list() }()
		}
		<-answers // It may be old or new.
		for range 2 {
			if got, want := <-answers, "7 map[]"; got != want {
				t.Errorf("lists %s, want %s", got, want)
			}
		}
		if store.lists != 2 {
			t.Errorf("%d lists, want 2", store.lists)
		}
		for want, err := range map[string]error{
			"Timeout: listing the disruption budgets took longer than 30s": context.DeadlineExceeded,
			"no such thing": errors.New("no such thing"),
		} {
			store.err = err
			if got := list(); got != want {
				t.Errorf("lists %q, want %q", got, want)
			}
		}
	})
}

// A batch goes on when its first caller goes away.
func TestListOfACallerThatWentAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane, _ := newFakeLane(1)
		ctx, cancel := context.WithCancel(t.Context())
		calls := []*call[struct{}, *policyv1.PodDisruptionBudgetList]{{ctx: ctx}, {ctx: t.Context()}}
		cancel()
		lane.list("shop", calls)
		if err := calls[1].err; err != nil {
			t.Errorf("the other caller hears %v", err)
		}
	})
}

// All but lists is left to the client.
func TestOtherCalls(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	lane := newLane(fake.NewClientset(budget).PolicyV1(), &fakeStore{})
	if got, err := lane.PodDisruptionBudgets("shop").Get(t.Context(), "db", metav1.GetOptions{}); err != nil || got.Name != "db" {
		t.Errorf("gets %v, %v", got, err)
	}
}

func TestGate(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionLane, false)
	client, err := NewForConfig(&restclient.Config{}, nil)
	if _, ok := client.(*Lane); ok || err != nil {
		t.Errorf("%T, %v with the gate off", client, err)
	}
	Destroy(client)
}

func TestDestroy(t *testing.T) {
	lane, store := newFakeLane(1)
	Destroy(lane)
	if !store.closed {
		t.Error("the connections to etcd stay open")
	}
}

func TestPauseAfter(t *testing.T) {
	for disrupted, want := range map[int]time.Duration{
		0: 5 * time.Millisecond, 100: 5 * time.Millisecond, 101: 5050 * time.Microsecond,
		500: 25 * time.Millisecond, 2000: 100 * time.Millisecond,
	} {
		if got := pauseAfter(disrupted); got != want {
			t.Errorf("pause of %s after %d disrupted pods, want %s", got, disrupted, want)
		}
	}
}

// The pause grows with the disrupted pods that a batch leaves; a batch that writes nothing causes
// none.
func TestDecrementPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane, store := newFakeLane(2)
		store.budget.Status.DisruptedPods = map[string]metav1.Time{}
		for pod := range 499 {
			store.budget.Status.DisruptedPods[fmt.Sprint(pod)] = metav1.Now()
		}
		var pauses []time.Duration
		lane.decrements.sleep = func(pause time.Duration) { pauses = append(pauses, pause) }
		batch := func(pod string) time.Duration {
			return lane.decrement(key, []*call[Decide, struct{}]{{ctx: t.Context(), arg: take(pod)}})
		}
		for _, step := range []struct {
			pod  string
			want time.Duration
		}{{"a", 25 * time.Millisecond}, {"panic", 0}, {"b", 25*time.Millisecond + pausePerPod}, {"c", 0}} {
			if got := batch(step.pod); got != step.want {
				t.Errorf("pause of %s after %s, want %s", got, step.pod, step.want)
			}
		}
		answers := decrementAll(t.Context(), lane, "d")
		describe(answers)
		if len(pauses) != 0 {
			t.Errorf("pauses %v though nothing is written", pauses)
		}
	})
}
