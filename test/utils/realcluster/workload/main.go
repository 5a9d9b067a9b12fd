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

// Command workload is what runs in the pods of clusters with real nodes: all that their images
// need, in one static program.
//
//	workload pause    waits and reaps processes: the sandbox of a pod
//	workload serve    an HTTP server that shuts down gracefully
//	workload sleep    runs until it is asked to end
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "workload:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("name a command: pause, serve or sleep")
	}
	// The first process of a container ignores signals that it does not handle.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch args[0] {
	case "pause":
		go reap()
		<-ctx.Done()
		return nil
	case "sleep":
		<-ctx.Done()
		return nil
	case "serve":
		return serve(ctx, args[1:])
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// reap removes the ended processes whose parents are gone, where the containers of a pod share
// its process namespace.
func reap() {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for range children {
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
	}
}

// serve answers each request with the name of the pod. Like most programs it takes its time to
// start. When it is asked to end, it answers the requests that have arrived, and says at /ready
// that it takes no more.
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	address := flags.String("listen", ":8080", "address to listen on")
	start := flags.Duration("start", 0, "how long the start takes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(*start):
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	var ending atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, host) })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if ending.Load() {
			http.Error(w, "ending", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: *address, Handler: mux, ReadHeaderTimeout: time.Minute}
	shutDown := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		ending.Store(true)
		shutDown <- server.Shutdown(context.Background())
	})
	fmt.Println(host, "serves on", *address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-shutDown
}
