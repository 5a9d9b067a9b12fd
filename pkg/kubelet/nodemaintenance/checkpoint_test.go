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

package nodemaintenance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/kubelet/nodemaintenance/metrics"
	"k8s.io/utils/ptr"
)

func TestCheckpointRoundTrip(t *testing.T) {
	c := &checkpoint{directory: t.TempDir()}
	for _, want := range [][]podState{
		{
			{Namespace: "kube-system", Name: "etcd-node", Labels: map[string]string{"app": "etcd"}, Priority: ptr.To[int32](2000001000), State: held},
			{Namespace: "kube-system", Name: "kube-apiserver-node", State: refused},
		},
		{{Namespace: "default", Name: "web", Priority: ptr.To[int32](0), State: held}},
		{},
	} {
		if err := c.write(want); err != nil {
			t.Fatal(err)
		}
		got, err := c.read()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		if entries, err := os.ReadDir(c.directory); err != nil || len(entries) != 1 {
			t.Errorf("files in the directory: %v, %v: want the checkpoint only", entries, err)
		}
	}
}

// The format is that of all kubelets of version 1: a kubelet reads what the last one has written.
func TestCheckpointFormat(t *testing.T) {
	directory := t.TempDir()
	h := loadHolds(t, directory)
	stopAndHold(t, h, "web")
	needed, other := newMirrorPod("needed"), newMirrorPod("db")
	needed.Labels, needed.Spec.Priority = nil, nil
	other.Namespace = "default"
	for _, pod := range []*v1.Pod{needed, other} {
		if err := h.stop(pod, ""); err != nil {
			t.Fatal(err)
		}
		h.terminate(keyOf(pod))
		if err := h.refuse(keyOf(pod)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(directory, checkpointFile)
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"version":1,"pods":[` +
		`{"namespace":"default","name":"db","labels":{"app":"db"},"priority":0,"state":"refused"},` +
		`{"namespace":"kube-system","name":"needed","state":"refused"},` +
		`{"namespace":"kube-system","name":"web","labels":{"app":"web"},"priority":0,"state":"held"}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("checkpoint (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %v, error %v: other users must not read labels of pods", info.Mode(), err)
	}
}

// What a kubelet could not read again must not be written.
func TestCheckpointIsTooLarge(t *testing.T) {
	directory := t.TempDir()
	h := loadHolds(t, directory)
	stopAndHold(t, h, "web")
	large := newMirrorPod("large")
	large.Labels["x"] = strings.Repeat("x", maxCheckpointSize)
	if err := h.stop(large, ""); err != nil {
		t.Fatal(err)
	}
	h.end(keyOf(large))
	if err := h.confirm(keyOf(large)); err == nil {
		t.Error("the end was stored")
	}
	if h = loadHolds(t, directory); !h.Withheld(newMirrorPod("web")) {
		t.Error("the old content is gone")
	}
}

// Devices instead of the temporary file: on a full disk, the write fails, and if what was written
// cannot be flushed, it is not stored.
func TestCheckpointOnFailingDisk(t *testing.T) {
	for device, want := range map[string]error{"/dev/full": syscall.ENOSPC, "/dev/null": syscall.EINVAL} {
		t.Run(device, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				t.Skip("needs devices of Linux")
			}
			directory := t.TempDir()
			if err := os.Symlink(device, filepath.Join(directory, checkpointFile+".new")); err != nil {
				t.Fatal(err)
			}
			errorsBefore := metricValue(t, "kubelet_maintenance_checkpoint_errors_total", "write")
			if err := (&checkpoint{directory: directory}).write(nil); !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
			if got := metricValue(t, "kubelet_maintenance_checkpoint_errors_total", "write") - errorsBefore; got != 1 {
				t.Errorf("%v errors are counted, want 1", got)
			}
			if entries, err := os.ReadDir(directory); err != nil || len(entries) != 0 {
				t.Errorf("files in the directory: %v, %v: want none", entries, err)
			}
		})
	}
}

// metricValue returns the value of a metric with this value of its label.
func metricValue(t *testing.T, name, label string) float64 {
	t.Helper()
	metrics.Register()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && metric.GetLabel()[0].GetValue() == label {
				return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestCheckpointOfUnusableContent(t *testing.T) {
	pod := func(text string) string { return fmt.Sprintf(`{"version":1,"pods":[%s]}`, text) }
	for name, content := range map[string]string{
		"empty":             "",
		"cut off":           `{"version":1,"pods":[{"namespace":"default","na`,
		"zeros":             strings.Repeat("\x00", 4096),
		"foreign":           "apiVersion: v1\nkind: Pod\n",
		"list":              `[{"namespace":"default","name":"web","state":"held"}]`,
		"no version":        `{"pods":[]}`,
		"later version":     `{"version":2,"pods":[]}`,
		"too large":         pod(`{"namespace":"default","name":"web","state":"held"}`) + strings.Repeat(" ", maxCheckpointSize),
		"unknown state":     pod(`{"namespace":"default","name":"web","state":"stopping"}`),
		"no state":          pod(`{"namespace":"default","name":"web"}`),
		"no name":           pod(`{"namespace":"default","state":"held"}`),
		"invalid name":      pod(`{"namespace":"default","name":"../web","state":"held"}`),
		"invalid namespace": pod(`{"namespace":"a/b","name":"web","state":"held"}`),
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			if err := os.WriteFile(filepath.Join(directory, checkpointFile), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			errorsBefore := metricValue(t, "kubelet_maintenance_checkpoint_errors_total", "read")
			h, err := LoadHolds(directory)
			if err == nil {
				t.Error("no error")
			}
			if got := metricValue(t, "kubelet_maintenance_checkpoint_errors_total", "read") - errorsBefore; got != 1 {
				t.Errorf("%v errors are counted, want 1", got)
			}
			if !h.IsEmpty() {
				t.Errorf("pods are withheld: %v", h.pods)
			}
			// The next stop replaces the file.
			stopAndHold(t, h, "web")
			if h, err = LoadHolds(directory); err != nil || !h.Withheld(newMirrorPod("web")) {
				t.Errorf("after the next stop: %v, error %v", h.pods, err)
			}
		})
	}
}

func TestCheckpointIsDirectory(t *testing.T) {
	directory := t.TempDir()
	if err := os.MkdirAll(filepath.Join(directory, checkpointFile, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := LoadHolds(directory)
	if err == nil || !h.IsEmpty() {
		t.Errorf("pods %v, error %v: want none and an error", h.pods, err)
	}
	if err := h.stop(newMirrorPod("web"), ""); err == nil || h.Withheld(newMirrorPod("web")) {
		t.Errorf("the pod is stopped although that cannot be stored, error %v", err)
	}
}

func TestCheckpointIsMissing(t *testing.T) {
	h, err := LoadHolds(t.TempDir())
	if err != nil || !h.IsEmpty() {
		t.Errorf("pods %v, error %v: want none", h.pods, err)
	}
}

// A crash during a write leaves the temporary file.
func TestCheckpointAfterCrash(t *testing.T) {
	directory := t.TempDir()
	h, err := LoadHolds(directory)
	if err != nil {
		t.Fatal(err)
	}
	stopAndHold(t, h, "web")
	if err := os.WriteFile(filepath.Join(directory, checkpointFile+".new"), []byte(`{"ver`+strings.Repeat(" ", 4096)+"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err = LoadHolds(directory); err != nil || !h.Withheld(newMirrorPod("web")) {
		t.Errorf("pods %v, error %v: want web", h.pods, err)
	}
	// The next write, which is shorter, replaces it.
	if err := h.stop(newMirrorPod("other"), ""); err != nil {
		t.Fatal(err)
	}
	if h, err = LoadHolds(directory); err != nil || len(h.pods) != 1 {
		t.Errorf("pods %v, error %v: want web", h.pods, err)
	}
}

func TestRemoveCheckpoint(t *testing.T) {
	directory := t.TempDir()
	if removed, err := RemoveCheckpoint(directory); removed || err != nil {
		t.Errorf("removed %v, error %v: there is none", removed, err)
	}
	h, err := LoadHolds(directory)
	if err != nil {
		t.Fatal(err)
	}
	stopAndHold(t, h, "web")
	if removed, err := RemoveCheckpoint(directory); !removed || err != nil {
		t.Errorf("removed %v, error %v", removed, err)
	}
	if h, err = LoadHolds(directory); err != nil || !h.IsEmpty() {
		t.Errorf("pods %v, error %v: want none", h.pods, err)
	}
}
