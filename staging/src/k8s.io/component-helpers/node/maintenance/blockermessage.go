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

package maintenance

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/plaintext"
)

// maxMessageGroups bounds the message of a condition. A group takes at most about 2500
// characters if all names have the maximum length, and a condition has room for 32768.
const maxMessageGroups = 10

// maxForeignText bounds what is repeated of an error of the API server, or of the message of an
// interceptor.
const maxForeignText = 512

// maxEscalationText bounds what is said of an escalation that is held up: names of maintenances may be long.
const maxEscalationText = 256

// BlockerMessage explains in sentences what delays evictions, for the message of a condition. Its
// times are absolute: it changes only when something happens. Empty if there are no groups.
func BlockerMessage(groups []BlockerGroup) string {
	var sentences []string
	shown := groups[:min(maxMessageGroups, len(groups))]
	for i := range shown {
		sentences = append(sentences, shown[i].sentence())
	}
	if rest := groups[len(shown):]; len(rest) > 0 {
		pods := 0
		for _, group := range rest {
			pods += group.Pods
		}
		sentences = append(sentences, fmt.Sprintf("%s for %s.", counted(pods, "more pod", "more pods"), counted(len(rest), "other reason", "other reasons")))
	}
	return strings.Join(sentences, " ")
}

// SkippedSentence says how many pods stay because pod policies skip them, for the message of a condition.
func SkippedSentence(pods int) string {
	if pods == 1 {
		return "1 pod stays, because spec.podPolicies skips it."
	}
	return fmt.Sprintf("%d pods stay, because spec.podPolicies skips them.", pods)
}

// sentence says what delays which pods. A condition has no fields for the times.
func (g *BlockerGroup) sentence() string {
	var names []string
	for _, pod := range g.First {
		names = append(names, nameOf(pod))
	}
	total := g.Pods
	if g.Cause.OfNode() {
		total = g.Nodes
	}
	return fmt.Sprintf("%s: %s.", g.explain(append(g.times(), g.facts()...)), listNames(names, total))
}

// message explains a blocker of a status, which has fields of its own for the times and the pods.
func (g *BlockerGroup) message() string { return g.explain(g.facts()) }

func (g *BlockerGroup) explain(details []string) string {
	if len(details) == 0 {
		return g.predicate()
	}
	return g.predicate() + " (" + strings.Join(details, ", ") + ")"
}

// nameOf returns the name of a pod with its namespace, or that of a node.
func nameOf(pod types.NamespacedName) string {
	if pod.Namespace == "" {
		return pod.Name
	}
	return pod.String()
}

// Printable returns a text of another client as one line without control characters, of at most
// limit bytes.
func Printable(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return plaintext.Truncate(strings.TrimSpace(text), limit)
}

// facts are what else is known: whether an interceptor reports, and what the API server or the
// interceptor says.
func (g *BlockerGroup) facts() []string {
	var facts []string
	switch {
	case g.Cause == BlockerInterceptor && g.Heartbeat == nil:
		facts = append(facts, "no heartbeat yet")
	case g.Cause == BlockerInterceptorUnresponsive && g.Heartbeat != nil:
		facts = append(facts, "last heartbeat "+g.Heartbeat.UTC().Format(time.RFC3339))
	}
	// Both may have commas.
	texts := []string{g.messages()}
	if g.Escalation != "" {
		texts = append(texts, Printable(g.Escalation, maxEscalationText))
	}
	if text := strings.TrimPrefix(strings.Join(texts, messageSeparator), messageSeparator); text != "" {
		facts = append(facts, text)
	}
	return facts
}

// messages returns the message or, of interceptors and pods that do not end, the first that differ with the pods that
// have them: one of a Deployment says nothing about the pods of another. Together they are as long as one at most.
// What the API server answers differs by the names of objects only.
func (g *BlockerGroup) messages() string {
	ofPods := g.Cause == BlockerInterceptor || g.Cause == BlockerInterceptorUnresponsive || g.Cause == BlockerStuckTerminating
	if !g.Mixed || g.Message == "" || !ofPods {
		return g.Message
	}
	all := append([]GroupMessage{{g.Message, g.MessageOf}}, g.More...)
	room, rest := maxForeignText, []string(nil)
	if g.Omits {
		room, rest = room-len(otherMessages), []string{otherMessages}
	}
	var texts []string
	for _, message := range all {
		texts = append(texts, plaintext.Truncate(nameOf(message.Of)+": "+message.Text, room/len(all)-len(messageSeparator)))
	}
	return strings.Join(append(texts, rest...), messageSeparator)
}

const (
	// messageSeparator stands between messages.
	messageSeparator = "; "

	// otherMessages stands for those that a message has no room for.
	otherMessages = "and others"
)

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
