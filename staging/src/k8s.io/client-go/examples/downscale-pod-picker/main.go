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

// Downscale-pod-picker is asked which workers to remove when their ReplicaSet is scaled down
// (KEP-3189), and prefers the least busy ones. Workers report how busy they are, again and again:
//
//	curl -X PUT --data 0.7 http://picker:8080/load/NAMESPACE/POD
//
// The unit is up to them, 0 means idle. What they report is kept in memory, so there must be one
// replica of this program. A Deployment of workers names it like this:
//
//	spec:
//	  downscalePodPicker:
//	    http: {host: picker.NAMESPACE.svc, port: 8080}
//
// With --token-file, both the workers and kube-controller-manager must send a token, the latter in a
// header whose value, "Bearer TOKEN", is in a Secret:
//
//	httpHeaders:
//	- name: Authorization
//	  valueFrom: {secretKeyRef: {name: picker, key: authorization}}
//
// Replace the function leastBusy with your own rule.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/tools/downscalepodpicker"
)

const (
	// maxReportBytes is more than the text of any number needs.
	maxReportBytes = 64

	// requestTimeout bounds the time in which a client must send its request and read the answer.
	requestTimeout = 10 * time.Second

	// shutdownTimeout is how long requests may still be answered after a signal.
	shutdownTimeout = 5 * time.Second
)

type options struct {
	address, tokenFile string
	// certFile and keyFile are both empty without TLS.
	certFile, keyFile string
	maxAge            time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.address, "address", ":8080", "address to listen on")
	flag.StringVar(&o.tokenFile, "token-file", "", "file with a token that must be in the header \"Authorization: Bearer TOKEN\" of all requests; empty serves whoever reaches the address")
	flag.StringVar(&o.certFile, "tls-cert-file", "", "file with the certificate; empty serves HTTP without TLS")
	flag.StringVar(&o.keyFile, "tls-private-key-file", "", "file with the private key of the certificate")
	flag.DurationVar(&o.maxAge, "max-age", time.Minute, "how long the report of a worker counts")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "downscale-pod-picker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if (o.certFile == "") != (o.keyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file go together: give both, or none")
	}
	token, err := readToken(o.tokenFile)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	return serve(ctx, listener, newHandler(newLoads(o.maxAge), token), o.certFile, o.keyFile)
}

// readToken returns the token in a file, and none without a file.
func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" { // It would let everybody in.
		return "", fmt.Errorf("%s has no token", file)
	}
	return token, nil
}

// serve serves until the context ends, and then until the requests that it has are answered.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, certFile, keyFile string) error {
	server := &http.Server{
		Handler:     handler,
		ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	go func() {
		if certFile == "" {
			ended <- server.Serve(listener)
		} else {
			ended <- server.ServeTLS(listener, certFile, keyFile)
		}
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("shutting down: %w", err)
	}
	return nil
}

// newHandler serves questions at /, reports at /load/NAMESPACE/POD, and /healthz, which needs no
// token.
func newHandler(l *loads, token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/{$}", requireToken(token, downscalepodpicker.NewHandler(l.pick)))
	mux.Handle("PUT /load/{namespace}/{pod}", requireToken(token, http.HandlerFunc(l.report)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	return mux
}

// requireToken refuses requests without the token. It compares in constant time, so that the time of
// the answer does not say how much of a guess is right.
func requireToken(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			http.Error(w, "the header Authorization must be Bearer and the token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loads has the last report of each worker.
type loads struct {
	maxAge time.Duration
	now    func() time.Time

	lock    sync.Mutex
	reports map[worker]report
}

type worker struct{ namespace, pod string }

type report struct {
	load float64
	at   time.Time
}

func newLoads(maxAge time.Duration) *loads {
	return &loads{maxAge: maxAge, now: time.Now, reports: map[worker]report{}}
}

// report takes the load of a worker, a number that is not negative.
func (l *loads) report(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReportBytes))
	if err != nil {
		http.Error(w, fmt.Sprintf("reading the load: %v", err), http.StatusBadRequest)
		return
	}
	load, err := strconv.ParseFloat(strings.TrimSpace(string(body)), 64)
	if err != nil || math.IsNaN(load) || math.IsInf(load, 0) || load < 0 {
		http.Error(w, fmt.Sprintf("the load is %q, must be a number from 0 on", body), http.StatusBadRequest)
		return
	}
	l.set(worker{r.PathValue("namespace"), r.PathValue("pod")}, load)
	w.WriteHeader(http.StatusNoContent)
}

// set records the load of a worker, and forgets those that have not reported for long.
func (l *loads) set(w worker, load float64) {
	l.lock.Lock()
	defer l.lock.Unlock()
	now := l.now()
	maps.DeleteFunc(l.reports, func(_ worker, r report) bool { return l.isOld(r, now) })
	l.reports[w] = report{load, now}
}

func (l *loads) isOld(r report, now time.Time) bool { return now.Sub(r.at) > l.maxAge }

// pick answers a question. Candidates without a report are not named, and so are removed last: nobody
// knows what they do.
func (l *loads) pick(_ context.Context, question downscalepodpicker.Question) (downscalepodpicker.Answer, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	now, known := l.now(), []candidate{}
	for _, pod := range question.Candidates {
		if r, found := l.reports[worker{question.Namespace, pod}]; found && !l.isOld(r, now) {
			known = append(known, candidate{pod, r.load})
		}
	}
	return leastBusy(question.Pods, known), nil
}

type candidate struct {
	pod  string
	load float64
}

// leastBusy chooses so many of the candidates. Where equally busy ones are more than are still needed,
// they are tied: the ReplicaSet controller decides between them.
func leastBusy(count int, candidates []candidate) (answer downscalepodpicker.Answer) {
	sorted := slices.SortedStableFunc(slices.Values(candidates), func(a, b candidate) int { return cmp.Compare(a.load, b.load) })
	count = min(count, len(sorted))
	// The last one that is needed is as busy as the first one that is not.
	undecided := count > 0 && count < len(sorted) && sorted[count-1].load == sorted[count].load
	for i, c := range sorted {
		switch {
		case undecided && c.load == sorted[count].load:
			answer.Tied = append(answer.Tied, c.pod)
		case i < count:
			answer.Chosen = append(answer.Chosen, c.pod)
		}
	}
	return answer
}
