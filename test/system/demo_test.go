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
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
)

const (
	// demoVariable names the cluster of a demo. It is started unless it runs, and keeps running.
	// Without the variable, the cluster ends with the test.
	demoVariable = "DEMO_CLUSTER"

	// demoLabel is the label of the namespaces of the demos.
	demoLabel = "demo"
)

// demo prints the commands as a user types them, with their output, and what was checked. It does
// with kubectl what a user would do.
type demo struct {
	programs programs
	cluster  *localcluster.Cluster
	stays    bool // The cluster outlives the demo.

	began            time.Time
	chapters, checks int
}

// fact is a condition that must become true. Until it is, the check fails through its own context.
type fact struct {
	what  string
	check func(tCtx ktesting.TContext)
}

// newDemo starts a cluster of three nodes. It returns a context with its client, and with a namespace
// for the demo.
func newDemo(tCtx ktesting.TContext, name string) (ktesting.TContext, *demo) {
	tCtx.Helper()
	return newDemoOn(tCtx, name, 3)
}

// newDemoOn is newDemo with so many nodes.
func newDemoOn(tCtx ktesting.TContext, name string, nodes int) (ktesting.TContext, *demo) {
	tCtx.Helper()
	return newDemoWith(tCtx, name, nodes, nil)
}

// newDemoWith is newDemoOn with settings of the cluster, if they are not the default.
func newDemoWith(tCtx ktesting.TContext, name string, nodes int, settings *localcluster.Settings) (ktesting.TContext, *demo) {
	tCtx.Helper()
	p, cluster := findPrograms(tCtx), os.Getenv(demoVariable)
	d := &demo{programs: p, stays: cluster != "", began: time.Now()}
	d.cluster = &localcluster.Cluster{Name: cmp.Or(cluster, "demo"), Output: p.output, Bin: p.fork, Nodes: nodes, Settings: settings, Printf: func(format string, args ...any) { fmt.Printf(format, args...) }}
	if d.stays {
		tCtx.ExpectNoError(d.cluster.Ensure(tCtx))
		tCtx, _ = connect(tCtx, d.cluster)
	} else {
		tCtx, _ = startCluster(tCtx, d.cluster)
	}
	return createDemoNamespace(tCtx, name), d
}

// createDemoNamespace creates a namespace for one run: that of an earlier run may still exist.
func createDemoNamespace(tCtx ktesting.TContext, name string) ktesting.TContext {
	tCtx.Helper()
	namespace := create(tCtx, tCtx.Client().CoreV1().Namespaces(), &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "demo-", Labels: map[string]string{demoLabel: name}},
	})
	tCtx = tCtx.WithNamespace(namespace.Name)
	awaitAdmission(tCtx)
	return tCtx
}

func (d *demo) say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (d *demo) chapter(title string) {
	d.chapters++
	d.say("\n=== %d. %s (%.0f s)\n", d.chapters, title, time.Since(d.began).Seconds())
}

// show prints a command as a user types it.
func (d *demo) show(args ...string) {
	words := []string{"$ kubectl"}
	for _, arg := range args {
		if name, value, found := strings.Cut(arg, "="); found && strings.Contains(value, " ") {
			arg = fmt.Sprintf("%s=%q", name, value)
		}
		words = append(words, arg)
	}
	d.say("%s", strings.Join(words, " "))
}

// kubectl runs a command, prints it with its output, and returns the output.
func (d *demo) kubectl(tCtx ktesting.TContext, args ...string) string {
	tCtx.Helper()
	d.show(args...)
	var output bytes.Buffer
	command := d.cluster.Command(tCtx, args...)
	command.Stdout = io.MultiWriter(os.Stdout, &output)
	command.Stderr = command.Stdout
	tCtx.ExpectNoError(command.Run(), "kubectl %s", strings.Join(args, " "))
	d.say("")
	return output.String()
}

// run runs a command in the namespace of the demo, and prints nothing.
func (d *demo) run(tCtx ktesting.TContext, args ...string) {
	tCtx.Helper()
	args = append(args, "--namespace", tCtx.Namespace())
	output, err := d.cluster.Command(tCtx, args...).CombinedOutput()
	tCtx.ExpectNoError(err, "kubectl %s: %s", strings.Join(args, " "), output)
}

// watching is a command that prints changes. On a terminal it overwrites its lines, so nothing else
// may be printed until it has ended.
type watching struct {
	*exec.Cmd
	stderr bytes.Buffer
}

func (d *demo) watch(tCtx ktesting.TContext, args ...string) *watching {
	tCtx.Helper()
	d.show(args...)
	w := &watching{Cmd: d.cluster.Command(tCtx, args...)}
	w.Stdout, w.Stderr = os.Stdout, &w.stderr
	tCtx.ExpectNoError(w.Start(), "kubectl %s", strings.Join(args, " "))
	tCtx.Cleanup(func() { // After a failure: it has to show the cursor of the terminal again.
		w.interrupt()
		_ = w.Wait()
	})
	return w
}

// interrupt sends the signal of Ctrl-C. If the command has already ended, end checks its exit code.
func (w *watching) interrupt() { _ = w.Process.Signal(os.Interrupt) }

// end waits for the end of the command.
func (w *watching) end(tCtx ktesting.TContext) {
	tCtx.Helper()
	const interrupted = 130
	if err := w.Wait(); w.ProcessState.ExitCode() != interrupted || tCtx.Err() != nil {
		tCtx.ExpectNoError(err, "%s: %s", w, w.stderr.Bytes())
	}
	fmt.Println()
}

// expect waits for facts, and prints them.
func (d *demo) expect(tCtx ktesting.TContext, facts ...fact) {
	tCtx.Helper()
	awaitFacts(tCtx, facts...)
	d.tell(facts...)
}

func (d *demo) tell(facts ...fact) {
	for _, fact := range facts {
		d.checks++
		d.say("  ok: %s", fact.what)
	}
}

func awaitFacts(tCtx ktesting.TContext, facts ...fact) {
	tCtx.Helper()
	for _, fact := range facts {
		await(tCtx, fmt.Sprintf("%q", fact.what), fact.check)
	}
}

// expectOutput fails unless a command has printed all of these words.
func (d *demo) expectOutput(tCtx ktesting.TContext, what, output string, words ...string) {
	tCtx.Helper()
	for _, word := range words {
		if !strings.Contains(output, word) {
			tCtx.Fatalf("%q is false: the output lacks %q", what, word)
		}
	}
	d.tell(fact{what: what})
}

// startInterceptor starts the example interceptor with a name and the time that it spends on each
// pod. If the interceptor ends, the returned context is canceled: no pod would be prepared.
func (d *demo) startInterceptor(tCtx ktesting.TContext, name string, work time.Duration) ktesting.TContext {
	tCtx.Helper()
	tCtx, _ = d.startExample(tCtx, "eviction-interceptor", "--kubeconfig", d.cluster.Kubeconfig(), "--name", name, "--work", work.String())
	return tCtx
}

// example is a program of staging/src/k8s.io/client-go/examples that runs beside the cluster.
type example struct {
	*exec.Cmd
	output bytes.Buffer
	killed atomic.Bool
	ended  chan struct{}
}

// startExample starts an example. If it ends and was not killed, the returned context is canceled.
func (d *demo) startExample(tCtx ktesting.TContext, name string, args ...string) (ktesting.TContext, *example) {
	tCtx.Helper()
	return startProgram(tCtx, name, exec.CommandContext(tCtx, filepath.Join(d.programs.fork, name), args...))
}

// startProgram does that with another program.
func startProgram(tCtx ktesting.TContext, name string, command *exec.Cmd) (ktesting.TContext, *example) {
	tCtx.Helper()
	e := &example{Cmd: command, ended: make(chan struct{})}
	e.Cancel = func() error { return e.Process.Signal(os.Interrupt) }
	// The kernel stops it if the demo is killed.
	e.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e.Stdout, e.Stderr = &e.output, &e.output
	tCtx.ExpectNoError(e.Start(), "starting %s", name)
	tCtx.Cleanup(func() {
		_ = e.Cancel() // It may have ended.
		<-e.ended
	})
	tCtx = tCtx.WithCancel()
	go func() {
		defer close(e.ended)
		if err := e.Wait(); !e.killed.Load() {
			tCtx.Cancel(fmt.Sprintf("%s has ended (%v):\n%s", name, err, e.output.String()))
		}
	}()
	return tCtx, e
}

// kill ends the example as a crash does, and returns when it has ended.
func (e *example) kill(tCtx ktesting.TContext) {
	tCtx.Helper()
	e.killed.Store(true)
	tCtx.ExpectNoError(e.Process.Kill(), "killing %s", e)
	<-e.ended
}

// pause waits, so that a reader can follow.
func pause(tCtx ktesting.TContext, duration time.Duration) {
	tCtx.Helper()
	select {
	case <-tCtx.Done():
		tCtx.Fatalf("interrupted: %v", tCtx.Err())
	case <-time.After(duration):
	}
}
