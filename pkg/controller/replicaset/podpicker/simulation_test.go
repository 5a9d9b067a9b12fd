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

package podpicker_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/utils/ptr"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/utils/simulation"
)

// TestControllersSimulation runs the controllers of Deployments and of ReplicaSets with the client of
// pickers through random histories of two Deployments. They are scaled and rolled out, and their pickers
// changed, in the middle of calls; pods change, end, and are asked to leave, for which the Deployments
// surge; each cache of each controller is stale in its own way; writes fail; pickers answer anything, late
// or never; the controllers restart. Time is that of a bubble of synctest.
//
// What is checked, by the caches that the controller had: a scale-down deletes exactly the surplus, in the
// order of the last answer to exactly this question, or in that without a picker if there was none, for
// which all attempts or the time must have been used up; a picker is asked only where there is a choice,
// so never for the end of a surge, and about no other pods; it is not called when the time is over, and
// not any more when it was replaced; no scale-down waits longer than its time; and in the end there are
// the wanted pods of the wanted ReplicaSets, and all ReplicaSets have the picker of their Deployment.
func TestControllersSimulation(t *testing.T) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.DownscalePodPicker: true,
	})
	// They log what is to be expected, and wait by what they have handled in other runs.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	simulation.Run(t, 12, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
	})
}

func simulate(t *testing.T, seed uint64) {
	s := &sim{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), objects: map[string]map[string]runtime.Object{},
		controllers: map[owner]*running{}, deleted: map[string]bool{}, failing: map[string]bool{},
		known: map[string]map[string]*view{}, calls: map[string][]*call{}, scaleDowns: map[string]*scaleDown{}, gone: map[string]*scaleDown{}, batches: map[string]*batch{},
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("history:\n%s", strings.Join(s.history, "\n"))
		}
	})
	for _, resource := range []string{deployments, replicaSets, pods, requests} {
		s.objects[resource] = map[string]runtime.Object{}
	}
	for i := range 2 {
		d := s.newDeployment(i)
		s.store(deployments, d)
	}
	s.start(deploymentController)
	s.start(replicaSetController)
	s.observe()
	for range 150 {
		s.disturb()
		s.run()
	}
	s.settle()
	s.checkEnd()
	for _, of := range []owner{deploymentController, replicaSetController} {
		s.stop(of)
	}
}

// sim is a cluster with two Deployments, and the server of their pickers.
type sim struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	lock   sync.Mutex

	// The API server.
	version, names int
	objects        map[string]map[string]runtime.Object
	caches         []*laggingCache
	controllers    map[owner]*running
	// deleted are the pods that the controller of ReplicaSets has deleted.
	deleted map[string]bool
	// failing are pods that cannot be deleted. refuses makes some writes of ReplicaSets fail, and
	// dropsPickers is an API server that does not know the field.
	failing               map[string]bool
	refuses, dropsPickers bool
	// dropped is whether it ever was one.
	dropped bool
	// settling is the end, in which nothing else fails than pickers.
	settling bool
	// resized is whether the end has changed the sizes.
	resized bool

	// step counts what the simulation does.
	step int
	// moved is when the controller of ReplicaSets last got an event.
	moved time.Time
	// known has, by ReplicaSet and identity, what there was to ask for any state of the caches.
	known map[string]map[string]*view
	// calls are those of each ReplicaSet.
	calls      map[string][]*call
	scaleDowns map[string]*scaleDown
	// gone has those whose question was gone last.
	gone map[string]*scaleDown
	// batches has the last deletions of each ReplicaSet.
	batches map[string]*batch
	history []string
}

func (s *sim) note(format string, args ...any) {
	s.history = append(s.history, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// chance is true once in so many times.
func (s *sim) chance(in int) bool { return s.random.IntN(in) == 0 }

func (s *sim) newDeployment(i int) *apps.Deployment {
	labels := map[string]string{"app": fmt.Sprint("d", i)}
	return &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: labels["app"], Namespace: metav1.NamespaceDefault, UID: types.UID(labels["app"]), Generation: 1},
		Spec: apps.DeploymentSpec{
			Replicas: ptr.To[int32](4), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: s.newStrategy(), RevisionHistoryLimit: ptr.To[int32](3), ProgressDeadlineSeconds: ptr.To[int32](600),
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "1"}}}},

			DownscalePodPicker: s.newPicker(i),
		},
	}
}

// newStrategy returns one with a surge: with a size of 0 and none, upstream divides by zero when the
// strategy changes.
func (s *sim) newStrategy() apps.DeploymentStrategy {
	return apps.DeploymentStrategy{Type: apps.RollingUpdateDeploymentStrategyType, RollingUpdate: &apps.RollingUpdateDeployment{
		MaxSurge: ptr.To(intstr.FromInt(1 + s.random.IntN(3))), MaxUnavailable: ptr.To(intstr.FromInt(s.random.IntN(3))),
	}}
}

// run lets the controllers work for a while.
func (s *sim) run() {
	for range s.random.IntN(12) {
		if s.chance(4) {
			s.kubelet()
		}
		if s.chance(5) || !s.deliver() {
			s.sleep(time.Duration(s.random.IntN(1500)) * time.Millisecond)
		}
	}
}

// sleep lets time pass. Odd durations, because two timers of the same time race.
func (s *sim) sleep(d time.Duration) {
	s.lock.Lock()
	s.step++
	s.lock.Unlock()
	time.Sleep(d + 137*time.Microsecond)
	synctest.Wait()
	s.observe()
}

// disturb makes one random change.
func (s *sim) disturb() {
	switch s.random.IntN(24) {
	case 0:
		s.restart(replicaSetController)
	case 1:
		s.restart(deploymentController)
	case 2:
		s.lock.Lock()
		defer s.lock.Unlock()
		s.refuses, s.dropsPickers = s.chance(4), s.chance(6)
		s.dropped = s.dropped || s.dropsPickers
		s.note("writes of ReplicaSets are refused %t, pickers are dropped %t", s.refuses, s.dropsPickers)
	case 3, 4, 5, 6, 7, 8, 9, 10:
		s.changeDeployment()
	default:
		s.changePod()
	}
}

// changeDeployment does what a user or an autoscaler does.
func (s *sim) changeDeployment() {
	s.lock.Lock()
	defer s.lock.Unlock()
	i := s.random.IntN(2)
	d := s.objects[deployments][fmt.Sprint("d", i)].DeepCopyObject().(*apps.Deployment)
	switch choice := s.random.IntN(12); {
	case choice < 6:
		d.Spec.Replicas = ptr.To(int32(s.random.IntN(9)))
	case choice < 8:
		d.Spec.Template.Spec.Containers[0].Image = fmt.Sprint(s.random.IntN(4))
	case choice < 11:
		d.Spec.DownscalePodPicker = s.newPicker(i)
	default:
		d.Spec.Strategy = s.newStrategy()
	}
	d.Generation++
	s.store(deployments, d)
	s.note("Deployment %s has %d replicas, image %s, picker %s", d.Name, *d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image, pathOf(d.Spec.DownscalePodPicker))
}

// changePod does what nodes, other clients and evictions do to a pod.
func (s *sim) changePod() {
	s.lock.Lock()
	defer s.lock.Unlock()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.objects[pods])), func(name string) bool {
		return s.objects[pods][name].(*v1.Pod).DeletionTimestamp != nil
	})
	if len(names) == 0 {
		return
	}
	pod := s.objects[pods][names[s.random.IntN(len(names))]].DeepCopyObject().(*v1.Pod)
	runs := pod.Status.Phase == v1.PodRunning
	switch choice := s.random.IntN(10); {
	case choice == 0:
		s.note("%s ends", pod.Name)
		pod.Status.Phase = v1.PodFailed
	case choice < 3 && runs:
		ready := v1.ConditionTrue
		if podutil.IsPodReady(pod) {
			ready = v1.ConditionFalse
		}
		s.note("%s is ready: %s", pod.Name, ready)
		setReady(pod, ready, s.uniqueTime())
	case choice == 3:
		pod.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": fmt.Sprint(s.random.IntN(3) - 1)}
		s.note("%s costs %v", pod.Name, pod.Annotations)
	case choice < 5:
		s.failing[pod.Name] = !s.failing[pod.Name]
		return
	case choice < 8 && runs && s.objects[requests][string(pod.UID)] == nil:
		s.request(pod)
		return
	default:
		s.evict(pod)
		return
	}
	s.store(pods, pod)
}

// request requests the eviction of a pod, which begins with the turn of the Deployment.
func (s *sim) request(pod *v1.Pod) {
	s.note("%s is requested", pod.Name)
	s.store(requests, &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID), Namespace: pod.Namespace, UID: "request-" + pod.UID},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "drainer.example.com"}},
		},
		Status: coordinationv1alpha1.EvictionRequestStatus{
			ActiveInterceptors: []string{coordinationv1alpha1.EvictionInterceptorDeployment}, ActivationTime: ptr.To(metav1.Now()),
			Interceptors: []coordinationv1alpha1.InterceptorStatus{{Name: coordinationv1alpha1.EvictionInterceptorDeployment}, {Name: coordinationv1alpha1.EvictionInterceptorReplicaSet}},
		},
	})
}

// evict ends the turn of the Deployment, then evicts the pod, then removes the request.
func (s *sim) evict(pod *v1.Pod) {
	request, _ := s.objects[requests][string(pod.UID)].(*coordinationv1alpha1.EvictionRequest)
	switch {
	case request == nil:
	case request.Status.ActiveInterceptors[0] == coordinationv1alpha1.EvictionInterceptorDeployment && !s.settling:
		request = request.DeepCopy()
		request.Status.Interceptors[0].CompletionTime = ptr.To(metav1.Now())
		request.Status.ActiveInterceptors = []string{coordinationv1alpha1.EvictionInterceptorReplicaSet}
		request.Status.ProcessedInterceptors = []string{coordinationv1alpha1.EvictionInterceptorDeployment}
		s.store(requests, request)
		s.note("the turn for %s is over", pod.Name)
	default:
		s.note("%s is evicted", pod.Name)
		s.terminate(pod)
	}
}

// settle stops all changes, and runs until nothing happens any more.
func (s *sim) settle() {
	s.lock.Lock()
	s.note("settling")
	s.settling, s.refuses, s.dropsPickers = true, false, false
	clear(s.failing)
	s.lock.Unlock()
	for quiet, rounds := 0, 0; quiet < 30; rounds++ {
		if rounds > 3000 {
			s.t.Error("it does not settle")
			return
		}
		version := s.version
		s.makeWhole(quiet)
		s.kubelet()
		for s.deliver() {
			continue
		}
		pause := 3 * time.Second
		if quiet >= 25 {
			pause = 250 * time.Second // The back-off after failures, which nothing ends earlier, is 1,000 s at most.
		}
		s.sleep(pause)
		if quiet++; version != s.version {
			quiet = 0
		}
	}
}

// makeWhole makes pods ready, evicts those that are requested, and forgets requests for pods that are
// gone. When it has been quiet for more than a minute, it changes the Deployments, because the picker that
// the API server has dropped is only written again by the next sync, and a Deployment whose size was
// changed by a rollout on an old cache rolls out only at the next size.
func (s *sim) makeWhole(quiet int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.objects[pods])) {
		pod := s.objects[pods][name].(*v1.Pod).DeepCopy()
		if pod.Status.Phase == v1.PodRunning && !podutil.IsPodReady(pod) {
			setReady(pod, v1.ConditionTrue, s.uniqueTime())
			s.store(pods, pod)
		}
		s.evict(pod)
	}
	for _, name := range slices.Sorted(maps.Keys(s.objects[requests])) {
		if s.objects[pods][strings.TrimPrefix(name, "uid-")] == nil {
			s.remove(requests, name)
		}
	}
	if quiet == 21 && !s.resized {
		s.resized = true
		if !s.dropped {
			s.checkPassed() // What was refused has been written again by now.
		}
		s.changeDeployments(func(d *apps.Deployment) { d.Spec.Replicas = ptr.To(*d.Spec.Replicas + 3) })
	}
}

func (s *sim) changeDeployments(change func(*apps.Deployment)) {
	for _, name := range slices.Sorted(maps.Keys(s.objects[deployments])) {
		d := s.objects[deployments][name].DeepCopyObject().(*apps.Deployment)
		change(d)
		d.Generation++
		s.store(deployments, d)
	}
}

// checkPassed checks that all ReplicaSets have the picker of their Deployment.
func (s *sim) checkPassed() {
	for _, d := range all[*apps.Deployment](s, deployments) {
		for _, rs := range all[*apps.ReplicaSet](s, replicaSets) {
			if metav1.IsControlledBy(&rs, &d) && !apiequality.Semantic.DeepEqual(rs.Spec.DownscalePodPicker, d.Spec.DownscalePodPicker) {
				s.t.Errorf("ReplicaSet %s has the picker %s in the end, and its Deployment %s", rs.Name, pathOf(rs.Spec.DownscalePodPicker), pathOf(d.Spec.DownscalePodPicker))
			}
		}
	}
}

// checkEnd checks what is left.
func (s *sim) checkEnd() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.checkPassed()
	for _, d := range all[*apps.Deployment](s, deployments) {
		count := map[string]int{}
		for _, pod := range all[*v1.Pod](s, pods) {
			if pod.Labels["app"] == d.Name {
				count[metav1.GetControllerOf(&pod).Name]++
			}
		}
		for _, rs := range all[*apps.ReplicaSet](s, replicaSets) {
			if !metav1.IsControlledBy(&rs, &d) {
				continue
			}
			want := 0
			if rs.Spec.Template.Spec.Containers[0].Image == d.Spec.Template.Spec.Containers[0].Image {
				want = int(*d.Spec.Replicas)
			}
			if int(*rs.Spec.Replicas) != want || count[rs.Name] != want {
				s.t.Errorf("ReplicaSet %s has %d replicas and %d pods in the end, want %d", rs.Name, *rs.Spec.Replicas, count[rs.Name], want)
			}
		}
	}
}
