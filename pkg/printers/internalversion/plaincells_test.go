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
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	plaintexttesting "k8s.io/component-helpers/plaintext/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	internalprinters "k8s.io/kubernetes/pkg/printers"
)

// TestPrintHostile prints objects with terminal control sequences, through a server and a client.
func TestPrintHostile(t *testing.T) {
	for seed := range uint64(40) {
		requests := &coordination.EvictionRequestList{Items: evictionRequests(time.Now())}
		maintenances := &coordination.NodeMaintenanceList{Items: nodeMaintenances(time.Now())}
		budgets := &coordination.NodeMaintenanceBudgetList{Items: nodeMaintenanceBudgets(time.Now())}
		for name, list := range map[string]runtime.Object{"EvictionRequests": requests, "NodeMaintenances": maintenances, "NodeMaintenanceBudgets": budgets} {
			plaintexttesting.Poison(seed, list)
			generator := internalprinters.NewTableGenerator().With(addNodeMaintenanceHandlers).With(addNodeMaintenanceBudgetHandlers).With(addEvictionRequestHandlers)
			table, err := generator.GenerateTable(list, internalprinters.GenerateOptions{Wide: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range table.Rows {
				for i, cell := range row.Cells {
					if text, ok := cell.(string); ok {
						plaintexttesting.Check(t, fmt.Sprintf("%s, column %d, seed %d", name, i, seed), text)
					}
				}
			}
			var output bytes.Buffer
			if err := printers.NewTablePrinter(printers.PrintOptions{Wide: true}).PrintObj(table, &output); err != nil {
				t.Fatal(err)
			}
			plaintexttesting.Check(t, fmt.Sprintf("%s, seed %d", name, seed), output.String())
			if !strings.Contains(output.String(), plaintexttesting.Forged) {
				t.Errorf("%s, seed %d: nothing was poisoned", name, seed)
			}
		}
	}
}
