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
	"fmt"
	"reflect"
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/kubernetes/hack/controlplane"
)

// scenario is a cluster, and what is called on it.
type scenario struct {
	name        string
	node        *v1.Node
	pods        []*v1.Pod
	maintenance *coordinationv1alpha1.NodeMaintenance
	group       string
	// commands are called one after the other.
	commands []string
	// want is the outcome of the only command. It is for the fork only, because the base
	// says what is wanted on old servers.
	want *expected
}

// oldScenarios have what is new as far as it can be on an old server: annotations and
// node conditions are free.
func oldScenarios() []scenario {
	cordons := []string{"cordon node", "cordon node", "uncordon node", "uncordon node"}
	mixed := []*v1.Pod{
		managed("a"), registered(managed("b")), controlplane.NewPod("bare"), withEmptyDir(managed("local")), ownedBy("DaemonSet", controlplane.NewPod("daemon")),
	}
	return []scenario{
		{name: "cordons", node: newNode(), commands: cordons},
		{name: "cordons-condition", node: inProgress(newNode()), commands: cordons},
		{name: "cordons-restricted", node: inProgress(newNode()), commands: cordons, group: drainers},
		{name: "cordons-field", node: maintained(newNode()), commands: cordons},
		{name: "cordons-selector", node: newNode(), commands: []string{"cordon -l pool=a", "uncordon -l pool=a", "cordon -l pool=b"}},
		{name: "cordons-dry", node: newNode(), commands: []string{"cordon node --dry-run=client", "cordon node --dry-run=server"}},
		{name: "missing", node: newNode(), commands: []string{"cordon other", "uncordon other", "drain other", "drain", "drain node -l pool=a"}},
		{name: "drain", node: newNode(), pods: []*v1.Pod{managed("a"), registered(managed("b")), managed("c", controlplane.Interceptor)}, commands: []string{"drain node", "drain node"}},
		{name: "drain-restricted", node: inProgress(newNode()), pods: []*v1.Pod{registered(managed("b"))}, commands: []string{"drain node"}, group: drainers},
		{name: "drain-selector", node: newNode(), pods: []*v1.Pod{managed("a")}, commands: []string{"drain -l pool=a"}},
		{name: "drain-pods", node: newNode(), pods: mixed, commands: []string{"drain node --pod-selector=app=b"}},
		{name: "drain-dry", node: newNode(), pods: []*v1.Pod{managed("a"), registered(managed("b"))}, commands: []string{"drain node --dry-run=client", "drain node --dry-run=server"}},
		{name: "drain-delete", node: newNode(), pods: []*v1.Pod{registered(managed("b"))}, commands: []string{"drain node --disable-eviction"}},
		// One reason at a time: drain lists several in the order of a map.
		{name: "drain-refused", node: newNode(), pods: mixed, commands: []string{
			"drain node --pod-selector=app=bare", "drain node --pod-selector=app=local", "drain node --pod-selector=app=daemon",
		}},
		{name: "drain-forced", node: newNode(), pods: mixed, commands: []string{
			"drain node --pod-selector=app=bare --force", "drain node --pod-selector=app=local --delete-emptydir-data", "drain node --pod-selector=app=daemon --ignore-daemonsets",
		}},
	}
}

// ran is what one command has done, as its user, the server and the cluster see it.
type ran struct {
	Outcome outcome
	Left    cluster
}

// cluster is what a command leaves behind.
type cluster struct {
	Pods          []string
	Unschedulable bool
}

// compare runs all scenarios with both kubectls on an old server.
func (t *drainTest) compare(ctx context.Context, server controlplane.Release, pristine, ours string) error {
	if err := t.plane.StartAPIServer(ctx, server); err != nil {
		return err
	}
	if err := t.setUp(ctx); err != nil {
		return err
	}
	for _, s := range oldScenarios() {
		want, err := t.runAll(ctx, &s, pristine, "base")
		if err != nil {
			return err
		}
		got, err := t.runAll(ctx, &s, ours, "fork")
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(want, got) {
			return fmt.Errorf("scenario %s: ours is not as the base's (- base, + ours):\n%s", s.name, diff.Diff(want, got))
		}
	}
	// Only then is the log complete.
	if err := t.plane.StopAPIServer(); err != nil {
		return err
	}
	return t.compareRequests()
}

// runAll runs the commands of a scenario from its beginning.
func (t *drainTest) runAll(ctx context.Context, s *scenario, kubectl, who string) ([]ran, error) {
	if err := t.reset(ctx, s); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.name, err)
	}
	var all []ran
	for i, command := range s.commands {
		result, err := t.runner.run(ctx, kubectl, userOf(s, i, who), s.groupOf(), strings.Fields(command)...)
		if err != nil {
			return nil, err
		}
		left, err := t.look(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, ran{Outcome: result, Left: left})
	}
	return all, nil
}

func (s *scenario) groupOf() string {
	if s.group == "" {
		return admins
	}
	return s.group
}

func userOf(s *scenario, command int, who string) string {
	return fmt.Sprintf("%s-%d-%s", s.name, command, who)
}

// look reads what is left in the cluster.
func (t *drainTest) look(ctx context.Context) (cluster, error) {
	node, err := t.Client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return cluster{}, fmt.Errorf("reading the node: %w", err)
	}
	pods, err := t.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return cluster{}, fmt.Errorf("listing the pods: %w", err)
	}
	left := cluster{Unschedulable: node.Spec.Unschedulable}
	for _, pod := range pods.Items {
		left.Pods = append(left.Pods, pod.Name)
	}
	slices.Sort(left.Pods)
	return left, nil
}

// mayProbe tells whether a command may ask what is served: the others see that the node
// is not under maintenance.
func (s *scenario) mayProbe(command string) bool {
	status := s.node.Status
	return strings.HasPrefix(command, "drain") || len(status.Conditions) > 0 || status.MaintenanceStatus != nil
}

// compareRequests compares what the last API server has recorded.
func (t *drainTest) compareRequests() error {
	logs := t.plane.AuditLogs()
	requests, err := readRequests(logs[len(logs)-1])
	if err != nil {
		return err
	}
	probed := false
	for _, s := range oldScenarios() {
		for i, command := range s.commands {
			want, got := requests[userOf(&s, i, "base")], requests[userOf(&s, i, "fork")]
			if s.mayProbe(command) {
				var found bool
				got, found = withoutProbe(got)
				probed = probed || found
			}
			if !reflect.DeepEqual(want, got) {
				return fmt.Errorf("scenario %s, kubectl %s: unexpected requests (- base, + ours):\n%s", s.name, command, diff.Diff(want, got))
			}
		}
	}
	// Otherwise the names of the users, or the log, are not what they are thought to be.
	if !probed {
		return fmt.Errorf("no drain has asked what is served: audit log %s has requests of %d users", logs[len(logs)-1], len(requests))
	}
	return nil
}
