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

package evictionrequest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
)

// maxSharedLabels is how many sets of labels a transform remembers. A drain has as many as there are workloads with pods
// on its nodes.
const maxSharedLabels = 4096

// ShareMemory returns a transform for an informer of EvictionRequests. It drops managedFields, and lets requests share
// what many of them have in common: their labels, which are those of the pods of one template, and names and reasons.
// That is a third of the memory that a request takes.
//
// Set it before the informer starts. It takes the place of a transform of the factory. Other objects are not changed.
func ShareMemory() cache.TransformFunc {
	shared := newSharedLabels()
	return func(obj any) (any, error) {
		if request, isRequest := obj.(*coordinationv1alpha1.EvictionRequest); isRequest {
			shared.share(request)
		}
		return obj, nil
	}
}

// sharedLabels has the labels that requests share.
type sharedLabels struct {
	lock sync.Mutex
	sets *lru.Cache
}

func newSharedLabels() *sharedLabels { return &sharedLabels{sets: lru.New(maxSharedLabels)} }

func (s *sharedLabels) share(request *coordinationv1alpha1.EvictionRequest) {
	request.ManagedFields = nil
	request.Labels = s.labels(request.Labels)
	share(&request.Kind, &request.APIVersion, &request.Namespace)
	if target := request.Spec.Target.Pod; target != nil && target.UID == request.Name {
		target.UID = request.Name
	}
	for i := range request.Spec.Requesters {
		share(&request.Spec.Requesters[i].Name)
	}
	status := &request.Status
	for i := range status.TargetInterceptors {
		share(&status.TargetInterceptors[i].Name)
	}
	for _, names := range [][]string{status.ActiveInterceptors, status.ProcessedInterceptors} {
		for i := range names {
			share(&names[i])
		}
	}
	for i := range status.Interceptors {
		entry := &status.Interceptors[i]
		shareTimes(&status.ActivationTime, &entry.StartTime, &entry.HeartbeatTime, &entry.CompletionTime)
		if share(&entry.Name); entry.Retries > 0 {
			share(&entry.Message) // All requests that wait for a budget have the same one.
		}
	}
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		share(&condition.Type, (*string)(&condition.Status), &condition.Reason)
		if condition.Type == string(coordinationv1alpha1.EvictionRequestConditionBlocked) {
			share(&condition.Message)
		}
	}
}

// share replaces texts by the ones that all others with the same content have. They are freed with the last of these.
func share(texts ...*string) {
	for _, text := range texts {
		if *text != "" {
			*text = unique.Make(*text).Value()
		}
	}
}

// shareTimes has equal times of a request be the same: what takes less than a second begins and ends at the same time.
func shareTimes(times ...**metav1.Time) {
	for i, later := range times {
		for _, earlier := range times[:i] {
			if *later != nil && (*later).Equal(*earlier) {
				*later = *earlier
			}
		}
	}
}

// labels returns the map that all requests with these labels share.
func (s *sharedLabels) labels(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&key, "%q=%q,", name, labels[name])
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if known, found := s.sets.Get(key.String()); found {
		return known.(map[string]string)
	}
	s.sets.Add(key.String(), labels)
	return labels
}
