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
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
)

// apiCalls returns the number of calls of the API server in this process, by verb and resource. It
// does not count watches.
func apiCalls(t *testing.T) map[string]int {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatalf("reading the metrics: %v", err)
	}
	calls := map[string]int{}
	for _, family := range families {
		if family.GetName() != "apiserver_request_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["verb"] != "WATCH" {
				calls[labels["verb"]+" "+labels["resource"]] += int(metric.GetCounter().GetValue())
			}
		}
	}
	return calls
}

// testCostOfCreation counts the additional calls of admission for the creation of requests. There
// must be none once its cache has the pods: a drain of many pods would make them for each pod.
func testCostOfCreation(t *testing.T, c *cluster) {
	const user, count = "operator@example.com", 20
	c.grant(user, allOnRequests(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
	requests := c.requestsOf(user)
	create := func(name string, options metav1.CreateOptions) error {
		pod, err := c.client.CoreV1().Pods(c.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			_, err = requests.Create(t.Context(), newRequest(pod), options)
		}
		return err
	}
	for i := range count {
		c.createPod(newPod(fmt.Sprintf("pod-%d", i)))
	}
	c.Eventually("the last pod in the cache of admission", func(context.Context) (bool, string) {
		before := apiCalls(t)
		if err := create(fmt.Sprintf("pod-%d", count-1), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			return false, err.Error()
		}
		reads := apiCalls(t)["GET pods"] - before["GET pods"]
		return reads == 1, fmt.Sprintf("%d reads of the pod, including one of this test", reads)
	})

	before := apiCalls(t)
	for i := range count {
		c.expectAllowed("creating", create(fmt.Sprintf("pod-%d", i), metav1.CreateOptions{}))
	}
	after := apiCalls(t)
	for call, want := range map[string]int{
		"POST evictionrequests": count, "GET pods": count /* by this test */, "GET evictionrequests": 0,
		"LIST pods": 0, "POST subjectaccessreviews": 0, "GET clusterroles": 0, "GET roles": 0,
	} {
		if got := after[call] - before[call]; got != want {
			t.Errorf("%d calls %s for %d requests, want %d", got, call, count, want)
		}
	}
}
