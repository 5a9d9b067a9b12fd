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
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// clusterName is not that of a cluster that somebody works with.
	clusterName = "bench"

	// The controller manager runs with its default limits, as users have it. A local
	// cluster has higher ones otherwise.
	kubeAPIQPS   = 20
	kubeAPIBurst = 30

	// auditPolicy records each request when it is answered, without its body. Watches
	// are no work that an eviction causes.
	auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  verbs: [watch]
- level: Metadata
`
)

// cluster is the running cluster with its clients. Each has a user agent of its own,
// by which the audit log tells them apart.
type cluster struct {
	opts       options
	kubeconfig string
	version    string
	audit      *auditLog

	setup, requester, bare, interceptor kubernetes.Interface
}

// startCluster starts the cluster anew: leftovers of a killed run would count.
func startCluster(ctx context.Context, opts options) (*cluster, error) {
	c := &cluster{opts: opts, kubeconfig: filepath.Join(opts.output, "clusters", clusterName+".kubeconfig")}
	if _, err := os.Stat(filepath.Join(opts.base, "kubectl")); err != nil {
		return nil, fmt.Errorf("kubectl of the pristine base is missing (%w): build it with `make base`", err)
	}
	if err := c.down(ctx); err != nil {
		return nil, err
	}
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(err, c.stop(ctx))
	}
	return c, nil
}

func (c *cluster) up(ctx context.Context) error {
	dir := c.opts.resultsDir()
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	if err := os.RemoveAll(c.auditFile()); err != nil {
		return fmt.Errorf("removing the audit log of an earlier run: %w", err)
	}
	args := []string{"up", "--name", clusterName, "--output", c.opts.output, "--bin", c.opts.bin, "--nodes", fmt.Sprint(c.opts.nodes)}
	for _, arg := range append([]string{
		"kube-apiserver:audit-policy-file=" + policy,
		"kube-apiserver:audit-log-path=" + c.auditFile(),
		// In megabytes: a log that is rotated would be lost for us.
		"kube-apiserver:audit-log-maxsize=100000",
		fmt.Sprintf("kube-controller-manager:kube-api-qps=%d", kubeAPIQPS),
		fmt.Sprintf("kube-controller-manager:kube-api-burst=%d", kubeAPIBurst),
	}, c.opts.args...) {
		args = append(args, "--arg", arg)
	}
	if err := c.run(ctx, args...); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	var err error
	c.audit, err = openAuditLog(c.auditFile())
	if err != nil {
		return err
	}
	return c.createNamespace(ctx)
}

func (c *cluster) auditFile() string { return filepath.Join(c.opts.resultsDir(), "audit.log") }

// connect makes the clients. They have no limits of their own: what is measured is
// the server and the controller.
func (c *cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the cluster: %w", err)
	}
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.WarningHandler = rest.NoWarnings{}
	for agent, client := range map[string]*kubernetes.Interface{
		agentSetup:       &c.setup,
		agentRequester:   &c.requester,
		agentBare:        &c.bare,
		agentInterceptor: &c.interceptor,
	} {
		config := rest.CopyConfig(config)
		config.UserAgent = agent
		if *client, err = kubernetes.NewForConfig(config); err != nil {
			return fmt.Errorf("creating a client: %w", err)
		}
	}
	version, err := c.setup.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	c.version = version.GitVersion
	return nil
}

// stop takes the cluster down, also when ctx is over.
func (c *cluster) stop(ctx context.Context) error {
	if c.audit != nil {
		c.audit.close()
	}
	err := c.down(ctx)
	if removeErr := os.RemoveAll(c.auditFile()); removeErr != nil {
		err = errors.Join(err, fmt.Errorf("removing the audit log: %w", removeErr))
	}
	return err
}

func (c *cluster) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return c.run(ctx, "down", "--name", clusterName, "--output", c.opts.output)
}

// run runs hack/cluster.
func (c *cluster) run(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, filepath.Join(c.opts.bin, "cluster"), args...)
	// In a group of its own: an interrupt from the terminal reaches us, and we pass it
	// on to a start, but it must not end a stop half way.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 30 * time.Second
	return runCommand(command)
}

// runCommand runs a program and returns what it printed if it fails.
func runCommand(command *exec.Cmd) error {
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(command.Path), strings.Join(command.Args[1:], " "), err, bytes.TrimSpace(output))
	}
	return nil
}
