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
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
)

func checkRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("real nodes need root: namespaces, mounts and cgroups")
	}
	return nil
}

// checkKind refuses the directory of a cluster with simulated nodes.
func (c *Cluster) checkKind() error {
	if exists(filepath.Join(c.Local.Dir(), localcluster.Record)) {
		return fmt.Errorf("cluster %q is not one with real nodes: choose another name, or remove it with `make down`", c.Local.Name)
	}
	was, err := readRecord(c.Local.Dir())
	if err != nil {
		return nil // There is none, or it was not written to its end.
	}
	if was.Script != nil && c.Script == nil {
		return fmt.Errorf("cluster %q is one of hack/%s.sh: choose another name, or remove it with `make local-down`", c.Local.Name, scriptName)
	}
	if was.Script == nil && c.Script != nil {
		return fmt.Errorf("cluster %q is not one of hack/%s.sh: choose another name, or remove it with `make down-real`", c.Local.Name, scriptName)
	}
	return nil
}

// checkFiles refuses programs that are missing, and directories that nodes do not see.
func (c *Cluster) checkFiles() error {
	for _, directory := range replacedDirectories {
		for _, path := range []string{c.Local.Output, c.Local.Bin} {
			if strings.HasPrefix(path+"/", directory+"/") {
				return fmt.Errorf("%s is in %s, which nodes replace: move the repository, or give --output", path, directory)
			}
		}
	}
	for _, path := range c.programs() {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s is missing (%w): build it with `make %s`", filepath.Base(path), err, c.target())
		}
	}
	return c.checkShutdowns()
}

// target is that of make which builds what the cluster runs.
func (c *Cluster) target() string {
	if c.Script != nil {
		return "local-up"
	}
	return "real-nodes"
}

// programs are the paths of what the cluster runs.
func (c *Cluster) programs() []string {
	var paths []string
	if c.Script != nil {
		paths = append(paths, scriptFile(c.Local.Output), filepath.Join(c.Local.Bin, "cfssl"), filepath.Join(c.Local.Bin, "cfssljson"))
	}
	for _, program := range []string{"cluster", "kubectl", kubelet, kubeProxy, "containerd", "containerd-shim-runc-v2", "ctr"} {
		paths = append(paths, filepath.Join(c.Local.Bin, program))
	}
	for _, program := range []string{controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler} {
		paths = append(paths, filepath.Join(cmp.Or(c.ControlPlane, c.Local.Bin), program))
	}
	for _, kubelet := range c.Kubelets {
		paths = append(paths, filepath.Join(cmp.Or(kubelet.Bin, c.Local.Bin), "kubelet"))
	}
	return paths
}

// record is what the cluster is started with.
func (c *Cluster) record(settings localcluster.Settings) record {
	return record{
		Settings: settings, Nodes: c.Local.Nodes, Output: c.Local.Output, Bin: c.Local.Bin,
		ControlPlane: cmp.Or(c.ControlPlane, c.Local.Bin), Kubelets: c.Kubelets, InhibitDelayMax: c.InhibitDelayMax,
		StaticControlPlane: c.StaticControlPlane, Script: c.Script,
	}
}

// errNoCluster is why a cluster cannot be reused when there is none.
var errNoCluster = errors.New("there is no such cluster")

// reusable returns why the running cluster is not what the settings ask for.
func (c *Cluster) reusable(ctx context.Context, settings localcluster.Settings) error {
	info, err := os.Stat(recordFile(c.Local.Dir()))
	if errors.Is(err, os.ErrNotExist) {
		return errNoCluster
	}
	was, err := readRecord(c.Local.Dir())
	if err != nil {
		return err
	}
	for _, process := range append([]string{supervisorLock, sandboxLock}, nodeNames(c.Local.Nodes)...) {
		if pid, err := c.Process(process); err != nil || pid == 0 {
			return cmp.Or(err, fmt.Errorf("%s does not run any more", process))
		}
	}
	want := c.record(settings)
	want.Port = was.Port
	if !equality.Semantic.DeepEqual(was, want) {
		return fmt.Errorf("it runs with %s, not with %s", was, want)
	}
	for _, path := range c.programs() {
		built, err := os.Stat(path)
		if err != nil || built.ModTime().After(info.ModTime()) {
			return cmp.Or(err, fmt.Errorf("%s was built after it was started", filepath.Base(path)))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return c.awaitNodes(ctx, &watch{cluster: c, ended: c.Ended})
}
