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
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// convertFiles are those of the tests of the command.
const convertFiles = "../../../staging/src/k8s.io/kubectl/pkg/cmd/maintenance/convert/testdata"

// mapperOf returns what kubectl resolves the names of resources with.
func mapperOf(t *testing.T, config *rest.Config) meta.RESTMapper {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false).WithWrapConfigFn(func(*rest.Config) *rest.Config { return rest.CopyConfig(config) })
	flags.CacheDir = ptr.To(t.TempDir())
	mapper, err := flags.ToRESTMapper()
	if err != nil {
		t.Fatal(err)
	}
	return mapper
}

// TestConvertedObjectsAreAccepted creates what "kubectl maintenance convert" writes, in dry runs.
func TestConvertedObjectsAreAccepted(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	c := newCluster(t, config)
	client, mapper := dynamic.NewForConfigOrDie(config), mapperOf(t, config)
	created := 0
	for _, args := range [][]string{
		{"-f", "medik8s.yaml"}, {"-f", "nvidia.yaml"}, {"-f", "lifecycle-requests.yaml"}, {"-f", "lifecycle-pods.yaml"},
		{"--", "kubectl", "drain", "foo", "--pod-selector=app=web"},
		{"--", "kubectl", "drain", "node-1", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=10m"},
		{"--", "kubectl", "--context=prod", "drain", "node-2", "node-3", "--ignore-daemonsets"},
		{"--", "kubectl", "drain", "--selector=pool=batch,gpu", "--pod-selector=app=training"},
		{"--", "kubectl", "drain", "node-4", "--dry-run=server"},
	} {
		if args[0] == "-f" {
			args[1] = filepath.Join(convertFiles, args[1])
		}
		for _, document := range bytes.Split([]byte(planRun(t, config, append([]string{"convert"}, args...)...)), []byte("---\n")) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				t.Fatal(err)
			}
			kind := object.GroupVersionKind()
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				t.Fatal(err)
			}
			resource := dynamic.ResourceInterface(client.Resource(mapping.Resource))
			if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				object.SetNamespace(c.namespace)
				resource = client.Resource(mapping.Resource).Namespace(c.namespace)
			}
			_, err = resource.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Errorf("%v: %v:\n%s", args, err, document)
			}
			created++
		}
	}
	if created < 12 {
		t.Errorf("only %d objects were created", created)
	}
}

// installMedik8s installs the NodeMaintenance of the node-maintenance-operator, and returns its
// resource.
func (c *cluster) installMedik8s() schema.GroupVersionResource {
	c.t.Helper()
	resource := schema.GroupVersionResource{Group: "nodemaintenance.medik8s.io", Version: "v1beta1", Resource: "nodemaintenances"}
	definitions := apiextensionsclient.NewForConfigOrDie(c.config).ApiextensionsV1().CustomResourceDefinitions()
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: resource.Resource + "." + resource.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: resource.Group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: resource.Resource, Singular: "nodemaintenance", Kind: "NodeMaintenance", ListKind: "NodeMaintenanceList", ShortNames: []string{"nm"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: resource.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	}
	if _, err := definitions.Create(c.t.Context(), definition, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = definitions.Delete(context.WithoutCancel(c.t.Context()), definition.Name, metav1.DeleteOptions{})
	})
	c.eventually("the resource of Medik8s is discovered", func(context.Context) (bool, string) {
		list, err := c.client.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
		if err != nil {
			return false, err.Error()
		}
		return len(list.APIResources) > 0, "no resource"
	})
	return resource
}

// TestTwoKindsOfOneName checks which kind kubectl uses where the node-maintenance-operator is
// installed, as docs/migrate says, and that "kubectl maintenance" uses only ours.
func TestTwoKindsOfOneName(t *testing.T) {
	config := startAPIServer(t, framework.SharedEtcd(), true)
	c := newCluster(t, config)
	c.createNode("node-1")
	theirs := c.installMedik8s()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": theirs.GroupVersion().String(), "kind": "NodeMaintenance",
		"metadata": map[string]any{"name": "theirs"}, "spec": map[string]any{"nodeName": "node-1"},
	}}
	if _, err := dynamic.NewForConfigOrDie(config).Resource(theirs).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.createMaintenance(newMaintenance("ours", coordinationv1alpha1.NodeMaintenanceStageIdle, nodesNamed("node-1")))

	mapper := mapperOf(t, config)
	for name, want := range map[string]string{
		"nm":                                  coordinationv1alpha1.GroupName,
		"nodemaintenance":                     coordinationv1alpha1.GroupName,
		"nodemaintenances":                    coordinationv1alpha1.GroupName,
		"nm.coordination.k8s.io":              coordinationv1alpha1.GroupName,
		"nodemaintenance.coordination.k8s.io": coordinationv1alpha1.GroupName,
		"nm.nodemaintenance.medik8s.io":       theirs.Group,
		"nodemaintenances.nodemaintenance.medik8s.io": theirs.Group,
	} {
		resource := schema.ParseGroupResource(name)
		found, err := mapper.ResourceFor(resource.WithVersion(""))
		if err != nil || found.Group != want {
			t.Errorf("%s is %v, %v, must be of %s", name, found, err, want)
		}
	}

	if out := planRun(t, config, "status"); !strings.Contains(out, "ours: Idle") || strings.Contains(out, "theirs") {
		t.Errorf("status shows:\n%s", out)
	}
	planRun(t, config, "cancel", "ours")
	if _, err := dynamic.NewForConfigOrDie(config).Resource(theirs).Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
