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

// Package evictions is the library for programs that have pods evicted, and for those that do something before.
//
// A responder, which is called an interceptor in coordination.k8s.io, is a function that is called for each pod that names
// it, before that is evicted:
//
//	err := evictions.Run(ctx, evictions.ResponderConfig{
//		API:  evictions.Lifecycle(client),
//		Name: "example.com/save",
//		Handle: func(ctx context.Context, turn *evictions.Turn) error {
//			turn.SetMessage("Saving the data.")
//			return save(ctx, turn.Request().Pod)
//		},
//	})
//
// A requester requests the eviction of any number of pods:
//
//	requester := evictions.LifecycleRequester(client, "example.com/drain")
//	_, err := requester.Request(ctx, pod)
//	...
//	status, err := requester.Wait(ctx, pod)
//	...
//	err = requester.Withdraw(ctx, pod)
//
// Either works in both groups: lifecycle.k8s.io of Kubernetes 1.37, and coordination.k8s.io (KEP-4563) with Coordination
// and CoordinationRequester. It needs nothing but upstream's api, apimachinery and client-go.
//
// Participants write with Server-Side Apply, each with a field manager of its own, and cannot remove what others own.
//
// The API server accepts times that are within 30 seconds of its own clock, and in coordination.k8s.io within 10. If the
// clocks differ by more, reports are rejected, no work is started, and the error is logged: synchronize the clocks.
//
// # Reading order
//
//	api.go           what a responder has to know about a request, in either group
//	lifecycle.go     that in lifecycle.k8s.io
//	coordination.go  that in coordination.k8s.io
//	responder.go     the configuration, and which turns begin and end
//	turn.go          one turn: what Handle may do, attempts, and their end
//	report.go        what a turn reports
//	pace.go          when it reports
//	requester.go     requests, in both groups
//	names.go         field managers
package evictions
