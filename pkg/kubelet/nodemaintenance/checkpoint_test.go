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
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
			h, err := LoadHolds(directory)
			if err == nil {
				t.Error("no error")
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
	if err := h.stop(newMirrorPod("web")); err == nil || h.Withheld(newMirrorPod("web")) {
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
	if err := os.WriteFile(filepath.Join(directory, checkpointFile+".new"), []byte(`{"ver`), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err = LoadHolds(directory); err != nil || !h.Withheld(newMirrorPod("web")) {
		t.Errorf("pods %v, error %v: want web", h.pods, err)
	}
	stopAndHold(t, h, "other")
	if h, err = LoadHolds(directory); err != nil || len(h.pods) != 2 {
		t.Errorf("pods %v, error %v: want two", h.pods, err)
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
