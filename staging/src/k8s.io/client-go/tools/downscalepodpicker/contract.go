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

package downscalepodpicker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// HeaderNamespace, HeaderReplicaSet and HeaderIdempotencyKey are the headers of a request that say
	// for which scale-down it is. They cannot be set by the author of the ReplicaSet.
	HeaderNamespace      = "Kubernetes-Namespace"
	HeaderReplicaSet     = "Kubernetes-ReplicaSet"
	HeaderIdempotencyKey = "Idempotency-Key"

	// MaxBodyBytes is the maximum size of the body of an answer.
	MaxBodyBytes = 1 << 20
	// maxRequestBytes is the maximum size of the body of a request. It has the names of all candidates,
	// and is enough for the pods of the largest clusters.
	maxRequestBytes = 16 << 20

	// ContentType is that of requests and answers.
	ContentType = "application/json"
)

// Request is the body of a request to a picker.
type Request struct {
	// NumberOfPodsRequested is how many pods should be chosen, at least 1 and less than there are
	// candidates.
	NumberOfPodsRequested int `json:"number_of_pods_requested"`
	// CandidatePods are the names of the pods to choose from. Each is there once.
	CandidatePods []string `json:"candidate_pods"`
}

// Response is the body of an answer with status 200. A name is in one of the lists, once.
type Response struct {
	// ChosenPods are the names of the pods to remove.
	ChosenPods []string `json:"chosen_pods"`
	// TiedPods are the names of the pods to remove after these, among which the picker cannot decide.
	TiedPods []string `json:"tied_pods"`
}

// DecodeResponse reads the body of an answer about these candidates. The error says what is wrong
// with it: it is no JSON, has fields beyond those of Response, is larger than MaxBodyBytes, or Check
// finds an error.
func DecodeResponse(body io.Reader, candidates []string) (Response, error) {
	var response Response
	if err := decode(body, MaxBodyBytes, response.read); err != nil {
		return Response{}, err
	}
	if err := response.Check(candidates); err != nil {
		return Response{}, err
	}
	return response, nil
}

// Check returns an error if a name is not one of the candidates, or is there twice.
func (r Response) Check(candidates []string) error {
	const unnamed, named = false, true
	state := make(map[string]bool, len(candidates))
	for _, name := range candidates {
		state[name] = unnamed
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"chosen_pods", r.ChosenPods}, {"tied_pods", r.TiedPods}} {
		for _, name := range list.names {
			before, isCandidate := state[name]
			switch {
			case !isCandidate:
				return fmt.Errorf("%s names %q, which is not one of the candidate_pods", list.field, shorten(name))
			case before == named:
				return fmt.Errorf("%s names %q, which chosen_pods or tied_pods have already: name a pod once", list.field, name)
			}
			state[name] = named
		}
	}
	return nil
}

// shorten keeps a name that may be anything short.
func shorten(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	return name[:most] + "..."
}

// read reads an answer, and ignores unknown fields. Unlike encoding/json, it does not know fields in
// another case, and refuses lists that are there twice: another reader could understand another answer.
func (r *Response) read(decoder *json.Decoder) error {
	if token, err := decoder.Token(); err != nil {
		return err
	} else if token != json.Delim('{') {
		return errors.New("it must be an object")
	}
	seen, lists := map[string]bool{}, map[string]*[]string{"chosen_pods": &r.ChosenPods, "tied_pods": &r.TiedPods}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // Other keys are an error above.
		list, known := lists[name]
		switch {
		case !known: // Of a later version, or a remark of the picker.
			if err := decoder.Decode(&json.RawMessage{}); err != nil {
				return err
			}
			continue
		case seen[name]:
			return fmt.Errorf("%s is there twice", name)
		}
		seen[name] = true
		if err := decoder.Decode(list); err != nil {
			return err
		}
	}
	_, err := decoder.Token() // The end of the object.
	return err
}

// decode reads one JSON value of at most so many bytes, and nothing after it.
func decode(body io.Reader, maxBytes int64, read func(*json.Decoder) error) error {
	limited := &io.LimitedReader{R: body, N: maxBytes + 1}
	decoder := json.NewDecoder(limited)
	err := read(decoder)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("it goes on after the end of the JSON object")
		}
	}
	if limited.N <= 0 {
		return fmt.Errorf("the body is larger than %d bytes", maxBytes)
	}
	if err != nil {
		return fmt.Errorf("reading the body as JSON: %w", err)
	}
	return nil
}
