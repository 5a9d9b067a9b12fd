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

// Package lifecycleeviction tests EvictionRequests and Evictions of lifecycle.k8s.io, and responders, with the clients that
// Kubernetes has for them.
package lifecycleeviction

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/controller/evictionrequest"
	"k8s.io/kubernetes/pkg/controller/lifecycleeviction"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	controllerUser = "system:serviceaccount:kube-system:lifecycle-eviction-controller"

	drainer, scaler = "example.com/drainer", "example.com/scaler"
	early, late     = "example.com/early", "example.com/late"
	imperative      = lifecyclev1alpha1.EvictionResponderImperativeEviction
)

type cluster struct {
	*testcluster.Cluster
	lock sync.Mutex
	// writes are those of the controllers.
	writes []string
}

// counted returns a client of a controller, whose writes are noted.
func (c *cluster) counted(user string) clientset.Interface {
	return c.ClientThrough(user, func(next http.RoundTripper) http.RoundTripper {
		return testcluster.RoundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if testcluster.IsWrite(request) && !strings.Contains(request.URL.Path, "/events") && err == nil {
				c.lock.Lock()
				defer c.lock.Unlock()
				c.writes = append(c.writes, fmt.Sprintf("%s %s: %d", request.Method, request.URL.Path, response.StatusCode))
			}
			return response, err
		})
	})
}

// TestLifecycleEvictions runs each test in a namespace of one API server. Both controllers have only the permissions of
// their bootstrap roles.
func TestLifecycleEvictions(t *testing.T) {
	config := testcluster.StartAPIServer(t, framework.SharedEtcd(), featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI:          true,
		features.LifecycleEvictions:          true,
		features.EvictionRequestForEvictions: true,
		features.GenericWorkload:             true,
	}, "--runtime-config=lifecycle.k8s.io/v1alpha1=true,scheduling.k8s.io/v1beta1=true")
	tests := map[string]func(*cluster){
		"without responders":          testWithoutResponders,
		"cost":                        testCost,
		"responders act in order":     testOrder,
		"canceled, and asked again":   testCancel,
		"missing and other pods":      testInvalid,
		"by the other group":          testOtherGroup,
		"a tenant":                    testTenant,
		"an Eviction is deleted":      testDeletedEviction,
		"before and after the others": testAmongInterceptors,
		"a UID with another name":     testOtherName,
		"the request is deleted":      testDeletedRequest,
		"the request is emptied":      testEmptiedRequest,
		"undone again and again":      testUndone,
		"made by hand":                testMadeByHand,
		"through pods/eviction":       testThroughEviction,
		"names with a slash":          testOtherRequesters,
		"a thousand requests":         testThousandRequests,
		"asked again when it is gone": testAskedAgainWhenGone,
		"refused by a quota":          testQuota,
		"reserved names":              testReserved,
	}
	maps.Copy(tests, upstreamTests)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // Most of the time, they wait.
			c := &cluster{Cluster: testcluster.New(t, config, "lifecycle")}
			c.PollTimeout = 15 * time.Second
			c.start()
			test(c)
		})
	}
	for name, test := range map[string]func(*cluster){
		"a full request, and a restart":   testFull,
		"a suspended leader":              testSuspended,
		"nobody runs, then the engine":    func(c *cluster) { testInterrupted(c, nil) },
		"the gate is off, and back again": func(c *cluster) { testInterrupted(c, ptr.To(false)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{Cluster: testcluster.New(t, config, "lifecycle")}
			c.PollTimeout = 15 * time.Second
			test(c)
		})
	}
}

// start starts both controllers.
func (c *cluster) start() {
	c.T.Helper()
	factory, _ := c.startEngine(true)
	c.startDoor(factory)
}

// startEngine starts the controller of eviction requests, and returns its informers and what stops it.
func (c *cluster) startEngine(respondersAct bool) (shared informers.SharedInformerFactory, stop func()) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c.ClientOf(testcluster.EvictionUser), 0, informers.WithNamespace(c.Namespace))
	client := c.counted(testcluster.EvictionUser)
	evictions, err := evictionrequest.New(ctx, factory.Coordination().V1alpha1().EvictionRequests(), factory.Core().V1().Pods(), factory.Core().V1().Nodes(),
		factory.Policy().V1().PodDisruptionBudgets(), client, client, client, time.Hour)
	if err == nil && respondersAct {
		err = evictions.LetRespondersAct()
	}
	if err != nil {
		cancel()
		c.T.Fatalf("creating the controller of eviction requests: %v", err)
	}
	return factory, c.Run(ctx, cancel, factory, func() { evictions.Run(ctx, 2, 2) })
}

// startDoor starts the controller of lifecycle.k8s.io, which shares informers with the other one, and returns what stops it.
func (c *cluster) startDoor(shared informers.SharedInformerFactory) (stop func()) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	return c.startDoorThrough(ctx, cancel, c.counted(controllerUser), shared)
}

// startDoorThrough is startDoor with the client of the controller, and caches of its own if there are no shared ones.
func (c *cluster) startDoorThrough(ctx context.Context, cancel context.CancelFunc, client clientset.Interface, shared informers.SharedInformerFactory) (stop func()) {
	c.T.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(c.Namespace))
	if shared == nil {
		shared = factory
	}
	lifecycle, err := lifecycleeviction.New(client, factory.Lifecycle().V1alpha1().EvictionRequests(), factory.Lifecycle().V1alpha1().Evictions(),
		shared.Coordination().V1alpha1().EvictionRequests(), shared.Core().V1().Pods(), clock.RealClock{})
	if err != nil {
		cancel()
		c.T.Fatalf("creating the controller of lifecycle.k8s.io: %v", err)
	}
	return c.Run(ctx, cancel, factory, func() { lifecycle.Run(ctx, 2) })
}

func (c *cluster) createPod(name string, options ...func(*v1.Pod)) *v1.Pod {
	c.T.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "image"}}}}
	for _, option := range options {
		option(pod)
	}
	created, err := c.Client.CoreV1().Pods(c.Namespace).Create(c.T.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		c.T.Fatalf("creating pod %s: %v", name, err)
	}
	return created
}

func responders(priorities map[string]int32) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		for name, priority := range priorities {
			pod.Spec.EvictionResponders = append(pod.Spec.EvictionResponders, v1.EvictionResponder{Name: name, Priority: ptr.To(priority)})
		}
	}
}

func newRequest(name, requester string, pod *v1.Pod) *lifecyclev1alpha1.EvictionRequest {
	return &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}},
			Requester: requester, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}
}

func (c *cluster) ask(name, requester string, pod *v1.Pod) *lifecyclev1alpha1.EvictionRequest {
	c.T.Helper()
	created, err := c.Client.LifecycleV1alpha1().EvictionRequests(c.Namespace).Create(c.T.Context(), newRequest(name, requester, pod), metav1.CreateOptions{})
	if err != nil {
		c.T.Fatalf("creating a request: %v", err)
	}
	return created
}

func (c *cluster) setIntent(name string, intent lifecyclev1alpha1.EvictionRequestIntent) {
	c.T.Helper()
	requests := c.Client.LifecycleV1alpha1().EvictionRequests(c.Namespace)
	c.Eventually("the intent of "+name, func(ctx context.Context) (bool, string) {
		request, err := requests.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			request.Spec.Intent = intent
			_, err = requests.Update(ctx, request, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
}

// describe says what conditions say.
func describe(conditions []metav1.Condition) string {
	var texts []string
	for _, conditionType := range []string{"TargetEvicted", "Failed"} {
		if found := meta.FindStatusCondition(conditions, conditionType); found != nil {
			texts = append(texts, fmt.Sprintf("%s=%s/%s", conditionType, found.Status, found.Reason))
		}
	}
	return strings.Join(texts, " ")
}

const (
	goesOn   = "TargetEvicted=False/AwaitingEviction Failed=False/AwaitingEviction"
	deleted  = "TargetEvicted=True/PodDeleted Failed=False/Succeeded"
	canceled = "TargetEvicted=False/EvictionFailed Failed=True/CanceledDueToNoRequesters"
	invalid  = "TargetEvicted=False/EvictionFailed Failed=True/EvictionInvalid"
)

func (c *cluster) expectRequest(name, want string) *lifecyclev1alpha1.EvictionRequest {
	c.T.Helper()
	var request *lifecyclev1alpha1.EvictionRequest
	c.Eventually(fmt.Sprintf("request %s to say %s", name, want), func(ctx context.Context) (bool, string) {
		var err error
		if request, err = c.Client.LifecycleV1alpha1().EvictionRequests(c.Namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		got := describe(request.Status.Conditions)
		return got == want && ptr.Deref(request.Status.ObservedGeneration, 0) == request.Generation, fmt.Sprintf("%s, generation %d of %d", got, ptr.Deref(request.Status.ObservedGeneration, 0), request.Generation)
	})
	return request
}

// states says which states the responders of an Eviction have.
func states(eviction *lifecyclev1alpha1.Eviction) string {
	var texts []string
	for _, responder := range eviction.Status.TargetResponders {
		texts = append(texts, fmt.Sprintf("%s=%s", responder.Name, responder.State))
	}
	return strings.Join(texts, " ")
}

func (c *cluster) expectEviction(name, want, conditions string) *lifecyclev1alpha1.Eviction {
	c.T.Helper()
	var eviction *lifecyclev1alpha1.Eviction
	c.Eventually(fmt.Sprintf("Eviction %s to have %q and %s", name, want, conditions), func(ctx context.Context) (bool, string) {
		var err error
		if eviction, err = c.Client.LifecycleV1alpha1().Evictions(c.Namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		got, state := states(eviction), describe(eviction.Status.Conditions)
		return got == want && state == conditions, got + ", " + state
	})
	return eviction
}

// reportAs reports as a responder.
func (c *cluster) reportAs(client clientset.Interface, eviction, responder string, report func(*lifecyclev1alpha1.ResponderStatus)) error {
	c.T.Helper()
	evictions := client.LifecycleV1alpha1().Evictions(c.Namespace)
	for {
		current, err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).Get(c.T.Context(), eviction, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range current.Status.Responders {
			if current.Status.Responders[i].Name == responder {
				report(&current.Status.Responders[i])
			}
		}
		if _, err = evictions.UpdateStatus(c.T.Context(), current, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func completed(report *lifecyclev1alpha1.ResponderStatus) {
	report.CompletionTime = ptr.To(metav1.Now())
}

func (c *cluster) report(eviction, responder string, report func(*lifecyclev1alpha1.ResponderStatus)) {
	c.T.Helper()
	if err := c.reportAs(c.Client, eviction, responder, report); err != nil {
		c.T.Errorf("reporting as %s: %v", responder, err)
	}
}

func (c *cluster) expectGone(pod *v1.Pod) {
	c.T.Helper()
	c.Eventually("the eviction of pod "+pod.Name, func(ctx context.Context) (bool, string) {
		_, err := c.Client.CoreV1().Pods(c.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

func (c *cluster) expectStays(pod *v1.Pod) {
	c.T.Helper()
	if found, err := c.Client.CoreV1().Pods(c.Namespace).Get(c.T.Context(), pod.Name, metav1.GetOptions{}); err != nil || found.DeletionTimestamp != nil {
		c.T.Errorf("pod %s: %v, %v", pod.Name, found, err)
	}
}

func testWithoutResponders(c *cluster) {
	pod := c.createPod("plain")
	c.ask("one", drainer, pod)
	c.ask("two", scaler, pod)
	c.expectGone(pod)
	c.expectRequest("one", deleted)
	eviction := c.expectEviction("pod-1-plain", imperative+"=Completed", deleted)
	if eviction.Labels[drainer] != "requester" || eviction.Labels[imperative] != "responder" || eviction.Spec.Target.Pod.UID != pod.UID {
		c.T.Errorf("labels %v, target %v", eviction.Labels, eviction.Spec.Target.Pod)
	}
	if len(eviction.OwnerReferences) == 0 || eviction.OwnerReferences[0].Kind != "EvictionRequest" || eviction.OwnerReferences[0].APIVersion != "lifecycle.k8s.io/v1alpha1" {
		c.T.Errorf("owners %v", eviction.OwnerReferences)
	}
}

// testCost: an eviction through this door takes at most 8 writes of the controllers, evictions included.
func testCost(c *cluster) {
	pod := c.createPod("plain")
	c.ask("one", drainer, pod)
	c.expectGone(pod)
	c.expectRequest("one", deleted)
	c.expectEviction("pod-1-plain", imperative+"=Completed", deleted)
	c.lock.Lock()
	defer c.lock.Unlock()
	c.T.Logf("writes:\n%s", strings.Join(c.writes, "\n"))
	if len(c.writes) > 8 {
		c.T.Errorf("%d writes", len(c.writes))
	}
}

func testOrder(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000, late: 5000}))
	c.ask("one", drainer, pod)
	c.expectEviction("pod-1-web", early+"=Active "+late+"=Inactive "+imperative+"=Inactive", goesOn)
	c.expectRequest("one", goesOn)
	eta := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	c.report("pod-1-web", early, func(r *lifecyclev1alpha1.ResponderStatus) {
		r.HeartbeatTime, r.ExpectedCompletionTime, r.Message = ptr.To(metav1.Now()), &eta, ptr.To("saving")
	})
	c.Eventually("the report in the request", func(ctx context.Context) (bool, string) {
		request, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil || len(request.Status.Interceptors) == 0 {
			return false, fmt.Sprint(err)
		}
		entry := request.Status.Interceptors[0]
		return entry.Message == "saving" && entry.StartTime != nil && eta.Equal(entry.ExpectedFinishTime), fmt.Sprintf("%+v", entry)
	})
	c.expectStays(pod)
	c.report("pod-1-web", early, completed)
	c.expectEviction("pod-1-web", early+"=Completed "+late+"=Active "+imperative+"=Inactive", goesOn)
	c.expectStays(pod)
	c.report("pod-1-web", late, completed)
	c.expectGone(pod)
	c.expectEviction("pod-1-web", early+"=Completed "+late+"=Completed "+imperative+"=Completed", deleted)
	c.expectRequest("one", deleted)
}

func testCancel(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000}))
	c.ask("one", drainer, pod)
	c.ask("two", scaler, pod)
	c.expectEviction("pod-1-web", early+"=Active "+imperative+"=Inactive", goesOn)
	c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	c.expectRequest("one", goesOn) // Another one wants it.
	if err := c.Client.LifecycleV1alpha1().EvictionRequests(c.Namespace).Delete(c.T.Context(), "two", metav1.DeleteOptions{}); err != nil {
		c.T.Fatal(err)
	}
	c.expectEviction("pod-1-web", early+"=Canceled "+imperative+"=Inactive", canceled)
	c.expectRequest("one", canceled)
	c.expectStays(pod)
	c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentEviction)
	c.expectEviction("pod-2-web", early+"=Active "+imperative+"=Inactive", goesOn)
	c.expectRequest("one", goesOn)
	c.report("pod-2-web", early, completed)
	c.expectGone(pod)
	c.expectRequest("one", deleted)
	c.expectEviction("pod-1-web", early+"=Canceled "+imperative+"=Inactive", canceled)
}

func testInvalid(c *cluster) {
	pod := c.createPod("web")
	other := pod.DeepCopy()
	other.UID = "6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a10"
	c.ask("other", drainer, other)
	c.expectRequest("other", invalid)
	other.Name = "missing"
	other.UID = "6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a11"
	c.ask("missing", drainer, other)
	c.expectRequest("missing", goesOn)
	c.expectRequest("missing", invalid)
	c.expectStays(pod)
	c.Eventually("an event for each of the two", func(ctx context.Context) (bool, string) {
		events, err := c.Client.EventsV1().Events(c.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=EvictionInvalid"})
		if err != nil {
			return false, err.Error()
		}
		notes := map[string]string{}
		for _, event := range events.Items {
			notes[event.Regarding.Name] = event.Note
		}
		return len(notes) == 2 && strings.HasPrefix(notes["other"], "Target pod UID mismatch") && notes["missing"] == "Target pod not found.", fmt.Sprint(notes)
	})
}

// testOtherGroup: responders hear of evictions that are requested through coordination.k8s.io.
func testOtherGroup(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000}))
	c.ApplyRequesters(pod, "drainer.example.com", "drainer.example.com")
	eviction := c.expectEviction("pod-1-web", early+"=Active "+imperative+"=Inactive", goesOn)
	if len(eviction.Status.Requesters) != 1 || eviction.Status.Requesters[0].Name != "example.com/drainer" {
		c.T.Errorf("requesters %v", eviction.Status.Requesters)
	}
	if len(eviction.OwnerReferences) != 1 || eviction.OwnerReferences[0].APIVersion != "coordination.k8s.io/v1alpha1" {
		c.T.Errorf("owners %v", eviction.OwnerReferences)
	}
	c.report("pod-1-web", early, completed)
	c.expectGone(pod)
	c.expectEviction("pod-1-web", early+"=Completed "+imperative+"=Completed", deleted)
}

// testTenant: whoever may write the objects, may not have the effect without the permissions for that.
func testTenant(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000}))
	const tenant = "tenant@example.com"
	c.grant(tenant, rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	requests := c.ClientOf(tenant).LifecycleV1alpha1().EvictionRequests(c.Namespace)
	if _, err := requests.Create(c.T.Context(), newRequest("mine", drainer, pod), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		c.T.Errorf("requesting the eviction: %v", err)
	}
	c.ask("one", drainer, pod)
	c.expectEviction("pod-1-web", early+"=Active "+imperative+"=Inactive", goesOn)
	withdraw := []byte(`{"spec":{"intent":"Withdrawn"}}`)
	if _, err := requests.Patch(c.T.Context(), "one", "application/merge-patch+json", withdraw, metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		c.T.Errorf("withdrawing it: %v", err)
	}
	if err := requests.Delete(c.T.Context(), "one", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		c.T.Errorf("deleting it: %v", err)
	}
	// For an owner that does not exist, the garbage collector would delete it.
	owner := []byte(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]}}`)
	if _, err := requests.Patch(c.T.Context(), "one", types.MergePatchType, owner, metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		c.T.Errorf("adding an owner: %v", err)
	}
	if err := c.reportAs(c.ClientOf(tenant), "pod-1-web", early, completed); !apierrors.IsForbidden(err) {
		c.T.Errorf("reporting: %v", err)
	}
	evicted := []byte(`{"status":{"conditions":[{"type":"TargetEvicted","status":"True","reason":"PodDeleted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	if _, err := requests.Patch(c.T.Context(), "one", "application/merge-patch+json", evicted, metav1.PatchOptions{}, "status"); !apierrors.IsForbidden(err) {
		c.T.Errorf("writing the status of the request: %v", err)
	}
	forged := []byte(`{"status":{"observedGeneration":2}}`)
	if _, err := c.ClientOf(tenant).LifecycleV1alpha1().Evictions(c.Namespace).Patch(c.T.Context(), "pod-1-web", "application/merge-patch+json", forged, metav1.PatchOptions{}, "status"); !apierrors.IsForbidden(err) {
		c.T.Errorf("writing the status of the Eviction: %v", err)
	}
	c.expectStays(pod)
	c.grant(tenant, rbacv1.PolicyRule{APIGroups: []string{coordinationv1alpha1.GroupName}, Resources: []string{coordinationv1alpha1.EvictionInterceptorResource}, ResourceNames: []string{early}, Verbs: []string{coordinationv1alpha1.EvictionInterceptVerb}})
	if err := c.reportAs(c.ClientOf(tenant), "pod-1-web", early, completed); err != nil {
		c.T.Errorf("reporting with the verb: %v", err)
	}
	c.expectGone(pod)
}

// grant allows a user something in the namespace.
func (c *cluster) grant(user string, rules ...rbacv1.PolicyRule) {
	c.T.Helper()
	role, err := c.Client.RbacV1().Roles(c.Namespace).Create(c.T.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "role-"}, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	if _, err := c.Client.RbacV1().RoleBindings(c.Namespace).Create(c.T.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		c.T.Fatal(err)
	}
	c.Eventually("the permissions of "+user, func(ctx context.Context) (bool, string) {
		list, err := c.ClientOf(user).LifecycleV1alpha1().Evictions(c.Namespace).List(ctx, metav1.ListOptions{})
		return err == nil && list != nil, fmt.Sprint(err)
	})
}

// testDeletedEviction: somebody deletes the Eviction in the middle. The next one has the responders that have not acted.
func testDeletedEviction(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000, late: 5000}))
	c.ask("one", drainer, pod)
	c.expectEviction("pod-1-web", early+"=Active "+late+"=Inactive "+imperative+"=Inactive", goesOn)
	c.report("pod-1-web", early, completed)
	c.expectEviction("pod-1-web", early+"=Completed "+late+"=Active "+imperative+"=Inactive", goesOn)
	if err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).Delete(c.T.Context(), "pod-1-web", metav1.DeleteOptions{}); err != nil {
		c.T.Fatal(err)
	}
	c.expectEviction("pod-1-web", late+"=Active "+imperative+"=Inactive", goesOn)
	c.report("pod-1-web", late, completed)
	c.expectGone(pod)
	c.expectRequest("one", deleted)
}

// testAmongInterceptors: an interceptor of the pod acts after the responders with a high priority, and before the others.
func testAmongInterceptors(c *cluster) {
	const between = "between.example.com"
	pod := c.createPod("web", responders(map[string]int32{early: 20000, late: 5000}), func(pod *v1.Pod) {
		pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: between}}
	})
	c.ask("one", drainer, pod)
	c.expectEviction("pod-1-web", early+"=Active "+late+"=Inactive "+imperative+"=Inactive", goesOn)
	c.report("pod-1-web", early, completed)
	requests := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace)
	c.Eventually("the interceptor to complete", func(ctx context.Context) (bool, string) {
		request, err := requests.Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil || len(request.Status.ActiveInterceptors) == 0 || request.Status.ActiveInterceptors[0] != between {
			return false, fmt.Sprint(err, request.Status.ActiveInterceptors)
		}
		eviction, err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).Get(ctx, "pod-1-web", metav1.GetOptions{})
		if err != nil || strings.Contains(states(eviction), late+"=Active") {
			c.T.Errorf("while the interceptor is active: %s, %v", states(eviction), err)
		}
		for i := range request.Status.Interceptors {
			if request.Status.Interceptors[i].Name == between {
				request.Status.Interceptors[i].CompletionTime = ptr.To(metav1.Now().Rfc3339Copy())
			}
		}
		_, err = requests.UpdateStatus(ctx, request, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	c.expectEviction("pod-1-web", early+"=Completed "+late+"=Active "+imperative+"=Inactive", goesOn)
	c.report("pod-1-web", late, completed)
	c.expectGone(pod)
}

// testMadeByHand: Evictions that others have made keep nobody from being evicted, and are not shown as ours.
func testMadeByHand(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000}))
	c.byHand("pod-1-web", c.createPod("other"), nil)
	c.ask("one", drainer, pod)
	c.expectEviction("pod-2-web", early+"=Active "+imperative+"=Inactive", goesOn)
	c.byHand("pod-9-web", pod, nil)
	c.expectEviction("pod-9-web", "", invalid)
	c.report("pod-2-web", early, completed)
	c.expectGone(pod)
	c.expectEviction("pod-2-web", early+"=Completed "+imperative+"=Completed", deleted)
	c.expectRequest("one", deleted)
	for _, name := range []string{"pod-1-web", "pod-9-web"} {
		if eviction, err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).Get(c.T.Context(), name, metav1.GetOptions{}); err != nil || len(eviction.Status.TargetResponders) > 0 {
			c.T.Errorf("%s: %v, %v", name, eviction, err)
		}
	}
}

// testOtherRequesters: requesters of the other group may have names of this form. They stay, and nothing is written for them.
func testOtherRequesters(c *cluster) {
	pod := c.createPod("web", func(pod *v1.Pod) {
		pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: "between.example.com"}}
	})
	c.ApplyRequesters(pod, "example.com/other", "example.com/other")
	c.ask("one", drainer, pod)
	requesters := func(want ...string) {
		c.T.Helper()
		c.Eventually(fmt.Sprintf("the requesters %q", want), func(ctx context.Context) (bool, string) {
			request, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			var names []string
			for _, requester := range request.Spec.Requesters {
				names = append(names, requester.Name)
			}
			slices.Sort(names)
			return slices.Equal(names, want), fmt.Sprint(names)
		})
	}
	requesters(drainer, "example.com/other")
	c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	requesters("example.com/other")
	plain := c.createPod("plain", func(pod *v1.Pod) {
		pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: "between.example.com"}}
	})
	c.ApplyRequesters(plain, "example.com/other", "example.com/other")
	c.expectEviction("pod-1-web", "", goesOn)
	if list, err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).List(c.T.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		c.T.Errorf("Evictions %v, %v", list, err)
	}
}

// testThroughEviction: kubectl drain, and whoever else calls pods/eviction, waits for responders.
func testThroughEviction(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000}))
	evict := func() error {
		return c.Client.PolicyV1().Evictions(c.Namespace).Evict(c.T.Context(), &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: pod.Name}, DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
		})
	}
	// The first call only says what it would have to wait for.
	for range 2 {
		if err := evict(); !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), early) {
			c.T.Fatalf("evicting: %v", err)
		}
	}
	eviction := c.expectEviction("pod-1-web", early+"=Active "+imperative+"=Inactive", goesOn)
	if len(eviction.Status.Requesters) != 1 || eviction.Status.Requesters[0].Name != "k8s.io/eviction" {
		c.T.Errorf("requesters %v", eviction.Status.Requesters)
	}
	c.report("pod-1-web", early, completed)
	c.expectGone(pod)
	c.expectEviction("pod-1-web", early+"=Completed "+imperative+"=Completed", deleted)
}

// testUndone: who removes the labels again and again, or deletes the Eviction, does not have the controller write as often.
func testUndone(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000}))
	c.ask("one", drainer, pod)
	c.expectEviction("pod-1-web", early+"=Active "+imperative+"=Inactive", goesOn)
	c.expectRequest("one", goesOn)
	evictions := c.Client.LifecycleV1alpha1().Evictions(c.Namespace)
	c.lock.Lock()
	c.writes = nil
	c.lock.Unlock()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := evictions.Patch(c.T.Context(), "pod-1-web", types.MergePatchType, []byte(`{"metadata":{"labels":{"`+early+`":null}}}`), metav1.PatchOptions{}); err != nil {
			c.T.Fatal(err)
		}
	}
	c.lock.Lock()
	if len(c.writes) > 2 {
		c.T.Errorf("%d writes: %q", len(c.writes), c.writes)
	}
	c.lock.Unlock()
	c.Eventually("the label", func(ctx context.Context) (bool, string) {
		eviction, err := evictions.Get(ctx, "pod-1-web", metav1.GetOptions{})
		return err == nil && eviction.Labels[early] == "responder", fmt.Sprint(eviction.Labels, err)
	})
}

// testOtherName: whoever may delete one pod has no effect on another one by its UID, nor keeps others from it.
func testOtherName(c *cluster) {
	pod, mine := c.createPod("web", responders(map[string]int32{early: 20000})), c.createPod("mine")
	mine.UID = pod.UID
	for _, name := range []string{"web", "zzz"} {
		c.byHand("by-hand-"+name, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: pod.UID}}, nil)
	}
	c.expectEviction("by-hand-web", "", canceled)
	c.expectEviction("by-hand-zzz", "", invalid)
	c.ask("mine", scaler, mine)
	c.expectRequest("mine", invalid)
	if _, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Get(c.T.Context(), string(pod.UID), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		c.T.Errorf("the eviction of another pod is requested: %v", err)
	}
	c.ask("one", drainer, pod)
	c.expectEviction("pod-1-web", early+"=Active "+imperative+"=Inactive", goesOn)
	c.expectRequest("mine", invalid)
	c.report("pod-1-web", early, completed)
	c.expectGone(pod)
	c.expectRequest("one", deleted)
}

// testDeletedRequest: somebody deletes the request of the other group in the middle, which cancels the eviction; it is
// requested again, with another Eviction.
func testDeletedRequest(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000, late: 5000}))
	c.ask("one", drainer, pod)
	c.expectEviction("pod-1-web", early+"=Active "+late+"=Inactive "+imperative+"=Inactive", goesOn)
	c.report("pod-1-web", early, completed)
	c.expectEviction("pod-1-web", early+"=Completed "+late+"=Active "+imperative+"=Inactive", goesOn)
	if err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Delete(c.T.Context(), string(pod.UID), metav1.DeleteOptions{}); err != nil {
		c.T.Fatal(err)
	}
	c.expectEviction("pod-1-web", early+"=Completed "+late+"=Canceled "+imperative+"=Inactive", canceled)
	c.expectEviction("pod-2-web", early+"=Active "+late+"=Inactive "+imperative+"=Inactive", goesOn)
	c.expectRequest("one", goesOn)
	c.expectStays(pod)
}

// testEmptiedRequest: who removes the requesters again and again, which cancels the eviction, does not make the controller
// request it as often, and its requester hears of it.
func testEmptiedRequest(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000}))
	c.ask("one", drainer, pod)
	c.expectEviction("pod-1-web", early+"=Active "+imperative+"=Inactive", goesOn)
	own := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace)
	emptied := 0
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		request, err := own.Get(c.T.Context(), string(pod.UID), metav1.GetOptions{})
		if err != nil || len(request.Spec.Requesters) == 0 {
			continue
		}
		request.Spec.Requesters = nil
		if _, err := own.Update(c.T.Context(), request, metav1.UpdateOptions{}); err == nil {
			emptied++
		}
	}
	// Once in the beginning, three times at once, and then after 5 and 10 seconds.
	if emptied < 4 || emptied > 6 {
		c.T.Errorf("it had requesters %d times in 12 seconds", emptied)
	}
	c.Eventually("the requester to hear of it", func(ctx context.Context) (bool, string) {
		request, err := c.Client.LifecycleV1alpha1().EvictionRequests(c.Namespace).Get(ctx, "one", metav1.GetOptions{})
		if err != nil || len(request.Status.Conditions) == 0 {
			return false, fmt.Sprint(err)
		}
		text := request.Status.Conditions[0].Message
		return describe(request.Status.Conditions) == goesOn && strings.HasPrefix(text, "Another client keeps deleting"), text
	})
	c.expectStays(pod)
}

// testAskedAgainWhenGone: a canceled request is asked again when the pod is gone, and its own answer stays until then.
func testAskedAgainWhenGone(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000}))
	c.ask("one", drainer, pod)
	c.expectEviction("pod-1-web", early+"=Active "+imperative+"=Inactive", goesOn)
	c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	c.expectRequest("one", canceled)
	deletePod(c, pod)
	c.expectGone(pod)
	if err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Delete(c.T.Context(), string(pod.UID), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		c.T.Fatal(err)
	}
	time.Sleep(4 * time.Second)
	c.expectRequest("one", canceled)
	c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentEviction)
	c.expectRequest("one", deleted)
	c.expectEviction("pod-1-web", early+"=Canceled "+imperative+"=Inactive", canceled)
}

// testQuota: a quota refuses the request for a while. Requesters are told, and it is tried again.
func testQuota(c *cluster) {
	pod := c.createPod("web", responders(map[string]int32{early: 20000}))
	const resource = "count/evictionrequests.coordination.k8s.io"
	quotas := c.Client.CoreV1().ResourceQuotas(c.Namespace)
	quota, err := quotas.Create(c.T.Context(), &v1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: v1.ResourceQuotaSpec{Hard: v1.ResourceList{resource: apiresource.MustParse("0")}},
	}, metav1.CreateOptions{})
	if err == nil {
		quota.Status = v1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: v1.ResourceList{resource: apiresource.MustParse("0")}}
		_, err = quotas.UpdateStatus(c.T.Context(), quota, metav1.UpdateOptions{})
	}
	if err != nil {
		c.T.Fatal(err)
	}
	c.ask("one", drainer, pod)
	c.Eventually("the requester to hear of the quota", func(ctx context.Context) (bool, string) {
		request, err := c.Client.LifecycleV1alpha1().EvictionRequests(c.Namespace).Get(ctx, "one", metav1.GetOptions{})
		if err != nil || len(request.Status.Conditions) == 0 {
			return false, fmt.Sprint(err)
		}
		text := request.Status.Conditions[0].Message
		return describe(request.Status.Conditions) == goesOn && strings.HasSuffix(text, "exceeded quota: none."), text
	})
	if err := quotas.Delete(c.T.Context(), "none", metav1.DeleteOptions{}); err != nil {
		c.T.Fatal(err)
	}
	c.expectEviction("pod-1-web", early+"=Active "+imperative+"=Inactive", goesOn)
	if request := c.expectRequest("one", goesOn); request.Status.Conditions[0].Message != "" {
		c.T.Errorf("message %q", request.Status.Conditions[0].Message)
	}
}
