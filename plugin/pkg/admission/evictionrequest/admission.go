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

// Package evictionrequest implements the admission plugin that authorizes the requests for and the
// cancellation of evictions: the user must be allowed to delete the pod. Permissions on
// EvictionRequests alone are not sufficient.
//
// It also authorizes changes of the fields of the status: an interceptor may change only its own
// fields, see k8s.io/api/coordination/v1alpha1.EvictionInterceptVerb.
//
// # Reserved names of requesters
//
// Requesters are equal: whoever may delete a pod may request its eviction, and withdraw the request of another
// one. So that a drain is not called off by the owner of a pod, nor kept out by a full list, names in k8s.io have
// ten places of their own (validation), and adding or removing them, or deleting an unfinished request that has
// one, needs the verb "request" on the virtual resource evictionrequesters, in all namespaces, because tenants may
// have all permissions in one (requesters.go). A pod that terminates protects nothing any more. The controller
// withdraws eviction.k8s.io with its verb "control".
package evictionrequest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/lifecycle"
	"k8s.io/kubernetes/pkg/features"
)

const (
	// PluginName is the name of the plugin in the flags of kube-apiserver.
	PluginName = "EvictionRequest"

	// syncTimeout is how long an API request waits for the pod cache of a server that has just
	// started. It is the same as for other plugins, and well below the timeout of API requests.
	syncTimeout = 10 * time.Second
)

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return NewPlugin(), nil })
}

// Plugin checks each creation, update and deletion of an EvictionRequest against the permissions on
// its target pod, and each update of the status against the permissions on the changed fields.
//
// It has no state between two calls. If the pod matters, it reads it from the API server, because a
// cache may lack a new pod or have a deleted one. Only for a creation, a pod in the cache is
// sufficient, so that creating a request costs no read.
type Plugin struct {
	*admission.Handler
	enabled     bool
	lifecycle   bool
	inspected   bool
	authorizer  authorizer.UnconditionalAuthorizer
	client      kubernetes.Interface
	pods        corelisters.PodLister
	podsSynced  cache.InformerSynced
	syncTimeout time.Duration
}

var (
	_ admission.ValidationInterface                = &Plugin{}
	_ initializer.WantsFeatures                    = &Plugin{}
	_ initializer.WantsAuthorizer                  = &Plugin{}
	_ initializer.WantsExternalKubeClientSet       = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
)

// NewPlugin returns a plugin that is not initialized yet.
func NewPlugin() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), syncTimeout: syncTimeout}
}

// InspectFeatureGates enables the plugin together with the API.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.enabled = gates.Enabled(features.EvictionRequestAPI)
	p.lifecycle = gates.Enabled(features.LifecycleEvictions)
	p.inspected = true
}

// SetAuthorizer sets the authorizer.
func (p *Plugin) SetAuthorizer(authorizer authorizer.Authorizer) { p.authorizer = authorizer }

// SetExternalKubeClientSet sets the client that reads pods.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// SetExternalKubeInformerFactory sets the pod lister. The informer, which other plugins use as
// well, is only requested if the API is enabled.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if !p.enabled {
		return
	}
	pods := factory.Core().V1().Pods()
	p.pods, p.podsSynced = pods.Lister(), pods.Informer().HasSynced
}

// ValidateInitialization returns an error if the initialization is incomplete.
func (p *Plugin) ValidateInitialization() error {
	switch {
	case !p.inspected:
		return fmt.Errorf("%s has not inspected the feature gates", PluginName)
	case p.enabled && p.authorizer == nil:
		return fmt.Errorf("%s has no authorizer", PluginName)
	case p.enabled && p.client == nil:
		return fmt.Errorf("%s has no client", PluginName)
	case p.enabled && p.pods == nil:
		return fmt.Errorf("%s has no informer of pods", PluginName)
	}
	return nil
}

// Validate returns an error if the change is not allowed. For the deletion of a collection, it is
// called for each object, with the object but without its name.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if p.lifecycle && a.GetResource().Group == lifecycle.GroupName {
		return p.validateLifecycle(ctx, a)
	}
	if !p.enabled || a.GetResource().GroupResource() != coordination.Resource("evictionrequests") {
		return nil
	}
	request, isRequest := a.GetObject().(*coordination.EvictionRequest)
	old, isOld := a.GetOldObject().(*coordination.EvictionRequest)
	switch {
	case a.GetSubresource() == "status" && a.GetOperation() == admission.Update && isRequest && isOld:
		return p.validateStatusUpdate(ctx, a, request, old)
	case a.GetSubresource() != "":
		// There is no other subresource. It is rejected, so that no write of the status in an
		// unexpected form is unchecked.
	case a.GetOperation() == admission.Create && isRequest:
		if err := validateAnnotations(a, request, nil); err != nil {
			return err
		}
		return p.validateCreate(ctx, a, request)
	case a.GetOperation() == admission.Update && isRequest && isOld:
		if err := validateAnnotations(a, request, old); err != nil {
			return err
		}
		return p.validateUpdate(ctx, a, request, old)
	case a.GetOperation() == admission.Delete && isOld:
		return p.validateDelete(ctx, a, old)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("unexpected objects in %s of an EvictionRequest: new %T, old %T", a.GetOperation(), a.GetObject(), a.GetOldObject()))
}

// validateCreate checks the permission on the pod with that name, and that the pod has the UID of
// the target: other clients find the request by the UID, which is only claimed by the user.
// Otherwise, permission on one pod would be sufficient to create the request of any other pod.
//
// A pod that is gone needs no such request: the controller cancels it. The request cannot have
// finalizers, because it is unknown whether the user had permission on that pod.
func (p *Plugin) validateCreate(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest) error {
	if err := validateEvictionsRequester(a, request, nil); err != nil {
		return err
	}
	if err := p.authorize(ctx, a, request); err != nil {
		return err
	}
	if err := p.validateReservedRequesters(ctx, a, request, nil); err != nil {
		return err
	}
	target := targetOf(request)
	if target.Name == "" {
		return nil
	}
	if pod, err := p.pods.Pods(a.GetNamespace()).Get(target.Name); err == nil && string(pod.UID) == target.UID {
		return nil
	}
	// The cache may be stale, or still be empty.
	pod, err := p.client.CoreV1().Pods(a.GetNamespace()).Get(ctx, target.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && len(request.Finalizers) > 0:
		return forbiddenFinalizer(a, request)
	case apierrors.IsNotFound(err):
		return p.validateUnusedUID(ctx, a, request)
	case err != nil:
		return readError(a, target.Name, err)
	case string(pod.UID) == target.UID:
		return nil
	}
	return forbidden(a, request, fmt.Errorf("pod %q in namespace %q has the UID %q, but spec.target.pod.uid is %q: "+
		"read the pod again, and set metadata.name and spec.target.pod.uid to its UID", target.Name, a.GetNamespace(), pod.UID, target.UID))
}

// validateUnusedUID returns an error if another pod of the namespace has the UID of a target that
// is gone. If the cache lacks that pod, the controller detects it.
func (p *Plugin) validateUnusedUID(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest) error {
	if err := p.waitForPods(ctx); err != nil {
		return err
	}
	target := targetOf(request)
	pods, err := p.pods.Pods(a.GetNamespace()).List(labels.Everything())
	if err != nil {
		return readError(a, target.Name, err)
	}
	if !slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return string(pod.UID) == target.UID }) {
		return nil
	}
	return forbidden(a, request, fmt.Errorf("pod %q does not exist in namespace %q, and the UID %q belongs to another pod: "+
		"set spec.target.pod to the name and UID of the same pod", target.Name, a.GetNamespace(), target.UID))
}

// waitForPods returns an error if the cache may lack pods that are older than the server.
func (p *Plugin) waitForPods(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.syncTimeout)
	defer cancel()
	if cache.WaitForCacheSync(ctx.Done(), p.podsSynced) {
		return nil
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("admission plugin %s cannot check the UID of the target yet, because its pod cache has not synced: try again", PluginName))
}

func (p *Plugin) validateUpdate(ctx context.Context, a admission.Attributes, request, old *coordination.EvictionRequest) error {
	if isHousekeeping(request, old) || p.mayWithdrawEvictions(ctx, a, request, old) {
		return nil
	}
	if err := validateEvictionsRequester(a, request, old); err != nil {
		return err
	}
	err := p.authorize(ctx, a, old)
	if err == nil {
		// The target is immutable, but this plugin must not rely on that.
		err = p.authorize(ctx, a, request)
	}
	if err == nil {
		err = validateCallAnnotations(a, request, old)
	}
	if err == nil {
		err = p.validateReservedRequesters(ctx, a, request, old)
	}
	if err == nil {
		return p.validateAddedFinalizers(ctx, a, request, old)
	}
	if !changesLabelsOnly(request, old) {
		return err
	}
	// The controller copies the labels of the pod, and is not allowed to delete pods.
	pod, readErr := p.livePod(ctx, a, old)
	if readErr != nil {
		return readErr
	}
	if pod != nil && matchesPodLabels(request.Labels, old.Labels, pod.Labels) {
		return nil
	}
	return err
}

// validateAddedFinalizers returns an error if a finalizer is added although the target does not
// exist. In that case, the UID is only claimed, unless the pod was evicted.
func (p *Plugin) validateAddedFinalizers(ctx context.Context, a admission.Attributes, request, old *coordination.EvictionRequest) error {
	if !addsFinalizer(request, old) || isEvicted(old) {
		return nil
	}
	pod, err := p.livePod(ctx, a, old)
	if err == nil && pod == nil {
		return forbiddenFinalizer(a, request)
	}
	return err
}

func (p *Plugin) validateDelete(ctx context.Context, a admission.Attributes, old *coordination.EvictionRequest) error {
	if isFinished(old) {
		return nil
	}
	err := p.authorize(ctx, a, old)
	var reserved error
	if err == nil {
		reserved = p.authorizeRequesters(ctx, a, old, reservedRequesters(old), "removed from")
	}
	forbids := old.Status.EvictionRequestCancellationPolicy == coordination.EvictionRequestCancellationPolicyForbid
	if err == nil && reserved == nil && !forbids {
		return nil
	}
	pod, readErr := p.livePod(ctx, a, old)
	switch {
	case readErr != nil:
		return readErr
	case pod == nil:
		return nil // The pod is gone, and the controller has not processed that yet.
	case err != nil:
		return err
	case forbids:
		return forbidden(a, old, fmt.Errorf("the eviction of pod %q can no longer be canceled, because status.evictionRequestCancellationPolicy is %s: "+
			"delete the request after the pod is gone", pod.Name, coordination.EvictionRequestCancellationPolicyForbid))
	case pod.DeletionTimestamp != nil:
		return nil // It leaves, whatever becomes of the request.
	}
	return reserved
}

// authorize returns an error unless the user may delete the target of the request.
func (p *Plugin) authorize(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest) error {
	user, pod := a.GetUserInfo(), targetOf(request)
	allowed, err := p.isAllowed(ctx, authorizer.AttributesRecord{
		User:       user,
		Verb:       "delete",
		Namespace:  a.GetNamespace(),
		APIVersion: "v1",
		Resource:   "pods",
		Name:       pod.Name,
	})
	if allowed {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to delete pod %q in namespace %q, the target of the eviction request: %w", user.GetName(), pod.Name, a.GetNamespace(), err))
	}
	return forbidden(a, request, fmt.Errorf("user %q cannot delete pod %q in namespace %q: requesting, changing or canceling the eviction of a pod "+
		"requires the verb \"delete\" on that pod", user.GetName(), pod.Name, a.GetNamespace()))
}

// isAllowed asks the authorizer. The error is why the authorizer could not decide.
func (p *Plugin) isAllowed(ctx context.Context, attributes authorizer.AttributesRecord) (bool, error) {
	attributes.ResourceRequest = true
	decision, _, err := p.authorizer.Authorize(ctx, attributes)
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	return false, err
}

// livePod returns the target of the request, or nil if that pod is gone.
func (p *Plugin) livePod(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest) (*v1.Pod, error) {
	target := targetOf(request)
	if target.Name == "" {
		return nil, nil // No pod can ever match.
	}
	pod, err := p.client.CoreV1().Pods(a.GetNamespace()).Get(ctx, target.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, readError(a, target.Name, err)
	}
	if string(pod.UID) != target.UID {
		return nil, nil
	}
	return pod, nil
}

func readError(a admission.Attributes, podName string, err error) error {
	return apierrors.NewInternalError(fmt.Errorf("reading pod %q in namespace %q, the target of the eviction request: %w", podName, a.GetNamespace(), err))
}

// forbiddenFinalizer returns the error for finalizers on a request whose target does not exist.
func forbiddenFinalizer(a admission.Attributes, request *coordination.EvictionRequest) error {
	target := targetOf(request)
	return forbidden(a, request, fmt.Errorf("pod %q with the UID %q does not exist in namespace %q: remove the finalizers, "+
		"because a request without its pod could block the name that another pod's request needs", target.Name, target.UID, a.GetNamespace()))
}

// forbidden is admission.NewForbidden, with the name of the object. The attributes lack it for the
// deletion of a collection.
func forbidden(a admission.Attributes, request *coordination.EvictionRequest, reason error) error {
	return apierrors.NewForbidden(a.GetResource().GroupResource(), request.Name, reason)
}
