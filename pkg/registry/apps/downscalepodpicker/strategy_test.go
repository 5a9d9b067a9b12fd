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

package downscalepodpicker_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
)

// Both kinds drop the picker while the gate is off, unless the stored object has one. A write of the
// status never changes it.
func TestStrategies(t *testing.T) {
	old, changed := &core.DownscalePodPicker{HTTP: &core.HTTPDownscalePodPicker{Host: "a"}}, &core.DownscalePodPicker{HTTP: &core.HTTPDownscalePodPicker{Host: "b"}}
	for kind, test := range map[string]struct {
		strategy interface {
			rest.RESTCreateStrategy
			rest.RESTUpdateStrategy
		}
		status rest.RESTUpdateStrategy
		object func(*core.DownscalePodPicker) runtime.Object
		picker func(runtime.Object) *core.DownscalePodPicker
	}{
		"Deployment": {
			strategy: deployment.Strategy, status: deployment.StatusStrategy,
			object: func(p *core.DownscalePodPicker) runtime.Object {
				return &apps.Deployment{Spec: apps.DeploymentSpec{DownscalePodPicker: p}}
			},
			picker: func(o runtime.Object) *core.DownscalePodPicker { return o.(*apps.Deployment).Spec.DownscalePodPicker },
		},
		"ReplicaSet": {
			strategy: replicaset.Strategy, status: replicaset.StatusStrategy,
			object: func(p *core.DownscalePodPicker) runtime.Object {
				return &apps.ReplicaSet{Spec: apps.ReplicaSetSpec{DownscalePodPicker: p}}
			},
			picker: func(o runtime.Object) *core.DownscalePodPicker { return o.(*apps.ReplicaSet).Spec.DownscalePodPicker },
		},
	} {
		for _, enabled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, gate %t", kind, enabled), func(t *testing.T) {
				featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.DownscalePodPicker, enabled)
				ctx, added := genericapirequest.NewDefaultContext(), (*core.DownscalePodPicker)(nil)
				if enabled {
					added = changed
				}
				created := test.object(changed)
				test.strategy.PrepareForCreate(ctx, created)
				if got := test.picker(created); got != added {
					t.Errorf("created with %+v", got)
				}
				for _, update := range []struct{ stored, written, want *core.DownscalePodPicker }{{nil, changed, added}, {old, changed, changed}, {old, nil, nil}} {
					written := test.object(update.written)
					test.strategy.PrepareForUpdate(ctx, written, test.object(update.stored))
					if got := test.picker(written); got != update.want {
						t.Errorf("%+v over %+v: stored %+v, want %+v", update.written, update.stored, got, update.want)
					}
					written = test.object(update.written)
					test.status.PrepareForUpdate(ctx, written, test.object(update.stored))
					if got := test.picker(written); got != update.stored {
						t.Errorf("the status changes %+v to %+v", update.stored, got)
					}
				}
			})
		}
	}
}
