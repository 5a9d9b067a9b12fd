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

package validation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

func TestValidateNodeMaintenance(t *testing.T) {
	period := kubeletconfig.KubeletConfiguration{ShutdownGracePeriod: metav1.Duration{Duration: time.Minute}}
	priorities := kubeletconfig.KubeletConfiguration{ShutdownGracePeriodByPodPriority: []kubeletconfig.ShutdownGracePeriodByPodPriority{{ShutdownGracePeriodSeconds: 10}}}
	for _, test := range []struct {
		what      string
		config    kubeletconfig.KubeletConfiguration
		prefer    bool
		gate      bool
		wantError string
	}{
		{"the default", kubeletconfig.KubeletConfiguration{}, false, false, ""},
		{"off with a period", period, false, true, ""},
		{"on with a period", period, true, true, ""},
		{"on with priorities", priorities, true, true, ""},
		{"on without the gate", period, true, false, "requires feature gate NodeMaintenanceAwareKubelet"},
		{"on without a shutdown", kubeletconfig.KubeletConfiguration{}, true, true, "set shutdownGracePeriod or shutdownGracePeriodByPodPriority"},
	} {
		t.Run(test.what, func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
				features.EvictionRequestAPI: test.gate, features.DeclarativeNodeMaintenance: test.gate, features.NodeMaintenanceAwareKubelet: test.gate,
			})
			test.config.PreferNodeMaintenanceDuringGracefulShutdown = test.prefer
			// The configuration is otherwise incomplete, so only errors about this field count.
			var messages []string
			for err := range strings.SplitSeq(ValidateKubeletConfiguration(&test.config, utilfeature.DefaultFeatureGate).Error(), "invalid configuration: ") {
				if strings.Contains(err, "preferNodeMaintenanceDuringGracefulShutdown") {
					messages = append(messages, err)
				}
			}
			if got := strings.Join(messages, "\n"); (test.wantError == "") != (got == "") || !strings.Contains(got, test.wantError) {
				t.Errorf("errors %q, want one with %q", got, test.wantError)
			}
		})
	}
}
