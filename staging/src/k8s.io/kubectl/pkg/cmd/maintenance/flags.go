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
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const (
	// maxReturnTimeout is the limit of spec.rollout.returnTimeoutSeconds.
	maxReturnTimeout = 7 * 24 * time.Hour

	// maxEscalation is the limit of afterSeconds of spec.escalation.
	maxEscalation = 365 * 24 * time.Hour
)

// completionPolicies are the values of --complete-nodes.
var completionPolicies = []string{string(coordinationv1alpha1.NodeCompletionManual), string(coordinationv1alpha1.NodeCompletionRebooted)}

// rolloutFlags are the flags for spec.rollout. Those that are not given are left to the defaults of
// the server.
type rolloutFlags struct {
	maxConcurrent  string
	completeNodes  string
	returnTimeout  time.Duration
	maxFailedNodes int32
	paused         bool

	// set are the flags to which these were added.
	set *pflag.FlagSet
}

// Names of flags.
const (
	maxConcurrentFlag  = "max-concurrent"
	completeNodesFlag  = "complete-nodes"
	returnTimeoutFlag  = "return-timeout"
	maxFailedNodesFlag = "max-failed-nodes"
	pausedFlag         = "paused"
)

// escalationFlags are the flags that add a step for all pods to spec.escalation.
var escalationFlags = []struct {
	name   string
	action corev1.MaintenanceEscalation
	usage  string
}{
	{"skip-interceptors-after", corev1.MaintenanceEscalationSkipInterceptors,
		"How long after the drain of a node has begun the interceptors of its pods are passed over. PodDisruptionBudgets are still respected. Needs the verb escalate."},
	{"ignore-budgets-after", corev1.MaintenanceEscalationIgnoreBudgets,
		"How long after the drain of a node has begun its pods are gone, whatever their interceptors and PodDisruptionBudgets say. They are deleted with their grace period. Needs the verb escalate."},
	{"force-delete-after", corev1.MaintenanceEscalationForceDelete,
		"How long after the drain of a node has begun its pods are removed from the API, if it has the taint node.kubernetes.io/out-of-service. Needs the verb escalate."},
}

// rolloutFlagNames are the flags that ask for a rollout, which an escalation needs.
var rolloutFlagNames = []string{
	maxConcurrentFlag, completeNodesFlag, returnTimeoutFlag, maxFailedNodesFlag, pausedFlag,
	escalationFlags[0].name, escalationFlags[1].name, escalationFlags[2].name,
}

func (f *rolloutFlags) add(cmd *cobra.Command) {
	f.addMaxConcurrent(cmd)
	f.set.StringVar(&f.completeNodes, completeNodesFlag, f.completeNodes, "When the work on a drained node is done, so that the node is released by itself: Manual, by \"kubectl maintenance complete NAME NODE\" (default), or Rebooted, when it has another boot ID and is Ready.")
	f.set.DurationVar(&f.returnTimeout, returnTimeoutFlag, f.returnTimeout, "Within which time a node has to come back: since it is done or, with --complete-nodes=Rebooted, since it was drained. Default 30m.")
	f.set.Int32Var(&f.maxFailedNodes, maxFailedNodesFlag, f.maxFailedNodes, "How many nodes may have failed to come back in time. If there are more, no further node is drained until \"kubectl maintenance resume\".")
	f.set.BoolVar(&f.paused, pausedFlag, f.paused, "If true, drain no node until \"kubectl maintenance resume\".")
	for _, flag := range escalationFlags {
		f.set.Duration(flag.name, 0, flag.usage)
	}
	cmdutil.CheckErr(cmd.RegisterFlagCompletionFunc(completeNodesFlag, cobra.FixedCompletions(completionPolicies, cobra.ShellCompDirectiveNoFileComp)))
}

// addMaxConcurrent adds only the flag that a plan needs.
func (f *rolloutFlags) addMaxConcurrent(cmd *cobra.Command) {
	f.set = cmd.Flags()
	f.set.StringVar(&f.maxConcurrent, maxConcurrentFlag, f.maxConcurrent, "How many nodes are drained at the same time, each of which is released by itself: a number, or a percentage of the nodes, such as 10%.")
}

// given returns the names of the flags that are given.
func (f *rolloutFlags) given() []string {
	var given []string
	for _, name := range rolloutFlagNames {
		if flag := f.set.Lookup(name); flag != nil && flag.Changed {
			given = append(given, "--"+name)
		}
	}
	return given
}

// rollout returns what the flags ask for; nil if none is given.
func (f *rolloutFlags) rollout() (*coordinationv1alpha1.NodeMaintenanceRollout, error) {
	if len(f.given()) == 0 {
		return nil, nil
	}
	rollout := &coordinationv1alpha1.NodeMaintenanceRollout{}
	return rollout, f.apply(rollout)
}

// apply sets what the flags ask for.
func (f *rolloutFlags) apply(rollout *coordinationv1alpha1.NodeMaintenanceRollout) (err error) {
	if f.set.Changed(maxConcurrentFlag) {
		if rollout.MaxConcurrent, err = parseMaxConcurrent(f.maxConcurrent); err != nil {
			if f.set.Lookup(pausedFlag) != nil { // A plan has no such flag.
				err = fmt.Errorf("%w; to begin with none, use --%s", err, pausedFlag)
			}
			return err
		}
	}
	if f.set.Changed(completeNodesFlag) {
		policy, err := oneOf(completeNodesFlag, f.completeNodes, completionPolicies)
		if err != nil {
			return err
		}
		rollout.CompleteNodes = coordinationv1alpha1.NodeCompletionPolicy(policy)
	}
	if f.set.Changed(returnTimeoutFlag) {
		seconds, err := wholeSeconds(returnTimeoutFlag, f.returnTimeout, maxReturnTimeout)
		if err != nil {
			return err
		}
		rollout.ReturnTimeoutSeconds = &seconds
	}
	if f.set.Changed(maxFailedNodesFlag) {
		if f.maxFailedNodes < 0 {
			return fmt.Errorf("--%s=%d: must not be negative; 0 halts at the first node that does not come back", maxFailedNodesFlag, f.maxFailedNodes)
		}
		rollout.MaxFailedNodes = &f.maxFailedNodes
	}
	if f.set.Changed(pausedFlag) {
		rollout.Paused = f.paused
	}
	return nil
}

// wholeSeconds accepts durations as the server does.
func wholeSeconds(flag string, value, limit time.Duration) (int32, error) {
	if value < time.Second || value > limit || value%time.Second != 0 {
		return 0, fmt.Errorf("--%s=%s: must be from 1s to %s, without fractions of a second", flag, value, limit)
	}
	return int32(value / time.Second), nil
}

// oneOf returns the value that a flag has, in any case of letters.
func oneOf(flag, text string, values []string) (string, error) {
	i := slices.IndexFunc(values, func(value string) bool { return strings.EqualFold(value, text) })
	if i < 0 {
		return "", fmt.Errorf("--%s=%q: must be one of %s", flag, text, strings.Join(values, ", "))
	}
	return values[i], nil
}

// parseMaxConcurrent accepts what the server does.
func parseMaxConcurrent(text string) (*intstr.IntOrString, error) {
	number, isPercentage := strings.CutSuffix(text, "%")
	value, err := strconv.ParseInt(number, 10, 32)
	if err != nil || value < 1 || isPercentage && value > 100 {
		return nil, fmt.Errorf("--%s=%q: must be a number of nodes, at least 1, or a percentage of them from 1%% to 100%%", maxConcurrentFlag, text)
	}
	if isPercentage {
		return ptr.To(intstr.FromString(fmt.Sprintf("%d%%", value))), nil
	}
	return ptr.To(intstr.FromInt32(int32(value))), nil
}

// contradicts reports whether a maintenance with the stored rollout does not do what the flags ask
// for. Flags that are not given ask for nothing.
func (f *rolloutFlags) contradicts(stored *coordinationv1alpha1.NodeMaintenanceRollout) bool {
	if len(f.given()) == 0 || stored == nil {
		return len(f.given()) > 0
	}
	merged := stored.DeepCopy()
	return f.apply(merged) != nil || !apiequality.Semantic.DeepEqual(merged, stored)
}

// errNoRollouts is the error on a server that would drop spec.rollout, so that all nodes would be
// drained at once.
var errNoRollouts = failed("the server does not support spec.rollout: enable the feature gate NodeMaintenanceBudgets in kube-apiserver and kube-controller-manager, " +
	"or start smaller maintenances one after another")

// verifyRollout removes a maintenance at once from which the server has dropped the rollout, such as
// one of several servers where the feature gate is off.
func verifyRollout(ctx context.Context, client kubernetes.Interface, wanted, created *coordinationv1alpha1.NodeMaintenance) error {
	if wanted.Spec.Rollout == nil || created.Spec.Rollout != nil {
		return nil
	}
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(created.UID))}
	if err := client.CoordinationV1alpha1().NodeMaintenances().Delete(ctx, created.Name, options); err != nil {
		return fmt.Errorf("the server has dropped spec.rollout of NodeMaintenance %q, which drains all its nodes at once: end it with \"kubectl maintenance cancel %s\", because kubectl could not: %w", created.Name, created.Name, err)
	}
	return errNoRollouts
}

// escalation returns what the flags ask for, sorted by time.
func (f *rolloutFlags) escalation() ([]coordinationv1alpha1.NodeMaintenanceEscalationStep, error) {
	var steps []coordinationv1alpha1.NodeMaintenanceEscalationStep
	for _, flag := range escalationFlags {
		if !f.set.Changed(flag.name) {
			continue
		}
		after, err := f.set.GetDuration(flag.name)
		if err != nil {
			return nil, err
		}
		seconds, err := wholeSeconds(flag.name, after, maxEscalation)
		if err != nil {
			return nil, err
		}
		steps = append(steps, coordinationv1alpha1.NodeMaintenanceEscalationStep{AfterSeconds: seconds, Action: flag.action})
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
	if plan, unset, err = parseDrainPlan(data); err != nil {
		return nil, nil, fmt.Errorf("--drain-plan-file=%s: %w", name, err)
	}
	if len(plan) == 0 {
		return nil, nil, fmt.Errorf("--drain-plan-file=%s: has no entries, such as \"- {podType: Default, podPriority: 1000}\"", name)
	}
	return plan, unset, nil
}

// parseDrainPlan also returns the indices of the entries that have no podPriority.
func parseDrainPlan(data []byte) (plan []corev1.DrainPlanEntry, unset []int, err error) {
	type entry struct {
		corev1.DrainPlanEntry `json:",inline"`

		PodPriority *int32 `json:"podPriority"`
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, nil, err
	}
	var entries []entry
	if bytes.HasPrefix(bytes.TrimSpace(asJSON), []byte("{")) {
		var nm struct {
			coordinationv1alpha1.NodeMaintenance `json:",inline"`

			Spec struct {
				coordinationv1alpha1.NodeMaintenanceSpec `json:",inline"`

				DrainPlan []entry `json:"drainPlan"`
			} `json:"spec"`
		}
		err = yaml.UnmarshalStrict(asJSON, &nm)
		entries = nm.Spec.DrainPlan
	} else {
		err = yaml.UnmarshalStrict(asJSON, &entries)
	}
	for i, entry := range entries {
		if entry.PodPriority == nil {
			unset = append(unset, i)
		}
		entry.DrainPlanEntry.PodPriority = ptr.Deref(entry.PodPriority, 0)
		plan = append(plan, entry.DrainPlanEntry)
	}
	return plan, unset, err
}

// startStages are the values of --stage: "complete" is a command of its own.
var startStages = mapped(stages[:3], func(stage coordinationv1alpha1.NodeMaintenanceStage) string { return string(stage) })

// parseStage reads --stage, in any case of letters.
func parseStage(text string) (coordinationv1alpha1.NodeMaintenanceStage, error) {
	if strings.EqualFold(text, string(coordinationv1alpha1.NodeMaintenanceStageComplete)) {
		return "", fmt.Errorf("--stage=%q: use \"kubectl maintenance complete\"", text)
	}
	stage, err := oneOf("stage", text, startStages)
	return coordinationv1alpha1.NodeMaintenanceStage(stage), err
}
