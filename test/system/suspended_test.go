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
	"encoding/pem"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/kubernetes/test/utils/auditlog"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
)

const (
	// suspendedPods is the number of pods of each scenario, half of which have a budget that allows
	// every eviction.
	suspendedPods = 24

	// retrySeconds is after how long refused evictions are tried again. It is shorter than the lease:
	// a leader that is suspended until another one leads has to try all of them when it goes on.
	retrySeconds = 3

	// webhookDelay is how long the slow webhook takes.
	webhookDelay = 2 * time.Second

	// maxRaceDelay is about as long as an eviction takes after its webhook has answered.
	maxRaceDelay = 20 * time.Millisecond

	// manyCalls is more than a webhook is called in a test.
	manyCalls = 10000
)

// suspendedTest has two API servers with a controller manager each, on one etcd.
type suspendedTest struct {
	plane *controlplane.ControlPlane
	// first has the controller manager that leads until both are suspended.
	first  *controlplane.ControlPlane
	leader string
}

// TestSuspendedLeader withdraws requests whose evictions are under way: while the leader of two
// kube-controller-managers and its kube-apiserver are suspended for longer than the lease, and while a
// webhook is asked. A pod must stay if and only if its request says Canceled, and all others must be
// evicted exactly once.
func TestSuspendedLeader(t *testing.T) { testSuspendedLeader(ktesting.Init(t)) }
func testSuspendedLeader(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	tCtx, plane := newControlPlane(tCtx, p, "suspended")
	first, err := plane.Replica(tCtx.TempDir())
	tCtx.ExpectNoError(err)
	tCtx.Cleanup(first.Close)
	release := controlplane.Release{
		Name: "the fork", Bin: p.fork, FeatureGates: gatesOfRequests + ",EvictionLane=true", RuntimeConfig: runtimeConfig,
		ControllerManagerArgs: []string{
			"--leader-elect=true", "--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=1s",
		},
	}
	tCtx.ExpectNoError(plane.StartAPIServer(tCtx, release))
	tCtx.ExpectNoError(first.StartAPIServer(tCtx, release))
	own := release
	own.ControllerManagerArgs = append(slices.Clone(release.ControllerManagerArgs), "--master="+first.Config().Host)
	tCtx.ExpectNoError(first.StartControllerManager(tCtx, own))
	t := &suspendedTest{plane: plane, first: first, leader: awaitLeader(tCtx, "")}
	tCtx.ExpectNoError(plane.StartControllerManager(tCtx, release))

	run(tCtx.WithNamespace("suspended"), "suspended", t.suspendWhileEvicting)
	run(tCtx.WithNamespace("slow"), "slow webhook", t.withdrawWhileWebhookIsAsked)
}

// suspendWhileEvicting suspends the leader when it has been told to try all evictions again soon. When it
// goes on, all are due, and it knows of nothing that has happened meanwhile.
func (t *suspendedTest) suspendWhileEvicting(tCtx ktesting.TContext) {
	pods := createSuspendedPods(tCtx)
	var open atomic.Bool
	refused := make(chan string, manyCalls)
	startEvictionWebhook(tCtx, func(pod string) *metav1.Status {
		if open.Load() {
			return nil
		}
		refused <- pod
		return &metav1.Status{
			Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
			Details: &metav1.StatusDetails{RetryAfterSeconds: retrySeconds},
		}
	})
	for _, pod := range pods {
		requestEviction(tCtx, pod)
	}
	// A refusal under a budget makes the others under it wait.
	for left := namesOf(pods, plain); len(left) > 0; {
		left.Delete(receive(tCtx, refused))
	}
	awaitRenewal(tCtx)
	tCtx.ExpectNoError(t.first.Suspend(controlplane.ControllerManager, controlplane.APIServer))
	awaitLeader(tCtx, t.leader)
	var withdrawn, wanted []*v1.Pod
	for i, pod := range pods {
		if i%2 == 0 {
			withdrawRequest(tCtx, pod)
			withdrawn = append(withdrawn, pod)
		} else {
			wanted = append(wanted, pod)
		}
	}
	for _, pod := range withdrawn {
		awaitRequest(tCtx, pod, isCanceled)
	}
	open.Store(true)
	stay, leave := settle(tCtx, pods)
	expectPods(tCtx, "stay", stay, withdrawn)
	expectPods(tCtx, "leave", leave, wanted)

	tCtx.ExpectNoError(t.first.Resume(controlplane.ControllerManager))
	goesOn := false
	await(tCtx, "the leader that was suspended to go on", func(tCtx ktesting.TContext) {
		_, err := t.first.Metrics(tCtx)
		if goesOn = err == nil; !goesOn && t.first.Ended() == nil {
			tCtx.Fatal(err)
		}
	})
	tCtx.ExpectNoError(t.first.Resume(controlplane.APIServer))
	await(tCtx, "the end of the leader that was suspended", func(tCtx ktesting.TContext) {
		if t.first.Ended() == nil {
			tCtx.Fatal("it runs")
		}
	})
	t.expectRefused(tCtx, withdrawn, goesOn)
	t.expectTrue(tCtx, stay, leave)
}

// webhookCall is a call of a webhook, when it begins and about when it is answered.
type webhookCall struct {
	pod   string
	ended bool
}

// withdrawWhileWebhookIsAsked has a webhook that is slow to allow evictions. Of three requests, one is
// withdrawn while the webhook is asked, and one when it answers: that pod may stay or leave.
func (t *suspendedTest) withdrawWhileWebhookIsAsked(tCtx ktesting.TContext) {
	pods := createSuspendedPods(tCtx)
	// When a request is withdrawn, and the channel that is closed then, by the name of the pod.
	withdrawAt, isWithdrawn := map[webhookCall]*v1.Pod{}, map[string]chan struct{}{}
	var withdrawn, wanted []*v1.Pod
	for i, pod := range pods {
		switch i % 3 {
		case 0:
			withdrawAt[webhookCall{pod: pod.Name}] = pod
			isWithdrawn[pod.Name] = make(chan struct{})
			withdrawn = append(withdrawn, pod)
		case 1:
			withdrawAt[webhookCall{pod: pod.Name, ended: true}] = pod
		case 2:
			wanted = append(wanted, pod)
		}
	}
	calls := make(chan webhookCall, manyCalls)
	startEvictionWebhook(tCtx, func(pod string) *metav1.Status {
		calls <- webhookCall{pod: pod}
		if done := isWithdrawn[pod]; done != nil {
			select {
			case <-done:
			case <-time.After(pollTimeout):
			}
		}
		time.Sleep(webhookDelay)
		time.AfterFunc(rand.N(maxRaceDelay), func() { calls <- webhookCall{pod: pod, ended: true} })
		return nil
	})
	for _, pod := range pods {
		requestEviction(tCtx, pod)
	}
	for len(withdrawAt) > 0 {
		call := receive(tCtx, calls)
		if pod := withdrawAt[call]; pod != nil {
			withdrawRequest(tCtx, pod)
			delete(withdrawAt, call)
			if !call.ended {
				close(isWithdrawn[pod.Name])
			}
		}
	}
	stay, leave := settle(tCtx, pods)
	tCtx.Logf("of %d requests that were withdrawn when the webhook answered, %d are canceled", len(pods)-len(withdrawn)-len(wanted), len(stay)-len(withdrawn))
	expectPods(tCtx, "stay", stay, withdrawn)
	expectPods(tCtx, "leave", leave, wanted)
	t.expectTrue(tCtx, stay, leave)
}

// createSuspendedPods creates the namespace with its pods, of which every other pair has a budget.
func createSuspendedPods(tCtx ktesting.TContext) []*v1.Pod {
	tCtx.Helper()
	createNamespace(tCtx)
	var pods []*v1.Pod
	for i := range suspendedPods {
		pod := newPod(tCtx.Namespace() + "-" + strconv.Itoa(i))
		pod.Labels[appLabel] = []string{plain, budgeted}[i/2%2]
		// They terminate until a kubelet runs: a second eviction is possible, and must not happen.
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600)
		pods = append(pods, createReadyPod(tCtx, pod))
	}
	createBudget(tCtx, budgeted, "minAvailable: 0", suspendedPods/2)
	return pods
}

// startEvictionWebhook registers a webhook for the evictions of a namespace. It allows those for which
// decide returns nil.
func startEvictionWebhook(tCtx ktesting.TContext, decide func(pod string) *metav1.Status) {
	tCtx.Helper()
	probe := create(tCtx, tCtx.Client().CoreV1().Pods(tCtx.Namespace()), newPod(tCtx.Namespace()+"-probe"))
	var probed atomic.Bool
	server := serveReviews(func(request *admissionv1.AdmissionRequest) *metav1.Status {
		if request.Name == probe.Name {
			probed.Store(true)
			return nil
		}
		return decide(request.Name)
	})
	tCtx.Cleanup(server.Close)
	create(tCtx, tCtx.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: tCtx.Namespace()},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "evictions.example.com",
			ClientConfig: clientConfigOf(server),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: tCtx.Namespace()}},
			TimeoutSeconds:          ptr.To[int32](30),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	})
	await(tCtx, "the webhook to be called", func(tCtx ktesting.TContext) {
		tCtx.ExpectNoError(tCtx.Client().PolicyV1().Evictions(tCtx.Namespace()).Evict(tCtx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: probe.Namespace, Name: probe.Name},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, Preconditions: metav1.NewUIDPreconditions(string(probe.UID))},
		}))
		if !probed.Load() {
			tCtx.Fatal("it is not")
		}
	})
}

// serveReviews serves a webhook, which allows what decide returns nil for.
func serveReviews(decide func(request *admissionv1.AdmissionRequest) *metav1.Status) *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: decide(review.Request)}
		response.Allowed = response.Result == nil
		review.Response = response
		_ = json.NewEncoder(w).Encode(review) // A client that has gone needs no answer.
	}))
}

// clientConfigOf is how API servers reach a webhook.
func clientConfigOf(server *httptest.Server) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		URL:      &server.URL,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

// settle waits until each pod either terminates or has a request that is canceled. Both would be a lie.
func settle(tCtx ktesting.TContext, pods []*v1.Pod) (stay, leave []*v1.Pod) {
	tCtx.Helper()
	for _, pod := range pods {
		await(tCtx, "a decision about pod "+pod.Name, func(tCtx ktesting.TContext) {
			switch canceled, leaves := isCanceled.reached(getRequest(tCtx, pod)), getPod(tCtx, pod).DeletionTimestamp != nil; {
			case canceled && leaves:
				gomega.StopTrying("the pod terminates, and its request is canceled").Now()
			case canceled:
				stay = append(stay, pod)
			case leaves:
				leave = append(leave, pod)
			default:
				tCtx.Fatal("the pod stays, and its request is not canceled")
			}
		})
	}
	return stay, leave
}

// awaitRenewal waits until the leader has renewed its lease. One that was suspended while it renewed it
// would end as soon as it goes on.
func awaitRenewal(tCtx ktesting.TContext) {
	tCtx.Helper()
	var before *metav1.MicroTime
	await(tCtx, "the leader to renew its lease", func(tCtx ktesting.TContext) {
		lease, err := tCtx.Client().CoordinationV1().Leases(metav1.NamespaceSystem).Get(tCtx, controlplane.ControllerManager, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if before == nil {
			before = lease.Spec.RenewTime
		}
		if lease.Spec.RenewTime.Equal(before) {
			tCtx.Fatalf("it was renewed at %v", before)
		}
	})
}

// expectRefused fails if an eviction by the leader that was suspended was accepted, and, if it did not end
// at once, if it has tried none for a request that was withdrawn.
func (t *suspendedTest) expectRefused(tCtx ktesting.TContext, withdrawn []*v1.Pod, wentOn bool) {
	tCtx.Helper()
	names := sets.New[string]()
	for _, pod := range withdrawn {
		names.Insert(pod.Name)
	}
	// Nobody else uses its API server.
	events, err := auditlog.ReadFile(t.first.AuditLogs()[0])
	tCtx.ExpectNoError(err)
	late, ofWithdrawn := 0, 0
	for _, event := range events {
		// Before it was suspended, the webhook has answered.
		if event.Stage != auditv1.StageResponseComplete || event.ResponseStatus.Code == http.StatusTooManyRequests {
			continue
		}
		if code := event.ResponseStatus.Code; code != http.StatusConflict {
			tCtx.Errorf("the eviction of pod %s by the leader that was suspended was answered with %d, want 409", event.ObjectRef.Name, code)
		}
		late++
		if names.Has(event.ObjectRef.Name) {
			ofWithdrawn++
		}
	}
	if wentOn && ofWithdrawn == 0 {
		tCtx.Error("the leader that was suspended has tried no eviction for a request that was withdrawn meanwhile: nothing was tested")
	}
	tCtx.Logf("the leader that was suspended has gone on: %t; it has tried %d evictions, %d of them for requests that were withdrawn meanwhile", wentOn, late, ofWithdrawn)
}

// expectTrue lets the kubelet remove the pods that leave. Each must have been evicted once, and its
// request say so; the others must run, with requests that are canceled.
func (t *suspendedTest) expectTrue(tCtx ktesting.TContext, stay, leave []*v1.Pod) {
	tCtx.Helper()
	kubelet := newKubelet()
	var running sync.WaitGroup
	working := tCtx.WithCancel()
	stop := func() {
		working.Cancel("the pods are gone")
		running.Wait()
	}
	defer stop()
	running.Go(func() { kubelet.run(working) })
	evicted := &chaosTest{plane: t.plane, pods: leave}
	evicted.awaitEvicted(tCtx, func(*v1.Pod) bool { return true })
	stop()
	evicted.expectEvictedOnce(tCtx, kubelet)

	evictions, err := auditlog.ReadEvictions(t.plane.AuditLogs())
	tCtx.ExpectNoError(err)
	for _, pod := range stay {
		expectStays(tCtx, pod, 0)
		if request := getRequest(tCtx, pod); !isCanceled.reached(request) || isEvicted.reached(request) {
			tCtx.Errorf("pod %s stays, and the status of its request is %+v", pod.Name, request.Status)
		}
		if accepted := evictions[pod.Name].Accepted; len(accepted) > 0 {
			tCtx.Errorf("pod %s stays, and its eviction was accepted at %v", pod.Name, accepted)
		}
	}
}

func namesOf(pods []*v1.Pod, app string) sets.Set[string] {
	names := sets.New[string]()
	for _, pod := range pods {
		if pod.Labels[appLabel] == app {
			names.Insert(pod.Name)
		}
	}
	return names
}

// expectPods fails for each wanted pod that is missing in a list.
func expectPods(tCtx ktesting.TContext, what string, got, want []*v1.Pod) {
	tCtx.Helper()
	for _, pod := range want {
		if !slices.Contains(got, pod) {
			tCtx.Errorf("pod %s does not %s", pod.Name, what)
		}
	}
}

// receive returns the next value of a channel.
func receive[T any](tCtx ktesting.TContext, values <-chan T) (value T) {
	tCtx.Helper()
	select {
	case value = <-values:
	case <-tCtx.Done():
		tCtx.Fatal(context.Cause(tCtx))
	case <-time.After(pollTimeout):
		tCtx.Fatal("nothing was received")
	}
	return value
}
