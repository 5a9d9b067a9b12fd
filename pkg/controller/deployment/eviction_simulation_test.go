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

package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apps "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/util/consistency"
	"k8s.io/kubernetes/pkg/controller/util/evictionpacing"
	testsimulation "k8s.io/kubernetes/test/utils/simulation"
)

// simulation is a cluster with one Deployment. It runs the real syncDeployment on caches that lag,
// and simulates the other clients: the ReplicaSet controller, the kubelets, the requesters, and the
// users who change the Deployment.
type simulation struct {
	t      *testing.T
	random *rand.Rand
	log    []string

	dc     *DeploymentController
	caches informers.SharedInformerFactory

	// The API server.
	version     int
	deployment  *apps.Deployment
	replicaSets map[string]*apps.ReplicaSet
	pods        map[string]*v1.Pod
	requests    map[string]*coordinationv1alpha1.EvictionRequest

	// calm allows nothing but evictions, which the status of the Deployment must not show.
	calm bool
	// sick are the pods that never become ready. slow has the time at which a pod becomes ready,
	// which may be long after its turn was given up.
	sick map[string]bool
	slow map[string]time.Time
	// created counts all pods, first is its value after the start, and asked counts the requests.
	created, first, asked int
	// unknowing counts the pods that the ReplicaSet controller would not have created if it had
	// known the requests.
	unknowing int
	// refusing makes the API server reject some writes, full makes the quota reject all pods, and
	// stuck prevents the deletion of pods.
	refusing, full, stuck bool
	// synced is true once the controller knows all requests, since its last start.
	synced bool
	// spreads is true if the running sync scales several ReplicaSets proportionally.
	spreads bool
	// ours is the surger that is replaced while an older controller manager without one runs.
	ours *surger
	// rolls is true if there was a rollout.
	rolls bool
	// lowest is the lowest number of available pods that was recently allowed.
	lowest int
	// healed is true if all new pods become ready.
	healed bool
}

func TestSurgeSimulation(t *testing.T) {
	testsimulation.Run(t, 20, func(t *testing.T, seed uint64) {
		for _, calm := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t, int64(seed), calm)
				defer func() { s.dc.queue.ShutDown() }()
				defer func() {
					if t.Failed() {
						t.Fatalf("calm %v:\n%s", calm, lines(s.log))
					}
				}()
				for range 250 {
					s.step()
				}
				s.settle()
			})
		}
	}, 3987336517656383706)
}

func lines(log []string) string {
	text := ""
	for _, line := range log {
		text += line + "\n"
	}
	return text
}

func newSimulation(t *testing.T, seed int64, calm bool) *simulation {
	s := &simulation{
		t: t, calm: calm, random: rand.New(rand.NewSource(seed)),
		replicaSets: map[string]*apps.ReplicaSet{}, pods: map[string]*v1.Pod{}, requests: map[string]*coordinationv1alpha1.EvictionRequest{}, sick: map[string]bool{}, slow: map[string]time.Time{}, synced: true,
	}
	replicas := int32(1 + s.random.Intn(4))
	s.deployment = &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web", Generation: 1, ResourceVersion: "1", CreationTimestamp: metav1.Now()},
		Spec: apps.DeploymentSpec{
			Replicas:                &replicas,
			Selector:                &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			ProgressDeadlineSeconds: ptr.To(int32(600)),
			RevisionHistoryLimit:    ptr.To(int32(2)),
			Strategy:                s.strategy(),
			MinReadySeconds:         []int32{0, 0, 20, 60}[s.random.Intn(4)],
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	client := fake.NewClientset()
	client.PrependReactor("*", "*", s.react)
	s.caches = informers.NewSharedInformerFactory(client, 0)
	pods := s.caches.Core().V1().Pods().Informer()
	if err := controller.AddPodControllerIndexer(pods); err != nil {
		t.Fatal(err)
	}
	s.dc = &DeploymentController{
		client: client, eventRecorder: &record.FakeRecorder{},
		dLister: s.caches.Apps().V1().Deployments().Lister(), rsLister: s.caches.Apps().V1().ReplicaSets().Lister(), podLister: s.caches.Core().V1().Pods().Lister(),
		podIndexer: pods.GetIndexer(), rsControl: controller.RealRSControl{KubeClient: client, Recorder: &record.FakeRecorder{}},
		queue:             workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		enqueueDeployment: func(*apps.Deployment) {},
	}
	s.dc.surger = s.newSurger()
	s.refresh(true)
	for range 50 { // Let the Deployment settle.
		s.sync()
		s.replicaSetController()
		s.kubelet()
		s.refresh(true)
		time.Sleep(5 * time.Second)
	}
	s.first = s.created
	return s
}

func (s *simulation) newSurger() *surger {
	budgets, err := poddisruptionbudget.IndexOf(s.caches.Policy().V1().PodDisruptionBudgets().Informer().GetIndexer())
	if err != nil {
		s.t.Fatal(err)
	}
	return &surger{
		nodeLister: s.caches.Core().V1().Nodes().Lister(), budgets: budgets, releases: map[types.UID]releases{}, written: map[types.UID]*writtenSurge{},
		dc: s.dc, client: s.dc.client, reportClient: s.dc.client, live: evictionpacing.NewLiveReleases(s.dc.client, isReleased), clock: clock.RealClock{}, requests: s.caches.Coordination().V1alpha1().EvictionRequests().Informer().GetIndexer(),
		requestsSynced: func() bool { return s.synced },
		openTurns:      map[types.UID]*openTurn{}, progress: map[types.UID]progress{}, uncertainWrites: map[types.UID]map[string]uncertainWrite{}, surgeWrites: newConsistencyStore(s.caches.Apps().V1().ReplicaSets()),
		rolloutWrites: newConsistencyStore(s.caches.Apps().V1().ReplicaSets()),
	}
}

// restart creates a surger on caches that are up to date, except for the requests.
func (s *simulation) restart() {
	s.note("the controller restarts")
	s.ours, s.synced = nil, false
	s.dc.surger = s.newSurger()
	s.refresh(true)
}

// older runs a controller manager without surges until restart is called.
func (s *simulation) older() {
	s.note("an older controller manager runs")
	s.ours, s.dc.surger = s.dc.surger, nil
	s.rolls = true // It deletes pods in its own order.
	s.refresh(true)
}

func (s *simulation) strategy() apps.DeploymentStrategy {
	surge, unavailable := 1+s.random.Intn(2), s.random.Intn(2)
	if !s.calm && s.random.Intn(8) == 0 {
		if s.random.Intn(2) == 0 {
			return apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
		}
		surge, unavailable = 0, 1
	}
	return apps.DeploymentStrategy{Type: apps.RollingUpdateDeploymentStrategyType, RollingUpdate: &apps.RollingUpdateDeployment{
		MaxSurge: ptr.To(intstr.FromInt32(int32(surge))), MaxUnavailable: ptr.To(intstr.FromInt32(int32(unavailable))),
	}}
}

func (s *simulation) note(format string, args ...any) {
	s.log = append(s.log, time.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (s *simulation) nextVersion() string {
	s.version++
	return strconv.Itoa(s.version + 1)
}

// react implements the parts of the API server that the controller uses.
func (s *simulation) react(action core.Action) (bool, runtime.Object, error) {
	switch a := action.(type) {
	case core.UpdateActionImpl:
		switch obj := a.Object.(type) {
		case *apps.ReplicaSet:
			return s.updateReplicaSet(obj)
		case *apps.Deployment:
			return s.updateDeployment(obj, a.Subresource)
		}
	case core.CreateActionImpl:
		if rs, ok := a.Object.(*apps.ReplicaSet); ok {
			return s.createReplicaSet(rs)
		}
	case core.DeleteActionImpl:
		if a.GetResource().Resource == "replicasets" {
			if rs := s.replicaSets[a.GetName()]; rs != nil && s.living(rs.UID) > 0 {
				s.t.Errorf("ReplicaSet %s is deleted with %d pods", rs.Name, s.living(rs.UID))
			}
			delete(s.replicaSets, a.GetName())
			s.note("deleted %s", a.GetName())
			return true, nil, nil
		}
	}
	s.t.Errorf("unexpected call: %v", action)
	return true, nil, fmt.Errorf("unexpected call")
}

func (s *simulation) updateReplicaSet(rs *apps.ReplicaSet) (bool, runtime.Object, error) {
	stored := s.replicaSets[rs.Name]
	if stored == nil || stored.ResourceVersion != rs.ResourceVersion {
		return true, nil, apierrors.NewConflict(apps.Resource("replicasets"), rs.Name, fmt.Errorf("it has changed"))
	}
	if s.refusing && s.random.Intn(2) == 0 {
		s.note("a write of %s is rejected", rs.Name)
		return true, nil, apierrors.NewForbidden(apps.Resource("replicasets"), rs.Name, fmt.Errorf("refused"))
	}
	before := s.sum()
	updated := rs.DeepCopy()
	updated.Status = stored.Status
	if !apiequality.Semantic.DeepEqual(updated.Spec, stored.Spec) {
		updated.Generation++
	}
	updated.ResourceVersion = s.nextVersion()
	s.replicaSets[rs.Name] = updated
	s.note("wrote %s: %d -> %d %s", rs.Name, *stored.Spec.Replicas, *updated.Spec.Replicas, updated.Annotations[deploymentutil.EvictionSurgeAnnotation])
	if s.spreads = s.spreads || isSpread(stored, updated); !s.spreads {
		s.checkSum(before)
	}
	return true, updated.DeepCopy(), nil
}

// isSpread reports whether a write may be part of proportional scaling after a change of the
// maximum. The first of these writes may add what the next ones remove, so only the sum of all of
// them is checked.
func isSpread(stored, updated *apps.ReplicaSet) bool {
	const surge, maximum = deploymentutil.EvictionSurgeAnnotation, deploymentutil.MaxReplicasAnnotation
	return *stored.Spec.Replicas > 0 && stored.Annotations[surge] == updated.Annotations[surge] && stored.Annotations[maximum] != updated.Annotations[maximum]
}

// checkSum checks that a write does not create more replicas than the strategy allows.
func (s *simulation) checkSum(before int32) {
	d := s.cachedDeployment()
	if !deploymentutil.IsRollingUpdate(d) {
		return // Recreate creates based on its cache alone.
	}
	allowed := *d.Spec.Replicas + deploymentutil.MaxSurge(*d)
	if sum := s.sum(); sum > max(before, allowed) && !s.isOverlooked(sum-before, allowed) {
		s.note("too many")
		s.t.Errorf("the ReplicaSets have %d replicas, %d are allowed, %d were there", sum, allowed, before)
	}
}

// isOverlooked reports whether a rollout adds replicas only because its cache lacks replicas that
// it created before. Upstream's rollout does not wait for its cache; only what concerns a surge
// must.
func (s *simulation) isOverlooked(added, allowed int32) bool {
	for _, rs := range s.replicaSets {
		// An older controller manager ignores the annotation. A record without extra replicas, such
		// as a forged one whose removal is refused, does not affect a rollout.
		if surge, err := deploymentutil.EvictionSurgeOf(rs, math.MaxInt32); err == nil && surge.Surge > 0 && s.dc.surger != nil {
			return false
		}
	}
	cached, err := s.dc.rsLister.ReplicaSets("default").List(labels.Everything())
	if err != nil {
		s.t.Fatal(err)
	}
	return deploymentutil.GetReplicaCountForReplicaSets(cached)+added <= allowed
}

func (s *simulation) cachedDeployment() *apps.Deployment {
	d, err := s.dc.dLister.Deployments("default").Get("web")
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *simulation) sum() int32 {
	return deploymentutil.GetReplicaCountForReplicaSets(slices.Collect(maps.Values(s.replicaSets)))
}

func (s *simulation) updateDeployment(d *apps.Deployment, subresource string) (bool, runtime.Object, error) {
	if d.ResourceVersion != s.deployment.ResourceVersion {
		return true, nil, apierrors.NewConflict(apps.Resource("deployments"), d.Name, fmt.Errorf("it has changed"))
	}
	if subresource != "status" {
		s.t.Errorf("the spec of the Deployment is written")
	}
	if s.calm && len(s.deployment.Status.Conditions) >= 2 {
		s.checkUnnoticed(d)
	}
	updated := s.deployment.DeepCopy()
	updated.Status, updated.Annotations = d.Status, d.Annotations
	updated.ResourceVersion = s.nextVersion()
	s.deployment = updated
	return true, updated.DeepCopy(), nil
}

// checkUnnoticed checks that evictions change nothing in the status of a Deployment except their
// own condition.
func (s *simulation) checkUnnoticed(d *apps.Deployment) {
	for _, conditionType := range []apps.DeploymentConditionType{apps.DeploymentAvailable, apps.DeploymentProgressing} {
		before := deploymentutil.GetDeploymentCondition(s.deployment.Status, conditionType)
		after := deploymentutil.GetDeploymentCondition(d.Status, conditionType)
		settled := before != nil && (conditionType == apps.DeploymentAvailable || before.Reason == deploymentutil.NewRSAvailableReason)
		if settled && before.Status == v1.ConditionTrue && !apiequality.Semantic.DeepEqual(before, after) {
			s.t.Errorf("condition %s changes from %v to %v", conditionType, before, after)
		}
	}
	if d.Status.Replicas > *d.Spec.Replicas {
		s.note("visible")
		s.t.Errorf("the status shows the surge: %+v", d.Status)
	}
}

func (s *simulation) createReplicaSet(rs *apps.ReplicaSet) (bool, runtime.Object, error) {
	if existing := s.replicaSets[rs.Name]; existing != nil {
		return true, nil, apierrors.NewAlreadyExists(apps.Resource("replicasets"), rs.Name)
	}
	before := s.sum()
	created := rs.DeepCopy()
	created.UID, created.ResourceVersion, created.Generation, created.CreationTimestamp = types.UID(rs.Name), s.nextVersion(), 1, metav1.Now()
	s.replicaSets[rs.Name] = created
	s.note("created %s with %d", rs.Name, *rs.Spec.Replicas)
	s.checkSum(before)
	return true, created.DeepCopy(), nil
}

// refresh updates all caches, or a random selection.
func (s *simulation) refresh(all bool) {
	replace(s, all, s.caches.Apps().V1().Deployments().Informer(), map[string]*apps.Deployment{"web": s.deployment})
	replace(s, all, s.caches.Apps().V1().ReplicaSets().Informer(), s.replicaSets)
	replace(s, all, s.caches.Core().V1().Pods().Informer(), s.pods)
	replace(s, all, s.caches.Coordination().V1alpha1().EvictionRequests().Informer(), s.requests)
}

func replace[T runtime.Object](s *simulation, all bool, informer cache.SharedIndexInformer, objects map[string]T) {
	if !all && s.random.Intn(3) == 0 {
		return
	}
	list := make([]any, 0, len(objects))
	for _, obj := range objects {
		list = append(list, obj.DeepCopyObject())
	}
	if err := informer.GetIndexer().Replace(list, strconv.Itoa(s.version+1)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *simulation) step() {
	switch s.random.Intn(14) {
	case 0, 1, 2:
		s.sync()
	case 3, 4:
		s.replicaSetController()
	case 5, 6:
		s.kubelet()
	case 7:
		s.ask()
	case 8:
		s.nextInterceptor()
	case 9:
		s.cancel()
	case 10:
		time.Sleep(time.Duration(s.random.Intn(90)) * time.Second)
	case 11:
		if !s.calm {
			s.change()
		}
	case 12:
		s.trouble()
	case 13:
		s.synced = true
		if s.random.Intn(4) == 0 || s.ours != nil {
			s.restart()
		} else if !s.calm && s.random.Intn(8) == 0 {
			s.older()
		}
	}
	s.refresh(false)
}

// trouble starts or ends failures: writes are rejected, or pods cannot be created or deleted.
func (s *simulation) trouble() {
	s.refusing, s.full, s.stuck = s.random.Intn(4) == 0, s.random.Intn(4) == 0, s.random.Intn(4) == 0
	s.note("writes are rejected %v, the quota is full %v, pods are stuck %v", s.refusing, s.full, s.stuck)
}

// sync runs the controller, and then completes turns as the library would.
func (s *simulation) sync() {
	ctx := klog.NewContext(context.Background(), klog.Logger{})
	var behind *consistency.ConsistencyError
	before := s.sum()
	if s.dc.surger != nil {
		for _, pod := range s.dc.podIndexer.List() {
			s.dc.surger.unready.Saw(pod.(*v1.Pod), time.Now())
		}
	}
	err := s.dc.syncDeployment(ctx, "default/web")
	if s.spreads && err == nil {
		s.checkSum(before)
	}
	s.spreads = false
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !errors.As(err, &behind) && !(s.refusing && apierrors.IsForbidden(err)) {
		s.t.Errorf("sync: %v", err)
	}
	if s.dc.surger == nil || !s.dc.surger.knowsRequests(time.Now()) {
		return
	}
	d := s.cachedDeployment()
	rsList, err := s.dc.getReplicaSetsForDeployment(ctx, d)
	if err != nil {
		s.t.Fatal(err)
	}
	pods, err := s.dc.getPodMapForDeployment(d, rsList)
	if err != nil {
		s.t.Fatal(err)
	}
	w := s.dc.surger.observe(ctx, time.Now(), d, rsList, pods)
	results := map[types.UID]turnResult{}
	for _, set := range w.sets {
		w.turnResults(time.Now(), set, results)
	}
	for _, uid := range slices.Sorted(maps.Keys(results)) {
		if v := results[uid]; v.outcome != "" {
			s.note("turn for %s is over: %s %s", uid, v.outcome, v.message)
			s.complete(string(uid))
		}
	}
}

func (s *simulation) complete(uid string) {
	if request := s.requests[uid]; request != nil {
		request.Status.Interceptors[0].CompletionTime = ptr.To(metav1.Now())
		request.Status.ActiveInterceptors = []string{coordinationv1alpha1.EvictionInterceptorReplicaSet}
		request.Status.ProcessedInterceptors = []string{coordinationv1alpha1.EvictionInterceptorDeployment}
	}
}

func (s *simulation) podsOf(rs types.UID) []*v1.Pod {
	var pods []*v1.Pod
	for _, pod := range s.pods {
		if metav1.GetControllerOf(pod).UID == rs && pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

func (s *simulation) living(rs types.UID) int { return len(s.podsOf(rs)) }

// available counts the available pods.
func (s *simulation) available() int {
	count := 0
	for _, pod := range s.pods {
		if s.isAvailable(pod) {
			count++
		}
	}
	return count
}

func (s *simulation) isAvailable(pod *v1.Pod) bool {
	return pod.DeletionTimestamp == nil && podutil.IsPodAvailable(pod, s.deployment.Spec.MinReadySeconds, metav1.Now())
}

// replicaSetController creates and deletes pods like the real controller, with the order of
// deletion of this fork.
func (s *simulation) replicaSetController() {
	for _, name := range slices.Sorted(maps.Keys(s.replicaSets)) {
		rs := s.replicaSets[name]
		pods, failure := s.podsOf(rs.UID), ""
		for range int(*rs.Spec.Replicas) - len(pods) - s.needless(rs, pods) {
			if s.full {
				failure = "FailedCreate"
				break
			}
			s.createPod(rs)
			if !s.synced && s.extra(rs, pods) > 0 {
				s.unknowing++
			}
		}
		if surplus := len(pods) - int(*rs.Spec.Replicas); surplus > 0 && s.stuck {
			failure = "FailedDelete"
		} else if surplus > 0 {
			s.scaleDown(rs, pods, surplus)
		}
		if s.healed || s.random.Intn(3) > 0 { // The status is updated after the pods, or later.
			s.updateReplicaSetStatus(rs, failure)
		}
	}
	s.rememberFloor()
}

// needless counts the extra replicas without a pod that should leave, if the controller knows.
func (s *simulation) needless(rs *apps.ReplicaSet, pods []*v1.Pod) int {
	if s.dc.surger == nil || !s.synced {
		return 0
	}
	return s.extra(rs, pods)
}

// extra counts the extra replicas without a pod that should leave.
func (s *simulation) extra(rs *apps.ReplicaSet, pods []*v1.Pod) int {
	surge, _ := deploymentutil.EvictionSurgeOf(rs, s.beyond())
	needless := int(surge.Surge)
	for _, pod := range pods {
		if s.requests[string(pod.UID)] != nil {
			needless--
		}
	}
	return max(needless, 0)
}

func (s *simulation) updateReplicaSetStatus(rs *apps.ReplicaSet, failure string) {
	updated := rs.DeepCopy()
	pods := s.podsOf(rs.UID)
	updated.Status = apps.ReplicaSetStatus{Replicas: int32(len(pods)), FullyLabeledReplicas: int32(len(pods)), ObservedGeneration: rs.Generation}
	for _, pod := range pods {
		if podutil.IsPodReady(pod) {
			updated.Status.ReadyReplicas++
		}
		if podutil.IsPodAvailable(pod, rs.Spec.MinReadySeconds, metav1.Now()) {
			updated.Status.AvailableReplicas++
		}
	}
	if failure != "" {
		updated.Status.Conditions = []apps.ReplicaSetCondition{{Type: apps.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, Reason: failure, Message: "trouble"}}
	}
	if !apiequality.Semantic.DeepEqual(updated.Status, rs.Status) {
		updated.ResourceVersion = s.nextVersion()
		s.replicaSets[rs.Name] = updated
	}
}

func (s *simulation) createPod(rs *apps.ReplicaSet) {
	name := fmt.Sprintf("pod-%03d", s.nextPod())
	s.pods[name] = &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(name), CreationTimestamp: metav1.Now(),
			Labels: rs.Spec.Template.Labels, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, apps.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	s.sick[name] = !s.calm && !s.healed && s.random.Intn(6) == 0
	if !s.healed && s.first > 0 && s.random.Intn(6) == 0 {
		s.slow[name] = time.Now().Add(time.Duration(s.random.Intn(25)) * time.Minute)
	}
	s.note("%s creates %s (sick %v, slow %v)", rs.Name, name, s.sick[name], !s.slow[name].IsZero())
}

func (s *simulation) nextPod() int {
	s.created++
	return s.created
}

func (s *simulation) scaleDown(rs *apps.ReplicaSet, pods []*v1.Pod, surplus int) {
	surge, _ := deploymentutil.EvictionSurgeOf(rs, s.beyond()) // Another client may have written nonsense.
	spare := int(surge.Surge) - int(*rs.Spec.Replicas)
	for _, pod := range pods {
		if s.isAvailable(pod) {
			spare++
		}
	}
	leaving := map[types.UID]bool{}
	for _, uid := range surge.Leaving {
		pod := s.pods[string(uid)]
		if pod == nil || turnIn(s.requests[string(uid)]) == notAsked || s.isAvailable(pod) && spare <= 0 {
			continue
		}
		leaving[uid] = true
		if s.isAvailable(pod) {
			spare--
		}
	}
	rank := func(pod *v1.Pod) int {
		switch {
		case leaving[pod.UID]:
			return 0
		case pod.Status.Phase == v1.PodPending:
			return 1
		case !podutil.IsPodReady(pod):
			return 2
		case !s.isAvailable(pod):
			return 3
		case turnIn(s.requests[string(pod.UID)]) != notAsked:
			return 4
		}
		return 5
	}
	slices.SortStableFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Name, a.Name))
	})
	for _, pod := range pods[:surplus] {
		s.note("%s deletes %s (rank %d)", rs.Name, pod.Name, rank(pod))
		before := s.available()
		s.terminate(pod)
		if floor := s.floor(); s.available() < min(before, floor) {
			s.note("too few")
			s.t.Errorf("%d pods are available, of %d; the strategy wants %d", s.available(), before, floor)
		}
	}
}

// floor returns how many pods must be available now.
func (s *simulation) floor() int {
	if s.rolls {
		return 0
	}
	if s.calm {
		return int(*s.deployment.Spec.Replicas)
	}
	s.lowest = min(s.lowest, floorOf(s.deployment), floorOf(s.cachedDeployment()))
	return s.lowest
}

// floorOf returns how many pods the strategy of a Deployment requires to be available.
func floorOf(d *apps.Deployment) int {
	if !deploymentutil.IsRollingUpdate(d) {
		return 0
	}
	return int(*d.Spec.Replicas - deploymentutil.MaxUnavailable(*d))
}

// rememberFloor forgets earlier, lower limits once the last change has completed.
func (s *simulation) rememberFloor() {
	wanted := int32(0)
	for _, rs := range s.replicaSets {
		surge, _ := deploymentutil.EvictionSurgeOf(rs, s.beyond())
		wanted += *rs.Spec.Replicas - surge.Surge
	}
	if s.cachedDeployment().Generation == s.deployment.Generation && wanted >= *s.deployment.Spec.Replicas && s.available() >= floorOf(s.deployment) {
		s.lowest = floorOf(s.deployment)
	}
}

func (s *simulation) terminate(pod *v1.Pod) {
	updated := pod.DeepCopy()
	updated.DeletionTimestamp = ptr.To(metav1.Now())
	s.pods[pod.Name] = updated
}

// kubelet makes pods ready, and removes terminating ones.
func (s *simulation) kubelet() {
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		pod := s.pods[name]
		if pod.DeletionTimestamp == nil && pod.Status.Phase == v1.PodPending && time.Now().Before(s.slow[name]) {
			continue
		}
		switch {
		case s.random.Intn(3) == 0:
		case pod.DeletionTimestamp != nil:
			delete(s.pods, name)
			delete(s.requests, string(pod.UID))
		case pod.Status.Phase == v1.PodPending:
			updated := pod.DeepCopy()
			updated.Status.Phase = v1.PodRunning
			updated.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now()}}
			if s.sick[name] {
				updated.Status.Conditions[0].Status = v1.ConditionFalse
			}
			s.pods[name] = updated
			s.note("%s runs (sick %v)", name, s.sick[name])
		}
	}
}

// ask requests the eviction of a pod, with the Deployment as the active interceptor.
func (s *simulation) ask() {
	pod := s.anyPod(func(pod *v1.Pod) bool {
		return pod.DeletionTimestamp == nil && pod.Status.Phase == v1.PodRunning && s.requests[string(pod.UID)] == nil
	})
	if pod == nil {
		return
	}
	if cached, err := s.dc.podLister.Pods("default").Get(pod.Name); err != nil || podutil.IsPodReady(cached) != podutil.IsPodReady(pod) {
		return // In the cache, a slow pod that has just become ready is broken.
	}
	s.note("the eviction of %s is requested", pod.Name)
	s.asked++
	s.requests[string(pod.UID)] = &coordinationv1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID), Namespace: "default", UID: types.UID("request-" + string(pod.UID))},
		Spec:       coordinationv1alpha1.EvictionRequestSpec{Requesters: []coordinationv1alpha1.Requester{{Name: "drainer.example.com"}}},
		Status: coordinationv1alpha1.EvictionRequestStatus{
			ActiveInterceptors: []string{coordinationv1alpha1.EvictionInterceptorDeployment}, ActivationTime: ptr.To(metav1.Now()),
			Interceptors: []coordinationv1alpha1.InterceptorStatus{{Name: coordinationv1alpha1.EvictionInterceptorDeployment}, {Name: coordinationv1alpha1.EvictionInterceptorReplicaSet}},
		},
	}
}

func (s *simulation) anyPod(suits func(*v1.Pod) bool) *v1.Pod {
	var pods []*v1.Pod
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if suits(s.pods[name]) {
			pods = append(pods, s.pods[name])
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return pods[s.random.Intn(len(pods))]
}

func (s *simulation) cancel() {
	names := slices.Sorted(maps.Keys(s.requests))
	if len(names) == 0 || s.random.Intn(4) != 0 {
		return
	}
	name := names[s.random.Intn(len(names))]
	s.note("%s: eviction canceled", name)
	delete(s.requests, name)
}

// nextInterceptor evicts a pod that was passed on, within a budget that requires all replicas.
func (s *simulation) nextInterceptor() {
	pod := s.anyPod(func(pod *v1.Pod) bool {
		return pod.DeletionTimestamp == nil && turnIn(s.requests[string(pod.UID)]) == evicting
	})
	if len(controller.FilterActiveReplicaSets(slices.Collect(maps.Values(s.replicaSets)))) > 1 {
		return // A rollout assumes that no pod is evicted meanwhile.
	}
	if pod == nil || s.isAvailable(pod) && s.available() <= int(*s.deployment.Spec.Replicas) {
		return
	}
	s.note("%s is evicted", pod.Name)
	s.terminate(pod)
}

// change makes a random change that a user could make to the Deployment.
func (s *simulation) change() {
	d := s.deployment.DeepCopy()
	d.Generation++
	d.ResourceVersion = s.nextVersion()
	switch s.random.Intn(6) {
	case 0, 1:
		d.Spec.Replicas = ptr.To(int32(s.random.Intn(5)))
		s.note("scaled to %d", *d.Spec.Replicas)
	case 2:
		d.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("web:%d", s.random.Intn(3))
		s.rolls = true // From now on upstream's rollout may miscount on an old cache.
		s.note("image %s", d.Spec.Template.Spec.Containers[0].Image)
	case 3:
		d.Spec.Paused = !d.Spec.Paused
		s.note("paused %v", d.Spec.Paused)
	case 4:
		d.Spec.Strategy = s.strategy()
		s.note("strategy %s, maxSurge %d, maxUnavailable %d", d.Spec.Strategy.Type, deploymentutil.MaxSurge(*d), deploymentutil.MaxUnavailable(*d))
	case 5: // Another client writes to a ReplicaSet.
		s.tamper()
		return
	}
	s.deployment = d
	s.floor()
}

func (s *simulation) tamper() {
	names := slices.Sorted(maps.Keys(s.replicaSets))
	rs := s.replicaSets[names[s.random.Intn(len(names))]].DeepCopy()
	active := controller.FilterActiveReplicaSets(slices.Collect(maps.Values(s.replicaSets)))
	// During a rollout, upstream's proportional scaling turns that into an arbitrary size.
	if len(active) == 1 && active[0].Name == rs.Name && s.random.Intn(2) == 0 {
		rs.Spec.Replicas = ptr.To(int32(s.random.Intn(5)))
		rs.Generation++
		s.lowest = 0
		s.note("another client scales %s to %d", rs.Name, *rs.Spec.Replicas)
	} else if rs.Annotations != nil {
		rs.Annotations[deploymentutil.EvictionSurgeAnnotation] = s.forgery(rs)
		s.note("another client annotates %s with %q", rs.Name, rs.Annotations[deploymentutil.EvictionSurgeAnnotation])
	}
	rs.ResourceVersion = s.nextVersion()
	s.replicaSets[rs.Name] = rs
}

// forgery returns a forged annotation of a ReplicaSet. The most dangerous ones match its size.
func (s *simulation) forgery(rs *apps.ReplicaSet) string {
	var uids []string
	for _, pod := range s.podsOf(rs.UID) {
		uids = append(uids, strconv.Quote(string(pod.UID)))
	}
	of, leaving := *rs.Spec.Replicas, strings.Join(uids, ",")
	desired := rs.Annotations[deploymentutil.DesiredReplicasAnnotation]
	switch s.random.Intn(8) {
	case 0:
		rs.Annotations[deploymentutil.DesiredReplicasAnnotation], desired = "0", "0"
	case 1:
		delete(rs.Annotations, deploymentutil.DesiredReplicasAnnotation)
		desired = "-1"
	case 2:
		return []string{"", "{}", "17", `{"surge":-1,"of":1,"desired":1}`, `{"surge":2147483647,"of":2147483647,"desired":1}`}[s.random.Intn(5)]
	case 3:
		return fmt.Sprintf(`{"surge":%d,"of":%d,"desired":%s,"going":2147483647}`, of, of, cmp.Or(desired, "-1"))
	}
	return fmt.Sprintf(`{"surge":%d,"of":%d,"desired":%s,"since":"2999-01-01T00:00:00Z","leaving":[%s]}`, s.random.Intn(int(of)+1), of, cmp.Or(desired, "-1"), leaving)
}

// neverRolls reports whether another client has scaled the only ReplicaSet to the new size of the
// Deployment. Upstream then always assumes that it still has to scale, and never starts a rollout.
func (s *simulation) neverRolls() bool {
	active := controller.FilterActiveReplicaSets(slices.Collect(maps.Values(s.replicaSets)))
	size := *s.deployment.Spec.Replicas
	return len(active) == 1 && active[0].Annotations[deploymentutil.DesiredReplicasAnnotation] != strconv.Itoa(int(size))
}

// settle stops all changes, makes all pods healthy, and checks that all requested pods leave and
// that the Deployment completes.
func (s *simulation) settle() {
	d := s.deployment.DeepCopy()
	if !s.calm {
		d.Spec.Paused = false
		d.Spec.Strategy.Type = apps.RollingUpdateDeploymentStrategyType
		d.Spec.Strategy.RollingUpdate = &apps.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}
		if s.neverRolls() {
			d.Spec.Replicas = ptr.To[int32](9)
		}
		d.Generation++
		d.ResourceVersion = s.nextVersion()
	}
	s.deployment = d
	s.healed, s.synced, s.refusing, s.full, s.stuck = true, true, false, false, false
	if s.ours != nil {
		s.restart()
		s.synced = true
	}
	clear(s.slow)
	for name := range s.sick {
		s.sick[name] = false
		if pod := s.pods[name]; pod != nil && pod.Status.Phase == v1.PodRunning && !podutil.IsPodReady(pod) {
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		}
	}
	for quiet := 0; quiet < 10; {
		if quiet++; len(s.log) > 5000 {
			s.t.Error("it does not settle")
			return
		}
		said, version := len(s.log), s.version
		s.refresh(true)
		s.sync()
		s.replicaSetController()
		s.kubelet()                  // Without evictions: passed-on pods leave with the others.
		time.Sleep(90 * time.Second) // Deadlines are ten minutes.
		if said != len(s.log) || version != s.version {
			quiet = 0
		}
	}
	if created := s.created - s.first - s.unknowing; s.calm && created > s.asked {
		s.t.Errorf("%d pods were created for %d whose eviction was requested", created, s.asked)
	}
	if len(s.requests) > 0 {
		s.t.Errorf("pods have not left: %v", slices.Sorted(maps.Keys(s.requests)))
	}
	if s.sum() != *d.Spec.Replicas || len(s.pods) != int(*d.Spec.Replicas) {
		s.t.Errorf("%d replicas, %d pods, wanted %d", s.sum(), len(s.pods), *d.Spec.Replicas)
	}
	for _, rs := range s.replicaSets {
		if value, ok := rs.Annotations[deploymentutil.EvictionSurgeAnnotation]; ok {
			s.t.Errorf("%s is still annotated: %s", rs.Name, value)
		}
	}
	if condition := deploymentutil.GetDeploymentCondition(s.deployment.Status, DeploymentEvictionInProgress); condition != nil {
		s.t.Errorf("condition is still there: %v", condition)
	}
	if !deploymentutil.DeploymentComplete(s.deployment, &s.deployment.Status) {
		s.t.Errorf("the Deployment is not complete: %+v", s.deployment.Status)
	}
}

func (s *simulation) beyond() int {
	return deploymentutil.ReplicasBeyond(s.deployment, slices.Collect(maps.Values(s.replicaSets)))
}
