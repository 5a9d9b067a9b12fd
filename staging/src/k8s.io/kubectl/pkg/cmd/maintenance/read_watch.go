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
	"k8s.io/client-go/informers"
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
	if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1}); !probe.skip("nodes", err) && err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	o.unreadable = probe.unreadable
	o.maintenances = o.factory(o.selector()).Coordination().V1alpha1().NodeMaintenances().Informer()
	started := []cache.SharedIndexInformer{o.maintenances}
	if probe.readable("nodes") {
		o.nodes = o.factory("").Core().V1().Nodes().Informer()
		started = append(started, o.nodes)
	}
	return o, o.start(ctx, started...)
}

// selector restricts the watch to a single name, which needs only the permission to read that one.
func (o *observer) selector() string {
	if len(o.names) == 1 {
		return "metadata.name=" + o.names[0]
	}
	return ""
}

func (o *observer) factory(fieldSelector string) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(o.client, 0,
		informers.WithTransform(forgetUnused),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.FieldSelector = fieldSelector }))
}

// forgetUnused keeps a watch of many nodes small.
func forgetUnused(object any) (any, error) {
	if accessor, ok := object.(metav1.Object); ok {
		fields := accessor.GetManagedFields()
		if _, isMaintenance := object.(*coordinationv1alpha1.NodeMaintenance); !isMaintenance {
			fields = nil
		}
		for i := range fields {
			fields[i].FieldsV1 = nil // When it was changed is needed.
		}
		accessor.SetManagedFields(fields)
	}
	if node, ok := object.(*corev1.Node); ok {
		node.Status.Images = nil
	}
	return object, nil
}

// start runs informers and waits until each has listed its objects.
func (o *observer) start(ctx context.Context, started ...cache.SharedIndexInformer) error {
	var errs []error
	var synced []cache.InformerSynced
	for _, informer := range started {
		hasSynced, err := o.run(ctx, informer)
		errs, synced = append(errs, err), append(synced, hasSynced)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return context.Cause(ctx)
	}
	return nil
}

// run runs an informer until ctx ends. The result reports whether it has listed its objects.
func (o *observer) run(ctx context.Context, informer cache.SharedIndexInformer) (cache.InformerSynced, error) {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { o.notify() },
		UpdateFunc: func(_, _ any) { o.notify() },
		DeleteFunc: func(any) { o.notify() },
	})
	if err != nil {
		return nil, err
	}
	// The reflector reconnects by itself; its log would mix with the output.
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		o.noteTrouble(err)
	}); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return registration.HasSynced, nil
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
	s := &snapshot{unreadable: o.unreadable}
	maintenances := objects[coordinationv1alpha1.NodeMaintenance](o.maintenances)
	s.setMaintenances(slices.DeleteFunc(maintenances, func(nm *coordinationv1alpha1.NodeMaintenance) bool {
		return len(o.names) > 0 && !slices.Contains(o.names, nm.Name)
	}))
	s.setNodes(objects[corev1.Node](o.nodes))
	return s
}

// objects returns the objects of an informer, if there is one.
func objects[T any](informer cache.SharedIndexInformer) []*T {
	if informer == nil {
		return nil
	}
	var all []*T
	for _, object := range informer.GetStore().List() {
		if typed, ok := object.(*T); ok {
			all = append(all, typed)
		}
	}
	return all
}

// redrawInterval is the minimum time between two updates of the view: a drain may change hundreds
// of objects per second.
const redrawInterval = 300 * time.Millisecond
