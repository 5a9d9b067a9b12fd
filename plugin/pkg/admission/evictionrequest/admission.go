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

// Package evictionrequest is the admission plugin that decides who may request the
// eviction of a pod, and who may call that off: those who may delete the pod. Rights
// on EvictionRequests alone move no pod.
//
// It also decides who may change which field of the status: an interceptor only what
// is its own, see k8s.io/api/coordination/v1alpha1.EvictionInterceptVerb.
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
	"k8s.io/kubernetes/pkg/features"
)

const (
	// PluginName is the name of the plugin in the flags of kube-apiserver.
	PluginName = "EvictionRequest"

	// syncTimeout is how long a request waits for a server that has just begun to know
	// its pods. It is what other plugins wait, and well below the timeout of requests.
	syncTimeout = 10 * time.Second
)

// Register makes the plugin known.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return NewPlugin(), nil })
}

// Plugin checks each creation, update and deletion of an EvictionRequest against the
// rights on its target pod, and each update of the status against the rights on the
// fields that it changes.
//
// It keeps nothing between two calls. Where the pod matters it reads it from the API
// server, because a cache can still lack a pod or have one that is gone. Only for a
// creation the cache suffices if it has the pod, so that a request costs no read.
type Plugin struct {
	*admission.Handler
	enabled     bool
	inspected   bool
	authorizer  authorizer.Authorizer
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

// NewPlugin returns a plugin that still has to be initialized.
func NewPlugin() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), syncTimeout: syncTimeout}
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

// SetExternalKubeInformerFactory sets where pods are looked up. The informer, which
// other plugins have too, is started only where the API is on.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if !p.enabled {
		return
	}
	pods := factory.Core().V1().Pods()
	p.pods, p.podsSynced = pods.Lister(), pods.Informer().HasSynced
}

// ValidateInitialization returns an error if something is still missing.
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

// Validate lets a change through, or returns why not. The deletion of a collection
// comes here once for each object, with the object but without its name.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !p.enabled || a.GetResource().GroupResource() != coordination.Resource("evictionrequests") {
		return nil
	}
	request, isRequest := a.GetObject().(*coordination.EvictionRequest)
	old, isOld := a.GetOldObject().(*coordination.EvictionRequest)
	switch {
	case a.GetSubresource() == "status" && a.GetOperation() == admission.Update && isRequest && isOld:
		return p.validateStatusUpdate(ctx, a, request, old)
	case a.GetSubresource() != "":
		// There is no other one. Refused, not let through: a status that is written in a
		// way that nothing above foresees must not go unchecked.
	case a.GetOperation() == admission.Create && isRequest:
		return p.validateCreate(ctx, a, request)
	case a.GetOperation() == admission.Update && isRequest && isOld:
		return p.validateUpdate(ctx, a, request, old)
	case a.GetOperation() == admission.Delete && isOld:
		return p.validateDelete(ctx, a, old)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s of an EvictionRequest with %T as the new and %T as the old object", a.GetOperation(), a.GetObject(), a.GetOldObject()))
}

// validateCreate checks the rights on the pod of that name, and that it is this pod: the
// UID, by which all others find the request, is only claimed. With the right on one pod
// the request of every other one could be occupied otherwise.
//
// A pod that is gone has no such request any more: the controller cancels it. It cannot
// have finalizers, because nothing shows that the user had the right on that pod.
func (p *Plugin) validateCreate(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest) error {
	if err := p.authorize(ctx, a, request); err != nil {
		return err
	}
	target := targetOf(request)
	if target.Name == "" {
		return nil
	}
	if pod, err := p.pods.Pods(a.GetNamespace()).Get(target.Name); err == nil && string(pod.UID) == target.UID {
		return nil
	}
	// The cache may be behind, or still be empty.
	pod, err := p.client.CoreV1().Pods(a.GetNamespace()).Get(ctx, target.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && len(request.Finalizers) > 0:
		return unheld(a, request)
	case apierrors.IsNotFound(err):
		return p.refuseForeignUID(ctx, a, request)
	case err != nil:
		return unreadable(a, target.Name, err)
	case string(pod.UID) == target.UID:
		return nil
	}
	return forbidden(a, request, fmt.Errorf("pod %q in namespace %q has the UID %q, not %q as in spec.target.pod.uid: "+
		"read the pod again, and name the request by the UID of the pod that is to be evicted", target.Name, a.GetNamespace(), pod.UID, target.UID))
}

// refuseForeignUID returns an error if another pod of the namespace has the UID of a
// target that is gone. What the cache lacks the controller finds.
func (p *Plugin) refuseForeignUID(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest) error {
	if err := p.waitForPods(ctx); err != nil {
		return err
	}
	target := targetOf(request)
	pods, err := p.pods.Pods(a.GetNamespace()).List(labels.Everything())
	if err != nil {
		return unreadable(a, target.Name, err)
	}
	if !slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return string(pod.UID) == target.UID }) {
		return nil
	}
	return forbidden(a, request, fmt.Errorf("there is no pod %q in namespace %q, and the UID %q is that of another pod: "+
		"set spec.target.pod to the name and the UID of one pod", target.Name, a.GetNamespace(), target.UID))
}

// waitForPods returns an error if the cache may lack pods that are older than the server.
func (p *Plugin) waitForPods(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.syncTimeout)
	defer cancel()
	if cache.WaitForCacheSync(ctx.Done(), p.podsSynced) {
		return nil
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("admission plugin %s does not know the pods of the cluster yet, and so not whether another one has the UID of the target: try again", PluginName))
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
	if err == nil {
		return p.validateAddedFinalizers(ctx, a, request, old)
	}
	if !changesLabelsOnly(request, old) {
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

// validateAddedFinalizers returns an error if the request gets a finalizer although its
// target is not there. The UID was only claimed then, unless the pod was evicted.
func (p *Plugin) validateAddedFinalizers(ctx context.Context, a admission.Attributes, request, old *coordination.EvictionRequest) error {
	if !addsFinalizer(request, old) || isEvicted(old) {
		return nil
	}
	pod, err := p.livePod(ctx, a, old)
	if err == nil && pod == nil {
		return unheld(a, request)
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
	return forbidden(a, request, fmt.Errorf("user %q cannot delete pod %q in namespace %q: who requests the eviction of a pod, or calls it off, "+
		"needs the verb \"delete\" on that pod", user.GetName(), pod.Name, a.GetNamespace()))
}

// isAllowed asks the authorizer about a resource. An error says why it could not decide.
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
		return nil, nil // Nor can one ever come.
	}
	pod, err := p.client.CoreV1().Pods(a.GetNamespace()).Get(ctx, target.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(a, target.Name, err)
	}
	if string(pod.UID) != target.UID {
		return nil, nil
	}
	return pod, nil
}

func unreadable(a admission.Attributes, podName string, err error) error {
	return apierrors.NewInternalError(fmt.Errorf("reading pod %q in namespace %q, the target of the eviction request: %w", podName, a.GetNamespace(), err))
}

// unheld is the error about finalizers on a request whose target is not there.
func unheld(a admission.Attributes, request *coordination.EvictionRequest) error {
	target := targetOf(request)
	return forbidden(a, request, fmt.Errorf("there is no pod %q with the UID %q in namespace %q: no finalizer can be added to a request without its pod, "+
		"because it would keep the name, which may be that of another pod's request", target.Name, target.UID, a.GetNamespace()))
}

// forbidden is admission.NewForbidden, with the name of the object also where the
// attributes lack it: in the deletion of a collection.
func forbidden(a admission.Attributes, request *coordination.EvictionRequest, reason error) error {
	return apierrors.NewForbidden(a.GetResource().GroupResource(), request.Name, reason)
}
