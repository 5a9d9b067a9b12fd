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

// Package evictionrequest is for those who take part in the eviction of pods through
// EvictionRequests: a Requester asks that a pod leaves, an Interceptor has its say
// before the pod goes.
//
// A requester is made once and asks for any number of pods:
//
//	requester, err := evictionrequest.NewRequester(client, "drain.example.com", evictionrequest.RequesterOptions{})
//	result, err := requester.Request(ctx, pod)
//	...
//	err = requester.Withdraw(ctx, pod)
//
// An interceptor is a function that is called for each pod whose turn it is:
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
// The library writes by Server-Side Apply, each participant under a field manager that
// follows from its name. So participants never conflict with one another nor with the
// controller, and what one of them does not own, it cannot take away.
//
// # Permissions
//
// A requester needs to get, create and patch evictionrequests, and to delete the pods that
// it asks for. An interceptor needs to get, list and watch evictionrequests, to patch
// evictionrequests/status, and the verb that lets it report under its name, and under no
// other:
//
//   - apiGroups: [coordination.k8s.io]
//     resources: [evictioninterceptors]
//     resourceNames: [migrate.example.com]
//     verbs: [intercept]
//
// # Clocks
//
// The API server accepts times of an interceptor that are within 10 seconds of its own
// clock. Where a clock is further off, no report is accepted, no work is started, and
// the log says so: keep clocks in step.
package evictionrequest
