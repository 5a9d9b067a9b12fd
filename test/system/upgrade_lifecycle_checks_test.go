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
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lifecycleclient "k8s.io/client-go/kubernetes/typed/lifecycle/v1alpha1"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
)

// Where EvictionRequests are in etcd. Kubernetes has those of lifecycle.k8s.io where the fork has those of
// coordination.k8s.io, which are in another place while Kubernetes serves: docs/migrate/kubernetes-1.38.md.
const (
	placeInKubernetes = "/registry/evictionrequests/"
	lifecyclePlace    = "/registry/lifecycleevictionrequests/"
	parkingPlace      = "/registry/parkedevictionrequests/"
)

// moveKeys moves what is in one place in etcd to another one, in which there must be nothing. No API server runs.
func moveKeys(tCtx ktesting.TContext, plane *controlplane.ControlPlane, from, to string) {
	tCtx.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: plane.EtcdServers(), DialTimeout: 10 * time.Second})
	tCtx.ExpectNoError(err, "connecting to etcd")
	defer client.Close()
	found, err := client.Get(tCtx, from, clientv3.WithPrefix())
	tCtx.ExpectNoError(err, "reading %s", from)
	for _, kv := range found.Kvs {
		key, target := string(kv.Key), to+strings.TrimPrefix(string(kv.Key), from)
		response, err := client.Txn(tCtx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision), clientv3.Compare(clientv3.CreateRevision(target), "=", 0)).
			Then(clientv3.OpPut(target, string(kv.Value)), clientv3.OpDelete(key)).Commit()
		tCtx.ExpectNoError(err, "moving %s", key)
		if !response.Succeeded {
			tCtx.Fatalf("moving %s to %s: it has changed, or there is another one", key, target)
		}
	}
	tCtx.Logf("%d keys are in %s instead of %s.", len(found.Kvs), to, from)
}

const (
	firstResponder, secondResponder = "example.com/save", "example.com/notify"
	lastResponder                   = lifecyclev1alpha1.EvictionResponderImperativeEviction
)

// States of the responders of an Eviction, and the conditions of it and of its requests.
const (
	firstActive      = firstResponder + "=Active " + secondResponder + "=Inactive " + lastResponder + "=Inactive"
	firstCanceled    = firstResponder + "=Canceled " + secondResponder + "=Inactive " + lastResponder + "=Inactive"
	firstInterrupted = firstResponder + "=Interrupted " + secondResponder + "=Inactive " + lastResponder + "=Inactive"
	secondActive     = firstResponder + "=Completed " + secondResponder + "=Active " + lastResponder + "=Inactive"
	allCompleted     = firstResponder + "=Completed " + secondResponder + "=Completed " + lastResponder + "=Completed"
	lastActive       = lastResponder + "=Active"
	lastCompleted    = lastResponder + "=Completed"

	awaitsEviction   = "TargetEvicted=False/AwaitingEviction Failed=False/AwaitingEviction"
	podDeleted       = "TargetEvicted=True/PodDeleted Failed=False/Succeeded"
	canceledEviction = "TargetEvicted=False/EvictionFailed Failed=True/CanceledDueToNoRequesters"
	invalidEviction  = "TargetEvicted=False/EvictionFailed Failed=True/EvictionInvalid"
)

func newPodWithResponders(name string, options ...func(*v1.Pod)) *v1.Pod {
	pod := newPod(name)
	pod.Spec.EvictionResponders = []v1.EvictionResponder{
		{Name: firstResponder, Priority: ptr.To[int32](20000)}, {Name: secondResponder, Priority: ptr.To[int32](5000)},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func withoutResponders(pod *v1.Pod) { pod.Spec.EvictionResponders = nil }

func lifecycleRequests(tCtx ktesting.TContext) lifecycleclient.EvictionRequestInterface {
	return tCtx.Client().LifecycleV1alpha1().EvictionRequests(tCtx.Namespace())
}

func lifecycleEvictions(tCtx ktesting.TContext) lifecycleclient.EvictionInterface {
	return tCtx.Client().LifecycleV1alpha1().Evictions(tCtx.Namespace())
}

// describeConditions says what the conditions of the group say.
func describeConditions(conditions []metav1.Condition) string {
	var texts []string
	for _, conditionType := range []string{string(lifecyclev1alpha1.EvictionConditionTargetEvicted), string(lifecyclev1alpha1.EvictionConditionFailed)} {
		if found := meta.FindStatusCondition(conditions, conditionType); found != nil {
			texts = append(texts, fmt.Sprintf("%s=%s/%s", conditionType, found.Status, found.Reason))
		}
	}
	return strings.Join(texts, " ")
}

// describeEviction says which states responders have.
func describeEviction(eviction *lifecyclev1alpha1.Eviction) string {
	var texts []string
	for _, responder := range eviction.Status.TargetResponders {
		texts = append(texts, fmt.Sprintf("%s=%s", responder.Name, responder.State))
	}
	return strings.Join(texts, " ")
}

func awaitLifecycleEviction(tCtx ktesting.TContext, name, responders, conditions string) *lifecyclev1alpha1.Eviction {
	tCtx.Helper()
	var eviction *lifecyclev1alpha1.Eviction
	awaitWithin(tCtx, 30*time.Second, "Eviction "+name, func(tCtx ktesting.TContext) {
		var err error
		eviction, err = lifecycleEvictions(tCtx).Get(tCtx, name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if got, state := describeEviction(eviction), describeConditions(eviction.Status.Conditions); got != responders || state != conditions {
			tCtx.Fatalf("it has %q and %q, want %q and %q", got, state, responders, conditions)
		}
	})
	return eviction
}

func awaitLifecycleRequest(tCtx ktesting.TContext, name, conditions string) {
	tCtx.Helper()
	awaitWithin(tCtx, 30*time.Second, "EvictionRequest "+name, func(tCtx ktesting.TContext) {
		request, err := lifecycleRequests(tCtx).Get(tCtx, name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if got := describeConditions(request.Status.Conditions); got != conditions || ptr.Deref(request.Status.ObservedGeneration, 0) != request.Generation {
			tCtx.Fatalf("it has %q of generation %d, want %q of %d", got, ptr.Deref(request.Status.ObservedGeneration, 0), conditions, request.Generation)
		}
	})
}

// reportAsResponder reports that a responder has completed.
func reportAsResponder(tCtx ktesting.TContext, name, responder string) {
	tCtx.Helper()
	await(tCtx, "the report of "+responder, func(tCtx ktesting.TContext) {
		eviction, err := lifecycleEvictions(tCtx).Get(tCtx, name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		for i := range eviction.Status.Responders {
			if eviction.Status.Responders[i].Name == responder {
				eviction.Status.Responders[i].CompletionTime = ptr.To(metav1.Now())
			}
		}
		_, err = lifecycleEvictions(tCtx).UpdateStatus(tCtx, eviction, metav1.UpdateOptions{})
		tCtx.ExpectNoError(err)
	})
}

// lifecycleObjects are the objects of the group in all namespaces, without what a move in etcd changes.
type lifecycleObjects struct {
	Requests  []lifecyclev1alpha1.EvictionRequest
	Evictions []lifecyclev1alpha1.Eviction
}

func listLifecycle(tCtx ktesting.TContext) (objects lifecycleObjects) {
	tCtx.Helper()
	requests, err := tCtx.Client().LifecycleV1alpha1().EvictionRequests("").List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err, "listing EvictionRequests")
	evictions, err := tCtx.Client().LifecycleV1alpha1().Evictions("").List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err, "listing Evictions")
	objects = lifecycleObjects{requests.Items, evictions.Items}
	for i := range objects.Requests {
		objects.Requests[i].ResourceVersion = ""
	}
	return objects
}

// settle waits until nothing is written any more.
func (u *lifecycleUpgrade) settle(tCtx ktesting.TContext) {
	tCtx.Helper()
	last := listLifecycle(tCtx)
	await(tCtx, "writes to end", func(tCtx ktesting.TContext) {
		time.Sleep(3 * time.Second)
		current := listLifecycle(tCtx)
		diff := cmp.Diff(last, current)
		if last = current; diff != "" {
			tCtx.Fatalf("they go on: %s", diff)
		}
	})
}

// expectUsable fails unless what runs in the interlude shows all objects of the group as they were, and takes updates and
// deletions of each.
func (u *lifecycleUpgrade) expectUsable(tCtx ktesting.TContext) {
	tCtx.Helper()
	time.Sleep(quietPeriod) // The garbage collector looks for owners.
	shown := listLifecycle(tCtx)
	if diff := cmp.Diff(u.shown, shown); diff != "" {
		tCtx.Errorf("%s shows other objects of lifecycle.k8s.io (-before +now):\n%s", u.interlude.release.Name, diff)
	}
	dry := []string{metav1.DryRunAll}
	for _, object := range shown.Requests {
		requests := tCtx.Client().LifecycleV1alpha1().EvictionRequests(object.Namespace)
		current, err := requests.Get(tCtx, object.Name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		current, err = requests.Update(tCtx, current, metav1.UpdateOptions{})
		tCtx.ExpectNoError(err, "updating EvictionRequest %s", object.Name)
		current, err = requests.UpdateStatus(tCtx, current, metav1.UpdateOptions{})
		tCtx.ExpectNoError(err, "updating the status of EvictionRequest %s", object.Name)
		meta.SetStatusCondition(&current.Status.Conditions, seen)
		_, err = requests.UpdateStatus(tCtx, current, metav1.UpdateOptions{})
		tCtx.ExpectNoError(err, "writing the status of EvictionRequest %s", object.Name)
		tCtx.ExpectNoError(requests.Delete(tCtx, object.Name, metav1.DeleteOptions{DryRun: dry}), "deleting EvictionRequest %s", object.Name)
		if len(object.Finalizers) > 0 {
			tCtx.Errorf("EvictionRequest %s has the finalizers %v", object.Name, object.Finalizers)
		}
	}
	for _, object := range shown.Evictions {
		evictions := tCtx.Client().LifecycleV1alpha1().Evictions(object.Namespace)
		current, err := evictions.Get(tCtx, object.Name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		current, err = evictions.Update(tCtx, current, metav1.UpdateOptions{})
		tCtx.ExpectNoError(err, "updating Eviction %s", object.Name)
		current, err = evictions.UpdateStatus(tCtx, current, metav1.UpdateOptions{})
		tCtx.ExpectNoError(err, "updating the status of Eviction %s", object.Name)
		meta.SetStatusCondition(&current.Status.Conditions, seen)
		_, err = evictions.UpdateStatus(tCtx, current, metav1.UpdateOptions{})
		tCtx.ExpectNoError(err, "writing the status of Eviction %s", object.Name)
		tCtx.ExpectNoError(evictions.Delete(tCtx, object.Name, metav1.DeleteOptions{DryRun: dry}), "deleting Eviction %s", object.Name)
		if len(object.Finalizers) > 0 {
			tCtx.Errorf("Eviction %s has the finalizers %v", object.Name, object.Finalizers)
		}
	}
	if u.interlude.isBase {
		if _, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests("").List(tCtx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			tCtx.Errorf("listing requests of coordination.k8s.io: %v, must be not found", err)
		}
	}
	tCtx.Logf("%d EvictionRequests and %d Evictions are as they were, and can be written and deleted.", len(shown.Requests), len(shown.Evictions))
}

// seen is a condition of somebody else.
var seen = metav1.Condition{Type: "example.com/Seen", Status: metav1.ConditionTrue, Reason: "Seen"}
