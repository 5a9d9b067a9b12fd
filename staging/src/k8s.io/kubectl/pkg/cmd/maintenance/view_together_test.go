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

package maintenance

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/utils/ptr"
)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func statefulSet(name string, ready int32) *appsv1.StatefulSet {
	strategy := appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
	return &appsv1.StatefulSet{ObjectMeta: named(name), Spec: appsv1.StatefulSetSpec{UpdateStrategy: strategy}, Status: appsv1.StatefulSetStatus{ReadyReplicas: ready}}
}

func optedOut(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set.Annotations = map[string]string{"statefulset.kubernetes.io/eviction-pacing": "Disabled"}
	return set
}

func replicaSet(name, deployment string, ready int32) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{ObjectMeta: named(name), Status: appsv1.ReplicaSetStatus{ReadyReplicas: ready}}
	if deployment != "" {
		set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment, Controller: ptr.To(true)}}
	}
	return set
}

func newJob(name string, limit *int32, failed int32) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: named(name), Spec: batchv1.JobSpec{BackoffLimit: limit}, Status: batchv1.JobStatus{Failed: failed}}
}

func (p podStory) of(kind, name string) podStory {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, Controller: ptr.To(true)}}
	return p
}

func (p podStory) failedBefore(times int) podStory {
	p.Annotations = map[string]string{batchv1.JobIndexFailureCountAnnotation: fmt.Sprint(times)}
	return p
}

// podsOf returns pods of a workload, alternating between two nodes.
func podsOf(kind, name string, count int, change func(podStory) podStory) []any {
	var pods []any
	for i := range count {
		pod := newPod(fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("node-%d", 1+i%2)).of(kind, name)
		if change != nil {
			pod = change(pod)
		}
		pods = append(pods, pod)
	}
	return pods
}

// TestNamedNodes plans pods whose template names their node: the pod itself has spec.nodeName in any case.
func TestNamedNodes(t *testing.T) {
	template := func(node string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: node}}
	}
	web := replicaSet("web", "web", 1)
	web.Spec.Template = template("node-1")
	elsewhere := replicaSet("elsewhere", "", 1)
	elsewhere.Spec.Template = template("node-9")
	recreated := replicaSet("recreated", "", 1)
	recreated.UID, recreated.Spec.Template = "another", template("node-1")
	free := replicaSet("free", "", 1)
	set := &appsv1.StatefulSet{ObjectMeta: named("set"), Spec: appsv1.StatefulSetSpec{Template: template("node-1")}}
	job := newJob("job", nil, 0)
	job.Spec.Template = template("node-1")
	rc := &corev1.ReplicationController{ObjectMeta: named("rc"), Spec: corev1.ReplicationControllerSpec{Template: ptr.To(template("node-1"))}}
	bare := &corev1.ReplicationController{ObjectMeta: named("bare")}

	pod := func(kind, name string) podStory { return newPod(name+"-0", "node-1").of(kind, name) }
	surging := replaced("web-0", "node-1").of("ReplicaSet", "web")
	tolerating := pod("StatefulSet", "set")
	tolerating.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	s := newServer(t, newNode("node-1"), newDeployment("web"), web, elsewhere, recreated, free, set, job, rc, bare,
		surging, pod("ReplicaSet", "elsewhere"), pod("ReplicaSet", "recreated"), pod("ReplicaSet", "free"), tolerating, pod("Job", "job"),
		pod("ReplicationController", "rc"), pod("ReplicationController", "bare"), pod("ReplicationController", "gone"))
	var p plan
	if err := json.Unmarshal([]byte(s.mustRun(t, "plan", "node-1", "-o", "json")), &p); err != nil {
		t.Fatal(err)
	}
	var comingBack []string
	for _, pod := range p.Nodes[0].Pods {
		if slices.Contains(pod.Remarks, noteNamesNode) {
			comingBack = append(comingBack, pod.Name)
		}
		if pod.Name == "web-0" && (!slices.Contains(pod.Remarks, noteCannotBeReplaced) || slices.Contains(pod.Remarks, noteReplacedFirst)) {
			t.Errorf("the Deployment: %v", pod.Remarks)
		}
		if slices.Contains(pod.Remarks, noteComesBack) {
			t.Errorf("%s is counted twice: %v", pod.Name, pod.Remarks)
		}
	}
	if diff := cmp.Diff([]string{"job-0", "rc-0", "set-0", "web-0"}, comingBack); diff != "" || p.Summary.ComingBack != 4 {
		t.Errorf("%d come back (-want, +got):\n%s", p.Summary.ComingBack, diff)
	}
	contains(t, s.mustRun(t, "plan", "node-1"), "! comes back: spec.nodeName of its template")
}

// TestWarnings reads all objects from a server, as "plan" does.
func TestWarnings(t *testing.T) {
	down := func(kind, name string, pods int) []warning {
		return []warning{{Kind: kind, Namespace: "default", Name: name, Step: 1, Pods: pods}}
	}
	fails := func(pods, allowed int) []warning {
		return []warning{{Kind: "Job", Namespace: "default", Name: "job", Step: 1, Pods: pods, FailuresAllowed: &allowed}}
	}
	paced := func(p podStory) podStory {
		p.Spec.EvictionInterceptors = []corev1.EvictionInterceptor{{Name: coordinationv1alpha1.EvictionInterceptorStatefulSet}}
		return p
	}
	surging := func(p podStory) podStory {
		p.Spec.EvictionInterceptors = []corev1.EvictionInterceptor{{Name: coordinationv1alpha1.EvictionInterceptorDeployment}}
		return p
	}
	recreate := newDeployment("web")
	recreate.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	perIndex := newJob("job", ptr.To[int32](100), 0)
	perIndex.Spec.BackoffLimitPerIndex = ptr.To[int32](2)
	policy := func(action batchv1.PodFailurePolicyAction, condition corev1.PodConditionType) *batchv1.Job {
		job := newJob("job", ptr.To[int32](0), 0)
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: action, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: condition}}}}}
		return job
	}
	with := func(pods []any, more ...any) []any { return append(more, pods...) }
	important := newPod("db-9", "node-2").of("StatefulSet", "db").withPriority(2000000000)
	for _, tc := range []struct {
		name    string
		stories []any
		want    []warning
	}{
		{"a StatefulSet", with(podsOf("StatefulSet", "db", 3, nil), statefulSet("db", 3)), down("StatefulSet", "db", 3)},
		{"a StatefulSet with a pod elsewhere", with(podsOf("StatefulSet", "db", 3, nil), statefulSet("db", 4)), nil},
		{"a StatefulSet that is paced", with(podsOf("StatefulSet", "db", 3, paced), statefulSet("db", 3)), nil},
		{"a StatefulSet that has opted out", with(podsOf("StatefulSet", "db", 3, paced), optedOut(statefulSet("db", 3))), down("StatefulSet", "db", 3)},
		{"a StatefulSet whose pods are not ready", with(podsOf("StatefulSet", "db", 3, podStory.unready), statefulSet("db", 0)), nil},
		{"a StatefulSet with a pod that is not ready", with(append(podsOf("StatefulSet", "db", 2, nil), newPod("db-2", "node-1").of("StatefulSet", "db").unready()), statefulSet("db", 2)), down("StatefulSet", "db", 2)},
		{"a ready pod elsewhere, one here not", with(append(podsOf("StatefulSet", "db", 2, nil), newPod("db-2", "node-1").of("StatefulSet", "db").unready()), statefulSet("db", 3)), nil},
		{"a single pod", with(podsOf("StatefulSet", "db", 1, nil), statefulSet("db", 1)), down("StatefulSet", "db", 1)},
		{"a budget", with(podsOf("StatefulSet", "db", 3, nil), statefulSet("db", 3), newBudget("db", "db", 2)), nil},
		{"a budget that allows all", with(podsOf("StatefulSet", "db", 3, nil), statefulSet("db", 3), newBudget("db", "db", 3)), down("StatefulSet", "db", 3)},
		{"a budget that allows less than none", with(podsOf("StatefulSet", "db", 3, nil), statefulSet("db", 3), newBudget("db", "db", -1)), nil},
		{"two budgets", with(podsOf("StatefulSet", "db", 3, nil), statefulSet("db", 3), newBudget("db", "db", 3), newBudget("db2", "db", 3)), nil},
		{"several steps", []any{statefulSet("db", 2), newPod("db-0", "node-1").of("StatefulSet", "db"), important}, nil},
		{"a bare ReplicaSet", with(podsOf("ReplicaSet", "web-1", 2, nil), replicaSet("web-1", "", 2)), down("ReplicaSet", "web-1", 2)},
		{"a Deployment that recreates", with(podsOf("ReplicaSet", "web-1", 2, surging), replicaSet("web-1", "web", 2), recreate), down("Deployment", "web", 2)},
		{"a Deployment that surges", with(podsOf("ReplicaSet", "web-1", 2, surging), replicaSet("web-1", "web", 2), newDeployment("web")), nil},
		{"a Deployment that could surge, but the gate is off", with(podsOf("ReplicaSet", "web-1", 2, nil), replicaSet("web-1", "web", 2), newDeployment("web")), down("Deployment", "web", 2)},
		{"a Deployment with other ReplicaSets", with(podsOf("ReplicaSet", "web-1", 2, nil), replicaSet("web-1", "web", 2), replicaSet("web-2", "web", 1)), nil},
		{"an unknown owner", podsOf("Unknown", "x", 2, nil), nil},
		{"a Job", with(podsOf("Job", "job", 3, nil), newJob("job", ptr.To[int32](2), 0)), fails(3, 2)},
		{"a Job whose backoffLimit is not exceeded", with(podsOf("Job", "job", 3, nil), newJob("job", ptr.To[int32](3), 0)), nil},
		{"a Job that has failed before", with(podsOf("Job", "job", 3, nil), newJob("job", ptr.To[int32](3), 1)), fails(3, 2)},
		{"a Job that has failed too often", with(podsOf("Job", "job", 1, nil), newJob("job", ptr.To[int32](1), 3)), fails(1, 0)},
		{"a Job with the default", with(podsOf("Job", "job", 7, nil), newJob("job", nil, 0)), fails(7, 6)},
		{"a Job with the default, fewer pods", with(podsOf("Job", "job", 6, nil), newJob("job", nil, 0)), nil},
		{"a Job that ignores disruptions", with(podsOf("Job", "job", 3, nil), policy(batchv1.PodFailurePolicyActionIgnore, corev1.DisruptionTarget)), nil},
		{"a Job that counts disruptions", with(podsOf("Job", "job", 3, nil), policy(batchv1.PodFailurePolicyActionCount, corev1.DisruptionTarget)), fails(3, 0)},
		{"a Job that ignores something else", with(podsOf("Job", "job", 3, nil), policy(batchv1.PodFailurePolicyActionIgnore, "ConfigIssue")), fails(3, 0)},
		{"a Job that counts per index", with(append(podsOf("Job", "job", 3, nil), newPod("job-8", "node-1").of("Job", "job").failedBefore(2), newPod("job-9", "node-1").of("Job", "job").failedBefore(1)), perIndex), fails(1, 0)},
		{"a pod that has ended", with(podsOf("Job", "job", 3, func(p podStory) podStory { return p.inPhase(corev1.PodSucceeded) }), newJob("job", ptr.To[int32](0), 0)), nil},
		{"DaemonSet pods", podsOf("DaemonSet", "agent", 2, nil), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, append(tc.stories, newNode("node-1"), newNode("node-2"), zonedNode("node-3", ""))...)
			o := &planOptions{environment: s.environment}
			nm := newMaintenance("x", drain, "node-1", "node-2").NodeMaintenance
			snapshot, nodes, err := o.read(t.Context(), s, nm)
			if err != nil {
				t.Fatal(err)
			}
			p, err := planOf(snapshot, "", nodes, maintenance.StandardPlan())
			if err != nil {
				t.Fatal(err)
			}
			want := append([]warning{}, tc.want...)
			if diff := cmp.Diff(want, p.Warnings); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
		})
	}
}

// TestWarningsAreRead lists only kinds of owners that pods have, and continues without permission.
func TestWarningsAreRead(t *testing.T) {
	stories := []any{newNode("node-1"), statefulSet("db", 1), newPod("db-0", "node-1").of("StatefulSet", "db")}
	s := newServer(t, stories...)
	contains(t, s.mustRun(t, "plan", "node-1"), "Warnings (a PodDisruptionBudget would prevent most of them):\n  ! StatefulSet default/db: its only ready pod is evicted in step 1\n")
	for _, kind := range []string{"replicasets", "jobs"} {
		if s.lists()[kind] > 0 {
			t.Errorf("lists %s, which own no pod", kind)
		}
	}
	forbidden := newServer(t, stories...)
	forbidden.forbid("statefulsets")
	contains(t, forbidden.mustRun(t, "plan", "node-1"), "Without the permission to list statefulsets, this plan is incomplete.")
	broken := newServer(t, stories...)
	broken.PrependReactor("list", "statefulsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, fmt.Errorf("broken")
	})
	broken.run(t, "plan", "node-1")
	contains(t, broken.failure, "listing statefulsets: broken")
}

func TestWarningTexts(t *testing.T) {
	for want, w := range map[string]warning{
		"StatefulSet default/db: all 3 ready pods are evicted together in step 2":                            {Kind: "StatefulSet", Namespace: "default", Name: "db", Step: 2, Pods: 3},
		"StatefulSet default/db: its only ready pod is evicted in step 1":                                    {Kind: "StatefulSet", Namespace: "default", Name: "db", Step: 1, Pods: 1},
		"Job default/job: 3 pods are evicted in step 1, and its backoffLimit allows only 2 further failures": {Kind: "Job", Namespace: "default", Name: "job", Step: 1, Pods: 3, FailuresAllowed: ptr.To(2)},
		"Job default/job: 1 pod is evicted in step 1, and its backoffLimit allows no further failure":        {Kind: "Job", Namespace: "default", Name: "job", Step: 1, Pods: 1, FailuresAllowed: ptr.To(0)},
	} {
		if got := w.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNoWarningWithoutStep covers pods that no plan entry selects.
func TestNoWarningWithoutStep(t *testing.T) {
	s := snapshotOf(newNode("node-1"), newPod("db-0", "node-1").of("StatefulSet", "db").withPriority(10))
	s.addStatefulSet(statefulSet("db", 1))
	for priority, want := range map[int32]int{9: 0, 10: 1} {
		p := mustPlan(t, s, "", []corev1.DrainPlanEntry{{PodType: corev1.PodTypeDefault, PodPriority: priority}}, "node-1")
		if len(p.Warnings) != want {
			t.Errorf("priority %d: %v", priority, p.Warnings)
		}
	}
}
