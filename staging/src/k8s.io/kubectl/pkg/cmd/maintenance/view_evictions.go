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
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/scheduling/nodepin"
	"k8s.io/component-helpers/scheduling/podaffinity"
	"k8s.io/component-helpers/scheduling/topologyspread"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
)

// readDeployments reads the Deployments of all namespaces, if one of them would start a
// replacement. Other plans do not need the permission.
func (s *podSnapshot) readDeployments(ctx context.Context, client kubernetes.Interface) error {
	if !s.anyPod(s.awaitsSurge) {
		return nil
	}
	return each(ctx, &s.snapshot, "deployments", client.AppsV1().Deployments(metav1.NamespaceAll).List, s.addDeployment)
}

func (s *podSnapshot) addDeployment(deployment *appsv1.Deployment) {
	put(&s.deployments, deployment.Namespace, append(s.deployments[deployment.Namespace], deployment))
}

func (s *podSnapshot) anyPod(is func(*corev1.Pod) bool) bool {
	for _, pods := range s.pods {
		if slices.ContainsFunc(pods, is) {
			return true
		}
	}
	return false
}

// awaitsSurge reports whether the Deployment controller is an interceptor of the pod and has not
// finished. The name of the interceptor is in the spec since the pod was created. In a group whose pods leave
// together, none acts.
func (s *podSnapshot) awaitsSurge(pod *corev1.Pod) bool {
	const name = coordinationv1alpha1.EvictionInterceptorDeployment
	if ownerKind(pod) != "ReplicaSet" || pod.DeletionTimestamp != nil || s.isGrouped(pod) {
		return false
	}
	request := s.openRequestOf(pod)
	if request == nil || len(request.Status.TargetInterceptors) == 0 {
		return slices.Contains(evictioninterceptor.Targets(pod), name)
	}
	// After it has finished, it does nothing more for this pod.
	return slices.Contains(request.Status.TargetInterceptors, coordinationv1alpha1.Interceptor{Name: name}) &&
		!slices.Contains(request.Status.ProcessedInterceptors, name)
}

// surgeNoteOf says whether a replacement of the pod is started first; empty if its Deployment is
// not an interceptor.
func (s *podSnapshot) surgeNoteOf(pod *corev1.Pod) podNote {
	if !s.awaitsSurge(pod) {
		return ""
	}
	switch deployment := s.deploymentOf(pod); {
	case deployment == nil:
		return noteMayBeReplaced
	case allowsSurge(deployment):
		return noteReplacedFirst
	case isPacedDeployment(deployment):
		return "" // It was never meant to be replaced first.
	}
	return noteNotReplaced
}

// deploymentOf returns the Deployment that selects the pod, or nil if it is unknown. If several do,
// which is a mistake, only their ReplicaSets would tell.
func (s *podSnapshot) deploymentOf(pod *corev1.Pod) *appsv1.Deployment {
	selecting := filtered(s.deployments[pod.Namespace], func(deployment *appsv1.Deployment) bool {
		selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
		return err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels))
	})
	if len(selecting) != 1 {
		return nil
	}
	return selecting[0]
}

// allowsSurge reports whether the strategy allows a surge, by the rule of the Deployment
// controller. Percentages round up.
//
// The function of the controller cannot be imported here; test/integration/nodemaintenance checks
// that both agree.
func allowsSurge(deployment *appsv1.Deployment) bool {
	strategy := &deployment.Spec.Strategy
	if strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || strategy.RollingUpdate == nil {
		return false
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(strategy.RollingUpdate.MaxSurge, int(ptr.Deref(deployment.Spec.Replicas, 1)), true)
	return err == nil && surge > 0
}

// leavesAlone reports whether the StatefulSet or the Deployment of a pod lets its pods leave one after another. Whether
// its controller does so depends on a feature gate that kubectl cannot read, but pods name it only
// if they were created with the gate.
func (s *podSnapshot) leavesAlone(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) bool {
	if pod.DeletionTimestamp != nil || !podutils.IsPodReady(pod) || s.isGrouped(pod) {
		return false
	}
	own, paced := s.pacedLimit(pod)
	if !paced {
		return false
	}
	if len(budgets) == 1 {
		if permitted, known := poddisruptionbudget.Permitted(budgets[0]); known {
			return permitted <= 1
		}
	}
	return own <= 1
}

// pacedLimit reports whether the pods of the workload of a pod wait for each other, and how many of them may be
// unavailable at a time if no budget says so.
func (s *podSnapshot) pacedLimit(pod *corev1.Pod) (pods int, paced bool) {
	if deployment := s.deploymentOf(pod); deployment != nil && s.awaitsSurge(pod) {
		update := ptr.Deref(deployment.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		return scaledOr1(update.MaxUnavailable, deployment.Spec.Replicas), isPacedDeployment(deployment)
	}
	set := s.statefulSetOf(pod)
	if set == nil || !isPacedSet(set) || !slices.Contains(evictioninterceptor.Targets(pod), coordinationv1alpha1.EvictionInterceptorStatefulSet) {
		return 0, false
	}
	update := ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	return scaledOr1(update.MaxUnavailable, set.Spec.Replicas), true
}

// scaledOr1 returns how many of the replicas may be unavailable: one, if that is not said.
func scaledOr1(maxUnavailable *intstr.IntOrString, replicas *int32) int {
	limit, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(maxUnavailable, ptr.To(intstr.FromInt32(1))), int(ptr.Deref(replicas, 1)), false)
	if err != nil {
		return 1
	}
	return limit
}

// statefulSetOf returns the StatefulSet that controls the pod, or nil if there is none, or it is unknown.
func (s *podSnapshot) statefulSetOf(pod *corev1.Pod) *appsv1.StatefulSet {
	own, owned := s.workloadOf(pod)
	if !owned {
		return nil
	}
	return s.workloads.statefulSets[own]
}

// isOfPacedSet reports whether a pod is of a StatefulSet whose pods wait for each other.
func (s *podSnapshot) isOfPacedSet(pod *corev1.Pod) bool {
	_, paced := s.pacedLimit(pod)
	return paced && s.statefulSetOf(pod) != nil
}

// isPacedDeployment reports whether pods of the Deployment wait for each other if they name it, by the rule of its
// controller.
func isPacedDeployment(deployment *appsv1.Deployment) bool {
	return deployment.DeletionTimestamp == nil && deployment.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType &&
		!allowsSurge(deployment) && ptr.Deref(deployment.Spec.Replicas, 1) > 1 &&
		!evictioninterceptor.IsPacingDisabled(deployment.Annotations, evictioninterceptor.DeploymentPacingAnnotation)
}

// isPacedSet reports whether pods of the StatefulSet wait for each other if they name it.
func isPacedSet(set *appsv1.StatefulSet) bool {
	return set.DeletionTimestamp == nil && set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
		!evictioninterceptor.IsPacingDisabled(set.Annotations, coordinationv1alpha1.EvictionPacingAnnotation)
}

// refusalOf says why the API server would not evict the pod now, under the budgets that select it;
// empty if it would.
func refusalOf(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) string {
	applicable := poddisruptionbudget.Applicable(pod, budgets)
	switch {
	case poddisruptionbudget.AllowEviction(pod, podutils.IsPodReady(pod), budgets):
		return ""
	case len(applicable) > 1:
		return fmt.Sprintf("%d PodDisruptionBudgets select it, and the API server does not evict such pods: %s", len(applicable), strings.Join(budgetNames(applicable), ", "))
	}
	budget := applicable[0]
	name, status := budget.Namespace+"/"+budget.Name, &budget.Status
	why := poddisruptionbudget.WhyNever(budget)
	switch {
	case why != "":
		return fmt.Sprintf("PodDisruptionBudget %s %s", name, why)
	case status.ObservedGeneration < budget.Generation:
		return fmt.Sprintf("PodDisruptionBudget %s is not processed yet", name)
	}
	text := fmt.Sprintf("PodDisruptionBudget %s allows no disruption: %d of %d healthy pods are needed", name, status.DesiredHealthy, status.CurrentHealthy)
	if !podutils.IsPodReady(pod) { // With the policy, it would not be refused.
		text += "; the pod is not ready: unhealthyPodEvictionPolicy AlwaysAllow lets such pods go"
	}
	return text
}

func budgetNames(budgets []*policyv1.PodDisruptionBudget) []string {
	return mapped(budgets, func(budget *policyv1.PodDisruptionBudget) string { return budget.Namespace + "/" + budget.Name })
}

// responderSupport is what is known about whether responders (spec.evictionResponders) act. They do if the server serves
// lifecycle.k8s.io and kube-controller-manager has the feature gate LifecycleEvictions, which kubectl cannot read.
type responderSupport string

const (
	// respondersIfGate: the server serves their API group, so all depends on the gate.
	respondersIfGate responderSupport = "IfFeatureGateEnabled"
	// respondersNotServed: it does not, so they do not act.
	respondersNotServed responderSupport = "NotServed"
	// respondersUnknown: the user may not ask the server what it serves.
	respondersUnknown responderSupport = "Unknown"
)

// readResponders asks the server whether it serves the API of responders, if a pod has some.
func (s *podSnapshot) readResponders(_ context.Context, client kubernetes.Interface) error {
	if !s.anyPod(func(pod *corev1.Pod) bool { return len(pod.Spec.EvictionResponders) > 0 }) {
		return nil
	}
	version := lifecyclev1alpha1.SchemeGroupVersion.String()
	_, err := client.Discovery().ServerResourcesForGroupVersion(version)
	switch {
	case err == nil:
		s.responders = respondersIfGate
	case apierrors.IsNotFound(err):
		s.responders = respondersNotServed
	case apierrors.IsForbidden(err):
		s.responders = respondersUnknown
	default:
		return fmt.Errorf("asking the server whether it serves %s: %w", version, err)
	}
	return nil
}

// targetsOf returns the interceptors of a pod, with the responders that act, in the order in which they do.
func (s *podSnapshot) targetsOf(pod *corev1.Pod) []string {
	switch {
	case s.isGrouped(pod):
		return evictioninterceptor.TargetNames(nil, nil, evictionrequest.DefaultInterceptors(pod)) // Those that it names never act.
	case s.responders == respondersNotServed:
		return evictioninterceptor.Targets(pod)
	}
	return evictioninterceptor.AllTargets(pod)
}

// setResponders says which responders of the pod do not act, after its interceptors are known.
func (p *podPlan) setResponders(pod *corev1.Pod) {
	sorted := slices.SortedStableFunc(slices.Values(pod.Spec.EvictionResponders), func(a, b corev1.EvictionResponder) int {
		return evictioninterceptor.CompareResponders(a.Name, a.Priority, b.Name, b.Priority)
	})
	names := mapped(sorted, func(responder corev1.EvictionResponder) string { return responder.Name })
	p.IdleResponders = filtered(names, func(name string) bool { return !slices.Contains(p.Interceptors, name) })
}

// obstacles are what may keep a replacement from starting while the pod that it replaces runs.
type obstacles struct {
	// claims by namespace and name.
	claims map[string]*corev1.PersistentVolumeClaim
	// volumes by name, and the nodes that they are attached to.
	volumes  map[string]*corev1.PersistentVolume
	attached map[string]sets.Set[string]
	// pods of the namespaces in which topology spread constraints, affinity or anti-affinity count them.
	pods []*corev1.Pod
	// namespaces are all, if a term of affinity or anti-affinity selects some.
	namespaces []*corev1.Namespace
	// drained are the nodes of the plan, by the number of their batch, and staying those that are schedulable meanwhile.
	drained map[int]sets.Set[string]
	staying map[int][]*corev1.Node
}

// readObstacles reads claims and volumes, if a pod has some that would be replaced first, or whose like wait for its
// replacement, and the pods that its topology spread constraints, affinity and anti-affinity count. Other plans do not need
// the permissions.
func (s *podSnapshot) readObstacles(ctx context.Context, client kubernetes.Interface) error {
	o := &obstacles{claims: map[string]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{}, attached: map[string]sets.Set[string]{}}
	s.obstacles = o
	if s.anyPod(func(pod *corev1.Pod) bool {
		return len(claimsOf(pod)) > 0 && (s.awaitsSurge(pod) || s.isOfPacedSet(pod))
	}) {
		if err := s.readVolumes(ctx, client); err != nil {
			return err
		}
	}
	dependent := filtered(slices.Concat(slices.Collect(maps.Values(s.pods))...), func(pod *corev1.Pod) bool {
		return s.awaitsSurge(pod) && dependsOnPods(pod)
	})
	if slices.ContainsFunc(dependent, podaffinity.SelectsNamespaces) {
		var err error
		if o.namespaces, err = list[corev1.Namespace](ctx, &s.snapshot, "namespaces", client.CoreV1().Namespaces().List, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	counted := sets.New[string]()
	for _, pod := range dependent {
		counted = counted.Union(podaffinity.Of(pod, o.namespaces).Namespaces()).Insert(pod.Namespace)
	}
	for _, namespace := range sets.List(counted) {
		options := metav1.ListOptions{FieldSelector: fields.OneTermNotEqualSelector("spec.nodeName", "").String()}
		pods, err := list[corev1.Pod](ctx, &s.snapshot, "pods in namespace "+namespace, client.CoreV1().Pods(namespace).List, options)
		if err != nil {
			return err
		}
		o.pods = append(o.pods, pods...)
	}
	return nil
}

func (s *podSnapshot) readVolumes(ctx context.Context, client kubernetes.Interface) error {
	o := s.obstacles
	if err := each(ctx, &s.snapshot, "persistentvolumeclaims", client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List, func(claim *corev1.PersistentVolumeClaim) {
		o.claims[claim.Namespace+"/"+claim.Name] = claim
	}); err != nil {
		return err
	}
	if err := each(ctx, &s.snapshot, "persistentvolumes", client.CoreV1().PersistentVolumes().List, func(volume *corev1.PersistentVolume) {
		o.volumes[volume.Name] = volume
	}); err != nil {
		return err
	}
	return each(ctx, &s.snapshot, "volumeattachments", client.StorageV1().VolumeAttachments().List, func(attachment *storagev1.VolumeAttachment) {
		if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
			insert(o.attached, *name, attachment.Spec.NodeName)
		}
	})
}

// insert adds a name to one of several sets.
func insert[K comparable](all map[K]sets.Set[string], key K, name string) {
	if all[key] == nil {
		all[key] = sets.New[string]()
	}
	all[key].Insert(name)
}

// claimsOf returns the names of the claims that a replacement would share with the pod. Those of ephemeral volumes are
// its own.
func claimsOf(pod *corev1.Pod) []string {
	shared := filtered(pod.Spec.Volumes, func(volume corev1.Volume) bool { return volume.PersistentVolumeClaim != nil })
	return mapped(shared, func(volume corev1.Volume) string { return volume.PersistentVolumeClaim.ClaimName })
}

// obstacleOf says why no replacement of the pod can start while it runs; empty if nothing is known that prevents it.
// Pods have to be asked about in the order in which they leave, because each one that is replaced counts elsewhere.
func (s *podSnapshot) obstacleOf(pod *corev1.Pod) string {
	if s.nameNodeOf(pod) {
		return "its template names this node, and a replacement on it does not count"
	}
	if s.obstacles == nil {
		return ""
	}
	// Where a replacement may run, whatever is left there.
	replacement := requestingPod{Pod: pod, affinity: nodeaffinity.GetRequiredNodeAffinity(pod)}
	mayRun := func(node *corev1.Node) bool { return mayRunOn(replacement, node) }
	switch anywhere := slices.ContainsFunc(s.staying(pod), mayRun); {
	case !anywhere && choosesNodes(pod):
		return "no other node that stays schedulable matches its node selector and affinity" + untilDeadline
	case !anywhere:
		return "it may run on no other node that stays schedulable" + untilDeadline
	case len(claimsOf(pod)) == 0 && !dependsOnPods(pod):
		return ""
	}
	places := filtered(s.staying(pod), mayRun)
	for _, name := range claimsOf(pod) {
		if obstacle := s.obstacleOfClaim(pod, name, places); obstacle != "" {
			return obstacle
		}
	}
	return s.obstacleOfPods(pod, places)
}

// choosesNodes reports whether the pod has to run on certain nodes.
func choosesNodes(pod *corev1.Pod) bool {
	affinity := pod.Spec.Affinity
	return len(pod.Spec.NodeSelector) > 0 || affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
}

// dependsOnPods reports whether it depends on other pods where the pod may run.
func dependsOnPods(pod *corev1.Pod) bool {
	rules := podaffinity.Of(pod, nil)
	return topologyspread.HasHardConstraints(pod) || rules.HasAffinity() || rules.HasAntiAffinity()
}

// knowsPods reports whether the user may read all pods that the rules of a pod select.
func (s *podSnapshot) knowsPods(pod *corev1.Pod, rules *podaffinity.Rules) bool {
	return (s.readable("namespaces") || !podaffinity.SelectsNamespaces(pod)) &&
		!slices.ContainsFunc(sets.List(rules.Namespaces()), func(name string) bool { return !s.readable("pods in namespace " + name) })
}

// comesBackElsewhere reports whether another controller than that of the pod replaces the other one on any node: it is
// no obstacle for long.
func (s *podSnapshot) comesBackElsewhere(other, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(other)
	if owner == nil || owner.Kind == "DaemonSet" {
		return false
	}
	deployment := s.deploymentOf(pod)
	return deployment == nil || deployment != s.deploymentOf(other)
}

// staying returns the nodes that stay schedulable while that of the pod is drained.
func (s *podSnapshot) staying(pod *corev1.Pod) []*corev1.Node {
	batch := s.rollout.batchOf(pod.Spec.NodeName)
	if _, known := s.obstacles.staying[batch]; !known {
		s.obstacles.staying[batch] = s.schedulable(s.obstacles.drained[batch])
	}
	return s.obstacles.staying[batch]
}

// setDrained stores the nodes of the plan.
func (s *podSnapshot) setDrained(nodes []*corev1.Node) {
	if s.obstacles == nil {
		return
	}
	s.obstacles.drained, s.obstacles.staying = map[int]sets.Set[string]{}, map[int][]*corev1.Node{}
	for _, node := range nodes {
		insert(s.obstacles.drained, s.rollout.batchOf(node.Name), node.Name)
	}
}

func (s *podSnapshot) obstacleOfClaim(pod *corev1.Pod, name string, places []*corev1.Node) string {
	claim, volume := s.obstacles.claimOf(pod, name)
	switch {
	case claim == nil:
		return ""
	case slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod):
		return fmt.Sprintf("its PersistentVolumeClaim %s has the access mode ReadWriteOncePod", name)
	case volume == nil:
		return ""
	}
	if affinity := volume.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		selector, err := nodeaffinity.NewNodeSelector(affinity.Required)
		if err == nil && !slices.ContainsFunc(places, selector.Match) {
			return fmt.Sprintf("the volume of its PersistentVolumeClaim %s is on no other node on which it may run", name)
		}
	}
	once := len(claim.Spec.AccessModes) > 0 && !slices.ContainsFunc(claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool { return mode != corev1.ReadWriteOnce })
	if once && s.obstacles.attached[volume.Name].Has(pod.Spec.NodeName) {
		return fmt.Sprintf("the volume of its PersistentVolumeClaim %s is attached to this node, and its access mode is ReadWriteOnce"+untilDeadline, name)
	}
	return ""
}

// claimOf returns the claim of that name, and its volume, as far as they are known.
func (o *obstacles) claimOf(pod *corev1.Pod, name string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	claim := o.claims[pod.Namespace+"/"+name]
	if claim == nil {
		return nil, nil
	}
	return claim, o.volumes[claim.Spec.VolumeName]
}

// untilDeadline is about obstacles that the Deployment cannot tell from those that end by themselves.
const untilDeadline = ", which its Deployment waits for until its progress deadline"

// obstacleOfPods is what other pods are.
func (s *podSnapshot) obstacleOfPods(pod *corev1.Pod, places []*corev1.Node) string {
	others := filtered(s.obstacles.pods, maintenance.IsLeft)
	if !dependsOnPods(pod) || len(others) == 0 {
		return ""
	}
	staying := filtered(others, func(other *corev1.Pod) bool { return other.UID != pod.UID })
	for _, rule := range s.rulesOf(pod) {
		allowed := filtered(places, rule.allows(others))
		switch {
		case len(allowed) > 0:
			places = allowed
		case slices.ContainsFunc(places, rule.allows(staying)):
			return "no other node satisfies its " + rule.name + " before it has left"
		default:
			return "no other node satisfies its " + rule.name + untilDeadline
		}
	}
	// It is there from then on, and not here.
	moved := *pod
	moved.Spec.NodeName = places[0].Name
	for i, other := range s.obstacles.pods {
		if other.UID == pod.UID {
			s.obstacles.pods[i] = &moved
		}
	}
	return ""
}

// podRule says on which nodes a pod may run beside others.
type podRule struct {
	name   string
	allows func(others []*corev1.Pod) func(*corev1.Node) bool
}

func (s *podSnapshot) rulesOf(pod *corev1.Pod) []podRule {
	var rules []podRule
	affinity := podaffinity.Of(pod, s.obstacles.namespaces)
	if affinity.HasAffinity() && s.knowsPods(pod, affinity) {
		rules = append(rules, podRule{"podAffinity", func(others []*corev1.Pod) func(*corev1.Node) bool {
			return affinity.Attracts(s.nodes, others, func(other *corev1.Pod) bool { return s.comesBackElsewhere(other, pod) })
		}})
	}
	if affinity.HasAntiAffinity() {
		rules = append(rules, podRule{"podAntiAffinity", func(others []*corev1.Pod) func(*corev1.Node) bool { return affinity.Permits(s.nodes, others) }})
	}
	if topologyspread.HasHardConstraints(pod) {
		rules = append(rules, podRule{"topologySpreadConstraints", func(others []*corev1.Pod) func(*corev1.Node) bool {
			return topologyspread.Of(pod, s.nodes, others).Allows
		}})
	}
	return rules
}

// comesAfter reports whether the pods of the StatefulSet of a pod wait for each other, but its replacement can only come
// to its own node, when that is schedulable again. Its controller decides by the same rule.
func (s *podSnapshot) comesAfter(pod *corev1.Pod) bool {
	if s.obstacles == nil || pod.DeletionTimestamp != nil || s.isGrouped(pod) || !s.isOfPacedSet(pod) {
		return false
	}
	var volumes []*corev1.PersistentVolume
	for _, name := range claimsOf(pod) {
		if _, volume := s.obstacles.claimOf(pod, name); volume != nil {
			volumes = append(volumes, volume)
		}
	}
	permitted, pinned := nodepin.Of(pod, volumes, s.nodes)
	drained := s.obstacles.drained[s.rollout.batchOf(pod.Spec.NodeName)]
	return pinned && len(permitted) == 1 && !slices.ContainsFunc(permitted, func(node *corev1.Node) bool { return !node.Spec.Unschedulable && !drained.Has(node.Name) })
}

// isCrowded reports whether the pod has so many interceptors that its controller could not add its own.
func isCrowded(pod *corev1.Pod) bool {
	own := []string{coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorStatefulSet}
	names := map[string]int{"ReplicaSet": 2, "StatefulSet": 1}[ownerKind(pod)] // A ReplicaSet: that of its Deployment, too.
	return names > 0 && !slices.ContainsFunc(evictioninterceptor.OwnTargets(pod), func(name string) bool { return slices.Contains(own, name) }) &&
		evictioninterceptor.CountOnPod(pod.Spec.EvictionInterceptors, pod.Annotations)+names > evictioninterceptor.MaxOnPod
}
