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
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Rule is something that has to be so at each revision.
type Rule struct {
	Name string
	// check returns what is wrong with a change; empty if nothing is. The world has the change already.
	check func(w *World, c *Change) string
}

// AllRules returns all rules. They have states of their own, so each history takes new ones.
func AllRules() []Rule {
	return slices.Concat(RequestRules(), BudgetRules(), NodeRules(), FleetRules(), WorkloadRules(), LifecycleRules(), PaceRules())
}

// Violation is a change that breaks a rule.
type Violation struct {
	Rule   string
	Change Change
	Text   string
	// related are earlier changes of what the change is about, and recent the last ones of all.
	related []Change
	start   time.Time
}

const (
	// keptChanges is how many changes a Checker remembers, and maxRelated how many a Violation shows.
	keptChanges = 5000
	maxRelated  = 20
)

// Checker evaluates rules at each revision.
type Checker struct {
	world      *World
	rules      []Rule
	recent     []Change
	start      time.Time
	revisions  int
	violations []Violation
	tally      map[string]int
	// byHand are the nodes that a person has cordoned.
	byHand handCordons
}

// NewChecker returns a Checker with these rules, for a cluster without objects.
func NewChecker(rules []Rule) *Checker {
	return &Checker{world: NewWorld(), rules: rules, tally: map[string]int{}, byHand: newHandCordons()}
}

// Add makes the changes of a revision, and returns the rules that they break.
func (c *Checker) Add(changes []Change) []Violation {
	c.revisions++
	for i := range changes {
		if c.start.IsZero() {
			c.start = changes[i].Time
		}
		c.world.Apply(&changes[i])
		c.recent = append(c.recent, changes[i])
	}
	if len(c.recent) > 2*keptChanges {
		c.recent = slices.Clone(c.recent[len(c.recent)-keptChanges:])
	}
	var found []Violation
	for i := range changes {
		c.world.observe(&changes[i])
		c.byHand.check(c.world, &changes[i])
		for _, what := range begins(&changes[i]) {
			c.tally[what]++
		}
		for _, rule := range c.rules {
			if text := rule.check(c.world, &changes[i]); text != "" {
				found = append(found, Violation{Rule: rule.Name, Change: changes[i], Text: text, related: c.related(&changes[i], text), start: c.start})
			}
		}
	}
	c.violations = append(c.violations, found...)
	return found
}

// Revisions returns how many revisions were checked.
func (c *Checker) Revisions() int { return c.revisions }

// Revision returns the last revision that was checked.
func (c *Checker) Revision() int64 { return c.world.Revision }

// Tally returns how often each condition of objects of each kind became True, as "EvictionRequest Evicted", and how often
// nodes were uncordoned, were begun with, and were given back. A history without them proves nothing about them.
func (c *Checker) Tally() map[string]int { return maps.Clone(c.tally) }

// begins returns what begins with a change.
func begins(c *Change) []string {
	before, after := conditionsOf(c.Before), conditionsOf(c.After)
	if c.Before != nil && c.After != nil && c.Before.GetUID() != c.After.GetUID() {
		before = nil
	}
	var what []string
	for conditionType := range after {
		if !before[conditionType] {
			what = append(what, c.Key.Kind+" "+conditionType)
		}
	}
	if was, is, ok := versions[*v1.Node](c); ok && was != nil && is != nil && was.Spec.Unschedulable && !is.Spec.Unschedulable {
		what = append(what, "Node uncordoned")
	}
	if was, is, ok := versions[*v1.Node](c); ok && was != nil && is != nil {
		if len(begunWith(is)) > len(begunWith(was)) {
			what = append(what, "Node begun with")
		}
		if countDone(is) > countDone(was) {
			what = append(what, "Node given back")
		}
	}
	return what
}

// conditionsOf returns the conditions that are True.
func conditionsOf(object Object) map[string]bool {
	is := map[string]bool{}
	add := func(conditions []metav1.Condition) {
		for _, condition := range conditions {
			if condition.Status == metav1.ConditionTrue {
				is[condition.Type] = true
			}
		}
	}
	switch object := object.(type) {
	case *coordinationv1alpha1.EvictionRequest:
		add(object.Status.Conditions)
	case *lifecyclev1alpha1.EvictionRequest:
		add(object.Status.Conditions)
	case *lifecyclev1alpha1.Eviction:
		add(object.Status.Conditions)
	case *coordinationv1alpha1.NodeMaintenance:
		add(object.Status.Conditions)
	case *v1.Node:
		for _, condition := range object.Status.Conditions {
			if condition.Status == v1.ConditionTrue {
				is[string(condition.Type)] = true
			}
		}
	}
	return is
}

// Violations returns all that were found.
func (c *Checker) Violations() []Violation { return c.violations }

// World returns all objects as of the last revision.
func (c *Checker) World() *World { return c.world }

// related returns the last changes of the objects that have to do with this one, or that a text names.
func (c *Checker) related(change *Change, text string) []Change {
	wanted := topics(change)
	named := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,:", r) })
	for i := range c.recent {
		if key := c.recent[i].Key; slices.Contains(named, key.Name) || slices.Contains(named, key.NamespacedName.String()) {
			wanted = append(wanted, key.String())
		}
	}
	var related []Change
	for i := len(c.recent) - 1; i >= 0 && len(related) < maxRelated; i-- {
		if slices.ContainsFunc(topics(&c.recent[i]), func(topic string) bool { return slices.Contains(wanted, topic) }) {
			related = append(related, c.recent[i])
		}
	}
	slices.Reverse(related)
	return related
}

// topics are what a change is about: the object, and the pod and the node to which it belongs.
func topics(c *Change) []string {
	of := []string{c.Key.String()}
	for _, object := range []Object{c.Before, c.After} {
		switch object := object.(type) {
		case *v1.Pod:
			of = append(of, string(object.UID), "Node/"+object.Spec.NodeName)
		case *coordinationv1alpha1.EvictionRequest:
			of = append(of, object.Name)
		case *lifecyclev1alpha1.EvictionRequest:
			of = append(of, string(object.Spec.Target.Pod.UID))
		case *lifecyclev1alpha1.Eviction:
			of = append(of, string(object.Spec.Target.Pod.UID))
		}
	}
	return of
}

// String returns the violation, the object before and after it, and how it came to that.
func (v *Violation) String() string {
	var text strings.Builder
	if v.Change.Before == nil && v.Change.After == nil {
		return fmt.Sprintf("revision %d breaks %q: %s", v.Change.Revision, v.Rule, v.Text)
	}
	fmt.Fprintf(&text, "revision %d breaks %q: %s: %s\n", v.Change.Revision, v.Rule, v.Change.Key, v.Text)
	fmt.Fprintf(&text, "the object (-before, +after):\n%s\n", cmp.Diff(document(v.Change.Before), document(v.Change.After)))
	fmt.Fprintf(&text, "the last changes of what it is about:\n")
	for i := range v.related {
		c := &v.related[i]
		fmt.Fprintf(&text, "%9d %9.3fs  %s: %s\n", c.Revision, c.Time.Sub(v.start).Seconds(), c.Key, summary(c))
	}
	return text.String()
}

// document returns an object as lines of YAML, without what says nothing.
func document(object Object) []string {
	if object == nil {
		return nil
	}
	shown := object.DeepCopyObject().(Object)
	shown.SetManagedFields(nil)
	data, err := yaml.Marshal(shown)
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(string(data), "\n")
}

// summary says in a line what a change has done.
func summary(c *Change) string {
	switch {
	case c.Before == nil:
		return "created, " + state(c.After)
	case c.After == nil:
		return "gone, was " + state(c.Before)
	}
	return state(c.After) + ", by " + writer(c.Before, c.After)
}

// writer names the field managers whose entries are new or later.
func writer(before, after Object) string {
	var writers []string
	for _, entry := range after.GetManagedFields() {
		if !slices.ContainsFunc(before.GetManagedFields(), func(old metav1.ManagedFieldsEntry) bool { return cmp.Equal(old, entry) }) {
			writers = append(writers, strings.TrimSuffix(entry.Manager+"/"+entry.Subresource, "/"))
		}
	}
	if len(writers) == 0 {
		return "nobody who owns a field"
	}
	return strings.Join(writers, " and ")
}

// state says how an object is.
func state(object Object) string {
	var parts []string
	add := func(condition bool, format string, args ...any) {
		if condition {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(object.GetDeletionTimestamp() != nil, "being deleted")
	conditions := func(all []metav1.Condition) {
		for _, condition := range all {
			add(condition.Status == metav1.ConditionTrue, "%s (%s)", condition.Type, condition.Reason)
		}
	}
	switch object := object.(type) {
	case *v1.Pod:
		add(true, "on %q, %s, ready: %t", object.Spec.NodeName, object.Status.Phase, isReady(object))
		add(markOf(object) != "", "marked: %s", markOf(object))
	case *v1.Node:
		add(true, "unschedulable: %t", object.Spec.Unschedulable)
		for _, condition := range object.Status.Conditions {
			add(condition.Status == v1.ConditionTrue, "%s (%s)", condition.Type, condition.Reason)
		}
		if status := object.Status.MaintenanceStatus; status != nil {
			add(true, "targets: %v", targets(status.DrainTargets))
		}
	case *coordinationv1alpha1.EvictionRequest:
		var requesters []string
		for _, requester := range object.Spec.Requesters {
			requesters = append(requesters, requester.Name)
		}
		add(true, "UID %.8s, for %v, active: %v, processed: %v", object.UID, requesters, object.Status.ActiveInterceptors, object.Status.ProcessedInterceptors)
		conditions(object.Status.Conditions)
	case *lifecyclev1alpha1.EvictionRequest:
		add(true, "intent %s", object.Spec.Intent)
		conditions(object.Status.Conditions)
	case *lifecyclev1alpha1.Eviction:
		add(true, "responders: %v", responderStates(object))
		conditions(object.Status.Conditions)
	case *coordinationv1alpha1.NodeMaintenance:
		add(true, "stage %s", object.Spec.Stage)
		conditions(object.Status.Conditions)
	default:
		data, err := json.Marshal(object)
		add(err == nil, "%d bytes", len(data))
	}
	return strings.Join(parts, ", ")
}
