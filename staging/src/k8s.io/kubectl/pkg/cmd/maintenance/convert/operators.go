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

package convert

import (
	"fmt"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubectl/pkg/cmd/maintenance/nodeselection"
)

// Kinds of operators that drain nodes. Their types here have the fields that their CRDs have.
var (
	medik8sKind  = schema.GroupVersionKind{Group: "nodemaintenance.medik8s.io", Version: "v1beta1", Kind: "NodeMaintenance"}
	nvidiaKind   = schema.GroupVersionKind{Group: "maintenance.nvidia.com", Version: "v1alpha1", Kind: "NodeMaintenance"}
	nvidiaConfig = schema.GroupVersionKind{Group: "maintenance.nvidia.com", Version: "v1alpha1", Kind: "MaintenanceOperatorConfig"}
)

// Texts that explain several fields and flags.
const (
	oldStatus = "is the progress of the old object: the controller writes that of the new one"

	// With the full name of the resource: the short one may be that of another project.
	noTimeLimit = "a maintenance has no time limit. Limit the wait instead: kubectl wait nodemaintenances.coordination.k8s.io/%s --for=condition=Drained --timeout=%s"

	noAttempts = "ends one attempt of the operator, which then begins another; a maintenance has one attempt without a limit. " +
		"Limit the wait instead: kubectl wait nodemaintenances.coordination.k8s.io/%s --for=condition=Drained --timeout=%s"

	podSelectorLost = "a maintenance evicts all pods, so its stage is Cordon and evicts none. Request the eviction of these pods one by one, " +
		"or set the stage Drain, in which all pods leave, these first. With the gate NodeMaintenanceBudgets, spec.podPolicies with the action Skip leaves the others alone"

	bareLost = "without it, nodes with pods that no controller manages are not drained; a maintenance evicts these pods, too. " +
		"\"kubectl maintenance plan\" marks them"

	emptyDirLost = "without it, nodes with pods that use emptyDir volumes are not drained; a maintenance evicts these pods, too, and their data is deleted. " +
		"\"kubectl maintenance plan\" marks them"
)

// medik8sMaintenance is a NodeMaintenance of the node-maintenance-operator.
type medik8sMaintenance struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec            medik8sSpec       `json:"spec,omitempty"`
	Status          map[string]any    `json:"status,omitempty"`
}

type medik8sSpec struct {
	NodeName string `json:"nodeName"`
	Reason   string `json:"reason,omitempty"`
	// EvictionTimeout exists in some versions only.
	EvictionTimeout string `json:"evictionTimeout,omitempty"`
}

// fromMedik8s converts an object that drains one node, as long as it exists.
func (c *converter) fromMedik8s(where source, object map[string]any) {
	var old medik8sMaintenance
	if !c.decode(where, object, &old) || c.isBeingDeleted(where, &old.Metadata) {
		return
	}
	nm := c.maintenanceOfNode(where, &old.Metadata, old.Spec.NodeName, coordinationv1alpha1.NodeMaintenanceStageDrain)
	if nm == nil {
		return
	}
	nm.Spec.Reason = old.Spec.Reason
	if old.Spec.EvictionTimeout != "" {
		c.add(isLost, where, withValue("spec.evictionTimeout", old.Spec.EvictionTimeout), noAttempts, nameOrPrefix(nm), old.Spec.EvictionTimeout)
	}
	if len(old.Status) > 0 {
		c.add(isIgnored, where, "status", oldStatus)
	}
	c.writeMaintenance(where, nm)
}

// maintenanceOfNode returns what an object of another project becomes that is about one node, or nil
// if it names none.
func (c *converter) maintenanceOfNode(where source, metadata *metav1.ObjectMeta, node string, stage coordinationv1alpha1.NodeMaintenanceStage) *coordinationv1alpha1.NodeMaintenance {
	if node == "" {
		c.fail(where, "spec.nodeName", "is missing: name the node")
		return nil
	}
	nm := &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: c.metadataOf(where, metadata),
		Spec:       coordinationv1alpha1.NodeMaintenanceSpec{NodeSelector: nodeselection.ByName([]string{node}), Stage: stage},
	}
	c.dropNamespace(where, nm)
	c.reportStaying(where, "pods of DaemonSets, static pods", nm)
	return nm
}

// reportStaying names the pods that stay when the old object or command drains a node.
func (c *converter) reportStaying(where source, pods string, nm *coordinationv1alpha1.NodeMaintenance) {
	if nm.Spec.Stage == coordinationv1alpha1.NodeMaintenanceStageDrain {
		c.add(isChanged, where, pods, "do not stay: a maintenance lets them leave after all others. Without the gates for that, they stay, and do not count")
	}
}

// dropNamespace removes the namespace: our maintenances have none.
func (c *converter) dropNamespace(where source, nm *coordinationv1alpha1.NodeMaintenance) {
	if nm.Namespace != "" {
		c.add(isLost, where, withValue("metadata.namespace", nm.Namespace), "a NodeMaintenance has no namespace, so the permission to create one is for all nodes: grant it in a ClusterRole")
		nm.Namespace = ""
	}
}

func nameOrPrefix(nm *coordinationv1alpha1.NodeMaintenance) string {
	if nm.Name == "" {
		return nm.GenerateName + "*"
	}
	return nm.Name
}

// nvidiaMaintenance is a NodeMaintenance of NVIDIA's maintenance-operator.
type nvidiaMaintenance struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec            nvidiaSpec        `json:"spec,omitempty"`
	Status          map[string]any    `json:"status,omitempty"`
}

type nvidiaSpec struct {
	RequestorID          string   `json:"requestorID"`
	AdditionalRequestors []string `json:"additionalRequestors,omitempty"`
	NodeName             string   `json:"nodeName"`
	// Cordon is true by default.
	Cordon               *bool       `json:"cordon,omitempty"`
	WaitForPodCompletion *nvidiaWait `json:"waitForPodCompletion,omitempty"`
	// DrainSpec is unset if the node is not drained.
	DrainSpec *nvidiaDrain `json:"drainSpec,omitempty"`
}

type nvidiaWait struct {
	PodSelector    string `json:"podSelector,omitempty"`
	TimeoutSeconds int32  `json:"timeoutSeconds,omitempty"`
}

type nvidiaDrain struct {
	Force       bool   `json:"force,omitempty"`
	PodSelector string `json:"podSelector,omitempty"`
	// TimeoutSeconds is 300 by default; 0 is no limit.
	TimeoutSeconds     *int32         `json:"timeoutSeconds,omitempty"`
	DeleteEmptyDir     bool           `json:"deleteEmptyDir,omitempty"`
	PodEvictionFilters []nvidiaFilter `json:"podEvictionFilters,omitempty"`
}

type nvidiaFilter struct {
	ByResourceNameRegex *string `json:"byResourceNameRegex,omitempty"`
}

// nvidiaDrainTimeout is the default of spec.drainSpec.timeoutSeconds.
const nvidiaDrainTimeout = 300

func (c *converter) fromNVIDIA(where source, object map[string]any) {
	var old nvidiaMaintenance
	if !c.decode(where, object, &old) || c.isBeingDeleted(where, &old.Metadata) {
		return
	}
	nm := c.maintenanceOfNode(where, &old.Metadata, old.Spec.NodeName, nvidiaStage(&old.Spec))
	if nm == nil {
		return
	}
	c.convertRequestors(where, &old.Spec, nm)
	if old.Spec.Cordon != nil && !*old.Spec.Cordon && nm.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageIdle {
		c.add(isLost, where, "spec.cordon=false", "the stages Cordon and Drain cordon the node: use the stage Idle until it may be cordoned")
	}
	if wait := old.Spec.WaitForPodCompletion; wait != nil {
		c.add(isLost, where, withValue("spec.waitForPodCompletion", describeWait(wait)),
			"the stage is Cordon, so that these pods are not evicted. Move it on when they have ended: kubectl maintenance start %s. "+
				"Or, with the gate NodeMaintenanceBudgets, give it spec.podPolicies with the action WaitCompleted", nameOrPrefix(nm))
	}
	if !c.convertNVIDIADrain(where, old.Spec.DrainSpec, nm) {
		return
	}
	if len(old.Status) > 0 {
		c.add(isIgnored, where, "status", oldStatus)
	}
	c.writeMaintenance(where, nm)
}

// nvidiaStage is how far a maintenance goes without evicting a pod that would have stayed.
func nvidiaStage(spec *nvidiaSpec) coordinationv1alpha1.NodeMaintenanceStage {
	drains := spec.DrainSpec != nil && spec.DrainSpec.PodSelector == "" && len(spec.DrainSpec.PodEvictionFilters) == 0
	cordons := spec.Cordon == nil || *spec.Cordon
	switch {
	case drains && spec.WaitForPodCompletion == nil:
		return coordinationv1alpha1.NodeMaintenanceStageDrain
	case cordons:
		return coordinationv1alpha1.NodeMaintenanceStageCordon
	}
	return coordinationv1alpha1.NodeMaintenanceStageIdle
}

func describeWait(wait *nvidiaWait) string {
	text := "pods " + wait.PodSelector
	if wait.PodSelector == "" {
		text = "all pods"
	}
	if wait.TimeoutSeconds > 0 {
		text += fmt.Sprintf(", %ds", wait.TimeoutSeconds)
	}
	return text
}

// convertRequestors writes who requests the maintenance into its reason.
func (c *converter) convertRequestors(where source, spec *nvidiaSpec, nm *coordinationv1alpha1.NodeMaintenance) {
	requestors := append([]string{}, spec.AdditionalRequestors...)
	if spec.RequestorID != "" {
		requestors = append([]string{spec.RequestorID}, requestors...)
		c.add(isChanged, where, withValue("spec.requestorID", spec.RequestorID), "is in spec.reason, for people: create one maintenance for each requestor")
	}
	for i, requestor := range spec.AdditionalRequestors {
		c.add(isLost, where, withValue(fmt.Sprintf("spec.additionalRequestors[%d]", i), requestor),
			"a maintenance has one owner, and ends when that one ends it: create another maintenance of the node for this requestor. The node is released when both have ended")
	}
	if len(requestors) > 0 {
		nm.Spec.Reason = "requested by " + strings.Join(requestors, ", ")
	}
}

// convertNVIDIADrain returns false after an error.
func (c *converter) convertNVIDIADrain(where source, drain *nvidiaDrain, nm *coordinationv1alpha1.NodeMaintenance) bool {
	if drain == nil {
		return true
	}
	if drain.Force {
		c.add(isIgnored, where, "spec.drainSpec.force=true", "pods that no controller manages leave in any case")
	} else {
		c.add(isLost, where, "spec.drainSpec.force=false", bareLost)
	}
	if drain.DeleteEmptyDir {
		c.add(isIgnored, where, "spec.drainSpec.deleteEmptyDir=true", "pods that use emptyDir volumes leave in any case")
	} else {
		c.add(isLost, where, "spec.drainSpec.deleteEmptyDir=false", emptyDirLost)
	}
	timeout := int32(nvidiaDrainTimeout)
	if drain.TimeoutSeconds != nil {
		timeout = *drain.TimeoutSeconds
	}
	if timeout != 0 {
		c.add(isLost, where, withValue("spec.drainSpec.timeoutSeconds", timeout), noAttempts, nameOrPrefix(nm), time.Duration(timeout)*time.Second)
	}
	for i, filter := range drain.PodEvictionFilters {
		expression := ""
		if filter.ByResourceNameRegex != nil {
			expression = *filter.ByResourceNameRegex
		}
		c.add(isLost, where, withValue(fmt.Sprintf("spec.drainSpec.podEvictionFilters[%d].byResourceNameRegex", i), expression),
			"pods to evict cannot be selected by their resources, and a maintenance evicts all pods, so its stage is not Drain. Request the eviction of these pods one by one, or set the stage Drain, "+
				"with spec.podPolicies for the pods that stay if the gate NodeMaintenanceBudgets is on")
	}
	if drain.PodSelector == "" {
		return true
	}
	c.add(isLost, where, withValue("spec.drainSpec.podSelector", drain.PodSelector), podSelectorLost)
	plan, valid := c.podsFirst(where, "spec.drainSpec.podSelector", drain.PodSelector)
	nm.Spec.DrainPlan = plan
	return valid
}

// nvidiaOperatorConfig is the configuration of NVIDIA's maintenance-operator.
type nvidiaOperatorConfig struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec            struct {
		MaxParallelOperations         *intstr.IntOrString `json:"maxParallelOperations,omitempty"`
		MaxUnavailable                *intstr.IntOrString `json:"maxUnavailable,omitempty"`
		LogLevel                      string              `json:"logLevel,omitempty"`
		MaxNodeMaintenanceTimeSeconds *uint32             `json:"maxNodeMaintenanceTimeSeconds,omitempty"`
	} `json:"spec,omitempty"`
}

// fromNVIDIAConfig writes nothing: a budget would be about nodes that the configuration does not name.
func (c *converter) fromNVIDIAConfig(where source, object map[string]any) {
	var config nvidiaOperatorConfig
	if !c.decode(where, object, &config) {
		return
	}
	const limit = "with the gate NodeMaintenanceBudgets, create a NodeMaintenanceBudget for these nodes with spec.maxUnavailable=%s. Without it, all maintenances in the stage Drain are drained at the same time"
	if value := config.Spec.MaxParallelOperations; value != nil {
		c.add(isLost, where, withValue("spec.maxParallelOperations", value.String()), limit, value)
	}
	if value := config.Spec.MaxUnavailable; value != nil {
		c.add(isLost, where, withValue("spec.maxUnavailable", value.String()), limit, value)
	}
	if value := config.Spec.MaxNodeMaintenanceTimeSeconds; value != nil {
		c.add(isLost, where, withValue("spec.maxNodeMaintenanceTimeSeconds", *value), "a maintenance does not end by itself: use \"kubectl maintenance complete\"")
	}
	if config.Spec.LogLevel != "" {
		c.add(isLost, where, withValue("spec.logLevel", config.Spec.LogLevel), "use the flag --v of kube-controller-manager")
	}
	c.add(isLost, where, "spec", "the object configures the operator, so nothing is written for it")
}
