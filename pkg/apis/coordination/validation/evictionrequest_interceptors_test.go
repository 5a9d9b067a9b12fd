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

package validation

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// entries returns a change of the list of entries.
func entries(change func([]coordination.InterceptorStatus) []coordination.InterceptorStatus) status {
	return func(s *coordination.EvictionRequestStatus) { s.Interceptors = change(s.Interceptors) }
}

func TestEntriesOfInterceptors(t *testing.T) {
	must := invalid(interceptorsPath, "entries must not be added, removed, renamed or reordered")
	same := invalid(interceptorsPath, "must have the names of targetInterceptors in the same order")
	empty := func(i int) field.ErrorList {
		return forbidden(interceptorsPath.Index(i), "must have only a name when it is added")
	}
	type list = []coordination.InterceptorStatus
	initialize := func(change status) status { return all(initialized(first, second, imperative), change) }
	runStatusTests(t, map[string]statusTest{
		"one left out":                {old: pending, change: initialize(entries(func(l list) list { return l[:2] })), want: same},
		"one too many":                {old: pending, change: initialize(entries(func(l list) list { return append(l, coordination.InterceptorStatus{Name: "a.b"}) })), want: same},
		"another order":               {old: pending, change: initialize(entries(func(l list) list { slices.Reverse(l); return l })), want: same},
		"without targets":             {old: pending, change: entries(func(l list) list { return append(l, coordination.InterceptorStatus{Name: imperative}) }), want: same},
		"started too early":           {old: pending, change: initialize(startedAt(first, 0)), want: empty(0)},
		"completed too early":         {old: pending, change: initialize(all(startedAt(second, 0), completedAt(second, 0))), want: empty(1)},
		"a message too early":         {old: pending, change: initialize(withMessage(imperative, "hello")), want: empty(2)},
		"retries too early":           {old: pending, change: initialize(retried(imperative, 1)), want: empty(2)},
		"an ETA too early":            {old: pending, change: initialize(finishExpectedAt(first, 9)), want: empty(0)},
		"started in the same write":   {old: pending, change: all(firstActive, startedAt(first, 0)), want: empty(0)},
		"one removed":                 {old: firstActive, change: entries(func(l list) list { return l[:2] }), want: must},
		"the active one removed":      {old: firstActive, change: entries(func(l list) list { return l[1:] }), want: must},
		"all removed":                 {old: firstActive, change: entries(func(l list) list { return nil }), want: must},
		"one added":                   {old: firstActive, change: entries(func(l list) list { return append(l, coordination.InterceptorStatus{Name: "a.b"}) }), want: must},
		"reordered":                   {old: firstActive, change: entries(func(l list) list { slices.Reverse(l); return l }), want: must},
		"renamed":                     {old: firstActive, change: entry(first, func(e *coordination.InterceptorStatus) { e.Name = "other.example.com" }), want: must},
		"added to a finished request": {old: canceled, change: entries(func(l list) list { return append(l, coordination.InterceptorStatus{Name: imperative}) }), want: forbidden(interceptorsPath, "must stay empty, because the request is finished")},
	})
}

// Only the interceptor that was active before the update may report in it.
func TestReportsOfInactive(t *testing.T) {
	inactive := func(i int) field.ErrorList {
		return forbidden(interceptorsPath.Index(i), "must not report while it is not active")
	}
	finished := forbidden(interceptorsPath.Index(0), "must not report after the request is finished")
	over := forbidden(interceptorsPath.Index(0), "must not report after it has set its completionTime")
	nextActivation := all(active(second), processed(first), activatedAt(at(1)))
	runStatusTests(t, map[string]statusTest{
		"before any is active":                        {old: initialized(first, imperative), change: startedAt(first, 0), want: inactive(0)},
		"before it is active":                         {old: firstStarted, change: all(startedAt(second, 0), completedAt(second, 0)), want: inactive(1)},
		"a message before it is active":               {old: firstStarted, change: withMessage(second, "soon"), want: inactive(1)},
		"the last, before it is active":               {old: firstStarted, change: retried(imperative, 1), want: inactive(2)},
		"in the write that activates it first":        {old: initialized(first, imperative), change: all(active(first), activatedAt(at(0)), startedAt(first, 0)), want: inactive(0)},
		"in the write that activates it":              {old: firstCompleted, change: all(nextActivation, startedAt(second, 1)), now: 1, want: inactive(1)},
		"after it was active":                         {old: secondActive, change: withMessage(first, "too late"), want: inactive(0)},
		"completed after it was active":               {old: all(firstStarted, active(second), processed(first)), change: completedAt(first, 0), want: inactive(0)},
		"finished request":                            {old: firstCanceled, change: withMessage(first, "too late"), want: finished},
		"finished request with an active interceptor": {old: all(firstStarted, canceled), change: completedAt(first, 0), want: finished},
		"a message after completion":                  {old: firstCompleted, change: withMessage(first, "too late"), want: over},
		"a heartbeat after completion":                {old: firstCompleted, change: heartbeatAt(first, 60), now: 60, want: over},
		"an ETA after completion":                     {old: firstCompleted, change: finishExpectedAt(first, 60), want: over},
		"completion removed":                          {old: firstCompleted, change: entry(first, func(e *coordination.InterceptorStatus) { e.CompletionTime = nil }), want: over},
		"completion changed":                          {old: firstCompleted, change: completedAt(first, 2), want: over},
		"start and completion removed":                {old: firstCompleted, change: entry(first, func(e *coordination.InterceptorStatus) { *e = coordination.InterceptorStatus{Name: first} }), want: over},
		"the active one together with the next":       {old: firstStarted, change: all(completedAt(first, 0), startedAt(second, 0)), want: inactive(1)},
	})
}

// The messages of all interceptors together must leave the controller room for its own.
func TestLongMessages(t *testing.T) {
	path := interceptorsPath.Index(0).Child("message")
	runStatusTests(t, map[string]statusTest{
		"characters of one byte":    {old: firstStarted, change: withMessage(first, strings.Repeat("x", 32768))},
		"characters of two bytes":   {old: firstStarted, change: withMessage(first, strings.Repeat("é", 32768))},
		"characters of three bytes": {old: firstStarted, change: withMessage(first, strings.Repeat("界", 21846)), want: invalid(path, "must have at most 65536 bytes, has 65538: shorten it")},
		"the last that fits":        {old: firstStarted, change: withMessage(first, strings.Repeat("界", 21845))},
	})
}

func TestTimesOfReports(t *testing.T) {
	path := interceptorsPath.Index(0)
	start, heartbeat, finish, completion := path.Child("startTime"), path.Child("heartbeatTime"), path.Child("expectedFinishTime"), path.Child("completionTime")
	off := "must be within 10s of the server's time, which is 2026-03-01T12:01:40Z"
	both := func(seconds int) field.ErrorList { return append(invalid(start, off), invalid(heartbeat, off)...) }
	change := func(change func(*coordination.InterceptorStatus)) status { return entry(first, change) }
	expected := func(zone *time.Location) status { // At the end of the year 9999.
		finish := metav1.Date(9999, time.December, 31, 23, 59, 59, 0, zone)
		return change(func(e *coordination.InterceptorStatus) { e.ExpectedFinishTime = &finish })
	}
	withHeartbeat := all(firstStarted, heartbeatAt(first, 60))
	const now = 100
	runStatusTests(t, map[string]statusTest{
		"started 10 seconds ago":             {old: firstActive, change: startedAt(first, 90), now: now},
		"started 10 seconds ago, late in it": {old: firstActive, change: startedAt(first, 90), now: now + 0.999},
		"started 11 seconds ago":             {old: firstActive, change: startedAt(first, 89), now: now, want: both(89)},
		"starts in 10 seconds":               {old: firstActive, change: startedAt(first, 110), now: now},
		"starts in 11 seconds":               {old: firstActive, change: startedAt(first, 111), now: now, want: both(111)},
		"starts with an older heartbeat":     {old: firstActive, change: all(startedAt(first, 95), heartbeatAt(first, 89)), now: now, want: invalid(heartbeat, off)},
		"starts with a later heartbeat":      {old: firstActive, change: all(startedAt(first, 95), heartbeatAt(first, 110)), now: now},
		"starts with a heartbeat too late":   {old: firstActive, change: all(startedAt(first, 95), heartbeatAt(first, 111)), now: now, want: invalid(heartbeat, off)},
		"starts without a heartbeat":         {old: firstActive, change: change(func(e *coordination.InterceptorStatus) { e.StartTime = at(now) }), now: now, want: required(heartbeat, "must be set together with startTime")},
		"a heartbeat without a start":        {old: firstActive, change: heartbeatAt(first, now), now: now, want: required(start, "must be set together with the first heartbeatTime")},
		"a zero start":                       {old: firstActive, change: change(func(e *coordination.InterceptorStatus) { e.StartTime, e.HeartbeatTime = &metav1.Time{}, at(now) }), now: now, want: invalid(start, off)},
		"another start":                      {old: firstStarted, change: change(func(e *coordination.InterceptorStatus) { e.StartTime = at(1) }), want: invalid(start, `is immutable once set: keep "2026-03-01T12:00:00Z"`)},
		"start removed":                      {old: firstStarted, change: change(func(e *coordination.InterceptorStatus) { e.StartTime = nil }), want: invalid(start, "is immutable once set")},
		"only a heartbeat applied": {old: firstStarted, change: change(func(e *coordination.InterceptorStatus) {
			*e = coordination.InterceptorStatus{Name: first, HeartbeatTime: at(60)}
		}), now: 60, want: invalid(start, "is immutable once set")},
		"60 seconds between heartbeats":          {old: withHeartbeat, change: heartbeatAt(first, 120), now: 120},
		"59 seconds between heartbeats":          {old: withHeartbeat, change: heartbeatAt(first, 119), now: 120, want: invalid(heartbeat, "must be at least 60 seconds after the previous heartbeat, 2026-03-01T12:01:00Z")},
		"an earlier heartbeat":                   {old: withHeartbeat, change: heartbeatAt(first, 59), now: 120, want: invalid(heartbeat, `must not be removed or set to an earlier time: keep "2026-03-01T12:01:00Z"`)},
		"heartbeat removed":                      {old: withHeartbeat, change: change(func(e *coordination.InterceptorStatus) { e.HeartbeatTime = nil }), want: invalid(heartbeat, "must not be removed or set to an earlier time")},
		"a heartbeat in 10 seconds":              {old: firstStarted, change: heartbeatAt(first, 110), now: now},
		"a heartbeat in 11 seconds":              {old: firstStarted, change: heartbeatAt(first, 111), now: now, want: invalid(heartbeat, "must not be more than 10s after the server's time, which is 2026-03-01T12:01:40Z")},
		"a heartbeat 11 seconds ago":             {old: firstStarted, change: heartbeatAt(first, 89), now: now},
		"an early heartbeat with the completion": {old: withHeartbeat, change: all(heartbeatAt(first, 61), completedAt(first, 61)), now: 61},
		"an earlier one with the completion":     {old: withHeartbeat, change: all(heartbeatAt(first, 59), completedAt(first, 61)), now: 61, want: invalid(heartbeat, "must not be removed or set to an earlier time")},
		"removed with the completion":            {old: withHeartbeat, change: all(change(func(e *coordination.InterceptorStatus) { e.HeartbeatTime = nil }), completedAt(first, 61)), now: 61, want: invalid(heartbeat, "must not be removed or set to an earlier time")},
		"a future one with the completion":       {old: withHeartbeat, change: all(heartbeatAt(first, 111), completedAt(first, now)), now: now, want: invalid(heartbeat, "must not be more than 10s after")},
		"to be finished now":                     {old: firstStarted, change: finishExpectedAt(first, now), now: now},
		"to be finished now, late in the second": {old: firstStarted, change: finishExpectedAt(first, now), now: now + 0.999},
		"to be finished a second ago":            {old: firstStarted, change: finishExpectedAt(first, now-1), now: now, want: invalid(finish, "must not be in the past; the server's time is 2026-03-01T12:01:40Z")},
		"an ETA brought forward into the past":   {old: all(firstStarted, finishExpectedAt(first, 200)), change: finishExpectedAt(first, now-1), now: now, want: invalid(finish, "must not be in the past")},
		"an ETA in the last second of JSON":      {old: firstStarted, change: expected(time.UTC), now: now},
		"an ETA after it, by the time zone":      {old: firstStarted, change: expected(time.FixedZone("", -1)), now: now, want: invalid(finish, "must not be after the year 9999 in UTC, because JSON cannot represent that")},
		"an ETA withdrawn":                       {old: all(firstStarted, finishExpectedAt(first, 10)), change: change(func(e *coordination.InterceptorStatus) { e.ExpectedFinishTime = nil }), now: now},
		"completed 10 seconds ago":               {old: firstStarted, change: completedAt(first, 90), now: now},
		"completed 11 seconds ago":               {old: firstStarted, change: completedAt(first, 89), now: now, want: invalid(completion, off)},
		"completes in 10 seconds":                {old: firstStarted, change: completedAt(first, 110), now: now},
		"completes in 11 seconds":                {old: firstStarted, change: completedAt(first, 111), now: now, want: invalid(completion, off)},
		"declined, without a start":              {old: firstActive, change: completedAt(first, now), now: now},
		"declined 11 seconds ago":                {old: firstActive, change: completedAt(first, now-11), now: now, want: invalid(completion, off)},
	})
}

func TestRetries(t *testing.T) {
	retries := func(i int) *field.Path { return interceptorsPath.Index(i).Child("retries") }
	runStatusTests(t, map[string]statusTest{
		"one more":                           {old: lastStarted, change: retried(imperative, 2)},
		"several more":                       {old: lastStarted, change: retried(imperative, 7)},
		"one less":                           {old: lastStarted, change: retried(imperative, 0), want: invalid(retries(2), "must not be less than the current value, 1")},
		"one by another":                     {old: firstStarted, change: retried(first, 1), want: invalid(retries(0), "must stay 0: only imperative-eviction.k8s.io counts its retries")},
		"left to declarative validation: -1": {old: firstStarted, change: retried(first, -1)},
		"one less of another":                {old: all(firstStarted, retried(first, 7)), change: retried(first, 6), want: invalid(retries(0), "must not be less than the current value, 7")},
	})
}
