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

package tombstone

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestObject(t *testing.T) {
	missed := func(obj any) cache.DeletedFinalStateUnknown {
		return cache.DeletedFinalStateUnknown{Key: "prod/some", Obj: obj}
	}
	pod := &v1.Pod{}
	tests := map[string]struct {
		obj  any
		want *v1.Pod
		err  string
	}{
		"an object":                           {obj: pod, want: pod},
		"an object of a missed deletion":      {obj: missed(pod), want: pod},
		"another object":                      {obj: &v1.Node{}, err: "unexpected object of type *v1.Node in an event"},
		"nothing":                             {err: "unexpected object of type <nil> in an event"},
		"a missed deletion of nothing":        {obj: missed(nil), err: "unexpected object of type <nil> in an event"},
		"a pointer to a missed deletion":      {obj: &cache.DeletedFinalStateUnknown{Obj: pod}, err: "unexpected object of type *cache.DeletedFinalStateUnknown in an event"},
		"a missed deletion of another object": {obj: missed(&v1.Node{}), err: "unexpected object of type *v1.Node in an event"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Object[*v1.Pod](test.obj)
			if got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if (err == nil && test.err != "") || (err != nil && err.Error() != test.err) {
				t.Errorf("got error %v, want %q", err, test.err)
			}
		})
	}
}
