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

package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

func podOn(node, name string, uid types.UID, mirror bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}, Spec: corev1.PodSpec{NodeName: node}}
	if mirror {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	}
	return pod
}

func TestMaintenances(t *testing.T) {
	of := func(verb, subresource, namespace, name string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{
			Verb: verb, APIGroup: "coordination.k8s.io", APIVersion: "v1alpha1", Resource: "evictionrequests", Subresource: subresource,
			Namespace: namespace, Name: name, ResourceRequest: true,
		}
	}
	// Admission asks for names in k8s.io in all namespaces.
	interceptAll := authorizer.AttributesRecord{
		Verb: "intercept", APIGroup: "coordination.k8s.io", APIVersion: "*", Resource: "evictioninterceptors", Name: "kubelet.k8s.io", ResourceRequest: true,
	}
	intercept := func(verb, name string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{
			Verb: verb, APIGroup: "coordination.k8s.io", APIVersion: "*", Resource: "evictioninterceptors", Namespace: "ns", Name: name, ResourceRequest: true,
		}
	}
	maintenance := func(verb, subresource, name string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{
			Verb: verb, APIGroup: "coordination.k8s.io", APIVersion: "v1alpha1", Resource: "nodemaintenances", Subresource: subresource, Name: name, ResourceRequest: true,
		}
	}
	const shutdown = "graceful-shutdown-own"
	for _, test := range []struct {
		what  string
		attrs authorizer.AttributesRecord
		want  bool
	}{
		{"get of the request of a mirror pod", of("get", "", "ns", "mirror-uid"), true},
		{"list of this request", of("list", "", "ns", "mirror-uid"), true},
		{"watch of this request", of("watch", "", "ns", "mirror-uid"), true},
		{"patch of its status", of("patch", "status", "ns", "mirror-uid"), true},
		{"update of its status", of("update", "status", "ns", "mirror-uid"), true},
		{"get of its status", of("get", "status", "ns", "mirror-uid"), false},
		{"patch of the request", of("patch", "", "ns", "mirror-uid"), false},
		{"update of the request", of("update", "", "ns", "mirror-uid"), false},
		{"creation of the request", of("create", "", "ns", "mirror-uid"), false},
		{"creation of a request", of("create", "", "ns", ""), false},
		{"deletion of the request", of("delete", "", "ns", "mirror-uid"), false},
		{"list of the namespace", of("list", "", "ns", ""), false},
		{"watch of the namespace", of("watch", "", "ns", ""), false},
		{"watch of the cluster", of("watch", "", "", ""), false},
		{"watch of this name in the cluster", of("watch", "", "", "mirror-uid"), false},
		{"the same name in another namespace", of("get", "", "other", "mirror-uid"), false},
		{"a request by the name of the pod", of("get", "", "ns", "mirror"), false},
		{"the request of an ordinary pod of the node", of("get", "", "ns", "plain-uid"), false},
		{"the status of the request of an ordinary pod", of("patch", "status", "ns", "plain-uid"), false},
		{"the request of a mirror pod of another node", of("get", "", "ns", "foreign-uid"), false},
		{"the status of that request", of("patch", "status", "ns", "foreign-uid"), false},
		{"the request of a mirror pod without a UID", of("get", "", "ns", ""), false},
		{"the request of a deleted mirror pod", of("get", "", "ns", "deleted-uid"), false},
		{"the request of a mirror pod before it was replaced", of("get", "", "ns", "old-uid"), false},
		{"the request of the pod that replaced it", of("get", "", "ns", "new-uid"), true},
		{"intercepting as the kubelet", intercept("intercept", "kubelet.k8s.io"), true},
		{"intercepting as the kubelet in all namespaces", interceptAll, true},
		{"intercepting as another", intercept("intercept", "saver.example.com"), false},
		{"intercepting as the built-in interceptor", intercept("intercept", "imperative-eviction.k8s.io"), false},
		{"another verb on the interceptor", intercept("*", "kubelet.k8s.io"), false},
		{"creation of a maintenance", maintenance("create", "", ""), true},
		{"creation of its maintenance by apply", maintenance("create", "", shutdown), true},
		{"creation of another maintenance by apply", maintenance("create", "", "kernel"), false},
		{"get of its maintenance", maintenance("get", "", shutdown), true},
		{"list of its maintenance", maintenance("list", "", shutdown), true},
		{"watch of its maintenance", maintenance("watch", "", shutdown), true},
		{"patch of its maintenance", maintenance("patch", "", shutdown), true},
		{"update of its maintenance", maintenance("update", "", shutdown), true},
		{"deletion of its maintenance", maintenance("delete", "", shutdown), true},
		{"status of its maintenance", maintenance("patch", "status", shutdown), false},
		{"get of another maintenance", maintenance("get", "", "kernel"), false},
		{"get of the maintenance of another node", maintenance("get", "", "graceful-shutdown-foreign"), false},
		{"deletion of another maintenance", maintenance("delete", "", "kernel"), false},
		{"deletion of all maintenances", maintenance("deletecollection", "", ""), false},
		{"deletion of a collection by this name", maintenance("deletecollection", "", shutdown), false},
		{"list of all maintenances", maintenance("list", "", ""), false},
		{"watch of all maintenances", maintenance("watch", "", ""), false},
	} {
		for _, enabled := range []bool{true, false} {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
				features.EvictionRequestAPI: enabled, features.DeclarativeNodeMaintenance: enabled, features.NodeMaintenanceAwareKubelet: enabled,
			})
			g := NewGraph()
			for _, pod := range []*corev1.Pod{
				podOn("own", "mirror", "mirror-uid", true), podOn("own", "plain", "plain-uid", false), podOn("foreign", "mirror-of-another", "foreign-uid", true),
				podOn("own", "without-uid", "", true), podOn("own", "deleted", "deleted-uid", true),
				podOn("own", "replaced", "old-uid", true), podOn("own", "replaced", "new-uid", true),
			} {
				g.AddPod(pod)
			}
			g.DeletePod("deleted", "ns")
			a := NewAuthorizer(g, nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules())
			test.attrs.User = &user.DefaultInfo{Name: "system:node:own", Groups: []string{"system:nodes"}}
			decision, reason, err := a.Authorize(t.Context(), test.attrs)
			if want := test.want && enabled; err != nil || (decision == authorizer.DecisionAllow) != want {
				t.Errorf("gate %v: %s: decision %v (%s, %v), want allowed: %v", enabled, test.what, decision, reason, err, want)
			}
		}
	}
}
