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

package statefulset

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller/statefulset/metrics"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
	"k8s.io/utils/ptr"
)

// evictionWorld is an intercepting controller with the library, on a fake API server.
type evictionWorld struct {
	t        *testing.T
	client   *fake.Clientset
	ssc      *StatefulSetController
	recorder *record.FakeRecorder
	// stop stops the process.
	stop func()
}

// inEvictionWorld runs a test in a synctest bubble.
func inEvictionWorld(t *testing.T, objects func() []runtime.Object, test func(*evictionWorld)) {
	t.Helper()
	inPreparedEvictionWorld(t, objects, func(*fake.Clientset) {}, test)
}

func inPreparedEvictionWorld(t *testing.T, objects func() []runtime.Object, prepare func(*fake.Clientset), test func(*evictionWorld)) {
	t.Helper()
	setMaxUnavailable(t, false)
	synctest.Test(t, func(t *testing.T) {
		w := &evictionWorld{t: t, client: fake.NewClientset(objects()...), recorder: record.NewFakeRecorder(100)}
		prepare(w.client)
		w.start()
		w.settle()
		test(w)
		w.stop()
	})
}

// start starts a process whose only state is in the API server.
func (w *evictionWorld) start() {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	factory := informers.NewSharedInformerFactory(w.client, 0)
	pods, sets := factory.Core().V1().Pods(), factory.Apps().V1().StatefulSets()
	w.ssc = NewStatefulSetController(ctx, pods, sets, factory.Core().V1().PersistentVolumeClaims(), factory.Apps().V1().ControllerRevisions(), w.client)
	w.ssc.control.(*defaultStatefulSetControl).podControl.recorder = w.recorder
	run, err := w.ssc.InterceptEvictions(w.client, factory)
	if err != nil {
		w.t.Fatalf("intercepting evictions: %v", err)
	}
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	factory.StartWithContext(ctx)
	w.stop = func() {
		stop()
		running.Wait()
		factory.Shutdown()
		// Only Run of the controller would shut these down.
		w.ssc.queue.ShutDown()
		w.ssc.eventBroadcaster.Shutdown()
	}
}

// settle waits until all pending work is done, but less than any deadline.
func (w *evictionWorld) settle() {
	time.Sleep(30 * time.Second)
	synctest.Wait()
}

func (w *evictionWorld) update(resource string, group schema.GroupVersion, object runtime.Object) {
	w.t.Helper()
	if err := w.client.Tracker().Update(group.WithResource(resource), object, metav1.NamespaceDefault); err != nil {
		w.t.Fatalf("updating %s: %v", resource, err)
	}
	w.settle()
}

func (w *evictionWorld) entry(pod *v1.Pod) coordinationv1alpha1.InterceptorStatus {
	w.t.Helper()
	request, err := w.client.CoordinationV1alpha1().EvictionRequests(pod.Namespace).Get(w.t.Context(), string(pod.UID), metav1.GetOptions{})
	if err != nil {
		w.t.Fatalf("reading the request about %s: %v", pod.Name, err)
	}
	for _, entry := range request.Status.Interceptors {
		if entry.Name == ownInterceptor {
			return entry
		}
	}
	w.t.Fatalf("the request about %s lacks the interceptor", pod.Name)
	return coordinationv1alpha1.InterceptorStatus{}
}

func (w *evictionWorld) expect(pod *v1.Pod, done bool, message string) {
	w.t.Helper()
	if entry := w.entry(pod); entry.Message != message || (entry.CompletionTime != nil) != done {
		w.t.Errorf("%s: the turn is over: %t, with the message %q, want %t and %q", pod.Name, entry.CompletionTime != nil, entry.Message, done, message)
	}
}

// fresh sets times of the bubble, in which it is the year 2000.
func fresh(request *coordinationv1alpha1.EvictionRequest) {
	request.Status.ActivationTime = &metav1.Time{Time: time.Now().Truncate(time.Second)}
}

func available(pod *v1.Pod) {
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}}
}

// With the library, one pod leaves. The other one waits for each step of the replacement, and each
// step wakes it.
func TestInterceptor(t *testing.T) {
	objects := func() []runtime.Object {
		low, high := pacedPod(0, available), pacedPod(1, available)
		return []runtime.Object{pacedSet(2), low, high, pacedRequest(low, fresh), pacedRequest(high, fresh)}
	}
	inEvictionWorld(t, objects, func(w *evictionWorld) {
		w.expect(pacedPod(1), true, passedOn)
		w.expect(pacedPod(0), false, waitsFor("pod web-1 to be evicted", 2))
		if event := <-w.recorder.Events; !strings.HasPrefix(event, "Normal EvictionReleased Released pod web-1") {
			w.t.Errorf("the event is %q", event)
		}
		w.update("pods", v1.SchemeGroupVersion, pacedPod(1, available, terminating))
		w.expect(pacedPod(0), false, waitsFor("pod web-1 to terminate", 2))
		w.update("pods", v1.SchemeGroupVersion, pacedPod(1, unready, func(pod *v1.Pod) { pod.UID = "next" }))
		w.expect(pacedPod(0), false, waitsFor("pod web-1 to become available", 2))
		time.Sleep(5 * time.Minute)
		if heartbeat := w.entry(pacedPod(0)).HeartbeatTime; time.Since(heartbeat.Time) > 3*time.Minute+time.Second {
			w.t.Errorf("the last heartbeat was at %v", heartbeat)
		}
		w.update("pods", v1.SchemeGroupVersion, pacedPod(1, available, func(pod *v1.Pod) { pod.UID = "next" }))
		w.expect(pacedPod(0), true, passedOn)
	})
}

// A change of the set wakes waiting pods.
func TestInterceptorWatchesTheSet(t *testing.T) {
	objects := func() []runtime.Object {
		low := pacedPod(0, available)
		return []runtime.Object{pacedSet(2), low, pacedRequest(low, fresh)}
	}
	inEvictionWorld(t, objects, func(w *evictionWorld) {
		w.expect(pacedPod(0), false, waitsFor("pod web-1 to be created", 2))
		w.update("statefulsets", apps.SchemeGroupVersion, pacedSet(1))
		w.expect(pacedPod(0), true, passedOn)
	})
}

// Canceled requests make room for others, and are counted.
func TestInterceptorWatchesRequests(t *testing.T) {
	objects := func() []runtime.Object {
		low, high := pacedPod(0, available), pacedPod(1, available)
		return []runtime.Object{pacedSet(2), low, high, pacedRequest(low, fresh), pacedRequest(high, fresh)}
	}
	inEvictionWorld(t, objects, func(w *evictionWorld) {
		w.expect(pacedPod(0), false, waitsFor("pod web-1 to be evicted", 2))
		canceled := pacedRequest(pacedPod(1), fresh, completedAt(time.Now()), endedAs(coordinationv1alpha1.EvictionRequestConditionCanceled, time.Now()))
		w.update("evictionrequests", coordinationv1alpha1.SchemeGroupVersion, canceled)
		w.expect(pacedPod(0), true, passedOn)
	})
}

// Pods become available, and deadlines pass, without any event.
func TestInterceptorResyncs(t *testing.T) {
	for name, tc := range map[string]struct {
		other func(*v1.Pod)
		after time.Duration
		want  string
	}{
		"available after minReadySeconds": {other: func(pod *v1.Pod) {
			available(pod)
			pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now())
		}, after: 5 * time.Minute, want: passedOn},
		"the deadline": {other: unready, after: 10 * time.Minute, want: "Gave up after 10m0s without progress. " + waitsFor("pod web-1 to become available", 2)},
	} {
		t.Run(name, func(t *testing.T) {
			objects := func() []runtime.Object {
				low := pacedPod(0, available)
				return []runtime.Object{pacedSet(2, minReady(300)), low, pacedPod(1, tc.other), pacedRequest(low, fresh)}
			}
			inEvictionWorld(t, objects, func(w *evictionWorld) {
				w.expect(pacedPod(0), false, waitsFor("pod web-1 to become available", 2))
				time.Sleep(tc.after)
				synctest.Wait()
				w.expect(pacedPod(0), true, tc.want)
			})
		})
	}
}

// The deletion of a pod wakes the pods that wait for it.
func TestInterceptorWatchesDeletions(t *testing.T) {
	objects := func() []runtime.Object {
		low := pacedPod(0, available)
		return []runtime.Object{pacedSet(2), low, pacedPod(1, available), pacedPod(2, unready), pacedRequest(low, fresh)}
	}
	inEvictionWorld(t, objects, func(w *evictionWorld) {
		w.expect(pacedPod(0), false, waitsFor("pod web-2 to become available", 2))
		if err := w.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceDefault, "web-2"); err != nil {
			w.t.Errorf("deleting the pod: %v", err)
		}
		w.settle()
		w.expect(pacedPod(0), true, passedOn)
	})
}

// A pod that never reaches the cache is looked up again without any event.
func TestInterceptorLooksUpThePod(t *testing.T) {
	objects := func() []runtime.Object { return []runtime.Object{pacedRequest(pacedPod(0), fresh)} }
	inEvictionWorld(t, objects, func(w *evictionWorld) {
		w.expect(pacedPod(0), false, "")
		time.Sleep(evictionProgressDeadline)
		synctest.Wait()
		w.expect(pacedPod(0), true, "Skipped: the pod was not found.")
	})
}

// TestRestartsDoNotPostponeGivingUp repeatedly stops a process before the timeout. The time waited
// is stored in the request.
func TestRestartsDoNotPostponeGivingUp(t *testing.T) {
	objects := func() []runtime.Object {
		low := pacedPod(0, available)
		return []runtime.Object{pacedSet(2), low, pacedPod(1, unready), pacedRequest(low, fresh)}
	}
	inEvictionWorld(t, objects, func(w *evictionWorld) {
		began := time.Now()
		for w.entry(pacedPod(0)).CompletionTime == nil {
			if waited := time.Since(began); waited > 20*time.Minute {
				w.t.Errorf("still waits after %v without progress", waited)
				return
			}
			time.Sleep(4 * time.Minute)
			w.stop()
			time.Sleep(20 * time.Second) // The next process has to become leader.
			w.start()
			w.settle()
		}
		if waited := time.Since(began); waited < evictionProgressDeadline {
			w.t.Errorf("gave up after %v, too early", waited)
		}
	})
}

// TestOutagesPostponeGivingUp stops processes before the timeout, and starts the next ones much
// later. However short they run, one gives up eventually.
func TestOutagesPostponeGivingUp(t *testing.T) {
	for _, life := range []time.Duration{20 * time.Second, 90 * time.Second, 4 * time.Minute} {
		t.Run(life.String(), func(t *testing.T) {
			objects := func() []runtime.Object {
				low := pacedPod(0, available)
				return []runtime.Object{pacedSet(2), low, pacedPod(1, unready), pacedRequest(low, fresh)}
			}
			inEvictionWorld(t, objects, func(w *evictionWorld) {
				w.stop() // It has run for as long as settle takes.
				const aliveAfterHeartbeat = evictionrequest.MinHeartbeatInterval
				ran, counted := 30*time.Second, aliveAfterHeartbeat
				for counted < 20*time.Minute {
					time.Sleep(time.Hour)
					w.start()
					for range life / time.Second {
						time.Sleep(time.Second)
						if w.entry(pacedPod(0)).CompletionTime != nil {
							break
						}
						ran += time.Second
					}
					synctest.Wait()
					if w.entry(pacedPod(0)).CompletionTime != nil {
						break
					}
					w.stop()
					counted += max(life, aliveAfterHeartbeat)
				}
				if w.entry(pacedPod(0)).CompletionTime == nil {
					w.t.Errorf("still waits after processes have run for %v without progress", ran)
				} else if counted += max(life, aliveAfterHeartbeat); counted < evictionProgressDeadline {
					w.t.Errorf("gave up after processes have run for %v, too early", ran)
				}
			})
		})
	}
}

// TestTurnsThatOthersEndAreCounted cancels an eviction while the pod waits.
func TestTurnsThatOthersEndAreCounted(t *testing.T) {
	objects := func() []runtime.Object {
		low := pacedPod(0, available)
		return []runtime.Object{pacedSet(2), low, pacedPod(1, unready), pacedRequest(low, fresh)}
	}
	inEvictionWorld(t, objects, func(w *evictionWorld) {
		since := counted(w.t)
		canceled := endedAs(coordinationv1alpha1.EvictionRequestConditionCanceled, time.Now())
		w.update("evictionrequests", coordinationv1alpha1.SchemeGroupVersion, pacedRequest(pacedPod(0), fresh, canceled))
		expectCounts(w.t, since, map[metrics.EvictionOutcome]uint64{"canceled": 1})
	})
}

// New pods list the interceptor, and nothing else does: revisions, hashes and sets are the same as
// without it.
func TestInterceptorIsOnNewPods(t *testing.T) {
	objects := func() []runtime.Object {
		return []runtime.Object{pacedSet(2, func(set *apps.StatefulSet) {
			set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			set.Spec.Template.Labels = map[string]string{"app": "web"}
			set.Spec.RevisionHistoryLimit = ptr.To[int32](10)
		})}
	}
	inEvictionWorld(t, objects, func(w *evictionWorld) {
		before, err := w.ssc.setLister.StatefulSets(metav1.NamespaceDefault).Get("web")
		if err != nil {
			w.t.Fatalf("reading the set: %v", err)
		}
		copied := before.DeepCopy()
		if err := w.ssc.sync(w.t.Context(), pacedKey); err != nil {
			w.t.Fatalf("syncing: %v", err)
		}
		pod, err := w.client.CoreV1().Pods(metav1.NamespaceDefault).Get(w.t.Context(), "web-0", metav1.GetOptions{})
		if err != nil {
			w.t.Fatalf("reading the pod: %v", err)
		}
		if diff := cmp.Diff([]v1.EvictionInterceptor{{Name: ownInterceptor}}, pod.Spec.EvictionInterceptors); diff != "" {
			w.t.Errorf("interceptors of the pod (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(copied, before); diff != "" {
			w.t.Errorf("the set in the cache has changed (-before +after):\n%s", diff)
		}
		revisions, err := w.client.AppsV1().ControllerRevisions(metav1.NamespaceDefault).List(w.t.Context(), metav1.ListOptions{})
		if err != nil || len(revisions.Items) != 1 || strings.Contains(string(revisions.Items[0].Data.Raw), ownInterceptor) {
			w.t.Errorf("the revisions are %v (%v), want one without the interceptor", revisions, err)
		}
	})
}

// TestInterceptorBehind has a process whose cache gets no changes of requests, as that of one that was
// suspended. Another process has released a pod meanwhile: this one releases none before it knows.
func TestInterceptorBehind(t *testing.T) {
	labeled := func(request *coordinationv1alpha1.EvictionRequest) { request.Labels = map[string]string{"app": "web"} }
	objects := func() []runtime.Object {
		low := pacedPod(0, available)
		set := pacedSet(2, func(set *apps.StatefulSet) {
			set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		})
		return []runtime.Object{set, low, pacedPod(1, unready), pacedRequest(low, fresh, labeled)}
	}
	released := func() *coordinationv1alpha1.EvictionRequest {
		return pacedRequest(pacedPod(1), fresh, labeled, completedAt(time.Now().Truncate(time.Second)))
	}
	for name, test := range map[string]struct {
		other func() *coordinationv1alpha1.EvictionRequest
		done  bool
	}{
		"released": {other: released},
		"released, of another set": {other: func() *coordinationv1alpha1.EvictionRequest {
			request := released()
			request.Spec.Target.Pod.Name = "db-1"
			return request
		}, done: true},
		"asked": {other: func() *coordinationv1alpha1.EvictionRequest { return pacedRequest(pacedPod(1), fresh, labeled) }, done: true},
	} {
		t.Run(name, func(t *testing.T) {
			var changes *watch.FakeWatcher
			before := func(client *fake.Clientset) {
				changes = watch.NewFake()
				client.PrependWatchReactor("evictionrequests", func(clienttesting.Action) (bool, watch.Interface, error) { return true, changes, nil })
			}
			inPreparedEvictionWorld(t, objects, before, func(w *evictionWorld) {
				w.expect(pacedPod(0), false, waitsFor("pod web-1 to become available", 2))
				other := test.other()
				if err := w.client.Tracker().Add(other); err != nil {
					w.t.Fatalf("adding the other request: %v", err)
				}
				w.update("pods", v1.SchemeGroupVersion, pacedPod(1, available))
				if done := w.entry(pacedPod(0)).CompletionTime != nil; done != test.done {
					w.t.Fatalf("the pod was released: %t, want %t", done, test.done)
				}
				if test.done {
					return
				}
				changes.Add(other)
				w.settle()
				w.expect(pacedPod(0), false, waitsFor("pod web-1 to be evicted", 2))
				canceled := other.DeepCopy()
				endedAs(coordinationv1alpha1.EvictionRequestConditionCanceled, time.Now())(canceled)
				if err := w.client.Tracker().Update(coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests"), canceled, metav1.NamespaceDefault); err != nil {
					w.t.Fatalf("canceling the other request: %v", err)
				}
				changes.Modify(canceled)
				w.settle()
				w.expect(pacedPod(0), true, passedOn)
			})
		})
	}
}

// A pod that the cache shows as broken may be ready again.
func TestInterceptorReadsBrokenPods(t *testing.T) {
	for name, done := range map[string]bool{"broken": true, "ready again": false} {
		t.Run(name, func(t *testing.T) {
			objects := func() []runtime.Object {
				return []runtime.Object{pacedSet(2), pacedPod(0, unreadySince(time.Now().Add(-time.Hour)))} // web-1 is missing.
			}
			inPreparedEvictionWorld(t, objects, func(client *fake.Clientset) {
				client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return !done, pacedPod(0, available), nil
				})
			}, func(w *evictionWorld) {
				time.Sleep(evictionturn.BrokenAfter) // The process has to see that it is not ready.
				request := pacedRequest(pacedPod(0), fresh)
				if err := w.client.Tracker().Create(coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests"), request, request.Namespace); err != nil {
					w.t.Fatal(err)
				}
				w.settle()
				if got := w.entry(pacedPod(0)).CompletionTime != nil; got != done {
					w.t.Errorf("the pod was released: %t, want %t: %s", got, done, w.entry(pacedPod(0)).Message)
				}
			})
		})
	}
}

// A pod that the cache shows as not available may be so again: then it is one too many beside another one that is not.
func TestInterceptorReadsUnavailablePods(t *testing.T) {
	for name, test := range map[string]struct {
		live func(*v1.Pod)
		done bool
	}{
		"not ready":                        {live: unready, done: true},
		"ready, but not for long enough":   {live: func(pod *v1.Pod) { pod.Status.Conditions[0].LastTransitionTime = metav1.Now() }, done: true},
		"available again":                  {live: available},
		"another one, which has its name":  {live: func(pod *v1.Pod) { next(pod); available(pod) }, done: true},
		"available again, and terminating": {live: func(pod *v1.Pod) { available(pod); terminating(pod) }, done: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := func() []runtime.Object {
				set := pacedSet(2, func(set *apps.StatefulSet) { set.Spec.MinReadySeconds = 300 })
				return []runtime.Object{set, pacedPod(0, unreadySince(time.Now())), pacedRequest(pacedPod(0), fresh)} // web-1 is missing.
			}
			inPreparedEvictionWorld(t, objects, func(client *fake.Clientset) {
				live := pacedPod(0, test.live)
				client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, live, nil })
			}, func(w *evictionWorld) {
				if got := w.entry(pacedPod(0)).CompletionTime != nil; got != test.done {
					w.t.Errorf("the pod was released: %t, want %t: %s", got, test.done, w.entry(pacedPod(0)).Message)
				}
			})
		})
	}
}

// If the requests cannot be read, no pod is released until they can.
func TestInterceptorCannotRead(t *testing.T) {
	var failing atomic.Bool
	failing.Store(true)
	objects := func() []runtime.Object {
		low := pacedPod(0, available)
		return []runtime.Object{pacedSet(2), low, pacedPod(1, available), pacedRequest(low, fresh)}
	}
	first := true
	inPreparedEvictionWorld(t, objects, func(client *fake.Clientset) {
		client.PrependReactor("list", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			if first { // That of the informer.
				first = false
				return false, nil, nil
			}
			return failing.Load(), nil, apierrors.NewServiceUnavailable("starting")
		})
	}, func(w *evictionWorld) {
		if w.entry(pacedPod(0)).CompletionTime != nil {
			w.t.Error("the pod was released")
		}
		failing.Store(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		w.expect(pacedPod(0), true, passedOn)
	})
}
