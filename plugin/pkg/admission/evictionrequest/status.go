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
	"reflect"
	"slices"
	"strings"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/coordination/evictioninterceptor"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// statusChange is a field that an update of the status changes.
type statusChange struct {
	// field is the path of the field.
	field string
	// interceptor is the name of the interceptor that may change it. It is empty if only
	// controllers may.
	interceptor string
	// escalates is whether interceptors are passed over, which needs a verb of its own.
	escalates bool
}

// validateStatusUpdate returns an error unless the user may change each field that the update
// changes. The permission to write to the endpoint is not sufficient: every interceptor has it.
func (p *Plugin) validateStatusUpdate(ctx context.Context, a admission.Attributes, request, old *coordination.EvictionRequest) error {
	changes := statusChangesOf(request, old)
	if len(changes) == 0 {
		return nil
	}
	if i := slices.IndexFunc(changes, func(change statusChange) bool { return change.interceptor == "" && !change.escalates }); i >= 0 {
		return p.authorizeControl(ctx, a, old, changes[i].field)
	}
	missing := p.authorizeReports(ctx, a, old, changes)
	if missing == nil {
		return nil
	}
	// A controller needs no additional permission for the interceptors that it acts for.
	if p.authorizeControl(ctx, a, old, changes[0].field) == nil {
		return nil
	}
	return missing
}

// authorizeReports returns an error unless the user may report as each interceptor to which a
// changed field belongs.
func (p *Plugin) authorizeReports(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest, changes []statusChange) error {
	var authorized string
	for _, change := range changes {
		if change.escalates {
			if err := p.authorizeEscalation(ctx, a, request, change); err != nil {
				return err
			}
			continue
		}
		// A report often includes the cancellation policy: one check covers both.
		if change.interceptor == authorized {
			continue
		}
		if err := p.authorizeReport(ctx, a, request, change); err != nil {
			return err
		}
		authorized = change.interceptor
	}
	return nil
}

// authorizeReport returns an error unless the user may report as the interceptor to which the
// changed field belongs.
func (p *Plugin) authorizeReport(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest, change statusChange) error {
	// Who has all permissions in a namespace must not act as the controllers of Kubernetes, which other interceptors
	// cannot replace.
	namespace, where := a.GetNamespace(), fmt.Sprintf("in namespace %q; grant it with the rule {apiGroups: [%s], resources: [%s], resourceNames: [%s], verbs: [%s]}",
		a.GetNamespace(), coordination.GroupName, coordinationv1alpha1.EvictionInterceptorResource, change.interceptor, coordinationv1alpha1.EvictionInterceptVerb)
	if evictioninterceptor.IsReserved(change.interceptor) {
		namespace, where = metav1.NamespaceAll, "in all namespaces, which only the controllers of Kubernetes should have"
	}
	allowed, err := p.isAllowed(ctx, authorizer.AttributesRecord{
		User:       a.GetUserInfo(),
		Verb:       coordinationv1alpha1.EvictionInterceptVerb,
		Namespace:  namespace,
		APIGroup:   coordination.GroupName,
		APIVersion: "*", // It is a virtual resource without a version.
		Resource:   coordinationv1alpha1.EvictionInterceptorResource,
		Name:       change.interceptor,
	})
	switch {
	case allowed:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to change %s: %w", a.GetUserInfo().GetName(), change.field, err))
	}
	return forbidden(a, request, fmt.Errorf("user %q cannot change %s, which belongs to the interceptor %s: "+
		"this requires the verb %q on the resource %q in API group %q with the name %q %s",
		a.GetUserInfo().GetName(), change.field, change.interceptor,
		coordinationv1alpha1.EvictionInterceptVerb, coordinationv1alpha1.EvictionInterceptorResource, coordination.GroupName, change.interceptor, where))
}

// authorizeEscalation returns an error unless the user may pass over interceptors, in all namespaces: a Role with
// wildcards does not mean that.
func (p *Plugin) authorizeEscalation(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest, change statusChange) error {
	return p.authorizeStatus(ctx, a, request, change.field, coordinationv1alpha1.EvictionRequestEscalateVerb, "which passes over interceptors", ", by a ClusterRoleBinding")
}

// authorizeControl returns an error unless the user may change all fields, in all namespaces: who has all
// permissions in one could otherwise claim that its pods are evicted, and keep them on nodes in maintenance.
func (p *Plugin) authorizeControl(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest, field string) error {
	return p.authorizeStatus(ctx, a, request, field, coordinationv1alpha1.EvictionRequestControlVerb, "which belongs to the eviction request controller",
		", which only controllers should have; an interceptor may change only its own entry in status.interceptors, conditions that begin with its name and, while it is active, status.evictionRequestCancellationPolicy")
}

// authorizeStatus returns an error, with why the field is protected and what is possible instead, unless
// the user has the verb on the status of the request in all namespaces. A Role never grants it, so whoever has
// all permissions in one namespace has not been given it by accident.
func (p *Plugin) authorizeStatus(ctx context.Context, a admission.Attributes, request *coordination.EvictionRequest, field, verb, why, instead string) error {
	allowed, err := p.isAllowed(ctx, authorizer.AttributesRecord{
		User:        a.GetUserInfo(),
		Verb:        verb,
		Namespace:   metav1.NamespaceAll,
		APIGroup:    a.GetResource().Group,
		APIVersion:  a.GetResource().Version,
		Resource:    a.GetResource().Resource,
		Subresource: a.GetSubresource(),
		Name:        request.Name,
	})
	switch {
	case allowed:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorizing user %q to change %s: %w", a.GetUserInfo().GetName(), field, err))
	}
	return forbidden(a, request, fmt.Errorf("user %q cannot change %s, %s: this requires the verb %q on the resource %q in API group %q in all namespaces%s",
		a.GetUserInfo().GetName(), field, why, verb, a.GetResource().Resource+"/"+a.GetSubresource(), coordination.GroupName, instead))
}

// statusChangesOf returns the fields that an update of the status changes.
func statusChangesOf(request, old *coordination.EvictionRequest) []statusChange {
	var changes []statusChange
	if !apiequality.Semantic.DeepEqual(withoutStatus(request), withoutStatus(old)) {
		changes = append(changes, statusChange{field: "metadata or spec"})
	}
	// Iterates over all fields of the type, so that a new field belongs to the controller unless it
	// is handled here.
	status, oldStatus := reflect.ValueOf(request.Status), reflect.ValueOf(old.Status)
	for i := range status.NumField() {
		name := status.Type().Field(i).Name
		path := "status." + strings.ToLower(name[:1]) + name[1:]
		switch {
		case apiequality.Semantic.DeepEqual(status.Field(i).Interface(), oldStatus.Field(i).Interface()):
		case name == "Conditions":
			changes = append(changes, conditionChangesOf(path, request.Status.Conditions, &old.Status)...)
		case name == "Interceptors":
			changes = append(changes, reportsOf(path, request.Status.Interceptors, old.Status.Interceptors)...)
		case name == "EvictionRequestCancellationPolicy" && len(old.Status.ActiveInterceptors) == 1:
			changes = append(changes, statusChange{field: path, interceptor: old.Status.ActiveInterceptors[0]})
		default:
			changes = append(changes, statusChange{field: path})
		}
	}
	return changes
}

// conditionChangesOf returns the changes of conditions. Interceptors of the request own those that begin with
// their names.
func conditionChangesOf(path string, conditions []metav1.Condition, old *coordination.EvictionRequestStatus) []statusChange {
	const skipped = string(coordination.EvictionRequestConditionInterceptorsSkipped)
	oldConditions := writtenByClients(old.Conditions)
	conditions = writtenByClients(conditions)
	if !slices.Equal(typesIn(conditions, oldConditions), typesIn(oldConditions, conditions)) {
		return []statusChange{{field: path}} // Their order, or one that is there twice.
	}
	types := sets.New[string]()
	for _, condition := range slices.Concat(conditions, oldConditions) {
		if !apiequality.Semantic.DeepEqual(meta.FindStatusCondition(conditions, condition.Type), meta.FindStatusCondition(oldConditions, condition.Type)) {
			types.Insert(condition.Type)
		}
	}
	var changes []statusChange
	for _, conditionType := range sets.List(types) {
		field, owner := fmt.Sprintf("%s[%s]", path, conditionType), interceptorOf(conditionType, old)
		switch {
		case conditionType == skipped && meta.IsStatusConditionTrue(conditions, skipped) && !meta.IsStatusConditionTrue(oldConditions, skipped):
			changes = append(changes, statusChange{field: field, escalates: true})
		case owner != "":
			changes = append(changes, statusChange{field: field, interceptor: owner})
		default:
			return []statusChange{{field: path}}
		}
	}
	return changes
}

// writtenByClients returns the conditions without those that kube-apiserver sets itself, whatever a client sends.
func writtenByClients(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(condition metav1.Condition) bool {
		return condition.Type == string(coordination.EvictionRequestConditionReconciling) || condition.Type == string(coordination.EvictionRequestConditionStalled)
	})
}

// typesIn returns the types of those conditions that others have as well.
func typesIn(conditions, others []metav1.Condition) []string {
	var types []string
	for _, condition := range conditions {
		if meta.FindStatusCondition(others, condition.Type) != nil {
			types = append(types, condition.Type)
		}
	}
	return types
}

// interceptorOf returns the interceptor of the request to which a type of conditions belongs, or "".
func interceptorOf(conditionType string, status *coordination.EvictionRequestStatus) string {
	var names []string
	for _, interceptor := range status.TargetInterceptors {
		names = append(names, interceptor.Name)
	}
	return evictioninterceptor.ConditionOwner(conditionType, names)
}

// reportsOf returns the changed entries. Interceptors must not add, remove, rename or reorder
// entries.
func reportsOf(path string, entries, old []coordination.InterceptorStatus) []statusChange {
	sameName := func(entry, old coordination.InterceptorStatus) bool { return entry.Name == old.Name }
	if !slices.EqualFunc(entries, old, sameName) {
		return []statusChange{{field: path}}
	}
	var changes []statusChange
	for i, entry := range entries {
		if !apiequality.Semantic.DeepEqual(entry, old[i]) {
			changes = append(changes, statusChange{field: fmt.Sprintf("%s[%s]", path, entry.Name), interceptor: entry.Name})
		}
	}
	return changes
}

// withoutStatus returns a copy with the fields that updates of the status must not change. The
// ownership of fields of the status changes with each update. The ownership of fields of the spec
// does not: a writer that took it over could prevent requesters from withdrawing.
func withoutStatus(request *coordination.EvictionRequest) *coordination.EvictionRequest {
	request = request.DeepCopy()
	request.Status = coordination.EvictionRequestStatus{}
	request.ResourceVersion = ""
	request.ManagedFields = slices.DeleteFunc(request.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Subresource != "" })
	return request
}
