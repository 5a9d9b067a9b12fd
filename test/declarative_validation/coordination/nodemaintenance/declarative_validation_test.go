/*
Copyright The Kubernetes Authors.

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

package nodemaintenance

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	registry "k8s.io/kubernetes/pkg/registry/coordination/nodemaintenance"
	"k8s.io/kubernetes/test/declarative_validation/coordination/internal/declared"
	"k8s.io/kubernetes/test/declarative_validation/meta"
	"k8s.io/utils/ptr"
)

const resource = "nodemaintenances"

// change changes a maintenance.
type change func(*coordination.NodeMaintenance)

// newMaintenance returns a valid stored maintenance with the given changes.
func newMaintenance(changes ...change) *coordination.NodeMaintenance {
	maintenance := &coordination.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "upgrade", ResourceVersion: "1"},
		Spec: coordination.NodeMaintenanceSpec{
			NodeSelector: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
				MatchExpressions: []core.NodeSelectorRequirement{{Key: "pool", Operator: core.NodeSelectorOpExists}},
			}}},
			Stage: coordination.NodeMaintenanceStageIdle,
		},
	}
	for _, change := range changes {
		change(maintenance)
	}
	return maintenance
}

// wanting changes the spec.
func wanting(change func(*coordination.NodeMaintenanceSpec)) change {
	return func(m *coordination.NodeMaintenance) { change(&m.Spec) }
}

func inStage(stage coordination.NodeMaintenanceStage) change {
	return wanting(func(s *coordination.NodeMaintenanceSpec) { s.Stage = stage })
}

func because(reason string) change {
	return wanting(func(s *coordination.NodeMaintenanceSpec) { s.Reason = reason })
}

// planned sets a plan of this length.
func planned(length int) change {
	return wanting(func(s *coordination.NodeMaintenanceSpec) {
		for priority := range length {
			s.DrainPlan = append(s.DrainPlan, core.DrainPlanEntry{PodType: core.PodTypeDefault, PodPriority: int32(priority)})
		}
	})
}

// rolledOut sets a rollout with these numbers, and else as defaulting leaves it.
func rolledOut(maxFailedNodes, returnTimeout int32) change {
	return wanting(func(s *coordination.NodeMaintenanceSpec) {
		s.Rollout = &coordination.NodeMaintenanceRollout{
			CompleteNodes: coordination.NodeCompletionManual, MaxFailedNodes: &maxFailedNodes, ReturnTimeoutSeconds: &returnTimeout,
		}
	})
}

// settling changes a rollout.
func settling(replacements coordination.NodeMaintenanceReplacements, timeout *int32) change {
	return wanting(func(s *coordination.NodeMaintenanceSpec) {
		s.Rollout.Settle = &coordination.NodeMaintenanceSettle{Replacements: replacements, TimeoutSeconds: timeout}
	})
}

// acknowledging changes a rollout: so many nodes are acknowledged, whose UIDs have that length.
func acknowledging(nodes, length int) change {
	return wanting(func(s *coordination.NodeMaintenanceSpec) {
		for i := range nodes {
			s.Rollout.AcknowledgedNodeUIDs = append(s.Rollout.AcknowledgedNodeUIDs, types.UID(fmt.Sprintf("%0*d", length, i)))
		}
	})
}

func waitingFor(volumes coordination.NodeMaintenanceVolumes, timeout *int32) change {
	return wanting(func(s *coordination.NodeMaintenanceSpec) {
		s.DrainedWhen = &coordination.NodeMaintenanceDrainedWhen{Volumes: volumes, TimeoutSeconds: timeout}
	})
}

// following sets so many policies with this action and so many resources.
func following(action coordination.NodeMaintenancePodAction, policies, resources int) change {
	policy := coordination.NodeMaintenancePodPolicy{Action: action}
	for _, name := range declared.Numbered(resources) {
		policy.ResourceNames = append(policy.ResourceNames, core.ResourceName(name))
	}
	return wanting(func(s *coordination.NodeMaintenanceSpec) {
		s.PodPolicies = slices.Repeat([]coordination.NodeMaintenancePodPolicy{policy}, policies)
	})
}

// escalating sets a step after each of these times. It needs a rollout.
func escalating(action core.MaintenanceEscalation, seconds ...int32) change {
	return wanting(func(s *coordination.NodeMaintenanceSpec) {
		for _, after := range seconds {
			s.Escalation = append(s.Escalation, coordination.NodeMaintenanceEscalationStep{AfterSeconds: after, Action: action})
		}
	})
}

func TestObjectMeta(t *testing.T) {
	for _, version := range apiVersions {
		t.Run(version, func(t *testing.T) {
			create, update := declared.Context(version, "create", resource, ""), declared.Context(version, "update", resource, "")
			meta.RunObjectMetaTestCases(t, create, newMaintenance(), registry.Strategy, meta.WithStringentFinalizerValidation())
			meta.RunObjectMetaUpdateTestCases(t, update, newMaintenance(), registry.Strategy, meta.WithStringentFinalizerValidation())
		})
	}
}

// test has changes of a valid maintenance, and the errors that they cause.
type test struct {
	changes []change
	want    field.ErrorList
}

func as(changes ...change) []change { return changes }

// The rules of what may change are the same for a new maintenance and for one that is changed.
func TestSpec(t *testing.T) {
	spec := field.NewPath("spec")
	for name, test := range map[string]test{
		"no selector": {
			changes: as(wanting(func(s *coordination.NodeMaintenanceSpec) { s.NodeSelector = nil })),
			want:    field.ErrorList{declared.Missing(spec.Child("nodeSelector"))},
		},
		"another stage":                       {changes: as(inStage(coordination.NodeMaintenanceStageDrain))},
		"an unknown stage":                    {changes: as(inStage("Pause")), want: field.ErrorList{declared.Unknown(spec.Child("stage"))}},
		"no stage, which defaulting prevents": {changes: as(inStage("")), want: field.ErrorList{declared.Missing(spec.Child("stage"))}},
		"the longest reason":                  {changes: as(because(strings.Repeat("é", 1024)))},
		"a reason that is too long":           {changes: as(because(strings.Repeat("é", 1025))), want: field.ErrorList{declared.TooLong(spec.Child("reason"), 1024)}},
	} {
		for _, version := range apiVersions {
			t.Run(version+", "+name, func(t *testing.T) {
				maintenance := newMaintenance(test.changes...)
				apitesting.VerifyValidationEquivalence(t, declared.Context(version, "create", resource, ""), maintenance, registry.Strategy, test.want)
				apitesting.VerifyUpdateValidationEquivalence(t, declared.Context(version, "update", resource, ""), maintenance, newMaintenance(), registry.Strategy, test.want)
			})
		}
	}
}

// verifyCreate verifies new maintenances with the changes. Updates change little of what they set.
func verifyCreate(t *testing.T, tests map[string]test) {
	for name, test := range tests {
		for _, version := range apiVersions {
			t.Run(version+", "+name, func(t *testing.T) {
				ctx := declared.Context(version, "create", resource, "")
				apitesting.VerifyValidationEquivalence(t, ctx, newMaintenance(test.changes...), registry.Strategy, test.want)
			})
		}
	}
}

func TestRollout(t *testing.T) {
	path := field.NewPath("spec", "rollout")
	settle := path.Child("settle")
	rollout := rolledOut(0, 1800)
	verifyCreate(t, map[string]test{
		"the smallest numbers of a rollout": {changes: as(rolledOut(0, 1))},
		"the largest number of a rollout":   {changes: as(rolledOut(math.MaxInt32, 604800))},
		"numbers that are too small":        {changes: as(rolledOut(-1, 0)), want: field.ErrorList{declared.TooSmall(path.Child("maxFailedNodes")), declared.TooSmall(path.Child("returnTimeoutSeconds"))}},
		"a number that is too large":        {changes: as(rolledOut(0, 604801)), want: field.ErrorList{declared.TooLarge(path.Child("returnTimeoutSeconds"))}},
		"a rollout of nothing, which defaulting prevents": {
			changes: as(wanting(func(s *coordination.NodeMaintenanceSpec) { s.Rollout = &coordination.NodeMaintenanceRollout{} })),
			want: field.ErrorList{
				declared.Missing(path.Child("completeNodes")), declared.Missing(path.Child("returnTimeoutSeconds")), declared.Missing(path.Child("maxFailedNodes")),
			},
		},
		"an unknown way to complete nodes": {
			changes: as(rollout, wanting(func(s *coordination.NodeMaintenanceSpec) { s.Rollout.CompleteNodes = "Never" })),
			want:    field.ErrorList{declared.Unknown(path.Child("completeNodes"))},
		},

		"as many acknowledged nodes as possible":         {changes: as(rollout, acknowledging(1000, 64))},
		"too many acknowledged nodes":                    {changes: as(rollout, acknowledging(1001, 64)), want: field.ErrorList{declared.TooMany(path.Child("acknowledgedNodeUIDs"), 1000)}},
		"a UID of an acknowledged node that is too long": {changes: as(rollout, acknowledging(1, 65)), want: field.ErrorList{declared.TooLong(path.Child("acknowledgedNodeUIDs").Index(0), 64)}},
		"a node that is acknowledged twice": {
			changes: as(rollout, wanting(func(s *coordination.NodeMaintenanceSpec) { s.Rollout.AcknowledgedNodeUIDs = []types.UID{"a", "b", "a"} })),
			want:    field.ErrorList{field.Duplicate(path.Child("acknowledgedNodeUIDs").Index(2), types.UID("a"))},
		},

		"the shortest time to settle": {changes: as(rollout, settling(coordination.NodeMaintenanceReplacementsAvailable, ptr.To[int32](1)))},
		"the longest time to settle":  {changes: as(rollout, settling(coordination.NodeMaintenanceReplacementsAvailable, ptr.To[int32](86400)))},
		"an unknown word and no time to settle": {
			changes: as(rollout, settling("Running", ptr.To[int32](0))),
			want:    field.ErrorList{declared.Unknown(settle.Child("replacements")), declared.TooSmall(settle.Child("timeoutSeconds"))},
		},
		"too long to settle": {
			changes: as(rollout, settling(coordination.NodeMaintenanceReplacementsAvailable, ptr.To[int32](86401))),
			want:    field.ErrorList{declared.TooLarge(settle.Child("timeoutSeconds"))},
		},
		"neither a word nor a timeout to settle": {
			changes: as(rollout, settling("", nil)),
			want:    field.ErrorList{declared.Missing(settle.Child("replacements")), declared.Missing(settle.Child("timeoutSeconds"))},
		},
	})
}

func TestDrain(t *testing.T) {
	spec := field.NewPath("spec")
	volumes, policies, steps := spec.Child("drainedWhen"), spec.Child("podPolicies"), spec.Child("escalation")
	const skip, ignore = coordination.NodeMaintenancePodSkip, core.MaintenanceEscalationIgnoreBudgets
	rollout := rolledOut(0, 1800)
	verifyCreate(t, map[string]test{
		"the longest plan":        {changes: as(planned(100))},
		"a plan that is too long": {changes: as(planned(101)), want: field.ErrorList{declared.TooMany(spec.Child("drainPlan"), 100)}},

		"the shortest wait for volumes":                     {changes: as(waitingFor(coordination.NodeMaintenanceVolumesDetached, ptr.To[int32](1)))},
		"the longest wait for volumes":                      {changes: as(waitingFor("", ptr.To[int32](86400)))},
		"an unknown word and no time for volumes":           {changes: as(waitingFor("Gone", ptr.To[int32](0))), want: field.ErrorList{declared.Unknown(volumes.Child("volumes")), declared.TooSmall(volumes.Child("timeoutSeconds"))}},
		"too long to wait for volumes":                      {changes: as(waitingFor("", ptr.To[int32](86401))), want: field.ErrorList{declared.TooLarge(volumes.Child("timeoutSeconds"))}},
		"no timeout for volumes, which defaulting prevents": {changes: as(waitingFor("", nil)), want: field.ErrorList{declared.Missing(volumes.Child("timeoutSeconds"))}},

		"the most policies":               {changes: as(following(skip, 20, 20))},
		"one policy too many":             {changes: as(following(skip, 21, 1)), want: field.ErrorList{declared.TooMany(policies, 20)}},
		"one resource too many":           {changes: as(following(skip, 1, 21)), want: field.ErrorList{declared.TooMany(policies.Index(0).Child("resourceNames"), 20)}},
		"a policy without an action":      {changes: as(following("", 1, 0)), want: field.ErrorList{declared.Missing(policies.Index(0).Child("action"))}},
		"a policy with an unknown action": {changes: as(following("Kill", 1, 0)), want: field.ErrorList{declared.Unknown(policies.Index(0).Child("action"))}},

		"the first and the last possible step": {changes: as(rollout, escalating(ignore, 1, 31536000))},
		"steps that are too early and too late": {
			changes: as(rollout, escalating(ignore, -1, 31536001)),
			want:    field.ErrorList{declared.TooSmall(steps.Index(0).Child("afterSeconds")), declared.TooLarge(steps.Index(1).Child("afterSeconds"))},
		},
		"a step of nothing": {
			changes: as(rollout, escalating("", 0)),
			want:    field.ErrorList{declared.Missing(steps.Index(0).Child("afterSeconds")), declared.Missing(steps.Index(0).Child("action"))},
		},
		"the most steps":    {changes: as(rollout, escalating(ignore, slices.Repeat([]int32{60}, 10)...))},
		"one step too many": {changes: as(rollout, escalating(ignore, slices.Repeat([]int32{60}, 11)...)), want: field.ErrorList{declared.TooMany(steps, 10)}},
	})
}

// having changes the status.
func having(change func(*coordination.NodeMaintenanceStatus)) change {
	return func(m *coordination.NodeMaintenance) { change(&m.Status) }
}

func started(stages ...coordination.NodeMaintenanceStage) change {
	return having(func(s *coordination.NodeMaintenanceStatus) {
		for _, stage := range stages {
			s.StageStatuses = append(s.StageStatuses, coordination.StageStatus{Name: stage})
		}
	})
}

func position(position int32) change {
	return having(func(s *coordination.NodeMaintenanceStatus) { s.DrainStatus.DrainPlanPosition = &position })
}

func conditions(count int) change {
	return having(func(s *coordination.NodeMaintenanceStatus) {
		s.Conditions = declared.Conditions(declared.Numbered(count)...)
	})
}

// admitting has the admission of a node in the status of the rollout.
func admitting(node, maintenance string) func(*coordination.NodeMaintenanceRolloutStatus) {
	return func(s *coordination.NodeMaintenanceRolloutStatus) {
		s.PendingAdmissions = append(s.PendingAdmissions, coordination.NodeMaintenancePendingAdmission{
			NodeName: node, MaintenanceUID: types.UID(maintenance), Time: metav1.Unix(1, 0),
		})
	}
}

func waiting(reason, budget string) func(*coordination.NodeMaintenanceRolloutStatus) {
	return func(s *coordination.NodeMaintenanceRolloutStatus) {
		s.WaitingFor = append(s.WaitingFor, coordination.NodeMaintenanceWait{Reason: coordination.NodeMaintenanceWaitReason(reason), Budget: budget})
	}
}

// full has so many items in each list of the status of the rollout, and a resourceVersion of this
// length.
func full(failed, waits, admissions, version int) func(*coordination.NodeMaintenanceRolloutStatus) {
	return func(s *coordination.NodeMaintenanceRolloutStatus) {
		s.Failed, s.AdmissionResourceVersion = declared.Numbered(failed), strings.Repeat("1", version)
		for _, budget := range declared.Numbered(waits) {
			waiting("Budget", budget)(s)
		}
		for _, node := range declared.Numbered(admissions) {
			admitting(node, "1")(s)
		}
	}
}

func rollingOut(changes ...func(*coordination.NodeMaintenanceRolloutStatus)) []change {
	return as(having(func(s *coordination.NodeMaintenanceStatus) {
		s.RolloutStatus = &coordination.NodeMaintenanceRolloutStatus{}
		for _, change := range changes {
			change(s.RolloutStatus)
		}
	}))
}

func blocked(blockers ...coordination.DrainBlocker) []change {
	return as(having(func(s *coordination.NodeMaintenanceStatus) { s.DrainStatus.Blockers = blockers }))
}

// blocker has words that have this many characters more than they may have at most.
func blocker(more int) coordination.DrainBlocker {
	word := func(most int) string { return strings.Repeat("é", most+more) }
	return coordination.DrainBlocker{
		Cause: coordination.DrainBlockerCause(word(64)), Name: word(1024), Message: word(1024),
		Object: &coordination.DrainBlockerObject{APIGroup: word(253), Kind: word(63), Namespace: word(63), Name: word(253)},
		Pods:   []coordination.DrainBlockerPod{{Namespace: word(63), Name: word(253)}},
	}
}

func verifyStatus(t *testing.T, tests map[string]test) {
	for name, test := range tests {
		for _, version := range apiVersions {
			t.Run(version+", "+name, func(t *testing.T) {
				declared.VerifyStatus(t, version, resource, newMaintenance(append(test.changes, inStage(coordination.NodeMaintenanceStageComplete))...), newMaintenance(inStage(coordination.NodeMaintenanceStageComplete)), registry.StatusStrategy, test.want)
			})
		}
	}
}

func TestStatus(t *testing.T) {
	status := field.NewPath("status")
	stages := status.Child("stageStatuses")
	const idle, cordon, drain, complete = coordination.NodeMaintenanceStageIdle, coordination.NodeMaintenanceStageCordon, coordination.NodeMaintenanceStageDrain, coordination.NodeMaintenanceStageComplete
	verifyStatus(t, map[string]test{
		"every stage":            {changes: as(started(idle, cordon, drain, complete))},
		"a stage too many":       {changes: as(started(idle, cordon, drain, complete, idle)), want: field.ErrorList{declared.TooMany(stages, 4)}},
		"a stage twice":          {changes: as(started(drain, drain)), want: field.ErrorList{field.Duplicate(stages.Index(1), nil)}},
		"an unknown stage":       {changes: as(started("Pause")), want: field.ErrorList{declared.Unknown(stages.Index(0).Child("name"))}},
		"a stage without a name": {changes: as(started("")), want: field.ErrorList{declared.Missing(stages.Index(0).Child("name"))}},
		"the first position":     {changes: as(position(0))},
		"a negative position":    {changes: as(position(-1)), want: field.ErrorList{declared.TooSmall(status.Child("drainStatus", "drainPlanPosition"))}},
		"the most conditions":    {changes: as(conditions(100))},
		"one condition too many": {changes: as(conditions(101)), want: field.ErrorList{declared.TooMany(status.Child("conditions"), 100)}},
	})
}

func TestRolloutStatus(t *testing.T) {
	path := field.NewPath("status", "rolloutStatus")
	waits, admissions := path.Child("waitingFor"), path.Child("pendingAdmissions")
	verifyStatus(t, map[string]test{
		"the most of all": {changes: rollingOut(full(10, 10, 100, 128))},
		"too much of all": {
			changes: rollingOut(full(11, 11, 101, 129)),
			want: field.ErrorList{
				declared.TooMany(path.Child("failed"), 10), declared.TooMany(waits, 10), declared.TooMany(admissions, 100),
				declared.TooLong(path.Child("admissionResourceVersion"), 128),
			},
		},
		"a node is admitted for two maintenances": {changes: rollingOut(admitting("n", "1"), admitting("n", "2"))},
		"a node is admitted twice for one":        {changes: rollingOut(admitting("n", "1"), admitting("n", "1")), want: field.ErrorList{field.Duplicate(admissions.Index(1), nil)}},
		"the longest words":                       {changes: rollingOut(waiting(strings.Repeat("x", 64), strings.Repeat("x", 253)), admitting(strings.Repeat("x", 253), strings.Repeat("x", 64)))},
		"words that are too long": {
			changes: rollingOut(waiting(strings.Repeat("x", 65), strings.Repeat("x", 254)), admitting(strings.Repeat("x", 254), strings.Repeat("x", 65))),
			want: field.ErrorList{
				declared.TooLong(waits.Index(0).Child("reason"), 64), declared.TooLong(waits.Index(0).Child("budget"), 253),
				declared.TooLong(admissions.Index(0).Child("nodeName"), 253), declared.TooLong(admissions.Index(0).Child("maintenanceUID"), 64),
			},
		},
		"no words": {
			changes: rollingOut(waiting("", ""), admitting("", "")),
			want: field.ErrorList{
				declared.Missing(waits.Index(0).Child("reason")),
				declared.Missing(admissions.Index(0).Child("nodeName")), declared.Missing(admissions.Index(0).Child("maintenanceUID")),
			},
		},
	})
}

func TestBlockers(t *testing.T) {
	blockers := field.NewPath("status", "drainStatus", "blockers")
	first := blockers.Index(0)
	object, pods := first.Child("object"), first.Child("pods")
	nameless := coordination.DrainBlocker{Object: &coordination.DrainBlockerObject{}, Pods: []coordination.DrainBlockerPod{{}}}
	withPods := func(count int) coordination.DrainBlocker {
		return coordination.DrainBlocker{Cause: "Evicting", Pods: slices.Repeat([]coordination.DrainBlockerPod{{Namespace: "prod", Name: "web-0"}}, count)}
	}
	verifyStatus(t, map[string]test{
		"the most blockers":    {changes: blocked(slices.Repeat([]coordination.DrainBlocker{withPods(5)}, 20)...)},
		"one blocker too many": {changes: blocked(slices.Repeat([]coordination.DrainBlocker{withPods(5)}, 21)...), want: field.ErrorList{declared.TooMany(blockers, 20)}},
		"one pod too many":     {changes: blocked(withPods(6)), want: field.ErrorList{declared.TooMany(pods, 5)}},
		"the longest words":    {changes: blocked(blocker(0))},
		"words that are too long": {
			changes: blocked(blocker(1)),
			want: field.ErrorList{
				declared.TooLong(first.Child("cause"), 64), declared.TooLong(first.Child("name"), 1024), declared.TooLong(first.Child("message"), 1024),
				declared.TooLong(object.Child("apiGroup"), 253), declared.TooLong(object.Child("kind"), 63),
				declared.TooLong(object.Child("namespace"), 63), declared.TooLong(object.Child("name"), 253),
				declared.TooLong(pods.Index(0).Child("namespace"), 63), declared.TooLong(pods.Index(0).Child("name"), 253),
			},
		},
		"no words": {
			changes: blocked(nameless),
			want: field.ErrorList{
				declared.Missing(first.Child("cause")), declared.Missing(object.Child("kind")), declared.Missing(object.Child("name")),
				declared.Missing(pods.Index(0).Child("namespace")), declared.Missing(pods.Index(0).Child("name")),
			},
		},
	})
}

func TestConditions(t *testing.T) {
	conditionsOf := func(m *coordination.NodeMaintenance) *[]metav1.Condition { return &m.Status.Conditions }
	for _, version := range apiVersions {
		declared.RunConditions(t, version, resource, newMaintenance(), registry.StatusStrategy, conditionsOf)
	}
}
