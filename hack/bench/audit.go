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
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// User agents of our clients.
const (
	agentSetup       = "bench-setup"
	agentRequester   = "bench-requester"
	agentBare        = "bench-bare"
	agentInterceptor = "bench-interceptor"
)

// Who our controllers are to the API server.
const (
	controllerUsers = "system:serviceaccount:kube-system:"

	controllerUser            = controllerUsers + "evictionrequest-controller"
	maintenanceControllerUser = controllerUsers + "nodemaintenance-controller"
)

// auditLog reads the audit log of the API server while it grows. A request is there
// before its answer is, because the log is written in blocking mode.
type auditLog struct {
	file *os.File
	rest []byte // the beginning of a line that is not complete yet
}

func openAuditLog(path string) (*auditLog, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return &auditLog{file: file}, nil
}

func (l *auditLog) close() { l.file.Close() }

// next returns what was logged since the last call.
func (l *auditLog) next() ([]auditv1.Event, error) {
	data, err := io.ReadAll(l.file)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	data = append(l.rest, data...)
	end := bytes.LastIndexByte(data, '\n') + 1
	l.rest = bytes.Clone(data[end:])
	var events []auditv1.Event
	for line := range bytes.Lines(data[:end]) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		events = append(events, event)
	}
	return events, nil
}

// skip forgets what was logged until now.
func (l *auditLog) skip() error {
	_, err := l.next()
	return err
}

const (
	auditPollInterval = 200 * time.Millisecond

	// quietTime is for how long nobody who is measured may send a request before a
	// measurement of requests ends. Events are sent some time after what they tell of.
	quietTime = 2 * time.Second
)

// untilQuiet returns what was logged until those who are measured fell silent.
func (l *auditLog) untilQuiet(ctx context.Context, measured selector) ([]auditv1.Event, error) {
	var events []auditv1.Event
	last := time.Now()
	err := wait.PollUntilContextTimeout(ctx, auditPollInterval, stepTimeout, true, func(context.Context) (bool, error) {
		more, err := l.next()
		if err != nil {
			return false, err
		}
		for i := range more {
			if measured(&more[i]) {
				last = time.Now()
			}
		}
		events = append(events, more...)
		return time.Since(last) >= quietTime, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the end of the requests of those who are measured: %w", err)
	}
	return events, nil
}

// during returns what is logged in that time, starting now.
func (l *auditLog) during(ctx context.Context, duration time.Duration) ([]auditv1.Event, error) {
	if err := l.skip(); err != nil {
		return nil, err
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return l.next()
	}
}

// selector says whether a request is one that is measured.
type selector func(*auditv1.Event) bool

func byController(event *auditv1.Event) bool { return event.User.Username == controllerUser }

func byMaintenanceController(event *auditv1.Event) bool {
	return event.User.Username == maintenanceControllerUser
}

// byRequesterAndControllers is whoever takes part in an eviction: without a maintenance
// its controller is silent.
func byRequesterAndControllers(event *auditv1.Event) bool {
	return byController(event) || byMaintenanceController(event) || hasAgent(event, agentRequester)
}

// byAnyController is a controller of the controller manager.
func byAnyController(event *auditv1.Event) bool {
	return strings.HasPrefix(event.User.Username, controllerUsers)
}

// ofEvictionRequests is what belongs to evictions alone: all that the controller of requests
// sends, and what others send to requests or as an eviction call.
func ofEvictionRequests(event *auditv1.Event) bool {
	return byController(event) || isEviction(event) || ofResource("evictionrequests")(event)
}

// ofResource selects the requests to a resource and its subresources, whoever sends them.
func ofResource(resource string) selector {
	return func(event *auditv1.Event) bool { return event.ObjectRef != nil && event.ObjectRef.Resource == resource }
}

// byAnybody is everybody but those who prepare a measurement and wait for its end.
func byAnybody(event *auditv1.Event) bool { return !hasAgent(event, agentSetup) }

func byBare(event *auditv1.Event) bool { return hasAgent(event, agentBare) }

func byKubectl(event *auditv1.Event) bool { return hasAgent(event, "kubectl/") }

func hasAgent(event *auditv1.Event, agent string) bool {
	return strings.HasPrefix(event.UserAgent, agent)
}

// tally is what was counted in a number of requests.
type tally struct {
	// Requests are those of the measured, by what they do: "create pods/eviction".
	Requests map[string]int `json:"requests"`
	// All are the requests of everybody but those that prepare the measurement and wait
	// for its end: also those of other controllers, of the simulated nodes and of the
	// API server itself.
	All int `json:"allRequests"`
	// Clients are these by who sends them: "disruption-controller: update
	// poddisruptionbudgets/status".
	Clients map[string]int `json:"requestsByClient"`
	// EvictionCodes are the answers to the eviction calls of the measured.
	EvictionCodes map[string]int `json:"evictionCodes"`
	// evictionSeconds is how long these took in the API server.
	evictionSeconds []float64
}

// countRequests counts what an audit log has.
func countRequests(events []auditv1.Event, measured selector) tally {
	t := tally{Requests: map[string]int{}, Clients: map[string]int{}, EvictionCodes: map[string]int{}}
	for i := range events {
		event := &events[i]
		if !byAnybody(event) || !isAnswered(event) {
			continue
		}
		t.All++
		t.Clients[client(event)+": "+describe(event)]++
		if !measured(event) {
			continue
		}
		t.Requests[describe(event)]++
		if isEviction(event) {
			t.EvictionCodes[code(event)]++
			t.evictionSeconds = append(t.evictionSeconds, event.StageTimestamp.Sub(event.RequestReceivedTimestamp.Time).Seconds())
		}
	}
	return t
}

// isAnswered leaves out the other stages of a request, and watches.
func isAnswered(event *auditv1.Event) bool {
	return (event.Stage == auditv1.StageResponseComplete || event.Stage == auditv1.StagePanic) && event.Verb != "watch"
}

func isEviction(event *auditv1.Event) bool {
	return event.ObjectRef != nil && event.ObjectRef.Resource == "pods" && event.ObjectRef.Subresource == "eviction"
}

// describe says what a request does, as RBAC would.
func describe(event *auditv1.Event) string {
	if event.ObjectRef == nil {
		return event.Verb + " " + event.RequestURI
	}
	what := event.Verb + " " + event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		what += "/" + event.ObjectRef.Subresource
	}
	return what
}

// client names who sent a request: a controller by its user, others by their program.
func client(event *auditv1.Event) string {
	if name, ok := strings.CutPrefix(event.User.Username, controllerUsers); ok {
		return name
	}
	name, _, _ := strings.Cut(event.UserAgent, "/")
	return name
}

func code(event *auditv1.Event) string {
	if event.ResponseStatus == nil {
		return "none"
	}
	return strconv.Itoa(int(event.ResponseStatus.Code))
}

// isWrite is true for a request that changes something.
func isWrite(what string) bool {
	verb, _, _ := strings.Cut(what, " ")
	return verb != "get" && verb != "list" && verb != "watch"
}

func (t *tally) measuredRequests() int {
	sum := 0
	for _, count := range t.Requests {
		sum += count
	}
	return sum
}

func (t *tally) writes() int {
	sum := 0
	for what, count := range t.Requests {
		if isWrite(what) {
			sum += count
		}
	}
	return sum
}
