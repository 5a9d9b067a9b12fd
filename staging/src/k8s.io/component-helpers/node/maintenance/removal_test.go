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
)

func TestIsBeingRemoved(t *testing.T) {
	tainted := func(key string) v1.Node {
		return v1.Node{Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: "team"}, {Key: key, Effect: v1.TaintEffectNoSchedule}}}}
	}
	for name, test := range map[string]struct {
		node v1.Node
		want bool
	}{
		"plain":                       {v1.Node{}, false},
		"deleted":                     {v1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}, true},
		"by the cluster autoscaler":   {tainted("ToBeDeletedByClusterAutoscaler"), true},
		"by Karpenter":                {tainted("karpenter.sh/disrupted"), true},
		"a candidate for removal":     {tainted("DeletionCandidateOfClusterAutoscaler"), false},
		"cordoned":                    {tainted(v1.TaintNodeUnschedulable), false},
		"out of service, not deleted": {tainted(v1.TaintNodeOutOfService), false},
	} {
		if got := IsBeingRemoved(&test.node); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
