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

package internalversion

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/printers"
)

// Without its own handler, a kind is printed with its name and age only.
func TestAddHandlersKnowsOurKinds(t *testing.T) {
	generator := printers.NewTableGenerator().With(AddHandlers)
	for _, object := range []runtime.Object{
		&coordination.EvictionRequest{}, &coordination.EvictionRequestList{},
		&coordination.NodeMaintenance{}, &coordination.NodeMaintenanceList{},
		&coordination.NodeMaintenanceBudget{}, &coordination.NodeMaintenanceBudgetList{},
	} {
		if _, err := generator.GenerateTable(object, printers.GenerateOptions{}); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
}
