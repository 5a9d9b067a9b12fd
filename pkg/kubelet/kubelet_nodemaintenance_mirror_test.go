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

package kubelet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
)

// silentMirrorClient has an API server that does not answer.
type silentMirrorClient struct {
	kubepod.MirrorClient
}

func (silentMirrorClient) DeleteMirrorPod(ctx context.Context, _ string, _ *types.UID) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// The sync loop, which deletes mirror pods, must be able to start a pod that the API server needs.
func TestHeldMirrorClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		client := &heldMirrorClient{MirrorClient: silentMirrorClient{}, keeps: func(pod types.NamespacedName) bool {
			return pod == types.NamespacedName{Namespace: "default", Name: "kept"}
		}}
		start := time.Now()
		_, err := client.DeleteMirrorPod(ctx, "other_default", nil)
		if took := time.Since(start); err == nil || took > 10*time.Second {
			t.Errorf("the deletion of a mirror pod takes %v (%v)", took, err)
		}
		start = time.Now()
		if _, err := client.DeleteMirrorPod(ctx, "kept_default", nil); err != nil || time.Since(start) > 0 {
			t.Errorf("a mirror pod that must be kept is deleted (%v)", err)
		}
	})
}
