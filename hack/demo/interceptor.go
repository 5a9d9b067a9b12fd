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
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// interceptorProcess is the example interceptor, which runs beside the demo.
type interceptorProcess struct {
	command *exec.Cmd
	log     string
	// ended is closed when the process has ended, as err says.
	ended chan struct{}
	err   error
}

// startInterceptor starts it under a name. It works as long on each pod as it is told, and
// runs until it is stopped.
func startInterceptor(c *cluster, name string, work time.Duration) (*interceptorProcess, error) {
	log, err := os.CreateTemp("", "eviction-interceptor-*.log")
	if err != nil {
		return nil, fmt.Errorf("creating the log of the interceptor: %w", err)
	}
	defer log.Close()
	command := exec.Command(c.bin+"/eviction-interceptor", "--kubeconfig", c.kubeconfig, "--name", name, "--work", work.String())
	command.Stdout, command.Stderr = log, log
	// If the demo cannot stop it, because it was killed, the kernel does.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the example interceptor: %w", err)
	}
	p := &interceptorProcess{command: command, log: log.Name(), ended: make(chan struct{})}
	go func() {
		p.err = command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// lifetime returns a context that ends when the interceptor does, so that nobody waits
// for what cannot come any more.
func (p *interceptorProcess) lifetime(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// alive returns an error when the interceptor has ended by itself.
func (p *interceptorProcess) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the example interceptor ended (%v): see %s", p.err, p.log)
	default:
		return nil
	}
}

// stop ends the interceptor and removes its log, unless somebody has to read that.
func (p *interceptorProcess) stop() {
	stopped := p.command.Process.Signal(os.Interrupt) == nil
	<-p.ended
	if stopped || p.err == nil {
		_ = os.Remove(p.log) // It is a temporary file.
	}
}
