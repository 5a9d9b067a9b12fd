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
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
)

// joinNames lists names, sorted, so that a message changes only when the names do.
func joinNames(names []string) string {
	sorted := sets.List(sets.New(names...))
	if len(sorted) > maxNamesShown {
		return fmt.Sprintf("%s and %d more", strings.Join(sorted[:maxNamesShown], ", "), len(sorted)-maxNamesShown)
	}
	return strings.Join(sorted, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// shorten truncates a text for an event; the condition has all of it. The text may contain the
// message of a webhook, therefore it is also made safe for terminals.
func shorten(text string) string { return maintenance.Printable(text, maxNote) }

// maxNote is how many bytes the note of an event may have.
const maxNote = 1024

// maxNamesShown bounds the names in a message.
const maxNamesShown = 5

// kubeletAbsent is why static pods stay on a node whose kubelet does not stop them.
const kubeletAbsent = "feature gate " + maintenance.KubeletFeature + " of the kubelet is off"

const messageDrained = "Drained"

const messageDraining = "Draining"

const messageSkipped = "Drained, except for skipped nodes"

const messageWaiting = "Waiting for admission"

// unstoppedSentences say how many pods of each kind stay, and what is off where. Kubelets are named by their nodes.
func unstoppedSentences(u progress.UnstoppedPods) []string {
	keys := slices.SortedFunc(maps.Keys(u), func(x, y progress.Unstopped) int {
		return cmp.Or(cmp.Compare(x.PodType, y.PodType), cmp.Compare(x.Why, y.Why))
	})
	var sentences []string
	for _, key := range keys {
		why := key.Why
		if key.Why == kubeletAbsent {
			why += " on " + joinNames(u[key].Nodes)
		}
		sentences = append(sentences, maintenance.UnstoppedSentence(u[key].Pods, key.PodType, why))
	}
	return sentences
}

// drainMessage describes the state of a drain in the words of the KEP.
func drainMessage(s progress.DrainState) string {
	switch {
	case s.IsDrained() && s.Skipped:
		return messageSkipped
	case s.IsDrained():
		return messageDrained
	case !s.Left && s.Waiting:
		return messageWaiting
	case !s.Left:
		return messageDraining
	case s.Draining && len(s.LimitedBy) > 0:
		return fmt.Sprintf("%s (limited by %s)", messageDraining, joinNames(s.LimitedBy))
	case s.Draining || len(s.WaitingFor) == 0:
		return messageDraining
	}
	return fmt.Sprintf("Waiting for %s.", joinNames(s.WaitingFor))
}
