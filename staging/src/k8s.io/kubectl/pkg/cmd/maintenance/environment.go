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
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/clock"
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

func newClient(f cmdutil.Factory, server *serverTime) (kubernetes.Interface, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = clientConfig(config)
	config.Wrap(server.observe)
	return kubernetes.NewForConfig(config)
}

// servedClient returns a client, if the server serves NodeMaintenances.
func (e *environment) servedClient() (kubernetes.Interface, error) {
	client, err := e.client()
	if err != nil {
		return nil, err
	}
	return client, requireServed(client)
}

// clientConfig allows more requests per second than the default, because a plan of many nodes reads
// the pods of each.
func clientConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	return config
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

func validateTimeout(timeout time.Duration) error {
	if timeout < 0 {
		return fmt.Errorf("--timeout=%s: must not be negative; 0 waits without end", timeout)
	}
	return nil
}
