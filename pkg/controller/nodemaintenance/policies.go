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
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
	"k8s.io/utils/ptr"
)

const (
	// attachmentNodeIndex finds VolumeAttachments by the name of their node.
	attachmentNodeIndex = "nodemaintenance-node"

	// defaultSettleTimeout is the default of the API, for objects that were stored without it.
	defaultSettleTimeout = 10 * time.Minute

	// maxSettleTimeout is the longest that the API allows.
	maxSettleTimeout = 24 * time.Hour

	// settleInterval is how often the replacements of pods are looked at while nodes wait for them.
	settleInterval = time.Second
)

// verdictsOn returns what happens to the pods that are left on a node. Where a maintenance skips a pod, it
// skips the pods of DaemonSets and the static pods as well: they serve the pod. The maintenance of a shutdown
// has no say: its kubelet writes it, and must not keep others from emptying the node. Nor does it wait for what others
// keep: the machine goes down with it. What nobody would stop, all of them keep. agentsStay names the maintenances that
// skip a pod of the default type.
func (c *Controller) verdictsOn(node string, pods []*v1.Pod, specs []progress.Spec) (verdicts []progress.Verdict, agentsStay sets.Set[string]) {
	verdicts, agentsStay = make([]progress.Verdict, len(pods)), sets.New[string]()
	draining := progress.IsDraining(specs)
	for i := range verdicts {
		verdicts[i].Action = coordinationv1alpha1.NodeMaintenancePodDrain
		if draining {
			verdicts[i].Unstopped = c.whyUnstopped(pods[i])
		}
	}
	for i := range specs {
		o := &specs[i]
		if !o.Drains() {
			continue
		}
		if o.IsShutdownOf(node) {
			continue // It comes last.
		}
		keepsAgents := false
		actions := make([]coordinationv1alpha1.NodeMaintenancePodAction, len(pods))
		for j, pod := range pods {
			actions[j] = o.Policies.ActionFor(pod, func() (labels.Set, bool) { return c.namespaceLabels(pod.Namespace) })
			keepsAgents = keepsAgents || actions[j] == coordinationv1alpha1.NodeMaintenancePodSkip && maintenance.PodTypeOf(pod) == v1.PodTypeDefault
		}
		if keepsAgents {
			agentsStay.Insert(o.Name)
		}
		for j, pod := range pods {
			if keepsAgents && maintenance.PodTypeOf(pod) != v1.PodTypeDefault || verdicts[j].Unstopped != "" {
				actions[j] = coordinationv1alpha1.NodeMaintenancePodSkip
			}
			verdicts[j].Action = maintenance.MoreCautious(verdicts[j].Action, actions[j])
			if actions[j] == coordinationv1alpha1.NodeMaintenancePodSkip {
				verdicts[j].KeptBy = append(verdicts[j].KeptBy, o.Name)
			} else {
				verdicts[j].Wanted = true
			}
		}
	}
	for i := range specs {
		if o := &specs[i]; o.Drains() && o.IsShutdownOf(node) {
			leaveToShutdown(o.Name, verdicts)
		}
	}
	return verdicts, agentsStay
}

// leaveToShutdown adds what the maintenance of a shutdown does with the pods: it wants those that no other keeps.
func leaveToShutdown(name string, verdicts []progress.Verdict) {
	for i := range verdicts {
		v := &verdicts[i]
		if len(v.KeptBy) == 0 && v.Unstopped == "" {
			v.Wanted = true
			continue
		}
		v.KeptBy = append(v.KeptBy, name)
		if v.Unstopped != "" {
			v.Action = coordinationv1alpha1.NodeMaintenancePodSkip
		}
	}
}

// verdictOn returns what happens to one pod that is left on its node.
func (c *Controller) verdictOn(pod *v1.Pod, specs []progress.Spec) (progress.Verdict, error) {
	if !slices.ContainsFunc(specs, func(o progress.Spec) bool { return o.Drains() && !o.Policies.IsEmpty() }) && c.whyUnstopped(pod) == "" {
		// The usual case, in which the other pods of the node do not matter.
		return progress.Verdict{Action: coordinationv1alpha1.NodeMaintenancePodDrain, Wanted: progress.IsDraining(specs)}, nil
	}
	pods, _, err := c.podsOn(pod.Spec.NodeName)
	if err != nil {
		return progress.Verdict{}, err
	}
	verdicts, _ := c.verdictsOn(pod.Spec.NodeName, pods, specs)
	for i, v := range verdicts {
		if pods[i].UID == pod.UID {
			return v, nil
		}
	}
	return progress.Verdict{}, fmt.Errorf("pod %s is not left on its node any more", klog.KObj(pod))
}

// drainedSince returns since when a node is being drained, as its status says; nil if it does not.
func (c *Controller) drainedSince(name string) *metav1.Time {
	node, err := c.nodeLister.Get(name)
	if err != nil {
		return nil // The only error of the lister of a cache is NotFound.
	}
	for i := range node.Status.Conditions {
		if condition := &node.Status.Conditions[i]; condition.Type == v1.NodeDrainInProgress && condition.Status == v1.ConditionTrue && status.IsOwnCondition(condition, c.clock.Now()) {
			return &condition.LastTransitionTime
		}
	}
	return nil
}

// leaving returns the pods that are to leave the node.
func leaving(pods []*v1.Pod, verdicts []progress.Verdict) []*v1.Pod {
	var leaving []*v1.Pod
	for i, pod := range pods {
		if len(verdicts[i].KeptBy) == 0 && verdicts[i].Action == coordinationv1alpha1.NodeMaintenancePodDrain {
			leaving = append(leaving, pod)
		}
	}
	return leaving
}

// podsOn returns the pods of a node that have not ended, and those that have.
func (c *Controller) podsOn(node string) (left, ended []*v1.Pod, err error) {
	objects, err := c.podIndexer.ByIndex(controller.PodNodeNameKeyIndex, node)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the pods of the node: %w", err)
	}
	for _, object := range objects {
		if pod := object.(*v1.Pod); maintenance.IsLeft(pod) {
			left = append(left, pod)
		} else {
			ended = append(ended, pod)
		}
	}
	return left, ended, nil
}

// namespaceLabels returns the labels of a namespace, and false if they are not known.
func (c *Controller) namespaceLabels(name string) (labels.Set, bool) {
	if c.fleet == nil {
		return nil, false
	}
	namespace, err := c.fleet.Namespaces.Lister().Get(name)
	if err != nil {
		return nil, false // The cache may be behind.
	}
	return namespace.Labels, true
}

// waitsForCompletion returns what delays the drain of a pod that nobody evicts.
func waitsForCompletion(pod *v1.Pod) maintenance.Hold {
	hold := maintenance.Hold{
		Cause: maintenance.HoldCompletion, Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: pod.Spec.NodeName,
		Since: pod.Status.StartTime.DeepCopy(),
	}
	if seconds := pod.Spec.ActiveDeadlineSeconds; seconds != nil && pod.Status.StartTime != nil {
		hold.ETA = ptr.To(metav1.NewTime(pod.Status.StartTime.Add(time.Duration(*seconds) * time.Second)))
	}
	return hold
}

// addVolumes adds which of the maintenances wait until the volumes of a node without pods are detached. Each of them
// gives up after its own timeout.
func (c *Controller) addVolumes(s *nodeSync, view *status.View) {
	waiting := slices.ContainsFunc(s.specs, func(o progress.Spec) bool { return o.Drains() && o.AwaitsVolumes() })
	if !waiting || slices.ContainsFunc(s.facts.pods, func(pod podFacts) bool { return !pod.IsKeptByNeighbors() }) {
		return
	}
	emptied := metav1.NewTime(s.now.Truncate(time.Second))
	if stored := s.node.Status.MaintenanceStatus; stored != nil && stored.EmptiedTime != nil {
		emptied = *stored.EmptiedTime
	}
	attached := c.attachedVolumes(s.node, s.facts.staying)
	if len(attached) == 0 {
		return
	}
	view.EmptiedTime, view.VolumeBlockers = &emptied, map[string]maintenance.Hold{}
	for i := range s.specs {
		o := &s.specs[i]
		if !o.Drains() || !o.AwaitsVolumes() {
			continue
		}
		if deadline := emptied.Add(o.DetachTimeout()); s.now.Before(deadline) {
			view.VolumeBlockers[o.Name] = maintenance.AttachedVolumes(s.node.Name, attached, emptied, deadline)
			c.nodes.AddAfter(s.node.Name, deadline.Sub(c.clock.Now()))
		}
	}
	view.State.Detaching = len(view.VolumeBlockers) > 0
}

// attachedVolumes names the volumes that are attached to the node but those of the pods that stay,
// sorted.
func (c *Controller) attachedVolumes(node *v1.Node, staying []*v1.Pod) []string {
	if c.fleet == nil {
		return []string{"unknown, because the feature gate NodeMaintenanceBudgets is off"} // The timeout ends it.
	}
	attachments, err := c.fleet.VolumeAttachments.Informer().GetIndexer().ByIndex(attachmentNodeIndex, node.Name)
	if err != nil {
		return nil // The index exists.
	}
	used := sets.New[string]()
	for _, pod := range staying {
		for i := range pod.Spec.Volumes {
			claimName := ""
			switch volume := &pod.Spec.Volumes[i]; {
			case volume.PersistentVolumeClaim != nil:
				claimName = volume.PersistentVolumeClaim.ClaimName
			case volume.Ephemeral != nil:
				claimName = pod.Name + "-" + volume.Name
			default:
				continue
			}
			// Anybody may create a claim that names a volume of others. It is not bound to it.
			if claim, err := c.fleet.Claims.Lister().PersistentVolumeClaims(pod.Namespace).Get(claimName); err == nil && claim.Status.Phase == v1.ClaimBound {
				used.Insert(claim.Spec.VolumeName)
			}
		}
	}
	var names []string
	for _, object := range attachments {
		attachment := object.(*storagev1.VolumeAttachment)
		switch volume := attachment.Spec.Source.PersistentVolumeName; {
		case volume == nil:
			names = append(names, attachment.Name)
		case !used.Has(*volume):
			names = append(names, *volume)
		}
	}
	slices.Sort(names)
	return names
}

// settlingUntil returns until when the maintenance waits at most for pods that replace those of its last
// nodes, which are drained; zero if it does not. These are pods of a controller that were created since the
// nodes were admitted. Other new pods that are not ready count as well: which one replaces which, nothing says.
func (c *Controller) settlingUntil(m *coordinationv1alpha1.NodeMaintenance, drained func() map[types.UID][]departedNode, now time.Time, newestUnready func() time.Time) time.Time {
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
	for _, node := range c.departed[m.UID] {
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
		if pod, ok := obj.(*v1.Pod); ok && isReplacement(pod) && !isPodReady(pod) {
			return []string{unreadyKey}, nil
		}
		return nil, nil
	}})
}

// newestUnready returns when the newest pod was created that replaces another, maybe, and is not ready;
// zero if all are. One decision asks it once, for all maintenances.
func (c *Controller) newestUnready() time.Time {
	var newest time.Time
	pods, err := c.podIndexer.ByIndex(unreadyIndex, unreadyKey)
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
