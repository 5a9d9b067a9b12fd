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

package interceptedeviction

import (
	"context"
	"slices"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"
)

// allVerbs is the verb of which only a wildcard grants the permission.
const allVerbs = "*"

// mayBypass reports whether the caller does not have to wait for the interceptors of the pod.
func (p *Plugin) mayBypass(ctx context.Context, e *eviction) bool {
	attributes := authorizer.AttributesRecord{
		Verb:       coordinationv1alpha1.EvictionBypassVerb,
		APIGroup:   coordinationv1alpha1.GroupName,
		APIVersion: coordinationv1alpha1.SchemeGroupVersion.Version,
		Resource:   "evictionrequests",
		Name:       string(e.pod.UID),
	}
	if e.bypass {
		return p.isAllowed(ctx, e, attributes)
	}
	return p.isAllowedExplicitly(ctx, e, attributes)
}

// actsAs reports whether the caller acts as one of these interceptors of the pod.
func (p *Plugin) actsAs(ctx context.Context, e *eviction, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains(e.interceptors, name) && p.isAllowedExplicitly(ctx, e, authorizer.AttributesRecord{
			Verb:       coordinationv1alpha1.EvictionInterceptVerb,
			APIGroup:   coordinationv1alpha1.GroupName,
			APIVersion: "*", // It is a virtual resource without a version.
			Resource:   coordinationv1alpha1.EvictionInterceptorResource,
			Name:       name,
		})
	})
}

// isAllowedExplicitly reports whether the caller has the permission, and not only as one of all.
// Otherwise, administrators and tools with the permissions of an administrator would pass as
// everything, which nobody has intended.
//
// It is asked in the namespace of the pod and in all of them: who grants a caller all permissions in one namespace must
// not take away from it what an administrator has granted.
func (p *Plugin) isAllowedExplicitly(ctx context.Context, e *eviction, attributes authorizer.AttributesRecord) bool {
	for _, namespace := range []string{e.GetNamespace(), metav1.NamespaceAll} {
		if !p.isAllowedIn(ctx, e, attributes, namespace) {
			return false // In the namespace, if it is so in all.
		}
		all := attributes
		all.Verb = allVerbs
		if !p.isAllowedIn(ctx, e, all, namespace) {
			return true
		}
	}
	return false
}

// isAllowed asks the authorizer about the namespace of the pod.
func (p *Plugin) isAllowed(ctx context.Context, e *eviction, attributes authorizer.AttributesRecord) bool {
	return p.isAllowedIn(ctx, e, attributes, e.GetNamespace())
}

// isAllowedIn asks the authorizer. If it cannot decide, the caller has to wait.
func (p *Plugin) isAllowedIn(ctx context.Context, e *eviction, attributes authorizer.AttributesRecord, namespace string) bool {
	attributes.User, attributes.Namespace, attributes.ResourceRequest = e.GetUserInfo(), namespace, true
	decision, _, err := p.authorizer.Authorize(ctx, attributes)
	if decision == authorizer.DecisionAllow {
		return true
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to authorize an eviction without interceptors", "pod", klog.KObj(e.pod), "user", e.GetUserInfo().GetName(), "verb", attributes.Verb)
	}
	return false
}
