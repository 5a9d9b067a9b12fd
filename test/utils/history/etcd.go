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

package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// resources are those that are followed, by the second part of their keys in etcd.
var resources = map[string]bool{
	"pods": true, "minions": true, "poddisruptionbudgets": true, "deployments": true, "replicasets": true, "statefulsets": true,
	"daemonsets": true, "evictionrequests": true, "nodemaintenances": true, "nodemaintenancebudgets": true,
	"lifecycleevictionrequests": true, "evictions": true,
}

// followPause is the time before a member of etcd is asked again that has refused to be followed.
const followPause = 200 * time.Millisecond

// Follow calls a function with the changes of each revision, in order, from one on, until the context ends. It reads
// etcd itself, because the watch cache of an API server is one of the things to be checked. prefix is that of all keys.
//
// It follows each member of etcd, and takes a revision from the one that has it first: changes have the time at which
// they are seen, and a member that is suspended or lost must not make them late.
func Follow(ctx context.Context, members []clientv3.Watcher, prefix string, from int64, handle func([]Change)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	f := &follower{prefix: prefix, next: from, handle: handle}
	var running sync.WaitGroup
	for _, member := range members {
		running.Go(func() {
			if err := f.follow(ctx, member); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	err := context.Cause(ctx)
	cancel(nil)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// follower is what those who follow the members of etcd share.
type follower struct {
	prefix string
	handle func([]Change)

	lock sync.Mutex
	// next is the first revision that no member has shown yet.
	next int64
}

// follow reads what a member has, again and again: a member may be lost, or have no leader for a while. It returns an
// error if nothing can be made of what it reads.
func (f *follower) follow(ctx context.Context, member clientv3.Watcher) error {
	for ctx.Err() == nil {
		watchCtx, end := context.WithCancel(clientv3.WithRequireLeader(ctx))
		for response := range member.Watch(watchCtx, f.prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(f.firstUnseen())) {
			err := response.Err()
			if errors.Is(err, rpctypes.ErrCompacted) && response.CompactRevision > f.firstUnseen() {
				end()
				return fmt.Errorf("watching etcd: revisions until %d are compacted, and were not seen: %w", response.CompactRevision, err)
			}
			if err != nil {
				break
			}
			if err := f.take(response.Events); err != nil {
				end()
				return err
			}
		}
		end()
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
	return nil
}

func (f *follower) firstUnseen() int64 {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.next
}

// take handles the events of whole revisions, which are in order, as far as no other member has shown them.
func (f *follower) take(events []*clientv3.Event) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	now := time.Now()
	for len(events) > 0 {
		revision := events[0].Kv.ModRevision
		end := slices.IndexFunc(events, func(event *clientv3.Event) bool { return event.Kv.ModRevision != revision })
		if end < 0 {
			end = len(events)
		}
		ofRevision := events[:end]
		events = events[end:]
		if revision < f.next {
			continue
		}
		var changes []Change
		for _, event := range ofRevision {
			change, err := newChange(event, f.prefix, now)
			if err != nil {
				return fmt.Errorf("decoding %s of revision %d: %w", event.Kv.Key, revision, err)
			}
			if change != nil {
				changes = append(changes, *change)
			}
		}
		f.next = revision + 1
		if len(changes) > 0 {
			f.handle(changes)
		}
	}
	return nil
}

// newChange returns nil for what is not followed.
func newChange(event *clientv3.Event, prefix string, now time.Time) (*Change, error) {
	resource, _, _ := bytes.Cut(bytes.TrimPrefix(bytes.TrimPrefix(event.Kv.Key, []byte(prefix)), []byte("/")), []byte("/"))
	if !resources[string(resource)] {
		return nil, nil
	}
	c := &Change{Revision: event.Kv.ModRevision, Time: now}
	var err error
	if event.PrevKv != nil {
		if c.Key, c.Before, err = decode(event.PrevKv); err != nil {
			return nil, err
		}
	}
	if event.Type == clientv3.EventTypePut {
		c.Key, c.After, err = decode(event.Kv)
	}
	return c, err
}

func decode(kv *mvccpb.KeyValue) (Key, Object, error) {
	decoded, kind, err := scheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, nil)
	if err != nil {
		return Key{}, nil, err
	}
	object, ok := decoded.(Object)
	if !ok {
		return Key{}, nil, fmt.Errorf("%T is no object", decoded)
	}
	if kind.Group == lifecyclev1alpha1.GroupName && kind.Kind == "EvictionRequest" {
		kind.Kind = lifecycleRequest // Both groups have the kind.
	}
	return Key{kind.Kind, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}, object, nil
}
