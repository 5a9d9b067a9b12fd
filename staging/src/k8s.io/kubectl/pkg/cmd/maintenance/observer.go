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
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/clock"
)

// observer keeps snapshots up to date by watches.
type observer struct {
	client kubernetes.Interface
	// names are the maintenances to look at; all if there are none.
	names []string
	// changed gets a value when a snapshot would be another one.
	changed chan struct{}

	maintenances, nodes, requests, budgets cache.SharedIndexInformer
	// pods by their node.
	pods       map[string]podWatch
	unreadable []string

	clock clock.PassiveClock
	// trouble is the last failure of a watch, or of a probe.
	trouble atomic.Pointer[trouble]
	// probed is when the server was last probed; probing tells that it has not answered yet.
	probed  time.Time
	probing atomic.Bool
}

// podWatch watches the pods of a node until it is stopped.
type podWatch struct {
	cache.SharedIndexInformer
	stop context.CancelFunc
}

// newObserver starts the watches. They end with ctx.
func newObserver(ctx context.Context, client kubernetes.Interface, names []string, clock clock.PassiveClock) (*observer, error) {
	o := &observer{client: client, names: names, clock: clock, changed: make(chan struct{}, 1), pods: map[string]podWatch{}, probed: clock.Now()}
	if err := o.findUnreadable(ctx); err != nil {
		return nil, err
	}
	o.maintenances = o.factory(o.selector()).Coordination().V1alpha1().NodeMaintenances().Informer()
	started := []cache.SharedIndexInformer{o.maintenances}
	factory := o.factory("")
	for _, optional := range []struct {
		kind     string
		informer *cache.SharedIndexInformer
		new      func() cache.SharedIndexInformer
	}{
		{"nodes", &o.nodes, factory.Core().V1().Nodes().Informer},
		{"evictionrequests", &o.requests, factory.Coordination().V1alpha1().EvictionRequests().Informer},
		{"poddisruptionbudgets", &o.budgets, factory.Policy().V1().PodDisruptionBudgets().Informer},
	} {
		if !slices.Contains(o.unreadable, optional.kind) {
			*optional.informer = optional.new()
			started = append(started, *optional.informer)
		}
	}
	return o, o.start(ctx, started...)
}

// selector narrows the watch where there is one name, which also does with the right to
// read just that one.
func (o *observer) selector() string {
	if len(o.names) == 1 {
		return "metadata.name=" + o.names[0]
	}
	return ""
}

// findUnreadable asks once for each kind, because a watch without the right to it would
// try again for ever.
func (o *observer) findUnreadable(ctx context.Context) error {
	one := metav1.ListOptions{Limit: 1}
	probe := &snapshot{}
	for _, kind := range []struct {
		name string
		list func() error
	}{
		{"nodes", func() error { _, err := o.client.CoreV1().Nodes().List(ctx, one); return err }},
		{"pods", func() error {
			// The right to it is what counts: no node has this name.
			_, err := o.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1, FieldSelector: podsOfNode("-")})
			return err
		}},
		{"evictionrequests", func() error {
			_, err := o.client.CoordinationV1alpha1().EvictionRequests("").List(ctx, one)
			return err
		}},
		{"poddisruptionbudgets", func() error {
			_, err := o.client.PolicyV1().PodDisruptionBudgets("").List(ctx, one)
			return err
		}},
	} {
		if err := kind.list(); !probe.skip(kind.name, err) && err != nil {
			return fmt.Errorf("listing %s: %w", kind.name, err)
		}
	}
	o.unreadable = probe.unreadable
	return nil
}

func (o *observer) factory(fieldSelector string) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(o.client, 0,
		informers.WithTransform(forgetUnused),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.FieldSelector = fieldSelector }))
}

// forgetUnused keeps a watch of many pods small.
func forgetUnused(object any) (any, error) {
	if accessor, ok := object.(metav1.Object); ok {
		accessor.SetManagedFields(nil)
	}
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Spec.Containers, pod.Spec.InitContainers, pod.Spec.Volumes = nil, nil, nil
	}
	return object, nil
}

// start runs informers and waits until they have read everything once.
func (o *observer) start(ctx context.Context, started ...cache.SharedIndexInformer) error {
	var errs []error
	var synced []cache.InformerSynced
	for _, informer := range started {
		hasSynced, err := o.run(ctx, informer)
		errs, synced = append(errs, err), append(synced, hasSynced)
	}
	return o.waitFor(ctx, synced, errs...)
}

// run runs an informer until ctx ends, and returns what reports whether it has read
// everything once.
func (o *observer) run(ctx context.Context, informer cache.SharedIndexInformer) (cache.InformerSynced, error) {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { o.notify() },
		UpdateFunc: func(_, _ any) { o.notify() },
		DeleteFunc: func(any) { o.notify() },
	})
	if err != nil {
		return nil, err
	}
	// The reflector connects again by itself; its log would run into the output.
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		o.noteTrouble(err)
	}); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return registration.HasSynced, nil
}

func (o *observer) waitFor(ctx context.Context, synced []cache.InformerSynced, errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return context.Cause(ctx)
	}
	return nil
}

// noteTrouble notes that a watch has failed. Watches also end without any trouble, and
// are begun again from where they were, or from the start where that is too long ago.
func (o *observer) noteTrouble(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	o.trouble.Store(&trouble{at: o.clock.Now(), err: err})
	o.notify()
}

// probeInterval is how often the server is probed, and how long it may take to answer.
const probeInterval = 5 * time.Second

// probe asks the server for a sign of life, if the last one is long ago. A reflector that
// finds nobody to connect to tries again for ever and tells nobody, and a connection that
// was cut without a word looks like one on which nothing happens.
func (o *observer) probe(ctx context.Context, now time.Time) {
	if now.Sub(o.probed) < probeInterval || !o.probing.CompareAndSwap(false, true) {
		return
	}
	o.probed = now
	go func() {
		defer o.probing.Store(false)
		limited, cancel := context.WithTimeout(ctx, probeInterval)
		defer cancel()
		_, err := o.client.CoordinationV1alpha1().NodeMaintenances().List(limited, metav1.ListOptions{Limit: 1, FieldSelector: o.selector()})
		if err != nil && ctx.Err() == nil {
			o.noteTrouble(err)
		}
	}()
}

// trouble is a request that has failed.
type trouble struct {
	at  time.Time
	err error
}

// troubleText says that what is shown may be old. Failed attempts follow each other
// within a minute, so an older one has been overcome.
func (o *observer) troubleText(now time.Time) string {
	last := o.trouble.Load()
	if last == nil || now.Sub(last.at) > time.Minute {
		return ""
	}
	return plaintext.Line("What is shown may be old, trying again: " + last.err.Error())
}

func (o *observer) notify() {
	select {
	case o.changed <- struct{}{}:
	default: // There is a note already.
	}
}

// snapshot returns what the server said last.
func (o *observer) snapshot(ctx context.Context) (*snapshot, error) {
	s := &snapshot{unreadable: o.unreadable}
	maintenances := objects[coordinationv1alpha1.NodeMaintenance](o.maintenances)
	s.setMaintenances(slices.DeleteFunc(maintenances, func(nm *coordinationv1alpha1.NodeMaintenance) bool {
		return len(o.names) > 0 && !slices.Contains(o.names, nm.Name)
	}))
	s.setNodes(objects[corev1.Node](o.nodes))
	s.setRequests(objects[coordinationv1alpha1.EvictionRequest](o.requests))
	s.setBudgets(objects[policyv1.PodDisruptionBudget](o.budgets))
	if s.readable("pods") {
		if err := o.watchPods(ctx, s); err != nil {
			return nil, err
		}
	}
	var pods []*corev1.Pod
	s.nodesRead = sets.New[string]()
	for node, informer := range o.pods {
		s.nodesRead.Insert(node)
		pods = append(pods, objects[corev1.Pod](informer)...)
	}
	s.setPods(pods)
	return s, nil
}

// watchPods starts to watch the pods of nodes that are new among those to be read, and
// ends the watches of others, so that they do not become many.
func (o *observer) watchPods(ctx context.Context, s *snapshot) error {
	wanted := sets.New(s.nodesToRead(s.maintenances)...)
	for node, watched := range o.pods {
		if !wanted.Has(node) {
			watched.stop()
			delete(o.pods, node)
		}
	}
	var errs []error
	var synced []cache.InformerSynced
	for node := range wanted {
		if _, watched := o.pods[node]; watched {
			continue
		}
		watching, stop := context.WithCancel(ctx)
		o.pods[node] = podWatch{o.factory(podsOfNode(node)).Core().V1().Pods().Informer(), stop}
		hasSynced, err := o.run(watching, o.pods[node])
		errs, synced = append(errs, err), append(synced, hasSynced)
	}
	return o.waitFor(ctx, synced, errs...)
}

// objects returns what an informer has, or nothing where there is none.
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

// redrawInterval is the least time between two looks at the objects: a drain changes
// hundreds of them per second.
const redrawInterval = 300 * time.Millisecond
