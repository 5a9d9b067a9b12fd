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

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// validateInterceptors checks the reports. Their list is written once, then each entry
// belongs to the interceptor that it names, while that one is active.
func (u *statusUpdate) validateInterceptors() field.ErrorList {
	old, entries := u.old.Interceptors, u.status.Interceptors
	fldPath := statusPath.Child("interceptors")
	switch {
	case len(old) == 0 && len(entries) > 0:
		return u.validateFirstEntries(fldPath)
	case len(old) == 0 && len(u.old.TargetInterceptors) == 0 && len(u.status.TargetInterceptors) > 0:
		return field.ErrorList{field.Required(fldPath, "must be set together with targetInterceptors: add an empty entry for each of them")}
	case !slices.Equal(entryNames(old), entryNames(entries)):
		return field.ErrorList{field.Invalid(fldPath, entryNames(entries), fmt.Sprintf("entries must be neither added, removed, renamed nor reordered: leave them as %q", entryNames(old)))}
	}
	var errs field.ErrorList
	for i := range entries {
		errs = append(errs, u.validateEntry(&entries[i], &old[i], fldPath.Index(i))...)
	}
	return errs
}

// validateFirstEntries checks the list when it is written: with a report in it,
// somebody could complete the turns of others before they begin.
func (u *statusUpdate) validateFirstEntries(fldPath *field.Path) field.ErrorList {
	entries, targets := u.status.Interceptors, targetNames(u.status.TargetInterceptors)
	switch {
	case isFinished(u.old):
		return field.ErrorList{field.Forbidden(fldPath, "must stay empty, because the request is finished")}
	case !slices.Equal(entryNames(entries), targets):
		return field.ErrorList{field.Invalid(fldPath, entryNames(entries), fmt.Sprintf("must have the names of targetInterceptors in the same order: %q", targets))}
	}
	var errs field.ErrorList
	for i, entry := range entries {
		if !apiequality.Semantic.DeepEqual(entry, coordination.InterceptorStatus{Name: entry.Name}) {
			errs = append(errs, field.Forbidden(fldPath.Index(i), fmt.Sprintf("must have a name only when it is added: %s reports when it is active", entry.Name)))
		}
	}
	return errs
}

// entryNames returns the names of the entries, which are those of targetInterceptors
// in every object that was written by these rules.
func entryNames(entries []coordination.InterceptorStatus) []string {
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name)
	}
	return names
}

// findEntry returns the entry of that name, or nil.
func findEntry(entries []coordination.InterceptorStatus, name string) *coordination.InterceptorStatus {
	i := slices.Index(entryNames(entries), name)
	if i < 0 {
		return nil
	}
	return &entries[i]
}

// validateEntry checks the report of one interceptor, which must be the one that was
// active before the update: the update that gives a turn comes before all reports.
func (u *statusUpdate) validateEntry(entry, old *coordination.InterceptorStatus, fldPath *field.Path) field.ErrorList {
	switch {
	case apiequality.Semantic.DeepEqual(entry, old):
		return nil
	case isFinished(u.old):
		return field.ErrorList{field.Forbidden(fldPath, fmt.Sprintf("%s must not report any more, because the request is finished: stop its work", entry.Name))}
	case !slices.Contains(u.old.ActiveInterceptors, entry.Name):
		return field.ErrorList{field.Forbidden(fldPath, fmt.Sprintf("%s must not report while it is not active; active is %q", entry.Name, u.old.ActiveInterceptors))}
	case old.CompletionTime != nil:
		return field.ErrorList{field.Forbidden(fldPath, fmt.Sprintf("%s must not report any more, because it has a completionTime: leave all of its entry as it is", entry.Name))}
	}
	report := &report{entry: entry, old: old, now: u.now, fldPath: fldPath}
	return slices.Concat(
		report.validateStartTime(),
		report.validateHeartbeatTime(),
		report.validateExpectedFinishTime(),
		report.validateCompletionTime(),
		report.validateRetries(),
	)
}

// report is a change in the entry of the active interceptor, which has not completed
// before.
type report struct {
	entry, old *coordination.InterceptorStatus
	now        time.Time
	fldPath    *field.Path
}

// validateStartTime checks that the start is reported when it happens, and stays: how
// long a turn took is told by it. An interceptor that applies its entry without the
// start would remove it.
func (r *report) validateStartTime() field.ErrorList {
	old, started := r.old.StartTime, r.entry.StartTime
	fldPath := r.fldPath.Child("startTime")
	switch {
	case old != nil && !old.Equal(started):
		return field.ErrorList{field.Invalid(fldPath, formatOptional(started), fmt.Sprintf("is immutable once set: leave it as %q", format(old.Time)))}
	case old == nil && started != nil:
		return validatePresent(*started, r.now, fldPath)
	case started == nil && r.old.HeartbeatTime == nil && r.entry.HeartbeatTime != nil:
		return field.ErrorList{field.Required(fldPath, "must be set together with the first heartbeatTime")}
	}
	return nil
}

// validateHeartbeatTime checks the time from which the deadline counts. One that is far
// ahead would hold the turn without work. An older one is a late report: it shortens
// the reporter's own time only.
func (r *report) validateHeartbeatTime() field.ErrorList {
	old, heartbeat := r.old.HeartbeatTime, r.entry.HeartbeatTime
	fldPath := r.fldPath.Child("heartbeatTime")
	switch {
	case old.Equal(heartbeat):
		// No start without a sign of life, which it is the first of.
		if heartbeat == nil && r.old.StartTime == nil && r.entry.StartTime != nil {
			return field.ErrorList{field.Required(fldPath, "must be set together with startTime")}
		}
		return nil
	case old == nil:
		return validatePresent(*heartbeat, r.now, fldPath)
	case heartbeat == nil || heartbeat.Before(old):
		return field.ErrorList{field.Invalid(fldPath, formatOptional(heartbeat), fmt.Sprintf("must not go back: leave it as %q, or set a later time", format(old.Time)))}
	case heartbeat.Time.After(r.now.Add(clockSkew)):
		return field.ErrorList{field.Invalid(fldPath, format(heartbeat.Time),
			fmt.Sprintf("must not be more than %s after the server's time, which is %s: check the clock", clockSkew, format(r.now)))}
	case r.entry.CompletionTime != nil:
		return nil // The last words need not wait.
	case heartbeat.Sub(old.Time) < MinHeartbeatInterval:
		return field.ErrorList{field.Invalid(fldPath, format(heartbeat.Time), fmt.Sprintf("must be at least %d seconds after the heartbeat before, %s: leave that until then",
			int(MinHeartbeatInterval.Seconds()), format(old.Time)))}
	}
	return nil
}

// validateExpectedFinishTime checks an estimate when it is made: that it turns out to
// be wrong later is nobody's fault. It needs no allowance for clocks, because nobody
// expects to have finished already.
func (r *report) validateExpectedFinishTime() field.ErrorList {
	old, finish := r.old.ExpectedFinishTime, r.entry.ExpectedFinishTime
	if finish == nil || old.Equal(finish) || !finish.Time.Before(r.now) {
		return nil
	}
	return field.ErrorList{field.Invalid(r.fldPath.Child("expectedFinishTime"), format(finish.Time),
		fmt.Sprintf("must not be in the past; the server's time is %s: set a later time, or none", format(r.now)))}
}

// validateCompletionTime also lets those complete who have not started: so an
// interceptor declines to act (KEP-4563, Interceptor).
func (r *report) validateCompletionTime() field.ErrorList {
	if r.entry.CompletionTime == nil {
		return nil
	}
	return validatePresent(*r.entry.CompletionTime, r.now, r.fldPath.Child("completionTime"))
}

// validateRetries keeps the number from which the next attempt is scheduled: set back,
// it would have the imperative interceptor hurry.
func (r *report) validateRetries() field.ErrorList {
	old, retries := r.old.Retries, r.entry.Retries
	fldPath := r.fldPath.Child("retries")
	switch {
	case retries < 0:
		return nil // Reported by the declared rules.
	case retries < old:
		return field.ErrorList{field.Invalid(fldPath, retries, fmt.Sprintf("must not decrease: it is %d already", old))}
	case retries > old && r.entry.Name != imperativeInterceptor:
		return field.ErrorList{field.Invalid(fldPath, retries, fmt.Sprintf("must stay %d: only %s counts its retries", old, imperativeInterceptor))}
	}
	return nil
}

// validatePresent checks a time that stands for the moment of the update. Both clocks
// are in the message, because it is they that differ when an honest writer reads it.
func validatePresent(value metav1.Time, now time.Time, fldPath *field.Path) field.ErrorList {
	if value.Sub(now).Abs() <= clockSkew {
		return nil
	}
	return field.ErrorList{field.Invalid(fldPath, format(value.Time),
		fmt.Sprintf("must be within %s of the server's time, which is %s: set the present time, and check the clock", clockSkew, format(now)))}
}

// format prints a time as the API does.
func format(value time.Time) string { return value.UTC().Format(time.RFC3339) }

// formatOptional prints a time that may be missing: as nothing.
func formatOptional(value *metav1.Time) string {
	if value == nil {
		return ""
	}
	return format(value.Time)
}
