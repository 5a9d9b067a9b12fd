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

package interceptedeviction

import (
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/features"
)

const (
	// renewalInterval is the minimum time between two writes of the time of the last call. Evictors
	// call every few seconds, and each write is received by all watchers.
	renewalInterval = time.Minute

	// callTTL is how long a call counts.
	callTTL = coordinationv1alpha1.EvictionCallTTLSeconds * time.Second
)

// ownInterceptors returns the interceptors of the pod for which an eviction has to wait, in the
// order in which they act, unless the pod leaves with its group only (groups.go). It excludes those that every request for such a pod has:
// imperative-eviction.k8s.io, and for pods of DaemonSets and static pods the controller that acts
// in a maintenance only. Without a maintenance, an eviction would wait for it forever. Responders are
// among them where they act.
func ownInterceptors(pod *v1.Pod) []string {
	targets := evictioninterceptor.OwnTargets(pod)
	if len(pod.Spec.EvictionResponders) > 0 && utilfeature.DefaultFeatureGate.Enabled(features.LifecycleEvictions) {
		targets = evictioninterceptor.AllTargets(pod)
	}
	return slices.DeleteFunc(targets, func(name string) bool { return isBuiltIn(name, pod) })
}

// isBuiltIn reports whether the interceptor is one that the pod has even if it does not name it.
func isBuiltIn(name string, pod *v1.Pod) bool {
	return name == coordinationv1alpha1.EvictionInterceptorImperative || slices.Contains(evictionrequesttools.DefaultInterceptors(pod), name)
}

// progress is how far a request is, for an eviction of its pod. All after waiting have to be read
// from the API server.
type progress int

const (
	// missing: there is no request.
	missing progress = iota
	// waiting: interceptors have yet to act.
	waiting
	// done: all interceptors have acted, except for built-in ones.
	done
	// evicted: the request says that the pod is gone. If it runs all the same, a new request is needed: see
	// isContradicted.
	evicted
	// canceled: no interceptor acts any more, and the pod stays. A new request is needed.
	canceled
	// deleting: finalizers keep a request that counts as canceled, and will be.
	deleting
	// replaceable: finalizers keep a finished request that is being deleted. A new one takes its name.
	replaceable
)

// progressOf returns how far the request is. The request is nil if there is none.
func progressOf(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) progress {
	if request == nil {
		return missing
	}
	isTrue := func(condition coordinationv1alpha1.EvictionRequestConditionType) bool {
		return meta.IsStatusConditionTrue(request.Status.Conditions, string(condition))
	}
	forbidsCancellation := request.Status.EvictionRequestCancellationPolicy == coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
	switch {
	case isTrue(coordinationv1alpha1.EvictionRequestConditionEvicted):
		return evicted
	case isTrue(coordinationv1alpha1.EvictionRequestConditionCanceled):
		return over(request)
	case request.DeletionTimestamp != nil && !forbidsCancellation:
		return deleting
	}
	if len(request.Status.TargetInterceptors) == 0 {
		return waiting
	}
	for _, interceptor := range request.Status.TargetInterceptors {
		if !isBuiltIn(interceptor.Name, pod) && !slices.Contains(request.Status.ProcessedInterceptors, interceptor.Name) {
			return waiting
		}
	}
	return done
}

// over returns how far a finished request is whose pod stays.
func over(request *coordinationv1alpha1.EvictionRequest) progress {
	if request.DeletionTimestamp != nil {
		return replaceable
	}
	return canceled
}

// isFirst reports whether no call has requested the eviction yet.
func isFirst(request *coordinationv1alpha1.EvictionRequest, progress progress) bool {
	return progress == missing || progress == canceled || progress == replaceable || progress == waiting && !evictionrequesttools.IsRequestedByCalls(request)
}

// isRenewed reports whether the request already says that pods/eviction is called for its pod, by the clocks alone.
func isRenewed(request *coordinationv1alpha1.EvictionRequest, now time.Time) bool {
	called, known := evictionrequesttools.EvictionCallTime(request)
	// A time in the future comes from the clock of another API server, which would overrule this one
	// with its next call. The controller accepts it as well. A client that sets a time beyond that is
	// overruled.
	return evictionrequesttools.IsRequestedByCalls(request) && known && now.Sub(called) < renewalInterval && called.Sub(now) <= callTTL
}

// hasCordon reports whether the request already says that pods/eviction was called while the node was
// unschedulable. Which version of the node that was matters only if it was made schedulable since.
// Then the controller removes it.
func hasCordon(request *coordinationv1alpha1.EvictionRequest) bool {
	return evictionrequesttools.IsRequestedByCalls(request) && request.Annotations[coordinationv1alpha1.EvictionCallCordonAnnotation] != ""
}
