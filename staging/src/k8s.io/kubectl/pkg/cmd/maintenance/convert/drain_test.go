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

package convert

import (
	"strings"
	"testing"
)

// A command that changes nothing becomes a maintenance that changes nothing, whoever would have
// computed what it does.
func TestConvertDryRun(t *testing.T) {
	for flag, want := range map[string]string{
		"": "Drain", "--dry-run=none": "Drain", "--dry-run": "Idle", "--dry-run=client": "Idle", "--dry-run=server": "Idle",
		"--dry-run=client --pod-selector=a=b": "Idle",
	} {
		written, said, inv := convertCommand(t, "kubectl drain node-1 "+flag)
		if inv.code != 0 || !strings.Contains(written, "  stage: "+want+"\n") {
			t.Errorf("%q: exit code %d, wrote %q, said %q, want the stage %s", flag, inv.code, written, said, want)
		}
	}
}

// A node is drained once, with and without its type.
func TestConvertNodeNames(t *testing.T) {
	written, said, inv := convertCommand(t, "kubectl drain node/a no/b a nodes/c")
	if inv.code != 0 || !strings.Contains(written, "  name: drain-a-and-2-more\n") || strings.Count(written, "key: metadata.name") != 3 {
		t.Errorf("exit code %d, wrote %q, said %q", inv.code, written, said)
	}
}

// A flag whose value says what kubectl does without it is not reported.
func TestConvertNeutralFlags(t *testing.T) {
	for _, flag := range []string{"--timeout=0s", "--grace-period=-1", "--skip-wait-for-delete-timeout=0", "--dry-run=none", "--disable-eviction=false"} {
		if _, said, inv := convertCommand(t, "kubectl drain node-1 "+flag); inv.code != 0 || strings.Contains(said, strings.TrimSuffix(flag, "=false")) {
			t.Errorf("%s: exit code %d, said %q", flag, inv.code, said)
		}
	}
	if _, said, _ := convertCommand(t, "kubectl drain node-1 --timeout=1s"); !strings.Contains(said, "--timeout=1s") {
		t.Errorf("said %q", said)
	}
}

// A single loss is enough to fail, and a single object is no List.
func TestConvertOne(t *testing.T) {
	const command = "kubectl drain node-1 --ignore-daemonsets --force --delete-emptydir-data"
	written, said, inv := convertCommand(t, command+" --grace-period=30", "--fail-on-loss")
	if written != "" || inv.code == 0 || !strings.Contains(said, "1 field is lost") {
		t.Errorf("exit code %d, wrote %q, said %q", inv.code, written, said)
	}
	written, said, inv = convertCommand(t, command, "--fail-on-loss", "-o=json")
	if inv.code != 0 || !strings.Contains(written, `"kind": "NodeMaintenance"`) || strings.Contains(written, `"List"`) {
		t.Errorf("exit code %d, wrote %q, said %q", inv.code, written, said)
	}
}

// Pods that the filters of NVIDIA's operator do not name would have stayed: nothing is evicted.
func TestConvertNVIDIAFilters(t *testing.T) {
	written, said, inv := convertText(t, "in.yaml", "{apiVersion: maintenance.nvidia.com/v1alpha1, kind: NodeMaintenance, metadata: {name: a}, "+
		"spec: {requestorID: a, nodeName: node-1, drainSpec: {podEvictionFilters: [{byResourceNameRegex: gpu}]}}}")
	if inv.code != 0 || !strings.Contains(written, "  stage: Cordon\n") {
		t.Errorf("exit code %d, wrote %q, said %q", inv.code, written, said)
	}
}
