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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/downscalepodpicker"
	"k8s.io/utils/ptr"
)

// pickerServer is a downscale pod picker at one port of several addresses of loopback. For the
// ReplicaSet controller each address is another picker.
type pickerServer struct {
	addresses []string
	port      int
	server    http.Server

	lock sync.Mutex
	// asking is how many questions are being asked, and most how many were at a time.
	asking, most int
	// answered is how many answers were sent.
	answered int
}

// startPickers starts a server that answers after a time, or never if that is 0. prefix and the numbers
// from 1 on are its addresses.
func startPickers(prefix string, count int, after time.Duration) (*pickerServer, error) {
	s := &pickerServer{}
	pick := downscalepodpicker.NewHandler(func(_ context.Context, q downscalepodpicker.Question) (downscalepodpicker.Answer, error) {
		time.Sleep(after)
		return downscalepodpicker.Answer{Chosen: q.Candidates[:q.Pods]}, nil
	})
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.count(1, 0)
		if after == 0 {
			// The server notices that the client has gone only if the body was read.
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			s.count(-1, 0)
			return
		}
		pick.ServeHTTP(w, r)
		s.count(-1, 1)
	})
	for i := range count {
		address := fmt.Sprint(prefix, i+1)
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, s.port))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listening as a picker: %w", err), s.close())
		}
		s.addresses = append(s.addresses, address)
		s.port = listener.Addr().(*net.TCPAddr).Port // The others have that of the first one.
		go func() { _ = s.server.Serve(listener) }() // Until close.
	}
	return s, nil
}

func (s *pickerServer) count(asking, answered int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.asking += asking
	s.most = max(s.most, s.asking)
	s.answered += answered
}

// counts returns how many questions are being asked, how many were at a time, and how many were
// answered.
func (s *pickerServer) counts() (asking, most, answered int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.asking, s.most, s.answered
}

// close ends all questions.
func (s *pickerServer) close() error { return s.server.Close() }

// spec returns the picker of a ReplicaSet, one of the addresses. An attempt may take so long.
func (s *pickerServer) spec(index, retries int, timeout time.Duration) *v1.DownscalePodPicker {
	return &v1.DownscalePodPicker{
		HTTP:           &v1.HTTPDownscalePodPicker{Host: s.addresses[index%len(s.addresses)], Port: intstr.FromInt(s.port)},
		MaxRetries:     ptr.To(int32(retries)),
		TimeoutSeconds: ptr.To(int32(timeout.Seconds())),
	}
}
