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

// Package fuzzer fills coordination objects with random values that survive defaulting.
package fuzzer

import (
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"
)

// Funcs returns the fuzzer functions of the coordination API group.
var Funcs = func(codecs runtimeserializer.CodecFactory) []interface{} {
	return []interface{}{
		func(spec *coordination.EvictionRequestSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			if spec.HeartbeatDeadlineSeconds == nil {
				spec.HeartbeatDeadlineSeconds = ptr.To[int32](coordinationv1alpha1.DefaultHeartbeatDeadlineSeconds)
			}
		},
		func(spec *coordination.NodeMaintenanceSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			if spec.Stage == "" {
				spec.Stage = coordination.NodeMaintenanceStageIdle
			}
			if rollout := spec.Rollout; rollout != nil {
				if rollout.CompleteNodes == "" {
					rollout.CompleteNodes = coordination.NodeCompletionManual
				}
				if rollout.ReturnTimeoutSeconds == nil {
					rollout.ReturnTimeoutSeconds = ptr.To[int32](1800)
				}
				if rollout.MaxFailedNodes == nil {
					rollout.MaxFailedNodes = ptr.To[int32](0)
				}
			}
		},
		func(when *coordination.NodeMaintenanceDrainedWhen, c randfill.Continue) {
			c.FillNoCustom(when)
			if when.TimeoutSeconds == nil {
				when.TimeoutSeconds = ptr.To[int32](600)
			}
		},
		func(settle *coordination.NodeMaintenanceSettle, c randfill.Continue) {
			c.FillNoCustom(settle)
			if settle.TimeoutSeconds == nil {
				settle.TimeoutSeconds = ptr.To[int32](600)
			}
		},
		func(window *coordination.NodeMaintenanceWindow, c randfill.Continue) {
			c.FillNoCustom(window)
			if window.TimeZone == "" {
				window.TimeZone = "Etc/UTC"
			}
		},
	}
}
