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
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/coordination"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"
)

const (
	namespace = "shop"
	podName   = "web-0"
	podUID    = "6b2a37a5-4f5c-4d3a-9d5e-0c5f6b7a8e91"
	otherUID  = "f0e1d2c3-0000-4000-8000-000000000002"
	// owner may delete the pod, guest may not.
	owner = "owner"
	guest = "guest"
)

// rights is an authorizer that knows which pods users may delete, as "namespace/name", and records
// the checks.
type rights struct {
	deletablePods map[string]string
	err           error
	checks        []authorizer.Attributes
}

func (r *rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.checks = append(r.checks, a)
	if r.err != nil {
		return authorizer.DecisionNoOpinion, "", r.err
	}
	if a.GetVerb() == "delete" && a.GetAPIGroup() == "" && a.GetResource() == "pods" && a.GetSubresource() == "" && a.IsResourceRequest() &&
		r.deletablePods[a.GetUser().GetName()] == a.GetNamespace()+"/"+a.GetName() {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

type option func(*coordination.EvictionRequest)

func newRequest(options ...option) *coordination.EvictionRequest {
	request := &coordination.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: podUID, Namespace: namespace, ResourceVersion: "1", Generation: 1},
		Spec: coordination.EvictionRequestSpec{
			Target:     coordination.EvictionTarget{Pod: &coordination.LocalPodReference{Name: podName, UID: podUID}},
			Requesters: []coordination.Requester{{Name: "drain.example.com"}},
		},
	}
	for _, option := range options {
		option(request)
	}
	return request
}

func withRequesters(names ...string) option {
	return func(request *coordination.EvictionRequest) {
		request.Spec.Requesters = nil
		for _, name := range names {
			request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: name})
		}
		request.Generation++
	}
}

func withTarget(name string) option {
	return func(request *coordination.EvictionRequest) { request.Spec.Target.Pod.Name = name }
}

func withoutTarget(request *coordination.EvictionRequest) { request.Spec.Target.Pod = nil }

func withFinalizers(finalizers ...string) option {
	return func(request *coordination.EvictionRequest) { request.Finalizers = finalizers }
}

func withOwners(owners ...metav1.OwnerReference) option {
	return func(request *coordination.EvictionRequest) { request.OwnerReferences = owners }
}

func withLabels(labels map[string]string) option {
	return func(request *coordination.EvictionRequest) { request.Labels = labels }
}

func withAnnotations(annotations map[string]string) option {
	return func(request *coordination.EvictionRequest) { request.Annotations = annotations }
}

func withCondition(conditionType string, status metav1.ConditionStatus) option {
	return func(request *coordination.EvictionRequest) {
		request.Status.Conditions = append(request.Status.Conditions, metav1.Condition{Type: conditionType, Status: status})
	}
}

func withPolicy(policy coordination.EvictionRequestCancellationPolicy) option {
	return func(request *coordination.EvictionRequest) {
		request.Status.EvictionRequestCancellationPolicy = policy
	}
}

// asWritten makes the changes that the API server makes in each update.
func asWritten(request *coordination.EvictionRequest) {
	request.ResourceVersion = ""
	request.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other"}}
}

func newPod(uid string, labels map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: podName, Namespace: namespace, UID: types.UID(uid), Labels: labels}}
}

// cluster is the environment of the plugin: at most one pod, and the permissions of users.
type cluster struct {
	pod      *v1.Pod
	cached   *v1.Pod // The pod in the informer; pod if nil.
	uncached bool    // The informer has no pod.
	readErr  error
	authErr  error
	// synced reports whether the informer has synced. nil means that it has.
	synced func() bool
}

// newPlugin returns the plugin, its authorizer and its client.
func (c cluster) newPlugin(t *testing.T, enabled bool) (*Plugin, *rights, *fake.Clientset) {
	t.Helper()
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, enabled)
	client := fake.NewClientset()
	if c.pod != nil {
		client = fake.NewClientset(c.pod)
	}
	if c.readErr != nil {
		client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.readErr })
	}
	rights := &rights{deletablePods: map[string]string{owner: namespace + "/" + podName}, err: c.authErr}
	plugin := NewPlugin()
	plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	plugin.SetAuthorizer(authorizer.AuthorizerFunc(rights.Authorize))
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(c.informers(t))
	plugin.podsSynced = func() bool { return c.synced == nil || c.synced() }
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatalf("initialization: %v", err)
	}
	return plugin, rights, client
}

// informers returns a factory whose informer has the cached pod.
func (c cluster) informers(t *testing.T) informers.SharedInformerFactory {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	cached := c.cached
	if cached == nil {
		cached = c.pod
	}
	if cached != nil && !c.uncached {
		if err := factory.Core().V1().Pods().Informer().GetStore().Add(cached); err != nil {
			t.Fatalf("filling the informer: %v", err)
		}
	}
	return factory
}

// attributes returns the attributes of a call by the user. Interfaces must be nil if there is no
// object.
func attributes(operation admission.Operation, username, subresource string, request, old *coordination.EvictionRequest) admission.Attributes {
	var object, oldObject runtime.Object
	name := podUID
	if request != nil {
		object = request
	} else {
		name = "" // Like for the deletion of a collection.
	}
	if old != nil {
		oldObject = old
	}
	return admission.NewAttributesRecord(object, oldObject, coordination.Kind("EvictionRequest").WithVersion("v1alpha1"), namespace, name,
		coordination.Resource("evictionrequests").WithVersion("v1alpha1"), subresource, operation, nil, false, &user.DefaultInfo{Name: username})
}

func TestValidate(t *testing.T) {
	existing := cluster{pod: newPod(podUID, map[string]string{"app": "web", "tier": "front"})}
	gone, replaced := cluster{}, cluster{pod: newPod(otherUID, map[string]string{"app": "web"})}
	readError := cluster{readErr: errors.New("etcd is unavailable")}
	authorizationError := cluster{pod: existing.pod, authErr: errors.New("webhook is unavailable")}
	const evicted, canceled = "Evicted", "Canceled"
	const denied = `user "guest" cannot delete pod "web-0" in namespace "shop"`
	const missingTarget = `pod "web-0" with the UID "` + podUID + `" does not exist in namespace "shop"`
	const forbids = `the eviction of pod "web-0" can no longer be canceled`
	ownerRef := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "node", UID: "1"}
	blocking := ownerRef
	blocking.BlockOwnerDeletion = ptr.To(true)
	renamedPod := newPod(podUID, nil)
	renamedPod.Name = "db-0"
	podElsewhere := newPod(podUID, nil)
	podElsewhere.Name, podElsewhere.Namespace = "db-0", "elsewhere"
	renamed := ownerRef
	renamed.Name = "other"

	tests := map[string]struct {
		cluster      cluster
		user         string // guest if empty
		request, old *coordination.EvictionRequest
		subresource  string
		wantErr      string // none if empty
		wantReads    int    // of the pod
	}{
		"create with permission":                         {cluster: existing, user: owner, request: newRequest()},
		"create without permission":                      {cluster: existing, request: newRequest(), wantErr: denied},
		"create for a missing pod without permission":    {cluster: gone, request: newRequest(), wantErr: denied},
		"create for a missing pod":                       {cluster: gone, user: owner, request: newRequest(), wantReads: 1},
		"create for the UID of another pod":              {cluster: replaced, user: owner, request: newRequest(), wantErr: `pod "web-0" in namespace "shop" has the UID "` + otherUID + `", but spec.target.pod.uid is "` + podUID + `"`, wantReads: 1},
		"create, a pod of another name has the UID":      {cluster: cluster{cached: renamedPod}, user: owner, request: newRequest(), wantErr: "belongs to another pod", wantReads: 1},
		"create, the cache lacks the pod":                {cluster: cluster{pod: existing.pod, uncached: true}, user: owner, request: newRequest(), wantReads: 1},
		"create, the cache has an old pod":               {cluster: cluster{pod: existing.pod, cached: replaced.pod}, user: owner, request: newRequest(), wantReads: 1},
		"create, the pod cannot be read":                 {cluster: readError, user: owner, request: newRequest(), wantErr: "etcd is unavailable", wantReads: 1},
		"create with a finalizer":                        {cluster: existing, user: owner, request: newRequest(withFinalizers("a/b"))},
		"create with a finalizer, uncached":              {cluster: cluster{pod: existing.pod, uncached: true}, user: owner, request: newRequest(withFinalizers("a/b")), wantReads: 1},
		"create with a finalizer, deleted but cached":    {cluster: cluster{cached: existing.pod}, user: owner, request: newRequest(withFinalizers("a/b"))},
		"create with a finalizer, missing":               {cluster: gone, user: owner, request: newRequest(withFinalizers("a/b")), wantErr: missingTarget, wantReads: 1},
		"create, a pod of another namespace has the UID": {cluster: cluster{cached: podElsewhere}, user: owner, request: newRequest(), wantReads: 1},
		"create for another pod":                         {cluster: existing, user: owner, request: newRequest(withTarget("db-0")), wantErr: `cannot delete pod "db-0"`},
		"create without a target":                        {cluster: existing, user: owner, request: newRequest(withoutTarget), wantErr: `cannot delete pod ""`},
		"create when authorization fails":                {cluster: authorizationError, user: owner, request: newRequest(), wantErr: "webhook is unavailable"},

		"join with permission":                {cluster: existing, user: owner, old: newRequest(), request: newRequest(withRequesters("drain.example.com", "me.example.com"))},
		"join without permission":             {cluster: existing, old: newRequest(), request: newRequest(withRequesters("drain.example.com", "me.example.com")), wantErr: denied},
		"withdraw another one":                {cluster: existing, old: newRequest(), request: newRequest(withRequesters()), wantErr: denied},
		"withdraw while removing a finalizer": {cluster: existing, old: newRequest(withFinalizers("a/b")), request: newRequest(withRequesters()), wantErr: denied},
		"withdraw while copying a label": {
			cluster: existing, old: newRequest(), request: newRequest(withRequesters(), withLabels(map[string]string{"app": "web"})), wantErr: denied,
		},
		"new target, permission on the new one only": {cluster: existing, user: owner, old: newRequest(withTarget("db-0")), request: newRequest(), wantErr: `cannot delete pod "db-0"`},
		"new target, permission on the old one only": {cluster: existing, user: owner, old: newRequest(), request: newRequest(withTarget("db-0")), wantErr: `cannot delete pod "db-0"`},
		"annotate":                        {cluster: existing, old: newRequest(), request: newRequest(withAnnotations(map[string]string{"a": "b"})), wantErr: denied},
		"update when authorization fails": {cluster: authorizationError, user: owner, old: newRequest(), request: newRequest(withRequesters()), wantErr: "webhook is unavailable"},

		"change nothing":                                 {cluster: existing, old: newRequest(), request: newRequest(asWritten)},
		"add a finalizer":                                {cluster: existing, old: newRequest(), request: newRequest(withFinalizers("a/b"), asWritten), wantErr: denied},
		"add a finalizer, with permission":               {cluster: existing, user: owner, old: newRequest(), request: newRequest(withFinalizers("a/b"), asWritten), wantReads: 1},
		"add a finalizer, the pod is gone":               {cluster: gone, user: owner, old: newRequest(), request: newRequest(withFinalizers("a/b")), wantErr: missingTarget, wantReads: 1},
		"add a finalizer for another pod":                {cluster: replaced, user: owner, old: newRequest(), request: newRequest(withFinalizers("a/b")), wantErr: missingTarget, wantReads: 1},
		"add a finalizer, the pod cannot be read":        {cluster: readError, user: owner, old: newRequest(), request: newRequest(withFinalizers("a/b")), wantErr: "etcd is unavailable", wantReads: 1},
		"keep a finalizer, the pod is gone":              {cluster: gone, user: owner, old: newRequest(withFinalizers("a/b")), request: newRequest(withFinalizers("a/b"), withRequesters())},
		"add a finalizer once canceled, the pod is gone": {cluster: gone, user: owner, old: newRequest(withCondition(canceled, metav1.ConditionTrue)), request: newRequest(withCondition(canceled, metav1.ConditionTrue), withFinalizers("a/b")), wantErr: missingTarget, wantReads: 1},
		"add a finalizer once evicted":                   {cluster: gone, user: owner, old: newRequest(withCondition(evicted, metav1.ConditionTrue)), request: newRequest(withCondition(evicted, metav1.ConditionTrue), withFinalizers("a/b"))},
		"add a finalizer to a finished request":          {cluster: existing, old: newRequest(withCondition(canceled, metav1.ConditionTrue)), request: newRequest(withCondition(canceled, metav1.ConditionTrue), withFinalizers("a/b")), wantErr: denied},
		"replace a finalizer":                            {cluster: existing, old: newRequest(withFinalizers("a/b")), request: newRequest(withFinalizers("a/c")), wantErr: denied},
		"add a finalizer to another":                     {cluster: existing, old: newRequest(withFinalizers("a/b")), request: newRequest(withFinalizers("a/b", "a/c")), wantErr: denied},
		"remove one of two finalizers":                   {cluster: existing, old: newRequest(withFinalizers("a/b", "a/c")), request: newRequest(withFinalizers("a/c"))},
		"reorder finalizers":                             {cluster: existing, old: newRequest(withFinalizers("a/b", "a/c")), request: newRequest(withFinalizers("a/c", "a/b"))},
		"remove a finalizer":                             {cluster: existing, old: newRequest(withFinalizers("a/b")), request: newRequest(asWritten)},
		"remove an owner":                                {cluster: existing, old: newRequest(withOwners(ownerRef)), request: newRequest(asWritten)},
		"unset blockOwnerDeletion":                       {cluster: existing, old: newRequest(withOwners(blocking)), request: newRequest(withOwners(ownerRef))},
		"add an owner":                                   {cluster: existing, old: newRequest(), request: newRequest(withOwners(ownerRef)), wantErr: denied},
		"add an owner, with permission":                  {cluster: existing, user: owner, old: newRequest(), request: newRequest(withOwners(ownerRef))},
		"replace an owner":                               {cluster: existing, old: newRequest(withOwners(ownerRef)), request: newRequest(withOwners(renamed)), wantErr: denied},
		"add an owner while copying labels":              {cluster: existing, old: newRequest(), request: newRequest(withOwners(ownerRef), withLabels(map[string]string{"app": "web"})), wantErr: denied},
		"status":                                         {cluster: existing, subresource: "status", old: newRequest(), request: newRequest(withPolicy("Forbid")), wantErr: "cannot change status.evictionRequestCancellationPolicy"},

		"add a label of the pod": {
			cluster: existing, old: newRequest(), request: newRequest(withLabels(map[string]string{"app": "web"}), asWritten), wantReads: 1,
		},
		"correct labels to those of the pod": {
			cluster: existing, old: newRequest(withLabels(map[string]string{"app": "old", "mine": "1"})),
			request: newRequest(withLabels(map[string]string{"app": "web", "mine": "1", "tier": "front"})), wantReads: 1,
		},
		"remove a label that the pod lacks": {
			cluster: existing, old: newRequest(withLabels(map[string]string{"app": "web", "mine": "1"})), request: newRequest(withLabels(map[string]string{"app": "web"})), wantReads: 1,
		},
		"labels and a finalizer that is removed": {
			cluster: existing, old: newRequest(withFinalizers("a/b")), request: newRequest(withLabels(map[string]string{"app": "web"})), wantReads: 1,
		},
		"labels and a finalizer that is added": {
			cluster: existing, old: newRequest(), request: newRequest(withLabels(map[string]string{"app": "web"}), withFinalizers("a/b")), wantErr: denied,
		},
		"add a label that the pod lacks": {
			cluster: existing, old: newRequest(), request: newRequest(withLabels(map[string]string{"mine": ""})), wantErr: denied, wantReads: 1,
		},
		"remove a label of the pod": {
			cluster: existing, old: newRequest(withLabels(map[string]string{"app": "web"})), request: newRequest(), wantErr: denied, wantReads: 1,
		},
		"change a label of the pod": {
			cluster: existing, old: newRequest(withLabels(map[string]string{"app": "web"})), request: newRequest(withLabels(map[string]string{"app": "mine"})), wantErr: denied, wantReads: 1,
		},
		"one label of the pod and one that differs": {
			cluster: existing, old: newRequest(), request: newRequest(withLabels(map[string]string{"app": "web", "tier": "back"})), wantErr: denied, wantReads: 1,
		},
		"labels of a pod that is gone": {
			cluster: gone, old: newRequest(), request: newRequest(withLabels(map[string]string{"app": "web"})), wantErr: denied, wantReads: 1,
		},
		"labels of another pod of that name": {
			cluster: replaced, old: newRequest(), request: newRequest(withLabels(map[string]string{"app": "web"})), wantErr: denied, wantReads: 1,
		},
		"labels of a pod that cannot be read": {
			cluster: readError, old: newRequest(), request: newRequest(withLabels(map[string]string{"app": "web"})), wantErr: "etcd is unavailable", wantReads: 1,
		},
		"other labels, with permission": {cluster: existing, user: owner, old: newRequest(), request: newRequest(withLabels(map[string]string{"mine": "1"}))},

		"delete with permission":             {cluster: existing, user: owner, old: newRequest()},
		"delete without permission":          {cluster: existing, old: newRequest(), wantErr: denied, wantReads: 1},
		"delete when authorization fails":    {cluster: authorizationError, user: owner, old: newRequest(), wantErr: "webhook is unavailable", wantReads: 1},
		"delete after the eviction":          {cluster: replaced, old: newRequest(withCondition(evicted, metav1.ConditionTrue))},
		"delete after the cancellation":      {cluster: existing, old: newRequest(withCondition(canceled, metav1.ConditionTrue))},
		"delete an unfinished request":       {cluster: existing, old: newRequest(withCondition(evicted, metav1.ConditionFalse), withCondition(canceled, metav1.ConditionUnknown)), wantErr: denied, wantReads: 1},
		"delete while blocked":               {cluster: existing, old: newRequest(withCondition("Blocked", metav1.ConditionTrue)), wantErr: denied, wantReads: 1},
		"delete when the pod is gone":        {cluster: gone, old: newRequest(), wantReads: 1},
		"delete when the pod was replaced":   {cluster: replaced, old: newRequest(), wantReads: 1},
		"delete when the pod cannot be read": {cluster: readError, old: newRequest(), wantErr: "etcd is unavailable", wantReads: 1},
		"delete as allowed by the policy":    {cluster: existing, user: owner, old: newRequest(withPolicy("Allow"))},
		"delete with Forbid":                 {cluster: existing, user: owner, old: newRequest(withPolicy("Forbid")), wantErr: forbids, wantReads: 1},
		"delete with Forbid, as guest":       {cluster: existing, old: newRequest(withPolicy("Forbid")), wantErr: denied, wantReads: 1},
		"Forbid, but the pod is gone":        {cluster: gone, user: owner, old: newRequest(withPolicy("Forbid")), wantReads: 1},
		"Forbid, but the pod was replaced":   {cluster: replaced, user: owner, old: newRequest(withPolicy("Forbid")), wantReads: 1},
		"Forbid, but finished":               {cluster: existing, old: newRequest(withPolicy("Forbid"), withCondition(evicted, metav1.ConditionTrue))},
		"Forbid, and the pod cannot be read": {cluster: readError, user: owner, old: newRequest(withPolicy("Forbid")), wantErr: "etcd is unavailable", wantReads: 1},
		"withdraw with Forbid":               {cluster: existing, user: owner, old: newRequest(withPolicy("Forbid")), request: newRequest(withPolicy("Forbid"), withRequesters())},
		"delete one without a target":        {cluster: existing, old: newRequest(withoutTarget)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plugin, _, client := test.cluster.newPlugin(t, true)
			operation := admission.Update
			if test.old == nil {
				operation = admission.Create
			} else if test.request == nil {
				operation = admission.Delete
			}
			request, old := test.request.DeepCopy(), test.old.DeepCopy()

			username := test.user
			if username == "" {
				username = guest
			}
			err := plugin.Validate(t.Context(), attributes(operation, username, test.subresource, test.request, test.old), nil)

			switch {
			case test.wantErr == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)):
				t.Errorf("error %v, want %q", err, test.wantErr)
			case strings.Contains(test.wantErr, "is unavailable") && !apierrors.IsInternalError(err):
				t.Errorf("error %#v, want InternalError", err)
			case test.wantErr != "" && !strings.Contains(test.wantErr, "is unavailable") && !apierrors.IsForbidden(err):
				t.Errorf("error %#v, want Forbidden", err)
			}
			if got := len(client.Actions()); got != test.wantReads {
				t.Errorf("%d calls of the API server, want %d: %v", got, test.wantReads, client.Actions())
			}
			if !cmp.Equal(request, test.request) || !cmp.Equal(old, test.old) {
				t.Errorf("the plugin changed an object")
			}
		})
	}
}

// The error has the missing permission, the pod, and the name of the request, also for the deletion
// of a collection.
func TestForbiddenMessage(t *testing.T) {
	plugin, rights, _ := cluster{pod: newPod(podUID, nil)}.newPlugin(t, true)
	err := plugin.Validate(t.Context(), attributes(admission.Delete, guest, "", nil, newRequest()), nil)
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("unexpected error: %v", err)
	}
	want := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Group: "coordination.k8s.io", Kind: "evictionrequests", Name: podUID},
		Message: `evictionrequests.coordination.k8s.io "` + podUID + `" is forbidden: user "guest" cannot delete pod "web-0" in namespace "shop": ` +
			`requesting, changing or canceling the eviction of a pod requires the verb "delete" on that pod`,
	}
	if diff := cmp.Diff(want, status.ErrStatus); diff != "" {
		t.Errorf("unexpected status (-want +got):\n%s", diff)
	}
	wantAsked := []authorizer.Attributes{authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: guest}, Verb: "delete", Namespace: namespace, APIVersion: "v1", Resource: "pods", Name: podName, ResourceRequest: true,
	}}
	if diff := cmp.Diff(wantAsked, rights.checks); diff != "" {
		t.Errorf("unexpected check by the authorizer (-want +got):\n%s", diff)
	}
}

// Until the informer has synced, it is unknown whether another pod has the UID.
func TestCreateWaitsForPods(t *testing.T) {
	renamedPod := newPod(podUID, nil)
	renamedPod.Name = "db-0"
	existing := newPod(podUID, nil)
	for name, test := range map[string]struct {
		cluster     cluster
		syncs       bool
		unavailable bool
		forbidden   bool
	}{
		"the pod is gone, informer syncs late":         {cluster: cluster{}, syncs: true},
		"another pod has the UID, informer syncs late": {cluster: cluster{cached: renamedPod}, syncs: true, forbidden: true},
		"the pod is gone, informer does not sync":      {cluster: cluster{}, unavailable: true},
		"the pod exists, informer does not sync":       {cluster: cluster{pod: existing, uncached: true}},
	} {
		t.Run(name, func(t *testing.T) {
			checks := 0
			test.cluster.synced = func() bool {
				checks++
				return test.syncs && checks > 1
			}
			plugin, _, _ := test.cluster.newPlugin(t, true)
			if !test.syncs {
				plugin.syncTimeout = time.Millisecond
			}
			err := plugin.Validate(t.Context(), attributes(admission.Create, owner, "", newRequest(), nil), nil)
			if apierrors.IsServiceUnavailable(err) != test.unavailable || apierrors.IsForbidden(err) != test.forbidden || (err != nil) != (test.unavailable || test.forbidden) {
				t.Errorf("error %v, want unavailable: %t, forbidden: %t", err, test.unavailable, test.forbidden)
			}
		})
	}
}

// Other kinds, and calls with the gate off, make no checks and no API calls.
func TestOthersAreIgnored(t *testing.T) {
	pod := admission.NewAttributesRecord(&api.Pod{}, nil, api.Kind("Pod").WithVersion("v1"), namespace, podName,
		api.Resource("pods").WithVersion("v1"), "", admission.Create, nil, false, &user.DefaultInfo{Name: guest})
	foreign := admission.NewAttributesRecord(newRequest(), nil, coordination.Kind("EvictionRequest").WithVersion("v1"), namespace, podUID,
		api.Resource("evictionrequests").WithVersion("v1"), "", admission.Create, nil, false, &user.DefaultInfo{Name: guest})
	for name, test := range map[string]struct {
		enabled    bool
		attributes admission.Attributes
	}{
		"gate off":                {false, attributes(admission.Create, guest, "", newRequest(), nil)},
		"another kind":            {true, pod},
		"a kind of another group": {true, foreign},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, rights, client := cluster{}.newPlugin(t, test.enabled)
			if err := plugin.Validate(t.Context(), test.attributes, nil); err != nil {
				t.Errorf("unexpected error: %v", err)
			}
			if len(rights.checks)+len(client.Actions()) > 0 {
				t.Errorf("checks %v and calls %v", rights.checks, client.Actions())
			}
		})
	}
}

func TestUnexpectedObjects(t *testing.T) {
	plugin, _, _ := cluster{}.newPlugin(t, true)
	for name, unexpected := range map[string]admission.Attributes{
		"create without an object":     attributes(admission.Create, owner, "", nil, nil),
		"update without an object":     attributes(admission.Update, owner, "", nil, newRequest()),
		"update without an old object": attributes(admission.Update, owner, "", newRequest(), nil),
		"delete without an old object": attributes(admission.Delete, owner, "", nil, nil),
		"connect":                      attributes(admission.Connect, owner, "", newRequest(), newRequest()),
	} {
		t.Run(name, func(t *testing.T) {
			if err := plugin.Validate(t.Context(), unexpected, nil); !apierrors.IsBadRequest(err) {
				t.Errorf("error %v, want BadRequest", err)
			}
		})
	}
}

func TestValidateInitialization(t *testing.T) {
	tests := map[string]struct {
		enabled, inspected bool
		rights             authorizer.UnconditionalAuthorizer
		client             *fake.Clientset
		informers          bool
		wantErr            string
	}{
		"complete":                  {enabled: true, inspected: true, rights: &rights{}, client: fake.NewClientset(), informers: true},
		"off":                       {inspected: true},
		"gates not inspected":       {rights: &rights{}, client: fake.NewClientset(), wantErr: "feature gates"},
		"on, without an authorizer": {enabled: true, inspected: true, client: fake.NewClientset(), wantErr: "authorizer"},
		"on, without a client":      {enabled: true, inspected: true, rights: &rights{}, wantErr: "client"},
		"on, without an informer":   {enabled: true, inspected: true, rights: &rights{}, client: fake.NewClientset(), wantErr: "informer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, test.enabled)
			plugin := NewPlugin()
			if test.inspected {
				plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
			}
			if test.rights != nil {
				plugin.SetAuthorizer(authorizer.AuthorizerFunc(test.rights.Authorize))
			}
			if test.client != nil {
				plugin.SetExternalKubeClientSet(test.client)
			}
			if test.informers {
				plugin.SetExternalKubeInformerFactory(cluster{}.informers(t))
			}
			err := plugin.ValidateInitialization()
			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
		})
	}
}

// gatesOnly initializes the plugin like a server with the gate off.
type gatesOnly struct{}

func (gatesOnly) Initialize(plugin admission.Interface) {
	plugin.(*Plugin).InspectFeatureGates(utilfeature.DefaultFeatureGate)
}

func TestRegister(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, false)
	plugins := admission.NewPlugins()
	Register(plugins)
	if diff := cmp.Diff([]string{"EvictionRequest"}, plugins.Registered()); diff != "" {
		t.Errorf("registered plugins (-want +got):\n%s", diff)
	}
	plugin, err := plugins.InitPlugin("EvictionRequest", nil, admission.PluginInitializers{gatesOnly{}})
	if err != nil {
		t.Fatalf("initialization: %v", err)
	}
	for operation, want := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: true, admission.Connect: false} {
		if got := plugin.Handles(operation); got != want {
			t.Errorf("handles %s: %t, want %t", operation, got, want)
		}
	}
}

// With the gate off, the plugin requests no informer.
func TestNoInformerWithGateOff(t *testing.T) {
	for enabled, want := range map[bool]bool{false: false, true: true} {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, enabled)
		factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
		plugin := NewPlugin()
		plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
		plugin.SetExternalKubeInformerFactory(factory)
		if enabled && plugin.podsSynced() {
			t.Errorf("the informer has synced before it was started")
		}
		factory.Start(t.Context().Done())
		if got := len(factory.WaitForCacheSync(t.Context().Done())) > 0; got != want {
			t.Errorf("gate %t: informer started: %t, want %t", enabled, got, want)
		}
		if enabled && !plugin.podsSynced() {
			t.Errorf("podsSynced is false after the informer has synced")
		}
	}
}
