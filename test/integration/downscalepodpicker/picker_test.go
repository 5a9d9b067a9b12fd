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

package downscalepodpicker

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestDownscalePodPicker(t *testing.T) {
	config := startAPIServer(t, true)
	for name, test := range map[string]func(*testing.T, *cluster){
		"scaled":    testScaled,
		"HPA":       testAutoscaled,
		"kubectl":   testKubectl,
		"rs":        testKubectlReplicaSet,
		"dead":      testDead,
		"rollout":   testRollout,
		"passed on": testPassedOn,
		"nothing":   testNothingToDecide,
		"changed":   testChangedMeanwhile,
		"replaced":  testRolloutMeanwhile,
		"corrected": testCorrectedMeanwhile,
		"others":    testOthersDoNotWait,
		"secrets":   testSecrets,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newCluster(t, config))
		})
	}
}

// testScaled scales a Deployment down: the picker chooses.
func testScaled(t *testing.T, c *cluster) {
	c.startControllers()
	p := startPicker(t, nil)
	pods := c.createDeployment(newDeployment(6, p.spec(t)))
	c.patchDeployment("workers", map[string]any{"replicas": 3})
	if left := c.awaitPods("workers", 3); !reflect.DeepEqual(left, pods[:3]) {
		t.Errorf("%q are left, want %q", left, pods[:3])
	}
	asked := p.questions()
	if len(asked) != 1 {
		t.Fatalf("asked %d times: %+v", len(asked), asked)
	}
	q := asked[0]
	slices.Sort(q.Candidates)
	if q.Pods != 3 || !reflect.DeepEqual(q.Candidates, pods) || q.Namespace != c.Namespace || q.ReplicaSet != c.replicaSets()[0].Name {
		t.Errorf("asked %+v", q)
	}
	if message := c.awaitEvent("PodsPicked"); !strings.Contains(message, "chose 3 pods and called 0 tied") {
		t.Errorf("event %q", message)
	}
}

// testDead scales a Deployment down whose picker does not run.
func testDead(t *testing.T, c *cluster) {
	c.startControllers()
	p := startPicker(t, nil)
	spec := p.spec(t)
	p.Close()
	c.createDeployment(newDeployment(6, spec))
	started := time.Now()
	c.patchDeployment("workers", map[string]any{"replicas": 3})
	c.awaitPods("workers", 3)
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("the scale-down took %s", took)
	}
	if message := c.awaitEvent("PodPickerFailed"); !strings.Contains(message, "attempt 2 of 2") || !strings.Contains(message, "connection refused") {
		t.Errorf("event %q", message)
	}
}

// testRollout asks about the pods of the old ReplicaSet, until all of them go.
func testRollout(t *testing.T, c *cluster) {
	c.startControllers()
	p := startPicker(t, nil)
	c.createDeployment(newDeployment(4, p.spec(t)))
	old := c.replicaSets()[0].Name
	c.patchDeployment("workers", map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]string{"version": "2"}}}})
	c.Eventually("the new pods", func(ctx context.Context) (bool, string) {
		d, err := c.Client.AppsV1().Deployments(c.Namespace).Get(ctx, "workers", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 4 && d.Status.Replicas == 4, fmt.Sprintf("%+v", d.Status)
	})
	asked := p.questions()
	if len(asked) == 0 {
		t.Error("the picker was not asked")
	}
	for _, q := range asked {
		if q.ReplicaSet != old || q.Pods >= len(q.Candidates) {
			t.Errorf("asked %+v", q)
		}
	}
	for _, rs := range c.replicaSets() {
		if rs.Spec.DownscalePodPicker == nil {
			t.Errorf("ReplicaSet %s has no picker", rs.Name)
		}
	}
}

// testPassedOn changes the picker: all ReplicaSets get it, and there is no rollout.
func testPassedOn(t *testing.T, c *cluster) {
	c.startControllers()
	pods := c.createDeployment(newDeployment(2, nil))
	c.patchDeployment("workers", map[string]any{"downscalePodPicker": map[string]any{"http": map[string]any{"host": "picker." + c.Namespace + ".svc", "port": "http"}}})
	c.Eventually("the picker of the ReplicaSet", func(context.Context) (bool, string) {
		rs := c.replicaSets()
		picker := rs[0].Spec.DownscalePodPicker
		return len(rs) == 1 && picker != nil && picker.HTTP.Path == "/" && picker.HTTP.Scheme == v1.URISchemeHTTP && *picker.MaxRetries == 3 && *picker.TimeoutSeconds == 1, fmt.Sprintf("%+v", picker)
	})
	if left := c.awaitPods("workers", 2); !reflect.DeepEqual(left, pods) {
		t.Errorf("pods %q became %q", pods, left)
	}
	c.patchDeployment("workers", map[string]any{"downscalePodPicker": nil})
	c.Eventually("no picker of the ReplicaSet", func(context.Context) (bool, string) {
		picker := c.replicaSets()[0].Spec.DownscalePodPicker
		return picker == nil, fmt.Sprintf("%+v", picker)
	})
}

// testNothingToDecide scales to zero, up, and removes a pod that is not ready.
func testNothingToDecide(t *testing.T, c *cluster) {
	c.startControllers()
	p := startPicker(t, nil)
	c.createDeployment(newDeployment(2, p.spec(t)))
	for _, replicas := range []int{4, 0} {
		c.patchDeployment("workers", map[string]any{"replicas": replicas})
		c.awaitPods("workers", replicas)
	}
	if asked := p.questions(); len(asked) > 0 {
		t.Errorf("asked %+v", asked)
	}
}

// testChangedMeanwhile scales up while the picker is asked: no pod goes.
func testChangedMeanwhile(t *testing.T, c *cluster) {
	c.startControllers()
	reached, end := make(chan struct{}, 100), make(chan struct{})
	p := startPicker(t, func(r *http.Request) {
		reached <- struct{}{}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	spec := p.spec(t)
	spec.TimeoutSeconds = ptr.To[int32](30)
	pods := c.createDeployment(newDeployment(4, spec))
	c.patchDeployment("workers", map[string]any{"replicas": 2})
	<-reached
	c.patchDeployment("workers", map[string]any{"replicas": 4})
	if left := c.awaitPods("workers", 4); !reflect.DeepEqual(left, pods) {
		t.Errorf("pods %q became %q", pods, left)
	}
	close(end)
	c.patchDeployment("workers", map[string]any{"replicas": 3})
	if left := c.awaitPods("workers", 3); !reflect.DeepEqual(left, pods[:3]) {
		t.Errorf("%q are left, want %q", left, pods[:3])
	}
}

// testRolloutMeanwhile begins a rollout while a picker that hangs is asked: it ends in time.
func testRolloutMeanwhile(t *testing.T, c *cluster) {
	c.startControllers()
	reached := make(chan struct{}, 100)
	p := startPicker(t, func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Otherwise the server does not notice that the client has gone.
		reached <- struct{}{}
		<-r.Context().Done()
	})
	pods := c.createDeployment(newDeployment(4, p.spec(t)))
	started := time.Now()
	c.patchDeployment("workers", map[string]any{"replicas": 2})
	<-reached
	c.patchDeployment("workers", map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]string{"version": "2"}}}})
	c.Eventually("the new pods", func(ctx context.Context) (bool, string) {
		d, err := c.Client.AppsV1().Deployments(c.Namespace).Get(ctx, "workers", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 2 && d.Status.Replicas == 2, fmt.Sprintf("%+v", d.Status)
	})
	if left := c.awaitPods("workers", 2); slices.ContainsFunc(left, func(name string) bool { return slices.Contains(pods, name) }) {
		t.Errorf("%q are left of %q", left, pods)
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("the rollout took %s", took)
	}
}

// testCorrectedMeanwhile replaces a picker that hangs by one that answers: that one decides, at once.
func testCorrectedMeanwhile(t *testing.T, c *cluster) {
	c.startControllers()
	reached := make(chan struct{}, 100)
	hanging, right := startPicker(t, func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // As above.
		reached <- struct{}{}
		<-r.Context().Done()
	}), startPicker(t, nil)
	spec := hanging.spec(t)
	spec.TimeoutSeconds = ptr.To[int32](30)
	pods := c.createDeployment(newDeployment(4, spec))
	c.patchDeployment("workers", map[string]any{"replicas": 2})
	<-reached
	started := time.Now()
	c.patchDeployment("workers", map[string]any{"downscalePodPicker": map[string]any{"http": map[string]any{"port": right.spec(t).HTTP.Port.IntVal}}})
	if left := c.awaitPods("workers", 2); !reflect.DeepEqual(left, pods[:2]) || len(right.questions()) != 1 {
		t.Errorf("%q are left, want %q, and the right picker was asked %d times", left, pods[:2], len(right.questions()))
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("the scale-down took %s", took)
	}
}

// testOthersDoNotWait has more pickers hang than there are workers.
func testOthersDoNotWait(t *testing.T, c *cluster) {
	c.startControllers()
	reached, end := make(chan struct{}, 100), make(chan struct{})
	p := startPicker(t, func(r *http.Request) {
		reached <- struct{}{}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(end) })
	spec := p.spec(t)
	spec.TimeoutSeconds = ptr.To[int32](30)
	const hanging = 8
	for i := range hanging {
		d := newDeployment(2, spec)
		d.Name = fmt.Sprint("hanging-", i)
		d.Spec.Selector.MatchLabels["app"], d.Spec.Template.Labels["app"] = d.Name, d.Name
		d.Spec.Replicas = ptr.To[int32](3)
		c.createDeployment(d)
		c.patchDeployment(d.Name, map[string]any{"replicas": 1})
	}
	<-reached
	c.createDeployment(newDeployment(3, nil))
	started := time.Now()
	c.patchDeployment("workers", map[string]any{"replicas": 1})
	c.awaitPods("workers", 1)
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("a Deployment without a picker waited %s", took)
	}
}

// testSecrets has a header from a Secret, which only those may use who can read it.
func testSecrets(t *testing.T, c *cluster) {
	c.startControllers()
	p := startPicker(t, nil)
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token"}, StringData: map[string]string{"token": "s3cr3t"}}
	if _, err := c.Client.CoreV1().Secrets(c.Namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	author := c.ClientOf("author-" + c.Namespace)
	c.grant("author-"+c.Namespace, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create", "update", "get"}})
	spec := p.spec(t)
	spec.HTTP.HTTPHeaders = []v1.HTTPDownscalePodPickerHeader{{Name: "X-Token", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{
		SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "token"}, Key: "token"},
	}}}
	wanted := newDeployment(3, spec)
	deployments := author.AppsV1().Deployments(c.Namespace)
	if _, err := deployments.Create(t.Context(), wanted, metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `Secrets ["token"]`) {
		t.Fatalf("created by a user who may not read the Secret: %v", err)
	}
	c.createDeployment(wanted)
	got, err := deployments.Get(t.Context(), "workers", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := got.DeepCopy()
	elsewhere.Spec.DownscalePodPicker.HTTP.Path = "/elsewhere"
	if _, err := deployments.Update(t.Context(), elsewhere, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the Secret is sent elsewhere by a user who may not read it: %v", err)
	}
	got.Spec.Replicas = ptr.To[int32](2)
	c.Eventually("the author to scale", func(ctx context.Context) (bool, string) {
		got, err := deployments.Get(ctx, "workers", metav1.GetOptions{})
		if err == nil {
			got.Spec.Replicas = ptr.To[int32](2)
			_, err = deployments.Update(ctx, got, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
	c.awaitPods("workers", 2)
	p.lock.Lock()
	defer p.lock.Unlock()
	if len(p.token) != 1 || p.token[0] != "s3cr3t" {
		t.Errorf("the picker got the tokens %q", p.token)
	}
}

func (c *cluster) grant(user string, rules ...rbacv1.PolicyRule) {
	c.T.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	if _, err := c.Client.RbacV1().Roles(c.Namespace).Create(c.T.Context(), role, metav1.CreateOptions{}); err != nil {
		c.T.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}}
	if _, err := c.Client.RbacV1().RoleBindings(c.Namespace).Create(c.T.Context(), binding, metav1.CreateOptions{}); err != nil {
		c.T.Fatal(err)
	}
	c.Eventually("the rights of "+user, func(ctx context.Context) (bool, string) {
		_, err := c.ClientOf(user).AppsV1().Deployments(c.Namespace).Get(ctx, "none", metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// With the gate off, the field is dropped.
func TestGateOff(t *testing.T) {
	c := newCluster(t, startAPIServer(t, false))
	p := startPicker(t, nil)
	created, err := c.Client.AppsV1().Deployments(c.Namespace).Create(t.Context(), newDeployment(1, p.spec(t)), metav1.CreateOptions{})
	if err != nil || created.Spec.DownscalePodPicker != nil {
		t.Errorf("created with picker %+v, %v", created.Spec.DownscalePodPicker, err)
	}
}
