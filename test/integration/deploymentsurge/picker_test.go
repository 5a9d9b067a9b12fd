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

package deploymentsurge

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/downscalepodpicker"
)

// testPickerInSurge has a Deployment with a picker replace a pod before its eviction: nobody is asked
// which pod goes. When it is scaled down afterwards, the picker is asked.
func testPickerInSurge(t *testing.T, c *cluster) {
	c.startControllers()
	var asked atomic.Int32
	picker := httptest.NewServer(downscalepodpicker.NewHandler(func(_ context.Context, q downscalepodpicker.Question) (downscalepodpicker.Answer, error) {
		asked.Add(1)
		names := slices.Sorted(slices.Values(q.Candidates))
		return downscalepodpicker.Answer{Chosen: names[:q.Pods]}, nil
	}))
	t.Cleanup(picker.Close)
	address := picker.Listener.Addr().(*net.TCPAddr)
	d := newDeployment(3)
	d.Spec.DownscalePodPicker = &v1.DownscalePodPicker{HTTP: &v1.HTTPDownscalePodPicker{Host: "127.0.0.1", Port: intstr.FromInt(address.Port)}}
	pods := c.createDeployment(d)

	c.surge(pods)
	c.setUnready(none)
	left := c.awaitPodNames(3)
	if slices.Contains(left, pods[0].Name) || !slices.Contains(left, pods[1].Name) || !slices.Contains(left, pods[2].Name) {
		t.Errorf("pods %q are left, and %s was to leave", left, pods[0].Name)
	}
	if got := asked.Load(); got != 0 {
		t.Errorf("the picker was asked %d times about the pod that was replaced", got)
	}

	if _, err := c.Client.AppsV1().Deployments(c.Namespace).Patch(t.Context(), d.Name, types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := c.awaitPodNames(2); !slices.Equal(got, left[1:]) || asked.Load() != 1 {
		t.Errorf("pods %q are left of %q, and the picker was asked %d times", got, left, asked.Load())
	}
}

// awaitPodNames waits until there are so many pods, none of which terminates, and as many replicas. It
// returns their names, sorted.
func (c *cluster) awaitPodNames(count int) (names []string) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("%d pods", count), func(ctx context.Context) (bool, string) {
		names = nil
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		terminating := false
		for _, pod := range pods.Items {
			names = append(names, pod.Name)
			terminating = terminating || pod.DeletionTimestamp != nil
		}
		slices.Sort(names)
		sets, err := c.Client.AppsV1().ReplicaSets(c.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		return len(names) == count && !terminating && int(*sets.Items[0].Spec.Replicas) == count, fmt.Sprintf("%q, %d replicas", names, *sets.Items[0].Spec.Replicas)
	})
	return names
}
