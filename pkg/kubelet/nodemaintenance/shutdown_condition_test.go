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
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestShutdownCondition(t *testing.T) {
	onMachine(t, pod(60), func(m *machine) {
		ready := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue}
		node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{ready}}}
		since := metav1.Now()
		expect := func(want ...v1.NodeCondition) {
			t.Helper()
			if err := m.shutdown.SetCondition(t.Context(), node); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(slices.Concat([]v1.NodeCondition{ready}, want), node.Status.Conditions); diff != "" {
				t.Errorf("conditions (-want, +got):\n%s", diff)
			}
		}
		inProgress := func() v1.NodeCondition {
			return v1.NodeCondition{
				Type: "GracefulNodeShutdownInProgress", Status: v1.ConditionTrue, Reason: "NodeShutdown", Message: "The node shuts down",
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: since,
			}
		}
		over := func() v1.NodeCondition {
			return v1.NodeCondition{
				Type: "GracefulNodeShutdownInProgress", Status: v1.ConditionFalse, Reason: "NoNodeShutdown", Message: "The node does not shut down",
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: since,
			}
		}
		expect() // Nodes that have never shut down do not have it.
		m.shutDown(time.Hour)
		expect(inProgress())
		m.run(10)
		expect(inProgress())
		m.events <- false
		m.run(1)
		since = metav1.Now()
		expect(over())
		m.run(10)
		expect(over())
		m.shutDown(time.Hour)
		since = metav1.Now()
		expect(inProgress())
		m.reboot("boot-2")
		since = metav1.Now()
		expect(over())
	})
}
