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

package config

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

type noStartupObserver struct{}

func (noStartupObserver) ObservedPodOnWatch(klog.Logger, *v1.Pod, time.Time) {}

// filteredConfig is a PodConfig that withholds pods by name.
type filteredConfig struct {
	*PodConfig
	withheld sets.Set[string]
	// seen are the names of the pods that the sync loop has after the updates so far.
	seen sets.Set[string]
}

func newFilteredConfig(withheld ...string) *filteredConfig {
	c := &filteredConfig{
		PodConfig: NewPodConfig(record.NewFakeRecorder(100), noStartupObserver{}),
		withheld:  sets.New(withheld...), seen: sets.New[string](),
	}
	c.WithholdStaticPods(func(pod *v1.Pod) bool { return c.withheld.Has(pod.Name) })
	return c
}

func podsNamed(names ...string) sourceUpdate {
	var update sourceUpdate
	for _, name := range names {
		update.Pods = append(update.Pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}})
	}
	return update
}

func (c *filteredConfig) merge(t *testing.T, source string, names ...string) {
	t.Helper()
	if err := c.mux.merger.Merge(t.Context(), source, podsNamed(names...)); err != nil {
		t.Fatalf("merging %s: %v", source, err)
	}
}

// expect compares the pods that the sync loop has, after the updates that are in the channel.
func (c *filteredConfig) expect(t *testing.T, want ...string) {
	t.Helper()
	for len(c.updates) > 0 {
		update := <-c.updates
		for _, pod := range update.Pods {
			if update.Op == kubetypes.REMOVE {
				c.seen.Delete(pod.Name)
			} else {
				c.seen.Insert(pod.Name)
			}
		}
	}
	if got := sets.List(c.seen); !slices.Equal(got, want) {
		t.Errorf("the kubelet has %q, want %q", got, want)
	}
}

func TestWithheldPodsLeaveAndReturn(t *testing.T) {
	for _, source := range []string{kubetypes.FileSource, kubetypes.HTTPSource} {
		t.Run(source, func(t *testing.T) {
			c := newFilteredConfig()
			c.merge(t, source, "a", "b")
			c.expect(t, "a", "b")
			c.withheld.Insert("a")
			c.expect(t, "a", "b") // Until the sources are merged again.
			c.MergeStaticPods(t.Context())
			c.expect(t, "b")
			c.merge(t, source, "a", "b", "c")
			c.expect(t, "b", "c")
			// The source does not repeat its update.
			c.withheld.Delete("a")
			c.MergeStaticPods(t.Context())
			c.expect(t, "a", "b", "c")
		})
	}
}

// A pod that is removed from its source while it is withheld must not return.
func TestWithheldPodIsRemoved(t *testing.T) {
	c := newFilteredConfig("a")
	c.merge(t, kubetypes.FileSource, "a", "b")
	c.expect(t, "b")
	c.merge(t, kubetypes.FileSource, "b")
	c.withheld.Clear()
	c.MergeStaticPods(t.Context())
	c.expect(t, "b")
}

func TestWithheldPodsOfSeveralSources(t *testing.T) {
	c := newFilteredConfig("a", "x")
	c.merge(t, kubetypes.FileSource, "a", "b")
	c.merge(t, kubetypes.HTTPSource, "x", "y")
	c.expect(t, "b", "y")
	c.withheld.Clear()
	c.MergeStaticPods(t.Context())
	c.expect(t, "a", "b", "x", "y")
}

// Pods of the API server are not static.
func TestPodsOfAPIServerAreNotWithheld(t *testing.T) {
	c := newFilteredConfig("a")
	c.merge(t, kubetypes.ApiserverSource, "a")
	c.expect(t, "a")
	c.withheld.Clear()
	c.MergeStaticPods(t.Context())
	c.expect(t, "a")
}

// The kubelet waits for the first update of each source, also if it has no visible pod, and a source
// that has sent none must not count as seen.
func TestWithheldPodsDoNotHideSource(t *testing.T) {
	c := newFilteredConfig("a")
	c.Channel(t.Context(), kubetypes.FileSource)
	c.MergeStaticPods(t.Context())
	if c.SeenAllSources(klog.Background(), sets.New(kubetypes.FileSource)) {
		t.Error("the file source is seen before its first update")
	}
	c.merge(t, kubetypes.FileSource, "a")
	if !c.SeenAllSources(klog.Background(), sets.New(kubetypes.FileSource)) || len(c.updates) != 1 {
		t.Errorf("the file source is not seen after its first update, or there are %d updates, want 1", len(c.updates))
	}
}

// The merged pods are modified and kept, so the source must not share them.
func TestWithholdingKeepsPodsOfSource(t *testing.T) {
	c := newFilteredConfig()
	update := podsNamed("a")
	if err := c.mux.merger.Merge(t.Context(), kubetypes.FileSource, update); err != nil {
		t.Fatal(err)
	}
	if annotations := update.Pods[0].Annotations; annotations != nil {
		t.Errorf("the pod of the source got annotations %v", annotations)
	}
}

// While the sync loop does not read, sources and holds wait. Decisions about what is withheld must
// not: the sync loop may wait for them.
func TestWithholdingDoesNotBlock(t *testing.T) {
	c := newFilteredConfig()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// More updates than fit into the channel.
		for i := range cap(c.updates) + 10 {
			_ = c.mux.merger.Merge(t.Context(), kubetypes.FileSource, podsNamed(fmt.Sprint(i)))
			c.MergeStaticPods(t.Context())
		}
	}()
	for {
		select {
		case <-c.Updates():
		case <-done:
			return
		case <-time.After(time.Minute):
			t.Fatal("the sources are blocked although the updates are read")
		}
	}
}
