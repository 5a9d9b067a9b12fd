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
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/evictions"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/internal/testcluster"
)

const (
	saver     = "example.com/save"
	saverUser = "saver@example.com"
)

// TestResponderPrograms runs the responders of the guides, which know nothing but upstream: the one in Go is a module of
// its own, the one in shell needs kubectl.
func TestResponderPrograms(t *testing.T) {
	config := testcluster.StartAPIServer(t, framework.SharedEtcd(), featuregatetesting.FeatureOverrides{
		features.EvictionRequestAPI: true,
		features.LifecycleEvictions: true,
	}, "--runtime-config=lifecycle.k8s.io/v1alpha1=true")
	root := repository(t)
	for name, test := range map[string]func(c *cluster, root string){
		"Go":           testProgramInGo,
		"shell":        testProgramInShell,
		"requesters":   testRequesters,
		"coordination": testCoordination,
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{Cluster: testcluster.New(t, config, "lifecycle")}
			c.PollTimeout = 60 * time.Second
			c.start()
			test(c, root)
		})
	}
}

// repository returns the directory of the repository: our files are links in the tree, or copies of those above it.
func repository(t *testing.T) string {
	t.Helper()
	file, err := filepath.EvalSymlinks("responders_test.go")
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(file); dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "evictions/sample")); err == nil {
			return dir
		}
	}
	t.Fatalf("no directory above %s has evictions/sample", file)
	return ""
}

// kubeconfig writes one for the user of the responder, who may do what the guide grants, and what the work needs.
func (c *cluster) kubeconfig() string {
	c.T.Helper()
	c.grant(saverUser,
		rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictions"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictions/status"}, Verbs: []string{"get", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"evictioninterceptors"}, ResourceNames: []string{saver}, Verbs: []string{"intercept"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch", "delete"}})
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{
		Server: c.Config.Host, TLSServerName: c.Config.ServerName, CertificateAuthorityData: c.Config.CAData, CertificateAuthority: c.Config.CAFile,
	}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		Token: c.Config.BearerToken, ClientCertificateData: c.Config.CertData, ClientKeyData: c.Config.KeyData, Impersonate: saverUser,
	}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	file := filepath.Join(c.T.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		c.T.Fatal(err)
	}
	return file
}

// run starts a program, and ends it with all that it has started. Its output is in the log of the test.
func (c *cluster) run(env []string, name string, args ...string) (kill func()) {
	c.T.Helper()
	var output strings.Builder
	command := exec.Command(name, args...)
	command.Stdout, command.Stderr = &output, &output
	command.Env = append(os.Environ(), env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		c.T.Fatal(err)
	}
	ended := false
	kill = func() {
		if ended {
			return
		}
		ended = true
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
		c.T.Logf("%s:\n%s", filepath.Base(name), output.String())
	}
	c.T.Cleanup(kill)
	return kill
}

func (c *cluster) dynamic() dynamic.Interface { return dynamic.NewForConfigOrDie(c.Config) }

func withData(pod *v1.Pod) { pod.Annotations = map[string]string{"example.com/data": "all of it"} }

// expectReport waits for a report of the responder.
func (c *cluster) expectReport(eviction, what string, is func(lifecyclev1alpha1.ResponderStatus) bool) {
	c.T.Helper()
	c.Eventually("a report: "+what, func(ctx context.Context) (bool, string) {
		found, err := c.Client.LifecycleV1alpha1().Evictions(c.Namespace).Get(ctx, eviction, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, entry := range found.Status.Responders {
			if entry.Name == saver {
				return is(entry), fmt.Sprintf("%+v", entry)
			}
		}
		return false, "no entry"
	})
}

func says(message string) func(lifecyclev1alpha1.ResponderStatus) bool {
	return func(entry lifecyclev1alpha1.ResponderStatus) bool {
		return entry.Message != nil && *entry.Message == message && entry.StartTime != nil && entry.HeartbeatTime != nil
	}
}

func (c *cluster) expectSaved(pod string, want bool) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("the data of %s to be saved: %t", pod, want), func(ctx context.Context) (bool, string) {
		saved, err := c.Client.CoreV1().ConfigMaps(c.Namespace).Get(ctx, "saved-"+pod, metav1.GetOptions{})
		return want == (err == nil && saved.Data["data"] == "all of it"), fmt.Sprint(err)
	})
}

func testProgramInGo(c *cluster, root string) {
	program := filepath.Join(c.T.TempDir(), "sample")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-o", program, ".")
	build.Dir, build.Env = filepath.Join(root, "evictions/sample"), append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=")
	if output, err := build.CombinedOutput(); err != nil {
		c.T.Fatalf("building the sample: %v\n%s", err, output)
	}
	args := []string{"--kubeconfig=" + c.kubeconfig(), "--namespace=" + c.Namespace}

	// It reports its start, and a heartbeat, and when it expects to complete; it is killed in the middle, and continues.
	kill := c.run(nil, program, append(args, "--lasts=1h")...)
	pod := c.createPod("web", responders(map[string]int32{saver: 20000}), withData)
	c.ask("one", drainer, pod)
	c.expectReport("pod-1-web", "it has begun", func(entry lifecyclev1alpha1.ResponderStatus) bool {
		return says("Saving.")(entry) && entry.ExpectedCompletionTime != nil && time.Until(entry.ExpectedCompletionTime.Time) > 50*time.Minute
	})
	c.expectEviction("pod-1-web", saver+"=Active "+imperative+"=Inactive", goesOn)
	kill()
	kill = c.run(nil, program, append(args, "--lasts=1h")...)
	c.expectReport("pod-1-web", "it continues", says("Saving, after a restart."))
	c.expectSaved("web", true)

	// Called off, it undoes what it has done.
	c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
	c.expectEviction("pod-1-web", saver+"=Canceled "+imperative+"=Inactive", canceled)
	c.expectSaved("web", false)
	c.expectStays(pod)
	kill()

	// Asked again, it completes, and the pod leaves. What has nothing to save is passed on.
	c.run(nil, program, append(args, "--lasts=3s")...)
	c.setIntent("one", lifecyclev1alpha1.EvictionRequestIntentEviction)
	empty := c.createPod("empty", responders(map[string]int32{saver: 20000}))
	c.ask("empty", drainer, empty)
	c.expectGone(pod)
	c.expectGone(empty)
	c.expectSaved("web", true)
	c.expectEviction("pod-2-web", saver+"=Completed "+imperative+"=Completed", deleted)
	c.expectReport("pod-2-web", "it has completed", says("Saved."))
	c.expectReport("pod-1-empty", "it has declined", says("There is nothing to save."))
}

func testProgramInShell(c *cluster, root string) {
	page, err := os.ReadFile(filepath.Join(root, "docs/how-to/write-a-responder-in-shell.md"))
	if err != nil {
		c.T.Fatal(err)
	}
	_, script, _ := strings.Cut(string(page), "```sh\n")
	script, _, _ = strings.Cut(script, "```\n")
	if lines := strings.Count(script, "\n"); lines == 0 || lines > 25 {
		c.T.Errorf("the script has %d lines", lines)
	}
	path := filepath.Join(root, "_output/bin") + ":" + os.Getenv("PATH")
	c.T.Setenv("PATH", path)
	if _, err := exec.LookPath("kubectl"); err != nil {
		c.T.Skip("there is no kubectl: run make control-plane")
	}
	c.run([]string{"KUBECONFIG=" + c.kubeconfig()}, "sh", "-c", script, "save.sh", c.Namespace, "1")
	pod := c.createPod("web", responders(map[string]int32{saver: 20000}), withData)
	c.ask("one", drainer, pod)
	c.expectGone(pod)
	c.expectSaved("web", true)
	c.expectEviction("pod-1-web", saver+"=Completed "+imperative+"=Completed", deleted)
	c.expectReport("pod-1-web", "it has completed", says("Saved."))
	c.expectRequest("one", deleted)
}

// testRequesters: the requesters of the library, in both groups.
func testRequesters(c *cluster, _ string) {
	ctx := c.T.Context()
	for name, requester := range map[string]*evictions.Requester{
		"lifecycle":    evictions.LifecycleRequester(c.Client, drainer),
		"coordination": evictions.CoordinationRequester(c.dynamic(), "drainer.example.com"),
	} {
		pod := c.createPod(name, responders(map[string]int32{saver: 20000}))
		c.request(requester, pod, evictions.Requested)
		c.request(requester, pod, evictions.Requested) // Again, as after a restart.
		c.expectEviction("pod-1-"+name, saver+"=Active "+imperative+"=Inactive", goesOn)
		if err := requester.Withdraw(ctx, pod); err != nil {
			c.T.Error(err)
		}
		c.expectEviction("pod-1-"+name, saver+"=Canceled "+imperative+"=Inactive", canceled)
		if err := requester.Withdraw(ctx, pod); err != nil {
			c.T.Errorf("withdrawing again: %v", err)
		}
		c.request(requester, pod, evictions.Requested)
		c.expectEviction("pod-2-"+name, saver+"=Active "+imperative+"=Inactive", goesOn)
		c.report("pod-2-"+name, saver, completed)
		if status, err := requester.Wait(ctx, pod); err != nil || status.State != evictions.Evicted || status.Reason != "PodDeleted" {
			c.T.Errorf("%s: waited until %+v, %v", name, status, err)
		}
		c.expectGone(pod)
		c.request(requester, pod, evictions.Evicted)
		if err := requester.Withdraw(ctx, pod); err != nil {
			c.T.Error(err)
		}
	}
	if left, err := c.Client.LifecycleV1alpha1().EvictionRequests(c.Namespace).List(ctx, metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		c.T.Errorf("left behind: %v, %v", left, err)
	}
}

func (c *cluster) request(requester *evictions.Requester, pod *v1.Pod, want evictions.State) {
	c.T.Helper()
	if status, err := requester.Request(c.T.Context(), pod); err != nil || status.State != want {
		c.T.Errorf("requested the eviction of pod %s: %+v, %v, want %s", pod.Name, status, err, want)
	}
}

// testCoordination: a responder of the library in coordination.k8s.io forbids the cancellation.
func testCoordination(c *cluster, _ string) {
	const interceptor = "save.example.com"
	ctx, cancel := context.WithCancel(c.T.Context())
	defer cancel()
	forbidden, goOn := make(chan error, 1), make(chan struct{})
	go evictions.RunOrDie(ctx, evictions.ResponderConfig{
		API: evictions.Coordination(c.dynamic()), Name: interceptor, Namespace: c.Namespace,
		Handle: func(ctx context.Context, turn *evictions.Turn) error {
			turn.SetMessage("Saving.")
			turn.SetExpectedFinishTime(time.Now().Add(time.Hour))
			forbidden <- turn.ForbidCancellation(ctx)
			<-goOn
			return nil
		},
	})
	requester := evictions.CoordinationRequester(c.dynamic(), "drainer.example.com")
	pod := c.createPod("web", func(pod *v1.Pod) { pod.Spec.EvictionInterceptors = []v1.EvictionInterceptor{{Name: interceptor}} })
	c.request(requester, pod, evictions.Requested)
	if err := testcluster.Receive(c.T, "the turn", forbidden); err != nil {
		c.T.Fatal(err)
	}
	request, err := c.Client.CoordinationV1alpha1().EvictionRequests(c.Namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	entry := request.Status.Interceptors[0]
	if request.Status.EvictionRequestCancellationPolicy != coordinationv1alpha1.EvictionRequestCancellationPolicyForbid ||
		entry.StartTime == nil || entry.HeartbeatTime == nil || entry.ExpectedFinishTime == nil || entry.Message != "Saving." {
		c.T.Errorf("policy %s, %+v", request.Status.EvictionRequestCancellationPolicy, entry)
	}
	// The requester may leave, and the eviction goes on.
	if err := requester.Withdraw(ctx, pod); err != nil {
		c.T.Error(err)
	}
	close(goOn)
	c.expectGone(pod)
	if status, err := requester.Wait(ctx, pod); err != nil || status.State != evictions.Evicted {
		c.T.Errorf("waited until %+v, %v", status, err)
	}
}
