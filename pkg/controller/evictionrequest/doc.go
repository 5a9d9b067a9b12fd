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

// Package evictionrequest walks EvictionRequests through their interceptors until
// the pod is gone or nobody wants it gone any more (KEP-4563).
//
// # States
//
// A request is in one of these states, which follow from its status alone:
//
//	Pending       not taken up yet, or every interceptor had its turn and the pod still runs.
//	Intercepting  it is the turn of an interceptor of the pod.
//	Evicting      it is the turn of imperative-eviction.k8s.io, the last one.
//	Blocked       condition Blocked is True: the API server refuses the eviction.
//	Evicted       condition Evicted is True: the pod is gone. Final.
//	Canceled      condition Canceled is True: nobody acts any more. Final.
//
// From Pending a request becomes Intercepting, or Evicting if the pod has no interceptor of
// its own, in one write, which records all its interceptors and activates the first. When
// the active interceptor completes, or is silent for spec.heartbeatDeadlineSeconds, the
// next one is activated. The last is always imperative-eviction.k8s.io, which this package
// implements: it evicts the pod through the pods/eviction subresource, within its
// PodDisruptionBudgets, for as long as it takes. From every state that is not final, the
// request becomes Evicted when the pod is gone, by whomever, and Canceled when the last
// requester leaves. A finished request is deleted after a while, and a canceled one at once
// when somebody asks again.
//
// # Who writes what
//
//	spec                                 requesters
//	status.interceptors[own entry]       the active interceptor
//	status.evictionRequestCancellationPolicy  the active interceptor
//	everything else in the status        this controller
//	metadata.labels, those of the pod    this controller
//
// # Invariants
//
//   - The object is the memory of deadlines: they are computed from its times. A restart
//     shortens none, and may add five minutes.
//   - A pod is known by its UID, which is the name of its request: a pod of the same
//     name with another UID is another pod. Every eviction has the UID as precondition.
//   - A pod that is missing from the cache is gone only if it was there before, or the
//     API server confirms it: a cache can be behind.
//   - An idle request causes no API calls.
//   - Nothing is decided on a request that is older than this controller's last write.
//   - What waits for an event is checked from caches every few minutes as well.
//   - Of the pods under one budget, one is evicted at a time: the oldest that may go.
//   - No turn ends by silence right after this controller was without the API server, or
//     could not write to the request.
//   - One namespace occupies three quarters of the workers at most, and every call ends.
//
// # Reading order
//
//	evictionrequest_controller.go  the type, its constructor and Run
//	event_handlers.go              which event makes which request be synced
//	sync.go                        one request: read, decide, write
//	status.go, interceptors.go     what the status should be; pure functions
//	deadlines.go, outages.go       when silence ends a turn, and when it must not
//	labels.go, garbage.go          what else is written, and when a request goes; pure
//	writer.go                      the only place that writes requests
//	changes.go, events.go          what is told of a write; metrics/ counts it
//	imperative_controller.go       the built-in last interceptor: read, decide, evict, write
//	imperative.go, budgets.go      whether and when it evicts; pure functions
//	budget_queues.go               which pods wait for which budget, and which of them is next
//	podeviction                    the call itself, and what its answer means
//	simulation_test.go             random histories, and what must hold in each
package evictionrequest
