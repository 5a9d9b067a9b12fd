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
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/klog/v2"
)

// Question is what a picker is asked.
type Question struct {
	// Namespace and ReplicaSet name the ReplicaSet that is scaled down. Empty if the request does not
	// come from the ReplicaSet controller.
	Namespace, ReplicaSet string
	// IdempotencyKey is the same for all attempts at one question: about the same ReplicaSet, replicas
	// and pods, also after a restart of the controller.
	IdempotencyKey string
	// Pods is how many pods should be chosen, at least 1.
	Pods int
	// Candidates are the names of the pods to choose from.
	Candidates []string
}

// Answer is what a picker says. Its names must be among the candidates, each in one of the lists.
type Answer struct {
	// Chosen are the names of the pods to remove first.
	Chosen []string
	// Tied are the names of the pods to remove next, among which the picker cannot decide.
	Tied []string
}

// Picker answers a question. It must not change anything, because it may be asked again. The context
// ends when nobody waits for the answer any more. The text of an error is logged, and is the body of the
// answer, which the ReplicaSet controller does not read: it should not contain secrets.
type Picker func(ctx context.Context, question Question) (Answer, error)

// NewHandler returns a handler that checks a request, asks the picker, checks its answer and sends it.
// It answers 405 and 400 to requests that break the contract, and 500 if the picker returns an error or
// an answer that does.
func NewHandler(pick Picker) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		logger := klog.FromContext(r.Context())
		question, status, err := readQuestion(r)
		if err != nil {
			logger.V(2).Info("Refused a request to pick pods", "err", err)
			http.Error(w, err.Error(), status)
			return
		}
		response, err := answer(r.Context(), pick, question)
		if err != nil {
			logger.Error(err, "No pods were picked", "namespace", question.Namespace, "replicaSet", question.ReplicaSet)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", ContentType)
		if err := json.NewEncoder(w).Encode(response); err != nil {
			logger.V(2).Info("The answer was not sent", "err", err)
		}
	})
}

func readQuestion(r *http.Request) (question Question, status int, err error) {
	if r.Method != http.MethodPost {
		return Question{}, http.StatusMethodNotAllowed, fmt.Errorf("the method is %s, must be POST", r.Method)
	}
	var request Request
	// A later controller may send further fields.
	if err := decode(r.Body, maxRequestBytes, func(d *json.Decoder) error { return d.Decode(&request) }); err != nil {
		return Question{}, http.StatusBadRequest, err
	}
	if request.NumberOfPodsRequested < 1 {
		return Question{}, http.StatusBadRequest, fmt.Errorf("number_of_pods_requested is %d, must be at least 1", request.NumberOfPodsRequested)
	}
	if len(request.CandidatePods) == 0 {
		return Question{}, http.StatusBadRequest, fmt.Errorf("candidate_pods is empty, must name the pods to choose from")
	}
	return Question{
		Namespace: r.Header.Get(HeaderNamespace), ReplicaSet: r.Header.Get(HeaderReplicaSet), IdempotencyKey: r.Header.Get(HeaderIdempotencyKey),
		Pods: request.NumberOfPodsRequested, Candidates: request.CandidatePods,
	}, 0, nil
}

func answer(ctx context.Context, pick Picker, question Question) (Response, error) {
	answer, err := pick(ctx, question)
	if err != nil {
		return Response{}, err
	}
	// A list without names is written as a list.
	response := Response{ChosenPods: append([]string{}, answer.Chosen...), TiedPods: append([]string{}, answer.Tied...)}
	if err := response.Check(question.Candidates); err != nil {
		return Response{}, fmt.Errorf("the picker broke the contract: %w", err)
	}
	return response, nil
}
