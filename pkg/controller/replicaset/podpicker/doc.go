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

// Package podpicker asks the pickers of applications which pods a scale-down should remove (KEP-3189). Whatever a
// picker does, the same number of pods of the same ReplicaSet is removed, after a bounded time.
//
// # Calls to addresses that users choose
//
// This is the one place where the control plane makes them.
//   - What may be called is decided by Addresses and resolver: pods behind Services of the same namespace, or of
//     others that allow it, and what an administrator lists. All spellings that an IPv6 address may hide are
//     checked. The address that was checked is the one that is dialed: no name is resolved afterwards, and
//     redirects and proxies lead nowhere.
//   - An endpoint counts as a pod only if a live GET finds this pod in the namespace of the Service, running, with
//     this address and not in the network of its node: users can write EndpointSlices.
//   - Secrets are read for each attempt, and live as long as its request. Errors become events: they are freed of
//     the URL, and replaced if they repeat a part of the value of a header (withoutSecrets). Who may name a Secret
//     is decided by kube-apiserver (plugin/pkg/admission/downscalepodpicker).
//
// # Questions
//
// A sync of a ReplicaSet never waits for a picker, because five workers sync all ReplicaSets: Client asks in the
// background, and has the ReplicaSet synced again when there is an answer or when the time is over.
//   - An answer is for one question: the UID of the ReplicaSet, its spec.replicas, the number of pods, the UIDs of
//     the candidates, and the picker (Question.identity). Each sync computes the question from its caches; if it
//     differs, the call is canceled, and the new question is asked in what is left of the time.
//   - The time belongs to the scale-down (budget): that of its picker while it is asked, and ten seconds of
//     waiting for a place. Both stand still while pods are deleted. After that, the pods go in the order without a
//     picker.
//   - Nothing is stored. A restart asks again, with the same idempotency key, which is a hash of the question.
//   - A question that has had its place for a second goes on without it, and its namespace counts as slow
//     (places). How many are asked at one host follows its speed.
//   - A picker with four failed attempts in a row is not asked for 30 seconds, then ever longer, up to five
//     minutes (rests). A picker that was changed is another one.
//   - The answer only ranks: it replaces the number of pods on the same node in upstream's ActivePodsWithRanks, so
//     every rule before that keeps its place.
//
// # Reading order
//
//	client.go              questions, and the time of a scale-down
//	places.go, rest.go     who is asked at the same time, and who is not
//	call.go                one attempt
//	resolve.go             from a host to an address
//	addresses.go           which addresses may be called
//	metrics.go             metrics
package podpicker
