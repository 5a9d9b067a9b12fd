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
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

const (
	// An eviction may cost five requests, and two more for each interceptor of the pod: those
	// of Deployments have two with the gate.
	evictionBudget = 5
	surgeBudget    = evictionBudget + 2*2
)

// drain returns one of the drains, or nil if it was not made.
func (r *surgeResult) drain(kind surgeKind) *surgeDrainResult {
	for i := range r.Drains {
		if r.Drains[i].Kind == kind {
			return &r.Drains[i]
		}
	}
	return nil
}

// targets are those of the surge. Whatever else is measured has none.
func (r *surgeResult) targets() []target {
	if r == nil {
		return nil
	}
	what := fmt.Sprintf("per minute, %d Deployments at rest", r.Deployments)
	targets := []target{
		atMost("writes by controllers "+what, 0, r.IdleOn.Writes),
		atMost("CPU seconds that the gate "+surgeGate+" adds "+what, idleCPUSeconds, r.IdleOn.CPUSeconds-r.IdleOff.CPUSeconds),
	}
	for _, d := range r.Drains {
		switch d.Kind {
		case surgeWithBudgets, surgeNoBudgets:
			targets = append(targets,
				atMost("most pods of a Deployment with one, "+string(d.Kind), 2, float64(d.Most)),
				atLeast("fewest ready pods of a Deployment with one, "+string(d.Kind), 1, float64(d.Fewest)))
		case surgeLarge:
			// A quarter is what the strategy allows: rounded up for more pods.
			targets = append(targets,
				atMost("most pods, "+string(d.Kind), float64(r.LargeReplicas+(r.LargeReplicas+3)/4), float64(d.Most)),
				atLeast("fewest ready pods, "+string(d.Kind), float64(r.LargeReplicas), float64(d.Fewest)))
		case surgeOff:
			targets = append(targets, atMost("requests per eviction, "+string(d.Kind), evictionBudget, d.EvictionsPerPod))
			continue
		case surgeKubectl:
			continue
		}
		targets = append(targets, atMost("requests per eviction, "+string(d.Kind), surgeBudget, d.EvictionsPerPod))
	}
	return targets
}

func (r *surgeResult) write(out io.Writer) error {
	if r == nil {
		return nil
	}
	fmt.Fprintf(out, "Pods of %d Deployments with one replica on %d nodes, and %d replicas of one on %d nodes, of which %d are drained.\nA pod is ready at once, and takes %s to end. Once each; the targets are at the end, what is not there has none.\n\n",
		r.Deployments, surgeNodeCount, r.LargeReplicas, surgeNodes, surgeNodeCount, surgeEndDelay)
	fmt.Fprintf(out, "At rest, per minute: gate on %g writes by all controllers, %.2f s CPU of kube-controller-manager; %s off %g writes, %.2f s.\n\n",
		r.IdleOn.Writes, r.IdleOn.CPUSeconds, surgeGate, r.IdleOff.Writes, r.IdleOff.CPUSeconds)
	if err := r.writeDrains(out); err != nil {
		return err
	}
	return r.writeComponents(out)
}

// timesOff compares the time of a drain with that of the same one with the gate off.
func (r *surgeResult) timesOff(d *surgeDrainResult) string {
	off := r.drain(surgeOff)
	if off == nil || d.Kind == surgeLarge {
		return "-"
	}
	return fmt.Sprintf("%.2f", d.Seconds/off.Seconds)
}

// row is one figure of all drains.
type row struct {
	name, format string
	value        func(d *surgeDrainResult) any
}

func (r *surgeResult) rows() []row {
	return []row{
		{"pods that leave", "%d", func(d *surgeDrainResult) any { return d.Pods }},
		{"seconds until drained", "%.1f", func(d *surgeDrainResult) any { return d.Seconds }},
		{"times as long as (3)", "%s", func(d *surgeDrainResult) any { return r.timesOff(d) }},
		{"seconds until all are settled", "%.1f", func(d *surgeDrainResult) any { return d.SettledSeconds }},
		{"request to Evicted, p50, s", "%s", func(d *surgeDrainResult) any { return orNone(d.EvictedP50Seconds) }},
		{"p99, s", "%s", func(d *surgeDrainResult) any { return orNone(d.EvictedP99Seconds) }},
		{"most pods of a Deployment", "%d", func(d *surgeDrainResult) any { return d.Most }},
		{"fewest ready pods", "%d", func(d *surgeDrainResult) any { return d.Fewest }},
		{"seconds with fewer than its replicas, mean", "%.2f", func(d *surgeDrainResult) any { return d.AwaySeconds }},
		{"CPU of kube-controller-manager, s", "%.2f", func(d *surgeDrainResult) any { return d.CPUSeconds }},
		{"pods created / pod", "%.2f", func(d *surgeDrainResult) any { return d.CreatedPerPod }},
		{"requests for its eviction / pod", "%.2f", func(d *surgeDrainResult) any { return d.EvictionsPerPod }},
		{"writes to ReplicaSets / pod", "%.2f", func(d *surgeDrainResult) any { return d.ReplicaSetsPerPod }},
		{"writes to Deployments / pod", "%.2f", func(d *surgeDrainResult) any { return d.DeploymentsPerPod }},
		{"requests of everybody / pod", "%.2f", func(d *surgeDrainResult) any { return d.AllRequestsPerPod }},
	}
}

func (r *surgeResult) writeDrains(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\t")
	for i := range r.Drains {
		fmt.Fprintf(table, "(%d)\t", i+1)
	}
	fmt.Fprintln(table)
	for _, row := range r.rows() {
		fmt.Fprintf(table, "%s\t", row.name)
		for i := range r.Drains {
			fmt.Fprintf(table, row.format+"\t", row.value(&r.Drains[i]))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i, d := range r.Drains {
		fmt.Fprintf(out, "(%d) %s\n", i+1, d.Kind)
	}
	fmt.Fprintln(out)
	return nil
}

// orNone is for what is not there without requests.
func orNone(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", seconds)
}

// writeComponents tells who sends how many requests for each pod.
func (r *surgeResult) writeComponents(out io.Writer) error {
	fmt.Fprint(out, "Requests per pod by who sends them:\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, client := range r.components() {
		fmt.Fprint(table, "\t")
		for i := range r.Drains {
			fmt.Fprintf(table, "%.2f\t", r.Drains[i].perPod(client))
		}
		// What comes after the last tab is not aligned.
		fmt.Fprintf(table, "  %s\n", client)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return nil
}

// rareRequests is what is left out of the table: the file has all.
const rareRequests = 0.05

// components are whoever sends a request that is not rare in all drains, and each of these
// requests below its sender.
func (r *surgeResult) components() []string {
	senders := map[string]bool{}
	for i := range r.Drains {
		for client := range r.Drains[i].Clients {
			sender, _, _ := strings.Cut(client, ": ")
			senders[client], senders[sender] = true, true
		}
	}
	maps.DeleteFunc(senders, func(client string, _ bool) bool {
		return !slices.ContainsFunc(r.Drains, func(d surgeDrainResult) bool { return d.perPod(client) >= rareRequests })
	})
	return slices.SortedFunc(maps.Keys(senders), cmp.Compare)
}

// perPod counts the requests of a sender, or those of one kind.
func (d *surgeDrainResult) perPod(client string) float64 {
	sum := 0
	for name, count := range d.Clients {
		if sender, _, _ := strings.Cut(name, ": "); name == client || sender == client {
			sum += count
		}
	}
	return float64(sum) / float64(d.Pods)
}
