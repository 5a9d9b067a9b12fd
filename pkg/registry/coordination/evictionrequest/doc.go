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

// Package evictionrequest implements the strategies of the API server for EvictionRequests: which fields each
// endpoint may write, and how they are validated. The status endpoint trusts no client: it validates each update
// against the previous state and the clock of the server, with the rules of
// k8s.io/kubernetes/pkg/apis/coordination/validation.
//
// # What the API server writes itself
//
//   - On creation, the labels of the pod, which is read from etcd. If the pod has no interceptor but the built-in
//     one, and is not part of a scheduling group, that one is active from the beginning (initial.go), so the
//     controller has nothing to write before it evicts. The turns of other interceptors begin when the controller
//     watches their deadlines.
//   - status.activationTime, and the times of the built-in interceptor.
//   - The conditions Reconciling and Stalled, with each write of the status: exactly one of them until the request
//     is finished, then none (progress.go).
//
// # How requests end
//
//   - etcd removes a finished request with a lease of its own (ttl.go), because etcd removes what shares a lease
//     with one version, and the watch cache takes a version for one change. Where very many finish, leases are
//     shorter, but not those of requests that an interceptor may count later. The controller deletes requests
//     without a lease: those with finalizers, and those that an earlier version has finished.
//   - A finished request that is being deleted, or that was canceled because nobody wanted it, is as good as
//     absent for who creates or applies the next one for the pod (storage/again.go): the name is the UID of the
//     pod. So is one that says that the pod was evicted, if that runs.
//   - A request for a node drain is refused if the stored node does not want the pod to leave (storage/drains.go).
package evictionrequest
