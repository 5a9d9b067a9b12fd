/*
Copyright The Kubernetes Authors.

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

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// simulatedAnnotation marks the nodes that kwok takes care of.
	simulatedAnnotation = "kwok.x-k8s.io/node"
	simulatedValue      = "fake"

	// nodeWorkers is how many nodes are created at the same time: enough to
	// keep the API server busy, few enough for its inflight limits.
	nodeWorkers = 16

	// maxNodes is how many pod networks there are: see newNode.
	maxNodes = 192 * 256

	// zones is the number of zones that the nodes are spread over, as many as
	// the examples of topology spread constraints assume.
	zones = 3
)

type metadata struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type taint struct {
	Key string `json:"key"`
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

type node struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       struct {
		PodCIDR  string   `json:"podCIDR,omitempty"`
		PodCIDRs []string `json:"podCIDRs,omitempty"`
		Taints   []taint  `json:"taints,omitempty"`
	} `json:"spec"`
	Status struct {
		Capacity    map[string]string `json:"capacity,omitempty"`
		Allocatable map[string]string `json:"allocatable,omitempty"`
		Conditions  []condition       `json:"conditions,omitempty"`
	} `json:"status"`
}

// newNode returns a simulated node, large enough that pods are not refused for
// lack of room.
func newNode(index int) node {
	name := fmt.Sprintf("node-%d", index)
	n := node{APIVersion: "v1", Kind: "Node"}
	n.Metadata = metadata{
		Name:        name,
		Annotations: map[string]string{simulatedAnnotation: simulatedValue},
		Labels: map[string]string{
			"kubernetes.io/hostname":      name,
			"kubernetes.io/os":            "linux",
			"kubernetes.io/arch":          "amd64",
			"topology.kubernetes.io/zone": fmt.Sprintf("zone-%c", 'a'+index%zones),
			"type":                        "kwok",
		},
	}
	// kwok takes the addresses of pods from here; by default all nodes would
	// give out the same ones. 10.0.0.0/24 is the range of services.
	n.Spec.PodCIDR = fmt.Sprintf("10.%d.%d.0/24", 64+index/256, index%256)
	n.Spec.PodCIDRs = []string{n.Spec.PodCIDR}
	n.Status.Capacity = map[string]string{"cpu": "32", "memory": "256Gi", "pods": "110"}
	n.Status.Allocatable = n.Status.Capacity
	return n
}

// usable tells whether pods can be scheduled to the node: it is Ready and the
// controller manager has taken the taints off that say otherwise.
func (n node) usable() bool {
	for _, t := range n.Spec.Taints {
		if t.Key == "node.kubernetes.io/not-ready" {
			return false
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// ensureNodes creates the simulated nodes that are missing and waits until all
// are usable. Further nodes are left alone.
func ensureNodes(ctx context.Context, api *apiClient, count int) error {
	existing, err := listNodes(ctx, api)
	if err != nil {
		return err
	}
	var missing []node
	for i := range count {
		n := newNode(i)
		if _, ok := existing[n.Metadata.Name]; !ok {
			missing = append(missing, n)
		}
	}
	if err := createNodes(ctx, api, missing); err != nil {
		return err
	}
	return waitForNodes(ctx, api, count)
}

func listNodes(ctx context.Context, api *apiClient) (map[string]node, error) {
	var list struct {
		Items []node `json:"items"`
	}
	if err := api.do(ctx, http.MethodGet, "/api/v1/nodes", nil, &list); err != nil {
		return nil, fmt.Errorf("its nodes cannot be listed: %w", err)
	}
	nodes := make(map[string]node, len(list.Items))
	for _, n := range list.Items {
		nodes[n.Metadata.Name] = n
	}
	return nodes, nil
}

func createNodes(ctx context.Context, api *apiClient, nodes []node) error {
	queue := make(chan node)
	errs := make(chan error, nodeWorkers)
	var workers sync.WaitGroup
	for range nodeWorkers {
		workers.Go(func() {
			var failed error
			for n := range queue {
				err := api.do(ctx, http.MethodPost, "/api/v1/nodes", n, nil)
				if err != nil && !hasStatus(err, http.StatusConflict) {
					failed = err
				}
			}
			errs <- failed
		})
	}
	for _, n := range nodes {
		queue <- n
	}
	close(queue)
	workers.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return fmt.Errorf("a node cannot be created: %w", err)
		}
	}
	return nil
}

func waitForNodes(ctx context.Context, api *apiClient, count int) error {
	for {
		nodes, err := listNodes(ctx, api)
		if err != nil {
			return err
		}
		waiting := ""
		for i := range count {
			if name := newNode(i).Metadata.Name; !nodes[name].usable() {
				waiting = name
				break
			}
		}
		if waiting == "" {
			return nil
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("%s did not become ready: see kwok-controller.log and kube-controller-manager.log", waiting)
		}
	}
}

// waitForDefaultServiceAccount waits for what the first pod of a user needs.
func waitForDefaultServiceAccount(ctx context.Context, api *apiClient) error {
	for {
		err := api.do(ctx, http.MethodGet, "/api/v1/namespaces/default/serviceaccounts/default", nil, nil)
		if err == nil {
			return nil
		}
		if !hasStatus(err, http.StatusNotFound) {
			return err
		}
		if pause(ctx) != nil {
			return errors.New("the service account of namespace default was not created: see kube-controller-manager.log")
		}
	}
}

// pause waits for one poll interval or until the context is over.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pollInterval):
		return nil
	}
}
