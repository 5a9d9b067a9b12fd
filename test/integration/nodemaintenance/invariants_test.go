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
	"fmt"
	"slices"
	"strconv"
	"sync"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// history is all that has happened to nodes, maintenances, pods and requests. One etcd
// has them all, so that their resourceVersions put what happened in order.
type history struct {
	lock   sync.Mutex
	events []change
	seen   map[string]uint64
}

// change is an object as it was from that version on; deleted, if it ended then.
type change struct {
	version uint64
	deleted bool
	object  runtime.Object
}

// watchAll records what happens from now on until the test ends.
func (c *cluster) watchAll() *history {
	c.t.Helper()
	h := &history{seen: map[string]uint64{}}
	var options metav1.ListOptions
	for _, start := range []func(context.Context, metav1.ListOptions) (watch.Interface, error){
		c.client.CoreV1().Nodes().Watch,
		c.client.CoreV1().Pods(c.namespace).Watch,
		c.client.CoordinationV1alpha1().NodeMaintenances().Watch,
		c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Watch,
	} {
		watcher, err := start(c.t.Context(), options)
		if err != nil {
			c.t.Fatalf("watching: %v", err)
		}
		var running sync.WaitGroup
		running.Go(func() {
			for event := range watcher.ResultChan() {
				h.add(event)
			}
		})
		c.t.Cleanup(func() {
			watcher.Stop()
			running.Wait()
		})
	}
	return h
}

func (h *history) add(event watch.Event) {
	if event.Type == watch.Error || event.Type == watch.Bookmark {
		return
	}
	version, uid := versionOf(event.Object)
	h.lock.Lock()
	defer h.lock.Unlock()
	h.events = append(h.events, change{version: version, deleted: event.Type == watch.Deleted, object: event.Object})
	h.seen[uid] = version
}

func versionOf(object runtime.Object) (version uint64, uid string) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return 0, ""
	}
	version, err = strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, ""
	}
	return version, string(accessor.GetUID())
}

// catchUp waits until the history has all that there is now, and returns it in order.
func (h *history) catchUp(c *cluster) []change {
	c.t.Helper()
	c.eventually("the watches to catch up", func(ctx context.Context) (bool, string) {
		var all []runtime.Object
		for _, list := range []func(context.Context) (runtime.Object, error){
			func(ctx context.Context) (runtime.Object, error) {
				return c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			},
			func(ctx context.Context) (runtime.Object, error) {
				return c.client.CoordinationV1alpha1().NodeMaintenances().List(ctx, metav1.ListOptions{})
			},
			func(ctx context.Context) (runtime.Object, error) {
				return c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).List(ctx, metav1.ListOptions{})
			},
		} {
			found, err := list(ctx)
			if err != nil {
				return false, err.Error()
			}
			items, err := meta.ExtractList(found)
			if err != nil {
				return false, err.Error()
			}
			all = append(all, items...)
		}
		h.lock.Lock()
		defer h.lock.Unlock()
		for _, object := range all {
			if version, uid := versionOf(object); h.seen[uid] < version {
				return false, fmt.Sprintf("%T %s at %d, must be at %d", object, uid, h.seen[uid], version)
			}
		}
		return true, ""
	})
	h.lock.Lock()
	defer h.lock.Unlock()
	slices.SortStableFunc(h.events, func(a, b change) int { return cmp.Compare(a.version, b.version) })
	return h.events
}

// world is how things were at one time.
type world struct {
	nodes        map[string]*v1.Node
	pods         map[string]*v1.Pod // By UID.
	maintenances map[string]*coordinationv1alpha1.NodeMaintenance
	requests     map[string]*coordinationv1alpha1.EvictionRequest
}

// expectInvariants fails if what must hold at all times did not hold once.
func (c *cluster) expectInvariants(h *history) {
	c.t.Helper()
	w := &world{
		nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{},
		maintenances: map[string]*coordinationv1alpha1.NodeMaintenance{}, requests: map[string]*coordinationv1alpha1.EvictionRequest{},
	}
	checked := 0
	for _, change := range h.catchUp(c) {
		for _, wrong := range w.apply(change) {
			c.t.Errorf("at version %d: %s", change.version, wrong)
		}
		checked++
	}
	if checked == 0 {
		c.t.Error("nothing was watched: the invariants say nothing")
	}
}

// apply takes over a change and returns what it breaks.
func (w *world) apply(c change) []string {
	switch object := c.object.(type) {
	case *v1.Node:
		before := w.nodes[object.Name]
		w.nodes[object.Name] = object
		if c.deleted {
			delete(w.nodes, object.Name)
		} else if before != nil && before.UID == object.UID {
			return w.checkNode(before, object)
		}
	case *v1.Pod:
		w.pods[string(object.UID)] = object
		if c.deleted {
			delete(w.pods, string(object.UID))
		}
	case *coordinationv1alpha1.NodeMaintenance:
		w.maintenances[object.Name] = object
		if c.deleted {
			delete(w.maintenances, object.Name)
		}
		return w.checkMaintenance(object, c.deleted)
	case *coordinationv1alpha1.EvictionRequest:
		before := w.requests[object.Name]
		w.requests[object.Name] = object
		if c.deleted {
			delete(w.requests, object.Name)
		} else if !isAsking(before) && isAsking(object) {
			return w.checkRequest(object)
		}
	}
	return nil
}

// checkNode judges a change of a node: its targets never step back while it is drained,
// it is held only by those who have their finalizer, and given up when nobody holds it.
func (w *world) checkNode(before, node *v1.Node) []string {
	var wrong []string
	was, is := before.Status.MaintenanceStatus, node.Status.MaintenanceStatus
	if was != nil && is != nil && len(is.DrainTargets) > 0 {
		old, _ := maintenance.NewTargets(was.DrainTargets)
		now, err := maintenance.NewTargets(is.DrainTargets)
		if err != nil || !now.Reaches(old) {
			wrong = append(wrong, fmt.Sprintf("the targets of node %s stepped back from %s to %s", node.Name, old, now))
		}
	}
	holders := w.holders(node)
	if !before.Spec.Unschedulable && node.Spec.Unschedulable && len(holders) == 0 && isController(node) {
		wrong = append(wrong, fmt.Sprintf("node %s was cordoned, and nobody holds it", node.Name))
	}
	if before.Spec.Unschedulable && !node.Spec.Unschedulable && len(holders) > 0 && isController(node) {
		wrong = append(wrong, fmt.Sprintf("node %s was uncordoned, and %v hold it", node.Name, holders))
	}
	return wrong
}

// isController tells whether the last who has set spec.unschedulable is the controller.
func isController(node *v1.Node) bool {
	return slices.ContainsFunc(node.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == "nodemaintenance-controller" && entry.Subresource == ""
	})
}

// holders names the maintenances that may hold a node.
func (w *world) holders(node *v1.Node) []string {
	var names []string
	for name, m := range w.maintenances {
		holds := m.Spec.Stage == stageCordon || m.Spec.Stage == stageDrain
		if holds && slices.Contains(m.Finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer) && selects(m, node) {
			names = append(names, name)
		}
	}
	return names
}

func selects(m *coordinationv1alpha1.NodeMaintenance, node *v1.Node) bool {
	selector, err := nodeaffinity.NewNodeSelector(m.Spec.NodeSelector)
	return err == nil && selector.Match(node)
}

// checkMaintenance judges a maintenance: it is drained only when nothing is left, and
// goes only when it holds nothing.
func (w *world) checkMaintenance(m *coordinationv1alpha1.NodeMaintenance, gone bool) []string {
	var wrong []string
	claimed := m.Spec.Stage == stageDrain && drainedCondition(m) != nil && drainedCondition(m).Status == metav1.ConditionTrue
	finished := m.Spec.Stage == stageComplete && !slices.Contains(m.Finalizers, coordinationv1alpha1.NodeMaintenanceFinalizer) && hasStage(m, stageComplete)
	for _, node := range w.nodes {
		if !selects(m, node) {
			continue
		}
		for _, pod := range w.pods {
			if claimed && pod.Spec.NodeName == node.Name && maintenance.IsLeft(pod) {
				wrong = append(wrong, fmt.Sprintf("maintenance %s claims to be drained, and pod %s is left on node %s", m.Name, pod.Name, node.Name))
			}
		}
		if (finished || gone) && len(w.holders(node)) == 0 && node.Status.MaintenanceStatus != nil {
			wrong = append(wrong, fmt.Sprintf("maintenance %s is over, and nobody has given node %s back", m.Name, node.Name))
		}
	}
	return wrong
}

func hasStage(m *coordinationv1alpha1.NodeMaintenance, name coordinationv1alpha1.NodeMaintenanceStage) bool {
	return slices.ContainsFunc(m.Status.StageStatuses, func(stage coordinationv1alpha1.StageStatus) bool { return stage.Name == name })
}

// isAsking tells whether the controller stands among the requesters.
func isAsking(request *coordinationv1alpha1.EvictionRequest) bool {
	return request != nil && slices.ContainsFunc(request.Spec.Requesters, func(r coordinationv1alpha1.Requester) bool {
		return r.Name == coordinationv1alpha1.NodeMaintenanceRequester
	})
}

// checkRequest judges that the controller asks for a pod: its node must have said so.
func (w *world) checkRequest(request *coordinationv1alpha1.EvictionRequest) []string {
	pod := w.pods[request.Name]
	if pod == nil {
		return nil // It ended at the same time.
	}
	node := w.nodes[pod.Spec.NodeName]
	if node == nil || node.Status.MaintenanceStatus == nil {
		return []string{fmt.Sprintf("pod %s was asked to leave node %s, which is not drained", pod.Name, pod.Spec.NodeName)}
	}
	targets, err := maintenance.NewTargets(node.Status.MaintenanceStatus.DrainTargets)
	if err != nil || !targets.Take(pod) {
		return []string{fmt.Sprintf("pod %s was asked to leave node %s, whose targets are %s", pod.Name, node.Name, targets)}
	}
	return nil
}
