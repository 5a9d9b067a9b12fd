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

package evictionrequest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
)

const (
	// callTTL is how long a call of pods/eviction keeps the requester that stands for all callers.
	callTTL = coordinationv1alpha1.EvictionCallTTLSeconds * time.Second

	// repeatedCallTTL is the same for callers that call every few seconds.
	repeatedCallTTL = coordinationv1alpha1.EvictionRepeatedCallTTLSeconds * time.Second
)

// callsSeen has when this process has first seen the time of the last call for a pod. Whether a caller that calls every
// few seconds has given up is decided on it: API servers whose clocks are minutes apart write that time. A restart
// empties it, and gives callers a little more time.
type callsSeen struct {
	lock sync.Mutex
	last map[types.UID]callSeen
}

// callSeen is the time of a call, as the request says it, and when that was seen.
type callSeen struct {
	called string
	at     time.Time
}

func newCallsSeen() *callsSeen { return &callsSeen{last: map[types.UID]callSeen{}} }

// see returns when the time of the last call that the request has was first seen.
func (c *callsSeen) see(request *coordinationv1alpha1.EvictionRequest, now time.Time) time.Time {
	c.lock.Lock()
	defer c.lock.Unlock()
	uid, called := types.UID(request.Name), request.Annotations[coordinationv1alpha1.EvictionCallTimeAnnotation]
	seen, known := c.last[uid]
	if !known || seen.called != called || seen.at.After(now) {
		seen = callSeen{called: called, at: now}
		c.last[uid] = seen
	}
	return seen.at
}

func (c *callsSeen) forget(uid types.UID) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.last, uid)
}

// callsExpireAt returns when the last call of pods/eviction for the pod, which this process has seen at the time seen, no
// longer counts. No call expires before noTimeoutBefore: evictors could not call during an outage either.
func callsExpireAt(now, noTimeoutBefore, seen time.Time, request *coordinationv1alpha1.EvictionRequest) time.Time {
	called, known := evictionrequesttools.EvictionCallTime(request)
	// A client may remove the time, or set one with which the request would never end. A time that is
	// not so far ahead comes from the clock of an API server: with the time of the creation instead, a
	// call that was just recorded would end the request.
	if !known || called.Sub(now) > callTTL {
		called = request.CreationTimestamp.Time
	}
	expiry := called.Add(callTTL)
	if sooner := seen.Add(repeatedCallTTL); evictionrequesttools.AreEvictionCallsRepeated(request) && sooner.Before(expiry) {
		expiry = sooner
	}
	if expiry.Before(noTimeoutBefore) {
		expiry = noTimeoutBefore
	}
	return expiry
}

// isUncordoned reports whether the node of the pod was unschedulable when pods/eviction was called, and
// is schedulable again: its drain was given up. Evictors that evict from schedulable nodes never cause
// that. A caller that goes on requests the eviction again with its next call.
func (c *Controller) isUncordoned(request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) bool {
	if pod == nil {
		return false
	}
	node, err := c.nodeLister.Get(pod.Spec.NodeName)
	return err == nil && evictionrequesttools.IsUncordonedSinceEvictionCall(request, node)
}

// expireCalls withdraws the callers of pods/eviction if they have given up, whatever the gate that
// makes such calls request evictions: without it there are no calls. It returns the request as it is
// then, and the delay until the calls expire, which is zero if they do not. The pod is nil if it is
// gone.
func (c *Controller) expireCalls(ctx context.Context, now, noTimeoutBefore time.Time, request *coordinationv1alpha1.EvictionRequest, pod *v1.Pod) (*coordinationv1alpha1.EvictionRequest, time.Duration, error) {
	if !evictionrequesttools.IsRequestedByCalls(request) {
		c.calls.forget(types.UID(request.Name))
		return request, 0, nil
	}
	expiry := callsExpireAt(now, noTimeoutBefore, c.calls.see(request, now), request)
	why := change{kind: changeCallsExpired, message: callTTL.String()}
	if evictionrequesttools.AreEvictionCallsRepeated(request) {
		why.message = repeatedCallTTL.String()
	}
	if c.isUncordoned(request, pod) {
		why = change{kind: changeNodeUncordoned, message: pod.Spec.NodeName}
	} else if now.Before(expiry) {
		return request, expiry.Sub(now), nil
	}
	withdrawn, err := c.writer.withdrawCalls(ctx, request, why)
	if withdrawn == nil {
		return request, 0, err
	}
	c.calls.forget(types.UID(request.Name))
	return withdrawn, 0, nil
}

// withdrawCalls removes the requester that stands for all callers of pods/eviction and what the request
// says about their calls. It returns nil if the request has changed concurrently in what matters for that, such as by a
// call: whoever writes labels and annotations all the time must not keep it.
func (w *requestWriter) withdrawCalls(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, why change) (*coordinationv1alpha1.EvictionRequest, error) {
	patch, err := callsPatch(request)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	if !w.begin(ctx, request) {
		return nil, nil
	}
	defer w.end(request)
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	written, err := w.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).
		Patch(callCtx, request.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	err = w.failedTest(callCtx, request, err, func(stored *coordinationv1alpha1.EvictionRequest) bool {
		return maps.Equal(callAnnotations(stored), callAnnotations(request))
	})
	if err != nil {
		return nil, ignoreStale(ctx, request, "withdrawing "+coordinationv1alpha1.EvictionRequesterEvictions, err)
	}
	w.wrote(written)
	recordEvents(w.recorder, written, []change{why})
	return written, nil
}

// callAnnotations are those about calls that a request has.
func callAnnotations(request *coordinationv1alpha1.EvictionRequest) map[string]string {
	found := map[string]string{}
	for _, name := range evictionrequesttools.EvictionCallAnnotations() {
		if value, has := request.Annotations[name]; has {
			found[name] = value
		}
	}
	return found
}

// callsPatch returns a JSON patch that withdraws the callers, if there was neither a change of the spec nor a call since. Its
// tests do not fail for other changes.
func callsPatch(request *coordinationv1alpha1.EvictionRequest) ([]byte, error) {
	operations := []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": request.UID},
		{"op": "test", "path": "/metadata/generation", "value": request.Generation},
		{"op": "replace", "path": "/spec/requesters", "value": evictionrequesttools.RequestersWithoutCalls(request)},
	}
	annotations := callAnnotations(request)
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		path := "/metadata/annotations/" + strings.ReplaceAll(name, "/", "~1")
		operations = append(operations,
			map[string]any{"op": "test", "path": path, "value": annotations[name]},
			map[string]any{"op": "remove", "path": path})
	}
	return json.Marshal(operations)
}
