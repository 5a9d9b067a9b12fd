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

package nodemaintenance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/maintenance"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/utils/ptr"
)

// planAgent is the user agent that identifies kubectl in the audit log of the server.
const planAgent = "kubectl-plan-test"

// planPolicy records every request.
const planPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
`

// planResult contains the fields of "plan -o json" that the tests read.
type planResult struct {
	Nodes []struct {
		Name string
		Pods []planPod
	}
}

type planPod struct {
	Name, Blocked         string
	Interceptors, Remarks []string
}

// planRun runs "kubectl maintenance" and returns what it printed.
func planRun(t *testing.T, config *rest.Config, args ...string) string {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false).WithWrapConfigFn(func(*rest.Config) *rest.Config {
		wrapped := rest.CopyConfig(config)
		wrapped.UserAgent = planAgent
		return wrapped
	})
	cmdutil.BehaviorOnFatal(func(message string, code int) { t.Fatalf("%v: exit code %d: %s", args, code, message) })
	defer cmdutil.DefaultBehaviorOnFatal()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd := maintenance.NewCmdMaintenance(cmdutil.NewFactory(flags), streams)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String()
}

// planOfNode returns the plan of one node, by pod name.
func planOfNode(t *testing.T, config *rest.Config, node string) map[string]planPod {
	t.Helper()
	var result planResult
	if err := json.Unmarshal([]byte(planRun(t, config, "plan", node, "-o", "json")), &result); err != nil {
		t.Fatal(err)
	}
	pods := map[string]planPod{}
	for _, planned := range result.Nodes {
		for _, pod := range planned.Pods {
			pods[pod.Name] = pod
		}
	}
	return pods
}

// planVerbs returns the requests of kubectl as "verb resource". The server logs a request before it
// responds: the log contains all requests to which kubectl has got a response.
func planVerbs(t *testing.T, auditLog string) sets.Set[string] {
	t.Helper()
	data, err := os.ReadFile(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	verbs := sets.New[string]()
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("audit log: %v", err)
		}
		if event.UserAgent != planAgent {
			continue
		}
		resource := event.RequestURI
		if event.ObjectRef != nil {
			resource = event.ObjectRef.Resource
		}
		if strings.Contains(event.RequestURI, "dryRun=All") {
			resource += dryRun
		}
		verbs.Insert(event.Verb + " " + resource)
	}
	return verbs
}

// dryRun marks requests that change nothing.
const dryRun = " (dry run)"

// planWrites returns the requests that are not reads.
func planWrites(verbs sets.Set[string]) []string {
	var writes []string
	for _, verb := range sets.List(verbs) {
		if !strings.HasPrefix(verb, "get ") && !strings.HasPrefix(verb, "list ") && !strings.HasPrefix(verb, "watch ") {
			writes = append(writes, verb)
		}
	}
	return writes
}

// TestPlanOnlyReads checks in the audit log that "plan" sends no writes. It has the server check a manifest.
func TestPlanOnlyReads(t *testing.T) {
	dir := t.TempDir()
	policy, auditLog := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(planPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	config := startAPIServer(t, framework.SharedEtcd(), true,
		"--audit-policy-file="+policy, "--audit-log-path="+auditLog, "--audit-log-mode=blocking")
	c := newCluster(t, config)
	c.createNode("plan-1", "pool=a")
	c.createNode("plan-2", "pool=a")
	c.createPods(3, "web", "plan-1")
	c.createPod(newPod("db", "plan-2", withInterceptor(stubborn)))
	c.createMaintenance(newMaintenance("plan-stored", coordinationv1alpha1.NodeMaintenanceStageIdle, nodesNamed("plan-1")))
	manifest := filepath.Join(dir, "maintenance.yaml")
	if err := os.WriteFile(manifest, []byte(`{apiVersion: coordination.k8s.io/v1alpha1, kind: NodeMaintenance, metadata: {name: plan-new},
		spec: {nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, args := range [][]string{
		{"plan-1", "plan-2"}, {"-l", "pool=a"}, {"--maintenance=plan-stored"}, {"-f", manifest},
		{"plan-1", "-o", "wide"}, {"plan-1", "-o", "yaml"},
	} {
		if out := planRun(t, config, append([]string{"plan"}, args...)...); !strings.Contains(out, "web-0") {
			t.Errorf("plan %v does not show the pod web-0:\n%s", args, out)
		}
	}
	verbs := planVerbs(t, auditLog)
	if !verbs.HasAll("list pods", "list poddisruptionbudgets", "list evictionrequests", "get nodes") {
		t.Errorf("the audit log lacks reads of kubectl: %v", sets.List(verbs))
	}
	if diff := cmp.Diff([]string{"create nodemaintenances" + dryRun}, planWrites(verbs)); diff != "" {
		t.Errorf("writes of plan (-want, +got):\n%s", diff)
	}

	// Verify that the audit log contains writes of kubectl.
	planRun(t, config, "start", "plan-1", "--name=plan-started")
	if diff := cmp.Diff([]string{"create nodemaintenances", "create nodemaintenances" + dryRun}, planWrites(planVerbs(t, auditLog))); diff != "" {
		t.Errorf("writes in the audit log (-want, +got):\n%s", diff)
	}
}

// planRegisters registers an interceptor by annotation.
func planRegisters(name, value string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[coordinationv1alpha1.EvictionInterceptorAnnotationPrefix+name] = value
	}
}

// TestPlanKnowsTheInterceptors compares the plan with what the controller records: kubectl cannot
// import the code that the controller uses.
func TestPlanKnowsTheInterceptors(t *testing.T) {
	c := newCluster(t, startAPIServer(t, framework.SharedEtcd(), true))
	c.createNode("plan-1")
	var pods []*v1.Pod
	for _, pod := range []*v1.Pod{
		newPod("plain", "plan-1"),
		newPod("spec", "plan-1", withInterceptor("b.example.com"), withInterceptor("a.example.com")),
		newPod("around", "plan-1", withInterceptor("spec.example.com"), planRegisters("low.example.com", "1"),
			planRegisters("high.example.com", "10001"), planRegisters("same.example.com", "1/fallback"), planRegisters("controller.example.com", "10000/controller")),
		newPod("both", "plan-1", withInterceptor("a.example.com"), withInterceptor("b.example.com"), planRegisters("b.example.com", "20000")),
		newPod("daemon", "plan-1", ofDaemonSet("agent"), withInterceptor("a.example.com")),
		newPod("daemon-registered", "plan-1", ofDaemonSet("agent"), planRegisters("daemonset.apps.k8s.io", "20000"), planRegisters("z.example.com", "0")),
		newPod("static", "plan-1", static, planRegisters("observe.example.com", "7")),
	} {
		pods = append(pods, c.createPod(pod))
	}
	planned := planOfNode(t, c.config, "plan-1")
	c.startEvictionController()
	for _, pod := range pods {
		request := &coordinationv1alpha1.EvictionRequest{
			ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID)},
			Spec: coordinationv1alpha1.EvictionRequestSpec{
				Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
				Requesters: []coordinationv1alpha1.Requester{{Name: "plan.example.com"}},
			},
		}
		if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Create(t.Context(), request, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.eventually("the interceptors of pod "+pod.Name, func(ctx context.Context) (bool, string) {
			request, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			var names []string
			for _, interceptor := range request.Status.TargetInterceptors {
				names = append(names, interceptor.Name)
			}
			diff := cmp.Diff(names, planned[pod.Name].Interceptors)
			return len(names) > 0 && diff == "", fmt.Sprintf("recorded by the controller (-), planned by kubectl (+):\n%s", diff)
		})
	}
}

// TestPlanKnowsTheBudgets compares the plan with a dry run of each eviction.
func TestPlanKnowsTheBudgets(t *testing.T) {
	c := newCluster(t, startAPIServer(t, framework.SharedEtcd(), true))
	c.createNode("plan-1")
	healthy := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, CurrentHealthy: 3, DesiredHealthy: 3}
	unhealthy, roomy, unprocessed := healthy, healthy, healthy
	unhealthy.CurrentHealthy, roomy.DisruptionsAllowed, unprocessed.ObservedGeneration, unprocessed.DisruptionsAllowed = 1, 1, 0, 1
	c.planBudget("full", healthy, nil)
	c.planBudget("short", unhealthy, nil)
	c.planBudget("always", unhealthy, ptr.To(policyv1.AlwaysAllow))
	c.planBudget("roomy", roomy, nil)
	c.planBudget("unprocessed", unprocessed, nil)

	var pods []*v1.Pod
	for _, budgets := range [][]string{{}, {"full"}, {"short"}, {"always"}, {"roomy"}, {"unprocessed"}, {"roomy", "always"}} {
		for _, state := range []string{"ready", "unready", "pending"} {
			pod := newPod(strings.Join(append([]string{state}, budgets...), "-"), "plan-1")
			for _, budget := range budgets {
				pod.Labels[budget] = "yes"
			}
			pods = append(pods, c.planPodInState(pod, state))
		}
	}
	planned := planOfNode(t, c.config, "plan-1")
	refused := 0
	for _, pod := range pods {
		refusal := c.planRehearseEviction(pod)
		if refusal != "" {
			refused++
		}
		if blocked := planned[pod.Name].Blocked; (blocked != "") != (refusal != "") {
			t.Errorf("pod %s: the blocker in the plan is %q, the error of the server is %q", pod.Name, blocked, refusal)
		}
	}
	if refused == 0 || refused == len(pods) {
		t.Errorf("the server refuses %d of %d evictions: nothing was compared", refused, len(pods))
	}
}

// TestPlanKnowsTheDeployments compares the plan with the function that the Deployment controller
// uses, for strategies with the defaults of the server.
func TestPlanKnowsTheDeployments(t *testing.T) {
	c := newCluster(t, startAPIServer(t, framework.SharedEtcd(), true))
	c.createNode("plan-1")
	other := c.createNode("plan-2") // For replacements.
	other.Spec.Taints = nil         // A new node is not ready.
	if _, err := c.client.CoreV1().Nodes().Update(t.Context(), other, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	rolling := func(surge, unavailable intstr.IntOrString) appsv1.DeploymentStrategy {
		return appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}}
	}
	want, got := map[string]string{}, map[string]string{}
	for name, strategy := range map[string]appsv1.DeploymentStrategy{
		"default":  {},
		"one":      rolling(intstr.FromInt32(1), intstr.FromInt32(0)),
		"percent":  rolling(intstr.FromString("1%"), intstr.FromString("1%")),
		"none":     rolling(intstr.FromInt32(0), intstr.FromInt32(1)),
		"zero":     rolling(intstr.FromString("0%"), intstr.FromString("100%")),
		"recreate": {Type: appsv1.RecreateDeploymentStrategyType},
	} {
		deployment := c.planDeployment(name, strategy)
		c.createPod(newPod(name, "plan-1", withLabel("app", name), withInterceptor(coordinationv1alpha1.EvictionInterceptorDeployment), func(pod *v1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
		}))
		want[name] = "NotReplacedFirst"
		if deploymentutil.MaxSurge(*deployment) > 0 {
			want[name] = "ReplacedFirst"
		}
	}
	for name, pod := range planOfNode(t, c.config, "plan-1") {
		got[name] = strings.Join(pod.Remarks, ", ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("remarks in the plan (-want, +got):\n%s", diff)
	}
	if values := sets.New(slices.Collect(maps.Values(want))...); values.Len() != 2 {
		t.Errorf("the controller handles all strategies alike: %v", want)
	}
}

// planDeployment creates a Deployment that selects pods with its name as the label app.
func (c *cluster) planDeployment(name string, strategy appsv1.DeploymentStrategy) *appsv1.Deployment {
	c.t.Helper()
	labels := map[string]string{"app": name}
	created, err := c.client.AppsV1().Deployments(c.namespace).Create(c.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Strategy: strategy,
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "main"}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating Deployment %s: %v", name, err)
	}
	return created
}

// planRehearseEviction returns why the server would not evict the pod, or "". The method of the
// typed client would wait and retry after each refusal.
func (c *cluster) planRehearseEviction(pod *v1.Pod) string {
	c.t.Helper()
	var code int
	err := c.client.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}).
		MaxRetries(0).Do(c.t.Context()).StatusCode(&code).Error()
	switch {
	case err == nil:
		return ""
	case code == http.StatusTooManyRequests, code == http.StatusInternalServerError:
		// A budget allows no disruption, or there is more than one budget.
		return err.Error()
	}
	c.t.Fatalf("dry run of the eviction of pod %s: %v", pod.Name, err)
	return ""
}

// planBudget creates a budget for pods with its name as a label, with the status that the
// disruption controller would write.
func (c *cluster) planBudget(name string, status policyv1.PodDisruptionBudgetStatus, policy *policyv1.UnhealthyPodEvictionPolicyType) {
	c.t.Helper()
	budgets := c.client.PolicyV1().PodDisruptionBudgets(c.namespace)
	budget, err := budgets.Create(c.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               ptr.To(intstr.FromInt32(3)),
			Selector:                   &metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}},
			UnhealthyPodEvictionPolicy: policy,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating budget %s: %v", name, err)
	}
	budget.Status = status
	if _, err := budgets.UpdateStatus(c.t.Context(), budget, metav1.UpdateOptions{}); err != nil {
		c.t.Fatalf("writing the status of budget %s: %v", name, err)
	}
}

// planPodInState creates a pod that is ready, unready or pending.
func (c *cluster) planPodInState(pod *v1.Pod, state string) *v1.Pod {
	c.t.Helper()
	created := c.createPod(pod)
	if state == "pending" {
		return created
	}
	ready := v1.ConditionFalse
	if state == "ready" {
		ready = v1.ConditionTrue
	}
	created.Status.Phase = v1.PodRunning
	created.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: ready}}
	updated, err := c.client.CoreV1().Pods(c.namespace).UpdateStatus(c.t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		c.t.Fatalf("writing the status of pod %s: %v", pod.Name, err)
	}
	return updated
}
