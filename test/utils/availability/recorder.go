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

// Package availability records from watches how available applications are while
// something happens to their pods: the ready endpoints of each Service, the pods of each
// app, and the conditions of each Deployment. Nothing is polled, so that no state is
// missed, however short: a record has every change, in the order of the API server.
package availability

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	// catchUpInterval is the pause between two checks whether all events have arrived.
	catchUpInterval = 20 * time.Millisecond
	// catchUpTimeout is how long that may take, on a slow machine.
	catchUpTimeout = 30 * time.Second
)

// Recorder watches one namespace.
type Recorder struct {
	streams []*stream
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	// lock guards the record.
	lock   sync.Mutex
	record *Record
}

// stream is the watch of one resource.
type stream struct {
	resource string
	client   *cache.ListWatch
	observe  func(object runtime.Object, deleted bool, moment Moment)

	// versions are those of the objects that exist, last is the one of the last event.
	versions map[types.UID]string
	last     string
	// err is why the watch ended by itself.
	err error
}

// Start records what exists, and every change from then on.
func Start(ctx context.Context, client kubernetes.Interface, namespace string) (*Recorder, error) {
	r := &Recorder{record: newRecord()}
	for resource, client := range map[string]rest.Interface{
		"endpointslices": client.DiscoveryV1().RESTClient(),
		"pods":           client.CoreV1().RESTClient(),
		"deployments":    client.AppsV1().RESTClient(),
	} {
		r.streams = append(r.streams, &stream{
			resource: resource,
			client:   cache.NewListWatchFromClient(client, resource, namespace, fields.Everything()),
			observe:  r.record.observe,
		})
	}
	ctx, r.cancel = context.WithCancel(ctx)
	for _, s := range r.streams {
		watcher, err := s.begin(ctx)
		if err != nil {
			r.cancel()
			r.ended.Wait()
			return nil, err
		}
		r.ended.Go(func() { r.follow(ctx, s, watcher) })
	}
	return r, nil
}

// Stop returns what was recorded up to now. It fails if a change may be missing.
func (r *Recorder) Stop(ctx context.Context) (*Record, error) {
	err := r.catchUp(ctx)
	r.cancel()
	r.ended.Wait()
	return r.record, err
}

// catchUp returns when the watches have reported the state that a list returns.
func (r *Recorder) catchUp(ctx context.Context) error {
	for _, s := range r.streams {
		err := wait.PollUntilContextTimeout(ctx, catchUpInterval, catchUpTimeout, true, func(ctx context.Context) (bool, error) {
			list, err := s.list(ctx)
			if err != nil {
				return false, err
			}
			listed, err := versionsOf(list)
			r.lock.Lock()
			defer r.lock.Unlock()
			return maps.Equal(s.versions, listed), errors.Join(err, s.err)
		})
		if err != nil {
			return fmt.Errorf("waiting until all events of %s have arrived: %w", s.resource, err)
		}
	}
	return nil
}

// versionsOf returns the resource version of each object of a list.
func versionsOf(list runtime.Object) (map[types.UID]string, error) {
	versions := map[types.UID]string{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		versions[object.GetUID()] = object.GetResourceVersion()
		return nil
	})
	return versions, err
}

func (s *stream) list(ctx context.Context) (runtime.Object, error) {
	list, err := s.client.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.resource, err)
	}
	return list, nil
}

// begin records what exists, and starts the watch of its changes.
func (s *stream) begin(ctx context.Context) (*watchtools.RetryWatcher, error) {
	list, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	version, err := meta.NewAccessor().ResourceVersion(list)
	if err != nil {
		return nil, fmt.Errorf("reading the resource version of %s: %w", s.resource, err)
	}
	moment := Moment{At: time.Now(), ResourceVersion: version}
	if s.versions, err = versionsOf(list); err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			s.observe(item, false, moment)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of %s: %w", s.resource, err)
	}
	s.last = version
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, s.client)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", s.resource, err)
	}
	return watcher, nil
}

// follow records the changes. A watch that breaks continues where it broke; if events are lost, the
// stream ends with an error.
func (r *Recorder) follow(ctx context.Context, s *stream, watcher *watchtools.RetryWatcher) {
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		now := time.Now()
		r.lock.Lock()
		s.err = s.note(event, now)
		failed := s.err != nil
		r.lock.Unlock()
		if failed {
			return
		}
	}
	if ctx.Err() == nil {
		r.lock.Lock()
		defer r.lock.Unlock()
		s.err = fmt.Errorf("the watch of %s has ended by itself", s.resource)
	}
}

// note records one event, which must be later than the one before it.
func (s *stream) note(event watch.Event, now time.Time) error {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	case watch.Bookmark:
		return nil
	default:
		return fmt.Errorf("watching %s: %w", s.resource, apierrors.FromObject(event.Object))
	}
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return fmt.Errorf("watching %s: %w", s.resource, err)
	}
	version := object.GetResourceVersion()
	order, err := resourceversion.CompareResourceVersion(s.last, version)
	if err != nil {
		return fmt.Errorf("watching %s: %w", s.resource, err)
	}
	if order >= 0 {
		return fmt.Errorf("watching %s: resource version %s came after %s", s.resource, version, s.last)
	}
	s.last = version
	deleted := event.Type == watch.Deleted
	if deleted {
		delete(s.versions, object.GetUID())
	} else {
		s.versions[object.GetUID()] = version
	}
	s.observe(event.Object, deleted, Moment{At: now, ResourceVersion: version})
	return nil
}
