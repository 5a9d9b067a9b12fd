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

package interceptedeviction

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	api "k8s.io/kubernetes/pkg/apis/core"
)

const (
	// refusalTTL is for how long a caller is expected to call again, with the same name. It is
	// longer than kubectl (5 seconds) and cluster-autoscaler (10 seconds) wait. It is not much
	// longer, because a caller that has ended leaves a refusal behind: if the next one, of the same
	// user, evicts the successor by name within this time, it may be told once that the pod is gone.
	refusalTTL = 15 * time.Second

	// maxRefusals limits the memory. It is far more than the pods for which evictors wait at a time.
	maxRefusals = 50000
)

// refusals are the recent evictions that have to wait, and whose callers name a pod without a UID.
//
// Such a caller does not know that the pod has left if another pod gets its name before the next
// call, as pods of StatefulSets do. It would evict pod after pod of that name, wherever they run.
// Therefore it is told once that the pod is gone, and treats that as a success. It is not if the node of
// the other pod is being emptied: a caller who drains that node would take it for drained.
//
// They are kept in memory: after a restart, or if the next call arrives at another server, one more
// pod of that name is moved.
type refusals struct {
	pods *cache.LRUExpireCache
}

func newRefusals() *refusals { return &refusals{pods: cache.NewLRUExpireCache(maxRefusals)} }

// refusal is who evicts which pod by name.
type refusal struct{ namespace, name, user string }

func (e *eviction) refusal() refusal {
	return refusal{namespace: e.GetNamespace(), name: e.GetName(), user: e.GetUserInfo().GetName()}
}

// isByName reports whether the eviction may mean a pod that was replaced.
func (e *eviction) isByName() bool {
	return len(e.dryRun) == 0 && (e.preconditions == nil || e.preconditions.UID == nil || *e.preconditions.UID == "")
}

// note records that the eviction has to wait.
func (r *refusals) note(e *eviction) {
	if e.isByName() {
		r.pods.Add(e.refusal(), e.pod.UID, refusalTTL)
	}
}

// forget drops the refusal of an eviction that is admitted: its caller does not call again.
func (r *refusals) forget(e *eviction) {
	if e.isByName() {
		r.pods.Remove(e.refusal())
	}
}

// replacedBy reports whether the caller was refused for another pod of this name, which is gone, and
// returns the UID of that one. It does so once.
func (r *refusals) replacedBy(e *eviction) (former types.UID, replaced bool) {
	if !e.isByName() || e.pod == nil {
		return "", false
	}
	noted, found := r.pods.Get(e.refusal())
	if !found || noted.(types.UID) == e.pod.UID {
		return "", false
	}
	r.forget(e)
	return noted.(types.UID), true
}

// isEmptied reports whether new pods are kept away from the node of the pod. Who drains a node begins
// with that, so the node is read from the API server. The pod was there before if it does not tolerate
// a taint. If the node cannot be read, the pod counts as one that the caller means: at worst it is moved.
func (p *Plugin) isEmptied(ctx context.Context, pod *v1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	node, err := p.client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	keepsAway := func(taint *v1.Taint) bool { return taint.Effect != v1.TaintEffectPreferNoSchedule }
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.FromContext(ctx), node.Spec.Taints, pod.Spec.Tolerations, keepsAway, false)
	return node.Spec.Unschedulable || untolerated
}

// gone returns the status for an eviction of a pod that was replaced.
func (e *eviction) gone(former types.UID) error {
	err := apierrors.NewNotFound(api.Resource("pods"), e.GetName())
	err.ErrStatus.Message += fmt.Sprintf(": the pod with the UID %s, which was to be evicted, has left, and its name belongs to another pod: "+
		"set deleteOptions.preconditions.uid to %s to evict that one", former, e.pod.UID)
	return err
}
