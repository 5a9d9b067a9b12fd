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

package podpicker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/downscalepodpicker"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	"k8s.io/utils/ptr"
)

// Where pickers are: at an address that is allowed, one that is not, or behind a Service.
const (
	pickerRange      = "10.9.0.0/24"
	pickerAddress    = "10.9.0.1"
	refusedAddress   = "10.8.0.1"
	pickerService    = "picker"
	pickerPod        = "picker-pod"
	pickerPodAddress = "10.7.0.1"
)

// newPicker returns a picker with a path of its own, or none.
func (s *sim) newPicker(i int) *v1.DownscalePodPicker {
	if s.chance(8) {
		return nil
	}
	s.names++
	picker := &v1.DownscalePodPicker{
		HTTP:       &v1.HTTPDownscalePodPicker{Host: pickerAddress, Port: intstr.FromInt(8000 + i), Path: fmt.Sprint("/", s.names), Scheme: v1.URISchemeHTTP},
		MaxRetries: ptr.To(int32(s.random.IntN(3))), TimeoutSeconds: ptr.To(int32(1 + s.random.IntN(3))),
	}
	switch s.random.IntN(8) {
	case 0:
		picker.HTTP.Host = refusedAddress
	case 1, 2:
		picker.HTTP.Host, picker.HTTP.Port = pickerService+".default.svc", intstr.FromInt(80)
	}
	return picker
}

// call is an attempt to ask a picker.
type call struct {
	at   time.Time
	key  string
	path string
	// answered is when the answer was written, unless the client went before. ranks is nil if the answer
	// is invalid, and empty if it names no pod.
	answered time.Time
	ranks    map[string]int
}

// dial connects to the simulated pickers.
func (s *sim) dial(_ context.Context, _, address string) (net.Conn, error) {
	if host, _, _ := net.SplitHostPort(address); host != pickerAddress && host != pickerPodAddress {
		s.t.Errorf("dialled %s", address)
	}
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		if err := s.answer(server); err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, io.EOF) {
			s.t.Errorf("the server of pickers: %v", err)
		}
	}()
	return client, nil
}

// answer answers one request in a random way, unless the client goes before.
func (s *sim) answer(server net.Conn) error {
	reader := bufio.NewReader(server)
	r, err := http.ReadRequest(reader)
	if err != nil {
		return err
	}
	var question downscalepodpicker.Request
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, reader)
		close(gone)
	}()
	c := &call{at: time.Now(), key: r.Header.Get(downscalepodpicker.HeaderIdempotencyKey), path: r.URL.Path}
	response, delay, hangs := s.decide(c, r.Header.Get(downscalepodpicker.HeaderReplicaSet), question)
	if hangs {
		<-gone
		return nil
	}
	select {
	case <-gone:
		return nil
	case <-time.After(delay):
	}
	if response == "" {
		return nil
	}
	s.lock.Lock()
	c.answered = time.Now() // Before the client has it, which may act at once.
	s.lock.Unlock()
	if _, err := io.WriteString(server, response); err != nil {
		s.lock.Lock()
		c.answered = time.Time{}
		s.lock.Unlock()
	}
	return nil
}

// decide chooses what to answer, and after which time. What it chooses depends on the question only, as
// several may arrive at the same time.
func (s *sim) decide(c *call, rs string, q downscalepodpicker.Request) (response string, delay time.Duration, hangs bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.checkCall(c, rs, q)
	s.calls[rs] = append(s.calls[rs], c)
	hash := fnv.New64()
	fmt.Fprint(hash, rs, c.key, len(s.calls[rs]))
	random := rand.New(rand.NewPCG(s.seed, hash.Sum64()))
	names := slices.Clone(q.CandidatePods)
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	chosen, tied := random.IntN(len(names)+1), 0
	if random.IntN(2) == 0 {
		chosen = q.NumberOfPodsRequested
	} else if chosen < len(names) {
		tied = random.IntN(len(names) - chosen)
	}
	answer := downscalepodpicker.Response{ChosenPods: names[:chosen], TiedPods: names[chosen : chosen+tied]}
	delay = time.Duration(1+2*random.IntN(20)) * time.Millisecond
	status, valid := http.StatusOK, true
	switch random.IntN(16) {
	case 0:
		answer.ChosenPods, valid = append(slices.Clone(answer.ChosenPods), "foreign"), false
	case 1:
		answer.TiedPods, valid = []string{names[0], names[0]}, false
	case 2:
		status, valid = http.StatusInternalServerError, false
	case 3:
		s.note("the picker of %s breaks the connection", rs)
		return "", delay, false
	case 4:
		s.note("the picker of %s hangs", rs)
		return "", 0, true
	case 5, 6, 7:
		delay = time.Duration(301+2*random.IntN(1700)) * time.Millisecond // Of timeouts of 1 to 3 seconds.
	case 8:
		answer = downscalepodpicker.Response{}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		s.t.Error(err)
	}
	if valid {
		c.ranks = ranksOf(answer, names)
	}
	// A retry of a failed deletion comes after whole milliseconds. At the moment of an answer, nothing would
	// tell the deletions of the two syncs apart.
	delay += time.Duration(1+random.IntN(99)) * time.Microsecond
	s.note("the picker of %s answers %d %s after %s", rs, status, body, delay)
	return fmt.Sprintf("HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, len(body), body), delay, false
}

func ranksOf(answer downscalepodpicker.Response, names []string) map[string]int {
	ranks := map[string]int{}
	if len(answer.ChosenPods)+len(answer.TiedPods) == 0 {
		return ranks
	}
	for _, name := range names {
		switch {
		case slices.Contains(answer.ChosenPods, name):
			ranks[name] = podpicker.RankChosen
		case slices.Contains(answer.TiedPods, name):
			ranks[name] = podpicker.RankTied
		default:
			ranks[name] = podpicker.RankOther
		}
	}
	return ranks
}

// isCalm reports whether the controller of ReplicaSets has known all there is for long enough to have
// synced them.
func (s *sim) isCalm() bool {
	for _, c := range s.caches {
		if c.owner == replicaSetController && len(c.pending) > 0 {
			return false
		}
	}
	return time.Since(s.moved) > time.Second
}

// checkCall checks that there was a choice when the picker was asked, that this is what is asked about,
// and that it is not too late.
func (s *sim) checkCall(c *call, rs string, q downscalepodpicker.Request) {
	current := s.viewOf(rs)
	if current != nil {
		s.know(rs, current)
	}
	known := s.known[rs][c.key]
	s.note("the picker of %s is asked for %d of %s at %s", rs, q.NumberOfPodsRequested, strings.Join(q.CandidatePods, " "), c.path)
	if known == nil {
		s.t.Errorf("%s: asked for %d of %q, which there was not to decide", rs, q.NumberOfPodsRequested, q.CandidatePods)
		return
	}
	slices.Sort(q.CandidatePods)
	if names := slices.Sorted(slices.Values(known.candidates)); !slices.Equal(names, q.CandidatePods) || q.NumberOfPodsRequested != known.wanted {
		s.t.Errorf("%s: asked for %d of %q, want %d of %q", rs, q.NumberOfPodsRequested, q.CandidatePods, known.wanted, names)
	}
	if d := s.scaleDowns[rs]; d != nil {
		if d.asked.IsZero() {
			d.asked = c.at
		}
		if waited := c.at.Sub(d.asked); waited > d.most {
			s.t.Errorf("%s: asked %s after the first time, want at most %s", rs, waited, d.most)
		}
	}
	if s.isCalm() && (current == nil || current.rs.Spec.DownscalePodPicker == nil || current.rs.Spec.DownscalePodPicker.HTTP.Path != c.path) {
		s.t.Errorf("%s: asked at %s, which was replaced", rs, c.path)
	}
	// Requests for evictions alone do not make the controller ask something else.
	if s.isCalm() && current != nil && current.surplus <= 0 {
		s.t.Errorf("%s: asked although no pods are to be deleted any more", rs)
	}
}
