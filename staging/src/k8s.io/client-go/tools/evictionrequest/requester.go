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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// RequesterOptions are the options of a requester. The zero value is valid.
type RequesterOptions struct {
	// HeartbeatDeadlineSeconds is how long an interceptor of the pod may go without a heartbeat
	// before the next one is activated: from 120 to 21600. 0 means the default of the API server,
	// DefaultHeartbeatDeadlineSeconds of the API. The first requester of a pod sets it. Requesters
	// that join later lower it to their own if that is smaller, but not below the default.
	HeartbeatDeadlineSeconds int32

	// Clock is used for the delays between attempts while a finished request blocks a new one. The
	// default is the real clock.
	Clock clock.Clock
}

// Outcome is the outcome of a call of Request.
type Outcome string

const (
	// Created means that this requester is the first and only one: the request is new, or unchanged
	// since an earlier call has created it.
	Created Outcome = "Created"

	// Joined means that the request exists and this requester is now one of its requesters. Other
	// requesters are in it, or have been.
	Joined Outcome = "Joined"

	// AlreadyEvicted means that there is nothing to evict: this instance of the pod is gone or
	// terminal.
	AlreadyEvicted Outcome = "AlreadyEvicted"
)

// Result is the outcome of a call of Request, and the request after the call.
type Result struct {
	Outcome Outcome
	Request *coordinationv1alpha1.EvictionRequest
}

// CanceledError is returned by Request if the pod cannot be evicted by an EvictionRequest: the
// controller has canceled the request for a reason that another attempt does not change.
type CanceledError struct {
	// Request is the canceled request.
	Request *coordinationv1alpha1.EvictionRequest
	// Reason and Message come from its condition Canceled.
	Reason, Message string
}

// Error returns which request was canceled, why, and what to do.
func (e *CanceledError) Error() string {
	return fmt.Sprintf("eviction request %s/%s for pod %s was canceled (%s): %s Delete it to request the eviction again",
		e.Request.Namespace, e.Request.Name, targetName(e.Request), e.Reason, e.Message)
}

// Requester requests the eviction of pods for one participant. It is safe for concurrent use. It
// needs permission to get, create and patch evictionrequests, and to delete the pods whose eviction
// it requests.
type Requester struct {
	client  kubernetes.Interface
	name    string
	options RequesterOptions
}

// NewRequester returns a requester. Its name is a domain name such as drain.example.com, which is
// added to spec.requesters. FieldManager returns its field manager.
func NewRequester(client kubernetes.Interface, name string, options RequesterOptions) (*Requester, error) {
	if client == nil {
		return nil, errors.New("client is nil: pass the client of the requester")
	}
	if err := validateName(name); err != nil {
		return nil, fmt.Errorf("invalid requester %q: %w", name, err)
	}
	if seconds := options.HeartbeatDeadlineSeconds; seconds != 0 && (seconds < 120 || seconds > 21600) {
		return nil, fmt.Errorf("heartbeatDeadlineSeconds of requester %q is %d: must be from 120 to 21600, or 0 for the default", name, seconds)
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Requester{client: client, name: name, options: options}, nil
}

// Request requests the eviction of this instance of the pod. It creates the request or joins an
// existing one. It is idempotent.
//
// If an existing request is canceled or being deleted, Request waits until it is gone and creates a
// new one: use a context with a timeout. A request that ended with the eviction of the pod is an
// outcome and not an error.
//
// Errors of the API server are wrapped: apierrors.IsForbidden reports whether the requester lacks a
// permission, which may be the one to delete the pod.
func (r *Requester) Request(ctx context.Context, pod *v1.Pod) (*Result, error) {
	if pod.UID == "" || pod.Name == "" || pod.Namespace == "" {
		return nil, fmt.Errorf("pod %q in namespace %q has UID %q: pass a pod that was read from the API server", pod.Name, pod.Namespace, pod.UID)
	}
	result, err := r.request(ctx, pod)
	if err != nil {
		return nil, fmt.Errorf("requesting the eviction of pod %s as %s: %w", klog.KObj(pod), r.name, err)
	}
	return result, nil
}

// request applies without reading first: usually there is no request, or one to join, and this is
// the only call. It reads the request only if that is not sufficient.
func (r *Requester) request(ctx context.Context, pod *v1.Pod) (*Result, error) {
	patch := r.createPatch(pod)
	for backoff := newBackoff(); ; {
		request, rejection := r.apply(ctx, patch)
		switch {
		case rejection == nil:
			if result, err := r.evaluate(request); result != nil || err != nil {
				return r.lowerDeadline(ctx, result, err)
			}
			klog.FromContext(ctx).V(2).Info("Waiting for a finished eviction request to be deleted", "evictionRequest", klog.KObj(request))
		case apierrors.HasStatusCause(rejection, coordinationv1alpha1.EvictionNotDrainedCause):
			return nil, rejection
		case apierrors.IsConflict(rejection):
			// The request exists with other labels, or has changed since it was read.
		case apierrors.IsInvalid(rejection) && patch.UID == nil:
			// The request may exist with another deadline.
		default:
			return nil, rejection
		}
		if err := sleep(ctx, r.options.Clock, backoff.Step()); err != nil {
			return nil, err
		}
		var err error
		if patch, err = r.nextPatch(ctx, pod, rejection); err != nil {
			return nil, err
		}
	}
}

// nextPatch returns the patch for the next attempt.
func (r *Requester) nextPatch(ctx context.Context, pod *v1.Pod, rejection error) (*coordinationapply.EvictionRequestApplyConfiguration, error) {
	live, err := r.get(ctx, pod.Namespace, string(pod.UID))
	switch {
	case apierrors.IsNotFound(err) && apierrors.IsInvalid(rejection):
		return nil, rejection // No request exists, so the patch itself is invalid.
	case apierrors.IsNotFound(err):
		return r.createPatch(pod), nil
	case err != nil:
		return nil, err
	}
	return r.joinPatch(pod, live)
}

// evaluate returns the result for a request that this requester is in. It returns nil if the
// requester must wait until the request is gone.
func (r *Requester) evaluate(request *coordinationv1alpha1.EvictionRequest) (*Result, error) {
	if isConditionTrue(request, coordinationv1alpha1.EvictionRequestConditionEvicted) {
		return &Result{Outcome: AlreadyEvicted, Request: request}, nil
	}
	canceled := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionCanceled))
	if canceled != nil && canceled.Status == metav1.ConditionTrue {
		if canceled.Reason == coordinationv1alpha1.EvictionRequestReasonValidationFailed {
			return nil, &CanceledError{Request: request, Reason: canceled.Reason, Message: canceled.Message}
		}
		return nil, nil // The controller deletes it because a requester was added.
	}
	// A request that is being deleted counts as canceled, even while finalizers keep it.
	if request.DeletionTimestamp != nil {
		return nil, nil
	}
	if !hasRequester(request, r.name) {
		return nil, fmt.Errorf("the API server stored the request %s without the requester %s: check the mutating admission webhooks", klog.KObj(request), r.name)
	}
	// Every other requester changes the spec, so the first generation is only ours.
	if request.Generation <= 1 && len(request.Spec.Requesters) == 1 {
		return &Result{Outcome: Created, Request: request}, nil
	}
	return &Result{Outcome: Joined, Request: request}, nil
}

// lowerDeadline lowers the deadline of the request of a successful result, if this requester has a smaller one: the
// one that came first must not be able to hold up all others (see spec.heartbeatDeadlineSeconds).
func (r *Requester) lowerDeadline(ctx context.Context, result *Result, err error) (*Result, error) {
	if err != nil || result.Outcome == AlreadyEvicted {
		return result, err
	}
	seconds := max(r.options.HeartbeatDeadlineSeconds, coordinationv1alpha1.DefaultHeartbeatDeadlineSeconds)
	current := result.Request.Spec.HeartbeatDeadlineSeconds
	if current == nil || *current <= seconds {
		return result, nil
	}
	const path = "/spec/heartbeatDeadlineSeconds"
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": result.Request.UID},
		{"op": "test", "path": path, "value": *current},
		{"op": "replace", "path": path, "value": seconds},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	lowered, err := r.client.CoordinationV1alpha1().EvictionRequests(result.Request.Namespace).
		Patch(ctx, result.Request.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager(r.name)})
	switch {
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err):
		// Another requester has lowered it, or the API server is an older one, where the first requester alone
		// sets it. Or the request is gone.
		klog.FromContext(ctx).V(2).Info("The heartbeat deadline was not lowered", "evictionRequest", klog.KObj(result.Request), "err", err)
		return result, nil
	case err != nil:
		return nil, err
	}
	result.Request = lowered
	return result, nil
}

// createPatch returns the patch for a new request. Its labels are those of the pod, which saves the
// controller the patch that would copy them.
//
// If the request exists after all, the patch joins it, unless the deadline or labels differ: then
// the API server returns a conflict or an Invalid error, because the patch is applied without
// force.
func (r *Requester) createPatch(pod *v1.Pod) *coordinationapply.EvictionRequestApplyConfiguration {
	spec := coordinationapply.EvictionRequestSpec().
		WithTarget(target(pod.Name, string(pod.UID))).
		WithRequesters(coordinationapply.Requester().WithName(r.name))
	if r.options.HeartbeatDeadlineSeconds != 0 {
		spec.WithHeartbeatDeadlineSeconds(r.options.HeartbeatDeadlineSeconds)
	}
	request := coordinationapply.EvictionRequest(string(pod.UID), pod.Namespace).WithSpec(spec)
	if ownedSize(pod.Labels) <= maxOwnedSize {
		request.WithLabels(pod.Labels)
	}
	return request
}

// maxOwnedSize is how many bytes the managed fields of labels may take that are applied: the API server limits the fields
// of a manager, and a pod may have thousands of short labels. It adds larger ones by itself.
const maxOwnedSize = 6 * 1024

// ownedSize returns how many bytes these labels take in the managed fields of who applies them.
func ownedSize(labels map[string]string) int {
	size := 0
	for key := range labels {
		size += len(`"f:":{},`) + len(key)
	}
	return size
}

// joinPatch returns the patch for an existing request: the fields that this requester already owns,
// with their current values, and its entry.
//
// These fields include labels: labels that it set on creation and that nothing has changed since
// would be removed by a patch without them. Labels that the controller has changed belong to the
// controller. Applying them from the pod would cause a conflict.
func (r *Requester) joinPatch(pod *v1.Pod, live *coordinationv1alpha1.EvictionRequest) (*coordinationapply.EvictionRequestApplyConfiguration, error) {
	if name := targetName(live); name != pod.Name {
		return nil, fmt.Errorf("the target of request %s is pod %q, not %q: delete the request, because it cannot evict a pod", klog.KObj(live), name, pod.Name)
	}
	patch, err := r.ownedFields(live)
	if err != nil {
		return nil, err
	}
	patch.Spec.WithTarget(target(pod.Name, string(pod.UID)))
	if !slices.ContainsFunc(patch.Spec.Requesters, r.isOwn) {
		patch.Spec.WithRequesters(coordinationapply.Requester().WithName(r.name))
	}
	return patch, nil
}

// ownedFields returns the fields of a request that this requester owns, ready to be applied again.
// The UID ensures that the patch does not create a request if this one is gone.
func (r *Requester) ownedFields(live *coordinationv1alpha1.EvictionRequest) (*coordinationapply.EvictionRequestApplyConfiguration, error) {
	// Read from the API server, not from an informer that has trimmed managedFields.
	patch, err := coordinationapply.ExtractEvictionRequest(live, FieldManager(r.name)) //nolint:forbidigo
	if err != nil {
		return nil, fmt.Errorf("reading the managed fields of the request %s: %w", klog.KObj(live), err)
	}
	if patch.Spec == nil {
		patch.WithSpec(coordinationapply.EvictionRequestSpec())
	}
	return patch.WithUID(live.UID), nil
}

func (r *Requester) isOwn(entry coordinationapply.RequesterApplyConfiguration) bool {
	return entry.Name != nil && *entry.Name == r.name
}

// Withdraw withdraws the request for the eviction of this instance of the pod. Other requesters are
// not affected. If it was the last one, the request is canceled and the pod stays, unless an
// interceptor has forbidden cancellation. It is not an error if there is no request, if it is
// finished, or if this requester is not in it.
func (r *Requester) Withdraw(ctx context.Context, pod *v1.Pod) error {
	if pod.UID == "" || pod.Namespace == "" {
		return fmt.Errorf("pod %q in namespace %q has UID %q: pass a pod that was read from the API server", pod.Name, pod.Namespace, pod.UID)
	}
	if err := r.withdraw(ctx, pod.Namespace, string(pod.UID)); err != nil {
		return fmt.Errorf("withdrawing the request for pod %s as %s: %w", klog.KObj(pod), r.name, err)
	}
	return nil
}

// WithdrawRequest is Withdraw for callers that have the request but maybe not the pod.
func (r *Requester) WithdrawRequest(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) error {
	if err := r.withdraw(ctx, request.Namespace, request.Name); err != nil {
		return fmt.Errorf("withdrawing the request %s as %s: %w", klog.KObj(request), r.name, err)
	}
	return nil
}

func (r *Requester) withdraw(ctx context.Context, namespace, name string) error {
	for backoff := newBackoff(); ; {
		live, err := r.get(ctx, namespace, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if !hasRequester(live, r.name) || IsFinished(live.Status.Conditions) {
			return nil
		}
		left, err := r.leave(ctx, live)
		// If it is gone or has changed since it was read, read it again.
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
		if left {
			return nil
		}
		if err := sleep(ctx, r.options.Clock, backoff.Step()); err != nil {
			return err
		}
	}
}

// leave applies the fields of this requester without its entry, and reports whether the entry is
// gone. It is not gone if another field manager owns it as well.
func (r *Requester) leave(ctx context.Context, live *coordinationv1alpha1.EvictionRequest) (bool, error) {
	patch, err := r.ownedFields(live)
	if err != nil {
		return false, err
	}
	patch.Spec.Requesters = slices.DeleteFunc(patch.Spec.Requesters, r.isOwn)
	request, err := r.apply(ctx, patch)
	if err != nil {
		return false, err
	}
	if !hasRequester(request, r.name) {
		return true, nil
	}
	err = r.remove(ctx, request)
	return err == nil, err
}

// remove removes the entry of this requester with any owner: it may have been created without this
// library. The test operations of the patch make it fail if it would affect another entry or
// another request.
func (r *Requester) remove(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) error {
	index := slices.IndexFunc(request.Spec.Requesters, func(entry coordinationv1alpha1.Requester) bool { return entry.Name == r.name })
	path := fmt.Sprintf("/spec/requesters/%d", index)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": request.UID},
		{"op": "test", "path": path + "/name", "value": r.name},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	left, err := r.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).
		Patch(ctx, request.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager(r.name)})
	switch {
	case apierrors.IsInvalid(err):
		// A test operation has failed: another client has changed the request.
		return apierrors.NewConflict(coordinationv1alpha1.Resource("evictionrequests"), request.Name, err)
	case err != nil:
		return err
	case hasRequester(left, r.name):
		return fmt.Errorf("the API server stored the request %s with the requester %s, which was removed: check the mutating admission webhooks", klog.KObj(left), r.name)
	}
	return nil
}

func (r *Requester) get(ctx context.Context, namespace, name string) (*coordinationv1alpha1.EvictionRequest, error) {
	return r.client.CoordinationV1alpha1().EvictionRequests(namespace).Get(ctx, name, metav1.GetOptions{})
}

// apply does not use force: a requester does not need fields that others own.
func (r *Requester) apply(ctx context.Context, patch *coordinationapply.EvictionRequestApplyConfiguration) (*coordinationv1alpha1.EvictionRequest, error) {
	return r.client.CoordinationV1alpha1().EvictionRequests(*patch.Namespace).
		Apply(ctx, patch, metav1.ApplyOptions{FieldManager: FieldManager(r.name)})
}

func target(name, uid string) *coordinationapply.EvictionTargetApplyConfiguration {
	return coordinationapply.EvictionTarget().WithPod(coordinationapply.LocalPodReference().WithName(name).WithUID(uid))
}

func targetName(request *coordinationv1alpha1.EvictionRequest) string {
	if request.Spec.Target.Pod == nil {
		return ""
	}
	return request.Spec.Target.Pod.Name
}

// newBackoff returns the delays between reads of a request that another client should change soon.
// They start short and become longer, because the controller may be down.
func newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Second}
}

// sleep returns an error if the context is done first.
func sleep(ctx context.Context, clock clock.Clock, duration time.Duration) error {
	timer := clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}
