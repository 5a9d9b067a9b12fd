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

// Package fairshare divides a number of places, such as workers or calls in flight, between
// tenants, such as namespaces. One tenant gets a bounded number of them, so that its slow
// work leaves places to the others, and the others get theirs in turn. The work of a tenant
// keeps its order.
//
// WorkQueue does so for the workers of a workqueue, Places for goroutines that wait.
package fairshare
