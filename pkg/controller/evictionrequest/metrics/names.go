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

package metrics

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// maxNames is how many distinct names become values of a label. Names are chosen by
	// users, and every value of a label costs memory here and in the monitoring system.
	maxNames = 50

	// otherName stands for all names beyond the first maxNames.
	otherName = "other"
)

// names bounds the values of a label. It is safe for concurrent use.
type names struct {
	lock  sync.Mutex
	known sets.Set[string]
	// room is how many more names are let in.
	room int
}

// newNames returns a bound that knows some names from the beginning: nobody can crowd
// them out.
func newNames(known ...string) *names {
	return &names{known: sets.New(known...), room: maxNames}
}

// bounded returns the name if it is among the first ones that were asked for, and
// otherName if not. The answer for a name never changes.
func (n *names) bounded(name string) string {
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.known.Has(name) {
		return name
	}
	if n.room == 0 {
		return otherName
	}
	n.room--
	n.known.Insert(name)
	return name
}
