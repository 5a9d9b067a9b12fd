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

package app

import (
	"context"
	"sync"

	"k8s.io/client-go/kubernetes"
)

// runInterceptor takes the turns of a controller in evictions until the context is canceled. It is
// nil if the gate of the controller is off.
type runInterceptor func(ctx context.Context)

// start runs the interceptor in the background. wait waits until it has ended.
func (run runInterceptor) start(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	if run != nil {
		running.Go(func() { run(ctx) })
	}
	return running.Wait
}

// newInterceptorClients returns a client for the reports of an interceptor and one for its work,
// which must not be delayed while many turns report.
func newInterceptorClients(controllerContext ControllerContext, controllerName string) (reports, work kubernetes.Interface, err error) {
	if reports, err = newEvictionClient(controllerContext, controllerName); err != nil {
		return nil, nil, err
	}
	work, err = newEvictionClient(controllerContext, controllerName)
	return reports, work, err
}
