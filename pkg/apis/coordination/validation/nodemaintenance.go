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
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// ValidateNodeMaintenanceCreate checks a NodeMaintenance that is to be created.
func ValidateNodeMaintenanceCreate(maintenance *coordination.NodeMaintenance) field.ErrorList {
	return apimachineryvalidation.ValidateObjectMeta(&maintenance.ObjectMeta, false, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// ValidateNodeMaintenanceUpdate checks a new version of a NodeMaintenance.
func ValidateNodeMaintenanceUpdate(maintenance, old *coordination.NodeMaintenance) field.ErrorList {
	return apimachineryvalidation.ValidateObjectMetaUpdate(&maintenance.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
}

// ValidateNodeMaintenanceStatusUpdate checks a new status of a NodeMaintenance.
func ValidateNodeMaintenanceStatusUpdate(maintenance, old *coordination.NodeMaintenance) field.ErrorList {
	return apimachineryvalidation.ValidateObjectMetaUpdate(&maintenance.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
}
