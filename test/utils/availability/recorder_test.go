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

package availability

import (
	"context"
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

func atVersion(name, version string) *v1.Pod {
	return newPod(name, func(pod *v1.Pod) { pod.ResourceVersion = version })
}

func event(eventType watch.EventType, name, version string) watch.Event {
	return watch.Event{Type: eventType, Object: atVersion(name, version)}
}

// newTestStream returns a stream that begins with pod a at version 5, and the number of events that
// it observed.
func newTestStream() (*stream, *int) {
	observed := 0
	return &stream{
		resource: "pods",
		versions: map[types.UID]string{"a": "5"},
		last:     "6",
		observe:  func(runtime.Object, bool, Moment) { observed++ },
	}, &observed
}

func TestNote(t *testing.T) {
	tests := []struct {
		name         string
		events       []watch.Event
		wantObserved int
		wantErr      bool
	}{
		{
			name:         "in order",
			events:       []watch.Event{event(watch.Added, "b", "7"), event(watch.Modified, "a", "9"), event(watch.Deleted, "b", "10")},
			wantObserved: 3,
		},
		{name: "a bookmark", events: []watch.Event{event(watch.Bookmark, "", "20"), event(watch.Modified, "a", "9")}, wantObserved: 1},
		{name: "the same twice", events: []watch.Event{event(watch.Added, "b", "7"), event(watch.Modified, "b", "7")}, wantObserved: 1, wantErr: true},
		{name: "older than the list", events: []watch.Event{event(watch.Modified, "a", "6")}, wantErr: true},
		{name: "shorter, but later", events: []watch.Event{event(watch.Added, "b", "9"), event(watch.Added, "c", "10")}, wantObserved: 2},
		{name: "no resource version", events: []watch.Event{event(watch.Added, "b", "")}, wantErr: true},
		{name: "events are lost", events: []watch.Event{{Type: watch.Error, Object: &metav1.Status{Code: 410}}}, wantErr: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, observed := newTestStream()
			var err error
			for _, event := range test.events {
				if err = s.note(event, second(1)); err != nil {
					break
				}
			}
			if (err != nil) != test.wantErr || *observed != test.wantObserved {
				t.Errorf("observed %d times, want %d; error %v, want one: %t", *observed, test.wantObserved, err, test.wantErr)
			}
		})
	}
}

func TestCatchUp(t *testing.T) {
	list := func(pods ...*v1.Pod) *v1.PodList {
		l := &v1.PodList{}
		for _, pod := range pods {
			l.Items = append(l.Items, *pod)
		}
		return l
	}
	a5, b8 := atVersion("a", "5"), atVersion("b", "8")
	tests := []struct {
		name   string
		events []watch.Event
		// lists are the responses of the API server, one after the other. The last one is repeated.
		lists []*v1.PodList
		err   error
		want  bool
	}{
		{name: "nothing has happened", lists: []*v1.PodList{list(a5)}, want: true},
		{name: "a change is missing", lists: []*v1.PodList{list(atVersion("a", "8"))}},
		{name: "the change was observed", events: []watch.Event{event(watch.Modified, "a", "8")}, lists: []*v1.PodList{list(atVersion("a", "8"))}, want: true},
		{
			name:   "a later change too",
			events: []watch.Event{event(watch.Modified, "a", "8"), event(watch.Modified, "a", "13")},
			lists:  []*v1.PodList{list(atVersion("a", "8")), list(atVersion("a", "13"))}, want: true,
		},
		{name: "a new one is missing", lists: []*v1.PodList{list(a5, b8)}},
		{name: "the new one was observed", events: []watch.Event{event(watch.Added, "b", "8")}, lists: []*v1.PodList{list(a5, b8)}, want: true},
		{
			name:   "the new one is gone again",
			events: []watch.Event{event(watch.Added, "b", "8"), event(watch.Deleted, "b", "13")},
			lists:  []*v1.PodList{list(a5, b8), list(a5)}, want: true,
		},
		{name: "a removal is missing", lists: []*v1.PodList{list()}},
		{name: "the removal was observed", events: []watch.Event{event(watch.Deleted, "a", "12")}, lists: []*v1.PodList{list()}, want: true},
		{name: "one was created after the list", events: []watch.Event{event(watch.Added, "b", "8")}, lists: []*v1.PodList{list(a5), list(a5, b8)}, want: true},
		{name: "the watch has ended", lists: []*v1.PodList{list(a5)}, err: errors.New("ended")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, _ := newTestStream()
			for _, event := range test.events {
				if err := s.note(event, second(1)); err != nil {
					t.Fatal(err)
				}
			}
			s.err = test.err
			s.client = &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				next := test.lists[0]
				test.lists = test.lists[min(1, len(test.lists)-1):]
				return next, nil
			}}
			ctx, cancel := context.WithTimeout(t.Context(), 10*catchUpInterval)
			defer cancel()
			if err := (&Recorder{streams: []*stream{s}}).catchUp(ctx); (err == nil) != test.want {
				t.Errorf("got error %v, want none: %t", err, test.want)
			}
		})
	}
}
