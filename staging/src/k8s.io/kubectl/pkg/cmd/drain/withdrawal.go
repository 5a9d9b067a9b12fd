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
	"os"
	"os/signal"
	"syscall"
	"time"

	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/drain"
)

// deathDelay is how long a signal of the program to itself may take.
const deathDelay = time.Second

// withdrawWhenEnded makes the drain withdraw the evictions that it leaves to the server if it times
// out or is interrupted. The result removes the handler of signals.
func (o *DrainCmdOptions) withdrawWhenEnded() (stop func()) {
	if o.drainer.DryRunStrategy != cmdutil.DryRunNone || o.drainer.DisableEviction {
		return func() {} // Nothing is evicted.
	}
	requests := drain.NewRequests(o.drainer.Client, o.ErrOut)
	o.drainer.Requests = requests // It tries evictions again that are denied, with any server.
	if !o.maintenance.serves(evictionRequests) {
		return func() {} // Nothing is requested, and a signal ends the program as ever.
	}
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // As for nohup, and for jobs of scripts in the background.
			signal.Notify(signals, s)
		}
	}
	go func() {
		select {
		case <-ended:
		case received := <-signals:
			signal.Stop(signals) // The next one ends the program at once.
			requests.Interrupt()
			dieBy(received)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(ended)
	}
}

// dieBy ends the program by the signal, so that its parent sees the same as without a handler.
func dieBy(received os.Signal) {
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Signal(received) == nil {
		time.Sleep(deathDelay)
	}
	os.Exit(1) // Windows has no signals to send.
}
