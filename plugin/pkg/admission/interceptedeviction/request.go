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
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1alpha1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/klog/v2"
)

// maxAttempts is how often a call tries to write while others change the request. A call that has
// tried so often is refused like any other, and its caller tries again.
const maxAttempts = 5

// fieldManager is the field manager of the writes.
var fieldManager = evictionrequesttools.FieldManager(coordinationv1alpha1.EvictionRequesterEvictions)

// await admits the eviction if all interceptors are done, and otherwise makes sure that the eviction
// is requested and returns the status 429.
func (p *Plugin) await(ctx context.Context, e *eviction) error {
	request, live := p.cachedRequest(e), false
	e.repeated = len(e.dryRun) == 0 && p.calls.isRepeated(e)
	for range maxAttempts {
		progress := progressOf(request, e.pod)
		if live && progress == evicted {
			contradicted, err := p.isContradicted(ctx, e)
			switch {
			case err != nil:
				return err
			case !contradicted:
				return p.decide(ctx, e)
			}
			progress = over(request)
		}
		var err error
		switch {
		case !live && (progress > waiting || progress == waiting && p.actsAs(ctx, e, e.nextOf(request))):
			// The cache may have a request that was replaced, whose successor is not done. And it
			// may not know yet that the caller is active.
		case progress == done:
			if err = p.keep(ctx, e, request); err == nil {
				return p.admit(ctx, e)
			}
		case live && progress == waiting && p.actsAs(ctx, e, request.Status.ActiveInterceptors):
			return p.admit(ctx, e)
		case e.hasVersion():
			// The pod may change before its interceptors are done, and would be evicted all the same.
			return e.waitsForOthers(request)
		case isFirst(request, progress) && !p.isMeant(ctx, e):
			return e.requestsNothing(request)
		default:
			var stored *coordinationv1alpha1.EvictionRequest
			if stored, err = p.write(ctx, e, request, progress); err == nil {
				return e.waits(stored)
			}
			if isNotServed(err) {
				return nil // Nothing could ever tell an interceptor that it is active.
			}
			if !isStale(err) {
				return e.refused(err)
			}
		}
		if request, err = p.liveRequest(ctx, e); err != nil {
			return e.refused(err)
		}
		live = true
	}
	return e.refused(fmt.Errorf("the request was changed %d times at the same time", maxAttempts))
}

// isContradicted reports whether the pod runs although the request, which was read before it, says that it is gone, as
// after the restoration of a backup of etcd: its interceptors have not acted. The eviction is otherwise one of what has
// the name of the pod now.
func (p *Plugin) isContradicted(ctx context.Context, e *eviction) (bool, error) {
	uid := e.pod.UID
	if err := p.readPod(ctx, e); err != nil {
		return false, err
	}
	return evictionrequesttools.StillRuns(e.pod, uid), nil
}

// admit admits the eviction of a pod whose interceptors are done, unless another pod has its name by
// now: the eviction would end that one.
func (p *Plugin) admit(ctx context.Context, e *eviction) error {
	if e.live {
		return nil
	}
	uid := e.pod.UID
	if err := p.readPod(ctx, e); err != nil {
		return err
	}
	if e.pod != nil && e.pod.UID != uid {
		return p.decide(ctx, e)
	}
	return nil
}

// keep renews a request whose interceptors are done. A budget may refuse the eviction for longer than
// a call counts: if the request were withdrawn, the next call would begin anew, and the interceptors
// would act again. It returns an error only if the request is not what it was: the eviction does not
// depend on the write.
func (p *Plugin) keep(ctx context.Context, e *eviction, request *coordinationv1alpha1.EvictionRequest) error {
	if evictionrequesttools.IsFinished(request.Status.Conditions) || !evictionrequesttools.IsRequestedByCalls(request) {
		return nil
	}
	err := p.renew(ctx, e, request)
	if err != nil && !isStale(err) {
		klog.FromContext(ctx).Error(err, "Failed to renew the request for an eviction whose interceptors are done", "pod", klog.KObj(e.pod))
		return nil
	}
	return err
}

// nextOf returns the interceptors that are active, or may be by now if the request is a little old.
func (e *eviction) nextOf(request *coordinationv1alpha1.EvictionRequest) []string {
	status := &request.Status
	if len(status.TargetInterceptors) == 0 {
		return e.interceptors[:1]
	}
	names := slices.Clone(status.ActiveInterceptors)
	if next := len(status.ProcessedInterceptors) + len(names); next < len(status.TargetInterceptors) {
		names = append(names, status.TargetInterceptors[next].Name)
	}
	return names
}

// write makes sure that the eviction is requested, and returns the request that says so, or nil if a
// dry run does not request it.
func (p *Plugin) write(ctx context.Context, e *eviction, request *coordinationv1alpha1.EvictionRequest, progress progress) (*coordinationv1alpha1.EvictionRequest, error) {
	switch progress {
	case replaceable:
		if len(e.dryRun) > 0 {
			return nil, nil // A dry run does not replace it.
		}
		return p.create(ctx, e)
	case missing:
		created, err := p.create(ctx, e)
		if len(e.dryRun) > 0 {
			return nil, err
		}
		return created, err
	case canceled:
		return nil, p.replace(ctx, e, request)
	case deleting:
		return nil, fmt.Errorf("the request for the pod is being deleted, and kept by its finalizers %q: the next one can follow when it is canceled or gone", request.Finalizers)
	}
	return request, p.renew(ctx, e, request)
}

// isStale reports whether a write failed because the request is not what it was when it was read.
func isStale(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || isRequestNotFound(err)
}

// isRequestNotFound reports whether the request does not exist.
func isRequestNotFound(err error) bool { return apierrors.IsNotFound(err) && !isNotServed(err) }

// isNotServed reports whether kube-apiserver, with which the plugin talks directly, does not serve
// EvictionRequests: its --runtime-config disables them.
func isNotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func (p *Plugin) requestsOf(e *eviction) coordinationclient.EvictionRequestInterface {
	return p.client.CoordinationV1alpha1().EvictionRequests(e.GetNamespace())
}

// cachedRequest returns the request for the pod, or nil if the cache has none.
func (p *Plugin) cachedRequest(e *eviction) *coordinationv1alpha1.EvictionRequest {
	request, err := p.requests.EvictionRequests(e.GetNamespace()).Get(string(e.pod.UID))
	if err != nil {
		return nil // A lister that reads from a cache returns no other error.
	}
	return request
}

// liveRequest returns the request for the pod, or nil if there is none.
func (p *Plugin) liveRequest(ctx context.Context, e *eviction) (*coordinationv1alpha1.EvictionRequest, error) {
	request, err := p.requestsOf(e).Get(ctx, string(e.pod.UID), metav1.GetOptions{})
	if isRequestNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return request, nil
}

// create creates the request. The storage adds the labels of the pod.
func (p *Plugin) create(ctx context.Context, e *eviction) (*coordinationv1alpha1.EvictionRequest, error) {
	annotations := map[string]string{coordinationv1alpha1.EvictionCallTimeAnnotation: p.callTime()}
	if cordon := p.cordonOf(e); cordon != "" {
		annotations[coordinationv1alpha1.EvictionCallCordonAnnotation] = cordon
		if e.repeated {
			annotations[coordinationv1alpha1.EvictionCallsRepeatAnnotation] = "true"
		}
	}
	if seconds, _ := e.gracePeriodOf(nil); seconds != nil {
		annotations[coordinationv1alpha1.EvictionCallGracePeriodAnnotation] = *seconds
	}
	return p.requestsOf(e).Create(ctx, &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name:        string(e.pod.UID),
			Namespace:   e.GetNamespace(),
			Annotations: annotations,
		},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target: coordinationv1alpha1.EvictionTarget{
				Pod: &coordinationv1alpha1.LocalPodReference{Name: e.pod.Name, UID: string(e.pod.UID)},
			},
			Requesters: []coordinationv1alpha1.Requester{{Name: coordinationv1alpha1.EvictionRequesterEvictions}},
		},
	}, metav1.CreateOptions{FieldManager: fieldManager, DryRun: e.dryRun})
}

// renew writes that pods/eviction is called for the pod, unless the request says so already. The
// first call joins the request of others.
func (p *Plugin) renew(ctx context.Context, e *eviction, request *coordinationv1alpha1.EvictionRequest) error {
	annotations := map[string]any{coordinationv1alpha1.EvictionCallTimeAnnotation: p.callTime()}
	cordon := p.cordonOf(e)
	_, said := request.Annotations[coordinationv1alpha1.EvictionCallCordonAnnotation]
	switch {
	case cordon != "" && !hasCordon(request):
		annotations[coordinationv1alpha1.EvictionCallCordonAnnotation] = cordon
	case cordon == "" && said && !evictionrequesttools.IsRequestedByCalls(request):
		// It is not from a caller, and the controller would withdraw them because of it.
		annotations[coordinationv1alpha1.EvictionCallCordonAnnotation] = nil
	}
	renewed := p.calls.isRenewed(request, p.clock.Now())
	switch repeats := e.repeated && cordon != ""; {
	case repeats && !evictionrequesttools.AreEvictionCallsRepeated(request):
		annotations[coordinationv1alpha1.EvictionCallsRepeatAnnotation] = "true"
	case !repeats && !renewed && request.Annotations[coordinationv1alpha1.EvictionCallsRepeatAnnotation] != "":
		// The others have not called for a minute, and this one calls less often.
		annotations[coordinationv1alpha1.EvictionCallsRepeatAnnotation] = nil
	}
	if seconds, change := e.gracePeriodOf(request); change {
		annotations[coordinationv1alpha1.EvictionCallGracePeriodAnnotation] = seconds
	}
	if len(annotations) == 1 && renewed {
		return nil
	}
	spec := map[string]any{"requesters": []coordinationv1alpha1.Requester{{Name: coordinationv1alpha1.EvictionRequesterEvictions}}}
	if seconds := request.Spec.HeartbeatDeadlineSeconds; seconds != nil && *seconds > coordinationv1alpha1.DefaultHeartbeatDeadlineSeconds {
		spec["heartbeatDeadlineSeconds"] = coordinationv1alpha1.DefaultHeartbeatDeadlineSeconds // The smallest of all requesters counts.
	}
	// The version prevents two writes by calls at the same time.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":             request.UID,
			"resourceVersion": request.ResourceVersion,
			"annotations":     annotations,
		},
		"spec": spec,
	})
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	_, err = p.requestsOf(e).Patch(ctx, request.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: e.dryRun})
	return err
}

// replace deletes a request that is over, whose name the next one needs. Otherwise the controller would
// have to delete it first, and evictors that call once in ten minutes would wait for as long. It
// returns a conflict, so that the next attempt creates the new one.
func (p *Plugin) replace(ctx context.Context, e *eviction, request *coordinationv1alpha1.EvictionRequest) error {
	if len(e.dryRun) > 0 {
		return nil
	}
	err := p.requestsOf(e).Delete(ctx, request.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &request.UID, ResourceVersion: &request.ResourceVersion},
	})
	if err != nil {
		return err
	}
	return apierrors.NewConflict(coordinationv1alpha1.Resource("evictionrequests"), request.Name, fmt.Errorf("the request, which was over, was deleted"))
}

// cordonOf says that the node of the pod is unschedulable, or returns nothing. If the cache does not
// know that yet, the next call says it.
func (p *Plugin) cordonOf(e *eviction) string {
	node, err := p.nodes.Get(e.pod.Spec.NodeName)
	if err != nil {
		return "" // A lister that reads from a cache returns no other error than that there is none.
	}
	return evictionrequesttools.EvictionCallCordon(node)
}

func (p *Plugin) callTime() string { return p.clock.Now().UTC().Format(time.RFC3339) }
