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
	evictionrequestconfig "k8s.io/kubernetes/pkg/controller/evictionrequest/config"
)

// EvictionRequestControllerOptions holds the options of the evictionrequest-controller.
type EvictionRequestControllerOptions struct {
	*evictionrequestconfig.EvictionRequestControllerConfiguration
}

// AddFlags adds the flags of the evictionrequest-controller.
func (o *EvictionRequestControllerOptions) AddFlags(fs *pflag.FlagSet) {
	if o == nil {
		return
	}
	fs.Int32Var(&o.ConcurrentEvictionRequestSyncs, "concurrent-evictionrequest-syncs", o.ConcurrentEvictionRequestSyncs,
		"The number of EvictionRequests that the evictionrequest-controller syncs concurrently.")
	fs.Int32Var(&o.ConcurrentEvictions, "concurrent-evictions", o.ConcurrentEvictions,
		"The number of calls of the pods/eviction subresource that the evictionrequest-controller makes concurrently.")
	fs.DurationVar(&o.EvictionRequestTTLAfterFinished.Duration, "evictionrequest-ttl-after-finished", o.EvictionRequestTTLAfterFinished.Duration,
		"How long a finished EvictionRequest is kept before it is deleted. 0 keeps finished EvictionRequests until another client deletes them.")
}

// ApplyTo copies the options into the configuration.
func (o *EvictionRequestControllerOptions) ApplyTo(cfg *evictionrequestconfig.EvictionRequestControllerConfiguration) error {
	if o == nil {
		return nil
	}
	*cfg = *o.EvictionRequestControllerConfiguration
	return nil
}

// Validate returns what is wrong with the options.
func (o *EvictionRequestControllerOptions) Validate() []error {
	if o == nil {
		return nil
	}
	var errs []error
	if o.ConcurrentEvictionRequestSyncs < 1 {
		errs = append(errs, fmt.Errorf("--concurrent-evictionrequest-syncs must be positive, but is %d", o.ConcurrentEvictionRequestSyncs))
	}
	if o.ConcurrentEvictions < 1 {
		errs = append(errs, fmt.Errorf("--concurrent-evictions must be positive, but is %d", o.ConcurrentEvictions))
	}
	if ttl := o.EvictionRequestTTLAfterFinished.Duration; ttl < 0 {
		errs = append(errs, fmt.Errorf("--evictionrequest-ttl-after-finished must not be negative, but is %s: 0 keeps finished requests", ttl))
	}
	return errs
}
