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
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// refusalMemory is for how long pods of one owner are not tried twice, after one was refused
// with and without interceptors. A full quota would otherwise cost twice the calls.
const refusalMemory = time.Minute

// Creator creates pods that name controllers as their interceptors, and pods without where
// the API server takes them only so: admission plugins may add to a pod what does not go
// together with the names, or refuse the names. A pod that can be created matters more than
// one that is intercepted.
type Creator struct {
	clock clock.PassiveClock

	lock sync.Mutex
	// refused is until when the pods of an owner are not tried without the names, by its UID.
	refused map[types.UID]time.Time
}

// NewCreator returns a Creator.
func NewCreator(clock clock.PassiveClock) *Creator {
	return &Creator{clock: clock, refused: map[types.UID]time.Time{}}
}

// Create calls create with a copy of the template that has these names, as by AddTo, and with
// the template itself where the names cannot be added, or the first call is refused as Invalid
// or Forbidden. So quotas and policies refuse as well, whatever a pod is called: then the
// second call fails, too, and the error of the first is returned. The owner is the UID of the
// object that the pods are for.
func (c *Creator) Create(owner types.UID, template *v1.PodTemplateSpec, create func(*v1.PodTemplateSpec) error, names ...string) error {
	intercepted := *template
	if !AddTo(&intercepted, names...) {
		return create(template)
	}
	err := create(&intercepted)
	added := len(intercepted.Spec.EvictionInterceptors) > len(template.Spec.EvictionInterceptors)
	if !added || !mayBeForNames(err) || c.isRefused(owner) {
		return err
	}
	if create(template) != nil {
		c.remember(owner)
		return err
	}
	return nil
}

// mayBeForNames reports whether a pod may have been refused for the interceptors that it names.
func mayBeForNames(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause)
}

func (c *Creator) isRefused(owner types.UID) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.clock.Now().Before(c.refused[owner])
}

func (c *Creator) remember(owner types.UID) {
	c.lock.Lock()
	defer c.lock.Unlock()
	now := c.clock.Now()
	for other, until := range c.refused {
		if !now.Before(until) {
			delete(c.refused, other)
		}
	}
	c.refused[owner] = now.Add(refusalMemory)
}
