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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionrequestconfig "k8s.io/kubernetes/pkg/controller/evictionrequest/config"
)

// defaultEvictionRequestConfiguration is the default that upstream's tests of all options compare.
var defaultEvictionRequestConfiguration = evictionrequestconfig.EvictionRequestControllerConfiguration{
	ConcurrentEvictionRequestSyncs:  20,
	ConcurrentEvictions:             30,
	EvictionRequestTTLAfterFinished: metav1.Duration{Duration: time.Hour},
}

func TestEvictionRequestControllerFlags(t *testing.T) {
	configuration := defaultEvictionRequestConfiguration
	options := &EvictionRequestControllerOptions{&configuration}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse([]string{"--concurrent-evictionrequest-syncs=3", "--concurrent-evictions=4", "--evictionrequest-ttl-after-finished=0"}); err != nil {
		t.Fatal(err)
	}
	got := defaultEvictionRequestConfiguration
	if err := options.ApplyTo(&got); err != nil {
		t.Fatal(err)
	}
	want := evictionrequestconfig.EvictionRequestControllerConfiguration{ConcurrentEvictionRequestSyncs: 3, ConcurrentEvictions: 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if errs := options.Validate(); len(errs) != 0 {
		t.Errorf("valid options are rejected: %v", errs)
	}
}

// The kube-controller-manager has the flags, and does not start with invalid ones.
func TestEvictionRequestControllerOptionsAreWired(t *testing.T) {
	for value, want := range map[string]bool{"1": false, "0": true} {
		options, err := NewKubeControllerManagerOptions()
		if err != nil {
			t.Fatalf("creating the options: %v", err)
		}
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		for _, set := range options.Flags([]string{""}, []string{""}, nil).FlagSets {
			flags.AddFlagSet(set)
		}
		if err := flags.Parse([]string{"--concurrent-evictions=" + value}); err != nil {
			t.Fatalf("parsing the flags: %v", err)
		}
		err = options.Validate([]string{""}, []string{""}, nil)
		if refused := err != nil && strings.Contains(err.Error(), "--concurrent-evictions must be positive"); refused != want {
			t.Errorf("%s is rejected: %t, want %t; the error is %v", value, refused, want, err)
		}
	}
}

func TestEvictionRequestControllerOptionsValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*evictionrequestconfig.EvictionRequestControllerConfiguration)
		want   string
	}{
		"no sync workers": {
			change: func(c *evictionrequestconfig.EvictionRequestControllerConfiguration) {
				c.ConcurrentEvictionRequestSyncs = 0
			},
			want: "--concurrent-evictionrequest-syncs must be positive, but is 0",
		},
		"no eviction workers": {
			change: func(c *evictionrequestconfig.EvictionRequestControllerConfiguration) { c.ConcurrentEvictions = -1 },
			want:   "--concurrent-evictions must be positive, but is -1",
		},
		"negative time": {
			change: func(c *evictionrequestconfig.EvictionRequestControllerConfiguration) {
				c.EvictionRequestTTLAfterFinished.Duration = -time.Second
			},
			want: "--evictionrequest-ttl-after-finished must not be negative, but is -1s",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			configuration := defaultEvictionRequestConfiguration
			test.change(&configuration)
			errs := (&EvictionRequestControllerOptions{&configuration}).Validate()
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want) {
				t.Errorf("got %v, want %q", errs, test.want)
			}
		})
	}
}

func TestEvictionRequestControllerOptionsMayBeMissing(t *testing.T) {
	var options *EvictionRequestControllerOptions
	options.AddFlags(pflag.NewFlagSet("test", pflag.ContinueOnError))
	got := defaultEvictionRequestConfiguration
	if err := options.ApplyTo(&got); err != nil || options.Validate() != nil || got != defaultEvictionRequestConfiguration {
		t.Errorf("missing options have an effect: %v, %v", err, got)
	}
}
