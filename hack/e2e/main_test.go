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
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestParseOptions(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		modes []string
		want  string
	}{
		"all modes":        {modes: []string{"on", "off", "base"}},
		"an empty mode":    {args: []string{"--mode", ""}, modes: []string{"on", "off", "base"}},
		"one mode":         {args: []string{"--mode", "off"}, modes: []string{"off"}},
		"an unknown mode":  {args: []string{"--mode", "both"}, want: `--mode is "both", must be on, off or base`},
		"no processes":     {args: []string{"--procs", "0"}, want: "--procs is 0"},
		"an argument":      {args: []string{"off"}, want: `unexpected argument "off"`},
		"an unknown flag":  {args: []string{"--skip", "x"}, want: "not defined"},
		"no expression":    {args: []string{"--focus", "("}, want: "flag -focus: error parsing regexp"},
		"another output":   {args: []string{"--output", "/out"}, modes: []string{"on", "off", "base"}},
		"a mode and procs": {args: []string{"--mode=base", "--procs=1"}, modes: []string{"base"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseOptions(test.args)
			checkError(t, err, test.want)
			if test.want != "" {
				return
			}
			var got []string
			for _, m := range o.modes {
				got = append(got, m.name)
			}
			if diff := cmp.Diff(test.modes, got); diff != "" {
				t.Errorf("modes (-want, +got):\n%s", diff)
			}
			if !filepath.IsAbs(o.bin) || !filepath.IsAbs(o.output) {
				t.Errorf("the paths are relative: %+v", o)
			}
		})
	}
}

// Only the mode that tests the gates may have settings, and only that of the base its programs.
func TestModes(t *testing.T) {
	o := options{bin: "ours", base: "base"}
	for _, m := range modes {
		if (m.settings.Gates != "") != (m.name == "on") || (m.settings.RuntimeConfig != "") != (m.name == "on") {
			t.Errorf("mode %s runs with %s", m.name, m.settings)
		}
		if (o.programs(m) == "base") != (m.name == "base") {
			t.Errorf("mode %s runs the programs in %s", m.name, o.programs(m))
		}
	}
}

// Nodes import all images: no two may have the same name or file. An image has each file once:
// busybox lists itself among its programs, and would become a link to itself.
func TestImages(t *testing.T) {
	seen := sets.New[string]()
	for _, image := range testImages(options{}, "/bin/busybox", []string{"busybox", "sh"}) {
		paths := sets.New[string]()
		for _, content := range image.contents {
			_, path, _ := strings.Cut(content, "=")
			if path == "" || paths.Has(path) {
				t.Errorf("%s has %q twice, or it is empty", image.file, path)
			}
			paths.Insert(path)
		}
		for _, name := range append(image.names, image.file) {
			if name == "" || seen.Has(name) {
				t.Errorf("%q is there twice, or empty", name)
			}
			seen.Insert(name)
		}
	}
}

func TestSystemctl(t *testing.T) {
	for name, test := range map[string]struct {
		args    []string
		cluster string
		want    string
	}{
		"the name of the kubelet":   {args: []string{"systemctl", "list-units", "*kubelet*"}, cluster: "on-node"},
		"not asked for systemctl":   {args: []string{"reboot", "now"}, cluster: "on-node", want: "stands in for sudo systemctl"},
		"outside of tests":          {args: []string{"systemctl", "list-units"}, want: "stands in for sudo systemctl"},
		"what tests do not ask for": {args: []string{"systemctl", "stop", "containerd"}, cluster: "on-node", want: "no support for systemctl stop containerd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(clusterVariable, test.cluster)
			checkError(t, runSystemctl(t.Context(), test.args), test.want)
		})
	}
}
