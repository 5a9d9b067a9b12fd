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

package localcluster

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	cases := map[string]struct {
		list    string
		want    string
		wantErr bool
	}{
		"empty":                {list: "", want: ""},
		"order does not count": {list: "B=false,A=true", want: "A=true,B=false"},
		"spaces and commas":    {list: " A=true,,", want: "A=true"},
		"API version":          {list: "coordination.k8s.io/v1alpha1=true", want: "coordination.k8s.io/v1alpha1=true"},
		"no value":             {list: "A", wantErr: true},
		"no name":              {list: "=true", wantErr: true},
		"value not boolean":    {list: "A=maybe", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, settings := range []Settings{{Gates: tc.list}, {RuntimeConfig: tc.list}} {
				got, err := (&Cluster{Settings: &settings}).ResolvedSettings()
				if (err != nil) != tc.wantErr {
					t.Errorf("settings of %+v: %v, want an error: %t", settings, err, tc.wantErr)
				}
				if err == nil && got.Gates+got.RuntimeConfig != tc.want {
					t.Errorf("settings of %+v = %+v, want %q", settings, got, tc.want)
				}
			}
		})
	}
}

// TestDefaultSettings: a cluster of the fork has all gates on, one of the base none, nor flags that
// only the fork knows.
func TestDefaultSettings(t *testing.T) {
	fork, err := (&Cluster{}).ResolvedSettings()
	if err != nil || fork.String() != DefaultSettings.String() || len(fork.Args) == 0 {
		t.Errorf("settings of the fork: %+v, %v", fork, err)
	}
	base, err := (&Cluster{Base: "bin"}).ResolvedSettings()
	if err != nil || base.Gates != "" || base.RuntimeConfig != "" || len(base.Args) > 0 {
		t.Errorf("settings of the base: %+v, %v", base, err)
	}
	var args Args
	for _, arg := range DefaultSettings.Args {
		if err := args.Set(arg); err != nil {
			t.Error(err)
		}
	}
}

// TestDefaultGates verifies that the default gates are those that the headers of patches name.
func TestDefaultGates(t *testing.T) {
	// The tree has no patches, but links to the repository.
	file, err := filepath.EvalSymlinks("start.go")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(filepath.Dir(file), "../../..")
	var named []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// Generated files and directories such as .git contain no patches of ours.
		if entry.IsDir() && path != root && (entry.Name() == "_output" || strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".patch" {
			named = append(named, gatesOfPatch(t, path)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(named)
	if got, want := DefaultSettings.Gates, strings.Join(slices.Compact(named), ","); got != want {
		t.Errorf("the default gates are %q, the patches name %q", got, want)
	}
}

// gatesOfPatch returns the gates in the header of a patch, as settings.
func gatesOfPatch(t *testing.T, path string) []string {
	t.Helper()
	patch, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var gates []string
	for line := range strings.Lines(string(patch)) {
		list, isHeader := strings.CutPrefix(line, "Gate: ")
		if !isHeader {
			continue
		}
		for _, gate := range strings.Split(list, ",") {
			if gate = strings.TrimSpace(gate); gate != "none" {
				gates = append(gates, gate+"=true")
			}
		}
		break // The rest is the patch.
	}
	return gates
}

func TestArgs(t *testing.T) {
	var args Args
	for _, bad := range []string{"", "v=2", "kubelet:v=2", "etcd:v", "etcd:=2", "etcd:--v=2"} {
		if err := args.Set(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	good := []string{"kube-apiserver:audit-log-path=/a=b:c", "kube-controller-manager:kube-api-qps=20"}
	for _, arg := range good {
		if err := args.Set(arg); err != nil {
			t.Errorf("%q was refused: %v", arg, err)
		}
	}
	if !slices.Equal(args, good) {
		t.Errorf("args = %q, want %q", args, good)
	}
}
