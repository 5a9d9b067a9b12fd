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

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubernetes/hack/controlplane"
)

// reconnectInterval is the pause after a watch has ended. It must be much shorter than
// the start of a controller manager: nobody kills pods meanwhile.
const reconnectInterval = 50 * time.Millisecond

// availability looks at every change of the pods of a namespace, through restarts of the
// API server, and remembers each time that there were too few or too many.
type availability struct {
	namespace *controlplane.Namespace

	lock sync.Mutex
	// pods are those that nobody has told to go.
	pods map[types.UID]*v1.Pod
	// bounds are those of each app.
	bounds map[string]bounds
	seen   []error
}

// bounds say how many pods of an app must serve, and how many there may be.
type bounds struct{ least, most int }

// unbounded is for what is not looked at.
var unbounded = bounds{0, math.MaxInt}

func watchAvailability(ctx context.Context, namespace *controlplane.Namespace) *availability {
	a := &availability{namespace: namespace, pods: map[types.UID]*v1.Pod{}, bounds: map[string]bounds{}}
	go func() {
		for ctx.Err() == nil {
			_ = a.follow(ctx) // The API server is restarted all the time.
			select {
			case <-ctx.Done():
			case <-time.After(reconnectInterval):
			}
		}
	}()
	return a
}

// follow reads the pods and their changes until the watch ends.
func (a *availability) follow(ctx context.Context) error {
	pods := a.namespace.Client.CoreV1().Pods(a.namespace.Name)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	a.replace(list.Items)
	changes, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		pod, ok := event.Object.(*v1.Pod)
		if !ok {
			return fmt.Errorf("watching pods: %v", event.Object)
		}
		a.observe(pod, event.Type == watch.Deleted)
	}
	return nil
}

func (a *availability) replace(pods []v1.Pod) {
	a.lock.Lock()
	defer a.lock.Unlock()
	clear(a.pods)
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			a.pods[pods[i].UID] = &pods[i]
		}
	}
	for app := range a.bounds {
		a.check(app)
	}
}

func (a *availability) observe(pod *v1.Pod, deleted bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if deleted || pod.DeletionTimestamp != nil {
		delete(a.pods, pod.UID)
	} else {
		a.pods[pod.UID] = pod
	}
	a.check(appOf(pod))
}

// check needs the lock.
func (a *availability) check(app string) {
	want, ok := a.bounds[app]
	if !ok {
		return
	}
	living, serving := 0, 0
	for _, pod := range a.pods {
		if appOf(pod) != app {
			continue
		}
		living++
		if serves(pod) {
			serving++
		}
	}
	if serving < want.least || living > want.most {
		a.seen = append(a.seen, fmt.Errorf("%s: Deployment %s had %d pods, %d of them serving, must have %d at most and %d serving at least",
			time.Now().Format(time.TimeOnly), app, living, serving, want.most, want.least))
	}
}

// require sets the bounds of an app, which must be true now.
func (a *availability) require(app string, want bounds) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.bounds[app] = want
}

// err returns what was seen out of bounds.
func (a *availability) err() error {
	a.lock.Lock()
	defer a.lock.Unlock()
	return errors.Join(a.seen...)
}

// serves tells whether a pod is ready and nobody has told it to go.
func serves(pod *v1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodReady {
			return condition.Status == v1.ConditionTrue
		}
	}
	return false
}

// appOf returns the name of the workload of a pod.
func appOf(pod *v1.Pod) string { return pod.Labels["app"] }
