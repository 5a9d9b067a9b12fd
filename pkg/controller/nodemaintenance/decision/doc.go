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

// Package decision decides on a node: from facts follow its drain targets, its status, what has to be written to it and about
// its pods, what delays that, and when to decide again. It is pure. It has no client, queue or lock, logs nothing, and the only
// time that it knows is that of the facts.
//
// # Reading order
//
//	facts.go       what is known of the node and its pods
//	pod.go         a pod that is left, what is due for it, and what blocks it (ownBlocker: causes that do not follow from the
//	               pod and its request)
//	verdicts.go    which pods stay: policies skip them, or nobody stops them
//	decision.go    what is decided
//	decide.go      the steps of a decision
//	cordon.go      when the node is cordoned and uncordoned, and taint.go when it has the taint planned
//	blockers.go    what delays the writes to the node, and its release; not what blocks pods
//	drain.go       the drain targets, and how far the drain is
//	volumes.go     which volumes keep a node without pods from being drained
//	escalation.go  when the drain stops waiting, and for which pods
//	admission.go   when a maintenance has begun with the node, drained it, and is done
//	status.go      when which status is written
//	writes.go      which writes about pods follow from it, and which failed writes still matter
//	outcome.go     what each maintenance learns
package decision
