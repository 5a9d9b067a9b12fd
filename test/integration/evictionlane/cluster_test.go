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

// Package evictionlane tests evictions through the lane of kube-apiserver, against those without it,
// and through several API servers that share an etcd.
package evictionlane

import (
	"context"
	"fmt"
	"path"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	kubeapiservertesting "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/ptr"
)

// cluster is a namespace that several API servers serve.
type cluster struct {
	*testcluster.Cluster
	// clients has a client for each API server.
	clients []clientset.Interface
	etcd    *kubeapiservertesting.TestServer
}

// start starts API servers on one etcd.
func start(t *testing.T, lane bool, servers int) *cluster {
	t.Helper()
	return startEach(t, slices.Repeat([]bool{lane}, servers)...)
}

// startEach starts an API server for each element, with or without the lane.
func startEach(t *testing.T, lanes ...bool) *cluster {
	t.Helper()
	etcd := framework.SharedEtcd()
	c := &cluster{}
	for _, lane := range lanes {
		// A server asks for the gate once, when it starts.
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionLane, lane)
		server := kubeapiservertesting.StartTestServerOrDie(t, nil, framework.DefaultTestServerFlags(), etcd)
		t.Cleanup(server.TearDownFn)
		server.ClientConfig.WarningHandler = rest.NoWarnings{}
		server.ClientConfig.QPS = -1
		c.clients = append(c.clients, clientset.NewForConfigOrDie(server.ClientConfig))
		if c.Cluster == nil {
			c.Cluster, c.etcd = testcluster.New(t, server.ClientConfig, "lane"), server
		}
	}
	return c
}

// newPod returns a pod that is removed as soon as it is deleted.
func newPod(name, app string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec: v1.PodSpec{
			NodeName:                      "node",
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []v1.Container{{Name: "main", Image: "main"}},
		},
	}
}

// createPod creates a pod that is ready if it is running.
func (c *cluster) createPod(ctx context.Context, pod *v1.Pod, phase v1.PodPhase, ready v1.ConditionStatus) error {
	created, err := c.Client.CoreV1().Pods(c.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	created.Status.Phase = phase
	created.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: ready}}
	if _, err = c.Client.CoreV1().Pods(c.Namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the status of pod %s: %w", pod.Name, err)
	}
	return nil
}

// createRunningPods creates ready pods pod-0 to pod-<count-1>.
func (c *cluster) createRunningPods(count int, app string) {
	c.T.Helper()
	parallel(c.T, 16, count, func(index int) error {
		return c.createPod(c.T.Context(), newPod(fmt.Sprintf("pod-%d", index), app), v1.PodRunning, v1.ConditionTrue)
	})
}

// newBudget returns a budget that the disruption controller has seen.
func newBudget(name, app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			MaxUnavailable: ptr.To(intstr.FromInt32(1)),
		},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1},
	}
}

// createBudget creates a budget and writes its status to etcd, where it may be one that the API
// does not accept.
func (c *cluster) createBudget(budget *policyv1.PodDisruptionBudget) {
	c.T.Helper()
	created, err := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Create(c.T.Context(), budget, metav1.CreateOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	created.Status = budget.Status
	created.ResourceVersion = ""
	encoded, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(policyv1.SchemeGroupVersion), created)
	if err != nil {
		c.T.Fatal(err)
	}
	key := path.Join("/", c.etcd.EtcdStoragePrefix, "poddisruptionbudgets", c.Namespace, budget.Name)
	if _, err := c.etcd.EtcdClient.Put(c.T.Context(), key, string(encoded)); err != nil {
		c.T.Fatal(err)
	}
}

func (c *cluster) budget(name string) *policyv1.PodDisruptionBudget {
	c.T.Helper()
	budget, err := c.Client.PolicyV1().PodDisruptionBudgets(c.Namespace).Get(c.T.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	return budget
}

// evict asks an API server once, without the retries of the client.
func (c *cluster) evict(ctx context.Context, server int, pod string, options *metav1.DeleteOptions) error {
	return c.clients[server].CoreV1().RESTClient().Post().MaxRetries(0).
		Namespace(c.Namespace).Resource("pods").Name(pod).SubResource("eviction").
		Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: pod}, DeleteOptions: options}).
		Do(ctx).Error()
}
