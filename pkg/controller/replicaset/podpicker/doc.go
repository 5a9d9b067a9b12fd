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

// Package podpicker asks the pickers of applications which pods a scale-down should remove (KEP-3189).
//
// It is the one place where the control plane calls addresses that users choose. What may be called is
// decided by Addresses and resolver: pods behind Services of the same namespace, or of others that
// allow it, and what an administrator lists. The address that was checked is the one that is dialed.
//
// A sync of a ReplicaSet never waits for a picker: Client asks in the background, and has the
// ReplicaSet synced again when there is an answer or when the time is over.
package podpicker
