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

	"k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
)

// defaultEvictionRequestTTL is long enough to look at what has happened.
const defaultEvictionRequestTTL = 10 * time.Minute

// defaultMaxFinished is more than a fast drain of one node after the other finishes in that time. Each takes some KiB of
// memory in kube-apiserver, its etcd, and kube-controller-manager.
const defaultMaxFinished = 20_000

// EvictionRequestOptions holds the options for EvictionRequests.
type EvictionRequestOptions struct {
	// TTLAfterFinished is how long a finished EvictionRequest is kept. Zero leaves that to
	// kube-controller-manager.
	TTLAfterFinished time.Duration
	// MaxFinished is how many EvictionRequests this server may finish in that time. If it finishes more, they are kept for
	// less, but at least for a minute. Zero sets no limit.
	MaxFinished int
}

// maxMaxFinished limits the memory: the server remembers when each of so many requests has finished.
const maxMaxFinished = 10_000_000

func newEvictionRequestOptions() EvictionRequestOptions {
	return EvictionRequestOptions{TTLAfterFinished: defaultEvictionRequestTTL, MaxFinished: defaultMaxFinished}
}

// AddFlags adds the flags for EvictionRequests.
func (o *EvictionRequestOptions) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.TTLAfterFinished, "evictionrequest-ttl-after-finished", o.TTLAfterFinished,
		"How long a finished EvictionRequest is kept before etcd removes it. 0 leaves that to the flag of kube-controller-manager with the same name.")
	fs.IntVar(&o.MaxFinished, "evictionrequest-max-finished", o.MaxFinished,
		"How many EvictionRequests this kube-apiserver may finish in the time of --evictionrequest-ttl-after-finished. "+
			"If it finishes more, each is kept only until so many others have finished, but at least for a minute. "+
			"Requests for pods with interceptors other than those of Deployments are kept in any case. 0 sets no limit.")
}

// Retention returns what the options say about finished EvictionRequests.
func (o *EvictionRequestOptions) Retention() evictionrequest.Retention {
	return evictionrequest.Retention{TTL: o.TTLAfterFinished, MaxFinished: o.MaxFinished}
}

// Validate returns what is wrong with the options.
func (o *EvictionRequestOptions) Validate() []error {
	var errs []error
	if o.MaxFinished < 0 || o.MaxFinished > maxMaxFinished {
		errs = append(errs, fmt.Errorf("--evictionrequest-max-finished must be from 0 to %d, but is %d: 0 sets no limit", maxMaxFinished, o.MaxFinished))
	}
	switch {
	case o.TTLAfterFinished < 0:
		errs = append(errs, fmt.Errorf("--evictionrequest-ttl-after-finished must not be negative, but is %s: 0 leaves it to kube-controller-manager", o.TTLAfterFinished))
	case o.TTLAfterFinished > 0 && o.TTLAfterFinished < time.Second:
		errs = append(errs, fmt.Errorf("--evictionrequest-ttl-after-finished must be a second or more, but is %s: 0 leaves it to kube-controller-manager", o.TTLAfterFinished))
	}
	return errs
}
