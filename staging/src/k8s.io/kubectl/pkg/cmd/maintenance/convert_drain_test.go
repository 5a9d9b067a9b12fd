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

package maintenance

import (
	"slices"
	"strings"
	"testing"
)

// convertCommand converts a drain command, and returns what was written, and what was said.
func convertCommand(t *testing.T, command string, args ...string) (written, said string, s *server) {
	t.Helper()
	s = newConvertServer(t)
	written = s.run(t, slices.Concat([]string{"convert"}, args, []string{"--"}, strings.Fields(command))...)
	return written, s.errOut.String() + s.failure, s
}

// A command that changes nothing becomes a maintenance that changes nothing, whoever would have
// computed what it does.
func TestConvertDryRun(t *testing.T) {
	for flag, want := range map[string]string{
		"": "Drain", "--dry-run=none": "Drain", "--dry-run": "Idle", "--dry-run=client": "Idle", "--dry-run=server": "Idle",
		"--dry-run=client --pod-selector=a=b": "Idle",
	} {
		written, said, s := convertCommand(t, "kubectl drain node-1 "+flag)
		if s.code != 0 || !strings.Contains(written, "  stage: "+want+"\n") {
			t.Errorf("%q: exit code %d, wrote %q, said %q, want the stage %s", flag, s.code, written, said, want)
		}
	}
}

// A node is drained once, with and without its type.
func TestConvertNodeNames(t *testing.T) {
	written, said, s := convertCommand(t, "kubectl drain node/a no/b a nodes/c")
	if s.code != 0 || !strings.Contains(written, "  name: drain-a-and-2-more\n") || strings.Count(written, "key: metadata.name") != 3 {
		t.Errorf("exit code %d, wrote %q, said %q", s.code, written, said)
	}
}

// A flag whose value says what kubectl does without it is not reported.
func TestConvertNeutralFlags(t *testing.T) {
	for _, flag := range []string{"--timeout=0s", "--grace-period=-1", "--skip-wait-for-delete-timeout=0", "--dry-run=none", "--disable-eviction=false"} {
		if _, said, s := convertCommand(t, "kubectl drain node-1 "+flag); s.code != 0 || strings.Contains(said, strings.TrimSuffix(flag, "=false")) {
			t.Errorf("%s: exit code %d, said %q", flag, s.code, said)
		}
	}
	if _, said, _ := convertCommand(t, "kubectl drain node-1 --timeout=1s"); !strings.Contains(said, "--timeout=1s") {
		t.Errorf("said %q", said)
	}
}

// A single loss is enough to fail, and a single object is no List.
func TestConvertOne(t *testing.T) {
	const command = "kubectl drain node-1 --ignore-daemonsets --force --delete-emptydir-data"
	written, said, s := convertCommand(t, command+" --grace-period=30", "--fail-on-loss")
	if written != "" || s.code == 0 || !strings.Contains(said, "1 field is lost") {
		t.Errorf("exit code %d, wrote %q, said %q", s.code, written, said)
	}
	written, said, s = convertCommand(t, command, "--fail-on-loss", "-o=json")
	if s.code != 0 || !strings.Contains(written, `"kind": "NodeMaintenance"`) || strings.Contains(written, `"List"`) {
		t.Errorf("exit code %d, wrote %q, said %q", s.code, written, said)
	}
}

// Pods that the filters of NVIDIA's operator do not name would have stayed: nothing is evicted.
func TestConvertNVIDIAFilters(t *testing.T) {
	written, said, s := convertText(t, "in.yaml", "{apiVersion: maintenance.nvidia.com/v1alpha1, kind: NodeMaintenance, metadata: {name: a}, "+
		"spec: {requestorID: a, nodeName: node-1, drainSpec: {podEvictionFilters: [{byResourceNameRegex: gpu}]}}}")
	if s.code != 0 || !strings.Contains(written, "  stage: Cordon\n") {
		t.Errorf("exit code %d, wrote %q, said %q", s.code, written, said)
	}
}
