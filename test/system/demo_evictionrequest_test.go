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
	"cmp"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

const (
	// requester requests the evictions.
	requester = "drain.example.com"

	// interceptorWork is how long the example interceptor works on a pod.
	interceptorWork = 8 * time.Second

	// absent is an interceptor that does not run: it is active until the request is canceled.
	absent = "absent.example.com"

	// readingTime is the pause in which a reader can see what blocks a pod.
	readingTime = 3 * time.Second
)

// eviction is one pod whose eviction is requested, and the expected outcome.
type eviction struct {
	demo      *demo
	requester *evictionrequest.Requester

	name, story, expected string
	play                  func(e *eviction, tCtx ktesting.TContext)

	// shown is the last line that was printed. The other fields are set at the end.
	shown, outcome string
	took           time.Duration
	err            error
}

// TestDemoEvictionRequest shows the parts of a drain: a pod that is intercepted before it is
// evicted, a pod that a budget blocks until the budget is deleted, and a request that is canceled.
func TestDemoEvictionRequest(t *testing.T) { testDemoEvictionRequest(ktesting.Init(t)) }
func testDemoEvictionRequest(tCtx ktesting.TContext) {
	tCtx, d := newDemo(tCtx, "evictionrequest")
	requester, err := evictionrequest.NewRequester(tCtx.Client(), requester, evictionrequest.RequesterOptions{})
	tCtx.ExpectNoError(err)
	tCtx = d.startInterceptor(tCtx, interceptor, interceptorWork)
	evictions := []*eviction{
		{name: "intercepted", story: "an interceptor prepares the pod, then it is evicted", expected: "Evicted", play: (*eviction).playIntercepted},
		{name: "protected", story: "a PodDisruptionBudget forbids it, until it is deleted", expected: "Evicted", play: (*eviction).playProtected},
		{name: "canceled", story: "the last requester withdraws, the pod stays", expected: "Canceled", play: (*eviction).playCanceled},
	}
	d.say("The eviction of three pods in namespace %s is requested.\n", tCtx.Namespace())
	var playing sync.WaitGroup
	for _, e := range evictions {
		e.demo, e.requester = d, requester
		playing.Go(func() { e.run(tCtx) })
	}
	playing.Wait()
	d.say("\n%s", summarize(evictions))
	for _, e := range evictions {
		tCtx.AssertNoError(e.err, "%s", e.name)
	}
	if d.stays && !tCtx.Failed() {
		d.say("While the cluster is up:\n  %s --kubeconfig %s --namespace %s get er -o wide", d.cluster.Kubectl(), d.cluster.Kubeconfig(), tCtx.Namespace())
	}
}

func (e *eviction) run(tCtx ktesting.TContext) {
	start := time.Now()
	tCtx, finalize := tCtx.WithError(&e.err)
	defer func() {
		finalize()
		e.took = time.Since(start)
		if e.err != nil {
			e.show("failed: " + e.err.Error())
		}
	}()
	e.play(e, tCtx)
	if e.outcome != e.expected {
		tCtx.Fatalf("the request ended as %s, must be %s", e.outcome, e.expected)
	}
}

// playIntercepted fails unless the interceptor reports an ETA and the pod is evicted.
func (e *eviction) playIntercepted(tCtx ktesting.TContext) {
	pod := e.start(tCtx, func() {
		create(tCtx, tCtx.Client().CoreV1().Pods(tCtx.Namespace()), newScheduledPod(e.name, interceptor))
	})
	sawETA := false
	e.follow(tCtx, pod, state{"finished", func(request *coordinationv1alpha1.EvictionRequest) bool {
		sawETA = sawETA || interceptorStatus(request, interceptor).ExpectedFinishTime != nil
		return finished.reached(request)
	}})
	if !sawETA {
		tCtx.Fatal("the interceptor never reported an ETA")
	}
	awaitEvicted(tCtx, pod)
}

// playProtected fails unless the budget blocks the eviction until the budget is deleted. The
// strategy of the Deployment allows no surge.
func (e *eviction) playProtected(tCtx ktesting.TContext) {
	pod := e.start(tCtx, func() {
		deployment := newDeployment(newScheduledPod(e.name), 1)
		deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), deployment)
		createBudget(tCtx, e.name, "maxUnavailable: 0", 1)
	})
	e.follow(tCtx, pod, isBlocked)
	expectStays(tCtx, pod, 0)
	pause(tCtx, readingTime)
	e.show("$ kubectl delete poddisruptionbudget " + e.name)
	e.demo.run(tCtx, "delete", "poddisruptionbudget", e.name)
	e.follow(tCtx, pod, finished)
	awaitEvicted(tCtx, pod)
}

// playCanceled fails unless the pod stays when its request is canceled.
func (e *eviction) playCanceled(tCtx ktesting.TContext) {
	pod := e.start(tCtx, func() { create(tCtx, tCtx.Client().CoreV1().Pods(tCtx.Namespace()), newScheduledPod(e.name, absent)) })
	e.follow(tCtx, pod, state{"intercepted", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return len(request.Status.ActiveInterceptors) > 0
	}})
	pause(tCtx, readingTime)
	e.show(requester + " withdraws")
	tCtx.ExpectNoError(e.requester.Withdraw(tCtx, pod))
	e.follow(tCtx, pod, finished)
	expectStays(tCtx, pod, 0)
}

// start creates the pod, and the request for its eviction when it is ready.
func (e *eviction) start(tCtx ktesting.TContext, create func()) *v1.Pod {
	tCtx.Helper()
	e.show("starting the pod")
	create()
	pod := awaitReadyPod(tCtx, e.name)
	e.show(requester + " requests the eviction of pod " + pod.Name)
	_, err := e.requester.Request(tCtx, pod)
	tCtx.ExpectNoError(err)
	return pod
}

// follow prints every state of the request until it has reached the wanted one.
func (e *eviction) follow(tCtx ktesting.TContext, pod *v1.Pod, want state) {
	tCtx.Helper()
	awaitRequest(tCtx, pod, state{want.name, func(request *coordinationv1alpha1.EvictionRequest) bool {
		e.show(describe(request))
		if finished.reached(request) {
			e.outcome = string(evictionrequest.StateOf(request))
		}
		return want.reached(request)
	}})
}

// show prints a line for each change.
func (e *eviction) show(line string) {
	if e.shown != line {
		e.shown = line
		e.demo.say("%5.1fs  %-12s %s", time.Since(e.demo.began).Seconds(), e.name, line)
	}
}

var finished = state{"finished", func(request *coordinationv1alpha1.EvictionRequest) bool {
	return isEvicted.reached(request) || isCanceled.reached(request)
}}

// describe returns the state of a request, with the message or the active interceptor.
func describe(request *coordinationv1alpha1.EvictionRequest) string {
	name := string(evictionrequest.StateOf(request))
	for _, condition := range request.Status.Conditions {
		if condition.Status == "True" && condition.Type == name {
			return name + ": " + condition.Message
		}
	}
	if active := strings.Join(request.Status.ActiveInterceptors, ","); active != "" {
		name += " by " + active
		if eta := interceptorStatus(request, active).ExpectedFinishTime; eta != nil {
			name += ", ETA " + eta.Format(time.TimeOnly)
		}
	}
	return name
}

// summarize returns a table with the outcomes of the evictions.
func summarize(evictions []*eviction) string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POD\tWHAT MUST HAPPEN\tENDED AS\tTOOK\tRESULT")
	for _, e := range evictions {
		result := "ok"
		if e.err != nil {
			result = "FAILED: " + e.err.Error()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.1fs\t%s\n", e.name, e.story, cmp.Or(e.outcome, "-"), e.took.Seconds(), result)
	}
	table.Flush() // A builder never fails.
	return out.String()
}
