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
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
	cmdtesting "k8s.io/kubectl/pkg/cmd/testing"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// updateEnv, if set to true, makes the tests write the golden files.
const updateEnv = "UPDATE_GOLDEN"

// testNow is the current time in all tests.
var testNow = time.Date(2026, 11, 21, 13, 2, 25, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(testNow.Add(-d)) }

// maintenanceStory builds a NodeMaintenance.
type maintenanceStory struct {
	*coordinationv1alpha1.NodeMaintenance
}

func newMaintenance(name string, stage coordinationv1alpha1.NodeMaintenanceStage, nodes ...string) maintenanceStory {
	return maintenanceStory{&coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "7", Generation: 1,
			Finalizers: []string{coordinationv1alpha1.NodeMaintenanceFinalizer},
		},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{NodeSelector: nodeselection.ByName(nodes), Stage: stage},
	}}
}

func (m maintenanceStory) reason(reason string) maintenanceStory {
	m.Spec.Reason = reason
	return m
}

// started sets the status that the controller writes when it starts the stage.
func (m maintenanceStory) started(before time.Duration) maintenanceStory {
	m.Status.ObservedGeneration = m.Generation
	m.Status.SelectedNodes = int32(len(m.Spec.NodeSelector.NodeSelectorTerms))
	m.Status.StageStatuses = append(m.Status.StageStatuses, coordinationv1alpha1.StageStatus{Name: m.Spec.Stage, StartTimestamp: ptr.To(ago(before))})
	return m
}

func (m maintenanceStory) draining(drain coordinationv1alpha1.DrainStatus) maintenanceStory {
	m.Status.DrainStatus = drain
	return m
}

func (m maintenanceStory) condition(status metav1.ConditionStatus, reason, message string) maintenanceStory {
	m.Status.Conditions = []metav1.Condition{{
		Type: string(coordinationv1alpha1.NodeMaintenanceConditionDrained), Status: status, Reason: reason, Message: message, ObservedGeneration: m.Generation,
	}}
	return m
}

func (m maintenanceStory) drained() maintenanceStory {
	m.Status.DrainStatus = coordinationv1alpha1.DrainStatus{DrainMessage: "Drained", DrainedNodes: int32(len(m.Spec.NodeSelector.NodeSelectorTerms))}
	return m.condition(metav1.ConditionTrue, coordinationv1alpha1.NodeMaintenanceReasonDrained, "No pod is left.")
}

func (m maintenanceStory) completed() maintenanceStory {
	m.Finalizers = nil
	return m
}

// newNode returns a schedulable node.
func newNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// drainingNode returns a node in the stage Drain.
func drainingNode(name string, pending, evicting int32, message string) *corev1.Node {
	node := newNode(name)
	node.Spec.Unschedulable = true
	node.Status.MaintenanceStatus = &corev1.MaintenanceStatus{
		DrainTargets:               []corev1.DrainPlanEntry{{PodType: corev1.PodTypeDefault, PodPriority: 1000000000}},
		DrainMessage:               message,
		PodsPendingEvictionRequest: pending, ActiveEvictionRequests: evicting,
	}
	drained := corev1.ConditionFalse
	if pending+evicting == 0 {
		drained = corev1.ConditionTrue
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDrained, Status: drained}}
	return node
}

// podStory builds a pod, and the request for its eviction.
type podStory struct {
	*corev1.Pod
	request *coordinationv1alpha1.EvictionRequest
}

func newPod(name, node string, interceptors ...string) podStory {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-of-" + name),
			Labels:          map[string]string{"app": strings.Split(name, "-")[0]},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "set", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node, Priority: ptr.To[int32](0)},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, interceptor := range interceptors {
		pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, corev1.EvictionInterceptor{Name: interceptor})
	}
	return podStory{Pod: pod}
}

// asked adds an EvictionRequest, whose first interceptor is active.
func (p podStory) asked() podStory {
	p.request = &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: string(p.UID)},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: p.Name, UID: string(p.UID)}},
			Requesters: []coordinationv1alpha1.Requester{{Name: coordinationv1alpha1.NodeMaintenanceRequester}},
		},
	}
	names := []string{}
	for _, interceptor := range p.Spec.EvictionInterceptors {
		names = append(names, interceptor.Name)
	}
	for _, name := range append(names, coordinationv1alpha1.EvictionInterceptorImperative) {
		p.request.Status.TargetInterceptors = append(p.request.Status.TargetInterceptors, coordinationv1alpha1.Interceptor{Name: name})
		p.request.Status.Interceptors = append(p.request.Status.Interceptors, coordinationv1alpha1.InterceptorStatus{Name: name})
	}
	p.request.Status.ActiveInterceptors = []string{p.request.Status.TargetInterceptors[0].Name}
	p.request.Status.ActivationTime = ptr.To(ago(4 * time.Minute))
	return p
}

// reported sets the heartbeat and ETA of the first interceptor.
func (p podStory) reported(before, remaining time.Duration) podStory {
	entry := &p.request.Status.Interceptors[0]
	entry.HeartbeatTime, entry.ExpectedFinishTime = ptr.To(ago(before)), ptr.To(ago(-remaining))
	return p
}

// saying sets the message of the first interceptor.
func (p podStory) saying(message string) podStory {
	p.request.Status.Interceptors[0].Message = message
	return p
}

func (p podStory) requestCondition(conditionType coordinationv1alpha1.EvictionRequestConditionType, reason string, before time.Duration) podStory {
	p.request.Status.Conditions = append(p.request.Status.Conditions, metav1.Condition{
		Type: string(conditionType), Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: ago(before),
	})
	return p
}

func (p podStory) blocked() podStory {
	return p.requestCondition(coordinationv1alpha1.EvictionRequestConditionBlocked, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, 3*time.Minute)
}

func (p podStory) forbidding() podStory {
	p.request.Status.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyForbid
	return p
}

func (p podStory) terminatingSince(before time.Duration) podStory {
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(ago(before)), ptr.To[int64](0)
	// The tracker of the fake client refuses deleted objects without a finalizer.
	p.Finalizers = []string{"example.com/keep"}
	return p
}

func newBudget(name, app string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: 3, DesiredHealthy: 3 - allowed},
	}
}

// newDeployment selects the pods of an app. Its strategy allows a surge of one pod.
func newDeployment(app string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: ptr.To(intstr.FromString("25%")), MaxSurge: ptr.To(intstr.FromString("25%")),
			}},
		},
	}
}

// objectsOf returns the API objects of stories.
func objectsOf(stories ...any) []runtime.Object {
	var all []runtime.Object
	for _, story := range stories {
		switch s := story.(type) {
		case maintenanceStory:
			all = append(all, s.NodeMaintenance)
		case podStory:
			all = append(all, s.Pod)
			if s.request != nil {
				all = append(all, s.request)
			}
		case runtime.Object:
			all = append(all, s)
		default:
			panic(fmt.Sprintf("no object: %T", story))
		}
	}
	return all
}

// snapshotOf returns a snapshot without a server, with the status that the controller publishes.
func snapshotOf(stories ...any) *podSnapshot {
	s := &podSnapshot{}
	var nms []*coordinationv1alpha1.NodeMaintenance
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	var budgets []*policyv1.PodDisruptionBudget
	var nodeBudgets []*coordinationv1alpha1.NodeMaintenanceBudget
	for _, object := range objectsOf(stories...) {
		switch o := object.(type) {
		case *coordinationv1alpha1.NodeMaintenance:
			nms = append(nms, o)
		case *corev1.Node:
			nodes = append(nodes, o)
		case *corev1.Pod:
			pods = append(pods, o)
		case *coordinationv1alpha1.EvictionRequest:
			s.addRequest(o)
		case *policyv1.PodDisruptionBudget:
			budgets = append(budgets, o)
		case *appsv1.Deployment:
			s.addDeployment(o)
		case *coordinationv1alpha1.NodeMaintenanceBudget:
			nodeBudgets = append(nodeBudgets, o)
		}
	}
	s.maintenances, s.nodes, s.nodeBudgets = sorted(nms), sorted(nodes), sorted(nodeBudgets)
	s.setPods(pods)
	s.setBudgets(budgets)
	s.publish()
	return s
}

// viewsIn returns the views of "status" and "watch".
func viewsIn(s *podSnapshot) []*view { return viewsOf(&s.snapshot) }

// publish sets the status of maintenances in stage Drain as the controller does: it counts pods and
// publishes blockers. It skips maintenances that are not started or are drained, and those whose
// nodes have no pods: a test has set their status.
func (s *podSnapshot) publish() {
	for _, nm := range s.maintenances {
		if nm.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain || nm.Status.ObservedGeneration != nm.Generation || isDrained(nm) {
			continue
		}
		var blockers []maintenance.Blocker
		var pending, evicting, blocked int32
		hasPods := false
		for _, node := range s.selectedNodes(nm.Spec.NodeSelector) {
			if _, known := s.pods[node.Name]; known {
				hasPods = true
				blockers = append(blockers, s.publishNode(node)...)
			}
			if status := node.Status.MaintenanceStatus; status != nil {
				pending, evicting, blocked = pending+status.PodsPendingEvictionRequest, evicting+status.ActiveEvictionRequests, blocked+status.BlockedPods
			}
		}
		if !hasPods {
			continue
		}
		drain := &nm.Status.DrainStatus
		drain.PodsPendingEvictionRequest, drain.ActiveEvictionRequests, drain.BlockedPods = pending, evicting, blocked
		drain.DrainMessage = cmp.Or(drain.DrainMessage, "Draining")
		drain.Blockers, drain.BlockerCount = maintenance.ListedBlockers(maintenance.GroupBlockers(blockers))
	}
}

// publishNode counts the pods of a node, and returns what delays their eviction.
func (s *podSnapshot) publishNode(node *corev1.Node) []maintenance.Blocker {
	if node.Status.MaintenanceStatus == nil {
		node.Status.MaintenanceStatus = &corev1.MaintenanceStatus{}
	}
	status := node.Status.MaintenanceStatus
	status.PodsPendingEvictionRequest, status.ActiveEvictionRequests, status.BlockedPods = 0, 0, 0
	var blockers []maintenance.Blocker
	for _, pod := range s.pods[node.Name] {
		request := s.requests[string(pod.UID)]
		if request == nil || evictionrequest.IsFinished(request.Status.Conditions) {
			status.PodsPendingEvictionRequest++
		} else {
			status.ActiveEvictionRequests++
		}
		if blocker, held := maintenance.BlockerOf(pod, request, s.budgetsOf, testNow); held {
			blockers = append(blockers, blocker)
			if blocker.Cause.Blocked() {
				status.BlockedPods++
			}
		}
	}
	return blockers
}

// server is a fake API server, with the environment of the commands that use it.
type server struct {
	*fake.Clientset
	out, errOut *bytes.Buffer
	environment *environment
	clock       *fixedClock
	// ctx is the context of the commands. end cancels it with a cause.
	ctx     context.Context
	end     context.CancelCauseFunc
	failure string
	code    int
}

// newServer returns a server that sets the name, UID and generation of new maintenances.
func newServer(t *testing.T, stories ...any) *server {
	t.Helper()
	published := snapshotOf(stories...)
	client := fake.NewClientset(objectsOf(stories...)...)
	client.Resources = []*metav1.APIResourceList{{
		GroupVersion: coordinationv1alpha1.SchemeGroupVersion.String(),
		APIResources: []metav1.APIResource{{Name: "evictionrequests"}, {Name: resource}},
	}}
	client.PrependReactor("create", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		created := action.(clienttesting.CreateAction).GetObject().(*coordinationv1alpha1.NodeMaintenance)
		if created.Name == "" {
			created.Name = created.GenerateName + "x7k2p"
		}
		if len(action.(clienttesting.CreateActionImpl).CreateOptions.DryRun) > 0 {
			return true, created, nil
		}
		created.UID, created.Generation = types.UID("uid-of-"+created.Name), 1
		if len(published.requests) > 0 {
			// The controller acts immediately.
			started := maintenanceStory{created}.started(0)
			published.maintenances = []*coordinationv1alpha1.NodeMaintenance{started.NodeMaintenance}
			published.publish()
		}
		return false, nil, nil
	})
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	clock := &fixedClock{FakeClock: testingclock.NewFakeClock(testNow)}
	factory := cmdtesting.NewTestFactory()
	t.Cleanup(factory.Cleanup)
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	return &server{Clientset: client, out: out, errOut: errOut, clock: clock, ctx: ctx, end: end, environment: &environment{
		IOStreams: streams, factory: factory, clock: clock,
		client: func() (kubernetes.Interface, error) { return client, nil },
	}}
}

// fixedClock always returns the same time. Its timers and tickers fire 100 times faster.
type fixedClock struct {
	*testingclock.FakeClock
	// looked is called when a command has shown the state and starts to wait.
	looked func()
}

func (c *fixedClock) NewTimer(d time.Duration) clock.Timer {
	if c.looked != nil {
		c.looked()
	}
	return clock.RealClock{}.NewTimer(d / 100)
}

func (c *fixedClock) NewTicker(d time.Duration) clock.Ticker {
	return clock.RealClock{}.NewTicker(d / 100)
}

// whenLooked applies a change once the next command has shown the state.
func (s *server) whenLooked(change func()) {
	s.clock.looked = sync.OnceFunc(change)
}

// run runs a command, and returns its output. It stores the error and the exit code.
func (s *server) run(t *testing.T, args ...string) string {
	t.Helper()
	s.out.Reset()
	s.errOut.Reset()
	s.failure, s.code = "", 0
	type exit struct{}
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		s.failure, s.code = message, code
		panic(exit{})
	})
	defer cmdutil.DefaultBehaviorOnFatal()
	func() {
		defer func() {
			if r := recover(); r != nil {
				if _, exited := r.(exit); !exited {
					panic(r)
				}
			}
		}()
		cmd := newCmdMaintenance(s.environment)
		cmd.SetArgs(args)
		cmd.SetOut(s.out)
		cmd.SetErr(s.errOut)
		if err := cmd.ExecuteContext(s.ctx); err != nil {
			s.failure, s.code = err.Error(), 1
		}
	}()
	return s.out.String()
}

// mustRun runs a command that must succeed.
func (s *server) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out := s.run(t, args...)
	if s.code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, s.code, s.failure)
	}
	return out
}

// writes returns the verbs and resources of all requests that are not reads, nor create something in a dry run.
func (s *server) writes() []string {
	var writes []string
	for _, action := range s.Actions() {
		if create, ok := action.(clienttesting.CreateActionImpl); ok && len(create.CreateOptions.DryRun) > 0 {
			continue
		}
		switch action.GetVerb() {
		case "get", "list", "watch":
		default:
			writes = append(writes, action.GetVerb()+" "+action.GetResource().Resource)
		}
	}
	return writes
}

// forbid revokes the permission to list or watch a resource.
func (s *server) forbid(name string) {
	s.PrependReactor("list", name, func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no permission"))
	})
	s.PrependWatchReactor(name, func(clienttesting.Action) (bool, watch.Interface, error) {
		panic("watches " + name + " without the permission")
	})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	for _, line := range strings.Split(got, "\n") {
		if length := utf8.RuneCountInString(line); length > defaultWidth && !strings.Contains(name, "wide") {
			t.Errorf("a line has %d columns: %q", length, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("blanks at the end of %q", line)
		}
	}
	file := filepath.Join("testdata", name+".txt")
	if os.Getenv(updateEnv) == "true" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want, +got):\n%s\nset %s=true to update it", file, diff, updateEnv)
	}
}
