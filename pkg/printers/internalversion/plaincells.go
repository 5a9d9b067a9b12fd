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

import "k8s.io/component-helpers/plaintext"

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
