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

// RequesterOptions is what a requester may choose. The zero value is fine.
type RequesterOptions struct {
	// HeartbeatDeadlineSeconds is how long interceptors of the pod may be silent before
	// the next one takes over: from 120 to 21600, where 0 leaves it to the API server,
	// which takes 1200. It is only a wish: the first requester of a pod sets it, and
	// those who join later take it as it is.
	HeartbeatDeadlineSeconds int32

	// Clock spaces the attempts while a finished request is in the way. The default is
	// the real clock.
	Clock clock.Clock
}

// Outcome says what a call of Request has come to.
type Outcome string

const (
	// Created means that this requester is the first to ask, and as yet the only one: the
	// request is new, or still as an earlier call has made it.
	Created Outcome = "Created"

	// Joined means that others ask, or have asked, for the same pod, and that this
	// requester now stands among those who do.
	Joined Outcome = "Joined"

	// AlreadyEvicted means that there is nothing to ask for: this instance of the pod is
	// gone, or has ended.
	AlreadyEvicted Outcome = "AlreadyEvicted"
)

// Result is what a call of Request has come to, and the request as it was then.
type Result struct {
	Outcome Outcome
	Request *coordinationv1alpha1.EvictionRequest
}

// CanceledError is returned by Request when the pod cannot be evicted by an
// EvictionRequest: the controller has canceled the request for a reason that asking
// again does not change.
type CanceledError struct {
	// Request is the request that was canceled.
	Request *coordinationv1alpha1.EvictionRequest
	// Reason and Message are those of its condition Canceled.
	Reason, Message string
}

// Error says which request was canceled, why, and what can be done.
func (e *CanceledError) Error() string {
	return fmt.Sprintf("the request %s/%s for pod %s is canceled (%s): %s Delete it to ask anew",
		e.Request.Namespace, e.Request.Name, targetName(e.Request), e.Reason, e.Message)
}

// Requester asks for the eviction of pods in the name of one participant, and may be
// used by several goroutines. It needs the rights to get, create and patch
// evictionrequests, and to delete the pods that it asks for.
type Requester struct {
	client  kubernetes.Interface
	name    string
	options RequesterOptions
}

// NewRequester returns a requester. Its name is a domain name such as
// drain.example.com; it stands in spec.requesters, and FieldManager says under which
// field manager it applies.
func NewRequester(client kubernetes.Interface, name string, options RequesterOptions) (*Requester, error) {
	if client == nil {
		return nil, errors.New("client is nil: give the client that the requester should use")
	}
	if err := validateName(name); err != nil {
		return nil, fmt.Errorf("the requester %q: %w", name, err)
	}
	if seconds := options.HeartbeatDeadlineSeconds; seconds != 0 && (seconds < 120 || seconds > 21600) {
		return nil, fmt.Errorf("heartbeatDeadlineSeconds of requester %q is %d: give 120 to 21600, or 0 for the default", name, seconds)
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Requester{client: client, name: name, options: options}, nil
}

// Request asks that this instance of the pod leaves. It creates the request, or joins
// the one that is there; asking again changes nothing.
//
// Where a request was called off before, or is being deleted, Request waits until it
// has gone and creates a new one: limit the time with the context. A request that ended
// with the eviction of the pod is an outcome, and no error.
//
// Errors of the API server are wrapped: apierrors.IsForbidden tells that the requester
// lacks a right, which includes that to delete the pod.
func (r *Requester) Request(ctx context.Context, pod *v1.Pod) (*Result, error) {
	if pod.UID == "" || pod.Name == "" || pod.Namespace == "" {
		return nil, fmt.Errorf("pod %q in namespace %q has UID %q: give a pod as it was read from the API server", pod.Name, pod.Namespace, pod.UID)
	}
	result, err := r.request(ctx, pod)
	if err != nil {
		return nil, fmt.Errorf("requesting the eviction of pod %s as %s: %w", klog.KObj(pod), r.name, err)
	}
	return result, nil
}

// request applies without a look at what is there first: almost always there is nothing,
// or a request to join, and this is the only call. What else it meets, it looks at.
func (r *Requester) request(ctx context.Context, pod *v1.Pod) (*Result, error) {
	patch := r.creation(pod)
	for backoff := newBackoff(); ; {
		request, rejection := r.apply(ctx, patch)
		switch {
		case rejection == nil:
			if result, err := r.judge(request); result != nil || err != nil {
				return result, err
			}
			klog.FromContext(ctx).V(2).Info("Waiting for a finished eviction request to be deleted", "evictionRequest", klog.KObj(request))
		case apierrors.IsConflict(rejection):
			// The request exists with other labels, or has changed since it was read.
		case apierrors.IsInvalid(rejection) && patch.UID == nil:
			// Maybe because the request exists with another deadline.
		default:
			return nil, rejection
		}
		if err := pause(ctx, r.options.Clock, backoff.Step()); err != nil {
			return nil, err
		}
		var err error
		if patch, err = r.nextPatch(ctx, pod, rejection); err != nil {
			return nil, err
		}
	}
}

// nextPatch returns what to apply after an attempt that has not settled things.
func (r *Requester) nextPatch(ctx context.Context, pod *v1.Pod, rejection error) (*coordinationapply.EvictionRequestApplyConfiguration, error) {
	live, err := r.get(ctx, pod.Namespace, string(pod.UID))
	switch {
	case apierrors.IsNotFound(err) && apierrors.IsInvalid(rejection):
		return nil, rejection // Nothing was in the way: what we apply is invalid by itself.
	case apierrors.IsNotFound(err):
		return r.creation(pod), nil
	case err != nil:
		return nil, err
	}
	return r.joining(pod, live)
}

// judge returns what the state of a request, in which this requester stands, means for
// it: nothing at all if it must wait until the request is gone.
func (r *Requester) judge(request *coordinationv1alpha1.EvictionRequest) (*Result, error) {
	if holds(request, coordinationv1alpha1.EvictionRequestConditionEvicted) {
		return &Result{Outcome: AlreadyEvicted, Request: request}, nil
	}
	canceled := meta.FindStatusCondition(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionCanceled))
	if canceled != nil && canceled.Status == metav1.ConditionTrue {
		if canceled.Reason == coordinationv1alpha1.EvictionRequestReasonValidationFailed {
			return nil, &CanceledError{Request: request, Reason: canceled.Reason, Message: canceled.Message}
		}
		return nil, nil // The controller deletes it, because somebody asks again.
	}
	// Being deleted counts as called off, even while finalizers keep the object.
	if request.DeletionTimestamp != nil {
		return nil, nil
	}
	if !asks(request, r.name) {
		return nil, fmt.Errorf("the API server has stored the request %s without the requester %s: a mutating admission webhook takes it out", klog.KObj(request), r.name)
	}
	// Everybody who joins changes the spec, so the first generation is ours alone.
	if request.Generation <= 1 && len(request.Spec.Requesters) == 1 {
		return &Result{Outcome: Created, Request: request}, nil
	}
	return &Result{Outcome: Joined, Request: request}, nil
}

// creation is what is applied when there is no request. The labels are those of the
// pod, which saves the controller the patch that would copy them.
//
// Should the request exist after all, this joins it, unless it has another deadline
// or other labels: then the API server refuses it, because it never forces.
func (r *Requester) creation(pod *v1.Pod) *coordinationapply.EvictionRequestApplyConfiguration {
	spec := coordinationapply.EvictionRequestSpec().
		WithTarget(target(pod.Name, string(pod.UID))).
		WithRequesters(coordinationapply.Requester().WithName(r.name))
	if r.options.HeartbeatDeadlineSeconds != 0 {
		spec.WithHeartbeatDeadlineSeconds(r.options.HeartbeatDeadlineSeconds)
	}
	return coordinationapply.EvictionRequest(string(pod.UID), pod.Namespace).WithLabels(pod.Labels).WithSpec(spec)
}

// joining is what is applied to a request that is there: what this requester owns of
// it already, as it is now, and its entry.
//
// Labels are part of that: those that it set on creation and nobody has changed since
// would be removed if it applied without them. Those that the controller has changed
// are the controller's, and applying them from the pod would conflict with it.
func (r *Requester) joining(pod *v1.Pod, live *coordinationv1alpha1.EvictionRequest) (*coordinationapply.EvictionRequestApplyConfiguration, error) {
	if name := targetName(live); name != pod.Name {
		return nil, fmt.Errorf("the request %s names pod %q as its target, and not %q: delete it, it can evict nothing", klog.KObj(live), name, pod.Name)
	}
	patch, err := r.owned(live)
	if err != nil {
		return nil, err
	}
	patch.Spec.WithTarget(target(pod.Name, string(pod.UID)))
	if !slices.ContainsFunc(patch.Spec.Requesters, r.isOwn) {
		patch.Spec.WithRequesters(coordinationapply.Requester().WithName(r.name))
	}
	return patch, nil
}

// owned is what this requester owns of a request, ready to be applied again. The UID
// makes sure that it is that request: applied to a request that has gone, it would
// create one.
func (r *Requester) owned(live *coordinationv1alpha1.EvictionRequest) (*coordinationapply.EvictionRequestApplyConfiguration, error) {
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

// Withdraw takes the wish back that this instance of the pod leaves. Others who ask for
// it are not affected; when the last one leaves, the request is canceled and the pod
// stays, unless an interceptor has forbidden that. It is no error if there is no
// request, if it is finished, or if this requester does not stand in it.
func (r *Requester) Withdraw(ctx context.Context, pod *v1.Pod) error {
	if pod.UID == "" || pod.Namespace == "" {
		return fmt.Errorf("pod %q in namespace %q has UID %q: give a pod as it was read from the API server", pod.Name, pod.Namespace, pod.UID)
	}
	if err := r.withdraw(ctx, pod.Namespace, string(pod.UID)); err != nil {
		return fmt.Errorf("withdrawing the request for pod %s as %s: %w", klog.KObj(pod), r.name, err)
	}
	return nil
}

// WithdrawRequest does the same for those who have the request at hand, and maybe no
// pod.
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
		if !asks(live, r.name) || holds(live, coordinationv1alpha1.EvictionRequestConditionEvicted) ||
			holds(live, coordinationv1alpha1.EvictionRequestConditionCanceled) {
			return nil
		}
		left, err := r.leave(ctx, live)
		// Gone, or changed since it was read: look again.
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
		if left {
			return nil
		}
		if err := pause(ctx, r.options.Clock, backoff.Step()); err != nil {
			return err
		}
	}
}

// leave applies what this requester owns without its entry, and tells whether the entry
// is gone. It is not if another field manager owns it too.
func (r *Requester) leave(ctx context.Context, live *coordinationv1alpha1.EvictionRequest) (bool, error) {
	patch, err := r.owned(live)
	if err != nil {
		return false, err
	}
	patch.Spec.Requesters = slices.DeleteFunc(patch.Spec.Requesters, r.isOwn)
	request, err := r.apply(ctx, patch)
	if err != nil {
		return false, err
	}
	if !asks(request, r.name) {
		return true, nil
	}
	err = r.remove(ctx, request)
	return err == nil, err
}

// remove takes the entry out, whoever owns it: it may have been created by other means
// than this library. Tests in the patch make it fail rather than hit another entry or
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
		// A test has failed: somebody else has changed the request.
		return apierrors.NewConflict(coordinationv1alpha1.Resource("evictionrequests"), request.Name, err)
	case err != nil:
		return err
	case asks(left, r.name):
		return fmt.Errorf("the API server has stored the request %s with the requester %s, which was removed: a mutating admission webhook puts it back", klog.KObj(left), r.name)
	}
	return nil
}

func (r *Requester) get(ctx context.Context, namespace, name string) (*coordinationv1alpha1.EvictionRequest, error) {
	return r.client.CoordinationV1alpha1().EvictionRequests(namespace).Get(ctx, name, metav1.GetOptions{})
}

// apply never forces: nothing that a requester applies is worth taking it from others.
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

// newBackoff spaces the looks at something that somebody else will change soon: often
// at first, then gently, because a controller that does not run may be long in coming.
func newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Second}
}

// pause returns an error if the context ends first.
func pause(ctx context.Context, clock clock.Clock, duration time.Duration) error {
	timer := clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}
