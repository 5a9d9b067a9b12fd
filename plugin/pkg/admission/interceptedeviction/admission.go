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

// Package interceptedeviction implements the admission plugin that lets the interceptors of a pod
// act before pods/eviction ends the pod, whoever calls it.
//
// # What it does
//
// For a pod that has interceptors, a caller that means this pod in particular creates the
// EvictionRequest of the pod, or joins it, as the requester eviction.k8s.io. This call and all others
// are refused with the status 429, which evictors know from budgets and retry, until the interceptors
// are done. Then calls are admitted. The controller evicts the pod at the same time, and either may
// come first.
//
// # What it never does
//
//   - It requests no eviction for a caller that tries one pod after another, and may stop at the first
//     success.
//   - It admits no eviction while an interceptor has yet to act, whatever prevents the request.
//   - It sets no Retry-After: client-go would retry inside of the call, and use up the timeouts of
//     evictors, which have retries of their own.
//   - It makes no API request for a pod without interceptors.
//   - It does not touch the deletion of a pod, which is not an eviction.
//
// # Reading order
//
//	admission.go  the plugin: which evictions it admits at once
//	request.go    creates, joins and renews the request
//	calls.go      which calls request it, and how
//	replaced.go   callers that name a pod which was replaced under its name
//	check.go      the pod that the storage evicts in the end
//	progress.go   whose turn it is; pure functions
//	groups.go     pods that leave with their PodGroup only, so that no interceptor acts
//	status.go     the texts of the status 429
//	rights.go     who does not have to wait
package interceptedeviction

import (
	"context"
	"fmt"
	"io"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1alpha1"
	corelisters "k8s.io/client-go/listers/core/v1"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/features"
	evictionrequestregistry "k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	"k8s.io/kubernetes/pkg/registry/core/pod/admittedpod"
	"k8s.io/utils/clock"
)

// PluginName is the name of the plugin in the flags of kube-apiserver.
const PluginName = "InterceptedEviction"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return NewPlugin(), nil })
}

// Plugin decides whether an eviction has to wait for the interceptors of its pod.
//
// What one call has to know of another is in the EvictionRequest, except for recent refusals. It
// decides on cached objects as long as that can only delay an eviction, and reads from the API
// server what would let one through, except for pods that have no interceptors in the cache. The
// storage has each pod checked that it is about to evict.
//
// It writes as kube-apiserver, so who may evict the pod needs no permission on EvictionRequests.
// Therefore it is the last plugin: it must not write for an eviction that another one refuses.
type Plugin struct {
	*admission.Handler
	enabled    bool
	inspected  bool
	authorizer authorizer.UnconditionalAuthorizer
	client     kubernetes.Interface
	pods       corelisters.PodLister
	nodes      corelisters.NodeLister
	requests   coordinationlisters.EvictionRequestLister
	refusals   *refusals
	calls      *calls
	clock      clock.PassiveClock
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
	return &Plugin{
		Handler:  admission.NewHandler(admission.Create),
		refusals: newRefusals(),
		calls:    newCalls(),
		// The status of requests has the times of this clock as well.
		clock: evictionrequestregistry.StatusStrategy.Clock,
	}
}

// InspectFeatureGates enables the plugin by its gate.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.enabled = gates.Enabled(features.EvictionRequestForEvictions)
	p.inspected = true
}

// SetAuthorizer sets the authorizer.
func (p *Plugin) SetAuthorizer(authorizer authorizer.Authorizer) { p.authorizer = authorizer }

// SetExternalKubeClientSet sets the client that reads pods, and reads and writes EvictionRequests.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// SetExternalKubeInformerFactory sets the listers, if the plugin is enabled.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if !p.enabled {
		return
	}
	// Informers are started only if they are asked for.
	p.pods = factory.Core().V1().Pods().Lister()
	p.nodes = factory.Core().V1().Nodes().Lister()
	requests := factory.Coordination().V1alpha1().EvictionRequests()
	p.requests = requests.Lister()
	if err := requests.Informer().SetTransform(evictionrequesttools.ShareMemory()); err != nil {
		klog.Background().V(2).Info("Failed to set the transform of the informer, EvictionRequests will take more memory", "err", err)
	}
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
	case p.enabled && (p.pods == nil || p.nodes == nil || p.requests == nil):
		return fmt.Errorf("%s has no informers", PluginName)
	}
	return nil
}

// eviction is one call of pods/eviction for a pod that has interceptors.
type eviction struct {
	admission.Attributes
	preconditions *metav1.Preconditions
	// pod is the pod to evict. It is nil if the eviction cannot harm it or fails anyway: the pod is
	// gone, has finished, terminates, or does not meet the preconditions.
	pod *v1.Pod
	// live is set if the pod was read from the API server.
	live bool
	// interceptors are those of the pod that the call has to wait for, in order.
	interceptors []string
	// gracePeriod is deleteOptions.gracePeriodSeconds.
	gracePeriod *int64
	// repeated is set if the same user has called for this pod a moment ago.
	repeated bool
	// atOnce is set if the caller says that the first call requests the eviction.
	atOnce bool
	// bypass is set if the caller asks to evict the pod without its interceptors.
	bypass bool
	// dryRun is the field of that name in the options of writes.
	dryRun []string
}

// Validate returns the status 429 if the eviction has to wait for interceptors of the pod.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !p.enabled || a.GetResource().GroupResource() != api.Resource("pods") || a.GetSubresource() != "eviction" {
		return nil
	}
	object, ok := a.GetObject().(*policy.Eviction)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("unexpected object in an eviction: %T", a.GetObject()))
	}
	options := metav1.DeleteOptions{}
	if object.DeleteOptions != nil {
		options = *object.DeleteOptions
	}
	e := &eviction{Attributes: a, preconditions: options.Preconditions, gracePeriod: options.GracePeriodSeconds}
	e.atOnce = object.Annotations[coordinationv1alpha1.EvictionRequestAtOnceAnnotation] == "true"
	e.bypass = object.Annotations[coordinationv1alpha1.EvictionBypassAnnotation] == "true"
	if a.IsDryRun() || dryrun.IsDryRun(options.DryRun) {
		e.dryRun = []string{metav1.DryRunAll}
	}
	if err := p.findPod(ctx, e); err != nil {
		return err
	}
	if len(e.interceptors) > 0 {
		// The storage refuses them as well, but only when the interceptors are done.
		if errs := metav1validation.ValidateDeleteOptions(&options); len(errs) > 0 {
			return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs)
		}
	}
	if err := p.decide(ctx, e); err != nil {
		return err
	}
	admittedpod.AddCheck(ctx, e.check)
	return nil
}

// decide admits the eviction of the pod that was found, or returns why it does not.
func (p *Plugin) decide(ctx context.Context, e *eviction) error {
	if former, replaced := p.refusals.replacedBy(e); replaced && !p.isEmptied(ctx, e.pod) {
		return e.gone(former)
	}
	if len(e.interceptors) == 0 || p.mayBypass(ctx, e) {
		p.refusals.forget(e)
		return nil
	}
	grouped, err := p.leavesWithGroup(ctx, e)
	switch {
	case err != nil:
		return e.inUnknownGroup(err)
	case grouped:
		p.refusals.forget(e)
		return nil
	}
	err = p.await(ctx, e)
	switch {
	case err == nil:
		p.refusals.forget(e)
	case apierrors.IsTooManyRequests(err):
		p.refusals.note(e)
	}
	return err
}

// findPod sets the pod of the eviction, from the cache if that has one that runs. If the cache has a
// predecessor of the same name instead, that one terminates.
func (p *Plugin) findPod(ctx context.Context, e *eviction) error {
	pod, err := p.pods.Pods(e.GetNamespace()).Get(e.GetName())
	if err == nil && mayBeHarmed(pod, e.preconditions) {
		e.setPod(pod)
		return nil
	}
	return p.readPod(ctx, e)
}

// readPod sets the pod of the eviction to the one that the API server has.
func (p *Plugin) readPod(ctx context.Context, e *eviction) error {
	e.live = true
	pod, err := p.client.CoreV1().Pods(e.GetNamespace()).Get(ctx, e.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		e.setPod(nil)
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("reading pod %q in namespace %q, which is to be evicted: %w", e.GetName(), e.GetNamespace(), err))
	case !mayBeHarmed(pod, e.preconditions):
		e.setPod(nil)
		return nil
	}
	e.setPod(pod)
	return nil
}

func (e *eviction) setPod(pod *v1.Pod) {
	e.pod, e.interceptors = pod, nil
	if pod != nil {
		e.interceptors = ownInterceptors(pod)
	}
}

// mayBeHarmed reports whether the eviction of the pod with these preconditions would end a pod that
// is neither finished nor terminating.
func mayBeHarmed(pod *v1.Pod, preconditions *metav1.Preconditions) bool {
	if pod.DeletionTimestamp != nil || podutil.IsPodPhaseTerminal(pod.Status.Phase) {
		return false
	}
	if preconditions == nil {
		return true
	}
	// A UID that has changed never comes back.
	sameUID := preconditions.UID == nil || *preconditions.UID == "" || *preconditions.UID == pod.UID
	return sameUID && !isPast(preconditions.ResourceVersion, pod.ResourceVersion)
}

// hasVersion reports whether the caller means the pod only as it is now.
func (e *eviction) hasVersion() bool {
	return e.preconditions != nil && e.preconditions.ResourceVersion != nil && *e.preconditions.ResourceVersion != ""
}

// isPast reports whether the resourceVersion is older than the current one, or none at all, and so
// never comes. One that is not may be that of the next change: versions can be guessed.
func isPast(version *string, current string) bool {
	if version == nil || *version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(*version, current)
	return err != nil || order < 0
}
