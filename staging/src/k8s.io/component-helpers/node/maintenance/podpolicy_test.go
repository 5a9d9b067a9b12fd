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

package maintenance

import (
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	podDrain         = coordinationv1alpha1.NodeMaintenancePodDrain
	podSkip          = coordinationv1alpha1.NodeMaintenancePodSkip
	podWaitCompleted = coordinationv1alpha1.NodeMaintenancePodWaitCompleted
)

// unknownNamespace says that the labels of a namespace are not known.
func unknownNamespace() (labels.Set, bool) { return nil, false }

// TestActionFor checks that the first policy that matches decides, and what matches.
func TestActionFor(t *testing.T) {
	type policy = coordinationv1alpha1.NodeMaintenancePodPolicy
	const gpu = v1.ResourceName("nvidia.com/gpu")
	one, none := v1.ResourceList{gpu: resource.MustParse("1")}, v1.ResourceList{gpu: resource.MustParse("0")}
	container := func(requests, limits v1.ResourceList) []v1.Container {
		return []v1.Container{{}, {Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}}
	}
	selects := func(key string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: ""}}
	}
	gpus := []policy{{Action: podWaitCompleted, ResourceNames: []v1.ResourceName{"example.com/other", gpu}}}
	team := func() (labels.Set, bool) { return labels.Set{"team": ""}, true }
	for name, test := range map[string]struct {
		policies  []policy
		spec      v1.PodSpec
		namespace func() (labels.Set, bool)
		want      coordinationv1alpha1.NodeMaintenancePodAction
	}{
		"no policy":              {nil, v1.PodSpec{}, team, podDrain},
		"all pods":               {[]policy{{Action: podSkip}}, v1.PodSpec{}, unknownNamespace, podSkip},
		"the first one":          {[]policy{{Action: podDrain, PodSelector: selects("app")}, {Action: podSkip}}, v1.PodSpec{}, team, podDrain},
		"the first that matches": {[]policy{{Action: podDrain, PodSelector: selects("other")}, {Action: podSkip}}, v1.PodSpec{}, team, podSkip},
		"its namespace":          {[]policy{{Action: podSkip, NamespaceSelector: selects("team")}}, v1.PodSpec{}, team, podSkip},
		"another namespace":      {[]policy{{Action: podSkip, NamespaceSelector: selects("other")}}, v1.PodSpec{}, team, podDrain},
		"unknown namespace":      {[]policy{{Action: podSkip, NamespaceSelector: selects("other")}}, v1.PodSpec{}, unknownNamespace, podSkip},
		"unknown namespace, to be drained": {
			[]policy{{Action: podDrain, NamespaceSelector: selects("team")}, {Action: podSkip}}, v1.PodSpec{}, unknownNamespace, podSkip,
		},
		"no resource":                   {gpus, v1.PodSpec{Containers: container(nil, nil)}, team, podDrain},
		"a request":                     {gpus, v1.PodSpec{Containers: container(one, nil)}, team, podWaitCompleted},
		"a limit":                       {gpus, v1.PodSpec{Containers: container(nil, one)}, team, podWaitCompleted},
		"a request of 0":                {gpus, v1.PodSpec{Containers: container(none, nil)}, team, podDrain},
		"a request of 0, and a limit":   {gpus, v1.PodSpec{Containers: container(none, one)}, team, podDrain},
		"a request of the pod":          {gpus, v1.PodSpec{Resources: &v1.ResourceRequirements{Requests: one}}, team, podWaitCompleted},
		"a limit of the pod":            {gpus, v1.PodSpec{Resources: &v1.ResourceRequirements{Limits: one}}, team, podWaitCompleted},
		"the pod requests nothing":      {gpus, v1.PodSpec{Resources: &v1.ResourceRequirements{}}, team, podDrain},
		"a request of an initContainer": {gpus, v1.PodSpec{InitContainers: container(one, nil)}, team, podWaitCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewPodPolicies(test.policies)
			if err != nil {
				t.Fatal(err)
			}
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": ""}}, Spec: test.spec}
			if got := p.ActionFor(pod, test.namespace); got != test.want {
				t.Errorf("%s, not %s", got, test.want)
			}
			if got, want := p.SelectNamespaces(), len(test.policies) > 0 && test.policies[0].NamespaceSelector != nil; got != want {
				t.Errorf("selects namespaces: %t", got)
			}
		})
	}
}

func TestMoreCautious(t *testing.T) {
	for _, test := range []struct {
		a, b, want coordinationv1alpha1.NodeMaintenancePodAction
	}{
		{podDrain, podDrain, podDrain},
		{podDrain, podWaitCompleted, podWaitCompleted},
		{podWaitCompleted, podSkip, podSkip},
		{podDrain, podSkip, podSkip},
	} {
		if got, reversed := MoreCautious(test.a, test.b), MoreCautious(test.b, test.a); got != test.want || reversed != test.want {
			t.Errorf("%s and %s: %s and %s, not %s", test.a, test.b, got, reversed, test.want)
		}
	}
}

func TestAdmissionOf(t *testing.T) {
	node := &v1.Node{}
	if a := AdmissionOf(node, ""); a != nil {
		t.Errorf("a node without a status has the admission %+v", a)
	}
	node.Status.MaintenanceStatus = &v1.MaintenanceStatus{Admissions: []v1.MaintenanceAdmission{{MaintenanceName: "m", MaintenanceUID: "old"}, {MaintenanceName: "m", MaintenanceUID: "new"}}}
	if a := AdmissionOf(node, "new"); a != &node.Status.MaintenanceStatus.Admissions[1] {
		t.Errorf("got %+v", a)
	}
	if a := AdmissionOf(node, "gone"); a != nil {
		t.Errorf("got %+v of another maintenance", a)
	}
}

func TestIsReady(t *testing.T) {
	for status, want := range map[v1.ConditionStatus]bool{v1.ConditionTrue: true, v1.ConditionFalse: false, v1.ConditionUnknown: false} {
		node := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeMemoryPressure, Status: v1.ConditionTrue}, {Type: v1.NodeReady, Status: status}}}}
		if got := IsReady(node); got != want {
			t.Errorf("%s: %t", status, got)
		}
	}
	if IsReady(&v1.Node{}) {
		t.Error("a node without conditions is Ready")
	}
}
