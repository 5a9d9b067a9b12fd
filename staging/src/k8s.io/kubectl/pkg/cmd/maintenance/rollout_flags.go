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
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/ptr"
)

// maxReturnTimeout is the limit of spec.rollout.returnTimeoutSeconds.
const maxReturnTimeout = 7 * 24 * time.Hour

// completionPolicies are the values of --complete-nodes.
var completionPolicies = []string{
	string(coordinationv1alpha1.NodeCompletionManual),
	string(coordinationv1alpha1.NodeCompletionRebooted),
}

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
		flag.add(f.set)
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
	rollout := &coordinationv1alpha1.NodeMaintenanceRollout{Paused: f.paused}
	var err error
	if f.set.Changed(maxConcurrentFlag) {
		if rollout.MaxConcurrent, err = parseMaxConcurrent(f.maxConcurrent); err != nil {
			if f.set.Lookup(pausedFlag) != nil { // A plan has no such flag.
				err = fmt.Errorf("%w; to begin with none, use --%s", err, pausedFlag)
			}
			return nil, err
		}
	}
	if f.set.Changed(completeNodesFlag) {
		if rollout.CompleteNodes, err = parseCompletionPolicy(f.completeNodes); err != nil {
			return nil, err
		}
	}
	if f.set.Changed(returnTimeoutFlag) {
		if f.returnTimeout < time.Second || f.returnTimeout > maxReturnTimeout || f.returnTimeout%time.Second != 0 {
			return nil, fmt.Errorf("--%s=%s: must be from 1s to %s, without fractions of a second", returnTimeoutFlag, f.returnTimeout, maxReturnTimeout)
		}
		rollout.ReturnTimeoutSeconds = ptr.To(int32(f.returnTimeout / time.Second))
	}
	if f.set.Changed(maxFailedNodesFlag) {
		if f.maxFailedNodes < 0 {
			return nil, fmt.Errorf("--%s=%d: must not be negative; 0 halts at the first node that does not come back", maxFailedNodesFlag, f.maxFailedNodes)
		}
		rollout.MaxFailedNodes = &f.maxFailedNodes
	}
	return rollout, nil
}

// validMaxConcurrent says what spec.rollout.maxConcurrent can be.
const validMaxConcurrent = "must be a number of nodes, at least 1, or a percentage of them from 1% to 100%"

// parseMaxConcurrent accepts what the server does.
func parseMaxConcurrent(text string) (*intstr.IntOrString, error) {
	number, isPercentage := strings.CutSuffix(text, "%")
	value, err := strconv.ParseInt(number, 10, 32)
	if err != nil || value < 1 || isPercentage && value > 100 {
		return nil, fmt.Errorf("--%s=%q: %s", maxConcurrentFlag, text, validMaxConcurrent)
	}
	if isPercentage {
		return ptr.To(intstr.FromString(fmt.Sprintf("%d%%", value))), nil
	}
	return ptr.To(intstr.FromInt32(int32(value))), nil
}

// parseCompletionPolicy reads --complete-nodes, in any case of letters.
func parseCompletionPolicy(text string) (coordinationv1alpha1.NodeCompletionPolicy, error) {
	for _, policy := range completionPolicies {
		if strings.EqualFold(policy, text) {
			return coordinationv1alpha1.NodeCompletionPolicy(policy), nil
		}
	}
	return "", fmt.Errorf("--%s=%q: must be one of %s", completeNodesFlag, text, strings.Join(completionPolicies, ", "))
}

// contradicts reports whether a maintenance with the stored rollout does not do what the flags ask
// for. Flags that are not given ask for nothing.
func (f *rolloutFlags) contradicts(wanted, stored *coordinationv1alpha1.NodeMaintenanceRollout) bool {
	if wanted == nil || stored == nil {
		return wanted != nil
	}
	merged := stored.DeepCopy()
	for name, set := range map[string]func(){
		maxConcurrentFlag:  func() { merged.MaxConcurrent = wanted.MaxConcurrent },
		completeNodesFlag:  func() { merged.CompleteNodes = wanted.CompleteNodes },
		returnTimeoutFlag:  func() { merged.ReturnTimeoutSeconds = wanted.ReturnTimeoutSeconds },
		maxFailedNodesFlag: func() { merged.MaxFailedNodes = wanted.MaxFailedNodes },
		pausedFlag:         func() { merged.Paused = wanted.Paused },
	} {
		if f.set.Changed(name) {
			set()
		}
	}
	return !apiequality.Semantic.DeepEqual(merged, stored)
}

// errNoRollouts is the error on a server that would drop spec.rollout, so that all nodes would be
// drained at once.
var errNoRollouts = failed("the server does not support spec.rollout: enable the feature gate NodeMaintenanceBudgets in kube-apiserver and kube-controller-manager, " +
	"or start smaller maintenances one after another")

// requireRollouts asks the server whether it keeps spec.rollout. If the user may not read the
// discovery document, the answer to the creation tells.
func requireRollouts(client kubernetes.Interface) error {
	resources, err := servedResources(client)
	if err != nil || resources == nil || serves(resources, budgetResource) {
		return err
	}
	return errNoRollouts
}

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
