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
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// referenceRecorder has what the last event refers to.
type referenceRecorder struct {
	record.EventRecorder
	last runtime.Object
}

func (r *referenceRecorder) Eventf(object runtime.Object, _, _, _ string, _ ...any) { r.last = object }

// TestEventsHaveUID verifies that kubectl describe can find the events of a node: by its UID, which
// is known later than its name.
func TestEventsHaveUID(t *testing.T) {
	ref := &v1.ObjectReference{Kind: "Node", Name: "n1"}
	node, err := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}}, errors.New("not seen")
	getNode := func() (*v1.Node, error) { return node, err }
	recorder := &referenceRecorder{}
	manager := &Manager{Config: Config{Recorder: recorder, NodeRef: ref, Node: getNode}}
	shutdown := &Shutdown{ShutdownConfig: ShutdownConfig{Recorder: recorder, NodeRef: ref, Node: getNode}}
	for name, event := range map[string]func(){
		"manager":  func() { manager.event(v1.EventTypeNormal, HeldReason, "text") },
		"shutdown": func() { shutdown.event(v1.EventTypeNormal, DrainedForShutdownReason, "text") },
	} {
		t.Run(name, func(t *testing.T) {
			err = errors.New("not seen")
			event()
			if diff := cmp.Diff(&v1.ObjectReference{Kind: "Node", Name: "n1"}, recorder.last); diff != "" {
				t.Errorf("before the node is seen: %s", diff)
			}
			err = nil
			event()
			if diff := cmp.Diff(&v1.ObjectReference{Kind: "Node", Name: "n1", UID: "u1"}, recorder.last); diff != "" {
				t.Errorf("after the node is seen: %s", diff)
			}
		})
	}
}
