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
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestShutdownName(t *testing.T) {
	long := strings.Repeat("n", 63) + "." + strings.Repeat("o", 63) + "." + strings.Repeat("p", 63) + "." + strings.Repeat("q", 61)
	if len(long) != validation.DNS1123SubdomainMaxLength {
		t.Fatalf("the longest name of a node has %d characters, not %d", len(long), validation.DNS1123SubdomainMaxLength)
	}
	for _, node := range []string{"worker-1", "10.0.0.7", long[:235], long[:236], long} {
		got := ShutdownName(node)
		if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 {
			t.Errorf("the name %q for node %q is invalid: %v", got, node, problems)
		}
		if isReadable := got == "graceful-shutdown-"+node; isReadable != (len(node) <= 235) {
			t.Errorf("the name for a node with %d characters is %q", len(node), got)
		}
		if !IsShutdownName(got) || IsShutdownName(node) {
			t.Errorf("the name %q is not told from the others", got)
		}
		if !SelectsOnly(ShutdownSelector(node), node) {
			t.Errorf("the selector of node %q selects others", node)
		}
	}
	if a, b := ShutdownName(long), ShutdownName(long[:252]+"z"); a == b || len(a) != len("graceful-shutdown-")+64 {
		t.Errorf("two nodes with long names have the names %q and %q", a, b)
	}
}
