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

// Package evictionlane is how kube-apiserver reads and writes PodDisruptionBudgets for evictions
// when the feature gate EvictionLane is on.
//
// Without it, each call of pods/eviction lists the budgets of the namespace through the watch
// cache, which takes 100 ms, and updates the status of the budget by itself: of several calls under
// one budget, and of the writes of the disruption controller, one succeeds, and the others sleep for
// half a second. With it, the budgets are read from etcd, and all calls that wait for one budget are
// decided in one write, in the order of their arrival and by unchanged rules: checkAndDecrement of
// the eviction storage, called for each.
//
// Where a namespace has many budgets, they are not listed for each eviction, but looked up in memory (tracker.go),
// once etcd has said that they are current.
//
// The lane has no other state beyond the calls that are waiting. Several API servers, with and without a
// lane, may evict under one budget: each write depends on the version of the budget that it read.
package evictionlane
