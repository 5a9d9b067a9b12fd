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
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/kubernetes/hack/controlplane"
)

// expected is what a command does on the fork.
type expected struct {
	Code int
	Out  []string
	// Err are parts of what must be on stderr.
	Err []string
	// Writes are the requests that change something.
	Writes []string
	Left   cluster
}

const (
	evict = "create /api/v1/namespaces/" + namespace + "/pods/%s/eviction"
	patch = "patch /api/v1/nodes/" + nodeName
	start = "Warning: drain is deprecated: this server drains nodes itself, and lets pods prepare for it. Use: kubectl maintenance start --wait node"
)

func newScenarios() []scenario {
	pods := []*v1.Pod{managed("plain"), managed("db", controlplane.Interceptor), registered(managed("registered"))}
	underMaintenance := func() *v1.Node { return cordoned(maintained(newNode())) }
	return []scenario{
		{
			name: "interceptors", node: newNode(), pods: pods, commands: []string{"drain node"},
			want: &expected{
				Code: 1,
				Out:  []string{"evicting pod drain/plain", "node/node cordoned", "pod/plain evicted"},
				Err: []string{
					start, "Warning: leaving Pods with eviction interceptors (use --evict-intercepted-pods to evict them nevertheless): drain/db, drain/registered",
					`error: Pods with eviction interceptors are left: drain/db (interceptor.example.com), drain/registered (interceptor.example.com): use "kubectl maintenance start --wait node", or`,
				},
				Writes: []string{fmt.Sprintf(evict, "plain"), patch},
				Left:   cluster{Pods: []string{"db", "registered"}, Unschedulable: true},
			},
		},
		{
			name: "interceptors-taken", node: newNode(), pods: pods, commands: []string{"drain node --evict-intercepted-pods"},
			want: &expected{
				Out: []string{
					"evicting pod drain/db", "evicting pod drain/plain", "evicting pod drain/registered",
					"node/node cordoned", "node/node drained", "pod/db evicted", "pod/plain evicted", "pod/registered evicted",
				},
				Err:    []string{start},
				Writes: []string{fmt.Sprintf(evict, "db"), fmt.Sprintf(evict, "plain"), fmt.Sprintf(evict, "registered"), patch},
				Left:   cluster{Unschedulable: true},
			},
		},
		{
			name: "uncordon", node: underMaintenance(), maintenance: newMaintenance("m1"), commands: []string{"uncordon node"},
			want: &expected{
				Out:  []string{"node/node skipped"},
				Err:  []string{`Warning: not uncordoning node "node": NodeMaintenance "m1" keeps it cordoned until it is completed. Use: kubectl maintenance complete m1`},
				Left: cluster{Unschedulable: true},
			},
		},
		{
			name: "uncordon-restricted", node: underMaintenance(), maintenance: newMaintenance("m1"), commands: []string{"uncordon node"}, group: drainers,
			want: &expected{
				Out:  []string{"node/node skipped"},
				Err:  []string{`a NodeMaintenance keeps it cordoned until it is completed. Use: kubectl maintenance complete NAME (the name is not known: nodemaintenances.coordination.k8s.io is forbidden`},
				Left: cluster{Unschedulable: true},
			},
		},
		{
			name: "cordon", node: underMaintenance(), maintenance: newMaintenance("m1"), commands: []string{"cordon node"},
			want: &expected{
				Out:  []string{"node/node already cordoned"},
				Err:  []string{`Warning: not cordoning node "node": NodeMaintenance "m1" keeps it cordoned`},
				Left: cluster{Unschedulable: true},
			},
		},
		{
			name: "drain-maintained", node: underMaintenance(), pods: []*v1.Pod{managed("plain")}, maintenance: newMaintenance("m1"), commands: []string{"drain node"},
			want: &expected{
				Out:    []string{"evicting pod drain/plain", "node/node already cordoned", "node/node drained", "pod/plain evicted"},
				Err:    []string{`Warning: node "node" is under maintenance: NodeMaintenance "m1" drains it. To follow that, use: kubectl maintenance watch m1`},
				Writes: []string{fmt.Sprintf(evict, "plain")},
				Left:   cluster{Unschedulable: true},
			},
		},
	}
}

// expect runs the scenarios that only the fork has.
func (t *drainTest) expect(ctx context.Context, server controlplane.Release, ours string) error {
	if err := t.plane.StartAPIServer(ctx, server); err != nil {
		return err
	}
	scenarios, got := newScenarios(), map[string]*expected{}
	for _, s := range scenarios {
		all, err := t.runAll(ctx, &s, ours, "fork")
		if err != nil {
			return err
		}
		only := all[0]
		got[s.name] = &expected{Code: only.Outcome.Code, Out: only.Outcome.Out, Err: only.Outcome.Err, Left: only.Left}
	}
	if err := t.plane.StopAPIServer(); err != nil {
		return err
	}
	logs := t.plane.AuditLogs()
	requests, err := readRequests(logs[len(logs)-1])
	if err != nil {
		return err
	}
	for _, s := range scenarios {
		result := got[s.name]
		result.Writes = writes(requests[userOf(&s, 0, "fork")])
		text := strings.Join(result.Err, "\n")
		result.Err = nil
		for _, part := range s.want.Err {
			if strings.Contains(text, part) {
				result.Err = append(result.Err, part)
			}
		}
		if !reflect.DeepEqual(s.want, result) {
			return fmt.Errorf("scenario %s (- want, + got):\n%s\nstderr:\n%s", s.name, diff.Diff(s.want, result), text)
		}
	}
	return nil
}
