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

// Package kstatus keeps objects as the control plane writes them, with what tools that follow the rules of kstatus have
// to make of them. The library itself, sigs.k8s.io/cli-utils, is not among the dependencies of the base: the tests in
// hack/interop, a module of its own, read the files with it.
package kstatus

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// Case is an object, and which status kstatus has to compute of it: InProgress, Failed, Current or Terminating.
type Case struct {
	Want   string         `json:"want"`
	Object runtime.Object `json:"object"`
}

// Check compares the file in dir, which is the testdata of hack/interop, with the cases, by their names.
// UPDATE_GOLDEN=true writes it.
func Check(t *testing.T, dir, file string, cases map[string]Case) {
	t.Helper()
	encoded, err := json.MarshalIndent(cases, "", "  ")
	if err != nil {
		t.Fatalf("encoding: %v", err)
	}
	encoded = append(encoded, '\n')
	path := filepath.Join(dir, file)
	if os.Getenv("UPDATE_GOLDEN") == "true" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, encoded, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile(path); err != nil || !bytes.Equal(stored, encoded) {
		t.Errorf("%s is not what is written today (%v): run this test with UPDATE_GOLDEN=true, and read what hack/interop says of it", path, err)
	}
}
