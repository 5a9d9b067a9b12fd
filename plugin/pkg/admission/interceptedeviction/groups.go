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

	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/component-helpers/scheduling/podgroup"
)

// leavesWithGroup reports whether the pod leaves with its PodGroup only, so that a request for it would be canceled and
// its interceptors never act. Then the eviction has nothing to wait for, and is admitted as upstream does.
//
// The group decides when the request is processed first (pkg/controller/evictionrequest/pod_groups.go). If it goes
// afterwards, the interceptors go on.
func (p *Plugin) leavesWithGroup(ctx context.Context, e *eviction) (bool, error) {
	group := e.pod.Spec.SchedulingGroup
	if group == nil {
		return false, nil
	}
	if group.PodGroupName != nil {
		mode, err := podgroup.Read(ctx, p.client, e.GetNamespace(), *group.PodGroupName)
		if err != nil || mode == podgroup.Single {
			return false, err
		}
	}
	request, err := p.liveRequest(ctx, e)
	if isNotServed(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	acting := request != nil && len(request.Status.TargetInterceptors) > 0 && !evictionrequesttools.IsFinished(request.Status.Conditions)
	return !acting, nil
}
