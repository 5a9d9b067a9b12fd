/*
Copyright The Kubernetes Authors.

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
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	oldGoMod = "module graceful\n\ngo 1.20\n\nrequire (\n\tk8s.io/kubernetes v1.1.0\n\tk8s.io/old v0.1.0\n)\n"
	newGoMod = `module graceful

go 1.26.0

require (
	k8s.io/kubernetes v1.2.0
	k8s.io/api v0.2.0
	k8s.io/streaming v0.2.0
)

replace (
	k8s.io/api => k8s.io/api v0.2.0
	k8s.io/streaming => k8s.io/streaming v0.2.0
)
`
	newGoSum = `k8s.io/kubernetes v1.2.0 h1:k8s.io/kubernetes=
k8s.io/kubernetes v1.2.0/go.mod h1:mod-k8s.io/kubernetes=
k8s.io/api v0.2.0 h1:k8s.io/api=
k8s.io/api v0.2.0/go.mod h1:mod-k8s.io/api=
k8s.io/streaming v0.2.0 h1:k8s.io/streaming=
k8s.io/streaming v0.2.0/go.mod h1:mod-k8s.io/streaming=
`
	newGoWork = `go 1.26.0

godebug default=go1.26

use (
	./_output/kubernetes
	./_output/kubernetes/staging/src/k8s.io/api
	./_output/kubernetes/staging/src/k8s.io/streaming
)
`
)

// newPinFixture is a repository on 1.1.0 with a base 1.2.0, whose go.work names a module that
// cannot be had.
func newPinFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	work := "go 1.26.0\n\ngodebug default=go1.26\n\nuse (\n\t.\n\t./staging/src/k8s.io/api\n\t./staging/src/k8s.io/sample-cli-plugin\n\t./staging/src/k8s.io/streaming\n)\n"
	// As upstream's: it replaces all staging modules, also those that it does not require.
	mod := "module k8s.io/kubernetes\n\nrequire (\n\tk8s.io/api v0.0.0\n)\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/sample-cli-plugin => ./staging/src/k8s.io/sample-cli-plugin\n)\n"
	f.addBase("2.0", map[string]string{"go.work": work, "go.mod": mod})
	f.repo("go.mod", oldGoMod)
	f.src.refused = []string{"k8s.io/sample-cli-plugin"}
	for _, m := range []string{"k8s.io/api", "k8s.io/streaming"} {
		f.write(filepath.Join(f.src.dir, m+"@v0.2.0", "go.mod"), "module "+m+"\n\nrequire k8s.io/apimachinery v0.2.0\n")
	}
	f.src.version = "1.0"
	return f
}

func (f *fixture) wantFiles(want map[string]string) {
	f.t.Helper()
	for name, text := range want {
		have, err := os.ReadFile(filepath.Join(f.root, name))
		if err != nil || string(have) != text {
			f.t.Errorf("%s is (%v):\n%s\nwant:\n%s", name, err, have, text)
		}
	}
}

func TestPin(t *testing.T) {
	f := newPinFixture(t)
	if status := f.run("pin", "-to", "v1.2.0"); status != 0 {
		t.Fatalf("status %d: %s", status, f.err)
	}
	f.wantFiles(map[string]string{"go.mod": newGoMod, "go.sum": newGoSum, "go.work": newGoWork})
	for _, want := range []string{
		"left out: k8s.io/sample-cli-plugin@v0.2.0 cannot be had, and no other module of the base requires it: not available",
		"pin v1.2.0 instead of v1.1.0: 3 modules, 1 left out",
	} {
		if !strings.Contains(f.out, want) {
			t.Errorf("the output lacks %q:\n%s", want, f.out)
		}
	}
}

func TestPinAgain(t *testing.T) {
	f := newPinFixture(t)
	f.src.version = "2.0"
	if status := f.run("pin", "-to", "v1.2.0"); status != 0 || !strings.Contains(f.out, "pins v1.2.0 already") {
		t.Errorf("status %d: %s%s", status, f.out, f.err)
	}
	f.wantFiles(map[string]string{"go.mod": oldGoMod})
}

// TestPinInterrupted: while one of the files is not written, go.mod has the old base, and another
// run writes all of them.
func TestPinInterrupted(t *testing.T) {
	for _, name := range []string{"go.work", "go.sum", "go.mod"} {
		t.Run(name, func(t *testing.T) {
			f := newPinFixture(t)
			// A directory that is not empty, where the file is written before it is renamed.
			obstacle := filepath.Join(f.root, name+tempSuffix)
			f.write(filepath.Join(obstacle, "file"), "")
			if status := f.run("pin", "-to", "v1.2.0"); status != 1 {
				t.Fatalf("status %d: %s", status, f.err)
			}
			f.wantFiles(map[string]string{"go.mod": oldGoMod})
			if err := os.RemoveAll(obstacle); err != nil {
				t.Fatal(err)
			}
			f.ok("pin", "-to", "v1.2.0")
			f.wantFiles(map[string]string{"go.mod": newGoMod, "go.sum": newGoSum, "go.work": newGoWork})
		})
	}
}

// TestPinRefused: nothing is written for a base of which no tree can be made.
func TestPinRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		to      string
		prepare func(*fixture)
		want    string
	}{
		"no version":        {to: "1.37", want: `-to "1.37" is no version of Kubernetes such as v1.37.3`},
		"version of a fork": {to: "v1.2.0+graceful.1", want: `-to "v1.2.0+graceful.1" is no version of Kubernetes`},
		"unknown version":   {to: "v1.2.0", prepare: func(f *fixture) { f.src.refused = []string{mainModule} }, want: "k8s.io/kubernetes@v1.2.0 cannot be had: not available"},
		"module that is required": {to: "v1.2.0", prepare: func(f *fixture) {
			f.write(filepath.Join(f.src.dir, "k8s.io/streaming@v0.2.0", "go.mod"), "module k8s.io/streaming\n\nrequire (\n\tk8s.io/sample-cli-plugin v0.2.0 // indirect\n)\n")
		}, want: "k8s.io/sample-cli-plugin@v0.2.0 cannot be had, and is required by k8s.io/streaming: wait until it is published"},
		"module that Kubernetes requires": {to: "v1.2.0", prepare: func(f *fixture) {
			f.write(filepath.Join(f.src.dir, mainModule+"@v1.2.0", "go.mod"), "module k8s.io/kubernetes\n\nrequire k8s.io/sample-cli-plugin v0.0.0\n")
		}, want: "is required by k8s.io/kubernetes: wait until it is published"},
		"download that fails": {to: "v1.2.0", prepare: func(f *fixture) { f.src.broken = "k8s.io/streaming" }, want: "the proxy does not answer"},
		"no version of Go": {to: "v1.2.0", prepare: func(f *fixture) {
			f.write(filepath.Join(f.src.dir, mainModule+"@v1.2.0", "go.work"), "use (\n\t./staging/src/k8s.io/api\n)\n")
		}, want: "the go.work of the base no version of Go"},
		"no workspace": {to: "v1.2.0", prepare: func(f *fixture) {
			f.write(filepath.Join(f.src.dir, mainModule+"@v1.2.0", "go.work"), "go 1.26.0\n")
		}, want: "names no staging module"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPinFixture(t)
			if tc.prepare != nil {
				tc.prepare(f)
			}
			if status := f.run("pin", "-to", tc.to); status != 1 || !strings.Contains(f.err, tc.want) {
				t.Errorf("status %d, error %q, want %q", status, f.err, tc.want)
			}
			f.wantFiles(map[string]string{"go.mod": oldGoMod})
		})
	}
}
