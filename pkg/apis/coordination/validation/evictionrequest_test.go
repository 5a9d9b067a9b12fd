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

package validation

import (
	"fmt"
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/kubernetes/pkg/apis/coordination"
	defaults "k8s.io/kubernetes/pkg/apis/coordination/v1alpha1"
)

const (
	targetUID  = "6b2a37a5-4f5c-4d3a-9d5e-0c5f6b7a8e91"
	anotherUID = "f0e1d2c3-0000-4000-8000-000000000002"
)

// newEvictionRequest returns a valid request with the given changes.
func newEvictionRequest(changes ...func(*coordination.EvictionRequest)) *coordination.EvictionRequest {
	request := &coordination.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: targetUID, ResourceVersion: "1"},
		Spec: coordination.EvictionRequestSpec{
			Target:     coordination.EvictionTarget{Pod: &coordination.LocalPodReference{Name: "web-0", UID: targetUID}},
			Requesters: []coordination.Requester{{Name: "drain.example.com"}},
		},
	}
	for _, change := range changes {
		change(request)
	}
	return request
}

func requestedBy(names ...string) func(*coordination.EvictionRequest) {
	return func(request *coordination.EvictionRequest) {
		request.Spec.Requesters = nil
		for _, name := range names {
			request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: name})
		}
	}
}

func targetPod(name, uid string) func(*coordination.EvictionRequest) {
	return func(request *coordination.EvictionRequest) {
		request.Spec.Target.Pod = &coordination.LocalPodReference{Name: name, UID: uid}
	}
}

func named(name string) func(*coordination.EvictionRequest) {
	return func(request *coordination.EvictionRequest) { request.Name = name }
}

var matcher = field.ErrorMatcher{}.ByType().ByField().ByDetailSubstring()

func TestValidateEvictionRequestCreate(t *testing.T) {
	namePath, podPath := field.NewPath("metadata", "name"), field.NewPath("spec", "target", "pod")
	requesters := field.NewPath("spec", "requesters")
	longestPodName := strings.Repeat("x", 253)

	tests := map[string]struct {
		request *coordination.EvictionRequest
		want    field.ErrorList
	}{
		"valid":                             {request: newEvictionRequest()},
		"several requesters":                {request: newEvictionRequest(requestedBy("a.example.com", "b.example.com"))},
		"the longest name of a pod":         {request: newEvictionRequest(targetPod(longestPodName, targetUID))},
		"a requester of Kubernetes":         {request: newEvictionRequest(requestedBy("kubectl-drain.k8s.io"))},
		"left to declarative validation: 1": {request: newEvictionRequest(requestedBy(""))},
		"left to declarative validation: 2": {request: newEvictionRequest(targetPod("", ""))},
		"left to declarative validation: 3": {request: newEvictionRequest(func(request *coordination.EvictionRequest) { request.Spec.Target.Pod = nil })},
		"no namespace": {
			request: newEvictionRequest(func(request *coordination.EvictionRequest) { request.Namespace = "" }),
			want:    field.ErrorList{field.Required(field.NewPath("metadata", "namespace"), "")},
		},
		"the name is not the UID": {
			request: newEvictionRequest(named("web-0")),
			want:    field.ErrorList{field.Invalid(namePath, nil, `must be the UID of the target pod, spec.target.pod.uid: "`+targetUID+`"`)},
		},
		"the name is another UID": {
			request: newEvictionRequest(named(anotherUID)),
			want:    field.ErrorList{field.Invalid(namePath, nil, "must be the UID of the target pod")},
		},
		"the name is the UID in upper case": {
			request: newEvictionRequest(named(strings.ToUpper(targetUID))),
			want: field.ErrorList{field.Invalid(namePath, nil, "a lowercase RFC 1123 subdomain"),
				field.Invalid(namePath, nil, "must be the UID of the target pod")},
		},
		"a generated name": {
			request: newEvictionRequest(func(request *coordination.EvictionRequest) { request.GenerateName = "web-" }),
			want: field.ErrorList{field.Forbidden(field.NewPath("metadata", "generateName"),
				"is not supported: set metadata.name to the UID of the pod")},
		},
		"no requester": {
			request: newEvictionRequest(requestedBy()),
			want:    field.ErrorList{field.Required(requesters, "must have at least one requester: add the name of the client that requests the eviction")},
		},
		"an empty list of requesters": {
			request: newEvictionRequest(func(request *coordination.EvictionRequest) { request.Spec.Requesters = []coordination.Requester{} }),
			want:    field.ErrorList{field.Required(requesters, "must have at least one requester")},
		},
		"a requester that is no domain": {
			request: newEvictionRequest(requestedBy("drain.example.com", "drain")),
			want:    field.ErrorList{field.Invalid(requesters.Index(1).Child("name"), nil, "at least two segments")},
		},
		"a requester in absolute form": {
			request: newEvictionRequest(requestedBy("drain.example.com.")),
			want:    field.ErrorList{field.Invalid(requesters.Index(0).Child("name"), nil, "may not end with a dot")},
		},
		"a pod name that no pod can have": {
			request: newEvictionRequest(targetPod("Web_0", targetUID)),
			want:    field.ErrorList{field.Invalid(podPath.Child("name"), nil, "a lowercase RFC 1123 subdomain")},
		},
		"a pod name that is too long": {
			request: newEvictionRequest(targetPod(longestPodName+"x", targetUID)),
			want:    field.ErrorList{field.Invalid(podPath.Child("name"), nil, "no more than 253")},
		},
		"an invalid label": {
			request: newEvictionRequest(func(request *coordination.EvictionRequest) { request.Labels = map[string]string{"a": "not valid"} }),
			want:    field.ErrorList{field.Invalid(field.NewPath("metadata", "labels"), nil, "a valid label must be")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateEvictionRequestCreate(test.request))
		})
	}
}

func numbered(count int, domain string) []string {
	names := make([]string, 0, count)
	for i := range count {
		names = append(names, fmt.Sprintf("r-%d.%s", i, domain))
	}
	return names
}

// deadline sets the deadline in seconds, or none for 0.
func deadline(seconds int32) func(*coordination.EvictionRequest) {
	return func(request *coordination.EvictionRequest) {
		request.Spec.HeartbeatDeadlineSeconds = nil
		if seconds > 0 {
			request.Spec.HeartbeatDeadlineSeconds = &seconds
		}
	}
}

func TestValidateEvictionRequestUpdate(t *testing.T) {
	requesters, heartbeat := field.NewPath("spec", "requesters"), field.NewPath("spec", "heartbeatDeadlineSeconds")
	tests := map[string]struct {
		old, request *coordination.EvictionRequest
		want         field.ErrorList
	}{
		"unchanged":                     {old: newEvictionRequest(), request: newEvictionRequest()},
		"a requester is added":          {old: newEvictionRequest(), request: newEvictionRequest(requestedBy("drain.example.com", "b.example.com"))},
		"the last requester is removed": {old: newEvictionRequest(), request: newEvictionRequest(requestedBy())},
		"a requester is added again":    {old: newEvictionRequest(requestedBy()), request: newEvictionRequest()},
		"left to declarative validation": {
			old: newEvictionRequest(), request: newEvictionRequest(requestedBy("")),
		},
		"a requester that is no domain is added": {
			old: newEvictionRequest(), request: newEvictionRequest(requestedBy("drain.example.com", "drain")),
			want: field.ErrorList{field.Invalid(requesters.Index(1).Child("name"), nil, "at least two segments")},
		},
		"the last ordinary place":  {old: newEvictionRequest(), request: newEvictionRequest(requestedBy(numbered(100, "example.com")...))},
		"beyond the ordinary ones": {old: newEvictionRequest(), request: newEvictionRequest(requestedBy(numbered(101, "example.com")...)), want: field.ErrorList{field.TooMany(requesters, 101, 100)}},
		"reserved names in addition": {
			old: newEvictionRequest(requestedBy(numbered(100, "example.com")...)), request: newEvictionRequest(requestedBy(append(numbered(100, "example.com"), numbered(10, "k8s.io")...)...)),
		},
		"keys in addition": {
			old: newEvictionRequest(requestedBy(numbered(100, "example.com")...)), request: newEvictionRequest(requestedBy(append(numbered(100, "example.com"), "k8s.io/drain")...)),
		},
		"a similar name in addition": {
			old: newEvictionRequest(requestedBy(numbered(100, "example.com")...)), request: newEvictionRequest(requestedBy(append(numbered(100, "example.com"), "a.notk8s.io")...)),
			want: field.ErrorList{field.TooMany(requesters, 101, 100)},
		},
		"stored with more": {
			old: newEvictionRequest(requestedBy(numbered(102, "example.com")...)), request: newEvictionRequest(requestedBy(numbered(101, "example.com")...)),
		},
		"a deadline is lowered":           {old: newEvictionRequest(deadline(21600)), request: newEvictionRequest(deadline(21599))},
		"a deadline becomes the default":  {old: newEvictionRequest(deadline(21600)), request: newEvictionRequest(deadline(1200))},
		"a deadline is omitted":           {old: newEvictionRequest(deadline(1200)), request: newEvictionRequest(deadline(0))},
		"a deadline is lowered too far":   {old: newEvictionRequest(deadline(21600)), request: newEvictionRequest(deadline(1199)), want: field.ErrorList{field.Invalid(heartbeat, nil, "lowered below 1200: keep it from 1200 to 21600")}},
		"a deadline is raised":            {old: newEvictionRequest(deadline(1201)), request: newEvictionRequest(deadline(1202)), want: field.ErrorList{field.Invalid(heartbeat, nil, "must not be greater than the current value, 1201")}},
		"the default is raised":           {old: newEvictionRequest(deadline(1200)), request: newEvictionRequest(deadline(1201)), want: field.ErrorList{field.Invalid(heartbeat, nil, "field is immutable, except that more than 1200 may be lowered: omit it, or keep 1200")}},
		"a short deadline is lowered":     {old: newEvictionRequest(deadline(300)), request: newEvictionRequest(deadline(120)), want: field.ErrorList{field.Invalid(heartbeat, nil, "field is immutable, except that more than 1200 may be lowered: omit it, or keep 300")}},
		"a short deadline is raised":      {old: newEvictionRequest(deadline(300)), request: newEvictionRequest(deadline(1200)), want: field.ErrorList{field.Invalid(heartbeat, nil, "field is immutable, except that more than 1200 may be lowered: omit it, or keep 300")}},
		"a missing deadline is made long": {old: newEvictionRequest(deadline(0)), request: newEvictionRequest(deadline(3000)), want: field.ErrorList{field.Invalid(heartbeat, nil, "or keep 1200")}},
		"another name": {
			old: newEvictionRequest(), request: newEvictionRequest(named(anotherUID)),
			want: field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), nil, "field is immutable")},
		},
		"an unconditional update": {
			old: newEvictionRequest(), request: newEvictionRequest(func(request *coordination.EvictionRequest) { request.ResourceVersion = "" }),
			want: field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), nil, "must be specified for an update")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			matcher.Test(t, test.want, ValidateEvictionRequestUpdate(test.request, test.old))
		})
	}
}

// A request that was stored without a deadline times out with the default deadline of the API.
func TestDefaultHeartbeatDeadline(t *testing.T) {
	request := &coordinationv1alpha1.EvictionRequest{}
	want := evictionrequest.HeartbeatDeadline(request)
	defaults.SetObjectDefaults_EvictionRequest(request)
	if got := evictionrequest.HeartbeatDeadline(request); request.Spec.HeartbeatDeadlineSeconds == nil || got != want {
		t.Errorf("the default of the API is %v, HeartbeatDeadline without a value is %v", got, want)
	}
}

// A request must not become so large that its status cannot be written.
// Annotations of others leave room for those of kube-apiserver.
func TestMetadataSize(t *testing.T) {
	labelled := func(bytes int) func(*coordination.EvictionRequest) {
		return func(request *coordination.EvictionRequest) {
			request.Labels = map[string]string{}
			for i := 0; i*100 < bytes; i++ {
				request.Labels[fmt.Sprintf("%060d", i)] = strings.Repeat("x", 31) // 100 bytes
			}
		}
	}
	managedBy := func(manager string, bytes int) func(*coordination.EvictionRequest) {
		return func(request *coordination.EvictionRequest) {
			request.ManagedFields = append(request.ManagedFields, metav1.ManagedFieldsEntry{
				Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "coordination.k8s.io/v1alpha1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:a":"` + strings.Repeat("x", bytes-10-len(manager)) + `"}`),
			})
		}
	}
	managed := func(bytes int) func(*coordination.EvictionRequest) { return managedBy("m", bytes) }
	finalizers := func(number int) func(*coordination.EvictionRequest) {
		return func(request *coordination.EvictionRequest) {
			for i := range number {
				request.Finalizers = append(request.Finalizers, fmt.Sprintf("example.com/%026d", i)) // 50 bytes
			}
		}
	}
	owners := func(number int) func(*coordination.EvictionRequest) {
		return func(request *coordination.EvictionRequest) {
			for i := range number {
				request.OwnerReferences = append(request.OwnerReferences, metav1.OwnerReference{
					APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("%09d", i), UID: types.UID(fmt.Sprintf("%010d", i)), // 50 bytes
				})
			}
		}
	}
	const drain = "nodemaintenance.k8s.io"
	requestedBy := func(requester string) func(*coordination.EvictionRequest) {
		return func(request *coordination.EvictionRequest) {
			request.Spec.Requesters = append(request.Spec.Requesters, coordination.Requester{Name: requester})
		}
	}
	tooLarge := field.ErrorList{field.Invalid(field.NewPath("metadata"), nil, "labels, finalizers, ownerReferences and managedFields must have at most 49152 bytes together, and have ")}
	matcher := field.ErrorMatcher{}.ByType().ByField().ByDetailSubstring()
	for name, test := range map[string]struct {
		old, request *coordination.EvictionRequest
		want         field.ErrorList
	}{
		"created with many labels": {request: newEvictionRequest(labelled(49100))},
		"created with too many":    {request: newEvictionRequest(labelled(49200)), want: tooLarge},
		"many fields":              {old: newEvictionRequest(), request: newEvictionRequest(managed(49152))},
		"too many fields":          {old: newEvictionRequest(), request: newEvictionRequest(managed(49153)), want: tooLarge},
		"too many of both":         {old: newEvictionRequest(), request: newEvictionRequest(labelled(30000), managed(20000)), want: tooLarge},
		"many finalizers":          {old: newEvictionRequest(), request: newEvictionRequest(finalizers(983))},
		"too many finalizers":      {old: newEvictionRequest(), request: newEvictionRequest(finalizers(984)), want: tooLarge},
		"too many owners":          {old: newEvictionRequest(), request: newEvictionRequest(owners(984)), want: tooLarge},
		"full, and a drain joins":  {old: newEvictionRequest(managed(49152)), request: newEvictionRequest(managed(49152), requestedBy(drain), managedBy(drain, 8192))},
		"full, and a drain joins with too much": {
			old: newEvictionRequest(managed(49152)), request: newEvictionRequest(managed(49152), requestedBy(drain), managedBy(drain, 8193)), want: tooLarge,
		},
		"full, and a drain joins with two entries": {
			old: newEvictionRequest(managed(49152)), request: newEvictionRequest(managed(49152), requestedBy(drain), managedBy(drain, 8000), managedBy(drain, 200)), want: tooLarge,
		},
		"full, and somebody joins": {
			old: newEvictionRequest(managed(49152)), request: newEvictionRequest(managed(49152), requestedBy("a.example.com"), managedBy("a.example.com", 100)), want: tooLarge,
		},
		"full, and somebody takes the name of the manager of a drain": {
			old: newEvictionRequest(managed(49152)), request: newEvictionRequest(managed(49152), managedBy(drain, 100)), want: tooLarge,
		},
		"full, and a drain withdraws": {
			old:     newEvictionRequest(managed(49152), requestedBy(drain), managedBy(drain, 200)),
			request: newEvictionRequest(managed(49152), managedBy(drain, 100)),
		},
		"full, and a drain withdraws while somebody adds labels": {
			old:     newEvictionRequest(managed(49152), requestedBy(drain), managedBy(drain, 200)),
			request: newEvictionRequest(managed(49152), managedBy(drain, 100), labelled(100)), want: tooLarge,
		},
		"full, after a drain has withdrawn": {
			old:     newEvictionRequest(managed(49152), managedBy(drain, 100)),
			request: newEvictionRequest(managed(49152), managedBy(drain, 100)),
		},
		"full, and the controller withdraws callers": {
			old: newEvictionRequest(managed(49152), requestedBy("eviction.k8s.io")), request: newEvictionRequest(managed(49152), managedBy("evictionrequest-controller", 100)),
		},
		"full, and reset before an apply": {
			old: newEvictionRequest(labelled(49100)), request: newEvictionRequest(labelled(49100), managedBy("before-first-apply", 122880)),
		},
		"full, and reset with too much": {
			old: newEvictionRequest(labelled(49100)), request: newEvictionRequest(labelled(49100), managedBy("before-first-apply", 123056)), want: tooLarge,
		},
		"too many stored, reduced":  {old: newEvictionRequest(labelled(90000)), request: newEvictionRequest(labelled(80000))},
		"too many stored, the same": {old: newEvictionRequest(labelled(90000)), request: newEvictionRequest(labelled(90000))},
		"too many stored, one more": {old: newEvictionRequest(labelled(90000)), request: newEvictionRequest(labelled(90100)), want: tooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if test.old == nil {
				matcher.Test(t, test.want, ValidateEvictionRequestCreate(test.request))
				return
			}
			matcher.Test(t, test.want, ValidateEvictionRequestUpdate(test.request, test.old))
		})
	}
}
