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
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/apis/policy"
	policyapiv1 "k8s.io/kubernetes/pkg/apis/policy/v1"
	"k8s.io/utils/lru"
)

const (
	// manyBudgets is from how many budgets on a namespace is tracked. A list of fewer takes less than asking etcd twice
	// whether the tracker has all changes.
	manyBudgets = 10

	// maxTracked limits the memory. Namespaces beyond that are listed.
	maxTracked = 10000

	// progressInterval is the time between two requests for progress that etcd may not have answered, because it was still
	// sending changes.
	progressInterval = 100 * time.Millisecond

	// currentTimeout is how long a call waits for the tracker before the budgets are listed.
	currentTimeout = time.Second

	// minRestartDelay and maxRestartDelay limit the time until the tracker begins again after a failure.
	minRestartDelay = time.Second
	maxRestartDelay = 30 * time.Second
)

// tracker has the budgets of all namespaces in memory, with their selectors parsed, so that an eviction in a namespace
// with thousands of them costs no more than in others. It begins when there is such a namespace.
//
// It is as good as a list of what is stored: before each look-up, it asks etcd how new the stored objects are, and waits
// until its watch has come that far. If that takes too long, or the watch has failed, the budgets are listed.
type tracker struct {
	storage storage.Interface
	// prefix is that of the keys of all budgets.
	prefix  string
	indexer cache.Indexer
	index   *poddisruptionbudget.Index
	// reads are the calls that wait until the tracker is current.
	reads *batcher[struct{}, struct{}, bool]

	start func()
	stop  context.CancelFunc

	lock sync.Mutex
	// tracked has the namespaces with many budgets.
	tracked *lru.Cache
	// revision is that of etcd whose changes the indexer has, zero while it does not follow them. moved is closed when it
	// changes.
	revision uint64
	moved    chan struct{}
}

func newTracker(storage storage.Interface, prefix string) *tracker {
	ctx, stop := context.WithCancel(metadata.NewOutgoingContext(context.Background(), streamMetadata))
	t := &tracker{
		storage: storage, prefix: prefix, stop: stop,
		indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		tracked: lru.New(maxTracked), moved: make(chan struct{}),
	}
	t.index, _ = poddisruptionbudget.IndexOf(t.indexer) //nolint:errcheck // It only fails if there is one already.
	t.reads = newBatcher(t.awaitCurrent, observe[struct{}, bool](operationSelect))
	t.start = sync.OnceFunc(func() { go t.run(ctx) })
	return t
}

// streamMetadata separates the watch from others of the same client: etcd reports no progress as long as any watch of
// the same stream is behind.
var streamMetadata = metadata.Pairs("source", "evictionlane")

// note takes note of how many budgets a namespace has.
func (t *tracker) note(namespace string, budgets int) {
	if t == nil || budgets < manyBudgets {
		return
	}
	t.lock.Lock()
	t.tracked.Add(namespace, nil)
	t.lock.Unlock()
	t.start()
}

// selecting returns the budgets that select a pod in the namespace with these labels and are stored when it is called, or
// later. known is false if it cannot tell.
func (t *tracker) selecting(ctx context.Context, namespace string, labels map[string]string) (budgets []policyv1.PodDisruptionBudget, known bool) {
	if t == nil || !t.tracks(namespace) {
		return nil, false
	}
	if current, err := t.reads.do(ctx, struct{}{}, struct{}{}); err != nil || !current {
		return nil, false
	}
	for _, budget := range t.index.For(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: labels}}) {
		budgets = append(budgets, *budget.DeepCopy())
	}
	return budgets, true
}

// tracks reports whether the namespace has many budgets, and the tracker follows the changes.
func (t *tracker) tracks(namespace string) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	_, tracked := t.tracked.Get(namespace)
	return tracked && t.revision > 0
}

// awaitCurrent answers whether the tracker has all changes that were stored before the calls.
func (t *tracker) awaitCurrent(_ struct{}, calls []*call[struct{}, bool]) time.Duration {
	ctx, cancel := contextOf(calls)
	defer cancel()
	current := t.isCurrent(metadata.NewOutgoingContext(ctx, streamMetadata))
	for _, c := range calls {
		c.result = current
	}
	return 0
}

func (t *tracker) isCurrent(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, currentTimeout)
	defer cancel()
	stored, err := t.storage.GetCurrentResourceVersion(ctx)
	if err != nil {
		return false
	}
	for {
		revision, moved := t.state()
		switch {
		case revision == 0:
			return false
		case revision >= stored:
			return true
		}
		if err := t.storage.RequestWatchProgress(ctx); err != nil {
			return false
		}
		again := time.NewTimer(progressInterval)
		select {
		case <-moved:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
		if ctx.Err() != nil {
			return false
		}
	}
}

func (t *tracker) state() (revision uint64, moved <-chan struct{}) {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.revision, t.moved
}

// move records that the indexer has the changes up to this revision.
func (t *tracker) move(revision uint64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.revision == revision {
		return
	}
	t.revision = revision
	close(t.moved)
	t.moved = make(chan struct{})
}

// run follows the changes until ctx is done.
func (t *tracker) run(ctx context.Context) {
	for delay := minRestartDelay; ; delay = min(2*delay, maxRestartDelay) {
		began := time.Now()
		err := t.follow(ctx)
		t.move(0)
		if ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Info("Lost track of the PodDisruptionBudgets, will list them for evictions for a while", "err", err)
		if time.Since(began) > maxRestartDelay {
			delay = minRestartDelay
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// follow reads all budgets, and then their changes until that fails.
func (t *tracker) follow(ctx context.Context) error {
	list := &policy.PodDisruptionBudgetList{}
	everything := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
	if err := t.storage.GetList(ctx, t.prefix, everything, list); err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	var budgets []any
	for i := range list.Items {
		budget, err := externalBudget(&list.Items[i])
		if err != nil {
			return err
		}
		budgets = append(budgets, budget)
	}
	if err := t.indexer.Replace(budgets, list.ResourceVersion); err != nil {
		return fmt.Errorf("indexing: %w", err)
	}
	everything.ResourceVersion, everything.ProgressNotify = list.ResourceVersion, true
	changes, err := t.storage.Watch(ctx, t.prefix, everything)
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer changes.Stop()
	if err := t.moveTo(list.ResourceVersion); err != nil {
		return err
	}
	for change := range changes.ResultChan() {
		if err := t.apply(change); err != nil {
			return err
		}
	}
	return errors.New("the watch has ended")
}

func (t *tracker) moveTo(resourceVersion string) error {
	revision, err := t.storage.Versioner().ParseResourceVersion(resourceVersion)
	if err != nil {
		return fmt.Errorf("reading the revision: %w", err)
	}
	t.move(revision)
	return nil
}

// apply takes over a change.
func (t *tracker) apply(change watch.Event) error {
	stored, isBudget := change.Object.(*policy.PodDisruptionBudget)
	if !isBudget {
		return fmt.Errorf("watching: %s: %v", change.Type, change.Object)
	}
	if change.Type != watch.Bookmark {
		budget, err := externalBudget(stored)
		if err != nil {
			return err
		}
		if change.Type == watch.Deleted {
			err = t.indexer.Delete(budget)
		} else {
			err = t.indexer.Update(budget)
		}
		if err != nil {
			return fmt.Errorf("indexing: %w", err)
		}
	}
	return t.moveTo(stored.ResourceVersion)
}

func externalBudget(stored *policy.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	budget := &policyv1.PodDisruptionBudget{}
	if err := policyapiv1.Convert_policy_PodDisruptionBudget_To_v1_PodDisruptionBudget(stored, budget, nil); err != nil {
		return nil, fmt.Errorf("converting: %w", err)
	}
	return budget, nil
}
