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

package describe

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// updateEnv, if set to true, makes the tests write the golden files.
const updateEnv = "UPDATE_GOLDEN"

const (
	podUID     = "0f8fad5b-d9cb-469f-a165-70867728950e"
	backup     = "backup.example.com"
	migrate    = "migrate.example.com"
	imperative = coordinationv1alpha1.EvictionInterceptorImperative
	daemonSet  = coordinationv1alpha1.EvictionInterceptorDaemonSet
)

// story builds a request. Its times are relative to now, when it is described.
type story struct {
	*coordinationv1alpha1.EvictionRequest
	now time.Time
}

func (s story) ago(ago time.Duration) metav1.Time {
	return metav1.Time{Time: s.now.UTC().Add(-ago)}
}

// newStory returns a request that no component has acted on.
func newStory(created time.Duration) story {
	s := story{&coordinationv1alpha1.EvictionRequest{}, time.Now()}
	s.Name, s.Namespace = podUID, "default"
	s.CreationTimestamp = s.ago(created)
	s.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: "db-0", UID: podUID}
	s.Spec.HeartbeatDeadlineSeconds = ptr.To[int32](1200)
	return s.askedBy("drain.example.com")
}

func (s story) askedBy(names ...string) story {
	s.Spec.Requesters = nil
	for _, name := range names {
		s.Spec.Requesters = append(s.Spec.Requesters, coordinationv1alpha1.Requester{Name: name})
	}
	return s
}

// taken sets the target interceptors, as the controller does for a pod with these interceptors.
func (s story) taken(names ...string) story {
	s.Labels = map[string]string{"app": "db", "tier": "storage"}
	for _, name := range append(names, imperative) {
		s.Status.TargetInterceptors = append(s.Status.TargetInterceptors, coordinationv1alpha1.Interceptor{Name: name})
		s.Status.Interceptors = append(s.Status.Interceptors, coordinationv1alpha1.InterceptorStatus{Name: name})
	}
	return s
}

// processed marks the first interceptors as processed.
func (s story) processed(count int) story {
	for _, interceptor := range s.Status.TargetInterceptors[:count] {
		s.Status.ProcessedInterceptors = append(s.Status.ProcessedInterceptors, interceptor.Name)
	}
	return s
}

// active activates the first interceptor that is not processed.
func (s story) active(since time.Duration) story {
	next := s.Status.TargetInterceptors[len(s.Status.ProcessedInterceptors)].Name
	s.Status.ActiveInterceptors = []string{next}
	s.Status.ActivationTime = ptr.To(s.ago(since))
	return s
}

// report sets the status of an interceptor.
func (s story) report(index int, started, heartbeat time.Duration, message string) story {
	entry := &s.Status.Interceptors[index]
	entry.StartTime, entry.HeartbeatTime = ptr.To(s.ago(started)), ptr.To(s.ago(heartbeat))
	entry.Message = message
	return s
}

func (s story) eta(index int, in time.Duration) story {
	s.Status.Interceptors[index].ExpectedFinishTime = ptr.To(s.ago(-in))
	return s
}

func (s story) completed(index int, ago time.Duration) story {
	s.Status.Interceptors[index].CompletionTime = ptr.To(s.ago(ago))
	return s
}

func (s story) condition(conditionType coordinationv1alpha1.EvictionRequestConditionType, status metav1.ConditionStatus, ago time.Duration, reason, message string) story {
	s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{
		Type: string(conditionType), Status: status, LastTransitionTime: s.ago(ago), Reason: reason, Message: message,
	})
	return s
}

const budgetMessage = "PodDisruptionBudget db: Cannot evict pod as it would violate the pod's disruption budget: it needs 3 healthy pods and has 3 currently."

// stories returns one request for each state, by the name of its golden file.
func stories() map[string]story {
	migrated := func() story {
		return newStory(30*time.Minute).taken(migrate).report(0, 29*time.Minute, 12*time.Minute, "Migrated.").completed(0, 12*time.Minute).processed(1).active(12 * time.Minute)
	}
	blocked := migrated().report(1, 12*time.Minute, 5*time.Minute, "Eviction refused (attempt 3): "+budgetMessage).
		condition(coordinationv1alpha1.EvictionRequestConditionBlocked, metav1.ConditionTrue, 12*time.Minute, coordinationv1alpha1.EvictionRequestReasonDisruptionBudget, budgetMessage)
	blocked.Status.Interceptors[1].Retries = 3

	canceled := newStory(10*time.Minute).askedBy().taken(migrate, backup).report(0, 9*time.Minute, 2*time.Minute, "").processed(1).
		condition(coordinationv1alpha1.EvictionRequestConditionCanceled, metav1.ConditionTrue, time.Minute, coordinationv1alpha1.EvictionRequestReasonNoRequesters, "The last requester was removed from spec.requesters.")

	forbidden := newStory(10*time.Minute).askedBy().taken(migrate).active(10*time.Minute).report(0, 10*time.Minute, 90*time.Second, "The copy is switched over.")
	forbidden.Status.EvictionRequestCancellationPolicy = coordinationv1alpha1.EvictionRequestCancellationPolicyForbid

	deleted := newStory(10 * time.Minute).taken(migrate).active(10 * time.Minute)
	deleted.DeletionTimestamp = ptr.To(deleted.ago(time.Second))

	// One refusal with times of a clock that is ahead, on a request of an older version.
	refused := newStory(time.Minute).taken().active(0).report(0, 30*time.Second, -3*time.Second, "").
		condition(coordinationv1alpha1.EvictionRequestConditionBlocked, metav1.ConditionTrue, -3*time.Second, coordinationv1alpha1.EvictionRequestReasonEvictionRefused, "admission webhook \"deny\" denied the request")
	refused.Status.Interceptors[0].Retries = 1
	refused.Status.ActivationTime, refused.Spec.HeartbeatDeadlineSeconds = nil, nil

	stray := newStory(time.Minute)
	stray.Status.TargetInterceptors = []coordinationv1alpha1.Interceptor{{Name: migrate}}
	stray.Status.ActiveInterceptors = []string{migrate}

	inactivated := newStory(5 * time.Minute).taken(migrate)
	inactivated.Status.ActiveInterceptors = []string{migrate}

	return map[string]story{
		"pending":      newStory(3*time.Second).askedBy("drain.example.com", "descheduler.example.com"),
		"activated":    newStory(40 * time.Second).taken(migrate).active(39 * time.Second),
		"intercepting": newStory(6*time.Minute).taken(migrate, backup).active(6*time.Minute).report(0, 6*time.Minute, 2*time.Minute, "Copying 40 of 60 GiB.").eta(0, 8*time.Minute+20*time.Second),
		"surging": newStory(time.Minute).taken(coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet).active(50*time.Second).
			report(0, 50*time.Second, 50*time.Second, "Surging 0/1: waiting for pod db-1 to become ready."),
		"unresponsive": newStory(16*time.Minute).taken(migrate).active(15*time.Minute).report(0, 15*time.Minute, 14*time.Minute, "Copying.").eta(0, -5*time.Minute).
			condition(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, metav1.ConditionTrue, 13*time.Minute, "HeartbeatMissing", "Interceptor migrate.example.com sent its last heartbeat\nat 12:01."),
		"daemonset": newStory(40*time.Minute).taken(daemonSet).active(39*time.Minute).
			condition(coordinationv1alpha1.EvictionRequestConditionInterceptorUnresponsive, metav1.ConditionTrue, 38*time.Minute,
				coordinationv1alpha1.EvictionRequestReasonNotStarted, "Interceptor daemonset.apps.k8s.io has not started since it was activated at 2000-01-01T00:00:00Z."),
		"daemonset-reporting": newStory(40*time.Minute).taken(daemonSet).active(39*time.Minute).report(0, 38*time.Minute, 30*time.Minute, "Terminating the pod of DaemonSet db."),
		"daemonset-stray":     newStory(40 * time.Minute).taken(daemonSet).active(10 * time.Minute),
		"silent":              newStory(21 * time.Minute).taken(migrate).active(20 * time.Minute),
		"handover":            newStory(9*time.Minute).taken(migrate).active(9*time.Minute).report(0, 9*time.Minute, time.Second, "Migrated.").eta(0, time.Minute).completed(0, time.Second),
		"timed-out":           newStory(21 * time.Minute).taken(migrate).processed(1).active(time.Second),
		"evicting":            migrated().report(1, 11*time.Minute, 11*time.Minute, "The pod is terminating."),
		"blocked":             blocked,
		"declined":            newStory(2*time.Minute).taken().report(0, 2*time.Minute, 2*time.Minute, "Not evicted: the DaemonSet would recreate the pod on the same node.").completed(0, 2*time.Minute).processed(1),
		"evicted": newStory(30*time.Minute).taken(migrate, backup).report(0, 29*time.Minute, 28*time.Minute, "").eta(0, -20*time.Minute).
			report(1, 12*time.Minute, 11*time.Minute, "").eta(1, time.Minute).processed(2).
			condition(coordinationv1alpha1.EvictionRequestConditionEvicted, metav1.ConditionTrue, 10*time.Minute, coordinationv1alpha1.EvictionRequestReasonPodDeleted, "Target Pod db-0 was deleted."),
		"canceled":  canceled,
		"forbid":    forbidden,
		"withdrawn": newStory(10 * time.Minute).askedBy().taken(migrate).active(10 * time.Minute),
		"deleted":   deleted,
		"refused":   refused,
		// Our controller does not write these, but other clients can.
		"no-entry":      stray,
		"no-activation": inactivated,
		// Its message must not imitate lines of kubectl, or control the terminal.
		"hostile": newStory(6*time.Minute).taken(migrate).active(6*time.Minute).report(0, 6*time.Minute, 2*time.Minute, "Done.\n\nState:\tEvicted\nEvents:  <none>\x1b[2K\f\n"+strings.Repeat("word ", 20)),
	}
}

func requestEvents(now time.Time, request *coordinationv1alpha1.EvictionRequest) runtime.Object {
	event := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "activated", Namespace: request.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "EvictionRequest", Namespace: request.Namespace, Name: request.Name},
		Type:           corev1.EventTypeNormal, Reason: "InterceptorActivated", Message: "Activated migrate.example.com.",
		Source: corev1.EventSource{Component: "evictionrequest-controller"}, Count: 1,
		FirstTimestamp: metav1.Time{Time: now.Add(-6 * time.Minute)}, LastTimestamp: metav1.Time{Time: now.Add(-6 * time.Minute)},
	}
	return &corev1.EventList{Items: []corev1.Event{event}}
}

func TestDescribeEvictionRequest(t *testing.T) {
	// In the synctest bubble, the time stays at the start of the year 2000.
	synctest.Test(t, func(t *testing.T) {
		for name, story := range stories() {
			settings := DescriberSettings{ShowEvents: name != "pending"}
			objects := []runtime.Object{story.EvictionRequest}
			if name == "intercepting" {
				objects = append(objects, requestEvents(story.now, story.EvictionRequest))
			}
			switch name {
			case "daemonset-reporting": // The pod of "daemonset" is not found.
				objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0", UID: podUID,
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "db", Controller: ptr.To(true)}}}})
			case "daemonset-stray": // A pod that belongs to no DaemonSet.
				objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0", UID: podUID}})
			}
			describer := &EvictionRequestDescriber{fake.NewClientset(objects...)}
			output, err := describer.Describe(story.Namespace, story.Name, settings)
			if err != nil {
				t.Fatal(err)
			}
			compareWithGolden(t, filepath.Join("evictionrequest", name+".txt"), output)
		}
	})
}

// TestTargetPodIsTheOne verifies that a pod of the same name with another UID is not the target.
func TestTargetPodIsTheOne(t *testing.T) {
	request := &coordinationv1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", UID: "1"}}
	d := &EvictionRequestDescriber{fake.NewClientset(pod)}
	if got := d.targetPod(request); got != nil {
		t.Errorf("without a target: %v", got)
	}
	for uid, want := range map[string]bool{"1": true, "2": false} {
		request.Spec.Target.Pod = &coordinationv1alpha1.LocalPodReference{Name: "p", UID: uid}
		if got := d.targetPod(request); (got != nil) != want {
			t.Errorf("%s: %v", uid, got)
		}
	}
}

func TestDescribeEvictionRequestNotFound(t *testing.T) {
	describer := &EvictionRequestDescriber{fake.NewClientset()}
	if output, err := describer.Describe("default", podUID, DescriberSettings{}); err == nil {
		t.Errorf("no error, but\n%s", output)
	}
}

func TestEvictionRequestDescriberIsRegistered(t *testing.T) {
	kind := schema.GroupKind{Group: "coordination.k8s.io", Kind: "EvictionRequest"}
	describer, found := DescriberFor(kind, &rest.Config{})
	if _, ok := describer.(*EvictionRequestDescriber); !found || !ok {
		t.Errorf("got %T", describer)
	}
}

// podSpec returns the spec of a pod with interceptors.
func podSpec(interceptors ...string) corev1.PodSpec {
	spec := corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "db", Image: "db:1"}},
		Tolerations: []corev1.Toleration{{Key: "storage", Operator: corev1.TolerationOpExists}},
	}
	for _, name := range interceptors {
		spec.EvictionInterceptors = append(spec.EvictionInterceptors, corev1.EvictionInterceptor{Name: name})
	}
	return spec
}

// TestDescribeEvictionInterceptors also verifies that nothing changes without interceptors: the
// golden files differ only in these lines.
func TestDescribeEvictionInterceptors(t *testing.T) {
	for suffix, interceptors := range map[string][]string{"": nil, "-intercepted": {migrate, backup}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0"}, Spec: podSpec(interceptors...)}
		output, err := (&PodDescriber{fake.NewClientset(pod)}).Describe("default", "db-0", DescriberSettings{})
		if err != nil {
			t.Fatal(err)
		}
		compareWithGolden(t, filepath.Join("evictionrequest", "pod"+suffix+".txt"), output)

		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"},
			Spec: appsv1.StatefulSetSpec{
				Replicas: ptr.To[int32](1),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
				Template: corev1.PodTemplateSpec{Spec: podSpec(interceptors...)},
			},
		}
		output, err = (&StatefulSetDescriber{fake.NewClientset(set)}).Describe("default", "db", DescriberSettings{})
		if err != nil {
			t.Fatal(err)
		}
		compareWithGolden(t, filepath.Join("evictionrequest", "statefulset"+suffix+".txt"), output)
	}
}

func compareWithGolden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if os.Getenv(updateEnv) == "true" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (%s=true writes it)", err, updateEnv)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got, %s=true rewrites it):\n%s", path, updateEnv, diff)
	}
}

// Responders are listed in the order in which they act, and pods without them are described as upstream does.
func TestPrintEvictionResponders(t *testing.T) {
	responders := []corev1.EvictionResponder{
		{Name: "b.example.com/save", Priority: ptr.To[int32](5000)}, {Name: "a.example.com/save", Priority: ptr.To[int32](5000)}, {Name: "z.example.com/first", Priority: ptr.To[int32](20000)},
	}
	got, err := tabbedString(func(out io.Writer) error {
		w := NewPrefixWriter(out)
		printEvictionResponders(w, "None", nil)
		printEvictionResponders(w, "Eviction Responders", responders)
		return nil
	})
	const want = `Eviction Responders:  z.example.com/first (priority 20000)
                      a.example.com/save (priority 5000)
                      b.example.com/save (priority 5000)
`
	if err != nil || got != want {
		t.Errorf("got %v and\n%s, want\n%s", err, got, want)
	}
}
