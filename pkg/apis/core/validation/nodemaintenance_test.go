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
