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
	"cmp"
	"fmt"
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
)

const (
	// maxMessages is how many messages of one interceptor are shown. A script can ask for
	// all of them.
	maxMessages = 10

	// maxMessageLength is how many characters of one are shown: a status may hold
	// thousands.
	maxMessageLength = 240

	// maxMessagePods is how many pods of a message are named.
	maxMessagePods = 3
)

// messageView is what an interceptor says of some of its pods.
//
// The condition of a maintenance has no such messages: they change while nothing happens
// that the drain would have to know of. Here they cost nobody a write.
type messageView struct {
	// Message is empty for pods that the interceptor says nothing of.
	Message string `json:"message"`
	Pods    int    `json:"pods"`
	// First are the first of them.
	First []string `json:"firstPods"`
}

// addMessages tells, below each interceptor that pods wait for, what it says of them: each
// text once, in the order of the pods, so that the lines keep their places.
func (v *view) addMessages(s *snapshot) {
	said := map[string][]saying{}
	for i := range v.Nodes {
		for _, pod := range s.pods[v.Nodes[i].Name] {
			name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
			if key, held := v.held[name]; held {
				said[key] = append(said[key], saying{name, messageOf(s.requests[string(pod.UID)])})
			}
		}
	}
	for i := range v.Blockers {
		b := &v.Blockers[i]
		if b.isInterceptor() {
			b.Messages = groupSayings(said[b.key()])
		}
	}
}

// isInterceptor tells whether somebody has the turn who says what it does. One that is
// silent too long counts: why it fails is the last that it has said.
func (b *blockerView) isInterceptor() bool {
	return b.Cause == maintenance.HoldInterceptor || b.Cause == maintenance.HoldInterceptorUnresponsive
}

// messageOf returns what the active interceptor says, in one line.
func messageOf(request *coordinationv1alpha1.EvictionRequest) string {
	if request == nil {
		return ""
	}
	report := evictionrequest.ActiveInterceptor(request)
	if report == nil {
		return ""
	}
	return plaintext.Line(report.Message)
}

// saying is what the interceptor of one pod says.
type saying struct {
	pod     types.NamespacedName
	message string
}

// groupSayings returns nil if nothing is said of any of the pods.
func groupSayings(sayings []saying) []messageView {
	slices.SortFunc(sayings, func(a, b saying) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	var messages []messageView
	at, spoken := map[string]int{}, false
	for _, saying := range sayings {
		i, known := at[saying.message]
		if !known {
			i = len(messages)
			at[saying.message] = i
			messages = append(messages, messageView{Message: saying.message})
		}
		spoken = spoken || saying.message != ""
		messages[i].Pods++
		if len(messages[i].First) < maxMessagePods {
			messages[i].First = append(messages[i].First, saying.pod.String())
		}
	}
	if !spoken {
		return nil
	}
	return messages
}

// addMessages lists the pods of an interceptor below what it says of them.
func (p *page) addMessages(b *blockerView) {
	shown := b.Messages[:min(maxMessages, len(b.Messages))]
	for i := range shown {
		message := &shown[i]
		indent := "      "
		if message.Message != "" {
			p.wrapped(indent, message.text())
			indent += "  "
		}
		p.wrapped(indent, listPods(message.First, message.Pods))
	}
	rest := 0
	for _, message := range b.Messages[len(shown):] {
		rest += message.Pods
	}
	if rest > 0 {
		p.add("      ... and %s", counted(rest, "more pod", "more pods"))
	}
}

func (m *messageView) text() string {
	if runes := []rune(m.Message); len(runes) > maxMessageLength {
		return strings.TrimSpace(string(runes[:maxMessageLength])) + "..."
	}
	return m.Message
}

// messageChanges says what the interceptor has not said before, of whichever pod and
// whether or not it was overdue then.
func messageChanges(old *view, b *blockerView) []string {
	known := map[string]bool{"": true}
	for i := range old.Blockers {
		if was := &old.Blockers[i]; was.isInterceptor() && was.Name == b.Name {
			for j := range was.Messages {
				known[was.Messages[j].Message] = true
			}
		}
	}
	var lines []string
	for i := range b.Messages[:min(maxMessages, len(b.Messages))] {
		message := &b.Messages[i]
		if !known[message.Message] {
			lines = append(lines, fmt.Sprintf("%s says of %s: %s", b.Name, listPods(message.First[:min(maxLinePods, len(message.First))], message.Pods), message.text()))
		}
	}
	return lines
}
