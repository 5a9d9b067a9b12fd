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
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/tools/downscalepodpicker"
	"k8s.io/client-go/util/cert"
)

func TestLeastBusy(t *testing.T) {
	workers := []candidate{{"busy", 0.9}, {"idle-a", 0}, {"half", 0.5}, {"idle-b", 0}, {"also-half", 0.5}}
	for name, tc := range map[string]struct {
		count        int
		candidates   []candidate
		chosen, tied []string
	}{
		"one of two idle ones":     {1, workers, nil, []string{"idle-a", "idle-b"}},
		"all idle ones":            {2, workers, []string{"idle-a", "idle-b"}, nil},
		"idle ones, and one more":  {3, workers, []string{"idle-a", "idle-b"}, []string{"half", "also-half"}},
		"all but the busy one":     {4, workers, []string{"idle-a", "idle-b", "half", "also-half"}, nil},
		"more than have reported":  {9, workers[:2], []string{"idle-a", "busy"}, nil},
		"nobody has reported":      {2, nil, nil, nil},
		"busy ones alone":          {1, []candidate{{"a", 3}, {"b", 2}}, []string{"b"}, nil},
		"busy ones, equally":       {1, []candidate{{"a", 3}, {"b", 3}}, nil, []string{"a", "b"}},
		"as many as have reported": {2, []candidate{{"a", 3}, {"b", 3}}, []string{"a", "b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := downscalepodpicker.Answer{Chosen: tc.chosen, Tied: tc.tied}
			if diff := cmp.Diff(want, leastBusy(tc.count, tc.candidates)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// picker is the program without its flags, with a clock that stands still.
type picker struct {
	*httptest.Server
	t     *testing.T
	token string
	now   time.Time
}

func startPicker(t *testing.T, token string) *picker {
	p := &picker{t: t, token: token, now: time.Now()}
	l := newLoads(time.Minute)
	l.now = func() time.Time { return p.now }
	p.Server = httptest.NewServer(newHandler(l, token))
	t.Cleanup(p.Close)
	return p
}

// send sends a request with the token, and returns the status and the body of the answer.
func (p *picker) send(method, path, body string) (int, string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.URL+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set(downscalepodpicker.HeaderNamespace, "default")
	if p.token != "" {
		request.Header.Set("Authorization", "Bearer "+p.token)
	}
	response, err := p.Client().Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func (p *picker) report(path, load string) {
	p.t.Helper()
	if status, answer := p.send(http.MethodPut, path, load); status != http.StatusNoContent {
		p.t.Fatalf("%s %s: %d %s", path, load, status, answer)
	}
}

// ask asks for one of the pods a and b, and fails unless the answer is this one.
func (p *picker) ask(want downscalepodpicker.Response) {
	p.t.Helper()
	status, answer := p.send(http.MethodPost, "/", `{"number_of_pods_requested": 1, "candidate_pods": ["a", "b"]}`)
	var got downscalepodpicker.Response
	if err := json.Unmarshal([]byte(answer), &got); err != nil || status != http.StatusOK {
		p.t.Fatalf("%d %s: %v", status, answer, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		p.t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestReports(t *testing.T) {
	p := startPicker(t, "")
	p.ask(downscalepodpicker.Response{})
	p.report("/load/default/a", "0.7")
	p.report("/load/default/b", " 1e-3\n")
	p.report("/load/other/a", "0") // A pod of the same name.
	p.ask(downscalepodpicker.Response{ChosenPods: []string{"b"}})
	p.report("/load/default/b", "2")
	p.ask(downscalepodpicker.Response{ChosenPods: []string{"a"}})
	p.now = p.now.Add(40 * time.Second)
	p.report("/load/default/b", "2")
	p.now = p.now.Add(40 * time.Second) // The report of a is too old.
	p.ask(downscalepodpicker.Response{ChosenPods: []string{"b"}})
}

func TestOldReportsAreForgotten(t *testing.T) {
	now := time.Now()
	l := newLoads(time.Minute)
	l.now = func() time.Time { return now }
	for i := range 100 {
		l.set(worker{"default", fmt.Sprint(i)}, 1)
		now = now.Add(time.Second)
	}
	if len(l.reports) != 61 {
		t.Errorf("%d reports of the last minute are kept, want 61", len(l.reports))
	}
}

func TestRefusedRequests(t *testing.T) {
	p := startPicker(t, "")
	for name, tc := range map[string]struct {
		method, path, body string
		want               int
	}{
		"no number":      {http.MethodPut, "/load/default/a", "much", http.StatusBadRequest},
		"empty":          {http.MethodPut, "/load/default/a", "", http.StatusBadRequest},
		"negative":       {http.MethodPut, "/load/default/a", "-1", http.StatusBadRequest},
		"not a number":   {http.MethodPut, "/load/default/a", "NaN", http.StatusBadRequest},
		"infinite":       {http.MethodPut, "/load/default/a", "Inf", http.StatusBadRequest},
		"too long":       {http.MethodPut, "/load/default/a", "1" + strings.Repeat(" ", maxReportBytes), http.StatusBadRequest},
		"no pod":         {http.MethodPut, "/load/default", "1", http.StatusNotFound},
		"another method": {http.MethodGet, "/load/default/a", "", http.StatusMethodNotAllowed},
		"no question":    {http.MethodGet, "/", "", http.StatusMethodNotAllowed},
		"no JSON":        {http.MethodPost, "/", "1 of a, b", http.StatusBadRequest},
		"nothing here":   {http.MethodPost, "/pick", "", http.StatusNotFound},
		"health":         {http.MethodGet, "/healthz", "", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if status, answer := p.send(tc.method, tc.path, tc.body); status != tc.want {
				t.Errorf("%d %s, want %d", status, answer, tc.want)
			}
		})
	}
	p.ask(downscalepodpicker.Response{})
}

func TestToken(t *testing.T) {
	p := startPicker(t, "s3cr3t")
	p.report("/load/default/a", "1")
	p.ask(downscalepodpicker.Response{ChosenPods: []string{"a"}})
	for _, wrong := range []string{"", "s3cr3", "s3cr3tt", "S3CR3T"} {
		p.token = wrong
		for path, method := range map[string]string{"/": http.MethodPost, "/load/default/a": http.MethodPut} {
			status, answer := p.send(method, path, "7")
			if status != http.StatusUnauthorized || strings.Contains(answer, "s3cr3t") {
				t.Errorf("token %q: %s %s: %d %s", wrong, method, path, status, answer)
			}
		}
		if status, _ := p.send(http.MethodGet, "/healthz", ""); status != http.StatusOK {
			t.Errorf("token %q: health: %d", wrong, status)
		}
	}
}

func TestReadToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if _, err := readToken(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	for content, want := range map[string]string{"s3cr3t\n": "s3cr3t", "\n": ""} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readToken(file); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: token %q, %v", content, got, err)
		}
	}
	if token, err := readToken(""); token != "" || err != nil {
		t.Errorf("no file: token %q, %v", token, err)
	}
}

func TestCertificateNeedsKey(t *testing.T) {
	for _, o := range []options{{certFile: "cert"}, {keyFile: "key"}} {
		if err := run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "go together") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestServe verifies that a request is answered that is being served when the program has to end, with
// and without TLS.
func TestServe(t *testing.T) {
	certFile, keyFile, roots := writeCertificate(t)
	for name, tc := range map[string]struct{ scheme, certFile, keyFile string }{
		"HTTP":  {"http", "", ""},
		"HTTPS": {"https", certFile, keyFile},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			reached, end := make(chan struct{}), make(chan struct{})
			handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				close(reached)
				<-end
			})
			ctx, cancel := context.WithCancel(t.Context())
			served, answered := make(chan error, 1), make(chan error, 1)
			go func() { served <- serve(ctx, listener, handler, tc.certFile, tc.keyFile) }()
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
			url := tc.scheme + "://" + listener.Addr().String()
			go func() { answered <- get(t.Context(), client, url) }()
			<-reached
			cancel()
			for { // Until it no longer listens.
				connection, err := net.Dial("tcp", listener.Addr().String())
				if err != nil {
					break
				}
				connection.Close()
			}
			select {
			case err := <-served:
				t.Fatalf("the server has ended before the request: %v", err)
			default:
			}
			close(end)
			if err := <-answered; err != nil {
				t.Errorf("the request: %v", err)
			}
			if err := <-served; err != nil {
				t.Errorf("the server: %v", err)
			}
		})
	}
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

func writeCertificate(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	for file, data := range map[string][]byte{certFile: certificate, keyFile: key} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return certFile, keyFile, roots
}
