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

package downscalepodpicker

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// NewPauses returns the pauses between the attempts of the controller.
func NewPauses() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Cap: 2 * time.Second, Steps: 100}
}

// MaxDuration returns for how long a scale-down waits at most, besides its turn: for all attempts, and the pauses between
// them.
func MaxDuration(retries int, timeout time.Duration) time.Duration {
	total, pauses := timeout, NewPauses()
	for range retries {
		total += timeout + pauses.Step()
	}
	return total
}
