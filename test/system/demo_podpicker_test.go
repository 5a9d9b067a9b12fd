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
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

const (
	workers = "workers"

	// The Secret with the header by which the picker knows the controller.
	pickerSecret = "picker"
	pickerKey    = "authorization"

	// pickerRetries and pickerTimeout are the defaults, and pickerPauses is what the ReplicaSet
	// controller pauses between the attempts: 0.2, 0.4 and 0.8 s.
	pickerRetries = 3
	pickerTimeout = time.Second
	pickerPauses  = 1400 * time.Millisecond

	// pickerLimit is how long a scale-down waits for its picker at most.
	pickerLimit = (pickerRetries+1)*pickerTimeout + pickerPauses

	// kubectlTime is what kubectl, the controllers and the end of the pods add to that.
	kubectlTime = 3 * time.Second
)

// pickerDemo scales workers down, as an administrator would.
type pickerDemo struct {
	*demo
	picker      *example
	port        int
	token, file string
}

// TestDemoPodPicker scales a Deployment of six workers to three: those go that the example picker, to
// which they report, knows as idle. Then it kills the picker: pods go in today's order, in time.
func TestDemoPodPicker(t *testing.T) { testDemoPodPicker(ktesting.Init(t)) }
func testDemoPodPicker(tCtx ktesting.TContext) {
	tCtx, story := newDemo(tCtx, "podpicker")
	d := &pickerDemo{demo: story}
	tCtx = d.startPicker(tCtx)
	for _, chapter := range []struct {
		title string
		play  func(tCtx ktesting.TContext)
	}{
		{"Six workers, and a picker that knows which of them are busy", d.createWorkers},
		{"Scale to three: the idle ones go", d.removeIdle},
		{"The picker is killed: three go all the same, in today's order", d.removeWithoutPicker},
	} {
		d.chapter(chapter.title)
		chapter.play(tCtx)
	}
	d.say("\nAll %d checks are ok, after %.0f s.", d.checks, time.Since(d.began).Seconds())
	if d.stays {
		d.say("The cluster stays up:")
		d.say("  export KUBECONFIG=%s", d.cluster.Kubeconfig())
		d.say("  %s explain deployment.spec.downscalePodPicker", d.cluster.Kubectl())
	}
}

// startPicker starts the example picker on a port that the cluster may call, with a new token.
func (d *pickerDemo) startPicker(tCtx ktesting.TContext) ktesting.TContext {
	tCtx.Helper()
	d.token, d.file = rand.Text(), filepath.Join(tCtx.TempDir(), "token")
	tCtx.ExpectNoError(os.WriteFile(d.file, []byte(d.token), 0o600), "writing the token")
	d.port = freePickerPort(tCtx)
	tCtx, d.picker = d.startExample(tCtx, "downscale-pod-picker", "--address", d.address(), "--token-file", d.file)
	await(tCtx, "the picker", func(tCtx ktesting.TContext) {
		expectCount(tCtx, "as its status", d.send(tCtx, http.MethodGet, "/healthz", ""), http.StatusOK)
	})
	return tCtx
}

// freePickerPort returns a port that is free now.
func freePickerPort(tCtx ktesting.TContext) int {
	tCtx.Helper()
	for port := localcluster.FirstPickerPort; port <= localcluster.LastPickerPort; port++ {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			listener.Close()
			return port
		}
	}
	tCtx.Fatalf("no port of 127.0.0.1 from %d to %d is free", localcluster.FirstPickerPort, localcluster.LastPickerPort)
	return 0
}

func (d *pickerDemo) address() string { return fmt.Sprintf("127.0.0.1:%d", d.port) }

// send sends a request to the picker, and returns the status of the answer.
func (d *pickerDemo) send(tCtx ktesting.TContext, method, path, body string) int {
	tCtx.Helper()
	request, err := http.NewRequestWithContext(tCtx, method, "http://"+d.address()+path, strings.NewReader(body))
	tCtx.ExpectNoError(err)
	request.Header.Set("Authorization", "Bearer "+d.token)
	client := &http.Client{Timeout: pollTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	tCtx.ExpectNoError(err)
	defer response.Body.Close()
	return response.StatusCode
}

// report reports the load of workers. Nothing runs in simulated pods, so it is the demo that speaks for
// them.
func (d *pickerDemo) report(tCtx ktesting.TContext, load string, pods []string) {
	tCtx.Helper()
	for _, pod := range pods {
		path := "/load/" + tCtx.Namespace() + "/" + pod
		d.say(`$ curl -X PUT -H "Authorization: Bearer $TOKEN" --data %s http://%s%s`, load, d.address(), path)
		if status := d.send(tCtx, http.MethodPut, path, load); status != http.StatusNoContent {
			tCtx.Fatalf("reporting the load of %s: status %d", pod, status)
		}
	}
}

// createWorkers creates a Deployment whose pods are on one node: otherwise pods that share a node go
// before others, whenever they were created.
func (d *pickerDemo) createWorkers(tCtx ktesting.TContext) {
	create(tCtx, tCtx.Client().CoreV1().Secrets(tCtx.Namespace()), &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: pickerSecret}, StringData: map[string]string{pickerKey: "Bearer " + d.token},
	})
	pod := newScheduledPod(workers)
	pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: "node-0"}
	deployment := newDeployment(pod, 6)
	deployment.Spec.DownscalePodPicker = &v1.DownscalePodPicker{
		HTTP: &v1.HTTPDownscalePodPicker{
			Host: "127.0.0.1", Port: intstr.FromInt(d.port),
			HTTPHeaders: []v1.HTTPDownscalePodPickerHeader{{Name: "Authorization", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{
				SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: pickerSecret}, Key: pickerKey},
			}}},
		},
		MaxRetries: ptr.To[int32](pickerRetries), TimeoutSeconds: ptr.To(int32(pickerTimeout.Seconds())),
	}
	create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), deployment)
	d.say(`The picker is the example of client-go, a process of this machine at %s: with
--downscale-pod-picker-allowed-cidrs, kube-controller-manager of this cluster may call that. In a
real cluster the picker is behind a Service, which needs no flag.
`, d.address())
	d.expect(tCtx, workersAre(nil, 6))
	d.kubectl(tCtx, "get", "deployment", workers, "--namespace="+tCtx.Namespace(), "--output=jsonpath={.spec.downscalePodPicker}{'\\n'}")
}

// removeIdle makes three workers idle, and scales to three. All are of the same age: without a picker,
// any of them could go.
func (d *pickerDemo) removeIdle(tCtx ktesting.TContext) {
	pods := workerPods(tCtx)
	busy, idle := pods[:3], pods[3:]
	d.report(tCtx, "0.9", busy)
	d.report(tCtx, "0", idle)
	d.say("")
	d.kubectl(tCtx, "scale", "deployment", workers, "--replicas=3", "--namespace="+tCtx.Namespace())
	d.expect(tCtx, workersLeft("the three busy workers are left, the idle ones are gone", busy), d.eventSays("PodsPicked", "chose 3 pods"))
	d.showEvents(tCtx, "PodsPicked")
}

// removeWithoutPicker scales up, makes the new workers busy, and kills the picker: alive, it would have
// removed the old ones.
func (d *pickerDemo) removeWithoutPicker(tCtx ktesting.TContext) {
	old := workerPods(tCtx)
	// The order knows ages by their powers of two only: the old ones must be much older than the new.
	pause(tCtx, 2*readingTime)
	d.kubectl(tCtx, "scale", "deployment", workers, "--replicas=6", "--namespace="+tCtx.Namespace())
	awaitFacts(tCtx, workersAre(nil, 6))
	added := slices.DeleteFunc(workerPods(tCtx), func(pod string) bool { return slices.Contains(old, pod) })
	d.report(tCtx, "0", old)
	d.report(tCtx, "0.9", added)
	d.say("$ kill -9 %d", d.picker.Process.Pid)
	d.picker.kill(tCtx)
	began := time.Now()
	d.kubectl(tCtx, "scale", "deployment", workers, "--replicas=3", "--namespace="+tCtx.Namespace())
	awaitFacts(tCtx, workersAre(old, 3))
	took := time.Since(began)
	d.expect(tCtx,
		workersLeft("today's order: the newest workers are gone, although the old ones are idle", old),
		fact{fmt.Sprintf("it took %.1f s; the picker has at most %s", took.Seconds(), pickerLimit), func(tCtx ktesting.TContext) {
			if took > pickerLimit+kubectlTime {
				tCtx.Fatal("it took too long")
			}
		}},
		d.eventSays("PodPickerFailed", fmt.Sprintf("attempt %[1]d of %[1]d", pickerRetries+1), "connection refused"))
	d.showEvents(tCtx, "PodPickerFailed")
}

// workerPods returns the names of the pods, sorted.
func workerPods(tCtx ktesting.TContext) []string {
	tCtx.Helper()
	pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{LabelSelector: appLabel + "=" + workers})
	tCtx.ExpectNoError(err)
	var names []string
	for _, pod := range pods.Items {
		if !serves(&pod) {
			tCtx.Fatalf("%s is not ready, or ends", pod.Name)
		}
		names = append(names, pod.Name)
	}
	return slices.Sorted(slices.Values(names))
}

// workersLeft expects exactly these pods, all ready, and the status of the Deployment to count them.
func workersLeft(what string, want []string) fact {
	return fact{what, workersAre(want, len(want)).check}
}

// workersAre expects so many ready pods, and these if they are given.
func workersAre(want []string, count int) fact {
	return fact{fmt.Sprintf("%d workers are ready", count), func(tCtx ktesting.TContext) {
		pods := workerPods(tCtx)
		expectCount(tCtx, "workers", len(pods), count)
		if want != nil && !slices.Equal(pods, want) {
			tCtx.Fatalf("the workers are %q, want %q", pods, want)
		}
		deployment, err := tCtx.Client().AppsV1().Deployments(tCtx.Namespace()).Get(tCtx, workers, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		expectCount(tCtx, "replicas in the status", int(deployment.Status.Replicas), count)
		expectCount(tCtx, "ready replicas in the status", int(deployment.Status.ReadyReplicas), count)
	}}
}

// eventSays expects an event of the ReplicaSet with a reason that says all of this.
func (d *pickerDemo) eventSays(reason string, words ...string) fact {
	return fact{fmt.Sprintf("the event %s says so", reason), func(tCtx ktesting.TContext) {
		events, err := tCtx.Client().CoreV1().Events(tCtx.Namespace()).List(tCtx, metav1.ListOptions{FieldSelector: "involvedObject.kind=ReplicaSet,reason=" + reason})
		tCtx.ExpectNoError(err)
		expectCount(tCtx, "events "+reason+" of the ReplicaSet", len(events.Items), 1)
		for _, word := range words {
			if !strings.Contains(events.Items[0].Message, word) {
				tCtx.Fatalf("the event says %q, which lacks %q", events.Items[0].Message, word)
			}
		}
	}}
}

func (d *pickerDemo) showEvents(tCtx ktesting.TContext, reason string) {
	tCtx.Helper()
	d.say("")
	d.kubectl(tCtx, "get", "events", "--field-selector=reason="+reason, "--namespace="+tCtx.Namespace(), "--output=custom-columns=OBJECT:.involvedObject.kind,TYPE:.type,REASON:.reason,MESSAGE:.message")
}
