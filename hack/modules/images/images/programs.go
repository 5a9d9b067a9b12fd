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
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// program is one that has an image.
type program struct {
	name, description string
	// path is where the image has it, by default /usr/local/bin/<name>.
	path string
	// entrypoint is what a container runs with its command as arguments, by default runner.
	entrypoint string
	// bindsLowPorts is that of layer.File.
	bindsLowPorts bool
	// command is what a container runs unless its pod says otherwise.
	command []string
	// roots says that it asks servers that authorities which everybody trusts have certified.
	roots bool
}

const (
	// runner is the path of kube-log-runner, which redirects logs into files where its flags say
	// so, and runs its arguments otherwise.
	runner = "/go-runner"

	// logRunner is its program.
	logRunner = "kube-log-runner"
)

// programs are those with an image, in which paths, entrypoint, user (root) and capabilities are
// those of upstream's image, so that manifests of upstream's fit. The kubelet has no such image:
// its own is there to copy it from.
//
// kube-proxy has none. It calls iptables or nft, ipset and conntrack, programs in C with libraries
// that only a distribution brings, and the fork does not change it: upstream's image of the same
// release does.
var programs = []program{
	{name: "kube-apiserver", description: "Kubernetes API server", bindsLowPorts: true, roots: true},
	{name: "kube-controller-manager", description: "Kubernetes controller manager", roots: true},
	{name: "kube-scheduler", description: "Kubernetes scheduler", roots: true},
	{name: "kubectl", description: "Kubernetes command-line client, with kubectl maintenance", path: "/bin/kubectl", entrypoint: "/bin/kubectl", roots: true},
	{name: "kubelet", description: "Kubernetes node agent, to be copied to nodes", command: []string{"kubelet", "--version"}, roots: true},
}

func (p program) installPath() string { return cmp.Or(p.path, "/usr/local/bin/"+p.name) }

// runs returns the entrypoint, and whether it is runner.
func (p program) runs() (string, bool) {
	return cmp.Or(p.entrypoint, runner), p.entrypoint == ""
}

// selectPrograms returns the programs with these names, separated by commas, or all.
func selectPrograms(names string) ([]program, error) {
	if names == "" {
		return programs, nil
	}
	var selected []program
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: there is no image of %q", name)
		}
		selected = append(selected, programs[i])
	}
	return selected, nil
}

// file returns the path of a program of this machine that an image for an architecture gets. It is
// refused if it would not run there.
func (r *release) file(name, architecture string) (string, *buildinfo.BuildInfo, error) {
	path := filepath.Join(r.programs, "linux-"+architecture, name)
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", nil, fmt.Errorf("read the program of an image: %w", err)
	}
	for _, setting := range info.Settings {
		if setting.Key == "GOARCH" && setting.Value != architecture || setting.Key == "GOOS" && setting.Value != "linux" {
			return "", nil, fmt.Errorf("%s is built with %s=%s, not for linux/%s", path, setting.Key, setting.Value, architecture)
		}
	}
	file, err := elf.Open(path)
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return "", nil, fmt.Errorf("%s needs libraries of C, which images do not have: build it with CGO_ENABLED=0", path)
		}
	}
	return path, info, nil
}
