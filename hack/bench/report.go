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
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"
)

// report is everything that was measured, and what it means.
type report struct {
	// Version is that of the API server, Parameters what was asked for.
	Version    string     `json:"version"`
	Processors int        `json:"processors"`
	Parameters parameters `json:"parameters"`

	Summaries []summary    `json:"summaries"`
	Idle      []idleResult `json:"idle"`
	Targets   []target     `json:"targets"`
	Results   []result     `json:"results"`
}

type parameters struct {
	Pods         int `json:"pods"`
	DrainPods    int `json:"drainPods"`
	Runs         int `json:"runs"`
	Parallel     int `json:"parallel"`
	Nodes        int `json:"nodes"`
	KubeAPIQPS   int `json:"kubeAPIQPS"`
	KubeAPIBurst int `json:"kubeAPIBurst"`
	// Args are the flags of components that were given for this run alone.
	Args argList `json:"args,omitempty"`
}

// summary has the medians over all runs, and the sums of answers.
type summary struct {
	Way                way            `json:"way"`
	Budget             budgetKind     `json:"budget"`
	PodsPerSecond      float64        `json:"podsPerSecond"`
	TimesDrain         float64        `json:"timesDrain"`
	RequestsPerPod     float64        `json:"requestsPerPod"`
	AllRequestsPerPod  float64        `json:"allRequestsPerPod"`
	EvictionP50Seconds float64        `json:"evictionP50Seconds"`
	EvictionP99Seconds float64        `json:"evictionP99Seconds"`
	EvictionCodes      map[string]int `json:"evictionCodes"`
}

// target is a promise and how it was kept.
type target struct {
	Name     string  `json:"name"`
	Relation string  `json:"relation"`
	Wanted   float64 `json:"wanted"`
	Measured float64 `json:"measured"`
	Met      bool    `json:"met"`
}

func newReport(opts options, version string, results []result, idle []idleResult) *report {
	r := &report{
		Version:    version,
		Processors: runtime.NumCPU(),
		Parameters: parameters{
			Pods: opts.pods, DrainPods: opts.drainPods, Runs: opts.runs, Parallel: opts.parallel, Nodes: opts.nodes,
			KubeAPIQPS: kubeAPIQPS, KubeAPIBurst: kubeAPIBurst, Args: opts.args,
		},
		Results: results,
		Idle:    idle,
	}
	for _, budget := range []budgetKind{noBudget, oneBudget} {
		drain := summarize(results, byDrain, budget)
		for _, way := range []way{byRequests, byBareClient, byDrain} {
			s := summarize(results, way, budget)
			s.TimesDrain = s.PodsPerSecond / drain.PodsPerSecond
			r.Summaries = append(r.Summaries, s)
		}
	}
	r.Targets = r.checkTargets()
	return r
}

func summarize(results []result, way way, budget budgetKind) summary {
	var rates, requests, all, p50s, p99s []float64
	codes := map[string]int{}
	for _, r := range results {
		if r.Way != way || r.Budget != budget {
			continue
		}
		rates = append(rates, r.PodsPerSecond)
		requests = append(requests, r.RequestsPerPod)
		all = append(all, r.AllRequestsPerPod)
		p50s = append(p50s, r.EvictionP50Seconds)
		p99s = append(p99s, r.EvictionP99Seconds)
		for code, count := range r.EvictionCodes {
			codes[code] += count
		}
	}
	return summary{
		Way: way, Budget: budget, EvictionCodes: codes,
		PodsPerSecond:      median(rates),
		RequestsPerPod:     median(requests),
		AllRequestsPerPod:  median(all),
		EvictionP50Seconds: median(p50s),
		EvictionP99Seconds: median(p99s),
	}
}

func (r *report) summary(way way, budget budgetKind) summary {
	for _, s := range r.Summaries {
		if s.Way == way && s.Budget == budget {
			return s
		}
	}
	return summary{}
}

func atMost(name string, wanted, measured float64) target {
	return target{Name: name, Relation: "at most", Wanted: wanted, Measured: measured, Met: measured <= wanted}
}

func atLeast(name string, wanted, measured float64) target {
	return target{Name: name, Relation: "at least", Wanted: wanted, Measured: measured, Met: measured >= wanted}
}

func (r *report) checkTargets() []target {
	free, shared := r.summary(byRequests, noBudget), r.summary(byRequests, oneBudget)
	targets := []target{
		atMost("API requests per pod, no PDB", 5, free.RequestsPerPod),
		atMost("API requests per pod, one PDB", 5, shared.RequestsPerPod),
		atLeast("times the pods/s of kubectl drain, no PDB", 20, free.TimesDrain),
		atMost("evictions answered with 409, one PDB, all runs", 0, float64(shared.EvictionCodes["409"])),
		atMost("p99 of an eviction call in seconds, one PDB", 1, shared.EvictionP99Seconds),
	}
	for _, idle := range r.Idle {
		if idle.State == stateIntercepting {
			targets = append(targets, atMost(fmt.Sprintf("writes per minute for %d idle requests", idle.Waiting), 0, idle.Writes))
		}
	}
	return targets
}

func (r *report) missed() int {
	missed := 0
	for _, t := range r.Targets {
		if !t.Met {
			missed++
		}
	}
	return missed
}

func (r *report) writeTable(out io.Writer) error {
	p := r.Parameters
	fmt.Fprintf(out, "\n%s, %d processors, medians of %d runs: %d pods on %d nodes, kubectl drain: %d pods on one node;\n",
		r.Version, r.Processors, p.Runs, p.Pods, p.Nodes, p.DrainPods)
	fmt.Fprintf(out, "requester and bare client with %d calls in flight; kube-controller-manager with its default limits\n", p.Parallel)
	fmt.Fprintf(out, "(--kube-api-qps=%d --kube-api-burst=%d; the evictionrequest-controller multiplies them for itself).\n\n", p.KubeAPIQPS, p.KubeAPIBurst)
	if len(p.Args) > 0 {
		fmt.Fprintf(out, "Further flags: %s\n\n", p.Args.String())
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tpods/s\ttimes drain\trequests/pod\tof everybody\teviction p50\tp99\t409\t429\tother errors\t")
	for _, s := range r.Summaries {
		fmt.Fprintf(table, "%s, %s\t%.1f\t%.1f\t%.2f\t%.2f\t%.3f s\t%.3f s\t%d\t%d\t%d\t\n", s.Way, s.Budget,
			s.PodsPerSecond, s.TimesDrain, s.RequestsPerPod, s.AllRequestsPerPod, s.EvictionP50Seconds, s.EvictionP99Seconds,
			s.EvictionCodes["409"], s.EvictionCodes["429"], otherErrors(s.EvictionCodes))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, idle := range r.Idle {
		fmt.Fprintf(out, "%d requests wait, %s: %g writes per minute by the controller.\n", idle.Waiting, idle.State, idle.Writes)
	}
	fmt.Fprintln(out)
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TARGET\tWANTED\tMEASURED\tRESULT")
	for _, t := range r.Targets {
		outcome := "ok"
		if !t.Met {
			outcome = "MISSED"
		}
		fmt.Fprintf(table, "%s\t%s %g\t%.4g\t%s\n", t.Name, t.Relation, t.Wanted, t.Measured, outcome)
	}
	return table.Flush()
}

// otherErrors counts what was answered with an error, but with neither 409 nor 429.
func otherErrors(codes map[string]int) int {
	errors := 0
	for code, count := range codes {
		if code >= "400" && code != "409" && code != "429" {
			errors += count
		}
	}
	return errors
}

func (r *report) writeJSON(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}
