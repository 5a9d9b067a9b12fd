/*
Copyright The Kubernetes Authors.

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
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

// errNoCluster is why a cluster cannot be reused when there is none.
var errNoCluster = errors.New("there is no such cluster")

// unhealthy is a component that does not answer as it should.
type unhealthy struct {
	component string
	err       error
}

// probeTimeout is how long a component may take to answer. A healthy one answers
// in milliseconds, or in seconds while a build keeps processors and disk busy; one
// that is given up too early makes a running cluster start anew.
const probeTimeout = 10 * time.Second

// probeClient asks the components for their health. Their certificates are
// made at start and signed by nobody, and nothing secret is sent.
var probeClient = &http.Client{
	Timeout: probeTimeout,
	Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	},
}

// healthURL is where a component tells whether it is ready to work.
func healthURL(component string, p ports) string {
	switch component {
	case "etcd":
		return fmt.Sprintf("http://127.0.0.1:%d/health", p.Etcd)
	case "kube-apiserver":
		return fmt.Sprintf("https://127.0.0.1:%d/readyz", p.APIServer)
	case "kube-controller-manager":
		return fmt.Sprintf("https://127.0.0.1:%d/healthz", p.ControllerManager)
	case "kube-scheduler":
		return fmt.Sprintf("https://127.0.0.1:%d/healthz", p.Scheduler)
	default:
		return fmt.Sprintf("http://127.0.0.1:%d/healthz", p.Kwok)
	}
}

// firstUnhealthy returns the first component that is not healthy, or nil.
func (c *cluster) firstUnhealthy(ctx context.Context, rec record) *unhealthy {
	for _, component := range components {
		if err := probe(ctx, healthURL(component, rec.Ports)); err != nil {
			return &unhealthy{component: component, err: err}
		}
	}
	return nil
}

func probe(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("probe %s: %w", url, err)
	}
	response, err := probeClient.Do(request)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return fmt.Errorf("%s answered %s: %s", url, response.Status, body)
	}
	return nil
}

// reusable checks whether the cluster runs as the options ask. The error says
// why not; it is errNoCluster where there is no trace of a cluster.
func (c *cluster) reusable(ctx context.Context, opts options) (record, error) {
	running, err := c.processes()
	if err != nil {
		return record{}, err
	}
	if _, err := os.Stat(c.dir()); errors.Is(err, os.ErrNotExist) && len(running) == 0 {
		return record{}, errNoCluster
	}
	if len(running) == 0 {
		return record{}, errors.New("leftovers of an earlier run")
	}
	rec, err := c.readRecord()
	if err != nil {
		return record{}, fmt.Errorf("leftovers of an earlier run: %w", err)
	}
	if err := c.compareProcesses(running); err != nil {
		return record{}, err
	}
	if rec.Gates != opts.gates {
		return record{}, fmt.Errorf("it runs with feature gates %q, asked for are %q", rec.Gates, opts.gates)
	}
	if rec.RuntimeConfig != opts.runtimeConfig {
		return record{}, fmt.Errorf("it runs with runtime config %q, asked for is %q", rec.RuntimeConfig, opts.runtimeConfig)
	}
	if !slices.Equal(rec.Args, opts.args) {
		return record{}, fmt.Errorf("it runs with --arg %q, asked for is %q", rec.Args.String(), opts.args.String())
	}
	if sick := c.firstUnhealthy(ctx, rec); sick != nil {
		return record{}, fmt.Errorf("%s is not healthy: %w", sick.component, sick.err)
	}
	return rec, nil
}

// compareProcesses checks that every component runs once, from the binary that
// is there now.
func (c *cluster) compareProcesses(running []process) error {
	for _, component := range components {
		i := slices.IndexFunc(running, func(p process) bool { return p.component == component })
		if i < 0 {
			return fmt.Errorf("%s does not run any more", component)
		}
		if path := c.binaryPath(component); !runsBinary(c.proc, running[i], path) {
			return fmt.Errorf("%s runs another build than %s", component, path)
		}
	}
	return nil
}
