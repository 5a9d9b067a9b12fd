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

package evictionpacing

import (
	"context"
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
)

// UnknownRelease returns the name of a pod of a workload that was released without that this process knows it,
// or "": by another process, which has the turns now or had them until a moment ago. A process that was suspended goes
// on with an old cache, and does not know yet that it no longer leads. So the requests are read from the API server
// before a pod is released. Their labels are those of the pods, which the selector selects.
func UnknownRelease(ctx context.Context, client clientset.Interface, namespace string, selector *metav1.LabelSelector, isReleased, isKnown func(*coordinationv1alpha1.EvictionRequest) bool) (string, error) {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", fmt.Errorf("reading the selector: %w", err)
	}
	live, err := client.CoordinationV1alpha1().EvictionRequests(namespace).List(ctx, metav1.ListOptions{LabelSelector: compiled.String()})
	if err != nil {
		return "", fmt.Errorf("reading the eviction requests: %w", err)
	}
	for i := range live.Items {
		request := &live.Items[i]
		if request.Spec.Target.Pod != nil && isReleased(request) && !isKnown(request) {
			return request.Spec.Target.Pod.Name, nil
		}
	}
	return "", nil
}

// HasRecovered reports whether a pod that is broken in a cache is not: what the cache shows may have ended long
// ago. It reads the pod from the API server.
func HasRecovered(ctx context.Context, client clientset.Interface, name types.NamespacedName, uid types.UID, now time.Time) (bool, error) {
	pod, err := client.CoreV1().Pods(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading pod %s: %w", name, err)
	}
	return pod.UID == uid && !evictionturn.IsBroken(pod, now), nil
}
