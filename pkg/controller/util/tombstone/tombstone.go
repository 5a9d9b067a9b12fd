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

// Package tombstone reads the objects of delete events.
package tombstone

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// Object returns the object of an event of an informer. If the informer has missed the event of a
// deletion and detected it by a relist, it returns the last known state of the object.
func Object[T any](obj any) (T, error) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	object, ok := obj.(T)
	if !ok {
		return object, fmt.Errorf("unexpected object of type %T in an event", obj)
	}
	return object, nil
}
