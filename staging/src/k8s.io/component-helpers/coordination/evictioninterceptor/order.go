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

package evictioninterceptor

import (
	"cmp"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// MaxOnPod is the maximum number of interceptors of a pod, in its spec and by annotation.
	MaxOnPod = 15

	// maxTargets is the maximum number of interceptors of a request: those and the built-in one.
	maxTargets = MaxOnPod + 1
)

// TargetNames returns the interceptors of a pod in the order in which they are activated: those of
// the spec, those registered by annotation, the defaults for this kind of pod, and the built-in
// one. Registered ones never precede those of the spec, at any priority: many more clients than the
// author of the pod can set annotations, for example every client that can write its status, and
// each unresponsive interceptor delays the eviction by its deadline. Registrations in a pod
// template are in the spec: see AddTo.
//
// Pods that were stored without validation of their annotations may contain anything, so invalid
// registrations are ignored. If there are too many interceptors for one request, registered ones
// are dropped first, starting with the lowest priority, and then defaults, starting with the last.
// So no annotation can displace an interceptor that the author of the pod has named.
func TargetNames(specNames []string, annotations map[string]string, defaults []string) []string {
	return targetNames(specNames, annotations, defaults, responders{})
}

// responders are the names of responders that act before all others, and after those of the spec and of annotations, but for
// those that remove the pod.
type responders struct{ before, after []string }

func (r responders) has(name string) bool {
	return slices.Contains(r.before, name) || slices.Contains(r.after, name)
}

// targetNames is TargetNames with responders. If there are too many, they are dropped after registered interceptors,
// starting with the last one. A name that is there as that of an interceptor too has its place as a responder, because
// their order among each other is that of an Eviction.
func targetNames(specNames []string, annotations map[string]string, defaults []string, responders responders) []string {
	seen := sets.New(imperative)
	named := firstSeen(slices.DeleteFunc(slices.Clone(specNames), responders.has), seen, maxTargets-1)
	appended := firstSeen(defaults, seen, maxTargets-1-len(named))
	before := firstSeen(responders.before, seen, maxTargets-1-len(named)-len(appended))
	after := firstSeen(responders.after, seen, maxTargets-1-len(named)-len(appended)-len(before))
	remaining := maxTargets - 1 - len(named) - len(appended) - len(before) - len(after)
	var registered []string
	for _, registration := range validRegistrations(annotations) {
		if i := slices.Index(appended, registration.Name); i >= 0 {
			appended = slices.Delete(appended, i, i+1) // It moves to the registered ones, with its slot.
		} else if seen.Has(registration.Name) || remaining == 0 {
			continue
		} else {
			remaining--
		}
		registered = append(registered, registration.Name)
	}
	// Defaults have no deadline, also if they are named: behind them, a registered one would never act.
	ordinary := len(named)
	for ordinary > 0 && slices.Contains(defaults, named[ordinary-1]) {
		ordinary--
	}
	early := slices.Concat(before, named[:ordinary], registered)
	at := len(early)
	if first := slices.IndexFunc(early, removesPod); first >= 0 {
		at = first
	}
	return slices.Concat(early[:at], after, early[at:], named[ordinary:], appended, []string{imperative})
}

// removesPod reports whether an interceptor is a controller that removes the pod itself when its turn is over, because it has
// replaced it. Whoever comes after it acts only if there was no replacement.
func removesPod(interceptor string) bool {
	return interceptor == coordinationv1alpha1.EvictionInterceptorDeployment || interceptor == coordinationv1alpha1.EvictionInterceptorReplicaSet
}

// firstSeen returns at most limit names that are not in seen, and adds them to seen.
func firstSeen(names []string, seen sets.Set[string], limit int) []string {
	var first []string
	for _, name := range names {
		if len(first) < limit && !seen.Has(name) {
			seen.Insert(name)
			first = append(first, name)
		}
	}
	return first
}

// validRegistrations returns the valid registrations of the annotations, sorted by descending
// priority and then by name. Of several registrations as the controller, only the first one by name
// counts.
func validRegistrations(annotations map[string]string) []Registration {
	var registrations []Registration
	for key, value := range annotations {
		if _, registers := RegisteredName(key); !registers {
			continue
		}
		if registration, errs := ParseRegistration(key, value, nil); len(errs) == 0 {
			registrations = append(registrations, registration)
		}
	}
	slices.SortFunc(registrations, func(a, b Registration) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	controllers := 0
	return slices.DeleteFunc(registrations, func(registration Registration) bool {
		if registration.IsController() {
			controllers++
		}
		return registration.IsController() && controllers > 1
	})
}
