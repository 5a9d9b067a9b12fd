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
// tenants, such as namespaces, whose webhooks may make calls slow or hang:
//
//   - One tenant has at most a given number of places. A tenant that has places gets another one
//     only if enough places stay free for others, in proportion to the number that it has: several
//     busy tenants never have all places, as long as there are fewer tenants than places.
//   - A tenant is slow while one of its items takes five seconds or longer (see Places.SlowAfter), and
//     after two such items within half an hour. Items that are slow at about the same time count once, so that a
//     short outage of the API server does not make all tenants slow for long. All slow tenants
//     together have at most half of the places.
//   - Work may leave its place and go on (see Place.Leave). Until it ends, its tenant is slow, and comes
//     after those with less in progress.
//   - A tenant without a quick item in the last five minutes is unknown, unless it is slow, and has
//     at most an eighth of the places. Unknown and slow tenants together have at most three
//     quarters, so that many new tenants whose calls hang also leave places free.
//
// Each of these limits is at least one place. The tenant with the fewest places gets the next one,
// tenants with the same number take turns, and the items of one tenant keep their order. A tenant
// that is at a limit keeps its turn.
//
// Beyond that, the work may belong to flows, such as maintenances, which each concern many tenants.
// The flow with the fewest places gets the next one, and the rules above apply within it: three
// items of one flow do not wait for 100,000 of another one. The limits of a tenant are about all
// flows together. Within a tenant, sources such as requesters may take turns. See Owner.
//
// Every completed item counts with its duration, even if it made no call.
//
// WorkQueue applies this to the workers of a workqueue, Places to goroutines that wait, and Line to
// a queue with other rules.
package fairshare
