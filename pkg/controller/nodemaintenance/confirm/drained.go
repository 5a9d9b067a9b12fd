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

package confirm

import (
	"context"
	"fmt"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// MaxSingleReads is up to how many nodes are read one by one. For more, the schedulable nodes of the cluster are listed.
const MaxSingleReads = 20

// drainedTimeout bounds the reads of the nodes of a maintenance together. They share a rate limit with the writes of nodes,
// and wait there behind those of other drains: with the timeout of one request, a maintenance would never be drained then.
const drainedTimeout = 30 * time.Second

// Empty returns an error if the API server has pods on the node that the cache has not. It precedes the condition
// Drained of the node, for which machines are switched off: the watch of a cache may have been interrupted for minutes.
func (c *Confirmer) Empty(ctx context.Context, node *v1.Node) error {
	ctx, cancel := context.WithTimeout(ctx, write.ReadTimeout)
	defer cancel()
	selector := fields.OneTermEqualSelector("spec.nodeName", node.Name).String()
	pods, err := c.writer.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return fmt.Errorf("reading the pods of the node before it is drained: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName != node.Name || !maintenance.IsLeft(pod) {
			continue
		}
		if cached, err := c.pods.Pods(pod.Namespace).Get(pod.Name); err != nil || cached.UID != pod.UID || cached.Spec.NodeName != node.Name {
			return write.NewUnseen(write.NodeResource, node.Name, fmt.Errorf("it has pod %s/%s, which was not known when it was found to be drained", pod.Namespace, pod.Name))
		}
	}
	return nil
}

// Drained returns an error if the API server has nodes of the maintenance that are schedulable, and the cache has
// not. It precedes the condition Drained of the maintenance. What is on its nodes was confirmed before theirs.
func (c *Confirmer) Drained(ctx context.Context, m *coordinationv1alpha1.NodeMaintenance) error {
	o, err := progress.NewSpec(m)
	if err != nil {
		return err
	}
	check := func(node *v1.Node) error {
		if node.Spec.Unschedulable || !o.Selector.Matches(node) {
			return nil
		}
		if cached, err := c.nodes.Get(node.Name); err != nil || cached.UID != node.UID || cached.Spec.Unschedulable || !o.Selector.Matches(cached) {
			return write.NewUnseen(write.MaintenanceResource, m.Name, fmt.Errorf("node %s is schedulable, which was not known when its pods were found to have left", node.Name))
		}
		return nil // It was given back, for example.
	}
	ctx, cancel := context.WithTimeout(ctx, drainedTimeout)
	defer cancel()
	var selected []string
	all, err := c.nodes.List(labels.Everything())
	if err != nil {
		return err // The lister of a cache returns no error.
	}
	for _, node := range all {
		if o.Selector.Matches(node) {
			selected = append(selected, node.Name)
		}
	}
	if len(selected) <= MaxSingleReads {
		return c.checkNodes(ctx, selected, check)
	}
	nodes := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return c.writer.Client.CoreV1().Nodes().List(ctx, options)
	}))
	schedulable := fields.OneTermEqualSelector("spec.unschedulable", "false").String()
	err = nodes.EachListItem(ctx, metav1.ListOptions{FieldSelector: schedulable}, func(object runtime.Object) error { return check(object.(*v1.Node)) })
	if err != nil && !write.IsUnseen(err) {
		return fmt.Errorf("reading the nodes before they are drained: %w", err)
	}
	return err
}

// checkNodes reads nodes one by one. It returns the first error.
func (c *Confirmer) checkNodes(ctx context.Context, names []string, check func(*v1.Node) error) error {
	for _, name := range names {
		node, err := c.writer.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // It is not waited for.
		}
		if err != nil {
			return fmt.Errorf("reading a node before it is drained: %w", err)
		}
		if err := check(node); err != nil {
			return err
		}
	}
	return nil
}
