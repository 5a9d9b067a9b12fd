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
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"k8s.io/kubernetes/test/utils/controlplane"
)

const (
	// scriptTools are the programs that the script finds by their names: a node has them at a path
	// that the script takes, whatever that of the repository.
	scriptTools = "/run/node/tools"

	// scriptTemporary is where the script has the configuration of the components, and etcd its data.
	scriptTemporary = "/run/node/script"

	// resolvConf is what pods get whose DNS is that of their node: there is none.
	resolvConf = "/run/node/resolv.conf"

	// sudo is for the calls of sudo in the script, which runs as root.
	sudo = "#!/bin/sh\nwhile [ \"$1\" = -E ]; do shift; done\nexec \"$@\"\n"

	// etcdLauncher is the etcd that the script finds by its name. It runs from a path of the cluster,
	// as the other components do.
	etcdLauncher = "#!/bin/sh\nexec \"$" + programsVariable + "/etcd\" \"$@\"\n"

	programsVariable = "SCRIPT_PROGRAMS"

	// pluginDirectory is where the script looks for plugins of the container network. It would
	// download them if they were not there.
	pluginDirectory = "/opt/cni/bin"
)

// runScriptSandbox starts the node in which the script runs, and ends with it.
func runScriptSandbox(ctx context.Context, dir string, r record) error {
	ended, err := startNode(dir, 0)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return acceptClients(ctx, net.JoinHostPort(networkOf(0).address.String(), strconv.Itoa(r.Port)))
	})
	group.Go(func() error {
		select {
		case <-ended:
			return fmt.Errorf("%s has ended\n%s", nodeName(0), controlplane.LogEnd(filepath.Join(dir, "logs", nodeName(0)+".log")))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return group.Wait()
}

// startScript starts the script, whose end is sent.
func (n *node) startScript(ended chan<- error) error {
	if err := n.prepareScript(); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(n.dir, "logs", scriptName+".log"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("create the log of the script: %w", err)
	}
	defer log.Close()
	c := exec.Command("/usr/bin/env", "bash", scriptFile(n.Output), "-o", programDirectory(n.dir, n.name()))
	c.Dir, c.Stdout, c.Stderr = treeOf(n.Output), log, log
	c.Env = n.Script.environment(n.scriptSettings())
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start hack/%s.sh: %w", scriptName, err)
	}
	go func() {
		_ = c.Wait() // It exits with 0 also after an error.
		ended <- fmt.Errorf("hack/%s.sh has ended by itself: %s", scriptName, c.ProcessState)
	}()
	return nil
}

// scriptSettings are the variables that the sandbox gives the script. Nothing of the user's
// environment is among them.
func (n *node) scriptSettings() []string {
	return []string{
		"PATH=" + scriptTools + ":" + systemPath, "HOME=" + n.state(), "USER=root", "TERM=dumb",
		programsVariable + "=" + programDirectory(n.dir, n.name()),
		"TMPDIR=" + scriptTemporary, "ETCD_DIR=" + scriptTemporary + "/etcd",
		"LOG_DIR=" + filepath.Join(n.dir, "logs"),
		"CERT_DIR=" + scriptDirectory, "POD_MANIFEST_PATH=" + scriptManifests,
		// On the host and here it is the same, so that a kubeconfig serves both.
		portVariable + "=" + strconv.Itoa(n.Port),
		"API_HOST=127.0.0.1", "API_BIND_ADDR=0.0.0.0",
		"CONTAINER_RUNTIME_ENDPOINT=unix://" + containerdSocket,
		"CGROUP_DRIVER=cgroupfs", "CGROUP_ROOT=" + n.cgroup(),
		"KUBELET_RESOLV_CONF=" + resolvConf,
		// Images come from files, and there are none of these.
		"KUBE_ENABLE_CLUSTER_DNS=false", "KUBE_ENABLE_NODELOCAL_DNS=false",
	}
}

// prepareScript gives the script what it looks for, and empty directories where it writes.
func (n *node) prepareScript() error {
	if err := errors.Join(
		bindDirectory(scriptFiles(n.dir), scriptDirectory),
		bindDirectory(manifests(n.dir, n.name()), scriptManifests),
		bindDirectory(filepath.Join(n.dir, "script"), scriptTemporary),
		os.MkdirAll(scriptTools, 0o755),
	); err != nil {
		return fmt.Errorf("create the directories of the script: %w", err)
	}
	for _, program := range []string{"kubectl", "cfssl", "cfssljson"} {
		if _, err := controlplane.Link(scriptTools, filepath.Join(n.Bin, program)); err != nil {
			return err
		}
	}
	for _, program := range scriptComponents {
		if _, err := controlplane.Link(programDirectory(n.dir, n.name()), filepath.Join(n.Bin, program)); err != nil {
			return err
		}
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(scriptTools, "sudo"), []byte(sudo), 0o755),
		os.WriteFile(filepath.Join(scriptTools, controlplane.Etcd), []byte(etcdLauncher), 0o755),
		os.WriteFile(resolvConf, nil, 0o644),
	); err != nil {
		return fmt.Errorf("write a file of the node: %w", err)
	}
	// The script writes there, too.
	return errors.Join(n.overlay("/tmp"), n.providePlugins(), n.setUpNames())
}

// setUpNames lets the API server reach the kubelet by the name of the node, which may be one that the
// user has chosen. The name servers of the machine do not answer here: each lookup would wait for them.
func (n *node) setUpNames() error {
	if exists("/etc/resolv.conf") {
		if err := replaceFile("/etc/resolv.conf", nil); err != nil {
			return err
		}
	}
	names := []string{"localhost", n.name()}
	if name := n.Script.node(); net.ParseIP(name) == nil {
		names = append(names, name)
	}
	return replaceFile("/etc/hosts", fmt.Appendf(nil, "127.0.0.1 %s\n::1 localhost\n", strings.Join(names, " ")))
}

// providePlugins puts the plugins of the container network where the script looks for them.
func (n *node) providePlugins() error {
	if exists(filepath.Join(pluginDirectory, "loopback")) {
		return nil
	}
	for _, directory := range pluginDirectories {
		if !exists(filepath.Join(directory, "loopback")) {
			continue
		}
		if err := n.overlay("/opt"); err != nil {
			return err
		}
		if err := os.MkdirAll(pluginDirectory, 0o755); err != nil {
			return fmt.Errorf("create a directory of the node: %w", err)
		}
		if err := unix.Mount(directory, pluginDirectory, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s at %s: %w", directory, pluginDirectory, err)
		}
		return nil
	}
	return fmt.Errorf("the plugin loopback of the container network is in none of %s", strings.Join(pluginDirectories, ", "))
}

// overlay keeps in memory what is written into a directory of the host, except into the output
// directory.
func (n *node) overlay(directory string) error {
	info, err := os.Stat(directory)
	if err != nil {
		return fmt.Errorf("a node needs %s: %w", directory, err)
	}
	output, err := filepath.EvalSymlinks(n.Output)
	if err != nil {
		return fmt.Errorf("resolve the output directory: %w", err)
	}
	real, err := os.OpenFile(output, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("open the output directory: %w", err)
	}
	defer real.Close()
	upper, work := filepath.Join("/run/node/overlays", directory, "upper"), filepath.Join("/run/node/overlays", directory, "work")
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755), os.Chmod(upper, info.Mode())); err != nil {
		return fmt.Errorf("create a directory of the node: %w", err)
	}
	if err := unix.Mount("overlay", directory, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", directory, upper, work)); err != nil {
		return fmt.Errorf("mount an overlay at %s: %w", directory, err)
	}
	if !strings.HasPrefix(output+"/", directory+"/") {
		return nil
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", real.Fd()), output, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount the output directory again: %w", err)
	}
	return nil
}
