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

package interceptedeviction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/features"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// The integration tests in test/integration/evictionrequest have the behavior with a real API
// server. Here are its errors, and caches that are stale.

var requestResource = coordinationv1alpha1.Resource("evictionrequests")

// rights is an authorizer that allows verbs, and fails if err is set.
type rights struct {
	verbs []string
	err   error
}

func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	for _, verb := range r.verbs {
		if verb == a.GetVerb() {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", r.err
}

// world is what the plugin sees: stored objects, and those in its caches.
type world struct {
	stored, cached []runtime.Object
	rights         rights
	off            bool
	// first is whether nobody has evicted the pods before.
	first bool
}

func (w world) newPlugin(t *testing.T) (*Plugin, *fake.Clientset) {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true, features.EvictionRequestForEvictions: !w.off,
	})
	client := fake.NewClientset(w.stored...)
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	var pods []types.UID
	for _, object := range w.stored {
		if pod, isPod := object.(*v1.Pod); isPod {
			pods = append(pods, pod.UID)
		}
	}
	for _, object := range w.cached {
		store := factory.Core().V1().Pods().Informer().GetStore()
		if pod, isPod := object.(*v1.Pod); isPod {
			pods = append(pods, pod.UID)
		}
		switch object.(type) {
		case *coordinationv1alpha1.EvictionRequest:
			store = factory.Coordination().V1alpha1().EvictionRequests().Informer().GetStore()
		case *v1.Node:
			store = factory.Core().V1().Nodes().Informer().GetStore()
		}
		if err := store.Add(object); err != nil {
			t.Fatalf("filling a cache: %v", err)
		}
	}
	plugin := NewPlugin()
	plugin.clock = testingclock.NewFakePassiveClock(noon)
	for _, pod := range pods {
		if !w.first {
			plugin.calls.recent.Add(caller{pod: pod, user: "evictor"}, struct{}{}, againWithin)
		}
	}
	plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	plugin.SetAuthorizer(authorizer.AuthorizerFunc(w.rights.Authorize))
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(factory)
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatalf("initialization: %v", err)
	}
	return plugin, client
}

// call returns the attributes of a call for an object.
func call(resource, subresource string, object runtime.Object) admission.Attributes {
	return admission.NewAttributesRecord(object, nil, policy.Kind("Eviction").WithVersion("v1"), namespace, podName,
		schema.GroupVersionResource{Version: "v1", Resource: resource}, subresource, admission.Create, nil, false, &user.DefaultInfo{Name: "evictor"})
}

func newEviction(preconditions *metav1.Preconditions) *policy.Eviction {
	return &policy.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: namespace, Name: podName},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: preconditions},
	}
}

// requests returns the API requests that were made, such as "get pods".
func requests(client *fake.Clientset) []string {
	var requests []string
	for _, action := range client.Actions() {
		requests = append(requests, action.GetVerb()+" "+action.GetResource().Resource)
	}
	return requests
}

func TestInitialization(t *testing.T) {
	for name, incomplete := range map[string]func(*Plugin){
		"feature gates": func(p *Plugin) { p.inspected = false },
		"authorizer":    func(p *Plugin) { p.authorizer = nil },
		"client":        func(p *Plugin) { p.client = nil },
		"informers":     func(p *Plugin) { p.requests = nil },
		"no informers":  func(p *Plugin) { p.nodes = nil },
	} {
		plugin, _ := world{}.newPlugin(t)
		incomplete(plugin)
		if err := plugin.ValidateInitialization(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: got error %v", name, err)
		}
	}
	// With the gate off it asks for no informer, which would watch a kind that is not served.
	plugin, _ := world{off: true}.newPlugin(t)
	if plugin.pods != nil || plugin.nodes != nil || plugin.requests != nil {
		t.Error("it asks for informers although its gate is off")
	}
}

func TestOnlyEvictions(t *testing.T) {
	pod := newPod(interceptedBy(first))
	for name, test := range map[string]struct {
		off  bool
		call admission.Attributes
		want string
	}{
		"gate off":             {off: true, call: call("pods", "eviction", newEviction(nil))},
		"another resource":     {call: call("nodes", "eviction", newEviction(nil))},
		"another subresource":  {call: call("pods", "binding", newEviction(nil))},
		"a pod":                {call: call("pods", "", &v1.Pod{})},
		"an unexpected object": {call: call("pods", "eviction", &v1.Pod{}), want: "unexpected object in an eviction: *v1.Pod"},
		"an eviction":          {call: call("pods", "eviction", newEviction(nil)), want: "Eviction triggered evacuation"},
		"one without options":  {call: call("pods", "eviction", &policy.Eviction{}), want: "Eviction triggered evacuation"},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, client := world{off: test.off, stored: []runtime.Object{pod}, cached: []runtime.Object{pod}}.newPlugin(t)
			err := plugin.Validate(t.Context(), test.call, nil)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
			if test.want == "" && len(client.Actions()) > 0 {
				t.Errorf("got requests %v, want none", requests(client))
			}
		})
	}
}

// TestCaches: a stale cache may delay an eviction, and never lets one through.
func TestCaches(t *testing.T) {
	const waits, admitted = "Eviction triggered evacuation", ""
	plain, pod := newPod(), newPod(interceptedBy(first))
	predecessor := newPod(terminating, withUID(successorUID))
	atFirst, atLast := newRequest(processing(first, first, imperative)), newRequest(processing(imperative, first, imperative))
	lapsing, others := newRequest(processing(imperative, first, imperative), calledAt("")), newRequest(processing(imperative, first, imperative), requestedBy("drain.example.com"))
	evicted := newRequest(processing("", first, imperative), having(coordinationv1alpha1.EvictionRequestConditionEvicted), calledAt(""))
	over := newRequest(having(coordinationv1alpha1.EvictionRequestConditionCanceled))
	uid := &metav1.Preconditions{UID: ptr.To(podUID)}
	version := func(version string) *metav1.Preconditions { return &metav1.Preconditions{ResourceVersion: &version} }
	successor := newPod(interceptedBy(first), withUID(successorUID))

	for name, test := range map[string]struct {
		world         world
		preconditions *metav1.Preconditions
		want          string
		wantRequests  []string
	}{
		"a pod without interceptors":                         {world: world{stored: []runtime.Object{plain}, cached: []runtime.Object{plain}}, want: admitted},
		"an uncached pod without interceptors":               {world: world{stored: []runtime.Object{plain}}, want: admitted, wantRequests: []string{"get pods"}},
		"an uncached pod":                                    {world: world{stored: []runtime.Object{pod}}, want: waits, wantRequests: []string{"get pods", "create evictionrequests"}},
		"a cached predecessor":                               {world: world{stored: []runtime.Object{pod}, cached: []runtime.Object{predecessor}}, want: waits, wantRequests: []string{"get pods", "create evictionrequests"}},
		"a cached pod of another UID":                        {world: world{stored: []runtime.Object{pod}, cached: []runtime.Object{newPod(withUID("1"))}}, preconditions: uid, want: waits, wantRequests: []string{"get pods", "create evictionrequests"}},
		"an older version of the pod":                        {world: world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}}, preconditions: version("6"), want: admitted, wantRequests: []string{"get pods"}},
		"the version of the pod":                             {world: world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}}, preconditions: version("7"), want: "preconditions.resourceVersion does not request that"},
		"the next version of the pod, guessed":               {world: world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}}, preconditions: version("8"), want: "preconditions.resourceVersion does not request that"},
		"what is no version":                                 {world: world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}}, preconditions: version("abc"), want: admitted, wantRequests: []string{"get pods"}},
		"the version of the pod, and a request of others":    {world: world{stored: []runtime.Object{pod, atFirst}, cached: []runtime.Object{pod, atFirst}}, preconditions: version("7"), want: "Interceptor first.example.com is active"},
		"the version of the pod, and a request that is done": {world: world{stored: []runtime.Object{pod, atLast}, cached: []runtime.Object{pod, atLast}}, preconditions: version("7"), want: admitted, wantRequests: []string{"get evictionrequests", "get pods"}},
		"the version of the pod, and a canceled request":     {world: world{stored: []runtime.Object{pod, over}, cached: []runtime.Object{pod, over}}, preconditions: version("7"), want: "preconditions.resourceVersion does not request that", wantRequests: []string{"get evictionrequests"}},
		"no version":                                             {world: world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}}, preconditions: version(""), want: waits, wantRequests: []string{"create evictionrequests"}},
		"a pod that is gone, but cached":                         {world: world{cached: []runtime.Object{pod}}, want: waits, wantRequests: []string{"create evictionrequests"}},
		"a pod that terminates":                                  {world: world{stored: []runtime.Object{newPod(interceptedBy(first), terminating)}, cached: []runtime.Object{newPod(interceptedBy(first), terminating)}}, want: admitted, wantRequests: []string{"get pods"}},
		"a pod that has finished":                                {world: world{stored: []runtime.Object{newPod(interceptedBy(first), inPhase(v1.PodFailed))}}, want: admitted, wantRequests: []string{"get pods"}},
		"a pod that is pending":                                  {world: world{stored: []runtime.Object{newPod(interceptedBy(first), inPhase(v1.PodPending))}}, want: waits, wantRequests: []string{"get pods", "create evictionrequests"}},
		"the first call":                                         {world: world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}}, want: waits, wantRequests: []string{"create evictionrequests"}},
		"an uncached request":                                    {world: world{stored: []runtime.Object{pod, atFirst}, cached: []runtime.Object{pod}}, want: waits, wantRequests: []string{"create evictionrequests", "get evictionrequests"}},
		"an uncached request that is done":                       {world: world{stored: []runtime.Object{pod, atLast}, cached: []runtime.Object{pod}}, want: admitted, wantRequests: []string{"create evictionrequests", "get evictionrequests", "get pods"}},
		"an uncached pod whose request is done":                  {world: world{stored: []runtime.Object{pod, atLast}}, want: admitted, wantRequests: []string{"get pods", "create evictionrequests", "get evictionrequests"}},
		"a cached request":                                       {world: world{stored: []runtime.Object{pod, atFirst}, cached: []runtime.Object{pod, atFirst}}, want: waits},
		"a cached request that is done now":                      {world: world{stored: []runtime.Object{pod, atLast}, cached: []runtime.Object{pod, atFirst}}, want: waits},
		"a cached request that is done":                          {world: world{stored: []runtime.Object{pod, atLast}, cached: []runtime.Object{pod, atLast}}, want: admitted, wantRequests: []string{"get evictionrequests", "get pods"}},
		"a request that is done, and was called for long ago":    {world: world{stored: []runtime.Object{pod, lapsing}, cached: []runtime.Object{pod, lapsing}}, want: admitted, wantRequests: []string{"get evictionrequests", "patch evictionrequests", "get pods"}},
		"a request that is done, and that only others have made": {world: world{stored: []runtime.Object{pod, others}, cached: []runtime.Object{pod, others}}, want: admitted, wantRequests: []string{"get evictionrequests", "get pods"}},
		"a request that is over":                                 {world: world{stored: []runtime.Object{evicted}, cached: []runtime.Object{pod, evicted}}, want: admitted, wantRequests: []string{"get evictionrequests", "get pods"}},
		"a request that is over, of a pod that terminates":       {world: world{stored: []runtime.Object{newPod(interceptedBy(first), terminating), evicted}, cached: []runtime.Object{pod, evicted}}, want: admitted, wantRequests: []string{"get evictionrequests", "get pods"}},
		"a request that is over, of a pod that was replaced": {
			world: world{stored: []runtime.Object{successor, evicted}, cached: []runtime.Object{pod, evicted}}, want: waits, wantRequests: []string{"get evictionrequests", "get pods", "create evictionrequests"},
		},
		"a request that is over, of a pod that runs": {
			world: world{stored: []runtime.Object{pod, evicted}, cached: []runtime.Object{pod, evicted}}, want: waits,
			wantRequests: []string{"get evictionrequests", "get pods", "delete evictionrequests", "get evictionrequests", "create evictionrequests"},
		},
		"a request that is over, of an uncached pod that runs": {
			world: world{stored: []runtime.Object{pod, evicted}}, want: waits,
			wantRequests: []string{"get pods", "create evictionrequests", "get evictionrequests", "get pods", "delete evictionrequests", "get evictionrequests", "create evictionrequests"},
		},
		"a request that is over, in the first call for a pod that runs": {
			world: world{first: true, stored: []runtime.Object{pod, evicted}, cached: []runtime.Object{pod, evicted}}, want: "This call does not request that",
			wantRequests: []string{"get evictionrequests", "get pods"},
		},
		"a request that is done, of a pod that is gone": {
			world: world{stored: []runtime.Object{atLast}, cached: []runtime.Object{pod, atLast}}, want: admitted, wantRequests: []string{"get evictionrequests", "get pods"},
		},
		"a request that is done, of a pod that was replaced": {
			world: world{stored: []runtime.Object{successor, atLast}, cached: []runtime.Object{pod, atLast}}, want: waits, wantRequests: []string{"get evictionrequests", "get pods", "create evictionrequests"},
		},
		"a cached request that was replaced":   {world: world{stored: []runtime.Object{pod, atFirst}, cached: []runtime.Object{pod, atLast}}, want: waits, wantRequests: []string{"get evictionrequests"}},
		"a cached request that is gone":        {world: world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod, atLast}}, want: waits, wantRequests: []string{"get evictionrequests", "create evictionrequests"}},
		"a canceled request":                   {world: world{stored: []runtime.Object{pod, over}, cached: []runtime.Object{pod, over}}, want: waits, wantRequests: []string{"get evictionrequests", "delete evictionrequests", "get evictionrequests", "create evictionrequests"}},
		"a canceled request that was replaced": {world: world{stored: []runtime.Object{pod, atFirst}, cached: []runtime.Object{pod, over}}, want: waits, wantRequests: []string{"get evictionrequests"}},
		"an interceptor that the cache does not know to be active": {
			world: world{stored: []runtime.Object{pod, atFirst}, cached: []runtime.Object{pod, newRequest()}, rights: rights{verbs: []string{"intercept"}}},
			want:  admitted, wantRequests: []string{"get evictionrequests", "get pods"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, client := test.world.newPlugin(t)
			err := plugin.Validate(t.Context(), call("pods", "eviction", newEviction(test.preconditions)), nil)
			if test.want == admitted && err != nil || test.want != admitted && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
			if diff := cmp.Diff(test.wantRequests, requests(client)); diff != "" {
				t.Errorf("unexpected requests (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestCordon: the request says once that the node of its pod is cordoned, and nothing about others.
func TestCordon(t *testing.T) {
	const time, cordon, version = "coordination.k8s.io/eviction-call-time", "coordination.k8s.io/eviction-call-cordon", "node-uid/20"
	const repeat = "coordination.k8s.io/eviction-calls-repeat"
	now := noon.Format("2006-01-02T15:04:05Z07:00")
	pod := newPod(interceptedBy(first), onNode("node-1"))
	node := func(unschedulable bool) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "node-uid", ResourceVersion: "20"}, Spec: v1.NodeSpec{Unschedulable: unschedulable}}
	}
	said := func(request *coordinationv1alpha1.EvictionRequest) { request.Annotations[cordon] = "node-uid/10" }
	atFirst := processing(first, first, imperative)
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		node    *v1.Node
		// again is whether the same user has called a moment ago.
		again bool
		// want are the annotations that are written, if any are.
		want map[string]string
	}{
		"the first call, cordoned":         {node: node(true), want: map[string]string{time: now, cordon: version}},
		"the second call, cordoned since":  {node: node(true), again: true, want: map[string]string{time: now, cordon: version, repeat: "true"}},
		"the first call, schedulable":      {node: node(false), want: map[string]string{time: now}},
		"the first call, not cached":       {want: map[string]string{time: now}},
		"called just, cordoned since":      {request: newRequest(atFirst), node: node(true), want: map[string]string{time: now, cordon: version}},
		"called just, cordoned then":       {request: newRequest(atFirst, said), node: node(true)},
		"called just, schedulable":         {request: newRequest(atFirst), node: node(false)},
		"called just, uncordoned":          {request: newRequest(atFirst, said), node: node(false)},
		"called long ago, cordoned since":  {request: newRequest(atFirst, calledAt("")), node: node(true), want: map[string]string{time: now, cordon: version}},
		"called long ago, cordoned then":   {request: newRequest(atFirst, calledAt(""), said), node: node(true), want: map[string]string{time: now}},
		"joining others, with an old note": {request: newRequest(atFirst, said, requestedBy("drain.example.com")), node: node(true), want: map[string]string{time: now, cordon: version}},
		// Anybody may have written it, and the controller would withdraw the callers.
		"joining others, with a note, schedulable": {request: newRequest(atFirst, said, requestedBy("drain.example.com")), node: node(false), want: map[string]string{time: now, cordon: ""}},
		"joining others, schedulable":              {request: newRequest(atFirst, requestedBy("drain.example.com")), node: node(false), want: map[string]string{time: now}},
	} {
		t.Run(name, func(t *testing.T) {
			// On a cordoned node, each call is meant; see TestRepeatedCalls for the next one.
			w := world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}, first: test.node != nil && test.node.Spec.Unschedulable && !test.again}
			if test.request != nil {
				w.stored, w.cached = append(w.stored, test.request), append(w.cached, test.request)
			}
			if test.node != nil {
				w.cached = append(w.cached, test.node)
			}
			plugin, client := w.newPlugin(t)
			if err := plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil); !apierrors.IsTooManyRequests(err) {
				t.Errorf("got error %v", err)
			}
			var got map[string]string
			for _, action := range client.Actions() {
				switch action := action.(type) {
				case clienttesting.CreateActionImpl:
					got = action.Object.(*coordinationv1alpha1.EvictionRequest).Annotations
				case clienttesting.PatchActionImpl:
					patch := metav1.PartialObjectMetadata{}
					if err := json.Unmarshal(action.Patch, &patch); err != nil {
						t.Fatal(err)
					}
					got = patch.Annotations
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected annotations (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestRepeatedCalls: the request says whether callers on cordoned nodes call every few seconds, from the second call on.
func TestRepeatedCalls(t *testing.T) {
	const repeat, cordon = "coordination.k8s.io/eviction-calls-repeat", "coordination.k8s.io/eviction-call-cordon"
	noted := func(name, value string) requestOption {
		return func(request *coordinationv1alpha1.EvictionRequest) { request.Annotations[name] = value }
	}
	atFirst, cordoned, repeated, longAgo := processing(first, first, imperative), noted(cordon, "node-uid/10"), noted(repeat, "true"), calledAt("")
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		// schedulable is whether the node is, others whether the first call is by another user, and dryRun whether the second is one.
		schedulable, others, dryRun bool
		// want is what the second call writes: "" if nothing, and "-" if it removes the annotation.
		want string
	}{
		"again":                              {request: newRequest(atFirst, cordoned), want: "true"},
		"again, as is known":                 {request: newRequest(atFirst, cordoned, repeated)},
		"again, as is known, a minute later": {request: newRequest(atFirst, cordoned, repeated, longAgo), want: "kept"},
		"again, where others have noted it":  {request: newRequest(atFirst, repeated, requestedBy("drain.example.com")), want: "true"},
		"again, on a schedulable node":       {request: newRequest(atFirst), schedulable: true},
		"once, by each of two":               {request: newRequest(atFirst, cordoned), others: true},
		"once, where others go on":           {request: newRequest(atFirst, cordoned, repeated), others: true},
		"once, where others have stopped":    {request: newRequest(atFirst, cordoned, repeated, longAgo), others: true, want: "-"},
		"in a dry run":                       {request: newRequest(atFirst, cordoned), dryRun: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(interceptedBy(first), onNode("node-1"))
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "node-uid", ResourceVersion: "20"}, Spec: v1.NodeSpec{Unschedulable: !test.schedulable}}
			objects := []runtime.Object{pod, test.request}
			plugin, client := world{stored: objects, cached: append(objects, node), first: true}.newPlugin(t)
			eviction := newEviction(nil)
			before := call("pods", "eviction", eviction)
			if test.others {
				before = byUser(before, "somebody-else")
			}
			_ = plugin.Validate(t.Context(), before, nil) // Refused: see TestCaches.
			client.ClearActions()
			if test.dryRun {
				eviction.DeleteOptions.DryRun = []string{metav1.DryRunAll}
			}
			_ = plugin.Validate(t.Context(), call("pods", "eviction", eviction), nil)
			got := ""
			for _, action := range client.Actions() {
				if patch, isPatch := action.(clienttesting.PatchActionImpl); isPatch {
					got = writtenAnnotation(t, patch.Patch, repeat)
				}
			}
			if got != test.want {
				t.Errorf("the second call writes %q, want %q", got, test.want)
			}
		})
	}
}

// writtenAnnotation returns what a patch writes into an annotation: "-" if it removes it, and "kept" if it leaves it.
func writtenAnnotation(t *testing.T, patch []byte, name string) string {
	t.Helper()
	written := struct {
		Metadata struct{ Annotations map[string]*string }
	}{}
	if err := json.Unmarshal(patch, &written); err != nil {
		t.Fatal(err)
	}
	switch value, found := written.Metadata.Annotations[name]; {
	case !found:
		return "kept"
	case value == nil:
		return "-"
	default:
		return *value
	}
}

// A dry run writes nothing but what the API server does not store, whatever the state of the request.
func TestDryRun(t *testing.T) {
	pod := newPod(interceptedBy(first))
	canceled := newRequest(having(coordinationv1alpha1.EvictionRequestConditionCanceled))
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		want    []string
	}{
		"no request":                     {want: []string{"create"}},
		"a request that is renewed":      {request: newRequest(processing(first, first, imperative), calledAt("")), want: []string{"patch"}},
		"a request that is kept":         {request: newRequest(processing(imperative, first, imperative), calledAt("")), want: []string{"patch"}},
		"a request that was called just": {request: newRequest(processing(first, first, imperative))},
		"a canceled request":             {request: canceled},
		"one that is being deleted":      {request: newRequest(having(coordinationv1alpha1.EvictionRequestConditionCanceled), beingDeleted, canceledBecause("NoRequesters"))},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}}
			if test.request != nil {
				w.stored, w.cached = append(w.stored, test.request), append(w.cached, test.request)
			}
			plugin, client := w.newPlugin(t)
			eviction := newEviction(nil)
			eviction.DeleteOptions.DryRun = []string{metav1.DryRunAll}
			_ = plugin.Validate(t.Context(), call("pods", "eviction", eviction), nil) // Refused or not: see TestCaches.
			var writes []string
			for _, action := range client.Actions() {
				var dryRun []string
				switch action := action.(type) {
				case clienttesting.GetActionImpl:
					continue
				case clienttesting.CreateActionImpl:
					dryRun = action.CreateOptions.DryRun
				case clienttesting.PatchActionImpl:
					dryRun = action.PatchOptions.DryRun
				case clienttesting.DeleteActionImpl:
					dryRun = action.DeleteOptions.DryRun
				}
				writes = append(writes, action.GetVerb())
				if diff := cmp.Diff([]string{metav1.DryRunAll}, dryRun); diff != "" {
					t.Errorf("%s %s is no dry run (-want, +got):\n%s", action.GetVerb(), action.GetResource().Resource, diff)
				}
			}
			if diff := cmp.Diff(test.want, writes); diff != "" {
				t.Errorf("unexpected writes (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestInvalidOptions: what the storage would refuse in the end requests nothing, and is refused as by the storage.
func TestInvalidOptions(t *testing.T) {
	for name, test := range map[string]struct {
		options metav1.DeleteOptions
		want    string
	}{
		"a dry run of something else":   {metav1.DeleteOptions{DryRun: []string{"Nope"}}, `dryRun: Unsupported value: ["Nope"]`},
		"a policy that is none":         {metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletionPropagation("Nope"))}, `propagationPolicy: Unsupported value: "Nope"`},
		"two that exclude one another":  {metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan), OrphanDependents: ptr.To(true)}, "cannot be both set"},
		"a pod that has no interceptor": {metav1.DeleteOptions{DryRun: []string{"Nope"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(interceptedBy(first))
			if test.want == "" {
				pod = newPod() // The storage says so.
			}
			plugin, client := world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}}.newPlugin(t)
			eviction := newEviction(nil)
			eviction.DeleteOptions = &test.options
			err := plugin.Validate(t.Context(), call("pods", "eviction", eviction), nil)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case test.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want 422 with %q", err, test.want)
			}
			if len(client.Actions()) > 0 {
				t.Errorf("unexpected requests: %v", client.Actions())
			}
		})
	}
}

// TestPreconditions: what is written for a call is refused if the request has changed since it was read.
func TestPreconditions(t *testing.T) {
	pod := newPod(interceptedBy(first))
	for name, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		verb    string
	}{
		"renewing":  {request: newRequest(processing(first, first, imperative), calledAt("")), verb: "patch"},
		"keeping":   {request: newRequest(processing(imperative, first, imperative), calledAt("")), verb: "patch"},
		"replacing": {request: newRequest(having(coordinationv1alpha1.EvictionRequestConditionCanceled)), verb: "delete"},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, client := world{stored: []runtime.Object{pod, test.request}, cached: []runtime.Object{pod, test.request}}.newPlugin(t)
			_ = plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil) // Refused or not: see TestCaches.
			var got []metav1.Preconditions
			for _, action := range client.Actions() {
				if !action.Matches(test.verb, requestResource.Resource) {
					continue
				}
				switch action := action.(type) {
				case clienttesting.DeleteActionImpl:
					got = append(got, *action.DeleteOptions.Preconditions)
				case clienttesting.PatchActionImpl:
					patch := metav1.PartialObjectMetadata{}
					if err := json.Unmarshal(action.Patch, &patch); err != nil {
						t.Fatal(err)
					}
					got = append(got, metav1.Preconditions{UID: &patch.UID, ResourceVersion: &patch.ResourceVersion})
				}
			}
			want := []metav1.Preconditions{{UID: &test.request.UID, ResourceVersion: &test.request.ResourceVersion}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("unexpected preconditions (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestFailures: an eviction waits whatever fails, until its interceptors are done. The only exception
// is a server that does not serve EvictionRequests.
func TestFailures(t *testing.T) {
	failed := errors.New("etcd is unavailable")
	pod := newPod(interceptedBy(first))
	stale := newRequest(processing(first, first, imperative), calledAt(""))
	notServed := apierrors.NewGenericServerResponse(404, "post", requestResource, "", "404 page not found", 0, true)
	for name, test := range map[string]struct {
		verb, resource string
		err            error
		request        *coordinationv1alpha1.EvictionRequest
		rights         rights
		want           string // admitted if empty
		wantInternal   bool
		attempts       int // of the verb; 1 if 0
	}{
		"reading the pod":              {verb: "get", resource: "pods", err: failed, request: newRequest(processing(imperative, first, imperative)), want: `reading pod "web-0" in namespace "shop"`, wantInternal: true},
		"creating the request":         {verb: "create", resource: "evictionrequests", err: failed, want: "cannot be written: etcd is unavailable"},
		"creating is forbidden":        {verb: "create", resource: "evictionrequests", err: apierrors.NewForbidden(requestResource, string(podUID), errors.New("exceeded quota")), want: "exceeded quota"},
		"renewing the request":         {verb: "patch", resource: "evictionrequests", err: failed, request: stale, want: "cannot be written: etcd is unavailable"},
		"renewing conflicts":           {verb: "patch", resource: "evictionrequests", err: apierrors.NewConflict(requestResource, string(podUID), failed), request: stale, want: "changed 5 times at the same time", attempts: maxAttempts},
		"keeping the request":          {verb: "patch", resource: "evictionrequests", err: failed, request: newRequest(processing(imperative, first, imperative), calledAt(""))},
		"keeping conflicts":            {verb: "patch", resource: "evictionrequests", err: apierrors.NewConflict(requestResource, string(podUID), failed), request: newRequest(processing(imperative, first, imperative), calledAt("")), want: "changed 5 times at the same time", attempts: maxAttempts - 1},
		"reading the request":          {verb: "get", resource: "evictionrequests", err: failed, request: newRequest(processing(imperative, first, imperative)), want: "etcd is unavailable"},
		"replacing a canceled request": {verb: "delete", resource: "evictionrequests", err: failed, request: newRequest(having(coordinationv1alpha1.EvictionRequestConditionCanceled)), want: "etcd is unavailable"},
		"the authorizer":               {verb: "create", resource: "evictionrequests", err: failed, rights: rights{err: failed}, want: "etcd is unavailable"},
		"requests are not served":      {verb: "create", resource: "evictionrequests", err: notServed},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}, rights: test.rights}
			if test.request != nil {
				w.stored, w.cached = append(w.stored, test.request), append(w.cached, test.request)
			}
			plugin, client := w.newPlugin(t)
			client.PrependReactor(test.verb, test.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
			err := plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil)
			switch {
			case test.want == "" && err != nil, test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got error %v, want %q", err, test.want)
			case test.want != "" && apierrors.IsTooManyRequests(err) == test.wantInternal:
				t.Errorf("got error %v with reason %s", err, apierrors.ReasonForError(err))
			}
			attempts := 0
			for _, action := range client.Actions() {
				if action.Matches(test.verb, test.resource) {
					attempts++
				}
			}
			if want := max(1, test.attempts); attempts != want {
				t.Errorf("%d attempts, want %d", attempts, want)
			}
		})
	}
}

// TestLongTexts: the message fits into an event, and shows no control characters, whatever others have
// written.
func TestLongTexts(t *testing.T) {
	const long = "xxx..."
	text := "\x1b[31m" + strings.Repeat("x", 30000)
	request := newRequest(processing(first, first, imperative))
	request.Status.Interceptors[0].HeartbeatTime = &metav1.Time{Time: noon}
	request.Status.Interceptors[0].Message = text
	pod, patient := newPod(interceptedBy(first)), newPod()
	for i := range 15 {
		interceptedBy(fmt.Sprintf("%d-%s.example.com", i, strings.Repeat("x", 200)))(patient)
	}
	for name, test := range map[string]struct {
		pod     *v1.Pod
		request *coordinationv1alpha1.EvictionRequest
		err     error
	}{
		"of an interceptor":          {pod: pod, request: request},
		"the names of interceptors":  {pod: patient},
		"of a webhook":               {pod: pod, err: apierrors.NewForbidden(requestResource, string(podUID), errors.New(text))},
		"of a webhook, and of names": {pod: patient, err: apierrors.NewForbidden(requestResource, string(podUID), errors.New(text))},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{stored: []runtime.Object{test.pod}, cached: []runtime.Object{test.pod}}
			if test.request != nil {
				w.stored, w.cached = append(w.stored, test.request), append(w.cached, test.request)
			}
			plugin, client := w.newPlugin(t)
			if test.err != nil {
				client.PrependReactor("create", requestResource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
			}
			err := plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil)
			if err == nil || len(err.Error()) > 1024 || strings.Contains(err.Error(), "\x1b") || !strings.Contains(err.Error(), long) {
				t.Errorf("got error %q", err)
			}
		})
	}
}
