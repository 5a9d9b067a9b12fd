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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubernetes/pkg/printers"
)

// printEach returns the rows of the items of a list.
func printEach[T any](items []T, print func(*T, printers.GenerateOptions) ([]metav1.TableRow, error), options printers.GenerateOptions) ([]metav1.TableRow, error) {
	rows := make([]metav1.TableRow, 0, len(items))
	for i := range items {
		row, err := print(&items[i], options)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row...)
	}
	return rows, nil
}

// plainCells makes the strings of a row safe to print, whatever their source. Clients print the
// cells of a table unchanged.
func plainCells(cells []any) []any {
	for i, cell := range cells {
		if text, ok := cell.(string); ok {
			cells[i] = plaintext.Line(text)
		}
	}
	return cells
}
