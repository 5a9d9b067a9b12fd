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
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a component that was started here.
type process struct {
	name    string
	logFile string
	command *exec.Cmd
	done    chan struct{} // Closed when the process has ended.
}

// startProcess starts a program whose output is appended to a file.
func startProcess(program, logFile string, args []string) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", filepath.Base(program), err)
	}
	defer log.Close()
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = log, log
	// A group of its own: an interrupt from the keyboard is for this program, which then
	// ends its components in order. If it cannot, because it was killed, the kernel does.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	p := &process{name: filepath.Base(program), logFile: logFile, command: command, done: make(chan struct{})}
	go func() {
		_ = command.Wait() // How it ended is told by who looks at its log.
		close(p.done)
	}()
	return p, nil
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

// kill ends the process at once.
func (p *process) kill() error {
	if p.ended() {
		return p.failure("had ended by itself")
	}
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// failure says what a component did, and what it said last.
func (p *process) failure(what string) error {
	const lines = 10
	data, err := os.ReadFile(p.logFile)
	if err != nil {
		data = []byte(err.Error())
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return fmt.Errorf("%s %s\nlog: %s\nits last lines:\n    %s", p.name, what, p.logFile, strings.Join(all[max(0, len(all)-lines):], "\n    "))
}

// ports are where the components listen, for as long as the control plane lives:
// whoever replaces a component takes over its port.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager int
}

// choosePorts returns ports of loopback that are free now.
func choosePorts() (ports, error) {
	var p ports
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.apiServer, &p.controllerManager} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return p, fmt.Errorf("looking for a free port: %w", err)
		}
		// Closed only at the end, so that no port is found twice.
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

// probeClient reads what needs no credentials. The certificates are the control
// plane's own.
var probeClient = &http.Client{
	Timeout:   5 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// get returns the body of a successful answer.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", url, err)
	}
	response, err := probeClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", url, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", url, response.Status)
	}
	return string(body), nil
}
