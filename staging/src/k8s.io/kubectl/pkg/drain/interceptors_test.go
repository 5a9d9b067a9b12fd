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

package drain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// interceptedPod returns a pod of a ReplicaSet, with interceptors in its spec.
func interceptedPod(name string, interceptors ...string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "default",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: ptr.To(true)}},
	}}
	for _, interceptor := range interceptors {
		pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, corev1.EvictionInterceptor{Name: interceptor})
	}
	return pod
}

func registered(pod corev1.Pod, interceptors ...string) corev1.Pod {
	pod.Annotations = map[string]string{"example.com/other": "annotation"}
	for _, interceptor := range interceptors {
		pod.Annotations[coordinationv1alpha1.EvictionInterceptorAnnotationPrefix+interceptor] = "100"
	}
	return pod
}

func TestInterceptors(t *testing.T) {
	tests := map[string]struct {
		pod  corev1.Pod
		want []string
	}{
		"none":                    {pod: interceptedPod("p")},
		"other annotations":       {pod: registered(interceptedPod("p"))},
		"spec, in its order":      {pod: interceptedPod("p", "b.example.com", "a.example.com"), want: []string{"b.example.com", "a.example.com"}},
		"annotations, by name":    {pod: registered(interceptedPod("p"), "b.example.com", "a.example.com"), want: []string{"a.example.com", "b.example.com"}},
		"both, each of them once": {pod: registered(interceptedPod("p", "c.example.com", "a.example.com"), "a.example.com", "b.example.com"), want: []string{"c.example.com", "a.example.com", "b.example.com"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Interceptors(&test.pod)); diff != "" {
				t.Errorf("unexpected interceptors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInterceptedPodsStay(t *testing.T) {
	finished := interceptedPod("finished", "a.example.com")
	finished.Status.Phase = corev1.PodSucceeded
	failed := interceptedPod("failed", "a.example.com")
	failed.Status.Phase = corev1.PodFailed
	terminating := interceptedPod("terminating", "a.example.com")
	terminating.DeletionTimestamp = ptr.To(metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	mirror := interceptedPod("mirror", "a.example.com")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	// Each makes the drain fail unless it is skipped.
	bare := interceptedPod("bare", "a.example.com")
	bare.OwnerReferences = nil
	local := interceptedPod("local", "a.example.com")
	local.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	deployed := interceptedPod("deployed", coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet)
	pods := &corev1.PodList{Items: []corev1.Pod{
		interceptedPod("plain"), interceptedPod("spec", "a.example.com"), registered(interceptedPod("annotated"), "a.example.com"),
		finished, failed, terminating, mirror, bare, local, deployed,
		interceptedPod("observed", "a.example.com", coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet),
		interceptedPod("orphan", coordinationv1alpha1.EvictionInterceptorDaemonSet), interceptedPod("scaled", coordinationv1alpha1.EvictionInterceptorStatefulSet),
	}}

	type result struct {
		Deleted, Intercepted []string
		Warnings             string
		Failed               bool
	}
	tests := map[string]struct {
		helper Helper
		want   result
	}{
		"skipped": {
			helper: Helper{SkipInterceptedPods: true},
			want: result{
				Deleted:     []string{"plain", "finished", "failed", "terminating", "deployed", "orphan", "scaled"},
				Intercepted: []string{"spec", "annotated", "bare", "local", "observed"},
				Warnings: "leaving Pods with eviction interceptors (use --evict-intercepted-pods to evict them): " +
					"default/spec, default/annotated, default/bare, default/local, default/observed",
			},
		},
		"by default, interceptors are ignored": {
			want: result{Deleted: []string{"plain", "spec", "annotated", "finished", "failed", "terminating", "deployed", "observed", "orphan", "scaled"}, Failed: true},
		},
		"by default, with force": {
			helper: Helper{Force: true, DeleteEmptyDirData: true},
			want: result{
				Deleted:  []string{"plain", "spec", "annotated", "finished", "failed", "terminating", "bare", "local", "deployed", "observed", "orphan", "scaled"},
				Warnings: "deleting Pods that declare no controller: default/bare",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			list := filterPods(pods, test.helper.makeFilters())
			got := result{Deleted: podNames(list.Pods()), Intercepted: podNames(list.Intercepted()), Warnings: list.Warnings(), Failed: len(list.errors()) > 0}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected result (-want +got):\n%s", diff)
			}
		})
	}
}

// A pod with responders only is evicted where the server says that it waits for them, or that none acts. It stays where
// they would act only otherwise.
func TestPodsWithResponders(t *testing.T) {
	waits := apierrors.NewTooManyRequests("Eviction triggered evacuation", 0)
	waits.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: coordinationv1alpha1.EvictionInterceptedCause}}
	responding := func(pod corev1.Pod) corev1.Pod {
		pod.UID = "uid"
		pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/save", Priority: ptr.To[int32](5000)}}
		return pod
	}
	served := []*metav1.APIResourceList{{GroupVersion: "lifecycle.k8s.io/v1alpha1"}}
	const left = "leaving Pods with eviction responders, which do not act before this eviction (use --evict-intercepted-pods to evict them): default/p"
	tests := map[string]struct {
		pod      corev1.Pod
		helper   Helper
		answer   error
		served   []*metav1.APIResourceList
		want     string
		evicted  bool
		wantAsks int
	}{
		"the server waits":                {pod: responding(interceptedPod("p")), helper: Helper{SkipInterceptedPods: true}, answer: waits, served: served, evicted: true, wantAsks: 1},
		"the server does not":             {pod: responding(interceptedPod("p")), helper: Helper{SkipInterceptedPods: true}, served: served, want: left, wantAsks: 1},
		"blocked by a budget":             {pod: responding(interceptedPod("p")), helper: Helper{SkipInterceptedPods: true}, answer: apierrors.NewTooManyRequests("budget", 0), served: served, want: left, wantAsks: 1},
		"responders cannot act":           {pod: responding(interceptedPod("p")), helper: Helper{SkipInterceptedPods: true}, evicted: true, wantAsks: 1},
		"pods are deleted":                {pod: responding(interceptedPod("p")), helper: Helper{SkipInterceptedPods: true, DisableEviction: true}, answer: waits, served: served, want: left},
		"interceptors as well":            {pod: responding(interceptedPod("p", "a.example.com")), helper: Helper{SkipInterceptedPods: true}, answer: waits, served: served, want: "leaving Pods with eviction interceptors (use --evict-intercepted-pods to evict them): default/p"},
		"a server without interceptors":   {pod: responding(interceptedPod("p")), answer: waits, served: served, evicted: true},
		"no responders, nothing is asked": {pod: interceptedPod("p"), helper: Helper{SkipInterceptedPods: true}, served: served, evicted: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client, asks := fake.NewClientset(), 0
			client.Resources = test.served
			client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				options := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).DeleteOptions
				if diff := cmp.Diff([]string{metav1.DryRunAll}, options.DryRun); diff != "" || *options.Preconditions.UID != "uid" {
					t.Errorf("the question is an eviction: %v", options)
				}
				asks++
				return true, nil, test.answer
			})
			test.helper.Client = client
			list := filterPods(&corev1.PodList{Items: []corev1.Pod{test.pod}}, test.helper.makeFilters())
			if diff := cmp.Diff(test.want, list.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if evicted := len(list.Pods()) == 1; evicted != test.evicted || evicted == (len(list.Intercepted()) == 1) {
				t.Errorf("evicted: %t, intercepted: %d; want %t", evicted, len(list.Intercepted()), test.evicted)
			}
			if asks != test.wantAsks {
				t.Errorf("asked %d times, want %d", asks, test.wantAsks)
			}
		})
	}
}

func podNames(pods []corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// Only interceptors of its own are bypassed, with both versions of evictions, and only if the helper
// is told so.
func TestEvictionsBypassInterceptors(t *testing.T) {
	responding := interceptedPod("responding")
	responding.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/save", Priority: ptr.To[int32](5000)}}
	pods := []corev1.Pod{
		interceptedPod("plain"),
		interceptedPod("spec", "a.example.com"),
		responding,
		registered(interceptedPod("annotated"), "a.example.com"),
		interceptedPod("deployed", coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet),
	}
	for _, version := range []schema.GroupVersion{policyv1.SchemeGroupVersion, policyv1beta1.SchemeGroupVersion} {
		for _, bypass := range []bool{true, false} {
			client := fake.NewClientset()
			client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
			helper := Helper{Client: client, BypassInterceptors: bypass}
			var got []string
			for _, pod := range pods {
				if err := helper.EvictPod(pod, version); err != nil {
					t.Fatalf("evicting %s: %v", pod.Name, err)
				}
			}
			for _, action := range client.Actions() {
				eviction, err := meta.Accessor(action.(clienttesting.CreateAction).GetObject())
				if err != nil {
					t.Fatalf("reading an eviction: %v", err)
				}
				switch value := eviction.GetAnnotations()["coordination.k8s.io/bypass-interceptors"]; {
				case value == "true":
					got = append(got, eviction.GetName())
				case len(eviction.GetAnnotations()) > 0:
					t.Errorf("the eviction of %s has the annotations %v", eviction.GetName(), eviction.GetAnnotations())
				}
			}
			var want []string
			if bypass {
				want = []string{"spec", "responding", "annotated"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, bypass %t: unexpected pods without interceptors (-want +got):\n%s", version, bypass, diff)
			}
		}
	}
}

func TestRefusalFormat(t *testing.T) {
	byBudget := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	byInterceptor := apierrors.NewTooManyRequests("Eviction triggered evacuation", 0)
	byInterceptor.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: coordinationv1alpha1.EvictionInterceptedCause}}
	for err, want := range map[error]string{byBudget: "error when evicting pods/", byInterceptor: "waiting for the interceptors of pods/"} {
		if got := refusalFormat(err); !strings.HasPrefix(got, want) {
			t.Errorf("%v is printed as %q, want %q", err, got, want)
		}
	}
}
