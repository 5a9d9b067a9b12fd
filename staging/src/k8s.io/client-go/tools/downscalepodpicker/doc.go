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

// Package downscalepodpicker is a library for downscale pod pickers (KEP-3189): HTTP servers that the
// ReplicaSet controller asks which pods to remove when a ReplicaSet is scaled down.
//
// A picker is a function:
//
//	http.Handle("/downscale-pod-picker", downscalepodpicker.NewHandler(
//		func(ctx context.Context, question downscalepodpicker.Question) (downscalepodpicker.Answer, error) {
//			return leastBusy(question.Pods, question.Candidates), nil
//		}))
//
// The pods that it chooses are removed first, then those that it calls tied, and then all others. Within
// each group, pods that became ready later come first; on which node they run does not matter. It may
// name fewer pods than asked for, or more.
//
// # What a picker should know
//
//   - It may be asked several times for one scale-down: after a failed attempt, or a restart of the
//     controller. It must not change anything because of a question. All attempts at one question have
//     the same Question.IdempotencyKey.
//   - Its answer is not a promise: pods may leave for other reasons, and pods that are not chosen may
//     be removed.
//   - It is asked about pods that are assigned to a node, running and ready. Others are removed before
//     them. A pod with a lower controller.kubernetes.io/pod-deletion-cost is removed before pods with a
//     higher one, whatever the picker says.
//   - An error, a slow answer or one that breaks the contract counts as a failed attempt. If all fail,
//     the pods are removed in the order without a picker.
//   - Whoever reaches the picker can ask it. Give the controller a token, in an HTTP header from a
//     Secret, and check it before this handler is called.
package downscalepodpicker
