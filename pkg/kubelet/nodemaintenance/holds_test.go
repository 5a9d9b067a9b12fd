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
	"os"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/maintenance"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

const testNamespace = "kube-system"

func newMirrorPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace, Name: name, UID: types.UID(name + "-mirror"), Labels: map[string]string{"app": name},
			Annotations: map[string]string{v1.MirrorPodAnnotationKey: "hash"},
		},
		Spec: v1.PodSpec{NodeName: "node", Priority: ptr.To[int32](0), TerminationGracePeriodSeconds: ptr.To[int64](20)},
	}
}

// targetsUpTo returns targets that take static pods with at most this priority.
func targetsUpTo(priority int32) []v1.DrainPlanEntry {
	return []v1.DrainPlanEntry{{PodType: v1.PodTypeStatic, PodPriority: priority}}
}

func compileTargets(t *testing.T, entries []v1.DrainPlanEntry) maintenance.Targets {
	t.Helper()
	targets, err := maintenance.NewTargets(entries)
	if err != nil {
		t.Fatal(err)
	}
	return targets
}

func loadHolds(t *testing.T, directory string) *Holds {
	t.Helper()
	h, err := LoadHolds(directory)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func stopAndHold(t *testing.T, h *Holds, name string) {
	t.Helper()
	mirror := newMirrorPod(name)
	if err := h.stop(mirror, ""); err != nil {
		t.Fatal(err)
	}
	h.end(keyOf(mirror))
	if err := h.confirm(keyOf(mirror)); err != nil {
		t.Fatal(err)
	}
}

// A restarted kubelet stops a pod again whose end was not stored, with its full grace period.
func TestHoldsAfterRestart(t *testing.T) {
	mirror := newMirrorPod("web")
	for name, test := range map[string]struct {
		act  func(h *Holds) error
		want state
	}{
		"stopping": {act: func(h *Holds) error { return h.stop(mirror, "") }, want: running},
		"ended":    {act: func(h *Holds) error { defer h.end(keyOf(mirror)); return h.stop(mirror, "") }, want: running},
		"held":     {act: func(h *Holds) error { stopAndHold(t, h, "web"); return nil }, want: held},
		"refused":  {act: func(h *Holds) error { return errors.Join(h.stop(mirror, ""), h.refuse(keyOf(mirror))) }, want: refused},
		"stopping, while another one is stored": {act: func(h *Holds) error {
			other := newMirrorPod("other")
			return errors.Join(h.stop(mirror, ""), h.stop(other, ""), h.refuse(keyOf(other)))
		}, want: running},
		"not asked": {act: func(h *Holds) error { return h.confirm(keyOf(mirror)) }, want: running},
		"too early": {act: func(h *Holds) error { return errors.Join(h.stop(mirror, ""), h.confirm(keyOf(mirror))) }, want: running},
		"held, then refused": {act: func(h *Holds) error {
			stopAndHold(t, h, "web")
			return h.refuse(keyOf(mirror))
		}, want: held},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			if err := test.act(loadHolds(t, directory)); err != nil {
				t.Fatal(err)
			}
			h := loadHolds(t, directory)
			if got, _ := h.observe(keyOf(mirror)); got != test.want {
				t.Errorf("state %s, want %s", got, test.want)
			}
			if got, want := h.Withheld(mirror), test.want == held; got != want {
				t.Errorf("withheld %v, want %v", got, want)
			}
		})
	}
}

// Labels and priority are those of the mirror pod that was stopped, whatever the manifest says.
func TestHoldsRelease(t *testing.T) {
	for name, test := range map[string]struct {
		targets []v1.DrainPlanEntry
		want    []string
	}{
		"all":         {targets: targetsUpTo(10)},
		"low":         {targets: targetsUpTo(5), want: []string{"high"}},
		"other type":  {targets: []v1.DrainPlanEntry{{PodType: v1.PodTypeDefault, PodPriority: 10}}, want: []string{"high", "low"}},
		"maintenance": {want: []string{"high", "low"}},
		"selector": {
			targets: []v1.DrainPlanEntry{{PodType: v1.PodTypeStatic, PodPriority: 10, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "high"}}}},
			want:    []string{"low"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			h := loadHolds(t, directory)
			high := newMirrorPod("high")
			high.Spec.Priority = ptr.To[int32](10)
			if err := errors.Join(h.stop(high, ""), h.refuse(keyOf(high))); err != nil {
				t.Fatal(err)
			}
			stopAndHold(t, h, "low")
			h = loadHolds(t, directory)
			released, err := h.release(compileTargets(t, test.targets))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range released {
				got = append(got, s.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("released %q, want %q", got, test.want)
			}
			if left := loadHolds(t, directory); len(left.pods)+len(got) != 2 {
				t.Errorf("the checkpoint has %v", left.pods)
			}
		})
	}
}

// Nothing but the next step of a stop changes a state.
func TestHoldsIgnoreOtherSteps(t *testing.T) {
	mirror := newMirrorPod("web")
	key := keyOf(mirror)
	for name, test := range map[string]struct {
		act  func(h *Holds)
		want state
		// keeps is whether the mirror pod must exist.
		keeps bool
	}{
		"unknown":  {act: func(*Holds) {}, want: running},
		"stopping": {act: func(h *Holds) { _ = h.stop(mirror, "") }, want: stopping, keeps: true},
		"terminated": {act: func(h *Holds) {
			_ = h.stop(mirror, "")
			h.terminate(key)
		}, want: stopping},
		"ended": {act: func(h *Holds) {
			_ = h.stop(mirror, "")
			h.end(key)
		}, want: ended},
		"held": {act: func(h *Holds) { stopAndHold(t, h, "web") }, want: held},
		"refused": {act: func(h *Holds) {
			_ = h.stop(mirror, "")
			_ = h.refuse(key)
		}, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			h := loadHolds(t, t.TempDir())
			test.act(h)
			if got := h.KeepsMirrorPod(key); got != test.keeps {
				t.Errorf("keeps the mirror pod: %v, want %v", got, test.keeps)
			}
			if test.want != stopping {
				h.terminate(key)
				h.end(key)
				h.giveUp(key)
			}
			if test.want == held || test.want == ended {
				_ = h.stop(mirror, "")
			}
			other := newMirrorPod("web")
			other.Namespace = "default"
			h.giveUp(keyOf(other))
			h.end(keyOf(other))
			if got, _ := h.observe(key); got != test.want {
				t.Errorf("state %s, want %s", got, test.want)
			}
			if got, want := h.Withheld(mirror), test.want != running && test.want != refused; got != want {
				t.Errorf("withheld %v, want %v", got, want)
			}
			if h.Withheld(other) || h.IsEmpty() != (test.want == running) {
				t.Errorf("pods %v", h.pods)
			}
		})
	}
}

// The numbers of pods follow each change, also at the start, and return to zero.
func TestHoldsAreCounted(t *testing.T) {
	expect := func(want map[state]float64) {
		t.Helper()
		for _, s := range []state{stopping, ended, held, refused} {
			if got := metricValue(t, "kubelet_maintenance_static_pods", string(s)); got != want[s] {
				t.Errorf("%v pods are %s, want %v", got, s, want[s])
			}
		}
	}
	directory := t.TempDir()
	h := loadHolds(t, directory)
	expect(nil)
	a, b := newMirrorPod("a"), newMirrorPod("b")
	if err := h.stop(a, ""); err != nil {
		t.Fatal(err)
	}
	expect(map[state]float64{stopping: 1})
	h.end(keyOf(a))
	expect(map[state]float64{ended: 1})
	if err := h.confirm(keyOf(a)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.stop(b, ""), h.refuse(keyOf(b))); err != nil {
		t.Fatal(err)
	}
	expect(map[state]float64{held: 1, refused: 1})
	loadHolds(t, t.TempDir())
	expect(nil)
	h = loadHolds(t, directory)
	expect(map[state]float64{held: 1, refused: 1})
	if _, err := h.ReleaseAll(); err != nil {
		t.Fatal(err)
	}
	expect(nil)
	if err := h.stop(b, ""); err != nil {
		t.Fatal(err)
	}
	h.giveUp(keyOf(b))
	expect(nil)
}

func newSandbox(namespace, name, source string) *runtimeapi.PodSandbox {
	return &runtimeapi.PodSandbox{
		Metadata:    &runtimeapi.PodSandboxMetadata{Namespace: namespace, Name: name},
		Annotations: map[string]string{kubetypes.ConfigSourceAnnotationKey: source},
	}
}

// A kubelet without the gate has run the pods.
func TestReleaseRunning(t *testing.T) {
	directory := t.TempDir()
	h := loadHolds(t, directory)
	stopAndHold(t, h, "away")
	stopAndHold(t, h, "back")
	stopAndHold(t, h, "copied")
	tenant := newMirrorPod("back")
	tenant.Namespace = "a-tenant"
	if err := h.stop(tenant, ""); err != nil {
		t.Fatal(err)
	}
	needed := newMirrorPod("needed")
	if err := errors.Join(h.stop(needed, ""), h.refuse(keyOf(needed))); err != nil {
		t.Fatal(err)
	}
	released, err := h.ReleaseRunning([]*runtimeapi.PodSandbox{
		newSandbox(testNamespace, "back", "file"), newSandbox(testNamespace, "needed", "file"), newSandbox("default", "away", "file"),
		newSandbox(testNamespace, "copied", "api"), newSandbox("a-tenant", "back", "http"), {}, // A tenant's pod, and one of an unknown program.
	})
	if err != nil || !slices.Equal(released, []string{"a-tenant/back", testNamespace + "/back"}) {
		t.Errorf("released %q, error %v", released, err)
	}
	h = loadHolds(t, directory)
	for name, want := range map[string]state{"away": held, "back": running, "copied": held, "needed": refused} {
		if got, _ := h.observe(keyOf(newMirrorPod(name))); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestHoldsWithoutStorage(t *testing.T) {
	directory := t.TempDir()
	h := loadHolds(t, directory)
	mirror, other := newMirrorPod("web"), newMirrorPod("other")
	stopAndHold(t, h, "first")
	if err := h.stop(mirror, ""); err != nil {
		t.Fatal(err)
	}
	h.end(keyOf(mirror))
	if err := os.RemoveAll(directory); err != nil {
		t.Fatal(err)
	}
	if err := h.confirm(keyOf(mirror)); err == nil {
		t.Error("the end was stored")
	}
	if got, _ := h.observe(keyOf(mirror)); got != ended {
		t.Errorf("state %s, want %s until it is stored", got, ended)
	}
	if err := h.stop(other, ""); err == nil || h.Withheld(other) {
		t.Errorf("another pod was stopped, error %v", err)
	}
	// Pods run even if that cannot be stored.
	if err := h.refuse(keyOf(mirror)); err == nil || h.Withheld(mirror) {
		t.Errorf("withheld %v after the refusal, error %v", h.Withheld(mirror), err)
	}
	if released, err := h.release(maintenance.Targets{}); err == nil || len(released) != 2 || !h.IsEmpty() {
		t.Errorf("released %v, error %v", released, err)
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	stopAndHold(t, h, "web")
}
