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

package replicaset

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/controller/replicaset/podpicker"
	"k8s.io/utils/ptr"
)

// Nothing stays in memory of a question of a ReplicaSet that needs no answer any more: one that was
// deleted before the question was asked from an old cache, and one that is being deleted.
func TestForgetsDeletedReplicaSets(t *testing.T) {
	for name, change := range map[string]func(*evictionFixture, *apps.ReplicaSet) error{
		"deleted before it asked": func(f *evictionFixture, rs *apps.ReplicaSet) error {
			return f.factory.Apps().V1().ReplicaSets().Informer().GetIndexer().Delete(rs)
		},
		"being deleted": func(f *evictionFixture, rs *apps.ReplicaSet) error {
			rs = rs.DeepCopy()
			rs.DeletionTimestamp, rs.Finalizers = ptr.To(metav1.Now()), []string{"example.com/never"}
			return f.factory.Apps().V1().ReplicaSets().Informer().GetIndexer().Update(rs)
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				<-answer
				_, _ = io.WriteString(w, `{"`+strings.Repeat("x", 1_000_000)+`": 1}`)
			}))
			defer server.Close()
			host, port, err := net.SplitHostPort(server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			number, err := strconv.Atoi(port)
			if err != nil {
				t.Fatal(err)
			}
			rs := newReplicaSetOf()
			rs.Spec.DownscalePodPicker = &v1.DownscalePodPicker{
				HTTP:       &v1.HTTPDownscalePodPicker{Host: host, Port: intstr.FromInt(number)},
				MaxRetries: ptr.To[int32](0), TimeoutSeconds: ptr.To[int32](30),
			}
			f := newEvictionFixture(t, rs)
			allowed, err := podpicker.ParseRanges([]string{"127.0.0.1/32"})
			if err != nil {
				t.Fatal(err)
			}
			if err := f.rsc.AskPickers(f.client, f.factory.Apps().V1().ReplicaSets(), &podpicker.Addresses{Allowed: allowed}, 1); err != nil {
				t.Fatal(err)
			}
			f.cached(t, rs)
			for _, name := range []string{"a", "b"} {
				pod := rankedPod(name)
				pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(rs, f.rsc.GroupVersionKind)}
				f.cached(t, pod)
			}
			key := rs.Namespace + "/" + rs.Name
			if err := f.rsc.syncReplicaSet(f.ctx, key); err != nil {
				t.Fatal(err)
			}
			if err := change(f, rs); err != nil {
				t.Fatal(err)
			}
			close(answer)
			time.Sleep(2 * time.Second)
			for f.rsc.queue.Len() > 0 {
				f.rsc.processNextWorkItem(f.ctx)
			}
			if result, kept := f.rsc.pickers.client.Take(webKey); kept {
				t.Errorf("a result is kept, with an error of %d bytes", len(result.Err.Error()))
			}
		})
	}
}
