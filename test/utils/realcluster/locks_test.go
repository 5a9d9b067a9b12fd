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

package realcluster

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
)

// lockVariable tells this program to take a lock in that directory, and to wait for the end of its
// standard input.
const lockVariable = "REALCLUSTER_TEST_LOCK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockVariable); dir != "" {
		if err := takeLock(dir, sandboxLock); err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString("locked\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A lock says which process has it, and ends with the process.
func TestLocks(t *testing.T) {
	dir := t.TempDir()
	expectOwner := func(want int) {
		t.Helper()
		if owner, err := lockOwner(dir, sandboxLock); err != nil || owner != want {
			t.Errorf("the lock is that of %d (%v), want %d", owner, err, want)
		}
	}
	expectOwner(0)
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), lockVariable+"="+dir)
	input, inputErr := program.StdinPipe()
	output, outputErr := program.StdoutPipe()
	err := errors.Join(inputErr, outputErr)
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	expectOwner(program.Process.Pid)
	if err := takeLock(dir, sandboxLock); err == nil {
		t.Error("two processes have the same lock")
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // It was killed.
	_ = input.Close()
	expectOwner(0)
}
