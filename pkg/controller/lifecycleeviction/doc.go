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

// Package lifecycleeviction makes the eviction API of Kubernetes 1.37, lifecycle.k8s.io, take effect through that of
// coordination.k8s.io (KEP-4563): one engine, two doors. It needs the gate LifecycleEvictions.
//
// # Objects
//
//	EvictionRequest (lifecycle)  a requester: with the intent Eviction, spec.requesters of the request of its pod has its
//	                             name; without it, or when it is deleted, not any more
//	Eviction                     a view of the request of a pod, for responders and requesters
//	EvictionRequest (coord.)     one for each pod, named after its UID: the only one on which the engine acts
//
// There is an Eviction for each pod whose eviction an EvictionRequest of the group wants, and for each other pod that is
// being evicted and has responders, which would otherwise not hear of it. Its name is pod-NUMBER-NAME, as that of the controller
// of 1.38; its labels are the names of the participants, its owners the EvictionRequests. One that has failed is followed
// by another one when the eviction is requested again; TargetEvicted is final.
//
// # Responders
//
// A responder (pod.spec.evictionResponders) is an interceptor of the same name, see AllTargets in
// component-helpers/coordination/evictioninterceptor for the order. kube-apiserver lets responders become Active one after
// the other, without a gap. So one stays Active until the next one begins, also if it has completed, while interceptors and
// workload controllers act that the group does not know; and an Eviction lists no responders before the turn of the
// first one. Nobody is Interrupted before 20 minutes of silence, which the engine respects for responders.
//
// What the active responder reports is copied to its entry in the request, and acted upon from there.
//
// # Safety
//
// The controller acts with its own permissions on what others write. The admission plugin EvictionRequest requires of
// them what the same effect needs in coordination.k8s.io: to delete the pod, to request its eviction or to withdraw that;
// the verb intercept, to report as a responder; and the verb control for all else in statuses. Labels, owners and
// Evictions that others make have no effect.
//
// While no controller runs, or only that of the other group, requesters may withdraw. So package agreement records what this
// controller has compared since it started, and the evictionrequest-controller waits for it with requests that nobody else
// wants.
//
// Each write has the version that was read as a precondition, and nothing is decided while the caches lack what this
// controller has written about the pod: an eviction of a pod without responders takes 8 writes in all.
//
// # Differences
//
// Pods of DaemonSets and static pods are not evicted by requests of the group, as by others: these wait for the controller
// that stops such pods in maintenances, or end with NoFurtherResponder where it does not take part. The other differences to
// the controllers of 1.38 are in docs/migrate/kubernetes-1.37.md.
//
// # Reading order
//
//	controller.go   the type, its constructor, Run, and which event concerns which pod
//	sync.go         one pod: read, decide, write
//	target.go       what is known about a pod
//	ends.go         ends that no request says: a pod that is missing, an Eviction that nobody requests
//	own_request.go  requesters in the request of coordination.k8s.io
//	evictions.go    Evictions: names, labels, owners
//	view.go         the status of an Eviction, step by step; pure functions
//	requests.go     requesters, labels, owners and statuses of requests; pure functions
//	reports.go      what a responder reports; pure functions
//	responders.go   names
//	memory.go       what is remembered about pods: paces, own writes
//	reporting.go    events and metrics, besides those of the engine, in which responders are interceptors
//	agreement/      which requests this controller has compared; the evictionrequest-controller reads it
//	metrics/        the metrics
package lifecycleeviction
