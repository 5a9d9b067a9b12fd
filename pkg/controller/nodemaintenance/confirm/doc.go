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

// Package confirm asks the API server before writes that are not to follow from old caches: a process that was suspended goes
// on with them before it knows that it no longer leads.
//
// # Files
//
//	confirmer.go  what asks
//	claims.go     whether the API server agrees that a node is claimed, or released
//	drains.go     whether it agrees that a pod is to leave
//	drained.go    whether it agrees that all have left
//	inspect.go    what is remembered of a node
package confirm
