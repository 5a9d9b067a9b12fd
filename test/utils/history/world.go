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
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is an object of any kind, of an external version.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key identifies an object of a cluster. The namespace of cluster-scoped ones is empty.
type Key struct {
	Kind string
	types.NamespacedName
}

// String returns the key as kubectl would write it.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + "/" + k.Name
	}
	return k.Kind + "/" + k.Namespace + "/" + k.Name
}

// Change is one write of one object.
type Change struct {
	// Revision is that of etcd. Some writes change several objects: expired leases.
	Revision int64
	// Time is when the change was received.
	Time time.Time
	Key  Key
	// Before and After are the object as it was and is. A created one has no Before, a deleted one no After.
	Before, After Object
}

// versions returns the object as it was and is, nil if it was or is not there, and false if it is of another type.
func versions[T Object](c *Change) (before, after T, ok bool) {
	before, wasThere := c.Before.(T)
	after, isThere := c.After.(T)
	return before, after, wasThere || isThere
}

// World has all objects as of a revision.
type World struct {
	Revision int64
	Time     time.Time
	objects  map[Key]Object
	// since is when the present state of a fact began, see Since.
	since map[fact]time.Time
}

// fact is something that rules want to know the age of.
type fact struct {
	key  Key
	what string
}

// NewWorld returns a cluster without objects.
func NewWorld() *World { return &World{objects: map[Key]Object{}, since: map[fact]time.Time{}} }

// Apply makes a change.
func (w *World) Apply(c *Change) {
	w.Revision, w.Time = c.Revision, c.Time
	if c.After == nil {
		delete(w.objects, c.Key)
		return
	}
	w.objects[c.Key] = c.After
}

// get returns an object, and false if it is not there.
func get[T Object](w *World, kind, namespace, name string) (T, bool) {
	object, found := w.objects[Key{kind, types.NamespacedName{Namespace: namespace, Name: name}}].(T)
	return object, found
}

// each calls a function with all objects of a type.
func each[T Object](w *World, visit func(T)) {
	for _, object := range w.objects {
		if typed, ok := object.(T); ok {
			visit(typed)
		}
	}
}

// note takes note of whether a fact holds now.
func (w *World) note(key Key, what string, holds bool) {
	f := fact{key, what}
	if _, known := w.since[f]; holds && !known {
		w.since[f] = w.Time
	} else if !holds {
		delete(w.since, f)
	}
}

// hasHeld reports whether a fact has held for some time. What has changed just now, nobody may have seen yet.
func (w *World) hasHeld(key Key, what string, age time.Duration) bool {
	since, holds := w.since[fact{key, what}]
	return holds && w.Time.Sub(since) >= age
}

// describe names an object with its UID, of which the first characters are enough.
func describe(object metav1.Object) string {
	return fmt.Sprintf("%s (UID %.8s)", object.GetName(), object.GetUID())
}
