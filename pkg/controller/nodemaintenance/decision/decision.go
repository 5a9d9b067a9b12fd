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

package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// Decision is what follows from the facts about a node.
type Decision struct {
	*Facts
	// View is what the next status of the node is computed from.
	View *status.View
	// own is that of the facts, as long as it is needed.
	own *OwnCordon
	// Wanted are the writes for the node that are still wanted. The failures of others do not matter any more.
	Wanted sets.Set[write.Key]
	// Rechecks is whether the node has to be decided on again without an event, and RecheckAfter after which time.
	Rechecks     bool
	RecheckAfter time.Duration
}

// recheck has the node decided on again after that time at the latest, for which no event comes.
func (d *Decision) recheck(after time.Duration) {
	if !d.Rechecks || after < d.RecheckAfter {
		d.Rechecks, d.RecheckAfter = true, after
	}
}

// mayRaise reports whether further pods may be taken from the node.
func (d *Decision) mayRaise() bool { return !d.View.CordonRefused && !d.AwaitsFinalizers }
