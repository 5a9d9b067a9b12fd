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
	"fmt"
	"strconv"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	applyconfigurations "k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

var (
	maintenances     = coordinationv1alpha1.SchemeGroupVersion.WithResource("nodemaintenances")
	evictionRequests = coordinationv1alpha1.SchemeGroupVersion.WithResource("evictionrequests")
)

// versionedTracker adds what the tracker of the fake client lacks compared with the API server:
// every write sets a resourceVersion; an update, a patch or a deletion with a different UID or
// resourceVersion is refused; a change of the spec of a maintenance increases its generation, and a
// patch that removes the last finalizer of one that is being deleted removes it.
type versionedTracker struct {
	clienttesting.ObjectTracker
	// requests supports apply, which the faster ObjectTracker does not.
	requests clienttesting.ObjectTracker
	version  int
}

// newVersionedClient returns a client with a tracker that checks preconditions.
func newVersionedClient() (*fake.Clientset, *versionedTracker) {
	decoder := scheme.Codecs.UniversalDecoder()
	tracker := &versionedTracker{
		ObjectTracker: clienttesting.NewObjectTracker(scheme.Scheme, decoder),
		requests:      clienttesting.NewFieldManagedObjectTracker(scheme.Scheme, decoder, applyconfigurations.NewTypeConverter(scheme.Scheme)),
	}
	client := &fake.Clientset{}
	client.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
	client.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		watcher, err := tracker.Watch(action.GetResource(), action.GetNamespace())
		return true, watcher, err
	})
	return client, tracker
}

func (t *versionedTracker) of(gvr schema.GroupVersionResource) clienttesting.ObjectTracker {
	if gvr == evictionRequests {
		return t.requests
	}
	return t.ObjectTracker
}

func (t *versionedTracker) next() string {
	t.version++
	return strconv.Itoa(t.version)
}

// check returns a conflict if the live object has another UID or resourceVersion.
func (t *versionedTracker) check(gvr schema.GroupVersionResource, ns, name, uid, version string) error {
	object, err := t.of(gvr).Get(gvr, ns, name)
	if err != nil {
		return err
	}
	live, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if uid != "" && uid != string(live.GetUID()) {
		return apierrors.NewConflict(gvr.GroupResource(), name, fmt.Errorf("UID %s, not %s", live.GetUID(), uid))
	}
	if version != "" && version != live.GetResourceVersion() {
		return apierrors.NewConflict(gvr.GroupResource(), name, fmt.Errorf("resourceVersion %s, not %s", live.GetResourceVersion(), version))
	}
	return nil
}

func (t *versionedTracker) Get(gvr schema.GroupVersionResource, ns, name string, opts ...metav1.GetOptions) (runtime.Object, error) {
	return t.of(gvr).Get(gvr, ns, name, opts...)
}

func (t *versionedTracker) List(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, ns string, opts ...metav1.ListOptions) (runtime.Object, error) {
	list, err := t.of(gvr).List(gvr, gvk, ns, opts...)
	if err != nil {
		return nil, err
	}
	listed, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	listed.SetResourceVersion(strconv.Itoa(t.version))
	return list, nil
}

func (t *versionedTracker) Watch(gvr schema.GroupVersionResource, ns string, opts ...metav1.ListOptions) (watch.Interface, error) {
	return t.of(gvr).Watch(gvr, ns, opts...)
}

func (t *versionedTracker) Create(gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.CreateOptions) error {
	created, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	created.SetResourceVersion(t.next())
	return t.of(gvr).Create(gvr, object, ns, opts...)
}

func (t *versionedTracker) Update(gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.UpdateOptions) error {
	written, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if err := t.check(gvr, ns, written.GetName(), string(written.GetUID()), written.GetResourceVersion()); err != nil {
		return err
	}
	written.SetResourceVersion(t.next())
	if err := t.setGeneration(gvr, object, ns); err != nil {
		return err
	}
	return t.of(gvr).Update(gvr, object, ns, opts...)
}

// setGeneration increases the generation of a maintenance if its spec is another than that of the live
// object.
func (t *versionedTracker) setGeneration(gvr schema.GroupVersionResource, object runtime.Object, ns string) error {
	m, ok := object.(*coordinationv1alpha1.NodeMaintenance)
	if !ok {
		return nil
	}
	live, err := t.Get(gvr, ns, m.Name)
	if err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(live.(*coordinationv1alpha1.NodeMaintenance).Spec, m.Spec) {
		m.Generation++
	}
	return nil
}

// Patch takes the patched object, which includes the preconditions of the patch.
func (t *versionedTracker) Patch(gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.PatchOptions) error {
	patched, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if err := t.check(gvr, ns, patched.GetName(), string(patched.GetUID()), patched.GetResourceVersion()); err != nil {
		return err
	}
	patched.SetResourceVersion(t.next())
	if err := t.setGeneration(gvr, object, ns); err != nil {
		return err
	}
	if gvr == maintenances && patched.GetDeletionTimestamp() != nil && len(patched.GetFinalizers()) == 0 {
		return t.of(gvr).Delete(gvr, ns, patched.GetName())
	}
	return t.of(gvr).Patch(gvr, object, ns, opts...)
}

func (t *versionedTracker) Apply(gvr schema.GroupVersionResource, configuration runtime.Object, ns string, opts ...metav1.PatchOptions) error {
	applied, err := meta.Accessor(configuration)
	if err != nil {
		return err
	}
	err = t.check(gvr, ns, applied.GetName(), string(applied.GetUID()), applied.GetResourceVersion())
	if err != nil && (!apierrors.IsNotFound(err) || applied.GetUID() != "" || applied.GetResourceVersion() != "") {
		return err
	}
	if err := t.of(gvr).Apply(gvr, configuration, ns, opts...); err != nil {
		return err
	}
	object, err := t.Get(gvr, ns, applied.GetName())
	if err != nil {
		return err
	}
	written, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	// Apply does not set the resourceVersion, and an update would change the owners of fields.
	if err := t.of(gvr).Delete(gvr, ns, applied.GetName()); err != nil {
		return err
	}
	written.SetResourceVersion(t.next())
	return t.of(gvr).Add(object)
}

func (t *versionedTracker) Delete(gvr schema.GroupVersionResource, ns, name string, opts ...metav1.DeleteOptions) error {
	for i := range opts {
		if conditions := opts[i].Preconditions; conditions != nil {
			var uid, version string
			if conditions.UID != nil {
				uid = string(*conditions.UID)
			}
			if conditions.ResourceVersion != nil {
				version = *conditions.ResourceVersion
			}
			if err := t.check(gvr, ns, name, uid, version); err != nil {
				return err
			}
		}
	}
	t.next()
	return t.of(gvr).Delete(gvr, ns, name, opts...)
}

// The conflict tests of this package rely on these checks.
func TestTrackerHonoursPreconditions(t *testing.T) {
	f := newFixture(t)
	f.createNode("n", nil)
	node := f.node("n")
	for _, patch := range []string{
		`{"metadata":{"uid":"another"},"spec":{"unschedulable":true}}`,
		`{"metadata":{"resourceVersion":"0"},"spec":{"unschedulable":true}}`,
	} {
		if _, err := f.client.CoreV1().Nodes().Patch(f.ctx, "n", "application/strategic-merge-patch+json", []byte(patch), metav1.PatchOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("patch %s: got %v", patch, err)
		}
	}
	f.relabel("n", map[string]string{"a": ""})
	if _, err := f.client.CoreV1().Nodes().Update(f.ctx, node, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: got %v", err)
	}
	uid := node.UID + "x"
	if err := f.client.CoreV1().Nodes().Delete(f.ctx, "n", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); !apierrors.IsConflict(err) {
		t.Errorf("deletion with another UID: got %v", err)
	}
}
