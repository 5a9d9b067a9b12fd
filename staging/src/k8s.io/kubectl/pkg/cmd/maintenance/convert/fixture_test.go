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

package convert

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// updateEnv, if set to true, makes the tests write the golden files.
const updateEnv = "UPDATE_GOLDEN"

// invocation runs the command, and stores what it says, the error and the exit code.
type invocation struct {
	in      string
	errOut  bytes.Buffer
	failure string
	code    int
}

// run runs the command, and returns its output.
func (inv *invocation) run(t *testing.T, args ...string) string {
	t.Helper()
	inv.errOut.Reset()
	inv.failure, inv.code = "", 0
	type exit struct{}
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		inv.failure, inv.code = message, code
		panic(exit{})
	})
	defer cmdutil.DefaultBehaviorOnFatal()
	var out bytes.Buffer
	func() {
		defer func() {
			if r := recover(); r != nil {
				if _, exited := r.(exit); !exited {
					panic(r)
				}
			}
		}()
		cmd := NewCmdConvert(genericiooptions.IOStreams{In: strings.NewReader(inv.in), Out: &out, ErrOut: &inv.errOut})
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(&inv.errOut)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			inv.failure, inv.code = err.Error(), 1
		}
	}()
	return out.String()
}

// mustRun runs a command that must succeed.
func (inv *invocation) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out := inv.run(t, args...)
	if inv.code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, inv.code, inv.failure)
	}
	return out
}

// convertText converts the content of a file. It returns what is written, and what is said.
func convertText(t *testing.T, file, text string, args ...string) (written, said string, inv *invocation) {
	t.Helper()
	name := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	inv = &invocation{}
	written = inv.run(t, append([]string{"-f", name}, args...)...)
	return written, strings.ReplaceAll(inv.errOut.String()+inv.failure, filepath.Dir(name)+"/", ""), inv
}

// convertCommand converts a drain command, and returns what was written, and what was said.
func convertCommand(t *testing.T, command string, args ...string) (written, said string, inv *invocation) {
	t.Helper()
	inv = &invocation{}
	written = inv.run(t, slices.Concat(args, []string{"--"}, strings.Fields(command))...)
	return written, inv.errOut.String() + inv.failure, inv
}

// golden compares a file of the directory of this test.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv(updateEnv) == "true" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want, +got):\n%s\nset %s=true to update it", file, diff, updateEnv)
	}
}

func contains(t *testing.T, got string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("%q is missing in %q", text, got)
		}
	}
}
