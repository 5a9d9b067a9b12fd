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

package internalversion

import (
	"fmt"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
	coordinationconversion "k8s.io/kubernetes/pkg/apis/coordination/v1alpha1"
	"k8s.io/kubernetes/pkg/printers"
)

const (
	// noValue is printed for an empty cell, as elsewhere in kubectl.
	noValue = "<none>"

	// overdueETA is printed for an ETA in the past. kubectl describe shows how long the interceptor
	// is overdue.
	overdueETA = "overdue"

	// maxRequestersShown limits the width of the column: a request may have 100 requesters.
	maxRequestersShown = 3
)

func addEvictionRequestHandlers(h printers.PrintHandler) {
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Pod", Type: "string", Description: "The pod to evict."},
		{Name: "Requesters", Type: "string", Description: "The requesters of the eviction."},
		{Name: "Active", Type: "string", Description: "The active interceptor."},
		{Name: "Done", Type: "string", Description: "The number of processed interceptors, and of all interceptors."},
		{Name: "State", Type: "string", Description: "Pending, Intercepting, Evicting, Blocked, Evicted or Canceled."},
		{Name: "ETA", Type: "string", Description: "The time until the active interceptor expects to finish."},
		{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		{Name: "Message", Type: "string", Priority: 1, Description: "The message of the active interceptor, or of the condition that ended the request."},
	}
	// TableHandler logs its errors itself.
	_ = h.TableHandler(columns, printCoordinationEvictionRequest)
	_ = h.TableHandler(columns, printCoordinationEvictionRequestList)
}

func printCoordinationEvictionRequestList(list *coordination.EvictionRequestList, options printers.GenerateOptions) ([]metav1.TableRow, error) {
	return printEach(list.Items, printCoordinationEvictionRequest, options)
}

func printCoordinationEvictionRequest(internal *coordination.EvictionRequest, options printers.GenerateOptions) ([]metav1.TableRow, error) {
	// Use the same function as kubectl and other clients. It takes the versioned type. The
	// conversion shares the memory of the lists.
	request := &coordinationv1alpha1.EvictionRequest{}
	if err := coordinationconversion.Convert_coordination_EvictionRequest_To_v1alpha1_EvictionRequest(internal, request, nil); err != nil {
		return nil, err
	}
	pod := noValue
	if request.Spec.Target.Pod != nil {
		pod = request.Spec.Target.Pod.Name
	}
	row := metav1.TableRow{
		Object: runtime.RawExtension{Object: internal},
		Cells: []any{
			request.Name,
			pod,
			evictionRequesters(request.Spec.Requesters),
			activeEvictionInterceptors(request.Status.ActiveInterceptors),
			fmt.Sprintf("%d/%d", len(request.Status.ProcessedInterceptors), len(request.Status.TargetInterceptors)),
			string(evictionrequest.StateOf(request)),
			evictionRequestETA(request),
			translateTimestampSince(request.CreationTimestamp),
		},
	}
	if options.Wide {
		row.Cells = append(row.Cells, evictionRequestMessage(request))
	}
	row.Cells = plainCells(row.Cells)
	return []metav1.TableRow{row}, nil
}

func evictionRequesters(requesters []coordinationv1alpha1.Requester) string {
	if len(requesters) == 0 {
		return noValue
	}
	var names []string
	for _, requester := range requesters[:min(len(requesters), maxRequestersShown)] {
		names = append(names, requester.Name)
	}
	shown := strings.Join(names, ",")
	if more := len(requesters) - len(names); more > 0 {
		return fmt.Sprintf("%s + %d more...", shown, more)
	}
	return shown
}

func activeEvictionInterceptors(names []string) string {
	if len(names) == 0 {
		return noValue
	}
	return strings.Join(names, ",")
}

func evictionRequestETA(request *coordinationv1alpha1.EvictionRequest) string {
	active := evictionrequest.ActiveInterceptor(request)
	switch {
	case active == nil || active.ExpectedFinishTime == nil || active.CompletionTime != nil:
		return noValue
	case time.Now().After(active.ExpectedFinishTime.Time):
		return overdueETA
	}
	return translateTimestampUntil(*active.ExpectedFinishTime)
}

// evictionRequestMessage returns the message of the active interceptor, or how the request ended.
func evictionRequestMessage(request *coordinationv1alpha1.EvictionRequest) string {
	message := ""
	if active := evictionrequest.ActiveInterceptor(request); active != nil {
		message = active.Message
	} else if condition := meta.FindStatusCondition(request.Status.Conditions, string(evictionrequest.StateOf(request))); condition != nil {
		message = condition.Message
	}
	if message == "" {
		return noValue
	}
	return message
}
