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
	"fmt"
	"net/http"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/clock"
)

// testHungStatuses has the writes of many statuses hang, as if a webhook did not answer. What does not need them goes on.
func testHungStatuses(t *testing.T, c *cluster) {
	const hung = 15
	for what, writes := range map[string]string{
		"maintenance": `^PATCH nodemaintenances/hung-\d+/status$|^PUT nodemaintenances/hung-\d+/status$`,
		"budget":      `^PATCH nodemaintenancebudgets/hung-\d+/status$|^PUT nodemaintenancebudgets/hung-\d+/status$`,
		"node":        `^PATCH nodes/hung-\d+/status$`,
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t, c.config)
			t.Cleanup(c.removeLimits)
			hangs, arrived := regexp.MustCompile(writes), make(chan string, 1000)
			client := c.ClientThrough(maintenanceUser, func(next http.RoundTripper) http.RoundTripper {
				return testcluster.RoundTripper(func(request *http.Request) (*http.Response, error) {
					if write := describeWrite(request); hangs.MatchString(write) {
						arrived <- write
						<-request.Context().Done()
						return nil, request.Context().Err()
					}
					return next.RoundTrip(request)
				})
			})
			c.StartMaintenanceController(client, clock.RealClock{})
			begin := func(name string) {
				c.createNode(name, "pool="+name)
				c.createLimit(newLimit(name, name, intstr.FromInt(1)))
				c.createMaintenance(newMaintenance(name, stageDrain, nodesNamed(name)))
			}
			for i := range hung {
				begin(fmt.Sprintf("hung-%d", i))
			}
			different := map[string]bool{}
			for len(different) < hung {
				different[testcluster.Receive(t, "a write that hangs", arrived)] = true
			}
			begin("good")
			c.awaitDrained("good", metav1.Condition{Status: metav1.ConditionTrue, Reason: "Drained", Message: "No pod is left on 1 node."}, 0)
		})
	}
}
