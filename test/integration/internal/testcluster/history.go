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

package testcluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Kind is a kind of objects that can be watched.
type Kind struct {
	list  func(context.Context) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// KindOf returns a Kind for two methods of a client.
func KindOf[T runtime.Object](list func(context.Context, metav1.ListOptions) (T, error), watch func(context.Context, metav1.ListOptions) (watch.Interface, error)) Kind {
	return Kind{
		list:  func(ctx context.Context) (runtime.Object, error) { return list(ctx, metav1.ListOptions{}) },
		watch: watch,
	}
}

// History records all changes to the objects of some kinds. They are in one etcd, so that their
// resourceVersions define the order of the changes.
type History struct {
	kinds  []Kind
	lock   sync.Mutex
	events []Change
	// seen contains, for each kind, the last change to each object by UID.
	seen []map[string]Change
}

// Change is an object at one resourceVersion. Deleted is true if this change deleted it.
type Change struct {
	Version uint64
	Deleted bool
	Object  runtime.Object
}

// Watch records all changes until the test ends. An API server ends the watch of a client that is slow: it goes on
// where it was.
func (c *Cluster) Watch(kinds ...Kind) *History {
	c.T.Helper()
	h := &History{kinds: kinds, seen: make([]map[string]Change, len(kinds))}
	for i, kind := range kinds {
		h.seen[i] = map[string]Change{}
		list, err := kind.list(c.T.Context())
		if err != nil {
			c.T.Fatalf("listing: %v", err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			c.T.Fatalf("reading a list: %v", err)
		}
		for _, object := range items {
			h.add(i, watch.Event{Type: watch.Added, Object: object})
		}
		read, err := meta.ListAccessor(list)
		if err != nil {
			c.T.Fatalf("reading a list: %v", err)
		}
		watcher, err := watchtools.NewRetryWatcherWithContext(c.T.Context(), read.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: kind.watch})
		if err != nil {
			c.T.Fatalf("watching: %v", err)
		}
		var running sync.WaitGroup
		running.Go(func() {
			for event := range watcher.ResultChan() {
				h.add(i, event)
			}
		})
		c.T.Cleanup(func() {
			watcher.Stop()
			Join(c.T, "a watch", &running)
		})
	}
	return h
}

func (h *History) add(kind int, event watch.Event) {
	if event.Type == watch.Error || event.Type == watch.Bookmark {
		return
	}
	version, uid := versionOf(event.Object)
	change := Change{Version: version, Deleted: event.Type == watch.Deleted, Object: event.Object}
	h.lock.Lock()
	defer h.lock.Unlock()
	h.events = append(h.events, change)
	h.seen[kind][uid] = change
}

func versionOf(object runtime.Object) (version uint64, uid string) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return 0, ""
	}
	version, err = strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, ""
	}
	return version, string(accessor.GetUID())
}

// CatchUp waits until the history is up to date, and returns it sorted.
func (h *History) CatchUp(c *Cluster) []Change {
	c.T.Helper()
	c.Eventually("the watches to catch up", func(ctx context.Context) (bool, string) {
		for i := range h.kinds {
			if missing := h.missing(ctx, i); missing != "" {
				return false, missing
			}
		}
		return true, ""
	})
	h.lock.Lock()
	defer h.lock.Unlock()
	slices.SortStableFunc(h.events, func(a, b Change) int { return cmp.Compare(a.Version, b.Version) })
	return slices.Clone(h.events)
}

// missing describes an object of the kind whose last change is not recorded yet, or returns "".
func (h *History) missing(ctx context.Context, kind int) string {
	list, err := h.kinds[kind].list(ctx)
	if err != nil {
		return err.Error()
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err.Error()
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	exists := map[string]bool{}
	for _, object := range items {
		version, uid := versionOf(object)
		exists[uid] = true
		if got := h.seen[kind][uid].Version; got < version {
			return fmt.Sprintf("%T %s at %d, must be at %d", object, uid, got, version)
		}
	}
	for uid, last := range h.seen[kind] {
		if !last.Deleted && !exists[uid] {
			return fmt.Sprintf("%T %s still exists, must be deleted", last.Object, uid)
		}
	}
	return ""
}
