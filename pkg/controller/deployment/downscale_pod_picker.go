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
package deployment

import (
	"context"
	"slices"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
)

// eventPickerNotPassed: a ReplicaSet did not get the downscale pod picker of the Deployment.
const eventPickerNotPassed = "PodPickerNotPassed"

// passRetry is how soon it is tried again. The rest of the sync succeeds, so nothing else may lead to
// another one for hours, and the failure may have been that of a moment.
const passRetry = time.Minute

// prepareReplicaSets surges for evictions, and passes the downscale pod picker to the ReplicaSets. It
// returns what the rest of the sync works with.
func (dc *DeploymentController) prepareReplicaSets(ctx context.Context, d *apps.Deployment, rsList []*apps.ReplicaSet, podMap map[types.UID][]*v1.Pod) ([]*apps.ReplicaSet, error) {
	rsList, err := dc.surgeForEvictions(ctx, d, rsList, podMap)
	if err != nil || d.DeletionTimestamp != nil || !utilfeature.DefaultFeatureGate.Enabled(features.DownscalePodPicker) {
		return rsList, err
	}
	return dc.passPodPicker(ctx, d, rsList)
}

// passPodPicker gives all ReplicaSets, old ones too, the picker of the Deployment. This is no rollout.
// A write that fails does not keep the Deployment from its work, unless the ReplicaSet has changed.
func (dc *DeploymentController) passPodPicker(ctx context.Context, d *apps.Deployment, rsList []*apps.ReplicaSet) ([]*apps.ReplicaSet, error) {
	passed := slices.Clone(rsList)
	for i, rs := range rsList {
		if rs.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(rs.Spec.DownscalePodPicker, d.Spec.DownscalePodPicker) {
			continue
		}
		updated := rs.DeepCopy()
		updated.Spec.DownscalePodPicker = d.Spec.DownscalePodPicker.DeepCopy()
		updated, err := dc.writeReplicaSet(ctx, updated)
		switch {
		case err == nil:
			passed[i] = updated
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			return nil, err
		default:
			klog.FromContext(ctx).Error(err, "A ReplicaSet did not get the downscale pod picker", "replicaSet", klog.KObj(rs))
			dc.eventRecorder.Eventf(d, v1.EventTypeWarning, eventPickerNotPassed, "ReplicaSet %s did not get the downscale pod picker: %v", rs.Name, err)
			dc.enqueueAfter(d, passRetry)
		}
	}
	return passed, nil
}
