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
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

// outcome is what a user sees of one run of kubectl. The lines are sorted: pods are
// evicted at the same time.
type outcome struct {
	Code     int
	Out, Err []string
}

// runner runs kubectl against the control plane.
type runner struct {
	config *rest.Config
	dir    string
	runs   int
}

// run runs kubectl as a user of this name, by which its requests are found in the audit
// log, and of this group. Each run has a discovery cache of its own, which is empty.
func (r *runner) run(ctx context.Context, kubectl, user, group string, args ...string) (outcome, error) {
	r.runs++
	home := filepath.Join(r.dir, "home", fmt.Sprint(r.runs))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return outcome{}, fmt.Errorf("creating the home of kubectl: %w", err)
	}
	command := exec.CommandContext(ctx, kubectl, slices.Concat(args, []string{
		"--server=" + r.config.Host, "--token=" + r.config.BearerToken, "--certificate-authority=" + r.config.CAFile,
		"--as=" + user, "--as-group=" + group,
	})...)
	// Nothing of the environment may change what it does.
	command.Env = []string{"HOME=" + home, "KUBECONFIG=" + os.DevNull}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		return outcome{}, fmt.Errorf("running %s: %w", kubectl, err)
	}
	return outcome{Code: command.ProcessState.ExitCode(), Out: sortedLines(stdout.String()), Err: sortedLines(stderr.String())}, nil
}

func sortedLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Sort(lines)
	return lines
}
