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
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestStartupTaints(t *testing.T) {
	for key, want := range map[string]bool{
		v1.TaintNodeNotReady:                                     true,
		"node.cloudprovider.kubernetes.io/uninitialized":         true,
		"startup-taint.cluster-autoscaler.kubernetes.io/network": true,
		v1.TaintNodeUnschedulable:                                false,
		"nvidia.com/gpu":                                         false,
		"example.com/startup-taint":                              false,
	} {
		if got := IsStartupTaint(v1.Taint{Key: key, Effect: v1.TaintEffectNoSchedule}); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
}
