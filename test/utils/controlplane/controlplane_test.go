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

package controlplane

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestChoosePorts(t *testing.T) {
	ports, err := choosePorts(0, []string{Etcd})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for user, port := range ports {
		if port == 0 || seen[port] {
			t.Errorf("ports %v: want different ones", ports)
		}
		seen[port] = true
		// It is closed again, so that a component can use it.
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			t.Errorf("the port of %s is not free: %v", user, err)
			continue
		}
		listener.Close()
	}
	if len(ports) != 6 {
		t.Errorf("ports %v: want one for each component, and another one for etcd", ports)
	}
}

// TestEnvironment verifies that the environment of the caller does not affect the components.
func TestEnvironment(t *testing.T) {
	got := environment([]string{"KWOK_WORKDIR=/x", "ETCD_DATA_DIR=/x", "KUBE_FEATURE_WatchListClient=false", "KUBECONFIG=/home/me/config", "HOME=/home/me", "LANG=C"}, "/state")
	if want := []string{"LANG=C", "HOME=/state"}; !slices.Equal(got, want) {
		t.Errorf("environment = %q, want %q", got, want)
	}
}

// newTestPlane returns a control plane whose binaries are the scripts.
func newTestPlane(t *testing.T, scripts map[string]string) (*ControlPlane, Release) {
	t.Helper()
	c, err := Create(filepath.Join(t.TempDir(), "plane"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	release := Release{Bin: t.TempDir(), FeatureGates: "A=true", RuntimeConfig: "g/v1=true"}
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(release.Bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c, release
}

// TestStartFails verifies that a component that ends is reported immediately, with its log, while
// another one is not healthy yet, and that a taken port is recognized.
func TestStartFails(t *testing.T) {
	const taken = "listen tcp 127.0.0.1:1: bind: address already in use"
	for log, portTaken := range map[string]bool{
		taken: true,
		strings.Repeat("kwok tells much else in a line ", 20) + taken: true,
		"panic: broken": false,
	} {
		c, release := newTestPlane(t, map[string]string{Etcd: "exec sleep 60", Scheduler: "echo '" + log + "'; exit 1"})
		err := c.Start(t.Context(), release, Etcd, Scheduler)
		if err == nil || errors.Is(err, ErrPortTaken) != portTaken {
			t.Fatalf("Start: %v, want an error for a taken port: %t", err, portTaken)
		}
		for _, want := range []string{"kube-scheduler ended", filepath.Join(c.dir, "logs", "kube-scheduler.log"), log[:min(len(log), 100)]} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not name %q", err, want)
			}
		}
		if c.processes[Etcd].ended() {
			t.Error("etcd ended without being stopped")
		}
		c.Close()
		if !c.processes[Etcd].ended() {
			t.Error("etcd runs after Close")
		}
	}
}

// TestStartBesideForeignProgram covers a program that listens on the port of a component: a control
// plane must not use the etcd of another one.
func TestStartBesideForeignProgram(t *testing.T) {
	c, release := newTestPlane(t, map[string]string{Etcd: "sleep 1; echo 'bind: address already in use'; exit 1"})
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(c.ports[Etcd]))
	if err != nil {
		t.Fatal(err)
	}
	foreign := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = foreign.Serve(listener) }()
	t.Cleanup(func() { foreign.Close() })
	if err := c.Start(t.Context(), release, Etcd); !errors.Is(err, ErrPortTaken) {
		t.Errorf("Start: %v, want an error for a taken port", err)
	}
}

func TestListens(t *testing.T) {
	t.Run("on loopback", func(t *testing.T) { testListens(t, "127.0.0.1:0") })
	t.Run("on all addresses", func(t *testing.T) { testListens(t, "0.0.0.0:0") })
}

func testListens(t *testing.T, address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if !listens(os.Getpid(), port) {
		t.Error("this process does not listen on its port")
	}
	if listens(os.Getppid(), port) {
		t.Error("another process listens on the port of this one")
	}
	listener.Close()
	if listens(os.Getpid(), port) {
		t.Error("this process listens on a port that it has closed")
	}
}

// TestStopAndKill verifies that stopping or killing a component that has ended by itself is an
// error: tests must notice that.
func TestStopAndKill(t *testing.T) {
	c, release := newTestPlane(t, map[string]string{APIServer: "exec sleep 60", ControllerManager: "exit 1"})
	for component := range map[string]bool{APIServer: true, ControllerManager: true} {
		p, err := c.startProcess(component, release)
		if err != nil {
			t.Fatal(err)
		}
		c.processes[component] = p
	}
	<-c.processes[ControllerManager].done
	for name, end := range map[string]func() error{"kill": c.KillControllerManager, "stop": c.StopControllerManager} {
		if err := end(); err == nil || !strings.Contains(err.Error(), "had ended by itself") {
			t.Errorf("%s of a controller manager that has ended: %v", name, err)
		}
	}
	if err := c.Ended(); err == nil || !strings.Contains(err.Error(), "kube-controller-manager has ended by itself") {
		t.Errorf("Ended: %v, want the controller manager", err)
	}
	delete(c.processes, ControllerManager)
	if err := c.Ended(); err != nil {
		t.Errorf("Ended: %v, although the API server runs", err)
	}
	if err := c.StopAPIServer(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := c.Ended(); err != nil {
		t.Errorf("Ended: %v, although the API server was stopped", err)
	}
}

// TestArgs verifies that a cluster uses RBAC and is not reachable from the network, and that the
// flags of the caller come last.
func TestArgs(t *testing.T) {
	c, release := newTestPlane(t, nil)
	release.APIServerArgs, release.ControllerManagerArgs = []string{"--v=1"}, []string{"--v=2"}
	release.Args = map[string][]string{}
	for _, component := range Components {
		release.Args[component] = []string{"--last"}
	}
	want := map[string][]string{
		Etcd: {"--unsafe-no-fsync"},
		APIServer: {
			"--bind-address=127.0.0.1", "--authorization-mode=Node,RBAC", "--feature-gates=A=true", "--runtime-config=g/v1=true", "--v=1",
		},
		ControllerManager: {"--bind-address=127.0.0.1", "--use-service-account-credentials", "--feature-gates=A=true", "--v=2"},
		Scheduler:         {"--bind-address=127.0.0.1", "--feature-gates=A=true"},
		Kwok: {
			"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--config=kwok-stages.yaml",
		},
	}
	for _, component := range Components {
		args := c.args(component, release)
		for _, arg := range want[component] {
			if !slices.Contains(args, arg) {
				t.Errorf("%s has no %s: %q", component, arg, args)
			}
		}
		if args[len(args)-1] != "--last" {
			t.Errorf("%s: the caller's flag is not the last of %q", component, args)
		}
	}
}

// Users of a control plane may be elsewhere: the certificate must have the address they use, and
// their tokens their names.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	address := net.IPv4(172, 30, 0, 1)
	c, err := CreateWith(dir, Options{
		Addresses: []net.IP{address},
		Users:     map[string]User{"node-0": {Name: "system:node:node-0", Group: "system:nodes", URL: "https://172.30.0.1:1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(c.credentials.certFile, c.credentials.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "127.0.0.1", address.String()} {
		if err := pair.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", UserKubeconfig(dir, "node-0"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://172.30.0.1:1"; config.Host != want {
		t.Errorf("the user asks %s, want %s", config.Host, want)
	}
	tokens, err := os.ReadFile(c.credentials.tokenFile)
	if want := config.BearerToken + ",system:node:node-0,system:node:node-0,system:nodes\n"; err != nil || !strings.Contains(string(tokens), want) {
		t.Errorf("the tokens are %q (%v), want %q among them", tokens, err, want)
	}
}

// A replica is another API server of the same cluster.
func TestReplica(t *testing.T) {
	first, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.Replica(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if first.Config().Host == second.Config().Host {
		t.Errorf("both listen on %s", first.Config().Host)
	}
	second.UseEtcdServers([]string{"http://127.0.0.1:1", "http://127.0.0.1:2"})
	differ := []string{"--secure-port=", "--audit-log-path=", "--etcd-servers="}
	args := second.args(APIServer, Release{})
	for _, arg := range first.args(APIServer, Release{}) {
		other := slices.ContainsFunc(differ, func(prefix string) bool { return strings.HasPrefix(arg, prefix) })
		if slices.Contains(args, arg) == other {
			t.Errorf("the replica has %s: %t, want %t", arg, !other, other)
		}
	}
	if want := "--etcd-servers=http://127.0.0.1:1,http://127.0.0.1:2"; !slices.Contains(args, want) {
		t.Errorf("the replica has no %s: %q", want, args)
	}
}

func TestLastLines(t *testing.T) {
	long := strings.Repeat("x", 700)
	got := indent(lastLines([]byte("one\ntwo\n"+long+"\n\n"), 2))
	if want := "    two\n    " + long[:600] + "..."; got != want {
		t.Errorf("lastLines = %q, want %q", got, want)
	}
}

// TestLastLinesOfPanic covers a stack trace that is longer than what is shown.
func TestLastLinesOfPanic(t *testing.T) {
	stack := "goroutine 1 [running]:\n" + strings.Repeat("main.main()\n\tmain.go:1 +0x1\n", 20) + "\n"
	got := lastLines([]byte("starting\npanic: no space left on device\n\n"+stack+stack), 1)
	if want := []string{"panic: no space left on device"}; !slices.Equal(got, want) {
		t.Errorf("lastLines = %q, want %q", got, want)
	}
}

// The members of etcd find one another through proxies.
func TestReachPeer(t *testing.T) {
	var listens []string
	c, err := CreateWith(t.TempDir(), Options{EtcdMembers: 2, ReachPeer: func(address string) (string, error) {
		listens = append(listens, address)
		return fmt.Sprintf("http://proxy-%d", len(listens)), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, member := range c.EtcdMembers() {
		for _, want := range []string{
			"--listen-peer-urls=" + listens[i], fmt.Sprintf("--initial-advertise-peer-urls=http://proxy-%d", i+1),
			"--initial-cluster=etcd=http://proxy-1,etcd-1=http://proxy-2",
		} {
			if args := c.args(member, Release{}); !slices.Contains(args, want) {
				t.Errorf("member %d has the flags %q, want %s", i, args, want)
			}
		}
	}
	if _, err := CreateWith(t.TempDir(), Options{ReachPeer: func(string) (string, error) { return "", errors.New("no proxy") }}); err == nil {
		t.Error("a member without a proxy: no error")
	}
}

// Each member of etcd has a directory and ports of its own, and knows all others.
func TestEtcdMembers(t *testing.T) {
	c, err := CreateWith(t.TempDir(), Options{EtcdMembers: 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"etcd", "etcd-1", "etcd-2"}; !slices.Equal(c.EtcdMembers(), want) {
		t.Fatalf("the members are %q, want %q", c.EtcdMembers(), want)
	}
	var own, shared [][]string
	for _, member := range c.EtcdMembers() {
		args := c.args(member, Release{Args: map[string][]string{Etcd: {"--last"}}})
		own = append(own, slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
			return !slices.ContainsFunc([]string{"--name=", "--data-dir=", "--listen-", "--advertise-", "--initial-advertise-"}, func(prefix string) bool {
				return strings.HasPrefix(arg, prefix)
			})
		}))
		shared = append(shared, slices.DeleteFunc(args, func(arg string) bool { return slices.Contains(own[len(own)-1], arg) }))
		if _, err := os.Stat(filepath.Join(c.dir, member)); err != nil {
			t.Error(err)
		}
	}
	for i := range own {
		if !slices.Equal(shared[i], shared[0]) || !slices.Contains(shared[i], "--last") {
			t.Errorf("the members have the flags %q and %q", shared[i], shared[0])
		}
		for _, arg := range own[i] {
			if i > 0 && slices.Contains(own[0], arg) || len(own[i]) != 6 {
				t.Errorf("member %d has %q, as the first one", i, own[i])
			}
		}
	}
	cluster := fmt.Sprintf("--initial-cluster=etcd=http://127.0.0.1:%d,etcd-1=http://127.0.0.1:%d,etcd-2=http://127.0.0.1:%d",
		c.ports["etcd-peer"], c.ports["etcd-1-peer"], c.ports["etcd-2-peer"])
	if !slices.Contains(shared[0], cluster) {
		t.Errorf("the flags are %q, want %s", shared[0], cluster)
	}
	servers := fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d,http://127.0.0.1:%d,http://127.0.0.1:%d", c.ports["etcd"], c.ports["etcd-1"], c.ports["etcd-2"])
	if args := c.args(APIServer, Release{}); !slices.Contains(args, servers) {
		t.Errorf("the API server has the flags %q, want %s", args, servers)
	}
}
