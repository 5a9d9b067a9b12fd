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

package system

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/controller/deployment"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/test/utils/availability"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

// surging is the condition of a Deployment while it replaces pods that are to be evicted.
const surging = deployment.DeploymentEvictionInProgress

// maxPods is the highest number of pods that the default strategy allows: the surge is 25 percent
// of 1, rounded up.
const maxPods = 2

// check is a condition that a drain must meet. problems returns the violations.
type check struct {
	what     string
	problems func(r *drainResult) []string
}

func (c check) run(tCtx ktesting.TContext, r *drainResult) {
	tCtx.Helper()
	tCtx.Run(c.what, func(tCtx ktesting.TContext) {
		for _, problem := range c.problems(r) {
			tCtx.Error(problem)
		}
	})
}

// ourChecks returns the checks of the drain by a NodeMaintenance.
func ourChecks() []check {
	return []check{
		{"the node was drained", drained},
		{"every Service had a ready endpoint at all times", gaps},
		{fmt.Sprintf("no Deployment had more than %d pods", maxPods), tooMany},
		{fmt.Sprintf("the StatefulSet always had %d ready pods or more", statefulSetBudget), belowBudget},
		{"all pods have left the node", stillThere},
		{"the pod of the DaemonSet has left last", daemonSetNotLast},
		{"every Deployment surged, and reported it", notSurged},
		{"no condition Available or Progressing has changed", flipped},
		{"no Deployment or ReplicaSet is left scaled up", leftScaledUp},
		{"no Deployment was rolled out", rolledOut},
	}
}

func drained(r *drainResult) []string {
	if r.complaint != "" {
		return []string{r.complaint}
	}
	return nil
}

// without returns the intervals in which the Service of an app had no ready endpoint.
func (r *drainResult) without(app string) []availability.Interval {
	return r.record.ReadyEndpoints[app].Below(1, r.from, r.to)
}

// maxPods returns the highest number of pods that an app had, without those that terminate.
func (r *drainResult) maxPods(app string) int { return r.record.Apps[app].Active.Max(r.from, r.to) }

func gaps(r *drainResult) []string {
	var problems []string
	for _, d := range workloads() {
		for _, gap := range r.without(d.name) {
			problems = append(problems, fmt.Sprintf("%s: %.3f s, from %.3f s after the start of the drain", d.name, gap.Length().Seconds(), gap.From.Sub(r.from).Seconds()))
		}
	}
	return problems
}

// noGaps is the opposite check for the base.
func noGaps(r *drainResult) []string {
	var problems []string
	for _, d := range workloads() {
		gaps := r.without(d.name)
		if d.held && len(gaps) > 0 {
			problems = append(problems, fmt.Sprintf("%s: %d gaps, though its budget blocks its eviction", d.name, len(gaps)))
		}
		if !d.held && availability.Total(gaps) == 0 {
			problems = append(problems, fmt.Sprintf("%s: no gap", d.name))
		}
	}
	return problems
}

func tooMany(r *drainResult) []string {
	var problems []string
	for _, d := range workloads() {
		if most := r.maxPods(d.name); most > maxPods {
			problems = append(problems, fmt.Sprintf("%s: %d", d.name, most))
		}
	}
	return problems
}

func belowBudget(r *drainResult) []string {
	var problems []string
	for _, interval := range r.record.Apps[statefulSet].Ready.Below(statefulSetBudget, r.from, r.to) {
		problems = append(problems, fmt.Sprintf("not for %.3f s, from %.3f s after the start of the drain", interval.Length().Seconds(), interval.From.Sub(r.from).Seconds()))
	}
	return problems
}

func stillThere(r *drainResult) []string {
	var problems []string
	pods := r.record.OnNode(drainedNode)
	for _, pod := range pods {
		if pod.Gone == nil {
			problems = append(problems, pod.Name)
		}
	}
	if want := len(workloads()) + statefulSetReplicas + 1; len(pods) != want {
		problems = append(problems, fmt.Sprintf("%d pods were ever on the node, want %d", len(pods), want))
	}
	return problems
}

func daemonSetNotLast(r *drainResult) []string {
	var problems []string
	pods := r.record.OnNode(drainedNode)
	for _, own := range pods {
		if own.App != daemonSet {
			continue
		}
		if own.Terminating == nil {
			problems = append(problems, own.Name+" never terminated")
			continue
		}
		for _, other := range pods {
			if other.App != daemonSet && (other.Gone == nil || other.Gone.At.After(own.Terminating.At)) {
				problems = append(problems, fmt.Sprintf("%s terminated before %s was gone", own.Name, other.Name))
			}
		}
	}
	return problems
}

func notSurged(r *drainResult) []string {
	var problems []string
	for _, d := range workloads() {
		history := r.record.Conditions[d.name][surging]
		seen := false
		for _, condition := range history {
			seen = seen || condition.Status == v1.ConditionTrue && strings.HasPrefix(condition.Message, "Surging 1/1")
		}
		switch {
		case !seen:
			problems = append(problems, fmt.Sprintf("%s never had condition %s with Surging 1/1", d.name, surging))
		case history[len(history)-1].Status != "":
			problems = append(problems, fmt.Sprintf("%s still has condition %s: %s", d.name, surging, history[len(history)-1].Message))
		}
	}
	return problems
}

func flipped(r *drainResult) []string {
	var problems []string
	for _, d := range workloads() {
		for _, conditionType := range []appsv1.DeploymentConditionType{appsv1.DeploymentAvailable, appsv1.DeploymentProgressing} {
			history := r.record.Conditions[d.name][conditionType]
			if len(history) == 0 {
				problems = append(problems, fmt.Sprintf("%s never had condition %s", d.name, conditionType))
				continue
			}
			for _, condition := range history {
				if first := history[0]; condition.Status != first.Status || condition.Reason != first.Reason {
					problems = append(problems, fmt.Sprintf("%s: %s was %s (%s), then %s (%s: %s)", d.name, conditionType, first.Status, first.Reason, condition.Status, condition.Reason, condition.Message))
				}
			}
		}
	}
	return problems
}

// leftScaledUp returns objects that do not have exactly one replica, and annotations that are left.
func leftScaledUp(r *drainResult) []string {
	var problems []string
	for i := range r.replicaSets {
		rs := &r.replicaSets[i]
		if *rs.Spec.Replicas != 1 || rs.Status.Replicas != 1 {
			problems = append(problems, fmt.Sprintf("ReplicaSet %s has %d pods, wants %d", rs.Name, rs.Status.Replicas, *rs.Spec.Replicas))
		}
		if value, found := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]; found {
			problems = append(problems, fmt.Sprintf("ReplicaSet %s has the annotation %s: %s", rs.Name, deploymentutil.EvictionSurgeAnnotation, value))
		}
	}
	for i := range r.deployments {
		if d := &r.deployments[i]; *d.Spec.Replicas != 1 {
			problems = append(problems, fmt.Sprintf("Deployment %s wants %d pods", d.Name, *d.Spec.Replicas))
		}
	}
	return problems
}

// rolledOut checks that each Deployment has one ReplicaSet, and was never changed.
func rolledOut(r *drainResult) []string {
	var problems []string
	if want := len(workloads()); len(r.deployments) != want || len(r.replicaSets) != want {
		problems = append(problems, fmt.Sprintf("%d Deployments have %d ReplicaSets, want %d of each", len(r.deployments), len(r.replicaSets), want))
	}
	for i := range r.deployments {
		if d := &r.deployments[i]; d.Generation != 1 {
			problems = append(problems, fmt.Sprintf("Deployment %s has generation %d", d.Name, d.Generation))
		}
	}
	return problems
}
