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

// Package drain takes pods off nodes from within a client: it cordons nodes, and evicts
// or deletes their pods, until the program ends.
//
// It stays for servers without the NodeMaintenance API. Where that is served, programs
// should create a NodeMaintenance (coordination.k8s.io), as "kubectl maintenance start"
// does, or EvictionRequests for single pods: the server then goes on when the program has
// ended, drains of the same node do not compete, pods leave in an order, and interceptors
// have their turn. Helper.SkipInterceptedPods keeps Helper from evicting pods that have
// some of their own.
//
// Deprecated: create a NodeMaintenance where the server serves them.
package drain
