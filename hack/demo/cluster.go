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
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// pollInterval is how often the demo looks at an object that it waits for.
const pollInterval = 200 * time.Millisecond

// demoLabel is on the namespaces and nodes that a demo makes. Its value says which one.
const demoLabel = "demo"

// cluster is the namespace of a demo. What a user would do, it does with kubectl;
// what a program that drains would do, with the library; what only the demo wants to
// know, it reads with the client.
type cluster struct {
	client     kubernetes.Interface
	bin        string
	kubectl    string
	kubeconfig string
	namespace  string
	// base is where the programs of the pristine base are, baseName is the name of its
	// cluster, output is for the state of that.
	base, baseName, output string
}

func (c *cluster) createNamespace(ctx context.Context, demo string) error {
	namespace, err := c.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "demo-", Labels: map[string]string{demoLabel: demo}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a namespace: %w", err)
	}
	c.namespace = namespace.Name
	// Pods are admitted only when their service account is there.
	return c.poll(ctx, "the default service account", func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().ServiceAccounts(c.namespace).Get(ctx, "default", metav1.GetOptions{})
		return found(err)
	})
}

// run runs kubectl in the namespace of the demo, with a manifest on standard input.
func (c *cluster) run(ctx context.Context, manifest string, args ...string) error {
	command := c.command(ctx, append([]string{"--namespace", c.namespace}, args...)...)
	command.Stdin = strings.NewReader(manifest)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(output))
	}
	return nil
}

// command is kubectl on the cluster of the demo.
func (c *cluster) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, c.kubectl, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	return command
}

// readyPod waits for a ready pod with the label app=name and returns it.
func (c *cluster) readyPod(ctx context.Context, name string) (*v1.Pod, error) {
	var ready *v1.Pod
	err := c.poll(ctx, "a ready pod of "+name, func(ctx context.Context) (bool, error) {
		pods, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return false, err
		}
		for i := range pods.Items {
			if podutil.IsPodReady(&pods.Items[i]) {
				ready = &pods.Items[i]
			}
		}
		return ready != nil, nil
	})
	return ready, err
}

// podExists tells whether this instance of the pod is there and not on its way out.
func (c *cluster) podExists(ctx context.Context, pod *v1.Pod) (bool, error) {
	current, err := c.client.CoreV1().Pods(c.namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return current.UID == pod.UID && current.DeletionTimestamp == nil, nil
}

// await calls reached with every state of the pod's request until it returns true.
func (c *cluster) await(ctx context.Context, pod *v1.Pod, what string, reached func(*coordinationv1alpha1.EvictionRequest) bool) error {
	return c.poll(ctx, what, func(ctx context.Context) (bool, error) {
		request, err := c.client.CoordinationV1alpha1().EvictionRequests(c.namespace).Get(ctx, string(pod.UID), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return reached(request), nil
	})
}

func (c *cluster) poll(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextCancel(ctx, pollInterval, true, condition); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

func pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}

func found(err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
