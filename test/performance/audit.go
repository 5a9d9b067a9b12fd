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
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/kubernetes/test/utils/auditlog"
	"k8s.io/kubernetes/test/utils/steps"
)

// User agents of our clients.
const (
	agentSetup       = "bench-setup"
	agentRequester   = "bench-requester"
	agentBare        = "bench-bare"
	agentInterceptor = "bench-interceptor"
)

// Names under which the API server knows our controllers.
const (
	controllerUsers = "system:serviceaccount:kube-system:"

	evictionController    = "evictionrequest-controller"
	maintenanceController = "nodemaintenance-controller"
)

// auditLog reads the audit log of the API server while it grows. The API server writes it in
// blocking mode: a request is in the log before its client has the answer.
type auditLog struct{ *auditlog.Reader }

// next returns the requests that were logged since the last call and that count.
func (l *auditLog) next() requests { return requests(steps.Must(l.Next())).of(counts) }

// quietTime is how long the measured clients must send no request before a measurement of
// requests ends. Controllers send events some time after what they report.
const quietTime = 2 * time.Second

// untilQuiet returns what was logged until the measured clients fell silent.
func (l *auditLog) untilQuiet(ctx context.Context, measured selector) (all requests) {
	last := time.Now()
	await(ctx, "the measured clients to send no more requests", pollInterval, stepTimeout, func(context.Context) bool {
		more := l.next()
		if more.count(measured) > 0 {
			last = time.Now()
		}
		all = append(all, more...)
		return time.Since(last) >= quietTime
	})
	return all
}

// counts reports whether an event counts as a request. The other stages of a request, watches and
// the requests that prepare a measurement or wait for its end do not.
func counts(event *auditv1.Event) bool {
	answered := event.Stage == auditv1.StageResponseComplete || event.Stage == auditv1.StagePanic
	return answered && event.Verb != "watch" && client(event) != agentSetup
}

// client names who sent a request: a controller by its user, others by their program.
func client(event *auditv1.Event) string {
	if name, ok := strings.CutPrefix(event.User.Username, controllerUsers); ok {
		return name
	}
	name, _, _ := strings.Cut(event.UserAgent, "/")
	return name
}

// selector reports whether a request is one to count.
type selector func(*auditv1.Event) bool

// by selects the requests of these clients.
func by(names ...string) selector {
	return func(event *auditv1.Event) bool { return slices.Contains(names, client(event)) }
}

// byAnyController selects the requests of the controllers of the controller manager.
func byAnyController(event *auditv1.Event) bool {
	return strings.HasPrefix(event.User.Username, controllerUsers)
}

// to selects the requests to a resource and its subresources.
func to(resource string) selector {
	return func(event *auditv1.Event) bool { return event.ObjectRef != nil && event.ObjectRef.Resource == resource }
}

func isEviction(event *auditv1.Event) bool { return describe(event) == "create pods/eviction" }

// forEvictions selects what evictions cost: all requests of the evictionrequest-controller, and
// those of other clients to EvictionRequests and to pods/eviction.
func forEvictions(event *auditv1.Event) bool {
	return client(event) == evictionController || isEviction(event) || to("evictionrequests")(event)
}

func isWrite(event *auditv1.Event) bool {
	return !slices.Contains([]string{"get", "list", "watch"}, event.Verb)
}

// code returns the status code of the answer, or 0.
func code(event *auditv1.Event) int32 {
	if event.ResponseStatus == nil {
		return 0
	}
	return event.ResponseStatus.Code
}

// answered selects the requests with this status code.
func answered(wanted int32) selector {
	return func(event *auditv1.Event) bool { return code(event) == wanted }
}

// otherError selects the requests that failed with neither 409 nor 429, or were not answered.
func otherError(event *auditv1.Event) bool {
	c := code(event)
	return c == 0 || c >= 400 && c != 409 && c != 429
}

// describe says what a request does, as RBAC does: "update evictionrequests/status".
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

// requests are what all clients sent, also the simulated nodes and the API server itself.
type requests []auditv1.Event

// of returns the requests that all selectors select.
func (r requests) of(selectors ...selector) requests {
	var selected requests
	for i := range r {
		if !slices.ContainsFunc(selectors, func(s selector) bool { return !s(&r[i]) }) {
			selected = append(selected, r[i])
		}
	}
	return selected
}

func (r requests) count(selectors ...selector) float64 { return float64(len(r.of(selectors...))) }

// seconds returns how long each request took in the API server.
func (r requests) seconds() []float64 {
	var took []float64
	for i := range r {
		took = append(took, r[i].StageTimestamp.Sub(r[i].RequestReceivedTimestamp.Time).Seconds())
	}
	return took
}

// untilEvicted returns how long each EvictionRequest took from its creation to the last status that
// the evictionrequest-controller wrote, which says that it is Evicted.
func (r requests) untilEvicted() []float64 {
	created := map[string]time.Time{}
	for _, event := range r.of(to("evictionrequests"), isWrite) {
		if _, known := created[event.ObjectRef.Name]; !known {
			created[event.ObjectRef.Name] = event.StageTimestamp.Time
		}
	}
	return r.untilStatus(created)
}

// untilRecorded returns, for each pod that an eviction has ended, how long afterwards the
// evictionrequest-controller wrote the last status of its request, which says that it is Evicted.
func (r requests) untilRecorded(pods []v1.Pod) []float64 {
	uids, ended := map[string]string{}, map[string]time.Time{}
	for i := range pods {
		uids[pods[i].Name] = string(pods[i].UID)
	}
	for _, event := range r.of(isEviction, answered(201)) {
		ended[uids[event.ObjectRef.Name]] = event.StageTimestamp.Time
	}
	return r.untilStatus(ended)
}

// untilStatus returns how many seconds after these times the evictionrequest-controller wrote the last
// statuses of EvictionRequests, by their names.
func (r requests) untilStatus(since map[string]time.Time) []float64 {
	last := map[string]time.Time{}
	for _, event := range r.of(by(evictionController), to("evictionrequests"), isWrite) {
		if event.ObjectRef.Subresource == "status" {
			last[event.ObjectRef.Name] = event.StageTimestamp.Time
		}
	}
	var took []float64
	for name, start := range since {
		if end, ok := last[name]; ok {
			took = append(took, end.Sub(start).Seconds())
		}
	}
	return took
}

// byClient divides the number of requests of each client, and of each kind of request below it,
// by a number of pods, nodes or minutes. Evictions differ by their answers.
func (r requests) byClient(divisor float64, unit string) []result {
	numbers := numbersByClient{}
	numbers.add(r)
	return numbers.results(divisor, unit)
}

// numbersByClient counts requests, by client and by kind. A log of millions of them does not have to
// be kept for it.
type numbersByClient map[string]float64

func (n numbersByClient) add(r requests) {
	for i := range r {
		name := client(&r[i])
		kind := name + ": " + describe(&r[i])
		if isEviction(&r[i]) {
			kind += fmt.Sprintf(" (%d)", code(&r[i]))
		}
		n[name]++
		n[kind]++
	}
}

func (n numbersByClient) results(divisor float64, unit string) []result {
	var results []result
	for name, number := range n {
		results = append(results, result{Name: name, Unit: unit, Value: number / divisor, digits: 2, byClient: true})
	}
	return results
}
