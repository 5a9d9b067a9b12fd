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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/localcluster"
)

// record is what a cluster is started with. The supervisor adds the port.
type record struct {
	Settings localcluster.Settings
	Nodes    int
	// Output and Bin are those of Cluster.Local, ControlPlane and Kubelets those of Cluster.
	Output, Bin, ControlPlane string
	Kubelets                  map[string]Kubelet
	// InhibitDelayMax, StaticControlPlane and Script are those of Cluster.
	InhibitDelayMax    time.Duration
	StaticControlPlane *StaticControlPlane `json:",omitempty"`
	Script             *Script             `json:",omitempty"`
	// Port is that of the API server, on the loopback interface of the host and in the sandbox.
	Port int
}

func (r record) String() string {
	if r.Script != nil {
		return fmt.Sprintf("hack/%s.sh, programs in %s, and the variables %q", scriptName, r.Bin, r.Script.Env)
	}
	return fmt.Sprintf("%d nodes, %s, programs in %s, a control plane in %s, other kubelets %v, delay of shutdowns %s", r.Nodes, r.Settings, r.Bin, r.ControlPlane, r.Kubelets, r.InhibitDelayMax)
}

// recordFile is what a cluster with real nodes is known by: one with simulated nodes has another
// file.
func recordFile(dir string) string { return filepath.Join(dir, localcluster.RealRecord) }

func readRecord(dir string) (record, error) {
	var r record
	data, err := os.ReadFile(recordFile(dir))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read the record of the cluster: %w", err)
	}
	return r, nil
}

func (r record) write(dir string) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(recordFile(dir)+".new", data, 0o600)
	}
	if err == nil {
		// In one step: others read it.
		err = os.Rename(recordFile(dir)+".new", recordFile(dir))
	}
	if err != nil {
		return fmt.Errorf("write the record of the cluster: %w", err)
	}
	return nil
}

// wantedPort is the port of the API server, 0 for any that is free.
func (r record) wantedPort() string {
	if r.Script != nil {
		return r.Script.port()
	}
	return "0"
}

// portHint says who has chosen a port that is taken.
func (r record) portHint() string {
	if r.wantedPort() == "0" {
		return ""
	}
	return fmt.Sprintf(": give another %s, or none to get one that is free", portVariable)
}

// keepRunning is what the program that has started the supervisor sends if the cluster is to
// outlive it.
const keepRunning = 'k'

// supervise runs the sandbox of a cluster until ctx is over or owner is closed: by the program that
// has started it, or by the kernel if that was killed.
func supervise(ctx context.Context, dir string, owner io.Reader) error {
	if err := takeLock(dir, supervisorLock); err != nil {
		return err
	}
	// The kernel ends the sandbox with the thread that has started it.
	runtime.LockOSThread()
	sandbox, err := startSandbox(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(waitForOwner(owner)) }()
	go func() { cancel(waitForRemoval(ctx, dir)) }()
	ended := make(chan error, 1)
	go func() { ended <- sandbox.Wait() }()
	var failure error
	select {
	case failure = <-ended:
		failure = fmt.Errorf("the sandbox has ended by itself: %w", failure)
	case <-ctx.Done():
		_ = sandbox.Process.Kill() // It may end just now.
		<-ended
	}
	return errors.Join(failure, removeCgroups(context.WithoutCancel(ctx), cgroupOf(dir)))
}

// startSandbox starts the sandbox of a cluster, which accepts connections to the API server on a port
// of the host.
func startSandbox(dir string) (*exec.Cmd, error) {
	r, err := readRecord(dir)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", r.wantedPort()))
	if err != nil {
		return nil, fmt.Errorf("listen for clients of the API server: %w%s", err, r.portHint())
	}
	// Only the sandbox accepts connections, so that they are refused when it ends.
	defer listener.Close()
	r.Port = listener.Addr().(*net.TCPAddr).Port
	if err := r.write(dir); err != nil {
		return nil, err
	}
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, fmt.Errorf("get the socket of the listener: %w", err)
	}
	defer socket.Close()
	sandbox, err := initProcess(dir, sandboxLock, filepath.Base(dir), sandboxCommand, dir)
	if err != nil {
		return nil, err
	}
	sandbox.Stdin = socket
	if err := sandbox.Start(); err != nil {
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	return sandbox, nil
}

// waitForOwner returns when the cluster is to end because its owner has: never, if the owner has
// sent keepRunning.
func waitForOwner(owner io.Reader) error {
	sent := make([]byte, 1)
	if _, err := io.ReadFull(owner, sent); err == nil && sent[0] == keepRunning {
		select {}
	}
	return errors.New("the program that has started the cluster has ended")
}

// waitForRemoval returns when the directory of the cluster is gone, and with it all that a later
// command finds the cluster by.
func waitForRemoval(ctx context.Context, dir string) error {
	return wait.PollUntilContextCancel(ctx, time.Second, false, func(context.Context) (bool, error) {
		if _, err := os.Stat(recordFile(dir)); errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("the directory of the cluster was removed: %w", err)
		}
		return false, nil
	})
}
