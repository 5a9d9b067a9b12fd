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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// api is another Deployment.
func api() *apps.Deployment {
	return web(func(d *apps.Deployment) { d.Name, d.UID = "api", "api-uid" })
}

func ofAPI(rs *apps.ReplicaSet) {
	rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(api(), controllerKind)}
}

// reported is a request for which the Deployment controller has sent a heartbeat.
func reported(request *coordinationv1alpha1.EvictionRequest) {
	request.Status.Interceptors[0].HeartbeatTime = ptr.To(metav1.NewTime(bubbleBegins))
}

func completed(request *coordinationv1alpha1.EvictionRequest) {
	request.Status.Interceptors[0].CompletionTime = ptr.To(metav1.NewTime(bubbleBegins))
}

func relabeled(p *v1.Pod) { p.Labels = map[string]string{"app": "web", "checked": "yes"} }

// renewed is a new pod with the same name.
func renewed(p *v1.Pod) { p.UID = "renewed-uid" }

func TestRequestsWake(t *testing.T) {
	tests := map[string]struct {
		before, after *coordinationv1alpha1.EvictionRequest
		pod           func(*v1.Pod)
		wakes         bool
	}{
		"asked":                               {after: asks("a"), wakes: true},
		"asked, but it is not our turn":       {after: asks("a", notYet)},
		"our turn":                            {before: asks("a", notYet), after: asks("a"), wakes: true},
		"our turn, and a heartbeat":           {before: asks("a"), after: asks("a", reported)},
		"our turn is complete":                {before: asks("a"), after: asks("a", completed), wakes: true},
		"passed on":                           {before: asks("a"), after: asks("a", passed), wakes: true},
		"passed on after it was complete":     {before: asks("a", completed), after: asks("a", passed), wakes: true},
		"passed on to another interceptor":    {before: asks("a", completed), after: asks("a", passedTo("saver.example.com"))},
		"only the eviction is left":           {before: asks("a", passedTo("saver.example.com")), after: asks("a", passedTo("imperative-eviction.k8s.io")), wakes: true},
		"canceled":                            {before: asks("a"), after: asks("a", holding("Canceled")), wakes: true},
		"canceled after it was passed on":     {before: asks("a", passed), after: asks("a", passed, holding("Canceled")), wakes: true},
		"canceled before our turn":            {before: asks("a", notYet), after: asks("a", notYet, holding("Canceled"))},
		"evicted":                             {before: asks("a"), after: asks("a", holding("Evicted")), wakes: true},
		"deleted":                             {before: asks("a"), wakes: true},
		"deleted after it was passed on":      {before: asks("a", passed), wakes: true},
		"deleted after it was canceled":       {before: asks("a", holding("Canceled"))},
		"for another pod of that name":        {after: asks("a"), pod: renewed},
		"for a missing pod":                   {after: asks("b")},
		"for a pod without a controller":      {after: asks("a"), pod: alone},
		"deleted, for another pod of it":      {before: asks("a"), pod: renewed},
		"for something that is not a pod yet": {after: asks("a", func(request *coordinationv1alpha1.EvictionRequest) { request.Spec.Target.Pod = nil })},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := webPod("a")
			if tc.pod != nil {
				tc.pod(pod)
			}
			objects := []runtime.Object{web(), web1(), pod}
			if tc.before != nil {
				objects = append(objects, tc.before)
			}
			withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
				if tc.after != nil {
					f.put(tc.after)
				} else {
					f.remove(tc.before)
				}
				f.expectWoken(tc.wakes)
			})
		})
	}
}

// expectWoken checks that web alone was enqueued, or no Deployment at all.
func (f *surgeFixture) expectWoken(want bool) {
	f.t.Helper()
	var woken []string
	if want {
		woken = []string{"web-uid"}
	}
	if diff := cmp.Diff(woken, f.forgetWoken()); diff != "" {
		f.t.Errorf("woken (-want, +got):\n%s", diff)
	}
}

func TestPodsWake(t *testing.T) {
	surge := annotated(`{"surge":1,"of":1,"desired":1}`) // Its validity does not matter.
	tests := map[string]struct {
		replicaSet []func(*apps.ReplicaSet)
		// before and after are nil if the pod is created or deleted.
		before, after []func(*v1.Pod)
		// wakes is for a pod without an open turn, wakesInTurn for one with an open turn.
		wakes, wakesInTurn bool
	}{
		"becomes ready":        {replicaSet: []func(*apps.ReplicaSet){surge}, before: changed(unready), after: changed(), wakes: true, wakesInTurn: true},
		"becomes unready":      {replicaSet: []func(*apps.ReplicaSet){surge}, before: changed(), after: changed(unready), wakes: true, wakesInTurn: true},
		"terminates":           {replicaSet: []func(*apps.ReplicaSet){surge}, before: changed(), after: changed(terminating), wakes: true, wakesInTurn: true},
		"ends":                 {replicaSet: []func(*apps.ReplicaSet){surge}, before: changed(), after: changed(ended), wakes: true, wakesInTurn: true},
		"is created":           {replicaSet: []func(*apps.ReplicaSet){surge}, after: changed(starting), wakes: true, wakesInTurn: true},
		"is deleted":           {replicaSet: []func(*apps.ReplicaSet){surge}, before: changed(terminating), wakes: true},
		"is relabeled":         {replicaSet: []func(*apps.ReplicaSet){surge}, before: changed(), after: changed(relabeled)},
		"starts":               {replicaSet: []func(*apps.ReplicaSet){surge}, before: changed(starting), after: changed(starting, relabeled)},
		"is adopted":           {replicaSet: []func(*apps.ReplicaSet){surge}, before: changed(alone), after: changed(), wakes: true, wakesInTurn: true},
		"is released":          {replicaSet: []func(*apps.ReplicaSet){surge}, before: changed(), after: changed(alone)},
		"without a controller": {replicaSet: []func(*apps.ReplicaSet){surge}, before: changed(alone, unready), after: changed(alone)},

		"of a ReplicaSet without a surge, becomes ready": {before: changed(unready), after: changed(), wakesInTurn: true},
		"of a ReplicaSet without a surge, terminates":    {before: changed(), after: changed(terminating), wakesInTurn: true},
		"of a ReplicaSet that was recreated": {
			replicaSet: []func(*apps.ReplicaSet){surge, func(rs *apps.ReplicaSet) { rs.UID = "new-web-1-uid" }},
			before:     changed(unready), after: changed(),
		},
		"of an orphaned ReplicaSet": {replicaSet: []func(*apps.ReplicaSet){surge, orphaned}, before: changed(unready), after: changed()},
		"of a Deployment that was recreated": {
			replicaSet: []func(*apps.ReplicaSet){surge, func(rs *apps.ReplicaSet) { rs.OwnerReferences[0].UID = "old-web-uid" }},
			before:     changed(unready), after: changed(),
		},
	}
	for name, tc := range tests {
		for _, inTurn := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", in its turn"}[inTurn], func(t *testing.T) {
				objects := []runtime.Object{web(), web1(tc.replicaSet...)}
				if tc.before != nil {
					objects = append(objects, webPod("a", tc.before...))
				}
				if inTurn {
					objects = append(objects, asks("a"))
				}
				withSurger(t, objects, func(t *testing.T, f *surgeFixture) {
					if inTurn {
						defer f.intercept()()
						time.Sleep(10 * time.Second)
						f.forgetWoken()
					}
					if tc.after != nil {
						f.put(webPod("a", tc.after...))
					} else {
						f.remove(webPod("a", tc.before...))
					}
					f.expectWoken(tc.wakes && !inTurn || tc.wakesInTurn && inTurn)
				})
			})
		}
	}
}

// changed returns the changes of a pod. Without any it is empty, but not nil.
func changed(changes ...func(*v1.Pod)) []func(*v1.Pod) {
	if changes == nil {
		return []func(*v1.Pod){}
	}
	return changes
}

// TestOwnersWake changes the owners of a pod of web while its turn is open.
func TestOwnersWake(t *testing.T) {
	const noDeployment = "No Deployment controls the pod."
	tests := map[string]struct {
		happens   func(*surgeFixture)
		wantWoken []string
		// wantMessage is the expected message of a completed turn.
		wantMessage string
	}{
		"the Deployment is deleted":           {happens: func(f *surgeFixture) { f.remove(web()) }, wantMessage: noDeployment},
		"the Deployment is recreated":         {happens: func(f *surgeFixture) { f.put(web(func(d *apps.Deployment) { d.UID = "new-web-uid" })) }, wantMessage: noDeployment},
		"the Deployment changes":              {happens: func(f *surgeFixture) { f.put(web(withReplicas(5, 1))) }},
		"another Deployment is deleted":       {happens: func(f *surgeFixture) { f.remove(api()) }},
		"the ReplicaSet is deleted":           {happens: func(f *surgeFixture) { f.remove(web1()) }, wantMessage: noDeployment},
		"the ReplicaSet is orphaned":          {happens: func(f *surgeFixture) { f.put(web1(orphaned)) }, wantMessage: noDeployment},
		"the ReplicaSet changes":              {happens: func(f *surgeFixture) { f.put(web1(sized(5, 5, 6))) }},
		"another ReplicaSet of it is lost":    {happens: func(f *surgeFixture) { f.remove(web1(asWeb2)) }, wantWoken: []string{"web-uid"}},
		"another Deployment's is lost":        {happens: func(f *surgeFixture) { f.remove(web1(asWeb2, ofAPI)) }},
		"another Deployment gets the pod":     {happens: func(f *surgeFixture) { f.put(web1(ofAPI)) }, wantWoken: []string{"api-uid"}},
		"another one has it, web is deleted":  {happens: func(f *surgeFixture) { f.put(web1(ofAPI)); f.forgetWoken(); f.remove(web()) }},
		"another one has it, and is deleted":  {happens: func(f *surgeFixture) { f.put(web1(ofAPI)); f.forgetWoken(); f.remove(api()) }, wantMessage: noDeployment},
		"another one has it, the pod changes": {happens: func(f *surgeFixture) { f.put(web1(ofAPI)); f.forgetWoken(); f.put(webPod("a", unready)) }, wantWoken: []string{"api-uid"}},
		"the pod is released":                 {happens: func(f *surgeFixture) { f.put(webPod("a", alone)) }, wantMessage: noDeployment},
		"another pod of that name is there":   {happens: func(f *surgeFixture) { f.put(webPod("a", renewed)) }},
		"another pod of that name, orphaned":  {happens: func(f *surgeFixture) { f.put(webPod("a", renewed, alone)) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			other := web1(asWeb2)
			if name == "another Deployment's is lost" {
				other = web1(asWeb2, ofAPI)
			}
			withSurger(t, []runtime.Object{web(), api(), web1(), other, webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
				defer f.intercept()()
				time.Sleep(10 * time.Second)
				f.forgetWoken()
				tc.happens(f)
				if diff := cmp.Diff(tc.wantWoken, f.forgetWoken()); diff != "" {
					t.Errorf("woken (-want, +got):\n%s", diff)
				}
				time.Sleep(time.Second)
				entry := f.entry("a-uid")
				if done := entry.CompletionTime != nil; done != (tc.wantMessage != "") || done && entry.Message != tc.wantMessage {
					t.Errorf("the entry is %v, want it complete with %q", entry, tc.wantMessage)
				}
			})
		})
	}
}

// asWeb2 is another ReplicaSet.
func asWeb2(rs *apps.ReplicaSet) { rs.Name, rs.UID = "web-2", "web-2-uid" }

// TestTurnBeforeItsPod makes the request arrive before the pod.
func TestTurnBeforeItsPod(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), asks("a")}, func(t *testing.T, f *surgeFixture) {
		defer f.intercept()()
		time.Sleep(time.Minute)
		f.expectWoken(false)
		if entry := f.entry("a-uid"); entry.CompletionTime != nil {
			t.Errorf("the turn is over, although the pod is not known: %v", entry)
		}
		f.put(webPod("a"))
		f.expectWoken(true)
	})
}

func TestSameController(t *testing.T) {
	tests := map[string]struct {
		a, b *v1.Pod
		want bool
	}{
		"the same":      {webPod("a"), webPod("b"), true},
		"none":          {webPod("a", alone), webPod("b", alone), true},
		"released":      {webPod("a"), webPod("a", alone), false},
		"adopted":       {webPod("a", alone), webPod("a"), false},
		"the same name": {webPod("a"), webPod("a", func(p *v1.Pod) { p.OwnerReferences[0].UID = "new-web-1-uid" }), false},
		"no controller": {webPod("a"), webPod("a", func(p *v1.Pod) { p.OwnerReferences[0].Controller = nil }), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := sameController(tc.a, tc.b); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestTombstones handles deletions that the informer has missed.
func TestTombstones(t *testing.T) {
	surge := annotated(`{"surge":1,"of":1,"desired":1}`)
	tests := map[string]struct {
		deleted func(*surger, any)
		obj     any
		wakes   bool
	}{
		"request":    {func(s *surger, obj any) { s.requestChanged(nil, obj) }, asks("a"), true},
		"pod":        {func(s *surger, obj any) { s.podChanged(nil, obj) }, webPod("b"), true},
		"no request": {func(s *surger, obj any) { s.requestChanged(nil, obj) }, "a-uid", false},
		"no pod":     {func(s *surger, obj any) { s.podChanged(nil, obj) }, "b-uid", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			withSurger(t, []runtime.Object{web(), web1(surge), webPod("a")}, func(t *testing.T, f *surgeFixture) {
				tc.deleted(f.dc.surger, cache.DeletedFinalStateUnknown{Obj: tc.obj})
				f.expectWoken(tc.wakes)
			})
		})
	}
}

// TestDeletedDeploymentIsForgotten deletes a Deployment with progress to report.
func TestDeletedDeploymentIsForgotten(t *testing.T) {
	withSurger(t, []runtime.Object{web(), web1(), webPod("a"), asks("a")}, func(t *testing.T, f *surgeFixture) {
		if _, err := f.surge(); err != nil {
			t.Fatal(err)
		}
		want := map[string]progress{"web-uid": {asked: 1, surge: 1}}
		if diff := cmp.Diff(want, f.progress(), cmp.AllowUnexported(progress{})); diff != "" {
			t.Errorf("unexpected progress (-want, +got):\n%s", diff)
		}
		f.remove(web())
		if left := f.progress(); len(left) > 0 {
			t.Errorf("progress of a Deployment that is gone: %v", left)
		}
	})
}

func (f *surgeFixture) progress() map[string]progress {
	f.dc.surger.lock.Lock()
	defer f.dc.surger.lock.Unlock()
	all := map[string]progress{}
	for uid, p := range f.dc.surger.progress {
		all[string(uid)] = p
	}
	return all
}
