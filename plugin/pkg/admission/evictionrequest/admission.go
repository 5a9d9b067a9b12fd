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

// Package evictionrequest is the admission plugin that says who may ask for the
// eviction of a pod, and who may call that off: those who may delete the pod. Rights
// on EvictionRequests alone move no pod.
package evictionrequest

import (
	"context"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/features"
)

// PluginName is the name of the plugin in the flags of kube-apiserver.
const PluginName = "EvictionRequest"

// Register makes the plugin known.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return NewPlugin(), nil })
}

// Plugin checks each creation, update and deletion of an EvictionRequest against the
// rights on its target pod. Updates of the status are not its business: they need a
// right of their own, evictionrequests/status.
//
// It keeps nothing between two calls. Where the pod matters it reads it from the API
// server, because a cache can still lack a pod or have one that is gone.
type Plugin struct {
	*admission.Handler
	enabled    bool
	inspected  bool
	authorizer authorizer.Authorizer
	client     kubernetes.Interface
}

var (
	_ admission.ValidationInterface          = &Plugin{}
	_ initializer.WantsFeatures              = &Plugin{}
	_ initializer.WantsAuthorizer            = &Plugin{}
	_ initializer.WantsExternalKubeClientSet = &Plugin{}
)

// NewPlugin returns a plugin that still has to be initialized.
func NewPlugin() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
}

// InspectFeatureGates switches the plugin on together with the API.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.enabled = gates.Enabled(features.EvictionRequestAPI)
	p.inspected = true
}

// SetAuthorizer sets who knows the rights of users.
func (p *Plugin) SetAuthorizer(authorizer authorizer.Authorizer) { p.authorizer = authorizer }

// SetExternalKubeClientSet sets the client that reads pods.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// ValidateInitialization returns an error if something is still missing.
func (p *Plugin) ValidateInitialization() error {
	switch {
	case !p.inspected:
		return fmt.Errorf("%s has not inspected the feature gates", PluginName)
	case p.enabled && p.authorizer == nil:
		return fmt.Errorf("%s has no authorizer", PluginName)
	case p.enabled && p.client == nil:
		return fmt.Errorf("%s has no client", PluginName)
	}
	return nil
}

// Validate lets a change through, or returns why not. The deletion of a collection
// comes here once for each object, with the object but without its name.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !p.enabled || a.GetResource().GroupResource() != coordination.Resource("evictionrequests") || a.GetSubresource() != "" {
		return nil
	}
	request, isRequest := a.GetObject().(*coordination.EvictionRequest)
	old, isOld := a.GetOldObject().(*coordination.EvictionRequest)
	switch {
	case a.GetOperation() == admission.Create && isRequest:
		return p.authorize(ctx, a, request)
	case a.GetOperation() == admission.Update && isRequest && isOld:
		return p.validateUpdate(ctx, a, request, old)
	case a.GetOperation() == admission.Delete && isOld:
		return p.validateDelete(ctx, a, old)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s of an EvictionRequest with %T as the new and %T as the old object", a.GetOperation(), a.GetObject(), a.GetOldObject()))
}

func (p *Plugin) validateUpdate(ctx context.Context, a admission.Attributes, request, old *coordination.EvictionRequest) error {
	if isHousekeeping(request, old) {
		return nil
	}
	err := p.authorize(ctx, a, old)
	if err == nil {
		// The target is immutable, but that is not for this plugin to rely on.
		err = p.authorize(ctx, a, request)
	}
	if err == nil || !changesLabelsOnly(request, old) {
		return err
	}
	// The controller keeps the labels like those of the pod, and may not delete pods.
	pod, readErr := p.livePod(ctx, a, old)
	if readErr != nil {
		return readErr
	}
	if pod != nil && followsLabels(request.Labels, old.Labels, pod.Labels) {
		return nil
	}
	return err
}

func (p *Plugin) validateDelete(ctx context.Context, a admission.Attributes, old *coordination.EvictionRequest) error {
	if isFinished(old) {
		return nil
	}
	err := p.authorize(ctx, a, old)
	forbids := old.Status.EvictionRequestCancellationPolicy == coordination.EvictionRequestCancellationPolicyForbid
	if err == nil && !forbids {
		return nil
	}
	pod, readErr := p.livePod(ctx, a, old)
	switch {
	case readErr != nil:
		return readErr
	case pod == nil:
		return nil // Nothing is left to be decided about: the controller just has not seen it yet.
	case err != nil:
		return err
	}
	return forbidden(a, old, fmt.Errorf("the eviction of pod %q cannot be called off any more: status.evictionRequestCancellationPolicy is %s; "+
		"the request can be deleted when the pod is gone", pod.Name, coordination.EvictionRequestCancellationPolicyForbid))
}

// authorize returns an error unless the user may delete the target of the request.
func (p *Plugin) authorize(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest) error {
	user, pod := a.GetUserInfo(), targetOf(request)
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            user,
		Verb:            "delete",
		Namespace:       a.GetNamespace(),
		APIVersion:      "v1",
		Resource:        "pods",
		Name:            pod.Name,
		ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to delete pod %q in namespace %q, the target of the eviction request: %w", user.GetName(), pod.Name, a.GetNamespace(), err))
	}
	return forbidden(a, request, fmt.Errorf("user %q cannot delete pod %q in namespace %q: who requests the eviction of a pod, or calls it off, "+
		"needs the verb \"delete\" on that pod", user.GetName(), pod.Name, a.GetNamespace()))
}

// livePod returns the target of the request, or nil if that pod is gone.
func (p *Plugin) livePod(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest) (*v1.Pod, error) {
	target := targetOf(request)
	if target.Name == "" {
		return nil, nil // Nor can one ever come.
	}
	pod, err := p.client.CoreV1().Pods(a.GetNamespace()).Get(ctx, target.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading pod %q in namespace %q, the target of the eviction request: %w", target.Name, a.GetNamespace(), err))
	}
	if string(pod.UID) != target.UID {
		return nil, nil
	}
	return pod, nil
}

// forbidden is admission.NewForbidden, with the name of the object also where the
// attributes lack it: in the deletion of a collection.
func forbidden(a admission.Attributes, request *coordination.EvictionRequest, reason error) error {
	return apierrors.NewForbidden(a.GetResource().GroupResource(), request.Name, reason)
}
