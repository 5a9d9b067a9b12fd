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

// Package fairshare divides a number of places, such as workers or calls in flight, between
// tenants, such as namespaces, whose webhooks may make the calls slow or keep them from ending:
//
//   - One tenant has at most a given number of places. With more than one place, it gets
//     another only while enough stay free for others, in proportion to what it has: several
//     busy tenants never have all places, as long as they are fewer than the places.
//   - A tenant is slow while one of its items takes five seconds or longer, and when that
//     happened twice in half an hour. What hangs at about the same time counts once, so that a hiccup
//     of the API server makes nobody slow for long. All slow tenants together have at most half
//     of the places.
//   - A tenant without a quick answer in the last five minutes has at most an eighth. Those of
//     them that are not slow, and the slow ones, together have at most three quarters, so that
//     many new tenants whose calls hang leave places too.
//
// Each of these is one place at least. The tenant with the fewest places gets the next one,
// several that have as many take turns, and the work of a tenant keeps its order.
//
// An answer is whatever the work on an item takes, also where it needs no call.
//
// WorkQueue does so for the workers of a workqueue, Places for goroutines that wait, and Line
// for a queue with rules of its own.
package fairshare
