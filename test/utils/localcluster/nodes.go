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

package localcluster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/test/utils/controlplane"
)

const (
	// nodeWorkers is how many nodes are created at the same time: enough to keep the API
	// server busy, few enough for its inflight limits.
	nodeWorkers = 16

	// MaxNodes is how many pod networks there are, see newNode.
	MaxNodes = 192 * 256

	// zones is the number of zones that the nodes are spread over, as many as the examples
	// of topology spread constraints assume.
	zones = 3
)

// newNode returns a simulated node, large enough that pods are not refused for lack of room.
func newNode(index int) *v1.Node {
	name := fmt.Sprintf("node-%d", index)
	// kwok takes the addresses of pods from here; by default all nodes would give out the
	// same ones. 10.0.0.0/24 is the range of services.
	network := fmt.Sprintf("10.%d.%d.0/24", 64+index/256, index%256)
	capacity := v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse("32"),
		v1.ResourceMemory: resource.MustParse("256Gi"),
		v1.ResourcePods:   resource.MustParse("110"),
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{controlplane.SimulatedNode: controlplane.SimulatedNodeValue},
			Labels: map[string]string{
				v1.LabelHostname:     name,
				v1.LabelOSStable:     "linux",
				v1.LabelArchStable:   "amd64",
				v1.LabelTopologyZone: fmt.Sprintf("zone-%c", 'a'+index%zones),
				"type":               "kwok",
			},
		},
		Spec:   v1.NodeSpec{PodCIDR: network, PodCIDRs: []string{network}},
		Status: v1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// usable reports whether pods can be scheduled to the node: it is Ready, and the controller
// manager has removed the taint that says otherwise.
func usable(node *v1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition v1.NodeCondition) bool {
		return condition.Type == v1.NodeReady && condition.Status == v1.ConditionTrue
	}) && !slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return taint.Key == v1.TaintNodeNotReady })
}

// ensureNodes creates the simulated nodes that are missing and waits until pods can be created:
// until all nodes are usable, and the service account of namespace default is there. It leaves
// further nodes alone.
//
// kwokctl's scaling would delete those, waits for nothing, and needs a cluster of kwokctl.
func ensureNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	waiting, err := unusableNodes(ctx, client, count)
	if err != nil {
		return err
	}
	var mutex sync.Mutex
	var failed error
	workqueue.ParallelizeUntil(ctx, nodeWorkers, len(waiting), func(i int) {
		_, err := client.CoreV1().Nodes().Create(ctx, waiting[i], metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			mutex.Lock()
			defer mutex.Unlock()
			failed = err
		}
	})
	if failed != nil {
		return fmt.Errorf("a node cannot be created: %w", failed)
	}
	const noAccount = "the service account of namespace default was not created: see kube-controller-manager.log"
	var missing string
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		waiting, err = unusableNodes(ctx, client, count)
		if err != nil {
			return false, err
		}
		if len(waiting) > 0 {
			missing = waiting[0].Name + " did not become ready: see kwok.log and kube-controller-manager.log"
			return false, nil
		}
		_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			missing = noAccount
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%s: %w", missing, err)
	}
	return err
}

// unusableNodes returns the nodes of the cluster that do not exist or are not usable, as they
// are created.
func unusableNodes(ctx context.Context, client kubernetes.Interface, count int) ([]*v1.Node, error) {
	// From the cache of the API server, since this is asked often.
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("its nodes cannot be listed: %w", err)
	}
	ready := map[string]bool{}
	for i := range list.Items {
		ready[list.Items[i].Name] = usable(&list.Items[i])
	}
	var nodes []*v1.Node
	for i := range count {
		if node := newNode(i); !ready[node.Name] {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}
