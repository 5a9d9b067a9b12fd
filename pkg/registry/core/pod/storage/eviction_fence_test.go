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

package storage

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericstorage "k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/coordination"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/coordination/evictionrequest"
	requeststore "k8s.io/kubernetes/pkg/registry/coordination/evictionrequest/storage"
	"k8s.io/kubernetes/pkg/registry/core/pod/evictionfence"
	"k8s.io/kubernetes/pkg/registry/registrytest"
	"k8s.io/utils/ptr"
)

const requestUID = "0a1b2c3d-0000-4000-8000-000000000003"

// storedRequests are EvictionRequests in an etcd, and a fence that reads them.
type storedRequests struct {
	store *requeststore.REST
	fence *evictionfence.Fence
}

func newStoredRequests(t *testing.T) *storedRequests {
	t.Helper()
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, true)
	config, server := registrytest.NewEtcdStorageForResource(t, coordination.Resource("evictionrequests"))
	t.Cleanup(func() { server.Terminate(t) })
	options := generic.RESTOptions{
		StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: "evictionrequests",
	}
	store, _, err := requeststore.NewREST(options, evictionrequest.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Destroy)
	fence, err := evictionfence.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fence.Destroy)
	return &storedRequests{store, fence}
}

// write stores the request of the pod, whatever its strategy says.
func (s *storedRequests) write(ctx context.Context, t *testing.T, pod *api.Pod, change func(*coordination.EvictionRequest)) {
	t.Helper()
	key, err := s.store.KeyFunc(ctx, string(pod.UID))
	if err != nil {
		t.Fatal(err)
	}
	request := &coordination.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID), Namespace: pod.Namespace, UID: requestUID},
		Spec: coordination.EvictionRequestSpec{
			Target:     coordination.EvictionTarget{Pod: &coordination.LocalPodReference{Name: pod.Name, UID: string(pod.UID)}},
			Requesters: []coordination.Requester{{Name: "drain.example.com"}},
		},
		Status: coordination.EvictionRequestStatus{ActiveInterceptors: []string{coordinationv1alpha1.EvictionInterceptorImperative}},
	}
	if change != nil {
		change(request)
	}
	// Whatever is there is replaced.
	_ = s.store.Storage.Delete(ctx, key, &coordination.EvictionRequest{}, nil, genericstorage.ValidateAllObjectFunc, false, nil, genericstorage.DeleteOptions{})
	if err := s.store.Storage.Create(ctx, key, request, &coordination.EvictionRequest{}, 0, false); err != nil {
		t.Fatal(err)
	}
}

// markingStore has something happen when the eviction has marked the pod, before it deletes it. It does
// so again if that returns true.
type markingStore struct {
	rest.StandardStorage
	marked func(*api.Pod) (again bool)
}

func (s *markingStore) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	updated, created, err := s.StandardStorage.Update(ctx, name, info, create, update, forceAllowCreate, options)
	if err == nil && s.marked != nil {
		marked := s.marked
		s.marked = nil
		if marked(updated.(*api.Pod)) {
			s.marked = marked
		}
	}
	return updated, created, err
}

// evictionFor returns the eviction of the pod for its request, as the controller makes it.
func evictionFor(pod *api.Pod) *policy.Eviction {
	return &policy.Eviction{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace,
			Annotations: map[string]string{coordinationv1alpha1.EvictionRequestUIDAnnotation: requestUID},
		},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	}
}

// A pod is evicted for a request that wants it at that moment, and is as it was otherwise.
func TestFencedEviction(t *testing.T) {
	requests := newStoredRequests(t)
	withdrawn := func(request *coordination.EvictionRequest) { request.Spec.Requesters = nil }
	final := func(condition coordinationv1alpha1.EvictionRequestConditionType) func(*coordination.EvictionRequest) {
		return func(request *coordination.EvictionRequest) {
			request.Status.Conditions = []metav1.Condition{{Type: string(condition), Status: metav1.ConditionTrue}}
		}
	}
	active := func(names ...string) func(*coordination.EvictionRequest) {
		return func(request *coordination.EvictionRequest) { request.Status.ActiveInterceptors = names }
	}
	for name, test := range map[string]struct {
		// missing is whether there is no request at all.
		missing bool
		before  func(*coordination.EvictionRequest)
		// later is what happens to the request when the pod was marked.
		later    func(*coordination.EvictionRequest)
		eviction func(*policy.Eviction)
		// writes is how often others write to the pod when it was marked. Marking it too often is a conflict.
		writes   int
		write    func(context.Context, *testing.T, *StatusREST)
		conflict bool
		// terminates is whether the pod is deleted with a grace period before.
		terminates bool
		// unready is whether the pod, which is not ready, has a budget with this policy, which lets it go. pending is
		// whether its containers do not run.
		unready policyv1.UnhealthyPodEvictionPolicyType
		pending bool
		// ready is whether the pod is ready, and no budget selects it.
		ready bool
		// version is whether the caller wants the pod as it is now.
		version bool
		// counted is whether the API server tells the caller to try again, because the budget counts the pod now.
		counted bool
		// refused is the reason of the refusal, or empty.
		refused string
	}{
		"wanted":              {},
		"wanted, and unready": {unready: policyv1.AlwaysAllow},
		"wanted, and ready":   {ready: true},
		"withdrawn":           {before: withdrawn, refused: "it has no requesters"},
		"withdrawn late":      {later: withdrawn, refused: "it has no requesters"},
		"withdrawn late, of a pod that is unready": {later: withdrawn, unready: policyv1.AlwaysAllow, refused: "it has no requesters"},
		"withdrawn, but cannot be canceled": {before: func(request *coordination.EvictionRequest) {
			request.Spec.Requesters = nil
			request.Status.EvictionRequestCancellationPolicy = coordination.EvictionRequestCancellationPolicyForbid
		}},
		"canceled":                  {before: final(coordinationv1alpha1.EvictionRequestConditionCanceled), refused: "it is finished: Canceled"},
		"canceled late":             {later: final(coordinationv1alpha1.EvictionRequestConditionCanceled), refused: "it is finished: Canceled"},
		"evicted":                   {before: final(coordinationv1alpha1.EvictionRequestConditionEvicted), refused: "it is finished: Evicted"},
		"deleted":                   {missing: true, refused: "it does not exist"},
		"replaced":                  {before: func(request *coordination.EvictionRequest) { request.UID = "successor" }, refused: "it was replaced by another one"},
		"another is active":         {before: active("other.example.com"), refused: "its interceptor imperative-eviction.k8s.io is not active"},
		"none is active":            {before: active(), refused: "none of its interceptors is active"},
		"the one that acts":         {before: active("replicaset.apps.k8s.io"), eviction: actingAs("replicaset.apps.k8s.io")},
		"one that does not act yet": {eviction: actingAs("replicaset.apps.k8s.io"), refused: "its interceptor replicaset.apps.k8s.io is not active"},
		"for no request":            {missing: true, eviction: func(eviction *policy.Eviction) { eviction.Annotations = nil }},
		"for no request, of any pod": {missing: true, eviction: func(eviction *policy.Eviction) {
			eviction.Annotations, eviction.DeleteOptions = nil, nil
		}},
		"written to all the time":                                  {writes: 100, write: touch},
		"unready, and written to all the time":                     {writes: 100, write: touch, unready: policyv1.AlwaysAllow},
		"unready under a healthy budget, written to all the time":  {writes: 100, write: touch, unready: policyv1.IfHealthyBudget},
		"pending, and written to all the time":                     {writes: 100, write: touch, pending: true},
		"unready, in the version that the caller wants":            {version: true, unready: policyv1.AlwaysAllow},
		"unready, and written to, in a version":                    {version: true, writes: 1, write: touch, unready: policyv1.AlwaysAllow, conflict: true},
		"ready when it is about to be deleted":                     {writes: 1, write: becomeReady, unready: policyv1.AlwaysAllow, counted: true},
		"ready under a healthy budget when it is about to be":      {writes: 1, write: becomeReady, unready: policyv1.IfHealthyBudget, counted: true},
		"runs when it is about to be deleted, and is counted then": {writes: 1, write: run, pending: true, counted: true},
		"marked by another, three times":                           {writes: 3, write: remark},
		"marked by another, all the time":                          {writes: 100, write: remark, conflict: true},
		"terminates":                                               {terminates: true, refused: "the pod terminates already"},
		"a dry run":                                                {eviction: dryRun},
		"a dry run that is withdrawn":                              {before: withdrawn, eviction: dryRun, refused: "it has no requesters"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := contextOfEviction()
			storage, _, status, server := newStorage(t)
			defer server.Terminate(t)
			defer storage.Store.DestroyFunc()
			pod := createRunningPod(ctx, t, storage, status)
			if test.pending {
				pod = write(ctx, t, status, func(pod *api.Pod) { pod.Status.Phase = api.PodPending })
			}
			if test.ready {
				becomeReady(ctx, t, status)
			}
			if !test.missing {
				requests.write(ctx, t, pod, test.before)
			}
			store := &markingStore{StandardStorage: status.store}
			if test.writes > 0 {
				store.marked = func(*api.Pod) bool {
					test.write(ctx, t, status)
					test.writes--
					return test.writes > 0
				}
			}
			if test.later != nil {
				store.marked = func(marked *api.Pod) bool {
					if !isMarked(marked) {
						t.Error("the pod is not marked when it is about to be deleted")
					}
					requests.write(ctx, t, pod, test.later)
					return false
				}
			}
			if test.terminates {
				markDeleted(ctx, t, storage, 30)
			}
			var budgets []runtime.Object
			if test.unready != "" || test.pending {
				budget := &policyv1.PodDisruptionBudget{
					ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: pod.Namespace},
					Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}, UnhealthyPodEvictionPolicy: &test.unready},
				}
				if test.unready == policyv1.IfHealthyBudget {
					budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = 2, 2
				}
				budgets = append(budgets, budget)
			}
			eviction := evictionFor(pod)
			if test.version {
				eviction.DeleteOptions.Preconditions.ResourceVersion = &pod.ResourceVersion
			}
			if test.eviction != nil {
				test.eviction(eviction)
			}
			_, err := newEvictionStorage(store, budgetsClient(t, budgets)).fencedBy(requests.fence).
				Create(ctx, pod.Name, eviction, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})

			if test.conflict {
				if !isPassingConflict(err) {
					t.Errorf("got error %v, want a conflict that may pass", err)
				}
				return
			}
			if test.counted {
				if !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
					t.Errorf("got error %v, want a refusal by the budget", err)
				}
				left, err := storage.Get(ctx, pod.Name, &metav1.GetOptions{})
				if err != nil || left.(*api.Pod).DeletionTimestamp != nil || isMarked(left.(*api.Pod)) {
					t.Errorf("got error %v, pod %v, want the pod without a mark", err, left)
				}
				return
			}
			if test.refused == "" {
				if err != nil {
					t.Errorf("not evicted: %v", err)
				}
			} else if !apierrors.IsConflict(err) || !evictionfence.IsRefusal(err) || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got error %v, want a conflict because %q", err, test.refused)
			}
			left, err := storage.Get(ctx, pod.Name, &metav1.GetOptions{})
			evicted := err != nil || left.(*api.Pod).DeletionTimestamp != nil
			isDry := eviction.DeleteOptions != nil && len(eviction.DeleteOptions.DryRun) > 0
			if test.terminates {
				return
			}
			if want := test.refused == "" && !isDry; evicted != want {
				t.Fatalf("evicted: %t, want %t", evicted, want)
			}
			if !evicted {
				if diff := cmp.Diff(pod.Status, left.(*api.Pod).Status); diff != "" {
					t.Errorf("the pod stays, but its status has changed (-before, +after):\n%s", diff)
				}
			}
		})
	}
}

// Of two callers that evict for the same request, each of which has marked the pod, one has evicted it.
func TestFencedEvictionByTwo(t *testing.T) {
	requests := newStoredRequests(t)
	ctx := contextOfEviction()
	storage, _, status, server := newStorage(t)
	defer server.Terminate(t)
	defer storage.Store.DestroyFunc()
	pod := createRunningPod(ctx, t, storage, status)
	key, err := storage.KeyFunc(ctx, pod.Name)
	if err != nil {
		t.Fatal(err)
	}
	// A pod on a node terminates for a while.
	if err := storage.Storage.GuaranteedUpdate(ctx, key, &api.Pod{}, false, nil, func(stored runtime.Object, _ genericstorage.ResponseMeta) (runtime.Object, *uint64, error) {
		scheduled := stored.DeepCopyObject().(*api.Pod)
		scheduled.Spec.NodeName, scheduled.Spec.TerminationGracePeriodSeconds = "node-1", ptr.To[int64](30)
		return scheduled, nil, nil
	}, false, nil); err != nil {
		t.Fatal(err)
	}
	requests.write(ctx, t, pod, nil)
	evict := func(store rest.StandardStorage) error {
		_, err := newEvictionStorage(store, budgetsClient(t, nil)).fencedBy(requests.fence).
			Create(ctx, pod.Name, evictionFor(pod), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		return err
	}
	first := &markingStore{StandardStorage: status.store, marked: func(*api.Pod) bool {
		if err := evict(status.store); err != nil {
			t.Errorf("the other one: %v", err)
		}
		return false
	}}
	if err := evict(first); !evictionfence.IsRefusal(err) || !strings.Contains(err.Error(), "the pod terminates already") {
		t.Errorf("got error %v, want a refusal", err)
	}
}

// touch writes to the pod.
func touch(ctx context.Context, t *testing.T, status *StatusREST) {
	t.Helper()
	write(ctx, t, status, func(pod *api.Pod) { pod.Status.NominatedNodeName = "node-" + pod.ResourceVersion })
}

// becomeReady has the pod become ready.
func becomeReady(ctx context.Context, t *testing.T, status *StatusREST) {
	t.Helper()
	write(ctx, t, status, func(pod *api.Pod) {
		podutil.UpdatePodCondition(&pod.Status, &api.PodCondition{Type: api.PodReady, Status: api.ConditionTrue})
	})
}

// run has the containers of the pod run.
func run(ctx context.Context, t *testing.T, status *StatusREST) {
	t.Helper()
	write(ctx, t, status, func(pod *api.Pod) { pod.Status.Phase = api.PodRunning })
}

// remark marks the pod as kubectl drain does that evicts it at the same time.
func remark(ctx context.Context, t *testing.T, status *StatusREST) {
	t.Helper()
	write(ctx, t, status, func(pod *api.Pod) {
		podutil.UpdatePodCondition(&pod.Status, &api.PodCondition{
			Type: api.DisruptionTarget, Status: api.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		})
	})
}

func write(ctx context.Context, t *testing.T, status *StatusREST, change func(*api.Pod)) *api.Pod {
	t.Helper()
	changed := func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		pod := stored.DeepCopyObject().(*api.Pod)
		change(pod)
		return pod, nil
	}
	written, _, err := status.Update(ctx, "foo", rest.DefaultUpdatedObjectInfo(nil, changed), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return written.(*api.Pod)
}

func actingAs(name string) func(*policy.Eviction) {
	return func(eviction *policy.Eviction) {
		eviction.Annotations[coordinationv1alpha1.EvictionActingInterceptorAnnotation] = name
	}
}

func dryRun(eviction *policy.Eviction) { eviction.DeleteOptions.DryRun = []string{metav1.DryRunAll} }

func isMarked(pod *api.Pod) bool {
	_, condition := podutil.GetPodCondition(&pod.Status, api.DisruptionTarget)
	return condition != nil && condition.Status == api.ConditionTrue && strings.HasPrefix(condition.Message, evictionrequesttools.EvictionMark(requestUID))
}

// An eviction that cannot go on takes its mark back also if its client has gone away, but writes nothing to a pod that
// somebody else has deleted meanwhile.
func TestFencedEvictionThatEnds(t *testing.T) {
	requests := newStoredRequests(t)
	for name, test := range map[string]struct{ leaves, deleted, marked bool }{
		"the client goes away":    {leaves: true},
		"another deletes the pod": {deleted: true, marked: true},
		"the request is replaced": {},
	} {
		t.Run(name, func(t *testing.T) {
			storage, _, status, server := newStorage(t)
			defer server.Terminate(t)
			defer storage.Store.DestroyFunc()
			pod := createRunningPod(contextOfEviction(), t, storage, status)
			requests.write(contextOfEviction(), t, pod, nil)
			ctx, leave := context.WithCancel(contextOfEviction())
			defer leave()
			store := &markingStore{StandardStorage: status.store, marked: func(*api.Pod) bool {
				requests.write(contextOfEviction(), t, pod, func(request *coordination.EvictionRequest) { request.UID = "successor" })
				if test.deleted {
					markDeleted(contextOfEviction(), t, storage, 30)
				}
				if test.leaves {
					leave()
				}
				return false
			}}
			if _, err := newEvictionStorage(store, budgetsClient(t, nil)).fencedBy(requests.fence).
				Create(ctx, pod.Name, evictionFor(pod), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err == nil {
				t.Error("evicted")
			}
			left, err := storage.Get(contextOfEviction(), pod.Name, &metav1.GetOptions{})
			if err != nil || isMarked(left.(*api.Pod)) != test.marked {
				t.Errorf("got error %v, pod %+v, want a mark: %t", err, left, test.marked)
			}
		})
	}
}

// An eviction for a request names its pod by the UID: that is the name of the request.
func TestFencedEvictionOfAnyPod(t *testing.T) {
	requests := newStoredRequests(t)
	for name, options := range map[string]*metav1.DeleteOptions{
		"no options":       nil,
		"no preconditions": {},
		"an empty UID":     {Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID(""))}},
	} {
		eviction := evictionFor(&api.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foo", Namespace: metav1.NamespaceDefault}})
		eviction.DeleteOptions = options
		if err := requests.fence.Enter(contextOfEviction(), eviction); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "deleteOptions.preconditions.uid") {
			t.Errorf("%s: got error %v, want that it names the field", name, err)
		}
	}
}

// What is no UID is refused, and not looked for.
func TestFencedEvictionWithoutUIDs(t *testing.T) {
	requests := newStoredRequests(t)
	for name, test := range map[string]struct{ request, pod, field string }{
		"a path":         {request: requestUID, pod: "a/b", field: "deleteOptions.preconditions.uid"},
		"a long request": {request: strings.Repeat("7", 1000), pod: "7", field: "metadata.annotations[coordination.k8s.io/eviction-request-uid]"},
	} {
		eviction := evictionFor(&api.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foo", Namespace: metav1.NamespaceDefault, UID: types.UID(test.pod)}})
		eviction.Annotations[coordinationv1alpha1.EvictionRequestUIDAnnotation] = test.request
		if err := requests.fence.Enter(contextOfEviction(), eviction); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field) || len(err.Error()) > 500 {
			t.Errorf("%s: got error %v, want that it names the field", name, err)
		}
	}
}

// Without the API there is nothing to ask.
func TestFenceWithoutRequests(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, false)
	fence, err := evictionfence.New(nil)
	if err != nil || fence != nil {
		t.Fatalf("got fence %v, error %v", fence, err)
	}
	if err := fence.Enter(contextOfEviction(), evictionFor(&api.Pod{})); err != nil {
		t.Errorf("an eviction is refused: %v", err)
	}
	fence.Destroy()
}
