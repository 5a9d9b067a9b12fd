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
	// pods by the field selector that they are read under. There are as many as the
	// maintenances have nodes, or one for all pods where these are many.
	pods       map[string]cache.SharedIndexInformer
	unreadable []string

	clock clock.PassiveClock
	// trouble is the last failure of a watch.
	trouble atomic.Pointer[trouble]
}

// newObserver starts the watches. They end with ctx.
func newObserver(ctx context.Context, client kubernetes.Interface, names []string, clock clock.PassiveClock) (*observer, error) {
	o := &observer{client: client, names: names, clock: clock, changed: make(chan struct{}, 1), pods: map[string]cache.SharedIndexInformer{}}
	if err := o.findUnreadable(ctx); err != nil {
		return nil, err
	}
	// With one name the watch is narrowed, which also does with the right to read just
	// that one.
	selector := ""
	if len(names) == 1 {
		selector = "metadata.name=" + names[0]
	}
	o.maintenances = o.factory(selector).Coordination().V1alpha1().NodeMaintenances().Informer()
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
		{"pods", func() error { _, err := o.client.CoreV1().Pods("").List(ctx, one); return err }},
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
	var synced []cache.InformerSynced
	for _, informer := range started {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { o.notify() },
			UpdateFunc: func(_, _ any) { o.notify() },
			DeleteFunc: func(any) { o.notify() },
		})
		if err != nil {
			return err
		}
		// The reflector connects again by itself; its log would run into the output.
		if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			o.noteTrouble(err)
		}); err != nil {
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

// noteTrouble notes that a watch has failed. Watches also end without any trouble, and
// are begun again from where they were, or from the start where that is too long ago.
func (o *observer) noteTrouble(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	o.trouble.Store(&trouble{at: o.clock.Now(), err: err})
	o.notify()
}

// trouble is a watch that has failed.
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
	for _, informer := range o.pods {
		pods = append(pods, objects[corev1.Pod](informer)...)
	}
	s.setPods(pods)
	return s, nil
}

// watchPods starts to watch the pods of nodes that are new in a drain. Those of nodes
// that have left it stay: few, and of no consequence.
func (o *observer) watchPods(ctx context.Context, s *snapshot) error {
	var nodes []string
	for _, nm := range s.maintenances {
		if nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
			for _, node := range s.selectedNodes(nm.Spec.NodeSelector) {
				nodes = append(nodes, node.Name)
			}
		}
	}
	var started []cache.SharedIndexInformer
	for _, selector := range podSelectors(unique(nodes)) {
		if o.pods[selector] == nil && o.pods[""] == nil {
			o.pods[selector] = o.factory(selector).Core().V1().Pods().Informer()
			started = append(started, o.pods[selector])
		}
	}
	return o.start(ctx, started...)
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
