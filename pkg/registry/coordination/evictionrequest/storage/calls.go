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

package storage

import (
	"context"
	"fmt"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apiserver/pkg/registry/generic"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	api "k8s.io/kubernetes/pkg/apis/core"
)

// Calls tells whether callers of pods/eviction who have drained a node have given up: it is schedulable again. The
// evictionrequest-controller withdraws them then, but may be down at that time, and its successor evicts before it has
// come to all of them.
type Calls struct {
	nodes *reader
	pods  *targets
}

// NewCalls returns Calls that read from etcd, by the connections of drains if there are some, which are to be
// destroyed after them.
func NewCalls(optsGetter generic.RESTOptionsGetter, drains *Drains) (*Calls, error) {
	if drains != nil {
		return &Calls{nodes: drains.nodes.borrowed(), pods: &targets{drains.pods.borrowed()}}, nil
	}
	pods, err := newTargets(optsGetter)
	if err != nil {
		return nil, err
	}
	nodes, err := newReader(optsGetter, api.Resource("nodes"), &api.Node{}, &api.NodeList{})
	if err != nil {
		pods.destroy()
		return nil, err
	}
	return &Calls{nodes: nodes, pods: pods}, nil
}

// Destroy closes the connections to etcd, but for those of drains.
func (c *Calls) Destroy() {
	c.nodes.destroy()
	c.pods.destroy()
}

// Against returns what speaks against the callers who request the eviction, or "". The namespace is that of the context.
func (c *Calls) Against(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) (string, error) {
	target := request.Spec.Target.Pod
	if target == nil || request.Annotations[coordinationv1alpha1.EvictionCallCordonAnnotation] == "" {
		return "", nil
	}
	pod, err := c.pods.get(ctx, target.Name)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading pod %q, for which pods/eviction was called: %w", target.Name, err)
	case pod == nil || string(pod.UID) != target.UID:
		return "", nil
	}
	node, err := c.nodes.nodeOf(ctx, pod)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading node %q of pod %q, for which pods/eviction was called: %w", pod.Spec.NodeName, target.Name, err)
	case evictionrequesttools.IsUncordonedSinceEvictionCall(request, node):
		return fmt.Sprintf("its node %q is schedulable again", node.Name), nil
	}
	return "", nil
}
