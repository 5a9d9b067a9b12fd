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

// Package returns knows which pods come back to nodes that are drained: each eviction of such a pod makes its owner create
// another one. It says when their eviction is requested again, and how long a node has to be empty before it is drained.
//
// All that it knows delays requests and explains them. It is lost with the process, but for what the statuses say.
//
// # Files
//
//	returns.go  the pods of each owner and node that have come back, and their pace
//	owners.go   whether the template of a pod's owner brings the next one back
//	inspect.go  what is remembered of a node
package returns
