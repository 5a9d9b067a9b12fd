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
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1alpha1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/clock"
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
	// trouble is the last failure of a watch, or of a probe.
	trouble atomic.Pointer[trouble]
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
	for _, informer := range informers {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { o.notify() },
			UpdateFunc: func(_, _ any) { o.notify() },
			DeleteFunc: func(any) { o.notify() },
		})
		// The reflector reconnects by itself; its log would mix with the output.
		onError := func(_ context.Context, _ *cache.Reflector, err error) { o.noteTrouble(err) }
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

// noteTrouble notes that a watch has failed. Watches also end without a failure, and are then
// continued, or restarted if they are too old.
func (o *observer) noteTrouble(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	o.trouble.Store(&trouble{at: o.clock.Now(), err: err})
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
			o.noteTrouble(err)
			return
		}
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
	last := o.trouble.Load()
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
