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

// Package evictionrequest is the library for EvictionRequests within Kubernetes, with the types and the client of the
// tree. A Requester requests the eviction of a pod. An Interceptor does some work before the pod is evicted: its turns
// are those of package evictions, which is the library for all other programs.
//
// A requester is created once and can request the eviction of any number of pods:
//
//	requester, err := evictionrequest.NewRequester(client, "drain.example.com", evictionrequest.RequesterOptions{})
//	result, err := requester.Request(ctx, pod)
//	...
//	err = requester.Withdraw(ctx, pod)
//
// An interceptor is a function that is called for each pod for which it is active:
//
//	err := evictionrequest.Run(ctx, evictionrequest.InterceptorConfig{
//		Client: client,
//		Name:   "migrate.example.com",
//		Handle: func(ctx context.Context, turn *evictionrequest.Turn) error {
//			turn.SetMessage("Moving the data.")
//			return move(ctx, turn.Request().Spec.Target.Pod)
//		},
//	})
//
// The library writes with Server-Side Apply. The field manager of each participant is derived from
// its name. So participants do not conflict with each other or with the controller, and cannot
// remove what they do not own.
//
// # Permissions
//
// A requester needs to get, create and patch evictionrequests, and to delete the pods whose
// eviction it requests. An interceptor needs to get, list and watch evictionrequests, to patch
// evictionrequests/status, and the verb that allows it to report under its name only:
//
//   - apiGroups: [coordination.k8s.io]
//     resources: [evictioninterceptors]
//     resourceNames: [migrate.example.com]
//     verbs: [intercept]
//
// # Clocks
//
// The API server accepts times from an interceptor that are within 10 seconds of its own clock. If
// the clocks differ by more, reports are rejected, no work is started, and the error is logged:
// synchronize the clocks.
package evictionrequest
