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
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
	apiv1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/registry/core/pod/admittedpod"
)

// TestPodsOfGroups: the interceptors of a pod act unless it leaves with its group only. Then its request is canceled, and
// nobody would ever act.
func TestPodsOfGroups(t *testing.T) {
	const waits, admitted = "Eviction triggered evacuation", ""
	pod, plain, nameless := newPod(interceptedBy(first), inSchedulingGroup), newPod(inSchedulingGroup), newPod(interceptedBy(first), func(pod *v1.Pod) { pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{} })
	group := func(mode *schedulingv1beta1.DisruptionMode) runtime.Object {
		return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "training"}, Spec: schedulingv1beta1.PodGroupSpec{DisruptionMode: mode}}
	}
	single := group(nil)
	all := group(&schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}})
	atFirst := newRequest(processing(first, first, imperative))
	evicted := newRequest(processing("", first, imperative), having(coordinationv1alpha1.EvictionRequestConditionEvicted))
	refused := newRequest(having(coordinationv1alpha1.EvictionRequestConditionCanceled))
	noGroups, noRequests := map[string]error{"podgroups": errors.New("broken")}, map[string]error{"evictionrequests": errors.New("broken")}
	notServed := map[string]error{"evictionrequests": apierrors.NewGenericServerResponse(404, "get", requestResource, "", "404 page not found", 0, true)}
	const readGroup, readRequest = "get podgroups", "get evictionrequests"
	for name, test := range map[string]struct {
		pod          *v1.Pod
		objects      []runtime.Object
		rights       rights
		broken       map[string]error
		want         string
		wantRequests []string
	}{
		"single":                                   {pod: pod, objects: []runtime.Object{single}, want: waits, wantRequests: []string{readGroup, "create evictionrequests"}},
		"all":                                      {pod: pod, objects: []runtime.Object{all}, want: admitted, wantRequests: []string{readGroup, readRequest}},
		"all, and the request was canceled":        {pod: pod, objects: []runtime.Object{all, refused}, want: admitted, wantRequests: []string{readGroup, readRequest}},
		"all, and an earlier request is over":      {pod: pod, objects: []runtime.Object{all, evicted}, want: admitted, wantRequests: []string{readGroup, readRequest}},
		"all, and requests are not served":         {pod: pod, objects: []runtime.Object{all}, broken: notServed, want: admitted, wantRequests: []string{readGroup, readRequest}},
		"all, and no request can be read":          {pod: pod, objects: []runtime.Object{all}, broken: noRequests, want: "It is not known whether they do, because pod web-0 is in a PodGroup", wantRequests: []string{readGroup, readRequest}},
		"all, and the request is undecided":        {pod: pod, objects: []runtime.Object{all, newRequest()}, want: admitted, wantRequests: []string{readGroup, readRequest}},
		"no such group":                            {pod: pod, want: admitted, wantRequests: []string{readGroup, readRequest}},
		"no name":                                  {pod: nameless, want: admitted, wantRequests: []string{readRequest}},
		"the group has gone, and one acts already": {pod: pod, objects: []runtime.Object{atFirst}, want: waits, wantRequests: []string{readGroup, readRequest}},
		"it cannot be read":                        {pod: pod, broken: noGroups, want: "It is not known whether they do, because pod web-0 is in a PodGroup: reading PodGroup training: broken", wantRequests: []string{readGroup}},
		"bypassed":                                 {pod: pod, rights: rights{verbs: []string{"bypass"}}, broken: noGroups, want: admitted},
		"no interceptors":                          {pod: plain, broken: noGroups, want: admitted},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{stored: append(test.objects, test.pod), cached: []runtime.Object{test.pod}, rights: test.rights}
			for _, object := range test.objects {
				if request, isRequest := object.(*coordinationv1alpha1.EvictionRequest); isRequest {
					w.cached = append(w.cached, request)
				}
			}
			plugin, client := w.newPlugin(t)
			for resource, err := range test.broken {
				client.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
			}
			ctx := admittedpod.NewContext(t.Context())
			err := plugin.Validate(ctx, call("pods", "eviction", newEviction(nil)), nil)
			if test.want == admitted && err != nil || test.want != admitted && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
			if diff := cmp.Diff(test.wantRequests, requests(client)); diff != "" {
				t.Errorf("unexpected requests (-want, +got):\n%s", diff)
			}
			if test.want != admitted {
				return
			}
			stored := &api.Pod{}
			if err := apiv1.Convert_v1_Pod_To_core_Pod(test.pod, stored, nil); err != nil {
				t.Fatal(err)
			}
			if err := admittedpod.Check(ctx, stored); err != nil {
				t.Errorf("the storage does not evict the pod that was admitted: %v", err)
			}
		})
	}
}
