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
	"time"

	"github.com/spf13/pflag"
)

// defaultEvictionRequestTTL is long enough to look at what has happened.
const defaultEvictionRequestTTL = 10 * time.Minute

// EvictionRequestOptions holds the options for EvictionRequests.
type EvictionRequestOptions struct {
	// TTLAfterFinished is how long a finished EvictionRequest is kept. Zero leaves that to
	// kube-controller-manager.
	TTLAfterFinished time.Duration
}

func newEvictionRequestOptions() EvictionRequestOptions {
	return EvictionRequestOptions{TTLAfterFinished: defaultEvictionRequestTTL}
}

// AddFlags adds the flags for EvictionRequests.
func (o *EvictionRequestOptions) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.TTLAfterFinished, "evictionrequest-ttl-after-finished", o.TTLAfterFinished,
		"How long a finished EvictionRequest is kept before etcd removes it. 0 leaves that to the flag of kube-controller-manager with the same name.")
}

// Validate returns what is wrong with the options.
func (o *EvictionRequestOptions) Validate() []error {
	switch {
	case o.TTLAfterFinished < 0:
		return []error{fmt.Errorf("--evictionrequest-ttl-after-finished must not be negative, but is %s: 0 leaves it to kube-controller-manager", o.TTLAfterFinished)}
	case o.TTLAfterFinished > 0 && o.TTLAfterFinished < time.Second:
		return []error{fmt.Errorf("--evictionrequest-ttl-after-finished must be a second or more, but is %s: 0 leaves it to kube-controller-manager", o.TTLAfterFinished)}
	}
	return nil
}
