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

package testcluster

import "sync"

// DeathOf returns the write at which an instance of a controller is killed; 0 means never.
type DeathOf func(instance int) (cutAt int, when Moment)

// KillFirst kills only the first instance, at write n.
func KillFirst(n int, when Moment) DeathOf {
	return func(instance int) (int, Moment) {
		if instance == 0 {
			return n, when
		}
		return 0, when
	}
}

// StartRelay keeps one instance running: when it is killed, the next one is started. stop stops the
// last instance and returns how many were started.
func (c *Cluster) StartRelay(deathOf DeathOf, start func(life *Lifeline) (stop func())) (stop func() (instances int)) {
	started := 0
	startNext := func() (*Lifeline, func()) {
		n, when := deathOf(started)
		started++
		life := NewLifeline(n, when)
		return life, start(life)
	}
	life, stopInstance := startNext()
	ending := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-life.Cut():
				stopInstance()
				life, stopInstance = startNext()
			case <-ending:
				stopInstance()
				return
			}
		}
	})
	stop = sync.OnceValue(func() int {
		close(ending)
		Join(c.T, "the relay of controllers", &running)
		return started
	})
	c.T.Cleanup(func() { stop() })
	return stop
}
