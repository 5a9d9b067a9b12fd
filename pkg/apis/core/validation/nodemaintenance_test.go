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
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
)

func TestValidateMaintenanceStatus(t *testing.T) {
	path := field.NewPath("status", "maintenanceStatus")
	targets := func(entries ...core.DrainPlanEntry) *core.MaintenanceStatus {
		return &core.MaintenanceStatus{DrainTargets: entries}
	}
	matching := func(labels map[string]string) core.DrainPlanEntry {
		return core.DrainPlanEntry{PodType: core.PodTypeDefault, PodSelector: &metav1.LabelSelector{MatchLabels: labels}}
	}
	saying := func(length int) *core.MaintenanceStatus {
		return &core.MaintenanceStatus{DrainMessage: strings.Repeat("ö", length)}
	}
	negative := &core.MaintenanceStatus{PodsPendingEvictionRequest: -1, ActiveEvictionRequests: -1, BlockedPods: -1}
	belowZero := field.ErrorList{
		field.Invalid(path.Child("podsPendingEvictionRequest"), nil, "must be greater than or equal to 0"),
		field.Invalid(path.Child("activeEvictionRequests"), nil, "must be greater than or equal to 0"),
		field.Invalid(path.Child("blockedPods"), nil, "must be greater than or equal to 0"),
	}
	tests := map[string]struct {
		status, old *core.MaintenanceStatus
		want        field.ErrorList
	}{
		"none":           {},
		"removed":        {old: negative},
		"empty":          {status: &core.MaintenanceStatus{}},
		"the longest":    {status: saying(32768)},
		"one too long":   {status: saying(32769), want: field.ErrorList{field.TooLong(path.Child("drainMessage"), "", 32768)}},
		"below zero":     {status: negative, want: belowZero},
		"stored so":      {status: negative.DeepCopy(), old: negative},
		"still so":       {status: &core.MaintenanceStatus{PodsPendingEvictionRequest: -1, ActiveEvictionRequests: -1, BlockedPods: -1, DrainMessage: "Draining"}, old: negative, want: belowZero},
		"targets":        {status: targets(matching(map[string]string{"app": "db"}), core.DrainPlanEntry{PodType: core.PodTypeDaemonSet, PodPriority: -5}, core.DrainPlanEntry{PodType: core.PodTypeStatic, PodPriority: 2147483647})},
		"no type":        {status: targets(core.DrainPlanEntry{}), want: field.ErrorList{field.Required(path.Child("drainTargets").Index(0).Child("podType"), `must be one of ["Default" "DaemonSet" "Static"]`)}},
		"unknown type":   {status: targets(matching(nil), core.DrainPlanEntry{PodType: "Job"}), want: field.ErrorList{field.NotSupported(path.Child("drainTargets").Index(1).Child("podType"), "Job", []string{"Default", "DaemonSet", "Static"})}},
		"invalid labels": {status: targets(matching(map[string]string{"a": "not valid"})), want: field.ErrorList{field.Invalid(path.Child("drainTargets").Index(0).Child("podSelector", "matchLabels"), nil, "a valid label must be")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			field.ErrorMatcher{}.ByType().ByField().ByDetailSubstring().Test(t, test.want, ValidateMaintenanceStatus(test.status, test.old, path))
		})
	}
}

func TestValidateAdmissions(t *testing.T) {
	path := field.NewPath("status", "maintenanceStatus")
	admissions := path.Child("admissions")
	now := metav1.Time{Time: time.Unix(1, 0)}
	admission := func(name string, changes ...func(*core.MaintenanceAdmission)) core.MaintenanceAdmission {
		a := core.MaintenanceAdmission{MaintenanceName: name, MaintenanceUID: types.UID("uid-of-" + name), AdmittedTime: now}
		for _, change := range changes {
			change(&a)
		}
		return a
	}
	done := func(a *core.MaintenanceAdmission) { a.DoneTime = &now }
	with := func(list ...core.MaintenanceAdmission) *core.MaintenanceStatus {
		return &core.MaintenanceStatus{Admissions: list}
	}
	many := func(count int) *core.MaintenanceStatus {
		var list []core.MaintenanceAdmission
		for i := range count {
			list = append(list, admission(fmt.Sprintf("kernel-%d", i)))
		}
		return with(list...)
	}
	unclaimed := func(status *core.MaintenanceStatus) *core.MaintenanceStatus {
		status.Unclaimed = true
		return status
	}
	saying := func(status *core.MaintenanceStatus) *core.MaintenanceStatus {
		status.DrainMessage = "Draining"
		return status
	}
	empty := core.MaintenanceAdmission{}
	missing := field.ErrorList{
		field.Invalid(admissions.Index(0).Child("maintenanceName"), nil, "a lowercase RFC 1123 subdomain"),
		field.Required(admissions.Index(0).Child("maintenanceUID"), "must be the UID of the NodeMaintenance"),
		field.Required(admissions.Index(0).Child("admittedTime"), "must be the time of the admission"),
	}
	escalated := func(to core.MaintenanceEscalation, waited int32) func(*core.MaintenanceAdmission) {
		return func(a *core.MaintenanceAdmission) {
			a.Escalation, a.EscalationTime, a.WaitingTime, a.WaitedSeconds = to, &now, &now, waited
		}
	}
	for name, test := range map[string]struct {
		status, old *core.MaintenanceStatus
		want        field.ErrorList
	}{
		"escalations": {status: with(admission("kernel", escalated("SkipInterceptors", 0)), admission("firmware", escalated("IgnoreBudgets", 1)), admission("disks", escalated("ForceDelete", 86400)))},
		"an escalation that is not known": {status: with(admission("kernel"), admission("firmware", escalated("PowerOff", 0))),
			want: field.ErrorList{field.NotSupported(admissions.Index(1).Child("escalation"), "PowerOff", escalations)}},
		"an escalation that is not known, stored so": {status: with(admission("kernel", escalated("PowerOff", 0))), old: with(admission("kernel", escalated("PowerOff", 0)))},
		"a negative wait": {status: with(admission("kernel", escalated("", -1))),
			want: field.ErrorList{field.Invalid(admissions.Index(0).Child("waitedSeconds"), nil, "must be greater than or equal to 0")}},
		"two maintenances": {status: with(admission("kernel"), admission("firmware", done))},
		"all that an admission may be": {status: with(admission("kernel", done, func(a *core.MaintenanceAdmission) {
			a.DrainedTime, a.ReturningTime, a.FailedTime, a.BootID = &now, &now, &now, "1"
		}))},
		"another one of that name":        {status: with(admission("kernel", done), admission("kernel", func(a *core.MaintenanceAdmission) { a.MaintenanceUID = "other" }))},
		"unclaimed":                       {status: unclaimed(with(admission("kernel", done), admission("firmware", done)))},
		"unclaimed without admissions":    {status: unclaimed(with())},
		"as many as there may be":         {status: many(100)},
		"one too many":                    {status: many(101), want: field.ErrorList{field.TooMany(admissions, 101, 100)}},
		"too many, stored so":             {status: many(101), old: many(101)},
		"too many, and still so":          {status: saying(many(101)), old: many(101), want: field.ErrorList{field.TooMany(admissions, 101, 100)}},
		"nothing in it":                   {status: with(empty), want: missing},
		"nothing in it, stored so":        {status: with(empty), old: with(empty)},
		"a name that no object has":       {status: with(admission("Kernel_6")), want: field.ErrorList{field.Invalid(admissions.Index(0).Child("maintenanceName"), nil, "a lowercase RFC 1123 subdomain")}},
		"the same maintenance twice":      {status: with(admission("kernel", done), admission("kernel")), want: field.ErrorList{field.Duplicate(admissions.Index(1).Child("maintenanceUID"), nil)}},
		"unclaimed while one is not done": {status: unclaimed(with(admission("kernel", done), admission("firmware")))},
	} {
		t.Run(name, func(t *testing.T) {
			field.ErrorMatcher{}.ByType().ByField().ByDetailSubstring().Test(t, test.want, ValidateMaintenanceStatus(test.status, test.old, path))
		})
	}
}
