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
	"slices"
	"unicode/utf8"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
)

// maxDrainMessageLength is as much as a condition may say.
const maxDrainMessageLength = 32 * 1024

var podTypes = []core.PodType{core.PodTypeDefault, core.PodTypeDaemonSet, core.PodTypeStatic}

// ValidateDrainPlanEntry checks one entry of a drain plan, or of drain targets, for
// itself: their order is another matter. Every priority is allowed, as pods may have any.
func ValidateDrainPlanEntry(entry *core.DrainPlanEntry, fldPath *field.Path) field.ErrorList {
	errs := unversionedvalidation.ValidateLabelSelector(entry.PodSelector, unversionedvalidation.LabelSelectorValidationOptions{}, fldPath.Child("podSelector"))
	switch entry.PodType {
	case core.PodTypeDefault, core.PodTypeDaemonSet, core.PodTypeStatic:
	case "":
		errs = append(errs, field.Required(fldPath.Child("podType"), fmt.Sprintf("must be one of %q", podTypes)))
	default:
		errs = append(errs, field.NotSupported(fldPath.Child("podType"), entry.PodType, podTypes))
	}
	return errs
}

// ValidateDrainMessage bounds a message about a drain.
func ValidateDrainMessage(message string, fldPath *field.Path) field.ErrorList {
	if utf8.RuneCountInString(message) > maxDrainMessageLength {
		return field.ErrorList{field.TooLong(fldPath, "" /*unused*/, maxDrainMessageLength)}
	}
	return nil
}

// ValidateMaintenanceStatus checks what a node says about its drain. What the stored
// node, if there is one, says as well is left alone: an object that was stored by a
// server with other rules must not keep the kubelet from writing its heartbeats.
func ValidateMaintenanceStatus(status, old *core.MaintenanceStatus, fldPath *field.Path) field.ErrorList {
	if status == nil || apiequality.Semantic.DeepEqual(status, old) {
		return nil
	}
	var errs field.ErrorList
	for i := range status.DrainTargets {
		errs = append(errs, ValidateDrainPlanEntry(&status.DrainTargets[i], fldPath.Child("drainTargets").Index(i))...)
	}
	errs = append(errs, ValidateDrainMessage(status.DrainMessage, fldPath.Child("drainMessage"))...)
	errs = append(errs, ValidateNonnegativeField(int64(status.PodsPendingEvictionRequest), fldPath.Child("podsPendingEvictionRequest"))...)
	errs = append(errs, ValidateNonnegativeField(int64(status.ActiveEvictionRequests), fldPath.Child("activeEvictionRequests"))...)
	errs = append(errs, ValidateNonnegativeField(int64(status.BlockedPods), fldPath.Child("blockedPods"))...)
	errs = append(errs, ValidateNonnegativeField(int64(status.InitialPods), fldPath.Child("initialPods"))...)
	return append(errs, validateAdmissions(status, fldPath)...)
}

// escalations are the values of the escalation of an admission, the weakest first.
var escalations = []core.MaintenanceEscalation{
	core.MaintenanceEscalationSkipInterceptors, core.MaintenanceEscalationIgnoreBudgets, core.MaintenanceEscalationForceDelete,
}

// ValidateMaintenanceEscalation checks an action of an escalation; none is valid.
func ValidateMaintenanceEscalation(action core.MaintenanceEscalation, fldPath *field.Path) field.ErrorList {
	if action == "" || slices.Contains(escalations, action) {
		return nil
	}
	return field.ErrorList{field.NotSupported(fldPath, action, escalations)}
}

// maxAdmissions is how many NodeMaintenances may be admitted to one node.
const maxAdmissions = 100

// validateAdmissions validates the list of admissions, each of which is of another maintenance.
func validateAdmissions(status *core.MaintenanceStatus, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	admissionsPath := fldPath.Child("admissions")
	if len(status.Admissions) > maxAdmissions {
		errs = append(errs, field.TooMany(admissionsPath, len(status.Admissions), maxAdmissions))
	}
	seen := sets.New[types.UID]()
	for i := range status.Admissions {
		admission, admissionPath := &status.Admissions[i], admissionsPath.Index(i)
		errs = append(errs, validateMaintenanceName(admission.MaintenanceName, admissionPath.Child("maintenanceName"))...)
		switch uid := admission.MaintenanceUID; {
		case uid == "":
			errs = append(errs, field.Required(admissionPath.Child("maintenanceUID"), "must be the UID of the NodeMaintenance"))
		case seen.Has(uid):
			errs = append(errs, field.Duplicate(admissionPath.Child("maintenanceUID"), uid))
		default:
			seen.Insert(uid)
		}
		if admission.AdmittedTime.IsZero() {
			errs = append(errs, field.Required(admissionPath.Child("admittedTime"), "must be the time of the admission"))
		}
		errs = append(errs, ValidateMaintenanceEscalation(admission.Escalation, admissionPath.Child("escalation"))...)
		errs = append(errs, ValidateNonnegativeField(int64(admission.WaitedSeconds), admissionPath.Child("waitedSeconds"))...)
	}
	return errs
}

func validateMaintenanceName(name string, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range apimachineryvalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(fldPath, name, message))
	}
	return errs
}
