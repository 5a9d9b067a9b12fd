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
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/kubernetes/test/utils/steps"
)

// poll asks until something is done.
func poll(ctx context.Context, interval, timeout time.Duration, done func(context.Context) bool) error {
	return wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (is bool, err error) {
		err = steps.Attempt(func() { is = done(ctx) })
		return is, err
	})
}

// await is poll for what has to be done at the end.
func await(ctx context.Context, what string, interval, timeout time.Duration, done func(context.Context) bool) {
	steps.Check(poll(ctx, interval, timeout, done), "waiting for ", what)
}

// awaitOr is poll for what is measured as it is after the timeout.
func awaitOr(ctx context.Context, interval, timeout time.Duration, done func(context.Context) bool) {
	err := poll(ctx, interval, timeout, done)
	if wait.Interrupted(err) {
		err = context.Cause(ctx) // Nil after the timeout.
	}
	steps.Check(err)
}

// inParallel calls do for each index, with at most so many calls in flight.
func inParallel(ctx context.Context, parallel, count int, do func(ctx context.Context, index int)) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range count {
		group.Go(func() error { return steps.Attempt(func() { do(ctx, i) }) })
	}
	steps.Check(group.Wait())
}

// atOnce calls all at the same time.
func atOnce(ctx context.Context, all ...func(context.Context)) {
	inParallel(ctx, len(all), len(all), func(ctx context.Context, i int) { all[i](ctx) })
}

// inParallel calls do for each index, with so many calls in flight as are asked for.
func (c *cluster) inParallel(ctx context.Context, count int, do func(ctx context.Context, index int)) {
	inParallel(ctx, c.opts.parallel, count, do)
}

// createAll creates objects, as many at a time as are asked for.
func createAll[T runtime.Object](ctx context.Context, c *cluster, count int, create func(context.Context, T, metav1.CreateOptions) (T, error), object func(index int) T) {
	c.inParallel(ctx, count, func(ctx context.Context, i int) {
		wanted := object(i)
		_, err := create(ctx, wanted, metav1.CreateOptions{})
		steps.Check(err, fmt.Sprintf("creating %T", wanted))
	})
}

// removeAll deletes all objects of a kind and waits until they are gone.
func removeAll[L runtime.Object](ctx context.Context, kind string, client interface {
	DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
	List(context.Context, metav1.ListOptions) (L, error)
}) {
	steps.Check(client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "removing ", kind)
	awaitAll(ctx, stepTimeout, kind+" to be gone", client.List, func(runtime.Object) bool { return false })
}

// awaitAll waits until a condition is true for each object of a list.
func awaitAll[L, T runtime.Object](ctx context.Context, timeout time.Duration, what string, list func(context.Context, metav1.ListOptions) (L, error), is func(T) bool) {
	var state string
	err := poll(ctx, pollInterval, timeout, func(ctx context.Context) bool {
		objects, missing := steps.Must(list(ctx, metav1.ListOptions{})), 0
		steps.Check(meta.EachListItem(objects, func(object runtime.Object) error {
			if !is(object.(T)) {
				missing++
			}
			return nil
		}))
		state = fmt.Sprintf("%d of %d %s", missing, meta.LenList(objects), what)
		return missing == 0
	})
	steps.Check(err, "waiting for ", cmp.Or(state, what))
}

// follow watches objects until one of them is the last that is waited for.
func follow[T runtime.Object](ctx context.Context, resourceVersion string, open func(context.Context, metav1.ListOptions) (watch.Interface, error), isLast func(T) bool) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	_, err := watchtools.Until(ctx, resourceVersion, &cache.ListWatch{WatchFuncWithContext: open}, func(event watch.Event) (last bool, err error) {
		if event.Type == watch.Bookmark {
			return false, nil
		}
		object, ok := event.Object.(T)
		if !ok {
			return false, apierrors.FromObject(event.Object)
		}
		err = steps.Attempt(func() { last = isLast(object) })
		return last, err
	})
	return err
}

// watchAll calls see for each version of the objects of an informer, one after the other, until the
// context ends. To list them again and again would keep the API server busy.
func watchAll[T any](ctx context.Context, c *cluster, of func(informers.SharedInformerFactory) cache.SharedIndexInformer, see func(T), options ...informers.SharedInformerOption) {
	factory := informers.NewSharedInformerFactoryWithOptions(c.setup, 0, options...)
	informer := of(factory)
	handler := steps.Must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { see(obj.(T)) },
		UpdateFunc: func(_, obj any) { see(obj.(T)) },
	}))
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		steps.Check(context.Cause(ctx), "watching objects")
	}
}
