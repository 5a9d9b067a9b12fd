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

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/features"
)

// allGates are the gates of all interceptors.
var allGates = []featuregate.Feature{
	features.EvictionRequestAPI, features.DeploymentPodSurge, features.StatefulSetEvictionPacing,
	features.DeclarativeNodeMaintenance, features.NodeMaintenanceAwareDaemonSet,
}

func TestWhyAbsent(t *testing.T) {
	const (
		deployment  = "deployment.apps.k8s.io"
		replicaSet  = "replicaset.apps.k8s.io"
		statefulSet = "statefulset.apps.k8s.io"
		daemonSet   = "daemonset.apps.k8s.io"
		autoscaler  = "horizontalpodautoscaler.autoscaling.k8s.io"

		unserved = "No controller of the kube-controller-manager implements this interceptor yet."
	)
	off := func(gate string) string {
		return "The feature gate " + gate + " of the kube-controller-manager is off."
	}
	disabled := func(controller string) string {
		return "The " + controller + " is disabled by --controllers of the kube-controller-manager."
	}
	tests := map[string]struct {
		gates       []featuregate.Feature
		controllers []string
		want        map[string]string
	}{
		"all on": {gates: allGates, controllers: []string{"*"}, want: map[string]string{autoscaler: unserved}},
		"all off": {controllers: []string{"*"}, want: map[string]string{
			deployment: off("DeploymentPodSurge"), replicaSet: off("DeploymentPodSurge"), statefulSet: off("StatefulSetEvictionPacing"),
			daemonSet: off("NodeMaintenanceAwareDaemonSet"), autoscaler: unserved,
		}},
		"no Deployments": {gates: allGates, controllers: []string{"*", "-deployment-controller"}, want: map[string]string{
			deployment: disabled("deployment-controller"), autoscaler: unserved,
		}},
		"only EvictionRequests": {gates: allGates, controllers: []string{"evictionrequest-controller"}, want: map[string]string{
			deployment: disabled("deployment-controller"), replicaSet: disabled("replicaset-controller"), statefulSet: disabled("statefulset-controller"),
			daemonSet: disabled("daemonset-controller"), autoscaler: unserved,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setGates(t, test.gates...)
			controllerContext, _ := withClients(asTheyAre)
			controllerContext.ComponentConfig.Generic.Controllers = test.controllers
			got := map[string]string{}
			for _, interceptor := range workloadInterceptors {
				if reason := interceptor.whyAbsent(controllerContext); reason != "" {
					got[interceptor.name] = reason
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("absent interceptors (-want +got):\n%s", diff)
			}
		})
	}
}

// requestFor returns a request in which this interceptor is active.
func requestFor(interceptor string) *coordinationv1alpha1.EvictionRequest {
	uid := strings.ReplaceAll(interceptor, ".", "-")
	return &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: "request"},
		Spec: coordinationv1alpha1.EvictionRequestSpec{
			Target:     coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: "web-0", UID: uid}},
			Requesters: []coordinationv1alpha1.Requester{{Name: "drainer.example.com"}},
		},
		Status: coordinationv1alpha1.EvictionRequestStatus{
			TargetInterceptors: []coordinationv1alpha1.Interceptor{{Name: interceptor}},
			ActiveInterceptors: []string{interceptor},
			ActivationTime:     &metav1.Time{Time: time.Now().Truncate(time.Second)},
			Interceptors:       []coordinationv1alpha1.InterceptorStatus{{Name: interceptor}},
		},
	}
}

// Checks the messages of the stand-ins, and whether they pass the pods on.
func TestAbsentInterceptors(t *testing.T) {
	tests := map[string]struct {
		gates       []featuregate.Feature
		controllers []string
		interceptor string
		want        string
		open        bool
	}{
		"gate off":      {interceptor: "deployment.apps.k8s.io", want: "The feature gate DeploymentPodSurge of the kube-controller-manager is off."},
		"no controller": {interceptor: "horizontalpodautoscaler.autoscaling.k8s.io", want: "No controller of the kube-controller-manager implements this interceptor yet."},
		"disabled": {
			gates: allGates, controllers: []string{"*", "-statefulset-controller"}, interceptor: "statefulset.apps.k8s.io",
			want: "The statefulset-controller is disabled by --controllers of the kube-controller-manager.",
		},
		// No other interceptor could take over.
		"DaemonSets switched off": {
			gates: allGates, controllers: []string{"*", "-daemonset-controller"}, interceptor: "daemonset.apps.k8s.io", open: true,
			want: "The daemonset-controller is disabled by --controllers of the kube-controller-manager.",
		},
		"DaemonSets with their gate off": {interceptor: "daemonset.apps.k8s.io", open: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setGates(t, test.gates...)
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(requestFor(test.interceptor))
				controllerContext, _ := withClients(asTheyAre)
				controllerContext.InformerFactory = informers.NewSharedInformerFactory(client, 0)
				if test.controllers != nil {
					controllerContext.ComponentConfig.Generic.Controllers = test.controllers
				}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				for _, interceptor := range workloadInterceptors {
					reason := interceptor.whyAbsent(controllerContext)
					if interceptor.name != test.interceptor || reason == "" || interceptor.exclusive && !slices.Contains(test.gates, interceptor.gate) {
						continue
					}
					run, err := interceptor.standIn(controllerContext, client, reason)
					if err != nil {
						t.Fatalf("creating the stand-in: %v", err)
					}
					running.Go(func() { run(ctx) })
				}
				controllerContext.InformerFactory.Start(ctx.Done())
				time.Sleep(30 * time.Second)
				synctest.Wait()
				request, err := client.CoordinationV1alpha1().EvictionRequests("default").Get(ctx, requestFor(test.interceptor).Name, metav1.GetOptions{})
				if err != nil {
					t.Fatalf("reading the request: %v", err)
				}
				entry := request.Status.Interceptors[0]
				if !strings.HasSuffix(entry.Message, test.want) || entry.Message == "" != (test.want == "") {
					t.Errorf("the message is %q, want %q", entry.Message, test.want)
				}
				if (entry.CompletionTime == nil) != test.open {
					t.Errorf("the turn is open: %t, want %t", entry.CompletionTime == nil, test.open)
				}
				stop()
				running.Wait()
				controllerContext.InformerFactory.Shutdown()
			})
		})
	}
}

// runStandIn runs the stand-in of a controller whose turns are not passed on, until stop is called.
func runStandIn(t *testing.T, client *fake.Clientset) (stop func()) {
	t.Helper()
	controllerContext, _ := withClients(asTheyAre)
	controllerContext.InformerFactory = informers.NewSharedInformerFactory(client, 0)
	i := slices.IndexFunc(workloadInterceptors, func(i workloadInterceptor) bool { return i.exclusive })
	run, err := workloadInterceptors[i].standIn(controllerContext, client, "Switched off.")
	if err != nil {
		t.Fatalf("creating the stand-in: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	controllerContext.InformerFactory.Start(ctx.Done())
	return func() {
		cancel()
		running.Wait()
		controllerContext.InformerFactory.Shutdown()
	}
}

// TestStandInWritesOnce counts the writes of a stand-in for pods that it does not pass on over
// hours: the message does not change, and a cluster has a pod of each DaemonSet on each node.
func TestStandInWritesOnce(t *testing.T) {
	setGates(t, allGates...)
	synctest.Test(t, func(t *testing.T) {
		const pods = 25
		var requests []runtime.Object
		for i := range pods {
			request := requestFor("daemonset.apps.k8s.io")
			request.Name = fmt.Sprintf("pod-%d", i)
			request.UID, request.Spec.Target.Pod.UID = types.UID(request.Name), request.Name
			requests = append(requests, request)
		}
		client := fake.NewClientset(requests...)
		stop := runStandIn(t, client)
		time.Sleep(12 * time.Hour)
		synctest.Wait()
		writes := 0
		for _, action := range client.Actions() {
			if action.Matches("patch", "evictionrequests/status") {
				writes++
			}
		}
		// One write starts the turn, and one reports the reason.
		if writes > 2*pods {
			t.Errorf("%d writes about %d pods in 12 hours, want at most 2 for each", writes, pods)
		}
		request, err := client.CoordinationV1alpha1().EvictionRequests("default").Get(t.Context(), "pod-0", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("reading a request: %v", err)
		}
		if got, want := request.Status.Interceptors[0].Message, "Failed, will retry: Switched off."; got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
		stop()
	})
}

// TestStandInOutlastsAnOutage rejects all writes after the first report for longer than the
// deadline. No other client can report why the pod stays.
func TestStandInOutlastsAnOutage(t *testing.T) {
	setGates(t, allGates...)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(requestFor("daemonset.apps.k8s.io"))
		began, reports := time.Now(), 0
		client.PrependReactor("patch", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			if reports++; reports > 1 && time.Since(began) < time.Hour {
				return true, nil, errors.New("away")
			}
			return false, nil, nil
		})
		stop := runStandIn(t, client)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		request, err := client.CoordinationV1alpha1().EvictionRequests("default").Get(t.Context(), requestFor("daemonset.apps.k8s.io").Name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("reading the request: %v", err)
		} else if got, want := request.Status.Interceptors[0].Message, "Failed, will retry: Switched off."; got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
		stop()
	})
}

// Controllers that are not registered do not run, whatever the gates.
func TestControllersAreRegistered(t *testing.T) {
	descriptors := NewControllerDescriptors()
	for _, name := range []string{names.EvictionRequestController, names.NodeMaintenanceController} {
		if descriptors[name] == nil {
			t.Errorf("%s is not registered", name)
		}
	}
}

// Checks the number of stand-ins, and whose permissions are checked.
func TestAbsentInterceptorsOfAll(t *testing.T) {
	accounts := []string{"deployment-controller", "replicaset-controller", "statefulset-controller", "daemon-set-controller"}
	tests := map[string]struct {
		gates       []featuregate.Feature
		controllers []string
		wantRuns    int
		wantClients []string
	}{
		"all off":          {controllers: []string{"*"}, wantRuns: 4},
		"all on":           {gates: allGates, controllers: []string{"*"}, wantRuns: 5, wantClients: accounts},
		"all switched off": {gates: allGates, controllers: []string{"evictionrequest-controller"}, wantRuns: 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setGates(t, test.gates...)
			controllerContext, builder := withClients(asTheyAre)
			controllerContext.ComponentConfig.Generic.Controllers = test.controllers
			runs, err := absentInterceptors(controllerContext, fake.NewClientset())
			if err != nil || len(runs) != test.wantRuns {
				t.Errorf("got %d stand-ins and error %v, want %d", len(runs), err, test.wantRuns)
			}
			if !slices.Equal(builder.names, test.wantClients) {
				t.Errorf("asked for the clients %v, want %v", builder.names, test.wantClients)
			}
		})
	}
}

// A controller without its permissions gets a stand-in, but not immediately: an API server that has
// just started denies everything.
func TestStandInWhileDenied(t *testing.T) {
	const minute = time.Minute
	tests := map[string]struct {
		// answers are the results of the checks, one every 15 seconds. The last one is repeated.
		answers []string
		after   time.Duration
		want    bool
	}{
		"allowed":                     {answers: []string{"yes"}, after: time.Hour},
		"denied":                      {answers: []string{"no"}, after: minute + time.Second, want: true},
		"denied, not for long":        {answers: []string{"no"}, after: minute - time.Second},
		"denied, with an error":       {answers: []string{"no", "no", "error", "no"}, after: minute + time.Second},
		"an error resets the count":   {answers: []string{"no", "no", "error", "no"}, after: minute + 16*time.Second},
		"denied for long after that":  {answers: []string{"no", "no", "error", "no"}, after: minute + 46*time.Second, want: true},
		"denied at first":             {answers: []string{"no", "no", "yes", "no"}, after: time.Hour},
		"denied until it is allowed":  {answers: []string{"no", "no", "no", "no", "no", "no", "yes"}, after: time.Hour},
		"still denied in that moment": {answers: []string{"no", "no", "no", "no", "no", "no", "yes"}, after: minute + 29*time.Second, want: true},
		"no response":                 {answers: []string{"error"}, after: time.Hour},
		"denied again after an error": {answers: []string{"no", "no", "no", "no", "no", "no", "error", "no"}, after: time.Hour, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				asked := 0
				client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
					review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
					if review.Spec.ResourceAttributes.Verb != "patch" {
						review.Status.Allowed = true // See TestMayReport.
						return true, review, nil
					}
					answer := test.answers[min(asked, len(test.answers)-1)]
					asked++
					if answer == "error" {
						return true, nil, errors.New("busy")
					}
					review.Status.Allowed = answer == "yes"
					return true, review, nil
				})
				standing, began := false, 0
				run := runInterceptor(func(ctx context.Context) {
					standing, began = true, began+1
					<-ctx.Done()
					standing = false
				})
				ctx, stop := context.WithCancel(t.Context())
				wait := run.whileDenied(client, "web.example.com").start(ctx)
				time.Sleep(test.after)
				synctest.Wait()
				if standing != test.want || began > 1 {
					t.Errorf("the stand-in runs: %t, started %d times, want %t", standing, began, test.want)
				}
				stop()
				wait()
				if standing {
					t.Error("does not end with the context")
				}
			})
		})
	}
}

// The permissions are checked for the controller itself and its interceptor: those of the
// EvictionRequest controller differ.
func TestRightsOfControllersAreReviewed(t *testing.T) {
	setGates(t, allGates...)
	reviews := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &authorizationv1.SelfSubjectAccessReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Errorf("decoding %s %s: %v", r.Method, r.URL, err)
			return
		}
		if right := review.Spec.ResourceAttributes; right.Verb == "patch" {
			review.Status.Allowed = true
		} else {
			reviews <- r.UserAgent() + " as " + right.Name
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Errorf("answering: %v", err)
		}
	}))
	defer server.Close()
	controllerContext, _ := withClients(func(b *recordedClientBuilder) {
		b.config.Host, b.config.ContentType = server.URL, runtime.ContentTypeJSON
	})
	runs, err := absentInterceptors(controllerContext, fake.NewClientset())
	if err != nil {
		t.Fatalf("creating the stand-ins: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var waits []func()
	for _, run := range runs {
		waits = append(waits, run.start(ctx))
	}
	want := []string{
		"daemon-set-controller as daemonset.apps.k8s.io", "deployment-controller as deployment.apps.k8s.io",
		"replicaset-controller as replicaset.apps.k8s.io", "statefulset-controller as statefulset.apps.k8s.io",
	}
	var got []string
	timeout := time.After(time.Minute)
	for late := false; len(got) < len(want) && !late; {
		select {
		case review := <-reviews:
			got = append(got, review)
		case <-timeout:
			late = true
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reviewed (-want +got):\n%s", diff)
	}
	stop()
	for _, wait := range waits {
		wait()
	}
}

// TestMayReport requires both permissions: with one of them, reports are still denied.
func TestMayReport(t *testing.T) {
	rights := []authorizationv1.ResourceAttributes{
		{Verb: "patch", Group: "coordination.k8s.io", Resource: "evictionrequests", Subresource: "status"},
		{Verb: "intercept", Group: "coordination.k8s.io", Resource: "evictioninterceptors", Name: "web.example.com"},
	}
	for name, test := range map[string]struct {
		granted []authorizationv1.ResourceAttributes
		want    bool
	}{
		"both":                    {granted: rights, want: true},
		"only of the endpoint":    {granted: rights[:1]},
		"only of the interceptor": {granted: rights[1:]},
		"none":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
				review.Status.Allowed = slices.Contains(test.granted, *review.Spec.ResourceAttributes)
				return true, review, nil
			})
			got, err := mayReport(t.Context(), client, "web.example.com")
			if err != nil || got != test.want {
				t.Errorf("got %t, %v, want %t", got, err, test.want)
			}
		})
	}
}

// interceptedController is a controller that takes part in evictions.
type interceptedController struct {
	construct         ControllerConstructor
	name, interceptor string
	gates             []featuregate.Feature
	// clients are the clients that it requests, and plain those without its gate.
	clients, plain []string
	// ordinary are the clients with the default rate limits.
	ordinary []string
}

var interceptedControllers = []interceptedController{{
	construct: newDaemonSetController, name: names.DaemonSetController, interceptor: "daemonset.apps.k8s.io",
	gates:   []featuregate.Feature{features.EvictionRequestAPI, features.DeclarativeNodeMaintenance, features.NodeMaintenanceAwareDaemonSet},
	clients: []string{"daemon-set-controller", "daemon-set-controller"}, plain: []string{"daemon-set-controller"}, ordinary: []string{"daemon-set-controller"},
}, {
	construct: newStatefulSetController, name: names.StatefulSetController, interceptor: "statefulset.apps.k8s.io",
	gates:   []featuregate.Feature{features.EvictionRequestAPI, features.StatefulSetEvictionPacing},
	clients: []string{"statefulset-controller", "statefulset-controller"}, plain: []string{"statefulset-controller"}, ordinary: []string{"statefulset-controller"},
}, {
	construct: newReplicaSetController, name: names.ReplicaSetController, interceptor: "replicaset.apps.k8s.io",
	gates:   []featuregate.Feature{features.EvictionRequestAPI, features.DeploymentPodSurge},
	clients: []string{"replicaset-controller", "replicaset-controller", "replicaset-controller"}, plain: []string{"replicaset-controller"},
}, {
	construct: newDeploymentController, name: names.DeploymentController, interceptor: "deployment.apps.k8s.io",
	gates:   []featuregate.Feature{features.EvictionRequestAPI, features.DeploymentPodSurge},
	clients: []string{"deployment-controller", "deployment-controller", "deployment-controller"}, plain: []string{"deployment-controller"},
}}

// recordingServer rejects all calls, and records them.
type recordingServer struct {
	*httptest.Server
	lock  sync.Mutex
	calls []string
}

func startServer(t *testing.T) *recordingServer {
	t.Helper()
	s := &recordingServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.calls = append(s.calls, r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *recordingServer) await(t *testing.T, call string) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		s.lock.Lock()
		defer s.lock.Unlock()
		return slices.Contains(s.calls, call), nil
	}); err != nil {
		s.lock.Lock()
		defer s.lock.Unlock()
		t.Fatalf("waiting for %s: %v; the calls are %v", call, err, s.calls)
	}
}

// The controllers of the manager take their turns while they run.
func TestControllersIntercept(t *testing.T) {
	for _, test := range interceptedControllers {
		t.Run(test.name, func(t *testing.T) {
			setGates(t, test.gates...)
			server := startServer(t)
			request := requestFor(test.interceptor)
			controllerContext, builder := withClients(func(b *recordedClientBuilder) { b.config.Host = server.URL })
			controllerContext.InformerFactory = informers.NewSharedInformerFactory(fake.NewClientset(request, targetOf(request)), 0)
			_, ctx := ktesting.NewTestContext(t)
			ctx, stop := context.WithCancel(ctx)
			controller, err := test.construct(ctx, controllerContext, test.name)
			if err != nil {
				t.Fatalf("creating the controller: %v", err)
			}
			if !slices.Equal(builder.names, test.clients) {
				t.Errorf("asked for the clients %v, want %v", builder.names, test.clients)
			}
			if !slices.Equal(builder.ordinary, test.ordinary) {
				t.Errorf("clients with the default limits are %v, want %v", builder.ordinary, test.ordinary)
			}
			controllerContext.InformerFactory.Start(ctx.Done())
			var running sync.WaitGroup
			running.Go(func() { controller.Run(ctx) })
			server.await(t, "PATCH /apis/coordination.k8s.io/v1alpha1/namespaces/default/evictionrequests/"+request.Name+"/status")
			stop()
			running.Wait()
			controllerContext.InformerFactory.Shutdown()
		})
	}
}

// heldReports is a transport that rejects everything, and blocks the reports of an interceptor
// until it is released, even if their contexts are canceled.
type heldReports struct {
	manager  string
	begun    chan struct{}
	released chan struct{}
	once     sync.Once
}

func (h *heldReports) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("fieldManager") == h.manager {
		h.once.Do(func() { close(h.begun) })
		<-h.released
	}
	return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r}, nil
}

// A controller must not end before its interceptor: the next leader would run concurrently.
func TestControllersWaitForTheirInterceptors(t *testing.T) {
	standsIn := interceptedController{
		construct: newEvictionRequestController, name: names.EvictionRequestController, interceptor: "horizontalpodautoscaler.autoscaling.k8s.io",
		gates: []featuregate.Feature{features.EvictionRequestAPI},
	}
	for _, test := range append(slices.Clone(interceptedControllers), standsIn) {
		t.Run(test.name, func(t *testing.T) {
			setGates(t, test.gates...)
			held := &heldReports{manager: evictionrequest.FieldManager(test.interceptor), begun: make(chan struct{}), released: make(chan struct{})}
			request := requestFor(test.interceptor)
			controllerContext, _ := withClients(func(b *recordedClientBuilder) { b.config.Transport = held })
			controllerContext.InformerFactory = informers.NewSharedInformerFactory(fake.NewClientset(request, targetOf(request)), 0)
			_, ctx := ktesting.NewTestContext(t)
			ctx, stop := context.WithCancel(ctx)
			controller, err := test.construct(ctx, controllerContext, test.name)
			if err != nil {
				t.Fatalf("creating the controller: %v", err)
			}
			controllerContext.InformerFactory.Start(ctx.Done())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				controller.Run(ctx)
			}()
			<-held.begun
			stop()
			select {
			case <-ended:
				t.Error("ended while its interceptor runs")
			case <-time.After(500 * time.Millisecond):
			}
			close(held.released)
			<-ended
			controllerContext.InformerFactory.Shutdown()
		})
	}
}

// targetOf returns the target of the request.
func targetOf(request *coordinationv1alpha1.EvictionRequest) *v1.Pod {
	target := request.Spec.Target.Pod
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: target.Name, UID: types.UID(target.UID)}}
}

// Without their gate, the controllers are upstream's.
func TestControllersWithoutGates(t *testing.T) {
	setGates(t)
	for _, test := range interceptedControllers {
		t.Run(test.name, func(t *testing.T) {
			controllerContext, builder := withClients(asTheyAre)
			_, ctx := ktesting.NewTestContext(t)
			ctx, stop := context.WithCancel(ctx)
			controller, err := test.construct(ctx, controllerContext, test.name)
			if err != nil {
				t.Fatalf("creating the controller: %v", err)
			}
			if !slices.Equal(builder.names, test.plain) {
				t.Errorf("asked for the clients %v, want %v", builder.names, test.plain)
			}
			stop()
			controller.Run(ctx)
		})
	}
}

// A controller that cannot intercept although its gate is on does not run.
func TestControllersNeedTheirInterceptors(t *testing.T) {
	broken := errors.New("no credentials")
	for _, test := range interceptedControllers {
		t.Run(test.name, func(t *testing.T) {
			setGates(t, test.gates...)
			_, ctx := ktesting.NewTestContext(t)
			controllerContext, _ := withClients(func(b *recordedClientBuilder) { b.err, b.errAfter = broken, 1 })
			if controller, err := test.construct(ctx, controllerContext, test.name); !errors.Is(err, broken) || controller != nil {
				t.Errorf("got controller %v and error %v, want an error only that wraps its cause", controller, err)
			}
		})
	}
}

// The EvictionRequest controller runs the stand-ins, and checks the permissions of the other
// controllers.
func TestEvictionRequestControllerStandsIn(t *testing.T) {
	setGates(t, features.EvictionRequestAPI, features.StatefulSetEvictionPacing)
	server := startServer(t)
	request := requestFor("horizontalpodautoscaler.autoscaling.k8s.io")
	controllerContext, builder := withClients(func(b *recordedClientBuilder) { b.config.Host = server.URL })
	controllerContext.InformerFactory = informers.NewSharedInformerFactory(fake.NewClientset(request, targetOf(request)), 0)
	_, ctx := ktesting.NewTestContext(t)
	ctx, stop := context.WithCancel(ctx)
	controller, err := newEvictionRequestController(ctx, controllerContext, "evictionrequest-controller")
	if err != nil {
		t.Fatalf("creating the controller: %v", err)
	}
	if want := []string{"evictionrequest-controller", "evictionrequest-controller", "evictionrequest-controller", "evictionrequest-controller", "statefulset-controller"}; !slices.Equal(builder.names, want) {
		t.Errorf("asked for the clients %v, want %v", builder.names, want)
	}
	controllerContext.InformerFactory.Start(ctx.Done())
	var running sync.WaitGroup
	running.Go(func() { controller.Run(ctx) })
	server.await(t, "PATCH /apis/coordination.k8s.io/v1alpha1/namespaces/default/evictionrequests/"+request.Name+"/status")
	server.await(t, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
	stop()
	running.Wait()
	controllerContext.InformerFactory.Shutdown()
}
