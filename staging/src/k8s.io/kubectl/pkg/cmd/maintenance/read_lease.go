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

package maintenance

import (
	"context"
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// controllerLease is the lease in kube-system that kube-controller-manager renews every two seconds, by
// default, while it runs.
const controllerLease = "kube-controller-manager"

// defaultLeaseSeconds is for a lease without a duration. It is the default of kube-controller-manager.
const defaultLeaseSeconds = 15

// readSilence returns since when kube-controller-manager has not renewed its lease, if that is too long; nil if
// it runs. An error says that this is unknown: the user may not be allowed to read the lease, or there is none,
// because nothing elects a leader.
func readSilence(ctx context.Context, client kubernetes.Interface, now time.Time) (*metav1.Time, error) {
	lease, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, controllerLease, metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime == nil {
		return nil, err
	}
	renewed := lease.Spec.RenewTime.Time
	// Another instance takes over an expired lease within seconds. The clocks may differ.
	patience := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, defaultLeaseSeconds))*time.Second + controllerPatience
	if now.Sub(renewed) < patience {
		return nil, nil
	}
	return ptr.To(metav1.NewTime(renewed)), nil
}

// silenceText says that nothing goes on; empty if the controller runs, or if that is unknown. A drain looks as
// before if its controller dies.
func silenceText(since *metav1.Time, now time.Time) string {
	if since == nil {
		return ""
	}
	return fmt.Sprintf("kube-controller-manager has not renewed its lease for %s, so it may not run, and nothing goes on; %s", duration.HumanDuration(now.Sub(since.Time)), seeLease)
}

// needsController reports whether the controller has to act for the maintenance to go on.
func (v *view) needsController() bool {
	return v.Outcome == "" && (v.Stage != coordinationv1alpha1.NodeMaintenanceStageIdle || !v.observed) || v.Deleting
}
