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

package replicaset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	deploymentInterceptor = "deployment.apps.k8s.io"
	replicaSetInterceptor = "replicaset.apps.k8s.io"
	userInterceptor       = "user.example.com"

	deploymentUID types.UID = "d0"
)

// newDeployment returns a Deployment with one replica, rolling updates and this maxSurge.
func newDeployment(maxSurge intstr.IntOrString, changes ...func(*apps.Deployment)) *apps.Deployment {
	deployment := &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "web", UID: deploymentUID},
		Spec: apps.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Strategy: apps.DeploymentStrategy{
				Type:          apps.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &apps.RollingUpdateDeployment{MaxSurge: &maxSurge, MaxUnavailable: ptr.To(intstr.FromInt32(1))},
			},
		},
	}
	for _, change := range changes {
		change(deployment)
	}
	return deployment
}

func deploymentRef() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: deploymentUID, Controller: ptr.To(true)}
}

func ownedBy(refs ...metav1.OwnerReference) func(*apps.ReplicaSet) {
	return func(rs *apps.ReplicaSet) { rs.OwnerReferences = refs }
}

// newReplicaSetOf returns a ReplicaSet of that Deployment.
func newReplicaSetOf(changes ...func(*apps.ReplicaSet)) *apps.ReplicaSet {
	rs := newReplicaSet(1, map[string]string{"app": "web"})
	rs.Name, rs.UID = "web-1", "rs"
	rs.Spec.Template.Labels = map[string]string{"app": "web"}
	rs.OwnerReferences = []metav1.OwnerReference{deploymentRef()}
	for _, change := range changes {
		change(rs)
	}
	return rs
}

func deploymentLister(t *testing.T, deployments ...*apps.Deployment) appslisters.DeploymentLister {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, deployment := range deployments {
		if err := indexer.Add(deployment); err != nil {
			t.Fatalf("caching Deployment %s: %v", deployment.Name, err)
		}
	}
	return appslisters.NewDeploymentLister(indexer)
}

// creation is a call of CreatePods.
type creation struct {
	Namespace string
	Template  v1.PodTemplateSpec
	Owner     types.UID
}

// recordingPodControl records creations, and returns the answers one after another.
type recordingPodControl struct {
	controller.PodControlInterface
	creations []creation
	answers   []error
	deletions []string
}

func (c *recordingPodControl) DeletePod(_ context.Context, _, name string, _ runtime.Object) error {
	c.deletions = append(c.deletions, name)
	return nil
}

func (c *recordingPodControl) CreatePods(_ context.Context, namespace string, template *v1.PodTemplateSpec, _ runtime.Object, ref *metav1.OwnerReference) error {
	c.creations = append(c.creations, creation{Namespace: namespace, Template: *template.DeepCopy(), Owner: ref.UID})
	if len(c.answers) < len(c.creations) {
		return nil
	}
	return c.answers[len(c.creations)-1]
}

// interceptors returns the names of the interceptors of each created pod.
func (c *recordingPodControl) interceptors() [][]string {
	var all [][]string
	for _, creation := range c.creations {
		names := []string{}
		for _, interceptor := range creation.Template.Spec.EvictionInterceptors {
			names = append(names, interceptor.Name)
		}
		all = append(all, names)
	}
	return all
}

func TestInterceptedPodControl(t *testing.T) {
	one := intstr.FromInt32(1)
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "", nil)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("quota"))
	both, none := []string{deploymentInterceptor, replicaSetInterceptor}, []string{}
	named := func(names ...string) func(*apps.ReplicaSet) {
		return func(rs *apps.ReplicaSet) {
			for _, name := range names {
				rs.Spec.Template.Spec.EvictionInterceptors = append(rs.Spec.Template.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: name})
			}
		}
	}
	tests := map[string]struct {
		deployment *apps.Deployment
		owner      runtime.Object
		answers    []error
		want       [][]string
		wantErr    error
	}{
		"a Deployment that surges": {deployment: newDeployment(one), want: [][]string{both}},
		"a Deployment that surges by a share of its replicas": {
			deployment: newDeployment(intstr.FromString("25%")), want: [][]string{both},
		},
		"a Deployment that does not surge": {deployment: newDeployment(intstr.FromInt32(0)), want: [][]string{none}},
		"a Deployment that surges by no share": {
			deployment: newDeployment(intstr.FromString("0%")), want: [][]string{none},
		},
		"a Deployment that recreates": {
			deployment: newDeployment(one, func(d *apps.Deployment) {
				d.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
			}),
			want: [][]string{none},
		},
		"a Deployment with another UID": {
			deployment: newDeployment(one, func(d *apps.Deployment) { d.UID = "d1" }), want: [][]string{none},
		},
		"a Deployment in another namespace": {
			deployment: newDeployment(one, func(d *apps.Deployment) { d.Namespace = "other" }), want: [][]string{none},
		},
		"a Deployment that is gone": {want: [][]string{none}},
		"a Deployment in an older version": {
			deployment: newDeployment(one),
			owner: newReplicaSetOf(func(rs *apps.ReplicaSet) {
				rs.OwnerReferences[0].APIVersion = "apps/v1beta2"
			}),
			want: [][]string{both},
		},
		"the ReplicaSet has no controller": {deployment: newDeployment(one), owner: newReplicaSetOf(ownedBy()), want: [][]string{none}},
		"a Deployment that owns and does not control": {
			deployment: newDeployment(one),
			owner:      newReplicaSetOf(func(rs *apps.ReplicaSet) { rs.OwnerReferences[0].Controller = nil }),
			want:       [][]string{none},
		},
		"another kind controls the ReplicaSet": {
			deployment: newDeployment(one),
			owner:      newReplicaSetOf(func(rs *apps.ReplicaSet) { rs.OwnerReferences[0].Kind = "Rollout" }),
			want:       [][]string{none},
		},
		"a Deployment of another group controls the ReplicaSet": {
			deployment: newDeployment(one),
			owner:      newReplicaSetOf(func(rs *apps.ReplicaSet) { rs.OwnerReferences[0].APIVersion = "example.com/v1" }),
			want:       [][]string{none},
		},
		"a ReplicationController": {
			deployment: newDeployment(one),
			owner: &v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: "web-1", UID: "rs", OwnerReferences: []metav1.OwnerReference{deploymentRef()},
			}},
			want: [][]string{none},
		},
		"the user's own interceptor comes first": {
			deployment: newDeployment(one), owner: newReplicaSetOf(named(userInterceptor)),
			want: [][]string{{userInterceptor, deploymentInterceptor, replicaSetInterceptor}},
		},
		"the user has placed them": {
			deployment: newDeployment(one), owner: newReplicaSetOf(named(replicaSetInterceptor, deploymentInterceptor)),
			want: [][]string{{replicaSetInterceptor, deploymentInterceptor}},
		},
		"an interceptor registered with a higher priority comes first": {
			deployment: newDeployment(one),
			owner: newReplicaSetOf(func(rs *apps.ReplicaSet) {
				rs.Spec.Template.Annotations = map[string]string{
					coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + userInterceptor:       "20000/copies-data",
					coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + replicaSetInterceptor: "10000/controller",
				}
			}),
			want: [][]string{{userInterceptor, deploymentInterceptor, replicaSetInterceptor}},
		},
		"a pod in a scheduling group": {
			deployment: newDeployment(one),
			owner: newReplicaSetOf(func(rs *apps.ReplicaSet) {
				rs.Spec.Template.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("training")}
			}),
			want: [][]string{both},
		},
		"the API server rejects them": {
			deployment: newDeployment(one), answers: []error{invalid}, want: [][]string{both, none},
		},
		"the API server rejects the pod without them, too": {
			deployment: newDeployment(one), answers: []error{forbidden, invalid}, want: [][]string{both, none}, wantErr: forbidden,
		},
		"a webhook forbids them": {
			deployment: newDeployment(one), answers: []error{forbidden}, want: [][]string{both, none},
		},
		"the API server rejects a pod without them": {
			answers: []error{invalid}, want: [][]string{none}, wantErr: invalid,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var deployments []*apps.Deployment
			if test.deployment != nil {
				deployments = append(deployments, test.deployment)
			}
			owner := test.owner
			if owner == nil {
				owner = newReplicaSetOf()
			}
			template := &v1.PodTemplateSpec{}
			if rs, ok := owner.(*apps.ReplicaSet); ok {
				template = &rs.Spec.Template
			}
			stored, storedTemplate := owner.DeepCopyObject(), template.DeepCopy()
			recorder := &recordingPodControl{answers: test.answers}
			control := interceptedPodControl{PodControlInterface: recorder, deploymentLister: deploymentLister(t, deployments...), creator: evictioninterceptor.NewCreator(clock.RealClock{}), recorder: record.NewFakeRecorder(10)}

			err := control.CreatePods(t.Context(), metav1.NamespaceDefault, template, owner, &metav1.OwnerReference{UID: "rs"})
			if !errors.Is(err, test.wantErr) {
				t.Errorf("got error %v, want %v", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, recorder.interceptors()); diff != "" {
				t.Errorf("unexpected interceptors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(stored, owner); diff != "" {
				t.Errorf("the owner in the cache changed (-want +got):\n%s", diff)
			}
			// Nothing else in the pods is changed.
			for _, created := range recorder.creations {
				created.Template.Spec.EvictionInterceptors = storedTemplate.Spec.EvictionInterceptors
				want := creation{Namespace: metav1.NamespaceDefault, Template: *storedTemplate, Owner: "rs"}
				if diff := cmp.Diff(want, created); diff != "" {
					t.Errorf("unexpected pod (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// The controller only adds interceptors after InterceptEvictions was called.
func TestInjectionBySync(t *testing.T) {
	for name, test := range map[string]struct {
		intercepts bool
		want       [][]string
	}{
		"takes part in evictions": {intercepts: true, want: [][]string{{deploymentInterceptor, replicaSetInterceptor}}},
		"does not":                {want: [][]string{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEvictionFixture(t)
			recorder := &recordingPodControl{}
			f.rsc.podControl = recorder
			if test.intercepts {
				f.intercept(t)
			}
			rs := newReplicaSetOf()
			f.cached(t, newDeployment(intstr.FromInt32(1)), rs)
			if err := f.rsc.manageReplicas(f.ctx, nil, rs); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if diff := cmp.Diff(test.want, recorder.interceptors()); diff != "" {
				t.Errorf("unexpected interceptors (-want +got):\n%s", diff)
			}
		})
	}
}

// A pod that is created before the Deployments are known would never get its interceptors. Requests
// may never be served.
func TestSyncWaitsForDeployments(t *testing.T) {
	f := newEvictionFixture(t)
	rsSynced := false
	f.rsc.rsListerSynced = func() bool { return rsSynced }
	f.intercept(t)
	if f.rsc.rsListerSynced() {
		t.Error("ready before any cache has synced")
	}
	rsSynced = true
	if f.rsc.rsListerSynced() {
		t.Error("ready before the Deployments have synced")
	}
	informer := f.factory.Apps().V1().Deployments().Informer()
	ctx, stop := context.WithCancel(f.ctx)
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	defer running.Wait()
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the Deployments did not sync")
	}
	if !f.rsc.rsListerSynced() {
		t.Error("not ready although all caches have synced")
	}
	if f.rsc.evictions.requestsSynced() {
		t.Error("the requests have synced without an informer")
	}
	rsSynced = false
	if f.rsc.rsListerSynced() {
		t.Error("ready before the ReplicaSets have synced")
	}
}

// Pods of a Deployment without a surge name its controllers as well if they wait for each other.
func TestInjectionOfPacedDeployments(t *testing.T) {
	both, none := []string{deploymentInterceptor, replicaSetInterceptor}, []string{}
	for name, test := range map[string]struct {
		change func(*apps.Deployment)
		want   []string
	}{
		"several replicas": {want: both},
		"one replica":      {change: func(d *apps.Deployment) { d.Spec.Replicas = ptr.To[int32](1) }, want: none},
		"opted out": {change: func(d *apps.Deployment) {
			d.Annotations = map[string]string{evictioninterceptor.DeploymentPacingAnnotation: "Disabled"}
		}, want: none},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := newDeployment(intstr.FromInt32(0), func(d *apps.Deployment) { d.Spec.Replicas = ptr.To[int32](3) })
			if test.change != nil {
				test.change(deployment)
			}
			recorder, rs := &recordingPodControl{}, newReplicaSetOf()
			control := interceptedPodControl{PodControlInterface: recorder, deploymentLister: deploymentLister(t, deployment), creator: evictioninterceptor.NewCreator(clock.RealClock{})}
			if err := control.CreatePods(t.Context(), metav1.NamespaceDefault, &rs.Spec.Template, rs, &metav1.OwnerReference{UID: "rs"}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]string{test.want}, recorder.interceptors()); diff != "" {
				t.Errorf("unexpected interceptors (-want +got):\n%s", diff)
			}
		})
	}
}

// That pods get none of the names is said at the Deployment: nothing else would show it.
func TestLeftOutInterceptorsAreSaid(t *testing.T) {
	deployment, rs, events := newDeployment(intstr.FromInt32(1)), newReplicaSetOf(), record.NewFakeRecorder(10)
	for i := range 14 {
		rs.Spec.Template.Spec.EvictionInterceptors = append(rs.Spec.Template.Spec.EvictionInterceptors, v1.EvictionInterceptor{Name: fmt.Sprintf("i%d.example.com", i)})
	}
	control := interceptedPodControl{
		PodControlInterface: &recordingPodControl{}, deploymentLister: deploymentLister(t, deployment), creator: evictioninterceptor.NewCreator(clock.RealClock{}), recorder: events,
	}
	if err := control.CreatePods(t.Context(), metav1.NamespaceDefault, &rs.Spec.Template, rs, &metav1.OwnerReference{UID: "rs"}); err != nil {
		t.Fatal(err)
	}
	const want = "Warning EvictionInterceptorsLeftOut Pods of ReplicaSet web-1 are created without deployment.apps.k8s.io and replicaset.apps.k8s.io, and are neither replaced before " +
		"their eviction nor evicted one after another: the pod template names 14 interceptors, and a pod has at most 15"
	select {
	case got := <-events.Events:
		if got != want {
			t.Errorf("got event %q, want %q", got, want)
		}
	default:
		t.Error("no event")
	}
}
