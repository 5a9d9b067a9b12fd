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

package status

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

// JoinNames lists names, sorted, so that a message changes only when the names do.
func JoinNames(names []string) string {
	sorted := sets.List(sets.New(names...))
	if len(sorted) > maxNamesShown {
		return fmt.Sprintf("%s and %d more", strings.Join(sorted[:maxNamesShown], ", "), len(sorted)-maxNamesShown)
	}
	return strings.Join(sorted, ", ")
}

// Count returns a number of things in words, such as "2 nodes".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Shorten truncates a text for an event; the condition has all of it. The text may contain the
// message of a webhook, therefore it is also made safe for terminals.
func Shorten(text string) string { return maintenance.Printable(text, maxNote) }

// maxNote is how many bytes the note of an event may have.
const maxNote = 1024

// maxNamesShown bounds the names in a message.
const maxNamesShown = 5

// KubeletAbsent is why static pods stay on a node whose kubelet does not stop them.
const KubeletAbsent = "feature gate " + maintenance.KubeletFeature + " of the kubelet is off"

// Messages of drains: see drainMessage.
const (
	MessageDrained  = "Drained"
	MessageDraining = "Draining"
	MessageSkipped  = "Drained, except for skipped nodes"
	MessageWaiting  = "Waiting for admission"
)

// unstoppedSentences say how many pods of each kind stay, and what is off where. Kubelets are named by their nodes.
func unstoppedSentences(u progress.UnstoppedPods) []string {
	keys := slices.SortedFunc(maps.Keys(u), func(x, y progress.Unstopped) int {
		return cmp.Or(cmp.Compare(x.PodType, y.PodType), cmp.Compare(x.Why, y.Why))
	})
	var sentences []string
	for _, key := range keys {
		why := key.Why
		if key.Why == KubeletAbsent {
			why += " on " + JoinNames(u[key].Nodes)
		}
		sentences = append(sentences, maintenance.UnstoppedSentence(u[key].Pods, key.PodType, why))
	}
	return sentences
}

// drainMessage describes the state of a drain in the words of the KEP.
func drainMessage(s progress.DrainState) string {
	switch {
	case s.IsDrained() && s.Skipped:
		return MessageSkipped
	case s.IsDrained():
		return MessageDrained
	case !s.Left && s.Waiting:
		return MessageWaiting
	case !s.Left:
		return MessageDraining
	case s.Draining && len(s.LimitedBy) > 0:
		return fmt.Sprintf("%s (limited by %s)", MessageDraining, JoinNames(s.LimitedBy))
	case s.Draining || len(s.WaitingFor) == 0:
		return MessageDraining
	}
	return fmt.Sprintf("Waiting for %s.", JoinNames(s.WaitingFor))
}
