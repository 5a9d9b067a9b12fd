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
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A cgroup is in each hierarchy of version 1, or in the only one of version 2, and goes with all
// that is below it. Those of another cluster stay, and the parent with them.
func TestCgroups(t *testing.T) {
	for name, hierarchies := range map[string][]string{
		"version 1":               {"cpu", "memory"},
		"version 2":               {"."},
		"version 1, 2 beside it ": {"cpu", "memory", "unified"},
	} {
		t.Run(name, func(t *testing.T) {
			mount := t.TempDir()
			for _, hierarchy := range hierarchies {
				write(t, filepath.Join(mount, hierarchy, "cgroup.procs"))
			}
			first, second := cgroupOf("/a/clusters/real"), cgroupOf("/b/clusters/real")
			for _, cgroup := range []string{first, second} {
				if err := createCgroup(mount, cgroup+"/node-0"); err != nil {
					t.Fatal(err)
				}
			}
			expect := func(cgroup string, want bool) {
				t.Helper()
				for _, hierarchy := range hierarchies {
					if path := filepath.Join(mount, hierarchy, cgroup); exists(path) != want {
						t.Errorf("%s exists: %t, want %t", path, !want, want)
					}
				}
			}
			expect(first+"/node-0", true)
			if err := tryRemoveCgroups(mount, first); err != nil {
				t.Fatal(err)
			}
			expect(first, false)
			expect(second+"/node-0", true)
			if err := tryRemoveCgroups(mount, second); err != nil {
				t.Fatal(err)
			}
			expect("/"+cgroupParent, false)
			// There may be nothing to remove.
			if err := tryRemoveCgroups(mount, second); err != nil {
				t.Error(err)
			}
		})
	}
}

// Each parent of a cgroup of version 2 must pass its controllers on.
func TestCgroup2Controllers(t *testing.T) {
	mount := t.TempDir()
	write(t, filepath.Join(mount, "cgroup.procs"))
	parents := []string{mount, filepath.Join(mount, cgroupParent)}
	for _, parent := range parents {
		write(t, filepath.Join(parent, "cgroup.subtree_control"))
		if err := os.WriteFile(filepath.Join(parent, "cgroup.controllers"), []byte("memory\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := createCgroup(mount, "/"+cgroupParent+"/real"); err != nil {
		t.Fatal(err)
	}
	for _, parent := range parents {
		if passed, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control")); err != nil || string(passed) != "+memory" {
			t.Errorf("%s passes %q on (%v), want +memory", parent, passed, err)
		}
	}
}

// A cgroup with processes cannot be removed, like a directory with a file: that is an error.
func TestCgroupInUse(t *testing.T) {
	mount := t.TempDir()
	write(t, filepath.Join(mount, "cgroup.procs"))
	write(t, filepath.Join(mount, cgroupOf("/a/real"), "node-0", "process"))
	if err := tryRemoveCgroups(mount, cgroupOf("/a/real")); err == nil {
		t.Error("no error, although a cgroup is in use")
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The networks of nodes must not overlap, nor contain the address of the API server.
func TestNetworks(t *testing.T) {
	var seen []string
	for index := range MaxNodes {
		network := networkOf(index)
		for _, address := range []string{network.address.String(), network.gateway.String(), network.pods} {
			if slices.Contains(seen, address) || address == controlPlaneAddress {
				t.Errorf("%s of %s is used already", address, nodeName(index))
			}
			seen = append(seen, address)
		}
	}
}
