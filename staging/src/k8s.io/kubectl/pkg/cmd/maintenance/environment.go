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

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/exec"
	"k8s.io/component-helpers/plaintext"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// Exit codes besides 0 and 1. They are part of the interface: the help documents them.
const (
	// exitTimedOut means that --timeout has passed while pods were being evicted, or nodes waited for
	// something that ends by itself.
	exitTimedOut = 2

	// exitBlocked means that --timeout has passed while there was something that needs an
	// intervention: blockers, a rollout that begins with no further node, or no controller that acts. The
	// message names it.
	exitBlocked = 3

	// exitInterrupted is the exit code that shells expect after Ctrl-C.
	exitInterrupted = 130
)

// environment has the dependencies of all subcommands. Tests replace parts of it.
type environment struct {
	genericiooptions.IOStreams
	factory cmdutil.Factory
	client  func() (kubernetes.Interface, error)
	clock   clock.WithTicker
	// server is the clock of the API server; nil if it is unknown.
	server *serverTime

	// terminal is Out without the filter for plain text: a screen writes control sequences.
	terminal io.Writer
}

// clientConfig allows more requests per second than the default, because a plan of many nodes reads
// the pods of each.
func clientConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	return config
}

func newClient(f cmdutil.Factory, server *serverTime) (kubernetes.Interface, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = clientConfig(config)
	config.Wrap(server.observe)
	return kubernetes.NewForConfig(config)
}

// subcommand completes a command, which prepares its options by its arguments and runs, if the server serves
// NodeMaintenances, until it has ended, is interrupted, or the timeout has passed. That is nil if there is none.
func (e *environment) subcommand(cmd *cobra.Command, timeout *time.Duration, prepare func(cmd *cobra.Command, args []string) error, run func(context.Context, kubernetes.Interface) error) *cobra.Command {
	cmd.DisableFlagsInUseLine = true
	if timeout != nil {
		cmd.Flags().DurationVar(timeout, "timeout", *timeout, "How long to wait, such as 10m; 0 waits without end. The maintenance continues afterwards.")
	}
	cmd.Run = func(cmd *cobra.Command, args []string) {
		checkErr(prepare(cmd, args))
		limit := ptr.Deref(timeout, 0)
		if limit < 0 {
			checkErr(fmt.Errorf("--timeout=%s: must not be negative; 0 waits without end", limit))
		}
		ctx, stop := untilInterrupted(cmd, limit)
		defer stop()
		client, err := e.client()
		if err == nil {
			err = require(client, resource, errNotServed)
		}
		if err == nil {
			err = run(ctx, client)
		}
		checkErr(err)
	}
	return cmd
}

// untilInterrupted returns a context that ends on Ctrl-C, and after the timeout unless it is 0.
func untilInterrupted(cmd *cobra.Command, timeout time.Duration) (context.Context, context.CancelFunc) {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, stop := signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
	if timeout == 0 {
		return ctx, stop
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return ctx, func() { cancel(); stop() }
}

// checkErr ends the program if there is an error, like every command of kubectl. It prints plain
// text: servers and their webhooks repeat texts of other clients.
func checkErr(err error) { cmdutil.CheckErr(plainError(err)) }

// plainError keeps the kinds of errors that cmdutil.CheckErr distinguishes.
func plainError(err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *apierrors.StatusError:
		return plainStatus(e)
	case exec.CodeExitError:
		return exec.CodeExitError{Err: plainError(e.Err), Code: e.Code}
	case utilerrors.Aggregate:
		return utilerrors.NewAggregate(mapped(e.Errors(), plainError))
	}
	text := err.Error()
	for _, status := range statusesIn(err) {
		text = strings.ReplaceAll(text, status.Error(), plainStatus(status).Error())
	}
	if text = plaintext.Escape(text); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// plainStatus keeps each text of the server on one line, so that a text cannot imitate another
// line.
func plainStatus(err *apierrors.StatusError) *apierrors.StatusError {
	plain := &apierrors.StatusError{ErrStatus: *err.ErrStatus.DeepCopy()}
	plain.ErrStatus.Message = plaintext.Line(plain.ErrStatus.Message)
	if details := plain.ErrStatus.Details; details != nil {
		details.Kind, details.Name = plaintext.Line(details.Kind), plaintext.Line(details.Name)
		for i := range details.Causes {
			cause := &details.Causes[i]
			cause.Field, cause.Message = plaintext.Line(cause.Field), plaintext.Line(cause.Message)
		}
	}
	return plain
}

// statusesIn returns all errors of the server that an error wraps.
func statusesIn(err error) []*apierrors.StatusError {
	switch e := err.(type) {
	case *apierrors.StatusError:
		return []*apierrors.StatusError{e}
	case interface{ Unwrap() error }:
		return statusesIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.Concat(mapped(e.Unwrap(), statusesIn)...)
	}
	return nil
}

// failed returns an error that is printed unchanged and ends the program with exit code 1.
func failed(format string, args ...any) error {
	return exec.CodeExitError{Err: fmt.Errorf("error: "+format, args...), Code: cmdutil.DefaultErrorExitCode}
}

// joined returns a single error as it is, so that kubectl recognizes the status of the server in
// it. Several of them have the exit code of the wait that has ended early, if there is one.
func joined(errs []error) error {
	errs = filtered(errs, func(err error) bool { return err != nil })
	if len(errs) == 1 {
		return errs[0]
	}
	all := errors.Join(errs...)
	for _, err := range errs {
		if exit, ok := err.(exec.CodeExitError); ok && exit.Code != cmdutil.DefaultErrorExitCode {
			return exec.CodeExitError{Err: all, Code: exit.Code}
		}
	}
	return all
}

// unchanged adds to the errors that keep a command from its first write that nothing was changed.
func unchanged(errs ...error) error {
	if len(errs) == 0 {
		return nil
	}
	return joined(append(errs, failed("nothing was changed")))
}
