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

package evictionrequest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissingLabels(t *testing.T) {
	tests := map[string]struct {
		request, pod, want map[string]string
	}{
		"both have none":                      {},
		"the request has them all":            {request: map[string]string{"app": "web", "team": "a"}, pod: map[string]string{"app": "web"}},
		"the request lacks one":               {request: map[string]string{"app": "web"}, pod: map[string]string{"app": "web", "tier": "x"}, want: map[string]string{"tier": "x"}},
		"the value of the pod wins":           {request: map[string]string{"app": "db"}, pod: map[string]string{"app": "web"}, want: map[string]string{"app": "web"}},
		"an empty value is a value":           {pod: map[string]string{"app": ""}, want: map[string]string{"app": ""}},
		"labels of the request only are kept": {request: map[string]string{"team": "a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := missingLabels(newRequest(requestLabels(test.request)), newPod(podLabels(test.pod)))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected labels (-want, +got):\n%s", diff)
			}
		})
	}
}
