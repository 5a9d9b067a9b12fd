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
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// cgroupMount is where the cgroups of the machine are.
	cgroupMount = "/sys/fs/cgroup"

	// cgroupParent is the parent of the cgroups of all clusters.
	cgroupParent = "graceful-kubernetes"

	// cgroupTimeout is how long the kernel may take to remove the last process of a cgroup, after
	// that was killed.
	cgroupTimeout = 30 * time.Second
)

// cgroupOf is the cgroup of the cluster in a directory, from the root of the hierarchy. Clusters of
// other output directories may have the same name.
func cgroupOf(dir string) string {
	hash := fnv.New32a()
	hash.Write([]byte(dir))
	return fmt.Sprintf("/%s/%s-%08x", cgroupParent, filepath.Base(dir), hash.Sum32())
}

// nodeCgroup is that of all pods of a node.
func nodeCgroup(dir, node string) string { return cgroupOf(dir) + "/" + node }

// createCgroup creates a cgroup: the kubelet does not create its root. Controllers of version 1
// have a directory each.
func createCgroup(mount, cgroup string) error {
	hierarchies, err := filepath.Glob(filepath.Join(mount, "*", "cgroup.procs"))
	if err != nil {
		return err
	}
	if len(hierarchies) == 0 || exists(filepath.Join(mount, "cgroup.procs")) {
		return createCgroup2(mount, cgroup)
	}
	for _, hierarchy := range hierarchies {
		if err := os.MkdirAll(filepath.Join(filepath.Dir(hierarchy), cgroup), 0o755); err != nil {
			return fmt.Errorf("create a cgroup: %w", err)
		}
	}
	return nil
}

// createCgroup2 creates a cgroup of version 2 with all controllers: each parent has to pass them on.
// Those that the machine cannot pass on are named by the kubelet, if it needs them.
func createCgroup2(mount, cgroup string) error {
	parent := mount
	for _, name := range strings.Split(strings.TrimPrefix(cgroup, "/"), "/") {
		controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the controllers of a cgroup: %w", err)
		}
		for _, controller := range strings.Fields(string(controllers)) {
			_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0o600)
		}
		parent = filepath.Join(parent, name)
		if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("create a cgroup: %w", err)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// removeCgroups removes the cgroups of a cluster whose processes have been killed.
func removeCgroups(ctx context.Context, cgroup string) error {
	var failed error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, cgroupTimeout, true, func(context.Context) (bool, error) {
		failed = tryRemoveCgroups(cgroupMount, cgroup)
		return failed == nil, nil
	})
	if err != nil {
		return fmt.Errorf("remove the cgroups %s: %w", cgroup, errors.Join(failed, err))
	}
	return nil
}

func tryRemoveCgroups(mount, cgroup string) error {
	// Version 1 has a directory for each controller. With version 2, the pattern does not match.
	roots, err := filepath.Glob(filepath.Join(mount, "*", cgroup))
	if err != nil {
		return err
	}
	for _, root := range append(roots, filepath.Join(mount, cgroup)) {
		if err := removeDirectories(root); err != nil {
			return err
		}
		// The parent stays while another cluster uses it.
		err := unix.Rmdir(filepath.Dir(root))
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("remove %s: %w", filepath.Dir(root), err)
		}
	}
	return nil
}

// removeDirectories removes a directory and those in it. Files of cgroups go with them.
func removeDirectories(root string) error {
	var directories []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			directories = append(directories, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", root, err)
	}
	slices.Reverse(directories)
	for _, directory := range directories {
		if err := unix.Rmdir(directory); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove %s: %w", directory, err)
		}
	}
	return nil
}
