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

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// TestKstatus computes, with the library that tools of GitOps use, the status of objects as the control plane writes
// them. Tests in the tree write the files and say what each object has to be: see test/utils/kstatus.
func TestKstatus(t *testing.T) {
	files, err := filepath.Glob("testdata/kstatus/*.json")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases map[string]struct {
			Want   string         `json:"want"`
			Object map[string]any `json:"object"`
		}
		if err := json.Unmarshal(data, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for name, test := range cases {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+name, func(t *testing.T) {
				object := &unstructured.Unstructured{}
				encoded, err := json.Marshal(test.Object)
				if err != nil {
					t.Fatal(err)
				}
				if err := object.UnmarshalJSON(encoded); err != nil {
					t.Fatal(err)
				}
				result, err := status.Compute(object)
				if err != nil {
					t.Fatal(err)
				}
				if string(result.Status) != test.Want {
					t.Errorf("kstatus says %s, %q, want %s", result.Status, result.Message, test.Want)
				}
				seen[object.GetKind()+" "+test.Want] = true
			})
		}
	}
	for _, kind := range []string{"EvictionRequest", "NodeMaintenance"} {
		for _, want := range []status.Status{status.InProgressStatus, status.FailedStatus, status.CurrentStatus} {
			if !seen[kind+" "+string(want)] {
				t.Errorf("no %s is %s", kind, want)
			}
		}
	}
}
