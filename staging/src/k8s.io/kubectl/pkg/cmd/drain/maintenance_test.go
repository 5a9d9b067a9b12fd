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
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/rest/fake"
	plaintexttesting "k8s.io/component-helpers/plaintext/testing"
	cmdtesting "k8s.io/kubectl/pkg/cmd/testing"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/drain"
	"k8s.io/kubectl/pkg/scheme"
	"k8s.io/utils/ptr"
)

// Servers with different resources of coordination.k8s.io/v1alpha1.
var (
	servesAll      = &fakeDiscovery{resources: []string{"evictionrequests", "evictionrequests/status", "nodemaintenances", "nodemaintenances/status"}}
	servesRequests = &fakeDiscovery{resources: []string{"evictionrequests", "evictionrequests/status"}}
	servesOthers   = &fakeDiscovery{resources: []string{"leasecandidates"}}
	servesNothing  = &fakeDiscovery{err: apierrors.NewNotFound(schema.GroupResource{}, "")}
	forbids        = &fakeDiscovery{err: apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))}
	fails          = &fakeDiscovery{err: errors.New("connection refused")}
)

// fakeDiscovery serves resources, and counts the requests for them.
type fakeDiscovery struct {
	*cmdtesting.FakeCachedDiscoveryClient
	resources []string
	err       error
	asked     int
}

func (d *fakeDiscovery) RESTClient() restclient.Interface {
	return &fake.RESTClient{
		GroupVersion: corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		Client: fake.CreateHTTPClient(func(request *http.Request) (*http.Response, error) {
			d.asked++
			if line := request.Method + " " + request.URL.Path; line != "GET /apis/coordination.k8s.io/v1alpha1" {
				return nil, fmt.Errorf("unexpected request %s", line)
			}
			var status *apierrors.StatusError
			if errors.As(d.err, &status) {
				return respondError(status)
			}
			list := &metav1.APIResourceList{GroupVersion: "coordination.k8s.io/v1alpha1"}
			for _, name := range d.resources {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
			}
			response, _ := respond(list)
			return response, d.err
		}),
	}
}

// cluster is a fake API server with nodes, pods and maintenances.
type cluster struct {
	nodes        []*corev1.Node
	pods         []*corev1.Pod
	maintenances []*coordinationv1alpha1.NodeMaintenance
	// listError is the response to lists of maintenances.
	listError *apierrors.StatusError
	// onEvict is called for each eviction.
	onEvict func(*cluster)
	// cordonError is the response to changes of the first node.
	cordonError *apierrors.StatusError
	// denials is how many evictions, or deletions, a webhook denies.
	denials int

	lock     sync.Mutex
	requests []string // Writes, and lists of maintenances.
}

func (c *cluster) serve(request *http.Request) (*http.Response, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	path := request.URL.Path
	if !strings.HasPrefix(path, "/api") {
		path = "/api/v1" + path // The builder of the test factory omits it.
	}
	line := request.Method + " " + path
	if request.Method != http.MethodGet || strings.Contains(path, "coordination") {
		c.requests = append(c.requests, line)
	}
	switch {
	case line == "GET /api/v1":
		return respond(&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: drain.EvictionSubresource, Kind: drain.EvictionKind, Group: "policy", Version: "v1"},
		}})
	case line == "GET /apis/coordination.k8s.io/v1alpha1/nodemaintenances":
		if c.listError != nil {
			return respondError(c.listError)
		}
		list := &coordinationv1alpha1.NodeMaintenanceList{}
		for _, m := range c.maintenances {
			list.Items = append(list.Items, *m)
		}
		return respond(list)
	case line == "GET /api/v1/pods":
		list := &corev1.PodList{}
		for _, pod := range c.pods {
			if request.URL.Query().Get("fieldSelector") == "spec.nodeName="+pod.Spec.NodeName {
				list.Items = append(list.Items, *pod)
			}
		}
		return respond(list)
	case line == "GET /api/v1/nodes":
		list := &corev1.NodeList{}
		for _, node := range c.nodes {
			list.Items = append(list.Items, *node)
		}
		return respond(list)
	}
	for i, node := range c.nodes {
		if path == "/api/v1/nodes/"+node.Name {
			if request.Method == http.MethodPatch && i == 0 && c.cordonError != nil {
				return respondError(c.cordonError)
			}
			return respond(node)
		}
	}
	for i, pod := range c.pods {
		switch podPath := "/api/v1/namespaces/default/pods/" + pod.Name; line {
		case "GET " + podPath:
			return respond(pod)
		case "POST " + podPath + "/eviction", "DELETE " + podPath:
			if c.denials > 0 {
				c.denials--
				denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name, nil)
				denied.ErrStatus.Message = denial
				return respondError(denied)
			}
			c.pods = append(c.pods[:i:i], c.pods[i+1:]...)
			if c.onEvict != nil {
				c.onEvict(c)
			}
			return respond(&metav1.Status{Status: metav1.StatusSuccess})
		}
	}
	return respondError(apierrors.NewNotFound(schema.GroupResource{}, path))
}

func respond(object runtime.Object) (*http.Response, error) {
	codec := scheme.Codecs.LegacyCodec(scheme.Scheme.PrioritizedVersionsAllGroups()...)
	return &http.Response{StatusCode: http.StatusOK, Header: cmdtesting.DefaultHeader(), Body: cmdtesting.ObjBody(codec, object)}, nil
}

func respondError(err *apierrors.StatusError) (*http.Response, error) {
	response, _ := respond(&err.ErrStatus)
	response.StatusCode = int(err.ErrStatus.Code)
	return response, nil
}

// factory returns clients of the cluster. The test factory does not set the client of our API.
type factory struct {
	*cmdtesting.TestFactory
	http *http.Client
}

func (f *factory) KubernetesClientSet() (*kubernetes.Clientset, error) {
	clientset, err := f.TestFactory.KubernetesClientSet()
	if err == nil {
		clientset.CoordinationV1alpha1().RESTClient().(*restclient.RESTClient).Client = f.http
	}
	return clientset, err
}

// outcome contains the output and the requests of a command.
type outcome struct {
	Out, Err string
	// Fatal is the error message of the command.
	Fatal    string
	Requests []string
	// Discoveries is the number of discovery requests.
	Discoveries int
}

func run(c *cluster, served *fakeDiscovery, newCommand func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command, args ...string) outcome {
	served = &fakeDiscovery{FakeCachedDiscoveryClient: cmdtesting.NewFakeCachedDiscoveryClient(), resources: served.resources, err: served.err}
	tf := cmdtesting.NewTestFactory().WithDiscoveryClient(served)
	defer tf.Cleanup()
	httpClient := fake.CreateHTTPClient(c.serve)
	tf.Client = &fake.RESTClient{GroupVersion: corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(), Client: httpClient}
	tf.ClientConfigVal = cmdtesting.DefaultClientConfig()

	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	var got outcome
	func() {
		defer cmdutil.DefaultBehaviorOnFatal()
		defer func() {
			if r := recover(); r != nil && got.Fatal == "" {
				panic(r)
			}
		}()
		cmdutil.BehaviorOnFatal(func(message string, _ int) { got.Fatal = message; panic(message) })
		command := newCommand(&factory{TestFactory: tf, http: httpClient}, streams)
		command.SetArgs(args)
		command.SetOut(out)
		command.SetErr(errOut)
		if err := command.Execute(); err != nil {
			got.Fatal = err.Error()
		}
	}()
	got.Out, got.Err, got.Requests, got.Discoveries = out.String(), errOut.String(), c.requests, served.asked
	return got
}

func makeNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "a"}}}
}

func cordoned(node *corev1.Node) *corev1.Node {
	node.Spec.Unschedulable = true
	return node
}

func maintained(node *corev1.Node) *corev1.Node {
	node.Status.MaintenanceStatus = &corev1.MaintenanceStatus{}
	return node
}

func inProgress(node *corev1.Node, status corev1.ConditionStatus) *corev1.Node {
	node.Status.Conditions = []corev1.NodeCondition{{Type: "MaintenanceInProgress", Status: status}}
	return node
}

func makeMaintenance(name string, stage coordinationv1alpha1.NodeMaintenanceStage, node string) *coordinationv1alpha1.NodeMaintenance {
	return &coordinationv1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1alpha1.NodeMaintenanceSpec{Stage: stage, NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}},
	}
}

func makePod(name string, interceptors ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: "uid",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "n1"},
	}
	for _, interceptor := range interceptors {
		pod.Spec.EvictionInterceptors = append(pod.Spec.EvictionInterceptors, corev1.EvictionInterceptor{Name: interceptor})
	}
	return pod
}

func registered(pod *corev1.Pod, interceptor string) *corev1.Pod {
	pod.Annotations = map[string]string{coordinationv1alpha1.EvictionInterceptorAnnotationPrefix + interceptor: "100"}
	return pod
}

const (
	stageIdle     = coordinationv1alpha1.NodeMaintenanceStageIdle
	stageCordon   = coordinationv1alpha1.NodeMaintenanceStageCordon
	stageDrain    = coordinationv1alpha1.NodeMaintenanceStageDrain
	stageComplete = coordinationv1alpha1.NodeMaintenanceStageComplete

	listMaintenances = "GET /apis/coordination.k8s.io/v1alpha1/nodemaintenances"
	patchNode        = "PATCH /api/v1/nodes/n1"
	evictPlain       = "POST /api/v1/namespaces/default/pods/plain/eviction"
	evictDB          = "POST /api/v1/namespaces/default/pods/db/eviction"
)

func TestCordonAndUncordonUnderMaintenance(t *testing.T) {
	m := []*coordinationv1alpha1.NodeMaintenance{
		makeMaintenance("idle", stageIdle, "n1"), makeMaintenance("m1", stageDrain, "n1"),
		makeMaintenance("other", stageDrain, "n2"), makeMaintenance("over", stageComplete, "n1"),
	}
	withoutSelector := makeMaintenance("broken", stageDrain, "n1")
	withoutSelector.Spec.NodeSelector = nil
	var six []*coordinationv1alpha1.NodeMaintenance
	for i := range 6 {
		six = append(six, makeMaintenance(fmt.Sprintf("m%d", i+1), stageCordon, "n1"))
	}
	over := makeMaintenance("m1", stageDrain, "n1")
	over.UID = "m1"
	givenBack := makeNode("n1")
	givenBack.Status.MaintenanceStatus = &corev1.MaintenanceStatus{
		Unclaimed: true, Admissions: []corev1.MaintenanceAdmission{{MaintenanceUID: over.UID, DoneTime: ptr.To(metav1.Now())}},
	}
	type command = func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command
	tests := map[string]struct {
		command command
		served  *fakeDiscovery
		cluster *cluster
		args    []string
		want    outcome
	}{
		"cordon a node that was given back": {
			command: NewCmdCordon, served: servesAll,
			cluster: &cluster{nodes: []*corev1.Node{givenBack.DeepCopy()}, maintenances: []*coordinationv1alpha1.NodeMaintenance{over}},
			want:    outcome{Out: "node/n1 cordoned\n", Requests: []string{listMaintenances, patchNode}, Discoveries: 1},
		},
		"uncordon a node that was given back": {
			command: NewCmdUncordon, served: servesAll,
			cluster: &cluster{nodes: []*corev1.Node{cordoned(givenBack.DeepCopy())}, maintenances: []*coordinationv1alpha1.NodeMaintenance{over}},
			want:    outcome{Out: "node/n1 uncordoned\n", Requests: []string{listMaintenances, patchNode}, Discoveries: 1},
		},
		"uncordon": {
			command: NewCmdUncordon, served: servesAll,
			cluster: &cluster{nodes: []*corev1.Node{cordoned(maintained(makeNode("n1")))}, maintenances: m},
			want: outcome{
				Out:      "node/n1 skipped\n",
				Err:      `Warning: not uncordoning node "n1": NodeMaintenance "m1" keeps it cordoned until it is completed. Use: kubectl maintenance complete m1` + "\n",
				Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"uncordon, only the condition": {
			command: NewCmdUncordon, served: servesAll,
			cluster: &cluster{nodes: []*corev1.Node{cordoned(inProgress(makeNode("n1"), corev1.ConditionTrue))}, maintenances: m},
			want: outcome{
				Out:      "node/n1 skipped\n",
				Err:      `Warning: not uncordoning node "n1": NodeMaintenance "m1" keeps it cordoned until it is completed. Use: kubectl maintenance complete m1` + "\n",
				Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"uncordon, many maintenances": {
			command: NewCmdUncordon, served: servesAll,
			cluster: &cluster{nodes: []*corev1.Node{cordoned(maintained(makeNode("n1")))}, maintenances: six},
			want: outcome{
				Out:      "node/n1 skipped\n",
				Err:      `Warning: not uncordoning node "n1": NodeMaintenance "m1", "m2", "m3", "m4", "m5" and 1 more keeps it cordoned until it is completed. Use: kubectl maintenance complete m1 m2 m3 m4 m5 m6` + "\n",
				Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"uncordon, no permission to list": {
			command: NewCmdUncordon, served: servesAll,
			cluster: &cluster{
				nodes:     []*corev1.Node{cordoned(maintained(makeNode("n1")))},
				listError: apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "nodemaintenances"}, "", errors.New("no permission")),
			},
			want: outcome{
				Out: "node/n1 skipped\n",
				Err: `Warning: not uncordoning node "n1": a NodeMaintenance keeps it cordoned until it is completed. ` +
					"Use: kubectl maintenance complete NAME (the name is not known: nodemaintenances.coordination.k8s.io is forbidden: no permission)\n",
				Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"uncordon two nodes, one of them under maintenance": {
			command: NewCmdUncordon, served: servesAll, args: []string{"n2", "n1"},
			cluster: &cluster{nodes: []*corev1.Node{cordoned(makeNode("n1")), cordoned(maintained(makeNode("n2")))}, maintenances: m},
			want: outcome{
				Out:      "node/n2 skipped\nnode/n1 uncordoned\n",
				Err:      `Warning: not uncordoning node "n2": NodeMaintenance "other" keeps it cordoned until it is completed. Use: kubectl maintenance complete other` + "\n",
				Requests: []string{listMaintenances, patchNode}, Discoveries: 1,
			},
		},
		"two nodes under maintenance, one list": {
			command: NewCmdUncordon, served: servesAll, args: []string{"n2", "n1"},
			cluster: &cluster{nodes: []*corev1.Node{cordoned(maintained(makeNode("n1"))), cordoned(maintained(makeNode("n2")))}, maintenances: m},
			want: outcome{
				Out: "node/n2 skipped\nnode/n1 skipped\n",
				Err: `Warning: not uncordoning node "n2": NodeMaintenance "other" keeps it cordoned until it is completed. Use: kubectl maintenance complete other` + "\n" +
					`Warning: not uncordoning node "n1": NodeMaintenance "m1" keeps it cordoned until it is completed. Use: kubectl maintenance complete m1` + "\n",
				Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"cordon, already cordoned": {
			command: NewCmdCordon, served: servesAll,
			cluster: &cluster{nodes: []*corev1.Node{cordoned(maintained(makeNode("n1")))}, maintenances: m},
			want: outcome{
				Out:      "node/n1 already cordoned\n",
				Err:      `Warning: not cordoning node "n1": NodeMaintenance "m1" keeps it cordoned until it is completed. To complete it, use: kubectl maintenance complete m1` + "\n",
				Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"cordon, not yet cordoned": {
			command: NewCmdCordon, served: servesAll,
			cluster: &cluster{nodes: []*corev1.Node{maintained(makeNode("n1"))}, maintenances: m},
			want: outcome{
				Out:      "node/n1 skipped\n",
				Err:      `Warning: not cordoning node "n1": NodeMaintenance "m1" keeps it cordoned until it is completed. To complete it, use: kubectl maintenance complete m1` + "\n",
				Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"a status that is left without a maintenance": {
			command: NewCmdUncordon, served: servesAll,
			cluster: &cluster{
				nodes:        []*corev1.Node{cordoned(maintained(makeNode("n1")))},
				maintenances: []*coordinationv1alpha1.NodeMaintenance{m[0], m[2], m[3], withoutSelector},
			},
			want: outcome{Out: "node/n1 uncordoned\n", Requests: []string{listMaintenances, patchNode}, Discoveries: 1},
		},
		"a node without maintenance": {
			command: NewCmdUncordon, served: servesAll,
			cluster: &cluster{nodes: []*corev1.Node{cordoned(inProgress(makeNode("n1"), corev1.ConditionFalse))}, maintenances: m},
			want:    outcome{Out: "node/n1 uncordoned\n", Requests: []string{patchNode}},
		},
		"a condition of another component, on a server without the API": {
			command: NewCmdCordon, served: servesNothing,
			cluster: &cluster{nodes: []*corev1.Node{inProgress(makeNode("n1"), corev1.ConditionTrue)}},
			want:    outcome{Out: "node/n1 cordoned\n", Requests: []string{patchNode}, Discoveries: 1},
		},
		"a condition of another component, on a server that forbids discovery": {
			command: NewCmdCordon, served: forbids,
			cluster: &cluster{nodes: []*corev1.Node{inProgress(makeNode("n1"), corev1.ConditionTrue)}},
			want:    outcome{Out: "node/n1 cordoned\n", Requests: []string{patchNode}, Discoveries: 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.args == nil {
				test.args = []string{"n1"}
			}
			if diff := cmp.Diff(test.want, run(test.cluster, test.served, test.command, test.args...)); diff != "" {
				t.Errorf("unexpected outcome (-want +got):\n%s", diff)
			}
		})
	}
}

const (
	startHint    = "Warning: this server can drain nodes itself, and lets pods prepare for it: kubectl maintenance start --wait "
	skippedHint  = "Warning: leaving Pods with eviction interceptors (use --evict-intercepted-pods to evict them): "
	notDrained   = "There are pending nodes to be drained:\n n1\n"
	forceHint    = "use --evict-intercepted-pods to evict them without their interceptors"
	dbLeft       = `Pods with eviction interceptors are left: default/db (a.example.com): use "kubectl maintenance start --wait n1", or ` + forceHint
	dbLeftNoPlan = "Pods with eviction interceptors are left: default/db (a.example.com): create EvictionRequests for them, or " + forceHint
)

func unable(reason string) string {
	return fmt.Sprintf("error: unable to drain node \"n1\" due to error: %s, continuing command...\n%s", reason, notDrained)
}

func TestDrainWithInterceptors(t *testing.T) {
	leaves := func(c *cluster) { c.pods = nil }
	tests := map[string]struct {
		served  *fakeDiscovery
		pods    []*corev1.Pod
		onEvict func(*cluster)
		args    []string
		want    outcome
	}{
		"no interceptors": {
			served: servesAll, pods: []*corev1.Pod{makePod("plain")},
			want: outcome{
				Out: "node/n1 cordoned\nevicting pod default/plain\npod/plain evicted\nnode/n1 drained\n", Err: startHint + "n1\n",
				Requests: []string{patchNode, evictPlain}, Discoveries: 1,
			},
		},
		"in the spec": {
			served: servesAll, pods: []*corev1.Pod{makePod("plain"), makePod("db", "a.example.com")},
			want: outcome{
				Out: "node/n1 cordoned\nevicting pod default/plain\npod/plain evicted\n", Err: startHint + "n1\n" + skippedHint + "default/db\n" + unable(dbLeft),
				Fatal: "error: " + dbLeft, Requests: []string{patchNode, evictPlain}, Discoveries: 1,
			},
		},
		"of a Deployment": {
			served: servesAll, pods: []*corev1.Pod{makePod("plain", coordinationv1alpha1.EvictionInterceptorDeployment, coordinationv1alpha1.EvictionInterceptorReplicaSet)},
			want: outcome{
				Out: "node/n1 cordoned\nevicting pod default/plain\npod/plain evicted\nnode/n1 drained\n", Err: startHint + "n1\n",
				Requests: []string{patchNode, evictPlain}, Discoveries: 1,
			},
		},
		"by annotation": {
			served: servesAll, pods: []*corev1.Pod{registered(makePod("db"), "a.example.com")},
			want: outcome{
				Out: "node/n1 cordoned\n", Err: startHint + "n1\n" + skippedHint + "default/db\n" + unable(dbLeft),
				Fatal: "error: " + dbLeft, Requests: []string{patchNode}, Discoveries: 1,
			},
		},
		"the server has no maintenances": {
			served: servesRequests, pods: []*corev1.Pod{makePod("db", "a.example.com")},
			want: outcome{
				Out: "node/n1 cordoned\n", Err: skippedHint + "default/db\n" + unable(dbLeftNoPlan),
				Fatal: "error: " + dbLeftNoPlan, Requests: []string{patchNode}, Discoveries: 1,
			},
		},
		"gone while others were evicted": {
			served: servesAll, pods: []*corev1.Pod{makePod("plain"), makePod("db", "a.example.com")}, onEvict: leaves,
			want: outcome{
				Out: "node/n1 cordoned\nevicting pod default/plain\npod/plain evicted\nnode/n1 drained\n", Err: startHint + "n1\n" + skippedHint + "default/db\n",
				Requests: []string{patchNode, evictPlain}, Discoveries: 1,
			},
		},
		"evicted with the flag": {
			served: servesAll, pods: []*corev1.Pod{makePod("db", "a.example.com")}, args: []string{"--evict-intercepted-pods"},
			want: outcome{
				Out: "node/n1 cordoned\nevicting pod default/db\npod/db evicted\nnode/n1 drained\n", Err: startHint + "n1\n",
				Requests: []string{patchNode, evictDB}, Discoveries: 1,
			},
		},
		"not deleted with --disable-eviction": {
			served: servesAll, pods: []*corev1.Pod{makePod("db", "a.example.com")}, args: []string{"--disable-eviction"},
			want: outcome{
				Out: "node/n1 cordoned\n", Err: startHint + "n1\n" + skippedHint + "default/db\n" + unable(dbLeft),
				Fatal: "error: " + dbLeft, Requests: []string{patchNode}, Discoveries: 1,
			},
		},
		"a dry run fails like the drain": {
			served: servesAll, pods: []*corev1.Pod{makePod("plain"), makePod("db", "a.example.com")}, args: []string{"--dry-run=client"},
			want: outcome{
				Out: "node/n1 cordoned (dry run)\nevicting pod default/plain (dry run)\n", Err: startHint + "n1\n" + skippedHint + "default/db\n" + unable(dbLeft),
				Fatal: "error: " + dbLeft, Discoveries: 1,
			},
		},
		"a selector": {
			served: servesAll, pods: []*corev1.Pod{makePod("plain")}, args: []string{"-l", "pool in (a, b)"},
			want: outcome{
				Out: "node/n1 cordoned\nevicting pod default/plain\npod/plain evicted\nnode/n1 drained\n", Err: startHint + "-l 'pool in (a, b)'\n",
				Requests: []string{patchNode, evictPlain}, Discoveries: 1,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &cluster{nodes: []*corev1.Node{makeNode("n1")}, pods: test.pods, onEvict: test.onEvict}
			args := test.args
			if len(args) == 0 || args[0] != "-l" {
				args = append([]string{"n1"}, args...)
			}
			if diff := cmp.Diff(test.want, run(c, test.served, NewCmdDrain, args...)); diff != "" {
				t.Errorf("unexpected outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// A node that cannot be cordoned is not drained: new pods could follow those that leave. Others are.
func TestDrainWithARefusedCordon(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("not now"))
	other := makePod("plain")
	other.Spec.NodeName = "n2"
	c := &cluster{nodes: []*corev1.Node{makeNode("n1"), makeNode("n2")}, pods: []*corev1.Pod{makePod("db"), other}, cordonError: refused}
	got := run(c, servesNothing, NewCmdDrain, "n1", "n2")
	const why = "the node is not drained, because it cannot be cordoned: nodes \"n1\" is forbidden: not now"
	want := outcome{
		Out:      "node/n2 cordoned\nevicting pod default/plain\npod/plain evicted\nnode/n2 drained\n",
		Err:      "error: unable to cordon node \"n1\": nodes \"n1\" is forbidden: not now\n" + unable(why),
		Fatal:    "error: " + why,
		Requests: []string{"PATCH /api/v1/nodes/n1", "PATCH /api/v1/nodes/n2", evictPlain}, Discoveries: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected outcome (-want +got):\n%s", diff)
	}
	// A cordon alone is as ever.
	c = &cluster{nodes: []*corev1.Node{makeNode("n1")}, cordonError: refused}
	if got := run(c, servesNothing, NewCmdCordon, "n1"); got.Fatal != "" {
		t.Errorf("cordon: got %q", got.Fatal)
	}
}

func TestDrainOnOldServers(t *testing.T) {
	for name, served := range map[string]*fakeDiscovery{
		"not found": servesNothing, "forbidden": forbids, "no answer": fails, "other alpha kinds": servesOthers,
	} {
		t.Run(name, func(t *testing.T) {
			// Any server may have the annotation, and a condition of that name.
			c := &cluster{nodes: []*corev1.Node{inProgress(makeNode("n1"), corev1.ConditionTrue)}, pods: []*corev1.Pod{registered(makePod("db"), "a.example.com")}}
			want := outcome{
				Out:      "node/n1 cordoned\nevicting pod default/db\npod/db evicted\nnode/n1 drained\n",
				Requests: []string{patchNode, evictDB}, Discoveries: 1,
			}
			if diff := cmp.Diff(want, run(c, served, NewCmdDrain, "n1")); diff != "" {
				t.Errorf("unexpected outcome (-want +got):\n%s", diff)
			}
		})
	}
}

const denial = `admission webhook "move.example.com" denied the request: the primary is being moved`

// TestDrainTriesDeniedEvictionsAgain: whatever the server serves. What is not an eviction is as upstream's.
func TestDrainTriesDeniedEvictionsAgain(t *testing.T) {
	const deleteDB = "DELETE /api/v1/namespaces/default/pods/db"
	tests := map[string]struct {
		served  *fakeDiscovery
		args    []string
		denials int
		// want are the requests for the pod, and fails is whether the drain ends with a denial.
		want  []string
		fails bool
	}{
		"without EvictionRequests": {served: servesNothing, denials: 2, want: slices.Repeat([]string{evictDB}, 3)},
		"without discovery":        {served: forbids, denials: 1, want: slices.Repeat([]string{evictDB}, 2)},
		"for five minutes":         {served: servesNothing, denials: 1000, want: slices.Repeat([]string{evictDB}, 61), fails: true},
		"but no deletion":          {served: servesNothing, denials: 1, args: []string{"--disable-eviction"}, want: []string{deleteDB}, fails: true},
		"nor a dry run":            {served: servesNothing, denials: 1, args: []string{"--dry-run=server"}, want: []string{evictDB}, fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cluster{nodes: []*corev1.Node{makeNode("n1")}, pods: []*corev1.Pod{makePod("db")}, denials: test.denials}
				got := run(c, test.served, NewCmdDrain, append([]string{"n1"}, test.args...)...)
				requests := slices.DeleteFunc(got.Requests, func(r string) bool { return r == patchNode })
				if diff := cmp.Diff(test.want, requests); diff != "" {
					t.Errorf("unexpected requests (-want +got):\n%s", diff)
				}
				if strings.Contains(got.Fatal, denial) != test.fails || strings.Contains(got.Out, "node/n1 drained") == test.fails {
					t.Errorf("got output %q and error %q, want that it fails: %t", got.Out, got.Fatal, test.fails)
				}
				if retries := strings.Count(got.Err, "(will retry after 5s): Too many requests: "+denial); retries != len(test.want)-1 {
					t.Errorf("said %d times that it tries again, want %d", retries, len(test.want)-1)
				}
			})
		})
	}
}

func TestDrainUnderMaintenance(t *testing.T) {
	const (
		drainedByM1  = `Warning: node "n1" is under maintenance: NodeMaintenance "m1" drains it. To follow that, use: kubectl maintenance watch m1` + "\n"
		cordonedByM1 = `Warning: node "n1" is under maintenance: NodeMaintenance "m1" keeps it cordoned, but does not drain it. ` +
			"To have it drained, use: kubectl maintenance start --wait m1\n"
		moveM1On = `Pods with eviction interceptors are left: default/db (a.example.com): use "kubectl maintenance start --wait m1", or ` + forceHint
		watchM1  = "Pods with eviction interceptors are left: default/db (a.example.com): the maintenance of the node evicts them, see kubectl maintenance watch m1"
	)
	tests := map[string]struct {
		nodes        []*corev1.Node
		pods         []*corev1.Pod
		maintenances []*coordinationv1alpha1.NodeMaintenance
		args         []string // The names of all nodes by default.
		want         outcome
	}{
		"drained by a maintenance": {
			nodes:        []*corev1.Node{cordoned(maintained(makeNode("n1")))},
			pods:         []*corev1.Pod{makePod("plain")},
			maintenances: []*coordinationv1alpha1.NodeMaintenance{makeMaintenance("m0", stageCordon, "n1"), makeMaintenance("m1", stageDrain, "n1")},
			want: outcome{
				Out: "node/n1 already cordoned\nevicting pod default/plain\npod/plain evicted\nnode/n1 drained\n", Err: drainedByM1,
				Requests: []string{listMaintenances, evictPlain}, Discoveries: 1,
			},
		},
		"not cordoned yet": {
			nodes:        []*corev1.Node{maintained(makeNode("n1"))},
			maintenances: []*coordinationv1alpha1.NodeMaintenance{makeMaintenance("m1", stageDrain, "n1")},
			want:         outcome{Out: "node/n1 cordoned\nnode/n1 drained\n", Err: drainedByM1, Requests: []string{listMaintenances, patchNode}, Discoveries: 1},
		},
		"an intercepted pod": {
			nodes:        []*corev1.Node{cordoned(maintained(makeNode("n1")))},
			pods:         []*corev1.Pod{makePod("db", "a.example.com")},
			maintenances: []*coordinationv1alpha1.NodeMaintenance{makeMaintenance("m1", stageDrain, "n1")},
			want: outcome{
				Out: "node/n1 already cordoned\n", Err: drainedByM1 + skippedHint + "default/db\n" + unable(watchM1),
				Fatal: "error: " + watchM1, Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"cordoned only": {
			nodes:        []*corev1.Node{cordoned(maintained(makeNode("n1")))},
			maintenances: []*coordinationv1alpha1.NodeMaintenance{makeMaintenance("m1", stageCordon, "n1")},
			want: outcome{
				Out:      "node/n1 already cordoned\nnode/n1 drained\n",
				Err:      cordonedByM1,
				Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"an intercepted pod, and cordoned only": {
			nodes:        []*corev1.Node{cordoned(maintained(makeNode("n1")))},
			pods:         []*corev1.Pod{makePod("db", "a.example.com")},
			maintenances: []*coordinationv1alpha1.NodeMaintenance{makeMaintenance("m1", stageCordon, "n1")},
			want: outcome{
				Out: "node/n1 already cordoned\n", Err: cordonedByM1 + skippedHint + "default/db\n" + unable(moveM1On),
				Fatal: "error: " + moveM1On, Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"one of two nodes, selected": {
			nodes:        []*corev1.Node{cordoned(maintained(makeNode("n1"))), cordoned(makeNode("n2"))},
			maintenances: []*coordinationv1alpha1.NodeMaintenance{makeMaintenance("m1", stageDrain, "n1")},
			args:         []string{"-l", "pool=a"},
			want: outcome{
				Out: "node/n1 already cordoned\nnode/n2 already cordoned\nnode/n1 drained\nnode/n2 drained\n", Err: startHint + "n2\n" + drainedByM1,
				Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
		"one of two nodes": {
			nodes:        []*corev1.Node{cordoned(maintained(makeNode("n1"))), cordoned(makeNode("n2"))},
			maintenances: []*coordinationv1alpha1.NodeMaintenance{makeMaintenance("m1", stageDrain, "n1")},
			want: outcome{
				Out: "node/n1 already cordoned\nnode/n2 already cordoned\nnode/n1 drained\nnode/n2 drained\n", Err: startHint + "n2\n" + drainedByM1,
				Requests: []string{listMaintenances}, Discoveries: 1,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &cluster{nodes: test.nodes, pods: test.pods, maintenances: test.maintenances}
			if test.args == nil {
				for _, node := range test.nodes {
					test.args = append(test.args, node.Name)
				}
			}
			if diff := cmp.Diff(test.want, run(c, servesAll, NewCmdDrain, test.args...)); diff != "" {
				t.Errorf("unexpected outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHostileNames verifies that control sequences in objects do not reach the terminal.
func TestHostileNames(t *testing.T) {
	hostile := plaintexttesting.Text
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: nodeMaintenances}, "", errors.New(hostile))
	for name, tc := range map[string]struct {
		cluster *cluster
		command func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command
		failure string
	}{
		"the server refuses": {
			&cluster{nodes: []*corev1.Node{cordoned(maintained(makeNode("n1")))}, listError: forbidden}, NewCmdUncordon, "",
		},
		"maintenances": {
			&cluster{nodes: []*corev1.Node{cordoned(maintained(makeNode("n1")))}, maintenances: []*coordinationv1alpha1.NodeMaintenance{makeMaintenance("m"+hostile, stageDrain, "n1")}},
			NewCmdUncordon, "",
		},
		"interceptors": {
			&cluster{nodes: []*corev1.Node{cordoned(makeNode("n1"))}, pods: []*corev1.Pod{makePod("db", "a.example.com"+hostile)}}, NewCmdDrain,
			"Pods with eviction interceptors are left",
		},
	} {
		got := run(tc.cluster, servesAll, tc.command, "n1")
		if !strings.Contains(got.Fatal, tc.failure) {
			t.Errorf("%s: failed with %q, want %q", name, got.Fatal, tc.failure)
		}
		text := got.Out + got.Err + got.Fatal
		if !strings.Contains(text, plaintexttesting.Forged) {
			t.Errorf("%s: nothing hostile in %q", name, text)
		}
		plaintexttesting.Check(t, name, text)
	}
}

// TestHelpPointsToMaintenances covers the three commands.
func TestHelpPointsToMaintenances(t *testing.T) {
	f, streams := cmdtesting.NewTestFactory(), genericiooptions.NewTestIOStreamsDiscard()
	defer f.Cleanup()
	for _, tc := range []struct {
		command    *cobra.Command
		old, added string
	}{
		{NewCmdCordon(f, streams), cordonLong, "A node under maintenance is not changed"},
		{NewCmdUncordon(f, streams), uncordonLong, "A node under maintenance is not changed"},
		{NewCmdDrain(f, streams), drainLong, "kubectl maintenance lets the server drain nodes"},
	} {
		if !strings.HasPrefix(tc.command.Long, tc.old) || !strings.Contains(tc.command.Long, tc.added) {
			t.Errorf("%s: %q", tc.command.Name(), tc.command.Long)
		}
	}
}
