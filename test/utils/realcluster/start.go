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
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

// supervisor is the process that owns a cluster. It ends the cluster when this program ends, unless
// it was told to keep it.
type supervisor struct {
	command *exec.Cmd
	// owner is the end of a pipe that the kernel closes with this program.
	owner *os.File
	log   string
	done  chan struct{} // Closed when the process has ended.
}

// systemPath is where the programs of the system are, such as runc and iptables.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// start starts the cluster from nothing, and waits until pods can be created. After an error
// nothing runs.
func (c *Cluster) start(ctx context.Context, settings localcluster.Settings) (*supervisor, error) {
	if err := c.remove(ctx); err != nil {
		return nil, err
	}
	dir := c.Local.Dir()
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the cluster: %w", err)
	}
	if err := c.record(settings).write(dir); err != nil {
		return nil, err
	}
	s, err := c.startSupervisor()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Local.Timeout, DefaultTimeout))
	defer cancel()
	w := c.newWatch(s.ended)
	err = c.awaitKubeconfig(ctx, w)
	if err == nil {
		err = c.awaitNodes(ctx, w)
	}
	if err == nil {
		w.end()
		return s, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		err = errors.Join(s.stop(), c.remove(context.WithoutCancel(ctx)))
		if err == nil {
			err = errors.New("nothing is left running")
		}
		return nil, fmt.Errorf("cluster %q: interrupted: %w", c.Local.Name, err)
	}
	return nil, errors.Join(fmt.Errorf("cluster %q: %w\nall logs are in %s", c.Local.Name, err, c.Local.Logs()), s.stop())
}

func (c *Cluster) startSupervisor() (*supervisor, error) {
	log, err := os.Create(filepath.Join(c.Local.Logs(), "supervisor.log"))
	if err != nil {
		return nil, fmt.Errorf("create the log of the supervisor: %w", err)
	}
	defer log.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer reader.Close()
	command := exec.Command(filepath.Join(c.Local.Bin, "cluster"), superviseCommand, c.Local.Dir())
	command.Stdin, command.Stdout, command.Stderr = reader, log, log
	// An interrupt from the keyboard is for this program, which then ends the supervisor.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Nothing of the user's: a proxy, for example, or a directory for temporary files that nodes
	// do not have.
	command.Env, command.Dir = []string{"PATH=" + systemPath}, "/"
	if err := command.Start(); err != nil {
		writer.Close()
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	s := &supervisor{command: command, owner: writer, log: log.Name(), done: make(chan struct{})}
	go func() {
		_ = command.Wait() // The log says how it ended.
		close(s.done)
	}()
	return s, nil
}

// keep lets the cluster outlive this program.
func (s *supervisor) keep() error {
	if _, err := s.owner.Write([]byte{keepRunning}); err != nil {
		return fmt.Errorf("tell the supervisor to keep the cluster: %w", errors.Join(err, s.ended()))
	}
	return s.owner.Close()
}

// stop ends the cluster, and returns when nothing of it runs.
func (s *supervisor) stop() error {
	if err := s.owner.Close(); err != nil {
		return fmt.Errorf("tell the supervisor to end: %w", err)
	}
	<-s.done
	return nil
}

// ended returns an error if the cluster has ended by itself.
func (s *supervisor) ended() error {
	select {
	case <-s.done:
		log, err := os.ReadFile(s.log)
		if err != nil {
			return err
		}
		return fmt.Errorf("it has ended by itself:\n%s", log)
	default:
		return nil
	}
}

// awaitKubeconfig waits until there are credentials, and copies those of the administrator to
// where users expect them.
func (c *Cluster) awaitKubeconfig(ctx context.Context, w *watch) error {
	var data []byte
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		if err := w.check(); err != nil {
			return false, err
		}
		var err error
		data, err = c.adminKubeconfig()
		return len(data) > 0, err
	})
	if wait.Interrupted(err) {
		err = fmt.Errorf("%w\n%s", err, c.nodeLogs(nodeName(0)))
	}
	if err == nil {
		err = os.WriteFile(c.Local.Kubeconfig(), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("no kubeconfig: %w", err)
	}
	return nil
}

// awaitNodes waits until pods can be created: until all nodes take pods, and the service account of
// namespace default is there. An error shows the logs of the node that it names.
func (c *Cluster) awaitNodes(ctx context.Context, w *watch) error {
	config, err := c.Local.Config()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	var sick string
	var missing error
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if err := w.check(); err != nil {
			return false, err
		}
		node, err := c.missing(ctx, client)
		if err == nil || missing == nil || ctx.Err() == nil {
			sick, missing = node, err // Not that the time was over during a request.
		}
		return err == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%w: %w\n%s", missing, err, c.nodeLogs(sick))
	}
	return err
}

// endedNode returns a node that has run and does not run any more, or "".
func (c *Cluster) endedNode() string {
	for _, name := range nodeNames(c.Local.Nodes) {
		if pid, err := c.Process(name); err == nil && pid == 0 && exists(lockFile(c.Local.Dir(), name)) {
			return name
		}
	}
	return ""
}

// nodeLogs shows the ends of the logs that say why a node does not work, if there is one.
func (c *Cluster) nodeLogs(name string) string {
	var ends []string
	logs := []string{name, name + "-kubelet"}
	if c.Script != nil {
		logs = []string{nodeName(0), scriptName, kubelet}
	}
	for _, log := range logs {
		if path := c.log(log); name != "" && exists(path) {
			ends = append(ends, controlplane.LogEnd(path))
		}
	}
	return strings.Join(ends, "\n")
}

// requestTimeout is for one request: an API server that does not answer must not hide that it has ended.
const requestTimeout = 2 * time.Second

// missing returns why pods cannot be created yet, and the node that is the reason, if it is one.
func (c *Cluster) missing(ctx context.Context, client kubernetes.Interface) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, name := range c.nodesOfAPI() {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return name, fmt.Errorf("%s has not joined: %w", name, err)
		}
		if _, ready := nodeutil.GetNodeCondition(&node.Status, v1.NodeReady); ready == nil || ready.Status != v1.ConditionTrue {
			return name, fmt.Errorf("%s is not ready: %s", name, ptr.Deref(ready, v1.NodeCondition{}).Message)
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == v1.TaintNodeNotReady {
				return name, fmt.Errorf("%s has the taint %s", name, taint.Key)
			}
		}
	}
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", errors.New("the service account of namespace default was not created")
	}
	if err == nil && c.Script != nil {
		return c.Script.node(), c.scriptMissing(ctx, client)
	}
	return "", err
}
