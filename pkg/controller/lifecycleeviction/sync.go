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

package lifecycleeviction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/utils/ptr"
)

// fieldManager owns the requesters of the group in the requests of the other one, and their reports.
const fieldManager = "lifecycle.k8s.io"

// wrote notes what was written about a pod.
func (c *Controller) wrote(t *target, resource schema.GroupResource, object metav1.Object) {
	c.written.WroteAt(types.NamespacedName{Namespace: t.namespace, Name: string(t.uid)}, t.uid, resource, object.GetResourceVersion())
}

// target is all that is known about the eviction of one pod.
type target struct {
	key, namespace, name string
	uid                  types.UID
	now                  time.Time
	// requests and evictions are those of the group, wanted are the requesters that have not withdrawn.
	requests  []*lifecyclev1alpha1.EvictionRequest
	evictions []*lifecyclev1alpha1.Eviction
	wanted    sets.Set[string]
	// request is that of the other group, or nil, and pod is nil if it is not in the cache.
	request *coordinationv1alpha1.EvictionRequest
	pod     *v1.Pod
	// successor is the UID of another pod that has the name, and others are requests for a pod of this UID with another name.
	successor types.UID
	others    []*lifecyclev1alpha1.EvictionRequest
}

// sync brings the objects about a pod into agreement. It returns when to do so again without an event.
func (c *Controller) sync(ctx context.Context, key string) (after time.Duration, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, err
	}
	if c.written.EnsureReady(types.NamespacedName{Namespace: namespace, Name: name}) != nil {
		return catchUpInterval, nil
	}
	t, err := c.read(key)
	if err != nil || t == nil {
		return 0, err
	}
	current := t.current()
	end, wait, err := c.invalid(ctx, t, current)
	if err != nil {
		return 0, err
	}
	// What cannot be written must not keep responders from acting, nor requesters from hearing of it.
	var errs []error
	if !end.isFinal() {
		errs = append(errs, c.request(ctx, t))
		if t.request != nil {
			end = outcomeOf(t.request)
		}
	}
	eviction, later, err := c.evict(ctx, t, current, end)
	if err != nil {
		eviction = current
	}
	errs, wait = append(errs, err), earlier(wait, later)
	conditions := []metav1.Condition(nil)
	switch {
	case eviction == nil:
	case hasFailed(eviction) && len(t.wanted) > 0 && (!end.isFinal() || end.failedReason == lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters):
		end = awaiting // It is requested again, and gets another Eviction.
	default:
		next, later, err := c.report(ctx, t, eviction, end)
		conditions, wait, errs = next.Conditions, earlier(wait, later), append(errs, err)
	}
	errs = append(errs, c.answer(ctx, t, conditions, end))
	return wait, errors.Join(errs...)
}

func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// read returns what the caches have about a pod, or nil if it does not concern this controller.
func (c *Controller) read(key string) (*target, error) {
	namespace, uid, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	t := &target{key: key, namespace: namespace, uid: types.UID(uid), now: c.clock.Now()}
	requests, err := c.requests.ByIndex(targetIndex, key)
	if err != nil {
		return nil, err
	}
	for _, obj := range requests {
		t.requests = append(t.requests, obj.(*lifecyclev1alpha1.EvictionRequest))
	}
	evictions, err := c.evictions.ByIndex(targetIndex, key)
	if err != nil {
		return nil, err
	}
	for _, obj := range evictions {
		t.evictions = append(t.evictions, obj.(*lifecyclev1alpha1.Eviction))
	}
	if request, err := c.own.EvictionRequests(namespace).Get(uid); err == nil {
		t.request = request
	}
	if len(t.requests) == 0 && len(t.evictions) == 0 && (t.request == nil || !concerns(t.request)) {
		c.forgetAll(key)
		return nil, nil
	}
	c.identify(t)
	t.wanted = wantedBy(t.requests)
	if pod, err := c.pods.Pods(namespace).Get(t.name); err == nil {
		if t.successor = pod.UID; pod.UID == t.uid {
			t.pod, t.successor = pod, ""
		}
	}
	return t, nil
}

// identify finds the name of the pod. Objects of others may have its UID with another name: whoever may delete one pod must
// not have an effect on another one, nor keep others from it. So the name is that of the request, or of those that ask for
// this pod, and the others are none of it.
func (c *Controller) identify(t *target) {
	slices.SortFunc(t.requests, func(a, b *lifecyclev1alpha1.EvictionRequest) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	isPod := func(request *lifecyclev1alpha1.EvictionRequest) bool {
		pod, err := c.pods.Pods(t.namespace).Get(request.Spec.Target.Pod.Name)
		return err == nil && pod.UID == t.uid
	}
	switch at := slices.IndexFunc(t.requests, isPod); {
	case t.request != nil && t.request.Spec.Target.Pod != nil:
		t.name = t.request.Spec.Target.Pod.Name
	case at >= 0:
		t.name = t.requests[at].Spec.Target.Pod.Name
	case len(t.requests) > 0:
		t.name = t.requests[0].Spec.Target.Pod.Name
	case len(t.evictions) > 0:
		t.name = t.evictions[0].Spec.Target.Pod.Name
	}
	t.requests = slices.DeleteFunc(t.requests, func(request *lifecyclev1alpha1.EvictionRequest) bool {
		isOther := request.Spec.Target.Pod.Name != t.name
		if isOther {
			t.others = append(t.others, request)
		}
		return isOther
	})
	t.evictions = slices.DeleteFunc(t.evictions, func(eviction *lifecyclev1alpha1.Eviction) bool { return eviction.Spec.Target.Pod.Name != t.name })
}

// current returns the Eviction that shows the request: the first one that has not failed, or the last one; nil if there is
// none. Others may have made further ones by hand, which have no effect.
func (t *target) current() *lifecyclev1alpha1.Eviction {
	sorted := slices.SortedFunc(slices.Values(t.evictions), func(a, b *lifecyclev1alpha1.Eviction) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(numberOf(a), numberOf(b)))
	})
	for _, eviction := range sorted {
		if !hasFailed(eviction) {
			return eviction
		}
	}
	if len(sorted) == 0 {
		return nil
	}
	return sorted[len(sorted)-1]
}

// invalid returns why requests cannot have an effect, and after which time a pod that is missing has appeared, or not.
func (c *Controller) invalid(ctx context.Context, t *target, eviction *lifecyclev1alpha1.Eviction) (end outcome, wait time.Duration, err error) {
	hasBegun := eviction != nil && len(eviction.Status.TargetResponders) > 0 && !hasFailed(eviction) && !isEvicted(t.evictions)
	switch {
	case t.request == nil && t.pod != nil && hasBegun:
		// Somebody has deleted the request in the middle, or the cache is behind.
		_, err := c.client.CoordinationV1alpha1().EvictionRequests(t.namespace).Get(ctx, string(t.uid), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return failedAs(lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters, "The request was deleted."), 0, nil
		case err != nil:
			return end, 0, fmt.Errorf("reading the request for pod %s: %w", t.name, err)
		}
		return awaiting, catchUpInterval, nil
	case t.request == nil && t.pod == nil && hasBegun:
		// The request is gone as well, while nobody has written the end.
		return evictedAs(lifecyclev1alpha1.EvictionConditionReasonPodDeleted, fmt.Sprintf("Target Pod %s was deleted.", t.name)), 0, nil
	case t.pod != nil || t.request != nil || len(t.wanted) == 0:
		c.forget(t.key)
		return awaiting, 0, nil
	}
	if t.successor != "" {
		return failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, fmt.Sprintf("Target pod UID mismatch: expected %s, got %s.", t.uid, t.successor)), 0, nil
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	since, found := c.missing[t.key]
	if !found {
		since = t.now
		c.missing[t.key] = since
	}
	if wait := since.Add(missingPodTimeout).Sub(t.now); wait > 0 {
		return awaiting, wait, nil
	}
	return failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, "Target pod not found."), 0, nil
}

func (c *Controller) forget(key string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.missing, key)
}

// forgetAll forgets a pod that does not concern this controller any more.
func (c *Controller) forgetAll(key string) {
	c.forget(key)
	c.forgetForeign(key)
	c.lock.Lock()
	delete(c.restored, key)
	delete(c.reported, key)
	c.lock.Unlock()
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	c.written.Clear(types.NamespacedName{Namespace: namespace, Name: name}, "")
}

func (c *Controller) forgetForeign(key string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.foreign, key)
}

// request has the requesters of the group in the request of the other one, as long as they have not withdrawn.
func (c *Controller) request(ctx context.Context, t *target) error {
	needed, err := c.needsRequest(ctx, t)
	if !needed || err != nil {
		return err
	}
	requesters := []*coordinationapply.RequesterApplyConfiguration{}
	for _, name := range sets.List(t.wanted) {
		requesters = append(requesters, coordinationapply.Requester().WithName(name))
	}
	apply := coordinationapply.EvictionRequest(string(t.uid), t.namespace).WithSpec(coordinationapply.EvictionRequestSpec().
		WithTarget(coordinationapply.EvictionTarget().WithPod(coordinationapply.LocalPodReference().WithName(t.name).WithUID(string(t.uid)))).
		WithRequesters(requesters...))
	if len(requesters) == 0 {
		apply.WithUID(t.request.UID) // If it is gone, no other one is created.
	}
	applied, err := c.client.CoordinationV1alpha1().EvictionRequests(t.namespace).Apply(ctx, apply, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("requesting the eviction of pod %s: %w", t.name, err)
	}
	t.request = applied
	c.wrote(t, ownResource, applied)
	c.forgetForeign(t.key) // Who else has one of the names, the next reading says.
	return nil
}

// needsRequest reports whether the request lacks a requester of the group, or has one that has withdrawn. Who has which
// name there, only the owners of fields say, which caches do not have: they are read once for each change of the request.
func (c *Controller) needsRequest(ctx context.Context, t *target) (bool, error) {
	if t.request == nil {
		return len(t.wanted) > 0 && t.pod != nil && !isEvicted(t.evictions), nil
	}
	if evictionrequest.StateOf(t.request) == evictionrequest.StateEvicted {
		return false, nil
	}
	has := sets.New[string]()
	for _, requester := range t.request.Spec.Requesters {
		if strings.Contains(requester.Name, "/") {
			has.Insert(requester.Name)
		}
	}
	if !has.IsSuperset(t.wanted) {
		return true, nil
	}
	withdrawn := has.Difference(t.wanted)
	if len(withdrawn) == 0 {
		return false, nil
	}
	known, found := c.foreignIn(t.key, t.request)
	if !found {
		var err error
		if known, err = c.readForeign(ctx, t); err != nil {
			return false, err
		}
	}
	return !known.IsSuperset(withdrawn), nil
}

// readForeign reads which requesters of the request have not come by the group.
func (c *Controller) readForeign(ctx context.Context, t *target) (sets.Set[string], error) {
	live, err := c.client.CoordinationV1alpha1().EvictionRequests(t.namespace).Get(ctx, t.request.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading who requests the eviction of pod %s: %w", t.name, err)
	}
	ours, err := coordinationapply.ExtractEvictionRequest(live, fieldManager) //nolint:forbidigo // It is read from the API server, with its managedFields.
	if err != nil {
		return nil, fmt.Errorf("reading who requests the eviction of pod %s: %w", t.name, err)
	}
	names := sets.New[string]()
	for _, requester := range live.Spec.Requesters {
		names.Insert(requester.Name)
	}
	if ours.Spec != nil {
		for _, requester := range ours.Spec.Requesters {
			names.Delete(ptr.Deref(requester.Name, ""))
		}
	}
	c.noteForeign(t.key, live, names)
	return names, nil
}

func isEvicted(evictions []*lifecyclev1alpha1.Eviction) bool {
	return slices.ContainsFunc(evictions, hasSucceeded)
}

func hasSucceeded(eviction *lifecyclev1alpha1.Eviction) bool {
	return meta.IsStatusConditionTrue(eviction.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionTargetEvicted))
}

func hasFailed(eviction *lifecyclev1alpha1.Eviction) bool {
	return meta.IsStatusConditionTrue(eviction.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionFailed))
}

// evict returns the Eviction of the pod: the current one, or a new one after one that has failed; nil if there is none. It
// also returns when to write what is not written yet.
func (c *Controller) evict(ctx context.Context, t *target, current *lifecyclev1alpha1.Eviction, end outcome) (*lifecyclev1alpha1.Eviction, time.Duration, error) {
	goesOn := t.request != nil && !end.isFinal()
	var known []lifecyclev1alpha1.Requester
	if current != nil {
		known = current.Status.Requesters
	}
	requesters := requestersOf(known, t.wanted, t.request)
	labels, owners := labelsOf(requesters, t.pod), ownersOf(t.requests, t.wanted, t.request)
	isNew := current == nil || hasFailed(current) && goesOn
	if t.pod == nil && !isNew {
		labels = nil // Nobody knows any more who the responders are.
	}
	switch {
	case current == nil && len(t.wanted) == 0 && !(goesOn && t.hasResponders()):
		return nil, 0, nil
	case !isNew && !needsLabels(current, labels, owners):
		return current, 0, nil
	}
	if wait := c.mayWrite(c.restored, t.key, t.now); wait > 0 {
		return current, wait, nil
	}
	var err error
	if isNew {
		current, err = c.create(ctx, t, labels, owners)
	} else {
		current, err = c.relabel(ctx, t, current, labels, owners)
	}
	return current, 0, err
}

// maxNamesTried is how many names of Evictions are tried, if others have made ones for other pods with these names, before
// one is generated. A number above maxNumber is not ours.
const maxNamesTried, maxNumber = 10, 1000000

// create creates the next Eviction of the pod.
func (c *Controller) create(ctx context.Context, t *target, labels map[string]string, owners []metav1.OwnerReference) (*lifecyclev1alpha1.Eviction, error) {
	// Also those of other pods that had the name.
	sameName, err := c.evictions.ByIndex(nameIndex, t.namespace+"/"+t.name)
	if err != nil {
		return nil, err
	}
	number := 1
	for _, obj := range sameName {
		number = max(number, numberOf(obj.(*lifecyclev1alpha1.Eviction))+1)
	}
	evictions := c.client.LifecycleV1alpha1().Evictions(t.namespace)
	for last := number + maxNamesTried; ; number++ {
		eviction := &lifecyclev1alpha1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: nameOf(number, t.name), Labels: labels, OwnerReferences: owners},
			Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: t.name, UID: t.uid}}},
		}
		if number == last {
			eviction.Name, eviction.GenerateName = "", nameOf(number, t.name)+"-"
		}
		created, err := evictions.Create(ctx, eviction, metav1.CreateOptions{FieldManager: fieldManager})
		switch {
		case err == nil:
			c.wrote(t, evictionResource, created)
			return created, nil
		case !apierrors.IsAlreadyExists(err) || number == last:
			return nil, fmt.Errorf("creating the Eviction of pod %s: %w", t.name, err)
		}
		existing, readErr := evictions.Get(ctx, eviction.Name, metav1.GetOptions{})
		if readErr != nil {
			return nil, err
		}
		if pod := existing.Spec.Target.Pod; pod != nil && pod.UID == t.uid && pod.Name == t.name {
			return nil, err // The cache is behind.
		}
	}
}

// nameOf returns the name of an Eviction, which only informs: it may not be longer than that of a pod.
func nameOf(number int, pod string) string {
	name := fmt.Sprintf("pod-%d-%s", number, pod)
	return strings.TrimRight(name[:min(len(name), validation.DNS1123SubdomainMaxLength)], "-.")
}

// numberOf returns the number in the name of an Eviction, pod-NUMBER-NAME; zero if it has none.
func numberOf(eviction *lifecyclev1alpha1.Eviction) int {
	digits, _, _ := strings.Cut(strings.TrimPrefix(eviction.Name, "pod-"), "-")
	number, err := strconv.Atoi(digits)
	if err != nil || number < 0 || number > maxNumber {
		return 0
	}
	return number
}

// needsLabels reports whether the labels and owners of an Eviction do not say who takes part.
func needsLabels(eviction *lifecyclev1alpha1.Eviction, labels map[string]string, owners []metav1.OwnerReference) bool {
	for key, value := range labels {
		if eviction.Labels[key] != value {
			return true
		}
	}
	return slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return !isOwnedBy(eviction, owner.UID) })
}

func isOwnedBy(eviction *lifecyclev1alpha1.Eviction, owner types.UID) bool {
	return slices.ContainsFunc(eviction.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner })
}

// relabel has the labels and owners of an Eviction say who takes part. Others that somebody has set stay.
func (c *Controller) relabel(ctx context.Context, t *target, eviction *lifecyclev1alpha1.Eviction, labels map[string]string, owners []metav1.OwnerReference) (*lifecyclev1alpha1.Eviction, error) {
	changed := eviction.DeepCopy()
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	maps.Copy(changed.Labels, labels)
	for _, owner := range owners {
		if !isOwnedBy(changed, owner.UID) {
			changed.OwnerReferences = append(changed.OwnerReferences, owner)
		}
	}
	updated, err := c.client.LifecycleV1alpha1().Evictions(eviction.Namespace).Update(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, fmt.Errorf("writing the labels of Eviction %s: %w", eviction.Name, err)
	}
	c.wrote(t, evictionResource, updated)
	return updated, nil
}

// report writes the status of an Eviction, and has the other request say what the active responder reports. It returns the
// status as it is then.
func (c *Controller) report(ctx context.Context, t *target, eviction *lifecyclev1alpha1.Eviction, end outcome) (*lifecyclev1alpha1.EvictionStatus, time.Duration, error) {
	wait, copyErr := c.copyReport(ctx, t, eviction)
	next, after := eviction.Status.DeepCopy(), time.Duration(0)
	switch {
	case hasSucceeded(eviction) || hasFailed(eviction): // Final, also if the other request is gone.
	case t.request != nil:
		next, after = nextStatus(eviction, t.request, t.responders(), t.now)
	case end.isFinal():
		if active := activeOf(next); active != nil {
			active.State = finalState(next, active, end)
		}
		setOutcome(&next.Conditions, end, eviction.Generation, t.now)
	}
	next.Requesters = requestersOf(eviction.Status.Requesters, t.wanted, t.request)
	if after > 0 && len(eviction.Status.Conditions) == 0 || apiequality.Semantic.DeepEqual(next, &eviction.Status) {
		return next, earlier(wait, after), copyErr
	}
	changed := eviction.DeepCopy()
	changed.Status = *next
	updated, err := c.client.LifecycleV1alpha1().Evictions(t.namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return &eviction.Status, 0, errors.Join(copyErr, fmt.Errorf("writing the status of Eviction %s: %w", eviction.Name, err))
	}
	c.wrote(t, evictionResource, updated)
	return next, earlier(wait, after), copyErr
}

// hasResponders reports whether responders of the pod are among the interceptors of the request.
func (t *target) hasResponders() bool {
	return t.pod != nil && slices.ContainsFunc(t.pod.Spec.EvictionResponders, func(responder v1.EvictionResponder) bool {
		return slices.ContainsFunc(t.request.Status.TargetInterceptors, func(i coordinationv1alpha1.Interceptor) bool { return i.Name == responder.Name })
	})
}

// responders returns the responders of the pod. If it is gone, nobody knows them any more but an Eviction that lists them,
// and only the last one can have its turn.
func (t *target) responders() []lifecyclev1alpha1.TargetResponder {
	if t.pod != nil {
		return respondersOf(t.pod)
	}
	return respondersOf(&v1.Pod{})
}

// copyReport has the request say what the active responder reports, and returns when to do so if that is too early now.
func (c *Controller) copyReport(ctx context.Context, t *target, eviction *lifecyclev1alpha1.Eviction) (wait time.Duration, err error) {
	if t.request == nil || len(t.request.Status.ActiveInterceptors) == 0 {
		return 0, nil
	}
	report, wait := nextReport(eviction, t.request, t.now)
	if report == nil {
		return wait, nil
	}
	if report.CompletionTime == nil {
		// A responder may report as often as it likes.
		if wait := c.mayWrite(c.reported, t.key, t.now); wait > 0 {
			return wait, nil
		}
	}
	changed := t.request.DeepCopy()
	*evictionrequest.InterceptorStatusOf(&changed.Status, report.Name) = *report
	updated, err := c.client.CoordinationV1alpha1().EvictionRequests(t.namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return 0, fmt.Errorf("reporting as %s: %w", report.Name, err)
	}
	t.request = updated
	c.wrote(t, ownResource, updated)
	return wait, nil
}

// answer writes the statuses of the EvictionRequests of the group.
func (c *Controller) answer(ctx context.Context, t *target, conditions []metav1.Condition, end outcome) error {
	if len(conditions) == 0 {
		setOutcome(&conditions, end, 0, t.now)
	}
	var errs []error
	for _, request := range t.requests {
		errs = append(errs, c.answerOne(ctx, t, request, conditions))
	}
	for _, request := range t.others {
		var other []metav1.Condition
		why := fmt.Sprintf("The UID %s is not that of pod %s.", t.uid, request.Spec.Target.Pod.Name)
		setOutcome(&other, failedAs(lifecyclev1alpha1.EvictionConditionReasonEvictionInvalid, why), 0, t.now)
		errs = append(errs, c.answerOne(ctx, t, request, other))
	}
	return errors.Join(errs...)
}

func (c *Controller) answerOne(ctx context.Context, t *target, request *lifecyclev1alpha1.EvictionRequest, conditions []metav1.Condition) error {
	next := nextRequestStatus(request, conditions, t.now)
	if apiequality.Semantic.DeepEqual(next, &request.Status) {
		return nil
	}
	changed := request.DeepCopy()
	changed.Status = *next
	updated, err := c.client.LifecycleV1alpha1().EvictionRequests(t.namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager})
	switch {
	case err == nil:
		c.wrote(t, requestResource, updated)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("writing the status of EvictionRequest %s: %w", request.Name, err)
	}
	return nil
}
