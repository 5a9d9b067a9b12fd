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

package downscalepodpicker

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/downscalepodpicker"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
	"k8s.io/utils/ptr"
)

const (
	managerUser    = "system:kube-controller-manager"
	deploymentUser = "system:serviceaccount:kube-system:deployment-controller"
	replicaSetUser = "system:serviceaccount:kube-system:replicaset-controller"
)

func startAPIServer(t *testing.T, gate bool) *rest.Config {
	t.Helper()
	return testcluster.StartAPIServer(t, framework.SharedEtcd(), featuregatetesting.FeatureOverrides{features.DownscalePodPicker: gate})
}

// cluster is a namespace whose pods run and are ready as soon as they exist.
type cluster struct {
	*testcluster.Cluster
}

func newCluster(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	c := &cluster{testcluster.New(t, config, "picker")}
	c.startKubelet()
	return c
}

// startKubelet assigns pods to a node, reports them as ready, and ends them when they are deleted.
func (c *cluster) startKubelet() {
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c.Client, 0, informers.WithNamespace(c.Namespace))
	run := func(obj any) {
		pod := obj.(*v1.Pod)
		pods := c.Client.CoreV1().Pods(pod.Namespace)
		switch {
		case pod.DeletionTimestamp != nil:
			_ = pods.Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
		case pod.Spec.NodeName == "":
			_ = pods.Bind(ctx, &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: v1.ObjectReference{Name: "node"}}, metav1.CreateOptions{})
		case !podutil.IsPodReady(pod) && !podutil.IsPodTerminal(pod):
			pod = pod.DeepCopy()
			pod.Status.Phase, pod.Status.StartTime = v1.PodRunning, ptr.To(metav1.Now())
			pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now()})
			_, _ = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		}
	}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: run, UpdateFunc: func(_, obj any) { run(obj) }}); err != nil {
		c.T.Fatal(err)
	}
	c.Run(ctx, cancel, factory)
}

// startControllers starts the controllers of Deployments and ReplicaSets, which may call 127.0.0.1.
func (c *cluster) startControllers() (stop func()) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c.ClientOf(managerUser), 0, informers.WithNamespace(c.Namespace))
	deployments, replicaSets, pods := factory.Apps().V1().Deployments(), factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods()
	dc, err := deployment.NewDeploymentController(ctx, deployments, replicaSets, pods, c.ClientOf(deploymentUser))
	if err != nil {
		c.T.Fatal(err)
	}
	client := c.ClientOf(replicaSetUser)
	rsc := replicaset.NewReplicaSetController(ctx, replicaSets, pods, client, replicaset.BurstReplicas)
	allowed, err := podpicker.ParseRanges([]string{"127.0.0.1/32"})
	if err != nil {
		c.T.Fatal(err)
	}
	if err := rsc.AskPickers(client, replicaSets, &podpicker.Addresses{Allowed: allowed}, 20); err != nil {
		c.T.Fatal(err)
	}
	return c.Run(ctx, cancel, factory, func() { dc.Run(ctx, 5) }, func() { rsc.Run(ctx, 5) })
}

// picker is a real server that answers with the last pods by name.
type picker struct {
	*httptest.Server
	lock  sync.Mutex
	asked []downscalepodpicker.Question
	token []string
}

func startPicker(t *testing.T, before func(*http.Request)) *picker {
	p := &picker{}
	handler := downscalepodpicker.NewHandler(func(_ context.Context, q downscalepodpicker.Question) (downscalepodpicker.Answer, error) {
		p.lock.Lock()
		defer p.lock.Unlock()
		p.asked = append(p.asked, q)
		names := slices.Sorted(slices.Values(q.Candidates))
		return downscalepodpicker.Answer{Chosen: names[len(names)-q.Pods:]}, nil
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.lock.Lock()
		p.token = append(p.token, r.Header.Get("X-Token"))
		p.lock.Unlock()
		if before != nil {
			before(r)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *picker) questions() []downscalepodpicker.Question {
	p.lock.Lock()
	defer p.lock.Unlock()
	return slices.Clone(p.asked)
}

func (p *picker) spec(t *testing.T) *v1.DownscalePodPicker {
	t.Helper()
	host, port, err := net.SplitHostPort(strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return &v1.DownscalePodPicker{HTTP: &v1.HTTPDownscalePodPicker{Host: host, Port: intstr.FromInt(number)}, MaxRetries: ptr.To[int32](1)}
}

func newDeployment(replicas int32, spec *v1.DownscalePodPicker) *appsv1.Deployment {
	labels := map[string]string{"app": "workers"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, DownscalePodPicker: spec,
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "image"}}}},
	}}
}

func (c *cluster) createDeployment(d *appsv1.Deployment) []string {
	c.T.Helper()
	if _, err := c.Client.AppsV1().Deployments(c.Namespace).Create(c.T.Context(), d, metav1.CreateOptions{}); err != nil {
		c.T.Fatalf("creating Deployment %s: %v", d.Name, err)
	}
	return c.awaitPods(d.Name, int(*d.Spec.Replicas))
}

// awaitPods waits until the Deployment has as many pods, all ready, and returns their names.
func (c *cluster) awaitPods(deployment string, count int) (names []string) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("%d pods", count), func(ctx context.Context) (bool, string) {
		names = nil
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + deployment})
		if err != nil {
			return false, err.Error()
		}
		for _, pod := range pods.Items {
			if podutil.IsPodReady(&pod) && pod.DeletionTimestamp == nil {
				names = append(names, pod.Name)
			}
		}
		slices.Sort(names)
		d, err := c.Client.AppsV1().Deployments(c.Namespace).Get(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		known := d.Status.ObservedGeneration == d.Generation && int(d.Status.ReadyReplicas) == count && int(d.Status.Replicas) == count
		return known && len(pods.Items) == count && len(names) == count, fmt.Sprintf("%v, status %+v", names, d.Status)
	})
	return names
}

func (c *cluster) patchDeployment(name string, spec any) {
	c.T.Helper()
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		c.T.Fatal(err)
	}
	if _, err := c.Client.AppsV1().Deployments(c.Namespace).Patch(c.T.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.T.Fatalf("changing Deployment %s: %v", name, err)
	}
}

func (c *cluster) replicaSets() []appsv1.ReplicaSet {
	c.T.Helper()
	list, err := c.Client.AppsV1().ReplicaSets(c.Namespace).List(c.T.Context(), metav1.ListOptions{})
	if err != nil {
		c.T.Fatalf("listing ReplicaSets: %v", err)
	}
	return list.Items
}

// awaitEvent waits for an event with the reason, and returns its message.
func (c *cluster) awaitEvent(reason string) (message string) {
	c.T.Helper()
	c.Eventually("event "+reason, func(ctx context.Context) (bool, string) {
		events, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		var reasons []string
		for _, event := range events.Items {
			reasons = append(reasons, event.Reason)
			if event.Reason == reason {
				message = event.Message
				return true, ""
			}
		}
		return false, fmt.Sprint(reasons)
	})
	return message
}
