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

package realcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// runSandbox starts the control plane and the nodes, and runs until one of the components of the
// control plane has ended. A node that ends is a node that has lost its power: the others stay.
func runSandbox(ctx context.Context, dir string) error {
	// The kernel ends the nodes with the thread that has started them.
	runtime.LockOSThread()
	r, err := readRecord(dir)
	if err != nil {
		return err
	}
	if err := setUpSandboxNetwork(); err != nil {
		return err
	}
	if r.Script != nil {
		return runScriptSandbox(ctx, dir, r)
	}
	plane, err := createControlPlane(dir, r)
	if err != nil {
		return err
	}
	run := runControlPlane
	if r.StaticControlPlane != nil {
		if err := writeStaticControlPlane(dir, plane, r); err != nil {
			return err
		}
		run = runStaticControlPlane
	}
	for index := range r.Nodes {
		if _, err := startNode(dir, index); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return acceptClients(ctx, fmt.Sprintf("127.0.0.1:%d", r.Port)) })
	group.Go(func() error { return run(ctx, plane, r) })
	for ctx.Err() == nil {
		if err := powerNodesOn(ctx, dir, r.Nodes); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
	return group.Wait()
}

// powerNodesOn starts the nodes for which there is a file that asks for it. It is called by the
// thread that has started the others, because the kernel ends them with it.
func powerNodesOn(ctx context.Context, dir string, nodes int) error {
	for index := range nodes {
		err := os.Remove(powerFile(dir, nodeName(index)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(removeCgroups(ctx, nodeCgroup(dir, nodeName(index))), disconnectNode(index))
		}
		if err == nil {
			_, err = startNode(dir, index)
		}
		if err != nil {
			return fmt.Errorf("power %s on: %w", nodeName(index), err)
		}
	}
	return nil
}

// acceptClients forwards the connections that are made on the host to the API server at an address,
// until ctx is over. The listener is the standard input.
func acceptClients(ctx context.Context, address string) error {
	listener, err := net.FileListener(os.Stdin)
	if err != nil {
		return fmt.Errorf("use the listener of the supervisor: %w", err)
	}
	return forward(ctx, listener, address)
}

// proxyUser is the user of all kube-proxies.
const proxyUser = "kube-proxy"

// createControlPlane prepares a control plane that nodes and pods reach.
func createControlPlane(dir string, r record) (*controlplane.ControlPlane, error) {
	url := fmt.Sprintf("https://%s:%d", controlPlaneAddress, r.Port)
	users := map[string]controlplane.User{proxyUser: {Name: "system:kube-proxy", URL: url}}
	addresses := []net.IP{net.ParseIP(controlPlaneAddress), net.ParseIP(firstService)}
	for index := range r.Nodes {
		name := nodeName(index)
		addresses = append(addresses, networkOf(index).address)
		users[name] = controlplane.User{Name: "system:node:" + name, Group: "system:nodes", URL: url}
	}
	return controlplane.CreateWith(dir, controlplane.Options{
		APIServerPort: r.Port,
		Addresses:     addresses,
		Names:         []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		Users:         users,
	})
}

// runControlPlane starts the control plane, and returns when one of its components has ended.
func runControlPlane(ctx context.Context, plane *controlplane.ControlPlane, r record) error {
	release := r.Settings.Release("real", r.ControlPlane)
	release.APIServerArgs = append(apiServerArgs(), "--advertise-address="+controlPlaneAddress)
	if err := plane.StartAll(ctx, release, controlplane.ControllerManager, controlplane.Scheduler); err != nil {
		return err
	}
	return awaitEnd(ctx, plane)
}

// apiServerArgs are the flags of all API servers. Nodes and pods reach them, in namespaces that only
// this cluster has.
func apiServerArgs() []string {
	return []string{
		"--bind-address=0.0.0.0", "--endpoint-reconciler-type=lease",
		"--enable-admission-plugins=NodeRestriction",
		"--kubelet-preferred-address-types=InternalIP",
	}
}

// awaitEnd waits until a component of the control plane ends.
func awaitEnd(ctx context.Context, plane *controlplane.ControlPlane) error {
	for {
		if err := plane.Ended(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// startNode starts the processes of a node. The channel is closed when they have ended.
func startNode(dir string, index int) (<-chan struct{}, error) {
	name := nodeName(index)
	// The node waits until this is closed.
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer reader.Close()
	defer writer.Close()
	node, err := initProcess(dir, name, name, nodeCommand, dir, strconv.Itoa(index))
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "logs", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the log of %s: %w", name, err)
	}
	defer log.Close()
	node.Stdin, node.Stdout, node.Stderr = reader, log, log
	if err := node.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = node.Wait() // Its log says how it ended.
		close(ended)
	}()
	if err := connectNode(index, node.Process.Pid); err != nil {
		return nil, errors.Join(err, node.Process.Kill())
	}
	return ended, nil
}
