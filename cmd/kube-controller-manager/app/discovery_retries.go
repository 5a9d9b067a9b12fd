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
	"math"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
)

// firstDiscoveryRetry is the delay before it is asked again what is served. It doubles up to maxDiscoveryRetry.
const (
	firstDiscoveryRetry = time.Second
	maxDiscoveryRetry   = 30 * time.Second
)

// awaitAnswer asks what kube-apiserver serves until it is known. failed is logged with each error. It returns an error if
// the context is canceled before.
func awaitAnswer(ctx context.Context, failed string, ask func(context.Context) (bool, error)) (served bool, err error) {
	delays := wait.Backoff{Duration: firstDiscoveryRetry, Factor: 2, Cap: maxDiscoveryRetry, Steps: math.MaxInt32}
	err = delays.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		var err error
		if served, err = ask(ctx); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, failed)
			return false, nil
		}
		return true, nil
	})
	return served, err
}
