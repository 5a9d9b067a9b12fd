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

package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/kubernetes/test/utils/realcluster"
	"k8s.io/utils/ptr"
)

const (
	// The nodes of the demo. All pods start on the first one, which is drained.
	firstNode  = "node-0"
	secondNode = "node-1"

	// realShopStart is how long the server takes to start, realShopEnd how long a pod that is to
	// end still serves: until no node sends requests to it. A drain without a replacement is seen
	// only if the start takes longer.
	realShopStart = 4 * time.Second
	realShopEnd   = 2 * time.Second

	// staticPod is in namespace default, which outlives the demo.
	staticPod = "watchdog"

	realMaintenance = "demo-real"
)

// realDemo is the story of two drains that real requests meet.
type realDemo struct {
	*demo
	real      *realcluster.Cluster
	staticUID types.UID

	// The requests during the drain by the maintenance, and during kubectl drain.
	maintenance, kubectlDrain *requests
}

// TestDemoReal drains a node with a real kubelet while an HTTP client sends requests to a Service
// with a single pod: none fails. The same with kubectl drain loses requests, unless the gate
// EvictionRequestForEvictions has it wait for the Deployment, too: here it is off.
func TestDemoReal(t *testing.T) { testDemoReal(ktesting.Init(t)) }
func testDemoReal(tCtx ktesting.TContext) {
	if os.Getenv(demoVariable) == "" {
		tCtx.Skipf("%s is not set: run it with make demo-real, as root", demoVariable)
	}
	tCtx, d := newRealDemo(tCtx)
	for _, chapter := range []struct {
		title string
		play  func(tCtx ktesting.TContext)
	}{
		{"Two nodes with a real kubelet, and pods that run", d.fillNode},
		{"Drain the node while requests are sent", d.drain},
		{"Give the node back", d.complete},
		{"The same with kubectl drain", d.drainWithKubectl},
	} {
		d.chapter(chapter.title)
		chapter.play(tCtx)
	}
	d.say("\nAll %d checks are ok, after %.0f s.", d.checks, time.Since(d.began).Seconds())
	d.say("The cluster stays up, until make down-real:\n  export KUBECONFIG=%s", d.cluster.Kubeconfig())
}

// newRealDemo starts the cluster unless it runs. It returns a context with its client, and with a
// namespace for the demo.
func newRealDemo(tCtx ktesting.TContext) (ktesting.TContext, *realDemo) {
	tCtx.Helper()
	p := findPrograms(tCtx)
	settings := localcluster.DefaultSettings
	settings.Gates += ",EvictionRequestForEvictions=false"
	local := &localcluster.Cluster{
		Name: os.Getenv(demoVariable), Output: p.output, Bin: p.fork, Nodes: 2, Settings: &settings,
		Printf: func(format string, args ...any) { fmt.Printf(format, args...) },
	}
	d := &realDemo{
		demo: &demo{programs: p, cluster: local, stays: true, began: time.Now()},
		real: &realcluster.Cluster{Local: local},
	}
	tCtx.ExpectNoError(d.real.Ensure(tCtx))
	client, _, err := local.Client()
	tCtx.ExpectNoError(err)
	tCtx = tCtx.WithClients(nil, nil, client, nil, nil).WithValue(endedKey{}, d.real.Ended)
	d.clear(tCtx)
	return createDemoNamespace(tCtx, "real"), d
}

// clear removes what an earlier run has left in the cluster.
func (d *realDemo) clear(tCtx ktesting.TContext) {
	tCtx.Helper()
	tCtx = tCtx.WithNamespace(metav1.NamespaceDefault)
	d.run(tCtx, "delete", "nodemaintenance", realMaintenance, "--ignore-not-found")
	d.run(tCtx, "uncordon", firstNode, secondNode)
	d.run(tCtx, "delete", "namespace", "--selector="+demoLabel+"=real")
}

// newServer returns a pod that serves HTTP and ends gracefully, as pods behind Services should.
func newServer() *v1.Pod {
	pod := newRealPod(shop, "serve", "--start="+realShopStart.String())
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(10))
	container := &pod.Spec.Containers[0]
	container.ReadinessProbe = &v1.Probe{
		ProbeHandler:  v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}},
		PeriodSeconds: 1,
	}
	container.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: int64(realShopEnd.Seconds())}}}
	return pod
}

// newRealPod returns a pod that runs a command of the test program, and prefers the first node.
func newRealPod(app string, args ...string) *v1.Pod {
	pod := newScheduledPod(app)
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(5))
	pod.Spec.Containers = []v1.Container{{
		Name: "main", Image: realcluster.WorkloadImage, ImagePullPolicy: v1.PullNever, Command: append([]string{"/workload"}, args...),
	}}
	pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{
		Weight: 100,
		Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{firstNode}},
		}},
	}}}}
	return pod
}

func (d *realDemo) fillNode(tCtx ktesting.TContext) {
	d.createStaticPod(tCtx)
	apps := tCtx.Client().AppsV1()
	create(tCtx, apps.Deployments(tCtx.Namespace()), newDeployment(newServer(), 1))
	create(tCtx, apps.StatefulSets(tCtx.Namespace()), newStatefulSet(newRealPod("db", "sleep"), 1))
	create(tCtx, apps.DaemonSets(tCtx.Namespace()), newDaemonSet(newRealPod("agent", "sleep")))
	service := newService(shop)
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(8080)
	create(tCtx, tCtx.Client().CoreV1().Services(tCtx.Namespace()), service)
	d.say(`  %-9s Deployment of one pod, an HTTP server behind a Service; a new one takes %s to start
  %-9s StatefulSet of one pod
  %-9s DaemonSet
  %-9s static pod of %s, from a file
`, shop, realShopStart, "db", "agent", staticPod, firstNode)
	facts := []fact{realPodsOn(shop, firstNode, 1), realPodsOn("db", firstNode, 1), realPodsOn("agent", firstNode, 1), d.staticPodRuns()}
	awaitFacts(tCtx, facts...)
	d.kubectl(tCtx, "get", "pods", "--output=wide", "--namespace="+tCtx.Namespace())
	d.tell(facts...)
	d.staticUID = d.getStaticPod(tCtx).UID
}

// createStaticPod writes its manifest. It is on the host network, like those of control planes.
func (d *realDemo) createStaticPod(tCtx ktesting.TContext) {
	tCtx.Helper()
	manifest := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  hostNetwork: true
  containers: [{name: main, image: %q, imagePullPolicy: Never}]
`, staticPod, realcluster.WorkloadImage)
	path := filepath.Join(d.real.Manifests(firstNode), staticPod+".yaml")
	tCtx.ExpectNoError(os.WriteFile(path, []byte(manifest), 0o600), "writing the manifest of the static pod")
}

func (d *realDemo) getStaticPod(tCtx ktesting.TContext) *v1.Pod {
	tCtx.Helper()
	pod, err := tCtx.Client().CoreV1().Pods(metav1.NamespaceDefault).Get(tCtx, staticPod+"-"+firstNode, metav1.GetOptions{})
	tCtx.ExpectNoError(err)
	return pod
}

// drain starts the maintenance, and waits until all pods have left, the static pod last.
func (d *realDemo) drain(tCtx ktesting.TContext) {
	client := startRequests(tCtx, d.real, serviceAddress(tCtx))
	facts := []fact{
		realPodsOn(shop, secondNode, 1), realPodsOn(shop, firstNode, 0),
		realPodsOn("db", secondNode, 1), realPodsOn("agent", firstNode, 0), d.staticPodIsHeld(),
	}
	d.watch(tCtx, "maintenance", "start", firstNode, "--name="+realMaintenance, "--reason=kernel upgrade", "--wait").end(tCtx)
	awaitFacts(tCtx, facts...)
	d.maintenance = client.stop()
	d.say("%s\n", d.maintenance)
	d.tell(facts...)
	d.expect(tCtx, fact{"no request failed", func(tCtx ktesting.TContext) {
		if d.maintenance.failed() > 0 || d.maintenance.sent() < 100 {
			tCtx.Fatal(d.maintenance)
		}
	}})
}

func (d *realDemo) complete(tCtx ktesting.TContext) {
	d.kubectl(tCtx, "maintenance", "complete", realMaintenance, "--wait")
	d.staticUID = "" // It has a new mirror pod.
	d.expect(tCtx, realPodsOn("agent", firstNode, 1), d.staticPodRuns())
}

// drainWithKubectl drains the other node, where the shop is now.
func (d *realDemo) drainWithKubectl(tCtx ktesting.TContext) {
	command := d.cluster.Command(tCtx, "drain", secondNode, "--ignore-daemonsets")
	client := startRequests(tCtx, d.real, serviceAddress(tCtx))
	d.show("drain", secondNode, "--ignore-daemonsets")
	output, err := command.CombinedOutput()
	tCtx.ExpectNoError(err, "kubectl drain: %s", output)
	d.say("%s\n", strings.TrimSpace(string(output)))
	awaitFacts(tCtx, realPodsOn(shop, firstNode, 1))
	pause(tCtx, realShopEnd) // Until requests are answered again.
	d.kubectlDrain = client.stop()
	d.run(tCtx, "uncordon", secondNode)
	d.say("  maintenance    %s\n  kubectl drain  %s\n  each character is %s: # all requests answered  . some failed\n",
		d.maintenance.picture(), d.kubectlDrain.picture(), requestCell)
	const row = "  %-24s  %15s  %13s"
	d.say(row, "", "NodeMaintenance", "kubectl drain")
	d.say(row, "requests", fmt.Sprint(d.maintenance.sent()), fmt.Sprint(d.kubectlDrain.sent()))
	d.say(row+"\n", "of them failed", fmt.Sprint(d.maintenance.failed()), fmt.Sprint(d.kubectlDrain.failed()))
	d.expect(tCtx, fact{"kubectl drain lost requests", func(tCtx ktesting.TContext) {
		if d.kubectlDrain.failed() == 0 {
			tCtx.Fatal(d.kubectlDrain)
		}
	}})
}

// realPodsOn expects so many ready pods of an application on a node, and no others there.
func realPodsOn(app, node string, want int) fact {
	what := fmt.Sprintf("%s runs on %s", app, node)
	if want == 0 {
		what = fmt.Sprintf("%s has left %s", app, node)
	}
	return fact{what, func(tCtx ktesting.TContext) {
		pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{
			LabelSelector: appLabel + "=" + app, FieldSelector: "spec.nodeName=" + node,
		})
		tCtx.ExpectNoError(err)
		for _, pod := range pods.Items {
			if !serves(&pod) {
				tCtx.Fatalf("%s is not ready, or ends", pod.Name)
			}
		}
		expectCount(tCtx, "pods of "+app+" on "+node, len(pods.Items), want)
	}}
}

func (d *realDemo) staticPodRuns() fact {
	return fact{"the static pod runs on " + firstNode, func(tCtx ktesting.TContext) {
		pod := d.getStaticPod(tCtx)
		if !podutil.IsPodReady(pod) || d.staticUID != "" && pod.UID != d.staticUID {
			tCtx.Fatalf("its mirror pod has UID %s, before %s, and status %v", pod.UID, d.staticUID, pod.Status)
		}
	}}
}

// staticPodIsHeld is true when the kubelet has stopped the static pod, and keeps it away.
func (d *realDemo) staticPodIsHeld() fact {
	return fact{"the static pod has left " + firstNode, func(tCtx ktesting.TContext) {
		_, err := tCtx.Client().CoreV1().Pods(metav1.NamespaceDefault).Get(tCtx, staticPod+"-"+firstNode, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			tCtx.Fatalf("its mirror pod: %v", err)
		}
	}}
}
