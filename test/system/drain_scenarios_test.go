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
	"syscall"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// scenario is the state of a cluster, and the commands that are run on it.
type scenario struct {
	name        string
	node        *v1.Node
	pods        []*v1.Pod
	maintenance *coordinationv1alpha1.NodeMaintenance
	group       string
	// commands are run one after the other.
	commands []string
	// signal is sent to the command when it waits for interceptors, unless it is 0.
	signal syscall.Signal
	// want is the outcome of the only command. It is set for the fork only: on old servers, the
	// kubectl of the base sets the wanted outcome.
	want *expected
}

// expected is the outcome of a command on the fork.
type expected struct {
	Code int
	Out  []string
	// Err are texts that stderr must contain.
	Err []string
	// Writes are the requests that change something.
	Writes []string
	Left   cluster
}

func (s *scenario) user(command int, who string) string {
	return fmt.Sprintf("%s-%d-%s", s.name, command, who)
}

// mayProbe reports whether a command may send a discovery request: the others see that the node is
// not under maintenance.
func (s *scenario) mayProbe(command string) bool {
	status := s.node.Status
	return strings.HasPrefix(command, "drain") || len(status.Conditions) > 0 || status.MaintenanceStatus != nil
}

// oldScenarios use new annotations and node conditions, which an old server accepts, too.
func oldScenarios() []scenario {
	cordons := []string{"cordon node", "cordon node", "uncordon node", "uncordon node"}
	mixed := []*v1.Pod{
		managed("a"), registered(managed("b")), newPod("bare"), withEmptyDir(managed("local")), ownedBy("DaemonSet", newPod("daemon")),
	}
	return []scenario{
		{name: "cordons", node: newNode(), commands: cordons},
		{name: "cordons-condition", node: inProgress(newNode()), commands: cordons},
		{name: "cordons-restricted", node: inProgress(newNode()), commands: cordons, group: drainers},
		{name: "cordons-field", node: maintained(newNode()), commands: cordons},
		{name: "cordons-selector", node: newNode(), commands: []string{"cordon -l pool=a", "uncordon -l pool=a", "cordon -l pool=b"}},
		{name: "cordons-dry", node: newNode(), commands: []string{"cordon node --dry-run=client", "cordon node --dry-run=server"}},
		{name: "missing", node: newNode(), commands: []string{"cordon other", "uncordon other", "drain other", "drain", "drain node -l pool=a"}},
		{name: "drain", node: newNode(), pods: []*v1.Pod{managed("a"), registered(managed("b")), managed("c", interceptor)}, commands: []string{"drain node", "drain node"}},
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

const (
	evictCall = "create /api/v1/namespaces/drain/pods/%s/eviction"
	patchCall = "patch /api/v1/nodes/" + nodeName
	startHint = "Warning: this server can drain nodes itself, and lets pods prepare for it: kubectl maintenance start --wait node"
)

func newScenarios() []scenario {
	pods := []*v1.Pod{managed("plain"), managed("db", interceptor), registered(managed("registered"))}
	underMaintenance := func() *v1.Node { return cordoned(maintained(newNode())) }
	return []scenario{
		{
			name: "interceptors", node: newNode(), pods: pods, commands: []string{"drain node"},
			want: &expected{
				Code: 1,
				Out:  []string{"evicting pod drain/plain", "node/node cordoned", "pod/plain evicted"},
				Err: []string{
					startHint, "Warning: leaving Pods with eviction interceptors (use --evict-intercepted-pods to evict them): drain/db, drain/registered",
					`error: Pods with eviction interceptors are left: drain/db (interceptor.example.com), drain/registered (interceptor.example.com): use "kubectl maintenance start --wait node", or`,
				},
				Writes: []string{fmt.Sprintf(evictCall, "plain"), patchCall},
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
				Err:    []string{startHint},
				Writes: []string{fmt.Sprintf(evictCall, "db"), fmt.Sprintf(evictCall, "plain"), fmt.Sprintf(evictCall, "registered"), patchCall},
				Left:   cluster{Unschedulable: true},
			},
		},
		{
			name: "uncordon", node: underMaintenance(), maintenance: newMaintenance("m1", poolA), commands: []string{"uncordon node"},
			want: &expected{
				Out:  []string{"node/node skipped"},
				Err:  []string{`Warning: not uncordoning node "node": NodeMaintenance "m1" keeps it cordoned until it is completed. Use: kubectl maintenance complete m1`},
				Left: cluster{Unschedulable: true},
			},
		},
		{
			name: "uncordon-restricted", node: underMaintenance(), maintenance: newMaintenance("m1", poolA), commands: []string{"uncordon node"}, group: drainers,
			want: &expected{
				Out:  []string{"node/node skipped"},
				Err:  []string{`a NodeMaintenance keeps it cordoned until it is completed. Use: kubectl maintenance complete NAME (the name is not known: nodemaintenances.coordination.k8s.io is forbidden`},
				Left: cluster{Unschedulable: true},
			},
		},
		{
			name: "cordon", node: underMaintenance(), maintenance: newMaintenance("m1", poolA), commands: []string{"cordon node"},
			want: &expected{
				Out:  []string{"node/node already cordoned"},
				Err:  []string{`Warning: not cordoning node "node": NodeMaintenance "m1" keeps it cordoned`},
				Left: cluster{Unschedulable: true},
			},
		},
		{
			name: "drain-maintained", node: underMaintenance(), pods: []*v1.Pod{managed("plain")}, maintenance: newMaintenance("m1", poolA), commands: []string{"drain node"},
			want: &expected{
				Out:    []string{"evicting pod drain/plain", "node/node already cordoned", "node/node drained", "pod/plain evicted"},
				Err:    []string{`Warning: node "node" is under maintenance: NodeMaintenance "m1" drains it. To follow that, use: kubectl maintenance watch m1`},
				Writes: []string{fmt.Sprintf(evictCall, "plain")},
				Left:   cluster{Unschedulable: true},
			},
		},
	}
}

// endedScenarios are drains that end before their pods have left: no interceptor acts, because there is
// no controller.
func endedScenarios() []scenario {
	pods := []*v1.Pod{managed("waiting", coordinationv1alpha1.EvictionInterceptorDeployment)}
	const (
		stays        = `pods/"waiting" -n "drain" stays, unless somebody calls pods/eviction for it again: its eviction is withdrawn`
		withdrawCall = "patch /apis/coordination.k8s.io/v1alpha1/namespaces/drain/evictionrequests/UID"
	)
	ended := func(code int, requesters []string, messages ...string) *expected {
		return &expected{
			Code: code, Err: messages,
			Out:    []string{"evicting pod drain/waiting", "node/node cordoned"},
			Writes: []string{fmt.Sprintf(evictCall, "waiting"), patchCall, withdrawCall},
			Left:   cluster{Pods: []string{"waiting"}, Unschedulable: true, Requesters: requesters},
		}
	}
	// It is over when drain would evict again, after five seconds.
	timedOut := ended(1, nil, stays, "global timeout reached: 4s")
	timedOut.Out = append([]string{"evicting pod drain/waiting"}, timedOut.Out...)
	return []scenario{
		{name: "interrupted", node: newNode(), pods: pods, commands: []string{"drain node"}, signal: syscall.SIGINT, want: ended(130, nil, stays)},
		{name: "terminated", node: newNode(), pods: pods, commands: []string{"drain node"}, signal: syscall.SIGTERM, want: ended(143, nil, stays)},
		{name: "terminal-closed", node: newNode(), pods: pods, commands: []string{"drain node"}, signal: syscall.SIGHUP, want: ended(129, nil, stays)},
		{name: "timed-out", node: newNode(), pods: pods, commands: []string{"drain node --timeout=4s"}, want: timedOut},
		{
			name: "interrupted-restricted", node: newNode(), pods: pods, commands: []string{"drain node"}, group: drainers, signal: syscall.SIGINT,
			want: ended(130, []string{"eviction.k8s.io of waiting"},
				`pods/"waiting" -n "drain" may leave all the same: its eviction cannot be withdrawn: evictionrequests.coordination.k8s.io "UID" is forbidden`,
				"To cancel it, uncordon the node, or, for all who request it: kubectl -n drain delete evictionrequest UID"),
		},
	}
}

// poolA selects the node.
var poolA = v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "pool", Operator: v1.NodeSelectorOpIn, Values: []string{"a"}}}}

func newNode() *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{"pool": "a"}}}
}

func cordoned(node *v1.Node) *v1.Node {
	node.Spec.Unschedulable = true
	return node
}

// inProgress sets a condition, which any client of an old server can write.
func inProgress(node *v1.Node) *v1.Node {
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeMaintenanceInProgress, Status: v1.ConditionTrue}}
	return node
}

// maintained sets a field that only the fork has.
func maintained(node *v1.Node) *v1.Node {
	node.Status.MaintenanceStatus = &v1.MaintenanceStatus{}
	return node
}

func ownedBy(kind string, pod *v1.Pod) *v1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "daemon", UID: "1", Controller: ptr.To(true)}}
	return pod
}

// managed returns a pod that drain evicts without a flag.
func managed(name string, interceptors ...string) *v1.Pod {
	return ownedBy("ReplicaSet", newPod(name, interceptors...))
}

func registered(pod *v1.Pod) *v1.Pod {
	pod.Annotations = map[string]string{coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + interceptor: "100"}
	return pod
}

func withEmptyDir(pod *v1.Pod) *v1.Pod {
	pod.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	return pod
}
