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
package evictions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	lifecycleapply "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// State is how far the eviction of a pod is.
type State string

const (
	// Requested means that the pod is to be evicted.
	Requested State = "Requested"
	// Evicted means that this instance of the pod is gone or terminal. Final.
	Evicted State = "Evicted"
	// Canceled means that the pod stays. The reason says why.
	Canceled State = "Canceled"
)

// Status is what is known about the eviction of a pod.
type Status struct {
	State State
	// Reason and Message are those of the condition that says that the eviction is over.
	Reason, Message string
}

// Requester requests the eviction of pods for one participant (KEP-4563, Eviction Requester). It is safe for concurrent
// use, and keeps no state: another process with the same name continues.
type Requester struct {
	door requesterAPI
	name string
}

// requesterAPI does in one group what the methods of a requester say.
type requesterAPI interface {
	request(ctx context.Context, pod *v1.Pod, requester string) (*Status, error)
	withdraw(ctx context.Context, pod *v1.Pod, requester string) error
	// watched returns the requests of that pod, the type of the object, and a function that reads it.
	watched(pod *v1.Pod, requester string) (list *cache.ListWatch, object runtime.Object, read func(runtime.Object) *Status)
}

// LifecycleRequester returns a requester that makes an EvictionRequest of lifecycle.k8s.io for each pod. The name is a key
// in a domain, such as example.com/drainer. It needs permission to create, patch, delete, list and watch evictionrequests
// there, and to delete the pods.
func LifecycleRequester(client kubernetes.Interface, name string) *Requester {
	return &Requester{lifecycleAPI{client}, name}
}

// CoordinationRequester returns a requester in the EvictionRequests of coordination.k8s.io, one for each pod, which it
// shares with others. The name is a domain name, such as drainer.example.com, or a key in a domain. It needs permission to
// get, create, patch, list and watch evictionrequests there, and to delete the pods.
func CoordinationRequester(client dynamic.Interface, name string) *Requester {
	return &Requester{coordinationAPI{client}, name}
}

// Request requests the eviction of this instance of the pod, which was read from the API server. It is idempotent. The
// state Evicted means that there is nothing to evict any more, Canceled that the pod cannot be evicted by a request.
//
// If a canceled request is still there, Request waits until it is gone: use a context with a deadline. Conflicts are
// retried, 20 times at most. Other errors are those of the API server: apierrors.IsForbidden means that a permission is
// missing, which may be the one to delete the pod.
func (r *Requester) Request(ctx context.Context, pod *v1.Pod) (*Status, error) {
	var status *Status
	err := r.retry(ctx, "requesting the eviction", pod, func() (err error) {
		status, err = r.door.request(ctx, pod, r.name)
		return err
	})
	return status, err
}

// Withdraw withdraws the request. Those of others are not affected. If it was the last one, the eviction is canceled and
// the pod stays, unless a responder has forbidden that. It is not an error if there is nothing to withdraw. In
// lifecycle.k8s.io, Withdraw deletes the EvictionRequest: call it as well when the eviction is over, for nobody else does.
func (r *Requester) Withdraw(ctx context.Context, pod *v1.Pod) error {
	return r.retry(ctx, "withdrawing the request", pod, func() error { return r.door.withdraw(ctx, pod, r.name) })
}

// Wait waits until the eviction that was requested is over, and returns how it ended: Evicted or Canceled. Its error is
// ErrRequestGone if there is no request, or that of the context.
func (r *Requester) Wait(ctx context.Context, pod *v1.Pod) (*Status, error) {
	list, object, read := r.door.watched(pod, r.name)
	var status *Status
	_, err := watchtools.UntilWithSync(ctx, list, object, func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return true, ErrRequestGone
		}
		return false, nil
	}, func(event watch.Event) (bool, error) {
		if event.Type == watch.Deleted {
			return true, ErrRequestGone
		}
		status = read(event.Object)
		return status.State != Requested, nil
	})
	if err != nil {
		return nil, r.wrap("waiting for the eviction", pod, err)
	}
	return status, nil
}

// errAgain is the error of an attempt that has to be repeated: the former request is about to be deleted.
var errAgain = errors.New("the former request is not gone yet")

func (r *Requester) retry(ctx context.Context, what string, pod *v1.Pod, attempt func() error) error {
	if pod.UID == "" || pod.Name == "" || pod.Namespace == "" {
		return fmt.Errorf("pod %q in namespace %q has UID %q: pass a pod that was read from the API server", pod.Name, pod.Namespace, pod.UID)
	}
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Second}
	for conflicts := 0; ; {
		err := attempt()
		if apierrors.IsConflict(err) {
			conflicts++
		}
		if err == nil || !errors.Is(err, errAgain) && (!apierrors.IsConflict(err) || conflicts > 20) {
			return r.wrap(what, pod, err)
		}
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
			return r.wrap(what, pod, fmt.Errorf("%w: %w", context.Cause(ctx), err))
		}
	}
}

func (r *Requester) wrap(what string, pod *v1.Pod, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of pod %s/%s as %s: %w", what, pod.Namespace, pod.Name, r.name, err)
}

// statusOf returns the state that these conditions say.
func statusOf(conditions []metav1.Condition, evicted, canceled string) *Status {
	for state, conditionType := range map[State]string{Evicted: evicted, Canceled: canceled} {
		if condition := meta.FindStatusCondition(conditions, conditionType); condition != nil && condition.Status == metav1.ConditionTrue {
			return &Status{State: state, Reason: condition.Reason, Message: condition.Message}
		}
	}
	return &Status{State: Requested}
}

func onlyNamed(name string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
}

// lifecycleName is the same for each call, so that a requester finds its request after a restart.
func lifecycleName(pod *v1.Pod, requester string) string {
	hash := sha256.Sum256([]byte(requester))
	return string(pod.UID) + "-" + hex.EncodeToString(hash[:5])
}

// request applies with force: the request is its own, and its intent may have been changed.
func (a lifecycleAPI) request(ctx context.Context, pod *v1.Pod, requester string) (*Status, error) {
	target := lifecycleapply.EvictionRequestTarget().WithPod(lifecycleapply.EvictionRequestPodReference().WithName(pod.Name).WithUID(pod.UID))
	patch := lifecycleapply.EvictionRequest(lifecycleName(pod, requester), pod.Namespace).WithSpec(
		lifecycleapply.EvictionRequestSpec().WithTarget(target).WithRequester(requester).WithIntent(lifecyclev1alpha1.EvictionRequestIntentEviction))
	request, err := a.client.LifecycleV1alpha1().EvictionRequests(pod.Namespace).
		Apply(ctx, patch, metav1.ApplyOptions{FieldManager: FieldManager(requester), Force: true})
	switch {
	case err != nil:
		return nil, err
	case request.DeletionTimestamp != nil:
		return nil, errAgain
	}
	return a.status(request), nil
}

// status returns no end that was before the last change of the intent.
func (a lifecycleAPI) status(object runtime.Object) *Status {
	request := object.(*lifecyclev1alpha1.EvictionRequest)
	if observed := request.Status.ObservedGeneration; observed == nil || *observed < request.Generation {
		return &Status{State: Requested}
	}
	return statusOf(request.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionTargetEvicted), string(lifecyclev1alpha1.EvictionConditionFailed))
}

func (a lifecycleAPI) withdraw(ctx context.Context, pod *v1.Pod, requester string) error {
	err := a.client.LifecycleV1alpha1().EvictionRequests(pod.Namespace).Delete(ctx, lifecycleName(pod, requester), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (a lifecycleAPI) watched(pod *v1.Pod, requester string) (*cache.ListWatch, runtime.Object, func(runtime.Object) *Status) {
	only, requests := onlyNamed(lifecycleName(pod, requester)), a.client.LifecycleV1alpha1().EvictionRequests(pod.Namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			only(&options)
			return requests.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			only(&options)
			return requests.Watch(ctx, options)
		},
	}, &lifecyclev1alpha1.EvictionRequest{}, a.status
}

// request applies what this requester owns: the target and its entry. The request is made, or others have made it.
func (a coordinationAPI) request(ctx context.Context, pod *v1.Pod, requester string) (*Status, error) {
	request, err := a.applyRequest(ctx, pod, "", requester, map[string]any{"name": requester})
	if err != nil {
		return nil, err
	}
	status := statusOf(request.Status.Conditions, "Evicted", "Canceled")
	switch {
	case status.State == Evicted, status.Reason == "ValidationFailed":
		return status, nil
	case status.State == Canceled, request.DeletionTimestamp != nil:
		return nil, errAgain // The controller deletes it because a requester was added.
	case !request.has(requester):
		return nil, errors.New("the API server stored the request without the requester: check the mutating admission webhooks")
	}
	return status, nil
}

func (a coordinationAPI) withdraw(ctx context.Context, pod *v1.Pod, requester string) error {
	object, err := a.client.Resource(coordinationResource).Namespace(pod.Namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	request, err := decode(object)
	if err != nil || !request.has(requester) || statusOf(request.Status.Conditions, "Evicted", "Canceled").State != Requested {
		return err
	}
	request, err = a.applyRequest(ctx, pod, request.UID, requester)
	if err == nil && request.has(requester) {
		err = errors.New("the requester is still there: another field manager has added it as well")
	}
	return err
}

// applyRequest applies these entries. With a UID, it applies them to no other request, and makes none. It does not use
// force: a requester does not need fields that others own.
func (a coordinationAPI) applyRequest(ctx context.Context, pod *v1.Pod, uid types.UID, requester string, entries ...map[string]any) (*evictionRequest, error) {
	metadata := map[string]any{"name": pod.UID, "namespace": pod.Namespace}
	if uid != "" {
		metadata["uid"] = uid
	}
	spec := map[string]any{"target": map[string]any{"pod": map[string]any{"name": pod.Name, "uid": pod.UID}}}
	if len(entries) > 0 {
		spec["requesters"] = entries
	}
	patch, err := json.Marshal(map[string]any{
		"apiVersion": coordinationKind.GroupVersion().String(), "kind": coordinationKind.Kind, "metadata": metadata, "spec": spec,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	object, err := a.client.Resource(coordinationResource).Namespace(pod.Namespace).
		Patch(ctx, string(pod.UID), types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager(requester)})
	if err != nil {
		return nil, err
	}
	return decode(object)
}

func (r *evictionRequest) has(requester string) bool {
	for _, entry := range r.Spec.Requesters {
		if entry.Name == requester {
			return true
		}
	}
	return false
}

func (a coordinationAPI) watched(pod *v1.Pod, _ string) (*cache.ListWatch, runtime.Object, func(runtime.Object) *Status) {
	only, requests := onlyNamed(string(pod.UID)), a.client.Resource(coordinationResource).Namespace(pod.Namespace)
	return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				only(&options)
				return requests.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				only(&options)
				return requests.Watch(ctx, options)
			},
		}, &unstructured.Unstructured{}, func(object runtime.Object) *Status {
			request, err := decode(object.(*unstructured.Unstructured))
			if err != nil {
				return &Status{State: Requested}
			}
			return statusOf(request.Status.Conditions, "Evicted", "Canceled")
		}
}
