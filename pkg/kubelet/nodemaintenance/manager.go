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

package nodemaintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance/metrics"
	"k8s.io/utils/clock"
)

const (
	// syncInterval is the time between two syncs. A sync without a maintenance reads one object
	// from a cache.
	syncInterval = time.Second

	// outageTimeout is how long the API server may not answer after the end of a static pod. It is
	// longer than the restart of an API server, and shorter than what makes a node unhealthy.
	outageTimeout = 30 * time.Second

	// controllerTimeout is how long the controllers may take to process the end of a static pod. It
	// is longer than another instance of them takes to become the leader and read all objects.
	controllerTimeout = 2 * time.Minute
)

// Pods is what the kubelet knows of its pods.
type Pods interface {
	// GetPodsAndMirrorPods returns, second, the mirror pods that the API server has.
	GetPodsAndMirrorPods() (pods, mirrorPods []*v1.Pod, orphanedMirrorPods []string)
	// GetPodByMirrorPod returns the static pod of a mirror pod, if the kubelet sees it.
	GetPodByMirrorPod(mirror *v1.Pod) (*v1.Pod, bool)
}

// Config has what a Manager needs of the kubelet.
type Config struct {
	// Client is for EvictionRequests.
	Client clientset.Interface
	// Holds has the states of the static pods.
	Holds *Holds
	// Node returns the node as it was last seen, or an error if it was not seen or does not exist.
	Node func() (*v1.Node, error)
	Pods Pods
	// HasContainers reports whether the static pod with this UID can have running containers.
	HasContainers func(types.UID) bool
	// IsForgotten reports whether the kubelet has forgotten the static pod with this UID: if it comes
	// back, it is admitted as another one.
	IsForgotten func(types.UID) bool
	// GetNode asks the API server for the node. It returns an error if the server does not answer
	// within a few seconds.
	GetNode func(context.Context) (*v1.Node, error)
	// GetRequest asks the API server for an EvictionRequest. It uses the Client by default.
	GetRequest func(ctx context.Context, namespace, name string) (*coordinationv1alpha1.EvictionRequest, error)
	// Merge makes the kubelet see changes of Holds.
	Merge func(context.Context)
	// Recorder records events of the node NodeRef.
	Recorder record.EventRecorder
	NodeRef  *v1.ObjectReference
	// Clock is the real one by default.
	Clock clock.WithTicker
}

// Manager stops, holds and releases static pods.
type Manager struct {
	Config

	// interceptors has the interceptors of mirror pods, by their UIDs. Only sync accesses it and
	// current.
	interceptors map[types.UID]*podInterceptor
	// current is the stop that has begun and is not decided, nil if there is none.
	current *stop
	// delayed means that a pod waits for an answer of the API server, which was logged.
	delayed bool

	// lock protects wishes.
	lock sync.Mutex
	// wishes are the pods that wait to be stopped.
	wishes []*wish
}

// wish asks for the stop of a static pod.
type wish struct {
	*podInterceptor
	// request is the UID of the EvictionRequest.
	request types.UID
	// begun receives nil when the stop has begun, or why it has not.
	begun chan error
}

// stop is the stop of a static pod.
type stop struct {
	key         types.NamespacedName
	interceptor *podInterceptor
	// terminated is when the containers had ended, zero before.
	terminated time.Time
	// lastAnswer is when the API server last answered after that.
	lastAnswer time.Time
	// status is the maintenance status of the node in the first answer, and changed whether a
	// controller has changed it since.
	status  *v1.MaintenanceStatus
	changed bool
	// failed means that the failure to store the end was reported.
	failed bool
}

// errNotWanted means that nobody wants the stop any more, or that the request for it is gone.
var errNotWanted = errors.New("nobody requests the eviction any more")

// errReplaced means that the pod for which the stop was requested is gone.
var errReplaced = errors.New("the static pod was replaced or removed")

// NewManager returns a Manager.
func NewManager(config Config) *Manager {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.GetRequest == nil {
		config.GetRequest = func(ctx context.Context, namespace, name string) (*coordinationv1alpha1.EvictionRequest, error) {
			ctx, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			return config.Client.CoordinationV1alpha1().EvictionRequests(namespace).Get(ctx, name, metav1.GetOptions{})
		}
	}
	return &Manager{Config: config, interceptors: map[types.UID]*podInterceptor{}}
}

// Run runs the manager until the context is canceled.
func (m *Manager) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), "node-maintenance"))
	wait.BackoffUntilWithContext(ctx, m.sync, wait.NewJitteredBackoffManager(syncInterval, 0, m.Clock), true)
}

// sync makes one step. All decisions about states are made here, one after the other.
func (m *Manager) sync(ctx context.Context) {
	targets, known := m.targets(ctx)
	if known {
		m.updateInterceptors(ctx, targets)
	}
	m.step(ctx, targets, known)
}

// step releases pods, and makes the next step of a stop.
func (m *Manager) step(ctx context.Context, targets maintenance.Targets, known bool) {
	if known {
		m.release(ctx, targets)
	}
	m.advance(ctx)
	m.endReturns(ctx)
	if known && m.current == nil {
		m.beginNext(ctx)
	}
}

// targets returns the drain targets of the node, and whether they are known.
func (m *Manager) targets(ctx context.Context) (maintenance.Targets, bool) {
	node, err := m.Node()
	if err != nil {
		return maintenance.Targets{}, false
	}
	if node.Status.MaintenanceStatus == nil {
		return maintenance.Targets{}, true
	}
	targets, err := maintenance.NewTargets(node.Status.MaintenanceStatus.DrainTargets)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Invalid drain targets of the node: static pods stay as they are")
	}
	return targets, err == nil
}

// takes reports whether the drain targets of the node take the mirror pod. Unknown ones take none.
func (m *Manager) takes(ctx context.Context, mirror *v1.Pod) bool {
	targets, _ := m.targets(ctx)
	return targets.Take(mirror)
}

// release lets pods run that the drain targets do not take any more.
func (m *Manager) release(ctx context.Context, targets maintenance.Targets) {
	released, err := m.Holds.release(targets)
	if err != nil {
		m.reportError(ctx, err, "Could not store the release of static pods")
	}
	for _, s := range released {
		if s.State == stopping || s.State == ended {
			metrics.CountStop(metrics.Released)
		}
		klog.FromContext(ctx).Info("Released a static pod: no maintenance of the node includes it any more", "pod", s.key(), "state", s.State)
		m.event(v1.EventTypeNormal, ReleasedReason, "Released static pod %s: no maintenance of the node includes it any more", s.key())
	}
	if len(released) > 0 {
		m.Merge(ctx)
	}
}

// endReturns makes the kubelet see pods that return. That needs neither the node nor the API server.
func (m *Manager) endReturns(ctx context.Context) {
	if m.Holds.endReturns(m.IsForgotten) {
		m.Merge(ctx)
	}
}

// advance makes the next step of the current stop.
func (m *Manager) advance(ctx context.Context) {
	s := m.current
	if s == nil {
		return
	}
	state, _ := m.Holds.observe(s.key)
	mirror := m.mirrorPod(s.interceptor.mirror.UID) // Before the containers, which end first.
	hasContainers := m.HasContainers(s.interceptor.static.UID)
	switch {
	case state == running:
		m.current = nil // It was released.
		return
	case state == stopping && hasContainers && mirror == nil:
		m.startOver(ctx, s)
		return
	case state == stopping && hasContainers:
		return
	case state == ended && m.isProcessed(s):
		m.confirm(ctx, s)
		return
	}
	if m.watchOutage(ctx, s) && !m.hasMirrorPod(s.key) {
		m.Holds.end(s.key)
	}
}

// startOver runs a pod again whose mirror pod was deleted by someone else before it has ended.
// Controllers process that as the end of the pod, so it would not show that the control plane works
// without the pod. The new mirror pod gets another request, and the pod is stopped again.
func (m *Manager) startOver(ctx context.Context, s *stop) {
	m.Holds.giveUp(s.key)
	m.current = nil
	metrics.CountStop(metrics.Released)
	klog.FromContext(ctx).Info("Running a static pod again: its mirror pod was deleted before it ended", "pod", s.key)
	m.event(v1.EventTypeWarning, ReleasedReason, "Released static pod %s: its mirror pod was deleted before it ended. It is stopped again later", s.key)
}

// isProcessed reports whether a controller has processed the end of the pod: its request says so, or,
// if the kubelet may not read it, the status of the node, in which controllers count pods.
func (m *Manager) isProcessed(s *stop) bool {
	return s.interceptor.isProcessed() || s.interceptor.cutOff.Load() && s.changed
}

// confirm makes a pod held whose end the control plane has processed.
func (m *Manager) confirm(ctx context.Context, s *stop) {
	if err := m.Holds.confirm(s.key); err != nil {
		if !s.failed {
			m.reportError(ctx, err, fmt.Sprintf("Could not store that static pod %s must stay away: a restart of the kubelet would start it", s.key))
			s.failed = true
		}
		return // The next sync tries again.
	}
	m.current = nil
	metrics.CountStop(metrics.Held)
	klog.FromContext(ctx).Info("Static pod has stopped, and stays away until the end of the maintenance", "pod", s.key)
	m.event(v1.EventTypeNormal, HeldReason, "Static pod %s has stopped for the maintenance of the node, and stays away until its end", s.key)
}

// watchOutage starts a pod again if the control plane does not work without it, and reports whether
// the API server answers.
func (m *Manager) watchOutage(ctx context.Context, s *stop) bool {
	node, err := m.getNode(ctx)
	now := m.Clock.Now()
	if s.terminated.IsZero() {
		s.terminated, s.lastAnswer = now, now
	}
	if err == nil {
		s.answered(now, node)
		m.Holds.terminate(s.key)
	}
	state, _ := m.Holds.observe(s.key)
	late := err == nil && now.Sub(s.terminated) >= controllerTimeout
	switch {
	case now.Sub(s.lastAnswer) >= outageTimeout:
		m.refuse(ctx, s, fmt.Sprintf("the API server did not answer for %v without it: %v", outageTimeout, err))
	case late && state == ended:
		// Without them, nothing would ever release the pod.
		m.refuse(ctx, s, fmt.Sprintf("no controller processed its end within %v", controllerTimeout))
	case late && state == stopping && m.hasMirrorPod(s.key):
		// No other pod is stopped meanwhile, and a finalizer may keep the mirror pod forever.
		m.refuse(ctx, s, fmt.Sprintf("its mirror pod was not deleted within %v", controllerTimeout))
	}
	return err == nil
}

// getNode asks the API server for the node, nil if it does not exist.
func (m *Manager) getNode(ctx context.Context) (*v1.Node, error) {
	node, err := m.GetNode(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return node, err
}

// answered notes an answer of the API server after the end of the containers.
func (s *stop) answered(now time.Time, node *v1.Node) {
	s.lastAnswer = now
	if node == nil {
		return
	}
	if s.status == nil {
		s.status = node.Status.MaintenanceStatus
	}
	s.changed = s.changed || !equality.Semantic.DeepEqual(s.status, node.Status.MaintenanceStatus)
}

// refuse starts a pod again that the control plane needs.
func (m *Manager) refuse(ctx context.Context, s *stop, cause string) {
	if err := m.Holds.refuse(s.key); err != nil {
		m.reportError(ctx, err, fmt.Sprintf("Could not store that static pod %s must not be stopped", s.key))
	}
	m.current = nil
	metrics.CountStop(metrics.Refused)
	klog.FromContext(ctx).Error(nil, "Started a static pod again, because the control plane needs it", "pod", s.key, "cause", cause)
	m.event(v1.EventTypeWarning, RefusedReason, "Started static pod %s again, and will not stop it during this maintenance: %s", s.key, cause)
}

func (m *Manager) mirrorPods() []*v1.Pod {
	_, mirrors, _ := m.Pods.GetPodsAndMirrorPods()
	return mirrors
}

func (m *Manager) hasMirrorPod(key types.NamespacedName) bool {
	return slices.ContainsFunc(m.mirrorPods(), func(mirror *v1.Pod) bool { return keyOf(mirror) == key })
}

// mirrorPod returns the mirror pod with this UID, nil if there is none.
func (m *Manager) mirrorPod(uid types.UID) *v1.Pod {
	for _, mirror := range m.mirrorPods() {
		if mirror.UID == uid {
			return mirror
		}
	}
	return nil
}

// beginNext begins the stop of the pod with the lowest priority of those that wait and may stop.
func (m *Manager) beginNext(ctx context.Context) {
	w := m.nextWish()
	if w == nil || !m.apiServerAnswers(ctx) {
		return
	}
	for ; w != nil; w = m.nextWish() {
		err := m.begin(ctx, w)
		m.drop(w)
		w.begun <- err
		if err == nil {
			m.current = &stop{key: keyOf(w.static), interceptor: w.podInterceptor}
			m.Merge(ctx)
			return
		}
	}
}

// apiServerAnswers reports whether the API server answers before a stop: otherwise the pod would be
// suspected of the outage. An outage, which may take hours, is logged once.
func (m *Manager) apiServerAnswers(ctx context.Context) bool {
	_, err := m.getNode(ctx)
	if err != nil && !m.delayed {
		klog.FromContext(ctx).Info("Stopping no static pod while the API server does not answer", "err", err)
	}
	m.delayed = err != nil
	return err == nil
}

// begin starts to withhold a pod if the drain targets still take it, as it is now.
func (m *Manager) begin(ctx context.Context, w *wish) error {
	mirror := m.mirrorPod(w.mirror.UID)
	// Holds have names. A manifest that was edited has a new UID, and the kubelet replaces the
	// mirror pod, for which there is another request.
	if static, ok := m.Pods.GetPodByMirrorPod(w.mirror); mirror == nil || !ok || static.UID != w.static.UID {
		return errReplaced
	}
	if !m.takes(ctx, mirror) {
		return errReleased
	}
	if err := m.confirmWanted(ctx, w); err != nil {
		return err
	}
	if err := m.Holds.stop(mirror, w.static.UID); err != nil {
		if !errors.Is(err, errRefused) {
			m.reportError(ctx, err, fmt.Sprintf("Could not stop static pod %s", keyOf(w.static)))
		}
		return err
	}
	klog.FromContext(ctx).Info("Stopping a static pod for the maintenance of the node", "pod", klog.KObj(w.static), "podUID", w.static.UID, "mirrorPodUID", w.mirror.UID)
	m.event(v1.EventTypeNormal, StoppingReason, "Stopping static pod %s for the maintenance of the node", keyOf(w.static))
	return nil
}

// confirmWanted returns an error unless the API server says that the request wants the stop, which cannot be undone: the
// pod may have waited for long, and the kubelet may not have seen the withdrawal. The controller waits a moment for a
// stop that has begun just before.
func (m *Manager) confirmWanted(ctx context.Context, w *wish) error {
	request, err := m.GetRequest(ctx, w.mirror.Namespace, string(w.mirror.UID))
	switch {
	case apierrors.IsNotFound(err):
		return errNotWanted
	case err != nil:
		return fmt.Errorf("asking whether the eviction is still wanted: %w", err)
	case request.UID != w.request || evictionrequest.IsFinished(request.Status.Conditions) || !evictionrequest.IsWanted(request):
		return errNotWanted
	}
	return nil
}

// ask adds a wish for the request with this UID.
func (m *Manager) ask(i *podInterceptor, request types.UID) *wish {
	m.lock.Lock()
	defer m.lock.Unlock()
	w := &wish{podInterceptor: i, request: request, begun: make(chan error, 1)}
	m.wishes = append(m.wishes, w)
	return w
}

// drop removes a wish that is done or no longer needed.
func (m *Manager) drop(w *wish) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.wishes = slices.DeleteFunc(m.wishes, func(other *wish) bool { return other == w })
}

func (m *Manager) nextWish() *wish {
	m.lock.Lock()
	defer m.lock.Unlock()
	if len(m.wishes) == 0 {
		return nil
	}
	return slices.MinFunc(m.wishes, func(a, b *wish) int {
		return cmp.Or(
			cmp.Compare(maintenance.PodPriority(a.mirror), maintenance.PodPriority(b.mirror)),
			cmp.Compare(a.mirror.Namespace, b.mirror.Namespace),
			cmp.Compare(a.mirror.Name, b.mirror.Name),
		)
	})
}
