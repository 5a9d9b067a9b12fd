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
	"fmt"
	"strconv"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/utils/ptr"
)

const (
	// againWithin is how long a call is remembered.
	againWithin = coordinationv1alpha1.EvictionCallAgainSeconds * time.Second

	// evictInBackgroundAnnotation, on a pod, is how its author tells evictors that the status 429 means that
	// the eviction has been triggered. The descheduler and KubeVirt know it.
	evictInBackgroundAnnotation = "descheduler.alpha.kubernetes.io/request-evict-only"

	// maxCalls limits the memory, see maxRefusals.
	maxCalls = 50000
)

// calls are the recent calls that were refused. A call that comes once requests nothing: an evictor that may
// evict one pod of many tries one after another, and stops at the first success. The others that it has tried
// must not leave as well. A caller that comes back for the same pod means it.
//
// They are kept in memory: a caller whose next call arrives at another server has to call once more.
type calls struct {
	recent *cache.LRUExpireCache
	// ahead has when this server has first seen the time of a call that is ahead of its clock.
	ahead *cache.LRUExpireCache
}

func newCalls() *calls {
	return &calls{recent: cache.NewLRUExpireCache(maxCalls), ahead: cache.NewLRUExpireCache(maxCalls)}
}

// aheadCall is a call for a pod, by the clock of a server that is ahead of this one.
type aheadCall struct {
	pod    types.UID
	called string
}

// isRenewed reports whether the request already says that pods/eviction is called for its pod. A time that is ahead
// of this clock says so for as long as any other, counted from when this server has seen it: the caller may have come
// here since, and the controller, which counts in the same way, would withdraw it.
func (c *calls) isRenewed(request *coordinationv1alpha1.EvictionRequest, now time.Time) bool {
	if !isRenewed(request, now) {
		return false
	}
	if called, _ := evictionrequesttools.EvictionCallTime(request); !called.After(now) {
		return true
	}
	key := aheadCall{pod: types.UID(request.Name), called: request.Annotations[coordinationv1alpha1.EvictionCallTimeAnnotation]}
	if seen, known := c.ahead.Get(key); known {
		return now.Sub(seen.(time.Time)) < renewalInterval
	}
	c.ahead.Add(key, now, callTTL)
	return true
}

// caller is who evicts which pod.
type caller struct {
	pod  types.UID
	user string
}

// isRepeated reports whether the same user has evicted this pod a short time ago, and records the call.
func (c *calls) isRepeated(e *eviction) bool {
	key := caller{pod: e.pod.UID, user: e.GetUserInfo().GetName()}
	_, found := c.recent.Get(key)
	c.recent.Add(key, struct{}{}, againWithin)
	return found
}

// isMeant reports whether the call is about this pod in particular, and so requests the eviction: the caller
// comes back, says so, or is known to expect it, or the node is cordoned, so that all its pods are to leave. A
// dry run shows what a call would request.
func (p *Plugin) isMeant(ctx context.Context, e *eviction) bool {
	_, inBackground := e.pod.Annotations[evictInBackgroundAnnotation]
	return e.repeated || len(e.dryRun) > 0 || e.atOnce || inBackground || p.cordonOf(e) != "" ||
		p.isAllowedExplicitly(ctx, e, authorizer.AttributesRecord{
			Verb:       coordinationv1alpha1.EvictionRequestVerb,
			APIGroup:   coordinationv1alpha1.GroupName,
			APIVersion: "*", // It is a virtual resource without a version.
			Resource:   coordinationv1alpha1.EvictionRequesterResource,
			Name:       coordinationv1alpha1.EvictionRequesterEvictions,
		})
}

// requestsNothing returns the status for a call that is not known to mean this pod in particular.
func (e *eviction) requestsNothing(request *coordinationv1alpha1.EvictionRequest) error {
	how := fmt.Sprintf("This call does not request that: one more within %d seconds does, or one with the annotation %s: \"true\".",
		coordinationv1alpha1.EvictionCallAgainSeconds, coordinationv1alpha1.EvictionRequestAtOnceAnnotation)
	return e.waitsUnrequested(request, how, "its interceptors have to act first: call again to request that")
}

// gracePeriodOf returns what the request has to say about deleteOptions.gracePeriodSeconds of its callers: nil
// if it is the period of the pod, and change if that is not what it says. The shortest counts, as for deletions.
func (e *eviction) gracePeriodOf(request *coordinationv1alpha1.EvictionRequest) (seconds *string, change bool) {
	own := deletedAfter(ptr.Deref(e.pod.Spec.TerminationGracePeriodSeconds, int64(v1.DefaultTerminationGracePeriodSeconds)))
	asked := deletedAfter(ptr.Deref(e.gracePeriod, own))
	if request != nil && evictionrequesttools.IsRequestedByCalls(request) {
		said, known := evictionrequesttools.EvictionCallGracePeriod(request)
		if !known {
			said = own
		}
		if asked >= said {
			return nil, false
		}
	}
	if asked == own {
		said := ""
		if request != nil {
			said = request.Annotations[coordinationv1alpha1.EvictionCallGracePeriodAnnotation]
		}
		return nil, said != ""
	}
	return ptr.To(strconv.FormatInt(asked, 10)), true
}

// deletedAfter returns after how many seconds a pod is killed that is deleted with this grace period: one for a negative
// period, see rest.BeforeDelete. Zero would remove the pod before it has ended.
func deletedAfter(gracePeriod int64) int64 {
	if gracePeriod < 0 {
		return 1
	}
	return gracePeriod
}
