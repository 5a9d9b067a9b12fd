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

// Eviction-requester requests the eviction of pods with EvictionRequests, or withdraws these
// requests. This example selects the pods by label.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/evictionrequest"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path to the kubeconfig file; empty inside a cluster")
	namespace := flag.String("namespace", "default", "namespace of the pods")
	selector := flag.String("selector", "", "label selector of the pods; empty selects all")
	name := flag.String("name", "requester.example.com", "name of the requester in spec.requesters")
	withdraw := flag.Bool("withdraw", false, "withdraw the requests instead of creating them")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace, *selector, *name, *withdraw); err != nil {
		fmt.Fprintln(os.Stderr, "eviction-requester:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace, selector, name string, withdraw bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	requester, err := evictionrequest.NewRequester(client, name, evictionrequest.RequesterOptions{})
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("listing the pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if withdraw {
			if err := requester.Withdraw(ctx, pod); err != nil {
				return err
			}
			fmt.Printf("%s: withdrawn\n", pod.Name)
			continue
		}
		result, err := requester.Request(ctx, pod)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s %s\n", pod.Name, result.Outcome, result.Request.Name)
	}
	return nil
}
