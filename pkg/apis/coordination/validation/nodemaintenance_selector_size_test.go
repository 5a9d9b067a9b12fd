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

package validation

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
)

// labelsOf returns count labels.
func labelsOf(count int) map[string]string {
	labels := map[string]string{}
	for i := range count {
		labels[fmt.Sprintf("label-%d", i)] = "value"
	}
	return labels
}

// expression returns a requirement with count values.
func expression(key string, count int) metav1.LabelSelectorRequirement {
	requirement := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn}
	for i := range count {
		requirement.Values = append(requirement.Values, fmt.Sprintf("value-%d", i))
	}
	return requirement
}

// The size of selectors is limited when a plan is created. A stored plan stays valid.
func TestSelectorSize(t *testing.T) {
	path := field.NewPath("spec", "drainPlan")
	selecting := func(selector metav1.LabelSelector) []core.DrainPlanEntry {
		return []core.DrainPlanEntry{{PodType: core.PodTypeDefault, PodPriority: 1, PodSelector: &selector}}
	}
	large := selecting(metav1.LabelSelector{MatchLabels: labelsOf(11)})[0]
	tests := map[string]struct {
		plan []core.DrainPlanEntry
		want field.ErrorList
	}{
		"the maximum number of labels":     {plan: selecting(metav1.LabelSelector{MatchLabels: labelsOf(10)})},
		"one label too many":               {plan: selecting(metav1.LabelSelector{MatchLabels: labelsOf(11)}), want: field.ErrorList{field.TooMany(path.Index(0).Child("podSelector"), 11, 10)}},
		"labels and requirements":          {plan: selecting(metav1.LabelSelector{MatchLabels: labelsOf(9), MatchExpressions: []metav1.LabelSelectorRequirement{expression("a", 1)}})},
		"one requirement too many":         {plan: selecting(metav1.LabelSelector{MatchLabels: labelsOf(10), MatchExpressions: []metav1.LabelSelectorRequirement{expression("a", 1)}}), want: field.ErrorList{field.TooMany(path.Index(0).Child("podSelector"), 11, 10)}},
		"the maximum number of values":     {plan: selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression("a", 20)}})},
		"one value too many":               {plan: selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression("a", 1), expression("b", 21)}}), want: field.ErrorList{field.TooMany(path.Index(0).Child("podSelector", "matchExpressions").Index(1).Child("values"), 21, 20)}},
		"not compared with others":         {plan: []core.DrainPlanEntry{defaultPods(2), large, large}, want: field.ErrorList{field.TooMany(path.Index(1).Child("podSelector"), 11, 10), field.TooMany(path.Index(2).Child("podSelector"), 11, 10)}},
		"the maximum number of characters": {plan: longSelectors(8192)},
		"one character over":               {plan: longSelectors(8193), want: field.ErrorList{field.Forbidden(path, "must not have podSelectors of more than 8192 characters in total, but has 8193")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			field.ErrorMatcher{}.ByType().ByField().ByDetailSubstring().Test(t, test.want, validateDrainPlan(test.plan, path))
			maintenance := &coordination.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "stored", ResourceVersion: "1"}, Spec: coordination.NodeMaintenanceSpec{DrainPlan: test.plan}}
			if errs := ValidateNodeMaintenanceUpdate(maintenance, maintenance); len(errs) > 0 {
				t.Errorf("a stored plan is rejected: %v", errs)
			}
		})
	}
}

// longSelectors returns a plan whose selectors have length characters in total.
func longSelectors(length int) []core.DrainPlanEntry {
	var plan []core.DrainPlanEntry
	for priority := int32(0); length > 0; priority++ {
		labels := map[string]string{}
		used := 0
		for i := 0; i < 10 && used < length; i++ {
			key := fmt.Sprintf("k%02d-%d", priority, i) // 5 characters and "=", and "," between them.
			comma := min(i, 1)
			value := min(60, length-used-len(key)-1-comma)
			if rest := length - used - len(key) - 1 - comma - value; rest > 0 && rest < 8 {
				value -= 8
			}
			labels[key] = strings.Repeat("v", value)
			used += len(key) + 1 + comma + value
		}
		length -= used
		plan = append(plan, core.DrainPlanEntry{PodType: core.PodTypeDefault, PodPriority: priority, PodSelector: &metav1.LabelSelector{MatchLabels: labels}})
	}
	return plan
}
