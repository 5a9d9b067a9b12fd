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

// Package downscalepodpicker has what the storage of ReplicaSets and of Deployments does with their
// downscale pod pickers.
package downscalepodpicker

import (
	"context"
	"fmt"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

// DropDisabled returns the picker to store. It is nil while the feature gate is off, unless the stored
// object has one. The author is warned, and so is one who replaces a Deployment by one without the picker: a
// client that does not know the field loses it so.
func DropDisabled(ctx context.Context, picker, stored *core.DownscalePodPicker) *core.DownscalePodPicker {
	if stored != nil && picker == nil && replacesDeployment(ctx) {
		warning.AddWarning(ctx, "", "spec.downscalePodPicker: the update removes the picker, and scale-downs remove pods in the order without one: "+
			"if that is not intended, the client does not know the field: use a patch, Server-Side Apply, or a client that knows it")
	}
	if stored != nil || utilfeature.DefaultFeatureGate.Enabled(features.DownscalePodPicker) {
		return picker
	}
	if picker != nil {
		warning.AddWarning(ctx, "", fmt.Sprintf("spec.downscalePodPicker was dropped, because the feature gate %s is off: scale-downs remove pods in the order without a picker; "+
			"turn the gate on in kube-apiserver, and write the field again", features.DownscalePodPicker))
	}
	return nil
}

// replacesDeployment reports whether a client replaces a Deployment, as opposed to a patch. The ReplicaSets of a
// Deployment are replaced by its controller, which knows the field.
func replacesDeployment(ctx context.Context) bool {
	info, found := genericapirequest.RequestInfoFrom(ctx)
	return found && info.Verb == "update" && info.Resource == "deployments" && info.Subresource == ""
}
