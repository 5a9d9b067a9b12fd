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
// validates them.
func readDrainPlan(name string, in io.Reader) ([]corev1.DrainPlanEntry, error) {
	data, err := readFile(name, in)
	if err != nil {
		return nil, fmt.Errorf("--drain-plan-file: %w", err)
	}
	plan, err := parseDrainPlan(data)
	if err != nil {
		return nil, fmt.Errorf("--drain-plan-file=%s: %w", name, err)
	}
	if len(plan) == 0 {
		return nil, fmt.Errorf("--drain-plan-file=%s: has no entries, such as \"- {podType: Default, podPriority: 1000}\"", name)
	}
	return plan, nil
}

func parseDrainPlan(data []byte) ([]corev1.DrainPlanEntry, error) {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(bytes.TrimSpace(asJSON), []byte("{")) {
		var nm coordinationv1alpha1.NodeMaintenance
		err := yaml.UnmarshalStrict(asJSON, &nm)
		return nm.Spec.DrainPlan, err
	}
	var plan []corev1.DrainPlanEntry
	err = yaml.UnmarshalStrict(asJSON, &plan)
	return plan, err
}
