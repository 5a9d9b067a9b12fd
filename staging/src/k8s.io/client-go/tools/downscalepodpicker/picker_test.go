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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// An answer is valid as a whole or not at all.
func TestDecodeResponse(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, test := range map[string]struct {
		body string
		want Response
		err  string
	}{
		"both lists":            {body: `{"chosen_pods": ["a"], "tied_pods": ["b", "c"]}`, want: Response{ChosenPods: []string{"a"}, TiedPods: []string{"b", "c"}}},
		"all chosen":            {body: `{"chosen_pods": ["c", "b", "a"]}`, want: Response{ChosenPods: []string{"c", "b", "a"}}},
		"nothing":               {body: `{}`},
		"null":                  {body: `null`, err: "must be an object"},
		"null lists":            {body: `{"chosen_pods": null, "tied_pods": null}`},
		"a null name":           {body: `{"chosen_pods": [null]}`, err: `chosen_pods names ""`},
		"a field in upper case": {body: `{"Chosen_Pods": ["a"]}`},
		"a list twice":          {body: `{"chosen_pods": ["a"], "chosen_pods": ["b"]}`, err: `chosen_pods is there twice`},
		"empty lists":           {body: `{"chosen_pods": [], "tied_pods": []}`, want: Response{ChosenPods: []string{}, TiedPods: []string{}}},
		"white space":           {body: " {}\n\t", want: Response{}},
		"empty":                 {err: "EOF"},
		"no JSON":               {body: `a`, err: "reading the body as JSON"},
		"a list":                {body: `["a"]`, err: "reading the body as JSON"},
		"numbers":               {body: `{"chosen_pods": [1]}`, err: "reading the body as JSON"},
		"half":                  {body: `{"chosen_pods": ["a"`, err: "reading the body as JSON"},
		"an unknown field":      {body: `{"pods": [], "chosen_pods": ["a"], "pods": {"chosen_pods": 1}}`, want: Response{ChosenPods: []string{"a"}}},
		"half an unknown field": {body: `{"chosen_pods": ["a"], "pods": [`, err: "reading the body as JSON"},
		"something after it":    {body: `{} {}`, err: "goes on after the end"},
		"rubbish after it":      {body: `{} x`, err: "reading the body as JSON"},
		"a stranger":            {body: `{"chosen_pods": ["d"]}`, err: `chosen_pods names "d", which is not one of the candidate_pods`},
		"a tied stranger":       {body: `{"tied_pods": ["d"]}`, err: `tied_pods names "d"`},
		"a long name":           {body: `{"tied_pods": ["` + long + `"]}`, err: `"` + long[:64] + `..."`},
		"an empty name":         {body: `{"tied_pods": [""]}`, err: `tied_pods names ""`},
		"chosen twice":          {body: `{"chosen_pods": ["a", "a"]}`, err: "name a pod once"},
		"chosen and tied":       {body: `{"chosen_pods": ["a"], "tied_pods": ["a"]}`, err: `tied_pods names "a", which chosen_pods or tied_pods have already`},
		"as large as it may be": {body: `{}` + strings.Repeat(" ", MaxBodyBytes-2)},
		"larger":                {body: `{}` + strings.Repeat(" ", MaxBodyBytes-1), err: "larger than 1048576 bytes"},
		"a large value":         {body: `{"chosen_pods": ["` + strings.Repeat("a", MaxBodyBytes), err: "larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeResponse(strings.NewReader(test.body), []string{"a", "b", "c"})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				test.want = Response{}
			} else if err != nil {
				t.Errorf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzDecodeResponse: whatever a picker answers, a valid answer has candidates only, each once.
func FuzzDecodeResponse(f *testing.F) {
	for _, body := range []string{
		`{"chosen_pods": ["a"], "tied_pods": ["b"]}`, `{"chosen_pods": ["a", "a"]}`, `{"Chosen_Pods": ["a"], "chosen_pods": ["b"]}`, `{"chosen_pods": ["\u0061"]}`, `{}`, `null`, "",
	} {
		f.Add(body)
	}
	candidates := []string{"a", "b", "c"}
	f.Fuzz(func(t *testing.T, body string) {
		response, err := DecodeResponse(strings.NewReader(body), candidates)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, name := range slices.Concat(response.ChosenPods, response.TiedPods) {
			if seen[name] || !slices.Contains(candidates, name) {
				t.Errorf("%q gives %+v", body, response)
			}
			seen[name] = true
		}
	})
}

// The handler asks the picker what it is asked, and answers with what the picker says.
func TestHandler(t *testing.T) {
	const ok = `{"number_of_pods_requested": 1, "candidate_pods": ["a", "b"]}`
	for name, test := range map[string]struct {
		method, body string
		answer       Answer
		err          error
		wantStatus   int
		wantBody     string
		wantAsked    bool
	}{
		"an answer":             {body: ok, answer: Answer{Chosen: []string{"b"}, Tied: []string{"a"}}, wantStatus: 200, wantBody: `{"chosen_pods":["b"],"tied_pods":["a"]}`, wantAsked: true},
		"no decision":           {body: ok, wantStatus: 200, wantBody: `{"chosen_pods":[],"tied_pods":[]}`, wantAsked: true},
		"a field of the future": {body: `{"number_of_pods_requested": 1, "candidate_pods": ["a", "b"], "zones": {}}`, wantStatus: 200, wantBody: `{"chosen_pods":[],"tied_pods":[]}`, wantAsked: true},
		"another method":        {method: http.MethodGet, body: ok, wantStatus: 405, wantBody: "the method is GET, must be POST"},
		"a method that writes":  {method: http.MethodPut, body: ok, wantStatus: 405, wantBody: "the method is PUT, must be POST"},
		"no body":               {wantStatus: 400, wantBody: "reading the body as JSON"},
		"too large":             {body: ok + strings.Repeat(" ", maxRequestBytes), wantStatus: 400, wantBody: "larger than"},
		"no number":             {body: `{"candidate_pods": ["a"]}`, wantStatus: 400, wantBody: "number_of_pods_requested is 0, must be at least 1"},
		"a negative number":     {body: `{"number_of_pods_requested": -1, "candidate_pods": ["a"]}`, wantStatus: 400, wantBody: "number_of_pods_requested is -1, must be at least 1"},
		"no candidates":         {body: `{"number_of_pods_requested": 1}`, wantStatus: 400, wantBody: "candidate_pods is empty"},
		"an error":              {body: ok, err: errors.New("no idea"), wantStatus: 500, wantBody: "no idea", wantAsked: true},
		"a stranger":            {body: ok, answer: Answer{Chosen: []string{"c"}}, wantStatus: 500, wantBody: `the picker broke the contract: chosen_pods names "c"`, wantAsked: true},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []Question
			handler := NewHandler(func(_ context.Context, q Question) (Answer, error) {
				asked = append(asked, q)
				return test.answer, test.err
			})
			if test.method == "" {
				test.method = http.MethodPost
			}
			request := httptest.NewRequest(test.method, "/", strings.NewReader(test.body))
			request.Header.Set(HeaderNamespace, "shop")
			request.Header.Set(HeaderReplicaSet, "web-1")
			request.Header.Set(HeaderIdempotencyKey, "k")
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			if recorder.Code != test.wantStatus || !strings.Contains(recorder.Body.String(), test.wantBody) {
				t.Errorf("answer %d %q, want %d %q", recorder.Code, recorder.Body, test.wantStatus, test.wantBody)
			}
			if test.wantStatus == 200 && recorder.Header().Get("Content-Type") != ContentType {
				t.Errorf("the content type is %q", recorder.Header().Get("Content-Type"))
			}
			var want []Question
			if test.wantAsked {
				want = []Question{{Namespace: "shop", ReplicaSet: "web-1", IdempotencyKey: "k", Pods: 1, Candidates: []string{"a", "b"}}}
			}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// A question names all candidates, which are many in a large ReplicaSet.
func TestManyCandidates(t *testing.T) {
	want := 0
	handler := NewHandler(func(_ context.Context, q Question) (Answer, error) {
		if len(q.Candidates) != want {
			t.Errorf("%d candidates, want %d", len(q.Candidates), want)
		}
		return Answer{}, nil
	})
	for _, want = range []int{2, 15_000, 150_000} {
		request := Request{NumberOfPodsRequested: 1}
		for i := range want {
			request.CandidatePods = append(request.CandidatePods, fmt.Sprintf("%s-%06d", strings.Repeat("a", 56), i))
		}
		body, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
		if recorder.Code != http.StatusOK {
			t.Errorf("%d candidates, %d bytes: status %d, %s", want, len(body), recorder.Code, recorder.Body)
		}
	}
}

// The context of a picker is that of its request.
func TestHandlerContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	handler := NewHandler(func(asked context.Context, _ Question) (Answer, error) {
		cancel()
		return Answer{}, asked.Err()
	})
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(`{"number_of_pods_requested": 1, "candidate_pods": ["a", "b"]}`))
	recorder := httptest.NewRecorder()
	if handler.ServeHTTP(recorder, request); !strings.Contains(recorder.Body.String(), context.Canceled.Error()) {
		t.Errorf("answer %q", recorder.Body)
	}
}

func ExampleNewHandler() {
	busy := map[string]int{"a": 3, "b": 0}
	handler := NewHandler(func(_ context.Context, question Question) (Answer, error) {
		var answer Answer
		for _, pod := range question.Candidates {
			if busy[pod] == 0 {
				answer.Chosen = append(answer.Chosen, pod)
			}
		}
		return answer, nil
	})
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"number_of_pods_requested": 1, "candidate_pods": ["a", "b"]}`)))
	fmt.Print(recorder.Body)
	// Output: {"chosen_pods":["b"],"tied_pods":[]}
}

// The table of the guide.
func TestMaxDuration(t *testing.T) {
	for _, test := range []struct {
		retries            int
		timeout, wantTotal time.Duration
	}{{0, time.Second, time.Second}, {3, time.Second, 5400 * time.Millisecond}, {3, 5 * time.Second, 21400 * time.Millisecond}, {10, 30 * time.Second, 345 * time.Second}} {
		if got := MaxDuration(test.retries, test.timeout); got != test.wantTotal {
			t.Errorf("%d retries of %s: %s, want %s", test.retries, test.timeout, got, test.wantTotal)
		}
	}
}
