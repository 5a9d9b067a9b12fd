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
	"errors"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"
)

const (
	daemonSetInterceptor  = coordinationv1alpha1.EvictionInterceptorDaemonSet
	deploymentInterceptor = coordinationv1alpha1.EvictionInterceptorDeployment
)

// newOwner returns the ReplicaSet "owner", which its controller has seen, and which removes these pods.
func newOwner(leaving ...types.UID) *apps.ReplicaSet {
	rs := &apps.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner", UID: "owner-uid", Generation: 2},
		Spec:       apps.ReplicaSetSpec{Replicas: ptr.To[int32](1)},
		Status:     apps.ReplicaSetStatus{ObservedGeneration: 2},
	}
	deploymentutil.SetEvictionSurge(rs, deploymentutil.EvictionSurge{Leaving: leaving})
	return rs
}

func owner(change func(*apps.ReplicaSet)) *apps.ReplicaSet {
	rs := newOwner()
	change(rs)
	return rs
}

// TestDeletionInFlight: Canceled does not say that the pod stays while its owner may have sent its deletion for the
// request, and not for longer than such a call can take.
func TestDeletionInFlight(t *testing.T) {
	const foreignReplicaSet = "a ReplicaSet of another API group"
	started, completed := alive(daemonSetInterceptor, 0, 0), done(daemonSetInterceptor, 0)
	surged := []func(*coordinationv1alpha1.EvictionRequestStatus){targets(deploymentInterceptor), active(deploymentInterceptor, 0)}
	for name, test := range map[string]struct {
		status []func(*coordinationv1alpha1.EvictionRequestStatus)
		owner  string
		rs     *apps.ReplicaSet
		want   bool
	}{
		"no interceptor that deletes":            {owner: "ReplicaSet", rs: newOwner(podUID), want: true},
		"the DaemonSet controller has begun":     {status: []func(*coordinationv1alpha1.EvictionRequestStatus){targets(daemonSetInterceptor), active(daemonSetInterceptor, 0), reporting(started)}},
		"the DaemonSet controller has not begun": {status: []func(*coordinationv1alpha1.EvictionRequestStatus){targets(daemonSetInterceptor), active(daemonSetInterceptor, 0)}, want: true},
		"the DaemonSet controller has no entry": {status: []func(*coordinationv1alpha1.EvictionRequestStatus){
			targets(daemonSetInterceptor), active(daemonSetInterceptor, 0), func(status *coordinationv1alpha1.EvictionRequestStatus) { status.Interceptors = nil },
		}, want: true},
		"the DaemonSet controller is done":              {status: []func(*coordinationv1alpha1.EvictionRequestStatus){targets(daemonSetInterceptor), active(daemonSetInterceptor, 0), reporting(completed)}, want: true},
		"the ReplicaSet removes the pod":                {status: surged, owner: "ReplicaSet", rs: newOwner(podUID)},
		"the ReplicaSet removed it, by an older record": {status: surged, owner: "ReplicaSet", rs: owner(func(rs *apps.ReplicaSet) { *rs = *newOwner(podUID); rs.Spec.Replicas = ptr.To[int32](9) })},
		"the ReplicaSet removes another pod":            {status: surged, owner: "ReplicaSet", rs: newOwner(otherUID), want: true},
		"its controller has yet to see a change":        {status: surged, owner: "ReplicaSet", rs: owner(func(rs *apps.ReplicaSet) { rs.Generation++ })},
		"the ReplicaSet removes nothing":                {status: surged, owner: "ReplicaSet", rs: newOwner(), want: true},
		"another ReplicaSet of that name":               {status: surged, owner: "ReplicaSet", rs: owner(func(rs *apps.ReplicaSet) { *rs = *newOwner(podUID); rs.UID = "other" }), want: true},
		"no such ReplicaSet":                            {status: surged, owner: "ReplicaSet", want: true},
		"an owner of another kind":                      {status: surged, owner: "StatefulSet", rs: newOwner(podUID), want: true},
		"an owner of another API group":                 {status: surged, owner: foreignReplicaSet, rs: newOwner(podUID), want: true},
		"no owner":                                      {status: surged, rs: newOwner(podUID), want: true},
		"the Deployment has passed the pod on": {status: []func(*coordinationv1alpha1.EvictionRequestStatus){
			targets(deploymentInterceptor), processed(deploymentInterceptor), active(coordinationv1alpha1.EvictionInterceptorImperative, 0),
		}, owner: "ReplicaSet", rs: newOwner(podUID)},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod()
			switch test.owner {
			case "":
			case foreignReplicaSet:
				ownedBy("ReplicaSet", true)(pod)
				pod.OwnerReferences[0].APIVersion = "example.com/v1"
			default:
				ownedBy(test.owner, true)(pod)
			}
			request := newRequest(withoutRequesters, having(test.status...))
			f := newFixture(t, request, pod)
			if test.rs != nil {
				if err := f.client.Tracker().Add(test.rs); err != nil {
					t.Fatal(err)
				}
			}
			if stays, err := f.confirmStays(t.Context(), request); err != nil || stays != test.want {
				t.Errorf("stays: %t, error %v, want %t", stays, err, test.want)
			}
			if test.want {
				return
			}
			f.clock.Step(deletionTimeout)
			if stays, _ := f.confirmStays(t.Context(), request); stays {
				t.Error("the call may still be in flight, and Canceled would be written")
			}
			f.clock.Step(time.Second)
			if stays, err := f.confirmStays(t.Context(), request); err != nil || !stays {
				t.Errorf("no call takes that long, but the pod stays: %t, error %v", stays, err)
			}
		})
	}
}

// The request waits while its pod may be deleted, and is canceled when the ReplicaSet no longer removes it.
func TestCanceledWhenNoDeletionIsInFlight(t *testing.T) {
	pod := newPod(ownedBy("ReplicaSet", true))
	request := newRequest(withoutRequesters, having(targets(deploymentInterceptor), active(deploymentInterceptor, 0)))
	f := newFixture(t, request, pod)
	rs := newOwner(podUID)
	if err := f.client.Tracker().Add(rs); err != nil {
		t.Fatal(err)
	}
	if err := f.syncRequest(t.Context(), requestKeyOfPod); err != nil {
		t.Fatal(err)
	}
	f.expectCanceled(t, "while it removes the pod", false)
	if waits := f.decisions.waits(requestKeyOfPod); waits != leaveInterval {
		t.Errorf("synced again after %v, want %v", waits, leaveInterval)
	}
	if err := f.client.Tracker().Update(apps.SchemeGroupVersion.WithResource("replicasets"), newOwner(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := f.syncRequest(t.Context(), requestKeyOfPod); err != nil {
		t.Fatal(err)
	}
	f.expectCanceled(t, "when it no longer does", true)
}

// expectCanceled compares whether the last status that was written says Canceled.
func (f *fixture) expectCanceled(t *testing.T, what string, want bool) {
	t.Helper()
	canceled := false
	for _, status := range f.writes(t) {
		canceled = canceled || meta.IsStatusConditionTrue(status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionCanceled))
	}
	if canceled != want {
		t.Errorf("%s: Canceled is written: %t, want %t", what, canceled, want)
	}
}

// An API server that does not let the controller read ReplicaSets must not keep requests from being canceled, one that
// does not answer must.
func TestReplicaSetThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		stays   bool
		wantErr bool
	}{
		"forbidden":   {err: apierrors.NewForbidden(apps.Resource("replicasets"), "owner", errors.New("no role")), stays: true},
		"unavailable": {err: apierrors.NewServiceUnavailable("starting"), wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			request := newRequest(withoutRequesters, having(targets(deploymentInterceptor), active(deploymentInterceptor, 0)))
			f := newFixture(t, request, newPod(ownedBy("ReplicaSet", true)))
			f.client.PrependReactor("get", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
			if stays, err := f.confirmStays(t.Context(), request); stays != test.stays || (err != nil) != test.wantErr {
				t.Errorf("stays: %t, error %v, want %t, an error: %t", stays, err, test.stays, test.wantErr)
			}
		})
	}
}

// A request that is wanted again, and withdrawn again, waits again: the deletion may be a later one.
func TestNextWithdrawalWaitsAgain(t *testing.T) {
	pod := newPod(ownedBy("ReplicaSet", true))
	status := having(targets(deploymentInterceptor), active(deploymentInterceptor, 0))
	withdrawn, wanted := newRequest(withoutRequesters, status), newRequest(status)
	f := newFixture(t, wanted, pod)
	if err := f.client.Tracker().Add(newOwner(podUID)); err != nil {
		t.Fatal(err)
	}
	if stays, err := f.confirmStays(t.Context(), withdrawn); err != nil || stays {
		t.Fatalf("stays: %t, error %v", stays, err)
	}
	f.clock.Step(deletionTimeout + time.Second)
	if err := f.syncRequest(t.Context(), requestKeyOfPod); err != nil {
		t.Fatal(err)
	}
	if stays, err := f.confirmStays(t.Context(), withdrawn); err != nil || stays {
		t.Errorf("after the next withdrawal, stays: %t, error %v", stays, err)
	}
}

// The escalation of a maintenance marks the pods that it deletes.
func TestMarkOfAnEscalation(t *testing.T) {
	request := newRequest(withoutRequesters)
	f := newFixture(t, request, newPod(func(pod *v1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "DeletionByNodeMaintenance", LastTransitionTime: *at(0),
		})
	}))
	if stays, err := f.confirmStays(t.Context(), request); err != nil || stays {
		t.Errorf("stays: %t, error %v", stays, err)
	}
	f.clock.Step(markTTL + time.Second)
	if stays, err := f.confirmStays(t.Context(), request); err != nil || !stays {
		t.Errorf("after a long time, stays: %t, error %v", stays, err)
	}
}

// A deletion that another process has sent, which led before, may be in flight although the ReplicaSet says that it
// removes nothing: that is what this process has made of it.
func TestDeletionOfTheLeaderBefore(t *testing.T) {
	for name, test := range map[string]struct {
		status []func(*coordinationv1alpha1.EvictionRequestStatus)
		want   bool
	}{
		"the Deployment is active":  {status: []func(*coordinationv1alpha1.EvictionRequestStatus){targets(deploymentInterceptor), active(deploymentInterceptor, 0)}},
		"the Deployment was active": {status: []func(*coordinationv1alpha1.EvictionRequestStatus){targets(deploymentInterceptor), processed(deploymentInterceptor), active(coordinationv1alpha1.EvictionInterceptorImperative, 0)}},
		"it was not": {
			status: []func(*coordinationv1alpha1.EvictionRequestStatus){targets("x.example.com", deploymentInterceptor), active("x.example.com", 0)}, want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			request := newRequest(withoutRequesters, having(test.status...))
			f := newFixture(t, request, newPod(ownedBy("ReplicaSet", true)))
			if err := f.client.Tracker().Add(newOwner()); err != nil {
				t.Fatal(err)
			}
			f.noteInherited()
			f.clock.Step(deletionTimeout)
			if stays, err := f.confirmStays(t.Context(), request); err != nil || stays != test.want {
				t.Errorf("while the call may be in flight, stays: %t, error %v, want %t", stays, err, test.want)
			}
			f.clock.Step(time.Second)
			if stays, err := f.confirmStays(t.Context(), request); err != nil || !stays {
				t.Errorf("no call takes that long, but the pod stays: %t, error %v", stays, err)
			}
		})
	}
}

// A request whose Deployment becomes active while this process leads needs no such wait.
func TestNothingIsInheritedLater(t *testing.T) {
	status := having(targets(deploymentInterceptor), active(deploymentInterceptor, 0))
	f := newFixture(t, newPod(ownedBy("ReplicaSet", true)))
	if err := f.client.Tracker().Add(newOwner()); err != nil {
		t.Fatal(err)
	}
	f.noteInherited()
	if stays, err := f.confirmStays(t.Context(), newRequest(withoutRequesters, status)); err != nil || !stays {
		t.Errorf("stays: %t, error %v", stays, err)
	}
}

// What was inherited is forgotten with its request.
func TestWhatIsInheritedIsForgotten(t *testing.T) {
	f := newFixture(t, newRequest(having(targets(deploymentInterceptor), active(deploymentInterceptor, 0))), newPod())
	f.noteInherited()
	if !f.inherited.has(podUID) {
		t.Error("it is not remembered")
	}
	f.forget(requestKeyOfPod)
	if f.inherited.has(podUID) {
		t.Error("it is not forgotten")
	}
}

// A kubelet goes on with the stop of a static pod that it has begun, whatever becomes of the request. The request is
// canceled when that must have ended, or when the kubelet cannot have begun.
func TestStopOfAStaticPodInFlight(t *testing.T) {
	const kubelet = coordinationv1alpha1.EvictionInterceptorKubelet
	static := func(graceSeconds int64) *v1.Pod {
		return newPod(func(pod *v1.Pod) {
			pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: ""}
			pod.Spec.TerminationGracePeriodSeconds = &graceSeconds
		})
	}
	started, stopping, completed := alive(kubelet, 0, 0), alive(kubelet, 0, 0), done(kubelet, 0)
	stopping.ExpectedFinishTime = at(time.Minute)
	withoutDefault := static(0)
	withoutDefault.Spec.TerminationGracePeriodSeconds = nil
	for name, test := range map[string]struct {
		entry coordinationv1alpha1.InterceptorStatus
		pod   *v1.Pod
		want  time.Duration
	}{
		"the kubelet has not begun":                 {entry: coordinationv1alpha1.InterceptorStatus{Name: kubelet}, pod: static(60)},
		"it may have begun":                         {entry: started, pod: static(60), want: 30 * time.Second},
		"it stops the pod":                          {entry: stopping, pod: static(60), want: 3 * time.Minute},
		"it stops the pod, without a grace period":  {entry: stopping, pod: withoutDefault, want: 2*time.Minute + 30*time.Second},
		"it stops the pod, which may take for ever": {entry: stopping, pod: static(1 << 60), want: time.Hour},
		"it has stopped it":                         {entry: completed, pod: static(60)},
	} {
		t.Run(name, func(t *testing.T) {
			request := newRequest(withoutRequesters, having(targets(kubelet), active(kubelet, 0), reporting(test.entry)))
			f := newFixture(t, request, test.pod)
			if test.want > 0 {
				if stays, err := f.confirmStays(t.Context(), request); err != nil || stays {
					t.Fatalf("stays: %t, error %v, want that it may leave", stays, err)
				}
				f.clock.Step(test.want)
				if stays, err := f.confirmStays(t.Context(), request); err != nil || stays {
					t.Fatalf("after %v, stays: %t, error %v, want that it may leave", test.want, stays, err)
				}
				f.clock.Step(time.Second)
			}
			if stays, err := f.confirmStays(t.Context(), request); err != nil || !stays {
				t.Errorf("stays: %t, error %v, want that it does", stays, err)
			}
		})
	}
}

// The request of a static pod that the kubelet goes on to stop ends as Evicted.
func TestStoppedStaticPodIsNotCanceled(t *testing.T) {
	const kubelet = coordinationv1alpha1.EvictionInterceptorKubelet
	stopping := alive(kubelet, 0, 0)
	stopping.ExpectedFinishTime = at(time.Minute)
	pod := newPod(func(pod *v1.Pod) { pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: ""} })
	request := newRequest(withoutRequesters, having(targets(kubelet), active(kubelet, 0), reporting(stopping)))
	f := newFixture(t, request, pod)
	if err := f.syncRequest(t.Context(), requestKeyOfPod); err != nil {
		t.Fatal(err)
	}
	f.expectCanceled(t, "while the kubelet stops the pod", false)
	if waits := f.decisions.waits(requestKeyOfPod); waits != leaveInterval {
		t.Errorf("synced again after %v, want %v", waits, leaveInterval)
	}
	f.sendDelete(t, pod)
	if err := f.syncRequest(t.Context(), requestKeyOfPod); err != nil {
		t.Fatal(err)
	}
	f.expectCanceled(t, "when the pod is gone", false)
	writes := f.writes(t)
	if len(writes) == 0 || !meta.IsStatusConditionTrue(writes[len(writes)-1].Conditions, string(coordinationv1alpha1.EvictionRequestConditionEvicted)) {
		t.Errorf("got writes %v, want Evicted", writes)
	}
}
