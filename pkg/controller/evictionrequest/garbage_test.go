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
	"context"
	"slices"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/test/utils/ktesting"
)

func TestIsGarbage(t *testing.T) {
	evictedThen := having(targets(), processed(builtIn), condition(evicted, metav1.ConditionTrue, "PodDeleted", "", time.Minute))
	canceledThen := having(targets(), processed(builtIn), condition(canceled, metav1.ConditionTrue, "NoRequesters", "", time.Minute))
	invalid := having(condition(canceled, metav1.ConditionTrue, "ValidationFailed", "", time.Minute))

	tests := map[string]struct {
		after   time.Duration
		request *coordinationv1alpha1.EvictionRequest
		forever bool
		// misnamed: the request has the name of the request for another pod.
		misnamed bool
		want     bool
	}{
		"an active request":             {after: time.Hour, request: newRequest(having(targets(), active(builtIn, 0)))},
		"a condition that is not True":  {after: time.Hour, request: newRequest(having(condition(evicted, metav1.ConditionFalse, "", "", 0)))},
		"a second before the TTL ends":  {after: time.Hour + 59*time.Second, request: newRequest(evictedThen)},
		"when the TTL ends":             {after: time.Hour + 60*time.Second, request: newRequest(evictedThen), want: true},
		"canceled, when the TTL ends":   {after: time.Hour + 60*time.Second, request: newRequest(withoutRequesters, canceledThen), want: true},
		"kept forever":                  {after: 1000 * time.Hour, request: newRequest(evictedThen), forever: true},
		"other finalizers keep it":      {after: 1000 * time.Hour, request: newRequest(beingDeleted, evictedThen)},
		"a requester is added":          {request: newRequest(generation(2), canceledThen), want: true},
		"a requester, and no TTL":       {request: newRequest(generation(2), canceledThen), forever: true, want: true},
		"a requester while deleting":    {request: newRequest(generation(2), beingDeleted, canceledThen)},
		"canceled, last one leaves":     {after: time.Minute, request: newRequest(generation(2), withoutRequesters, invalid)},
		"canceled with its requesters":  {after: time.Minute, request: newRequest(invalid)},
		"its pod exists now":            {request: newRequest(generation(2), invalid), want: true},
		"evicted, a requester is added": {after: time.Minute, request: newRequest(generation(2), evictedThen)},
		"evicted, with policy Forbid":   {after: 2 * time.Hour, request: newRequest(evictedThen, cancellationForbidden), want: true},
		"misnamed":                      {request: newRequest(invalid), misnamed: true, want: true},
		"misnamed, and no TTL":          {request: newRequest(invalid), forever: true, misnamed: true, want: true},
		"misnamed, while deleting":      {request: newRequest(beingDeleted, invalid), misnamed: true},
		"the clock was set back":        {after: -time.Hour, request: newRequest(evictedThen)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			keep := ttl
			if test.forever {
				keep = 0
			}
			if got := isGarbage(start.Add(test.after), test.request, keep, test.misnamed); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// TestContradictedRequest: a request that says that its pod was evicted is deleted if the pod runs, as after the
// restoration of a backup.
func TestContradictedRequest(t *testing.T) {
	over := newRequest(having(targets(), processed(builtIn), condition(evicted, metav1.ConditionTrue, "PodDeleted", "", 0)))
	stays := newRequest(having(targets(), processed(builtIn), condition(canceled, metav1.ConditionTrue, "NoRequesters", "", 0)))
	failed := newPod()
	failed.Status.Phase = v1.PodFailed
	for name, test := range map[string]struct {
		request      *coordinationv1alpha1.EvictionRequest
		cached, live *v1.Pod
		err          error
		want         bool
	}{
		"it runs":                        {request: over, cached: newPod(), live: newPod(), want: true},
		"it is gone":                     {request: over},
		"an old cache, gone":             {request: over, cached: newPod()},
		"an old cache, terminating":      {request: over, cached: newPod(), live: terminatingPod()},
		"an old cache, replaced":         {request: over, cached: newPod(), live: newPod(podUIDIs(otherUID))},
		"it terminates":                  {request: over, cached: terminatingPod(), live: terminatingPod()},
		"it has failed":                  {request: over, cached: failed, live: failed},
		"another pod has its name":       {request: over, cached: newPod(podUIDIs(otherUID)), live: newPod(podUIDIs(otherUID))},
		"canceled":                       {request: stays, cached: newPod(), live: newPod()},
		"the API server does not answer": {request: over, cached: newPod(), live: newPod(), err: errUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{test.request}
			if test.cached != nil {
				objects = append(objects, test.cached)
			}
			f := newFixture(t, objects...)
			f.Controller.pods = func(context.Context, string, string) (*v1.Pod, error) {
				switch {
				case test.err != nil:
					return nil, test.err
				case test.live == nil:
					return nil, notFound(podName)
				}
				return test.live, nil
			}
			_, ctx := ktesting.NewTestContext(t)
			if err := f.syncRequest(ctx, requestKeyOfPod); (err != nil) != (test.err != nil) {
				t.Fatalf("got error %v", err)
			}
			deleted := slices.ContainsFunc(f.client.Actions(), func(action clienttesting.Action) bool { return action.Matches("delete", "evictionrequests") })
			if deleted != test.want {
				t.Errorf("deleted: %t, want %t", deleted, test.want)
			}
		})
	}
}
