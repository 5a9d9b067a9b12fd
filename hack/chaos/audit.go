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

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// attempts is what the audit logs tell of one pod.
type attempts struct {
	// accepted are the times at which evictions came in that were accepted.
	accepted []time.Time
	// unanswered is how many came in of which no answer is recorded: their API server
	// was killed. They may have been accepted too.
	unanswered int
}

// readAttempts reads all attempts to evict a pod, by the UID of the pod.
func readAttempts(files []string) (map[types.UID]*attempts, error) {
	all := map[types.UID]*attempts{}
	for _, file := range files {
		events, err := readEvents(file)
		if err != nil {
			return nil, err
		}
		answered := map[types.UID]bool{}
		for _, event := range events {
			if event.Stage == auditv1.StageResponseComplete {
				answered[event.AuditID] = true
			}
		}
		for _, event := range events {
			if err := addAttempt(all, event, answered[event.AuditID]); err != nil {
				return nil, fmt.Errorf("audit log %s: %w", file, err)
			}
		}
	}
	return all, nil
}

// addAttempt counts one line of an audit log. There are two lines for an attempt that
// was answered: of these, only the one with the answer counts.
func addAttempt(all map[types.UID]*attempts, event *auditv1.Event, answered bool) error {
	if event.Stage != auditv1.StageResponseComplete {
		if !answered {
			// The line was written before the body was read: only the name is known.
			pod := types.UID(event.ObjectRef.Name)
			attemptsOf(all, pod).unanswered++
		}
		return nil
	}
	if event.RequestObject == nil {
		return nil // Turned away before the body was read, by an API server that was starting.
	}
	var eviction policyv1.Eviction
	if err := json.Unmarshal(event.RequestObject.Raw, &eviction); err != nil {
		return fmt.Errorf("reading the eviction of pod %s: %w", event.ObjectRef.Name, err)
	}
	if eviction.DeleteOptions == nil || eviction.DeleteOptions.Preconditions == nil || eviction.DeleteOptions.Preconditions.UID == nil {
		return fmt.Errorf("the eviction of pod %s at %v has no UID as precondition", event.ObjectRef.Name, event.RequestReceivedTimestamp)
	}
	if accepted(event) {
		a := attemptsOf(all, *eviction.DeleteOptions.Preconditions.UID)
		a.accepted = append(a.accepted, event.RequestReceivedTimestamp.Time)
	}
	return nil
}

// accepted reads the body: the subresource reports some failures with a 201.
func accepted(event *auditv1.Event) bool {
	if event.ResponseStatus == nil || event.ResponseStatus.Code != 201 || event.ResponseObject == nil {
		return false
	}
	var status metav1.Status
	return json.Unmarshal(event.ResponseObject.Raw, &status) == nil && status.Status == metav1.StatusSuccess
}

func attemptsOf(all map[types.UID]*attempts, key types.UID) *attempts {
	if all[key] == nil {
		all[key] = &attempts{}
	}
	return all[key]
}

// readEvents reads an audit log. Only its last line may be half a line.
func readEvents(file string) ([]*auditv1.Event, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // Killed before the first eviction.
	}
	if err != nil {
		return nil, err
	}
	var events []*auditv1.Event
	lines := bufio.NewReader(bytes.NewReader(data))
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return events, nil // The rest is no whole line.
		}
		event := &auditv1.Event{}
		if err := json.Unmarshal(line, event); err != nil {
			return nil, fmt.Errorf("reading audit log %s: %w", file, err)
		}
		events = append(events, event)
	}
}
