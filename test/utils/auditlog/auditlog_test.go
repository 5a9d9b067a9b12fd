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

package auditlog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNext verifies that a line that is being written is neither lost nor split.
func TestNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, step := range []struct {
		written string
		want    []string
	}{
		{"", nil},
		{`{"verb":"get"}` + "\n" + `{"verb":"li`, []string{"get"}},
		{`st"`, nil},
		{"}\n" + `{"verb":"create"}` + "\n", []string{"list", "create"}},
		{"", nil},
	} {
		if _, err := file.WriteString(step.written); err != nil {
			t.Fatal(err)
		}
		events, err := log.Next()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, event := range events {
			got = append(got, event.Verb)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", step.written, diff)
		}
	}
	if _, err := file.WriteString("no JSON\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Next(); err == nil {
		t.Error("an invalid line was accepted")
	}
}
