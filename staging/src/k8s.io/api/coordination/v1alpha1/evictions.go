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

package v1alpha1

// With the feature gate EvictionRequestForEvictions, whoever evicts a pod that has interceptors
// through pods/eviction causes its EvictionRequest, and gets the status 429 until the interceptors
// are done.
const (
	// EvictionRequesterEvictions is the requester that stands for all callers of pods/eviction.
	// Only kube-apiserver can add it. The eviction request controller withdraws it when no call
	// has come for EvictionCallTTLSeconds, or for EvictionRepeatedCallTTLSeconds after calls that
	// EvictionCallsRepeatAnnotation is about, or when the node of the pod is uncordoned: a caller that
	// gives up usually withdraws nothing.
	EvictionRequesterEvictions = "eviction.k8s.io"

	// EvictionCallTimeAnnotation, of an EvictionRequest, is when pods/eviction was last called for
	// the pod, in RFC 3339. Written by kube-apiserver, at most once a minute.
	EvictionCallTimeAnnotation = "coordination.k8s.io/eviction-call-time"

	// EvictionCallCordonAnnotation, of an EvictionRequest, says that pods/eviction was called for the
	// pod while its node was unschedulable: UID and resourceVersion of that node, with a slash between
	// them. Written by kube-apiserver, once. When the node is schedulable again, whoever drained it
	// has given up, and the eviction request controller withdraws EvictionRequesterEvictions. Calls
	// for pods on schedulable nodes do not set it: evictors that do not drain nodes never cordon them.
	EvictionCallCordonAnnotation = "coordination.k8s.io/eviction-call-cordon"

	// EvictionCallsRepeatAnnotation, of an EvictionRequest, has the value "true" if pods/eviction was called
	// again within EvictionCallAgainSeconds while the node of the pod was unschedulable, as by kubectl
	// drain. Written by kube-apiserver with the second of such calls, and removed by it with a later one
	// of a caller that calls less often.
	EvictionCallsRepeatAnnotation = "coordination.k8s.io/eviction-calls-repeat"

	// EvictionCallGracePeriodAnnotation, of an EvictionRequest, is the shortest
	// deleteOptions.gracePeriodSeconds of the callers of pods/eviction, in seconds, not negative.
	// Written by kube-apiserver. imperative-eviction.k8s.io evicts the pod with it, as the caller
	// would have done, while EvictionRequesterEvictions is among the requesters.
	EvictionCallGracePeriodAnnotation = "coordination.k8s.io/eviction-call-grace-period-seconds"

	// EvictionCallAgainSeconds is within which time a caller has to call again for the same pod before
	// its calls request the eviction: some callers try one pod after another, and stop at the first
	// that they may evict. Those that were refused must not leave as well. kubectl drain and
	// autoscalers call again within seconds.
	EvictionCallAgainSeconds = 45

	// EvictionRequestAtOnceAnnotation, with the value "true" in the metadata of an Eviction, says that
	// already the first call requests the eviction: the caller knows that the status 429 with
	// EvictionInterceptedCause means that the pod will leave. So does the permission EvictionRequestVerb
	// on EvictionRequesterEvictions, unless it is one of all verbs.
	EvictionRequestAtOnceAnnotation = "coordination.k8s.io/request-eviction"

	// EvictionCallTTLSeconds is how long a call of pods/eviction counts. It is longer than any
	// known caller waits before its next call: the descheduler waits for ten minutes.
	EvictionCallTTLSeconds = 15 * 60

	// EvictionRepeatedCallTTLSeconds is how long a call counts whose caller calls again every few seconds,
	// see EvictionCallsRepeatAnnotation. It is longer than the minute between two writes of the time of the
	// last call, and EvictionCallAgainSeconds.
	EvictionRepeatedCallTTLSeconds = 3 * 60

	// EvictionInterceptedMessage begins the message of the status 429. The descheduler and
	// KubeVirt know it: the pod is on its way, and the caller has to wait.
	EvictionInterceptedMessage = "Eviction triggered evacuation"

	// EvictionInterceptedCause is the type of the cause in the details of that status. If the call has
	// requested the eviction, the details also have the group, the resource as kind, the name and the
	// UID of the EvictionRequest. A caller that gives up can withdraw EvictionRequesterEvictions from
	// it, if it may delete the pod. All callers share that requester: one that goes on calling
	// requests the eviction again.
	EvictionInterceptedCause = "EvictionIntercepted"

	// EvictionNotDrainedCause is the type of the cause in the details of the status 409, with which
	// kube-apiserver refuses NodeMaintenanceRequester in a request for a pod that the drain of its node does
	// not want to leave (any more). The same write is refused again until that changes.
	EvictionNotDrainedCause = "EvictionNotDrained"

	// EvictionRequestResource is the resource in these details.
	EvictionRequestResource = "evictionrequests"

	// EvictionBypassVerb, on evictionrequests, permits evicting pods without their interceptors.
	// A user who has it explicitly always does so. A user who has all verbs ("*") does so only
	// with EvictionBypassAnnotation: administrators and drain tools have all verbs, and should not
	// bypass interceptors by accident.
	EvictionBypassVerb = "bypass"

	// EvictionBypassAnnotation, with the value "true" in the metadata of an Eviction, asks to evict
	// the pod without its interceptors. It has no effect without the permission.
	EvictionBypassAnnotation = "coordination.k8s.io/bypass-interceptors"
)

// Whoever evicts a pod for an EvictionRequest says so in the Eviction. Then kube-apiserver evicts the
// pod only if the request wants it at that moment (KEP-4563, Eviction), whatever the caller has in its
// cache.
const (
	// EvictionRequestUIDAnnotation, in the metadata of an Eviction, is the metadata.uid of the
	// EvictionRequest for which the pod is evicted. It requires deleteOptions.preconditions.uid, the
	// UID of the pod. kube-apiserver reads the request when admission is done, and again when it has
	// marked the pod with the condition DisruptionTarget, before it deletes it. It refuses with the
	// status 409 and a cause of the type EvictionNotRequestedCause if the request has another UID or
	// does not exist, is finished, has no requesters or is being deleted (unless it cannot be
	// canceled), if another interceptor is active, or if the pod terminates already; and, when admission
	// is done, if only NodeMaintenanceRequester requests it, and the node is not drained (any more), or
	// only EvictionRequesterEvictions, and the node was cordoned and is schedulable again.
	EvictionRequestUIDAnnotation = "coordination.k8s.io/eviction-request-uid"

	// EvictionActingInterceptorAnnotation, in the metadata of an Eviction, is the name of the interceptor
	// that has to be active in that request. The default is EvictionInterceptorImperative.
	EvictionActingInterceptorAnnotation = "coordination.k8s.io/acting-interceptor"

	// EvictionNotRequestedCause is the type of the cause in the details of that status. Who gets it
	// waits for a change of the request; a maintenance that does not drain the node withdraws its own.
	EvictionNotRequestedCause = "EvictionNotRequested"
)
