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

package nodemaintenance

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/pkg/features"
)

const (
	// PluginName is the name of the plugin in the flags of kube-apiserver.
	PluginName = "NodeMaintenance"

	// syncTimeout is how long a request waits on a server whose cache of nodes has not synced yet.
	// It is the timeout of other plugins, and well below the timeout of requests.
	syncTimeout = 10 * time.Second
)

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return NewPlugin(), nil })
}

// Plugin completes the drain plan of each NodeMaintenance, and checks each creation, update and
// deletion against the permissions on its nodes. It prevents clients other than the controller from
// writing the maintenance status of nodes.
type Plugin struct {
	*admission.Handler
	enabled        bool
	limited        bool
	inspected      bool
	authorizer     authorizer.UnconditionalAuthorizer
	nodeIdentifier nodeidentifier.NodeIdentifier
	nodes          corev1listers.NodeLister
	nodesSynced    cache.InformerSynced
	syncTimeout    time.Duration
}

var (
	_ admission.MutationInterface                  = &Plugin{}
	_ admission.ValidationInterface                = &Plugin{}
	_ initializer.WantsFeatures                    = &Plugin{}
	_ initializer.WantsAuthorizer                  = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
)

// NewPlugin returns a plugin that must still be initialized.
func NewPlugin() *Plugin {
	return &Plugin{
		Handler:        admission.NewHandler(admission.Create, admission.Update, admission.Delete),
		nodeIdentifier: nodeidentifier.NewDefaultNodeIdentifier(),
		syncTimeout:    syncTimeout,
	}
}

// InspectFeatureGates enables the plugin together with the API. limited is whether there are
// NodeMaintenanceBudgets.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.enabled = gates.Enabled(features.DeclarativeNodeMaintenance)
	p.limited = gates.Enabled(features.NodeMaintenanceBudgets)
	p.inspected = true
}

// SetAuthorizer sets the authorizer.
func (p *Plugin) SetAuthorizer(authorizer authorizer.Authorizer) { p.authorizer = authorizer }

// SetExternalKubeInformerFactory sets the source of the nodes. The gates are inspected before, so
// that a server with the gate off starts no informer for this plugin.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if !p.enabled {
		return
	}
	nodes := factory.Core().V1().Nodes()
	p.nodes, p.nodesSynced = nodes.Lister(), nodes.Informer().HasSynced
}

// ValidateInitialization returns an error if the plugin is not completely initialized.
func (p *Plugin) ValidateInitialization() error {
	switch {
	case !p.inspected:
		return fmt.Errorf("%s has not inspected the feature gates", PluginName)
	case p.authorizer == nil:
		return fmt.Errorf("%s has no authorizer", PluginName)
	case p.enabled && p.nodes == nil:
		return fmt.Errorf("%s has no informer of nodes", PluginName)
	}
	return nil
}

// Admit completes the drain plan of a maintenance, keeps the stage of one that has ended, and completes the
// status of a node. Invalid objects are
// left to Validate and to the validation of the registry.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if isNodeWrite(a) {
		return p.keepMaintenanceStatus(ctx, a)
	}
	if !p.isMaintenance(a) || a.GetSubresource() != "" {
		return nil
	}
	maintenance, isMaintenance := a.GetObject().(*coordination.NodeMaintenance)
	old, isOld := a.GetOldObject().(*coordination.NodeMaintenance)
	switch {
	case a.GetOperation() == admission.Create && isMaintenance:
		return completePlan(a, maintenance)
	case a.GetOperation() == admission.Update && isMaintenance && isOld:
		keepComplete(ctx, maintenance, old)
		return restorePlan(maintenance, old)
	}
	return nil
}

// Validate returns an error if a change is not allowed. For the deletion of a collection it is
// called once for each object, with the object but without its name.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if isNodeWrite(a) {
		if err := p.validateDone(ctx, a); err != nil {
			return err
		}
		return p.validateMaintenanceStatus(ctx, a)
	}
	if !p.isMaintenance(a) {
		return nil
	}
	maintenance, isMaintenance := a.GetObject().(*coordination.NodeMaintenance)
	old, isOld := a.GetOldObject().(*coordination.NodeMaintenance)
	if nodeName, isNode := p.nodeIdentifier.NodeIdentity(a.GetUserInfo()); isNode {
		if err := validateKubelet(a, nodeName); err != nil {
			return err
		}
		return p.validateEscalation(ctx, a, maintenance, old)
	}
	if a.GetSubresource() != "" {
		return nil
	}
	switch {
	case a.GetOperation() == admission.Create && isMaintenance:
		if err := p.validateName(a, maintenance); err != nil {
			return err
		}
		return p.validateWrite(ctx, a, maintenance, nil)
	case a.GetOperation() == admission.Update && isMaintenance && isOld:
		if isHousekeeping(maintenance, old) {
			return nil
		}
		return p.validateWrite(ctx, a, maintenance, old)
	case a.GetOperation() == admission.Delete && isOld:
		return p.validateWrite(ctx, a, nil, old)
	}
	return unexpectedObjects(a)
}

func (p *Plugin) isMaintenance(a admission.Attributes) bool {
	return p.enabled && a.GetResource().GroupResource() == coordination.Resource("nodemaintenances")
}

// validateWrite checks the permissions of a user on the nodes of a maintenance before and after a
// change. maintenance is nil for a deletion, and old for a creation.
func (p *Plugin) validateWrite(ctx context.Context, a admission.Attributes, maintenance, old *coordination.NodeMaintenance) error {
	if err := p.waitForNodes(ctx); err != nil {
		return err
	}
	selected, err := p.selectionOf(maintenance)
	if err != nil {
		return err
	}
	oldSelected, err := p.selectionOf(old)
	if err != nil {
		return err
	}
	if err := p.authorize(ctx, a, maintenance, old, selected, oldSelected); err != nil {
		return err
	}
	if err := p.validateEscalation(ctx, a, maintenance, old); err != nil {
		return err
	}
	if old == nil {
		warnOfPriorities(ctx, maintenance.Spec.DrainPlan)
	}
	if !needsWarning(maintenance, old) || selected.unchecked != "" {
		return nil
	}
	return p.warn(ctx, &selected)
}

// waitForNodes returns an error if the cache of nodes does not sync in time.
func (p *Plugin) waitForNodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.syncTimeout)
	defer cancel()
	if cache.WaitForCacheSync(ctx.Done(), p.nodesSynced) {
		return nil
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("admission plugin %s cannot check the permissions on the selected nodes yet, because its node cache has not synced: try again", PluginName))
}

func unexpectedObjects(a admission.Attributes) error {
	return apierrors.NewBadRequest(fmt.Sprintf("unexpected objects in %s of a NodeMaintenance: new %T, old %T", a.GetOperation(), a.GetObject(), a.GetOldObject()))
}

// forbidden is admission.NewForbidden with the name of the object, which the attributes lack in the
// deletion of a collection.
func forbidden(a admission.Attributes, maintenance *coordination.NodeMaintenance, reason error) error {
	return apierrors.NewForbidden(a.GetResource().GroupResource(), maintenance.Name, reason)
}
