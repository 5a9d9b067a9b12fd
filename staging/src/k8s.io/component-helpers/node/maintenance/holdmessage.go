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

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// HoldMessage explains in sentences what delays evictions, for the message of a condition. Its
// times are absolute: it changes only when something happens. Empty if there are no groups.
func HoldMessage(groups []HoldGroup) string {
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
func (g *HoldGroup) sentence() string {
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
func (g *HoldGroup) message() string { return g.explain(g.facts()) }

func (g *HoldGroup) explain(details []string) string {
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

// predicate says what delays how many pods.
func (g *HoldGroup) predicate() string {
	switch g.Cause {
	case HoldDisruptionBudget:
		return g.budgetPredicate()
	case HoldEvictionRefused:
		return g.wait("because the API server refuses to evict")
	case HoldInterceptor:
		return g.wait("for interceptor " + g.Name)
	case HoldInterceptorUnresponsive:
		if g.Heartbeat == nil {
			return g.wait("for interceptor " + g.Name + ", which has never reported")
		}
		return g.wait("for interceptor " + g.Name + ", which does not report")
	case HoldComesBack:
		return counted(g.Pods, "pod comes back", "pods come back") + ": " + g.Name
	case HoldCordonFailed:
		return counted(g.Nodes, "node", "nodes") + " cannot be cordoned"
	case HoldKeptByMaintenance:
		return counted(g.Pods, "pod is", "pods are") + " kept by the pod policies of NodeMaintenance " + g.Name
	case HoldNodeStatusFailed:
		return counted(g.Nodes, "node has", "nodes have") + " a status that cannot be written"
	case HoldRequestFailed:
		return counted(g.Pods, "pod", "pods") + " in namespace " + g.Name + " cannot get an EvictionRequest"
	case HoldRequestRefused:
		return counted(g.Pods, "pod", "pods") + " cannot be evicted by an EvictionRequest"
	case HoldCompletion:
		return g.wait("until they have completed, as a pod policy says")
	case HoldVolumesAttached:
		return counted(g.Nodes, "node still has", "nodes still have") + " volumes attached"
	case HoldTerminating:
		return g.are(v1.PodTypeDefault, "terminating")
	case HoldStuckTerminating:
		return g.are(v1.PodTypeDefault, "still terminating after the grace period")
	case HoldUnhandled:
		return g.are(v1.PodType(g.Name), "still running after all interceptors have acted")
	default:
		return g.are(v1.PodTypeDefault, "being evicted")
	}
}

func (g *HoldGroup) budgetPredicate() string {
	switch {
	case g.Name == "":
		return g.wait("for a PodDisruptionBudget")
	case strings.Contains(g.Name, nameSeparator):
		// It would not help if one of them allowed the eviction.
		return g.wait("because several PodDisruptionBudgets apply (" + g.Name + ")")
	default:
		return g.wait("for PodDisruptionBudget " + g.Name)
	}
}

// times are those that a blocker has fields for, and the last heartbeat of an interceptor that
// reports: it would change the message of the blocker again and again, and mean nothing new.
func (g *HoldGroup) times() []string {
	var times []string
	add := func(what string, at *metav1.Time) {
		if at != nil {
			times = append(times, what+" "+at.UTC().Format(time.RFC3339))
		}
	}
	switch g.Cause {
	case HoldInterceptor, HoldInterceptorUnresponsive:
		switch {
		case g.Heartbeat == nil:
			add("active since", g.Since)
		case g.Cause == HoldInterceptor:
			// To the minute: with many pods, some interceptor reports every second.
			times = append(times, "last heartbeat "+g.Heartbeat.UTC().Format("2006-01-02T15:04Z07:00"))
		}
		add("expected to finish", g.ETA)
	case HoldTerminating, HoldStuckTerminating:
		add("since", g.Since)
		add("grace period ends", g.ETA)
	case HoldComesBack, HoldCordonFailed, HoldNodeStatusFailed, HoldRequestFailed:
		add("since", g.Since)
	case HoldCompletion:
		add("expected to end", g.ETA)
	case HoldVolumesAttached:
		add("since", g.Since)
		add("given up", g.ETA)
	}
	return times
}

// facts are what else is known: whether an interceptor reports, and what the API server or the
// interceptor says.
func (g *HoldGroup) facts() []string {
	var facts []string
	switch {
	case g.Cause == HoldInterceptor && g.Heartbeat == nil:
		facts = append(facts, "no heartbeat yet")
	case g.Cause == HoldInterceptorUnresponsive && g.Heartbeat != nil:
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
func (g *HoldGroup) messages() string {
	ofPods := g.Cause == HoldInterceptor || g.Cause == HoldInterceptorUnresponsive || g.Cause == HoldStuckTerminating
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

func (g *HoldGroup) wait(what string) string {
	return counted(g.Pods, "pod waits", "pods wait") + " " + what
}

func (g *HoldGroup) are(podType v1.PodType, what string) string {
	kind := ""
	switch podType {
	case v1.PodTypeDaemonSet:
		kind = "DaemonSet "
	case v1.PodTypeStatic:
		kind = "static "
	}
	return counted(g.Pods, kind+"pod is", kind+"pods are") + " " + what
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
