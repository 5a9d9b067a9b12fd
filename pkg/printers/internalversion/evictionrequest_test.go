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
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
	coordinationconversion "k8s.io/kubernetes/pkg/apis/coordination/v1alpha1"
	internalprinters "k8s.io/kubernetes/pkg/printers"
)

// updateEnv makes the tests rewrite the golden files if it is set to true.
const updateEnv = "UPDATE_GOLDEN"

const (
	migrate    = "migrate.example.com"
	imperative = coordinationv1alpha1.EvictionInterceptorImperative
)

// evictionRequests returns one request in every state, printed at now.
func evictionRequests(now time.Time) []coordination.EvictionRequest {
	at := func(offset time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(offset)} }
	is := func(conditionType, message string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Message: message}
	}
	requesters := []coordination.Requester{{Name: "drain.example.com"}}
	targets := []coordination.Interceptor{{Name: migrate}, {Name: imperative}}
	refused := coordination.InterceptorStatus{Name: imperative, Message: "Could not evict a pod.\nThe budget db forbids it."}
	migrating := coordination.InterceptorStatus{Name: migrate, ExpectedFinishTime: at(90 * time.Second), Message: "Migrating."}
	late := coordination.InterceptorStatus{Name: migrate, ExpectedFinishTime: at(-time.Second), Message: "Still migrating."}
	completed := coordination.InterceptorStatus{Name: migrate, ExpectedFinishTime: at(time.Minute), CompletionTime: at(0)}

	requests := []coordination.EvictionRequest{
		{Spec: coordination.EvictionRequestSpec{Requesters: requesters}},
		{
			Spec: coordination.EvictionRequestSpec{Requesters: append(requesters,
				coordination.Requester{Name: "a.example.com"}, coordination.Requester{Name: "b.example.com"})},
			Status: coordination.EvictionRequestStatus{TargetInterceptors: targets, ActiveInterceptors: []string{migrate},
				Interceptors: []coordination.InterceptorStatus{migrating, {Name: imperative}}},
		},
		{
			Spec: coordination.EvictionRequestSpec{Requesters: append(requesters,
				coordination.Requester{Name: "a.example.com"}, coordination.Requester{Name: "b.example.com"},
				coordination.Requester{Name: "c.example.com"}, coordination.Requester{Name: "d.example.com"})},
			Status: coordination.EvictionRequestStatus{TargetInterceptors: targets, ActiveInterceptors: []string{migrate},
				Interceptors: []coordination.InterceptorStatus{late, {Name: imperative}}},
		},
		{
			Spec: coordination.EvictionRequestSpec{Requesters: requesters},
			Status: coordination.EvictionRequestStatus{TargetInterceptors: targets, ActiveInterceptors: []string{migrate},
				Interceptors: []coordination.InterceptorStatus{completed, {Name: imperative}}},
		},
		{
			Spec: coordination.EvictionRequestSpec{Requesters: requesters},
			Status: coordination.EvictionRequestStatus{TargetInterceptors: targets, ActiveInterceptors: []string{imperative},
				ProcessedInterceptors: []string{migrate}, Interceptors: []coordination.InterceptorStatus{completed, {Name: imperative}}},
		},
		{
			Spec: coordination.EvictionRequestSpec{Requesters: requesters},
			Status: coordination.EvictionRequestStatus{TargetInterceptors: targets, ActiveInterceptors: []string{imperative},
				ProcessedInterceptors: []string{migrate}, Interceptors: []coordination.InterceptorStatus{completed, refused},
				Conditions: []metav1.Condition{is("Blocked", "The budget db forbids it.")}},
		},
		{
			Spec: coordination.EvictionRequestSpec{Requesters: requesters},
			Status: coordination.EvictionRequestStatus{TargetInterceptors: targets, ProcessedInterceptors: []string{migrate, imperative},
				Interceptors: []coordination.InterceptorStatus{completed, refused},
				Conditions:   []metav1.Condition{is("Evicted", "Target Pod was deleted.")}},
		},
		{
			Status: coordination.EvictionRequestStatus{TargetInterceptors: targets, ProcessedInterceptors: []string{migrate},
				Interceptors: []coordination.InterceptorStatus{migrating, {Name: imperative}},
				Conditions:   []metav1.Condition{is("Canceled", "The last requester was removed from spec.requesters.")}},
		},
		{Spec: coordination.EvictionRequestSpec{Requesters: requesters}},
	}
	for i := range requests {
		requests[i].Name = fmt.Sprintf("uid-%d", i+1)
		requests[i].CreationTimestamp = *at(-time.Duration(i) * time.Minute)
		requests[i].Spec.Target.Pod = &coordination.LocalPodReference{Name: fmt.Sprintf("db-%d", i+1), UID: requests[i].Name}
	}
	requests[len(requests)-1].Spec.Target.Pod = nil // Like a target type that an older server does not know.
	return requests
}

// TestPrintEvictionRequests compares the output of "kubectl get er" and "-o wide".
func TestPrintEvictionRequests(t *testing.T) {
	for file, wide := range map[string]bool{"evictionrequests.txt": false, "evictionrequests-wide.txt": true} {
		t.Run(file, func(t *testing.T) {
			// In the synctest bubble, the time is constant while the rows are printed.
			synctest.Test(t, func(t *testing.T) {
				list := &coordination.EvictionRequestList{Items: evictionRequests(time.Now())}
				generator := internalprinters.NewTableGenerator().With(addEvictionRequestHandlers)
				table, err := generator.GenerateTable(list, internalprinters.GenerateOptions{Wide: wide})
				if err != nil {
					t.Fatal(err)
				}
				var output bytes.Buffer
				if err := printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(table, &output); err != nil {
					t.Fatal(err)
				}
				compareWithGolden(t, file, trimLines(output.String()))
			})
		})
	}
}

// TestEvictionRequestState checks that the printer and the client library agree on the state, and
// that every state occurs.
func TestEvictionRequestState(t *testing.T) {
	seen := map[string]bool{}
	for _, internal := range evictionRequests(time.Now()) {
		request := &coordinationv1alpha1.EvictionRequest{}
		if err := coordinationconversion.Convert_coordination_EvictionRequest_To_v1alpha1_EvictionRequest(&internal, request, nil); err != nil {
			t.Fatal(err)
		}
		rows, err := printCoordinationEvictionRequest(&internal, internalprinters.GenerateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		printed := rows[0].Cells[5].(string)
		if want := string(evictionrequest.StateOf(request)); printed != want {
			t.Errorf("%s: printed as %s, want %s as in the library", internal.Name, printed, want)
		}
		seen[printed] = true
	}
	for _, state := range []string{"Pending", "Intercepting", "Evicting", "Blocked", "Evicted", "Canceled"} {
		if !seen[state] {
			t.Errorf("no request is %s", state)
		}
	}
}

// trimLines removes the padding of the last column.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func compareWithGolden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if os.Getenv(updateEnv) == "true" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (%s=true writes it)", err, updateEnv)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got, %s=true rewrites it):\n%s", path, updateEnv, diff)
	}
}
