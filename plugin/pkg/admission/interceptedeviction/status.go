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
	"fmt"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/plaintext"
)

// The status repeats texts and names that others have chosen up to these lengths, in bytes. Evictors
// log it with every call, and copy it into events, which have room for 1024.
const (
	maxReportLength = 256
	maxNamesLength  = 256
	maxReasonLength = 384
)

// waits returns the status for an eviction that has to wait. There is no request in a dry run, unless
// others have made one.
func (e *eviction) waits(request *coordinationv1alpha1.EvictionRequest) error {
	turn, cause := turnOf(request, e)
	message := fmt.Sprintf("%s: pod %s/%s is evicted when its interceptors are done. %s%s",
		coordinationv1alpha1.EvictionInterceptedMessage, e.GetNamespace(), e.pod.Name, turn, e.bypassHint())
	if request != nil {
		message += fmt.Sprintf(" See: kubectl -n %s get evictionrequest %s", e.GetNamespace(), e.pod.UID)
	}
	err := tooManyRequests(message, cause)
	if request != nil && len(e.dryRun) == 0 {
		// A caller that gives up withdraws this request, and not a later one for the same pod.
		details := err.ErrStatus.Details
		details.Group, details.Kind = coordinationv1alpha1.GroupName, coordinationv1alpha1.EvictionRequestResource
		details.Name, details.UID = request.Name, request.UID
	}
	return err
}

// waitsForOthers returns the status for an eviction that has to wait, and requests nothing, because it
// holds for one version of the pod only.
func (e *eviction) waitsForOthers(request *coordinationv1alpha1.EvictionRequest) error {
	const how = "An eviction with preconditions.resourceVersion does not request that, because the pod may change until then: call without it, with preconditions.uid."
	return e.waitsUnrequested(request, how, "the eviction holds for one version of the pod only")
}

// waitsUnrequested returns the status for an eviction that has to wait, and requests nothing. how says why, and
// what the caller can do.
func (e *eviction) waitsUnrequested(request *coordinationv1alpha1.EvictionRequest, how, cause string) error {
	if progress := progressOf(request, e.pod); progress == waiting {
		turn, cause := turnOf(request, e)
		return tooManyRequests(fmt.Sprintf("Cannot evict pod %s/%s yet: its interceptors have to act first. %s %s", e.GetNamespace(), e.pod.Name, turn, how+e.bypassHint()), cause)
	}
	return tooManyRequests(
		fmt.Sprintf("Cannot evict pod %s/%s: its interceptors (%s) have to act first. %s%s", e.GetNamespace(), e.pod.Name, e.names(), how, e.bypassHint()),
		cause)
}

// turnOf says whose turn it is, and for how long, in a sentence and in a few words.
func turnOf(request *coordinationv1alpha1.EvictionRequest, e *eviction) (sentence, words string) {
	if request == nil {
		return fmt.Sprintf("A dry run does not request that, so none of them becomes active: %s.", e.names()), "waiting for interceptors"
	}
	entry := evictionrequesttools.ActiveInterceptor(request)
	if entry == nil {
		return fmt.Sprintf("That was requested at %s, and the evictionrequest-controller has not activated the first of them yet: %s.",
				formatTime(request.CreationTimestamp), e.names()),
			"waiting for the evictionrequest-controller"
	}
	sentence = "Interceptor " + entry.Name + " is active"
	if activated := request.Status.ActivationTime; activated != nil {
		sentence += " since " + formatTime(*activated)
	}
	if finish := entry.ExpectedFinishTime; finish != nil {
		sentence += ", expects to finish at " + formatTime(*finish)
	}
	switch {
	case entry.HeartbeatTime != nil:
		sentence += ", sent its last heartbeat at " + formatTime(*entry.HeartbeatTime)
	case entry.Message == "":
		sentence += ", and has not reported yet"
	}
	if entry.Message != "" {
		sentence += fmt.Sprintf(", and reports: %q", plaintext.Truncate(entry.Message, maxReportLength))
	}
	sentence += "."
	// It may hang. Then the caller knows how long that can last.
	if deadline, limited := evictionrequesttools.ActiveDeadline(request, e.pod); limited && entry.CompletionTime == nil {
		sentence += " Without a heartbeat until " + formatTime(metav1.NewTime(deadline)) + " it loses its turn."
	}
	return sentence, "waiting for the interceptor " + entry.Name
}

// bypassHint says why a caller that asks for it does not bypass the interceptors.
func (e *eviction) bypassHint() string {
	if !e.bypass {
		return ""
	}
	return fmt.Sprintf(" Evicting it without them requires the verb %q on evictionrequests in API group %q, which user %q does not have.",
		coordinationv1alpha1.EvictionBypassVerb, coordinationv1alpha1.GroupName, e.GetUserInfo().GetName())
}

// refused returns the status for an eviction that cannot even be requested. It is 429 as well,
// because evictors try again after it, and after others they may give up or delete the pod.
func (e *eviction) refused(reason error) error {
	return tooManyRequests(
		fmt.Sprintf("Cannot evict pod %s/%s: its interceptors (%s) have to act first, and its EvictionRequest %s cannot be written: %s",
			e.GetNamespace(), e.pod.Name, e.names(), e.pod.UID, plaintext.Truncate(plaintext.Line(reason.Error()), maxReasonLength)),
		"the EvictionRequest of the pod cannot be written")
}

// inUnknownGroup returns the status for an eviction of a pod of which is not known whether it leaves with its group only.
func (e *eviction) inUnknownGroup(reason error) error {
	return tooManyRequests(
		fmt.Sprintf("Cannot evict pod %s/%s: its interceptors (%s) may have to act first. It is not known whether they do, because pod %s is in a PodGroup: %s",
			e.GetNamespace(), e.pod.Name, e.names(), e.pod.Name, plaintext.Truncate(plaintext.Line(reason.Error()), maxReasonLength)),
		"the PodGroup of the pod cannot be read")
}

// names are those of the interceptors that have to act.
func (e *eviction) names() string {
	return plaintext.Truncate(strings.Join(e.interceptors, ", "), maxNamesLength)
}

// tooManyRequests returns a status 429 without Retry-After, as budgets do.
func tooManyRequests(message, cause string) *apierrors.StatusError {
	err := apierrors.NewTooManyRequests(message, 0)
	// Cluster API prints the message of the cause after that of the status.
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: coordinationv1alpha1.EvictionInterceptedCause, Message: cause}}
	return err
}

func formatTime(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }
