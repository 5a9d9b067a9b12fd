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

// Package pace says how long the controller of NodeMaintenances waits before it writes something again, so that it is
// neither too much for the API server nor in an endless race with other clients.
//
// # Invariants
//
//   - It only delays what the controller does: nothing depends on it after a restart.
//   - No delay is longer than its rule permits, also if the clock was set back (Within).
//   - What others revert has the pace of the last ten minutes, whichever maintenance it was written for.
//   - Nothing is remembered of a node or a maintenance that is gone (ForgetNode, ForgetMaintenance).
//
// # Files
//
//	intervals.go  the times between writes, and between attempts
//	pacer.go      what was written when, and how long the next write waits
//	reverts.go    what others keep reverting on a node: what a decision is based on
package pace
