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
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// node is one that runs in this process's namespaces.
type node struct {
	record
	dir   string
	index int
}

func (n *node) name() string { return nodeName(n.index) }

// state is the directory of what the node has on its disk.
func (n *node) state() string { return filepath.Join(n.dir, "nodes", n.name()) }

// Manifests is the directory of the manifests of the static pods of a node.
func manifests(dir, node string) string { return filepath.Join(dir, "manifests", node) }

// restartDelay is the pause before a component of a node that has ended is started again.
const restartDelay = time.Second

// runNode runs the components of a node. Those that end are started again, as a service manager
// does. The node waits until its standard input is closed: then it has a link.
func runNode(ctx context.Context, dir string, index int) error {
	// The kernel ends the components with the thread that has started them.
	runtime.LockOSThread()
	r, err := readRecord(dir)
	if err != nil {
		return err
	}
	n := &node{record: r, dir: dir, index: index}
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return fmt.Errorf("wait for the link: %w", err)
	}
	if err := setUpNodeNetwork(index); err != nil {
		return err
	}
	if err := n.setUpFiles(); err != nil {
		return err
	}
	again := make(chan string)
	if err := n.start(ctx, "containerd", again); err != nil {
		return err
	}
	ready, down := make(chan error, 1), make(chan error, 1)
	if err := n.startLogind(ctx, again, down); err != nil {
		return err
	}
	go func() { ready <- n.prepareForPods(ctx) }()
	for {
		select {
		case err := <-ready:
			switch {
			case err != nil:
			case n.Script != nil:
				err = n.startScript(down)
			default:
				err = errors.Join(n.start(ctx, kubelet, again), n.start(ctx, kubeProxy, again))
			}
			if err != nil {
				return err
			}
		case component := <-again:
			if err := n.start(ctx, component, again); err != nil {
				return err
			}
		case err := <-down:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// args are the flags of a component.
func (n *node) args(component string) []string {
	switch component {
	case "containerd":
		return []string{"--config=" + containerdConfigFile}
	case kubelet:
		gates := n.Settings.Gates
		var flags []string
		if other, found := n.Kubelets[n.name()]; found {
			gates = other.Gates
			if other.ManifestURL != "" {
				flags = []string{"--manifest-url=" + other.ManifestURL, "--http-check-frequency=1s"}
			}
		}
		return append(flags,
			"--config="+kubeletConfigFile, "--kubeconfig="+n.kubeconfig(n.name()), "--hostname-override="+n.name(),
			"--node-ip="+networkOf(n.index).address.String(), "--feature-gates="+gates,
			"--node-labels=topology.kubernetes.io/zone="+zoneOf(n.index), "--v=2",
		)
	case dbusDaemon:
		return []string{"--config-file=" + busConfigFile, "--nofork", "--nopidfile", "--nosyslog"}
	default:
		return []string{"--config=" + proxyConfigFile, "--v=2"}
	}
}

// start starts a component, whose name is sent when it is to be started again.
func (n *node) start(ctx context.Context, component string, again chan<- string) error {
	c, err := n.command(ctx, component)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(n.log(component), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", component, err)
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return fmt.Errorf("start %s: %w", component, err)
	}
	go func() {
		err := c.Wait()
		fmt.Printf("%s %s has ended: %v\n", time.Now().Format(time.TimeOnly), component, err)
		time.Sleep(restartDelay)
		for exists(stopFile(n.dir, n.name(), component)) {
			time.Sleep(pollInterval)
		}
		again <- component
	}()
	return nil
}

// command returns the command of a component. Its path is one of its own, by which it is found.
func (n *node) command(ctx context.Context, component string) (*exec.Cmd, error) {
	var err error
	// It may run another kubelet from now on.
	if n.record, err = readRecord(n.dir); err != nil {
		return nil, err
	}
	path, err := n.program(component)
	if err != nil {
		return nil, err
	}
	link, err := controlplane.Link(programDirectory(n.dir, n.name()), path)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, link, n.args(component)...)
	// containerd looks for its shim there, and for runc.
	c.Env = []string{"PATH=" + n.Bin + ":" + systemPath, "HOME=" + n.state(), "TMPDIR=" + temporaryDirectory}
	if n.InhibitDelayMax != 0 {
		c.Env = append(c.Env, "DBUS_SYSTEM_BUS_ADDRESS="+busAddress(busSocket))
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c, nil
}

// program returns the path of a component, and prepares what may change between its starts.
func (n *node) program(component string) (string, error) {
	switch component {
	case kubelet:
		path := filepath.Join(cmp.Or(n.Kubelets[n.name()].Bin, n.Bin), kubelet)
		return path, writeConfig(kubeletConfigFile, n.kubeletConfig())
	case dbusDaemon:
		return exec.LookPath(dbusDaemon)
	default:
		return filepath.Join(n.Bin, component), nil
	}
}

func (n *node) log(component string) string {
	return filepath.Join(n.dir, "logs", n.name()+"-"+component+".log")
}

// prepareForPods imports the images, and waits for the API server if the cluster starts. Without it,
// the kubelet and kube-proxy would wait longer and longer between their attempts to reach it. A node
// that boots again does so also without the API server, and so does one that has or starts one.
func (n *node) prepareForPods(ctx context.Context) error {
	bootsAgain := exists(n.log(kubelet))
	if err := n.importImages(ctx); err != nil || bootsAgain || n.hasControlPlane() || n.Script != nil {
		return err
	}
	client := &http.Client{
		Timeout:   time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	url := fmt.Sprintf("https://%s:%d/readyz", controlPlaneAddress, n.Port)
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		response, err := client.Get(url)
		if err != nil {
			return false, nil
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
}

// importImages waits until containerd is up, and gives it all images that were built.
func (n *node) importImages(ctx context.Context) error {
	directory := filepath.Join(n.Output, "images")
	// The path of the directory may have characters that mean something to Glob.
	images, err := fs.Glob(os.DirFS(directory), "*.tar")
	if err != nil {
		return err
	}
	var archives []string
	for _, image := range images {
		archives = append(archives, filepath.Join(directory, image))
	}
	if n.hasControlPlane() {
		archives = append(archives, n.StaticControlPlane.Archives...)
	}
	if err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		return exec.CommandContext(ctx, filepath.Join(n.Bin, "ctr"), "version").Run() == nil, nil
	}); err != nil {
		return fmt.Errorf("wait for containerd: %w", err)
	}
	for _, archive := range archives {
		output, err := exec.CommandContext(ctx, filepath.Join(n.Bin, "ctr"), "--namespace=k8s.io", "images", "import", archive).CombinedOutput()
		if err != nil {
			return fmt.Errorf("import %s: %w: %s", archive, err, output)
		}
	}
	return nil
}

// hasControlPlane returns whether the control plane is also in static pods of this node.
func (n *node) hasControlPlane() bool {
	return n.StaticControlPlane != nil && n.index < n.StaticControlPlane.Nodes
}
