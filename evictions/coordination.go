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
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// CoordinationClockSkew is how far a time that an interceptor reports to coordination.k8s.io may differ from the clock of
// the API server.
const CoordinationClockSkew = 10 * time.Second

// CoordinationRules are those of coordination.k8s.io (KEP-4563, Interceptor).
var CoordinationRules = Rules{MaxClockSkew: CoordinationClockSkew, MaxMessageLength: 32768, MaxMessageBytes: 65536, CanForbid: true}

// coordinationHeartbeatDeadline is the default of spec.heartbeatDeadlineSeconds, should a request lack it.
const coordinationHeartbeatDeadline = 20 * time.Minute

// forbid is the value of status.evictionRequestCancellationPolicy that cannot be revoked.
const forbid = "Forbid"

var (
	coordinationResource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1alpha1", Resource: "evictionrequests"}
	coordinationKind     = coordinationResource.GroupVersion().WithKind("EvictionRequest")
)

// Coordination returns the API coordination.k8s.io/v1alpha1 (KEP-4563), for interceptors of pods
// (spec.evictionInterceptors). Upstream's client does not have its types, so the client is a dynamic one. The responder
// needs permission to get, list and watch evictionrequests, to patch evictionrequests/status, and to intercept
// evictioninterceptors with its name.
func Coordination(client dynamic.Interface) API { return coordinationAPI{client} }

type coordinationAPI struct{ client dynamic.Interface }

// evictionRequest is what participants read of an EvictionRequest of coordination.k8s.io.
type evictionRequest struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Target struct {
			Pod *struct {
				Name string    `json:"name"`
				UID  types.UID `json:"uid"`
			} `json:"pod,omitempty"`
		} `json:"target"`
		Requesters []struct {
			Name string `json:"name"`
		} `json:"requesters,omitempty"`
		HeartbeatDeadlineSeconds *int32 `json:"heartbeatDeadlineSeconds,omitempty"`
	} `json:"spec"`

	Status struct {
		ActiveInterceptors                []string            `json:"activeInterceptors,omitempty"`
		ActivationTime                    *metav1.Time        `json:"activationTime,omitempty"`
		Interceptors                      []interceptorStatus `json:"interceptors,omitempty"`
		EvictionRequestCancellationPolicy string              `json:"evictionRequestCancellationPolicy,omitempty"`
		Conditions                        []metav1.Condition  `json:"conditions,omitempty"`
	} `json:"status"`
}

type interceptorStatus struct {
	Name               string       `json:"name"`
	StartTime          *metav1.Time `json:"startTime,omitempty"`
	HeartbeatTime      *metav1.Time `json:"heartbeatTime,omitempty"`
	ExpectedFinishTime *metav1.Time `json:"expectedFinishTime,omitempty"`
	CompletionTime     *metav1.Time `json:"completionTime,omitempty"`
	Message            string       `json:"message,omitempty"`
}

func (a coordinationAPI) Rules() Rules { return CoordinationRules }

func (a coordinationAPI) Informer(_, namespace, labelSelector string) cache.SharedIndexInformer {
	return dynamicinformer.NewFilteredDynamicInformer(a.client, coordinationResource, namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = labelSelector }).Informer()
}

func (a coordinationAPI) Get(ctx context.Context, namespace, name, responder string) (*Request, error) {
	found, err := a.client.Resource(coordinationResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return a.Read(found, responder), nil
}

// Write applies the entry of the responder and no other entry. An entry is applied as a whole. Force is set because the
// controller, which has created it, is its first owner.
func (a coordinationAPI) Write(ctx context.Context, request *Request, responder string, report Report, forbids bool) (*Request, error) {
	status := map[string]any{"interceptors": []interceptorStatus{{
		Name: responder, StartTime: Stored(report.Start), HeartbeatTime: Stored(report.Heartbeat),
		ExpectedFinishTime: Stored(report.ExpectedCompletion), CompletionTime: Stored(report.Completion), Message: report.Message,
	}}}
	if forbids {
		status["evictionRequestCancellationPolicy"] = forbid
	}
	// The UID ensures that the patch does not apply to another request of the same name.
	patch, err := json.Marshal(map[string]any{
		"apiVersion": coordinationKind.GroupVersion().String(), "kind": coordinationKind.Kind,
		"metadata": map[string]any{"name": request.Name, "namespace": request.Namespace, "uid": request.UID},
		"status":   status,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the report: %w", err)
	}
	force := true
	written, err := a.client.Resource(coordinationResource).Namespace(request.Namespace).Patch(ctx, request.Name, types.ApplyPatchType, patch,
		metav1.PatchOptions{FieldManager: FieldManager(responder), Force: &force}, "status")
	if err != nil {
		return nil, err
	}
	return a.Read(written, responder), nil
}

func (a coordinationAPI) Read(obj any, responder string) *Request {
	read, err := decode(obj.(*unstructured.Unstructured))
	request := &Request{Namespace: read.Namespace, Name: read.Name, UID: read.UID, Object: obj}
	if err != nil {
		request.Ended = fmt.Errorf("%w: reading the request: %w", ErrTurnLost, err)
		return request
	}
	if pod := read.Spec.Target.Pod; pod != nil {
		request.Pod = Pod{Name: pod.Name, UID: pod.UID}
	}
	switch {
	case meta.IsStatusConditionTrue(read.Status.Conditions, "Evicted"):
		request.Ended = ErrEvicted
	case meta.IsStatusConditionTrue(read.Status.Conditions, "Canceled"):
		request.Ended = ErrCanceled
	case !slices.Contains(read.Status.ActiveInterceptors, responder):
		request.Ended = ErrTurnLost
	}
	request.CancellationForbidden = read.Status.EvictionRequestCancellationPolicy == forbid
	request.Unwanted = !request.CancellationForbidden && (len(read.Spec.Requesters) == 0 || read.DeletionTimestamp != nil)
	request.ActiveSince = TimeOf(read.Status.ActivationTime)
	request.HeartbeatDeadline = coordinationHeartbeatDeadline
	if seconds := read.Spec.HeartbeatDeadlineSeconds; seconds != nil {
		request.HeartbeatDeadline = time.Duration(*seconds) * time.Second
	}
	for _, entry := range read.Status.Interceptors {
		if entry.Name == responder {
			request.Report = Report{
				Start: TimeOf(entry.StartTime), Heartbeat: TimeOf(entry.HeartbeatTime),
				ExpectedCompletion: TimeOf(entry.ExpectedFinishTime), Completion: TimeOf(entry.CompletionTime), Message: entry.Message,
			}
		}
	}
	return request
}

// decode returns what participants read of an EvictionRequest, with its metadata even if the rest cannot be read.
func decode(object *unstructured.Unstructured) (*evictionRequest, error) {
	read := &evictionRequest{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, read)
	read.Namespace, read.Name, read.UID = object.GetNamespace(), object.GetName(), object.GetUID()
	return read, err
}
