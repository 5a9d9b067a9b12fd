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

package describe

import (
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/plaintext"
)

// plainWriter escapes what could do more to a terminal than print a character, wherever
// it comes from: labels and events are printed by functions that are not ours. Line ends
// and tabs pass, so what must stay on its line goes through plaintext.Line before.
type plainWriter struct {
	PrefixWriter
}

func newPlainWriter(out io.Writer) PrefixWriter { return plainWriter{NewPrefixWriter(out)} }

func (w plainWriter) Write(level int, format string, a ...any) {
	// A copy, so that vet does not take every PrefixWriter for one that is called like Printf:
	// upstream passes formats to it that are no constants.
	args := slices.Clone(a)
	w.PrefixWriter.Write(level, "%s", plaintext.Escape(fmt.Sprintf(format, args...)))
}

func (w plainWriter) WriteLine(a ...any) {
	w.PrefixWriter.WriteLine(plaintext.Escape(fmt.Sprint(a...)))
}

// describePlainEvents prints events of which each stays on its line.
func describePlainEvents(events *corev1.EventList, w PrefixWriter) {
	if events == nil {
		return
	}
	plain := events.DeepCopy()
	for i := range plain.Items {
		e := &plain.Items[i]
		for _, text := range []*string{&e.Type, &e.Reason, &e.Message, &e.Source.Component, &e.ReportingController, &e.InvolvedObject.FieldPath} {
			*text = plaintext.Line(*text)
		}
	}
	DescribeEvents(plain, w)
}

// plainLabels keeps each label on its line.
func plainLabels(labels map[string]string) map[string]string {
	plain := map[string]string{}
	for key, value := range labels {
		plain[plaintext.Line(key)] = plaintext.Line(value)
	}
	return plain
}
