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

// Package requests decides when the eviction of a pod is requested or withdrawn next, of those writes that the sync of a node
// has found to be due. It makes none of them.
//
// # Files
//
//	request.go   what the controller reads from an EvictionRequest
//	queue.go     which write is next, with shares for maintenances and namespaces
//	contests.go  when to ask again for pods whose requests others withdraw
//	inspect.go   what waits, and what is remembered of a node
package requests
