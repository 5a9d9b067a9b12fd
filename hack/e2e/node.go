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
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	imageutils "k8s.io/kubernetes/test/utils/image"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster"
	"k8s.io/kubernetes/test/utils/steps"
)

// testImage is an image that tests ask for by its names upstream. It is made of programs built
// here: no registry is asked.
type testImage struct {
	file  string
	names []string
	// entrypoint and command are what a container runs.
	entrypoint, command string
	// contents are arguments of mkimage.
	contents []string
}

// testImages are all images that the selected tests use.
func testImages(o options, busybox string, applets []string) []testImage {
	shell := []string{busybox + "=/bin/busybox"}
	for _, applet := range applets {
		if applet == "busybox" {
			continue // The program itself.
		}
		shell = append(shell, "@busybox=/bin/"+applet)
	}
	name := imageutils.GetE2EImage
	// Tests remove this file of the web server to make a pod unready.
	certificate := filepath.Join(o.tree, "test", "images", "agnhost", "porter", "localhost.crt")
	agnhost := append([]string{filepath.Join(o.bin, "agnhost") + "=/agnhost", "@agnhost=/agnhost-2", certificate + "=/localhost.crt"}, shell...)
	return []testImage{
		{
			file: "agnhost.tar", names: []string{name(imageutils.Agnhost), name(imageutils.AgnhostPrev)},
			entrypoint: "/agnhost", command: "pause", contents: agnhost,
		}, {
			// Tests only want a web server.
			file: "nginx.tar", names: []string{name(imageutils.Nginx), name(imageutils.NginxNew)},
			command: "/agnhost test-webserver", contents: agnhost,
		}, {
			file: "busybox.tar", names: []string{name(imageutils.BusyBox)}, command: "sh", contents: shell,
		}, {
			file: "pause.tar", names: []string{name(imageutils.Pause), realcluster.PauseImage},
			entrypoint: "/workload pause", contents: []string{filepath.Join(o.bin, "workload") + "=/workload"},
		},
	}
}

// imageDirectory is where nodes look for images: those of other clusters need none of these.
func imageDirectory(o options) string { return filepath.Join(o.output, "images") }

// makeImages makes all images.
func makeImages(ctx context.Context, o options) {
	steps.Check(os.MkdirAll(imageDirectory(o), 0o755))
	busybox, err := exec.LookPath("busybox")
	steps.Check(err, "find the shell of images")
	applets, err := exec.CommandContext(ctx, busybox, "--list").Output()
	steps.Check(err, "list the programs of busybox")
	for _, image := range testImages(o, busybox, strings.Fields(string(applets))) {
		args := append([]string{
			"-o", filepath.Join(imageDirectory(o), image.file), "-t", strings.Join(image.names, ","),
			"-entrypoint", image.entrypoint, "-command", image.command,
		}, image.contents...)
		output, err := exec.CommandContext(ctx, filepath.Join(o.bin, "mkimage"), args...).CombinedOutput()
		steps.Check(err, "make ", image.file, ": ", string(output))
	}
}

// sudo is the name by which this program stands in for systemctl: the tests of a node restart the
// kubelet by "sudo systemctl", and nodes have no systemd.
const sudo = "sudo"

// The variables that name the cluster.
const (
	outputVariable  = "E2E_OUTPUT"
	clusterVariable = "E2E_CLUSTER"
)

// systemctlVariables are the variables of tests that restart the kubelet, name=value.
func systemctlVariables(o options, c *realcluster.Cluster, dir string) []string {
	bin := filepath.Join(dir, "bin")
	err := errors.Join(os.MkdirAll(bin, 0o755), os.Symlink(filepath.Join(o.bin, "e2e"), filepath.Join(bin, sudo)))
	steps.Check(err, "create a program that restarts the kubelet")
	return []string{
		"PATH=" + bin + ":/usr/sbin:/usr/bin:/sbin:/bin",
		outputVariable + "=" + c.Local.Output,
		clusterVariable + "=" + c.Local.Name,
	}
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
