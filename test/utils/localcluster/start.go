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

package localcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/test/utils/controlplane"
)

// Settings are flags of the components.
type Settings struct {
	// Gates and RuntimeConfig are lists of name=true or name=false.
	Gates, RuntimeConfig string
	// Args are further flags. Of a flag that is given twice the last value counts.
	Args Args
}

func (s Settings) String() string {
	return fmt.Sprintf("feature gates %q, runtime config %q and further flags %q", s.Gates, s.RuntimeConfig, []string(s.Args))
}

// Release returns the components in a directory with these settings.
func (s Settings) Release(name, bin string) controlplane.Release {
	release := controlplane.Release{
		Name: name, Bin: bin, FeatureGates: s.Gates, RuntimeConfig: s.RuntimeConfig, Args: map[string][]string{},
	}
	for _, arg := range s.Args {
		component, setting, _ := strings.Cut(arg, ":")
		release.Args[component] = append(release.Args[component], "--"+setting)
	}
	return release
}

// The ports of 127.0.0.1 where downscale pod pickers of demos can listen, which are processes beside
// the cluster. They are below those that the kernel gives to other programs.
const (
	FirstPickerPort = 27800
	LastPickerPort  = 27899
)

// DefaultSettings enable what the fork adds: a local cluster is made to try it.
var DefaultSettings = Settings{
	Gates: "DeclarativeNodeMaintenance=true,DeploymentPodSurge=true,DownscalePodPicker=true,EvictionLane=true,EvictionRequestAPI=true," +
		"EvictionRequestForEvictions=true,NodeMaintenanceAwareDaemonSet=true,NodeMaintenanceAwareKubelet=true,NodeMaintenanceBudgets=true,StatefulSetEvictionPacing=true",
	RuntimeConfig: "coordination.k8s.io/v1alpha1=true",
	Args: Args{
		// Only these: the loopback of this machine has what its user runs.
		fmt.Sprintf("%s:downscale-pod-picker-allowed-cidrs=127.0.0.1/32:%d-%d", controlplane.ControllerManager, FirstPickerPort, LastPickerPort),
	},
}

// Args are flags of components, as component:flag=value, in the order in which they were
// given. It is a flag.Value that can be repeated.
type Args []string

func (a *Args) String() string { return strings.Join(*a, " ") }

var argPattern = regexp.MustCompile("^(" + strings.Join(controlplane.Components, "|") + "):[^-=][^=]*=")

// Set adds one flag of a component.
func (a *Args) Set(arg string) error {
	if !argPattern.MatchString(arg) {
		return fmt.Errorf("%q is not of the form component:flag=value, the flag without dashes; the components are %s",
			arg, strings.Join(controlplane.Components, ", "))
	}
	*a = append(*a, arg)
	return nil
}

// ResolvedSettings returns those of the cluster. The lists are sorted: their order is no difference.
func (c *Cluster) ResolvedSettings() (Settings, error) {
	settings := Settings{}
	switch {
	case c.Settings != nil:
		settings = *c.Settings
	case c.Base == "":
		settings = DefaultSettings
	}
	for name, list := range map[string]*string{"--gates": &settings.Gates, "--runtime-config": &settings.RuntimeConfig} {
		values := map[string]bool{}
		parsed := cliflag.NewMapStringBool(&values)
		if err := parsed.Set(*list); err != nil {
			return settings, fmt.Errorf("%s: %q is not a list of name=true or name=false: %w", name, *list, err)
		}
		if _, nameless := values[""]; nameless {
			return settings, fmt.Errorf("%s: %q has a value without a name", name, *list)
		}
		*list = parsed.String()
	}
	return settings, nil
}

func (c *Cluster) checkBinaries() error {
	for _, file := range append([]string{"kubectl", controlplane.KwokStages}, controlplane.Components...) {
		_, err := os.Stat(filepath.Join(c.components(), file))
		switch {
		case err != nil && c.Base != "":
			return fmt.Errorf("%w (%w)", ErrNoBase, err)
		case err != nil:
			return fmt.Errorf("%s is missing (%w): build it with `make control-plane local-cluster-tools`", file, err)
		}
	}
	return nil
}

// start starts the cluster from nothing. Another process can take a port between its choice
// and its use; then new ports are tried.
func (c *Cluster) start(ctx context.Context, settings Settings) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		if err := c.remove(); err != nil {
			return err
		}
		err := c.startComponents(ctx, settings)
		switch {
		case err == nil:
			return nil
		case errors.Is(ctx.Err(), context.Canceled):
			return c.interrupted()
		case ctx.Err() != nil:
			return fmt.Errorf("cluster %q: no time is left: try again, or give a longer --timeout: %w", c.Name, err)
		case attempt == attempts || !errors.Is(err, controlplane.ErrPortTaken):
			return err
		}
		c.printf("a port was taken meanwhile, trying others\n")
	}
}

// startComponents leaves nothing but the logs after an error.
func (c *Cluster) startComponents(ctx context.Context, settings Settings) (err error) {
	plane, err := controlplane.Create(c.Dir())
	if err != nil {
		return err
	}
	if !c.attached {
		plane.Detach()
	}
	defer func() {
		if err != nil {
			plane.Close()
		}
	}()
	if err := c.writeRecord(record{Settings: settings, Ports: plane.Ports()}); err != nil {
		return err
	}
	release := settings.Release(c.Name, c.components())
	// Simulated nodes report rarely, see the lease in test/utils/controlplane.
	release.ControllerManagerArgs = []string{"--node-monitor-period=25s", "--node-monitor-grace-period=200s"}
	return plane.StartAll(ctx, release, controlplane.ControllerManager, controlplane.Scheduler, controlplane.Kwok)
}

// record says how the cluster was started; a later start compares it with what it should be.
type record struct {
	Settings Settings
	Ports    controlplane.Ports
}

// RealRecord is the record of a cluster of test/utils/realcluster, which shares the directory of
// the clusters and their names.
const RealRecord = "real.json"

// checkKind refuses the directory of a cluster with real nodes.
func (c *Cluster) checkKind() error {
	if _, err := os.Stat(filepath.Join(c.Dir(), RealRecord)); err == nil {
		return fmt.Errorf("cluster %q has real nodes: choose another name, or remove it with `make down-real`", c.Name)
	}
	return nil
}

// Record is the record of a cluster with simulated nodes.
const Record = "cluster.json"

func (c *Cluster) recordFile() string { return filepath.Join(c.Dir(), Record) }

func (c *Cluster) writeRecord(r record) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(c.recordFile(), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", c.recordFile(), err)
	}
	return nil
}

// errNoCluster is why a cluster cannot be reused when there is none.
var errNoCluster = errors.New("there is no such cluster")

// reusable returns why the running cluster is not what the settings ask for: errNoCluster
// where there is no trace of one.
func (c *Cluster) reusable(ctx context.Context, settings Settings) error {
	running, err := c.processes()
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.Dir()); errors.Is(err, os.ErrNotExist) && len(running) == 0 {
		return errNoCluster
	}
	var was record
	data, err := os.ReadFile(c.recordFile())
	if err == nil {
		err = json.Unmarshal(data, &was)
	}
	if err != nil || len(running) == 0 {
		return errors.New("leftovers of an earlier run")
	}
	if err := c.missing(running); err != nil {
		return err
	}
	// Each component must run from the binary that is there now: a rebuild replaces the file.
	for _, component := range controlplane.Components {
		if path := filepath.Join(c.components(), component); !sameFile(filepath.Join(c.proc, strconv.Itoa(running[component]), "exe"), path) {
			return fmt.Errorf("%s runs another build than %s", component, path)
		}
	}
	// kwok has read its file when it was started.
	if stages := filepath.Join(c.components(), controlplane.KwokStages); newerFile(stages, c.recordFile()) {
		return fmt.Errorf("%s has changed", stages)
	}
	if was.Settings.String() != settings.String() {
		return fmt.Errorf("it runs with %s, not with %s", was.Settings, settings)
	}
	return was.Ports.Unhealthy(ctx)
}

// missing returns an error that names the first component that does not run.
func (c *Cluster) missing(running map[string]int) error {
	for _, component := range controlplane.Components {
		if _, ok := running[component]; !ok {
			return fmt.Errorf("%s does not run any more", component)
		}
	}
	return nil
}

// Ended returns an error that names a component of the running cluster that has ended by itself.
func (c *Cluster) Ended() error {
	running, err := c.processes()
	if err == nil {
		err = c.missing(running)
	}
	if err != nil {
		return fmt.Errorf("cluster %q: %w: logs are in %s", c.Name, err, c.Logs())
	}
	return nil
}

func sameFile(a, b string) bool {
	first, errA := os.Stat(a)
	second, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(first, second)
}

// newerFile reports whether a file was written after another one.
func newerFile(a, b string) bool {
	first, errA := os.Stat(a)
	second, errB := os.Stat(b)
	return errA == nil && errB == nil && first.ModTime().After(second.ModTime())
}

// processes returns the components that run, with their pids. It does not read pid files: a
// pid can belong to another program by now, and a killed run may not have written it.
func (c *Cluster) processes() (map[string]int, error) {
	entries, err := os.ReadDir(c.proc)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	found := map[string]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if component := c.componentOf(pid); component != "" {
			found[component] = pid
		}
	}
	return found, nil
}

// Pid returns the process that runs a component.
func (c *Cluster) Pid(component string) (int, error) {
	running, err := c.processes()
	if err != nil {
		return 0, err
	}
	pid, found := running[component]
	if !found {
		return 0, fmt.Errorf("%s does not run", component)
	}
	return pid, nil
}

// Signal sends a signal to a component: SIGSTOP freezes it until SIGCONT.
func (c *Cluster) Signal(component string, signal os.Signal) error {
	pid, err := c.Pid(component)
	if err != nil {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", pid, err)
	}
	defer process.Release()
	// Asked again now that the handle is open: another process can have got the pid.
	if c.componentOf(pid) != component {
		return fmt.Errorf("%s does not run any more", component)
	}
	return process.Signal(signal)
}

// Ports returns where the components listen.
func (c *Cluster) Ports() (controlplane.Ports, error) {
	data, err := os.ReadFile(c.recordFile())
	var r record
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the cluster: %w", err)
	}
	return r.Ports, nil
}

// componentOf returns the name of the component of this cluster that a process runs, or "". A
// process that has ended, zombies included, has no command line.
func (c *Cluster) componentOf(pid int) string {
	argv := c.procStrings(pid, "cmdline")
	if len(argv) == 0 {
		return ""
	}
	if component := c.componentAt(argv[0]); component != "" {
		return component
	}
	// The second argument is the program if it is a script: the first one is then the
	// interpreter. It can also be a debugger or a pager that the user runs on our program,
	// which has the home directory of the user.
	if len(argv) > 1 && slices.Contains(c.procStrings(pid, "environ"), "HOME="+c.Dir()) {
		return c.componentAt(argv[1])
	}
	return ""
}

// procStrings returns a list of strings of a process, none if it cannot be read.
func (c *Cluster) procStrings(pid int, file string) []string {
	data, err := os.ReadFile(filepath.Join(c.proc, strconv.Itoa(pid), file))
	if data = bytes.TrimRight(data, "\x00"); err != nil || len(data) == 0 {
		return nil
	}
	return strings.Split(string(data), "\x00")
}

// componentAt returns the name of the component of this cluster that is started from a path,
// or "".
func (c *Cluster) componentAt(path string) string {
	dir, name := filepath.Split(path)
	if filepath.Clean(dir) != controlplane.LinkDir(c.Dir()) || !slices.Contains(controlplane.Components, name) {
		return ""
	}
	return name
}

// killTimeout is how long a process may take to be gone after SIGKILL: while the kernel waits
// for the disk on its behalf, it cannot end.
const killTimeout = time.Minute

// kill ends all components of the cluster and returns when they are gone. It does not ask
// them: their state is thrown away.
func (c *Cluster) kill() error {
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		running, err := c.processes()
		if err != nil || len(running) == 0 {
			return err
		}
		for component, pid := range running {
			if time.Since(start) > killTimeout {
				return fmt.Errorf("process %d (%s) does not end, not even by SIGKILL", pid, component)
			}
			handle, err := os.FindProcess(pid)
			if err != nil {
				return fmt.Errorf("find process %d: %w", pid, err)
			}
			// Asked again now that the handle is open: another process can have got the pid.
			if c.componentOf(pid) == component {
				err = handle.Kill()
			}
			if err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("end process %d (%s): %w", pid, component, err)
			}
			_ = handle.Release()
		}
	}
}
