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

package nodemaintenance

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// TestCompleteStays applies manifests to a maintenance that has ended, and to one that has not.
func TestCompleteStays(t *testing.T) {
	const stays = `spec.stage stays Complete: NodeMaintenance %q has ended, so %s has no effect; to maintain its nodes again, create another NodeMaintenance, or delete this one first`
	tests := map[string]struct {
		old, stage, want coordination.NodeMaintenanceStage
		warns            bool
	}{
		"a manifest that drains":          {complete, drain, complete, true},
		"a manifest that cordons":         {complete, cordon, complete, true},
		"a manifest without a stage":      {complete, idle, complete, true},
		"a manifest that completes":       {complete, complete, complete, false},
		"an unknown stage is invalid":     {complete, "Other", "Other", false},
		"a drain goes on":                 {drain, drain, drain, false},
		"a drain ends":                    {drain, complete, complete, false},
		"going back otherwise is invalid": {drain, cordon, cordon, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plugin := newPlugin(t, nil, newRights())
			old, maintenance := newMaintenance(inStage(test.old)), newMaintenance(inStage(test.stage))
			var got, want warnings
			if test.warns {
				want = warnings{fmt.Sprintf(stays, old.Name, test.stage)}
			}
			ctx := warning.WithWarningRecorder(t.Context(), &got)
			update := attributes(admission.Update, userNamed(admin), "", maintenance, old)
			for range 2 { // Webhooks can cause a second call of the plugin.
				if err := plugin.Admit(ctx, update, nil); err != nil {
					t.Fatal(err)
				}
			}
			if maintenance.Spec.Stage != test.want {
				t.Errorf("stage %s, want %s", maintenance.Spec.Stage, test.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
