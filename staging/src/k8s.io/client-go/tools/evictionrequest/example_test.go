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

package evictionrequest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/evictionrequest"
)

// A program that drains a node requests the eviction of each pod, and withdraws the request if the
// drain is canceled.
func ExampleRequester() {
	var pod *v1.Pod // As it was read from the API server.
	ctx := context.Background()
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	requester, err := evictionrequest.NewRequester(kubernetes.NewForConfigOrDie(config), "drain.example.com", evictionrequest.RequesterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	result, err := requester.Request(ctx, pod)
	switch {
	case apierrors.IsForbidden(err):
		log.Fatalf("may this program delete the pod? %v", err)
	case err != nil:
		log.Fatal(err)
	case result.Outcome == evictionrequest.AlreadyEvicted:
		return
	}
	if err := requester.Withdraw(ctx, pod); err != nil {
		log.Fatal(err)
	}
}

// An interceptor copies the data of a pod before the pod is evicted.
func ExampleRun() {
	ctx := context.Background()
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	err = evictionrequest.Run(ctx, evictionrequest.InterceptorConfig{
		Client: kubernetes.NewForConfigOrDie(config),
		Name:   "migrate.example.com",
		Handle: func(ctx context.Context, turn *evictionrequest.Turn) error {
			pod := turn.Request().Spec.Target.Pod
			if !hasData(pod.Name) {
				return evictionrequest.Decline("There is no data to copy.")
			}
			turn.SetMessage("Copying the data.")
			turn.SetExpectedFinishTime(time.Now().Add(10 * time.Minute))
			if err := copyData(ctx, pod.Name); err != nil {
				return fmt.Errorf("copying: %w", err) // The handler is called again after a delay.
			}
			// From here on the old copy is stale: the eviction must not be canceled.
			if err := turn.ForbidCancellation(ctx); err != nil {
				return err
			}
			return switchOver(ctx, pod.Name)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
}

func hasData(string) bool                      { return true }
func copyData(context.Context, string) error   { return nil }
func switchOver(context.Context, string) error { return nil }
