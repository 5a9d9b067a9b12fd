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
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/util/revertpace"
	"k8s.io/kubernetes/pkg/features"
)

// eventPickerNotPassed: a ReplicaSet did not get the downscale pod picker of the Deployment.
const eventPickerNotPassed = "PodPickerNotPassed"

// passRetry is how soon it is tried again. The rest of the sync succeeds, so nothing else may lead to
// another one for hours, and the failure may have been that of a moment.
const passRetry = time.Minute

// prepareReplicaSets surges for evictions, and passes the downscale pod picker to the ReplicaSets. It
// returns what the rest of the sync works with.
func (dc *DeploymentController) prepareReplicaSets(ctx context.Context, d *apps.Deployment, rsList []*apps.ReplicaSet) ([]*apps.ReplicaSet, error) {
	rsList, err := dc.surgeForEvictions(ctx, d, rsList)
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
		if rs.DeletionTimestamp != nil || hasPickerOf(d, rs) || dc.pickerDrops.isRecent(rs.UID) {
			continue
		}
		if wait := dc.pickerDrops.wait(d, rs.UID); wait > 0 {
			dc.enqueueAfter(d, wait)
			continue
		}
		updated := rs.DeepCopy()
		updated.Spec.DownscalePodPicker = d.Spec.DownscalePodPicker.DeepCopy()
		updated, err := dc.writeReplicaSet(ctx, updated)
		switch {
		case err == nil && !hasPickerOf(d, updated):
			passed[i] = updated
			dc.pickerDrops.note(rs.UID)
			dc.reportNotPassed(ctx, d, rs, errDropped)
		case err == nil:
			passed[i] = updated
			if dc.pickerDrops.notePassed(d, rs.UID) {
				dc.reportNotPassed(ctx, d, rs, errReverted)
			}
		case (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) && !dc.isUnchanged(ctx, rs):
			return nil, err
		default:
			dc.reportNotPassed(ctx, d, rs, err)
			dc.enqueueAfter(d, passRetry)
		}
	}
	return passed, nil
}

func hasPickerOf(d *apps.Deployment, rs *apps.ReplicaSet) bool {
	return apiequality.Semantic.DeepEqual(rs.Spec.DownscalePodPicker, d.Spec.DownscalePodPicker)
}

// isUnchanged reports whether the ReplicaSet is still as it was read. If a write failed because of a
// conflict, or because something was not found, a webhook has said so then, and says it again.
func (dc *DeploymentController) isUnchanged(ctx context.Context, rs *apps.ReplicaSet) bool {
	live, err := dc.client.AppsV1().ReplicaSets(rs.Namespace).Get(ctx, rs.Name, metav1.GetOptions{})
	return err == nil && live.UID == rs.UID && live.ResourceVersion == rs.ResourceVersion
}

func (dc *DeploymentController) reportNotPassed(ctx context.Context, d *apps.Deployment, rs *apps.ReplicaSet, err error) {
	klog.FromContext(ctx).Error(err, "A ReplicaSet did not get the downscale pod picker", "replicaSet", klog.KObj(rs))
	dc.eventRecorder.Eventf(d, v1.EventTypeWarning, eventPickerNotPassed, "ReplicaSet %s did not get the downscale pod picker: %v", rs.Name, err)
}

// errDropped is why a ReplicaSet does not have the picker that was written.
var errDropped = errors.New("kube-apiserver has not stored it: its feature gate DownscalePodPicker is off, or a webhook changes the field")

// errReverted is why a ReplicaSet did not keep the picker that was written.
var errReverted = errors.New("another client keeps changing it in the ReplicaSet; it is passed again ever more slowly, at most once a minute")

// pickerDrops are the ReplicaSets whose picker kube-apiserver has not stored, so that not each sync of a
// Deployment writes it in vain. The next sync after passRetry tries it again: there is one before each
// scale-down, so none is queued. The zero value is empty.
type pickerDrops struct {
	lock sync.Mutex
	at   map[types.UID]time.Time
	// passed are the pickers that ReplicaSets have got, and when they got them again because another client had changed
	// the field.
	passed map[types.UID]*passedPicker
}

type passedPicker struct {
	picker *v1.DownscalePodPicker
	at     revertpace.Attempts
}

// wait returns the delay before a ReplicaSet may get the picker of its Deployment again.
func (p *pickerDrops) wait(d *apps.Deployment, rs types.UID) time.Duration {
	p.lock.Lock()
	defer p.lock.Unlock()
	if found := p.passed[rs]; found != nil && apiequality.Semantic.DeepEqual(found.picker, d.Spec.DownscalePodPicker) {
		return found.at.Wait(time.Now())
	}
	return 0
}

// notePassed records that a ReplicaSet has got the picker of its Deployment, and reports whether others change it again
// and again.
func (p *pickerDrops) notePassed(d *apps.Deployment, rs types.UID) (contested bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.passed, func(_ types.UID, found *passedPicker) bool { return found.at.IsOver(now) })
	if p.passed == nil {
		p.passed = map[types.UID]*passedPicker{}
	}
	found := p.passed[rs]
	if found == nil || !apiequality.Semantic.DeepEqual(found.picker, d.Spec.DownscalePodPicker) {
		found = &passedPicker{picker: d.Spec.DownscalePodPicker.DeepCopy()}
		p.passed[rs] = found
	}
	return revertpace.IsContest(found.at.Made(now))
}

func (p *pickerDrops) note(rs types.UID) {
	p.lock.Lock()
	defer p.lock.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.at, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= passRetry })
	if p.at == nil {
		p.at = map[types.UID]time.Time{}
	}
	p.at[rs] = now
}

func (p *pickerDrops) isRecent(rs types.UID) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	at, found := p.at[rs]
	return found && time.Since(at) < passRetry
}
