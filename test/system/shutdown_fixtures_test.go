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
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// workDirectory is where workers write, below the directory of the kubelet. It outlives the power
// of the node.
const workDirectory = "work"

// worker is a pod that needs some time to end, and notes whether it had it.
type worker struct {
	name, node string
	need       time.Duration

	namespace string
	// notes are the files that it writes, without their suffixes. Each has its own.
	notes string
}

// in returns the worker in the namespace of the context.
func (w worker) in(tCtx ktesting.TContext) worker {
	w.namespace, w.notes = tCtx.Namespace(), tCtx.Namespace()+"-"+w.name
	return w
}

// newWorkerPod returns the pod. It may take a minute, but the kubelet of a node that shuts down may
// give it less.
func newWorkerPod(w worker) *v1.Pod {
	pod := newRealPod(w.name)
	pod.Spec.Affinity, pod.Spec.NodeSelector = nil, map[string]string{v1.LabelHostname: w.node}
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](60)
	pod.Spec.Containers[0].Command = []string{"/bin/sh", "-c", fmt.Sprintf(
		"touch /notes/%[1]s.started; trap 'touch /notes/%[1]s.ending; sleep %[2]d; touch /notes/%[1]s.finished; exit 0' TERM; while :; do sleep 0.1; done",
		w.notes, int(w.need.Seconds()))}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: workDirectory, MountPath: "/notes"}}
	pod.Spec.Volumes = []v1.Volume{{Name: workDirectory, VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{
		Path: filepath.Join("/var/lib/kubelet", workDirectory), Type: ptr.To(v1.HostPathDirectoryOrCreate),
	}}}}
	return pod
}

// note returns the path of a note of a worker: that it has started, is ending, or has finished.
func (s *shutdownTest) note(w worker, state string) string {
	return filepath.Join(s.real.KubeletDirectory(w.node), workDirectory, w.notes+"."+state)
}

// noted reports whether a worker has come so far.
func (s *shutdownTest) noted(w worker, state string) bool {
	_, err := os.Stat(s.note(w, state))
	return err == nil
}

// awaitNote waits until a worker has come so far.
func (s *shutdownTest) awaitNote(tCtx ktesting.TContext, w worker, state string) {
	tCtx.Helper()
	await(tCtx, w.name+": "+state, func(tCtx ktesting.TContext) {
		if !s.noted(w, state) {
			tCtx.Fatal("it is not")
		}
	})
}

// awaitEnding waits until a worker was asked to end.
func (s *shutdownTest) awaitEnding(tCtx ktesting.TContext, w worker) {
	tCtx.Helper()
	s.awaitNote(tCtx, w, "ending")
}

func (s *shutdownTest) expectFinished(tCtx ktesting.TContext, want bool, workers ...worker) {
	tCtx.Helper()
	for _, w := range workers {
		if s.noted(w, "finished") != want {
			tCtx.Errorf("%s needs %v to end; had it: %t", w.name, w.need, !want)
		}
	}
}

// createWorker creates a pod without a controller.
func (s *shutdownTest) createWorker(tCtx ktesting.TContext, w worker) worker {
	tCtx.Helper()
	w = w.in(tCtx)
	create(tCtx, tCtx.Client().CoreV1().Pods(w.namespace), newWorkerPod(w))
	return w
}

// createDaemonWorker creates a DaemonSet for one node.
func (s *shutdownTest) createDaemonWorker(tCtx ktesting.TContext, w worker) worker {
	tCtx.Helper()
	w = w.in(tCtx)
	create(tCtx, tCtx.Client().AppsV1().DaemonSets(w.namespace), newDaemonSet(newWorkerPod(w)))
	return w
}

// createStaticWorker writes a manifest, which is removed after the scenario.
func (s *shutdownTest) createStaticWorker(tCtx ktesting.TContext, w worker, changes ...func(*v1.Pod)) worker {
	tCtx.Helper()
	w = w.in(tCtx)
	w.namespace = metav1.NamespaceDefault
	pod := newWorkerPod(w)
	pod.TypeMeta, pod.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, w.namespace
	pod.Spec.NodeSelector = nil
	for _, change := range changes {
		change(pod)
	}
	manifest, err := yaml.Marshal(pod)
	tCtx.ExpectNoError(err)
	path := filepath.Join(s.real.Manifests(w.node), w.name+".yaml")
	tCtx.ExpectNoError(os.WriteFile(path, manifest, 0o600))
	tCtx.Cleanup(func() { tCtx.AssertNoError(os.Remove(path)) })
	return w
}

// awaitWorkers waits until workers run.
func awaitWorkers(tCtx ktesting.TContext, workers ...worker) {
	tCtx.Helper()
	for _, w := range workers {
		awaitFacts(tCtx.WithNamespace(w.namespace), realPodsOn(w.name, w.node, 1))
	}
}

// startWorker creates a pod without a controller, and waits until it runs.
func (s *shutdownTest) startWorker(tCtx ktesting.TContext, w worker) worker {
	tCtx.Helper()
	w = s.createWorker(tCtx, w)
	awaitWorkers(tCtx, w)
	return w
}

// createShopOn creates a Deployment of one pod behind a Service. It starts on this node, and moves to
// the second one.
func createShopOn(tCtx ktesting.TContext, node, priorityClass string) {
	tCtx.Helper()
	pod := newServer()
	pod.Spec.PriorityClassName = priorityClass
	pod.Spec.Affinity = preferNode(node, secondNode)
	create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), newDeployment(pod, 1))
	service := newService(shop)
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(8080)
	create(tCtx, tCtx.Client().CoreV1().Services(tCtx.Namespace()), service)
}

// openShop waits until the shop serves on this node. Its budget leaves no room. It returns a client
// that sends requests.
func (s *shutdownTest) openShop(tCtx ktesting.TContext, node string) *requestClient {
	tCtx.Helper()
	awaitFacts(tCtx, realPodsOn(shop, node, 1))
	createBudget(tCtx, shop, "minAvailable: 1", 1)
	return startRequests(tCtx, s.real, serviceAddress(tCtx))
}

// preferNode returns an affinity to two nodes, mostly to the first one.
func preferNode(first, second string) *v1.Affinity {
	term := func(nodes ...string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: nodes}}}
	}
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term(first, second)}},
		PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 100, Preference: term(first)}},
	}}
}

// shutdownMaintenance returns the maintenance of the shutdowns of a node, nil if there is none.
func shutdownMaintenance(tCtx ktesting.TContext, node string) *coordinationv1alpha1.NodeMaintenance {
	tCtx.Helper()
	m, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Get(tCtx, maintenance.ShutdownName(node), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	tCtx.ExpectNoError(err)
	return m
}

// expectStage expects that the maintenance of the shutdowns of a node is at a stage.
func expectStage(tCtx ktesting.TContext, node string, want coordinationv1alpha1.NodeMaintenanceStage) {
	tCtx.Helper()
	if m := shutdownMaintenance(tCtx, node); m == nil || m.Spec.Stage != want {
		tCtx.Fatalf("the maintenance of the shutdown is %v, want stage %s", m, want)
	}
}

// awaitEvent waits for an event about a node, since a time.
func awaitEvent(tCtx ktesting.TContext, node, reason string, since time.Time) {
	tCtx.Helper()
	await(tCtx, "event "+reason, func(tCtx ktesting.TContext) {
		events, err := tCtx.Client().CoreV1().Events(metav1.NamespaceDefault).List(tCtx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=" + node + ",reason=" + reason,
		})
		tCtx.ExpectNoError(err)
		for _, event := range events.Items {
			if !event.LastTimestamp.Time.Before(since.Truncate(time.Second)) {
				return
			}
		}
		tCtx.Fatal("there is none")
	})
}
