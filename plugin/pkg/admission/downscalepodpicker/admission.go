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

// Package downscalepodpicker implements the admission plugin that keeps users from sending Secrets to
// downscale pod pickers that they may not read themselves.
//
// The headers of a picker can have values from Secrets, which kube-controller-manager reads with its
// own rights and sends to a host that the author of the ReplicaSet or Deployment chooses. So whoever
// sets or changes such a picker must be allowed to get these Secrets.
package downscalepodpicker

import (
	"context"
	"errors"
	"fmt"
	"io"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/apis/apps"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
)

// PluginName is the name of the plugin in the flags of kube-apiserver.
const PluginName = "DownscalePodPicker"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return NewPlugin(), nil })
}

// Plugin checks the pickers of ReplicaSets and Deployments.
type Plugin struct {
	*admission.Handler
	authorizer authorizer.UnconditionalAuthorizer
	client     kubernetes.Interface
}

var (
	_ admission.ValidationInterface          = &Plugin{}
	_ initializer.WantsAuthorizer            = &Plugin{}
	_ initializer.WantsExternalKubeClientSet = &Plugin{}
)

// NewPlugin returns a plugin that is not initialized yet.
func NewPlugin() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetAuthorizer sets the authorizer.
func (p *Plugin) SetAuthorizer(authorizer authorizer.Authorizer) { p.authorizer = authorizer }

// SetExternalKubeClientSet sets the client that reads Deployments.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// ValidateInitialization returns an error if the initialization is incomplete.
func (p *Plugin) ValidateInitialization() error {
	if p.authorizer == nil || p.client == nil {
		return fmt.Errorf("%s has no authorizer or no client", PluginName)
	}
	return nil
}

// Validate refuses a picker with values from Secrets that the user may not get. A picker that is not
// changed is admitted, and one that a ReplicaSet has from its Deployment.
//
// The feature gate does not matter: with it off, only objects have a picker that were stored with one,
// and these can be changed until it is on again.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	picker, found := pickerOf(a.GetObject())
	if !found || picker == nil {
		return nil
	}
	secrets := secretsOf(picker)
	if old, _ := pickerOf(a.GetOldObject()); len(secrets) == 0 || apiequality.Semantic.DeepEqual(old, picker) {
		return nil
	}
	var missing []string
	for _, name := range sets.List(secrets) {
		allowed, err := p.mayGet(ctx, a, name)
		if err != nil {
			return admission.NewForbidden(a, err)
		}
		if !allowed {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	inherited, err := p.isInherited(ctx, a, picker)
	if err != nil {
		return err
	}
	if inherited {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf(
		"spec.downscalePodPicker.http.httpHeaders takes values from the Secrets %q, which user %q may not get in namespace %q: whoever sends them somewhere must be allowed to read them",
		missing, a.GetUserInfo().GetName(), a.GetNamespace()))
}

// pickerOf returns the picker of a ReplicaSet or Deployment. It is not found for other objects.
func pickerOf(object any) (picker *api.DownscalePodPicker, found bool) {
	switch o := object.(type) {
	case *apps.ReplicaSet:
		return o.Spec.DownscalePodPicker, true
	case *apps.Deployment:
		return o.Spec.DownscalePodPicker, true
	}
	return nil, false
}

func secretsOf(picker *api.DownscalePodPicker) sets.Set[string] {
	secrets := sets.New[string]()
	if picker.HTTP == nil {
		return secrets
	}
	for _, header := range picker.HTTP.HTTPHeaders {
		if header.ValueFrom != nil && header.ValueFrom.SecretKeyRef != nil {
			secrets.Insert(header.ValueFrom.SecretKeyRef.Name)
		}
	}
	return secrets
}

func (p *Plugin) mayGet(ctx context.Context, a admission.Attributes, secret string) (bool, error) {
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "get", Namespace: a.GetNamespace(), APIVersion: "v1", Resource: "secrets", Name: secret, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot find out whether the user may get Secret %q: %w", secret, err)
	}
	return false, nil
}

// isInherited reports whether a ReplicaSet has exactly the picker of the Deployment that controls it.
// The Deployment controller, which copies it, may not read Secrets. Whoever else copies it sends them
// where they are sent anyway.
func (p *Plugin) isInherited(ctx context.Context, a admission.Attributes, picker *api.DownscalePodPicker) (bool, error) {
	rs, isReplicaSet := a.GetObject().(*apps.ReplicaSet)
	if !isReplicaSet {
		return false, nil
	}
	owner := metav1.GetControllerOfNoCopy(rs)
	if owner == nil || owner.Kind != "Deployment" || owner.APIVersion != "apps/v1" {
		return false, nil
	}
	deployment, err := p.client.AppsV1().Deployments(a.GetNamespace()).Get(ctx, owner.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("reading the Deployment of the ReplicaSet: %w", err))
	}
	if deployment.UID != owner.UID || deployment.Spec.DownscalePodPicker == nil {
		return false, nil
	}
	inherited := &api.DownscalePodPicker{}
	if err := corev1.Convert_v1_DownscalePodPicker_To_core_DownscalePodPicker(deployment.Spec.DownscalePodPicker, inherited, nil); err != nil {
		return false, apierrors.NewInternalError(errors.New("converting the picker of the Deployment"))
	}
	return apiequality.Semantic.DeepEqual(inherited, picker), nil
}
