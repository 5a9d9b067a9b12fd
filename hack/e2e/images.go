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
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	imageutils "k8s.io/kubernetes/test/utils/image"
	"k8s.io/kubernetes/test/utils/realcluster"
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
func makeImages(ctx context.Context, o options) error {
	if err := os.MkdirAll(imageDirectory(o), 0o755); err != nil {
		return fmt.Errorf("create the directory of the images: %w", err)
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("find the shell of images: %w", err)
	}
	applets, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("list the programs of busybox: %w", err)
	}
	for _, image := range testImages(o, busybox, strings.Fields(string(applets))) {
		args := []string{
			"-o", filepath.Join(imageDirectory(o), image.file), "-t", strings.Join(image.names, ","),
			"-entrypoint", image.entrypoint, "-command", image.command,
		}
		output, err := exec.CommandContext(ctx, filepath.Join(o.bin, "mkimage"), append(args, image.contents...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("make %s: %w: %s", image.file, err, output)
		}
	}
	return nil
}
