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

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
)

// DropDisabled returns the picker to store. It is nil while the feature gate is off, unless the stored
// object has one. The author is warned.
func DropDisabled(ctx context.Context, picker, stored *core.DownscalePodPicker) *core.DownscalePodPicker {
	if stored != nil || utilfeature.DefaultFeatureGate.Enabled(features.DownscalePodPicker) {
		return picker
	}
	if picker != nil {
		warning.AddWarning(ctx, "", fmt.Sprintf("spec.downscalePodPicker was dropped, because the feature gate %s is off: scale-downs remove pods in the order without a picker; "+
			"turn the gate on in kube-apiserver, and write the field again", features.DownscalePodPicker))
	}
	return nil
}
