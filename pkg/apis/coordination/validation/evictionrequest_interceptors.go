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
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// validateInterceptors validates the entries of the interceptors. The list is written once. Then
// only the active interceptor changes its own entry.
func (u *statusUpdate) validateInterceptors() field.ErrorList {
	old, entries := u.old.Interceptors, u.status.Interceptors
	fldPath := statusPath.Child("interceptors")
	switch {
	case len(old) == 0 && len(entries) > 0:
		return u.validateFirstEntries(fldPath)
	case len(old) == 0 && len(u.old.TargetInterceptors) == 0 && len(u.status.TargetInterceptors) > 0:
		return field.ErrorList{field.Required(fldPath, "must be set together with targetInterceptors: add an empty entry for each of them")}
	case !slices.Equal(entryNames(old), entryNames(entries)):
		return field.ErrorList{field.Invalid(fldPath, entryNames(entries), fmt.Sprintf("entries must not be added, removed, renamed or reordered: keep %q", entryNames(old)))}
	}
	var errs field.ErrorList
	for i := range entries {
		errs = append(errs, u.validateEntry(&entries[i], &old[i], fldPath.Index(i))...)
	}
	return errs
}

// validateFirstEntries validates the list when it is first written. The entries must be empty:
// otherwise, a client could complete interceptors before they are active.
func (u *statusUpdate) validateFirstEntries(fldPath *field.Path) field.ErrorList {
	entries, targets := u.status.Interceptors, targetNames(u.status.TargetInterceptors)
	switch {
	case evictionrequest.IsFinished(u.old.Conditions):
		return field.ErrorList{field.Forbidden(fldPath, "must stay empty, because the request is finished")}
	case !slices.Equal(entryNames(entries), targets):
		return field.ErrorList{field.Invalid(fldPath, entryNames(entries), fmt.Sprintf("must have the names of targetInterceptors in the same order: %q", targets))}
	}
	var errs field.ErrorList
	for i, entry := range entries {
		if !apiequality.Semantic.DeepEqual(entry, coordination.InterceptorStatus{Name: entry.Name}) {
			errs = append(errs, field.Forbidden(fldPath.Index(i), fmt.Sprintf("must have only a name when it is added: %s reports while it is active", entry.Name)))
		}
	}
	return errs
}

// entryNames returns the names of the entries. They are equal to those of targetInterceptors in all
// objects that were written with this validation.
func entryNames(entries []coordination.InterceptorStatus) []string {
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name)
	}
	return names
}

// validateEntry validates the report of one interceptor, which must have been active before the
// update: it is activated in an earlier update.
func (u *statusUpdate) validateEntry(entry, old *coordination.InterceptorStatus, fldPath *field.Path) field.ErrorList {
	switch {
	case apiequality.Semantic.DeepEqual(entry, old):
		return nil
	case evictionrequest.IsFinished(u.old.Conditions):
		return field.ErrorList{field.Forbidden(fldPath, fmt.Sprintf("%s must not report after the request is finished: stop its work", entry.Name))}
	case !slices.Contains(u.old.ActiveInterceptors, entry.Name):
		return field.ErrorList{field.Forbidden(fldPath, fmt.Sprintf("%s must not report while it is not active; activeInterceptors is %q", entry.Name, u.old.ActiveInterceptors))}
	case old.CompletionTime != nil:
		return field.ErrorList{field.Forbidden(fldPath, fmt.Sprintf("%s must not report after it has set its completionTime: keep its entry unchanged", entry.Name))}
	}
	report := &report{entry: entry, old: old, now: u.now, fldPath: fldPath}
	return slices.Concat(
		report.validateStartTime(),
		report.validateHeartbeatTime(),
		report.validateExpectedFinishTime(),
		report.validateCompletionTime(),
		report.validateRetries(),
		report.validateMessage(),
	)
}

// report is a change of the entry of the active interceptor, which had not completed before.
type report struct {
	entry, old *coordination.InterceptorStatus
	now        time.Time
	fldPath    *field.Path
}

// validateStartTime validates that the start is reported when it happens, and does not change: the
// duration of the work is derived from it. An interceptor that applies its entry without the
// startTime would remove it.
func (r *report) validateStartTime() field.ErrorList {
	old, started := r.old.StartTime, r.entry.StartTime
	fldPath := r.fldPath.Child("startTime")
	switch {
	case old != nil && !old.Equal(started):
		return field.ErrorList{field.Invalid(fldPath, formatOptional(started), fmt.Sprintf("is immutable once set: keep %q", format(old.Time)))}
	case old == nil && started != nil:
		return validatePresent(*started, r.now, fldPath)
	case started == nil && r.old.HeartbeatTime == nil && r.entry.HeartbeatTime != nil:
		return field.ErrorList{field.Required(fldPath, "must be set together with the first heartbeatTime")}
	}
	return nil
}

// validateHeartbeatTime validates the time from which the deadline is computed. A time in the
// future would extend the deadline without work. A time in the past is a late report, which only
// shortens the deadline of the reporter.
func (r *report) validateHeartbeatTime() field.ErrorList {
	old, heartbeat := r.old.HeartbeatTime, r.entry.HeartbeatTime
	fldPath := r.fldPath.Child("heartbeatTime")
	switch {
	case old.Equal(heartbeat):
		// The start must be reported together with the first heartbeat.
		if heartbeat == nil && r.old.StartTime == nil && r.entry.StartTime != nil {
			return field.ErrorList{field.Required(fldPath, "must be set together with startTime")}
		}
		return nil
	case old == nil:
		return validatePresent(*heartbeat, r.now, fldPath)
	case heartbeat == nil || heartbeat.Before(old):
		return field.ErrorList{field.Invalid(fldPath, formatOptional(heartbeat), fmt.Sprintf("must not be removed or set to an earlier time: keep %q or set a later time", format(old.Time)))}
	case heartbeat.Time.After(r.now.Add(evictionrequest.MaxClockSkew)):
		return field.ErrorList{field.Invalid(fldPath, format(heartbeat.Time),
			fmt.Sprintf("must not be more than %s after the server's time, which is %s: check the clock", evictionrequest.MaxClockSkew, format(r.now)))}
	case r.entry.CompletionTime != nil:
		return nil // The final report need not wait.
	case heartbeat.Sub(old.Time) < evictionrequest.MinHeartbeatInterval:
		return field.ErrorList{field.Invalid(fldPath, format(heartbeat.Time), fmt.Sprintf("must be at least %d seconds after the previous heartbeat, %s: keep that time until then",
			int(evictionrequest.MinHeartbeatInterval.Seconds()), format(old.Time)))}
	}
	return nil
}

// validateExpectedFinishTime validates an estimate only when it changes: a stored estimate may turn
// out to be wrong. No clock skew is tolerated, because an estimate should not be in the past. Whoever
// reads the request would fail with a time that JSON cannot represent, and every patch of it as well.
func (r *report) validateExpectedFinishTime() field.ErrorList {
	old, finish := r.old.ExpectedFinishTime, r.entry.ExpectedFinishTime
	switch {
	case finish == nil || old.Equal(finish):
		return nil
	case finish.UTC().Year() > 9999:
		return field.ErrorList{field.Invalid(r.fldPath.Child("expectedFinishTime"), format(finish.Time),
			"must not be after the year 9999 in UTC, because JSON cannot represent that: set an earlier time, or none")}
	case !finish.Time.Before(r.now):
		return nil
	}
	return field.ErrorList{field.Invalid(r.fldPath.Child("expectedFinishTime"), format(finish.Time),
		fmt.Sprintf("must not be in the past; the server's time is %s: set a later time, or none", format(r.now)))}
}

// validateCompletionTime validates the completionTime. An interceptor may complete without a start:
// this is how it declines (KEP-4563, Interceptor).
func (r *report) validateCompletionTime() field.ErrorList {
	if r.entry.CompletionTime == nil {
		return nil
	}
	return validatePresent(*r.entry.CompletionTime, r.now, r.fldPath.Child("completionTime"))
}

// validateRetries protects the number from which the next attempt is scheduled: a smaller number
// would make the imperative interceptor retry too early.
func (r *report) validateRetries() field.ErrorList {
	old, retries := r.old.Retries, r.entry.Retries
	fldPath := r.fldPath.Child("retries")
	switch {
	case retries < 0:
		return nil // Reported by declarative validation.
	case retries < old:
		return field.ErrorList{field.Invalid(fldPath, retries, fmt.Sprintf("must not be less than the current value, %d", old))}
	case retries > old && r.entry.Name != imperativeInterceptor:
		return field.ErrorList{field.Invalid(fldPath, retries, fmt.Sprintf("must stay %d: only %s counts its retries", old, imperativeInterceptor))}
	}
	return nil
}

// validatePresent validates a time that means the time of the update. The message has both times,
// because the usual cause is a difference of the clocks.
func validatePresent(value metav1.Time, now time.Time, fldPath *field.Path) field.ErrorList {
	if value.Sub(now).Abs() <= evictionrequest.MaxClockSkew {
		return nil
	}
	return field.ErrorList{field.Invalid(fldPath, format(value.Time),
		fmt.Sprintf("must be within %s of the server's time, which is %s: set the current time, and check the clock", evictionrequest.MaxClockSkew, format(now)))}
}

// format formats a time like the API.
func format(value time.Time) string { return value.UTC().Format(time.RFC3339) }

// formatOptional formats an optional time. A missing time is empty.
func formatOptional(value *metav1.Time) string {
	if value == nil {
		return ""
	}
	return format(value.Time)
}

// maxMessageBytes limits a message of the maximum length that has characters of several bytes: with those of 15
// interceptors, and all that is not theirs, the request must be small enough for etcd.
const (
	maxMessageBytes      = 64 * 1024
	maxMessageCharacters = 32768
)

func (r *report) validateMessage() field.ErrorList {
	if len(r.entry.Message) <= maxMessageBytes || utf8.RuneCountInString(r.entry.Message) > maxMessageCharacters {
		return nil // The second is reported by declarative validation.
	}
	return field.ErrorList{field.Invalid(r.fldPath.Child("message"), field.OmitValueType{}, fmt.Sprintf("must have at most %d bytes, has %d: shorten it", maxMessageBytes, len(r.entry.Message)))}
}
