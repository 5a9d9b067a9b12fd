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
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/auditlog"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/steps"
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

	// openProfiles lets everybody read the heap of the controller manager.
	openProfiles = "kube-controller-manager:authorization-always-allow-paths=/debug/pprof/*"

	// auditPolicy records requests when they are answered, without their bodies.
	auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, ResponseStarted]\nrules: [%s]\n"

	// Rules of it: each request but watches, which are no work that an eviction causes; only what
	// controllers write; nothing.
	auditAll         = "{level: None, verbs: [watch]}, {level: Metadata}"
	auditControllers = `{level: None, verbs: [get, list, watch]}, {level: Metadata, userGroups: ["system:serviceaccounts:kube-system"]}, {level: None}`
	auditNothing     = "{level: None}"
)

// cluster is the running cluster with its clients. Each has a user agent of its own,
// by which the audit log tells them apart.
type cluster struct {
	opts  options
	local *localcluster.Cluster
	audit *auditLog
	// heaps counts the profiles of the controller manager.
	heaps int

	setup, requester, bare, interceptor kubernetes.Interface
}

// onCluster measures something on a new cluster, which it takes down again. It keeps the logs if
// something failed.
func onCluster(ctx context.Context, opts options, r *report, gates string, measure func(*cluster)) {
	_, err := os.Stat(filepath.Join(opts.base, "kubectl"))
	steps.Check(err, "kubectl of the pristine base is missing: build it with `make base`")
	local := &localcluster.Cluster{Name: clusterName, Output: opts.output, Bin: opts.bin, Nodes: opts.nodes,
		Settings: &localcluster.Settings{Gates: gates, RuntimeConfig: runtimeConfig}}
	c := &cluster{opts: opts, local: local}
	err = steps.Attempt(func() {
		c.up(ctx)
		r.Version = steps.Must(c.setup.Discovery().ServerVersion()).GitVersion
		measure(c)
	})
	if err != nil {
		logs := filepath.Join(opts.resultsDir(), "logs")
		if local.KeepLogs(logs) == nil { // There may be none.
			err = fmt.Errorf("%w (logs are in %s)", err, logs)
		}
	}
	if c.audit != nil {
		c.audit.Close()
	}
	steps.Check(errors.Join(err, local.Down(ctx), os.RemoveAll(c.auditFile())))
}

// up starts the cluster from nothing: leftovers of a killed run would count.
func (c *cluster) up(ctx context.Context) {
	policy, log := filepath.Join(c.opts.resultsDir(), "audit-policy.yaml"), c.auditFile()
	steps.Check(os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, cmp.Or(c.opts.audited, auditAll)), 0o644), "writing the audit policy")
	steps.Check(os.RemoveAll(log), "removing the audit log")
	args := append(managerLimits(kubeAPIQPS, kubeAPIBurst),
		"kube-apiserver:audit-policy-file="+policy,
		"kube-apiserver:audit-log-path="+log,
		// In megabytes: a log that is rotated would be lost for us.
		"kube-apiserver:audit-log-maxsize=100000")
	for _, arg := range append(args, c.opts.args...) {
		steps.Check(c.local.Settings.Args.Set(arg))
	}
	steps.Check(c.local.Up(ctx))
	c.connect(steps.Must(c.local.Config()))
	c.audit = &auditLog{steps.Must(auditlog.Open(log))}
	c.createNamespace(ctx, namespace)
}

// managerLimits are the limits of the controller manager.
func managerLimits(qps, burst int) []string {
	return []string{fmt.Sprintf("kube-controller-manager:kube-api-qps=%d", qps), fmt.Sprintf("kube-controller-manager:kube-api-burst=%d", burst)}
}

func (c *cluster) auditFile() string { return filepath.Join(c.opts.resultsDir(), "audit.log") }

// connect makes the clients, from a configuration without limits: what is measured is the
// server and the controller.
func (c *cluster) connect(config *rest.Config) {
	config.ContentType = runtime.ContentTypeProtobuf
	for agent, client := range map[string]*kubernetes.Interface{
		agentSetup:       &c.setup,
		agentRequester:   &c.requester,
		agentBare:        &c.bare,
		agentInterceptor: &c.interceptor,
	} {
		config := rest.CopyConfig(config)
		config.UserAgent = agent
		*client = steps.Must(kubernetes.NewForConfig(config))
	}
}

// measurement is what happened while something was measured.
type measurement struct {
	start time.Time
	took  time.Duration
	// all are the requests, and cpu the seconds of a processor that the controller manager has used,
	// until the measured clients were silent.
	all requests
	cpu float64
}

// measure measures what do does. Without clients it waits for none.
func (c *cluster) measure(ctx context.Context, clients selector, do func()) measurement {
	c.audit.next() // Not what was logged until now.
	before := c.managerCPUSeconds()
	m := measurement{start: time.Now()}
	do()
	m.took = time.Since(m.start)
	if clients != nil {
		m.all = c.audit.untilQuiet(ctx, clients)
	} else {
		m.all = c.audit.next()
	}
	m.cpu = c.managerCPUSeconds() - before
	return m
}

// managerCPUSeconds is what the controller manager has used since it was started.
func (c *cluster) managerCPUSeconds() float64 {
	return steps.Must(c.process(controlplane.ControllerManager).Stat()).CPUTime()
}

// process is that of a component.
func (c *cluster) process(component string) procfs.Proc {
	return steps.Must(procfs.NewProc(steps.Must(c.local.Pid(component))))
}

// restartManager kills the controller manager and starts it again, as something that supervises it
// would do.
func (c *cluster) restartManager(ctx context.Context) {
	args := steps.Must(c.process(controlplane.ControllerManager).CmdLine())
	address := fmt.Sprintf("127.0.0.1:%d", steps.Must(c.local.Ports())[controlplane.ControllerManager])
	steps.Check(c.local.Signal(controlplane.ControllerManager, syscall.SIGKILL), "killing the controller manager")
	await(ctx, "the end of the controller manager", pollInterval, time.Minute, func(context.Context) bool {
		// A process that is about to end has no arguments any more, but may still listen.
		listener, err := net.Listen("tcp", address)
		if err == nil {
			steps.Check(listener.Close())
		}
		return err == nil
	})
	log := steps.Must(os.OpenFile(filepath.Join(c.local.Logs(), controlplane.ControllerManager+".log"), os.O_APPEND|os.O_WRONLY, 0))
	defer log.Close()
	command := exec.Command(args[0], args[1:]...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // As the first one: the cluster finds it by its path.
	steps.Check(command.Start(), "starting the controller manager again")
	go func() { _ = command.Wait() }() // The log says how it ended.
}

// runCommand runs a program and says what it printed if it fails.
func runCommand(command *exec.Cmd) error {
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(command.Path), strings.Join(command.Args[1:], " "), err, bytes.TrimSpace(output))
	}
	return nil
}
