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

package replicaset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	apicore "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/helper"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
)

const (
	// eventPodsPicked: the downscale pod picker chose pods.
	eventPodsPicked = "PodsPicked"
	// eventPodPickerFailed: it did not, and pods are removed in the order without it.
	eventPodPickerFailed = "PodPickerFailed"
	// eventPodPickerSlow: it is still asked, and nothing is removed meanwhile.
	eventPodPickerSlow = "PodPickerSlow"

	// maxPickerMessage is the maximum length of what an event says of a picker, in bytes.
	maxPickerMessage = 512

	// maxPickerNote is that of an event, which may have 1024.
	maxPickerNote = 1000
)

// pickers asks the downscale pod pickers of ReplicaSets. It is nil if the feature gate
// DownscalePodPicker is off, and for ReplicationControllers.
type pickers struct {
	client   asker
	recorder record.EventRecorder
}

// asker is what the controller needs of podpicker.Client.
type asker interface {
	Ask(context.Context, podpicker.Question) (ended bool)
	Slow(rs types.NamespacedName) (until time.Time, slow bool)
	Take(rs types.NamespacedName) (result podpicker.Result, found bool)
	Forget(rs types.NamespacedName)
}

// newPickerRecorder returns a recorder of events that are sent to the API server from Run on. Its source
// is its own: of one source, client-go drops what is more than 25 events of a type about an object and
// one every five minutes, and the creations and deletions of pods are more than that.
func newPickerRecorder(broadcaster record.EventBroadcaster) record.EventRecorder {
	return broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "replicaset-controller-pod-picker"})
}

// AskPickers makes the controller ask downscale pod pickers (KEP-3189), for the feature gate
// DownscalePodPicker: at most so many at a time, at these addresses. It must be called once, before
// Run.
func (rsc *ReplicaSetController) AskPickers(client clientset.Interface, rsInformer appsinformers.ReplicaSetInformer, addresses *podpicker.Addresses, concurrent int) error {
	rsc.pickers = &pickers{
		client:   podpicker.NewClient(client, addresses, concurrent, rsc.questionEnded),
		recorder: newPickerRecorder(rsc.eventBroadcaster),
	}
	forget := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			rsc.forgetQuestion(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
		}
	}
	_, err := rsInformer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) {
			if rs, isReplicaSet := object.(*apps.ReplicaSet); isReplicaSet && rs.DeletionTimestamp != nil {
				forget(rs)
			}
		},
		DeleteFunc: forget,
	})
	if err != nil {
		return fmt.Errorf("watching for deleted ReplicaSets: %w", err)
	}
	return nil
}

// questionEnded queues a ReplicaSet whose question has ended. No sync takes the answer for one that is
// gone or being deleted: it may have asked from an old cache, after its deletion was handled.
func (rsc *ReplicaSetController) questionEnded(name types.NamespacedName) {
	rs, err := rsc.rsLister.ReplicaSets(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) || err == nil && rs.DeletionTimestamp != nil {
		rsc.forgetQuestion(name)
		return
	}
	rsc.queue.Add(name.String())
}

// forgetQuestion drops the question of a ReplicaSet that is deleted. Another one of the name may have
// asked by now, because events reach different handlers at different times. It is queued to ask again:
// nothing else would wake it up.
func (rsc *ReplicaSetController) forgetQuestion(name types.NamespacedName) {
	rsc.pickers.client.Forget(name)
	rsc.queue.Add(name.String())
}

// waitsForPicker reports whether a scale-down has to wait for the picker of the ReplicaSet, and returns
// the pods that do not wait, see goAnyway. It is synced again when the picker has answered, or when the
// time is over.
func (rsc *ReplicaSetController) waitsForPicker(ctx context.Context, rs *apps.ReplicaSet, activePods []*v1.Pod, diff int) (goAnyway []*v1.Pod, waits bool) {
	if rsc.pickers == nil {
		return nil, false
	}
	question, found := rsc.question(ctx, rs, activePods, diff)
	if !found {
		rsc.pickers.client.Forget(question.NamespacedName)
		return nil, false
	}
	if rsc.pickers.client.Ask(ctx, question) {
		return nil, false
	}
	rsc.pickers.reportSlow(rs)
	return rsc.goAnyway(ctx, rs, question, activePods, diff), true
}

// goAnyway returns the pods that a scale-down deletes whatever the picker answers, at most as many as
// one sync deletes: those that the picker is not asked about and that are among the first diff. Their
// place does not depend on the answer, which only orders candidates. They must not wait: a pod that
// leaves its node has been replaced, and its node may be about to go. When they are gone, the question is
// the same as before.
func (rsc *ReplicaSetController) goAnyway(ctx context.Context, rs *apps.ReplicaSet, q podpicker.Question, activePods []*v1.Pod, diff int) []*v1.Pod {
	if len(q.Candidates) == len(activePods) {
		return nil
	}
	sorted := controller.ActivePodsWithRanks{Pods: slices.Clone(activePods), Rank: make([]int, len(activePods)), Now: metav1.NewTime(rsc.clock.Now())}
	rsc.sortRanked(ctx, rs, sorted)
	isCandidate := sets.New(q.CandidateUIDs...)
	first := slices.DeleteFunc(sorted.Pods[:diff], func(pod *v1.Pod) bool { return isCandidate.Has(pod.UID) })
	return first[:min(len(first), rsc.burstReplicas)]
}

// errWaitsAgain is returned while a picker is asked again because pods could not be deleted.
var errWaitsAgain = errors.New("pods could not be deleted, and the downscale pod picker is asked again")

// waitError returns the error of a sync that waits for a picker. There is none, unless the last deletion
// has failed: a sync without an error would reset the back-off and take back the condition, whose write
// causes the next sync, so that all this was repeated as fast as the picker answers.
func waitError(rs *apps.ReplicaSet) error {
	failure := GetCondition(rs.Status, apps.ReplicaSetReplicaFailure)
	if failure != nil && failure.Reason == "FailedDelete" {
		return errWaitsAgain
	}
	return nil
}

// question returns what to ask the picker of a ReplicaSet if diff of its pods are to be deleted, of which
// one sync deletes no more than burstReplicas. It is not found if there is nothing to decide, now or in
// the end. Pods that come first whatever the picker says are not candidates: those that are not
// assigned, not running or not ready, and those that leave anyway. The question does not depend on how
// many these are, because they go while it is asked.
func (rsc *ReplicaSetController) question(ctx context.Context, rs *apps.ReplicaSet, activePods []*v1.Pod, diff int) (q podpicker.Question, found bool) {
	q = podpicker.Question{
		NamespacedName: types.NamespacedName{Namespace: rs.Namespace, Name: rs.Name},
		UID:            rs.UID, Replicas: *rs.Spec.Replicas, Picker: rs.Spec.DownscalePodPicker,
	}
	if q.Picker == nil || diff <= 0 {
		return q, false
	}
	leaves, first := rsc.leavingPods(ctx, rs, activePods), 0
	for i, pod := range activePods {
		if pod.Spec.NodeName == "" || pod.Status.Phase != v1.PodRunning || !podutil.IsPodReady(pod) || leaves[i] {
			first++
			continue
		}
		q.Candidates = append(q.Candidates, pod.Name)
		q.CandidateUIDs = append(q.CandidateUIDs, pod.UID)
	}
	q.Pods = min(diff-first, rsc.burstReplicas)
	return q, q.Pods > 0 && diff-first < len(q.Candidates)
}

// leavingPods returns which of the pods are deleted first because they have to leave anyway.
func (rsc *ReplicaSetController) leavingPods(ctx context.Context, rs *apps.ReplicaSet, pods []*v1.Pod) []bool {
	leaves := make([]bool, len(pods))
	if rsc.evictions == nil {
		return leaves
	}
	order := rsc.evictions.order(metav1.NewTime(rsc.clock.Now()), rs, rsc.surgeOf(ctx, rs), controller.ActivePodsWithRanks{Pods: pods})
	for i := range pods {
		leaves[i] = order.leaving[i] || order.requested[i]
	}
	return leaves
}

// rank returns the pods with their ranks for a scale-down: those of the picker if it was asked and has
// decided. Otherwise they are those of today. Nodes that are to go are part of both. The result is nil if
// the picker was not asked.
func (rsc *ReplicaSetController) rank(rs *apps.ReplicaSet, pods, relatedPods []*v1.Pod) (controller.ActivePodsWithRanks, *podpicker.Result) {
	var result *podpicker.Result
	if rsc.pickers != nil {
		if taken, asked := rsc.pickers.client.Take(types.NamespacedName{Namespace: rs.Namespace, Name: rs.Name}); asked {
			result = &taken
		}
	}
	picked := result != nil && result.Ranks != nil
	ranked := getPodsRankedByRelatedPodsOnSameNode(pods, relatedPods)
	if picked {
		ranked = rsc.rankPicked(pods, result.Ranks)
	}
	rankDepartures(rsc.nodeLister, ranked, picked)
	return ranked, result
}

// rankPicked returns the pods with the ranks of a picker.
func (rsc *ReplicaSetController) rankPicked(pods []*v1.Pod, ranks map[string]int) controller.ActivePodsWithRanks {
	ranked := controller.ActivePodsWithRanks{Pods: pods, Rank: make([]int, len(pods)), Now: metav1.NewTime(rsc.clock.Now())}
	for i, pod := range pods {
		rank, isCandidate := ranks[pod.Name]
		if !isCandidate {
			rank = podpicker.RankOther
		}
		ranked.Rank[i] = -rank // Higher ranks are deleted first.
	}
	return ranked
}

// reportSlow records that a scale-down waits: otherwise nothing says why there are too many pods.
func (p *pickers) reportSlow(rs *apps.ReplicaSet) {
	until, slow := p.client.Slow(types.NamespacedName{Namespace: rs.Namespace, Name: rs.Name})
	if slow {
		p.recorder.Eventf(rs, v1.EventTypeWarning, eventPodPickerSlow,
			"No more pods are deleted until the downscale pod picker at %s has chosen, or until %s at the latest.", pickerHost(rs), until.UTC().Format(time.RFC3339))
	}
}

func pickerHost(rs *apps.ReplicaSet) string {
	if picker := rs.Spec.DownscalePodPicker; picker != nil && picker.HTTP != nil {
		return picker.HTTP.Host
	}
	return ""
}

// report records how asking a picker ended, and which pods are deleted and stay.
func (p *pickers) report(ctx context.Context, rs *apps.ReplicaSet, result podpicker.Result, deleted, stay []*v1.Pod) {
	host := pickerHost(rs)
	took := result.Duration.Round(time.Millisecond)
	if result.Err != nil {
		message := plaintext.Truncate(plaintext.Line(result.Err.Error()), maxPickerMessage)
		klog.FromContext(ctx).V(2).Info("No pods were picked", "replicaSet", klog.KObj(rs), "host", host, "took", took, "reason", result.Reason, "err", message)
		p.event(rs, v1.EventTypeWarning, eventPodPickerFailed,
			fmt.Sprintf("The downscale pod picker at %s did not choose pods (%s after %s): %s. They are deleted in the order without it.", host, result.Reason, took, message))
		return
	}
	if result.Chosen+result.Tied == 0 {
		p.event(rs, v1.EventTypeNormal, eventPodsPicked, fmt.Sprintf("The downscale pod picker at %s named no pod after %s. Pods are deleted in the order without it.", host, took))
		return
	}
	overruled, why := overruledBy(result.Ranks, deleted, stay)
	message := fmt.Sprintf("The downscale pod picker at %s chose %d pods and called %d tied after %s.", host, result.Chosen, result.Tied, took)
	for _, group := range []struct {
		is   string
		pods []string
	}{
		{"Deleted and chosen", named(deleted, result.Ranks, podpicker.RankChosen)},
		{"Deleted and tied", named(deleted, result.Ranks, podpicker.RankTied)},
		{"Deleted and neither", named(deleted, result.Ranks, podpicker.RankOther)},
		{"Stay although chosen before these, because " + why, overruled},
	} {
		if len(group.pods) > 0 {
			message += " " + group.is + ": " + listOf(group.pods) + "."
		}
	}
	klog.FromContext(ctx).V(2).Info("Pods were picked", "replicaSet", klog.KObj(rs), "host", host, "took", took, "tied", result.Tied,
		"deleted", klog.KObjSlice(deleted), "chosen", result.Chosen, "overruled", overruled)
	p.event(rs, v1.EventTypeNormal, eventPodsPicked, plaintext.Truncate(message, maxPickerNote))
}

// event records an event about the ReplicaSet and about its Deployment, where people look first.
func (p *pickers) event(rs *apps.ReplicaSet, eventType, reason, message string) {
	p.recorder.Event(rs, eventType, reason, message)
	if ref := metav1.GetControllerOf(rs); ref != nil && isAppsKind(ref, "Deployment") {
		deployment := &v1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: rs.Namespace, Name: ref.Name, UID: ref.UID}
		p.recorder.Event(deployment, eventType, reason, plaintext.Truncate("ReplicaSet "+rs.Name+": "+message, maxPickerNote))
	}
}

// named returns the names of the pods of this rank. Those that the picker was not asked about have none.
func named(pods []*v1.Pod, ranks map[string]int, rank int) (names []string) {
	for _, pod := range pods {
		if got, isCandidate := ranks[pod.Name]; isCandidate && got == rank {
			names = append(names, pod.Name)
		}
	}
	return names
}

// overruledBy returns the names of the pods that stay although the picker prefers them to some that are
// deleted, and what comes before the picker.
func overruledBy(ranks map[string]int, deleted, stay []*v1.Pod) (names []string, why string) {
	worst, why := podpicker.RankChosen, "pods that are not available go first"
	lowest := int32(math.MaxInt32)
	for _, pod := range deleted {
		if rank, isCandidate := ranks[pod.Name]; isCandidate {
			worst, lowest = max(worst, rank), min(lowest, costOf(pod))
		}
	}
	for _, pod := range stay {
		if rank, isCandidate := ranks[pod.Name]; isCandidate && rank < worst {
			names = append(names, pod.Name)
			if costOf(pod) > lowest {
				why = "pods with a lower " + apicore.PodDeletionCost + " go first"
			}
		}
	}
	return names, why
}

func costOf(pod *v1.Pod) int32 {
	cost, _ := helper.GetDeletionCostFromPodAnnotations(pod.Annotations) // 0 if it is invalid, as for the order.
	return cost
}

// listOf lists names, as far as an event has room for them.
func listOf(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// sortRanked sorts the pods, whose ranks are known.
func (rsc *ReplicaSetController) sortRanked(ctx context.Context, rs *apps.ReplicaSet, ranked controller.ActivePodsWithRanks) {
	if rsc.evictions != nil {
		order := rsc.evictions.order(metav1.NewTime(rsc.clock.Now()), rs, rsc.surgeOf(ctx, rs), ranked)
		if slices.ContainsFunc([][]bool{order.requested, order.saved, order.stays, order.leaving}, func(facts []bool) bool { return slices.Contains(facts, true) }) {
			sort.Sort(order)
			return
		}
	}
	sort.Sort(ranked)
}
