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
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func atVersion(name, version string) *v1.Pod {
	return newPod(name, func(pod *v1.Pod) { pod.ResourceVersion = version })
}

func event(eventType watch.EventType, name, version string) watch.Event {
	return watch.Event{Type: eventType, Object: atVersion(name, version)}
}

// newTestStream returns a stream that begins with pod a at version 5, and a counter of what
// it has told.
func newTestStream() (*stream, *int) {
	told := 0
	return &stream{
		resource: "pods",
		versions: map[types.UID]string{"a": "5"},
		last:     "6",
		observe:  func(runtime.Object, bool, Moment) { told++ },
	}, &told
}

func TestNote(t *testing.T) {
	tests := []struct {
		name     string
		events   []watch.Event
		wantTold int
		wantErr  bool
	}{
		{
			name:     "in order",
			events:   []watch.Event{event(watch.Added, "b", "7"), event(watch.Modified, "a", "9"), event(watch.Deleted, "b", "10")},
			wantTold: 3,
		},
		{name: "a bookmark", events: []watch.Event{event(watch.Bookmark, "", "20"), event(watch.Modified, "a", "9")}, wantTold: 1},
		{name: "the same twice", events: []watch.Event{event(watch.Added, "b", "7"), event(watch.Modified, "b", "7")}, wantTold: 1, wantErr: true},
		{name: "older than the list", events: []watch.Event{event(watch.Modified, "a", "6")}, wantErr: true},
		{name: "shorter, but later", events: []watch.Event{event(watch.Added, "b", "9"), event(watch.Added, "c", "10")}, wantTold: 2},
		{name: "no resource version", events: []watch.Event{event(watch.Added, "b", "")}, wantErr: true},
		{name: "events are lost", events: []watch.Event{{Type: watch.Error, Object: &metav1.Status{Code: 410}}}, wantErr: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, told := newTestStream()
			var err error
			for _, event := range test.events {
				if err = s.note(event, second(1)); err != nil {
					break
				}
			}
			if (err != nil) != test.wantErr || *told != test.wantTold {
				t.Errorf("told %d times, want %d; error %v, want one: %t", *told, test.wantTold, err, test.wantErr)
			}
		})
	}
}

func TestBehind(t *testing.T) {
	list := func(version string, pods ...*v1.Pod) *v1.PodList {
		l := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
		for _, pod := range pods {
			l.Items = append(l.Items, *pod)
		}
		return l
	}
	tests := []struct {
		name   string
		events []watch.Event
		list   *v1.PodList
		want   bool
	}{
		{name: "nothing has happened", list: list("12", atVersion("a", "5"))},
		{name: "a change is missing", list: list("12", atVersion("a", "8")), want: true},
		{name: "the change is there", events: []watch.Event{event(watch.Modified, "a", "8")}, list: list("12", atVersion("a", "8"))},
		{name: "a later change too", events: []watch.Event{event(watch.Modified, "a", "8"), event(watch.Modified, "a", "13")}, list: list("12", atVersion("a", "8"))},
		{name: "a new one is missing", list: list("12", atVersion("a", "5"), atVersion("b", "8")), want: true},
		{name: "the new one is there", events: []watch.Event{event(watch.Added, "b", "8")}, list: list("12", atVersion("a", "5"), atVersion("b", "8"))},
		{
			name:   "the new one is gone again",
			events: []watch.Event{event(watch.Added, "b", "8"), event(watch.Deleted, "b", "13")},
			list:   list("12", atVersion("a", "5"), atVersion("b", "8")),
		},
		{name: "a removal is missing", list: list("12"), want: true},
		{name: "the removal is there", events: []watch.Event{event(watch.Deleted, "a", "12")}, list: list("12")},
		{name: "one that came after the list", events: []watch.Event{event(watch.Added, "b", "13")}, list: list("12", atVersion("a", "5"))},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, _ := newTestStream()
			for _, event := range test.events {
				if err := s.note(event, second(1)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.behind(test.list)
			if err != nil || got != test.want {
				t.Errorf("got %t, %v, want %t", got, err, test.want)
			}
		})
	}
}
