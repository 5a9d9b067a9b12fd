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
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	clienttesting "k8s.io/client-go/testing"
	kubectlscale "k8s.io/kubectl/pkg/cmd/scale"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsfake "k8s.io/metrics/pkg/client/clientset/versioned/fake"
	"k8s.io/utils/ptr"

	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	podautoscalermetrics "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

const autoscalerUser = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

// testAutoscaled has the controller of HorizontalPodAutoscalers scale a Deployment: when the load falls,
// the picker chooses, and when it rises, nobody is asked.
func testAutoscaled(t *testing.T, c *cluster) {
	c.startControllers()
	p := startPicker(t, nil)
	d := newDeployment(2, p.spec(t))
	d.Spec.Template.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}
	c.createDeployment(d)
	load := &atomic.Int64{}
	load.Store(200)
	c.startAutoscaler(load)
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "workers"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "workers"},
			MinReplicas:    ptr.To[int32](1), MaxReplicas: 10,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: v1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](50)},
			}}},
		},
	}
	if _, err := c.Client.AutoscalingV2().HorizontalPodAutoscalers(c.Namespace).Create(t.Context(), hpa, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := c.awaitPods("workers", 4)
	if asked := p.questions(); len(asked) > 0 {
		t.Errorf("asked about a scale-up: %+v", asked)
	}
	load.Store(50)
	if left := c.awaitPods("workers", 1); !reflect.DeepEqual(left, pods[:1]) {
		t.Errorf("%q are left, want %q", left, pods[:1])
	}
	if asked := p.questions(); len(asked) != 1 || asked[0].Pods != 3 || len(asked[0].Candidates) != 4 {
		t.Errorf("asked %+v", asked)
	}
}

// startAutoscaler starts the controller of HorizontalPodAutoscalers without stabilization. The pods
// share the load, in thousandths of a processor.
func (c *cluster) startAutoscaler(load *atomic.Int64) {
	c.T.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = autoscalerUser
	client := c.ClientOf(autoscalerUser)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		c.T.Fatal(err)
	}
	measured := &metricsfake.Clientset{}
	measured.AddReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		list, err := c.measure(load.Load())
		return true, list, err
	})
	ctx, cancel := context.WithCancel(c.T.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c.ClientOf(managerUser), 0, informers.WithNamespace(c.Namespace))
	hpas := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), scales, client.AutoscalingV2(), mapper,
		podautoscalermetrics.NewRESTMetricsClient(measured.MetricsV1beta1(), nil, nil),
		factory.Autoscaling().V2().HorizontalPodAutoscalers(), factory.Core().V1().Pods(),
		time.Second, 0, 0.1, 0, 0)
	c.Run(ctx, cancel, factory, func() { hpas.Run(ctx, 1) })
}

// measure returns what the metrics server says of the pods.
func (c *cluster) measure(load int64) (*metricsapi.PodMetricsList, error) {
	pods, err := c.Client.CoreV1().Pods(c.Namespace).List(c.T.Context(), metav1.ListOptions{LabelSelector: "app=workers"})
	if err != nil {
		return nil, err
	}
	list := &metricsapi.PodMetricsList{}
	for _, pod := range pods.Items {
		used := resource.NewMilliQuantity(load/int64(len(pods.Items)), resource.DecimalSI)
		list.Items = append(list.Items, metricsapi.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels},
			Timestamp:  metav1.Now(), Window: metav1.Duration{Duration: time.Second},
			Containers: []metricsapi.ContainerMetrics{{Name: "main", Usage: v1.ResourceList{v1.ResourceCPU: *used}}},
		})
	}
	return list, nil
}

// testKubectl scales a Deployment with kubectl: nobody is asked which pods are added, and the picker
// chooses those that go.
func testKubectl(t *testing.T, c *cluster) {
	c.startControllers()
	p := startPicker(t, nil)
	c.createDeployment(newDeployment(3, p.spec(t)))
	if out, want := c.kubectlScale("deployment/workers", "--replicas=5", "--current-replicas=3"), "deployment.apps/workers scaled\n"; out != want {
		t.Errorf("kubectl printed %q, want %q", out, want)
	}
	pods := c.awaitPods("workers", 5)
	if asked := p.questions(); len(asked) > 0 {
		t.Errorf("asked about a scale-up: %+v", asked)
	}
	c.kubectlScale("deployment/workers", "--replicas=2", "--timeout=30s")
	if left := c.awaitPods("workers", 2); !reflect.DeepEqual(left, pods[:2]) {
		t.Errorf("%q are left, want %q", left, pods[:2])
	}
	if asked := p.questions(); len(asked) != 1 || asked[0].Pods != 3 || len(asked[0].Candidates) != 5 {
		t.Errorf("asked %+v", asked)
	}
}

// testKubectlReplicaSet scales a ReplicaSet without a Deployment with kubectl: the picker chooses, and
// nobody is asked when all pods go.
func testKubectlReplicaSet(t *testing.T, c *cluster) {
	c.startControllers()
	p := startPicker(t, nil)
	d := newDeployment(3, p.spec(t))
	rs := &appsv1.ReplicaSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.ReplicaSetSpec{
		Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template, DownscalePodPicker: d.Spec.DownscalePodPicker,
	}}
	if _, err := c.Client.AppsV1().ReplicaSets(c.Namespace).Create(t.Context(), rs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := c.awaitReplicaSet(3)
	c.kubectlScale("rs/workers", "--replicas=1")
	if left := c.awaitReplicaSet(1); !reflect.DeepEqual(left, pods[:1]) {
		t.Errorf("%q are left, want %q", left, pods[:1])
	}
	if asked := p.questions(); len(asked) != 1 || asked[0].Pods != 2 || asked[0].ReplicaSet != "workers" {
		t.Errorf("asked %+v", asked)
	}
	c.kubectlScale("rs/workers", "--replicas=0")
	c.awaitReplicaSet(0)
	if asked := p.questions(); len(asked) != 1 {
		t.Errorf("asked which pods go, of which all go: %+v", asked[1:])
	}
}

// awaitReplicaSet waits until the ReplicaSet has as many pods, all ready, and returns their names.
func (c *cluster) awaitReplicaSet(count int) (names []string) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("%d pods", count), func(ctx context.Context) (bool, string) {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		names = nil
		for _, pod := range pods.Items {
			names = append(names, pod.Name)
		}
		slices.Sort(names)
		rs, err := c.Client.AppsV1().ReplicaSets(c.Namespace).Get(ctx, "workers", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		known := rs.Status.ObservedGeneration == rs.Generation && int(rs.Status.ReadyReplicas) == count && int(rs.Status.Replicas) == count
		return known && len(names) == count, fmt.Sprintf("%v, status %+v", names, rs.Status)
	})
	return names
}

// kubectlScale runs "kubectl scale" in the namespace, and returns what it prints.
func (c *cluster) kubectlScale(args ...string) string {
	c.T.Helper()
	flags := genericclioptions.NewConfigFlags(false).WithWrapConfigFn(func(*rest.Config) *rest.Config { return rest.CopyConfig(c.Config) })
	flags.Namespace = &c.Namespace
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	kubectl := &cobra.Command{Use: "kubectl"}
	kubectl.AddCommand(kubectlscale.NewCmdScale(cmdutil.NewFactory(flags), streams))
	kubectl.SetArgs(append([]string{"scale"}, args...))
	if err := kubectl.ExecuteContext(c.T.Context()); err != nil || errOut.Len() > 0 {
		c.T.Fatalf("kubectl scale %q: %v\n%s", args, err, errOut)
	}
	return out.String()
}
