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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/apis/policy"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

func byUser(a admission.Attributes, name string) admission.Attributes {
	return admission.NewAttributesRecord(a.GetObject(), nil, a.GetKind(), a.GetNamespace(), a.GetName(), a.GetResource(), a.GetSubresource(), a.GetOperation(), nil, false,
		&user.DefaultInfo{Name: name})
}

func annotated(key, value string) podOption {
	return func(pod *v1.Pod) { pod.Annotations = map[string]string{key: value} }
}

// TestFirstCalls: a call that comes once requests nothing, unless it is known to mean the pod.
func TestFirstCalls(t *testing.T) {
	plain := newPod(interceptedBy(first))
	cordoned := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "node-uid", ResourceVersion: "20"}, Spec: v1.NodeSpec{Unschedulable: true}}
	schedulable := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "node-uid", ResourceVersion: "20"}}
	atFirst := func(requesters ...string) *coordinationv1alpha1.EvictionRequest {
		return newRequest(processing(first, first, imperative), requestedBy(requesters...))
	}
	atOnce := newEviction(nil)
	atOnce.Annotations = map[string]string{coordinationv1alpha1.EvictionRequestAtOnceAnnotation: "true"}
	notAtOnce := newEviction(nil)
	notAtOnce.Annotations = map[string]string{coordinationv1alpha1.EvictionRequestAtOnceAnnotation: "yes"}
	for name, test := range map[string]struct {
		pod      *v1.Pod
		eviction *policy.Eviction
		others   []runtime.Object
		rights   rights
		// callers evict the pod one after another.
		callers []string
		// want are the writes.
		want []string
	}{
		"one call":                        {callers: []string{"evictor"}},
		"two calls":                       {callers: []string{"evictor", "evictor"}, want: []string{"create"}},
		"two callers":                     {callers: []string{"evictor", "other"}},
		"one that comes back":             {callers: []string{"evictor", "other", "evictor"}, want: []string{"create"}},
		"one call that requests":          {eviction: atOnce, callers: []string{"evictor"}, want: []string{"create"}},
		"one call that says something":    {eviction: notAtOnce, callers: []string{"evictor"}},
		"a pod whose evictions request":   {pod: newPod(interceptedBy(first), annotated("descheduler.alpha.kubernetes.io/request-evict-only", "")), callers: []string{"evictor"}, want: []string{"create"}},
		"a pod on a cordoned node":        {pod: newPod(interceptedBy(first), onNode("node-1")), others: []runtime.Object{cordoned}, callers: []string{"evictor"}, want: []string{"create"}},
		"a pod on a schedulable node":     {pod: newPod(interceptedBy(first), onNode("node-1")), others: []runtime.Object{schedulable}, callers: []string{"evictor"}},
		"a caller that may request":       {rights: rights{verbs: []string{"request"}}, callers: []string{"evictor"}, want: []string{"create"}},
		"a caller that may do everything": {rights: rights{verbs: []string{"request", "*"}}, callers: []string{"evictor"}},
		"one call, requested by others":   {others: []runtime.Object{atFirst("drain.example.com")}, callers: []string{"evictor"}},
		"two calls, requested by others":  {others: []runtime.Object{atFirst("drain.example.com")}, callers: []string{"evictor", "evictor"}, want: []string{"patch"}},
		"one call, requested by callers":  {others: []runtime.Object{newRequest(processing(first, first, imperative), calledAt(""))}, callers: []string{"evictor"}, want: []string{"patch"}},
		"one call after a cancellation":   {others: []runtime.Object{newRequest(having(coordinationv1alpha1.EvictionRequestConditionCanceled))}, callers: []string{"evictor"}},
		"two calls after a cancellation":  {others: []runtime.Object{newRequest(having(coordinationv1alpha1.EvictionRequestConditionCanceled))}, callers: []string{"evictor", "evictor"}, want: []string{"delete", "create"}},
		"one call, its interceptors done": {others: []runtime.Object{newRequest(processing(imperative, first, imperative), calledAt(""))}, callers: []string{"evictor"}, want: []string{"patch"}},
		"one for a version, two calls":    {eviction: newEviction(&metav1.Preconditions{ResourceVersion: ptr.To("7")}), callers: []string{"evictor", "evictor"}},
		"without interceptors":            {pod: newPod(), callers: []string{"evictor"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := test.pod
			if pod == nil {
				pod = plain
			}
			eviction := test.eviction
			if eviction == nil {
				eviction = newEviction(nil)
			}
			objects := append([]runtime.Object{pod}, test.others...)
			plugin, client := world{stored: objects, cached: objects, rights: test.rights, first: true}.newPlugin(t)
			var err error
			for _, name := range test.callers {
				err = plugin.Validate(t.Context(), byUser(call("pods", "eviction", eviction), name), nil)
			}
			var writes []string
			for _, action := range client.Actions() {
				if action.GetVerb() != "get" {
					writes = append(writes, action.GetVerb())
				}
			}
			if diff := cmp.Diff(test.want, writes); diff != "" {
				t.Errorf("unexpected writes (-want, +got):\n%s\nerror: %v", diff, err)
			}
			refused := apierrors.IsTooManyRequests(err) && apierrors.HasStatusCause(err, coordinationv1alpha1.EvictionInterceptedCause)
			if wantRefused := len(pod.Spec.EvictionInterceptors) > 0 && name != "one call, its interceptors done"; refused != wantRefused {
				t.Errorf("got error %v, want refused: %t", err, wantRefused)
			}
		})
	}
}

// A caller that goes on is known for as long as it calls at least every 45 seconds.
func TestCallsAreRemembered(t *testing.T) {
	clock := testingclock.NewFakeClock(noon)
	calls := &calls{recent: cache.NewLRUExpireCacheWithClock(maxCalls, clock)}
	e := &eviction{Attributes: call("pods", "eviction", newEviction(nil)), pod: newPod()}
	for _, test := range []struct {
		pause time.Duration
		want  bool
	}{
		{pause: 0, want: false},
		{pause: 44 * time.Second, want: true},
		{pause: 44 * time.Second, want: true},
		{pause: 46 * time.Second, want: false},
		{pause: time.Second, want: true},
	} {
		clock.Step(test.pause)
		if got := calls.isRepeated(e); got != test.want {
			t.Errorf("at %v, %v after the last call: repeated is %t", clock.Since(noon), test.pause, got)
		}
	}
}

// Only the first call has to be explained: the others are as expected.
func TestAnswerToFirstCalls(t *testing.T) {
	const how = `This call does not request that: one more within 45 seconds does, or one with the annotation coordination.k8s.io/request-eviction: "true".`
	pod := newPod(interceptedBy(first))
	others := newRequest(processing(first, first, imperative), requestedBy("drain.example.com"))
	for _, test := range []struct {
		others []runtime.Object
		want   string
	}{
		{want: "Cannot evict pod shop/web-0: its interceptors (first.example.com) have to act first. " + how},
		{others: []runtime.Object{others}, want: "Cannot evict pod shop/web-0 yet: its interceptors have to act first. Interceptor first.example.com is active since 2026-05-04T12:00:00Z, and has not reported yet. Without a heartbeat until 2026-05-04T12:20:00Z it loses its turn. " + how},
	} {
		objects := append([]runtime.Object{pod}, test.others...)
		plugin, _ := world{stored: objects, cached: objects, first: true}.newPlugin(t)
		if err := plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil); err == nil || err.Error() != test.want {
			t.Errorf("got  %v\nwant %s", err, test.want)
		}
	}
}

// A caller may not become known while the authorizer cannot decide.
func TestFirstCallWithoutAnAuthorizer(t *testing.T) {
	pod := newPod(interceptedBy(first))
	plugin, client := world{stored: []runtime.Object{pod}, cached: []runtime.Object{pod}, first: true}.newPlugin(t)
	plugin.SetAuthorizer(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", context.DeadlineExceeded
	}))
	if err := plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil); !apierrors.IsTooManyRequests(err) || len(client.Actions()) > 0 {
		t.Errorf("got error %v and requests %v", err, requests(client))
	}
}

// TestGracePeriod: the request says the shortest grace period of its callers, if it is not that of the pod.
func TestGracePeriod(t *testing.T) {
	const name = coordinationv1alpha1.EvictionCallGracePeriodAnnotation
	said := func(seconds string) requestOption {
		return func(request *coordinationv1alpha1.EvictionRequest) { request.Annotations[name] = seconds }
	}
	atFirst := processing(first, first, imperative)
	none, removed := "none", "removed"
	for title, test := range map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		own     *int64
		asked   *int64
		want    string
	}{
		"none":                             {want: none},
		"that of the pod":                  {own: ptr.To[int64](60), asked: ptr.To[int64](60), want: none},
		"the default":                      {asked: ptr.To[int64](30), want: none},
		"a shorter one":                    {asked: ptr.To[int64](5), want: "5"},
		"at once":                          {asked: ptr.To[int64](0), want: "0"},
		"a longer one":                     {asked: ptr.To[int64](600), want: "600"},
		"a negative one":                   {asked: ptr.To[int64](-1), want: "1"},
		"a negative one of the pod":        {own: ptr.To[int64](-5), want: none},
		"shorter than another's":           {request: newRequest(atFirst, said("20")), asked: ptr.To[int64](5), want: "5"},
		"like another's":                   {request: newRequest(atFirst, said("20")), asked: ptr.To[int64](20), want: none},
		"longer than another's":            {request: newRequest(atFirst, said("20")), asked: ptr.To[int64](25), want: none},
		"none, and another's is shorter":   {request: newRequest(atFirst, said("20")), want: none},
		"none, and another's is longer":    {request: newRequest(atFirst, said("600")), want: removed},
		"longer, and others without one":   {request: newRequest(atFirst), asked: ptr.To[int64](600), want: none},
		"shorter, and others without one":  {request: newRequest(atFirst), asked: ptr.To[int64](10), want: "10"},
		"shorter, and one that is invalid": {request: newRequest(atFirst, said("x")), asked: ptr.To[int64](10), want: "10"},
		"joining, with an old one":         {request: newRequest(atFirst, said("20"), requestedBy("drain.example.com")), want: removed},
		"joining, with another one":        {request: newRequest(atFirst, said("20"), requestedBy("drain.example.com")), asked: ptr.To[int64](25), want: "25"},
	} {
		t.Run(title, func(t *testing.T) {
			pod := newPod(interceptedBy(first))
			pod.Spec.TerminationGracePeriodSeconds = test.own
			objects := []runtime.Object{pod}
			if test.request != nil {
				objects = append(objects, test.request)
			}
			plugin, client := world{stored: objects, cached: objects}.newPlugin(t)
			eviction := newEviction(nil)
			eviction.DeleteOptions.GracePeriodSeconds = test.asked
			_ = plugin.Validate(t.Context(), call("pods", "eviction", eviction), nil) // Refused: see TestCaches.
			got := none
			for _, action := range client.Actions() {
				switch action := action.(type) {
				case clienttesting.CreateActionImpl:
					if seconds, found := action.Object.(*coordinationv1alpha1.EvictionRequest).Annotations[name]; found {
						got = seconds
					}
				case clienttesting.PatchActionImpl:
					patch := struct {
						Metadata struct{ Annotations map[string]*string }
					}{}
					if err := json.Unmarshal(action.Patch, &patch); err != nil {
						t.Fatal(err)
					}
					if seconds, found := patch.Metadata.Annotations[name]; found {
						got = ptr.Deref(seconds, removed)
					}
				}
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestDeadlineOfCallers: the smallest deadline of all requesters counts, and callers of pods/eviction have the default.
func TestDeadlineOfCallers(t *testing.T) {
	for name, test := range map[string]struct {
		stored *int32
		want   *int32
	}{
		"a longer one":  {stored: ptr.To[int32](21600), want: ptr.To[int32](1200)},
		"a bit longer":  {stored: ptr.To[int32](1201), want: ptr.To[int32](1200)},
		"the default":   {stored: ptr.To[int32](1200)},
		"a shorter one": {stored: ptr.To[int32](300)},
		"none":          {},
	} {
		t.Run(name, func(t *testing.T) {
			pod, request := newPod(interceptedBy(first)), newRequest(processing(first, first, imperative), requestedBy("drain.example.com"))
			request.Spec.HeartbeatDeadlineSeconds = test.stored
			objects := []runtime.Object{pod, request}
			plugin, client := world{stored: objects, cached: objects}.newPlugin(t)
			_ = plugin.Validate(t.Context(), call("pods", "eviction", newEviction(nil)), nil) // Refused: see TestCaches.
			patch := struct {
				Spec struct{ HeartbeatDeadlineSeconds *int32 }
			}{}
			for _, action := range client.Actions() {
				if action, isPatch := action.(clienttesting.PatchActionImpl); isPatch {
					if err := json.Unmarshal(action.Patch, &patch); err != nil {
						t.Fatal(err)
					}
				}
			}
			if diff := cmp.Diff(test.want, patch.Spec.HeartbeatDeadlineSeconds); diff != "" {
				t.Errorf("unexpected deadline in the patch (-want, +got):\n%s", diff)
			}
		})
	}
}
