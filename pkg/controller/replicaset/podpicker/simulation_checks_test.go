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
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/downscalepodpicker"
	"k8s.io/client-go/tools/evictionrequest"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
)

// view is a ReplicaSet as the caches of its controller have it.
type view struct {
	rs *apps.ReplicaSet
	// pods are its active pods, and related those of its Deployment.
	pods, related []*v1.Pod
	surplus       int
	// candidates are the names of the pods to choose from, of which so many are wanted. The question is
	// empty if there is none.
	candidates []string
	wanted     int
	question   string
}

// scaleDown is one that needs a picker.
type scaleDown struct {
	// began is when the caches first had a question, and asked the time of the first call since then, or
	// since pods were deleted.
	began, asked time.Time
	// countsFrom is since when the controller may count the time. It is earlier than began if the question
	// was gone in between, but perhaps in no sync: one that waits for the events of its own writes does not
	// look.
	countsFrom time.Time
	// least and most are the limits of its pickers.
	least, most time.Duration
}

// batch is what one sync deletes.
type batch struct {
	at      time.Time
	view    *view
	deleted []string
	checked bool
	// step is that of the simulation. failed is whether a pod could not be deleted.
	step   int
	failed bool
	// lastCall is the number of calls until then.
	lastCall int
}

// viewOf returns what the caches have of a ReplicaSet, or nil.
func (s *sim) viewOf(name string) *view {
	factory := s.controllers[replicaSetController].factory
	rs, err := factory.Apps().V1().ReplicaSets().Lister().ReplicaSets(metav1.NamespaceDefault).Get(name)
	if err != nil {
		return nil
	}
	cached, err := factory.Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil {
		s.t.Error(err)
	}
	v := &view{rs: rs}
	slices.SortFunc(cached, func(a, b *v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	q := podpicker.Question{UID: rs.UID, Replicas: *rs.Spec.Replicas}
	for _, pod := range cached {
		if !controller.IsPodActive(pod) || pod.Labels["app"] != rs.Labels["app"] {
			continue
		}
		v.related = append(v.related, pod)
		if !metav1.IsControlledBy(pod, rs) {
			continue
		}
		v.pods = append(v.pods, pod)
		if pod.Spec.NodeName != "" && pod.Status.Phase == v1.PodRunning && podutil.IsPodReady(pod) && !s.isRequested(pod) {
			v.candidates = append(v.candidates, pod.Name)
			q.CandidateUIDs = append(q.CandidateUIDs, pod.UID)
		}
	}
	v.surplus = len(v.pods) - int(*rs.Spec.Replicas)
	v.wanted = v.surplus - (len(v.pods) - len(v.candidates))
	if q.Pods = v.wanted; rs.Spec.DownscalePodPicker != nil && v.wanted > 0 && v.wanted < len(v.candidates) {
		v.question = q.Identity()
	}
	return v
}

func (s *sim) isRequested(pod *v1.Pod) bool {
	request, err := s.controllers[replicaSetController].factory.Coordination().V1alpha1().EvictionRequests().Lister().EvictionRequests(pod.Namespace).Get(string(pod.UID))
	return err == nil && !evictionrequest.IsFinished(request.Status.Conditions)
}

// observe notes what there is to ask in this state of the caches, and checks what the controllers have
// done in it.
func (s *sim) observe() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.batches)) {
		s.checkBatch(s.batches[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.objects[replicaSets])) {
		if v := s.viewOf(name); v != nil {
			s.know(name, v)
			s.checkNoWait(name, v)
		}
	}
}

// know notes what there is to ask about a ReplicaSet.
func (s *sim) know(name string, v *view) {
	d := s.scaleDowns[name]
	if v.question == "" {
		if d != nil {
			s.gone[name] = d
		}
		if s.isCalm() {
			delete(s.gone, name) // A sync has seen it.
		}
		delete(s.scaleDowns, name)
		return
	}
	limit := downscalepodpicker.MaxDuration(int(*v.rs.Spec.DownscalePodPicker.MaxRetries), time.Duration(*v.rs.Spec.DownscalePodPicker.TimeoutSeconds)*time.Second)
	if d == nil {
		d = &scaleDown{began: time.Now(), countsFrom: time.Now(), least: limit}
		s.scaleDowns[name] = d
		if before := s.gone[name]; before != nil {
			d.countsFrom, d.least = before.countsFrom, min(d.least, before.least)
			delete(s.gone, name)
		}
	}
	d.least, d.most = min(d.least, limit), max(d.most, limit)
	if s.known[name] == nil {
		s.known[name] = map[string]*view{}
	}
	s.known[name][v.question] = v
}

// checkNoWait checks that a scale-down does not wait when its time is over, or nobody is asked.
func (s *sim) checkNoWait(name string, v *view) {
	since, waits := s.moved, 5*time.Second
	if b := s.batches[name]; b != nil {
		if b.failed {
			return // The back-off may be longer.
		}
		since = latest(since, b.at)
	}
	if d := s.scaleDowns[name]; d != nil {
		waits += d.most
	}
	if v.surplus > 0 && s.isCalm() && time.Since(since) > waits {
		s.t.Errorf("%s has waited for %s to delete %d of %d pods", name, time.Since(since), v.surplus, len(v.pods))
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// checkNewTemplate checks that a ReplicaSet is created for a template, not because of a picker.
func (s *sim) checkNewTemplate(rs *apps.ReplicaSet) {
	for _, other := range all[*apps.ReplicaSet](s, replicaSets) {
		if other.Labels["app"] == rs.Labels["app"] && apiequality.Semantic.DeepEqual(other.Spec.Template.Spec, rs.Spec.Template.Spec) {
			s.t.Errorf("ReplicaSets %s and %s have the same template", other.Name, rs.Name)
		}
	}
}

// checkDeletion checks that no more pods are deleted than are surplus in the caches, counting those that
// are deleted and of which the caches do not know it.
func (s *sim) checkDeletion(name string) {
	pod, err := s.controllers[replicaSetController].factory.Core().V1().Pods().Lister().Pods(metav1.NamespaceDefault).Get(name)
	if err != nil {
		s.t.Errorf("%s is deleted, which is not in the cache: %v", name, err)
		return
	}
	rs := metav1.GetControllerOf(pod).Name
	v := s.viewOf(rs)
	if v == nil || !slices.ContainsFunc(v.pods, func(p *v1.Pod) bool { return p.Name == name }) {
		s.t.Errorf("%s is deleted, which %s does not have", name, rs)
		return
	}
	unseen := 0
	for _, p := range v.pods {
		if s.deleted[p.Name] || p.Name == name {
			unseen++
		}
	}
	if unseen > v.surplus {
		s.t.Errorf("%s deletes %s, the pod %d, and the surplus is %d", rs, name, unseen, v.surplus)
	}
	b := s.batches[rs]
	// One that fails is deleted again at once if the question ends at this moment.
	if b == nil || !b.at.Equal(time.Now()) || b.step != s.step || slices.Contains(b.deleted, name) {
		next := &batch{at: time.Now(), step: s.step, view: v, lastCall: len(s.calls[rs])}
		if b != nil {
			next.deleted = s.splitBatch(b, name)
			s.checkBatch(b)
		}
		b = next
		s.batches[rs] = b
	}
	b.deleted = append(b.deleted, name)
	b.failed = b.failed || s.failing[name]
}

// splitBatch takes the pods out of a batch that the sync after it has deleted already, at the same moment,
// and returns them: a sync deletes its pods in any order, so that one which is deleted again need not be the
// first. This is so if the earlier sync did not wait with some pods for a picker that is answered at once.
func (s *sim) splitBatch(b *batch, again string) (later []string) {
	first := len(s.first(b.view))
	if b.checked || first > len(b.deleted) || len(b.deleted) >= b.view.surplus || !slices.Contains(b.deleted[:first], again) {
		return nil
	}
	b.deleted, later = b.deleted[:first:first], slices.Clone(b.deleted[first:])
	return later
}

// checkBatch checks which pods a sync has deleted: all that are no candidates, and those that the answer
// prefers.
func (s *sim) checkBatch(b *batch) {
	if b.checked {
		return
	}
	b.checked = true
	v, name := b.view, b.view.rs.Name
	slices.Sort(b.deleted)
	if first := s.first(v); v.question != "" && len(first) > 0 && slices.Equal(first, b.deleted) {
		return // They do not wait for the picker, which is asked about the others.
	}
	if len(b.deleted) != v.surplus {
		s.t.Errorf("%s deletes %q, and the surplus is %d", name, b.deleted, v.surplus)
		return
	}
	ranks := map[string]int{}
	if v.question != "" {
		ranks = s.ranksFor(b)
	}
	if d := s.scaleDowns[name]; d != nil {
		d.asked = time.Time{} // What is left of the time is for the next question.
	}
	if v.question != "" && s.mayRest(v) && slices.Equal(s.order(v, nil, b.at), b.deleted) {
		return // It was not asked again.
	}
	if want := s.order(v, ranks, b.at); v.wanted > 0 && !slices.Equal(want, b.deleted) {
		s.t.Errorf("%s deletes %q, want %q, with the ranks %v", name, b.deleted, want, ranks)
	}
	if v.wanted <= 0 && slices.ContainsFunc(b.deleted, func(pod string) bool { return slices.Contains(v.candidates, pod) }) {
		s.t.Errorf("%s deletes %q, of which some could stay", name, b.deleted)
	}
}

// ranksFor returns the ranks of the answer that has to be used. It is empty if there is none.
func (s *sim) ranksFor(b *batch) map[string]int {
	name, v := b.view.rs.Name, b.view
	var tries int
	calls := s.calls[name][:b.lastCall]
	for i := len(calls) - 1; i >= 0 && calls[i].key == v.question && calls[i].path == v.rs.Spec.DownscalePodPicker.HTTP.Path; i-- {
		c := calls[i]
		if tries == 0 && c.ranks != nil && !c.answered.IsZero() && !c.answered.After(b.at) {
			return c.ranks
		}
		tries++
	}
	if s.mayRest(v) {
		return map[string]int{}
	}
	picker, d := v.rs.Spec.DownscalePodPicker, s.scaleDowns[name]
	usedUp := d != nil && b.at.Sub(d.countsFrom) >= d.least
	if tries <= int(*picker.MaxRetries) && picker.HTTP.Host != refusedAddress && !usedUp {
		s.t.Errorf("%s deletes %q after %d attempts, without an answer", name, b.deleted, tries)
	}
	return map[string]int{}
}

// first returns the pods that go whatever the picker answers.
func (s *sim) first(v *view) (names []string) {
	for _, pod := range v.pods {
		if !slices.Contains(v.candidates, pod.Name) {
			names = append(names, pod.Name)
		}
	}
	return names
}

// mayRest reports whether the picker has failed so often in a row that it is not asked for a while.
func (s *sim) mayRest(v *view) bool {
	var calls []*call
	for _, of := range s.calls {
		for _, c := range of {
			if c.path == v.rs.Spec.DownscalePodPicker.HTTP.Path {
				calls = append(calls, c)
			}
		}
	}
	slices.SortFunc(calls, func(a, b *call) int { return a.at.Compare(b.at) })
	failures := 0
	for _, c := range calls {
		if failures++; c.ranks != nil && !c.answered.IsZero() {
			failures = 0
		}
		if failures >= 4 {
			return true
		}
	}
	return false
}

// order returns which pods a scale-down deletes: those that are no candidates, and of the candidates those
// that come first in upstream's order.
func (s *sim) order(v *view, ranks map[string]int, now time.Time) []string {
	var first []string
	ranked := controller.ActivePodsWithRanks{Now: metav1.NewTime(now)}
	for _, pod := range v.pods {
		if !slices.Contains(v.candidates, pod.Name) {
			first = append(first, pod.Name)
			continue
		}
		rank := -ranks[pod.Name]
		if len(ranks) == 0 {
			rank = doubled(v.related, pod)
		}
		ranked.Pods, ranked.Rank = append(ranked.Pods, pod), append(ranked.Rank, rank)
	}
	sort.Sort(ranked)
	for i := range max(v.wanted, 0) {
		first = append(first, ranked.Pods[i].Name)
	}
	slices.Sort(first)
	return first
}

// doubled returns how many pods of the Deployment are on the node of the pod.
func doubled(related []*v1.Pod, pod *v1.Pod) (count int) {
	for _, other := range related {
		if other.Spec.NodeName == pod.Spec.NodeName {
			count++
		}
	}
	return count
}
