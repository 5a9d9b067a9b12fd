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

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrPortTaken is why a component ended if another program listens on its port.
var ErrPortTaken = errors.New("another program took its port meanwhile")

// process is a component that was started here.
type process struct {
	name    string
	logFile string
	command *exec.Cmd
	done    chan struct{} // Closed when the process has ended.
	asked   bool          // It was stopped or killed here.
}

// LinkDir is the directory below that of a control plane from which its components are
// started: it is on the command line of all of them, and of no other process.
func LinkDir(dir string) string { return filepath.Join(dir, "bin") }

// Link makes a symbolic link to a program in a directory, and returns its path.
func Link(dir, program string) (string, error) {
	link := filepath.Join(dir, filepath.Base(program))
	_ = os.Remove(link) // It may lead to another release.
	if err := os.Symlink(program, link); err != nil {
		return "", fmt.Errorf("linking to %s: %w", program, err)
	}
	return link, nil
}

// startProcess starts a component whose output is appended to its log.
func (c *ControlPlane) startProcess(component string, release Release) (*process, error) {
	bin, err := filepath.Abs(release.Bin)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", release.Bin, err)
	}
	link, err := Link(LinkDir(c.dir), filepath.Join(bin, programOf(component)))
	if err != nil {
		return nil, err
	}
	p := &process{name: component, logFile: filepath.Join(c.dir, "logs", component+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", component, err)
	}
	defer log.Close()
	p.command = exec.Command(link, c.args(component, release)...)
	p.command.Stdout, p.command.Stderr = log, log
	p.command.Dir, p.command.Env = bin, environment(os.Environ(), c.dir)
	// An interrupt from the keyboard is for this program, which then ends its components in
	// order. If it cannot, because it was killed, the kernel does.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.detached {
		p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Join(bin, component), err)
	}
	// For people: nothing here trusts a pid that it reads.
	_ = os.WriteFile(filepath.Join(c.dir, "pids", component+".pid"), fmt.Append(nil, p.command.Process.Pid), 0o600)
	go func() {
		_ = p.command.Wait() // The log says how it ended.
		close(p.done)
	}()
	return p, nil
}

// environment is the environment of the components: without variables that would
// configure them, and away from what the user has in the home directory.
func environment(inherited []string, home string) []string {
	env := slices.DeleteFunc(slices.Clone(inherited), func(variable string) bool {
		return slices.ContainsFunc([]string{"ETCD_", "KWOK_", "KUBE_", "KUBECONFIG=", "HOME="}, func(prefix string) bool {
			return strings.HasPrefix(variable, prefix)
		})
	})
	return append(env, "HOME="+home)
}

// listens reports whether a process listens on a port.
func listens(pid, port int) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	// The columns are a number, the local address, the remote one, the state, ...
	table, err := os.ReadFile(filepath.Join(proc, "net", "tcp"))
	if err != nil {
		return false
	}
	// Who listens on all addresses does so by IPv6. A kernel may be without it.
	if tableOf6, err := os.ReadFile(filepath.Join(proc, "net", "tcp6")); err == nil {
		table = append(table, tableOf6...)
	}
	const stateColumn, listening, inodeColumn = 3, "0A", 9
	// The bytes of an address are in the order of the machine, those of a port are not.
	suffix := fmt.Sprintf(":%04X", port)
	var sockets []string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > inodeColumn && strings.HasSuffix(fields[1], suffix) && fields[stateColumn] == listening {
			sockets = append(sockets, "socket:["+fields[inodeColumn]+"]")
		}
	}
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(files, func(file os.DirEntry) bool {
		target, err := os.Readlink(filepath.Join(proc, "fd", file.Name()))
		return err == nil && slices.Contains(sockets, target)
	})
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks the process to end, and forces it when it does not.
func (p *process) stop(timeout time.Duration) error {
	if p.ended() {
		return p.failure("had ended by itself")
	}
	p.asked = true
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(timeout):
		_ = p.kill() // It may end just now.
		return p.failure(fmt.Sprintf("did not end within %s", timeout))
	}
}

// signal sends a signal that does not end the process.
func (p *process) signal(signal os.Signal) error {
	if p.ended() {
		return p.failure("had ended by itself")
	}
	if err := p.command.Process.Signal(signal); err != nil {
		return fmt.Errorf("sending %s to %s: %w", signal, p.name, err)
	}
	return nil
}

// kill ends the process at once.
func (p *process) kill() error {
	if p.ended() {
		return p.failure("had ended by itself")
	}
	p.asked = true
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// failure says what a component did, and ends with the last lines of its log.
func (p *process) failure(what string) error {
	lines := logEnd(p.logFile)
	failure := fmt.Errorf("%s %s\n%s", p.name, what, LogEnd(p.logFile))
	if p.ended() && strings.Contains(strings.Join(lines, "\n"), "address already in use") {
		return fmt.Errorf("%w: %w", ErrPortTaken, failure)
	}
	return failure
}

// LogEnd names a log and shows its last lines, long ones cut.
func LogEnd(file string) string {
	return fmt.Sprintf("log: %s\nits last lines:\n%s", file, indent(logEnd(file)))
}

// logEnd returns the last lines of a log, or why there are none.
func logEnd(file string) []string {
	log, err := os.ReadFile(file)
	if err != nil {
		log = []byte(err.Error())
	}
	return lastLines(log, 10)
}

// stacks are those of a panic: the reason is in front of them.
var stacks = regexp.MustCompile(`(?m)^goroutine \d+ .*(\n.+)*`)

// lastLines returns the end of a log, without stacks.
func lastLines(log []byte, count int) []string {
	text := strings.TrimSpace(stacks.ReplaceAllString(string(log), ""))
	if text == "" {
		text = "(nothing)"
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-count):]
}

// indent returns the lines as one text, with long ones cut.
func indent(lines []string) string {
	const width = 600 // The lines of kwok end with the error.
	var text []string
	for _, line := range lines {
		if len(line) > width {
			line = line[:width] + "..."
		}
		text = append(text, "    "+line)
	}
	return strings.Join(text, "\n")
}
