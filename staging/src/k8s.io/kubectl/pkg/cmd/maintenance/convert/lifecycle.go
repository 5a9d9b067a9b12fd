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

package convert

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/utils/ptr"
)

// lifecycleVersion is the version of upstream's API, which appeared in 1.37.
const lifecycleVersion = "lifecycle.k8s.io/v1alpha1"

var (
	lifecycleGroup = schema.GroupVersion{Group: "lifecycle.k8s.io", Version: "v1alpha1"}
	lifecycleAsked = lifecycleGroup.WithKind("EvictionRequest")
	lifecycleEvict = lifecycleGroup.WithKind("Eviction")
)

// Intents of a requester, and conditions of a finished request, in 1.37.
const (
	intentEviction         = "Eviction"
	intentWithdrawn        = "Withdrawn"
	conditionTargetEvicted = "TargetEvicted"
	conditionFailed        = "Failed"
)

// lifecycleHeartbeatDeadline is that of all evictions in 1.37, in seconds.
const lifecycleHeartbeatDeadline = 20 * 60

// maxRequesters is the maximum number of requesters of a request here.
const maxRequesters = 100

// lifecycleRequest is an EvictionRequest of 1.37: what one requester wants for one pod.
type lifecycleRequest struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta    `json:"metadata,omitempty"`
	Spec            lifecycleRequestSpec `json:"spec"`
	Status          lifecycleStatus      `json:"status,omitempty"`
}

type lifecycleRequestSpec struct {
	Target    lifecycleTarget `json:"target"`
	Requester string          `json:"requester"`
	Intent    string          `json:"intent"`
}

type lifecycleTarget struct {
	Pod *lifecyclePod `json:"pod,omitempty"`
}

type lifecyclePod struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// lifecycleStatus is that of EvictionRequests.
type lifecycleStatus struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration *int64             `json:"observedGeneration,omitempty"`
}

// foundRequest is a request that is to be merged with those of the same pod.
type foundRequest struct {
	*lifecycleRequest
	source    source
	metadata  metav1.ObjectMeta
	requester string
}

// fromLifecycleRequest checks a request and remembers it: those of the same pod become one.
func (c *converter) fromLifecycleRequest(where source, object map[string]any) {
	var old lifecycleRequest
	if !c.decode(where, object, &old) || c.isBeingDeleted(where, &old.Metadata) {
		return
	}
	if !c.validLifecycleSpec(where, &old.Spec) || c.isFinished(where, old.Status.Conditions, conditionTargetEvicted, conditionFailed) {
		return
	}
	if len(old.Status.Conditions) > 0 || old.Status.ObservedGeneration != nil {
		c.add(isIgnored, where, "status", oldStatus)
	}
	if old.Spec.Intent == intentWithdrawn {
		c.add(isChanged, where, "spec.intent=Withdrawn", "%s is not in spec.requesters: a requester here is one that wants the eviction", old.Spec.Requester)
		return
	}
	found := &foundRequest{lifecycleRequest: &old, source: where, metadata: c.metadataOf(where, &old.Metadata)}
	found.requester = c.nameHere(where, "spec.requester", old.Spec.Requester)
	c.requests = append(c.requests, found)
}

// validLifecycleSpec reports errors that 1.37 or the server here would return.
func (c *converter) validLifecycleSpec(where source, spec *lifecycleRequestSpec) bool {
	before := len(c.errs)
	if spec.Target.Pod == nil {
		c.fail(where, "spec.target.pod", "is missing: name the pod")
	} else {
		c.checkTarget(where, spec.Target.Pod.Name, spec.Target.Pod.UID)
	}
	if errs := validation.IsDomainPrefixedKey(field.NewPath("spec", "requester"), spec.Requester); len(errs) > 0 {
		c.fail(where, "", "%v", errs.ToAggregate())
	}
	if spec.Intent != intentEviction && spec.Intent != intentWithdrawn {
		c.fail(where, withValue("spec.intent", spec.Intent), "must be %s or %s", intentEviction, intentWithdrawn)
	}
	return len(c.errs) == before
}

// checkTarget reports errors in the name and the UID of a pod.
func (c *converter) checkTarget(where source, name, uid string) {
	for _, message := range apivalidation.NameIsDNSSubdomain(name, false) {
		c.fail(where, withValue("spec.target.pod.name", name), "%s", message)
	}
	for _, err := range validate.UUID(context.Background(), operation.Operation{}, field.NewPath("spec", "target", "pod", "uid"), &uid, nil) {
		c.fail(where, "", "%v", err)
	}
}

// isFinished reports that nothing is written for a request that is finished: a new one would begin
// the eviction again.
func (c *converter) isFinished(where source, conditions []metav1.Condition, finals ...string) bool {
	for _, condition := range conditions {
		if condition.Status == metav1.ConditionTrue && slices.Contains(finals, condition.Type) {
			c.add(isLost, where, withValue("status.conditions", condition.Type), "the request is finished, so nothing is written for it")
			return true
		}
	}
	return false
}

// fromLifecycleEviction writes nothing: an Eviction is what the controller of 1.37 makes of requests.
func (c *converter) fromLifecycleEviction(where source, _ map[string]any) {
	c.add(isLost, where, "spec, status", "the controller writes the progress into the status of the EvictionRequest: convert the EvictionRequests of %s", lifecycleVersion)
}

// mergeRequests writes the requests of 1.37, one for each pod.
func (c *converter) mergeRequests() {
	type target struct{ namespace, uid string }
	merged := map[target]*coordinationv1alpha1.EvictionRequest{}
	var first []*foundRequest
	for _, found := range c.requests {
		pod := found.Spec.Target.Pod
		key := target{found.metadata.Namespace, pod.UID}
		request := merged[key]
		if request == nil {
			request = newRequest(found)
			merged[key] = request
			first = append(first, found)
		} else {
			c.mergeMetadata(found, request)
		}
		if found.metadata.Name != "" && found.metadata.Name != pod.UID {
			c.add(isChanged, found.source, withValue("metadata.name", found.metadata.Name), "is %s: a request has the name of the UID of its pod", pod.UID)
		}
		if request.Spec.Target.Pod.Name != pod.Name {
			c.fail(found.source, withValue("spec.target.pod.name", pod.Name), "another request names the pod of this UID %s: correct one of them", request.Spec.Target.Pod.Name)
		}
		if !slices.ContainsFunc(request.Spec.Requesters, func(r coordinationv1alpha1.Requester) bool { return r.Name == found.requester }) {
			request.Spec.Requesters = append(request.Spec.Requesters, coordinationv1alpha1.Requester{Name: found.requester})
		}
	}
	for _, found := range first {
		c.writeRequest(found.source, merged[target{found.metadata.Namespace, found.Spec.Target.Pod.UID}])
	}
}

func newRequest(found *foundRequest) *coordinationv1alpha1.EvictionRequest {
	pod := found.Spec.Target.Pod
	meta := metav1.ObjectMeta{
		Namespace: found.metadata.Namespace, Name: pod.UID,
		Labels: maps.Clone(found.metadata.Labels), Annotations: maps.Clone(found.metadata.Annotations),
	}
	return &coordinationv1alpha1.EvictionRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: ours, Kind: "EvictionRequest"},
		ObjectMeta: meta,
		Spec:       coordinationv1alpha1.EvictionRequestSpec{Target: coordinationv1alpha1.EvictionTarget{Pod: &coordinationv1alpha1.LocalPodReference{Name: pod.Name, UID: pod.UID}}},
	}
}

// mergeMetadata adds labels and annotations. The first request with a key determines its value.
func (c *converter) mergeMetadata(found *foundRequest, request *coordinationv1alpha1.EvictionRequest) {
	merge := func(path string, from map[string]string, into *map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(from)) {
			value, set := (*into)[key]
			switch {
			case !set:
				if *into == nil {
					*into = map[string]string{}
				}
				(*into)[key] = from[key]
			case value != from[key]:
				c.add(isLost, found.source, withValue(fmt.Sprintf("metadata.%s[%s]", path, key), from[key]), "another request of the pod has %q: the pod has one request", value)
			}
		}
	}
	merge("labels", found.metadata.Labels, &request.Labels)
	merge("annotations", found.metadata.Annotations, &request.Annotations)
}

// writeRequest adds a request to the output, if the server would accept it.
func (c *converter) writeRequest(where source, request *coordinationv1alpha1.EvictionRequest) {
	valid := c.validMetadata(where, &request.ObjectMeta, true)
	for i, requester := range request.Spec.Requesters {
		for _, err := range evictionrequest.ValidateParticipantName(requester.Name, field.NewPath("spec", "requesters").Index(i).Child("name")) {
			c.fail(where, "", "%v", err)
			valid = false
		}
	}
	if count := len(request.Spec.Requesters); count > maxRequesters {
		c.fail(where, "spec.requesters", "has %d names, more than %d: remove requests of this pod", count, maxRequesters)
		valid = false
	}
	if valid {
		c.write(where, request)
	}
}

// toLifecycleRequests writes one request of 1.37 for each requester.
func (c *converter) toLifecycleRequests(where source, object map[string]any) {
	var old coordinationv1alpha1.EvictionRequest
	if !c.decode(where, object, &old) || c.isBeingDeleted(where, &old.ObjectMeta) {
		return
	}
	pod := old.Spec.Target.Pod
	if pod == nil {
		c.fail(where, "spec.target.pod", "is missing: name the pod")
		return
	}
	before := len(c.errs)
	c.checkTarget(where, pod.Name, pod.UID)
	if len(c.errs) > before || c.isFinished(where, old.Status.Conditions,
		string(coordinationv1alpha1.EvictionRequestConditionEvicted), string(coordinationv1alpha1.EvictionRequestConditionCanceled)) {
		return
	}
	meta := c.metadataOf(where, &old.ObjectMeta)
	c.reportRequestLosses(where, &old)
	if len(old.Spec.Requesters) == 0 {
		c.add(isIgnored, where, "spec.requesters", "is empty: no one requests the eviction, so nothing is written")
	}
	seen := map[string]string{}
	fromThere := requestersFromLifecycle(&old)
	for i, requester := range old.Spec.Requesters {
		path := elementPath("spec.requesters", i, "name")
		if fromThere.Has(requester.Name) {
			c.add(isIgnored, where, withValue(path, requester.Name), "it has come by a request of lifecycle.k8s.io, which stays")
			continue
		}
		if isReservedIn137(requester.Name) {
			c.add(isLost, where, withValue(path, requester.Name), "names in the domains %s are reserved for components of Kubernetes, and 1.37 has none of this name: let another requester ask for the eviction",
				strings.Join(reservedIn137, " and "))
			continue
		}
		for _, err := range evictionrequest.ValidateParticipantName(requester.Name, field.NewPath(path)) {
			c.fail(where, "", "%v", err)
		}
		name, valid := c.keyOf(where, path, requester.Name)
		if !valid {
			continue
		}
		if other, duplicate := seen[name]; duplicate {
			c.fail(where, withValue(path, requester.Name), "has the same name in 1.37 as %s, %s: choose another one with --rename", other, name)
			continue
		}
		seen[name] = requester.Name
		c.writeLifecycleRequest(where, meta, pod, name)
	}
}

// lifecycleManager owns the requesters that have come by lifecycle.k8s.io, see package lifecycleeviction of
// kube-controller-manager.
const lifecycleManager = "lifecycle.k8s.io"

// requestersFromLifecycle returns the requesters of a request that have come by requests of lifecycle.k8s.io, and only by
// those. Another one with the same name would keep the eviction requested when these are withdrawn. It takes an object
// with metadata.managedFields.
func requestersFromLifecycle(request *coordinationv1alpha1.EvictionRequest) sets.Set[string] {
	from, others := sets.New[string](), sets.New[string]()
	for _, entry := range request.ManagedFields {
		owners := others
		if entry.Manager == lifecycleManager {
			owners = from
		}
		var fields struct {
			Spec struct {
				Requesters map[string]any `json:"f:requesters"`
			} `json:"f:spec"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.Raw, &fields) != nil {
			continue // What is not understood is converted.
		}
		for element := range fields.Spec.Requesters {
			var key struct{ Name string }
			if encoded, isElement := strings.CutPrefix(element, "k:"); isElement && json.Unmarshal([]byte(encoded), &key) == nil {
				owners.Insert(key.Name)
			}
		}
	}
	return from.Difference(others)
}

// reportRequestLosses reports what a request of 1.37 cannot say.
func (c *converter) reportRequestLosses(where source, old *coordinationv1alpha1.EvictionRequest) {
	if deadline := ptr.Deref(old.Spec.HeartbeatDeadlineSeconds, coordinationv1alpha1.DefaultHeartbeatDeadlineSeconds); deadline != lifecycleHeartbeatDeadline {
		c.add(isLost, where, withValue("spec.heartbeatDeadlineSeconds", deadline), "the deadline is %d seconds for all evictions in 1.37: let responders report earlier", lifecycleHeartbeatDeadline)
	}
	if old.Status.EvictionRequestCancellationPolicy == coordinationv1alpha1.EvictionRequestCancellationPolicyForbid {
		c.add(isLost, where, "status.evictionRequestCancellationPolicy=Forbid", "every eviction can be canceled in 1.37: keep the requester until the pod is gone")
	}
	status := old.Status
	status.EvictionRequestCancellationPolicy = ""
	if cmp.Or(len(status.Conditions), len(status.TargetInterceptors), len(status.Interceptors), len(status.ActiveInterceptors), len(status.ProcessedInterceptors), int(status.ObservedGeneration)) > 0 {
		c.add(isIgnored, where, "status", oldStatus)
	}
}

func (c *converter) writeLifecycleRequest(where source, meta metav1.ObjectMeta, pod *coordinationv1alpha1.LocalPodReference, requester string) {
	meta.Name, meta.GenerateName = nameOfRequest(pod.UID, requester), ""
	if !c.validMetadata(where, &meta, true) {
		return
	}
	metadata := map[string]any{"name": meta.Name}
	if meta.Namespace != "" {
		metadata["namespace"] = meta.Namespace
	}
	addStrings(metadata, "labels", meta.Labels)
	addStrings(metadata, "annotations", meta.Annotations)
	c.objects = append(c.objects, convertedObject{source: where, object: map[string]any{
		"apiVersion": lifecycleVersion,
		"kind":       lifecycleAsked.Kind,
		"metadata":   metadata,
		"spec": map[string]any{
			"target":    map[string]any{"pod": map[string]any{"name": pod.Name, "uid": pod.UID}},
			"requester": requester,
			"intent":    intentEviction,
		},
	}})
}

func addStrings(metadata map[string]any, key string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	content := map[string]any{}
	for name, value := range values {
		content[name] = value
	}
	metadata[key] = content
}

// nameOfRequest returns the name of the request of one requester: in 1.37, a pod has several requests.
func nameOfRequest(uid, requester string) string {
	domain, key, _ := strings.Cut(requester, "/")
	name := uid + "." + key + "." + domain
	if len(apivalidation.NameIsDNSSubdomain(name, false)) > 0 {
		// The key may have capital letters, and the name may be too long.
		hash := sha256.Sum256([]byte(requester))
		name = uid + "-" + hex.EncodeToString(hash[:8])
	}
	return name
}

// toNoMaintenance writes nothing: 1.37 has no NodeMaintenance.
func (c *converter) toNoMaintenance(where source, object map[string]any) {
	var old coordinationv1alpha1.NodeMaintenance
	if c.decode(where, object, &old) {
		c.add(isLost, where, "spec", noMaintenanceIn137+". Its drain plan and its stages have no counterpart, so nothing is written for it")
	}
}
