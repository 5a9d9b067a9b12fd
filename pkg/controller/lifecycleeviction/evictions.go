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

package lifecycleeviction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// evict returns the Eviction of the pod: the current one, or a new one after one that has failed; nil if there is none. It
// also returns when to write what is not written yet.
func (c *Controller) evict(ctx context.Context, t *target, current *lifecyclev1alpha1.Eviction, end outcome) (*lifecyclev1alpha1.Eviction, time.Duration, error) {
	// One that nobody wants any more is about to be canceled.
	goesOn := t.request != nil && len(t.request.Spec.Requesters) > 0 && !end.isFinal()
	var known []lifecyclev1alpha1.Requester
	if current != nil {
		known = current.Status.Requesters
	}
	requesters := requestersOf(known, t.wanted, t.request)
	labels, owners := labelsOf(presentOf(requesters, t.requests, t.request), t.pod), ownersOf(t.requests, t.wanted, t.request)
	isNew := current == nil || hasFailed(current) && goesOn
	if t.pod == nil && !isNew {
		labels = nil // Nobody knows any more who the responders are.
	}
	switch {
	case current == nil && (t.request == nil || len(t.wanted) == 0 && !(goesOn && t.hasResponders())):
		return nil, 0, nil
	case !isNew && len(formerLabels(current, labels)) == 0 && !needsLabels(current, labels, owners):
		return current, 0, nil
	}
	if wait := c.mayWrite(c.restored, t.key, t.now); wait > 0 {
		t.owed = true
		return current, wait, nil
	}
	var err error
	if isNew {
		current, err = c.create(ctx, t, labels, owners)
	} else {
		current, err = c.relabel(ctx, t, current, labels, owners)
	}
	return current, 0, err
}

// maxNamesTried is how many names of Evictions are tried, if others have made ones for other pods with these names, before
// one is generated. A number above maxNumber is not ours.
const maxNamesTried, maxNumber = 10, 1000000

// create creates the next Eviction of the pod.
func (c *Controller) create(ctx context.Context, t *target, labels map[string]string, owners []metav1.OwnerReference) (*lifecyclev1alpha1.Eviction, error) {
	// Also those of other pods that had the name.
	sameName, err := c.evictions.ByIndex(nameIndex, t.namespace+"/"+t.name)
	if err != nil {
		return nil, err
	}
	number := 1
	for _, obj := range sameName {
		number = max(number, numberOf(obj.(*lifecyclev1alpha1.Eviction))+1)
	}
	evictions := c.client.LifecycleV1alpha1().Evictions(t.namespace)
	for last := number + maxNamesTried; ; number++ {
		eviction := &lifecyclev1alpha1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: nameOf(number, t.name), Labels: labels, OwnerReferences: owners},
			Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: t.name, UID: t.uid}}},
		}
		if number == last {
			eviction.Name, eviction.GenerateName = "", nameOf(number, t.name)+"-"
		}
		created, err := evictions.Create(ctx, eviction, metav1.CreateOptions{FieldManager: fieldManager})
		switch {
		case err == nil:
			c.wrote(t, evictionResource, created)
			return created, nil
		case !apierrors.IsAlreadyExists(err) || number == last:
			return nil, fmt.Errorf("creating the Eviction of pod %s: %w", t.name, err)
		}
		existing, readErr := evictions.Get(ctx, eviction.Name, metav1.GetOptions{})
		if readErr != nil {
			return nil, err
		}
		_, isKnown, cacheErr := c.evictions.GetByKey(t.namespace + "/" + eviction.Name)
		if pod := existing.Spec.Target.Pod; pod != nil && pod.UID == t.uid && pod.Name == t.name && !isKnown {
			return nil, errors.Join(err, cacheErr) // The cache is behind. One that it has, somebody has given a number that does not count.
		}
	}
}

// nameOf returns the name of an Eviction, which only informs: it may not be longer than that of a pod.
func nameOf(number int, pod string) string {
	name := fmt.Sprintf("pod-%d-%s", number, pod)
	return strings.TrimRight(name[:min(len(name), validation.DNS1123SubdomainMaxLength)], "-.")
}

// numberOf returns the number in the name of an Eviction, pod-NUMBER-NAME; zero if it has none.
func numberOf(eviction *lifecyclev1alpha1.Eviction) int {
	digits, _, _ := strings.Cut(strings.TrimPrefix(eviction.Name, "pod-"), "-")
	number, err := strconv.Atoi(digits)
	if err != nil || number < 0 || number > maxNumber {
		return 0
	}
	return number
}

// needsLabels reports whether the labels and owners of an Eviction do not say who takes part.
func needsLabels(eviction *lifecyclev1alpha1.Eviction, labels map[string]string, owners []metav1.OwnerReference) bool {
	for key, value := range labels {
		if eviction.Labels[key] != value {
			return true
		}
	}
	return slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return !isOwnedBy(eviction, owner.UID) })
}

// formerLabels returns the labels of requesters of the Eviction that have no EvictionRequest any more. labels are those that
// it is to have; nil if nobody knows.
func formerLabels(eviction *lifecyclev1alpha1.Eviction, labels map[string]string) []string {
	var former []string
	for _, requester := range eviction.Status.Requesters {
		_, stays := labels[requester.Name]
		if labels != nil && !stays && eviction.Labels[requester.Name] == string(lifecyclev1alpha1.EvictionParticipantRoleRequester) {
			former = append(former, requester.Name)
		}
	}
	return former
}

// refuse says of Evictions that others have made by hand, beside the one that shows the request, that they are invalid.
func (c *Controller) refuse(ctx context.Context, t *target, current *lifecyclev1alpha1.Eviction) error {
	var errs []error
	for _, eviction := range t.foreignEvictions(current) {
		why := "Active Eviction already exists for the same target."
		if eviction.Spec.Target.Pod.Name != t.name {
			why = fmt.Sprintf("The UID %s is not that of pod %s.", t.uid, eviction.Spec.Target.Pod.Name)
		}
		changed := eviction.DeepCopy()
		changed.Status.ObservedGeneration = ptr.To(eviction.Generation)
		if active := activeOf(&changed.Status); active != nil {
			active.State = lifecyclev1alpha1.ResponderStateCanceled
		}
		setOutcome(&changed.Status.Conditions, failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, why), eviction.Generation, t.now)
		updated, err := c.client.LifecycleV1alpha1().Evictions(t.namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager})
		if err != nil {
			errs = append(errs, fmt.Errorf("refusing Eviction %s: %w", eviction.Name, err))
			continue
		}
		c.wrote(t, evictionResource, updated)
	}
	return errors.Join(errs...)
}

func isOwnedBy(eviction *lifecyclev1alpha1.Eviction, owner types.UID) bool {
	return slices.ContainsFunc(eviction.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner })
}

// relabel has the labels and owners of an Eviction say who takes part. Others that somebody has set stay.
func (c *Controller) relabel(ctx context.Context, t *target, eviction *lifecyclev1alpha1.Eviction, labels map[string]string, owners []metav1.OwnerReference) (*lifecyclev1alpha1.Eviction, error) {
	changed := eviction.DeepCopy()
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	maps.Copy(changed.Labels, labels)
	for _, name := range formerLabels(eviction, labels) {
		delete(changed.Labels, name)
	}
	for _, owner := range owners {
		if !isOwnedBy(changed, owner.UID) {
			changed.OwnerReferences = append(changed.OwnerReferences, owner)
		}
	}
	updated, err := c.client.LifecycleV1alpha1().Evictions(eviction.Namespace).Update(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, fmt.Errorf("writing the labels of Eviction %s: %w", eviction.Name, err)
	}
	c.wrote(t, evictionResource, updated)
	return updated, nil
}
