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

package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/component-helpers/plaintext"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/drain"
	"k8s.io/kubectl/pkg/scheme"
	"k8s.io/kubectl/pkg/util/i18n"
	"k8s.io/kubectl/pkg/util/templates"
)

// Resources of coordination.k8s.io/v1alpha1. With a server that serves neither, the commands behave
// like upstream.
const (
	evictionRequests = "evictionrequests"
	nodeMaintenances = "nodemaintenances"
)

// startCommand takes nodes to drain, or the name of a maintenance to move to the stage Drain.
const startCommand = "kubectl maintenance start --wait "

// maxMaintenances is how many maintenances a message names.
const maxMaintenances = 5

var (
	cordonMaintenanceLong = "\n\n " + templates.LongDesc(i18n.T(`
		A node under maintenance is not changed, with a warning: its NodeMaintenance keeps it
		unschedulable, and makes it schedulable when it is completed.`))

	drainMaintenanceLong = "\n\n " + templates.LongDesc(i18n.T(`
		Where the server serves NodeMaintenances, kubectl maintenance lets the server drain nodes, and
		lets pods prepare for their eviction. 'drain' says so.

		Where the server serves EvictionRequests, 'drain' does not evict pods that have eviction
		interceptors. A node on which such pods are left does not count as drained: the command
		names them and fails. Use --evict-intercepted-pods to evict them too, without their
		interceptors. Where the server lets interceptors act before every eviction (its feature gate
		EvictionRequestForEvictions), this requires the verb "bypass" on evictionrequests. Without
		it, drain waits for the interceptors.

		Pods that have responders (lifecycle.k8s.io) and no interceptors are evicted when their
		responders are done, where the server lets these act before every eviction. 'drain' asks it
		by a dry run, and otherwise treats such pods like those with interceptors.

		A 'drain' that is interrupted or times out withdraws the evictions that still wait for
		interceptors, and says which pods leave all the same. This requires the verb "request" on
		evictionrequesters named eviction.k8s.io, as cluster administrators have it; 'uncordon'
		withdraws them as well. A second interrupt ends it at once.

		Pods whose only interceptors are the controllers of their workload (Deployment, ReplicaSet,
		StatefulSet, DaemonSet) are evicted as before. Only kubectl maintenance, or a server with
		that gate, lets a Deployment start a replacement before its pod is evicted.`))
)

// maintenanceOptions have what the commands need for NodeMaintenances.
type maintenanceOptions struct {
	// evictInterceptedPods is the flag of that name.
	evictInterceptedPods bool
	// draining is set while nodes are cordoned in order to be drained.
	draining bool

	// served returns the resources of coordination.k8s.io/v1alpha1 that the server
	// serves. The first call asks it.
	served func() sets.Set[string]
	// refused has why nodes could not be cordoned.
	refused map[string]error
	// list returns all NodeMaintenances. The first call asks the server.
	list func() ([]coordinationv1alpha1.NodeMaintenance, error)
}

func (m *maintenanceOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&m.evictInterceptedPods, "evict-intercepted-pods", m.evictInterceptedPods,
		"Evict pods that have their own eviction interceptors too, without their interceptors. Otherwise such pods stay, and the node does not count as drained. Has no effect if the server does not serve EvictionRequests.")
}

// cordonRefused records that a node could not be cordoned.
func (m *maintenanceOptions) cordonRefused(node string, err error) {
	if m.refused == nil {
		m.refused = map[string]error{}
	}
	m.refused[node] = err
}

// cordonError returns why the node must not be drained: new pods could follow those that leave.
func (m *maintenanceOptions) cordonError(node string) error {
	if err := m.refused[node]; err != nil {
		return fmt.Errorf("the node is not drained, because it cannot be cordoned: %w", err)
	}
	return nil
}

// complete sends no request: commands read only what they need.
func (m *maintenanceOptions) complete(f cmdutil.Factory, client kubernetes.Interface) {
	m.served = sync.OnceValue(func() sets.Set[string] { return discoverCoordination(f) })
	m.list = sync.OnceValues(func() ([]coordinationv1alpha1.NodeMaintenance, error) {
		list, err := client.CoordinationV1alpha1().NodeMaintenances().List(context.TODO(), metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	})
}

func (m *maintenanceOptions) serves(resource string) bool {
	// Without complete, nothing is discovered.
	return m.served != nil && m.served().Has(resource)
}

// discoverCoordination returns which resources of coordination.k8s.io/v1alpha1 are served. After an
// error, the commands continue as with a server without them.
func discoverCoordination(f cmdutil.Factory) sets.Set[string] {
	cached, err := f.ToDiscoveryClient()
	if err != nil || cached == nil {
		return nil
	}
	// The cache is kept for hours. If a feature gate was enabled since, pods would be evicted
	// without their interceptors. This is one small request.
	client := discovery.NewDiscoveryClient(cached.RESTClient())
	list, err := client.ServerResourcesForGroupVersion(coordinationv1alpha1.SchemeGroupVersion.String())
	if err != nil {
		return nil
	}
	served := sets.New[string]()
	for _, r := range list.APIResources {
		served.Insert(r.Name)
	}
	return served
}

// holders are the maintenances that keep a node cordoned.
type holders struct {
	maintenances []*coordinationv1alpha1.NodeMaintenance
	// err says why they are not known.
	err error
}

// holdersOf returns nil if the node is not under maintenance. It sends requests only if the status
// of the node suggests that it is.
func (m *maintenanceOptions) holdersOf(node *corev1.Node) *holders {
	// Other software may use a condition of this name, on any server.
	if !looksMaintained(node) || !m.serves(nodeMaintenances) {
		return nil
	}
	all, err := m.list()
	if err != nil {
		return &holders{err: err}
	}
	h := &holders{}
	for i := range all {
		if isHolder(&all[i], node) {
			h.maintenances = append(h.maintenances, &all[i])
		}
	}
	// The maintenances are authoritative. The status of the node is stale if the controller was
	// disabled, and would never change.
	if len(h.maintenances) == 0 {
		return nil
	}
	return h
}

func looksMaintained(node *corev1.Node) bool {
	return node.Status.MaintenanceStatus != nil || slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeMaintenanceInProgress && c.Status == corev1.ConditionTrue
	})
}

// isHolder reports whether the maintenance claims the node, or will. One that has given it back does neither.
func isHolder(m *coordinationv1alpha1.NodeMaintenance, node *corev1.Node) bool {
	if admission := maintenance.AdmissionOf(node, m.UID); admission != nil && admission.DoneTime != nil {
		return false
	}
	switch m.Spec.Stage {
	case coordinationv1alpha1.NodeMaintenanceStageCordon, coordinationv1alpha1.NodeMaintenanceStageDrain:
		return maintenance.SelectsNode(m.Spec.NodeSelector, node)
	}
	return false
}

// String names the maintenances, as the subject of a sentence.
func (h *holders) String() string {
	if h.err != nil {
		return "a NodeMaintenance"
	}
	names := h.names()
	more := max(0, len(names)-maxMaintenances)
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	s := "NodeMaintenance " + strings.Join(names[:len(names)-more], ", ")
	if more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// names returns the names of the maintenances, or a placeholder.
func (h *holders) names() []string {
	if h.err != nil {
		return []string{"NAME"}
	}
	var names []string
	for _, m := range h.maintenances {
		names = append(names, m.Name)
	}
	return names
}

// command returns the command line of a subcommand of kubectl maintenance.
func (h *holders) command(subcommand string) string {
	command := fmt.Sprintf("kubectl maintenance %s %s", subcommand, strings.Join(h.names(), " "))
	if h.err != nil {
		command += fmt.Sprintf(" (the name is not known: %v)", h.err)
	}
	return plaintext.Line(command)
}

// draining returns those that drain the node, or nil. If the maintenances are unknown, they may
// drain it.
func (h *holders) draining() *holders {
	if h.err != nil {
		return h
	}
	draining := slices.DeleteFunc(slices.Clone(h.maintenances), func(m *coordinationv1alpha1.NodeMaintenance) bool {
		return m.Spec.Stage != coordinationv1alpha1.NodeMaintenanceStageDrain
	})
	if len(draining) == 0 {
		return nil
	}
	return &holders{maintenances: draining}
}

// prepareDrain makes the drain skip intercepted pods, and withdraw what it has requested if it does
// not come to its end, and prints the command that replaces drain for the nodes without a maintenance.
// The caller calls the result when the drain has ended.
func (o *DrainCmdOptions) prepareDrain() (stop func()) {
	o.maintenance.draining = true
	stop = o.withdrawWhenEnded()
	if o.maintenance.serves(evictionRequests) {
		o.drainer.SkipInterceptedPods = !o.maintenance.evictInterceptedPods
		o.drainer.BypassInterceptors = o.maintenance.evictInterceptedPods
	}
	if !o.maintenance.serves(nodeMaintenances) {
		return stop
	}
	var free []string
	for _, info := range o.nodeInfos {
		if o.holdersOf(info) == nil {
			free = append(free, info.Name)
		}
	}
	if len(free) > 0 {
		o.WarningPrinter.Print("this server can drain nodes itself, and lets pods prepare for it: " + o.startCommandFor(free...))
	}
	return stop
}

// startCommandFor returns the command that replaces drain.
func (o *DrainCmdOptions) startCommandFor(nodes ...string) string {
	if len(o.drainer.Selector) > 0 && len(nodes) == len(o.nodeInfos) {
		return fmt.Sprintf("%s-l '%s'", startCommand, o.drainer.Selector)
	}
	return startCommand + strings.Join(nodes, " ")
}

// holdersOf returns nil for an object that is not a node: the caller reports it.
func (o *DrainCmdOptions) holdersOf(info *resource.Info) *holders {
	object, err := scheme.Scheme.ConvertToVersion(info.Object, info.ResourceMapping().GroupVersionKind.GroupVersion())
	if err != nil {
		return nil
	}
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil
	}
	return o.maintenance.holdersOf(node)
}

// leaveToMaintenance reports, with a warning, whether a maintenance controls if the node is
// schedulable: its controller would revert the change of another client.
//
// A node that is to be drained is cordoned all the same: the maintenance cordons it too, and
// evicted pods must not return to it.
func (o *DrainCmdOptions) leaveToMaintenance(info *resource.Info, desired bool) bool {
	h := o.holdersOf(info)
	if h == nil {
		return false
	}
	o.WarningPrinter.Print(o.maintenanceWarning(info.Name, desired, h))
	if o.maintenance.draining {
		return false
	}
	operation := "skipped"
	if node, ok := info.Object.(*corev1.Node); ok && node.Spec.Unschedulable && desired {
		operation = already(desired)
	}
	printObj, err := o.ToPrinter(operation)
	if err != nil {
		fmt.Fprintf(o.ErrOut, "error: %v\n", err)
		return true
	}
	printObj(info.Object, o.Out)
	return true
}

// maintenanceWarning names the maintenances of the node, and the command to use instead.
func (o *DrainCmdOptions) maintenanceWarning(node string, desired bool, h *holders) string {
	switch {
	case !desired:
		return fmt.Sprintf("not uncordoning node %q: %v keeps it cordoned until it is completed. Use: %s", node, h, h.command("complete"))
	case !o.maintenance.draining:
		return fmt.Sprintf("not cordoning node %q: %v keeps it cordoned until it is completed. To complete it, use: %s", node, h, h.command("complete"))
	}
	if draining := h.draining(); draining != nil {
		return fmt.Sprintf("node %q is under maintenance: %v drains it. To follow that, use: %s", node, draining, draining.command("watch"))
	}
	return fmt.Sprintf("node %q is under maintenance: %v keeps it cordoned, but does not drain it. To have it drained, use: %s%s",
		node, h, startCommand, h.maintenances[0].Name)
}

// interceptedPodsLeft returns an error if pods stay on the node because they have interceptors. The
// list is of the pods before the others were evicted.
func (o *DrainCmdOptions) interceptedPodsLeft(info *resource.Info, list *drain.PodDeleteList) error {
	if len(list.Intercepted()) == 0 {
		return nil
	}
	// The eviction of the others may have taken long, and a maintenance may have evicted these.
	if o.drainer.DryRunStrategy == cmdutil.DryRunNone {
		var errs []error
		// If there is a list, the errors are about pods that were created since.
		if list, errs = o.drainer.GetPodsForDeletion(info.Name); list == nil {
			return utilerrors.NewAggregate(errs)
		}
	}
	var left []string
	for _, pod := range list.Intercepted() {
		left = append(left, plaintext.Line(fmt.Sprintf("%s/%s (%s)", pod.Namespace, pod.Name, strings.Join(append(drain.Interceptors(&pod), drain.Responders(&pod)...), ", "))))
	}
	if len(left) == 0 {
		return nil
	}
	return errors.New("Pods with eviction interceptors are left: " + strings.Join(left, ", ") + ": " + o.wayOut(info))
}

// wayOut says how to evict pods that have interceptors.
func (o *DrainCmdOptions) wayOut(info *resource.Info) string {
	const force = "use --evict-intercepted-pods to evict them without their interceptors"
	start := o.startCommandFor(info.Name)
	if h := o.holdersOf(info); h != nil {
		if draining := h.draining(); draining != nil {
			return "the maintenance of the node evicts them, see " + draining.command("watch")
		}
		start = startCommand + h.maintenances[0].Name
	}
	if o.maintenance.serves(nodeMaintenances) {
		return fmt.Sprintf("use %q, or %s", start, force)
	}
	return "create EvictionRequests for them, or " + force
}
