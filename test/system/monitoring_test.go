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
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

// fault is what makes alerts fire, and how it is mended.
type fault struct {
	what string
	// alerts are the labels of those that fire because of it, at least.
	alerts []map[string]string
	// look are the commands that an operator runs first, without kubectl.
	look [][]string
	make func(tCtx ktesting.TContext)
	mend func(tCtx ktesting.TContext)
	// alone is a fault that others would disturb, or that disturbs them.
	alone bool
}

// faultNode is the node that a fault concerns. Each has its own.
func faultNode(name string) string { return "rack-" + name }

const (
	absentee  = "absent.example.com" // An interceptor that never reports.
	latecomer = "late.example.com"   // One that does not report until its deadline.
)

// monitoringTest has a cluster, its Prometheus, and the faults.
type monitoringTest struct {
	*demo
	prometheus *prometheus

	lock sync.Mutex
	// fired are all alerts that have fired: some end before they are asked for.
	fired []alert
}

// latestAlert is when the last alert fires: an interceptor times out only 5 minutes after a
// controller manager has started.
const latestAlert = 8 * time.Minute

// TestMonitoring lets each alert of deploy/monitoring fire once, by a fault on a local cluster,
// prints what an operator sees, and mends the fault: the alert ends. Those about kubelets need real
// ones: TestNodeMonitoring.
func TestMonitoring(t *testing.T) { testMonitoring(ktesting.Init(t)) }
func testMonitoring(tCtx ktesting.TContext) {
	tCtx, d := newDemo(tCtx, "monitoring")
	m := &monitoringTest{demo: d}
	m.prometheus = startPrometheus(tCtx, d.programs, d.cluster, planeTargets(tCtx, d.cluster))
	m.startRecording(tCtx)
	createRackNodes(tCtx, m.nodes()...)
	faults := m.faults()
	m.chapter("Faults that last")
	for _, f := range faults {
		if !f.alone {
			m.say("  %s", f.what)
			f.make(tCtx)
		}
	}
	for _, f := range faults {
		if !f.alone {
			m.expectFiring(tCtx, f)
		}
	}
	m.chapter("They are mended")
	for _, f := range faults {
		if !f.alone {
			f.mend(tCtx)
		}
	}
	m.expectQuiet(tCtx)
	for _, f := range faults {
		if f.alone {
			m.chapter(f.what)
			f.make(tCtx)
			m.expectFiring(tCtx, f)
			f.mend(tCtx)
			m.expectQuiet(tCtx)
		}
	}
	m.prometheus.recordDashboard(tCtx, d.programs, m.began)
	m.say("\nAll %d checks are ok, after %.0f s.", m.checks, time.Since(m.began).Seconds())
}

// startRecording records alerts that fire until the test ends.
func (m *monitoringTest) startRecording(tCtx ktesting.TContext) {
	watching := tCtx.WithCancel()
	var watcher sync.WaitGroup
	watcher.Go(func() { wait.UntilWithContext(watching, m.record, time.Second) })
	tCtx.Cleanup(func() {
		watching.Cancel("the test has ended")
		watcher.Wait()
	})
}

// record adds the alerts that fire now to those that have fired.
func (m *monitoringTest) record(ctx context.Context) {
	firing, err := m.prometheus.alerts(ctx)
	if err != nil {
		return // The test has ended, or the next call succeeds.
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, a := range firing {
		if !slices.ContainsFunc(m.fired, func(known alert) bool { return known.String() == a.String() }) {
			m.fired = append(m.fired, a)
		}
	}
}

// hasFired returns the alert with these labels, if it has fired.
func (m *monitoringTest) hasFired(labels map[string]string) (found alert, others []alert) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, a := range m.fired {
		if a.matches(labels) {
			return a, nil
		}
	}
	return alert{}, slices.Clone(m.fired)
}

// expectFiring waits until the alerts of a fault have fired, and prints them with what an operator sees.
func (m *monitoringTest) expectFiring(tCtx ktesting.TContext, f fault) {
	tCtx.Helper()
	for _, labels := range f.alerts {
		var found alert
		awaitWithin(tCtx, latestAlert, fmt.Sprintf("the alert %v, because %s", labels, f.what), func(tCtx ktesting.TContext) {
			var others []alert
			if found, others = m.hasFired(labels); found.Labels == nil {
				tCtx.Fatalf("these have fired: %v", others)
			}
		})
		m.checks++
		m.say("\n  ok: %s fires (%s, %s)\n      %s\n      %s\n      runbook: %s", found, found.Labels["severity"], f.what,
			found.Annotations["summary"], found.Annotations["description"], found.Annotations["runbook_url"])
	}
	for _, command := range f.look {
		m.kubectl(tCtx, command...)
	}
}

// expectEnded waits until no alert of a fault fires.
func (m *monitoringTest) expectEnded(tCtx ktesting.TContext, f fault) {
	tCtx.Helper()
	await(tCtx, "the end of the alerts", func(tCtx ktesting.TContext) {
		firing, err := m.prometheus.alerts(tCtx)
		tCtx.ExpectNoError(err)
		for _, labels := range f.alerts {
			if slices.ContainsFunc(firing, func(a alert) bool { return a.matches(labels) }) {
				tCtx.Fatalf("this one fires: %v", labels)
			}
		}
	})
	m.checks++
	m.say("  ok: the alert has ended")
}

// expectQuiet waits until no alert fires.
func (m *monitoringTest) expectQuiet(tCtx ktesting.TContext) {
	tCtx.Helper()
	await(tCtx, "the end of all alerts", func(tCtx ktesting.TContext) {
		if firing, err := m.prometheus.alerts(tCtx); err != nil || len(firing) > 0 {
			tCtx.Fatalf("these fire: %v, %v", firing, err)
		}
	})
	m.checks++
	m.say("  ok: no alert fires")
}

// nodes are the nodes of the faults.
func (m *monitoringTest) nodes() []string {
	var nodes []string
	for _, name := range []string{"budget", "finalizer", "interceptor", "cordon", "quota", "webhook", "status", "surge", "late", "contested-1", "contested-2", "contested-3", "lost-1", "lost-2", "slow-1", "slow-2"} {
		nodes = append(nodes, faultNode(name))
	}
	return nodes
}

// blockedBy is an alert about a drain that is blocked.
func blockedBy(alert, cause string) map[string]string {
	return map[string]string{"alertname": alert, "cause": cause}
}

func (m *monitoringTest) faults() []fault {
	status := func(node string) [][]string { return [][]string{{"maintenance", "status", faultNode(node)}} }
	return []fault{
		{
			what: "a budget allows no eviction", make: m.blockByBudget, mend: m.undo("budget"), look: status("budget"),
			alerts: []map[string]string{blockedBy("NodeDrainBlocked", "DisruptionBudget"), {"alertname": "EvictionRequestBlocked", "reason": "DisruptionBudget"}},
		}, {
			what: "a finalizer keeps a pod", make: m.keepByFinalizer, mend: m.removeFinalizer, look: status("finalizer"),
			alerts: []map[string]string{blockedBy("NodeDrainBlocked", "StuckTerminating")},
		}, {
			what: "an interceptor does not run", make: m.interceptNever, mend: m.undo("interceptor"), look: status("interceptor"),
			alerts: []map[string]string{blockedBy("NodeDrainBlocked", "InterceptorUnresponsive"), {"alertname": "EvictionInterceptorUnresponsive", "interceptor": absentee}},
		}, {
			what: "a policy refuses to cordon a node", make: m.refuseCordon, mend: m.undoPolicy("cordon"), look: status("cordon"),
			alerts: []map[string]string{blockedBy("NodeMaintenanceRefused", "CordonFailed")},
		}, {
			what: "a policy refuses the status of a node", make: m.refuseStatus, mend: m.undoPolicy("status"), look: status("status"),
			alerts: []map[string]string{blockedBy("NodeMaintenanceRefused", "NodeStatusFailed")},
		}, {
			what: "a quota allows no EvictionRequests", make: m.refuseRequests, mend: m.undoQuota, look: status("quota"),
			alerts: []map[string]string{blockedBy("NodeMaintenanceRefused", "RequestFailed")},
		}, {
			what: "a policy refuses evictions", make: m.refuseEvictions, mend: m.undoPolicy("webhook"), look: status("webhook"),
			alerts: []map[string]string{blockedBy("NodeDrainBlocked", "EvictionRefused"), {"alertname": "EvictionRequestBlocked", "reason": "EvictionRefused"}},
		}, {
			what: "another client uncordons nodes in maintenance", make: m.contest, mend: m.undo("contested-1", "contested-2", "contested-3"),
			alerts: []map[string]string{{"alertname": "NodeCordonContested"}},
			look:   [][]string{{"get", "events", "--all-namespaces", "--field-selector=reason=NodeCordoned,involvedObject.name=rack-contested-1"}},
		}, {
			what: "a node of a rollout does not come back", make: m.startRollout("lost", "--complete-nodes=Rebooted", "--return-timeout=1s"), mend: m.undo("lost"), look: status("lost"),
			alerts: []map[string]string{{"alertname": "NodeMaintenanceHalted"}, {"alertname": "NodeMaintenanceNodesFailed"}},
		}, {
			what: "nobody completes the drained node of a rollout", make: m.startRollout("slow"), mend: m.undo("slow"), look: status("slow"),
			alerts: []map[string]string{{"alertname": "NodeMaintenanceNotAdmitting"}},
		}, {
			what: "the replacement of a pod has no room", make: m.surgeInVain, mend: m.undo("surge"), look: status("surge"),
			alerts: []map[string]string{{"alertname": "DeploymentSurgeGivenUp"}},
		}, {
			what: "a pod picker does not run", make: m.askDeadPicker, mend: func(ktesting.TContext) {},
			alerts: []map[string]string{{"alertname": "DownscalePodPickerFailing"}},
			look:   [][]string{{"get", "events", "--all-namespaces", "--field-selector=reason=PodPickerFailed"}},
		}, {
			what: "an interceptor misses its deadline", make: m.missDeadline, mend: func(ktesting.TContext) {},
			alerts: []map[string]string{{"alertname": "EvictionInterceptorTimedOut", "interceptor": latecomer}},
			look:   [][]string{{"get", "events", "--all-namespaces", "--field-selector=reason=InterceptorTimedOut"}},
		}, {
			what: "the API server is frozen again and again", make: m.freezeAPIServer, mend: func(ktesting.TContext) {}, alone: true,
			alerts: []map[string]string{{"alertname": "EvictionControllerBehind"}},
		}, {
			what: "the controller manager is frozen", alone: true,
			make: func(tCtx ktesting.TContext) {
				tCtx.ExpectNoError(m.cluster.Signal(controlplane.ControllerManager, syscall.SIGSTOP))
			},
			mend: func(tCtx ktesting.TContext) {
				tCtx.ExpectNoError(m.cluster.Signal(controlplane.ControllerManager, syscall.SIGCONT))
			},
			alerts: []map[string]string{{"alertname": "EvictionControllerAbsent"}},
		},
	}
}

// startDrain drains the node of a fault, by a maintenance of its name.
func (m *monitoringTest) startDrain(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	m.run(tCtx, "maintenance", "start", faultNode(name), "--name="+faultNode(name), "--reason="+name)
}

// startRollout drains the two nodes of a fault, one after the other.
func (m *monitoringTest) startRollout(name string, flags ...string) func(tCtx ktesting.TContext) {
	return func(tCtx ktesting.TContext) {
		tCtx.Helper()
		args := []string{"maintenance", "start", faultNode(name + "-1"), faultNode(name + "-2"), "--name=" + faultNode(name), "--reason=" + name, "--max-concurrent=1"}
		m.run(tCtx, append(args, flags...)...)
	}
}

// undo cancels the maintenances of faults.
func (m *monitoringTest) undo(names ...string) func(tCtx ktesting.TContext) {
	return func(tCtx ktesting.TContext) {
		for _, name := range names {
			tCtx.ExpectNoError(tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Delete(tCtx, faultNode(name), metav1.DeleteOptions{}))
		}
	}
}

// createPodOn creates a ready pod on the node of a fault.
func (m *monitoringTest) createPodOn(tCtx ktesting.TContext, namespace, name string, interceptors ...string) *v1.Pod {
	tCtx.Helper()
	pod := newPod(name, interceptors...)
	pod.Spec.NodeName = faultNode(name)
	pod = create(tCtx, tCtx.Client().CoreV1().Pods(namespace), pod)
	await(tCtx, "pod "+name, func(tCtx ktesting.TContext) {
		current, err := tCtx.Client().CoreV1().Pods(namespace).Get(tCtx, name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if !serves(current) {
			tCtx.Fatal("it is not ready")
		}
	})
	return pod
}

func (m *monitoringTest) blockByBudget(tCtx ktesting.TContext) {
	m.createPodOn(tCtx, tCtx.Namespace(), "budget")
	createBudget(tCtx, "budget", "minAvailable: 1", 1)
	m.startDrain(tCtx, "budget")
}

func (m *monitoringTest) keepByFinalizer(tCtx ktesting.TContext) {
	pod := newPod("finalizer")
	pod.Spec.NodeName, pod.Finalizers = faultNode("finalizer"), []string{"example.com/backup"}
	create(tCtx, tCtx.Client().CoreV1().Pods(tCtx.Namespace()), pod)
	m.startDrain(tCtx, "finalizer")
}

func (m *monitoringTest) removeFinalizer(tCtx ktesting.TContext) {
	_, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).Patch(tCtx, "finalizer", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	tCtx.ExpectNoError(err)
}

func (m *monitoringTest) interceptNever(tCtx ktesting.TContext) {
	m.createPodOn(tCtx, tCtx.Namespace(), "interceptor", absentee)
	m.startDrain(tCtx, "interceptor")
}

// refuse creates a policy that refuses operations on a resource if an expression is false.
func refuse(tCtx ktesting.TContext, name, expression, message string, operation admissionregistrationv1.OperationType, resource string) {
	tCtx.Helper()
	client := tCtx.Client().AdmissionregistrationV1()
	create(tCtx, client.ValidatingAdmissionPolicies(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{operation},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: message}},
		},
	})
	create(tCtx, client.ValidatingAdmissionPolicyBindings(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	})
	// The API server compiles it.
	time.Sleep(2 * time.Second)
}

// undoPolicy removes the policy of a fault, and its maintenance.
func (m *monitoringTest) undoPolicy(name string) func(tCtx ktesting.TContext) {
	return func(tCtx ktesting.TContext) {
		tCtx.ExpectNoError(tCtx.Client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(tCtx, name, metav1.DeleteOptions{}))
		tCtx.ExpectNoError(tCtx.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(tCtx, name, metav1.DeleteOptions{}))
		m.undo(name)(tCtx)
	}
}

func (m *monitoringTest) refuseCordon(tCtx ktesting.TContext) {
	refuse(tCtx, "cordon", fmt.Sprintf("object.metadata.name != %q || !has(object.spec.unschedulable) || !object.spec.unschedulable", faultNode("cordon")),
		"nodes of team blue are not cordoned on Mondays", admissionregistrationv1.Update, "nodes")
	m.startDrain(tCtx, "cordon")
}

func (m *monitoringTest) refuseStatus(tCtx ktesting.TContext) {
	refuse(tCtx, "status", fmt.Sprintf("object.metadata.name != %q || !request.userInfo.username.endsWith(':nodemaintenance-controller')", faultNode("status")),
		"only kubelets write the status of nodes", admissionregistrationv1.Update, "nodes/status")
	m.startDrain(tCtx, "status")
}

func (m *monitoringTest) refuseRequests(tCtx ktesting.TContext) {
	namespace := create(tCtx, tCtx.Client().CoreV1().Namespaces(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "quota-", Labels: map[string]string{demoLabel: "monitoring"}}}).Name
	quotaCtx := tCtx.WithNamespace(namespace)
	awaitAdmission(quotaCtx)
	create(tCtx, tCtx.Client().CoreV1().ResourceQuotas(namespace), &v1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "objects"},
		Spec:       v1.ResourceQuotaSpec{Hard: v1.ResourceList{"count/evictionrequests.coordination.k8s.io": resource.MustParse("0")}},
	})
	await(tCtx, "the quota", func(tCtx ktesting.TContext) {
		quota, err := tCtx.Client().CoreV1().ResourceQuotas(namespace).Get(tCtx, "objects", metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if len(quota.Status.Hard) == 0 {
			tCtx.Fatal("it is not counted yet")
		}
	})
	m.createPodOn(tCtx, namespace, "quota")
	m.startDrain(tCtx, "quota")
}

func (m *monitoringTest) undoQuota(tCtx ktesting.TContext) {
	m.run(tCtx, "delete", "namespace", "--selector="+demoLabel+"=monitoring", "--field-selector=metadata.name!="+tCtx.Namespace(), "--wait=false")
	m.undo("quota")(tCtx)
}

func (m *monitoringTest) refuseEvictions(tCtx ktesting.TContext) {
	refuse(tCtx, "webhook", "object.metadata.name != 'webhook'", "this pod is guarded", admissionregistrationv1.Create, "pods/eviction")
	m.createPodOn(tCtx, tCtx.Namespace(), "webhook")
	m.startDrain(tCtx, "webhook")
}

// contest uncordons nodes as soon as they are cordoned.
func (m *monitoringTest) contest(tCtx ktesting.TContext) {
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("contested-%d", i)
		m.startDrain(tCtx, name)
		await(tCtx, name+" to be cordoned", func(tCtx ktesting.TContext) {
			// Before its status is written, it counts as not cordoned yet.
			if node := getNode(tCtx, faultNode(name)); !node.Spec.Unschedulable || node.Status.MaintenanceStatus == nil {
				tCtx.Fatal("it is not")
			}
		})
		_, err := tCtx.Client().CoreV1().Nodes().Patch(tCtx, faultNode(name), types.MergePatchType, []byte(`{"spec":{"unschedulable":false}}`), metav1.PatchOptions{})
		tCtx.ExpectNoError(err)
	}
}

// surgeInVain drains the only node that the pods of a Deployment may run on.
func (m *monitoringTest) surgeInVain(tCtx ktesting.TContext) {
	pod := newScheduledPod("surge")
	pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: faultNode("surge")}
	deployment := newDeployment(pod, 1)
	deployment.Spec.ProgressDeadlineSeconds = ptr.To[int32](5)
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}
	create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), deployment)
	awaitReadyPod(tCtx, "surge")
	m.startDrain(tCtx, "surge")
}

// askDeadPicker scales five Deployments down whose picker nobody has started.
func (m *monitoringTest) askDeadPicker(tCtx ktesting.TContext) {
	names := []string{"picker-0", "picker-1", "picker-2", "picker-3", "picker-4"}
	for _, name := range names {
		deployment := newDeployment(newScheduledPod(name), 2)
		deployment.Spec.DownscalePodPicker = &v1.DownscalePodPicker{
			HTTP:       &v1.HTTPDownscalePodPicker{Host: "127.0.0.1", Port: intstr.FromInt32(localcluster.LastPickerPort)},
			MaxRetries: ptr.To[int32](0),
		}
		create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), deployment)
	}
	for _, name := range names {
		m.run(tCtx, "wait", "deployment", name, "--for=jsonpath={.status.readyReplicas}=2", "--timeout=60s")
	}
	for _, name := range names {
		m.run(tCtx, "scale", "deployment", name, "--replicas=1")
	}
}

// missDeadline requests an eviction by an interceptor that reports once. The deadline is the
// shortest that is possible, but none passes in the first minutes of a controller manager.
func (m *monitoringTest) missDeadline(tCtx ktesting.TContext) {
	pod := m.createPodOn(tCtx, tCtx.Namespace(), "late", latecomer)
	create(tCtx, tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()), &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:                   coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters:               []coordinationv1alpha1.Requester{{Name: "drain.example.com"}},
			HeartbeatDeadlineSeconds: ptr.To[int32](120),
		},
	})
}

// freezeAPIServer lets the API server stand still most of the time while evictions are requested,
// until the alert fires.
func (m *monitoringTest) freezeAPIServer(tCtx ktesting.TContext) {
	var working sync.WaitGroup
	ctx, stop := context.WithCancel(tCtx)
	defer working.Wait()
	defer stop()
	for i := range 16 {
		working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				pod := newPod(strings.Join([]string{"frozen", fmt.Sprint(i), fmt.Sprint(n)}, "-"))
				created, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).Create(ctx, pod, metav1.CreateOptions{})
				if err == nil {
					_ = createRequest(tCtx, created) // While it is frozen, calls may fail.
				}
			}
		})
	}
	defer func() { tCtx.AssertNoError(m.cluster.Signal(controlplane.APIServer, syscall.SIGCONT)) }()
	await(tCtx, "the alert EvictionControllerBehind", func(tCtx ktesting.TContext) {
		tCtx.ExpectNoError(m.cluster.Signal(controlplane.APIServer, syscall.SIGSTOP))
		time.Sleep(2 * time.Second)
		tCtx.ExpectNoError(m.cluster.Signal(controlplane.APIServer, syscall.SIGCONT))
		time.Sleep(300 * time.Millisecond)
		if found, _ := m.hasFired(map[string]string{"alertname": "EvictionControllerBehind"}); found.Labels == nil {
			tCtx.Fatal("it does not fire")
		}
	})
}
