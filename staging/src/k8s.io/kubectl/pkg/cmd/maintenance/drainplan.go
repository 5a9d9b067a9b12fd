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
	"bytes"
	"fmt"
	"io"
	"os"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// stdin is the file name for standard input.
const stdin = "-"

func readFile(name string, in io.Reader) ([]byte, error) {
	if name == stdin {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}

// readDrainPlan reads a list of entries, or a NodeMaintenance that has them in its spec. The server
// validates them. It also returns the indices of the entries without a priority.
func readDrainPlan(name string, in io.Reader) (plan []corev1.DrainPlanEntry, unset []int, err error) {
	data, err := readFile(name, in)
	if err != nil {
		return nil, nil, fmt.Errorf("--drain-plan-file: %w", err)
	}
	if plan, err = parseDrainPlan(data); err == nil {
		unset, err = withoutPriority(data)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--drain-plan-file=%s: %w", name, err)
	}
	if len(plan) == 0 {
		return nil, nil, fmt.Errorf("--drain-plan-file=%s: has no entries, such as \"- {podType: Default, podPriority: 1000}\"", name)
	}
	return plan, unset, nil
}

// withoutPriority returns the indices of the entries of a drain plan, or of the one in a NodeMaintenance,
// that have no podPriority.
func withoutPriority(data []byte) ([]int, error) {
	type entry struct {
		PodPriority *int32 `json:"podPriority"`
	}
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	var entries []entry
	if isObject(asJSON) {
		var nm struct {
			Spec struct {
				DrainPlan []entry `json:"drainPlan"`
			} `json:"spec"`
		}
		err = yaml.Unmarshal(asJSON, &nm)
		entries = nm.Spec.DrainPlan
	} else {
		err = yaml.Unmarshal(asJSON, &entries)
	}
	var unset []int
	for i := range entries {
		if entries[i].PodPriority == nil {
			unset = append(unset, i)
		}
	}
	return unset, err
}

func isObject(asJSON []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(asJSON), []byte("{")) }

func parseDrainPlan(data []byte) ([]corev1.DrainPlanEntry, error) {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	if isObject(asJSON) {
		var nm coordinationv1alpha1.NodeMaintenance
		err := yaml.UnmarshalStrict(asJSON, &nm)
		return nm.Spec.DrainPlan, err
	}
	var plan []corev1.DrainPlanEntry
	err = yaml.UnmarshalStrict(asJSON, &plan)
	return plan, err
}
