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
	"testing"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	"k8s.io/utils/ptr"
)

func TestEvictionRequestOptions(t *testing.T) {
	tests := map[string]struct {
		args []string
		want time.Duration
		// max defaults to 20000.
		max *int
		err string
	}{
		"default":     {want: 10 * time.Minute},
		"another":     {args: []string{"--evictionrequest-ttl-after-finished=1h"}, want: time.Hour},
		"none":        {args: []string{"--evictionrequest-ttl-after-finished=0"}},
		"too short":   {args: []string{"--evictionrequest-ttl-after-finished=999ms"}, want: 999 * time.Millisecond, err: "--evictionrequest-ttl-after-finished must be a second or more, but is 999ms: 0 leaves it to kube-controller-manager"},
		"the minimum": {args: []string{"--evictionrequest-ttl-after-finished=1s"}, want: time.Second},
		"max":         {args: []string{"--evictionrequest-max-finished=7"}, want: 10 * time.Minute, max: ptr.To(7)},
		"no max":      {args: []string{"--evictionrequest-max-finished=0"}, want: 10 * time.Minute, max: ptr.To(0)},
		"a bad max":   {args: []string{"--evictionrequest-max-finished=-1"}, want: 10 * time.Minute, max: ptr.To(-1), err: "--evictionrequest-max-finished must be from 0 to 10000000, but is -1: 0 sets no limit"},
		"a huge max":  {args: []string{"--evictionrequest-max-finished=10000001"}, want: 10 * time.Minute, max: ptr.To(10000001), err: "--evictionrequest-max-finished must be from 0 to 10000000, but is 10000001: 0 sets no limit"},
		"negative":    {args: []string{"--evictionrequest-ttl-after-finished=-1s"}, want: -time.Second, err: "--evictionrequest-ttl-after-finished must not be negative, but is -1s: 0 leaves it to kube-controller-manager"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, flags := newEvictionRequestOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			want := evictionrequest.Retention{TTL: test.want, MaxFinished: ptr.Deref(test.max, 20000)}
			if got := o.Retention(); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			errs := o.Validate()
			if len(errs) > 1 || len(errs) == 1 && errs[0].Error() != test.err || len(errs) == 0 && test.err != "" {
				t.Errorf("got the errors %v, want %q", errs, test.err)
			}
		})
	}
}
