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
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/featuregate"
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
			controllerContext, _ := withClients(asTheyAre)
			controllerContext.ComponentConfig.Generic.Controllers = test.controllers
			absences, watch, err := unservedInterceptors(controllerContext)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := absences.Get(coordinationv1alpha1.EvictionInterceptorDaemonSet)
			if got != test.want || (watch != nil) != test.watches {
				t.Errorf("absent: %+v, watched: %t, want %+v, %t", got, watch != nil, test.want, test.watches)
			}
		})
	}
}

// TestWatchPermission verifies that DaemonSet pods stay while kube-apiserver lacks the gate, and not for a denial
// of a moment.
func TestWatchPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, allowed := fake.NewClientset(), false
		client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
			review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
			review.Status.Allowed = allowed
			return true, review, nil
		})
		absences := nodemaintenance.NewAbsences(nil)
		ctx, stop := context.WithCancel(t.Context())
		wait := watchPermission(absences, client).start(ctx)
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
		allowed = true
		time.Sleep(permissionCheckInterval)
		expect("allowed", "")
		stop()
		wait()
	})
}
