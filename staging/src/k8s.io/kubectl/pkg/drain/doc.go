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

// Package drain drains nodes from a client: it cordons nodes, and evicts or deletes their pods, until
// the program ends.
//
// Use it for servers without the NodeMaintenance API. Other programs should create a NodeMaintenance
// (coordination.k8s.io), as "kubectl maintenance start" does, or EvictionRequests for single pods: the
// server then continues after the program has ended, drains of the same node do not compete, pods are
// evicted in order, and interceptors act first. With Helper.SkipInterceptedPods, Helper skips pods
// that have interceptors of their own. With Helper.Requests, Helper withdraws what it leaves to the
// server when it ends early, and tries evictions again for some minutes that admission denies, with any
// server.
//
// Deprecated: create a NodeMaintenance if the server supports it.
package drain
