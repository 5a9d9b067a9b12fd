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
	// maxNames is the maximum number of distinct values of a label. Users choose the names, and
	// each value of a label costs memory here and in the monitoring system.
	maxNames = 50

	// otherName replaces all names beyond the first maxNames.
	otherName = "other"
)

// names limits the values of a label. It is safe for concurrent use.
type names struct {
	lock  sync.Mutex
	known sets.Set[string]
	// remaining is how many more names are accepted.
	remaining int
}

// newNames returns a limit with names that are always accepted and do not count.
func newNames(known ...string) *names {
	return &names{known: sets.New(known...), remaining: maxNames}
}

// bounded returns the name if it is one of the first maxNames names, and otherName otherwise. The
// result for a name never changes.
func (n *names) bounded(name string) string {
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.known.Has(name) {
		return name
	}
	if n.remaining == 0 {
		return otherName
	}
	n.remaining--
	n.known.Insert(name)
	return name
}
