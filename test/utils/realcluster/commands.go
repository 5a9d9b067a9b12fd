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
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Run runs one of the processes of a cluster, see doc.go. It reports whether the arguments ask for
// one.
func Run(ctx context.Context, args []string) (bool, error) {
	usage := map[string]int{superviseCommand: 2, initCommand: 5, sandboxCommand: 2, nodeCommand: 3}
	if len(args) == 0 || usage[args[0]] == 0 {
		return false, nil
	}
	if len(args) < usage[args[0]] {
		return true, fmt.Errorf("%s is started by up-real, not by hand", args[0])
	}
	// Containers of other users read what the nodes create. Secrets have modes of their own.
	unix.Umask(0o022)
	switch command, dir := args[0], args[1]; command {
	case superviseCommand:
		return true, supervise(ctx, dir, os.Stdin)
	case initCommand:
		return true, runInit(dir, args[2], args[3], args[4:])
	case sandboxCommand:
		return true, runSandbox(ctx, dir)
	default:
		index, err := strconv.Atoi(args[2])
		if err != nil {
			return true, fmt.Errorf("read the index of a node: %w", err)
		}
		return true, runNode(ctx, dir, index)
	}
}
