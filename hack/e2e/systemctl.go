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
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster"
)

// sudo is the name by which this program stands in for systemctl: the tests of a node restart the
// kubelet by "sudo systemctl", and nodes have no systemd.
const sudo = "sudo"

// The variables that name the cluster.
const (
	outputVariable  = "E2E_OUTPUT"
	clusterVariable = "E2E_CLUSTER"
)

// systemctlVariables are the variables of tests that restart the kubelet, name=value.
func systemctlVariables(o options, c *realcluster.Cluster, dir string) ([]string, error) {
	bin := filepath.Join(dir, "bin")
	err := os.MkdirAll(bin, 0o755)
	if err == nil {
		err = os.Symlink(filepath.Join(o.bin, "e2e"), filepath.Join(bin, sudo))
	}
	if err != nil {
		return nil, fmt.Errorf("create a program that restarts the kubelet: %w", err)
	}
	return []string{
		"PATH=" + bin + ":/usr/sbin:/usr/bin:/sbin:/bin",
		outputVariable + "=" + c.Local.Output,
		clusterVariable + "=" + c.Local.Name,
	}, nil
}

// runSystemctl does what the tests ask for, in the namespaces of the node.
func runSystemctl(ctx context.Context, args []string) error {
	c := &realcluster.Cluster{Local: &localcluster.Cluster{Name: os.Getenv(clusterVariable), Output: os.Getenv(outputVariable)}}
	if len(args) < 2 || args[0] != "systemctl" || c.Local.Name == "" {
		return errors.New("this program stands in for sudo systemctl in tests of a node")
	}
	switch args[1] {
	case "list-units":
		fmt.Println("kubelet-e2e.service loaded active running")
		return nil
	case "reset-failed":
		return nil // It starts the kubelet however often it has ended.
	case "kill":
		return c.StopKubelet(ctx, firstNode, unix.SIGTERM)
	case "restart":
		// It may have been stopped before.
		_ = c.StopKubelet(ctx, firstNode, unix.SIGTERM)
		return c.StartKubelet(ctx, firstNode)
	}
	return fmt.Errorf("no support for systemctl %s", strings.Join(args[1:], " "))
}
