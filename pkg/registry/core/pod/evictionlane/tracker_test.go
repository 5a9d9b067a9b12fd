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
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	etcd3testing "k8s.io/apiserver/pkg/storage/etcd3/testing"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/kubeapiserver"
	"k8s.io/utils/ptr"
)

// storedLane is a lane on a real etcd.
type storedLane struct {
	*Lane
	t     testing.TB
	store *uncachedStore
	etcd  *kubernetes.Client
}

// newStoredLane returns a lane whose tracker reads through what wrap returns.
func newStoredLane(t testing.TB, wrap func(storage.Interface) storage.Interface) *storedLane {
	t.Helper()
	// Like registrytest.NewEtcdStorage, which benchmarks cannot use.
	server, etcd := etcd3testing.NewUnsecuredEtcd3TestClientServer(t)
	t.Cleanup(func() { server.Terminate(t) })
	completed := kubeapiserver.NewStorageFactoryConfig().Complete(options.NewEtcdOptions(etcd))
	completed.APIResourceConfig = serverstorage.NewResourceConfig()
	factory, err := completed.New()
	if err != nil {
		t.Fatal(err)
	}
	config, err := factory.NewConfig(policy.Resource("any"), nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := newBudgetStore(generic.RESTOptions{StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: "poddisruptionbudgets"})
	if err != nil {
		t.Fatal(err)
	}
	lane := newLane(fake.NewClientset().PolicyV1(), store)
	lane.tracker = newTracker(wrap(store.budgets.Storage.Storage), store.budgets.KeyRootFunc(t.Context()))
	t.Cleanup(func() { Destroy(lane) })
	return &storedLane{lane, t, store, server.V3Client}
}

func unwrapped(s storage.Interface) storage.Interface { return s }

func (l *storedLane) contextOf(namespace string) context.Context {
	return genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(l.t.Context(), namespace),
		&genericapirequest.RequestInfo{APIGroup: "policy", APIVersion: "v1", Resource: "poddisruptionbudgets"})
}

// create creates a budget for the pods with this label.
func (l *storedLane) create(namespace, name, app string) {
	l.t.Helper()
	budget := &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policy.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, MinAvailable: ptr.To(intstr.FromInt32(1))},
	}
	if _, err := l.store.budgets.Create(l.contextOf(namespace), budget, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *storedLane) createMany(namespace string, number int) {
	l.t.Helper()
	for i := range number {
		l.create(namespace, fmt.Sprintf("budget-%d", i), fmt.Sprintf("app-%d", i))
	}
}

func (l *storedLane) delete(namespace, name string) {
	l.t.Helper()
	if _, _, err := l.store.budgets.Delete(l.contextOf(namespace), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// track lists the budgets of a namespace, as the first eviction does, until they are tracked.
func (l *storedLane) track(namespace string) {
	l.t.Helper()
	err := wait.PollUntilContextTimeout(l.t.Context(), 10*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		if _, err := l.PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{}); err != nil {
			return false, err
		}
		return l.tracker.tracks(namespace), nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// selected returns the names of the budgets of a pod.
func (l *storedLane) selected(namespace, app string) (names []string, known bool) {
	l.t.Helper()
	budgets, known := l.Select(l.t.Context(), namespace, map[string]string{"app": app})
	for _, budget := range budgets {
		names = append(names, budget.Name)
	}
	return names, known
}

// TestSelect: what was stored before a call is known to it.
func TestSelect(t *testing.T) {
	l := newStoredLane(t, unwrapped)
	l.createMany("shop", manyBudgets)
	l.createMany("small", manyBudgets-1)
	l.track("shop")
	expect := func(when, app string, want ...string) {
		t.Helper()
		if got, known := l.selected("shop", app); !known || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s: got budgets %v (known: %t), want %v", when, got, known, want)
		}
	}
	expect("one", "app-7", "budget-7")
	expect("none", "other")
	for i := range 50 {
		l.create("shop", fmt.Sprintf("extra-%d", i), "app-7")
		expect("after a creation", "app-7", "budget-7", fmt.Sprintf("extra-%d", i))
		err := l.store.updateStatus(l.contextOf("shop"), types.NamespacedName{Namespace: "shop", Name: "budget-7"}, func(budget *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
			budget.Status.DisruptionsAllowed = int32(i)
			return budget, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if budgets, known := l.Select(t.Context(), "shop", map[string]string{"app": "app-7"}); !known || len(budgets) != 2 || budgets[0].Status.DisruptionsAllowed != int32(i) {
			t.Fatalf("after a write of the status: got %v (known: %t)", budgets, known)
		}
		l.delete("shop", fmt.Sprintf("extra-%d", i))
		expect("after a deletion", "app-7", "budget-7")
	}

	if _, err := l.PodDisruptionBudgets("small").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, known := l.selected("small", "app-7"); known {
		t.Error("a namespace with few budgets is tracked")
	}
}

// TestSelectAfterOtherWrites: changes of other objects, of which the watch does not tell, do not make the tracker useless.
func TestSelectAfterOtherWrites(t *testing.T) {
	l := newStoredLane(t, unwrapped)
	l.createMany("shop", manyBudgets)
	l.track("shop")
	for i := range 20 {
		if _, err := l.etcd.Put(t.Context(), "/another/object", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if got, known := l.selected("shop", "app-7"); !known || len(got) != 1 {
			t.Fatalf("got budgets %v (known: %t) after %d writes", got, known, i+1)
		}
	}
	if kept := len(l.tracker.indexer.List()); kept != manyBudgets {
		t.Errorf("the tracker has %d budgets: it takes messages about progress for some", kept)
	}
}

// TestSelectedBudgetsAreCopies: the storage of evictions changes what it is given.
func TestSelectedBudgetsAreCopies(t *testing.T) {
	l := newStoredLane(t, unwrapped)
	l.createMany("shop", manyBudgets)
	l.track("shop")
	for range 2 {
		budgets, _ := l.Select(t.Context(), "shop", map[string]string{"app": "app-7"})
		if len(budgets) != 1 || budgets[0].Spec.Selector.MatchLabels["app"] != "app-7" || budgets[0].Status.DisruptionsAllowed != 0 {
			t.Fatalf("got %v", budgets)
		}
		budgets[0].Spec.Selector.MatchLabels["app"], budgets[0].Status.DisruptionsAllowed = "changed", 7
	}
}

// brokenStorage is an etcd of which some calls fail.
type brokenStorage struct {
	storage.Interface
	noVersion, noProgress, noWatch, silent atomic.Bool
	watches                                atomic.Int32
	// current is the last watch.
	current atomic.Pointer[watch.Interface]
}

var errBroken = errors.New("broken")

func (b *brokenStorage) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	if b.noVersion.Load() {
		return 0, errBroken
	}
	return b.Interface.GetCurrentResourceVersion(ctx)
}

func (b *brokenStorage) RequestWatchProgress(ctx context.Context) error {
	if b.noProgress.Load() {
		return errBroken
	}
	return b.Interface.RequestWatchProgress(ctx)
}

func (b *brokenStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	b.watches.Add(1)
	if b.noWatch.Load() {
		return nil, errBroken
	}
	w, err := b.Interface.Watch(ctx, key, opts)
	if err == nil {
		w = watch.Filter(w, func(event watch.Event) (watch.Event, bool) { return event, !b.silent.Load() })
		b.current.Store(&w)
	}
	return w, err
}

// TestSelectUnknown: whatever fails, a call is never answered from what may be old: the budgets are listed.
func TestSelectUnknown(t *testing.T) {
	for name, test := range map[string]struct{ fail func(*brokenStorage) }{
		"no revision":            {func(b *brokenStorage) { b.noVersion.Store(true) }},
		"no progress":            {func(b *brokenStorage) { b.silent.Store(true); b.noProgress.Store(true) }},
		"a watch that hangs":     {func(b *brokenStorage) { b.silent.Store(true) }},
		"a watch that has ended": {func(b *brokenStorage) { b.noWatch.Store(true); (*b.current.Load()).Stop() }},
	} {
		t.Run(name, func(t *testing.T) {
			broken := &brokenStorage{}
			l := newStoredLane(t, func(s storage.Interface) storage.Interface { broken.Interface = s; return broken })
			l.createMany("shop", manyBudgets)
			l.track("shop")
			if got, known := l.selected("shop", "app-7"); !known || len(got) != 1 {
				t.Fatalf("got budgets %v, known: %t", got, known)
			}
			test.fail(broken)
			if broken.noWatch.Load() {
				// Nobody waits for it any more.
				err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
					return !l.tracker.tracks("shop"), nil
				})
				if err != nil {
					t.Error("evictions wait for a tracker that has lost track")
				}
			}
			l.create("shop", "extra", "app-7")
			if got, known := l.selected("shop", "app-7"); known && len(got) != 2 {
				t.Errorf("got budgets %v", got)
			} else if known {
				t.Error("the call was answered")
			}
			if list, err := l.PodDisruptionBudgets("shop").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != manyBudgets+1 {
				t.Errorf("the budgets cannot be listed: %v", err)
			}
		})
	}
}

// TestTrackAgain: after a failure, the tracker begins anew.
func TestTrackAgain(t *testing.T) {
	broken := &brokenStorage{}
	l := newStoredLane(t, func(s storage.Interface) storage.Interface { broken.Interface = s; return broken })
	l.createMany("shop", manyBudgets)
	l.track("shop")
	watches := broken.watches.Load()
	(*broken.current.Load()).Stop()
	l.create("shop", "extra", "app-7")
	l.delete("shop", "budget-7")
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return broken.watches.Load() > watches && l.tracker.tracks("shop"), nil
	})
	if err != nil {
		t.Fatal("the tracker does not begin again")
	}
	if got, known := l.selected("shop", "app-7"); !known || fmt.Sprint(got) != "[extra]" {
		t.Errorf("got budgets %v, known: %t", got, known)
	}
}

// BenchmarkSelect measures what it takes to find the budgets of a pod in a namespace with so many of them.
func BenchmarkSelect(b *testing.B) {
	for _, number := range []int{1, 10, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("budgets=%d", number), func(b *testing.B) {
			l := newStoredLane(b, unwrapped)
			l.createMany("shop", number)
			if number >= manyBudgets {
				l.track("shop")
				l.selected("shop", "app-0") // Selectors are parsed once.
			}
			for b.Loop() {
				if _, known := l.selected("shop", "app-0"); known {
					continue
				}
				list, err := l.PodDisruptionBudgets("shop").List(b.Context(), metav1.ListOptions{})
				if err != nil {
					b.Fatal(err)
				}
				for _, budget := range list.Items {
					if _, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
