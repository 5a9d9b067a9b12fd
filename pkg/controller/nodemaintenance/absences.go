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
	"maps"
	"slices"
	"sync"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/status"
)

// Absence is that nobody runs an interceptor.
type Absence struct {
	// Why says what is off, and where.
	Why string
	// MaybeElsewhere is whether another process may run the interceptor. Then pods that name it are not left: the
	// controller that has created them takes part.
	MaybeElsewhere bool
}

// Absences has which interceptors nobody runs that are the only ones to stop their pods. Such a pod is left on
// its node, as kubectl drain --ignore-daemonsets leaves it, and is counted apart: a drain would wait for it for
// ever. Nil has none.
type Absences struct {
	lock sync.Mutex
	// byName has the absences by the names of the interceptors.
	byName map[string]Absence
	// changed is called after a change.
	changed func()
}

// NewAbsences returns absences of interceptors, by their names.
func NewAbsences(byName map[string]Absence) *Absences {
	a := &Absences{byName: map[string]Absence{}}
	maps.Copy(a.byName, byName)
	return a
}

// Set records that nobody runs the interceptor, and why.
func (a *Absences) Set(interceptor string, absence Absence) {
	a.update(func() { a.byName[interceptor] = absence })
}

// Clear records that somebody runs the interceptor.
func (a *Absences) Clear(interceptor string) {
	a.update(func() { delete(a.byName, interceptor) })
}

func (a *Absences) update(change func()) {
	a.lock.Lock()
	change()
	changed := a.changed
	a.lock.Unlock()
	if changed != nil {
		changed()
	}
}

// Get returns why nobody runs the interceptor, and false if somebody does.
func (a *Absences) Get(interceptor string) (Absence, bool) {
	if a == nil {
		return Absence{}, false
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	absence, found := a.byName[interceptor]
	return absence, found
}

// why is Get without whether another process may run the interceptor.
func (a *Absences) why(interceptor string) (string, bool) {
	absence, absent := a.Get(interceptor)
	return absence.Why, absent
}

// onChange sets what is called after a change.
func (a *Absences) onChange(changed func()) {
	if a == nil {
		return
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	a.changed = changed
}

// foreignAbsent is why pods of DaemonSets of other API groups stay that name no interceptor.
const foreignAbsent = "their DaemonSets are of other API groups than apps, and they name no interceptor"

// whyUnstopped returns why the controller of the pod takes no part in maintenances; empty for pods of which it
// does, and for pods that are evicted.
func (a *Absences) whyUnstopped(pod *v1.Pod, nodes corelisters.NodeLister) string {
	switch maintenance.PodTypeOf(pod) {
	case v1.PodTypeDaemonSet:
		if !evictionrequest.HasDaemonSetController(pod) {
			return whyForeign(pod)
		}
		absence, absent := a.Get(coordinationv1alpha1.EvictionInterceptorDaemonSet)
		if absent && !(absence.MaybeElsewhere && namesInterceptor(pod, coordinationv1alpha1.EvictionInterceptorDaemonSet)) {
			return absence.Why
		}
	case v1.PodTypeStatic:
		if absence, absent := a.Get(coordinationv1alpha1.EvictionInterceptorKubelet); absent {
			return absence.Why
		}
		if node, err := nodes.Get(pod.Spec.NodeName); err == nil && !maintenance.StopsStaticPods(node) {
			return status.KubeletAbsent
		}
	}
	return ""
}

// whyForeign returns why nobody stops a pod of a DaemonSet of another API group: its controller could only do so as an
// interceptor that the pod names, in its spec or by annotation. The groups are not named, because any owner may be
// written into a pod.
func whyForeign(pod *v1.Pod) string {
	others := func(name string) bool {
		return name != coordinationv1alpha1.EvictionInterceptorDaemonSet && name != coordinationv1alpha1.EvictionInterceptorImperative
	}
	if slices.ContainsFunc(evictioninterceptor.OwnTargets(pod), others) {
		return ""
	}
	return foreignAbsent
}

func namesInterceptor(pod *v1.Pod, name string) bool {
	return slices.Contains(evictioninterceptor.OwnTargets(pod), name)
}
