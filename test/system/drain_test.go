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
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/auditlog"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
)

const (
	// admins may do everything.
	admins = "system:masters"
	// drainers have only the permissions that drain needed before there were maintenances.
	drainers = "drainers"

	// probe is the path of the discovery request of drain.
	probe = "/apis/coordination.k8s.io/v1alpha1"
)

// anyUID matches the UID of an object.
var anyUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// drainTest runs kubectl against API servers. There is no controller manager: the test writes the
// state of pods and nodes.
type drainTest struct {
	plane *controlplane.ControlPlane
	// base and fork are the paths of kubectl.
	base, fork string
}

// TestDrain runs drain, cordon and uncordon of the fork's kubectl.
//
// On servers without our APIs, which are the pristine base and the fork with its gates off, they
// must behave like those of the base's kubectl: same output, same exit code, same requests in the
// audit logs, except for one discovery request of each drain, and for the UIDs of the pods that it evicts. On the fork with its gates on, they
// must not evict pods with interceptors, and not change the cordon of nodes under maintenance. Where
// evictions wait for interceptors, a drain that is interrupted or times out must withdraw them.
func TestDrain(t *testing.T) { testDrain(ktesting.Init(t)) }
func testDrain(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	tCtx, plane := newControlPlane(tCtx, p, "drain")
	tCtx.ExpectNoError(plane.AuditAll())
	d := &drainTest{plane: plane, base: filepath.Join(p.base, "kubectl"), fork: filepath.Join(p.fork, "kubectl")}
	for _, old := range []controlplane.Release{
		{Name: "base", Bin: p.base},
		{Name: "fork, gates off", Bin: p.fork},
	} {
		run(tCtx, old.Name, func(tCtx ktesting.TContext) { d.compare(tCtx, old) })
	}
	fork := controlplane.Release{Name: "fork, gates on", Bin: p.fork, FeatureGates: gatesOfDrains, RuntimeConfig: runtimeConfig}
	run(tCtx, fork.Name, func(tCtx ktesting.TContext) { d.expect(tCtx, fork, newScenarios()) })
	waiting := controlplane.Release{Name: "fork, evictions wait", Bin: p.fork, FeatureGates: gatesOfDrains + ",EvictionRequestForEvictions=true", RuntimeConfig: runtimeConfig}
	run(tCtx, waiting.Name, func(tCtx ktesting.TContext) { d.expect(tCtx, waiting, endedScenarios()) })
}

// compare runs all scenarios with both kubectls on an old server.
func (d *drainTest) compare(tCtx ktesting.TContext, server controlplane.Release) {
	scenarios := oldScenarios()
	requests := d.serve(tCtx, server, func() {
		for _, s := range scenarios {
			run(tCtx, s.name, func(tCtx ktesting.TContext) {
				want, got := d.run(tCtx, &s, d.base, "base"), d.run(tCtx, &s, d.fork, "fork")
				if diff := gocmp.Diff(want, got); diff != "" {
					tCtx.Errorf("the fork's kubectl differs (- base, + fork):\n%s", diff)
				}
			})
		}
	})
	run(tCtx, "requests", func(tCtx ktesting.TContext) {
		probed := false
		for _, s := range scenarios {
			for i, command := range s.commands {
				want, got := requests[s.user(i, "base")], requests[s.user(i, "fork")]
				if at := slices.IndexFunc(got, request.isProbe); at >= 0 && s.mayProbe(command) {
					probed = true
					got = slices.Delete(slices.Clone(got), at, at+1)
				}
				if diff := gocmp.Diff(want, withoutUIDs(tCtx, got)); diff != "" {
					tCtx.Errorf("%s: kubectl %s sends other requests (- base, + fork):\n%s", s.name, command, diff)
				}
			}
		}
		// Otherwise the names of the users, or the log, are not as the test assumes.
		if !probed {
			tCtx.Errorf("no drain has sent a discovery request: the audit log has requests of %d users", len(requests))
		}
	})
}

// uidPrecondition is how the fork's kubectl says which pod it evicts: another one may have taken its name, on another node.
var uidPrecondition = regexp.MustCompile(`"preconditions":\{"uid":"[0-9a-f-]{36}"\},?`)

// withoutUIDs returns the requests without the preconditions, which each eviction must have.
func withoutUIDs(tCtx ktesting.TContext, requests []request) []request {
	requests = slices.Clone(requests)
	for i, r := range requests {
		if !strings.HasSuffix(r.path(), "/eviction") {
			continue
		}
		if !uidPrecondition.MatchString(r.Body) {
			tCtx.Errorf("an eviction does not name the UID of its pod: %s", r.Body)
		}
		requests[i].Body = uidPrecondition.ReplaceAllString(r.Body, "")
	}
	return requests
}

// expect runs the scenarios that need the APIs of the fork.
func (d *drainTest) expect(tCtx ktesting.TContext, server controlplane.Release, scenarios []scenario) {
	got := map[string]ran{}
	requests := d.serve(tCtx, server, func() {
		for _, s := range scenarios {
			got[s.name] = d.run(tCtx.WithStep(s.name), &s, d.fork, "fork")[0]
		}
	})
	for _, s := range scenarios {
		run(tCtx, s.name, func(tCtx ktesting.TContext) {
			only := got[s.name]
			result := &expected{Code: only.Code, Out: only.Out, Left: only.Left}
			for _, r := range requests[s.user(0, "fork")] {
				if r.isWrite() {
					result.Writes = append(result.Writes, r.Verb+" "+anyUID.ReplaceAllString(r.path(), "UID"))
				}
			}
			text := anyUID.ReplaceAllString(strings.Join(only.Err, "\n"), "UID")
			for _, part := range s.want.Err {
				if strings.Contains(text, part) {
					result.Err = append(result.Err, part)
				}
			}
			if diff := gocmp.Diff(s.want, result); diff != "" {
				tCtx.Errorf("(- want, + got):\n%s\nstderr:\n%s", diff, text)
			}
		})
	}
}

// serve starts an API server, calls run, and returns the recorded requests by the user whom kubectl
// impersonated. They are complete only when the server has stopped.
func (d *drainTest) serve(tCtx ktesting.TContext, server controlplane.Release, run func()) map[string][]request {
	tCtx.Helper()
	tCtx.ExpectNoError(d.plane.StartAPIServer(tCtx, server))
	setUp(tCtx)
	run()
	tCtx.ExpectNoError(d.plane.StopAPIServer())
	logs := d.plane.AuditLogs()
	events, err := auditlog.ReadFile(logs[len(logs)-1])
	tCtx.ExpectNoError(err)
	requests := map[string][]request{}
	for _, event := range events {
		if event.ImpersonatedUser == nil || event.ResponseStatus == nil {
			continue
		}
		r := request{Verb: event.Verb, URI: event.RequestURI, Code: event.ResponseStatus.Code}
		if event.RequestObject != nil {
			r.Body = string(event.RequestObject.Raw)
		}
		user := event.ImpersonatedUser.Username
		requests[user] = append(requests[user], r)
	}
	for _, list := range requests {
		slices.SortFunc(list, func(a, b request) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return requests
}

// setUp creates what all scenarios need, unless an earlier server on the same etcd has it.
func setUp(tCtx ktesting.TContext) {
	tCtx.Helper()
	client := tCtx.Client()
	if _, err := client.CoreV1().Namespaces().Get(tCtx, tCtx.Namespace(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		tCtx.ExpectNoError(err)
		return
	}
	create(tCtx, client.CoreV1().Namespaces(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tCtx.Namespace()}})
	create(tCtx, client.CoreV1().ServiceAccounts(tCtx.Namespace()), &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	create(tCtx, client.AppsV1().DaemonSets(tCtx.Namespace()), newDaemonSet(newPod("daemon")))
	create(tCtx, client.RbacV1().ClusterRoles(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: drainers}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get"}},
	}})
	create(tCtx, client.RbacV1().ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: drainers},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: drainers},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: drainers}},
	})
}

// reset replaces the node, the pods and, if the scenario has one, the maintenance in the cluster.
func reset(tCtx ktesting.TContext, s *scenario) {
	tCtx.Helper()
	now, all, client := *metav1.NewDeleteOptions(0), metav1.ListOptions{}, tCtx.Client()
	tCtx.ExpectNoError(client.CoreV1().Pods(tCtx.Namespace()).DeleteCollection(tCtx, now, all))
	tCtx.ExpectNoError(client.CoreV1().Nodes().DeleteCollection(tCtx, now, all))
	node := create(tCtx, client.CoreV1().Nodes(), s.node.DeepCopy())
	node.Status = s.node.Status
	_, err := client.CoreV1().Nodes().UpdateStatus(tCtx, node, metav1.UpdateOptions{})
	tCtx.ExpectNoError(err, "writing the status of the node")
	for _, pod := range s.pods {
		createReadyPod(tCtx, pod.DeepCopy())
	}
	if s.maintenance != nil {
		tCtx.ExpectNoError(client.CoordinationV1alpha1().NodeMaintenances().DeleteCollection(tCtx, now, all))
		create(tCtx, client.CoordinationV1alpha1().NodeMaintenances(), s.maintenance)
	}
}

// ran is the outcome of one command. The lines are sorted, because pods are evicted in parallel.
type ran struct {
	Code     int
	Out, Err []string
	Left     cluster
}

// cluster is the state of the cluster after a command.
type cluster struct {
	Pods          []string
	Unschedulable bool
	// Requesters are those of the eviction of these pods.
	Requesters []string
}

// run resets the cluster, and runs the commands of a scenario with an empty discovery cache. Each
// runs as another user, by whom its requests are found in the audit log.
func (d *drainTest) run(tCtx ktesting.TContext, s *scenario, kubectl, who string) []ran {
	tCtx.Helper()
	reset(tCtx, s)
	config := d.plane.Config()
	var all []ran
	for i, args := range s.commands {
		command := exec.CommandContext(tCtx, kubectl, append(strings.Fields(args),
			"--server="+config.Host, "--token="+config.BearerToken, "--certificate-authority="+config.CAFile,
			"--as="+s.user(i, who), "--as-group="+cmp.Or(s.group, admins))...)
		// The environment must not influence the command.
		command.Env = []string{"HOME=" + tCtx.TempDir(), "KUBECONFIG=" + os.DevNull}
		var stdout bytes.Buffer
		stderr := interrupter{command: command, signal: s.signal}
		command.Stdout, command.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		if err := command.Run(); !errors.As(err, &exit) {
			tCtx.ExpectNoError(err, "running %s", kubectl)
		}
		all = append(all, ran{Code: exitCode(command), Out: sortedLines(stdout.String()), Err: sortedLines(stderr.text.String()), Left: look(tCtx)})
	}
	return all
}

// interrupter keeps what is written, and sends the signal, if any, once the command waits for interceptors.
type interrupter struct {
	text    bytes.Buffer
	command *exec.Cmd
	signal  syscall.Signal
}

func (i *interrupter) Write(text []byte) (int, error) {
	if i.signal != 0 && bytes.Contains(text, []byte("waiting for the interceptors of")) {
		if err := i.command.Process.Signal(i.signal); err != nil {
			return 0, err
		}
		i.signal = 0
	}
	return i.text.Write(text)
}

// exitCode returns what a shell reports.
func exitCode(command *exec.Cmd) int {
	if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return command.ProcessState.ExitCode()
}

func sortedLines(text string) []string {
	if text == "" {
		return nil
	}
	return slices.Sorted(strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n"))
}

// look returns the state of the cluster.
func look(tCtx ktesting.TContext) cluster {
	tCtx.Helper()
	node, err := tCtx.Client().CoreV1().Nodes().Get(tCtx, nodeName, metav1.GetOptions{})
	tCtx.ExpectNoError(err, "reading the node")
	pods, err := tCtx.Client().CoreV1().Pods(tCtx.Namespace()).List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err, "listing the pods")
	left := cluster{Unschedulable: node.Spec.Unschedulable}
	for _, pod := range pods.Items {
		left.Pods = append(left.Pods, pod.Name)
		request, err := tCtx.Client().CoordinationV1alpha1().EvictionRequests(pod.Namespace).Get(tCtx, string(pod.UID), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // The server may not even serve requests.
		}
		tCtx.ExpectNoError(err, "reading the request for %s", pod.Name)
		for _, requester := range request.Spec.Requesters {
			left.Requesters = append(left.Requesters, requester.Name+" of "+pod.Name)
		}
	}
	slices.Sort(left.Pods)
	return left
}

// request is a request in an audit log.
type request struct {
	Verb, URI string
	Code      int32
	Body      string
}

func (r request) path() string {
	path, _, _ := strings.Cut(r.URI, "?")
	return path
}

// isProbe ignores the parameters: one of them is the timeout of the client.
func (r request) isProbe() bool {
	return r.Verb == "get" && r.path() == probe && r.Code == http.StatusNotFound
}

func (r request) isWrite() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }
