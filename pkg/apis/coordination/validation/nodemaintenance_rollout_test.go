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
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/utils/ptr"
)

// rollingOut returns a maintenance with a rollout, as defaulting leaves it, and the given changes.
func rollingOut(changes ...func(*coordination.NodeMaintenanceRollout)) *coordination.NodeMaintenance {
	maintenance := newMaintenance(inStage(drain))
	maintenance.Spec.Rollout = &coordination.NodeMaintenanceRollout{
		CompleteNodes: coordination.NodeCompletionManual, ReturnTimeoutSeconds: ptr.To[int32](1800), MaxFailedNodes: ptr.To[int32](0),
	}
	for _, change := range changes {
		change(maintenance.Spec.Rollout)
	}
	return maintenance
}

func maxConcurrent(value intstr.IntOrString) func(*coordination.NodeMaintenanceRollout) {
	return func(r *coordination.NodeMaintenanceRollout) { r.MaxConcurrent = &value }
}

func completing(policy coordination.NodeCompletionPolicy) func(*coordination.NodeMaintenanceRollout) {
	return func(r *coordination.NodeMaintenanceRollout) { r.CompleteNodes = policy }
}

func TestValidateRollout(t *testing.T) {
	invalid := field.ErrorList{field.Invalid(field.NewPath("spec", "rollout", "maxConcurrent"), nil,
		`must be a number of nodes, at least 1, or a percentage of them from 1% to 100%, such as 2 or "10%"`)}
	for name, test := range map[string]struct {
		maintenance *coordination.NodeMaintenance
		want        field.ErrorList
	}{
		"no limit":                    {maintenance: rollingOut()},
		"one node":                    {maintenance: rollingOut(maxConcurrent(intstr.FromInt32(1)))},
		"more nodes than there are":   {maintenance: rollingOut(maxConcurrent(intstr.FromInt32(2147483647)))},
		"the smallest percentage":     {maintenance: rollingOut(maxConcurrent(intstr.FromString("1%")))},
		"all nodes":                   {maintenance: rollingOut(maxConcurrent(intstr.FromString("100%")))},
		"no node":                     {maintenance: rollingOut(maxConcurrent(intstr.FromInt32(0))), want: invalid},
		"less than none":              {maintenance: rollingOut(maxConcurrent(intstr.FromInt32(-1))), want: invalid},
		"0 %":                         {maintenance: rollingOut(maxConcurrent(intstr.FromString("0%"))), want: invalid},
		"more than all":               {maintenance: rollingOut(maxConcurrent(intstr.FromString("101%"))), want: invalid},
		"more than a number can hold": {maintenance: rollingOut(maxConcurrent(intstr.FromString("99999999999999999999%"))), want: invalid},
		"a number in a string":        {maintenance: rollingOut(maxConcurrent(intstr.FromString("5"))), want: invalid},
		"a fraction":                  {maintenance: rollingOut(maxConcurrent(intstr.FromString("2.5%"))), want: invalid},
		"a sign":                      {maintenance: rollingOut(maxConcurrent(intstr.FromString("+5%"))), want: invalid},
		"an empty string":             {maintenance: rollingOut(maxConcurrent(intstr.FromString(""))), want: invalid},
		"left to declarative validation": {maintenance: rollingOut(completing("Never"), func(r *coordination.NodeMaintenanceRollout) {
			r.MaxFailedNodes, r.ReturnTimeoutSeconds = ptr.To[int32](-1), ptr.To[int32](0)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateNodeMaintenanceCreate(test.maintenance))
			if len(test.want) > 0 {
				matcher.Test(t, test.want, ValidateNodeMaintenanceUpdate(test.maintenance, rollingOut()))
			}
		})
	}
}

func TestValidateRolloutUpdate(t *testing.T) {
	path := field.NewPath("spec", "rollout")
	tooMany := maxConcurrent(intstr.FromString("200%"))
	for name, test := range map[string]struct {
		old, maintenance *coordination.NodeMaintenance
		want             field.ErrorList
	}{
		"none":      {old: newMaintenance(), maintenance: newMaintenance(inStage(drain))},
		"unchanged": {old: rollingOut(), maintenance: rollingOut()},
		"all that may change": {old: rollingOut(), maintenance: rollingOut(maxConcurrent(intstr.FromString("5%")), func(r *coordination.NodeMaintenanceRollout) {
			r.Paused, r.MaxFailedNodes, r.ReturnTimeoutSeconds = true, ptr.To[int32](3), ptr.To[int32](60)
		})},
		"the limit is removed":         {old: rollingOut(maxConcurrent(intstr.FromInt32(1))), maintenance: rollingOut()},
		"a stored limit that is wrong": {old: rollingOut(tooMany), maintenance: rollingOut(tooMany, func(r *coordination.NodeMaintenanceRollout) { r.Paused = true })},
		"the rollout is removed": {
			old: rollingOut(), maintenance: newMaintenance(inStage(drain)),
			want: field.ErrorList{field.Forbidden(path, "must not be removed: all remaining nodes would be drained at once. Raise maxConcurrent, or create another NodeMaintenance")},
		},
		"a rollout is added": {
			old: newMaintenance(inStage(idle)), maintenance: rollingOut(),
			want: field.ErrorList{field.Forbidden(path, "must not be added: the drain of the nodes may have begun. Create another NodeMaintenance with it, and complete this one")},
		},
		"another policy, and another limit": {
			old: rollingOut(), maintenance: rollingOut(completing(coordination.NodeCompletionRebooted), tooMany),
			want: field.ErrorList{
				field.Invalid(path.Child("completeNodes"), nil, "is immutable: keep Manual or create another NodeMaintenance"),
				field.Invalid(path.Child("maxConcurrent"), nil, ""),
			},
		},
		"another time to settle": {
			old: rollingOut(), maintenance: rollingOut(func(r *coordination.NodeMaintenanceRollout) { r.Settle = &coordination.NodeMaintenanceSettle{} }),
			want: field.ErrorList{field.Forbidden(path.Child("settle"), "is immutable: create another NodeMaintenance")},
		},
		"another policy, while it is deleted": {
			old: rollingOut(completing(coordination.NodeCompletionRebooted)), maintenance: rollingOut(),
			want: field.ErrorList{field.Invalid(path.Child("completeNodes"), nil, "is immutable: keep Rebooted")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateNodeMaintenanceUpdate(test.maintenance, test.old))
		})
	}
}

func TestValidateRolloutStatus(t *testing.T) {
	path := field.NewPath("status", "rolloutStatus")
	const detail = "must be greater than or equal to 0"
	as := func(status coordination.NodeMaintenanceRolloutStatus) progress {
		return func(s *coordination.NodeMaintenanceStatus) { s.RolloutStatus = &status }
	}
	negative := coordination.NodeMaintenanceRolloutStatus{WaitingNodes: -1, AdmittedNodes: -2, DoneNodes: -3, FailedNodes: -4, SkippedNodes: -5}
	waits := coordination.NodeMaintenanceRolloutStatus{WaitingFor: []coordination.NodeMaintenanceWait{{Reason: "Budget", NodeCount: 1}, {Reason: "Paused", NodeCount: -1}}}
	waitsStill := *waits.DeepCopy()
	waitsStill.WaitingNodes = 1
	counters := field.ErrorList{
		field.Invalid(path.Child("waitingNodes"), nil, detail), field.Invalid(path.Child("admittedNodes"), nil, detail),
		field.Invalid(path.Child("doneNodes"), nil, detail), field.Invalid(path.Child("failedNodes"), nil, detail), field.Invalid(path.Child("skippedNodes"), nil, detail),
	}
	none := func(*coordination.NodeMaintenanceStatus) {}
	for name, test := range map[string]struct {
		old, changed progress
		want         field.ErrorList
	}{
		"none":                              {old: none, changed: none},
		"the first":                         {old: none, changed: as(coordination.NodeMaintenanceRolloutStatus{WaitingNodes: 3, WaitingFor: waits.WaitingFor[:1]})},
		"removed":                           {old: as(negative), changed: none},
		"counters negative":                 {old: none, changed: as(negative), want: counters},
		"counters become negative":          {old: as(coordination.NodeMaintenanceRolloutStatus{}), changed: as(negative), want: counters},
		"counters negative, already stored": {old: as(negative), changed: as(coordination.NodeMaintenanceRolloutStatus{WaitingNodes: -1, AdmittedNodes: -2, DoneNodes: -3, FailedNodes: 0})},
		"a wait negative":                   {old: none, changed: as(waits), want: field.ErrorList{field.Invalid(path.Child("waitingFor").Index(1).Child("nodeCount"), nil, detail)}},
		"a wait negative, already stored":   {old: as(waits), changed: as(waitsStill)},
	} {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateNodeMaintenanceStatusUpdate(draining(test.changed), draining(test.old)))
		})
	}
}
