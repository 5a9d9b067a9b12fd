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

package evictionrequest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// IsRequestedByCalls reports whether callers of pods/eviction request the eviction.
func IsRequestedByCalls(request *coordinationv1alpha1.EvictionRequest) bool {
	return slices.ContainsFunc(request.Spec.Requesters, isCallers)
}

// RequestersWithoutCalls returns the requesters of the request other than the callers of pods/eviction.
func RequestersWithoutCalls(request *coordinationv1alpha1.EvictionRequest) []coordinationv1alpha1.Requester {
	return slices.DeleteFunc(slices.Clone(request.Spec.Requesters), isCallers)
}

func isCallers(requester coordinationv1alpha1.Requester) bool {
	return requester.Name == coordinationv1alpha1.EvictionRequesterEvictions
}

// EvictionCallAnnotations returns the names of the annotations with which kube-apiserver describes the callers of
// pods/eviction. They are removed with EvictionRequesterEvictions.
func EvictionCallAnnotations() []string {
	return []string{
		coordinationv1alpha1.EvictionCallTimeAnnotation, coordinationv1alpha1.EvictionCallCordonAnnotation,
		coordinationv1alpha1.EvictionCallsRepeatAnnotation, coordinationv1alpha1.EvictionCallGracePeriodAnnotation,
	}
}

// EvictionCallTime returns when pods/eviction was last called for the pod of the request, up to a
// minute too early. known is false if the request does not say so.
func EvictionCallTime(request *coordinationv1alpha1.EvictionRequest) (called time.Time, known bool) {
	called, err := time.Parse(time.RFC3339, request.Annotations[coordinationv1alpha1.EvictionCallTimeAnnotation])
	return called, err == nil
}

// AreEvictionCallsRepeated reports whether the callers of pods/eviction call every few seconds, to drain a node: one
// that has not called for EvictionRepeatedCallTTLSeconds has given up.
func AreEvictionCallsRepeated(request *coordinationv1alpha1.EvictionRequest) bool {
	return IsRequestedByCalls(request) && request.Annotations[coordinationv1alpha1.EvictionCallsRepeatAnnotation] == "true" &&
		request.Annotations[coordinationv1alpha1.EvictionCallCordonAnnotation] != ""
}

// EvictionCallGracePeriod returns the shortest grace period of the callers of pods/eviction, in seconds. known
// is false if they have asked for none.
func EvictionCallGracePeriod(request *coordinationv1alpha1.EvictionRequest) (seconds int64, known bool) {
	seconds, err := strconv.ParseInt(request.Annotations[coordinationv1alpha1.EvictionCallGracePeriodAnnotation], 10, 64)
	return seconds, err == nil && seconds >= 0
}

// EvictionCallCordon returns the value of EvictionCallCordonAnnotation for a pod on this node: it is
// empty if the node is schedulable.
func EvictionCallCordon(node *v1.Node) string {
	if !node.Spec.Unschedulable {
		return ""
	}
	return string(node.UID) + "/" + node.ResourceVersion
}

// WasEvictionCallCordoned reports whether pods/eviction was called for the pod of the request while
// this node was unschedulable.
func WasEvictionCallCordoned(request *coordinationv1alpha1.EvictionRequest, node *v1.Node) bool {
	uid, _, found := strings.Cut(request.Annotations[coordinationv1alpha1.EvictionCallCordonAnnotation], "/")
	return found && uid == string(node.UID)
}

// IsUncordonedSinceEvictionCall reports whether that node is schedulable again. It does not take an
// older version of the node, in which it was schedulable yet, for a later one.
func IsUncordonedSinceEvictionCall(request *coordinationv1alpha1.EvictionRequest, node *v1.Node) bool {
	if node.Spec.Unschedulable || !WasEvictionCallCordoned(request, node) {
		return false
	}
	_, cordoned, _ := strings.Cut(request.Annotations[coordinationv1alpha1.EvictionCallCordonAnnotation], "/")
	order, err := resourceversion.CompareResourceVersion(node.ResourceVersion, cordoned)
	return err == nil && order > 0
}

// RequestedByCall returns the name and the UID of the EvictionRequest that a call of pods/eviction has
// created or joined, as its answer says. requested is false if the answer is another one, such as that
// of a dry run.
func RequestedByCall(answer error) (name string, uid types.UID, requested bool) {
	var status apierrors.APIStatus
	if !apierrors.HasStatusCause(answer, coordinationv1alpha1.EvictionInterceptedCause) || !errors.As(answer, &status) {
		return "", "", false
	}
	details := status.Status().Details
	if details.Group != coordinationv1alpha1.GroupName || details.Kind != coordinationv1alpha1.EvictionRequestResource || details.UID == "" {
		return "", "", false
	}
	return details.Name, details.UID, true
}
