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

package history

import (
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const saver, mover, asker = "example.com/saver", "example.com/mover", "example.com/asker"

func (s *story) eviction(changes ...func(*lifecyclev1alpha1.Eviction)) {
	change(s, "Eviction", &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "pod-1-web-0", UID: "e"},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: "web-0", UID: podUID}}},
	}, changes...)
}

func (s *story) ask(changes ...func(*lifecyclev1alpha1.EvictionRequest)) {
	change(s, lifecycleRequest, &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "one", UID: "r"},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: "web-0", UID: podUID}},
			Requester: asker, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
		Status: lifecyclev1alpha1.EvictionRequestStatus{ObservedGeneration: ptr.To[int64](0)},
	}, changes...)
}

func actsOn(responders ...string) func(*lifecyclev1alpha1.Eviction) {
	return func(eviction *lifecyclev1alpha1.Eviction) {
		eviction.Status.TargetResponders = nil
		for _, name := range responders {
			eviction.Status.TargetResponders = append(eviction.Status.TargetResponders, lifecyclev1alpha1.TargetResponder{Name: name, State: lifecyclev1alpha1.ResponderStateActive})
		}
	}
}

func conditionOf(conditionType lifecyclev1alpha1.EvictionConditionType, reason lifecyclev1alpha1.EvictionConditionReason) []metav1.Condition {
	return []metav1.Condition{{Type: string(conditionType), Status: metav1.ConditionTrue, Reason: string(reason)}}
}

func ends(conditionType lifecyclev1alpha1.EvictionConditionType, reason lifecyclev1alpha1.EvictionConditionReason) func(*lifecyclev1alpha1.Eviction) {
	return func(eviction *lifecyclev1alpha1.Eviction) {
		eviction.Status.Conditions = conditionOf(conditionType, reason)
	}
}

func answered(conditionType lifecyclev1alpha1.EvictionConditionType, reason lifecyclev1alpha1.EvictionConditionReason) func(*lifecyclev1alpha1.EvictionRequest) {
	return func(request *lifecyclev1alpha1.EvictionRequest) {
		request.Status.Conditions = conditionOf(conditionType, reason)
	}
}

func requestedBy(names ...string) func(*coordinationv1alpha1.EvictionRequest) {
	return func(request *coordinationv1alpha1.EvictionRequest) {
		request.Spec.Requesters = nil
		for _, name := range names {
			request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: name})
		}
	}
}

// TestLifecycleRules tells histories of the objects of lifecycle.k8s.io.
func TestLifecycleRules(t *testing.T) {
	const podDeleted, noRequesters, invalid = lifecyclev1alpha1.EvictionConditionReasonPodDeleted, lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters, lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid
	const isEvicted, hasFailed = lifecyclev1alpha1.EvictionConditionTargetEvicted, lifecyclev1alpha1.EvictionConditionFailed
	for name, test := range map[string]struct {
		tell func(s *story)
		want string
	}{
		"a responder in its turn": {func(s *story) {
			s.pod()
			s.request(activate(saver))
			s.eviction()
			s.eviction(actsOn(saver))
		}, ""},
		"a responder whose turn is over just now": {func(s *story) {
			s.pod()
			s.request(activate(saver))
			s.request(activate(migrate), process(saver))
			s.eviction(actsOn(saver)) // Who wrote that may not have known it.
		}, ""},
		"a responder before its turn": {func(s *story) {
			s.pod()
			s.request(activate(migrate))
			s.eviction(actsOn(saver))
		}, "example.com/saver becomes Active, and it is not its turn"},
		"a responder long after its turn": {func(s *story) {
			s.pod()
			s.request(activate(saver))
			s.request(activate(migrate))
			s.wait(viewSlack + time.Second)
			s.eviction(actsOn(saver))
		}, "example.com/saver becomes Active, and it is not its turn"},
		"a responder that stays Active": {func(s *story) {
			s.pod()
			s.request(activate(saver))
			s.eviction(actsOn(saver))
			s.request(activate(migrate))
			s.wait(viewSlack + time.Second)
			s.eviction(func(eviction *lifecyclev1alpha1.Eviction) { eviction.Labels = map[string]string{"a": "b"} })
		}, ""},
		"two responders": {func(s *story) {
			s.pod()
			s.request(activate(saver))
			s.request(activate(mover))
			s.eviction(actsOn(saver, mover))
		}, "[example.com/saver example.com/mover] are Active"},
		"evicted": {func(s *story) {
			s.pod()
			s.eviction()
			s.ask()
			s.removePod()
			s.eviction(ends(isEvicted, podDeleted))
			s.ask(answered(isEvicted, podDeleted))
		}, ""},
		"terminal": {func(s *story) {
			s.pod(func(pod *v1.Pod) { pod.Status.Phase = v1.PodFailed })
			s.eviction()
			s.eviction(ends(isEvicted, podDeleted))
		}, ""},
		"evicted, and there is another one": {func(s *story) {
			s.pod()
			s.eviction()
			s.pod(func(pod *v1.Pod) { pod.UID = "another" })
			s.eviction(ends(isEvicted, podDeleted))
		}, ""},
		"an Eviction says evicted of a pod that runs": {func(s *story) {
			s.pod()
			s.eviction()
			s.eviction(ends(isEvicted, podDeleted))
		}, "it says that pod web-0 (UID 6b2a37a5) is evicted, which is Running"},
		"a request says evicted of a pod that runs": {func(s *story) {
			s.pod()
			s.ask()
			s.ask(answered(isEvicted, podDeleted))
		}, "it says that pod web-0 (UID 6b2a37a5) is evicted"},
		"invalid": {func(s *story) {
			s.ask()
			s.ask(answered(hasFailed, invalid))
		}, ""},
		"invalid, and the pod is there": {func(s *story) {
			s.pod()
			s.ask()
			s.ask(answered(hasFailed, invalid))
		}, "it says that there is no pod web-0"},
		"canceled, and requested again": {func(s *story) {
			s.pod()
			s.ask()
			s.ask(answered(hasFailed, noRequesters))
			s.ask(func(request *lifecyclev1alpha1.EvictionRequest) { request.Status.Conditions = nil })
		}, ""},
		"an Eviction that fails, and goes on": {func(s *story) {
			s.pod()
			s.eviction()
			s.eviction(ends(hasFailed, noRequesters))
			s.eviction(func(eviction *lifecyclev1alpha1.Eviction) { eviction.Status.Conditions = nil })
		}, "Failed was True and is not any more"},
		"an answer that is taken back": {func(s *story) {
			s.ask()
			s.ask(answered(isEvicted, podDeleted))
			s.ask(func(request *lifecyclev1alpha1.EvictionRequest) { request.Status.Conditions = nil })
		}, "TargetEvicted was True and is not any more"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			s.checker = NewChecker(LifecycleRules())
			test.tell(s)
			if test.want == "" && len(s.broken) > 0 || test.want != "" && (len(s.broken) != 1 || !strings.Contains(s.broken[0], test.want)) {
				t.Errorf("got %q, want %q", s.broken, test.want)
			}
		})
	}
}

// TestUnfinishedViews tells histories that have come to an end.
func TestUnfinishedViews(t *testing.T) {
	for name, test := range map[string]struct {
		tell func(s *story)
		want string
	}{
		"all agree": {func(s *story) {
			s.pod()
			s.ask()
			s.request(requestedBy(asker, "drain.example.com"), activate(saver))
			s.eviction(actsOn(saver))
		}, ""},
		"nobody is asked": {func(s *story) {
			s.pod()
			s.ask()
			s.request(requestedBy(asker), activate(saver))
			s.eviction()
		}, "it is the turn of example.com/saver for pod web-0, and no Eviction says so"},
		"a requester is missing": {func(s *story) {
			s.pod()
			s.ask()
			s.request()
		}, "example.com/asker does not request the eviction of pod web-0"},
		"a requester that has withdrawn": {func(s *story) {
			s.pod()
			s.ask(func(request *lifecyclev1alpha1.EvictionRequest) {
				request.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
			})
			s.request(requestedBy(asker))
		}, "example.com/asker requests the eviction of pod web-0, and has no request"},
		"a request that nobody sees": {func(s *story) {
			s.pod()
			s.ask(func(request *lifecyclev1alpha1.EvictionRequest) { request.Generation = 2 })
			s.request(requestedBy(asker))
		}, "request one of lifecycle.k8s.io is not observed"},
		"a pod that is gone":                {func(s *story) { s.ask() }, "pod web-0 is gone, and request one of lifecycle.k8s.io does not say so"},
		"an Eviction of a pod that is gone": {func(s *story) { s.eviction() }, "pod web-0 is gone, and Eviction pod-1-web-0 does not say so"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			test.tell(s)
			left := s.checker.Unfinished()
			if test.want == "" && len(left) > 0 || test.want != "" && (len(left) != 1 || !strings.Contains(left[0], test.want)) {
				t.Errorf("got %q, want %q", left, test.want)
			}
		})
	}
}
