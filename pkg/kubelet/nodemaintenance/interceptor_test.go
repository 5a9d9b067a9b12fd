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

package nodemaintenance

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
)

// onePod is the view of a kubelet with one static pod.
type onePod struct {
	mirror *v1.Pod
	gone   atomic.Bool
}

func (p *onePod) GetPodsAndMirrorPods() (pods, mirrors []*v1.Pod, orphans []string) {
	if p.gone.Load() {
		return nil, nil, nil
	}
	return nil, []*v1.Pod{p.mirror}, nil
}

func (p *onePod) GetPodByMirrorPod(*v1.Pod) (*v1.Pod, bool) { return p.mirror, !p.gone.Load() }

// The node may be unknown at the moment at which the interceptor becomes active.
func TestInterceptorWaitsForNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mirror := newMirrorPod("web")
		request := newActiveRequest(mirror)
		request.Status.ActiveInterceptors = nil
		client := fake.NewClientset(request)
		var node atomic.Pointer[v1.Node]
		node.Store(&v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{DrainTargets: allTargets}}})
		holds := loadHolds(t, t.TempDir())
		manager := NewManager(Config{
			Client: client, Holds: holds, Pods: &onePod{mirror: mirror}, Recorder: record.NewFakeRecorder(100), NodeRef: &v1.ObjectReference{},
			Node: func() (*v1.Node, error) {
				if node := node.Load(); node != nil {
					return node, nil
				}
				return nil, errors.New("not found")
			},
			HasContainers: func(types.UID) bool { return true },
			GetNode:       func(context.Context) (*v1.Node, error) { return &v1.Node{}, nil },
			Merge:         func(context.Context) {},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { manager.Run(ctx) })
		defer working.Wait()
		defer cancel()
		time.Sleep(5 * time.Second)

		known := node.Swap(nil)
		if _, err := client.CoordinationV1alpha1().EvictionRequests(testNamespace).UpdateStatus(ctx, newActiveRequest(mirror), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if state, _ := holds.observe(keyOf(mirror)); state != running {
			t.Errorf("state %s while the node is unknown, want %s", state, running)
		}
		got, err := client.CoordinationV1alpha1().EvictionRequests(testNamespace).Get(ctx, request.Name, metav1.GetOptions{})
		if err != nil || got.Status.Interceptors[0].StartTime != nil {
			t.Errorf("the turn has started while the node is unknown: %v, error %v", got, err)
		}
		node.Store(known)
		time.Sleep(20 * time.Second)
		if state, _ := holds.observe(keyOf(mirror)); state != stopping {
			t.Errorf("state %s, want %s", state, stopping)
		}
	})
}

// newActiveRequest returns a request whose active interceptor is the kubelet.
func newActiveRequest(mirror *v1.Pod) *coordinationv1alpha1.EvictionRequest {
	return &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: string(mirror.UID), UID: "request"},
		Spec:       coordinationv1alpha1.EvictionRequestSpec{Requesters: []coordinationv1alpha1.Requester{{Name: coordinationv1alpha1.NodeMaintenanceRequester}}},
		Status: coordinationv1alpha1.EvictionRequestStatus{
			ActiveInterceptors: []string{coordinationv1alpha1.EvictionInterceptorKubelet},
			Interceptors:       []coordinationv1alpha1.InterceptorStatus{{Name: coordinationv1alpha1.EvictionInterceptorKubelet}},
		},
	}
}

// The interceptor of the library, the manager and their goroutines together: the request says what
// happens to the pod, and completes when it has ended.
func TestInterceptorReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mirror := newMirrorPod("web")
		request := newActiveRequest(mirror)
		client := fake.NewClientset(request)
		requests := client.CoordinationV1alpha1().EvictionRequests(testNamespace)
		var node atomic.Pointer[v1.Node]
		node.Store(&v1.Node{})
		pods, holds := &onePod{mirror: mirror}, loadHolds(t, t.TempDir())
		manager := NewManager(Config{
			Client: client, Holds: holds, Pods: pods, Recorder: record.NewFakeRecorder(100), NodeRef: &v1.ObjectReference{},
			Node:          func() (*v1.Node, error) { return node.Load(), nil },
			HasContainers: func(types.UID) bool { return !pods.gone.Load() },
			GetNode:       func(context.Context) (*v1.Node, error) { return &v1.Node{}, nil },
			Merge:         func(context.Context) {},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { manager.Run(ctx) })
		defer working.Wait()
		defer cancel()

		expect := func(want state, message string, isComplete bool) {
			t.Helper()
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if got, _ := holds.observe(keyOf(mirror)); got != want {
				t.Errorf("state %s, want %s", got, want)
			}
			request, err := requests.Get(ctx, string(mirror.UID), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			entry := request.Status.Interceptors[0]
			if !strings.HasPrefix(entry.Message, message) || (entry.CompletionTime != nil) != isComplete {
				t.Errorf("the report is %v, want message %q, complete %v", entry, message, isComplete)
			}
		}
		expect(running, "", false)
		if n := len(client.Actions()); n != 1 {
			t.Errorf("%d requests without a maintenance, apart from those of the test: %v", n-1, client.Actions())
		}
		node.Store(&v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{DrainTargets: allTargets}}})
		expect(stopping, "Terminating the static pod for the maintenance of node node.", false)
		pods.gone.Store(true)
		expect(ended, "Terminated the static pod, which stays away", true)
		request, err := requests.Get(ctx, string(mirror.UID), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		request.Status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.EvictionRequestConditionEvicted), Status: metav1.ConditionTrue}}
		if _, err := requests.UpdateStatus(ctx, request, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect(held, "Terminated the static pod, which stays away", true)
	})
}

// A stop does not begin for a request that nobody wants any more, though the kubelet may not know that yet: it could not
// be undone, and the request says that the pod stays.
func TestWithdrawnRequestStopsNothing(t *testing.T) {
	noRequesters := func(r *coordinationv1alpha1.EvictionRequest) { r.Spec.Requesters = nil }
	for name, test := range map[string]struct {
		// before and waiting change the request before its turn, and while the pod waits for others.
		before, waiting func(*coordinationv1alpha1.EvictionRequest)
		// stale is whether the kubelet sees no change.
		stale     bool
		starts    bool
		wantState state
	}{
		"wanted":                    {starts: true, wantState: stopping},
		"withdrawn before the turn": {before: noRequesters, wantState: running},
		"withdrawn while it waits":  {waiting: noRequesters, starts: true, wantState: running},
		"withdrawn without notice":  {waiting: noRequesters, stale: true, starts: true, wantState: running},
		"canceled without notice": {waiting: func(r *coordinationv1alpha1.EvictionRequest) {
			r.Status.Conditions = []metav1.Condition{{Type: string(coordinationv1alpha1.EvictionRequestConditionCanceled), Status: metav1.ConditionTrue}}
		}, stale: true, starts: true, wantState: running},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mirror := newMirrorPod("web")
				request := newActiveRequest(mirror)
				if test.before != nil {
					test.before(request)
				}
				client := fake.NewClientset(request)
				if test.stale {
					client.PrependWatchReactor("evictionrequests", func(clienttesting.Action) (bool, watch.Interface, error) { return true, watch.NewFake(), nil })
				}
				var answers atomic.Bool
				holds := loadHolds(t, t.TempDir())
				manager := NewManager(Config{
					Client: client, Holds: holds, Pods: &onePod{mirror: mirror}, Recorder: record.NewFakeRecorder(100), NodeRef: &v1.ObjectReference{},
					Node: func() (*v1.Node, error) {
						return &v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{DrainTargets: allTargets}}}, nil
					},
					HasContainers: func(types.UID) bool { return true },
					GetNode: func(context.Context) (*v1.Node, error) {
						if !answers.Load() {
							return nil, errors.New("timeout")
						}
						return &v1.Node{}, nil
					},
					Merge: func(context.Context) {},
				})
				ctx, cancel := context.WithCancel(t.Context())
				var working sync.WaitGroup
				working.Go(func() { manager.Run(ctx) })
				defer working.Wait()
				defer cancel()
				time.Sleep(5 * time.Second)

				stored, err := client.CoordinationV1alpha1().EvictionRequests(testNamespace).Get(ctx, request.Name, metav1.GetOptions{})
				if err != nil || (stored.Status.Interceptors[0].StartTime != nil) != test.starts {
					t.Errorf("the request is %v, error %v, want that the turn has started: %t", stored, err, test.starts)
				}
				if test.waiting != nil {
					test.waiting(stored)
					if err := client.Tracker().Update(coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests"), stored, testNamespace); err != nil {
						t.Fatal(err)
					}
				}
				answers.Store(true)
				for range 60 {
					time.Sleep(time.Second)
					if state, _ := holds.observe(keyOf(mirror)); state != running && test.wantState == running {
						t.Fatalf("state %s, want %s", state, running)
					}
				}
				if state, _ := holds.observe(keyOf(mirror)); state != test.wantState {
					t.Errorf("state %s, want %s", state, test.wantState)
				}
			})
		})
	}
}
