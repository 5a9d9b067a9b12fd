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

package evictionrequest

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// evictions is the requester that stands for all callers of pods/eviction.
	evictions = coordinationv1alpha1.EvictionRequesterEvictions
	// evictor may evict pods, and has no other permission.
	evictor = "evictor@example.com"
)

// startEvictionServer starts an API server on which evictions request the eviction of pods that
// have interceptors.
func startEvictionServer(t *testing.T, etcd *storagebackend.Config, gateOn bool) *rest.Config {
	t.Helper()
	return testcluster.StartAPIServer(t, etcd, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI:          true,
		features.EvictionRequestForEvictions: gateOn,
		features.DeploymentPodSurge:          true,
		features.GenericWorkload:             true,
		features.WorkloadWithJob:             true,
	}, "--runtime-config=scheduling.k8s.io/v1beta1=true")
}

// TestEvictionRequestForEvictions uses one API server for all tests.
func TestEvictionRequestForEvictions(t *testing.T) {
	config := startEvictionServer(t, framework.SharedEtcd(), true)
	tests := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"an eviction waits for the interceptors", testEvictionWaits},
		{"cost of an eviction that waits", testCostOfEviction},
		{"an evictor that tries one pod after another", testEvictorThatStops},
		{"the grace period of callers", testGracePeriodOfCallers},
		{"a pod without interceptors is evicted as ever", testEvictionWithoutInterceptors},
		{"pods of PodGroups", testPodsOfGroups},
		{"pods of Jobs that have a PodGroup", testPodsOfJobs},
		{"an eviction joins the request of others", testEvictionJoins},
		{"an eviction goes through while a budget blocks the controller", testEvictionBesideBudget},
		{"a dry run writes nothing", testEvictionDryRun},
		{"evictions that end no running pod are as ever", testEvictionWithoutHarm},
		{"a canceled request is replaced", testEvictionAfterCancellation},
		{"a canceled request with a finalizer is not", testEvictionBesideFinalizer},
		{"a request that cannot be canceled continues", testEvictionForbidsCancellation},
		{"who bypasses the interceptors", testEvictionBypass},
		{"the active interceptor evicts, the others do not", testEvictionByInterceptor},
		{"a quota on requests refuses the eviction", testEvictionBeyondQuota},
		{"a policy on requests refuses the eviction", testEvictionAgainstPolicy},
		{"an eviction that a policy refuses requests nothing", testRefusedEviction},
		{"the requester is reserved", testReservedRequester},
		{"only the controller withdraws the callers without permission on the pod", testWithdrawalOfCallers},
		{"calls expire after fifteen minutes", testCallsExpire},
		{"those of a drain expire after three minutes", testRepeatedCallsExpire},
		{"calls that are repeated do not expire", testCallsRenewed},
		{"calls that a budget refuses do not expire", testCallsBesideBudget},
		{"a drain is given up when its node is uncordoned", testUncordon},
		{"a node is uncordoned while no controller runs", testUncordonWithoutController},
		{"many callers at the same time", testConcurrentEvictions},
		{"a caller does not evict the successor of its pod", testEvictionOfSuccessor},
		{"a version that the pod does not have yet", testEvictionOfGuessedVersion},
		{"a pod is replaced while it is evicted", testEvictionWhileReplaced},
		{"an interceptor registers while the pod is evicted", testEvictionDuringRegistration},
		{"a pod gets a name that is evicted all the time", testEvictionOfNewPod},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, config)
			c.grantEvictions(evictor)
			test.run(t, c)
		})
	}
}

// grantEvictions allows the user to evict pods of the namespace, and more.
func (c *cluster) grantEvictions(user string, rules ...rbacv1.PolicyRule) {
	c.t.Helper()
	evict := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}}
	// grant waits for a permission on requests.
	see := rbacv1.PolicyRule{APIGroups: []string{requestsGroup}, Resources: []string{requestsResource}, Verbs: []string{"list"}}
	c.grant(user, append(rules, evict, see)...)
}

// evictWith calls pods/eviction once, for this pod in particular.
func (c *cluster) evictWith(client clientset.Interface, pod *v1.Pod, change func(*policyv1.Eviction)) error {
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{
		Name: pod.Name, Namespace: c.namespace,
		Annotations: map[string]string{coordinationv1alpha1.EvictionRequestAtOnceAnnotation: "true"},
	}}
	if change != nil {
		change(eviction)
	}
	return client.CoreV1().Pods(c.namespace).EvictV1(c.t.Context(), eviction)
}

func (c *cluster) evict(pod *v1.Pod) error { return c.evictWith(c.ClientOf(evictor), pod, nil) }

// expectWaits fails unless the eviction has to wait for the interceptors.
func (c *cluster) expectWaits(what string, err error) {
	c.t.Helper()
	if !apierrors.IsTooManyRequests(err) || !strings.HasPrefix(err.Error(), coordinationv1alpha1.EvictionInterceptedMessage) ||
		!apierrors.HasStatusCause(err, coordinationv1alpha1.EvictionInterceptedCause) {
		c.t.Errorf("%s: %v, want that it waits for the interceptors", what, err)
	}
}

// expectRefused fails unless the eviction is refused because it cannot be requested, with a reason.
func (c *cluster) expectRefused(what, reason string, err error) {
	c.t.Helper()
	if !apierrors.IsTooManyRequests(err) || strings.Contains(err.Error(), coordinationv1alpha1.EvictionInterceptedMessage) || !strings.Contains(err.Error(), reason) {
		c.t.Errorf("%s: %v, want that it is refused because of %q", what, err, reason)
	}
}

// testEvictorThatStops: an evictor that may evict one pod tries all, as the descheduler with a limit per node does, and
// is refused. Nothing happens to them. One that comes back for a pod evicts that.
func testEvictorThatStops(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	const limited, other = "limited@example.com", "other@example.com"
	c.grantEvictions(limited)
	c.grantEvictions(other)
	once := func(eviction *policyv1.Eviction) { eviction.Annotations = nil }
	var pods []*v1.Pod
	for i := range 6 {
		pods = append(pods, c.createRunningPod(newPod(fmt.Sprintf("single-%d", i), withInterceptors(first)), v1.ConditionTrue))
	}
	for _, pod := range pods {
		for _, user := range []string{limited, other} {
			err := c.evictWith(c.ClientOf(user), pod, once)
			c.expectRefused("the first call of "+user, "This call does not request that: one more within 45 seconds does", err)
		}
	}
	for _, pod := range pods {
		c.expectNoRequest(pod)
		c.expectUntouched(pod)
	}
	c.expectWaits("the second call", c.evictWith(c.ClientOf(limited), pods[3], once))
	c.awaitRequest(pods[3], "the activation", func(r *coordinationv1alpha1.EvictionRequest) bool { return len(r.Status.ActiveInterceptors) > 0 })
	for i, pod := range pods {
		if i != 3 {
			c.expectNoRequest(pod)
		}
	}
}

// testGracePeriodOfCallers: the pod gets the time to terminate that its evictor has asked for.
func testGracePeriodOfCallers(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	for name, test := range map[string]struct {
		seconds []*int64
		want    int64
	}{
		"none":     {seconds: []*int64{nil}, want: 30},
		"shorter":  {seconds: []*int64{ptr.To[int64](7)}, want: 7},
		"shortest": {seconds: []*int64{nil, ptr.To[int64](9), ptr.To[int64](8), ptr.To[int64](20)}, want: 8},
		"longer":   {seconds: []*int64{ptr.To[int64](300)}, want: 300},
	} {
		pod := c.createRunningPod(newPod(name, withInterceptors(first), withGracePeriod(30)), v1.ConditionTrue)
		for _, seconds := range test.seconds {
			c.Eventually("an eviction of "+name, func(context.Context) (bool, string) {
				err := c.evictWith(c.ClientOf(evictor), pod, func(eviction *policyv1.Eviction) {
					eviction.DeleteOptions = &metav1.DeleteOptions{GracePeriodSeconds: seconds}
				})
				return strings.HasPrefix(fmt.Sprint(err), coordinationv1alpha1.EvictionInterceptedMessage), fmt.Sprint(err)
			})
		}
		c.awaitRequest(pod, "the activation", func(r *coordinationv1alpha1.EvictionRequest) bool { return len(r.Status.ActiveInterceptors) > 0 })
		c.report(pod, completed(first, metav1.Now()))
		c.awaitTermination(pod)
		terminating, err := c.client.CoreV1().Pods(c.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := ptr.Deref(terminating.DeletionGracePeriodSeconds, -1); got != test.want {
			t.Errorf("%s: the pod has %d seconds, want %d", name, got, test.want)
		}
	}
}

func (c *cluster) expectNoRequest(pod *v1.Pod) {
	c.t.Helper()
	if request, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(c.t.Context(), string(pod.UID), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		c.t.Errorf("request for pod %s: %v, %v, want none", pod.Name, request, err)
	}
}

// expectNoRetryAfter fails the test if a response tells the client when to try again: clients would
// do so inside of the call.
type expectNoRetryAfter struct {
	http.RoundTripper
	t *testing.T
}

func (e expectNoRetryAfter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.RoundTripper.RoundTrip(request)
	if err == nil && response.Header.Get("Retry-After") != "" {
		e.t.Errorf("%s %s: Retry-After is %q", request.Method, request.URL, response.Header.Get("Retry-After"))
	}
	return response, err
}

// testEvictionWaits calls again and again, from the first call to the end of the pod.
func testEvictionWaits(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("walker", withInterceptors(first, second)), v1.ConditionTrue)
	client := c.ClientThrough(evictor, func(transport http.RoundTripper) http.RoundTripper { return expectNoRetryAfter{transport, t} })
	evict := func() error { return c.evictWith(client, pod, nil) }
	expectMessage := func(what, turn string) {
		t.Helper()
		want := regexp.MustCompile(fmt.Sprintf(`^Eviction triggered evacuation: pod %s/walker is evicted when its interceptors are done\. %s See: kubectl -n %s get evictionrequest %s$`,
			c.namespace, turn, c.namespace, pod.UID))
		c.Eventually(what, func(context.Context) (bool, string) {
			err := evict()
			c.expectWaits(what, err)
			return want.MatchString(err.Error()), fmt.Sprintf("%v, want %v", err, want)
		})
	}

	const stamp = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	expectMessage("the first call", `That was requested at `+stamp+`, and the evictionrequest-controller has not activated the first of them yet: first\.example\.com, second\.example\.com\.`)
	request := c.getRequest(pod)
	if diff := cmp.Diff([]coordinationv1alpha1.Requester{{Name: evictions}}, request.Spec.Requesters); diff != "" {
		t.Errorf("requesters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(pod.Labels, request.Labels); diff != "" {
		t.Errorf("labels of the request (-want +got):\n%s", diff)
	}

	c.startController(clock.RealClock{})
	expectMessage("the activation of the first", `Interceptor first\.example\.com is active since `+stamp+`, and has not reported yet\. Without a heartbeat until `+stamp+` it loses its turn\.`)
	now := metav1.Now()
	c.report(pod, started(first, now).WithExpectedFinishTime(metav1.NewTime(now.Add(time.Hour))))
	expectMessage("the report of the first", `Interceptor first\.example\.com is active since `+stamp+`, expects to finish at `+stamp+`, sent its last heartbeat at `+stamp+`, and reports: "at work"\. Without a heartbeat until `+stamp+` it loses its turn\.`)
	c.report(pod, completed(first, now))
	expectMessage("the activation of the second", `Interceptor second\.example\.com is active since `+stamp+`, and has not reported yet\. Without a heartbeat until `+stamp+` it loses its turn\.`)
	c.expectUntouched(pod)
	c.report(pod, completed(second, metav1.Now()))
	c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
	if err := evict(); !apierrors.IsNotFound(err) {
		t.Errorf("evicting a pod that is gone: %v, want NotFound", err)
	}
}

// testCostOfEviction counts the API requests that an eviction costs more than a direct request.
func testCostOfEviction(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("counted", withInterceptors(first)), v1.ConditionTrue)
	before := apiCalls(t)
	for i := range 10 {
		c.expectWaits("evicting", c.evict(pod))
		if i == 0 { // The cache of admission needs a moment to have the request.
			c.Eventually("the request in the cache of admission", func(context.Context) (bool, string) {
				reads := apiCalls(t)["GET evictionrequests"]
				c.expectWaits("evicting", c.evict(pod))
				return apiCalls(t)["GET evictionrequests"] == reads, "it is still read"
			})
			after := apiCalls(t)
			if got := after["PATCH evictionrequests"] - before["PATCH evictionrequests"]; got != 0 {
				t.Errorf("%d patches of a new request, want none", got)
			}
			before = after
			continue
		}
	}
	after := apiCalls(t)
	for call, want := range map[string]int{
		"POST evictionrequests": 0, "GET evictionrequests": 0, "PATCH evictionrequests": 0, "GET pods": 0, "LIST pods": 0, "POST subjectaccessreviews": 0,
	} {
		if got := after[call] - before[call]; got != want {
			t.Errorf("%d calls %s for 9 repeated evictions, want %d", got, call, want)
		}
	}
}

// testEvictionWithoutInterceptors includes pods whose only interceptors are the default ones of
// their kind: those act in a maintenance only.
func testEvictionWithoutInterceptors(t *testing.T, c *cluster) {
	ofDaemonSet := func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1", Controller: ptr.To(true)}}
	}
	pods := []*v1.Pod{
		newPod("plain"),
		newPod("agent", ofDaemonSet),
		newPod("named-agent", ofDaemonSet, withInterceptors(coordinationv1alpha1.EvictionInterceptorDaemonSet)),
	}
	for _, pod := range pods {
		pod = c.createRunningPod(pod, v1.ConditionTrue)
		c.awaitInAdmission(pod)
		before := apiCalls(t)
		if err := c.evict(pod); err != nil {
			t.Errorf("evicting pod %s: %v", pod.Name, err)
		}
		after := apiCalls(t)
		for _, call := range []string{"POST evictionrequests", "GET evictionrequests", "GET pods"} {
			if got := after[call] - before[call]; got != 0 {
				t.Errorf("%d calls %s to evict pod %s, want none", got, call, pod.Name)
			}
		}
		c.expectGone(pod)
		c.expectNoRequest(pod)
	}
}

// awaitInAdmission waits until the cache of admission has the pod as it is.
func (c *cluster) awaitInAdmission(pod *v1.Pod) {
	c.t.Helper()
	c.Eventually("the pod in the cache of admission", func(context.Context) (bool, string) {
		reads := apiCalls(c.t)["GET pods"]
		err := c.evictWith(c.ClientOf(evictor), pod, func(eviction *policyv1.Eviction) {
			eviction.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, Preconditions: &metav1.Preconditions{ResourceVersion: &pod.ResourceVersion}}
		})
		if err != nil {
			return false, err.Error()
		}
		return apiCalls(c.t)["GET pods"] == reads, "it is still read"
	})
}

// testEvictionJoins evicts a pod whose eviction another client has requested.
func testEvictionJoins(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createRunningPod(newPod("shared", withInterceptors(first)), v1.ConditionTrue)
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.expectWaits("evicting", c.evict(pod))
	c.expectRequesters(pod, drainer, evictions)
	// When the other one leaves, the eviction is still wanted.
	left := c.leave(pod, drainer)
	request := c.awaitRequest(pod, "a sync with the remaining requester", observed(left.Generation))
	if got, want := describe(request), "active=first processed="; got != want {
		t.Errorf("with %s left the request is %q, want %q", evictions, got, want)
	}
	c.report(pod, completed(first, metav1.Now()))
	c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
}

// testEvictionBesideBudget has a budget that refuses the controller. Callers hear it from the
// budget as well, and evict the pod when it allows that.
func testEvictionBesideBudget(t *testing.T, c *cluster) {
	c.StartDisruptionController(c.namespace)
	pod := c.createRunningPod(newPod("protected", withInterceptors(first)), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.expectWaits("evicting", c.evict(pod))
	stop := c.startController(clock.RealClock{})
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.report(pod, completed(first, metav1.Now()))
	c.awaitRequest(pod, "the budget to block the eviction", blocked)
	stop()
	if err := c.evict(pod); !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("evicting: %v, want a refusal by the budget", err)
	}
	c.deleteBudget("guard")
	c.Eventually("the eviction", func(context.Context) (bool, string) {
		err := c.evict(pod)
		return err == nil, fmt.Sprint(err)
	})
	c.expectGone(pod)
}

func testEvictionDryRun(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("rehearsed", withInterceptors(first)), v1.ConditionTrue)
	inBody := func(eviction *policyv1.Eviction) {
		eviction.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	}
	err := c.evictWith(c.ClientOf(evictor), pod, inBody)
	c.expectWaits("dry run in the body", err)
	if !strings.HasSuffix(err.Error(), " A dry run does not request that, so none of them becomes active: first.example.com.") {
		t.Errorf("%v, want that nothing is requested", err)
	}
	c.expectWaits("dry run in the query", c.ClientOf(evictor).CoreV1().RESTClient().Post().
		Namespace(c.namespace).Resource("pods").Name(pod.Name).SubResource("eviction").Param("dryRun", "All").
		Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}}).Do(t.Context()).Error())
	c.expectNoRequest(pod)

	joined := c.join(pod, drainer)
	c.expectWaits("dry run with the request of another", c.evictWith(c.ClientOf(evictor), pod, inBody))
	if diff := cmp.Diff(joined, c.getRequest(pod)); diff != "" {
		t.Errorf("the request was changed (-before +now):\n%s", diff)
	}
	c.startController(clock.RealClock{})
	c.leave(pod, drainer)
	over := c.awaitRequest(pod, "the end of the request", canceled)
	c.expectWaits("dry run with a canceled request", c.evictWith(c.ClientOf(evictor), pod, inBody))
	if diff := cmp.Diff(over, c.getRequest(pod)); diff != "" {
		t.Errorf("the canceled request was changed (-before +now):\n%s", diff)
	}
	c.expectUntouched(pod)
}

// testEvictionWithoutHarm evicts pods that have interceptors, but do not run, or are not meant.
func testEvictionWithoutHarm(t *testing.T, c *cluster) {
	missing := newPod("missing")
	if err := c.evict(missing); !apierrors.IsNotFound(err) {
		t.Errorf("evicting a missing pod: %v, want NotFound", err)
	}

	other := c.createRunningPod(newPod("other", withInterceptors(first)), v1.ConditionTrue)
	for what, preconditions := range map[string]*metav1.Preconditions{
		"UID":             {UID: ptr.To(types.UID("f0e1d2c3-0000-4000-8000-000000000002"))},
		"resourceVersion": {ResourceVersion: ptr.To("1")},
	} {
		err := c.evictWith(c.ClientOf(evictor), other, func(eviction *policyv1.Eviction) {
			eviction.DeleteOptions = &metav1.DeleteOptions{Preconditions: preconditions}
		})
		if !apierrors.IsConflict(err) {
			t.Errorf("evicting a pod of another %s: %v, want a conflict", what, err)
		}
	}
	c.expectNoRequest(other)
	c.expectRefused("evicting a pod as it is now", "preconditions.resourceVersion does not request that", c.evictWith(c.ClientOf(evictor), other, func(eviction *policyv1.Eviction) {
		eviction.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other.UID, ResourceVersion: &other.ResourceVersion}}
	}))
	c.expectNoRequest(other)
	c.expectWaits("evicting a pod of this UID", c.evictWith(c.ClientOf(evictor), other, func(eviction *policyv1.Eviction) {
		eviction.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other.UID}}
	}))

	finished := c.createPod(newPod("finished", withInterceptors(first)))
	c.setPodStatus(finished, v1.PodStatus{Phase: v1.PodSucceeded})
	c.awaitDryRun(finished)
	if err := c.evict(finished); err != nil {
		t.Errorf("evicting a pod that has finished: %v", err)
	}
	c.expectGone(finished)
	c.expectNoRequest(finished)

	terminating := c.createRunningPod(newPod("terminating", withInterceptors(first), withGracePeriod(30)), v1.ConditionTrue)
	if err := c.client.CoreV1().Pods(c.namespace).Delete(t.Context(), terminating.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting a pod: %v", err)
	}
	c.awaitDryRun(terminating)
	if err := c.evict(terminating); err != nil {
		t.Errorf("evicting a terminating pod: %v", err)
	}
	c.expectNoRequest(terminating)

	grouped := c.createRunningPod(newPod("grouped", inSchedulingGroup("group")), v1.ConditionTrue)
	if err := c.evict(grouped); err != nil {
		t.Errorf("evicting a pod of a scheduling group: %v", err)
	}
	c.expectGone(grouped)
	c.expectNoRequest(grouped)
}

// awaitDryRun waits until the eviction of the pod would succeed: the cache of admission may have it as
// it was.
func (c *cluster) awaitDryRun(pod *v1.Pod) {
	c.t.Helper()
	c.Eventually("the pod in the cache of admission", func(context.Context) (bool, string) {
		err := c.evictWith(c.ClientOf(evictor), pod, func(eviction *policyv1.Eviction) {
			eviction.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
		})
		return err == nil, fmt.Sprint(err)
	})
}

// testEvictionAfterCancellation has a canceled request, whose name the next request needs.
func testEvictionAfterCancellation(t *testing.T, c *cluster) {
	stop := c.startController(clock.RealClock{})
	pod := c.createRunningPod(newPod("again", withInterceptors(first)), v1.ConditionTrue)
	old := c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.report(pod, completed(first, metav1.Now()))
	// Otherwise it would evict the pod.
	stop()
	c.leave(pod, drainer)
	stop = c.startController(clock.RealClock{})
	c.awaitRequest(pod, "the end of the request", canceled)
	stop()

	c.expectWaits("evicting", c.evict(pod))
	request := c.getRequest(pod)
	if request.UID == old.UID {
		t.Errorf("the canceled request is still there: %s", describe(request))
	}
	c.expectRequesters(pod, evictions)
	c.startController(clock.RealClock{})
	c.awaitRequest(pod, "the first interceptor to be active again", active(first))
	c.expectUntouched(pod)
}

// testEvictionBesideFinalizer has a canceled request that another client keeps: that must not keep others
// from asking again.
func testEvictionBesideFinalizer(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createRunningPod(newPod("kept", withInterceptors(first)), v1.ConditionTrue)
	c.join(pod, drainer)
	c.addFinalizer(pod)
	c.leave(pod, drainer)
	c.awaitRequest(pod, "the end of the request", canceled)
	old := c.getRequest(pod)
	c.expectWaits("evicting", c.evict(pod))
	request := c.getRequest(pod)
	if request.UID == old.UID || len(request.Finalizers) > 0 {
		t.Errorf("the canceled request is still there, or its finalizers are: %s", describe(request))
	}
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.expectUntouched(pod)

	// The same while it is being deleted, for a requester.
	c.addFinalizer(pod)
	requests := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace)
	if err := requests.Delete(t.Context(), request.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.awaitRequest(pod, "the end of the request", canceled)
	if again := c.join(pod, drainer); again.UID == request.UID || again.DeletionTimestamp != nil {
		t.Errorf("the deleted request is still there: %s", describe(again))
	}
	c.awaitRequest(pod, "the first interceptor to be active again", active(first))
}

func testEvictionForbidsCancellation(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("leaving", withInterceptors(first)), v1.ConditionTrue)
	c.startController(clock.RealClock{})
	c.join(pod, drainer)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.patchStatus(pod, `{"status":{"evictionRequestCancellationPolicy":"Forbid"}}`)
	left := c.leave(pod, drainer)
	c.awaitRequest(pod, "a sync without requesters", observed(left.Generation))
	c.expectWaits("evicting", c.evict(pod))
	c.expectRequesters(pod, evictions)
	c.report(pod, completed(first, metav1.Now()))
	c.awaitRequest(pod, "the end of the request", evicted)
	c.expectGone(pod)
}

// testEvictionBypass: an explicit permission is sufficient, one among all has to be asked for.
func testEvictionBypass(t *testing.T, c *cluster) {
	bypass := func(verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{requestsGroup}, Resources: []string{requestsResource}, Verbs: []string{verb}}
	}
	const firefighter, owner, both = "firefighter@example.com", "owner@example.com", "both@example.com"
	c.grantEvictions(firefighter, bypass("bypass"))
	c.grantEvictions(owner, bypass("*"))
	c.grantEvictions(both, bypass("*"), bypass("bypass"))
	asks := func(eviction *policyv1.Eviction) {
		eviction.Annotations[coordinationv1alpha1.EvictionBypassAnnotation] = "true"
	}
	const hint = `requires the verb "bypass" on evictionrequests in API group "coordination.k8s.io", which user "evictor@example.com" does not have`

	for i, test := range []struct {
		what     string
		client   clientset.Interface
		change   func(*policyv1.Eviction)
		bypasses bool
		hint     string
	}{
		{what: "without the permission", client: c.ClientOf(evictor)},
		{what: "asking for it without the permission", client: c.ClientOf(evictor), change: asks, hint: hint},
		{what: "with the permission", client: c.ClientOf(firefighter), bypasses: true},
		{what: "asking for it with the permission", client: c.ClientOf(firefighter), change: asks, bypasses: true},
		{what: "with all permissions on requests", client: c.ClientOf(owner)},
		{what: "asking for it with all permissions on requests", client: c.ClientOf(owner), change: asks, bypasses: true},
		{what: "with the permission, but as one of all", client: c.ClientOf(both)},
		{what: "asking for it with all permissions", client: c.ClientOf(both), change: asks, bypasses: true},
		{what: "as the administrator", client: c.client},
		{what: "asking for it as the administrator", client: c.client, change: asks, bypasses: true},
	} {
		pod := c.createRunningPod(newPod(fmt.Sprintf("pod-%d", i), withInterceptors(first)), v1.ConditionTrue)
		err := c.evictWith(test.client, pod, test.change)
		if test.bypasses {
			c.expectAllowed(test.what, err)
			c.expectGone(pod)
			c.expectNoRequest(pod)
			continue
		}
		c.expectWaits(test.what, err)
		c.expectUntouched(pod)
		if got := strings.Contains(err.Error(), "requires the verb"); got != (test.hint != "") || !strings.Contains(err.Error(), test.hint) {
			t.Errorf("%s: %v, want the hint %q", test.what, err, test.hint)
		}
	}
}

// testEvictionByInterceptor has two interceptors that evict the pod through the API.
func testEvictionByInterceptor(t *testing.T, c *cluster) {
	actAs := func(name string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{requestsGroup}, Resources: []string{coordinationv1alpha1.EvictionInterceptorResource}, ResourceNames: []string{name}, Verbs: []string{"intercept"}}
	}
	const user, next = "first@example.com", "second@example.com"
	c.grantEvictions(user, actAs(first))
	c.grantEvictions(next, actAs(second))
	c.startController(clock.RealClock{})
	pod := c.createRunningPod(newPod("moved", withInterceptors(first, second)), v1.ConditionTrue)
	c.expectWaits("evicting before the request", c.evictWith(c.ClientOf(user), pod, nil))
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.expectWaits("evicting as the second", c.evictWith(c.ClientOf(next), pod, nil))
	c.expectUntouched(pod)
	// At once: the cache of admission may not know yet that it is active.
	c.expectAllowed("evicting as the first", c.evictWith(c.ClientOf(user), pod, nil))
	c.expectGone(pod)
}

// testEvictionBeyondQuota has a quota that allows no request.
func testEvictionBeyondQuota(t *testing.T, c *cluster) {
	const resourceName = "count/evictionrequests.coordination.k8s.io"
	quotas := c.client.CoreV1().ResourceQuotas(c.namespace)
	setLimit := func(quota *v1.ResourceQuota, limit string) {
		t.Helper()
		hard := v1.ResourceList{resourceName: resource.MustParse(limit)}
		quota.Status = v1.ResourceQuotaStatus{Hard: hard, Used: v1.ResourceList{resourceName: resource.MustParse("0")}}
		if _, err := quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
			t.Fatalf("writing the status of the quota: %v", err)
		}
	}
	quota, err := quotas.Create(t.Context(), &v1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec:       v1.ResourceQuotaSpec{Hard: v1.ResourceList{resourceName: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating the quota: %v", err)
	}
	setLimit(quota, "0")
	pod := c.createRunningPod(newPod("counted", withInterceptors(first)), v1.ConditionTrue)
	c.Eventually("the quota in the cache of admission", func(ctx context.Context) (bool, string) {
		_, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Create(ctx, newRequest(pod), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err), fmt.Sprint(err)
	})
	c.expectRefused("evicting", "exceeded quota: few", c.evict(pod))
	c.expectUntouched(pod)
	c.expectNoRequest(pod)
}

// refuse creates a policy for this namespace that refuses the creation of a resource by a user, and
// waits until it is effective.
func (c *cluster) refuse(group, resource, condition string, effective func() error) {
	c.t.Helper()
	name := c.namespace
	policies := c.client.AdmissionregistrationV1()
	if _, err := policies.ValidatingAdmissionPolicies().Create(c.t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": c.namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: condition, Message: "not on my watch"}},
		},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating the policy: %v", err)
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(c.t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("binding the policy: %v", err)
	}
	c.t.Cleanup(func() {
		_ = policies.ValidatingAdmissionPolicyBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
		_ = policies.ValidatingAdmissionPolicies().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	c.Eventually("the policy", func(context.Context) (bool, string) {
		err := effective()
		return err != nil && strings.Contains(err.Error(), "not on my watch"), fmt.Sprint(err)
	})
}

func testEvictionAgainstPolicy(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("guarded", withInterceptors(first)), v1.ConditionTrue)
	c.refuse(requestsGroup, requestsResource, "false", func() error {
		_, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Create(t.Context(), newRequest(pod), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	c.expectRefused("evicting", "not on my watch", c.evict(pod))
	c.expectRefused("dry run", "not on my watch", c.evictWith(c.ClientOf(evictor), pod, func(eviction *policyv1.Eviction) {
		eviction.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	}))
	c.expectUntouched(pod)
	c.expectNoRequest(pod)
}

// testRefusedEviction: who is not allowed to evict a pod must not cause its eviction either.
func testRefusedEviction(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("guarded", withInterceptors(first)), v1.ConditionTrue)
	probe := c.createRunningPod(newPod("probe"), v1.ConditionTrue)
	c.refuse("", "pods/eviction", fmt.Sprintf("request.userInfo.username != %q", evictor), func() error {
		return c.evictWith(c.ClientOf(evictor), probe, func(eviction *policyv1.Eviction) {
			eviction.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
		})
	})
	if err := c.evict(pod); err == nil || !strings.Contains(err.Error(), "not on my watch") {
		t.Errorf("evicting: %v, want the refusal of the policy", err)
	}
	if err := c.evictWith(c.ClientOf("stranger@example.com"), pod, nil); !apierrors.IsForbidden(err) {
		t.Errorf("evicting without permission: %v, want Forbidden", err)
	}
	c.expectNoRequest(pod)
}

func testReservedRequester(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("claimed", withInterceptors(first)), v1.ConditionTrue)
	expectReserved := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the requester eviction.k8s.io is reserved") {
			t.Errorf("%s: %v, want that the name is reserved", what, err)
		}
	}
	// A user of the name of the server is not the server.
	users := []string{"owner@example.com", "system:apiserver"}
	for _, user := range users {
		c.grant(user, allOnRequests(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
		reserved := newRequest(pod)
		reserved.Spec.Requesters = append(reserved.Spec.Requesters, coordinationv1alpha1.Requester{Name: evictions})
		_, err := c.requestsOf(user).Create(t.Context(), reserved, metav1.CreateOptions{})
		expectReserved("creating as "+user, err)
	}
	c.join(pod, drainer)
	for _, user := range users {
		request := c.getRequest(pod)
		request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: evictions})
		_, err := c.requestsOf(user).Update(t.Context(), request, metav1.UpdateOptions{})
		expectReserved("joining as "+user, err)
	}

	// Who owns the pod does not call off the drain of an administrator, also with all permissions in the namespace.
	c.expectWaits("evicting", c.evict(pod))
	c.expectRequesters(pod, drainer, evictions)
	stored := c.getRequest(pod)
	stored.Spec.Requesters = []coordinationv1alpha1.Requester{{Name: drainer}}
	const tenant = "tenant@example.com"
	c.grant(tenant, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	expectKept := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the requester eviction.k8s.io cannot be removed from spec.requesters") {
			t.Errorf("%s: %v, want that the requester is kept", what, err)
		}
	}
	_, err := c.requestsOf(tenant).Update(t.Context(), stored, metav1.UpdateOptions{})
	expectKept("withdrawing the callers", err)
	expectKept("withdrawing all", c.patchAs(tenant, pod, `{"spec":{"requesters":null}}`, metav1.PatchOptions{}))
	expectKept("deleting the request", c.requestsOf(tenant).Delete(t.Context(), stored.Name, metav1.DeleteOptions{}))
	expectKept("deleting all requests", c.requestsOf(tenant).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	c.expectRequesters(pod, drainer, evictions)
	_, err = c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Update(t.Context(), stored, metav1.UpdateOptions{})
	c.expectAllowed("withdrawing the callers as administrator", err)
}

// testWithdrawalOfCallers: the controller has no permission to delete pods.
func testWithdrawalOfCallers(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("left", withInterceptors(first)), v1.ConditionTrue)
	c.join(pod, drainer)
	c.expectWaits("evicting", c.evict(pod))
	const stranger = "stranger@example.com"
	c.grant(stranger, rbacv1.PolicyRule{APIGroups: []string{requestsGroup}, Resources: []string{requestsResource}, Verbs: []string{"patch"}})
	const withoutCallers = `{"metadata":{"annotations":null},"spec":{"requesters":[{"name":"drainer.example.com"}]}}`
	c.expectDenied("withdrawing the callers", pod, c.patchAs(stranger, pod, withoutCallers, metav1.PatchOptions{}))
	c.expectDenied("withdrawing others", pod, c.patchAs(controllerUser, pod, `{"spec":{"requesters":[{"name":"eviction.k8s.io"}]}}`, metav1.PatchOptions{}))
	c.expectDenied("withdrawing all", pod, c.patchAs(controllerUser, pod, `{"spec":{"requesters":null}}`, metav1.PatchOptions{}))
	c.expectDenied("adding a finalizer", pod, c.patchAs(controllerUser, pod,
		`{"metadata":{"finalizers":["a.example.com/b"]},"spec":{"requesters":[{"name":"drainer.example.com"}]}}`, metav1.PatchOptions{}))
	c.expectAllowed("withdrawing the callers as the controller", c.patchAs(controllerUser, pod, withoutCallers, metav1.PatchOptions{}))
	c.expectRequesters(pod, drainer)
}

// testCallsExpire ends the calls for two pods: for one, another requester is left.
func testCallsExpire(t *testing.T, c *cluster) {
	now := newFakeClock()
	c.startController(now)
	alone := c.createRunningPod(newPod("alone", withInterceptors(first)), v1.ConditionTrue)
	shared := c.createRunningPod(newPod("shared", withInterceptors(first)), v1.ConditionTrue)
	for _, pod := range []*v1.Pod{alone, shared} {
		c.expectWaits("evicting", c.evict(pod))
		c.awaitRequest(pod, "the first interceptor to be active", active(first))
	}
	c.join(shared, drainer)

	now.Step(15*time.Minute - time.Second)
	c.Eventually("the controller to see that the interceptor is silent", func(context.Context) (bool, string) {
		request := c.getRequest(alone)
		return is(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive)(request), describe(request)
	})
	c.expectRequesters(alone, evictions)
	c.expectRequesters(shared, drainer, evictions)

	now.Step(time.Second)
	c.awaitRequest(alone, "the end of the request", canceled)
	request := c.awaitRequest(shared, "the calls to expire", func(request *coordinationv1alpha1.EvictionRequest) bool { return len(request.Spec.Requesters) == 1 })
	c.expectRequesters(shared, drainer)
	if got, left := request.Annotations[coordinationv1alpha1.EvictionCallTimeAnnotation]; left {
		t.Errorf("the time of the last call is still %q", got)
	}
	c.expectEvents("EvictionRequest", string(alone.UID), "InterceptorActivated", "InterceptorUnresponsive", "EvictionCallsExpired", "EvictionCanceled")
	for _, pod := range []*v1.Pod{alone, shared} {
		c.expectUntouched(pod)
	}
	// The next call begins anew.
	c.expectWaits("evicting", c.evict(alone))
	c.awaitRequest(alone, "the first interceptor to be active again", active(first))
}

// testRepeatedCallsExpire has a drain that calls every few seconds and stops.
func testRepeatedCallsExpire(t *testing.T, c *cluster) {
	now := newFakeClock()
	c.startController(now)
	node := c.createNode()
	c.cordon(node, true)
	pod := c.createRunningPod(newPod("pod", withInterceptors(first), onNode(node)), v1.ConditionTrue)
	repeats := func() bool {
		return c.getRequest(pod).Annotations[coordinationv1alpha1.EvictionCallsRepeatAnnotation] == "true"
	}
	c.drain(pod)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.expectWaits("evicting", c.evict(pod))
	if !repeats() {
		t.Fatalf("the second call has noted nothing: %v", c.getRequest(pod).Annotations)
	}
	for range 5 { // It goes on for longer than a call counts.
		now.Step(time.Minute)
		c.expectWaits("evicting", c.evict(pod))
		c.report(pod, started(first, metav1.NewTime(c.startTimeOf(pod, now.Now()))).WithHeartbeatTime(metav1.NewTime(now.Now())))
	}
	c.expectRequesters(pod, evictions)
	now.Step(3*time.Minute + time.Second)
	c.awaitRequest(pod, "the end of the request", canceled)
	c.expectUntouched(pod)
	c.expectWaits("evicting", c.evict(pod))
	c.awaitRequest(pod, "the first interceptor to be active again", active(first))
}

// testCallsRenewed has an evictor that calls every ten minutes, as the descheduler does, while the
// controller is restarted. A time that a client has forged does not keep the request.
func testCallsRenewed(t *testing.T, c *cluster) {
	now := newFakeClock()
	stop := c.startController(now)
	pod := c.createRunningPod(newPod("slow", withInterceptors(first)), v1.ConditionTrue)
	c.expectWaits("evicting", c.evict(pod))
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	for i := range 6 {
		c.report(pod, started(first, metav1.NewTime(c.startTimeOf(pod, now.Now()))).WithHeartbeatTime(metav1.NewTime(now.Now())))
		now.Step(10 * time.Minute)
		c.expectWaits("evicting", c.evict(pod))
		if i == 3 {
			stop()
			stop = c.startController(now)
			c.join(pod, drainer)
			left := c.leave(pod, drainer)
			c.awaitRequest(pod, "a sync of the new controller", observed(left.Generation))
		}
		want := now.Now().UTC().Format(time.RFC3339)
		if got := c.getRequest(pod).Annotations[coordinationv1alpha1.EvictionCallTimeAnnotation]; got != want {
			t.Errorf("the last call is stored as %q, want %q", got, want)
		}
	}
	before := c.getRequest(pod).Annotations
	now.Step(59 * time.Second)
	c.expectWaits("evicting", c.evict(pod))
	if diff := cmp.Diff(before, c.getRequest(pod).Annotations); diff != "" {
		t.Errorf("a call within a minute was stored (-before +now):\n%s", diff)
	}
	c.expectRequesters(pod, evictions)

	forged := now.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	if _, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Patch(t.Context(), string(pod.UID), types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, coordinationv1alpha1.EvictionCallTimeAnnotation, forged), metav1.PatchOptions{}); err != nil {
		t.Fatalf("forging the time: %v", err)
	}
	c.awaitRequest(pod, "the end of the request", canceled)
	c.expectUntouched(pod)
}

// testCallsBesideBudget has a budget that refuses an eviction for longer than a call counts. The
// interceptors have acted, and must not act again while the evictor goes on calling.
func testCallsBesideBudget(t *testing.T, c *cluster) {
	now := newFakeClock()
	c.StartDisruptionController(c.namespace)
	c.startController(now)
	pod := c.createRunningPod(newPod("stuck", withInterceptors(first)), v1.ConditionTrue)
	c.createBudget("guard", pod, 1, policyv1.IfHealthyBudget)
	c.expectWaits("evicting", c.evict(pod))
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.report(pod, completed(first, metav1.NewTime(now.Now())))
	request := c.awaitRequest(pod, "the budget to block the eviction", blocked)
	for range 3 { // As rarely as the descheduler.
		now.Step(10 * time.Minute)
		if err := c.evict(pod); !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
			t.Errorf("evicting: %v, want a refusal by the budget", err)
		}
		want := now.Now().UTC().Format(time.RFC3339)
		current := c.getRequest(pod)
		if got := current.Annotations[coordinationv1alpha1.EvictionCallTimeAnnotation]; got != want || current.UID != request.UID || canceled(current) {
			t.Errorf("the request %s is %s, and the last call is stored as %q, want the request %s and %q", current.UID, describe(current), got, request.UID, want)
		}
	}
	c.expectRequesters(pod, evictions)
	now.Step(15 * time.Minute)
	c.awaitRequest(pod, "the end of the request", canceled)
	c.expectUntouched(pod)
}

// createNode creates the node of the namespace.
func (c *cluster) createNode() string {
	c.t.Helper()
	node, err := c.client.CoreV1().Nodes().Create(c.t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("creating a node: %v", err)
	}
	return node.Name
}

func (c *cluster) cordon(node string, unschedulable bool) {
	c.t.Helper()
	if _, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), node, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable), metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("cordoning a node: %v", err)
	}
}

func onNode(name string) func(*v1.Pod) { return func(pod *v1.Pod) { pod.Spec.NodeName = name } }

// drain calls pods/eviction until kube-apiserver has noted that the node of the pod is cordoned, which
// its cache may not know at first.
func (c *cluster) drain(pod *v1.Pod) {
	c.t.Helper()
	c.Eventually("an eviction from a cordoned node", func(context.Context) (bool, string) {
		c.expectWaits("evicting", c.evict(pod))
		request := c.getRequest(pod)
		return request.Annotations[coordinationv1alpha1.EvictionCallCordonAnnotation] != "", fmt.Sprint(request.Annotations)
	})
}

// testUncordon has pods that are evicted from a node before and after it is cordoned. One of them is
// requested by others as well.
func testUncordon(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	node := c.createNode()
	before := c.createRunningPod(newPod("before", withInterceptors(first), onNode(node)), v1.ConditionTrue)
	c.expectWaits("evicting", c.evict(before))
	c.cordon(node, true)
	alone := c.createRunningPod(newPod("alone", withInterceptors(first), onNode(node)), v1.ConditionTrue)
	shared := c.createRunningPod(newPod("shared", withInterceptors(first), onNode(node)), v1.ConditionTrue)
	for _, pod := range []*v1.Pod{alone, shared} {
		c.drain(pod)
		c.awaitRequest(pod, "the first interceptor to be active", active(first))
		c.expectRequesters(pod, evictions)
	}
	c.join(shared, drainer)

	c.cordon(node, false)
	c.awaitRequest(alone, "the end of the request", canceled)
	request := c.awaitRequest(shared, "the drain to be withdrawn", func(request *coordinationv1alpha1.EvictionRequest) bool { return len(request.Spec.Requesters) == 1 })
	c.expectRequesters(shared, drainer)
	if len(request.Annotations) != 1 || request.Annotations[coordinationv1alpha1.EvictionWithdrawnByAnnotation] != controllerUser {
		t.Errorf("the request says %v", request.Annotations)
	}
	c.expectEvents("EvictionRequest", string(alone.UID), "InterceptorActivated", "NodeUncordoned", "EvictionCanceled")
	c.expectRequesters(before, evictions)
	for _, pod := range []*v1.Pod{before, alone, shared} {
		c.expectUntouched(pod)
	}
	// An evictor that goes on is not a drain any more.
	c.Eventually("an eviction from a schedulable node", func(context.Context) (bool, string) {
		c.expectWaits("evicting", c.evict(alone))
		request := c.getRequest(alone)
		return !canceled(request) && active(first)(request) && request.Annotations[coordinationv1alpha1.EvictionCallCordonAnnotation] == "", fmt.Sprint(describe(request), request.Annotations)
	})
	c.expectRequesters(alone, evictions)
}

func testUncordonWithoutController(t *testing.T, c *cluster) {
	node := c.createNode()
	stop := c.startController(clock.RealClock{})
	c.cordon(node, true)
	pod := c.createRunningPod(newPod("pod", withInterceptors(first), onNode(node)), v1.ConditionTrue)
	c.drain(pod)
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	stop()
	c.cordon(node, false)
	c.expectRequesters(pod, evictions)
	c.startController(clock.RealClock{})
	c.awaitRequest(pod, "the end of the request", canceled)
	c.expectUntouched(pod)
}

// startTimeOf returns the time at which the first interceptor started, or the default.
func (c *cluster) startTimeOf(pod *v1.Pod, defaultTime time.Time) time.Time {
	c.t.Helper()
	for _, entry := range c.getRequest(pod).Status.Interceptors {
		if entry.Name == first && entry.StartTime != nil {
			return entry.StartTime.Time
		}
	}
	return defaultTime
}

// testConcurrentEvictions has many callers: none fails, none ends the pod, and they write once.
func testConcurrentEvictions(t *testing.T, c *cluster) {
	pod := c.createRunningPod(newPod("wanted", withInterceptors(first)), v1.ConditionTrue)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint(i))
	}
	client := c.ClientOf(evictor)
	c.concurrently(names, func(string) error {
		err := c.evictWith(client, pod, nil)
		c.expectWaits("evicting", err)
		return nil
	})
	if request := c.getRequest(pod); request.Generation != 1 || len(request.Spec.Requesters) != 1 {
		t.Errorf("the request has generation %d and the requesters %v, want one write", request.Generation, request.Spec.Requesters)
	}
	c.expectUntouched(pod)
}

// testEvictionOfSuccessor has a pod that comes back under its name, like those of StatefulSets. Its
// caller does not say which one it means, like kubectl.
func testEvictionOfSuccessor(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	pod := c.createRunningPod(newPod("db-0", withInterceptors(first)), v1.ConditionTrue)
	c.expectWaits("evicting", c.evict(pod))
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
	c.report(pod, completed(first, metav1.Now()))
	c.awaitRequest(pod, "the end of the request", evicted)

	successor := c.createRunningPod(newPod("db-0", withInterceptors(first)), v1.ConditionTrue)
	if err := c.evict(successor); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), string(pod.UID)) {
		t.Errorf("evicting the successor: %v, want NotFound because the pod is gone", err)
	}
	c.expectNoRequest(successor)
	c.expectUntouched(successor)
	c.expectWaits("evicting the successor again", c.evict(successor))
}

// TestEvictionRequestForEvictionsRollback disables the gate while an eviction waits for an
// interceptor, whose caller then either goes on, or has given up.
func TestEvictionRequestForEvictionsRollback(t *testing.T) {
	etcd := framework.SharedEtcd()
	var namespace string
	var goesOn, givesUp *v1.Pod
	t.Run("on", func(t *testing.T) {
		c := newCluster(t, startEvictionServer(t, etcd, true))
		namespace = c.namespace
		c.grantEvictions(evictor)
		c.startController(clock.RealClock{})
		goesOn = c.createRunningPod(newPod("goes-on", withInterceptors(first)), v1.ConditionTrue)
		givesUp = c.createRunningPod(newPod("gives-up", withInterceptors(first)), v1.ConditionTrue)
		for _, pod := range []*v1.Pod{goesOn, givesUp} {
			c.expectWaits("evicting", c.evict(pod))
			c.awaitRequest(pod, "the first interceptor to be active", active(first))
		}
	})
	t.Run("off", func(t *testing.T) {
		c := clusterIn(testcluster.In(t, startEvictionServer(t, etcd, false), namespace))
		now := newFakeClock()
		c.startController(now)
		c.expectAllowed("evicting as ever", c.evict(goesOn))
		c.awaitRequest(goesOn, "the end of the request", evicted)
		c.expectGone(goesOn)
		now.Step(15*time.Minute + time.Second)
		c.awaitRequest(givesUp, "the end of the request", canceled)
		c.expectUntouched(givesUp)
		c.expectAllowed("evicting later", c.evict(givesUp))
		c.expectGone(givesUp)
		c.expectRequestAPI(givesUp)
	})
}

// expectRequestAPI fails unless requests of others are as with the gate on.
func (c *cluster) expectRequestAPI(pod *v1.Pod) {
	c.t.Helper()
	if request := c.getRequest(pod); !canceled(request) {
		c.t.Errorf("the request is %s, want canceled", describe(request))
	}
}
