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

package maintenance

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// controllerLease is the lease in kube-system that kube-controller-manager renews every two seconds, by
// default, while it runs.
const controllerLease = "kube-controller-manager"

// defaultLeaseSeconds is for a lease without a duration. It is the default of kube-controller-manager.
const defaultLeaseSeconds = 15

// controllerPatience is how long the controller may take to act on a maintenance before a notice
// asks to check that it runs.
const controllerPatience = 30 * time.Second

// silence is that kube-controller-manager does not renew its lease.
type silence struct {
	// since is when it was renewed last, by the clock that is compared with it.
	since time.Time
	// unsure is whether the time is by a clock that nothing relates to the one that is compared with it.
	unsure bool
}

// readLease reads the lease. An error says that it is unknown whether kube-controller-manager runs: the user may not
// be allowed to read the lease, or there is none, because nothing elects a leader.
func readLease(ctx context.Context, client kubernetes.Interface) (*coordinationv1.Lease, error) {
	return client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, controllerLease, metav1.GetOptions{})
}

// silencePatience is for how long the lease may not be renewed: another instance takes over an expired one within
// seconds.
func silencePatience(lease *coordinationv1.Lease) time.Duration {
	return time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, defaultLeaseSeconds))*time.Second + controllerPatience
}

// silenceOf judges the lease at one look; nil if kube-controller-manager runs, or if there is no lease. The time is that of the API server if
// isServerTime. renewTime is by the clock of kube-controller-manager, and the API server notes its own time beside it.
func silenceOf(lease *coordinationv1.Lease, now time.Time, isServerTime bool) *silence {
	if lease == nil || lease.Spec.RenewTime == nil {
		return nil
	}
	s := &silence{since: lease.Spec.RenewTime.Time, unsure: true}
	if written := renewalWritten(lease); isServerTime && written != nil {
		s.since, s.unsure = written.Time, false
	}
	if now.Sub(s.since) < silencePatience(lease) {
		return nil
	}
	return s
}

// renewalWritten returns when renewTime was written, by the clock of the API server; nil if it has not noted that.
func renewalWritten(lease *coordinationv1.Lease) *metav1.Time {
	for _, entry := range lease.ManagedFields {
		if entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.Raw, []byte(`"f:renewTime"`)) {
			return entry.Time
		}
	}
	return nil
}

// leaseWatch is what a command that reads the lease again and again has seen of it. Only the own clock counts: others
// may differ from it, and from each other.
type leaseWatch struct {
	spec *coordinationv1.LeaseSpec
	// read is when it was last read, and renewed since when it has not changed.
	read, renewed time.Time
}

// see judges the lease that was read; nil if kube-controller-manager runs, or if that is not known yet.
func (w *leaseWatch) see(lease *coordinationv1.Lease, now time.Time) *silence {
	if lease.Spec.RenewTime == nil {
		*w = leaseWatch{}
		return nil
	}
	if gap := now.Sub(w.read) - maxLeaseGap; gap > 0 {
		// Nobody can renew a lease while the API server does not answer, and nothing was seen meanwhile.
		w.renewed = w.renewed.Add(gap)
	}
	if w.read = now; w.spec == nil || !apiequality.Semantic.DeepEqual(w.spec, &lease.Spec) {
		w.spec, w.renewed = &lease.Spec, now
	}
	if now.Sub(w.renewed) < silencePatience(lease) {
		return nil
	}
	return &silence{since: w.renewed}
}

// maxLeaseGap is how much of the time between two reads of the lease counts.
const maxLeaseGap = 2 * probeInterval

// seeLease says how to see whether kube-controller-manager runs. Without the format, kubectl prints only who
// held the lease last.
const seeLease = "see renewTime of its lease: kubectl get lease -n kube-system kube-controller-manager -o yaml"

// silenceText says that nothing goes on; empty if the controller runs, or if that is unknown. A drain looks as
// before if its controller dies.
func silenceText(s *silence, now time.Time) string {
	if s == nil {
		return ""
	}
	condition := ""
	if s.unsure {
		condition = ", if its clock and that of this command agree"
	}
	return fmt.Sprintf("kube-controller-manager has not renewed its lease for %s%s, so it may not run, and nothing goes on; %s", duration.HumanDuration(now.Sub(s.since)), condition, seeLease)
}

// serverTime is what the answers of the API server say of its clock, which the one of this computer may differ from.
type serverTime struct {
	clock clock.PassiveClock
	// ahead is how far the clock of the server is ahead of the own one; nil before the first answer that says it.
	ahead atomic.Pointer[time.Duration]
}

// now returns the time of the server, to the second, and the own one if that is unknown.
func (t *serverTime) now(own time.Time) (now time.Time, isServerTime bool) {
	if t == nil {
		return own, false
	}
	ahead := t.ahead.Load()
	if ahead == nil {
		return own, false
	}
	return own.Add(*ahead), true
}

// observe returns a transport that notes the time in the answers that pass.
func (t *serverTime) observe(transport http.RoundTripper) http.RoundTripper {
	return &observedTransport{transport, t}
}

type observedTransport struct {
	next http.RoundTripper
	time *serverTime
}

var _ http.RoundTripper = &observedTransport{}

// RoundTrip implements http.RoundTripper.
func (o *observedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		ahead := date.Sub(o.time.clock.Now())
		o.time.ahead.Store(&ahead)
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find what it closes.
func (o *observedTransport) WrappedRoundTripper() http.RoundTripper { return o.next }
