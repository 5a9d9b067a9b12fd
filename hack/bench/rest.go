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

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// quiet is a time in which no client wants anything.
type quiet struct {
	name string
	// who are the measured clients.
	who      string
	measured selector
	// meanwhile returns when the time is over.
	meanwhile func(context.Context) error
}

// measureRest measures what controllers do while no client wants anything. They must be silent
// when it begins.
func (c *cluster) measureRest(ctx context.Context, t *table, q quiet) error {
	fmt.Printf("%s: %s\n", q.name, c.opts.idleTime)
	if err := c.audit.skip(); err != nil {
		return err
	}
	start := time.Now()
	before, err := c.managerCPUSeconds()
	if err != nil {
		return err
	}
	if err := q.meanwhile(ctx); err != nil {
		return err
	}
	after, err := c.managerCPUSeconds()
	if err != nil {
		return err
	}
	took := time.Since(start)
	all, err := c.audit.next()
	if err != nil {
		return err
	}
	t.add(q.name, q.results(took, after-before, all.of(q.measured))...)
	return nil
}

const restCPU = "CPU of kube-controller-manager"

func (q *quiet) results(took time.Duration, cpuSeconds float64, measured requests) []result {
	return append([]result{
		{Name: "writes by " + q.who, Unit: "per minute", digits: 2, Value: measured.count(isWrite) / took.Minutes()},
		{Name: restCPU, Unit: "s per minute", digits: 2, Value: cpuSeconds / took.Minutes()},
	}, measured.byClient(took.Minutes(), "per minute")...)
}

// idleCPUSeconds is what a feature may cost per minute at rest: one percent of a processor.
const idleCPUSeconds = 0.6

// compareRest sets the targets of a feature at rest, against the same cluster without it.
func compareRest(t *table, with, without, who string) {
	t.want(with, "writes by "+who, atMost, 0)
	t.derive(with, result{Name: "CPU more than " + without, Unit: "s per minute", digits: 2, Value: t.value(with, restCPU) - t.value(without, restCPU)})
	t.want(with, "CPU more than "+without, atMost, idleCPUSeconds)
}

// sleepIdle returns after the time in which nothing happens.
func (c *cluster) sleepIdle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(c.opts.idleTime):
		return nil
	}
}

// managerCPUSeconds is what the controller manager has used since it was started.
func (c *cluster) managerCPUSeconds() (float64, error) {
	// The program was started by the path that the cluster has resolved.
	return cpuSeconds(c.local.Output, managerProgram)
}

// managerProgram is where a local cluster has its controller manager.
var managerProgram = filepath.Join("clusters", clusterName, "bin", controlplane.ControllerManager)

// restartManager kills the controller manager and starts it again, as something that supervises it
// would do.
func (c *cluster) restartManager(ctx context.Context) error {
	_, args, err := findProcess(c.local.Output, managerProgram)
	if err != nil {
		return fmt.Errorf("restarting the controller manager: %w", err)
	}
	ports, err := c.local.Ports()
	if err != nil {
		return err
	}
	if err := c.local.Signal(controlplane.ControllerManager, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing the controller manager: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, time.Minute, true, func(context.Context) (bool, error) {
		// A process that is about to end has no arguments any more, but may still listen.
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[controlplane.ControllerManager]))
		if err != nil {
			return false, nil
		}
		return true, listener.Close()
	})
	if err != nil {
		return fmt.Errorf("waiting for the end of the controller manager: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(c.local.Logs(), controlplane.ControllerManager+".log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("opening the log of the controller manager: %w", err)
	}
	defer log.Close()
	command := exec.Command(args[0], args[1:]...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // As the first one: the cluster finds it by its path.
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting the controller manager again: %w", err)
	}
	go func() { _ = command.Wait() }() // The log says how it ended.
	return nil
}

// cpuSeconds is what the process of a program has used whose path is below a directory and ends
// like this.
func cpuSeconds(dir, program string) (float64, error) {
	process, _, err := findProcess(dir, program)
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of %s: %w", program, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of %s: %w", program, err)
	}
	return stat.CPUTime(), nil
}

// findProcess returns the process of a program whose path is below a directory and ends like this,
// and its arguments.
func findProcess(dir, program string) (procfs.Proc, []string, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return procfs.Proc{}, nil, fmt.Errorf("listing processes: %w", err)
	}
	for _, process := range processes {
		args, err := process.CmdLine()
		if err != nil || len(args) == 0 {
			continue // It is about to end.
		}
		if strings.HasPrefix(args[0], dir+"/") && strings.HasSuffix(args[0], "/"+program) {
			return process, args, nil
		}
	}
	return procfs.Proc{}, nil, errors.New("it does not run")
}

// idleInterceptor takes its time.
const idleInterceptor = "patient.example.com"

// measureIdle measures what the controller does for requests that wait.
func measureIdle(ctx context.Context, opts options, r *report) error {
	if opts.idle == 0 {
		return nil
	}
	return onCluster(ctx, opts, r, featureGates, func(c *cluster) error {
		t := r.table(rowPerCase, "%d requests that wait, for %s.", opts.idle, opts.idleTime)
		for _, state := range []struct {
			name    string
			prepare func(context.Context) error
			end     func(context.Context, *table) error
		}{
			{stateIntercepting, c.prepareIntercepting, nil},
			{stateBlocked, c.prepareBlocked, c.measureRelease},
		} {
			fmt.Printf("creating %d %s\n", opts.idle, state.name)
			if err := c.audit.skip(); err != nil {
				return err
			}
			if err := state.prepare(ctx); err != nil {
				return fmt.Errorf("%s: %w", state.name, err)
			}
			controller := by(evictionController)
			begun, err := c.audit.untilQuiet(ctx, controller)
			if err != nil {
				return err
			}
			t.derive(state.name, result{Name: "writes at first", Unit: "per request", digits: 2, Value: begun.count(controller, isWrite) / float64(opts.idle)})
			if err := c.measureRest(ctx, t, quiet{state.name, "the controller", controller, c.sleepIdle}); err != nil {
				return err
			}
			if state.end != nil {
				if err := state.end(ctx, t); err != nil {
					return fmt.Errorf("%s: %w", state.name, err)
				}
			}
			if err := c.clean(ctx); err != nil {
				return err
			}
		}
		compareIdle(t)
		return nil
	})
}

const (
	stateIntercepting = "idle requests, an interceptor is active and has reported"
	stateBlocked      = "idle requests, a PDB allows no eviction"
)

// Figures of the release of blocked requests.
const (
	firstAfter     = "first pod gone after the budget allows it"
	ownConflicts   = "conflicts of writes of statuses"
	evictedAtOnce  = "evicted when the budget allows all"
	blockedAtFirst = 1.01
	blockedAtRest  = 20
)

// compareIdle sets the targets. Of the requests that a budget blocks, each is written once, in which
// the attempts that all share are hardly seen; then ten eviction calls and ten writes may remain per
// minute.
func compareIdle(t *table) {
	t.want(stateIntercepting, "writes by the controller", atMost, 0)
	t.want(stateBlocked, "writes at first", atMost, blockedAtFirst)
	t.want(stateBlocked, "writes by the controller", atMost, blockedAtRest)
	t.want(stateBlocked, firstAfter, atMost, 2)
	t.want(stateBlocked, ownConflicts, atMost, 0)
}

// measureRelease lets the budget allow all evictions, and measures how long the blocked requests
// take.
func (c *cluster) measureRelease(ctx context.Context, t *table) error {
	if err := c.audit.skip(); err != nil {
		return err
	}
	started := time.Now()
	patch := []byte(`{"spec":{"minAvailable":0}}`)
	if _, err := c.setup.PolicyV1().PodDisruptionBudgets(namespace).Patch(ctx, appName(0), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("changing the budget: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, stepTimeout, true, func(ctx context.Context) (bool, error) {
		pods, err := c.podsOn(ctx, nodeRange{0, c.opts.nodes})
		return len(pods) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the end of the pods: %w", err)
	}
	took := time.Since(started)
	all, err := c.audit.untilQuiet(ctx, by(evictionController))
	if err != nil {
		return err
	}
	for _, r := range releaseResults(all, c.opts.idle, took) {
		t.derive(stateBlocked, r)
	}
	return nil
}

// releaseResults are the figures of a release. The budget allows evictions once the disruption
// controller has written its status.
func releaseResults(all requests, pods int, took time.Duration) []result {
	waited := math.NaN()
	allowed := all.of(by(disruptionAccount), to("poddisruptionbudgets"), isWrite, answered(200))
	evicted := all.of(isEviction, answered(201))
	if len(allowed) > 0 && len(evicted) > 0 {
		waited = evicted[0].StageTimestamp.Sub(allowed[0].StageTimestamp.Time).Seconds()
	}
	return []result{
		{Name: firstAfter, Unit: "s", digits: 2, Value: waited},
		{Name: evictedAtOnce, Unit: "pods/s", digits: 1, Value: float64(pods) / took.Seconds()},
		{Name: ownConflicts, Value: all.count(by(evictionController), to("evictionrequests"), answered(409))},
	}
}

// prepareIntercepting makes requests whose interceptor is active and has reported.
func (c *cluster) prepareIntercepting(ctx context.Context) error {
	pods, err := c.createPods(ctx, c.opts.idle, c.spread, idleInterceptor)
	if err != nil {
		return err
	}
	if err := c.request(ctx, pods, "intercepted", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return len(request.Status.ActiveInterceptors) == 1 && request.Status.ActiveInterceptors[0] == idleInterceptor
	}); err != nil {
		return err
	}
	requests := c.interceptor.CoordinationV1alpha1().EvictionRequests(namespace)
	err = c.inParallel(ctx, len(pods), func(ctx context.Context, i int) error {
		request, err := requests.Get(ctx, string(pods[i].UID), metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.Now()
		for j := range request.Status.Interceptors {
			if entry := &request.Status.Interceptors[j]; entry.Name == idleInterceptor {
				entry.StartTime, entry.HeartbeatTime = &now, &now
				entry.Message = "This takes a while."
			}
		}
		_, err = requests.UpdateStatus(ctx, request, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("reporting as the interceptor: %w", err)
	}
	return nil
}

// prepareBlocked makes requests whose eviction a budget refuses.
func (c *cluster) prepareBlocked(ctx context.Context) error {
	pods, err := c.createPods(ctx, c.opts.idle, c.spread)
	if err != nil {
		return err
	}
	if err := c.createBudget(ctx, len(pods), len(pods)); err != nil {
		return err
	}
	return c.request(ctx, pods, "blocked", func(request *coordinationv1alpha1.EvictionRequest) bool {
		return isTrue(request, coordinationv1alpha1.EvictionRequestConditionBlocked)
	})
}
