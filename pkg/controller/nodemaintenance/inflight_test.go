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
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/pace"
)

// slowNodes is a client in which the patches of nodes are in flight for some time: patch makes each
// of them by calling write.
type slowNodes struct {
	kubernetes.Interface
	patch func(name, subresource, patch string, write func() (*v1.Node, error)) (*v1.Node, error)
}

func (s *slowNodes) CoreV1() typedcorev1.CoreV1Interface { return slowCore{s.Interface.CoreV1(), s} }

type slowCore struct {
	typedcorev1.CoreV1Interface
	slow *slowNodes
}

func (c slowCore) Nodes() typedcorev1.NodeInterface {
	return slowNodeClient{c.CoreV1Interface.Nodes(), c.slow}
}

type slowNodeClient struct {
	typedcorev1.NodeInterface
	slow *slowNodes
}

func (c slowNodeClient) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*v1.Node, error) {
	return c.slow.patch(name, strings.Join(subresources, "/"), string(data), func() (*v1.Node, error) {
		return c.NodeInterface.Patch(ctx, name, kind, data, options, subresources...)
	})
}

// A maintenance that is completed while a node is being cordoned for it is not over before the node
// is schedulable again, even if the response is lost: nobody else knows whose cordon it is.
func TestCordonInFlight(t *testing.T) {
	for name, test := range map[string]struct {
		// lost is whether the response is lost, and late whether the cache has the cordon late.
		lost, late bool
	}{
		"answered":                {},
		"lost":                    {lost: true},
		"lost, and a stale cache": {lost: true, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("n", map[string]string{"a": ""})
			first := true
			f.writer.Client = &slowNodes{Interface: f.client, patch: func(_, _, _ string, write func() (*v1.Node, error)) (*v1.Node, error) {
				if !first {
					return write()
				}
				first = false
				f.setStage("m", stageComplete)
				f.stepFor(20, f.deliverAll)
				if m := f.maintenance("m"); len(m.Finalizers) == 0 {
					t.Error("the maintenance is over while its cordon is in flight")
				}
				node, err := write()
				if test.lost {
					return nil, errors.New("connection reset by peer")
				}
				return node, err
			}}
			f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
			for range 100 {
				f.deliverAll()
				f.stepFor(1, func() {})
				if !first {
					break
				}
			}
			if first {
				t.Fatal("never cordoned")
			}
			if test.late {
				f.stepFor(20, func() { f.deliverMaintenances(); f.deliverPods(); f.deliverRequests() })
			}
			f.settle()
			if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
				t.Errorf("the node stays unschedulable %t, with the status %+v", node.Spec.Unschedulable, node.Status.MaintenanceStatus)
			}
			if m := f.maintenance("m"); len(m.Finalizers) > 0 {
				t.Errorf("the maintenance is never over: %+v", m.Status)
			}
		})
	}
}

// A node that was uncordoned, and is cordoned for another maintenance before its status is cleared, is
// uncordoned when that one is completed, even if the response to the second cordon is lost.
func TestLostCordonAfterAnUncordon(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": "", "b": ""})
	f.createMaintenance("m1", stageDrain, "a", maintenance.StandardPlan()...)
	f.settle()
	refused := f.refuse("patch", "nodes", "status", webhook)
	f.setStage("m1", stageComplete)
	f.run(10 * time.Second)
	if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus == nil {
		t.Fatalf("not uncordoned with a status: %+v", node)
	}
	f.writer.Client = &slowNodes{Interface: f.client, patch: func(_, subresource, _ string, write func() (*v1.Node, error)) (*v1.Node, error) {
		node, err := write()
		if err == nil && subresource == "" {
			return nil, errors.New("connection reset by peer")
		}
		return node, err
	}}
	f.createMaintenance("m2", stageDrain, "b", maintenance.StandardPlan()...)
	f.run(10 * time.Second)
	if node := f.node("n"); !node.Spec.Unschedulable || node.Status.MaintenanceStatus == nil {
		t.Fatalf("not cordoned again with a status: %+v", node)
	}
	f.writer.Client = f.client
	f.setStage("m2", stageComplete)
	f.run(time.Minute)
	if f.node("n").Spec.Unschedulable {
		t.Error("not uncordoned before the status is cleared, which a controller that takes over needs")
	}
	refused.err = allowed
	f.run(time.Minute)
	if node := f.node("n"); node.Spec.Unschedulable || node.Status.MaintenanceStatus != nil {
		t.Errorf("the node stays unschedulable %t, with the status %+v", node.Spec.Unschedulable, node.Status.MaintenanceStatus)
	}
	for _, name := range []string{"m1", "m2"} {
		if m := f.maintenance(name); len(m.Finalizers) > 0 {
			t.Errorf("%s is never over: %+v", name, m.Status)
		}
	}
}

// listedNodes is a lister that calls read after each node that it has read.
type listedNodes struct {
	corelisters.NodeLister
	read func()
}

func (l listedNodes) Get(name string) (*v1.Node, error) {
	defer l.read()
	return l.NodeLister.Get(name)
}

// A write that ends after a sync has read the node from the cache is one of which the sync does not
// know what it has written.
func TestWriteThatEndsDuringASync(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", map[string]string{"a": ""})
	f.createMaintenance("m", stageDrain, "a", maintenance.StandardPlan()...)
	for range 3 {
		f.deliverAll()
		f.syncOnly("m")
	}
	f.setStage("m", stageComplete)
	f.nodeLister = listedNodes{f.nodeLister, func() { f.writing.Delete("n") }}
	f.stepFor(20, func() {
		f.deliverAll()
		f.writing.Store("n", nil)
	})
	if m := f.maintenance("m"); len(m.Finalizers) == 0 {
		t.Error("the maintenance is over, although its node may be cordoned")
	}
	f.writing.Delete("n")
	f.settle()
	if m := f.maintenance("m"); len(m.Finalizers) > 0 {
		t.Errorf("the maintenance is never over: %+v", m.Status)
	}
}

// stepFor makes steps, each after a delivery to the caches. Time passes where there is none to make.
func (f *fixture) stepFor(steps int, deliver func()) {
	f.t.Helper()
	for range steps {
		deliver()
		if f.step() {
			continue
		}
		f.clock.Step(pace.StatusInterval)
		for _, queue := range f.queues() {
			queue.release()
		}
	}
}
