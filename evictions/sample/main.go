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
// Command sample is a responder: before a pod is evicted, it saves the pod's data. docs/how-to/write-an-interceptor.md
// shows the program from here on.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os/signal"
	"syscall"
	"time"

	"graceful-kubernetes.example/evictions"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "path to a kubeconfig file; empty in a pod")
	namespace  = flag.String("namespace", "", "the only namespace; empty for all")
	lasts      = flag.Duration("lasts", 10*time.Second, "how long it takes to save")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	evictions.RunOrDie(ctx, evictions.ResponderConfig{
		API:       evictions.Lifecycle(client),
		Name:      "example.com/save",
		Namespace: *namespace,
		Handle: func(ctx context.Context, turn *evictions.Turn) error {
			return save(ctx, client, turn)
		},
	})
}

// save copies the data of the pod to a ConfigMap. It may be called again in the middle.
func save(ctx context.Context, client kubernetes.Interface, turn *evictions.Turn) error {
	request := turn.Request()
	pod, err := client.CoreV1().Pods(request.Namespace).Get(ctx, request.Pod.Name, metav1.GetOptions{})
	if err != nil {
		return err // Shown in the request. Called again in a while.
	}
	data, hasData := pod.Annotations["example.com/data"]
	if pod.UID != request.Pod.UID || !hasData {
		return evictions.Decline("There is nothing to save.")
	}
	turn.SetMessage("Saving.")
	if request.Report.Message != "" {
		turn.SetMessage("Saving, after a restart.")
	}
	turn.SetExpectedFinishTime(time.Now().Add(*lasts))

	copies := client.CoreV1().ConfigMaps(pod.Namespace)
	_, err = copies.Create(ctx, &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "saved-" + pod.Name},
		Data:       map[string]string{"data": data},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	select {
	case <-time.After(*lasts): // The work.
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), evictions.ErrCanceled) { // The pod stays.
			return copies.Delete(context.Background(), "saved-"+pod.Name, metav1.DeleteOptions{})
		}
		return context.Cause(ctx)
	}
	turn.SetMessage("Saved.")
	return nil
}
