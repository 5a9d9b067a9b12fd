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
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
)

const (
	// saver is the interceptor of a pod that the test runs. It takes saveTime.
	saver    = "saver.example.com"
	saveTime = 5 * time.Second
)

// TestInterop drains a node with the programs of other projects, which know nothing of
// EvictionRequests: the workloads of TestSurge leave without downtime, and a pod is not ended before
// its interceptor has completed.
func TestInterop(t *testing.T) { testInterop(ktesting.Init(t)) }
func testInterop(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	// Shorter than that of go test, so that the clusters are stopped.
	tCtx = tCtx.WithTimeout(25*time.Minute, "the test took too long")
	for _, evictor := range []struct {
		name    string
		command func(ctx context.Context, c *localcluster.Cluster) *exec.Cmd
	}{
		{"kubectl", func(ctx context.Context, c *localcluster.Cluster) *exec.Cmd {
			return evictorCommand(ctx, c, filepath.Join(p.base, "kubectl"), "drain", drainedNode, "--ignore-daemonsets", drainTimeout)
		}},
		{"Cluster API", func(ctx context.Context, c *localcluster.Cluster) *exec.Cmd {
			// Every 20 seconds, as Cluster API.
			return evictorCommand(ctx, c, filepath.Join(p.fork, "capi-drain"), "--node="+drainedNode, "--retry=20s", drainTimeout)
		}},
		{"descheduler", func(ctx context.Context, c *localcluster.Cluster) *exec.Cmd {
			return evictorCommand(ctx, c, filepath.Join(p.fork, "descheduler"), "--policy-config-file="+deschedulerPolicyFile(c), "--descheduling-interval=5s",
				"--secure-port=0", "--feature-gates=EvictionsInBackground=true", "--v=3")
		}},
	} {
		run(tCtx, evictor.name, func(tCtx ktesting.TContext) {
			c := localcluster.Cluster{Name: "interop", Output: p.output, Bin: p.fork, Nodes: nodes}
			r := &drainResult{way: evictor.name}
			tCtx = startSurge(tCtx, &c, r)
			saved := startSaver(tCtx)
			if evictor.name == "descheduler" {
				// It does not cordon the node, and never ends.
				cordon(tCtx)
				writeDeschedulerPolicy(tCtx, &c)
				recordUntilEmpty(tCtx, r, func(ctx context.Context) *exec.Cmd { return evictor.command(ctx, &c) })
			} else {
				recordCommand(tCtx, r, evictor.command(tCtx, &c))
			}
			for _, check := range append(interopChecks(), check{"the interceptor completed before its pod was ended", saved.problems}) {
				check.run(tCtx, r)
			}
			tCtx.Log(table([]*drainResult{r}))
		})
	}
}

// interopChecks are the checks of a drain by other programs, which leave the DaemonSet.
func interopChecks() []check {
	return slices.DeleteFunc(append(ourChecks(), check{"all pods but that of the DaemonSet have left the node", stillThereBesideDaemonSet}), func(c check) bool {
		return c.what == "all pods have left the node" || c.what == "the pod of the DaemonSet has left last"
	})
}

func stillThereBesideDaemonSet(r *drainResult) []string {
	return slices.DeleteFunc(stillThere(r), func(problem string) bool { return strings.HasPrefix(problem, daemonSet+"-") })
}

// evictorCommand is a program with all rights in the cluster. It is ended as a user ends it.
func evictorCommand(ctx context.Context, c *localcluster.Cluster, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, append(args, "--kubeconfig="+c.Kubeconfig())...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 5 * time.Second
	return command
}

// recordUntilEmpty is recordCommand for a program that does not end: it is killed when the pods have
// left the node, or after a long time, and then the checks report what is left.
func recordUntilEmpty(tCtx ktesting.TContext, r *drainResult, newCommand func(ctx context.Context) *exec.Cmd) {
	tCtx.Helper()
	ctx, kill := context.WithTimeout(tCtx, pollTimeout)
	defer kill()
	command := newCommand(ctx)
	command.Cancel = func() error { return command.Process.Kill() }
	var watching sync.WaitGroup
	watching.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			pods, err := tCtx.Client().CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + drainedNode})
			if err == nil && !slices.ContainsFunc(pods.Items, func(pod v1.Pod) bool { return pod.Labels[appLabel] != daemonSet }) {
				kill()
			}
		}, pollInterval)
	})
	recordCommand(tCtx, r, command)
	if ctx.Err() == nil {
		tCtx.Errorf("the program ended by itself: %s", r.complaint)
	}
	kill()
	watching.Wait()
	r.complaint = ""
}

func cordon(tCtx ktesting.TContext) {
	tCtx.Helper()
	_, err := tCtx.Client().CoreV1().Nodes().Patch(tCtx, drainedNode, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	tCtx.ExpectNoError(err, "cordoning the node")
}

func deschedulerPolicyFile(c *localcluster.Cluster) string {
	return filepath.Join(c.Dir(), "descheduler.yaml")
}

// writeDeschedulerPolicy writes a policy that evicts the pods of cordoned nodes. The descheduler
// calls once for a pod, and again after ten minutes.
func writeDeschedulerPolicy(tCtx ktesting.TContext, c *localcluster.Cluster) {
	tCtx.Helper()
	const policy = `apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: interop
  pluginConfig:
  - name: DefaultEvictor
    args: {}
  - name: RemovePodsViolatingNodeTaints
    args: {namespaces: {include: [surge, saved]}}
  plugins:
    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}
`
	tCtx.ExpectNoError(os.WriteFile(deschedulerPolicyFile(c), []byte(policy), 0o644), "writing the policy of the descheduler")
}

// savedPods are the turns of the interceptor saver.
type savedPods struct {
	lock  sync.Mutex
	turns int
	ended []string
}

// startSaver runs the interceptor of a pod that it creates on the drained node, in a namespace of
// its own.
func startSaver(tCtx ktesting.TContext) *savedPods {
	tCtx.Helper()
	saved := &savedPods{}
	running := tCtx.WithCancel()
	var interceptor sync.WaitGroup
	interceptor.Go(func() {
		err := evictionrequest.Run(running, evictionrequest.InterceptorConfig{Client: tCtx.Client(), Name: saver, Namespace: "saved", Handle: func(ctx context.Context, turn *evictionrequest.Turn) error {
			turn.SetExpectedFinishTime(time.Now().Add(saveTime))
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(saveTime):
			}
			return saved.note(ctx, tCtx, turn.Request().Spec.Target.Pod.Name)
		}})
		if err != nil {
			tCtx.Errorf("running the interceptor: %v", err)
		}
	})
	tCtx.Cleanup(func() {
		running.Cancel("the test has ended")
		interceptor.Wait()
	})

	tCtx = tCtx.WithNamespace("saved")
	createNamespace(tCtx)
	openOthers(tCtx, false)
	pod := newScheduledPod("data")
	pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: saver}}
	pod.Annotations = map[string]string{deschedulerInBackground: ""}
	create(tCtx, tCtx.Client().AppsV1().Deployments("saved"), newDeployment(pod, 1))
	awaitReadyPod(tCtx, "data")
	openOthers(tCtx, true)
	return saved
}

// note records the end of a turn, at which the pod must still run.
func (s *savedPods) note(ctx context.Context, tCtx ktesting.TContext, name string) error {
	pod, err := tCtx.Client().CoreV1().Pods("saved").Get(ctx, name, metav1.GetOptions{})
	s.lock.Lock()
	defer s.lock.Unlock()
	s.turns++
	switch {
	case err != nil:
		s.ended = append(s.ended, err.Error())
	case pod.DeletionTimestamp != nil:
		s.ended = append(s.ended, fmt.Sprintf("pod %s terminates since %v", name, pod.DeletionTimestamp))
	}
	return nil
}

func (s *savedPods) problems(*drainResult) []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.turns == 0 {
		return []string{"it was never active"}
	}
	return s.ended
}
