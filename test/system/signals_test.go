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

package system

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"testing"
	"time"
)

// childVariable marks this process as the child of a shell that the test kills.
const childVariable = "SYSTEM_TEST_CHILD"

// TestTerminatedWithParent: the control planes of a test must not outlive its go command.
func TestTerminatedWithParent(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt) // As ktesting does.
		_, _ = os.Stdout.WriteString("x")
		<-interrupted
		return
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	shell := exec.Command("sh", "-c", `"$0" -test.run '^TestTerminatedWithParent$' & wait`, os.Args[0])
	shell.Env = append(os.Environ(), childVariable+"=true")
	shell.Stdout = childOut
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	childOut.Close()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = shell.Process.Kill()
	_ = shell.Wait()
	// The output ends when the child ends.
	if err := out.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out); err != nil {
		t.Errorf("the child of the shell still runs: %v", err)
	}
}
