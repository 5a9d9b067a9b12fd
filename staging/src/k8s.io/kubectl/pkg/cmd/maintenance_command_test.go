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

package cmd

import (
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestMaintenanceCommand finds "kubectl maintenance" with its subcommands, beside drain.
func TestMaintenanceCommand(t *testing.T) {
	kubectl := NewKubectlCommand(KubectlOptions{IOStreams: genericiooptions.NewTestIOStreamsDiscard(), ConfigFlags: genericclioptions.NewConfigFlags(false)})
	for _, args := range [][]string{{"drain"}, {"maintenance"}, {"maintenance", "plan"}, {"maintenance", "start"}, {"maintenance", "status"}, {"maintenance", "watch"}, {"maintenance", "complete"}, {"maintenance", "cancel"}} {
		found, _, err := kubectl.Find(args)
		if err != nil || found.Name() != args[len(args)-1] {
			t.Errorf("%v: found %q, %v", args, found.Name(), err)
		}
	}
}
