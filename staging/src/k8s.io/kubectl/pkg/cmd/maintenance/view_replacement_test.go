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
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

// zonedNode returns a node of a zone that runs pods.
func zonedNode(name, zone string) *corev1.Node {
	node := newNode(name)
	node.Labels = map[string]string{"zone": zone}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

func unready(node *corev1.Node) *corev1.Node {
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	return node
}

// claiming makes a pod use a claim.
func (p podStory) claiming(name string) podStory {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	return p
}

// spread makes a pod spread over zones with its like.
func (p podStory) spread() podStory {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}
	return p
}

// apart keeps a pod away from others of its app, by zone or by node.
func (p podStory) apart(topologyKey string) podStory {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}}}
	return p
}

// beside keeps a pod on the nodes, or in the zones, of pods of an app.
func (p podStory) beside(topologyKey, app string, change ...func(*corev1.PodAffinityTerm)) podStory {
	term := corev1.PodAffinityTerm{TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	for _, change := range change {
		change(&term)
	}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	return p
}

// anchor is a pod that others have to run beside.
func anchor(namespace, node string) podStory {
	p := newPod("anchor", node).bare()
	p.Namespace, p.Labels = namespace, map[string]string{"app": "anchor"}
	return p
}

// onlyIn keeps a pod in a zone, whose like in other zones count nevertheless.
func (p podStory) onlyIn(zone string) podStory {
	p.Spec.NodeSelector = map[string]string{"zone": zone}
	p.Spec.TopologySpreadConstraints[0].NodeAffinityPolicy = ptr.To(corev1.NodeInclusionPolicyIgnore)
	return p
}

// selecting keeps a pod in a zone.
func (p podStory) selecting(zone string) podStory {
	p.Spec.NodeSelector = map[string]string{"zone": zone}
	return p
}

func claim(mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{mode}, VolumeName: "pv"},
	}
}

// volumeIn returns a volume of nodes with this label, or of all.
func volumeIn(zone string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	if zone != "" {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	return volume
}

func attachedTo(node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "attachment"}, Spec: storagev1.VolumeAttachmentSpec{
		NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")},
	}}
}

// TestReplacementObstacles reads claims, volumes and pods from a server, as "plan" does.
func TestReplacementObstacles(t *testing.T) {
	const spread, waits = "no other node satisfies its topologySpreadConstraints", ", which its Deployment waits for until its progress deadline"
	const beside = "no other node satisfies its podAffinity"
	inNamespaces := func(names ...string) func(*corev1.PodAffinityTerm) {
		return func(term *corev1.PodAffinityTerm) { term.Namespaces = names }
	}
	ofTeam := func(term *corev1.PodAffinityTerm) {
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	}
	anchorOfSet := newPod("anchor", "node-1").ownedBy("StatefulSet")
	anchorOfSet.Labels = map[string]string{"app": "anchor"}
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": "a"}}}
	const nowhere = "no other node that stays schedulable matches its node selector and affinity"
	for name, test := range map[string]struct {
		pods    []podStory
		objects []runtime.Object
		// nodes are there besides node-1 in zone a and node-2 in zone b.
		nodes []*corev1.Node
		// drained are nodes of the plan besides node-1.
		drained []string
		want    map[string]string
	}{
		"no claim":                          {pods: []podStory{replaced("web-0", "node-1")}, want: map[string]string{"web-0": ""}},
		"a claim for one pod":               {pods: []podStory{replaced("web-0", "node-1").claiming("data")}, objects: []runtime.Object{claim(corev1.ReadWriteOncePod)}, want: map[string]string{"web-0": "its PersistentVolumeClaim data has the access mode ReadWriteOncePod"}},
		"a claim for many":                  {pods: []podStory{replaced("web-0", "node-1").claiming("data")}, objects: []runtime.Object{claim(corev1.ReadWriteMany), volumeIn(""), attachedTo("node-1")}, want: map[string]string{"web-0": ""}},
		"a claim that does not exist":       {pods: []podStory{replaced("web-0", "node-1").claiming("data")}, want: map[string]string{"web-0": ""}},
		"a volume on this node only":        {pods: []podStory{replaced("web-0", "node-1").claiming("data")}, objects: []runtime.Object{claim(corev1.ReadWriteOnce), volumeIn("a")}, want: map[string]string{"web-0": "the volume of its PersistentVolumeClaim data is on no other node on which it may run"}},
		"a volume on another node as well":  {pods: []podStory{replaced("web-0", "node-1").claiming("data")}, objects: []runtime.Object{claim(corev1.ReadWriteOnce), volumeIn("b")}, want: map[string]string{"web-0": ""}},
		"a volume that is attached here":    {pods: []podStory{replaced("web-0", "node-1").claiming("data")}, objects: []runtime.Object{claim(corev1.ReadWriteOnce), volumeIn("b"), attachedTo("node-1")}, want: map[string]string{"web-0": "the volume of its PersistentVolumeClaim data is attached to this node, and its access mode is ReadWriteOnce" + waits}},
		"a volume that needs no attachment": {pods: []podStory{replaced("web-0", "node-1").claiming("data")}, objects: []runtime.Object{claim(corev1.ReadWriteOnce), volumeIn("")}, want: map[string]string{"web-0": ""}},
		"on this node only":                 {pods: []podStory{replaced("web-0", "node-1").selecting("a")}, want: map[string]string{"web-0": nowhere + waits}},
		"on other nodes as well":            {pods: []podStory{replaced("web-0", "node-1").selecting("a")}, nodes: []*corev1.Node{zonedNode("node-3", "a")}, want: map[string]string{"web-0": ""}},
		"on a node that is not ready":       {pods: []podStory{replaced("web-0", "node-1").selecting("a")}, nodes: []*corev1.Node{unready(zonedNode("node-3", "a"))}, want: map[string]string{"web-0": nowhere + waits}},
		"spread evenly":                     {pods: []podStory{replaced("web-0", "node-1").spread(), replaced("web-1", "node-2").spread()}, want: map[string]string{"web-0": ""}},
		"spread, and the second one has no place": {pods: []podStory{replaced("web-0", "node-1").spread(), replaced("web-1", "node-1").spread(), replaced("web-2", "node-2").spread(), replaced("web-3", "node-2").spread()},
			want: map[string]string{"web-0": "", "web-1": spread + waits}},
		"spread, and the pod itself is in the way": {pods: []podStory{replaced("web-0", "node-1").spread().onlyIn("a"), replaced("web-1", "node-2").spread(), replaced("web-2", "node-3").spread()},
			nodes: []*corev1.Node{zonedNode("node-3", "a")}, want: map[string]string{"web-0": spread + " before it has left"}},
		"no other node": {pods: []podStory{replaced("web-0", "node-1")}, drained: []string{"node-2"}, want: map[string]string{"web-0": "it may run on no other node that stays schedulable" + waits}},
		"no other node without a taint": {pods: []podStory{replaced("web-0", "node-1")}, drained: []string{"node-2"}, nodes: []*corev1.Node{tainted(zonedNode("node-3", "a"), "gpu", corev1.TaintEffectNoSchedule)},
			want: map[string]string{"web-0": "it may run on no other node that stays schedulable" + waits}},
		"apart, and there is a free zone": {pods: []podStory{replaced("web-0", "node-1").apart("zone")}, want: map[string]string{"web-0": ""}},
		"apart, and every other zone has one": {pods: []podStory{replaced("web-0", "node-1").apart("zone"), replaced("web-1", "node-2").apart("zone")},
			want: map[string]string{"web-0": "no other node satisfies its podAntiAffinity" + waits}},
		"apart, and the second one has no place": {pods: []podStory{replaced("web-0", "node-1").apart("zone"), replaced("web-1", "node-1").apart("zone")},
			want: map[string]string{"web-0": "", "web-1": "no other node satisfies its podAntiAffinity" + waits}},
		"apart, and the pod itself is in the way": {pods: []podStory{replaced("web-0", "node-1").apart("zone"), replaced("web-1", "node-2").apart("zone")}, nodes: []*corev1.Node{zonedNode("node-3", "a")},
			want: map[string]string{"web-0": "no other node satisfies its podAntiAffinity before it has left"}},
		"beside a pod that stays":    {pods: []podStory{replaced("web-0", "node-1").beside("zone", "anchor"), anchor("default", "node-2")}, want: map[string]string{"web-0": ""}},
		"beside a pod of the node":   {pods: []podStory{replaced("web-0", "node-1").beside("zone", "anchor"), anchor("default", "node-1")}, want: map[string]string{"anchor": "", "web-0": beside + waits}},
		"beside a pod in the zone":   {pods: []podStory{replaced("web-0", "node-1").beside("zone", "anchor"), anchor("default", "node-1")}, nodes: []*corev1.Node{zonedNode("node-3", "a")}, want: map[string]string{"anchor": "", "web-0": ""}},
		"beside a pod, and no label": {pods: []podStory{replaced("web-0", "node-1").beside("rack", "anchor"), anchor("default", "node-2")}, want: map[string]string{"web-0": beside + waits}},
		"beside no pod":              {pods: []podStory{replaced("web-0", "node-1").beside("zone", "anchor")}, want: map[string]string{"web-0": beside + waits}},
		"beside a pod that comes back": {pods: []podStory{replaced("web-0", "node-1").beside("zone", "anchor"), anchorOfSet},
			want: map[string]string{"anchor": "", "web-0": ""}},
		"beside its like":                      {pods: []podStory{replaced("web-0", "node-1").beside("zone", "web"), replaced("web-1", "node-1").beside("zone", "web")}, want: map[string]string{"web-0": beside + waits, "web-1": beside + waits}},
		"beside itself":                        {pods: []podStory{replaced("web-0", "node-1").beside("zone", "web")}, want: map[string]string{"web-0": beside + " before it has left"}},
		"beside a pod of another namespace":    {pods: []podStory{replaced("web-0", "node-1").beside("zone", "anchor"), anchor("other", "node-2")}, want: map[string]string{"web-0": beside + waits}},
		"beside a pod of a named namespace":    {pods: []podStory{replaced("web-0", "node-1").beside("zone", "anchor", inNamespaces("other")), anchor("other", "node-2")}, want: map[string]string{"web-0": ""}},
		"beside a pod of a selected namespace": {pods: []podStory{replaced("web-0", "node-1").beside("zone", "anchor", ofTeam), anchor("other", "node-2")}, objects: []runtime.Object{team}, want: map[string]string{"web-0": ""}},
		"beside a pod of no selected namespace": {pods: []podStory{replaced("web-0", "node-1").beside("zone", "anchor", ofTeam), anchor("default", "node-2")}, objects: []runtime.Object{team},
			want: map[string]string{"web-0": beside + waits}},
		"not replaced anyway": {pods: []podStory{newPod("web-0", "node-1").claiming("data")}, objects: []runtime.Object{claim(corev1.ReadWriteOncePod)}, want: map[string]string{"web-0": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(zonedNode("node-1", "a"), zonedNode("node-2", "b"), newDeployment("web"))
			s.nodes = sorted(append(s.nodes, test.nodes...))
			objects := test.objects
			var pods []*corev1.Pod
			for _, pod := range test.pods {
				pods, objects = append(pods, pod.Pod), append(objects, pod.Pod)
			}
			s.setPods(pods)
			if err := s.readObstacles(t.Context(), fake.NewClientset(objects...)); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, pod := range mustPlan(t, s, "", maintenance.StandardPlan(), append(test.drained, "node-1")...).Nodes[0].Pods {
				got[pod.Name] = pod.ReplacementObstacle
				if promised := slices.Contains(pod.Remarks, noteReplacedFirst); promised && pod.ReplacementObstacle != "" {
					t.Errorf("pod %s is said to be replaced first", pod.Name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("obstacles (-want, +got):\n%s", diff)
			}
		})
	}
}

// A plan says that a pod is evicted without a replacement, and what its budget says then.
func TestPlanOfAnObstacle(t *testing.T) {
	s := snapshotOf(zonedNode("node-1", "a"), zonedNode("node-2", "b"), newDeployment("web"), replaced("web-0", "node-1").claiming("data"), newBudget("web", "web", 0))
	if err := s.readObstacles(t.Context(), fake.NewClientset(claim(corev1.ReadWriteOncePod))); err != nil {
		t.Fatal(err)
	}
	pod := mustPlan(t, s, "", maintenance.StandardPlan(), "node-1").Nodes[0].Pods[0]
	details := strings.Join(pod.details(metav1.Now().Time), "\n")
	for _, want := range []string{
		"evicted without a replacement, because none can start while it runs: its PersistentVolumeClaim data has the access mode ReadWriteOncePod",
		"! PodDisruptionBudget default/web allows no disruption",
	} {
		if !strings.Contains(details, want) {
			t.Errorf("the plan lacks %q:\n%s", want, details)
		}
	}
}

// Pods of a StatefulSet wait for a replacement that can only come to nodes that are drained.
func TestPlanOfReplacementsAfterTheDrain(t *testing.T) {
	paced := func(node string) podStory {
		pod := newPod("web-0", node, "statefulset.apps.k8s.io").ownedBy("StatefulSet")
		pod.OwnerReferences[0].Name = "web"
		return pod
	}
	at := func(p podStory, label, value string) podStory {
		p.Spec.NodeSelector = map[string]string{label: value}
		return p
	}
	of := func(node string) *corev1.PersistentVolume {
		volume := volumeIn(node)
		volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key = corev1.LabelHostname
		return volume
	}
	disabled := map[string]string{"statefulset.kubernetes.io/eviction-pacing": "Disabled"}
	for name, test := range map[string]struct {
		pod         podStory
		objects     []runtime.Object
		annotations map[string]string
		want        bool
	}{
		"a hostname":                       {pod: at(paced("node-1"), corev1.LabelHostname, "node-1"), want: true},
		"a volume of the node":             {pod: paced("node-1").claiming("data"), objects: []runtime.Object{claim(corev1.ReadWriteOnce), of("node-1")}, want: true},
		"a volume of a zone":               {pod: paced("node-1").claiming("data"), objects: []runtime.Object{claim(corev1.ReadWriteOnce), volumeIn("a")}},
		"a volume of another node":         {pod: paced("node-1").claiming("data"), objects: []runtime.Object{claim(corev1.ReadWriteOnce), of("node-2")}},
		"a zone":                           {pod: at(paced("node-1"), "zone", "a")},
		"anywhere":                         {pod: paced("node-1")},
		"its pods do not wait":             {pod: at(paced("node-1"), corev1.LabelHostname, "node-1"), annotations: disabled},
		"its controller is no interceptor": {pod: at(newPod("web-0", "node-1").ownedBy("StatefulSet"), corev1.LabelHostname, "node-1")},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := zonedNode("node-1", "a"), zonedNode("node-2", "b")
			first.Labels[corev1.LabelHostname], second.Labels[corev1.LabelHostname] = "node-1", "node-2"
			set := &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: test.annotations},
				Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}},
			}
			s := snapshotOf(first, second, test.pod)
			s.addStatefulSet(set)
			if err := s.readObstacles(t.Context(), fake.NewClientset(test.objects...)); err != nil {
				t.Fatal(err)
			}
			pod := mustPlan(t, s, "", maintenance.StandardPlan(), "node-1").Nodes[0].Pods[0]
			if got := slices.Contains(pod.Remarks, noteComesAfter); got != test.want {
				t.Errorf("remarks %v, want %s: %t", pod.Remarks, noteComesAfter, test.want)
			}
		})
	}
}

func TestPlanOfCrowdedPods(t *testing.T) {
	var names []string
	for i := range 15 {
		names = append(names, fmt.Sprintf("i%d.example.com", i))
	}
	for name, test := range map[string]struct {
		pod  podStory
		want bool
	}{
		"room for both":                   {pod: newPod("web-0", "node-1", names[:13]...)},
		"no room for both":                {pod: newPod("web-0", "node-1", names[:14]...), want: true},
		"room for that of a StatefulSet":  {pod: newPod("web-0", "node-1", names[:14]...).ownedBy("StatefulSet")},
		"none for that of a StatefulSet":  {pod: newPod("web-0", "node-1", names...).ownedBy("StatefulSet"), want: true},
		"named by its author":             {pod: newPod("web-0", "node-1", append(names[:13:13], "deployment.apps.k8s.io", "replicaset.apps.k8s.io")...)},
		"without a controller of its own": {pod: newPod("web-0", "node-1", names...).bare()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isCrowded(test.pod.Pod); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// Pods of a Deployment without a surge leave one after another.
func TestPacedDeployments(t *testing.T) {
	without := func(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := newDeployment("web")
		d.Spec.Replicas = ptr.To[int32](6)
		d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromInt32(1))
		for _, change := range changes {
			change(d)
		}
		return d
	}
	for name, test := range map[string]struct {
		deployment *appsv1.Deployment
		alone      bool
		paced      bool
	}{
		"one at a time": {deployment: without(), alone: true, paced: true},
		"two at a time": {deployment: without(func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(2)) }), paced: true},
		"one replica":   {deployment: without(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) })},
		"opted out": {deployment: without(func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{"deployment.kubernetes.io/eviction-pacing": "Disabled"}
		})},
		"with a surge": {deployment: newDeployment("web")},
		"it is recreated": {deployment: without(func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			pod := replaced("web-0", "node-1")
			s := snapshotOf(newNode("node-1"), pod, test.deployment)
			if got := s.leavesAlone(pod.Pod, nil); got != test.alone {
				t.Errorf("leaves alone: %t, want %t", got, test.alone)
			}
			if _, got := s.pacedLimit(pod.Pod); got != test.paced {
				t.Errorf("paced: %t, want %t", got, test.paced)
			}
			if note := s.surgeNoteOf(pod.Pod); test.paced && note != "" {
				t.Errorf("the plan says %q as well", noteTexts[note])
			}
		})
	}
}

// Nothing is said about affinity to pods that the user may not read.
func TestAffinityToUnreadablePods(t *testing.T) {
	for _, resource := range []string{"pods in namespace other", "namespaces"} {
		pod := replaced("web-0", "node-1").beside("zone", "anchor", func(term *corev1.PodAffinityTerm) {
			term.Namespaces, term.NamespaceSelector = []string{"other"}, &metav1.LabelSelector{}
		})
		s := snapshotOf(zonedNode("node-1", "a"), zonedNode("node-2", "b"), newDeployment("web"), pod)
		if err := s.readObstacles(t.Context(), fake.NewClientset(pod.Pod)); err != nil {
			t.Fatal(err)
		}
		s.unreadable = append(s.unreadable, resource)
		if planned := mustPlan(t, s, "", maintenance.StandardPlan(), "node-1").Nodes[0].Pods[0]; planned.ReplacementObstacle != "" {
			t.Errorf("without %s: %s", resource, planned.ReplacementObstacle)
		}
	}
}
