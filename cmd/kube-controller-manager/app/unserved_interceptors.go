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
	"fmt"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance"
	"k8s.io/kubernetes/pkg/features"
)

// unservedInterceptors returns the interceptors that nobody runs and that have no stand-in, with the reason: drains
// leave their pods. watch keeps them up to date while kube-apiserver may lack the gate; otherwise it is nil.
func unservedInterceptors(controllerContext ControllerContext) (absences *nodemaintenance.Absences, watch runInterceptor, err error) {
	const name, gate = coordinationv1alpha1.EvictionInterceptorDaemonSet, features.NodeMaintenanceAwareDaemonSet
	absent := func(absence nodemaintenance.Absence) *nodemaintenance.Absences {
		return nodemaintenance.NewAbsences(map[string]nodemaintenance.Absence{name: absence})
	}
	switch {
	case !utilfeature.DefaultFeatureGate.Enabled(gate):
		return absent(nodemaintenance.Absence{Why: fmt.Sprintf("feature gate %s of the kube-controller-manager is off", gate)}), nil, nil
	case !controllerContext.IsControllerEnabled(NewControllerDescriptors()[names.DaemonSetController]):
		why := fmt.Sprintf("%s is disabled by --controllers of the kube-controller-manager", names.DaemonSetController)
		return absent(nodemaintenance.Absence{Why: why, MaybeElsewhere: true}), nil, nil
	}
	own, err := newEvictionClient(controllerContext, "daemon-set-controller")
	if err != nil {
		return nil, nil, err
	}
	absences = nodemaintenance.NewAbsences(nil)
	return absences, watchPermission(absences, own), nil
}

// watchPermission records the absence of the DaemonSet controller while the API server denies its client to report.
func watchPermission(absences *nodemaintenance.Absences, client kubernetes.Interface) runInterceptor {
	const name = coordinationv1alpha1.EvictionInterceptorDaemonSet
	return func(ctx context.Context) {
		if untilAllowed(ctx, client, name, func() {
			absences.Set(name, nodemaintenance.Absence{Why: fmt.Sprintf("feature gate %s of the kube-apiserver is off", features.NodeMaintenanceAwareDaemonSet)})
		}) {
			absences.Clear(name)
		}
	}
}
