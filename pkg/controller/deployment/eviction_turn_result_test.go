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

package deployment

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"k8s.io/kubernetes/pkg/controller/deployment/metrics"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/util/evictionturn"
)

// surging is a Deployment with one replica that waits for its replacement.
func surging() (*workload, *replicaSet, askedPod) {
	d := &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web"},
		Spec: apps.DeploymentSpec{
			Replicas:                ptr.To(int32(1)),
			ProgressDeadlineSeconds: ptr.To(int32(300)),
			Strategy: apps.DeploymentStrategy{
				Type:          apps.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &apps.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))},
			},
		},
	}
	rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Spec: apps.ReplicaSetSpec{Replicas: ptr.To(int32(1))}}
	set := &replicaSet{stored: rs, view: rs}
	set.wanted, set.room = 1, 1
	set.recorded = recorded(1)
	set.recorded.Since = metav1.Time{}
	set.pods = []surgePod{pod("a", "serving", "asked"), pod("b", "starting")}
	set.living = []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	asked := askedPod{uid: "a", since: began}
	set.asked = []askedPod{asked}
	return &workload{deployment: d, sets: []*replicaSet{set}}, set, asked
}

func TestTurnResult(t *testing.T) {
	const starts = "Surging 0/1: waiting for pod b to become ready."
	tests := map[string]struct {
		change  func(*workload, *replicaSet, *askedPod)
		elapsed time.Duration
		want    turnResult
	}{
		"the replacement starts": {want: turnResult{message: starts}},
		"it cannot be scheduled": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.living[1].Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: "0/3 nodes are available."}}
			},
			want: turnResult{message: "Surging 0/1: waiting for pod b to be scheduled: 0/3 nodes are available."},
		},
		"its image cannot be pulled": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.living[1].Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
			},
			want: turnResult{message: "Surging 0/1: waiting for pod b to become ready: container c is waiting (ImagePullBackOff)"},
		},
		"it is ready, but not for long enough": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.living[1].Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
			},
			want: turnResult{message: "Surging 0/1: waiting for pod b to be ready for minReadySeconds."},
		},
		"several replacements start: the newest is named": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.pods = append(set.pods, pod("c", "starting"))
				set.living = append(set.living, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: metav1.NewTime(later)}})
			},
			want: turnResult{message: "Surging 0/1: waiting for pod c and 1 more to become ready."},
		},
		"it cannot be created": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.pods, set.living = set.pods[:1], set.living[:1]
				set.view.Status.Conditions = []apps.ReplicaSetCondition{{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota"}}
			},
			want: turnResult{message: "Surging 0/1: replacements cannot be created: exceeded quota"},
		},
		"it is not created yet": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) { set.pods, set.living = set.pods[:1], set.living[:1] },
			want:   turnResult{message: "Surging 0/1: waiting for replacements to be created."},
		},
		"it is available, but another pod that should leave is not": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.wanted = 2
				set.pods = append(set.pods[:1], pod("b", "passed"), pod("c", "serving"))
				set.living = append(set.living, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
			},
			want: turnResult{message: "Surging 0/1: waiting for pod b to become ready."},
		},
		"one is not created yet, and another pod that should leave is not available": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) { set.wanted, set.pods[1] = 2, pod("b", "passed") },
			want:   turnResult{message: "Surging 0/1: waiting for replacements to be created."},
		},
		"others go first": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) { set.recorded = kept0("b") },
			want:   turnResult{message: "Waiting: Deployment web replaces other pods first."},
		},
		"the replacement is available": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) { set.recorded = kept0("a") },
			want:   turnResult{message: "Surging 1/1: removing the replaced pod."},
		},
		"the replaced pod cannot be deleted": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.recorded = kept0("a")
				set.view.Status.Conditions = []apps.ReplicaSetCondition{{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: "FailedDelete", Message: "admission webhook denied the request"}}
			},
			want: turnResult{message: "Surging 1/1: replaced pods cannot be removed: admission webhook denied the request"},
		},
		"the replaced pod cannot be deleted until the deadline": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.recorded = kept0("a")
				set.view.Status.Conditions = []apps.ReplicaSetCondition{{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: "FailedDelete", Message: "admission webhook denied the request"}}
			},
			elapsed: 5 * time.Minute,
			want:    turnResult{outcome: metrics.GivenUp, message: "Gave up after 5m0s without progress. Surging 1/1: replaced pods cannot be removed: admission webhook denied the request"},
		},
		"other pods could not be created before": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.recorded = kept0("a")
				set.view.Status.Conditions = []apps.ReplicaSetCondition{{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota"}}
			},
			want: turnResult{message: "Surging 1/1: removing the replaced pod."},
		},
		"no room": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) { set.recorded = kept0() },
			want:   turnResult{message: "Waiting: Deployment web has 2 pods and cannot create more yet."},
		},
		"a rollout": {
			change: func(w *workload, _ *replicaSet, _ *askedPod) { w.rolling = true },
			want:   turnResult{message: "Waiting for the rollout of Deployment web to complete."},
		},
		"a rollout, whose pods cannot be scheduled": {
			change: func(w *workload, set *replicaSet, _ *askedPod) { w.rolling, set.hindered = true, 1 },
			want:   turnResult{message: "Waiting for the rollout of Deployment web to complete."},
		},
		"paused in a rollout": {
			change: func(w *workload, _ *replicaSet, _ *askedPod) { w.rolling, w.deployment.Spec.Paused = true, true },
			want:   turnResult{message: "Waiting: Deployment web is paused during a rollout and needs all of its available pods."},
		},
		"paused in a rollout, with a pod to spare": {
			change: func(w *workload, set *replicaSet, _ *askedPod) {
				w.rolling, w.deployment.Spec.Paused = true, true
				set.pods[1].available = true
			},
			want: turnResult{outcome: metrics.Declined, message: "Deployment web is paused during a rollout that uses its maxSurge, and does not need the pod to keep its replicas available."},
		},
		"paused in a rollout, with a pod to spare, and Recreate": {
			change: func(w *workload, set *replicaSet, _ *askedPod) {
				w.rolling, w.deployment.Spec.Paused = true, true
				w.deployment.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
				set.pods[1].available = true
			},
			want: turnResult{outcome: metrics.Declined, message: "Deployment web does not surge: its strategy is Recreate."},
		},
		"a rollout that is not paused, with a pod to spare": {
			change: func(w *workload, set *replicaSet, _ *askedPod) {
				w.rolling = true
				set.pods[1].available = true
			},
			want: turnResult{message: "Waiting for the rollout of Deployment web to complete."},
		},
		"paused, and no rollout": {
			change: func(w *workload, set *replicaSet, _ *askedPod) {
				w.deployment.Spec.Paused = true
				set.pods = append(set.pods, pod("c", "serving"))
				set.living = append(set.living, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
			},
			want: turnResult{message: "Surging 1/1: waiting for pod b to become ready."},
		},
		"it fails": {
			change: func(w *workload, _ *replicaSet, _ *askedPod) { w.failure = errors.New("scaling: forbidden") },
			want:   turnResult{message: "Surging 0/1: retrying after an error: scaling: forbidden"},
		},
		"it fails, and others go first": {
			change: func(w *workload, set *replicaSet, _ *askedPod) {
				set.recorded, w.failure = kept0("b"), errors.New("scaling: forbidden")
			},
			want: turnResult{message: "Surging 1/1: retrying after an error: scaling: forbidden"},
		},
		"a conflict is no failure": {
			change: func(w *workload, _ *replicaSet, _ *askedPod) {
				w.failure = fmt.Errorf("scaling: %w", apierrors.NewConflict(apps.Resource("replicasets"), "web-1", nil))
			},
			want: turnResult{message: starts},
		},
		"a failure does not last forever": {
			change:  func(w *workload, _ *replicaSet, _ *askedPod) { w.failure = errors.New("scaling: forbidden") },
			elapsed: 300 * time.Second,
			want:    turnResult{outcome: metrics.GivenUp, message: "Gave up after 5m0s without progress. Surging 0/1: retrying after an error: scaling: forbidden"},
		},
		"terminating": {
			change: func(_ *workload, _ *replicaSet, asked *askedPod) { asked.terminating = true },
			want:   turnResult{outcome: metrics.Completed, message: "The pod is terminating."},
		},
		"strategy Recreate": {
			change: func(w *workload, _ *replicaSet, _ *askedPod) {
				w.deployment.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
			},
			want: turnResult{outcome: metrics.Declined, message: "Deployment web does not surge: its strategy is Recreate."},
		},
		"maxSurge 0": {
			change: func(w *workload, _ *replicaSet, _ *askedPod) {
				w.deployment.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(0))
			},
			want: turnResult{outcome: metrics.Declined, message: "Deployment web does not surge: its maxSurge is 0."},
		},
		"a percentage of no replicas is no maxSurge of 0": {
			change: func(w *workload, set *replicaSet, _ *askedPod) {
				w.deployment.Spec.Replicas = ptr.To(int32(0))
				w.deployment.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("25%"))
			},
			want: turnResult{message: starts},
		},
		"the Deployment is being deleted": {
			change: func(w *workload, set *replicaSet, _ *askedPod) {
				w.deployment.DeletionTimestamp = &metav1.Time{}
				set.recorded = kept0()
			},
			want: turnResult{outcome: metrics.Declined, message: "Deployment web is being deleted."},
		},
		"the Deployment is being deleted, its surge is still there": {
			change: func(w *workload, _ *replicaSet, _ *askedPod) { w.deployment.DeletionTimestamp = &metav1.Time{} },
			want:   turnResult{message: "Deployment web is being deleted and removes its extra replicas."},
		},
		"the Deployment is being deleted, its surge stays": {
			change:  func(w *workload, _ *replicaSet, _ *askedPod) { w.deployment.DeletionTimestamp = &metav1.Time{} },
			elapsed: 300 * time.Second,
			want:    turnResult{outcome: metrics.Declined, message: "Deployment web is being deleted."},
		},

		"a second before the deadline": {elapsed: 299 * time.Second, want: turnResult{message: starts}},
		"at the deadline":              {elapsed: 300 * time.Second, want: turnResult{outcome: metrics.GivenUp, message: "Gave up after 5m0s without progress. " + starts}},
		"the deadline counts from the last progress": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.recorded.Since = metav1.NewTime(began.Add(time.Second))
			},
			elapsed: 300 * time.Second,
			want:    turnResult{message: starts},
		},
		"but not from one before the turn": {
			change: func(_ *workload, set *replicaSet, _ *askedPod) {
				set.recorded.Since = metav1.NewTime(began.Add(-time.Second))
			},
			elapsed: 299 * time.Second,
			want:    turnResult{message: starts},
		},
		"progress of a rollout postpones it": {
			change: func(w *workload, _ *replicaSet, _ *askedPod) {
				w.rolling = true
				w.deployment.Status.Conditions = []apps.DeploymentCondition{{Type: apps.DeploymentProgressing, LastUpdateTime: metav1.NewTime(began.Add(time.Second))}}
			},
			elapsed: 300 * time.Second,
			want:    turnResult{message: "Waiting for the rollout of Deployment web to complete."},
		},
		"a rollout without progress does not": {
			change:  func(w *workload, _ *replicaSet, _ *askedPod) { w.rolling = true },
			elapsed: 300 * time.Second,
			want:    turnResult{outcome: metrics.GivenUp, message: "Gave up after 5m0s without progress. Waiting for the rollout of Deployment web to complete."},
		},
		"no deadline is ten minutes": {
			change:  func(w *workload, _ *replicaSet, _ *askedPod) { w.deployment.Spec.ProgressDeadlineSeconds = nil },
			elapsed: 600 * time.Second,
			want:    turnResult{outcome: metrics.GivenUp, message: "Gave up after 10m0s without progress. " + starts},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, set, asked := surging()
			if tc.change != nil {
				tc.change(w, set, &asked)
			}
			set.asked = []askedPod{asked}
			results := map[types.UID]turnResult{}
			w.now = began.Add(tc.elapsed)
			w.turnResults(w.now, set, results)
			got := results["a"]
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(turnResult{})); diff != "" {
				t.Errorf("unexpected result (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestSpare has a Deployment with two replicas and two ReplicaSets, paused in a rollout.
func TestSpare(t *testing.T) {
	tests := map[string]struct {
		first, second []surgePod
		want          []types.UID
	}{
		"nothing beyond its replicas":               {[]surgePod{pod("a", "serving", "asked")}, []surgePod{pod("b", "serving")}, nil},
		"one beyond":                                {[]surgePod{pod("a", "serving", "asked")}, []surgePod{pod("b", "serving"), pod("c", "serving")}, uids("a")},
		"one beyond that is not available":          {[]surgePod{pod("a", "serving", "asked")}, []surgePod{pod("b", "serving"), pod("c", "starting")}, nil},
		"the one that was asked first":              {[]surgePod{pod("a", "serving", "asked-later")}, []surgePod{pod("b", "serving", "asked"), pod("c", "serving")}, uids("b")},
		"two beyond":                                {[]surgePod{pod("a", "serving", "asked-later"), pod("d", "serving")}, []surgePod{pod("b", "serving", "asked"), pod("c", "serving")}, uids("a", "b")},
		"one that was passed on may leave any time": {[]surgePod{pod("a", "serving", "passed")}, []surgePod{pod("b", "serving", "asked"), pod("c", "serving")}, nil},
		"so may one that is being evicted":          {[]surgePod{pod("a", "serving", "evicting")}, []surgePod{pod("b", "serving", "asked"), pod("c", "serving")}, nil},
		"a broken one":                              {[]surgePod{pod("a", "broken", "asked")}, []surgePod{pod("b", "serving", "asked-later")}, uids("a")},
		"briefly unready":                           {[]surgePod{pod("a", "starting", "asked"), pod("d", "serving")}, []surgePod{pod("b", "serving"), pod("c", "serving")}, nil},
		"not asked":                                 {[]surgePod{pod("a", "serving"), pod("d", "broken")}, []surgePod{pod("b", "serving"), pod("c", "serving")}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := web(withReplicas(2, 1), func(d *apps.Deployment) { d.Spec.Paused = true })
			w := &workload{deployment: d, rolling: true, sets: []*replicaSet{{surgeState: surgeState{pods: tc.first}}, {surgeState: surgeState{pods: tc.second}}}}
			if diff := cmp.Diff(tc.want, sets.List(w.spare()), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("unexpected pods to spare (-want, +got):\n%s", diff)
			}
		})
	}
}

func uids(uids ...types.UID) []types.UID { return uids }

func TestRequeueAfter(t *testing.T) {
	ready := func(since time.Time) v1.PodStatus {
		return v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}}}
	}
	tests := map[string]struct {
		change func(*workload, *replicaSet)
		want   time.Duration
	}{
		"the deadline of the turn": {change: func(_ *workload, set *replicaSet) {
			set.living[0].Status, set.living[1].Status = ready(began), ready(began)
		}, want: 301 * time.Second},
		"when the pod counts as broken": {change: func(_ *workload, set *replicaSet) {
			set.living[0].Status = ready(began)
			set.living[1].CreationTimestamp = metav1.NewTime(began.Add(-10 * time.Second))
			set.living[1].Status.ContainerStatuses = []v1.ContainerStatus{{RestartCount: 1}}
		}, want: 21 * time.Second},
		"when it has had the time to start": {change: func(_ *workload, set *replicaSet) {
			set.living[0].Status = ready(began)
			set.living[1].CreationTimestamp = metav1.NewTime(began.Add(-10 * time.Second))
		}, want: 291 * time.Second},
		"a deadline that has passed": {change: func(_ *workload, set *replicaSet) {
			set.living[0].Status, set.living[1].Status = ready(began), ready(began)
			set.asked[0].since = began.Add(-time.Hour)
		}, want: 61 * time.Second},
		"when the pod becomes available": {change: func(_ *workload, set *replicaSet) {
			set.living[0].Status, set.living[1].Status = ready(began.Add(-time.Hour)), ready(began.Add(-3*time.Second))
			set.view.Spec.MinReadySeconds = 10
		}, want: 8 * time.Second},
		"a failure is retried": {change: func(w *workload, set *replicaSet) {
			set.living[0].Status, set.living[1].Status = ready(began), ready(began)
			w.failure = errors.New("forbidden")
		}, want: 6 * time.Second},
		"when the replacement of a pod that was given up becomes available": {change: func(_ *workload, set *replicaSet) {
			set.asked, set.pods[0].turn = nil, evicting
			set.living[0].Status, set.living[1].Status = ready(began.Add(-time.Hour)), ready(began.Add(-3*time.Second))
			set.view.Spec.MinReadySeconds = 10
		}, want: 8 * time.Second},
		"requests are not known":               {change: func(w *workload, _ *replicaSet) { w.incomplete = true; w.sets[0].recorded.Of = 2 }, want: time.Second},
		"requests are not known, pods wait":    {change: func(w *workload, _ *replicaSet) { w.incomplete = true }, want: time.Second},
		"requests are not known, no pod waits": {change: func(w *workload, set *replicaSet) { w.incomplete, set.asked = true, nil }, want: 0},
		"no pod waits":                         {change: func(_ *workload, set *replicaSet) { set.asked = nil }, want: 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, set, _ := surging()
			tc.change(w, set)
			w.now, w.unready = began, &evictionturn.Unready{}
			for _, pod := range set.living {
				w.unready.Saw(pod, unreadyAsReported(pod))
			}
			if got := w.requeueAfter(began); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestIsRolling(t *testing.T) {
	template := func(image string) v1.PodTemplateSpec {
		return v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Image: image}}}}
	}
	set := func(image string, replicas int32) *apps.ReplicaSet {
		return &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: types.UID(image)}, Spec: apps.ReplicaSetSpec{Replicas: ptr.To(replicas), Template: template(image)}}
	}
	tests := map[string]struct {
		paused bool
		sets   []*apps.ReplicaSet
		want   bool
	}{
		"at rest":                       {sets: []*apps.ReplicaSet{set("old", 0), set("new", 2)}},
		"scaled to 0":                   {sets: []*apps.ReplicaSet{set("old", 0), set("new", 0)}},
		"two with replicas":             {sets: []*apps.ReplicaSet{set("old", 1), set("new", 2)}, want: true},
		"two with replicas, but paused": {paused: true, sets: []*apps.ReplicaSet{set("old", 1), set("new", 2)}, want: true},
		"about to begin":                {sets: []*apps.ReplicaSet{set("old", 2), set("new", 0)}, want: true},
		"the new one is missing":        {sets: []*apps.ReplicaSet{set("old", 2)}, want: true},
		"paused before it began":        {paused: true, sets: []*apps.ReplicaSet{set("old", 2)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := &apps.Deployment{Spec: apps.DeploymentSpec{Paused: tc.paused, Template: template("new")}}
			if got := isRolling(d, tc.sets); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTurnIn(t *testing.T) {
	request := func(change func(*coordinationv1alpha1.EvictionRequestStatus)) *coordinationv1alpha1.EvictionRequest {
		r := &coordinationv1alpha1.EvictionRequest{Status: coordinationv1alpha1.EvictionRequestStatus{
			ActiveInterceptors: []string{coordinationv1alpha1.EvictionInterceptorDeployment},
			Interceptors:       []coordinationv1alpha1.InterceptorStatus{{Name: "other.example.com"}, {Name: coordinationv1alpha1.EvictionInterceptorDeployment}},
		}}
		change(&r.Status)
		return r
	}
	done := func(condition string) func(*coordinationv1alpha1.EvictionRequestStatus) {
		return func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue}}
		}
	}
	tests := map[string]struct {
		request *coordinationv1alpha1.EvictionRequest
		want    turn
	}{
		"no request": {want: notAsked},
		"active":     {request(func(*coordinationv1alpha1.EvictionRequestStatus) {}), ourTurn},
		"completed, the next one is not active yet": {request(func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.Interceptors[1].CompletionTime = &metav1.Time{Time: began}
		}), passedOn},
		"another interceptor before": {request(func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.ActiveInterceptors = []string{"other.example.com"}
		}), notAsked},
		"the eviction after": {request(func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.ActiveInterceptors = []string{coordinationv1alpha1.EvictionInterceptorImperative}
			s.ProcessedInterceptors = []string{"other.example.com", coordinationv1alpha1.EvictionInterceptorDeployment}
		}), evicting},
		"the ReplicaSet after": {request(func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.ActiveInterceptors = []string{coordinationv1alpha1.EvictionInterceptorReplicaSet}
			s.ProcessedInterceptors = []string{coordinationv1alpha1.EvictionInterceptorDeployment}
		}), evicting},
		"all had their turn": {request(func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.ActiveInterceptors = nil
			s.ProcessedInterceptors = []string{coordinationv1alpha1.EvictionInterceptorDeployment}
		}), evicting},
		"another interceptor after": {request(func(s *coordinationv1alpha1.EvictionRequestStatus) {
			s.ActiveInterceptors = []string{"other.example.com"}
			s.ProcessedInterceptors = []string{coordinationv1alpha1.EvictionInterceptorDeployment}
		}), passedOn},
		"canceled": {request(done("Canceled")), notAsked},
		"evicted":  {request(done("Evicted")), notAsked},
		"canceled after it was passed on": {request(func(s *coordinationv1alpha1.EvictionRequestStatus) {
			done("Canceled")(s)
			s.ActiveInterceptors = nil
			s.ProcessedInterceptors = []string{coordinationv1alpha1.EvictionInterceptorDeployment}
		}), notAsked},
		"new": {&coordinationv1alpha1.EvictionRequest{}, notAsked},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := turnIn(tc.request); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCondition(t *testing.T) {
	clock := testingclock.NewFakeClock(began)
	s := &surger{clock: clock, progress: map[types.UID]progress{}, requestsSynced: func() bool { return true }}
	d := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "web"}}
	available := apps.DeploymentCondition{Type: apps.DeploymentAvailable, Status: v1.ConditionTrue}
	progressing := apps.DeploymentCondition{Type: apps.DeploymentProgressing, Status: v1.ConditionTrue}
	status := apps.DeploymentStatus{Conditions: []apps.DeploymentCondition{available}}
	expect := func(what string, want ...apps.DeploymentCondition) {
		t.Helper()
		if diff := cmp.Diff(want, status.Conditions); diff != "" {
			t.Errorf("%s: unexpected conditions (-want, +got):\n%s", what, diff)
		}
	}
	s.setCondition(&status, d)
	expect("no eviction", available)

	s.progress["web"] = progress{asked: 2}
	s.setCondition(&status, d)
	condition := apps.DeploymentCondition{
		Type: "EvictionInProgress", Status: v1.ConditionTrue, Reason: "Waiting", Message: "Pods waiting for a replacement before their eviction: 2. Their EvictionRequests show the reason.",
		LastUpdateTime: metav1.NewTime(began), LastTransitionTime: metav1.NewTime(began),
	}
	expect("no room", available, condition)

	s.progress["web"] = progress{asked: 2, paced: true}
	s.setCondition(&status, d)
	pacing := condition
	pacing.Message = "Pods waiting for other pods before their eviction: 2. Their EvictionRequests show the reason."
	expect("without a surge", available, pacing)

	status.Conditions = append(status.Conditions, progressing)
	clock.SetTime(later)
	s.progress["web"] = progress{asked: 2, surge: 1}
	s.setCondition(&status, d)
	condition.Reason, condition.LastUpdateTime = "Surging", metav1.NewTime(later)
	condition.Message = "Surging 0/1: pods are removed when their replacements are available."
	expect("a surge starts, updated in place", available, condition, progressing)

	clock.SetTime(later.Add(time.Minute))
	s.setCondition(&status, d)
	expect("no change", available, condition, progressing)

	s.progress["web"] = progress{surge: 1, replaced: 1}
	s.progress["other"] = progress{asked: 5, surge: 3}
	if got := s.countSurges(); got != 4 {
		t.Errorf("counts %d replicas of surges, want 4", got)
	}
	s.setCondition(&status, d)
	condition.LastUpdateTime = metav1.NewTime(later.Add(time.Minute))
	condition.Message = "Surging 1/1: pods are removed when their replacements are available."
	expect("the replacement is available", available, condition, progressing)

	left := *status.DeepCopy()
	delete(s.progress, "web")
	s.setCondition(&status, d)
	expect("it is over", available, progressing)

	status = *left.DeepCopy()
	restarted := &surger{clock: clock, requestsSynced: func() bool { return false }}
	restarted.setCondition(&status, d)
	expect("after a restart, as long as no requests are known", left.Conditions...)

	status = left
	(*surger)(nil).setCondition(&status, d)
	expect("the gate was turned off", available, progressing)
	if deploymentutil.GetDeploymentCondition(left, DeploymentEvictionInProgress) == nil {
		t.Error("the condition was not set before: the test is void")
	}
}
