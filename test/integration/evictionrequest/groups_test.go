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
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/utils/clock"
)

// createPodGroup creates a group with a disruptionMode, or with the default one.
func (c *cluster) createPodGroup(name string, mode *schedulingv1beta1.DisruptionMode) {
	c.t.Helper()
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}},
			DisruptionMode:   mode,
		},
	}
	if _, err := c.client.SchedulingV1beta1().PodGroups(c.namespace).Create(c.t.Context(), group, metav1.CreateOptions{}); err != nil {
		c.t.Fatalf("creating PodGroup %s: %v", name, err)
	}
}

// testPodsOfGroups evicts pods that have interceptors and are in groups. Those of the mode single are like any others. Those
// of the mode all cannot be evicted by requests, so that their interceptors never act, and evictions do not wait for these.
func testPodsOfGroups(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	c.createPodGroup("single", nil)
	c.createPodGroup("all", &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}})
	newMember := func(name, group string) *v1.Pod {
		return c.createRunningPod(newPod(name, withInterceptors(first), inSchedulingGroup(group)), v1.ConditionTrue)
	}

	evicted := newMember("evicted", "single")
	c.expectWaits("a pod of the mode single", c.evict(evicted))
	c.awaitRequest(evicted, "the first interceptor to be active", active(first))
	c.report(evicted, coordinationapply.InterceptorStatus().WithName(first).WithCompletionTime(metav1.Now()))
	c.awaitRequest(evicted, "the eviction", is(coordinationv1alpha1.EvictionRequestConditionEvicted))

	requested := newMember("requested", "single")
	c.join(requested, drainer)
	c.awaitRequest(requested, "the first interceptor to be active", active(first))

	all := newMember("all-0", "all")
	c.join(all, drainer)
	c.expectEnd(all, canceledAs(1, "ValidationFailed", "Target Pod all-0 references a SchedulingGroup whose pods are not evicted individually."),
		"active= processed= Canceled=ValidationFailed")
	c.expectUntouched(all)
	if err := c.evict(all); err != nil {
		t.Errorf("a pod of the mode all: %v", err)
	}
	c.expectGone(all)

	for name, group := range map[string]string{"all-1": "all", "orphan": "no-such-group"} {
		pod := newMember(name, group)
		if err := c.evict(pod); err != nil {
			t.Errorf("pod %s: %v", name, err)
		}
		c.expectGone(pod)
		c.expectNoRequest(pod)
	}
}

// testPodsOfJobs has a Job whose author names an interceptor, and for which the controller of Jobs makes a PodGroup.
func testPodsOfJobs(t *testing.T, c *cluster) {
	c.startController(clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	factory := c.informers(c.client)
	jobs, err := job.NewController(ctx, c.ClientOf("system:serviceaccount:kube-system:job-controller"), factory.Core().V1().Pods(), factory.Batch().V1().Jobs(),
		factory.Scheduling().V1beta1().Workloads(), factory.Scheduling().V1beta1().PodGroups())
	if err != nil {
		cancel()
		t.Fatalf("creating the controller of Jobs: %v", err)
	}
	c.Run(ctx, cancel, factory, func() { jobs.Run(ctx, 1) })

	template := newTemplate("training", first)
	template.Spec.RestartPolicy, template.Spec.TerminationGracePeriodSeconds = v1.RestartPolicyNever, nil
	if _, err := c.client.BatchV1().Jobs(c.namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "training"}, Spec: batchv1.JobSpec{Template: template},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating a Job: %v", err)
	}
	pod := c.ready(c.awaitPods("training", 1))[0]
	if pod.Spec.SchedulingGroup == nil || len(interceptorNames(&pod.Spec)) != 1 {
		t.Fatalf("the pod is in the group %v, and has the interceptors %q", pod.Spec.SchedulingGroup, interceptorNames(&pod.Spec))
	}
	// A client with other types drops the field when it replaces the Job, whose template is immutable. The controller of Jobs writes too.
	var training *batchv1.Job
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if training, err = c.client.BatchV1().Jobs(c.namespace).Get(t.Context(), "training", metav1.GetOptions{}); err != nil {
			return err
		}
		training.Annotations, training.Spec.Template.Spec.EvictionInterceptors = map[string]string{"example.com/note": "x"}, nil
		training, err = c.client.BatchV1().Jobs(c.namespace).Update(t.Context(), training, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Errorf("replacing the Job without its interceptors: %v", err)
	} else if names := interceptorNames(&training.Spec.Template.Spec); len(names) != 1 || training.Annotations["example.com/note"] != "x" {
		t.Errorf("the Job has the interceptors %q and the annotations %v", names, training.Annotations)
	}

	c.expectWaits("a pod of a Job", c.evict(pod))
	c.awaitRequest(pod, "the first interceptor to be active", active(first))
}
