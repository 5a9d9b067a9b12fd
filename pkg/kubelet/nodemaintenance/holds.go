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
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance/metrics"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// state is what the kubelet does with a static pod for a maintenance.
type state string

const (
	// running is the state of all pods without an entry: no maintenance affects them.
	running state = "running"
	// stopping means that the pod is withheld. A restarted kubelet does not know about it, runs the
	// pod, and stops it again with its full grace period.
	stopping state = "stopping"
	// ended means that the pod is withheld and has ended, which the control plane has not processed
	// yet. A restarted kubelet does not know about this, either.
	ended state = "ended"
	// held means that the pod is withheld, also by a restarted kubelet.
	held state = "held"
	// refused means that the pod runs, because the node needs it to reach the control plane.
	refused state = "refused"
)

// podState is the state of one static pod. The other fields are those of its mirror pod which
// decide whether drain targets take it. A manifest can change during the maintenance, and with it
// the UID of its pod, so the pod is identified by its name.
type podState struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	Priority  *int32            `json:"priority,omitempty"`
	State     state             `json:"state"`

	// UID is that of the static pod whose stop this kubelet has begun.
	UID types.UID `json:"-"`
	// Terminated is whether the API server has answered since the containers of a stopping pod
	// ended.
	Terminated bool `json:"-"`
}

func (s podState) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// mirrorPod returns a pod that drain targets take if they take the mirror pod.
func (s podState) mirrorPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name, Labels: s.Labels,
			Annotations: map[string]string{v1.MirrorPodAnnotationKey: ""},
		},
		Spec: v1.PodSpec{Priority: s.Priority},
	}
}

// errReleased means that drain targets no longer take a pod.
var errReleased = errors.New("the drain targets of the node no longer include the pod")

// Holds has the states of the static pods that a maintenance affects. Its checkpoint has those that
// a restarted kubelet must know about. Its methods are safe for concurrent use, and none waits for
// the sync loop of the kubelet.
type Holds struct {
	checkpoint *checkpoint

	lock sync.Mutex
	pods map[types.NamespacedName]podState
	// returning has the UIDs of pods that may run again. They are withheld until the kubelet has
	// forgotten these: it does not admit a pod again that comes back before, and then does not count
	// it when it admits others.
	returning map[types.NamespacedName]types.UID
	// changed is closed at the next change.
	changed chan struct{}
}

// LoadHolds reads the checkpoint in the directory. If it cannot be read, the Holds are empty, so
// that all static pods run: pods of the control plane may be among them.
func LoadHolds(directory string) (*Holds, error) {
	metrics.Register()
	h := &Holds{
		checkpoint: &checkpoint{directory: directory}, pods: map[types.NamespacedName]podState{},
		returning: map[types.NamespacedName]types.UID{}, changed: make(chan struct{}),
	}
	states, err := h.checkpoint.read()
	for _, s := range states {
		h.pods[s.key()] = s
	}
	h.notify()
	return h, err
}

// Withheld reports whether the kubelet must not see this static pod.
func (h *Holds) Withheld(pod *v1.Pod) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	s, affected := h.pods[keyOf(pod)]
	return affected && s.State != refused || h.isReturning(keyOf(pod))
}

func (h *Holds) isReturning(key types.NamespacedName) bool {
	_, ok := h.returning[key]
	return ok
}

// IsEmpty reports whether no maintenance affects a static pod.
func (h *Holds) IsEmpty() bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	return len(h.pods) == 0
}

// observe returns the state of a pod, and a channel that is closed at the next change of any.
func (h *Holds) observe(key types.NamespacedName) (state, <-chan struct{}) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if s, ok := h.pods[key]; ok {
		return s.State, h.changed
	}
	return running, h.changed
}

// undecided returns the pods that are being stopped and whose end is not confirmed, and those that
// return.
func (h *Holds) undecided() (keys []types.NamespacedName) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for key, s := range h.pods {
		if s.State == stopping || s.State == ended {
			keys = append(keys, key)
		}
	}
	return slices.AppendSeq(keys, maps.Keys(h.returning))
}

// stop starts to withhold the static pod of a mirror pod, with this UID. It fails if the kubelet
// could not store the end of the pod: after a restart, it would start the pod in the middle of the
// maintenance.
func (h *Holds) stop(mirror *v1.Pod, uid types.UID) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	switch h.pods[keyOf(mirror)].State {
	case stopping, ended, held:
		return nil
	case refused:
		return errRefused
	}
	if err := h.store(); err != nil {
		return fmt.Errorf("the pod is not stopped, because the kubelet could not store that it must stay away: %w", err)
	}
	h.pods[keyOf(mirror)] = podState{
		Namespace: mirror.Namespace, Name: mirror.Name, Labels: mirror.Labels, Priority: mirror.Spec.Priority, State: stopping, UID: uid,
	}
	h.notify()
	return nil
}

// terminate notes that the API server has answered since the containers of a stopping pod ended.
func (h *Holds) terminate(key types.NamespacedName) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if s := h.pods[key]; s.State == stopping {
		s.Terminated = true
		h.pods[key] = s
	}
}

// KeepsMirrorPod reports whether the mirror pod must exist a moment longer: controllers process its
// deletion, and the kubelet compares what they wrote before and after it. A pod that returns has the
// same one.
func (h *Holds) KeepsMirrorPod(key types.NamespacedName) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	s := h.pods[key]
	return s.State == stopping && !s.Terminated || h.isReturning(key)
}

// end notes that a pod which was stopping has ended.
func (h *Holds) end(key types.NamespacedName) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.pods[key].State == stopping {
		h.set(key, ended)
	}
}

// confirm stores that a pod which has ended stays away. If that fails, the state remains the same.
func (h *Holds) confirm(key types.NamespacedName) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.pods[key].State != ended {
		return nil
	}
	h.set(key, held)
	err := h.store()
	if err != nil {
		h.set(key, ended)
	}
	return err
}

// giveUp lets a pod run again that was stopping. The checkpoint does not have it.
func (h *Holds) giveUp(key types.NamespacedName) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if s := h.pods[key]; s.State == stopping {
		delete(h.pods, key)
		h.startReturn(s)
		h.notify()
	}
}

// refuse lets a pod run until the end of the maintenance, also if that cannot be stored.
func (h *Holds) refuse(key types.NamespacedName) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	s := h.pods[key]
	if s.State != stopping && s.State != ended {
		return nil
	}
	h.startReturn(s)
	h.set(key, refused)
	return h.store()
}

// startReturn withholds a pod that may run again a moment longer, if this kubelet has stopped it.
func (h *Holds) startReturn(s podState) {
	if s.State != refused && s.UID != "" {
		h.returning[s.key()] = s.UID
	}
}

// endReturns ends the returns of the pods that the kubelet has forgotten, and reports whether there
// are any.
func (h *Holds) endReturns(isForgotten func(types.UID) bool) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	before := len(h.returning)
	maps.DeleteFunc(h.returning, func(_ types.NamespacedName, uid types.UID) bool { return isForgotten(uid) })
	return len(h.returning) < before
}

func (h *Holds) set(key types.NamespacedName, to state) {
	s := h.pods[key]
	s.State = to
	h.pods[key] = s
	h.notify()
}

// release removes the pods that the drain targets of the node do not take, and returns them.
func (h *Holds) release(targets maintenance.Targets) ([]podState, error) {
	return h.remove(func(s podState) bool { return !targets.Take(s.mirrorPod()) })
}

// ReleaseRunning removes the pods that are withheld and have one of these sandboxes, because they
// run, and returns their names. A pod of the API server may have the name of a static pod whose
// mirror pod is gone.
func (h *Holds) ReleaseRunning(sandboxes []*runtimeapi.PodSandbox) (released []string, err error) {
	var pods []types.NamespacedName
	for _, sandbox := range sandboxes {
		if metadata := sandbox.Metadata; metadata != nil && sandbox.Annotations[kubetypes.ConfigSourceAnnotationKey] != kubetypes.ApiserverSource {
			pods = append(pods, types.NamespacedName{Namespace: metadata.Namespace, Name: metadata.Name})
		}
	}
	removed, err := h.remove(func(s podState) bool { return s.State != refused && slices.Contains(pods, s.key()) })
	for _, s := range removed {
		released = append(released, s.key().String())
	}
	return released, err
}

// ReleaseAll removes all pods, and returns the names of those that were withheld.
func (h *Holds) ReleaseAll() (released []string, err error) {
	removed, err := h.remove(func(podState) bool { return true })
	for _, s := range removed {
		if s.State != refused {
			released = append(released, s.key().String())
		}
	}
	return released, err
}

// remove removes pods. They run even if that cannot be stored; the next kubelet releases them.
func (h *Holds) remove(matches func(podState) bool) (removed []podState, err error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for key, s := range h.pods {
		if matches(s) {
			delete(h.pods, key)
			h.startReturn(s)
			removed = append(removed, s)
		}
	}
	if len(removed) == 0 {
		return nil, nil
	}
	slices.SortFunc(removed, compareNames)
	h.notify()
	return removed, h.store()
}

// store writes the states that a restarted kubelet must know about.
func (h *Holds) store() error {
	states := []podState{}
	for _, s := range h.pods {
		if s.State == held || s.State == refused {
			states = append(states, s)
		}
	}
	slices.SortFunc(states, compareNames)
	return h.checkpoint.write(states)
}

func (h *Holds) notify() {
	close(h.changed)
	h.changed = make(chan struct{})
	counts := map[string]int{string(stopping): 0, string(ended): 0, string(held): 0, string(refused): 0}
	for _, s := range h.pods {
		counts[string(s.State)]++
	}
	metrics.SetStaticPods(counts)
}

func keyOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func compareNames(a, b podState) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
