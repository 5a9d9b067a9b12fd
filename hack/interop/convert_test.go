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

package interop

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const (
	tree      = "../../_output/kubernetes"
	goldenDir = "../../staging/src/k8s.io/kubectl/pkg/cmd/maintenance/convert/testdata"

	// seeds is the number of random lists of objects that go both ways.
	seeds = 30

	toLifecycle = "--to=lifecycle.k8s.io/v1alpha1"
)

// programDir is the directory of the program, or empty if no test has needed it.
var programDir string

// program builds kubectl-maintenance from the tree, with the flags of the Makefile, and returns its
// path.
var program = sync.OnceValues(func() (_ string, err error) {
	programDir, err = os.MkdirTemp("", "interop-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(programDir, "kubectl-maintenance")
	build := exec.Command("go", "build", "-C", tree, "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", path, "./cmd/kubectl-maintenance")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building kubectl-maintenance, which needs \"make tree\": %w: %s", err, output)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if programDir != "" {
		os.RemoveAll(programDir)
	}
	os.Exit(code)
}

// convert runs "kubectl maintenance convert" without a cluster. It returns what is written, and what
// is said.
func convert(t *testing.T, in []byte, args ...string) (written []byte, said string) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"convert", "-f", "-"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=/nonexistent")
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v: %s\ninput:\n%s", args, err, errOut.String(), in)
	}
	return out.Bytes(), errOut.String()
}

// documents splits a stream.
func documents(stream []byte) [][]byte {
	var all [][]byte
	for _, document := range bytes.Split(stream, []byte("---\n")) {
		if len(bytes.TrimSpace(document)) > 0 {
			all = append(all, document)
		}
	}
	return all
}

// decodeUpstream decodes documents as an API server of upstream does for a client that wants strict
// validation, and checks what the comments of the types require of names and priorities.
// cmd/kubectl-maintenance in the tree calls upstream's validation.
func decodeUpstream(t *testing.T, stream []byte) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, lifecyclev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for _, document := range documents(stream) {
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if err := checkUpstream(object); err != nil {
			t.Errorf("%v:\n%s", err, document)
		}
		objects = append(objects, object)
	}
	return objects
}

func checkUpstream(object runtime.Object) error {
	var errs field.ErrorList
	ctx, op, path := context.Background(), operation.Operation{}, field.NewPath("spec")
	checkName := func(name string) {
		errs = append(errs, validate.PrefixedLabelKey(ctx, op, path, &name, nil)...)
		if domain, _, _ := strings.Cut(name, "/"); strings.HasSuffix("."+domain, ".k8s.io") || strings.HasSuffix("."+domain, ".kubernetes.io") {
			errs = append(errs, field.Invalid(path, name, "is reserved"))
		}
	}
	switch o := object.(type) {
	case *lifecyclev1alpha1.EvictionRequest:
		errs = append(errs, validate.LongName(ctx, op, field.NewPath("metadata", "name"), &o.Name, nil)...)
		errs = append(errs, validate.UUID(ctx, op, path, &o.Spec.Target.Pod.UID, nil)...)
		checkName(o.Spec.Requester)
		if o.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction && o.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentWithdrawn {
			errs = append(errs, field.Invalid(path, o.Spec.Intent, "unknown"))
		}
	case *v1.Pod:
		if count := len(o.Spec.EvictionResponders); count > 10 {
			errs = append(errs, field.TooMany(path, count, 10))
		}
		for _, responder := range o.Spec.EvictionResponders {
			checkName(responder.Name)
			if responder.Priority == nil || *responder.Priority < 1000 || *responder.Priority > 100000 {
				errs = append(errs, field.Invalid(path, responder.Priority, "out of range"))
			}
		}
	}
	return errs.ToAggregate()
}

// TestGolden decodes what is converted to and from lifecycle.k8s.io in the tests of the command with
// upstream's types.
func TestGolden(t *testing.T) {
	for _, file := range []string{"lifecycle-requests.yaml", "to-lifecycle.out.yaml"} {
		data, err := os.ReadFile(filepath.Join(goldenDir, file))
		if err != nil {
			t.Fatal(err)
		}
		if objects := decodeUpstream(t, data); len(objects) < 4 {
			t.Errorf("%s has %d objects", file, len(objects))
		}
	}
}

// names are random names of responders and requesters of upstream.
func names(random *rand.Rand, count int) []string {
	domains := []string{"example.com", "a.example.com", "b.a.example.com", "example.org", "z.test"}
	keys := []string{"migrate", "Snapshot", "log_1", "a.b", "drain", "x"}
	var all []string
	for len(all) < count {
		name := domains[random.IntN(len(domains))] + "/" + keys[random.IntN(len(keys))]
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

func uid(random *rand.Rand) types.UID {
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", random.Uint32(), random.Uint32N(1<<16), random.Uint32N(1<<12), random.Uint32N(1<<12), random.Uint64N(1<<48)))
}

func marshal(t *testing.T, objects ...any) []byte {
	t.Helper()
	var stream []byte
	for _, object := range objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		stream = append(append(stream, "---\n"...), data...)
	}
	return stream
}

// higherDomainFirst compares names as the comment of EvictionResponder describes it, by the reversed
// domain as one text, whose labels end in a character that sorts before all others.
func higherDomainFirst(a, b string) int {
	key := func(name string) string {
		domain, key, _ := strings.Cut(name, "/")
		labels := strings.Split(domain, ".")
		slices.Reverse(labels)
		return strings.Join(labels, "\x01") + "\x00" + key
	}
	return cmp.Compare(key(a), key(b))
}

// TestPodsFromUpstream converts pods with responders to pods with interceptors and back: all stays but
// the priorities, whose order stays.
func TestPodsFromUpstream(t *testing.T) {
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 137))
		var pods []any
		for i := range 10 {
			pod := &v1.Pod{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), Namespace: "shop", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "\u202e: #"}},
				Spec:       v1.PodSpec{NodeName: "node-1", Containers: []v1.Container{{Name: "c", Image: "example.com/c:1"}}, TerminationGracePeriodSeconds: ptr.To[int64](7)},
			}
			for _, name := range names(random, random.IntN(11)) {
				pod.Spec.EvictionResponders = append(pod.Spec.EvictionResponders, v1.EvictionResponder{Name: name, Priority: ptr.To(1000 + 9000*random.Int32N(11))})
			}
			pods = append(pods, pod)
		}
		here, said := convert(t, marshal(t, pods...))
		if bytes.Contains(here, []byte("evictionResponders")) || strings.Contains(said, "lost:") {
			t.Fatalf("seed %d: %s\n%s", seed, said, here)
		}
		back, _ := convert(t, here, toLifecycle)
		for i, object := range decodeUpstream(t, back) {
			got, want := object.(*v1.Pod), pods[i].(*v1.Pod).DeepCopy()
			slices.SortFunc(want.Spec.EvictionResponders, func(a, b v1.EvictionResponder) int {
				return cmp.Or(cmp.Compare(*b.Priority, *a.Priority), higherDomainFirst(a.Name, b.Name))
			})
			before := int32(100001)
			for j := range got.Spec.EvictionResponders {
				priority := got.Spec.EvictionResponders[j].Priority
				if *priority >= before {
					t.Errorf("seed %d: priority %d after %d", seed, *priority, before)
				}
				before, *priority, *want.Spec.EvictionResponders[min(j, len(want.Spec.EvictionResponders)-1)].Priority = *priority, 0, 0
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d (-want +got):\n%s", seed, diff)
			}
		}
		if again, _ := convert(t, back); !bytes.Equal(again, here) {
			t.Errorf("seed %d: the second time, it is\n%s\nnot\n%s", seed, again, here)
		}
	}
}

// TestWorkloadsFromUpstream converts the pod templates of all kinds of workloads and back.
func TestWorkloadsFromUpstream(t *testing.T) {
	template := func(first, second int32) v1.PodTemplateSpec {
		return v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: v1.PodSpec{
				Containers: []v1.Container{{Name: "c", Image: "example.com/c:1"}},
				EvictionResponders: []v1.EvictionResponder{
					{Name: "example.com/first", Priority: ptr.To(first)}, {Name: "example.com/second", Priority: ptr.To(second)},
				},
			},
		}
	}
	typed := func(version, kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: version, Kind: kind} }
	meta, selector := metav1.ObjectMeta{Name: "web", Namespace: "shop"}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	workloads := func(template v1.PodTemplateSpec) []any {
		job := batchv1.JobSpec{Parallelism: ptr.To[int32](2), Template: template}
		return []any{
			&v1.PodTemplate{TypeMeta: typed("v1", "PodTemplate"), ObjectMeta: meta, Template: template},
			&v1.ReplicationController{TypeMeta: typed("v1", "ReplicationController"), ObjectMeta: meta, Spec: v1.ReplicationControllerSpec{Selector: selector.MatchLabels, Template: &template}},
			&appsv1.DaemonSet{TypeMeta: typed("apps/v1", "DaemonSet"), ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
			&appsv1.Deployment{TypeMeta: typed("apps/v1", "Deployment"), ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Replicas: ptr.To[int32](3), Template: template}},
			&appsv1.ReplicaSet{TypeMeta: typed("apps/v1", "ReplicaSet"), ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}},
			&appsv1.StatefulSet{TypeMeta: typed("apps/v1", "StatefulSet"), ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, ServiceName: "web", Template: template}},
			&batchv1.Job{TypeMeta: typed("batch/v1", "Job"), ObjectMeta: meta, Spec: job},
			&batchv1.CronJob{TypeMeta: typed("batch/v1", "CronJob"), ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}},
		}
	}
	here, said := convert(t, marshal(t, workloads(template(30000, 2000))...))
	if bytes.Contains(here, []byte("evictionResponders")) || strings.Contains(said, "lost:") {
		t.Fatalf("%s\n%s", said, here)
	}
	back, _ := convert(t, here, toLifecycle)
	var got []any
	for _, object := range decodeUpstream(t, back) {
		got = append(got, object)
	}
	if diff := gocmp.Diff(workloads(template(12000, 11000)), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRequestsFromUpstream converts EvictionRequests of lifecycle.k8s.io to ours and back: the same
// requesters ask for the same pods. What differs is listed: names of objects, and requesters that have
// withdrawn.
func TestRequestsFromUpstream(t *testing.T) {
	type asked struct {
		namespace, pod, requester string
		uid                       types.UID
	}
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 4563))
		var requests []any
		var want, withdrawn []asked
		for i := range 5 {
			pod := asked{namespace: fmt.Sprintf("ns-%d", i%2), pod: fmt.Sprintf("pod-%d", i), uid: uid(random)}
			for j, name := range names(random, 1+random.IntN(4)) {
				pod.requester = name
				request := &lifecyclev1alpha1.EvictionRequest{
					TypeMeta:   metav1.TypeMeta{APIVersion: "lifecycle.k8s.io/v1alpha1", Kind: "EvictionRequest"},
					ObjectMeta: metav1.ObjectMeta{Namespace: pod.namespace, Name: fmt.Sprintf("request-%d-%d", i, j), Labels: map[string]string{"app": pod.pod}},
					Spec: lifecyclev1alpha1.EvictionRequestSpec{
						Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.pod, UID: pod.uid}},
						Requester: name, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
					},
				}
				if random.IntN(5) == 0 {
					request.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
					withdrawn = append(withdrawn, pod)
				} else {
					want = append(want, pod)
				}
				requests = append(requests, request)
			}
		}
		here, said := convert(t, marshal(t, requests...))
		if strings.Contains(said, "lost:") || strings.Count(said, "metadata.name=") != len(want) {
			t.Errorf("seed %d: %s", seed, said)
		}
		for _, pod := range withdrawn {
			if !strings.Contains(said, "spec.intent=Withdrawn: "+pod.requester+" is not in spec.requesters") {
				t.Errorf("seed %d: %s is missing in %s", seed, pod.requester, said)
			}
		}
		back, _ := convert(t, here, toLifecycle)
		var got []asked
		for _, object := range decodeUpstream(t, back) {
			request := object.(*lifecyclev1alpha1.EvictionRequest)
			target := request.Spec.Target.Pod
			got = append(got, asked{namespace: request.Namespace, pod: target.Name, uid: target.UID, requester: request.Spec.Requester})
			if request.Labels["app"] != target.Name || request.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction {
				t.Errorf("seed %d: %v", seed, request)
			}
		}
		if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(asked{})); diff != "" {
			t.Errorf("seed %d (-want +got):\n%s", seed, diff)
		}
		if again, _ := convert(t, back); !bytes.Equal(again, here) {
			t.Errorf("seed %d: the second time, it is\n%s\nnot\n%s", seed, again, here)
		}
	}
}

// podHere is a pod of ours, of which this module has no types.
type podHere struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		Containers           []v1.Container `json:"containers"`
		EvictionInterceptors []named        `json:"evictionInterceptors,omitempty"`
	} `json:"spec"`
}

type named struct {
	Name string `json:"name"`
}

// TestPodsFromHere converts pods with 0 to 15 interceptors to pods with responders and back. The first
// ten stay in their order. What is lost is listed: the others, and domain names, which become keys.
func TestPodsFromHere(t *testing.T) {
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 15))
		var pods []any
		wanted := map[string][]named{}
		var listed []string
		for i := range 16 {
			pod := &podHere{APIVersion: "v1", Kind: "Pod", Metadata: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), Namespace: "shop"}}
			pod.Spec.Containers = []v1.Container{{Name: "c", Image: "example.com/c:1"}}
			for j, name := range names(random, i) {
				domain, key, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(name, "_", "-")), "/")
				here, there := name, name
				if random.IntN(2) == 0 && !strings.Contains(key, ".") {
					here, there = fmt.Sprintf("%s-%d.%s", key, j, domain), fmt.Sprintf("%s/%s-%d", domain, key, j)
				}
				pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, named{here})
				path := fmt.Sprintf("Pod/%s: spec.evictionInterceptors[%d].name=%s: ", pod.Metadata.Name, j, here)
				switch {
				case j >= 10:
					listed = append(listed, "lost: standard input, document "+fmt.Sprint(i+1)+": "+path)
					continue
				case here != there:
					listed = append(listed, path+"is "+there)
				}
				wanted[pod.Metadata.Name] = append(wanted[pod.Metadata.Name], named{there})
			}
			pods = append(pods, pod)
		}
		there, said := convert(t, marshal(t, pods...), toLifecycle)
		for _, line := range listed {
			if !strings.Contains(said, line) {
				t.Errorf("seed %d: %q is missing in %s", seed, line, said)
			}
		}
		if objects := decodeUpstream(t, there); len(objects) != len(pods) {
			t.Errorf("seed %d: %d pods", seed, len(objects))
		}
		back, said := convert(t, there)
		if strings.Contains(said, "lost:") {
			t.Errorf("seed %d: %s", seed, said)
		}
		for _, document := range documents(back) {
			var pod podHere
			if err := yaml.UnmarshalStrict(document, &pod); err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(wanted[pod.Metadata.Name], pod.Spec.EvictionInterceptors); diff != "" {
				t.Errorf("seed %d, %s (-want +got):\n%s", seed, pod.Metadata.Name, diff)
			}
		}
	}
}
