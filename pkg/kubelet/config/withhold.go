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
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// withholdingMerger is a merger that omits some static pods from the updates of their sources, as
// if their manifests were away. So they stop, stay away and start again in the way of all static
// pods whose manifests are removed and added.
type withholdingMerger struct {
	merger
	withheld func(*v1.Pod) bool

	// lock keeps the order of the updates of a source. It is locked while the sync loop reads what
	// is merged, so the sync loop must not wait for it.
	lock sync.Mutex
	// last has the last update of each source with static pods: a URL source does not repeat it.
	last map[string]sourceUpdate
}

// WithholdStaticPods makes the kubelet see only static pods for which withheld returns false. It
// must be called before a source is added. withheld must not wait for the sync loop. After its
// results have changed, call MergeStaticPods.
func (c *PodConfig) WithholdStaticPods(withheld func(*v1.Pod) bool) {
	c.mux.merger = &withholdingMerger{merger: c.mux.merger, withheld: withheld, last: map[string]sourceUpdate{}}
}

// MergeStaticPods merges the last update of each source of static pods again. It returns when the
// sync loop has received the changes, so the sync loop must not call it.
func (c *PodConfig) MergeStaticPods(ctx context.Context) {
	if m, ok := c.mux.merger.(*withholdingMerger); ok {
		m.mergeAgain(ctx)
	}
}

// Merge implements merger.
func (m *withholdingMerger) Merge(ctx context.Context, source string, update sourceUpdate) error {
	if source == kubetypes.ApiserverSource {
		return m.merger.Merge(ctx, source, update)
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	m.last[source] = update
	return m.mergeVisible(ctx, source, update)
}

func (m *withholdingMerger) mergeAgain(ctx context.Context) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for source, update := range m.last {
		if err := m.mergeVisible(ctx, source, update); err != nil {
			klog.FromContext(ctx).Error(err, "Could not merge the static pods of a source again", "source", source)
		}
	}
}

// mergeVisible merges copies, because the wrapped merger modifies and keeps the pods that it gets.
func (m *withholdingMerger) mergeVisible(ctx context.Context, source string, update sourceUpdate) error {
	visible := sourceUpdate{Pods: make([]*v1.Pod, 0, len(update.Pods))}
	for _, pod := range update.Pods {
		if !m.withheld(pod) {
			visible.Pods = append(visible.Pods, pod.DeepCopy())
		}
	}
	return m.merger.Merge(ctx, source, visible)
}
