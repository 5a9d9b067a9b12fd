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
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// maxEscalation is the limit of afterSeconds of spec.escalation.
const maxEscalation = 365 * 24 * time.Hour

// escalationFlag is a flag that adds a step for all pods to spec.escalation.
type escalationFlag struct {
	name   string
	action corev1.MaintenanceEscalation
	usage  string
}

var escalationFlags = []escalationFlag{
	{"skip-interceptors-after", corev1.MaintenanceEscalationSkipInterceptors,
		"How long after the drain of a node has begun the interceptors of its pods are passed over. PodDisruptionBudgets are still respected. Needs the verb escalate."},
	{"ignore-budgets-after", corev1.MaintenanceEscalationIgnoreBudgets,
		"How long after the drain of a node has begun its pods are gone, whatever their interceptors and PodDisruptionBudgets say. They are deleted with their grace period. Needs the verb escalate."},
	{"force-delete-after", corev1.MaintenanceEscalationForceDelete,
		"How long after the drain of a node has begun its pods are removed from the API, if it has the taint node.kubernetes.io/out-of-service. Needs the verb escalate."},
}

func (f escalationFlag) add(set *pflag.FlagSet) { set.Duration(f.name, 0, f.usage) }

// escalation returns what the flags ask for, sorted by time.
func (f *rolloutFlags) escalation() ([]coordinationv1alpha1.NodeMaintenanceEscalationStep, error) {
	var steps []coordinationv1alpha1.NodeMaintenanceEscalationStep
	for _, flag := range escalationFlags {
		if f.set.Lookup(flag.name) == nil || !f.set.Changed(flag.name) {
			continue
		}
		after, err := f.set.GetDuration(flag.name)
		if err != nil {
			return nil, err
		}
		if after < time.Second || after > maxEscalation || after%time.Second != 0 {
			return nil, fmt.Errorf("--%s=%s: must be from 1s to %s, without fractions of a second", flag.name, after, maxEscalation)
		}
		steps = append(steps, coordinationv1alpha1.NodeMaintenanceEscalationStep{AfterSeconds: int32(after / time.Second), Action: flag.action})
	}
	slices.SortStableFunc(steps, func(a, b coordinationv1alpha1.NodeMaintenanceEscalationStep) int {
		return int(a.AfterSeconds) - int(b.AfterSeconds)
	})
	return steps, nil
}

// lacksEscalation reports whether a maintenance does not have all the steps that the flags ask for.
func lacksEscalation(wanted, stored []coordinationv1alpha1.NodeMaintenanceEscalationStep) bool {
	return slices.ContainsFunc(wanted, func(step coordinationv1alpha1.NodeMaintenanceEscalationStep) bool {
		return !slices.ContainsFunc(stored, func(other coordinationv1alpha1.NodeMaintenanceEscalationStep) bool {
			return apiequality.Semantic.DeepEqual(step, other)
		})
	})
}
