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
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

var errForbidden = apierrors.NewForbidden(coordinationv1alpha1.Resource("evictionrequests"), "", nil)

// podsOfNode is the kubelet of a node on which static pods run, with the real interceptors and their
// goroutines. All times are those of synctest.
type podsOfNode struct {
	t       *testing.T
	client  *fake.Clientset
	manager *Manager

	lock sync.Mutex
	// node is nil while the node is unknown.
	node *v1.Node
	// mirrors, statics and containers are by the names of the pods.
	mirrors, statics map[string]*v1.Pod
	containers       map[string]bool
	// frozen is whether the API server does not answer to the manager.
	frozen bool
	// forbidden is whether requests cannot be read.
	forbidden bool
	watches   []*watch.RaceFreeFakeWatcher
}

// newPodsOfNode returns a kubelet with static pods, of which the first has the lowest priority. All
// have a request for which the kubelet is active.
func newPodsOfNode(t *testing.T, names ...string) *podsOfNode {
	n := &podsOfNode{t: t, client: fake.NewClientset(), mirrors: map[string]*v1.Pod{}, statics: map[string]*v1.Pod{}, containers: map[string]bool{}}
	for i, name := range names {
		mirror := newMirrorPod(name)
		mirror.Spec.Priority = ptr.To(int32(i))
		static := mirror.DeepCopy()
		static.UID, static.Annotations, static.Spec.Priority = types.UID(name), nil, nil
		n.mirrors[name], n.statics[name], n.containers[name] = mirror, static, true
		if err := n.client.Tracker().Add(newActiveRequest(mirror)); err != nil {
			t.Fatal(err)
		}
	}
	// The fake client ignores field selectors.
	n.client.PrependReactor("list", "evictionrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name, _ := action.(clienttesting.ListAction).GetListRestrictions().Fields.RequiresExactMatch(metav1.ObjectNameField)
		n.lock.Lock()
		defer n.lock.Unlock()
		if n.forbidden {
			return true, nil, errForbidden
		}
		list := &coordinationv1alpha1.EvictionRequestList{}
		if request, err := n.client.Tracker().Get(action.GetResource(), action.GetNamespace(), name); err == nil {
			list.Items = append(list.Items, *request.(*coordinationv1alpha1.EvictionRequest))
		}
		return true, list, nil
	})
	n.client.PrependWatchReactor("evictionrequests", func(action clienttesting.Action) (bool, watch.Interface, error) {
		name, _ := action.(clienttesting.WatchAction).GetWatchRestrictions().Fields.RequiresExactMatch(metav1.ObjectNameField)
		n.lock.Lock()
		defer n.lock.Unlock()
		if n.forbidden {
			return true, nil, errForbidden
		}
		w, err := n.client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		n.watches = append(n.watches, w.(*watch.RaceFreeFakeWatcher))
		return true, watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
			return event, event.Object.(*coordinationv1alpha1.EvictionRequest).Name == name
		}), err
	})
	holds := loadHolds(t, t.TempDir())
	n.manager = NewManager(Config{
		Client: n.client, Holds: holds, Pods: n, Recorder: record.NewFakeRecorder(1000), NodeRef: &v1.ObjectReference{},
		Node: func() (*v1.Node, error) {
			n.lock.Lock()
			defer n.lock.Unlock()
			if n.node == nil {
				return nil, errors.New("not found")
			}
			return n.node, nil
		},
		HasContainers: func(uid types.UID) bool {
			n.lock.Lock()
			defer n.lock.Unlock()
			return n.containers[string(uid)]
		},
		IsForgotten: func(types.UID) bool { return true },
		GetNode: func(context.Context) (*v1.Node, error) {
			n.lock.Lock()
			defer n.lock.Unlock()
			if n.frozen {
				return nil, errors.New("timeout")
			}
			return n.node, nil
		},
		Merge: func(context.Context) {},
	})
	n.drain(0)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { n.manager.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		working.Wait()
	})
	return n
}

// GetPodsAndMirrorPods implements Pods.
func (n *podsOfNode) GetPodsAndMirrorPods() (pods, mirrors []*v1.Pod, orphans []string) {
	n.lock.Lock()
	defer n.lock.Unlock()
	for _, mirror := range n.mirrors {
		mirrors = append(mirrors, mirror)
	}
	return nil, mirrors, nil
}

// GetPodByMirrorPod implements Pods.
func (n *podsOfNode) GetPodByMirrorPod(mirror *v1.Pod) (*v1.Pod, bool) {
	n.lock.Lock()
	defer n.lock.Unlock()
	static := n.statics[mirror.Name]
	return static, static != nil && !n.manager.Holds.Withheld(static)
}

// change changes what the kubelet sees, and waits for what follows.
func (n *podsOfNode) change(change func()) {
	n.t.Helper()
	n.lock.Lock()
	change()
	n.lock.Unlock()
	n.sleep(3)
}

func (n *podsOfNode) sleep(seconds int) {
	time.Sleep(time.Duration(seconds) * time.Second)
	synctest.Wait()
}

// drain publishes drain targets of all static pods, with this number of requests.
func (n *podsOfNode) drain(requests int32) {
	n.node = &v1.Node{Status: v1.NodeStatus{MaintenanceStatus: &v1.MaintenanceStatus{DrainTargets: allTargets, ActiveEvictionRequests: requests}}}
}

// end ends a pod, whose mirror pod the kubelet deletes.
func (n *podsOfNode) end(name string) {
	n.t.Helper()
	n.change(func() { n.containers[name] = false })
	n.change(func() { delete(n.mirrors, name) })
}

// finish is what controllers do with a request.
func (n *podsOfNode) finish(name string, condition coordinationv1alpha1.EvictionRequestConditionType) {
	n.t.Helper()
	request := n.request(name)
	request.Status.ActiveInterceptors = nil
	request.Status.Conditions = []metav1.Condition{{Type: string(condition), Status: metav1.ConditionTrue}}
	if _, err := n.client.CoordinationV1alpha1().EvictionRequests(testNamespace).UpdateStatus(n.t.Context(), request, metav1.UpdateOptions{}); err != nil {
		n.t.Fatal(err)
	}
	n.sleep(3)
}

func (n *podsOfNode) request(name string) *coordinationv1alpha1.EvictionRequest {
	n.t.Helper()
	request, err := n.client.CoordinationV1alpha1().EvictionRequests(testNamespace).Get(n.t.Context(), name+"-mirror", metav1.GetOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return request
}

// expect compares the state of a pod, and what its request says.
func (n *podsOfNode) expect(name string, want state, message string) {
	n.t.Helper()
	if got, _ := n.manager.Holds.observe(types.NamespacedName{Namespace: testNamespace, Name: name}); got != want {
		n.t.Errorf("%s is %s, want %s", name, got, want)
	}
	if entry := n.request(name).Status.Interceptors[0]; !strings.Contains(entry.Message, message) || message == "" && entry.Message != "" {
		n.t.Errorf("the message about %s is %q, want %q", name, entry.Message, message)
	} else if isComplete := entry.CompletionTime != nil; isComplete != strings.HasPrefix(message, "Terminated") {
		n.t.Errorf("the interceptor of %s is complete: %v", name, isComplete)
	}
}

// expectInterceptors compares the number of interceptors, and of their watches.
func (n *podsOfNode) expectInterceptors(want int) {
	n.t.Helper()
	n.lock.Lock()
	defer n.lock.Unlock()
	watches := 0
	for _, w := range n.watches {
		if !w.IsStopped() {
			watches++
		}
	}
	if got := len(n.manager.interceptors); got != want || watches != want {
		n.t.Errorf("%d interceptors, %d watches, want %d", got, watches, want)
	}
}

const (
	messageStopping = "Terminating the static pod"
	messageWaiting  = "one static pod stops at a time"
	messageEnded    = "Terminated the static pod"
)

func TestInterceptorsOfTwoPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newPodsOfNode(t, "a", "b")
		n.sleep(2)
		n.expect("a", stopping, messageStopping)
		n.expect("b", running, "")
		if eta := n.request("a").Status.Interceptors[0].ExpectedFinishTime; eta == nil || time.Until(eta.Time) < 15*time.Second || time.Until(eta.Time) > 20*time.Second {
			t.Errorf("a is expected to end at %v, want its grace period", eta)
		}
		n.sleep(4)
		n.expect("b", running, messageWaiting)
		// The node is unknown for a while.
		n.change(func() { n.node = nil })
		n.end("a")
		n.expect("a", ended, messageEnded)
		n.finish("a", coordinationv1alpha1.EvictionRequestConditionEvicted)
		n.expect("a", held, messageEnded)
		n.sleep(20)
		n.expect("b", running, messageWaiting)
		n.change(func() { n.drain(0) })
		n.expect("b", stopping, messageStopping)
		n.sleep(10)
		n.expectInterceptors(1)
		n.end("b")
		n.finish("b", coordinationv1alpha1.EvictionRequestConditionEvicted)
		n.expect("b", held, messageEnded)
		n.sleep(10)
		n.expectInterceptors(0)
		// A node may read only the requests of its mirror pods, by their names.
		var names []string
		for _, action := range n.client.Actions() {
			if list, ok := action.(clienttesting.ListAction); ok {
				names = append(names, action.GetNamespace()+" "+list.GetListRestrictions().Fields.String())
			}
		}
		slices.Sort(names)
		if want := []string{"kube-system metadata.name=a-mirror", "kube-system metadata.name=b-mirror"}; !slices.Equal(names, want) {
			t.Errorf("lists of requests: %q, want %q", names, want)
		}
	})
}

// What ends the turn of a pod that waits.
func TestTurnEndsWhileWaiting(t *testing.T) {
	for name, test := range map[string]struct {
		act     func(n *podsOfNode)
		message string
		turns   int
	}{
		"the eviction is canceled": {
			act:     func(n *podsOfNode) { n.finish("b", coordinationv1alpha1.EvictionRequestConditionCanceled) },
			message: messageWaiting, turns: 1,
		},
		"the manifest is edited": {
			act:     func(n *podsOfNode) { n.change(func() { n.statics["b"].UID = "edited" }) },
			message: errReplaced.Error(), turns: 1,
		},
		"the maintenance ends": {
			act:     func(n *podsOfNode) { n.change(func() { n.node = &v1.Node{} }) },
			message: messageWaiting,
		},
		"the mirror pod is deleted": {
			act:     func(n *podsOfNode) { n.change(func() { delete(n.mirrors, "b") }) },
			message: errReplaced.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newPodsOfNode(t, "a", "b")
				n.sleep(6)
				n.expect("b", running, messageWaiting)
				test.act(n)
				n.end("a")
				n.finish("a", coordinationv1alpha1.EvictionRequestConditionEvicted)
				n.sleep(15)
				n.expect("b", running, test.message)
				n.expectInterceptors(test.turns)
				if wishes := len(n.manager.wishes); wishes > 0 {
					t.Errorf("%d wishes are left", wishes)
				}
			})
		})
	}
}

// What happens after the stop has begun.
func TestStopOfInterceptor(t *testing.T) {
	// They limit the rate of errors by the real time, and would sleep for years of the simulated one.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	defer func() { utilruntime.ErrorHandlers = handlers }()
	for name, test := range map[string]struct {
		act     func(n *podsOfNode)
		want    state
		message string
		// watches is how many watches are left.
		watches int
	}{
		"the API server does not answer": {
			act: func(n *podsOfNode) {
				n.change(func() { n.frozen, n.containers["a"] = true, false })
				n.sleep(40)
				n.change(func() { n.frozen, n.containers["a"] = false, true })
				n.sleep(3600)
			},
			want: refused, message: errRefused.Error(), watches: 1,
		},
		"the mirror pod is deleted": {
			act:  func(n *podsOfNode) { n.change(func() { delete(n.mirrors, "a") }) },
			want: running, message: errReplaced.Error(), // Of the attempt after the end of the stop.
		},
		"the maintenance ends": {
			act:  func(n *podsOfNode) { n.change(func() { n.node = &v1.Node{} }) },
			want: running, message: messageStopping,
		},
		"the request is deleted": {
			act: func(n *podsOfNode) {
				n.end("a")
				n.expect("a", ended, messageEnded)
				request := n.request("a")
				requests := n.client.CoordinationV1alpha1().EvictionRequests(testNamespace)
				if err := requests.Delete(n.t.Context(), request.Name, metav1.DeleteOptions{}); err != nil {
					n.t.Fatal(err)
				}
				n.sleep(3)
				if err := n.client.Tracker().Add(request); err != nil {
					n.t.Fatal(err)
				}
			},
			want: held, message: messageEnded,
		},
		"the request cannot be read": {
			act: func(n *podsOfNode) {
				n.end("a")
				n.change(func() {
					n.forbidden = true
					n.watches[0].Stop()
				})
				n.sleep(20)
				n.expect("a", ended, messageEnded)
				n.change(func() { n.drain(7) })
			},
			want: held, message: messageEnded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newPodsOfNode(t, "a")
				n.sleep(3)
				n.expect("a", stopping, messageStopping)
				test.act(n)
				n.sleep(15)
				n.expect("a", test.want, test.message)
				n.expectInterceptors(test.watches)
			})
		})
	}
}

// The disk is full for hours.
func TestStopIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newPodsOfNode(t, "a")
		directory := n.manager.Holds.checkpoint.directory
		if err := os.RemoveAll(directory); err != nil {
			t.Fatal(err)
		}
		n.sleep(3 * 3600)
		n.expect("a", running, "could not store")
		if err := os.Mkdir(directory, 0o700); err != nil {
			t.Fatal(err)
		}
		n.sleep(400)
		n.expect("a", stopping, messageStopping)
	})
}

// A mirror pod that has ended is not stopped.
func TestNoInterceptorOfEndedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newPodsOfNode(t, "a")
		n.change(func() {
			n.mirrors["a"] = n.mirrors["a"].DeepCopy()
			n.mirrors["a"].UID, n.mirrors["a"].Status.Phase = "ended", v1.PodFailed
		})
		n.sleep(15)
		n.expectInterceptors(0)
	})
}

func TestGracePeriod(t *testing.T) {
	pod := newMirrorPod("a")
	if got := gracePeriod(pod); got != 20*time.Second {
		t.Errorf("grace period %v", got)
	}
	pod.Spec.TerminationGracePeriodSeconds = nil
	if got := gracePeriod(pod); got != 30*time.Second {
		t.Errorf("default grace period %v", got)
	}
}
