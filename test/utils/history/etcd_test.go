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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// scriptedMember is a member of etcd whose watches are decided by a test.
type scriptedMember struct {
	clientv3.Watcher
	lock    sync.Mutex
	watches []func(ctx context.Context, from int64, responses chan<- clientv3.WatchResponse)
	// from are the revisions from which it was watched.
	from []int64
}

func (m *scriptedMember) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	from := clientv3.OpGet(key, options...).Rev()
	responses := make(chan clientv3.WatchResponse)
	m.lock.Lock()
	defer m.lock.Unlock()
	m.from = append(m.from, from)
	watch := func(ctx context.Context, _ int64, _ chan<- clientv3.WatchResponse) { <-ctx.Done() }
	if len(m.watches) > 0 {
		watch, m.watches = m.watches[0], m.watches[1:]
	}
	go func() {
		defer close(responses)
		watch(ctx, from, responses)
	}()
	return responses
}

// podsAt returns the events of revisions, each with a pod, and those with a negative number with an object that is not followed.
func podsAt(t *testing.T, revisions ...int64) []*clientv3.Event {
	t.Helper()
	var events []*clientv3.Event
	for _, revision := range revisions {
		key := fmt.Sprintf("/registry/pods/default/p%d", revision)
		if revision < 0 {
			key, revision = "/registry/leases/x", -revision
		}
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", revision), Namespace: "default"}}
		value, err := runtime.Encode(scheme.Codecs.LegacyCodec(v1.SchemeGroupVersion), pod)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(key), Value: value, ModRevision: revision}})
	}
	return events
}

// follow returns the revisions that were handled, until the last of them is.
func follow(t *testing.T, last int64, members ...*scriptedMember) ([]int64, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []int64
	var watchers []clientv3.Watcher
	for _, member := range members {
		watchers = append(watchers, member)
	}
	err := Follow(ctx, watchers, "/registry/", 1, func(changes []Change) {
		for i := range changes {
			got = append(got, changes[i].Revision)
			if changes[i].Revision >= last {
				cancel()
			}
		}
	})
	return got, err
}

func say(responses chan<- clientv3.WatchResponse, events []*clientv3.Event) {
	responses <- clientv3.WatchResponse{Events: events}
}

// A member that is lost is followed again from where it was.
func TestFollowAgain(t *testing.T) {
	member := &scriptedMember{watches: []func(context.Context, int64, chan<- clientv3.WatchResponse){
		func(_ context.Context, _ int64, responses chan<- clientv3.WatchResponse) {
			say(responses, podsAt(t, 1, 2, 2))
			say(responses, podsAt(t, -3))
			responses <- clientv3.WatchResponse{Canceled: true} // It has no leader.
		},
		func(context.Context, int64, chan<- clientv3.WatchResponse) {}, // The watch ends.
		func(_ context.Context, _ int64, responses chan<- clientv3.WatchResponse) {
			say(responses, podsAt(t, 4, 5))
		},
	}}
	got, err := follow(t, 5, member)
	if want := []int64{1, 2, 2, 4, 5}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got revisions %v (%v), want %v", got, err, want)
	}
	if want := []int64{1, 4, 4}; !slices.Equal(member.from[:3], want) {
		t.Errorf("followed from %v, want %v", member.from, want)
	}
}

// Each revision is taken once, from the member that has it first, also if another one is late.
func TestFollowMembers(t *testing.T) {
	first, second := make(chan struct{}), make(chan struct{})
	one := &scriptedMember{watches: []func(context.Context, int64, chan<- clientv3.WatchResponse){
		func(_ context.Context, _ int64, responses chan<- clientv3.WatchResponse) {
			say(responses, podsAt(t, 1, 2))
			say(responses, nil) // The one before was taken.
			close(first)
			<-second
			say(responses, podsAt(t, 3, 4, 4, 5))
			say(responses, podsAt(t, 6))
		},
	}}
	other := &scriptedMember{watches: []func(context.Context, int64, chan<- clientv3.WatchResponse){
		func(_ context.Context, _ int64, responses chan<- clientv3.WatchResponse) {
			<-first
			say(responses, podsAt(t, 1))
			say(responses, podsAt(t, 2, 3, 4, 4))
			say(responses, nil)
			close(second)
		},
	}}
	got, err := follow(t, 6, one, other)
	if want := []int64{1, 2, 3, 4, 4, 5, 6}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got revisions %v (%v), want %v", got, err, want)
	}
}

// A member that returns finds revisions compacted that another one has shown. What nobody has shown must not be missed.
func TestFollowCompacted(t *testing.T) {
	compacted := func(revision int64) func(context.Context, int64, chan<- clientv3.WatchResponse) {
		return func(_ context.Context, _ int64, responses chan<- clientv3.WatchResponse) {
			responses <- clientv3.WatchResponse{Canceled: true, CompactRevision: revision}
		}
	}
	shows := func(revisions ...int64) func(context.Context, int64, chan<- clientv3.WatchResponse) {
		return func(_ context.Context, _ int64, responses chan<- clientv3.WatchResponse) {
			say(responses, podsAt(t, revisions...))
		}
	}
	got, err := follow(t, 4, &scriptedMember{watches: []func(context.Context, int64, chan<- clientv3.WatchResponse){shows(1, 2, 3), compacted(3), shows(4)}})
	if want := []int64{1, 2, 3, 4}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got revisions %v (%v), want %v", got, err, want)
	}
	if _, err := follow(t, 9, &scriptedMember{watches: []func(context.Context, int64, chan<- clientv3.WatchResponse){shows(1, 2, 3), compacted(5)}}); err == nil || !strings.Contains(err.Error(), "were not seen") {
		t.Errorf("got %v, want that revisions were not seen", err)
	}
}

func TestFollowEnds(t *testing.T) {
	unreadable := podsAt(t, 1)
	unreadable[0].Kv.Value = []byte("x")
	_, err := follow(t, 1, &scriptedMember{}, &scriptedMember{watches: []func(context.Context, int64, chan<- clientv3.WatchResponse){
		func(_ context.Context, _ int64, responses chan<- clientv3.WatchResponse) { say(responses, unreadable) },
	}})
	if err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "decoding") {
		t.Errorf("got %v, want an error of decoding", err)
	}
}
