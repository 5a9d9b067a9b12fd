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

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxMessageGroups bounds a message of holds. A group takes at most about 2500
// characters, where all names are as long as they may be, and a condition has room for
// 32768.
const maxMessageGroups = 10

const (
	// maxRefusal bounds what is repeated of an error of the API server.
	maxRefusal = 512

	ellipsis = "..."
)

// HoldMessage says in sentences what keeps pods on their nodes. Its times are absolute:
// it changes only when something happens. Empty if nothing is held.
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
		sentences = append(sentences, fmt.Sprintf("%s held by %s.", counted(pods, "pod is", "pods are"), counted(len(rest), "more cause", "more causes")))
	}
	return strings.Join(sentences, " ")
}

// sentence tells how many pods are held, by whom, and which.
func (g *HoldGroup) sentence() string {
	var names []string
	for _, pod := range g.First {
		names = append(names, nameOf(pod))
	}
	total := g.Pods
	if g.Cause.OfNode() {
		total = g.Nodes
	}
	return fmt.Sprintf("%s: %s.", g.summary(), listNames(names, total))
}

// summary is the sentence without the names.
func (g *HoldGroup) summary() string { return g.predicate() + g.details() }

// nameOf returns the name of a pod with its namespace, or that of a node.
func nameOf(pod types.NamespacedName) string {
	if pod.Namespace == "" {
		return pod.Name
	}
	return pod.String()
}

// Printable returns a foreign text in one line that a terminal can show, with at most so
// many bytes.
func Printable(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.TrimSpace(text)
	if len(text) <= limit {
		return text
	}
	// A character that is cut in the middle goes, too.
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}

// predicate says what the pods of the group do.
func (g *HoldGroup) predicate() string {
	switch g.Cause {
	case HoldDisruptionBudget:
		return g.budgetPredicate()
	case HoldEvictionRefused:
		return g.wait("because the API server refuses to evict")
	case HoldInterceptor:
		return g.wait("for interceptor " + g.Name)
	case HoldInterceptorUnresponsive:
		if podType, nobody := g.withoutHandler(); nobody {
			return g.are(podType, "not handled by anybody yet")
		}
		return g.wait("for interceptor " + g.Name + ", which does not report")
	case HoldCordonFailed:
		return counted(g.Nodes, "node", "nodes") + " cannot be cordoned"
	case HoldNodeStatusFailed:
		return counted(g.Nodes, "node has", "nodes have") + " a status that cannot be written"
	case HoldRequestFailed:
		return counted(g.Pods, "pod", "pods") + " in namespace " + g.Name + " cannot be asked to leave"
	case HoldRequestRefused:
		return counted(g.Pods, "pod", "pods") + " cannot be evicted by a request"
	case HoldTerminating:
		return g.are(v1.PodTypeDefault, "terminating")
	case HoldStuckTerminating:
		return g.are(v1.PodTypeDefault, "still terminating after the grace period")
	case HoldUnhandled:
		return g.are(v1.PodType(g.Name), "not handled by anybody")
	default:
		return g.are(v1.PodTypeDefault, "being evicted")
	}
}

func (g *HoldGroup) budgetPredicate() string {
	switch {
	case g.Name == "":
		return g.wait("for a PodDisruptionBudget")
	case strings.Contains(g.Name, nameSeparator):
		// Room in one of them would not help.
		return g.wait("because several PodDisruptionBudgets apply (" + g.Name + ")")
	default:
		return g.wait("for PodDisruptionBudget " + g.Name)
	}
}

// withoutHandler tells whether the pods wait for an interceptor of the project itself that
// has never been heard of, and their type: nobody runs it, and no operator of theirs could help.
func (g *HoldGroup) withoutHandler() (podType v1.PodType, nobody bool) {
	if g.Cause != HoldInterceptorUnresponsive || g.Heartbeat != nil {
		return "", false
	}
	switch g.Name {
	case coordinationv1alpha1.EvictionInterceptorDaemonSet:
		return v1.PodTypeDaemonSet, true
	case coordinationv1alpha1.EvictionInterceptorKubelet:
		return v1.PodTypeStatic, true
	}
	return "", false
}

// details are the times that tell whether it is worth waiting.
func (g *HoldGroup) details() string {
	var details []string
	add := func(what string, at *metav1.Time) {
		if at != nil {
			details = append(details, what+" "+at.UTC().Format(time.RFC3339))
		}
	}
	switch g.Cause {
	case HoldInterceptor, HoldInterceptorUnresponsive:
		if g.Heartbeat != nil && g.Cause == HoldInterceptor {
			// To the minute: with many pods, some interceptor reports every second.
			details = append(details, "last heartbeat "+g.Heartbeat.UTC().Format("2006-01-02T15:04Z07:00"))
		} else {
			add("last heartbeat", g.Heartbeat)
		}
		if _, nobody := g.withoutHandler(); nobody {
			add("no heartbeat of "+g.Name+" since", g.Since)
		} else if g.Heartbeat == nil {
			add("no heartbeat since", g.Since)
		}
		add("expected to finish", g.ETA)
	case HoldTerminating, HoldStuckTerminating:
		add("since", g.Since)
		add("grace period ends", g.ETA)
	case HoldUnhandled:
		details = append(details, "all interceptors had their turn")
	case HoldCordonFailed, HoldNodeStatusFailed, HoldRequestFailed:
		add("since", g.Since)
	}
	if g.Message != "" {
		details = append(details, g.Message)
	}
	if len(details) == 0 {
		return ""
	}
	return " (" + strings.Join(details, ", ") + ")"
}

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
