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

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// story shows commands as a user types them, with what they print, and what was checked.
type story struct {
	cluster  *cluster
	out      *os.File
	began    time.Time
	chapters int
	checks   int
}

// check is something that must become true.
type check struct {
	what string
	// unmet returns nothing when it is true, and otherwise what is different.
	unmet func(ctx context.Context) error
}

func (s *story) chapter(title string) {
	s.chapters++
	fmt.Fprintf(s.out, "\n=== %d. %s (%.0f s)\n\n", s.chapters, title, time.Since(s.began).Seconds())
}

func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}

// kubectl runs a command and returns what it prints.
func (s *story) kubectl(ctx context.Context, args ...string) (string, error) {
	s.show(args)
	var output bytes.Buffer
	command := s.cluster.command(ctx, args...)
	command.Stdout = io.MultiWriter(s.out, &output)
	command.Stderr = command.Stdout
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	fmt.Fprintln(s.out)
	return output.String(), nil
}

// watching is a command that shows how things change.
type watching struct {
	*exec.Cmd
	complaint bytes.Buffer
}

// watch runs a command that shows how things change, and acts meanwhile. On a terminal the
// command draws over its lines, so act must not print. It returns when both have ended.
func (s *story) watch(ctx context.Context, act func(w *watching) error, args ...string) error {
	s.show(args)
	w := &watching{Cmd: s.cluster.command(ctx, args...)}
	w.Stdout, w.Stderr = s.out, &w.complaint
	// It has to give the cursor back.
	w.Cancel = func() error { return w.Process.Signal(os.Interrupt) }
	if err := w.Start(); err != nil {
		return fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	err := act(w)
	if err != nil {
		w.interrupt()
	}
	err = errors.Join(err, w.end())
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("kubectl %s has not ended by itself: %w", strings.Join(args, " "), ctx.Err())
	}
	fmt.Fprintln(s.out)
	return err
}

// interrupt types Ctrl-C. If the command has ended by itself, its exit code tells how.
func (w *watching) interrupt() { _ = w.Process.Signal(os.Interrupt) }

// end waits for the end, which Ctrl-C may have brought.
func (w *watching) end() error {
	const interrupted = 130
	err := w.Wait()
	if err == nil || w.ProcessState.ExitCode() == interrupted {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", w, err, bytes.TrimSpace(w.complaint.Bytes()))
}

// show prints a command as a user types it.
func (s *story) show(args []string) {
	var words []string
	for _, arg := range args {
		if name, value, found := strings.Cut(arg, "="); found && strings.Contains(value, " ") {
			arg = fmt.Sprintf("%s=%q", name, value)
		}
		words = append(words, arg)
	}
	fmt.Fprintf(s.out, "$ kubectl %s\n", strings.Join(words, " "))
}

// expect waits for the checks and tells of them.
func (s *story) expect(ctx context.Context, checks ...check) error {
	if err := s.await(ctx, checks); err != nil {
		return err
	}
	s.tell(checks)
	return nil
}

func (s *story) tell(checks []check) {
	for _, check := range checks {
		s.checks++
		fmt.Fprintf(s.out, "  ok: %s\n", check.what)
	}
}

// await returns when all checks have come true, one after another.
func (s *story) await(ctx context.Context, checks []check) error {
	for _, check := range checks {
		var last error
		err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
			err := check.unmet(ctx)
			if err != nil && ctx.Err() == nil {
				last = err
			}
			return err == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%q did not come true (%w): %v", check.what, err, last)
		}
	}
	return nil
}

// expectOutput checks that a command has printed all these words.
func (s *story) expectOutput(what, output string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(output, word) {
			return fmt.Errorf("%q is not so: the output lacks %q", what, word)
		}
	}
	s.tell([]check{{what: what}})
	return nil
}
