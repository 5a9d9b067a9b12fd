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

package options

import (
	"fmt"

	"github.com/spf13/pflag"
	replicasetconfig "k8s.io/kubernetes/pkg/controller/replicaset/config"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
)

// addPickerFlags adds the flags for downscale pod pickers (KEP-3189).
func addPickerFlags(fs *pflag.FlagSet, o *replicasetconfig.ReplicaSetControllerConfiguration) {
	fs.Int32Var(&o.ConcurrentDownscalePodPickers, "concurrent-downscale-pod-pickers", o.ConcurrentDownscalePodPickers,
		"The number of downscale pod pickers that the ReplicaSet controller asks concurrently, with the feature gate DownscalePodPicker.")
	fs.StringSliceVar(&o.DownscalePodPickerAllowedCIDRs, "downscale-pod-picker-allowed-cidrs", o.DownscalePodPickerAllowedCIDRs,
		"Addresses of downscale pod pickers that may be called, besides pods behind Services: CIDRs, optionally with ports, such as 192.0.2.0/24:8080-8090. "+
			"Loopback and link-local addresses need a CIDR of nothing else, those of the API server one of a single address, and ports of the control plane and of kubelets one with exactly that port.")
	fs.StringSliceVar(&o.DownscalePodPickerDeniedCIDRs, "downscale-pod-picker-denied-cidrs", o.DownscalePodPickerDeniedCIDRs,
		"Addresses of downscale pod pickers that may not be called, even if they are pods behind Services: CIDRs, optionally with ports.")
}

// validatePickers returns what is wrong with the options for downscale pod pickers.
func validatePickers(o *replicasetconfig.ReplicaSetControllerConfiguration) []error {
	errs := []error{}
	if o.ConcurrentDownscalePodPickers < 1 {
		errs = append(errs, fmt.Errorf("--concurrent-downscale-pod-pickers must be positive, but is %d", o.ConcurrentDownscalePodPickers))
	}
	for _, flag := range []struct {
		name   string
		values []string
	}{{"allowed", o.DownscalePodPickerAllowedCIDRs}, {"denied", o.DownscalePodPickerDeniedCIDRs}} {
		if _, err := podpicker.ParseRanges(flag.values); err != nil {
			errs = append(errs, fmt.Errorf("--downscale-pod-picker-%s-cidrs: %w", flag.name, err))
		}
	}
	return errs
}
