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

package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubectl/pkg/scheme"
)

// podSpecPaths are the paths of the pod template in the kinds that have one. That of a pod is the
// pod itself.
var podSpecPaths = map[schema.GroupVersionKind][]string{
	corev1.SchemeGroupVersion.WithKind("Pod"):                   nil,
	corev1.SchemeGroupVersion.WithKind("PodTemplate"):           {"template"},
	corev1.SchemeGroupVersion.WithKind("ReplicationController"): {"spec", "template"},
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"):             {"spec", "template"},
	appsv1.SchemeGroupVersion.WithKind("Deployment"):            {"spec", "template"},
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):            {"spec", "template"},
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"):           {"spec", "template"},
	batchv1.SchemeGroupVersion.WithKind("Job"):                  {"spec", "template"},
	batchv1.SchemeGroupVersion.WithKind("CronJob"):              {"spec", "jobTemplate", "spec", "template"},
}

// Fields of a pod.
const (
	interceptorsField = "evictionInterceptors"
	respondersField   = "evictionResponders"
	annotationsField  = "annotations"
	groupField        = "schedulingGroup"
)

// Limits and priorities of responders.
const (
	maxResponders = 10

	// maxResponderPriority is the highest priority; the lowest is 0. Responders of a higher priority
	// act earlier.
	maxResponderPriority = 100000

	// minOwnPriority is the lowest priority of responders that are no components of Kubernetes.
	minOwnPriority = 1000

	// The last of the interceptors of a pod gets the priority lastPriority, each one before it
	// priorityStep more. So they act before the controller of the pod, which has 10000, and there is
	// room for others.
	lastPriority = 11000
	priorityStep = 1000
)

// responder is a responder of a pod.
type responder struct {
	name     string
	priority int32
}

// podConversion converts the pod, or the pod template, of one object.
type podConversion struct {
	*converter
	where source
	// path is the path of the pod template, with a dot at its end, or empty for a pod.
	path string
	// template is the pod template or the pod, spec its spec.
	template, spec map[string]any
}

// convertPod converts the interceptors or responders of a pod or a workload. All else stays.
func (c *converter) convertPod(where source, kind schema.GroupVersionKind, path []string, object map[string]any) {
	template, found, err := unstructured.NestedFieldNoCopy(object, path...)
	fields, isMap := template.(map[string]any)
	if err != nil || found && !isMap {
		c.fail(where, strings.Join(path, "."), "is no object")
		return
	}
	p := &podConversion{converter: c, where: where, template: fields}
	if len(path) > 0 {
		p.path = strings.Join(path, ".") + "."
	}
	if p.spec, isMap = fields["spec"].(map[string]any); !isMap {
		c.fail(where, p.path+"spec", "is missing: a pod has a spec")
		return
	}
	before := len(c.errs)
	if c.to == ours {
		p.toInterceptors()
	}
	// What is left must be of this release: it has the types of no other.
	if len(c.errs) > before || !p.matches(kind, object) {
		return
	}
	if c.to == theirs {
		p.toResponders()
	}
	if len(c.errs) == before && p.cleanMetadata(object) {
		c.objects = append(c.objects, convertedObject{source: where, object: object})
	}
}

// matches reports errors for fields that the kind does not have.
func (p *podConversion) matches(kind schema.GroupVersionKind, object map[string]any) bool {
	_, hasResponders := p.spec[respondersField]
	if _, both := p.spec[interceptorsField]; hasResponders && both {
		p.fail(p.where, p.path+"spec."+respondersField, "the pod has %s, too: remove one of them", interceptorsField)
		return false
	}
	typed, err := scheme.Scheme.New(kind)
	if err != nil {
		p.fail(p.where, "", "%v", err)
		return false
	}
	return p.decode(p.where, object, typed)
}

// cleanMetadata removes the status, and what the server sets. It reports false if nothing is to be
// written.
func (p *podConversion) cleanMetadata(object map[string]any) bool {
	var meta struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if !p.decode(p.where, map[string]any{"metadata": object["metadata"]}, &meta) || p.isBeingDeleted(p.where, &meta.Metadata) {
		return false
	}
	if _, hasStatus := object["status"]; hasStatus {
		delete(object, "status")
		p.add(isIgnored, p.where, "status", "controllers and kubelets write it")
	}
	metadata, _ := object["metadata"].(map[string]any)
	if set := setByServer(&meta.Metadata); len(set) > 0 {
		p.add(isIgnored, p.where, "metadata", "the server sets %s", strings.Join(set, ", "))
		for _, name := range set {
			delete(metadata, name)
		}
	}
	return true
}

// toInterceptors replaces the responders of 1.37 by interceptors in the order of their priorities.
func (p *podConversion) toInterceptors() {
	value, found := p.spec[respondersField]
	if !found {
		return
	}
	if _, both := p.spec[interceptorsField]; both {
		return // Reported by matches.
	}
	path := p.path + "spec." + respondersField
	responders, valid := p.readResponders(path, value)
	if !valid {
		return
	}
	slices.SortStableFunc(responders, func(a, b responder) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), compareResponders(a.name, b.name))
	})
	var interceptors []any
	var order []string
	for _, r := range responders {
		if isReservedIn137(r.name) {
			p.add(isLost, p.where, withValue(path, r.name), "names in the domains %s are reserved, and here no component of Kubernetes has this name: interceptors of workload controllers are set by these",
				strings.Join(reservedIn137, " and "))
			continue
		}
		name := p.nameHere(p.where, path, r.name)
		for _, err := range evictioninterceptor.ValidateName(name, field.NewPath(path)) {
			p.fail(p.where, "", "%v", err)
		}
		interceptors = append(interceptors, map[string]any{"name": name})
		order = append(order, fmt.Sprintf("%s (%d)", name, r.priority))
	}
	delete(p.spec, respondersField)
	if len(interceptors) > 0 {
		p.spec[interceptorsField] = interceptors
		p.add(isChanged, p.where, path+"[*].priority", "the order of %s is that of the priorities: %s", interceptorsField, strings.Join(order, ", "))
	}
}

// readResponders reads responders, and reports what 1.37 would refuse.
func (p *podConversion) readResponders(path string, value any) ([]responder, bool) {
	var list struct {
		EvictionResponders []struct {
			Name     string `json:"name"`
			Priority *int32 `json:"priority"`
		} `json:"evictionResponders"`
	}
	before := len(p.errs)
	at := p.where
	at.object += ": " + p.path + "spec"
	if !p.decode(at, map[string]any{respondersField: value}, &list) {
		return nil, false
	}
	if count := len(list.EvictionResponders); count > maxResponders {
		p.fail(p.where, path, "has %d responders, more than %d", count, maxResponders)
	}
	var responders []responder
	for i, entry := range list.EvictionResponders {
		namePath, priorityPath := elementPath(path, i, "name"), elementPath(path, i, "priority")
		for _, err := range validation.IsDomainPrefixedKey(field.NewPath(namePath), entry.Name) {
			p.fail(p.where, "", "%v", err)
		}
		if slices.ContainsFunc(responders, func(r responder) bool { return r.name == entry.Name }) {
			p.fail(p.where, withValue(namePath, entry.Name), "is there twice: remove one of them")
		}
		switch {
		case entry.Priority == nil:
			p.fail(p.where, priorityPath, "is missing: set it, from 0 to %d", maxResponderPriority)
			continue
		case *entry.Priority < 0 || *entry.Priority > maxResponderPriority:
			p.fail(p.where, withValue(priorityPath, *entry.Priority), "must be from 0 to %d", maxResponderPriority)
		case *entry.Priority < minOwnPriority && !isReservedIn137(entry.Name):
			p.fail(p.where, withValue(priorityPath, *entry.Priority), "must be at least %d: lower ones are reserved for components of Kubernetes", minOwnPriority)
		}
		responders = append(responders, responder{name: entry.Name, priority: *entry.Priority})
	}
	return responders, len(p.errs) == before
}

// interceptor is an interceptor of a pod, from its spec or registered by an annotation.
type interceptor struct {
	name string
	path string
	// priority is that of an annotation, or -1.
	priority int
}

// toResponders replaces the interceptors, and the annotations that register some, by responders.
func (p *podConversion) toResponders() {
	kept := p.ownInterceptors(p.readInterceptors())
	delete(p.spec, interceptorsField)
	if _, grouped := p.spec[groupField]; grouped {
		for _, dropped := range kept {
			p.add(isLost, p.where, withValue(dropped.path, dropped.name), "1.37 refuses responders of a pod that has a %s: the pod is evicted without it", groupField)
		}
		return
	}
	if len(kept) > maxResponders {
		for _, dropped := range kept[maxResponders:] {
			p.add(isLost, p.where, withValue(dropped.path, dropped.name), "a pod has at most %d responders in 1.37, so this one, which acts late, does not act: let another one do its work", maxResponders)
		}
		kept = kept[:maxResponders]
	}
	if len(kept) == 0 {
		return
	}
	if _, found := p.spec[respondersField]; found {
		p.fail(p.where, p.path+"spec."+respondersField, "annotations of the pod register interceptors, too: remove one of them")
		return
	}
	var responders []any
	var order []string
	seen := map[string]string{}
	for i, priority := range priorities(kept) {
		name, valid := p.keyOf(p.where, kept[i].path, kept[i].name)
		if !valid {
			continue
		}
		if other, duplicate := seen[name]; duplicate {
			p.fail(p.where, withValue(kept[i].path, kept[i].name), "has the same name in 1.37 as %s, %s: choose another one with --rename", other, name)
			continue
		}
		seen[name] = kept[i].name
		responders = append(responders, map[string]any{"name": name, "priority": int64(priority)})
		order = append(order, fmt.Sprintf("%s (%d)", name, priority))
	}
	p.spec[respondersField] = responders
	p.add(isChanged, p.where, p.path+"spec."+interceptorsField, "the order is that of the priorities: %s", strings.Join(order, ", "))
}

// readInterceptors returns the interceptors in the order in which they act. It removes the
// annotations.
func (p *podConversion) readInterceptors() []interceptor {
	var found []interceptor
	path := p.path + "spec." + interceptorsField
	list, _ := p.spec[interceptorsField].([]any)
	for i, entry := range list {
		fields, _ := entry.(map[string]any)
		name, _ := fields["name"].(string)
		found = append(found, interceptor{name: name, path: elementPath(path, i, "name"), priority: -1})
		if slices.ContainsFunc(found[:i], func(other interceptor) bool { return other.name == name }) {
			p.fail(p.where, withValue(found[i].path, name), "is there twice: remove one of them")
		}
		for _, err := range evictioninterceptor.ValidateName(name, field.NewPath(found[i].path)) {
			p.fail(p.where, "", "%v", err)
		}
	}
	for _, registered := range p.takeRegistrations() {
		if !slices.ContainsFunc(found, func(other interceptor) bool { return other.name == registered.name }) {
			found = append(found, registered)
		}
	}
	if len(found) > evictioninterceptor.MaxOnPod {
		p.fail(p.where, path, "the pod has %d interceptors, more than %d", len(found), evictioninterceptor.MaxOnPod)
	}
	return found
}

// takeRegistrations removes the annotations that register interceptors, and returns these in the
// order in which they act.
func (p *podConversion) takeRegistrations() []interceptor {
	metadata, _ := p.template["metadata"].(map[string]any)
	annotations, _ := metadata[annotationsField].(map[string]any)
	path := p.path + "metadata." + annotationsField
	var registered []interceptor
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if _, registers := evictioninterceptor.RegisteredName(key); !registers {
			continue
		}
		value, _ := annotations[key].(string)
		registration, errs := evictioninterceptor.ParseRegistration(key, value, field.NewPath(path))
		for _, err := range errs {
			p.fail(p.where, "", "%v", err)
		}
		registered = append(registered, interceptor{name: registration.Name, path: path + "[" + key + "]", priority: registration.Priority})
		delete(annotations, key)
	}
	if len(registered) > 0 && len(annotations) == 0 {
		delete(metadata, annotationsField)
	}
	slices.SortStableFunc(registered, func(a, b interceptor) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.name, b.name))
	})
	return registered
}

// ownInterceptors removes those of workload controllers: 1.37 has no such responders.
func (p *podConversion) ownInterceptors(all []interceptor) []interceptor {
	return slices.DeleteFunc(all, func(i interceptor) bool {
		if !isReservedIn137(i.name) {
			return false
		}
		text := "1.37 has no such responder, and reserves the name: the pod is evicted without it"
		if i.name == coordinationv1alpha1.EvictionInterceptorDeployment {
			text = "1.37 creates no replacement before it evicts a pod of a Deployment: let budgets forbid outages"
		}
		p.add(isLost, p.where, withValue(i.path, i.name), "%s", text)
		return true
	})
}

// priorities returns descending priorities for interceptors in their order. Those of annotations are
// kept if the order allows it.
func priorities(all []interceptor) []int {
	registered := slices.IndexFunc(all, func(i interceptor) bool { return i.priority >= 0 })
	if registered < 0 {
		registered = len(all)
	}
	last := lastPriority
	keep := true
	for i := registered; i < len(all); i++ {
		keep = keep && all[i].priority >= minOwnPriority && (i == registered || all[i].priority < all[i-1].priority)
		last = max(last, all[i].priority+priorityStep)
	}
	if !keep || last+(registered-1)*priorityStep > coordinationv1alpha1.EvictionInterceptorMaxPriority {
		registered, last = len(all), lastPriority
	}
	result := make([]int, 0, len(all))
	for i := range all {
		if i < registered {
			result = append(result, last+(registered-1-i)*priorityStep)
		} else {
			result = append(result, all[i].priority)
		}
	}
	return result
}
