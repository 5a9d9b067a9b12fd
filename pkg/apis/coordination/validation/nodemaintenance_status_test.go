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

package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
)

// progress changes the status of a maintenance.
type progress func(*coordination.NodeMaintenanceStatus)

// draining returns a maintenance with a plan of two entries and the given status changes.
func draining(changes ...progress) *coordination.NodeMaintenance {
	maintenance := newMaintenance(inStage(drain), withPlan(defaultPods(1), defaultPods(2)))
	for _, change := range changes {
		change(&maintenance.Status)
	}
	return maintenance
}

func started(stage coordination.NodeMaintenanceStage, time *metav1.Time) progress {
	return func(s *coordination.NodeMaintenanceStatus) {
		s.StageStatuses = append(s.StageStatuses, coordination.StageStatus{Name: stage, StartTimestamp: time})
	}
}

func position(position int32) progress {
	return func(s *coordination.NodeMaintenanceStatus) { s.DrainStatus.DrainPlanPosition = ptr.To(position) }
}

func drained(change func(*coordination.DrainStatus)) progress {
	return func(s *coordination.NodeMaintenanceStatus) { change(&s.DrainStatus) }
}

func reached(entries ...core.DrainPlanEntry) progress {
	return drained(func(d *coordination.DrainStatus) { d.ReachedDrainTargets = entries })
}

func message(length int) progress {
	return drained(func(d *coordination.DrainStatus) { d.DrainMessage = strings.Repeat("ö", length) })
}

func observedGeneration(generation int64) progress {
	return func(s *coordination.NodeMaintenanceStatus) { s.ObservedGeneration = generation }
}

func drainedCondition(change func(*metav1.Condition)) progress {
	return func(s *coordination.NodeMaintenanceStatus) {
		condition := metav1.Condition{Type: "Drained", Status: metav1.ConditionFalse, Reason: "Blocked", Message: "The budget db does not allow the eviction.", LastTransitionTime: *at(0)}
		change(&condition)
		s.Conditions = append(s.Conditions, condition)
	}
}

func TestValidateNodeMaintenanceStatusUpdate(t *testing.T) {
	path := field.NewPath("status")
	stagesPath, drainPath, conditions := path.Child("stageStatuses"), path.Child("drainStatus"), path.Child("conditions")
	positionPath, generationPath := drainPath.Child("drainPlanPosition"), path.Child("observedGeneration")
	as := func(changes ...progress) []progress { return changes }
	negative := drained(func(d *coordination.DrainStatus) {
		d.PodsPendingEvictionRequest, d.ActiveEvictionRequests, d.DrainedNodes, d.BlockedPods = -1, -2, -3, -4
	})
	negativeNodes := func(s *coordination.NodeMaintenanceStatus) { s.SelectedNodes = -1 }
	negativeBlocker := drained(func(d *coordination.DrainStatus) {
		d.BlockerCount = -1
		d.Blockers = []coordination.DrainBlocker{{Cause: "Evicting", PodCount: 1, NodeCount: 1}, {Cause: "Unhandled", PodCount: -1, NodeCount: -1}}
	})
	noReason := drainedCondition(func(c *metav1.Condition) { c.Reason = "" })
	unknown := podsOf("Job", 1)

	tests := map[string]struct {
		old, changed []progress
		want         field.ErrorList
	}{
		"nothing": {},
		"the first update": {changed: as(started(cordon, at(0)), started(drain, at(0)), position(0), observedGeneration(3), message(32768), reached(defaultPods(1), ofApp("db", staticPods(1))),
			drainedCondition(func(*metav1.Condition) {}), drained(func(d *coordination.DrainStatus) {
				d.PodsPendingEvictionRequest, d.ActiveEvictionRequests, d.DrainedNodes, d.BlockedPods = 1, 2, 3, 4
			}), func(s *coordination.NodeMaintenanceStatus) { s.SelectedNodes = 5 })},
		"counters and targets decrease": {
			old:     as(reached(defaultPods(2)), drained(func(d *coordination.DrainStatus) { d.PodsPendingEvictionRequest, d.DrainedNodes = 9, 9 })),
			changed: as(reached())},

		"a stage is started":                            {old: as(started(cordon, at(0))), changed: as(started(cordon, at(0)), started(drain, at(9)))},
		"stages in another order":                       {old: as(started(cordon, at(0)), started(drain, at(9))), changed: as(started(drain, at(9)), started(cordon, at(0)))},
		"a start time is set":                           {old: as(started(cordon, nil)), changed: as(started(cordon, at(9)))},
		"left to declarative validation: unknown stage": {changed: as(started("Pause", at(0)))},
		"a stage is removed":                            {old: as(started(cordon, at(0)), started(drain, at(9))), changed: as(started(drain, at(9))), want: field.ErrorList{field.Forbidden(stagesPath, "must keep the entry of Cordon: the stage has started")}},
		"a stage without a time is removed":             {old: as(started(cordon, nil)), want: field.ErrorList{field.Forbidden(stagesPath, "must keep the entry of Cordon")}},
		"a stage starts again":                          {old: as(started(cordon, at(0))), changed: as(started(drain, at(0)), started(cordon, at(1))), want: field.ErrorList{field.Invalid(stagesPath.Index(1).Child("startTimestamp"), nil, "is immutable once set: Cordon was started at 2026-03-01T12:00:00Z")}},
		"a start time is removed":                       {old: as(started(cordon, at(0))), changed: as(started(cordon, nil)), want: field.ErrorList{field.Invalid(stagesPath.Index(0).Child("startTimestamp"), nil, "is immutable once set")}},

		"the next position":                           {old: as(position(0)), changed: as(position(1))},
		"the same position":                           {old: as(position(1)), changed: as(position(1))},
		"positions are skipped":                       {changed: as(position(1))},
		"after the last entry":                        {old: as(position(1)), changed: as(position(2)), want: field.ErrorList{field.Invalid(positionPath, nil, "must not be greater than 1, the index of the last entry of spec.drainPlan")}},
		"behind the last entry, already stored":       {old: as(position(7)), changed: as(position(7), message(1))},
		"further after the last entry":                {old: as(position(7)), changed: as(position(8)), want: field.ErrorList{field.Invalid(positionPath, nil, "must not be greater than 1")}},
		"from after the last entry back to it":        {old: as(position(7)), changed: as(position(1))},
		"from after the last entry back before it":    {old: as(position(7)), changed: as(position(0)), want: field.ErrorList{field.Invalid(positionPath, nil, "must not be less than the current value, 7")}},
		"the previous position":                       {old: as(position(1)), changed: as(position(0)), want: field.ErrorList{field.Invalid(positionPath, nil, "must not be less than the current value, 1")}},
		"the position is removed":                     {old: as(position(0)), want: field.ErrorList{field.Required(positionPath, "must not be removed: the current value is 0")}},
		"left to declarative validation: negative":    {changed: as(position(-1))},
		"a target of an unknown type":                 {changed: as(reached(defaultPods(1), unknown)), want: field.ErrorList{field.NotSupported[string](drainPath.Child("reachedDrainTargets").Index(1).Child("podType"), nil, nil)}},
		"a target of an unknown type, already stored": {old: as(reached(unknown)), changed: as(reached(unknown), message(1))},
		"a message that is too long":                  {changed: as(message(32769)), want: field.ErrorList{field.TooLong(drainPath.Child("drainMessage"), "", 32768)}},
		"a message that is too long, already stored":  {old: as(message(32769)), changed: as(message(32769), position(0))},
		"counters negative": {changed: as(negative), want: field.ErrorList{
			field.Invalid(drainPath.Child("podsPendingEvictionRequest"), nil, "must be greater than or equal to 0"),
			field.Invalid(drainPath.Child("activeEvictionRequests"), nil, "must be greater than or equal to 0"),
			field.Invalid(drainPath.Child("drainedNodes"), nil, "must be greater than or equal to 0"),
			field.Invalid(drainPath.Child("blockedPods"), nil, "must be greater than or equal to 0"),
		}},
		"blockers negative": {changed: as(negativeBlocker), want: field.ErrorList{
			field.Invalid(drainPath.Child("blockers").Index(1).Child("podCount"), nil, "must be greater than or equal to 0"),
			field.Invalid(drainPath.Child("blockers").Index(1).Child("nodeCount"), nil, "must be greater than or equal to 0"),
			field.Invalid(drainPath.Child("blockerCount"), nil, "must be greater than or equal to 0"),
		}},
		"blockers negative, already stored": {old: as(negativeBlocker), changed: as(negativeBlocker, message(1))},
		"counters negative, already stored": {old: as(negative), changed: as(negative, message(1))},
		"nodes negative":                    {changed: as(negativeNodes), want: field.ErrorList{field.Invalid(path.Child("selectedNodes"), nil, "must be greater than or equal to 0")}},
		"nodes negative, already stored":    {old: as(negativeNodes), changed: as(negativeNodes, message(1))},

		"an additional condition":                    {old: as(drainedCondition(func(*metav1.Condition) {})), changed: as(drainedCondition(func(*metav1.Condition) {}), drainedCondition(func(c *metav1.Condition) { c.Type = "example.com/Checked" }))},
		"a condition without reason":                 {changed: as(noReason), want: field.ErrorList{field.Required(conditions.Index(0).Child("reason"), "")}},
		"a condition without reason, already stored": {old: as(noReason), changed: as(noReason, message(1))},
		"a reason is removed":                        {old: as(drainedCondition(func(*metav1.Condition) {})), changed: as(noReason), want: field.ErrorList{field.Required(conditions.Index(0).Child("reason"), "")}},
		"a message of a condition that is too long": {changed: as(drainedCondition(func(c *metav1.Condition) { c.Message = strings.Repeat("x", 32769) })),
			want: field.ErrorList{field.TooLong(conditions.Index(0).Child("message"), "", 32768)}},

		"the generation is observed":          {old: as(observedGeneration(2)), changed: as(observedGeneration(3))},
		"a future generation":                 {old: as(observedGeneration(2)), changed: as(observedGeneration(4)), want: field.ErrorList{field.Invalid(generationPath, nil, "must not be less than the current value, 2, or greater than metadata.generation, 3")}},
		"a future generation, already stored": {old: as(observedGeneration(4)), changed: as(observedGeneration(4), message(1))},
		"an earlier generation":               {old: as(observedGeneration(2)), changed: as(observedGeneration(1)), want: field.ErrorList{field.Invalid(generationPath, nil, "must not be less than the current value, 2")}},
		"the whole status is removed":         {old: as(started(cordon, at(0)), position(1), observedGeneration(3)), want: field.ErrorList{field.Forbidden(stagesPath, ""), field.Required(positionPath, ""), field.Invalid(generationPath, nil, "")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateNodeMaintenanceStatusUpdate(draining(test.changed...), draining(test.old...)))
		})
	}
}

// No stage starts before spec.stage has reached it, or in another order than that of the stages. What is stored may stay.
func TestStageStarts(t *testing.T) {
	idle, complete := coordination.NodeMaintenanceStageIdle, coordination.NodeMaintenanceStageComplete
	path := field.NewPath("status", "stageStatuses")
	as := func(changes ...progress) []progress { return changes }
	notReached := func(i int, detail string) field.ErrorList {
		return field.ErrorList{field.Forbidden(path.Index(i), detail)}
	}
	badStart := func(i int, detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(path.Index(i).Child("startTimestamp"), nil, detail)}
	}
	tests := map[string]struct {
		stage        coordination.NodeMaintenanceStage
		old, changed []progress
		want         field.ErrorList
	}{
		"each stage":              {complete, nil, as(started(idle, at(0)), started(cordon, at(0)), started(drain, at(1)), started(complete, at(9))), nil},
		"stages were skipped":     {complete, nil, as(started(complete, at(9))), nil},
		"the next, at once":       {cordon, as(started(idle, at(5))), as(started(idle, at(5)), started(cordon, at(5))), nil},
		"the stage has gone on":   {drain, as(started(idle, at(0))), as(started(idle, at(0)), started(cordon, at(5))), nil},
		"Drain in Idle":           {idle, nil, as(started(idle, at(0)), started(drain, at(0))), notReached(1, "must not have the stage Drain, because spec.stage is Idle")},
		"Drain in Cordon":         {cordon, as(started(cordon, at(0))), as(started(drain, at(5)), started(cordon, at(0))), notReached(0, "must not have the stage Drain, because spec.stage is Cordon")},
		"Complete in Drain":       {drain, as(started(drain, at(0))), as(started(drain, at(0)), started(complete, at(5))), notReached(1, "Complete")},
		"without a time":          {cordon, nil, as(started(drain, nil)), notReached(0, "must not have the stage Drain")},
		"stored before its stage": {idle, as(started(drain, at(-9))), as(started(drain, at(-9)), started(idle, at(-9)), message(1)), nil},
		"its time is set":         {idle, as(started(drain, nil)), as(started(drain, at(-9))), notReached(0, "must not have the stage Drain")},
		"stored without a time":   {idle, as(started(drain, nil)), as(started(drain, nil), message(1)), nil},

		"before an earlier stage":          {drain, as(started(cordon, at(5))), as(started(cordon, at(5)), started(drain, at(4))), badStart(1, "must not be before 2026-03-01T12:00:05Z, when Cordon was started")},
		"before the last of earlier ones":  {drain, as(started(cordon, at(5)), started(idle, at(3))), as(started(cordon, at(5)), started(idle, at(3)), started(drain, at(4))), badStart(2, "must not be before 2026-03-01T12:00:05Z, when Cordon was started")},
		"after a later stage":              {drain, as(started(drain, at(5))), as(started(drain, at(5)), started(cordon, at(6))), badStart(1, "must not be after 2026-03-01T12:00:05Z, when Drain was started")},
		"after the first of later ones":    {complete, as(started(drain, at(5)), started(complete, at(7))), as(started(drain, at(5)), started(complete, at(7)), started(cordon, at(6))), badStart(2, "must not be after 2026-03-01T12:00:05Z, when Drain was started")},
		"both are new":                     {drain, nil, as(started(drain, at(5)), started(cordon, at(6))), append(badStart(0, "must not be before"), badStart(1, "must not be after")...)},
		"the time is set later":            {drain, as(started(cordon, at(5)), started(drain, nil)), as(started(cordon, at(5)), started(drain, at(4))), badStart(1, "must not be before")},
		"stored in another order":          {drain, as(started(cordon, at(5)), started(drain, at(4))), as(started(cordon, at(5)), started(drain, at(4)), message(1)), nil},
		"a later one without a time":       {drain, as(started(drain, nil)), as(started(drain, nil), started(cordon, at(6))), nil},
		"between ones in another order":    {drain, as(started(idle, at(5)), started(drain, at(3))), as(started(idle, at(5)), started(drain, at(3)), started(cordon, at(9))), nil},
		"after ones that are not in order": {complete, as(started(cordon, at(5)), started(drain, at(3))), as(started(cordon, at(5)), started(drain, at(3)), started(complete, at(5))), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old, changed := draining(test.old...), draining(test.changed...)
			old.Spec.Stage, changed.Spec.Stage = test.stage, test.stage
			matcher.Test(t, test.want, ValidateNodeMaintenanceStatusUpdate(changed, old))
		})
	}
}

// A plan may be empty if the admission plugin is off. Its only valid position is 0.
func TestPositionInAnEmptyPlan(t *testing.T) {
	path := field.NewPath("status", "drainStatus", "drainPlanPosition")
	for at, want := range map[int32]field.ErrorList{0: nil, 1: {field.Invalid(path, nil, "must not be greater than 0")}} {
		old := newMaintenance(inStage(drain))
		changed := old.DeepCopy()
		position(at)(&changed.Status)
		matcher.Test(t, want, ValidateNodeMaintenanceStatusUpdate(changed, old))
	}
}

func TestMetadataInAStatusUpdate(t *testing.T) {
	changed := draining()
	changed.Name = "other"
	matcher.Test(t, field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), nil, "field is immutable")}, ValidateNodeMaintenanceStatusUpdate(changed, draining()))
}
