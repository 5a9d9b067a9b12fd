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
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	api "k8s.io/kubernetes/pkg/apis/core"
	apiv1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/registry/core/pod/admittedpod"
)

// TestCheckOfAdmittedPods: the storage is about to evict another pod than the one that was admitted.
func TestCheckOfAdmittedPods(t *testing.T) {
	const allowed, replaced, late = "", "its name belongs to another pod", "have registered while it was evicted"
	plain, pod, leaving := newPod(), newPod(interceptedBy(first)), newPod(interceptedBy(first), terminating)
	atLast := newRequest(processing(imperative, first, imperative))
	for name, test := range map[string]struct {
		// admitted is what admission sees.
		admitted []runtime.Object
		rights   rights
		// bypass is whether the caller asks for it.
		bypass  bool
		evicted *v1.Pod
		want    string
	}{
		"the same pod": {admitted: []runtime.Object{plain}, evicted: plain, want: allowed},
		"the same pod, whose interceptors are done":    {admitted: []runtime.Object{pod, atLast}, evicted: pod, want: allowed},
		"the same pod, bypassing the interceptors":     {admitted: []runtime.Object{pod}, rights: rights{verbs: []string{"bypass"}}, evicted: pod, want: allowed},
		"the same pod, which terminates":               {admitted: []runtime.Object{leaving}, evicted: leaving, want: allowed},
		"an interceptor has registered":                {admitted: []runtime.Object{plain}, evicted: newPod(registered(first, "10")), want: late},
		"an interceptor has registered, but it ends":   {admitted: []runtime.Object{plain}, evicted: newPod(registered(first, "10"), terminating), want: allowed},
		"one has registered, and bypass was asked for": {admitted: []runtime.Object{plain}, bypass: true, evicted: newPod(registered(first, "10")), want: late},
		"another pod without interceptors":             {admitted: []runtime.Object{plain}, evicted: newPod(withUID(successorUID)), want: allowed},
		"another pod":                                  {admitted: []runtime.Object{plain}, evicted: newPod(withUID(successorUID), interceptedBy(first)), want: replaced},
		"another pod that terminates":                  {admitted: []runtime.Object{plain}, evicted: newPod(withUID(successorUID), interceptedBy(first), terminating), want: allowed},
		"after a pod whose interceptors are done":      {admitted: []runtime.Object{pod, atLast}, evicted: newPod(withUID(successorUID), interceptedBy(first)), want: replaced},
		"after a pod that was to be bypassed":          {admitted: []runtime.Object{pod}, rights: rights{verbs: []string{"bypass"}}, evicted: newPod(withUID(successorUID), interceptedBy(first)), want: replaced},
		"after a pod that terminates":                  {admitted: []runtime.Object{leaving}, evicted: newPod(withUID(successorUID), interceptedBy(first)), want: replaced},
		"after no pod":                                 {evicted: pod, want: replaced},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, _ := world{stored: test.admitted, cached: test.admitted, rights: test.rights}.newPlugin(t)
			ctx := admittedpod.NewContext(t.Context())
			eviction := newEviction(nil)
			if test.bypass {
				eviction.Annotations = map[string]string{coordinationv1alpha1.EvictionBypassAnnotation: "true"}
			}
			if err := plugin.Validate(ctx, call("pods", "eviction", eviction), nil); err != nil {
				t.Fatalf("not admitted: %v", err)
			}
			evicted := &api.Pod{}
			if err := apiv1.Convert_v1_Pod_To_core_Pod(test.evicted, evicted, nil); err != nil {
				t.Fatal(err)
			}
			err := admittedpod.Check(ctx, evicted)
			if test.want == allowed && err != nil || test.want != allowed && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}
