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

package maintenance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// fleetSize is how many nodes a large cluster has.
const fleetSize = 5000

// fleetOf returns a rollout over many nodes: three have failed, one is blocked, 18 others are under
// way, and every tenth of the others is done.
func fleetOf(nodes int) []any {
	selector := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}
	m := newMaintenance("kernel", drain).reason("Kernel upgrade").started(26 * time.Hour).rollingOut(coordinationv1alpha1.NodeMaintenanceRollout{
		MaxConcurrent: ptr.To(intstr.FromInt32(20)), CompleteNodes: coordinationv1alpha1.NodeCompletionRebooted, MaxFailedNodes: ptr.To[int32](5),
	})
	m.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{selector}}
	m.Status.SelectedNodes = int32(nodes)
	status := &coordinationv1alpha1.NodeMaintenanceRolloutStatus{Failed: []string{"node-0007", "node-0407", "node-0807"}}
	stories := []any{}
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		node := pooled(name, "a")
		switch {
		case i%400 == 7 && status.FailedNodes < 3:
			node = admittedNode(m, name, phaseFailed, time.Duration(i)*time.Minute)
			status.FailedNodes++
			status.AdmittedNodes++
		case i%10 == 0:
			node = admittedNode(m, name, phaseDone, time.Duration(i)*time.Minute)
			status.DoneNodes++
		case i > 100 && status.AdmittedNodes < 22:
			phase := []nodePhase{phaseDraining, phaseDrained, phaseReturning}[i%3]
			node = admittedNode(m, name, phase, time.Duration(i)*time.Second)
			status.AdmittedNodes++
		}
		node.Labels = map[string]string{"pool": "a"}
		stories = append(stories, node)
	}
	status.WaitingNodes = int32(nodes) - status.AdmittedNodes - status.DoneNodes
	status.WaitingFor = []coordinationv1alpha1.NodeMaintenanceWait{
		{Reason: coordinationv1alpha1.NodeMaintenanceWaitWindow, Budget: "nights", NodeCount: status.WaitingNodes - 12, UntilTime: ptr.To(ago(-9 * time.Hour))},
		{Reason: coordinationv1alpha1.NodeMaintenanceWaitTopology, Budget: "zones", NodeCount: 12},
	}
	m.Status.RolloutStatus = status
	m.draining(coordinationv1alpha1.DrainStatus{
		DrainMessage: "Draining", PodsPendingEvictionRequest: 12, ActiveEvictionRequests: 30, BlockedPods: 1, BlockerCount: 1,
		Blockers: []coordinationv1alpha1.DrainBlocker{{
			Cause: coordinationv1alpha1.DrainBlockerDisruptionBudget, Name: "default/db", PodCount: 1, Message: "1 pod waits for PodDisruptionBudget default/db",
			Pods: []coordinationv1alpha1.DrainBlockerPod{{Namespace: "default", Name: "db-0"}}, SinceTime: ptr.To(ago(3 * time.Minute)),
		}},
	})
	return append(stories, m)
}

// admittedNode returns a node that a maintenance has admitted, and its phase since some time.
func admittedNode(m maintenanceStory, name string, phase nodePhase, before time.Duration) *corev1.Node {
	since := ptr.To(ago(before))
	admission := corev1.MaintenanceAdmission{MaintenanceName: m.Name, MaintenanceUID: m.UID, AdmittedTime: ago(before + time.Hour), BootID: "boot-1"}
	ready := corev1.ConditionTrue
	node := drainingNode(name, 0, 0, "Drained")
	switch phase {
	case phaseDraining:
		node = drainingNode(name, 1, 2, "Draining")
		admission.AdmittedTime = *since
	case phaseDrained:
		admission.DrainedTime = since
	case phaseReturning:
		admission.DrainedTime, admission.ReturningTime = ptr.To(ago(before+time.Minute)), since
		ready = corev1.ConditionFalse
	case phaseFailed:
		admission.DrainedTime, admission.FailedTime = ptr.To(ago(before+time.Minute)), since
	case phaseDone:
		node = newNode(name)
		node.Status.MaintenanceStatus = &corev1.MaintenanceStatus{Unclaimed: true}
		admission.DrainedTime, admission.ReturningTime, admission.DoneTime = ptr.To(ago(before+time.Minute)), ptr.To(ago(before+time.Second)), since
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: ready})
	node.Status.MaintenanceStatus.Admissions = []corev1.MaintenanceAdmission{admission}
	node.Status.NodeInfo.BootID = "boot-1"
	return node
}

// largeNode makes a node as large as those of clouds are.
func largeNode(node *corev1.Node) {
	for i := range 20 {
		node.Labels[fmt.Sprintf("label-%d.example.com/some-property", i)] = "some-value"
	}
	node.Annotations = map[string]string{"csi.volume.kubernetes.io/nodeid": strings.Repeat("x", 300), "provider.example.com/config": strings.Repeat("y", 1000)}
	for i := range 12 {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeConditionType(fmt.Sprintf("Condition%d", i)), Status: corev1.ConditionFalse, Message: strings.Repeat("m", 60), LastHeartbeatTime: ago(0),
		})
	}
	for i := range 50 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{SizeBytes: 1 << 30, Names: []string{
			fmt.Sprintf("registry.example.com/team/image-%d@sha256:%064d", i, i), fmt.Sprintf("registry.example.com/team/image-%d:v1.2.3", i),
		}})
	}
}

// serveObjects returns an API server that answers lists as a real one does, encoded in advance.
func serveObjects(t testing.TB, objects []runtime.Object) *rest.Config {
	t.Helper()
	nodes, maintenances := &corev1.NodeList{}, &coordinationv1alpha1.NodeMaintenanceList{}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Node:
			nodes.Items = append(nodes.Items, *o)
		case *coordinationv1alpha1.NodeMaintenance:
			maintenances.Items = append(maintenances.Items, *o)
		}
	}
	codecs := serializer.NewCodecFactory(scheme.Scheme)
	answers := map[string][]byte{}
	for _, info := range codecs.SupportedMediaTypes() {
		answers["/api/v1/nodes "+info.MediaType] = encoded(t, codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), nodes)
		answers["/apis/coordination.k8s.io/v1alpha1/nodemaintenances "+info.MediaType] = encoded(t, codecs.EncoderForVersion(info.Serializer, coordinationv1alpha1.SchemeGroupVersion), maintenances)
	}
	discovery, err := json.Marshal(metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: coordinationv1alpha1.SchemeGroupVersion.String(),
		APIResources: []metav1.APIResource{{Name: resource}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
		answer, found := answers[r.URL.Path+" "+accepted]
		if !found {
			accepted, answer = runtime.ContentTypeJSON, discovery
		}
		w.Header().Set("Content-Type", accepted)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func encoded(t testing.TB, encoder runtime.Encoder, object runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := encoder.Encode(object, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// BenchmarkStatusOfFleet measures "kubectl maintenance status" of 5,000 large nodes, with all that
// kubectl does: read, decode and render.
func BenchmarkStatusOfFleet(b *testing.B) {
	objects := objectsOf(fleetOf(fleetSize)...)
	for _, object := range objects {
		if node, ok := object.(*corev1.Node); ok {
			largeNode(node)
		}
	}
	client, err := kubernetes.NewForConfig(clientConfig(serveObjects(b, objects)))
	if err != nil {
		b.Fatal(err)
	}
	for _, output := range []string{"", "json"} {
		b.Run("output "+output, func(b *testing.B) {
			for b.Loop() {
				var out bytes.Buffer
				o := &statusOptions{output: output, environment: &environment{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}, clock: clock.RealClock{}}}
				if err := o.run(context.Background(), client); err != nil {
					b.Fatal(err)
				}
				if !strings.Contains(out.String(), "node-0807") {
					b.Fatalf("printed %q", out.String())
				}
			}
		})
	}
}

// BenchmarkScreenOfFleet measures one frame of "kubectl maintenance watch".
func BenchmarkScreenOfFleet(b *testing.B) {
	s, seen := snapshotOf(fleetOf(fleetSize)...), progress{}
	for b.Loop() {
		views := viewsIn(s)
		seen.apply(views)
		renderScreen(views, testNow, defaultWidth, 23)
	}
}
