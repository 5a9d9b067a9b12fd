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
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"
	"k8s.io/kubernetes/pkg/features"
)

const (
	// batchTimeout limits the requests to etcd of one batch. It is less than the minute after which
	// kube-apiserver gives up the calls that wait.
	batchTimeout = 30 * time.Second

	// slowWait is the time from which on a traced wait is logged.
	slowWait = 500 * time.Millisecond
)

// Decide decides one eviction: it takes a disruption from the status of budget and writes that to
// the client that it is given, or returns why it must not. The write has no effect by itself, the
// lane collects it. Decide may be called several times, each time with a newer budget. Only if it
// writes, it may change what budget refers to.
type Decide func(client policyclient.PodDisruptionBudgetsGetter, budget policyv1.PodDisruptionBudget) error

// Lane is the client for PodDisruptionBudgets of the eviction storage. What it lists is shared and
// must not be changed.
type Lane struct {
	policyclient.PodDisruptionBudgetsGetter

	budgets    budgetStore
	lists      *batcher[string, struct{}, *policyv1.PodDisruptionBudgetList]
	decrements *batcher[types.NamespacedName, Decide, struct{}]
	// tracker is where namespaces with many budgets are looked up.
	tracker *tracker
}

// budgetStore is where budgets are stored, without a cache.
type budgetStore interface {
	// list returns the budgets of a namespace that are stored when it is called, or later.
	list(ctx context.Context, namespace string) (*policyv1.PodDisruptionBudgetList, error)
	// updateStatus stores the status that update returns for what is stored, which update must not
	// change. It calls update again if another client has written in between.
	updateStatus(ctx context.Context, key types.NamespacedName, update func(*policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error)) error
	destroy()
}

// NewForConfig returns the client for PodDisruptionBudgets of the eviction storage. It is a Lane if
// the feature gate EvictionLane is on.
func NewForConfig(config *restclient.Config, storage generic.RESTOptionsGetter) (policyclient.PodDisruptionBudgetsGetter, error) {
	client, err := policyclient.NewForConfig(config)
	if err != nil || !utilfeature.DefaultFeatureGate.Enabled(features.EvictionLane) {
		return client, err
	}
	budgets, err := newBudgetStore(storage)
	if err != nil {
		return nil, err
	}
	registerMetrics()
	lane := newLane(client, budgets)
	lane.tracker = budgets.newTracker(context.Background())
	return lane, nil
}

func newLane(client policyclient.PodDisruptionBudgetsGetter, budgets budgetStore) *Lane {
	l := &Lane{PodDisruptionBudgetsGetter: client, budgets: budgets}
	l.lists = newBatcher(l.list, observe[struct{}, *policyv1.PodDisruptionBudgetList](operationList))
	l.decrements = newBatcher(l.decrement, observe[Decide, struct{}](operationDecrement))
	return l
}

// Destroy closes the connections of client to etcd if it is a Lane.
func Destroy(client policyclient.PodDisruptionBudgetsGetter) {
	if lane, ok := client.(*Lane); ok {
		if lane.tracker != nil {
			lane.tracker.stop()
		}
		lane.budgets.destroy()
	}
}

// PodDisruptionBudgets is the client for a namespace.
func (l *Lane) PodDisruptionBudgets(namespace string) policyclient.PodDisruptionBudgetInterface {
	return &namespacedLane{l.PodDisruptionBudgetsGetter.PodDisruptionBudgets(namespace), l, namespace}
}

type namespacedLane struct {
	policyclient.PodDisruptionBudgetInterface
	lane      *Lane
	namespace string
}

// List returns all budgets of the namespace that were stored before it was called.
func (n *namespacedLane) List(ctx context.Context, _ metav1.ListOptions) (*policyv1.PodDisruptionBudgetList, error) {
	ctx, span := tracing.Start(ctx, "Eviction lane: list budgets", attribute.String("namespace", n.namespace))
	defer span.End(slowWait)
	return n.lane.lists.do(ctx, n.namespace, struct{}{})
}

// Select returns the budgets that select a pod with these labels in the namespace. known is false if they have to be
// listed: it is quicker only where there are many.
func (l *Lane) Select(ctx context.Context, namespace string, labels map[string]string) (budgets []policyv1.PodDisruptionBudget, known bool) {
	ctx, span := tracing.Start(ctx, "Eviction lane: select budgets", attribute.String("namespace", namespace))
	defer span.End(slowWait)
	return l.tracker.selecting(ctx, namespace, labels)
}

// list answers all calls with one list.
func (l *Lane) list(namespace string, calls []*call[struct{}, *policyv1.PodDisruptionBudgetList]) time.Duration {
	ctx, cancel := contextOf(calls)
	defer cancel()
	budgets, err := l.budgets.list(ctx, namespace)
	if err == nil {
		l.tracker.note(namespace, len(budgets.Items))
	}
	err = errorOf(err, "listing the disruption budgets")
	for _, c := range calls {
		c.result, c.err = budgets, err
	}
	return 0
}

// Decrement has decide called with the stored budget, and stores what it takes, in one write with
// other calls for this budget. The error is that of decide or of the write.
func (l *Lane) Decrement(ctx context.Context, budget types.NamespacedName, decide Decide) error {
	ctx, span := tracing.Start(ctx, "Eviction lane: decrement budget",
		attribute.String("namespace", budget.Namespace), attribute.String("name", budget.Name))
	defer span.End(slowWait)
	_, err := l.decrements.do(ctx, budget, decide)
	return err
}

// errNothingTaken ends an update that would change nothing. No call hears it: all have errors of
// their own.
var errNothingTaken = errors.New("no call takes a disruption")

// decrement decides all calls on one version of the budget, in order.
func (l *Lane) decrement(key types.NamespacedName, calls []*call[Decide, struct{}]) (pause time.Duration) {
	ctx, cancel := contextOf(calls)
	defer cancel()
	attempts := 0
	err := l.budgets.updateStatus(ctx, key, func(stored *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
		if attempts++; attempts > 1 {
			countConflict()
		}
		budget, taken := decideAll(stored, calls)
		if taken == 0 {
			return nil, errNothingTaken
		}
		pause = pauseAfter(len(budget.Status.DisruptedPods))
		return budget, nil
	})
	err = errorOf(err, "updating the disruption budget "+key.Name)
	for _, c := range calls {
		if c.err == nil { // Otherwise it was refused, which needs no write.
			c.err = err
		}
	}
	return pause
}

// decideAll returns the budget after all calls, and how many of them took a disruption. A call that
// panics takes none, and the others are decided as if it had not been there.
func decideAll(stored *policyv1.PodDisruptionBudget, calls []*call[Decide, struct{}]) (budget *policyv1.PodDisruptionBudget, taken int) {
	panicked := map[*call[Decide, struct{}]]error{}
	for {
		budget, taken = stored.DeepCopy(), 0
		known := len(panicked)
		for _, c := range calls {
			if c.err = panicked[c]; c.err == nil && c.ctx.Err() != nil {
				c.err = errorOfEnded(c.ctx) // Nobody is there to delete the pod.
			}
			if c.err != nil {
				continue
			}
			client := &collector{}
			if err, ok := decideOne(c.arg, client, budget); !ok {
				panicked[c] = err
				break // The budget may be half changed.
			} else if c.err = err; err == nil {
				budget = client.written
				taken++
			}
		}
		if len(panicked) == known {
			return budget, taken
		}
	}
}

// decideOne returns the error of decide, or not ok with an error that says that it panicked.
func decideOne(decide Decide, client *collector, budget *policyv1.PodDisruptionBudget) (err error, ok bool) {
	defer func() {
		if reason := recover(); reason != nil {
			err, ok = errorOfPanic(reason), false
		}
	}()
	return decide(client, *budget), true
}

// collector keeps the status that one decision writes.
type collector struct {
	policyclient.PodDisruptionBudgetInterface
	written *policyv1.PodDisruptionBudget
}

func (c *collector) PodDisruptionBudgets(string) policyclient.PodDisruptionBudgetInterface { return c }

func (c *collector) UpdateStatus(_ context.Context, budget *policyv1.PodDisruptionBudget, _ metav1.UpdateOptions) (*policyv1.PodDisruptionBudget, error) {
	c.written = budget
	return budget, nil
}

// contextOf is what a batch works with: it does not end with the first call, but its spans belong to
// the trace of that call.
func contextOf[A, R any](calls []*call[A, R]) (context.Context, context.CancelFunc) {
	ctx := tracing.ContextWithSpan(context.Background(), tracing.SpanFromContext(calls[0].ctx))
	return context.WithTimeout(ctx, batchTimeout)
}

// errorOf makes a Status of the error of a batch that ran out of time. The storage returns one for
// all other errors.
func errorOf(err error, doing string) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return apierrors.NewTimeoutError(doing+" took longer than "+batchTimeout.String(), 10)
	}
	return err
}
