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
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/node/maintenance"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
)

// settlingUntil returns until when the maintenance waits at most for pods that replace those of its last
// nodes, which are drained; zero if it does not. These are pods of a controller that were created since the
// nodes were admitted. Other new pods that are not ready count as well: which one replaces which, nothing says.
func (d departedNodes) settlingUntil(m *coordinationv1alpha1.NodeMaintenance, drained func() map[types.UID][]departedNode, now time.Time, newestUnready func() time.Time) time.Time {
	if m.Spec.Rollout == nil || m.Spec.Rollout.Settle == nil {
		return time.Time{}
	}
	timeout := time.Duration(ptr.Deref(m.Spec.Rollout.Settle.TimeoutSeconds, int32(defaultSettleTimeout/time.Second))) * time.Second
	var since, until time.Time
	add := func(admitted, end time.Time) {
		over := end.Add(timeout)
		if !now.Before(over) {
			return
		}
		if since.IsZero() || admitted.Before(since) {
			since = admitted
		}
		if over.After(until) {
			until = over
		}
	}
	for _, node := range drained()[m.UID] {
		add(node.admitted, node.end)
	}
	for _, node := range d[m.UID] {
		add(node.admitted, node.end)
	}
	if since.IsZero() || newestUnready().Before(since) {
		return time.Time{}
	}
	return until
}

// drainedNodes returns the nodes that were drained a while ago at most, by those of the maintenances that wait for
// pods.
func drainedNodes(nodes []*v1.Node, maintenances []*coordinationv1alpha1.NodeMaintenance, now time.Time) map[types.UID][]departedNode {
	drained := map[types.UID][]departedNode{}
	for _, m := range maintenances {
		if m.Spec.Rollout != nil && m.Spec.Rollout.Settle != nil {
			drained[m.UID] = nil
		}
	}
	for _, node := range nodes {
		admissions := maintenance.Admissions(node)
		for i := range admissions {
			a := &admissions[i]
			if a.DrainedTime == nil || now.Sub(endOf(a)) > maxSettleTimeout {
				continue
			}
			if known, settles := drained[a.MaintenanceUID]; settles {
				drained[a.MaintenanceUID] = append(known, departedNode{a.AdmittedTime.Time, endOf(a)})
			}
		}
	}
	return drained
}

// endOf returns when the work on a drained node was done, or when it was drained, if it is not done.
func endOf(a *v1.MaintenanceAdmission) time.Time {
	if a.DoneTime != nil && a.DoneTime.After(a.DrainedTime.Time) {
		return a.DoneTime.Time
	}
	return a.DrainedTime.Time
}

// departedNodes has, by maintenance, the nodes that were deleted after it had begun with them: their place is
// free at once, and their pods have to run elsewhere before the next one is taken. A new process does not
// know them. Only the worker of admissions uses it.
type departedNodes map[types.UID][]departedNode

// departedNode is a node that was drained or deleted: when it was admitted, and when the work on it was done.
type departedNode struct{ admitted, end time.Time }

// note records that a node was deleted.
func (d departedNodes) note(node *v1.Node, now time.Time) {
	for uid, nodes := range d {
		if d[uid] = slices.DeleteFunc(nodes, func(n departedNode) bool { return now.Sub(n.end) > maxSettleTimeout }); len(d[uid]) == 0 {
			delete(d, uid)
		}
	}
	for _, a := range maintenance.Admissions(node) {
		end := now.Truncate(time.Second)
		if a.DrainedTime != nil && a.DoneTime != nil {
			end = endOf(&a)
		}
		d[a.MaintenanceUID] = append(d[a.MaintenanceUID], departedNode{a.AdmittedTime.Time, end})
	}
}

// unreadyIndex has the pods that replace others, maybe, and are not ready, under one key: to look at all
// pods for each decision on admissions would take longer than everything else about it.
const (
	unreadyIndex = "nodemaintenance.unreadyReplacement"
	unreadyKey   = "unready"
)

func addUnreadyIndexer(pods cache.SharedIndexInformer) error {
	return pods.AddIndexers(cache.Indexers{unreadyIndex: func(obj any) ([]string, error) {
		if pod, ok := obj.(*v1.Pod); ok && isReplacement(pod) && !podutil.IsPodReady(pod) {
			return []string{unreadyKey}, nil
		}
		return nil, nil
	}})
}

// newestUnready returns when the newest pod was created that replaces another, maybe, and is not ready;
// zero if all are. One decision asks it once, for all maintenances.
func newestUnready(indexer cache.Indexer) time.Time {
	var newest time.Time
	pods, err := indexer.ByIndex(unreadyIndex, unreadyKey)
	if err != nil {
		return newest // Only without the gate there is no such index.
	}
	for _, object := range pods {
		if created := object.(*v1.Pod).CreationTimestamp.Time; created.After(newest) {
			newest = created
		}
	}
	return newest
}

// isReplacement reports whether a controller keeps the pod running, on whichever node.
func isReplacement(pod *v1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind != "Job" && maintenance.PodTypeOf(pod) == v1.PodTypeDefault &&
		pod.DeletionTimestamp == nil && maintenance.IsLeft(pod)
}

const (
	// defaultSettleTimeout is the default of the API, should an object lack the field.
	defaultSettleTimeout = 10 * time.Minute

	// maxSettleTimeout is the longest that the API allows.
	maxSettleTimeout = 24 * time.Hour

	// settleInterval is how often the replacements of pods are looked at while nodes wait for them.
	settleInterval = time.Second
)
