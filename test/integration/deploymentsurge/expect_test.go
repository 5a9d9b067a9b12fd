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

package deploymentsurge

import (
	"context"
	"fmt"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// expectInterceptors fails unless a pod lists these interceptors, in this order.
func (c *cluster) expectInterceptors(pod *v1.Pod, want ...string) {
	c.T.Helper()
	var got []string
	for _, interceptor := range pod.Spec.EvictionInterceptors {
		got = append(got, interceptor.Name)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		c.T.Errorf("interceptors of pod %s (-want +got):\n%s", pod.Name, diff)
	}
}

// expectStillAt fails unless the pod is living on that node.
func (c *cluster) expectStillAt(pod *v1.Pod, node string) {
	c.T.Helper()
	current, err := c.Client.CoreV1().Pods(c.Namespace).Get(c.T.Context(), pod.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		c.T.Errorf("reading pod %s: %v", pod.Name, err)
	case current.UID != pod.UID || !isLiving(current) || current.Spec.NodeName != node:
		c.T.Errorf("pod %s is on node %q, living %t, must live on %s", pod.Name, current.Spec.NodeName, isLiving(current), node)
	}
}

// expectLiving fails unless all of these pods are living.
func (c *cluster) expectLiving(pods ...*v1.Pod) {
	c.T.Helper()
	for _, pod := range pods {
		c.expectStillAt(pod, c.nodeOf(pod))
	}
}

func (c *cluster) nodeOf(pod *v1.Pod) string {
	c.T.Helper()
	if current, err := c.pods.Get(pod.Name); err == nil {
		return current.Spec.NodeName
	}
	return pod.Spec.NodeName
}

func (c *cluster) awaitNode(pod *v1.Pod, node string) {
	c.T.Helper()
	c.Eventually("pod "+pod.Name+" to be scheduled to "+node, func(ctx context.Context) (bool, string) {
		current, err := c.Client.CoreV1().Pods(c.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return current.Spec.NodeName == node, fmt.Sprintf("on %q", current.Spec.NodeName)
	})
}

// awaitMessage waits until an interceptor has reported this message for a pod.
func (c *cluster) awaitMessage(pod *v1.Pod, interceptor, message string) {
	c.T.Helper()
	c.Eventually("the message of "+interceptor, func(ctx context.Context) (bool, string) {
		request, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		report := reportOf(request, interceptor)
		if report == nil {
			return false, "none"
		}
		return report.Message == message, report.Message
	})
}

// awaitRequest waits until the request for a pod meets the condition.
func (c *cluster) awaitRequest(pod *v1.Pod, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) {
	c.T.Helper()
	c.Eventually(what, func(ctx context.Context) (bool, string) {
		request, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return reached(request), describeRequest(request) + "\n" + c.allStates(ctx)
	})
}

// expectMessage fails unless the message of an interceptor for a pod starts with this.
func (c *cluster) expectMessage(pod *v1.Pod, interceptor, beginning string) {
	c.T.Helper()
	report := reportOf(c.requestFor(pod), interceptor)
	if report == nil {
		c.T.Errorf("%s has not reported on pod %s", interceptor, pod.Name)
	} else if !strings.HasPrefix(report.Message, beginning) {
		c.T.Errorf("the message of %s for pod %s is %q, must start with %q", interceptor, pod.Name, report.Message, beginning)
	}
}

// expectTurn fails unless an interceptor has started its turn for a pod. Its final message may be
// missing: the turn may end early when the pod is gone.
func (c *cluster) expectTurn(pod *v1.Pod, interceptor string) {
	c.T.Helper()
	if report := reportOf(c.requestFor(pod), interceptor); report == nil || report.StartTime == nil {
		c.T.Errorf("%s has not started its turn for pod %s: %+v", interceptor, pod.Name, report)
	}
}
