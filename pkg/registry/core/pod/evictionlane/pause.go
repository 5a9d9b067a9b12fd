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

package evictionlane

import "time"

const (
	// pausePerPod and minPause are the pause between two batches of one budget while calls wait: a
	// length for each pod that was evicted and that the disruption controller has not accounted for
	// yet, of which there are at most MaxDisruptedPodSize.
	pausePerPod = 50 * time.Microsecond
	minPause    = 5 * time.Millisecond
)

// pauseAfter is how long the next batch waits after one that left this many disrupted pods in the
// status. The disruption controller writes the same object, from its cache: if batches followed each
// other at once, all its writes would fail with conflicts. Disrupted pods, which only it removes,
// would accumulate until the API server refuses all evictions of the budget (MaxDisruptedPodSize).
// The more of them there are, the more time it gets. Batches grow by as much as they have to wait, so
// that the pause costs little throughput.
func pauseAfter(disruptedPods int) time.Duration {
	return max(time.Duration(disruptedPods)*pausePerPod, minPause)
}
