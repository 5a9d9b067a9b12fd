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

// Package controlplane runs etcd, kube-apiserver and kube-controller-manager as plain
// processes on loopback, for tests that end them in the middle of their work or swap
// their binaries over one etcd. Local clusters to work with are made by hack/cluster,
// through kwokctl, which can do neither.
//
// There are no nodes. Pods are bound to a node that does not exist, the caller writes
// their status and removes them when they terminate, and the controllers that would
// clean up after the missing node are off.
package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Release is a set of binaries and how they are configured.
type Release struct {
	// Name is for people.
	Name string
	// Bin is the directory with kube-apiserver and kube-controller-manager.
	Bin string
	// FeatureGates and RuntimeConfig are the flags of these names; empty means that the
	// flag is not given.
	FeatureGates, RuntimeConfig string
	// APIServerArgs and ControllerManagerArgs are further flags. They come last: of a flag
	// that is given twice the last value counts, and lists are joined.
	APIServerArgs, ControllerManagerArgs []string
}

// healthTimeout is how long a component may take to become healthy. On a busy machine
// reading a binary alone takes seconds.
const healthTimeout = 2 * time.Minute

// stopTimeout is how long a component may take to end by itself.
const stopTimeout = 30 * time.Second

// pollInterval is the pause between two looks at a component that starts.
const pollInterval = 100 * time.Millisecond

// ControlPlane is one etcd with at most one API server and one controller manager.
// Its methods are not safe for concurrent use.
type ControlPlane struct {
	dir         string
	credentials *credentials
	ports       ports

	etcd, apiServer, controllerManager *process
	// apiServers is how many API servers were started.
	apiServers int
}

// New starts an etcd with its state below dir, which also gets logs and credentials.
func New(ctx context.Context, dir, etcdBinary string) (*ControlPlane, error) {
	for _, sub := range []string{"logs", "etcd", "tls"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("creating the state directory: %w", err)
		}
	}
	c := &ControlPlane{dir: dir}
	var err error
	if c.ports, err = choosePorts(); err != nil {
		return nil, err
	}
	if c.credentials, err = newCredentials(dir, c.url()); err != nil {
		return nil, err
	}
	if c.etcd, err = startProcess(etcdBinary, c.logFile("etcd"), c.etcdArgs()); err != nil {
		return nil, err
	}
	if err := c.awaitHealth(ctx, c.etcd, fmt.Sprintf("http://127.0.0.1:%d/health", c.ports.etcd)); err != nil {
		c.etcd.kill()
		return nil, err
	}
	return c, nil
}

// StartAPIServer starts the API server of a release and waits until it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context, release Release) error {
	var err error
	c.apiServers++
	c.apiServer, err = startProcess(filepath.Join(release.Bin, "kube-apiserver"), c.logFile("kube-apiserver"), c.apiServerArgs(release))
	if err != nil {
		return err
	}
	return c.awaitHealth(ctx, c.apiServer, c.url()+"/readyz")
}

// StartControllerManager starts the controller manager of a release and waits until
// it is healthy. The API server must be ready.
func (c *ControlPlane) StartControllerManager(ctx context.Context, release Release) error {
	var err error
	c.controllerManager, err = startProcess(filepath.Join(release.Bin, "kube-controller-manager"), c.logFile("kube-controller-manager"), c.controllerManagerArgs(release))
	if err != nil {
		return err
	}
	return c.awaitHealth(ctx, c.controllerManager, fmt.Sprintf("https://127.0.0.1:%d/healthz", c.ports.controllerManager))
}

// StopAPIServer asks the API server to end and waits until it has.
func (c *ControlPlane) StopAPIServer() error { return c.apiServer.stop(stopTimeout) }

// StopControllerManager asks the controller manager to end and waits until it has.
func (c *ControlPlane) StopControllerManager() error { return c.controllerManager.stop(stopTimeout) }

// KillAPIServer ends the API server with SIGKILL. It returns an error if the server
// had ended by itself.
func (c *ControlPlane) KillAPIServer() error { return c.apiServer.kill() }

// KillControllerManager ends the controller manager with SIGKILL. It returns an error
// if the manager had ended by itself.
func (c *ControlPlane) KillControllerManager() error { return c.controllerManager.kill() }

// Close ends all that still runs. The state directory stays.
func (c *ControlPlane) Close() {
	for _, p := range []*process{c.controllerManager, c.apiServer, c.etcd} {
		if p != nil && !p.ended() {
			_ = p.kill() // It may end just now.
		}
	}
}

// Config returns the configuration for a client with all rights.
func (c *ControlPlane) Config() *rest.Config {
	return &rest.Config{
		Host:            c.url(),
		BearerToken:     c.credentials.adminToken,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.credentials.certFile},
		WarningHandler:  rest.NoWarnings{},
		QPS:             -1, // Tests are not to wait for their own client.
	}
}

// Metrics returns what the controller manager measures, as text.
func (c *ControlPlane) Metrics(ctx context.Context) (string, error) {
	return get(ctx, fmt.Sprintf("https://127.0.0.1:%d/metrics", c.ports.controllerManager))
}

// AuditLogs are the files in which the API servers recorded what they record, one for
// each server: one that is killed may leave half a line.
func (c *ControlPlane) AuditLogs() []string {
	var files []string
	for i := range c.apiServers {
		files = append(files, filepath.Join(c.dir, "logs", fmt.Sprintf("audit-%d.log", i+1)))
	}
	return files
}

// AuditAll makes the API servers that are started from now on record every request,
// instead of the evictions only.
func (c *ControlPlane) AuditAll() error {
	if err := os.WriteFile(c.credentials.auditPolicyFile, []byte(auditAllPolicy), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	return nil
}

// awaitHealth waits until the URL answers with success. A component that ends
// meanwhile is reported with the end of its log.
func (c *ControlPlane) awaitHealth(ctx context.Context, p *process, url string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, healthTimeout, true, func(ctx context.Context) (bool, error) {
		if p.ended() {
			return false, p.failure("ended while it was starting")
		}
		_, last = get(ctx, url)
		return last == nil, nil
	})
	if wait.Interrupted(err) {
		return p.failure(fmt.Sprintf("did not become healthy (%v): %v", err, last))
	}
	return err
}

func (c *ControlPlane) url() string { return fmt.Sprintf("https://127.0.0.1:%d", c.ports.apiServer) }

func (c *ControlPlane) logFile(component string) string {
	return filepath.Join(c.dir, "logs", component+".log")
}

func (c *ControlPlane) etcdArgs() []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcd)
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcdPeer)
	return []string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
		// The data outlives every process but not the machine.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func (c *ControlPlane) apiServerArgs(release Release) []string {
	args := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.ports.etcd),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.ports.apiServer),
		// A machine may have no address but loopback's.
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		// Without it, a server that stops waits a minute for those who watch.
		"--shutdown-watch-termination-grace-period=1s",
		"--token-auth-file=" + c.credentials.tokenFile,
		"--tls-cert-file=" + c.credentials.certFile, "--tls-private-key-file=" + c.credentials.keyFile,
		"--service-account-issuer=" + c.url(),
		"--service-account-key-file=" + c.credentials.serviceAccountKeyFile,
		"--service-account-signing-key-file=" + c.credentials.serviceAccountKeyFile,
		// Blocking: what is not in the log has not begun, even when the server is killed.
		"--audit-log-path=" + c.AuditLogs()[c.apiServers-1], "--audit-log-mode=blocking",
		"--audit-policy-file=" + c.credentials.auditPolicyFile,
	}
	return slices.Concat(args, release.flags(), release.APIServerArgs)
}

func (c *ControlPlane) controllerManagerArgs(release Release) []string {
	args := []string{
		"--kubeconfig=" + c.credentials.kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.ports.controllerManager),
		"--tls-cert-file=" + c.credentials.certFile, "--tls-private-key-file=" + c.credentials.keyFile,
		"--service-account-private-key-file=" + c.credentials.serviceAccountKeyFile,
		"--root-ca-file=" + c.credentials.certFile,
		// Every controller has its own rights only, as in real clusters.
		"--use-service-account-credentials",
		// There is one instance; the lease of a killed one would cost 15 s each time.
		"--leader-elect=false",
		"--authorization-always-allow-paths=/healthz,/metrics",
		// The node of the pods does not exist.
		"--controllers=*,-pod-garbage-collector-controller,-node-lifecycle-controller,-taint-eviction-controller",
		// With the default, creating the clients of all controllers takes seconds.
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
	if release.FeatureGates != "" {
		args = append(args, "--feature-gates="+release.FeatureGates)
	}
	return slices.Concat(args, release.ControllerManagerArgs)
}

// flags are those of the API server that depend on the release.
func (r Release) flags() []string {
	var flags []string
	if r.FeatureGates != "" {
		flags = append(flags, "--feature-gates="+r.FeatureGates)
	}
	if r.RuntimeConfig != "" {
		flags = append(flags, "--runtime-config="+r.RuntimeConfig)
	}
	return flags
}
