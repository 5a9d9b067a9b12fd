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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/printers"
)

// noValue stands where there is nothing to print, as elsewhere in kubectl.
const noValue = "<none>"

func addEvictionRequestHandlers(h printers.PrintHandler) {
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Pod", Type: "string", Description: "The pod that should leave."},
		{Name: "Requesters", Type: "string", Description: "Who wants it to leave."},
		{Name: "Active", Type: "string", Description: "The interceptor whose turn it is."},
		{Name: "Done", Type: "string", Description: "How many of the interceptors had their turn."},
		{Name: "State", Type: "string", Description: "Pending, Intercepting, Evicting, Blocked, Evicted or Canceled."},
		{Name: "ETA", Type: "string", Description: "When the active interceptor expects to be done."},
		{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		{Name: "Message", Type: "string", Priority: 1, Description: "What the active interceptor says, or how the request ended."},
	}
	// TableHandler logs its errors itself.
	_ = h.TableHandler(columns, printEvictionRequest)
	_ = h.TableHandler(columns, printEvictionRequestList)
}

func printEvictionRequestList(list *coordination.EvictionRequestList, options printers.GenerateOptions) ([]metav1.TableRow, error) {
	rows := make([]metav1.TableRow, 0, len(list.Items))
	for i := range list.Items {
		row, err := printEvictionRequest(&list.Items[i], options)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row...)
	}
	return rows, nil
}

func printEvictionRequest(request *coordination.EvictionRequest, options printers.GenerateOptions) ([]metav1.TableRow, error) {
	pod := noValue
	if request.Spec.Target.Pod != nil {
		pod = request.Spec.Target.Pod.Name
	}
	var requesters []string
	for _, requester := range request.Spec.Requesters {
		requesters = append(requesters, requester.Name)
	}
	row := metav1.TableRow{
		Object: runtime.RawExtension{Object: request},
		Cells: []any{
			request.Name,
			pod,
			joinOrNone(requesters),
			joinOrNone(request.Status.ActiveInterceptors),
			fmt.Sprintf("%d/%d", len(request.Status.ProcessedInterceptors), len(request.Status.TargetInterceptors)),
			evictionRequestState(&request.Status),
			evictionRequestETA(&request.Status),
			translateTimestampSince(request.CreationTimestamp),
		},
	}
	if options.Wide {
		row.Cells = append(row.Cells, evictionRequestMessage(&request.Status))
	}
	return []metav1.TableRow{row}, nil
}

// evictionRequestState sums up the status in one word.
func evictionRequestState(status *coordination.EvictionRequestStatus) string {
	for _, condition := range []coordination.EvictionRequestConditionType{
		coordination.EvictionRequestConditionEvicted,
		coordination.EvictionRequestConditionCanceled,
		coordination.EvictionRequestConditionBlocked,
	} {
		if meta.IsStatusConditionTrue(status.Conditions, string(condition)) {
			return string(condition)
		}
	}
	switch {
	case len(status.ActiveInterceptors) == 0:
		return "Pending"
	case status.ActiveInterceptors[0] == coordinationv1alpha1.EvictionInterceptorImperative:
		return "Evicting"
	}
	return "Intercepting"
}

func evictionRequestETA(status *coordination.EvictionRequestStatus) string {
	if active := activeEvictionInterceptor(status); active != nil && active.ExpectedFinishTime != nil {
		return translateTimestampUntil(*active.ExpectedFinishTime)
	}
	return noValue
}

func evictionRequestMessage(status *coordination.EvictionRequestStatus) string {
	message := ""
	if active := activeEvictionInterceptor(status); active != nil {
		message = active.Message
	} else if condition := meta.FindStatusCondition(status.Conditions, evictionRequestState(status)); condition != nil {
		message = condition.Message
	}
	if message == "" {
		return noValue
	}
	return message
}

// activeEvictionInterceptor returns the report of the interceptor whose turn it is.
func activeEvictionInterceptor(status *coordination.EvictionRequestStatus) *coordination.InterceptorStatus {
	for i := range status.Interceptors {
		for _, active := range status.ActiveInterceptors {
			if status.Interceptors[i].Name == active {
				return &status.Interceptors[i]
			}
		}
	}
	return nil
}

func joinOrNone(names []string) string {
	if len(names) == 0 {
		return noValue
	}
	return strings.Join(names, ",")
}
