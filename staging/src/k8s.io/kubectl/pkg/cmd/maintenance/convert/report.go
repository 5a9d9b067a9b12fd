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

package convert

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/component-helpers/plaintext"
)

// verdict is what becomes of a field or a flag that is not written as it was.
type verdict string

const (
	// isLost means that the field has no effect any more.
	isLost verdict = "lost"

	// isChanged means that the effect is expressed in another way, or is a little different.
	isChanged verdict = "changed"

	// isIgnored means that nothing is to be written for the field: the server sets it, or its effect
	// needs no permission.
	isIgnored verdict = "ignored"
)

// maxValueShown limits the values in messages, in bytes.
const maxValueShown = 80

// source is where something was read.
type source struct {
	// file is empty for a command that was given as arguments.
	file string
	// document is the number of a document; 0 is the whole file.
	document int
	// object is the kind and name of an object, or a command.
	object string
}

func (s source) String() string {
	var where string
	if s.document > 0 {
		where = fmt.Sprintf("%s, document %d", s.file, s.document)
	} else {
		where = s.file
	}
	if s.object != "" && where != "" {
		where += ": "
	}
	return where + s.object
}

// finding is a field or a flag that is not written as it was.
type finding struct {
	verdict verdict
	source  source
	// path is the path of a field, or a flag.
	path string
	// text says why, and what to do instead.
	text string
}

func (f finding) String() string {
	return plaintext.Line(fmt.Sprintf("%s: %s: %s: %s", f.verdict, f.source, f.path, f.text))
}

// report collects what is not written as it was, and the errors because of which nothing is written.
type report struct {
	findings []finding
	errs     []error
}

func (r *report) add(v verdict, where source, path, format string, args ...any) {
	r.findings = append(r.findings, finding{verdict: v, source: where, path: path, text: fmt.Sprintf(format, args...)})
}

// fail records an error in a field, or in the whole object if path is empty.
func (r *report) fail(where source, path, format string, args ...any) {
	if path != "" {
		path += ": "
	}
	prefix := where.String()
	if prefix != "" {
		prefix += ": "
	}
	r.errs = append(r.errs, errors.New(plaintext.Line(prefix+path+fmt.Sprintf(format, args...))))
}

func (r *report) countLost() int {
	count := 0
	for _, f := range r.findings {
		if f.verdict == isLost {
			count++
		}
	}
	return count
}

// withValue returns a path with the value of the field, in one line.
func withValue(path string, value any) string {
	text := plaintext.Line(fmt.Sprint(value))
	if strings.ContainsAny(text, " :") || text == "" {
		text = fmt.Sprintf("%q", text)
	}
	return path + "=" + plaintext.Truncate(text, maxValueShown)
}
