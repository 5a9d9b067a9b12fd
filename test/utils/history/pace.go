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
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
)

const (
	// returnWindow is in what time an object may not return to what it was more than maxReturns times, nor be written
	// more often than maxWrites times: a
	// ReplicaSet is written 13 times for each pod that leaves after a surge.
	returnWindow = time.Minute
	maxReturns   = 20
	// maxCreations is how often a request may be created for a drain in that time: others withdraw it.
	maxCreations = 20
	maxWrites    = 900
)

// PaceRules limit what fights with others may cost.
func PaceRules() []Rule {
	writes := &pastWrites{all: map[Key][]pastWrite{}, created: map[Key][]time.Time{}, reported: map[Key]time.Time{}}
	return []Rule{{"nobody writes in a hot loop", writes.check}}
}

// pastWrites has the writes of each object within the window.
type pastWrites struct {
	all map[Key][]pastWrite
	// created is when each request was created for a drain.
	created map[Key][]time.Time
	// reported is when each object has broken the rule last: it goes on.
	reported map[Key]time.Time
}

type pastWrite struct {
	at    time.Time
	state uint64
	// rest is the state without the status, which tells the story of a fight about the rest.
	rest uint64
}

func (p *pastWrites) check(_ *World, c *Change) string {
	if c.After == nil {
		return "" // What comes after it is another object.
	}
	past := slices.DeleteFunc(p.all[c.Key], func(w pastWrite) bool { return c.Time.Sub(w.at) > returnWindow })
	now := pastWrite{c.Time, stateOf(c.After), restOf(c.After)}
	returns, returnsOfRest := 0, 0
	for i, earlier := range past {
		if earlier.state == now.state && (i == 0 || past[i-1].state != now.state) {
			returns++
		}
		if now.rest != 0 && earlier.rest == now.rest && (i == 0 || past[i-1].rest != now.rest) {
			returnsOfRest++
		}
	}
	if len(past) > 0 && past[len(past)-1].rest != now.rest {
		returns = max(returns, returnsOfRest)
	}
	p.all[c.Key] = append(past, now)
	creations := p.countCreations(c)
	if c.Key.Kind == "StatefulSet" || c.Key.Kind == "DaemonSet" {
		returns = 0 // Their status has no times: it is the same again after each pod that is replaced.
	}
	if last, found := p.reported[c.Key]; found && c.Time.Sub(last) <= returnWindow || returns <= maxReturns && creations <= maxCreations && len(past) < maxWrites {
		return ""
	}
	p.reported[c.Key] = c.Time
	if creations > maxCreations {
		return fmt.Sprintf("it was created %d times for a drain within %v", creations, returnWindow)
	}
	if returns > maxReturns {
		return fmt.Sprintf("it returned to the same state %d times within %v", returns, returnWindow)
	}
	return fmt.Sprintf("it was written %d times within %v", len(past)+1, returnWindow)
}

// countCreations returns how often the request was created for a drain within the window; 0 if it is not now.
func (p *pastWrites) countCreations(c *Change) int {
	before, after, ok := versions[*coordinationv1alpha1.EvictionRequest](c)
	isForDrain := ok && after != nil && slices.ContainsFunc(after.Spec.Requesters, func(r coordinationv1alpha1.Requester) bool { return r.Name == drainRequester })
	if !isForDrain || before != nil && before.UID == after.UID {
		return 0
	}
	past := slices.DeleteFunc(p.created[c.Key], func(at time.Time) bool { return c.Time.Sub(at) > returnWindow })
	p.created[c.Key] = append(past, c.Time)
	return len(past) + 1
}

// restOf identifies the state of a node without its status; 0 for other objects, of which the status may be all.
func restOf(object Object) uint64 {
	node, ok := object.(*v1.Node)
	if !ok {
		return 0
	}
	plain := node.DeepCopy()
	plain.Status = v1.NodeStatus{}
	return stateOf(plain)
}

// stateOf identifies the state of an object. Who has written it when does not matter.
func stateOf(object Object) uint64 {
	plain := object.DeepCopyObject().(Object)
	plain.SetManagedFields(nil)
	plain.SetResourceVersion("")
	plain.SetGeneration(0)
	delete(plain.GetAnnotations(), ByHand)
	hash := fnv.New64a()
	_ = json.NewEncoder(hash).Encode(plain) // A hash takes everything, and these types can be encoded.
	return hash.Sum64()
}
