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
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/auditlog"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

const (
	// clientInterval and evictionInterval are the pauses between two calls.
	clientInterval   = 50 * time.Millisecond
	evictionInterval = 500 * time.Millisecond

	// steadyReplicas are the replicas of the Deployment that is evicted all the time. Its budget
	// allows for one that is missing.
	steady         = "steady"
	steadyReplicas = 5

	// graceAfterRestart is how long the load balancer may take to notice a restart.
	graceAfterRestart = 2 * time.Second
)

// clientOf returns a client of the API server of one node, not by the load balancer.
func (r *rolloutTest) clientOf(tCtx ktesting.TContext, node string) kubernetes.Interface {
	tCtx.Helper()
	config := rest.CopyConfig(tCtx.RESTConfig())
	_, port, err := net.SplitHostPort(strings.TrimPrefix(config.Host, "https://"))
	tCtx.ExpectNoError(err)
	config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return r.real.Dial(ctx, node, net.JoinHostPort("127.0.0.1", port))
	}
	client, err := kubernetes.NewForConfig(config)
	tCtx.ExpectNoError(err)
	return client
}

// call is one call of a client.
type call struct {
	what string
	at   time.Time
	err  error
}

// apiClients read and write by the load balancer, without a pause and without trying again: one by
// one connection, the other by a connection for each call.
type apiClients struct {
	working sync.WaitGroup
	cancel  func(cause string)
	lock    sync.Mutex
	calls   int
	failed  []call
}

func startAPIClients(tCtx ktesting.TContext) *apiClients {
	tCtx.Helper()
	ctx := tCtx.WithCancel()
	a := &apiClients{cancel: ctx.Cancel}
	tCtx.Cleanup(func() { a.stop() })
	for name, dialsOnce := range map[string]bool{"keeps": true, "dials": false} {
		config := rest.CopyConfig(tCtx.RESTConfig())
		config.Timeout = 20 * time.Second
		if !dialsOnce {
			// Another dialer has another transport, and that is not kept.
			config.Dial = (&net.Dialer{}).DialContext
			config.NextProtos = []string{"http/1.1"}
		}
		a.working.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				client, err := kubernetes.NewForConfig(config)
				if !dialsOnce {
					config.Dial = (&net.Dialer{KeepAlive: time.Duration(i+1) * time.Second}).DialContext
				}
				a.note(ctx, "creating a client", err)
				if err == nil {
					a.use(ctx, client, name+"-"+strconv.Itoa(i))
				}
			}
		})
	}
	return a
}

// use creates an object, and expects to find what it has written.
func (a *apiClients) use(tCtx ktesting.TContext, client kubernetes.Interface, name string) {
	maps := client.CoreV1().ConfigMaps(tCtx.Namespace())
	object, err := maps.Create(tCtx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"written": "0"}}, metav1.CreateOptions{})
	if a.note(tCtx, "create", err); err != nil {
		return
	}
	for i := 1; i <= 20 && tCtx.Err() == nil; i++ {
		object.Data["written"] = strconv.Itoa(i)
		updated, err := maps.Update(tCtx, object, metav1.UpdateOptions{})
		if a.note(tCtx, "update", err); err == nil {
			object = updated
		}
		found, err := maps.Get(tCtx, name, metav1.GetOptions{})
		a.note(tCtx, "get", err)
		if err == nil && found.Data["written"] < object.Data["written"] && len(found.Data["written"]) <= len(object.Data["written"]) {
			a.note(tCtx, "get", fmt.Errorf("%s was written and %s is read", object.Data["written"], found.Data["written"]))
		}
		if err == nil {
			object = found
		}
		_, err = client.CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
		a.note(tCtx, "list", err)
		time.Sleep(clientInterval)
	}
	a.note(tCtx, "delete", maps.Delete(tCtx, name, metav1.DeleteOptions{}))
}

func (a *apiClients) note(tCtx ktesting.TContext, what string, err error) {
	if tCtx.Err() != nil {
		return // The test ends it.
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	a.calls++
	if err != nil {
		a.failed = append(a.failed, call{what, time.Now(), err})
	}
}

func (a *apiClients) stop() {
	a.cancel("the test has ended")
	a.working.Wait()
}

// evictor evicts ready pods of a Deployment through the API, one after the other.
type evictor struct {
	working  sync.WaitGroup
	cancel   func(cause string)
	lock     sync.Mutex
	accepted map[types.UID]int
	failed   []call
	// lowest is the lowest number of ready pods that was seen.
	lowest int
}

func startEvictor(tCtx ktesting.TContext) *evictor {
	tCtx.Helper()
	pod := newServer()
	pod.Name, pod.Labels = steady, map[string]string{appLabel: steady}
	create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), newDeployment(pod, steadyReplicas))
	await(tCtx, "the pods that are evicted", func(tCtx ktesting.TContext) {
		if ready, _ := readyPods(tCtx); len(ready) < steadyReplicas {
			tCtx.Fatalf("%d are ready", len(ready))
		}
	})
	createBudget(tCtx, steady, "maxUnavailable: 1", steadyReplicas)
	ctx := tCtx.WithCancel()
	e := &evictor{cancel: ctx.Cancel, accepted: map[types.UID]int{}, lowest: steadyReplicas}
	tCtx.Cleanup(func() { e.stop() })
	e.working.Go(func() { wait.UntilWithContext(ctx, func(context.Context) { e.evict(ctx) }, evictionInterval) })
	return e
}

// readyPods returns the pods that serve.
func readyPods(tCtx ktesting.TContext) ([]v1.Pod, error) {
	pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{LabelSelector: appLabel + "=" + steady})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(pod v1.Pod) bool { return !serves(&pod) }), nil
}

func (e *evictor) evict(tCtx ktesting.TContext) {
	ready, err := readyPods(tCtx)
	if err != nil || len(ready) == 0 {
		e.note(tCtx, "list", err, "")
		return
	}
	e.lock.Lock()
	e.lowest = min(e.lowest, len(ready))
	e.lock.Unlock()
	// The oldest, so that all are evicted in turn.
	slices.SortFunc(ready, func(a, b v1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	pod := ready[0]
	err = tCtx.Client().CoreV1().Pods(pod.Namespace).EvictV1(tCtx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
	e.note(tCtx, "evict", err, pod.UID)
}

func (e *evictor) note(tCtx ktesting.TContext, what string, err error, uid types.UID) {
	// A budget without room is an answer.
	if tCtx.Err() != nil || apierrors.IsTooManyRequests(err) {
		return
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	if err != nil {
		e.failed = append(e.failed, call{what, time.Now(), err})
	} else if uid != "" {
		e.accepted[uid]++
	}
}

func (e *evictor) count() int {
	e.lock.Lock()
	defer e.lock.Unlock()
	return len(e.accepted)
}

func (e *evictor) stop() {
	e.cancel("the test has ended")
	e.working.Wait()
}

// interceptedDrain is the maintenance of a node whose pods have an interceptor, which completes for
// as many pods as the test allows.
type interceptedDrain struct {
	pods        []*v1.Pod
	maintenance types.UID
	requests    map[string]types.UID

	working   sync.WaitGroup
	lock      sync.Mutex
	allowed   int
	completed map[string]time.Time // By the name of the pod, when the report was sent.
}

// startInterceptedDrain drains a node with pods of two priorities. The requests for those of the
// higher one are created when the others have left.
func startInterceptedDrain(tCtx ktesting.TContext) *interceptedDrain {
	tCtx.Helper()
	d := &interceptedDrain{requests: map[string]types.UID{}, completed: map[string]time.Time{}}
	create(tCtx, tCtx.Client().SchedulingV1().PriorityClasses(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "important"}, Value: 1000})
	for i := range 6 {
		pod := newServer()
		pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: interceptor}}
		pod.Name, pod.Labels = fmt.Sprintf("low-%d", i), map[string]string{appLabel: "low"}
		if i >= 4 {
			pod.Name, pod.Spec.PriorityClassName = fmt.Sprintf("high-%d", i), "important"
		}
		pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: firstWorker}
		d.pods = append(d.pods, create(tCtx, tCtx.Client().CoreV1().Pods(tCtx.Namespace()), pod))
	}
	await(tCtx, "the pods of the drain", func(tCtx ktesting.TContext) {
		for i, pod := range d.pods {
			if d.pods[i] = getPod(tCtx, pod); !serves(d.pods[i]) {
				tCtx.Fatalf("%s is not ready", pod.Name)
			}
		}
	})
	nm := newMaintenance(firstWorker, v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
		{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{firstWorker}}}})
	nm.Spec.DrainPlan = []v1.DrainPlanEntry{
		{PodPriority: 999, PodType: v1.PodTypeDefault},
		{PodPriority: 1000, PodType: v1.PodTypeDefault},
	}
	d.maintenance = create(tCtx, tCtx.Client().CoordinationV1alpha1().NodeMaintenances(), nm).UID
	ctx := tCtx.WithCancel()
	d.working.Go(func() { wait.UntilWithContext(ctx, func(context.Context) { d.intercept(ctx) }, tick) })
	tCtx.Cleanup(func() {
		ctx.Cancel("the test has ended")
		d.working.Wait()
	})
	return d
}

// intercept reports once for all pods. It fails where requests are not served, and goes on later.
func (d *interceptedDrain) intercept(tCtx ktesting.TContext) {
	requests, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	if err != nil {
		return
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	for i := range requests.Items {
		request := &requests.Items[i]
		pod := request.Spec.Target.Pod.Name
		d.requests[pod] = request.UID
		entry := interceptorStatus(request, interceptor)
		if !isActive.reached(request) || entry.CompletionTime != nil {
			continue
		}
		completes := entry.StartTime != nil && (len(d.completed) < d.allowed || !d.completed[pod].IsZero())
		if completes && d.completed[pod].IsZero() {
			d.completed[pod] = time.Now()
		}
		_ = report(tCtx, request, completes) // Again at the next tick.
	}
}

// complete lets the interceptor complete for so many pods in all, and waits until they have left.
func (d *interceptedDrain) complete(tCtx ktesting.TContext, count int) {
	tCtx.Helper()
	d.lock.Lock()
	d.allowed = count
	d.lock.Unlock()
	await(tCtx, fmt.Sprintf("%d pods to leave", count), func(tCtx ktesting.TContext) {
		if left := d.left(tCtx); len(left) != len(d.pods)-count {
			tCtx.Fatalf("%d are left", len(left))
		}
	})
}

// left returns the pods that are there.
func (d *interceptedDrain) left(tCtx ktesting.TContext) []*v1.Pod {
	tCtx.Helper()
	pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	there := sets.New[types.UID]()
	for _, pod := range pods.Items {
		there.Insert(pod.UID)
	}
	return slices.DeleteFunc(slices.Clone(d.pods), func(pod *v1.Pod) bool { return !there.Has(pod.UID) })
}

// expectSame checks that the maintenance and the requests are those from before the rollback.
func (d *interceptedDrain) expectSame(tCtx ktesting.TContext) {
	tCtx.Helper()
	nm, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Get(tCtx, firstWorker, metav1.GetOptions{})
	tCtx.ExpectNoError(err)
	if nm.UID != d.maintenance {
		tCtx.Errorf("the maintenance is %s, not %s", nm.UID, d.maintenance)
	}
	requests, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err)
	there := sets.New[types.UID]()
	for _, request := range requests.Items {
		there.Insert(request.UID)
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	for pod, uid := range d.requests {
		if !there.Has(uid) {
			tCtx.Errorf("the request for pod %s is lost", pod)
		}
	}
}

// expectEvidence checks what clients, budgets and audit logs have seen from the beginning.
func (r *rolloutTest) expectEvidence(tCtx ktesting.TContext) string {
	r.api.stop()
	r.evictor.stop()
	inRestarts := r.expectFailuresInRestarts(tCtx, slices.Concat(r.api.failed, r.evictor.failed, r.drainFailures))
	if r.evictor.lowest < steadyReplicas-1 {
		tCtx.Errorf("only %d pods were ready, the budget wants %d", r.evictor.lowest, steadyReplicas-1)
	}
	accepted := r.readAccepted(tCtx)
	pods := sets.New[string]()
	for who, times := range accepted {
		pods.Insert(who.pod)
		if len(times) > 1 {
			tCtx.Errorf("%s has evicted pod %s %d times: %v", who.client, who.pod, len(times), times)
		}
	}
	r.drain.expectInTurn(tCtx, accepted)
	return fmt.Sprintf("%d calls, %d failed, all within the %d restarts of API servers; %d pods evicted, each once; never less than %d of %d ready",
		r.api.calls, inRestarts, len(r.restarts), pods.Len(), r.evictor.lowest, steadyReplicas)
}

// expectFailuresInRestarts fails for calls that failed at other times, and returns the number of the
// others.
func (r *rolloutTest) expectFailuresInRestarts(tCtx ktesting.TContext, failed []call) int {
	tCtx.Helper()
	for _, c := range failed {
		i := slices.IndexFunc(r.restarts, func(p period) bool { return c.at.After(p.from) && c.at.Before(p.to.Add(graceAfterRestart)) })
		if i < 0 || apierrors.IsNotFound(c.err) {
			tCtx.Errorf("%s %s failed: %v", c.at.Format(time.StampMilli), c.what, c.err)
			continue
		}
		tCtx.Logf("%s %s failed while %s: %v", c.at.Format(time.StampMilli), c.what, r.restarts[i].what, c.err)
	}
	return len(failed)
}

// evictedBy is what one client has done to one pod. The names of pods are never used again.
type evictedBy struct{ client, pod string }

// controller is the client that evicts the pods of a drain, as audit logs have it.
const controller = "kube-controller-manager"

// readAccepted returns the times of the evictions that API servers accepted.
func (r *rolloutTest) readAccepted(tCtx ktesting.TContext) map[evictedBy][]time.Time {
	tCtx.Helper()
	accepted := map[evictedBy][]time.Time{}
	for _, node := range []string{firstPlane, secondPlane} {
		events, err := auditlog.ReadFile(r.real.AuditLog(node))
		tCtx.ExpectNoError(err)
		for _, event := range events {
			var status metav1.Status
			if event.Stage != auditv1.StageResponseComplete || event.ResponseObject == nil ||
				json.Unmarshal(event.ResponseObject.Raw, &status) != nil || status.Status != metav1.StatusSuccess {
				continue
			}
			client, _, _ := strings.Cut(event.UserAgent, "/")
			who := evictedBy{client, event.ObjectRef.Name}
			accepted[who] = append(accepted[who], event.RequestReceivedTimestamp.Time)
		}
	}
	return accepted
}

// expectInTurn checks that each pod was evicted after its interceptor had completed, and those of
// the higher priority after the others.
func (d *interceptedDrain) expectInTurn(tCtx ktesting.TContext, accepted map[evictedBy][]time.Time) {
	tCtx.Helper()
	d.lock.Lock()
	defer d.lock.Unlock()
	var lastLow time.Time
	for _, pod := range d.pods {
		times := accepted[evictedBy{controller, pod.Name}]
		if len(times) == 0 {
			tCtx.Errorf("pod %s has left, and no API server has accepted its eviction by the %s", pod.Name, controller)
			continue
		}
		if completed := d.completed[pod.Name]; completed.IsZero() || times[0].Before(completed) {
			tCtx.Errorf("pod %s was evicted at %s, its interceptor completed at %s", pod.Name, times[0], completed)
		}
		if pod.Spec.PriorityClassName == "" {
			if times[0].After(lastLow) {
				lastLow = times[0]
			}
		} else if times[0].Before(lastLow) {
			tCtx.Errorf("pod %s was evicted at %s, before those of the lower priority had left", pod.Name, times[0])
		}
	}
}
