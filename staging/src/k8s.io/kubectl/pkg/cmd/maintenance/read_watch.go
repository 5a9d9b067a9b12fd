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
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// observer keeps a snapshot up to date by watches.
type observer struct {
	client kubernetes.Interface
	// names are the maintenances to read; all if there are none.
	names []string
	// changed gets a value when the snapshot changes.
	changed chan struct{}

	// nodes is nil if the user may not list them.
	maintenances, nodes cache.SharedIndexInformer
	unreadable          []string

	clock clock.PassiveClock
	// troubles are the last failures of the probes and of each watch, unless these have worked since.
	troubles [3]atomic.Pointer[trouble]
	// probed is when the server was last probed; probing reports that it has not answered yet.
	probed  time.Time
	probing atomic.Bool
	// lease is what the probes, one at a time, have seen of the lease of kube-controller-manager, and silent that it
	// is not renewed, as of the last one. mayNotKnow reports that the lease cannot be read.
	lease      leaseWatch
	silent     atomic.Pointer[silence]
	mayNotKnow atomic.Bool
}

// newObserver starts the watches. They end with ctx.
func newObserver(ctx context.Context, client kubernetes.Interface, names []string, clock clock.PassiveClock) (*observer, error) {
	o := &observer{client: client, names: names, clock: clock, changed: make(chan struct{}, 1), probed: clock.Now()}
	// Without the permission, a watch would be retried for ever, and the start would wait for it.
	if err := o.listOne(ctx); err != nil {
		return nil, fmt.Errorf("listing nodemaintenances: %w", err)
	}
	probe := &snapshot{}
	if _, err := list[corev1.Node](ctx, probe, "nodes", client.CoreV1().Nodes().List, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, err
	}
	o.unreadable = probe.unreadable
	o.maintenances = coordinationinformers.NewFilteredNodeMaintenanceInformer(client, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.FieldSelector = o.selector()
	})
	started := []cache.SharedIndexInformer{o.maintenances}
	if probe.readable("nodes") {
		o.nodes = coreinformers.NewNodeInformer(client, 0, cache.Indexers{})
		started = append(started, o.nodes)
	}
	return o, o.start(ctx, started)
}

// selector restricts the watch to a single name, which needs only the permission to read that one.
func (o *observer) selector() string {
	if len(o.names) == 1 {
		return "metadata.name=" + o.names[0]
	}
	return ""
}

// forgetUnused keeps a watch of many nodes small.
func forgetUnused(object any) (any, error) {
	switch o := object.(type) {
	case *coordinationv1alpha1.NodeMaintenance:
		for i := range o.ManagedFields {
			o.ManagedFields[i].FieldsV1 = nil // When it was changed is needed.
		}
	case *corev1.Node:
		o.ManagedFields, o.Status.Images = nil, nil
	}
	return object, nil
}

// start runs informers until ctx ends, and waits until each has listed its objects.
func (o *observer) start(ctx context.Context, informers []cache.SharedIndexInformer) error {
	var synced []cache.InformerSynced
	for i, informer := range informers {
		source := &o.troubles[1+i]
		works := func(any) {
			source.Store(nil)
			o.notify()
		}
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: works, DeleteFunc: works, UpdateFunc: func(before, after any) {
			// A list that precedes a watch that fails again and again has the same objects.
			if before.(metav1.Object).GetResourceVersion() != after.(metav1.Object).GetResourceVersion() {
				source.Store(nil)
			}
			o.notify()
		}})
		// The reflector reconnects by itself; its log would mix with the output.
		onError := func(_ context.Context, _ *cache.Reflector, err error) { o.noteTrouble(source, err) }
		if err := errors.Join(err, informer.SetWatchErrorHandlerWithContext(onError), informer.SetTransform(forgetUnused)); err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
		synced = append(synced, registration.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return context.Cause(ctx)
	}
	return nil
}

// noteTrouble notes that a watch or a probe has failed. Watches also end without a failure, and are then
// continued, or restarted if they are too old.
func (o *observer) noteTrouble(source *atomic.Pointer[trouble], err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	source.Store(&trouble{at: o.clock.Now(), err: err})
	o.notify()
}

// probeInterval is how often the server is probed, and how long it may take to answer.
const probeInterval = 5 * time.Second

// probe sends a request to the server, unless the last probe is recent. A reflector that cannot
// connect retries for ever without an error, and a lost connection looks like one without events.
func (o *observer) probe(ctx context.Context, now time.Time) {
	if now.Sub(o.probed) < probeInterval || !o.probing.CompareAndSwap(false, true) {
		return
	}
	o.probed = now
	go func() {
		defer o.probing.Store(false)
		limited, cancel := context.WithTimeout(ctx, probeInterval)
		defer cancel()
		if err := o.listOne(limited); err != nil && ctx.Err() == nil {
			o.noteTrouble(&o.troubles[0], err)
			return
		}
		o.troubles[0].Store(nil)
		o.readSilence(limited, now)
	}()
}

// readSilence reads whether kube-controller-manager runs. A user who may not read that, or for whom there is
// nothing to read, does not ask again.
func (o *observer) readSilence(ctx context.Context, now time.Time) {
	if o.mayNotKnow.Load() {
		return
	}
	lease, err := readLease(ctx, o.client)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		o.mayNotKnow.Store(true)
		o.silent.Store(nil)
	case err == nil:
		o.silent.Store(o.lease.see(lease, now))
	}
}

// listOne lists at most one of the maintenances to read.
func (o *observer) listOne(ctx context.Context) error {
	_, err := o.client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{Limit: 1, FieldSelector: o.selector()})
	return err
}

// trouble is a request that has failed.
type trouble struct {
	at  time.Time
	err error
}

// troubleText says that the view may be outdated. Attempts follow each other within a minute, so
// an older failure is over.
func (o *observer) troubleText(now time.Time) string {
	var last *trouble
	for i := range o.troubles {
		if t := o.troubles[i].Load(); t != nil && (last == nil || t.at.After(last.at)) {
			last = t
		}
	}
	if last == nil || now.Sub(last.at) > time.Minute {
		return ""
	}
	return plaintext.Line("The view may be outdated, retrying: " + last.err.Error())
}

func (o *observer) notify() {
	select {
	case o.changed <- struct{}{}:
	default: // A notification is pending already.
	}
}

// snapshot returns the current objects.
func (o *observer) snapshot() *snapshot {
	maintenances := filtered(objects[coordinationv1alpha1.NodeMaintenance](o.maintenances), func(nm *coordinationv1alpha1.NodeMaintenance) bool {
		return len(o.names) == 0 || slices.Contains(o.names, nm.Name)
	})
	return &snapshot{maintenances: sorted(maintenances), nodes: sorted(objects[corev1.Node](o.nodes)), unreadable: o.unreadable}
}

// objects returns the objects of an informer, if there is one.
func objects[T any](informer cache.SharedIndexInformer) []*T {
	if informer == nil {
		return nil
	}
	return mapped(informer.GetStore().List(), func(object any) *T { return object.(*T) })
}

// redrawInterval is the minimum time between two updates of the view: a drain may change hundreds
// of objects per second.
const redrawInterval = 300 * time.Millisecond

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
