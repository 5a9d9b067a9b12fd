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

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// The controllers and kubectl rely on these values: the API server also sets them when it reads an object that was stored
// without them.
func TestDefaults(t *testing.T) {
	maintenance := func(spec coordinationv1alpha1.NodeMaintenanceSpec) runtime.Object {
		return &coordinationv1alpha1.NodeMaintenance{Spec: spec}
	}
	budget := func(windows ...coordinationv1alpha1.NodeMaintenanceWindow) runtime.Object {
		return &coordinationv1alpha1.NodeMaintenanceBudget{Spec: coordinationv1alpha1.NodeMaintenanceBudgetSpec{Windows: windows}}
	}
	complete := coordinationv1alpha1.NodeMaintenanceSpec{Stage: "Drain", Rollout: &coordinationv1alpha1.NodeMaintenanceRollout{
		MaxConcurrent: ptr.To(intstr.FromInt32(1)), CompleteNodes: "Rebooted", ReturnTimeoutSeconds: ptr.To[int32](60), MaxFailedNodes: ptr.To[int32](3),
		Settle: &coordinationv1alpha1.NodeMaintenanceSettle{TimeoutSeconds: ptr.To[int32](1)},
	}, DrainedWhen: &coordinationv1alpha1.NodeMaintenanceDrainedWhen{TimeoutSeconds: ptr.To[int32](1)}}
	for name, test := range map[string]struct{ object, want runtime.Object }{
		"a request": {
			object: &coordinationv1alpha1.EvictionRequest{},
			want: &coordinationv1alpha1.EvictionRequest{Spec: coordinationv1alpha1.EvictionRequestSpec{
				HeartbeatDeadlineSeconds: ptr.To[int32](coordinationv1alpha1.DefaultHeartbeatDeadlineSeconds),
			}},
		},
		"a maintenance without a rollout gets none": {
			object: maintenance(coordinationv1alpha1.NodeMaintenanceSpec{}),
			want:   maintenance(coordinationv1alpha1.NodeMaintenanceSpec{Stage: "Idle"}),
		},
		"a rollout": {
			object: maintenance(coordinationv1alpha1.NodeMaintenanceSpec{Rollout: &coordinationv1alpha1.NodeMaintenanceRollout{}}),
			want: maintenance(coordinationv1alpha1.NodeMaintenanceSpec{Stage: "Idle", Rollout: &coordinationv1alpha1.NodeMaintenanceRollout{
				CompleteNodes: "Manual", ReturnTimeoutSeconds: ptr.To[int32](1800), MaxFailedNodes: ptr.To[int32](0),
			}}),
		},
		"times": {
			object: maintenance(coordinationv1alpha1.NodeMaintenanceSpec{Rollout: &coordinationv1alpha1.NodeMaintenanceRollout{Settle: &coordinationv1alpha1.NodeMaintenanceSettle{}}, DrainedWhen: &coordinationv1alpha1.NodeMaintenanceDrainedWhen{}}),
			want: maintenance(coordinationv1alpha1.NodeMaintenanceSpec{Stage: "Idle", Rollout: &coordinationv1alpha1.NodeMaintenanceRollout{
				CompleteNodes: "Manual", ReturnTimeoutSeconds: ptr.To[int32](1800), MaxFailedNodes: ptr.To[int32](0), Settle: &coordinationv1alpha1.NodeMaintenanceSettle{TimeoutSeconds: ptr.To[int32](600)},
			}, DrainedWhen: &coordinationv1alpha1.NodeMaintenanceDrainedWhen{TimeoutSeconds: ptr.To[int32](600)}}),
		},
		"a rollout that says everything": {object: maintenance(*complete.DeepCopy()), want: maintenance(complete)},
		"a budget without windows":       {object: budget(), want: budget()},
		"windows": {
			object: budget(coordinationv1alpha1.NodeMaintenanceWindow{Schedule: "@daily"}, coordinationv1alpha1.NodeMaintenanceWindow{TimeZone: "Europe/Berlin"}),
			want:   budget(coordinationv1alpha1.NodeMaintenanceWindow{Schedule: "@daily", TimeZone: "Etc/UTC"}, coordinationv1alpha1.NodeMaintenanceWindow{TimeZone: "Europe/Berlin"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := AddToScheme(scheme); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			scheme.Default(test.object)
			if diff := cmp.Diff(test.want, test.object); diff != "" {
				t.Errorf("unexpected object (-want, +got):\n%s", diff)
			}
		})
	}
}
