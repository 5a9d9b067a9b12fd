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
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// enabledByDefault is a comma-separated list of feature gates that are on by default in this
// binary. The linker sets it:
//
//	-ldflags "-X k8s.io/kubernetes/pkg/features.enabledByDefault=EvictionRequestAPI"
//
// It is empty in a normal build. Tests of upstream's packages, which do not know our gates, are run
// a second time with it, so that only the link step differs.
var enabledByDefault string

func init() {
	runtime.Must(enableByDefault(utilfeature.DefaultMutableFeatureGate, enabledByDefault))
}

// enableByDefault sets the default of each listed gate to true.
func enableByDefault(gates featuregate.MutableFeatureGate, list string) error {
	for name := range strings.SplitSeq(list, ",") {
		if name == "" {
			continue
		}
		if err := gates.OverrideDefault(featuregate.Feature(name), true); err != nil {
			return fmt.Errorf("features.enabledByDefault, set by the linker to %q: %w", list, err)
		}
	}
	return nil
}
