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
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
)

// lingerTime is how long an interceptor runs after the end of its mirror pod, for its last report.
const lingerTime = 10 * time.Second

// errRefused is the message of the request of a pod that was started again.
var errRefused = errors.New("the kubelet does not stop the pod again during this maintenance, because the control plane did not answer or did not process its end: to stop it, remove its manifest from the node")

// podInterceptor is the interceptor of one mirror pod.
type podInterceptor struct {
	manager        *Manager
	static, mirror *v1.Pod
	cancel         context.CancelFunc
	// goneSince is when the mirror pod was first missing.
	goneSince time.Time
	// requests has the request for the mirror pod.
	requests cache.SharedIndexInformer
	// cutOff means that the request cannot be read any more, so that requests may be outdated.
	cutOff atomic.Bool
	// declined means that a turn was not accepted, which the library does not try again by itself.
	declined atomic.Bool
	// reconsider makes the library try that.
	reconsider func()
}

// updateInterceptors runs an interceptor for each mirror pod that the drain targets take. Without
// such pods, the kubelet reads no EvictionRequests.
func (m *Manager) updateInterceptors(ctx context.Context, targets maintenance.Targets) {
	exists := map[types.UID]bool{}
	for _, mirror := range m.mirrorPods() {
		exists[mirror.UID] = true
		if m.interceptors[mirror.UID] != nil || !targets.Take(mirror) || !maintenance.IsLeft(mirror) {
			continue
		}
		if static, ok := m.Pods.GetPodByMirrorPod(mirror); ok {
			m.startInterceptor(ctx, static.DeepCopy(), mirror.DeepCopy())
		}
	}
	now := m.Clock.Now()
	for uid, i := range m.interceptors {
		if !exists[uid] && i.goneSince.IsZero() {
			i.goneSince = now
		}
		isDone := !exists[uid] && now.Sub(i.goneSince) >= lingerTime && (m.current == nil || m.current.interceptor != i)
		if isDone || !targets.Take(i.mirror) {
			i.cancel()
			delete(m.interceptors, uid)
		} else if i.declined.Swap(false) {
			i.reconsider()
		}
	}
}

// startInterceptor starts an interceptor that reads only the request for its mirror pod, whose name
// is the UID of the pod. The node authorizer allows no more.
func (m *Manager) startInterceptor(ctx context.Context, static, mirror *v1.Pod) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KObj(mirror), "mirrorPodUID", mirror.UID)
	factory := informers.NewSharedInformerFactoryWithOptions(m.Client, 0, informers.WithNamespace(mirror.Namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, string(mirror.UID)).String()
		}))
	informer := factory.Coordination().V1alpha1().EvictionRequests()
	i := &podInterceptor{manager: m, static: static, mirror: mirror, requests: informer.Informer()}
	interceptor, err := evictionrequest.NewInterceptor(evictionrequest.InterceptorConfig{
		Client:     m.Client,
		Name:       coordinationv1alpha1.EvictionInterceptorKubelet,
		Informer:   informer,
		Persistent: true,
		Accept: func(request *coordinationv1alpha1.EvictionRequest) bool {
			return evictionrequest.IsWanted(request) && i.accept(ctx)
		},
		Handle: i.handle,
		Clock:  m.Clock,
	})
	if err == nil {
		err = i.requests.SetWatchErrorHandlerWithContext(i.watchFailed)
	}
	if err != nil {
		logger.Error(err, "Static pod will not be stopped for the maintenance of the node")
		return
	}
	i.reconsider = func() { interceptor.Reconsider(mirror.Namespace, string(mirror.UID)) }
	logger.Info("Drain targets of the node include a static pod")
	ctx, i.cancel = context.WithCancel(ctx)
	m.interceptors[mirror.UID] = i
	factory.StartWithContext(ctx)
	go func() {
		if err := interceptor.Run(ctx); err != nil {
			logger.Error(err, "Static pod will not be stopped for the maintenance of the node")
		}
	}()
}

// accept reports whether the turn may start. If it may not, it is asked again in later syncs: the
// node may be unknown only for a moment.
func (i *podInterceptor) accept(ctx context.Context) bool {
	takes := i.manager.takes(ctx, i.mirror)
	i.declined.Store(!takes)
	return takes
}

// watchFailed notes that the request cannot be read any more: a node may read only requests for its
// own pods, so it may not read that of a mirror pod which is gone. Other errors pass, such as those of
// an API server that starts.
func (i *podInterceptor) watchFailed(ctx context.Context, r *cache.Reflector, err error) {
	if state, _ := i.manager.Holds.observe(keyOf(i.mirror)); state == ended && apierrors.IsForbidden(err) {
		i.cutOff.Store(true)
	}
	cache.DefaultWatchErrorHandler(ctx, r, err)
}

// isProcessed reports whether the request has ended or is gone: a controller has processed the end of
// the mirror pod.
func (i *podInterceptor) isProcessed() bool {
	obj, exists, err := i.requests.GetIndexer().GetByKey(cache.NewObjectName(i.mirror.Namespace, string(i.mirror.UID)).String())
	if err != nil || !exists {
		return true
	}
	return evictionrequest.IsFinished(obj.(*coordinationv1alpha1.EvictionRequest).Status.Conditions)
}

// waitForBegin waits until the stop has begun. The message is not set before the pod has to wait for
// another, because the next message would replace it seconds later.
func (i *podInterceptor) waitForBegin(ctx context.Context, turn *evictionrequest.Turn) error {
	w := i.manager.ask(i, turn.Request().UID)
	defer i.manager.drop(w)
	waiting := i.manager.Clock.After(3 * syncInterval)
	for {
		select {
		case err := <-w.begun:
			return err
		case <-waiting:
			turn.SetMessage(fmt.Sprintf("Waiting to stop the static pod for the maintenance of node %s: one static pod stops at a time.", i.static.Spec.NodeName))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// handle asks for the stop of the pod, and reports until it has ended. The manager continues a stop
// that has begun also if the turn ends.
func (i *podInterceptor) handle(ctx context.Context, turn *evictionrequest.Turn) error {
	m, key := i.manager, keyOf(i.mirror)
	if err := i.waitForBegin(ctx, turn); err != nil {
		return err
	}
	turn.SetMessage(fmt.Sprintf("Terminating the static pod for the maintenance of node %s.", i.static.Spec.NodeName))
	turn.SetExpectedFinishTime(m.Clock.Now().Add(gracePeriod(i.static)))
	for {
		state, changed := m.Holds.observe(key)
		switch state {
		case ended, held:
			turn.SetMessage(fmt.Sprintf("Terminated the static pod, which stays away until the end of the maintenance of node %s.", i.static.Spec.NodeName))
			return nil
		case refused:
			return errRefused
		case running:
			return errReleased
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func gracePeriod(pod *v1.Pod) time.Duration {
	seconds := int64(v1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}
