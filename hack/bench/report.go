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
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
)

// report is everything that was measured, and what it means.
type report struct {
	// Version is that of the API server, Parameters what was asked for.
	Version    string     `json:"version"`
	Processors int        `json:"processors"`
	Parameters parameters `json:"parameters"`

	Summaries []summary     `json:"summaries,omitempty"`
	Idle      []idleResult  `json:"idle,omitempty"`
	Drain     *drainSummary `json:"drain,omitempty"`
	Scale     *scaleResult  `json:"scale,omitempty"`
	Surge     *surgeResult  `json:"surge,omitempty"`
	Targets   []target      `json:"targets"`
	Results   []result      `json:"results,omitempty"`
}

type parameters struct {
	Parts        partSet `json:"parts"`
	Pods         int     `json:"pods"`
	DrainPods    int     `json:"drainPods"`
	Runs         int     `json:"runs"`
	Parallel     int     `json:"parallel"`
	Nodes        int     `json:"nodes"`
	ScaleNodes   int     `json:"scaleNodes"`
	KubeAPIQPS   int     `json:"kubeAPIQPS"`
	KubeAPIBurst int     `json:"kubeAPIBurst"`
	// Args are the flags of components that were given for this run alone.
	Args argList `json:"args,omitempty"`
}

// summary has the medians over all runs, and the sums of answers.
type summary struct {
	Way                way            `json:"way"`
	Budget             budgetKind     `json:"budget"`
	Seconds            float64        `json:"seconds"`
	PodsPerSecond      float64        `json:"podsPerSecond"`
	TimesDrain         float64        `json:"timesDrain"`
	RequestsPerPod     float64        `json:"requestsPerPod"`
	AllRequestsPerPod  float64        `json:"allRequestsPerPod"`
	EvictionP50Seconds float64        `json:"evictionP50Seconds"`
	EvictionP99Seconds float64        `json:"evictionP99Seconds"`
	EvictionCodes      map[string]int `json:"evictionCodes"`
}

// drainSummary compares the two ways to drain all nodes.
type drainSummary struct {
	Maintenance summary `json:"maintenance"`
	// Kubectl was measured once.
	Kubectl summary `json:"kubectl"`
	// Share is what of the wall time of kubectl drain the maintenance takes.
	Share float64 `json:"share"`
	// RequestsPerPod are those of everybody for a maintenance, by who sends them, the
	// medians of all runs.
	RequestsPerPod map[string]float64 `json:"requestsPerPod"`
}

// idleCPUSeconds is what maintenances may cost per minute while nothing happens, all
// kubelets reporting: one percent of a processor.
const idleCPUSeconds = 0.6

// target is a promise and how it was kept.
type target struct {
	Name     string  `json:"name"`
	Relation string  `json:"relation"`
	Wanted   float64 `json:"wanted"`
	Measured float64 `json:"measured"`
	Met      bool    `json:"met"`
}

func newReport(opts options, m measurements) *report {
	r := &report{
		Version:    m.version,
		Processors: runtime.NumCPU(),
		Parameters: parameters{
			Parts: opts.parts,
			Pods:  opts.pods, DrainPods: opts.drainPods, Runs: opts.runs, Parallel: opts.parallel, Nodes: opts.nodes, ScaleNodes: opts.scaleNodes,
			KubeAPIQPS: kubeAPIQPS, KubeAPIBurst: kubeAPIBurst, Args: opts.args,
		},
		Results: m.results,
		Idle:    m.idle,
		Scale:   m.scale,
		Surge:   m.surge,
	}
	if opts.parts.has(partEvictions) {
		for _, budget := range []budgetKind{noBudget, oneBudget} {
			drain := summarize(m.results, byDrain, budget)
			for _, way := range []way{byRequests, byBareClient, byDrain} {
				s := summarize(m.results, way, budget)
				s.TimesDrain = s.PodsPerSecond / drain.PodsPerSecond
				r.Summaries = append(r.Summaries, s)
			}
		}
	}
	if opts.parts.has(partDrain) {
		r.Drain = summarizeDrains(m.results)
	}
	r.Targets = r.checkTargets()
	return r
}

func summarizeDrains(results []result) *drainSummary {
	s := &drainSummary{
		Maintenance:    summarize(results, byMaintenance, noBudget),
		Kubectl:        summarize(results, byLabelDrain, noBudget),
		RequestsPerPod: clientsPerPod(results, byMaintenance),
	}
	s.Share = s.Maintenance.Seconds / s.Kubectl.Seconds
	s.Maintenance.TimesDrain = s.Kubectl.Seconds / s.Maintenance.Seconds
	s.Kubectl.TimesDrain = 1
	return s
}

// clientsPerPod returns the medians of the requests per pod, by who sends them.
func clientsPerPod(results []result, way way) map[string]float64 {
	var runs []result
	clients := map[string]float64{}
	for _, r := range results {
		if r.Way != way {
			continue
		}
		runs = append(runs, r)
		for client := range r.Clients {
			clients[client] = 0
		}
	}
	for client := range clients {
		var counts []float64
		for _, r := range runs {
			counts = append(counts, float64(r.Clients[client])/float64(r.Pods))
		}
		clients[client] = median(counts)
	}
	return clients
}

func summarize(results []result, way way, budget budgetKind) summary {
	var seconds, rates, requests, all, p50s, p99s []float64
	codes := map[string]int{}
	for _, r := range results {
		if r.Way != way || r.Budget != budget {
			continue
		}
		seconds = append(seconds, r.Seconds)
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
		Seconds:            median(seconds),
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
	var targets []target
	if len(r.Summaries) > 0 {
		free, shared := r.summary(byRequests, noBudget), r.summary(byRequests, oneBudget)
		targets = append(targets,
			atMost("API requests per pod, no PDB", 5, free.RequestsPerPod),
			atMost("API requests per pod, one PDB", 5, shared.RequestsPerPod),
			atLeast("times the pods/s of kubectl drain, no PDB", 20, free.TimesDrain),
			atMost("evictions answered with 409, one PDB, all runs", 0, float64(shared.EvictionCodes["409"])),
			atMost("p99 of an eviction call in seconds, one PDB", 1, shared.EvictionP99Seconds),
		)
	}
	for _, idle := range r.Idle {
		if idle.State == stateIntercepting {
			targets = append(targets, atMost(fmt.Sprintf("writes per minute for %d idle requests", idle.Waiting), 0, idle.Writes))
		}
	}
	if r.Drain != nil {
		targets = append(targets, atMost("one NodeMaintenance, share of the wall time of kubectl drain -l", 0.05, r.Drain.Share))
	}
	if s := r.Scale; s != nil {
		what := fmt.Sprintf("per minute, %d nodes, %d NodeMaintenances", s.Nodes, s.Maintenances)
		targets = append(targets,
			atMost("writes by the nodemaintenance-controller "+what, 0, s.With.Writes),
			atMost("CPU seconds that it adds "+what, idleCPUSeconds, s.With.CPUSeconds-s.Without.CPUSeconds),
		)
	}
	return append(targets, r.Surge.targets()...)
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
	fmt.Fprintf(out, "\n%s, %d processors; kube-controller-manager with its default limits (--kube-api-qps=%d --kube-api-burst=%d;\n",
		r.Version, r.Processors, p.KubeAPIQPS, p.KubeAPIBurst)
	fmt.Fprint(out, "the controllers of evictions and maintenances multiply them for themselves).\n\n")
	if len(p.Args) > 0 {
		fmt.Fprintf(out, "Further flags: %s\n\n", p.Args.String())
	}
	for _, write := range []func(io.Writer) error{r.writeEvictions, r.writeIdle, r.writeDrain, r.writeScale, r.Surge.write, r.writeTargets} {
		if err := write(out); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) writeEvictions(out io.Writer) error {
	if len(r.Summaries) == 0 {
		return nil
	}
	p := r.Parameters
	fmt.Fprintf(out, "Evictions, medians of %d runs: %d pods on %d nodes, requester and bare client with %d calls in flight;\nkubectl drain: %d pods on one node.\n\n",
		p.Runs, p.Pods, p.Nodes, p.Parallel, p.DrainPods)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tpods/s\ttimes drain\trequests/pod\tof everybody\teviction p50\tp99\t409\t429\tother errors\t")
	for _, s := range r.Summaries {
		fmt.Fprintf(table, "%s, %s\t%.1f\t%.1f\t%.2f\t%.2f\t%.3f s\t%.3f s\t%d\t%d\t%d\t\n", s.Way, s.Budget,
			s.PodsPerSecond, s.TimesDrain, s.RequestsPerPod, s.AllRequestsPerPod, s.EvictionP50Seconds, s.EvictionP99Seconds,
			s.EvictionCodes["409"], s.EvictionCodes["429"], otherErrors(s.EvictionCodes))
	}
	fmt.Fprintln(table)
	return table.Flush()
}

func (r *report) writeIdle(out io.Writer) error {
	for _, idle := range r.Idle {
		fmt.Fprintf(out, "%d requests wait, %s: %g writes per minute by the controller.\n", idle.Waiting, idle.State, idle.Writes)
	}
	if len(r.Idle) > 0 {
		fmt.Fprintln(out)
	}
	return nil
}

func (r *report) writeDrain(out io.Writer) error {
	if r.Drain == nil {
		return nil
	}
	p := r.Parameters
	fmt.Fprintf(out, "Drain of %d nodes with %d pods, no PDB; one NodeMaintenance: median of %d runs, kubectl drain -l of the base: once.\n\n", p.Nodes, p.Pods, p.Runs)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tseconds\ttimes as fast\trequests/pod\tof everybody\t")
	for _, s := range []summary{r.Drain.Maintenance, r.Drain.Kubectl} {
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.2f\t%.2f\t\n", s.Way, s.Seconds, s.TimesDrain, s.RequestsPerPod, s.AllRequestsPerPod)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, "\nRequests per pod of one NodeMaintenance, by who sends them:\n")
	clients := slices.SortedFunc(maps.Keys(r.Drain.RequestsPerPod), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Drain.RequestsPerPod[b], r.Drain.RequestsPerPod[a]), cmp.Compare(a, b))
	})
	for _, client := range clients {
		fmt.Fprintf(out, "  %6.3f  %s\n", r.Drain.RequestsPerPod[client], client)
	}
	fmt.Fprintln(out)
	return nil
}

func (r *report) writeScale(out io.Writer) error {
	s := r.Scale
	if s == nil {
		return nil
	}
	fmt.Fprintf(out, "%d nodes that exist as objects alone, each of which reports once per measurement.\n\n", s.Nodes)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "per minute\tCPU of kube-controller-manager\twrites by the nodemaintenance-controller\t")
	fmt.Fprintf(table, "controller off\t%.2f s\t%g\t\n", s.Without.CPUSeconds, s.Without.Writes)
	fmt.Fprintf(table, "%d NodeMaintenances\t%.2f s\t%g\t\n", s.Maintenances, s.With.CPUSeconds, s.With.Writes)
	if err := table.Flush(); err != nil {
		return err
	}
	d := s.Drain
	fmt.Fprintf(out, "\nOne NodeMaintenance over all nodes, %d pods: drained after %.1f s, the last status written after %.1f s, %.2f requests per node;\nall nodes given back %.1f s after its deletion.\n\n",
		d.Pods, d.DrainedSeconds, d.SettledSeconds, d.RequestsPerNode, d.EndedSeconds)
	return nil
}

func (r *report) writeTargets(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
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
