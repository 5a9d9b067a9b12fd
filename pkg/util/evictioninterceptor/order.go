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

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// MaxOnPod is how many interceptors a pod may have, in its spec and by annotation.
	MaxOnPod = 15

	// maxTargets is how many an eviction request has: those, and the built-in one.
	maxTargets = MaxOnPod + 1
)

// TargetNames returns the interceptors of a pod in the order in which they get their
// turn: those of the spec, those registered by annotation, the defaults for that kind of
// pod, and the built-in one. Registered ones never precede those of the spec, whatever
// their priority: annotations can be set by many more clients than the author of the pod,
// by each that writes its status for example, and every silent one takes its deadline.
// Those that the author has registered in a template are in the spec: see AddTo.
//
// Pods stored while nobody checked their annotations can hold anything, so what is not
// valid is skipped. If there are too many for one request, registered ones stay out
// first, the lowest priority before the others, then defaults, the last one first:
// nobody can push out whom the author of the pod has named.
func TargetNames(specNames []string, annotations map[string]string, defaults []string) []string {
	seen := sets.New(imperative)
	named := firstSeen(specNames, seen, maxTargets-1)
	appended := firstSeen(defaults, seen, maxTargets-1-len(named))
	room := maxTargets - 1 - len(named) - len(appended)
	var registered []string
	for _, registration := range validRegistrations(annotations) {
		if i := slices.Index(appended, registration.Name); i >= 0 {
			appended = slices.Delete(appended, i, i+1) // It moves, and takes its room along.
		} else if seen.Has(registration.Name) || room == 0 {
			continue
		} else {
			room--
		}
		registered = append(registered, registration.Name)
	}
	return slices.Concat(named, registered, appended, []string{imperative})
}

// firstSeen returns the names that are new, up to that many, and adds them to seen.
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

// validRegistrations returns what the annotations register, the highest priority first
// and those of the same priority by their names. Of several controllers only the first
// by name is one.
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
