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

package drain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	evictionrequesttools "k8s.io/client-go/tools/evictionrequest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/plaintext"
)

const (
	// answerTimeout is how long Interrupt waits for the answers to evictions. Only an answer says
	// whether an eviction is requested.
	answerTimeout = 2 * time.Second

	// withdrawalTimeout limits how long a withdrawal delays the end of the program.
	withdrawalTimeout = 5 * time.Second

	// withdrawalWorkers is how many requests are withdrawn at the same time.
	withdrawalWorkers = 10
)

// Requests remembers the EvictionRequests that the evictions of a Helper have caused, and whose pods
// are not evicted yet. A server with the feature gate EvictionRequestForEvictions goes on with them
// when the program has ended, until it notices that nobody calls any more. With any server, it also
// remembers since when evictions are denied, which are tried again for some minutes.
//
// Its methods do nothing with a nil pointer.
type Requests struct {
	client kubernetes.Interface
	out    io.Writer

	lock sync.Mutex
	// interrupted is closed when no further eviction may begin.
	interrupted chan struct{}
	// calls are the evictions without an answer, and open the requests.
	calls map[types.NamespacedName]types.UID
	open  map[types.NamespacedName]openRequest
	// denied has since when admission denies the evictions of pods.
	denied map[types.UID]time.Time
	now    func() time.Time
	// withdrawing is held during a withdrawal, and forever once Interrupt has begun one.
	withdrawing sync.Mutex
}

// openRequest identifies an EvictionRequest.
type openRequest struct {
	name string
	uid  types.UID
}

// NewRequests returns Requests that withdraw with the client, and say so in out.
func NewRequests(client kubernetes.Interface, out io.Writer) *Requests {
	return &Requests{
		client: client, out: out, interrupted: make(chan struct{}),
		calls: map[types.NamespacedName]types.UID{}, open: map[types.NamespacedName]openRequest{},
		denied: map[types.UID]time.Time{}, now: time.Now,
	}
}

// evict is EvictPod, and notes the request that the answer names. After an interrupt, it waits until
// ctx ends: an eviction would be requested again. drained is the pod that was on the node at the
// beginning, and pod the one that has its name now.
func (d *Helper) evict(ctx context.Context, errOut io.Writer, drained, pod corev1.Pod, evictionGroupVersion schema.GroupVersion) error {
	if hasLeft(&drained, &pod) {
		return apierrors.NewNotFound(corev1.Resource("pods"), pod.Name)
	}
	if !d.Requests.begin(&pod) {
		<-ctx.Done()
		return ctx.Err()
	}
	err := d.EvictPod(pod, evictionGroupVersion)
	d.Requests.note(&pod, err)
	return d.answer(errOut, &pod, err)
}

// withdrawAfter withdraws what is requested if evictions have failed, such as by the timeout, and so
// nobody will repeat them.
func (d *Helper) withdrawAfter(failures []error) {
	if d.Requests == nil || len(failures) == 0 {
		return
	}
	d.Requests.withdrawing.Lock()
	defer d.Requests.withdrawing.Unlock()
	d.Requests.withdraw()
}

// Interrupt prevents further evictions, and withdraws the requests for those that have not ended. It
// returns after a few seconds, whatever the server does. The program must end then.
func (r *Requests) Interrupt() {
	if r == nil {
		return
	}
	r.lock.Lock()
	close(r.interrupted)
	r.lock.Unlock()
	// Whoever ends the program otherwise would cut this withdrawal off.
	r.withdrawing.Lock()
	for deadline := time.Now().Add(answerTimeout); r.isCalling() && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	r.withdraw()
}

func (r *Requests) begin(pod *corev1.Pod) bool {
	if r == nil {
		return true
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	select {
	case <-r.interrupted:
		return false
	default:
	}
	r.calls[keyOf(pod)] = pod.UID
	return true
}

func (r *Requests) note(pod *corev1.Pod, answer error) {
	if r == nil {
		return
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	key := keyOf(pod)
	delete(r.calls, key)
	if name, uid, requested := evictionrequesttools.RequestedByCall(answer); requested {
		r.open[key] = openRequest{name: name, uid: uid}
	} else if answer == nil || apierrors.IsNotFound(answer) {
		delete(r.open, key)
	}
}

func (r *Requests) isCalling() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return len(r.calls) > 0
}

// take returns the pods whose requests are open, and those whose evictions have no answer, and forgets
// both.
func (r *Requests) take() (open map[types.NamespacedName]openRequest, unanswered map[types.NamespacedName]types.UID) {
	r.lock.Lock()
	defer r.lock.Unlock()
	open, unanswered = r.open, r.calls
	r.open, r.calls = map[types.NamespacedName]openRequest{}, map[types.NamespacedName]types.UID{}
	return open, unanswered
}

// withdraw withdraws the open requests, and prints a line for each pod. The caller holds withdrawing.
func (r *Requests) withdraw() {
	open, unanswered := r.take()
	// The context of the Helper may have ended.
	ctx, cancel := context.WithTimeout(context.Background(), withdrawalTimeout)
	defer cancel()
	pods := slices.SortedFunc(maps.Keys(open), compareKeys)
	if len(pods) > 0 {
		r.printf("withdrawing evictions that wait for interceptors: %d", len(pods))
	}
	outcomes := make([]string, len(pods))
	workqueue.ParallelizeUntil(context.Background(), withdrawalWorkers, len(pods), func(i int) {
		outcomes[i] = r.withdrawOne(ctx, pods[i], open[pods[i]])
	})
	for i, pod := range pods {
		r.printf("pods/%q -n %q %s", pod.Name, pod.Namespace, outcomes[i])
	}
	for _, pod := range slices.SortedFunc(maps.Keys(unanswered), compareKeys) {
		r.printf("pods/%q -n %q may leave: the server has not answered its eviction yet. To see whether that is requested: kubectl -n %s get evictionrequest %s",
			pod.Name, pod.Namespace, pod.Namespace, unanswered[pod])
	}
}

// stays is what becomes of a pod whose eviction nobody requests. Another drain of its node calls every few seconds.
const stays = "stays, unless somebody calls pods/eviction for it again: "

// withdrawOne withdraws one request, and returns what becomes of the pod.
func (r *Requests) withdrawOne(ctx context.Context, pod types.NamespacedName, open openRequest) string {
	request, err := r.remove(ctx, pod.Namespace, open)
	// An eviction that has begun is not stopped by that.
	current, podErr := r.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	isGone := apierrors.IsNotFound(podErr) || podErr == nil && string(current.UID) != open.name
	switch {
	case isGone:
		return "has left already"
	case podErr == nil && current.DeletionTimestamp != nil:
		return "leaves all the same: it terminates already"
	case apierrors.IsNotFound(err):
		return stays + "its eviction is not requested any more"
	case err != nil:
		return fmt.Sprintf("may leave all the same: its eviction cannot be withdrawn: %v. To cancel it, uncordon the node, or, for all who request it: kubectl -n %s delete evictionrequest %s",
			err, pod.Namespace, open.name)
	}
	if others := otherRequesters(request); len(others) > 0 {
		return "leaves all the same: its eviction is also requested by " + strings.Join(others, ", ")
	}
	if request.Status.EvictionRequestCancellationPolicy == coordinationv1alpha1.EvictionRequestCancellationPolicyForbid {
		return "leaves all the same: an interceptor has forbidden to cancel its eviction"
	}
	if meta.IsStatusConditionTrue(request.Status.Conditions, string(coordinationv1alpha1.EvictionRequestConditionEvicted)) {
		return "leaves all the same: it is evicted already"
	}
	return stays + "its eviction is withdrawn"
}

// remove removes the requester that stands for all callers of pods/eviction from this request, and from
// no other for the same pod. One call does, which needs the verb patch, and the verb request on that requester.
func (r *Requests) remove(ctx context.Context, namespace string, open openRequest) (*coordinationv1alpha1.EvictionRequest, error) {
	annotations := map[string]any{}
	for _, name := range evictionrequesttools.EvictionCallAnnotations() {
		annotations[name] = nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": open.uid, "annotations": annotations},
		"spec": map[string]any{
			"requesters": []map[string]string{{"name": coordinationv1alpha1.EvictionRequesterEvictions, "$patch": "delete"}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return r.client.CoordinationV1alpha1().EvictionRequests(namespace).
		Patch(ctx, open.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-drain"})
}

func otherRequesters(request *coordinationv1alpha1.EvictionRequest) []string {
	var names []string
	for _, requester := range request.Spec.Requesters {
		names = append(names, requester.Name)
	}
	return names
}

// printf prints a line. Messages of the server may have others.
func (r *Requests) printf(format string, args ...any) {
	fmt.Fprintln(r.out, plaintext.Line(fmt.Sprintf(format, args...))) //nolint:errcheck
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func compareKeys(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }
