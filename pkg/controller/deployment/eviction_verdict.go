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

package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/deployment/metrics"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// maxReasonLength bounds what is quoted from elsewhere, in bytes.
const maxReasonLength = 200

// verdict is what a pod that is asked to leave hears of its Deployment.
type verdict struct {
	// outcome is empty while the turn goes on.
	outcome metrics.Outcome
	message string
	// eta is what etaAfterOutage returns, for a turn that goes on.
	eta time.Time
}

// verdicts adds what each pod of a ReplicaSet hears that is asked to leave.
func (w *workload) verdicts(now time.Time, set *replicaSet, verdicts map[types.UID]verdict) {
	if len(set.asked) == 0 {
		return
	}
	next, behind := w.waiting(set), fmt.Sprintf("Waiting: other pods of %s go first.", w)
	spare := w.spare()
	leaving := sets.New(set.kept.Leaving...)
	inFront := 0
	for _, asked := range set.asked {
		message := next
		switch {
		case leaving.Has(asked.uid):
			message = fmt.Sprintf("Surging %d/%d: the replacement is available, the pod makes way.", set.moved(), set.surging())
		case set.surging() > 0 && inFront >= int(set.kept.Surge) && w.failure == nil:
			// The same at every step, so that it is not reported anew.
			message = behind
		default:
			inFront++
		}
		v := w.verdict(now, set, asked, message)
		if v.outcome == "" && spare.Has(asked.uid) {
			v = verdict{outcome: metrics.Declined, message: fmt.Sprintf("%s is paused in a rollout, which has taken the room for a surge, and has its replicas without the pod.", w)}
		}
		if v.outcome == "" {
			v.eta = w.etaAfterOutage(set, asked)
		}
		verdicts[asked.uid] = v
	}
}

// spare returns the pods without which a Deployment that is paused in a rollout has its
// replicas. It cannot surge for them: the rollout has taken the room, and keeps it for as long
// as the pause lasts. But what a rollout has beyond spec.replicas is as good as a surge.
func (w *workload) spare() sets.Set[types.UID] {
	if !w.rolling || !w.deployment.Spec.Paused {
		return nil
	}
	beyond := -int(*w.deployment.Spec.Replicas)
	var asked []surgePod
	for _, set := range w.sets {
		for _, pod := range set.pods {
			if pod.available && (pod.turn == notAsked || pod.turn == ourTurn) {
				beyond++ // A pod that was passed on may go at any moment.
			}
			if pod.turn == ourTurn {
				asked = append(asked, pod)
			}
		}
	}
	// Always in the same order: the turns of those before may not show as over yet.
	slices.SortFunc(asked, func(a, b surgePod) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.uid, b.uid)) })
	spare := sets.New[types.UID]()
	for _, pod := range asked {
		switch {
		case pod.broken:
			spare.Insert(pod.uid)
		case pod.available && beyond > 0:
			spare.Insert(pod.uid)
			beyond--
		}
	}
	return spare
}

// verdict says how it stands with one pod, which waits for what the message says.
func (w *workload) verdict(now time.Time, set *replicaSet, asked askedPod, message string) verdict {
	patient := w.turnDeadline(set, asked).After(now)
	switch {
	case w.deployment.DeletionTimestamp != nil && w.hasExtra() && patient:
		return verdict{message: fmt.Sprintf("%s is being deleted and takes its surge back.", w)}
	case w.deployment.DeletionTimestamp != nil:
		return verdict{outcome: metrics.Declined, message: fmt.Sprintf("%s is being deleted.", w)}
	case asked.terminating:
		return verdict{outcome: metrics.Completed, message: "The pod terminates."}
	case !deploymentutil.IsRollingUpdate(w.deployment):
		return verdict{outcome: metrics.Declined, message: fmt.Sprintf("%s does not surge: its strategy is %s.", w, w.deployment.Spec.Strategy.Type)}
	case *w.deployment.Spec.Replicas > 0 && w.maxSurge() == 0:
		return verdict{outcome: metrics.Declined, message: fmt.Sprintf("%s does not surge: its maxSurge is 0.", w)}
	case !patient:
		return verdict{outcome: metrics.GivenUp, message: fmt.Sprintf("Gave up after %v without progress. %s", w.progressDeadline(), message)}
	}
	return verdict{message: message}
}

// waiting says what the pods of a ReplicaSet wait for that are the next to go.
func (w *workload) waiting(set *replicaSet) string {
	surging := fmt.Sprintf("Surging %d/%d: ", set.moved(), set.surging())
	switch {
	case w.failure != nil && !apierrors.IsConflict(w.failure):
		return surging + "it fails, and is tried again: " + cut(w.failure.Error())
	case w.rolling && w.deployment.Spec.Paused:
		return fmt.Sprintf("Waiting: %s is paused in a rollout and has no available pod to spare.", w)
	case w.rolling:
		return fmt.Sprintf("Waiting for the rollout of %s, which comes before a surge.", w)
	case set.surging() == 0:
		return fmt.Sprintf("Waiting: %s has %d pods and may not have more at the moment.", w, len(set.pods))
	}
	replacements := set.replacements()
	if len(replacements) > 0 {
		return surging + "waiting for " + describeUnavailable(replacements[0], len(replacements)-1)
	}
	if failure := deploymentutil.CreateFailureOf(set.stored); failure != nil {
		return surging + "replacements cannot be created: " + cut(failure.Message)
	}
	return surging + "waiting for replacements to be created."
}

// describeUnavailable says why a pod is not available.
func describeUnavailable(pod *v1.Pod, others int) string {
	name := "pod " + pod.Name
	if others > 0 {
		name = fmt.Sprintf("pod %s and %d more", pod.Name, others)
	}
	if _, scheduled := podutil.GetPodCondition(&pod.Status, v1.PodScheduled); scheduled != nil && scheduled.Status == v1.ConditionFalse {
		return fmt.Sprintf("%s to be scheduled: %s", name, cut(scheduled.Message))
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := container.State.Waiting; waiting != nil && waiting.Reason != "" {
			return fmt.Sprintf("%s: container %s is waiting, %s", name, container.Name, waiting.Reason)
		}
	}
	if podutil.IsPodReady(pod) {
		return name + " to be available: it is ready."
	}
	return name + " to become ready."
}

func cut(message string) string {
	if len(message) <= maxReasonLength {
		return message
	}
	// Not in the middle of a character.
	end := maxReasonLength
	for end > 0 && message[end]&0xC0 == 0x80 {
		end--
	}
	return message[:end] + "..."
}
