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

package evictioninterceptor

import (
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/utils/clock"
)

// refusalTTL is how long pods of an owner are not retried without interceptors after a pod was
// refused with and without them. Otherwise, a full quota would cost twice the calls.
const refusalTTL = time.Minute

// Creator creates pods that have controllers as interceptors, and creates them without interceptors
// if the API server refuses the names: admission plugins may change the pod so that it is invalid
// with the names, or may refuse the names. It is more important that a pod is created than that it
// is intercepted.
type Creator struct {
	clock clock.PassiveClock

	lock sync.Mutex
	// refused has, by the UID of the owner, until when its pods are not retried without the names.
	refused map[types.UID]time.Time
}

// NewCreator returns a Creator.
func NewCreator(clock clock.PassiveClock) *Creator {
	return &Creator{clock: clock, refused: map[types.UID]time.Time{}}
}

// Create calls create with a copy of the template that has these names, added by AddTo. It calls
// create with the template itself if the names cannot be added, or if the first call is refused as
// Invalid or Forbidden. Quotas and policies may refuse pods for reasons other than the names: then
// the second call fails as well, and the error of the first one is returned. owner is the UID of
// the owner of the pods.
//
// leftOut is called if the pod was created without the names although its owner may not know that, with the
// reason: nobody else would say it. It may be nil.
func (c *Creator) Create(owner types.UID, template *v1.PodTemplateSpec, create func(*v1.PodTemplateSpec) error, leftOut func(reason string), names ...string) error {
	intercepted := *template
	if !AddTo(&intercepted, names...) {
		err := create(template)
		if reason := whyNotAdded(template, names); err == nil && reason != "" && leftOut != nil {
			leftOut(reason)
		}
		return err
	}
	err := create(&intercepted)
	added := len(intercepted.Spec.EvictionInterceptors) > len(template.Spec.EvictionInterceptors)
	if !added || !mayBeCausedByNames(err) || c.isRefused(owner) {
		return err
	}
	if create(template) != nil {
		c.recordRefusal(owner)
		return err
	}
	if leftOut != nil {
		leftOut("the API server refuses them: " + plaintext.Truncate(plaintext.Line(err.Error()), maxRefusal))
	}
	return nil
}

// maxRefusal bounds what is repeated of an error of the API server, in bytes.
const maxRefusal = 512

// whyNotAdded returns why AddTo does not add the names, if the author of the pod can change that.
func whyNotAdded(template *v1.PodTemplateSpec, names []string) string {
	if count := CountOnPod(template.Spec.EvictionInterceptors, template.Annotations); count+len(names) > MaxOnPod {
		return fmt.Sprintf("the pod template names %d interceptors, and a pod has at most %d", count, MaxOnPod)
	}
	return ""
}

// mayBeCausedByNames reports whether a pod may have been refused because of its interceptors.
func mayBeCausedByNames(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause)
}

func (c *Creator) isRefused(owner types.UID) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.clock.Now().Before(c.refused[owner])
}

func (c *Creator) recordRefusal(owner types.UID) {
	c.lock.Lock()
	defer c.lock.Unlock()
	now := c.clock.Now()
	for other, until := range c.refused {
		if !now.Before(until) {
			delete(c.refused, other)
		}
	}
	c.refused[owner] = now.Add(refusalTTL)
}
