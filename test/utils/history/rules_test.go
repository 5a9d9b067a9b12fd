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

package history

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const (
	podUID     = "6b2a37a5-4f5c-4d3a-9d5e-0c5f6b7a8e91"
	requestUID = "0f9f6f3e-6c1b-4a53-8f0e-5f8a3f7b2c11"
	migrate    = "migrate.example.com"
)

// story is a history that a test tells.
type story struct {
	checker  *Checker
	objects  map[Key]Object
	revision int64
	now      time.Time
	broken   []string
}

func newStory() *story {
	return &story{
		checker: NewChecker(AllRules()),
		objects: map[Key]Object{}, now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
	}
}

func (s *story) write(key Key, after Object) {
	s.revision++
	changes := []Change{{Revision: s.revision, Time: s.now, Key: key, Before: s.objects[key], After: after}}
	if s.objects[key] == nil {
		changes[0].Before = nil
	}
	for _, violation := range s.checker.Add(changes) {
		s.broken = append(s.broken, violation.Rule+": "+violation.Text)
	}
	if after == nil {
		delete(s.objects, key)
		return
	}
	s.objects[key] = after
}

func (s *story) wait(duration time.Duration) { s.now = s.now.Add(duration) }

// change writes an object, which is created if it does not exist.
func change[T Object](s *story, kind string, object T, changes ...func(T)) {
	key := Key{kind, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
	if stored, found := s.objects[key]; found {
		object = stored.DeepCopyObject().(T)
	}
	for _, change := range changes {
		change(object)
	}
	s.write(key, object)
}

func (s *story) pod(changes ...func(*v1.Pod)) {
	change(s, "Pod", &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web-0", UID: podUID, Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{NodeName: "n1"},
		Status:     v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}},
	}, changes...)
}

func (s *story) removePod() {
	s.write(Key{"Pod", types.NamespacedName{Namespace: "prod", Name: "web-0"}}, nil)
}

func mark(uid string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions[:1:1], v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Message: markPrefix + uid + ", call 7"})
	}
}

// evictedBy has the pod evicted for no request, which has this interceptor.
func evictedBy(interceptor string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: interceptor}}
		pod.Status.Conditions[1].Reason, pod.Status.Conditions[1].Message = "EvictionByEvictionAPI", "Eviction API: evicting"
	}
}

func terminate(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func (s *story) request(changes ...func(*coordinationv1alpha1.EvictionRequest)) {
	change(s, "EvictionRequest", &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: podUID, UID: requestUID},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: "web-0", UID: podUID}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "drain.example.com"}},
		},
	}, changes...)
}

func activate(names ...string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.TargetInterceptors = []coordinationv1alpha1.Interceptor{{Name: migrate}, {Name: imperative}}
		request.Status.ActiveInterceptors = names
	}
}

func process(names ...string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) { request.Status.ProcessedInterceptors = names }
}

func report(name string, at int64) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.Interceptors = []coordinationv1alpha1.InterceptorStatus{{Name: name, HeartbeatTime: &metav1.Time{Time: time.Unix(at, 0)}}}
	}
}

func finish(conditionType string, status metav1.ConditionStatus) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.ActiveInterceptors = nil
		request.Status.Conditions = append(request.Status.Conditions, metav1.Condition{Type: conditionType, Status: status, Reason: "x"})
		request.Status.Conditions = slices.CompactFunc(request.Status.Conditions, func(a, b metav1.Condition) bool { return a.Type == b.Type })
	}
}

// requests creates a request for a requester again and again.
func (s *story) requests(times int, requester string) {
	for i := range times {
		s.request(func(request *coordinationv1alpha1.EvictionRequest) {
			request.UID, request.Spec.Requesters[0].Name = types.UID(strconv.Itoa(i)), requester
		})
		s.write(Key{"EvictionRequest", types.NamespacedName{Namespace: "prod", Name: podUID}}, nil)
	}
}

// at is when the active interceptor was activated.
func at(now time.Time) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.ActivationTime = &metav1.Time{Time: now}
	}
}

func completedBy(name string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Status.Interceptors = []coordinationv1alpha1.InterceptorStatus{{Name: name, CompletionTime: &metav1.Time{Time: time.Unix(1, 0)}}}
	}
}

func withdraw(request *coordinationv1alpha1.EvictionRequest) { request.Spec.Requesters = nil }

// evicting is a request whose last interceptor is active.
func (s *story) evicting() {
	s.pod()
	s.request(activate(migrate))
	s.request(process(migrate), activate(imperative))
}

// drainEvicts has a pod evicted for a drain, and for others.
func (s *story) drainEvicts(others ...coordinationv1alpha1.Requester) {
	s.pod()
	s.request(func(request *coordinationv1alpha1.EvictionRequest) {
		request.Spec.Requesters = append(others, coordinationv1alpha1.Requester{Name: drainRequester})
	}, activate(migrate))
	s.request(process(migrate), activate(imperative))
	s.pod(mark(requestUID))
	s.pod(terminate)
}

func (s *story) node(changes ...func(*v1.Node)) {
	change(s, "Node", &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1", Labels: map[string]string{"rack": "7"}}}, changes...)
}

func cordoned(node *v1.Node)   { node.Spec.Unschedulable = true }
func uncordoned(node *v1.Node) { node.Spec.Unschedulable = false }

func byHand(n string) func(*v1.Node) {
	return func(node *v1.Node) { node.Annotations = map[string]string{ByHand: n} }
}

// applied has a person apply whether the node is unschedulable.
func applied(node *v1.Node) {
	node.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: Applier, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`),
	}}
}

func announced(node *v1.Node) {
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeMaintenancePlanned, Status: v1.ConditionTrue, Reason: Announced}}
}

func unready(node *v1.Node) {
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown}}
}

func emptied(node *v1.Node) {
	statusOf(node).Admissions[0].DrainedTime = &metav1.Time{Time: time.Unix(1, 0)}
}

func drained(status v1.ConditionStatus) func(*v1.Node) {
	return func(node *v1.Node) {
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeDrained, Status: status}}
	}
}

func aimedAt(priority int32) func(*v1.Node) {
	return func(node *v1.Node) {
		statusOf(node).DrainTargets = []v1.DrainPlanEntry{{PodType: v1.PodTypeDefault, PodPriority: priority}}
	}
}

func statusOf(node *v1.Node) *v1.MaintenanceStatus {
	if node.Status.MaintenanceStatus == nil {
		node.Status.MaintenanceStatus = &v1.MaintenanceStatus{}
	}
	return node.Status.MaintenanceStatus
}

func aimedAtNothing(node *v1.Node) { statusOf(node).DrainTargets = nil }

// begun has maintenances begin with the node. The UID of each is its name.
func begun(names ...string) func(*v1.Node) {
	return func(node *v1.Node) {
		for _, name := range names {
			status := statusOf(node)
			status.Admissions = append(status.Admissions, v1.MaintenanceAdmission{MaintenanceName: name, MaintenanceUID: types.UID(name)})
		}
	}
}

// readyAt has a node Ready since a time.
func readyAt(seconds int64) func(*v1.Node) {
	return func(node *v1.Node) {
		node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{
			Type: v1.NodeReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(seconds, 0)),
		})
	}
}

func returning(node *v1.Node) {
	statusOf(node).Admissions[0].ReturningTime = &metav1.Time{Time: time.Unix(1, 0)}
}
func done(node *v1.Node) { statusOf(node).Admissions[0].DoneTime = &metav1.Time{Time: time.Unix(1, 0)} }
func failed(node *v1.Node) {
	statusOf(node).Admissions[0].FailedTime = &metav1.Time{Time: time.Unix(1, 0)}
}
func forgotten(node *v1.Node) { statusOf(node).Admissions = nil }

// nodeNamed is node for another one.
func (s *story) nodeNamed(name string, changes ...func(*v1.Node)) {
	change(s, "Node", &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"rack": "7", "zone": name}}}, changes...)
}

// limit has a budget of all nodes of the rack.
func (s *story) limit(nodes int, changes ...func(*coordinationv1alpha1.NodeMaintenanceBudget)) {
	b := &coordinationv1alpha1.NodeMaintenanceBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "b"}}
	b.Spec.NodeSelector = ofRack("7")
	change(s, "NodeMaintenanceBudget", b, append([]func(*coordinationv1alpha1.NodeMaintenanceBudget){func(b *coordinationv1alpha1.NodeMaintenanceBudget) {
		b.Spec.MaxUnavailable = ptr.To(intstr.FromInt(nodes))
	}}, changes...)...)
}

func oneZone(b *coordinationv1alpha1.NodeMaintenanceBudget) {
	b.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: "zone", MaxDomains: 1}
}

func inTurn(nodes int) func(*coordinationv1alpha1.NodeMaintenance) {
	return func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Spec.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{MaxConcurrent: ptr.To(intstr.FromInt(nodes))}
	}
}

func maintenanceNamed(name string) *coordinationv1alpha1.NodeMaintenance {
	return &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       coordinationv1alpha1.NodeMaintenanceSpec{Stage: coordinationv1alpha1.NodeMaintenanceStageDrain, NodeSelector: ofRack("7")},
	}
}

func ofRack(rack string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: v1.NodeSelectorOpIn, Values: []string{rack}}},
	}}}
}

func (s *story) maintenance(changes ...func(*coordinationv1alpha1.NodeMaintenance)) {
	change(s, "NodeMaintenance", maintenanceNamed("m"), changes...)
}

func complete(m *coordinationv1alpha1.NodeMaintenance) {
	m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageComplete
}

func cordons(m *coordinationv1alpha1.NodeMaintenance) {
	m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageCordon
}

func sayDrained(m *coordinationv1alpha1.NodeMaintenance) {
	m.Status.Conditions = []metav1.Condition{{Type: "Drained", Status: metav1.ConditionTrue}}
}

func neverReady(pod *v1.Pod) { pod.Status.Conditions[0].Status = v1.ConditionFalse }

func ofSet(pod *v1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: ptr.To(true)}}
}

// other is the pod that replaces the one that goes.
func (s *story) other(ready bool) {
	change(s, "Pod", &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web-1", UID: "other"}}, ofSet, func(pod *v1.Pod) {
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse}}
		if ready {
			pod.Status.Conditions[0].Status = v1.ConditionTrue
		}
	})
}

func (s *story) set(replicas int32, leaving ...string) {
	change(s, "ReplicaSet", &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web", UID: "web", OwnerReferences: []metav1.OwnerReference{
			{Kind: "Deployment", Name: "web", UID: "deployment", Controller: ptr.To(true)},
		}, Annotations: map[string]string{
			surgeAnnotation: `{"surge":0,"of":1,"leaving":["` + strings.Join(leaving, `","`) + `"]}`,
		}},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas},
	})
}

// deployment scales the Deployment of the set.
func (s *story) deployment(changes ...func(*appsv1.Deployment)) {
	change(s, "Deployment", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web", UID: "deployment", Generation: 1}}, changes...)
}

func replicas(count int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &count }
}

// member is a pod of a StatefulSet, which is asked to leave.
func (s *story) member(name string, changes ...func(*v1.Pod)) {
	change(s, "Pod", &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}, OwnerReferences: []metav1.OwnerReference{
			{Kind: "StatefulSet", Name: "web", UID: "web", Controller: ptr.To(true)},
		}},
		Status: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}},
	}, changes...)
	s.requestOf(name)
}

// requestOf asks a pod of a StatefulSet to leave.
func (s *story) requestOf(name string, changes ...func(*coordinationv1alpha1.EvictionRequest)) {
	change(s, "EvictionRequest", &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, UID: types.UID(name)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: name, UID: name}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "drain.example.com"}},
		},
		Status: coordinationv1alpha1.EvictionRequestStatus{
			TargetInterceptors: []coordinationv1alpha1.Interceptor{{Name: ofStatefulSets}, {Name: imperative}}, ActiveInterceptors: []string{ofStatefulSets},
		},
	}, changes...)
}

// mayGo has the set let a pod go.
func (s *story) mayGo(name string) { s.requestOf(name, completedBy(ofStatefulSets)) }

// allows has the budget allow some pods to be unavailable.
func allows(pods int) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) {
		budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt(pods))
	}
}

func (s *story) budget(changes ...func(*policyv1.PodDisruptionBudget)) {
	change(s, "PodDisruptionBudget", &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}, changes...)
}

func charge(budget *policyv1.PodDisruptionBudget) {
	budget.Status.DisruptedPods = map[string]metav1.Time{"web-0": {}}
}

// TestRules tells histories, and expects which rule they break, and how.
func TestRules(t *testing.T) {
	for name, test := range map[string]struct {
		tell func(s *story)
		want string
	}{
		"evicted as wanted": {func(s *story) {
			s.evicting()
			s.pod(mark(requestUID))
			s.pod(terminate)
			s.removePod()
			s.request(process(migrate, imperative), finish(evicted, metav1.ConditionTrue))
		}, ""},
		"withdrawn when it was marked": {func(s *story) {
			s.evicting()
			s.pod(mark(requestUID))
			s.request(withdraw)
			s.removePod()
		}, ""},
		"marked when it was withdrawn": {func(s *story) {
			s.evicting()
			s.request(withdraw)
			s.pod(mark(requestUID))
			s.removePod()
		}, "did not want that since revision 4"},
		"marked before its turn": {func(s *story) {
			s.pod()
			s.request(activate(migrate))
			s.pod(mark(requestUID))
			s.pod(terminate)
		}, "a pod is evicted only while"},
		"evicted by the ReplicaSet controller in its turn": {func(s *story) {
			s.pod()
			s.request(activate(ofReplicaSets), func(request *coordinationv1alpha1.EvictionRequest) {
				request.Status.TargetInterceptors[0].Name = ofReplicaSets
			})
			s.pod(mark(requestUID))
			s.pod(terminate)
			s.removePod()
		}, ""},
		"marked for a request that was replaced": {func(s *story) {
			s.evicting()
			s.request(func(request *coordinationv1alpha1.EvictionRequest) { request.UID = "another" })
			s.pod(mark(requestUID))
			s.removePod()
		}, "a pod is evicted only while"},
		"marked again when it is wanted again": {func(s *story) {
			s.evicting()
			s.request(withdraw)
			s.pod(mark(requestUID))
			s.pod(func(pod *v1.Pod) { pod.Status.Conditions = pod.Status.Conditions[:1] })
			s.request(func(request *coordinationv1alpha1.EvictionRequest) {
				request.Spec.Requesters = []coordinationv1alpha1.Requester{{Name: "b"}}
			})
			s.pod(mark(requestUID))
			s.removePod()
		}, ""},
		"deleted by somebody": {func(s *story) {
			s.pod()
			s.request(activate(migrate))
			s.removePod()
		}, ""},
		"canceled while it is marked": {func(s *story) {
			s.evicting()
			s.pod(mark(requestUID))
			s.request(withdraw)
			s.request(finish(canceled, metav1.ConditionTrue))
		}, "is marked for its eviction"},
		"canceled, and marked when that was withdrawn": {func(s *story) {
			s.evicting()
			s.request(withdraw)
			s.pod(mark(requestUID))
			s.request(finish(canceled, metav1.ConditionTrue))
		}, ""},
		"canceled, marked too late, and deleted": {func(s *story) {
			s.evicting()
			s.request(withdraw)
			s.pod(mark(requestUID))
			s.request(finish(canceled, metav1.ConditionTrue))
			s.removePod()
		}, "a pod is evicted only while"},
		"canceled after it was deleted for it": {func(s *story) {
			s.evicting()
			s.pod(mark(requestUID))
			s.removePod()
			s.request(finish(canceled, metav1.ConditionTrue))
		}, "pod web-0 (UID 6b2a37a5) was deleted for it"},
		"canceled while it is marked for another one": {func(s *story) {
			s.evicting()
			s.pod(mark("another"))
			s.request(withdraw)
			s.request(finish(canceled, metav1.ConditionTrue))
		}, ""},
		"evicted, and it runs": {func(s *story) {
			s.evicting()
			s.request(finish(evicted, metav1.ConditionTrue))
		}, "who was evicted is gone: pod web-0 (UID 6b2a37a5) is Running"},
		"evicted, and it has failed": {func(s *story) {
			s.evicting()
			s.pod(func(pod *v1.Pod) { pod.Status.Phase = v1.PodFailed })
			s.request(finish(evicted, metav1.ConditionTrue))
		}, ""},
		"evicted, and its successor runs": {func(s *story) {
			s.evicting()
			s.pod(func(pod *v1.Pod) { pod.UID = "next" })
			s.request(finish(evicted, metav1.ConditionTrue))
		}, ""},
		"not the end": {func(s *story) {
			s.evicting()
			s.removePod()
			s.request(finish(evicted, metav1.ConditionTrue))
			s.request(func(request *coordinationv1alpha1.EvictionRequest) { request.Status.Conditions = nil })
		}, "Evicted was True and is not any more"},
		"two ends": {func(s *story) {
			s.evicting()
			s.removePod()
			s.request(finish(evicted, metav1.ConditionTrue))
			s.request(finish(canceled, metav1.ConditionTrue))
		}, "it is evicted and canceled"},
		"another request after the end": {func(s *story) {
			s.evicting()
			s.request(withdraw)
			s.request(finish(canceled, metav1.ConditionTrue))
			s.request(func(request *coordinationv1alpha1.EvictionRequest) {
				request.UID, request.Status = "another", coordinationv1alpha1.EvictionRequestStatus{}
			})
		}, ""},
		"an interceptor has completed": {func(s *story) {
			s.request(activate(migrate), at(s.now))
			s.request(completedBy(migrate), process(migrate), activate(imperative))
		}, ""},
		"an interceptor is silent": {func(s *story) {
			s.request(activate(migrate), at(s.now))
			s.wait(20 * time.Minute)
			s.request(process(migrate), activate(imperative))
		}, ""},
		"an interceptor loses its turn": {func(s *story) {
			s.request(activate(migrate), at(s.now))
			s.wait(19 * time.Minute)
			s.request(process(migrate), activate(imperative))
		}, "the turn of migrate.example.com is over"},
		"an interceptor loses its turn after a report": {func(s *story) {
			s.request(activate(migrate), at(s.now))
			s.wait(19 * time.Minute)
			s.request(report(migrate, s.now.Unix()))
			s.wait(19 * time.Minute)
			s.request(process(migrate), activate(imperative))
		}, "was silent for 19m0s, and not for 20m0s"},
		"an interceptor with little time": {func(s *story) {
			s.request(activate(migrate), at(s.now), func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.HeartbeatDeadlineSeconds = ptr.To[int32](600) })
			s.wait(11 * time.Minute)
			s.request(process(migrate), activate(imperative))
		}, ""},
		"interceptors are skipped": {func(s *story) {
			s.request(activate(migrate), at(s.now))
			s.request(process(migrate), activate(imperative), func(r *coordinationv1alpha1.EvictionRequest) {
				r.Status.Conditions = []metav1.Condition{{Type: "InterceptorsSkipped", Status: metav1.ConditionTrue}}
			})
		}, ""},
		"all interceptors of the pod": {func(s *story) {
			s.pod(func(pod *v1.Pod) { pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: migrate}} })
			s.request(activate(migrate))
		}, ""},
		"an interceptor of the pod is missing": {func(s *story) {
			s.pod(func(pod *v1.Pod) {
				pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: "backup.example.com"}}
			})
			s.request(activate(migrate))
		}, "pod web-0 (UID 6b2a37a5) has interceptor backup.example.com"},
		"out of turn": {func(s *story) { s.request(activate(imperative)) }, "is not the next one"},
		"twice":       {func(s *story) { s.request(process(migrate), activate(migrate)) }, "is not the next one"},
		"two at once": {func(s *story) { s.request(activate(migrate, imperative)) }, "are active"},
		"other interceptors": {func(s *story) {
			s.evicting()
			s.request(func(r *coordinationv1alpha1.EvictionRequest) { r.Status.TargetInterceptors = nil })
		}, "the interceptors were"},
		"active after an end": {func(s *story) { s.evicting(); s.removePod(); s.request(finish(evicted, "True"), activate(imperative)) }, "the request is finished"},
		"processed is undone": {func(s *story) { s.evicting(); s.request(process(), activate(migrate)) }, "the processed ones were"},
		"a report in turn": {func(s *story) {
			s.request(activate(migrate))
			s.request(report(migrate, 1))
			s.request(report(migrate, 2))
		}, ""},
		"a late report": {func(s *story) { s.evicting(); s.request(report(migrate, 1)) }, "reports, and is not active"},
		"an old report": {func(s *story) {
			s.request(activate(migrate))
			s.request(report(migrate, 1))
			s.request(process(migrate), activate(imperative))
			s.request(withdraw)
		}, ""},

		"a budget has allowed it": {func(s *story) {
			s.evicting()
			s.budget()
			s.wait(time.Minute)
			s.budget(charge)
			s.pod(mark(requestUID))
			s.removePod()
		}, ""},
		"a budget was not asked": {func(s *story) {
			s.evicting()
			s.budget()
			s.wait(time.Minute)
			s.pod(mark(requestUID))
			s.removePod()
		}, "budget web has not allowed it"},
		"a budget that is new": {func(s *story) {
			s.evicting()
			s.budget()
			s.pod(mark(requestUID))
			s.removePod()
		}, ""},
		"a budget of others": {func(s *story) {
			s.evicting()
			s.budget(func(budget *policyv1.PodDisruptionBudget) { budget.Spec.Selector.MatchLabels["app"] = "db" })
			s.wait(time.Minute)
			s.pod(mark(requestUID))
			s.removePod()
		}, ""},
		"a budget does not count it": {func(s *story) {
			s.evicting()
			s.budget()
			s.wait(time.Minute)
			s.pod(mark(requestUID), func(pod *v1.Pod) { pod.Status.Conditions[0].Status = v1.ConditionFalse })
			s.removePod()
		}, ""},
		"a budget below zero": {func(s *story) {
			s.budget(func(budget *policyv1.PodDisruptionBudget) { budget.Status.DisruptionsAllowed = -1 })
		}, "it allows -1 disruptions"},

		"drained": {func(s *story) {
			s.node(cordoned)
			s.maintenance()
			s.wait(time.Minute)
			s.node(drained("True"))
			s.maintenance(sayDrained)
		}, ""},
		"drained and schedulable": {func(s *story) { s.node(drained("True")) }, "is schedulable"},
		"drained with a pod": {func(s *story) {
			s.node(cordoned)
			s.pod()
			s.wait(time.Minute)
			s.node(drained("True"))
		}, "it becomes drained, and has pod prod/web-0"},
		"drained with a pod of a DaemonSet": {func(s *story) {
			s.node(cordoned)
			s.pod(func(pod *v1.Pod) { pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet"}} })
			s.wait(time.Minute)
			s.node(drained("True"))
		}, ""},
		"drained with a new pod": {func(s *story) { s.node(cordoned); s.pod(); s.node(drained("True")) }, ""},
		"a maintenance is drained, and a node has a pod": {func(s *story) {
			s.node(cordoned)
			s.pod()
			s.maintenance()
			s.wait(time.Minute)
			s.maintenance(sayDrained)
		}, "node n1 has pod prod/web-0"},
		"a maintenance is drained, and a node is schedulable": {func(s *story) {
			s.node()
			s.maintenance()
			s.wait(time.Minute)
			s.maintenance(sayDrained)
		}, "node n1 is schedulable"},
		"a maintenance is drained, and a new node is schedulable": {func(s *story) {
			s.maintenance()
			s.node()
			s.maintenance(sayDrained)
		}, ""},

		"uncordoned in the end": {func(s *story) {
			s.maintenance()
			s.node(cordoned, begun("m"))
			s.wait(time.Minute)
			s.maintenance(complete)
			s.node(uncordoned)
		}, ""},
		"uncordoned too early": {func(s *story) {
			s.maintenance()
			s.node(cordoned, begun("m"))
			s.wait(time.Minute)
			s.node(uncordoned)
		}, "it is uncordoned, and maintenance m claims it"},
		"uncordoned by hand": {func(s *story) {
			s.maintenance()
			s.node(cordoned, begun("m"))
			s.wait(time.Minute)
			s.node(uncordoned, byHand("1"))
		}, ""},
		"uncordoned before a new one was seen": {func(s *story) {
			s.node(cordoned)
			s.wait(time.Minute)
			s.maintenance()
			s.node(begun("m"))
			s.wait(settled - time.Millisecond)
			s.node(uncordoned)
		}, ""},
		"uncordoned when another maintenance cordons it": {func(s *story) {
			s.maintenance(cordons)
			s.node(cordoned)
			s.wait(time.Minute)
			s.node(uncordoned)
		}, "it is uncordoned, and maintenance m claims it"},
		"uncordoned when another maintenance has just come to cordon it": {func(s *story) {
			s.node(cordoned)
			s.maintenance(cordons)
			s.wait(settled - time.Millisecond)
			s.node(uncordoned)
		}, ""},
		"uncordoned against a person": {func(s *story) {
			s.node()
			s.node(cordoned, byHand("1"))
			s.node(uncordoned)
		}, "a person has cordoned it"},
		"uncordoned, and cordoned by hand as well": {func(s *story) {
			s.node(cordoned)
			s.node(byHand("1"))
			s.node(uncordoned)
		}, ""},
		"uncordoned after a person has changed their mind": {func(s *story) {
			s.node()
			s.node(cordoned, byHand("1"))
			s.node(uncordoned, byHand("2"))
			s.node(cordoned)
			s.node(uncordoned)
		}, ""},
		"uncordoned against a person who has applied it as well": {func(s *story) {
			s.node(cordoned)
			s.node(byHand("1"), applied)
			s.node(uncordoned)
		}, "a person has cordoned it"},
		"uncordoned after a person has applied that": {func(s *story) {
			s.node(cordoned, byHand("1"), applied)
			s.node(uncordoned, byHand("2"), applied)
			s.node(cordoned)
			s.node(uncordoned)
		}, ""},
		"a condition of somebody else goes": {func(s *story) {
			s.node(announced)
			s.node(func(node *v1.Node) { node.Status.Conditions = nil })
		}, "somebody else has written MaintenancePlanned, and it is gone"},
		"a maintenance overrules a condition": {func(s *story) {
			s.node(announced)
			s.node(func(node *v1.Node) { node.Status.Conditions[0].Reason = "MaintenancePlanned" })
			s.node(func(node *v1.Node) { node.Status.Conditions = nil })
		}, ""},
		"targets step back": {func(s *story) {
			s.maintenance()
			s.node(cordoned, begun("m"), aimedAt(1000))
			s.wait(time.Minute)
			s.node(aimedAt(2000))
			s.node(aimedAt(1000))
		}, "Default went up to 2000, and now the targets are map[Default:1000]"},
		"targets are withdrawn during a drain": {func(s *story) {
			s.maintenance()
			s.node(cordoned, begun("m"), aimedAt(1000))
			s.wait(time.Minute)
			s.node(aimedAtNothing)
		}, "Default went up to 1000"},
		"targets are withdrawn, and another maintenance cordons": {func(s *story) {
			s.maintenance(func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageCordon
			})
			s.node(cordoned, begun("m"), aimedAt(1000))
			s.wait(time.Minute)
			s.node(aimedAtNothing)
		}, ""},
		"targets are withdrawn, and another maintenance has just begun to drain": {func(s *story) {
			s.maintenance(func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageCordon
			})
			s.node(cordoned, begun("m"), aimedAt(1000))
			s.wait(time.Minute)
			s.maintenance(func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageDrain
			})
			s.node(aimedAtNothing)
		}, ""},
		"targets are withdrawn in the end": {func(s *story) {
			s.maintenance()
			s.node(cordoned, begun("m"), aimedAt(1000))
			s.wait(time.Minute)
			s.maintenance(complete)
			s.node(aimedAtNothing)
		}, ""},

		"targets are withdrawn when the node returns": {func(s *story) {
			s.maintenance(inTurn(1))
			s.node(cordoned, begun("m"), aimedAt(1000))
			s.wait(time.Minute)
			s.node(returning)
			s.node(aimedAtNothing)
			s.node(done, uncordoned)
		}, ""},
		"uncordoned while a maintenance waits for its turn": {func(s *story) {
			s.maintenance()
			s.node(cordoned)
			s.wait(time.Minute)
			s.node(uncordoned)
		}, ""},
		"a rollout is drained, and a node has been given back": {func(s *story) {
			s.maintenance(inTurn(1))
			s.node(begun("m"), emptied, returning, done)
			s.wait(time.Minute)
			s.maintenance(sayDrained)
		}, ""},
		"a rollout is drained, and a node was given back before it was": {func(s *story) {
			s.maintenance(inTurn(1))
			s.node(begun("m"), returning, done)
			s.wait(time.Minute)
			s.maintenance(sayDrained)
		}, "node n1 was given back before it was drained"},

		"evicted for no request": {func(s *story) {
			s.pod()
			s.request(activate(migrate))
			s.pod(mark(requestUID), evictedBy(migrate))
			s.pod(terminate)
		}, "it is evicted, and not for a request"},
		"evicted for no request when the interceptors are done": {func(s *story) {
			s.evicting()
			s.wait(time.Hour)
			s.pod(mark(requestUID), evictedBy(migrate))
			s.pod(terminate)
		}, ""},
		"evicted for no request just after the interceptors were done": {func(s *story) {
			s.evicting()
			s.wait(time.Hour)
			s.request(withdraw)
			s.wait(drainSlack)
			s.pod(mark(requestUID), evictedBy(migrate))
			s.pod(terminate)
		}, ""},
		"evicted for no request long after the interceptors were done": {func(s *story) {
			s.evicting()
			s.request(withdraw)
			s.wait(drainSlack + time.Second)
			s.pod(mark(requestUID), evictedBy(migrate))
			s.pod(terminate)
		}, "it is evicted, and not for a request"},
		"a pod of a DaemonSet is evicted for no request": {func(s *story) {
			s.evicting()
			s.pod(mark(requestUID), evictedBy("daemonset.apps.k8s.io"))
			s.pod(terminate)
		}, ""},
		"a StatefulSet that replaces its pods": {func(s *story) {
			for i := range int32(4 * maxReturns) {
				change(s, "StatefulSet", &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "db"}}, func(set *appsv1.StatefulSet) {
					set.Status.ReadyReplicas = i % 2
				})
			}
		}, ""},
		"evicted during a drain": {func(s *story) {
			s.maintenance()
			s.node(begun("m"))
			s.wait(time.Hour)
			s.drainEvicts()
		}, ""},
		"evicted just after a drain": {func(s *story) {
			s.maintenance()
			s.node(begun("m"))
			s.wait(time.Hour)
			s.maintenance(complete)
			s.wait(drainSlack)
			s.drainEvicts()
		}, ""},
		"evicted long after a drain": {func(s *story) {
			s.maintenance()
			s.node(begun("m"))
			s.wait(time.Hour)
			s.maintenance(complete)
			s.wait(drainSlack + time.Second)
			s.drainEvicts()
		}, "its node n1 is drained by no maintenance, for 26s"},
		"evicted long after the node was given back": {func(s *story) {
			s.maintenance()
			s.node(begun("m"))
			s.wait(time.Hour)
			s.node(done)
			s.wait(time.Minute)
			s.drainEvicts()
		}, "its node n1 is drained by no maintenance, for 1m0s"},
		"evicted before the drain has begun": {func(s *story) {
			s.maintenance()
			s.node()
			s.wait(time.Hour)
			s.drainEvicts()
		}, "its node n1 is drained by no maintenance"},
		"evicted long after a drain, for others as well": {func(s *story) {
			s.maintenance(complete)
			s.node(begun("m"))
			s.wait(time.Hour)
			s.drainEvicts(coordinationv1alpha1.Requester{Name: "drain.example.com"})
		}, ""},

		"as many at once as the budget allows": {func(s *story) {
			s.limit(2)
			s.maintenance()
			s.node(begun("m"))
			s.nodeNamed("n2", begun("m"))
		}, ""},
		"more at once than the budget allows": {func(s *story) {
			s.limit(2)
			s.maintenance()
			s.node(begun("m"))
			s.nodeNamed("n2", begun("m"))
			s.nodeNamed("n3", begun("m"))
		}, "3 nodes of budget b are unavailable, which allows 2"},
		"a node that two maintenances share": {func(s *story) {
			s.limit(1)
			s.maintenance()
			s.write(Key{"NodeMaintenance", types.NamespacedName{Name: "other"}}, maintenanceNamed("other"))
			s.node(begun("m"))
			s.node(begun("other"))
		}, ""},
		"a node that two maintenances share, beside one too many": {func(s *story) {
			s.maintenance()
			s.nodeNamed("n2", begun("m"))
			s.node(begun("m"))
			s.limit(1)
			s.wait(time.Second)
			s.write(Key{"NodeMaintenance", types.NamespacedName{Name: "other"}}, maintenanceNamed("other"))
			s.node(begun("other"))
		}, ""},
		"one after the other": {func(s *story) {
			s.limit(1)
			s.maintenance()
			s.node(begun("m"))
			s.node(done)
			s.nodeNamed("n2", begun("m"))
		}, ""},
		"a person has cordoned another node": {func(s *story) {
			s.limit(1)
			s.maintenance()
			s.nodeNamed("n2", cordoned)
			s.wait(decision)
			s.node(begun("m"))
		}, "2 nodes of budget b are unavailable, which allows 1"},
		"a person has just cordoned another node": {func(s *story) {
			s.limit(1)
			s.maintenance()
			s.nodeNamed("n2", cordoned)
			s.wait(decision - time.Second)
			s.node(begun("m"))
		}, ""},
		"another node is down": {func(s *story) {
			s.limit(1)
			s.maintenance()
			s.nodeNamed("n2", unready)
			s.wait(decision)
			s.node(begun("m"))
		}, "2 nodes of budget b are unavailable, which allows 1"},
		"another node is down since a moment ago": {func(s *story) {
			s.limit(1)
			s.maintenance()
			s.nodeNamed("n2", unready)
			s.wait(decision - time.Second)
			s.node(begun("m"))
		}, ""},
		"a pool that was cordoned at once": {func(s *story) {
			s.limit(1)
			s.maintenance()
			s.nodeNamed("n2", cordoned)
			s.node(cordoned)
			s.wait(time.Hour)
			s.node(begun("m"))
		}, ""},
		"a pool that was cordoned is drained at once": {func(s *story) {
			s.limit(1)
			s.maintenance()
			s.nodeNamed("n2", cordoned)
			s.node(cordoned)
			s.wait(time.Hour)
			s.node(begun("m"))
			s.nodeNamed("n2", begun("m"))
		}, "2 nodes of budget b are unavailable, which allows 1"},
		"a budget that allows less by now": {func(s *story) {
			s.limit(2)
			s.maintenance()
			s.node(begun("m"))
			s.wait(time.Second)
			s.limit(1)
			s.nodeNamed("n2", begun("m"))
		}, ""},
		"a budget that has allowed less all the time": {func(s *story) {
			s.limit(2)
			s.limit(1)
			s.wait(time.Second)
			s.maintenance()
			s.node(begun("m"))
			s.nodeNamed("n2", begun("m"))
		}, "which allows 1"},
		"a budget that is younger": {func(s *story) {
			s.maintenance()
			s.wait(time.Second)
			s.limit(0)
			s.node(begun("m"))
		}, ""},
		"a budget of other nodes": {func(s *story) {
			s.limit(0, func(b *coordinationv1alpha1.NodeMaintenanceBudget) { b.Spec.NodeSelector = ofRack("8") })
			s.maintenance()
			s.node(begun("m"))
		}, ""},
		"more zones than the budget allows": {func(s *story) {
			s.limit(5, oneZone)
			s.maintenance()
			s.nodeNamed("n2", begun("m"))
			s.nodeNamed("n3", begun("m"))
		}, "nodes in 2 domains of budget b are maintained, which allows 1"},
		"more nodes than the rollout allows": {func(s *story) {
			s.maintenance(inTurn(1))
			s.node(begun("m"))
			s.nodeNamed("n2", begun("m"))
		}, "maintenance m has begun with 2 nodes, and its rollout allows 1"},
		"a node that has failed is no longer counted": {func(s *story) {
			s.maintenance(inTurn(1))
			s.node(begun("m"), failed)
			s.nodeNamed("n2", begun("m"))
		}, ""},
		"a maintenance that was never there": {func(s *story) { s.node(begun("m")) }, "was never there"},
		"a maintenance loses a node": {func(s *story) {
			s.maintenance()
			s.node(begun("m"))
			s.node(forgotten)
		}, "maintenance m had begun with it, and goes on"},
		"a maintenance loses a node that is back before its drain": {func(s *story) {
			s.maintenance()
			s.node(begun("m"))
			s.node(readyAt(1))
			s.node(forgotten)
		}, ""},
		"a maintenance loses a node that is back later": {func(s *story) {
			s.maintenance()
			s.node(begun("m"), aimedAt(1))
			s.node(readyAt(1))
			s.node(forgotten)
		}, "maintenance m had begun with it, and goes on"},
		"a maintenance loses a node that was Ready before": {func(s *story) {
			s.maintenance()
			s.node(readyAt(-1))
			s.node(begun("m"), func(node *v1.Node) {
				statusOf(node).Admissions[0].AdmittedTime = metav1.NewTime(time.Unix(0, 0))
			})
			s.node(forgotten)
		}, "maintenance m had begun with it, and goes on"},
		"a maintenance is done with a node": {func(s *story) {
			s.maintenance()
			s.node(begun("m"))
			s.node(done)
			s.node(forgotten)
		}, ""},
		"a maintenance that has ended loses a node": {func(s *story) {
			s.maintenance()
			s.node(begun("m"))
			s.maintenance(complete)
			s.node(forgotten)
		}, ""},

		"gone after a surge": {func(s *story) {
			s.pod(ofSet)
			s.set(1, podUID)
			s.other(true)
			s.pod(terminate)
		}, ""},
		"gone before its replacement is ready": {func(s *story) {
			s.pod(ofSet)
			s.set(1, podUID)
			s.other(false)
			s.pod(terminate)
		}, "0 of 1 replicas are ready without it"},
		"gone before it was ready": {func(s *story) {
			s.pod(ofSet, neverReady)
			s.set(1, podUID)
			s.other(false)
			s.pod(neverReady, terminate)
		}, ""},
		"gone when its replacement has just failed": {func(s *story) {
			s.pod(ofSet)
			s.set(1, podUID)
			s.other(true)
			s.other(false)
			s.pod(terminate)
		}, ""},
		"gone when fewer have failed than are missing": {func(s *story) {
			s.pod(ofSet)
			s.set(2, podUID)
			s.other(true)
			s.other(false)
			s.pod(terminate)
		}, "0 of 2 replicas are ready without it"},
		"gone when the Deployment was just scaled": {func(s *story) {
			s.pod(ofSet)
			s.deployment()
			s.set(1, podUID)
			s.other(false)
			s.pod(terminate)
		}, ""},
		"gone when the Deployment was scaled down during a surge": {func(s *story) {
			s.pod(ofSet)
			s.deployment(replicas(2))
			s.other(true)
			s.wait(settled)
			s.deployment(replicas(1))
			s.set(2, podUID)
			s.pod(terminate)
		}, ""},
		"gone when the Deployment wants more": {func(s *story) {
			s.pod(ofSet)
			s.deployment(replicas(2))
			s.other(true)
			s.wait(settled)
			s.set(2, podUID)
			s.pod(terminate)
		}, "1 of 2 replicas are ready without it"},
		"gone long after the Deployment was scaled": {func(s *story) {
			s.pod(ofSet)
			s.deployment()
			s.set(1, podUID)
			s.other(false)
			s.wait(settled)
			s.pod(terminate)
		}, "0 of 1 replicas are ready without it"},
		"gone when its replacement has failed before": {func(s *story) {
			s.pod(ofSet)
			s.set(1, podUID)
			s.other(true)
			s.other(false)
			s.wait(settled)
			s.removePod()
		}, "0 of 1 replicas are ready without it"},
		"deleted by somebody during a surge": {func(s *story) {
			s.pod(ofSet)
			s.set(1)
			s.pod(terminate)
		}, ""},

		"pods of a set go in turn": {func(s *story) {
			s.member("web-0")
			s.member("web-1")
			s.wait(settled)
			s.mayGo("web-1")
			s.write(Key{"Pod", types.NamespacedName{Namespace: "prod", Name: "web-1"}}, nil)
			s.requestOf("web-1", finish(evicted, metav1.ConditionTrue))
			s.mayGo("web-0")
		}, ""},
		"pods of a set go at once": {func(s *story) {
			s.member("web-0")
			s.member("web-1")
			s.wait(settled)
			s.mayGo("web-1")
			s.mayGo("web-0")
		}, "pods web-0, web-1 may all be evicted now, and at most 1 may be unavailable"},
		"a pod of a set goes beside one that has just become ready": {func(s *story) {
			s.member("web-0")
			s.member("web-1", neverReady)
			s.mayGo("web-1")
			s.member("web-1", func(pod *v1.Pod) { pod.Status.Conditions[0].Status = v1.ConditionTrue })
			s.mayGo("web-0")
		}, ""},
		"a pod of a set goes beside one that does not serve": {func(s *story) {
			s.member("web-0")
			s.member("web-1")
			s.wait(settled)
			s.mayGo("web-1")
			s.member("web-0", neverReady)
			s.mayGo("web-0")
		}, ""},
		"a pod of a set goes when the request of another one is canceled": {func(s *story) {
			s.member("web-0")
			s.member("web-1")
			s.wait(settled)
			s.mayGo("web-1")
			s.requestOf("web-1", finish(canceled, metav1.ConditionTrue))
			s.mayGo("web-0")
		}, ""},
		"as many pods of a set go at once as their budget allows": {func(s *story) {
			s.budget(allows(2))
			s.member("web-0")
			s.member("web-1")
			s.wait(settled)
			s.mayGo("web-1")
			s.mayGo("web-0")
		}, ""},
		"as many pods of a set go at once as their budget has just allowed": {func(s *story) {
			s.budget(allows(2))
			s.member("web-0")
			s.member("web-1")
			s.wait(settled)
			s.budget(allows(0))
			s.mayGo("web-1")
			s.mayGo("web-0")
		}, ""},
		"more pods of a set go at once than their budget allows": {func(s *story) {
			s.budget(allows(2))
			s.budget(allows(0))
			s.member("web-0")
			s.member("web-1")
			s.wait(decision + time.Second)
			s.mayGo("web-1")
			s.mayGo("web-0")
		}, "at most 1 may be unavailable"},

		"a fight": {func(s *story) {
			for range maxReturns + 2 {
				s.node(cordoned)
				s.wait(time.Second)
				s.node(uncordoned)
			}
		}, "it returned to the same state 21 times"},
		"a fight by hand": {func(s *story) {
			for i := range maxReturns + 2 {
				s.node(cordoned)
				s.wait(time.Second)
				s.node(uncordoned, byHand(strconv.Itoa(i)))
			}
		}, "it returned to the same state 21 times"},
		"a fight that the status reports": {func(s *story) {
			for i := range maxReturns + 2 {
				s.node(cordoned, aimedAt(int32(i)))
				s.wait(time.Second)
				s.node(uncordoned)
			}
		}, "it returned to the same state 21 times"},
		"a status that changes": {func(s *story) {
			for i := range 4 * maxReturns {
				s.node(aimedAt(int32(i)))
			}
		}, ""},
		"a request that is created again and again": {func(s *story) {
			s.requests(maxCreations+1, drainRequester)
		}, "it was created 21 times for a drain within"},
		"a request that others create again and again": {func(s *story) { s.requests(maxCreations+1, "somebody.example.com") }, ""},
		"a request that is created as often as may be": {func(s *story) { s.requests(maxCreations, drainRequester) }, ""},
		"a slow fight": {func(s *story) {
			for range 10 * maxReturns {
				s.node(cordoned)
				s.wait(4 * time.Second)
				s.node(uncordoned)
			}
		}, ""},
		"progress": {func(s *story) {
			for i := range maxWrites - 1 {
				s.node(aimedAt(int32(i)))
			}
		}, ""},
		"a flood": {func(s *story) {
			for i := range maxWrites + 1 {
				s.node(aimedAt(int32(i)))
			}
		}, "it was written 901 times within"},
		"a slow flood": {func(s *story) {
			for i := range 3 * maxWrites {
				s.node(aimedAt(int32(i)))
				s.wait(time.Second)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			test.tell(s)
			if test.want == "" && len(s.broken) > 0 || test.want != "" && (len(s.broken) != 1 || !strings.Contains(s.broken[0], test.want)) {
				t.Errorf("got %q, want %q", s.broken, test.want)
			}
		})
	}
}

// TestUnfinished tells histories that have come to an end, and expects what is left of them.
func TestUnfinished(t *testing.T) {
	idle := func(m *coordinationv1alpha1.NodeMaintenance) {
		m.Spec.Stage = coordinationv1alpha1.NodeMaintenanceStageIdle
	}
	inProgress := func(node *v1.Node) {
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeMaintenanceInProgress, Status: v1.ConditionTrue}}
	}
	saysPlanned := func(node *v1.Node) {
		node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeMaintenancePlanned, Status: v1.ConditionTrue}}
	}
	planned := func(node *v1.Node) { node.Spec.Taints = []v1.Taint{{Key: plannedTaint}} }
	forDrain := func(request *coordinationv1alpha1.EvictionRequest) { request.Spec.Requesters[0].Name = drainRequester }
	for name, test := range map[string]struct {
		tell func(s *story)
		want string
	}{
		"a drain that goes on": {func(s *story) {
			s.maintenance()
			s.node(cordoned, begun("m"), aimedAt(1000), inProgress)
			s.pod()
			s.request(forDrain)
		}, ""},
		"all is over": {func(s *story) {
			s.maintenance(complete)
			s.node(begun("m"))
			s.pod()
			s.request(forDrain, finish(canceled, metav1.ConditionTrue))
		}, ""},
		"a node that is to be cordoned":                 {func(s *story) { s.maintenance(cordons); s.node() }, "node n1 is schedulable, and maintenance m cordons it"},
		"a node that is cordoned":                       {func(s *story) { s.maintenance(cordons); s.node(cordoned) }, ""},
		"cordoned by hand":                              {func(s *story) { s.node(); s.node(cordoned, byHand("1")) }, ""},
		"cordoned for ever":                             {func(s *story) { s.maintenance(complete); s.node(); s.node(cordoned) }, "node n1 stays unschedulable"},
		"planned":                                       {func(s *story) { s.maintenance(idle); s.node() }, ""},
		"planned for a drain":                           {func(s *story) { s.maintenance(); s.node(planned) }, ""},
		"a taint of a node that a drain has begun with": {func(s *story) { s.maintenance(); s.node(cordoned, begun("m"), planned) }, "node n1 has the taint"},
		"cordoned for ever, and another drain has yet to begin": {func(s *story) { s.maintenance(); s.node(); s.node(cordoned) }, "node n1 stays unschedulable"},
		"cordoned until the drain begins": {func(s *story) {
			s.maintenance(func(m *coordinationv1alpha1.NodeMaintenance) {
				m.Status.StageStatuses = []coordinationv1alpha1.StageStatus{{Name: coordinationv1alpha1.NodeMaintenanceStageCordon}}
			})
			s.node()
			s.node(cordoned)
		}, ""},
		"cordoned for ever after it was given back":                {func(s *story) { s.maintenance(); s.node(); s.node(cordoned, begun("m"), done) }, "node n1 stays unschedulable"},
		"in progress for ever, and another drain has yet to begin": {func(s *story) { s.maintenance(); s.node(inProgress) }, "node n1 says that a maintenance is in progress"},
		"targets for ever, and another drain has yet to begin":     {func(s *story) { s.maintenance(); s.node(aimedAt(1000)) }, "node n1 has the drain targets map[Default:1000]"},
		"requested for ever, and another drain has yet to begin":   {func(s *story) { s.maintenance(); s.node(); s.pod(); s.request(forDrain) }, "the eviction of pod web-0 (UID 6b2a37a5) is requested for a drain"},
		"in progress for ever":                                     {func(s *story) { s.maintenance(idle); s.node(inProgress) }, "node n1 says that a maintenance is in progress"},
		"somebody else says so": {func(s *story) {
			s.node(inProgress, func(node *v1.Node) { node.Status.Conditions[0].Reason = Announced })
		}, ""},
		"targets for ever": {func(s *story) { s.node(aimedAt(1000)) }, "node n1 has the drain targets map[Default:1000]"},
		"a taint for ever": {func(s *story) { s.maintenance(complete); s.node(planned) }, "node n1 has the taint nodemaintenance.k8s.io/planned"},
		"being deleted for ever": {func(s *story) {
			s.maintenance(func(m *coordinationv1alpha1.NodeMaintenance) {
				m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			})
		}, "maintenance m is being deleted"},
		"requested for ever":                        {func(s *story) { s.node(); s.pod(); s.request(forDrain) }, "the eviction of pod web-0 (UID 6b2a37a5) is requested for a drain"},
		"requested by others":                       {func(s *story) { s.node(); s.pod(); s.request() }, ""},
		"requested for ever after the pod has gone": {func(s *story) { s.node(); s.request() }, "pod web-0 is gone, and request"},
		"planned for ever":                          {func(s *story) { s.maintenance(complete); s.node(saysPlanned) }, "node n1 says MaintenancePlanned, and no maintenance selects it"},
		"planned for a drain, as it says":           {func(s *story) { s.maintenance(); s.node(saysPlanned) }, ""},
		"planned by one that is idle":               {func(s *story) { s.maintenance(idle); s.node(saysPlanned) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			test.tell(s)
			left := s.checker.Unfinished()
			if test.want == "" && len(left) > 0 || test.want != "" && (len(left) != 1 || !strings.Contains(left[0], test.want)) {
				t.Errorf("got %q, want %q", left, test.want)
			}
		})
	}
}

// TestBreak breaks a rule that is about no single object.
func TestBreak(t *testing.T) {
	s := newStory()
	s.node()
	s.checker.Break(Liveness, "it goes on")
	violations := s.checker.Violations()
	if want := `revision 1 breaks "everything comes to an end": it goes on`; len(violations) != 1 || violations[0].String() != want {
		t.Errorf("got %v, want %s", violations, want)
	}
}

// A violation shows what a person needs who has not seen the history.
func TestViolation(t *testing.T) {
	s := newStory()
	s.write(Key{"Node", types.NamespacedName{Name: "n2"}}, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}})
	s.node(cordoned)
	s.evicting()
	s.wait(90 * time.Second)
	s.node(drained("True"), func(node *v1.Node) {
		node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Subresource: "status"}}
	})
	if got := s.checker.Revisions(); got != 6 {
		t.Errorf("%d revisions were checked, want 6", got)
	}
	if diff := cmp.Diff(map[string]int{"Node Drained": 1}, s.checker.Tally()); diff != "" {
		t.Errorf("tally (-want, +got):\n%s", diff)
	}
	violations := s.checker.Violations()
	if len(violations) != 1 {
		t.Fatalf("%d violations, want 1", len(violations))
	}
	text := violations[0].String()
	for _, want := range []string{
		`revision 6 breaks "a node that is drained is cordoned and empty": Node/n1: it becomes drained, and has pod prod/web-0`,
		`type: Drained`, "Node/n1: created, unschedulable: true", `Pod/prod/web-0: created, on "n1", Running, ready: true`,
		"6    90.000s  Node/n1: unschedulable: true, Drained (), by kube-controller-manager/status",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for _, unwanted := range []string{"n2", "managedFields", "EvictionRequest"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q has nothing to do with\n%s", unwanted, text)
		}
	}
}

// It also shows how the objects came to be as they are that it names.
func TestViolationOfNamedObject(t *testing.T) {
	s := newStory()
	s.write(Key{"Node", types.NamespacedName{Name: "n2"}}, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}})
	s.node()
	s.maintenance()
	s.wait(time.Minute)
	s.maintenance(sayDrained)
	violations := s.checker.Violations()
	if len(violations) != 1 {
		t.Fatalf("%d violations, want 1", len(violations))
	}
	if text := violations[0].String(); !strings.Contains(text, "node n1 is schedulable") || !strings.Contains(text, "Node/n1: created") || strings.Contains(text, "Node/n2") {
		t.Errorf("the node is not shown:\n%s", text)
	}
}
