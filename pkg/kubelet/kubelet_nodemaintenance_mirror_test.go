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
func TestPromptMirrorClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		client, start := &promptMirrorClient{MirrorClient: silentMirrorClient{}}, time.Now()
		_, err := client.DeleteMirrorPod(ctx, "pod_default", nil)
		if took := time.Since(start); err == nil || took > 2*pingTimeout {
			t.Errorf("the deletion of a mirror pod takes %v (%v)", took, err)
		}
	})
}
