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

package features

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

func TestEnableByDefault(t *testing.T) {
	newGates := func() featuregate.MutableVersionedFeatureGate {
		gates := featuregate.NewVersionedFeatureGate(version.MustParse("1.37"))
		off := featuregate.VersionedSpecs{{Version: version.MustParse("1.37"), Default: false, PreRelease: featuregate.Alpha}}
		if err := gates.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{"First": off, "Second": off, "Third": off}); err != nil {
			t.Fatal(err)
		}
		return gates
	}

	t.Run("a normal build changes nothing", func(t *testing.T) {
		gates := newGates()
		if err := enableByDefault(gates, ""); err != nil {
			t.Fatal(err)
		}
		if gates.Enabled("First") {
			t.Error("First is on without being listed")
		}
	})
	t.Run("listed gates are on, others are not", func(t *testing.T) {
		gates := newGates()
		if err := enableByDefault(gates, "First,Third"); err != nil {
			t.Fatal(err)
		}
		if !gates.Enabled("First") || gates.Enabled("Second") || !gates.Enabled("Third") {
			t.Errorf("First, Second, Third are %t, %t, %t", gates.Enabled("First"), gates.Enabled("Second"), gates.Enabled("Third"))
		}
	})
	t.Run("an unknown gate is named", func(t *testing.T) {
		err := enableByDefault(newGates(), "First,Unknown")
		if err == nil || !strings.Contains(err.Error(), "Unknown") {
			t.Errorf("the error must name the gate: %v", err)
		}
	})
}
