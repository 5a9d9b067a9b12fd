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

// Eviction-interceptor intercepts the eviction of pods that name it in spec.evictionInterceptors:
// it works for a while, reports when it expects to finish, and completes. Replace the function
// prepare with your own work, such as migrating data or draining connections.
//
// It needs permission to get, list and watch evictionrequests, to patch evictionrequests/status,
// and to intercept evictioninterceptors with its name; see rbac.yaml.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/evictionrequest"
	"k8s.io/klog/v2"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path to the kubeconfig file; empty inside a cluster")
	name := flag.String("name", "interceptor.example.com", "name of the interceptor in spec.evictionInterceptors of pods")
	work := flag.Duration("work", 10*time.Second, "duration of the work for one pod")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Background().Error(err, "Reading the kubeconfig failed")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	evictionrequest.RunOrDie(ctx, evictionrequest.InterceptorConfig{
		Client: kubernetes.NewForConfigOrDie(config),
		Name:   *name,
		Handle: func(ctx context.Context, turn *evictionrequest.Turn) error { return prepare(ctx, turn, *work) },
	})
}

// prepare prepares the eviction of the pod. If it is called again after a restart, the request
// contains the earlier reports.
func prepare(ctx context.Context, turn *evictionrequest.Turn, work time.Duration) error {
	turn.SetMessage("Preparing pod " + turn.Request().Spec.Target.Pod.Name + ".")
	turn.SetExpectedFinishTime(time.Now().Add(work))
	select {
	case <-time.After(work):
		turn.SetMessage("Prepared.")
		return nil
	case <-ctx.Done(): // The request was canceled, for example.
		return context.Cause(ctx)
	}
}
