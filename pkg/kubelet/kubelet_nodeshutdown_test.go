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

package kubelet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	cadvisorapi "github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-helpers/node/maintenance"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance"
)

func writeState(t *testing.T, directory, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStartShutdownMaintenance(t *testing.T) {
	for name, test := range map[string]struct {
		prefers bool
		record  string
	}{
		"not configured":                {false, `{"version":1}`},
		"configured, but not possible":  {true, `{"version":1}`},
		"not configured any more":       {false, `{"version":1,"bootID":"boot-1","startTime":"2026-01-01T00:00:00Z"}`},
		"not possible any more":         {true, `{"version":1,"bootID":"boot-1","startTime":"2026-01-01T00:00:00Z"}`},
		"not configured after the boot": {false, `{"version":1,"bootID":"boot-0","startTime":"2026-01-01T00:00:00Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			testKubelet := newTestKubelet(t, false)
			defer testKubelet.Cleanup()
			kl := testKubelet.kubelet
			kl.setCachedMachineInfo(&cadvisorapi.MachineInfo{BootID: "boot-1"})
			kl.kubeletConfiguration.PreferNodeMaintenanceDuringGracefulShutdown = test.prefers
			kl.setNodeStatusFuncs = nil
			writeState(t, kl.rootDirectory, "node_shutdown_maintenance_state", test.record)
			holds, err := nodemaintenance.LoadHolds(kl.rootDirectory)
			if err != nil {
				t.Fatal(err)
			}
			shutdown := kl.startShutdownMaintenance(ctx, &Dependencies{Recorder: record.NewFakeRecorder(100)}, holds)
			if shutdown.WasInterrupted() {
				t.Error("a shutdown is in progress, whose cancellation the kubelet would not notice")
			}
			// A kubelet which does not drain any more corrects the condition of the last shutdown.
			for _, had := range []bool{false, true} {
				node := &v1.Node{}
				if had {
					node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeGracefulNodeShutdownInProgress, Status: v1.ConditionTrue, Reason: maintenance.ShutdownReason}}
				}
				for _, set := range kl.setNodeStatusFuncs {
					if err := set(ctx, node); err != nil {
						t.Error(err)
					}
				}
				if got := node.Status.Conditions; len(got) > 0 != had || had && got[0].Status != v1.ConditionFalse {
					t.Errorf("conditions %v", got)
				}
			}
		})
	}
}

func TestBootID(t *testing.T) {
	kl := &Kubelet{}
	for want, info := range map[string]*cadvisorapi.MachineInfo{unknownBootID: nil, "boot-1": {BootID: "boot-1"}} {
		kl.setCachedMachineInfo(info)
		if got := kl.bootID(); got != want {
			t.Errorf("boot %q, want %q", got, want)
		}
	}
	kl.setCachedMachineInfo(&cadvisorapi.MachineInfo{})
	if got := kl.bootID(); got != unknownBootID {
		t.Errorf("boot %q", got)
	}
}

func TestRunningPods(t *testing.T) {
	runtime := &containertest.FakeRuntime{PodList: []*containertest.FakePod{{Pod: &kubecontainer.Pod{Namespace: "default", Name: "a"}}}}
	kl := &Kubelet{containerRuntime: runtime}
	got, err := kl.runningPods(t.Context())
	if err != nil || !slices.Equal(got, []types.NamespacedName{{Namespace: "default", Name: "a"}}) {
		t.Errorf("got %v, %v", got, err)
	}
	runtime.Err = errors.New("no runtime")
	if _, err := kl.runningPods(t.Context()); err == nil {
		t.Error("no error")
	}
}
