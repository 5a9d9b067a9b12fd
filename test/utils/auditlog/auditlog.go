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

// Package auditlog reads what API servers record in their audit logs.
package auditlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Reader reads an audit log while an API server writes it.
type Reader struct {
	file *os.File
	rest []byte // The beginning of a line that is not complete yet.
}

// Open opens an audit log at its beginning.
func Open(path string) (*Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return &Reader{file: file}, nil
}

// Close closes the log.
func (r *Reader) Close() { _ = r.file.Close() } // Nothing was written.

// Next returns the events that were logged since the last call. It leaves a line that is not
// complete to the next call.
func (r *Reader) Next() ([]auditv1.Event, error) {
	data, err := io.ReadAll(r.file)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	data = append(r.rest, data...)
	end := bytes.LastIndexByte(data, '\n') + 1
	r.rest = bytes.Clone(data[end:])
	var events []auditv1.Event
	for line := range bytes.Lines(data[:end]) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading audit log %s: %w", r.file.Name(), err)
		}
		events = append(events, event)
	}
	return events, nil
}

// ReadFile returns all events in a log. It ignores half a line at the end, which an API server
// leaves when it is killed.
func ReadFile(path string) ([]auditv1.Event, error) {
	reader, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return reader.Next()
}
