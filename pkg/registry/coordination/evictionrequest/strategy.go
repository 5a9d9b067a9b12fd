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
	"fmt"
	"slices"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/component-helpers/plaintext"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/coordination/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// strategy is the strategy of the main endpoint: it updates metadata and spec, and ignores the
// status.
type strategy struct {
	rest.DeclarativeValidation
	names.NameGenerator

	// targets reads the pods of new requests. Nil leaves to the controller what depends on them.
	targets TargetReader
}

// NewStrategy returns the strategy of a server that stores pods as well.
func NewStrategy(targets TargetReader) *strategy {
	s := *Strategy
	s.targets = targets
	return &s
}

// statusStrategy is the strategy of the status endpoint: it updates only the status.
type statusStrategy struct {
	*strategy

	// Clock is the clock of the server, with which writers of a status have to agree, and from which
	// the times of new requests are. A test may replace it before it starts a server.
	Clock clock.PassiveClock
}

var (
	// Strategy applies to creation, update and deletion of EvictionRequests.
	Strategy = &strategy{DeclarativeValidation: rest.DeclarativeValidation{Scheme: legacyscheme.Scheme}, NameGenerator: names.SimpleNameGenerator}

	// StatusStrategy applies to updates of their status.
	StatusStrategy = &statusStrategy{strategy: Strategy, Clock: clock.RealClock{}}
)

func (*strategy) NamespaceScoped() bool { return true }

// GetResetFields returns the fields that this endpoint ignores, so that no field manager owns them
// after an apply to this endpoint.
func (*strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		"coordination.k8s.io/v1alpha1": fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

func (s *strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	request := obj.(*coordination.EvictionRequest)
	request.Status = coordination.EvictionRequestStatus{}
	request.Generation = 1
	setWithdrawnBy(request, "")
	s.initialize(ctx, request)
	stampProgress(&request.Status, &coordination.EvictionRequestStatus{}, StatusStrategy.Clock.Now())
}

func (*strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateEvictionRequestCreate(obj.(*coordination.EvictionRequest))
}

func (*strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string { return nil }

func (*strategy) Canonicalize(obj runtime.Object) {}

func (*strategy) AllowCreateOnUpdate(ctx context.Context) bool { return false }

func (*strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	request, oldRequest := obj.(*coordination.EvictionRequest), old.(*coordination.EvictionRequest)
	request.Status = oldRequest.Status
	noteWithdrawal(ctx, request, oldRequest)
	keepLoweredDeadline(ctx, request, oldRequest)
	// The controller reports the generation that it has observed. Labels, which it copies from the
	// pod itself, must not look like a change of the spec.
	if !apiequality.Semantic.DeepEqual(oldRequest.Spec, request.Spec) {
		request.Generation = oldRequest.Generation + 1
	}
}

// keepLoweredDeadline keeps a deadline that others have lowered since a client has set a higher one, which tools apply
// again and again. Values that cannot have been lowered are immutable, see validation.
func keepLoweredDeadline(ctx context.Context, request, old *coordination.EvictionRequest) {
	const standard = coordinationv1alpha1.DefaultHeartbeatDeadlineSeconds
	asked, stored := ptr.Deref(request.Spec.HeartbeatDeadlineSeconds, standard), ptr.Deref(old.Spec.HeartbeatDeadlineSeconds, standard)
	if stored <= standard || asked <= stored {
		return
	}
	request.Spec.HeartbeatDeadlineSeconds = ptr.To(stored)
	warning.AddWarning(ctx, "", fmt.Sprintf("spec.heartbeatDeadlineSeconds: stays %d, because another requester needs no more than that, and the smallest counts", stored))
}

// maxUserName is how much of the name of a user is stored.
const maxUserName = 253

// noteWithdrawal records who removes a requester: field managers of removed entries are not kept, and whoever requests
// the eviction again has to be able to say with whom it disagrees.
func noteWithdrawal(ctx context.Context, request, old *coordination.EvictionRequest) {
	by := old.Annotations[coordinationv1alpha1.EvictionWithdrawnByAnnotation]
	isLeft := func(requester coordination.Requester) bool {
		return slices.Contains(request.Spec.Requesters, requester)
	}
	if user, known := genericapirequest.UserFrom(ctx); known && slices.ContainsFunc(old.Spec.Requesters, func(r coordination.Requester) bool { return !isLeft(r) }) {
		by = plaintext.Truncate(user.GetName(), maxUserName)
	}
	setWithdrawnBy(request, by)
}

// setWithdrawnBy sets the annotation, which clients cannot change, or removes it.
func setWithdrawnBy(request *coordination.EvictionRequest, by string) {
	switch _, found := request.Annotations[coordinationv1alpha1.EvictionWithdrawnByAnnotation]; {
	case by == "" && found:
		delete(request.Annotations, coordinationv1alpha1.EvictionWithdrawnByAnnotation)
	case by != "" && request.Annotations == nil:
		request.Annotations = map[string]string{coordinationv1alpha1.EvictionWithdrawnByAnnotation: by}
	case by != "":
		request.Annotations[coordinationv1alpha1.EvictionWithdrawnByAnnotation] = by
	}
}

func (*strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateEvictionRequestUpdate(obj.(*coordination.EvictionRequest), old.(*coordination.EvictionRequest))
}

func (*strategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string { return nil }

// AllowUnconditionalUpdate returns false: a requester that replaces the object without a
// resourceVersion would remove requesters that were added since it read the object.
func (*strategy) AllowUnconditionalUpdate(ctx context.Context) bool { return false }

// GetResetFields returns the fields that the status endpoint ignores.
func (*statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		"coordination.k8s.io/v1alpha1": fieldpath.NewSet(
			fieldpath.MakePathOrDie("metadata"),
			fieldpath.MakePathOrDie("spec"),
		),
	}
}

func (s *statusStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	request, oldRequest := obj.(*coordination.EvictionRequest), old.(*coordination.EvictionRequest)
	request.Spec = oldRequest.Spec
	metav1.ResetObjectMetaForStatus(&request.ObjectMeta, &oldRequest.ObjectMeta)
	truncateTimes(&request.Status)
	stampTimes(&request.Status, &oldRequest.Status, s.Clock.Now())
	stampProgress(&request.Status, &oldRequest.Status, s.Clock.Now())
}

// truncateTimes removes fractions of seconds, which clients in some languages send and which are
// not stored. Otherwise, an immutable time would seem to change when such a client sends it again.
func truncateTimes(status *coordination.EvictionRequestStatus) {
	status.ActivationTime = truncated(status.ActivationTime)
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		condition.LastTransitionTime = *truncated(&condition.LastTransitionTime)
	}
	for i := range status.Interceptors {
		entry := &status.Interceptors[i]
		entry.HeartbeatTime = truncated(entry.HeartbeatTime)
		entry.ExpectedFinishTime = truncated(entry.ExpectedFinishTime)
		entry.StartTime = truncated(entry.StartTime)
		entry.CompletionTime = truncated(entry.CompletionTime)
	}
}

func truncated(value *metav1.Time) *metav1.Time {
	if value == nil {
		return nil
	}
	return &metav1.Time{Time: value.Truncate(time.Second)}
}

func (s *statusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateEvictionRequestStatusUpdate(obj.(*coordination.EvictionRequest), old.(*coordination.EvictionRequest), s.Clock.Now())
}
