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
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/plaintext"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/deployment/metrics"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// maxReasonLength is the maximum length in bytes of text quoted from other objects or errors.
const maxReasonLength = 200

// turnResult is what a sync of the Deployment reports for one pod.
type turnResult struct {
	// paced is true if the turn ended because the pod may leave, of several that wait for each other.
	paced bool
	// outcome is empty while the turn continues.
	outcome metrics.Outcome
	message string
	// eta is that of turnDeadline. It is only set while the turn continues.
	eta time.Time
}

// turnResults adds the result for each pod of a ReplicaSet whose turn is open.
func (w *workload) turnResults(now time.Time, set *replicaSet, results map[types.UID]turnResult) {
	if len(set.asked) == 0 {
		return
	}
	next, behind := w.waiting(set), fmt.Sprintf("Waiting: %s replaces other pods first.", w)
	spare := w.spare()
	leaving := sets.New(set.recorded.Leaving...)
	inFront := 0
	for _, asked := range set.asked {
		message := next
		hindered := false
		switch {
		case leaving.Has(asked.uid):
			message = set.removing()
		case set.surging() > 0 && inFront >= int(set.recorded.Surge) && w.failure == nil:
			// No numbers here: the message must not change with every step of the surge.
			message = behind
		default:
			inFront++
			hindered = inFront <= set.hindered
		}
		result := w.turnResult(now, set, asked, message)
		if result.outcome == "" && hindered && !w.rolling {
			result = turnResult{outcome: metrics.Declined, message: "Not replaced first, because no replacement can be scheduled while the pod runs. " + message}
		}
		if result.outcome == "" && spare.Has(asked.uid) {
			result = turnResult{outcome: metrics.Declined, message: fmt.Sprintf("%s is paused during a rollout that uses its maxSurge, and does not need the pod to keep its replicas available.", w)}
		}
		if result.outcome == "" {
			_, result.eta = w.turnDeadline(set, asked)
		}
		results[asked.uid] = result
	}
}

// spare returns the pods that a Deployment paused in a rollout does not need to have spec.replicas
// available. It cannot surge for them: the rollout uses the room for as long as the pause lasts.
// But the replicas of the rollout beyond spec.replicas are as good as a surge.
func (w *workload) spare() sets.Set[types.UID] {
	if !w.rolling || !w.deployment.Spec.Paused {
		return nil
	}
	beyond := -int(*w.deployment.Spec.Replicas)
	var asked []surgePod
	for _, set := range w.sets {
		for _, pod := range set.pods {
			if pod.available && (pod.turn == notAsked || pod.turn == ourTurn) {
				beyond++ // The other pods may terminate at any moment.
			}
			if pod.turn == ourTurn {
				asked = append(asked, pod)
			}
		}
	}
	// The order must be stable: turns that an earlier sync has ended may still be open in the
	// cache.
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

// turnResult returns the result for one pod. The message is what the pod waits for.
func (w *workload) turnResult(now time.Time, set *replicaSet, asked askedPod, message string) turnResult {
	deadline, _ := w.turnDeadline(set, asked)
	withinDeadline := deadline.After(now)
	switch {
	case w.deployment.DeletionTimestamp != nil && w.hasExtra() && withinDeadline:
		return turnResult{message: fmt.Sprintf("%s is being deleted and removes its extra replicas.", w)}
	case w.deployment.DeletionTimestamp != nil:
		return turnResult{outcome: metrics.Declined, message: fmt.Sprintf("%s is being deleted.", w)}
	case asked.terminating:
		return turnResult{outcome: metrics.Completed, message: "The pod is terminating."}
	case !deploymentutil.IsRollingUpdate(w.deployment):
		return turnResult{outcome: metrics.Declined, message: fmt.Sprintf("%s does not surge: its strategy is %s.", w, w.deployment.Spec.Strategy.Type)}
	case *w.deployment.Spec.Replicas > 0 && w.maxSurge() == 0:
		return turnResult{outcome: metrics.Declined, message: reasonNotToPace(w)}
	case !withinDeadline:
		return turnResult{outcome: metrics.GivenUp, message: fmt.Sprintf("Gave up after %v without progress. %s", w.progressDeadline(), message)}
	}
	return turnResult{message: message}
}

// waiting returns the message about what the next pods of a ReplicaSet to be evicted wait for.
func (w *workload) waiting(set *replicaSet) string {
	surging := fmt.Sprintf("Surging %d/%d: ", set.availableReplacements(), set.surging())
	switch {
	case w.failure != nil && !apierrors.IsConflict(w.failure):
		return surging + "retrying after an error: " + plaintext.Truncate(w.failure.Error(), maxReasonLength)
	case w.rolling && w.deployment.Spec.Paused:
		return fmt.Sprintf("Waiting: %s is paused during a rollout and needs all of its available pods.", w)
	case w.rolling:
		return fmt.Sprintf("Waiting for the rollout of %s to complete.", w)
	case set.contested && !set.recordOnly:
		return surging + set.contest()
	case set.surging() == 0:
		return fmt.Sprintf("Waiting: %s has %d pods and cannot create more yet.", w, len(set.pods))
	}
	message := surging + set.missing()
	if set.contested {
		message = fmt.Sprintf("%s. Besides, %s", strings.TrimSuffix(message, "."), set.contest())
	}
	return message
}

// missing returns which replacements the pods wait for.
func (set *replicaSet) missing() string {
	replacements := set.replacements()
	if len(replacements) > 0 {
		return "waiting for " + describeUnavailable(replacements[0], set.isMisplaced(replacements[0]), len(replacements)-1)
	}
	if failure := deploymentutil.CreateFailureOf(set.stored); failure != nil {
		return "replacements cannot be created: " + plaintext.Truncate(failure.Message, maxReasonLength)
	}
	// Other pods that should leave may be among those that are wanted: while they are not available, no more can be spared.
	if others := set.notReplacing(func(surgePod) bool { return true }); len(others) > 0 && len(set.pods) >= set.wanted+int(set.recorded.Surge) {
		return "waiting for " + describeUnavailable(others[0], set.isMisplaced(others[0]), len(others)-1)
	}
	return "waiting for replacements to be created."
}

// removing returns the message about the pods that leave. Usually, they are deleted a moment later.
func (s *replicaSet) removing() string {
	surging := fmt.Sprintf("Surging %d/%d: ", s.availableReplacements(), s.surging())
	if failure := deploymentutil.DeleteFailureOf(s.stored); failure != nil {
		return surging + "replaced pods cannot be removed: " + plaintext.Truncate(failure.Message, maxReasonLength)
	}
	return surging + "removing the replaced pod."
}

// describeUnavailable returns why a pod replaces no other one: it is not available, or misplaced.
func describeUnavailable(pod *v1.Pod, misplaced bool, others int) string {
	name := "pod " + pod.Name
	if others > 0 {
		name = fmt.Sprintf("pod %s and %d more", pod.Name, others)
	}
	if _, scheduled := podutil.GetPodCondition(&pod.Status, v1.PodScheduled); scheduled != nil && scheduled.Status == v1.ConditionFalse {
		return fmt.Sprintf("%s to be scheduled: %s", name, plaintext.Truncate(scheduled.Message, maxReasonLength))
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := container.State.Waiting; waiting != nil && waiting.Reason != "" {
			return fmt.Sprintf("%s to become ready: container %s is waiting (%s)", name, container.Name, waiting.Reason)
		}
	}
	if misplaced {
		return fmt.Sprintf("%s to leave node %s, which is in maintenance as well.", name, pod.Spec.NodeName)
	}
	if podutil.IsPodReady(pod) {
		return name + " to be ready for minReadySeconds."
	}
	return name + " to become ready."
}
