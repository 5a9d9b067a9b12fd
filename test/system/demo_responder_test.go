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

package system

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

const (
	// responder is that of testdata/responder/save.sh.
	responder = "backup.example.com/save"
	// savedData is what it saves.
	savedData = "seven years of orders"
)

//go:embed testdata/responder/save.sh
var responderScript []byte

// responderDemo drains a node with a pod whose data a responder saves.
type responderDemo struct {
	*demo
	maintenance string
	pod         *v1.Pod
}

// TestDemoResponder drains the node of a pod with a responder that is written for Kubernetes 1.38: a shell script with
// kubectl. The pod leaves when its data is saved, not before.
func TestDemoResponder(t *testing.T) { testDemoResponder(ktesting.Init(t)) }
func testDemoResponder(tCtx ktesting.TContext) {
	settings := localcluster.DefaultSettings
	settings.Gates += ",LifecycleEvictions=true"
	settings.RuntimeConfig += ",lifecycle.k8s.io/v1alpha1=true"
	tCtx, story := newDemoWith(tCtx, "responder", 3, &settings)
	d := &responderDemo{demo: story, maintenance: "drain-of-" + tCtx.Namespace()}
	tCtx = d.startResponder(tCtx)
	for _, chapter := range []struct {
		title string
		play  func(tCtx ktesting.TContext)
	}{
		{"A pod with data, and a responder that saves it", d.createPod},
		{"What would a drain do?", d.plan},
		{"Drain the node: the responder acts first", d.start},
		{"The pod leaves when its data is saved", d.finish},
		{"Release the node", d.complete},
	} {
		d.chapter(chapter.title)
		chapter.play(tCtx)
	}
	d.say("\nAll %d checks are ok, after %.0f s.", d.checks, time.Since(d.began).Seconds())
	if d.stays {
		d.say("The cluster stays up:")
		d.say("  export KUBECONFIG=%s", d.cluster.Kubeconfig())
		d.say("  %s get evictions --namespace %s -o yaml", d.cluster.Kubectl(), tCtx.Namespace())
	}
}

// startResponder starts the script as a ServiceAccount that may do what it has to, and nothing else.
func (d *responderDemo) startResponder(tCtx ktesting.TContext) ktesting.TContext {
	tCtx.Helper()
	const name = "backup"
	core, rbac := tCtx.Client().CoreV1(), tCtx.Client().RbacV1()
	create(tCtx, core.ServiceAccounts(tCtx.Namespace()), &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}})
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	intercept := rule(coordinationv1alpha1.GroupName, coordinationv1alpha1.EvictionInterceptorResource, coordinationv1alpha1.EvictionInterceptVerb)
	intercept.ResourceNames = []string{responder}
	create(tCtx, rbac.Roles(tCtx.Namespace()), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		rule(lifecyclev1alpha1.GroupName, "evictions", "get", "list"), rule(lifecyclev1alpha1.GroupName, "evictions/status", "get", "patch"), intercept,
		rule("", "pods", "get"), rule("", "configmaps", "get", "create", "patch"),
	}})
	create(tCtx, rbac.RoleBindings(tCtx.Namespace()), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: tCtx.Namespace(), Name: name}},
	})
	token, err := core.ServiceAccounts(tCtx.Namespace()).CreateToken(tCtx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	tCtx.ExpectNoError(err)
	config, err := clientcmd.LoadFromFile(d.cluster.Kubeconfig())
	tCtx.ExpectNoError(err)
	current := config.Contexts[config.CurrentContext]
	current.Namespace = tCtx.Namespace()
	config.AuthInfos[current.AuthInfo] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	directory := tCtx.TempDir()
	kubeconfig, script := filepath.Join(directory, "kubeconfig"), filepath.Join(directory, "save.sh")
	tCtx.ExpectNoError(clientcmd.WriteToFile(*config, kubeconfig))
	tCtx.ExpectNoError(os.WriteFile(script, responderScript, 0o600))
	command := exec.CommandContext(tCtx, "bash", script)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+d.programs.fork+":"+os.Getenv("PATH"))
	tCtx, _ = startProgram(tCtx, "the responder", command)
	return tCtx
}

func (d *responderDemo) createPod(tCtx ktesting.TContext) {
	pod := newScheduledPod("db")
	pod.Annotations = map[string]string{"data": savedData}
	pod.Spec.EvictionResponders = []v1.EvictionResponder{{Name: responder, Priority: ptr.To[int32](5000)}}
	create(tCtx, tCtx.Client().AppsV1().StatefulSets(tCtx.Namespace()), newStatefulSet(pod, 1))
	d.pod = awaitReadyPod(tCtx, "db")
	d.say(`db is a StatefulSet with one pod in namespace %s. The responder is a shell script
with kubectl, as it is written for Kubernetes 1.38: test/system/testdata/responder/save.sh. It runs
beside the cluster, as a ServiceAccount that may report as this responder only.
`, tCtx.Namespace())
	d.kubectl(tCtx, "get", "pod", d.pod.Name, "--namespace="+tCtx.Namespace(), "--output=jsonpath={.spec.nodeName}: {.spec.evictionResponders}{'\\n'}")
}

func (d *responderDemo) plan(tCtx ktesting.TContext) {
	output := d.kubectl(tCtx, "maintenance", "plan", d.pod.Spec.NodeName)
	d.expectOutput(tCtx, "the plan names the responder", output, d.pod.Name, "first acts "+responder)
}

func (d *responderDemo) start(tCtx ktesting.TContext) {
	tCtx.Cleanup(func() { // The next run has to find all nodes schedulable.
		_ = d.cluster.Command(tCtx.WithoutCancel(), "delete", "nodemaintenance", d.maintenance, "--ignore-not-found").Run()
	})
	d.kubectl(tCtx, "maintenance", "start", d.pod.Spec.NodeName, "--name="+d.maintenance, "--reason=kernel upgrade")
	awaitFacts(tCtx, d.evictionSays("the responder works", func(eviction *lifecyclev1alpha1.Eviction, report *lifecyclev1alpha1.ResponderStatus) bool {
		return stateOf(eviction, responder) == lifecyclev1alpha1.ResponderStateActive && report.ExpectedCompletionTime != nil
	}))
	d.kubectl(tCtx, "get", "evictions", "--namespace="+tCtx.Namespace(), "--output=wide")
	var status string
	await(tCtx, "the status to have the report", func(tCtx ktesting.TContext) {
		output, err := d.cluster.Command(tCtx, "maintenance", "status", d.maintenance).Output()
		tCtx.ExpectNoError(err)
		if status = string(output); !strings.Contains(status, "copying the data") {
			tCtx.Fatalf("it says %s", status)
		}
	})
	d.show("maintenance", "status", d.maintenance)
	d.say("%s", status)
	// Lines are broken.
	d.expectOutput(tCtx, "the status says what the responder does, and until when", strings.Join(strings.Fields(status), " "), "waits for interceptor "+responder+" (copying the data)", "ETA")
	d.expect(tCtx, d.runsUnsaved())
}

// evictionSays is about the Eviction of the pod, and what the responder reports there.
func (d *responderDemo) evictionSays(what string, is func(*lifecyclev1alpha1.Eviction, *lifecyclev1alpha1.ResponderStatus) bool) fact {
	return fact{what, func(tCtx ktesting.TContext) {
		eviction, err := tCtx.Client().LifecycleV1alpha1().Evictions(tCtx.Namespace()).Get(tCtx, "pod-1-"+d.pod.Name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		for i := range eviction.Status.Responders {
			if report := &eviction.Status.Responders[i]; report.Name == responder && is(eviction, report) {
				return
			}
		}
		tCtx.Fatalf("its status is %+v", eviction.Status)
	}}
}

func stateOf(eviction *lifecyclev1alpha1.Eviction, name string) lifecyclev1alpha1.ResponderStateType {
	for _, target := range eviction.Status.TargetResponders {
		if target.Name == name {
			return target.State
		}
	}
	return ""
}

// runsUnsaved is true until the responder has done its work.
func (d *responderDemo) runsUnsaved() fact {
	return fact{"the pod runs, and its data is not saved yet", func(tCtx ktesting.TContext) {
		_, err := d.saved(tCtx)
		if pod := d.read(tCtx); !apierrors.IsNotFound(err) || pod == nil || pod.DeletionTimestamp != nil {
			tCtx.Fatalf("the pod is %v, reading what is saved: %v", pod, err)
		}
	}}
}

func (d *responderDemo) saved(tCtx ktesting.TContext) (*v1.ConfigMap, error) {
	return tCtx.Client().CoreV1().ConfigMaps(tCtx.Namespace()).Get(tCtx, "saved-"+d.pod.Name, metav1.GetOptions{})
}

// read returns the pod, or nil if this instance of it is gone.
func (d *responderDemo) read(tCtx ktesting.TContext) *v1.Pod {
	pod, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).Get(tCtx, d.pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && pod.UID != d.pod.UID {
		return nil
	}
	tCtx.ExpectNoError(err)
	return pod
}

func (d *responderDemo) finish(tCtx ktesting.TContext) {
	// Whenever it is looked at: a pod that is gone, or going, has its data saved.
	await(tCtx, "the end of the pod", func(tCtx ktesting.TContext) {
		pod := d.read(tCtx)
		if _, err := d.saved(tCtx); err != nil && (pod == nil || pod.DeletionTimestamp != nil) {
			tCtx.Fatalf("the pod leaves, and its data is not saved: %v", err)
		}
		if pod != nil {
			tCtx.Fatalf("%s is still there", pod.Name)
		}
	})
	d.kubectl(tCtx, "get", "configmap", "saved-"+d.pod.Name, "--namespace="+tCtx.Namespace(), "--output=jsonpath={.data.data}{'\\n'}")
	d.kubectl(tCtx, "get", "evictions", "--namespace="+tCtx.Namespace(), "--output=wide")
	d.kubectl(tCtx, "get", "pods", "--namespace="+tCtx.Namespace(), "--output=wide")
	d.expect(tCtx,
		fact{"the data is saved", func(tCtx ktesting.TContext) {
			if saved, err := d.saved(tCtx); err != nil || saved.Data["data"] != savedData {
				tCtx.Fatalf("what is saved is %v, %v", saved, err)
			}
		}},
		d.evictionSays("the responder had completed when the pod was evicted, and its Eviction says so", func(eviction *lifecyclev1alpha1.Eviction, report *lifecyclev1alpha1.ResponderStatus) bool {
			evicted := meta.FindStatusCondition(eviction.Status.Conditions, string(lifecyclev1alpha1.EvictionConditionTargetEvicted))
			return stateOf(eviction, responder) == lifecyclev1alpha1.ResponderStateCompleted && report.CompletionTime != nil &&
				evicted != nil && evicted.Status == metav1.ConditionTrue && !evicted.LastTransitionTime.Before(report.CompletionTime)
		}),
		fact{"db runs on another node", func(tCtx ktesting.TContext) {
			if pod := awaitReadyPod(tCtx, "db"); pod.Spec.NodeName == d.pod.Spec.NodeName {
				tCtx.Fatalf("it runs on %s", pod.Spec.NodeName)
			}
		}},
		d.isDrained(),
	)
}

func (d *responderDemo) isDrained() fact {
	return fact{"the maintenance reports that the node is drained", func(tCtx ktesting.TContext) {
		maintenance, err := tCtx.Client().CoordinationV1alpha1().NodeMaintenances().Get(tCtx, d.maintenance, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if !meta.IsStatusConditionTrue(maintenance.Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionDrained)) {
			tCtx.Fatalf("its conditions are %v", maintenance.Status.Conditions)
		}
	}}
}

func (d *responderDemo) complete(tCtx ktesting.TContext) {
	d.kubectl(tCtx, "maintenance", "complete", d.maintenance, "--wait")
	d.expect(tCtx, fact{"the node is schedulable", func(tCtx ktesting.TContext) {
		node, err := tCtx.Client().CoreV1().Nodes().Get(tCtx, d.pod.Spec.NodeName, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		if node.Spec.Unschedulable {
			tCtx.Fatalf("%s is unschedulable", node.Name)
		}
	}})
}
