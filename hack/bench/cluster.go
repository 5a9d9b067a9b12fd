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
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/localcluster"
)

const (
	// clusterName is not that of a cluster that a user works with.
	clusterName = "bench"

	// The controller manager runs with its default limits, as users have it. A local
	// cluster has higher ones otherwise.
	kubeAPIQPS   = 20
	kubeAPIBurst = 30

	// What is measured is alpha, and off otherwise.
	featureGates  = "EvictionRequestAPI=true,DeclarativeNodeMaintenance=true"
	runtimeConfig = "coordination.k8s.io/v1alpha1=true"

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

	// controllersPolicy records only what controllers write.
	controllersPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
  userGroups: ["system:serviceaccounts:kube-system"]
- level: None
`

	// silentPolicy records nothing.
	silentPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
`
)

// cluster is the running cluster with its clients. Each has a user agent of its own,
// by which the audit log tells them apart.
type cluster struct {
	opts       options
	local      *localcluster.Cluster
	kubeconfig string
	version    string
	audit      *auditLog
	// heaps counts the profiles of the controller manager.
	heaps int

	setup, requester, bare, interceptor kubernetes.Interface
}

// startCluster starts the cluster from nothing: leftovers of a killed run would count.
func startCluster(ctx context.Context, opts options, gates string) (*cluster, error) {
	local := &localcluster.Cluster{Name: clusterName, Output: opts.output, Bin: opts.bin, Nodes: opts.nodes,
		Settings: &localcluster.Settings{Gates: gates, RuntimeConfig: runtimeConfig}}
	c := &cluster{opts: opts, local: local, kubeconfig: local.Kubeconfig()}
	if _, err := os.Stat(filepath.Join(opts.base, "kubectl")); err != nil {
		return nil, fmt.Errorf("kubectl of the pristine base is missing (%w): build it with `make base`", err)
	}
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(err, local.Stop(ctx)) // The error may name a log.
	}
	return c, nil
}

func (c *cluster) up(ctx context.Context) error {
	auditArgs, err := c.auditArgs()
	if err != nil {
		return err
	}
	var args []string
	for _, arg := range auditArgs {
		args = append(args, "kube-apiserver:"+arg)
	}
	for _, arg := range managerArgs() {
		args = append(args, "kube-controller-manager:"+arg)
	}
	for _, arg := range append(args, c.opts.args...) {
		if err := c.local.Settings.Args.Set(arg); err != nil {
			return err
		}
	}
	if err := c.local.Up(ctx); err != nil {
		return err
	}
	config, err := c.local.Config()
	if err != nil {
		return err
	}
	if err := c.connect(config); err != nil {
		return err
	}
	if c.audit, err = openAuditLog(c.auditFile()); err != nil {
		return err
	}
	return c.createNamespace(ctx, namespace)
}

func (c *cluster) auditFile() string { return filepath.Join(c.opts.resultsDir(), "audit.log") }

// auditArgs are flags by which an API server writes a new audit log, as name=value.
func (c *cluster) auditArgs() ([]string, error) {
	policy := filepath.Join(c.opts.resultsDir(), "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(cmp.Or(c.opts.auditPolicy, auditPolicy)), 0o644); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	if err := c.removeAuditLog(); err != nil {
		return nil, err
	}
	return []string{
		"audit-policy-file=" + policy,
		"audit-log-path=" + c.auditFile(),
		// In megabytes: a log that is rotated would be lost for us.
		"audit-log-maxsize=100000",
	}, nil
}

func (c *cluster) removeAuditLog() error {
	if err := os.RemoveAll(c.auditFile()); err != nil {
		return fmt.Errorf("removing the audit log: %w", err)
	}
	return nil
}

// managerArgs are flags of the controller manager, as name=value.
func managerArgs() []string {
	return []string{fmt.Sprintf("kube-api-qps=%d", kubeAPIQPS), fmt.Sprintf("kube-api-burst=%d", kubeAPIBurst)}
}

// connect makes the clients, from a configuration without limits: what is measured is the
// server and the controller.
func (c *cluster) connect(config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	for agent, client := range map[string]*kubernetes.Interface{
		agentSetup:       &c.setup,
		agentRequester:   &c.requester,
		agentBare:        &c.bare,
		agentInterceptor: &c.interceptor,
	} {
		config := rest.CopyConfig(config)
		config.UserAgent = agent
		var err error
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
	return errors.Join(c.local.Down(ctx), c.removeAuditLog())
}

// runCommand runs a program and returns what it printed if it fails.
func runCommand(command *exec.Cmd) error {
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(command.Path), strings.Join(command.Args[1:], " "), err, bytes.TrimSpace(output))
	}
	return nil
}
