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

package app

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance"
	"k8s.io/kubernetes/pkg/features"
)

// TestUnservedInterceptors verifies what drains say about DaemonSet pods that nobody stops, and that only who may
// lack permissions is watched.
func TestUnservedInterceptors(t *testing.T) {
	for name, test := range map[string]struct {
		gates       []featuregate.Feature
		controllers []string
		want        nodemaintenance.Absence
		watches     bool
	}{
		"base gates": {
			gates: []featuregate.Feature{features.EvictionRequestAPI, features.DeclarativeNodeMaintenance}, controllers: []string{"*"},
			want: nodemaintenance.Absence{Why: "feature gate NodeMaintenanceAwareDaemonSet of the kube-controller-manager is off"},
		},
		"disabled": {
			gates: allGates, controllers: []string{"*", "-daemonset-controller"},
			want: nodemaintenance.Absence{Why: "daemonset-controller is disabled by --controllers of the kube-controller-manager", MaybeElsewhere: true},
		},
		"all on": {gates: allGates, controllers: []string{"*"}, watches: true},
	} {
		t.Run(name, func(t *testing.T) {
			setGates(t, test.gates...)
			controllerContext, builder := withClients(asTheyAre)
			controllerContext.ComponentConfig.Generic.Controllers = test.controllers
			absences, _, err := unservedInterceptors(controllerContext, fake.NewClientset())
			if err != nil {
				t.Fatal(err)
			}
			got, _ := absences.Get(coordinationv1alpha1.EvictionInterceptorDaemonSet)
			if watches := slices.Contains(builder.names, "daemon-set-controller"); got != test.want || watches != test.watches {
				t.Errorf("absent: %+v, watched: %t, want %+v, %t", got, watches, test.want, test.watches)
			}
		})
	}
}

// TestWatchDaemonSets verifies that DaemonSet pods stay while kube-apiserver lacks the gate, and not for a denial
// of a moment.
func TestWatchDaemonSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, allowed := fake.NewClientset(), atomic.Bool{}
		client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
			review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
			review.Status.Allowed = allowed.Load()
			return true, review, nil
		})
		absences := nodemaintenance.NewAbsences(nil)
		ctx, stop := context.WithCancel(t.Context())
		wait := watchDaemonSets(absences, client).start(ctx)
		expect := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got, _ := absences.Get(coordinationv1alpha1.EvictionInterceptorDaemonSet); got.Why != want {
				t.Errorf("%s: %q, want %q", when, got.Why, want)
			}
		}
		time.Sleep(permissionChecks*permissionCheckInterval - 2*permissionCheckInterval)
		expect("denied for a moment", "")
		time.Sleep(2 * permissionCheckInterval)
		expect("denied", "feature gate NodeMaintenanceAwareDaemonSet of the kube-apiserver is off")
		allowed.Store(true)
		time.Sleep(permissionCheckInterval)
		expect("allowed", "")
		stop()
		wait()
	})
}

// TestWatchKubelets verifies that static pods stay while kube-apiserver lacks the gate, and that it is asked only if
// a kubelet declares that it stops them.
func TestWatchKubelets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, allowed, lock, asked := fake.NewClientset(), atomic.Bool{}, sync.Mutex{}, []authorizationv1.SubjectAccessReviewSpec(nil)
		client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
			lock.Lock()
			defer lock.Unlock()
			review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
			asked = append(asked, review.Spec)
			review.Status.Allowed = allowed.Load()
			return true, review, nil
		})
		nodes := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes()
		add := func(name string, declared ...string) {
			t.Helper()
			if err := nodes.Informer().GetStore().Add(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{DeclaredFeatures: declared}}); err != nil {
				t.Fatal(err)
			}
		}
		add("n1")
		absences := nodemaintenance.NewAbsences(nil)
		ctx, stop := context.WithCancel(t.Context())
		wait := watchKubelets(absences, client, nodes.Lister()).start(ctx)
		expect := func(when, want string, reviews int) {
			t.Helper()
			synctest.Wait()
			lock.Lock()
			defer lock.Unlock()
			if got, _ := absences.Get(coordinationv1alpha1.EvictionInterceptorKubelet); got.Why != want || len(asked) != reviews {
				t.Errorf("%s: %q after %d reviews, want %q after %d", when, got.Why, len(asked), want, reviews)
			}
		}
		time.Sleep(time.Hour + time.Second)
		expect("nobody declares the feature", "", 0)
		add("n2", maintenance.KubeletFeature)
		time.Sleep((permissionChecks - 1) * permissionCheckInterval)
		expect("denied for a moment", "", permissionChecks-1)
		time.Sleep(permissionCheckInterval)
		expect("denied", "feature gate NodeMaintenanceAwareKubelet of the kube-apiserver is off", permissionChecks)
		allowed.Store(true)
		time.Sleep(permissionCheckInterval)
		expect("allowed", "", permissionChecks+1)
		time.Sleep(time.Hour)
		expect("it is not asked again", "", permissionChecks+1)
		stop()
		wait()
		want := authorizationv1.SubjectAccessReviewSpec{
			User: "system:node:n2", Groups: []string{"system:nodes", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "intercept", Group: "coordination.k8s.io", Resource: "evictioninterceptors", Name: "kubelet.k8s.io"},
		}
		if len(asked) > 0 && !reflect.DeepEqual(asked[0], want) {
			t.Errorf("asked %+v, want %+v", asked[0], want)
		}
	})
}
