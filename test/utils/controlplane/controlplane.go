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

// Package controlplane runs the components of a control plane as plain processes on
// loopback: for tests that kill them in the middle of their work or swap their binaries
// over one etcd, and for the local clusters of test/utils/localcluster.
//
// It does not use kwokctl, which starts processes too: kwokctl kills whatever process has
// a pid by now, does not notice that a component failed, and takes the flags of a
// component as fixed. Simulated nodes and pods are kwok's work.
//
// Without kwok there are no nodes. Pods are bound to a node that does not exist, the
// caller writes their status and removes them when they terminate, and StartControllerManager
// turns off the controllers that would clean up after the missing node.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Release is a set of binaries and how they are configured.
type Release struct {
	// Name is for people.
	Name string
	// Bin is the directory of the binaries.
	Bin string
	// FeatureGates and RuntimeConfig are the flags of these names; empty means that the
	// flag is not given.
	FeatureGates, RuntimeConfig string
	// APIServerArgs and ControllerManagerArgs are further flags. They come last: of a flag
	// that is given twice the last value counts, and lists are joined.
	APIServerArgs, ControllerManagerArgs []string
	// Args are further flags by component, after all others.
	Args map[string][]string
}

const (
	// healthTimeout bounds the start of a component. On a busy machine reading a binary
	// alone takes half a minute; a component that ends is noticed at once.
	healthTimeout = 5 * time.Minute

	// stopTimeout is how long a component may take to shut down.
	stopTimeout = 30 * time.Second

	// pollInterval is the pause between two probes of a component that starts.
	pollInterval = 100 * time.Millisecond
)

// ControlPlane is a set of components with their state in one directory. Its methods are
// not safe for concurrent use.
type ControlPlane struct {
	dir         string
	credentials *credentials
	ports       Ports
	processes   map[string]*process

	// issuer is who issues the tokens of service accounts: the first of several API servers.
	issuer string
	// detached processes outlive this program.
	detached bool
	// etcdMembers are the components that are the members of etcd.
	etcdMembers []string
	// etcdServers are the addresses at which the API servers find etcd.
	etcdServers []string
	// etcdPeers are the addresses at which the members of etcd find one another.
	etcdPeers []string
	// apiServers is how many API servers were started by StartAPIServer.
	apiServers int
}

// New starts an etcd with its state below dir, which also gets logs and credentials. All
// components end with this program.
func New(ctx context.Context, dir, etcdBinary string) (*ControlPlane, error) {
	return NewWith(ctx, dir, etcdBinary, Options{})
}

// NewWith is New with options.
func NewWith(ctx context.Context, dir, etcdBinary string, options Options) (*ControlPlane, error) {
	c, err := CreateWith(dir, options)
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx, Release{Bin: filepath.Dir(etcdBinary)}, c.etcdMembers...); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Detach lets the components that are started from now on outlive this program.
func (c *ControlPlane) Detach() { c.detached = true }

// Options are what a control plane needs that is not used from loopback alone.
type Options struct {
	// APIServerPort is the port of the API server; 0 means any that is free.
	APIServerPort int
	// EtcdMembers is how many members etcd has; 0 means one.
	EtcdMembers int
	// ReachPeer returns where the other members of etcd reach one that listens at an address, such as that of a
	// proxy; nil means there.
	ReachPeer func(listens string) (url string, err error)
	// Addresses and Names are those of the API server, beside loopback's.
	Addresses []net.IP
	Names     []string
	// Users are further users, by the names of their kubeconfigs, see UserKubeconfig.
	Users map[string]User
}

// User is a client of the API server.
type User struct {
	// Name and Group are those that the API server knows. The group may be empty.
	Name, Group string
	// URL is where the user reaches the API server, if not on loopback.
	URL string
}

// Create returns a control plane none of whose components runs.
func Create(dir string) (*ControlPlane, error) { return CreateWith(dir, Options{}) }

// CreateWith is Create with options.
func CreateWith(dir string, options Options) (*ControlPlane, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolving the state directory: %w", err)
	}
	var members []string
	for i := range max(1, options.EtcdMembers) {
		members = append(members, EtcdMember(i))
	}
	for _, sub := range append([]string{"bin", "logs", "pids", "tls"}, members...) {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("creating the state directory: %w", err)
		}
	}
	c := &ControlPlane{dir: dir, etcdMembers: members, processes: map[string]*process{}}
	if c.ports, err = choosePorts(options.APIServerPort, members); err != nil {
		return nil, err
	}
	for _, member := range members {
		c.etcdServers = append(c.etcdServers, c.ports.url(member))
		c.etcdPeers = append(c.etcdPeers, c.ports.url(etcdPeer(member)))
	}
	for i, listens := range c.etcdPeers {
		if options.ReachPeer == nil {
			break
		}
		if c.etcdPeers[i], err = options.ReachPeer(listens); err != nil {
			return nil, fmt.Errorf("reaching member %s of etcd: %w", members[i], err)
		}
	}
	c.issuer = c.ports.url(APIServer)
	c.credentials, err = newCredentials(dir, c.issuer, options)
	return c, err
}

// Replica returns a control plane for another API server on the same etcd, with the same credentials,
// and with logs of its own below dir. It may also have a controller manager, which uses the first API
// server unless its flags say otherwise. Its other components must not be started.
func (c *ControlPlane) Replica(dir string) (*ControlPlane, error) {
	for _, sub := range []string{"bin", "logs", "pids"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("creating the state directory: %w", err)
		}
	}
	ports, err := choosePorts(0, nil)
	if err != nil {
		return nil, err
	}
	ports[Etcd] = c.ports[Etcd]
	return &ControlPlane{
		dir: dir, credentials: c.credentials, ports: ports, issuer: c.issuer, etcdServers: c.etcdServers, processes: map[string]*process{},
	}, nil
}

// Dir has the state and the logs of the components.
func (c *ControlPlane) Dir() string { return c.dir }

// EtcdMembers are the components that are the members of etcd.
func (c *ControlPlane) EtcdMembers() []string { return c.etcdMembers }

// EtcdServers are the addresses at which the API servers find etcd.
func (c *ControlPlane) EtcdServers() []string { return c.etcdServers }

// UseEtcdServers has the API servers that are started from now on find etcd at other addresses, such as those of proxies.
func (c *ControlPlane) UseEtcdServers(urls []string) { c.etcdServers = urls }

// Start starts components of a release and waits until all are healthy. It returns an
// error as soon as one of them ends; the error wraps ErrPortTaken if that was because of
// its port.
func (c *ControlPlane) Start(ctx context.Context, release Release, components ...string) error {
	for _, component := range components {
		p, err := c.startProcess(component, release)
		if err != nil {
			return err
		}
		c.processes[component] = p
	}
	var sick string
	var probed error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, healthTimeout, true, func(ctx context.Context) (bool, error) {
		for _, component := range components {
			if p := c.processes[component]; p.ended() {
				return false, p.failure("ended while it was starting")
			}
		}
		sick, probed = c.ports.firstUnhealthy(ctx, components)
		for _, component := range components {
			// Another program may have taken the port, and answer: our component is about to end.
			if probed == nil && !listens(c.processes[component].command.Process.Pid, c.ports[component]) {
				sick, probed = component, errors.New("another process answers on its port")
			}
		}
		return probed == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%w: %w", err, c.processes[sick].failure(fmt.Sprintf("did not become healthy in time: %v", probed)))
	}
	return err
}

// StartAll starts etcd, then the API server, and then the components that need it.
func (c *ControlPlane) StartAll(ctx context.Context, release Release, clients ...string) error {
	for _, components := range [][]string{c.etcdMembers, {APIServer}, clients} {
		if err := c.Start(ctx, release, components...); err != nil {
			return err
		}
	}
	return nil
}

// StartAPIServer starts the API server of a release and waits until it is ready. It
// writes an audit log of its own, see AuditLogs.
func (c *ControlPlane) StartAPIServer(ctx context.Context, release Release) error {
	c.apiServers++
	release.APIServerArgs = slices.Concat([]string{
		// Blocking: what is not in the log has not begun, even when the server is killed.
		"--audit-log-path=" + c.AuditLogs()[c.apiServers-1], "--audit-log-mode=blocking",
		"--audit-policy-file=" + c.credentials.auditPolicyFile,
	}, release.APIServerArgs)
	return c.Start(ctx, release, APIServer)
}

// StartControllerManager starts the controller manager of a release, and waits until it is healthy. Unless its
// arguments have --controllers, those that need nodes are left out. The API server must be ready.
func (c *ControlPlane) StartControllerManager(ctx context.Context, release Release) error {
	isControllers := func(arg string) bool { return strings.HasPrefix(arg, "--controllers=") }
	if !slices.ContainsFunc(release.ControllerManagerArgs, isControllers) {
		release.ControllerManagerArgs = slices.Concat([]string{
			"--controllers=*,-pod-garbage-collector-controller,-node-lifecycle-controller,-taint-eviction-controller",
		}, release.ControllerManagerArgs)
	}
	return c.Start(ctx, release, ControllerManager)
}

// StopAPIServer asks the API server to shut down and waits until it has.
func (c *ControlPlane) StopAPIServer() error { return c.processes[APIServer].stop(stopTimeout) }

// StopControllerManager asks the controller manager to shut down and waits until it has.
func (c *ControlPlane) StopControllerManager() error {
	return c.processes[ControllerManager].stop(stopTimeout)
}

// KillAPIServer ends the API server with SIGKILL. It returns an error if the server
// had ended by itself.
func (c *ControlPlane) KillAPIServer() error { return c.processes[APIServer].kill() }

// KillControllerManager ends the controller manager with SIGKILL. It returns an error
// if the manager had ended by itself.
func (c *ControlPlane) KillControllerManager() error { return c.processes[ControllerManager].kill() }

// Kill ends a component with SIGKILL. It returns an error if the component had ended by itself.
func (c *ControlPlane) Kill(component string) error { return c.processes[component].kill() }

// Suspend stops components with SIGSTOP, as if their machine was suspended.
func (c *ControlPlane) Suspend(components ...string) error {
	return c.signal(syscall.SIGSTOP, components)
}

// Resume lets components go on that were suspended. A controller manager ends by itself if another one
// leads meanwhile.
func (c *ControlPlane) Resume(components ...string) error {
	return c.signal(syscall.SIGCONT, components)
}

func (c *ControlPlane) signal(signal syscall.Signal, components []string) error {
	for _, component := range components {
		if err := c.processes[component].signal(signal); err != nil {
			return err
		}
	}
	return nil
}

// Ended returns an error that names the first component that has ended by itself.
func (c *ControlPlane) Ended() error {
	for _, component := range append(slices.Clone(Components), c.etcdMembers...) {
		if p := c.processes[component]; p != nil && p.ended() && !p.asked {
			return p.failure("has ended by itself")
		}
	}
	return nil
}

// Close kills all that still runs. The state directory stays.
func (c *ControlPlane) Close() {
	for p := range maps.Values(c.processes) {
		_ = p.kill() // It may have ended.
	}
}

// Config returns the configuration for a client with all rights.
func (c *ControlPlane) Config() *rest.Config {
	return &rest.Config{
		Host:            c.ports.url(APIServer),
		BearerToken:     c.credentials.adminToken,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.credentials.certFile},
		WarningHandler:  rest.NoWarnings{},
		QPS:             -1, // Tests must not wait for their own client.
	}
}

// Ports returns where the components listen.
func (c *ControlPlane) Ports() Ports { return c.ports }

// Metrics returns the metrics of the controller manager, as text.
func (c *ControlPlane) Metrics(ctx context.Context) (string, error) {
	return get(ctx, c.ports.url(ControllerManager)+"/metrics")
}

// AuditLogs are the audit logs of the API servers, one for each server: one that is
// killed may leave half a line.
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
