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
// Eviction-interceptor takes its part in the eviction of pods that name it in
// spec.evictionInterceptors: it works for a while, says how long that will take, and
// hands over. Replace the work with your own: migrate data, drain connections.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1alpha1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// heartbeatInterval is how often the interceptor reports while it works. The API
// server accepts one report a minute; three minutes leave room for several failures
// before the deadline of the request, by default 20 minutes, ends the turn.
const heartbeatInterval = 3 * time.Minute

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of the kubeconfig file; empty inside a cluster")
	name := flag.String("name", "interceptor.example.com", "the name that pods carry in spec.evictionInterceptors")
	work := flag.Duration("work", 10*time.Second, "how long the work on one pod takes")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *name, *work); err != nil {
		log.Fatalf("eviction-interceptor: %v", err)
	}
}

func run(ctx context.Context, kubeconfig, name string, work time.Duration) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Coordination().V1alpha1().EvictionRequests()
	interceptor := &interceptor{client: client, name: name, work: work, turns: map[types.UID]context.CancelFunc{}}
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { interceptor.observe(ctx, obj.(*coordinationv1alpha1.EvictionRequest)) },
		UpdateFunc: func(_, obj any) { interceptor.observe(ctx, obj.(*coordinationv1alpha1.EvictionRequest)) },
		DeleteFunc: interceptor.deleted,
	}); err != nil {
		return fmt.Errorf("watching eviction requests: %w", err)
	}
	factory.StartWithContext(ctx)
	log.Printf("waiting for evictions of pods that name %s", name)
	<-ctx.Done()
	return nil
}

// interceptor works on every request where it is its turn. Its methods observe and
// deleted are called by one goroutine, that of the informer.
type interceptor struct {
	client kubernetes.Interface
	name   string
	work   time.Duration
	// turns holds how to stop the work on each request, by the UID of the request.
	turns map[types.UID]context.CancelFunc
}

// observe starts the work when the turn begins, and stops it when it ends early: the
// request was canceled, or the interceptor was too slow.
func (i *interceptor) observe(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) {
	stop, working := i.turns[request.UID]
	active := slices.Contains(request.Status.ActiveInterceptors, i.name)
	switch {
	case active && !working:
		ctx, stop := context.WithCancel(ctx)
		i.turns[request.UID] = stop
		go i.intercept(ctx, request.DeepCopy())
	case !active && working:
		stop()
		delete(i.turns, request.UID)
	}
}

func (i *interceptor) deleted(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	request, ok := obj.(*coordinationv1alpha1.EvictionRequest)
	if !ok {
		return
	}
	if stop, working := i.turns[request.UID]; working {
		stop()
		delete(i.turns, request.UID)
	}
}

// intercept takes one turn: report the start and the ETA, work, report completion.
func (i *interceptor) intercept(ctx context.Context, request *coordinationv1alpha1.EvictionRequest) {
	pod := request.Namespace + "/" + request.Spec.Target.Pod.Name
	report := i.resume(request)
	if report.CompletionTime != nil {
		return // Done before a restart; the controller has not moved on yet.
	}
	finish := report.StartTime.Add(i.work)
	log.Printf("%s: my turn, done by %s", pod, finish.Format(time.TimeOnly))

	for remaining := time.Until(finish); remaining > 0; remaining = time.Until(finish) {
		report.WithHeartbeatTime(metav1.Now()).
			WithExpectedFinishTime(metav1.NewTime(finish)).
			WithMessage(fmt.Sprintf("Working on %s.", pod))
		if !i.apply(ctx, request, report) {
			return
		}
		select {
		case <-ctx.Done():
			log.Printf("%s: stopped, the turn is over", pod)
			return
		case <-time.After(min(remaining, heartbeatInterval)):
		}
	}
	report.ExpectedFinishTime = nil
	report.WithHeartbeatTime(metav1.Now()).WithCompletionTime(metav1.Now()).WithMessage("Done.")
	if i.apply(ctx, request, report) {
		log.Printf("%s: done", pod)
	}
}

// resume returns the report to go on with: a new one, or that from before a restart.
func (i *interceptor) resume(request *coordinationv1alpha1.EvictionRequest) *coordinationapply.InterceptorStatusApplyConfiguration {
	report := coordinationapply.InterceptorStatus().WithName(i.name).WithStartTime(metav1.Now())
	for _, old := range request.Status.Interceptors {
		if old.Name == i.name && old.StartTime != nil {
			report.StartTime, report.CompletionTime = old.StartTime, old.CompletionTime
		}
	}
	return report
}

// apply writes the report into the interceptor's own entry of the status and tells
// whether to go on. It forces, because the controller has created the entry.
func (i *interceptor) apply(ctx context.Context, request *coordinationv1alpha1.EvictionRequest, report *coordinationapply.InterceptorStatusApplyConfiguration) bool {
	patch := coordinationapply.EvictionRequest(request.Name, request.Namespace).
		WithUID(request.UID). // Not another request of the same name.
		WithStatus(coordinationapply.EvictionRequestStatus().WithInterceptors(report))
	for {
		_, err := i.client.CoordinationV1alpha1().EvictionRequests(request.Namespace).
			ApplyStatus(ctx, patch, metav1.ApplyOptions{FieldManager: i.name, Force: true})
		switch {
		case err == nil:
			return true
		case errors.Is(ctx.Err(), context.Canceled), apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err):
			log.Printf("%s/%s: not reported, giving up: %v", request.Namespace, request.Name, err)
			return false
		}
		log.Printf("%s/%s: not reported, trying again: %v", request.Namespace, request.Name, err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
		}
	}
}
