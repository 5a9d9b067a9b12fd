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

// Package history checks what a cluster has done, revision by revision, as etcd has stored it.
//
// etcd has one order of all writes, which no cache and no clock of a component can change. Follow reads
// them, a World has all objects as of one of them, and a Checker evaluates rules at each. The rules are what
// users rely on. They share no code with the controllers, which would then make the same mistake twice.
//
//   - A pod is evicted only while its request wants that, and imperative-eviction.k8s.io is active, and only if
//     each budget that counts it has allowed it; no budget allows less than nothing.
//   - The end of a request is final; a pod that was evicted is gone; one whose request is canceled stays.
//   - One interceptor after the other acts, all of the pod's before its eviction, each until it has completed or
//     is silent for too long; only the active one reports.
//   - A node that is drained is cordoned and empty; a maintenance that is drained has drained all its nodes.
//   - Drain targets do not step back during a drain; a drain evicts pods only while it lasts.
//   - A node is uncordoned only when no maintenance claims it, and not if a person has cordoned it.
//   - A condition that another client has written to a node without a maintenance stays.
//   - A maintenance begins with no more nodes than each budget, its domains and its rollout allow, and keeps those
//     with which it has begun.
//   - A pod goes after a surge only if all replicas are ready without it, and a StatefulSet lets no more ready pods go at a
//     time than may be unavailable.
//   - Nobody writes in a hot loop.
//
// When the faults stop, everything must end within two and a half minutes, or report what it waits for, and leave
// no cordon, taint, drain target or request behind. A history in which nothing was evicted, canceled, drained,
// admitted, given back or uncordoned fails as well.
//
// Small histories that break each rule test the rules. "make test-defects" reintroduces fixed defects, and mistakes
// like them (test/system/testdata/defects). Two histories each found 11 of the first 19, but not applied-cordon,
// cordoned-is-available, eager-requests, early-canceled, forgotten-cordon, forgotten-domain, lost-update and
// no-fence. Of the other 17, histories have found 15, and not stale-pod and no-reservation. Of the mistakes, they have
// found all but terminating-counts. Most were made several at a time, and told apart by the rule and the text.
package history
