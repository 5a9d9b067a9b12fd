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
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// newRequest returns a request for a pod of an application, which is released if the annotation says so.
func newRequest(pod, app, released string) *coordinationv1alpha1.EvictionRequest {
	return &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: pod + "-uid", Labels: map[string]string{"app": app}, Annotations: map[string]string{"released": released}},
		Spec:       coordinationv1alpha1.EvictionRequestSpec{Target: coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod, UID: pod + "-uid"}}},
	}
}

func isAnnotated(request *coordinationv1alpha1.EvictionRequest) bool {
	return request.Annotations["released"] == "yes"
}

func selectorOf(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// Pods that are released at the same time share a list. Each list begins after all who get its result have asked.
func TestLiveReleasesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(newRequest("a", "web", "no"), newRequest("b", "web", "yes"), newRequest("c", "db", "yes"))
		live := NewLiveReleases(client, isAnnotated)
		list, lists, release := live.list, 0, make(chan struct{})
		live.list = func(ctx context.Context, of workload) (*coordinationv1alpha1.EvictionRequestList, error) {
			lists++
			<-release
			return list(ctx, of)
		}
		var lock sync.Mutex
		answers := map[string]int{}
		var asking sync.WaitGroup
		ask := func(app, known string) {
			asking.Go(func() {
				name, err := live.Unknown(t.Context(), "ns", selectorOf(app), func(request *coordinationv1alpha1.EvictionRequest) bool {
					return request.Spec.Target.Pod.Name == known
				})
				lock.Lock()
				defer lock.Unlock()
				answers[fmt.Sprintf("%q, %v", name, err)]++
			})
		}
		ask("web", "")
		synctest.Wait()
		for range 500 {
			ask("web", "")
			ask("web", "b")
		}
		synctest.Wait()
		if lists != 1 {
			close(release)
			t.Fatalf("%d lists while one is under way, want no other one", lists)
		}
		release <- struct{}{}
		synctest.Wait()
		if len(answers) != 1 || answers[`"b", <nil>`] != 1 {
			t.Errorf("answers %v, want that of the first one only: the list was older than the others", answers)
		}
		release <- struct{}{}
		asking.Wait()
		if lists != 2 || answers[`"b", <nil>`] != 501 || answers[`"", <nil>`] != 500 {
			t.Errorf("%d lists and the answers %v", lists, answers)
		}
		close(release)
		ask("db", "")
		asking.Wait()
		if lists != 3 || answers[`"c", <nil>`] != 1 {
			t.Errorf("%d lists and the answers %v for another workload", lists, answers)
		}
		synctest.Wait() // The answers come before the reader ends.
		if len(live.next) > 0 {
			t.Errorf("%v is left", live.next)
		}
	})
}

// Who gives up takes no answer from others, and an error is that of all who share the list.
func TestLiveReleasesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		live := NewLiveReleases(nil, isAnnotated)
		live.list = func(context.Context, workload) (*coordinationv1alpha1.EvictionRequestList, error) {
			<-release
			return nil, errors.New("busy")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		var lock sync.Mutex
		errs := map[string]error{}
		var asking sync.WaitGroup
		for name, ctx := range map[string]context.Context{"canceled": ctx, "other": t.Context()} {
			asking.Go(func() {
				_, err := live.Unknown(ctx, "ns", selectorOf("web"), func(*coordinationv1alpha1.EvictionRequest) bool { return false })
				lock.Lock()
				defer lock.Unlock()
				errs[name] = err
			})
			synctest.Wait()
		}
		stopped := errors.New("stopped")
		cancel(stopped)
		synctest.Wait()
		close(release)
		asking.Wait()
		if !errors.Is(errs["canceled"], stopped) || errs["other"] == nil || errors.Is(errs["other"], stopped) {
			t.Errorf("got the errors %v", errs)
		}
	})
}
