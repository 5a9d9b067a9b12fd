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

package auditlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Evictions are the calls that evict one pod.
type Evictions struct {
	// Accepted are the times at which the accepted calls came in.
	Accepted []time.Time
	// Unanswered is the number of calls without an answer that says what they did: their API server was
	// killed, or their caller, or they took too long. They may have been accepted too.
	Unanswered int
}

// ReadEvictions returns the evictions in the logs of several API servers, by the name of the pod.
// The logs must hold evictions only. A log that does not exist is empty: an API server creates it
// with the first event.
func ReadEvictions(files []string) (map[string]Evictions, error) {
	all := map[string]Evictions{}
	for _, file := range files {
		events, err := ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		answered := map[types.UID]bool{}
		for i := range events {
			if events[i].Stage == auditv1.StageResponseComplete {
				answered[events[i].AuditID] = true
			}
		}
		for i := range events {
			event := &events[i]
			evictions := all[event.ObjectRef.Name]
			if event.Stage == auditv1.StageResponseComplete {
				err = evictions.addAnswered(event)
			} else if !answered[event.AuditID] {
				evictions.Unanswered++
			}
			if err != nil {
				return nil, fmt.Errorf("audit log %s: %w", file, err)
			}
			all[event.ObjectRef.Name] = evictions
		}
	}
	return all, nil
}

// addAnswered adds a call that was answered.
func (e *Evictions) addAnswered(event *auditv1.Event) error {
	if event.RequestObject == nil {
		return nil // An API server that was starting refused it before it read the body.
	}
	var eviction policyv1.Eviction
	if err := json.Unmarshal(event.RequestObject.Raw, &eviction); err != nil {
		return fmt.Errorf("reading the eviction of pod %s: %w", event.ObjectRef.Name, err)
	}
	if options := eviction.DeleteOptions; options == nil || options.Preconditions == nil || options.Preconditions.UID == nil {
		return fmt.Errorf("the eviction of pod %s at %v has no UID as precondition", event.ObjectRef.Name, event.RequestReceivedTimestamp)
	}
	switch {
	case isAccepted(event):
		e.Accepted = append(e.Accepted, event.RequestReceivedTimestamp.Time)
	case event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusGatewayTimeout:
		e.Unanswered++
	}
	return nil
}

// isAccepted reads the body: the subresource reports some failures with a 201.
func isAccepted(event *auditv1.Event) bool {
	if event.ResponseObject == nil {
		return false
	}
	var status metav1.Status
	return json.Unmarshal(event.ResponseObject.Raw, &status) == nil && status.Status == metav1.StatusSuccess
}

// CheckOnce returns an error unless a pod that terminated since this time, to the second, was
// evicted exactly once. A call without an answer may have been the one; then no call must have been
// accepted while the pod terminated.
func (e Evictions) CheckOnce(terminating time.Time) error {
	switch n := len(e.Accepted); {
	case n > 1:
		return fmt.Errorf("the eviction was accepted %d times: %v", n, e.Accepted)
	case n == 0 && e.Unanswered == 0:
		return errors.New("the pod is gone, but was never evicted")
	}
	for _, at := range e.Accepted {
		if at.After(terminating.Add(time.Second)) {
			return fmt.Errorf("the pod terminated since %v, and was evicted again at %v", terminating, at)
		}
	}
	return nil
}
