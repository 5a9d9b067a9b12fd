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

package availability

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"
)

// appLabel is on the pods; its value is the name of their Deployment, StatefulSet or
// DaemonSet.
const appLabel = "app"

// Record is what was observed. Names are keys.
type Record struct {
	// ReadyEndpoints are those of a Service, in all of its EndpointSlices.
	ReadyEndpoints map[string]Series
	// Apps are the pods of an app.
	Apps map[string]*App
	// Pods are all that were ever seen, those that are gone too.
	Pods map[types.UID]*Pod
	// Conditions are those of a Deployment.
	Conditions map[string]map[appsv1.DeploymentConditionType][]Condition

	slices map[types.UID]sliceState
}

// App counts the pods with one value of the label app.
type App struct {
	// Active are the pods that a controller counts: not terminating, not finished.
	Active Series
	// Existing are these and those that terminate.
	Existing Series
	// Ready are the active ones that are ready: those that a PodDisruptionBudget counts.
	Ready Series
}

// Pod is one pod, and when it left.
type Pod struct {
	Name, App, Node string
	// Terminating is when its deletion began, Gone is when it was gone. Both are nil until then.
	Terminating, Gone *Moment

	active, ready bool
}

// Condition is one state of a condition of a Deployment. A missing condition has the status "".
type Condition struct {
	Moment
	Status          v1.ConditionStatus
	Reason, Message string
}

// sliceState is what counts of an EndpointSlice.
type sliceState struct {
	service string
	ready   int
}

func newRecord() *Record {
	return &Record{
		ReadyEndpoints: map[string]Series{},
		Apps:           map[string]*App{},
		Pods:           map[types.UID]*Pod{},
		Conditions:     map[string]map[appsv1.DeploymentConditionType][]Condition{},
		slices:         map[types.UID]sliceState{},
	}
}

// observe records the state of an object, or its end.
func (r *Record) observe(object runtime.Object, deleted bool, moment Moment) {
	switch object := object.(type) {
	case *discoveryv1.EndpointSlice:
		r.observeSlice(object, deleted, moment)
	case *v1.Pod:
		r.observePod(object, deleted, moment)
	case *appsv1.Deployment:
		r.observeDeployment(object, deleted, moment)
	}
}

// observeSlice records the ready endpoints of the Service of an EndpointSlice. An endpoint without
// the condition is ready, and one that terminates is not.
func (r *Record) observeSlice(slice *discoveryv1.EndpointSlice, deleted bool, moment Moment) {
	state := sliceState{service: slice.Labels[discoveryv1.LabelServiceName]}
	for _, endpoint := range slice.Endpoints {
		if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
			state.ready++
		}
	}
	if deleted {
		delete(r.slices, slice.UID)
	} else {
		r.slices[slice.UID] = state
	}
	ready := 0
	for _, other := range r.slices {
		if other.service == state.service {
			ready += other.ready
		}
	}
	r.ReadyEndpoints[state.service] = r.ReadyEndpoints[state.service].add(ready, moment)
}

// observePod records the state of a pod, and how many there are of its app.
func (r *Record) observePod(pod *v1.Pod, deleted bool, moment Moment) {
	state := r.Pods[pod.UID]
	if state == nil {
		state = &Pod{Name: pod.Name, App: pod.Labels[appLabel]}
		r.Pods[pod.UID] = state
	}
	state.Node = pod.Spec.NodeName
	state.active = !deleted && controller.IsPodActive(pod)
	state.ready = state.active && podutil.IsPodReady(pod)
	if (deleted || pod.DeletionTimestamp != nil) && state.Terminating == nil {
		state.Terminating = &moment
	}
	if (deleted || podutil.IsPodTerminal(pod)) && state.Gone == nil {
		state.Gone = &moment
	}
	r.count(state.App, moment)
}

func (r *Record) count(name string, moment Moment) {
	active, existing, ready := 0, 0, 0
	for _, pod := range r.Pods {
		if pod.App != name {
			continue
		}
		if pod.active {
			active++
		}
		if pod.Gone == nil {
			existing++
		}
		if pod.ready {
			ready++
		}
	}
	if r.Apps[name] == nil {
		r.Apps[name] = &App{}
	}
	app := r.Apps[name]
	app.Active = app.Active.add(active, moment)
	app.Existing = app.Existing.add(existing, moment)
	app.Ready = app.Ready.add(ready, moment)
}

// observeDeployment records the conditions of a Deployment that have changed.
func (r *Record) observeDeployment(deployment *appsv1.Deployment, deleted bool, moment Moment) {
	conditions := r.Conditions[deployment.Name]
	if conditions == nil {
		conditions = map[appsv1.DeploymentConditionType][]Condition{}
		r.Conditions[deployment.Name] = conditions
	}
	now := map[appsv1.DeploymentConditionType]Condition{}
	for known := range conditions {
		now[known] = Condition{Moment: moment}
	}
	if !deleted {
		for _, condition := range deployment.Status.Conditions {
			now[condition.Type] = Condition{Moment: moment, Status: condition.Status, Reason: condition.Reason, Message: condition.Message}
		}
	}
	for conditionType, condition := range now {
		history := conditions[conditionType]
		if len(history) > 0 && history[len(history)-1].same(condition) {
			continue
		}
		conditions[conditionType] = append(history, condition)
	}
}

func (c Condition) same(other Condition) bool {
	return c.Status == other.Status && c.Reason == other.Reason && c.Message == other.Message
}

// OnNode returns the pods that were on a node, in the order of their names.
func (r *Record) OnNode(node string) []*Pod {
	var pods []*Pod
	for _, pod := range r.Pods {
		if pod.Node == node {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}
