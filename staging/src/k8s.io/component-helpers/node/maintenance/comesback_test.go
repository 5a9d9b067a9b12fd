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

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestComesBack(t *testing.T) {
	ownedBy := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "owner", Controller: ptr.To(true)}}
	}
	all := v1.Toleration{Operator: v1.TolerationOpExists}
	for name, test := range map[string]struct {
		owners      []metav1.OwnerReference
		tolerations []v1.Toleration
		want        bool
	}{
		"tolerates everything":           {ownedBy("ReplicaSet"), []v1.Toleration{all}, true},
		"tolerates the cordon":           {ownedBy("StatefulSet"), []v1.Toleration{{Key: v1.TaintNodeUnschedulable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}}, true},
		"tolerates the empty value":      {ownedBy("ReplicaSet"), []v1.Toleration{{Key: v1.TaintNodeUnschedulable}}, true},
		"tolerates all of one effect":    {ownedBy("ReplicaSet"), []v1.Toleration{{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}}, true},
		"tolerates what evicts":          {ownedBy("ReplicaSet"), []v1.Toleration{{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}}, false},
		"tolerates another taint":        {ownedBy("ReplicaSet"), []v1.Toleration{{Key: v1.TaintNodeNotReady, Operator: v1.TolerationOpExists}}, false},
		"tolerates nothing":              {ownedBy("ReplicaSet"), nil, false},
		"has no controller":              {nil, []v1.Toleration{all}, false},
		"of a DaemonSet, which is asked": {ownedBy("DaemonSet"), []v1.Toleration{all}, false},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.owners}, Spec: v1.PodSpec{Tolerations: test.tolerations}}
		if got := ComesBack(pod); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
