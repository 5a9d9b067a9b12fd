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

// Package evictionfence ties an eviction to the EvictionRequest for which it is made (KEP-4563,
// Eviction).
//
// Who evicts a pod for a request decides on a cache, and a call takes as long as the webhooks that see
// it. A controller that was suspended may call hours later. So kube-apiserver reads the request itself:
// when admission is done, and again between the two writes of an eviction, of which the first one marks
// the pod with the condition DisruptionTarget, and the second one deletes it.
//
// The mark orders the eviction and the end of the request. Whoever withdraws the last requester does
// so either before the second reading, which then refuses, or after it. In that case the
// evictionrequest-controller, which reads the pod before it writes that the request is canceled and
// that the pod stays, finds the mark. Neither needs a lock, or a cache that is current.
//
// A request that only a node maintenance wants is wanted as long as the node is drained: the
// nodemaintenance-controller withdraws it when the maintenance ends, but may be down at that time, and its
// successor evicts before it has come to all of them. So kube-apiserver reads the node and its maintenances,
// too. The same holds for one that only callers of pods/eviction want, who have given up the drain of the node.
package evictionfence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	pathvalidation "k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubernetes/pkg/apis/coordination"
	coordinationapiv1alpha1 "k8s.io/kubernetes/pkg/apis/coordination/v1alpha1"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/features"
	requeststore "k8s.io/kubernetes/pkg/registry/coordination/evictionrequest/storage"
	"k8s.io/kubernetes/pkg/registry/core/pod/admittedpod"
	"k8s.io/kubernetes/pkg/registry/internal/uncached"
	"k8s.io/utils/clock"
)

// Fence refuses evictions that their requests do not want. A nil Fence refuses none.
type Fence struct {
	get     func(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)
	drains  *requeststore.Drains
	calls   *requeststore.Calls
	clock   clock.PassiveClock
	destroy func()
}

// freshness is how long a request of a drain is not confirmed again: it was when it was created. Most pods are evicted
// within that time.
const freshness = 5 * time.Second

// New returns a Fence that reads requests from etcd, or nil if the feature gate EvictionRequestAPI is
// off.
func New(storage generic.RESTOptionsGetter) (*Fence, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.EvictionRequestAPI) {
		return nil, nil
	}
	requests, err := requeststore.NewReader(uncached.Getter{RESTOptionsGetter: storage})
	if err != nil {
		return nil, err
	}
	drains, err := requeststore.NewDrains(storage)
	if err != nil {
		requests.Destroy()
		return nil, err
	}
	calls, err := requeststore.NewCalls(storage, drains)
	if err != nil {
		requests.Destroy()
		drains.Destroy()
		return nil, err
	}
	return &Fence{get: requests.Get, drains: drains, calls: calls, clock: clock.RealClock{}, destroy: requests.Destroy}, nil
}

// Destroy closes the connections to etcd.
func (f *Fence) Destroy() {
	if f != nil {
		f.destroy()
		f.calls.Destroy()
		f.drains.Destroy()
	}
}

// Enter returns an error if the eviction is made for a request that does not want it, and has the
// storage ask again before it deletes the pod. It is called when admission is done, with the context
// of admittedpod.
func (f *Fence) Enter(ctx context.Context, eviction *policy.Eviction) error {
	if f == nil || eviction.Annotations[coordinationv1alpha1.EvictionRequestUIDAnnotation] == "" {
		return nil
	}
	c, err := callOf(eviction)
	if err != nil {
		return err
	}
	// Of several callers, such as a controller that was suspended and its successor, one evicts.
	admittedpod.AddCheck(ctx, func(pod *api.Pod) error {
		if pod.DeletionTimestamp != nil {
			return refuse(c, "the pod terminates already")
		}
		return nil
	})
	admittedpod.SetConfirm(ctx, evictionrequesttools.EvictionMark(c.requestUID)+string(uuid.NewUUID()), func(ctx context.Context) error {
		_, err := f.confirm(ctx, c)
		return err
	})
	request, err := f.confirm(ctx, c)
	if err != nil {
		return err
	}
	return f.confirmDrain(ctx, c, request)
}

// confirmDrain returns an error if only those want the eviction who drain the node, and they do not (any more).
func (f *Fence) confirmDrain(ctx context.Context, c call, request *coordinationv1alpha1.EvictionRequest) error {
	if !isOnlyForDrains(request) || f.isFresh(request) {
		return nil
	}
	var names, reasons []string
	for _, requester := range request.Spec.Requesters {
		var against string
		var err error
		if requester.Name == coordinationv1alpha1.NodeMaintenanceRequester {
			against, err = f.drains.Against(ctx, request.Spec.Target.Pod.Name, c.podUID)
		} else {
			against, err = f.calls.Against(ctx, request)
		}
		switch {
		case err != nil:
			return apierrors.NewServiceUnavailable(err.Error())
		case against == "":
			return nil
		}
		names, reasons = append(names, requester.Name), append(reasons, against)
	}
	verb := "requests"
	if len(names) > 1 {
		verb = "request"
	}
	return refuse(c, fmt.Sprintf("only %s %s it, and %s", strings.Join(names, " and "), verb, strings.Join(reasons, ", and ")))
}

// isOnlyForDrains reports whether nobody wants the eviction but the nodemaintenance-controller, or callers of pods/eviction,
// who may be draining the node as well. A request that cannot be canceled may have no requesters.
func isOnlyForDrains(request *coordinationv1alpha1.EvictionRequest) bool {
	isOther := func(requester coordinationv1alpha1.Requester) bool {
		return requester.Name != coordinationv1alpha1.NodeMaintenanceRequester && requester.Name != coordinationv1alpha1.EvictionRequesterEvictions
	}
	return request.Spec.Target.Pod != nil && len(request.Spec.Requesters) > 0 && !slices.ContainsFunc(request.Spec.Requesters, isOther) &&
		request.Status.EvictionRequestCancellationPolicy != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
}

// isFresh reports whether the request was created a moment ago, for the drain, or by the first call. The clock of the API
// server that created it may be ahead.
func (f *Fence) isFresh(request *coordinationv1alpha1.EvictionRequest) bool {
	age := f.clock.Since(request.CreationTimestamp.Time)
	return request.Generation == 1 && age >= 0 && age < freshness
}

// IsRefusal reports whether the error is that of a Fence. Until the request changes, or its node is drained again,
// the same call is refused again.
func IsRefusal(err error) bool {
	return apierrors.HasStatusCause(err, coordinationv1alpha1.EvictionNotRequestedCause)
}

// maxUIDLength is far more than a UID has. Errors repeat it.
const maxUIDLength = 128

// call is for what an eviction is made.
type call struct {
	podUID      types.UID
	requestUID  types.UID
	interceptor string
}

func callOf(eviction *policy.Eviction) (call, error) {
	c := call{
		requestUID:  types.UID(eviction.Annotations[coordinationv1alpha1.EvictionRequestUIDAnnotation]),
		interceptor: eviction.Annotations[coordinationv1alpha1.EvictionActingInterceptorAnnotation],
	}
	if c.interceptor == "" {
		c.interceptor = coordinationv1alpha1.EvictionInterceptorImperative
	}
	if options := eviction.DeleteOptions; options != nil && options.Preconditions != nil && options.Preconditions.UID != nil {
		c.podUID = *options.Preconditions.UID
	}
	podPath := field.NewPath("deleteOptions", "preconditions", "uid")
	errs := validateUID(field.NewPath("metadata", "annotations").Key(coordinationv1alpha1.EvictionRequestUIDAnnotation), c.requestUID)
	errs = append(errs, validateUID(podPath, c.podUID)...)
	if c.podUID == "" {
		errs = append(errs, field.Required(podPath,
			fmt.Sprintf("set it to the UID of the pod, because the annotation %s names a request", coordinationv1alpha1.EvictionRequestUIDAnnotation)))
	}
	if len(errs) > 0 {
		return call{}, apierrors.NewInvalid(policy.Kind("Eviction"), eviction.Name, errs)
	}
	return c, nil
}

// validateUID returns an error for what cannot be the UID of an object. The empty one passes.
func validateUID(path *field.Path, uid types.UID) field.ErrorList {
	if len(uid) > maxUIDLength || len(pathvalidation.IsValidPathSegmentName(string(uid))) > 0 {
		return field.ErrorList{field.Invalid(path, plaintext.Truncate(string(uid), maxUIDLength), "is no UID")}
	}
	return nil
}

// confirm returns the stored request, or an error if it does not want the eviction.
func (f *Fence) confirm(ctx context.Context, c call) (*coordinationv1alpha1.EvictionRequest, error) {
	// The name of a request is the UID of its pod.
	stored, err := f.get(ctx, string(c.podUID), &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, refuse(c, "it does not exist")
	}
	if err != nil {
		// Not an internal error, which would look like a refusal: the same call may succeed.
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("reading EvictionRequest %s, for which the pod is evicted: %v", c.podUID, err))
	}
	request := &coordinationv1alpha1.EvictionRequest{}
	if err := coordinationapiv1alpha1.Convert_coordination_EvictionRequest_To_v1alpha1_EvictionRequest(stored.(*coordination.EvictionRequest), request, nil); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("converting EvictionRequest %s: %w", c.podUID, err))
	}
	if reason := reasonNotToEvict(request, c); reason != "" {
		return nil, refuse(c, reason)
	}
	return request, nil
}

// reasonNotToEvict returns why the request does not want the eviction, or "".
func reasonNotToEvict(request *coordinationv1alpha1.EvictionRequest, c call) string {
	final := evictionrequesttools.FinalCondition(request.Status.Conditions)
	active := request.Status.ActiveInterceptors
	switch {
	case request.UID != c.requestUID:
		return "it was replaced by another one"
	case final != nil:
		return "it is finished: " + final.Type
	case !evictionrequesttools.IsWanted(request):
		return "it is canceled: it has no requesters, or is being deleted"
	case len(active) == 0:
		return "none of its interceptors is active"
	case active[0] != c.interceptor:
		return fmt.Sprintf("its interceptor %s is not active", c.interceptor)
	}
	return ""
}

func refuse(c call, reason string) error {
	err := apierrors.NewConflict(coordination.Resource("evictionrequests"), string(c.podUID),
		errors.New("the pod is not evicted for this request with the UID "+string(c.requestUID)+": "+reason))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    coordinationv1alpha1.EvictionNotRequestedCause,
		Message: reason,
		Field:   field.NewPath("metadata", "annotations").Key(coordinationv1alpha1.EvictionRequestUIDAnnotation).String(),
	}}
	return err
}
